// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Receive aggregation (thesis, chapter 3): TCP segments that one poll finds, and that
 * follow each other in one flow, go to the host as one packet.
 *
 *   poll ── napi_gro_receive ──> [flow] + segment ... ── flush ──> host_receive
 *                                                     struct hot_rx_chain
 *
 * Work-conserving: nothing waits for a packet that may come. All flows are flushed
 * before the poll's napi is complete, so no later poll, of any CPU, overtakes one.
 *
 * A segment that stays alone costs little, since most of a request's or an answer's do. The
 * first of a flow is only held: its header is read, and its bytes are summed, when a second one of its
 * flow has come. One with PSH, which nothing follows, is not even held. Both go up as without merging:
 * unchanged, and with the card's word about the checksum.
 *
 * A segment is merged if it is the next of its flow, by sequence number, and nothing
 * would be lost but headers that the receiver can make again: same addresses and ports,
 * no VLAN, no IP options or fragments, checksums right, TCP's by the card's word if it has one,
 * payload, no flags but ACK and PSH, no options but a time stamp, TOS, TTL and DF
 * as before, acknowledgement and time stamp not older than before. Every other TCP packet first
 * flushes its flow, so packets of a flow stay in order. The packet's header is the
 * first segment's with the last one's acknowledgement, window, time stamp and PSH,
 * and what Linux's GRO gives a stack: the length of all, the IP checksum for that,
 * the pseudo header's sum in TCP's checksum.
 *
 * Any frame may come in. A first segment's header is read into struct flow, and what has to be the same
 * of all is compared as it is in memory. What was looked at before that only says which place a
 * segment waits in. Accesses by another pointer are translated anew, those to the stack are not: so much is
 * inlined, and headers and what they are compared with are copied there, once.
 */
#include "internal.h"
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#define FLOWS		8u	/* flows that one CPU merges at once; a power of two */
#define FLOWS_SHIFT	29	/* 32 - log2 of it */

#define IP_RESERVED	0x8000u	/* of flags and offset (RFC 791, 3.1) */
#define IP_DF		0x4000u
#define IP_FRAGMENT	0x3fffu	/* MF, and the offset */
#define IP_LONGEST	0xffffu	/* total length */

#define STAMP_OPTION	htonl(0x0101080a)	/* NOP, NOP, kind 8, length 10 (RFC 7323, A) */
#define STAMP_BYTES	12

/* Of IP and TCP, what tells flows apart, and where they wait. */
struct flow_key {
	u64 addresses;		/* source, destination */
	u32 ports;		/* source, destination */
};

/* What the next segment of a flow has to be like. */
struct state {
	/* Words of the first segment, in memory's order; by masks what is the same of all. */
	__be32 start;		/* IP: version, length of the header, TOS, total length */
	__be32 fragment;	/* id, flags, offset */
	__be32 life;		/* TTL, protocol, checksum */
	__be32 control;		/* TCP's data offset, reserved bits, flags, window */
	/* Numbers are the host's. */
	u32 headers;		/* bytes of IP's and TCP's */
	u32 size;		/* bytes of the first one's payload */
	u32 seq;		/* the next segment's */
	u32 ack, stamp;		/* the last segment's; TSval, if there is a time stamp */
	u32 length;		/* of the IP packet that it would be now */
	u16 id;			/* IP's of the next segment, without DF */
	bool push;		/* the last segment's */
	u32 most;		/* segments of a packet of this poll */
};

/* A flow whose segments are merged. Of one that is unread only what comes before state is said, and
 * chain.segments, which is 1. */
struct flow {
	struct flow_key key;
	u64 ethernet[2];	/* the Ethernet header but its type: two guests' differ */
	u8 *frame;		/* of the first segment */
	struct sk_buff *first;	/* all are HELD, linked by skb->next */
	bool unread;
	struct state state;
	const u8 *latest;	/* the last segment's frame */
	struct sk_buff *last;
	struct hot_rx_chain chain;
};

/* A segment's headers, copied: IP's, and TCP's with a time stamp. Without one the rest is not used. */
struct headers {
	__be32 ip[5], tcp[8];
};

