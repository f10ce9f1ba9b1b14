// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Processors that wait for others, and driver code on those: platform/xen/await.c. Processors are
 * threads.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "../platform/xen/clock.h"
#include "../platform/xen/platform.h"
#include "test.h"

/* What only Xen may execute. Who has interrupts on has answered. */
static __thread uint32_t number;
#define xen_processor() number
#define xen_interrupts_off() ((void)0)
#define xen_interrupts_restore(flags) ((void)(flags), sched_yield())

#include "../platform/xen/await.c"

/* ---- What stands for Xen and the driver ---------------------------------------------------- */

enum { DRIVERS = 2, WAITERS = 2, ROUNDS = 20000 };

struct xen_seen xen_seen[TWIN_XEN_CPUS];
unsigned int nr_cpu_ids = 70;
static uint64_t last_mask[2];
/* Time goes by where somebody looks at it, by so many ns: 0 where threads wait for others, which a busy machine
 * may keep from their turn for as long as it likes. */
static int64_t now, step = 1000;
static uint32_t asks, originals;
static bool inside[TWIN_XEN_CPUS];	/* driver code runs there */

int64_t get_s_time(void)
{
	return __atomic_add_fetch(&now, step, __ATOMIC_RELAXED);
}

/* The NMI comes, and driver code ends. */
static uint32_t lost;

void xen_clock_ask(uint32_t processor, uint64_t turn, bool again)
{
	CHECK_EQUAL(xen_seen[processor].turn, turn);
	CHECK_EQUAL(again, asks > 0);
	asks++;
	if (lost)
		lost--;
	else
		xen_clock_leave(&xen_seen[processor]);
}

/* Xen's own: it interrupts them and waits, while none of them may be in driver code. */
static void wait_for(uint64_t mask)
{
	uint32_t i, k;

	__atomic_fetch_add(&originals, 1, __ATOMIC_RELAXED);
	for (k = 0; k < 3; k++)
		for (i = 0; i < TWIN_XEN_CPUS; i++)
			if (mask >> i & 1 && i != number)
				CHECK(!__atomic_load_n(&inside[i], __ATOMIC_ACQUIRE));
}

void twin_original_flush_area_mask(const void *mask, const void *address, unsigned int flags)
{
	CHECK_EQUAL(address, 0x1234);
	CHECK_EQUAL(flags, 0x300);
	if (number >= TWIN_XEN_CPUS)
		memcpy(last_mask, mask, sizeof(last_mask));
	wait_for(*(const uint64_t *)mask);
}

static void nothing(void *data)
{
	(void)data;
}

void twin_original_on_selected_cpus(const void *mask, void (*function)(void *), void *data, int wait)
{
	CHECK(function == nothing && !data);
	CHECK_EQUAL(wait, 1);
	wait_for(*(const uint64_t *)mask);
}

/* ---- Tests ------------------------------------------------------------------------------------ */

static void flush_those(uint64_t first)
{
	const uint64_t mask[2] = { first, 0x21 };

	flush(mask, (const void *)0x1234, 0x300);
}

static void *drive(void *processor)
{
	uint32_t i;

	number = (uint32_t)(uint64_t)processor;
	for (i = 0; i < ROUNDS; i++) {
		xen_clock_enter(&xen_seen[number]);
		__atomic_store_n(&inside[number], true, __ATOMIC_RELEASE);
		if (i % 16 == 0)
			sched_yield();
		__atomic_store_n(&inside[number], false, __ATOMIC_RELEASE);
		xen_clock_leave(&xen_seen[number]);
	}
	return NULL;
}

static void *wait_often(void *processor)
{
	const uint64_t both[2] = { 3 };
	uint32_t i;

	number = (uint32_t)(uint64_t)processor;
	for (i = 0; i < ROUNDS / 4; i++) {
		if (i % 2)
			flush_those(both[0]);
		else
			call(both, nothing, NULL, 1);
		if (i % 8 == 0)
			sched_yield();
	}
	return NULL;
}

static void nobody_waits_for_driver_code(void)
{
	pthread_t threads[DRIVERS + WAITERS];
	uint64_t i;

	originals = 0;
	step = 0;
	for (i = 0; i < DRIVERS + WAITERS; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, i < DRIVERS ? drive : wait_often, (void *)i), 0);
	for (i = 0; i < DRIVERS + WAITERS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < TWIN_XEN_CPUS; i++) {
		CHECK_EQUAL(xen_seen[i].awaited, 0);
		CHECK_EQUAL(xen_seen[i].turn % 2, 0);
	}
	CHECK_EQUAL(originals, WAITERS * (ROUNDS / 4));
}

