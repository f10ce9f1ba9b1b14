// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Taking rings of descriptors and giving them back; see <twin/dma.h>.
 */
#include "dma.h"
#include "dma_buffers.h"
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
	const struct twin_piece piece = twin_dma_all_of(ring);

	if (is_ring_valid(ring, twin_dma_kind_of(dma, ring)) &&
	    piece.address + piece.length - 1 >= piece.address &&
	    twin_dma_has_ring(dma, &piece))
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

static void drop(struct twin_dma *dma, uint32_t rings)
{
	while (rings-- > 0)
		twin_dma_forget(dma, &dma->ring[rings]);
	twin_dma_let_go(dma);
}

static int take(struct twin_dma *dma, const struct twin_dma_ring_config rings[TWIN_DMA_RINGS])
{
	uint32_t kind;

	if (dma->taken)
		return TWIN_BUSY;
	twin_dma_hold(dma);
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
