// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What Xen's livepatch loader calls.
 *
 *   load      relocate, resolve
 *   preapply  may this machine? A refusal leaves Xen as it is
 *   apply     functions are replaced, with all processors stopped
 *   ...       dom0 attaches and detaches (attach.c)
 *   prerevert refused while a device is attached; what is mapped for Xen is taken away
 *   revert    the same, asked with all processors stopped; then functions are Xen's again
 *   unload    the payload's memory is free
 *
 * Between prerevert and revert all processors go on, and another virtual processor of dom0's may
 * attach a device. When they are stopped none is inside the payload (livepatch.c,
 * livepatch_do_action), but a command may have a half that Xen is still to call, or have mapped the card anew. Then it is
 * refused, as where a device is attached.
 */
#include "platform.h"

static int before_apply(struct livepatch_payload *payload)
{
	const int status = xen_machine_check();

	(void)payload;
	if (status)
		printk(XEN_WARNING "twin: not applied: %s\n", xen_reason);
	return status;
}

/* What Xen does where there is no such hook. */
int revert_payload(struct livepatch_payload *payload);

static int refuse(void)
{
	printk(XEN_WARNING "twin: not reverted: a device is attached\n");
	return -XEN_EBUSY;
}

/* No command begins meanwhile. */
static int before_revert(struct livepatch_payload *payload)
{
	bool occupied;

	(void)payload;
	if (!xen_command_begin())
		return refuse();
	occupied = xen_occupied();
	if (!occupied)
		xen_card_forget();
	xen_command_end();
	return occupied ? refuse() : 0;
}

static int revert(struct livepatch_payload *payload)
{
	if (xen_occupied() || xen_commanded() || xen_card_is_mapped())
		return refuse();
	return revert_payload(payload);
}

XEN_HOOK(preapply, before_apply);
XEN_HOOK(prerevert, before_revert);
XEN_HOOK(revert, revert);
