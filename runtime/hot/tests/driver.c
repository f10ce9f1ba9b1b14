// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A driver that uses an sk_buff as e1000 does, by the same inline functions of the
 * kernel's headers, and checks what e1000 assumes.
 */
#include "kernel.h"
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/dma-mapping.h>
#include <net/ip6_checksum.h>

struct test_driver *driver;

static struct test_driver the_driver;
static unsigned char driver_address[ETH_ALEN] __aligned(8) = { 2, 0, 0, 0, 0, 9 };

/* As e1000_tso(): all headers linear, lengths cleared, checksum seeded. */
static void driver_tso(struct sk_buff *skb)
{
	u32 headers = skb_tcp_all_headers(skb);

	CHECK(!skb_cloned(skb) && !skb_header_cloned(skb));
	CHECK(skb->ip_summed == CHECKSUM_PARTIAL);
	CHECK(headers <= skb_headlen(skb) && headers < skb->len);
	CHECK(skb_checksum_start_offset(skb) == skb_transport_offset(skb));
	CHECK(skb_shinfo(skb)->gso_segs ==
	      DIV_ROUND_UP(skb->len - headers, skb_shinfo(skb)->gso_size));
	if (vlan_get_protocol(skb) == htons(ETH_P_IP)) {
		CHECK(skb_shinfo(skb)->gso_type == SKB_GSO_TCPV4);
		ip_hdr(skb)->tot_len = 0;
		ip_hdr(skb)->check = 0;
		tcp_hdr(skb)->check = ~csum_tcpudp_magic(ip_hdr(skb)->saddr, ip_hdr(skb)->daddr,
							 0, IPPROTO_TCP, 0);
	} else {
		CHECK(skb_is_gso_v6(skb));
		tcp_v6_gso_csum_prep(skb);
	}
}

/* As e1000_tx_csum(): looks at the network header to know TCP. */
static void driver_checksum(struct sk_buff *skb)
{
	u32 start = skb_checksum_start_offset(skb);

	CHECK(start + skb->csum_offset + 2 <= skb_headlen(skb));
	if (vlan_get_protocol(skb) == htons(ETH_P_IP))
		CHECK(skb_network_offset(skb) + sizeof(struct iphdr) <= skb_headlen(skb));
	if (vlan_get_protocol(skb) == htons(ETH_P_IPV6))
		CHECK(skb_network_offset(skb) + sizeof(struct ipv6hdr) <= skb_headlen(skb));
}

static void driver_map(struct test_packet *packet, u64 address, u32 length)
{
	packet->descriptor[packet->descriptors].address = address;
	packet->descriptor[packet->descriptors++].length = length;
}

/* As e1000_xmit_frame() counts: a descriptor has at most 4,096 bytes, and with TSO at most
 * four segments; one more is for what the card is to compute. */
static u32 driver_needs(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	const u32 most = skb_is_gso(skb) ? min(4096, info->gso_size << 2) : 4096;
	u32 i, needs = DIV_ROUND_UP(skb_headlen(skb), most);

	for (i = 0; i < info->nr_frags; i++)
		needs += DIV_ROUND_UP(skb_frag_size(&info->frags[i]), most);
	return needs + (skb_is_gso(skb) || skb->ip_summed == CHECKSUM_PARTIAL);
}

/* Whether fewer than so many of the card's descriptors are free. */
static bool driver_lacks(u32 descriptors)
{
	return driver->ring && driver->ring - driver->used < descriptors;
}

static netdev_tx_t driver_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct test_packet *packet = &driver->packet[driver->next % TEST_RING];
	struct netdev_queue *txq = netdev_get_tx_queue(dev, 0);
	u32 i, total = 0;

	CHECK(spin_is_locked(&txq->_xmit_lock));
	CHECK(txq->xmit_lock_owner == HOT_QUEUE_OWNER + raw_smp_processor_id());
	CHECK(dev == &driver->dev && skb->dev == dev);
	CHECK(in_softirq());
	if (eth_skb_pad(skb))
		return NETDEV_TX_OK;
	if (driver->refuse > 0) {
		driver->refuse--;
		return NETDEV_TX_BUSY;
	}
	packet->needs = driver_needs(skb);
	if (driver_lacks(packet->needs + 2)) {
		netif_stop_queue(dev);
		return NETDEV_TX_BUSY;
	}
	CHECK(skb_shinfo(skb)->nr_frags <= MAX_SKB_FRAGS);
	CHECK(skb->len >= ETH_ZLEN && skb_headlen(skb) >= ETH_HLEN);
	CHECK(skb_shinfo(skb)->frag_list == NULL && atomic_read(&skb_shinfo(skb)->dataref) == 1);
	/* a tag that the hot routines inserted is in the room before the packet */
	CHECK(skb->tail <= skb->end && skb->data + VLAN_HLEN >= skb->head + NET_SKB_PAD);
	vlan_get_protocol(skb);
	if (skb_is_gso(skb))
		driver_tso(skb);
	else if (skb->ip_summed == CHECKSUM_PARTIAL)
		driver_checksum(skb);
	skb_tx_timestamp(skb);

	packet->descriptors = 0;
	packet->skb = skb;
	packet->more = netdev_xmit_more();
	driver_map(packet, dma_map_single(NULL, skb->data, skb_headlen(skb), DMA_TO_DEVICE),
		   skb_headlen(skb));
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *fragment = &skb_shinfo(skb)->frags[i];

		driver_map(packet, skb_frag_dma_map(NULL, fragment, 0, skb_frag_size(fragment),
						    DMA_TO_DEVICE), skb_frag_size(fragment));
		total += skb_frag_size(fragment);
	}
	CHECK(total == skb->data_len);
	if (driver->drop) {
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	driver->next++;
	driver->used += packet->needs;
	netdev_sent_queue(dev, skb->len);
	if (driver->next - driver->clean >= driver->room || driver_lacks(MAX_SKB_FRAGS + 7))
		netif_stop_queue(dev);
	if (!netdev_xmit_more() || netif_xmit_stopped(txq))
		driver->doorbells++;
	return NETDEV_TX_OK;
}

