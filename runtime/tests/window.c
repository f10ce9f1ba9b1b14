// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ranges of an instance with a window, against a platform that only notes what it is
 * asked; then the testbed's window. No driver runs.
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
#define A	0xffff888000100000ull
#define LIMIT	6

static struct twin_range ranges[LIMIT + 1];
static struct twin_instance instance;
static struct twin_range other;
static struct {
	unsigned int calls;
	uint64_t start, length;
} unmapped;

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
		.scheme = TWIN_SCHEME_WINDOW32, .window = WINDOW, .stack_view = VIEW,
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
	CHECK_EQUAL(mapped, there ? WINDOW + (uint32_t)page + 5 : 0);
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
	REFUSED(window = TWIN_WINDOW_GUARD - PAGE);
	REFUSED(window = -GIB4);
	REFUSED(stack_view = VIEW + PAGE);
	REFUSED(ranges = NULL);
	REFUSED(ops = NULL);
	REFUSED(ops = &no_unmap);
	REFUSED(ops = &no_gs);
	REFUSED(scheme = 3);
	REFUSED(scheme = TWIN_SCHEME_STLB);
	REFUSED(vector_free = 0);
#undef REFUSED
	set_up();
}

/* ---- Ranges ----------------------------------------------------------------- */

static void ranges_are_translated_by_their_low_half(void)
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
	has((uint32_t)A, false);
	has(A + GIB4, false);
	CHECK_EQUAL(instance.statistics.refusals, 4);
}

static void ranges_that_share_a_place_are_refused(void)
{
	set_up();
	CHECK_EQUAL(add(A, 4), TWIN_OK);
	CHECK_EQUAL(add(A + GIB4, 1), TWIN_COLLISION);
	CHECK_EQUAL(other.start, A);
	CHECK_EQUAL(other.length, 4 * PAGE);
	CHECK_EQUAL(add(A - PAGE, 6), TWIN_COLLISION);
	CHECK_EQUAL(add(5 * GIB4 + (uint32_t)A + 3 * PAGE, 9), TWIN_COLLISION);
	CHECK_EQUAL(add(5 * GIB4 + (uint32_t)A - 3 * PAGE, 4), TWIN_COLLISION);
	CHECK_EQUAL(add(5 * GIB4 + (uint32_t)A - 3 * PAGE, 3), TWIN_OK);
	CHECK_EQUAL(add(6 * GIB4 + (uint32_t)A + 4 * PAGE, 3), TWIN_OK);
	CHECK_EQUAL(instance.range_count, 3);
}

static void the_first_pages_are_nobodys(void)
{
	set_up();
	CHECK_EQUAL(add(0, 1), TWIN_COLLISION);
	CHECK_EQUAL(other.start, 0);
	CHECK_EQUAL(other.length, TWIN_WINDOW_NULL_GUARD);
	CHECK_EQUAL(add(GIB4 * 9 + TWIN_WINDOW_NULL_GUARD - PAGE, 2), TWIN_COLLISION);
	CHECK_EQUAL(add(GIB4 * 9 - PAGE, 2), TWIN_COLLISION);
	CHECK_EQUAL(add(GIB4 * 9 + TWIN_WINDOW_NULL_GUARD, GIB4 / PAGE), TWIN_COLLISION);
	CHECK_EQUAL(add(GIB4 * 9 + TWIN_WINDOW_NULL_GUARD, GIB4 / PAGE - 16), TWIN_OK);
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
	CHECK_EQUAL(add(A + GIB4 + 4 * PAGE, 2), TWIN_OK);
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
	set_up();
	CHECK_EQUAL(add(A, 2), TWIN_OK);
	CHECK_EQUAL(add(0x77fffff000, 1), TWIN_OK);
#define AT(place)	twin_window_dom0(&instance, WINDOW + (place))
	CHECK_EQUAL(AT((uint32_t)A + 0x1234), A + 0x1234);
	/* Beside a range. */
	CHECK_EQUAL(AT((uint32_t)A + 2 * PAGE + 7), A + 2 * PAGE + 7);
	CHECK_EQUAL(AT((uint32_t)A - 8), A - 8);
	CHECK_EQUAL(AT((uint32_t)A - PAGE), (uint32_t)A - PAGE);
	CHECK_EQUAL(AT((uint32_t)A + 3 * PAGE), (uint32_t)A + 3 * PAGE);
	CHECK_EQUAL(AT(0x42), 0x42);
	CHECK_EQUAL(AT(GIB4), 0x7800000000);
	CHECK_EQUAL(AT(GIB4 + PAGE), GIB4 + PAGE);
	CHECK_EQUAL(AT(-(uint64_t)8), -8);
	CHECK_EQUAL(AT(-(uint64_t)TWIN_WINDOW_GUARD), -(uint64_t)TWIN_WINDOW_GUARD);
	/* Elsewhere. */
	CHECK_EQUAL(AT(-(uint64_t)TWIN_WINDOW_GUARD - 1), WINDOW - TWIN_WINDOW_GUARD - 1);
	CHECK_EQUAL(AT(GIB4 + TWIN_WINDOW_GUARD), WINDOW + GIB4 + TWIN_WINDOW_GUARD);
	CHECK_EQUAL(twin_window_dom0(&instance, 0x18), 0x18);
#undef AT
}

