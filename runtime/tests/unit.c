// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The core's C code against a platform made of arithmetic: the window of page
 * p is at fake_window(p), and nothing is mapped anywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "test.h"

#define PAGE ((uint64_t)TWIN_PAGE_SIZE)
#define DOM0 0xffff888000000000ull
/* Distance of pages with the same table index. */
#define ALIAS (TWIN_STLB_ENTRIES * PAGE)

static struct twin_stlb_entry stlb[TWIN_STLB_ENTRIES] __attribute__((aligned(4096)));
static struct twin_node nodes[64];
static struct twin_instance instance;
static struct twin_cpu *cpu;
static struct {
	unsigned int maps, unmaps, resolves;
	uint64_t last_unmapped;
	int refusal;
} fake;

static uint64_t fake_window(uint64_t page)
{
	return 0x700000000000ull + ((page >> TWIN_PAGE_SHIFT) & 0xffffff) * 3 * PAGE;
}

static int fake_map(struct twin_instance *self, uint64_t page, uint64_t *mapped)
{
	(void)self;
	if (fake.refusal)
		return fake.refusal;
	if (page < DOM0)
		return TWIN_REFUSED_NOT_DOM0;
	fake.maps++;
	*mapped = fake_window(page);
	return TWIN_MAPPED;
}

static void fake_unmap(struct twin_instance *self, uint64_t page, uint64_t mapped)
{
	(void)self;
	CHECK_EQUAL(mapped, fake_window(page));
	fake.unmaps++;
	fake.last_unmapped = page;
}

static uint64_t fake_resolve(struct twin_instance *self, uint64_t vm)
{
	(void)self;
	fake.resolves++;
	return vm >> 63 ? vm ^ 0x1234567 : 0;
}

static uint32_t fake_in(struct twin_instance *self, uint16_t port, uint32_t size)
{
	(void)self;
	return port * 16 + size;
}

static uint32_t written;

static void fake_out(struct twin_instance *self, uint16_t port, uint32_t size, uint32_t value)
{
	(void)self;
	(void)port;
	(void)size;
	written = value;
}

static const struct twin_platform_ops ops = {
	.map_window = fake_map,
	.unmap_window = fake_unmap,
	.resolve_upcall = fake_resolve,
	.port_in = fake_in,
	.port_out = fake_out,
};
static const struct twin_port_range ports[] = {
	{ 0x60, 0x64 }, { 0x65, 0x66 }, { 0xfffe, 0xffff },
};

static void set_up_scheme(uint32_t scheme, uint32_t node_count)
{
	const struct twin_instance_config config = {
		.scheme = scheme, .stlb = stlb, .nodes = nodes, .node_count = node_count,
		.ports = ports, .port_count = 3, .ops = &ops, .vector_free = 1,
	};

	memset(&fake, 0, sizeof(fake));
	memset(stlb, 0xa5, sizeof(stlb));
	CHECK_EQUAL(twin_instance_init(&instance, &config), TWIN_OK);
	CHECK_EQUAL(twin_cpu_init(cpu), TWIN_OK);
	cpu->instance = &instance;
}

static void set_up(void)
{
	set_up_scheme(TWIN_SCHEME_STLB, 64);
}

/* The fast path of the emitted sequences; false for a miss. */
static bool fast_path(uint32_t scheme, uint64_t va, uint64_t *translated)
{
	uint64_t offset = (va >> TWIN_STLB_INDEX_SHIFT) & TWIN_STLB_INDEX_MASK;
	const struct twin_stlb_entry *entry =
		(const struct twin_stlb_entry *)((const char *)stlb + offset);

	if (scheme == TWIN_SCHEME_PAPER) {
		*translated = va ^ entry->xlate;
		return (va & -PAGE) == entry->tag;
	}
	*translated = va - entry->tag + entry->xlate;
	return va - entry->tag <= PAGE - 1;
}

