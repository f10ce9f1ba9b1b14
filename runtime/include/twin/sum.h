/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sums of bytes as a checksum has them (RFC 1071): of 16-bit words in the byte order of memory, carries
 * added. Any even number of bytes may be added at once, so it is eight where there are eight (2 A, 2 C).
 *
 * Used by the hot routines, which are rewritten, and by the runtime below them: nothing but
 * arithmetic and reading what is named. Any context.
 */
#ifndef TWIN_SUM_H
#define TWIN_SUM_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

/* A part of a sum, 64 bits with the carry added, and another. */
static inline uint64_t twin_sum_carry(uint64_t a, uint64_t b)
{
	a += b;
	return a + (a < b);
}

/* Additions of 64 bytes, the first by `adcq`, with the carry of one before, or by `addq`. */
#define TWIN_SUM_64(first, at)          \
	#first " " #at "+0(%1), %0\n\t"    \
	"adcq " #at "+8(%1), %0\n\t"    \
	"adcq " #at "+16(%1), %0\n\t"   \
	"adcq " #at "+24(%1), %0\n\t"   \
	"adcq " #at "+32(%1), %0\n\t"   \
	"adcq " #at "+40(%1), %0\n\t"   \
	"adcq " #at "+48(%1), %0\n\t"   \
	"adcq " #at "+56(%1), %0\n\t"

/* Adds 64 bytes. No compiler keeps the carry from one addition to the next; and where this is rewritten an
 * address is cut once for all. */
static inline uint64_t twin_sum_block(uint64_t sum, const uint8_t *bytes)
{
	__asm__(TWIN_SUM_64(addq, 0) "adcq $0, %0"
		: "+&r" (sum) : "r" (bytes), "m" (*(const uint8_t (*)[64])bytes) : "cc");
	return sum;
}

/* Adds 256: of a full frame's 1,480 bytes all but 200. */
static inline uint64_t twin_sum_blocks(uint64_t sum, const uint8_t *bytes)
{
	__asm__(TWIN_SUM_64(addq, 0) TWIN_SUM_64(adcq, 64) TWIN_SUM_64(adcq, 128) TWIN_SUM_64(adcq, 192)
		"adcq $0, %0"
		: "+&r" (sum) : "r" (bytes), "m" (*(const uint8_t (*)[256])bytes) : "cc");
	return sum;
}

/* Adds 32. */
static inline uint64_t twin_sum_half(uint64_t sum, const uint8_t *bytes)
{
	__asm__("addq 0(%1), %0\n\t"
		"adcq 8(%1), %0\n\t"
		"adcq 16(%1), %0\n\t"
		"adcq 24(%1), %0\n\t"
		"adcq $0, %0"
		: "+&r" (sum) : "r" (bytes), "m" (*(const uint8_t (*)[32])bytes) : "cc");
	return sum;
}

/* Adds any bytes to a part of a sum. The last of an odd number is the first byte of a word. */
static inline uint64_t twin_sum_bytes(uint64_t sum, const void *bytes, uint32_t length)
{
	const uint8_t *at = bytes, *end = at + (length & ~255u);
	uint64_t eight;
	uint32_t four;
	uint16_t two;

	for (; at != end; at += 256)
		sum = twin_sum_blocks(sum, at);
	for (end += length & 192; at != end; at += 64)
		sum = twin_sum_block(sum, at);
	if (length & 32) {
		sum = twin_sum_half(sum, at);
		at += 32;
		end += 32;
	}
	for (end += length & 24; at != end; at += sizeof(eight)) {
		__builtin_memcpy(&eight, at, sizeof(eight));
		sum = twin_sum_carry(sum, eight);
	}
	if (length & sizeof(four)) {
		__builtin_memcpy(&four, at, sizeof(four));
		sum = twin_sum_carry(sum, four);
		at += sizeof(four);
	}
	if (length & sizeof(two)) {
		__builtin_memcpy(&two, at, sizeof(two));
		sum = twin_sum_carry(sum, two);
		at += sizeof(two);
	}
	return length & 1 ? twin_sum_carry(sum, *at) : sum;
}

/*
 * The sum's 16 bits: 0 only of nothing but zeros; 0xffff if the bytes contain a right checksum. A number and
 * itself turned by half, added, have the sum of both halves, with its carry, in the upper one.
 */
static inline uint32_t twin_sum_fold(uint64_t sum)
{
	uint32_t half;

	sum += sum << 32 | sum >> 32;
	half = sum >> 32;
	half += half << 16 | half >> 16;
	return half >> 16;
}

/* A sum of bytes that come in pieces. Zeroed: of none. */
struct twin_sum {
	uint64_t sum;		/* a part of it */
	uint32_t count;		/* bytes so far */
};

static inline void twin_sum_add(struct twin_sum *sum, const void *bytes, uint32_t length)
{
	uint32_t part;

	if (sum->count & 1) {
		/* Behind an odd number of bytes the first one is the second of a word (RFC 1071, 2 B). */
		part = twin_sum_fold(twin_sum_bytes(0, bytes, length));
		sum->sum = twin_sum_carry(sum->sum, (part << 8 | part >> 8) & 0xffff);
	} else {
		sum->sum = twin_sum_bytes(sum->sum, bytes, length);
	}
	sum->count += length;
}

/* All of it: 0 to 0xffff. */
static inline uint32_t twin_sum_of(const struct twin_sum *sum)
{
	return twin_sum_fold(sum->sum);
}

#endif /* TWIN_SUM_H */
