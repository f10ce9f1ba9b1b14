// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: driver code of the scheme window32 (window.S).
 */
#include <asm/prctl.h>
#include <sys/syscall.h>

#include "machine.h"
#include "platform.h"
#include "window.h"

#define STACK_BYTES (TWIN_STACK_HIGH - TWIN_STACK_LOW)

#define FUNCTIONS(X)								\
	X(load) X(store) X(indexed) X(stack_pointer) X(arguments) X(gs) X(spin)	\
	X(import) X(import_site) X(reference) X(hot_reference) X(flood) X(copy)	\
	X(fill) X(recurse) X(text_start) X(text_end)
#define DECLARE_WINDOW(name) extern const char window_##name[];
FUNCTIONS(DECLARE_WINDOW)

static int stacks_fd = -1;
static struct twin_cpu *window_cpus[2], *usual_cpus[2];

/* dom0's view of a block's address. */
static uint64_t view_of(const struct twin_cpu *self)
{
	return (uint64_t)self - TWIN_STACK_CONTEXT + WINDOW_VIEW;
}

/* This process is dom0, too: it has the data stacks where dom0 would. */
static void start_once(void)
{
	static const uint64_t blocks[] = { WINDOW_BLOCK, WINDOW_OTHER };
	unsigned int i;

	if (stacks_fd >= 0)
		return;
	stacks_fd = memfd_create("stacks", 0);
	CHECK_EQUAL(ftruncate(stacks_fd, 2 * STACK_BYTES), 0);
	for (i = 0; i < 2; i++) {
		void *at;

		window_cpus[i] = twin_testbed_block_create(blocks[i]);
		CHECK(window_cpus[i]);
		at = (void *)(view_of(window_cpus[i]) + TWIN_STACK_LOW);
		CHECK(mmap(at, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED_NOREPLACE, stacks_fd, i * STACK_BYTES) == at);
	}
}

static void set_up_window(void)
{
	start_once();
	usual_cpus[0] = cpu;
	usual_cpus[1] = other_cpu;
	cpu = window_cpus[0];
	other_cpu = window_cpus[1];
	set_up(TWIN_SCHEME_WINDOW32);
	CHECK_EQUAL(twin_testbed_window(user), WINDOW);
	CHECK_EQUAL(twin_testbed_add_stack(user, cpu, stacks_fd, 0), TWIN_OK);
	CHECK_EQUAL(twin_testbed_add_stack(user, other_cpu, stacks_fd, STACK_BYTES), TWIN_OK);
	twin_instance_add_text(instance, (uint64_t)window_text_start, (uint64_t)window_text_end);
}

static void tear_down_window(void)
{
	tear_down();
	cpu = usual_cpus[0];
	other_cpu = usual_cpus[1];
}

static void window_aborts(const char *function, uint64_t a, uint64_t b, uint32_t kind,
			  uint64_t address)
{
	set_up_window();
	aborts_with(function, a, b, kind, address);
	CHECK(reported_rip_within((uint64_t)function, (uint64_t)function + 64));
	tear_down_window();
}

/* ---- Memory --------------------------------------------------------------- */

