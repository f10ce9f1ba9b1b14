/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Pins, between frames.c, outgoing.c and dma.c. [any]
 *
 *   63      48 47      24 23       0
 *   +---------+----------+----------+
 *   |  owner  |   card   | packets  |    the word of a frame
 *   +---------+----------+----------+
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

#define TWIN_OWNER_SHIFT	48
#define TWIN_PIN_PACKET		1ull		/* one pin of a packet */
#define TWIN_PIN_CARD		(1ull << 24)	/* of the card */
#define TWIN_ALL_PINS		((1ull << TWIN_OWNER_SHIFT) - 1)

_Static_assert(TWIN_FRAME_PINS * TWIN_PIN_PACKET < TWIN_PIN_CARD, "the kinds are apart");
_Static_assert(TWIN_FRAME_PINS * TWIN_PIN_CARD < 1ull << TWIN_OWNER_SHIFT, "pins and owner are");
_Static_assert(TWIN_OWNER_GUEST(TWIN_OWNER_GUESTS - 1) < TWIN_OWNER_DOM0, "owners differ");

static inline uint64_t twin_frame_load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline bool twin_frame_change(uint64_t *word, uint64_t *seen, uint64_t to)
{
	return __atomic_compare_exchange_n(word, seen, to, true, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static inline bool twin_frame_is_full(uint64_t word, uint64_t pin)
{
	return (word & TWIN_FRAME_PINS * pin) == TWIN_FRAME_PINS * pin;
}

/* Owner and pins are judged and changed in one word, so no other CPU comes between.
 * `sent`: only if a packet pins it. */
static inline enum twin_admission twin_frame_pin(uint64_t *word, uint32_t owner, uint64_t pin,
						 bool sent)
{
	uint64_t seen = twin_frame_load(word);

	do {
		if (seen >> TWIN_OWNER_SHIFT != owner ||
		    (sent && !(seen & TWIN_FRAME_PINS * TWIN_PIN_PACKET)))
			return TWIN_FOREIGN;
		if (twin_frame_is_full(seen, pin))
			return TWIN_FULL;
	} while (!twin_frame_change(word, &seen, seen + pin));
	return TWIN_ADMITTED;
}

/* The card's pin for whichever guest has the frame, if a packet pins it. False: it is no
 * guest's, no packet pins it, or there is no room for one more. */
static inline bool twin_frame_pin_sent(uint64_t *word)
{
	uint64_t seen = twin_frame_load(word);

	do {
		if ((seen >> TWIN_OWNER_SHIFT) - 1 >= TWIN_OWNER_DOM0 - 1 ||
		    !(seen & TWIN_FRAME_PINS * TWIN_PIN_PACKET) ||
		    twin_frame_is_full(seen, TWIN_PIN_CARD))
			return false;
	} while (!twin_frame_change(word, &seen, seen + TWIN_PIN_CARD));
	return true;
}

static inline void twin_frame_unpin(uint64_t *word, uint64_t pin)
{
	__atomic_fetch_sub(word, pin, __ATOMIC_RELEASE);
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

/* Pin every frame of a piece, if all are owner's, and if `sent` pinned by packets; else none. A
 * frame that does not exist is foreign. */
enum twin_admission twin_frames_pin(struct twin_frames *frames, uint32_t owner,
				    const struct twin_piece *piece, uint64_t pin, bool sent);

/* Take those pins off: once for each pin, with the same piece. */
void twin_frames_unpin(struct twin_frames *frames, const struct twin_piece *piece, uint64_t pin);

/* The packet of that ticket, while it is being sent; or NULL. */
const struct twin_flight *twin_outgoing_find(struct twin_outgoing *outgoing, uint64_t ticket);

#endif /* TWIN_CORE_FRAMES_H */
