// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * sk_buffs of parts (offload.c) that keep their buffers when they are free, because the next part needs
 * just that again: a pair costs one place of a CPU's own instead of two of pools, and neither is looked for.
 *
 *   pools --bind--> in flight --last reference--> kept --next--> in flight
 *     ^                  | its data are not its own any more        |
 *     +------------------+------------ a pool is empty -------------+
 *
 * The buffer is CLAIMED as long as it is bound, also in flight, and the sk_buff while it is kept: so no one
 * frees either a second time. Nothing that the driver left in a pair is relied on but that it is one.
 */
#include "internal.h"

struct sk_buff *hot_kept_from_pools(u32 room)
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
	*hot_kept_buffer(skb) = NULL;
	if (likely(index != HOT_NO_OBJECT)) {
		WRITE_ONCE(hot_pools[HOT_POOL_BUFFER].state[index], HOT_OBJECT_CLAIMED);
		*hot_kept_buffer(skb) = buffer;
	}
	skb_reserve(skb, HOT_HEADROOM);
	return skb;
}

void hot_kept_unbind(struct sk_buff *skb)
{
	const u32 index = hot_pool_index(&hot_pools[HOT_POOL_BUFFER], *hot_kept_buffer(skb));

	*hot_kept_buffer(skb) = NULL;
	if (index != HOT_NO_OBJECT)
		hot_pool_change(&hot_pools[HOT_POOL_BUFFER], index, HOT_OBJECT_CLAIMED, HOT_OBJECT_BUSY);
}

/* The first of this CPU's, which has some. */
static struct sk_buff *take(struct hot_cpu *cpu)
{
	struct sk_buff *skb = cpu->kept;

	cpu->kept = (struct sk_buff *)hot_skb_tag(skb)->cookie;
	cpu->kept_count--;
	return skb;
}

bool hot_kept_drain(void)
{
	struct hot_cpu *cpu = hot_cpu_here();
	const bool any = cpu->kept;

	while (cpu->kept) {
		struct sk_buff *skb = take(cpu);
		u32 index = hot_pool_index(&hot_pools[HOT_POOL_BUFFER], *hot_kept_buffer(skb));

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
