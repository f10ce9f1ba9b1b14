// SPDX-License-Identifier: GPL-2.0-only
/*
 * device.c: the host's commands on the network device: what ip(8) does, time,
 * and the structures that describe the device to the host.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/mutex.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "device.h"
#include "shim.h"

static DEFINE_MUTEX(config_mutex);

long device_begin(struct net_device *dev)
{
	mutex_lock(&config_mutex);
	if (dev && dev == net_device)
		return 0;
	mutex_unlock(&config_mutex);
	return -ENODEV;
}

void device_end(void)
{
	mutex_unlock(&config_mutex);
}

long device_finish(long result)
{
	device_end();
	task_run_due();
	return result;
}

/* ---- Up, down, time --------------------------------------------------------- */

long kernel_open(void)
{
	long error = device_begin(net_device);

	if (error)
		return error;
	return device_finish(netdev_open(net_device));
}

long kernel_close(void)
{
	long error = device_begin(net_device);

	if (error)
		return error;
	netdev_close(net_device);
	return device_finish(0);
}

void kernel_tick(u64 ns)
{
	task_sleep_until(time_now() + ns);
	task_run_due();
}

long kernel_link_wait(u64 ns)
{
	u64 deadline = time_now() + ns;

	while (net_device && !netif_carrier_ok(net_device)) {
		if (time_now() >= deadline)
			return -ETIMEDOUT;
		task_sleep_until(min(deadline, time_now() + NSEC_PER_MSEC));
	}
	return net_device ? 0 : -ENODEV;
}

/* ---- Settings ------------------------------------------------------------------ */

long kernel_set_mtu(u32 mtu)
{
	struct net_device *dev = net_device;
	long error = device_begin(dev);

	if (error)
		return error;
	if (mtu < dev->min_mtu || mtu > dev->max_mtu)
		return device_finish(-EINVAL);
	if (mtu == dev->mtu)
		return device_finish(0);
	if (dev->netdev_ops->ndo_change_mtu)
		error = dev->netdev_ops->ndo_change_mtu(dev, mtu);
	else
		dev->mtu = mtu;
	return device_finish(error);
}

long kernel_set_mac(const u8 *mac)
{
	struct net_device *dev = net_device;
	struct sockaddr address = { .sa_family = ARPHRD_ETHER };
	long error = device_begin(dev);

	if (error)
		return error;
	memcpy(address.sa_data, mac, ETH_ALEN);
	if (!dev->netdev_ops->ndo_set_mac_address)
		return device_finish(-EOPNOTSUPP);
	error = dev->netdev_ops->ndo_set_mac_address(dev, &address);
	if (!error)
		dev->addr_assign_type = NET_ADDR_SET;
	return device_finish(error);
}

static void multicast_clear(struct net_device *dev)
{
	struct netdev_hw_addr *address, *next;

	list_for_each_entry_safe(address, next, &dev->mc.list, list) {
		list_del(&address->list);
		kfree(address);
	}
	dev->mc.count = 0;
}

static long multicast_add(struct net_device *dev, const u8 *mac)
{
	struct netdev_hw_addr *address = kzalloc(sizeof(*address), GFP_KERNEL);

	if (!address)
		return -ENOMEM;
	memcpy(address->addr, mac, ETH_ALEN);
	address->type = NETDEV_HW_ADDR_T_MULTICAST;
	address->refcount = 1;
	list_add_tail(&address->list, &dev->mc.list);
	dev->mc.count++;
	return 0;
}

long kernel_set_rx_mode(u32 flags, const u8 *multicast, u32 count)
{
	struct net_device *dev = net_device;
	long error = device_begin(dev);
	u32 i;

	if (error)
		return error;
	dev->promiscuity = !!(flags & KERNEL_RX_PROMISC);
	dev->allmulti = !!(flags & KERNEL_RX_ALLMULTI);
	dev->flags &= ~(IFF_PROMISC | IFF_ALLMULTI);
	dev->flags |= (dev->promiscuity ? IFF_PROMISC : 0) | (dev->allmulti ? IFF_ALLMULTI : 0);
	multicast_clear(dev);
	for (i = 0; i < count && !error; i++)
		error = multicast_add(dev, multicast + i * ETH_ALEN);
	netdev_rx_mode(dev);
	return device_finish(error);
}

long kernel_vlan_add(u16 vlan)
{
	struct net_device *dev = net_device;
	long error = device_begin(dev);

	if (error)
		return error;
	if (!(dev->features & NETIF_F_HW_VLAN_CTAG_FILTER) || vlan >= VLAN_N_VID)
		return device_finish(-EOPNOTSUPP);
	return device_finish(dev->netdev_ops->ndo_vlan_rx_add_vid(dev, htons(ETH_P_8021Q), vlan));
}

long kernel_vlan_kill(u16 vlan)
{
	struct net_device *dev = net_device;
	long error = device_begin(dev);

	if (error)
		return error;
	if (!(dev->features & NETIF_F_HW_VLAN_CTAG_FILTER) || vlan >= VLAN_N_VID)
		return device_finish(-EOPNOTSUPP);
	return device_finish(dev->netdev_ops->ndo_vlan_rx_kill_vid(dev, htons(ETH_P_8021Q), vlan));
}

