/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A guest's bytes for the hot routines: host_gather (runtime/hot/hot.h), for a device that
 * cannot gather pieces or compute checksums itself.
 *
 *   hot routine ── ticket, offset, length ──> whose packet? ── its pieces ──> guest's frames
 *   dom0's memory <──────────── copy, and their sum ─────────────────────────────┘
 *
 * The pieces are the runtime's own (struct twin_flight), which were the guest's when the packet
 * was admitted and are pinned since: what dom0's memory says of them is not read. Driver code
 * chooses which packet, of those that are being sent through it anyway.
 */
#ifndef TWIN_GATHER_H
#define TWIN_GATHER_H

#include <twin/frames.h>
#include <twin/runtime.h>

/* What driver code asks for; all of it may be anything. */
struct twin_gather {
	uint64_t to;		/* dom0 address */
	uint64_t ticket;	/* of a packet that is being sent */
	uint32_t offset;	/* bytes of its pieces that are left out */
	uint32_t length;	/* bytes to copy */
};

/* The most bytes at once, which bounds the time: no buffer of the hot routines is larger. */
#define TWIN_GATHER_MOST 4096u

/* Where a machine address of a guest's is in the caller's memory: valid to its page's end. */
typedef const void *twin_guest_memory(void *data, uint64_t machine);

/*
 * Copies the bytes to dom0 and adds them up as 16-bit words of the byte order in memory, carries
 * added (RFC 1071); the last of an odd number is the first byte of a word. TWIN_OK; TWIN_INVALID if no such
 * packet is being sent by `outgoing`'s CPU, or it has not as many bytes: nothing was copied;
 * TWIN_ABORTED if `to` is not dom0's memory: the driver is to be aborted. A guest may
 * change its bytes meanwhile: then the sum is of others, and only its packet is wrong. [inside], this CPU's.
 */
int twin_gather(struct twin_instance *instance, struct twin_outgoing *outgoing,
		const struct twin_gather *gather, twin_guest_memory *memory, void *data,
		uint32_t *sum);

/*
 * A sum of bytes that come in pieces. Zeroed: of none. Inline, because Xen's runtime, whose packets
 * lie in buffers of its own, has no other use for this file.
 */
struct twin_sum {
	uint32_t sum;		/* 0 to 0xffff */
	uint32_t count;		/* bytes so far */
};

/* Addition with the carry added: what RFC 1071 (2 C) does in 16 bits, in 64. */
static inline uint64_t twin_sum_carry(uint64_t a, uint64_t b)
{
	a += b;
	return a + (a < b);
}

static inline void twin_sum_add(struct twin_sum *sum, const void *bytes, uint32_t length)
{
	const uint8_t *at = bytes;
	uint64_t words = 0, word;
	uint32_t i;

	for (; length >= sizeof(word); length -= sizeof(word), at += sizeof(word)) {
		__builtin_memcpy(&word, at, sizeof(word));
		words = twin_sum_carry(words, word);
		sum->count += sizeof(word);
	}
	for (word = 0, i = 0; i < length; i++)
		word |= (uint64_t)at[i] << (8 * i);
	words = twin_sum_carry(words, word);
	while (words >> 16)
		words = (words & 0xffff) + (words >> 16);
	/* Behind an odd number of bytes the first one is the second of a word (RFC 1071, 2 B). */
	if (sum->count & 1)
		words = (words << 8 | words >> 8) & 0xffff;
	sum->count += length;
	sum->sum += (uint32_t)words;
	sum->sum = (sum->sum & 0xffff) + (sum->sum >> 16);
}

#endif /* TWIN_GATHER_H */
