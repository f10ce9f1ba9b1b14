// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card's interrupt and the tasklet: platform/xen/interrupt.c, with what other processors do
 * between two of its steps.
 */
#include <string.h>

#include "../platform/xen/platform.h"
#include "test.h"

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
	scheduled = entered = ended = to_dom0 = served = polls_left = frames = 0;
	locked = waits = false;
	meanwhile = NULL;
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

int main(void)
{
	RUN(an_interrupt_is_handled_polled_and_ended);
	RUN(frames_do_not_wait_for_the_next_poll);
	RUN(no_driver_runs_after_a_detachment);
	RUN(an_interrupt_that_came_too_late_is_ended);
	RUN(a_handler_that_ended_badly_leaves_the_interrupt);
	return test_summary();
}
