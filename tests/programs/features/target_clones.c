/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* compilers: gcc */
#include "feature.h"
__attribute__((target_clones("avx2", "sse4.2", "default"))) NOINLINE long sum(const int *p, int n) { long s = 0; for (int i = 0; i < n; i++) s += p[i] * 3 + (p[i] >> 2); return s; }
__attribute__((target("avx2"))) static NOINLINE void wide(int *p, int n) { for (int i = 0; i < n; i++) p[i] = p[i] * p[i] + 1; }
__attribute__((target("general-regs-only"))) static NOINLINE long narrow(const long *p) { return p[0] + p[1]; }
__attribute__((optimize("O3", "unroll-loops"))) static NOINLINE long fast(const short *p, int n) { long s = 0; for (int i = 0; i < n; i++) s = s * 3 ^ p[i]; return s; }
int main(void) { int p[100]; for (int i = 0; i < 100; i++) p[i] = i * 7 - 50; wide(HIDE(&p[0]), 99); SHOW(sum(HIDE(&p[0]), 97)); SHOW(narrow((long *)HIDE(&p[0]))); SHOW(fast((short *)HIDE(&p[1]), 150)); return 0; }
