// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The checksum of the IPv6 pseudo-header, which drivers seed segmentation
 * with (RFC 8200, 8.1).
 */
#include "internal.h"
#include <linux/in6.h>
#include <net/checksum.h>
#include <net/ip6_checksum.h>

__sum16 csum_ipv6_magic(const struct in6_addr *saddr, const struct in6_addr *daddr,
			__u32 len, __u8 proto, __wsum csum)
{
	/* Ten 32-bit words: their sum and its carries fit 64 bits. */
	u64 sum = (__force u32)csum;
	u32 i;

	for (i = 0; i < 4; i++)
		sum += (u64)(__force u32)saddr->s6_addr32[i] + (__force u32)daddr->s6_addr32[i];
	sum += (__force u32)htonl(len);
	sum += (__force u32)htonl(proto);
	return (__force __sum16)~twin_sum_fold(sum);
}
