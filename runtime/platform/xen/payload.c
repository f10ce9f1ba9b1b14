// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What Xen's livepatch loader calls.
 *
 *   load      relocate, resolve
 *   preapply  may this machine? A refusal leaves Xen as it is
 *   apply     functions are replaced, with all processors stopped
 *   ...       dom0 attaches and detaches (attach.c)
 *   prerevert refused while a device is attached
 *   revert    functions are Xen's again
 *   unload    the payload's memory is free
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

static int before_revert(struct livepatch_payload *payload)
{
	(void)payload;
	if (!xen_occupied())
		return 0;
	printk(XEN_WARNING "twin: not reverted: a device is attached\n");
	return -XEN_EBUSY;
}

XEN_HOOK(preapply, before_apply);
XEN_HOOK(prerevert, before_revert);
