// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * sk_buffs of parts (offload.c) that keep their buffers when they are free, because the next part needs
 * just that again: a pair costs one place of a CPU's own instead of two of pools, and neither is looked for.
 *
 *   pools --bind--> in flight --last reference--> kept --get--> in flight
 *     ^                  | its data are not its own any more        |
 *     +------------------+------------ a pool is empty -------------+
 *
 * The buffer is CLAIMED as long as it is bound, also in flight, and the sk_buff while it is kept: so no one
 * frees either a second time. Nothing that the driver left in a pair is relied on but that it is one.
 */
#include "internal.h"

/* As hot_magazine_of() of pool.c. */
static __always_inline struct hot_cpu *cpu_here(void)
{
	struct hot_cpu *cpu = &hot_cpus[hot_cpu_id()];

	OPTIMIZER_HIDE_VAR(cpu);
	return cpu;
}

static __always_inline void **bound(struct sk_buff *skb)
{
	return &container_of(skb, struct hot_skb, skb)->kept;
}

/* One of the pools', bound if it has a buffer of HOT_KEPT_BYTES. */
static noinline struct sk_buff *from_pools(u32 room)
{
	void *buffer = hot_buffer_get(room);
	struct sk_buff *skb;
	u32 index;

	if (unlikely(!buffer))
		return NULL;
	index = hot_pool_index(&hot_pools[HOT_POOL_BUFFER], buffer);
	skb = hot_skb_build(buffer, index != HOT_NO_OBJECT ? HOT_KEPT_BYTES : room);
	if (unlikely(!skb)) {
		hot_buffer_put(buffer);
		return NULL;
	}
	*bound(skb) = NULL;
	if (likely(index != HOT_NO_OBJECT)) {
		WRITE_ONCE(hot_pools[HOT_POOL_BUFFER].state[index], HOT_OBJECT_CLAIMED);
		*bound(skb) = buffer;
	}
	return skb;
}

/* The first of this CPU's, which has some. */
static __always_inline struct sk_buff *take(struct hot_cpu *cpu)
{
	struct sk_buff *skb = cpu->kept;

	cpu->kept = (struct sk_buff *)hot_skb_tag(skb)->cookie;
	cpu->kept_count--;
	return skb;
}

struct sk_buff *hot_kept_get(u32 linear)
{
	const u32 room = HOT_TX_ROOM(linear);
	struct hot_cpu *cpu = cpu_here();
	struct sk_buff *skb;

	if (likely(cpu->kept && room <= HOT_KEPT_BYTES)) {
		const u32 index = hot_skb_index(skb = take(cpu));

		if (likely(index != HOT_NO_OBJECT))
			WRITE_ONCE(hot_pools[HOT_POOL_SKB].state[index], HOT_OBJECT_BUSY);
		hot_skb_init(skb, *bound(skb), HOT_KEPT_BYTES);
	} else {
		skb = from_pools(room);
		if (unlikely(!skb))
			return NULL;
	}
	skb_reserve(skb, HOT_HEADROOM);
	return skb;
}

/* From now on the buffer is as any other's. */
static noinline void unbind(struct sk_buff *skb, void *buffer)
{
	const u32 index = hot_pool_index(&hot_pools[HOT_POOL_BUFFER], buffer);

	*bound(skb) = NULL;
	if (index != HOT_NO_OBJECT)
		hot_pool_change(&hot_pools[HOT_POOL_BUFFER], index, HOT_OBJECT_CLAIMED, HOT_OBJECT_BUSY);
}

bool hot_kept_put(struct sk_buff *skb)
{
	void *buffer = *bound(skb);
	struct hot_cpu *cpu = cpu_here();

	if (unlikely(!buffer))
		return false;
	/* Another head is dom0's (pskb_expand_head()), and one that is shared is not free. */
	if (unlikely(skb->head != buffer || skb->cloned || cpu->kept_count >= HOT_KEPT ||
		     skb->end != HOT_KEPT_BYTES - HOT_SHARED_INFO)) {
		unbind(skb, buffer);
		return false;
	}
	hot_skb_tag(skb)->cookie = (unsigned long)cpu->kept;
	cpu->kept = skb;
	cpu->kept_count++;
	return true;
}

bool hot_kept_drain(void)
{
	struct hot_cpu *cpu = cpu_here();
	const bool any = cpu->kept;

	while (cpu->kept) {
		struct sk_buff *skb = take(cpu);
		u32 index = hot_pool_index(&hot_pools[HOT_POOL_BUFFER], *bound(skb));

		if (likely(index != HOT_NO_OBJECT))
			hot_pool_put(HOT_POOL_BUFFER, index);
		index = hot_skb_index(skb);
		if (likely(index != HOT_NO_OBJECT))
			hot_pool_put(HOT_POOL_SKB, index);
	}
	return any;
}

void hot_kept_reset(void)
{
	u32 cpu;

	for (cpu = 0; cpu < HOT_CPUS; cpu++) {
		hot_cpus[cpu].kept = NULL;
		hot_cpus[cpu].kept_count = 0;
	}
}
