// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Guests' interfaces: the backend of the standard protocol (io/netif.h), and the switch
 * between the card and the guests.
 *
 * A guest sends an event when it has put packets into its transmit ring. Xen brings it
 * here (evtchn_send) instead of to dom0: the packets are served at once, on the guest's
 * own processor and in its own hypercall. Frames that the card has received are copied
 * to the guest's receive ring where the driver gives them (xen_vif_receive).
 *
 *   guest ── event ──> [transmit ring] ── copy ──> buffer ──> driver ──> card
 *     ^                                     └─────> other guests' receive rings
 *     └── event ── [receive ring] <── copy ── driver <── card
 *
 * A ring is a page that guest and dom0 share; dom0 has it mapped, and so it is in the
 * window. Every entry is copied once, then judged, and the copy is what is used. A guest
 * whose ring is nonsense is not served any more. Each vif has a reference of its domain,
 * which keeps the domain's structures; its memory may go at any time, and then its
 * grants are refused.
 */
#include <twin/guest.h>

#include "netif.h"
#include "platform.h"

#define ETHERNET_ADDRESS 6u
/* What a guest's packets may be: one in a header and one buffer. */
#define LARGEST (HOT_HEADER + NETIF_GRANT_SIZE)
/* Batches of a guest's before others have their turn. */
#define TURN 4u

struct vif {
	struct domain *domain;		/* NULL: free */
	struct twin_xen_vif_status status;
	uint64_t transmit_ring, receive_ring;	/* dom0 addresses */
	uint32_t local_port, remote_port;
	uint8_t mac[ETHERNET_ADDRESS];
	uint32_t transmit_taken;	/* requests, which are answered at once */
	uint32_t receive_taken;
	uint32_t kicked;		/* atomically: it is to be served */
	bool broken;
	bool notify;			/* an event is due */
};

/* Written served; kicks look at domain and port of any entry. */
static struct vif vifs[TWIN_XEN_VIFS];

/* A packet that was taken from a ring and is on its way. */
struct taken {
	struct netif_packet packet;
	uint8_t header[HOT_HEADER];
	uint32_t buffer;
};
/* One processor at a time is served. */
static struct taken batch[XEN_TRANSMIT_BATCH];
static struct xen_packet packets[XEN_TRANSMIT_BATCH];

static void break_off(struct vif *vif, const char *why)
{
	if (!vif->broken)
		printk(XEN_WARNING "twin: interface %u of domain %u is no longer served: %s\n",
		       vif->status.handle, vif->status.domain, why);
	vif->broken = true;
}

/* ---- Rings ------------------------------------------------------------------- */

static bool load(const struct vif *vif, uint64_t ring, uint32_t field, uint32_t *value)
{
	(void)vif;
	return xen_dom0_read(value, ring + field, sizeof(*value));
}

static uint64_t entry_at(uint64_t ring, uint32_t index, uint32_t size)
{
	return ring + NETIF_RING_HEADER + (uint64_t)(index % NETIF_RING) * size;
}

/* Publish responses up to `new`, of which those from `old` on are new. */
static void publish(struct vif *vif, uint64_t ring, uint32_t old, uint32_t new)
{
	uint32_t event;

	if (!xen_dom0_write(ring + NETIF_RESPONSE_PRODUCE, &new, sizeof(new))) {
		break_off(vif, "its ring is gone");
		return;
	}
	/* The other side writes its event index, then looks for responses. */
	__asm__ volatile("mfence" ::: "memory");
	if (load(vif, ring, NETIF_RESPONSE_EVENT, &event) && netif_is_due(old, new, event))
		vif->notify = true;
}

/* ---- To a guest ---------------------------------------------------------------- */

