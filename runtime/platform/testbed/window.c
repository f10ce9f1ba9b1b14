// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Windows: three dom0 pages at consecutive addresses, a hole after them.
 *
 *   slots + n * SLOT_BYTES
 *   +0x0000  the dom0 page before     as below, or a hole if it is not dom0's
 *   +0x1000  the dom0 page            file page, mapped shared
 *   +0x2000  the dom0 page after it   as above, or a hole if it is not dom0's
 *   +0x3000  hole
 *
 * Runs on a slow path, where the driver's vector registers are live: this file
 * is compiled without them and makes its system calls itself.
 */
#include <asm/mman.h>
#include <asm/unistd.h>
#include <linux/mman.h>
#include <stddef.h>

#include "platform.h"

uint64_t twin_testbed_map_pages(uint64_t at, uint64_t length, uint64_t protection, uint64_t flags,
				int64_t fd, uint64_t offset)
{
	register uint64_t r10 __asm__("r10") = flags;
	register int64_t r8 __asm__("r8") = fd;
	register uint64_t r9 __asm__("r9") = offset;
	uint64_t result = __NR_mmap;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(at), "S"(length), "d"(protection), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

void twin_testbed_lock(struct twin_testbed *testbed)
{
	while (__atomic_exchange_n(&testbed->lock.held, 1, __ATOMIC_ACQUIRE))
		__asm__ volatile("pause" ::: "memory");
}

void twin_testbed_unlock(struct twin_testbed *testbed)
{
	__atomic_store_n(&testbed->lock.held, 0, __ATOMIC_RELEASE);
}

/* Lock held. */
static const struct twin_testbed_region *region_of(const struct twin_testbed *testbed, uint64_t page)
{
	uint32_t i;

	for (i = 0; i < testbed->region_count; i++)
		if (page - testbed->regions[i].dom0_start < testbed->regions[i].length)
			return &testbed->regions[i];
	return NULL;
}

static bool map_page(const struct twin_testbed_region *region, uint64_t page, uint64_t at)
{
	uint64_t protection = PROT_READ | (region->writable ? PROT_WRITE : 0);
	uint64_t offset = region->file_offset + (page - region->dom0_start);

	return twin_testbed_map_pages(at, PAGE, protection, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
				      region->fd, offset) == at;
}

bool twin_testbed_punch_hole(uint64_t at, uint64_t length)
{
	const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

	return twin_testbed_map_pages(at, length, PROT_NONE, flags, -1, 0) == at;
}

/* Map a neighbour of the window's own page, if dom0 has one there. Lock held. */
static bool map_beside(const struct twin_testbed *testbed, uint64_t page, uint64_t at)
{
	const struct twin_testbed_region *region = region_of(testbed, page);

	return !region || region->fd < 0 || map_page(region, page, at);
}

/* Address space does not wrap: the last page has no next one, and the first none
 * before it. */
static bool map_neighbours(const struct twin_testbed *testbed, uint64_t page, uint64_t at)
{
	return (!page || map_beside(testbed, page - PAGE, at - PAGE)) &&
	       (!(page + PAGE) || map_beside(testbed, page + PAGE, at + PAGE));
}

/* Lock held. Returns enum twin_refusal. */
static int map_window(struct twin_testbed *testbed, uint64_t page, uint64_t *mapped)
{
	const struct twin_testbed_region *region = region_of(testbed, page);
	uint32_t slot;
	uint64_t at;

	if (!region)
		return TWIN_REFUSED_NOT_DOM0;
	if (region->fd < 0)
		return TWIN_REFUSED_UNMAPPED;
	if (!testbed->free_count)
		return TWIN_REFUSED_NO_SPACE;
	slot = testbed->free_slots[testbed->free_count - 1];
	at = testbed->slots + slot * SLOT_BYTES + TWIN_BELOW;
	if (!map_page(region, page, at) || !map_neighbours(testbed, page, at)) {
		twin_testbed_punch_hole(at - TWIN_BELOW, SLOT_PAGES * PAGE);
		return TWIN_REFUSED_NO_SPACE;
	}
	testbed->free_count--;
	testbed->slot_pages[slot] = page;
	*mapped = at;
	return TWIN_MAPPED;
}

int twin_testbed_map_window(struct twin_instance *instance, uint64_t page, uint64_t *mapped)
{
	struct twin_testbed *testbed = instance->platform;
	int refusal;

	twin_testbed_lock(testbed);
	refusal = map_window(testbed, page, mapped);
	twin_testbed_unlock(testbed);
	return refusal;
}

/* A slot whose pages cannot be unmapped is lost, not reused. */
void twin_testbed_unmap_window(struct twin_instance *instance, uint64_t page, uint64_t mapped)
{
	struct twin_testbed *testbed = instance->platform;
	uint32_t slot = (mapped - testbed->slots) / SLOT_BYTES;

	(void)page;
	if (!twin_testbed_punch_hole(mapped - TWIN_BELOW, SLOT_PAGES * PAGE))
		return;
	twin_testbed_lock(testbed);
	testbed->free_slots[testbed->free_count++] = slot;
	twin_testbed_unlock(testbed);
}

uint64_t twin_testbed_dom0_address(const struct twin_testbed *testbed, uint64_t address)
{
	uint64_t offset = address - testbed->slots;

	if (offset >= testbed->slot_limit * SLOT_BYTES)
		return address;
	return testbed->slot_pages[offset / SLOT_BYTES] - TWIN_BELOW + offset % SLOT_BYTES;
}
