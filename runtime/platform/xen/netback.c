// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The backend of the standard protocol (io/netif.h): packets from guests.
 *
 * A guest sends an event when it has put packets into its transmit ring. Xen brings it
 * here (evtchn_send) instead of to dom0: the packets are served at once, on the guest's
 * own processor and in its own hypercall. A guest that sends many is looked at from time
 * to time instead (pace.c). Frames that the card has received are copied to the guest's
 * receive ring when the driver has given them (receive.c).
 *
 *   guest ── event ──> [transmit ring] ── copy ──> buffer ──> driver ──> card
 *     ^                                     └─────> other guests' receive rings
 *     └── event ── [receive ring] <── copy ── queue <── driver <── card
 *
 * Answers are written where a request is served, and shown to guests, with the events that
 * they wait for, when all has been served (xen_vif_answer): before the lock is given up.
 *
 * A ring is a page that guest and dom0 share; dom0 has it mapped, and so it is in the
 * window. Every entry is copied once, then judged, and the copy is what is used. A guest
 * whose ring is nonsense is not served any more.
 */
#include <twin/guest.h>

#include "vif.h"

/* What a guest's packets may be: what a number of 16 bits can say, and the buffers of that. */
#define LARGEST 65535u
_Static_assert((LARGEST - HOT_HEADER + NETIF_GRANT_SIZE - 1) / NETIF_GRANT_SIZE <= HOT_FRAGMENTS,
	       "the driver takes as many");
_Static_assert(NETIF_SMALLEST_SEGMENT == HOT_MIN_GSO_SIZE && NETIF_GSO_TCPV4 == HOT_GSO_TCPV4,
	       "large packets are the same to guests and hot routines");
/* Entries of a guest's ring before others have their turn, and the rest of a batch: a packet of one piece has
 * one, a large one has one for each page. */
#define TURN 64u

/* A packet that was taken from a ring and is on its way. */
struct taken {
	struct netif_packet packet;
	uint8_t header[HOT_HEADER];
	uint32_t buffer;
	uint64_t guests;	/* that have it */
	enum twin_way way;	/* what the bridge says, if there is that stage */
};
/* One processor at a time is served. */
static struct taken batch[XEN_TRANSMIT_BATCH];
static struct xen_packet packets[XEN_TRANSMIT_BATCH];

/* Where byte `at` of the packet goes, and how many with it. */
static uint8_t *place_of(struct taken *taken, uint32_t at, uint32_t *room)
{
	const uint32_t rest = at - HOT_HEADER;

	if (at < HOT_HEADER) {
		*room = HOT_HEADER - at;
		return taken->header + at;
	}
	*room = NETIF_GRANT_SIZE - rest % NETIF_GRANT_SIZE;
	return (uint8_t *)xen_buffer_page(taken->buffer, rest) + rest % NETIF_GRANT_SIZE;
}

/* A piece is a page at most: the end of the header and the start of the first buffer, or the
 * end of a buffer and the start of the next. */
static bool copy_piece(struct vif *vif, struct taken *taken, const struct netif_piece *piece,
		       uint32_t at)
{
	struct xen_part parts[XEN_GRANT_PARTS];
	uint32_t count = 0, done, room;

	for (done = 0; done < piece->size; done += room) {
		uint8_t *to = place_of(taken, at + done, &room);

		if (count == XEN_GRANT_PARTS)
			return false;
		if (room > (uint32_t)piece->size - done)
			room = piece->size - done;
		parts[count++] = (struct xen_part){ .to = to, .bytes = room };
	}
	return xen_grant_read(vif->domain, piece->reference, piece->offset, parts, count);
}

