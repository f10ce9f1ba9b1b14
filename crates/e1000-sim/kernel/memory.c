// SPDX-License-Identifier: GPL-2.0-only
/*
 * memory.c: page frames and the kernel heap.
 *
 * Frames: dom0's frames, first fit from a moving start, by a bitmap. Every frame
 * of the machine has its struct page; a guest's and a reserved frame hold a
 * reference that is never given up, so no count of the driver's frees them.
 *
 * Heap: one power of two a slab page, objects aligned to their size as kmalloc
 * promises; above half a page, whole frames. A slab page's bookkeeping lives in
 * its struct page (drawn at struct slab). Freed objects and frames are filled
 * with POISON_FREE and checked when they are given out again; the lowest freed
 * object is reused first. Twice freed, never allocated or misaligned addresses
 * are bugs.
 *
 * Contexts: any. One spin lock; nothing sleeps. Without free memory the result is
 * NULL for any gfp flags; there is nothing to reclaim.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/poison.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "shim.h"

unsigned long page_offset_base;
unsigned long vmemmap_base;
/* Kernel text has no second mapping here: __pa() of the direct map only. */
unsigned long phys_base;

/* Off for good: no device memory with struct pages, no folded vmemmap. */
DEFINE_STATIC_KEY_FALSE(devmap_managed_key);
DEFINE_STATIC_KEY_FALSE(hugetlb_optimize_vmemmap_key);

/* The smallest object is 32 bytes, so 128 bits say which are allocated. */
#define SMALLEST_SHIFT 5
#define LARGEST_SHIFT 11
#define SIZES (LARGEST_SHIFT - SMALLEST_SHIFT + 1)

/*
 * What a slab page keeps in its struct page, from `lru` on:
 *   +0  next, previous slab of the size that has free objects
 *   +16 allocated[2], a bit an object
 *   +32 used (u16), shift (u16), listed (u32)
 */
struct slab {
	struct list_head list;
	u64 allocated[2];
	u16 used;
	u16 shift;
	u32 listed;
};
static_assert(sizeof(struct slab) <= sizeof_field(struct page, lru) + 24);

static struct shim_lock memory_lock;
static unsigned long *frames_used;
static unsigned long frames_next;
static struct list_head slabs[SIZES];

static struct slab *slab_of(struct page *page)
{
	return (struct slab *)&page->lru;
}

static struct page *page_of_slab(struct slab *slab)
{
	return container_of((struct list_head *)slab, struct page, lru);
}

/* ---- Poison --------------------------------------------------------------- */

static void poison(void *address, size_t size)
{
	memset(address, POISON_FREE, size);
}

/* The offset of the first byte that was written after the free, or `size`. */
static size_t poison_damage(const void *address, size_t size)
{
	const u64 *word = address;
	const u8 *byte = address;
	size_t i;

	for (i = 0; i < size / 8; i++)
		if (word[i] != 0x0101010101010101ull * POISON_FREE)
			break;
	for (i *= 8; i < size; i++)
		if (byte[i] != POISON_FREE)
			return i;
	return size;
}

static void poison_check(const void *address, size_t size)
{
	size_t at = poison_damage(address, size);

	if (at < size)
		kernel_bug("memory: %p (%zu bytes) was written at +%zu (now %#x) after it was freed",
			   address, size, at, ((const u8 *)address)[at]);
}

/* ---- Frames --------------------------------------------------------------- */

static bool frame_taken(unsigned long frame)
{
	return frames_used[frame / 64] >> (frame % 64) & 1;
}

static void frames_mark(unsigned long frame, unsigned long count, bool used)
{
	for (; count; frame++, count--) {
		if (used)
			frames_used[frame / 64] |= 1ul << (frame % 64);
		else
			frames_used[frame / 64] &= ~(1ul << (frame % 64));
	}
}

/* First run of `count` free frames in [from, to) at a multiple of `align`; 0: none. */
static unsigned long frames_find(unsigned long from, unsigned long to, unsigned long count,
				 unsigned long align)
{
	unsigned long start = round_up(from, align), i;

	while (start + count <= to) {
		for (i = 0; i < count && !frame_taken(start + i); i++)
			;
		if (i == count)
			return start;
		start = round_up(start + i + 1, align);
	}
	return 0;
}

/* An allocated block: the head knows its length; a count of one. */
static void pages_given(struct page *page, unsigned long count)
{
	unsigned long i;

	for (i = 0; i < count; i++) {
		poison_check(page_address(page + i), PAGE_SIZE);
		memset(page + i, 0, sizeof(*page));
		page_mapcount_reset(page + i);
	}
	set_page_private(page, count);
	set_page_count(page, 1);
}

