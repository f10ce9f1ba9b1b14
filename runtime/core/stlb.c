// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The software translation table and the nodes that back it (paper, 4.1).
 *
 * Takes dom0 addresses that the emitted fast path did not find; gives the
 * address of the same byte in a mapped window, or refuses. A window is the
 * byte's page, the one before it and the one after it; where dom0 has no page
 * before or after, the window has a hole.
 *
 * Per CPU: the driver stack and its context. The stack's pages are translated
 * to themselves on their own CPU alone and so never enter the table, which all
 * CPUs read: an access from another CPU is refused.
 *
 * Shared: the table, and one node for each mapped window, in a chain for each
 * table index.
 *
 * Why sharing is safe. Emitted code loads an entry's tag, compares, and loads
 * the translation, without a lock. Therefore:
 *
 *   1. A free entry's tag matches no address of its index (free_tag).
 *   2. An entry is written translation first, tag second. Stores become
 *      visible in that order and loads are performed in that order (x86-TSO),
 *      so a CPU that sees the tag sees its translation.
 *   3. An entry that is not free is not written again while any CPU is inside
 *      the driver. Colliding pages stay in the chain and are answered from
 *      there. Replacing (twin_stlb_promote) and forgetting (twin_unmap) happen
 *      with the gate closed: then no CPU holds a tag or a translation, and the
 *      gate's atomics order the stores before the next entry to the driver.
 *   4. Chains grow at the head, by a release store of a finished node, under
 *      table_lock. Readers follow them without it. Nodes leave chains only
 *      with the gate closed.
 */
#include "internal.h"

/* Page of a table index other than `index`: no lookup with `index` matches. */
static uint64_t free_tag(uint32_t index)
{
	return (uint64_t)(index ^ 1) << TWIN_PAGE_SHIFT;
}

static uint64_t xlate_of(const struct twin_instance *instance, const struct twin_node *node)
{
	if (instance->scheme == TWIN_SCHEME_PAPER)
		return node->page ^ node->mapped;
	return node->mapped;
}

/* Write a free entry (table_lock held), or any entry (gate closed). */
static void publish(struct twin_instance *instance, const struct twin_node *node)
{
	struct twin_stlb_entry *entry = &instance->stlb[stlb_index(node->page)];

	__atomic_store_n(&entry->xlate, xlate_of(instance, node), __ATOMIC_RELAXED);
	__atomic_store_n(&entry->tag, node->page, __ATOMIC_RELEASE);
}

/* Gate closed. */
static void clear_entry(struct twin_instance *instance, uint32_t index)
{
	struct twin_stlb_entry *entry = &instance->stlb[index];

	__atomic_store_n(&entry->tag, free_tag(index), __ATOMIC_RELAXED);
	__atomic_store_n(&entry->xlate, 0, __ATOMIC_RELAXED);
}

void twin_stlb_init(struct twin_instance *instance)
{
	uint32_t i;

	for (i = 0; i < TWIN_STLB_ENTRIES; i++) {
		clear_entry(instance, i);
		instance->heads[i] = 0;
	}
	for (i = 0; i < TWIN_STLB_ENTRIES / 64; i++)
		instance->contested[i] = 0;
	instance->nodes_used = 0;
	instance->free_node = 0;
}

/* ---- Nodes ------------------------------------------------------------- */

static struct twin_node *node_at(const struct twin_instance *instance, uint32_t number)
{
	return number ? &instance->nodes[number - 1] : NULL;
}

static struct twin_node *first_node(const struct twin_instance *instance, uint32_t index)
{
	return node_at(instance, __atomic_load_n(&instance->heads[index], __ATOMIC_ACQUIRE));
}

static struct twin_node *find_node(const struct twin_instance *instance, uint64_t page)
{
	struct twin_node *node = first_node(instance, stlb_index(page));

	while (node && node->page != page)
		node = node_at(instance, node->next);
	return node;
}

/* table_lock held. A node in no chain, or NULL. */
static struct twin_node *take_node(struct twin_instance *instance)
{
	struct twin_node *node = node_at(instance, instance->free_node);

	if (node)
		instance->free_node = node->next;
	else if (instance->nodes_used < instance->node_count)
		node = &instance->nodes[instance->nodes_used++];
	return node;
}

static void return_node(struct twin_instance *instance, struct twin_node *node)
{
	node->next = instance->free_node;
	instance->free_node = node - instance->nodes + 1;
}

/* table_lock held. */
static void chain_node(struct twin_instance *instance, struct twin_node *node)
{
	uint32_t *head = &instance->heads[stlb_index(node->page)];

	node->next = *head;
	__atomic_store_n(head, node - instance->nodes + 1, __ATOMIC_RELEASE);
}

/* ---- Lookup and fill --------------------------------------------------- */

static bool entry_is_free(const struct twin_instance *instance, uint32_t index)
{
	return __atomic_load_n(&instance->stlb[index].tag, __ATOMIC_ACQUIRE) == free_tag(index);
}

