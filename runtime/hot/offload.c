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

u32 hot_offload_needs(const struct sk_buff *whole)
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

/* Bytes before the payload, which every part begins with. */
static u32 headers_of(const struct sk_buff *whole)
{
	u32 headers = skb_is_gso(whole) ? skb_tcp_all_headers(whole) : skb_headlen(whole);

	return min(headers, skb_headlen(whole));
}

/* Payload bytes of every part but the last. */
static u32 size_of_part(const struct sk_buff *whole)
{
	return skb_is_gso(whole) ? skb_shinfo(whole)->gso_size : whole->data_len;
}

u32 hot_offload_parts(const struct sk_buff *whole)
{
	return skb_is_gso(whole) ? DIV_ROUND_UP(whole->len - headers_of(whole), size_of_part(whole)) : 1;
}

bool hot_offload_fits(const struct sk_buff *whole)
{
	return !(hot_offload_needs(whole) & HOT_DO_GATHER) ||
	       HOT_TX_ROOM(headers_of(whole) + size_of_part(whole)) <= PAGE_SIZE;
}

/* ---- Checksums (RFC 1071) -------------------------------------------------- */

/* The sum of the pseudo header of TCP with so many bytes (RFC 9293, 3.1; RFC 8200, 8.1). */
static u32 pseudo_sum(const struct sk_buff *part, u32 length)
{
	const u8 *addresses = (const u8 *)&ip_hdr(part)->saddr;
	u32 bytes = 8;

	if (ip_hdr(part)->version == 6) {
		addresses = (const u8 *)&ipv6_hdr(part)->saddr;
		bytes = 32;
	}
	return twin_sum_fold(twin_sum_bytes(htons(length) + htons(IPPROTO_TCP), addresses, bytes));
}

/* Computes what the device would have: gathered is the sum of the bytes behind linear ones. */
static void sum(struct sk_buff *part, u32 linear, u32 gathered)
{
	const u32 start = skb_checksum_start_offset(part);
	u16 *check = (u16 *)(part->data + start + part->csum_offset);
	u32 total;

	/* From an odd place on the words' bytes are the other way round. */
	gathered = (linear - start) & 1 ? swab16(gathered) : gathered;
	total = ~twin_sum_fold(twin_sum_bytes(gathered, part->data + start, linear - start)) & 0xffff;
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
	struct tcphdr *tcp = tcp_hdr(part);
	u32 network = bytes - skb_network_offset(part);

	if (ip_hdr(part)->version == 4) {
		struct iphdr *ip = ip_hdr(part);

		ip->tot_len = htons(network);
		ip->id = htons(ntohs(ip->id) + number);
		ip->check = 0;
		ip->check = ~twin_sum_fold(twin_sum_bytes(0, ip, ip->ihl * 4));
	} else {
		ipv6_hdr(part)->payload_len = htons(network - sizeof(struct ipv6hdr));
	}
	tcp->seq = htonl(ntohl(tcp->seq) + from);
	if (!is_last)
		tcp->fin = tcp->psh = 0;
	if (number)
		tcp->cwr = 0;
	tcp->check = pseudo_sum(part, bytes - skb_transport_offset(part));
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
	part->dev = whole->dev;
	part->protocol = whole->protocol;
	part->mac_len = whole->mac_len;
	/* All are from the buffer's head on, and the room before the packet is the same. */
	part->mac_header = whole->mac_header;
	part->network_header = whole->network_header;
	part->transport_header = whole->transport_header;
	part->ip_summed = whole->ip_summed;
	part->csum_start = whole->csum_start;
	part->csum_offset = whole->csum_offset;
	if (skb_vlan_tag_present(whole))
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

	*tag = *hot_skb_tag(whole);
	tag->cookie = (unsigned long)whole;
	tag->flags = HOT_TAG_GUEST_PAGES | HOT_TAG_PART;
	atomic_inc(&whole->users.refs);
}

/* The part of a span that is in the whole's linear part. */
static u32 linear_of(const struct sk_buff *whole, struct span span)
{
	const u32 inside = skb_headlen(whole) - headers_of(whole);

	return span.from < inside ? min(inside - span.from, span.length) : 0;
}

/*
 * Appends the headers, and a span of the payload. Gives the sum of what the host copied, behind the
 * linear bytes; above 0xffff: it does not know the packet.
 */
static u32 copy_span(struct sk_buff *part, struct sk_buff *whole, u32 needs, struct span span)
{
	const u32 headers = headers_of(whole), linear = linear_of(whole, span);
	u32 gathered;

	append(part, whole->data, headers);
	append(part, whole->data + headers + span.from, linear);
	span.from += linear - (skb_headlen(whole) - headers);
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

struct sk_buff *hot_offload_part(struct sk_buff *whole, u32 number)
{
	const u32 headers = headers_of(whole), payload = whole->len - headers;
	u32 needs = hot_offload_needs(whole), linear, gathered;
	struct span span = { .from = number * size_of_part(whole) };
	struct sk_buff *part;

	span.length = min(size_of_part(whole), payload - span.from);
	linear = headers + linear_of(whole, span);
	/* It is going to be padded, which pages cannot be. */
	if (headers + span.length < ETH_ZLEN)
		needs |= HOT_DO_GATHER;
	part = empty(needs & HOT_DO_GATHER ? headers + span.length : linear);
	if (unlikely(!part))
		return HOT_NOT(HOT_NO_BUFFER);
	tie(part, whole);
	copy_description(part, whole);
	gathered = copy_span(part, whole, needs, span);
	if (unlikely(gathered > 0xffff)) {
		hot_skb_free(part);
		return HOT_NOT(HOT_INVALID);
	}
	if (skb_is_gso(whole))
		change_headers(part, headers + span.length, number, span.from,
			       span.from + span.length == payload);
	if (needs & HOT_DO_SUM)
		sum(part, linear, gathered);
	if (needs & HOT_DO_TAG)
		insert_tag(part);
	return part;
}
