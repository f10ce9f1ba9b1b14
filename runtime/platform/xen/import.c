// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What driver code and hot routines call outside.
 *
 * The hot routines are rewritten and inside, so packets need two imports: the frame that they
 * received, and bytes of one to send, if the card cannot gather or add up. Every other routine of dom0's kernel is an upcall (upcall.c).
 *
 * Called with interrupts off, on Xen's stack; the GS base is the driver's (gate.c).
 */
#include <twin/gather.h>
#include <twin/guest.h>

#include "platform.h"

/*
 * u32 host_receive(void *data, u32 length, struct sk_buff *skb, u32 flags, u32 vlan)
 *
 * The frame is copied at once, so the hot routine keeps its buffer; guests have it when the driver
 * has returned (receive.c). Or there is none, and the driver is shown what else the card has received.
 */
int twin_import_host_receive(struct twin_cpu *cpu, struct twin_call_frame *frame)
{
	(void)cpu;
	if (__builtin_expect(frame->rcx & HOT_RX_LOOK, 0)) {
		frame->rax = xen_dma_look() ? HOT_RX_MORE : HOT_RX_UNWANTED;
		return TWIN_OK;
	}
	xen_receive_put(frame->rdi, frame->rsi, frame->rcx, frame->r8);
	frame->rax = HOT_RX_UNWANTED;
	return TWIN_OK;
}

_Static_assert(HOT_GATHERS == TWIN_GATHERS && HOT_GATHER_MOST == TWIN_GATHER_MOST, "the hot routines' list");

/*
 * u32 host_gather(void *to, u64 cookie, u32 offset, u32 bytes, u32 each, const struct sk_buff *whole)
 *
 * Bytes of a packet that is being sent, to one place or to each of a list, and their sums (transmit.c). What
 * is not dom0's memory ends the driver, as if it had written there itself.
 */
int twin_import_host_gather(struct twin_cpu *cpu, struct twin_call_frame *frame)
{
	const struct twin_gather gather = {
		.list = frame->rdi, .ticket = frame->rsi, .offset = (uint32_t)frame->rdx,
		.bytes = (uint32_t)frame->rcx, .each = (uint32_t)frame->r8,
	};
	const enum xen_gathered gathered = xen_transmit_gather(&gather);

	(void)cpu;
	if (gathered == XEN_GATHERED_ELSEWHERE)
		return TWIN_ABORTED;
	frame->rax = gathered == XEN_GATHERED;
	return TWIN_OK;
}