/* The only piece: what follows the header has room in one buffer. */
static bool copy_only_piece(struct vif *vif, struct taken *taken)
{
	const struct netif_piece *piece = &taken->packet.piece[0];
	struct xen_part parts[XEN_GRANT_PARTS] = { { .to = taken->header, .bytes = piece->size } };

	if (piece->size <= HOT_HEADER)
		return xen_grant_read(vif->domain, piece->reference, piece->offset, parts, 1);
	parts[0].bytes = HOT_HEADER;
	parts[1].to = xen_buffer_page(taken->buffer, 0);
	parts[1].bytes = piece->size - HOT_HEADER;
	return xen_grant_read(vif->domain, piece->reference, piece->offset, parts, 2);
}

/* Copy the packet's pieces: the header, then the buffers. */
static bool copy_in(struct vif *vif, struct taken *taken)
{
	uint32_t i, at = 0;

	if (taken->packet.pieces == 1)
		return copy_only_piece(vif, taken);
	for (i = 0; i < taken->packet.pieces; i++) {
		if (!copy_piece(vif, taken, &taken->packet.piece[i], at))
			return false;
		at += taken->packet.piece[i].size;
	}
	return true;
}

/* A struct netif_tx_response, for entry i. The extra one, which is the second, was no request. */
static uint64_t response_to(const struct netif_packet *packet, uint32_t i, int16_t status)
{
	const uint32_t extra = packet->entries - packet->pieces;
	struct netif_tx_response response = { .status = NETIF_RSP_NULL };
	uint32_t bytes;

	if (!extra || i != 1)
		response = (struct netif_tx_response){
			.id = packet->piece[i ? i - extra : 0].id, .status = status,
		};
	__builtin_memcpy(&bytes, &response, sizeof(bytes));
	return bytes;
}

static bool answer_all(struct vif *vif, const struct netif_packet *packet, int16_t status)
{
	uint32_t i;

	for (i = 0; i < packet->entries; i++)
		if (!xen_ring_answer(&vif->transmit, response_to(packet, i, status)))
			return false;
	return true;
}

/* Of the only entry, as most packets have. */
static bool answer_only(struct vif *vif, const struct netif_packet *packet, int16_t status)
{
	return xen_ring_answer(&vif->transmit,
			       packet->piece[0].id | (uint32_t)(uint16_t)status << 16);
}

static void respond(struct vif *vif, const struct taken *taken, int16_t status)
{
	const struct netif_packet *packet = &taken->packet;

	if (!(packet->entries == 1 ? answer_only(vif, packet, status) :
				     answer_all(vif, packet, status)))
		xen_vif_break(vif, "its ring is gone");
}

/* Whether the packet goes on after entry i of those. */
static bool goes_on(const struct netif_tx_request *entries, uint32_t i)
{
	const bool extra = entries[0].flags & NETTXF_EXTRA_INFO;

	if (!i)
		return entries[0].flags & (NETTXF_EXTRA_INFO | NETTXF_MORE_DATA);
	if (extra && i == 1)
		return entries[0].flags & NETTXF_MORE_DATA;
	return entries[i].flags & NETTXF_MORE_DATA;
}

/* Entries of the ring that were copied, and are not judged yet: of the batch that is served. */
#define COPIED 32u
static struct netif_tx_request copied[COPIED];
static uint32_t copied_from, copied_count;
_Static_assert(COPIED >= NETIF_ENTRIES, "a packet is in them");

/* Copy entries from `at` on: `available` of them, or as many as there is place for. The ring's
 * end may be between. */
static bool copy_entries(const struct vif *vif, uint32_t at, uint32_t available)
{
	const uint32_t count = available < COPIED ? available : COPIED;
	const uint32_t before_end = NETIF_RING - at % NETIF_RING;
	const uint32_t first = count < before_end ? count : before_end;
	const uint32_t size = sizeof(*copied);

	copied_from = at;
	copied_count = 0;
	if (!xen_dom0_read(copied, xen_ring_entry(vif->transmit.at, at, size), first * size) ||
	    (count > first && !xen_dom0_read(copied + first, xen_ring_entry(vif->transmit.at, 0, size),
					     (count - first) * size)))
		return false;
	copied_count = count;
	return true;
}

