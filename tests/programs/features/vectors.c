/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#define V(t, n) typedef t v##t##n __attribute__((vector_size(n), aligned(1), may_alias)); \
static NOINLINE void o##t##n(v##t##n *r, const v##t##n *a, const v##t##n *b) { r[0] = *a + *b; r[1] = *a - *b * 3; r[2] = (v##t##n)(*a > *b); r[3] = -*a; r[0] += r[2]; }
#define VI(t, n) V(t, n) static NOINLINE t s##t##n(v##t##n *r, const v##t##n *a, const v##t##n *m, int i) { r[0] = (*a << 1) ^ (*m >> 2) ^ (*a & ~*m); (*r)[i] = (*a)[i ^ 1] + (*m)[0]; t x = 0; for (unsigned k = 0; k < n / sizeof(t); k++) x = (t)(x * 3 + (*r)[k]); return x; }
typedef signed char b; typedef unsigned short h; typedef int w; typedef long q; typedef float f; typedef double d;
VI(b, 8) VI(b, 16) VI(b, 32) VI(h, 16) VI(h, 32) VI(w, 8) VI(w, 16) VI(w, 32) VI(w, 64) VI(q, 16) VI(q, 32) VI(q, 64) V(f, 8) V(f, 16) V(f, 32) V(f, 64) V(d, 16) V(d, 32)
typedef int wi __attribute__((vector_size(16)));
static NOINLINE wi byvalue(wi a, const wi *b, wi c) { return a * *b - c; }
#if !defined __clang__ || __clang_major__ >= 12
static NOINLINE wi shuffled(const wi *a, const wi *b) { return __builtin_shufflevector(*a, *b, 0, 5, 2, 7) + __builtin_shufflevector(*b, *b, 3, 2, 1, 0); }
#endif
static unsigned char x[512], y[512], z[512];
int main(void)
{
	for (int i = 0; i < 512; i++) { x[i] = (unsigned char)(i * 7 + 1); y[i] = (unsigned char)(i * i + 3); }
#define O(t, n) o##t##n((void *)HIDE(z + 3), (void *)HIDE(x + 1), (void *)HIDE(y + 5)); mix(z, sizeof z); SHOW(n);
#define OI(t, n) O(t, n) SHOW(s##t##n((void *)HIDE(z + 9), (void *)HIDE(x + 2), (void *)HIDE(y + 1), 3 & (n / (int)sizeof(t) - 1)));
	OI(b, 8) OI(b, 16) OI(b, 32) OI(h, 16) OI(h, 32) OI(w, 8) OI(w, 16) OI(w, 32) OI(w, 64) OI(q, 16) OI(q, 32) OI(q, 64)
	wi a = { 1, 2, 3, 4 }, c = { 5, 6, 7, 8 };
	a = byvalue(a, HIDE(&c), c); mix(&a, 16); SHOW(a[0]);
#if !defined __clang__ || __clang_major__ >= 12
	a = shuffled(HIDE(&a), HIDE(&c)); mix(&a, 16); SHOW(a[3]);
#endif
	for (int i = 0; i < 500; i += 4) { float v = (float)i * 1.25f; memcpy(x + i, &v, 4); v = 100 - v; memcpy(y + i, &v, 4); }
	of8((void *)HIDE(z + 3), (void *)HIDE(x + 4), (void *)HIDE(y + 8)); of16((void *)HIDE(z + 33), (void *)HIDE(x + 4), (void *)HIDE(y + 8)); of32((void *)HIDE(z + 103), (void *)HIDE(x + 4), (void *)HIDE(y + 8)); of64((void *)HIDE(z + 251), (void *)HIDE(x + 4), (void *)HIDE(y + 8)); mix(z, sizeof z); SHOW(z[5]);
	for (int i = 0; i < 500; i += 8) { double v = i * 1.25; memcpy(x + i, &v, 8); v = 100 - v; memcpy(y + i, &v, 8); }
	od16((void *)HIDE(z + 3), (void *)HIDE(x + 8), (void *)HIDE(y + 16)); od32((void *)HIDE(z + 133), (void *)HIDE(x + 8), (void *)HIDE(y + 16)); mix(z, sizeof z); SHOW(z[5]);
	return 0;
}
