/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <stdbool.h>
struct a { unsigned a : 3; int b : 5; unsigned c : 11; int d : 13; long e : 33; unsigned long f : 31; bool g : 1; signed char h : 7; } ;
struct __attribute__((packed)) p { char x; unsigned a : 7; int b : 17; unsigned long c : 41; int d : 1; unsigned e : 30; long f : 63; short g : 9; };
struct z { unsigned a : 4; unsigned : 0; unsigned b : 9; unsigned : 5; int c : 6; volatile int v : 9; volatile unsigned w : 20; };
union u { struct a a; struct p p; struct z z; unsigned char b[64]; };
static NOINLINE long aa(struct a *p, int n) { p->a += (unsigned)n; p->b -= n; p->c ^= p->a * 77; p->d = p->b * p->c; p->e += p->d * 12345L; p->f = (unsigned long)p->e >> 2; p->g ^= n & 1; p->h += (signed char)n; return p->a + p->b + p->c + p->d + p->e + (long)p->f + p->g + p->h; }
static NOINLINE long pp(struct p *p, int n) { p->x++; p->a += (unsigned)n; p->b -= n * 3; p->c ^= p->a * 7777777ul; p->d = n; p->e = (unsigned)p->c + p->e; p->f += p->e * 99999L; p->g = (short)(p->g * 3 + n); return p->a + p->b + (long)p->c + p->d + (long)p->e + p->f + p->g; }
static NOINLINE long zz(struct z *p, const struct z *q) { p->a = q->b; p->b += q->a; p->c = q->c + 1; p->v++; p->w = (unsigned)p->v * 3; return p->a + p->b + p->c + p->v + (int)p->w; }
static NOINLINE struct p ret(const struct p *p, struct p q) { q.a = p->a; q.c += p->c; q.e++; return q; }
int main(void)
{
	union u x, y;
	memset(&x, 0x5a, sizeof x); memset(&y, 0xc3, sizeof y);
	for (int i = -9; i < 9; i++) { SHOW(aa(HIDE(&x.a), i)); mix(&x, 64); SHOW(pp((struct p *)HIDE(x.b + (i & 7)), i)); mix(&x, 64); SHOW(zz(HIDE(&x.z), HIDE(&y.z))); mix(&x, 64); x.p = ret(HIDE(&y.p), x.p); mix(&x, 64); y.b[i & 31] ^= (unsigned char)i; }
	return 0;
}