static struct page *frames_allocate_locked(unsigned long count, unsigned long align)
{
	unsigned long frame = frames_find(frames_next, boot.ram_frames, count, align);

	if (!frame)
		frame = frames_find(boot.first_free_frame, boot.ram_frames, count, align);
	if (!frame)
		return NULL;
	frames_next = frame + count;
	frames_mark(frame, count, true);
	kernel_counters.pages_free -= count;
	kernel_counters.pages_allocated += count;
	pages_given(pfn_to_page(frame), count);
	return pfn_to_page(frame);
}

/* Gives the block back that begins at `page`, whatever its count. */
static void frames_free_locked(struct page *page)
{
	unsigned long frame = page_to_pfn(page), count = page_private(page);

	if (frame < boot.first_free_frame || frame >= boot.ram_frames)
		kernel_bug("memory: frame %#lx is not dom0's to free", frame);
	if (!frame_taken(frame) || !count || frame + count > boot.ram_frames)
		kernel_bug("memory: frame %#lx is freed, but no block begins there", frame);
	poison(page_address(page), count * PAGE_SIZE);
	memset(page, 0, count * sizeof(*page));
	frames_mark(frame, count, false);
	kernel_counters.pages_free += count;
	kernel_counters.pages_allocated -= count;
}

struct page *frames_allocate(unsigned long count, unsigned long align)
{
	struct page *page;

	shim_lock(&memory_lock);
	page = frames_allocate_locked(count, align);
	shim_unlock(&memory_lock);
	return page;
}

void frames_free(struct page *page)
{
	shim_lock(&memory_lock);
	frames_free_locked(page);
	shim_unlock(&memory_lock);
}

static void make_compound(struct page *page, unsigned int order)
{
	unsigned int i;

	__SetPageHead(page);
	for (i = 1; i < 1u << order; i++) {
		page[i].compound_head = (unsigned long)page + 1;
		set_page_count(page + i, 0);
	}
	page[1].compound_order = order;
	page[1].compound_dtor = COMPOUND_PAGE_DTOR;
	atomic_set(&page[1].compound_mapcount, -1);
}

/* Counts allocations down to the one that kernel_fail_allocation() chose. */
static u64 fail_countdown;

bool allocation_fails(void)
{
	return unlikely(READ_ONCE(fail_countdown)) &&
	       !__atomic_sub_fetch(&fail_countdown, 1, __ATOMIC_RELAXED);
}

long kernel_fail_allocation(u64 which)
{
	return __atomic_exchange_n(&fail_countdown, which, __ATOMIC_RELAXED);
}

struct page *alloc_pages(gfp_t gfp, unsigned int order)
{
	struct page *page;

	if (order >= MAX_ORDER || allocation_fails())
		return NULL;
	page = frames_allocate(1ul << order, 1ul << order);
	if (!page)
		return NULL;
	if (gfp & __GFP_ZERO)
		memset(page_address(page), 0, PAGE_SIZE << order);
	if (order && (gfp & __GFP_COMP))
		make_compound(page, order);
	return page;
}

struct page *__alloc_pages(gfp_t gfp, unsigned int order, int node, nodemask_t *nodes)
{
	return alloc_pages(gfp, order);
}

unsigned long __get_free_pages(gfp_t gfp, unsigned int order)
{
	struct page *page = alloc_pages(gfp, order);

	return page ? (unsigned long)page_address(page) : 0;
}

void __free_pages(struct page *page, unsigned int order)
{
	if (page_private(page) != 1ul << order)
		kernel_bug("memory: frame %#lx freed with order %u, allocated as %lu frames",
			   page_to_pfn(page), order, page_private(page));
	if (put_page_testzero(page))
		frames_free(page);
}

void free_pages(unsigned long address, unsigned int order)
{
	if (address)
		__free_pages(virt_to_page((void *)address), order);
}

/* The last reference is gone. A guest's frame never gets here unless miscounted. */
void __folio_put(struct folio *folio)
{
	frames_free(&folio->page);
}

bool __put_devmap_managed_page_refs(struct page *page, int refs)
{
	kernel_unsupported(__func__, "page %p, but no device memory exists", page);
}

/* ---- Heap ----------------------------------------------------------------- */

static unsigned int size_shift(size_t size)
{
	return size <= 1ul << SMALLEST_SHIFT ? SMALLEST_SHIFT : fls64(size - 1);
}

static struct slab *slab_create(unsigned int shift)
{
	struct page *page = frames_allocate_locked(1, 1);
	struct slab *slab;

	if (!page)
		return NULL;
	poison(page_address(page), PAGE_SIZE);
	__SetPageSlab(page);
	slab = slab_of(page);
	slab->allocated[0] = slab->allocated[1] = 0;
	slab->used = 0;
	slab->shift = shift;
	slab->listed = 1;
	list_add(&slab->list, &slabs[shift - SMALLEST_SHIFT]);
	return slab;
}

