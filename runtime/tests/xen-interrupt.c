// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card's interrupt and the tasklet: platform/xen/interrupt.c, with what other processors do
 * between two of its steps.
 */
#include <string.h>

#include "../platform/xen/platform.h"
#include "test.h"
#include "xen-timer.h"

#include "../platform/xen/interrupt.c"

/* ---- What stands for Xen and the driver -------------------------------------------------- */

enum { PIRQ = 11, WEIGHT = 64 };

const uint64_t twin_value_pirq_pirq = 0;
const char twin_function_hot_poll[1], twin_function_hot_pending[1];
struct xen_device xen_device;
struct twin_xen_status xen_counts;
static uint64_t domain0;
struct domain *hardware_domain = (struct domain *)&domain0;

static uint32_t card = PIRQ;		/* a struct pirq is its number */
static uint32_t scheduled, entered, ended, to_dom0, served;
/* Polls that find more, and frames that wait for guests. */
static uint32_t polls_left, frames;
static bool locked, waits;
static int64_t now, cost;	/* of an entry */
/* What another processor does when the lock is asked for, and when the tasklet is killed. */
static void (*meanwhile)(void);

static void let_others(void)
{
	void (*action)(void) = meanwhile;

	meanwhile = NULL;
	if (action)
		action();
}

bool xen_trylock(void)
{
	let_others();
	if (locked)
		return false;
	locked = true;
	return true;
}

void xen_unlock(void)
{
	locked = false;
}

bool xen_upcall_waits(void)
{
	return waits;
}

int xen_run(const void *function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t *result)
{
	(void)a1;
	(void)a2;
	CHECK(locked);
	CHECK(xen_attached());
	entered++;
	now += cost;
	*result = 0;
	if (function == twin_function_hot_poll && polls_left) {
		polls_left--;
		frames += a0 - 1 + WEIGHT;
	}
	if (function == twin_function_hot_pending)
		*result = !!polls_left;
	return TWIN_OK;
}

int xen_run_patiently(const void *function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t *result)
{
	return xen_run(function, a0, a1, a2, result);
}

/* The card's rings around polls, and whether the driver broke a rule. */
static uint32_t shown, rung;
static bool bad_show, bad_ring;

bool xen_dma_show(void)
{
	CHECK(locked);
	shown++;
	return !bad_show;
}

bool xen_dma_ring(void)
{
	CHECK(locked || waits);
	rung++;
	return !bad_ring;
}

uint32_t xen_transmit_complete(void)
{
	return 0;
}

void xen_vif_service(void)
{
	CHECK(locked);
	served++;
}

void xen_vif_publish(void)
{
}

/* What there is room for: receive.c. */
void xen_receive_deliver(void)
{
	CHECK(locked);
	CHECK(frames <= 80);
	frames = 0;
}

void softirq_tasklet_init(struct xen_tasklet *made, void (*function)(void *), void *data)
{
	(void)made;
	(void)function;
	(void)data;
}

void tasklet_schedule_on_cpu(struct xen_tasklet *made, unsigned int processor)
{
	(void)made;
	(void)processor;
	scheduled++;
}

void tasklet_kill(struct xen_tasklet *made)
{
	(void)made;
}

/* Time goes on while somebody looks at the clock. */
int64_t get_s_time(void)
{
	return now += 10;
}

void pirq_guest_eoi(struct pirq *pirq)
{
	CHECK(pirq == (struct pirq *)&card);
	ended++;
}

void twin_original_send_guest_pirq(struct domain *domain, struct pirq *pirq)
{
	(void)domain;
	(void)pirq;
	to_dom0++;
}

/* ---- Tests ------------------------------------------------------------------------------- */

static void raise_it(void)
{
	send_guest_pirq(hardware_domain, (struct pirq *)&card);
}

