/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* refused: \[unsupported\] */
#include "feature.h"
static NOINLINE int f(unsigned char *p) { __asm__ volatile("fxsave %0" : "=m"(*(unsigned char (*)[512])p)); return p[0]; }
int main(void) { static unsigned char p[512] __attribute__((aligned(64))); SHOW(f(HIDE(&p[0]))); return 0; }
