/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#define _GNU_SOURCE
#include "feature.h"
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
static jmp_buf out; static int traps;
__attribute__((cold, noreturn, noinline)) static void fail(const int *p) { longjmp(out, p[0] + 1); }
__attribute__((cold, noinline)) static void odd(int *p) { p[1] += 5; }
static NOINLINE long work(int *p, int n) { long s = 0; for (int i = 0; i < n; i++) { if (__builtin_expect(p[i] == 99, 0)) { odd(p); s += p[1]; if (p[2] == 7) fail(p); } if (__builtin_expect(p[i] < -50, 0)) { for (int k = 0; k < p[3]; k++) s ^= p[k] * k; odd(p + 1); continue; } s = s * 3 + p[i]; } return s; }
static NOINLINE int sure(const int *p) { switch (p[0]) { case 1: return p[1]; case 2: return p[2] * 2; case 3: return p[3]; default: __builtin_unreachable(); } }
static void trapped(int s, siginfo_t *i, void *u) { (void)s; (void)i; ((ucontext_t *)u)->uc_mcontext.gregs[REG_RIP] += 2; traps++; }
static NOINLINE long trap(const long *p) { long a = p[0]; if (p[1] > 3) __asm__ volatile("ud2"); return a + p[2] + traps; }
int main(void) { int p[8] = { 1, 99, 3, 4, -60, 5, 99, 7 }, q[4] = { 2, 5, 6, 7 }; long l[3] = { 1, 5, 9 }; SHOW(work(HIDE(&p[0]), 8)); p[2] = 7; int v = setjmp(out); if (!v) { p[1] = 99; SHOW(work(HIDE(&p[0]), 8)); } SHOW(v); for (q[0] = 1; q[0] < 4; q[0]++) SHOW(sure(HIDE(&q[0]))); struct sigaction sa = { .sa_sigaction = trapped, .sa_flags = SA_SIGINFO }; sigaction(SIGILL, &sa, 0); SHOW(trap(HIDE(&l[0]))); return 0; }
