/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Between the two halves of test-hot: the kernel half (kernel.c, driver.c,
 * common.c and the tests, compiled by kbuild against the kernel's headers, as
 * hot.o is) and the host half (main.c, with libc). Plain types only.
 */
#ifndef HOT_TEST_H
#define HOT_TEST_H

#define TEST_RAM		(32ul << 20)	/* dom0's, in the direct map */
#define TEST_GUEST_RAM		(16ul << 20)	/* machine frames above, mapped nowhere */
#define TEST_DIRECT_MAP		0x100000000000ul
#define TEST_VMEMMAP		0x200000000000ul

/* common.c: a table ending with an empty name. */
struct hot_test {
	const char *name;
	void (*run)(void);
};
extern const struct hot_test hot_tests[];

/* main.c, called by the kernel half. */
void test_fail(const char *file, int line, const char *text);
unsigned long test_random(void);	/* of this thread, reproducible */
/* Runs f(0) and f(1) at once on threads of their own, CPUs 0 and 1. */
void test_two_cpus(void (*f)(unsigned int cpu));

/* kernel.c, called by main.c: gives this thread's %gs area its identity. */
void test_cpu_init(unsigned int cpu);

#define CHECK(condition)						\
	do {								\
		if (!(condition))					\
			test_fail(__FILE__, __LINE__, #condition);	\
	} while (0)

#endif /* HOT_TEST_H */
