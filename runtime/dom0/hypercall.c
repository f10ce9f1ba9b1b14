// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "dom0.h"
#include <linux/delay.h>
#include <asm/xen/hypercall.h>

int twin_xen_call(enum twin_xen_command command, void *argument, u32 size)
{
	struct twin_xen_header *header = argument;

	if (header) {
		header->version = TWIN_XEN_VERSION;
		header->size = size;
	}
	return xen_single_call(TWIN_XEN_HYPERCALL, command, (unsigned long)argument, 0, 0, 0);
}

#define TWIN_RETRY_MS 1

int twin_xen_call_patiently(enum twin_xen_command command, void *argument, u32 size)
{
	int error;

	while ((error = twin_xen_call(command, argument, size)) == -EAGAIN)
		msleep(TWIN_RETRY_MS);
	return error;
}