static uint64_t translate(uint64_t va)
{
	return twin_slow_path(cpu, va, 0x5173);
}

static uint64_t expected(uint64_t va)
{
	return fake_window(va & -PAGE) + (va & (PAGE - 1));
}

/* ---- ABI --------------------------------------------------------------- */

static void abi_tables_are_complete_and_end(void)
{
	CHECK_EQUAL(twin_abi_constants_count, 44);
	CHECK(!twin_abi_constants[twin_abi_constants_count].name);
	CHECK(!twin_abi_names[twin_abi_names_count].name);
	CHECK(!strcmp(twin_abi_constants[26].name, "CONTEXT"));
	CHECK_EQUAL(twin_abi_constants[26].value, 0xe000);
	CHECK_EQUAL(TWIN_FS_BASE_FROM_TOP, -0x1fff);
}

static void entries_are_found_by_name(void)
{
	unsigned int n = 0;

	while (twin_entry_points[n].name)
		n++;
	CHECK_EQUAL(n, 15 + 1 + 6 + 4);
	CHECK(twin_entry_address("twin_slow_r15"));
	CHECK(twin_entry_address("twin_slow_r1") == 0);
	CHECK(twin_entry_address("twin_slow_rsp") == 0);
	CHECK(twin_entry_address("twin_import_entry") == 0);
	CHECK(twin_entry_address("twin_slow_rax") != twin_entry_address("twin_slow_rcx"));
}

static void bad_configurations_are_refused(void)
{
	static const struct twin_platform_ops no_map = { 0 };
	const struct twin_instance_config good = { .stlb = stlb, .ops = &ops, .vector_free = 1 };
	struct twin_instance_config bad;

	bad = good;
	bad.scheme = 2;
	CHECK_EQUAL(twin_instance_init(&instance, &bad), TWIN_INVALID);
	bad = good;
	bad.stlb = (struct twin_stlb_entry *)((char *)stlb + 16);
	CHECK_EQUAL(twin_instance_init(&instance, &bad), TWIN_INVALID);
	bad = good;
	bad.ops = &no_map;
	CHECK_EQUAL(twin_instance_init(&instance, &bad), TWIN_INVALID);
	bad = good;
	bad.vector_free = 0;	/* without operations to save vector state */
	CHECK_EQUAL(twin_instance_init(&instance, &bad), TWIN_INVALID);
	bad = good;
	bad.node_count = 1;
	CHECK_EQUAL(twin_instance_init(&instance, &bad), TWIN_INVALID);
	CHECK_EQUAL(twin_cpu_init((struct twin_cpu *)((char *)cpu + 8)), TWIN_INVALID);
}

/* ---- The table --------------------------------------------------------- */

static void an_empty_table_matches_nothing(uint32_t scheme)
{
	uint64_t page, translated;

	set_up_scheme(scheme, 64);
	for (page = 0; page < 2 * ALIAS; page += PAGE) {
		CHECK(!fast_path(scheme, page, &translated));
		CHECK(!fast_path(scheme, page + PAGE - 1, &translated));
		CHECK(!fast_path(scheme, DOM0 + page, &translated));
		CHECK(!fast_path(scheme, -page - 1, &translated));
	}
}

static void an_empty_stlb_table_matches_nothing(void)
{
	an_empty_table_matches_nothing(TWIN_SCHEME_STLB);
}

static void an_empty_paper_table_matches_nothing(void)
{
	an_empty_table_matches_nothing(TWIN_SCHEME_PAPER);
}

