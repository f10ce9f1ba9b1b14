// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Received packets to guests; see <twin/switch.h>.
 *
 * A packet's number is in as many queues as it has holders. Queues, the free
 * chain and holders change under the lock. A packet's `arrival` is written before
 * its number is queued, and not again before its last holder has let go; so
 * copying needs no lock. Nor does looking for a packet (next_packet).
 */
#include <stddef.h>

#include <twin/switch.h>

#include "header.h"
#include "internal.h"
#include "switch.h"

_Static_assert((TWIN_SWITCH_QUEUE & (TWIN_SWITCH_QUEUE - 1)) == 0, "free-running counters");
_Static_assert(TWIN_SWITCH_GUESTS == 64, "guests are bits of a word");

#define MOST_PACKETS (1u << 30)	/* so that all numbers + 1 are below AGGREGATE */

static uint64_t address_of(const uint8_t mac[TWIN_ETH_ALEN])
{
	uint64_t address = 0;
	uint32_t i;

	for (i = 0; i < TWIN_ETH_ALEN; i++)
		address |= (uint64_t)mac[i] << (8 * i);
	return address;
}

uint64_t twin_switch_size(void)
{
	return sizeof(struct twin_switch);
}

int twin_switch_init(struct twin_switch *sw, struct twin_packet *packets, uint32_t count)
{
	uint32_t i;

	if (!packets || !count || count > MOST_PACKETS)
		return TWIN_INVALID;
	for (i = 0; i < sizeof(*sw); i++)
		((volatile uint8_t *)sw)[i] = 0;
	sw->packets = packets;
	sw->count = count;
	for (i = 0; i < count; i++) {
		packets[i].holders = 0;
		packets[i].next = i + 1 < count ? i + 2 : 0;
	}
	sw->free = 1;
	return TWIN_OK;
}

static uint32_t first_free_guest(const struct twin_switch *sw)
{
	return ~sw->attached ? (uint32_t)__builtin_ctzll(~sw->attached) : TWIN_SWITCH_GUESTS;
}

int twin_switch_attach(struct twin_switch *sw, const uint8_t mac[TWIN_ETH_ALEN])
{
	uint64_t address = address_of(mac);
	uint32_t guest;

	if (!address || address & MULTICAST)
		return -1;
	lock(&sw->lock);
	guest = first_free_guest(sw);
	if (guest == TWIN_SWITCH_GUESTS || find(sw, address) != TWIN_SWITCH_GUESTS) {
		unlock(&sw->lock);
		return -1;
	}
	sw->address[guest] = address;
	sw->guests[guest].produced = sw->guests[guest].consumed = 0;
	sw->guests[guest].taken = sw->guests[guest].bytes = sw->guests[guest].dropped = 0;
	sw->attached |= 1ull << guest;
	unlock(&sw->lock);
	return (int)guest;
}

uint32_t twin_switch_detach(struct twin_switch *sw, uint32_t guest, uint64_t *release)
{
	struct twin_guest_queue *queue;
	uint32_t count = 0;
	uint64_t buffer;

	lock(&sw->lock);
	if (has(sw, guest)) {
		queue = &sw->guests[guest];
		sw->attached &= ~(1ull << guest);
		sw->raised &= ~(1ull << guest);
		sw->address[guest] = 0;
		for (; queue->consumed != queue->produced; queue->consumed++) {
			buffer = twin_switch_let_go(sw, queue->packets[queue->consumed % TWIN_SWITCH_QUEUE]);
			if (buffer)
				release[count++] = buffer;
		}
	}
	unlock(&sw->lock);
	return count;
}

/* ---- Reading and writing dom0 ------------------------------------------------ */

/* Copies between here and dom0, page by page: of a window's three pages only the middle
 * one is certainly dom0's. */
static inline int copy_pages(struct twin_instance *instance, uint8_t *here, uint64_t dom0,
			     uint32_t size, bool to_dom0)
{
	uint64_t mapped;
	uint32_t chunk;

	if (size && dom0 + size - 1 < dom0)	/* wraps */
		return TWIN_ABORTED;
	while (size) {
		if (twin_translate(instance, dom0, &mapped))
			return TWIN_ABORTED;
		chunk = rest_of_page(dom0);
		if (chunk > size)
			chunk = size;
		if (to_dom0)
			copy((void *)mapped, here, chunk);
		else
			copy(here, (const void *)mapped, chunk);
		here += chunk;
		dom0 += chunk;
		size -= chunk;
	}
	return TWIN_OK;
}

int twin_copy_from_dom0(struct twin_instance *instance, void *to, uint64_t from, uint32_t size)
{
	return copy_pages(instance, to, from, size, false);
}

int twin_copy_to_dom0(struct twin_instance *instance, uint64_t to, const void *from, uint32_t size)
{
	return copy_pages(instance, (uint8_t *)(uintptr_t)from, to, size, true);
}

/*
 * The Ethernet address at dom0 address `from`, as in twin_switch.address: the first byte is
 * the lowest, for x86 is little-endian. A repeated move of six bytes takes longer than all
 * else here, so it is one load, unless the page ends before that.
 */
