/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <complex.h>
static NOINLINE void ops(double complex *r, const double complex *a, const float complex *b, const long double complex *c) { r[0] = *a * *b; r[1] = *a / *b; r[2] = (double complex)(*c * *a); r[3] = conj(*a) + cimag(*b) - I * creal(*a); r[4] = *a == *b; }
static NOINLINE float complex sum(const float complex *p, int n) { float complex s = 0; for (int i = 0; i < n; i++) s = s * p[i] + 1; return s; }
static NOINLINE long double complex lsum(const long double complex *p, int n) { long double complex s = 0; for (int i = 0; i < n; i++) s = s * p[i] / 2 + 1; return s; }
static NOINLINE int complex ints(const int complex *p) { return *p * *p + 3; }
int main(void)
{
	double complex a = 1.5 + 2.5 * I, r[5]; float complex b[3] = { 3 - 1 * I, 2 + I, .5f }; long double complex c[3] = { .25L + 4 * I, 1, 2 * I }; int complex k = 3 + 4i, m;
	ops(HIDE(&r[0]), HIDE(&a), HIDE(&b[0]), HIDE(&c[0]));
	for (int i = 0; i < 5; i++) printf("%g %g\n", creal(r[i]), cimag(r[i]));
	float complex s = sum(HIDE(&b[0]), 3); long double complex l = lsum(HIDE(&c[0]), 3);
	m = ints(HIDE(&k));
	printf("%g %g %Lg %Lg %d %d\n", crealf(s), cimagf(s), creall(l), cimagl(l), __real__ m, __imag__ m);
	printf("%g %g\n", creal(csqrt(a)), cabs(a));
	return 0;
}
