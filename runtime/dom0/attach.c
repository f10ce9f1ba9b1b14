// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Giving the driver to Xen, and taking it back.
 *
 *   attach    no more packets of dom0's -> rings empty -> receive buffers held -> Xen runs
 *             the driver -> receiver on -> guests
 *   detach    receiver off -> Xen polls until nothing is left and gives NAPI back -> the
 *             interface is closed, so the rings hold nothing of the pools -> pools whole
 *             again -> open, natively
 *   restart   detach and attach: after an abort
 *
 * An interface that somebody else closes is detached first: closing would take the
 * interrupt from Xen. Such an interface is not opened again. So it is before the card's driver
 * is unbound, and before the kernel goes down: both free the rings, as closing does. Where Xen does
 * not give it back, all but a kernel that goes down wait for as long as that takes. The kernel does not
 * go to sleep meanwhile.
 */
#include "dom0.h"
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/reboot.h>
#include <linux/rtnetlink.h>
#include <linux/stop_machine.h>
#include <linux/suspend.h>
#include <xen/interface/xen.h>
#include <asm/xen/hypercall.h>
#include <xen/interface/memory.h>
#include <asm/xen/page.h>

/* Jiffies that Xen is asked for. */
#define TWIN_DETACH		(5 * HZ)
/* For longer than a driver waits for an upcall: then it has its answer, or was aborted. */
#define TWIN_CLOSED		(40 * HZ)
#define TWIN_WATCHDOG		(24 * 3600 * HZ)

/* What Xen does with packets. Taken when a driver is attached. */
static struct twin_xen_stages stages = { .aggregate = HOT_RX_SEGMENTS, .storm = 1000, .pace = 1, .dma = 1 };
module_param_named(aggregate, stages.aggregate, uint, 0644);
MODULE_PARM_DESC(aggregate, "most TCP segments that guests get as one packet, up to 45; 0 or 1: each is one");
module_param_named(bridge, stages.bridge, uint, 0644);
MODULE_PARM_DESC(bridge, "1: guests by a hash of their addresses, their sources checked, broadcasts limited");
module_param_named(storm, stages.storm, uint, 0644);
MODULE_PARM_DESC(storm, "with bridge: broadcasts and multicasts that a guest, or the wire, may send in a second; 0: any");
module_param_named(notify, stages.notify, uint, 0644);
MODULE_PARM_DESC(notify, "received frames of which a guest is told at once, up to 64, or after 250 us; 0 or 1: of each at once");
module_param_named(pace, stages.pace, uint, 0644);
MODULE_PARM_DESC(pace, "1: guests that send much are looked at each 250 us; 0: at each notification");
module_param_named(dma, stages.dma, uint, 0644);
MODULE_PARM_DESC(dma, "1: what the driver gives to the card is checked, and the card reads a copy; 0: the card reads what the driver writes");

static const struct twin_hot *hot;
static struct twin_card card;
static bool attached;
/* close_and_put_back() closes the interface. */
static bool closing;
/* The kernel is about to sleep, or sleeps, or goes down. */
static bool going;

/* ---- The hot routines ---- */

/* Which frames there are, and which of them are dom0's; and Xen copies frames at once. */
static int describe_memory(const struct twin_hot *routines)
{
	long last = HYPERVISOR_memory_op(XENMEM_maximum_ram_page, NULL);

	if (last <= 0)
		return last ? last : -EINVAL;
	*routines->host_holds = 0;
	*routines->machine_frames = last + 1;
	*routines->p2m = xen_p2m_addr;
	*routines->p2m_frames = xen_p2m_size;
	return 0;
}

int hot_register(const struct twin_hot *routines)
{
	int error = -EBUSY;

	rtnl_lock();
	if (!hot)
		error = describe_memory(routines);
	if (!error)
		hot = routines;
	rtnl_unlock();
	return error;
}
EXPORT_SYMBOL_GPL(hot_register);

/*
 * A frame that the native instance has received for a guest. Nobody polls through it: the
 * name is here so that the rewritten instance's is Xen's.
 */
u32 host_receive(void *data, u32 length, struct sk_buff *skb, u32 flags, u32 vlan);
u32 host_receive(void *data, u32 length, struct sk_buff *skb, u32 flags, u32 vlan)
{
	return HOT_RX_UNWANTED;
}
EXPORT_SYMBOL_GPL(host_receive);

