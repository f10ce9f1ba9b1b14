/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <setjmp.h>
#include <signal.h>
static jmp_buf outer, inner;
static sigjmp_buf masked;
static NOINLINE void deep(int n, int *p) { if (n == 0) { *p += 3; longjmp(*p & 1 ? outer : inner, n + 5); } deep(n - 1, p + 0); (*p)++; }
static NOINLINE long both(int *p)
{
	volatile long s = 0;
	register long kept = p[1] * 3;
	int v;
	if ((v = setjmp(outer)) == 0) {
		if ((v = setjmp(inner)) == 0) {
			deep(7, p);
		} else {
			s += v * 10;
			deep(3, p);
		}
	} else {
		s += v * 100;
	}
	return s + kept + *p;
}
static void handler(int s) { siglongjmp(masked, s); }
static NOINLINE int signalled(int *count)
{
	int s = sigsetjmp(masked, 1);
	if (s) { *count += s; if (*count > 100) return *count; }
	raise(SIGUSR1);
	return -1;
}
static void *back[5];
static NOINLINE void leap(int *p) { if (p[0]++ < 4) __builtin_longjmp(back, 1); }
static NOINLINE int leapt(int *p)
{
	volatile int turns = 0;
	__builtin_setjmp(back);
	turns++;
	leap(p);
	return turns * 10 + p[0];
}
int main(void)
{
	int p[2] = { 1, 11 }, q[2] = { 0, 12 }, count = 0, z[1] = { 0 };
	SHOW(both(HIDE(&p[0])));
	SHOW(both(HIDE(&q[0])));
	signal(SIGUSR1, handler);
	SHOW(signalled(HIDE(&count)));
	SHOW(leapt(HIDE(&z[0])));
	return 0;
}
