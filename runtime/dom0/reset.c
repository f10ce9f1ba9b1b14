// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A reset of the card that dom0's instance of the driver begins by itself, or that is due because the card hangs (hang.c).
 *
 * The driver's watchdog runs in dom0. When the carrier is lost while descriptors wait, which the card then
 * never sends, it has a task stop the card, free the rings and fill new ones (e1000_main.c,
 * e1000_watchdog and e1000_reset_task): beside the instance in Xen, which uses them. While
 * that is attached, the device is taken back instead, which resets the card, and given again.
 *
 * The task is a work item in the driver's private structure, which is the driver's own, so it is found by the name of
 * its function. Its function is another one meanwhile: nothing that people can turn off leads there.
 */
#include "dom0.h"
#include <linux/bitops.h>
#include <linux/delay.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#define TWIN_TASK	"e1000_reset_task"
#define TWIN_TASK_TRIES	200	/* of 1 ms */
#define TWIN_ATTACH_TRIES	30	/* of 1 s, and of what each of them waits */

/* ---- Instead of it ---- */

/*
 * Nobody asked for it, so nobody would ask again. What is busy passes: others have Xen's processors stop, or have the lock
 * of the card's device. Whoever detaches meanwhile, or sets the interface down, makes it another refusal.
 */
static int attach_again(const char *name)
{
	u32 tries;
	int error = -EBUSY;

	for (tries = 0; error == -EBUSY && tries < TWIN_ATTACH_TRIES; tries++) {
		msleep(1000);
		rtnl_lock();
		error = twin_attached() ? 0 : twin_attach(name);
		rtnl_unlock();
	}
	return error;
}

static void restart(struct work_struct *work)
{
	char name[IFNAMSIZ];
	int error = 0;

	rtnl_lock();
	if (twin_attached()) {
		strscpy(name, twin_attached()->netdev->name, sizeof(name));
		error = twin_restart(true);
	}
	rtnl_unlock();
	if (error == -EBUSY)
		error = attach_again(name);
	if (error)
		TWIN_LOG(err, "the card is not given to Xen again: %d", error);
}

static DECLARE_WORK(instead, restart);
static struct net_device *device;

static void restart_soon(const struct net_device *dev, const char *why)
{
	TWIN_LOG(warn, "%s %s: it is taken back from Xen, and given again", dev->name, why);
	schedule_work(&instead);
}

/* While it is taken back it sends nothing either. */
void twin_reset_hung(const struct net_device *dev, unsigned int seconds)
{
	char why[64];

	if (work_busy(&instead))
		return;
	snprintf(why, sizeof(why), "is given packets, and has sent none for %u s", seconds);
	restart_soon(dev, why);
}

/* RTNL is not held. What it begins ends what it runs in: another work item. */
static void wanted(struct work_struct *work)
{
	const struct net_device *dev = READ_ONCE(device);

	if (dev)
		restart_soon(dev, "wants a reset");
}

/* ---- The task ---- */

static struct work_struct *task;
static work_func_t own;

static bool is_named(u64 address, const char *name)
{
	char symbol[KSYM_SYMBOL_LEN];
	const size_t length = strlen(name);

	sprint_symbol(symbol, address);
	return !strncmp(symbol, name, length) && !strncmp(symbol + length, "+0x0/", 5);
}

static struct work_struct *find_task(const struct net_device *dev)
{
	const struct module *driver = dev->dev.parent->driver->owner;
	u64 *words = netdev_priv(dev);
	u32 i;

	for (i = 0; i < TWIN_PRIVATE_WORDS; i++)
		if (within_module_core(words[i], driver) && is_named(words[i], TWIN_TASK))
			return container_of((work_func_t *)&words[i], struct work_struct, func);
	return NULL;
}

/*
 * Its function becomes another one while nobody can ask for the task, as if it waited already. False: it does, or it
 * runs, which is known by the function that it has.
 */
static bool replace(work_func_t function)
{
	unsigned long *data = work_data_bits(task);
	bool idle;

	if (test_and_set_bit(WORK_STRUCT_PENDING_BIT, data))
		return false;
	idle = !(work_busy(task) & WORK_BUSY_RUNNING);
	if (idle)
		WRITE_ONCE(task->func, function);
	clear_bit_unlock(WORK_STRUCT_PENDING_BIT, data);
	return idle;
}

/* One that has begun waits for RTNL, and would reset a card of Xen's as soon as that is free. */
static int replace_patiently(void)
{
	u32 tries = TWIN_TASK_TRIES;

	while (!replace(wanted)) {
		if (!--tries)
			return -EBUSY;
		msleep(1);
	}
	return 0;
}

int twin_reset_divert(struct net_device *dev)
{
	int error;

	ASSERT_RTNL();
	task = find_task(dev);
	if (!task) {
		TWIN_LOG(err, "%s cannot be kept from resetting itself: its driver has no " TWIN_TASK, dev->name);
		return -ENOENT;
	}
	own = task->func;
	WRITE_ONCE(device, dev);
	error = replace_patiently();
	if (!error)
		return 0;
	WRITE_ONCE(device, NULL);
	TWIN_LOG(err, "%s is being reset by its driver: try again", dev->name);
	return error;
}

/* The device is closed, which is the reset that one that waits would be. wanted() does not wait for RTNL. */
void twin_reset_undivert(void)
{
	ASSERT_RTNL();
	if (!device)
		return;
	WRITE_ONCE(device, NULL);
	do
		cancel_work_sync(task);
	while (!replace(own));
}

/* Nothing is attached, and RTNL is not held. */
void twin_reset_exit(void)
{
	cancel_work_sync(&instead);
}
