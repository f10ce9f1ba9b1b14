// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Exceptions of driver code, and the report of an abort.
 *
 * #PF, #GP, #DE and #UD in Xen's mode come to search_exception_table, which says where a
 * faulting instruction of Xen's goes on. For one of the driver's that is the landing
 * (hooks.S), on the stack where it happened. An overflow of the control stack has no room
 * for an exception's frame: it is a double fault, which Xen handles on a stack of its own
 * that is left for good. So it is if there is room for the frame, but not for Xen's handler, or
 * for what that calls here: rip is then Xen's, or this file's. On a block's stack nothing else
 * runs, so a double fault there is the driver's end wherever rip is. A handler on its way to
 * search_exception_table has taken no lock.
 *
 * A store to one of the card's registers is no exception to the driver: it is done for it (guard.c),
 * and the driver goes on behind it.
 *
 * All of it runs on this processor with interrupts off, and takes no lock: whether rsp is
 * in a block, and rip in code of the instance, says whose fault it is.
 */
#include "platform.h"

enum { TRAP_DOUBLE_FAULT = 8, TRAP_PAGE_FAULT = 14 };
/* Of a page fault's error code (SDM vol. 3, 4.7). The first two and no other: a store in Xen's mode to what may be read. */
#define PRESENT (1u << 0)
#define WRITTEN (1u << 1)
#define FETCHED (1u << 4)

void xen_fault_landing(void);

static uint64_t fault_address(void)
{
	uint64_t address;

	__asm__ volatile("movq %%cr2, %0" : "=r"(address));
	return address;
}

/* ---- Stores to the card's registers ------------------------------------------- */

/* Where driver code goes on whose store is done; 0: it is none that may be. A driver that does nothing but store is
 * seldom met in its own code by the clock's NMI, which leaves word then (twin_stop). */
static uint64_t after_store(struct twin_cpu *cpu, const struct xen_registers *registers)
{
	const uint64_t next = xen_guard_store(registers, fault_address());

	if (next && __atomic_load_n(&cpu->stop, __ATOMIC_RELAXED) &&
	    twin_stop(cpu, registers->rip, registers->rsp))
		return (uint64_t)xen_fault_landing;
	return next;
}

/*
 * Before Xen looks at the fault: it would walk the page table, whether there is a reason for it (traps.c,
 * spurious_page_fault), and then ask search_exception_table. A guest's fault has another error code.
 */
static void on_page_fault(struct xen_registers *registers)
{
	struct twin_cpu *cpu = registers->error_code == (PRESENT | WRITTEN) ? xen_block_of(registers->rsp) : NULL;
	uint64_t next = 0;

	if (cpu && twin_fault_is_drivers(cpu, registers->rip, registers->rsp, false))
		next = after_store(cpu, registers);
	if (next)
		registers->rip = next;
	else
		twin_original_do_page_fault(registers);
}
XEN_REPLACE(do_page_fault, on_page_fault);

/* ---- Everything else ------------------------------------------------------------ */

static long exception(struct xen_registers *registers, uint64_t *stub)
{
	const bool page_fault = registers->entry_vector == TRAP_PAGE_FAULT;
	const bool fetched = page_fault && registers->error_code & FETCHED;
	struct twin_cpu *cpu = xen_block_of(registers->rsp);

	if (!cpu || !twin_fault_is_drivers(cpu, registers->rip, registers->rsp, fetched))
		return twin_original_search_exception_table(registers, stub);
	twin_fault_record(cpu, registers->rip, registers->rsp,
			  page_fault ? fault_address() : 0, registers->entry_vector);
	*stub = 0;
	return (long)xen_fault_landing;
}

/* Where the driver was: rip, or what is found on its stack by a rip of the runtime's entry. */
static uint64_t place_of(const struct twin_cpu *cpu, const struct xen_registers *registers)
{
	if (twin_fault_is_drivers(cpu, registers->rip, registers->rsp, false))
		return registers->rip;
	return (uint64_t)twin_abort_from_fault;
}

