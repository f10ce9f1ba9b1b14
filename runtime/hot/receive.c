// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Received packets: classify, hand to the host, take back.
 *
 * The host (trusted code in the hypervisor, dom0's stack natively) finds the
 * guest by destination MAC and either holds the sk_buff until it has copied
 * the packet (paper, 5.3), or does not want it.
 */
#include "internal.h"
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

/* Addressed to us, to a group, to all, or to another host. */
static u8 hot_packet_type(const struct ethhdr *eth, const struct net_device *dev)
{
	if (likely(ether_addr_equal(eth->h_dest, dev->dev_addr)))
		return PACKET_HOST;
	if (!is_multicast_ether_addr(eth->h_dest))
		return PACKET_OTHERHOST;
	return ether_addr_equal(eth->h_dest, dev->broadcast) ? PACKET_BROADCAST : PACKET_MULTICAST;
}

/* Takes the Ethernet header off; returns what follows it, in network order. */
__be16 eth_type_trans(struct sk_buff *skb, struct net_device *dev)
{
	const struct ethhdr *eth = (const struct ethhdr *)skb->data;

	skb->dev = dev;
	skb_reset_mac_header(skb);
	if (likely(skb->len >= ETH_HLEN)) {
		skb->len -= ETH_HLEN;
		if (unlikely(skb->len < skb->data_len))
			BUG();
		skb->data += ETH_HLEN;
	}
	skb->pkt_type = hot_packet_type(eth, dev);
	if (likely(ntohs(eth->h_proto) >= ETH_P_802_3_MIN))
		return eth->h_proto;
	/* It is a length: Novell's raw 802.3 begins with an all-ones checksum. */
	if (skb_headlen(skb) >= 2 && skb->data[0] == 0xff && skb->data[1] == 0xff)
		return htons(ETH_P_802_3);
	return htons(ETH_P_802_2);
}

/* Offers a pool's sk_buff, HELD, to the host; whether the host keeps it. */
static bool hot_receive_held(struct sk_buff *skb, u32 index)
{
	struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	u8 *frame = skb_mac_header(skb);

	if (unlikely(!hot_pool_change(pool, index, HOT_OBJECT_BUSY, HOT_OBJECT_HELD)))
		return false;
	if (host_receive(frame, skb_tail_pointer(skb) - frame, skb, hot_receive_flags(skb),
			 skb->vlan_tci) == HOT_RX_HELD)
		return true;
	hot_pool_change(pool, index, HOT_OBJECT_HELD, HOT_OBJECT_BUSY);
	return false;
}

/*
 * Ends the driver's ownership of a received sk_buff. Unless the hypervisor asked for
 * aggregates, guests get frames unchanged. An sk_buff that is not the pool's (drivers
 * receive none in steady state) cannot be held and is dropped.
 */
gro_result_t napi_gro_receive(struct napi_struct *napi, struct sk_buff *skb)
{
	u32 index = hot_skb_index(skb);
	u32 cpu = hot_cpu_id();

	if (likely(index != HOT_NO_OBJECT && skb_mac_header_was_set(skb))) {
		if (unlikely(hot_cpus[cpu].aggregate) && hot_aggregate(skb, index, cpu))
			return GRO_MERGED;
		if (hot_receive_held(skb, index))
			return GRO_NORMAL;
	}
	hot_skb_free(skb);
	return GRO_NORMAL;
}

u32 hot_release(u64 *skbs, u32 count)
{
	u32 cpu = hot_cpu_id();
	u32 i, released = 0;

	for (i = 0; i < count; i++) {
		struct sk_buff *skb = (struct sk_buff *)READ_ONCE(skbs[i]);
		u32 index = hot_skb_index(skb);

		if (unlikely(index == HOT_NO_OBJECT || !hot_skb_free_held(skb, index))) {
			hot_count_on(cpu, HOT_COUNT_BAD_FREE, 1);
			continue;
		}
		released++;
	}
	hot_count_on(cpu, HOT_COUNT_RELEASED, released);
	return released;
}
