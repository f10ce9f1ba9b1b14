// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * dom0's memory in Xen's slots.
 *
 * dom0's own third-level tables (L3) are entered in slots of Xen's that are empty, so that
 * dom0's mappings, rights and caching are those of the window at once and always: there is
 * nothing to copy and nothing to keep up to date. The top-level entries are the
 * supervisor's and not executable. A page that dom0 may only read (its page tables are)
 * can only be read here.
 *
 * Why this shows no page that is not dom0's:
 *
 *   the tables	a reference with type on each L3 page, and on the two L2 pages of the
 *		mirror: dom0 can neither free them nor make anything else of them. What
 *		they lead to, Xen has validated as dom0's own mapping
 *   the TLB	Xen flushes the processors in dom0's dirty mask when it takes a mapping
 *		away or gives a page another type, by flushing everything. So a
 *		processor is in the mask before its first access, and interrupts are off
 *		from there to the last one: it leaves the mask only with a context switch,
 *		which loads CR3, and entries of the window are not global
 *   removal	entries first, everywhere, then a flush on all processors, then the
 *		references. Processors leave the mask that are in it for this alone: Xen
 *		reads data of each that is there, which a processor that is offline has not
 *
 * Every top-level table has the entries: new ones copy them from Xen's own table
 * (idle_pg_table); those that exist are found by their frames' type while all processors
 * are stopped. The tables of guests with hardware paging have no such type: an access
 * looks before it goes, and enters what is missing.
 */
#include "platform.h"
#include "slots.h"

/* No build has more than 4,095 processors. */
#define MASK_WORDS 64u

/* Kept for as long as the window is there. */
#define HELD_LIMIT (XEN_WINDOW_SLOTS + 2)

static struct {
	uint64_t entries[XEN_WINDOW_SLOTS];	/* of top tables, from the window's slot on */
	struct xen_slots_plan plan;
	struct page_info *held[HELD_LIMIT];
	uint32_t held_count;
	const uint64_t *top;	/* the table that dom0 attached with */
	uint64_t joined[MASK_WORDS];	/* processors that were put into dom0's dirty mask here */
} alias;

struct xen_seen xen_seen[TWIN_XEN_CPUS] __attribute__((aligned(64)));
const uint64_t *xen_dirty_mask;

int stop_machine_run(int (*function)(void *), void *data, unsigned int processor);

const uint32_t *xen_alias_slots(void)
{
	return alias.plan.shown;
}

static uint64_t *dirty_mask(void)
{
	return XEN_FIELD(uint64_t *, hardware_domain, twin_value_domain_dirty_cpumask);
}

static uint64_t *table_at(uint64_t entry)
{
	return xen_at(entry & XEN_PAGE_ADDRESS);
}

/* An entry of a table of dom0's, whose other processors may change it at any time: it is read
 * once, and what was read is judged and used. */
static uint64_t read_once(const uint64_t *table, uint32_t index)
{
	return __atomic_load_n(&table[index], __ATOMIC_RELAXED);
}

static uint64_t entry_of(uint64_t frame_address)
{
	return frame_address | XEN_PAGE_TABLE | XEN_PAGE_NX;
}

/* ---- dom0's dirty mask ------------------------------------------------------------------ */

#ifdef TWIN_XEN_TEST
/* tests/xen-faults/retype.c: the fault that a test must find. */
bool xen_test_stays_out(uint64_t *mask, uint64_t bit);
#else
static inline bool xen_test_stays_out(uint64_t *mask, uint64_t bit)
{
	(void)mask;
	(void)bit;
	return false;
}
#endif

/* A set bit is dom0's flushes coming here. Whether it was not set: then some may not have come. */
static bool join_dirty_mask(uint32_t processor)
{
	uint64_t *mask = dirty_mask() + (processor >> 6);
	const uint64_t bit = 1ull << (processor & 63);

	if (xen_test_stays_out(mask, bit))
		return false;
	if (__atomic_load_n(mask, __ATOMIC_RELAXED) & bit)
		return false;
	__atomic_fetch_or(&alias.joined[processor >> 6 & (MASK_WORDS - 1)], bit, __ATOMIC_RELAXED);
	__atomic_fetch_or(mask, bit, __ATOMIC_SEQ_CST);
	xen_count(&xen_counts.dirty);
	return true;
}

/* Whether Xen has the processor in the mask itself: it has loaded a virtual processor of dom0's,
 * also if it is idle since (domain.c, __context_switch). */
static bool is_xens(uint32_t processor)
{
	return xen_domain_of(xen_loaded(processor)) == hardware_domain;
}

/* With all processors stopped: none is between joining the mask and its last access, and no context
 * switch is half done. Those that have joined are online, since none goes (hotplug.c). */
