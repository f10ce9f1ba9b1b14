// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whose an Ethernet address is: a hash of the addresses of connected guests, so that it takes as long
 * to find one of eight as the only one, and that a packet is nobody's is seen at the first free place.
 *
 * Only the stage `bridge` lets each address be one guest's (bridge.c): here those who have the same share
 * a place, and all of them get what is for it.
 */
#include "vif.h"

/* Far more places than guests: a search ends at a free one, which the first mostly is. */
#define PLACE_BITS 6
#define PLACES (1u << PLACE_BITS)

_Static_assert(PLACES >= 8 * TWIN_XEN_VIFS, "most are free");

struct place {
	uint64_t address;
	uint64_t guests;	/* 0: it is free */
};

static struct place places[PLACES];

/* First byte lowest: two loads at any alignment. */
static inline uint64_t number_of(const uint8_t *address)
{
	uint32_t low;
	uint16_t high;

	__builtin_memcpy(&low, address, sizeof(low));
	__builtin_memcpy(&high, address + sizeof(low), sizeof(high));
	return low | (uint64_t)high << 32;
}

/* The place of an address, or the free one that it would have: Knuth's multiplicative hash (volume 3,
 * 6.4), then one after the other. */
static inline struct place *find(uint64_t address)
{
	uint32_t at = (uint32_t)(address * 0x9e3779b97f4a7c15ull >> (64 - PLACE_BITS));

	while (places[at].guests && places[at].address != address)
		at = (at + 1) % PLACES;
	return &places[at];
}

uint64_t xen_address_guests(const uint8_t *address)
{
	return find(number_of(address))->guests;
}

/* Anew: whoever was put behind one that goes would not be found any more. */
void xen_address_update(void)
{
	uint64_t rest;

	memset(places, 0, sizeof(places));
	for (rest = xen_vif_present; rest; rest &= rest - 1) {
		const struct vif *vif = xen_vif_first(rest);
		struct place *place = find(number_of(vif->mac));

		place->address = number_of(vif->mac);
		place->guests |= xen_vif_bit(vif);
	}
}
