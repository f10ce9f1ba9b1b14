// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: the state after an abort of the driver, and the
 * restart.
 */
#include "common.h"
#include <linux/etherdevice.h>

void test_recover(void)
{
	struct hot_tx_done done;
	struct sk_buff *held;
	u8 f[200];
	u32 n;

	begin();
	frame(f, 2, ETH_P_IP);
	driver_receive(f, 200, false);		/* held: must survive */
	held = test_host[0].skb;
	linear(0, 60);
	CHECK(hot_transmit(&driver->dev, 0, 1) == 1);
	driver->clean = driver->next;		/* the ring forgot it */
	shared()->tx_sent--;			/* CPU 1 died before it counted */
	exhaust_skbs(&n, many, 500);
	CHECK(netdev_alloc_frag(1900) && netdev_alloc_frag(4000));
	hot_pools[HOT_POOL_BUFFER].lock = 1 + 1;	/* CPU 1 died in there ... */
	hot_shared[0].tx_done_lock = 1 + 1;
	WRITE_ONCE(driver->txq.xmit_lock_owner, HOT_QUEUE_OWNER + 1);
	driver->txq._xmit_lock.rlock.raw_lock.val.counter = 1;
	hot_cpus[1].polling = 1;
	CHECK(hot_recover(&driver->dev, HOT_CPUS) == 0);
	CHECK(hot_recover(&driver->dev, 1) == 0);	/* ... and the interface is up */
	CHECK(!spin_is_locked(&driver->txq._xmit_lock));
	WRITE_ONCE(driver->txq.xmit_lock_owner, 1);	/* dom0's own CPU 1 has it */
	driver->txq._xmit_lock.rlock.raw_lock.val.counter = 1;
	CHECK(hot_recover(&driver->dev, 1) == 0);
	CHECK(spin_is_locked(&driver->txq._xmit_lock));
	WRITE_ONCE(driver->txq.xmit_lock_owner, -1);
	driver->txq._xmit_lock.rlock.raw_lock.val.counter = 0;
	CHECK(hot_pools[HOT_POOL_BUFFER].lock == 0 && hot_shared[0].tx_done_lock == 0);
	clear_bit(__LINK_STATE_START, &driver->dev.state);
	CHECK(hot_recover(&driver->dev, 1) == 2 + 500 + 500 + 2);
	CHECK(completion(&done) && done.cookie == 0x1000 && !completion(&done));
	CHECK(shared()->tx_sent == shared()->tx_done_produce);
	CHECK(!memcmp(skb_mac_header(held), f, 200));
	CHECK(hot_release(test_host[0].queue, 1) == 1);
	nothing_lost();
}

/* A driver that dies while it gives a packet leaves it HELD. A host that holds none never
 * releases it: it is the pool's again. */
void test_recover_given(void)
{
	u8 f[200];
	u32 i;

	for (i = 0; i < 2; i++) {
		begin();
		frame(f, 2, ETH_P_IP);
		driver_receive(f, 200, false);
		CHECK(hot_pools[HOT_POOL_SKB].state[hot_skb_index(test_host[0].skb)] ==
		      HOT_OBJECT_HELD);
		clear_bit(__LINK_STATE_START, &driver->dev.state);
		hot_host_holds = i;
		CHECK(hot_recover(&driver->dev, 1) == (i ? 0 : 2));
		hot_host_holds = 1;
		CHECK(hot_release(test_host[0].queue, 1) == i);
		nothing_lost();
	}
}

/* The napi of a CPU that died, wherever it did, can be disabled and used again. */
static void napi_dies(u32 cpu)
{
	if (cpu == 1 && napi_schedule_prep(&driver->napi) && driver->room)
		__napi_schedule(&driver->napi);
}

void test_recover_napi(void)
{
	u32 listed;

	begin();
	for (listed = 0; listed < 2; listed++) {
		driver->room = listed;
		test_two_cpus(napi_dies);
		CHECK(driver->napi.state == NAPIF_STATE_SCHED);
		CHECK(!napi_schedule_prep(&driver->napi));
		hot_recover(&driver->dev, 1);
		CHECK(driver->napi.state == 0 && list_empty(&driver->napi.poll_list));
	}
	/* what another CPU has scheduled since stays */
	test_two_cpus(napi_dies);
	driver->napi.state = 0;
	INIT_LIST_HEAD(&driver->napi.poll_list);
	napi_schedule(&driver->napi);
	hot_recover(&driver->dev, 1);
	CHECK(driver->napi.state == NAPIF_STATE_SCHED && hot_pending());
	hot_poll(300);
	nothing_lost();
}
