/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A variable that has a register for itself, as runtimes of languages have, and a signal's handler
   that reads it. */
/* compilers: gcc */
#include "feature.h"
#include <signal.h>
#include <sys/time.h>

register long self __asm__("r15");
static volatile long ticks, wrong;

static void tick(int s)
{
	(void)s;
	ticks++;
	if (self != 0x5e1f)
		wrong++;
}

NOINLINE static long work(long *p, long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++) {
		sum += p[i] * i;
		p[i] ^= sum;
	}
	return sum;
}

int main(void)
{
	static long p[1000];
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	long sum = 0;

	self = 0x5e1f;
	signal(SIGPROF, tick);
	setitimer(ITIMER_PROF, &timer, NULL);
	while (ticks < 50)
		sum += work(HIDE(&p[0]), 1000);
	SHOW(sum != 1);
	SHOW(wrong);
	return 0;
}
