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
 * Any frame may come in. Every field of one is read once, into struct segment. That stays
 * in registers and on the stack, so what takes one is inlined: accesses by a pointer are
 * translated each.
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

/* What tells flows apart. Frames of two guests differ in their addresses. */
struct flow_key {
	u64 addresses;		/* IP: source, destination */
	u32 ports;		/* source, destination */
	u64 ethernet[2];	/* the Ethernet header but its type */
};

/* A segment, read. Numbers are the host's. */
struct segment {
	struct flow_key key;
	u32 class;		/* tos, ttl, DF, length of the TCP header: as the first's */
	u32 seq, ack;
	u32 stamp;		/* TSval, or 0 */
	u32 headers;		/* bytes before the payload, the Ethernet header too */
	u32 payload;		/* bytes */
	u16 id;			/* IP */
	bool df, push;
};

/* A flow whose segments are merged. */
struct flow {
	struct flow_key key;
	u32 class;
	u32 seq;		/* the next segment's */
	u32 ack, stamp;		/* the last segment's */
	u32 length;		/* of the IP packet that it would be now */
	u16 id;			/* the next segment's, without DF */
	bool push;		/* the last segment's */
	u32 most;		/* segments of a packet of this poll */
	u8 *frame;		/* of the first segment */
	const u8 *latest;	/* of the last one */
	struct sk_buff *first, *last;	/* all are HELD, linked by skb->next */
	struct hot_rx_chain chain;
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
	key->ethernet[0] = *(const u64 *)frame;
	key->ethernet[1] = *(const u32 *)(frame + 8);
}

static __always_inline bool key_equal(const struct flow_key *a, const struct flow_key *b)
{
	return a->addresses == b->addresses && a->ports == b->ports &&
	       a->ethernet[0] == b->ethernet[0] && a->ethernet[1] == b->ethernet[1];
}

/* What reading a frame gives. */
enum verdict {
	OTHER,		/* not TCP over IPv4, or of a VLAN, where guests' frontends take no
			 * large packets: of no flow here */
	UNREADABLE,	/* TCP, but its ports are not at the usual place: of any flow between
			 * its addresses */
	ALONE,		/* of a flow, not to be merged */
	MERGEABLE,
};

/* What the pseudo header adds to TCP's checksum, of a segment of so many bytes (RFC 9293, 3.1). */
static __always_inline u64 pseudo_sum(const __be32 *ip, u32 length)
{
	return (u64)(__force u32)ip[3] + (__force u32)ip[4] + (__force u32)htonl(IPPROTO_TCP) +
	       (__force u32)htonl(length);
}

/* A card that computes none, or has found it wrong: guests would compute it. */
static bool checksum_is_right(struct sk_buff *skb, const __be32 *ip, u32 length)
{
	if (twin_sum_fold(twin_sum_bytes(pseudo_sum(ip, length), ip + 5, length)) != 0xffff)
		return false;
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	return true;
}

/*
 *   14 version/ihl tos total length | id flags/offset | ttl protocol checksum | source |
 *      destination                                              (RFC 791, 3.1)
 *   34 ports | seq | ack | offset flags window | checksum urgent | options  (RFC 9293, 3.1)
 */