static bool has_copied(uint32_t at, uint32_t count)
{
	const uint32_t judged = at - copied_from;

	return judged <= copied_count && copied_count - judged >= count;
}

/* Those of the packet at `at`, of which so many are in the ring, one at least; *count is how many it has, if
 * they are all there. NULL: the ring is not there. */
static const struct netif_tx_request *entries_at(const struct vif *vif, uint32_t at,
						 uint32_t available, uint32_t *count)
{
	const uint32_t most = available < NETIF_ENTRIES ? available : NETIF_ENTRIES;
	const struct netif_tx_request *entries;

	if (!has_copied(at, most) && !copy_entries(vif, at, available))
		return NULL;
	entries = copied + (at - copied_from);
	for (*count = 1; *count < most && goes_on(entries, *count - 1); ++*count)
		;
	return entries;
}

enum taking {
	TAKING_DONE,
	TAKING_HALF,		/* the rest of the packet is not there, or nothing can be */
	TAKING_NO_BUFFER,
};

/* The next packet of the ring into *taken, at entry `at`. */
static enum taking take_packet(struct vif *vif, uint32_t at, uint32_t produced, struct taken *taken)
{
	uint32_t count;
	const struct netif_tx_request *entries = entries_at(vif, at, produced - at, &count);

	if (!entries)
		return TAKING_HALF;
	switch (netif_parse(entries, count, &taken->packet)) {
	case NETIF_PACKET:
		break;
	case NETIF_INCOMPLETE:
		return TAKING_HALF;
	case NETIF_EXTRA:
		xen_vif_break(vif, "an extra entry that was not offered");
		return TAKING_HALF;
	case NETIF_MALFORMED:
		xen_vif_break(vif, "a malformed packet");
		return TAKING_HALF;
	}
	taken->buffer = XEN_NO_BUFFER;
	if (taken->packet.size <= HOT_HEADER || taken->packet.size > LARGEST)
		return TAKING_DONE;
	taken->buffer = xen_buffer_get((taken->packet.size - HOT_HEADER + NETIF_GRANT_SIZE - 1) /
				       NETIF_GRANT_SIZE);
	return taken->buffer == XEN_NO_BUFFER ? TAKING_NO_BUFFER : TAKING_DONE;
}

static bool describe(struct vif *vif, struct taken *taken, struct xen_packet *packet)
{
	const uint32_t size = taken->packet.size;

	*packet = (struct xen_packet){
		.header = taken->header,
		.header_length = size < HOT_HEADER ? size : HOT_HEADER,
		.rest = size < HOT_HEADER ? 0 : size - HOT_HEADER,
		.buffer = taken->buffer,
		.gso_size = taken->packet.gso_size,
		.gso_type = taken->packet.gso_type,
		.result = HOT_INVALID,
	};
	if (size > LARGEST || !copy_in(vif, taken))
		return false;
	if (packet->gso_size &&
	    !netif_can_segment(&taken->packet, taken->header, packet->header_length))
		return false;
	return !(taken->packet.flags & NETTXF_CSUM_BLANK) ||
	       netif_checksum(taken->header, packet->header_length, &packet->checksum_start,
			      &packet->checksum_offset);
}

/* What becomes of a packet. */
enum fate {
	FATE_SEND,
	FATE_LOCAL,
	FATE_DROPPED,		/* by the bridge */
	FATE_SPOOFED,		/* the same */
	FATE_REFUSED,		/* for what it is */
};

static __attribute__((noinline)) enum fate fate_by_bridge(const struct vif *vif, struct taken *taken)
{
	taken->way = xen_bridge_send(vif, taken->header, &taken->guests);
	switch (taken->way) {
	case TWIN_WAY_WIRE:
	case TWIN_WAY_BOTH:
		return FATE_SEND;
	case TWIN_WAY_GUESTS:
		return FATE_LOCAL;
	case TWIN_WAY_SPOOFED:
		return FATE_SPOOFED;
	case TWIN_WAY_NOWHERE:
	case TWIN_WAY_STORM:
		break;
	}
	return FATE_DROPPED;
}