/* The next receive request, if there is one. */
static bool take_receive(struct vif *vif, struct netif_rx_request *request)
{
	uint32_t produced;

	if (!load(vif, vif->receive_ring, NETIF_REQUEST_PRODUCE, &produced) ||
	    produced - vif->receive_taken > NETIF_RING) {
		break_off(vif, "its receive ring is nonsense");
		return false;
	}
	if (produced == vif->receive_taken)
		return false;
	if (!xen_dom0_read(request, entry_at(vif->receive_ring, vif->receive_taken,
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
	if (!xen_dom0_write(entry_at(vif->receive_ring, old, sizeof(response)), &response,
			    sizeof(response)))
		break_off(vif, "its ring is gone");
	else
		publish(vif, vif->receive_ring, old, vif->receive_taken);
	if (!copied) {
		vif->status.refused++;
		return false;
	}
	vif->status.received++;
	vif->status.received_bytes += length;
	return true;
}

/* ---- The switch ------------------------------------------------------------------ */

static bool is_group(const uint8_t *address)
{
	return address[0] & 1;
}

static bool is_same(const uint8_t *a, const uint8_t *b)
{
	uint32_t i, differs = 0;

	for (i = 0; i < ETHERNET_ADDRESS; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

/* Give a packet to the guests that its destination names; whether there is one, which may
 * have had no room. */
static bool switch_to_guests(const struct vif *from, const uint8_t *destination,
			     const struct xen_bytes *bytes, uint16_t flags)
{
	const bool group = is_group(destination);
	bool known = false;
	uint32_t i;

	for (i = 0; i < TWIN_XEN_VIFS; i++) {
		struct vif *vif = &vifs[i];

		if (!vif->domain || vif == from || !(group || is_same(vif->mac, destination)))
			continue;
		deliver(vif, bytes, flags);
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
	return switch_to_guests(NULL, destination, &bytes,
				flags & HOT_RX_CHECKSUM_OK ? NETRXF_DATA_VALIDATED : 0);
}

/* ---- From a guest ------------------------------------------------------------------ */

/* Copy the packet's pieces: the header, then the buffer. */
static bool copy_in(struct vif *vif, struct taken *taken)
{
	const struct netif_packet *packet = &taken->packet;
	uint8_t *rest = taken->buffer == XEN_NO_BUFFER ? NULL : xen_buffer_page(taken->buffer);
	uint32_t i, at = 0;

	for (i = 0; i < packet->pieces; i++) {
		const struct netif_piece *piece = &packet->piece[i];
		uint32_t done = 0;

		if (at < HOT_HEADER) {
			done = HOT_HEADER - at < piece->size ? HOT_HEADER - at : piece->size;
			if (!xen_grant_read(vif->domain, piece->reference, piece->offset,
					    taken->header + at, done))
				return false;
			at += done;
		}
		if (done == piece->size)
			continue;
		if (!xen_grant_read(vif->domain, piece->reference, piece->offset + done,
				    rest + (at - HOT_HEADER), piece->size - done))
			return false;
		at += piece->size - done;
	}
	return true;
}

static void respond(struct vif *vif, const struct taken *taken, int16_t status)
{
	const uint32_t old = vif->transmit_taken;
	uint32_t i;

	for (i = 0; i < taken->packet.pieces; i++) {
		const struct netif_tx_response response = {
			.id = taken->packet.piece[i].id, .status = status,
		};

		if (!xen_dom0_write(entry_at(vif->transmit_ring, old + i,
					     sizeof(struct netif_tx_request)),
				    &response, sizeof(response))) {
			break_off(vif, "its ring is gone");
			return;
		}
	}
	vif->transmit_taken += taken->packet.pieces;
	publish(vif, vif->transmit_ring, old, vif->transmit_taken);
}

/* Entries from `at` on, as many as a packet may have and as are there. */
static uint32_t copy_entries(const struct vif *vif, uint32_t at, uint32_t available,
			     struct netif_tx_request entries[NETIF_PIECES])
{
	const uint32_t count = available < NETIF_PIECES ? available : NETIF_PIECES;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (!xen_dom0_read(&entries[i], entry_at(vif->transmit_ring, at + i,
							 sizeof(*entries)), sizeof(*entries)))
			return 0;
		if (!(entries[i].flags & NETTXF_MORE_DATA))
			return i + 1;
	}
	return count;
}

/* The next packet of the ring into *taken, at entry `at`. */
static bool take_packet(struct vif *vif, uint32_t at, uint32_t produced, struct taken *taken)
{
	struct netif_tx_request entries[NETIF_PIECES];
	uint32_t available = copy_entries(vif, at, produced - at, entries);

	switch (netif_parse(entries, available, &taken->packet)) {
	case NETIF_PACKET:
		break;
	case NETIF_INCOMPLETE:
		return false;
	case NETIF_EXTRA:
		break_off(vif, "an extra entry, which was not offered");
		return false;
	case NETIF_MALFORMED:
		break_off(vif, "a malformed packet");
		return false;
	}
	taken->buffer = XEN_NO_BUFFER;
	if (taken->packet.size <= HOT_HEADER || taken->packet.size > LARGEST)
		return true;
	taken->buffer = xen_buffer_get();
	return taken->buffer != XEN_NO_BUFFER;
}

static bool describe(struct vif *vif, struct taken *taken, struct xen_packet *packet)
{
	const uint32_t size = taken->packet.size;

	*packet = (struct xen_packet){
		.header = taken->header,
		.header_length = size < HOT_HEADER ? size : HOT_HEADER,
		.rest = size < HOT_HEADER ? 0 : size - HOT_HEADER,
		.buffer = taken->buffer,
		.result = HOT_INVALID,
	};
	if (size > LARGEST || !copy_in(vif, taken))
		return false;
	return !(taken->packet.flags & NETTXF_CSUM_BLANK) ||
	       netif_checksum(taken->header, packet->header_length, &packet->checksum_start,
			      &packet->checksum_offset);
}

/* To other guests. Whether the card is to have it, too. (A broadcast that the driver then
 * has no room for comes here again: its copies may arrive twice, as on any Ethernet.) */
static bool switch_out(struct vif *vif, const struct taken *taken, const struct xen_packet *packet)
{
	const struct xen_bytes bytes = {
		.first = taken->header,
		.first_length = packet->header_length,
		.second = packet->rest ? xen_buffer_page(taken->buffer) : NULL,
		.second_length = packet->rest,
	};
	const uint32_t flags = taken->packet.flags;
	uint16_t marks = 0;

	if (flags & (NETTXF_CSUM_BLANK | NETTXF_DATA_VALIDATED))
		marks |= NETRXF_DATA_VALIDATED;
	if (flags & NETTXF_CSUM_BLANK)
		marks |= NETRXF_CSUM_BLANK;
	return !switch_to_guests(vif, taken->header, &bytes, marks) || is_group(taken->header);
}

/* What becomes of a packet. */
enum fate { FATE_SEND, FATE_DELIVERED, FATE_REFUSED };

static void finish(struct vif *vif, const struct taken *taken, bool accepted)
{
	respond(vif, taken, accepted ? NETIF_RSP_OKAY : NETIF_RSP_ERROR);
	if (!accepted) {
		vif->status.refused++;
		return;
	}
	vif->status.sent++;
	vif->status.sent_bytes += taken->packet.size;
}

static void release(const struct taken *taken)
{
	if (taken->buffer != XEN_NO_BUFFER)
		xen_buffer_put(taken->buffer);
}

/*
 * Give batch[first..count) to the driver, and answer in order. False: it could not take
 * all, and the ring still has those from the first that it did not.
 */
static bool send(struct vif *vif, uint32_t count)
{
	bool alive = !count || xen_transmit(packets, count), waits = false;
	uint32_t i;

	for (i = 0; i < count; i++) {
		const uint32_t result = packets[i].result;

		waits |= result == HOT_BUSY || result == HOT_NO_BUFFER;
		if (alive && result != HOT_SENT)
			release(&batch[i]);
		if (!waits)
			finish(vif, &batch[i], alive && result == HOT_SENT);
	}
	return alive && !waits;
}

/*
 * One batch: packets are taken until there is no more, or one is not for the card: that
 * one is answered after those before it.
 */
static bool serve_batch(struct vif *vif, uint32_t produced)
{
	enum fate fate = FATE_SEND;
	uint32_t count = 0, at = vif->transmit_taken;

	while (fate == FATE_SEND && count < XEN_TRANSMIT_BATCH && at != produced &&
	       take_packet(vif, at, produced, &batch[count])) {
		at += batch[count].packet.pieces;
		if (!describe(vif, &batch[count], &packets[count]))
			fate = FATE_REFUSED;
		else if (!switch_out(vif, &batch[count], &packets[count]))
			fate = FATE_DELIVERED;
		else
			count++;
	}
	if (!send(vif, count)) {
		if (fate != FATE_SEND)
			release(&batch[count]);
		return false;
	}
	if (fate != FATE_SEND) {
		release(&batch[count]);
		finish(vif, &batch[count], fate == FATE_DELIVERED);
	}
	return count || fate != FATE_SEND;
}

/* Events are asked for again when the ring is empty, and then it is looked at once more. */
static bool is_empty(struct vif *vif, uint32_t *produced)
{
	const uint32_t next = vif->transmit_taken + 1;

	if (!xen_dom0_write(vif->transmit_ring + NETIF_REQUEST_EVENT, &next, sizeof(next)))
		return true;
	__asm__ volatile("mfence" ::: "memory");
	return !load(vif, vif->transmit_ring, NETIF_REQUEST_PRODUCE, produced) ||
	       *produced == vif->transmit_taken;
}

/* Whether all is done. If not, its packets wait for the driver, or for their turn: a guest
 * that goes on filling its ring does not keep the processor. */
static bool serve(struct vif *vif)
{
	uint32_t produced, batches;

	for (batches = 0; !vif->broken && !is_empty(vif, &produced); batches++) {
		if (produced - vif->transmit_taken > NETIF_RING) {
			break_off(vif, "its transmit ring is nonsense");
			break;
		}
		if (batches == TURN) {
			xen_service_request();
			return false;
		}
		if (!serve_batch(vif, produced))
			return vif->broken;
	}
	return true;
}

/* ---- Events -------------------------------------------------------------------------- */

void xen_vif_notify(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_VIFS; i++) {
		struct vif *vif = &vifs[i];

		if (!vif->domain || !vif->notify)
			continue;
		vif->notify = false;
		vif->status.notified++;
		twin_original_evtchn_send(hardware_domain, vif->local_port);
	}
}

void xen_vif_service(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_VIFS; i++) {
		struct vif *vif = &vifs[i];

		if (!vif->domain || !__atomic_exchange_n(&vif->kicked, 0, __ATOMIC_ACQ_REL))
			continue;
		if (!serve(vif))
			__atomic_store_n(&vif->kicked, 1, __ATOMIC_RELEASE);
	}
}

static void serve_here(void)
{
	if (!xen_trylock()) {
		xen_service_request();
		return;
	}
	if (xen_attached()) {
		xen_transmit_complete();
		xen_vif_service();
		xen_vif_notify();
	}
	xen_unlock();
}

bool xen_vif_kick(const struct domain *domain, uint32_t port)
{
	uint32_t i;

	if (!xen_attached())
		return false;
	for (i = 0; i < TWIN_XEN_VIFS; i++) {
		struct vif *vif = &vifs[i];

		if (__atomic_load_n(&vif->domain, __ATOMIC_ACQUIRE) != domain ||
		    vif->remote_port != port)
			continue;
		xen_count(&vif->status.kicks);
		__atomic_store_n(&vif->kicked, 1, __ATOMIC_RELEASE);
		serve_here();
		return true;
	}
	return false;
}

static int evtchn_send(struct domain *domain, unsigned int port)
{
	return xen_vif_kick(domain, port) ? 0 : twin_original_evtchn_send(domain, port);
}
XEN_REPLACE(evtchn_send, evtchn_send);

/* ---- Connecting ----------------------------------------------------------------------- */

static struct vif *find(uint32_t domain, uint32_t handle)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_VIFS; i++)
		if (vifs[i].domain && vifs[i].status.domain == domain &&
		    vifs[i].status.handle == handle)
			return &vifs[i];
	return NULL;
}

static struct vif *find_free(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_VIFS; i++)
		if (!vifs[i].domain)
			return &vifs[i];
	return NULL;
}

