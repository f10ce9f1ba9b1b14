// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: what the device cannot do. A model of a device does what the
 * device of a test can do, and the frames that leave it must be the same whatever that is.
 */
#include "common.h"
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>

#define ALL_FEATURES (NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO | NETIF_F_TSO6 | \
		      NETIF_F_HW_VLAN_CTAG_TX)

/* ---- The device ---- */

struct frame {
	u32 length;
	u8 byte[1600];
};

/* What left it: 64 KiB in segments of 128 bytes are 512. */
struct wire {
	u32 count;
	struct frame frame[520];
};

static struct wire expected, seen;
static u8 gathered[70000];

static u32 get16(const u8 *at)
{
	return at[0] << 8 | at[1];
}

static void put16(u8 *at, u32 value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static u32 get32(const u8 *at)
{
	return get16(at) << 16 | get16(at + 2);
}

static void put32(u8 *at, u32 value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

/* RFC 1071, byte by byte. */
static u32 model_sum(const u8 *bytes, u32 length, u32 sum)
{
	u32 i;

	for (i = 0; i < length; i++)
		sum += i % 2 ? bytes[i] : bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void model_checksum(u8 *frame, u32 length, u32 start, u32 offset)
{
	u32 sum = ~model_sum(frame + start, length - start, 0) & 0xffff;

	put16(frame + start + offset, sum ? sum : 0xffff);
}

/* A frame leaves, with a tag if there is one. */
static void leave(struct wire *wire, const struct sk_buff *skb, const u8 *bytes, u32 length)
{
	struct frame *frame = &wire->frame[wire->count++];
	u32 tag = skb_vlan_tag_present(skb) ? VLAN_HLEN : 0;

	CHECK(wire->count <= ARRAY_SIZE(wire->frame) && length + tag <= sizeof(frame->byte));
	frame->length = length + tag;
	memcpy(frame->byte, bytes, 12);
	if (tag) {
		put16(frame->byte + 12, ETH_P_8021Q);
		put16(frame->byte + 14, skb_vlan_tag_get(skb));
	}
	memcpy(frame->byte + 12 + tag, bytes + 12, length - 12);
}

/* One segment of the large packet in gathered[]. */
static void cut_segment(struct wire *wire, const struct sk_buff *skb, u32 number, u32 from, u32 bytes,
			u32 payload)
{
	const u32 network = skb_network_offset(skb), tcp = skb_transport_offset(skb);
	const u32 headers = skb_tcp_all_headers(skb);
	const bool v4 = gathered[network] >> 4 == 4;
	u8 frame[1600];
	u32 sum;

	memcpy(frame, gathered, headers);
	memcpy(frame + headers, gathered + headers + from, bytes);
	if (v4) {
		put16(frame + network + 2, headers + bytes - network);
		put16(frame + network + 4, get16(frame + network + 4) + number);
		put16(frame + network + 10, 0);
		put16(frame + network + 10, ~model_sum(frame + network, tcp - network, 0));
		sum = model_sum(frame + network + 12, 8, 6 + headers + bytes - tcp);
	} else {
		put16(frame + network + 4, headers + bytes - network - 40);
		sum = model_sum(frame + network + 8, 32, 6 + headers + bytes - tcp);
	}
	put32(frame + tcp + 4, get32(frame + tcp + 4) + from);
	if (from + bytes < payload)
		frame[tcp + 13] &= ~0x09;
	if (number)
		frame[tcp + 13] &= ~0x80;
	put16(frame + tcp + 16, sum);
	model_checksum(frame, headers + bytes, tcp, 16);
	if (headers + bytes < ETH_ZLEN)
		memset(frame + headers + bytes, 0, ETH_ZLEN - headers - bytes);
	leave(wire, skb, frame, max_t(u32, headers + bytes, ETH_ZLEN));
}

/* What the device makes of a packet; it may do only what its features say. */
static void model(struct wire *wire, const struct test_packet *packet)
{
	const netdev_features_t features = driver->dev.features;
	const struct sk_buff *skb = packet->skb;
	u32 i, k, n = 0;

	for (i = 0; i < packet->descriptors; i++) {
		u64 at = packet->descriptor[i].address;

		for (k = 0; k < packet->descriptor[i].length; k++, at++)
			gathered[n++] = at < TEST_RAM ? *(u8 *)__va(at) : test_guest_byte(at);
	}
	CHECK(n == skb->len);
	CHECK(packet->descriptors == 1 || features & NETIF_F_SG);
	CHECK(skb->ip_summed != CHECKSUM_PARTIAL || features & NETIF_F_HW_CSUM);
	CHECK(!skb_vlan_tag_present(skb) || features & NETIF_F_HW_VLAN_CTAG_TX);
	if (skb_is_gso(skb)) {
		u32 size = skb_shinfo(skb)->gso_size, payload = n - skb_tcp_all_headers(skb);

		CHECK(features & (skb_is_gso_v6(skb) ? NETIF_F_TSO6 : NETIF_F_TSO));
		for (i = 0; i * size < payload; i++)
			cut_segment(wire, skb, i, i * size, min(size, payload - i * size), payload);
		return;
	}
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		model_checksum(gathered, n, skb_checksum_start_offset(skb), skb->csum_offset);
	leave(wire, skb, gathered, n);
}

static void collect(struct wire *wire)
{
	for (; driver->clean != driver->next; driver_clean(1))
		model(wire, &driver->packet[driver->clean % TEST_RING]);
}

/* All that a request becomes, polls included. */
static void send(struct wire *wire)
{
	u32 polls;

	wire->count = 0;
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1 && request(0)->result == HOT_SENT);
	collect(wire);
	for (polls = 0; polls < 10 && hot_transmit_waits(); polls++) {
		CHECK(completions() == 0);
		hot_poll(64);
		collect(wire);
	}
	CHECK(!hot_transmit_waits() && completions() == 1);
}

static void same_frames(void)
{
	u32 i;

	CHECK(seen.count == expected.count);
	for (i = 0; i < expected.count && i < seen.count; i++)
		CHECK(seen.frame[i].length == expected.frame[i].length &&
		      !memcmp(seen.frame[i].byte, expected.frame[i].byte, seen.frame[i].length));
}

/* ---- Requests ---- */

static void offload(u32 on)
{
	hot_shared[raw_smp_processor_id()].offload = on;
}

/* Fragments of that many bytes in all. */
static void add_payload(struct hot_tx_request *r, u32 bytes)
{
	while (bytes) {
		u32 length = 1 + test_random() % (bytes / (HOT_FRAGMENTS - r->fragments) + 2);

		length = r->fragments + 1 == HOT_FRAGMENTS ? bytes : min(length * 2, bytes);
		add_fragment(r, GUEST_PAGE(test_random() % 3000) + test_random() % PAGE_SIZE, length);
		bytes -= length;
	}
}

/* A TCP packet whose linear part ends anywhere behind its headers. */
static struct hot_tx_request *tcp_request(u32 payload, u32 gso_size)
{
	struct hot_tx_request *r = linear(0, 60);
	const bool v6 = test_random() & 1;
	u32 headers = fill_tcp(r, v6, test_random() % 3), more;
	u8 *network = r->header + r->checksum_start - (v6 ? 40 : 20), *tcp = r->header + r->checksum_start;

	more = min_t(u32, test_random() % (HOT_HEADER - headers + 1), payload);
	r->header_length = headers + more;
	add_payload(r, payload - more);
	put16(network + 4, v6 ? headers + payload - 40 : 0xfff0 + test_random() % 32);
	put32(tcp + 4, 0xffff0000 + test_random() % 0x20000);
	tcp[13] = test_random();
	if (!v6) {
		put16(network + 2, headers + payload - (network - r->header));
		put16(network + 10, ~model_sum(network, 20, 0));
	}
	/* as a kernel leaves it: the pseudo header's sum */
	put16(tcp + 16, model_sum(network + (v6 ? 8 : 12), v6 ? 32 : 8,
				  6 + headers + payload - r->checksum_start));
	if (gso_size) {
		r->gso_size = gso_size;
		r->gso_type = v6 ? HOT_GSO_TCPV6 : HOT_GSO_TCPV4;
	}
	return r;
}

static struct hot_tx_request *any_request(void)
{
	struct hot_tx_request *r;

	switch (test_random() % 4) {
	case 0:
		r = tcp_request(1 + test_random() % 65000, 128 + test_random() % 1200);
		break;
	case 1:
		r = tcp_request(1 + test_random() % 4000, 128 + test_random() % 300);
		break;
	case 2:
		r = tcp_request(64 + test_random() % 1000, 0);
		break;
	default:
		r = linear(0, 60 + test_random() % 60);
		add_payload(r, test_random() % 1300);
		/* any checksum, at any place */
		r->checksum_start = test_random() % 2 ? 14 + test_random() % 40 : 0;
		r->checksum_offset = r->checksum_start ? test_random() % 4 : 0;
	}
	if (test_random() % 4 == 0) {
		r->flags = HOT_TX_VLAN;
		r->vlan_tag = test_random();
	}
	return r;
}

/* ---- Tests ---- */

/* The same frames leave, whatever the device can do. */
void test_offload_same_frames(void)
{
	static const netdev_features_t feature[] = { NETIF_F_SG, NETIF_F_HW_CSUM, NETIF_F_TSO,
						     NETIF_F_TSO6, NETIF_F_HW_VLAN_CTAG_TX };
	u64 cut, parts = 0, gathers;
	u32 rounds, without, i, alone;

	begin();
	offload(1);
	cut = counted(HOT_COUNT_CUT);
	gathers = counted(HOT_COUNT_GATHERED);
	alone = test_host[0].alone;
	for (rounds = 0; rounds < 150; rounds++) {
		any_request();
		driver->dev.features = ALL_FEATURES;
		if (!rounds)
			parts = counted(HOT_COUNT_PARTS);
		send(&expected);
		CHECK(rounds || counted(HOT_COUNT_PARTS) == parts);
		for (without = 1; without < 32; without++) {
			driver->dev.features = ALL_FEATURES;
			for (i = 0; i < ARRAY_SIZE(feature); i++)
				if (without >> i & 1)
					driver->dev.features &= ~feature[i];
			/* these alone are no reason */
			if (!((driver->dev.features ^ ALL_FEATURES) &
			      (NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO)))
				continue;
			send(&seen);
			same_frames();
		}
	}
	CHECK(counted(HOT_COUNT_CUT) > cut + 500 && counted(HOT_COUNT_GATHERED) > gathers + 500);
	CHECK(counted(HOT_COUNT_PARTS) > parts + 10000);
	CHECK(test_host[0].alone > alone + 100);
	offload(0);
	nothing_lost();
}

/* Unless it is asked for, such requests are refused. */
void test_offload_off(void)
{
	begin();
	driver->dev.features = NETIF_F_SG | NETIF_F_HW_CSUM;
	CHECK(hot_features(&driver->dev) == (HOT_CAN_FRAGMENTS | HOT_CAN_CHECKSUM));
	tso(0, false, 0);
	CHECK(hot_transmit(&driver->dev, 0, 1) == 0 && request(0)->result == HOT_INVALID);
	offload(1);
	CHECK(hot_features(&driver->dev) == (HOT_CAN_FRAGMENTS | HOT_CAN_CHECKSUM | HOT_CAN_TSO4 |
					     HOT_CAN_TSO6 | HOT_CAN_VLAN));
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1 && request(0)->result == HOT_SENT);
	CHECK(driver->doorbells == 1);
	driver_clean(TEST_RING);
	/* a part that no buffer has room for, if it is to be copied */
	driver->dev.mtu = 9000;
	tso(0, false, 0)->gso_size = 4000;
	tso(1, false, 0)->gso_size = 0;
	request(1)->gso_type = 0;
	request(1)->fragments = 2;
	CHECK(hot_transmit(&driver->dev, 0, 2) == 2 && last_packet()->skb->len > 2 * PAGE_SIZE);
	driver->dev.features = 0;
	CHECK(hot_transmit(&driver->dev, 0, 2) == 0 && request(0)->result == HOT_INVALID &&
	      request(1)->result == HOT_INVALID);
	driver->dev.features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO;
	/* tags and TCP over IPv6 alone are no reason for another path */
	linear(0, 60)->flags = HOT_TX_VLAN;
	tso(1, true, 0);
	CHECK(hot_transmit(&driver->dev, 0, 2) == 0 && request(0)->result == HOT_INVALID &&
	      request(1)->result == HOT_INVALID);
	offload(0);
	nothing_lost();
}

/* 62,440 bytes in 45 segments, for a driver that takes so many; one more packet behind it. */
static void begin_long(u32 room)
{
	begin();
	offload(1);
	driver->dev.features = NETIF_F_SG | NETIF_F_HW_CSUM;
	driver->room = room;
	linear(0, 60);
	tso(1, false, 0);
	linear(2, 60);
}

#define LONG 45

/* While segments wait, requests do; the packet completes once, after its last segment. */
void test_offload_waits(void)
{
	struct hot_tx_done done;
	u32 left;

	begin_long(11);
	CHECK(hot_transmit(&driver->dev, 0, 3) == 2);
	CHECK(request(1)->result == HOT_SENT && request(2)->result == HOT_BUSY);
	CHECK(hot_transmit_waits() && driver->next == 11 && driver->doorbells == 2);
	CHECK(hot_transmit(&driver->dev, 2, 1) == 0 && request(2)->result == HOT_BUSY);
	driver_clean(1);
	CHECK(completion(&done) && done.cookie == 0x1000);
	for (left = LONG - 10; left; left--) {
		CHECK(hot_transmit_waits());
		/* by a poll, or by a request that would be behind it */
		if (left % 2)
			hot_poll(64);
		else
			CHECK(hot_transmit(&driver->dev, 2, 1) == (left == 1));
		CHECK(!completion(&done));
		driver_clean(1);
	}
	CHECK(!hot_transmit_waits());
	driver_clean(9);
	CHECK(!completion(&done));
	driver_clean(1);
	CHECK(completion(&done) && done.cookie == 0x1001 && done.guest == 3);
	CHECK(hot_transmit(&driver->dev, 2, 1) == 1);
	offload(0);
	nothing_lost();
}

/* The pools are empty: what could not be made is made when they are not. */
void test_offload_exhausted(void)
{
	u32 n, polls;

	begin_long(200);
	exhaust_skbs(&n, many, HOT_POOL_MAX);
	while (n > 5 && many[n - 1])
		hot_skb_free(many[--n]);
	/* one is enough for neither: there are as many as were freed and cached */
	while (n < HOT_POOL_MAX && (many[n] = napi_alloc_skb(&driver->napi, 60)))
		n++;
	hot_skb_free(many[--n]);
	hot_skb_free(many[--n]);
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && hot_transmit_waits());
	CHECK(request(1)->result == HOT_SENT && driver->next == 1);
	CHECK(!last_packet()->more);
	hot_poll(64);
	CHECK(hot_transmit_waits() && completions() == 0);
	while (n)
		hot_skb_free(many[--n]);
	for (polls = 0; polls < 3 && hot_transmit_waits(); polls++)
		hot_poll(64);
	CHECK(driver->next == LONG && completions() == 0);
	driver_clean(LONG);
	CHECK(completions() == 1);
	offload(0);
	nothing_lost();
}

