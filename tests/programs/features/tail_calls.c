/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
typedef long (*op)(long *, long, long, long, long, long, long, long);
struct table { long pad; op f[3]; };
static struct table *t;
static NOINLINE long odd(long *p, long n);
static NOINLINE long even(long *p, long n) { p[0] += n; return n == 0 ? p[0] : odd(p, n - 1); }
static NOINLINE long odd(long *p, long n) { p[1] ^= n; return n == 0 ? p[1] : even(p, n - 1); }
static NOINLINE long a(long *p, long n, long x, long y, long z, long v, long w, long u) { p[0] += x + u; return n <= 0 ? p[0] + w : t->f[1](p, n - 1, y, z, v, w, u, x); }
static NOINLINE long b(long *p, long n, long x, long y, long z, long v, long w, long u) { p[1] -= y * u; return n <= 0 ? p[1] + v : t->f[(p[0] & 1) + 1](p, n - 1, u, x, y, z, v, w); }
static NOINLINE long c(long *p, long n, long x, long y, long z, long v, long w, long u) { p[2] ^= z + w; return n <= 0 ? p[2] + x : t->f[p[2] & 1](p, n - 1, w, u, x, y, z, v); }
static NOINLINE long through(struct table *const *q, long *p) { return (*q)->f[*p & 1](p, 50, 1, 2, 3, 4, 5, 6); }
int main(void)
{
	static struct table own = { 0, { a, b, c } };
	long p[3] = { 1, 2, 3 };
	t = &own;
	SHOW(even(HIDE(&p[0]), 1000));
	SHOW(a(HIDE(&p[0]), 100, 1, 2, 3, 4, 5, 6));
	SHOW(through(&t, HIDE(&p[0])));
	return 0;
}
