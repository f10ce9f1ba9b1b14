// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines. Each begins with everything at rest and ends by
 * showing that nothing was lost: settled().
 */
#include "kernel.h"
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/mm.h>
#include <net/ip6_checksum.h>

#define GUEST_PAGE(n)	(TEST_RAM + (n) * PAGE_SIZE)

static u32 this_cpu(void)
{
	return raw_smp_processor_id();
}

static struct hot_shared *shared(void)
{
	return &hot_shared[this_cpu()];
}

static struct hot_tx_request *request(u32 i)
{
	return (struct hot_tx_request *)shared()->requests + i;
}

static u64 counted(enum hot_counter which)
{
	u64 n = 0;
	u32 cpu;

	for (cpu = 0; cpu < HOT_CPUS; cpu++)
		n += hot_shared[cpu].counter[which];
	return n;
}

/* The oldest completion, taken; false if there is none. */
static bool completion(struct hot_tx_done *done)
{
	if (shared()->tx_done_consume == smp_load_acquire(&shared()->tx_done_produce))
		return false;
	*done = ((struct hot_tx_done *)shared()->tx_done)[shared()->tx_done_consume % HOT_TX_DONE];
	shared()->tx_done_consume++;
	return true;
}

static u32 completions(void)
{
	struct hot_tx_done done;
	u32 n = 0;

	while (completion(&done))
		n++;
	return n;
}

/* Every object is in its pool exactly once. */
static void pools_whole(void)
{
	static u8 seen[HOT_POOL_MAX];
	enum hot_pool_id id;
	u32 cpu, i;

	for (id = 0; id < HOT_POOLS; id++) {
		struct hot_pool *pool = &hot_pools[id];
		u32 n = pool->free;

		memset(seen, 0, sizeof(seen));
		for (i = 0; i < pool->free; i++)
			seen[pool->stack[i]]++;
		for (cpu = 0; cpu < HOT_CPUS; cpu++) {
			struct hot_magazine *magazine = &hot_cpus[cpu].magazine[id];

			n += magazine->count;
			for (i = 0; i < magazine->count; i++)
				seen[magazine->index[i]]++;
		}
		CHECK(n == pool->count);
		for (i = 0; i < pool->count; i++) {
			CHECK(seen[i] == 1 && pool->state[i] == HOT_OBJECT_FREE);
			if (id == HOT_POOL_SKB)
				CHECK(refcount_read(&((struct sk_buff *)
						     hot_pool_object(pool, i))->users) == 2);
		}
	}
}

static void settled(void)
{
	driver_clean(TEST_RING);
	completions();
	pools_whole();
	CHECK(test_upcalls == 0);
	test_upcalls = 0;
	CHECK(!spin_is_locked(&driver->txq._xmit_lock) && driver->txq.xmit_lock_owner == -1);
	CHECK(preempt_count() == 0);
	CHECK(shared()->tx_done_lock == 0);
	CHECK(counted(HOT_COUNT_COMPLETION_LOST) == 0);
}

static void begin(void)
{
	driver_reset();
	memset(&test_host, 0, sizeof(test_host));
	test_upcalls = 0;
	if (hot_shared[0].requests)
		memset(request(0), 0, HOT_REQUESTS * sizeof(struct hot_tx_request));
}

/* ---- Requests ----------------------------------------------------------- */

static void fill_ethernet(struct hot_tx_request *r, u16 type)
{
	u32 i;

	for (i = 0; i < HOT_HEADER; i++)
		r->header[i] = i * 7 + 1;
	*(__be16 *)(r->header + 12) = htons(type);
}

static struct hot_tx_request *linear(u32 i, u32 length)
{
	struct hot_tx_request *r = request(i);

	memset(r, 0, sizeof(*r));
	fill_ethernet(r, 0x88b5);
	r->cookie = 0x1000 + i;
	r->guest = 3;
	r->header_length = length;
	r->result = 99;
	return r;
}

static void add_fragment(struct hot_tx_request *r, u64 address, u32 length)
{
	r->fragment[r->fragments].address = address;
	r->fragment[r->fragments++].length = length;
}

/* Headers of TCP at 14 (+ 4 a tag); returns their length. */
static u32 fill_tcp(struct hot_tx_request *r, bool v6, u32 tags)
{
	u32 at = ETH_HLEN + 4 * tags, i;
	struct tcphdr *tcp;

	fill_ethernet(r, tags ? ETH_P_8021Q : v6 ? ETH_P_IPV6 : ETH_P_IP);
	for (i = 0; i < tags; i++)
		*(__be16 *)(r->header + 16 + 4 * i) =
			htons(i + 1 < tags ? ETH_P_8021Q : v6 ? ETH_P_IPV6 : ETH_P_IP);
	if (v6) {
		struct ipv6hdr *ip = (struct ipv6hdr *)(r->header + at);

		memset(ip, 0, sizeof(*ip));
		ip->version = 6;
		ip->nexthdr = IPPROTO_TCP;
		at += sizeof(*ip);
	} else {
		struct iphdr *ip = (struct iphdr *)(r->header + at);

		memset(ip, 0, sizeof(*ip));
		ip->version = 4;
		ip->ihl = 5;
		ip->protocol = IPPROTO_TCP;
		ip->saddr = htonl(0x0a000001);
		ip->daddr = htonl(0x0a000002);
		at += sizeof(*ip);
	}
	tcp = (struct tcphdr *)(r->header + at);
	memset(tcp, 0, sizeof(*tcp));
	tcp->doff = 8;
	r->checksum_start = at;
	r->checksum_offset = offsetof(struct tcphdr, check);
	return at + 32;
}

/* A TCP segment of 64 KiB in 16 fragments. */
static struct hot_tx_request *tso(u32 i, bool v6, u32 tags)
{
	struct hot_tx_request *r = linear(i, 60);
	u32 n;

	r->header_length = fill_tcp(r, v6, tags);
	r->gso_type = v6 ? HOT_GSO_TCPV6 : HOT_GSO_TCPV4;
	r->gso_size = 1400;
	for (n = 0; n < 15; n++)
		add_fragment(r, GUEST_PAGE(n * 2), PAGE_SIZE);
	add_fragment(r, GUEST_PAGE(40) + 100, 1000);
	return r;
}

static struct test_packet *last_packet(void)
{
	return &driver->packet[(driver->next - 1) % TEST_RING];
}

/* ---- Setup -------------------------------------------------------------- */

