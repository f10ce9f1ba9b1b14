/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declarations shared by the files of hot.o; no other file includes this.
 */
#ifndef HOT_INTERNAL_H
#define HOT_INTERNAL_H

#include "hot.h"
#include <linux/if_vlan.h>
#include <twin/sum.h>

/* ---- locks.c ---- */

/*
 * A lock of our own: 0 free, else its holder's CPU + 1, so that hot_recover()
 * knows which locks an aborted instance held.
 */
static __always_inline void hot_lock(u32 *word, u32 cpu)
{
	while (cmpxchg(word, 0, cpu + 1) != 0)
		while (READ_ONCE(*word))
			cpu_relax();
}

static __always_inline void hot_unlock(u32 *word)
{
	smp_store_release(word, 0);
}

/* ---- pool.c ---- */

enum hot_pool_id {
	HOT_POOL_SKB,		/* struct hot_skb */
	HOT_POOL_BUFFER,	/* 2 KiB: frames of the standard MTU, headers */
	HOT_POOL_LARGE,		/* 4 KiB: e1000's 2 KiB receive buffers and their tail */
	HOT_POOLS
};

/*
 * The state of an object. Any CPU may try to change a BUSY or HELD one, so those
 * changes are a compare and exchange; a FREE or CLAIMED one has a single owner,
 * which just writes.
 */
enum hot_state {
	HOT_OBJECT_FREE,	/* in the pool or a magazine */
	HOT_OBJECT_BUSY,	/* given out */
	HOT_OBJECT_HELD,	/* a received sk_buff that host_receive() holds */
	HOT_OBJECT_CLAIMED,	/* being freed, by the CPU that changed it to this */
};

#define HOT_BUFFER_SHIFT 11	/* of HOT_POOL_BUFFER */
#define HOT_POOL_MAX	2048u	/* objects of a pool: indices are u16 */
#define HOT_MAGAZINE	64u	/* objects that a CPU keeps for itself */
#define HOT_NO_OBJECT	(~0u)

struct hot_pool {
	u32 lock;
	u32 free;			/* entries of stack[] */
	u32 sweep;			/* where hot_skb_reclaim() continues */
	u32 count;			/* objects; 0 before hot_setup() */
	u32 shift;			/* log2 of bytes an object */
	unsigned long base;		/* dom0 direct-map address */
	u16 stack[HOT_POOL_MAX];	/* under lock */
	u8 state[HOT_POOL_MAX];		/* enum hot_state */
};

struct hot_magazine {
	u32 count;
	u16 index[HOT_MAGAZINE];
};

/* Only this CPU uses it (and hot_recover() when it is dead). */
struct hot_cpu {
	struct hot_magazine magazine[HOT_POOLS];
	struct list_head poll_list;	/* napi_struct.poll_list; see napi.c */
	struct napi_struct *napi;	/* the last that this CPU set SCHED of */
	u32 polling;			/* hot_poll() is on the stack */
	u32 aggregate;			/* most segments of an aggregate of this poll; 0: none */
	struct sk_buff *kept;		/* kept.c; linked by hot_tag.cookie */
	u32 kept_count;
} ____cacheline_aligned;

extern struct hot_pool hot_pools[HOT_POOLS];
extern struct hot_cpu hot_cpus[HOT_CPUS];

static __always_inline u32 hot_cpu_id(void)
{
	return raw_smp_processor_id() & (HOT_CPUS - 1);
}

/* This CPU's, as an address that the compiler does not know to be part of an array (pool.c). */
static __always_inline struct hot_cpu *hot_cpu_here(void)
{
	struct hot_cpu *cpu = &hot_cpus[hot_cpu_id()];

	OPTIMIZER_HIDE_VAR(cpu);
	return cpu;
}

/* Adds to a counter of this CPU. */
static __always_inline void hot_count_on(u32 cpu, enum hot_counter which, u32 n)
{
	hot_shared[cpu].counter[which] += n;
}

static __always_inline void hot_count(enum hot_counter which)
{
	hot_count_on(hot_cpu_id(), which, 1);
}

