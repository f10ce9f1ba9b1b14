// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the device cannot do, done for it, so that guests always have large packets,
 * fragments, checksums and VLAN tags (Menon's thesis, 3.3: the interface stays high, whatever
 * the card is).
 *
 *   whole     | headers | payload ........................... |  linear part, then pages
 *   part 0    | copy    | payload, size bytes |
 *   part 1    | copy, changed                 | ... |
 *
 * A packet that only lacks something, or nothing, is one part. The whole stays until all parts
 * are freed, and then completes. Only headers are read here: a guest's pages are out of reach, so
 * the host copies them where there may be no fragments, and adds them up (host_gather), for several parts at once.
 */
#include "internal.h"
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>

/* ---- What is to be done --------------------------------------------------- */

static u32 needs_of(const struct sk_buff *whole)
{
	netdev_features_t features = whole->dev->features;
	u32 needs = 0;

	if (skb_shinfo(whole)->nr_frags && !(features & NETIF_F_SG))
		needs |= HOT_DO_GATHER;
	/* All bytes are added up, so all are copied. */
	if (whole->ip_summed == CHECKSUM_PARTIAL && !(features & NETIF_F_HW_CSUM))
		needs |= HOT_DO_SUM | HOT_DO_GATHER;
	if (skb_vlan_tag_present(whole) && !(features & NETIF_F_HW_VLAN_CTAG_TX))
		needs |= HOT_DO_TAG;
	return needs;
}

void hot_offload_cut(const struct sk_buff *whole, struct hot_cut *cut)
{
	const u32 linear = skb_headlen(whole), fragments = whole->data_len;

	cut->needs = needs_of(whole);
	cut->gso = skb_is_gso(whole);
	if (!cut->gso) {
		cut->headers = linear;
		cut->payload = cut->size = fragments;
		cut->inside = 0;
		cut->parts = 1;
		return;
	}
	cut->headers = min_t(u32, skb_tcp_all_headers(whole), linear);
	cut->inside = linear - cut->headers;
	cut->payload = cut->inside + fragments;
	cut->size = skb_shinfo(whole)->gso_size;
	cut->parts = DIV_ROUND_UP(cut->payload, cut->size);
}

__attribute__((no_stack_protector))	/* as hot_tx_rest(): it has no array */
bool hot_offload_fits(const struct sk_buff *whole)
{
	struct hot_cut cut __attribute__((uninitialized));	/* hot_offload_cut() fills it */

	if (likely(HOT_TX_ROOM(whole->len) <= PAGE_SIZE))
		return true;
	hot_offload_cut(whole, &cut);
	return !(cut.needs & HOT_DO_GATHER) || HOT_TX_ROOM(cut.headers + cut.size) <= PAGE_SIZE;
}

/* ---- Checksums (RFC 1071) -------------------------------------------------- */

/* Adds a header, which mostly has no options, or of TCP a time stamp: 20 and 32 bytes at once. */
static __always_inline u64 add_header(u64 sum, const void *at, u32 length)
{
	const u8 (*bytes)[32] = at;

	if (length == 20) {
		asm("addq 0(%1), %0\n\t"
		    "adcq 8(%1), %0\n\t"
		    "adcq $0, %0"
		    : "+&r" (sum) : "r" (at), "m" (*(const u8 (*)[16])at) : "cc");
		return twin_sum_carry(sum, ((const u32 *)at)[4]);
	}
	if (length == 32) {
		asm("addq 0(%1), %0\n\t"
		    "adcq 8(%1), %0\n\t"
		    "adcq 16(%1), %0\n\t"
		    "adcq 24(%1), %0\n\t"
		    "adcq $0, %0"
		    : "+&r" (sum) : "r" (at), "m" (*bytes) : "cc");
		return sum;
	}
	return twin_sum_bytes(sum, at, length);
}

/* Computes what the device would have: gathered is the sum of the bytes behind linear ones. */
static __always_inline void sum(struct sk_buff *part, u32 linear, u32 gathered)
{
	const u32 start = skb_checksum_start_offset(part);
	u16 *check = (u16 *)(part->data + start + part->csum_offset);
	u32 total;

	/* From an odd place on the words' bytes are the other way round. */
	gathered = (linear - start) & 1 ? swab16(gathered) : gathered;
	total = ~twin_sum_fold(add_header(gathered, part->data + start, linear - start)) & 0xffff;
	*check = total ? total : 0xffff;	/* 0 is none (RFC 768), and the same number */
}

