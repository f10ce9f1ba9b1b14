// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A function of dom0's that goes on elsewhere, as long as a kprobe is at its first instruction
 * (Documentation/trace/kprobes.rst, Changing Execution Path). The one in Xen is a copy without it.
 */
#include "dom0.h"
#include <linux/kprobes.h>

/* Without this a probe may become a jump, after which the original goes on whatever the handler
 * says (the same, How Does Jump Optimization Work?). */
static void __kprobes after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

int twin_divert(struct kprobe *probe, kprobe_opcode_t *address, const char *symbol,
		kprobe_pre_handler_t handler)
{
	/* One that was registered has flags of its own. */
	*probe = (struct kprobe){
		.addr = address,
		.symbol_name = symbol,
		.pre_handler = handler,
		.post_handler = after,
	};
	return register_kprobe(probe);
}
