// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The window of an instance (docs/spec/window.md): dom0's regions at their places.
 *
 *   window - GUARD       reserved, never mapped
 *   window + place       the pages of a region's file, or of a data stack's
 *   elsewhere            reserved, not mapped
 *   window + SIZE        reserved, never mapped, GUARD bytes
 *
 * A region is mapped as a whole when it becomes known; Linux finds its pages at their
 * first access. Readable and, if the region is, writable; never executed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include <twin/window.h>

#include "platform.h"

#define RESERVED (TWIN_WINDOW_SIZE + 2 * (uint64_t)TWIN_WINDOW_GUARD)
#define STACK_BYTES (TWIN_STACK_HIGH - TWIN_STACK_LOW)

static uint64_t place_of(const struct twin_testbed *testbed, uint64_t dom0)
{
	return testbed->window + (uint32_t)dom0;
}

/* Address space with no access: at exactly `wanted`, or anywhere if that is 0. */
bool twin_testbed_reserve_window(struct twin_testbed *testbed, uint64_t wanted)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *from = (void *)(wanted ? wanted - TWIN_WINDOW_GUARD : 0);
	void *at;

	if (wanted & (PAGE - 1) || (wanted && wanted < TWIN_WINDOW_GUARD)) {
		errno = EINVAL;
		return false;
	}
	at = mmap(from, RESERVED, PROT_NONE, flags | (wanted ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	if (at == MAP_FAILED)
		return false;
	if (wanted && at != from) {	/* a kernel older than the flag */
		munmap(at, RESERVED);
		errno = EEXIST;
		return false;
	}
	testbed->window = (uint64_t)at + TWIN_WINDOW_GUARD;
	return true;
}

void twin_testbed_free_window(struct twin_testbed *testbed)
{
	if (testbed->window)
		munmap((void *)(testbed->window - TWIN_WINDOW_GUARD), RESERVED);
}

void twin_testbed_unmap_range(struct twin_instance *instance, uint64_t start, uint64_t length)
{
	/* A range whose pages cannot be unmapped would stay visible: end the process. */
	if (!twin_testbed_punch_hole(place_of(instance->platform, start), length))
		__builtin_trap();
}

static bool map_file(const struct twin_testbed *testbed, const struct twin_testbed_region *region)
{
	const uint64_t at = place_of(testbed, region->dom0_start);
	const uint64_t protection = PROT_READ | (region->writable ? PROT_WRITE : 0);

	return region->fd < 0 ||
	       twin_testbed_map_pages(at, region->length, protection, MAP_SHARED | MAP_FIXED,
				      region->fd, region->file_offset) == at;
}

/* Lock held, so nothing else is added between the question and the answer. */
int twin_testbed_mirror(struct twin_testbed *testbed, const struct twin_testbed_region *region)
{
	const struct twin_range range = {
		.start = region->dom0_start, .length = region->length,
		.unmapped = region->fd < 0,
	};
	int status = twin_window_admits(&testbed->instance, &range, &testbed->collision);

	if (status)
		return status;
	if (!map_file(testbed, region)) {
		twin_testbed_unmap_range(&testbed->instance, range.start, range.length);
		return TWIN_INVALID;
	}
	return twin_window_add(&testbed->instance, &range, &testbed->collision);
}

const struct twin_range *twin_testbed_collision(const struct twin_testbed *testbed)
{
	return &testbed->collision;
}

/* Lock held. */
static int add_stack(struct twin_testbed *testbed, struct twin_cpu *cpu, int32_t fd,
		     uint64_t file_offset)
{
	const uint64_t view = (uint64_t)cpu - TWIN_STACK_CONTEXT + testbed->instance.stack_view;
	const struct twin_range block = { view, TWIN_STACK_BLOCK, 1 };
	const struct twin_testbed_region stack = {
		.dom0_start = view + TWIN_STACK_LOW, .length = STACK_BYTES,
		.file_offset = file_offset, .fd = fd, .writable = 1,
	};
	int status = twin_window_admits(&testbed->instance, &block, &testbed->collision);

	if (status)
		return status;
	if (!map_file(testbed, &stack)) {
		twin_testbed_unmap_range(&testbed->instance, stack.dom0_start, stack.length);
		return TWIN_INVALID;
	}
	status = twin_window_add_stack(&testbed->instance, cpu, &testbed->collision);
	if (status)
		twin_testbed_unmap_range(&testbed->instance, stack.dom0_start, stack.length);
	return status;
}

int twin_testbed_add_stack(struct twin_testbed *testbed, struct twin_cpu *cpu, int32_t fd,
			   uint64_t file_offset)
{
	int status;

	if (!testbed->window || fd < 0 || file_offset & (PAGE - 1))
		return TWIN_INVALID;
	twin_testbed_lock(testbed);
	status = add_stack(testbed, cpu, fd, file_offset);
	twin_testbed_unlock(testbed);
	return status;
}
