/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Between switch.c and aggregate.c: what both ways of receiving share. Inlined, because a
 * call would cost each packet. All but has() want the switch's lock.
 */
#ifndef TWIN_CORE_SWITCH_H
#define TWIN_CORE_SWITCH_H

#include <twin/switch.h>

#include "internal.h"

#define MULTICAST 1ull		/* lowest bit of the first byte (IEEE 802.3, 3.2.3) */
#define AGGREGATE (1u << 31)	/* in a queue: the number of an aggregate's first piece */

INLINE bool has(const struct twin_switch *sw, uint32_t guest)
{
	return guest < TWIN_SWITCH_GUESTS && (sw->attached >> guest & 1);
}

/* The guest with that address, or TWIN_SWITCH_GUESTS. */
INLINE uint32_t find(const struct twin_switch *sw, uint64_t address)
{
	uint32_t guest;

	for (guest = 0; guest < TWIN_SWITCH_GUESTS; guest++)
		if (sw->address[guest] == address && has(sw, guest))
			return guest;
	return TWIN_SWITCH_GUESTS;
}

/* One holder less; the buffer if it was the last, else 0. The lock is held. */
INLINE uint64_t let_go(struct twin_switch *sw, uint32_t number)
{
	struct twin_packet *packet = &sw->packets[number];

	if (--packet->holders)
		return 0;
	packet->next = sw->free;
	sw->free = number + 1;
	return packet->arrival.buffer;
}

/* The guests that a packet for that address goes to, as bits. */
INLINE uint64_t takers(struct twin_switch *sw, uint64_t address)
{
	uint32_t guest;

	if (address & MULTICAST)
		return sw->attached;
	guest = find(sw, address);
	return guest < TWIN_SWITCH_GUESTS ? 1ull << guest : 0;
}

/* Queue a packet, by its entry, to those guests that have room; how many there were. */
INLINE uint32_t enqueue(struct twin_switch *sw, uint64_t guests, uint32_t number)
{
	struct twin_guest_queue *queue;
	uint32_t guest, count = 0;

	for (; guests; guests &= guests - 1) {
		guest = (uint32_t)__builtin_ctzll(guests);
		queue = &sw->guests[guest];
		if (queue->produced - queue->consumed == TWIN_SWITCH_QUEUE) {
			queue->dropped++;
			continue;
		}
		queue->packets[queue->produced % TWIN_SWITCH_QUEUE] = number;
		__atomic_store_n(&queue->produced, queue->produced + 1, __ATOMIC_RELEASE);
		sw->raised |= 1ull << guest;
		count++;
	}
	return count;
}

/* The same as let_go() for an entry of a queue, which may be an aggregate's. */
uint64_t twin_switch_let_go(struct twin_switch *sw, uint32_t entry);

/* twin_switch_take for an aggregate's entry. */
int twin_switch_take_aggregate(struct twin_switch *sw, struct twin_instance *instance,
			       uint32_t guest, uint32_t entry, void *to, uint32_t size,
			       struct twin_delivery *delivery);

#endif /* TWIN_CORE_SWITCH_H */