static void test_setup(void)
{
	begin();
	CHECK(hot_transmit(&driver->dev, 0, 1) == 0);	/* nothing is set up: nothing happens */
	CHECK(hot_poll(64) == 0);
	CHECK(hot_setup(&driver->dev) == 0);
	CHECK(hot_setup(&driver->dev) == 0);
	hot_machine_frames = (TEST_RAM + TEST_GUEST_RAM) >> PAGE_SHIFT;
	begin();
	CHECK(hot_pools[HOT_POOL_SKB].count && hot_pools[HOT_POOL_BUFFER].count &&
	      hot_pools[HOT_POOL_LARGE].count);
	CHECK(hot_features(&driver->dev) == (HOT_CAN_FRAGMENTS | HOT_CAN_CHECKSUM | HOT_CAN_TSO4 |
					     HOT_CAN_TSO6 | HOT_CAN_VLAN));
	settled();
}

/* ---- Transmit ----------------------------------------------------------- */

static void test_linear(void)
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
	settled();
}

static void test_short_is_padded(void)
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
	settled();
}

static void test_fragments(void)
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
	settled();
}

static void test_checksum(void)
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
	settled();
}

static void test_tso(void)
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
	settled();
}

static void test_vlan_tag(void)
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
	settled();
}

static void test_doorbell_once_a_batch(void)
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
	settled();
}

static void test_completions_name_their_request(void)
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
	settled();
}

/* A consumer that stops reading stops senders; nothing is overwritten. */
static void test_unread_completions_stop_senders(void)
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
	settled();
}

static void test_busy_queue(void)
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
	settled();
}

static void test_down(void)
{
	begin();
	linear(0, 60);
	set_bit(__LINK_STATE_NOCARRIER, &driver->dev.state);
	CHECK(hot_transmit(&driver->dev, 0, 1) == 0 && request(0)->result == HOT_DOWN);
	clear_bit(__LINK_STATE_NOCARRIER, &driver->dev.state);
	clear_bit(__LINK_STATE_START, &driver->dev.state);
	CHECK(hot_transmit(&driver->dev, 0, 1) == 0 && request(0)->result == HOT_DOWN);
	settled();
}

/* A packet that the driver drops completes like one that it sent. */
static void test_dropped_by_driver(void)
{
	struct hot_tx_done done;

	begin();
	linear(0, 60);
	driver->drop = true;
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
	CHECK(completion(&done) && done.cookie == 0x1000);
	settled();
}

static void test_byte_limits_stop_and_restart(void)
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
	settled();
}

/* ---- Malformed requests ------------------------------------------------- */

static void rejected(const char *why)
{
	u64 before = counted(HOT_COUNT_INVALID);

	if (hot_transmit(&driver->dev, 0, 1) != 0 || request(0)->result != HOT_INVALID)
		test_fail(why, 0, "accepted");
	CHECK(counted(HOT_COUNT_INVALID) == before + 1);
	CHECK(driver->next == 0);
}

