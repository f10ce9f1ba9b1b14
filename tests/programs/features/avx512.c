/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -mavx512f -mavx512bw -mavx512vl */
#include "feature.h"
#include <immintrin.h>
static NOINLINE void all(const int *p, int *q) { __m512i a = _mm512_loadu_si512(p), b = _mm512_set1_epi32(p[3]); a = _mm512_add_epi32(a, b); a = _mm512_mullo_epi32(a, _mm512_loadu_si512(q)); _mm512_storeu_si512(q, a); __m512 f = _mm512_cvtepi32_ps(a); f = _mm512_mul_ps(f, _mm512_set1_ps(*(const float *)p)); _mm512_storeu_ps(q + 16, f); }
int main(void) { int p[20], q[32]; if (!__builtin_cpu_supports("avx512bw")) return 1; for (int i = 0; i < 20; i++) p[i] = i * 7; for (int i = 0; i < 32; i++) q[i] = i; all(HIDE(&p[0]), HIDE(&q[0])); mix(q, sizeof q); SHOW(q[0]); return 0; }
