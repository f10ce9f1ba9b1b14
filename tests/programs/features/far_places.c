/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#define _GNU_SOURCE
#include "feature.h"
#include <sys/mman.h>
struct far { char a[0x7ffffff0]; long v; };
static NOINLINE long far(char *p) { long s = *(long *)(p + 0x7ffffff0) + *(long *)(p - 0x7fffffff - 1); *(int *)(p + 0x7fffff00) = 7; s += *(int *)(p + 0x7fffff00) + p[0x7fffffff] + p[-0x7fffffff] + ((struct far *)p)->v; return s; }
static NOINLINE long near(char *p) { long s = p[0] + p[4095] * 3 + p[4096] * 5 + p[4097] * 7 + p[8191] * 11 + p[-1] * 13 + p[-4096] * 17 + p[-4097] * 19; p[4096]++; p[-4096] = (char)s; *(long *)(p + 4090) += s; *(long *)(p - 4099) ^= s; return s + *(int *)(p + 8190) + *(int *)(p - 8193); }
static NOINLINE long indexed(char *p, long i, int j, unsigned k) { return p[i] + p[j] * 3 + p[k] * 5 + ((short *)p)[j] + ((int *)p)[i + 1] + ((long *)p)[k & 7] + p[i * 2 + j + 5]; }
int main(void)
{
	char *m = mmap(0, 0x140000000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); if (m == MAP_FAILED) return 0;
	char *p = m + 0xa0000000; *(long *)(p + 0x7ffffff0) = 5; *(long *)(p - 0x80000000l) = 70; p[0x7fffffff] = 9; SHOW(far(HIDE(p)));
	for (int i = -9000; i < 9000; i += 7) p[i] = (char)(i * 3);
	for (int i = 0; i < 20; i++) { SHOW(near(HIDE(p + i))); SHOW(indexed(HIDE(p), -i * 5, -i, (unsigned)i * 9)); }
	mix(p - 9000, 18000); SHOW(p[0]);
	return 0;
}
