/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -fstack-clash-protection -fstack-protector-all */
#include "feature.h"
#include <alloca.h>
#define A(n) static NOINLINE long aligned##n(long *p, int k) { long x[16] __attribute__((aligned(n))); char *v = k ? alloca((size_t)k * 3) : (char *)x; for (int i = 0; i < 16; i++) HIDE(&x[0])[i] = p[i & 3] * i; if (k) v[0] = 5; v[0] ^= 1; long s = (long)((uintptr_t)HIDE(&x[0]) & (n - 1)); for (int i = 0; i < 16; i++) s = s * 3 + x[i]; p[1] = s; return s + v[0]; }
A(16) A(32) A(64) A(128) A(256) A(1024) A(4096)
static NOINLINE long huge(long *p, int n) { volatile char x[70000]; volatile long y[9000]; for (int i = 0; i < 70000; i += 333) x[i] = (char)(i + *p); for (int i = 0; i < 9000; i += 77) y[i] = x[i] * p[1]; long s = n ? huge(p, n - 1) : 0; for (int i = 0; i < 9000; i += 77) s = s * 3 + y[i]; return s; }
static NOINLINE long args(long a, long b, long c, long d, long e, long f, long *g, char h, short i, int j, long k, double l, long *m) { *g += a; *m ^= b; g[1] = (long)&h & 7; h += (char)i; return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + *g + h + i + j + k + (long)l + *m; }
static long ack(long m, long n, long *c) { ++*c; return m == 0 ? n + 1 : n == 0 ? ack(m - 1, 1, c) : ack(m - 1, ack(m, n - 1, c), c); }
static NOINLINE long red(const long *p) { long a[12]; for (int i = 0; i < 12; i++) a[i] = p[i & 3] ^ i; long *q = HIDE(&a[0]); q[3] += p[1]; q[p[2] & 7] ^= q[5]; return a[0] + a[3] * 3 + a[7] * 5 + a[(p[3] & 3) + 4]; }
int main(void) { long p[4] = { 3, 5, 7, 11 }, c = 0; for (int k = 0; k < 3; k++) { SHOW(aligned16(HIDE(&p[0]), k)); SHOW(aligned32(HIDE(&p[0]), k)); SHOW(aligned64(HIDE(&p[0]), k)); SHOW(aligned128(HIDE(&p[0]), k)); SHOW(aligned256(HIDE(&p[0]), k)); SHOW(aligned1024(HIDE(&p[0]), k)); SHOW(aligned4096(HIDE(&p[0]), k)); } SHOW(huge(HIDE(&p[0]), 5)); p[1] = 0; SHOW(args(1, 2, 3, 4, 5, 6, HIDE(&p[0]), 8, 9, 10, 11, 12.5, HIDE(&p[2]))); SHOW(ack(2, 30, HIDE(&c))); SHOW(c); SHOW(red(HIDE(&p[0]))); return 0; }
