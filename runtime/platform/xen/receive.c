// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Frames of the card's, from where the driver gives them until guests have them.
 *
 *   driver ── host_receive ──> [queue] ──────> guests' receive rings
 *             interrupts off            interrupts on, after the driver has returned
 *
 * A guest's page is reached by Xen's own rules only (grant.c), and those take locks of Xen's:
 * the grant table's, an entry's, that of its map of memory. Who has one of them may wait until
 * all processors have flushed their TLB (page_alloc.c, alloc_heap_pages), and a processor with
 * interrupts off does not: it would wait for the lock, and its holder for it, for ever. So a
 * frame is only copied where the driver gives it.
 *
 * The hot routines may give several segments of TCP as one packet (hot/aggregate.c), in pieces that
 * driver code names: each number is copied once and then judged, and what was copied is judged as a
 * packet. A frontend has it as one large packet, as from any other backend.
 *
 * The queue belongs to whoever has xen_lock, and is empty when that is given up. The driver may
 * give more than it was asked for; what finds no room is dropped, as by a card.
 */
#include <twin/guest.h>

#include "netif.h"
#include "platform.h"

/* What one call of hot_poll() gives (hot/napi.c): a driver's poll is asked for as many as its weight
 * (NAPI_POLL_WEIGHT), and for that once more while the budget of interrupt.c is not used up. */
#define WEIGHT 64u
#define FRAMES (WEIGHT + XEN_POLL_BUDGET)

/* A packet in bytes[]. */
struct frame {
	uint32_t at, length;
	uint32_t flags;		/* HOT_RX_* */
	uint32_t size;		/* of several segments: payload of each but the last, which may be shorter */
};

static struct frame frames[FRAMES];
static uint8_t bytes[FRAMES * NETIF_GRANT_SIZE];
static uint32_t count, used;

/* ---- Single frames ------------------------------------------------------------------ */

/* IEEE 802.1Q, 9.4 to 9.6: a tag is a type and 16 bits behind both addresses. */
#define ADDRESSES	12u
#define TAG		4u
#define TAG_TYPE	0x8100u

/*
 * Guests are offered no tags beside their frames (io/netif.h has none), and without it a frame
 * would be one of no VLAN, or of another: so the tag goes back to where it was.
 */
static __attribute__((noinline)) bool copy_tagged(uint8_t *to, uint64_t data, uint32_t length, uint16_t tag)
{
	const uint8_t inserted[TAG] = { TAG_TYPE >> 8, TAG_TYPE & 0xff, tag >> 8, tag & 0xff };

	__builtin_memcpy(to + ADDRESSES, inserted, TAG);
	return xen_dom0_read_ready(to, data, ADDRESSES) &&
	       xen_dom0_read_ready(to + ADDRESSES + TAG, data + ADDRESSES, length - ADDRESSES);
}

static bool copy(struct frame *frame, uint64_t data, uint32_t length, uint16_t tag)
{
	const uint32_t more = frame->flags & HOT_RX_VLAN ? TAG : 0;
	uint8_t *to = bytes + frame->at;

	/* Fragments were not asked for (hot/internal.h). */
	if (frame->flags & HOT_RX_FRAGMENTS || length < NETIF_SMALLEST ||
	    length > NETIF_GRANT_SIZE - more)
		return false;
	frame->length = length + more;
	return more ? copy_tagged(to, data, length, tag) : xen_dom0_read_ready(to, data, length);
}

/* ---- Several segments ------------------------------------------------------------------ */

/* IP's longest, behind an Ethernet header. */
#define LARGEST (65535u + NETIF_SMALLEST)
_Static_assert((LARGEST + NETIF_GRANT_SIZE - 1) / NETIF_GRANT_SIZE <= NETIF_PIECES,
	       "a frontend takes as many pages");

/* Whoever is served has it. */
static struct hot_rx_chain chain;

/* The bytes of the pieces in a chain of `size` bytes, now in `chain`; 0 if there is none. */
static uint32_t read_chain(uint64_t data, uint32_t size)
{
	uint32_t i, length = 0;

	if (size < offsetof(struct hot_rx_chain, piece) || size > sizeof(chain) ||
	    !xen_dom0_read_ready(&chain, data, size) || chain.segments < 2 ||
	    chain.segments > HOT_RX_SEGMENTS ||
	    size != offsetof(struct hot_rx_chain, piece) + chain.segments * sizeof(chain.piece[0]))
		return 0;
	for (i = 0; i < chain.segments; i++) {
		if (!chain.piece[i].length || chain.piece[i].length > NETIF_GRANT_SIZE)
			return 0;
		length += chain.piece[i].length;
	}
	return length <= LARGEST ? length : 0;
}

static bool copy_pieces(uint8_t *to)
{
	uint32_t i;

	for (i = 0; i < chain.segments; to += chain.piece[i++].length)
		if (!xen_dom0_read_ready(to, chain.piece[i].data, chain.piece[i].length))
			return false;
	return true;
}

/* Its headers are in the first piece. */
static bool copy_chain(struct frame *frame)
{
	uint8_t *to = bytes + frame->at;

	frame->size = chain.size;
	return copy_pieces(to) &&
	       netif_is_merged(to, chain.piece[0].length, frame->length, frame->size);
}

static void count_chain(void)
{
	xen_count(&xen_counts.aggregates);
	__atomic_fetch_add(&xen_counts.merged, chain.segments, __ATOMIC_RELAXED);
}

/* ---- The queue -------------------------------------------------------------------------- */

/* For the next packet; it is kept by keep(). */
static struct frame *take_place(uint32_t flags, uint32_t most)
{
	if (count == FRAMES || most > sizeof(bytes) - used) {
		xen_count(&xen_counts.overrun);
		return NULL;
	}
	frames[count] = (struct frame){ .at = used, .flags = flags };
	return &frames[count];
}

static void keep(const struct frame *frame)
{
	used += (frame->length + 15) & ~15u;
	count++;
}

static __attribute__((noinline)) void put_chain(uint64_t data, uint32_t size, uint32_t flags)
{
	const uint32_t length = read_chain(data, size);
	struct frame *frame;

	if (!length) {
		xen_count(&xen_counts.unwanted);
		return;
	}
	frame = take_place(flags, length);
	if (!frame)
		return;
	frame->length = length;
	if (!copy_chain(frame)) {
		xen_count(&xen_counts.unwanted);
		return;
	}
	count_chain();
	keep(frame);
}

void xen_receive_put(uint64_t data, uint32_t length, uint32_t flags, uint16_t tag)
{
	struct frame *frame;

	xen_count(&xen_counts.received);
	if (flags & HOT_RX_PIECES) {
		put_chain(data, length, flags);
		return;
	}
	frame = take_place(flags, NETIF_GRANT_SIZE);
	if (!frame)
		return;
	if (copy(frame, data, length, tag))
		keep(frame);
	else
		xen_count(&xen_counts.unwanted);
}

static bool deliver(const struct frame *frame)
{
	const uint8_t *from = bytes + frame->at;

	return frame->size ? xen_vif_receive_merged(from, frame->length, frame->size) :
			     xen_vif_receive(from, frame->length, frame->flags);
}

void xen_receive_deliver(void)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (!deliver(&frames[i]))
			xen_count(&xen_counts.unwanted);
	count = used = 0;
}

void xen_receive_merge(uint32_t most)
{
	uint32_t i;

	/* Not there: nothing is received there either. */
	for (i = 0; i < HOT_CPUS; i++)
		xen_dom0_write(xen_device.given.hot_shared + i * sizeof(struct hot_shared) +
			       offsetof(struct hot_shared, aggregate), &most, sizeof(most));
}