static void leave_dirty_mask(void)
{
	uint32_t word;
	uint64_t left;

	for (word = 0; word < MASK_WORDS; word++) {
		for (left = alias.joined[word]; left; left &= left - 1) {
			const uint64_t bit = left & -left;

			if (!is_xens(word << 6 | __builtin_ctzll(bit)))
				__atomic_fetch_and(&dirty_mask()[word], ~bit, __ATOMIC_SEQ_CST);
		}
		alias.joined[word] = 0;
	}
}

/* ---- Every top-level table ------------------------------------------------ */

/* The entry of the linear page tables: it leads to the table itself. */
#define SLOT_SELF 258u

/* All of Xen's slots are filled in. */
static bool is_top_table(uint64_t frame)
{
	uint64_t *table;

	if (!__mfn_valid(frame) ||
	    xen_type_info(xen_page_of(frame)) >> XEN_TYPE_SHIFT != XEN_TYPE_L4)
		return false;
	table = xen_at(frame << TWIN_PAGE_SHIFT);
	return (table[SLOT_SELF] & XEN_PAGE_ADDRESS) >> TWIN_PAGE_SHIFT == frame;
}

static void write_entries(uint64_t *table)
{
	uint32_t i;

	for (i = 0; i < XEN_WINDOW_SLOTS; i++)
		__atomic_store_n(&table[XEN_SLOT_WINDOW + i], alias.entries[i], __ATOMIC_RELAXED);
}

/* With all processors stopped, which is for an idle virtual processor only: nobody makes a
 * table or gives one back. */
static int write_all(void *unused)
{
	uint64_t frame;

	(void)unused;
	for (frame = 0; frame < TWIN_XEN_CPUS; frame++)
		xen_seen[frame].root = 0;
	leave_dirty_mask();
	write_entries(idle_pg_table);
	for (frame = 0; frame < max_page; frame++)
		if (is_top_table(frame))
			write_entries(xen_at(frame << TWIN_PAGE_SHIFT));
	return 0;
}

/* 0, or nothing was done: somebody else stops the processors, or one goes or comes. Whoever that is
 * may need this one's idle virtual processor, so it is not waited for (stop_machine.c: "must not
 * spin here"). */
static int write_everywhere(void)
{
	return stop_machine_run(write_all, NULL, xen_processor());
}

/* ---- References ------------------------------------------------------------ */

/* The page is dom0's, of that type and validated, and stays so. */
static bool hold(uint64_t entry, uint64_t type)
{
	const uint64_t frame = (entry & XEN_PAGE_ADDRESS) >> TWIN_PAGE_SHIFT;
	struct page_info *page = xen_page_of(frame);

	if (!(entry & XEN_PAGE_PRESENT) || (entry & XEN_PAGE_LARGE) || !__mfn_valid(frame))
		return false;
	if (!get_page(page, hardware_domain))
		return false;
	if (!get_page_type(page, type << XEN_TYPE_SHIFT)) {
		put_page(page);
		return false;
	}
	alias.held[alias.held_count++] = page;
	return true;
}

static void drop_all(void)
{
	while (alias.held_count) {
		struct page_info *page = alias.held[--alias.held_count];

		put_page_type(page);
		put_page(page);
	}
}

/* ---- Installing -------------------------------------------------------------- */

/* Not only preallocated. */
static bool has_anything(uint64_t entry)
{
	const uint64_t *table = table_at(entry);
	uint32_t i;

	if (!(entry & XEN_PAGE_PRESENT))
		return false;
	for (i = 0; i < XEN_SLOTS; i++)
		if (table[i] & XEN_PAGE_PRESENT)
			return true;
	return false;
}

int xen_alias_plan(const struct twin_xen_attach *given)
{
	const uint64_t needed[] = {
		given->page_offset, given->vmalloc_start, given->vmemmap_start,
		given->netdev, given->napi, given->interrupt, given->hot_shared,
	};
	bool present[XEN_SLOTS];
	enum xen_slots_refusal refusal;
	uint32_t i;

	memset(&alias, 0, sizeof(alias));
	xen_dirty_mask = dirty_mask();
	alias.top = xen_at(XEN_FIELD(uint64_t, xen_current(), twin_value_vcpu_guest_table) <<
			   TWIN_PAGE_SHIFT);
	for (i = 0; i < XEN_SLOTS; i++)
		present[i] = i >= XEN_DOM0_FIRST && has_anything(read_once(alias.top, i));
	refusal = xen_slots_plan(&alias.plan, needed, sizeof(needed) / sizeof(*needed), present);
	if (!refusal)
		return 0;
	printk(XEN_WARNING "twin: dom0's slots %u and %u: %s\n", alias.plan.slot,
	       alias.plan.other, xen_slots_reason(refusal));
	return xen_refuse(-XEN_EINVAL, xen_slots_reason(refusal));
}

static bool hold_slots(void)
{
	uint32_t i;

	for (i = 0; i < XEN_WINDOW_SLOTS; i++) {
		const uint32_t slot = alias.plan.shown[i];
		uint64_t entry;

		if (!slot)
			continue;
		entry = read_once(alias.top, slot);
		if (!hold(entry, XEN_TYPE_L3))
			return false;
		alias.entries[i] = entry_of(entry & XEN_PAGE_ADDRESS);
	}
	return true;
}