/* ---- A part ---------------------------------------------------------------- */

/* Where a part's payload is in the whole's. */
struct span {
	u32 from;
	u32 length;
};

/* The same pages, from `offset` of the whole's fragments on. */
static void share_fragments(struct sk_buff *part, const struct sk_buff *whole, struct span span)
{
	const struct skb_shared_info *from = skb_shinfo(whole);
	struct skb_shared_info *to = skb_shinfo(part);
	u32 i, n = 0, most = min_t(u32, from->nr_frags, MAX_SKB_FRAGS);

	part->len += span.length;
	part->data_len = span.length;
	part->truesize += span.length;
	for (i = 0; i < most && span.length; i++) {
		const skb_frag_t *fragment = &from->frags[i];
		u32 length, size = skb_frag_size(fragment);

		if (span.from >= size) {
			span.from -= size;
			continue;
		}
		length = min(size - span.from, span.length);
		to->frags[n] = *fragment;
		skb_frag_off_add(&to->frags[n], span.from);
		skb_frag_size_set(&to->frags[n++], length);
		span.length -= length;
		span.from = 0;
	}
	to->nr_frags = n;
}

/*
 * What the headers of all segments of a packet have in common, and sums of it (RFC 1071): read once, on the
 * stack of who makes the segments, where nothing is translated. Fields that differ are 0 in the sums.
 */
struct pattern {
	u64 word[HOT_HEADER / 8];	/* the headers, and what is behind them */
	u32 network, transport;		/* where they begin */
	u32 ip_sum, tcp_sum;		/* of IPv4's header; of TCP's with its pseudo header */
	u32 pseudo;			/* of that alone */
	u32 seq;			/* of the first segment */
	u16 id, flags;			/* of its IPv4 header; TCP's word with the flags */
	bool is_6;
};

#define TCP_FLAGS	12	/* where that word is */
#define TCP_NOT_LAST	htons(0x0009)	/* FIN and PSH are the last one's (RFC 9293, 3.1) */
#define TCP_FIRST	htons(0x0080)	/* CWR is the first one's (RFC 3168, 6.1.2) */

static __always_inline void read_pattern(struct pattern *pattern, const struct sk_buff *whole)
{
	const u8 *ip = skb_network_header(whole), *tcp = skb_transport_header(whole);
	const u64 *from = (const u64 *)whole->data;
	u64 sum = htons(IPPROTO_TCP);
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < ARRAY_SIZE(pattern->word); i++)
		pattern->word[i] = from[i];
	pattern->network = skb_network_offset(whole);
	pattern->transport = skb_transport_offset(whole);
	pattern->is_6 = *ip >> 4 == 6;
	pattern->id = pattern->ip_sum = 0;
	if (unlikely(pattern->is_6)) {
		sum = twin_sum_bytes(sum, &((const struct ipv6hdr *)ip)->saddr, 32);
	} else {
		const u16 *half = (const u16 *)ip;

		pattern->id = ntohs(half[2]);
		/* Less the length, the number and the sum itself: ~ is minus (RFC 1071, 2 C). */
		pattern->ip_sum = twin_sum_fold(twin_sum_bytes((u64)(u16)~half[1] + (u16)~half[2] + (u16)~half[5],
							      ip, (*ip & 15) * 4));
		sum += (u64)((const u32 *)ip)[3] + ((const u32 *)ip)[4];
	}
	pattern->pseudo = twin_sum_fold(sum);
	pattern->seq = ntohl(((const u32 *)tcp)[1]);
	pattern->flags = ((const u16 *)tcp)[TCP_FLAGS / 2];
	sum = pattern->pseudo + (u64)(u16)~pattern->flags + (u16)~((const u16 *)tcp)[8] +
	      (u32)~((const u32 *)tcp)[1];
	pattern->tcp_sum = twin_sum_fold(twin_sum_bytes(sum, tcp, (tcp[TCP_FLAGS] >> 4) * 4));
}

/* The headers as in the whole: 54 bytes without options or tags, 66 with a time stamp. */
static __always_inline void copy_pattern(u64 *to, const struct pattern *pattern, u32 headers)
{
	u32 i;

#pragma GCC unroll 7
	for (i = 0; i < 7; i++)
		to[i] = pattern->word[i];
	if (headers <= 56)
		return;
	to[7] = pattern->word[7];
	to[8] = pattern->word[8];
	if (headers <= 72)
		return;
#pragma GCC unroll 7
	for (i = 9; i < ARRAY_SIZE(pattern->word); i++)
		to[i] = pattern->word[i];
}

