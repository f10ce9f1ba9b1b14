// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Frames to guests, and the switch: from the card, as the driver has given them, and from one
 * guest to another. A frame is copied to its guest at once, in as many pages as it takes, and
 * shown to it when the service ends (xen_vif_answer); one for
 * a guest whose ring has not so many requests, or whose frontend does not take such, is dropped, as
 * on an Ethernet.
 */
#include <twin/guest.h>

#include "vif.h"

/* For each frame: part of both switches. */
#define INLINE static inline __attribute__((always_inline))

/* Whether so many receive requests are there. What was there once is not looked for again. */
INLINE bool has_requests(struct vif *vif, uint32_t count)
{
	struct vif_ring *ring = &vif->receive;
	uint32_t produced;

	if (ring->seen - ring->taken >= count)
		return true;
	if (!xen_ring_load(ring->at, NETIF_REQUEST_PRODUCE, &produced) ||
	    produced - ring->taken > NETIF_RING) {
		xen_vif_break(vif, "its receive ring is nonsense");
		return false;
	}
	ring->seen = produced;
	return produced - ring->taken >= count;
}

bool xen_vif_has_requests(struct vif *vif, uint32_t count)
{
	return has_requests(vif, count);
}

/* Copy requests from the first on that has no answer: up to those that were seen, or the ring's
 * end, or as many as there is place for. */
static __attribute__((noinline)) bool copy_requests(struct vif *vif)
{
	const struct vif_ring *ring = &vif->receive;
	struct vif_requests *frames = &vif->frames;
	uint32_t count = ring->seen - ring->taken;

	if (count > VIF_REQUESTS)
		count = VIF_REQUESTS;
	if (count > NETIF_RING - ring->taken % NETIF_RING)
		count = NETIF_RING - ring->taken % NETIF_RING;
	frames->from = ring->taken;
	frames->count = 0;
	if (!xen_dom0_read(frames->request, xen_ring_entry(ring->at, ring->taken, ring->size),
			   count * ring->size))
		return false;
	frames->count = count;
	return count;
}

/* The next one, of those that were seen; NULL: the ring is not there. Each was copied once. */
static const struct netif_rx_request *next_request(struct vif *vif)
{
	const struct vif_requests *frames = &vif->frames;

	if (vif->receive.taken - frames->from >= frames->count && !copy_requests(vif))
		return NULL;
	return &frames->request[vif->receive.taken - frames->from];
}

/* An entry of 8 bytes. */
static void answer(struct vif *vif, const void *response)
{
	uint64_t bytes;

	__builtin_memcpy(&bytes, response, sizeof(bytes));
	if (!xen_ring_answer(&vif->receive, bytes))
		xen_vif_break(vif, "its ring is gone");
}

/* One request answered with the bytes from `from` on. Whether they could be copied. */
static bool give(struct vif *vif, const struct xen_bytes *bytes, uint32_t from, uint32_t count,
		 uint16_t flags)
{
	const struct netif_rx_request *request = next_request(vif);
	struct netif_rx_response response;
	bool copied;

	if (!request) {
		xen_vif_break(vif, "its ring is gone");
		return false;
	}
	copied = xen_grant_write(vif->domain, request->reference, bytes, from, count);
	response = (struct netif_rx_response){
		.id = request->id,
		.flags = flags,
		.status = copied ? (int16_t)count : NETIF_RSP_ERROR,
	};
	answer(vif, &response);
	return copied;
}

/* In the place of the second request, whose page the guest offers again. */
static void give_extra(struct vif *vif, const struct vif_marks *marks)
{
	const struct netif_extra extra = {
		.type = NETIF_EXTRA_GSO,
		.gso_size = marks->gso_size,
		.gso_type = marks->gso_type,
	};

	answer(vif, &extra);
}

