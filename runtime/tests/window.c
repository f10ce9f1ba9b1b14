// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ranges of an instance with a window, against a platform that only notes what it is
 * asked; then the testbed's window. No driver runs. All tests run with both schemes, but
 * those of what only the larger window has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "platform.h"
#include "test.h"

#define WINDOW	0x5000000000ull
#define VIEW	0x700000000000ull
#define GIB4	TWIN_WINDOW_SIZE
#define SIZE	shape.size
#define A	0xffff888000100000ull
#define LIMIT	6

static uint32_t scheme;
static struct twin_window_shape shape;
static struct twin_range ranges[LIMIT + 1];
static struct twin_instance instance;
static struct twin_range other;
static struct {
	unsigned int calls;
	uint64_t start, length;
} unmapped;

static uint64_t place(uint64_t va)
{
	return va % SIZE;
}

static void fake_unmap(struct twin_instance *self, uint64_t start, uint64_t length)
{
	CHECK(self == &instance);
	CHECK(instance.table_lock.held);
	unmapped.calls++;
	unmapped.start = start;
	unmapped.length = length;
}

static uint64_t fake_gs(struct twin_instance *self, uint64_t base)
{
	(void)self;
	return base;
}

static const struct twin_platform_ops ops = { .unmap_range = fake_unmap, .set_gs_base = fake_gs };

static struct twin_instance_config config(void)
{
	return (struct twin_instance_config){
		.scheme = scheme, .window = WINDOW, .stack_view = VIEW,
		.ranges = ranges, .range_limit = LIMIT, .vector_free = 1, .ops = &ops,
	};
}

static void set_up(void)
{
	const struct twin_instance_config good = config();

	memset(ranges, 0x5a, sizeof(ranges));
	memset(&unmapped, 0, sizeof(unmapped));
	CHECK_EQUAL(twin_instance_init(&instance, &good), TWIN_OK);
}

static int add(uint64_t start, uint64_t pages)
{
	const struct twin_range range = { start, pages * PAGE, 0 };
	int admitted = twin_window_admits(&instance, &range, &other);
	int added = twin_window_add(&instance, &range, &other);

	CHECK_EQUAL(admitted, added);
	return added;
}

static int translate(uint64_t va, uint64_t *mapped)
{
	int refusal;

	twin_instance_hold(&instance);
	refusal = twin_translate(&instance, va, mapped);
	twin_instance_release(&instance);
	return refusal;
}

/* The page is dom0's and at its place; or it is not dom0's. */
static void has(uint64_t page, bool there)
{
	uint64_t mapped = 0;

	CHECK_EQUAL(translate(page + 5, &mapped), there ? TWIN_MAPPED : TWIN_REFUSED_NOT_DOM0);
	CHECK_EQUAL(mapped, there ? WINDOW + place(page) + 5 : 0);
}

/* ---- Configurations ------------------------------------------------------- */

static void refused(struct twin_instance_config bad)
{
	CHECK_EQUAL(twin_instance_init(&instance, &bad), TWIN_INVALID);
}

static void configurations_are_checked(void)
{
	static struct twin_stlb_entry stlb[TWIN_STLB_ENTRIES] __attribute__((aligned(4096)));
	const struct twin_platform_ops no_unmap = { .set_gs_base = fake_gs };
	const struct twin_platform_ops no_gs = { .unmap_range = fake_unmap };
	struct twin_instance_config bad;

#define REFUSED(change)	(bad = config(), bad.change, refused(bad))
	REFUSED(stlb = stlb);
	REFUSED(node_count = 1);
	REFUSED(window = 0);
	REFUSED(window = WINDOW + 1);
	REFUSED(window = shape.mirror + shape.guard - PAGE);
	REFUSED(window = -SIZE);
	REFUSED(window = -SIZE - shape.guard);
	REFUSED(stack_view = VIEW + PAGE);
	REFUSED(ranges = NULL);
	REFUSED(ops = NULL);
	REFUSED(ops = &no_unmap);
	REFUSED(ops = &no_gs);
	REFUSED(scheme = 4);
	REFUSED(scheme = TWIN_SCHEME_STLB);
	REFUSED(vector_free = 0);
#undef REFUSED
	/* A host that sets the base itself, and whose code uses no GS. */
	bad = config();
	bad.ops = &no_gs;
	bad.gs_is_set = 1;
	CHECK_EQUAL(twin_instance_init(&instance, &bad), TWIN_OK);
	CHECK_EQUAL(instance.switches_gs + instance.enters_gs, 0);
	set_up();
}

