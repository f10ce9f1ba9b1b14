// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The testbed platform's parts, without running a driver: windows, regions, stack
 * blocks, stubs. Position independent, as a host is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "platform.h"
#include "test.h"

#define DOM0 0xffff888000000000ull
#define FILE_PAGES 8

static int memory_fd;
static struct twin_testbed *testbed;

static void set_up(uint32_t windows)
{
	const struct twin_testbed_config config = {
		.scheme = TWIN_SCHEME_STLB, .windows = windows, .regions = 3,
	};

	testbed = twin_testbed_create(&config);
	CHECK(testbed);
}

static int add(uint64_t page, uint64_t pages, uint64_t file_page, bool writable)
{
	const struct twin_testbed_region region = {
		.dom0_start = DOM0 + page * PAGE, .length = pages * PAGE,
		.file_offset = file_page * PAGE, .fd = memory_fd, .writable = writable,
	};

	return twin_testbed_add_region(testbed, &region);
}

static int translate(uint64_t va, uint64_t *mapped)
{
	int refusal;

	twin_instance_hold(twin_testbed_instance(testbed));
	refusal = twin_translate(twin_testbed_instance(testbed), va, mapped);
	twin_instance_release(twin_testbed_instance(testbed));
	return refusal;
}

/* Whether a byte can be read, and be written, there, by system calls. */
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

static bool can_write(uint64_t address)
{
	int pipes[2];
	char byte;
	bool can;

	if (pipe(pipes))
		return false;
	byte = can_read(address) ? *(volatile char *)address : 0;
	can = write(pipes[1], &byte, 1) == 1 && read(pipes[0], (void *)address, 1) == 1;
	close(pipes[0]);
	close(pipes[1]);
	return can;
}

static void a_window_is_its_page_the_neighbours_and_a_hole(void)
{
	uint64_t first, second;

	set_up(4);
	CHECK_EQUAL(add(0, 3, 1, true), TWIN_OK);
	CHECK_EQUAL(translate(DOM0 + 0x123, &first), TWIN_MAPPED);
	CHECK(!memcmp((char *)first - 0x123, "page 1", 7));
	CHECK(!memcmp((char *)first - 0x123 + PAGE, "page 2", 7));
	CHECK(can_write(first));
	CHECK(!can_read(first - 0x124));
	CHECK(can_read(first - 0x123 + 2 * PAGE - 1));
	CHECK(!can_read(first - 0x123 + 2 * PAGE));
	CHECK_EQUAL(translate(DOM0 + PAGE, &second), TWIN_MAPPED);
	CHECK_EQUAL(second, first - 0x123 + SLOT_BYTES);
	CHECK(!memcmp((char *)second - PAGE, "page 1", 7));
	CHECK(!memcmp((char *)second, "page 2", 7));
	CHECK(!memcmp((char *)second + PAGE, "page 3", 7));
	CHECK(can_write(second - PAGE));
	CHECK(!can_read(second - PAGE - 1));
	CHECK(!can_read(second + 2 * PAGE));
	CHECK_EQUAL(twin_testbed_dom0_address(testbed, second + PAGE + 5), DOM0 + 2 * PAGE + 5);
	CHECK_EQUAL(twin_testbed_dom0_address(testbed, second - 5), DOM0 + PAGE - 5);
	CHECK_EQUAL(twin_testbed_dom0_address(testbed, (uint64_t)&first), (uint64_t)&first);
	twin_testbed_destroy(testbed);
}

static void a_neighbour_that_is_not_dom0s_is_a_hole(void)
{
	uint64_t mapped;

	set_up(4);
	CHECK_EQUAL(add(0, 1, 1, true), TWIN_OK);
	CHECK_EQUAL(translate(DOM0, &mapped), TWIN_MAPPED);
	CHECK(can_read(mapped + PAGE - 1));
	CHECK(!can_read(mapped + PAGE));
	CHECK(!can_read(mapped - 1));
	CHECK_EQUAL(twin_testbed_dom0_address(testbed, mapped - 1), DOM0 - 1);
	twin_testbed_destroy(testbed);
}

static void protection_is_each_pages_own(void)
{
	uint64_t mapped;

	set_up(4);
	CHECK_EQUAL(add(0, 1, 1, false), TWIN_OK);
	CHECK_EQUAL(add(1, 1, 5, true), TWIN_OK);
	CHECK_EQUAL(translate(DOM0, &mapped), TWIN_MAPPED);
	CHECK(can_read(mapped) && !can_write(mapped));
	CHECK(can_write(mapped + PAGE));
	CHECK(!memcmp((char *)mapped + PAGE, "page 5", 7));
	twin_testbed_destroy(testbed);
}