static void a_filled_entry_serves_the_fast_path(uint32_t scheme)
{
	uint64_t va = DOM0 + 0x123456, translated;

	set_up_scheme(scheme, 64);
	CHECK(!fast_path(scheme, va, &translated));
	CHECK_EQUAL(translate(va), expected(va));
	CHECK(fast_path(scheme, va, &translated));
	CHECK_EQUAL(translated, expected(va));
	CHECK(fast_path(scheme, va | 0xfff, &translated));
	CHECK_EQUAL(translated, expected(va | 0xfff));
	CHECK(!fast_path(scheme, (va | 0xfff) + 1, &translated));
	CHECK(!fast_path(scheme, (va & -PAGE) - 1, &translated));
	CHECK(!fast_path(scheme, va + ALIAS, &translated));
	CHECK_EQUAL(fake.maps, 1);
}

static void a_filled_stlb_entry_serves_the_fast_path(void)
{
	a_filled_entry_serves_the_fast_path(TWIN_SCHEME_STLB);
}

static void a_filled_paper_entry_serves_the_fast_path(void)
{
	a_filled_entry_serves_the_fast_path(TWIN_SCHEME_PAPER);
}

static void a_page_is_mapped_once(void)
{
	set_up();
	CHECK_EQUAL(translate(DOM0 + 5), expected(DOM0 + 5));
	CHECK_EQUAL(translate(DOM0 + 9), expected(DOM0 + 9));
	CHECK_EQUAL(fake.maps, 1);
	CHECK_EQUAL(instance.statistics.fills, 1);
	CHECK_EQUAL(instance.statistics.collisions, 0);
}

static void the_last_page_can_be_mapped(void)
{
	uint64_t translated;

	set_up();
	CHECK_EQUAL(translate(UINT64_MAX), expected(UINT64_MAX));
	CHECK(fast_path(TWIN_SCHEME_STLB, UINT64_MAX, &translated));
	CHECK(!fast_path(TWIN_SCHEME_STLB, 0, &translated));
}

static void colliding_pages_are_chained_and_never_replace(void)
{
	uint64_t translated, i;
	struct twin_stlb_entry before;

	set_up();
	translate(DOM0);
	before = stlb[0];
	for (i = 1; i < 40; i++)
		CHECK_EQUAL(translate(DOM0 + i * ALIAS + i), expected(DOM0 + i * ALIAS + i));
	for (i = 1; i < 40; i++)
		CHECK_EQUAL(translate(DOM0 + i * ALIAS + i), expected(DOM0 + i * ALIAS + i));
	CHECK_EQUAL(fake.maps, 40);
	CHECK_EQUAL(instance.statistics.collisions, 2 * 39);
	CHECK(!memcmp(&before, &stlb[0], sizeof(before)));
	CHECK(fast_path(TWIN_SCHEME_STLB, DOM0 + 8, &translated));
}

static void a_refused_page_aborts_and_leaves_nothing(void)
{
	const struct twin_abort_report *report;
	uint64_t translated;

	set_up();
	cpu->entry_function = 0xe4;
	CHECK(!twin_instance_report(&instance));
	CHECK_EQUAL(translate(0x12345), 0);
	CHECK(!fast_path(TWIN_SCHEME_STLB, 0x12345, &translated));
	report = twin_instance_report(&instance);
	CHECK(report);
	CHECK_EQUAL(report->kind, TWIN_ABORT_ACCESS);
	CHECK_EQUAL(report->reason, TWIN_REFUSED_NOT_DOM0);
	CHECK_EQUAL(report->address, 0x12345);
	CHECK_EQUAL(report->rip, 0x5173);
	CHECK_EQUAL(report->entry_function, 0xe4);
	CHECK_EQUAL(instance.nodes_used, 1);
	CHECK_EQUAL(instance.free_node, 1);

	/* The dead instance translates nothing, and keeps the first report. */
	CHECK_EQUAL(translate(DOM0), 0);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_DEAD);
	CHECK_EQUAL(twin_instance_report(&instance)->address, 0x12345);
	CHECK_EQUAL(instance.statistics.aborts, 2);
}

