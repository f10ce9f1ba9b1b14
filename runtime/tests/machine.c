// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Driver code as the rewriter writes it (driver.S), run through twin_enter on
 * the user platform: what it computes, and that whatever it does wrong ends in
 * a report while this process goes on.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <twin/user.h>

#include "test.h"

#define PAGE ((uint64_t)TWIN_PAGE_SIZE)

/*
 * dom0's address space:
 *
 *   DATA      4 pages, file pages 0-3     writable
 *   DATA + 4  1 page,  file page 8        writable: next to DATA, not in the file
 *   ...       nothing
 *   RODATA    1 page,  file page 9        read only
 *   BALLOON   1 page                      dom0's, but empty
 *   BEYOND    1 page,  beyond the file    mapped, but every access fails
 */
#define DATA	0xffff888000100000ull
#define DATA_END (DATA + 5 * PAGE)
#define RODATA	0xffff888000200000ull
#define BALLOON	0xffff888000300000ull
#define BEYOND	0xffff888000400000ull
#define FILE_PAGES 16

#define VM_DOUBLE 0xffffffffc0001000ull
#define VM_IMAGE  0xffffffffc0001010ull
#define VM_KERNEL 0xffffffff81000000ull

#define DRIVER(X)								\
	X(driver_load) X(driver_store) X(driver_load_paper) X(driver_store_paper) \
	X(driver_stack_pointer) X(driver_stack_pointer_paper) X(driver_arguments) \
	X(driver_registers) X(driver_destroy) X(driver_gs) X(driver_spin) X(driver_call) \
	X(driver_call_site) X(driver_tail) X(driver_double) X(driver_copy)	\
	X(driver_in8) X(driver_in16) X(driver_in32) X(driver_out8)		\
	X(driver_out16) X(driver_out32) X(driver_warn) X(driver_bug)		\
	X(driver_bug_site) X(driver_ud2) X(driver_int3) X(driver_divide)	\
	X(driver_wild_jump) X(driver_wild_return) X(driver_raw_load)		\
	X(driver_recurse) X(driver_recurse_large) X(driver_slow_at_the_end)	\
	X(driver_import) X(driver_import_site) X(driver_hot) X(driver_image)	\
	X(keep_rax) X(keep_rcx) X(keep_rdx) X(keep_rbx) X(keep_rbp) X(keep_rsi)	\
	X(keep_rdi) X(keep_r8) X(keep_r9) X(keep_r10) X(keep_r11) X(keep_r12)	\
	X(keep_r13) X(keep_r14) X(keep_r15) X(keep_in16) X(keep_out32)		\
	X(keep_warn) X(keep_import) X(keep_call)
#define DECLARE(name) extern const char name[];
DRIVER(DECLARE)
int enter_dirty(struct twin_cpu *cpu, struct twin_instance *instance, const char *hyp,
		const uint64_t args[6], uint64_t *result);
extern const char driver_text_start[], driver_text_end[];
extern struct twin_stlb_entry twin_stlb[];
extern uint64_t import_stub, hot_stub, driver_flags, image_rsp;
extern const uint8_t vectors[256];
extern struct {
	uint64_t regs[16];
	uint64_t flags;
	uint8_t vectors[256];
} __attribute__((packed)) image;

static int memory_fd;
static uint64_t *memory;	/* all of the file, as dom0 sees it */
static uint8_t *stubs;
static struct twin_user *user;
static struct twin_instance *instance;
static struct twin_cpu *cpu, *other_cpu;
static uint64_t result;

/* ---- The host ---------------------------------------------------------- */

static struct {
	int (*import)(struct twin_call_frame *frame);
	struct twin_call_frame last;
	unsigned int warnings;
	uint64_t warn_site;
	bool backward;		/* was DF ever set in the host's code? */
	uint16_t port;
	uint32_t size, value;
} host;

/* A host that uses the vector registers, as libc may. */
static void spoil_vectors(void)
{
	__asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm7, %%xmm7\n\t"
			 "pcmpeqd %%xmm15, %%xmm15" ::: "xmm0", "xmm7", "xmm15");
}

static void note_direction(void)
{
	uint64_t flags;

	__asm__ volatile("pushfq\n\tpopq %0" : "=r"(flags));
	host.backward |= flags >> 10 & 1;
}

static uint64_t host_resolve(void *data, uint64_t vm)
{
	(void)data;
	return vm == VM_KERNEL ? import_stub : 0;
}