/* A report that was begun when the stack ended is written anew: nobody else is inside. */
static void forget_half_a_report(void)
{
	uint32_t dying = 1;

	__atomic_compare_exchange_n(&xen_instance.dead, &dying, 0, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_RELAXED);
}

static void double_fault(struct xen_registers *registers)
{
	struct twin_cpu *cpu = xen_block_of(registers->rsp);
	void (*leave)(struct twin_cpu *) = (void (*)(struct twin_cpu *))twin_abort_from_fault;

	if (!cpu || !cpu->instance) {
		twin_original_do_double_fault(registers);
		return;
	}
	forget_half_a_report();
	twin_fault_record(cpu, place_of(cpu, registers), registers->rsp, fault_address(),
			  TRAP_DOUBLE_FAULT);
	leave(cpu);
}

XEN_REPLACE(search_exception_table, exception);
XEN_REPLACE(do_double_fault, double_fault);

/* ---- Reports ---------------------------------------------------------------- */

static const char *const kinds[] = {
	[TWIN_ABORT_NONE] = "nothing",
	[TWIN_ABORT_ACCESS] = "an address that is not dom0's",
	[TWIN_ABORT_CALL] = "an indirect call to what is no target",
	[TWIN_ABORT_BUG] = "BUG",
	[TWIN_ABORT_PORT] = "a port that is not permitted",
	[TWIN_ABORT_STACK] = "the driver's stack overflowed",
	[TWIN_ABORT_FAULT] = "a fault",
	[TWIN_ABORT_RESOURCES] = "no resources",
	[TWIN_ABORT_IMPORT] = "an import that is not done here",
	[TWIN_ABORT_DEAD] = "another invocation was aborted",
	[TWIN_ABORT_RETURN] = "a return address was overwritten",
	[TWIN_ABORT_DMA] = "a descriptor for the card",
	[TWIN_ABORT_TIME] = "it took too long",
};

static const char *kind_of(const struct twin_abort_report *report)
{
	return report->kind < sizeof(kinds) / sizeof(*kinds) ? kinds[report->kind] : "?";
}

/* The routine whose call was the reason; empty if none was. */
static const char *import_of(const struct twin_abort_report *report)
{
	const bool is_import = report->kind == TWIN_ABORT_IMPORT &&
			       report->address < twin_payload_imports_count;

	return is_import ? twin_payload_imports[report->address].name : "";
}

/* For dom0, which has no symbols of the payload. */
static void describe(const struct twin_abort_report *report)
{
	struct twin_xen_status *counts = &xen_counts;

	snprintf(counts->abort_what, TWIN_XEN_PLACE, "%s", kind_of(report));
	snprintf(counts->abort_at, TWIN_XEN_PLACE, "%pS", (void *)report->rip);
	snprintf(counts->abort_entered, TWIN_XEN_PLACE, "%pS", (void *)report->entry_function);
	snprintf(counts->abort_import, TWIN_XEN_PLACE, "%s", import_of(report));
	counts->abort_card[0] = 0;
	if (report->kind == TWIN_ABORT_DMA)
		xen_dma_describe(report->reason, report->address, counts->abort_card);
}

void xen_report(const struct twin_abort_report *report)
{
	if (!report)
		return;
	xen_counts.abort_kind = report->kind;
	xen_counts.abort_reason = report->reason;
	xen_counts.abort_address = report->address;
	xen_counts.abort_rip = report->rip;
	xen_counts.abort_entry = report->entry_function;
	describe(report);
	printk(XEN_WARNING "twin: aborted: %s (%u), dom0 address %lx, at %s, entered at %s\n",
	       xen_counts.abort_what, report->reason, report->address, xen_counts.abort_at,
	       xen_counts.abort_entered);
	if (*xen_counts.abort_import)
		printk(XEN_WARNING "twin: the import is %s\n", xen_counts.abort_import);
	if (*xen_counts.abort_card)
		printk(XEN_WARNING "twin: the card's %s\n", xen_counts.abort_card);
}