/* ---- Ranges ----------------------------------------------------------------- */

static void ranges_are_translated_by_their_place(void)
{
	set_up();
	CHECK_EQUAL(add(A, 3), TWIN_OK);
	CHECK_EQUAL(add(0x10000000, 1), TWIN_OK);
	has(A, true);
	has(A + 2 * PAGE, true);
	has(A + 3 * PAGE, false);
	has(A - PAGE, false);
	has(0x10000000, true);
	/* All 64 bits count for host code. */
	has(place(A), false);
	has(A + SIZE, false);
	CHECK_EQUAL(instance.statistics.refusals, 4);
}

static void ranges_that_share_a_place_are_refused(void)
{
	set_up();
	CHECK_EQUAL(add(A, 4), TWIN_OK);
	CHECK_EQUAL(add(A + SIZE, 1), TWIN_COLLISION);
	CHECK_EQUAL(other.start, A);
	CHECK_EQUAL(other.length, 4 * PAGE);
	CHECK_EQUAL(add(A - PAGE, 6), TWIN_COLLISION);
	CHECK_EQUAL(add(5 * SIZE + place(A) + 3 * PAGE, 9), TWIN_COLLISION);
	CHECK_EQUAL(add(5 * SIZE + place(A) - 3 * PAGE, 4), TWIN_COLLISION);
	CHECK_EQUAL(add(5 * SIZE + place(A) - 3 * PAGE, 3), TWIN_OK);
	CHECK_EQUAL(add(6 * SIZE + place(A) + 4 * PAGE, 3), TWIN_OK);
	CHECK_EQUAL(instance.range_count, 3);
}

/* What has bits in common in a smaller window only. */
static void ranges_of_one_low_half_have_two_places(void)
{
	set_up();
	CHECK_EQUAL(add(A, 4), TWIN_OK);
	CHECK_EQUAL(add(A + GIB4, 4), TWIN_OK);
	CHECK_EQUAL(add(A - GIB4, 4), TWIN_OK);
	CHECK_EQUAL(add(GIB4, 1), TWIN_OK);
	has(A, true);
	has(A + GIB4, true);
	has(A + 2 * GIB4, false);
	CHECK_EQUAL(add(A + TWIN_WIDE_SIZE, 1), TWIN_COLLISION);
	CHECK_EQUAL(other.start, A);
	CHECK_EQUAL(add(A + GIB4 - TWIN_WIDE_SIZE, 1), TWIN_COLLISION);
	CHECK_EQUAL(other.start, A + GIB4);
}

static void the_first_pages_are_nobodys(void)
{
	set_up();
	CHECK_EQUAL(add(0, 1), TWIN_COLLISION);
	CHECK_EQUAL(other.start, 0);
	CHECK_EQUAL(other.length, TWIN_WINDOW_NULL_GUARD);
	CHECK_EQUAL(add(SIZE * 9 + TWIN_WINDOW_NULL_GUARD - PAGE, 2), TWIN_COLLISION);
	CHECK_EQUAL(add(SIZE * 9 - PAGE, 2), TWIN_COLLISION);
	CHECK_EQUAL(add(SIZE * 9 + TWIN_WINDOW_NULL_GUARD, SIZE / PAGE), TWIN_COLLISION);
	CHECK_EQUAL(add(SIZE * 9 + TWIN_WINDOW_NULL_GUARD, SIZE / PAGE - 16), TWIN_OK);
}

