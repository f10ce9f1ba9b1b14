// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Pages that the card may use: the core's question (core/dma_buffers.h), by Xen's own counts of references. Nearly all
 * descriptors are decided by what is held already (held.h); here is the question for the others.
 *
 *   received into	a page of dom0's that dom0 may write to: a reference with the type "writable", so that
 *			it neither gets another owner nor becomes a page table while the card has it
 *   sent		a page of dom0's, by a reference, or a buffer of Xen's that a guest's packet is in
 *			(transmit.c)
 *   a ring		as what is received into, from attach to detach: write-backs are shown in it
 *
 * No other page is the card's: none of Xen's, of another domain's, or of a device. References are taken
 * when a descriptor is checked, and given back when the card has written it back; or are from attach to detach, and a
 * descriptor takes none.
 *
 * A type may need the TLBs of other processors flushed first (mm.c, _get_page_type), and the last reference
 * frees the page: so interrupts are on.
 */
#include "dma_buffers.h"

#include "platform.h"

/* A ring of the longest begins anywhere in its first page. */
#define RING_PAGES (TWIN_DMA_DESCRIPTORS * sizeof(struct twin_dma_descriptor) / TWIN_PAGE_SIZE + 1)

static uint64_t rings[TWIN_DMA_RINGS * RING_PAGES];
static uint32_t ring_count;

bool xen_page_hold(uint64_t frame, bool written)
{
	struct page_info *page = xen_page_of(frame);

	if (frame >= max_page || !__mfn_valid(frame) || !get_page(page, hardware_domain))
		return false;
	if (!written || get_page_type(page, XEN_TYPE_WRITABLE << XEN_TYPE_SHIFT))
		return true;
	put_page(page);
	return false;
}

void xen_page_release(uint64_t frame, bool written)
{
	struct page_info *page = xen_page_of(frame);

	if (written)
		put_page_type(page);
	put_page(page);
}

static bool hold(uint32_t kind, uint64_t frame)
{
	const uint32_t entry = xen_frame_entry(&xen_frames, frame);

	if (entry == XEN_FRAME_HELD)
		return true;
	if (entry)
		return kind == TWIN_DMA_TRANSMIT && xen_buffer_take(entry);
	if (kind == TWIN_DMA_RECEIVE && xen_held_adopt(frame))
		return true;
	return xen_page_hold(frame, kind == TWIN_DMA_RECEIVE);
}

/* What the entry was when the descriptor was checked it is now, but of a page that was held for that descriptor
 * (xen_held_adopt): its reference stays. */
static void release(uint32_t kind, uint64_t frame)
{
	const uint32_t entry = xen_frame_entry(&xen_frames, frame);

	if (!entry)
		xen_page_release(frame, kind == TWIN_DMA_RECEIVE);
	else if (entry != XEN_FRAME_HELD)
		xen_buffer_let_go(entry - 1);
}

/* Frames [frame, end). */
static void release_between(uint32_t kind, uint64_t frame, uint64_t end)
{
	for (; frame < end; frame++)
		release(kind, frame);
}

enum twin_dma_fault twin_dma_admit_buffer(struct twin_dma *dma, uint32_t kind,
					  const struct twin_piece *piece, struct twin_dma_slot *slot)
{
	const uint64_t first = twin_first_frame(piece), last = twin_last_frame(piece);
	uint64_t frame;

	(void)dma;
	if (last < first)
		return TWIN_DMA_LENGTH;
	for (frame = first; frame <= last; frame++)
		if (!hold(kind, frame)) {
			release_between(kind, first, frame);
			return TWIN_DMA_FOREIGN;
		}
	slot->length = piece->length;
	return TWIN_DMA_FINE;
}

void twin_dma_release_buffer(struct twin_dma *dma, uint32_t kind, const struct twin_dma_slot *slot)
{
	const struct twin_piece piece = twin_piece_of(slot->address, slot->length);

	(void)dma;
	if (piece.length)
		release_between(kind, twin_first_frame(&piece), twin_last_frame(&piece) + 1);
}

void twin_dma_hold(struct twin_dma *dma)
{
	(void)dma;
	ring_count = 0;
}

bool twin_dma_has_ring(const struct twin_dma *dma, const struct twin_piece *ring)
{
	uint64_t frame;

	(void)dma;
	for (frame = twin_first_frame(ring); frame <= twin_last_frame(ring); frame++) {
		if (!xen_page_hold(frame, true))
			return false;
		rings[ring_count++] = frame;
	}
	return true;
}

void twin_dma_let_go(struct twin_dma *dma)
{
	(void)dma;
	while (ring_count)
		xen_page_release(rings[--ring_count], true);
}