/* Bytes of a guest's packet: none is sent through the native instance either. */
u32 host_gather(void *to, u64 cookie, u32 offset, u32 bytes, u32 each, const struct sk_buff *whole);
u32 host_gather(void *to, u64 cookie, u32 offset, u32 bytes, u32 each, const struct sk_buff *whole)
{
	return 0;
}
EXPORT_SYMBOL_GPL(host_gather);

const struct twin_hot *twin_hot(void)
{
	return hot;
}

struct twin_card *twin_attached(void)
{
	return attached ? &card : NULL;
}

/* ---- Attach ---- */

static void log_refusal(int error)
{
	struct twin_xen_info info = {};
	int unknown = twin_xen_call(TWIN_XEN_INFO, &info, sizeof(info));

	TWIN_LOG(err, "Xen refuses %s: %d %.*s", card.netdev->name, error, TWIN_XEN_REASON,
		 unknown ? "(is the payload loaded?)" : info.reason);
}

static void describe_buffers(struct twin_xen_attach *attach)
{
	struct hot_memory memory[HOT_BUFFER_POOLS];
	u32 i;

	BUILD_BUG_ON(HOT_BUFFER_POOLS != TWIN_XEN_RANGES);
	hot->buffers(memory);
	for (i = 0; i < HOT_BUFFER_POOLS; i++) {
		attach->packets[i].start = memory[i].start;
		attach->packets[i].bytes = PAGE_ALIGN(memory[i].bytes);
	}
}

/* By what Xen knows the modules again: since Linux 6.4 each part of their memory is by itself (include/linux/module.h, mod_mem_type). */
static void describe_modules(struct twin_xen_attach *attach)
{
	const u64 data[] = {
		(u64)card.pci->driver, (u64)card.pci->driver->id_table,
		(u64)hot->shared, (u64)hot->constants, (u64)hot->percpu,
	};

	BUILD_BUG_ON(sizeof(data) != sizeof(attach->module_data));
	memcpy(attach->module_data, data, sizeof(data));
	attach->hot_function = (u64)hot->setup;
}

/* Nobody in dom0 writes a register between guarding them here and in Xen (registers.c). */
static int attach_in_xen(void *attach)
{
	int error = card.driver_registers ? twin_registers_guard(&card) : 0;

	if (error)
		return error;
	error = twin_xen_call(TWIN_XEN_ATTACH, attach, sizeof(struct twin_xen_attach));
	if (error)
		twin_registers_release(&card);
	return error;
}

/* -ENOENT: Xen has no driver, whoever took it back. Nobody waits for what does not come. */
static int detach_in_xen(void *detach)
{
	int error = twin_xen_call(TWIN_XEN_DETACH, detach, sizeof(struct twin_xen_detach));

	if (error == -ENOENT)
		error = 0;
	if (!error)
		twin_registers_release(&card);
	return error;
}

/* With all other processors of dom0 stopped, if registers are guarded. */
static int in_one(int (*function)(void *), void *data)
{
	return card.driver_registers ? stop_machine(function, data, NULL) : function(data);
}

static int tell_xen(void)
{
	struct twin_xen_attach *attach = kzalloc(sizeof(*attach), GFP_KERNEL);
	struct netdev_queue *queue = netdev_get_tx_queue(card.netdev, 0);
	u32 cpu;
	int error;

	if (!attach)
		return -ENOMEM;
	attach->netdev = (u64)card.netdev;
	attach->napi = (u64)card.napi;
	attach->interrupt = (u64)card.interrupt;
	attach->interrupt_cookie = (u64)card.interrupt_cookie;
	attach->hot_shared = (u64)hot->shared;
	attach->queue_lock = (u64)&queue->_xmit_lock.rlock.raw_lock.locked;
	attach->queue_owner = (u64)&queue->xmit_lock_owner;
	attach->page_offset = PAGE_OFFSET;
	attach->vmalloc_start = VMALLOC_START;
	attach->vmemmap_start = VMEMMAP_START;
	for (cpu = 0; cpu < TWIN_XEN_CPUS; cpu++)
		attach->gs_base[cpu] = twin_percpu_base(cpu);
	attach->irq = card.pci->irq;
	attach->pirq = card.pirq;
	attach->registers = card.driver_registers;
	twin_card_ports(&card, &attach->port, &attach->ports);
	describe_buffers(attach);
	describe_modules(attach);
	attach->stages = stages;
	/* As it was when the registers were guarded, or not. */
	attach->stages.dma = !!card.driver_registers;
	error = in_one(attach_in_xen, attach);
	/* Which the call fills in: Xen was asked. */
	if (error && attach->header.size)
		log_refusal(error);
	kfree(attach);
	return error;
}

