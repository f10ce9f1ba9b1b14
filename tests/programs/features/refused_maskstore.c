/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -mavx512f -mavx512vl */
/* refused: \[unsupported\] */
#include "feature.h"
#include <immintrin.h>
static NOINLINE void f(int *q, int k, const int *p) { _mm256_mask_storeu_epi32(q, (__mmask8)k, _mm256_loadu_si256((const __m256i *)p)); }
int main(void) { int p[8] = { 1, 2 }, q[8] = { 5, 6, 7 }; f(HIDE(&q[0]), 3, HIDE(&p[0])); SHOW(q[1]); return 0; }
