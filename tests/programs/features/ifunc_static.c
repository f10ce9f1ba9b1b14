/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -static -fno-pie -no-pie */
#include "feature.h"
static long one(long *p) { return p[0] * 3 + p[1]; }
static long two(long *p) { return p[0] * 5 - p[1]; }
typedef long (*fn)(long *);
static int data[4] = { 1, 2, 3, 4 };
static fn choose(void) { int *p = HIDE(&data[0]); long s = 0; for (int i = 0; i < 4; i++) s += *HIDE(p + i); *HIDE(p) = 77; char b[40]; for (int i = 0; i < 40; i++) HIDE(&b[0])[i] = (char)(i * s); return b[3] == 30 ? two : one; }
long chosen(long *p) __attribute__((ifunc("choose")));
int main(void) { long x[2] = { 3, 10 }; fn f = chosen; SHOW(chosen(HIDE(&x[0]))); SHOW(f(HIDE(&x[0]))); SHOW(data[0]); return 0; }
