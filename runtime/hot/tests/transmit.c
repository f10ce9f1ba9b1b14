// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: transmission, from a request to its completion.
 */
#include "common.h"
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/tcp.h>
#include <linux/mm.h>

/* A ring of more than the usual 256, so that the pool has more buffers than the usual 512. */
#define TEST_RECEIVE_RING	300u

static void get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			  struct kernel_ethtool_ringparam *kernel, struct netlink_ext_ack *ack)
{
	ring->rx_pending = TEST_RECEIVE_RING;
}

static const struct ethtool_ops ethtool = { .get_ringparam = get_ringparam };

void test_setup(void)
{
	int error;

	begin();
	driver->dev.ethtool_ops = &ethtool;
	CHECK(hot_transmit(&driver->dev, 0, 1) == 0);	/* nothing is set up: nothing happens */
	CHECK(hot_poll(64) == 0);
	/* Where dom0 has no memory at first, what it gave stays, and is not asked for again. */
	do {
		test_may_allocate = 1;
		error = hot_setup(&driver->dev);
		CHECK(!error || error == -ENOMEM);
	} while (error && test_allocated < 100);
	test_may_allocate = ~0u;
	CHECK(test_allocated == 3 * HOT_CPUS + HOT_POOLS);
	CHECK(hot_setup(&driver->dev) == 0);
	hot_machine_frames = (TEST_RAM + TEST_GUEST_RAM) >> PAGE_SHIFT;
	begin();
	CHECK(hot_pools[HOT_POOL_SKB].count && hot_pools[HOT_POOL_BUFFER].count &&
	      hot_pools[HOT_POOL_LARGE].count);
	CHECK(hot_pools[HOT_POOL_LARGE].count == TEST_RECEIVE_RING + HOT_CPUS * HOT_MAGAZINE);
	CHECK(hot_features(&driver->dev) == (HOT_CAN_FRAGMENTS | HOT_CAN_CHECKSUM | HOT_CAN_TSO4 |
					     HOT_CAN_TSO6 | HOT_CAN_VLAN));
	nothing_lost();
}

void test_linear(void)
{
	struct hot_tx_request *r;
	struct hot_tx_done done;
	struct sk_buff *skb;
	u32 length;

	begin();
	for (length = 60; length <= HOT_HEADER; length += 17) {
		r = linear(5, length);
		CHECK(hot_transmit(&driver->dev, 5, 1) == 1);
		CHECK(r->result == HOT_SENT);
		skb = last_packet()->skb;
		CHECK(skb->len == length && skb->data_len == 0 && skb_headlen(skb) == length);
		CHECK(!memcmp(skb->data, r->header, length));
		CHECK(skb->protocol == htons(0x88b5) && skb->ip_summed == CHECKSUM_NONE);
		CHECK(skb_mac_header(skb) == skb->data && skb->mac_len == ETH_HLEN);
		CHECK(skb_network_offset(skb) == ETH_HLEN && skb_transport_offset(skb) == ETH_HLEN);
		CHECK(skb->truesize == SKB_TRUESIZE(skb_end_offset(skb)));
		CHECK(skb->head_frag && !skb->cloned && !skb->destructor && !skb->sk);
		CHECK(!skb_vlan_tag_present(skb) && !skb_is_gso(skb));
		CHECK(refcount_read(&skb->users) == 2);
		CHECK(last_packet()->descriptor[0].address == __pa(skb->data));
		CHECK(!last_packet()->more);
		CHECK(!completion(&done));
		CHECK(driver_clean(1) == 1);
		CHECK(completion(&done) && done.cookie == 0x1005 && done.guest == 3);
		CHECK(!completion(&done));
	}
	nothing_lost();
}

void test_short_is_padded(void)
{
	struct sk_buff *skb;
	u32 length, i;

	begin();
	for (length = ETH_HLEN; length < ETH_ZLEN; length++) {
		linear(0, length);
		CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
		skb = last_packet()->skb;
		CHECK(skb->len == ETH_ZLEN);
		for (i = length; i < ETH_ZLEN; i++)
			CHECK(skb->data[i] == 0);
		CHECK(!memcmp(skb->data, request(0)->header, length));
		driver_clean(1);
	}
	nothing_lost();
}

void test_fragments(void)
{
	u32 n, i;

	begin();
	driver->dev.mtu = 65000;
	for (n = 1; n <= HOT_FRAGMENTS; n++) {
		struct hot_tx_request *r = linear(0, 60);
		struct sk_buff *skb;
		u32 total = 60;

		for (i = 0; i < n; i++) {
			add_fragment(r, GUEST_PAGE(i * 3) + i * 11, 100 + i * 200);
			total += 100 + i * 200;
		}
		CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
		skb = last_packet()->skb;
		CHECK(skb->len == total && skb->data_len == total - 60);
		CHECK(skb->truesize == SKB_TRUESIZE(skb_end_offset(skb)) + total - 60);
		CHECK(last_packet()->descriptors == n + 1);
		for (i = 0; i < n; i++) {
			CHECK(last_packet()->descriptor[i + 1].address == GUEST_PAGE(i * 3) + i * 11);
			CHECK(last_packet()->descriptor[i + 1].length == 100 + i * 200);
			/* no reference was taken, and none may be dropped */
			CHECK(page_ref_count(skb_frag_page(&skb_shinfo(skb)->frags[i])) == 0);
		}
		driver_clean(1);
		for (i = 0; i < n; i++)
			CHECK(page_ref_count(pfn_to_page(GUEST_PAGE(i * 3) >> PAGE_SHIFT)) == 0);
	}
	nothing_lost();
}

