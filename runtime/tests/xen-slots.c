// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Which slots of dom0's page table the window shows (platform/xen/slots.c). */
#include "test.h"

#include "../platform/xen/slots.h"

/* A stock dom0's. */
static const uint64_t stock[] = {
	0xffff888000000000, 0xffffc90000000000, 0xffffea0000000000, 0xffffffff81000000,
};

static void slots_of_a_stock_dom0(void)
{
	bool present[XEN_SLOTS] = { [273] = true, [402] = true, [468] = true, [511] = true };
	struct xen_slots_plan plan;

	CHECK_EQUAL(xen_slots_plan(&plan, stock, 4, present), XEN_SLOTS_OK);
	CHECK_EQUAL(plan.shown[0], 0);
	CHECK_EQUAL(plan.shown[1], 273);
	CHECK_EQUAL(plan.shown[2], 402);
	CHECK_EQUAL(plan.shown[3], 0);
	CHECK_EQUAL(plan.shown[4], 468);
	CHECK_EQUAL(plan.shown[7], 511);
	CHECK_EQUAL(xen_cut(0xffff888000000000), XEN_SLOT(XEN_SLOT_WINDOW + 1));
	CHECK_EQUAL(xen_cut(0xffffffffffffffff), XEN_SLOT(XEN_SLOT_AFTER) - 1);
}

/* Dynamic per-CPU memory has the direct map's residue and is left out. */
static void slots_that_are_not_needed_give_way(void)
{
	bool present[XEN_SLOTS] = { [273] = true, [402] = true, [404] = true, [465] = true,
				    [468] = true, [511] = true, [272] = true };
	struct xen_slots_plan plan;

	CHECK_EQUAL(xen_slots_plan(&plan, stock, 4, present), XEN_SLOTS_OK);
	CHECK_EQUAL(plan.shown[0], 0);
	CHECK_EQUAL(plan.shown[1], 273);
	CHECK_EQUAL(plan.shown[4], 468);
}

static enum xen_slots_refusal refusal_of(uint64_t address, uint32_t present_slot)
{
	const uint64_t needed[] = { stock[0], stock[1], stock[2], stock[3], address };
	bool present[XEN_SLOTS] = { [273] = true, [402] = true, [468] = true, [511] = true };
	struct xen_slots_plan plan;

	present[present_slot] = true;
	return xen_slots_plan(&plan, needed, 5, present);
}

static void slots_are_refused(void)
{
	bool present[XEN_SLOTS] = { [273] = true };
	struct xen_slots_plan plan;

	CHECK_EQUAL(refusal_of(0x1000, 273), XEN_SLOTS_NOT_KERNEL);
	CHECK_EQUAL(refusal_of(0xffff830000000000, 273), XEN_SLOTS_NOT_KERNEL);
	CHECK_EQUAL(refusal_of(XEN_SLOT(272), 272), XEN_SLOTS_RESIDUE_0);
	CHECK_EQUAL(refusal_of(XEN_SLOT(275), 273), XEN_SLOTS_ABSENT);
	CHECK_EQUAL(refusal_of(XEN_SLOT(281), 281), XEN_SLOTS_COLLISION);
	CHECK_EQUAL(refusal_of(XEN_SLOT(275), 275), XEN_SLOTS_OK);
	CHECK_EQUAL(xen_slots_plan(&plan, stock, 1, present), XEN_SLOTS_NO_MIRROR);
}

int main(void)
{
	RUN(slots_of_a_stock_dom0);
	RUN(slots_that_are_not_needed_give_way);
	RUN(slots_are_refused);
	return test_summary();
}
