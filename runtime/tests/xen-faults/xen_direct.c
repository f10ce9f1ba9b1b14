// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A dom0 in which the function that transmits is traced from outside of ftrace's own list of callers, by a direct call
 * (Documentation/trace/ftrace-uses.rst): as a BPF program that is called with a function's result, it goes on
 * in the function's body, wherever ftrace's other callers would go on.
 *
 *   insmod xen_direct.ko interface=NAME
 */
#include <linux/ftrace.h>
#include <linux/linkage.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/version.h>
#include <asm/ibt.h>

/* Under that name since Linux 6.4. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define register_ftrace_direct(ops, address)		register_ftrace_direct_multi(ops, address)
#define unregister_ftrace_direct(ops, address, free)	unregister_ftrace_direct_multi(ops, address)
#endif

static char *interface = "eth0";
module_param(interface, charp, 0400);

/* Behind the call. */
unsigned long xen_direct_body;
void xen_direct(void);

asm(".pushsection .text, \"ax\", @progbits\n"
    ".type xen_direct, @function\n"
    ".globl xen_direct\n"
    "xen_direct:\n"
    ASM_ENDBR
    "mov xen_direct_body(%rip), %rax\n"
    "mov %rax, (%rsp)\n"
    ASM_RET
    ".size xen_direct, . - xen_direct\n"
    ".popsection\n");

static struct ftrace_ops direct;

static int __init xen_direct_init(void)
{
	struct net_device *dev = dev_get_by_name(&init_net, interface);
	unsigned long function = dev ? (unsigned long)dev->netdev_ops->ndo_start_xmit : 0;
	int error;

	dev_put(dev);
	if (!function)
		return -ENODEV;
#ifdef CONFIG_X86_KERNEL_IBT
	xen_direct_body = function + 4 + MCOUNT_INSN_SIZE;
#else
	xen_direct_body = function + MCOUNT_INSN_SIZE;
#endif
	error = ftrace_set_filter_ip(&direct, function, 0, 0);
	return error ? error : register_ftrace_direct(&direct, (unsigned long)xen_direct);
}

static void __exit xen_direct_exit(void)
{
	unregister_ftrace_direct(&direct, (unsigned long)xen_direct, true);
}

module_init(xen_direct_init);
module_exit(xen_direct_exit);
MODULE_DESCRIPTION("A dom0 that calls the driver's function's body around ftrace, for tests");
MODULE_LICENSE("Dual MIT/GPL");