static __always_inline void write_tcp(u8 *tcp, u32 seq, u16 flags, u16 check)
{
	*(u32 *)(tcp + 4) = seq;
	*(u16 *)(tcp + TCP_FLAGS) = flags;
	*(u16 *)(tcp + 16) = check;
}

/*
 * What one segment has for itself in its headers, where IP begins at `network` and TCP at `transport`.
 * gathered: of the bytes behind them, to have the checksum; or TO_SUM: it has the pseudo header's sum.
 */
#define TO_SUM	(~0u)

static __always_inline void change_headers(u8 *data, const struct pattern *pattern, u32 network, u32 transport,
					   u32 bytes, u32 number, u32 from, bool is_last, u32 gathered)
{
	const u16 length = htons(bytes - network), id = htons(pattern->id + number);
	const u32 seq = htonl(pattern->seq + from);
	u16 flags = pattern->flags, check;
	u64 sum = htons(bytes - transport);

	if (!is_last)
		flags &= ~TCP_NOT_LAST;
	if (number)
		flags &= ~TCP_FIRST;
	if (gathered == TO_SUM) {
		check = twin_sum_fold(sum + pattern->pseudo);
	} else {
		check = ~twin_sum_fold(sum + pattern->tcp_sum + seq + flags + gathered);
		check = check ? check : 0xffff;
	}
	/* All in one block, for one translation. */
	if (likely(!pattern->is_6)) {
		*(u16 *)(data + network + 2) = length;
		*(u16 *)(data + network + 4) = id;
		*(u16 *)(data + network + 10) = ~twin_sum_fold((u64)pattern->ip_sum + length + id);
		write_tcp(data + transport, seq, flags, check);
	} else {
		*(u16 *)(data + network + 4) = htons(bytes - network - sizeof(struct ipv6hdr));
		write_tcp(data + transport, seq, flags, check);
	}
}

/* The tag that the device would insert, between addresses and type (IEEE 802.1Q, 9.3). */
static void insert_tag(struct sk_buff *part)
{
	u8 *from = part->data;
	u64 addresses = *(u64 *)from;
	u32 last = *(u32 *)(from + 8);

	part->data -= VLAN_HLEN;
	part->len += VLAN_HLEN;
	*(u64 *)part->data = addresses;
	*(u32 *)(part->data + 8) = last;
	*(__be16 *)(part->data + 12) = part->vlan_proto;
	*(__be16 *)(part->data + 14) = htons(skb_vlan_tag_get(part));
	part->mac_header -= VLAN_HLEN;
	part->mac_len += VLAN_HLEN;
	part->protocol = part->vlan_proto;
	__vlan_hwaccel_clear_tag(part);
}

/* What all parts say of themselves. */
struct description {
	struct net_device *dev;
	u64 cookie;		/* the whole's */
	struct hot_tag tag;
	__be16 protocol, vlan_proto;
	u16 mac_len, mac, network, transport, start, offset, vlan;
	u8 summed;
	bool tagged;
};

static __always_inline void read_description(struct description *all, struct sk_buff *whole, u32 needs)
{
	all->dev = whole->dev;
	all->protocol = whole->protocol;
	all->mac_len = whole->mac_len;
	/* All are from the buffer's head on, and the room before the packet is the same. */
	all->mac = whole->mac_header;
	all->network = whole->network_header;
	all->transport = whole->transport_header;
	all->summed = needs & HOT_DO_SUM ? CHECKSUM_NONE : whole->ip_summed;
	all->start = whole->csum_start;
	all->offset = whole->csum_offset;
	all->tagged = skb_vlan_tag_present(whole);
	all->vlan_proto = whole->vlan_proto;
	all->vlan = skb_vlan_tag_get(whole);
	all->tag = *hot_skb_tag(whole);
	all->cookie = all->tag.cookie;
	all->tag.cookie = (unsigned long)whole;
	all->tag.flags = HOT_TAG_GUEST_PAGES | HOT_TAG_PART;
}

