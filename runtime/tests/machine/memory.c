// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: translation, accesses that succeed and that are refused.
 */
#include "machine.h"

static void loads_and_stores_reach_dom0(uint32_t scheme, const char *load, const char *store)
{
	unsigned int i;

	set_up(scheme);
	for (i = 0; i < 3; i++) {
		CHECK_EQUAL(enter(load, DATA + 0x18, 0), TWIN_OK);
		CHECK_EQUAL(result, word(0, 0x18));
	}
	CHECK_EQUAL(instance->statistics.fills, 1);
	CHECK_EQUAL(enter(store, DATA + 2 * PAGE + 8, 0x1122334455667788), TWIN_OK);
	CHECK_EQUAL(word(2, 8), 0x1122334455667788);
	CHECK_EQUAL(enter(load, DATA + 2 * PAGE + 8, 0), TWIN_OK);
	CHECK_EQUAL(result, 0x1122334455667788);
	tear_down();
}

void loads_and_stores_reach_dom0_by_stlb(void)
{
	loads_and_stores_reach_dom0(TWIN_SCHEME_STLB, driver_load, driver_store);
}

void loads_and_stores_reach_dom0_by_paper(void)
{
	loads_and_stores_reach_dom0(TWIN_SCHEME_PAPER, driver_load_paper, driver_store_paper);
}

static uint64_t joined(uint64_t first, uint64_t second)
{
	return first >> 32 | second << 32;
}

static void an_access_may_straddle_two_pages(uint32_t scheme, const char *load, const char *store)
{
	set_up(scheme);
	/* Neighbours in the file. */
	CHECK_EQUAL(enter(load, DATA + PAGE - 4, 0), TWIN_OK);
	CHECK_EQUAL(result, joined(word(0, PAGE - 8), word(1, 0)));
	/* Neighbours in dom0 only. */
	CHECK_EQUAL(enter(load, DATA + 4 * PAGE - 4, 0), TWIN_OK);
	CHECK_EQUAL(result, joined(word(3, PAGE - 8), word(8, 0)));
	CHECK_EQUAL(enter(store, DATA + 4 * PAGE - 4, 0x1122334455667788), TWIN_OK);
	CHECK_EQUAL(word(3, PAGE - 4) & 0xffffffff, 0x55667788);
	CHECK_EQUAL(word(8, 0) & 0xffffffff, 0x11223344);
	tear_down();
}

void an_access_may_straddle_two_pages_by_stlb(void)
{
	an_access_may_straddle_two_pages(TWIN_SCHEME_STLB, driver_load, driver_store);
}

void an_access_may_straddle_two_pages_by_paper(void)
{
	an_access_may_straddle_two_pages(TWIN_SCHEME_PAPER, driver_load_paper, driver_store_paper);
}

void the_last_page_is_usable_to_its_end_and_no_further(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_load, DATA_END - 8, 0), TWIN_OK);
	CHECK_EQUAL(result, word(8, PAGE - 8));
	aborts_with(driver_load, DATA_END - 4, 0, TWIN_ABORT_FAULT, DATA_END);
	CHECK_EQUAL(cpu->report.reason, 14);
	CHECK(reported_rip_within((uint64_t)driver_load, (uint64_t)driver_store));
	tear_down();
}

void the_own_stack_is_reached_by_pointer(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_stack_pointer, 41, 0), TWIN_OK);
	CHECK_EQUAL(result, 42);
	CHECK_EQUAL(instance->statistics.fills, 0);
	tear_down();
	set_up(TWIN_SCHEME_PAPER);
	CHECK_EQUAL(enter(driver_stack_pointer_paper, 41, 0), TWIN_OK);
	CHECK_EQUAL(result, 42);
	tear_down();
}

void another_cpus_stack_is_refused(void)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_load, other_cpu->driver_low, 0, TWIN_ABORT_ACCESS, other_cpu->driver_low);
	tear_down();
}

void the_stack_ends_where_it_ends(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_load, cpu->driver_low, 0), TWIN_OK);
	aborts_with(driver_load, cpu->driver_low - 1, 0, TWIN_ABORT_ACCESS, cpu->driver_low - 1);
	tear_down();
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_load, cpu->driver_high - 8, 0), TWIN_OK);
	aborts_with(driver_load, cpu->driver_high, 0, TWIN_ABORT_ACCESS, cpu->driver_high);
	tear_down();
	set_up(TWIN_SCHEME_STLB);
	/* Beginning inside and ending outside meets the guard. */
	aborts_with(driver_load, cpu->driver_high - 4, 0, TWIN_ABORT_FAULT, cpu->driver_high);
	tear_down();
}

void the_context_is_refused(void)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_store, (uint64_t)&cpu->host_rsp, 0, TWIN_ABORT_ACCESS,
		    (uint64_t)&cpu->host_rsp);
	tear_down();
}

static void a_refused_address_aborts(uint64_t address, uint32_t reason)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_load, address, 0, TWIN_ABORT_ACCESS, address);
	CHECK_EQUAL(cpu->report.reason, reason);
	CHECK(reported_rip_within((uint64_t)driver_text_start, (uint64_t)driver_text_end));
	tear_down();
}