/* The host does not know the packet any more, or never did. */
void test_offload_forgotten(void)
{
	begin_long(200);
	driver->dev.features = 0;
	test_host[0].forgotten = 0x1001;
	CHECK(hot_transmit(&driver->dev, 0, 3) == 3);
	CHECK(!hot_transmit_waits() && driver->next == 2 && test_host[0].gathered == 1);
	CHECK(completions() == 1);
	driver_clean(2);
	CHECK(completions() == 2);
	/* a packet of one part */
	add_fragment(linear(0, 60), GUEST_PAGE(1), 100);
	test_host[0].forgotten = 0x1000;
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1 && driver->next == 2);
	CHECK(!hot_transmit_waits() && completions() == 1);
	offload(0);
	nothing_lost();
}

/* The driver takes none, drops all, or is down: nothing completes twice or never. */
void test_offload_refused(void)
{
	begin_long(200);
	driver->refuse = 1;
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && hot_transmit_waits() && driver->next == 0);
	hot_poll(64);
	CHECK(!hot_transmit_waits() && driver->next == LONG);
	driver_clean(LONG);
	CHECK(completions() == 1);
	/* the only part of a packet waits as well, and what is behind it */
	driver->dev.features = 0;
	add_fragment(linear(0, 60), GUEST_PAGE(1), 100);
	linear(1, 60);
	driver->refuse = 2;
	CHECK(hot_transmit(&driver->dev, 0, 2) == 1 && request(1)->result == HOT_BUSY);
	CHECK(hot_transmit_waits() && completions() == 0);
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1);
	driver_clean(2);
	CHECK(completions() == 2);
	tso(1, false, 0);
	driver->drop = true;
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && !hot_transmit_waits());
	CHECK(completions() == 1);
	driver->drop = false;
	driver->refuse = 1000;
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && hot_transmit_waits());
	set_bit(__LINK_STATE_NOCARRIER, &driver->dev.state);
	CHECK(hot_transmit(&driver->dev, 2, 1) == 0 && request(2)->result == HOT_DOWN);
	CHECK(!hot_transmit_waits() && completions() == 1);
	offload(0);
	nothing_lost();
}