#define REJECT(make, change)					\
	do {							\
		struct hot_tx_request *r __maybe_unused = make;	\
		change;						\
		rejected(#make ": " #change);			\
	} while (0)

static struct hot_tx_request *fragmented(void)
{
	struct hot_tx_request *r = linear(0, 60);

	add_fragment(r, GUEST_PAGE(1), 500);
	add_fragment(r, GUEST_PAGE(2), 500);
	return r;
}

static struct hot_tx_request *checksummed(void)
{
	struct hot_tx_request *r = linear(0, 60);

	r->header_length = fill_tcp(r, false, 0);
	return r;
}

static void test_malformed(void)
{
	begin();
	REJECT(linear(0, 60), r->header_length = 0);
	REJECT(linear(0, 60), r->header_length = 13);
	REJECT(linear(0, 60), r->header_length = HOT_HEADER + 1);
	REJECT(linear(0, 60), r->header_length = 0xffff);
	REJECT(linear(0, 60), r->flags = 2);
	REJECT(linear(0, 60), r->flags = 0xffff);
	REJECT(linear(0, 60), r->gso_type = 3);
	REJECT(linear(0, 60), r->gso_size = 1000);
	REJECT(linear(0, 60), r->gso_type = HOT_GSO_TCPV4);
	REJECT(linear(0, 14), *(__be16 *)(r->header + 12) = htons(ETH_P_8021Q));
	REJECT(linear(0, 60), *(__be16 *)(r->header + 12) = *(__be16 *)(r->header + 16) =
	       *(__be16 *)(r->header + 20) = htons(ETH_P_8021AD));

	REJECT(fragmented(), r->fragments = HOT_FRAGMENTS + 1);
	REJECT(fragmented(), r->fragments = 0xffff);
	REJECT(fragmented(), r->fragment[1].length = 0);
	REJECT(fragmented(), r->fragment[1].length = 0xffffffff);
	REJECT(fragmented(), r->fragment[1].length = 1442);	/* above the MTU by one */
	REJECT(fragmented(), r->fragment[0].address = TEST_RAM + TEST_GUEST_RAM);
	REJECT(fragmented(), r->fragment[0].address = TEST_RAM + TEST_GUEST_RAM - 499);
	REJECT(fragmented(), r->fragment[0].address = ~0ull);
	REJECT(fragmented(), r->fragment[0].address = ~0ull - 600);
	REJECT(fragmented(), (r->header_length = 14, r->fragments = 1, r->fragment[0].length = 45));

	REJECT(checksummed(), r->checksum_start = 13);
	REJECT(checksummed(), r->checksum_start = r->header_length - 1);
	REJECT(checksummed(), r->checksum_start = 0xffff);
	REJECT(checksummed(), r->checksum_offset = 0xffff);
	REJECT(checksummed(), r->checksum_offset = r->header_length - r->checksum_start - 1);
	REJECT(checksummed(), (r->header_length = 30, r->checksum_start = 14, r->checksum_offset = 0));

	REJECT(tso(0, false, 0), r->gso_size = HOT_MIN_GSO_SIZE - 1);
	REJECT(tso(0, false, 0), r->gso_size = 1449);
	REJECT(tso(0, false, 0), r->gso_type = HOT_GSO_TCPV6);
	REJECT(tso(0, true, 0), r->gso_type = HOT_GSO_TCPV4);
	REJECT(tso(0, false, 0), r->checksum_start = 0);
	REJECT(tso(0, false, 0), r->checksum_start += 4);
	REJECT(tso(0, false, 0), r->checksum_offset = 6);
	REJECT(tso(0, false, 0), r->header_length -= 1);
	REJECT(tso(0, false, 0), r->header[14] = 0x44);		/* ihl below 5 */
	REJECT(tso(0, false, 0), r->header[14] = 0x4f);		/* ihl beyond the header */
	REJECT(tso(0, false, 0), r->header[14] = 0x65);
	REJECT(tso(0, false, 0), r->header[23] = IPPROTO_UDP);
	REJECT(tso(0, false, 0), r->header[34 + 12] = 0x40);	/* doff below 5 */
	REJECT(tso(0, false, 0), r->header[34 + 12] = 0xf0);
	REJECT(tso(0, false, 0), r->fragments = 0);		/* no payload */
	REJECT(tso(0, false, 0), r->fragment[15].length = 5000);	/* beyond 64 KiB */

	driver->dev.features = 0;
	REJECT(fragmented(), );
	REJECT(checksummed(), );
	REJECT(tso(0, false, 0), );
	REJECT(linear(0, 60), r->flags = HOT_TX_VLAN);
	driver->dev.features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO;
	REJECT(tso(0, true, 0), );
	CHECK(hot_transmit(&driver->dev, HOT_REQUESTS, 1) == 0);
	CHECK(hot_transmit(&driver->dev, 1, HOT_REQUESTS) == 0);
	CHECK(hot_transmit(&driver->dev, ~0u, 2) == 0);
	settled();
}

/* Changes one thing, or many, at random. */
static void mutate(struct hot_tx_request *r)
{
	static const u16 words[] = { 0, 1, 13, 14, 34, 128, 129, 0x7fff, 0xffff };
	u32 n = test_random() % 4;

	while (n--) {
		u32 at = test_random() % 432;

		switch (test_random() % 4) {
		case 0:
			((u8 *)r)[at] = test_random();
			break;
		case 1:
			((u8 *)r)[at] ^= 1 << test_random() % 8;
			break;
		case 2:
			*(u16 *)((u8 *)r + 12 + test_random() % 8 * 2) =
				words[test_random() % ARRAY_SIZE(words)];
			break;
		case 3:
			r->fragment[test_random() % HOT_FRAGMENTS].length =
				words[test_random() % ARRAY_SIZE(words)];
			break;
		}
	}
}

static struct hot_tx_request *random_template(u32 i)
{
	struct hot_tx_request *r;

	switch (test_random() % 4) {
	case 0:
		return linear(i, 14 + test_random() % 115);
	case 1:
		return tso(i, test_random() & 1, test_random() % 3);
	case 2:
		r = linear(i, 60);
		r->header_length = fill_tcp(r, test_random() & 1, test_random() % 3);
		return r;
	default:
		r = linear(i, 60);
		add_fragment(r, GUEST_PAGE(test_random() % 4096), 1 + test_random() % 1400);
		return r;
	}
}

/* The driver checks every packet it is given; here that results agree. */
static void test_fuzz(void)
{
	u32 rounds, i, accepted = 0, refused = 0;

	begin();
	for (rounds = 0; rounds < 20000; rounds++) {
		u32 count = 1 + test_random() % 16, sent, n = 0, before = driver->next;

		for (i = 0; i < count; i++)
			mutate(random_template(i));
		driver->dev.mtu = test_random() % 8 ? 1500 : 68 + test_random() % 9000;
		sent = hot_transmit(&driver->dev, 0, count);
		for (i = 0; i < count; i++) {
			CHECK(request(i)->result == HOT_SENT || request(i)->result == HOT_INVALID);
			n += request(i)->result == HOT_SENT;
		}
		CHECK(n == sent && driver->next - before == sent);
		CHECK(!sent || !last_packet()->more);
		accepted += sent;
		refused += count - sent;
		CHECK(driver_clean(1000) == sent);
		CHECK(completions() == sent);
	}
	CHECK(accepted > 20000 && refused > 20000);
	settled();
}

/* A guest that rewrites its request while it is read (double fetch). */
static u32 race_stop;

static void race(u32 cpu)
{
	u32 rounds, i;

	if (cpu == 1) {
		struct hot_tx_request *r = (struct hot_tx_request *)hot_shared[0].requests;

		while (!READ_ONCE(race_stop))
			for (i = 0; i < 16; i++)
				mutate(&r[i]);
		return;
	}
	for (rounds = 0; rounds < 20000; rounds++) {
		u32 sent;

		for (i = 0; i < 16; i++)
			random_template(i);
		sent = hot_transmit(&driver->dev, 0, 16);
		CHECK(driver_clean(1000) == sent);
		CHECK(completions() == sent);
	}
	WRITE_ONCE(race_stop, 1);
}

static void test_double_fetch(void)
{
	begin();
	WRITE_ONCE(race_stop, 0);
	test_two_cpus(race);
	settled();
}

/* ---- Pools -------------------------------------------------------------- */

static void exhaust_skbs(u32 *taken, struct sk_buff **skbs, u32 most)
{
	for (*taken = 0; *taken < most; ++*taken) {
		skbs[*taken] = napi_alloc_skb(&driver->napi, 60);
		if (!skbs[*taken])
			break;
	}
}

static struct sk_buff *many[HOT_POOL_MAX + 1];

static void test_exhaustion_and_recovery(void)
{
	u64 refused;
	u32 n, i;

	begin();
	refused = counted(HOT_COUNT_SKB_EXHAUSTED) + counted(HOT_COUNT_BUFFER_EXHAUSTED);
	exhaust_skbs(&n, many, ARRAY_SIZE(many));
	CHECK(n > HOT_POOL_MAX - HOT_CPUS * HOT_MAGAZINE && n <= HOT_POOL_MAX);
	CHECK(counted(HOT_COUNT_SKB_EXHAUSTED) + counted(HOT_COUNT_BUFFER_EXHAUSTED) > refused);
	CHECK(netdev_alloc_frag(1900) == NULL);
	linear(0, 60);
	linear(1, 60);
	CHECK(hot_transmit(&driver->dev, 0, 2) == 0);
	CHECK(request(0)->result == HOT_NO_BUFFER && request(1)->result == HOT_NO_BUFFER);
	CHECK(!driver_receive(request(0)->header, 60, false));
	for (i = 0; i < n; i++)
		dev_kfree_skb_any(many[i]);
	CHECK(hot_transmit(&driver->dev, 0, 2) == 2);
	settled();
}

static void test_exhausted_in_mid_batch(void)
{
	u32 n, i;

	begin();
	exhaust_skbs(&n, many, ARRAY_SIZE(many));
	for (i = 0; i < 3; i++)
		consume_skb(many[--n]);
	for (i = 0; i < 6; i++)
		linear(i, 60);
	CHECK(hot_transmit(&driver->dev, 0, 6) == 3);
	CHECK(request(2)->result == HOT_SENT && request(3)->result == HOT_NO_BUFFER);
	CHECK(driver->doorbells == 1 && !last_packet()->more);
	while (n)
		consume_skb(many[--n]);
	settled();
}

static void test_sizes(void)
{
	static const u32 sizes[] = { 1, 64, 1920, 2048, 2049, 2432, 4096 };
	void *buffer;
	u32 i;

	begin();
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		buffer = netdev_alloc_frag(sizes[i]);
		CHECK(buffer);
		if (!buffer)
			continue;
		memset(buffer, 0xaa, sizes[i]);
		CHECK((unsigned long)buffer >> 16 == ((unsigned long)buffer + sizes[i] - 1) >> 16);
		/* far above what puts could drop */
		CHECK(page_ref_count(virt_to_page(buffer)) > 1000);
		page_frag_free(buffer + sizes[i] / 2);
	}
	CHECK(netdev_alloc_frag(4097) == NULL);
	CHECK(netdev_alloc_frag(~0u) == NULL);
	CHECK(napi_alloc_skb(&driver->napi, 1 << 16) == NULL);
	CHECK(napi_alloc_skb(&driver->napi, ~0u - 32) == NULL);
	settled();
}

