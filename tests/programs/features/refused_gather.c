/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -mavx2 */
/* refused: \[unsupported\] */
#include "feature.h"
#include <immintrin.h>
static NOINLINE int f(const int *p, const int *k, int *q) { _mm256_storeu_si256((__m256i *)q, _mm256_i32gather_epi32(p, _mm256_loadu_si256((const __m256i *)k), 4)); return q[0]; }
int main(void) { int p[8] = { 1 }, k[8] = { 0 }, q[8]; SHOW(f(HIDE(&p[0]), HIDE(&k[0]), HIDE(&q[0]))); return 0; }
