// SPDX-License-Identifier: GPL-2.0-only
/*
 * receive.c: dom0's minimal network stack: a received frame is copied into the
 * application's ring (struct kernel_rx_ring) and freed. The host reads the ring and
 * checks the contents. Or it goes to the bridge (bridge.c), which holds it.
 *
 * Context: softirq, on any CPU; one lock around the ring.
 */
#include <linux/etherdevice.h>
#include <linux/mm.h>
#include <linux/skbuff.h>

#include "shim.h"

#define RX_HELD 0
#define RX_UNWANTED 1
#define RX_FRAGMENTS 4

struct kernel_rx_ring *rx_ring;
static struct shim_lock rx_lock;

u32 host_receive(void *data, u32 length, struct sk_buff *skb, u32 flags, u32 vlan);

static void slot_fill(struct kernel_rx_slot *slot, const void *data, u32 length,
		      const struct sk_buff *skb, u32 flags, u32 vlan)
{
	u32 total = length + (flags & RX_FRAGMENTS ? skb->data_len : 0);
	u32 linear = min_t(u32, length, sizeof(slot->data));

	slot->length = total;
	slot->flags = flags;
	slot->vlan = vlan;
	memcpy(slot->data, data, linear);
	if (total > sizeof(slot->data))
		rx_ring->truncated++;
	if (!(flags & RX_FRAGMENTS))
		return;
	total = min_t(u32, total, sizeof(slot->data));
	if (total > linear && skb_copy_bits(skb, skb_headlen(skb), slot->data + linear, total - linear))
		kernel_complain("receive: a fragment cannot be read");
}

/* The whole frame, MAC header first; hot.o frees the sk_buff when this returns. */
u32 host_receive(void *data, u32 length, struct sk_buff *skb, u32 flags, u32 vlan)
{
	u32 produce, result = RX_UNWANTED;

	shim_lock(&rx_lock);
	produce = rx_ring->produce;
	rx_ring->packets++;
	rx_ring->bytes += length + (flags & RX_FRAGMENTS ? skb->data_len : 0);
	if (READ_ONCE(rx_ring->discard)) {
		if (rx_ring->discard == KERNEL_RX_BRIDGE && bridge_receive(data, length, skb, flags))
			result = RX_HELD;
	} else if (produce - READ_ONCE(rx_ring->consume) >= KERNEL_RX_SLOTS) {
		rx_ring->dropped++;
	} else {
		slot_fill(&rx_ring->slot[produce % KERNEL_RX_SLOTS], data, length, skb, flags, vlan);
		smp_store_release(&rx_ring->produce, produce + 1);
	}
	shim_unlock(&rx_lock);
	return result;
}

void receive_setup(void)
{
	struct page *page = frames_allocate(DIV_ROUND_UP(sizeof(*rx_ring), PAGE_SIZE), 1);

	if (!page)
		kernel_bug("receive: no memory for the ring");
	rx_ring = page_address(page);
	memset(rx_ring, 0, sizeof(*rx_ring));
}