static enum fate fate_of(const struct vif *vif, struct taken *taken)
{
	if (xen_stages.bridge)
		return fate_by_bridge(vif, taken);
	taken->guests = xen_vif_find(taken->header) & ~xen_vif_bit(vif);
	/* Not only for guests that are here. */
	return !taken->guests || xen_is_group(taken->header) ? FATE_SEND : FATE_LOCAL;
}

/* It stays in the ring, and the bridge will be asked again. */
static void put_off(const struct vif *vif, const struct taken *taken)
{
	if (xen_stages.bridge)
		xen_bridge_put_off(vif, taken->header, taken->way);
}

/* To other guests. Only when the ring will have its answer: a packet that has to wait for the
 * driver comes here again. */
static void switch_out(const struct taken *taken, const struct xen_packet *packet)
{
	const struct xen_bytes bytes = {
		.first = taken->header,
		.first_length = packet->header_length,
		.buffer = taken->buffer,
		.buffer_length = packet->rest,
	};
	const uint32_t flags = taken->packet.flags;
	struct vif_marks marks = {
		.gso_size = packet->gso_size, .gso_type = packet->gso_type,
	};

	if (flags & (NETTXF_CSUM_BLANK | NETTXF_DATA_VALIDATED))
		marks.flags |= NETRXF_DATA_VALIDATED;
	if (flags & NETTXF_CSUM_BLANK)
		marks.flags |= NETRXF_CSUM_BLANK;
	xen_vif_give(taken->guests, &bytes, &marks);
}

/* With an answer, NETIF_RSP_*. The bridge counts what it drops. */
static void finish(struct vif *vif, const struct taken *taken, int16_t answer)
{
	respond(vif, taken, answer);
	xen_pace_count(vif);
	if (answer == NETIF_RSP_OKAY) {
		vif->status.sent++;
		vif->status.sent_bytes += taken->packet.size;
	} else if (answer == NETIF_RSP_ERROR) {
		vif->status.refused++;
	}
}

static int16_t answer_to(enum fate fate)
{
	switch (fate) {
	case FATE_SEND:
	case FATE_LOCAL:
		return NETIF_RSP_OKAY;
	case FATE_DROPPED:
		return NETIF_RSP_DROPPED;
	case FATE_SPOOFED:
	case FATE_REFUSED:
		break;
	}
	return NETIF_RSP_ERROR;
}

static void release(const struct taken *taken)
{
	if (taken->buffer != XEN_NO_BUFFER)
		xen_buffer_return(taken->buffer);
}

/* Whether a packet is a frame that only the card's state may have kept from the wire: others have
 * it if its destination is theirs. What the driver refuses for what it is, nobody has. */
static bool is_sound(uint32_t result)
{
	return result == HOT_SENT || result == HOT_DOWN;
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
		if (!waits && is_sound(result) && xen_is_group(batch[i].header))
			switch_out(&batch[i], &packets[i]);
		if (!alive || result != HOT_SENT)
			release(&batch[i]);
		if (waits)
			put_off(vif, &batch[i]);
		else
			finish(vif, &batch[i], alive && result == HOT_SENT ? NETIF_RSP_OKAY :
							  NETIF_RSP_ERROR);
	}
	return alive && !waits;
}

enum served {
	SERVED_SOME,		/* there may be more */
	SERVED_HALF,		/* the guest has put half a packet there, and nothing before it */
	SERVED_WAITS,		/* for the driver, or a buffer */
};

/*
 * One batch: packets are taken until there is no more, or one is not for the card: that
 * one is answered after those before it.
 */
