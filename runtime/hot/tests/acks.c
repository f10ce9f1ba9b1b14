// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: acknowledgements made of a template. What the driver gets must be
 * what it would get if each had been sent by itself.
 */
#include "common.h"
#include <linux/ip.h>
#include <linux/tcp.h>

#define FIRST		0xffffff00u	/* the numbers go past the end */
#define STEP		2896u
#define LENGTH(stamped)	((stamped) ? 66u : 54u)

struct got {
	u32 length, summed, start, offset;
	u8 byte[HOT_HEADER];
};

static struct got expected[1 + HOT_ACKS];

static void offload(u32 on)
{
	WRITE_ONCE(hot_shared[0].offload, on);
}

static struct tcphdr *tcp_of(struct hot_tx_request *r)
{
	return (struct tcphdr *)(r->header + 34);
}

static struct iphdr *ip_of(struct hot_tx_request *r)
{
	return (struct iphdr *)(r->header + 14);
}

/* RFC 1071, of bytes in network order. */
static u32 sum(const u8 *bytes, u32 length, u32 sum)
{
	u32 i;

	for (i = 0; i < length; i++)
		sum += i % 2 ? bytes[i] : bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* An acknowledgement whose checksum is the device's, at requests[i]. */
static struct hot_tx_request *ack(u32 i, bool stamped, u32 number)
{
	struct hot_tx_request *r = linear(i, 60);
	struct tcphdr *tcp = tcp_of(r);
	struct iphdr *ip = ip_of(r);

	fill_tcp(r, false, 0);
	r->header_length = LENGTH(stamped);
	ip->tot_len = htons(LENGTH(stamped) - ETH_HLEN);
	ip->frag_off = htons(0x4000);
	ip->ttl = 64;
	ip->check = htons(~sum((u8 *)ip, sizeof(*ip), 0));
	tcp->source = htons(5001);
	tcp->dest = htons(40000);
	tcp->seq = htonl(1);
	tcp->ack_seq = htonl(number);
	tcp->ack = 1;
	tcp->window = htons(0xffff);
	tcp->doff = stamped ? 8 : 5;
	if (stamped)
		*(__be32 *)(tcp + 1) = htonl(0x0101080a);
	tcp->check = htons(sum((u8 *)&ip->saddr, 8, IPPROTO_TCP + LENGTH(stamped) - 34));
	return r;
}

static struct hot_tx_request *template(u32 i, bool stamped, u32 count)
{
	struct hot_tx_request *r = ack(i, stamped, FIRST);
	u32 n;

	r->acks = count;
	for (n = 0; n < count; n++)
		r->ack[n] = FIRST + (n + 1) * STEP;
	return r;
}

static struct got got(u32 packet)
{
	const struct sk_buff *skb = driver->packet[packet % TEST_RING].skb;
	struct got got = { .length = skb->len, .summed = skb->ip_summed };

	CHECK(skb->len <= HOT_HEADER && !skb->data_len && skb_headlen(skb) == skb->len);
	memcpy(got.byte, skb->data, skb->len);
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		got.start = skb_checksum_start_offset(skb);
		got.offset = skb->csum_offset;
	}
	return got;
}

/* What leaves: the device sums from TCP's header on, if nobody did before. */
static void right_sums(struct got *frame)
{
	u32 length = frame->length < 66 ? 54 : 66;
	const u8 *ip = frame->byte + 14;

	CHECK(sum(ip, 20, 0) == 0xffff);
	if (frame->summed == CHECKSUM_PARTIAL) {
		u32 check = ~sum(frame->byte + frame->start, length - frame->start, 0);

		frame->byte[frame->start + frame->offset] = check >> 8;
		frame->byte[frame->start + frame->offset + 1] = check;
	}
	CHECK(sum(frame->byte + 34, length - 34, sum(ip + 12, 8, IPPROTO_TCP + length - 34)) == 0xffff);
}

static bool same(const struct got *a, const struct got *b)
{
	return a->length == b->length && a->summed == b->summed && a->start == b->start &&
	       a->offset == b->offset && !memcmp(a->byte, b->byte, a->length);
}