void the_window_shows_dom0(void)
{
	set_up_window();
	CHECK_EQUAL(enter(window_load, DATA + 0x18, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	CHECK_EQUAL(enter(window_store, DATA + 2 * PAGE + 8, 0x1122334455667788), TWIN_OK);
	CHECK_EQUAL(word(2, 8), 0x1122334455667788);
	CHECK_EQUAL(enter(window_indexed, DATA + 2 * PAGE + 0x20, -2), TWIN_OK);
	CHECK_EQUAL(result, 0x1122334455667788);
	/* Neighbours in dom0 only. */
	CHECK_EQUAL(enter(window_load, DATA + 4 * PAGE - 4, 0), TWIN_OK);
	CHECK_EQUAL(result, word(3, PAGE - 8) >> 32 | word(8, 0) << 32);
	CHECK_EQUAL(enter(window_load, RODATA + 8, 0), TWIN_OK);
	CHECK_EQUAL(result, word(9, 8));
	CHECK_EQUAL(instance->statistics.fills, 0);
	tear_down_window();
}

void only_the_low_half_of_an_address_counts(void)
{
	set_up_window();
	CHECK_EQUAL(enter(window_load, (uint32_t)DATA + 0x18, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	CHECK_EQUAL(enter(window_load, 0x7fff5a5a00000000ull | (uint32_t)(DATA + 0x20), 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x20));
	/* Sums wrap in the window. */
	CHECK_EQUAL(enter(window_indexed, DATA + 8, 1ll << 29), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0));
	tear_down_window();
}

void accesses_outside_dom0_abort(void)
{
	window_aborts(window_load, DATA_END, 0, TWIN_ABORT_FAULT, DATA_END);
	window_aborts(window_load, DATA_END - 4, 0, TWIN_ABORT_FAULT, DATA_END);
	window_aborts(window_load, DATA - 8, 0, TWIN_ABORT_FAULT, DATA - 8);
	window_aborts(window_store, RODATA + 0x10, 1, TWIN_ABORT_FAULT, RODATA + 0x10);
	window_aborts(window_load, BALLOON + 0x10, 0, TWIN_ABORT_FAULT, BALLOON + 0x10);
	window_aborts(window_load, BEYOND + 8, 0, TWIN_ABORT_FAULT, BEYOND + 8);
	/* Of a wild address only the low half is known. */
	window_aborts(window_load, 0xdead4000beef0000, 0, TWIN_ABORT_FAULT, 0xbeef0000);
}

void small_numbers_are_no_pointers(void)
{
	window_aborts(window_load, 0, 0, TWIN_ABORT_FAULT, 0);
	window_aborts(window_load, 0x10, 0, TWIN_ABORT_FAULT, 0x10);
	window_aborts(window_store, TWIN_WINDOW_NULL_GUARD - 8, 0, TWIN_ABORT_FAULT,
		      TWIN_WINDOW_NULL_GUARD - 8);
	/* LIST_POISON1, ERR_PTR(-EINVAL) */
	window_aborts(window_load, 0xdead000000000100, 0, TWIN_ABORT_FAULT, 0x100);
	window_aborts(window_load, -22, 0, TWIN_ABORT_FAULT, (uint32_t)-22);
}

void an_access_over_the_end_meets_the_guard(void)
{
	set_up_window();
	add_region(LAST, 1, 7, true, true);
	CHECK_EQUAL(enter(window_load, LAST + PAGE - 8, 0), TWIN_OK);
	CHECK_EQUAL(result, word(7, PAGE - 8));
	aborts_with(window_load, LAST + PAGE - 4, 0, TWIN_ABORT_FAULT, LAST + PAGE);
	tear_down_window();
}

void strings_stay_in_the_window(void)
{
	const uint64_t args[6] = { DATA + 2 * PAGE + 8, DATA + 0x100, 0x200 };
	const uint64_t last = DATA_END - 1, block = WINDOW_VIEW + WINDOW_BLOCK;
	static uint8_t before[0x1000];
	const uint64_t backward[6] = { DATA + 8, 1ull << 63, 1 };

	set_up_window();
	memcpy(before, (uint8_t *)memory + 0x100, sizeof(before));
	CHECK_EQUAL(enter6(window_copy, args), TWIN_OK);
	CHECK_EQUAL(result, DATA + 2 * PAGE + 8 + sizeof(before));
	CHECK(!memcmp((uint8_t *)memory + 2 * PAGE + 8, before, sizeof(before)));
	/* Any count ends at the first hole. */
	aborts_with(window_fill, last, 1ull << 63, TWIN_ABORT_FAULT, DATA_END);
	tear_down_window();
	set_up_window();
	CHECK_EQUAL(enter6(window_fill, backward), TWIN_ABORTED);
	CHECK_EQUAL(cpu->report.address, DATA - 1);
	tear_down_window();
	window_aborts(window_fill, block + TWIN_STACK_HIGH - 4, 64, TWIN_ABORT_FAULT,
		      block + TWIN_STACK_HIGH);
}

void a_windows_regions_come_and_go(void)
{
	set_up_window();
	CHECK_EQUAL(enter(window_load, DATA + 4 * PAGE, 0), TWIN_OK);
	CHECK_EQUAL(twin_testbed_remove_region(user, DATA + 4 * PAGE, 0), TWIN_OK);
	add_region(DATA + 4 * PAGE, 1, 10, true, true);
	CHECK_EQUAL(enter(window_load, DATA + 4 * PAGE - 4, 0), TWIN_OK);
	CHECK_EQUAL(result, word(3, PAGE - 8) >> 32 | word(10, 0) << 32);
	CHECK_EQUAL(twin_unmap(instance, DATA + PAGE, 1, 0), TWIN_OK);
	CHECK_EQUAL(enter(window_load, DATA + PAGE - 8, 0), TWIN_OK);
	CHECK_EQUAL(enter(window_load, DATA + 2 * PAGE, 0), TWIN_OK);
	CHECK_EQUAL(twin_testbed_remove_region(user, DATA + 4 * PAGE, 0), TWIN_OK);
	aborts_with(window_load, DATA + 4 * PAGE - 4, 0, TWIN_ABORT_FAULT, DATA + 4 * PAGE);
	tear_down_window();
	set_up_window();
	CHECK_EQUAL(twin_unmap(instance, DATA + PAGE, 1, 0), TWIN_OK);
	aborts_with(window_load, DATA + PAGE + 8, 0, TWIN_ABORT_FAULT, DATA + PAGE + 8);
	tear_down_window();
}

/* ---- Stacks --------------------------------------------------------------- */

void stack_arguments_are_on_the_data_stack(void)
{
	const uint64_t args[6] = { 1, 2, 3, 4, 5, 6 };

	set_up_window();
	memset((void *)(view_of(cpu) + TWIN_STACK_LOW), 0xff, STACK_BYTES);
	memset((void *)(cpu->driver_high - TWIN_INCOMING_ARGS), 0xff, TWIN_INCOMING_ARGS);
	CHECK_EQUAL(enter6(window_arguments, args), TWIN_OK);
	CHECK_EQUAL(result, 0123456);
	tear_down_window();
}

static int sum_arguments(struct twin_call_frame *frame)
{
	CHECK((uint64_t)frame->stack - WINDOW - (uint32_t)WINDOW_BLOCK - TWIN_STACK_LOW < STACK_BYTES);
	frame->rax = frame->rdi + frame->rsi + frame->rdx + frame->rcx + frame->r8 + frame->r9 +
		     frame->stack[0] + frame->stack[1];
	frame->rdx = 1000;
	return TWIN_OK;
}

void imports_get_arguments_from_the_data_stack(void)
{
	const uint64_t args[6] = { 1, 2, 3, 4, 5, 6 };

	set_up_window();
	host.import = sum_arguments;
	CHECK_EQUAL(enter6(window_import, args), TWIN_OK);
	CHECK_EQUAL(result, 1036);
	CHECK_EQUAL(host.last.site, (uint64_t)window_import_site);
	tear_down_window();
}

/* dom0 writes where the driver's pointer leads. */
static int double_there(struct twin_call_frame *frame)
{
	*(uint64_t *)frame->rdi *= 2;
	frame->rax = 1;
	return TWIN_OK;
}

void stack_variables_go_by_reference(void)
{
	set_up_window();
	CHECK_EQUAL(enter(window_stack_pointer, 41, 0), TWIN_OK);
	CHECK_EQUAL(result, 42);
	host.import = double_there;
	CHECK_EQUAL(enter(window_reference, 21, 0), TWIN_OK);
	CHECK_EQUAL(result, 43);
	/* The hot routine gives what it read. */
	CHECK_EQUAL(enter(window_hot_reference, 21, 0), TWIN_OK);
	CHECK_EQUAL(result, 42);
	tear_down_window();
}

void no_pointer_reaches_a_return_address(void)
{
	set_up_window();
	CHECK_EQUAL(enter(window_flood, (uint64_t)driver_bug, 0), TWIN_OK);
	CHECK_EQUAL(result, 7);
	tear_down_window();
	/* Nor the context, nor the control stack at its own address. */
	window_aborts(window_store, (uint64_t)&window_cpus[0]->host_rsp, 0, TWIN_ABORT_FAULT,
		      (uint64_t)&window_cpus[0]->host_rsp + WINDOW_VIEW);
	window_aborts(window_store, view_of(window_cpus[0]) + TWIN_STACK_LOW - 8, 0,
		      TWIN_ABORT_STACK, view_of(window_cpus[0]) + TWIN_STACK_LOW - 8);
}

static int flood_inside(struct twin_call_frame *frame)
{
	const uint64_t args[6] = { (uint64_t)driver_bug };

	CHECK_EQUAL(twin_enter(cpu, instance, (uint64_t)window_flood, args, NULL), TWIN_OK);
	frame->rax = 1000;
	frame->rdx = 0;
	return TWIN_OK;
}

void imports_return_from_a_window_whatever_was_written(void)
{
	set_up_window();
	host.import = flood_inside;
	CHECK_EQUAL(enter(window_import, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, 1000);
	tear_down_window();
}

void both_stacks_end_in_guards(void)
{
	uint64_t block;

	set_up_window();
	block = (uint64_t)cpu - TWIN_STACK_CONTEXT;
	CHECK_EQUAL(enter(driver_recurse, 0, 0), TWIN_ABORTED);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_STACK);
	CHECK(cpu->report.address - block < TWIN_STACK_LOW);
	tear_down_window();
	set_up_window();
	CHECK_EQUAL(enter(window_recurse, 0, 0), TWIN_ABORTED);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_STACK);
	CHECK(cpu->report.address - block - WINDOW_VIEW < TWIN_STACK_LOW);
	tear_down_window();
}

void a_cpu_without_a_data_stack_is_refused(void)
{
	set_up_window();
	cpu = usual_cpus[0];
	CHECK_EQUAL(enter(window_load, DATA, 0), TWIN_INVALID);
	CHECK_EQUAL(result, 0xdead);
	cpu = window_cpus[0];
	CHECK_EQUAL(twin_unmap(instance, view_of(cpu) + TWIN_STACK_LOW, 1, 0), TWIN_OK);
	CHECK_EQUAL(enter(window_load, DATA, 0), TWIN_INVALID);
	CHECK_EQUAL(instance->statistics.entries, 0);
	tear_down_window();
}

/* ---- The GS base ------------------------------------------------------------ */

static uint64_t gs_base(void)
{
	uint64_t base = 0;

	syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
	return base;
}

static void set_host_gs(uint64_t base)
{
	CHECK_EQUAL(syscall(SYS_arch_prctl, ARCH_SET_GS, base), 0);
}

static uint64_t seen_gs, next_gs;

static void note_gs(void)
{
	seen_gs = gs_base();
}

static int import_and_change(struct twin_call_frame *frame)
{
	note_gs();
	if (next_gs)
		set_host_gs(next_gs);
	frame->rdx = 0;
	return TWIN_OK;
}

static int abort_import(struct twin_call_frame *frame)
{
	(void)frame;
	note_gs();
	return TWIN_ABORTED;
}

static int enter_from_import(struct twin_call_frame *frame)
{
	const uint64_t args[6] = { DATA + 0x18 };
	uint64_t value = 0;

	CHECK_EQUAL(twin_enter(cpu, instance, (uint64_t)window_load, args, &value), TWIN_OK);
	CHECK_EQUAL(value, word(0, 0x18));
	note_gs();
	frame->rax = value;
	frame->rdx = 0;
	return TWIN_OK;
}

#define HOST_GS 0x123456789000

/* Enter; the host's base is there afterwards, and where its code ran meanwhile. */
static void keeps_gs(const char *function, uint64_t a, uint64_t b, int status)
{
	seen_gs = HOST_GS;
	CHECK_EQUAL(gs_base(), HOST_GS);
	CHECK_EQUAL(enter(function, a, b), status);
	CHECK_EQUAL(seen_gs, HOST_GS);
	CHECK_EQUAL(gs_base(), HOST_GS);
}

static void host_code_has_the_hosts_gs(bool instructions)
{
	set_up_window();
	twin_testbed_gs_start(instructions);
	host.spoil = note_gs;
	keeps_gs(window_load, DATA, 0, TWIN_OK);
	host.import = import_and_change;
	keeps_gs(window_import, 0, 0, TWIN_OK);
	host.import = enter_from_import;
	keeps_gs(window_import, 0, 0, TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	keeps_gs(driver_in8, 0x300, 0, TWIN_OK);
	keeps_gs(driver_out8, 0x300, 0, TWIN_OK);
	keeps_gs(driver_warn, 0, 0, TWIN_OK);
	keeps_gs(driver_call, VM_DOUBLE, 4, TWIN_OK);
	host.import = import_and_change;
	keeps_gs(driver_call, VM_KERNEL, 4, TWIN_OK);
	/* The host may change it. */
	next_gs = HOST_GS + 0x5000;
	CHECK_EQUAL(enter(window_import, 0, 0), TWIN_OK);
	CHECK_EQUAL(gs_base(), HOST_GS + 0x5000);
	next_gs = 0;
	set_host_gs(HOST_GS);
	host.import = abort_import;
	keeps_gs(window_import, 0, 0, TWIN_ABORTED);
	tear_down_window();
	set_up_window();
	twin_testbed_gs_start(instructions);
	keeps_gs(window_load, 8, 0, TWIN_ABORTED);
	keeps_gs(window_load, 8, 0, TWIN_DEAD);
	tear_down_window();
	set_up_window();
	twin_testbed_gs_start(instructions);
	keeps_gs(driver_bug, 0, 0, TWIN_ABORTED);
	tear_down_window();
}

void the_gs_base_is_the_windows_in_driver_code_alone(void)
{
	uint64_t before = gs_base();

	set_host_gs(HOST_GS);
	host_code_has_the_hosts_gs(true);
	host_code_has_the_hosts_gs(false);
	set_host_gs(before);
}

void per_cpu_data_is_in_the_window(void)
{
	set_up_window();
	cpu->gs_base = DATA + PAGE;
	CHECK_EQUAL(enter(window_gs, 0x40, 0), TWIN_OK);
	CHECK_EQUAL(result, word(1, 0x40));
	cpu->gs_base = 0;
	tear_down_window();
}

/* ---- Ranges that collide ------------------------------------------------------ */

static int try_region(uint64_t start, uint64_t pages)
{
	const struct twin_testbed_region region = {
		.dom0_start = start, .length = pages * PAGE, .fd = memory_fd, .writable = 1,
	};

	return twin_testbed_add_region(user, &region);
}

static void collides(uint64_t start, uint64_t pages, uint64_t with)
{
	CHECK_EQUAL(try_region(start, pages), TWIN_COLLISION);
	CHECK_EQUAL(twin_testbed_collision(user)->start, with);
}

void ranges_with_one_place_are_refused(void)
{
	const uint64_t view = WINDOW_VIEW + WINDOW_BLOCK;

	set_up_window();
	collides((uint32_t)DATA, 1, DATA);
	collides(0x700000000000 + (uint32_t)DATA - PAGE, 2, DATA);
	collides(0x5000 + (uint32_t)BALLOON - 0x5000, 1, BALLOON);
	collides(0x7700000000, 1, 0);
	collides(0x7700000000 + TWIN_WINDOW_NULL_GUARD - PAGE, 1, 0);
	collides(0x77ffffffff000ull, 2, 0);
	collides(0x8800000000 + TWIN_WINDOW_NULL_GUARD, TWIN_WINDOW_SIZE / PAGE, 0);
	collides(0x99000000000 + (uint32_t)WINDOW_BLOCK, 1, view);
	collides(0x99000000000 + (uint32_t)WINDOW_BLOCK + TWIN_STACK_LOW, 1, view + TWIN_STACK_LOW);
	collides(0x99000000000 + (uint32_t)WINDOW_BLOCK + TWIN_STACK_BLOCK - PAGE, 1,
		 view + TWIN_STACK_HIGH);
	CHECK_EQUAL(twin_testbed_add_stack(user, cpu, stacks_fd, 0), TWIN_COLLISION);
	/* What was refused has changed nothing. */
	CHECK_EQUAL(enter(window_load, DATA + 0x18, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	CHECK_EQUAL(try_region(0x99000000000 + (uint32_t)WINDOW_BLOCK + TWIN_STACK_BLOCK, 1), TWIN_OK);
	tear_down_window();
}

/* ---- Several CPUs --------------------------------------------------------------- */

struct worker {
	pthread_t thread;
	struct twin_cpu *cpu;
	uint64_t wrong;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	uint64_t i, value;

	twin_testbed_thread_start();
	for (i = 0; i < 20000; i++) {
		const uint64_t address = DATA + i * 8 % (3 * PAGE);
		const uint64_t load[6] = { address }, local[6] = { i };

		if (twin_enter(worker->cpu, instance, (uint64_t)window_load, load, &value) ||
		    value != 0x1000000 + (address - DATA) / 8)
			worker->wrong++;
		if (twin_enter(worker->cpu, instance, (uint64_t)window_stack_pointer, local, &value) ||
		    value != i + 1)
			worker->wrong++;
	}
	twin_testbed_thread_stop();
	return NULL;
}

void two_cpus_have_two_data_stacks(void)
{
	struct worker workers[2];
	unsigned int i;

	set_up_window();
	for (i = 0; i < 2; i++) {
		workers[i] = (struct worker){ .cpu = window_cpus[i] };
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	/* Ranges come and go meanwhile. */
	for (i = 0; i < 200; i++) {
		if (try_region(0x1100000000 + (0x6000 + i) * PAGE, 1) == TWIN_OK)
			twin_testbed_remove_region(user, 0x1100000000 + (0x6000 + i) * PAGE, 1 << 20);
		usleep(50);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(workers[i].thread, NULL);
		CHECK_EQUAL(workers[i].wrong, 0);
	}
	CHECK_EQUAL(instance->statistics.entries, 80000);
	tear_down_window();
}

static void *spin(void *status)
{
	const uint64_t args[6] = { DATA };

	twin_testbed_thread_start();
	*(int *)status = twin_enter(other_cpu, instance, (uint64_t)window_spin, args, NULL);
	twin_testbed_thread_stop();
	return NULL;
}

void signals_meet_the_windows_gs(void)
{
	pthread_t thread;
	int status = -1;

	set_up_window();
	__atomic_store_n(&memory[0], 0, __ATOMIC_RELAXED);
	pthread_create(&thread, NULL, spin, &status);
	while (!__atomic_load_n(&other_cpu->in_driver, __ATOMIC_RELAXED))
		usleep(100);
	pthread_kill(thread, SIGFPE);
	usleep(1000);
	/* The other CPU works meanwhile. */
	CHECK_EQUAL(enter(window_load, DATA + 0x18, 0), TWIN_OK);
	__atomic_store_n(&memory[0], 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CHECK_EQUAL(status, TWIN_OK);
	tear_down_window();
}
