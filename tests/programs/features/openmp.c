/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -fopenmp */
/* compilers: gcc */
#include "feature.h"
static NOINLINE long sum(const int *p, int n, long *q) { long s = 0;
#pragma omp parallel for reduction(+ : s) schedule(dynamic, 3) num_threads(4)
	for (int i = 0; i < n; i++) { s += p[i] * 3;
#pragma omp atomic
		q[i & 3] += p[i]; }
#pragma omp simd
	for (int i = 0; i < n / 4 * 4; i++) q[4 + (i & 3)] += p[i];
	return s; }
int main(void) { int p[1000]; long q[8] = { 0 }; for (int i = 0; i < 1000; i++) p[i] = i * 7 - 300; SHOW(sum(HIDE(&p[0]), 1000, HIDE(&q[0]))); mix(q, sizeof q); SHOW(q[0]); return 0; }