static void the_last_page_of_all_has_no_next(void)
{
	struct twin_testbed_region region = {
		.dom0_start = -PAGE, .length = PAGE, .fd = memory_fd, .writable = 1,
	};
	struct twin_testbed_region zero = { .dom0_start = 0, .length = PAGE, .fd = memory_fd };
	uint64_t mapped;

	set_up(4);
	CHECK_EQUAL(twin_testbed_add_region(testbed, &region), TWIN_OK);
	CHECK_EQUAL(twin_testbed_add_region(testbed, &zero), TWIN_OK);
	CHECK_EQUAL(translate(UINT64_MAX, &mapped), TWIN_MAPPED);
	CHECK(can_read(mapped));
	CHECK(!can_read(mapped + 1));
	twin_testbed_destroy(testbed);
}

static void regions_are_checked(void)
{
	struct twin_testbed_region odd = { .dom0_start = DOM0 + 1, .length = PAGE, .fd = memory_fd };
	struct twin_testbed_region wrapping = { .dom0_start = -PAGE, .length = 2 * PAGE };

	set_up(4);
	CHECK_EQUAL(twin_testbed_add_region(testbed, &odd), TWIN_INVALID);
	CHECK_EQUAL(twin_testbed_add_region(testbed, &wrapping), TWIN_INVALID);
	CHECK_EQUAL(add(0, 0, 0, true), TWIN_INVALID);
	CHECK_EQUAL(add(10, 3, 0, true), TWIN_OK);
	CHECK_EQUAL(add(12, 1, 0, true), TWIN_INVALID);
	CHECK_EQUAL(add(9, 2, 0, true), TWIN_INVALID);
	CHECK_EQUAL(add(9, 9, 0, true), TWIN_INVALID);
	CHECK_EQUAL(add(9, 1, 0, true), TWIN_OK);
	CHECK_EQUAL(add(13, 1, 0, true), TWIN_OK);
	CHECK_EQUAL(add(20, 1, 0, true), TWIN_INVALID);		/* one too many */
	twin_testbed_destroy(testbed);
}

static void slots_are_used_again(void)
{
	uint64_t mapped, i;

	set_up(2);
	CHECK_EQUAL(add(0, 6, 0, true), TWIN_OK);
	for (i = 0; i < 6; i++) {
		CHECK_EQUAL(translate(DOM0 + i % 3 * PAGE, &mapped), TWIN_MAPPED);
		CHECK_EQUAL(*((char *)mapped + 5), '0' + i % 3);
		CHECK_EQUAL(twin_unmap(twin_testbed_instance(testbed), DOM0, 6, 0), TWIN_OK);
		CHECK(!can_read(mapped));
	}
	CHECK_EQUAL(translate(DOM0, &mapped), TWIN_MAPPED);
	CHECK_EQUAL(translate(DOM0 + PAGE, &mapped), TWIN_MAPPED);
	CHECK_EQUAL(translate(DOM0 + 2 * PAGE, &mapped), TWIN_REFUSED_NO_NODE);
	twin_testbed_destroy(testbed);
}

static void removing_a_region_waits_for_cpus(void)
{
	uint64_t mapped;

	set_up(4);
	CHECK_EQUAL(add(0, 2, 0, true), TWIN_OK);
	twin_instance_hold(twin_testbed_instance(testbed));
	CHECK_EQUAL(twin_testbed_remove_region(testbed, DOM0, 10), TWIN_BUSY);
	CHECK_EQUAL(twin_translate(twin_testbed_instance(testbed), DOM0, &mapped), TWIN_MAPPED);
	twin_instance_release(twin_testbed_instance(testbed));
	CHECK_EQUAL(twin_testbed_remove_region(testbed, DOM0, 10), TWIN_OK);
	CHECK_EQUAL(translate(DOM0, &mapped), TWIN_REFUSED_NOT_DOM0);
	CHECK_EQUAL(twin_testbed_remove_region(testbed, DOM0, 10), TWIN_INVALID);
	twin_testbed_destroy(testbed);
}

static void the_table_is_below_2_gib(void)
{
	struct twin_testbed_config config = { .scheme = TWIN_SCHEME_STLB };
	static struct twin_stlb_entry far[TWIN_STLB_ENTRIES] __attribute__((aligned(4096)));

	set_up(1);
	CHECK((uint64_t)(twin_testbed_stlb(testbed) + TWIN_STLB_ENTRIES) <= 1ull << 31);
	twin_testbed_destroy(testbed);
	config.stlb = far;
	errno = 0;
	CHECK(!twin_testbed_create(&config));
	CHECK_EQUAL(errno, EINVAL);
	config.stlb = NULL;
	config.scheme = 7;
	CHECK(!twin_testbed_create(&config));
	CHECK_EQUAL(errno, EINVAL);
}

