/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where things are in Xen's part of the address space. Numbers only.
 *
 * A top-level page table (L4) has 512 slots of 512 GiB. Xen has slots 256 to 271 of every
 * domain's; 262 to 271 are its map of all memory, which on a machine below 510 GiB ends
 * in slot 262. The scheme window (docs/spec/window.md) needs nine slots beside one
 * another for itself and its guards:
 *
 *   slot  entries
 *   262   0..498     machine memory
 *         499        stack blocks
 *         500..505   never mapped
 *         506..509   never mapped: the guard before the mirror
 *         510..511   the mirror: dom0's slot 511, entries 510 and 511
 *   263              the window: dom0's slots with residue 0, of which there is none;
 *                    entry 3 has the data stacks
 *   264..270         dom0's slots with residue 1..7
 *   271              never mapped: the guard after the window
 *
 * dom0's slot s is at WINDOW + (s & 7) slots: the place of an address is its low 42 bits,
 * of which the upper three are the residue. No address of the window, of its mirror or of
 * what a displacement of 32 bits adds to them is anything else of Xen's.
 */
#ifndef TWIN_XEN_LAYOUT_H
#define TWIN_XEN_LAYOUT_H

#include <twin/abi.h>

#define XEN_WINDOW		0xffff838000000000
/* What twin_stack_view is in the code: it moves a stack block to slot 272, where dom0
 * has nothing, and where its place is below 4 GiB. */
#define XEN_STACK_VIEW		0x48400000000
/* The first and the last address that a pointer of dom0's may have, twin_lowest and
 * twin_highest in the code. Error codes are pointers to the last page, which dom0 has not. */
#define XEN_LOWEST		0xffff880000000000
#define XEN_HIGHEST		0xffffffffffffefff

/* struct xen_seen (platform.h), for assembly. */
#define XEN_SEEN_ROOT		0
#define XEN_SEEN_CPU		8
#define XEN_SEEN_TURN		16
#define XEN_SEEN_ENTRIES	24
#define XEN_SEEN_AWAITED	32
#define XEN_SEEN_SHIFT		6	/* log2 of its bytes */
#define XEN_SEEN_COUNT		4	/* TWIN_XEN_CPUS */

#ifndef __ASSEMBLER__

#include <stdint.h>

#define XEN_SLOT_SHIFT		39
/* The address at which a slot of the upper half begins. */
#define XEN_SLOT(n)		(0xffff000000000000ull | ((uint64_t)(n) << XEN_SLOT_SHIFT))
#define XEN_SLOTS		512u
#define XEN_L3_SHIFT		30

#define XEN_SLOT_MEMORY		262u
#define XEN_SLOT_WINDOW		263u
#define XEN_SLOT_AFTER		271u
#define XEN_WINDOW_SLOTS	8u		/* TWIN_WIDE_SIZE */

/* The entries of slot 262, and the first that machine memory may not reach. */
#define XEN_ENTRY_BLOCKS	499u
#define XEN_ENTRY_MIRROR	510u
#define XEN_MACHINE_LIMIT	((uint64_t)XEN_ENTRY_BLOCKS << XEN_L3_SHIFT)

/* The first page of a block is a guard, so the first block may begin there. */
#define XEN_BLOCKS		(XEN_SLOT(XEN_SLOT_MEMORY) + XEN_MACHINE_LIMIT)
#define XEN_BLOCK(processor)	(XEN_BLOCKS + ((uint64_t)(processor) + 1) * TWIN_STACK_BLOCK)

/* Slots of dom0's half of the address space. */
#define XEN_DOM0_FIRST		272u

/* Which of the window's slots shows dom0's slot. */
static inline uint32_t xen_residue(uint32_t slot)
{
	return slot % XEN_WINDOW_SLOTS;
}

/* The slot of an address. */
static inline uint32_t xen_slot_of(uint64_t address)
{
	return (address >> XEN_SLOT_SHIFT) % XEN_SLOTS;
}

/* Where the window shows dom0's address: what driver code's accesses are cut to. */
static inline uint64_t xen_cut(uint64_t address)
{
	return XEN_WINDOW + (address & TWIN_WIDE_MASK);
}

_Static_assert(XEN_SLOT(XEN_SLOT_WINDOW) == XEN_WINDOW, "the window begins a slot");
_Static_assert((uint64_t)XEN_WINDOW_SLOTS << XEN_SLOT_SHIFT == TWIN_WIDE_SIZE, "the window's slots");
_Static_assert(XEN_SLOT_WINDOW + XEN_WINDOW_SLOTS == XEN_SLOT_AFTER, "a guard slot after it");
_Static_assert(XEN_SLOT(XEN_SLOT_MEMORY) + ((uint64_t)XEN_ENTRY_MIRROR << XEN_L3_SHIFT) ==
	       XEN_WINDOW - TWIN_WIDE_MIRROR, "the mirror is in slot 262");
_Static_assert(((uint64_t)(XEN_ENTRY_BLOCKS + 1) << XEN_L3_SHIFT) <=
	       (1ull << XEN_SLOT_SHIFT) - TWIN_WIDE_MIRROR - TWIN_WIDE_GUARD,
	       "the blocks are before the guard");
_Static_assert(XEN_LOWEST == XEN_SLOT(XEN_DOM0_FIRST), "strict code takes all of dom0's half");
_Static_assert(((XEN_BLOCKS + XEN_STACK_VIEW) & TWIN_WIDE_MASK) == (uint32_t)XEN_BLOCKS,
	       "operands and pointers lead to the same data stack");
_Static_assert((uint32_t)XEN_BLOCKS >= TWIN_WINDOW_NULL_GUARD, "not among small numbers");

#endif /* __ASSEMBLER__ */
#endif /* TWIN_XEN_LAYOUT_H */
