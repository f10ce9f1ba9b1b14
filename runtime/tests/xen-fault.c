// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whose a fault is: platform/xen/fault.c. The processor's part is played here: what lies
 * on the block's stack, and what CR2 has.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "../platform/xen/platform.h"
#include "test.h"

#include "../platform/xen/fault.c"

/* ---- What stands for Xen ----------------------------------------------------------------- */

enum { TEXT = 0x1000, XEN = 0x900000 };

struct twin_xen_status xen_counts;
struct twin_instance xen_instance;
const struct twin_payload_import twin_payload_imports[1];
const uint64_t twin_payload_imports_count = 0;

/* Control comes here, with cpu; it is all of the runtime's entry. */
struct twin_cpu *left;
__asm__(".text\n"
	".globl twin_entry_text_start, twin_entry_text_end, twin_abort_from_fault\n"
	"twin_entry_text_start:\n"
	"twin_abort_from_fault:\n"
	"	movq	%rdi, left(%rip)\n"
	"	ret\n"
	"twin_entry_text_end:\n");

static char *block;
static uint64_t cr2;
static uint32_t originals;

struct twin_cpu *xen_block_of(uint64_t rsp)
{
	return rsp - (uint64_t)block < TWIN_STACK_BLOCK ?
	       (struct twin_cpu *)(block + TWIN_STACK_CONTEXT) : NULL;
}

void twin_original_do_page_fault(struct xen_registers *registers)
{
	(void)registers;
	originals++;
}

void twin_original_do_double_fault(struct xen_registers *registers)
{
	(void)registers;
	originals++;
}

long twin_original_search_exception_table(struct xen_registers *registers, uint64_t *stub)
{
	(void)registers;
	(void)stub;
	return 0;
}

void xen_fault_landing(void)
{
}

void xen_dma_describe(uint32_t reason, uint64_t address, char text[TWIN_XEN_PLACE])
{
	(void)reason;
	(void)address;
	*text = 0;
}

/* Where a store goes on that was done for the driver, or 0; and the address of the last one. */
static uint64_t goes_on, stored_at;

uint64_t xen_guard_store(const struct xen_registers *registers, uint64_t address)
{
	(void)registers;
	stored_at = address;
	return goes_on;
}

void printk(const char *format, ...)
{
	(void)format;
}

