// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card's registers, which are read-only: platform/xen/guard.c with mappings that dom0 has, and with
 * writes of dom0's and of driver code, whose instructions (store.c) are the assembler's.
 */
#include <stdlib.h>
#include <string.h>

#include "../platform/xen/platform.h"
#include "test.h"
#include "xen-stack.h"

#include "../platform/xen/guard.c"

/* ---- What stands for Xen and the card ------------------------------------------------------- */

enum { FRAMES = 16, CARD = 0x80000, NUMBER_SIZE = 16 };
#define PAGE ((uint64_t)TWIN_PAGE_SIZE)

const uint64_t twin_value_cpu_info_processor_id = 8;
const uint64_t twin_value_page_info_size = NUMBER_SIZE;
const uint64_t twin_value_page_info_type_info = 8;
/* Known when memory is there. */
static uint64_t frame_table __asm__("twin_value_frame_table") __attribute__((used));
static uint64_t directmap __asm__("twin_value_directmap") __attribute__((used));
unsigned long max_page = FRAMES;
struct twin_xen_status xen_counts;
struct rangeset *mmio_ro_ranges = (struct rangeset *)&xen_counts;
char xen_reason[TWIN_XEN_REASON];

/* Frames 0 to 15; each has a struct page_info, of which the second word is its type. */
static uint64_t *memory;
static uint64_t infos[FRAMES][2];
static bool is_valid[FRAMES];

/* Read-only frames [first, end); whether there is no memory for them, processors cannot be stopped. */
static uint64_t first_set, end_set;
static bool full, busy;
static uint32_t stops;

bool __mfn_valid(unsigned long frame)
{
	CHECK(frame < FRAMES);
	return is_valid[frame];
}

int rangeset_add_range(struct rangeset *ranges, unsigned long first, unsigned long last)
{
	CHECK(ranges == mmio_ro_ranges);
	CHECK(!end_set);
	if (full)
		return -XEN_ENOMEM;
	first_set = first;
	end_set = last + 1;
	return 0;
}

int rangeset_remove_range(struct rangeset *ranges, unsigned long first, unsigned long last)
{
	CHECK(ranges == mmio_ro_ranges);
	CHECK_EQUAL(first, first_set);
	CHECK_EQUAL(last + 1, end_set);
	first_set = end_set = 0;
	return 0;
}

/* All are read-only by then. */
int stop_machine_run(int (*function)(void *), void *data, unsigned int processor)
{
	CHECK_EQUAL(processor, 0);
	CHECK(end_set);
	stops++;
	return busy ? -XEN_EBUSY : function(data);
}

uint64_t cpu_online_map[1] = { 1 };
static uint32_t flushes;

void flush_area_mask(const void *mask, const void *address, unsigned int flags)
{
	CHECK(mask == cpu_online_map && !address);
	CHECK_EQUAL(flags, XEN_FLUSH_TLB_ALL);
	CHECK_EQUAL(stops, 1);
	flushes++;
}

int xen_refuse(int error, const char *text)
{
	strncpy(xen_reason, text, sizeof(xen_reason) - 1);
	return error;
}

void printk(const char *format, ...)
{
	(void)format;
	CHECK(false);
}

/* As Xen's: what is aligned, and where the fault was. */
static uint64_t fault_at;
static uint32_t originals;

int twin_original_mmio_ro_emulated_write(uint32_t segment, unsigned long offset, void *data,
					 unsigned int bytes, struct x86_emulate_ctxt *context)
{
	(void)segment;
	(void)data;
	(void)context;
	originals++;
	return offset == fault_at && !(offset % bytes) ? DONE : 1;
}

/* Linear address A is machine address A; 0 is nowhere. */
static uint32_t walks;

uint64_t xen_alias_walk(uint64_t address)
{
	walks++;
	return address ? address : ~0ull;
}

static uint32_t written_at, written, writes;
static bool card_refuses;

bool xen_card_write(uint32_t offset, uint32_t value)
{
	written_at = offset;
	written = value;
	writes++;
	return !card_refuses;
}

static void set_up(void)
{
	uint32_t i;

	memset(memory, 0, FRAMES * PAGE);
	memset(infos, 0, sizeof(infos));
	memset(&xen_counts, 0, sizeof(xen_counts));
	memset(xen_reason, 0, sizeof(xen_reason));
	for (i = 0; i < FRAMES; i++)
		is_valid[i] = true;
	full = busy = card_refuses = false;
	originals = writes = stops = flushes = 0;
	CHECK_EQUAL(end_set, 0);
}

/* A frame is used as that type. */
static void is_type(uint32_t frame, uint64_t type, uint64_t count)
{
	infos[frame][1] = type << XEN_TYPE_SHIFT | count;
}