/* The paper's rule (4.3): dom0's own free never releases, and loses nothing. */
static void test_reference_rule(void)
{
	struct sk_buff *skb;
	u64 reclaimed;
	u32 n, i;

	begin();
	skb = napi_alloc_skb(&driver->napi, 100);
	CHECK(refcount_read(&skb->users) == 2);
	skb_get(skb);
	consume_skb(skb);		/* one of two references */
	CHECK(refcount_read(&skb->users) == 2);
	CHECK(hot_pools[HOT_POOL_SKB].state[hot_skb_index(skb)] == HOT_OBJECT_BUSY);
	consume_skb(skb);
	CHECK(hot_pools[HOT_POOL_SKB].state[hot_skb_index(skb)] == HOT_OBJECT_FREE);

	reclaimed = counted(HOT_COUNT_RECLAIMED);
	exhaust_skbs(&n, many, ARRAY_SIZE(many));
	for (i = 0; i < n; i++)
		CHECK(!test_dom0_free(many[i]));
	/* no hot routine freed any of them, and yet they come back */
	for (i = 0; i < n; i++) {
		many[i] = hot_skb_reclaim() ? NULL : many[i];
		if (counted(HOT_COUNT_RECLAIMED) - reclaimed == n)
			break;
	}
	CHECK(counted(HOT_COUNT_RECLAIMED) - reclaimed == n);
	settled();
}

static void test_reclaimed_when_exhausted(void)
{
	u32 n, i, round;

	begin();
	for (round = 0; round < 3; round++) {
		exhaust_skbs(&n, many, ARRAY_SIZE(many));
		CHECK(n > HOT_POOL_MAX - HOT_CPUS * HOT_MAGAZINE);
		for (i = 0; i < n; i++)
			CHECK(!test_dom0_free(many[i]));
	}
	/* what dom0 freed last has not been looked for yet */
	while (hot_skb_reclaim())
		;
	settled();
}

static void test_bad_frees(void)
{
	struct sk_buff *skb;
	u64 bad;
	void *buffer;

	begin();
	bad = counted(HOT_COUNT_BAD_FREE);
	skb = napi_alloc_skb(&driver->napi, 100);
	consume_skb(skb);
	consume_skb(skb);
	napi_consume_skb(skb, 64);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 2);
	buffer = netdev_alloc_frag(1900);
	page_frag_free(buffer);
	page_frag_free(buffer);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 3);
	skb = napi_alloc_skb(&driver->napi, 100);
	skb->end = 0xfffff0;		/* skb_shared_info would be anywhere */
	consume_skb(skb);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 4);
	consume_skb(NULL);
	settled();
}

/* What is not the pool's is dom0's to free: by upcalls, and only then. */
static void test_foreign(void)
{
	static struct sk_buff foreign;
	struct sk_buff *skb;
	void *page;

	begin();
	refcount_set(&foreign.users, 1);
	consume_skb(&foreign);
	CHECK(test_upcalls == 1 && refcount_read(&foreign.users) == 1);
	page = hot_pages(0);
	atomic_inc(&virt_to_page(page)->_refcount);
	page_frag_free(page + 100);
	CHECK(test_upcalls == 1);
	page_frag_free(page + 100);
	CHECK(test_upcalls == 2);
	/* a pool's sk_buff whose head dom0 replaced (pskb_expand_head) */
	skb = napi_alloc_skb(&driver->napi, 100);
	page_frag_free(skb->head);
	skb->head = skb->data = page;
	skb->head_frag = 0;
	consume_skb(skb);
	CHECK(test_upcalls == 3);
	/* one shared by a clone keeps its data until the other is gone */
	skb = napi_alloc_skb(&driver->napi, 100);
	page = skb->head;
	skb->cloned = 1;
	atomic_set(&skb_shinfo(skb)->dataref, 2);
	consume_skb(skb);
	CHECK(hot_pools[HOT_POOL_BUFFER].state[hot_pool_index(&hot_pools[HOT_POOL_BUFFER], page)] ==
	      HOT_OBJECT_BUSY);
	page_frag_free(page);
	test_upcalls = 0;
	settled();
}

static void test_length(void)
{
	struct sk_buff *skb;

	begin();
	skb = napi_alloc_skb(&driver->napi, 100);
	CHECK(skb_headroom(skb) == NET_SKB_PAD + NET_IP_ALIGN && skb_tailroom(skb) >= 100);
	CHECK(skb_put(skb, 90) == skb->data && skb->len == 90);
	CHECK(skb_put(skb, 10) == skb->data + 90 && skb->len == 100);
	skb_trim(skb, 200);
	CHECK(skb->len == 100);
	skb_trim(skb, 64);
	CHECK(skb->len == 64 && skb_tail_pointer(skb) == skb->data + 64);
	CHECK(skb_put_padto(skb, 80) == 0 && skb->len == 80);
	consume_skb(skb);
	settled();
}

static void test_trim_fragments(void)
{
	u32 to;

	begin();
	for (to = 50; to <= 60 + 3 * 400; to += 25) {
		struct sk_buff *skb = napi_alloc_skb(&driver->napi, 60);
		u32 i, total;

		skb_put(skb, 60);
		for (i = 0; i < 3; i++) {
			void *buffer = netdev_alloc_frag(400);
			skb_frag_t *fragment = &skb_shinfo(skb)->frags[i];

			fragment->bv_page = virt_to_page(buffer);
			skb_frag_off_set(fragment, offset_in_page(buffer));
			skb_frag_size_set(fragment, 400);
			skb_shinfo(skb)->nr_frags++;
			skb->len += 400;
			skb->data_len += 400;
		}
		CHECK(pskb_trim(skb, to) == 0);
		total = skb_headlen(skb);
		for (i = 0; i < skb_shinfo(skb)->nr_frags; i++)
			total += skb_frag_size(&skb_shinfo(skb)->frags[i]);
		CHECK(skb->len == to && total == to);
		CHECK(skb_shinfo(skb)->nr_frags == (to <= 60 ? 0 : DIV_ROUND_UP(to - 60, 400)));
		consume_skb(skb);
	}
	settled();
}