/* Two who always begin to wait before the other has ended: there is no moment at which nobody does. */
static uint32_t began, turns;

static void *wait_in_turn(void *processor)
{
	const uint64_t mask[2] = { 1 };
	struct waiting waiting;
	uint32_t mine;

	number = (uint32_t)(uint64_t)processor;
	while (!__atomic_load_n(&turns, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&began, __ATOMIC_ACQUIRE) < ROUNDS) {
		begin_waiting(&waiting, mask);
		mine = __atomic_add_fetch(&began, 1, __ATOMIC_SEQ_CST);
		/* Until the other one has begun, or the driver has had its turn, or waits for that. */
		while (__atomic_load_n(&began, __ATOMIC_ACQUIRE) == mine &&
		       mine < ROUNDS && !__atomic_load_n(&turns, __ATOMIC_ACQUIRE) &&
		       !__atomic_load_n(&xen_seen[0].wanted, __ATOMIC_ACQUIRE))
			sched_yield();
		end_waiting(&waiting);
	}
	return NULL;
}

static void who_waits_for_waiters_has_its_turn(void)
{
	pthread_t threads[2];
	uint64_t i;

	began = turns = 0;
	step = 0;
	for (i = 0; i < 2; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, wait_in_turn, (void *)(i + 1)), 0);
	while (__atomic_load_n(&began, __ATOMIC_ACQUIRE) < 8)
		sched_yield();
	number = 0;
	xen_clock_enter(&xen_seen[0]);
	__atomic_store_n(&turns, 1, __ATOMIC_RELEASE);
	xen_clock_leave(&xen_seen[0]);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(began < ROUNDS);
	CHECK_EQUAL(xen_seen[0].awaited, 0);
	CHECK_EQUAL(xen_seen[0].wanted, 0);
}

static void driver_code_without_end_is_ended(void)
{
	int64_t began;

	number = 0;
	asks = lost = 0;
	began = now;
	CHECK(xen_clock_try(&xen_seen[1]));
	flush_those(1 << 1);
	CHECK_EQUAL(asks, 1);
	CHECK(now - began >= XEN_CLOCK_LIMIT);
	CHECK(now - began < XEN_CLOCK_LIMIT + 100000000);

	/* NMIs that are lost. */
	asks = 0;
	lost = 2;
	CHECK(xen_clock_try(&xen_seen[1]));
	flush_those(1 << 1);
	CHECK_EQUAL(asks, 3);
}

/* In a panic: driver code that no NMI ends, because Xen halts in the middle of its turn; a processor
 * that waits for one that was halted while it was counted. Xen's own is called all the same. */
static void nobody_waits_for_ever(void)
{
	int64_t began;

	number = 0;
	asks = originals = 0;
	lost = UINT32_MAX;
	began = now;
	CHECK(xen_clock_try(&xen_seen[1]));
	flush_those(1 << 1);
	CHECK_EQUAL(originals, 1);
	CHECK_EQUAL(asks, PATIENCE - 1);
	CHECK(now - began < (PATIENCE + 1) * XEN_CLOCK_LIMIT);
	CHECK_EQUAL(xen_seen[1].awaited, 0);
	xen_clock_leave(&xen_seen[1]);

	began = now;
	xen_seen[1].wanted = 1;
	flush_those(1 << 1);
	CHECK_EQUAL(originals, 2);
	CHECK(now - began >= PATIENCE * XEN_CLOCK_LIMIT);
	CHECK(now - began < (PATIENCE + 1) * XEN_CLOCK_LIMIT);
	xen_seen[1].wanted = 0;
}

/* This one, and those that have no driver code. */
static void others_are_not_waited_for(void)
{
	asks = 0;
	number = 2;
	CHECK(xen_clock_try(&xen_seen[2]));
	flush_those(~0ull << 2);
	CHECK_EQUAL(asks, 0);
	xen_clock_leave(&xen_seen[2]);
	number = 9;
	flush_those(1ull << 9 | 1ull << 63);
	CHECK_EQUAL(asks, 0);
	/* But they are Xen's to wait for. */
	CHECK_EQUAL(last_mask[0], 1ull << 9 | 1ull << 63);
	CHECK_EQUAL(last_mask[1], 0x21);
}

int main(void)
{
	RUN(driver_code_without_end_is_ended);
	RUN(nobody_waits_for_ever);
	RUN(others_are_not_waited_for);
	RUN(nobody_waits_for_driver_code);
	RUN(who_waits_for_waiters_has_its_turn);
	return test_summary();
}
