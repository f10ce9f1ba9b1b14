// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Preallocated pools of dom0 objects (paper, 4.3).
 *
 * dom0's and the hypervisor's instances share driver rings, so a CPU frees objects
 * that another has allocated. Each CPU takes from and gives to a magazine of its own,
 * and only every 32nd object needs the pool's lock. Each object has a byte for its
 * state: it detects a second free, in either instance, before an object gets two
 * owners.
 *
 * Buffers are parts of pages that the pool never gives back. Those pages'
 * reference counts are far above what dom0 could drop, so dom0's own free
 * never releases one: the paper's reference counter trick.
 */
#include "internal.h"
#include <linux/gfp.h>
#include <linux/mm.h>

#define HOT_BATCH	(HOT_MAGAZINE / 2)
#define HOT_PAGE_BIAS	(1 << 20)	/* above one: dom0's puts never reach 0 */

struct hot_pool hot_pools[HOT_POOLS];
struct hot_cpu hot_cpus[HOT_CPUS];

/*
 * This CPU's, and a pool, as addresses that the compiler does not know to be parts of arrays: else it
 * computes each from the arrays' beginnings again, and each is then cut anew when this is rewritten.
 */
static __always_inline struct hot_magazine *hot_magazine_of(enum hot_pool_id id)
{
	struct hot_magazine *magazine = &hot_cpus[hot_cpu_id()].magazine[id];

	OPTIMIZER_HIDE_VAR(magazine);
	return magazine;
}

static __always_inline struct hot_pool *hot_pool_of(enum hot_pool_id id)
{
	struct hot_pool *pool = &hot_pools[id];

	OPTIMIZER_HIDE_VAR(pool);
	return pool;
}

/* Moves up to a batch from the pool to an empty magazine; whether any came. Rare, as is a flush: inline they
 * would have every call save registers. */
static noinline bool hot_pool_refill(struct hot_pool *pool, struct hot_magazine *magazine)
{
	u32 n = 0;

	hot_lock(&pool->lock, hot_cpu_id());
	while (n < HOT_BATCH && pool->free)
		magazine->index[n++] = pool->stack[--pool->free];
	hot_unlock(&pool->lock);
	magazine->count = n;
	return n != 0;
}

/* Moves the coldest batch of a full magazine to the pool. */
static noinline void hot_pool_flush(struct hot_pool *pool, struct hot_magazine *magazine)
{
	u32 i;

	hot_lock(&pool->lock, hot_cpu_id());
	for (i = 0; i < HOT_BATCH && pool->free < pool->count; i++)
		pool->stack[pool->free++] = magazine->index[i];
	hot_unlock(&pool->lock);
	for (i = 0; i < HOT_BATCH; i++)
		magazine->index[i] = magazine->index[HOT_BATCH + i];
	magazine->count = HOT_BATCH;
}

void *hot_pool_get(enum hot_pool_id id)
{
	struct hot_magazine *magazine = hot_magazine_of(id);
	struct hot_pool *pool = hot_pool_of(id);
	u32 index;

	if (unlikely(!magazine->count) && !hot_pool_refill(pool, magazine))
		return NULL;
	index = magazine->index[--magazine->count];
	WRITE_ONCE(pool->state[index], HOT_OBJECT_BUSY);
	return hot_pool_object(pool, index);
}

void hot_pool_put(enum hot_pool_id id, u32 index)
{
	struct hot_magazine *magazine = hot_magazine_of(id);
	struct hot_pool *pool = hot_pool_of(id);
	u32 count;

	if (unlikely(magazine->count == HOT_MAGAZINE))
		hot_pool_flush(pool, magazine);
	smp_store_release(&pool->state[index], HOT_OBJECT_FREE);
	count = magazine->count;
	magazine->index[count] = index;
	magazine->count = count + 1;
}

/*
 * Rebuilds the free stack, empties all magazines. HELD objects stay out; the
 * caller has freed what the others contained.
 */
u32 hot_pool_reset(enum hot_pool_id id)
{
	struct hot_pool *pool = &hot_pools[id];
	u32 i, taken = 0;

	for (i = 0; i < HOT_CPUS; i++)
		hot_cpus[i].magazine[id].count = 0;
	pool->lock = 0;
	pool->free = 0;
	for (i = pool->count; i-- > 0;) {
		if (pool->state[i] == HOT_OBJECT_HELD)
			continue;
		taken += pool->state[i] != HOT_OBJECT_FREE;
		pool->state[i] = HOT_OBJECT_FREE;
		pool->stack[pool->free++] = i;
	}
	return taken;
}