static void ranges_are_checked(void)
{
	const struct twin_range odd[] = {
		{ A + 1, PAGE, 0 }, { A, PAGE + 1, 0 }, { A, 0, 0 }, { -PAGE, 2 * PAGE, 0 },
	};
	uint32_t i;

	set_up();
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		CHECK_EQUAL(twin_window_add(&instance, &odd[i], &other), TWIN_INVALID);
	for (i = 0; i < LIMIT; i++)
		CHECK_EQUAL(add(A + 2 * i * PAGE, 1), TWIN_OK);
	CHECK_EQUAL(add(A + 2 * LIMIT * PAGE, 1), TWIN_INVALID);
	CHECK_EQUAL(ranges[LIMIT].start, 0x5a5a5a5a5a5a5a5aull);
}

static void an_unmapped_range_is_dom0s_but_empty(void)
{
	const struct twin_range empty = { A, PAGE, 1 };
	uint64_t mapped;

	set_up();
	CHECK_EQUAL(twin_window_add(&instance, &empty, &other), TWIN_OK);
	CHECK_EQUAL(translate(A, &mapped), TWIN_REFUSED_UNMAPPED);
}

/* ---- Data stacks ---------------------------------------------------------------- */

static const struct twin_cpu *cpu_of(uint64_t block)
{
	return (const struct twin_cpu *)(block + TWIN_STACK_CONTEXT);
}

static void a_data_stack_is_three_ranges(void)
{
	const struct twin_cpu *cpu = cpu_of(0x18000041000000);
	uint64_t mapped;

	set_up();
	CHECK(!twin_window_has_stack(&instance, cpu));
	CHECK_EQUAL(twin_window_add_stack(&instance, cpu, &other), TWIN_OK);
	CHECK(twin_window_has_stack(&instance, cpu));
	CHECK_EQUAL(instance.range_count, 3);
	has(0x18000041000000 + VIEW + TWIN_STACK_LOW, true);
	has(0x18000041000000 + VIEW + TWIN_STACK_HIGH - PAGE, true);
	CHECK_EQUAL(translate(0x18000041000000 + VIEW + TWIN_STACK_HIGH, &mapped),
		    TWIN_REFUSED_UNMAPPED);
	CHECK_EQUAL(twin_window_add_stack(&instance, cpu, &other), TWIN_COLLISION);
	CHECK_EQUAL(add(SIZE + 0x41000000, 1), TWIN_COLLISION);
	CHECK_EQUAL(other.length, TWIN_STACK_LOW);
	/* Its operands would meet the guard at the window's start. */
	CHECK_EQUAL(twin_window_add_stack(&instance, cpu_of(16 * SIZE), &other), TWIN_COLLISION);
	CHECK_EQUAL(other.start, 0);
}

/* Operands are cut to 32 bits, pointers to the window's size. */
static void a_data_stack_of_two_places_is_refused(void)
{
	const uint64_t block = GIB4 + 0x41000000;
	const bool wide = SIZE > GIB4;

	set_up();
	CHECK_EQUAL(twin_window_add_stack(&instance, cpu_of(block), &other),
		    wide ? TWIN_INVALID : TWIN_OK);
	CHECK_EQUAL(instance.range_count, wide ? 0 : 3);
	/* Nor is it one if its pages are a range of somebody's. */
	set_up();
	CHECK_EQUAL(add(block + VIEW, TWIN_STACK_BLOCK / PAGE), TWIN_OK);
	CHECK_EQUAL(twin_window_has_stack(&instance, cpu_of(block)), !wide);
	/* The view takes away the bits that are too many. */
	set_up();
	instance.stack_view = VIEW - GIB4;
	CHECK_EQUAL(twin_window_add_stack(&instance, cpu_of(block), &other), TWIN_OK);
	CHECK(twin_window_has_stack(&instance, cpu_of(block)));
	has(0x41000000 + VIEW + TWIN_STACK_LOW, true);
}

