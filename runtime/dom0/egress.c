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
/* The driver's function, from the first attachment until the driver or this module is unloaded; 0: none is diverted. */
static unsigned long transmit;

/*
 * The function is in the list before that is registered: only then BPF programs that are called with the function's
 * result call the one that we go on at, and other callers of its address are refused (kernel/trace/ftrace.c,
 * prepare_direct_functions_for_ipmodify).
 */
static int begin(unsigned long function)
{
	int error;

	if (transmit)
		return transmit == function ? 0 : -EBUSY;
	error = ftrace_set_filter_ip(&detour, function, 0, 1);
	if (error)
		return error;
	error = register_ftrace_function(&detour);
	if (error)
		ftrace_set_filter_ip(&detour, function, 1, 0);
	else
		transmit = function;
	return error;
}

/* Nobody is on the way through divert() behind this: it waits until each thread of the kernel's has slept, which may be
 * long, and nobody waits for that with RTNL. */
static void end(void)
{
	if (!transmit)
		return;
	unregister_ftrace_function(&detour);
	ftrace_set_filter_ip(&detour, transmit, 1, 0);
	transmit = 0;
}

/* Its list without a change: an error is that ftrace has ended after a defect of the kernel's, and its calls stay. */
static void check_ftrace(void)
{
	if (!transmit || !ftrace_set_filter_ip(&detour, transmit, 0, 1))
		return;
	__module_get(THIS_MODULE);
	TWIN_LOG(err, "ftrace does not let go of the driver: twin_dom0 stays loaded");
}

int twin_egress_close(struct net_device *dev)
{
	int error = begin((unsigned long)dev->netdev_ops->ndo_start_xmit);

	if (error)
		TWIN_LOG(err, "dom0's packets cannot be kept from the driver of %s: %d%s", dev->name, error,
			 error == -EBUSY ? ": ftrace is turned off (sysctl kernel.ftrace_enabled=1), or a kernel livepatch or "
			 "another module has the function" : "");
	else
		/* Who was in the function before has left it. */
		synchronize_net();
	return error;
}

/* The driver is unloaded, so no device of it is attached, nor will be. */
static int unloading(struct notifier_block *block, unsigned long state, void *module)
{
	if (state == MODULE_STATE_GOING && within_module(transmit, module))
		end();
	return NOTIFY_DONE;
}

static struct notifier_block unload_notifier = { .notifier_call = unloading };

int twin_egress_init(void)
{
	return register_module_notifier(&unload_notifier);
}

void twin_egress_exit(void)
{
	unregister_module_notifier(&unload_notifier);
	end();
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
	check_ftrace();
	if (hook.dev)
		nf_unregister_net_hook(&init_net, &hook);
	hook.dev = NULL;
}

u64 twin_egress_dropped(void)
{
	return atomic64_read(&dropped);
}
