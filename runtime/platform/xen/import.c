// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What driver code and hot routines call outside.
 *
 * The hot routines are rewritten and inside, so packets need one import: the frame that
 * they received. Every other routine of dom0's kernel is an upcall (upcall.c).
 *
 * Called with interrupts off, on Xen's stack, with Xen's GS base.
 */
#include <twin/guest.h>

#include "platform.h"

/*
 * u32 host_receive(void *data, u32 length, struct sk_buff *skb, u32 flags, u32 vlan)
 *
 * The frame is copied at once, so the hot routine keeps its buffer; guests have it when the driver
 * has returned (receive.c).
 */
int twin_import_host_receive(struct twin_cpu *cpu, struct twin_call_frame *frame)
{
	(void)cpu;
	xen_receive_put(frame->rdi, frame->rsi, frame->rcx, frame->r8);
	frame->rax = HOT_RX_UNWANTED;
	return TWIN_OK;
}
