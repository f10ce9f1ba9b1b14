// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Aborts: writing the report and marking the instance dead.
 *
 * The steps of an abort: a caller writes the report (twin_abort_record); every
 * C frame of the runtime returns; control reaches twin_unwind
 * (entry_x86_64.S); twin_enter returns TWIN_ABORTED. Nothing of the driver runs
 * again: later entries return TWIN_DEAD, and other CPUs that are still inside
 * abort when they next call the runtime.
 */
#include "internal.h"

enum { ALIVE, DYING, DEAD };

/* The instance keeps the report of the first abort: later ones only follow from it. */
static void kill_instance(struct twin_instance *instance, const struct twin_abort_report *report)
{
	uint32_t alive = ALIVE;

	count(&instance->statistics.aborts);
	if (!__atomic_compare_exchange_n(&instance->dead, &alive, DYING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	copy(&instance->report, report, sizeof(*report));
	__atomic_store_n(&instance->dead, DEAD, __ATOMIC_RELEASE);
}

void twin_abort_record(struct twin_cpu *cpu, enum twin_abort_kind kind, uint32_t reason,
		       uint64_t address, uint64_t rip)
{
	struct twin_abort_report *report = &cpu->report;
	uint32_t i;

	report->kind = kind;
	report->reason = reason;
	report->address = address;
	report->rip = rip;
	report->entry_function = cpu->entry_function;
	report->locks = cpu->locks;
	for (i = 0; i < TWIN_HELD_LOCKS; i++)
		report->lock[i] = i < cpu->locks ? cpu->lock[i] : (struct twin_held_lock){ 0, 0 };
	kill_instance(cpu->instance, report);
}

const struct twin_abort_report *twin_instance_report(const struct twin_instance *instance)
{
	if (__atomic_load_n(&instance->dead, __ATOMIC_ACQUIRE) != DEAD)
		return NULL;
	return &instance->report;
}

/* Replaces a ud2 that is a WARN. */
void twin_warn_site(struct twin_cpu *cpu, uint64_t site)
{
	struct twin_instance *instance = cpu->instance;

	count(&instance->statistics.warnings);
	if (!instance->ops->warn)
		return;
	gs_to_host(cpu);
	instance->ops->warn(instance, site);
	gs_to_driver(cpu);
}

/* Replaces any other ud2. */
void twin_bug_site(struct twin_cpu *cpu, uint64_t site)
{
	twin_abort_record(cpu, TWIN_ABORT_BUG, 0, 0, site);
}

/* A function's return address has changed since the function began. The changed
 * word is above the site. */
void twin_smashed_site(struct twin_cpu *cpu, uint64_t site)
{
	const uint64_t *stack = (const uint64_t *)cpu->saved.rsp;

	twin_abort_record(cpu, TWIN_ABORT_RETURN, 0, stack[1], site);
}

/* A pointer is outside of dom0's addresses. It is above the site. */
void twin_wild_site(struct twin_cpu *cpu, uint64_t site)
{
	const uint64_t *stack = (const uint64_t *)cpu->saved.rsp;

	twin_abort_record(cpu, TWIN_ABORT_ACCESS, TWIN_REFUSED_NOT_DOM0, stack[1], site);
}

static bool in_entry_text(uint64_t rip)
{
	return rip >= (uint64_t)twin_entry_text_start && rip < (uint64_t)twin_entry_text_end;
}

static uint64_t block_of(const struct twin_cpu *cpu)
{
	return (uint64_t)cpu - TWIN_STACK_CONTEXT;
}

/*
 * Where the driver was while rip was executed: there, or in the call by which it came to the
 * runtime's entry. That call's return address is the first of driver code above rsp, as the
 * entries push only registers and their own. rip itself if there is none.
 */
static uint64_t drivers_place(const struct twin_cpu *cpu, uint64_t rip, uint64_t rsp)
{
	const uint64_t low = block_of(cpu) + TWIN_STACK_LOW, high = block_of(cpu) + TWIN_STACK_HIGH;
	uint64_t at = ((rsp < low ? low : rsp) + 7) & ~7ull;

	if (!in_entry_text(rip))
		return rip;
	for (; at < high; at += 8) {
		uint64_t last = *(const uint64_t *)at - 1;

		if (twin_instance_has_text(cpu->instance, last))
			return last;
	}
	return rip;
}

/* The clock has run out while the runtime worked for the driver (twin_stop). An entry that
 * calls another one's code has that call's site on top of the stack. */
void twin_stopped_site(struct twin_cpu *cpu, uint64_t site)
{
	twin_abort_record(cpu, TWIN_ABORT_TIME, 0, 0,
			  drivers_place(cpu, site - 1, cpu->saved.rsp));
}

/* ---- Faults ------------------------------------------------------------ */

/*
 * A fault in fetching at rip executed nothing there, so rip may be anything. With
 * any other fault, a rip that is neither the driver's nor ours belongs to code
 * that should not be on this stack, and the fault is not ours to handle.
 */
bool twin_fault_is_drivers(const struct twin_cpu *cpu, uint64_t rip, uint64_t rsp, bool fetched)
{
	if (!cpu->in_driver || rsp - block_of(cpu) >= TWIN_STACK_BLOCK)
		return false;
	return fetched || in_entry_text(rip) || twin_instance_has_text(cpu->instance, rip);
}

/* Below the driver stack, or below the data stack of the same place. */
static bool is_overflow(const struct twin_cpu *cpu, uint64_t address)
{
	return address - block_of(cpu) < TWIN_STACK_LOW ||
	       address - data_at(cpu->instance, block_of(cpu)) < TWIN_STACK_LOW;
}

void twin_fault_record(struct twin_cpu *cpu, uint64_t rip, uint64_t rsp, uint64_t address,
		       uint32_t trap)
{
	bool overflow = is_overflow(cpu, address);

	cpu->in_driver = 0;
	twin_abort_record(cpu, overflow ? TWIN_ABORT_STACK : TWIN_ABORT_FAULT, trap,
			  twin_window_dom0(cpu->instance, address), drivers_place(cpu, rip, rsp));
}

bool twin_stop(struct twin_cpu *cpu, uint64_t rip, uint64_t rsp)
{
	if (!cpu->instance)
		return false;
	if (!twin_fault_is_drivers(cpu, rip, rsp, false)) {
		__atomic_store_n(&cpu->stop, 1, __ATOMIC_RELAXED);
		return false;
	}
	cpu->in_driver = 0;
	twin_abort_record(cpu, TWIN_ABORT_TIME, 0, 0, drivers_place(cpu, rip, rsp));
	return true;
}
