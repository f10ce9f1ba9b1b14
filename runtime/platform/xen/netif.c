// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets in a transmit ring. Every number is a guest's and may be anything.
 */
#include "netif.h"

/* ---- Entries ---------------------------------------------------------------- */

static bool is_piece(const struct netif_piece *piece)
{
	return piece->size && piece->size <= NETIF_GRANT_SIZE &&
	       piece->offset <= NETIF_GRANT_SIZE - piece->size;
}

static void take(struct netif_packet *packet, const struct netif_tx_request *entry)
{
	packet->piece[packet->pieces++] = (struct netif_piece){
		.reference = entry->reference,
		.offset = entry->offset,
		.size = entry->size,
		.id = entry->id,
	};
}

/* One of the kind that was offered, and no other after it. */
static bool take_extra(struct netif_packet *packet, const struct netif_tx_request *entry)
{
	struct netif_extra extra;

	__builtin_memcpy(&extra, entry, sizeof(extra));
	packet->gso_size = extra.gso_size;
	packet->gso_type = extra.gso_type;
	return extra.type == NETIF_EXTRA_GSO && !(extra.flags & NETIF_EXTRA_MORE) &&
	       extra.gso_type == NETIF_GSO_TCPV4 && extra.gso_size;
}

/* The first entry has the size of all: what is left of it is its own piece's. */
static bool settle_sizes(struct netif_packet *packet)
{
	uint32_t i, others = 0;

	for (i = 1; i < packet->pieces; i++)
		others += packet->piece[i].size;
	if (packet->size < NETIF_SMALLEST || others >= packet->size)
		return false;
	packet->piece[0].size = packet->size - others;
	for (i = 0; i < packet->pieces; i++)
		if (!is_piece(&packet->piece[i]))
			return false;
	return true;
}

/* A packet in one entry, as most are. */
static enum netif_verdict parse_only(const struct netif_tx_request *entry,
				     struct netif_packet *packet)
{
	packet->size = entry->size;
	packet->flags = entry->flags;
	packet->pieces = 0;
	packet->entries = 1;
	packet->gso_size = 0;
	packet->gso_type = 0;
	take(packet, entry);
	return packet->size >= NETIF_SMALLEST && is_piece(&packet->piece[0]) ? NETIF_PACKET :
									       NETIF_MALFORMED;
}

/* One with others behind it. */
static __attribute__((noinline)) enum netif_verdict parse_several(const struct netif_tx_request *entries,
								  uint32_t available,
								  struct netif_packet *packet)
{
	uint32_t more;

	*packet = (struct netif_packet){
		.size = entries[0].size, .flags = entries[0].flags, .entries = 1,
	};
	take(packet, &entries[0]);
	if (packet->flags & NETTXF_EXTRA_INFO) {
		if (available < 2)
			return NETIF_INCOMPLETE;
		if (!take_extra(packet, &entries[packet->entries++]))
			return NETIF_EXTRA;
	}
	for (more = packet->flags & NETTXF_MORE_DATA; more;
	     more = entries[packet->entries++].flags & NETTXF_MORE_DATA) {
		if (packet->pieces == NETIF_PIECES)
			return NETIF_MALFORMED;
		if (packet->entries == available)
			return NETIF_INCOMPLETE;
		take(packet, &entries[packet->entries]);
	}
	return settle_sizes(packet) ? NETIF_PACKET : NETIF_MALFORMED;
}

enum netif_verdict netif_parse(const struct netif_tx_request *entries, uint32_t available,
			       struct netif_packet *packet)
{
	if (!available)
		return NETIF_INCOMPLETE;
	if (entries[0].flags & (NETTXF_EXTRA_INFO | NETTXF_MORE_DATA))
		return parse_several(entries, available, packet);
	return parse_only(&entries[0], packet);
}

/* ---- Checksums ----------------------------------------------------------------- */

