/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
static unsigned char x[20000], y[20000];
static void fill(void) { for (int i = 0; i < 20000; i++) { x[i] = (unsigned char)(i * 7 + (i >> 8)); y[i] = (unsigned char)(i * 3); } }
#define COPY(name, op, dir, back) static NOINLINE long name(void *d, const void *s, size_t n) { void *d0 = d; const void *s0 = s; __asm__ volatile(dir "rep " op back : "+D"(d), "+S"(s), "+c"(n) : : "memory", "cc"); return ((char *)d - (char *)d0) * 3 + ((char *)s - (char *)s0) + (long)n; }
COPY(mb, "movsb", "", "") COPY(mw, "movsw", "", "") COPY(ml, "movsl", "", "") COPY(mq, "movsq", "", "")
COPY(bb, "movsb", "std\n\t", "\n\tcld") COPY(bq, "movsq", "std\n\t", "\n\tcld")
COPY(fb, "movsb", "lea -128(%%rsp), %%rsp\n\tpushf\n\torl $0x400, (%%rsp)\n\tpopf\n\tlea 128(%%rsp), %%rsp\n\t", "\n\tcld")
#define SET(name, op, dir, back) static NOINLINE long name(void *d, unsigned long a, size_t n) { void *d0 = d; __asm__ volatile(dir "rep " op back : "+D"(d), "+c"(n) : "a"(a) : "memory", "cc"); return (char *)d - (char *)d0 + (long)n; }
SET(sb, "stosb", "", "") SET(sq, "stosq", "", "") SET(sl, "stosl", "std\n\t", "\n\tcld")
#define SCAN(name, op, dir, back) static NOINLINE long name(const void *d, unsigned long a, size_t n) { const void *d0 = d; int z, c; __asm__ volatile(dir op : "+D"(d), "+c"(n), "=@ccz"(z), "=@ccc"(c) : "a"(a) : "memory"); __asm__ volatile("cld"); return ((char *)d - (char *)d0) * 8 + (long)n * 3 + z + 2 * c; }
SCAN(scb, "repne scasb", "", "") SCAN(eqb, "repe scasb", "", "") SCAN(scw, "repne scasw", "", "") SCAN(scq, "repne scasq", "", "") SCAN(bsc, "repne scasb", "std\n\t", "")
#define CMP(name, op, dir) static NOINLINE long name(const void *d, const void *s, size_t n) { const void *d0 = d, *s0 = s; int z, c, o; __asm__ volatile("cmp %0, %0\n\t" dir op : "+D"(d), "+S"(s), "+c"(n), "=@ccz"(z), "=@ccb"(c), "=@ccl"(o) : : "memory"); __asm__ volatile("cld"); return ((char *)d - (char *)d0) * 16 + ((char *)s - (char *)s0) * 5 + (long)n * 3 + z + 2 * c + 4 * o; }
CMP(cb, "repe cmpsb", "") CMP(cnb, "repne cmpsb", "") CMP(cq, "repe cmpsq", "") CMP(cbb, "repe cmpsb", "std\n\t")
static NOINLINE long once(unsigned char *d, const unsigned char *s) { long a = 0x1122334455667788; __asm__ volatile("movsb\n\tmovsw\n\tmovsl\n\tmovsq\n\tlodsb\n\tstosb\n\tlodsw\n\tstosw\n\tlodsl\n\tstosl\n\tlodsq\n\tstosq\n\tscasb\n\tcmpsl\n\tadc $0, %0\n\tstd\n\tstosq\n\tlodsb\n\tcld" : "+a"(a), "+D"(d), "+S"(s) : : "memory", "cc"); return a; }
static NOINLINE long loaded(const unsigned char *s, size_t n) { unsigned long a = 5; __asm__ volatile("rep lodsb" : "+a"(a), "+S"(s), "+c"(n) : : "memory"); return (long)a; }
int main(void)
{
	static const size_t counts[] = { 0, 1, 2, 7, 8, 9, 63, 100, 511, 512, 513, 600, 1025 };
	fill();
	for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
		size_t n = counts[i], at = 4000 + i * 37;
		long s = 0;
		s = s * 5 + mb(x + at, y + 100, n); s = s * 5 + mw(x + at + 1, y + 103, n); s = s * 5 + ml(x + at + 2, y + 105, n); s = s * 5 + mq(x + at + 3, y + 110, n);
		s = s * 5 + mb(x + at, x + at - 1 - i, n); s = s * 5 + mq(x + at, x + at - 3, n); s = s * 5 + bb(x + at + n, x + at + n - 5, n); s = s * 5 + bq(x + at + 8 * n, x + at + 8 * n + 7, n); s = s * 5 + fb(x + at + n, x + at + n + 2, n);
		s = s * 5 + sb(y + at, n * 3 + 0x1ff, n); s = s * 5 + sq(y + at + n, 0x123456789abcdef0 * i, n); s = s * 5 + sl(y + at + 4 * n, n * 77, n);
		s = s * 5 + scb(x, x[n * 2], n * 3); s = s * 5 + eqb(y + at, 0x1ff + n * 3, n + 5); s = s * 5 + scw(x, 77 * i, n); s = s * 5 + scq(x, *(uint64_t *)HIDE(&x[8 * n]), n + 3); s = s * 5 + bsc(x + 3 * n, x[n], 4 * n);
		memcpy(x + 12000, y, 7000); x[12000 + n * 2] ^= 1;
		s = s * 5 + cb(x + 12000, y, n * 3); s = s * 5 + cnb(x + 12000, y + 1, n * 3); s = s * 5 + cq(x + 12000, y, n); s = s * 5 + cbb(x + 12000 + n * 3, y + n * 3, n * 3);
		s = s * 5 + loaded(x + at, n);
		SHOW(s);
		mix(x, sizeof x); mix(y, sizeof y);
	}
	SHOW(once(x + 50, y + 60)); mix(x, 200); SHOW(x[0]);
	return 0;
}
