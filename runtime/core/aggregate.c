// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Aggregates in the switch: several TCP segments that are one packet for the guest; see
 * <twin/switch.h>. One takes as many of the switch's packets as it has pieces, linked by
 * `next`; its entry in a queue is the first one's number, marked.
 */
#include <stddef.h>

#include "internal.h"
#include "switch.h"

/* Ethernet, IPv4 and TCP, without and with all options (RFC 791, 3.1; RFC 9293, 3.1). */
#define LEAST_HEADERS (14 + 20 + 20)
#define MOST_HEADERS (14 + 60 + 60)
/* IPv4's longest packet, and the Ethernet header. */
#define LONGEST (14 + 0xffff)

/* A copy of what dom0 says that its pieces are; whether it agrees with itself. */
static bool copy_aggregate(struct twin_instance *instance, const struct twin_arrival *arrival,
			   struct twin_aggregate *aggregate)
{
	const uint32_t head = offsetof(struct twin_aggregate, piece);
	uint32_t i, headers, total;

	if (arrival->length < head || arrival->length > sizeof(*aggregate) ||
	    twin_copy_from_dom0(instance, aggregate, arrival->data, arrival->length))
		return false;
	if (aggregate->segments < 2 || aggregate->segments > TWIN_SWITCH_PIECES ||
	    arrival->length != head + aggregate->segments * sizeof(aggregate->piece[0]) ||
	    !aggregate->size || aggregate->size > LONGEST)
		return false;
	/* The unsigned difference is too large, too, if there is less than size. */
	headers = aggregate->piece[0].length - aggregate->size;
	if (headers < LEAST_HEADERS || headers > MOST_HEADERS)
		return false;
	total = headers + aggregate->size;
	for (i = 1; i < aggregate->segments; i++) {
		const uint32_t length = aggregate->piece[i].length;

		if (!length || length > aggregate->size ||
		    (length < aggregate->size && i + 1 < aggregate->segments))
			return false;
		total += length;
	}
	return total <= LONGEST;
}

/* Fills free packets with its pieces; the number of the first, or UINT32_MAX if there are
 * too few. They stay in the free chain. The lock is held. */
static uint32_t fill_pieces(struct twin_switch *sw, const struct twin_aggregate *aggregate)
{
	uint32_t i, next = sw->free;

	for (i = 0; i < aggregate->segments; i++) {
		struct twin_packet *packet;

		if (!next)
			return UINT32_MAX;
		packet = &sw->packets[next - 1];
		packet->arrival.data = aggregate->piece[i].data;
		packet->arrival.length = aggregate->piece[i].length;
		packet->holders = aggregate->size;
		next = packet->next;
	}
	return sw->free - 1;
}

/* Takes `count` packets out of the free chain, which begins with them; the last of them. */
static struct twin_packet *cut_chain(struct twin_switch *sw, uint32_t count)
{
	struct twin_packet *last = &sw->packets[sw->free - 1];

	while (--count)
		last = &sw->packets[last->next - 1];
	sw->free = last->next;
	last->next = 0;
	return last;
}

/* The other way round: a chain that begins with packet number and has that last one. */
static void mend_chain(struct twin_switch *sw, uint32_t number, struct twin_packet *last)
{
	last->next = sw->free;
	sw->free = number + 1;
}

/* The lock is held. */
static enum twin_switch_verdict hold_aggregate(struct twin_switch *sw, uint64_t guests,
					       const struct twin_arrival *arrival,
					       const struct twin_aggregate *aggregate)
{
	struct twin_packet *packet, *last;
	uint32_t number, holders;

	if (!guests) {
		sw->unknown++;
		return TWIN_SWITCH_UNWANTED;
	}
	number = fill_pieces(sw, aggregate);
	if (number == UINT32_MAX) {
		sw->exhausted++;
		return TWIN_SWITCH_UNWANTED;
	}
	packet = &sw->packets[number];
	packet->arrival.buffer = arrival->buffer;
	packet->arrival.flags = arrival->flags;
	packet->arrival.vlan = arrival->vlan;
	/* Whoever takes it follows the chain without the lock: it ends before it is queued. */
	last = cut_chain(sw, aggregate->segments);
	holders = enqueue(sw, guests, number | AGGREGATE);
	if (!holders) {
		mend_chain(sw, number, last);
		return TWIN_SWITCH_UNWANTED;
	}
	packet->holders = holders;
	return TWIN_SWITCH_HELD;
}

