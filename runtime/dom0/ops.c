// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What dom0 may not ask of the card's driver while the driver is in Xen.
 *
 * Some of what people ask by ethtool, mii-tool and the like makes dom0's instance stop the card,
 * free its rings and fill new ones with buffers of dom0's allocator, which Xen's instance cannot
 * free. There is no notification before that. So the interface gets copies of its operations
 * (include/linux/ethtool.h, include/linux/netdevice.h) in which these are refused, with -EBUSY;
 * all others, and the one that transmits, are the driver's own.
 *
 * Both pointers are written with RTNL held, under which all of these operations are called. Who
 * reads them without RTNL finds the same functions in the copy, which stays for as long as this
 * module does.
 */
#include "dom0.h"
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

static struct ethtool_ops ethtool;
static struct net_device_ops operations;
/* The driver's own, while there are copies. */
static const struct ethtool_ops *own_ethtool;
static const struct net_device_ops *own_operations;

static int refuse(const struct net_device *dev, const char *what)
{
	TWIN_LOG(info, "%s: %s is refused while the driver is in Xen: detach it first", dev->name, what);
	return -EBUSY;
}

static int set_ringparam(struct net_device *dev, struct ethtool_ringparam *rings,
			 struct kernel_ethtool_ringparam *kernel_rings, struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG(extack, "the driver is in Xen: detach it first");
	return refuse(dev, "another size of rings");
}

static int set_link_ksettings(struct net_device *dev, const struct ethtool_link_ksettings *settings)
{
	return refuse(dev, "another speed");
}

static int set_pauseparam(struct net_device *dev, struct ethtool_pauseparam *pause)
{
	return refuse(dev, "flow control");
}

static int nway_reset(struct net_device *dev)
{
	return refuse(dev, "a reset");
}

/* Offline it closes the card behind the kernel's back. */
static void self_test(struct net_device *dev, struct ethtool_test *test, u64 *results)
{
	refuse(dev, "a self-test");
	test->flags |= ETH_TEST_FL_FAILED;
}

static int set_features(struct net_device *dev, netdev_features_t features)
{
	return refuse(dev, "another set of features");
}

static int eth_ioctl(struct net_device *dev, struct ifreq *request, int command)
{
	if (command == SIOCSMIIREG)
		return refuse(dev, "writing the transceiver's registers");
	return own_operations->ndo_eth_ioctl(dev, request, command);
}

static void tx_timeout(struct net_device *dev, unsigned int queue)
{
	refuse(dev, "a reset by the watchdog");
}

void twin_ops_guard(struct net_device *dev)
{
	ASSERT_RTNL();
	own_ethtool = dev->ethtool_ops;
	ethtool = *own_ethtool;
	ethtool.set_ringparam = set_ringparam;
	ethtool.set_link_ksettings = set_link_ksettings;
	ethtool.set_pauseparam = set_pauseparam;
	ethtool.nway_reset = nway_reset;
	ethtool.self_test = self_test;
	dev->ethtool_ops = &ethtool;

	own_operations = dev->netdev_ops;
	operations = *own_operations;
	operations.ndo_set_features = set_features;
	if (operations.ndo_eth_ioctl)
		operations.ndo_eth_ioctl = eth_ioctl;
	operations.ndo_tx_timeout = tx_timeout;
	dev->netdev_ops = &operations;
}

void twin_ops_release(struct net_device *dev)
{
	ASSERT_RTNL();
	if (!own_ethtool)
		return;
	dev->ethtool_ops = own_ethtool;
	dev->netdev_ops = own_operations;
	own_ethtool = NULL;
}