/* Parts keep their buffers: nobody frees one of both alone, and empty pools get them back. */
void test_offload_kept(void)
{
	const struct hot_cpu *cpu = &hot_cpus[hot_cpu_id()];
	struct sk_buff *part;
	void *head;
	u64 bad;
	u32 n;

	begin_long(200);
	driver->dev.features = 0;
	exhaust_skbs(&n, many, HOT_POOL_MAX);	/* none are kept from before */
	while (n)
		hot_skb_free(many[--n]);
	CHECK(!cpu->kept_count && hot_transmit(&driver->dev, 1, 1) == 1);
	part = last_packet()->skb;
	head = part->head;
	bad = counted(HOT_COUNT_BAD_FREE);
	hot_buffer_put(head);			/* in flight */
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 1);
	driver_clean(LONG);
	CHECK(completions() == 1 && cpu->kept_count == LONG);
	hot_skb_free(part);
	hot_buffer_put(head);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 3 && cpu->kept_count == LONG);
	/* the same again, except for one whose data somebody shares */
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && cpu->kept_count == 0);
	part = last_packet()->skb;
	head = part->head;
	part->cloned = 1;
	atomic_set(&skb_shinfo(part)->dataref, 2);
	driver_clean(LONG);
	CHECK(completions() == 1 && cpu->kept_count == LONG - 1);
	hot_buffer_put(head);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 3);
	/* an end behind the buffer: it is not believed */
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1);
	last_packet()->skb->end = 1 << 20;
	driver_clean(LONG);
	CHECK(completions() == 1 && cpu->kept_count == LONG - 1);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 4);
	exhaust_skbs(&n, many, HOT_POOL_MAX);
	CHECK(!cpu->kept_count);
	while (n)
		hot_skb_free(many[--n]);
	offload(0);
	nothing_lost();
}

