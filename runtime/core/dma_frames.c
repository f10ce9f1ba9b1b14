// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Frames that the card may use, by the table of frames; see <twin/dma.h> and dma_buffers.h.
 *
 * dom0's frames of the pool are pinned once, and held while the rings are taken: a
 * descriptor costs no pin, unless it is of a guest's frame or of one that is dom0's since.
 */
#include "dma.h"
#include "dma_buffers.h"
#include "internal.h"

/* ---- The pool ------------------------------------------------------------------ */

static struct twin_piece frame_at(uint64_t frame)
{
	return twin_piece_of(frame << TWIN_PAGE_SHIFT, 1);
}

/* Frames [first, end) are held. */
static struct twin_dma_run run_of(uint64_t first, uint64_t end)
{
	const uint64_t bytes = (end - first) << TWIN_PAGE_SHIFT;

	return (struct twin_dma_run){
		.start = first << TWIN_PAGE_SHIFT,
		.bytes = bytes < TWIN_DMA_SHORT ? 0 : bytes - TWIN_DMA_SHORT + 1,
	};
}

/* Frames [first, end) are held: that is the run if it has none that is longer. */
static void lengthen_run(struct twin_dma *dma, uint64_t first, uint64_t end)
{
	const struct twin_dma_run run = run_of(first, end);

	if (run.bytes > dma->run.bytes)
		dma->run = run;
}

/* The run without a frame that is not held any more: what is longer, before or behind it. */
static void shorten_run(struct twin_dma *dma, uint64_t frame)
{
	const struct twin_dma_run run = dma->run;
	const uint64_t first = run.start >> TWIN_PAGE_SHIFT;
	const uint64_t end = (run.start + run.bytes + TWIN_DMA_SHORT - 1) >> TWIN_PAGE_SHIFT;

	if (!run.bytes || frame < first || frame >= end)
		return;
	dma->run = run_of(first, frame);
	lengthen_run(dma, frame + 1, end);
}

/* Pin one of dom0's frames of the pool; whether it is held. */
static bool hold(struct twin_dma *dma, uint64_t frame)
{
	const struct twin_piece piece = frame_at(frame);

	return twin_has_frame(dma->pool, frame) &&
	       twin_frames_pin(dma->frames, TWIN_OWNER_DOM0, &piece, TWIN_PIN_CARD, false) ==
		       TWIN_ADMITTED;
}

/* Pin dom0's frames of the pool. */
void twin_dma_hold(struct twin_dma *dma)
{
	uint64_t frame, first = 0;

	dma->run = run_of(0, 0);
	for (frame = 0; frame < dma->frames->count; frame++) {
		const uint64_t bit = 1ull << (frame % 64);

		dma->held[frame / 64] &= ~bit;
		if (hold(dma, frame)) {
			dma->held[frame / 64] |= bit;
			continue;
		}
		lengthen_run(dma, first, frame);
		first = frame + 1;
	}
	lengthen_run(dma, first, frame);
}

void twin_dma_let_go(struct twin_dma *dma)
{
	uint64_t frame;

	dma->run = run_of(0, 0);
	for (frame = 0; frame < dma->frames->count; frame++)
		if (twin_has_frame(dma->held, frame)) {
			const struct twin_piece piece = frame_at(frame);

			twin_frames_unpin(dma->frames, &piece, TWIN_PIN_CARD);
		}
}

bool twin_dma_has_ring(const struct twin_dma *dma, const struct twin_piece *ring)
{
	return twin_has_piece(dma, dma->held, ring);
}

/* ---- Buffers -------------------------------------------------------------- */

/*
 * Pin a buffer that the card may use and that is not held: dom0's since the rings were
 * taken; a guest's, only for transmission and as long as a packet of that guest's which is
 * being sent pins it.
 */
static enum twin_dma_fault pin_buffer(struct twin_dma *dma, uint32_t kind,
				      const struct twin_piece *piece)
{
	const uint32_t owner = twin_frame_owner(dma->frames, twin_first_frame(piece));
	enum twin_admission admission = TWIN_FOREIGN;

	if (owner == TWIN_OWNER_DOM0 && twin_has_piece(dma, dma->pool, piece))
		admission = twin_frames_pin(dma->frames, owner, piece, TWIN_PIN_CARD, false);
	else if (owner != TWIN_OWNER_DOM0 && owner != TWIN_OWNER_NOBODY &&
		 kind == TWIN_DMA_TRANSMIT)
		admission = twin_frames_pin(dma->frames, owner, piece, TWIN_PIN_CARD, true);
	return admission == TWIN_ADMITTED ? TWIN_DMA_FINE : TWIN_DMA_FOREIGN;
}

enum twin_dma_fault twin_dma_admit_any_buffer(struct twin_dma *dma, uint32_t kind,
					      const struct twin_piece *piece,
					      struct twin_dma_slot *slot)
{
	if (piece->address + piece->length - 1 < piece->address)
		return TWIN_DMA_LENGTH;
	if (twin_has_piece(dma, dma->held, piece))
		return TWIN_DMA_FINE;
	if (pin_buffer(dma, kind, piece))
		return TWIN_DMA_FOREIGN;
	slot->length = piece->length;
	return TWIN_DMA_FINE;
}

/* ---- Giving a frame up ------------------------------------------------------- */

/* Whether a piece, which does not wrap, lies in that frame with a byte of it. */
static bool is_in(const struct twin_piece *piece, uint64_t frame)
{
	return piece->length && twin_first_frame(piece) <= frame && frame <= twin_last_frame(piece);
}

/* Whether the card has a descriptor that names the frame, or the ring itself is there: what
 * the card wrote back is shown in it. */
static bool ring_uses(const struct twin_dma *dma, const struct twin_dma_ring *ring, uint64_t frame)
{
	const struct twin_piece all = twin_dma_all_of(ring);
	uint32_t index = ring->shown;

	if (is_in(&all, frame))
		return true;
	for (; index != ring->tail; index = index + 1 == ring->is.count ? 0 : index + 1) {
		const struct twin_piece piece = twin_dma_piece(dma, ring, index);

		if (is_in(&piece, frame))
			return true;
	}
	return false;
}

static int release(struct twin_dma *dma, uint64_t frame)
{
	const struct twin_piece piece = frame_at(frame);
	uint32_t kind;

	if (!dma->taken || frame >= dma->frames->count || !twin_has_frame(dma->held, frame))
		return TWIN_OK;
	for (kind = 0; kind < TWIN_DMA_RINGS; kind++)
		if (ring_uses(dma, &dma->ring[kind], frame))
			return TWIN_BUSY;
	dma->held[frame / 64] &= ~(1ull << (frame % 64));
	shorten_run(dma, frame);
	twin_frames_unpin(dma->frames, &piece, TWIN_PIN_CARD);
	return TWIN_OK;
}

int twin_dma_release(struct twin_dma *dma, uint64_t frame)
{
	int status;

	lock(&dma->lock);
	status = release(dma, frame);
	unlock(&dma->lock);
	return status;
}
