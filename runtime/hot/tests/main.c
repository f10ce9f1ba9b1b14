// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The host half of test-hot: memory where dom0's would be, a %gs area a
 * thread, and the count. Prints "test-hot: N passed, M failed".
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <asm/prctl.h>
#include "test.h"

/* All of the kernel half's per-CPU variables (objcopy renames their section). */
extern char __start_percpu_area[], __stop_percpu_area[];

/* Kernel code keeps the stack aligned to 8, libc needs 16. */
#define FROM_KERNEL __attribute__((force_align_arg_pointer))

/* twin.c, if it is linked in. */
__attribute__((weak)) void test_thread_start(unsigned long gs_base);
__attribute__((weak)) void test_thread_stop(void);
__attribute__((weak)) void test_report(void);

static int failures;
static __thread unsigned long seed = 1;

FROM_KERNEL void test_fail(const char *file, int line, const char *text)
{
	if (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) < 40)
		fprintf(stderr, "%s:%d: %s\n", file, line, text);
}

FROM_KERNEL unsigned long test_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/*
 * A variable linked at address a is at gs:a, so the base is the copy's distance
 * from the section. The copy begins a page late: gs:0x28 stays unused.
 */
static void enter_cpu(unsigned int cpu)
{
	size_t size = __stop_percpu_area - __start_percpu_area;
	char *area = aligned_alloc(4096, (size + 4095) & ~4095ul);
	/*
	 * A difference of pointers would tell the compiler that nobody reads the copy: gcc 16
	 * then leaves it out.
	 */
	unsigned long base = (unsigned long)area - (unsigned long)__start_percpu_area;

	memcpy(area, __start_percpu_area, size);
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, base)) {
		perror("arch_prctl");
		exit(2);
	}
	if (test_thread_start)
		test_thread_start(base);
	seed = 0x9e3779b97f4a7c15ul * (cpu + 1);
	test_cpu_init(cpu);
}

struct job {
	void (*f)(unsigned int);
	unsigned int cpu;
};

static void *thread_main(void *argument)
{
	struct job *job = argument;

	enter_cpu(job->cpu);
	job->f(job->cpu);
	if (test_thread_stop)
		test_thread_stop();
	return NULL;
}

FROM_KERNEL void test_two_cpus(void (*f)(unsigned int))
{
	struct job jobs[2] = { { f, 0 }, { f, 1 } };
	pthread_t threads[2];
	int i;

	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, thread_main, &jobs[i]);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void map_at(unsigned long address, unsigned long size)
{
	void *at = mmap((void *)address, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != (void *)address) {
		perror("mmap");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0;
	const struct hot_test *test;

	setvbuf(stdout, NULL, _IOLBF, 0);
	map_at(TEST_DIRECT_MAP, TEST_RAM);
	map_at(TEST_VMEMMAP, (TEST_RAM + TEST_GUEST_RAM) / 4096 * 64);
	enter_cpu(0);
	for (test = hot_tests; test->name; test++) {
		if (argc > 1 && test != hot_tests && !strstr(test->name, argv[1]))
			continue;
		failures = 0;
		test->run();
		printf("%-4s %s\n", failures ? "FAIL" : "ok", test->name);
		if (failures)
			failed++;
		else
			passed++;
	}
	if (test_report)
		test_report();
	printf("test-hot: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