static int host_import(void *data, struct twin_call_frame *frame)
{
	(void)data;
	note_direction();
	spoil_vectors();
	host.last = *frame;
	return host.import ? host.import(frame) : TWIN_OK;
}

static uint32_t host_in(void *data, uint16_t port, uint32_t size)
{
	(void)data;
	note_direction();
	spoil_vectors();
	host.port = port;
	host.size = size;
	return 0x89abcdef & (0xffffffffu >> (32 - 8 * size));
}

static void host_out(void *data, uint16_t port, uint32_t size, uint32_t value)
{
	(void)data;
	note_direction();
	spoil_vectors();
	host.port = port;
	host.size = size;
	host.value = value;
}

static void host_warn(void *data, uint64_t site)
{
	(void)data;
	note_direction();
	spoil_vectors();
	host.warnings++;
	host.warn_site = site;
}

static int hot_read(struct twin_cpu *self, struct twin_call_frame *frame)
{
	uint64_t mapped;
	int refusal = twin_translate(self->instance, frame->rdi, &mapped);

	if (refusal) {
		twin_abort_record(self, TWIN_ABORT_ACCESS, refusal, frame->rdi, frame->site);
		return TWIN_ABORTED;
	}
	frame->rax = *(uint64_t *)mapped;
	return TWIN_OK;
}

/* ---- Set-up ------------------------------------------------------------ */

static const struct twin_port_range ports[] = { { 0x300, 0x31f } };
static const struct twin_codemap_entry codemap[] = {
	{ VM_DOUBLE, (uint64_t)driver_double },
	{ VM_IMAGE, (uint64_t)driver_image },
};

static void add_region(uint64_t start, uint64_t pages, uint64_t file_page, bool writable,
		       bool there)
{
	const struct twin_user_region region = {
		.dom0_start = start, .length = pages * PAGE, .file_offset = file_page * PAGE,
		.fd = there ? memory_fd : -1, .writable = writable,
	};

	CHECK_EQUAL(twin_user_add_region(user, &region), TWIN_OK);
}

static void set_up(uint32_t scheme)
{
	const struct twin_user_config config = {
		.scheme = scheme, .windows = 64, .stlb = twin_stlb, .ports = ports, .port_count = 1,
		.host = {
			.resolve_upcall = host_resolve, .import = host_import, .port_in = host_in,
			.port_out = host_out, .warn = host_warn,
		},
	};
	unsigned int i;

	for (i = 0; i < FILE_PAGES * PAGE / 8; i++)
		memory[i] = 0x1000000 + i;
	memset(&host, 0, sizeof(host));
	user = twin_user_create(&config);
	instance = twin_user_instance(user);
	add_region(DATA, 4, 0, true, true);
	add_region(DATA + 4 * PAGE, 1, 8, true, true);
	add_region(RODATA, 1, 9, false, true);
	add_region(BALLOON, 1, 0, true, false);
	add_region(BEYOND, 1, FILE_PAGES, true, true);
	twin_instance_set_codemap(instance, codemap, 2);
	twin_instance_add_text(instance, (uint64_t)driver_text_start, (uint64_t)driver_text_end);
	twin_instance_add_text(instance, (uint64_t)stubs, (uint64_t)stubs + PAGE);
	result = 0xdead;
}

static void tear_down(void)
{
	CHECK_EQUAL(instance->gate.word, 0);
	CHECK(!cpu->instance && !cpu->in_driver && !cpu->may_nest);
	twin_user_destroy(user);
}

static int enter6(const char *function, const uint64_t args[6])
{
	return twin_enter(cpu, instance, (uint64_t)function, args, &result);
}

static int enter(const char *function, uint64_t a, uint64_t b)
{
	const uint64_t args[6] = { a, b };

	return enter6(function, args);
}

/* What dom0 has at a page of the file. */
static uint64_t word(uint64_t file_page, uint64_t offset)
{
	uint64_t value;

	memcpy(&value, (char *)memory + file_page * PAGE + offset, 8);
	return value;
}

