// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which of dom0's page tables the window shows, while dom0 changes them, and who is in dom0's
 * dirty mask: platform/xen/alias.c.
 * Machine memory is this program's, at its own addresses; a frame's struct page_info is its
 * number.
 */
#include <string.h>

#include "../platform/xen/platform.h"
#include "test.h"
#include "xen-stack.h"

#include "../platform/xen/alias.c"

/* ---- What stands for Xen ----------------------------------------------------------------- */

const uint64_t twin_value_cpu_info_processor_id = 8;
const uint64_t twin_value_cpu_info_current_vcpu = 16;
const uint64_t twin_value_vcpu_guest_table = 8;
const uint64_t twin_value_domain_dirty_cpumask = 8;
const uint64_t twin_value_page_info_size = 1;
const uint64_t twin_value_page_info_type_info = 0;
const uint64_t twin_value_frame_table = 0;
const uint64_t twin_value_directmap = 0;

const uint64_t twin_value_vcpu_domain = 0;

static uint64_t mask[MASK_WORDS], domain[2] = { 0, (uint64_t)mask }, vcpu[2];
/* What each processor has loaded: a virtual processor of dom0's, or another one. */
static uint64_t dom0s[2] = { (uint64_t)domain }, others[2];
enum { PROCESSORS = 80 };
char per_cpu__curr_vcpu[PROCESSORS * sizeof(uint64_t)] __attribute__((aligned(8)));
unsigned long __per_cpu_offset[PROCESSORS];

uint64_t idle_pg_table[512];
unsigned long max_page;
struct domain *hardware_domain = (struct domain *)domain;
uint64_t cpu_online_map[1] = { 1 };
struct twin_xen_status xen_counts;

/* Frames with a reference and of a type, and what the other processors do after each. */
static uint64_t held[16];
static uint32_t held_count, references;
static void (*meanwhile)(void);

bool __mfn_valid(unsigned long frame)
{
	return frame;
}

bool get_page(struct page_info *page, const struct domain *of)
{
	(void)page;
	CHECK(of == hardware_domain);
	references++;
	return true;
}

void put_page(struct page_info *page)
{
	(void)page;
	references--;
}

int get_page_type(struct page_info *page, unsigned long type)
{
	(void)type;
	held[held_count++] = (uint64_t)page;
	if (meanwhile)
		meanwhile();
	return 1;
}

void put_page_type(struct page_info *page)
{
	CHECK_EQUAL((uint64_t)page, held[--held_count]);
}

/* Somebody else stops them, so often. */
static uint32_t busy, stops;

int stop_machine_run(int (*function)(void *), void *data, unsigned int processor)
{
	(void)processor;
	stops++;
	if (busy) {
		busy--;
		return -XEN_EBUSY;
	}
	return function(data);
}

void flush_area_mask(const void *of, const void *address, unsigned int flags)
{
	(void)of;
	(void)address;
	(void)flags;
}

int xen_blocks_create(uint32_t count, uint64_t *slot)
{
	(void)count;
	*slot = 0;
	return 0;
}

void xen_blocks_unmap(void)
{
}

void xen_blocks_free(void)
{
}

int xen_refuse(int error, const char *text)
{
	(void)text;
	return error;
}

void printk(const char *format, ...)
{
	(void)format;
}

/* ---- dom0 ---------------------------------------------------------------------------------- */

enum { DIRECT = 273, VMALLOC = 402, PAGES = 468, LAST = 511 };
static const uint32_t slots[] = { DIRECT, VMALLOC, PAGES, LAST };

#define TABLE _Alignas(4096)
static TABLE uint64_t top[512], memory[512];
static TABLE uint64_t l3[4][512], l2[2][512];
/* The tables that dom0 enters instead. */
static TABLE uint64_t other_l3[4][512], other_l2[2][512];

static uint64_t entry(const uint64_t *table)
{
	return (uint64_t)table | XEN_PAGE_TABLE;
}

static void enter(uint64_t (*third)[512], uint64_t (*second)[512])
{
	uint32_t i;

	for (i = 0; i < 4; i++)
		top[slots[i]] = entry(third[i]);
	for (i = 0; i < 2; i++)
		l3[3][XEN_ENTRY_MIRROR + i] = other_l3[3][XEN_ENTRY_MIRROR + i] = entry(second[i]);
}

/* The other ones by turns. */
static void enter_others(void)
{
	static bool others;

	others = !others;
	if (others)
		enter(other_l3, other_l2);
	else
		enter(l3, l2);
}

static const struct twin_xen_attach given = {
	.page_offset = XEN_SLOT(DIRECT),
	.vmalloc_start = XEN_SLOT(VMALLOC),
	.vmemmap_start = XEN_SLOT(PAGES),
	.netdev = XEN_SLOT(DIRECT),
	.napi = XEN_SLOT(DIRECT),
	.interrupt = XEN_SLOT(LAST),
	.hot_shared = XEN_SLOT(LAST),
};

static bool is_held(uint64_t shown)
{
	uint32_t i;

	for (i = 0; i < held_count; i++)
		if (held[i] == (shown & XEN_PAGE_ADDRESS) >> TWIN_PAGE_SHIFT)
			return true;
	return false;
}