enum { ETHERTYPE_IPV4 = 0x0800, ETHERTYPE_VLAN = 0x8100, ETHERTYPE_IPV6 = 0x86dd };
enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };
enum { TCP_CHECKSUM = 16, UDP_CHECKSUM = 6 };
enum { IPV4_HEADER = 20, IPV6_HEADER = 40, VLAN_TAG = 4 };

static uint32_t word_at(const uint8_t *bytes, uint32_t at)
{
	return (uint32_t)bytes[at] << 8 | bytes[at + 1];
}

/* Where the network header begins and what it is, after one tag at most. */
static uint32_t network(const uint8_t *header, uint32_t length, uint32_t *type)
{
	uint32_t at = NETIF_SMALLEST;

	if (length < at)
		return 0;
	*type = word_at(header, at - 2);
	if (*type != ETHERTYPE_VLAN)
		return at;
	at += VLAN_TAG;
	if (length < at)
		return 0;
	*type = word_at(header, at - 2);
	return at;
}

/* Where the transport header begins, or 0, and its protocol. */
static uint32_t transport(const uint8_t *header, uint32_t length, uint8_t *protocol)
{
	uint32_t type = 0, at = network(header, length, &type);

	if (!at)
		return 0;
	if (type == ETHERTYPE_IPV4 && length >= at + IPV4_HEADER) {
		const uint32_t words = header[at] & 15;

		*protocol = header[at + 9];
		return header[at] >> 4 == 4 && words >= 5 ? at + 4 * words : 0;
	}
	if (type == ETHERTYPE_IPV6 && length >= at + IPV6_HEADER) {
		*protocol = header[at + 6];
		return header[at] >> 4 == 6 ? at + IPV6_HEADER : 0;
	}
	return 0;
}

bool netif_checksum(const uint8_t *header, uint32_t length, uint16_t *start, uint16_t *offset)
{
	uint8_t protocol = 0;
	const uint32_t at = transport(header, length, &protocol);

	if (!at || (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP))
		return false;
	*start = at;
	*offset = protocol == PROTOCOL_TCP ? TCP_CHECKSUM : UDP_CHECKSUM;
	return at + *offset + 2 <= length;
}

/* ---- Large packets --------------------------------------------------------------- */

enum { TCP_HEADER = 20, TCP_OFFSET = 12 };

bool netif_can_segment(const struct netif_packet *packet, const uint8_t *header, uint32_t length)
{
	uint8_t protocol = 0;
	uint32_t type = 0, at = network(header, length, &type), words;

	if (!at || type != ETHERTYPE_IPV4 || !(packet->flags & NETTXF_CSUM_BLANK) ||
	    packet->gso_size < NETIF_SMALLEST_SEGMENT)
		return false;
	at = transport(header, length, &protocol);
	if (!at || protocol != PROTOCOL_TCP || at + TCP_HEADER > length)
		return false;
	words = header[at + TCP_OFFSET] >> 4;
	return 4 * words >= TCP_HEADER && at + 4 * words <= length && packet->size > at + 4 * words;
}

/* RFC 791, 3.1: total length, more fragments and offset. */
enum { IPV4_TOTAL = 2, IPV4_FRAGMENT = 6, IPV4_PLACE = 0x3fff };

bool netif_is_merged(const uint8_t *header, uint32_t here, uint32_t length, uint32_t size)
{
	const uint8_t *ip = header + NETIF_SMALLEST;
	uint8_t protocol = 0;
	uint32_t type = 0, at, end;

	if (network(header, here, &type) != NETIF_SMALLEST || type != ETHERTYPE_IPV4)
		return false;
	at = transport(header, here, &protocol);
	if (!at || protocol != PROTOCOL_TCP || at + TCP_HEADER > here)
		return false;
	end = at + 4 * (header[at + TCP_OFFSET] >> 4);
	return end >= at + TCP_HEADER && end <= here && here <= length && size &&
	       size < length - end &&
	       word_at(ip, IPV4_TOTAL) + NETIF_SMALLEST == length &&
	       !(word_at(ip, IPV4_FRAGMENT) & IPV4_PLACE);
}
