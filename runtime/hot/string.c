// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * memcpy and memset like the kernel's on machines with fast string operations:
 * one instruction. The rewriter splits it where translations end (paper,
 * 5.1.1), so checks cost per page, not per byte.
 */
#include "internal.h"

#undef memcpy
#undef memset

void *memcpy(void *to, const void *from, size_t n)
{
	void *end = to;

	asm volatile("rep movsb" : "+D" (end), "+S" (from), "+c" (n) : : "memory");
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	void *end = to;

	asm volatile("rep stosb" : "+D" (end), "+c" (n) : "a" (byte) : "memory");
	return to;
}
