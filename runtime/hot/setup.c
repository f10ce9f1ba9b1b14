// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Boot and recovery, both natively in dom0 and both rare.
 */
#include "internal.h"
#include <linux/ethtool.h>
#include <linux/mm.h>

#define HOT_SKBS	2048u
#define HOT_BUFFERS	2048u	/* 2 KiB each */
/* 4 KiB each: at least so many, and no more than dom0's allocator gives in one piece (4 MiB) */
#define HOT_LARGES_LEAST	512u
#define HOT_LARGES_MOST		1024u

struct hot_shared hot_shared[HOT_CPUS] __aligned(512);

unsigned int hot_host_holds = 1;

/* As many frames as the page map has entries for, until dom0 sets the real number. */
unsigned long hot_machine_frames = 1ul << 28;

/* Unless an earlier setup, which had no memory for the rest, has it. */
static bool hot_setup_ring(u64 *ring, size_t bytes)
{
	if (!*ring)
		*ring = (u64)hot_pages(get_order(bytes));
	return *ring;
}

static int hot_setup_rings(struct hot_shared *shared)
{
	return hot_setup_ring(&shared->requests, HOT_REQUESTS_BYTES) &&
	       hot_setup_ring(&shared->tx_done, HOT_TX_DONE_BYTES) &&
	       hot_setup_ring(&shared->release, HOT_RELEASE_BYTES) ? 0 : -ENOMEM;
}

/* All sk_buffs begin as they are while free: users 2, see skb.c. */
static void hot_setup_skbs(void)
{
	struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	u32 i;

	for (i = 0; i < pool->count; i++)
		refcount_set(&((struct sk_buff *)hot_pool_object(pool, i))->users, 2);
}

/*
 * Descriptors of the receive ring that the driver has now; 0 if it does not say. Called once.
 * Static, because these on the stack would have it protected, as nothing else here is.
 */
static u32 hot_receive_ring(struct net_device *dev)
{
	static struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };
	static struct kernel_ethtool_ringparam more;

	if (!dev->ethtool_ops || !dev->ethtool_ops->get_ringparam)
		return 0;
	dev->ethtool_ops->get_ringparam(dev, &ring, &more, NULL);
	return ring.rx_pending;
}

/*
 * Receive buffers: as many as the ring takes, and a magazine for each CPU. What a poll has
 * received is free again when the next one begins.
 */
static u32 hot_larges(struct net_device *dev)
{
	u32 ring = min_t(u32, hot_receive_ring(dev), HOT_LARGES_MOST);

	return clamp_t(u32, ring + HOT_CPUS * HOT_MAGAZINE, HOT_LARGES_LEAST, HOT_LARGES_MOST);
}

int hot_setup(struct net_device *dev)
{
	u32 cpu;

	if (hot_pools[HOT_POOL_SKB].count)
		return 0;
	for (cpu = 0; cpu < HOT_CPUS; cpu++) {
		if (hot_setup_rings(&hot_shared[cpu]))
			return -ENOMEM;
		if (!hot_cpus[cpu].poll_list.next)
			hot_napi_init(cpu);
	}
	if (hot_pool_setup(HOT_POOL_BUFFER, HOT_BUFFER_SHIFT, HOT_BUFFERS) ||
	    hot_pool_setup(HOT_POOL_LARGE, 12, hot_larges(dev)) ||
	    hot_pool_setup(HOT_POOL_SKB, HOT_SKB_SHIFT, HOT_SKBS))
		return -ENOMEM;
	hot_setup_skbs();
	return 0;
}

static void hot_recover_lock(u32 *word, u32 cpu)
{
	if (READ_ONCE(*word) == cpu + 1)
		hot_unlock(word);
}

static void hot_recover_queues(struct net_device *dev, u32 cpu)
{
	u32 i;

	for (i = 0; i < dev->num_tx_queues; i++) {
		struct netdev_queue *txq = netdev_get_tx_queue(dev, i);

		if (READ_ONCE(txq->xmit_lock_owner) != HOT_QUEUE_OWNER + cpu)
			continue;
		WRITE_ONCE(txq->xmit_lock_owner, -1);
		smp_store_release(&txq->_xmit_lock.rlock.raw_lock.locked, 0);
	}
}

u32 hot_recover(struct net_device *dev, u32 cpu)
{
	u32 i, taken;

	if (cpu >= HOT_CPUS)
		return 0;
	for (i = 0; i < HOT_POOLS; i++)
		hot_recover_lock(&hot_pools[i].lock, cpu);
	for (i = 0; i < HOT_CPUS; i++)
		hot_recover_lock(&hot_shared[i].tx_done_lock, cpu);
	hot_recover_queues(dev, cpu);
	hot_napi_recover(cpu);
	hot_aggregate_recover(cpu);
	if (netif_running(dev))
		return 0;
	taken = hot_skb_reset();
	hot_transmit_recover();
	/* No packet is being sent, nor one that an aborted transmit had not counted. */
	for (i = 0; i < HOT_CPUS; i++)
		hot_shared[i].tx_sent = hot_shared[i].tx_done_produce;
	return taken;
}
