// SPDX-License-Identifier: GPL-2.0-only
/*
 * skb.c: sk_buffs from the heap, by the kernel's rules, for rare uses. hot.o has
 * pools for frequent ones, and frees both kinds: a pool's sk_buff never reaches
 * count zero here.
 *
 * A fragment may lie in a guest's frames, which dom0 cannot read: copying from
 * there fails.
 *
 * Contexts: any; nothing sleeps.
 */
#include <linux/etherdevice.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/slab.h>

#include "shim.h"

#define SHARED_INFO SKB_DATA_ALIGN(sizeof(struct skb_shared_info))

/* Buffer of at least `size` bytes before the shared info; its usable size. */
static u8 *data_allocate(unsigned int size, gfp_t gfp, unsigned int *usable)
{
	u8 *data = __kmalloc(SKB_DATA_ALIGN(size) + SHARED_INFO, gfp & ~__GFP_ZERO);

	if (data)
		*usable = ksize(data) - SHARED_INFO;
	return data;
}

static void data_free(struct sk_buff *skb)
{
	if (skb->head_frag)
		page_frag_free(skb->head);
	else
		kfree(skb->head);
}

struct sk_buff *__alloc_skb(unsigned int size, gfp_t gfp, int flags, int node)
{
	struct sk_buff *skb = __kmalloc(sizeof(*skb), gfp & ~__GFP_ZERO);
	unsigned int usable;
	u8 *data;

	if (!skb)
		return NULL;
	data = data_allocate(size, gfp, &usable);
	if (!data) {
		kfree(skb);
		return NULL;
	}
	memset(skb, 0, sizeof(*skb));
	skb->truesize = SKB_TRUESIZE(usable);
	refcount_set(&skb->users, 1);
	skb->head = data;
	skb->data = data;
	skb_reset_tail_pointer(skb);
	skb->end = usable;
	skb->mac_header = (typeof(skb->mac_header))~0u;
	skb->transport_header = (typeof(skb->transport_header))~0u;
	skb->alloc_cpu = raw_smp_processor_id();
	memset(skb_shinfo(skb), 0, offsetof(struct skb_shared_info, dataref));
	atomic_set(&skb_shinfo(skb)->dataref, 1);
	__atomic_fetch_add(&kernel_counters.skb_allocated, 1, __ATOMIC_RELAXED);
	return skb;
}

struct sk_buff *__netdev_alloc_skb(struct net_device *dev, unsigned int length, gfp_t gfp)
{
	struct sk_buff *skb = __alloc_skb(length + NET_SKB_PAD, gfp, 0, NUMA_NO_NODE);

	if (!skb)
		return NULL;
	skb_reserve(skb, NET_SKB_PAD);
	skb->dev = dev;
	return skb;
}

/* ---- Freeing ------------------------------------------------------------------ */

static void fragments_free(struct sk_buff *skb)
{
	struct skb_shared_info *shared = skb_shinfo(skb);
	struct sk_buff *next, *list = shared->frag_list;
	int i;

	for (i = 0; i < shared->nr_frags; i++)
		put_page(skb_frag_page(&shared->frags[i]));
	for (; list; list = next) {
		next = list->next;
		kfree_skb_reason(list, SKB_DROP_REASON_NOT_SPECIFIED);
	}
}

void kfree_skb_reason(struct sk_buff *skb, enum skb_drop_reason reason)
{
	struct skb_shared_info *shared;
	int references;

	if (!skb || !refcount_dec_and_test(&skb->users))
		return;
	if (skb->_skb_refdst || skb->_nfct || skb->active_extensions)
		kernel_unsupported(__func__, "an sk_buff with routes or extensions");
	if (skb->destructor)
		skb->destructor(skb);
	shared = skb_shinfo(skb);
	references = skb->nohdr ? (1 << SKB_DATAREF_SHIFT) + 1 : 1;
	if (!skb->cloned || !atomic_sub_return(references, &shared->dataref)) {
		fragments_free(skb);
		data_free(skb);
	}
	__atomic_fetch_add(&kernel_counters.skb_freed, 1, __ATOMIC_RELAXED);
	kfree(skb);
}

/* Called by inline code with a count that would wrap or went below zero. */
void refcount_warn_saturate(refcount_t *r, enum refcount_saturation_type type)
{
	refcount_set(r, REFCOUNT_SATURATED);
	kernel_complain("refcount %p saturated (%d)", r, type);
}

/* ---- Copying and moving -------------------------------------------------------- */

/* `count` bytes of fragment `frag` from `offset` on, if dom0 can read them. */
static int fragment_copy(const skb_frag_t *frag, unsigned int offset, void *to, unsigned int count)
{
	unsigned long frame = page_to_pfn(skb_frag_page(frag));
	unsigned long end = frame + DIV_ROUND_UP(skb_frag_off(frag) + offset + count, PAGE_SIZE);

	if (frame < boot.first_free_frame || end > boot.ram_frames)
		return -EFAULT;
	memcpy(to, skb_frag_address(frag) + offset, count);
	return 0;
}