void test_checksum(void)
{
	struct hot_tx_request *r;
	struct sk_buff *skb;
	u32 v6, tags;

	begin();
	for (v6 = 0; v6 < 2; v6++) {
		for (tags = 0; tags < 3; tags++) {
			r = linear(0, 100);
			r->header_length = fill_tcp(r, v6, tags);
			CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
			skb = last_packet()->skb;
			CHECK(skb->ip_summed == CHECKSUM_PARTIAL);
			CHECK(skb_checksum_start_offset(skb) == r->checksum_start);
			CHECK(skb->csum_offset == r->checksum_offset);
			CHECK(skb_transport_offset(skb) == r->checksum_start);
			CHECK(skb_network_offset(skb) == ETH_HLEN + 4 * tags);
			CHECK(vlan_get_protocol(skb) == htons(v6 ? ETH_P_IPV6 : ETH_P_IP));
			driver_clean(1);
		}
	}
	nothing_lost();
}

void test_tso(void)
{
	u32 v6, tags;

	begin();
	for (v6 = 0; v6 < 2; v6++) {
		for (tags = 0; tags < 2; tags++) {
			struct hot_tx_request *r = tso(0, v6, tags);
			struct skb_shared_info *info;
			struct sk_buff *skb;

			CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
			skb = last_packet()->skb;
			info = skb_shinfo(skb);
			CHECK(skb_is_gso(skb) && info->gso_size == 1400);
			CHECK(info->gso_type == (v6 ? SKB_GSO_TCPV6 : SKB_GSO_TCPV4));
			CHECK(skb->len == r->header_length + 15 * PAGE_SIZE + 1000);
			CHECK(info->gso_segs == DIV_ROUND_UP(15 * PAGE_SIZE + 1000, 1400));
			CHECK(skb_tcp_all_headers(skb) == r->header_length);
			CHECK(last_packet()->descriptors == 17);
			driver_clean(1);
		}
	}
	nothing_lost();
}

void test_vlan_tag(void)
{
	struct hot_tx_request *r;

	begin();
	r = linear(0, 64);
	r->flags = HOT_TX_VLAN;
	r->vlan_tag = 0x6123;
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
	CHECK(skb_vlan_tag_present(last_packet()->skb));
	CHECK(skb_vlan_tag_get(last_packet()->skb) == 0x6123);
	CHECK(last_packet()->skb->vlan_proto == htons(ETH_P_8021Q));
	CHECK(last_packet()->skb->protocol == htons(0x88b5));
	nothing_lost();
}

void test_doorbell_once_a_batch(void)
{
	u32 i;

	begin();
	for (i = 0; i < 32; i++)
		linear(i, 60 + i);
	request(31)->header_length = 3;		/* the last is malformed: 30 rings */
	request(7)->flags = 0x80;
	CHECK(hot_transmit(&driver->dev, 0, 32) == 30);
	CHECK(driver->doorbells == 1 && driver->next == 30);
	for (i = 0; i < 30; i++)
		CHECK(driver->packet[i].more == (i != 29));
	for (i = 0; i < 32; i++)
		CHECK(request(i)->result == (i == 7 || i == 31 ? HOT_INVALID : HOT_SENT));
	/* in order */
	CHECK(!memcmp(driver->packet[29].skb->data, request(30)->header, 60));
	CHECK(driver->packet[29].skb->len == 90);
	nothing_lost();
}

/* 64 KiB in segments of 128 bytes: 130 descriptors. */
static void large(u32 index)
{
	struct hot_tx_request *r = tso(index, false, 0);

	r->gso_size = 128;
	r->fragment[15].length = 3900;
}

/* The second of two does not fit any more, and what came before it is on its way. */
void test_large_packets_ring(void)
{
	u32 doorbells;

	begin();
	large(0);		/* the queue's limit of bytes learns that one fits */
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
	driver_clean(1);
	driver->ring = 255;
	doorbells = driver->doorbells;
	large(0);
	large(1);
	CHECK(hot_transmit(&driver->dev, 0, 2) == 1);
	CHECK(request(0)->result == HOT_SENT && request(1)->result == HOT_BUSY);
	CHECK(driver->doorbells == doorbells + 1);
	driver_clean(1);
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1);
	driver_clean(1);
	/* a small one waits for nothing but a small one */
	doorbells = driver->doorbells;
	linear(0, 60);
	linear(1, 60);
	large(2);
	linear(3, 60);
	CHECK(hot_transmit(&driver->dev, 0, 4) == 4);
	CHECK(driver->doorbells == doorbells + 2);
	driver_clean(4);
	nothing_lost();
}