static unsigned int slab_objects(const struct slab *slab)
{
	return PAGE_SIZE >> slab->shift;
}

static unsigned int slab_lowest_free(const struct slab *slab)
{
	return ~slab->allocated[0] ? ffz(slab->allocated[0]) : 64 + ffz(slab->allocated[1]);
}

static void *slab_object(struct slab *slab, unsigned int index)
{
	return page_address(page_of_slab(slab)) + ((size_t)index << slab->shift);
}

static void *heap_allocate_locked(unsigned int shift)
{
	struct list_head *list = &slabs[shift - SMALLEST_SHIFT];
	struct slab *slab;
	unsigned int index;

	slab = list_first_entry_or_null(list, struct slab, list);
	if (!slab)
		slab = slab_create(shift);
	if (!slab)
		return NULL;
	index = slab_lowest_free(slab);
	slab->allocated[index / 64] |= 1ull << (index % 64);
	if (++slab->used == slab_objects(slab)) {
		list_del(&slab->list);
		slab->listed = 0;
	}
	poison_check(slab_object(slab, index), 1ul << shift);
	return slab_object(slab, index);
}

static void heap_free_locked(struct page *page, const void *address)
{
	struct slab *slab = slab_of(page);
	size_t offset = offset_in_page(address);
	unsigned int index = offset >> slab->shift;

	if (offset & ((1ul << slab->shift) - 1))
		kernel_bug("memory: kfree(%p) points into an object of %lu bytes", address,
			   1ul << slab->shift);
	if (!(slab->allocated[index / 64] >> (index % 64) & 1))
		kernel_bug("memory: kfree(%p) of what is free already", address);
	poison((void *)address, 1ul << slab->shift);
	slab->allocated[index / 64] &= ~(1ull << (index % 64));
	slab->used--;
	if (!slab->listed) {
		list_add(&slab->list, &slabs[slab->shift - SMALLEST_SHIFT]);
		slab->listed = 1;
	}
	if (!slab->used) {
		list_del(&slab->list);
		/* As frames_allocate left it. */
		memset(slab, 0, sizeof(*slab));
		__ClearPageSlab(page);
		set_page_private(page, 1);
		frames_free_locked(page);
	}
}

static void *heap_allocate(size_t size, gfp_t flags)
{
	void *address;

	shim_lock(&memory_lock);
	if (size > 1ul << LARGEST_SHIFT) {
		unsigned long count = DIV_ROUND_UP(size, PAGE_SIZE);
		/* kmalloc promises alignment to a power of two size. */
		struct page *page = frames_allocate_locked(count, roundup_pow_of_two(count));

		address = page ? page_address(page) : NULL;
	} else {
		address = heap_allocate_locked(size_shift(size));
	}
	if (address)
		kernel_counters.allocations++;
	shim_unlock(&memory_lock);
	if (address)
		memset(address, flags & __GFP_ZERO ? 0 : POISON_INUSE, size);
	return address;
}

void *__kmalloc(size_t size, gfp_t flags)
{
	if (!size)
		return ZERO_SIZE_PTR;
	return allocation_fails() ? NULL : heap_allocate(size, flags);
}

/* Inline kmalloc() picks a cache by size; here the size alone decides. */
struct kmem_cache *kmalloc_caches[NR_KMALLOC_TYPES][KMALLOC_SHIFT_HIGH + 1];

void *kmalloc_trace(struct kmem_cache *cache, gfp_t flags, size_t size)
{
	return __kmalloc(size, flags);
}

void *__kmalloc_node_track_caller(size_t size, gfp_t flags, int node, unsigned long caller)
{
	return __kmalloc(size, flags);
}

void *__kmalloc_node(size_t size, gfp_t flags, int node)
{
	return __kmalloc(size, flags);
}

void *kmalloc_large(size_t size, gfp_t flags)
{
	return __kmalloc(size, flags);
}

static bool in_dom0(const void *address)
{
	unsigned long start = page_offset_base + boot.first_free_frame * PAGE_SIZE;

	return (unsigned long)address - start < (boot.ram_frames - boot.first_free_frame) * PAGE_SIZE;
}

void kfree(const void *address)
{
	struct page *page;

	if (ZERO_OR_NULL_PTR(address))
		return;
	if (!in_dom0(address))
		kernel_bug("memory: kfree(%p), which is no heap address", address);
	page = virt_to_page(address);
	shim_lock(&memory_lock);
	if (PageSlab(page)) {
		heap_free_locked(page, address);
	} else {
		if (offset_in_page(address) || page_count(page) != 1)
			kernel_bug("memory: kfree(%p) of frames with count %d", address,
				   page_count(page));
		frames_free_locked(page);
	}
	kernel_counters.frees++;
	shim_unlock(&memory_lock);
}

