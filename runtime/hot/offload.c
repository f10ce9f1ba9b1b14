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
 * the host copies them where there may be no fragments, and adds them up (host_gather).
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

/* The sum of the pseudo header of TCP with so many bytes (RFC 9293, 3.1; RFC 8200, 8.1). */
static __always_inline u32 pseudo_sum(const void *ip, bool is_6, u32 length)
{
	const u64 sum = htons(length) + htons(IPPROTO_TCP);

	if (unlikely(is_6))
		return twin_sum_fold(twin_sum_bytes(sum, &((const struct ipv6hdr *)ip)->saddr, 32));
	return twin_sum_fold(sum + ((const u32 *)ip)[3] + ((const u32 *)ip)[4]);
}

/* Computes what the device would have: gathered is the sum of the bytes behind linear ones. */
static void sum(struct sk_buff *part, u32 linear, u32 gathered)
{
	const u32 start = skb_checksum_start_offset(part);
	u16 *check = (u16 *)(part->data + start + part->csum_offset);
	u32 total;

	/* From an odd place on the words' bytes are the other way round. */
	gathered = (linear - start) & 1 ? swab16(gathered) : gathered;
	total = ~twin_sum_fold(add_header(gathered, part->data + start, linear - start)) & 0xffff;
	*check = total ? total : 0xffff;	/* 0 is none (RFC 768), and the same number */
	part->ip_summed = CHECKSUM_NONE;
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

/* What one segment of several has in its headers (RFC 9293, 3.1; RFC 3168, 6.1.2). */
static void change_headers(struct sk_buff *part, u32 bytes, u32 number, u32 from, bool is_last)
{
	const u32 network = bytes - skb_network_offset(part);
	const u32 transport = bytes - skb_transport_offset(part);
	struct tcphdr *tcp = tcp_hdr(part);
	struct iphdr *ip = ip_hdr(part);
	const bool is_6 = ip->version == 6;
	u32 check;

	if (likely(!is_6)) {
		ip->tot_len = htons(network);
		ip->id = htons(ntohs(ip->id) + number);
		ip->check = 0;
		ip->check = ~twin_sum_fold(add_header(0, ip, ip->ihl * 4));
	} else {
		ipv6_hdr(part)->payload_len = htons(network - sizeof(struct ipv6hdr));
	}
	check = pseudo_sum(ip, is_6, transport);
	tcp->seq = htonl(ntohl(tcp->seq) + from);
	if (!is_last)
		tcp->fin = tcp->psh = 0;
	if (number)
		tcp->cwr = 0;
	tcp->check = check;
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

static void copy_description(struct sk_buff *part, const struct sk_buff *whole)
{
	struct net_device *dev = whole->dev;
	const __be16 protocol = whole->protocol;
	const u16 mac_len = whole->mac_len, mac = whole->mac_header, network = whole->network_header;
	const u16 transport = whole->transport_header, start = whole->csum_start;
	const u16 offset = whole->csum_offset;
	const u8 summed = whole->ip_summed;
	const bool tagged = skb_vlan_tag_present(whole);

	/* All is read before it is written: each other pointer is translated anew. */
	barrier();
	part->dev = dev;
	part->protocol = protocol;
	part->mac_len = mac_len;
	/* All are from the buffer's head on, and the room before the packet is the same. */
	part->mac_header = mac;
	part->network_header = network;
	part->transport_header = transport;
	part->ip_summed = summed;
	part->csum_start = start;
	part->csum_offset = offset;
	if (unlikely(tagged))
		__vlan_hwaccel_put_tag(part, whole->vlan_proto, skb_vlan_tag_get(whole));
}

/* An empty sk_buff with room for a packet of so many linear bytes; NULL. */
static struct sk_buff *empty(u32 linear)
{
	const u32 room = max_t(u32, HOT_TX_ROOM(linear), HOT_TX_BUFFER);
	void *buffer = hot_buffer_get(room);
	struct sk_buff *part;

	if (unlikely(!buffer))
		return NULL;
	part = hot_skb_build(buffer, room);
	if (unlikely(!part)) {
		hot_buffer_put(buffer);
		return NULL;
	}
	skb_reserve(part, HOT_HEADROOM);
	return part;
}

static void append(struct sk_buff *part, const void *bytes, u32 length)
{
	memcpy(skb_tail_pointer(part), bytes, length);
	part->tail += length;
	part->len += length;
}

/* The part is one of the whole's, which stays until it is freed. */
static void tie(struct sk_buff *part, struct sk_buff *whole)
{
	struct hot_tag *tag = hot_skb_tag(part);
	const struct hot_tag of = *hot_skb_tag(whole);

	*tag = of;
	tag->cookie = (unsigned long)whole;
	tag->flags = HOT_TAG_GUEST_PAGES | HOT_TAG_PART;
	atomic_inc(&whole->users.refs);
}

/* The part of a span that is in the whole's linear part. */
static u32 linear_of(const struct hot_cut *cut, struct span span)
{
	return span.from < cut->inside ? min(cut->inside - span.from, span.length) : 0;
}

/*
 * Appends the headers, and a span of the payload. Gives the sum of what the host copied, behind the
 * linear bytes; above 0xffff: it does not know the packet.
 */
static __always_inline u32 copy_span(struct sk_buff *part, struct sk_buff *whole, const struct hot_cut *cut,
				     u32 needs, struct span span)
{
	const u32 linear = linear_of(cut, span);
	u32 gathered;

	append(part, whole->data, cut->headers);
	if (linear)
		append(part, whole->data + cut->headers + span.from, linear);
	span.from += linear - cut->inside;
	span.length -= linear;
	if (!span.length)
		return 0;
	if (!(needs & HOT_DO_GATHER)) {
		share_fragments(part, whole, span);
		return 0;
	}
	gathered = host_gather(skb_tail_pointer(part), hot_skb_tag(whole)->cookie, span.from,
			       span.length, whole);
	part->tail += span.length;
	part->len += span.length;
	hot_count(HOT_COUNT_GATHERED);
	return gathered;
}

struct sk_buff *hot_offload_part(struct sk_buff *whole, u32 number, const struct hot_cut *cut)
{
	struct span span = { .from = number * cut->size };
	u32 needs = cut->needs, linear, gathered;
	struct sk_buff *part;

	span.length = min(cut->size, cut->payload - span.from);
	linear = cut->headers + linear_of(cut, span);
	/* It is going to be padded, which pages cannot be. */
	if (cut->headers + span.length < ETH_ZLEN)
		needs |= HOT_DO_GATHER;
	part = empty(needs & HOT_DO_GATHER ? cut->headers + span.length : linear);
	if (unlikely(!part))
		return HOT_NOT(HOT_NO_BUFFER);
	tie(part, whole);
	copy_description(part, whole);
	gathered = copy_span(part, whole, cut, needs, span);
	if (unlikely(gathered > 0xffff)) {
		hot_skb_free(part);
		return HOT_NOT(HOT_INVALID);
	}
	if (cut->gso)
		change_headers(part, cut->headers + span.length, number, span.from,
			       span.from + span.length == cut->payload);
	if (needs & HOT_DO_SUM)
		sum(part, linear, gathered);
	if (needs & HOT_DO_TAG)
		insert_tag(part);
	return part;
}