/*
 * None of those whose data and addresses the driver inside Xen uses can go meanwhile. This one
 * does not yet: who asked for the attachment is in it. -ENODEV: another is on its way out.
 */
static int hold_modules(void)
{
	if (!try_module_get(hot->owner))
		return -ENODEV;
	if (!try_module_get(card.pci->driver->driver.owner)) {
		module_put(hot->owner);
		return -ENODEV;
	}
	__module_get(THIS_MODULE);
	return 0;
}

static void put_modules(void)
{
	module_put(card.pci->driver->driver.owner);
	module_put(hot->owner);
	module_put(THIS_MODULE);
}

/* Once on, once off. */
static int promiscuous(bool on)
{
	static bool is_on;
	int error = on == is_on ? 0 : dev_set_promiscuity(card.netdev, on ? 1 : -1);

	if (!error)
		is_on = on;
	return error;
}

/* The card is at rest, and the driver writes no tail. */
static int tell_xen_of_rings(void)
{
	int error = READ_ONCE(stages.dma) ? twin_registers_prepare(&card) : 0;

	if (!error)
		error = tell_xen();
	if (error)
		twin_registers_release(&card);
	return error;
}

/* The card is found, dom0's packets are kept out. */
static int hand_over(void)
{
	int error = twin_card_quiet(&card);

	if (!error)
		error = twin_egress_close(card.netdev);
	/* For what went around the queue meanwhile. */
	if (!error)
		error = twin_card_quiet(&card);
	if (!error) {
		twin_card_deafen(&card);
		error = twin_card_pin(&card);
	}
	if (!error) {
		error = tell_xen_of_rings();
		if (error)
			twin_card_unpin(&card);
	}
	twin_card_receive(&card, true);
	if (error)
		twin_card_hear(&card);
	return error;
}

/*
 * dom0's watchdog of transmitters (net/sched/sch_generic.c, dev_watchdog) takes the queue's
 * lock. A driver that was aborted while it transmits has that lock until it is taken back, so
 * the watchdog would wait for ever; and it would reset a card that Xen drives. Its period
 * becomes a day; a card that hangs is found by hang.c.
 */
static void watchdog_away(bool away)
{
	struct net_device *dev = card.netdev;
	static int period;

	if (away == !!period)
		return;
	if (away)
		period = dev->watchdog_timeo;
	dev->watchdog_timeo = away ? TWIN_WATCHDOG : period;
	/* Only if it runs: the kernel holds the interface for it then. */
	mod_timer_pending(&dev->watchdog_timer, jiffies + dev->watchdog_timeo);
	if (!away)
		period = 0;
}

/* What Xen needs of dom0. Whatever it gives, unprepare() undoes it. */
static int prepare(void)
{
	int error = twin_pollers_away(card.netdev, card.napi);

	if (!error)
		error = hot->setup(card.netdev);
	if (!error)
		error = twin_percpu_create(hot);
	/* The guests' addresses are not the card's: a bridge would ask for this, too. */
	if (!error)
		error = promiscuous(true);
	if (!error)
		error = twin_reset_divert(card.netdev);
	if (!error)
		error = twin_errors_guard(card.pci);
	if (!error) {
		watchdog_away(true);
		twin_ops_guard(card.netdev);
	}
	return error ? error : twin_egress_block(card.netdev);
}

static void unprepare(void)
{
	twin_hang_unwatch();
	twin_egress_unblock();
	twin_ops_release(card.netdev);
	watchdog_away(false);
	twin_errors_release();
	twin_reset_undivert();
	promiscuous(false);
	twin_pollers_back(card.netdev);
	put_modules();
	twin_card_put(&card);
}

int twin_attach(const char *name)
{
	int error;

	ASSERT_RTNL();
	if (going)
		return -EBUSY;
	if (attached || !hot) {
		TWIN_LOG(err, "%s", attached ? "there is an attached interface" : "twin_hot.ko is not loaded");
		return attached ? -EBUSY : -ENODEV;
	}
	error = twin_card_find(name, &card);
	if (error)
		return error;
	error = hold_modules();
	if (error) {
		TWIN_LOG(err, "%s is not attached: a module is being unloaded", name);
		twin_card_put(&card);
		return error;
	}
	error = prepare();
	if (!error)
		error = hand_over();
	if (error) {
		TWIN_LOG(err, "%s is not attached: %d", name, error);
		unprepare();
		return error;
	}
	attached = true;
	twin_hang_watch(card.netdev);
	twin_card_unlock(&card);
	twin_vif_connect_all();
	TWIN_LOG(info, "%s is driven inside Xen", name);
	return 0;
}