/* ---- Taking pages out --------------------------------------------------------- */

static void take_out(uint64_t start, uint64_t pages)
{
	CHECK_EQUAL(twin_unmap(&instance, start, pages, 0), TWIN_OK);
}

static void pages_are_taken_out_of_ranges(void)
{
	set_up();
	CHECK_EQUAL(add(A, 10), TWIN_OK);
	take_out(A + 4 * PAGE, 2);
	CHECK_EQUAL(unmapped.calls, 1);
	CHECK_EQUAL(unmapped.start, A + 4 * PAGE);
	CHECK_EQUAL(unmapped.length, 2 * PAGE);
	has(A + 3 * PAGE, true);
	has(A + 4 * PAGE, false);
	has(A + 5 * PAGE, false);
	has(A + 6 * PAGE, true);
	has(A + 9 * PAGE, true);
	take_out(A - PAGE, 2);
	has(A, false);
	has(A + PAGE, true);
	take_out(A + 9 * PAGE, 100);
	has(A + 8 * PAGE, true);
	has(A + 9 * PAGE, false);
	CHECK_EQUAL(instance.range_count, 2);
	/* Their places are free. */
	CHECK_EQUAL(add(A + SIZE + 4 * PAGE, 2), TWIN_OK);
	take_out(0, UINT64_MAX);
	CHECK_EQUAL(instance.range_count, 0);
	CHECK_EQUAL(unmapped.calls, 6);
	take_out(A, 1);
	take_out(A, 0);
	CHECK_EQUAL(unmapped.calls, 6);
}

static void one_range_too_many_loses_its_end(void)
{
	uint32_t i;

	set_up();
	CHECK_EQUAL(add(A, 10), TWIN_OK);
	for (i = 1; i < LIMIT; i++)
		CHECK_EQUAL(add(A + (2 * i + 20) * PAGE, 1), TWIN_OK);
	take_out(A + 4 * PAGE, 1);
	CHECK_EQUAL(unmapped.length, 6 * PAGE);
	has(A + 3 * PAGE, true);
	has(A + 5 * PAGE, false);
	has(A + 9 * PAGE, false);
}

static void flushing_keeps_ranges(void)
{
	set_up();
	CHECK_EQUAL(add(A, 1), TWIN_OK);
	CHECK_EQUAL(twin_flush(&instance, 0), TWIN_OK);
	CHECK_EQUAL(unmapped.calls, 0);
	has(A, true);
}

/* ---- Addresses of faults -------------------------------------------------------- */

static void faults_are_reported_as_dom0s(void)
{
	const uint64_t before = shape.mirror + shape.guard;

	set_up();
	CHECK_EQUAL(add(A, 2), TWIN_OK);
	CHECK_EQUAL(add(0x78 * SIZE - PAGE, 1), TWIN_OK);
#define AT(place)	twin_window_dom0(&instance, WINDOW + (place))
	CHECK_EQUAL(AT(place(A) + 0x1234), A + 0x1234);
	/* Beside a range. */
	CHECK_EQUAL(AT(place(A) + 2 * PAGE + 7), A + 2 * PAGE + 7);
	CHECK_EQUAL(AT(place(A) - 8), A - 8);
	CHECK_EQUAL(AT(place(A) - PAGE), place(A) - PAGE);
	CHECK_EQUAL(AT(place(A) + 3 * PAGE), place(A) + 3 * PAGE);
	CHECK_EQUAL(AT(0x42), 0x42);
	CHECK_EQUAL(AT(SIZE - 8), 0x78 * SIZE - 8);
	/* In the guards: the distance, or where it is in a window that comes round. */
#define ROUND(place)	(shape.mirror ? (place) & (SIZE - 1) : (place))
	CHECK_EQUAL(AT(SIZE), 0x78 * SIZE);
	CHECK_EQUAL(AT(SIZE + PAGE), ROUND(SIZE + PAGE));
	CHECK_EQUAL(AT(SIZE + shape.guard - 1), ROUND(SIZE + shape.guard - 1));
	CHECK_EQUAL(AT(-shape.mirror - 8), ROUND(-shape.mirror - 8));
	CHECK_EQUAL(AT(-before), ROUND(-before));
#undef ROUND
	/* Elsewhere. */
	CHECK_EQUAL(AT(-before - 1), WINDOW - before - 1);
	CHECK_EQUAL(AT(SIZE + shape.guard), WINDOW + SIZE + shape.guard);
	CHECK_EQUAL(twin_window_dom0(&instance, 0x18), 0x18);
}

