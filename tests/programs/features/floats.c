/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <math.h>
#ifdef __clang__
typedef __float128 Q128;
#else
typedef _Float128 Q128;
#endif
static NOINLINE void conv(double *d, float *f, const int *i, const unsigned *u, const long *l, const unsigned long *m, const signed char *c, const unsigned short *h) { d[0] = *i; d[1] = *u; d[2] = (double)*l; d[3] = (double)*m; d[4] = *c; d[5] = *h; f[0] = (float)*i; f[1] = (float)*u; f[2] = (float)*l; f[3] = (float)*m; f[4] = (float)d[0] + *c; d[6] = f[3] * (double)f[4]; }
static NOINLINE long back(const double *d, const float *f) { return (long)d[0] + (int)d[1] + (long)(unsigned)(d[2] * 0) + (long)(unsigned long)d[5] + (int)f[0] + (long)f[1] + (signed char)d[4] + (unsigned short)f[4]; }
static NOINLINE int cmps(const double *a, const double *b, const float *c, const float *d) { return (*a < *b) + 2 * (*a <= *b) + 4 * (*a == *b) + 8 * (*a != *b) + 16 * (*c > *d) + 32 * (*c >= *d) + 64 * !(*a >= *b) + 128 * isunordered(*a, *b) + 256 * (*a < *c) + 512 * (*b == *d); }
static NOINLINE double choose(const double *a, const double *b, const int *k) { double x = *k > 2 ? *a : *b; x = x > *b ? x : *b; x = fmin(x, *a + 1); return *k & 1 ? -x : fabs(x) + sqrt(*b * *b) + copysign(*a, *b); }
static NOINLINE float dot(const float *a, const float *b, int n, int s) { float r = 0; for (int i = 0; i < n; i++) r += a[i * s] * b[i]; return r; }
static NOINLINE Q128 quad(const Q128 *a, const long *b, const double *c) { return a[0] * a[1] / (*b + 1) - *c; }
int main(void) { double d[8] = { 0 }, nan = NAN; float f[9] = { 0 }; int i = -7; unsigned u = 4000000000u; long l = -1L << 55; unsigned long m = 0xfffffffffffffc00u; signed char c = -9; unsigned short h = 65000; conv(HIDE(&d[0]), HIDE(&f[0]), HIDE(&i), HIDE(&u), HIDE(&l), HIDE(&m), HIDE(&c), HIDE(&h)); mix(d, sizeof d); mix(f, sizeof f); SHOW(back(HIDE(&d[0]), HIDE(&f[0]))); for (int k = 0; k < 6; k++) { SHOW(cmps(HIDE(&d[k]), HIDE(&d[5 - k]), HIDE(&f[k & 3]), HIDE(&f[3 - (k & 3)]))); SHOW(choose(HIDE(&d[k]), HIDE(&d[5 - k]), HIDE(&k))); } SHOW(cmps(&nan, HIDE(&d[0]), &f[0], HIDE(&f[1]))); float a[64], b[64]; for (int k = 0; k < 64; k++) { a[k] = (float)k * .5f; b[k] = 3 - (float)k; } SHOW(dot(HIDE(&a[0]), HIDE(&b[0]), 60, 1)); SHOW(dot(HIDE(&a[0]), HIDE(&b[0]), 20, 3)); Q128 q[2] = { 1.5, 2.25 }; SHOW((double)quad(HIDE(&q[0]), HIDE(&l), HIDE(&d[0]))); return 0; }