static void used_up_nodes_abort_as_resources(void)
{
	set_up_scheme(TWIN_SCHEME_STLB, 2);
	CHECK(translate(DOM0));
	CHECK(translate(DOM0 + PAGE));
	CHECK_EQUAL(translate(DOM0 + 2 * PAGE), 0);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_RESOURCES);
	CHECK_EQUAL(cpu->report.reason, TWIN_REFUSED_NO_NODE);
}

static void used_up_windows_abort_as_resources(void)
{
	set_up();
	fake.refusal = TWIN_REFUSED_NO_SPACE;
	CHECK_EQUAL(translate(DOM0), 0);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_RESOURCES);
}

static void only_the_own_stack_translates_to_itself(void)
{
	uint64_t block = (uint64_t)cpu - TWIN_STACK_CONTEXT, translated;

	set_up();
	CHECK_EQUAL(translate(block + TWIN_STACK_LOW), block + TWIN_STACK_LOW);
	CHECK_EQUAL(translate(block + TWIN_STACK_HIGH - 1), block + TWIN_STACK_HIGH - 1);
	CHECK(!fast_path(TWIN_SCHEME_STLB, block + TWIN_STACK_LOW, &translated));
	CHECK_EQUAL(fake.maps, 0);
	CHECK_EQUAL(translate(block + TWIN_STACK_LOW - 1), 0);
	set_up();
	CHECK_EQUAL(translate(block + TWIN_STACK_HIGH), 0);
	set_up();
	CHECK_EQUAL(translate((uint64_t)cpu), 0);
	set_up();
	CHECK_EQUAL(translate(block + TWIN_STACK_BLOCK + TWIN_STACK_LOW), 0);
}

/* ---- When no CPU is inside --------------------------------------------- */

static void make_hot(uint64_t va)
{
	unsigned int i;

	for (i = 0; i < TWIN_PROMOTE_HITS; i++)
		translate(va);
}

static void a_hot_chained_page_is_promoted_only_at_rest(void)
{
	uint64_t translated;

	set_up();
	twin_instance_hold(&instance);
	translate(DOM0);
	make_hot(DOM0 + ALIAS);
	CHECK(instance.maintain);
	twin_instance_hold(&instance);		/* a second CPU enters: no rest */
	CHECK(fast_path(TWIN_SCHEME_STLB, DOM0, &translated));
	twin_instance_release(&instance);
	CHECK(fast_path(TWIN_SCHEME_STLB, DOM0, &translated));
	twin_instance_release(&instance);

	twin_instance_hold(&instance);		/* the first to enter after all left */
	CHECK(!instance.maintain);
	CHECK(!fast_path(TWIN_SCHEME_STLB, DOM0, &translated));
	CHECK(fast_path(TWIN_SCHEME_STLB, DOM0 + ALIAS + 1, &translated));
	CHECK_EQUAL(translated, expected(DOM0 + ALIAS + 1));
	CHECK_EQUAL(translate(DOM0 + 1), expected(DOM0 + 1));
	CHECK_EQUAL(instance.statistics.promotions, 1);
	CHECK_EQUAL(fake.maps, 2);
	twin_instance_release(&instance);
}

static void the_hottest_page_is_promoted(void)
{
	uint64_t translated;

	set_up();
	translate(DOM0);
	make_hot(DOM0 + ALIAS);
	make_hot(DOM0 + 2 * ALIAS);
	translate(DOM0 + 2 * ALIAS);
	make_hot(DOM0 + 7 * PAGE);		/* in the table: not contested */
	twin_instance_hold(&instance);
	CHECK(fast_path(TWIN_SCHEME_STLB, DOM0 + 2 * ALIAS, &translated));
	CHECK_EQUAL(instance.statistics.promotions, 1);
	twin_instance_release(&instance);
}