/* The part is one of the whole's, which stays until it is freed. */
static __always_inline void describe(struct sk_buff *part, const struct description *all)
{
	part->dev = all->dev;
	part->protocol = all->protocol;
	part->mac_len = all->mac_len;
	part->mac_header = all->mac;
	part->network_header = all->network;
	part->transport_header = all->transport;
	part->ip_summed = all->summed;
	part->csum_start = all->start;
	part->csum_offset = all->offset;
	if (unlikely(all->tagged))
		__vlan_hwaccel_put_tag(part, all->vlan_proto, all->vlan);
	*hot_skb_tag(part) = all->tag;
}

static __always_inline void append(struct sk_buff *part, const void *bytes, u32 length)
{
	memcpy(skb_tail_pointer(part), bytes, length);
	part->tail += length;
	part->len += length;
}

/* The part of a span that is in the whole's linear part. */
static __always_inline u32 linear_of(const struct hot_cut *cut, struct span span)
{
	return span.from < cut->inside ? min(cut->inside - span.from, span.length) : 0;
}

/* All that parts of one packet have in common. */
struct common {
	struct hot_cut cut;
	struct description description;
	struct pattern pattern;		/* if there are several */
};

/* Which bytes of the payload a part has. */
static __always_inline struct span span_of(const struct hot_cut *cut, u32 number)
{
	const u32 from = number * cut->size;

	return (struct span){ .from = from, .length = min(cut->size, cut->payload - from) };
}

/* A segment's headers, when the rest is there. */
static __always_inline void finish_segment(u8 *data, const struct common *all, u32 number, struct span span,
					   u32 gathered)
{
	const struct pattern *pattern = &all->pattern;
	const u32 bytes = all->cut.headers + span.length;
	const bool is_last = span.from + span.length == all->cut.payload;

	/* With numbers that the compiler knows all of it is at one address. */
	if (likely(pattern->network == ETH_HLEN && pattern->transport == ETH_HLEN + sizeof(struct iphdr)))
		change_headers(data, pattern, ETH_HLEN, ETH_HLEN + sizeof(struct iphdr), bytes, number, span.from,
			       is_last, gathered);
	else
		change_headers(data, pattern, pattern->network, pattern->transport, bytes, number, span.from, is_last,
			       gathered);
}

/* Which parts are made at once, and what is the same of them. */
struct batch {
	u32 number;		/* of the first */
	u32 most;
	u32 linear;		/* bytes of the payload that are in the whole's linear part */
	u32 needs;
	u32 bytes;		/* that are in its fragments, of all that are begun */
	bool is_alone;		/* one, of which the host needs to sum nothing: no list is made for it */
	u64 place;		/* its, then */
};

/* As many as the host fills at once, because a call of it costs as much as a part's bytes do; if it has nothing to
 * fill, one. */
static __always_inline void plan_batch(struct batch *batch, const struct hot_cut *cut, u32 number)
{
	const struct span span = span_of(cut, number);

	batch->number = number;
	batch->most = 1;
	/* Only the first part has any, for these are fewer than a segment's. */
	batch->linear = linear_of(cut, span);
	batch->needs = cut->needs;
	batch->bytes = 0;
	if (cut->gso && cut->needs & HOT_DO_GATHER && !batch->linear)
		batch->most = min_t(u32, cut->parts - number, HOT_GATHERS);
	/* It is going to be padded, which pages cannot be. */
	if (cut->headers + span.length < ETH_ZLEN)
		batch->needs |= HOT_DO_GATHER;
	batch->is_alone = batch->most == 1 && !(batch->needs & HOT_DO_SUM);
}

/*
 * A part but for the bytes that the host copies, for which there is room at its end, and what is computed from
 * them. It has one of the references to the whole that the caller has. *place: where those bytes are to be. NULL:
 * there is no buffer.
 */
static __always_inline struct sk_buff *begin_part(struct hot_kept_list *kept, struct sk_buff *whole,
						  const struct common *all, const struct batch *batch, struct span span,
						  u64 *place)
{
	const struct hot_cut *cut = &all->cut;
	struct sk_buff *part = hot_kept_next(kept);
	u8 *data;

	if (unlikely(!part))
		return NULL;
	data = part->data;
	*place = (unsigned long)data + cut->headers + batch->linear;
	describe(part, &all->description);
	if (cut->gso) {
		copy_pattern((u64 *)data, &all->pattern, cut->headers);
		part->tail += cut->headers;
		part->len = cut->headers;
	} else {
		append(part, whole->data, cut->headers);
	}
	if (unlikely(batch->linear))
		append(part, whole->data + cut->headers + span.from, batch->linear);
	span.from += batch->linear - cut->inside;
	span.length -= batch->linear;
	if (batch->needs & HOT_DO_GATHER) {
		part->tail += span.length;
		part->len += span.length;
	} else if (span.length) {
		share_fragments(part, whole, span);
	}
	return part;
}

