// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Frames to guests, and the switch: from the card, as the driver gives them, and from one
 * guest to another. A frame is copied to its guest at once; one for a guest whose ring has
 * no request is dropped, as on an Ethernet.
 */
#include <twin/guest.h>

#include "vif.h"

/* The next receive request, if there is one. */
static bool take_receive(struct vif *vif, struct netif_rx_request *request)
{
	uint32_t produced;

	if (!xen_ring_load(vif->receive_ring, NETIF_REQUEST_PRODUCE, &produced) ||
	    produced - vif->receive_taken > NETIF_RING) {
		xen_vif_break(vif, "its receive ring is nonsense");
		return false;
	}
	if (produced == vif->receive_taken)
		return false;
	if (!xen_dom0_read(request, xen_ring_entry(vif->receive_ring, vif->receive_taken,
					     sizeof(*request)), sizeof(*request)))
		return false;
	vif->receive_taken++;
	return true;
}

static bool deliver(struct vif *vif, const struct xen_bytes *bytes, uint16_t flags)
{
	const uint32_t length = bytes->first_length + bytes->second_length;
	struct netif_rx_request request;
	struct netif_rx_response response;
	const uint32_t old = vif->receive_taken;
	bool copied;

	if (vif->broken || !take_receive(vif, &request)) {
		vif->status.full++;
		return false;
	}
	copied = xen_grant_write(vif->domain, request.reference, bytes);
	response = (struct netif_rx_response){
		.id = request.id,
		.flags = flags,
		.status = copied ? (int16_t)length : NETIF_RSP_ERROR,
	};
	if (!xen_dom0_write(xen_ring_entry(vif->receive_ring, old, sizeof(response)), &response,
			    sizeof(response)))
		xen_vif_break(vif, "its ring is gone");
	else
		xen_ring_publish(vif, vif->receive_ring, old, vif->receive_taken);
	if (!copied) {
		vif->status.refused++;
		return false;
	}
	vif->status.received++;
	vif->status.received_bytes += length;
	return true;
}

/* ---- The switch ------------------------------------------------------------------ */

static bool is_same(const uint8_t *a, const uint8_t *b)
{
	uint32_t i, differs = 0;

	for (i = 0; i < ETHERNET_ADDRESS; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

bool xen_vif_switch(const struct vif *from, const uint8_t *destination,
			     const struct xen_bytes *bytes, uint16_t marks)
{
	const bool group = xen_is_group(destination);
	bool known = false;
	uint32_t i;

	for (i = 0; i < TWIN_XEN_VIFS; i++) {
		struct vif *vif = &xen_vifs[i];

		if (!vif->domain || vif == from || !(group || is_same(vif->mac, destination)))
			continue;
		deliver(vif, bytes, marks);
		known = true;
	}
	return known;
}

bool xen_vif_receive(uint64_t data, uint32_t length, uint32_t flags)
{
	const struct xen_bytes bytes = { .dom0 = data, .first_length = length };
	uint8_t destination[ETHERNET_ADDRESS];

	if (length < NETIF_SMALLEST || length > NETIF_GRANT_SIZE ||
	    !xen_dom0_read(destination, data, sizeof(destination)))
		return false;
	return xen_vif_switch(NULL, destination, &bytes,
			      flags & HOT_RX_CHECKSUM_OK ? NETRXF_DATA_VALIDATED : 0);
}