/* The object at or around an address; HOT_NO_OBJECT if it is not the pool's. */
static __always_inline u32 hot_pool_index(const struct hot_pool *pool, const void *address)
{
	unsigned long offset = (unsigned long)address - pool->base;

	if (offset >= (unsigned long)pool->count << pool->shift)
		return HOT_NO_OBJECT;
	return offset >> pool->shift;
}

static __always_inline void *hot_pool_object(const struct hot_pool *pool, u32 index)
{
	return (void *)(pool->base + ((unsigned long)index << pool->shift));
}

/* True for the one caller that makes this change. */
static __always_inline bool hot_pool_change(struct hot_pool *pool, u32 index, u8 from, u8 to)
{
	return cmpxchg(&pool->state[index], from, to) == from;
}

void *hot_pool_get(enum hot_pool_id id);		/* BUSY; NULL if exhausted */
void hot_pool_put(enum hot_pool_id id, u32 index);	/* from CLAIMED */
u32 hot_pool_reset(enum hot_pool_id id);		/* all not FREE or HELD; no one else runs */
int hot_pool_setup(enum hot_pool_id id, u32 shift, u32 count);
/* What hot_setup() has for the rings of struct hot_shared. */
#define HOT_REQUESTS_BYTES	(HOT_REQUESTS * sizeof(struct hot_tx_request))
#define HOT_TX_DONE_BYTES	(HOT_TX_DONE * sizeof(struct hot_tx_done))
#define HOT_RELEASE_BYTES	(HOT_RELEASE * sizeof(u64))
void *hot_pages(u32 order);				/* zeroed; NULL; upcall */

/* Buffers: NULL if exhausted or size is above 4096. Free: any address inside. */
void *hot_buffer_get(u32 size);
void hot_buffer_put(void *address);
/* Bytes of the pool's buffer that begins at head; 0 if there is none. */
u32 hot_buffer_size(const void *head);
/* The pool with a buffer at or around an address, and which; HOT_POOLS if none has. */
static __always_inline enum hot_pool_id hot_buffer_find(const void *address, u32 *index)
{
	enum hot_pool_id id;

	for (id = HOT_POOL_BUFFER; id <= HOT_POOL_LARGE; id++) {
		*index = hot_pool_index(&hot_pools[id], address);
		if (*index != HOT_NO_OBJECT)
			return id;
	}
	return HOT_POOLS;
}
/* Frees that one. */
void hot_buffer_put_found(enum hot_pool_id id, u32 index);

/* ---- skb.c ---- */

#define HOT_SKB_SHIFT		8

/* hot_tag.flags */
#define HOT_TAG_COMPLETE	1	/* report to tx_done when freed */
#define HOT_TAG_GUEST_PAGES	2	/* fragments carry no page references */
#define HOT_TAG_PART		4	/* cookie is the address of the whole (offload.c) */

/* Our own data of a pool's sk_buff, not in cb[], which has many users. */
struct hot_tag {
	u64 cookie;
	u32 guest;
	u8 cpu;			/* whose request: < HOT_CPUS */
	u8 flags;
	u16 zero;
};

struct hot_skb {
	struct sk_buff skb;
	void *kept;		/* of a part: the buffer that stays with it, or NULL (kept.c) */
	struct hot_tag tag;
};

_Static_assert(sizeof(struct hot_skb) <= 1 << HOT_SKB_SHIFT, "one slot");

static __always_inline struct hot_tag *hot_skb_tag(struct sk_buff *skb)
{
	return &container_of(skb, struct hot_skb, skb)->tag;
}

/* The index of a pool's sk_buff; HOT_NO_OBJECT for any other address. */
static __always_inline u32 hot_skb_index(const struct sk_buff *skb)
{
	const struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	unsigned long index;

	/* Its fields at one address: a name of each would be translated by itself. */
	OPTIMIZER_HIDE_VAR(pool);
	if ((unsigned long)skb & ((1ul << HOT_SKB_SHIFT) - 1))
		return HOT_NO_OBJECT;
	index = ((unsigned long)skb - pool->base) >> HOT_SKB_SHIFT;
	return index < pool->count ? index : HOT_NO_OBJECT;
}

