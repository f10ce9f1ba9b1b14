/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The bridge: which way a packet goes, by the 14 bytes of its Ethernet header
 * (DBNet, 3.2.3: a look-up table in place of dom0's bridge).
 *
 *   guest ── twin_bridge_send ──┬─> the wire
 *              its own source?  └─> other guests, without the card
 *   wire ── twin_bridge_receive ──> guests
 *
 * The addresses of all guests are known, because an administrator gave them. So nothing
 * is learned and nothing flooded: a unicast address is a guest's or on the wire. A packet
 * for a group goes everywhere but back; each source has a limit for those, because each
 * costs as much as there are guests.
 *
 * It decides and counts, and moves no bytes. Shared by all CPUs under one lock, held for a
 * few dozen instructions (for a group: three for each guest). Contexts as in
 * <twin/runtime.h>.
 */
#ifndef TWIN_BRIDGE_H
#define TWIN_BRIDGE_H

#include <stdint.h>

#include <twin/runtime.h>
#include <twin/switch.h>

#define TWIN_BRIDGE_HEADER	TWIN_ETH_HLEN
#define TWIN_BRIDGE_SLOTS	128	/* of the hash, a power of two: never more than half full */

/* Where a packet goes. */
enum twin_way {
	TWIN_WAY_NOWHERE = 0,	/* for nobody here: dropped */
	TWIN_WAY_WIRE = 1,
	TWIN_WAY_GUESTS = 2,
	TWIN_WAY_BOTH = 3,
	TWIN_WAY_SPOOFED = 4,	/* its source is not its sender's: refused */
	TWIN_WAY_STORM = 5,	/* too many for groups from this source: dropped */
};

/* Packets for groups that a source may send: `burst` at once, then one each `interval`, in
 * the unit of the caller's clock. interval 0: no limit. */
struct twin_storm_limit {
	uint64_t interval;
	uint32_t burst;
	uint32_t zero;
};

/* Packets so far, each counted once. */
struct twin_bridge_statistics {
	uint64_t wire;		/* from a guest, to the wire only */
	uint64_t local;		/* from a guest to one guest */
	uint64_t group;		/* for a group */
	uint64_t received;	/* from the wire to one guest */
	uint64_t unknown;	/* for none of the guests, or for its own sender */
	uint64_t spoofed;
	uint64_t storm;
};

struct twin_bridge {
	struct twin_lock lock;
	uint32_t zero;
	uint64_t present;			/* bit g: guest g has an address */
	uint64_t address[TWIN_SWITCH_GUESTS];	/* first byte lowest */
	uint8_t slot[TWIN_BRIDGE_SLOTS];	/* guest + 1, or 0: linear probing */
	struct twin_storm_limit limit;
	uint64_t allowed[TWIN_SWITCH_GUESTS + 1];	/* when a source has its burst whole
							 * again; the last is the wire */
	struct twin_bridge_statistics statistics;
};

/* Without guests. limit is copied. [setup] */
void twin_bridge_init(struct twin_bridge *bridge, const struct twin_storm_limit *limit);

/* Guest `number`, below TWIN_SWITCH_GUESTS, has that address from now on. TWIN_INVALID if
 * the address is not unicast or another's, or the guest has one. [any] */
int twin_bridge_add(struct twin_bridge *bridge, uint32_t number, const uint8_t mac[TWIN_ETH_ALEN]);

/* The guest has none any more. [any] */
void twin_bridge_remove(struct twin_bridge *bridge, uint32_t number);

/*
 * The way of a packet of guest `number`, whose header is the caller's own copy: what is
 * looked at is what is sent. For ways to guests, *guests has them as bits. now: the
 * caller's clock, for the storm limit. [any]
 */
enum twin_way twin_bridge_send(struct twin_bridge *bridge, uint32_t number,
			       const uint8_t header[TWIN_BRIDGE_HEADER], uint64_t now,
			       uint64_t *guests);

/* The packet was not sent yet, and its way will be asked for again: this one counts for nothing, and its
 * source may send as many for groups as before. `way` is what twin_bridge_send() said of the same header. [any] */
void twin_bridge_put_off(struct twin_bridge *bridge, uint32_t number,
			 const uint8_t header[TWIN_BRIDGE_HEADER], enum twin_way way);

/* twin_bridge_send() for a packet from the wire. A source that is one of our guests' is refused: the
 * wire does not say who our guests are. [any] */
enum twin_way twin_bridge_receive(struct twin_bridge *bridge,
				  const uint8_t header[TWIN_BRIDGE_HEADER], uint64_t now,
				  uint64_t *guests);

/*
 * twin_bridge_receive and twin_switch_hold of a packet that the driver gives, in one: each packet has
 * both. Not with TWIN_NO_SWITCH, for a host that has other queues. TWIN_SWITCH_REFUSED if it has no header, or that is not dom0's. *guests: who it is for. [inside],
 * or with instance held.
 */
enum twin_switch_verdict twin_bridge_hold(struct twin_bridge *bridge, struct twin_switch *sw,
					  struct twin_instance *instance,
					  const struct twin_arrival *arrival, uint64_t now,
					  uint64_t *guests);

/* Copy the counts. [any] */
void twin_bridge_events(struct twin_bridge *bridge, struct twin_bridge_statistics *copy);

/* Bytes of struct twin_bridge, for callers not in C. [any] */
uint64_t twin_bridge_size(void);

_Static_assert((TWIN_BRIDGE_SLOTS & (TWIN_BRIDGE_SLOTS - 1)) == 0, "an index is masked");
_Static_assert(TWIN_BRIDGE_SLOTS >= 2 * TWIN_SWITCH_GUESTS, "probing ends");
_Static_assert(TWIN_SWITCH_GUESTS < 255, "a guest is a byte");

#endif /* TWIN_BRIDGE_H */
