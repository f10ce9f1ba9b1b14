// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owners and pins of machine frames; see <twin/frames.h>.
 */
#include <twin/frames.h>

#include "frames.h"
#include "internal.h"

void twin_frames_init(struct twin_frames *frames, uint32_t *words, uint64_t count)
{
	uint64_t i;

	frames->words = words;
	frames->count = count;
	for (i = 0; i < count; i++)
		__atomic_store_n(&words[i], TWIN_OWNER_NOBODY << TWIN_OWNER_SHIFT, __ATOMIC_RELAXED);
}

uint32_t twin_frame_owner(const struct twin_frames *frames, uint64_t frame)
{
	if (frame >= frames->count)
		return TWIN_OWNER_NOBODY;
	return twin_frame_load(&frames->words[frame]) >> TWIN_OWNER_SHIFT;
}

uint32_t twin_frame_pins(const struct twin_frames *frames, uint64_t frame)
{
	return frame < frames->count ? twin_frame_load(&frames->words[frame]) & TWIN_FRAME_PINS : 0;
}

int twin_frame_move(struct twin_frames *frames, uint64_t frame, uint32_t from, uint32_t to)
{
	uint32_t seen;

	if (frame >= frames->count || to > TWIN_OWNER_DOM0)
		return TWIN_INVALID;
	seen = twin_frame_load(&frames->words[frame]);
	do {
		if (seen >> TWIN_OWNER_SHIFT != from)
			return TWIN_INVALID;
		if (seen & TWIN_FRAME_PINS)
			return TWIN_BUSY;
	} while (!twin_frame_change(&frames->words[frame], &seen, to << TWIN_OWNER_SHIFT));
	return TWIN_OK;
}

/* Frames [first, end), each pinned before. */
static void unpin(struct twin_frames *frames, uint64_t first, uint64_t end)
{
	for (; first < end; first++)
		twin_frame_unpin(&frames->words[first]);
}

static enum twin_admission pin_all(struct twin_frames *frames, uint32_t owner,
				   const struct twin_piece *piece, uint32_t least)
{
	enum twin_admission admission = TWIN_ADMITTED;
	uint64_t frame, end;

	if (!piece->length || piece->length > TWIN_PIECE_BYTES ||
	    piece->address + piece->length - 1 < piece->address)
		return TWIN_MALFORMED;
	end = twin_last_frame(piece) + 1;
	if (end > frames->count)
		return TWIN_FOREIGN;
	for (frame = twin_first_frame(piece); frame < end; frame++) {
		admission = twin_frame_pin(&frames->words[frame], owner, least);
		if (admission != TWIN_ADMITTED) {
			unpin(frames, twin_first_frame(piece), frame);
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
	unpin(frames, twin_first_frame(piece), twin_last_frame(piece) + 1);
}
