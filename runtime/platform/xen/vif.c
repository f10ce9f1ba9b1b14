// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The table of guests' interfaces: connecting, disconnecting, events, indices of rings.
 *
 * Each has a reference of its domain, which keeps the domain's structures; its memory may
 * go at any time, and then its grants are refused.
 */
#include "vif.h"

struct vif xen_vifs[TWIN_XEN_VIFS];

void xen_vif_break(struct vif *vif, const char *why)
{
	if (!vif->broken)
		printk(XEN_WARNING "twin: interface %u of domain %u is no longer served: %s\n",
		       vif->status.handle, vif->status.domain, why);
	vif->broken = true;
}

void xen_ring_publish(struct vif *vif, uint64_t ring, uint32_t old, uint32_t new)
{
	uint32_t event;

	if (!xen_dom0_write(ring + NETIF_RESPONSE_PRODUCE, &new, sizeof(new))) {
		xen_vif_break(vif, "its ring is gone");
		return;
	}
	/* The other side writes its event index, then looks for responses. */
	__asm__ volatile("mfence" ::: "memory");
	if (xen_ring_load(ring, NETIF_RESPONSE_EVENT, &event) && netif_is_due(old, new, event))
		vif->notify = true;
}

void xen_vif_notify(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_VIFS; i++) {
		struct vif *vif = &xen_vifs[i];

		if (!vif->domain || !vif->notify)
			continue;
		vif->notify = false;
		vif->status.notified++;
		twin_original_evtchn_send(hardware_domain, vif->local_port);
	}
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

static void disconnect(struct vif *vif)
{
	struct domain *domain = vif->domain;

	__atomic_store_n(&vif->domain, NULL, __ATOMIC_RELEASE);
	xen_put_domain(domain);
}

/* What was answered before is where it goes on: everything taken has been answered. */
static bool open_rings(struct vif *vif)
{
	return xen_ring_load(vif->transmit_ring, NETIF_RESPONSE_PRODUCE, &vif->transmit_taken) &&
	       xen_ring_load(vif->receive_ring, NETIF_RESPONSE_PRODUCE, &vif->receive_taken);
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
		.features = given->features,
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
