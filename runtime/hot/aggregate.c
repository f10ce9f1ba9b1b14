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
 * first segment's with the last one's acknowledgement, window and time stamp, PSH if any has it,
 * and what Linux's GRO gives a stack: the length of all, the IP checksum for that,
 * the pseudo header's sum in TCP's checksum.
 *
 * PSH ends no aggregate. It marks no record, and whoever makes packets of a stream should collapse successive ones
 * (RFC 9293, 3.9.1.2). What it asks for, that nothing waits for more, holds of all that is here.
 *
 * Any frame may come in. A segment's headers are read once, eight bytes at a time, and what has to be the same
 * of all is compared as it is in memory. What was looked at of a first one before it is read (flow_read) only says
 * which place it waits in.
 */
#include "internal.h"
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#define FLOWS		32u	/* flows that one CPU merges at once: the bits of hot_flows_open[] */
#define FLOWS_SHIFT	27	/* 32 - log2 of it */

#define IP_RESERVED	0x8000u	/* of flags and offset (RFC 791, 3.1) */
#define IP_DF		0x4000u
#define IP_FRAGMENT	0x3fffu	/* MF, and the offset */
#define IP_LONGEST	0xffffu	/* total length */

#define STAMP_OPTION	htonl(0x0101080a)	/* NOP, NOP, kind 8, length 10 (RFC 7323, A) */
#define STAMP_BYTES	12

/*
 * A segment's headers as eight bytes at once, in memory's order: the lower half is what comes first.
 *
 *   14 version/ihl tos total length | id flags/offset     start       (RFC 791, 3.1)
 *   22 ttl protocol checksum | source                     middle
 *   30 destination | ports                                ends        (RFC 9293, 3.1)
 *   38 seq | ack                                          numbers
 *   46 offset flags window | checksum urgent              control
 *   54 NOP NOP kind length | TSval                        stamp       (RFC 7323, A)
 *
 * Without a time stamp the last is not used. Any buffer is longer, though its frame may not be.
 */
struct headers {
	u64 start, middle, ends, numbers, control, stamp;
};

/* What the next segment of a flow has to be like. Numbers are the host's. */
struct state {
	u32 control;		/* the first one's; by a mask what is the same of all */
	u32 headers;		/* bytes of IP's and TCP's */
	u32 size;		/* bytes of the first one's payload */
	u32 seq;		/* the next segment's */
	u32 ack, stamp;		/* the last segment's; TSval, if there is a time stamp */
	u32 length;		/* of the IP packet that it would be now */
	u16 id;			/* IP's of the next segment, without DF */
	bool push;		/* of any segment */
	u32 most;		/* segments of a packet of this poll */
	bool unread;		/* nothing else of it is said yet */
};

/* What a segment is compared with: copied to the stack at once, because accesses there are not translated. */
struct same {
	u64 start, middle;	/* the first segment's */
	u64 ethernet[2];	/* the Ethernet header but its type: two guests' differ */
	struct state state;
};

/* A flow whose segments are merged. Of one that is unread only `ends`, `same` without its state, `frame` and `first` are said,
 * and chain.segments, which is 1. */
struct flow {
	u64 ends;		/* the first segment's; addresses and ports tell flows apart */
	struct same same;
	u8 *frame;		/* of the first segment */
	struct sk_buff *first;	/* all are HELD, linked by skb->next */
	const u8 *latest;	/* the last segment's frame */
	struct sk_buff *last;
	struct hot_rx_chain chain;
};

/* A segment that comes in: each thing of it is read once. Each pointer's accesses are together, because
 * those by another one are translated anew. */
struct segment {
	struct sk_buff *skb;
	u32 index;		/* the sk_buff's */
	u8 *frame;
	u32 length;		/* of the frame */
	u32 fragments;		/* bytes that are not in it */
	bool summed;		/* TCP's checksum is right, as the card says */
	u64 ethernet[2];
	struct headers is;
	/* What is said of a flow's next one. */
	u32 ack, stamp;
	u32 payload;		/* bytes */
};

/* Only this CPU uses it (and hot_recover() when it is dead). */
struct aggregator {
	struct flow flow[FLOWS];
} ____cacheline_aligned;

static struct aggregator aggregators[HOT_CPUS];

/* Bit i: flow i has segments. Apart, because every poll asks. */
u32 hot_flows_open[HOT_CPUS];

/* ---- Reading ------------------------------------------------------------- */