static void blocks_are_laid_out_as_agreed(void)
{
	struct twin_cpu *cpu = twin_testbed_block_create(0);
	uint64_t block = (uint64_t)cpu - TWIN_STACK_CONTEXT, offset;

	CHECK(cpu);
	CHECK_EQUAL(block & (TWIN_STACK_BLOCK - 1), 0);
	for (offset = 0; offset < TWIN_STACK_BLOCK; offset += PAGE)
		CHECK_EQUAL(can_write(block + offset),
			    (offset >= TWIN_STACK_LOW && offset < TWIN_STACK_HIGH) ||
			    (offset >= TWIN_STACK_LOW - TWIN_STACK_SHADOW &&
			     offset < TWIN_STACK_HIGH - TWIN_STACK_SHADOW) ||
			    offset == TWIN_STACK_CONTEXT);
	CHECK(twin_testbed_cpu_at(block) == cpu);
	CHECK(twin_testbed_cpu_at(block + 0x3456) == cpu);
	CHECK(!twin_testbed_cpu_at(block - 1));
	CHECK(!twin_testbed_cpu_at(block + TWIN_STACK_BLOCK));
	CHECK(!twin_testbed_cpu_at(0));
	twin_testbed_block_destroy(cpu);
	CHECK(!twin_testbed_cpu_at(block));
}

static void blocks_go_where_they_are_wanted(void)
{
	struct twin_cpu *cpu = twin_testbed_block_create(0x50000000);

	CHECK_EQUAL((uint64_t)cpu, 0x50000000 + TWIN_STACK_CONTEXT);
	CHECK(!twin_testbed_block_create(0x50000000));
	CHECK(!twin_testbed_block_create(0x50001000));
	twin_testbed_block_destroy(cpu);
	cpu = twin_testbed_block_create(0x50000000);
	CHECK(cpu);
	twin_testbed_block_destroy(cpu);
}

static void blocks_are_limited(void)
{
	static struct twin_cpu *cpus[TWIN_TESTBED_BLOCKS];
	unsigned int i;

	for (i = 0; i < TWIN_TESTBED_BLOCKS; i++) {
		cpus[i] = twin_testbed_block_create(0);
		CHECK(cpus[i]);
	}
	CHECK(!twin_testbed_block_create(0));
	CHECK_EQUAL(errno, ENOSPC);
	for (i = 0; i < TWIN_TESTBED_BLOCKS; i++)
		twin_testbed_block_destroy(cpus[i]);
}

static void stubs_are_written_as_documented(void)
{
	uint8_t stub[TWIN_TESTBED_STUB + 1] = { [TWIN_TESTBED_STUB] = 0x77 };
	uint64_t target;

	twin_testbed_write_import(stub, 0x11223344);
	CHECK(!memcmp(stub, "\x41\xbb\x44\x33\x22\x11\xff\x25\x0c\0\0\0\xcc", 13));
	memcpy(&target, stub + 24, 8);
	CHECK_EQUAL(target, (uint64_t)twin_import_entry);
	twin_testbed_write_jump(stub, 0x1122334455667788);
	CHECK(!memcmp(stub, "\xff\x25\x12\0\0\0\xcc", 7));
	memcpy(&target, stub + 24, 8);
	CHECK_EQUAL(target, 0x1122334455667788);
	CHECK_EQUAL(stub[TWIN_TESTBED_STUB], 0x77);
}

static bool has_signal_stack(void)
{
	stack_t stack;

	sigaltstack(NULL, &stack);
	return !(stack.ss_flags & SS_DISABLE);
}

static void *signal_stack_thread(void *unused)
{
	bool before;

	(void)unused;
	before = has_signal_stack();	/* a sanitizer may have given one */
	CHECK_EQUAL(twin_testbed_thread_start(), 0);
	CHECK_EQUAL(twin_testbed_thread_start(), 0);
	CHECK(has_signal_stack());
	twin_testbed_thread_stop();
	twin_testbed_thread_stop();
	CHECK_EQUAL(has_signal_stack(), before);
	return NULL;
}

static void signal_stacks_come_and_go(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, signal_stack_thread, NULL);
	pthread_join(thread, NULL);
}

int main(void)
{
	char name[] = "page 0";
	int i;

	memory_fd = memfd_create("dom0", 0);
	if (memory_fd < 0 || ftruncate(memory_fd, FILE_PAGES * PAGE))
		perror("memfd");
	for (i = 0; i < FILE_PAGES; i++) {
		name[5] = '0' + i;
		if (pwrite(memory_fd, name, sizeof(name), i * PAGE) != sizeof(name))
			perror("pwrite");
	}
	RUN(a_window_is_its_page_the_neighbours_and_a_hole);
	RUN(a_neighbour_that_is_not_dom0s_is_a_hole);
	RUN(protection_is_each_pages_own);
	RUN(the_last_page_of_all_has_no_next);
	RUN(regions_are_checked);
	RUN(slots_are_used_again);
	RUN(removing_a_region_waits_for_cpus);
	RUN(the_table_is_below_2_gib);
	RUN(blocks_are_laid_out_as_agreed);
	RUN(blocks_go_where_they_are_wanted);
	RUN(blocks_are_limited);
	RUN(stubs_are_written_as_documented);
	RUN(signal_stacks_come_and_go);
	return test_summary();
}