/* A part that the driver did not take is sent as it is, unless the device can less now. */
void test_offload_made(void)
{
	struct sk_buff *made;

	begin_long(11);
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && hot_transmit_waits());
	made = hot_waits.made;
	CHECK(made && made->data_len && driver->next == 11);
	driver_clean(1);
	hot_poll(64);
	CHECK(driver->next == 12 && last_packet()->skb == made && hot_waits.made);
	driver->dev.features = 0;
	driver_clean(1);
	hot_poll(64);
	CHECK(driver->next == 13 && last_packet()->descriptors == 1 && !last_packet()->skb->data_len);
	while (hot_transmit_waits()) {
		driver_clean(1);
		hot_poll(64);
	}
	CHECK(driver->next == LONG && completions() == 0);
	driver_clean(11);
	CHECK(completions() == 1);
	offload(0);
	nothing_lost();
}

/* The host's calls for a large packet. */
#define CALLS DIV_ROUND_UP(LONG, HOT_GATHERS)

/* The host fills many at once; what the driver does not take waits, and is not made again. */
void test_offload_at_once(void)
{
	u32 room, gathered;
	u64 copies;

	for (room = 1; room < LONG + 2; room++) {
		begin_long(room);
		driver->dev.features = 0;
		gathered = test_host[0].gathered;
		copies = counted(HOT_COUNT_GATHERED);
		CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && driver->next == min_t(u32, room, LONG));
		CHECK(hot_waits.made_count < HOT_GATHERS + 1);
		while (hot_transmit_waits()) {
			CHECK(hot_waits.made_count && completions() == 0);
			driver_clean(1 + test_random() % room);
			hot_poll(64);
		}
		CHECK(driver->next == LONG && !hot_waits.made_count);
		CHECK(test_host[0].gathered == gathered + CALLS);
		CHECK(counted(HOT_COUNT_GATHERED) == copies + LONG);
		driver_clean(LONG);
		CHECK(completions() == 1);
		offload(0);
		nothing_lost();
	}
}

