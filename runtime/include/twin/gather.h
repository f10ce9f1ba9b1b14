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

#endif /* TWIN_GATHER_H */