/* An entry of a table that leads to a page of the card's registers. */
static void maps(uint32_t frame, uint32_t entry, uint32_t register_page, uint64_t flags)
{
	memory[frame * (PAGE / 8) + entry] = (CARD + register_page) * PAGE | flags | 0x8000000000000060ull;
}

/* Where dom0 has the driver's registers. */
#define MAPPED 0xffffc90000123000ull

static int begin(void)
{
	return xen_guard_begin(CARD * PAGE, MAPPED);
}

/* ---- Mappings ----------------------------------------------------------------------------------- */

static void all_pages_are_read_only(void)
{
	set_up();
	CHECK_EQUAL(begin(), 0);
	CHECK_EQUAL(first_set, CARD);
	CHECK_EQUAL(end_set, CARD + 32);
	CHECK_EQUAL(stops, 1);
	CHECK_EQUAL(flushes, 1);
	xen_guard_end();
	CHECK_EQUAL(end_set, 0);
	xen_guard_end();
}

static void is_refused(uint32_t frame, uint32_t entry, uint32_t register_page)
{
	set_up();
	is_type(frame, XEN_TYPE_L1, 1);
	maps(frame, entry, register_page, XEN_PAGE_PRESENT | WRITABLE);
	CHECK_EQUAL(begin(), -XEN_EBUSY);
	CHECK(xen_reason[0]);
	CHECK_EQUAL(end_set, 0);
}

static void a_writable_mapping_is_found(void)
{
	is_refused(0, 0, 0);
	is_refused(FRAMES - 1, 511, 3);
	is_refused(5, 77, 2);
	is_refused(5, 78, 1);
	is_refused(5, 79, 31);
}

static void what_is_no_writable_mapping_is_none(void)
{
	uint32_t i;

	set_up();
	is_type(1, XEN_TYPE_L1, 3);
	maps(1, 0, 0, XEN_PAGE_PRESENT);	/* read-only */
	maps(1, 1, 2, WRITABLE);		/* not present */
	maps(1, 2, 32, XEN_PAGE_PRESENT | WRITABLE);	/* what lies beside */
	maps(1, 3, -1, XEN_PAGE_PRESENT | WRITABLE);
	/* Pages that are no page tables, or are it no more; what they have is nobody's mapping. */
	for (i = 2; i < 8; i++)
		maps(i, 0, 0, XEN_PAGE_PRESENT | WRITABLE);
	is_type(2, XEN_TYPE_L2, 1);
	is_type(3, XEN_TYPE_L4, 1);
	is_type(4, XEN_TYPE_WRITABLE, 1);
	is_type(5, XEN_TYPE_L1, 0);
	is_type(6, 0, 1);
	is_type(7, XEN_TYPE_L1, 1);
	is_valid[7] = false;
	CHECK_EQUAL(begin(), 0);
	xen_guard_end();
}

static void refusals_leave_nothing(void)
{
	set_up();
	full = true;
	CHECK_EQUAL(begin(), -XEN_ENOMEM);
	CHECK_EQUAL(stops, 0);
	xen_guard_end();
	set_up();
	busy = true;
	CHECK_EQUAL(begin(), -XEN_EBUSY);
	CHECK_EQUAL(end_set, 0);
}

/* ---- dom0's writes -------------------------------------------------------------------------------- */

static int writes_to(uint64_t address, uint64_t value, uint32_t bytes)
{
	fault_at = address;
	return emulated_write(0, address, &value, bytes, NULL);
}

static void dom0s_writes_are_judged(void)
{
	set_up();
	CHECK_EQUAL(begin(), 0);
	CHECK_EQUAL(writes_to(CARD * PAGE + 0x100, 0x12345678, 4), DONE);
	CHECK_EQUAL(written_at, 0x100);
	CHECK_EQUAL(written, 0x12345678);
	CHECK_EQUAL(xen_counts.refused_writes, 0);
	/* What is refused goes by, as Xen has such writes go by. */
	card_refuses = true;
	CHECK_EQUAL(writes_to(CARD * PAGE + 0x2800, 1, 4), DONE);
	CHECK_EQUAL(writes, 2);
	CHECK_EQUAL(written_at, 0x2800);
	CHECK_EQUAL(xen_counts.refused_writes, 1);
	CHECK_EQUAL(writes_to(CARD * PAGE + 0x100, 1, 8), DONE);
	CHECK_EQUAL(writes_to(CARD * PAGE + 0x100, 1, 1), DONE);
	CHECK_EQUAL(writes, 2);
	CHECK_EQUAL(xen_counts.refused_writes, 3);
	xen_guard_end();
}