/* table_lock held: the page has no node yet. Returns enum twin_refusal. */
static int map_page(struct twin_instance *instance, uint64_t page, struct twin_node **made)
{
	struct twin_node *node = take_node(instance);
	int refusal;

	if (!node)
		return TWIN_REFUSED_NO_NODE;
	node->page = page;
	node->hits = 0;
	refusal = instance->ops->map_window(instance, page, &node->mapped);
	if (refusal) {
		return_node(instance, node);
		return refusal;
	}
	chain_node(instance, node);
	count(&instance->statistics.fills);
	*made = node;
	return TWIN_MAPPED;
}

/* Find or make the page's node and put it in the table if its entry is free. */
static int fill(struct twin_instance *instance, uint64_t page, struct twin_node **node)
{
	int refusal = TWIN_MAPPED;

	lock(&instance->table_lock);
	*node = find_node(instance, page);
	if (!*node)
		refusal = map_page(instance, page, node);
	if (!refusal && entry_is_free(instance, stlb_index(page)))
		publish(instance, *node);
	unlock(&instance->table_lock);
	return refusal;
}

/*
 * The entry holds another page. Counts lost to races between CPUs do no harm:
 * they only delay a promotion.
 */
static void note_collision(struct twin_instance *instance, struct twin_node *node)
{
	uint32_t index = stlb_index(node->page);
	uint32_t hits = __atomic_load_n(&node->hits, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&node->hits, hits, __ATOMIC_RELAXED);
	count(&instance->statistics.collisions);
	if (hits == TWIN_PROMOTE_HITS) {
		__atomic_fetch_or(&instance->contested[index / 64], 1ull << (index % 64),
				  __ATOMIC_RELAXED);
		wish_maintenance(instance);
	}
}

/* The hyp address of a dom0 page, mapping it if need be. Returns enum twin_refusal. */
static int window_of(struct twin_instance *instance, uint64_t page, uint64_t *window)
{
	struct twin_node *node = find_node(instance, page);
	uint32_t index = stlb_index(page);

	if (!node || entry_is_free(instance, index)) {
		int refusal = fill(instance, page, &node);

		if (refusal) {
			count(&instance->statistics.refusals);
			return refusal;
		}
	}
	if (__atomic_load_n(&instance->stlb[index].tag, __ATOMIC_RELAXED) != page)
		note_collision(instance, node);
	*window = node->mapped;
	return TWIN_MAPPED;
}

/* Not inlined: what is mostly enough saves no registers for it. */
static __attribute__((noinline)) int translate_by_chain(struct twin_instance *instance,
							uint64_t va, uint64_t *mapped)
{
	uint64_t window;
	const int refusal = window_of(instance, page_of(va), &window);

	if (!refusal)
		*mapped = window + (va & PAGE_MASK);
	return refusal;
}

/* As emitted code does it; chains have the rest. */
static inline int translate_by_table(struct twin_instance *instance, uint64_t va, uint64_t *mapped)
{
	const struct twin_stlb_entry *entry = &instance->stlb[stlb_index(va)];
	uint64_t xlate;

	if (RARE(__atomic_load_n(&entry->tag, __ATOMIC_ACQUIRE) != page_of(va)))
		return translate_by_chain(instance, va, mapped);
	xlate = __atomic_load_n(&entry->xlate, __ATOMIC_RELAXED);
	*mapped = instance->scheme == TWIN_SCHEME_PAPER ? xlate ^ va : xlate + (va & PAGE_MASK);
	return TWIN_MAPPED;
}

int twin_translate(struct twin_instance *instance, uint64_t va, uint64_t *mapped)
{
	return has_window(instance) ? twin_window_translate(instance, va, mapped) :
				      translate_by_table(instance, va, mapped);
}

/* ---- The slow path ----------------------------------------------------- */

static bool on_own_stack(const struct twin_cpu *cpu, uint64_t va)
{
	return va - cpu->driver_low < cpu->driver_high - cpu->driver_low;
}

static enum twin_abort_kind kind_of_refusal(int refusal)
{
	if (refusal == TWIN_REFUSED_NO_SPACE || refusal == TWIN_REFUSED_NO_NODE)
		return TWIN_ABORT_RESOURCES;
	return TWIN_ABORT_ACCESS;
}

/*
 * Called by twin_slow_<reg>. site: return address of the call to it. Returns
 * the translation, or 0 after writing the report.
 */
uint64_t twin_slow_path(struct twin_cpu *cpu, uint64_t va, uint64_t site)
{
	uint64_t mapped;
	int refusal;

	if (is_dead(cpu->instance)) {
		twin_abort_record(cpu, TWIN_ABORT_DEAD, 0, va, site);
		return 0;
	}
	if (on_own_stack(cpu, va))
		return va;
	refusal = twin_translate(cpu->instance, va, &mapped);
	if (refusal) {
		twin_abort_record(cpu, kind_of_refusal(refusal), refusal, va, site);
		return 0;
	}
	return mapped;
}

