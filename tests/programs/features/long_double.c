/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <math.h>
static NOINLINE void poly(long double *r, const long double *a, int n, const float *f, const double *d, const short *h, const long *l)
{
	long double s = 0;
	for (int i = 0; i < n; i++)
		s = s * a[i] + f[i] - d[i] * h[i] + l[i] / (a[i] + 1);
	*r = s;
}
static NOINLINE long conv(const long double *a, int *i, long *l, short *h, unsigned long *u, float *f, double *d) { *i = (int)*a; *l = (long)*a; *h = (short)*a; *u = (unsigned long)*a; *f = (float)*a; *d = (double)*a; return *i + *l + *h; }
static NOINLINE int cmp(const long double *a, const long double *b) { return (*a < *b) * 1 + (*a > *b) * 2 + (*a == *b) * 4 + (*a != *b) * 8 + isunordered(*a, *b) * 16 + (*a <= *b) * 32; }
static NOINLINE long double pick(const long double *a, const long double *b, const int *c) { return *c > 3 ? *a : *b; }
static NOINLINE void fns(long double *a) { a[0] = sqrtl(a[0]); a[1] = fabsl(a[1]); a[2] = floorl(a[2] * 1.5L); a[3] = fmodl(a[3], a[1]); a[0] += ldexpl(a[1], 3) + rintl(a[2]); }
int main(void)
{
	long double a[5] = { 1.5L, -2.25L, 3.125L, 4.0625L, 5.03125L }, r, nan = NAN;
	float f[5] = { 1, 2, 3, 4, 5.5f }; double d[5] = { .1, .2, .3, .4, .5 }; short h[5] = { 1, -1, 2, -2, 3 }; long l[5] = { 5, 4, 3, 2, 1 };
	int i = 0; unsigned long u = 0;
	poly(HIDE(&r), HIDE(&a[0]), 5, HIDE(&f[0]), HIDE(&d[0]), HIDE(&h[0]), HIDE(&l[0]));
	printf("%.20Lg\n", r);
	for (int k = 0; k < 5; k++) { SHOW(conv(HIDE(&a[k]), HIDE(&i), HIDE(&l[0]), HIDE(&h[0]), HIDE(&u), HIDE(&f[0]), HIDE(&d[0]))); printf("%lu %g %g\n", u, f[0], d[0]); }
	for (int k = 0; k < 4; k++) SHOW(cmp(HIDE(&a[k]), HIDE(&a[3 - k])));
	SHOW(cmp(&a[0], HIDE(&nan)));
	for (int k = 2; k < 6; k++) printf("%Lg\n", pick(HIDE(&a[0]), HIDE(&a[1]), HIDE(&k)));
	fns(HIDE(&a[0]));
	printf("%.20Lg %.20Lg %.20Lg %.20Lg\n", a[0], a[1], a[2], a[3]);
	return 0;
}
