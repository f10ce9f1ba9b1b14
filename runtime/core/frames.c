// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owners and pins of machine frames; see <twin/frames.h>.
 */
#include <twin/frames.h>

#include "frames.h"
#include "internal.h"

void twin_frames_init(struct twin_frames *frames, uint64_t *words, uint64_t count)
{
	uint64_t i;

	frames->words = words;
	frames->count = count;
	for (i = 0; i < count; i++)
		__atomic_store_n(&words[i], (uint64_t)TWIN_OWNER_NOBODY << TWIN_OWNER_SHIFT,
				 __ATOMIC_RELAXED);
}

uint32_t twin_frame_owner(const struct twin_frames *frames, uint64_t frame)
{
	if (frame >= frames->count)
		return TWIN_OWNER_NOBODY;
	return (uint32_t)(twin_frame_load(&frames->words[frame]) >> TWIN_OWNER_SHIFT);
}

uint32_t twin_frame_pins(const struct twin_frames *frames, uint64_t frame)
{
	uint64_t word;

	if (frame >= frames->count)
		return 0;
	word = twin_frame_load(&frames->words[frame]);
	return (uint32_t)((word & TWIN_FRAME_PINS) + (word / TWIN_PIN_CARD & TWIN_FRAME_PINS));
}

int twin_frame_move(struct twin_frames *frames, uint64_t frame, uint32_t from, uint32_t to)
{
	uint64_t seen;

	if (frame >= frames->count || to > TWIN_OWNER_DOM0)
		return TWIN_INVALID;
	seen = twin_frame_load(&frames->words[frame]);
	do {
		if (seen >> TWIN_OWNER_SHIFT != from)
			return TWIN_INVALID;
		if (seen & TWIN_ALL_PINS)
			return TWIN_BUSY;
	} while (!twin_frame_change(&frames->words[frame], &seen,
				    (uint64_t)to << TWIN_OWNER_SHIFT));
	return TWIN_OK;
}

/* Frames [first, end), each pinned before. */
static void unpin(struct twin_frames *frames, uint64_t first, uint64_t end, uint64_t pin)
{
	for (; first < end; first++)
		twin_frame_unpin(&frames->words[first], pin);
}

enum twin_admission twin_frames_pin(struct twin_frames *frames, uint32_t owner,
				    const struct twin_piece *piece, uint64_t pin, bool sent)
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
		admission = twin_frame_pin(&frames->words[frame], owner, pin, sent);
		if (admission != TWIN_ADMITTED) {
			unpin(frames, twin_first_frame(piece), frame, pin);
			break;
		}
	}
	return admission;
}

void twin_frames_unpin(struct twin_frames *frames, const struct twin_piece *piece, uint64_t pin)
{
	unpin(frames, twin_first_frame(piece), twin_last_frame(piece) + 1, pin);
}
