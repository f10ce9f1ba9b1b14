// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * dom0's memory for code that is not rewritten: the rings of guests, requests and
 * completions of the hot routines, received frames.
 *
 * Addresses come from dom0 or from the driver. They are cut like the driver's own, so that
 * they lead to dom0's memory or nowhere, and the copy is one instruction whose fault is
 * in the payload's exception table: a page that is not there is a result, not Xen's end.
 */
#include "platform.h"

/* The window's end is a guard: a copy that begins in the window may run into it. */
#define LONGEST TWIN_WIDE_GUARD

static bool copy(void *to, const void *from, uint32_t bytes)
{
	const uint64_t flags = xen_interrupts_off();
	uint64_t left;

	xen_alias_ready(xen_processor());
	left = xen_copy_unsafe(to, from, bytes);
	xen_interrupts_restore(flags);
	return !left;
}

_Static_assert(LONGEST >= UINT32_MAX, "no length steps over the guard");

bool xen_dom0_read(void *to, uint64_t from, uint32_t bytes)
{
	return copy(to, (const void *)xen_cut(from), bytes);
}

bool xen_dom0_write(uint64_t to, const void *from, uint32_t bytes)
{
	return copy((void *)xen_cut(to), from, bytes);
}

bool xen_dom0_read_ready(void *to, uint64_t from, uint32_t bytes)
{
	return !xen_copy_unsafe(to, (const void *)xen_cut(from), bytes);
}

bool xen_dom0_write_ready(uint64_t to, const void *from, uint32_t bytes)
{
	return !xen_copy_unsafe((void *)xen_cut(to), from, bytes);
}