static void other_writes_are_xens(void)
{
	uint64_t value = 1;

	set_up();
	CHECK_EQUAL(writes_to(CARD * PAGE, 1, 4), DONE);	/* before */
	CHECK_EQUAL(begin(), 0);
	CHECK_EQUAL(writes_to((CARD + 32) * PAGE, 1, 4), DONE);	/* another device's */
	CHECK_EQUAL(writes_to(CARD * PAGE - 4, 1, 4), DONE);
	CHECK_EQUAL(writes_to(CARD * PAGE + 2, 1, 4), 1);	/* across words */
	fault_at = CARD * PAGE;
	CHECK_EQUAL(emulated_write(0, CARD * PAGE + 4, &value, 4, NULL), 1);
	xen_guard_end();
	CHECK_EQUAL(writes_to(CARD * PAGE, 1, 4), DONE);	/* afterwards */
	CHECK_EQUAL(writes, 0);
	CHECK_EQUAL(originals, 6);
	CHECK_EQUAL(xen_counts.refused_writes, 0);
}

/* ---- Driver code's ---------------------------------------------------------------------------------- */

/* The instruction, as the assembler has it, between two labels. */
#define FORM(name, text)									\
	__asm__(".pushsection .rodata\nform_" #name ": " text "\nend_" #name ": .skip 15\n.popsection\n");	\
	extern const uint8_t form_##name[], end_##name[]

FORM(plain, "movl %edx, (%rax)");
FORM(gs, "movl %edx, %gs:0xd8(%rax)");
FORM(small, "movl %edx, %gs:0x10(%rax)");
FORM(upper, "movl %r13d, %gs:(%r12)");
FORM(sib, "movl %esi, %gs:(%rsp,%rcx,4)");
FORM(sib_small, "movl %edi, 8(%rbx,%rcx)");
FORM(sib_large, "movl %ebp, %gs:0x1234(%r13,%r14,8)");
FORM(no_base, "movl %ecx, %gs:0x1000(,%rax,2)");
FORM(absolute, "movl %ebx, %gs:0x1000");
FORM(relative, "movl %ebx, 0x1000(%rip)");
FORM(constant, "movl $0x9d, %gs:0xd0(%rax)");
FORM(constant_upper, "movl $0xffffffff, %gs:(%r9)");
FORM(constant_relative, "movl $7, 0x100(%rip)");

FORM(wide, "movq %rdx, %gs:(%rax)");
FORM(wide_constant, "movq $7, %gs:(%rax)");
FORM(narrow, "movw %dx, %gs:(%rax)");
FORM(byte, "movb %dl, %gs:(%rax)");
FORM(load, "movl %gs:(%rax), %edx");
FORM(registers, "movl %edx, %eax");
FORM(register_constant, ".byte 0xc7, 0xc0, 1, 0, 0, 0");
FORM(add, "addl %edx, %gs:(%rax)");
FORM(or, "orl $1, %gs:(%rax)");
FORM(exchange, "xchgl %edx, %gs:(%rax)");
FORM(locked, "lock; addl $1, %gs:(%rax)");
FORM(string, "stosl");
FORM(repeated, "rep stosl");
FORM(other_segment, "movl %edx, %fs:(%rax)");
FORM(short_address, "movl %edx, (%eax)");
FORM(undefined, ".byte 0x65, 0xc7, 0x48, 0, 1, 0, 0, 0");	/* C7 /1 */
FORM(twice, ".byte 0x65, 0x65, 0x89, 0x10");
FORM(rex_before, ".byte 0x48, 0x65, 0x89, 0x10");

static const struct xen_registers values = {
	.rax = 0x100000000, .rcx = 0xc1, .rdx = 0xfedcba9876543210, .rbx = 0xb1, .rsp = 0x51, .rbp = 0xb9,
	.rsi = 0x511, .rdi = 0xd1, .r8 = 8, .r9 = 9, .r10 = 10, .r11 = 11, .r12 = 12, .r13 = 0x77d, .r14 = 14,
	.r15 = 15,
};

static void stores(const uint8_t *from, const uint8_t *to, uint64_t wanted)
{
	uint64_t value = ~0ull;

	CHECK_EQUAL(xen_store_read(&values, from, &value), to - from);
	CHECK_EQUAL(value, wanted);
}

#define STORES(name, value) stores(form_##name, end_##name, value)
#define STORES_NOT(name)							\
	do {									\
		uint64_t value_;						\
		CHECK_EQUAL(xen_store_read(&values, form_##name, &value_), 0);	\
	} while (0)

static void stores_of_words_are_understood(void)
{
	STORES(plain, 0x76543210);
	STORES(gs, 0x76543210);
	STORES(small, 0x76543210);
	STORES(upper, 0x77d);
	STORES(sib, 0x511);
	STORES(sib_small, 0xd1);
	STORES(sib_large, 0xb9);
	STORES(no_base, 0xc1);
	STORES(absolute, 0xb1);
	STORES(relative, 0xb1);
	STORES(constant, 0x9d);
	STORES(constant_upper, 0xffffffff);
	STORES(constant_relative, 7);
}

static void nothing_else_is_a_store(void)
{
	STORES_NOT(wide);
	STORES_NOT(wide_constant);
	STORES_NOT(narrow);
	STORES_NOT(byte);
	STORES_NOT(load);
	STORES_NOT(registers);
	STORES_NOT(register_constant);
	STORES_NOT(add);
	STORES_NOT(or);
	STORES_NOT(exchange);
	STORES_NOT(locked);
	STORES_NOT(string);
	STORES_NOT(repeated);
	STORES_NOT(other_segment);
	STORES_NOT(short_address);
	STORES_NOT(undefined);
	STORES_NOT(twice);
	STORES_NOT(rex_before);
}

static uint64_t store_at(const uint8_t *code, uint64_t address)
{
	struct xen_registers registers = values;

	registers.rip = (uint64_t)code;
	return xen_guard_store(&registers, address);
}

static void driver_codes_stores_are_judged(void)
{
	set_up();
	CHECK_EQUAL(store_at(form_gs, CARD * PAGE + 0xd8), 0);	/* nothing is guarded */
	CHECK_EQUAL(begin(), 0);
	CHECK_EQUAL(store_at(form_gs, CARD * PAGE + 0xd8), (uint64_t)end_gs);
	CHECK_EQUAL(written_at, 0xd8);
	CHECK_EQUAL(written, 0x76543210);
	CHECK_EQUAL(store_at(form_constant, CARD * PAGE + 0xd0), (uint64_t)end_constant);
	CHECK_EQUAL(written, 0x9d);
	/* These end the driver. */
	CHECK_EQUAL(store_at(form_wide, CARD * PAGE), 0);
	CHECK_EQUAL(store_at(form_gs, (CARD + 32) * PAGE), 0);
	CHECK_EQUAL(store_at(form_gs, 0), 0);
	CHECK_EQUAL(writes, 2);
	card_refuses = true;
	CHECK_EQUAL(store_at(form_gs, CARD * PAGE + 0x3818), 0);
	CHECK_EQUAL(writes, 3);
	CHECK_EQUAL(xen_counts.refused_writes, 1);
	xen_guard_end();
}

/* The page tables are not asked for what is mapped there. */
static void a_store_by_the_drivers_own_mapping_is_found_at_once(void)
{
	const uint64_t at = xen_cut(MAPPED);

	set_up();
	CHECK_EQUAL(begin(), 0);
	walks = 0;
	CHECK_EQUAL(store_at(form_gs, at + 0xd8), (uint64_t)end_gs);
	CHECK_EQUAL(written_at, 0xd8);
	CHECK_EQUAL(store_at(form_gs, at + 31 * PAGE + 0xffc), (uint64_t)end_gs);
	CHECK_EQUAL(written_at, 0x1fffc);
	CHECK_EQUAL(walks, 0);
	CHECK_EQUAL(writes, 2);
	CHECK_EQUAL(store_at(form_gs, at + 32 * PAGE), 0);
	CHECK_EQUAL(store_at(form_gs, at - 4), 0);
	CHECK_EQUAL(walks, 2);
	card_refuses = true;
	CHECK_EQUAL(store_at(form_gs, at + 0x3818), 0);
	CHECK_EQUAL(xen_counts.refused_writes, 1);
	xen_guard_end();
	CHECK_EQUAL(store_at(form_gs, at + 0xd8), 0);
	CHECK_EQUAL(writes, 3);
}

static void run(void)
{
	RUN(all_pages_are_read_only);
	RUN(a_writable_mapping_is_found);
	RUN(what_is_no_writable_mapping_is_none);
	RUN(refusals_leave_nothing);
	RUN(dom0s_writes_are_judged);
	RUN(other_writes_are_xens);
	RUN(a_store_by_the_drivers_own_mapping_is_found_at_once);
	RUN(stores_of_words_are_understood);
	RUN(nothing_else_is_a_store);
	RUN(driver_codes_stores_are_judged);
}

int main(void)
{
	memory = aligned_alloc(PAGE, FRAMES * PAGE);
	directmap = (uint64_t)memory;
	frame_table = (uint64_t)infos;
	on_xens_stack(run, NULL);
	free(memory);
	return test_summary();
}