static void aborts_with(const char *function, uint64_t a, uint64_t b, uint32_t kind,
			uint64_t address)
{
	const struct twin_abort_report *report;

	result = 0xdead;
	CHECK_EQUAL(enter(function, a, b), TWIN_ABORTED);
	CHECK_EQUAL(result, 0xdead);
	report = twin_instance_report(instance);
	CHECK(report);
	if (!report)
		return;
	CHECK_EQUAL(report->kind, kind);
	CHECK_EQUAL(report->address, address);
	CHECK_EQUAL(report->entry_function, (uint64_t)function);
	CHECK(!memcmp(report, &cpu->report, sizeof(*report)));
	/* It is dead, and we are not. */
	CHECK_EQUAL(enter(driver_double, 2, 0), TWIN_DEAD);
}

static bool reported_rip_within(uint64_t start, uint64_t end)
{
	return cpu->report.rip >= start && cpu->report.rip < end;
}

/* ---- Entry ------------------------------------------------------------- */

static void arguments_and_result_pass(void)
{
	const uint64_t args[6] = { 1, 2, 3, 4, 5, 6 };

	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter6(driver_arguments, args), TWIN_OK);
	CHECK_EQUAL(result, 0123456);
	CHECK_EQUAL(twin_enter(cpu, instance, (uint64_t)driver_double, args, NULL), TWIN_OK);
	CHECK_EQUAL(instance->statistics.entries, 2);
	tear_down();
}

static void the_driver_sees_nothing_of_the_host(void)
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

static void a_spoilt_register_does_not_reach_the_host(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_destroy, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, -1);
	tear_down();
}

static void stack_arguments_are_zero_each_time(void)
{
	const uint64_t args[6] = { 0 };

	set_up(TWIN_SCHEME_STLB);
	memset((void *)(cpu->driver_high - TWIN_INCOMING_ARGS), 0xff, TWIN_INCOMING_ARGS);
	CHECK_EQUAL(enter6(driver_arguments, args), TWIN_OK);
	CHECK_EQUAL(result, 0);
	tear_down();
}

/* ---- Memory ------------------------------------------------------------ */

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

static void loads_and_stores_reach_dom0_by_stlb(void)
{
	loads_and_stores_reach_dom0(TWIN_SCHEME_STLB, driver_load, driver_store);
}

static void loads_and_stores_reach_dom0_by_paper(void)
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

static void an_access_may_straddle_two_pages_by_stlb(void)
{
	an_access_may_straddle_two_pages(TWIN_SCHEME_STLB, driver_load, driver_store);
}

static void an_access_may_straddle_two_pages_by_paper(void)
{
	an_access_may_straddle_two_pages(TWIN_SCHEME_PAPER, driver_load_paper, driver_store_paper);
}

static void the_last_page_is_usable_to_its_end_and_no_further(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_load, DATA_END - 8, 0), TWIN_OK);
	CHECK_EQUAL(result, word(8, PAGE - 8));
	aborts_with(driver_load, DATA_END - 4, 0, TWIN_ABORT_FAULT, DATA_END);
	CHECK_EQUAL(cpu->report.reason, 14);
	CHECK(reported_rip_within((uint64_t)driver_load, (uint64_t)driver_store));
	tear_down();
}

static void the_own_stack_is_reached_by_pointer(void)
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

static void another_cpus_stack_is_refused(void)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_load, other_cpu->driver_low, 0, TWIN_ABORT_ACCESS, other_cpu->driver_low);
	tear_down();
}

static void the_stack_ends_where_it_ends(void)
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

static void the_context_is_refused(void)
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

static void addresses_that_are_not_dom0s_abort(void)
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

static void the_paper_scheme_refuses_too(void)
{
	set_up(TWIN_SCHEME_PAPER);
	aborts_with(driver_load_paper, 0x123456789, 0, TWIN_ABORT_ACCESS, 0x123456789);
	tear_down();
}

static void windows_are_limited(void)
{
	static const struct twin_user_config small = {
		.scheme = TWIN_SCHEME_STLB, .windows = 1, .stlb = twin_stlb,
	};

	set_up(TWIN_SCHEME_STLB);
	twin_user_destroy(user);
	user = twin_user_create(&small);
	instance = twin_user_instance(user);
	add_region(DATA, 4, 0, true, true);
	CHECK_EQUAL(enter(driver_load, DATA, 0), TWIN_OK);
	aborts_with(driver_load, DATA + PAGE, 0, TWIN_ABORT_RESOURCES, DATA + PAGE);
	tear_down();
}

