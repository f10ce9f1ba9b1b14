// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: reception, to the guest.
 */
#include "common.h"
#include <linux/etherdevice.h>

void frame(u8 *f, u8 first, u16 type)
{
	u32 i;

	for (i = 0; i < 200; i++)
		f[i] = i;
	memset(f, 0, 6);
	f[0] = first;
	*(__be16 *)(f + 12) = htons(type);
}

void test_receive(void)
{
	struct test_host *host = &test_host[0];
	u8 f[200];
	u32 copy;

	begin();
	frame(f, 2, ETH_P_IP);
	f[5] = 9;
	for (copy = 0; copy < 2; copy++) {
		host->answer = HOT_RX_UNWANTED;
		CHECK(driver_receive(f, 200, copy));
		CHECK(host->length == 200 && host->vlan == 77);
		CHECK(host->flags == (HOT_RX_CHECKSUM_OK | HOT_RX_VLAN));
		CHECK(!memcmp(host->data, f, 200));
		pools_whole();

		host->answer = HOT_RX_HELD;
		CHECK(driver_receive(f, 200, copy));
		CHECK(!memcmp(host->data, f, 200));
		CHECK(host->skb->len == 186 && host->skb->protocol == htons(ETH_P_IP));
		CHECK(host->skb->pkt_type == PACKET_HOST && host->skb->dev == &driver->dev);
		CHECK(hot_pools[HOT_POOL_SKB].state[hot_skb_index(host->skb)] == HOT_OBJECT_HELD);
		/* only the holder may free a held one */
		consume_skb(host->skb);
		CHECK(hot_pools[HOT_POOL_SKB].state[hot_skb_index(host->skb)] == HOT_OBJECT_HELD);
		CHECK(hot_release(host->queue, host->held) == 1);
		host->held = 0;
		pools_whole();
	}
	nothing_lost();
}

void test_packet_types(void)
{
	struct test_host *host = &test_host[0];
	u8 f[200];

	begin();
	host->answer = HOT_RX_UNWANTED;
	frame(f, 2, ETH_P_IP);
	driver_receive(f, 60, true);
	CHECK(host->skb->pkt_type == PACKET_OTHERHOST);
	frame(f, 1, 0x0600);
	driver_receive(f, 60, true);
	CHECK(host->skb->pkt_type == PACKET_MULTICAST && host->skb->protocol == htons(0x600));
	frame(f, 1, 0x05ff);
	memset(f, 0xff, 6);
	driver_receive(f, 60, true);
	CHECK(host->skb->pkt_type == PACKET_BROADCAST && host->skb->protocol == htons(ETH_P_802_2));
	f[14] = f[15] = 0xff;
	driver_receive(f, 60, true);
	CHECK(host->skb->protocol == htons(ETH_P_802_3));
	nothing_lost();
}

void test_release_believes_nothing(void)
{
	u64 *release = (u64 *)shared()->release;
	u64 bad = counted(HOT_COUNT_BAD_FREE);
	struct sk_buff *busy;
	u8 f[200];

	begin();
	frame(f, 2, ETH_P_IP);
	driver_receive(f, 200, false);
	busy = napi_alloc_skb(&driver->napi, 60);
	release[0] = 0;
	release[1] = ~0ull;
	release[2] = (u64)busy;
	release[3] = test_host[0].queue[0] + 8;
	release[4] = test_host[0].queue[0];
	release[5] = test_host[0].queue[0];
	CHECK(hot_release(release, 6) == 1);
	CHECK(counted(HOT_COUNT_BAD_FREE) == bad + 5);
	consume_skb(busy);
	nothing_lost();
}

void test_receive_many_held(void)
{
	u32 n = 0, round;
	u8 f[200];

	begin();
	frame(f, 2, ETH_P_IP);
	for (round = 0; round < 40; round++) {
		u32 i;

		for (i = 0; i < HOT_RELEASE; i++)
			CHECK(driver_receive(f, 60 + i % 140, i & 1));
		n += hot_release(test_host[0].queue, test_host[0].held);
		test_host[0].held = 0;
	}
	CHECK(n == 40 * HOT_RELEASE);
	nothing_lost();
}
