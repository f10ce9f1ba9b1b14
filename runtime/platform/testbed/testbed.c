// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Making and freeing driver instances in a process; dom0's regions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "platform.h"

#define DEFAULT_WINDOWS 8192
#define DEFAULT_REGIONS 1024
#define STLB_BYTES (TWIN_STLB_ENTRIES * sizeof(struct twin_stlb_entry))
/* <asm/hwcap2.h>, which older headers lack: users may use RDGSBASE and its like. */
#define FSGSBASE 2

/* The reserved address space: a guard page, then the slots. */
static uint64_t reserved_bytes(const struct twin_testbed *testbed)
{
	return PAGE + testbed->slot_limit * SLOT_BYTES;
}

static bool reserve_slots(struct twin_testbed *testbed)
{
	void *start = mmap(NULL, reserved_bytes(testbed), PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint32_t i;

	if (start == MAP_FAILED)
		return false;
	testbed->slots = (uint64_t)start + PAGE;
	for (i = 0; i < testbed->slot_limit; i++)	/* the lowest slot on top */
		testbed->free_slots[i] = testbed->slot_limit - 1 - i;
	testbed->free_count = testbed->slot_limit;
	return true;
}

/* Emitted code reaches the table by a sign-extended 32-bit displacement. */
static bool find_stlb(struct twin_testbed *testbed, struct twin_stlb_entry *given)
{
	testbed->stlb = given;
	if (given)
		return true;
	testbed->own_stlb = mmap(NULL, STLB_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (testbed->own_stlb == MAP_FAILED) {
		testbed->own_stlb = NULL;
		return false;
	}
	testbed->stlb = testbed->own_stlb;
	return true;
}

static bool make_regions(struct twin_testbed *testbed, const struct twin_testbed_config *config)
{
	testbed->region_limit = config->regions ? config->regions : DEFAULT_REGIONS;
	testbed->regions = calloc(testbed->region_limit, sizeof(*testbed->regions));
	return testbed->regions;
}

/* Table, slots and nodes. */
static bool make_table(struct twin_testbed *testbed, const struct twin_testbed_config *config)
{
	testbed->slot_limit = config->windows ? config->windows : DEFAULT_WINDOWS;
	testbed->free_slots = calloc(testbed->slot_limit, sizeof(*testbed->free_slots));
	testbed->slot_pages = calloc(testbed->slot_limit, sizeof(*testbed->slot_pages));
	testbed->nodes = calloc(testbed->slot_limit, sizeof(*testbed->nodes));
	return testbed->free_slots && testbed->slot_pages && testbed->nodes &&
	       reserve_slots(testbed) && find_stlb(testbed, config->stlb);
}

bool twin_testbed_gs_permitted(void)
{
	return getauxval(AT_HWCAP2) & FSGSBASE;
}

/* A range for each region, and three for each stack block. */
static bool make_window(struct twin_testbed *testbed, const struct twin_testbed_config *config)
{
	twin_testbed_gs_start(twin_testbed_gs_permitted());
	testbed->range_limit = testbed->region_limit + 3 * TWIN_TESTBED_BLOCKS;
	testbed->ranges = calloc(testbed->range_limit, sizeof(*testbed->ranges));
	return testbed->ranges && twin_testbed_reserve_window(testbed, config->window);
}

static bool make_memory(struct twin_testbed *testbed, const struct twin_testbed_config *config)
{
	if (testbed->shape.size)
		return make_window(testbed, config);
	return make_table(testbed, config);
}

static bool init_instance(struct twin_testbed *testbed, const struct twin_testbed_config *config)
{
	const struct twin_instance_config instance = {
		.scheme = config->scheme,
		.stlb = testbed->stlb,
		.nodes = testbed->nodes,
		.node_count = testbed->slot_limit,
		.window = testbed->window,
		.stack_view = config->stack_view,
		.ranges = testbed->ranges,
		.range_limit = testbed->range_limit,
		.ports = config->ports,
		.port_count = config->port_count,
		.vector_free = config->vector_free,
		.gs_is_set = config->gs_is_set,
		.ops = &testbed->ops,
		.platform = testbed,
	};

	testbed->host = config->host;
	if (testbed->window) {
		testbed->ops.unmap_range = twin_testbed_unmap_range;
		testbed->ops.set_gs_base = config->gs_is_set ? NULL : twin_testbed_set_gs_base;
	} else {
		testbed->ops.map_window = twin_testbed_map_window;
		testbed->ops.unmap_window = twin_testbed_unmap_window;
	}
	twin_testbed_set_callbacks(&testbed->ops, &testbed->host);
	if (twin_instance_init(&testbed->instance, &instance) == TWIN_OK)
		return true;
	errno = EINVAL;
	return false;
}

static bool is_reachable(const struct twin_stlb_entry *stlb)
{
	return (uint64_t)stlb + STLB_BYTES <= 1ull << 31;
}

struct twin_testbed *twin_testbed_create(const struct twin_testbed_config *config)
{
	const struct twin_window_shape shape = twin_window_shape_of(config->scheme);
	struct twin_testbed *testbed;

	if (config->stlb && (shape.size || !is_reachable(config->stlb))) {
		errno = EINVAL;
		return NULL;
	}
	if (twin_testbed_vectors_start(VECTORS_XSAVEC) == VECTORS_UNKNOWN) {
		errno = ENOTSUP;
		return NULL;
	}
	testbed = calloc(1, sizeof(*testbed));
	if (!testbed)
		return NULL;
	testbed->shape = shape;
	if (make_regions(testbed, config) && make_memory(testbed, config) &&
	    init_instance(testbed, config))
		return testbed;
	twin_testbed_destroy(testbed);
	return NULL;
}

void twin_testbed_destroy(struct twin_testbed *testbed)
{
	int error = errno;

	if (testbed->slots)
		munmap((void *)(testbed->slots - PAGE), reserved_bytes(testbed));
	if (testbed->own_stlb)
		munmap(testbed->own_stlb, STLB_BYTES);
	twin_testbed_free_window(testbed);
	free(testbed->ranges);
	free(testbed->nodes);
	free(testbed->slot_pages);
	free(testbed->free_slots);
	free(testbed->regions);
	free(testbed);
	errno = error;
}

struct twin_instance *twin_testbed_instance(struct twin_testbed *testbed)
{
	return &testbed->instance;
}

struct twin_stlb_entry *twin_testbed_stlb(struct twin_testbed *testbed)
{
	return testbed->stlb;
}

uint64_t twin_testbed_window(const struct twin_testbed *testbed)
{
	return testbed->window;
}

/* ---- Regions ----------------------------------------------------------- */

static bool is_region_valid(const struct twin_testbed_region *region)
{
	uint64_t bits = region->dom0_start | region->length | region->file_offset;
	uint64_t last = region->dom0_start + region->length - 1;

	return region->length && !(bits & (PAGE - 1)) && last > region->dom0_start;
}

static bool overlap(const struct twin_testbed_region *a, const struct twin_testbed_region *b)
{
	return a->dom0_start - b->dom0_start < b->length ||
	       b->dom0_start - a->dom0_start < a->length;
}

/* Lock held. */
static bool fits(const struct twin_testbed *testbed, const struct twin_testbed_region *region)
{
	uint32_t i;

	for (i = 0; i < testbed->region_count; i++)
		if (overlap(&testbed->regions[i], region))
			return false;
	return testbed->region_count < testbed->region_limit;
}

int twin_testbed_add_region(struct twin_testbed *testbed, const struct twin_testbed_region *region)
{
	int status = TWIN_INVALID;

	if (!is_region_valid(region))
		return TWIN_INVALID;
	twin_testbed_lock(testbed);
	if (fits(testbed, region))
		status = testbed->window ? twin_testbed_mirror(testbed, region) : TWIN_OK;
	if (status == TWIN_OK)
		testbed->regions[testbed->region_count++] = *region;
	twin_testbed_unlock(testbed);
	return status;
}

/* Take the region out of the list; its length, or 0 if there is none. */
static uint64_t take_region(struct twin_testbed *testbed, uint64_t dom0_start)
{
	uint64_t length = 0;
	uint32_t i;

	twin_testbed_lock(testbed);
	for (i = 0; i < testbed->region_count; i++) {
		if (testbed->regions[i].dom0_start != dom0_start)
			continue;
		length = testbed->regions[i].length;
		testbed->regions[i] = testbed->regions[--testbed->region_count];
		break;
	}
	twin_testbed_unlock(testbed);
	return length;
}

int twin_testbed_remove_region(struct twin_testbed *testbed, uint64_t dom0_start, uint64_t patience)
{
	int status = twin_instance_quiesce(&testbed->instance, patience);
	uint64_t length;

	if (status)
		return status;
	length = take_region(testbed, dom0_start);
	twin_instance_drop(&testbed->instance, dom0_start, length / PAGE);
	twin_instance_resume(&testbed->instance);
	return length ? TWIN_OK : TWIN_INVALID;
}
