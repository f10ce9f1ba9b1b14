/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -mavx2 -mfma -mf16c -mbmi -mbmi2 -mmovbe -mlzcnt -mpopcnt -madx */
#include "feature.h"
#include <immintrin.h>
static NOINLINE void all(const float *p, float *q, const double *d, const int *k) { __m256 a = _mm256_loadu_ps(p), b = _mm256_broadcast_ss(p + 3); a = _mm256_fmadd_ps(a, b, _mm256_loadu_ps(q)); a = _mm256_add_ps(a, _mm256_broadcast_ps((const __m128 *)p)); a = _mm256_insertf128_ps(a, _mm_loadu_ps(p + 5), 1); _mm_storeu_ps(q + 8, _mm256_extractf128_ps(a, 1)); a = _mm256_permutevar8x32_ps(a, _mm256_loadu_si256((const __m256i *)k)); _mm256_storeu_ps(q, a); __m256d e = _mm256_loadu_pd(d); e = _mm256_fnmsub_pd(e, _mm256_broadcast_sd(d + 1), e); e = _mm256_add_pd(e, _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)k))); _mm256_storeu_pd((double *)(q + 12), e); _mm_storeu_si128((__m128i *)(q + 20), _mm256_cvtps_ph(a, 0)); q[24] = _mm256_cvtss_f32(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(q + 20)))); }
static NOINLINE void ints(const int *p, int *q) { __m256i a = _mm256_loadu_si256((const __m256i *)p), b = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)q)); a = _mm256_sllv_epi32(_mm256_add_epi32(a, b), _mm256_loadu_si256((const __m256i *)(p + 1))); a = _mm256_blend_epi32(a, _mm256_loadu_si256((const __m256i *)q), 0x5a); a = _mm256_add_epi8(a, _mm256_set1_epi8(((const char *)p)[3])); a = _mm256_inserti128_si256(a, _mm_loadu_si128((const __m128i *)p), 0); a = _mm256_permute4x64_epi64(a, 0x1b); _mm256_storeu_si256((__m256i *)q, _mm256_mpsadbw_epu8(a, _mm256_loadu_si256((const __m256i *)(p + 2)), 3)); _mm_storeu_si128((__m128i *)(q + 8), _mm256_extracti128_si256(a, 1)); q[12] = _mm256_movemask_epi8(a); }
static NOINLINE unsigned long gpr(unsigned long *p, unsigned *q) { unsigned long r = _pdep_u64(p[0], p[1]) ^ _pext_u64(p[2], p[0]); r += _bzhi_u64(p[1], q[0]) + _bextr_u64(p[2], 5, 9) + _blsr_u64(p[0]) + _lzcnt_u64(p[1]) + _tzcnt_u64(p[2]) + (unsigned long)_mm_popcnt_u64(p[0]); unsigned long long h; r ^= _mulx_u64(p[1], p[2], &h) + h; r += __builtin_bswap64(p[0]) + __builtin_bswap32(q[1]); p[1] = __builtin_bswap64(r); q[0] = __builtin_bswap32(q[1]); *(unsigned short *)(q + 2) = __builtin_bswap16((unsigned short)r); r += (~p[0] & r) + (p[2] << (q[0] & 31)) + (p[2] >> (q[1] & 63)) + (unsigned long)((long)p[0] >> (q[1] & 15)) + (p[1] << 13 | p[1] >> 51); return r; }
int main(void)
{
	static float f[40], g[40]; static double d[8]; static int k[20], m[20];
	for (int i = 0; i < 40; i++) { f[i] = (float)i * 1.5f - 3; g[i] = 20 - (float)i; d[i & 7] = i + .25; k[i % 20] = i * 77 % 19; m[i % 20] = i * i * 12345; }
	all(HIDE(&f[0]), HIDE(&g[0]), HIDE(&d[0]), HIDE(&k[0])); mix(g, sizeof g); SHOW(g[0]);
	for (int i = 0; i < 5; i++) { ints(HIDE(&k[i]), HIDE(&m[0])); mix(m, sizeof m); SHOW(m[12]); }
	unsigned long p[3] = { 0x123456789abcdef0, 0xff00ff00f0f0aaaa, 0x8000000000000007 }; unsigned q[3] = { 7, 0x12345678, 9 };
	for (int i = 0; i < 9; i++) { SHOW(gpr(HIDE(&p[0]), HIDE(&q[0]))); mix(p, sizeof p); p[i % 3] *= 3; }
	return 0;
}
