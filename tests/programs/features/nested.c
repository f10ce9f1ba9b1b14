/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* compilers: gcc */
#include "feature.h"
static NOINLINE long each(const int *p, int n, long (*f)(int, long)) { long s = 0; for (int i = 0; i < n; i++) s = f(p[i], s); return s; }
static NOINLINE long run(const int *p, int n, int limit)
{
	__label__ out;
	long seen = 0, array[4] = { 1, 2, 3, 4 };
	long step(int v, long s)
	{
		seen++;
		array[v & 3] += v;
		long deeper(int w) { return w * limit + array[w & 3] + seen; }
		if (seen > limit)
			goto out;
		return s * 5 + deeper(v) + deeper(v + 1);
	}
	long s = each(p, n, step);
	return s + array[0] + array[3];
out:
	return -seen * 1000 + array[1];
}
static int by(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static NOINLINE void sorted(int *p, size_t n, int about) { int near(const void *a, const void *b) { int x = abs(*(const int *)a - about), y = abs(*(const int *)b - about); return x != y ? x - y : by(a, b); } qsort(p, n, sizeof *p, near); }
int main(void)
{
	int p[] = { 5, 3, 9, 2, 8, 1, 7 };
	SHOW(run(p, 7, 100));
	SHOW(run(p, 7, 3));
	sorted(p, 7, 6);
	mix(p, sizeof p);
	SHOW(p[0]);
	return 0;
}
