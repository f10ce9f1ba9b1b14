/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a compiler may make assembly of: switches with tables, computed gotos,
 * structures by value, bit fields, floating point, vectors, atomics, thread-local
 * variables, variable-length arrays, variadic functions, setjmp, inline assembly
 * with sections, numeric labels and several statements. Prints a line for each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

struct node {
	struct node *next;
	unsigned int kind : 3, size : 13;
	double weight;
	char name[12];
};

static _Thread_local long local = 7;
static atomic_long counter;
static jmp_buf back;

static NOINLINE int choose(const int *p)
{
	switch (*p) {
	case 0: return 11;
	case 1: return p[1] * 3;
	case 2: return p[1] - p[2];
	case 3: return 1 << p[1];
	case 4: return p[3] ^ 0x55;
	case 5: return -p[1];
	case 9: return 99;
	default: return 0;
	}
}

static NOINLINE long machine(const unsigned char *code)
{
	static const void *const table[] = { &&stop, &&inc, &&dbl, &&dec };
	long a = 1;

	goto *table[*code++];
inc:	a++; goto *table[*code++];
dbl:	a *= 2; goto *table[*code++];
dec:	a--; goto *table[*code++];
stop:	return a;
}

static NOINLINE long sum(int n, ...)
{
	va_list list;
	long s = 0;

	va_start(list, n);
	while (n--)
		s += va_arg(list, int);
	va_end(list);
	return s;
}

static NOINLINE struct node made(int k)
{
	struct node n = { .kind = k & 7, .size = k * 5, .weight = k / 4.0 };

	snprintf(n.name, sizeof(n.name), "node %d", k);
	return n;
}

static NOINLINE double weigh(struct node *list, int n)
{
	double s = 0;
	float f[n];

	for (int i = 0; i < n; i++)
		f[i] = (float)(i * list->weight);
	for (struct node *p = list; p; p = p->next)
		s += p->weight * p->size + p->kind + f[p->kind % n];
	return s;
}

static NOINLINE unsigned long assembly(unsigned long *p, unsigned long x)
{
	unsigned long old = x, count = 4;

	__asm__ volatile("lock; xaddq %0, %1; addq $1, 8(%2)"
			 : "+r"(old), "+m"(p[0]) : "r"(p) : "memory", "cc");
	__asm__ volatile("1:\tmovq (%1), %%rax\n\trolq $3, %%rax; movq %%rax, (%1) # ; \"x\n\t"
			 "dec %0\n\tjnz 1b\n"
			 ".pushsection .rodata; .balign 8; 771: .quad 772f - 771b; .long 1b - .; 772:; .popsection"
			 : "+r"(count) : "r"(p + 2) : "rax", "memory", "cc");
	__asm__ volatile("rep movsb" : "+D"(p), "+S"(x), "+c"(count) : : "memory");
	return old + count;
}

static NOINLINE void leave(const int *p)
{
	if (*p > 2)
		longjmp(back, *p);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct node *)a)->name, ((const struct node *)b)->name);
}

int main(void)
{
	unsigned long words[4] = { 5, 6, 7, 8 };
	struct node nodes[9];
	int sevenths[] = { 0, 7, 3, 9 };
	volatile int last = 0;

	for (int i = 0; i < 10; i++) {
		sevenths[0] = i;
		printf("%d ", choose(sevenths));
	}
	printf("\n%ld %ld\n", machine((const unsigned char *)"\1\2\2\3\2\0"), sum(4, 1, -2, 30, 400));
	for (int i = 0; i < 9; i++) {
		nodes[i] = made(31 - i * 3);
		nodes[i].next = i ? &nodes[i - 1] : NULL;
	}
	printf("%.6f\n", weigh(&nodes[8], 8));
	qsort(nodes, 9, sizeof(nodes[0]), compare);
	for (int i = 0; i < 9; i++)
		printf("%s/%d ", nodes[i].name, nodes[i].size);
	printf("%lu", assembly(words, 0));
	printf(" %lx %lx %lx\n", words[0], words[1], words[2]);
	local += atomic_fetch_add(&counter, 3) + atomic_exchange(&counter, 40);
	printf("%ld %ld\n", local, (long)counter);
	for (int i = 0; i < 5; i++) {
		int status = setjmp(back);

		if (status == 0)
			leave(&i);
		last += status;
	}
	printf("%d\n", last);
	return 3;
}
