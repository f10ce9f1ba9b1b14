// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A card that hangs: it is given packets and completes none, whatever the reason. It may have stopped, or raise no
 * interrupt, or not be there any more; or its driver takes none, and nothing is on its way that would change that.
 *
 * The kernel's own watchdog of transmitters, by which the driver would reset it, is put away while the driver is in Xen
 * (attach.c). So Xen is asked each second. Where none was completed for as many seconds as that watchdog would wait, the
 * device is taken back, which resets the card, and given again (reset.c).
 *
 * Seconds count only where Xen was asked: neither a dom0 that had no processor nor another command in Xen is time of the
 * card's. None that passes without a carrier counts, where the driver's own watchdog resets the card; nor while the driver
 * waits for dom0's kernel, which Xen ends by itself; nor after an abort, from which people restart.
 *
 * The work item takes no RTNL, so whoever has that may wait for it.
 */
#include "dom0.h"
#include <linux/moduleparam.h>
#include <linux/workqueue.h>

static unsigned int hang = 5;
module_param(hang, uint, 0644);
MODULE_PARM_DESC(hang, "seconds after which a card that is given packets and completes none is reset; 0: it is not");

/* All of it is the work item's, or written while that neither runs nor waits. */
static struct net_device *device;
static struct {
	u64 transmitted, completed, busy;
} before;	/* when Xen was asked last */
static unsigned int seconds;
static struct twin_xen_status status;

/* Whether the card has packets, and had the same before; or it has none, and there were some that the driver did not take. */
static bool stands_still(void)
{
	const bool has = status.transmitted != status.completed;
	const bool takes_none = status.busy != before.busy && status.transmitted == before.transmitted;

	return status.completed == before.completed && (has || takes_none);
}

static bool may_move(void)
{
	return status.state == TWIN_XEN_ATTACHED && !status.waits && netif_carrier_ok(device);
}

static void judge(unsigned int limit)
{
	seconds = stands_still() && may_move() ? seconds + 1 : 0;
	before.transmitted = status.transmitted;
	before.completed = status.completed;
	before.busy = status.busy;
	if (!limit || seconds < limit)
		return;
	seconds = 0;
	twin_reset_hung(device, limit);
}

static void look(struct work_struct *work)
{
	if (!twin_xen_call(TWIN_XEN_STATUS, &status, sizeof(status)))
		judge(READ_ONCE(hang));
	schedule_delayed_work(to_delayed_work(work), HZ);
}

static DECLARE_DELAYED_WORK(work, look);

void twin_hang_watch(struct net_device *dev)
{
	device = dev;
	before.completed = U64_MAX;
	seconds = 0;
	schedule_delayed_work(&work, HZ);
}

void twin_hang_unwatch(void)
{
	cancel_delayed_work_sync(&work);
}