/* ---- With the gate closed ---------------------------------------------- */

static struct twin_node *hottest(const struct twin_instance *instance, uint32_t index)
{
	struct twin_node *node, *best = NULL;

	for (node = first_node(instance, index); node; node = node_at(instance, node->next))
		if (!best || node->hits > best->hits)
			best = node;
	return best;
}

static void forget_hits(struct twin_instance *instance, uint32_t index)
{
	struct twin_node *node;

	for (node = first_node(instance, index); node; node = node_at(instance, node->next))
		node->hits = 0;
}

static void promote_in(struct twin_instance *instance, uint32_t index)
{
	struct twin_node *node = hottest(instance, index);

	if (node && node->hits >= TWIN_PROMOTE_HITS) {
		clear_entry(instance, index);
		publish(instance, node);
		count(&instance->statistics.promotions);
	}
	forget_hits(instance, index);
}

/*
 * Give each contested entry to the page of its chain with the most slow-path
 * answers. Hits of the page in the table are not counted, so two hot pages take
 * turns, at most once in TWIN_PROMOTE_HITS collisions. Gate closed.
 */
void twin_stlb_promote(struct twin_instance *instance)
{
	uint32_t word;

	for (word = 0; word < TWIN_STLB_ENTRIES / 64; word++) {
		uint64_t bits = instance->contested[word];

		instance->contested[word] = 0;
		for (; bits; bits &= bits - 1)
			promote_in(instance, word * 64 + __builtin_ctzll(bits));
	}
}

/* Windows to forget: those that begin in [first, first + pages). The 52-bit
 * page numbers wrap as addresses do. */
struct page_range {
	uint64_t first;
	uint64_t pages;
};

static bool in_range(const struct page_range *range, uint64_t page)
{
	uint64_t distance = (page - range->first) >> TWIN_PAGE_SHIFT;

	return distance < range->pages;
}

static void drop_node(struct twin_instance *instance, struct twin_node *node)
{
	uint32_t index = stlb_index(node->page);

	if (instance->stlb[index].tag == node->page)
		clear_entry(instance, index);
	if (instance->ops->unmap_window)
		instance->ops->unmap_window(instance, node->page, node->mapped);
	return_node(instance, node);
}

static void drop_in_chain(struct twin_instance *instance, uint32_t index,
			  const struct page_range *range)
{
	uint32_t *link = &instance->heads[index];

	while (*link) {
		struct twin_node *node = node_at(instance, *link);

		if (in_range(range, node->page)) {
			*link = node->next;
			drop_node(instance, node);
		} else {
			link = &node->next;
		}
	}
}

static void drop_range(struct twin_instance *instance, const struct page_range *range)
{
	uint32_t chains = range->pages < TWIN_STLB_ENTRIES ? range->pages : TWIN_STLB_ENTRIES;
	uint32_t first = stlb_index(range->first);
	uint32_t i;

	for (i = 0; i < chains; i++)
		drop_in_chain(instance, (first + i) & (TWIN_STLB_ENTRIES - 1), range);
}

static void drop_windows(struct twin_instance *instance, uint64_t first_page, uint64_t pages)
{
	const uint64_t all = 1ull << (64 - TWIN_PAGE_SHIFT);
	struct page_range range;

	/* A window shows the neighbours of its page too: begin and end one page farther. */
	range.first = page_of(first_page) - (TWIN_WINDOW_PAGES - 1) * TWIN_PAGE_SIZE;
	range.pages = pages + TWIN_WINDOW_PAGES - 1 + TWIN_BELOW / TWIN_PAGE_SIZE;
	if (pages >= all || range.pages > all)
		range.pages = all;
	drop_range(instance, &range);
}

/* Gate closed. */
void twin_instance_drop(struct twin_instance *instance, uint64_t first_page, uint64_t pages)
{
	if (!pages)
		return;
	if (has_window(instance))
		twin_window_drop(instance, page_of(first_page), pages);
	else
		drop_windows(instance, first_page, pages);
}

int twin_unmap(struct twin_instance *instance, uint64_t first_page, uint64_t pages,
	       uint64_t patience)
{
	int status;

	if (first_page & PAGE_MASK)
		return TWIN_INVALID;
	status = twin_instance_quiesce(instance, patience);
	if (status)
		return status;
	twin_instance_drop(instance, first_page, pages);
	twin_instance_resume(instance);
	return TWIN_OK;
}

int twin_flush(struct twin_instance *instance, uint64_t patience)
{
	int status = twin_instance_quiesce(instance, patience);

	if (status)
		return status;
	if (!has_window(instance))
		drop_windows(instance, 0, UINT64_MAX);
	twin_call_flush(instance);
	twin_instance_resume(instance);
	return TWIN_OK;
}