static void read_only_pages_can_be_read(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_load, RODATA + 16, 0), TWIN_OK);
	CHECK_EQUAL(result, word(9, 16));
	aborts_with(driver_store, RODATA + 16, 1, TWIN_ABORT_FAULT, RODATA + 16);
	CHECK_EQUAL(result, 0xdead);
	CHECK(word(9, 16) != 1);
	tear_down();
}

static void a_truncated_file_aborts(void)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_load, BEYOND + 8, 0, TWIN_ABORT_FAULT, BEYOND + 8);
	tear_down();
}

static void strings_are_copied_in_chunks(void)
{
	/* From the middle of a page, by way of words that straddle pages, into
	 * pages that are neighbours in dom0 only. */
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

static void per_cpu_data_is_reached_by_its_base(void)
{
	set_up(TWIN_SCHEME_STLB);
	cpu->gs_base = DATA + PAGE;
	CHECK_EQUAL(enter(driver_gs, 0x40, 0), TWIN_OK);
	CHECK_EQUAL(result, word(1, 0x40));
	cpu->gs_base = 0;
	tear_down();
}

static void unmapped_pages_are_asked_for_anew(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_load, DATA + 3 * PAGE, 0), TWIN_OK);
	CHECK_EQUAL(twin_user_remove_region(user, DATA + 4 * PAGE, 0), TWIN_OK);
	CHECK_EQUAL(twin_user_remove_region(user, DATA + 4 * PAGE, 0), TWIN_INVALID);
	add_region(DATA + 4 * PAGE, 1, 10, true, true);
	CHECK_EQUAL(enter(driver_load, DATA + 4 * PAGE - 4, 0), TWIN_OK);
	CHECK_EQUAL(result, joined(word(3, PAGE - 8), word(10, 0)));
	CHECK_EQUAL(twin_user_remove_region(user, DATA + 4 * PAGE, 0), TWIN_OK);
	aborts_with(driver_load, DATA + 4 * PAGE - 4, 0, TWIN_ABORT_FAULT, DATA + 4 * PAGE);
	tear_down();
}

/* ---- Registers --------------------------------------------------------- */

/* Numbers of registers in `image`; the value PATTERN gave each. */
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };

static uint64_t pattern(unsigned int number)
{
	/* rcx rdx rbx rbp rsi rdi r8 ... r15 rax are 1, 2, 3, ... */
	unsigned int factor = number == RAX ? 15 : number < RSP ? number : number - 1;

	return 0x0101010101010101ull * factor;
}

#define STATUS_FLAGS 0xcd5	/* OF DF SF ZF AF PF CF, and bit 1's place left out */

/* All of `image` is as before the call, but for registers in the mask. */
static void kept_all_but(uint32_t mask, bool flags, bool vector)
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		if (i != RSP && !(mask & 1u << i))
			CHECK_EQUAL(image.regs[i], pattern(i));
	if (flags)
		CHECK_EQUAL(image.flags & STATUS_FLAGS, driver_flags & STATUS_FLAGS);
	if (vector)
		CHECK(!memcmp(image.vectors, vectors, sizeof(image.vectors)));
}

static const char *const keepers[] = {
	keep_rax, keep_rcx, keep_rdx, keep_rbx, NULL, keep_rbp, keep_rsi, keep_rdi, keep_r8,
	keep_r9, keep_r10, keep_r11, keep_r12, keep_r13, keep_r14, keep_r15,
};

static const uint64_t flag_patterns[] = { 0x202, 0xed7, 0xa02, 0x603, 0x246, 0x292, 0x216 };

static void slow_paths_keep_everything(void)
{
	unsigned int i, f;

	for (f = 0; f < sizeof(flag_patterns) / sizeof(flag_patterns[0]); f++) {
		driver_flags = flag_patterns[f];
		for (i = 0; i < 16; i++) {
			uint64_t window;

			if (!keepers[i])
				continue;
			set_up(TWIN_SCHEME_STLB);
			/* A fill, and then a hit. */
			CHECK_EQUAL(enter(keepers[i], DATA + 0x123, 0), TWIN_OK);
			kept_all_but(1u << i, false, true);
			window = image.regs[i];
			CHECK_EQUAL(*(uint64_t *)(window - 0x123), word(0, 0));
			CHECK_EQUAL(enter(keepers[i], DATA + 0x124, 0), TWIN_OK);
			kept_all_but(1u << i, false, true);
			CHECK_EQUAL(image.regs[i], window + 1);
			/* The own stack. */
			CHECK_EQUAL(enter(keepers[i], cpu->driver_low + 5, 0), TWIN_OK);
			kept_all_but(1u << i, false, true);
			CHECK_EQUAL(image.regs[i], cpu->driver_low + 5);
			CHECK_EQUAL(image.regs[RSP], image_rsp);
			tear_down();
		}
	}
	driver_flags = 0x202;
}