enum twin_switch_verdict twin_switch_receive_aggregate(struct twin_switch *sw,
						       struct twin_instance *instance,
						       const struct twin_arrival *arrival)
{
	enum twin_switch_verdict verdict;
	struct twin_aggregate aggregate;
	uint64_t destination = 0;

	if (!copy_aggregate(instance, arrival, &aggregate) ||
	    twin_copy_from_dom0(instance, &destination, aggregate.piece[0].data, TWIN_ETH_ALEN))
		return TWIN_SWITCH_REFUSED;
	lock(&sw->lock);
	verdict = hold_aggregate(sw, takers(sw, destination), arrival, &aggregate);
	unlock(&sw->lock);
	return verdict;
}

enum twin_switch_verdict twin_switch_hold_aggregate(struct twin_switch *sw,
						    struct twin_instance *instance,
						    uint64_t guests,
						    const struct twin_arrival *arrival)
{
	enum twin_switch_verdict verdict;
	struct twin_aggregate aggregate;

	if (!copy_aggregate(instance, arrival, &aggregate))
		return TWIN_SWITCH_REFUSED;
	lock(&sw->lock);
	verdict = hold_aggregate(sw, guests & sw->attached, arrival, &aggregate);
	unlock(&sw->lock);
	return verdict;
}

/* ---- Taking, and letting go ------------------------------------------------- */

uint64_t twin_switch_let_go(struct twin_switch *sw, uint32_t entry)
{
	const uint32_t number = entry & ~AGGREGATE;
	struct twin_packet *packet = &sw->packets[number], *last = packet;

	if (!(entry & AGGREGATE))
		return let_go(sw, number);
	if (--packet->holders)
		return 0;
	while (last->next)
		last = &sw->packets[last->next - 1];
	mend_chain(sw, number, last);
	return packet->arrival.buffer;
}

/* Copies the pieces that begin with packet number one after the other, at most size
 * bytes; gives how many there were. */
static int copy_pieces(struct twin_switch *sw, struct twin_instance *instance, uint32_t number,
		       uint8_t *to, uint32_t size, struct twin_delivery *delivery)
{
	const struct twin_packet *piece = &sw->packets[number];
	uint32_t left = size, part;
	int status = TWIN_OK;

	delivery->length = 0;
	delivery->flags = piece->arrival.flags;
	delivery->vlan = piece->arrival.vlan;
	delivery->segments = 0;
	for (;; piece = &sw->packets[piece->next - 1]) {
		part = piece->arrival.length < left ? piece->arrival.length : left;
		if (status == TWIN_OK)
			status = twin_copy_from_dom0(instance, to, piece->arrival.data, part);
		to += part;
		left -= part;
		delivery->length += piece->arrival.length;
		delivery->segments++;
		if (!piece->next)
			break;
	}
	delivery->size = (uint16_t)piece->holders;
	return status;
}

int twin_switch_take_aggregate(struct twin_switch *sw, struct twin_instance *instance,
			       uint32_t guest, uint32_t entry, void *to, uint32_t size,
			       struct twin_delivery *delivery)
{
	struct twin_guest_queue *queue = &sw->guests[guest];
	int status = copy_pieces(sw, instance, entry & ~AGGREGATE, to, size, delivery);

	lock(&sw->lock);
	queue->consumed++;
	queue->taken++;
	queue->bytes += delivery->length < size ? delivery->length : size;
	delivery->release = twin_switch_let_go(sw, entry);
	unlock(&sw->lock);
	return status == TWIN_OK ? TWIN_SWITCH_AGGREGATE : status;
}