/* Begins the batch's parts, linked by skb->next; gives the first, and *count, how many there were buffers for. */
static __always_inline struct sk_buff *begin_parts(struct batch *batch, struct sk_buff *whole,
						   const struct common *all, u32 *count)
{
	const struct hot_cut *cut = &all->cut;
	struct sk_buff *part, *first = NULL, *last = NULL, *next = NULL;
	struct span span = span_of(cut, batch->number);
	struct hot_kept_list kept;
	u64 place;
	u32 n;

	hot_kept_take(&kept, cut->headers + (batch->needs & HOT_DO_GATHER ? span.length : batch->linear));
	for (n = 0; n < batch->most; n++, last = part) {
		span = span_of(cut, batch->number + n);
		part = begin_part(&kept, whole, all, batch, span, &place);
		if (unlikely(!part))
			break;
		if (batch->is_alone)
			batch->place = place;
		else
			hot_waits.place[n] = place;
		batch->bytes += span.length - batch->linear;
		/* One that was kept is linked to the next that was kept already. */
		if (unlikely(part != next)) {
			if (n)
				last->next = part;
			else
				first = part;
		}
		next = kept.first;
	}
	hot_kept_give_back(&kept);
	*count = n;
	return first;
}

/* The rest of it. gathered: the sum of what the host copied. */
static __always_inline void end_part(struct sk_buff *part, u8 *data, const struct common *all, u32 number,
				     const struct batch *batch, u32 gathered)
{
	const struct hot_cut *cut = &all->cut;

	/* Of a segment's sum most is known, if all that is linear is its headers. */
	if (likely(cut->gso))
		finish_segment(data, all, number, span_of(cut, number),
			       batch->needs & HOT_DO_SUM && !batch->linear ? gathered : TO_SUM);
	if (batch->needs & HOT_DO_SUM && (batch->linear || !cut->gso))
		sum(part, cut->headers + batch->linear, gathered);
	if (batch->needs & HOT_DO_TAG)
		insert_tag(part);
}

/* None of these is made after all: the caller still has their references to the whole. */
static noinline void drop_parts(struct sk_buff *whole, struct sk_buff *part, u32 count)
{
	struct sk_buff *next;

	atomic_add(count, &whole->users.refs);
	for (; count; count--, part = next) {
		next = part->next;
		part->next = NULL;
		hot_skb_free(part);
	}
}

/*
 * Parts that are made, in order, and that the driver has not got: linked by skb->next. Of the whole there is a
 * reference for each.
 */
struct made {
	struct sk_buff *first;
	u32 count;
};

/* Has the host fill what the batch's parts lack; whether it has the packet. Counts what it filled. */
static __always_inline bool fill_parts(const struct batch *batch, struct sk_buff *whole, const struct common *all,
				       u32 count, u32 *copies)
{
	const struct hot_cut *cut = &all->cut;
	void *to = hot_waits.place;
	u32 each = cut->size;

	if (!batch->bytes) {
		hot_waits.place[0] = 0;		/* the sum of nothing */
		return true;
	}
	if (!(batch->needs & HOT_DO_GATHER))
		return true;
	*copies += count;
	if (batch->is_alone) {
		to = (void *)(unsigned long)batch->place;
		each = 0;
	} else if (count == 1) {
		each = batch->bytes;
	}
	return host_gather(to, all->description.cookie, batch->number * cut->size + batch->linear - cut->inside,
			   batch->bytes, each, whole);
}

/*
 * Makes parts from that number on, behind one at most, and gives how many; if none, *why: HOT_NO_BUFFER, or
 * HOT_INVALID if the host does not have the packet.
 */
static __always_inline u32 make_parts(struct made *made, struct sk_buff *whole, u32 number, const struct common *all,
				      u32 *copies, u32 *why)
{
	struct sk_buff *part, *next;
	struct batch batch;
	u32 count, n;

	plan_batch(&batch, &all->cut, number);
	part = begin_parts(&batch, whole, all, &count);
	*why = HOT_NO_BUFFER;
	if (unlikely(!count))
		return 0;
	*why = HOT_INVALID;
	if (unlikely(!fill_parts(&batch, whole, all, count, copies))) {
		drop_parts(whole, part, count);
		return 0;
	}
	*why = HOT_SENT;
	if (made->count)
		made->first->next = part;
	else
		made->first = part;
	made->count += count;
	if (batch.is_alone && !all->cut.gso && !(batch.needs & HOT_DO_TAG))
		return count;		/* nothing is computed */
	for (n = 0; n < count; n++, part = next) {
		u8 *data = part->data;

		next = part->next;
		end_part(part, data, all, number + n, &batch, hot_waits.place[n] & 0xffff);
	}
	return count;
}

