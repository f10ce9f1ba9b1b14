/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
struct __attribute__((packed)) p { char c; short s; int i; long l; float f; double d; long double x; char t[3]; };
union u { double d; uint64_t l; float f[2]; uint32_t w[2]; unsigned char b[8]; };
struct flex { int n; struct { short a; char b[]; } inner; }; struct __attribute__((aligned(32))) al { char a; long v; };
static NOINLINE long packed(struct p *p, int n) { p->c++; p->s = (short)(p->s * p->c + n); p->i ^= p->s; p->l += p->i * 77L; p->f = (float)p->i / 3; p->d = p->f + (double)(p->l & 0xfffff); p->x += p->d; p->t[n % 3] ^= p->c; return p->l + (long)p->x; }
static NOINLINE uint64_t punned(union u *u) { u->d *= -1.5; u->w[0] ^= u->w[1] >> 3; u->f[0] = (float)u->b[3]; u->b[7] ^= 0x80; return u->l; }
static NOINLINE long reached(struct flex *f, struct al *a) { for (int i = 0; i < f->n; i++) { f->inner.b[i] = (char)(f->inner.a + i); a[i & 3].v += f->inner.b[i]; a[i & 3].a = (char)i; } return a[2].v + (long)((uintptr_t)a & 31); }
static NOINLINE long unaligned(const char *b) { long s = 0; for (int i = 0; i < 40; i++) { s = s * 3 + *(const __attribute__((aligned(1), may_alias)) long *)(b + i); s ^= *(const __attribute__((aligned(1), may_alias)) short *)(b + 2 * i); s += *(const __attribute__((aligned(1), may_alias)) int *)(b + i + 1); } return s; }
int main(void) { char b[200]; for (int i = 0; i < 200; i++) b[i] = (char)(i * 7); memset(b + 5, 0, 60); struct p *p = (struct p *)HIDE(b + 5); for (int i = 0; i < 9; i++) { SHOW(packed(p, i)); mix(p, 1 + 2 + 4 + 8 + 4 + 8 + 10); } union u u = { 3.25 }; for (int i = 0; i < 9; i++) SHOW(punned(HIDE(&u))); static struct al a[4]; struct flex *f = malloc(100); f->n = 50; f->inner.a = 7; SHOW(reached(f, HIDE(&a[0]))); mix(a, sizeof a); SHOW(unaligned(HIDE(&b[70]))); return 0; }
