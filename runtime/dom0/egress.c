// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * dom0's own packets stop here while the driver is in Xen: at a netfilter hook at the
 * interface's egress, before its queue (include/linux/netfilter_netdev.h). Not all pass there:
 * XDP sockets and pktgen call the driver themselves (net/core/dev.c, __dev_direct_xmit;
 * net/core/pktgen.c). For them the driver's function goes on at one that drops.
 */
#include "dom0.h"
#include <linux/netfilter.h>

static atomic64_t dropped;

static netdev_tx_t swallow(struct sk_buff *skb, struct net_device *dev)
{
	atomic64_inc(&dropped);
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static struct kprobe probe;

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

/* The driver may have other cards. */
static int __kprobes divert(struct kprobe *at, struct pt_regs *regs)
{
	if (regs->si != (unsigned long)hook.dev)
		return 0;
	regs->ip = (unsigned long)swallow;
	return 1;
}

int twin_egress_close(struct net_device *dev)
{
	kprobe_opcode_t *transmit = (kprobe_opcode_t *)dev->netdev_ops->ndo_start_xmit;
	int error = twin_divert(&probe, transmit, NULL, divert);

	if (error) {
		probe.addr = NULL;
		TWIN_LOG(err, "dom0's packets cannot be kept from the driver of %s: %d", dev->name,
			 error);
	}
	return error;
}

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
	if (probe.addr)
		unregister_kprobe(&probe);
	probe.addr = NULL;
	if (hook.dev)
		nf_unregister_net_hook(&init_net, &hook);
	hook.dev = NULL;
}

u64 twin_egress_dropped(void)
{
	return atomic64_read(&dropped);
}
