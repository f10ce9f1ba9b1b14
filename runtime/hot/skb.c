// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * sk_buffs: build, free, and change their length.
 *
 * The reference count rule (paper, 4.3): a pool's sk_buff has users one above
 * the references given out, also while it is free. Hot routines free it when
 * they drop the last reference but the pool's. dom0's own free paths do not know
 * pools, but for them the count never reaches zero; an sk_buff that they dropped
 * has users == 1, and hot_skb_reclaim() finds it.
 *
 * Any context. Nothing here sleeps.
 */
#include "internal.h"
#include <linux/slab.h>
#include <linux/version.h>

#define HOT_SWEEP	256	/* sk_buffs looked at by one failing allocation */

/* ---- Build -------------------------------------------------------------- */

static struct sk_buff *hot_skb_get(void)
{
	struct sk_buff *skb = hot_pool_get(HOT_POOL_SKB);

	if (unlikely(!skb)) {
		if (hot_skb_reclaim())
			skb = hot_pool_get(HOT_POOL_SKB);
		if (!skb)
			hot_count(HOT_COUNT_SKB_EXHAUSTED);
	}
	return skb;
}

/*
 * data                                              data + size
 *  | head = data, tail at data, end ->| skb_shared_info |
 */
struct sk_buff *hot_skb_build(void *data, u32 size)
{
	struct sk_buff *skb = hot_skb_get();

	if (unlikely(!skb))
		return NULL;
	hot_skb_init(skb, data, size, raw_smp_processor_id());
	return skb;
}