/* Only what hw_features lets the user change. */
long kernel_set_features(u64 set, u64 clear)
{
	struct net_device *dev = net_device;
	netdev_features_t features;
	long error = device_begin(dev);

	if (error)
		return error;
	if ((set | clear) & ~dev->hw_features)
		return device_finish(-EINVAL);
	dev->wanted_features = (dev->wanted_features | set) & ~clear;
	features = (dev->features & ~dev->hw_features) | dev->wanted_features;
	if (dev->netdev_ops->ndo_fix_features)
		features = dev->netdev_ops->ndo_fix_features(dev, features);
	if (features == dev->features)
		return device_finish(0);
	error = dev->netdev_ops->ndo_set_features ?
		dev->netdev_ops->ndo_set_features(dev, features) : 0;
	/* 1: the driver has stored them itself. */
	if (!error)
		dev->features = features;
	return device_finish(min(error, 0l));
}

long kernel_tx_timeout(void)
{
	struct net_device *dev = net_device;
	long error = device_begin(dev);

	if (error)
		return error;
	if (!netif_running(dev) || !dev->netdev_ops->ndo_tx_timeout)
		return device_finish(-ENETDOWN);
	atomic_long_inc(&dev->_tx[0].trans_timeout);
	/* From a timer in the kernel: no sleeping in there. */
	__preempt_count_add(SOFTIRQ_OFFSET);
	dev->netdev_ops->ndo_tx_timeout(dev, 0);
	__preempt_count_sub(SOFTIRQ_OFFSET);
	return device_finish(0);
}

/* ---- Descriptions ------------------------------------------------------------------ */

static void statistics_old(const struct net_device_stats *from, struct rtnl_link_stats64 *to)
{
	to->rx_packets = from->rx_packets;
	to->tx_packets = from->tx_packets;
	to->rx_bytes = from->rx_bytes;
	to->tx_bytes = from->tx_bytes;
	to->rx_errors = from->rx_errors;
	to->tx_errors = from->tx_errors;
	to->rx_dropped = from->rx_dropped;
	to->tx_dropped = from->tx_dropped;
	to->multicast = from->multicast;
	to->collisions = from->collisions;
	to->rx_crc_errors = from->rx_crc_errors;
	to->rx_length_errors = from->rx_length_errors;
	to->rx_missed_errors = from->rx_missed_errors;
	to->tx_carrier_errors = from->tx_carrier_errors;
}

long kernel_statistics(struct kernel_statistics *out)
{
	struct net_device *dev = net_device;
	struct rtnl_link_stats64 stats = {};
	long error = device_begin(dev);

	if (error)
		return error;
	if (dev->netdev_ops->ndo_get_stats64)
		dev->netdev_ops->ndo_get_stats64(dev, &stats);
	else if (dev->netdev_ops->ndo_get_stats)
		statistics_old(dev->netdev_ops->ndo_get_stats(dev), &stats);
	else
		statistics_old(&dev->stats, &stats);
	*out = (struct kernel_statistics){
		.rx_packets = stats.rx_packets, .tx_packets = stats.tx_packets,
		.rx_bytes = stats.rx_bytes, .tx_bytes = stats.tx_bytes,
		.rx_errors = stats.rx_errors, .tx_errors = stats.tx_errors,
		.rx_dropped = stats.rx_dropped, .tx_dropped = stats.tx_dropped,
		.multicast = stats.multicast, .collisions = stats.collisions,
		.rx_crc_errors = stats.rx_crc_errors, .rx_length_errors = stats.rx_length_errors,
		.rx_missed_errors = stats.rx_missed_errors,
		.tx_carrier_errors = stats.tx_carrier_errors,
	};
	return device_finish(0);
}

static void info_device(struct kernel_info *out, struct net_device *dev)
{
	struct napi_struct *napi = list_first_entry_or_null(&dev->napi_list, struct napi_struct,
							    dev_list);

	out->net_device = (u64)dev;
	out->netdev_priv = (u64)netdev_priv(dev);
	out->napi = (u64)napi;
	out->poll = napi ? (u64)napi->poll : 0;
	out->ndo_start_xmit = (u64)dev->netdev_ops->ndo_start_xmit;
	out->ndo_tx_timeout = (u64)dev->netdev_ops->ndo_tx_timeout;
	out->mtu = dev->mtu;
	out->flags = dev->flags;
	out->carrier = netif_carrier_ok(dev);
	out->state = dev->state;
	out->features = dev->features;
	memcpy(out->mac, dev->dev_addr, ETH_ALEN);
	strscpy(out->name, dev->name, sizeof(out->name));
}

long kernel_info(struct kernel_info *out)
{
	if (out->size != sizeof(*out))
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->now = time_now();
	out->irq = boot.irq;
	out->irq_state = (u64)&irq_state;
	out->rx_ring = (u64)rx_ring;
	out->counters = (u64)&kernel_counters;
	out->softnet_data = (__force u64)&softnet_data;
	out->current_task = (__force u64)&current_task;
	out->preempt_count = (__force u64)&__preempt_count;
	out->cpu_number = (__force u64)&cpu_number;
	if (net_device)
		info_device(out, net_device);
	return 0;
}
