/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
static NOINLINE void *from(int *p) { p[0]++; return __builtin_extract_return_addr(__builtin_return_address(0)); }
static NOINLINE int inside(int *p);
static NOINLINE int inside(int *p) { char *a = from(p), *f = HIDE((char *)inside); int r = a > f && a < f + 4096; p[1] += r; return r + p[0]; }
static NOINLINE long frames(long *p) { void **f = __builtin_frame_address(0); p[0] += f != 0; return p[0] + ((uintptr_t)f > (uintptr_t)&f - 65536 && (uintptr_t)f < (uintptr_t)&f + 65536); }
int main(void)
{
	int p[2] = { 1, 2 };
	long q = 5;
	SHOW(inside(HIDE(&p[0])));
	SHOW(inside(HIDE(&p[0])));
	SHOW(frames(HIDE(&q)));
	return 0;
}
