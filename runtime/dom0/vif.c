// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The backend of guests' interfaces: the part of the standard protocol that xenstore is for
 * (xen/interface/io/netif.h). Rings are mapped and event channels bound here; the packets are
 * Xen's. It stands in for xen-netback: of the two, the one that is loaded first has the
 * devices of type "vif".
 *
 * xenbus calls probe, changes and remove from one thread of its own or from that which
 * unloads the module; RTNL keeps them and attach apart.
 */
#include "dom0.h"
#include <linux/etherdevice.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/stringify.h>
#include <xen/events.h>
#include <xen/interface/event_channel.h>
#include <xen/xenbus.h>
#include <asm/xen/hypercall.h>
#include <asm/xen/page.h>

struct twin_vif {
	struct list_head list;
	struct xenbus_device *xenbus;
	u32 handle;
	u8 mac[ETH_ALEN];
	u8 features;		/* TWIN_XEN_VIF_* */
	/* Once the frontend has initialised: */
	bool open;
	void *transmit_ring, *receive_ring;
	evtchn_port_t local_port, remote_port;
	int irq;
	bool in_xen;
	bool waits;		/* for another one to go */
};

static bool large = true;
module_param(large, bool, 0644);
MODULE_PARM_DESC(large, "offer packets in several pages and large ones of TCP to guests that come");

static LIST_HEAD(vifs);		/* under RTNL */
static atomic64_t kicks;

u64 twin_vif_kicks(void)
{
	return atomic64_read(&kicks);
}

u64 twin_vif_frame(void)
{
	struct twin_vif *vif;
	unsigned int level;

	ASSERT_RTNL();
	list_for_each_entry(vif, &vifs, list)
		if (vif->in_xen)
			return pte_mfn(*lookup_address((unsigned long)vif->transmit_ring, &level));
	return 0;
}

/*
 * A guest's notification, which Xen did not take: the driver is not attached. The guest is
 * served when it is. Nothing is done for it here, and Linux is told so: it lets later ones of a
 * guest that goes on notifying wait, up to a second, instead of having dom0 do nothing else.
 */
static irqreturn_t kicked(int irq, void *data)
{
	atomic64_inc(&kicks);
	xen_irq_lateeoi(irq, XEN_EOI_FLAG_SPURIOUS);
	return IRQ_HANDLED;
}

/* ---- Xen ---- */

static struct twin_xen_vif description(const struct twin_vif *vif)
{
	struct twin_xen_vif told = {
		.domain = vif->xenbus->otherend_id,
		.handle = vif->handle,
		.transmit_ring = (u64)vif->transmit_ring,
		.receive_ring = (u64)vif->receive_ring,
		.local_port = vif->local_port,
		.remote_port = vif->remote_port,
		.features = vif->features,
	};

	memcpy(told.mac, vif->mac, ETH_ALEN);
	return told;
}

/* Why, for an administrator (platform/xen/vif.c, xen_vif_connect). */
static const char *refusal(int error)
{
	switch (error) {
	case -ENOSPC:
		return "Xen refuses the interface: it serves " __stringify(TWIN_XEN_VIFS) " already";
	case -EEXIST:
		return "Xen refuses the interface: with the stage bridge its address (mac) must not be another guest's";
	case -EINVAL:
		return "Xen refuses the interface: with the stage bridge its address (mac) must be no group's";
	default:
		return "Xen refuses the interface";
	}
}

/* Another interface has what it needs, and may go: its guest is moved to another domain of this host, where the one that it
 * is moved from is there for some time yet. */
static bool may_wait(int error)
{
	return error == -ENOSPC || error == -EEXIST;
}

/* The guest and `xl` see the refusal in xenstore. One that waits is served when there is room (connect_waiting). */
static int connect_in_xen(struct twin_vif *vif)
{
	struct twin_xen_vif told = description(vif);
	int error = twin_xen_call_patiently(TWIN_XEN_CONNECT, &told, sizeof(told));

	vif->in_xen = !error;
	vif->waits = may_wait(error);
	if (vif->waits) {
		xenbus_dev_error(vif->xenbus, error, "%s", refusal(error));
		return 0;
	}
	if (error)
		xenbus_dev_fatal(vif->xenbus, error, "%s", refusal(error));
	return error;
}

