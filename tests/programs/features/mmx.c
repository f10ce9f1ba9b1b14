/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <mmintrin.h>
static NOINLINE void all(const unsigned char *p, unsigned char *q) { __asm__ volatile("movq (%0), %%mm0\n\tpaddb 8(%0), %%mm0\n\tmovd 3(%0), %%mm1\n\tpunpcklbw (%0), %%mm1\n\tpxor %%mm1, %%mm0\n\tmovq %%mm0, (%1)\n\tmovntq %%mm1, 8(%1)\n\tmovd %%mm0, 17(%1)\n\temms" : : "r"(p), "r"(q) : "mm0", "mm1", "memory"); }
int main(void) { unsigned char p[32], q[32] __attribute__((aligned(8))) = { 0 }; for (int i = 0; i < 32; i++) p[i] = (unsigned char)(i * 9); all(HIDE(&p[0]), HIDE(&q[0])); mix(q, 32); SHOW(q[0]); return 0; }
