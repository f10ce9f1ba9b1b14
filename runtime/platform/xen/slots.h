/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which of dom0's slots the window shows. Arithmetic on a copy of its top-level table:
 * nothing of Xen's is needed, so that the tests run it on any machine.
 */
#ifndef TWIN_XEN_SLOTS_H
#define TWIN_XEN_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "layout.h"

/* Why no plan can be made. */
enum xen_slots_refusal {
	XEN_SLOTS_OK = 0,
	XEN_SLOTS_NOT_KERNEL,	/* a needed address is not of dom0's half */
	XEN_SLOTS_RESIDUE_0,	/* ... is in the place of the data stacks */
	XEN_SLOTS_ABSENT,	/* ... is in a slot in which dom0 has nothing */
	XEN_SLOTS_COLLISION,	/* two needed slots have one place */
	XEN_SLOTS_NO_MIRROR,	/* the last slot is not among them */
};

/* shown[residue] is the number of dom0's slot, or 0 for none. */
struct xen_slots_plan {
	uint32_t shown[XEN_WINDOW_SLOTS];
	/* Of a refusal: the slots that it is about; `other` with a collision only. */
	uint32_t slot, other;
};

/*
 * Plan a window for a dom0 in which driver code uses needed[count]: an address in each
 * part of its memory. present says whether dom0 has anything in a slot. The slots of
 * needed[] get their places first; further ones where a place is free.
 */
enum xen_slots_refusal xen_slots_plan(struct xen_slots_plan *plan, const uint64_t *needed,
				      uint32_t count, const bool present[XEN_SLOTS]);

/* For messages; never NULL. */
const char *xen_slots_reason(enum xen_slots_refusal refusal);

#endif /* TWIN_XEN_SLOTS_H */
