/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <alloca.h>
struct node { struct node *next; long v; char name[]; };
static NOINLINE long chain(const char *s, int n)
{
	struct node *head = 0;
	for (int i = 0; i < n; i++) {
		size_t len = strlen(s + i % 5) + 1;
		struct node *x = alloca(sizeof *x + len);
		x->next = head;
		x->v = i * 3;
		memcpy(x->name, s + i % 5, len);
		head = x;
	}
	long sum = 0;
	for (; head; head = head->next)
		sum = sum * 31 + head->v + head->name[0];
	return sum;
}
static NOINLINE long large(size_t n) { volatile char *p = alloca(n); long s = 0; for (size_t i = 0; i < n; i += 997) p[i] = (char)i; for (size_t i = 0; i < n; i += 997) s = s * 3 + p[i]; return s; }
static NOINLINE long wide(int n) { long *p = __builtin_alloca_with_align((size_t)n * 8, 512); for (int i = 0; i < n; i++) p[i] = i * i; long s = (long)((uintptr_t)p & 63); for (int i = 0; i < n; i++) s += p[i]; return s; }
static NOINLINE long recursed(int n, long *up) { long *p = alloca((size_t)(n * 8 + 8)); for (int i = 0; i <= n; i++) p[i] = *up + i; return n ? recursed(n - 1, p + n) + p[0] : *p; }
int main(void)
{
	long one = 1;
	SHOW(chain("several words", 40));
	SHOW(large(100000));
	SHOW(large(8));
	SHOW(wide(33));
	SHOW(recursed(20, &one));
	return 0;
}
