// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: pools of packets and fragments (exhaustion,
 * references, bad frees, two CPUs).
 */
#include "common.h"
#include <linux/mm.h>

struct sk_buff *many[HOT_POOL_MAX + 1];

void exhaust_skbs(u32 *taken, struct sk_buff **skbs, u32 most)
{
	for (*taken = 0; *taken < most; ++*taken) {
		skbs[*taken] = napi_alloc_skb(&driver->napi, 60);
		if (!skbs[*taken])
			break;
	}
}

void test_exhaustion_and_recovery(void)
{
	u64 refused;
	u32 n, i;

	begin();
	refused = counted(HOT_COUNT_SKB_EXHAUSTED) + counted(HOT_COUNT_BUFFER_EXHAUSTED);
	exhaust_skbs(&n, many, ARRAY_SIZE(many));
	CHECK(n > HOT_POOL_MAX - HOT_CPUS * HOT_MAGAZINE && n <= HOT_POOL_MAX);
	CHECK(counted(HOT_COUNT_SKB_EXHAUSTED) + counted(HOT_COUNT_BUFFER_EXHAUSTED) > refused);
	CHECK(netdev_alloc_frag(1900) == NULL);
	linear(0, 60);
	linear(1, 60);
	CHECK(hot_transmit(&driver->dev, 0, 2) == 0);
	CHECK(request(0)->result == HOT_NO_BUFFER && request(1)->result == HOT_NO_BUFFER);
	CHECK(!driver_receive(request(0)->header, 60, false));
	for (i = 0; i < n; i++)
		dev_kfree_skb_any(many[i]);
	CHECK(hot_transmit(&driver->dev, 0, 2) == 2);
	nothing_lost();
}

void test_exhausted_in_mid_batch(void)
{
	u32 n, i;

	begin();
	exhaust_skbs(&n, many, ARRAY_SIZE(many));
	for (i = 0; i < 3; i++)
		consume_skb(many[--n]);
	for (i = 0; i < 6; i++)
		linear(i, 60);
	CHECK(hot_transmit(&driver->dev, 0, 6) == 3);
	CHECK(request(2)->result == HOT_SENT && request(3)->result == HOT_NO_BUFFER);
	CHECK(driver->doorbells == 1 && !last_packet()->more);
	while (n)
		consume_skb(many[--n]);
	nothing_lost();
}

/* Whether all bytes are where the pools say that buffers are. */
static bool is_in_pools(const void *buffer, u32 size)
{
	struct hot_memory memory[HOT_BUFFER_POOLS];
	u32 i;

	hot_buffers(memory);
	for (i = 0; i < HOT_BUFFER_POOLS; i++)
		if ((u64)buffer - memory[i].start < memory[i].bytes)
			return !(memory[i].start % PAGE_SIZE) &&
			       (u64)buffer - memory[i].start + size <= memory[i].bytes;
	return false;
}

void test_sizes(void)
{
	static const u32 sizes[] = { 1, 64, 1920, 2048, 2049, 2432, 4096 };
	void *buffer;
	u32 i;

	begin();
	CHECK(!is_in_pools(driver, 1));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		buffer = netdev_alloc_frag(sizes[i]);
		CHECK(buffer);
		if (!buffer)
			continue;
		memset(buffer, 0xaa, sizes[i]);
		CHECK(is_in_pools(buffer, sizes[i]));
		CHECK((unsigned long)buffer >> 16 == ((unsigned long)buffer + sizes[i] - 1) >> 16);
		/* far above what puts could drop */
		CHECK(page_ref_count(virt_to_page(buffer)) > 1000);
		page_frag_free(buffer + sizes[i] / 2);
	}
	CHECK(netdev_alloc_frag(4097) == NULL);
	CHECK(netdev_alloc_frag(~0u) == NULL);
	CHECK(napi_alloc_skb(&driver->napi, 1 << 16) == NULL);
	CHECK(napi_alloc_skb(&driver->napi, ~0u - 32) == NULL);
	nothing_lost();
}

/* The paper's rule (4.3): dom0's own free never releases, and loses nothing. */
void test_reference_rule(void)
{
	struct sk_buff *skb;
	u64 reclaimed;
	u32 n, i;

	begin();
	skb = napi_alloc_skb(&driver->napi, 100);
	CHECK(refcount_read(&skb->users) == 2);
	skb_get(skb);
	consume_skb(skb);		/* one of two references */
	CHECK(refcount_read(&skb->users) == 2);
	CHECK(hot_pools[HOT_POOL_SKB].state[hot_skb_index(skb)] == HOT_OBJECT_BUSY);
	consume_skb(skb);
	CHECK(hot_pools[HOT_POOL_SKB].state[hot_skb_index(skb)] == HOT_OBJECT_FREE);

	reclaimed = counted(HOT_COUNT_RECLAIMED);
	exhaust_skbs(&n, many, ARRAY_SIZE(many));
	for (i = 0; i < n; i++)
		CHECK(!test_dom0_free(many[i]));
	/* no hot routine freed any of them, and yet they come back */
	for (i = 0; i < n; i++) {
		many[i] = hot_skb_reclaim() ? NULL : many[i];
		if (counted(HOT_COUNT_RECLAIMED) - reclaimed == n)
			break;
	}
	CHECK(counted(HOT_COUNT_RECLAIMED) - reclaimed == n);
	nothing_lost();
}