static __always_inline __be32 lower(u64 word)
{
	return (__force __be32)(u32)word;
}

static __always_inline __be32 upper(u64 word)
{
	return (__force __be32)(u32)(word >> 32);
}

/* Of an IP header without options, 20 bytes. */
static __always_inline u32 header_sum(const struct headers *is)
{
	u64 sum = (__force u32)lower(is->ends);

	asm("addq %1, %0\n\t"
	    "adcq %2, %0\n\t"
	    "adcq $0, %0"
	    : "+&r" (sum) : "rm" (is->start), "rm" (is->middle) : "cc");
	return twin_sum_fold(sum);
}

/* What the pseudo header adds to TCP's checksum, of a segment of so many bytes (RFC 9293, 3.1). */
static __always_inline u64 pseudo_sum(const struct headers *is, u32 length)
{
	return (u64)(__force u32)upper(is->middle) + (__force u32)lower(is->ends) +
	       (__force u32)htonl(IPPROTO_TCP) + (__force u32)htonl(length);
}

/* Computed: some cards compute none, and say the same of a wrong one. */
static __always_inline bool checksum_is_right(const struct headers *is, const u8 *frame, u32 length)
{
	return twin_sum_fold(twin_sum_bytes(pseudo_sum(is, length), frame + ETH_HLEN + 20, length)) == 0xffff;
}

/* In memory's order (struct headers). */
#define START_SAME	((u64)(__force u32)htonl(0x0000ffff) << 32 | (__force u32)htonl(0xffff0000))
#define MIDDLE_SAME	(~0ull << 32 | (__force u32)htonl(0xffff0000))
#define FRAGMENT(bits)	((u64)(__force u32)htonl(bits) << 32)
#define VERSION(byte)	((u64)(byte))
#define CONTROL_ACK	((__force u32)htonl(0x00100000))
#define CONTROL_PUSH	((__force u32)htonl(0x00080000))
#define CONTROL_FLAGS	((__force u32)htonl(0x0fff0000))	/* and the reserved bits */
#define CONTROL_SAME	((__force u32)htonl(0xfff70000))	/* not PSH */

static __always_inline void headers_read(struct headers *is, const u8 *frame)
{
	const u64 *words = (const u64 *)(frame + ETH_HLEN);

	is->start = words[0];
	is->middle = words[1];
	is->ends = words[2];
	is->numbers = words[3];
	is->control = words[4];
	is->stamp = words[5];
}

/* Whether its ports are at the usual place: no IP options, not a later fragment. */
static __always_inline bool has_ports(const struct headers *is)
{
	return (is->start & (VERSION(0xff) | FRAGMENT(IP_FRAGMENT))) == VERSION(0x45);
}

/* IP's total length. */
static __always_inline u32 total_of(const struct headers *is)
{
	return ntohl(lower(is->start)) & 0xffff;
}

/* Bytes of both headers, by TCP's data offset. */
static __always_inline u32 headers_of(u32 control)
{
	return 20 + ((control >> 4 & 0xf) << 2);
}

/* Whether more may follow it: payload, and no flag but ACK. */
static __always_inline bool may_be_first(const struct headers *is)
{
	const u32 control = is->control;

	return (control & CONTROL_FLAGS) == CONTROL_ACK && total_of(is) > headers_of(control);
}

/* ---- Flows --------------------------------------------------------------- */

/* As an address that the compiler does not know to be part of an array (pool.c). */
static __always_inline struct flow *flow_at(u32 cpu, u32 number)
{
	struct flow *flow = &aggregators[cpu].flow[number];

	OPTIMIZER_HIDE_VAR(flow);
	return flow;
}

/*
 * A flow's own place; that beside it, number ^ 1, is the other one where it may wait. Each part by a
 * multiplier of its own: peers' addresses and ports often count up together.
 */
static __always_inline u32 flow_number(const struct headers *is)
{
	u32 mixed = (u32)(is->middle >> 32) * 0x9e3779b1u + (u32)is->ends * 0x85ebca77u +
		    (u32)(is->ends >> 32) * 0xc2b2ae3du;

	return mixed >> FLOWS_SHIFT;
}

/* Whether the flow waits in that place: by addresses and ports. */
static __always_inline bool flow_waits(u32 cpu, u32 open, u32 number, const struct headers *is)
{
	const struct flow *flow;

	if (!(open >> number & 1))
		return false;
	flow = flow_at(cpu, number);
	return flow->ends == is->ends && !((flow->same.middle ^ is->middle) >> 32);
}