/* mov %cr2, of which a program dies: 0f 20, and a register, perhaps one of the upper eight. */
static void on_privileged(int number, siginfo_t *info, void *context)
{
	static const int names[] = {
		REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
		REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *code = (const uint8_t *)regs[REG_RIP];
	const bool upper = *code == 0x41;

	(void)number;
	(void)info;
	code += upper;
	if (code[0] != 0x0f || code[1] != 0x20 || (code[2] & 0xf8) != 0xd0)
		abort();
	regs[names[(code[2] & 7) + 8 * upper]] = (greg_t)cr2;
	regs[REG_RIP] += 3 + upper;
}

/* ---- A driver on its block ------------------------------------------------------------------- */

static uint64_t set_gs_base(struct twin_instance *instance, uint64_t base)
{
	(void)instance;
	return base;
}

static void unmap_range(struct twin_instance *instance, uint64_t start, uint64_t length)
{
	(void)instance;
	(void)start;
	(void)length;
}

static const struct twin_platform_ops ops = { .unmap_range = unmap_range, .set_gs_base = set_gs_base };

static struct twin_cpu *start(void)
{
	const struct twin_instance_config config = {
		.scheme = TWIN_SCHEME_WINDOW, .window = XEN_WINDOW, .vector_free = 1, .ops = &ops,
	};
	struct twin_cpu *cpu = (struct twin_cpu *)(block + TWIN_STACK_CONTEXT);

	memset(block, 0, TWIN_STACK_BLOCK);
	CHECK_EQUAL(twin_instance_init(&xen_instance, &config), TWIN_OK);
	CHECK_EQUAL(twin_instance_add_text(&xen_instance, TEXT, TEXT + 0x1000), TWIN_OK);
	CHECK_EQUAL(twin_cpu_init(cpu), TWIN_OK);
	cpu->instance = &xen_instance;
	cpu->in_driver = 1;
	left = NULL;
	originals = 0;
	return cpu;
}

/* The first exception's frame has its rip there. */
static void put_frame(const struct twin_cpu *cpu, uint64_t above, uint64_t rip)
{
	*(uint64_t *)(cpu->driver_low + above) = rip;
}

static void fault(uint64_t rip, uint64_t rsp)
{
	struct xen_registers registers = { .rip = rip, .rsp = rsp, .entry_vector = TRAP_DOUBLE_FAULT };

	cr2 = rsp - 8;
	double_fault(&registers);
}

static void is_ended(struct twin_cpu *cpu, uint64_t rip)
{
	const struct twin_abort_report *report = twin_instance_report(&xen_instance);

	CHECK(left == cpu);
	CHECK_EQUAL(originals, 0);
	CHECK(!cpu->in_driver);
	CHECK(report);
	if (!report)
		return;
	CHECK_EQUAL(report->kind, TWIN_ABORT_STACK);
	CHECK_EQUAL(report->rip, rip);
}

/* ---- Tests ---------------------------------------------------------------------------------------- */

static void no_room_for_a_frame(void)
{
	struct twin_cpu *cpu = start();

	fault(TEXT + 0x10, cpu->driver_low);
	is_ended(cpu, TEXT + 0x10);
}

/* The driver faults where its stack has a few words left: Xen's handler runs over the end. */
static void no_room_for_the_handler(void)
{
	struct twin_cpu *cpu = start();

	put_frame(cpu, 16, TEXT + 0x21);
	fault(XEN, cpu->driver_low - 8);
	is_ended(cpu, TEXT + 0x20);
}

/* It had come to this platform, whose report is half written, or whole. */
static void no_room_for_the_report(void)
{
	struct twin_cpu *cpu = start();

	put_frame(cpu, 0x200, TEXT + 0x31);
	cpu->in_driver = 0;
	xen_instance.dead = 1;
	fault(XEN, cpu->driver_low - 8);
	is_ended(cpu, TEXT + 0x30);

	cpu->in_driver = 0;
	left = NULL;
	fault(XEN, cpu->driver_low - 8);
	is_ended(cpu, TEXT + 0x30);
}

static void others_are_xens(void)
{
	struct twin_cpu *cpu = start();

	fault(XEN, (uint64_t)block - 64);
	CHECK_EQUAL(originals, 1);
	cpu->instance = NULL;
	fault(XEN, cpu->driver_low);
	CHECK_EQUAL(originals, 2);
	CHECK(!left);
	CHECK_EQUAL(xen_instance.dead, 0);
}

/* Where the driver goes on; 0: Xen would end here. A fault of the driver's that is no store done for it goes the way of
 * all of Xen's. */
static uint64_t page_fault(const struct twin_cpu *cpu, uint64_t rip, uint32_t code)
{
	struct xen_registers registers = {
		.rip = rip, .rsp = cpu->driver_high - 64, .entry_vector = TRAP_PAGE_FAULT, .error_code = code,
	};
	uint64_t stub = 7;
	long next;

	cr2 = 0x5000;
	stored_at = 0;
	originals = 0;
	on_page_fault(&registers);
	if (!originals)
		return registers.rip;
	CHECK_EQUAL(registers.rip, rip);
	next = exception(&registers, &stub);
	CHECK_EQUAL(stub, next ? 0 : 7);
	return (uint64_t)next;
}

/* A register of the card's: neither the driver nor Xen has noticed. */
static void a_store_that_was_done_is_no_fault(void)
{
	struct twin_cpu *cpu = start();

	goes_on = TEXT + 0x17;
	CHECK_EQUAL(page_fault(cpu, TEXT + 0x10, PRESENT | WRITTEN), TEXT + 0x17);
	CHECK_EQUAL(stored_at, 0x5000);
	CHECK_EQUAL(originals, 0);
	CHECK(cpu->in_driver);
	CHECK_EQUAL(xen_instance.dead, 0);
	goes_on = 0;
	CHECK_EQUAL(page_fault(cpu, TEXT + 0x10, PRESENT | WRITTEN), (uint64_t)xen_fault_landing);
	CHECK_EQUAL(originals, 1);
	CHECK(xen_instance.dead);
}

/* The clock's NMI came while Xen did a store of the driver's, as nearly all do where it does nothing else. */
static void a_driver_whose_time_is_over_stores_no_more(void)
{
	struct twin_cpu *cpu = start();

	goes_on = TEXT + 0x17;
	CHECK(!twin_stop(cpu, XEN, cpu->driver_high - 256));
	CHECK_EQUAL(page_fault(cpu, TEXT + 0x10, PRESENT | WRITTEN), (uint64_t)xen_fault_landing);
	CHECK(xen_instance.dead);
	CHECK(!cpu->in_driver);
	CHECK_EQUAL(twin_instance_report(&xen_instance)->kind, TWIN_ABORT_TIME);
	CHECK_EQUAL(twin_instance_report(&xen_instance)->rip, TEXT + 0x10);
	goes_on = 0;
}

/* Neither loads, nor stores to where nothing is, nor those of users; nor stores of Xen's. */
static void other_faults_are_none_of_the_cards(void)
{
	static const uint32_t others[] = {
		PRESENT, WRITTEN, PRESENT | WRITTEN | 1u << 2, PRESENT | WRITTEN | 1u << 3, PRESENT | WRITTEN | 1u << 6,
	};
	struct twin_cpu *cpu = start();
	uint32_t i;

	goes_on = TEXT + 0x17;
	CHECK_EQUAL(page_fault(cpu, XEN, PRESENT | WRITTEN), 0);
	CHECK_EQUAL(stored_at, 0);
	for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
		cpu = start();
		CHECK_EQUAL(page_fault(cpu, TEXT + 0x10, others[i]), (uint64_t)xen_fault_landing);
		CHECK_EQUAL(stored_at, 0);
	}
	goes_on = 0;
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_privileged, .sa_flags = SA_SIGINFO };

	block = aligned_alloc(TWIN_STACK_BLOCK, TWIN_STACK_BLOCK);
	sigaction(SIGSEGV, &action, NULL);
	RUN(no_room_for_a_frame);
	RUN(no_room_for_the_handler);
	RUN(no_room_for_the_report);
	RUN(others_are_xens);
	RUN(a_store_that_was_done_is_no_fault);
	RUN(a_driver_whose_time_is_over_stores_no_more);
	RUN(other_faults_are_none_of_the_cards);
	free(block);
	return test_summary();
}