static void ports_and_warnings_keep_everything(void)
{
	unsigned int f;

	for (f = 0; f < sizeof(flag_patterns) / sizeof(flag_patterns[0]); f++) {
		driver_flags = flag_patterns[f];
		set_up(TWIN_SCHEME_STLB);
		CHECK_EQUAL(enter(keep_in16, 0x302, 0), TWIN_OK);
		kept_all_but(1u << RAX | 1u << RDX, true, true);
		CHECK_EQUAL(image.regs[RDX], 0x302);
		CHECK_EQUAL(image.regs[RAX], (pattern(RAX) & ~0xffffull) | 0xcdef);
		CHECK_EQUAL(enter(keep_out32, 0x304, 0), TWIN_OK);
		kept_all_but(1u << RDX, true, true);
		CHECK_EQUAL(host.value, (uint32_t)pattern(RAX));
		CHECK_EQUAL(enter(keep_warn, 0, 0), TWIN_OK);
		kept_all_but(0, true, true);
		CHECK_EQUAL(host.warnings, 1);
		CHECK(!host.backward);
		tear_down();
	}
	driver_flags = 0x202;
}

static int answer_42(struct twin_call_frame *frame)
{
	frame->rax = 42;
	return TWIN_OK;
}

static void imports_change_only_what_they_say(void)
{
	set_up(TWIN_SCHEME_STLB);
	driver_flags = 0xed7;
	host.import = answer_42;
	CHECK_EQUAL(enter(keep_import, 0, 0), TWIN_OK);
	kept_all_but(1u << RAX | 1u << R11, true, false);
	CHECK_EQUAL(image.regs[RAX], 42);
	CHECK_EQUAL(image.regs[R11], 0x12345678);
	driver_flags = 0x202;
	tear_down();
}

static int enter_and_call(struct twin_call_frame *frame)
{
	const uint64_t args[6] = { VM_DOUBLE, 21, ~0ull, ~0ull, ~0ull, ~0ull };

	return twin_enter(cpu, instance, (uint64_t)driver_call, args, &frame->rax);
}

static void a_nested_entry_changes_no_outer_register(void)
{
	set_up(TWIN_SCHEME_STLB);
	driver_flags = 0xed7;
	host.import = enter_and_call;
	CHECK_EQUAL(enter(keep_import, 0, 0), TWIN_OK);
	kept_all_but(1u << RAX | 1u << R11, true, false);
	CHECK_EQUAL(image.regs[RAX], 43);
	CHECK_EQUAL(image.regs[RSP], image_rsp);
	driver_flags = 0x202;
	tear_down();
}

static void indirect_calls_keep_all_but_r10_and_r11(void)
{
	unsigned int i;

	set_up(TWIN_SCHEME_STLB);
	for (i = 0; i < 3; i++) {	/* one miss, two hits */
		memset(&image, 0, sizeof(image));
		CHECK_EQUAL(enter(keep_call, VM_IMAGE, 0), TWIN_OK);
		kept_all_but(1u << R10 | 1u << R11, false, true);
		CHECK_EQUAL(image.regs[RSP], image_rsp - 8);
	}
	CHECK_EQUAL(instance->statistics.call_misses, 1);
	tear_down();
}

/* ---- Calls ------------------------------------------------------------- */

static void function_pointers_reach_their_counterparts(void)
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

static void pointers_to_the_kernel_become_imports(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = answer_42;
	CHECK_EQUAL(enter(driver_call, VM_KERNEL, 99), TWIN_OK);
	CHECK_EQUAL(result, 43);
	CHECK_EQUAL(host.last.rdi, 99);
	CHECK_EQUAL(host.last.site, (uint64_t)driver_call_site);
	tear_down();
}

static void bad_call_targets_abort(void)
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

/* ---- Imports ----------------------------------------------------------- */

static int sum_arguments(struct twin_call_frame *frame)
{
	frame->rax = frame->rdi + frame->rsi + frame->rdx + frame->rcx + frame->r8 + frame->r9 +
		     frame->stack[0] + frame->stack[1];
	frame->rdx = 1000;
	return TWIN_OK;
}

