/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
static char a[1200], b[1200];
#define N(n) static NOINLINE void c##n(char *d, const char *s, int v) { __builtin_memcpy(d, s, n); __builtin_memset(d + n, v, n); __builtin_memmove(d + n / 2, d, n); } static NOINLINE int d##n(const char *x, const char *y) { int r = __builtin_memcmp(x, y, n); return (r > 0) - (r < 0) + 3 * (__builtin_memcmp(x, y, n) == 0) + 5 * (__builtin_strncmp(x, y, n) == 0); }
#define ALL N(1) N(2) N(3) N(5) N(7) N(8) N(11) N(13) N(16) N(17) N(23) N(31) N(33) N(47) N(63) N(65) N(95) N(127) N(129) N(191) N(255) N(257) N(500)
ALL
static NOINLINE void any(char *d, const char *s, size_t n, int v) { memcpy(d, s, n); memset(d + n, v, n & 63); memset(d + n + 64, 0, n >> 1); memmove(d + (n & 7), d, n); }
struct big { char x[333]; long y; };
static NOINLINE void assign(struct big *p, const struct big *q, int i) { p[i] = q[0]; p[0].y += q[i].y; struct big z = p[i]; z.x[i] ^= 1; p[1 - i] = z; struct big o = { "zero" }; p[2] = o; }
static NOINLINE size_t lens(const char *s) { return strlen(s) + strnlen(s, 9) * 1000 + (size_t)(strchr(s, 'e') - s) * 100000 + (strrchr(s, 'e') - s > 5) + strspn(s, "some") + strcspn(s, "z"); }
static NOINLINE char *built(char *d, const char *s) { strcpy(d, s); strcat(d, "-and-more"); stpcpy(d + strlen(d), s); strncpy(d + 100, s, 30); strncat(d, "xyz", 2); return d; }
int main(void)
{
#undef N
#define N(n) for (int i = 0; i < 1200; i++) { a[i] = (char)(i * 11 + n); b[i] = (char)(i * 5 - n); } c##n(HIDE(&a[3]), HIDE(&b[5]), n * 3); mix(a, sizeof a); memcpy(b, a, 600); b[n - 1] ^= (char)(n & 1); SHOW(d##n(HIDE(&a[0]), HIDE(&b[0])));
	ALL
	for (size_t n = 0; n < 400; n += 1 + n / 9) { any(HIDE(&a[1]), HIDE(&b[2]), n, (int)n); mix(a, sizeof a); }
	SHOW(a[0]);
	static struct big p[3] = { { "one", 1 }, { "two", 2 } }, q[2] = { { "three", 3 }, { "four", 4 } };
	assign(HIDE(&p[0]), HIDE(&q[0]), 1); mix(p, sizeof p); assign(HIDE(&p[0]), HIDE(&p[1]), 0); mix(p, sizeof p); SHOW(p[0].y);
	SHOW(lens("some sentence with letters e")); puts(built(a, "begin"));
	return 0;
}