static void faults_in_the_mirror_are_reported_as_dom0s(void)
{
	const uint64_t border = 0x78 * SIZE - shape.mirror;

	set_up();
	CHECK_EQUAL(add(0xffffffffc0000000, 2), TWIN_OK);
	CHECK_EQUAL(add(border - PAGE, 2), TWIN_OK);
	CHECK_EQUAL(AT(-0x40000000ull + 0x1234), 0xffffffffc0001234);
	CHECK_EQUAL(AT(-0x40000000ull + 2 * PAGE + 7), 0xffffffffc0002007);
	CHECK_EQUAL(AT(-0x40000000ull - 8), 0xffffffffbffffff8);
	CHECK_EQUAL(AT(-0x40000000ull - PAGE), SIZE - 0x40000000 - PAGE);
	CHECK_EQUAL(AT(-8ull), SIZE - 8);
	CHECK_EQUAL(AT(-shape.mirror), border);
	CHECK_EQUAL(AT(-shape.mirror + PAGE + 7), border + PAGE + 7);
	CHECK_EQUAL(AT(SIZE - shape.mirror - 8), border - 8);
#undef AT
}

/* ---- The testbed ------------------------------------------------------------------ */

static int fd;
static struct twin_testbed *testbed;

static void set_up_testbed_with(uint64_t view)
{
	const struct twin_testbed_config wanted = {
		.scheme = scheme, .stack_view = view, .regions = 8, .vector_free = 1,
	};

	testbed = twin_testbed_create(&wanted);
	CHECK(testbed);
}

static void set_up_testbed(void)
{
	set_up_testbed_with(VIEW);
}

/* Whether a byte can be read there, by system calls. */
static bool can_read(uint64_t address)
{
	int pipes[2];
	bool can;

	if (pipe(pipes))
		return false;
	can = write(pipes[1], (void *)address, 1) == 1;
	close(pipes[0]);
	close(pipes[1]);
	return can;
}

static int add_region(uint64_t start, uint64_t pages, uint64_t file_page, int32_t file)
{
	const struct twin_testbed_region region = {
		.dom0_start = start, .length = pages * PAGE, .file_offset = file_page * PAGE,
		.fd = file, .writable = 1,
	};

	return twin_testbed_add_region(testbed, &region);
}