/* What kmalloc(size) really gives. */
size_t ksize(const void *address)
{
	struct page *page;

	if (ZERO_OR_NULL_PTR(address))
		return 0;
	page = virt_to_page(address);
	return PageSlab(page) ? 1ul << slab_of(page)->shift : page_private(page) * PAGE_SIZE;
}

void *shim_zalloc(size_t size)
{
	void *address = heap_allocate(size, __GFP_ZERO);

	if (!address)
		kernel_bug("memory: no %zu bytes for the kernel itself", size);
	return address;
}

/* ---- vmalloc: contiguous frames of the direct map ---------------------------- */

static void *vmalloc_flags(unsigned long size, gfp_t flags)
{
	struct page *page = NULL;

	if (size && !allocation_fails())
		page = frames_allocate(DIV_ROUND_UP(size, PAGE_SIZE), 1);
	if (!page)
		return NULL;
	if (flags & __GFP_ZERO)
		memset(page_address(page), 0, round_up(size, PAGE_SIZE));
	return page_address(page);
}

void *vmalloc(unsigned long size)
{
	return vmalloc_flags(size, 0);
}

void *vzalloc(unsigned long size)
{
	return vmalloc_flags(size, __GFP_ZERO);
}

void vfree(const void *address)
{
	if (!address)
		return;
	if (!in_dom0(address) || offset_in_page(address) || PageSlab(virt_to_page(address)))
		kernel_bug("memory: vfree(%p), which vmalloc never gave", address);
	frames_free(virt_to_page(address));
}

void kvfree(const void *address)
{
	kfree(address);
}

/* ---- Checks and setup ------------------------------------------------------- */

static long check_slab(struct slab *slab)
{
	unsigned int i;
	long damaged = 0;

	for (i = 0; i < slab_objects(slab); i++) {
		size_t size = 1ul << slab->shift, at;

		if (slab->allocated[i / 64] >> (i % 64) & 1)
			continue;
		at = poison_damage(slab_object(slab, i), size);
		if (at == size)
			continue;
		kernel_complain("memory: free object %p of %zu bytes was written at +%zu",
				slab_object(slab, i), size, at);
		damaged++;
	}
	return damaged;
}

long kernel_check_heap(void)
{
	unsigned long frame;
	long damaged = 0;

	/* After a bug in here the lock stays held. */
	if (!shim_lock_patiently(&memory_lock))
		return -EBUSY;
	for (frame = boot.first_free_frame; frame < boot.ram_frames; frame++) {
		struct page *page = pfn_to_page(frame);

		if (!frame_taken(frame)) {
			if (poison_damage(page_address(page), PAGE_SIZE) == PAGE_SIZE)
				continue;
			kernel_complain("memory: free frame %#lx was written", frame);
			damaged++;
		} else if (PageSlab(page)) {
			damaged += check_slab(slab_of(page));
		}
	}
	shim_unlock(&memory_lock);
	return damaged;
}

/* Frames that are never given out: the host's and the guests'. */
static void reserve(unsigned long from, unsigned long to)
{
	for (; from < to; from++) {
		struct page *page = pfn_to_page(from);

		memset(page, 0, sizeof(*page));
		__SetPageReserved(page);
		page_mapcount_reset(page);
		set_page_count(page, 1);
	}
}

void memory_setup(void)
{
	unsigned long map_frames, frame = boot.first_free_frame;
	unsigned int i;

	page_offset_base = boot.direct_map;
	vmemmap_base = boot.page_map;
	for (i = 0; i < SIZES; i++)
		INIT_LIST_HEAD(&slabs[i]);
	/* The bitmap takes the first free frames; they join the reserved ones. */
	map_frames = DIV_ROUND_UP(DIV_ROUND_UP(boot.ram_frames, 8), PAGE_SIZE);
	frames_used = __va(frame * PAGE_SIZE);
	boot.first_free_frame = frame += map_frames;
	if (frame >= boot.ram_frames)
		kernel_bug("memory: %llu frames of RAM, %lu of them taken", boot.ram_frames, frame);
	memset(frames_used, 0, map_frames * PAGE_SIZE);
	frames_mark(0, frame, true);
	frames_next = frame;
	reserve(0, frame);
	reserve(boot.ram_frames, boot.machine_frames);
	kernel_counters.pages_free = boot.ram_frames - frame;
	for (; frame < boot.ram_frames; frame++) {
		memset(pfn_to_page(frame), 0, sizeof(struct page));
		poison(__va(frame * PAGE_SIZE), PAGE_SIZE);
	}
}