/* What is new of a flow's next segment. */
struct segment {
	u32 ack, stamp;
	u32 payload;		/* bytes */
	bool push;
};

/* Only this CPU uses it (and hot_recover() when it is dead). */
struct aggregator {
	struct flow flow[FLOWS];
} ____cacheline_aligned;

static struct aggregator aggregators[HOT_CPUS];

/* Bit i: flow i has segments. Apart, because every poll asks. */
u32 hot_flows_open[HOT_CPUS];

/* ---- Reading ------------------------------------------------------------- */

/* Of an IP header without options, 20 bytes. */
static __always_inline u32 header_sum(const __be32 *ip)
{
	const u64 *words = (const u64 *)ip;
	u64 sum = (__force u32)ip[4];

	asm("addq %1, %0\n\t"
	    "adcq %2, %0\n\t"
	    "adcq $0, %0"
	    : "+&r" (sum) : "m" (words[0]), "m" (words[1]) : "cc");
	return twin_sum_fold(sum);
}

static __always_inline void key_read(struct flow_key *key, const u8 *frame)
{
	const __be32 *ip = (const __be32 *)(frame + ETH_HLEN);

	key->addresses = (__force u64)*(const __be64 *)(ip + 3);
	key->ports = (__force u32)ip[5];
}

static __always_inline bool key_equal(const struct flow_key *a, const struct flow_key *b)
{
	return a->addresses == b->addresses && a->ports == b->ports;
}

/* Its first twelve bytes. */
static __always_inline bool ethernet_equal(const struct flow *flow, const u8 *frame)
{
	return flow->ethernet[0] == *(const u64 *)frame &&
	       flow->ethernet[1] == *(const u32 *)(frame + 8);
}

/* What the pseudo header adds to TCP's checksum, of a segment of so many bytes (RFC 9293, 3.1). */
static __always_inline u64 pseudo_sum(const __be32 *ip, u32 length)
{
	return (u64)(__force u32)ip[3] + (__force u32)ip[4] + (__force u32)htonl(IPPROTO_TCP) +
	       (__force u32)htonl(length);
}

/* By the card's word, or computed: some cards compute none, and say the same of a wrong one. */
static __always_inline bool checksum_is_right(const struct sk_buff *skb, const u8 *frame, u32 length)
{
	const __be32 *ip = (const __be32 *)(frame + ETH_HLEN);

	return likely(skb->ip_summed == CHECKSUM_UNNECESSARY) ||
	       twin_sum_fold(twin_sum_bytes(pseudo_sum(ip, length), ip + 5, length)) == 0xffff;
}

/*
 *   14 version/ihl tos total length | id flags/offset | ttl protocol checksum | source |
 *      destination                                              (RFC 791, 3.1)
 *   34 ports | seq | ack | offset flags window | checksum urgent | options  (RFC 9293, 3.1)
 */

/* Of TCP over IPv4, and of no VLAN, where guests' frontends take no large packets. */
static __always_inline bool is_tcp(const struct sk_buff *skb, const u8 *frame, u32 length)
{
	return skb->protocol == htons(ETH_P_IP) && length >= ETH_HLEN + 40 &&
	       frame[23] == IPPROTO_TCP && !skb_vlan_tag_present(skb);
}

/* Whether its ports are at the usual place. */
static __always_inline bool has_ports(const u8 *frame)
{
	const __be32 *ip = (const __be32 *)(frame + ETH_HLEN);

	return frame[ETH_HLEN] == 0x45 && !(ip[1] & htonl(IP_FRAGMENT));
}

/* TCP's data offset, four reserved bits, flags, window, in memory's order; and masks (RFC 9293, 3.1). */
static __always_inline __be32 control_of(const u8 *frame)
{
	return ((const __be32 *)(frame + ETH_HLEN + 20))[3];
}

