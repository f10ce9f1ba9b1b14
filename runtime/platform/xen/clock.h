/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How one processor sees that another is stuck, without Xen.
 */
#ifndef TWIN_XEN_CLOCK_H
#define TWIN_XEN_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* What was seen of a processor's turns. */
struct xen_watch {
	uint64_t turn;
	uint32_t ticks;		/* how often the same since */
};

/* Ticks after which a turn takes too long. */
#define XEN_WATCH_LIMIT 10u
#define XEN_CLOCK_TICK 100000000ll	/* ns */
#define XEN_CLOCK_LIMIT (XEN_CLOCK_TICK * XEN_WATCH_LIMIT)

/* A tick: the processor's turn is that now, odd while driver code runs. Whether it is the
 * same as so many ticks ago. [any], of the watch's owner. */
bool xen_watch(struct xen_watch *watch, uint64_t turn);

/* That processor's turn has taken too long: it is sent an NMI. again: by this caller, and the last
 * one has had time to come. [any] */
void xen_clock_ask(uint32_t processor, uint64_t turn, bool again);

#endif /* TWIN_XEN_CLOCK_H */
