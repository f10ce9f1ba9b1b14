/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A guest's bytes for the hot routines: host_gather (runtime/hot/hot.h), for a device that
 * cannot gather pieces or compute checksums itself. The bytes of several segments at once,
 * because each call costs as much as a segment's bytes.
 *
 *   hot routine ── ticket, offset, places ──> whose packet? ── its pieces ──> guest's frames
 *   dom0's memory <──────────── copies, and their sums ───────────────────────────┘
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
	uint64_t list;		/* dom0 address of so many words: dom0 addresses, and then sums; or of the
				 * only place itself */
	uint64_t ticket;	/* of a packet that is being sent */
	uint32_t offset;	/* bytes of its pieces that are left out */
	uint32_t bytes;		/* to copy, in all */
	uint32_t each;		/* to each place of the list; to the last one what is left. 0: there is no
				 * list, and nothing is summed */
};

/* The most bytes to a place, for no buffer of the hot routines is larger, and the most places: together
 * they bound the time. */
#define TWIN_GATHER_MOST 4096u
#define TWIN_GATHERS 16u

/* Places for so many bytes: 0 if that is not to be done. */
static inline uint32_t twin_gather_places(const struct twin_gather *gather)
{
	const uint32_t each = gather->each ? gather->each : gather->bytes;

	if (!gather->bytes || each > TWIN_GATHER_MOST || gather->bytes > each * TWIN_GATHERS)
		return 0;
	return gather->each ? (gather->bytes - 1) / each + 1 : 1;
}

/* Where a machine address of a guest's is in the caller's memory: valid to its page's end. */
typedef const void *twin_guest_memory(void *data, uint64_t machine);

/*
 * Copies the bytes to dom0, and puts in place of each address of the list the sum of what went there: of 16-bit
 * words of the byte order in memory, carries added (RFC 1071); the last of an odd number is the first byte of
 * a word. TWIN_OK; TWIN_INVALID if no such packet is being sent by `outgoing`'s CPU, or it has not as many
 * bytes, or there are no places or too many: nothing was copied. TWIN_ABORTED if the list or a place is not
 * dom0's memory: the driver is to be aborted. What was copied before is as if the driver had written it.
 *
 * The list is read once, before all else. Places may lie in each other or in the list: each is written and summed in
 * turn, the sums are written last. [inside], this CPU's.
 *
 * Of a packet that is to go to one place, and has its checksum, neither list nor sum is needed: each is 0.
 */
int twin_gather(struct twin_instance *instance, struct twin_outgoing *outgoing,
		const struct twin_gather *gather, twin_guest_memory *memory, void *data);

#endif /* TWIN_GATHER_H */