/* The same frames as one by one, with and without a time stamp, whoever computes checksums. */
static void same_frames(bool stamped, u32 count)
{
	struct hot_tx_done done;
	struct got frame;
	u32 n, before;

	for (n = 0; n <= count; n++) {
		ack(0, stamped, FIRST + n * STEP);
		CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
		expected[n] = got(driver->next - 1);
		driver_clean(1);
		CHECK(completions() == 1);
	}
	before = driver->next;
	driver->doorbells = 0;
	template(7, stamped, count);
	CHECK(hot_transmit_acks(&driver->dev, 7) == 1 && request(7)->result == HOT_SENT);
	CHECK(driver->next == before + count + 1 && driver->doorbells == 1);
	CHECK(!hot_transmit_waits());
	for (n = 0; n <= count; n++) {
		frame = got(before + n);
		CHECK(same(&frame, &expected[n]));
		right_sums(&frame);
	}
	CHECK(driver_clean(count) == count && !completion(&done));
	driver_clean(1);
	CHECK(completion(&done) && done.cookie == 0x1007 && done.guest == 3 && !completion(&done));
}

void test_acks_same_frames(void)
{
	u32 count;

	begin();
	offload(1);
	for (count = 1; count <= HOT_ACKS; count++) {
		driver->dev.features |= NETIF_F_HW_CSUM;
		same_frames(true, count);
		same_frames(false, count);
		driver->dev.features &= ~NETIF_F_HW_CSUM;
		same_frames(true, count);
		same_frames(false, count);
	}
	offload(0);
	nothing_lost();
}

#define REFUSED(name, change)						\
	static void name(struct hot_tx_request *r) { change; }
REFUSED(no_numbers, r->acks = 0)
REFUSED(too_many, r->acks = HOT_ACKS + 1)
REFUSED(very_many, r->acks = ~0u)
REFUSED(the_same_twice, r->ack[1] = r->ack[0])
REFUSED(backwards, r->ack[2] = FIRST)
REFUSED(half_the_space, r->ack[0] = FIRST + 0x80000000u)
REFUSED(syn, tcp_of(r)->syn = 1)
REFUSED(fin, tcp_of(r)->fin = 1)
REFUSED(rst, tcp_of(r)->rst = 1)
REFUSED(psh, tcp_of(r)->psh = 1)
REFUSED(urg, tcp_of(r)->urg = 1)
REFUSED(ece, tcp_of(r)->ece = 1)
REFUSED(reserved, r->header[46] |= 1)
REFUSED(urgent_pointer, tcp_of(r)->urg_ptr = 1)
REFUSED(no_ack, tcp_of(r)->ack = 0)
REFUSED(sack, *(__be32 *)(tcp_of(r) + 1) = htonl(0x0101050a))
REFUSED(other_order, *(__be32 *)(tcp_of(r) + 1) = htonl(0x080a0101))
REFUSED(two_option_words, tcp_of(r)->doff = 7; r->header_length = 62;
	ip_of(r)->tot_len = htons(48))
REFUSED(short_tcp, tcp_of(r)->doff = 4)
REFUSED(long_tcp, tcp_of(r)->doff = 15)
REFUSED(payload, r->header_length = 70; ip_of(r)->tot_len = htons(56))
REFUSED(trailer, r->header_length = 70)
REFUSED(cut_off, r->header_length = 50)
REFUSED(ip_length, ip_of(r)->tot_len = htons(53))
REFUSED(fragment, ip_of(r)->frag_off = htons(0x2000))
REFUSED(later_fragment, ip_of(r)->frag_off = htons(0x4001))
REFUSED(may_be_fragmented, ip_of(r)->frag_off = 0)
REFUSED(ip_options, ip_of(r)->ihl = 6)
REFUSED(udp, ip_of(r)->protocol = IPPROTO_UDP)
REFUSED(version, ip_of(r)->version = 6)
REFUSED(ipv6, r->header[12] = 0x86; r->header[13] = 0xdd)
REFUSED(no_checksum, r->checksum_start = 0)
REFUSED(checksum_elsewhere, r->checksum_offset = 14)
REFUSED(checksum_of_ip, r->checksum_start = 14)
REFUSED(pages, add_fragment(r, GUEST_PAGE(0), 100))
REFUSED(large, r->gso_size = 1400; r->gso_type = HOT_GSO_TCPV4)
REFUSED(tag, r->flags = HOT_TX_VLAN)
REFUSED(unknown_flag, r->flags = 0x8000)
REFUSED(tag_inside, r->header[12] = 0x81; r->header[13] = 0)
#undef REFUSED

