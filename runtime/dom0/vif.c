// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The backend of guests' interfaces: the part of the standard protocol that xenstore is for
 * (xen/interface/io/netif.h). Rings are mapped and event channels bound here; the packets are
 * Xen's. It stands in for xen-netback: of the two, the one that is loaded first has the
 * devices of type "vif".
 *
 * xenbus calls probe, changes and remove from one thread of its own or from that which
 * unloads the module; RTNL keeps them and attach apart. xenstore's daemon may take its time, or not answer at all, so
 * nothing is asked of it, or told, with RTNL held: Xen's refusals are told by a work item.
 */
#include "dom0.h"
#include <linux/etherdevice.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/stringify.h>
#include <linux/workqueue.h>
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
	/* Once the frontend has initialised; open is xenbus's to write, and under RTNL: */
	bool open;
	void *transmit_ring, *receive_ring;
	evtchn_port_t local_port, remote_port;
	int irq;
	bool in_xen;
	bool waits;		/* for another one to go */
	int refusal;		/* Xen's, that xenstore is to be told of; 0: none. Under RTNL */
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

/* One whose refusal is to be told, with a reference; NULL. */
static struct xenbus_device *next_refused(int *error)
{
	struct twin_vif *vif;

	ASSERT_RTNL();
	list_for_each_entry(vif, &vifs, list) {
		if (!vif->refusal)
			continue;
		*error = vif->refusal;
		vif->refusal = 0;
		get_device(&vif->xenbus->dev);
		return vif->xenbus;
	}
	return NULL;
}

/* The guest and `xl` see it in xenstore. */
static void tell_refusals(struct work_struct *unused)
{
	struct xenbus_device *dev;
	int error;

	for (;;) {
		rtnl_lock();
		dev = next_refused(&error);
		rtnl_unlock();
		if (!dev)
			return;
		if (may_wait(error))
			xenbus_dev_error(dev, error, "%s", refusal(error));
		else
			xenbus_dev_fatal(dev, error, "%s", refusal(error));
		put_device(&dev->dev);
	}
}

static DECLARE_WORK(telling, tell_refusals);

/* One that waits is served when there is room (connect_waiting). */
static int connect_in_xen(struct twin_vif *vif)
{
	struct twin_xen_vif told = description(vif);
	int error = twin_xen_call_patiently(TWIN_XEN_CONNECT, &told, sizeof(told));

	vif->in_xen = !error;
	vif->waits = may_wait(error);
	vif->refusal = error;
	if (error)
		schedule_work(&telling);
	return vif->waits ? 0 : error;
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

/* What the frontend says in xenstore. */
struct frontend {
	u32 transmit, receive, port;
	u8 features;
};

static int read_frontend(struct xenbus_device *dev, struct frontend *frontend)
{
	int error = xenbus_gather(XBT_NIL, dev->otherend, "tx-ring-ref", "%u", &frontend->transmit,
				  "rx-ring-ref", "%u", &frontend->receive, "event-channel", "%u", &frontend->port, NULL);

	if (error) {
		xenbus_dev_fatal(dev, error, "%s has no rings or event channel", dev->otherend);
		return error;
	}
	if (!xenbus_read_unsigned(dev->otherend, "request-rx-copy", 0)) {
		xenbus_dev_fatal(dev, -EOPNOTSUPP, "%s wants pages, not copies", dev->otherend);
		return -EOPNOTSUPP;
	}
	frontend->features = 0;
	if (xenbus_read_unsigned(dev->otherend, "feature-sg", 0))
		frontend->features |= TWIN_XEN_VIF_PAGES;
	if (xenbus_read_unsigned(dev->otherend, "feature-gso-tcpv4", 0))
		frontend->features |= TWIN_XEN_VIF_LARGE;
	return 0;
}

/*
 * xen-netback keeps a limit. An administrator who has set one does not want an interface without. It is refused when the
 * frontend is there, which then closes it: before, the guest would wait for a backend that is closed, and see no other.
 */
static int refuse_limit(struct xenbus_device *dev)
{
	if (!xenbus_exists(XBT_NIL, dev->nodename, "rate"))
		return 0;
	xenbus_dev_fatal(dev, -EOPNOTSUPP, "no limit is kept of what an interface sends: take rate out of its vif line");
	return -EOPNOTSUPP;
}

static int map_and_bind(struct twin_vif *vif, const struct frontend *frontend)
{
	int error = map_rings(vif, frontend->transmit, frontend->receive);

	if (error) {
		xenbus_dev_fatal(vif->xenbus, error, "mapping the rings");
		return error;
	}
	error = bind_port(vif, frontend->port);
	if (error) {
		unmap_rings(vif);
		xenbus_dev_fatal(vif->xenbus, error, "binding the event channel");
	}
	return error;
}

static int open_vif(struct twin_vif *vif)
{
	struct frontend frontend;
	int error = refuse_limit(vif->xenbus);

	if (!error)
		error = read_frontend(vif->xenbus, &frontend);
	if (!error)
		error = map_and_bind(vif, &frontend);
	if (error)
		return error;
	rtnl_lock();
	vif->features = frontend.features;
	vif->open = true;
	error = twin_attached() ? connect_in_xen(vif) : 0;
	rtnl_unlock();
	return error;
}

/* Xen first, however long that takes: after that it uses neither rings nor port. */
static void close_vif(struct twin_vif *vif)
{
	struct twin_xen_vif told = description(vif);

	if (!vif->open)
		return;
	rtnl_lock();
	if (vif->in_xen && twin_attached())
		twin_xen_call_patiently(TWIN_XEN_DISCONNECT, &told, sizeof(told));
	vif->in_xen = vif->waits = vif->open = false;
	vif->refusal = 0;
	connect_waiting();
	rtnl_unlock();
	unbind_from_irqhandler(vif->irq, vif);
	unmap_rings(vif);
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
	struct twin_vif *vif;
	int error;

	vif = kzalloc(sizeof(*vif), GFP_KERNEL);
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

	close_vif(vif);
	rtnl_lock();
	list_del(&vif->list);
	rtnl_unlock();
	dev_set_drvdata(&dev->dev, NULL);
	kfree(vif);
}

/* One that Xen refuses is open, and stays as it is until xenstore is told. */
static void frontend_ready(struct twin_vif *vif)
{
	if (vif->xenbus->state == XenbusStateInitWait && !vif->open && !open_vif(vif))
		xenbus_switch_state(vif->xenbus, XenbusStateConnected);
}

static void frontend_leaves(struct twin_vif *vif, enum xenbus_state state)
{
	close_vif(vif);
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
	cancel_work_sync(&telling);
}
