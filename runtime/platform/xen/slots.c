// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Choosing what the window shows.
 *
 * A stock dom0 has its direct map from slot 273 on, vmalloc from 402, struct page[] from
 * 468 and the kernel in 511, whose residues differ. What else it has (the topmost part of
 * vmalloc has dynamic per-CPU memory) is shown if its place is free, else not: driver
 * code that goes there reaches the slot that has the place, or a hole. It is confined
 * either way.
 */
#include "slots.h"

/* The slot of the kernel and its modules, which the mirror shows as well. */
#define LAST_SLOT (XEN_SLOTS - 1)

static enum xen_slots_refusal admit(struct xen_slots_plan *plan, uint32_t slot,
				    const bool present[XEN_SLOTS])
{
	uint32_t *place = &plan->shown[xen_residue(slot)];

	plan->slot = slot;
	if (slot < XEN_DOM0_FIRST)
		return XEN_SLOTS_NOT_KERNEL;
	if (!xen_residue(slot))
		return XEN_SLOTS_RESIDUE_0;
	if (!present[slot])
		return XEN_SLOTS_ABSENT;
	if (*place && *place != slot) {
		plan->other = *place;
		return XEN_SLOTS_COLLISION;
	}
	*place = slot;
	return XEN_SLOTS_OK;
}

enum xen_slots_refusal xen_slots_plan(struct xen_slots_plan *plan, const uint64_t *needed,
				      uint32_t count, const bool present[XEN_SLOTS])
{
	enum xen_slots_refusal refusal;
	uint32_t i;

	*plan = (struct xen_slots_plan){ 0 };
	for (i = 0; i < count; i++) {
		refusal = admit(plan, xen_slot_of(needed[i]), present);
		if (refusal)
			return refusal;
	}
	plan->slot = LAST_SLOT;
	if (plan->shown[xen_residue(LAST_SLOT)] != LAST_SLOT)
		return XEN_SLOTS_NO_MIRROR;
	for (i = XEN_DOM0_FIRST; i < XEN_SLOTS; i++)
		if (present[i] && xen_residue(i) && !plan->shown[xen_residue(i)])
			plan->shown[xen_residue(i)] = i;
	return XEN_SLOTS_OK;
}

const char *xen_slots_reason(enum xen_slots_refusal refusal)
{
	switch (refusal) {
	case XEN_SLOTS_OK:
		return "no reason";
	case XEN_SLOTS_NOT_KERNEL:
		return "an address that dom0 gave is not in its half";
	case XEN_SLOTS_RESIDUE_0:
		return "dom0 has memory in a slot whose place is the data stacks'";
	case XEN_SLOTS_ABSENT:
		return "dom0 has nothing where it says that its memory is";
	case XEN_SLOTS_COLLISION:
		return "two parts of dom0's memory have the same low 42 bits";
	case XEN_SLOTS_NO_MIRROR:
		return "dom0's kernel is not in the last slot";
	}
	return "unknown";
}