#define START_SAME	htonl(0xffff0000)
#define FRAGMENT_SAME	htonl(0x0000ffff)
#define LIFE_SAME	htonl(0xffff0000)
#define CONTROL_ACK	htonl(0x00100000)
#define CONTROL_PUSH	htonl(0x00080000)
#define CONTROL_FLAGS	htonl(0x0fff0000)	/* and the reserved bits */
#define CONTROL_SAME	htonl(0xfff70000)	/* not PSH */

/* Any buffer is longer, though its frame may not be. */
static __always_inline void headers_read(struct headers *headers, const u8 *frame)
{
	__builtin_memcpy(headers, frame + ETH_HLEN, sizeof(*headers));
}

/* IP's total length. */
static __always_inline u32 total_of(const u8 *frame)
{
	return ntohs(((const __be16 *)(frame + ETH_HLEN))[1]);
}

/* Bytes of both headers, by TCP's data offset. */
static __always_inline u32 headers_of(__be32 control)
{
	return 20 + (((__force u32)control >> 4 & 0xf) << 2);
}

/* Whether more may follow it: payload, and no flag but ACK. */
static __always_inline bool may_be_first(const u8 *frame)
{
	const __be32 control = control_of(frame);

	return (control & CONTROL_FLAGS) == CONTROL_ACK && total_of(frame) > headers_of(control);
}

/* ---- Flows --------------------------------------------------------------- */

/* As an address that the compiler does not know to be part of an array (pool.c). */
static __always_inline struct flow *flow_at(u32 cpu, u32 number)
{
	struct flow *flow = &aggregators[cpu].flow[number];

	OPTIMIZER_HIDE_VAR(flow);
	return flow;
}

/* Each part by a multiplier of its own: peers' addresses and ports often count up together. */
static u32 flow_number(const struct flow_key *key)
{
	u32 mixed = (u32)key->addresses * 0x9e3779b1u + (u32)(key->addresses >> 32) * 0x85ebca77u +
		    key->ports * 0xc2b2ae3du;

	return mixed >> FLOWS_SHIFT;
}

/* The header for all segments, in place of the first one's. */
static void flow_finish(struct flow *flow)
{
	__be32 *ip = (__be32 *)(flow->frame + ETH_HLEN), *tcp = ip + 5;
	const __be32 *last = (const __be32 *)(flow->latest + ETH_HLEN) + 5;
	u32 length = flow->state.length;

	((__be16 *)ip)[1] = htons(length);
	((__be16 *)ip)[5] = 0;
	((__be16 *)ip)[5] = (__force __be16)~header_sum(ip);
	tcp[2] = last[2];
	((__be16 *)tcp)[7] = ((const __be16 *)last)[7];
	if (flow->state.push)
		((u8 *)tcp)[13] |= 0x08;
	if (flow->state.headers > 40) {
		tcp[6] = last[6];
		tcp[7] = last[7];
	}
	((__be16 *)tcp)[8] = (__force __be16)twin_sum_fold(pseudo_sum(ip, length - 20));
}

/*
 * When the first segment is freed. Links are in dom0's memory: each is checked, and there
 * are not more than a chain has.
 */
void hot_chain_free(struct sk_buff *skb)
{
	struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	struct sk_buff *next = skb->next;
	u32 n, index;

	for (n = 1; next && n < HOT_RX_SEGMENTS; n++) {
		skb = next;
		index = hot_skb_index(skb);
		if (unlikely(index == HOT_NO_OBJECT ||
			     !hot_pool_change(pool, index, HOT_OBJECT_HELD, HOT_OBJECT_BUSY))) {
			hot_count(HOT_COUNT_BAD_FREE);
			return;
		}
		next = skb->next;
		skb->next = NULL;
		hot_skb_free(skb);
	}
}

/* Offers a HELD sk_buff to the host, or the chain that begins with it; frees what the
 * host does not want. */