/* An sk_buff around a buffer of `size` bytes, its tail for skb_shared_info. */
struct sk_buff *hot_skb_build(void *data, u32 size);
/* The same of one that the caller has, whatever it was. */
#define HOT_SHARED_INFO		SKB_DATA_ALIGN(sizeof(struct skb_shared_info))
#define HOT_USERS		2	/* references: the pool's and the caller's */

/* Zeroed without a string instruction, which takes longer to begin than so few stores, and more translations. */
static __always_inline void hot_skb_init(struct sk_buff *skb, void *data, u32 size, u32 cpu)
{
	struct skb_shared_info *shared;
	u32 i;

	size -= HOT_SHARED_INFO;
	_Static_assert(offsetof(struct sk_buff, tail) % 4 == 0, "words");
#pragma GCC unroll 32
	for (i = 0; i < offsetof(struct sk_buff, tail) / 8; i++)
		((u64 *)skb)[i] = 0;
	if (offsetof(struct sk_buff, tail) % 8)
		((u32 *)skb)[i * 2] = 0;
	skb->truesize = SKB_TRUESIZE(size);
	refcount_set(&skb->users, HOT_USERS);
	skb->head = data;
	skb->data = data;
	skb_reset_tail_pointer(skb);
	skb->end = size;
	skb->extensions = NULL;
	skb->head_frag = 1;
	skb->mac_header = (typeof(skb->mac_header))~0U;
	skb->transport_header = (typeof(skb->transport_header))~0U;
	skb->alloc_cpu = cpu;
	hot_skb_tag(skb)->flags = 0;

	shared = skb_shinfo(skb);
	memset(shared, 0, offsetof(struct skb_shared_info, dataref));
	atomic_set(&shared->dataref, 1);
}
/* Frees sk_buffs that dom0's own free paths left, in a bounded number of steps. */
bool hot_skb_reclaim(void);
void hot_skb_free(struct sk_buff *skb);
/* The same of one that the host has held; false if it is not HELD. */
bool hot_skb_free_held(struct sk_buff *skb, u32 index);
u32 hot_skb_reset(void);

/* ---- kept.c: parts (offload.c) that keep their buffers ---- */

/* A buffer of a packet to send: head room, linear bytes, room to pad, skb_shared_info. */
#define HOT_HEADROOM		(NET_SKB_PAD + NET_IP_ALIGN)
#define HOT_TX_ROOM(linear)	(SKB_DATA_ALIGN(HOT_HEADROOM + (linear) + ETH_ZLEN) + \
				 SKB_DATA_ALIGN(sizeof(struct skb_shared_info)))
#define HOT_TX_BUFFER		HOT_TX_ROOM(HOT_HEADER)

#define HOT_KEPT	256u	/* that a CPU has at most: a ring of the driver's */
#define HOT_KEPT_BYTES	(1u << HOT_BUFFER_SHIFT)

static __always_inline void **hot_kept_buffer(struct sk_buff *skb)
{
	return &container_of(skb, struct hot_skb, skb)->kept;
}
/* From now on its buffer is as any other. */
void hot_kept_unbind(struct sk_buff *skb);
/* Whether a part whose state the caller has changed to CLAIMED is now kept with its buffer. If not,
 * its buffer is as any other. */
static __always_inline bool hot_kept_put(struct sk_buff *skb)
{
	struct hot_cpu *cpu = hot_cpu_here();
	void *buffer = *hot_kept_buffer(skb);

	if (unlikely(!buffer))
		return false;
	/* Another head is dom0's (pskb_expand_head()), and one that is shared is not free. */
	if (unlikely(skb->head != buffer || skb->cloned || cpu->kept_count >= HOT_KEPT ||
		     skb->end != HOT_KEPT_BYTES - HOT_SHARED_INFO)) {
		hot_kept_unbind(skb);
		return false;
	}
	hot_skb_tag(skb)->cookie = (unsigned long)cpu->kept;
	cpu->kept = skb;
	cpu->kept_count++;
	return true;
}
/*
 * Some of this CPU's, for whoever makes several parts: on the stack, where nothing is translated. They are given
 * back before anything else is freed here, and an abort counts them as taken back (hot_kept_reset()).
 */
