/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Between dma.c, which works on descriptors, dma_rings.c and dma_frames.c. All with the lock held. [any]
 */
#ifndef TWIN_CORE_DMA_H
#define TWIN_CORE_DMA_H

#include <stdbool.h>

#include <twin/dma.h>

#include "frames.h"

static inline uint32_t twin_dma_kind_of(const struct twin_dma *dma,
					const struct twin_dma_ring *ring)
{
	return (uint32_t)(ring - dma->ring);
}

static inline struct twin_piece twin_piece_of(uint64_t address, uint32_t length)
{
	return (struct twin_piece){ .address = address, .length = length };
}

static inline bool twin_has_frame(const uint64_t *bits, uint64_t frame)
{
	return bits[frame / 64] >> (frame % 64) & 1;
}

/* Whether frames [first, last] are in a set. */
static inline bool twin_has_frames(const struct twin_dma *dma, const uint64_t *bits,
				   uint64_t first, uint64_t last)
{
	if (last >= dma->frames->count)
		return false;
	for (; twin_has_frame(bits, first); first++)
		if (first == last)
			return true;
	return false;
}

/* The piece is not empty and does not wrap. */
static inline bool twin_has_piece(const struct twin_dma *dma, const uint64_t *bits,
				  const struct twin_piece *piece)
{
	return twin_has_frames(dma, bits, twin_first_frame(piece), twin_last_frame(piece));
}

/* Write the report; false. */
bool twin_dma_violated(struct twin_dma *dma, const struct twin_dma_ring *ring,
		       enum twin_dma_fault fault, uint32_t index, uint64_t address);

/* Check and copy descriptors from the ring's tail up to a new one: all, or none, and then
 * false and a report. */
bool twin_dma_admit(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t tail);

/* Show what the card has written back to both rings. False and a report: a violation. */
bool twin_dma_follow(struct twin_dma *dma);

/* The bytes that a descriptor which the card has names, as it was checked; it does not wrap. */
struct twin_piece twin_dma_piece(const struct twin_dma *dma, const struct twin_dma_ring *ring,
				 uint32_t index);

/* The ring's own bytes. */
static inline struct twin_piece twin_dma_all_of(const struct twin_dma_ring *ring)
{
	return twin_piece_of(ring->is.base, ring->is.count * (uint32_t)sizeof(*ring->is.copy));
}

/* The card will not use its descriptors any more: unpin what they have. */
void twin_dma_forget(struct twin_dma *dma, struct twin_dma_ring *ring);

#endif /* TWIN_CORE_DMA_H */
