/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The packets in a guest's transmit ring: what Xen's public header io/netif.h says of
 * them, taken from a copy of the ring's entries. Arithmetic only, so that the tests run
 * it on any machine.
 */
#ifndef TWIN_XEN_NETIF_H
#define TWIN_XEN_NETIF_H

#include <stdbool.h>
#include <stdint.h>

/* A ring of one page: 64 bytes of indices, then entries, as many as a power of two. */
#define NETIF_RING		256u
#define NETIF_RING_HEADER	64u
#define NETIF_GRANT_SIZE	4096u

/* Offsets of the indices. */
#define NETIF_REQUEST_PRODUCE	0u
#define NETIF_REQUEST_EVENT	4u
#define NETIF_RESPONSE_PRODUCE	8u
#define NETIF_RESPONSE_EVENT	12u

/* netif_tx_request.flags */
#define NETTXF_CSUM_BLANK	1u
#define NETTXF_DATA_VALIDATED	2u
#define NETTXF_MORE_DATA	4u
#define NETTXF_EXTRA_INFO	8u
/* netif_rx_response.flags */
#define NETRXF_DATA_VALIDATED	1u
#define NETRXF_CSUM_BLANK	2u
#define NETRXF_MORE_DATA	4u
#define NETRXF_EXTRA_INFO	8u
/* netif_extra.type, .flags and .gso_type */
#define NETIF_EXTRA_GSO		1u
#define NETIF_EXTRA_MORE	1u
#define NETIF_GSO_TCPV4		1u

#define NETIF_RSP_OKAY		0
#define NETIF_RSP_ERROR		(-1)
#define NETIF_RSP_DROPPED	(-2)
#define NETIF_RSP_NULL		1	/* of an entry that was no request */

struct netif_tx_request {
	uint32_t reference;
	uint16_t offset;
	uint16_t flags;
	uint16_t id;
	uint16_t size;		/* of the packet in its first entry, of the piece in others */
};

struct netif_tx_response {
	uint16_t id;
	int16_t status;
};

struct netif_rx_request {
	uint16_t id;
	uint16_t pad;
	uint32_t reference;
};

struct netif_rx_response {
	uint16_t id;
	uint16_t offset;
	uint16_t flags;
	int16_t status;		/* bytes, or an error */
};

/* In the place of an entry, after the first of a packet: of a transmit ring, its first bytes. */
struct netif_extra {
	uint8_t type;
	uint8_t flags;
	uint16_t gso_size;	/* bytes of payload in each segment */
	uint8_t gso_type;
	uint8_t pad;
	uint16_t features;
};

_Static_assert(sizeof(struct netif_extra) == 8, "an entry of a receive ring");
_Static_assert(sizeof(struct netif_tx_request) == 12, "entries of 12 bytes");
_Static_assert(sizeof(struct netif_rx_request) == 8 && sizeof(struct netif_rx_response) == 8,
	       "entries of 8 bytes");

/* Most entries of one packet: what every frontend keeps to. */
#define NETIF_PIECES	18u
/* Those of a large packet have an extra one. */
#define NETIF_ENTRIES	(NETIF_PIECES + 1)
#define NETIF_SMALLEST	14u	/* bytes of a packet */
#define NETIF_SMALLEST_SEGMENT 128u	/* HOT_MIN_GSO_SIZE */

enum netif_verdict {
	NETIF_PACKET,		/* here it is */
	NETIF_INCOMPLETE,	/* its last entries are not in the ring yet */
	NETIF_EXTRA,		/* it has an extra entry which was not offered */
	NETIF_MALFORMED,	/* no correct frontend writes this */
};

/* A piece of a packet in one page of the guest's. */
struct netif_piece {
	uint32_t reference;
	uint16_t offset;
	uint16_t size;
	uint16_t id;
};

struct netif_packet {
	uint32_t size;		/* bytes */
	uint32_t flags;		/* of its first entry */
	uint32_t pieces;
	uint32_t entries;	/* pieces, and the extra one */
	uint16_t gso_size;	/* 0: it is no large packet */
	uint8_t gso_type;
	struct netif_piece piece[NETIF_PIECES];
};

/*
 * The packet that begins with entries[0], of which `available` are there. With
 * NETIF_PACKET all of packet is valid, every piece lies in its page, has at least one
 * byte, and their sizes add up to size.
 */
enum netif_verdict netif_parse(const struct netif_tx_request *entries, uint32_t available,
			       struct netif_packet *packet);

/*
 * Where the checksum of a packet is that its guest left to the device: *start and *offset
 * from its first byte, as the device wants them. False if the packet is no TCP or UDP of
 * IPv4 or IPv6 whose headers are in the `length` bytes given.
 */
bool netif_checksum(const uint8_t *header, uint32_t length, uint16_t *start, uint16_t *offset);

/*
 * Whether a large packet can be cut into segments: TCP of IPv4 with all headers in the `length`
 * bytes given, its checksum left to the device, more than headers, segments not too small.
 */
bool netif_can_segment(const struct netif_packet *packet, const uint8_t *header, uint32_t length);

/*
 * Whether `length` bytes, of which the first `here` are given, are TCP of IPv4 as a frontend takes it
 * for several segments of `size` bytes: no tag, no fragment, IP's length theirs, all headers given,
 * and more behind them than one segment.
 */
bool netif_is_merged(const uint8_t *header, uint32_t here, uint32_t length, uint32_t size);

/* Whether a notification is due: the producer went from old to new, past what the other
 * side waits for (io/ring.h). */
static inline bool netif_is_due(uint32_t old, uint32_t new, uint32_t event)
{
	return (uint32_t)(new - event) < (uint32_t)(new - old);
}

#endif /* TWIN_XEN_NETIF_H */
