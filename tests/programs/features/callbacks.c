/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <search.h>
struct obj { const struct ops *ops; long v; struct obj *next; };
struct ops { long (*get)(struct obj *); void (*set)(struct obj *, long); struct obj *(*find)(struct obj *, int (*)(const struct obj *, void *), void *); long pad[40]; long (*far[3])(struct obj *, ...); };
static long get(struct obj *o) { return o->v * 3; } static void set(struct obj *o, long v) { o->v = v + o->ops->pad[3]; }
static struct obj *find(struct obj *o, int (*f)(const struct obj *, void *), void *p) { for (; o; o = o->next) if (f(o, p)) return o; return 0; }
static long far(struct obj *o, ...) { return o->v + 1; } static long far2(struct obj *o, ...) { return o->next ? o->next->ops->far[1](o->next) * 2 : o->v; }
static const struct ops ops = { get, set, find, { 1, 2, 3, 4 }, { far, far2, far } };
static int odd(const struct obj *o, void *p) { ++*(int *)p; return o->v & 1; }
static int by(const void *a, const void *b) { const long *x = *(long *const *)a, *y = *(long *const *)b; return (*x > *y) - (*x < *y); }
static int bylong(const void *a, const void *b) { long x = *(const long *)a, y = *(const long *)b; return (x > y) - (x < y); }
static NOINLINE long all(struct obj *o, int i) { long s = o->ops->get(o); o->ops->set(o, s); int n = 0; struct obj *f = o->ops->find(o, odd, &n); s += n + (f ? f->v : -1); return s + o->ops->far[i](o, i) + (*o->next->ops->far[(i + 1) % 3])(o->next, 1.5, i); }
int main(void)
{
	static struct obj o[5]; long v[50], *p[50];
	for (int i = 0; i < 5; i++) o[i] = (struct obj){ HIDE(&ops), i * 4, i < 4 ? &o[i + 1] : 0 };
	o[3].v = 7;
	for (int i = 0; i < 3; i++) SHOW(all(HIDE(&o[i]), i));
	for (int i = 0; i < 50; i++) { v[i] = (i * 7919L) % 101; p[i] = &v[i]; }
	qsort(p, 50, sizeof *p, by); for (int i = 0; i < 50; i++) mix(p[i], 8);
	qsort(v, 50, sizeof *v, bylong); long key = v[20]; long *q = bsearch(&key, v, 50, sizeof *v, bylong); SHOW((long)(q - v)); 
	return 0;
}