static void test_guest_pages_are_not_pulled(void)
{
	struct sk_buff *skb;

	begin();
	add_fragment(linear(0, 60), GUEST_PAGE(0), 100);
	hot_transmit(&driver->dev, 0, 1);
	skb = last_packet()->skb;
	CHECK(__skb_pad(skb, 10, false) == -ENOMEM);
	CHECK(pskb_trim(skb, 100) == 0 && skb->len == 100 && skb_shinfo(skb)->nr_frags == 1);
	CHECK(pskb_trim(skb, 60) == 0 && skb->len == 60 && skb_shinfo(skb)->nr_frags == 0);
	settled();
}

/* What one CPU allocates the other frees: through two mailboxes. */
#define HAMMER	400000u

static struct sk_buff *mailbox[2][64];

static void hammer(u32 cpu)
{
	u32 i, k, got = 0;

	for (i = 0; i < HAMMER; i++) {
		struct sk_buff *skb = napi_alloc_skb(&driver->napi, 100);

		if (skb) {
			got++;
			*(u64 *)skb_put(skb, 8) = i;
			*(u64 *)skb->cb = i;
		}
		skb = xchg(&mailbox[cpu][i % 64], skb);
		if (skb) {
			CHECK(*(u64 *)skb->data == *(u64 *)skb->cb);
			consume_skb(skb);
		}
		skb = xchg(&mailbox[!cpu][test_random() % 64], NULL);
		if (skb) {
			CHECK(*(u64 *)skb->data == *(u64 *)skb->cb);
			napi_consume_skb(skb, 64);
		}
		if (i % 1024 == 0)
			for (k = 0; k < 64; k++)
				hot_skb_reclaim();
	}
	CHECK(got == HAMMER);
}

static void test_two_cpus_share_pools(void)
{
	u32 i;

	begin();
	test_two_cpus(hammer);
	for (i = 0; i < 128; i++)
		consume_skb(mailbox[i / 64][i % 64]);
	memset(mailbox, 0, sizeof(mailbox));
	settled();
}

/* In bursts above a magazine's size, so that both CPUs are at the pool's lock. */
static void hammer_bursts(u32 cpu)
{
	static void *burst[2][200];
	u32 round, i;

	for (round = 0; round < 4000; round++) {
		u32 n = 100 + test_random() % 100;

		for (i = 0; i < n; i++) {
			burst[cpu][i] = netdev_alloc_frag(1900);
			CHECK(burst[cpu][i]);
			if (burst[cpu][i])
				*(u64 *)burst[cpu][i] = cpu + 1 + i * 2;
		}
		for (i = 0; i < n; i++) {
			CHECK(*(u64 *)burst[cpu][i] == cpu + 1 + i * 2);
			page_frag_free(burst[cpu][i]);
		}
	}
}

static void test_two_cpus_in_bursts(void)
{
	begin();
	test_two_cpus(hammer_bursts);
	settled();
}

/* Packets of one CPU freed on two at once: each completes once, in one ring. */
static u32 free_barrier;

static void free_half(u32 cpu)
{
	u32 i;

	__sync_fetch_and_add(&free_barrier, 1);
	while (READ_ONCE(free_barrier) % 2)
		cpu_relax();
	for (i = cpu; i < 240; i += 2)
		napi_consume_skb(many[i], 64);
}

static void test_freed_on_two_cpus(void)
{
	static u8 seen[240];
	u32 round, i;

	begin();
	for (round = 0; round < 300; round++) {
		struct hot_tx_done done;
		u32 n = 0;

		for (i = 0; i < 240; i++)
			linear(i, 60);
		CHECK(hot_transmit(&driver->dev, 0, 240) == 240);
		for (i = 0; i < 240; i++)
			many[i] = driver->packet[driver->clean++ % TEST_RING].skb;
		test_two_cpus(free_half);
		memset(seen, 0, sizeof(seen));
		while (completion(&done)) {
			n++;
			CHECK(done.cookie - 0x1000 < 240 && !seen[done.cookie - 0x1000]++);
		}
		CHECK(n == 240);
	}
	settled();
}

/* One sends, the other frees: completions arrive in the sender's ring. */
static u32 both_sent, both_stop;

static void both(u32 cpu)
{
	u32 i;

	if (cpu == 1) {
		while (!READ_ONCE(both_stop)) {
			HARD_TX_LOCK((&driver->dev), (&driver->txq), 1);
			driver_clean(16);
			HARD_TX_UNLOCK((&driver->dev), (&driver->txq));
		}
		return;
	}
	both_sent = 0;
	for (i = 0; i < 50000; i++) {
		u32 k;

		for (k = 0; k < 8; k++)
			linear(k, 60 + k);
		both_sent += hot_transmit(&driver->dev, 0, 8);
		if (i % 4 == 0)
			both_sent -= completions();
	}
	WRITE_ONCE(both_stop, 1);
}

static void test_completed_by_another_cpu(void)
{
	begin();
	driver->room = 64;
	WRITE_ONCE(both_stop, 0);
	test_two_cpus(both);
	driver_clean(1000);
	both_sent -= completions();
	CHECK(both_sent == 0);
	settled();
}

/* ---- Receive ------------------------------------------------------------ */

static void frame(u8 *f, u8 first, u16 type)
{
	u32 i;

	for (i = 0; i < 200; i++)
		f[i] = i;
	memset(f, 0, 6);
	f[0] = first;
	*(__be16 *)(f + 12) = htons(type);
}

static void test_receive(void)
{
	struct test_host *host = &test_host[0];
	u8 f[200];
	u32 copy;

	begin();
	frame(f, 2, ETH_P_IP);
	f[5] = 9;
	for (copy = 0; copy < 2; copy++) {
		host->answer = HOT_RX_UNWANTED;
		CHECK(driver_receive(f, 200, copy));
		CHECK(host->length == 200 && host->vlan == 77);
		CHECK(host->flags == (HOT_RX_CHECKSUM_OK | HOT_RX_VLAN));
		CHECK(!memcmp(host->data, f, 200));
		pools_whole();

		host->answer = HOT_RX_HELD;
		CHECK(driver_receive(f, 200, copy));
		CHECK(!memcmp(host->data, f, 200));
		CHECK(host->skb->len == 186 && host->skb->protocol == htons(ETH_P_IP));
		CHECK(host->skb->pkt_type == PACKET_HOST && host->skb->dev == &driver->dev);
		CHECK(hot_pools[HOT_POOL_SKB].state[hot_skb_index(host->skb)] == HOT_OBJECT_HELD);
		/* what is held is nobody else's to free */
		consume_skb(host->skb);
		CHECK(hot_pools[HOT_POOL_SKB].state[hot_skb_index(host->skb)] == HOT_OBJECT_HELD);
		CHECK(hot_release(host->queue, host->held) == 1);
		host->held = 0;
		pools_whole();
	}
	settled();
}

