// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Frames of the card's, from where the driver gives them until guests have them.
 *
 *   driver ── host_receive ──> [queue] ──────> guests' receive rings
 *             interrupts off            interrupts on, after the driver has returned
 *
 * A guest's page is reached by Xen's own rules only (grant.c), and those take locks of Xen's:
 * the grant table's, an entry's, that of its map of memory. Who has one of them may wait until
 * all processors have flushed their TLB (page_alloc.c, alloc_heap_pages), and a processor with
 * interrupts off does not: it would wait for the lock, and its holder for it, for ever. So a
 * frame is only copied where the driver gives it.
 *
 * The queue belongs to whoever has xen_lock, and is empty when that is given up. The driver may
 * give more than it was asked for; what finds no room is dropped, as by a card.
 */
#include <twin/guest.h>

#include "netif.h"
#include "platform.h"

/* What one call of hot_poll() gives (hot/napi.c): a driver's poll is asked for as many as its weight
 * (NAPI_POLL_WEIGHT), and for that once more while the budget of interrupt.c is not used up. */
#define WEIGHT 64u
#define FRAMES (WEIGHT + 16u)

struct frame {
	uint32_t length, flags;
	uint8_t bytes[NETIF_GRANT_SIZE];
};

static struct frame frames[FRAMES];
static uint32_t count;

/* IEEE 802.1Q, 9.4 to 9.6: a tag is a type and 16 bits behind both addresses. */
#define ADDRESSES	12u
#define TAG		4u
#define TAG_TYPE	0x8100u

/*
 * Guests are offered no tags beside their frames (io/netif.h has none), and without it a frame
 * would be one of no VLAN, or of another: so the tag goes back to where it was.
 */
static bool copy_tagged(struct frame *frame, uint64_t data, uint32_t length, uint16_t tag)
{
	const uint8_t bytes[TAG] = { TAG_TYPE >> 8, TAG_TYPE & 0xff, tag >> 8, tag & 0xff };

	frame->length = length + TAG;
	__builtin_memcpy(&frame->bytes[ADDRESSES], bytes, TAG);
	return length <= NETIF_GRANT_SIZE - TAG &&
	       xen_dom0_read_ready(frame->bytes, data, ADDRESSES) &&
	       xen_dom0_read_ready(&frame->bytes[ADDRESSES + TAG], data + ADDRESSES,
				   length - ADDRESSES);
}

static bool copy(struct frame *frame, uint64_t data, uint32_t length, uint16_t tag)
{
	/* Neither asked for (hot/internal.h), nor in one piece. */
	if (frame->flags & (HOT_RX_FRAGMENTS | HOT_RX_PIECES) || length < NETIF_SMALLEST)
		return false;
	if (frame->flags & HOT_RX_VLAN)
		return copy_tagged(frame, data, length, tag);
	frame->length = length;
	return length <= NETIF_GRANT_SIZE && xen_dom0_read_ready(frame->bytes, data, length);
}

void xen_receive_put(uint64_t data, uint32_t length, uint32_t flags, uint16_t tag)
{
	xen_count(&xen_counts.received);
	if (count == FRAMES) {
		xen_count(&xen_counts.overrun);
		return;
	}
	frames[count].flags = flags;
	if (copy(&frames[count], data, length, tag))
		count++;
	else
		xen_count(&xen_counts.unwanted);
}

void xen_receive_deliver(void)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (!xen_vif_receive(frames[i].bytes, frames[i].length, frames[i].flags))
			xen_count(&xen_counts.unwanted);
	count = 0;
}
