/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A guest's interface, shared by the files of the backend: vif.c has the table, address.c whose
 * an address is, ring.c the answers in a ring, pace.c when guests are looked at, deliver.c what
 * goes to guests, netback.c what comes from them.
 *
 * Guests are numbers of the table, and sets of them bits of a word: what is done for a packet or a
 * service takes as long beside seven idle guests as beside none.
 *
 * Everything here is called with xen_lock taken, unless it says otherwise.
 */
#ifndef TWIN_XEN_VIF_H
#define TWIN_XEN_VIF_H

#include <twin/bridge.h>

#include "netif.h"
#include "platform.h"

#define ETHERNET_ADDRESS 6u

/* Answers that are written at once, at most. */
#define VIF_ANSWERS 16u

/* A ring; its numbers run freely. */
struct vif_ring {
	uint64_t at;		/* dom0 address */
	uint32_t size;		/* bytes of an entry */
	uint32_t written;	/* answers that are in the ring; later ones are in answers[] */
	uint32_t taken;		/* requests, which have their answers */
	uint32_t seen;		/* requests that were there, at least */
	uint32_t published;	/* answers that the guest is shown */
	uint32_t told;		/* ... of which those up to here are no longer news */
	uint8_t answers[VIF_ANSWERS * sizeof(struct netif_tx_request)];	/* from `written` on */
};

/* Requests for frames, copied; those from `taken` on are not used yet. */
#define VIF_REQUESTS 16u
struct vif_requests {
	struct netif_rx_request request[VIF_REQUESTS];
	uint32_t from, count;	/* numbers of the ring */
};

struct vif {
	struct domain *domain;		/* NULL: free */
	struct twin_xen_vif_status status;
	struct vif_ring transmit, receive;
	struct vif_requests frames;
	uint32_t local_port, remote_port;
	uint8_t mac[ETHERNET_ADDRESS];
	uint32_t number;		/* of its entry */
	uint32_t window;		/* packets that it has sent since the window began */
	int64_t began;			/* ns, if it is alone: when its window began */
	bool paced;			/* it does not notify for each (pace.c) */
	uint8_t singles;		/* its last windows, up to that many, had one packet each */
	uint8_t features;		/* TWIN_XEN_VIF_* */
	bool broken;
};

/* Kicks look at domain and port of any entry without the lock. */
extern struct vif xen_vifs[TWIN_XEN_VIFS];
_Static_assert(TWIN_XEN_VIFS <= 64, "a bit of a word each");

/* Those that are connected. Kicks read it without the lock. */
extern uint64_t xen_vif_present;
/* Those that are to be served, whoever says so: atomically. */
extern uint64_t xen_vif_kicked;
/* Those that may be owed answers or events, or are looked at when a window ends: all others have
 * seen everything. Whoever serves or delivers to a guest puts it there, xen_vif_answer() takes it
 * away. */
extern uint64_t xen_vif_active;

static inline uint64_t xen_vif_bit(const struct vif *vif)
{
	return 1ull << vif->number;
}

/* One of a set that is not empty. */
static inline struct vif *xen_vif_first(uint64_t guests)
{
	return &xen_vifs[__builtin_ctzll(guests)];
}

/* Serve it no more; why is for the console. */
void xen_vif_break(struct vif *vif, const char *why);

/* An index of a ring; false if the ring is not there. */
static inline bool xen_ring_load(uint64_t ring, uint32_t field, uint32_t *value)
{
	return xen_dom0_read(value, ring + field, sizeof(*value));
}

static inline uint64_t xen_ring_entry(uint64_t ring, uint32_t index, uint32_t size)
{
	return ring + NETIF_RING_HEADER + (uint64_t)(index % NETIF_RING) * size;
}

/* ---- ring.c ---- */

/* Go on where it was answered before. `size` is that of an entry. False if the ring is not
 * there. */