void test_completions_name_their_request(void)
{
	struct hot_tx_done done;
	u32 i;

	begin();
	for (i = 0; i < 100; i++)
		linear(i, 60)->guest = i % 8;
	CHECK(hot_transmit(&driver->dev, 0, 100) == 100);
	CHECK(driver_clean(1000) == 100);
	for (i = 0; i < 100; i++)
		CHECK(completion(&done) && done.cookie == 0x1000 + i && done.guest == i % 8);
	CHECK(!completion(&done));
	nothing_lost();
}

/* A consumer that stops reading stops senders; nothing is overwritten. */
void test_unread_completions_stop_senders(void)
{
	struct hot_tx_done done;
	u32 i, sent = 0;

	begin();
	completions();
	for (i = 0; i < 20; i++) {
		u32 k, n;

		for (k = 0; k < 100; k++)
			linear(k, 60)->cookie = sent + k;
		n = hot_transmit(&driver->dev, 0, 100);
		if (n < 100)
			CHECK(request(n)->result == HOT_BUSY && request(99)->result == HOT_BUSY);
		sent += n;
		driver_clean(1000);
	}
	CHECK(sent == HOT_TX_DONE);
	for (i = 0; i < sent; i++)
		CHECK(completion(&done) && done.cookie == i);
	linear(0, 60);
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
	nothing_lost();
}

void test_busy_queue(void)
{
	u64 busy, wakes;
	u32 i, tx_wake;

	begin();
	busy = counted(HOT_COUNT_BUSY);
	wakes = counted(HOT_COUNT_WAKE);
	tx_wake = shared()->tx_wake;
	driver->room = 10;
	for (i = 0; i < 20; i++)
		linear(i, 60);
	CHECK(hot_transmit(&driver->dev, 0, 20) == 10);
	CHECK(driver->doorbells == 1);
	for (i = 0; i < 20; i++)
		CHECK(request(i)->result == (i < 10 ? HOT_SENT : HOT_BUSY));
	CHECK(counted(HOT_COUNT_BUSY) == busy + 10);
	CHECK(hot_transmit(&driver->dev, 10, 10) == 0 && request(10)->result == HOT_BUSY);
	driver_clean(4);
	CHECK(counted(HOT_COUNT_WAKE) == wakes + 1 && shared()->tx_wake == tx_wake + 1);
	CHECK(hot_transmit(&driver->dev, 10, 10) == 4);
	driver_clean(1000);
	CHECK(completions() == 14);
	/* the driver's own "no" loses nothing either */
	driver->room = 100;
	driver->refuse = 1;
	CHECK(hot_transmit(&driver->dev, 0, 5) == 0);
	CHECK(request(0)->result == HOT_BUSY && request(4)->result == HOT_BUSY);
	CHECK(hot_transmit(&driver->dev, 0, 5) == 5);
	/* frozen, as by netif_tx_lock() of dom0 */
	set_bit(__QUEUE_STATE_FROZEN, &driver->txq.state);
	CHECK(hot_transmit(&driver->dev, 0, 5) == 0 && request(0)->result == HOT_BUSY);
	nothing_lost();
}

void test_down(void)
{
	begin();
	linear(0, 60);
	set_bit(__LINK_STATE_NOCARRIER, &driver->dev.state);
	CHECK(hot_transmit(&driver->dev, 0, 1) == 0 && request(0)->result == HOT_DOWN);
	clear_bit(__LINK_STATE_NOCARRIER, &driver->dev.state);
	clear_bit(__LINK_STATE_START, &driver->dev.state);
	CHECK(hot_transmit(&driver->dev, 0, 1) == 0 && request(0)->result == HOT_DOWN);
	nothing_lost();
}

/* A packet that the driver drops completes like one that it sent. */
void test_dropped_by_driver(void)
{
	struct hot_tx_done done;

	begin();
	linear(0, 60);
	driver->drop = true;
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
	CHECK(completion(&done) && done.cookie == 0x1000);
	nothing_lost();
}

void test_byte_limits_stop_and_restart(void)
{
	u32 sent = 0, rounds = 0;

	begin();
	driver->txq.dql.min_limit = 0;
	dql_reset(&driver->txq.dql);
	while (sent < 2000 && rounds++ < 5000) {
		u32 i;

		for (i = 0; i < 16; i++)
			linear(i, 100);
		sent += hot_transmit(&driver->dev, 0, 16);
		driver_clean(8);
		completions();
	}
	CHECK(sent >= 2000);
	CHECK(driver->txq.dql.limit > 0);
	nothing_lost();
}