void test_reclaimed_when_exhausted(void)
{
	u32 n, i, round;

	begin();
	for (round = 0; round < 3; round++) {
		exhaust_skbs(&n, many, ARRAY_SIZE(many));
		CHECK(n > HOT_POOL_MAX - HOT_CPUS * HOT_MAGAZINE);
		for (i = 0; i < n; i++)
			CHECK(!test_dom0_free(many[i]));
	}
	/* those that dom0 freed last have not been reclaimed yet */
	while (hot_skb_reclaim())
		;
	nothing_lost();
}

void test_bad_frees(void)
{
	struct sk_buff *skb;
	u64 bad;
	void *buffer;

	begin();
	bad = counted(HOT_COUNT_BAD_FREE);
	skb = napi_alloc_skb(&driver->napi, 100);
	consume_skb(skb);
	consume_skb(skb);
	napi_consume_skb(skb, 64);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 2);
	buffer = netdev_alloc_frag(1900);
	page_frag_free(buffer);
	page_frag_free(buffer);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 3);
	skb = napi_alloc_skb(&driver->napi, 100);
	skb->end = 0xfffff0;		/* skb_shared_info would be anywhere */
	consume_skb(skb);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 4);
	consume_skb(NULL);
	nothing_lost();
}

/* dom0 frees objects that are not the pool's: by upcalls, and only these. */
void test_foreign(void)
{
	static struct sk_buff foreign;
	struct sk_buff *skb;
	void *page;

	begin();
	refcount_set(&foreign.users, 1);
	consume_skb(&foreign);
	CHECK(test_upcalls == 1 && refcount_read(&foreign.users) == 1);
	page = hot_pages(0);
	atomic_inc(&virt_to_page(page)->_refcount);
	page_frag_free(page + 100);
	CHECK(test_upcalls == 1);
	page_frag_free(page + 100);
	CHECK(test_upcalls == 2);
	/* a pool's sk_buff whose head dom0 replaced (pskb_expand_head) */
	skb = napi_alloc_skb(&driver->napi, 100);
	page_frag_free(skb->head);
	skb->head = skb->data = page;
	skb->head_frag = 0;
	consume_skb(skb);
	CHECK(test_upcalls == 3);
	/* one shared by a clone keeps its data until the other is gone */
	skb = napi_alloc_skb(&driver->napi, 100);
	page = skb->head;
	skb->cloned = 1;
	atomic_set(&skb_shinfo(skb)->dataref, 2);
	consume_skb(skb);
	CHECK(hot_pools[HOT_POOL_BUFFER].state[hot_pool_index(&hot_pools[HOT_POOL_BUFFER], page)] ==
	      HOT_OBJECT_BUSY);
	page_frag_free(page);
	test_upcalls = 0;
	nothing_lost();
}

void test_length(void)
{
	struct sk_buff *skb;

	begin();
	skb = napi_alloc_skb(&driver->napi, 100);
	CHECK(skb_headroom(skb) == NET_SKB_PAD + NET_IP_ALIGN && skb_tailroom(skb) >= 100);
	CHECK(skb_put(skb, 90) == skb->data && skb->len == 90);
	CHECK(skb_put(skb, 10) == skb->data + 90 && skb->len == 100);
	skb_trim(skb, 200);
	CHECK(skb->len == 100);
	skb_trim(skb, 64);
	CHECK(skb->len == 64 && skb_tail_pointer(skb) == skb->data + 64);
	CHECK(skb_put_padto(skb, 80) == 0 && skb->len == 80);
	consume_skb(skb);
	nothing_lost();
}

void test_trim_fragments(void)
{
	u32 to;

	begin();
	for (to = 50; to <= 60 + 3 * 400; to += 25) {
		struct sk_buff *skb = napi_alloc_skb(&driver->napi, 60);
		u32 i, total;

		skb_put(skb, 60);
		for (i = 0; i < 3; i++) {
			void *buffer = netdev_alloc_frag(400);
			skb_frag_t *fragment = &skb_shinfo(skb)->frags[i];

			fragment->bv_page = virt_to_page(buffer);
			skb_frag_off_set(fragment, offset_in_page(buffer));
			skb_frag_size_set(fragment, 400);
			skb_shinfo(skb)->nr_frags++;
			skb->len += 400;
			skb->data_len += 400;
		}
		CHECK(pskb_trim(skb, to) == 0);
		total = skb_headlen(skb);
		for (i = 0; i < skb_shinfo(skb)->nr_frags; i++)
			total += skb_frag_size(&skb_shinfo(skb)->frags[i]);
		CHECK(skb->len == to && total == to);
		CHECK(skb_shinfo(skb)->nr_frags == (to <= 60 ? 0 : DIV_ROUND_UP(to - 60, 400)));
		consume_skb(skb);
	}
	nothing_lost();
}