static void offer(struct sk_buff *skb, const struct hot_rx_chain *chain)
{
	struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	u8 *frame = skb_mac_header(skb);
	u32 flags = hot_receive_flags(skb), answer;

	if (chain)
		answer = host_receive((void *)chain,
				      offsetof(struct hot_rx_chain, piece) +
				      chain->segments * sizeof(chain->piece[0]),
				      skb, flags | HOT_RX_PIECES, skb->vlan_tci);
	else
		answer = host_receive(frame, skb_tail_pointer(skb) - frame, skb, flags,
				      skb->vlan_tci);
	if (answer == HOT_RX_HELD)
		return;
	hot_pool_change(pool, hot_skb_index(skb), HOT_OBJECT_HELD, HOT_OBJECT_BUSY);
	hot_skb_free(skb);
}

static void flow_flush(u32 cpu, u32 number, enum hot_counter why)
{
	struct flow *flow = flow_at(cpu, number);
	u32 segments = flow->chain.segments;
	struct sk_buff *skb = flow->first;

	hot_flows_open[cpu] &= ~(1u << number);
	hot_count_on(cpu, why, 1);
	if (segments < 2) {
		offer(skb, NULL);
		return;
	}
	hot_count_on(cpu, HOT_COUNT_AGGREGATES, 1);
	hot_count_on(cpu, HOT_COUNT_MERGED, segments);
	flow_finish(flow);
	skb->destructor = HOT_CHAIN;
	offer(skb, &flow->chain);
}

/* In its place, which is empty, waits a segment, unread; false if the sk_buff is not BUSY: given twice,
 * perhaps. The caller counts it. */
static __always_inline bool hold(u32 cpu, u32 number, const struct flow_key *key, struct sk_buff *skb,
				 u32 index, u8 *frame)
{
	struct flow *flow = flow_at(cpu, number);

	if (unlikely(!hot_pool_change(&hot_pools[HOT_POOL_SKB], index, HOT_OBJECT_BUSY,
				      HOT_OBJECT_HELD)))
		return false;
	flow->key = *key;
	flow->ethernet[0] = *(const u64 *)frame;
	flow->ethernet[1] = *(const u32 *)(frame + 8);
	flow->frame = frame;
	flow->first = skb;
	flow->unread = true;
	flow->chain.segments = 1;
	hot_flows_open[cpu] |= 1u << number;
	return true;
}

/* The segment that waits is read, and so the first of an aggregate; false if it may not be merged with any. */
__attribute__((no_stack_protector))
static noinline bool flow_read(struct flow *flow, u32 cpu)
{
	const u8 *frame = flow->frame;
	struct sk_buff *skb = flow->first;
	struct headers is __attribute__((uninitialized));	/* headers_read() fills it */
	u32 total;

	headers_read(&is, frame);
	flow->state.start = is.ip[0];
	flow->state.fragment = is.ip[1];
	flow->state.life = is.ip[2];
	flow->state.control = is.tcp[3];
	flow->state.headers = headers_of(flow->state.control);
	total = ntohl(flow->state.start) & 0xffff;
	/* IP without options, not a fragment, no reserved flag; of TCP's flags only ACK. */
	if ((flow->state.start & htonl(0xff000000)) != htonl(0x45000000) ||
	    flow->state.fragment & htonl(IP_RESERVED | IP_FRAGMENT) ||
	    (flow->state.control & CONTROL_FLAGS) != CONTROL_ACK)
		return false;
	if (flow->state.headers != 40 && (flow->state.headers != 40 + STAMP_BYTES || is.tcp[5] != STAMP_OPTION))
		return false;
	if (total > (u32)(skb_tail_pointer(skb) - frame) - ETH_HLEN || total <= flow->state.headers ||
	    skb->data_len || header_sum(is.ip) != 0xffff)
		return false;
	flow->unread = false;
	flow->state.seq = ntohl(is.tcp[1]) + total - flow->state.headers;
	flow->state.ack = ntohl(is.tcp[2]);
	flow->state.stamp = flow->state.headers > 40 ? ntohl(is.tcp[6]) : 0;
	flow->state.length = total;
	flow->state.id = (ntohl(flow->state.fragment) >> 16) + 1;
	flow->state.push = false;
	flow->state.most = hot_cpus[cpu].aggregate;
	flow->latest = frame;
	flow->last = skb;
	flow->state.size = flow->chain.size = total - flow->state.headers;
	flow->chain.piece[0].data = (u64)frame;
	flow->chain.piece[0].length = ETH_HLEN + total;
	return true;
}