static void connect_waiting(void)
{
	struct twin_vif *vif;

	list_for_each_entry(vif, &vifs, list)
		if (vif->waits && twin_attached() && !connect_in_xen(vif) && vif->in_xen)
			TWIN_LOG(info, "%s is served now", vif->xenbus->nodename);
}

void twin_vif_connect_all(void)
{
	struct twin_vif *vif;

	ASSERT_RTNL();
	list_for_each_entry(vif, &vifs, list)
		if (vif->open)
			connect_in_xen(vif);
}

/* ---- Connection with the frontend ---- */

static int map_rings(struct twin_vif *vif, u32 transmit, u32 receive)
{
	int error = xenbus_map_ring_valloc(vif->xenbus, &transmit, 1, &vif->transmit_ring);

	if (error)
		return error;
	error = xenbus_map_ring_valloc(vif->xenbus, &receive, 1, &vif->receive_ring);
	if (error)
		xenbus_unmap_ring_vfree(vif->xenbus, vif->transmit_ring);
	return error;
}

static void unmap_rings(struct twin_vif *vif)
{
	xenbus_unmap_ring_vfree(vif->xenbus, vif->transmit_ring);
	xenbus_unmap_ring_vfree(vif->xenbus, vif->receive_ring);
}

/* Xen must know the number of dom0's port, and Linux gives only that of its interrupt. */
static int bind_port(struct twin_vif *vif, u32 remote)
{
	struct evtchn_bind_interdomain bind = {
		.remote_dom = vif->xenbus->otherend_id,
		.remote_port = remote,
	};
	int error = HYPERVISOR_event_channel_op(EVTCHNOP_bind_interdomain, &bind);

	if (error)
		return error;
	vif->local_port = bind.local_port;
	vif->remote_port = remote;
	vif->irq = bind_evtchn_to_irqhandler_lateeoi(bind.local_port, kicked, 0, "twin-vif", vif);
	if (vif->irq < 0) {
		struct evtchn_close close = { .port = bind.local_port };

		HYPERVISOR_event_channel_op(EVTCHNOP_close, &close);
		return vif->irq;
	}
	return 0;
}

static int open_vif(struct twin_vif *vif)
{
	struct xenbus_device *dev = vif->xenbus;
	u32 transmit, receive, port;
	int error = xenbus_gather(XBT_NIL, dev->otherend, "tx-ring-ref", "%u", &transmit,
				  "rx-ring-ref", "%u", &receive, "event-channel", "%u", &port, NULL);

	if (error) {
		xenbus_dev_fatal(dev, error, "%s has no rings or event channel", dev->otherend);
		return error;
	}
	if (!xenbus_read_unsigned(dev->otherend, "request-rx-copy", 0)) {
		xenbus_dev_fatal(dev, -EOPNOTSUPP, "%s wants pages, not copies", dev->otherend);
		return -EOPNOTSUPP;
	}
	vif->features = 0;
	if (xenbus_read_unsigned(dev->otherend, "feature-sg", 0))
		vif->features |= TWIN_XEN_VIF_PAGES;
	if (xenbus_read_unsigned(dev->otherend, "feature-gso-tcpv4", 0))
		vif->features |= TWIN_XEN_VIF_LARGE;
	error = map_rings(vif, transmit, receive);
	if (error) {
		xenbus_dev_fatal(dev, error, "mapping the rings");
		return error;
	}
	error = bind_port(vif, port);
	if (error) {
		unmap_rings(vif);
		xenbus_dev_fatal(dev, error, "binding the event channel");
		return error;
	}
	vif->open = true;
	return twin_attached() ? connect_in_xen(vif) : 0;
}

/* Xen first, however long that takes: after that it uses neither rings nor port. */
static void close_vif(struct twin_vif *vif)
{
	struct twin_xen_vif told = description(vif);

	if (!vif->open)
		return;
	if (vif->in_xen && twin_attached())
		twin_xen_call_patiently(TWIN_XEN_DISCONNECT, &told, sizeof(told));
	vif->in_xen = vif->waits = false;
	vif->open = false;
	unbind_from_irqhandler(vif->irq, vif);
	unmap_rings(vif);
	connect_waiting();
}

