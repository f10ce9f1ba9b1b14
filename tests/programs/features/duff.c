/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
static NOINLINE long duff(short *to, const short *from, int n) { long s = 0; int k = (n + 7) / 8; switch (n % 8) { case 0: do { s += *to++ = *from++; case 7: s ^= *to++ = *from++; case 6: s += *to++ = *from++; case 5: s -= *to++ = *from++; case 4: s += *to++ = *from++; case 3: s ^= *to++ = *from++; case 2: s += *to++ = *from++; case 1: s -= *to++ = *from++; } while (--k > 0); } return s; }
#define BEGIN static int line; switch (line) { case 0:
#define YIELD(x) do { line = __LINE__; return x; case __LINE__:; } while (0)
static NOINLINE int generator(int *p) { static int i, j; BEGIN for (i = 0; i < 3; i++) {
	YIELD(p[0] + i);
	for (j = 0; j < p[1]; j++)
		YIELD(p[j & 1] * j);
	} } line = 0; return -1; }
static NOINLINE long into(const int *p, int n) { long s = 0; int i = 0; if (n > 3) goto inside; for (; i < n; i++) { s += p[i]; if (s > 1000) { inside: s = s * 2 + p[n - 1 - i]; } } return s; }
int main(void) { short a[100], b[100]; int p[2] = { 5, 3 }, q[6] = { 1, 2, 3, 4, 5, 6 }; for (int i = 0; i < 100; i++) b[i] = (short)(i * i * 37); for (int n = 1; n < 60; n += 5) { SHOW(duff(HIDE(&a[0]), HIDE(&b[n]), n)); } for (int i = 0; i < 15; i++) SHOW(generator(HIDE(&p[0]))); SHOW(into(HIDE(&q[0]), 6)); SHOW(into(HIDE(&q[0]), 2)); return 0; }
