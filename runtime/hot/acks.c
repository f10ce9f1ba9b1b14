// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Acknowledgements by template (Menon's thesis, 3.5): whoever got an aggregate of segments has to
 * send an acknowledgement for every second of them. They differ in one number, so the sender gives
 * one packet and the further numbers, and the packets are made here, before the driver.
 *
 *   request  | header: Ethernet, IPv4, TCP | ack[0], ack[1], ... |
 *   packets  the header as it is; with ack[0]; with ack[1]; ...
 *
 * The header is in our copy before it is looked at, and each number is read once. Only a packet of
 * which nothing else could depend on the number is a template: no payload, no other flag, no option
 * but a time stamp, which is the same for all of them. The TCP checksum is the device's, or
 * offload.c's where it has none. The IP header is the same in all: with DF its number means
 * nothing (RFC 6864, 4.1).
 */
#include "internal.h"
#include <linux/ip.h>
#include <linux/tcp.h>

#define DONT_FRAGMENT	0x4000	/* of the field with the fragment offset (RFC 791, 3.1) */
#define STAMP_WORDS	3	/* two NOPs and the option (RFC 7323, appendix A) */
#define STAMP_BEGIN	0x0101080a
#define ONLY_ACK	0x10	/* of the byte with TCP's flags (RFC 9293, 3.1) */
#define FLAGS		13
#define RESERVED	12	/* its low half */

/* IPv4 without options, whole, behind a header of Ethernet's alone. */
static bool is_plain_ip(const struct sk_buff *whole)
{
	const struct iphdr *ip = ip_hdr(whole);

	return whole->protocol == htons(ETH_P_IP) && skb_network_offset(whole) == ETH_HLEN &&
	       skb_headlen(whole) >= ETH_HLEN + sizeof(*ip) + sizeof(struct tcphdr) &&
	       ip->version == 4 && ip->ihl == 5 && ip->protocol == IPPROTO_TCP &&
	       ip->frag_off == htons(DONT_FRAGMENT) &&
	       ntohs(ip->tot_len) == skb_headlen(whole) - ETH_HLEN;
}

/* An acknowledgement and nothing else: all of the packet is its header. */
static bool is_plain_ack(const struct sk_buff *whole)
{
	const u32 start = ETH_HLEN + sizeof(struct iphdr);
	const u8 *bytes = whole->data + start;
	const struct tcphdr *tcp = (const struct tcphdr *)bytes;
	const u32 words = tcp->doff - sizeof(*tcp) / 4;

	if (start + tcp->doff * 4 != skb_headlen(whole))
		return false;
	if (words && (words != STAMP_WORDS || *(const __be32 *)(tcp + 1) != htonl(STAMP_BEGIN)))
		return false;
	return bytes[FLAGS] == ONLY_ACK && !(bytes[RESERVED] & 0xf) && !tcp->urg_ptr;
}

static bool is_template(const struct sk_buff *whole)
{
	return !whole->data_len && !skb_is_gso(whole) && !skb_vlan_tag_present(whole) &&
	       whole->ip_summed == CHECKSUM_PARTIAL && is_plain_ip(whole) &&
	       skb_checksum_start_offset(whole) == ETH_HLEN + sizeof(struct iphdr) &&
	       whole->csum_offset == offsetof(struct tcphdr, check) && is_plain_ack(whole);
}

bool hot_acks_read(const struct sk_buff *whole, const struct hot_tx_request *request)
{
	const u32 count = READ_ONCE(request->acks);
	u32 i, last;

	if (!count || count > HOT_ACKS || !is_template(whole))
		return false;
	last = ntohl(tcp_hdr(whole)->ack_seq);
	hot_waits.ack[0] = last;
	for (i = 0; i < count; i++) {
		const u32 ack = READ_ONCE(request->ack[i]);

		/* Each is after the one before it (RFC 9293, 3.4). */
		if ((s32)(ack - last) <= 0)
			return false;
		last = ack;
		hot_waits.ack[i + 1] = ack;
	}
	hot_waits.acks = count;
	return true;
}

void hot_acks_number(struct sk_buff *whole, u32 number)
{
	tcp_hdr(whole)->ack_seq = htonl(hot_waits.ack[min_t(u32, number, HOT_ACKS)]);
}
