// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * TCP segments, and the host that takes packets apart: see segments.h. Checksums are
 * the kernel headers' functions, which the routines under test do not use.
 */
#include "segments.h"
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <net/checksum.h>

struct made made[MADE];
u32 made_count;
struct seen seen[MADE];
u32 seen_count;

static u32 fed;		/* frames of made[] that the driver has had */

static struct iphdr *ip_of(u8 *frame)
{
	return (struct iphdr *)(frame + ETH_HLEN);
}

static struct tcphdr *tcp_of(u8 *frame)
{
	return (struct tcphdr *)(frame + ETH_HLEN + sizeof(struct iphdr));
}

/* ---- Making ---- */

struct fields segment_fields(u32 flow, u32 n, u32 payload)
{
	return (struct fields){
		.flow = flow, .seq = 0xfffff000u + flow * 7919 + n * payload, .ack = 500 + n,
		.stamp = 0xfffffff0u + n, .echo = 70 + n, .payload = payload,
		.window = 1000 + n, .id = 65530 + n, .fragment = 0x4000, .flags = 0x10,
		.tos = 0, .ttl = 64, .stamped = true,
	};
}

void make_right(struct made *frame)
{
	struct iphdr *ip = ip_of(frame->frame);

	ip->check = 0;
	ip->check = ip_fast_csum(ip, ip->ihl);
}

/* The sum of TCP's so many bytes with the pseudo header's (RFC 9293, 3.1). */
static u16 tcp_sum(const struct made *frame, u32 length)
{
	const u8 *bytes = frame->frame + ETH_HLEN + 20;
	u32 sum = IPPROTO_TCP + length, i;

	/* Both addresses are before it. */
	for (i = 0; i < length + 8; i++)
		sum += i % 2 ? bytes[(int)i - 8] : bytes[(int)i - 8] << 8;
	sum = (sum & 0xffff) + (sum >> 16);
	return sum + (sum >> 16);
}

void make_summed(struct made *frame)
{
	struct tcphdr *tcp = tcp_of(frame->frame);

	tcp->check = 0;
	tcp->check = htons(~tcp_sum(frame, frame->headers - ETH_HLEN - 20 + frame->payload));
	frame->unchecked = true;
}

struct made *make_segment(const struct fields *fields)
{
	struct made *m = &made[made_count % MADE];
	struct iphdr *ip = ip_of(m->frame);
	struct tcphdr *tcp = tcp_of(m->frame);
	u32 header = fields->stamped ? 32 : 20, i;

	CHECK(made_count < MADE);
	made_count++;
	memset(m, 0, sizeof(*m));
	m->flow = fields->flow;
	m->headers = ETH_HLEN + 20 + header;
	m->payload = fields->payload;
	m->length = max_t(u32, m->headers + fields->payload, ETH_ZLEN);
	m->frame[0] = m->frame[6] = 2;
	m->frame[5] = 9;
	m->frame[12] = 8;
	*ip = (struct iphdr){
		.version = 4, .ihl = 5, .tos = fields->tos, .id = htons(fields->id),
		.tot_len = htons(20 + header + fields->payload),
		.frag_off = htons(fields->fragment), .ttl = fields->ttl, .protocol = IPPROTO_TCP,
		.saddr = htonl(0x0a000001), .daddr = htonl(0x0a000100 + fields->flow / 4),
	};
	tcp->source = htons(80);
	tcp->dest = htons(4000 + fields->flow);
	tcp->seq = htonl(fields->seq);
	tcp->ack_seq = htonl(fields->ack);
	tcp->doff = header / 4;
	((u8 *)tcp)[13] = fields->flags;
	tcp->window = htons(fields->window);
	if (fields->stamped) {
		__be32 *option = (__be32 *)(tcp + 1);

		option[0] = htonl(0x0101080a);
		option[1] = htonl(fields->stamp);
		option[2] = htonl(fields->echo);
	}
	for (i = 0; i < fields->payload; i++)
		m->frame[m->headers + i] = made_count * 31 + i * 7 + (i >> 8);
	make_right(m);
	return m;
}

/* ---- Taking apart ---- */

/* The oldest frame of a flow that has not come out; NULL. */
static struct made *oldest(u32 flow)
{
	u32 i;

	for (i = 0; i < made_count; i++)
		if (!made[i].seen && made[i].flow == flow)
			return &made[i];
	return NULL;
}

static void saw(struct made *first, u32 segments)
{
	CHECK(seen_count < MADE);
	seen[seen_count % MADE] = (struct seen){ segments, first - made };
	seen_count++;
}

/* A frame as it came in: the next one of some flow. */
static void saw_frame(const u8 *data, u32 length, u32 flags, u32 vlan)
{
	u32 flow;

	for (flow = 0; flow < MADE_FLOWS; flow++) {
		struct made *m = oldest(flow);

		if (!m || m->length != length || m->vlan != vlan || memcmp(m->frame, data, length))
			continue;
		CHECK(m - made < fed);
		CHECK(flags == ((m->vlan ? HOT_RX_VLAN : 0) | (m->unchecked ? 0 : HOT_RX_CHECKSUM_OK)));
		m->seen = true;
		saw(m, 1);
		return;
	}
	CHECK(!"no flow has this frame next");
}

/* The flow of a frame by addresses and ports; NULL if none has such a frame next. */
static struct made *flow_of(const u8 *frame, u32 vlan)
{
	u32 flow;

	for (flow = 0; flow < MADE_FLOWS; flow++) {
		struct made *m = oldest(flow);

		if (m && !memcmp(m->frame, frame, 12) && !memcmp(m->frame + 26, frame + 26, 12) &&
		    m->vlan == vlan)
			return m;
	}
	return NULL;
}

