// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * dom0's own packets stop here while the driver is in Xen: a netfilter hook at the
 * interface's egress, before its queue (include/linux/netfilter_netdev.h).
 */
#include "dom0.h"
#include <linux/netfilter.h>

static atomic64_t dropped;

static unsigned int drop(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	atomic64_inc(&dropped);
	return NF_DROP;
}

static struct nf_hook_ops hook = {
	.hook = drop,
	.pf = NFPROTO_NETDEV,
	.hooknum = NF_NETDEV_EGRESS,
	.priority = INT_MIN,
};

int twin_egress_block(struct net_device *dev)
{
	int error;

	hook.dev = dev;
	error = nf_register_net_hook(&init_net, &hook);
	if (error) {
		hook.dev = NULL;
		return error;
	}
	/* Whoever passed before has reached the queue. */
	synchronize_net();
	return 0;
}

void twin_egress_unblock(void)
{
	if (hook.dev)
		nf_unregister_net_hook(&init_net, &hook);
	hook.dev = NULL;
}

u64 twin_egress_dropped(void)
{
	return atomic64_read(&dropped);
}
