// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Making and freeing driver instances in a process; dom0's regions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "platform.h"

#define DEFAULT_WINDOWS 8192
#define DEFAULT_REGIONS 1024
#define STLB_BYTES (TWIN_STLB_ENTRIES * sizeof(struct twin_stlb_entry))

/* The reserved address space: a guard page, then the slots. */
static uint64_t reserved_bytes(const struct twin_user *user)
{
	return PAGE + user->slot_limit * SLOT_BYTES;
}

static bool reserve_slots(struct twin_user *user)
{
	void *start = mmap(NULL, reserved_bytes(user), PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint32_t i;

	if (start == MAP_FAILED)
		return false;
	user->slots = (uint64_t)start + PAGE;
	for (i = 0; i < user->slot_limit; i++)	/* the lowest slot on top */
		user->free_slots[i] = user->slot_limit - 1 - i;
	user->free_count = user->slot_limit;
	return true;
}

/* Emitted code reaches the table by a sign-extended 32-bit displacement. */
static bool find_stlb(struct twin_user *user, struct twin_stlb_entry *given)
{
	user->stlb = given;
	if (given)
		return true;
	user->own_stlb = mmap(NULL, STLB_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (user->own_stlb == MAP_FAILED) {
		user->own_stlb = NULL;
		return false;
	}
	user->stlb = user->own_stlb;
	return true;
}

static bool allocate(struct twin_user *user, const struct twin_user_config *config)
{
	user->slot_limit = config->windows ? config->windows : DEFAULT_WINDOWS;
	user->region_limit = config->regions ? config->regions : DEFAULT_REGIONS;
	user->regions = calloc(user->region_limit, sizeof(*user->regions));
	user->free_slots = calloc(user->slot_limit, sizeof(*user->free_slots));
	user->slot_pages = calloc(user->slot_limit, sizeof(*user->slot_pages));
	user->nodes = calloc(user->slot_limit, sizeof(*user->nodes));
	return user->regions && user->free_slots && user->slot_pages && user->nodes;
}

static bool init_instance(struct twin_user *user, const struct twin_user_config *config)
{
	const struct twin_instance_config instance = {
		.scheme = config->scheme,
		.stlb = user->stlb,
		.nodes = user->nodes,
		.node_count = user->slot_limit,
		.ports = config->ports,
		.port_count = config->port_count,
		.vector_free = config->vector_free,
		.ops = &user->ops,
		.platform = user,
	};

	user->host = config->host;
	user->ops.map_window = twin_user_map_window;
	user->ops.unmap_window = twin_user_unmap_window;
	twin_user_set_callbacks(&user->ops, &user->host);
	if (twin_instance_init(&user->instance, &instance) == TWIN_OK)
		return true;
	errno = EINVAL;
	return false;
}

static bool is_reachable(const struct twin_stlb_entry *stlb)
{
	return (uint64_t)stlb + STLB_BYTES <= 1ull << 31;
}

struct twin_user *twin_user_create(const struct twin_user_config *config)
{
	struct twin_user *user;

	if (config->stlb && !is_reachable(config->stlb)) {
		errno = EINVAL;
		return NULL;
	}
	if (twin_user_vectors_start(VECTORS_XSAVEC) == VECTORS_UNKNOWN) {
		errno = ENOTSUP;
		return NULL;
	}
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	if (allocate(user, config) && reserve_slots(user) && find_stlb(user, config->stlb) &&
	    init_instance(user, config))
		return user;
	twin_user_destroy(user);
	return NULL;
}

void twin_user_destroy(struct twin_user *user)
{
	int error = errno;

	if (user->slots)
		munmap((void *)(user->slots - PAGE), reserved_bytes(user));
	if (user->own_stlb)
		munmap(user->own_stlb, STLB_BYTES);
	free(user->nodes);
	free(user->slot_pages);
	free(user->free_slots);
	free(user->regions);
	free(user);
	errno = error;
}

struct twin_instance *twin_user_instance(struct twin_user *user)
{
	return &user->instance;
}

struct twin_stlb_entry *twin_user_stlb(struct twin_user *user)
{
	return user->stlb;
}

/* ---- Regions ----------------------------------------------------------- */

static bool is_region_valid(const struct twin_user_region *region)
{
	uint64_t bits = region->dom0_start | region->length | region->file_offset;
	uint64_t last = region->dom0_start + region->length - 1;

	return region->length && !(bits & (PAGE - 1)) && last > region->dom0_start;
}

static bool overlap(const struct twin_user_region *a, const struct twin_user_region *b)
{
	return a->dom0_start - b->dom0_start < b->length ||
	       b->dom0_start - a->dom0_start < a->length;
}

/* Lock held. */
static bool fits(const struct twin_user *user, const struct twin_user_region *region)
{
	uint32_t i;

	for (i = 0; i < user->region_count; i++)
		if (overlap(&user->regions[i], region))
			return false;
	return user->region_count < user->region_limit;
}

int twin_user_add_region(struct twin_user *user, const struct twin_user_region *region)
{
	int status = TWIN_INVALID;

	if (!is_region_valid(region))
		return TWIN_INVALID;
	twin_user_lock(user);
	if (fits(user, region)) {
		user->regions[user->region_count++] = *region;
		status = TWIN_OK;
	}
	twin_user_unlock(user);
	return status;
}

/* Take the region out of the list; its length, or 0 if there is none. */
static uint64_t take_region(struct twin_user *user, uint64_t dom0_start)
{
	uint64_t length = 0;
	uint32_t i;

	twin_user_lock(user);
	for (i = 0; i < user->region_count; i++) {
		if (user->regions[i].dom0_start != dom0_start)
			continue;
		length = user->regions[i].length;
		user->regions[i] = user->regions[--user->region_count];
		break;
	}
	twin_user_unlock(user);
	return length;
}

int twin_user_remove_region(struct twin_user *user, uint64_t dom0_start, uint64_t patience)
{
	int status = twin_instance_quiesce(&user->instance, patience);
	uint64_t length;

	if (status)
		return status;
	length = take_region(user, dom0_start);
	twin_instance_drop(&user->instance, dom0_start, length / PAGE);
	twin_instance_resume(&user->instance);
	return length ? TWIN_OK : TWIN_INVALID;
}