static void only_regions_are_in_the_window(void)
{
	uint64_t window;

	set_up_testbed();
	window = twin_testbed_window(testbed);
	CHECK(!twin_testbed_stlb(testbed));
	CHECK_EQUAL(add_region(A, 2, 1, fd), TWIN_OK);
	CHECK_EQUAL(add_region(A + 2 * PAGE, 1, 0, -1), TWIN_OK);
	CHECK(!memcmp((char *)window + place(A), "page 1", 6));
	CHECK(!memcmp((char *)window + place(A) + PAGE, "page 2", 6));
	CHECK(!can_read(window + place(A) - 1));
	CHECK(!can_read(window + place(A) + 2 * PAGE));
	CHECK(!can_read(window) && !can_read(window - 1) && !can_read(window + SIZE));
	CHECK(!can_read(window - shape.mirror) && !can_read(window - shape.mirror - 1));
	CHECK(!can_read(window - shape.mirror - shape.guard));
	CHECK(!can_read(window + SIZE + shape.guard - 1));
	CHECK_EQUAL(twin_testbed_remove_region(testbed, A, 0), TWIN_OK);
	CHECK(!can_read(window + place(A)));
	CHECK_EQUAL(twin_testbed_remove_region(testbed, A, 0), TWIN_INVALID);
	CHECK_EQUAL(add_region(A + SIZE, 1, 3, fd), TWIN_OK);
	CHECK(!memcmp((char *)window + place(A), "page 3", 6));
	CHECK_EQUAL(add_region(A, 1, 1, fd), TWIN_COLLISION);
	CHECK_EQUAL(twin_testbed_collision(testbed)->start, A + SIZE);
	CHECK(!memcmp((char *)window + place(A), "page 3", 6));
	twin_testbed_destroy(testbed);
}

/* Whether the file's page of that number is there. */
static bool shows(uint64_t address, unsigned int page)
{
	const char name[] = { 'p', 'a', 'g', 'e', ' ', '0' + page };

	return can_read(address) && !memcmp((void *)address, name, sizeof(name));
}

static void the_windows_end_is_before_it_too(void)
{
	const uint64_t module = 0xffffffffc0000000, offset = module;
	uint64_t window;

	set_up_testbed();
	window = twin_testbed_window(testbed);
	CHECK_EQUAL(add_region(module, 4, 1, fd), TWIN_OK);
	CHECK_EQUAL(add_region(-PAGE, 1, 6, fd), TWIN_OK);
	CHECK(shows(window + place(module), 1) && shows(window + offset, 1));
	CHECK(shows(window + place(module) + 3 * PAGE, 4) && shows(window + offset + 3 * PAGE, 4));
	CHECK(!can_read(window + offset - 1) && !can_read(window + offset + 4 * PAGE));
	CHECK(shows(window + SIZE - PAGE, 6) && shows(window - PAGE, 6));
	CHECK(!can_read(window) && !can_read(window + SIZE));
	/* The same bytes. */
	((volatile char *)window + offset)[8] = 'x';
	CHECK_EQUAL(((volatile char *)window + place(module))[8], 'x');
	/* Some of it goes, then all. */
	CHECK_EQUAL(twin_unmap(twin_testbed_instance(testbed), module + PAGE, 2, 0), TWIN_OK);
	CHECK(shows(window + offset, 1) && shows(window + offset + 3 * PAGE, 4));
	CHECK(!can_read(window + offset + PAGE) && !can_read(window + offset + 3 * PAGE - 1));
	CHECK(!can_read(window + place(module) + PAGE));
	CHECK_EQUAL(twin_testbed_remove_region(testbed, module, 0), TWIN_OK);
	CHECK(!can_read(window + offset) && !can_read(window + offset + 3 * PAGE));
	CHECK(!can_read(window + place(module)));
	CHECK(shows(window - PAGE, 6));
	twin_testbed_destroy(testbed);
}

static void a_region_may_lie_partly_in_the_mirror(void)
{
	const uint64_t border = -shape.mirror;
	uint64_t window;

	set_up_testbed();
	window = twin_testbed_window(testbed);
	CHECK_EQUAL(add_region(border - 2 * PAGE, 4, 1, fd), TWIN_OK);
	CHECK(shows(window + place(border) - 2 * PAGE, 1));
	CHECK(shows(window + place(border) + PAGE, 4));
	CHECK(shows(window + border, 3) && shows(window + border + PAGE, 4));
	CHECK(!can_read(window + border - 1) && !can_read(window + border + 2 * PAGE));
	/* The pages on both sides of the border. */
	CHECK_EQUAL(twin_unmap(twin_testbed_instance(testbed), border - PAGE, 2, 0), TWIN_OK);
	CHECK(shows(window + place(border) - 2 * PAGE, 1));
	CHECK(!can_read(window + place(border) - PAGE) && !can_read(window + place(border)));
	CHECK(!can_read(window + border));
	CHECK(shows(window + place(border) + PAGE, 4) && shows(window + border + PAGE, 4));
	CHECK_EQUAL(twin_testbed_remove_region(testbed, border - 2 * PAGE, 0), TWIN_OK);
	CHECK(!can_read(window + place(border) - 2 * PAGE));
	CHECK(!can_read(window + border + PAGE) && !can_read(window + place(border) + PAGE));
	/* Up to the border. */
	CHECK_EQUAL(add_region(border - PAGE, 1, 2, fd), TWIN_OK);
	CHECK(shows(window + place(border) - PAGE, 2));
	CHECK(!can_read(window + border - 1) && !can_read(window + border));
	twin_testbed_destroy(testbed);
}

