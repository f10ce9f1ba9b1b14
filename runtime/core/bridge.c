// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which way packets go; see <twin/bridge.h>.
 *
 * Ethernet addresses are numbers of 48 bits here, the first byte lowest, as x86 loads
 * them. Their hash is Knuth's multiplicative one (volume 3, 6.4): the highest bits of a
 * product. Guests' addresses often differ in one byte only, which is enough for it.
 */
#include <stddef.h>

#include <twin/bridge.h>

#include "header.h"
#include "internal.h"

#define GROUP 1ull		/* lowest bit of the first byte (IEEE 802.3, 3.2.3) */
#define WIRE TWIN_SWITCH_GUESTS	/* as a source */
#define NOBODY TWIN_SWITCH_GUESTS
#define HASH_BITS 7

_Static_assert(1 << HASH_BITS == TWIN_BRIDGE_SLOTS, "a slot for each hash");

uint64_t twin_bridge_size(void)
{
	return sizeof(struct twin_bridge);
}

void twin_bridge_init(struct twin_bridge *bridge, const struct twin_storm_limit *limit)
{
	volatile uint8_t *byte = (uint8_t *)bridge;	/* not to become a call of memset */
	uint32_t i;

	for (i = 0; i < sizeof(*bridge); i++)
		byte[i] = 0;
	bridge->limit.interval = limit->interval;
	bridge->limit.burst = limit->burst;
}

/* ---- The table ------------------------------------------------------------ */

/* Six bytes at any alignment, as two loads. */
static uint64_t address_at(const uint8_t *bytes)
{
	uint32_t low;
	uint16_t high;

	__builtin_memcpy(&low, bytes, sizeof(low));
	__builtin_memcpy(&high, bytes + sizeof(low), sizeof(high));
	return low | (uint64_t)high << 32;
}

static uint32_t slot_of(uint64_t address)
{
	return (uint32_t)(address * 0x9e3779b97f4a7c15ull >> (64 - HASH_BITS));
}

/* The guest with that address, or NOBODY. Ends, because a slot is free. */
INLINE uint32_t find(const struct twin_bridge *bridge, uint64_t address)
{
	uint32_t at = slot_of(address), guest;

	for (; bridge->slot[at]; at = (at + 1) % TWIN_BRIDGE_SLOTS) {
		guest = bridge->slot[at] - 1u;
		if (bridge->address[guest] == address)
			return guest;
	}
	return NOBODY;
}

static void insert(struct twin_bridge *bridge, uint32_t guest)
{
	uint32_t at = slot_of(bridge->address[guest]);

	while (bridge->slot[at])
		at = (at + 1) % TWIN_BRIDGE_SLOTS;
	bridge->slot[at] = (uint8_t)(guest + 1);
}

/* Whoever was inserted after the one that goes may be further on because of it. */
static void insert_all(struct twin_bridge *bridge)
{
	uint32_t at;
	uint64_t rest;

	for (at = 0; at < TWIN_BRIDGE_SLOTS; at++)
		bridge->slot[at] = 0;
	for (rest = bridge->present; rest; rest &= rest - 1)
		insert(bridge, (uint32_t)__builtin_ctzll(rest));
}

int twin_bridge_add(struct twin_bridge *bridge, uint32_t number, const uint8_t mac[TWIN_ETH_ALEN])
{
	uint64_t address = address_at(mac);
	int status = TWIN_INVALID;

	if (!address || address & GROUP || number >= TWIN_SWITCH_GUESTS)
		return TWIN_INVALID;
	lock(&bridge->lock);
	if (!(bridge->present >> number & 1) && find(bridge, address) == NOBODY) {
		bridge->address[number] = address;
		bridge->present |= 1ull << number;
		bridge->allowed[number] = 0;
		insert(bridge, number);
		status = TWIN_OK;
	}
	unlock(&bridge->lock);
	return status;
}

void twin_bridge_remove(struct twin_bridge *bridge, uint32_t number)
{
	if (number >= TWIN_SWITCH_GUESTS)
		return;
	lock(&bridge->lock);
	bridge->present &= ~(1ull << number);
	bridge->address[number] = 0;
	insert_all(bridge);
	unlock(&bridge->lock);
}

/* ---- Ways ------------------------------------------------------------------ */

/*
 * Whether a source may send to a group now: the virtual scheduling form of a leaky bucket
 * (ITU-T I.371, annex A), one word for each source. A clock that another CPU reads a
 * little earlier does no harm.
 */
static bool is_allowed(struct twin_bridge *bridge, uint32_t source, uint64_t now)
{
	const uint64_t interval = bridge->limit.interval;
	uint64_t *whole = &bridge->allowed[source];
	uint64_t since = *whole > now ? *whole - now : 0;

	if (!interval)
		return true;
	if (since / interval >= bridge->limit.burst)
		return false;
	*whole = now + since + interval;
	return true;
}

/* To all guests but `source`, if it may. */
static enum twin_way to_group(struct twin_bridge *bridge, uint32_t source, uint64_t now,
			      uint64_t *guests)
{
	uint64_t others = bridge->present;

	if (!is_allowed(bridge, source, now)) {
		bridge->statistics.storm++;
		return TWIN_WAY_STORM;
	}
	bridge->statistics.group++;
	if (source != WIRE)
		others &= ~(1ull << source);
	*guests = others;
	if (!others)
		return source == WIRE ? TWIN_WAY_NOWHERE : TWIN_WAY_WIRE;
	return source == WIRE ? TWIN_WAY_GUESTS : TWIN_WAY_BOTH;
}