static void disconnect(struct vif *vif)
{
	struct domain *domain = vif->domain;

	__atomic_store_n(&vif->domain, NULL, __ATOMIC_RELEASE);
	xen_put_domain(domain);
}

/* What was answered before is where it goes on: everything taken has been answered. */
static bool open_rings(struct vif *vif)
{
	return load(vif, vif->transmit_ring, NETIF_RESPONSE_PRODUCE, &vif->transmit_taken) &&
	       load(vif, vif->receive_ring, NETIF_RESPONSE_PRODUCE, &vif->receive_taken);
}

long xen_vif_connect(const struct twin_xen_vif *given)
{
	struct vif *vif = find_free();
	struct domain *domain;

	if (find(given->domain, given->handle))
		return -XEN_EBUSY;
	if (!vif)
		return -XEN_ENOSPC;
	domain = get_domain_by_id(given->domain);
	if (!domain)
		return -XEN_ENOENT;
	*vif = (struct vif){
		.status = { .domain = given->domain, .handle = given->handle, .connected = 1 },
		.transmit_ring = given->transmit_ring,
		.receive_ring = given->receive_ring,
		.local_port = given->local_port,
		.remote_port = given->remote_port,
		.kicked = 1,
	};
	memcpy(vif->mac, given->mac, sizeof(vif->mac));
	if (domain == hardware_domain || !open_rings(vif)) {
		xen_put_domain(domain);
		return -XEN_EFAULT;
	}
	__atomic_store_n(&vif->domain, domain, __ATOMIC_RELEASE);
	xen_service_request();
	return 0;
}

long xen_vif_disconnect(uint32_t domain, uint32_t handle)
{
	struct vif *vif = find(domain, handle);

	if (!vif)
		return -XEN_ENOENT;
	disconnect(vif);
	return 0;
}

void xen_vif_disconnect_all(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_VIFS; i++)
		if (vifs[i].domain)
			disconnect(&vifs[i]);
}

void xen_vif_status(struct twin_xen_status *status)
{
	uint32_t i;

	status->vifs = 0;
	for (i = 0; i < TWIN_XEN_VIFS; i++) {
		status->vif[i] = vifs[i].domain ? vifs[i].status : (struct twin_xen_vif_status){ 0 };
		status->vifs += status->vif[i].connected;
	}
}