/* ---- The testbed ------------------------------------------------------------------ */

static int fd;
static struct twin_testbed *testbed;

static void set_up_testbed(void)
{
	const struct twin_testbed_config wanted = {
		.scheme = TWIN_SCHEME_WINDOW32, .stack_view = VIEW, .regions = 8, .vector_free = 1,
	};

	testbed = twin_testbed_create(&wanted);
	CHECK(testbed);
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
	CHECK(!memcmp((char *)window + (uint32_t)A, "page 1", 6));
	CHECK(!memcmp((char *)window + (uint32_t)A + PAGE, "page 2", 6));
	CHECK(!can_read(window + (uint32_t)A - 1));
	CHECK(!can_read(window + (uint32_t)A + 2 * PAGE));
	CHECK(!can_read(window) && !can_read(window - 1) && !can_read(window + GIB4));
	CHECK(!can_read(window - TWIN_WINDOW_GUARD));
	CHECK(!can_read(window + GIB4 + TWIN_WINDOW_GUARD - 1));
	CHECK_EQUAL(twin_testbed_remove_region(testbed, A, 0), TWIN_OK);
	CHECK(!can_read(window + (uint32_t)A));
	CHECK_EQUAL(twin_testbed_remove_region(testbed, A, 0), TWIN_INVALID);
	CHECK_EQUAL(add_region(A + GIB4, 1, 3, fd), TWIN_OK);
	CHECK(!memcmp((char *)window + (uint32_t)A, "page 3", 6));
	CHECK_EQUAL(add_region(A, 1, 1, fd), TWIN_COLLISION);
	CHECK_EQUAL(twin_testbed_collision(testbed)->start, A + GIB4);
	CHECK(!memcmp((char *)window + (uint32_t)A, "page 3", 6));
	twin_testbed_destroy(testbed);
}

static void what_cannot_be_mapped_is_refused(void)
{
	set_up_testbed();
	CHECK_EQUAL(add_region(A, 1, 0, 12345), TWIN_INVALID);
	CHECK(!can_read(twin_testbed_window(testbed) + (uint32_t)A));
	CHECK_EQUAL(add_region(A, 1, 0, fd), TWIN_OK);
	twin_testbed_destroy(testbed);
}

static void a_data_stack_has_its_blocks_place(void)
{
	struct twin_cpu *cpu = twin_testbed_block_create(0);
	const uint64_t block = (uint64_t)cpu - TWIN_STACK_CONTEXT;
	uint64_t window, offset;

	set_up_testbed();
	window = twin_testbed_window(testbed);
	CHECK_EQUAL(twin_testbed_add_stack(testbed, cpu, -1, 0), TWIN_INVALID);
	CHECK_EQUAL(twin_testbed_add_stack(testbed, cpu, fd, 1), TWIN_INVALID);
	CHECK_EQUAL(twin_testbed_add_stack(testbed, cpu, fd, PAGE), TWIN_OK);
	for (offset = 0; offset < TWIN_STACK_BLOCK; offset += PAGE)
		CHECK_EQUAL(can_read(window + (uint32_t)block + offset),
			    offset >= TWIN_STACK_LOW && offset < TWIN_STACK_HIGH);
	CHECK(!memcmp((char *)window + (uint32_t)block + TWIN_STACK_LOW, "page 1", 6));
	CHECK_EQUAL(add_region(GIB4 * 7 + (uint32_t)block, 1, 0, fd), TWIN_COLLISION);
	CHECK_EQUAL(twin_testbed_add_stack(testbed, cpu, fd, PAGE), TWIN_COLLISION);
	twin_testbed_destroy(testbed);
	twin_testbed_block_destroy(cpu);
}

static void a_window_has_no_table(void)
{
	static struct twin_stlb_entry table[TWIN_STLB_ENTRIES] __attribute__((aligned(4096)));
	struct twin_testbed_config wrong = { .scheme = TWIN_SCHEME_WINDOW32, .vector_free = 1 };

	wrong.stlb = table;
	CHECK(!twin_testbed_create(&wrong));
	CHECK_EQUAL(errno, EINVAL);
	wrong.stlb = NULL;
	wrong.window = 0x5000000001;
	CHECK(!twin_testbed_create(&wrong));
	CHECK_EQUAL(errno, EINVAL);
	/* This process's own code is there. */
	wrong.window = (uint64_t)table;
	CHECK(!twin_testbed_create(&wrong));
	CHECK_EQUAL(errno, EEXIST);
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
	RUN(configurations_are_checked);
	RUN(ranges_are_translated_by_their_low_half);
	RUN(ranges_that_share_a_place_are_refused);
	RUN(the_first_pages_are_nobodys);
	RUN(ranges_are_checked);
	RUN(an_unmapped_range_is_dom0s_but_empty);
	RUN(pages_are_taken_out_of_ranges);
	RUN(one_range_too_many_loses_its_end);
	RUN(flushing_keeps_ranges);
	RUN(faults_are_reported_as_dom0s);
	RUN(only_regions_are_in_the_window);
	RUN(what_cannot_be_mapped_is_refused);
	RUN(a_data_stack_has_its_blocks_place);
	RUN(a_window_has_no_table);
	return test_summary();
}
