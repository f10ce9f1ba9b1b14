/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the programs here share. A pointer that was hidden is accessed as one. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define HIDE(p) ({ __typeof__((p) + 0) hidden_ = (p); __asm__ volatile("" : "+r"(hidden_)); hidden_; })

static uint64_t mixed = 0xcbf29ce484222325u;

/* Adds bytes to the sum that is printed. */
static inline void mix(const void *p, size_t n)
{
	for (const unsigned char *b = p; n--; b++)
		mixed = (mixed ^ *b) * 0x100000001b3u;
}

#define SHOW(x) do { __typeof__(x) shown_ = (x); mix(&shown_, sizeof shown_); \
	printf("%s %016llx\n", #x, (unsigned long long)mixed); } while (0)