/* The header for all segments, in place of the first one's. */
static void flow_finish(struct flow *flow)
{
	__be32 *ip = (__be32 *)(flow->frame + ETH_HLEN), *tcp = ip + 5;
	const __be32 *last = (const __be32 *)(flow->latest + ETH_HLEN) + 5;
	u32 length = flow->same.state.length;
	struct headers is __attribute__((uninitialized));	/* headers_read() fills it */

	((__be16 *)ip)[1] = htons(length);
	((__be16 *)ip)[5] = 0;
	headers_read(&is, flow->frame);
	((__be16 *)ip)[5] = (__force __be16)~header_sum(&is);
	tcp[2] = last[2];
	((__be16 *)tcp)[7] = ((const __be16 *)last)[7];
	if (flow->same.state.push)
		((u8 *)tcp)[13] |= 0x08;
	if (flow->same.state.headers > 40) {
		tcp[6] = last[6];
		tcp[7] = last[7];
	}
	((__be16 *)tcp)[8] = (__force __be16)twin_sum_fold(pseudo_sum(&is, length - 20));
}

/*
 * When the first segment is freed. Links are in dom0's memory: each is checked, and there
 * are not more than a chain has.
 */
void hot_chain_free(struct sk_buff *skb)
{
	const struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	struct sk_buff *next = skb->next;
	u32 n, index;

	for (n = 1; next && n < HOT_RX_SEGMENTS; n++) {
		skb = next;
		index = hot_skb_index(skb);
		if (unlikely(index == HOT_NO_OBJECT || READ_ONCE(pool->state[index]) != HOT_OBJECT_HELD)) {
			hot_count(HOT_COUNT_BAD_FREE);
			return;
		}
		next = skb->next;
		skb->next = NULL;
		if (unlikely(!hot_skb_free_held(skb, index)))
			hot_count(HOT_COUNT_BAD_FREE);
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
static __always_inline bool hold(u32 cpu, u32 number, const struct segment *segment)
{
	struct flow *flow = flow_at(cpu, number);

	if (unlikely(!hot_pool_change(&hot_pools[HOT_POOL_SKB], segment->index, HOT_OBJECT_BUSY,
				      HOT_OBJECT_HELD)))
		return false;
	flow->same.start = segment->is.start;
	flow->same.middle = segment->is.middle;
	flow->ends = segment->is.ends;
	flow->same.ethernet[0] = segment->ethernet[0];
	flow->same.ethernet[1] = segment->ethernet[1];
	flow->frame = segment->frame;
	flow->first = segment->skb;
	flow->same.state.unread = true;
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
	u32 total, control;

	headers_read(&is, frame);
	control = is.control;
	total = total_of(&is);
	flow->same.state.control = control;
	flow->same.state.headers = headers_of(control);
	/* IP without options, not a fragment, no reserved flag; of TCP's flags only ACK. */
	if ((is.start & (VERSION(0xff) | FRAGMENT(IP_RESERVED | IP_FRAGMENT))) != VERSION(0x45) ||
	    (control & CONTROL_FLAGS) != CONTROL_ACK)
		return false;
	if (flow->same.state.headers != 40 &&
	    (flow->same.state.headers != 40 + STAMP_BYTES || lower(is.stamp) != STAMP_OPTION))
		return false;
	if (total > (u32)(skb_tail_pointer(skb) - frame) - ETH_HLEN || total <= flow->same.state.headers ||
	    skb->data_len || header_sum(&is) != 0xffff)
		return false;
	flow->same.state.unread = false;
	flow->same.state.seq = ntohl(lower(is.numbers)) + total - flow->same.state.headers;
	flow->same.state.ack = ntohl(upper(is.numbers));
	flow->same.state.stamp = ntohl(upper(is.stamp));
	flow->same.state.length = total;
	flow->same.state.id = (ntohl(upper(is.start)) >> 16) + 1;
	flow->same.state.push = false;
	flow->same.state.most = hot_cpus[cpu].aggregate;
	flow->latest = frame;
	flow->last = skb;
	flow->same.state.size = flow->chain.size = total - flow->same.state.headers;
	flow->chain.piece[0].data = (u64)frame;
	flow->chain.piece[0].length = ETH_HLEN + total;
	return true;
}

static bool is_older(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* Why a flow, which is read, must be flushed before the next packet of it; HOT_COUNTERS if both may be
 * merged, but for the packet's TCP checksum. Then all of segment is said. */
static __always_inline enum hot_counter flow_conflict(const struct same *was, struct segment *segment)
{
	const struct headers *is = &segment->is;
	const u32 total = total_of(is);

	if (((is->start ^ was->start) & START_SAME) | ((is->middle ^ was->middle) & MIDDLE_SAME) |
	    (((u32)is->control ^ was->state.control) & CONTROL_SAME))
		return HOT_COUNT_FLUSH_HEADER;
	if (unlikely(!(is->start & FRAGMENT(IP_DF)) && ntohl(upper(is->start)) >> 16 != was->state.id))
		return HOT_COUNT_FLUSH_HEADER;
	segment->payload = total - was->state.headers;
	/* Some, and no more than the first one's. */
	if (segment->payload - 1 >= was->state.size || total > segment->length - ETH_HLEN ||
	    segment->fragments || header_sum(is) != 0xffff)
		return HOT_COUNT_FLUSH_HEADER;
	segment->ack = ntohl(upper(is->numbers));
	if (ntohl(lower(is->numbers)) != was->state.seq || is_older(segment->ack, was->state.ack))
		return HOT_COUNT_FLUSH_ORDER;
	segment->stamp = ntohl(upper(is->stamp));
	if (was->state.headers > 40) {
		if (lower(is->stamp) != STAMP_OPTION)
			return HOT_COUNT_FLUSH_HEADER;
		if (is_older(segment->stamp, was->state.stamp))
			return HOT_COUNT_FLUSH_ORDER;
	}
	return was->state.length + segment->payload > IP_LONGEST ? HOT_COUNT_FLUSH_LIMIT : HOT_COUNTERS;
}

/* The first segment's checksum, by the card's word or computed; until it is merged nothing of it is changed, not
 * even what is said of its checksum. */
static noinline bool first_is_summed(struct flow *flow)
{
	struct headers is __attribute__((uninitialized));	/* headers_read() fills it */

	if (flow->first->ip_summed == CHECKSUM_UNNECESSARY)
		return true;
	headers_read(&is, flow->frame);
	if (!checksum_is_right(&is, flow->frame, flow->same.state.length - 20))
		return false;
	flow->first->ip_summed = CHECKSUM_UNNECESSARY;
	return true;
}

/* The same with checksums. */
static __always_inline enum hot_counter flow_refuses(struct flow *flow, struct same *was,
						     struct segment *segment, u32 cpu)
{
	const bool unread = was->state.unread;
	enum hot_counter why;

	if (unlikely(unread)) {
		if (!flow_read(flow, cpu))
			return HOT_COUNT_FLUSH_HEADER;
		__builtin_memcpy(was, &flow->same, sizeof(*was));
	}
	why = flow_conflict(was, segment);
	if (unlikely(why != HOT_COUNTERS))
		return why;
	if (unlikely(!segment->summed) &&
	    !checksum_is_right(&segment->is, segment->frame, was->state.headers + segment->payload - 20))
		return HOT_COUNT_FLUSH_HEADER;
	if (unlikely(unread) && !first_is_summed(flow))
		return HOT_COUNT_FLUSH_HEADER;
	return HOT_COUNTERS;
}

/* Takes the next segment of an open flow, which refuses it not. */
static __always_inline bool flow_take(u32 cpu, u32 number, const struct same *was,
				      const struct segment *segment)
{
	struct flow *flow = flow_at(cpu, number);
	struct hot_rx_piece *piece;
	struct sk_buff *last;
	u32 segments;

	if (unlikely(!hot_pool_change(&hot_pools[HOT_POOL_SKB], segment->index, HOT_OBJECT_BUSY,
				      HOT_OBJECT_HELD)))
		return false;
	segments = flow->chain.segments;
	last = flow->last;
	flow->chain.segments = segments + 1;
	flow->last = segment->skb;
	flow->latest = segment->frame;
	flow->same.state.seq = was->state.seq + segment->payload;
	flow->same.state.length = was->state.length + segment->payload;
	flow->same.state.ack = segment->ack;
	flow->same.state.stamp = segment->stamp;
	flow->same.state.id = was->state.id + 1;
	flow->same.state.push = was->state.push | !!(segment->is.control & CONTROL_PUSH);
	piece = &flow->chain.piece[segments];
	piece->data = (u64)segment->frame + ETH_HLEN + was->state.headers;
	piece->length = segment->payload;
	last->next = segment->skb;
	if (segment->payload < was->state.size)
		flow_flush(cpu, number, HOT_COUNT_FLUSH_BOUNDARY);
	else if (segments + 1 >= was->state.most)
		flow_flush(cpu, number, HOT_COUNT_FLUSH_LIMIT);
	return true;
}

/* A place for a flow that waits nowhere: its own, or the other one if only that is free. If none is, its own, and
 * who waits there is flushed. */
static __always_inline u32 place_for(u32 cpu, u32 number)
{
	const u32 open = hot_flows_open[cpu];

	if (likely(!(open >> number & 1)))
		return number;
	if (!(open >> (number ^ 1) & 1))
		return number ^ 1;
	flow_flush(cpu, number, HOT_COUNT_FLUSH_COLLISION);
	return number;
}

/* Flushes each flow that a packet without ports may belong to, by the addresses in its header. By value: what a
 * pointer leads to is in memory, for all that is done with it. */
static noinline void flush_between(u32 cpu, u64 middle, u64 ends)
{
	u32 number, open = hot_flows_open[cpu];
	const struct flow *flow;

	for (; open; open &= open - 1) {
		number = __builtin_ctz(open);
		flow = flow_at(cpu, number);
		if (!((flow->same.middle ^ middle) >> 32 | (u32)(flow->ends ^ ends)))
			flow_flush(cpu, number, HOT_COUNT_FLUSH_HEADER);
	}
}

/* ---- Interface ----------------------------------------------------------- */

/* Of TCP over IPv4, and of no VLAN, where guests' frontends take no large packets; then it is read. */
static __always_inline bool segment_read(struct segment *segment, struct sk_buff *skb, u32 index, u32 open)
{
	const bool is_ip = skb->protocol == htons(ETH_P_IP) && !skb_vlan_tag_present(skb);
	u8 *frame = skb_mac_header(skb);
	const u64 *ethernet = (const u64 *)frame;

	segment->skb = skb;
	segment->index = index;
	segment->frame = frame;
	segment->length = skb_tail_pointer(skb) - frame;
	segment->fragments = skb->data_len;
	segment->summed = skb->ip_summed == CHECKSUM_UNNECESSARY;
	if (!is_ip || segment->length < ETH_HLEN + 40 || frame[23] != IPPROTO_TCP)
		return false;
	headers_read(&segment->is, frame);
	/* A request or an answer, and nothing came before it. */
	if (!open && !may_be_first(&segment->is))
		return false;
	segment->ethernet[0] = ethernet[0];
	segment->ethernet[1] = (u32)ethernet[1];
	return true;
}

/* It has no array that could overflow, and a canary would be two accesses more. */
__attribute__((no_stack_protector))
bool hot_aggregate(struct sk_buff *skb, u32 index, u32 cpu)
{
	const u32 open = hot_flows_open[cpu];
	/* If the flow comes with another Ethernet header. */
	enum hot_counter why = HOT_COUNT_FLUSH_COLLISION;
	struct segment segment __attribute__((uninitialized));	/* segment_read() fills it */
	struct same was __attribute__((uninitialized));
	struct flow *flow;
	u32 number;
	bool waits;

	if (!segment_read(&segment, skb, index, open))
		return false;
	if (unlikely(!has_ports(&segment.is))) {
		flush_between(cpu, segment.is.middle, segment.is.ends);
		return false;
	}
	number = flow_number(&segment.is);
	waits = flow_waits(cpu, open, number, &segment.is);
	if (unlikely(!waits) && flow_waits(cpu, open, number ^ 1, &segment.is)) {
		waits = true;
		number ^= 1;
	}
	if (likely(waits)) {
		flow = flow_at(cpu, number);
		__builtin_memcpy(&was, &flow->same, sizeof(was));
		if (likely(!((was.ethernet[0] ^ segment.ethernet[0]) |
			     (was.ethernet[1] ^ segment.ethernet[1])))) {
			why = flow_refuses(flow, &was, &segment, cpu);
			if (likely(why == HOT_COUNTERS))
				return flow_take(cpu, number, &was, &segment);
		}
		flow_flush(cpu, number, why);
		return may_be_first(&segment.is) && hold(cpu, number, &segment);
	}
	return may_be_first(&segment.is) && hold(cpu, place_for(cpu, number), &segment);
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
	u32 open = hot_flows_open[cpu], n, index;

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