struct hot_kept_list {
	struct sk_buff *first;	/* NULL: the pools have the next one */
	u32 count;
	u32 room;		/* bytes of a buffer that is as large as any of them needs */
	unsigned long base;	/* of the pool of sk_buffs */
	u32 objects;
	u32 cpu;
};

/* All that are kept, for parts of so many linear bytes at most; none if these need other buffers. */
static __always_inline void hot_kept_take(struct hot_kept_list *list, u32 linear)
{
	const struct hot_pool *pool = &hot_pools[HOT_POOL_SKB];
	struct hot_cpu *cpu = hot_cpu_here();

	OPTIMIZER_HIDE_VAR(pool);
	list->base = pool->base;
	list->objects = pool->count;
	list->cpu = raw_smp_processor_id();
	list->room = HOT_TX_ROOM(linear);
	list->first = NULL;
	list->count = 0;
	if (unlikely(list->room > HOT_KEPT_BYTES))
		return;
	list->first = cpu->kept;
	list->count = cpu->kept_count;
	cpu->kept = NULL;
	cpu->kept_count = 0;
}

/* Those that are left, if any are: the pools were not asked then. */
static __always_inline void hot_kept_give_back(const struct hot_kept_list *list)
{
	struct hot_cpu *cpu = hot_cpu_here();

	if (!list->first)
		return;
	cpu->kept = list->first;
	cpu->kept_count = list->count;
}

/* One with a buffer of so many bytes, bound if it can be; NULL. */
struct sk_buff *hot_kept_from_pools(u32 room);

/* An sk_buff with that room, after HOT_HEADROOM, and linked to the next one of the list; NULL. */
static __always_inline struct sk_buff *hot_kept_next(struct hot_kept_list *list)
{
	struct sk_buff *skb = list->first;
	unsigned long index;

	if (unlikely(!skb))
		return hot_kept_from_pools(list->room);
	index = ((unsigned long)skb - list->base) >> HOT_SKB_SHIFT;
	if (likely(!((unsigned long)skb & ((1ul << HOT_SKB_SHIFT) - 1)) && index < list->objects))
		WRITE_ONCE(hot_pools[HOT_POOL_SKB].state[index], HOT_OBJECT_BUSY);
	list->first = (struct sk_buff *)hot_skb_tag(skb)->cookie;
	list->count--;
	hot_skb_init(skb, *hot_kept_buffer(skb), HOT_KEPT_BYTES, list->cpu);
	skb->next = list->first;
	skb_reserve(skb, HOT_HEADROOM);
	return skb;
}
/* Gives this CPU's to the pools; whether there were any. */
bool hot_kept_drain(void);
/* No CPU has any: what they had goes back by hot_pool_reset(). */
void hot_kept_reset(void);

/* ---- transmit.c, offload.c, acks.c ---- */

/*
 * The large packet that is being cut, and its next part; under the queue's lock. Parts are made as
 * the driver takes them, so the pools need no more than a ring's worth; while it waits for room,
 * so do requests. Whoever polls goes on with it, because what makes room is a completion.
 */
extern struct hot_waits {
	struct sk_buff *whole;
	struct net_device *dev;		/* stays */
	struct sk_buff *made;		/* the next parts, if the driver did not take them; linked by skb->next */
	u32 made_count;
	u32 next;			/* the first that the driver has not got */
	netdev_features_t features;	/* of the device, when those were made */
	u64 place[HOT_GATHERS];		/* what host_gather() is given */
	u32 acks;			/* further numbers of a template; 0: it is cut */
	u32 ack[1 + HOT_ACKS];		/* its own, and those */
} hot_waits;