static void regions_of_one_low_half_are_both_shown(void)
{
	uint64_t window;

	set_up_testbed();
	window = twin_testbed_window(testbed);
	CHECK_EQUAL(add_region(A, 1, 1, fd), TWIN_OK);
	CHECK_EQUAL(add_region(A + GIB4, 1, 2, fd), TWIN_OK);
	CHECK_EQUAL(add_region(A + TWIN_WIDE_SIZE, 1, 3, fd), TWIN_COLLISION);
	CHECK_EQUAL(twin_testbed_collision(testbed)->start, A);
	CHECK(shows(window + place(A), 1) && shows(window + place(A) + GIB4, 2));
	twin_testbed_destroy(testbed);
}

static void what_cannot_be_mapped_is_refused(void)
{
	set_up_testbed();
	CHECK_EQUAL(add_region(A, 1, 0, 12345), TWIN_INVALID);
	CHECK(!can_read(twin_testbed_window(testbed) + place(A)));
	CHECK_EQUAL(add_region(-PAGE, 1, 0, 12345), TWIN_INVALID);
	CHECK(!can_read(twin_testbed_window(testbed) - 1));
	CHECK_EQUAL(add_region(A, 1, 0, fd), TWIN_OK);
	CHECK_EQUAL(add_region(-PAGE, 1, 0, fd), TWIN_OK);
	twin_testbed_destroy(testbed);
}

/* The view for a block: what is left of the sum in the window is the block's low half. */
static uint64_t view_for(uint64_t block)
{
	return VIEW - (place(block) - (uint32_t)block);
}

static void a_data_stack_has_its_blocks_place(void)
{
	struct twin_cpu *cpu = twin_testbed_block_create(0);
	const uint64_t block = (uint64_t)cpu - TWIN_STACK_CONTEXT;
	uint64_t window, offset;

	set_up_testbed_with(view_for(block));
	window = twin_testbed_window(testbed);
	CHECK_EQUAL(twin_testbed_add_stack(testbed, cpu, -1, 0), TWIN_INVALID);
	CHECK_EQUAL(twin_testbed_add_stack(testbed, cpu, fd, 1), TWIN_INVALID);
	CHECK_EQUAL(twin_testbed_add_stack(testbed, cpu, fd, PAGE), TWIN_OK);
	for (offset = 0; offset < TWIN_STACK_BLOCK; offset += PAGE)
		CHECK_EQUAL(can_read(window + (uint32_t)block + offset),
			    offset >= TWIN_STACK_LOW && offset < TWIN_STACK_HIGH);
	CHECK(shows(window + (uint32_t)block + TWIN_STACK_LOW, 1));
	CHECK_EQUAL(add_region(SIZE * 7 + (uint32_t)block, 1, 0, fd), TWIN_COLLISION);
	CHECK_EQUAL(twin_testbed_add_stack(testbed, cpu, fd, PAGE), TWIN_COLLISION);
	twin_testbed_destroy(testbed);
	twin_testbed_block_destroy(cpu);
}