static void begin(void)
{
	scheduled = entered = ended = to_dom0 = served = polls_left = frames = shown = rung = 0;
	bad_show = bad_ring = false;
	locked = waits = false;
	meanwhile = NULL;
	cost = 1000;
	now = 1000000000;
	xen_interrupt_start(0);
	xen_device.given.pirq = PIRQ;
	xen_device.attached = 1;
}

static void an_interrupt_is_handled_polled_and_ended(void)
{
	begin();
	raise_it();
	CHECK_EQUAL(scheduled, 1);
	CHECK(!xen_interrupt_idle());
	serve(NULL);
	CHECK_EQUAL(entered, 3);
	CHECK_EQUAL(ended, 1);
	CHECK_EQUAL(served, 1);
	CHECK_EQUAL(to_dom0, 0);
	CHECK(!locked);
	CHECK(xen_interrupt_idle());
}

/* Until then the tasklet has nothing to do. */
static void let_time_pass(void)
{
	CHECK(timer_set);
	timer_set = false;
	if (now < timer_time)
		now = timer_time;
	scheduled = 0;
	timer_function(NULL);
	CHECK_EQUAL(scheduled, 1);
}

/*
 * A driver that always has more to poll. Xen's __do_softirq() goes on while anything is pending: a
 * tasklet that schedules itself leaves nothing to the processor's guests.
 */
static void a_driver_without_end_has_half_a_processor(void)
{
	const int64_t first = 1000000000;
	int64_t before, busy = 0;
	uint32_t i;

	begin();
	polls_left = UINT32_MAX;
	raise_it();
	for (i = 0; i < 1000; i++) {
		cost = i % 2 ? 100 : 1000000;
		scheduled = 0;
		before = now;
		serve(NULL);
		busy += now - before;
		CHECK_EQUAL(scheduled, 0);
		CHECK(timer_set);
		CHECK(timer_time - now >= 50000 - 100);
		/* Somebody has work for it meanwhile. */
		before = now;
		if (i % 3 == 0)
			serve(NULL);
		busy += now - before;
		/* Half of the time, and what it has not used before. */
		CHECK(busy <= (now - first) / 2 + 5000000 + 10000000);
		let_time_pass();
	}
	CHECK(busy >= (now - first) * 2 / 5);
}

/* One that is there as soon as the last is ended. */
static void a_flood_of_interrupts_has_half_a_processor(void)
{
	int64_t first, busy = 0, before;
	uint32_t i;

	begin();
	first = now;
	for (i = 0; i < 20000; i++) {
		raise_it();
		before = now;
		serve(NULL);
		busy += now - before;
		if (timer_set)
			let_time_pass();
	}
	CHECK(ended >= 8000);
	CHECK(busy <= (now - first) / 2 + 10000000);
	CHECK(busy >= 10000000);
}

/* An interrupt that comes alone is served at once. */
static void an_interrupt_later_on_does_not_wait(void)
{
	uint32_t i;

	begin();
	for (i = 1; i < 10; i++) {
		raise_it();
		serve(NULL);
		CHECK_EQUAL(ended, i);
		CHECK(!timer_set);
		now += 5000;
	}
}

/* Whoever has the lock has it for longer than is waited for. */
static void a_lock_that_is_taken_is_not_asked_for_all_the_time(void)
{
	int64_t before;

	begin();
	raise_it();
	locked = true;
	scheduled = 0;
	before = now;
	serve(NULL);
	CHECK(now - before < 100000);
	CHECK_EQUAL(scheduled, 0);
	CHECK_EQUAL(entered, 0);
	locked = false;
	let_time_pass();
	serve(NULL);
	CHECK_EQUAL(ended, 1);
}

static void no_timer_outlives_a_detachment(void)
{
	begin();
	polls_left = UINT32_MAX;
	raise_it();
	serve(NULL);
	CHECK(timer_set);
	xen_device.attached = 0;
	xen_interrupt_stop();
	CHECK(!timer_set);
}