static int read_address(struct twin_instance *instance, uint64_t from, uint64_t *address)
{
	uint64_t mapped, word;

	if (rest_of_page(from) < sizeof(word)) {
		*address = 0;
		return twin_copy_from_dom0(instance, address, from, TWIN_ETH_ALEN);
	}
	if (twin_translate(instance, from, &mapped))
		return TWIN_ABORTED;
	__asm__ volatile("movq %1, %0" : "=r"(word) : "m"(*(const uint64_t *)mapped));
	*address = word & ((1ull << (8 * TWIN_ETH_ALEN)) - 1);
	return TWIN_OK;
}

int twin_read_header(struct twin_instance *instance, uint64_t from, uint8_t header[TWIN_ETH_HLEN])
{
	struct twin_header_words words;

	if (twin_read_words(instance, from, &words))
		return TWIN_ABORTED;
	/* Of the bytes that were read twice, those that were read last count: each is written once. */
	__builtin_memcpy(header, &words.first, sizeof(words.first));
	__builtin_memcpy(header + TWIN_LAST_WORD, &words.last, sizeof(words.last));
	return TWIN_OK;
}

/* ---- Receiving ------------------------------------------------------------ */

INLINE enum twin_switch_verdict hold_packet(struct twin_switch *sw, uint64_t guests,
					    const struct twin_arrival *arrival)
{
	struct twin_packet *packet;
	uint32_t number, holders;

	if (!guests) {
		sw->unknown++;
		return TWIN_SWITCH_UNWANTED;
	}
	if (!sw->free) {
		sw->exhausted++;
		return TWIN_SWITCH_UNWANTED;
	}
	number = sw->free - 1;
	packet = &sw->packets[number];
	packet->arrival = *arrival;
	holders = enqueue(sw, guests, number);
	if (!holders)
		return TWIN_SWITCH_UNWANTED;
	sw->free = packet->next;
	packet->holders = holders;
	return TWIN_SWITCH_HELD;
}

enum twin_switch_verdict twin_switch_receive(struct twin_switch *sw,
					     struct twin_instance *instance,
					     const struct twin_arrival *arrival)
{
	enum twin_switch_verdict verdict;
	uint64_t destination;	/* a copy: dom0 may change its own meanwhile */

	if (arrival->length < TWIN_ETH_ALEN ||
	    read_address(instance, arrival->data, &destination))
		return TWIN_SWITCH_REFUSED;
	lock(&sw->lock);
	verdict = hold_packet(sw, takers(sw, destination), arrival);
	unlock(&sw->lock);
	return verdict;
}

enum twin_switch_verdict twin_switch_hold(struct twin_switch *sw, uint64_t guests,
					  const struct twin_arrival *arrival)
{
	enum twin_switch_verdict verdict;

	lock(&sw->lock);
	verdict = hold_packet(sw, guests & sw->attached, arrival);
	unlock(&sw->lock);
	return verdict;
}

/* ---- Taking --------------------------------------------------------------- */

/*
 * The entry of guest's next packet, or UINT32_MAX. Without the lock: `consumed` changes by
 * this guest's one taker alone, and an entry is written before `produced` shows it. The queue
 * of a guest that does not exist is empty (twin_switch_detach).
 */
static uint32_t next_packet(const struct twin_guest_queue *queue)
{
	if (queue->consumed == __atomic_load_n(&queue->produced, __ATOMIC_ACQUIRE))
		return UINT32_MAX;
	return queue->packets[queue->consumed % TWIN_SWITCH_QUEUE];
}

int twin_switch_take(struct twin_switch *sw, struct twin_instance *instance, uint32_t guest,
		     void *to, uint32_t size, struct twin_delivery *delivery)
{
	const struct twin_arrival *arrival;
	struct twin_guest_queue *queue;
	uint32_t number;
	int status;

	if (guest >= TWIN_SWITCH_GUESTS)
		return TWIN_BUSY;
	queue = &sw->guests[guest];
	number = next_packet(queue);
	if (number & AGGREGATE)
		return number == UINT32_MAX ? TWIN_BUSY :
		       twin_switch_take_aggregate(sw, instance, guest, number, to, size,
						  delivery);
	arrival = &sw->packets[number].arrival;
	delivery->length = arrival->length;
	delivery->flags = arrival->flags;
	delivery->vlan = arrival->vlan;
	if (size > arrival->length)
		size = arrival->length;
	status = twin_copy_from_dom0(instance, to, arrival->data, size);

	lock(&sw->lock);
	queue->consumed++;
	queue->taken++;
	queue->bytes += size;
	delivery->release = let_go(sw, number);
	unlock(&sw->lock);
	return status;
}

uint64_t twin_switch_news(struct twin_switch *sw)
{
	uint64_t news;

	lock(&sw->lock);
	news = sw->raised;
	sw->raised = 0;
	unlock(&sw->lock);
	return news;
}