bool xen_ring_open(struct vif_ring *ring, uint64_t at, uint32_t size);
/* Write what is kept. False if the ring is not there. */
bool xen_ring_write(struct vif_ring *ring);

/* The answer to the next request: the first 8 bytes of an entry, and zeroes. False if the ring is
 * not there. */
static inline bool xen_ring_answer(struct vif_ring *ring, uint64_t answer)
{
	const uint32_t none = 0;
	uint8_t *place;

	if (ring->taken - ring->written == VIF_ANSWERS && !xen_ring_write(ring))
		return false;
	place = ring->answers + (ring->taken++ - ring->written) * ring->size;
	__builtin_memcpy(place + ring->size - sizeof(none), &none, sizeof(none));
	__builtin_memcpy(place, &answer, sizeof(answer));
	return true;
}

/* Show all answers. False if the ring is not there. */
bool xen_ring_publish(struct vif_ring *ring);
/* Whether the guest waits for an event about answers that it was shown. */
bool xen_ring_owes(struct vif_ring *ring);

/* ---- pace.c ---- */

/* Have the window end, if its end is not to come already. */
void xen_pace_set(void);
/* Whether a window has ended since this was asked last. */
bool xen_pace_over(void);
/* Guests are held from now on (xen_vif_hold); whether they are. */
void xen_pace_hold(void);
bool xen_pace_holds(void);
/* Whether its windows have one packet each, and none of them is ended by time. */
bool xen_pace_is_alone(const struct vif *vif);
/* One more packet that it has sent. */
void xen_pace_count(struct vif *vif);
/* Its window has ended. */
void xen_pace_end(struct vif *vif);
/* How many requests the guest is to have there when it notifies next. `over`: a window has
 * ended, and what the guest had was served. */
uint32_t xen_pace_ahead(struct vif *vif, bool over);

/* ---- address.c ---- */

/* Guests, or their addresses, have changed. */
void xen_address_update(void);
/* Those with that address, which is no group's: none or one, or more if they have the same. */
uint64_t xen_address_guests(const uint8_t *address);

/* ---- bridge.c: only with that stage ---- */

/* A guest has an address from now on, which no other has; whether. And has none any more. */
bool xen_bridge_add(const struct vif *vif);
void xen_bridge_remove(const struct vif *vif);
/* The way of its packet with that header, and the guests that it goes to, as bits of xen_vifs. */
enum twin_way xen_bridge_send(const struct vif *vif, const uint8_t *header, uint64_t *guests);
/* The packet stays where it is, and is asked for again. */
void xen_bridge_put_off(const struct vif *vif, const uint8_t *header, enum twin_way way);
/* Those who have a packet from the card, of one segment or more; 0: nobody. */
uint64_t xen_bridge_receive(const uint8_t *header, uint32_t segments);

/* ---- vif.c, netback.c ---- */

/* Deliver frames, show all answers to all guests, and send the events that are due. `over`: a window has ended. */
void xen_vif_answer(bool over);
/* Serve all that wait for it, here, or else by the tasklet. Not served, interrupts on */
void xen_vif_try(void);

/* What a guest is told of a packet. */
struct vif_marks {
	uint16_t flags;			/* NETRXF_* of its checksum */
	uint16_t gso_size;		/* 0: it is no large packet */
	uint8_t gso_type;
};

/* Give a packet to guests that are connected; each may have no room. */
void xen_vif_give(uint64_t guests, const struct xen_bytes *bytes, const struct vif_marks *marks);
/* Whether so many requests for frames are there. */
bool xen_vif_has_requests(struct vif *vif, uint32_t count);

static inline bool xen_is_group(const uint8_t *address)
{
	return address[0] & 1;
}

/* Guests that a destination names. */
static inline uint64_t xen_vif_find(const uint8_t *destination)
{
	return xen_is_group(destination) ? xen_vif_present : xen_address_guests(destination);
}

#endif /* TWIN_XEN_VIF_H */