static void unmapping_waits_for_the_last_cpu_to_leave(void)
{
	uint64_t translated;

	set_up();
	translate(DOM0);
	twin_instance_hold(&instance);
	CHECK_EQUAL(twin_unmap(&instance, DOM0, 1, 0), TWIN_BUSY);
	CHECK_EQUAL(twin_unmap(&instance, DOM0, 1, 100), TWIN_BUSY);
	CHECK(fast_path(TWIN_SCHEME_STLB, DOM0, &translated));
	twin_instance_release(&instance);
	CHECK_EQUAL(twin_unmap(&instance, DOM0 + 1, 1, 0), TWIN_INVALID);
	CHECK_EQUAL(twin_unmap(&instance, DOM0, 1, 0), TWIN_OK);
	CHECK(!fast_path(TWIN_SCHEME_STLB, DOM0, &translated));
	CHECK_EQUAL(fake.unmaps, 1);
	CHECK_EQUAL(instance.gate.word, 0);
}

static void unmapping_takes_every_window_that_shows_the_page(void)
{
	uint64_t translated;

	set_up();
	translate(DOM0);		/* shows 0 and 1, and what is before */
	translate(DOM0 + 1 * PAGE);	/* shows 0 to 2 */
	translate(DOM0 + 2 * PAGE);	/* shows 1 to 3 */
	translate(DOM0 + 3 * PAGE);	/* shows 2 to 4 */
	translate(DOM0 + 4 * PAGE);	/* shows 3 to 5 */
	translate(DOM0 + ALIAS + 2 * PAGE);
	CHECK_EQUAL(twin_unmap(&instance, DOM0 + 2 * PAGE, 1, 0), TWIN_OK);
	CHECK_EQUAL(fake.unmaps, 3);
	CHECK(fast_path(TWIN_SCHEME_STLB, DOM0, &translated));
	CHECK(!fast_path(TWIN_SCHEME_STLB, DOM0 + 1 * PAGE, &translated));
	CHECK(!fast_path(TWIN_SCHEME_STLB, DOM0 + 2 * PAGE, &translated));
	CHECK(!fast_path(TWIN_SCHEME_STLB, DOM0 + 3 * PAGE, &translated));
	CHECK(fast_path(TWIN_SCHEME_STLB, DOM0 + 4 * PAGE, &translated));

	/* The chained page takes the entry that became free. */
	CHECK_EQUAL(translate(DOM0 + ALIAS + 2 * PAGE), expected(DOM0 + ALIAS + 2 * PAGE));
	CHECK(fast_path(TWIN_SCHEME_STLB, DOM0 + ALIAS + 2 * PAGE, &translated));
	CHECK_EQUAL(fake.maps, 6);

	/* And unmapped pages are mapped again. */
	CHECK_EQUAL(translate(DOM0 + PAGE), expected(DOM0 + PAGE));
	CHECK_EQUAL(fake.maps, 7);
}

static void unmapping_the_first_page_takes_the_last(void)
{
	set_up();
	translate(UINT64_MAX);
	CHECK_EQUAL(twin_unmap(&instance, 0, 1, 0), TWIN_OK);
	CHECK_EQUAL(fake.unmaps, 1);
	CHECK_EQUAL(fake.last_unmapped, -PAGE);
}

static void flushing_returns_every_node(void)
{
	unsigned int i, round;

	set_up();
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 64; i++)
			CHECK(translate(DOM0 + i * (i % 2 ? PAGE : ALIAS)));
		CHECK_EQUAL(twin_flush(&instance, 0), TWIN_OK);
	}
	CHECK_EQUAL(fake.unmaps, fake.maps);
	CHECK_EQUAL(fake.maps, 3 * 64);
	CHECK_EQUAL(instance.nodes_used, 64);
	an_empty_table_matches_nothing(TWIN_SCHEME_STLB);
}

