// SPDX-License-Identifier: GPL-2.0-only
/*
 * gather.c: what dom0's back end copies of a guest's packet for the hot routines, where the card
 * cannot gather pieces or compute checksums. The fragments are dom0's own: it built them from a
 * request that was checked.
 *
 * Context: any; no lock.
 */
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <twin/sum.h>

#include "shim.h"

u32 host_gather(void *to, u64 cookie, u32 offset, u32 bytes, u32 each, const struct sk_buff *whole);

/* The sum of 16-bit words, carries added (RFC 1071). */
static u32 sum_of(const u8 *bytes, u32 length)
{
	return twin_sum_fold(twin_sum_bytes(0, bytes, length));
}

/* Copies to one place from the fragments on, *offset behind the beginning of the first. */
static bool fill_place(u8 *to, const skb_frag_t **fragment, const skb_frag_t *end, u32 *offset, u32 length)
{
	u32 part;

	for (; length; length -= part, to += part) {
		u64 machine;

		for (; *fragment < end && *offset >= skb_frag_size(*fragment); ++*fragment)
			*offset -= skb_frag_size(*fragment);
		if (*fragment == end)
			return false;
		part = min(skb_frag_size(*fragment) - *offset, length);
		machine = page_to_phys(skb_frag_page(*fragment)) + skb_frag_off(*fragment);
		if (!host_guest_read(to, machine + *offset, part))
			return false;
		*offset += part;
	}
	return true;
}

u32 host_gather(void *to, u64 cookie, u32 offset, u32 bytes, u32 each, const struct sk_buff *whole)
{
	const skb_frag_t *fragment = skb_shinfo(whole)->frags, *end = fragment + skb_shinfo(whole)->nr_frags;
	u64 *list = to;
	u32 length;

	if (!each)
		return fill_place(to, &fragment, end, &offset, bytes);
	for (; bytes; bytes -= length, list++) {
		u8 *place = (u8 *)*list;

		length = min(bytes, each);
		if (!fill_place(place, &fragment, end, &offset, length))
			return 0;
		*list = sum_of(place, length);
	}
	return 1;
}