static void test_packet_types(void)
{
	struct test_host *host = &test_host[0];
	u8 f[200];

	begin();
	host->answer = HOT_RX_UNWANTED;
	frame(f, 2, ETH_P_IP);
	driver_receive(f, 60, true);
	CHECK(host->skb->pkt_type == PACKET_OTHERHOST);
	frame(f, 1, 0x0600);
	driver_receive(f, 60, true);
	CHECK(host->skb->pkt_type == PACKET_MULTICAST && host->skb->protocol == htons(0x600));
	frame(f, 1, 0x05ff);
	memset(f, 0xff, 6);
	driver_receive(f, 60, true);
	CHECK(host->skb->pkt_type == PACKET_BROADCAST && host->skb->protocol == htons(ETH_P_802_2));
	f[14] = f[15] = 0xff;
	driver_receive(f, 60, true);
	CHECK(host->skb->protocol == htons(ETH_P_802_3));
	settled();
}

static void test_release_believes_nothing(void)
{
	u64 *release = (u64 *)shared()->release;
	u64 bad = counted(HOT_COUNT_BAD_FREE);
	struct sk_buff *busy;
	u8 f[200];

	begin();
	frame(f, 2, ETH_P_IP);
	driver_receive(f, 200, false);
	busy = napi_alloc_skb(&driver->napi, 60);
	release[0] = 0;
	release[1] = ~0ull;
	release[2] = (u64)busy;
	release[3] = test_host[0].queue[0] + 8;
	release[4] = test_host[0].queue[0];
	release[5] = test_host[0].queue[0];
	CHECK(hot_release(release, 6) == 1);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 5);
	consume_skb(busy);
	settled();
}

static void test_receive_many_held(void)
{
	u32 n = 0, round;
	u8 f[200];

	begin();
	frame(f, 2, ETH_P_IP);
	for (round = 0; round < 40; round++) {
		u32 i;

		for (i = 0; i < HOT_RELEASE; i++)
			CHECK(driver_receive(f, 60 + i % 140, i & 1));
		n += hot_release(test_host[0].queue, test_host[0].held);
		test_host[0].held = 0;
	}
	CHECK(n == 40 * HOT_RELEASE);
	settled();
}

/* ---- NAPI --------------------------------------------------------------- */

static void test_napi_cycle(void)
{
	struct napi_struct *n;

	begin();
	n = &driver->napi;
	CHECK(hot_poll(300) == 0 && !hot_pending());
	CHECK(napi_schedule_prep(n));
	CHECK(!napi_schedule_prep(n));
	CHECK(n->state == (NAPIF_STATE_SCHED | NAPIF_STATE_MISSED));
	n->state = NAPIF_STATE_SCHED;
	__napi_schedule(n);
	CHECK(hot_pending());
	driver->poll_work[0] = 5;
	CHECK(hot_poll(300) == 5);
	CHECK(driver->polls == 1 && driver->interrupts_enabled == 1);
	CHECK(n->state == 0 && list_empty(&n->poll_list) && !hot_pending());
	settled();
}

static void test_napi_goes_on_until_done(void)
{
	begin();
	driver->poll_work[0] = driver->poll_work[1] = 64;
	driver->poll_work[2] = 3;
	napi_schedule(&driver->napi);
	CHECK(hot_poll(300) == 131 && driver->polls == 3 && driver->interrupts_enabled == 1);
	/* a budget spent leaves it listed */
	driver->polls = 0;
	napi_schedule(&driver->napi);
	CHECK(hot_poll(64) == 64 && hot_pending() && driver->polls == 1);
	CHECK(hot_poll(64) == 64 && hot_pending());
	CHECK(hot_poll(64) == 3 && !hot_pending());
	settled();
}

static void test_napi_missed(void)
{
	begin();
	driver->poll_work[0] = 5;
	driver->poll_work[1] = 2;
	driver->poll_reschedules = true;
	napi_schedule(&driver->napi);
	CHECK(hot_poll(300) == 7);
	CHECK(driver->polls == 2 && driver->interrupts_enabled == 1 && driver->napi.state == 0);
	settled();
}

static void test_napi_disable(void)
{
	begin();
	set_bit(NAPI_STATE_DISABLE, &driver->napi.state);
	CHECK(!napi_schedule_prep(&driver->napi));
	clear_bit(NAPI_STATE_DISABLE, &driver->napi.state);
	/* disabled while polled: it completes though there is work left */
	driver->poll_work[0] = 64;
	napi_schedule(&driver->napi);
	set_bit(NAPI_STATE_DISABLE, &driver->napi.state);
	CHECK(hot_poll(300) == 64);
	CHECK(driver->napi.state == NAPIF_STATE_DISABLE && !hot_pending());
	/* busy polling or netpoll own it: nothing is completed */
	driver->napi.state = NAPIF_STATE_SCHED | NAPIF_STATE_NPSVC;
	CHECK(!napi_complete_done(&driver->napi, 0));
	CHECK(driver->napi.state == (NAPIF_STATE_SCHED | NAPIF_STATE_NPSVC));
	settled();
}

/* A poll that claims no progress, of a driver with a weight of 0, must end. */
static void test_napi_weight_zero_ends(void)
{
	begin();
	driver->napi.weight = 0;
	napi_schedule(&driver->napi);
	hot_poll(300);
	CHECK(driver->polls == 300);
	hot_recover(&driver->dev, 0);
	CHECK(!hot_pending());
	settled();
}

static void test_bottom_halves(void)
{
	begin();
	driver->poll_work[0] = 1;
	local_bh_disable();
	local_bh_disable();
	napi_schedule(&driver->napi);
	local_bh_enable();
	CHECK(driver->polls == 0);
	local_bh_enable();
	CHECK(driver->polls == 1 && !hot_pending());
	settled();
}

/* Two CPUs schedule one napi as fast as they can: polled on one at a time. */
static u32 in_poll, poll_calls;

static int exclusive_poll(struct napi_struct *napi, int budget)
{
	CHECK(xchg(&in_poll, 1) == 0);
	WRITE_ONCE(poll_calls, poll_calls + 1);
	WRITE_ONCE(in_poll, 0);
	napi_complete_done(napi, 0);
	return 0;
}

