// SPDX-License-Identifier: GPL-2.0-only
/*
 * string.c: strings, and bits. hot.o has memcpy and memset.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

size_t strlen(const char *text)
{
	const char *end = text;

	while (*end)
		end++;
	return end - text;
}

size_t strnlen(const char *text, size_t limit)
{
	size_t length = 0;

	while (length < limit && text[length])
		length++;
	return length;
}

int strcmp(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (unsigned char)*a < (unsigned char)*b ? -1 : (unsigned char)*a > (unsigned char)*b;
}

int strncmp(const char *a, const char *b, size_t limit)
{
	for (; limit; a++, b++, limit--)
		if (*a != *b || !*a)
			return (unsigned char)*a < (unsigned char)*b ? -1 :
			       (unsigned char)*a > (unsigned char)*b;
	return 0;
}

char *strchr(const char *text, int c)
{
	for (; *text != (char)c; text++)
		if (!*text)
			return NULL;
	return (char *)text;
}

char *strchrnul(const char *text, int c)
{
	while (*text && *text != (char)c)
		text++;
	return (char *)text;
}

/* Pads with zeros up to `limit`; without a NUL if `from` is that long. */
char *strncpy(char *to, const char *from, size_t limit)
{
	size_t i;

	for (i = 0; i < limit; i++) {
		to[i] = *from;
		if (*from)
			from++;
	}
	return to;
}

ssize_t strscpy(char *to, const char *from, size_t room)
{
	size_t length;

	if (!room || room > INT_MAX)
		return -E2BIG;
	length = strnlen(from, room);
	if (length == room) {
		memcpy(to, from, room - 1);
		to[room - 1] = 0;
		return -E2BIG;
	}
	memcpy(to, from, length + 1);
	return length;
}

int memcmp(const void *a, const void *b, size_t count)
{
	const u8 *x = a, *y = b;

	for (; count; x++, y++, count--)
		if (*x != *y)
			return *x - *y;
	return 0;
}

void *memmove(void *to, const void *from, size_t count)
{
	u8 *t = to;
	const u8 *f = from;

	if (t <= f || t >= f + count)
		return memcpy(to, from, count);
	while (count--)
		t[count] = f[count];
	return to;
}

/* The first set bit of a & b (if b) & ~invert from `start` on, or `nbits`. */
static unsigned long next_bit(const unsigned long *a, const unsigned long *b,
			      unsigned long nbits, unsigned long start, unsigned long invert)
{
	unsigned long at = start;

	while (at < nbits) {
		unsigned long word = a[at / BITS_PER_LONG] ^ invert;

		if (b)
			word &= b[at / BITS_PER_LONG];
		word &= ~0ul << (at % BITS_PER_LONG);
		at = round_down(at, BITS_PER_LONG);
		if (word)
			return min(at + __ffs(word), nbits);
		at += BITS_PER_LONG;
	}
	return nbits;
}

unsigned long _find_next_bit(const unsigned long *a, unsigned long nbits, unsigned long start)
{
	return next_bit(a, NULL, nbits, start, 0);
}

unsigned long _find_next_zero_bit(const unsigned long *a, unsigned long nbits, unsigned long start)
{
	return next_bit(a, NULL, nbits, start, ~0ul);
}

unsigned long _find_first_bit(const unsigned long *a, unsigned long nbits)
{
	return next_bit(a, NULL, nbits, 0, 0);
}

unsigned long _find_first_zero_bit(const unsigned long *a, unsigned long nbits)
{
	return next_bit(a, NULL, nbits, 0, ~0ul);
}

unsigned long _find_next_and_bit(const unsigned long *a, const unsigned long *b,
				 unsigned long nbits, unsigned long start)
{
	return next_bit(a, b, nbits, start, 0);
}