static void imports_get_all_arguments(void)
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

static void an_import_may_abort(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = fail;
	aborts_with(driver_import, 0, 0, TWIN_ABORT_IMPORT, 0x12345678);
	CHECK_EQUAL(cpu->report.rip, (uint64_t)driver_import_site);
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

static void imports_may_enter_the_driver_again(void)
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

static void endless_nesting_runs_out_of_stack_and_aborts(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = enter_again;
	depth = UINT32_MAX;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_ABORTED);
	CHECK_EQUAL(twin_instance_report(instance)->kind, TWIN_ABORT_IMPORT);
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

static void an_inner_abort_aborts_the_outer_invocation(void)
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

static void unmapping_inside_is_busy(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = unmap_inside;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, TWIN_BUSY);
	tear_down();
}

static void hot_routines_read_dom0(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_hot, DATA + 0x20, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x20));
	aborts_with(driver_hot, 0x777, 0, TWIN_ABORT_ACCESS, 0x777);
	tear_down();
}

/* ---- Ports, warnings, bugs --------------------------------------------- */

static void port_input_merges_as_the_processor_does(void)
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

static void port_output_truncates_as_the_processor_does(void)
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

static void refused_ports_abort(void)
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

static void warnings_go_on(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(driver_warn, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, 77);
	CHECK_EQUAL(host.warnings, 1);
	CHECK(host.warn_site > (uint64_t)driver_warn && host.warn_site < (uint64_t)driver_bug);
	tear_down();
}

static void bugs_abort(void)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(driver_bug, 0, 0, TWIN_ABORT_BUG, 0);
	CHECK_EQUAL(cpu->report.rip, (uint64_t)driver_bug_site);
	tear_down();
}

/* ---- Faults ------------------------------------------------------------ */

static void faults_in_driver_code_abort(const char *function, uint64_t argument, uint64_t address,
					uint32_t trap, uint64_t rip)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(function, argument, 0, TWIN_ABORT_FAULT, address);
	CHECK_EQUAL(cpu->report.reason, trap);
	if (rip)
		CHECK_EQUAL(cpu->report.rip, rip);
	tear_down();
}

static void every_kind_of_fault_aborts(void)
{
	faults_in_driver_code_abort(driver_ud2, 0, 0, 6, (uint64_t)driver_ud2);
	faults_in_driver_code_abort(driver_int3, 0, 0, 3, (uint64_t)driver_int3);
	faults_in_driver_code_abort(driver_divide, 0, 0, 0, 0);
	faults_in_driver_code_abort(driver_raw_load, 0x10, 0x10, 14, (uint64_t)driver_raw_load);
	faults_in_driver_code_abort(driver_raw_load, 1ull << 63, 0, 13, (uint64_t)driver_raw_load);
	faults_in_driver_code_abort(driver_wild_jump, 0x18, 0x18, 14, 0x18);
	faults_in_driver_code_abort(driver_wild_return, 0x18, 0x18, 14, 0x18);
	faults_in_driver_code_abort(driver_wild_return, 1ull << 63, 0, 13, 0);
	/* Data is not code. */
	faults_in_driver_code_abort(driver_wild_jump, (uint64_t)&result, (uint64_t)&result, 14,
				    (uint64_t)&result);
}

static void overflow_aborts(const char *function, uint64_t a, uint64_t b)
{
	uint64_t block = (uint64_t)cpu - TWIN_STACK_CONTEXT;

	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(function, a, b), TWIN_ABORTED);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_STACK);
	CHECK(cpu->report.address >= block && cpu->report.address < block + TWIN_STACK_LOW);
	CHECK_EQUAL(enter(function, a, b), TWIN_DEAD);
	tear_down();
}

static void stack_overflow_aborts(void)
{
	uint64_t left;

	overflow_aborts(driver_recurse, 0, 0);
	overflow_aborts(driver_recurse_large, 0, 0);
	/* In the runtime's own pushes, wherever the stack ends among them. */
	for (left = 0; left < 40; left += 8)
		overflow_aborts(driver_slow_at_the_end, left, DATA);
	for (left = 0; left < 24; left += 8)
		overflow_aborts(driver_slow_at_the_end, left, cpu->driver_low);
}

static volatile sig_atomic_t host_signals;

static void host_handler(int number)
{
	(void)number;
	host_signals++;
}