/* Each call gives as many frames as it may: a poll that leaves one of the budget, and another. */
static void frames_do_not_wait_for_the_next_poll(void)
{
	begin();
	polls_left = 3;
	raise_it();
	serve(NULL);
	CHECK_EQUAL(polls_left, 0);
	CHECK_EQUAL(frames, 0);
}

static void detach(void)
{
	xen_device.attached = 0;
}

/* The tasklet has seen the device attached, and gets the lock when it is no longer: an exception
 * of driver code would be Xen's own, and nobody would poll what the handler lists. */
static void no_driver_runs_after_a_detachment(void)
{
	begin();
	raise_it();
	meanwhile = detach;
	serve(NULL);
	CHECK_EQUAL(entered, 0);
	CHECK_EQUAL(served, 0);
	CHECK(!locked);
	xen_interrupt_stop();
	xen_interrupt_give_back();
	CHECK_EQUAL(ended, 1);
}

/*
 * A processor has seen the device attached and notes the interrupt when the tasklet is gone:
 * dom0 would never have another one. When all processors have been stopped, nobody is on the
 * way.
 */
static void an_interrupt_that_came_too_late_is_ended(void)
{
	begin();
	detach();
	xen_interrupt_stop();
	CHECK_EQUAL(ended, 0);
	xen_device.attached = 1;	/* as it was seen */
	raise_it();
	detach();
	xen_interrupt_give_back();
	CHECK_EQUAL(ended, 1);
	xen_interrupt_give_back();
	CHECK_EQUAL(ended, 1);
	raise_it();
	CHECK_EQUAL(to_dom0, 1);
}

static void a_handler_that_ended_badly_leaves_the_interrupt(void)
{
	begin();
	raise_it();
	CHECK(__atomic_exchange_n(&pending, 0, __ATOMIC_ACQ_REL));
	in_handler = true;
	xen_interrupt_resumed(TWIN_ABORTED);
	CHECK_EQUAL(ended, 0);
	CHECK(!xen_interrupt_idle());
	detach();
	xen_interrupt_stop();
	xen_interrupt_give_back();
	CHECK_EQUAL(ended, 1);
}

/* What the card wrote is there before each poll; what the driver gave to it is looked at after each, and when
 * a call of dom0's has ended in one. */
static void rings_are_looked_at_around_each_poll(void)
{
	begin();
	polls_left = 2;
	raise_it();
	serve(NULL);
	CHECK_EQUAL(shown, 2);
	CHECK_EQUAL(rung, 2);
	waits = true;
	xen_interrupt_resumed(TWIN_OK);
	CHECK_EQUAL(rung, 3);
	xen_interrupt_resumed(TWIN_ABORTED);
	CHECK_EQUAL(rung, 3);
}

/* The driver is dead: nobody polls again. */
static void a_driver_that_breaks_a_rule_is_not_polled(void)
{
	begin();
	bad_ring = true;
	polls_left = 5;
	raise_it();
	serve(NULL);
	CHECK_EQUAL(polls_left, 4);
	CHECK(xen_interrupt_idle());
	begin();
	bad_show = true;
	polls_left = 5;
	raise_it();
	serve(NULL);
	CHECK_EQUAL(polls_left, 5);
	CHECK_EQUAL(rung, 0);
}

int main(void)
{
	RUN(rings_are_looked_at_around_each_poll);
	RUN(a_driver_that_breaks_a_rule_is_not_polled);
	RUN(an_interrupt_is_handled_polled_and_ended);
	RUN(frames_do_not_wait_for_the_next_poll);
	RUN(a_driver_without_end_has_half_a_processor);
	RUN(a_flood_of_interrupts_has_half_a_processor);
	RUN(an_interrupt_later_on_does_not_wait);
	RUN(a_lock_that_is_taken_is_not_asked_for_all_the_time);
	RUN(no_timer_outlives_a_detachment);
	RUN(no_driver_runs_after_a_detachment);
	RUN(an_interrupt_that_came_too_late_is_ended);
	RUN(a_handler_that_ended_badly_leaves_the_interrupt);
	return test_summary();
}
