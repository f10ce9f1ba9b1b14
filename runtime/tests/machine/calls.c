// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: indirect calls, imports, nested entries.
 */
#include "machine.h"

void function_pointers_reach_their_counterparts(void)
{
	unsigned int i;

	set_up(TWIN_SCHEME_STLB);
	for (i = 0; i < 3; i++) {
		CHECK_EQUAL(enter(driver_call, VM_DOUBLE, i), TWIN_OK);
		CHECK_EQUAL(result, 2 * i + 1);
		CHECK_EQUAL(enter(driver_tail, VM_DOUBLE, i), TWIN_OK);
		CHECK_EQUAL(result, 2 * i);
	}
	CHECK_EQUAL(instance->statistics.call_misses, 1);
	tear_down();
}

void pointers_to_the_kernel_become_imports(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = answer_42;
	CHECK_EQUAL(enter(driver_call, VM_KERNEL, 99), TWIN_OK);
	CHECK_EQUAL(result, 43);
	CHECK_EQUAL(host.last.rdi, 99);
	CHECK_EQUAL(host.last.site, (uint64_t)driver_call_site);
	tear_down();
}

void bad_call_targets_abort(void)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_call, VM_DOUBLE + 1, 0, TWIN_ABORT_CALL, VM_DOUBLE + 1);
	CHECK_EQUAL(cpu->report.rip, (uint64_t)driver_call_site);
	tear_down();
	set_up(TWIN_SCHEME_STLB);
	/* The address of rewritten code is no dom0 address. */
	aborts_with(driver_tail, (uint64_t)driver_double, 0, TWIN_ABORT_CALL,
		    (uint64_t)driver_double);
	tear_down();
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_call, 0, 0, TWIN_ABORT_CALL, 0);
	tear_down();
	set_up(TWIN_SCHEME_STLB);
	/* Half of a known target is not a known target. */
	CHECK_EQUAL(enter(driver_call, VM_DOUBLE, 1), TWIN_OK);
	aborts_with(driver_call, (uint32_t)VM_DOUBLE, 0, TWIN_ABORT_CALL, (uint32_t)VM_DOUBLE);
	tear_down();
}

static int sum_arguments(struct twin_call_frame *frame)
{
	frame->rax = frame->rdi + frame->rsi + frame->rdx + frame->rcx + frame->r8 + frame->r9 +
		     frame->stack[0] + frame->stack[1];
	frame->rdx = 1000;
	return TWIN_OK;
}

void imports_get_all_arguments(void)
{
	const uint64_t args[6] = { 1, 2, 3, 4, 5, 6 };

	set_up(TWIN_SCHEME_STLB);
	host.import = sum_arguments;
	CHECK_EQUAL(enter6(driver_import, args), TWIN_OK);
	CHECK_EQUAL(result, 1036);
	CHECK_EQUAL(host.last.target, 0x12345678);
	CHECK_EQUAL(host.last.site, (uint64_t)driver_import_site);
	CHECK_EQUAL(instance->statistics.imports, 1);
	tear_down();
}

static int fail(struct twin_call_frame *frame)
{
	(void)frame;
	return -1;
}

void an_import_may_abort(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = fail;
	aborts_with(driver_import, 0, 0, TWIN_ABORT_IMPORT, 0x12345678);
	CHECK_EQUAL(cpu->report.rip, (uint64_t)driver_import_site);
	tear_down();
}

/* dom0's writes while it answers: its view of the stack is copied back. */
static int overwrite_site(struct twin_call_frame *frame)
{
	uint64_t *word = (uint64_t *)frame->stack - 1;

	CHECK_EQUAL(*word, (uint64_t)driver_import_site);
	*word = (uint64_t)driver_bug;
	frame->rax = 1000;
	frame->rdx = 0;
	return TWIN_OK;
}

/* The same by driver code that an import enters, through a translation. */
static int overwrite_site_inside(struct twin_call_frame *frame)
{
	const uint64_t args[6] = { (uint64_t)(frame->stack - 1), (uint64_t)driver_bug };

	CHECK_EQUAL(twin_enter(cpu, instance, (uint64_t)driver_store, args, NULL), TWIN_OK);
	CHECK_EQUAL(frame->stack[-1], (uint64_t)driver_bug);
	frame->rax = 1000;
	frame->rdx = 0;
	return TWIN_OK;
}