/* Requests that a packet takes; 0 if this guest's frontend does not know such. */
static uint32_t slots_of(const struct vif *vif, uint32_t length, const struct vif_marks *marks)
{
	const uint32_t pages = (length + NETIF_GRANT_SIZE - 1) / NETIF_GRANT_SIZE;

	if ((pages > 1 && !(vif->features & TWIN_XEN_VIF_PAGES)) ||
	    (marks->gso_size && !(vif->features & TWIN_XEN_VIF_LARGE)))
		return 0;
	return pages + !!marks->gso_size;
}

INLINE bool count_delivery(struct vif *vif, uint32_t length, bool copied)
{
	if (!copied) {
		vif->status.refused++;
		return false;
	}
	vif->status.received++;
	vif->status.received_bytes += length;
	return true;
}

/* In one page, as most are. */
INLINE bool deliver_page(struct vif *vif, const struct xen_bytes *bytes, uint32_t length,
			 uint16_t flags)
{
	if (vif->broken || !has_requests(vif, 1)) {
		vif->status.full++;
		return false;
	}
	return count_delivery(vif, length, give(vif, bytes, 0, length, flags));
}

static bool deliver_pages(struct vif *vif, const struct xen_bytes *bytes, uint32_t length,
			  const struct vif_marks *marks)
{
	const uint32_t slots = slots_of(vif, length, marks);
	uint16_t flags = marks->flags | (marks->gso_size ? NETRXF_EXTRA_INFO : 0);
	uint32_t at, count;
	bool copied = true;

	if (vif->broken || !slots || !has_requests(vif, slots)) {
		vif->status.full++;
		return false;
	}
	for (at = 0; at < length; at += count) {
		count = length - at < NETIF_GRANT_SIZE ? length - at : NETIF_GRANT_SIZE;
		copied &= give(vif, bytes, at, count,
			       flags | (at + count < length ? NETRXF_MORE_DATA : 0));
		if (!at && marks->gso_size)
			give_extra(vif, marks);
		flags = 0;
	}
	return count_delivery(vif, length, copied);
}

INLINE bool deliver(struct vif *vif, const struct xen_bytes *bytes, const struct vif_marks *marks)
{
	const uint32_t length = bytes->first_length + bytes->buffer_length;

	if (length <= NETIF_GRANT_SIZE && !marks->gso_size)
		return deliver_page(vif, bytes, length, marks->flags);
	return deliver_pages(vif, bytes, length, marks);
}

/* ---- The switch ------------------------------------------------------------------ */

INLINE void give_all(uint64_t guests, const struct xen_bytes *bytes, const struct vif_marks *marks)
{
	xen_vif_active |= guests;
	for (; guests; guests &= guests - 1)
		deliver(xen_vif_first(guests), bytes, marks);
}

void xen_vif_give(uint64_t guests, const struct xen_bytes *bytes, const struct vif_marks *marks)
{
	give_all(guests, bytes, marks);
}

/* From the card, to whom it is for. */
INLINE bool switch_in(const struct xen_bytes *bytes, const struct vif_marks *marks, uint32_t segments)
{
	const uint64_t guests = xen_stages.bridge ? xen_bridge_receive(bytes->first, segments) :
						    xen_vif_find(bytes->first);

	give_all(guests, bytes, marks);
	return guests;
}

bool xen_vif_receive(const uint8_t *frame, uint32_t length, uint32_t flags)
{
	const struct xen_bytes bytes = { .first = frame, .first_length = length };
	const struct vif_marks marks = {
		.flags = flags & HOT_RX_CHECKSUM_OK ? NETRXF_DATA_VALIDATED : 0,
	};

	return switch_in(&bytes, &marks, 1);
}

bool xen_vif_receive_merged(const uint8_t *packet, uint32_t length, uint32_t size)
{
	const struct xen_bytes bytes = { .first = packet, .first_length = length };
	/* The card found each segment's checksum right; that of all is not computed. */
	const struct vif_marks marks = {
		.flags = NETRXF_DATA_VALIDATED | NETRXF_CSUM_BLANK,
		.gso_size = size,
		.gso_type = NETIF_GSO_TCPV4,
	};

	return switch_in(&bytes, &marks, (length + size - 1) / size);
}