static void sent_signals_go_to_the_host(void)
{
	host_signals = 0;
	raise(SIGFPE);
	CHECK_EQUAL(host_signals, 1);
}

static int raise_inside(struct twin_call_frame *frame)
{
	(void)frame;
	raise(SIGFPE);
	return TWIN_OK;
}

static void signals_during_imports_go_to_the_host(void)
{
	set_up(TWIN_SCHEME_STLB);
	host_signals = 0;
	host.import = raise_inside;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_OK);
	CHECK_EQUAL(host_signals, 1);
	tear_down();
}

static volatile int *volatile nowhere = (volatile int *)0x10;

static int fault_inside(struct twin_call_frame *frame)
{
	(void)frame;
	*nowhere = 1;
	return TWIN_OK;
}

static void dies_in_child_of(int number, void (*body)(void))
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		body();
		_exit(0);
	}
	waitpid(child, &status, 0);
	CHECK(WIFSIGNALED(status));
	CHECK_EQUAL(WTERMSIG(status), number);
}

static void fault_in_import(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = fault_inside;
	enter(driver_import, 0, 0);
}

static void fault_in_host(void)
{
	*nowhere = 1;
}

static void trap_in_host(void)
{
	__asm__ volatile("int3");
}

static void send_bus_error(void)
{
	raise(SIGBUS);
}

static void the_hosts_own_faults_are_not_hidden(void)
{
	dies_in_child_of(SIGSEGV, fault_in_import);
	dies_in_child_of(SIGSEGV, fault_in_host);
	dies_in_child_of(SIGTRAP, trap_in_host);
	dies_in_child_of(SIGBUS, send_bus_error);
}

static void *spin(void *status)
{
	const uint64_t args[6] = { DATA };

	twin_user_thread_start();
	*(int *)status = twin_enter(other_cpu, instance, (uint64_t)driver_spin, args, NULL);
	twin_user_thread_stop();
	return NULL;
}

