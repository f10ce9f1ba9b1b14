/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A guest's interface, shared by the files of the backend: vif.c has the table and the
 * rings' indices, deliver.c what goes to guests, netback.c what comes from them.
 *
 * Everything here is called with xen_lock taken, unless it says otherwise.
 */
#ifndef TWIN_XEN_VIF_H
#define TWIN_XEN_VIF_H

#include "netif.h"
#include "platform.h"

#define ETHERNET_ADDRESS 6u

struct vif {
	struct domain *domain;		/* NULL: free */
	struct twin_xen_vif_status status;
	uint64_t transmit_ring, receive_ring;	/* dom0 addresses */
	uint32_t local_port, remote_port;
	uint8_t mac[ETHERNET_ADDRESS];
	uint32_t transmit_taken;	/* requests, which are answered at once */
	uint32_t receive_taken;
	uint32_t kicked;		/* atomically: it is to be served */
	uint8_t features;		/* TWIN_XEN_VIF_* */
	bool broken;
	bool notify;			/* an event is due */
};

/* Kicks look at domain and port of any entry without the lock. */
extern struct vif xen_vifs[TWIN_XEN_VIFS];

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

/* Publish responses up to `new`, of which those from `old` on are new, and note whether the
 * guest waits for an event. */
void xen_ring_publish(struct vif *vif, uint64_t ring, uint32_t old, uint32_t new);

/* What a guest is told of a packet. */
struct vif_marks {
	uint16_t flags;			/* NETRXF_* of its checksum */
	uint16_t gso_size;		/* 0: it is no large packet */
	uint8_t gso_type;
};

/*
 * Give a packet to the guests that its destination names, but `from` (or NULL). Whether
 * there is one; it may have had no room.
 */
bool xen_vif_switch(const struct vif *from, const uint8_t *destination,
		    const struct xen_bytes *bytes, const struct vif_marks *marks);

static inline bool xen_is_group(const uint8_t *address)
{
	return address[0] & 1;
}

#endif /* TWIN_XEN_VIF_H */
