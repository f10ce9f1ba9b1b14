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

static struct {
	uint32_t length, flags;
	uint8_t bytes[NETIF_GRANT_SIZE];
} frames[FRAMES];
static uint32_t count;

void xen_receive_put(uint64_t data, uint32_t length, uint32_t flags)
{
	xen_count(&xen_counts.received);
	if (count == FRAMES) {
		xen_count(&xen_counts.overrun);
		return;
	}
	if (length < NETIF_SMALLEST || length > NETIF_GRANT_SIZE ||
	    !xen_dom0_read_ready(frames[count].bytes, data, length)) {
		xen_count(&xen_counts.unwanted);
		return;
	}
	frames[count].length = length;
	frames[count].flags = flags;
	count++;
}

void xen_receive_deliver(void)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (!xen_vif_receive(frames[i].bytes, frames[i].length, frames[i].flags))
			xen_count(&xen_counts.unwanted);
	count = 0;
}