void addresses_that_are_not_dom0s_abort(void)
{
	a_refused_address_aborts(0, TWIN_REFUSED_NOT_DOM0);
	a_refused_address_aborts(0x123456789, TWIN_REFUSED_NOT_DOM0);
	a_refused_address_aborts(DATA - 1, TWIN_REFUSED_NOT_DOM0);
	a_refused_address_aborts(DATA_END, TWIN_REFUSED_NOT_DOM0);
	a_refused_address_aborts(UINT64_MAX, TWIN_REFUSED_NOT_DOM0);
	a_refused_address_aborts(0x8000000000000000, TWIN_REFUSED_NOT_DOM0);
	a_refused_address_aborts((uint64_t)&result, TWIN_REFUSED_NOT_DOM0);
	a_refused_address_aborts((uint64_t)twin_stlb, TWIN_REFUSED_NOT_DOM0);
	a_refused_address_aborts(BALLOON + 8, TWIN_REFUSED_UNMAPPED);
}

void the_paper_scheme_refuses_too(void)
{
	set_up(TWIN_SCHEME_PAPER);
	aborts_with(driver_load_paper, 0x123456789, 0, TWIN_ABORT_ACCESS, 0x123456789);
	tear_down();
}

void windows_are_limited(void)
{
	static const struct twin_testbed_config small = {
		.scheme = TWIN_SCHEME_STLB, .windows = 1, .stlb = twin_stlb,
	};

	set_up(TWIN_SCHEME_STLB);
	twin_testbed_destroy(user);
	user = twin_testbed_create(&small);
	instance = twin_testbed_instance(user);
	add_region(DATA, 4, 0, true, true);
	CHECK_EQUAL(enter(driver_load, DATA, 0), TWIN_OK);
	aborts_with(driver_load, DATA + PAGE, 0, TWIN_ABORT_RESOURCES, DATA + PAGE);
	tear_down();
}

void read_only_pages_can_be_read(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_load, RODATA + 16, 0), TWIN_OK);
	CHECK_EQUAL(result, word(9, 16));
	aborts_with(driver_store, RODATA + 16, 1, TWIN_ABORT_FAULT, RODATA + 16);
	CHECK_EQUAL(result, 0xdead);
	CHECK(word(9, 16) != 1);
	tear_down();
}

void a_truncated_file_aborts(void)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_load, BEYOND + 8, 0, TWIN_ABORT_FAULT, BEYOND + 8);
	tear_down();
}

void strings_are_copied_in_chunks(void)
{
	/* From the middle of a page, with words that straddle pages, into pages that
	 * are neighbours in dom0 only. */
	const uint64_t from = DATA + 0x804, to = DATA + 3 * PAGE - 0x10;
	const uint64_t words = 0x1010 / 8 + 1;
	const uint64_t args[6] = { to, from, words };
	const uint64_t nothing[6] = { 0, 0, 0 };
	static uint8_t before[FILE_PAGES * 4096];
	uint64_t i;

	set_up(TWIN_SCHEME_STLB);
	memcpy(before, memory, sizeof(before));
	CHECK_EQUAL(enter6(driver_copy, args), TWIN_OK);
	for (i = 0; i < words * 8; i++) {
		uint64_t at = to - DATA + i;

		at += at >= 4 * PAGE ? 4 * PAGE : 0;
		CHECK_EQUAL(((uint8_t *)memory)[at], before[from - DATA + i]);
		before[at] = ((uint8_t *)memory)[at];
	}
	CHECK(!memcmp(before, memory, sizeof(before)));
	CHECK_EQUAL(enter6(driver_copy, nothing), TWIN_OK);
	tear_down();
}

void per_cpu_data_is_reached_by_its_base(void)
{
	set_up(TWIN_SCHEME_STLB);
	cpu->gs_base = DATA + PAGE;
	CHECK_EQUAL(enter(driver_gs, 0x40, 0), TWIN_OK);
	CHECK_EQUAL(result, word(1, 0x40));
	cpu->gs_base = 0;
	tear_down();
}

void unmapped_pages_are_asked_for_anew(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_load, DATA + 3 * PAGE, 0), TWIN_OK);
	CHECK_EQUAL(twin_testbed_remove_region(user, DATA + 4 * PAGE, 0), TWIN_OK);
	CHECK_EQUAL(twin_testbed_remove_region(user, DATA + 4 * PAGE, 0), TWIN_INVALID);
	add_region(DATA + 4 * PAGE, 1, 10, true, true);
	CHECK_EQUAL(enter(driver_load, DATA + 4 * PAGE - 4, 0), TWIN_OK);
	CHECK_EQUAL(result, joined(word(3, PAGE - 8), word(10, 0)));
	CHECK_EQUAL(twin_testbed_remove_region(user, DATA + 4 * PAGE, 0), TWIN_OK);
	aborts_with(driver_load, DATA + 4 * PAGE - 4, 0, TWIN_ABORT_FAULT, DATA + 4 * PAGE);
	tear_down();
}
