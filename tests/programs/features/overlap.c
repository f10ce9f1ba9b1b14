/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
static unsigned char x[9000];
static NOINLINE void up(unsigned char *d, const unsigned char *s, long n) { for (long i = 0; i < n; i++) d[i] = s[i]; }
static NOINLINE void down(unsigned char *d, const unsigned char *s, long n) { while (n--) d[n] = s[n]; }
static NOINLINE void wide(uint32_t *d, const uint32_t *s, int n) { for (int i = 0; i < n; i++) d[i] = s[i] * 3 + d[i]; }
static NOINLINE void twice(uint64_t *p, int n) { for (int i = 2; i < n; i++) { p[i] ^= p[i - 1] + p[i - 2]; p[i - 1] = p[i] >> 7; } }
int main(void)
{
	for (int i = 0; i < 9000; i++) x[i] = (unsigned char)(i * i + 3 * i);
	for (int d = -40; d <= 40; d++) {
		memmove(x + 4000 + d, x + 4000, (size_t)(200 + d * 3)); up(x + 4100 + d, x + 4100, 130); down(x + 5000 + d, x + 5000, 77 + d); wide((uint32_t *)HIDE(x + 6000 + 4 * (d / 4)), (uint32_t *)HIDE(x + 6000), 50);
		__builtin_memmove(HIDE(x + 300 + d), HIDE(x + 300), 61);
	}
	twice((uint64_t *)HIDE(&x[0]), 900);
	mix(x, sizeof x);
	SHOW(x[1]);
	return 0;
}
