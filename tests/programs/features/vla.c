/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
static NOINLINE long matrix(int n, int m, const int (*a)[m], int k, const int (*b)[k])
{
	long c[n][k], s = 0;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < k; j++) {
			c[i][j] = 0;
			for (int l = 0; l < m; l++)
				c[i][j] += (long)a[i][l] * b[l][j];
		}
	for (int i = 0; i < n; i++)
		for (int j = 0; j < k; j++)
			s = s * 31 + c[i][j];
	return s + (long)sizeof c;
}
static NOINLINE long again(int n)
{
	long s = 0;
	int i = 0;
top:;
	{
		char v[n + i];
		memset(v, i, sizeof v);
		s = s * 3 + v[n - 1] + (long)sizeof v;
		if (++i < 9)
			goto top;
	}
	for (int k = 1; k < 9; k++) {
		short w[k * 3];
		for (int j = 0; j < k * 3; j++)
			w[j] = (short)(j * k);
		if (k == 7)
			break;
		if (k & 1)
			continue;
		s += w[k];
	}
	return s;
}
int main(void)
{
	int a[4][5], b[5][3];
	for (int i = 0; i < 20; i++) a[0][i] = i * i - 7;
	for (int i = 0; i < 15; i++) b[0][i] = 5 - i * 3;
	SHOW(matrix(4, 5, a, 3, b));
	SHOW(again(5));
	return 0;
}