static void a_large_range_spares_its_neighbours(void)
{
	set_up();
	translate(DOM0);
	translate(DOM0 + 2 * PAGE);
	translate(DOM0 + 3 * ALIAS);
	translate(DOM0 + 3 * ALIAS + PAGE);
	CHECK_EQUAL(twin_unmap(&instance, DOM0 + 2 * PAGE, 3 * TWIN_STLB_ENTRIES - 2, 0), TWIN_OK);
	CHECK_EQUAL(fake.unmaps, 2);
	translate(DOM0);
	translate(DOM0 + 3 * ALIAS + PAGE);
	CHECK_EQUAL(fake.maps, 4);
}

static void quiescing_excludes_a_second_closer(void)
{
	set_up();
	CHECK_EQUAL(twin_instance_quiesce(&instance, 0), TWIN_OK);
	CHECK_EQUAL(twin_instance_quiesce(&instance, 10), TWIN_BUSY);
	CHECK_EQUAL(twin_unmap(&instance, DOM0, 1, 10), TWIN_BUSY);
	twin_instance_resume(&instance);
	CHECK_EQUAL(twin_unmap(&instance, DOM0, 1, 10), TWIN_OK);
}

/* ---- Calls ------------------------------------------------------------- */

static const struct twin_codemap_entry codemap[] = {
	{ 0x1000, 0xa000 }, { 0x1010, 0xa100 }, { 0x1013, 0xa200 }, { 0x401000, 0xa300 },
};

/* The result of twin_stlb_call's fast path, or 0. */
static uint64_t cached(uint64_t vm)
{
	const struct twin_call_entry *entry = &instance.call_cache[twin_call_index(vm)];

	return entry->vm == vm ? entry->hyp : 0;
}

static void the_codemap_is_exact(void)
{
	set_up();
	CHECK_EQUAL(twin_instance_set_codemap(&instance, codemap, 4), TWIN_OK);
	CHECK_EQUAL(twin_call_lookup(&instance, 0x1000), 0xa000);
	CHECK_EQUAL(twin_call_lookup(&instance, 0x1010), 0xa100);
	CHECK_EQUAL(twin_call_lookup(&instance, 0x1013), 0xa200);
	CHECK_EQUAL(twin_call_lookup(&instance, 0x401000), 0xa300);
	CHECK_EQUAL(twin_call_lookup(&instance, 0x1001), 0);
	CHECK_EQUAL(twin_call_lookup(&instance, 0xfff), 0);
	CHECK_EQUAL(twin_call_lookup(&instance, 0x401001), 0);
	CHECK_EQUAL(twin_call_lookup(&instance, 0), 0);
}

static void an_unsorted_codemap_is_refused(void)
{
	const struct twin_codemap_entry twice[] = { { 1, 2 }, { 1, 3 } };
	const struct twin_codemap_entry falling[] = { { 2, 2 }, { 1, 3 } };

	set_up();
	CHECK_EQUAL(twin_instance_set_codemap(&instance, twice, 2), TWIN_INVALID);
	CHECK_EQUAL(twin_instance_set_codemap(&instance, falling, 2), TWIN_INVALID);
	CHECK_EQUAL(twin_instance_set_codemap(&instance, NULL, 1), TWIN_INVALID);
	CHECK_EQUAL(twin_instance_set_codemap(&instance, NULL, 0), TWIN_OK);
	CHECK_EQUAL(twin_call_lookup(&instance, 1), 0);
}

static void an_empty_call_cache_matches_nothing(void)
{
	uint64_t vm;

	set_up();
	for (vm = 0; vm < 1 << 21; vm++)
		if (instance.call_cache[twin_call_index(vm)].vm == vm)
			CHECK(false);
}

static void dom0_functions_become_upcalls(void)
{
	uint64_t vm = 0xffffffff81234560ull;

	set_up();
	CHECK_EQUAL(twin_call_slow(cpu, vm, 0x5173), vm ^ 0x1234567);
	CHECK_EQUAL(cached(vm), vm ^ 0x1234567);
	CHECK_EQUAL(fake.resolves, 1);
}

