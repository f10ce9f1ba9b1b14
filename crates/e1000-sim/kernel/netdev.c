// SPDX-License-Identifier: GPL-2.0-only
/*
 * netdev.c: network devices as their driver sees them: allocation with private
 * data and queues, registration, NAPI instances, carrier, attach and detach,
 * addresses, opening and closing, and the transmit watchdog.
 *
 * No queueing discipline: the sender (hot.o) takes the queue's lock and checks its
 * state bits. Contexts: registration, opening and napi_disable() may sleep;
 * carrier and queue state anywhere.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "shim.h"

struct net_device *net_device;

static struct net init_network;
static unsigned int napi_ids = NR_CPUS + 1;

/* ---- Allocation ------------------------------------------------------------- */

static void tx_queue_setup(struct net_device *dev, struct netdev_queue *queue)
{
	queue->dev = dev;
	spin_lock_init(&queue->_xmit_lock);
	queue->xmit_lock_owner = -1;
	netdev_queue_numa_node_write(queue, NUMA_NO_NODE);
#ifdef CONFIG_BQL
	queue->dql.max_limit = DQL_MAX_LIMIT;
	queue->dql.min_limit = 0;
	queue->dql.slack_hold_time = HZ;
	queue->dql.lowest_slack = UINT_MAX;
	queue->dql.slack_start_time = jiffies;
#endif
}

static int queues_setup(struct net_device *dev, unsigned int tx, unsigned int rx)
{
	unsigned int i;

	dev->_tx = kcalloc(tx, sizeof(*dev->_tx), GFP_KERNEL);
	dev->_rx = kcalloc(rx, sizeof(*dev->_rx), GFP_KERNEL);
	if (!dev->_tx || !dev->_rx)
		return -ENOMEM;
	dev->num_tx_queues = dev->real_num_tx_queues = tx;
	dev->num_rx_queues = dev->real_num_rx_queues = rx;
	for (i = 0; i < tx; i++)
		tx_queue_setup(dev, &dev->_tx[i]);
	for (i = 0; i < rx; i++)
		dev->_rx[i].dev = dev;
	return 0;
}

static void lists_setup(struct net_device *dev)
{
	INIT_LIST_HEAD(&dev->dev_list);
	INIT_LIST_HEAD(&dev->napi_list);
	INIT_LIST_HEAD(&dev->unreg_list);
	INIT_LIST_HEAD(&dev->close_list);
	INIT_LIST_HEAD(&dev->link_watch_list);
	INIT_LIST_HEAD(&dev->adj_list.upper);
	INIT_LIST_HEAD(&dev->adj_list.lower);
	INIT_LIST_HEAD(&dev->ptype_all);
	INIT_LIST_HEAD(&dev->ptype_specific);
	INIT_LIST_HEAD(&dev->net_notifier_list);
	INIT_LIST_HEAD(&dev->uc.list);
	INIT_LIST_HEAD(&dev->mc.list);
	INIT_LIST_HEAD(&dev->dev_addrs.list);
	spin_lock_init(&dev->addr_list_lock);
	spin_lock_init(&dev->tx_global_lock);
}

static void ether_setup_device(struct net_device *dev)
{
	dev->type = ARPHRD_ETHER;
	dev->hard_header_len = ETH_HLEN;
	dev->min_header_len = ETH_HLEN;
	dev->mtu = ETH_DATA_LEN;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = ETH_DATA_LEN;
	dev->addr_len = ETH_ALEN;
	dev->tx_queue_len = 1000;
	dev->flags = IFF_BROADCAST | IFF_MULTICAST;
	dev->priv_flags |= IFF_TX_SKB_SHARING;
	memset(dev->broadcast, 0xff, ETH_ALEN);
}

static void device_free(struct net_device *dev)
{
	struct netdev_hw_addr *address, *next;

	list_for_each_entry_safe(address, next, &dev->dev_addrs.list, list)
		kfree(address);
	list_for_each_entry_safe(address, next, &dev->mc.list, list)
		kfree(address);
	kfree(dev->_tx);
	kfree(dev->_rx);
	kfree((char *)dev - dev->padded);
}

/* The device's own address lives in a list entry, as dev_addr_mod() expects. */
static int address_setup(struct net_device *dev)
{
	struct netdev_hw_addr *address = kzalloc(sizeof(*address), GFP_KERNEL);

	if (!address)
		return -ENOMEM;
	address->type = NETDEV_HW_ADDR_T_LAN;
	address->refcount = 1;
	list_add(&address->list, &dev->dev_addrs.list);
	dev->dev_addrs.count = 1;
	dev->dev_addr = address->addr;
	return 0;
}

