// SPDX-License-Identifier: GPL-2.0-only
/*
 * bridge.c: dom0's software bridge between the card and the guests' ports.
 *
 *   card ── host_receive ── bridge_receive ──> queue of a port ──> back end ──> guest
 *   guest ── back end ── kernel_bridge_route ──> verdict ──> card, other guests
 *
 * It learns who is behind which port from sources (IEEE 802.1D, 7.8), sends a frame to
 * the port of its destination (7.7), and to all other ports if that is a group or unknown. An
 * address that was silent for five minutes (7.9) is not known any more. A frame whose source is
 * a group, or that is for bridges alone (01:80:c2:00:00:0x), ends here.
 *
 * It is less than a kernel's bridge: no netfilter, no spanning tree, no VLANs, no queueing disciplines,
 * no state of ports. dom0 itself has no port.
 *
 * A received frame is not copied: its sk_buff is held until all ports that it is for have had it.
 *
 * Context: softirq or an entry point, on any CPU; one lock, below receive.c's.
 */
#include <linux/etherdevice.h>
#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <twin/guest.h>

#include "shim.h"

#define BRIDGE_BUCKETS		256
#define BRIDGE_ADDRESSES	1024
#define BRIDGE_AGE		(300ull * NSEC_PER_SEC)
#define BRIDGE_CARD		0u
#define BRIDGE_FREE		(~0u)	/* uses of a place that holds nothing */

_Static_assert(KERNEL_BRIDGE_HELD <= HOT_RELEASE, "they are released at once");
_Static_assert(KERNEL_BRIDGE_BATCH == HOT_REQUESTS, "a verdict for each request");
_Static_assert(KERNEL_BRIDGE_PIECES == HOT_RX_SEGMENTS, "a piece for each segment");

extern struct hot_shared hot_shared[HOT_CPUS];
u32 hot_release(u64 *skbs, u32 count);

/* An address and the port that it was last a source at. */
struct bridge_entry {
	u8 address[ETH_ALEN];
	u16 port;
	u32 next;	/* in its bucket, or of the free ones: number + 1, or 0 */
	u32 zero;
	u64 seen;	/* ns */
};

struct bridge_table {
	u32 free;
	u32 bucket[BRIDGE_BUCKETS];
	struct bridge_entry entry[BRIDGE_ADDRESSES];
};

static struct kernel_bridge *bridge;
static struct bridge_table *table;
static struct shim_lock bridge_lock;

static void *bridge_memory(size_t size)
{
	struct page *page = frames_allocate(DIV_ROUND_UP(size, PAGE_SIZE), 1);

	return page ? memset(page_address(page), 0, size) : NULL;
}

static void bridge_free(struct kernel_bridge_held *held)
{
	held->uses = BRIDGE_FREE;
	held->next = bridge->free;
	bridge->free = held - bridge->held + 1;
}

__u64 kernel_bridge(void)
{
	u32 i;

	if (bridge)
		return (u64)bridge;
	table = table ?: bridge_memory(sizeof(*table));
	if (!table)
		return 0;
	for (i = BRIDGE_ADDRESSES; i-- > 0; table->free = i + 1)
		table->entry[i].next = table->free;
	bridge = bridge_memory(sizeof(*bridge));
	if (!bridge)
		return 0;
	for (i = KERNEL_BRIDGE_HELD; i-- > 0;)
		bridge_free(&bridge->held[i]);
	bridge->size = sizeof(*bridge);
	bridge->ports = BIT(BRIDGE_CARD);
	return (u64)bridge;
}

/* ---- Addresses ------------------------------------------------------------ */

static u32 *bridge_bucket(const u8 *address)
{
	u32 hash = jhash_2words(*(const u32 *)address, *(const u16 *)(address + 4), 0);

	return &table->bucket[hash % BRIDGE_BUCKETS];
}

static struct bridge_entry *bridge_find(const u8 *address)
{
	u32 at = *bridge_bucket(address);
	struct bridge_entry *entry;

	for (; at; at = entry->next) {
		entry = &table->entry[at - 1];
		if (ether_addr_equal(entry->address, address))
			return entry;
	}
	return NULL;
}

