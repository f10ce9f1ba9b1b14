// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Taking rings of descriptors and giving them back; see <twin/dma.h>.
 *
 * dom0's frames of the pool are pinned once, and held while the rings are taken: a
 * descriptor costs no pin, unless it is of a guest's frame or of one that is dom0's since.
 */
#include "dma.h"
#include "internal.h"

uint64_t twin_dma_size(void)
{
	return sizeof(struct twin_dma);
}

void twin_dma_init(struct twin_dma *dma, struct twin_frames *frames, const uint64_t *pool,
		   uint64_t *held)
{
	uint64_t i;

	for (i = 0; i < sizeof(*dma); i++)
		((volatile uint8_t *)dma)[i] = 0;
	dma->frames = frames;
	dma->pool = pool;
	dma->held = held;
}

static struct twin_piece descriptors_of(const struct twin_dma_ring *ring)
{
	return twin_piece_of(ring->is.base, ring->is.count * (uint32_t)sizeof(*ring->is.copy));
}

/* 13.4.25 to 13.4.29, 13.4.36 to 13.4.40. A receive buffer of no bytes would be checked by
 * none, and no card has it (13.4.22). */
static bool is_ring_valid(const struct twin_dma_ring *ring, uint32_t kind)
{
	const struct twin_dma_ring_config *is = &ring->is;

	return (kind == TWIN_DMA_TRANSMIT || is->buffer) && is->count &&
	       is->count <= TWIN_DMA_DESCRIPTORS && !(is->count % TWIN_DMA_GRANULE) &&
	       !(is->base % sizeof(*is->copy)) && is->head < is->count && is->tail < is->count;
}

static bool may_be_taken(struct twin_dma *dma, const struct twin_dma_ring *ring)
{
	const struct twin_piece piece = descriptors_of(ring);

	if (is_ring_valid(ring, twin_dma_kind_of(dma, ring)) &&
	    piece.address + piece.length - 1 >= piece.address &&
	    twin_has_piece(dma, dma->held, &piece))
		return true;
	return twin_dma_violated(dma, ring, TWIN_DMA_RING, 0, ring->is.base);
}

static bool take_ring(struct twin_dma *dma, struct twin_dma_ring *ring,
		      const struct twin_dma_ring_config *config)
{
	*ring = (struct twin_dma_ring){ .is = *config, .shown = config->head,
					.tail = config->head, .reported = config->head };
	if (!may_be_taken(dma, ring) || !twin_dma_admit(dma, ring, config->tail))
		return false;
	*config->tail_register = config->tail;
	return true;
}

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
static void hold_pool(struct twin_dma *dma)
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

static void release_pool(struct twin_dma *dma)
{
	uint64_t frame;

	dma->run = run_of(0, 0);
	for (frame = 0; frame < dma->frames->count; frame++)
		if (twin_has_frame(dma->held, frame)) {
			const struct twin_piece piece = frame_at(frame);

			twin_frames_unpin(dma->frames, &piece, TWIN_PIN_CARD);
		}
}

static void drop(struct twin_dma *dma, uint32_t rings)
{
	while (rings-- > 0)
		twin_dma_forget(dma, &dma->ring[rings]);
	release_pool(dma);
}

static int take(struct twin_dma *dma, const struct twin_dma_ring_config rings[TWIN_DMA_RINGS])
{
	uint32_t kind;

	if (dma->taken)
		return TWIN_BUSY;
	hold_pool(dma);
	for (kind = 0; kind < TWIN_DMA_RINGS; kind++)
		if (!take_ring(dma, &dma->ring[kind], &rings[kind])) {
			drop(dma, kind);
			return TWIN_INVALID;
		}
	__atomic_store_n(&dma->taken, 1, __ATOMIC_RELEASE);
	return TWIN_OK;
}

int twin_dma_take(struct twin_dma *dma, const struct twin_dma_ring_config rings[TWIN_DMA_RINGS])
{
	int status;

	lock(&dma->lock);
	status = take(dma, rings);
	unlock(&dma->lock);
	return status;
}

void twin_dma_give_back(struct twin_dma *dma)
{
	lock(&dma->lock);
	if (dma->taken) {
		twin_dma_follow(dma);
		drop(dma, TWIN_DMA_RINGS);
		__atomic_store_n(&dma->taken, 0, __ATOMIC_RELEASE);
	}
	unlock(&dma->lock);
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
	const struct twin_piece all = descriptors_of(ring);
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

bool twin_dma_has_half(struct twin_dma *dma, uint32_t kind)
{
	const struct twin_dma_ring *ring = &dma->ring[kind];
	bool has = false;
	uint32_t left;

	lock(&dma->lock);
	if (dma->taken) {
		left = ring->tail + (ring->tail < ring->shown ? ring->is.count : 0) - ring->shown;
		has = left >= ring->is.count / 2;
	}
	unlock(&dma->lock);
	return has;
}

/* ---- For hosts --------------------------------------------------------------- */

void twin_instance_set_dma(struct twin_instance *instance, struct twin_dma *dma)
{
	instance->dma = dma;
}

void twin_dma_events(struct twin_dma *dma, struct twin_dma_statistics *copy,
		     struct twin_dma_report *last)
{
	lock(&dma->lock);
	*copy = dma->statistics;
	*last = dma->report;
	unlock(&dma->lock);
}