static void schedule_and_poll(u32 cpu)
{
	u32 i;

	for (i = 0; i < 300000; i++) {
		if (napi_schedule_prep(&driver->napi)) {
			__napi_schedule(&driver->napi);
			hot_poll(64);
		}
	}
	while (hot_pending())
		hot_poll(64);
	CHECK(preempt_count() == 0);
}

static void test_napi_on_two_cpus(void)
{
	begin();
	driver->napi.poll = exclusive_poll;
	test_two_cpus(schedule_and_poll);
	CHECK(poll_calls > 0 && driver->napi.state == 0);
	settled();
}

/* ---- Locks -------------------------------------------------------------- */

static DEFINE_SPINLOCK(counter_lock);
static volatile u64 counter_value;

static void count_up(u32 cpu)
{
	unsigned long flags;
	u32 i;

	for (i = 0; i < 200000; i++) {
		if (i & 1) {
			spin_lock(&counter_lock);
			counter_value = counter_value + 1;
			spin_unlock(&counter_lock);
		} else {
			spin_lock_irqsave(&counter_lock, flags);
			counter_value = counter_value + 1;
			spin_unlock_irqrestore(&counter_lock, flags);
		}
	}
	CHECK(preempt_count() == 0);
}

static void test_locks_exclude(void)
{
	begin();
	counter_value = 0;
	test_two_cpus(count_up);
	CHECK(counter_value == 400000 && !spin_is_locked(&counter_lock));
	settled();
}

static void test_virtual_interrupt_flag(void)
{
	unsigned long outer, inner;

	begin();
	CHECK(this_cpu_read(hot_vif) == 1);
	spin_lock_irqsave(&counter_lock, outer);
	CHECK(this_cpu_read(hot_vif) == 0 && spin_is_locked(&counter_lock));
	CHECK(preempt_count() == 1);
	spin_lock_irqsave(&driver->txq._xmit_lock, inner);
	spin_unlock_irqrestore(&driver->txq._xmit_lock, inner);
	CHECK(this_cpu_read(hot_vif) == 0);
	spin_unlock_irqrestore(&counter_lock, outer);
	CHECK(this_cpu_read(hot_vif) == 1 && !spin_is_locked(&counter_lock));
	settled();
}

/* ---- Recovery ----------------------------------------------------------- */

static void test_recover(void)
{
	struct hot_tx_done done;
	struct sk_buff *held;
	u8 f[200];
	u32 n;

	begin();
	frame(f, 2, ETH_P_IP);
	driver_receive(f, 200, false);		/* held: must survive */
	held = test_host[0].skb;
	linear(0, 60);
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
	driver->clean = driver->next;		/* the ring forgot it */
	shared()->tx_sent--;			/* CPU 1 died before it counted */
	exhaust_skbs(&n, many, 500);
	CHECK(netdev_alloc_frag(1900) && netdev_alloc_frag(4000));
	hot_pools[HOT_POOL_BUFFER].lock = 1 + 1;	/* CPU 1 died in there ... */
	hot_shared[0].tx_done_lock = 1 + 1;
	WRITE_ONCE(driver->txq.xmit_lock_owner, 1);
	driver->txq._xmit_lock.rlock.raw_lock.val.counter = 1;
	hot_cpus[1].polling = 1;
	CHECK(hot_recover(&driver->dev, HOT_CPUS) == 0);
	CHECK(hot_recover(&driver->dev, 1) == 0);	/* ... and the interface is up */
	CHECK(!spin_is_locked(&driver->txq._xmit_lock));
	CHECK(hot_pools[HOT_POOL_BUFFER].lock == 0 && hot_shared[0].tx_done_lock == 0);
	clear_bit(__LINK_STATE_START, &driver->dev.state);
	CHECK(hot_recover(&driver->dev, 1) == 2 + 500 + 500 + 2);
	CHECK(completion(&done) && done.cookie == 0x1000 && !completion(&done));
	CHECK(shared()->tx_sent == shared()->tx_done_produce);
	CHECK(!memcmp(skb_mac_header(held), f, 200));
	CHECK(hot_release(test_host[0].queue, 1) == 1);
	settled();
}

/* The napi of a CPU that died, wherever it did, can be disabled and used again. */
static void napi_dies(u32 cpu)
{
	if (cpu == 1 && napi_schedule_prep(&driver->napi) && driver->room)
		__napi_schedule(&driver->napi);
}

static void test_recover_napi(void)
{
	u32 listed;

	begin();
	for (listed = 0; listed < 2; listed++) {
		driver->room = listed;
		test_two_cpus(napi_dies);
		CHECK(driver->napi.state == NAPIF_STATE_SCHED);
		CHECK(!napi_schedule_prep(&driver->napi));
		hot_recover(&driver->dev, 1);
		CHECK(driver->napi.state == 0 && list_empty(&driver->napi.poll_list));
	}
	/* what another CPU has scheduled since stays */
	test_two_cpus(napi_dies);
	driver->napi.state = 0;
	INIT_LIST_HEAD(&driver->napi.poll_list);
	napi_schedule(&driver->napi);
	hot_recover(&driver->dev, 1);
	CHECK(driver->napi.state == NAPIF_STATE_SCHED && hot_pending());
	hot_poll(300);
	settled();
}

/* ---- Queue limits ------------------------------------------------------- */

/*
 * The reference: the definition on counters that do not wrap, every quantity
 * by its meaning.
 */
struct reference {
	s64 queued, completed, last;		/* totals; the last queued object */
	s64 seen_queued, seen_last, seen_over;	/* at the last completion */
	s64 limit, lowest;
	u64 since;
	s64 most, least;
	u64 hold;
};

static s64 positive(s64 x)
{
	return x > 0 ? x : 0;
}

static void reference_completed(struct reference *r, s64 count, u64 now)
{
	s64 done = r->completed + count, left = r->queued - done;
	s64 over = positive(r->queued - r->completed - r->limit);
	bool starved = (over > 0 && left == 0) || (r->seen_over > 0 && done >= r->seen_queued);
	bool busy = left > 0 && r->seen_queued > r->completed && done < r->seen_queued;
	s64 limit = r->limit;

	if (starved) {
		limit += positive(done - r->seen_queued) + r->seen_over;
		r->since = now;
		r->lowest = UINT_MAX;
	} else if (busy) {
		s64 slack = positive(limit + r->seen_over - 2 * count);

		if (r->seen_over)
			slack = max(slack, positive(r->seen_last - r->seen_over));
		r->lowest = min(r->lowest, slack);
		if (now > r->since + r->hold) {
			limit = positive(limit - r->lowest);
			r->since = now;
			r->lowest = UINT_MAX;
		}
	}
	limit = clamp(limit, r->least, r->most);
	r->seen_over = limit == r->limit ? over : 0;
	r->limit = limit;
	r->completed = done;
	r->seen_queued = r->queued;
	r->seen_last = r->last;
}

