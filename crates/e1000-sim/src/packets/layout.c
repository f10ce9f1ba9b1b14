// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The compiler's layouts of <twin/guest.h>, <twin/frames.h>, <twin/gather.h>, <twin/bridge.h>
 * and <twin/notify.h>, for the test that
 * compares them with rings.rs.
 */
#include <stddef.h>

#include <twin/bridge.h>
#include <twin/frames.h>
#include <twin/gather.h>
#include <twin/guest.h>
#include <twin/notify.h>
#include <twin/switch.h>

/* The switch reads the hot routines' aggregates as its own. */
_Static_assert(sizeof(struct hot_rx_chain) == sizeof(struct twin_aggregate) &&
	       HOT_RX_SEGMENTS == TWIN_SWITCH_PIECES, "an aggregate is a chain");

/* The runtime reads a request's fragments as its own pieces. */
_Static_assert(TWIN_PIECES == HOT_FRAGMENTS, "as many pieces as fragments");
_Static_assert(sizeof(struct twin_piece) == sizeof(struct hot_tx_fragment) &&
	       offsetof(struct twin_piece, length) == offsetof(struct hot_tx_fragment, length),
	       "a fragment is a piece");

struct twin_layout {
	const char *name;
	unsigned long value;
};

_Static_assert(HOT_GATHERS == TWIN_GATHERS && HOT_GATHER_MOST == TWIN_GATHER_MOST, "the hot routines' list");

#define FIELD(type, field) { #type "." #field, offsetof(struct type, field) }
#define SIZE(type) { #type, sizeof(struct type) }
#define VALUE(name) { #name, name }

