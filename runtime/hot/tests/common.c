// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Shared functions of the hot routines' tests, and the list of tests.
 */
#include "common.h"
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>

static u32 this_cpu(void)
{
	return raw_smp_processor_id();
}

struct hot_shared *shared(void)
{
	return &hot_shared[this_cpu()];
}

struct hot_tx_request *request(u32 i)
{
	return (struct hot_tx_request *)shared()->requests + i;
}

u64 counted(enum hot_counter which)
{
	u64 n = 0;
	u32 cpu;

	for (cpu = 0; cpu < HOT_CPUS; cpu++)
		n += hot_shared[cpu].counter[which];
	return n;
}

/* The oldest completion, taken; false if there is none. */
bool completion(struct hot_tx_done *done)
{
	if (shared()->tx_done_consume == smp_load_acquire(&shared()->tx_done_produce))
		return false;
	*done = ((struct hot_tx_done *)shared()->tx_done)[shared()->tx_done_consume % HOT_TX_DONE];
	shared()->tx_done_consume++;
	return true;
}

u32 completions(void)
{
	struct hot_tx_done done;
	u32 n = 0;

	while (completion(&done))
		n++;
	return n;
}

/* What CPUs keep of a pool, and that its state is right: else all are FREE. */
static u32 count_kept(enum hot_pool_id id, u8 *seen)
{
	struct hot_pool *pool = &hot_pools[id];
	static u8 is_kept[HOT_POOL_MAX];
	u32 cpu, i, index, n = 0;

	memset(is_kept, 0, sizeof(is_kept));
	for (cpu = 0; cpu < HOT_CPUS && id != HOT_POOL_LARGE; cpu++) {
		struct sk_buff *skb = hot_cpus[cpu].kept;

		for (i = 0; i < hot_cpus[cpu].kept_count; i++, n++) {
			index = hot_skb_index(skb);
			if (id == HOT_POOL_BUFFER)
				index = hot_pool_index(pool, container_of(skb, struct hot_skb, skb)->kept);
			CHECK(index < pool->count);
			seen[index]++;
			is_kept[index] = 1;
			skb = (struct sk_buff *)hot_skb_tag(skb)->cookie;
		}
		CHECK(!skb);
	}
	for (i = 0; i < pool->count; i++)
		CHECK(pool->state[i] == (is_kept[i] ? HOT_OBJECT_CLAIMED : HOT_OBJECT_FREE));
	return n;
}

/* Every object is in its pool exactly once, or kept. */
void pools_whole(void)
{
	static u8 seen[HOT_POOL_MAX];
	enum hot_pool_id id;
	u32 cpu, i;

	for (id = 0; id < HOT_POOLS; id++) {
		struct hot_pool *pool = &hot_pools[id];
		u32 n = pool->free;

		memset(seen, 0, sizeof(seen));
		for (i = 0; i < pool->free; i++)
			seen[pool->stack[i]]++;
		for (cpu = 0; cpu < HOT_CPUS; cpu++) {
			struct hot_magazine *magazine = &hot_cpus[cpu].magazine[id];

			n += magazine->count;
			for (i = 0; i < magazine->count; i++)
				seen[magazine->index[i]]++;
		}
		n += count_kept(id, seen);
		CHECK(n == pool->count);
		for (i = 0; i < pool->count; i++) {
			CHECK(seen[i] == 1);
			if (id == HOT_POOL_SKB)
				CHECK(refcount_read(&((struct sk_buff *)
						     hot_pool_object(pool, i))->users) == 2);
		}
	}
}

void nothing_lost(void)
{
	driver_clean(TEST_RING);
	completions();
	pools_whole();
	CHECK(test_upcalls == 0);
	test_upcalls = 0;
	CHECK(!spin_is_locked(&driver->txq._xmit_lock) && driver->txq.xmit_lock_owner == -1);
	CHECK(preempt_count() == 0);
	CHECK(shared()->tx_done_lock == 0);
	CHECK(counted(HOT_COUNT_COMPLETION_LOST) == 0);
}

void begin(void)
{
	driver_reset();
	memset(&test_host, 0, sizeof(test_host));
	test_upcalls = 0;
	if (hot_shared[0].requests)
		memset(request(0), 0, HOT_REQUESTS * sizeof(struct hot_tx_request));
}

static void fill_ethernet(struct hot_tx_request *r, u16 type)
{
	u32 i;

	for (i = 0; i < HOT_HEADER; i++)
		r->header[i] = i * 7 + 1;
	*(__be16 *)(r->header + 12) = htons(type);
}

struct hot_tx_request *linear(u32 i, u32 length)
{
	struct hot_tx_request *r = request(i);

	memset(r, 0, sizeof(*r));
	fill_ethernet(r, 0x88b5);
	r->cookie = 0x1000 + i;
	r->guest = 3;
	r->header_length = length;
	r->result = 99;
	return r;
}

void add_fragment(struct hot_tx_request *r, u64 address, u32 length)
{
	r->fragment[r->fragments].address = address;
	r->fragment[r->fragments++].length = length;
}

/* Headers of TCP at 14 (+ 4 a tag); returns their length. */
u32 fill_tcp(struct hot_tx_request *r, bool v6, u32 tags)
{
	u32 at = ETH_HLEN + 4 * tags, i;
	struct tcphdr *tcp;

	fill_ethernet(r, tags ? ETH_P_8021Q : v6 ? ETH_P_IPV6 : ETH_P_IP);
	for (i = 0; i < tags; i++)
		*(__be16 *)(r->header + 16 + 4 * i) =
			htons(i + 1 < tags ? ETH_P_8021Q : v6 ? ETH_P_IPV6 : ETH_P_IP);
	if (v6) {
		struct ipv6hdr *ip = (struct ipv6hdr *)(r->header + at);

		memset(ip, 0, sizeof(*ip));
		ip->version = 6;
		ip->nexthdr = IPPROTO_TCP;
		at += sizeof(*ip);
	} else {
		struct iphdr *ip = (struct iphdr *)(r->header + at);

		memset(ip, 0, sizeof(*ip));
		ip->version = 4;
		ip->ihl = 5;
		ip->protocol = IPPROTO_TCP;
		ip->saddr = htonl(0x0a000001);
		ip->daddr = htonl(0x0a000002);
		at += sizeof(*ip);
	}
	tcp = (struct tcphdr *)(r->header + at);
	memset(tcp, 0, sizeof(*tcp));
	tcp->doff = 8;
	r->checksum_start = at;
	r->checksum_offset = offsetof(struct tcphdr, check);
	return at + 32;
}

/* A TCP segment of 64 KiB in 16 fragments. */
struct hot_tx_request *tso(u32 i, bool v6, u32 tags)
{
	struct hot_tx_request *r = linear(i, 60);
	u32 n;

	r->header_length = fill_tcp(r, v6, tags);
	r->gso_type = v6 ? HOT_GSO_TCPV6 : HOT_GSO_TCPV4;
	r->gso_size = 1400;
	for (n = 0; n < 15; n++)
		add_fragment(r, GUEST_PAGE(n * 2), PAGE_SIZE);
	add_fragment(r, GUEST_PAGE(40) + 100, 1000);
	return r;
}

struct test_packet *last_packet(void)
{
	return &driver->packet[(driver->next - 1) % TEST_RING];
}

const struct hot_test hot_tests[] = {
#define ROW(name)	{ #name, test_##name },
	HOT_TESTS(ROW)
#undef ROW
	{ }
};
