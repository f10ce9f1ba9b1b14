// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: the clock stops the driver wherever it is, and the report says which
 * locks it had taken.
 */
#include "machine.h"

#include <ucontext.h>

#define LOCK_A (DATA + 8)
#define LOCK_B (DATA + 16)
#define LOCK_C (DATA + 24)

/* As a platform's handler of the clock does. */
static void on_clock(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number;
	(void)info;
	if (!twin_stop(cpu, regs[REG_RIP], regs[REG_RSP]))
		return;
	regs[REG_RIP] = (greg_t)twin_abort_from_fault;
	regs[REG_RDI] = (greg_t)cpu;
	regs[REG_EFL] &= ~0x40500;
}

static void set_clock(useconds_t first)
{
	const struct sigaction action = {
		.sa_sigaction = on_clock, .sa_flags = SA_SIGINFO | SA_ONSTACK,
	};

	sigaction(SIGALRM, &action, NULL);
	ualarm(first, first ? 2000 : 0);
}

static void stop_now(void)
{
	CHECK(!twin_stop(cpu, (uint64_t)driver_spin, (uint64_t)__builtin_frame_address(0)));
}

/* Driver code that never calls the runtime. */
void the_clock_stops_a_loop(void)
{
	set_up(TWIN_SCHEME_STLB);
	memory[0] = 0;
	set_clock(5000);
	aborts_with(driver_spin, DATA, 0, TWIN_ABORT_TIME, 0);
	set_clock(0);
	CHECK(reported_rip_within((uint64_t)driver_text_start, (uint64_t)driver_text_end));
	tear_down();
}

/* The clock comes while the host works for the driver: it does not go on afterwards. */
void the_clock_stops_it_on_the_way_back(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.spoil = stop_now;
	aborts_with(driver_import, 0, 0, TWIN_ABORT_TIME, 0);
	CHECK_EQUAL(cpu->report.rip, (uint64_t)driver_import_site - 1);
	tear_down();

	set_up(TWIN_SCHEME_STLB);
	host.spoil = stop_now;
	aborts_with(driver_in8, 0x300, 0, TWIN_ABORT_TIME, 0);
	tear_down();

	set_up(TWIN_SCHEME_STLB);
	host.spoil = stop_now;
	aborts_with(driver_warn, 0, 0, TWIN_ABORT_TIME, 0);
	CHECK_EQUAL(host.warnings, 1);
	tear_down();
}

static const struct twin_platform_ops *testbed_ops;

static int stop_and_map(struct twin_instance *of, uint64_t page, uint64_t *mapped)
{
	stop_now();
	return testbed_ops->map_window(of, page, mapped);
}

/* Inside a slow path, and at one of its instructions: the driver's access is named. */
void a_stop_in_a_slow_path_names_the_driver(void)
{
	struct twin_platform_ops ops;
	uint64_t stack[3];

	set_up(TWIN_SCHEME_STLB);
	testbed_ops = instance->ops;
	ops = *testbed_ops;
	ops.map_window = stop_and_map;
	instance->ops = &ops;
	aborts_with(driver_load, DATA, 0, TWIN_ABORT_TIME, 0);
	CHECK(reported_rip_within((uint64_t)driver_text_start, (uint64_t)driver_text_end));
	tear_down();

	set_up(TWIN_SCHEME_STLB);
	cpu->in_driver = 1;
	cpu->instance = instance;
	memcpy(stack, (void *)(cpu->driver_high - sizeof(stack)), sizeof(stack));
	((uint64_t *)cpu->driver_high)[-1] = (uint64_t)driver_store;
	((uint64_t *)cpu->driver_high)[-2] = twin_entry_address("twin_slow_rax");
	CHECK(twin_stop(cpu, twin_entry_address("twin_slow_rax"), cpu->driver_high - sizeof(stack)));
	CHECK_EQUAL(cpu->report.rip, (uint64_t)driver_store - 1);
	memcpy((void *)(cpu->driver_high - sizeof(stack)), stack, sizeof(stack));
	cpu->instance = NULL;
	tear_down();
}

void between_invocations_the_clock_does_nothing(void)
{
	set_up(TWIN_SCHEME_STLB);
	stop_now();
	CHECK_EQUAL(enter(driver_double, 21, 0), TWIN_OK);
	CHECK_EQUAL(result, 42);
	/* Too late for this one: it is over. */
	cpu->stop = 1;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_OK);
	tear_down();
}

/* Locks a and b, frees c, and meets a BUG. */
static void lock_and_abort(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t args[6] = { a, b, c };

	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter6(driver_locks, args), TWIN_ABORTED);
	CHECK_EQUAL(twin_instance_report(instance)->kind, TWIN_ABORT_BUG);
	tear_down();
}

void the_report_has_the_locks(void)
{
	const struct twin_abort_report *report = &cpu->report;

	lock_and_abort(LOCK_A, LOCK_B, LOCK_A);
	CHECK_EQUAL(report->locks, 1);
	CHECK_EQUAL(report->lock[0].address, LOCK_B);
	CHECK_EQUAL(report->lock[0].site, (uint64_t)driver_lock_site_b);
	CHECK_EQUAL(report->lock[1].address, 0);

	lock_and_abort(LOCK_A, LOCK_B, LOCK_B);
	CHECK_EQUAL(report->locks, 1);
	CHECK_EQUAL(report->lock[0].address, LOCK_A);
	CHECK_EQUAL(report->lock[0].site, (uint64_t)driver_lock_site_a);

	/* One that it never took. */
	lock_and_abort(LOCK_A, LOCK_B, LOCK_C);
	CHECK_EQUAL(report->locks, 2);
	CHECK_EQUAL(report->lock[1].address, LOCK_B);

	/* Twice the same: the last note goes. */
	lock_and_abort(LOCK_A, LOCK_A, LOCK_A);
	CHECK_EQUAL(report->locks, 1);
	CHECK_EQUAL(report->lock[0].site, (uint64_t)driver_lock_site_a);

	/* An invocation begins without. */
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_bug, 0, 0, TWIN_ABORT_BUG, 0);
	CHECK_EQUAL(report->locks, 0);
	tear_down();
}

/* Takes locks 1 to count, frees the last `freed`. */
static void many_locks(uint64_t count, uint64_t freed)
{
	const struct twin_abort_report *report = &cpu->report;
	uint64_t i, left = count - freed;

	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_many_locks, count, freed, TWIN_ABORT_BUG, 0);
	CHECK_EQUAL(report->locks, left);
	for (i = 0; i < TWIN_HELD_LOCKS; i++)
		CHECK_EQUAL(report->lock[i].address, i < left ? i + 1 : 0);
	tear_down();
}

void locks_beyond_the_list_are_counted(void)
{
	uint64_t count, freed;

	for (count = 1; count <= TWIN_HELD_LOCKS + 3; count++)
		for (freed = 0; freed <= count; freed++)
			many_locks(count, freed);
}
