// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "dom0.h"
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
