/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* compilers: gcc */
#include "feature.h"
static NOINLINE void ops(_Decimal64 *r, const _Decimal64 *a, const _Decimal32 *b, const _Decimal128 *c) { r[0] = *a * *b; r[1] = (_Decimal64)(*c / *a); r[2] = *a > *b; r[3] = *a + 1; }
static NOINLINE long fixed_(const _Float16 *p, _Float16 *q, int n) { float s = 0; for (int i = 0; i < n; i++) { q[i] = p[i] * (_Float16)1.5 + q[i]; s += (float)q[i]; } return (long)(s * 16); }
int main(void) { _Decimal64 a = 1.25DD, r[4]; _Decimal32 b = 3.5DF; _Decimal128 c = 9.125DL; ops(HIDE(&r[0]), HIDE(&a), HIDE(&b), HIDE(&c)); mix(r, sizeof r); SHOW((double)r[0]); _Float16 p[20], q[20]; for (int i = 0; i < 20; i++) { p[i] = (_Float16)i; q[i] = (_Float16)(20 - i); } SHOW(fixed_(HIDE(&p[0]), HIDE(&q[0]), 20)); return 0; }