u32 driver_clean(u32 most)
{
	u32 n = 0, bytes = 0;

	while (driver->clean != driver->next && n < most) {
		struct test_packet *packet = &driver->packet[driver->clean++ % TEST_RING];

		dma_unmap_single(NULL, packet->descriptor[0].address,
				 packet->descriptor[0].length, DMA_TO_DEVICE);
		bytes += packet->skb->len;
		driver->used -= packet->needs;
		napi_consume_skb(packet->skb, 64);
		packet->skb = NULL;
		n++;
	}
	netdev_completed_queue(&driver->dev, n, bytes);
	if (n && netif_queue_stopped(&driver->dev) &&
	    driver->next - driver->clean < driver->room)
		netif_wake_queue(&driver->dev);
	return n;
}

static int driver_poll(struct napi_struct *napi, int budget)
{
	int work = driver->poll_work[min_t(u32, driver->polls, 7)];

	driver->polls++;
	CHECK(in_softirq());
	if (driver->poll_receives)
		driver->poll_receives();
	if (driver->poll_reschedules) {
		driver->poll_reschedules = false;
		CHECK(!napi_schedule_prep(napi));
	}
	if (work < budget && napi_complete_done(napi, work))
		driver->interrupts_enabled++;
	return work;
}

bool driver_receive(const u8 *frame, u32 length, bool copybreak)
{
	u32 size = SKB_DATA_ALIGN(max(length, 1522u) + NET_SKB_PAD + NET_IP_ALIGN) +
		   SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct sk_buff *skb;
	u8 *data = netdev_alloc_frag(size);

	if (!data)
		return false;
	CHECK((((unsigned long)data ^ ((unsigned long)data + size - 1)) & ~0xfffful) == 0);
	memcpy(data + NET_SKB_PAD, frame, length);
	if (copybreak) {
		skb = napi_alloc_skb(&driver->napi, length);
		if (skb) {
			dma_sync_single_for_cpu(NULL, 0, length, DMA_FROM_DEVICE);
			skb_put_data(skb, data + NET_SKB_PAD, length);
			CHECK(skb->dev == &driver->dev);
		}
		skb_free_frag(data + NET_SKB_PAD);
	} else {
		skb = napi_build_skb(data, size);
		if (skb) {
			skb_reserve(skb, NET_SKB_PAD + NET_IP_ALIGN);
			skb_put(skb, length);
		} else {
			skb_free_frag(data);
		}
	}
	if (!skb)
		return false;
	skb->ip_summed = driver->unchecked ? CHECKSUM_NONE : CHECKSUM_UNNECESSARY;
	skb->protocol = eth_type_trans(skb, &driver->dev);
	if (driver->vlan)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), driver->vlan);
	napi_gro_receive(&driver->napi, skb);
	return true;
}

static const struct net_device_ops driver_ops = {
	.ndo_start_xmit = driver_xmit,
};

void driver_reset(void)
{
	struct net_device *dev = &the_driver.dev;

	driver = &the_driver;
	memset(driver, 0, sizeof(*driver));
	driver->room = TEST_RING - 2;
	driver->vlan = 77;
	dev->_tx = &driver->txq;
	dev->num_tx_queues = 1;
	dev->real_num_tx_queues = 1;
	dev->netdev_ops = &driver_ops;
	dev->mtu = ETH_DATA_LEN;
	dev->dev_addr = driver_address;
	memset(dev->broadcast, 0xff, ETH_ALEN);
	dev->features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO | NETIF_F_TSO6 |
			NETIF_F_HW_VLAN_CTAG_TX;
	set_bit(__LINK_STATE_START, &dev->state);
	driver->txq.dev = dev;
	driver->txq.xmit_lock_owner = -1;
	driver->txq.dql.max_limit = DQL_MAX_LIMIT;
	driver->txq.dql.slack_hold_time = HZ;
	driver->napi.dev = dev;
	driver->napi.weight = 64;
	driver->napi.poll = driver_poll;
	INIT_LIST_HEAD(&driver->napi.poll_list);
	/* Byte limits have tests of their own. */
	driver->txq.dql.min_limit = 1 << 30;
	dql_reset(&driver->txq.dql);
}
