// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A function of dom0's that goes on elsewhere, as long as a kprobe is at its first instruction
 * (Documentation/trace/kprobes.rst, Changing Execution Path). The one in Xen is a copy without it.
 */
#include "dom0.h"
#include <linux/kprobes.h>
#include <linux/uaccess.h>
#include <asm/text-patching.h>

/* Without this a probe may become a jump, after which the original goes on whatever the handler
 * says (the same, How Does Jump Optimization Work?). */
static void __kprobes after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

/*
 * A probe is a breakpoint, or a call of ftrace's. Neither is there where people have turned kprobes or ftrace off, of
 * which register_kprobe() says nothing: the function would go on as ever.
 */
static bool is_armed(const struct kprobe *probe)
{
	u8 first;

	return !copy_from_kernel_nofault(&first, probe->addr, sizeof(first)) &&
	       (first == INT3_INSN_OPCODE || first == CALL_INSN_OPCODE);
}

int twin_divert(struct kprobe *probe, kprobe_opcode_t *address, const char *symbol,
		kprobe_pre_handler_t handler)
{
	int error;

	/* One that was registered has flags of its own. */
	*probe = (struct kprobe){
		.addr = address,
		.symbol_name = symbol,
		.pre_handler = handler,
		.post_handler = after,
	};
	error = register_kprobe(probe);
	if (error || is_armed(probe))
		return error;
	unregister_kprobe(probe);
	TWIN_LOG(err, "kprobes are turned off: sysctl kernel.ftrace_enabled=1, and 1 into /sys/kernel/debug/kprobes/enabled");
	return -EPERM;
}