void test_guest_pages_are_not_pulled(void)
{
	struct sk_buff *skb;

	begin();
	add_fragment(linear(0, 60), GUEST_PAGE(0), 100);
	hot_transmit(&driver->dev, 0, 1);
	skb = last_packet()->skb;
	CHECK(__skb_pad(skb, 10, false) == -ENOMEM);
	CHECK(pskb_trim(skb, 100) == 0 && skb->len == 100 && skb_shinfo(skb)->nr_frags == 1);
	CHECK(pskb_trim(skb, 60) == 0 && skb->len == 60 && skb_shinfo(skb)->nr_frags == 0);
	nothing_lost();
}

/* One CPU frees what the other allocates: through two mailboxes. */
#define HAMMER	400000u

static struct sk_buff *mailbox[2][64];

static void hammer(u32 cpu)
{
	u32 i, k, got = 0;

	for (i = 0; i < HAMMER; i++) {
		struct sk_buff *skb = napi_alloc_skb(&driver->napi, 100);

		if (skb) {
			got++;
			*(u64 *)skb_put(skb, 8) = i;
			*(u64 *)skb->cb = i;
		}
		skb = xchg(&mailbox[cpu][i % 64], skb);
		if (skb) {
			CHECK(*(u64 *)skb->data == *(u64 *)skb->cb);
			consume_skb(skb);
		}
		skb = xchg(&mailbox[!cpu][test_random() % 64], NULL);
		if (skb) {
			CHECK(*(u64 *)skb->data == *(u64 *)skb->cb);
			napi_consume_skb(skb, 64);
		}
		if (i % 1024 == 0)
			for (k = 0; k < 64; k++)
				hot_skb_reclaim();
	}
	CHECK(got == HAMMER);
}

void test_two_cpus_share_pools(void)
{
	u32 i;

	begin();
	test_two_cpus(hammer);
	for (i = 0; i < 128; i++)
		consume_skb(mailbox[i / 64][i % 64]);
	memset(mailbox, 0, sizeof(mailbox));
	nothing_lost();
}

/* In bursts above a magazine's size, so that both CPUs are at the pool's lock. */
static void hammer_bursts(u32 cpu)
{
	static void *burst[2][200];
	u32 round, i;

	for (round = 0; round < 4000; round++) {
		u32 n = 100 + test_random() % 100;

		for (i = 0; i < n; i++) {
			burst[cpu][i] = netdev_alloc_frag(1900);
			CHECK(burst[cpu][i]);
			if (burst[cpu][i])
				*(u64 *)burst[cpu][i] = cpu + 1 + i * 2;
		}
		for (i = 0; i < n; i++) {
			CHECK(*(u64 *)burst[cpu][i] == cpu + 1 + i * 2);
			page_frag_free(burst[cpu][i]);
		}
	}
}

void test_two_cpus_in_bursts(void)
{
	begin();
	test_two_cpus(hammer_bursts);
	nothing_lost();
}

/* Packets of one CPU freed on two at once: each completes once, in one ring. */
static u32 free_barrier;

static void free_half(u32 cpu)
{
	u32 i;

	__sync_fetch_and_add(&free_barrier, 1);
	while (READ_ONCE(free_barrier) % 2)
		cpu_relax();
	for (i = cpu; i < 240; i += 2)
		napi_consume_skb(many[i], 64);
}

void test_freed_on_two_cpus(void)
{
	static u8 seen[240];
	u32 round, i;

	begin();
	for (round = 0; round < 300; round++) {
		struct hot_tx_done done;
		u32 n = 0;

		for (i = 0; i < 240; i++)
			linear(i, 60);
		CHECK(hot_transmit(&driver->dev, 0, 240) == 240);
		for (i = 0; i < 240; i++)
			many[i] = driver->packet[driver->clean++ % TEST_RING].skb;
		test_two_cpus(free_half);
		memset(seen, 0, sizeof(seen));
		while (completion(&done)) {
			n++;
			CHECK(done.cookie - 0x1000 < 240 && !seen[done.cookie - 0x1000]++);
		}
		CHECK(n == 240);
	}
	nothing_lost();
}

/* One sends, the other frees: completions arrive in the sender's ring. */
static u32 both_sent, both_stop;

static void both(u32 cpu)
{
	u32 i;

	if (cpu == 1) {
		while (!READ_ONCE(both_stop)) {
			HARD_TX_LOCK((&driver->dev), (&driver->txq), 1);
			driver_clean(16);
			HARD_TX_UNLOCK((&driver->dev), (&driver->txq));
		}
		return;
	}
	both_sent = 0;
	for (i = 0; i < 50000; i++) {
		u32 k;

		for (k = 0; k < 8; k++)
			linear(k, 60 + k);
		both_sent += hot_transmit(&driver->dev, 0, 8);
		if (i % 4 == 0)
			both_sent -= completions();
	}
	WRITE_ONCE(both_stop, 1);
}

void test_completed_by_another_cpu(void)
{
	begin();
	driver->room = 64;
	WRITE_ONCE(both_stop, 0);
	test_two_cpus(both);
	driver_clean(1000);
	both_sent -= completions();
	CHECK(both_sent == 0);
	nothing_lost();
}