struct net_device *alloc_etherdev_mqs(int private, unsigned int tx, unsigned int rx)
{
	size_t size = ALIGN(sizeof(struct net_device), NETDEV_ALIGN) + private + NETDEV_ALIGN - 1;
	char *memory = kzalloc(size, GFP_KERNEL);
	struct net_device *dev = (struct net_device *)PTR_ALIGN(memory, NETDEV_ALIGN);

	if (!memory)
		return NULL;
	dev->padded = (char *)dev - memory;
	lists_setup(dev);
	if (queues_setup(dev, tx, rx) || address_setup(dev)) {
		device_free(dev);
		return NULL;
	}
	ether_setup_device(dev);
	strscpy(dev->name, "eth%d", sizeof(dev->name));
	write_pnet(&dev->nd_net, &init_network);
	dev->gso_max_size = dev->tso_max_size = GSO_LEGACY_MAX_SIZE;
	dev->gso_max_segs = dev->tso_max_segs = GSO_MAX_SEGS;
	dev->gro_max_size = GRO_LEGACY_MAX_SIZE;
	dev->rtnl_link_state = RTNL_LINK_INITIALIZED;
	dev->reg_state = NETREG_UNINITIALIZED;
	dev->pcpu_refcnt = alloc_percpu(int);
	refcount_set(&dev->dev.kobj.kref.refcount, 1);
	return dev;
}

void free_netdev(struct net_device *dev)
{
	struct napi_struct *napi, *next;

	if (dev->reg_state != NETREG_UNINITIALIZED && dev->reg_state != NETREG_UNREGISTERED &&
	    dev->reg_state != NETREG_RELEASED)
		kernel_bug("free_netdev: %s is registered", netdev_name(dev));
	list_for_each_entry_safe(napi, next, &dev->napi_list, dev_list)
		__netif_napi_del(napi);
	free_percpu(dev->pcpu_refcnt);
	device_free(dev);
}

/* ---- Registration -------------------------------------------------------------- */

static void tx_watchdog(struct timer_list *timer);

static void features_setup(struct net_device *dev)
{
	dev->hw_features |= NETIF_F_SOFT_FEATURES;
	dev->features |= NETIF_F_SOFT_FEATURES;
	dev->wanted_features = dev->features & dev->hw_features;
	dev->vlan_features |= NETIF_F_HIGHDMA;
}

/*
 * The hot routines have receive buffers for so many descriptors (HOT_LARGES_MOST): a ring that is
 * larger would have them all, and nothing would move.
 */
#define RECEIVE_RING_MOST	1024u

static void receive_ring_fits(struct net_device *dev)
{
	static struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };
	static struct kernel_ethtool_ringparam more;

	if (!dev->ethtool_ops || !dev->ethtool_ops->get_ringparam)
		return;
	dev->ethtool_ops->get_ringparam(dev, &ring, &more, NULL);
	if (ring.rx_pending > RECEIVE_RING_MOST)
		kernel_unsupported("register_netdev",
				   "%u receive descriptors: the hot routines have buffers for %u",
				   ring.rx_pending, RECEIVE_RING_MOST);
}

int register_netdev(struct net_device *dev)
{
	int error;

	if (net_device)
		kernel_unsupported(__func__, "a second device");
	receive_ring_fits(dev);
	/* Buffers for the hot routines; a second time this does nothing. */
	error = hot_setup(dev);
	if (error)
		return error;
	if (strchr(dev->name, '%'))
		snprintf(dev->name, sizeof(dev->name), "eth0");
	if (dev->netdev_ops->ndo_init) {
		error = dev->netdev_ops->ndo_init(dev);
		if (error)
			return error;
	}
	dev->ifindex = 2;
	timer_setup(&dev->watchdog_timer, tx_watchdog, 0);
	features_setup(dev);
	memcpy(dev->perm_addr, dev->dev_addr, dev->addr_len);
	set_bit(__LINK_STATE_PRESENT, &dev->state);
	dev->operstate = IF_OPER_DOWN;
	dev->reg_state = NETREG_REGISTERED;
	net_device = dev;
	host_event(KERNEL_EVENT_REGISTERED, (u64)dev);
	return 0;
}

void unregister_netdev(struct net_device *dev)
{
	if (dev != net_device || dev->reg_state != NETREG_REGISTERED) {
		kernel_complain("unregister_netdev: %s is not registered", netdev_name(dev));
		return;
	}
	netdev_close(dev);
	dev->reg_state = NETREG_UNREGISTERING;
	dev->dismantle = true;
	net_device = NULL;
	host_event(KERNEL_EVENT_UNREGISTERED, (u64)dev);
	if (dev->netdev_ops->ndo_uninit)
		dev->netdev_ops->ndo_uninit(dev);
	dev->reg_state = NETREG_UNREGISTERED;
}

