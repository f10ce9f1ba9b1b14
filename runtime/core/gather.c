// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A guest's bytes for the hot routines; see <twin/gather.h>. */
#include <twin/gather.h>
#include <twin/sum.h>
#include <twin/switch.h>

#include "frames.h"
#include "internal.h"

/* Where the next bytes of a packet are. */
struct source {
	const struct twin_piece *piece;
	uint32_t offset;		/* in that */
	twin_guest_memory *memory;
	void *data;
};

static inline uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t rest_of_page(uint64_t address)
{
	return TWIN_PAGE_SIZE - (uint32_t)(address & PAGE_MASK);
}

/* Behind `skipped` bytes of a packet; false if it has not so many more. */
static bool find_source(struct source *source, const struct twin_flight *flight, uint64_t skipped,
			uint64_t bytes)
{
	const struct twin_piece *piece = flight->piece, *end = piece + flight->pieces;
	uint64_t has = 0;

	for (; piece < end && skipped >= piece->length; piece++)
		skipped -= piece->length;
	source->piece = piece;
	source->offset = (uint32_t)skipped;
	for (; piece < end && has < skipped + bytes; piece++)
		has += piece->length;
	return has >= skipped + bytes;
}

/* Copies so many bytes, which the source has, to memory that is here. */
INLINE void copy_from(struct source *source, uint8_t *to, uint32_t left)
{
	uint32_t part, rest;

	for (; left; left -= part, to += part) {
		const uint64_t machine = source->piece->address + source->offset;

		rest = source->piece->length - source->offset;
		part = least(least(left, rest), rest_of_page(machine));
		copy(to, source->memory(source->data, machine), part);
		source->offset += part;
		if (part == rest) {
			source->piece++;
			source->offset = 0;
		}
	}
}

/* fill_place() for a place that crosses pages: page by page, as copy_pages() of switch.c. */
static __attribute__((noinline)) int fill_across(struct twin_instance *instance, struct source *source,
						 uint64_t to, uint32_t left, uint64_t *sum)
{
	struct twin_sum total = { 0 };
	uint64_t mapped;
	uint32_t part;

	for (; left; left -= part, to += part) {
		part = least(left, rest_of_page(to));
		if (twin_translate(instance, to, &mapped))
			return TWIN_ABORTED;
		copy_from(source, (uint8_t *)mapped, part);
		if (sum)
			twin_sum_add(&total, (const void *)mapped, part);
	}
	if (sum)
		*sum = twin_sum_of(&total);
	return TWIN_OK;
}

/* Copies to one place, which has so many bytes, and gives their sum, unless sum is NULL: of what is there, so that a
 * guest that changes its bytes meanwhile changes nothing of it. */
INLINE int fill_place(struct twin_instance *instance, struct source *source, uint64_t to, uint32_t left,
		      uint64_t *sum)
{
	uint64_t mapped;

	if (RARE(to + left - 1 < to))		/* wraps */
		return TWIN_ABORTED;
	if (RARE(left > rest_of_page(to)))
		return fill_across(instance, source, to, left, sum);
	if (RARE(twin_translate(instance, to, &mapped)))
		return TWIN_ABORTED;
	copy_from(source, (uint8_t *)mapped, left);
	if (sum)
		*sum = twin_sum_fold(twin_sum_bytes(0, (const void *)mapped, left));
	return TWIN_OK;
}

int twin_gather(struct twin_instance *instance, struct twin_outgoing *outgoing,
		const struct twin_gather *gather, twin_guest_memory *memory, void *data)
{
	const struct twin_flight *flight = twin_outgoing_find(outgoing, gather->ticket);
	const uint32_t places = twin_gather_places(gather), bytes = places * sizeof(uint64_t);
	struct source source = { .memory = memory, .data = data };
	uint32_t left = gather->bytes, each = gather->each, i;
	uint64_t list[TWIN_GATHERS];

	if (!flight || !places || !find_source(&source, flight, gather->offset, left))
		return TWIN_INVALID;
	if (!each)
		return fill_place(instance, &source, gather->list, left, NULL);
	if (twin_copy_from_dom0(instance, list, gather->list, bytes))
		return TWIN_ABORTED;
	for (i = 0; i < places; i++, left -= each)
		if (fill_place(instance, &source, list[i], least(left, each), &list[i]))
			return TWIN_ABORTED;
	return twin_copy_to_dom0(instance, gather->list, list, bytes);
}
