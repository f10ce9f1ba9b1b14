/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#define S(n) struct s##n { unsigned char b[n]; }; \
static NOINLINE struct s##n turn##n(struct s##n x, const struct s##n *y, int k) { struct s##n r; for (int i = 0; i < n; i++) r.b[i] = (unsigned char)(x.b[n - 1 - i] + y->b[i] * k); return r; } \
static NOINLINE long use##n(struct s##n *p) { struct s##n r = turn##n(p[0], p + 1, 3); p[1] = turn##n(r, p, 5); *p = r; mix(p, 2 * sizeof *p); return p->b[0]; }
S(1) S(2) S(3) S(4) S(5) S(7) S(8) S(9) S(12) S(15) S(16) S(17) S(23) S(24) S(31) S(32) S(33) S(48) S(63) S(64) S(65) S(80) S(127) S(128) S(200) S(513)
struct fl { float a; int b; }; struct ff { float a, b, c; }; struct dl { double d; long l; }; struct ld { long double x; }; struct id { int i; double d[3]; };
static NOINLINE struct fl f1(struct fl a, struct ff b, struct dl c) { return (struct fl){ a.a + b.c, a.b + (int)c.l }; }
static NOINLINE struct ff f2(const struct ff *a, struct fl b) { return (struct ff){ a->c, a->a * b.a, a->b + (float)b.b }; }
static NOINLINE struct dl f3(struct dl a, const struct ff *b) { return (struct dl){ a.d * b->a, a.l - (long)b->b }; }
static NOINLINE struct ld f4(const struct ld *a, struct id b) { return (struct ld){ a->x * b.d[2] + b.i }; }
static NOINLINE struct id f5(struct id a, struct ld *b) { b->x += a.i; a.d[1] += (double)b->x; return a; }
int main(void)
{
	static unsigned char buf[2048];
#define U(n) for (int i = 0; i < 1100; i++) buf[i] = (unsigned char)(i * 7 + n); SHOW(use##n((struct s##n *)HIDE(&buf[1])));
	U(1) U(2) U(3) U(4) U(5) U(7) U(8) U(9) U(12) U(15) U(16) U(17) U(23) U(24) U(31) U(32) U(33) U(48) U(63) U(64) U(65) U(80) U(127) U(128) U(200) U(513)
	struct fl a = { 1.5f, 2 }; struct ff b = { 2.5f, 3.5f, 4.5f }; struct dl c = { 5.5, 6 }; struct ld d = { 7.25L }; struct id e = { 8, { 9, 10, 11 } };
	for (int i = 0; i < 3; i++) { a = f1(a, b, c); b = f2(HIDE(&b), a); c = f3(c, HIDE(&b)); d = f4(HIDE(&d), e); e = f5(e, HIDE(&d)); }
	printf("%g %d %g %g %g %g %ld %Lg %d %g\n", a.a, a.b, b.a, b.b, b.c, c.d, c.l, d.x, e.i, e.d[1]);
	return 0;
}
