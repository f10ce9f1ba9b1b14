/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which buffers the card may use, as far as one look says it: what the core's loops over descriptors ask
 * (core/dma_buffers.h), which call nothing.
 *
 * A table has two bytes for each frame of the machine:
 *
 *   0		nothing is known of it: pages.c asks Xen, for each descriptor
 *   HELD	dom0's, with a reference and the type "writable", from attach to detach (held.c). A descriptor
 *		that names it takes nothing, and has nothing to give back
 *   number + 1	of a buffer of Xen's (transmit.c), which may be sent while a guest's packet is in it; descriptors
 *		that name it are counted
 *
 * Entries are written in attaching and detaching alone, while the card uses neither. So what a frame was when
 * its descriptor was checked it still is when the card is done. Neither dom0 nor driver code has a
 * way to the table.
 *
 * It is in parts of a page each, in Xen's map of all memory. Memory that Xen maps for it in one piece (vzalloc) would
 * be unmapped page by page, each with an interrupt to all processors that is waited for, while dom0 stands
 * (dom0/registers.c).
 */
#ifndef TWIN_XEN_HELD_H
#define TWIN_XEN_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include <twin/abi.h>
#include <twin/dma.h>

#define XEN_BUFFERS	512u
#define XEN_FRAME_HELD	0xffffu
_Static_assert(XEN_BUFFERS < XEN_FRAME_HELD, "an entry says which");

#define XEN_PART_SHIFT	11	/* log2 of a part's entries */
#define XEN_PARTS	(1u << (32 - TWIN_PAGE_SHIFT - XEN_PART_SHIFT))	/* machines have 4 GiB at most (attach.c) */
_Static_assert(sizeof(uint16_t) << XEN_PART_SHIFT == TWIN_PAGE_SIZE, "a part is a page");

struct xen_frames {
	uint16_t *const *part;
	uint64_t count;		/* of entries; 0: there is no table */
};
extern struct xen_frames xen_frames;

/* See transmit.c. The card may use a buffer that is TAKEN or SENT. */
enum xen_buffer_state {
	XEN_BUFFER_FREE = 0,
	XEN_BUFFER_TAKEN = 1,
	XEN_BUFFER_SENT = 2,
	XEN_BUFFER_LOST = 3,
	XEN_BUFFER_HELD = 4,
};

struct xen_buffer {
	uint32_t state;		/* enum xen_buffer_state */
	uint32_t card;		/* descriptors of the card's that name it */
};
/* By number. Served */
extern struct xen_buffer xen_buffers[XEN_BUFFERS];

/* One that a packet is in, by its entry in the table, gets one more descriptor. False: there is none in it. */
static inline bool xen_buffer_take(uint32_t entry)
{
	struct xen_buffer *buffer = &xen_buffers[entry - 1];

	if (buffer->state - XEN_BUFFER_TAKEN > XEN_BUFFER_SENT - XEN_BUFFER_TAKEN)
		return false;
	buffer->card++;
	return true;
}

/* Where the entry of a frame is that has one. */
static inline uint16_t *xen_frame_at(const struct xen_frames *frames, uint64_t frame)
{
	return &frames->part[frame >> XEN_PART_SHIFT][frame % (1u << XEN_PART_SHIFT)];
}

/* 0 if there is no such frame. */
static inline uint32_t xen_frame_entry(const struct xen_frames *frames, uint64_t frame)
{
	return frame < frames->count ? *xen_frame_at(frames, frame) : 0;
}

/* ---- For the core's loops --------------------------------------------------------------- */

struct twin_dma_at_hand {
	struct xen_frames frames;
	uint32_t buffer;	/* bytes of each that is received into */
};

static inline struct twin_dma_at_hand twin_dma_at_hand_of(const struct twin_dma *dma,
							  const struct twin_dma_ring *ring)
{
	(void)dma;
	return (struct twin_dma_at_hand){ .frames = xen_frames, .buffer = ring->is.buffer };
}

/* Whether it lies in one page, or is empty. */
static inline bool xen_is_in_page(uint64_t address, uint64_t length)
{
	return address % TWIN_PAGE_SIZE + length <= TWIN_PAGE_SIZE;
}

static inline __attribute__((always_inline)) bool
twin_dma_admit_short(const struct twin_dma_at_hand *at_hand, uint32_t kind, struct twin_dma_slot *slot,
		     uint64_t length)
{
	const uint64_t bytes = kind == TWIN_DMA_RECEIVE ? at_hand->buffer : length;
	uint32_t entry;

	if (!xen_is_in_page(slot->address, bytes))
		return false;
	entry = xen_frame_entry(&at_hand->frames, slot->address >> TWIN_PAGE_SHIFT);
	if (entry == XEN_FRAME_HELD)
		return true;
	/* Of no bytes there is nothing to ask; the other question is Xen's. */
	if (kind == TWIN_DMA_RECEIVE || !entry || !bytes || !xen_buffer_take(entry))
		return false;
	slot->length = (uint32_t)bytes;
	return true;
}

/* Buffers of Xen's that stay where they are. */
static inline __attribute__((always_inline)) bool
twin_dma_release_short(const struct twin_dma_at_hand *at_hand, uint32_t kind, struct twin_dma_slot *slot)
{
	uint32_t entry;
	struct xen_buffer *buffer;

	if (kind == TWIN_DMA_RECEIVE || !xen_is_in_page(slot->address, slot->length))
		return false;
	entry = xen_frame_entry(&at_hand->frames, slot->address >> TWIN_PAGE_SHIFT);
	if (!entry || entry == XEN_FRAME_HELD)
		return false;
	buffer = &xen_buffers[entry - 1];
	if (buffer->state == XEN_BUFFER_HELD)
		return false;
	buffer->card--;
	slot->length = 0;
	return true;
}

#endif /* TWIN_XEN_HELD_H */