/* ---- Buffers ------------------------------------------------------------ */

/* sk_buffs that dom0 freed may hold the missing buffers. */
static void *hot_buffer_reclaim(enum hot_pool_id id)
{
	void *buffer = hot_skb_reclaim() ? hot_pool_get(id) : NULL;

	if (!buffer)
		hot_count(HOT_COUNT_BUFFER_EXHAUSTED);
	return buffer;
}

void *hot_buffer_get(u32 size)
{
	enum hot_pool_id id = size <= 1u << hot_pools[HOT_POOL_BUFFER].shift ? HOT_POOL_BUFFER :
									     HOT_POOL_LARGE;
	void *buffer;

	if (unlikely(size > 1u << hot_pools[id].shift))
		return NULL;
	buffer = hot_pool_get(id);
	return likely(buffer) ? buffer : hot_buffer_reclaim(id);
}

u32 hot_buffer_size(const void *head)
{
	u32 index;
	enum hot_pool_id id = hot_buffer_find(head, &index);

	if (id == HOT_POOLS || hot_pool_object(&hot_pools[id], index) != head)
		return 0;
	return 1u << hot_pools[id].shift;
}

/* A reference to a page that is not the pool's: dom0's page allocator decides. */
static void hot_page_put(struct page *page)
{
	unsigned long head = READ_ONCE(page->compound_head);

	if (head & 1)
		page = (struct page *)(head - 1);
	if (atomic_dec_and_test(&page->_refcount))
		__folio_put((struct folio *)page);	/* upcall */
}

void hot_buffer_put_found(enum hot_pool_id id, u32 index)
{
	if (likely(hot_pool_change(hot_pool_of(id), index, HOT_OBJECT_BUSY, HOT_OBJECT_CLAIMED)))
		hot_pool_put(id, index);
	else
		hot_count(HOT_COUNT_BAD_FREE);
}

void hot_buffer_put(void *address)
{
	u32 index;
	enum hot_pool_id id = hot_buffer_find(address, &index);

	if (likely(id != HOT_POOLS)) {
		hot_buffer_put_found(id, index);
		return;
	}
	hot_count(HOT_COUNT_FOREIGN_FREE);
	hot_page_put(virt_to_page(address));
}

/* Called by netdev_alloc_frag(). The mask requires no more alignment than a pool has. */
void *__netdev_alloc_frag_align(unsigned int fragsz, unsigned int align_mask)
{
	return hot_buffer_get(fragsz);
}

void page_frag_free(void *addr)
{
	hot_buffer_put(addr);
}

/* ---- Setting up, in dom0 ------------------------------------------------ */

/* 2^order pages in one piece, zeroed. */
void *hot_pages(u32 order)
{
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN, order);
	void *pages;

	if (!page)
		return NULL;
	pages = page_to_virt(page);
	memset(pages, 0, PAGE_SIZE << order);
	return pages;
}

/* As many objects as dom0 has contiguous memory for, `count` at most; unless an earlier setup has them. */
int hot_pool_setup(enum hot_pool_id id, u32 shift, u32 count)
{
	struct hot_pool *pool = &hot_pools[id];
	void *base = NULL;
	u32 i, order;

	if (pool->count)
		return 0;
	for (; count << shift >= PAGE_SIZE; count /= 2) {
		order = get_order((unsigned long)count << shift);
		base = hot_pages(order);
		if (base)
			break;
	}
	if (!base)
		return -ENOMEM;
	for (i = 0; i < 1u << order; i++)
		atomic_set(&virt_to_page(base + i * PAGE_SIZE)->_refcount, HOT_PAGE_BIAS);
	pool->base = (unsigned long)base;
	pool->shift = shift;
	pool->count = count;
	hot_pool_reset(id);
	return 0;
}

void hot_buffers(struct hot_memory memory[HOT_BUFFER_POOLS])
{
	enum hot_pool_id id;

	for (id = HOT_POOL_BUFFER; id <= HOT_POOL_LARGE; id++)
		memory[id - HOT_POOL_BUFFER] = (struct hot_memory){
			.start = hot_pools[id].base,
			.bytes = (u64)hot_pools[id].count << hot_pools[id].shift,
		};
}