static void dql_run(u32 start, u32 steps)
{
	struct dql dql = { .max_limit = 1 << 20, .min_limit = test_random() % 3 * 500,
			   .slack_hold_time = test_random() % 50 };
	struct reference r = { .most = dql.max_limit, .least = dql.min_limit,
			       .hold = dql.slack_hold_time };
	u32 i;

	dql_reset(&dql);
	r.limit = dql.limit;
	r.lowest = UINT_MAX;
	r.since = jiffies;
	/* as if 2^32 - something had passed already */
	dql.num_queued = dql.num_completed = dql.prev_num_queued = start;
	dql.adj_limit = start + dql.limit;
	r.queued = r.completed = r.seen_queued = start;
	for (i = 0; i < steps; i++) {
		s64 left = r.queued - r.completed;

		jiffies += test_random() % 4;
		if (dql_avail(&dql) >= 0 && test_random() % 3) {
			u32 object = 60 + test_random() % 9000;

			dql_queued(&dql, object);
			r.queued += object;
			r.last = object;
		} else if (left) {
			u32 count = test_random() % 2 ? left : 1 + test_random() % left;

			dql_completed(&dql, count);
			reference_completed(&r, count, jiffies);
			CHECK(dql.limit == r.limit && dql.lowest_slack == (u32)r.lowest);
			CHECK(dql.prev_ovlimit == r.seen_over);
		}
		CHECK(dql_avail(&dql) == (s32)(r.limit + r.completed - r.queued));
	}
}

static void test_dql(void)
{
	u32 i;

	begin();
	for (i = 0; i < 500; i++)
		dql_run(i & 1 ? 0 : 0u - 2000000, 2000);
	settled();
}

static void test_dql_bad_completion(void)
{
	struct dql dql = { .max_limit = 1000 };
	u64 bad = counted(HOT_COUNT_BAD_COMPLETION);

	begin();
	dql_reset(&dql);
	dql_queued(&dql, 100);
	dql_completed(&dql, 101);
	CHECK(counted(HOT_COUNT_BAD_COMPLETION) == bad + 1);
	CHECK(dql.num_completed == 100);
	settled();
}

/* ---- DMA, strings, checksums -------------------------------------------- */

static void test_dma(void)
{
	struct page *page = pfn_to_page(GUEST_PAGE(7) >> PAGE_SHIFT);

	begin();
	CHECK(dma_map_page_attrs(NULL, page, 123, 400, DMA_TO_DEVICE, 0) == GUEST_PAGE(7) + 123);
	CHECK(dma_map_page_attrs(NULL, page, 5000, 400, DMA_TO_DEVICE, 0) == GUEST_PAGE(7) + 5000);
	CHECK(!is_vmalloc_addr((void *)TEST_DIRECT_MAP));
	CHECK(!is_vmalloc_addr((void *)(TEST_DIRECT_MAP + TEST_RAM - 1)));
	CHECK(is_vmalloc_addr((void *)(TEST_DIRECT_MAP - 1)));
	CHECK(is_vmalloc_addr((void *)0xffffc90000000000ul));
	settled();
}

static void test_string(void)
{
	static u8 a[5000], b[5000];
	void *volatile to = b + 3;	/* the routines themselves, not builtins */
	u32 i, n;

	begin();
	for (n = 0; n < 4200; n += 1 + n / 3) {
		for (i = 0; i < sizeof(a); i++) {
			a[i] = test_random();
			b[i] = 0x55;
		}
		CHECK(memcpy(to, a + 1, n) == b + 3);
		CHECK(!memcmp(b + 3, a + 1, n) && b[2] == 0x55 && b[3 + n] == 0x55);
		CHECK(memset(to, 0x1ee, n) == b + 3);
		for (i = 0; i < n; i++)
			CHECK(b[3 + i] == 0xee);
		CHECK(b[2] == 0x55 && b[3 + n] == 0x55);
	}
	settled();
}

/* RFC 1071 by the book: 16-bit words, carries added at the end. */
static void test_csum_ipv6(void)
{
	u32 round;

	begin();
	for (round = 0; round < 20000; round++) {
		struct in6_addr from, to;
		u32 length = test_random(), seed = test_random(), i;
		u8 protocol = test_random();
		u64 sum = (seed & 0xffff) + (seed >> 16);

		for (i = 0; i < 8; i++) {
			from.s6_addr16[i] = round & 1 ? 0xffff : test_random();
			to.s6_addr16[i] = round & 1 ? 0xffff : test_random();
			sum += from.s6_addr16[i] + to.s6_addr16[i];
		}
		sum += htons(length >> 16) + htons(length & 0xffff) + htons(protocol);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		CHECK((u16)csum_ipv6_magic(&from, &to, length, protocol, seed) == (u16)~sum);
	}
	settled();
}

#define TEST(name)	{ #name, test_##name }

const struct hot_test hot_tests[] = {
	TEST(setup),
	TEST(linear),
	TEST(short_is_padded),
	TEST(fragments),
	TEST(checksum),
	TEST(tso),
	TEST(vlan_tag),
	TEST(doorbell_once_a_batch),
	TEST(completions_name_their_request),
	TEST(unread_completions_stop_senders),
	TEST(busy_queue),
	TEST(down),
	TEST(dropped_by_driver),
	TEST(byte_limits_stop_and_restart),
	TEST(malformed),
	TEST(fuzz),
	TEST(double_fetch),
	TEST(exhaustion_and_recovery),
	TEST(exhausted_in_mid_batch),
	TEST(sizes),
	TEST(reference_rule),
	TEST(reclaimed_when_exhausted),
	TEST(bad_frees),
	TEST(foreign),
	TEST(length),
	TEST(trim_fragments),
	TEST(guest_pages_are_not_pulled),
	TEST(two_cpus_share_pools),
	TEST(two_cpus_in_bursts),
	TEST(freed_on_two_cpus),
	TEST(completed_by_another_cpu),
	TEST(receive),
	TEST(packet_types),
	TEST(release_believes_nothing),
	TEST(receive_many_held),
	TEST(napi_cycle),
	TEST(napi_goes_on_until_done),
	TEST(napi_missed),
	TEST(napi_disable),
	TEST(napi_weight_zero_ends),
	TEST(bottom_halves),
	TEST(napi_on_two_cpus),
	TEST(locks_exclude),
	TEST(virtual_interrupt_flag),
	TEST(recover),
	TEST(recover_napi),
	TEST(dql),
	TEST(dql_bad_completion),
	TEST(dma),
	TEST(string),
	TEST(csum_ipv6),
	{ }
};