static bool bridge_expired(const struct bridge_entry *entry, u64 now)
{
	return now - entry->seen > BRIDGE_AGE;
}

/* Forgets the expired ones; those of `port` too, if there is such a port. */
static void bridge_forget(u64 now, u32 port)
{
	u32 i, *link;

	for (i = 0; i < BRIDGE_BUCKETS; i++) {
		for (link = &table->bucket[i]; *link;) {
			struct bridge_entry *entry = &table->entry[*link - 1];
			u32 number = *link;

			if (entry->port != port && !bridge_expired(entry, now)) {
				link = &entry->next;
				continue;
			}
			if (entry->port != port)
				bridge->aged++;
			*link = entry->next;
			entry->next = table->free;
			table->free = number;
		}
	}
}

static noinline void bridge_add(const u8 *address, u32 port, u64 now)
{
	struct bridge_entry *entry;
	u32 *bucket = bridge_bucket(address);

	if (!table->free)
		bridge_forget(now, KERNEL_BRIDGE_PORTS);
	if (!table->free) {
		bridge->full++;
		return;
	}
	entry = &table->entry[table->free - 1];
	table->free = entry->next;
	ether_addr_copy(entry->address, address);
	entry->port = port;
	entry->seen = now;
	entry->next = *bucket;
	*bucket = entry - table->entry + 1;
	bridge->learned++;
}

static void bridge_learn(const u8 *address, u32 port, u64 now)
{
	struct bridge_entry *entry = bridge_find(address);

	if (unlikely(!entry)) {
		bridge_add(address, port, now);
		return;
	}
	if (unlikely(entry->port != port)) {
		bridge->moved++;
		entry->port = port;
	}
	entry->seen = now;
}

/* ---- Frames ---------------------------------------------------------------- */

/* The ports that a frame of `from` goes to, as bits. */
static u32 bridge_decide(const struct ethhdr *eth, u32 from)
{
	struct bridge_entry *entry;
	u64 now = time_now();

	if (unlikely(!is_valid_ether_addr(eth->h_source) || is_link_local_ether_addr(eth->h_dest))) {
		bridge->refused++;
		return 0;
	}
	bridge_learn(eth->h_source, from, now);
	if (likely(!is_multicast_ether_addr(eth->h_dest))) {
		entry = bridge_find(eth->h_dest);
		if (likely(entry && !bridge_expired(entry, now))) {
			if (unlikely(entry->port == from)) {
				bridge->filtered++;
				return 0;
			}
			bridge->forwarded++;
			return BIT(entry->port);
		}
	}
	bridge->flooded++;
	return bridge->ports & ~BIT(from);
}

/* A place that holds the packet; NULL: none is free, or it has a form that is not served. */
static struct kernel_bridge_held *bridge_hold(void *data, u32 length, struct sk_buff *skb, u32 flags)
{
	struct kernel_bridge_held *held;
	const struct hot_rx_chain *chain = data;
	u32 i;

	if (unlikely(flags & (HOT_RX_FRAGMENTS | HOT_RX_VLAN))) {
		bridge->refused++;
		return NULL;
	}
	if (unlikely(!bridge->free)) {
		bridge->dropped++;
		return NULL;
	}
	held = &bridge->held[bridge->free - 1];
	held->skb = (u64)skb;
	held->uses = 0;
	held->flags = flags;
	held->length = length;
	if (likely(!(flags & HOT_RX_PIECES))) {
		held->pieces = 1;
		held->size = 0;
		held->piece[0].data = (u64)data;
		held->piece[0].length = length;
	} else {
		held->pieces = min_t(u32, chain->segments, KERNEL_BRIDGE_PIECES);
		held->size = chain->size;
		/* `length` is that of the chain itself. */
		held->length = 0;
		for (i = 0; i < held->pieces; i++) {
			held->piece[i].data = chain->piece[i].data;
			held->piece[i].length = chain->piece[i].length;
			held->length += chain->piece[i].length;
		}
	}
	bridge->free = held->next;
	return held;
}