/* ---- Sending ---------------------------------------------------------------- */

/* How the driver is given packets, for as long as the queue's lock is held. */
struct road {
	netdev_tx_t (*give)(struct sk_buff *skb, struct net_device *dev);
	struct net_device *dev;
	u32 more;		/* what it was told last; 2: nothing */
	u32 given;
};

/* Gives the first one; whether the driver took it. */
static __always_inline bool give_first(struct road *road, struct made *made)
{
	struct sk_buff *part = made->first, *next = part->next;
	const bool more = made->count > 1;

	part->next = NULL;
	if (road->more != more)
		__this_cpu_write(softnet_data.xmit.more, more);
	road->more = more;
	if (unlikely(!dev_xmit_complete(road->give(part, road->dev)))) {
		part->next = next;
		return false;
	}
	made->first = next;
	made->count--;
	road->given++;
	return true;
}

/* The parts that were not taken the last time, unless the device can less now. */
static __always_inline struct made take_made(const struct net_device *dev)
{
	const struct made made = { .first = hot_waits.made, .count = hot_waits.made_count };

	if (likely(!made.count))
		return made;
	if (unlikely(hot_waits.features != dev->features)) {
		hot_transmit_drop_made();
		return (struct made){ .first = NULL };
	}
	hot_waits.made = NULL;
	hot_waits.made_count = 0;
	return made;
}

/* What a packet's parts have in common. */
static __always_inline void read_common(struct common *all, struct sk_buff *whole)
{
	hot_offload_cut(whole, &all->cut);
	if (unlikely(hot_waits.acks))
		all->cut.parts = hot_waits.acks + 1;
	read_description(&all->description, whole, all->cut.needs);
	if (all->cut.gso)
		read_pattern(&all->pattern, whole);
}

static void count_given(struct netdev_queue *txq, u32 given, u32 copies)
{
	const u32 cpu = hot_cpu_id();

	if (given)
		txq_trans_update(txq);
	hot_count_on(cpu, HOT_COUNT_PARTS, given);
	hot_count_on(cpu, HOT_COUNT_GATHERED, copies);
}

/*
 * As in a batch, one part at least is built ahead: who says "more" has it. Those that the driver did not take
 * stay for the next time, and none is made for a queue that stands. A packet that the host does not know any
 * more ends there.
 */
__attribute__((no_stack_protector))	/* no index into what it has there is another's */
bool hot_offload_rest(struct netdev_queue *txq)
{
	struct sk_buff *whole = hot_waits.whole;
	struct common all __attribute__((uninitialized));	/* read_common() fills it */
	u32 number, copies = 0, why = HOT_SENT;
	struct road road;
	struct made made;

	if (!whole)
		return true;
	if (netif_xmit_frozen_or_stopped(txq))
		return false;
	road = (struct road){ .give = whole->dev->netdev_ops->ndo_start_xmit, .dev = whole->dev, .more = 2 };
	made = take_made(road.dev);
	read_common(&all, whole);
	number = hot_waits.next + made.count;
	/* A reference for each part that is to come: those that did not are given back. */
	atomic_add(all.cut.parts - number, &whole->users.refs);
	do {
		while (made.count < 2 && number < all.cut.parts && why == HOT_SENT) {
			if (unlikely(hot_waits.acks))
				hot_acks_number(whole, number);
			number += make_parts(&made, whole, hot_waits.acks ? 0 : number, &all, &copies, &why);
		}
	} while (made.count && give_first(&road, &made) && !netif_xmit_frozen_or_stopped(txq));
	atomic_sub(all.cut.parts - number, &whole->users.refs);
	hot_waits.next += road.given;
	count_given(txq, road.given, copies);
	if (made.count) {
		hot_waits.made = made.first;
		hot_waits.made_count = made.count;
		hot_waits.features = road.dev->features;
		return false;
	}
	if (number < all.cut.parts && why != HOT_INVALID)
		return false;
	hot_transmit_end_wait();
	return true;
}