static enum served serve_batch(struct vif *vif, uint32_t produced)
{
	enum fate fate = FATE_SEND;
	enum taking taking = TAKING_DONE;
	uint32_t count = 0, at = vif->transmit.taken;

	copied_count = 0;	/* another guest's, or another time's */
	while (count < XEN_TRANSMIT_BATCH && at != produced && at - vif->transmit.taken < TURN) {
		taking = take_packet(vif, at, produced, &batch[count]);
		if (taking != TAKING_DONE)
			break;
		at += batch[count].packet.entries;
		fate = describe(vif, &batch[count], &packets[count]) ? fate_of(vif, &batch[count]) :
								       FATE_REFUSED;
		if (fate != FATE_SEND)
			break;
		count++;
	}
	if (!send(vif, count)) {
		if (fate != FATE_SEND)
			release(&batch[count]);
		if (fate != FATE_SEND && fate != FATE_REFUSED)
			put_off(vif, &batch[count]);
		return SERVED_WAITS;
	}
	if (fate == FATE_LOCAL)
		switch_out(&batch[count], &packets[count]);
	if (fate != FATE_SEND) {
		release(&batch[count]);
		finish(vif, &batch[count], answer_to(fate));
	}
	if (count || fate != FATE_SEND)
		return SERVED_SOME;
	return taking == TAKING_NO_BUFFER ? SERVED_WAITS : SERVED_HALF;
}

/* Ask for an event at that request; *produced is what is there after that. False: the ring is not
 * there. */
static bool ask_for_event(struct vif *vif, uint32_t event, uint32_t *produced)
{
	const uint64_t ring = vif->transmit.at;

	if (!xen_dom0_write(ring + NETIF_REQUEST_EVENT, &event, sizeof(event)))
		return false;
	__asm__ volatile("mfence" ::: "memory");
	return xen_ring_load(ring, NETIF_REQUEST_PRODUCE, produced);
}

/*
 * Whether there are requests that the guest does not notify for, up to *produced. Where there
 * are none, an event is asked for, and then the ring is looked at once more. A guest that is
 * paced may have put some there by then, fewer than it notifies for: the end of the window
 * is theirs.
 */
static bool has_requests(struct vif *vif, bool over, uint32_t *produced)
{
	struct vif_ring *ring = &vif->transmit;
	uint32_t ahead;

	if (!xen_ring_load(ring->at, NETIF_REQUEST_PRODUCE, produced))
		return false;
	if (*produced != ring->taken)
		return true;
	ahead = xen_pace_ahead(vif, over);
	return ask_for_event(vif, ring->taken + ahead, produced) &&
	       *produced - ring->taken >= ahead;
}

/* Half a packet is there: an event is asked for at its next entry. Whether that came meanwhile. */
static bool goes_on_by_now(struct vif *vif, uint32_t produced)
{
	uint32_t now;

	return ask_for_event(vif, produced + 1, &now) && now != produced;
}

enum rest { REST_NONE, REST_ITS_TURN, REST_WAITS };

/* What is left: its packets wait for the driver, or for their turn. A guest that goes on filling
 * its ring does not keep the processor. */
static enum rest serve(struct vif *vif, bool over)
{
	const uint32_t before = vif->transmit.taken;
	uint32_t produced, halves = 0;
	enum served served;

	while (!vif->broken && has_requests(vif, over, &produced)) {
		if (produced - vif->transmit.taken > NETIF_RING) {
			xen_vif_break(vif, "its transmit ring is nonsense");
			break;
		}
		if (vif->transmit.taken - before + halves >= TURN) {
			xen_service_request();
			return REST_ITS_TURN;
		}
		served = serve_batch(vif, produced);
		if (served == SERVED_WAITS)
			return vif->broken ? REST_NONE : REST_WAITS;
		if (served == SERVED_HALF && !goes_on_by_now(vif, produced))
			break;
		halves += served == SERVED_HALF;
	}
	return REST_NONE;
}

