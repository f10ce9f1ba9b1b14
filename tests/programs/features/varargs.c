/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "feature.h"
#include <stdarg.h>
struct small { int a; char b; };
struct mixed { double d; long l; };
struct large { long a[5]; };
static NOINLINE long take(const char *f, ...)
{
	va_list l, k;
	long s = 0;
	va_start(l, f);
	va_copy(k, l);
	for (int pass = 0; pass < 2; pass++) {
		va_list *v = HIDE(pass ? &k : &l);
		for (const char *c = f; *c; c++)
			switch (*c) {
			case 'i': s = s * 7 + va_arg(*v, int); break;
			case 'l': s = s * 7 + va_arg(*v, long); break;
			case 'd': s = s * 7 + (long)(va_arg(*v, double) * 16); break;
			case 'D': s = s * 7 + (long)(va_arg(*v, long double) * 16); break;
			case 's': { struct small x = va_arg(*v, struct small); s = s * 7 + x.a + x.b; break; }
			case 'm': { struct mixed x = va_arg(*v, struct mixed); s = s * 7 + (long)x.d + x.l; break; }
			case 'L': { struct large x = va_arg(*v, struct large); s = s * 7 + x.a[0] + x.a[4]; break; }
			case 'p': s = s * 7 + *va_arg(*v, int *); break;
			}
	}
	va_end(l);
	va_end(k);
	return s;
}
static NOINLINE int format(char *to, size_t n, const char *f, ...)
{
	va_list l;
	va_start(l, f);
	int r = vsnprintf(to, n, f, l);
	va_end(l);
	return r;
}
int main(void)
{
	int x = 42;
	char b[200];
	SHOW(take("iiiiiiiiii", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
	SHOW(take("dddddddddd", 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.5));
	SHOW(take("idDidDLsmp", 1, 2.5, 3.25L, 4, 5.5, 6.75L, (struct large){{1, 2, 3, 4, 5}},
		  (struct small){3, 4}, (struct mixed){5.0, 6}, &x));
	SHOW(take("smsmsmsmsmip", (struct small){1, 2}, (struct mixed){1, 2}, (struct small){3, 4}, (struct mixed){3, 4},
		  (struct small){5, 6}, (struct mixed){5, 6}, (struct small){7, 8}, (struct mixed){7, 8},
		  (struct small){9, 1}, (struct mixed){9, 1}, 77, &x));
	SHOW(format(b, sizeof b, "%d %ld %s %c %5.2f %Lf %p %zu %x %d %d %g", 1, 2L, "three", '4', 5.5, 6.5L, (void *)8, (size_t)9, 10, 11, 12, 13.5));
	puts(b);
	return 0;
}