/* Those that wait are none after all: the device can less or more, the link goes, the host forgets the packet. */
void test_offload_at_once_dropped(void)
{
	u32 waited;

	begin_long(11);
	driver->dev.features = 0;
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && hot_waits.made_count > 1);
	driver->dev.features = NETIF_F_SG | NETIF_F_HW_CSUM;
	driver_clean(1);
	hot_poll(64);
	CHECK(driver->next == 12 && last_packet()->skb->data_len && hot_waits.made_count == 1);
	driver->dev.features = 0;
	driver_clean(1);
	hot_poll(64);
	CHECK(driver->next == 13 && !last_packet()->skb->data_len);
	/* the list that is in the making fails, and what was made before it is sent */
	waited = hot_waits.made_count;
	CHECK(waited > 1);
	test_host[0].forgotten = 0x1001;
	driver_clean(11);
	hot_poll(64);
	driver_clean(11);
	hot_poll(64);
	CHECK(!hot_transmit_waits() && driver->next == 13 + waited && completions() == 0);
	driver_clean(11);
	CHECK(completions() == 1);
	test_host[0].forgotten = 0;
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && hot_waits.made_count > 1);
	set_bit(__LINK_STATE_NOCARRIER, &driver->dev.state);
	CHECK(hot_transmit(&driver->dev, 2, 1) == 0 && !hot_transmit_waits() && completions() == 0);
	driver_clean(11);
	CHECK(completions() == 1);
	offload(0);
	nothing_lost();
}