/* The header that a receiver is to get for segments first to last, one of which has PSH. */
static void expect_header(u8 *header, const struct made *first, struct made *last, u32 payload,
			  bool push)
{
	struct tcphdr *theirs = tcp_of(last->frame), *tcp = tcp_of(header);
	struct iphdr *ip = ip_of(header);
	u32 length = first->headers - ETH_HLEN + payload;

	memcpy(header, first->frame, first->headers);
	ip->tot_len = htons(length);
	ip->check = 0;
	ip->check = ip_fast_csum(ip, 5);
	tcp->ack_seq = theirs->ack_seq;
	tcp->window = theirs->window;
	tcp->psh = push;
	memcpy(tcp + 1, theirs + 1, first->headers - ETH_HLEN - 40);
	tcp->check = ~csum_tcpudp_magic(ip->saddr, ip->daddr, length - 20, IPPROTO_TCP, 0);
}

static void saw_chain(const struct hot_rx_chain *chain, u32 length, u32 vlan)
{
	const u8 *frame = (const u8 *)chain->piece[0].data;
	struct made *first = flow_of(frame, vlan), *m = first, *last = first;
	u32 i, payload = 0, n = chain->segments;
	bool push = false;
	u8 header[128];

	CHECK(n >= 2 && n <= HOT_RX_SEGMENTS && n <= shared()->aggregate);
	CHECK(length == offsetof(struct hot_rx_chain, piece) + n * sizeof(chain->piece[0]));
	CHECK(first);
	for (i = 0; i < n && m; i++, m = oldest(first->flow)) {
		const u8 *at = (const u8 *)chain->piece[i].data + (i ? 0 : m->headers);
		u32 bytes = chain->piece[i].length - (i ? 0 : m->headers);

		CHECK(m - made < fed && !m->odd);
		CHECK(bytes == m->payload && !memcmp(at, m->frame + m->headers, bytes));
		CHECK(tcp_of(m->frame)->seq == htonl(ntohl(tcp_of(first->frame)->seq) + payload));
		CHECK(i + 1 == n ? bytes && bytes <= chain->size : bytes == chain->size);
		push |= tcp_of(m->frame)->psh;
		payload += bytes;
		m->seen = true;
		last = m;
	}
	CHECK(i == n);
	if (!first || i < n)
		return;
	expect_header(header, first, last, payload, push);
	CHECK(!memcmp(header, frame, first->headers));
	saw(first, n);
}

static void saw_packet(void *data, u32 length, u32 flags, u32 vlan)
{
	if (flags & HOT_RX_PIECES)
		saw_chain(data, length, vlan);
	else
		saw_frame(data, length, flags, vlan);
}

/* ---- Running ---- */

/* Whether a frame may be a part of an aggregate at all, by the kernel's structures; then
 * its payload. */
static bool may_be_merged(struct made *m)
{
	const struct iphdr *ip = ip_of(m->frame);
	const struct tcphdr *tcp = tcp_of(m->frame);
	u32 total = ntohs(ip->tot_len), headers = 20 + tcp->doff * 4;

	if (m->length < 54 || ((struct ethhdr *)m->frame)->h_proto != htons(ETH_P_IP) ||
	    ip->version != 4 || ip->ihl != 5 || ip->protocol != IPPROTO_TCP || m->vlan)
		return false;
	if (ip_fast_csum(ip, 5) || (ip->frag_off && ip->frag_off != htons(0x4000)))
		return false;
	if (tcp->fin || tcp->syn || tcp->rst || tcp->urg || tcp->ece || tcp->cwr || tcp->res1 ||
	    !tcp->ack)
		return false;
	if (tcp->doff != 5 && (tcp->doff != 8 || *(__be32 *)(tcp + 1) != htonl(0x0101080a)))
		return false;
	if (total <= headers || total + ETH_HLEN > m->length)
		return false;
	if (m->unchecked && tcp_sum(m, total - 20) != 0xffff)
		return false;
	m->payload = total - headers;
	return true;
}

/* What one poll of the driver finds at most. */
static u32 at_once = MADE;

static void receive_made(void)
{
	const u32 end = min_t(u32, made_count, fed + at_once);

	while (fed < end) {
		struct made *m = &made[fed++];

		m->odd = !may_be_merged(m);
		driver->vlan = m->vlan;
		driver->unchecked = m->unchecked;
		CHECK(driver_receive(m->frame, m->length, (fed & 1) && m->length < 1600));
	}
}

void segments_next(void)
{
	made_count = seen_count = fed = 0;
}

void segments_begin(u32 limit)
{
	begin();
	segments_next();
	shared()->aggregate = limit;
	test_host[0].seen = saw_packet;
	driver->poll_receives = receive_made;
}

void poll_segments(void)
{
	u32 i;

	memset(driver->poll_work, 0, sizeof(driver->poll_work));
	driver->polls = 0;
	driver->poll_work[0] = min_t(u32, made_count - fed, 63);
	napi_schedule(&driver->napi);
	hot_poll(300);
	for (i = 0; i < made_count; i++)
		CHECK(made[i].seen);
	CHECK(!hot_flows_open[0]);
}

void poll_more(u32 each)
{
	at_once = each;
	memset(driver->poll_work, 0, sizeof(driver->poll_work));
	driver->polls = 0;
	memset32((u32 *)driver->poll_work, each, DIV_ROUND_UP(made_count - fed, each));
	napi_schedule(&driver->napi);
	hot_poll(300);
	CHECK(fed == made_count && !hot_flows_open[0]);
	at_once = MADE;
}

u32 segments_held(void)
{
	u32 n = hot_release(test_host[0].queue, test_host[0].held);

	CHECK(n == test_host[0].held);
	test_host[0].held = 0;
	return n;
}
