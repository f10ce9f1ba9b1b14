// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Stack blocks, and the list of them that the fault handler consults.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "platform.h"

#define BLOCK ((uint64_t)TWIN_STACK_BLOCK)

/* Block addresses or 0. Slots are taken and given back atomically, so that the
 * handler can look at any time. */
static uint64_t blocks[TWIN_TESTBED_BLOCKS];

static bool remember(uint64_t block)
{
	uint32_t i;

	for (i = 0; i < TWIN_TESTBED_BLOCKS; i++) {
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&blocks[i], &none, block, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return true;
	}
	errno = ENOSPC;
	return false;
}

static void forget(uint64_t block)
{
	uint32_t i;

	for (i = 0; i < TWIN_TESTBED_BLOCKS; i++) {
		uint64_t expected = block;

		if (__atomic_compare_exchange_n(&blocks[i], &expected, 0, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return;
	}
}

struct twin_cpu *twin_testbed_cpu_at(uint64_t rsp)
{
	uint64_t block = rsp & ~(BLOCK - 1);
	uint32_t i;

	if (!block)
		return NULL;
	for (i = 0; i < TWIN_TESTBED_BLOCKS; i++)
		if (__atomic_load_n(&blocks[i], __ATOMIC_ACQUIRE) == block)
			return (struct twin_cpu *)(block + TWIN_STACK_CONTEXT);
	return NULL;
}

/* Address space with no access at exactly `wanted`; 0 on failure. */
static uint64_t reserve_at(uint64_t wanted)
{
	void *at;

	if (wanted & (BLOCK - 1)) {
		errno = EINVAL;
		return 0;
	}
	at = mmap((void *)wanted, BLOCK, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at == MAP_FAILED)
		return 0;
	if ((uint64_t)at == wanted)
		return wanted;
	munmap(at, BLOCK);	/* a kernel older than the flag treats it as a hint */
	errno = EEXIST;
	return 0;
}

/* Maps twice as much as needed, then unmaps what is outside the aligned block. */
static uint64_t reserve_anywhere(void)
{
	void *at = mmap(NULL, 2 * BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t start = (uint64_t)at, block;

	if (at == MAP_FAILED)
		return 0;
	block = (start + BLOCK - 1) & ~(BLOCK - 1);
	if (block > start)
		munmap(at, block - start);
	munmap((void *)(block + BLOCK), start + BLOCK - block);
	return block;
}

static bool allow(uint64_t start, uint64_t length)
{
	return mprotect((void *)start, length, PROT_READ | PROT_WRITE) == 0;
}

static struct twin_cpu *furnish(uint64_t block)
{
	struct twin_cpu *cpu = (struct twin_cpu *)(block + TWIN_STACK_CONTEXT);

	if (!allow(block + TWIN_STACK_LOW, TWIN_STACK_HIGH - TWIN_STACK_LOW) ||
	    !allow(block + TWIN_STACK_LOW - TWIN_STACK_SHADOW, TWIN_STACK_HIGH - TWIN_STACK_LOW) ||
	    !allow(block + TWIN_STACK_CONTEXT, PAGE))
		return NULL;
	if (twin_cpu_init(cpu) != TWIN_OK || !remember(block))
		return NULL;
	return cpu;
}

struct twin_cpu *twin_testbed_block_create(uint64_t wanted)
{
	uint64_t block = wanted ? reserve_at(wanted) : reserve_anywhere();
	struct twin_cpu *cpu = block ? furnish(block) : NULL;

	if (block && !cpu) {
		int error = errno;

		munmap((void *)block, BLOCK);
		errno = error;
	}
	return cpu;
}

void twin_testbed_block_destroy(struct twin_cpu *cpu)
{
	uint64_t block = (uint64_t)cpu - TWIN_STACK_CONTEXT;

	forget(block);
	munmap((void *)block, BLOCK);
}