static void a_data_stack_with_a_wrong_view_is_refused(void)
{
	struct twin_cpu *cpu = twin_testbed_block_create(0);
	const uint64_t block = (uint64_t)cpu - TWIN_STACK_CONTEXT;
	const uint64_t view = view_for(block) + GIB4;
	uint64_t window;

	set_up_testbed_with(view);
	window = twin_testbed_window(testbed);
	CHECK_EQUAL(twin_testbed_add_stack(testbed, cpu, fd, PAGE), TWIN_INVALID);
	CHECK_EQUAL(twin_testbed_instance(testbed)->range_count, 0);
	CHECK(!can_read(window + (uint32_t)block + TWIN_STACK_LOW));
	CHECK(!can_read(window + place(block + view) + TWIN_STACK_LOW));
	twin_testbed_destroy(testbed);
	twin_testbed_block_destroy(cpu);
}

static void a_window_has_no_table(void)
{
	static struct twin_stlb_entry table[TWIN_STLB_ENTRIES] __attribute__((aligned(4096)));
	struct twin_testbed_config wrong = { .scheme = scheme, .vector_free = 1 };

	wrong.stlb = table;
	CHECK(!twin_testbed_create(&wrong));
	CHECK_EQUAL(errno, EINVAL);
	wrong.stlb = NULL;
	wrong.window = 0x5000000001;
	CHECK(!twin_testbed_create(&wrong));
	CHECK_EQUAL(errno, EINVAL);
	wrong.window = shape.mirror + shape.guard - PAGE;
	CHECK(!twin_testbed_create(&wrong));
	CHECK_EQUAL(errno, EINVAL);
	/* This process's own code is there. */
	wrong.window = (uint64_t)table;
	CHECK(!twin_testbed_create(&wrong));
	CHECK_EQUAL(errno, EEXIST);
	/* In the guard before it. */
	wrong.window = (uint64_t)table + shape.mirror + shape.guard;
	CHECK(!twin_testbed_create(&wrong));
	CHECK_EQUAL(errno, EEXIST);
}

static void run(uint32_t with)
{
	scheme = with;
	shape = twin_window_shape_of(with);
	RUN(configurations_are_checked);
	RUN(ranges_are_translated_by_their_place);
	RUN(ranges_that_share_a_place_are_refused);
	RUN(the_first_pages_are_nobodys);
	RUN(ranges_are_checked);
	RUN(an_unmapped_range_is_dom0s_but_empty);
	RUN(a_data_stack_is_three_ranges);
	RUN(a_data_stack_of_two_places_is_refused);
	RUN(pages_are_taken_out_of_ranges);
	RUN(one_range_too_many_loses_its_end);
	RUN(flushing_keeps_ranges);
	RUN(faults_are_reported_as_dom0s);
	RUN(only_regions_are_in_the_window);
	RUN(what_cannot_be_mapped_is_refused);
	RUN(a_data_stack_has_its_blocks_place);
	RUN(a_window_has_no_table);
}

static void run_wide(void)
{
	RUN(ranges_of_one_low_half_have_two_places);
	RUN(faults_in_the_mirror_are_reported_as_dom0s);
	RUN(the_windows_end_is_before_it_too);
	RUN(a_region_may_lie_partly_in_the_mirror);
	RUN(regions_of_one_low_half_are_both_shown);
	RUN(a_data_stack_with_a_wrong_view_is_refused);
}

int main(void)
{
	char name[] = "page 0";
	int i;

	fd = memfd_create("dom0", 0);
	if (fd < 0 || ftruncate(fd, 8 * PAGE))
		perror("memfd");
	for (i = 0; i < 8; i++) {
		name[5] = '0' + i;
		if (pwrite(fd, name, sizeof(name), i * PAGE) != sizeof(name))
			perror("pwrite");
	}
	run(TWIN_SCHEME_WINDOW32);
	run(TWIN_SCHEME_WINDOW);
	run_wide();
	return test_summary();
}