/* ---- NAPI --------------------------------------------------------------------------- */

void netif_napi_add_weight(struct net_device *dev, struct napi_struct *napi,
			   int (*poll)(struct napi_struct *, int), int weight)
{
	int i;

	if (test_and_set_bit(NAPI_STATE_LISTED, &napi->state)) {
		kernel_complain("netif_napi_add: %p is added already", napi);
		return;
	}
	INIT_LIST_HEAD(&napi->poll_list);
	INIT_HLIST_NODE(&napi->napi_hash_node);
	INIT_LIST_HEAD(&napi->rx_list);
	for (i = 0; i < GRO_HASH_BUCKETS; i++) {
		INIT_LIST_HEAD(&napi->gro_hash[i].list);
		napi->gro_hash[i].count = 0;
	}
	napi->gro_bitmask = 0;
	napi->skb = NULL;
	napi->rx_count = 0;
	napi->poll = poll;
	napi->weight = weight;
	napi->dev = dev;
	napi->poll_owner = -1;
	napi->napi_id = napi_ids++;
	/* Off until napi_enable(), as if a poll that never comes were scheduled. */
	set_bit(NAPI_STATE_SCHED, &napi->state);
	set_bit(NAPI_STATE_NPSVC, &napi->state);
	list_add_rcu(&napi->dev_list, &dev->napi_list);
}

void __netif_napi_del(struct napi_struct *napi)
{
	if (!test_and_clear_bit(NAPI_STATE_LISTED, &napi->state))
		return;
	list_del_init(&napi->dev_list);
	if (napi->skb)
		consume_skb(napi->skb);
	napi->skb = NULL;
}

/* Waits for a poll that is scheduled or runs, on any CPU, and keeps others out. */
void napi_disable(struct napi_struct *napi)
{
	u64 since = time_now();

	task_may_sleep(__func__);
	set_bit(NAPI_STATE_DISABLE, &napi->state);
	while (test_and_set_bit(NAPI_STATE_SCHED, &napi->state))
		task_wait_step(__func__, since);
	while (test_and_set_bit(NAPI_STATE_NPSVC, &napi->state))
		task_wait_step(__func__, since);
	clear_bit(NAPI_STATE_PREFER_BUSY_POLL, &napi->state);
	clear_bit(NAPI_STATE_DISABLE, &napi->state);
}

void napi_enable(struct napi_struct *napi)
{
	if (!test_bit(NAPI_STATE_SCHED, &napi->state))
		kernel_bug("napi_enable: %p is enabled already", napi);
	clear_bit(NAPI_STATE_NPSVC, &napi->state);
	smp_mb__before_atomic();
	clear_bit(NAPI_STATE_SCHED, &napi->state);
}

/* ---- Carrier, attach and detach, the watchdog ------------------------------------------ */

static void tx_watchdog_up(struct net_device *dev)
{
	if (!dev->netdev_ops->ndo_tx_timeout)
		return;
	if (dev->watchdog_timeo <= 0)
		dev->watchdog_timeo = 5 * HZ;
	mod_timer(&dev->watchdog_timer, jiffies + dev->watchdog_timeo);
}

/* A queue that was stopped longer than the driver allows hangs. */
static bool queue_hangs(struct net_device *dev, unsigned int index)
{
	struct netdev_queue *queue = netdev_get_tx_queue(dev, index);

	return netif_xmit_stopped(queue) &&
	       time_after(jiffies, READ_ONCE(queue->trans_start) + dev->watchdog_timeo);
}

static void tx_watchdog(struct timer_list *timer)
{
	struct net_device *dev = from_timer(dev, timer, watchdog_timer);
	unsigned int i;

	if (!netif_device_present(dev) || !netif_running(dev) || !netif_carrier_ok(dev))
		return;
	for (i = 0; i < dev->num_tx_queues; i++) {
		if (!queue_hangs(dev, i))
			continue;
		atomic_long_inc(&dev->_tx[i].trans_timeout);
		_printk(KERN_WARNING "NETDEV WATCHDOG: %s (%s): transmit queue %u timed out\n",
			netdev_name(dev), dev_driver_string(dev->dev.parent), i);
		dev->netdev_ops->ndo_tx_timeout(dev, i);
		break;
	}
	mod_timer(&dev->watchdog_timer, jiffies + dev->watchdog_timeo);
}