/* ---- Events -------------------------------------------------------------------------- */

static void kick(uint64_t guests)
{
	__atomic_fetch_or(&xen_vif_kicked, guests, __ATOMIC_RELEASE);
}

/* Whether packets of it wait, and none could be taken. */
static bool attend(struct vif *vif, bool kicked, bool over)
{
	const uint32_t taken = vif->transmit.taken;
	const enum rest rest = kicked || (over && vif->paced) ? serve(vif, over) : REST_NONE;

	if (rest != REST_NONE)
		kick(xen_vif_bit(vif));
	/* No completion comes that would look again: dom0 has the queue frozen for a moment (netif_tx_lock). */
	if (rest == REST_WAITS && !xen_transmit_in_flight())
		xen_pace_set();
	if (over)
		xen_pace_end(vif);
	return rest == REST_WAITS && vif->transmit.taken == taken;
}

/* The next of a set that is not empty, from that number on and then from 0. */
static struct vif *next_of(uint64_t guests, uint32_t from)
{
	const uint64_t behind = guests & (~0ull << from);

	return xen_vif_first(behind ? behind : guests);
}

/*
 * All guests that are kicked or have a window, from `first` on. Who comes first has what there is too
 * little of, descriptors of the card and buffers: next time that is the first one that got none, else
 * the one behind the first.
 */
static void attend_all(bool over)
{
	static uint32_t first;
	const uint64_t kicked = __atomic_exchange_n(&xen_vif_kicked, 0, __ATOMIC_ACQ_REL);
	const uint64_t guests = (kicked | (over ? xen_vif_active : 0)) & xen_vif_present;
	uint32_t at = first, without = TWIN_XEN_VIFS;
	struct vif *vif;
	uint64_t rest;

	if (!guests)
		return;
	xen_vif_active |= guests;
	first = (next_of(guests, at)->number + 1) % TWIN_XEN_VIFS;
	for (rest = guests; rest; rest &= ~xen_vif_bit(vif)) {
		vif = next_of(rest, at);
		at = vif->number;
		if (attend(vif, kicked & xen_vif_bit(vif), over) && without == TWIN_XEN_VIFS)
			without = at;
	}
	if (without != TWIN_XEN_VIFS)
		first = without;
}

/* Those that do not notify for each packet are looked at afterwards as if they had. */
void xen_vif_hold(void)
{
	kick(xen_vif_present);
	xen_pace_hold();
}

void xen_vif_service(void)
{
	const bool over = xen_pace_over();

	if (!xen_pace_holds())
		attend_all(over);
	xen_vif_answer(over);
}

void xen_vif_try(void)
{
	/* Not every processor runs driver code (hotplug.c). */
	if (!xen_block_here() || !xen_trylock()) {
		xen_service_request();
		return;
	}
	if (xen_attached()) {
		xen_transmit_complete();
		xen_vif_service();
	}
	xen_unlock();
}

bool xen_vif_kick(const struct domain *domain, uint32_t port)
{
	uint64_t rest;

	if (!xen_attached())
		return false;
	for (rest = __atomic_load_n(&xen_vif_present, __ATOMIC_ACQUIRE); rest; rest &= rest - 1) {
		/* Not its own word of it: the entry may be about to be another guest's. */
		const uint32_t number = (uint32_t)__builtin_ctzll(rest);
		struct vif *vif = &xen_vifs[number];

		if (__atomic_load_n(&vif->domain, __ATOMIC_ACQUIRE) != domain ||
		    vif->remote_port != port)
			continue;
		xen_count(&vif->status.kicks);
		kick(1ull << number);
		xen_vif_try();
		return true;
	}
	return false;
}

static int evtchn_send(struct domain *domain, unsigned int port)
{
	return xen_vif_kick(domain, port) ? 0 : twin_original_evtchn_send(domain, port);
}
XEN_REPLACE(evtchn_send, evtchn_send);
