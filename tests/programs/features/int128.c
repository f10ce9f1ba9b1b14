/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <immintrin.h>
typedef __int128 i; typedef unsigned __int128 u;
static NOINLINE void ops(u *r, const u *a, const u *b, const int *s) { r[0] = *a + *b; r[1] = *a - *b; r[2] = *a * *b; r[3] = *a / (*b | 1); r[4] = *a % (*b | 1); r[5] = *a << *s; r[6] = *a >> *s; r[7] = (u)((i)*a >> *s); r[8] = -*a; r[9] = ~*b ^ *a; }
static NOINLINE int less(const i *a, const i *b) { return (*a < *b) + 2 * (*a == *b) + 4 * ((u)*a > (u)*b) + 8 * (*a <= *b); }
static NOINLINE void acc(u *s, const uint64_t *p, int n) { for (int k = 0; k < n; k++) *s += (u)p[k] * p[n - 1 - k]; }
static NOINLINE uint64_t carry(uint64_t *r, const uint64_t *a, const uint64_t *b, int n) { unsigned char c = 0; for (int k = 0; k < n; k++) c = _addcarry_u64(c, a[k], b[k], (unsigned long long *)&r[k]); return c; }
static NOINLINE int over(long *r, const long *a, const long *b, int *s, const int *t) { return __builtin_add_overflow(*a, *b, r) + 2 * __builtin_mul_overflow(*a, *b, r + 1) + 4 * __builtin_sub_overflow(*a, *b, r + 2) + 8 * __builtin_add_overflow(*s, *t, s) + 16 * __builtin_mul_overflow(*s, *t, (short *)s); }
int main(void)
{
	u a = ((u)0x123456789abcdef0 << 64) | 0xfedcba9876543210, b = ((u)0x1111 << 64) | 0x2222222233333333, r[10], s = 0;
	uint64_t x[8], y[8], z[8];
	for (int k = 0; k < 128; k += 9) { ops(HIDE(&r[0]), HIDE(&a), HIDE(&b), HIDE(&k)); mix(r, sizeof r); SHOW(k); a = a * 5 + b; b ^= r[2]; SHOW(less((i *)HIDE(&a), (i *)HIDE(&b))); }
	for (int k = 0; k < 8; k++) { x[k] = 0xffffffff00000000u * (k + 1) + k; y[k] = 0x87654321fedcba98u ^ (x[k] * 3); }
	acc(HIDE(&s), HIDE(&x[0]), 8);
	SHOW(s);
	SHOW(carry(HIDE(&z[0]), HIDE(&x[0]), HIDE(&y[0]), 8));
	mix(z, sizeof z);
	for (long k = 1; k; k *= -7) { long q[3]; int m = (int)k, n = (int)(k >> 9); if (k > 1L << 60 || k < -(1L << 60)) break; SHOW(over(HIDE(&q[0]), HIDE(&k), (long *)HIDE(&x[1]), HIDE(&m), HIDE(&n))); mix(q, sizeof q); }
	return 0;
}