const struct twin_layout twin_guest_layout[] = {
	SIZE(hot_tx_fragment), SIZE(hot_tx_request), SIZE(hot_tx_done), SIZE(hot_shared),
	FIELD(hot_tx_fragment, address), FIELD(hot_tx_fragment, length),
	FIELD(hot_tx_request, cookie), FIELD(hot_tx_request, guest),
	FIELD(hot_tx_request, header_length), FIELD(hot_tx_request, fragments),
	FIELD(hot_tx_request, acks), FIELD(hot_tx_request, ack), VALUE(HOT_ACKS),
	FIELD(hot_tx_request, gso_size), FIELD(hot_tx_request, gso_type),
	FIELD(hot_tx_request, checksum_start), FIELD(hot_tx_request, checksum_offset),
	FIELD(hot_tx_request, vlan_tag), FIELD(hot_tx_request, flags),
	FIELD(hot_tx_request, result), FIELD(hot_tx_request, header),
	FIELD(hot_tx_request, fragment),
	FIELD(hot_tx_done, cookie), FIELD(hot_tx_done, guest),
	SIZE(hot_rx_piece), FIELD(hot_rx_piece, data), FIELD(hot_rx_piece, length),
	SIZE(hot_rx_chain), FIELD(hot_rx_chain, segments), FIELD(hot_rx_chain, size),
	FIELD(hot_rx_chain, piece),
	SIZE(twin_gather), FIELD(twin_gather, list), FIELD(twin_gather, ticket),
	FIELD(twin_gather, offset), FIELD(twin_gather, bytes), FIELD(twin_gather, each),
	SIZE(twin_segment), FIELD(twin_segment, data), FIELD(twin_segment, length),
	SIZE(twin_aggregate), FIELD(twin_aggregate, segments), FIELD(twin_aggregate, size),
	FIELD(twin_aggregate, piece),
	SIZE(twin_delivery), FIELD(twin_delivery, length), FIELD(twin_delivery, flags),
	FIELD(twin_delivery, vlan), FIELD(twin_delivery, segments), FIELD(twin_delivery, size),
	FIELD(twin_delivery, release),
	FIELD(hot_shared, aggregate), FIELD(hot_shared, offload),
	FIELD(hot_shared, requests), FIELD(hot_shared, tx_done), FIELD(hot_shared, release),
	FIELD(hot_shared, tx_done_produce), FIELD(hot_shared, tx_done_consume),
	FIELD(hot_shared, tx_sent), FIELD(hot_shared, tx_wake), FIELD(hot_shared, counter),
	VALUE(HOT_CPUS), VALUE(HOT_REQUESTS), VALUE(HOT_TX_DONE), VALUE(HOT_RELEASE),
	VALUE(HOT_HEADER), VALUE(HOT_FRAGMENTS), VALUE(HOT_DOM0), VALUE(HOT_QUEUE_OWNER),
	VALUE(HOT_GSO_TCPV4),
	VALUE(HOT_GSO_TCPV6), VALUE(HOT_TX_VLAN), VALUE(HOT_SENT), VALUE(HOT_BUSY),
	VALUE(HOT_NO_BUFFER), VALUE(HOT_INVALID), VALUE(HOT_DOWN), VALUE(HOT_FOREIGN),
	VALUE(HOT_SPOOFED),
	VALUE(HOT_RX_HELD), VALUE(HOT_RX_UNWANTED), VALUE(HOT_RX_CHECKSUM_OK),
	VALUE(HOT_RX_VLAN), VALUE(HOT_RX_FRAGMENTS), VALUE(HOT_COUNTERS),
	VALUE(HOT_RX_PIECES), VALUE(HOT_RX_SEGMENTS), VALUE(TWIN_SWITCH_PIECES),
	VALUE(TWIN_SWITCH_AGGREGATE),
	SIZE(twin_piece), SIZE(twin_flight), SIZE(twin_frames), SIZE(twin_outgoing),
	SIZE(twin_outgoing_statistics),
	FIELD(twin_piece, address), FIELD(twin_piece, length),
	FIELD(twin_flight, cookie), FIELD(twin_flight, guest), FIELD(twin_flight, pieces),
	FIELD(twin_flight, uses), FIELD(twin_flight, next), FIELD(twin_flight, piece),
	FIELD(twin_frames, words), FIELD(twin_frames, count),
	FIELD(twin_outgoing, frames), FIELD(twin_outgoing, flights),
	FIELD(twin_outgoing, count), FIELD(twin_outgoing, free),
	FIELD(twin_outgoing, statistics),
	FIELD(twin_outgoing_statistics, admitted), FIELD(twin_outgoing_statistics, foreign),
	FIELD(twin_outgoing_statistics, malformed), FIELD(twin_outgoing_statistics, full),
	FIELD(twin_outgoing_statistics, completed), FIELD(twin_outgoing_statistics, unknown),
	VALUE(TWIN_PIECES), VALUE(TWIN_OWNER_NOBODY), VALUE(TWIN_OWNER_DOM0),
	VALUE(TWIN_OWNER_GUESTS), VALUE(TWIN_ADMITTED), VALUE(TWIN_FOREIGN), VALUE(TWIN_FULL),
	VALUE(TWIN_BUSY),
	SIZE(twin_storm_limit), SIZE(twin_bridge_statistics),
	FIELD(twin_storm_limit, interval), FIELD(twin_storm_limit, burst),
	FIELD(twin_bridge_statistics, wire), FIELD(twin_bridge_statistics, local),
	FIELD(twin_bridge_statistics, group), FIELD(twin_bridge_statistics, received),
	FIELD(twin_bridge_statistics, unknown), FIELD(twin_bridge_statistics, spoofed),
	FIELD(twin_bridge_statistics, storm),
	SIZE(twin_notify_limits), SIZE(twin_notify_statistics), SIZE(twin_latency),
	FIELD(twin_notify_limits, delay), FIELD(twin_notify_limits, count),
	FIELD(twin_notify_limits, most),
	FIELD(twin_notify_statistics, count), FIELD(twin_notify_statistics, delay),
	FIELD(twin_notify_statistics, most), FIELD(twin_notify_statistics, at_once),
	FIELD(twin_notify_statistics, saved),
	FIELD(twin_latency, card), FIELD(twin_latency, guest),
	VALUE(TWIN_WAY_WIRE), VALUE(TWIN_WAY_GUESTS), VALUE(TWIN_WAY_BOTH),
	VALUE(TWIN_WAY_SPOOFED), VALUE(TWIN_WAY_STORM),
};
const unsigned long twin_guest_layout_count =
	sizeof(twin_guest_layout) / sizeof(twin_guest_layout[0]);