static void an_unknown_target_aborts(void)
{
	set_up();
	twin_instance_set_codemap(&instance, codemap, 4);
	CHECK_EQUAL(twin_call_slow(cpu, 0x1001, 0x5173), 0);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_CALL);
	CHECK_EQUAL(cpu->report.address, 0x1001);
	CHECK_EQUAL(cpu->report.rip, 0x5173);
	CHECK_EQUAL(twin_call_slow(cpu, 0x1000, 0x5173), 0);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_DEAD);
}

static void colliding_targets_do_not_replace_until_rest(void)
{
	/* The next address with the index of the first. */
	uint64_t first = 0xffffffff81000000ull, second = first + 1;
	unsigned int i;

	while (twin_call_index(second) != twin_call_index(first))
		second++;
	set_up();
	twin_instance_hold(&instance);
	twin_call_slow(cpu, first, 0);
	for (i = 0; i < TWIN_CALL_FLUSH; i++)
		CHECK_EQUAL(twin_call_slow(cpu, second, 0), second ^ 0x1234567);
	CHECK(cached(first));
	CHECK(!cached(second));
	twin_instance_release(&instance);
	twin_instance_hold(&instance);
	CHECK(!cached(first));
	twin_call_slow(cpu, second, 0);
	CHECK(cached(second));
	twin_instance_release(&instance);
}

/* ---- Ports, faults ----------------------------------------------------- */

static void ports_are_permitted_whole_and_by_one_range(void)
{
	set_up();
	CHECK(twin_port_allowed(&instance, 0x60, 1));
	CHECK(twin_port_allowed(&instance, 0x61, 4));
	CHECK(!twin_port_allowed(&instance, 0x62, 4));
	CHECK(!twin_port_allowed(&instance, 0x64, 2));	/* 0x64 and 0x65: two ranges */
	CHECK(!twin_port_allowed(&instance, 0x5f, 1));
	CHECK(!twin_port_allowed(&instance, 0x5f, 2));
	CHECK(twin_port_allowed(&instance, 0xfffe, 2));
	CHECK(!twin_port_allowed(&instance, 0xffff, 2));	/* no wrapping round */
}

static void a_refused_port_aborts(void)
{
	set_up();
	CHECK_EQUAL(twin_port_in(cpu, 0x60, 2, 0x5173), 0x602);
	CHECK_EQUAL(twin_port_out(cpu, 0x60, 2, 0x123456, 0x5173), 0);
	CHECK_EQUAL(written, 0x3456);
	CHECK(twin_port_in(cpu, 0x70, 1, 0x5173) < 0);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_PORT);
	CHECK_EQUAL(cpu->report.address, 0x70);
	CHECK_EQUAL(cpu->report.reason, 1);
	CHECK(twin_port_out(cpu, 0x60, 1, 0, 0x5173) != 0);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_DEAD);
}

static void faults_are_the_drivers_only_on_its_stack_in_its_text(void)
{
	uint64_t block = (uint64_t)cpu - TWIN_STACK_CONTEXT;
	uint64_t rsp = block + 0x3000, entry = (uint64_t)twin_entry_text_start;

	set_up();
	CHECK_EQUAL(twin_instance_add_text(&instance, 0x10000, 0x20000), TWIN_OK);
	cpu->in_driver = 1;
	CHECK(twin_fault_is_drivers(cpu, 0x10000, rsp, false));
	CHECK(twin_fault_is_drivers(cpu, 0x1ffff, block, false));
	CHECK(twin_fault_is_drivers(cpu, entry, rsp, false));
	CHECK(twin_fault_is_drivers(cpu, 0x20000, rsp, true));
	CHECK(!twin_fault_is_drivers(cpu, 0x20000, rsp, false));
	CHECK(!twin_fault_is_drivers(cpu, (uint64_t)twin_entry_text_end, rsp, false));
	CHECK(!twin_fault_is_drivers(cpu, 0x10000, block - 1, false));
	CHECK(!twin_fault_is_drivers(cpu, 0x10000, block + TWIN_STACK_BLOCK, false));
	cpu->in_driver = 0;
	CHECK(!twin_fault_is_drivers(cpu, 0x10000, rsp, true));

	twin_fault_record(cpu, 0x10000, rsp, block + TWIN_STACK_LOW - 8, 14);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_STACK);
	twin_fault_record(cpu, 0x10000, rsp, block + TWIN_STACK_HIGH, 14);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_FAULT);
	CHECK_EQUAL(cpu->report.reason, 14);
}

