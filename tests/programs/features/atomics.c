/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <stdatomic.h>
#include <stdbool.h>
#define T(name, type) static NOINLINE long name(_Atomic type *p, type v) { long s = 0; \
	s = s * 3 + (long)atomic_fetch_add(p, v); s = s * 3 + (long)atomic_fetch_sub(p, (type)(v * 2)); s = s * 3 + (long)atomic_fetch_or(p, v); s = s * 3 + (long)atomic_fetch_and(p, (type)~v); s = s * 3 + (long)atomic_fetch_xor(p, (type)(v * 5)); \
	s = s * 3 + (long)atomic_exchange(p, (type)(v + 1)); type e = v; s = s * 3 + atomic_compare_exchange_strong(p, &e, (type)7); s = s * 3 + (long)e; s = s * 3 + atomic_compare_exchange_strong(p, &e, (type)9); \
	*p += v; *p *= 3; *p <<= 1; *p /= 2; s += (*p)++ + --*p; s = s * 3 + (long)__atomic_nand_fetch((type *)p, v, __ATOMIC_SEQ_CST); s = s * 3 + (atomic_fetch_sub(p, 1) == 1) + (__atomic_add_fetch((type *)p, 1, 5) == 0) * 2 + ((type)(__atomic_or_fetch((type *)p, 0, 5)) > 0) * 4; \
	atomic_store(p, (type)(v ^ 3)); atomic_store_explicit(p + 1, v, memory_order_release); return s * 3 + (long)atomic_load(p); }
T(a1, signed char) T(a2, unsigned short) T(a4, int) T(a8, long) T(au8, unsigned long)
static NOINLINE int bits(_Atomic unsigned *p, int n) { int r = 0; r += (atomic_fetch_or(p, 1u << 5) >> 5) & 1; r += 2 * ((atomic_fetch_and(p, ~(1u << 5)) >> 5) & 1); r += 4 * !!(atomic_fetch_xor(p, 1u << n) & (1u << n)); r += 8 * !!(atomic_fetch_or(p, 1u << n) & (1u << n)); return r; }
static NOINLINE int flag(atomic_flag *f, _Atomic bool *b) { int r = atomic_flag_test_and_set(f); r += 2 * atomic_flag_test_and_set(f); atomic_flag_clear(f); r += 4 * atomic_exchange(b, true); *b |= r & 1; return r + 8 * *b; }
static NOINLINE double dbl(_Atomic double *d, _Atomic float *f) { atomic_store(d, atomic_load(d) + 1.5); atomic_store(f, atomic_load(f) * 2.0f); double e = atomic_exchange(d, 3.0); return e + *d + *f; }
static NOINLINE char *ptr(char *_Atomic *p) { atomic_fetch_add(p, 3); atomic_fetch_sub(p, 1); return atomic_fetch_add(p, 1); }
int main(void)
{
	_Atomic signed char b[2] = { 5 }; _Atomic unsigned short h[2] = { 6 }; _Atomic int w[2] = { 7 }; _Atomic long q[2] = { 8 }; _Atomic unsigned long u[2] = { 9 }; _Atomic unsigned m = 0x55; atomic_flag f = ATOMIC_FLAG_INIT; _Atomic bool z = 0; _Atomic double d = 1; _Atomic float g = 2; static char s[9]; char *_Atomic p = s;
	for (int i = 1; i < 5; i++) { SHOW(a1(HIDE(&b[0]), (signed char)i)); SHOW(a2(HIDE(&h[0]), (unsigned short)i)); SHOW(a4(HIDE(&w[0]), i)); SHOW(a8(HIDE(&q[0]), i)); SHOW(au8(HIDE(&u[0]), (unsigned long)i)); SHOW(bits(HIDE(&m), i * 7)); SHOW(flag(HIDE(&f), HIDE(&z))); SHOW(dbl(HIDE(&d), HIDE(&g))); }
	SHOW((long)(ptr(HIDE(&p)) - s));
	return 0;
}