/* Nothing leaves, nothing completes, nothing is kept. */
void test_acks_refused(void)
{
	static void (*const change[])(struct hot_tx_request *) = {
		no_numbers, too_many, very_many, the_same_twice, backwards, half_the_space, syn, fin,
		rst, psh, urg, ece, reserved, urgent_pointer, no_ack, sack, other_order,
		two_option_words, short_tcp, long_tcp, payload, trailer, cut_off, ip_length, fragment,
		later_fragment, may_be_fragmented, ip_options, udp, version, ipv6, no_checksum,
		checksum_elsewhere, checksum_of_ip, pages, large, tag, unknown_flag, tag_inside,
	};
	u64 invalid = counted(HOT_COUNT_INVALID);
	u32 i;

	begin();
	for (i = 0; i < ARRAY_SIZE(change); i++) {
		change[i](template(0, true, 4));
		CHECK(hot_transmit_acks(&driver->dev, 0) == 0);
		CHECK(request(0)->result == HOT_INVALID && !driver->next && !hot_transmit_waits());
	}
	CHECK(counted(HOT_COUNT_INVALID) == invalid + ARRAY_SIZE(change));
	CHECK(completions() == 0);
	CHECK(hot_transmit_acks(&driver->dev, HOT_REQUESTS) == 0);
	/* By the other entry point it is one packet: the list is not looked at. */
	template(0, true, 4)->acks = ~0u;
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1 && driver->next == 1);
	nothing_lost();
}

/* ---- A list that changes meanwhile ---------------------------------------------- */

static u32 race_over;

static void changer_or_sender(unsigned int cpu)
{
	struct hot_tx_request *r = &((struct hot_tx_request *)hot_shared[0].requests)[3];
	u32 round, n, last, sent;

	if (cpu) {
		while (!READ_ONCE(race_over)) {
			WRITE_ONCE(r->ack[1], test_random());
			WRITE_ONCE(r->acks, 1 + test_random() % (HOT_ACKS + 4));
		}
		return;
	}
	for (round = 0; round < 3000; round++) {
		u32 before = driver->next;

		hot_transmit_acks(&driver->dev, 3);
		sent = driver->next - before;
		CHECK(!sent || (sent >= 2 && sent <= HOT_ACKS + 1));
		/* What was checked is what is sent. */
		for (n = 0, last = FIRST - 1; n < sent; n++) {
			const struct sk_buff *skb = driver->packet[(before + n) % TEST_RING].skb;
			u32 number = ntohl(*(__be32 *)(skb->data + 42));

			CHECK((s32)(number - last) > 0);
			last = number;
		}
		driver_clean(sent);
		completions();
	}
	WRITE_ONCE(race_over, 1);
}

void test_acks_read_once(void)
{
	begin();
	template(3, true, HOT_ACKS);
	WRITE_ONCE(race_over, 0);
	test_two_cpus(changer_or_sender);
	nothing_lost();
}

/* ---- A driver that takes some of them, or none ------------------------------------ */

/* The others wait, and requests behind them do; each number leaves once, in order. */
void test_acks_wait(void)
{
	struct hot_tx_done done;
	u32 n;

	begin();
	driver->room = 3;
	template(0, true, 9);
	linear(1, 60);
	CHECK(hot_transmit_acks(&driver->dev, 0) == 1 && driver->next == 3);
	CHECK(hot_transmit_waits() && driver->doorbells == 1);
	CHECK(hot_transmit_acks(&driver->dev, 0) == 0 && request(0)->result == HOT_BUSY);
	CHECK(hot_transmit(&driver->dev, 1, 1) == 0 && request(1)->result == HOT_BUSY);
	for (n = 0; n < 10; n++) {
		CHECK(!completion(&done));
		CHECK(ntohl(*(__be32 *)(got(n).byte + 42)) == FIRST + n * STEP);
		driver_clean(1);
		hot_poll(64);
	}
	CHECK(driver->next == 10 && !hot_transmit_waits());
	CHECK(completion(&done) && done.cookie == 0x1000);
	CHECK(hot_transmit(&driver->dev, 1, 1) == 1);
	nothing_lost();
}

void test_acks_down(void)
{
	begin();
	driver->room = 3;
	template(0, true, 9);
	CHECK(hot_transmit_acks(&driver->dev, 0) == 1 && hot_transmit_waits());
	clear_bit(__LINK_STATE_START, &driver->dev.state);
	CHECK(hot_transmit_acks(&driver->dev, 0) == 0 && request(0)->result == HOT_DOWN);
	CHECK(!hot_transmit_waits());
	driver_clean(3);
	CHECK(completions() == 1);
	nothing_lost();
}
