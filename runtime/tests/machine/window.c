// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: driver code of the schemes window32 (window.S) and window (wide.S).
 * Each test runs with the scheme that is chosen last. Entries are in window-entry.c.
 */
#include "scheme.h"

#define STACK_BYTES (TWIN_STACK_HIGH - TWIN_STACK_LOW)

static struct scheme window32 = {
	.number = TWIN_SCHEME_WINDOW32, .window = WINDOW, .view = WINDOW_VIEW, .last = LAST,
	.blocks = { WINDOW_BLOCK, WINDOW_OTHER },
#define INIT_WINDOW(function) .function = window_##function,
	FUNCTIONS(INIT_WINDOW)
};
static struct scheme wide = {
	.number = TWIN_SCHEME_WINDOW, .window = WIDE_WINDOW, .view = WIDE_VIEW, .last = WIDE_LAST,
	.blocks = { WIDE_BLOCK, WIDE_OTHER },
#define INIT_WIDE(function) .function = wide_##function,
	FUNCTIONS(INIT_WIDE)
};

struct scheme *with = &window32;
static struct twin_cpu *usual_cpus[2];

void choose_window(uint32_t scheme)
{
	with = scheme == wide.number ? &wide : &window32;
}

uint64_t window_of(uint32_t scheme)
{
	return scheme == wide.number ? wide.window : window32.window;
}

uint64_t view_of_scheme(uint32_t scheme)
{
	return scheme == wide.number ? wide.view : window32.view;
}

static uint64_t size(void)
{
	return twin_window_shape_of(with->number).size;
}

static uint64_t place(uint64_t address)
{
	return address % size();
}

/* dom0's address number n of that place. */
static uint64_t at_place(uint64_t n, uint64_t place)
{
	return n * size() + place;
}

uint64_t view_of(const struct twin_cpu *self)
{
	return (uint64_t)self - TWIN_STACK_CONTEXT + with->view;
}

/* This process is dom0, too: it has the data stacks where dom0 would. */
static void start_once(void)
{
	unsigned int i;

	if (with->cpus[0])
		return;
	with->stacks_fd = memfd_create("stacks", 0);
	CHECK_EQUAL(ftruncate(with->stacks_fd, 2 * STACK_BYTES), 0);
	for (i = 0; i < 2; i++) {
		void *at;

		with->cpus[i] = twin_testbed_block_create(with->blocks[i]);
		CHECK(with->cpus[i]);
		at = (void *)(view_of(with->cpus[i]) + TWIN_STACK_LOW);
		CHECK(mmap(at, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED_NOREPLACE, with->stacks_fd,
			   i * STACK_BYTES) == at);
	}
}

void set_up_window(void)
{
	start_once();
	usual_cpus[0] = cpu;
	usual_cpus[1] = other_cpu;
	cpu = with->cpus[0];
	other_cpu = with->cpus[1];
	set_up(with->number);
	CHECK_EQUAL(twin_testbed_window(user), with->window);
	CHECK_EQUAL(twin_testbed_add_stack(user, cpu, with->stacks_fd, 0), TWIN_OK);
	CHECK_EQUAL(twin_testbed_add_stack(user, other_cpu, with->stacks_fd, STACK_BYTES), TWIN_OK);
	twin_instance_add_text(instance, (uint64_t)with->text_start, (uint64_t)with->text_end);
}

