// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Nobody in dom0 polls the card while its driver is in Xen.
 *
 * Its interrupts go to Xen, but there are three ways to its NAPI without one. netpoll, which
 * netconsole uses, polls between its own packets (net/core/netpoll.c, poll_one_napi), and the
 * instance in Xen, which has not netpoll's lock, would poll beside it. Sockets that poll
 * busily find a NAPI by its number (net/core/dev.c, napi_by_id), and while they own it the
 * instance in Xen waits. And where people have set napi_defer_hard_irqs and gro_flush_timeout, a poll that
 * found nothing leaves the card's interrupts masked, and has a timer that polls again (napi_complete_done):
 * Xen would have no interrupt, and both instances the card.
 */
#include "dom0.h"
#include <linux/bottom_half.h>
#include <linux/hrtimer.h>
#include <linux/netpoll.h>
#include <linux/rtnetlink.h>
#include <linux/version.h>

static struct napi_struct *hidden;
static unsigned int number;
static bool netpoll_was_off;

/* Where both are: of the interface, since Linux 6.13 of NAPI itself. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define TWIN_DEFERS(dev, napi)	(napi)->defer_hard_irqs
#define TWIN_TIMEOUT(dev, napi)	(napi)->gro_flush_timeout
#else
#define TWIN_DEFERS(dev, napi)	(dev)->napi_defer_hard_irqs
#define TWIN_TIMEOUT(dev, napi)	(dev)->gro_flush_timeout
#endif

/* As they were. */
static unsigned int defers;
static unsigned long timeout;

static bool has_netpoll(const struct net_device *dev)
{
#ifdef CONFIG_NETPOLL
	return rtnl_dereference(dev->npinfo);
#else
	return false;
#endif
}

/* A poll that has seen neither starts no timer. One that is to come comes now, and has the card's interrupts
 * on when it ends. */
static void end_timer(struct net_device *dev, struct napi_struct *napi)
{
	defers = READ_ONCE(TWIN_DEFERS(dev, napi));
	timeout = READ_ONCE(TWIN_TIMEOUT(dev, napi));
	WRITE_ONCE(TWIN_DEFERS(dev, napi), 0);
	WRITE_ONCE(TWIN_TIMEOUT(dev, napi), 0);
	synchronize_net();
	if (!hrtimer_cancel(&napi->timer))
		return;
	local_bh_disable();
	napi_schedule(napi);
	local_bh_enable();
}

/* What people have set meanwhile stays. */
static void allow_timer(struct net_device *dev, struct napi_struct *napi)
{
	if (!READ_ONCE(TWIN_DEFERS(dev, napi)))
		WRITE_ONCE(TWIN_DEFERS(dev, napi), defers);
	if (!READ_ONCE(TWIN_TIMEOUT(dev, napi)))
		WRITE_ONCE(TWIN_TIMEOUT(dev, napi), timeout);
}

int twin_pollers_away(struct net_device *dev, struct napi_struct *napi)
{
	ASSERT_RTNL();
	if (has_netpoll(dev)) {
		TWIN_LOG(err, "%s is used by netpoll: end netconsole on it, or above it, first",
			 dev->name);
		return -EBUSY;
	}
	netpoll_was_off = dev->priv_flags & IFF_DISABLE_NETPOLL;
	dev->priv_flags |= IFF_DISABLE_NETPOLL;
	number = napi->napi_id;
	/* No socket asks for a number below MIN_NAPI_ID. */
	WRITE_ONCE(napi->napi_id, 0);
	hidden = napi;
	end_timer(dev, napi);
	return 0;
}

void twin_pollers_back(struct net_device *dev)
{
	ASSERT_RTNL();
	if (!hidden)
		return;
	allow_timer(dev, hidden);
	WRITE_ONCE(hidden->napi_id, number);
	hidden = NULL;
	if (!netpoll_was_off)
		dev->priv_flags &= ~IFF_DISABLE_NETPOLL;
}
