// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The answers in a guest's rings: showing them, and whether the guest waits for an event
 * (io/ring.h). Answers are kept when their requests are served, written some at a time, and
 * shown with all others when the service ends.
 *
 *      told            published         written           taken
 *   ----|-----------------|-----------------|-----------------|----->
 *       | shown, perhaps  | in the ring,    | kept in         | requests
 *       | not seen        | not shown       | answers[]       |
 *
 * Places up to `taken` are the backend's until the answers are shown: nobody else writes there,
 * and what an answer leaves of its place is zero.
 *
 * io/ring.h asks after each publication whether the guest's event index lies in what was
 * published. Here the question may come later, for several publications at once. No wake-up
 * is lost by that: the index is read after the publication, and is then
 *
 *   behind `told`       the guest was sent an event since, or its last look was before that
 *                       one: the event is on its way
 *   in between          it waits: an event is due, and is until it is sent or the guest has
 *                       moved its index on
 *   past `published`    it has seen all of them, and looks once more after it has written
 *                       the index (RING_FINAL_CHECK_FOR_RESPONSES): nothing is due
 *
 * The index is the guest's and may be anything. It says whether that guest gets an event,
 * and nothing else.
 */
#include "vif.h"

bool xen_ring_open(struct vif_ring *ring, uint64_t at, uint32_t size)
{
	uint32_t answered;

	if (!xen_ring_load(at, NETIF_RESPONSE_PRODUCE, &answered))
		return false;
	*ring = (struct vif_ring){
		.at = at,
		.size = size,
		.written = answered,
		.taken = answered,
		.seen = answered,
		.published = answered,
		/* Whoever served it before is gone: whatever it has may be news ... */
		.told = answered - NETIF_RING,
	};
	/* ... unless the guest has seen all of it. */
	xen_ring_owes(ring);
	return true;
}

/* The end of the ring may be between. */
bool xen_ring_write(struct vif_ring *ring)
{
	const uint32_t count = ring->taken - ring->written;
	const uint32_t before_end = NETIF_RING - ring->written % NETIF_RING;
	const uint32_t first = count < before_end ? count : before_end;

	if (!xen_dom0_write(xen_ring_entry(ring->at, ring->written, ring->size), ring->answers,
			    first * ring->size) ||
	    (count > first &&
	     !xen_dom0_write(xen_ring_entry(ring->at, 0, ring->size),
			     ring->answers + first * ring->size, (count - first) * ring->size)))
		return false;
	ring->written = ring->taken;
	return true;
}

bool xen_ring_publish(struct vif_ring *ring)
{
	if (ring->published == ring->taken)
		return true;
	if (!xen_ring_write(ring) ||
	    !xen_dom0_write(ring->at + NETIF_RESPONSE_PRODUCE, &ring->taken, sizeof(ring->taken)))
		return false;
	ring->published = ring->taken;
	/* The other side writes its event index, then looks for responses. */
	__asm__ volatile("mfence" ::: "memory");
	return true;
}

bool xen_ring_owes(struct vif_ring *ring)
{
	uint32_t event;

	if (ring->told == ring->published)
		return false;
	if (xen_ring_load(ring->at, NETIF_RESPONSE_EVENT, &event) &&
	    netif_is_due(ring->told, ring->published, event))
		return true;
	ring->told = ring->published;
	return false;
}