/* Adds the next segment, whose sk_buff is HELD. */
static __always_inline void flow_append(struct flow *flow, const struct segment *segment, struct sk_buff *skb,
			u8 *frame)
{
	struct hot_rx_piece *piece = &flow->chain.piece[flow->chain.segments++];

	flow->last->next = skb;
	piece->data = (u64)frame + ETH_HLEN + flow->state.headers;
	piece->length = segment->payload;
	flow->last = skb;
	flow->latest = frame;
	flow->state.seq += segment->payload;
	flow->state.length += segment->payload;
	flow->state.ack = segment->ack;
	flow->state.stamp = segment->stamp;
	flow->state.id++;
	flow->state.push = segment->push;
}

static bool is_older(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* Why a flow, which is read, must be flushed before the next packet of it; HOT_COUNTERS if both may be
 * merged, but for the packet's TCP checksum. Then all of segment is said. */
static __always_inline enum hot_counter flow_conflict(const struct flow *flow, struct segment *segment,
						      const struct sk_buff *skb, const u8 *frame,
						      u32 length)
{
	struct headers is __attribute__((uninitialized));	/* headers_read() fills it */
	struct state was __attribute__((uninitialized));
	u32 total;

	headers_read(&is, frame);
	__builtin_memcpy(&was, &flow->state, sizeof(was));
	if (((is.ip[0] ^ was.start) & START_SAME) | ((is.ip[1] ^ was.fragment) & FRAGMENT_SAME) |
	    ((is.ip[2] ^ was.life) & LIFE_SAME) | ((is.tcp[3] ^ was.control) & CONTROL_SAME))
		return HOT_COUNT_FLUSH_HEADER;
	if (unlikely(!(is.ip[1] & htonl(IP_DF)) && ntohl(is.ip[1]) >> 16 != was.id))
		return HOT_COUNT_FLUSH_HEADER;
	total = ntohl(is.ip[0]) & 0xffff;
	segment->payload = total - was.headers;
	/* Some, and no more than the first one's. */
	if (segment->payload - 1 >= was.size || total > length - ETH_HLEN ||
	    skb->data_len || header_sum(is.ip) != 0xffff)
		return HOT_COUNT_FLUSH_HEADER;
	segment->ack = ntohl(is.tcp[2]);
	segment->stamp = 0;
	segment->push = is.tcp[3] & CONTROL_PUSH;
	if (ntohl(is.tcp[1]) != was.seq || is_older(segment->ack, was.ack))
		return HOT_COUNT_FLUSH_ORDER;
	if (was.headers > 40) {
		if (is.tcp[5] != STAMP_OPTION)
			return HOT_COUNT_FLUSH_HEADER;
		segment->stamp = ntohl(is.tcp[6]);
		if (is_older(segment->stamp, was.stamp))
			return HOT_COUNT_FLUSH_ORDER;
	}
	return was.length + segment->payload > IP_LONGEST ? HOT_COUNT_FLUSH_LIMIT : HOT_COUNTERS;
}

/* The same with checksums. Until they are merged nothing of the first is changed, not even what is said of
 * its checksum. */
static __always_inline enum hot_counter flow_refuses(struct flow *flow, struct segment *segment,
						     const struct sk_buff *skb, const u8 *frame,
						     u32 length, u32 cpu)
{
	const bool unread = flow->unread;
	enum hot_counter why;

	if (unlikely(unread) && !flow_read(flow, cpu))
		return HOT_COUNT_FLUSH_HEADER;
	why = flow_conflict(flow, segment, skb, frame, length);
	if (unlikely(why != HOT_COUNTERS))
		return why;
	if (!checksum_is_right(skb, frame, flow->state.headers + segment->payload - 20))
		return HOT_COUNT_FLUSH_HEADER;
	if (likely(!unread))
		return HOT_COUNTERS;
	if (!checksum_is_right(flow->first, flow->frame, flow->state.length - 20))
		return HOT_COUNT_FLUSH_HEADER;
	flow->first->ip_summed = CHECKSUM_UNNECESSARY;
	return HOT_COUNTERS;
}

/* Takes the next segment of an open flow, which refuses it not. */
static __always_inline bool flow_take(u32 cpu, u32 number, const struct segment *segment,
				      struct sk_buff *skb, u32 index, u8 *frame)
{
	struct flow *flow = flow_at(cpu, number);

	if (unlikely(!hot_pool_change(&hot_pools[HOT_POOL_SKB], index, HOT_OBJECT_BUSY,
				      HOT_OBJECT_HELD)))
		return false;
	flow_append(flow, segment, skb, frame);
	if (segment->push || segment->payload < flow->state.size)
		flow_flush(cpu, number, HOT_COUNT_FLUSH_BOUNDARY);
	else if (flow->chain.segments >= flow->state.most)
		flow_flush(cpu, number, HOT_COUNT_FLUSH_LIMIT);
	return true;
}

/* Flushes each flow that a packet without ports may belong to. */
static void flush_between(u32 cpu, u64 addresses)
{
	u32 number, open = hot_flows_open[cpu];

	for (; open; open &= open - 1) {
		number = __builtin_ctz(open);
		if (aggregators[cpu].flow[number].key.addresses == addresses)
			flow_flush(cpu, number, HOT_COUNT_FLUSH_HEADER);
	}
}

/* ---- Interface ----------------------------------------------------------- */

/* It has no array that could overflow, and a canary would be two accesses more. */
__attribute__((no_stack_protector))
bool hot_aggregate(struct sk_buff *skb, u32 index, u32 cpu)
{
	u8 *frame = skb_mac_header(skb);
	u32 number, length = skb_tail_pointer(skb) - frame;
	enum hot_counter why = HOT_COUNTERS;
	struct segment segment;
	struct flow_key key;
	struct flow *flow;

	if (!is_tcp(skb, frame, length))
		return false;
	/* A request or an answer, and nothing came before it. */
	if (!hot_flows_open[cpu] && !may_be_first(frame))
		return false;
	key_read(&key, frame);
	if (unlikely(!has_ports(frame))) {
		flush_between(cpu, key.addresses);
		return false;
	}
	number = flow_number(&key);
	if (hot_flows_open[cpu] >> number & 1) {
		flow = flow_at(cpu, number);
		if (likely(key_equal(&flow->key, &key) && ethernet_equal(flow, frame))) {
			why = flow_refuses(flow, &segment, skb, frame, length, cpu);
			if (likely(why == HOT_COUNTERS))
				return flow_take(cpu, number, &segment, skb, index, frame);
		} else if (key_equal(&flow->key, &key) || may_be_first(frame)) {
			/* The flow comes with another Ethernet header; or it is another's place. */
			why = HOT_COUNT_FLUSH_COLLISION;
		}
		if (why != HOT_COUNTERS)
			flow_flush(cpu, number, why);
	}
	return may_be_first(frame) && hold(cpu, number, &key, skb, index, frame);
}

void hot_aggregate_flush(u32 cpu)
{
	/* Flushing opens none. */
	while (hot_flows_open[cpu])
		flow_flush(cpu, __builtin_ctz(hot_flows_open[cpu]), HOT_COUNT_FLUSH_END);
}

/* The segments of open flows are the driver's again: the host never had them. */
void hot_aggregate_recover(u32 cpu)
{
	struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	u32 open = hot_flows_open[cpu] & ((1u << FLOWS) - 1), n, index;

	hot_flows_open[cpu] = 0;
	for (; open; open &= open - 1) {
		const struct flow *flow = &aggregators[cpu].flow[__builtin_ctz(open)];
		struct sk_buff *skb = flow->first;

		for (n = min_t(u32, flow->chain.segments, HOT_RX_SEGMENTS); n && skb; n--) {
			index = hot_skb_index(skb);
			if (index == HOT_NO_OBJECT ||
			    !hot_pool_change(pool, index, HOT_OBJECT_HELD, HOT_OBJECT_BUSY))
				break;
			skb = skb->next;
		}
	}
}
