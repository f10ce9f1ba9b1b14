/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* refused: a length of code that the program computes */
/* A function is put together of code that is copied, and one of its bytes is changed. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static long copy(char *to)
{
	char *from;
	long number, length;

	__asm__("jmp 3f\n"
		"1: mov (%%rdi), %%eax\n"
		"add $0x11, %%eax\n"
		"2: add 4(%%rdi), %%eax\n"
		"ret\n"
		"3: lea 1b(%%rip), %0\n"
		"lea 2b(%%rip), %1\n"
		"dec %1\n"
		"sub %0, %1\n"
		"lea 3b(%%rip), %2\n"
		"sub %0, %2\n"
		: "=&r"(from), "=&r"(number), "=r"(length)::"cc");
	memcpy(to, from, length);
	to[number] = 7;
	return length;
}

int main(void)
{
	int two[2] = {100, 1000};
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return 1;
	copy(page);
	printf("%d\n", ((int (*)(int *))page)(two));
	return 0;
}
