// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A guest's bytes for the hot routines; see <twin/gather.h>. */
#include <twin/gather.h>
#include <twin/sum.h>
#include <twin/switch.h>

#include "frames.h"
#include "internal.h"

/* A stretch of guest's bytes that is in one page of the guest's, at most `length`. */
static uint32_t within_page(uint64_t machine, uint32_t length)
{
	const uint32_t rest = TWIN_PAGE_SIZE - (uint32_t)(machine & PAGE_MASK);

	return length < rest ? length : rest;
}

/* Of a packet's pieces from one on, whether there are so many bytes behind an offset in it. */
static bool has_bytes(const struct twin_piece *piece, const struct twin_piece *end, uint64_t bytes)
{
	uint64_t sum = 0;

	for (; piece < end && sum < bytes; piece++)
		sum += piece->length;
	return sum >= bytes;
}

int twin_gather(struct twin_instance *instance, struct twin_outgoing *outgoing,
		const struct twin_gather *gather, twin_guest_memory *memory, void *data,
		uint32_t *sum)
{
	const struct twin_flight *flight = twin_outgoing_find(outgoing, gather->ticket);
	uint32_t offset = gather->offset, left = gather->length, at, part;
	const struct twin_piece *piece, *end;
	struct twin_sum total = { 0 };
	uint64_t to = gather->to, machine;
	const void *bytes;

	if (!flight || left > TWIN_GATHER_MOST)
		return TWIN_INVALID;
	end = flight->piece + flight->pieces;
	for (piece = flight->piece; piece < end && offset >= piece->length; piece++)
		offset -= piece->length;
	if (!has_bytes(piece, end, (uint64_t)offset + left))
		return TWIN_INVALID;
	for (; left; piece++, offset = 0) {
		for (at = offset; left && at < piece->length; at += part, left -= part, to += part) {
			machine = piece->address + at;
			part = piece->length - at;
			part = within_page(machine, part < left ? part : left);
			bytes = memory(data, machine);
			if (twin_copy_to_dom0(instance, to, bytes, part))
				return TWIN_ABORTED;
			twin_sum_add(&total, bytes, part);
		}
	}
	*sum = total.sum;
	return TWIN_OK;
}
