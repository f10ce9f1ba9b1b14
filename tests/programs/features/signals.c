/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -pthread */
#define _GNU_SOURCE
#include "feature.h"
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>
static volatile long ticks;
static long *shared;
static void tick(int s) { (void)s; ticks++; for (int i = 0; i < 40; i++) shared[i] += i; }
/* Interrupted everywhere, with all registers in use and flags live; the same each round. */
static NOINLINE unsigned long work(unsigned long *p, const unsigned *q, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	unsigned long e = a ^ b, f = c ^ d, g = a + c, h = b + d, k = a * 3, l = b * 5;
	for (int i = 0; i < 64; i++) {
		a += p[i] ^ b; b = (b << 7 | b >> 57) + q[i]; c ^= p[63 - i] + (a < b); d -= q[i ^ 5] - c; e += p[i] & d; f ^= e + (p[i ^ 1] > f); g = g * 5 + q[i]; h ^= g >> 3; k += p[i ^ 9] * h; l ^= k + q[i ^ 3];
		p[i] = a ^ d ^ l; 
	}
	return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ k ^ l;
}
static void info(int s, siginfo_t *i, void *u) { ucontext_t *c = u; shared[50] += s + (i->si_code == SI_TKILL) + (c->uc_mcontext.gregs[REG_RIP] != 0); }
int main(void)
{
	static long s[64]; static unsigned long p[64], p0[64]; static unsigned q[64]; static char alt[65536]; long bad = 0;
	shared = s;
	for (int i = 0; i < 64; i++) { p0[i] = (unsigned long)i * 0x9e3779b97f4a7c15u; q[i] = (unsigned)i * 77777; }
	stack_t st = { .ss_sp = alt, .ss_size = sizeof alt };
	sigaltstack(&st, 0);
	struct sigaction sa = { .sa_handler = tick, .sa_flags = SA_ONSTACK | SA_RESTART }, sb = { .sa_sigaction = info, .sa_flags = SA_SIGINFO };
	sigaction(SIGALRM, &sa, 0); sigaction(SIGUSR2, &sb, 0);
	struct itimerval t = { { 0, 300 }, { 0, 300 } };
	memcpy(p, p0, sizeof p); unsigned long first = work(HIDE(&p[0]), HIDE(&q[0]), 1, 2, 3, 4);
	setitimer(ITIMER_REAL, &t, 0);
	for (int n = 0; ticks < 300 && n < 100000000; n++) { memcpy(p, p0, sizeof p); if (work(HIDE(&p[0]), HIDE(&q[0]), 1, 2, 3, 4) != first) bad++; if (n == 777) raise(SIGUSR2); }
	t = (struct itimerval){ 0 }; setitimer(ITIMER_REAL, &t, 0);
	SHOW(first); SHOW(bad); SHOW(shared[50] > 10); SHOW(s[3] == 3 * ticks);
	return 0;
}