void imports_return_to_their_site_whatever_was_written_there(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = overwrite_site;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, 1000);
	host.import = overwrite_site_inside;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, 1000);
	tear_down();
}

static unsigned int depth;
static uint64_t inner_low = UINT64_MAX;

static int enter_again(struct twin_call_frame *frame)
{
	uint64_t inner = 0;
	const uint64_t args[6] = { 100 };
	int status;

	if ((uint64_t)frame->stack < inner_low)
		inner_low = (uint64_t)frame->stack;
	if (depth == 0) {
		status = twin_enter(cpu, instance, (uint64_t)driver_double, args, &inner);
	} else {
		depth--;
		status = twin_enter(cpu, instance, (uint64_t)driver_import, args, &inner);
	}
	frame->rax = inner + 1;
	frame->rdx = 0;
	return status;
}

void imports_may_enter_the_driver_again(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = enter_again;
	depth = 5;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, 206);
	CHECK_EQUAL(instance->statistics.entries, 7);
	CHECK(inner_low < cpu->driver_high - 6 * 128 && inner_low > cpu->driver_low);
	tear_down();
}

void endless_nesting_runs_out_of_stack_and_aborts(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = enter_again;
	depth = UINT32_MAX;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_ABORTED);
	CHECK_EQUAL(twin_instance_report(instance)->kind, TWIN_ABORT_IMPORT);
	tear_down();
}

/* Each entry leaves for an import of its own; all begin at the same place. */
static int enter_often(struct twin_call_frame *frame)
{
	const uint64_t args[6] = { 0 };
	unsigned int i;

	frame->rdx = 0;
	if (depth) {
		if ((uint64_t)frame->stack < inner_low)
			inner_low = (uint64_t)frame->stack;
		return TWIN_OK;
	}
	depth = 1;
	for (i = 0; i < 1000; i++)
		if (twin_enter(cpu, instance, (uint64_t)driver_import, args, NULL))
			return TWIN_ABORTED;
	return TWIN_OK;
}

void an_import_may_enter_any_number_of_times(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = enter_often;
	depth = 0;
	inner_low = UINT64_MAX;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_OK);
	CHECK_EQUAL(instance->statistics.entries, 1001);
	CHECK(inner_low > cpu->driver_high - 1024);
	tear_down();
}

static int abort_inside(struct twin_call_frame *frame)
{
	const uint64_t args[6] = { 0x666 };

	(void)frame;
	CHECK_EQUAL(twin_enter(cpu, instance, (uint64_t)driver_load, args, NULL), TWIN_ABORTED);
	CHECK_EQUAL(twin_enter(cpu, instance, (uint64_t)driver_load, args, NULL), TWIN_DEAD);
	return TWIN_OK;
}

void an_inner_abort_aborts_the_outer_invocation(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = abort_inside;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_ABORTED);
	CHECK_EQUAL(twin_instance_report(instance)->kind, TWIN_ABORT_ACCESS);
	CHECK_EQUAL(twin_instance_report(instance)->address, 0x666);
	CHECK_EQUAL(twin_instance_report(instance)->entry_function, (uint64_t)driver_load);
	tear_down();
}

static int unmap_inside(struct twin_call_frame *frame)
{
	frame->rax = twin_unmap(instance, DATA, 1, 1000);
	frame->rdx = 0;
	return TWIN_OK;
}

void unmapping_inside_is_busy(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = unmap_inside;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, TWIN_BUSY);
	tear_down();
}

int hot_overwrite(struct twin_cpu *self, struct twin_call_frame *frame)
{
	(void)self;
	*((uint64_t *)frame->stack - 1) = (uint64_t)driver_bug;
	frame->rax = 7;
	return TWIN_OK;
}

void hot_routines_return_to_their_site_too(void)
{
	set_up(TWIN_SCHEME_STLB);
	hot_stub = (uint64_t)stubs + 3 * TWIN_TESTBED_STUB;
	CHECK_EQUAL(enter(driver_hot, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, 7);
	hot_stub = (uint64_t)stubs + TWIN_TESTBED_STUB;
	tear_down();
}

void hot_routines_read_dom0(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_hot, DATA + 0x20, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x20));
	aborts_with(driver_hot, 0x777, 0, TWIN_ABORT_ACCESS, 0x777);
	tear_down();
}
