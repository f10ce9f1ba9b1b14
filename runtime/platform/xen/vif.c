// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The table of guests' interfaces: connecting, disconnecting, events.
 *
 * Each has a reference of its domain, which keeps the domain's structures; its memory may
 * go at any time, and then its grants are refused.
 */
#include "vif.h"

struct vif xen_vifs[TWIN_XEN_VIFS];
uint64_t xen_vif_present, xen_vif_kicked, xen_vif_active;

void xen_vif_break(struct vif *vif, const char *why)
{
	if (!vif->broken)
		printk(XEN_GUEST_WARNING "twin: interface %u of domain %u is no longer served: %s\n",
		       vif->status.handle, vif->status.domain, why);
	vif->broken = true;
}

/* ---- Events ---------------------------------------------------------------------------- */

/* Answers to packets that wait for an event at most: a quarter of the ring. */
#define UNSEEN (NETIF_RING / 4)

static void publish(struct vif *vif)
{
	if (!xen_ring_publish(&vif->transmit) || !xen_ring_publish(&vif->receive))
		xen_vif_break(vif, "its ring is gone");
}

/*
 * Of frames at once; with the stage `notify` when there are so many, when the window is over, or when there
 * is no room for so many: a guest that waits takes none.
 */
static bool is_time_of_frames(struct vif *vif, bool over)
{
	const uint32_t most = xen_stages.notify < UNSEEN ? xen_stages.notify : UNSEEN;
	const uint32_t waiting = vif->receive.published - vif->receive.told;

	return waiting >= most || over || vif->broken || !xen_vif_has_requests(vif, most - waiting);
}

/* Of packets sent at once; with the stage `pace` when the window is over, for all in it, or when there are
 * many; for one alone at once (pace.c). */
static bool is_time_of_answers(const struct vif *vif, bool over)
{
	return over || !xen_stages.pace || xen_pace_is_alone(vif) || vif->transmit.published - vif->transmit.told >= UNSEEN;
}

static bool is_event_due(struct vif *vif, bool over)
{
	publish(vif);
	return (xen_ring_owes(&vif->receive) && is_time_of_frames(vif, over)) ||
	       (xen_ring_owes(&vif->transmit) && is_time_of_answers(vif, over));
}

/* One channel is for both rings, and the guest looks at both when it has the event. */
static void send_event(struct vif *vif)
{
	vif->transmit.told = vif->transmit.published;
	vif->receive.told = vif->receive.published;
	vif->status.notified++;
	twin_original_evtchn_send(hardware_domain, vif->local_port);
}

static bool waits_for_window(const struct vif *vif)
{
	return vif->transmit.told != vif->transmit.published ||
	       vif->receive.told != vif->receive.published ||
	       (!vif->broken && xen_stages.pace && (vif->paced || (vif->window && !xen_pace_is_alone(vif))));
}

void xen_vif_answer(bool over)
{
	uint64_t rest;

	xen_receive_deliver();
	for (rest = xen_vif_active; rest; rest &= rest - 1) {
		struct vif *vif = xen_vif_first(rest);

		if (is_event_due(vif, over))
			send_event(vif);
		if (waits_for_window(vif))
			xen_pace_set();
		else
			xen_vif_active &= ~xen_vif_bit(vif);
	}
	if (xen_pace_holds())
		xen_pace_set();
}

/* Nobody is told of anything while the driver waits for dom0: what there is, now. */
void xen_vif_publish(void)
{
	xen_vif_answer(true);
}

/* ---- Merging ---- */

/* What a large packet takes of a frontend. */
#define MERGED (TWIN_XEN_VIF_PAGES | TWIN_XEN_VIF_LARGE)

/* Whether all guests' frontends take such, and there is one. */
static bool all_take_merged(void)
{
	uint32_t features = xen_vif_present ? MERGED : 0;
	uint64_t rest;

	for (rest = xen_vif_present; rest; rest &= rest - 1)
		features &= xen_vif_first(rest)->features;
	return features == MERGED;
}

/* Who is a segment's guest is known when it is one packet with others already. */
static void set_merging(void)
{
	xen_receive_merge(all_take_merged() ? xen_stages.aggregate : 0);
}

/* ---- Connecting ----------------------------------------------------------------------- */

static struct vif *find(uint32_t domain, uint32_t handle)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_VIFS; i++)
		if (xen_vifs[i].domain && xen_vifs[i].status.domain == domain &&
		    xen_vifs[i].status.handle == handle)
			return &xen_vifs[i];
	return NULL;
}

static struct vif *find_free(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_VIFS; i++)
		if (!xen_vifs[i].domain)
			return &xen_vifs[i];
	return NULL;
}

/* From now on kicks, packets and services find it, or do not. */
static void set_present(uint64_t guests)
{
	__atomic_store_n(&xen_vif_present, guests, __ATOMIC_RELEASE);
	xen_vif_active &= guests;
	xen_address_update();
	set_merging();
}

/* Nobody comes back to the guest's rings: what it waits for, it is told now. */
static void disconnect(struct vif *vif)
{
	struct domain *domain = vif->domain;

	if (is_event_due(vif, true))
		send_event(vif);
	if (xen_stages.bridge)
		xen_bridge_remove(vif);
	__atomic_store_n(&vif->domain, NULL, __ATOMIC_RELEASE);
	set_present(xen_vif_present & ~xen_vif_bit(vif));
	xen_put_domain(domain);
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
		.local_port = given->local_port,
		.remote_port = given->remote_port,
		.features = given->features,
		.number = (uint32_t)(vif - xen_vifs),
	};
	memcpy(vif->mac, given->mac, sizeof(vif->mac));
	if (domain == hardware_domain || !xen_ring_open(&vif->transmit, given->transmit_ring, sizeof(struct netif_tx_request)) ||
	    !xen_ring_open(&vif->receive, given->receive_ring, sizeof(struct netif_rx_request))) {
		xen_put_domain(domain);
		return -XEN_EFAULT;
	}
	if (xen_stages.bridge && !xen_bridge_add(vif)) {
		xen_put_domain(domain);
		return xen_is_group(vif->mac) ? -XEN_EINVAL : -XEN_EEXIST;
	}
	__atomic_store_n(&vif->domain, domain, __ATOMIC_RELEASE);
	set_present(xen_vif_present | xen_vif_bit(vif));
	/* It may have packets, and answers that were shown without an event, from before. */
	xen_vif_active |= xen_vif_bit(vif);
	__atomic_fetch_or(&xen_vif_kicked, xen_vif_bit(vif), __ATOMIC_RELEASE);
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
		if (xen_vifs[i].domain)
			disconnect(&xen_vifs[i]);
}

void xen_vif_status(struct twin_xen_status *status)
{
	uint32_t i;

	status->vifs = 0;
	for (i = 0; i < TWIN_XEN_VIFS; i++) {
		memset(&status->vif[i], 0, sizeof(status->vif[i]));
		if (xen_vifs[i].domain)
			status->vif[i] = xen_vifs[i].status;
		status->vifs += status->vif[i].connected;
	}
}
