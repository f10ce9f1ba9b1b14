// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * When the payload may be taken back: platform/xen/payload.c, with a device that is attached after
 * Xen has asked, and before it has stopped the processors.
 */
#include "../platform/xen/platform.h"
#include "test.h"

#include "../platform/xen/payload.c"

static bool occupied, commanded, mapped;
static uint32_t reverted;
char xen_reason[TWIN_XEN_REASON];

bool xen_occupied(void)
{
	return occupied;
}

bool xen_commanded(void)
{
	return commanded;
}

bool xen_command_begin(void)
{
	const bool may = !commanded;

	commanded = true;
	return may;
}

void xen_command_end(void)
{
	commanded = false;
}

void xen_card_forget(void)
{
	CHECK(commanded && !occupied);
	mapped = false;
}

bool xen_card_is_mapped(void)
{
	return mapped;
}

int xen_machine_check(void)
{
	return 0;
}

int revert_payload(struct livepatch_payload *payload)
{
	(void)payload;
	reverted++;
	return 0;
}

void printk(const char *format, ...)
{
	(void)format;
}

static void nobody_uses_it(void)
{
	CHECK_EQUAL(hook_preapply(NULL), 0);
	mapped = true;
	CHECK_EQUAL(hook_prerevert(NULL), 0);
	CHECK(!mapped);
	CHECK_EQUAL(hook_revert(NULL), 0);
	CHECK_EQUAL(reverted, 1);
}

static void it_is_in_use(bool *reason)
{
	reverted = 0;
	*reason = true;
	CHECK_EQUAL(hook_prerevert(NULL), -XEN_EBUSY);
	*reason = false;
	CHECK_EQUAL(hook_prerevert(NULL), 0);
	*reason = true;
	CHECK_EQUAL(hook_revert(NULL), -XEN_EBUSY);
	CHECK_EQUAL(reverted, 0);
	*reason = false;
}

static void a_device_is_attached_meanwhile(void)
{
	it_is_in_use(&occupied);
}

/* Its second half would be called where the payload was. */
static void a_command_is_not_done(void)
{
	it_is_in_use(&commanded);
}

/* And detached: what it has mapped would stay when the payload is gone. */
static void a_card_is_mapped_meanwhile(void)
{
	reverted = 0;
	CHECK_EQUAL(hook_prerevert(NULL), 0);
	mapped = true;
	CHECK_EQUAL(hook_revert(NULL), -XEN_EBUSY);
	CHECK_EQUAL(reverted, 0);
	CHECK_EQUAL(hook_prerevert(NULL), 0);
	CHECK_EQUAL(hook_revert(NULL), 0);
	CHECK_EQUAL(reverted, 1);
}

int main(void)
{
	RUN(nobody_uses_it);
	RUN(a_device_is_attached_meanwhile);
	RUN(a_command_is_not_done);
	RUN(a_card_is_mapped_meanwhile);
	return test_summary();
}