void tear_down_window(void)
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
	CHECK_EQUAL(enter(with->load, DATA + 0x18, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	CHECK_EQUAL(enter(with->store, DATA + 2 * PAGE + 8, 0x1122334455667788), TWIN_OK);
	CHECK_EQUAL(word(2, 8), 0x1122334455667788);
	CHECK_EQUAL(enter(with->indexed, DATA + 2 * PAGE + 0x20, -2), TWIN_OK);
	CHECK_EQUAL(result, 0x1122334455667788);
	/* Neighbours in dom0 only. */
	CHECK_EQUAL(enter(with->load, DATA + 4 * PAGE - 4, 0), TWIN_OK);
	CHECK_EQUAL(result, word(3, PAGE - 8) >> 32 | word(8, 0) << 32);
	CHECK_EQUAL(enter(with->load, RODATA + 8, 0), TWIN_OK);
	CHECK_EQUAL(result, word(9, 8));
	CHECK_EQUAL(instance->statistics.fills, 0);
	tear_down_window();
}

void only_the_place_of_an_address_counts(void)
{
	set_up_window();
	CHECK_EQUAL(enter(with->load, place(DATA) + 0x18, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	CHECK_EQUAL(enter(with->load, at_place(0x1d5a5a, place(DATA) + 0x20), 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x20));
	/* Sums wrap in the window. */
	CHECK_EQUAL(enter(with->indexed, DATA + 8, size() / 8), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0));
	tear_down_window();
}

void accesses_outside_dom0_abort(void)
{
	window_aborts(with->load, DATA_END, 0, TWIN_ABORT_FAULT, DATA_END);
	window_aborts(with->load, DATA_END - 4, 0, TWIN_ABORT_FAULT, DATA_END);
	window_aborts(with->load, DATA - 8, 0, TWIN_ABORT_FAULT, DATA - 8);
	window_aborts(with->store, RODATA + 0x10, 1, TWIN_ABORT_FAULT, RODATA + 0x10);
	window_aborts(with->load, BALLOON + 0x10, 0, TWIN_ABORT_FAULT, BALLOON + 0x10);
	window_aborts(with->load, BEYOND + 8, 0, TWIN_ABORT_FAULT, BEYOND + 8);
	/* Of a wild address only the place is known. */
	window_aborts(with->load, 0xdead4765beef0000, 0, TWIN_ABORT_FAULT,
		      place(0xdead4765beef0000));
}

void small_numbers_are_no_pointers(void)
{
	window_aborts(with->load, 0, 0, TWIN_ABORT_FAULT, 0);
	window_aborts(with->load, 0x10, 0, TWIN_ABORT_FAULT, 0x10);
	window_aborts(with->store, TWIN_WINDOW_NULL_GUARD - 8, 0, TWIN_ABORT_FAULT,
		      TWIN_WINDOW_NULL_GUARD - 8);
	/* LIST_POISON1, ERR_PTR(-EINVAL) */
	window_aborts(with->load, 0xdead000000000100, 0, TWIN_ABORT_FAULT, 0x100);
	window_aborts(with->load, -22, 0, TWIN_ABORT_FAULT, place(-22));
}

void an_access_over_the_end_meets_the_guard(void)
{
	set_up_window();
	add_region(with->last, 1, 7, true, true);
	CHECK_EQUAL(enter(with->load, with->last + PAGE - 8, 0), TWIN_OK);
	CHECK_EQUAL(result, word(7, PAGE - 8));
	aborts_with(with->load, with->last + PAGE - 4, 0, TWIN_ABORT_FAULT, with->last + PAGE);
	tear_down_window();
}

/* The mirror is the same pages. It has them where a displacement is negative. */
void the_mirror_shows_dom0(void)
{
	set_up_window();
	add_region(TABLE, 1, 10, true, true);
	CHECK_EQUAL(enter(wide_table, 0x18, 0), TWIN_OK);
	CHECK_EQUAL(result, word(10, 0x18));
	CHECK_EQUAL(enter(with->store, TABLE + 0x18, 0x1122334455667788), TWIN_OK);
	CHECK_EQUAL(enter(wide_table, 0x18, 0), TWIN_OK);
	CHECK_EQUAL(result, 0x1122334455667788);
	/* A table's index may be any: at the window's start or in the middle of it. */
	CHECK_EQUAL(enter(wide_table, DATA + 8 - TABLE, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 8));
	CHECK_EQUAL(twin_testbed_remove_region(user, TABLE, 0), TWIN_OK);
	aborts_with(wide_table, 0x18, 0, TWIN_ABORT_FAULT, place(TABLE + 0x18));
	tear_down_window();
}

void a_region_is_partly_in_the_mirror(void)
{
	set_up_window();
	add_region(BORDER - 2 * PAGE, 4, 4, true, true);
	CHECK_EQUAL(enter(wide_border, 8, 0), TWIN_OK);
	CHECK_EQUAL(result, word(6, 8));
	CHECK_EQUAL(enter(wide_store_border, PAGE + 8, 0x1122334455667788), TWIN_OK);
	CHECK_EQUAL(word(7, 8), 0x1122334455667788);
	CHECK_EQUAL(enter(with->load, BORDER + PAGE + 8, 0), TWIN_OK);
	CHECK_EQUAL(result, 0x1122334455667788);
	/* Over the border at the one end of the window. */
	CHECK_EQUAL(enter(with->load, BORDER - 4, 0), TWIN_OK);
	CHECK_EQUAL(result, word(5, PAGE - 8) >> 32 | word(6, 0) << 32);
	CHECK_EQUAL(enter(wide_border, -8, 0), TWIN_OK);
	CHECK_EQUAL(result, word(5, PAGE - 8));
	CHECK_EQUAL(twin_unmap(instance, BORDER - PAGE, 2, 0), TWIN_OK);
	CHECK_EQUAL(enter(wide_border, PAGE, 0), TWIN_OK);
	CHECK_EQUAL(result, word(7, 0));
	aborts_with(wide_border, PAGE - 8, 0, TWIN_ABORT_FAULT, BORDER + PAGE - 8);
	tear_down_window();
}

static void mirror_aborts(const char *function, uint64_t a, uint64_t address)
{
	set_up_window();
	add_region(TABLE, 1, 10, true, true);
	add_region(TABLE + PAGE, 1, 0, true, false);
	add_region(TABLE + 4 * PAGE, 1, 9, false, true);
	aborts_with(function, a, 0, TWIN_ABORT_FAULT, address);
	CHECK(reported_rip_within((uint64_t)function, (uint64_t)function + 64));
	tear_down_window();
}

void faults_in_the_mirror_are_reported(void)
{
	mirror_aborts(wide_table, PAGE + 0x18, TABLE + PAGE + 0x18);
	mirror_aborts(wide_table, PAGE - 4, TABLE + PAGE);
	mirror_aborts(wide_table, 5 * PAGE + 0x18, TABLE + 5 * PAGE + 0x18);
	/* Beside none. */
	mirror_aborts(wide_table, 0x7000018, place(TABLE + 0x7000018));
	mirror_aborts(wide_border, 0, place(BORDER));
	/* Small numbers less something, and plus something. */
	mirror_aborts(wide_border, TWIN_WIDE_MIRROR - 1, place(-1));
	mirror_aborts(wide_border, TWIN_WIDE_MIRROR + 0x10, 0x10);
	/* The farthest place after the window: the sum has come round. */
	mirror_aborts(wide_beyond, -1, 0x7ffffffe);
}

/* More than the low half of an address counts. */
void regions_of_one_low_half_are_two(void)
{
	const struct twin_testbed_region same = {
		.dom0_start = at_place(3, place(DATA)), .length = PAGE, .fd = memory_fd,
	};

	set_up_window();
	add_region(DATA + TWIN_WINDOW_SIZE, 1, 11, true, true);
	CHECK_EQUAL(enter(with->load, DATA + 8, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 8));
	CHECK_EQUAL(enter(with->load, DATA + TWIN_WINDOW_SIZE + 8, 0), TWIN_OK);
	CHECK_EQUAL(result, word(11, 8));
	CHECK_EQUAL(twin_testbed_add_region(user, &same), TWIN_COLLISION);
	CHECK_EQUAL(twin_testbed_collision(user)->start, DATA);
	aborts_with(with->load, DATA + 2 * TWIN_WINDOW_SIZE, 0, TWIN_ABORT_FAULT,
		    place(DATA + 2 * TWIN_WINDOW_SIZE));
	tear_down_window();
}

void strings_stay_in_the_window(void)
{
	const uint64_t args[6] = { DATA + 2 * PAGE + 8, DATA + 0x100, 0x200 };
	const uint64_t last = DATA_END - 1, block = with->view + with->blocks[0];
	static uint8_t before[0x1000];
	const uint64_t backward[6] = { DATA + 8, 1ull << 63, 1 };

	set_up_window();
	memcpy(before, (uint8_t *)memory + 0x100, sizeof(before));
	CHECK_EQUAL(enter6(with->copy, args), TWIN_OK);
	CHECK_EQUAL(result, DATA + 2 * PAGE + 8 + sizeof(before));
	CHECK(!memcmp((uint8_t *)memory + 2 * PAGE + 8, before, sizeof(before)));
	/* Any count ends at the first hole. */
	aborts_with(with->fill, last, 1ull << 63, TWIN_ABORT_FAULT, DATA_END);
	tear_down_window();
	set_up_window();
	CHECK_EQUAL(enter6(with->fill, backward), TWIN_ABORTED);
	CHECK_EQUAL(cpu->report.address, DATA - 1);
	tear_down_window();
	window_aborts(with->fill, block + TWIN_STACK_HIGH - 4, 64, TWIN_ABORT_FAULT,
		      block + TWIN_STACK_HIGH);
}

void a_windows_regions_come_and_go(void)
{
	set_up_window();
	CHECK_EQUAL(enter(with->load, DATA + 4 * PAGE, 0), TWIN_OK);
	CHECK_EQUAL(twin_testbed_remove_region(user, DATA + 4 * PAGE, 0), TWIN_OK);
	add_region(DATA + 4 * PAGE, 1, 10, true, true);
	CHECK_EQUAL(enter(with->load, DATA + 4 * PAGE - 4, 0), TWIN_OK);
	CHECK_EQUAL(result, word(3, PAGE - 8) >> 32 | word(10, 0) << 32);
	CHECK_EQUAL(twin_unmap(instance, DATA + PAGE, 1, 0), TWIN_OK);
	CHECK_EQUAL(enter(with->load, DATA + PAGE - 8, 0), TWIN_OK);
	CHECK_EQUAL(enter(with->load, DATA + 2 * PAGE, 0), TWIN_OK);
	CHECK_EQUAL(twin_testbed_remove_region(user, DATA + 4 * PAGE, 0), TWIN_OK);
	aborts_with(with->load, DATA + 4 * PAGE - 4, 0, TWIN_ABORT_FAULT, DATA + 4 * PAGE);
	tear_down_window();
	set_up_window();
	CHECK_EQUAL(twin_unmap(instance, DATA + PAGE, 1, 0), TWIN_OK);
	aborts_with(with->load, DATA + PAGE + 8, 0, TWIN_ABORT_FAULT, DATA + PAGE + 8);
	tear_down_window();
}

/* ---- Stacks --------------------------------------------------------------- */

void stack_arguments_are_on_the_data_stack(void)
{
	const uint64_t args[6] = { 1, 2, 3, 4, 5, 6 };

	set_up_window();
	memset((void *)(view_of(cpu) + TWIN_STACK_LOW), 0xff, STACK_BYTES);
	memset((void *)(cpu->driver_high - TWIN_INCOMING_ARGS), 0xff, TWIN_INCOMING_ARGS);
	CHECK_EQUAL(enter6(with->arguments, args), TWIN_OK);
	CHECK_EQUAL(result, 0123456);
	tear_down_window();
}

static int sum_arguments(struct twin_call_frame *frame)
{
	const uint64_t low = with->window + (uint32_t)with->blocks[0] + TWIN_STACK_LOW;

	CHECK((uint64_t)frame->stack - low < STACK_BYTES);
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
	CHECK_EQUAL(enter6(with->import, args), TWIN_OK);
	CHECK_EQUAL(result, 1036);
	CHECK_EQUAL(host.last.site, (uint64_t)with->import_site);
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
	CHECK_EQUAL(enter(with->stack_pointer, 41, 0), TWIN_OK);
	CHECK_EQUAL(result, 42);
	host.import = double_there;
	CHECK_EQUAL(enter(with->reference, 21, 0), TWIN_OK);
	CHECK_EQUAL(result, 43);
	/* The hot routine gives what it read. */
	CHECK_EQUAL(enter(with->hot_reference, 21, 0), TWIN_OK);
	CHECK_EQUAL(result, 42);
	tear_down_window();
}

/* Whether an address in a block has the same place as in dom0's view. */
static bool has_low_place(uint64_t address)
{
	return place(address) == (uint32_t)address;
}

void no_pointer_reaches_a_return_address(void)
{
	uint64_t context;

	set_up_window();
	context = (uint64_t)&cpu->host_rsp;
	CHECK_EQUAL(enter(with->flood, (uint64_t)driver_bug, 0), TWIN_OK);
	CHECK_EQUAL(result, 7);
	tear_down_window();
	/* Nor the context, by its own address or by dom0's. */
	window_aborts(with->store, context, 0, TWIN_ABORT_FAULT,
		      has_low_place(context) ? context + with->view : place(context));
	window_aborts(with->store, context + with->view, 0, TWIN_ABORT_FAULT,
		      context + with->view);
	window_aborts(with->store, view_of(with->cpus[0]) + TWIN_STACK_LOW - 8, 0,
		      TWIN_ABORT_STACK, view_of(with->cpus[0]) + TWIN_STACK_LOW - 8);
}

static int flood_inside(struct twin_call_frame *frame)
{
	const uint64_t args[6] = { (uint64_t)driver_bug };

	CHECK_EQUAL(twin_enter(cpu, instance, (uint64_t)with->flood, args, NULL), TWIN_OK);
	frame->rax = 1000;
	frame->rdx = 0;
	return TWIN_OK;
}

void imports_return_from_a_window_whatever_was_written(void)
{
	set_up_window();
	host.import = flood_inside;
	CHECK_EQUAL(enter(with->import, 0, 0), TWIN_OK);
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
	CHECK_EQUAL(enter(with->recurse, 0, 0), TWIN_ABORTED);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_STACK);
	CHECK(cpu->report.address - block - with->view < TWIN_STACK_LOW);
	tear_down_window();
}

void a_cpu_without_a_data_stack_is_refused(void)
{
	set_up_window();
	cpu = usual_cpus[0];
	CHECK_EQUAL(enter(with->load, DATA, 0), TWIN_INVALID);
	CHECK_EQUAL(result, 0xdead);
	cpu = with->cpus[0];
	CHECK_EQUAL(twin_unmap(instance, view_of(cpu) + TWIN_STACK_LOW, 1, 0), TWIN_OK);
	CHECK_EQUAL(enter(with->load, DATA, 0), TWIN_INVALID);
	CHECK_EQUAL(instance->statistics.entries, 0);
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
	const uint64_t view = with->view + with->blocks[0];
	const uint64_t block = at_place(0x990, (uint32_t)with->blocks[0]);

	set_up_window();
	collides(place(DATA), 1, DATA);
	collides(at_place(0x7000, place(DATA)) - PAGE, 2, DATA);
	collides(place(BALLOON), 1, BALLOON);
	collides(at_place(0x77, 0), 1, 0);
	collides(at_place(0x77, TWIN_WINDOW_NULL_GUARD - PAGE), 1, 0);
	collides(at_place(0x78, 0) - PAGE, 2, 0);
	collides(at_place(0x88, TWIN_WINDOW_NULL_GUARD), size() / PAGE, 0);
	collides(block, 1, view);
	collides(block + TWIN_STACK_LOW, 1, view + TWIN_STACK_LOW);
	collides(block + TWIN_STACK_BLOCK - PAGE, 1, view + TWIN_STACK_HIGH);
	CHECK_EQUAL(twin_testbed_add_stack(user, cpu, with->stacks_fd, 0), TWIN_COLLISION);
	/* What was refused has changed nothing. */
	CHECK_EQUAL(enter(with->load, DATA + 0x18, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	CHECK_EQUAL(try_region(block + TWIN_STACK_BLOCK, 1), TWIN_OK);
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

		if (twin_enter(worker->cpu, instance, (uint64_t)with->load, load, &value) ||
		    value != 0x1000000 + (address - DATA) / 8)
			worker->wrong++;
		if (twin_enter(worker->cpu, instance, (uint64_t)with->stack_pointer, local, &value) ||
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
		workers[i] = (struct worker){ .cpu = with->cpus[i] };
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	/* Ranges come and go meanwhile: near the window's end, so in the mirror, too. */
	for (i = 0; i < 200; i++) {
		const uint64_t start = at_place(0x12, 0) - (0x6000 - i) * PAGE;

		if (try_region(start, 1) == TWIN_OK)
			twin_testbed_remove_region(user, start, 1 << 20);
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
	*(int *)status = twin_enter(other_cpu, instance, (uint64_t)with->spin, args, NULL);
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
	CHECK_EQUAL(enter(with->load, DATA + 0x18, 0), TWIN_OK);
	__atomic_store_n(&memory[0], 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CHECK_EQUAL(status, TWIN_OK);
	tear_down_window();
}
