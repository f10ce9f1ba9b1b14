/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
static unsigned long map[200];
#define B(op, w, t) static NOINLINE int op##w(void *p, t n) { int c; __asm__ volatile(#op #w " %2, %1" : "=@ccc"(c), "+m"(*(t *)p) : "r"(n) : "memory"); return c; }
B(bt, q, long) B(bts, q, long) B(btr, q, long) B(btc, q, long) B(bt, l, int) B(bts, l, int) B(btc, w, short)
static NOINLINE int locked(void *p, long n) { int c; __asm__ volatile("lock btsq %2, %1" : "=@ccc"(c), "+m"(*(long *)p) : "r"(n) : "memory"); return c; }
static NOINLINE int fixed(long *p) { int c, d; __asm__ volatile("btsq $35, %2\n\tsetc %b0\n\tmovzbl %b0, %0\n\tbtrl $3, %2\n\tsbb %1, %1" : "=&q"(c), "=&r"(d), "+m"(*p) : : "cc"); return c + 2 * d; }
int main(void) { long s = 0; char *p = (char *)HIDE(&map[100]); for (int i = 0; i < 200; i++) map[i] = (unsigned long)i * 0x9e3779b97f4a7c15u; for (long n = -6000; n < 6000; n += 173) { s = s * 3 + btq(p, n) + btsq(p + 3, n + 1) * 2 + btrq(p, n * 3 / 4 + 2) * 4 + btcq(p - 1, -n) * 8 + btl(p, (int)n) * 16 + btsl(p + 2, (int)-n) * 32 + btcw(p, (short)n) * 64 + locked(p, n / 2) * 128 + fixed((long *)p); SHOW(s); } mix(map, sizeof map); SHOW(s); return 0; }
