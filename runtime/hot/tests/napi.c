// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: NAPI: scheduling, polling, disabling.
 */
#include "common.h"

void test_napi_cycle(void)
{
	struct napi_struct *n;

	begin();
	n = &driver->napi;
	CHECK(hot_poll(300) == 0 && !hot_pending());
	CHECK(napi_schedule_prep(n));
	CHECK(!napi_schedule_prep(n));
	CHECK(n->state == (NAPIF_STATE_SCHED | NAPIF_STATE_MISSED));
	n->state = NAPIF_STATE_SCHED;
	__napi_schedule(n);
	CHECK(hot_pending());
	driver->poll_work[0] = 5;
	CHECK(hot_poll(300) == 5);
	CHECK(driver->polls == 1 && driver->interrupts_enabled == 1);
	CHECK(n->state == 0 && list_empty(&n->poll_list) && !hot_pending());
	nothing_lost();
}

void test_napi_goes_on_until_done(void)
{
	begin();
	driver->poll_work[0] = driver->poll_work[1] = 64;
	driver->poll_work[2] = 3;
	napi_schedule(&driver->napi);
	CHECK(hot_poll(300) == 131 && driver->polls == 3 && driver->interrupts_enabled == 1);
	/* a budget spent leaves it listed */
	driver->polls = 0;
	napi_schedule(&driver->napi);
	CHECK(hot_poll(64) == 64 && hot_pending() && driver->polls == 1);
	CHECK(hot_poll(64) == 64 && hot_pending());
	CHECK(hot_poll(64) == 3 && !hot_pending());
	nothing_lost();
}

void test_napi_missed(void)
{
	begin();
	driver->poll_work[0] = 5;
	driver->poll_work[1] = 2;
	driver->poll_reschedules = true;
	napi_schedule(&driver->napi);
	CHECK(hot_poll(300) == 7);
	CHECK(driver->polls == 2 && driver->interrupts_enabled == 1 && driver->napi.state == 0);
	nothing_lost();
}

/* The host shows what the card received: it is asked before a poll ends. */
void test_napi_looks(void)
{
	begin();
	shared()->look = 1;
	test_host[0].more = 2;
	driver->poll_work[0] = 5;
	driver->poll_work[1] = 3;
	driver->poll_work[2] = 1;
	napi_schedule(&driver->napi);
	CHECK(hot_poll(300) == 9);
	CHECK(driver->polls == 3 && driver->interrupts_enabled == 1);
	CHECK(test_host[0].asked == 2);
	CHECK(driver->napi.state == 0 && list_empty(&driver->napi.poll_list) && !hot_pending());
	/* a card without end has its budget, and is polled again */
	driver->polls = 0;
	memset32((u32 *)driver->poll_work, 5, 8);
	test_host[0].more = ~0u;
	napi_schedule(&driver->napi);
	CHECK(hot_poll(64) == 65 && hot_pending() && driver->polls == 13);
	CHECK(driver->napi.state == NAPIF_STATE_SCHED && driver->interrupts_enabled == 1);
	test_host[0].more = 0;
	CHECK(hot_poll(64) == 5 && !hot_pending() && driver->interrupts_enabled == 2);
	/* nothing was received, or one; or the host shows nothing: it is not asked */
	test_host[0].asked = driver->polls = driver->poll_work[0] = 0;
	driver->poll_work[1] = 1;
	test_host[0].more = 1;
	napi_schedule(&driver->napi);
	CHECK(hot_poll(64) == 0 && driver->polls == 1 && driver->interrupts_enabled == 3);
	napi_schedule(&driver->napi);
	CHECK(hot_poll(64) == 1 && driver->polls == 2 && driver->interrupts_enabled == 4);
	shared()->look = 0;
	napi_schedule(&driver->napi);
	CHECK(hot_poll(64) == 5 && driver->polls == 3 && driver->interrupts_enabled == 5);
	/* dom0 waits for the end of it */
	shared()->look = 1;
	napi_schedule(&driver->napi);
	set_bit(NAPI_STATE_DISABLE, &driver->napi.state);
	CHECK(hot_poll(64) == 5 && driver->polls == 4);
	CHECK(driver->napi.state == NAPIF_STATE_DISABLE && !hot_pending());
	CHECK(!test_host[0].asked);
	shared()->look = 0;
	nothing_lost();
}

void test_napi_disable(void)
{
	begin();
	set_bit(NAPI_STATE_DISABLE, &driver->napi.state);
	CHECK(!napi_schedule_prep(&driver->napi));
	clear_bit(NAPI_STATE_DISABLE, &driver->napi.state);
	/* disabled while polled: it completes though there is work left */
	driver->poll_work[0] = 64;
	napi_schedule(&driver->napi);
	set_bit(NAPI_STATE_DISABLE, &driver->napi.state);
	CHECK(hot_poll(300) == 64);
	CHECK(driver->napi.state == NAPIF_STATE_DISABLE && !hot_pending());
	/* busy polling or netpoll own it: nothing is completed */
	driver->napi.state = NAPIF_STATE_SCHED | NAPIF_STATE_NPSVC;
	CHECK(!napi_complete_done(&driver->napi, 0));
	CHECK(driver->napi.state == (NAPIF_STATE_SCHED | NAPIF_STATE_NPSVC));
	nothing_lost();
}

/* A poll that claims no progress, of a driver with a weight of 0, must end. */
void test_napi_weight_zero_ends(void)
{
	begin();
	driver->napi.weight = 0;
	napi_schedule(&driver->napi);
	hot_poll(300);
	CHECK(driver->polls == 300);
	hot_recover(&driver->dev, 0);
	CHECK(!hot_pending());
	nothing_lost();
}

void test_bottom_halves(void)
{
	begin();
	driver->poll_work[0] = 1;
	local_bh_disable();
	local_bh_disable();
	napi_schedule(&driver->napi);
	local_bh_enable();
	CHECK(driver->polls == 0);
	local_bh_enable();
	CHECK(driver->polls == 1 && !hot_pending());
	nothing_lost();
}

/* Two CPUs schedule one napi as fast as they can: polled on one at a time. */
static u32 in_poll, poll_calls;

static int exclusive_poll(struct napi_struct *napi, int budget)
{
	CHECK(xchg(&in_poll, 1) == 0);
	WRITE_ONCE(poll_calls, poll_calls + 1);
	WRITE_ONCE(in_poll, 0);
	napi_complete_done(napi, 0);
	return 0;
}

static void schedule_and_poll(u32 cpu)
{
	u32 i;

	for (i = 0; i < 300000; i++) {
		if (napi_schedule_prep(&driver->napi)) {
			__napi_schedule(&driver->napi);
			hot_poll(64);
		}
	}
	while (hot_pending())
		hot_poll(64);
	CHECK(preempt_count() == 0);
}

void test_napi_on_two_cpus(void)
{
	begin();
	driver->napi.poll = exclusive_poll;
	test_two_cpus(schedule_and_poll);
	CHECK(poll_calls > 0 && driver->napi.state == 0);
	nothing_lost();
}
