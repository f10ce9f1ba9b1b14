// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Pages that go round between card and driver for as long as it is in Xen, held once: see held.h.
 *
 *   attach	the pools of dom0's hot routines, where dom0 says that they are, then what the card has of the
 *		receive ring: for each page a reference, and the type "writable"
 *   detach	when the card is at rest and dom0's rings are its own again, both are given back
 *
 * So a page is held as one that a descriptor names, but longer. What dom0 can do with it meanwhile:
 *
 *   give it to another domain	refused: exchange and transfer take no page with one more reference (mm.c,
 *				steal_page)
 *   give it back to Xen	it leaves dom0's map, but is dom0's until the last reference is put, and nobody
 *				else's before (memory.c, guest_remove_page; mm.c, put_page)
 *   make a page table of it	refused, as of any page that is mapped to be written (mm.c, _get_page_type)
 *   map it otherwise, or not	says nothing of whose it is
 *   grant it			a guest that maps it holds a reference, too; the card writes a page of dom0's
 *   die			the machine starts anew
 *
 * A kernel of dom0's that wanted one of these pages for a page table would be refused that, and stop. It never does:
 * the pools' do not go back to its allocator meanwhile (dom0/hot-module.c), and of those that the card has when it is attached dom0
 * keeps each until the driver is back (dom0/card.c, twin_card_pin).
 */
#include "held.h"
#include "platform.h"

/* Of one range. The pools have 4 MiB each at most (hot/setup.c). */
#define MOST_PAGES	4096u

struct xen_frames xen_frames;
static uint16_t *parts[XEN_PARTS];
static uint32_t held;		/* pages */
static bool adopting;

/* Interrupts on. */
static bool hold(uint64_t frame)
{
	const uint32_t entry = xen_frame_entry(&xen_frames, frame);

	if (entry)
		return entry == XEN_FRAME_HELD;
	if (frame >= xen_frames.count || !xen_page_hold(frame, true))
		return false;
	*xen_frame_at(&xen_frames, frame) = XEN_FRAME_HELD;
	held++;
	return true;
}

/* The machine frame of a page of dom0's, as the window shows it now; ~0: there is none. Whose it is, hold() asks. */
static uint64_t frame_of(uint64_t address)
{
	const uint64_t flags = xen_interrupts_off();
	uint64_t machine;

	xen_alias_ready(xen_processor());
	machine = xen_alias_walk(xen_cut(address));
	xen_interrupts_restore(flags);
	return machine == ~0ull ? ~0ull : machine >> TWIN_PAGE_SHIFT;
}

static bool hold_range(const struct twin_xen_range *range)
{
	uint64_t at;

	if (range->start % TWIN_PAGE_SIZE || range->bytes % TWIN_PAGE_SIZE ||
	    range->bytes / TWIN_PAGE_SIZE > MOST_PAGES)
		return false;
	for (at = 0; at < range->bytes; at += TWIN_PAGE_SIZE)
		if (!hold(frame_of(range->start + at)))
			return false;
	return true;
}

static void number_buffers(void)
{
	uint32_t i;

	for (i = 0; i < XEN_BUFFERS; i++)
		if (xen_buffer_frame(i) < xen_frames.count)
			*xen_frame_at(&xen_frames, xen_buffer_frame(i)) = (uint16_t)(i + 1);
}

/* All of it, or what there was memory for. */
static bool create_table(uint64_t frames)
{
	uint32_t i;

	for (i = 0; i < XEN_PARTS && (uint64_t)i << XEN_PART_SHIFT < frames; i++) {
		parts[i] = alloc_xenheap_pages(0, 0);
		if (!parts[i])
			return false;
		memset(parts[i], 0, TWIN_PAGE_SIZE);
	}
	if ((uint64_t)i << XEN_PART_SHIFT < frames)
		return false;
	xen_frames = (struct xen_frames){ .part = parts, .count = frames };
	return true;
}

static void destroy_table(void)
{
	uint32_t i;

	xen_frames = (struct xen_frames){ 0 };
	for (i = 0; i < XEN_PARTS; i++) {
		if (parts[i])
			free_xenheap_pages(parts[i], 0);
		parts[i] = NULL;
	}
}

int xen_held_create(const struct twin_xen_attach *given)
{
	uint32_t i;

	if (!create_table(max_page))
		return xen_refuse(-XEN_ENOMEM, "no memory for a table of the machine's pages" TWIN_XEN_WITHOUT_DMA);
	number_buffers();
	for (i = 0; i < TWIN_XEN_RANGES; i++)
		if (!hold_range(&given->packets[i]))
			return xen_refuse(-XEN_EINVAL, "dom0's memory for packets is not its own to write" TWIN_XEN_WITHOUT_DMA);
	adopting = true;
	return 0;
}

bool xen_held_adopt(uint64_t frame)
{
	return adopting && hold(frame);
}

void xen_held_end_adopting(void)
{
	adopting = false;
}

void xen_held_destroy(void)
{
	uint64_t frame;

	for (frame = 0; held; frame++)
		if (xen_frame_entry(&xen_frames, frame) == XEN_FRAME_HELD) {
			xen_page_release(frame, true);
			held--;
		}
	destroy_table();
	adopting = false;
}

uint32_t xen_held_pages(void)
{
	return held;
}
