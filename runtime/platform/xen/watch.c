// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Whether a processor is stuck; clock.c asks for each other one. */
#include "clock.h"

bool xen_watch(struct xen_watch *watch, uint64_t turn)
{
	if (turn % 2 == 0 || turn != watch->turn) {
		*watch = (struct xen_watch){ .turn = turn };
		return false;
	}
	return ++watch->ticks >= XEN_WATCH_LIMIT;
}
