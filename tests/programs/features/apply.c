/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* compilers: gcc */
#include "feature.h"
static NOINLINE long target(long a, double d, int *p, long b, long c, long e, long f, long g) { *p += 3; return a + (long)d + *p + b * 2 + c * 3 + e * 4 + f * 5 + g * 6; }
static NOINLINE long forward(long a, double d, int *p, long b, long c, long e, long f, long g) { p[1]++; void *args = __builtin_apply_args(); void *r = __builtin_apply((void (*)())target, args, 128); __builtin_return(r); }
register long kept __asm__("r15");
static NOINLINE long global(long *p) { long old = kept; kept = p[0]; p[1] += kept; kept += p[1]; long r = kept; kept = old; return r; }
int main(void) { int p[2] = { 1, 2 }; long l[2] = { 3, 4 }; SHOW(forward(1, 2.5, HIDE(&p[0]), 4, 5, 6, 7, 8)); SHOW(p[1]); SHOW(global(HIDE(&l[0]))); return 0; }
