/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Pins, between frames.c, outgoing.c and dma.c. [any]
 *
 *   31      16 15       0
 *   +---------+---------+
 *   |  owner  |  pins   |    the word of a frame
 *   +---------+---------+
 *
 * Pinning acquires and unpinning releases: reads for an owner's packet are over
 * before the frame has another owner.
 *
 * Nearly every piece of a packet lies in one frame. So what is done to one word is here, to
 * be compiled into its callers; frames.c has the pieces that cross frames.
 */
#ifndef TWIN_CORE_FRAMES_H
#define TWIN_CORE_FRAMES_H

#include <stdbool.h>

#include <twin/frames.h>

#define TWIN_OWNER_SHIFT 16

_Static_assert(TWIN_FRAME_PINS == (1u << TWIN_OWNER_SHIFT) - 1, "the lower half");
_Static_assert(TWIN_OWNER_GUEST(TWIN_OWNER_GUESTS - 1) < TWIN_OWNER_DOM0, "owners differ");

static inline uint32_t twin_frame_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline bool twin_frame_change(uint32_t *word, uint32_t *seen, uint32_t to)
{
	return __atomic_compare_exchange_n(word, seen, to, true, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Owner and pins are judged and changed in one word, so no other CPU comes between. */
static inline enum twin_admission twin_frame_pin(uint32_t *word, uint32_t owner, uint32_t least)
{
	uint32_t seen = twin_frame_load(word);

	do {
		if (seen >> TWIN_OWNER_SHIFT != owner || (seen & TWIN_FRAME_PINS) < least)
			return TWIN_FOREIGN;
		if ((seen & TWIN_FRAME_PINS) == TWIN_FRAME_PINS)
			return TWIN_FULL;
	} while (!twin_frame_change(word, &seen, seen + 1));
	return TWIN_ADMITTED;
}

/* The same for whichever guest has the frame, if it has a pin. False: it is no guest's, has
 * no pin, or has no room for one more. */
static inline bool twin_frame_pin_guests_again(uint32_t *word)
{
	uint32_t seen = twin_frame_load(word);

	do {
		if ((seen >> TWIN_OWNER_SHIFT) - 1 >= TWIN_OWNER_DOM0 - 1 ||
		    (seen & TWIN_FRAME_PINS) - 1 >= TWIN_FRAME_PINS - 1)
			return false;
	} while (!twin_frame_change(word, &seen, seen + 1));
	return true;
}

static inline void twin_frame_unpin(uint32_t *word)
{
	__atomic_fetch_sub(word, 1, __ATOMIC_RELEASE);
}

static inline uint64_t twin_first_frame(const struct twin_piece *piece)
{
	return piece->address >> TWIN_PAGE_SHIFT;
}

/* The piece is not empty and does not wrap. */
static inline uint64_t twin_last_frame(const struct twin_piece *piece)
{
	return (piece->address + piece->length - 1) >> TWIN_PAGE_SHIFT;
}

/* Pin every frame of a piece, if all are owner's; else none. A frame that does not
 * exist is foreign. */
enum twin_admission twin_frames_pin(struct twin_frames *frames, uint32_t owner,
				    const struct twin_piece *piece);

/* The same, if each has a pin already: one more for it. */
enum twin_admission twin_frames_pin_again(struct twin_frames *frames, uint32_t owner,
					  const struct twin_piece *piece);

/* Take those pins off: once for each pin, with the same piece. */
void twin_frames_unpin(struct twin_frames *frames, const struct twin_piece *piece);

#endif /* TWIN_CORE_FRAMES_H */
