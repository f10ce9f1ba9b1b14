// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * dom0's own packets stop here while the driver is in Xen: at a netfilter hook at the
 * interface's egress, before its queue (include/linux/netfilter_netdev.h). Not all pass there:
 * XDP and its sockets, and pktgen, call the driver themselves (net/core/dev.c, __dev_direct_xmit,
 * generic_xdp_tx; net/core/pktgen.c). For them the driver's function goes on at one that drops, by a call of
 * ftrace's at its first instruction, as the kernel's own livepatches have it. The function in Xen is a copy
 * without it.
 *
 * Such a call is there where ftrace is on, and it is permanent: from the first attachment until this module is unloaded
 * ftrace is not turned off (Documentation/trace/ftrace-uses.rst, FTRACE_OPS_FL_PERMANENT). A kprobe is not: people turn it off by
 * /sys/kernel/debug/kprobes/enabled, and nobody hears of it.
 */
#include "dom0.h"
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/netfilter.h>

static atomic64_t dropped;

static netdev_tx_t swallow(struct sk_buff *skb, struct net_device *dev)
{
	atomic64_inc(&dropped);
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

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

/* ---- Around the queue ---- */

/* The driver may have other cards. */
static void notrace divert(unsigned long at, unsigned long from, struct ftrace_ops *ops, struct ftrace_regs *all)
{
	struct pt_regs *regs = ftrace_get_regs(all);

	if (regs->si == (unsigned long)READ_ONCE(hook.dev))
		regs->ip = (unsigned long)swallow;
}

static struct ftrace_ops detour = {
	.func = divert,
	/* It calls nothing that could be traced. */
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT |
		 FTRACE_OPS_FL_RECURSION,
};
static bool is_registered;
/* The driver's function; 0: nothing is diverted. */
static unsigned long transmit;

/*
 * What is diverted while no device is attached: a list of nothing would be of everything. It is not called. So the list
 * changes when devices come and go, which waits for nobody; to end altogether waits until each thread of the
 * kernel's has slept, which may be never, and nobody waits for that with RTNL.
 */
static noinline __used void nowhere(void)
{
	asm volatile("");
}

static int register_detour(void)
{
	int error = is_registered ? 0 : ftrace_set_filter_ip(&detour, (unsigned long)nowhere, 0, 1);

	if (!error && !is_registered)
		error = register_ftrace_function(&detour);
	is_registered = !error;
	return error;
}

int twin_egress_close(struct net_device *dev)
{
	const unsigned long function = (unsigned long)dev->netdev_ops->ndo_start_xmit;
	int error = register_detour();

	if (!error)
		error = ftrace_set_filter_ip(&detour, function, 0, 0);
	if (error)
		TWIN_LOG(err, "dom0's packets cannot be kept from the driver of %s: %d%s", dev->name, error,
			 error == -EBUSY ? ": ftrace is turned off (sysctl kernel.ftrace_enabled=1), or a kernel livepatch has the function" : "");
	else
		transmit = function;
	return error;
}

static void open_again(void)
{
	if (transmit && ftrace_set_filter_ip(&detour, transmit, 1, 0)) {
		/* It has ended after a defect of the kernel's, and its calls stay. */
		__module_get(THIS_MODULE);
		TWIN_LOG(err, "ftrace does not let go of the driver: twin_dom0 stays loaded");
	}
	transmit = 0;
}

/* Nobody is on the way through divert() behind this. */
void twin_egress_exit(void)
{
	if (!is_registered)
		return;
	unregister_ftrace_function(&detour);
	ftrace_set_filter_ip(&detour, (unsigned long)nowhere, 1, 0);
}

/* ---- All ---- */

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
	open_again();
	if (hook.dev)
		nf_unregister_net_hook(&init_net, &hook);
	hook.dev = NULL;
}

u64 twin_egress_dropped(void)
{
	return atomic64_read(&dropped);
}