static void entering_follows_the_rules(void)
{
	static struct twin_instance other;
	uint64_t args[6] = { 0 }, result = 7;

	set_up();
	CHECK_EQUAL(twin_enter(cpu, &instance, 0, args, &result), TWIN_BUSY);	/* runs */
	CHECK_EQUAL(twin_enter(cpu, &other, 0, args, &result), TWIN_BUSY);
	cpu->may_nest = 1;
	CHECK_EQUAL(twin_enter(cpu, &other, 0, args, &result), TWIN_BUSY);
	cpu->saved.rsp = cpu->driver_low + TWIN_PAGE_SIZE;
	CHECK_EQUAL(twin_enter(cpu, &instance, 0, args, &result), TWIN_NO_STACK);
	cpu->saved.rsp = cpu->driver_low + 16;
	CHECK_EQUAL(twin_enter(cpu, &instance, 0, args, &result), TWIN_NO_STACK);
	cpu->instance = NULL;
	instance.dead = 2;
	CHECK_EQUAL(twin_enter(cpu, &instance, 0, args, &result), TWIN_DEAD);
	CHECK_EQUAL(instance.gate.word, 0);
	CHECK_EQUAL(result, 7);
}

int main(void)
{
	char *block = aligned_alloc(TWIN_STACK_BLOCK, TWIN_STACK_BLOCK);

	cpu = (struct twin_cpu *)(block + TWIN_STACK_CONTEXT);
	RUN(abi_tables_are_complete_and_end);
	RUN(entries_are_found_by_name);
	RUN(bad_configurations_are_refused);
	RUN(an_empty_stlb_table_matches_nothing);
	RUN(an_empty_paper_table_matches_nothing);
	RUN(a_filled_stlb_entry_serves_the_fast_path);
	RUN(a_filled_paper_entry_serves_the_fast_path);
	RUN(a_page_is_mapped_once);
	RUN(the_last_page_can_be_mapped);
	RUN(colliding_pages_are_chained_and_never_replace);
	RUN(a_refused_page_aborts_and_leaves_nothing);
	RUN(used_up_nodes_abort_as_resources);
	RUN(used_up_windows_abort_as_resources);
	RUN(only_the_own_stack_translates_to_itself);
	RUN(a_hot_chained_page_is_promoted_only_at_rest);
	RUN(the_hottest_page_is_promoted);
	RUN(unmapping_waits_for_the_last_cpu_to_leave);
	RUN(unmapping_takes_every_window_that_shows_the_page);
	RUN(unmapping_the_first_page_takes_the_last);
	RUN(flushing_returns_every_node);
	RUN(a_large_range_spares_its_neighbours);
	RUN(quiescing_excludes_a_second_closer);
	RUN(the_codemap_is_exact);
	RUN(an_unsorted_codemap_is_refused);
	RUN(an_empty_call_cache_matches_nothing);
	RUN(dom0_functions_become_upcalls);
	RUN(an_unknown_target_aborts);
	RUN(colliding_targets_do_not_replace_until_rest);
	RUN(ports_are_permitted_whole_and_by_one_range);
	RUN(a_refused_port_aborts);
	RUN(faults_are_the_drivers_only_on_its_stack_in_its_text);
	RUN(entering_follows_the_rules);
	free(block);
	return test_summary();
}