/* ---- Detach ---- */

static void recover_all(void)
{
	u32 cpu;

	for (cpu = 0; cpu < HOT_CPUS; cpu++)
		hot->recover(card.netdev, cpu);
}

static bool is_dead(void)
{
	struct twin_xen_info info = {};

	return !twin_xen_call(TWIN_XEN_INFO, &info, sizeof(info)) && info.state == TWIN_XEN_DEAD;
}

/*
 * Xen lets go of driver and guests when the driver has nothing to do. Until then it keeps both:
 * guests stay connected if this gives up. An instance that was aborted is given back at once, with
 * what it held: Xen frees packets, so the card must not send them any more. The abort may come
 * while this waits, so each try looks. -ENOMEM: Xen has done the first half, and does the second at
 * the next try.
 */
static int tell_xen_detach(unsigned long patience, bool stopped)
{
	const unsigned long until = jiffies + patience;
	struct twin_xen_detach detach = { .stopped = stopped };
	int error;

	do {
		if (!detach.stopped && is_dead()) {
			twin_card_stop(&card);
			detach.stopped = 1;
		}
		error = in_one(detach_in_xen, &detach);
		if (error != -EAGAIN && error != -ENOMEM)
			break;
		msleep(10);
	} while (time_before(jiffies, until));
	return error;
}

/*
 * Xen gives the driver back. If it must, a card that does not come to rest is stopped, and its
 * packets are lost. Where Xen refuses all the same the card is off. The first recovery frees what an
 * instance that was aborted held, so that dom0 can close the interface.
 */
static int take_back(unsigned long patience, bool must)
{
	int error;

	twin_card_receive(&card, false);
	if (twin_card_is_lost(&card))
		twin_card_stop(&card);
	error = tell_xen_detach(patience, false);
	if (error && must) {
		TWIN_LOG(warn, "%s does not come to rest, and is stopped", card.netdev->name);
		twin_card_stop(&card);
		error = tell_xen_detach(TWIN_CLOSED, true);
	}
	if (error) {
		TWIN_LOG(err, "Xen does not give %s back: %d", card.netdev->name, error);
		return error;
	}
	attached = false;
	/* A call that was taken and has not begun: its pointers lead to what may go now. */
	twin_upcall_flush();
	twin_card_share_interrupt(&card);
	recover_all();
	return 0;
}

/*
 * What follows cannot be refused, and frees what Xen's instance goes on using: rings, the driver's
 * structures, the modules' data. So it waits, and with it all who want RTNL.
 */
static void take_back_at_last(void)
{
	while (take_back(TWIN_CLOSED, true)) {
		TWIN_LOG(err, "%s is waited for", card.netdev->name);
		msleep(1000);
	}
}

/* With the interface closed: the rings hold nothing. */
static void put_back(void)
{
	recover_all();
	twin_card_reset(&card);
	twin_card_unpin(&card);
	unprepare();
}

static void close_and_put_back(void)
{
	closing = true;
	dev_close(card.netdev);
	closing = false;
	put_back();
}

static int detach(char *name, bool must)
{
	struct net_device *dev = card.netdev;
	int error;

	ASSERT_RTNL();
	if (!attached)
		return -ENOTCONN;
	strscpy(name, dev->name, IFNAMSIZ);
	error = take_back(TWIN_DETACH, must);
	if (error) {
		twin_card_start(&card);
		return error;
	}
	dev_hold(dev);
	close_and_put_back();
	error = dev_open(dev, NULL);
	dev_put(dev);
	TWIN_LOG(info, "%s is dom0's again: %d", name, error);
	return error;
}

int twin_detach(bool must)
{
	char name[IFNAMSIZ];

	return detach(name, must);
}

int twin_restart(bool must)
{
	char name[IFNAMSIZ];
	int error = detach(name, must);

	return error ? error : twin_attach(name);
}

/* ---- Interfaces that are closed by others ---- */

/* NETDEV_GOING_DOWN: still open. NETDEV_DOWN: closed. */
static int notified(struct notifier_block *block, unsigned long event, void *data)
{
	struct net_device *dev = netdev_notifier_info_to_dev(data);
	static bool taken;

	if (closing || dev != card.netdev)
		return NOTIFY_DONE;
	if (event == NETDEV_GOING_DOWN && attached) {
		take_back_at_last();
		taken = true;
	}
	if (event == NETDEV_DOWN && taken) {
		taken = false;
		TWIN_LOG(info, "%s was closed, and is detached", dev->name);
		put_back();
	}
	/* Other buffers than those that were made safe. */
	if (event == NETDEV_PRECHANGEMTU && attached)
		return notifier_from_errno(-EBUSY);
	return NOTIFY_DONE;
}

