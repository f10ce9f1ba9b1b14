/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* compilers: gcc */
#include "feature.h"
struct s { long a, b, c[4]; int d; short e; char f[6]; };
static NOINLINE long simple(struct s *p, long v) { long r; __asm__("mov %1, %0\n\tadd %2, %0\n\tadd %3, %1" : "=&r"(r), "+m"(p->a) : "m"(p->b), "r"(v) : "cc"); return r; }
static NOINLINE long both(struct s *p, const struct s *q) { long r; __asm__("mov %2, %0\n\tadc 8+%2, %0\n\txchg %0, %1\n\tmov 8+%1, %0" : "=&r"(r), "+m"(p->a) : "m"(q->b), "m"(*p), "m"(*q) : "cc"); return r; }
static NOINLINE int flags(const long *p, long v) { int z, c, s, o; __asm__("cmp %4, %5" : "=@ccz"(z), "=@ccc"(c), "=@ccs"(s), "=@cco"(o) : "r"(v), "m"(*p)); return z + 2 * c + 4 * s + 8 * o; }
static NOINLINE int live(const long *p, const int *q, long v) { int r; __asm__("cmp %1, %2\n\tmov %3, %0\n\tadc $0, %0\n\tsetl %b0\n\tjne 1f\n\tadd %3, %0\n1:\tcmovs %3, %0" : "=&q"(r) : "r"(v), "m"(*p), "m"(*q) : "cc"); return r; }
static NOINLINE long loop(const int *p, long n) { long s = 0; __asm__("xor %k0, %k0\n1:\tmovslq -4(%1,%2,4), %%rax\n\tlea (%0,%0,4), %0\n\tadd %%rax, %0\n\tdec %2\n\tjnz 1b" : "=&r"(s), "+r"(p), "+r"(n) : : "rax", "cc", "memory"); return s; }
static NOINLINE long carries(unsigned long *r, const unsigned long *a, const unsigned long *b, long n) { long c; __asm__ volatile("clc\n1:\tmov (%2), %%rax\n\tadc (%3), %%rax\n\tmov %%rax, (%1)\n\tlea 8(%1), %1\n\tlea 8(%2), %2\n\tlea 8(%3), %3\n\tdec %4\n\tjnz 1b\n\tsbb %0, %0" : "=r"(c), "+r"(r), "+r"(a), "+r"(b), "+r"(n) : : "rax", "cc", "memory"); return c; }
static NOINLINE int jumps(const int *p, int *q) { __asm__ goto("cmpl $5, %0\n\tjg %l[big]\n\tincl %1\n\tje %l[zero]" : : "m"(*p), "m"(*q) : "cc", "memory" : big, zero); return *q; big: return -*p; zero: return 100; }
static NOINLINE long full(const long *p) { long a, b, c, d, e, f, g, h; __asm__("mov (%8), %0\n\tmov 8(%8), %1\n\tmov 16(%8), %2\n\tmov 24(%8), %3\n\tlea (%0,%1), %4\n\tadd 32(%8), %4\n\tmov (%8,%7,8), %5\n\tmov 8(%8,%7,8), %6\n\timul 40(%8), %7" : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d), "=&r"(e), "=&r"(f), "=&r"(g), "=&r"(h) : "r"(p), "7"(3L) : "cc"); return a + b * 3 + c * 5 + d * 7 + e * 11 + f * 13 + g * 17 + h * 19; }
static NOINLINE int bytes(unsigned char *p, int v) { int r; __asm__("movb %h2, %1\n\taddb %b2, 1+%1\n\tmovb %1, %h0\n\tmovb 1+%1, %b0\n\tmovzwl %w0, %0" : "=&Q"(r), "+m"(*(unsigned char (*)[2])p) : "Q"(v) : "cc"); return r; }
static NOINLINE long pushed(const long *p, long *q) { long r; __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpush (%1)\n\tpush 8(%1)\n\tpop (%2)\n\tpop %0\n\tlea 128(%%rsp), %%rsp" : "=&r"(r) : "r"(p), "r"(q) : "memory"); return r + *q; }
static NOINLINE long xlat(const unsigned char *t, const unsigned char *p, int n) { long s = 0; for (int i = 0; i < n; i++) { unsigned long x = p[i]; __asm__("xlat" : "+a"(x) : "b"(t), "m"(*(const unsigned char (*)[256])t)); s = s * 31 + (long)(x & 0xff); } return s; }
static NOINLINE void saved(long *p) { __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushf\n\tpush %%rbx\n\tmov 8(%0), %%rbx\n\tadd %%rbx, (%0)\n\tpop %%rbx\n\tpopf\n\tlea 128(%%rsp), %%rsp" : : "r"(p) : "memory"); }
int main(void)
{
	struct s x = { 1, 2, { 3, 4, 5, 6 }, 7, 8, "nine" }, y = { 10, 20, { 30, 40, 50, 60 }, 70, 80, "ten" };
	int q[4] = { 3, 9, -1, 5 }, z = -1; unsigned char b[300];
	SHOW(simple(HIDE(&x), 5)); SHOW(both(HIDE(&x), HIDE(&y))); mix(&x, 48);
	for (int i = -2; i < 4; i++) { SHOW(flags(HIDE(&x.a), x.a + i)); SHOW(live(HIDE(&x.b), HIDE(&q[i & 3]), i)); }
	SHOW(loop(HIDE(&q[0]), 4));
	unsigned long m[3] = { -1ul, -1ul, 5 }, n[3] = { 1, 0, -5ul }, r[3];
	SHOW(carries(HIDE(&r[0]), HIDE(&m[0]), HIDE(&n[0]), 3)); mix(r, sizeof r);
	for (int i = 0; i < 4; i++) SHOW(jumps(HIDE(&q[i]), HIDE(&z)));
	SHOW(full(HIDE(&x.a))); b[0] = 1; b[1] = 2; SHOW(bytes(HIDE(&b[0]), 0x1234)); SHOW(pushed(HIDE(&x.c[0]), HIDE(&x.c[2])));
	for (int i = 0; i < 256; i++) b[i] = (unsigned char)(i * 7 + 3);
	SHOW(xlat(HIDE(&b[0]), (const unsigned char *)"text to look up", 15));
	saved(HIDE(&x.a)); mix(&x, 48); SHOW(x.a);
	return 0;
}