/* ---- xenbus ---- */

static int publish(struct xenbus_device *dev)
{
	int error = xenbus_printf(XBT_NIL, dev->nodename, "feature-rx-copy", "%d", 1);

	if (!error)
		error = xenbus_printf(XBT_NIL, dev->nodename, "feature-rx-flip", "%d", 0);
	if (!error)
		error = xenbus_printf(XBT_NIL, dev->nodename, "feature-sg", "%d", large);
	if (!error)
		error = xenbus_printf(XBT_NIL, dev->nodename, "feature-gso-tcpv4", "%d", large);
	return error ? error : xenbus_switch_state(dev, XenbusStateInitWait);
}

static int read_mac(struct twin_vif *vif)
{
	char *words = xenbus_read(XBT_NIL, vif->xenbus->nodename, "mac", NULL);
	int error;

	if (IS_ERR(words))
		return PTR_ERR(words);
	error = mac_pton(words, vif->mac) ? 0 : -EINVAL;
	kfree(words);
	return error;
}

static int probe(struct xenbus_device *dev, const struct xenbus_device_id *id)
{
	struct twin_vif *vif = kzalloc(sizeof(*vif), GFP_KERNEL);
	int error;

	if (!vif)
		return -ENOMEM;
	vif->xenbus = dev;
	vif->handle = xenbus_read_unsigned(dev->nodename, "handle", 0);
	error = read_mac(vif);
	if (!error)
		error = publish(dev);
	if (error) {
		xenbus_dev_fatal(dev, error, "no address (mac), or xenstore");
		kfree(vif);
		return error;
	}
	dev_set_drvdata(&dev->dev, vif);
	rtnl_lock();
	list_add_tail(&vif->list, &vifs);
	rtnl_unlock();
	return 0;
}

static void remove(struct xenbus_device *dev)
{
	struct twin_vif *vif = dev_get_drvdata(&dev->dev);

	rtnl_lock();
	close_vif(vif);
	list_del(&vif->list);
	rtnl_unlock();
	dev_set_drvdata(&dev->dev, NULL);
	kfree(vif);
}

static void frontend_ready(struct twin_vif *vif)
{
	int error;

	if (vif->xenbus->state != XenbusStateInitWait)
		return;
	rtnl_lock();
	error = open_vif(vif);
	rtnl_unlock();
	if (!error)
		xenbus_switch_state(vif->xenbus, XenbusStateConnected);
}

static void frontend_leaves(struct twin_vif *vif, enum xenbus_state state)
{
	rtnl_lock();
	close_vif(vif);
	rtnl_unlock();
	xenbus_switch_state(vif->xenbus, state);
}

static void changed(struct xenbus_device *dev, enum xenbus_state frontend)
{
	struct twin_vif *vif = dev_get_drvdata(&dev->dev);

	switch (frontend) {
	case XenbusStateInitialising:
		/* It begins anew: it had closed, or its kernel ended without a word. */
		if (dev->state != XenbusStateInitWait)
			frontend_leaves(vif, XenbusStateInitWait);
		break;
	case XenbusStateInitialised:
	case XenbusStateConnected:
		frontend_ready(vif);
		break;
	case XenbusStateClosing:
		frontend_leaves(vif, XenbusStateClosing);
		break;
	case XenbusStateClosed:
		frontend_leaves(vif, XenbusStateClosed);
		if (!xenbus_dev_is_online(dev))
			device_unregister(&dev->dev);
		break;
	case XenbusStateUnknown:
		/* The guest is gone, with its part of xenstore. */
		frontend_leaves(vif, XenbusStateClosed);
		device_unregister(&dev->dev);
		break;
	case XenbusStateInitWait:
	case XenbusStateReconfiguring:
	case XenbusStateReconfigured:
		break;
	}
}

static const struct xenbus_device_id ids[] = { { "vif" }, { "" } };

static struct xenbus_driver driver = {
	.name = "twin-vif",
	.ids = ids,
	.probe = probe,
	.remove = remove,
	.otherend_changed = changed,
};

int twin_vif_init(void)
{
	return xenbus_register_backend(&driver);
}

void twin_vif_exit(void)
{
	xenbus_unregister_driver(&driver);
}