int skb_copy_bits(const struct sk_buff *skb, int offset, void *to, int length)
{
	const struct skb_shared_info *shared = skb_shinfo(skb);
	int i, start = skb_headlen(skb), count;

	if (offset < 0 || length < 0 || offset > (int)skb->len - length)
		return -EFAULT;
	if (shared->frag_list)
		kernel_unsupported(__func__, "a fragment list");
	if (offset < start) {
		count = min(start - offset, length);
		memcpy(to, skb->data + offset, count);
		to += count;
		offset += count;
		length -= count;
	}
	for (i = 0; length && i < shared->nr_frags; i++) {
		int size = skb_frag_size(&shared->frags[i]);

		if (offset < start + size) {
			count = min(start + size - offset, length);
			if (fragment_copy(&shared->frags[i], offset - start, to, count))
				return -EFAULT;
			to += count;
			offset += count;
			length -= count;
		}
		start += size;
	}
	return length ? -EFAULT : 0;
}

/* Header offsets count from head: they move with the data. */
static void offsets_move(struct sk_buff *skb, int by)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		skb->csum_start += by;
	skb->transport_header += by;
	skb->network_header += by;
	if (skb_mac_header_was_set(skb))
		skb->mac_header += by;
	skb->inner_transport_header += by;
	skb->inner_network_header += by;
	skb->inner_mac_header += by;
}

/* Leaves the old data, whose fragments the new shares if others still use it. */
static void data_leave(struct sk_buff *skb)
{
	struct skb_shared_info *shared = skb_shinfo(skb);
	int i;

	if (!skb_cloned(skb)) {
		data_free(skb);
		return;
	}
	for (i = 0; i < shared->nr_frags; i++)
		get_page(skb_frag_page(&shared->frags[i]));
	if (!atomic_sub_return(skb->nohdr ? (1 << SKB_DATAREF_SHIFT) + 1 : 1, &shared->dataref)) {
		fragments_free(skb);
		data_free(skb);
	}
}

/* New data with room for nhead more bytes before and ntail more after; not shared. */
int pskb_expand_head(struct sk_buff *skb, int nhead, int ntail, gfp_t gfp)
{
	unsigned int size = nhead + skb_end_offset(skb) + ntail, usable;
	u8 *data, *old = skb->head;

	if (nhead < 0 || skb_shared(skb))
		kernel_bug("pskb_expand_head: nhead %d, %d users", nhead, refcount_read(&skb->users));
	if (skb_shinfo(skb)->frag_list)
		kernel_unsupported(__func__, "a fragment list");
	data = data_allocate(size, gfp, &usable);
	if (!data)
		return -ENOMEM;
	memcpy(data + nhead, old, skb_tail_pointer(skb) - old);
	memcpy(data + usable, skb_shinfo(skb),
	       offsetof(struct skb_shared_info, frags[skb_shinfo(skb)->nr_frags]));
	data_leave(skb);
	skb->head = data;
	skb->head_frag = 0;
	skb->data = data + nhead + (skb->data - old);
	skb->end = usable;
	skb->tail += nhead;
	offsets_move(skb, nhead);
	skb->cloned = 0;
	skb->hdr_len = 0;
	skb->nohdr = 0;
	atomic_set(&skb_shinfo(skb)->dataref, 1);
	return 0;
}

/* Takes `delta` bytes off the front of the fragments. */
static void fragments_pull(struct sk_buff *skb, unsigned int delta)
{
	struct skb_shared_info *shared = skb_shinfo(skb);
	int i, kept = 0;

	for (i = 0; i < shared->nr_frags; i++) {
		skb_frag_t *frag = &shared->frags[i];
		unsigned int taken = min(delta, skb_frag_size(frag));

		delta -= taken;
		if (taken == skb_frag_size(frag)) {
			put_page(skb_frag_page(frag));
			continue;
		}
		skb_frag_off_add(frag, taken);
		skb_frag_size_sub(frag, taken);
		shared->frags[kept++] = *frag;
	}
	shared->nr_frags = kept;
}

/* Moves `delta` bytes from the fragments to the linear part; NULL: it cannot. */
void *__pskb_pull_tail(struct sk_buff *skb, int delta)
{
	int missing = skb->tail + delta - skb->end;

	if (missing > 0 || skb_cloned(skb))
		if (pskb_expand_head(skb, 0, missing > 0 ? missing + 128 : 0, GFP_ATOMIC))
			return NULL;
	if (skb_copy_bits(skb, skb_headlen(skb), skb_tail_pointer(skb), delta))
		return NULL;
	fragments_pull(skb, delta);
	skb->tail += delta;
	skb->data_len -= delta;
	return skb_tail_pointer(skb);
}

/* ---- Receiving into fragments (jumbo frames) --------------------------------------- */

#define GRO_HEAD 128

/* A pool's sk_buff, so that napi_gro_receive() can hand it on. */
struct sk_buff *napi_get_frags(struct napi_struct *napi)
{
	if (!napi->skb)
		napi->skb = __napi_alloc_skb(napi, GRO_HEAD, GFP_ATOMIC);
	return napi->skb;
}

gro_result_t napi_gro_frags(struct napi_struct *napi)
{
	struct sk_buff *skb = napi->skb;

	napi->skb = NULL;
	if (!pskb_may_pull(skb, ETH_HLEN)) {
		consume_skb(skb);
		return GRO_CONSUMED;
	}
	skb->protocol = eth_type_trans(skb, skb->dev);
	return napi_gro_receive(napi, skb);
}