/* An sk_buff around a buffer from netdev_alloc_frag(). */
struct sk_buff *napi_build_skb(void *data, unsigned int frag_size)
{
	if (unlikely(frag_size < HOT_SHARED_INFO || frag_size > PAGE_SIZE))
		return NULL;
	return hot_skb_build(data, frag_size);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
struct sk_buff *napi_alloc_skb(struct napi_struct *napi, unsigned int length)
#else
struct sk_buff *__napi_alloc_skb(struct napi_struct *napi, unsigned int length, gfp_t gfp_mask)
#endif
{
	struct sk_buff *skb;
	void *buffer;
	u32 size;

	if (unlikely(length > PAGE_SIZE))
		return NULL;
	size = SKB_DATA_ALIGN(length + NET_SKB_PAD + NET_IP_ALIGN) + HOT_SHARED_INFO;
	buffer = hot_buffer_get(size);
	if (unlikely(!buffer))
		return NULL;
	skb = hot_skb_build(buffer, size);
	if (unlikely(!skb)) {
		hot_buffer_put(buffer);
		return NULL;
	}
	skb_reserve(skb, NET_SKB_PAD + NET_IP_ALIGN);
	skb->dev = napi->dev;
	return skb;
}

/* ---- Free --------------------------------------------------------------- */

static void hot_skb_free_fragments(struct sk_buff *skb, u32 from)
{
	struct skb_shared_info *shared = skb_shinfo(skb);
	u32 i, n = min_t(u32, shared->nr_frags, MAX_SKB_FRAGS);

	for (i = from; i < n; i++) {
		const skb_frag_t *fragment = &shared->frags[i];

		/* With the offset: two of the pool's buffers share a page. */
		hot_buffer_put(page_to_virt(skb_frag_page(fragment)) + skb_frag_off(fragment));
	}
	shared->nr_frags = min(from, n);
}

/* The address of skb_shared_info must be checked before it is read. */
static bool hot_skb_end_valid(const struct sk_buff *skb, u32 size)
{
	return skb->end <= size && size - skb->end >= sizeof(struct skb_shared_info);
}

/* Drops the reference to the data; the last one frees fragments and buffer. */
static __always_inline void hot_skb_free_data(struct sk_buff *skb, u8 flags)
{
	void *head = skb->head;
	u32 index;
	const enum hot_pool_id id = hot_buffer_find(head, &index);
	const bool whole = id != HOT_POOLS && hot_pool_object(&hot_pools[id], index) == head;

	if (unlikely(whole && !hot_skb_end_valid(skb, 1u << hot_pools[id].shift))) {
		hot_count(HOT_COUNT_BAD_FREE);
		hot_buffer_put_found(id, index);
		return;
	}
	if (unlikely(skb->cloned) &&
	    atomic_sub_return(skb->nohdr ? (1 << SKB_DATAREF_SHIFT) + 1 : 1,
			      &skb_shinfo(skb)->dataref))
		return;
	if (skb_shinfo(skb)->nr_frags && !(flags & HOT_TAG_GUEST_PAGES))
		hot_skb_free_fragments(skb, 0);
	if (likely(whole))
		hot_buffer_put_found(id, index);
	else if (skb->head_frag)
		hot_buffer_put(head);
	else
		kfree(head);	/* upcall: pskb_expand_head() gave it this */
}

/* Whether this was the last reference but the pool's; the count is then 2. */
static __always_inline bool hot_skb_unref(struct sk_buff *skb)
{
	atomic_t *users = &skb->users.refs;

	if (likely(atomic_read(users) == HOT_USERS))
		return true;
	if (atomic_dec_return(users) != HOT_USERS - 1)
		return false;
	atomic_set(users, HOT_USERS);
	return true;
}

/* hot_skb_release() of one that is not a part, and has no destructor any more. */
static noinline void hot_skb_release_plain(struct sk_buff *skb, u32 index)
{
	struct hot_tag *tag = hot_skb_tag(skb);
	const u8 flags = tag->flags;

	hot_skb_free_data(skb, flags);
	if (flags & HOT_TAG_COMPLETE)
		hot_tx_complete(tag);
	tag->flags = 0;
	hot_pool_put(HOT_POOL_SKB, index);
}

/* A part that is not kept. */
static noinline void hot_skb_release_data(struct sk_buff *skb, u32 index, u8 flags)
{
	hot_skb_free_data(skb, flags);
	hot_pool_put(HOT_POOL_SKB, index);
}

/* hot_skb_release() of a part: it is kept with its buffer, if it can be (kept.c), and its whole loses a reference. */
static noinline void hot_skb_release_part(struct sk_buff *skb, u32 index)
{
	struct hot_tag *tag = hot_skb_tag(skb);
	struct sk_buff *whole = (struct sk_buff *)tag->cookie;
	const u8 flags = tag->flags;

	tag->flags = 0;
	if (unlikely(!hot_kept_put(skb)))
		hot_skb_release_data(skb, index, flags);
	/* All but the last reference only count. Once deep: a whole is no part. */
	if (likely(atomic_dec_return(&whole->users.refs) != HOT_USERS - 1))
		return;
	atomic_set(&whole->users.refs, HOT_USERS);
	hot_skb_free(whole);
}

static noinline void hot_skb_destruct(struct sk_buff *skb)
{
	if (skb->destructor == HOT_CHAIN)
		hot_chain_free(skb);
	else
		skb->destructor(skb);
}

/* Frees a pool's sk_buff whose state the caller has changed to CLAIMED. All that it ends with are calls, so the caller
 * saves no registers for them. */
static __always_inline void hot_skb_release(struct sk_buff *skb, u32 index)
{
	const u8 flags = hot_skb_tag(skb)->flags;

	if (unlikely(skb->destructor))
		hot_skb_destruct(skb);
	if (unlikely(flags & HOT_TAG_PART))
		hot_skb_release_part(skb, index);
	else
		hot_skb_release_plain(skb, index);
}

/* Gives one of several references back; whether that was the last one of a BUSY sk_buff. */
static noinline bool hot_skb_drop(struct sk_buff *skb, u32 index)
{
	if (unlikely(READ_ONCE(hot_pools[HOT_POOL_SKB].state[index]) != HOT_OBJECT_BUSY)) {
		hot_count(HOT_COUNT_BAD_FREE);
		return false;
	}
	return hot_skb_unref(skb);
}

void hot_skb_free(struct sk_buff *skb)
{
	struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	u32 index;

	if (unlikely(!skb))
		return;
	index = hot_skb_index(skb);
	if (unlikely(index == HOT_NO_OBJECT)) {
		hot_count(HOT_COUNT_FOREIGN_FREE);
		kfree_skb_reason(skb, SKB_DROP_REASON_NOT_SPECIFIED);	/* upcall */
		return;
	}
	/* Whoever has the only one needs not look twice whether it is BUSY. */
	if (unlikely(atomic_read(&skb->users.refs) != HOT_USERS) && !hot_skb_drop(skb, index))
		return;
	if (likely(hot_pool_change(pool, index, HOT_OBJECT_BUSY, HOT_OBJECT_CLAIMED)))
		hot_skb_release(skb, index);
	else
		hot_count(HOT_COUNT_BAD_FREE);
}

/* If nobody else has a reference, nobody else may free it: then it need not be BUSY in between. */
bool hot_skb_free_held(struct sk_buff *skb, u32 index)
{
	const bool last = atomic_read(&skb->users.refs) == HOT_USERS;

	if (unlikely(!hot_pool_change(&hot_pools[HOT_POOL_SKB], index, HOT_OBJECT_HELD,
				      last ? HOT_OBJECT_CLAIMED : HOT_OBJECT_BUSY)))
		return false;
	if (likely(last))
		hot_skb_release(skb, index);
	else
		hot_skb_free(skb);
	return true;
}

/*
 * dom0's own free took the reference and left the sk_buff (users == 1): take
 * it back. Two CPUs may sweep at once; the change of state has one winner.
 */
bool hot_skb_reclaim(void)
{
	struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	u32 i = READ_ONCE(pool->sweep), steps, taken = 0;

	for (steps = min_t(u32, HOT_SWEEP, pool->count); steps; steps--) {
		struct sk_buff *skb;

		i = i + 1 < pool->count ? i + 1 : 0;
		skb = hot_pool_object(pool, i);
		if (READ_ONCE(pool->state[i]) != HOT_OBJECT_BUSY ||
		    atomic_read(&skb->users.refs) != HOT_USERS - 1 ||
		    !hot_pool_change(pool, i, HOT_OBJECT_BUSY, HOT_OBJECT_CLAIMED))
			continue;
		atomic_set(&skb->users.refs, HOT_USERS);
		hot_skb_release(skb, i);
		taken++;
	}
	WRITE_ONCE(pool->sweep, i);
	hot_count_on(hot_cpu_id(), HOT_COUNT_RECLAIMED, taken);
	/* Parts among them were kept. */
	return hot_kept_drain() || taken;
}

/*
 * Frees every sk_buff that is not held, then every buffer that no held one
 * uses. Only when nothing else runs and the driver's rings are empty.
 */
u32 hot_skb_reset(void)
{
	struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	u32 i, taken = 0;

	for (i = 0; i < pool->count; i++) {
		struct sk_buff *skb = hot_pool_object(pool, i);
		enum hot_pool_id id;

		if (pool->state[i] == HOT_OBJECT_FREE)
			continue;
		if (pool->state[i] == HOT_OBJECT_HELD && !hot_host_holds)
			pool->state[i] = HOT_OBJECT_BUSY;
		if (pool->state[i] != HOT_OBJECT_HELD) {
			if (hot_skb_tag(skb)->flags & HOT_TAG_COMPLETE)
				hot_tx_complete(hot_skb_tag(skb));
			hot_skb_tag(skb)->flags = 0;
			refcount_set(&skb->users, HOT_USERS);
			continue;
		}
		for (id = HOT_POOL_BUFFER; id <= HOT_POOL_LARGE; id++) {
			u32 buffer = hot_pool_index(&hot_pools[id], skb->head);

			if (buffer != HOT_NO_OBJECT)
				hot_pools[id].state[buffer] = HOT_OBJECT_HELD;
		}
	}
	hot_kept_reset();
	taken += hot_pool_reset(HOT_POOL_SKB);
	taken += hot_pool_reset(HOT_POOL_BUFFER);
	taken += hot_pool_reset(HOT_POOL_LARGE);
	/* Of buffers, HELD means "kept by this reset" and nothing elsewhere: they are in use. */
	for (i = 0; i < HOT_POOL_MAX; i++) {
		if (hot_pools[HOT_POOL_BUFFER].state[i] == HOT_OBJECT_HELD)
			hot_pools[HOT_POOL_BUFFER].state[i] = HOT_OBJECT_BUSY;
		if (hot_pools[HOT_POOL_LARGE].state[i] == HOT_OBJECT_HELD)
			hot_pools[HOT_POOL_LARGE].state[i] = HOT_OBJECT_BUSY;
	}
	return taken;
}

void consume_skb(struct sk_buff *skb)
{
	hot_skb_free(skb);
}

void napi_consume_skb(struct sk_buff *skb, int budget)
{
	hot_skb_free(skb);
}

/* Freeing to a pool needs no other context, so "any" is all the same. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
void dev_kfree_skb_any_reason(struct sk_buff *skb, enum skb_drop_reason reason)
#else
void __dev_kfree_skb_any(struct sk_buff *skb, enum skb_free_reason reason)
#endif
{
	hot_skb_free(skb);
}

/* ---- Length ------------------------------------------------------------- */

/* Appends to the linear part. Running over its end is the caller's bug. */
void *skb_put(struct sk_buff *skb, unsigned int len)
{
	void *tail = skb_tail_pointer(skb);

	if (unlikely(skb->data_len))
		BUG();
	skb->tail += len;
	skb->len += len;
	if (unlikely(skb->tail > skb->end))
		BUG();
	return tail;
}

void skb_trim(struct sk_buff *skb, unsigned int len)
{
	if (skb->len > len)
		__skb_trim(skb, len);
}

static bool hot_skb_guest_pages(struct sk_buff *skb)
{
	return hot_skb_index(skb) != HOT_NO_OBJECT &&
	       hot_skb_tag(skb)->flags & HOT_TAG_GUEST_PAGES;
}

/* Cuts an sk_buff with fragments to len bytes. */
int ___pskb_trim(struct sk_buff *skb, unsigned int len)
{
	struct skb_shared_info *shared = skb_shinfo(skb);
	u32 at = skb_headlen(skb), i, n = min_t(u32, shared->nr_frags, MAX_SKB_FRAGS);

	if (unlikely(skb_cloned(skb))) {
		int error = pskb_expand_head(skb, 0, 0, GFP_ATOMIC);	/* upcall */

		if (error)
			return error;
		shared = skb_shinfo(skb);
	}
	if (len <= at) {
		skb->len = len;
		skb->data_len = 0;
		skb_set_tail_pointer(skb, len);
		i = 0;
	} else {
		for (i = 0; i < n && at < len; i++) {
			u32 size = skb_frag_size(&shared->frags[i]);

			if (size > len - at)
				skb_frag_size_set(&shared->frags[i], len - at);
			at += size;
		}
		skb->data_len -= skb->len - len;
		skb->len = len;
	}
	if (hot_skb_guest_pages(skb))
		shared->nr_frags = i;
	else
		hot_skb_free_fragments(skb, i);
	return 0;
}

/* Zeroes `pad` bytes after the packet; its length stays. Frees it if it cannot. */
int __skb_pad(struct sk_buff *skb, int pad, bool free_on_error)
{
	int error = -ENOMEM, more;

	if (likely(!skb->data_len && !skb_cloned(skb) && skb_tailroom(skb) >= pad)) {
		memset(skb->data + skb->len, 0, pad);
		return 0;
	}
	/* A guest's pages are not in dom0's memory: they cannot be copied here. */
	if (hot_skb_guest_pages(skb))
		goto fail;
	more = skb->data_len + pad - (skb->end - skb->tail);
	if (skb_cloned(skb) || more > 0) {
		error = pskb_expand_head(skb, 0, max(more, 0), GFP_ATOMIC);	/* upcall */
		if (error)
			goto fail;
	}
	error = -ENOMEM;
	if (skb->data_len && !__pskb_pull_tail(skb, skb->data_len))	/* upcall */
		goto fail;
	memset(skb->data + skb->len, 0, pad);
	return 0;
fail:
	if (free_on_error)
		hot_skb_free(skb);
	return error;
}

/* ---- Time stamps: asked for by a socket, and a guest's packet has none ---- */

void skb_clone_tx_timestamp(struct sk_buff *skb)
{
}

void skb_tstamp_tx(struct sk_buff *skb, struct skb_shared_hwtstamps *hwtstamps)
{
}
