// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Nobody in dom0 polls the card while its driver is in Xen.
 *
 * Its interrupts go to Xen, but there are two ways to its NAPI without one. netpoll, which
 * netconsole uses, polls between its own packets (net/core/netpoll.c, poll_one_napi), and the
 * instance in Xen, which has not netpoll's lock, would poll beside it. Sockets that poll
 * busily find a NAPI by its number (net/core/dev.c, napi_by_id), and while they own it the
 * instance in Xen waits.
 */
#include "dom0.h"
#include <linux/netpoll.h>
#include <linux/rtnetlink.h>

static struct napi_struct *hidden;
static unsigned int number;
static bool netpoll_was_off;

static bool has_netpoll(const struct net_device *dev)
{
#ifdef CONFIG_NETPOLL
	return rtnl_dereference(dev->npinfo);
#else
	return false;
#endif
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
	return 0;
}

void twin_pollers_back(struct net_device *dev)
{
	ASSERT_RTNL();
	if (!hidden)
		return;
	WRITE_ONCE(hidden->napi_id, number);
	hidden = NULL;
	if (!netpoll_was_off)
		dev->priv_flags &= ~IFF_DISABLE_NETPOLL;
}
