/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -mavx512f -mavx512bw -mavx512vl */
#include "feature.h"
#include <immintrin.h>
static NOINLINE void all(const int *p, int *q) { __m512i a = _mm512_loadu_si512(p), b = _mm512_set1_epi32(p[3]); a = _mm512_add_epi32(a, b); a = _mm512_mullo_epi32(a, _mm512_loadu_si512(q)); _mm512_storeu_si512(q, a); __m512 f = _mm512_cvtepi32_ps(a); f = _mm512_mul_ps(f, _mm512_set1_ps(*(const float *)p)); _mm512_storeu_ps(q + 16, f); }
struct block { double v[32]; };
/* Translations that serve accesses at other distances. */
static NOINLINE void copy(struct block *to, const struct block *from) { *to = *from; }
static NOINLINE void pairs(const int *p, int *q) { __asm__ volatile("vmovdqu64 (%0), %%zmm0\n\tvmovdqu64 64(%0), %%zmm1\n\tvmovdqu64 80(%0), %%xmm2\n\tvpaddd %%zmm1, %%zmm0, %%zmm0\n\tvpaddd %%zmm2, %%zmm0, %%zmm0\n\tvmovdqu64 %%zmm0, (%1)\n\txor %%eax, %%eax\n\txor %%r9d, %%r9d\n\txor %%r10d, %%r10d\n\txor %%r11d, %%r11d" : : "r"(p), "r"(q) : "xmm0", "xmm1", "xmm2", "rax", "r9", "r10", "r11", "cc", "memory"); }
int main(void) { int p[48], q[32]; if (!__builtin_cpu_supports("avx512bw")) return 1; for (int i = 0; i < 48; i++) p[i] = i * 7; for (int i = 0; i < 32; i++) q[i] = i; all(HIDE(&p[0]), HIDE(&q[0])); mix(q, sizeof q); SHOW(q[0]); struct block a, b; for (int i = 0; i < 32; i++) { a.v[i] = 0; b.v[i] = i; } copy(HIDE(&a), HIDE(&b)); mix(&a, sizeof a); SHOW(a.v[9]); pairs(HIDE(&p[0]), HIDE(&q[0])); mix(q, sizeof q); SHOW(q[3]); return 0; }