/* Sends what it can of it; at the end of a poll. */
void hot_transmit_rest(void);
/* It is gone: its sk_buffs were reset. */
void hot_transmit_recover(void);
/* The parts that are made are none after all. */
void hot_transmit_drop_made(void);
/* It is sent, or never will be: it completes when the last of its parts is freed. */
void hot_transmit_end_wait(void);

static __always_inline bool hot_transmit_waits(void)
{
	return READ_ONCE(hot_waits.whole);
}

/* What is to be done for the device in each part, as bits; a large packet is always cut. */
#define HOT_DO_GATHER		1	/* a copy of what is in fragments: none are left */
#define HOT_DO_SUM		2	/* the checksum; with it comes GATHER */
#define HOT_DO_TAG		4	/* the VLAN tag */

/* How a packet is cut, which is the same for all of its parts. */
struct hot_cut {
	u32 headers;		/* bytes that every part begins with */
	u32 payload;		/* bytes behind them, of all parts */
	u32 size;		/* of every part but the last */
	u32 inside;		/* of the payload, bytes in the linear part */
	u32 parts;		/* sk_buffs that it takes; 1 if it is not to be cut */
	u32 needs;		/* HOT_DO_* */
	bool gso;		/* several segments */
};

void hot_offload_cut(const struct sk_buff *whole, struct hot_cut *cut);
/* Whether a part, with all that may have to be copied, has room in a buffer. */
bool hot_offload_fits(const struct sk_buff *whole);

/*
 * Sends parts of the packet that waits, in order, until the driver takes no more or there is no
 * buffer; whether none waits any more. With the queue's lock held.
 */
bool hot_offload_rest(struct netdev_queue *txq);

/* ---- acks.c ---- */

/* Whether it is a template; with the queue's lock held and nothing that waits. Its numbers are then
 * in hot_waits. */
bool hot_acks_read(const struct sk_buff *whole, const struct hot_tx_request *request);
/* Writes that number of hot_waits into the template. */
void hot_acks_number(struct sk_buff *whole, u32 number);

/* ---- receive.c, aggregate.c ---- */

/* HOT_RX_* of a packet that has been received. */
static __always_inline u32 hot_receive_flags(const struct sk_buff *skb)
{
	u32 flags = 0;

	if (skb->ip_summed == CHECKSUM_UNNECESSARY)
		flags |= HOT_RX_CHECKSUM_OK;
	if (skb_vlan_tag_present(skb))
		flags |= HOT_RX_VLAN;
	if (skb->data_len)
		flags |= HOT_RX_FRAGMENTS;
	return flags;
}

/* Flows of a CPU that have segments, as bits. */
extern u32 hot_flows_open[HOT_CPUS];

/* Whether a received sk_buff was taken into an aggregate. If not, nothing that came
 * before it in its flow waits any more. In a poll whose hot_cpu.aggregate is above 1. */
bool hot_aggregate(struct sk_buff *skb, u32 index, u32 cpu);
void hot_aggregate_flush(u32 cpu);
/* What the hypervisor asks for, as hot_cpu.aggregate. */
static __always_inline u32 hot_aggregate_limit(u32 cpu)
{
	u32 limit = READ_ONCE(hot_shared[cpu].aggregate);

	return limit < 2 ? 0 : min_t(u32, limit, HOT_RX_SEGMENTS);
}
void hot_aggregate_recover(u32 cpu);
/* The destructor of an aggregate's first sk_buff, a mark and no address: its other ones,
 * linked by skb->next, are freed with it. */
#define HOT_CHAIN	((void (*)(struct sk_buff *))1)
void hot_chain_free(struct sk_buff *skb);

/* ---- napi.c, transmit.c ---- */

void hot_napi_init(u32 cpu);
void hot_napi_recover(u32 cpu);
/* Reports the completion of a packet to its sender. */
void hot_tx_complete(const struct hot_tag *tag);

#endif /* HOT_INTERNAL_H */
