/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Instructions that trap, and a handler that goes on behind them: all registers are as they were. */
#define _GNU_SOURCE
#include "feature.h"
#include <signal.h>
#include <ucontext.h>
static volatile int traps;
static void skip(int s, siginfo_t *i, void *u) { (void)s; (void)i; greg_t *ip = &((ucontext_t *)u)->uc_mcontext.gregs[REG_RIP]; *ip += ((unsigned char *)*ip)[1] == 0x0b ? 2 : 3; traps++; }
#define TRAPS(name, trap) \
	static NOINLINE long name(int *p, long a, long b, long c, long d) { long x = *p; __asm__ volatile(trap : "+r"(x)); return x + a * 3 + b * 5 + c * 7 + d * 11 + p[1]; } \
	static NOINLINE long name##_twice(int *p, long a, long b) { long x = *p; if (a > b) { p[1] += 3; __asm__ volatile(trap : "+r"(x)); } return x + p[1] * a + b; }
TRAPS(two, "ud2")
TRAPS(one, "ud1 %%eax, %%ecx")
TRAPS(none, ".byte 0x0f, 0xff, 0xc8")
int main(void)
{
	struct sigaction sa = { .sa_sigaction = skip, .sa_flags = SA_SIGINFO };
	int v[2] = { 5, 6 };
	sigaction(SIGILL, &sa, 0);
	SHOW(two(HIDE(v), 100, 200, 300, 400)); SHOW(two_twice(HIDE(v), 4, 3)); SHOW(two_twice(HIDE(v), 3, 4));
	SHOW(one(HIDE(v), 100, 200, 300, 400)); SHOW(one_twice(HIDE(v), 4, 3)); SHOW(one_twice(HIDE(v), 3, 4));
	SHOW(none(HIDE(v), 100, 200, 300, 400)); SHOW(none_twice(HIDE(v), 4, 3)); SHOW(none_twice(HIDE(v), 3, 4));
	SHOW(traps);
	return 0;
}
