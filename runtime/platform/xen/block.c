// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Stack blocks (abi.h draws one), each with its data stack in the window.
 *
 *   slot 262, entry 499    the blocks: control stack and context. Xen's top tables share
 *                          this L3 page, so one entry is all processors' at once
 *   slot 263, entry 3      the data stack of each block, at the same low 32 bits
 *
 * One L1 page for each of the two: it maps 2 MiB, which is 31 blocks. They are different
 * pages: driver code reaches the data stack by its operands, and the control stack by
 * push, pop, call and ret alone (docs/spec/window.md, Two stacks).
 *
 * A processor uses its own block alone. Data stacks are in the window, which is one for
 * all, so driver code on another processor can write them: they hold data only.
 *
 * Xen finds struct cpu_info by rsp, also in an exception that interrupts driver code: at
 * rsp | 0x7fff, which on a block is the end of its last page. That page is the topmost of
 * Xen's own stack of the processor, mapped a second time.
 */
#include "platform.h"

#define STACK_PAGES ((TWIN_STACK_HIGH - TWIN_STACK_LOW) / TWIN_PAGE_SIZE)
#define PAGES_PER_CPU (2 * STACK_PAGES + 1)
#define TABLES 5u	/* L2 and L1 of the blocks, L3, L2 and L1 of the data stacks */

_Static_assert((TWIN_XEN_CPUS + 1) * TWIN_STACK_BLOCK <= 1 << 21, "one L1 page has them");
_Static_assert(TWIN_STACK_BLOCK % XEN_STACK_SIZE == 0 &&
	       TWIN_STACK_BLOCK - TWIN_STACK_LOW <= XEN_STACK_SIZE,
	       "rsp | 0x7fff is the block's end wherever rsp is on the stack");
_Static_assert(TWIN_STACK_HOST + TWIN_PAGE_SIZE == TWIN_STACK_BLOCK, "Xen's page is the last");

/* Xen's stacks, by processor. That of one that is online stays: it does not go (hotplug.c). One
 * that is offline may have none, or get another. */
extern char *stack_base[];

static struct {
	void *pages[TABLES + TWIN_XEN_CPUS * PAGES_PER_CPU];
	uint32_t count;
} blocks;

static uint64_t *new_page(void)
{
	void *page = alloc_xenheap_pages(0, 0);

	if (!page)
		return NULL;
	memset(page, 0, TWIN_PAGE_SIZE);
	blocks.pages[blocks.count++] = page;
	return page;
}

static uint64_t entry_of(const void *page)
{
	return xen_machine(page) | XEN_PAGE_TABLE;
}

/* A new page at entry `index` of a table. */
static uint64_t *add(uint64_t *table, uint32_t index, uint64_t flags)
{
	uint64_t *page = new_page();

	if (page)
		table[index] = entry_of(page) | flags;
	return page;
}

/* The topmost page of Xen's own stack. */
static bool map_host(uint64_t *entry, uint32_t processor)
{
	const uint64_t page = xen_alias_walk((uint64_t)stack_base[processor] + XEN_STACK_SIZE -
					     TWIN_PAGE_SIZE);

	*entry = page | XEN_PAGE_TABLE | XEN_PAGE_NX;
	return page != ~0ull;
}

/* Nothing is executable. */
static bool map_block(uint64_t *control, uint64_t *data, uint32_t processor)
{
	const uint32_t first = (XEN_BLOCK(processor) >> TWIN_PAGE_SHIFT) % XEN_SLOTS;
	uint32_t i;

	for (i = TWIN_STACK_LOW; i < TWIN_STACK_HIGH; i += TWIN_PAGE_SIZE) {
		const uint32_t index = first + i / TWIN_PAGE_SIZE;

		if (!add(control, index, XEN_PAGE_NX) || !add(data, index, XEN_PAGE_NX))
			return false;
	}
	return add(control, first + TWIN_STACK_CONTEXT / TWIN_PAGE_SIZE, XEN_PAGE_NX) &&
	       map_host(&control[first + TWIN_STACK_HOST / TWIN_PAGE_SIZE], processor);
}

/* The tables from the top down; the L1 pages, or NULL. */
static uint64_t *make_control(uint64_t *entry)
{
	uint64_t *l2 = new_page();

	if (!l2)
		return NULL;
	*entry = entry_of(l2);
	return add(l2, 0, 0);
}

static uint64_t *make_data(uint64_t *entry)
{
	uint64_t *l3 = new_page(), *l2;

	if (!l3)
		return NULL;
	*entry = entry_of(l3) | XEN_PAGE_NX;
	l2 = add(l3, ((uint32_t)XEN_BLOCKS) >> XEN_L3_SHIFT, 0);
	return l2 ? add(l2, 0, 0) : NULL;
}

static uint64_t *blocks_entry(void)
{
	return (uint64_t *)xen_at(idle_pg_table[XEN_SLOT_MEMORY] & XEN_PAGE_ADDRESS) +
	       XEN_ENTRY_BLOCKS;
}

static bool open_block(uint32_t processor)
{
	struct twin_cpu *cpu = xen_block_context(processor);

	if (twin_cpu_init(cpu))
		return false;
	cpu->gs_base = xen_device.given.gs_base[processor];
	xen_seen[processor].cpu = cpu;
	return true;
}

int xen_blocks_create(uint32_t count, uint64_t *slot)
{
	/* Looked at once: another may come meanwhile, and has no block. */
	const uint64_t online = __atomic_load_n(&cpu_online_map[0], __ATOMIC_ACQUIRE);
	uint64_t entry = 0;
	uint64_t *control = make_control(&entry), *data = make_data(slot);
	bool made = control && data;
	uint32_t i;

	for (i = 0; made && i < count; i++)
		if (online >> i & 1)
			made = map_block(control, data, i);
	if (!made) {
		xen_blocks_free();
		return -XEN_ENOMEM;
	}
	__atomic_store_n(blocks_entry(), entry, __ATOMIC_RELEASE);
	for (i = 0; i < count; i++) {
		xen_seen[i].entries = 0;
		if (online >> i & 1 && !open_block(i))
			return -XEN_EINVAL;
	}
	return 0;
}

void xen_blocks_unmap(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++)
		xen_seen[i].cpu = NULL;
	__atomic_store_n(blocks_entry(), 0, __ATOMIC_RELEASE);
}

void xen_blocks_free(void)
{
	while (blocks.count)
		free_xenheap_pages(blocks.pages[--blocks.count], 0);
}

bool xen_block_here(void)
{
	const uint32_t processor = xen_processor();

	return processor < TWIN_XEN_CPUS &&
	       __atomic_load_n(&xen_seen[processor].cpu, __ATOMIC_RELAXED);
}

struct twin_cpu *xen_block_of(uint64_t rsp)
{
	const uint64_t first = XEN_BLOCK(0), end = XEN_BLOCK(TWIN_XEN_CPUS);

	if (!xen_attached() || rsp < first || rsp >= end)
		return NULL;
	return xen_block_context((rsp - first) / TWIN_STACK_BLOCK);
}
