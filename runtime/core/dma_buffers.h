/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Between descriptors and rings (dma.c, dma_rings.c) and whoever knows whose a frame is: which
 * buffers the card may use, and that they stay so until it is done. With the lock held. [any]
 *
 * Here that is the table of frames (<twin/frames.h>, dma_frames.c). A platform that has other means
 * compiles the core with TWIN_DMA_PLATFORM, the name of a header of its own, and defines these functions
 * itself (platform/xen/held.h, pages.c).
 */
#ifndef TWIN_CORE_DMA_BUFFERS_H
#define TWIN_CORE_DMA_BUFFERS_H

#include "dma.h"

/* Before rings are taken, and after they were given back. */
void twin_dma_hold(struct twin_dma *dma);
void twin_dma_let_go(struct twin_dma *dma);
/* Whether the driver's ring, which does not wrap, lies where it may, and stays there. */
bool twin_dma_has_ring(const struct twin_dma *dma, const struct twin_piece *ring);

/*
 * Of buffers of at most TWIN_DMA_SHORT bytes most are decided in the loops over descriptors, which here call
 * nothing and so keep all that they need in registers:
 *
 *   struct twin_dma_at_hand	what they keep
 *   twin_dma_admit_short	whether the card may use slot->address and `length` bytes; see
 *				twin_dma_admit_buffer. False says nothing, and leaves nothing pinned
 *   twin_dma_release_short	the card is done with a slot's buffer, which has pins. False says that
 *				they were left: twin_dma_release_buffer takes them off
 */
#ifdef TWIN_DMA_PLATFORM

/* The platform's header: struct twin_dma_at_hand, twin_dma_at_hand_of() and the two functions. */
#include TWIN_DMA_PLATFORM

/*
 * A buffer that the card may use, if it is one; not empty, but it may wrap. Then slot->length says what
 * twin_dma_release_buffer() takes back: bytes from slot->address on, which is the buffer's.
 */
enum twin_dma_fault twin_dma_admit_buffer(struct twin_dma *dma, uint32_t kind,
					  const struct twin_piece *piece, struct twin_dma_slot *slot);
/* The card is done with it. Nothing if slot->length is 0. */
void twin_dma_release_buffer(struct twin_dma *dma, uint32_t kind, const struct twin_dma_slot *slot);

#else

struct twin_dma_at_hand {
	struct twin_dma_run run;
	struct twin_frames frames;
};

/* A receive buffer that is not short is in no run. */
static inline struct twin_dma_at_hand twin_dma_at_hand_of(const struct twin_dma *dma,
							  const struct twin_dma_ring *ring)
{
	struct twin_dma_at_hand at_hand = { .run = dma->run, .frames = *dma->frames };

	if (twin_dma_kind_of(dma, ring) == TWIN_DMA_RECEIVE && ring->is.buffer > TWIN_DMA_SHORT)
		at_hand.run.bytes = 0;
	return at_hand;
}

/* One in one frame of a guest's that a packet pins: that gets one more pin. */
static inline __attribute__((always_inline)) bool
twin_dma_pin_sent(const struct twin_frames *frames, struct twin_dma_slot *slot, uint64_t length)
{
	const struct twin_piece piece = twin_piece_of(slot->address, (uint32_t)length);
	const uint64_t frame = twin_first_frame(&piece);

	if (!piece.length || frame != twin_last_frame(&piece) || frame >= frames->count ||
	    !twin_frame_pin_sent(&frames->words[frame]))
		return false;
	slot->length = (uint32_t)length;
	return true;
}

/* One compare with the run of frames that are held. */
static inline __attribute__((always_inline)) bool
twin_dma_admit_short(const struct twin_dma_at_hand *at_hand, uint32_t kind,
		     struct twin_dma_slot *slot, uint64_t length)
{
	if (slot->address - at_hand->run.start < at_hand->run.bytes)
		return true;
	return kind == TWIN_DMA_TRANSMIT && twin_dma_pin_sent(&at_hand->frames, slot, length);
}

/* Those of one frame. */
static inline __attribute__((always_inline)) bool
twin_dma_release_short(const struct twin_dma_at_hand *at_hand, uint32_t kind, struct twin_dma_slot *slot)
{
	const struct twin_piece piece = twin_piece_of(slot->address, slot->length);

	(void)kind;
	if (twin_first_frame(&piece) != twin_last_frame(&piece))
		return false;
	twin_frame_unpin(&at_hand->frames.words[twin_first_frame(&piece)], TWIN_PIN_CARD);
	slot->length = 0;
	return true;
}

/* The uncommon cases of admitting, those that are refused among them. */
enum twin_dma_fault twin_dma_admit_any_buffer(struct twin_dma *dma, uint32_t kind,
					      const struct twin_piece *piece,
					      struct twin_dma_slot *slot);

/*
 * A buffer that the card may use; not empty. slot: what is pinned for it.
 *
 * Those that twin_dma_admit_short does not decide lie in one frame or two that are held, or in one of a
 * guest's that a packet pins: these cases are decided here, and all others, what is refused among them, by
 * twin_dma_admit_any_buffer. One that wraps has its last frame far before its first. A guest's frame
 * gets one more pin in the step that judges its word.
 */
static inline enum twin_dma_fault twin_dma_admit_buffer(struct twin_dma *dma, uint32_t kind,
							const struct twin_piece *piece,
							struct twin_dma_slot *slot)
{
	const uint64_t first = twin_first_frame(piece), last = twin_last_frame(piece);

	if (last - first <= 1 && last < dma->frames->count) {
		if (twin_has_frame(dma->held, first) && twin_has_frame(dma->held, last))
			return TWIN_DMA_FINE;
		if (kind == TWIN_DMA_TRANSMIT && first == last &&
		    twin_frame_pin_sent(&dma->frames->words[first])) {
			slot->length = piece->length;
			return TWIN_DMA_FINE;
		}
	}
	return twin_dma_admit_any_buffer(dma, kind, piece, slot);
}

static inline void twin_dma_release_buffer(struct twin_dma *dma, uint32_t kind,
					   const struct twin_dma_slot *slot)
{
	const struct twin_piece piece = twin_piece_of(slot->address, slot->length);

	(void)kind;
	if (!piece.length)
		return;
	if (twin_first_frame(&piece) == twin_last_frame(&piece))
		twin_frame_unpin(&dma->frames->words[twin_first_frame(&piece)], TWIN_PIN_CARD);
	else
		twin_frames_unpin(dma->frames, &piece, TWIN_PIN_CARD);
}

#endif
#endif /* TWIN_CORE_DMA_BUFFERS_H */