void netif_carrier_on(struct net_device *dev)
{
	if (!test_and_clear_bit(__LINK_STATE_NOCARRIER, &dev->state))
		return;
	if (dev->reg_state == NETREG_UNINITIALIZED)
		return;
	atomic_inc(&dev->carrier_up_count);
	dev->operstate = IF_OPER_UP;
	if (netif_running(dev))
		tx_watchdog_up(dev);
	host_event(KERNEL_EVENT_CARRIER, 1);
}

void netif_carrier_off(struct net_device *dev)
{
	if (test_and_set_bit(__LINK_STATE_NOCARRIER, &dev->state))
		return;
	if (dev->reg_state == NETREG_UNINITIALIZED)
		return;
	atomic_inc(&dev->carrier_down_count);
	dev->operstate = IF_OPER_DOWN;
	host_event(KERNEL_EVENT_CARRIER, 0);
}

void netif_device_detach(struct net_device *dev)
{
	if (test_and_clear_bit(__LINK_STATE_PRESENT, &dev->state) && netif_running(dev))
		netif_tx_stop_all_queues(dev);
}

void netif_device_attach(struct net_device *dev)
{
	if (test_and_set_bit(__LINK_STATE_PRESENT, &dev->state) || !netif_running(dev))
		return;
	netif_tx_wake_all_queues(dev);
	tx_watchdog_up(dev);
}

/* Called by inline code (netif_tx_stop_all_queues() and others). */
void netif_tx_stop_all_queues(struct net_device *dev)
{
	unsigned int i;

	for (i = 0; i < dev->num_tx_queues; i++)
		netif_tx_stop_queue(netdev_get_tx_queue(dev, i));
}

/* ---- Addresses --------------------------------------------------------------------------- */

int eth_validate_addr(struct net_device *dev)
{
	return is_valid_ether_addr(dev->dev_addr) ? 0 : -EADDRNOTAVAIL;
}

/* The only way to change dev->dev_addr, which is constant to drivers. */
void dev_addr_mod(struct net_device *dev, unsigned int offset, const void *address, size_t length)
{
	struct netdev_hw_addr *own = list_first_entry(&dev->dev_addrs.list, struct netdev_hw_addr,
						      list);

	if (offset + length > MAX_ADDR_LEN || dev->dev_addr != own->addr)
		kernel_bug("dev_addr_mod: %zu bytes at %u", length, offset);
	memcpy(&own->addr[offset], address, length);
	memcpy(&dev->dev_addr_shadow[offset], address, length);
}

void netdev_rx_mode(struct net_device *dev)
{
	if (!(dev->flags & IFF_UP) || !netif_device_present(dev) ||
	    !dev->netdev_ops->ndo_set_rx_mode)
		return;
	_raw_spin_lock(&dev->addr_list_lock.rlock);
	dev->netdev_ops->ndo_set_rx_mode(dev);
	_raw_spin_unlock(&dev->addr_list_lock.rlock);
}

/* ---- Opening and closing ------------------------------------------------------------------- */

/* Waits until no CPU is inside the driver's transmit function. */
static void senders_wait(struct net_device *dev)
{
	unsigned int i;

	for (i = 0; i < dev->num_tx_queues; i++) {
		struct netdev_queue *queue = netdev_get_tx_queue(dev, i);

		netif_tx_stop_queue(queue);
		_raw_spin_lock(&queue->_xmit_lock.rlock);
		_raw_spin_unlock(&queue->_xmit_lock.rlock);
	}
}

int netdev_open(struct net_device *dev)
{
	int error = 0;

	if (dev->flags & IFF_UP)
		return 0;
	if (!netif_device_present(dev))
		return -ENODEV;
	set_bit(__LINK_STATE_START, &dev->state);
	if (dev->netdev_ops->ndo_validate_addr)
		error = dev->netdev_ops->ndo_validate_addr(dev);
	if (!error && dev->netdev_ops->ndo_open)
		error = dev->netdev_ops->ndo_open(dev);
	if (error) {
		clear_bit(__LINK_STATE_START, &dev->state);
		return error;
	}
	dev->flags |= IFF_UP;
	netdev_rx_mode(dev);
	if (netif_carrier_ok(dev))
		tx_watchdog_up(dev);
	return 0;
}

void netdev_close(struct net_device *dev)
{
	if (!(dev->flags & IFF_UP))
		return;
	clear_bit(__LINK_STATE_START, &dev->state);
	smp_mb__after_atomic();
	senders_wait(dev);
	del_timer_sync(&dev->watchdog_timer);
	if (dev->netdev_ops->ndo_stop)
		dev->netdev_ops->ndo_stop(dev);
	dev->flags &= ~IFF_UP;
}
