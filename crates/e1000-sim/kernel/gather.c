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

#include "shim.h"

#define GATHER_UNKNOWN (~0u)

u32 host_gather(void *to, u64 cookie, u32 offset, u32 length, const struct sk_buff *whole);

/* The sum of 16-bit words, carries added (RFC 1071). */
static u32 sum_of(const u8 *bytes, u32 length)
{
	u64 sum = 0, word;

	for (; length >= sizeof(word); length -= sizeof(word), bytes += sizeof(word)) {
		word = *(const u64 *)bytes;
		sum += word;
		sum += sum < word;
	}
	for (word = 0; length; length--)
		word = word << 8 | bytes[length - 1];
	sum += word;
	sum += sum < word;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

u32 host_gather(void *to, u64 cookie, u32 offset, u32 length, const struct sk_buff *whole)
{
	const struct skb_shared_info *info = skb_shinfo(whole);
	u32 i, done = 0;

	for (i = 0; i < info->nr_frags && done < length; i++) {
		const skb_frag_t *fragment = &info->frags[i];
		u64 machine = page_to_phys(skb_frag_page(fragment)) + skb_frag_off(fragment);
		u32 size = skb_frag_size(fragment), part;

		if (offset >= size) {
			offset -= size;
			continue;
		}
		part = min(size - offset, length - done);
		if (!host_guest_read(to + done, machine + offset, part))
			return GATHER_UNKNOWN;
		done += part;
		offset = 0;
	}
	return done == length ? sum_of(to, length) : GATHER_UNKNOWN;
}