INLINE enum twin_way to_guest(uint32_t guest, uint64_t *guests, uint64_t *counter)
{
	(*counter)++;
	*guests = 1ull << guest;
	return TWIN_WAY_GUESTS;
}

static enum twin_way way_of_sent(struct twin_bridge *bridge, uint32_t number,
				 const uint8_t *header, uint64_t now, uint64_t *guests)
{
	uint64_t destination = address_at(header);
	uint32_t guest;

	if (number >= TWIN_SWITCH_GUESTS || !(bridge->present >> number & 1) ||
	    bridge->address[number] != address_at(header + TWIN_ETH_ALEN)) {
		bridge->statistics.spoofed++;
		return TWIN_WAY_SPOOFED;
	}
	if (destination & GROUP)
		return to_group(bridge, number, now, guests);
	guest = find(bridge, destination);
	if (guest == NOBODY) {
		bridge->statistics.wire++;
		return TWIN_WAY_WIRE;
	}
	if (guest != number)
		return to_guest(guest, guests, &bridge->statistics.local);
	bridge->statistics.unknown++;	/* a switch does not send it back either */
	return TWIN_WAY_NOWHERE;
}

enum twin_way twin_bridge_send(struct twin_bridge *bridge, uint32_t number,
			       const uint8_t header[TWIN_BRIDGE_HEADER], uint64_t now,
			       uint64_t *guests)
{
	enum twin_way way;

	*guests = 0;
	lock(&bridge->lock);
	way = way_of_sent(bridge, number, header, now, guests);
	unlock(&bridge->lock);
	return way;
}

/* Whoever has been let send no more since is in the same place as before (is_allowed). */
static void give_back(struct twin_bridge *bridge, uint32_t number)
{
	if (bridge->allowed[number] >= bridge->limit.interval)
		bridge->allowed[number] -= bridge->limit.interval;
}

static uint64_t *counter_of(struct twin_bridge *bridge, enum twin_way way, bool group)
{
	switch (way) {
	case TWIN_WAY_WIRE:
		return group ? &bridge->statistics.group : &bridge->statistics.wire;
	case TWIN_WAY_BOTH:
		return &bridge->statistics.group;
	case TWIN_WAY_GUESTS:
		return &bridge->statistics.local;
	case TWIN_WAY_SPOOFED:
		return &bridge->statistics.spoofed;
	case TWIN_WAY_STORM:
		return &bridge->statistics.storm;
	case TWIN_WAY_NOWHERE:
		break;
	}
	return &bridge->statistics.unknown;
}

void twin_bridge_put_off(struct twin_bridge *bridge, uint32_t number,
			 const uint8_t header[TWIN_BRIDGE_HEADER], enum twin_way way)
{
	const bool group = address_at(header) & GROUP;

	if (number >= TWIN_SWITCH_GUESTS)
		return;
	lock(&bridge->lock);
	--*counter_of(bridge, way, group);
	if (group && (way == TWIN_WAY_WIRE || way == TWIN_WAY_BOTH))
		give_back(bridge, number);
	unlock(&bridge->lock);
}

INLINE enum twin_way way_of_received(struct twin_bridge *bridge, uint64_t destination,
				     uint64_t source, uint64_t now, uint64_t *guests)
{
	uint32_t guest;

	if (source & GROUP || find(bridge, source) != NOBODY) {
		bridge->statistics.spoofed++;
		return TWIN_WAY_SPOOFED;
	}
	if (destination & GROUP)
		return to_group(bridge, WIRE, now, guests);
	guest = find(bridge, destination);
	if (guest != NOBODY)
		return to_guest(guest, guests, &bridge->statistics.received);
	bridge->statistics.unknown++;
	return TWIN_WAY_NOWHERE;
}

enum twin_way twin_bridge_receive(struct twin_bridge *bridge,
				  const uint8_t header[TWIN_BRIDGE_HEADER], uint64_t now,
				  uint64_t *guests)
{
	enum twin_way way;

	*guests = 0;
	lock(&bridge->lock);
	way = way_of_received(bridge, address_at(header), address_at(header + TWIN_ETH_ALEN), now,
			      guests);
	unlock(&bridge->lock);
	return way;
}

#ifndef TWIN_NO_SWITCH
#define ADDRESS_BITS ((1ull << 8 * TWIN_ETH_ALEN) - 1)

enum twin_switch_verdict twin_bridge_hold(struct twin_bridge *bridge, struct twin_switch *sw,
					  struct twin_instance *instance,
					  const struct twin_arrival *arrival, uint64_t now,
					  uint64_t *guests)
{
	struct twin_header_words words;
	enum twin_way way;

	*guests = 0;
	if (arrival->length < TWIN_BRIDGE_HEADER ||
	    twin_read_words(instance, arrival->data, &words))
		return TWIN_SWITCH_REFUSED;
	lock(&bridge->lock);
	way = way_of_received(bridge, words.first & ADDRESS_BITS, words.last & ADDRESS_BITS, now,
			      guests);
	unlock(&bridge->lock);
	if (way != TWIN_WAY_GUESTS)
		return TWIN_SWITCH_UNWANTED;
	return twin_switch_hold(sw, *guests, arrival);
}
#endif

void twin_bridge_events(struct twin_bridge *bridge, struct twin_bridge_statistics *copy)
{
	lock(&bridge->lock);
	*copy = bridge->statistics;
	unlock(&bridge->lock);
}
