/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* refused: \[unsupported\] */
#include "feature.h"
#include <immintrin.h>
static NOINLINE void f(char *q, const char *p) { _mm_maskmoveu_si128(_mm_loadu_si128((const __m128i *)p), _mm_loadu_si128((const __m128i *)p), q); }
int main(void) { char p[16] = "\x81\x02\xf3", q[16] = "abcdef"; f(HIDE(&q[0]), HIDE(&p[0])); SHOW(q[1]); return 0; }