static __always_inline enum verdict segment_read(struct segment *segment, struct sk_buff *skb,
				 const u8 *frame, u32 length)
{
	const __be32 *ip = (const __be32 *)(frame + ETH_HLEN), *tcp = ip + 5;
	u32 start, fragment, total, control, header;

	if (skb->protocol != htons(ETH_P_IP) || length < ETH_HLEN + 40 || frame[23] != IPPROTO_TCP ||
	    skb_vlan_tag_present(skb))
		return OTHER;
	key_read(&segment->key, frame);
	start = ntohl(ip[0]);
	fragment = ntohl(ip[1]);
	if (start >> 24 != 0x45 || fragment & IP_FRAGMENT)
		return UNREADABLE;
	total = start & 0xffff;
	control = ntohl(tcp[3]);
	header = control >> 28 << 2;
	/* Data offset, four reserved bits, then flags: ACK, and perhaps PSH. */
	if ((control & 0x0ff70000) != 0x00100000 || fragment & IP_RESERVED)
		return ALONE;
	if (total > length - ETH_HLEN || total <= 20 + header || skb->data_len)
		return ALONE;
	segment->stamp = 0;
	if (header == 20 + STAMP_BYTES && tcp[5] == STAMP_OPTION)
		segment->stamp = ntohl(tcp[6]);
	else if (header != 20)
		return ALONE;
	if (header_sum(ip) != 0xffff)
		return ALONE;
	if (unlikely(skb->ip_summed != CHECKSUM_UNNECESSARY) &&
	    !checksum_is_right(skb, ip, total - 20))
		return ALONE;
	segment->seq = ntohl(tcp[1]);
	segment->ack = ntohl(tcp[2]);
	segment->headers = ETH_HLEN + 20 + header;
	segment->payload = total - 20 - header;
	segment->id = fragment >> 16;
	segment->df = fragment & IP_DF;
	segment->push = control & 0x00080000;
	/* tos | ttl | DF, header length */
	segment->class = (start & 0x00ff0000) | frame[22] << 8 | segment->df << 7 | header;
	return MERGEABLE;
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
	u32 length = flow->length;

	((__be16 *)ip)[1] = htons(length);
	((__be16 *)ip)[5] = 0;
	((__be16 *)ip)[5] = (__force __be16)~header_sum(ip);
	tcp[2] = last[2];
	((__be16 *)tcp)[7] = ((const __be16 *)last)[7];
	if (flow->push)
		((u8 *)tcp)[13] |= 0x08;
	if ((flow->class & 0x7f) > 20) {
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

static __always_inline void flow_open(struct flow *flow, const struct segment *segment, struct sk_buff *skb,
		      u8 *frame, u32 most)
{
	flow->most = most;
	flow->key = segment->key;
	flow->class = segment->class;
	flow->length = segment->headers - ETH_HLEN;
	flow->frame = frame;
	flow->first = skb;
	flow->chain.size = segment->payload;
	flow->chain.segments = 0;
}

/* Adds a segment whose sk_buff is HELD. */
static __always_inline void flow_append(struct flow *flow, const struct segment *segment, struct sk_buff *skb,
			u8 *frame)
{
	u32 n = flow->chain.segments++;
	struct hot_rx_piece *piece = &flow->chain.piece[n];

	if (n) {
		flow->last->next = skb;
		piece->data = (u64)frame + segment->headers;
		piece->length = segment->payload;
	} else {
		piece->data = (u64)frame;
		piece->length = segment->headers + segment->payload;
	}
	flow->last = skb;
	flow->latest = frame;
	flow->seq = segment->seq + segment->payload;
	flow->ack = segment->ack;
	flow->stamp = segment->stamp;
	flow->id = segment->id + 1;
	flow->push = segment->push;
	flow->length += segment->payload;
}

static bool is_older(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* Why an open flow must be flushed before a segment; HOT_COUNTERS if it need not be. */
static __always_inline enum hot_counter flow_conflict(const struct flow *flow, const struct segment *segment)
{
	if (!key_equal(&flow->key, &segment->key))
		return HOT_COUNT_FLUSH_COLLISION;
	if (flow->class != segment->class || (!segment->df && flow->id != segment->id))
		return HOT_COUNT_FLUSH_HEADER;
	if (flow->seq != segment->seq || is_older(segment->ack, flow->ack) ||
	    is_older(segment->stamp, flow->stamp))
		return HOT_COUNT_FLUSH_ORDER;
	if (segment->payload > flow->chain.size)
		return HOT_COUNT_FLUSH_HEADER;
	if (flow->length + segment->payload > IP_LONGEST)
		return HOT_COUNT_FLUSH_LIMIT;
	return HOT_COUNTERS;
}

/* Flushes what a packet that is not merged may belong to. */
static __always_inline void flush_before(u32 cpu, const struct flow_key *key, enum verdict verdict)
{
	u32 number, open = hot_flows_open[cpu];

	for (; open; open &= open - 1) {
		const struct flow_key *other;

		number = __builtin_ctz(open);
		other = &aggregators[cpu].flow[number].key;
		if (other->addresses == key->addresses &&
		    (verdict == UNREADABLE || other->ports == key->ports))
			flow_flush(cpu, number, HOT_COUNT_FLUSH_HEADER);
	}
}

static __always_inline bool merge(u32 cpu, const struct segment *segment, struct sk_buff *skb, u32 index,
		  u8 *frame)
{
	u32 number = flow_number(&segment->key), open = hot_flows_open[cpu] >> number & 1;
	struct flow *flow = flow_at(cpu, number);

	if (open) {
		enum hot_counter why = flow_conflict(flow, segment);

		if (unlikely(why != HOT_COUNTERS)) {
			flow_flush(cpu, number, why);
			open = 0;
		}
	}
	if (!open && segment->push)
		return false;	/* nothing follows it */
	if (unlikely(!hot_pool_change(&hot_pools[HOT_POOL_SKB], index, HOT_OBJECT_BUSY,
				      HOT_OBJECT_HELD)))
		return false;	/* given twice, perhaps: the caller counts it */
	if (!open) {
		flow_open(flow, segment, skb, frame, hot_cpus[cpu].aggregate);
		hot_flows_open[cpu] |= 1u << number;
	}
	flow_append(flow, segment, skb, frame);
	if (segment->push || segment->payload < flow->chain.size)
		flow_flush(cpu, number, HOT_COUNT_FLUSH_BOUNDARY);
	else if (flow->chain.segments >= flow->most)
		flow_flush(cpu, number, HOT_COUNT_FLUSH_LIMIT);
	return true;
}

/* ---- Interface ----------------------------------------------------------- */

/* It has no array that could overflow, and a canary would be two accesses more. */
__attribute__((no_stack_protector))
bool hot_aggregate(struct sk_buff *skb, u32 index, u32 cpu)
{
	u8 *frame = skb_mac_header(skb);
	struct segment segment;
	enum verdict verdict;

	verdict = segment_read(&segment, skb, frame, skb_tail_pointer(skb) - frame);
	if (likely(verdict == MERGEABLE))
		return merge(cpu, &segment, skb, index, frame);
	if (verdict != OTHER && hot_flows_open[cpu])
		flush_before(cpu, &segment.key, verdict);
	return false;
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