static struct notifier_block notifier = { .notifier_call = notified };

/* ---- The card, the hot routines, or the kernel go away ---- */

/* Xen has given it back. The interface stays closed. */
static void close_for(const char *reason)
{
	TWIN_LOG(info, "%s: %s is detached", reason, card.netdev->name);
	close_and_put_back();
}

static void let_go(const char *reason)
{
	ASSERT_RTNL();
	if (!attached)
		return;
	take_back_at_last();
	close_for(reason);
}

/* Where what follows need not wait. The card that Xen keeps is off. */
static void try_to_let_go(const char *reason)
{
	ASSERT_RTNL();
	if (attached && !take_back(TWIN_CLOSED, true))
		close_for(reason);
}

/* Attached they go only if people force them (rmmod -f). Their memory is freed behind this. */
void hot_unregister(const struct twin_hot *routines)
{
	rtnl_lock();
	if (hot == routines) {
		let_go("the hot routines are unloaded");
		hot = NULL;
	}
	rtnl_unlock();
}
EXPORT_SYMBOL_GPL(hot_unregister);

bool twin_leave(const struct pci_dev *pci, const char *reason)
{
	bool left;

	rtnl_lock();
	if (card.pci == pci)
		try_to_let_go(reason);
	left = !attached || card.pci != pci;
	rtnl_unlock();
	return left;
}

/* Before the driver removes the card, of which it stops half before the interface is closed
 * (drivers/base/dd.c, __device_release_driver). */
static int unbinding(struct notifier_block *block, unsigned long event, void *data)
{
	if (event != BUS_NOTIFY_UNBIND_DRIVER)
		return NOTIFY_DONE;
	rtnl_lock();
	if (card.pci == to_pci_dev(data))
		let_go("the card's driver is unbound");
	rtnl_unlock();
	return NOTIFY_DONE;
}

static struct notifier_block unbind_notifier = { .notifier_call = unbinding };

/* Before devices are shut down (kernel/reboot.c), which goes on in any case: it frees no rings, and soon there is no driver. */
static int going_down(struct notifier_block *block, unsigned long event, void *data)
{
	rtnl_lock();
	going = true;
	try_to_let_go("the kernel goes down");
	rtnl_unlock();
	return NOTIFY_DONE;
}

static struct notifier_block down_notifier = { .notifier_call = going_down };

/* Before anything is frozen (Documentation/driver-api/pm/notifiers.rst). dom0's instance would
 * stop the card and free its rings. */
static int going_to_sleep(struct notifier_block *block, unsigned long event, void *data)
{
	bool refused;

	rtnl_lock();
	going = event == PM_SUSPEND_PREPARE || event == PM_HIBERNATION_PREPARE;
	refused = going && attached;
	if (refused) {
		going = false;
		TWIN_LOG(err, "%s is driven inside Xen: detach it before the machine sleeps",
			 card.netdev->name);
	}
	rtnl_unlock();
	return refused ? notifier_from_errno(-EBUSY) : NOTIFY_DONE;
}

static struct notifier_block sleep_notifier = { .notifier_call = going_to_sleep };

/* ---- The module ---- */

int twin_attach_init(void)
{
	int error = register_netdevice_notifier(&notifier);

	if (error)
		return error;
	error = bus_register_notifier(&pci_bus_type, &unbind_notifier);
	if (error)
		goto no_bus;
	error = register_pm_notifier(&sleep_notifier);
	if (error)
		goto no_sleep;
	error = register_reboot_notifier(&down_notifier);
	if (error)
		goto no_down;
	error = twin_egress_init();
	if (!error)
		return 0;
	unregister_reboot_notifier(&down_notifier);
no_down:
	unregister_pm_notifier(&sleep_notifier);
no_sleep:
	bus_unregister_notifier(&pci_bus_type, &unbind_notifier);
no_bus:
	unregister_netdevice_notifier(&notifier);
	return error;
}

void twin_attach_exit(void)
{
	unregister_reboot_notifier(&down_notifier);
	unregister_pm_notifier(&sleep_notifier);
	bus_unregister_notifier(&pci_bus_type, &unbind_notifier);
	unregister_netdevice_notifier(&notifier);
	twin_errors_exit();
	twin_reset_exit();
	twin_egress_exit();
	twin_percpu_destroy();
}