/* The mirror's two entries of Xen's map of all memory, which all top tables share. */
static uint64_t *mirror(void)
{
	return table_at(idle_pg_table[XEN_SLOT_MEMORY]) + XEN_ENTRY_MIRROR;
}

static bool hold_mirror(uint64_t entries[2])
{
	const uint64_t *last = table_at(alias.entries[XEN_WINDOW_SLOTS - 1]);
	uint32_t i;

	for (i = 0; i < 2; i++) {
		const uint64_t entry = read_once(last, XEN_ENTRY_MIRROR + i);

		if (!hold(entry, XEN_TYPE_L2))
			return false;
		entries[i] = entry_of(entry & XEN_PAGE_ADDRESS);
	}
	return true;
}

static bool is_free(void)
{
	const uint64_t *memory = table_at(idle_pg_table[XEN_SLOT_MEMORY]);
	uint32_t i;

	for (i = XEN_SLOT_WINDOW; i <= XEN_SLOT_AFTER; i++)
		if (idle_pg_table[i])
			return false;
	for (i = XEN_ENTRY_BLOCKS; i < XEN_SLOTS; i++)
		if (memory[i])
			return false;
	return true;
}

/* What is held so far is given back. */
static int refuse(int error, const char *text)
{
	drop_all();
	return xen_refuse(error, text);
}

/* What top tables share, and what they are to have from now on. */
static void forget_entries(void)
{
	memset(alias.entries, 0, sizeof(alias.entries));
	mirror()[0] = 0;
	mirror()[1] = 0;
}

/* No top table leads to the window. */
static void let_go(void)
{
	xen_blocks_unmap();
	flush_area_mask(cpu_online_map, NULL, XEN_FLUSH_TLB_ALL);
	xen_blocks_free();
	drop_all();
}

int xen_alias_install(void)
{
	uint64_t pair[2];
	int status;

	if (!is_free())
		return refuse(-XEN_EBUSY, "Xen's slots 263 to 271 are in use");
	if (!hold_slots() || !hold_mirror(pair))
		return refuse(-XEN_EBUSY, "a page table of dom0's is none by its type");
	status = xen_blocks_create(TWIN_XEN_CPUS, &alias.entries[0]);
	if (status)
		return refuse(status, "no memory for the driver's stacks");
	mirror()[0] = pair[0];
	mirror()[1] = pair[1];
	status = write_everywhere();
	if (!status)
		return 0;
	forget_entries();
	let_go();
	return xen_refuse(status, "the processors could not be stopped: try again");
}

bool xen_alias_remove(void)
{
	forget_entries();
	if (write_everywhere())
		return false;
	let_go();
	return true;
}

/* ---- Before a use -------------------------------------------------------------- */

static bool is_up_to_date(const uint64_t *table)
{
	uint32_t i;

	for (i = 0; i < XEN_WINDOW_SLOTS; i++)
		if (table[XEN_SLOT_WINDOW + i] != alias.entries[i])
			return false;
	return true;
}

/*
 * xen_alias_ready() where something is missing, or not known yet. A processor may read the tables
 * before any instruction asks for it, and keep what it read (SDM vol. 3, 4.10.2.3): before dom0's
 * flushes came here, or by entries that were there before. Such translations end with the load of
 * CR3. None of dom0's kernel pages is global (mm.c, adjust_guest_l1e).
 */
void xen_alias_catch_up(void)
{
	const uint32_t processor = xen_processor();
	const uint64_t root = xen_cr3();
	uint64_t *table = table_at(root);
	bool stale = join_dirty_mask(processor);

	if (!is_up_to_date(table)) {
		write_entries(table);
		xen_count(&xen_counts.late_aliases);
		stale = true;
	}
	if (stale)
		__asm__ volatile("movq %0, %%cr3" ::"r"(root) : "memory");
	if (processor < TWIN_XEN_CPUS)
		xen_seen[processor].root = root;
}

uint64_t xen_alias_walk(uint64_t address)
{
	uint64_t entry = xen_cr3();
	uint32_t shift;

	for (shift = XEN_SLOT_SHIFT; shift >= TWIN_PAGE_SHIFT; shift -= 9) {
		const uint64_t offset = (1ull << shift) - 1;

		entry = table_at(entry)[(address >> shift) % XEN_SLOTS];
		if (!(entry & XEN_PAGE_PRESENT))
			return ~0ull;
		if (shift < XEN_SLOT_SHIFT && shift > TWIN_PAGE_SHIFT && (entry & XEN_PAGE_LARGE))
			return (entry & XEN_PAGE_ADDRESS & ~offset) | (address & offset);
	}
	return (entry & XEN_PAGE_ADDRESS) | (address & (TWIN_PAGE_SIZE - 1));
}
