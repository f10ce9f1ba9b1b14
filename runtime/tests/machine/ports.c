// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: ports, warnings, bugs.
 */
#include "machine.h"

void port_input_merges_as_the_processor_does(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_in8, 0x300, UINT64_MAX), TWIN_OK);
	CHECK_EQUAL(result, 0xffffffffffffffef);
	CHECK_EQUAL(enter(driver_in16, 0x300, UINT64_MAX), TWIN_OK);
	CHECK_EQUAL(result, 0xffffffffffffcdef);
	CHECK_EQUAL(enter(driver_in32, 0x300, UINT64_MAX), TWIN_OK);
	CHECK_EQUAL(result, 0x89abcdef);
	CHECK_EQUAL(host.port, 0x300);
	CHECK_EQUAL(host.size, 4);
	tear_down();
}

void port_output_truncates_as_the_processor_does(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_out8, 0xabcd0301, 0x1122334455667788), TWIN_OK);
	CHECK_EQUAL(host.value, 0x88);
	CHECK_EQUAL(host.port, 0x301);
	CHECK_EQUAL(enter(driver_out16, 0x301, 0x1122334455667788), TWIN_OK);
	CHECK_EQUAL(host.value, 0x7788);
	CHECK_EQUAL(enter(driver_out32, 0x301, 0x1122334455667788), TWIN_OK);
	CHECK_EQUAL(host.value, 0x55667788);
	CHECK_EQUAL(host.size, 4);
	tear_down();
}

void refused_ports_abort(void)
{
	static const char *const entries[] = {
		driver_in8, driver_in16, driver_in32, driver_out8, driver_out16, driver_out32,
	};
	unsigned int i;

	for (i = 0; i < 6; i++) {
		set_up(TWIN_SCHEME_STLB);
		aborts_with(entries[i], 0xcf8, 0, TWIN_ABORT_PORT, 0xcf8);
		CHECK_EQUAL(cpu->report.reason, 1u << i % 3);
		CHECK_EQUAL(host.size, 0);
		tear_down();
	}
}

void warnings_go_on(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_warn, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, 77);
	CHECK_EQUAL(host.warnings, 1);
	CHECK(host.warn_site > (uint64_t)driver_warn && host.warn_site < (uint64_t)driver_bug);
	tear_down();
}

void overwritten_return_addresses_abort(void)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_smashed, 0, 0, TWIN_ABORT_RETURN, 0x5a5a);
	CHECK_EQUAL(cpu->report.rip, (uint64_t)driver_smashed_site);
	tear_down();
}

void wild_pointers_abort(void)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_wild, 0xdead000000000100, 0, TWIN_ABORT_ACCESS, 0xdead000000000100);
	CHECK_EQUAL(cpu->report.reason, TWIN_REFUSED_NOT_DOM0);
	CHECK_EQUAL(cpu->report.rip, (uint64_t)driver_wild_site);
	tear_down();
}

void bugs_abort(void)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_bug, 0, 0, TWIN_ABORT_BUG, 0);
	CHECK_EQUAL(cpu->report.rip, (uint64_t)driver_bug_site);
	tear_down();
}