static void signals_sent_to_driver_code_go_to_the_host(void)
{
	pthread_t thread;
	int status = -1;

	set_up(TWIN_SCHEME_STLB);
	host_signals = 0;
	__atomic_store_n(&memory[0], 0, __ATOMIC_RELAXED);
	pthread_create(&thread, NULL, spin, &status);
	while (!__atomic_load_n(&other_cpu->in_driver, __ATOMIC_RELAXED))
		usleep(100);
	pthread_kill(thread, SIGFPE);
	while (!host_signals)
		usleep(100);
	__atomic_store_n(&memory[0], 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CHECK_EQUAL(status, TWIN_OK);
	CHECK_EQUAL(host_signals, 1);
	tear_down();
}

/* ---- Several CPUs ------------------------------------------------------ */

struct worker {
	pthread_t thread;
	struct twin_cpu *cpu;
	uint64_t wrong;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	uint64_t i, value;

	twin_user_thread_start();
	for (i = 0; i < 20000; i++) {
		const uint64_t args[6] = { DATA + i * 8 % (3 * PAGE) };

		if (twin_enter(worker->cpu, instance, (uint64_t)driver_load, args, &value) != TWIN_OK ||
		    value != 0x1000000 + i * 8 % (3 * PAGE) / 8)
			worker->wrong++;
	}
	twin_user_thread_stop();
	return NULL;
}

static void two_cpus_run_the_driver_at_once(void)
{
	struct worker workers[2] = { { .cpu = cpu }, { .cpu = other_cpu } };
	unsigned int i, flushes = 0;

	set_up(TWIN_SCHEME_STLB);
	for (i = 0; i < 2; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	for (i = 0; i < 200; i++) {
		flushes += twin_flush(instance, 1 << 20) == TWIN_OK;
		usleep(50);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(workers[i].thread, NULL);
		CHECK_EQUAL(workers[i].wrong, 0);
	}
	CHECK(flushes > 0);
	CHECK_EQUAL(instance->statistics.entries, 40000);
	tear_down();
}

static void *overflow_on_a_thread(void *unused)
{
	const uint64_t args[6] = { 0 };

	(void)unused;
	twin_user_thread_start();
	CHECK_EQUAL(twin_enter(other_cpu, instance, (uint64_t)driver_recurse, args, NULL),
		    TWIN_ABORTED);
	CHECK_EQUAL(other_cpu->report.kind, TWIN_ABORT_STACK);
	twin_user_thread_stop();
	return NULL;
}

static void threads_have_their_own_signal_stacks(void)
{
	pthread_t thread;

	set_up(TWIN_SCHEME_STLB);
	pthread_create(&thread, NULL, overflow_on_a_thread, NULL);
	pthread_join(thread, NULL);
	tear_down();
}

/* ---- The whole --------------------------------------------------------- */

static void start(void)
{
	memory_fd = memfd_create("dom0", 0);
	if (memory_fd < 0 || ftruncate(memory_fd, FILE_PAGES * PAGE))
		perror("memfd");
	memory = mmap(NULL, FILE_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	stubs = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	twin_user_write_import(stubs, 0x12345678);
	twin_user_write_hot(stubs + TWIN_USER_STUB, hot_read);
	/* The import's stub is reached by way of a jump. */
	twin_user_write_jump(stubs + 2 * TWIN_USER_STUB, (uint64_t)stubs);
	mprotect(stubs, PAGE, PROT_READ | PROT_EXEC);
	import_stub = (uint64_t)stubs + 2 * TWIN_USER_STUB;
	hot_stub = (uint64_t)stubs + TWIN_USER_STUB;

	signal(SIGFPE, host_handler);
	CHECK_EQUAL(twin_user_faults_start(), 0);
	CHECK_EQUAL(twin_user_faults_start(), 0);
	CHECK_EQUAL(twin_user_thread_start(), 0);
	cpu = twin_user_block_create(0);
	other_cpu = twin_user_block_create(0x40000000);
	CHECK_EQUAL((uint64_t)other_cpu, 0x40000000 + TWIN_STACK_CONTEXT);
}

int main(void)
{
	start();
	RUN(arguments_and_result_pass);
	RUN(the_driver_sees_nothing_of_the_host);
	RUN(a_spoilt_register_does_not_reach_the_host);
	RUN(stack_arguments_are_zero_each_time);
	RUN(loads_and_stores_reach_dom0_by_stlb);
	RUN(loads_and_stores_reach_dom0_by_paper);
	RUN(an_access_may_straddle_two_pages_by_stlb);
	RUN(an_access_may_straddle_two_pages_by_paper);
	RUN(the_last_page_is_usable_to_its_end_and_no_further);
	RUN(the_own_stack_is_reached_by_pointer);
	RUN(another_cpus_stack_is_refused);
	RUN(the_stack_ends_where_it_ends);
	RUN(the_context_is_refused);
	RUN(addresses_that_are_not_dom0s_abort);
	RUN(the_paper_scheme_refuses_too);
	RUN(windows_are_limited);
	RUN(read_only_pages_can_be_read);
	RUN(a_truncated_file_aborts);
	RUN(strings_are_copied_in_chunks);
	RUN(per_cpu_data_is_reached_by_its_base);
	RUN(unmapped_pages_are_asked_for_anew);
	RUN(slow_paths_keep_everything);
	RUN(ports_and_warnings_keep_everything);
	RUN(imports_change_only_what_they_say);
	RUN(a_nested_entry_changes_no_outer_register);
	RUN(indirect_calls_keep_all_but_r10_and_r11);
	RUN(function_pointers_reach_their_counterparts);
	RUN(pointers_to_the_kernel_become_imports);
	RUN(bad_call_targets_abort);
	RUN(imports_get_all_arguments);
	RUN(an_import_may_abort);
	RUN(imports_may_enter_the_driver_again);
	RUN(endless_nesting_runs_out_of_stack_and_aborts);
	RUN(an_inner_abort_aborts_the_outer_invocation);
	RUN(unmapping_inside_is_busy);
	RUN(hot_routines_read_dom0);
	RUN(port_input_merges_as_the_processor_does);
	RUN(port_output_truncates_as_the_processor_does);
	RUN(refused_ports_abort);
	RUN(warnings_go_on);
	RUN(bugs_abort);
	RUN(every_kind_of_fault_aborts);
	RUN(stack_overflow_aborts);
	RUN(sent_signals_go_to_the_host);
	RUN(signals_during_imports_go_to_the_host);
	RUN(signals_sent_to_driver_code_go_to_the_host);
	RUN(the_hosts_own_faults_are_not_hidden);
	RUN(two_cpus_run_the_driver_at_once);
	RUN(threads_have_their_own_signal_stacks);
	twin_user_block_destroy(cpu);
	twin_user_block_destroy(other_cpu);
	return test_summary();
}
