/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Accesses of inline assembly in another section, or in a subsection, of which the procedure's
   unwind information says nothing. */
#include "feature.h"

#define FAR(name, place) \
	NOINLINE static long name(long *p) \
	{ \
		long r; \
\
		__asm__ volatile("cmpq $3, (%1)\n\tjne 2f\n\tmov 8(%1), %0\n1:\n\t" place \
				 "\n2:\tmov 16(%1), %0\n\taddq $1, 24(%1)\n\tjmp 1b\n\t.previous" \
				 : "=&r"(r) : "r"(p) : "memory", "cc"); \
		return r + p[3]; \
	}
FAR(section, ".section .fixup,\"ax\"")
FAR(subsection, ".subsection 1")
FAR(text, ".text 1")

int main(void)
{
	long p[] = { 3, 10, 20, 30 };

	SHOW(section(HIDE(&p[0])));
	SHOW(subsection(HIDE(&p[0])));
	p[0] = 4;
	SHOW(section(HIDE(&p[0])));
	SHOW(subsection(HIDE(&p[0])));
	SHOW(text(HIDE(&p[0])));
	return 0;
}