/* There are buffers for some of a list, in each number. */
void test_offload_at_once_exhausted(void)
{
	u32 n, some, polls;

	for (some = 1; some < 2 * HOT_GATHERS; some++) {
		begin_long(200);
		driver->dev.features = 0;
		exhaust_skbs(&n, many, HOT_POOL_MAX);
		while (n > 200 + some && many[n - 1])
			hot_skb_free(many[--n]);
		while (n < HOT_POOL_MAX && (many[n] = napi_alloc_skb(&driver->napi, 60)))
			n++;
		for (polls = 0; polls < some; polls++)
			hot_skb_free(many[--n]);
		/* the whole needs one itself */
		CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && hot_transmit_waits());
		CHECK(driver->next == some - 1 && completions() == 0);
		CHECK(some == 1 || !last_packet()->more);
		while (n)
			hot_skb_free(many[--n]);
		for (polls = 0; polls < 3 && hot_transmit_waits(); polls++)
			hot_poll(64);
		CHECK(driver->next == LONG && completions() == 0);
		driver_clean(LONG);
		CHECK(completions() == 1);
		offload(0);
		nothing_lost();
	}
}

/* After an abort, with parts of a list that the driver has not got. */
void test_offload_at_once_recovered(void)
{
	struct hot_tx_done done;

	begin_long(20);
	driver->dev.features = 0;
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && hot_waits.made_count > 1);
	driver->clean = driver->next;
	clear_bit(__LINK_STATE_START, &driver->dev.state);
	hot_recover(&driver->dev, 1);
	CHECK(!hot_transmit_waits() && !hot_waits.made_count);
	CHECK(completion(&done) && done.cookie == 0x1001 && !completion(&done));
	offload(0);
	nothing_lost();
}

/* After an abort in the middle of it. */
void test_offload_recovered(void)
{
	struct hot_tx_done done;

	begin_long(20);
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1 && hot_transmit_waits());
	driver->clean = driver->next;		/* the ring forgot its 20 segments */
	clear_bit(__LINK_STATE_START, &driver->dev.state);
	hot_recover(&driver->dev, 1);
	CHECK(!hot_transmit_waits());
	CHECK(completion(&done) && done.cookie == 0x1001 && !completion(&done));
	offload(0);
	nothing_lost();
}
