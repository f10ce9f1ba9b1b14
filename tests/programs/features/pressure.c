/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Hashes and long arithmetic: no register is free, flags are live, the red zone is used. */
#include "feature.h"
#define R(x, n) ((x) << (n) | (x) >> (8 * sizeof(x) - (n)))
static NOINLINE void chacha(uint32_t *o, const uint32_t *k) { uint32_t x[16]; for (int i = 0; i < 16; i++) x[i] = k[i];
#define Q(a, b, c, d) x[a] += x[b]; x[d] = R(x[d] ^ x[a], 16); x[c] += x[d]; x[b] = R(x[b] ^ x[c], 12); x[a] += x[b]; x[d] = R(x[d] ^ x[a], 8); x[c] += x[d]; x[b] = R(x[b] ^ x[c], 7);
	for (int i = 0; i < 10; i++) { Q(0, 4, 8, 12) Q(1, 5, 9, 13) Q(2, 6, 10, 14) Q(3, 7, 11, 15) Q(0, 5, 10, 15) Q(1, 6, 11, 12) Q(2, 7, 8, 13) Q(3, 4, 9, 14) }
	for (int i = 0; i < 16; i++) o[i] = x[i] + k[i]; }
static NOINLINE void sha(uint32_t *h, const uint8_t *p, const uint32_t *k) { uint32_t w[64], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], l = h[7]; for (int i = 0; i < 16; i++) w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3]; for (int i = 16; i < 64; i++) w[i] = (R(w[i - 2], 15) ^ R(w[i - 2], 13) ^ w[i - 2] >> 10) + w[i - 7] + (R(w[i - 15], 25) ^ R(w[i - 15], 14) ^ w[i - 15] >> 3) + w[i - 16]; for (int i = 0; i < 64; i++) { uint32_t t = l + (R(e, 26) ^ R(e, 21) ^ R(e, 7)) + ((e & f) ^ (~e & g)) + k[i] + w[i], u = (R(a, 30) ^ R(a, 19) ^ R(a, 10)) + ((a & b) ^ (a & c) ^ (b & c)); l = g; g = f; f = e; e = d + t; d = c; c = b; b = a; a = t + u; } h[0] += a; h[1] += b; h[2] += c; h[3] += d; h[4] += e; h[5] += f; h[6] += g; h[7] += l; }
static NOINLINE void mul(uint64_t *r, const uint64_t *a, const uint64_t *b) { for (int i = 0; i < 8; i++) { uint64_t c = 0; for (int j = 0; j < 8; j++) { unsigned __int128 t = (unsigned __int128)a[i] * b[j] + r[i + j] + c; r[i + j] = (uint64_t)t; c = (uint64_t)(t >> 64); } r[i + 8] = c; } }
static NOINLINE int sub(uint64_t *r, const uint64_t *a, const uint64_t *b, int n) { unsigned c = 0; for (int i = 0; i < n; i++) { uint64_t x = a[i] - b[i], y = x - c; c = (a[i] < b[i]) | (x < c); r[i] = y; } return (int)c; }
static NOINLINE uint64_t sip(const uint64_t *p, int n, const uint64_t *k) { uint64_t a = k[0] ^ 0x736f6d6570736575, b = k[1] ^ 0x646f72616e646f6d, c = k[0] ^ 0x6c7967656e657261, d = k[1] ^ 0x7465646279746573; for (int i = 0; i < n; i++) { d ^= p[i]; for (int j = 0; j < 2; j++) { a += b; b = R(b, 13) ^ a; a = R(a, 32); c += d; d = R(d, 16) ^ c; a += d; d = R(d, 21) ^ a; c += b; b = R(b, 17) ^ c; c = R(c, 32); } a ^= p[i]; } return a ^ b ^ c ^ d; }
static NOINLINE long walk(const int *p, const short *q, const signed char *r, const long *s, int *t, unsigned char *u, long *v, int n) { long a = 0, b = 1, c = 2, d = 3, e = 4; for (int i = 0; i < n; i++) { a += p[i] > q[i] ? r[i] : s[i]; b ^= a + (t[i] += q[i]); c = c * 3 + (u[i] = (unsigned char)(b >> 3)); d += v[i] -= c; e = (e << 1 | e >> 63) + (a < b) + (c > d ? p[n - 1 - i] : q[n - 1 - i]); } return a ^ b ^ c ^ d ^ e; }
int main(void)
{
	uint32_t k[64], o[16], h[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }; uint8_t p[64]; uint64_t a[8], b[8], r[16] = { 0 }; int x[40], t[40]; short q[40]; signed char c[40]; long s[40], v[40]; unsigned char u[40];
	for (unsigned i = 0; i < 64; i++) { k[i] = i * 0x9e3779b9; p[i] = (uint8_t)(i * 5); a[i & 7] = i * 0x123456789abcdef1; b[i & 7] = ~a[i & 7] * 3; }
	for (int i = 0; i < 40; i++) { x[i] = i * 37 % 41; q[i] = (short)(i * 11 % 43); c[i] = (signed char)(i * 9); s[i] = i * 12345L; t[i] = i; v[i] = -i; }
	chacha(HIDE(&o[0]), HIDE(&k[0])); mix(o, sizeof o); SHOW(o[0]); sha(HIDE(&h[0]), HIDE(&p[0]), HIDE(&k[0])); mix(h, sizeof h); SHOW(h[0]); mul(HIDE(&r[0]), HIDE(&a[0]), HIDE(&b[0])); mix(r, sizeof r); SHOW(r[15]); SHOW(sub(HIDE(&r[0]), HIDE(&a[0]), HIDE(&b[0]), 8)); mix(r, sizeof r); SHOW(sip(HIDE(&a[0]), 8, HIDE(&b[0])));
	SHOW(walk(HIDE(&x[0]), HIDE(&q[0]), HIDE(&c[0]), HIDE(&s[0]), HIDE(&t[0]), HIDE(&u[0]), HIDE(&v[0]), 40)); mix(t, sizeof t); mix(u, sizeof u); mix(v, sizeof v); SHOW(v[3]);
	return 0;
}
