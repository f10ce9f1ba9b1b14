/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
static NOINLINE long ahead(const long *p, int n, long flags) { long s = 0; for (int i = 0; i < n; i++) { __builtin_prefetch(p + i + 1000000, 0, 3); __builtin_prefetch(p - i * 4096, 1, 1); __builtin_prefetch((void *)(flags + i), 0, 0); int c = p[i] > flags; __asm__ volatile("prefetcht1 (%0)" : : "r"(s)); s = s * 3 + p[i] + c; } return s; }
static NOINLINE int live(const long *p, long a, long b) { int r; __asm__ volatile("cmp %2, %3\n\tprefetcht0 64(%1)\n\tsetl %b0\n\tmovzbl %b0, %0" : "=&q"(r) : "r"(p), "r"(a), "r"(b) : "cc"); return r; }
int main(void) { long p[30]; for (int i = 0; i < 30; i++) p[i] = i * 7919 % 31; SHOW(ahead(HIDE(&p[0]), 30, 15)); SHOW(live(HIDE(&p[0]), 3, 2)); SHOW(live((long *)HIDE(8L), 2, 3)); return 0; }
