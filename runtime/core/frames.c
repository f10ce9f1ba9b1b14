// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owners and pins of machine frames; see <twin/frames.h>.
 *
 *   31      16 15       0
 *   +---------+---------+
 *   |  owner  |  pins   |
 *   +---------+---------+
 *
 * Pinning acquires and unpinning releases: reads for an owner's packet are over
 * before the frame has another owner.
 */
#include <twin/frames.h>

#include "frames.h"
#include "internal.h"

#define OWNER_SHIFT 16

_Static_assert(TWIN_FRAME_PINS == (1u << OWNER_SHIFT) - 1, "the lower half");
_Static_assert(TWIN_OWNER_GUEST(TWIN_OWNER_GUESTS - 1) < TWIN_OWNER_DOM0, "owners differ");

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static bool change(uint32_t *word, uint32_t *seen, uint32_t to)
{
	return __atomic_compare_exchange_n(word, seen, to, true, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

void twin_frames_init(struct twin_frames *frames, uint32_t *words, uint64_t count)
{
	uint64_t i;

	frames->words = words;
	frames->count = count;
	for (i = 0; i < count; i++)
		__atomic_store_n(&words[i], TWIN_OWNER_NOBODY << OWNER_SHIFT, __ATOMIC_RELAXED);
}

uint32_t twin_frame_owner(const struct twin_frames *frames, uint64_t frame)
{
	if (frame >= frames->count)
		return TWIN_OWNER_NOBODY;
	return load(&frames->words[frame]) >> OWNER_SHIFT;
}

uint32_t twin_frame_pins(const struct twin_frames *frames, uint64_t frame)
{
	return frame < frames->count ? load(&frames->words[frame]) & TWIN_FRAME_PINS : 0;
}

int twin_frame_move(struct twin_frames *frames, uint64_t frame, uint32_t from, uint32_t to)
{
	uint32_t seen;

	if (frame >= frames->count || to > TWIN_OWNER_DOM0)
		return TWIN_INVALID;
	seen = load(&frames->words[frame]);
	do {
		if (seen >> OWNER_SHIFT != from)
			return TWIN_INVALID;
		if (seen & TWIN_FRAME_PINS)
			return TWIN_BUSY;
	} while (!change(&frames->words[frame], &seen, to << OWNER_SHIFT));
	return TWIN_OK;
}

/* One pin more for owner's frame that has `least` of them. */
static enum twin_admission pin(uint32_t *word, uint32_t owner, uint32_t least)
{
	uint32_t seen = load(word);

	do {
		if (seen >> OWNER_SHIFT != owner || (seen & TWIN_FRAME_PINS) < least)
			return TWIN_FOREIGN;
		if ((seen & TWIN_FRAME_PINS) == TWIN_FRAME_PINS)
			return TWIN_FULL;
	} while (!change(word, &seen, seen + 1));
	return TWIN_ADMITTED;
}

/* Frames [first, end), each pinned before. */
static void unpin(struct twin_frames *frames, uint64_t first, uint64_t end)
{
	for (; first < end; first++)
		__atomic_fetch_sub(&frames->words[first], 1, __ATOMIC_RELEASE);
}

static uint64_t first_frame(const struct twin_piece *piece)
{
	return piece->address >> TWIN_PAGE_SHIFT;
}

/* The frame after the last. The piece is not empty and does not wrap. */
static uint64_t end_frame(const struct twin_piece *piece)
{
	return ((piece->address + piece->length - 1) >> TWIN_PAGE_SHIFT) + 1;
}

static enum twin_admission pin_all(struct twin_frames *frames, uint32_t owner,
				   const struct twin_piece *piece, uint32_t least)
{
	enum twin_admission admission = TWIN_ADMITTED;
	uint64_t frame, end;

	if (!piece->length || piece->length > TWIN_PIECE_BYTES ||
	    piece->address + piece->length - 1 < piece->address)
		return TWIN_MALFORMED;
	end = end_frame(piece);
	if (end > frames->count)
		return TWIN_FOREIGN;
	for (frame = first_frame(piece); frame < end; frame++) {
		admission = pin(&frames->words[frame], owner, least);
		if (admission != TWIN_ADMITTED) {
			unpin(frames, first_frame(piece), frame);
			break;
		}
	}
	return admission;
}

enum twin_admission twin_frames_pin(struct twin_frames *frames, uint32_t owner,
				    const struct twin_piece *piece)
{
	return pin_all(frames, owner, piece, 0);
}

enum twin_admission twin_frames_pin_again(struct twin_frames *frames, uint32_t owner,
					  const struct twin_piece *piece)
{
	return pin_all(frames, owner, piece, 1);
}

void twin_frames_unpin(struct twin_frames *frames, const struct twin_piece *piece)
{
	unpin(frames, first_frame(piece), end_frame(piece));
}
