/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <fenv.h>
static NOINLINE double rounded(const double *p, unsigned short *cw) { unsigned short old; double r; __asm__ volatile("fnstcw %0" : "=m"(*cw)); old = *cw; unsigned short up = (unsigned short)(old | 0xc00); __asm__ volatile("fldcw %2\n\tfldl %1\n\tfrndint\n\tfstpl %0\n\tfldcw %3" : "=m"(r) : "m"(*p), "m"(*HIDE(&up)), "m"(*HIDE(&old))); return r; }
static NOINLINE void trig(double *s, double *c, const double *x) { __asm__("fldl %2\n\tfsincos\n\tfstpl %1\n\tfstpl %0" : "=m"(*s), "=m"(*c) : "m"(*x)); }
static NOINLINE int compared(const double *a, const float *b) { unsigned short sw; __asm__("fldl %1\n\tfcomps %2\n\tfnstsw %0" : "=a"(sw) : "m"(*a), "m"(*b)); return sw & 0x4500; }
static NOINLINE long bcd(const long *v, unsigned char *to) { __asm__("fildll %1\n\tfbstp %0" : "=m"(*(unsigned char (*)[10])to) : "m"(*v)); long r; __asm__("fbld %1\n\tfistpll %0" : "=m"(r) : "m"(*(unsigned char (*)[10])to)); return r; }
static NOINLINE unsigned csr(unsigned *p) { unsigned r; __asm__ volatile("stmxcsr %0" : "=m"(*p)); r = *p; *p |= 0x6000; __asm__ volatile("ldmxcsr %0" : : "m"(*p)); *p = r; return r & 0xff80; }
static NOINLINE double divided(const double *a, const double *b, int mode) { fesetround(mode); double r = *a / *b; __asm__ volatile("" : "+x"(r)); fesetround(FE_TONEAREST); return r; }
int main(void)
{
	double x = 2.75, s, c, one = 1, three = 3; float f = 2.5f; long v = -1234567890123; unsigned short cw; unsigned char d[10]; unsigned m;
	SHOW(rounded(HIDE(&x), HIDE(&cw)));
	trig(HIDE(&s), HIDE(&c), HIDE(&x));
	printf("%.15g %.15g\n", s, c);
	SHOW(compared(HIDE(&x), HIDE(&f)));
	SHOW(bcd(HIDE(&v), HIDE(&d[0])));
	SHOW(csr(HIDE(&m)));
	__asm__ volatile("ldmxcsr %0" : : "m"(m));
	SHOW(divided(&one, HIDE(&three), FE_UPWARD)); SHOW(divided(&one, HIDE(&three), FE_DOWNWARD)); SHOW(divided(&one, HIDE(&three), FE_TOWARDZERO));
	return 0;
}
