// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A reset of the card that dom0's instance of the driver begins by itself.
 *
 * The driver's watchdog runs in dom0. When the carrier is lost while descriptors wait, which the card then
 * never sends, it has a task stop the card, free the rings and fill new ones (e1000_main.c,
 * e1000_watchdog and e1000_reset_task): beside the instance in Xen, which uses them. While
 * that is attached, the task ends where it begins. The device is taken back instead, which resets
 * the card, and given again.
 *
 * The task is the driver's own, and nobody is asked before: it goes on at a function that does
 * nothing.
 */
#include "dom0.h"
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/workqueue.h>

/* The driver's private structure, which has the task's work item, is no longer. */
#define TWIN_PRIVATE	8192

static void restart(struct work_struct *work)
{
	int error = 0;

	rtnl_lock();
	if (twin_attached())
		error = twin_restart(true);
	rtnl_unlock();
	if (error)
		TWIN_LOG(err, "the card is not given to Xen again: %d", error);
}

static DECLARE_WORK(instead, restart);
static struct net_device *device;

static noinline void nothing(void)
{
}

/* The task's argument is its work item. */
static int __kprobes divert(struct kprobe *probe, struct pt_regs *regs)
{
	if (regs->di - (unsigned long)netdev_priv(device) >= TWIN_PRIVATE)
		return 0;
	TWIN_LOG(warn, "%s wants a reset: it is taken back from Xen, and given again", device->name);
	schedule_work(&instead);
	regs->ip = (unsigned long)nothing;
	return 1;
}

static struct kprobe probe;

int twin_reset_divert(struct net_device *dev)
{
	static const char task[] = "e1000:e1000_reset_task";
	int error;

	ASSERT_RTNL();
	device = dev;
	error = twin_divert(&probe, NULL, task, divert);
	if (error) {
		device = NULL;
		TWIN_LOG(err, "%s cannot be kept from resetting itself (%s): %d", dev->name, task,
			 error);
	}
	return error;
}

void twin_reset_undivert(void)
{
	ASSERT_RTNL();
	if (!device)
		return;
	unregister_kprobe(&probe);
	device = NULL;
}

/* Nothing is attached, and RTNL is not held. */
void twin_reset_exit(void)
{
	cancel_work_sync(&instead);
}
