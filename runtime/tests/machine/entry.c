// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: entering the driver and coming back.
 */
#include "machine.h"

void arguments_and_result_pass(void)
{
	const uint64_t args[6] = { 1, 2, 3, 4, 5, 6 };

	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter6(driver_arguments, args), TWIN_OK);
	CHECK_EQUAL(result, 0123456);
	CHECK_EQUAL(twin_enter(cpu, instance, (uint64_t)driver_double, args, NULL), TWIN_OK);
	CHECK_EQUAL(instance->statistics.entries, 2);
	tear_down();
}

void the_driver_sees_nothing_of_the_host(void)
{
	const uint64_t args[6] = { 0 };

	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter_dirty(cpu, instance, driver_registers, args, &result), TWIN_OK);
	CHECK_EQUAL(result, 0);
	/* Nor does the driver spoil what its host keeps there. */
	CHECK_EQUAL(enter_dirty(cpu, instance, driver_destroy, args, &result), TWIN_OK);
	CHECK_EQUAL(enter_dirty(cpu, instance, driver_bug, args, &result), TWIN_ABORTED);
	tear_down();
}

void a_spoilt_register_does_not_reach_the_host(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_destroy, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, -1);
	tear_down();
}

void stack_arguments_are_zero_each_time(void)
{
	const uint64_t args[6] = { 0 };

	set_up(TWIN_SCHEME_STLB);
	memset((void *)(cpu->driver_high - TWIN_INCOMING_ARGS), 0xff, TWIN_INCOMING_ARGS);
	CHECK_EQUAL(enter6(driver_arguments, args), TWIN_OK);
	CHECK_EQUAL(result, 0);
	tear_down();
}
