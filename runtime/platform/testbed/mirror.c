// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The window of an instance (docs/spec/window.md): dom0's regions at their places.
 *
 *   window - mirror - guard   reserved, never mapped
 *   window - mirror           the window's last bytes once more (scheme window)
 *   window + place            the pages of a region's file, or of a data stack's
 *   elsewhere                 reserved, not mapped
 *   window + size             reserved, never mapped, guard bytes
 *
 * A region is mapped as a whole when it becomes known; Linux finds its pages at their
 * first access. Readable and, if the region is, writable; never executed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "platform.h"

#define STACK_BYTES (TWIN_STACK_HIGH - TWIN_STACK_LOW)

/* Reserved bytes before the window, and all of them. */
static uint64_t bytes_before(const struct twin_testbed *testbed)
{
	return testbed->shape.mirror + testbed->shape.guard;
}

static uint64_t reserved_bytes(const struct twin_testbed *testbed)
{
	return bytes_before(testbed) + testbed->shape.size + testbed->shape.guard;
}

/* Pages that are mapped one after the other. */
struct piece {
	uint64_t at;
	uint64_t length;
	uint64_t offset;	/* from the first page's start */
};

/* dom0's pages at their places. They do not leave the window. */
static struct piece shown(const struct twin_testbed *testbed, uint64_t dom0, uint64_t length)
{
	const uint64_t place = dom0 & (testbed->shape.size - 1);

	return (struct piece){ testbed->window + place, length, 0 };
}

/* Those of the pages that the mirror shows as well; length 0: none. */
static struct piece mirrored(const struct twin_testbed *testbed, uint64_t dom0, uint64_t length)
{
	const uint64_t place = dom0 & (testbed->shape.size - 1);
	const uint64_t first = testbed->shape.size - testbed->shape.mirror;
	const uint64_t before = place < first ? first - place : 0;

	if (before >= length)
		return (struct piece){ 0, 0, 0 };
	return (struct piece){ testbed->window + place + before - testbed->shape.size,
			       length - before, before };
}

/* Address space with no access: at exactly `wanted`, or anywhere if that is 0. */
bool twin_testbed_reserve_window(struct twin_testbed *testbed, uint64_t wanted)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	const uint64_t before = bytes_before(testbed), bytes = reserved_bytes(testbed);
	void *from = (void *)(wanted ? wanted - before : 0);
	void *at;

	if (wanted & (PAGE - 1) || (wanted && wanted < before)) {
		errno = EINVAL;
		return false;
	}
	at = mmap(from, bytes, PROT_NONE, flags | (wanted ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	if (at == MAP_FAILED)
		return false;
	if (wanted && at != from) {	/* a kernel older than the flag */
		munmap(at, bytes);
		errno = EEXIST;
		return false;
	}
	testbed->window = (uint64_t)at + before;
	return true;
}

void twin_testbed_free_window(struct twin_testbed *testbed)
{
	if (testbed->window)
		munmap((void *)(testbed->window - bytes_before(testbed)),
		       reserved_bytes(testbed));
}

/* Pages that cannot be unmapped would stay visible: end the process. */
static void unmap_piece(struct piece piece)
{
	if (piece.length && !twin_testbed_punch_hole(piece.at, piece.length))
		__builtin_trap();
}

void twin_testbed_unmap_range(struct twin_instance *instance, uint64_t start, uint64_t length)
{
	unmap_piece(shown(instance->platform, start, length));
	unmap_piece(mirrored(instance->platform, start, length));
}

static bool map_piece(const struct twin_testbed_region *region, struct piece piece)
{
	const uint64_t protection = PROT_READ | (region->writable ? PROT_WRITE : 0);

	return !piece.length ||
	       twin_testbed_map_pages(piece.at, piece.length, protection, MAP_SHARED | MAP_FIXED,
				      region->fd, region->file_offset + piece.offset) == piece.at;
}

/* False: some of it may be mapped. */
static bool map_file(const struct twin_testbed *testbed, const struct twin_testbed_region *region)
{
	const uint64_t start = region->dom0_start, length = region->length;

	return region->fd < 0 || (map_piece(region, shown(testbed, start, length)) &&
				  map_piece(region, mirrored(testbed, start, length)));
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