static void bridge_enqueue(u32 port, struct kernel_bridge_held *held)
{
	struct kernel_bridge_queue *queue = &bridge->queue[port];
	u32 produce = queue->produce;

	if (unlikely(produce - READ_ONCE(queue->consume) >= KERNEL_BRIDGE_QUEUE)) {
		queue->dropped++;
		return;
	}
	queue->held[produce % KERNEL_BRIDGE_QUEUE] = held - bridge->held;
	held->uses++;
	smp_store_release(&queue->produce, produce + 1);
}

bool bridge_receive(void *data, u32 length, struct sk_buff *skb, u32 flags)
{
	const struct ethhdr *eth = data;
	struct kernel_bridge_held *held = NULL;
	bool kept = false;
	u32 ports;

	if (flags & HOT_RX_PIECES)
		eth = (const struct ethhdr *)((const struct hot_rx_chain *)data)->piece[0].data;
	shim_lock(&bridge_lock);
	ports = bridge_decide(eth, BRIDGE_CARD);
	if (ports)
		held = bridge_hold(data, length, skb, flags);
	if (held) {
		for (; ports; ports &= ports - 1)
			bridge_enqueue(__ffs(ports), held);
		kept = held->uses;
		if (!kept)
			bridge_free(held);
	}
	shim_unlock(&bridge_lock);
	return kept;
}

/* ---- Entry points ------------------------------------------------------------ */

long kernel_bridge_attach(__u32 port, __u64 address)
{
	const u8 *mac = (const u8 *)&address;

	if (!kernel_bridge())
		return -ENOMEM;
	if (port >= KERNEL_BRIDGE_PORTS || !is_valid_ether_addr(mac))
		return -EINVAL;
	shim_lock(&bridge_lock);
	bridge->ports |= BIT(port);
	bridge_learn(mac, port, time_now());
	shim_unlock(&bridge_lock);
	return 0;
}

long kernel_bridge_detach(__u32 port)
{
	if (!bridge || !port || port >= KERNEL_BRIDGE_PORTS)
		return -EINVAL;
	shim_lock(&bridge_lock);
	bridge->ports &= ~BIT(port);
	bridge_forget(time_now(), port);
	shim_unlock(&bridge_lock);
	return 0;
}

long kernel_bridge_route(__u32 first, __u32 count)
{
	const struct hot_tx_request *requests = (const struct hot_tx_request *)hot_shared[0].requests;
	long others = 0;
	u32 i;

	if (!bridge || !requests || first > KERNEL_BRIDGE_BATCH || count > KERNEL_BRIDGE_BATCH - first)
		return -EINVAL;
	shim_lock(&bridge_lock);
	for (i = first; i < first + count; i++) {
		u32 from = requests[i].guest + 1;
		u32 ports = 0;

		if (likely(from > BRIDGE_CARD && from < KERNEL_BRIDGE_PORTS &&
			   requests[i].header_length >= ETH_HLEN))
			ports = bridge_decide((const struct ethhdr *)requests[i].header, from);
		else
			bridge->refused++;
		bridge->verdict[i] = ports;
		others += ports != BIT(BRIDGE_CARD);
	}
	shim_unlock(&bridge_lock);
	return others;
}

long kernel_bridge_release(__u32 count)
{
	u64 *skbs = (u64 *)hot_shared[0].release;
	u32 i, number, released = 0;

	if (!bridge || !skbs || count > KERNEL_BRIDGE_HELD)
		return -EINVAL;
	shim_lock(&bridge_lock);
	for (i = 0; i < count; i++) {
		number = bridge->release[i];
		if (number >= KERNEL_BRIDGE_HELD || bridge->held[number].uses)
			continue;
		skbs[released++] = bridge->held[number].skb;
		bridge_free(&bridge->held[number]);
	}
	shim_unlock(&bridge_lock);
	return hot_release(skbs, released);
}

long kernel_bridge_port(__u64 address)
{
	const u8 *mac = (const u8 *)&address;
	struct bridge_entry *entry;
	long port = -ENOENT;

	if (!bridge)
		return port;
	shim_lock(&bridge_lock);
	entry = bridge_find(mac);
	if (entry && !bridge_expired(entry, time_now()))
		port = entry->port;
	shim_unlock(&bridge_lock);
	return port;
}