/* Every table that the window or its mirror leads to has a reference. */
static void all_are_held(void)
{
	uint32_t i;

	CHECK_EQUAL(held_count, 6);
	for (i = 0; i < 4; i++)
		CHECK(is_held(idle_pg_table[XEN_SLOT_WINDOW + xen_residue(slots[i])]));
	for (i = 0; i < 2; i++)
		CHECK(is_held(memory[XEN_ENTRY_MIRROR + i]));
}

static void set_up(void)
{
	uint32_t i;

	memset(idle_pg_table, 0, sizeof(idle_pg_table));
	memset(memory, 0, sizeof(memory));
	idle_pg_table[XEN_SLOT_MEMORY] = entry(memory);
	for (i = 0; i < 4; i++)
		l3[i][0] = other_l3[i][0] = entry(l2[0]);
	enter(l3, l2);
	held_count = references = 0;
	meanwhile = NULL;
	busy = stops = 0;
	CHECK_EQUAL(xen_alias_plan(&given), 0);
}

static void nothing_is_left(void)
{
	uint32_t i;

	CHECK_EQUAL(held_count, 0);
	CHECK_EQUAL(references, 0);
	for (i = XEN_SLOT_WINDOW; i <= XEN_SLOT_AFTER; i++)
		CHECK_EQUAL(idle_pg_table[i], 0);
	for (i = 0; i < 2; i++)
		CHECK_EQUAL(memory[XEN_ENTRY_MIRROR + i], 0);
}

static void show(void (*between)(void))
{
	set_up();
	meanwhile = between;
	CHECK_EQUAL(xen_alias_install(), 0);
	all_are_held();
	CHECK(xen_alias_remove());
	nothing_is_left();
}

/* Whoever stops the processors meanwhile needs this one: it is asked once, and never waited for. */
static void processors_that_cannot_be_stopped(void)
{
	set_up();
	busy = UINT32_MAX;
	CHECK_EQUAL(xen_alias_install(), -XEN_EBUSY);
	CHECK_EQUAL(stops, 1);
	nothing_is_left();

	set_up();
	CHECK_EQUAL(xen_alias_install(), 0);
	busy = 2;
	CHECK(!xen_alias_remove());
	CHECK(!xen_alias_remove());
	CHECK_EQUAL(stops, 3);
	/* The tables that it leads to stay dom0's page tables as long as it does. */
	CHECK_EQUAL(held_count, 6);
	CHECK(xen_alias_remove());
	nothing_is_left();
}

static void the_window_shows_what_is_held(void)
{
	show(NULL);
}

/* dom0's other processors go on: a table of which Xen has no reference could become anything. */
static void dom0_changes_its_tables_meanwhile(void)
{
	show(enter_others);
}

/* ---- The dirty mask ---------------------------------------------------------------------- */

static bool is_in_mask(uint32_t processor)
{
	return mask[processor >> 6] >> (processor & 63) & 1;
}

/* What Xen's context switch does. */
static void load(uint32_t processor, uint64_t *what)
{
	const uint64_t bit = 1ull << (processor & 63);

	memcpy(per_cpu__curr_vcpu + processor * sizeof(what), &what, sizeof(what));
	if (what == dom0s)
		mask[processor >> 6] |= bit;
	else
		mask[processor >> 6] &= ~bit;
}

static void start_processors(void)
{
	uint32_t i;

	memset(mask, 0, sizeof(mask));
	for (i = 0; i < PROCESSORS; i++) {
		__per_cpu_offset[i] = i * sizeof(uint64_t);
		load(i, others);
	}
}

/*
 * Xen clears a bit where a virtual processor of dom0's leaves. One that was set here, where none
 * ever was, it does not: when that processor is offline, Xen looks for its data, and ends.
 */
static void processors_leave_the_mask_when_the_window_goes(void)
{
	start_processors();
	load(2, dom0s);
	/* Who was not in it may have translations that a flush did not end. */
	CHECK(join_dirty_mask(0) && !join_dirty_mask(0));
	CHECK(!join_dirty_mask(2));
	CHECK(join_dirty_mask(70));
	CHECK(is_in_mask(0) && is_in_mask(2) && is_in_mask(70));
	xen_alias_remove();
	CHECK(!is_in_mask(0) && is_in_mask(2) && !is_in_mask(70));
	/* What is Xen's is left to Xen. */
	load(2, others);
	CHECK(!is_in_mask(2));
}

/* dom0 came to a processor that had joined, or went from it. */
static void a_processor_of_dom0s_stays_in_the_mask(void)
{
	start_processors();
	join_dirty_mask(0);
	load(0, dom0s);
	load(1, dom0s);
	join_dirty_mask(1);
	load(1, others);
	join_dirty_mask(1);
	xen_alias_remove();
	CHECK(is_in_mask(0) && !is_in_mask(1));
	/* Nobody has joined since. */
	load(0, others);
	load(0, dom0s);
	xen_alias_remove();
	CHECK(is_in_mask(0));
}

static void on_stack(void)
{
	RUN(the_window_shows_what_is_held);
	RUN(dom0_changes_its_tables_meanwhile);
	RUN(processors_that_cannot_be_stopped);
	RUN(processors_leave_the_mask_when_the_window_goes);
	RUN(a_processor_of_dom0s_stays_in_the_mask);
}

int main(void)
{
	vcpu[1] = (uint64_t)top >> TWIN_PAGE_SHIFT;
	on_xens_stack(on_stack, vcpu);
	return test_summary();
}
