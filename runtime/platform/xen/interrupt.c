// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card's interrupt, and the tasklet that does what it asks for.
 *
 * Xen would send the interrupt to dom0 as an event (send_guest_pirq). While the device is
 * attached it goes to a tasklet instead, which runs the driver's handler, then polls as
 * the kernel's softirq would, then ends the interrupt.
 *
 * NAPI: the handler lists the device with the hot routines of the processor that it ran
 * on, and only that processor polls its list. So the tasklet always runs on one, its home,
 * which is the one that attached. It comes again by itself while the list is not empty:
 * the card's interrupts are masked until a poll has found nothing more.
 *
 * Xen runs softirqs before a processor goes back to its guest, and goes on while any is pending
 * (softirq.c, __do_softirq). So the tasklet never schedules itself: a driver, a guest or who sends
 * to this machine could have the processor for ever. What is left to do by itself it does PAUSE
 * later at the earliest. Whoever asks for it, it has half of the time, and BURST more if it had less
 * before; then it rests until it has no more than that. An interrupt now and then is served at once.
 */
#include "platform.h"

#define SLICES 4u	/* before other work of Xen's has its turn */
#define PAUSE 50000ll	/* ns, as late as a timer of Xen's may be (timer_slop) */
/* ns: what a virtual processor waits for another one, too (credit2.c, CSCHED2_MAX_TIMER). */
#define BURST 10000000ll

void tasklet_schedule_on_cpu(struct xen_tasklet *tasklet, unsigned int processor);

static struct xen_tasklet tasklet;
static struct xen_timer again;		/* the tasklet's; it has paused, or rested */
static int64_t half_at;			/* what it has run is half of the time then; its own */
static uint32_t home;
static uint32_t pending;		/* an interrupt that the handler has not seen */
static struct pirq *raised;		/* to be ended; dom0's, which keeps it bound */
static bool listed;			/* polls are due; written served */
static bool in_handler;			/* what was entered last; written served */

void xen_service_request(void)
{
	/* While the driver waits for dom0 nothing can be served; afterwards all is. */
	if (xen_attached() && !xen_upcall_waits())
		tasklet_schedule_on_cpu(&tasklet, home);
}

/* Of any processor, interrupts off. */
static void send_guest_pirq(struct domain *domain, struct pirq *pirq)
{
	if (!xen_attached() || domain != hardware_domain || !pirq ||
	    xen_pirq_number(pirq) != xen_device.given.pirq) {
		twin_original_send_guest_pirq(domain, pirq);
		return;
	}
	xen_count(&xen_counts.interrupts);
	raised = pirq;
	/* Noted before it is asked whether the driver waits: the other way round, whoever ends
	 * that waiting could look for interrupts before this one is there. */
	__atomic_store_n(&pending, 1, __ATOMIC_SEQ_CST);
	xen_service_request();
}
XEN_REPLACE(send_guest_pirq, send_guest_pirq);

/* Until it is ended, the card's interrupt does not come again. */
static void end_interrupt(void)
{
	if (raised)
		pirq_guest_eoi(raised);
}

/* Whether the driver is alive. A handler that has not come to its end has not quieted the card:
 * its interrupt, ended, would come again at once. */
static bool handled(int status)
{
	if (status == TWIN_OK) {
		end_interrupt();
		return true;
	}
	__atomic_store_n(&pending, 1, __ATOMIC_RELEASE);
	return false;
}

/* Whether the driver is alive, and waits for nothing. */
static bool run_handler(void)
{
	uint64_t result;
	int status;

	if (!__atomic_exchange_n(&pending, 0, __ATOMIC_ACQ_REL))
		return true;
	in_handler = true;
	status = xen_run_patiently((const void *)xen_device.interrupt, xen_device.given.irq,
				   xen_device.given.interrupt_cookie, 0, &result);
	return status != TWIN_FROZEN && handled(status);
}

/* Whether polling is not done. */
static bool poll_slice(void)
{
	uint64_t listed = 0, received;

	in_handler = false;
	if (!xen_dma_show() ||
	    xen_run_patiently(twin_function_hot_poll, XEN_POLL_BUDGET, 0, 0, &received) || !xen_dma_ring())
		return false;
	xen_count(&xen_counts.polls);
	xen_receive_deliver();
	if (xen_run(twin_function_hot_pending, 0, 0, 0, &listed))
		return false;
	return (uint32_t)listed;
}

void xen_interrupt_resumed(int status)
{
	if (in_handler)
		handled(status);
	listed = status == TWIN_OK && xen_dma_ring();
}

/* Handler, NAPI, completions; whether there is more. */
static bool slice(void)
{
	bool more = run_handler();
	uint32_t i;

	for (i = 0; more && i < SLICES; i++)
		more = poll_slice();
	xen_transmit_complete();
	return more;
}

/* Whoever has the lock may be about to give it up, and to take it again. */
static bool lock_within(int64_t began)
{
	while (!xen_trylock()) {
		if (get_s_time() - began >= PAUSE)
			return false;
		__asm__ volatile("pause" ::: "memory");
	}
	return true;
}

/* Whether there is more to do. */
static bool serve_once(int64_t began)
{
	if (!lock_within(began))
		return true;
	/* Who had the lock before may have detached it: driver code's faults would be Xen's. */
	if (!xen_attached()) {
		xen_unlock();
		return false;
	}
	listed = slice();
	/* The driver waits: this goes on when it has its answer. Frames that it gave do not. */
	if (xen_upcall_waits()) {
		xen_vif_publish();
		return false;
	}
	if (listed)
		xen_count(&xen_counts.rescheduled);
	xen_vif_service();
	xen_unlock();
	return listed;
}

static int64_t later_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void note_run(int64_t began, bool more)
{
	const int64_t now = get_s_time();

	half_at = later_of(half_at, began) + 2 * (now - began);
	if (more)
		set_timer(&again, later_of(now + PAUSE, half_at - BURST));
}

static void serve(void *unused)
{
	const int64_t now = get_s_time();

	(void)unused;
	if (!xen_attached())
		return;
	if (half_at - BURST > now)
		set_timer(&again, half_at - BURST);
	else
		note_run(now, serve_once(now));
}

static void come_again(void *unused)
{
	(void)unused;
	xen_service_request();
}

void xen_interrupt_start(uint32_t processor)
{
	home = processor;
	pending = 0;
	raised = NULL;
	listed = false;
	half_at = 0;
	softirq_tasklet_init(&tasklet, serve, NULL);
	init_timer(&again, come_again, NULL, home);
}

bool xen_interrupt_idle(void)
{
	return !listed && !__atomic_load_n(&pending, __ATOMIC_ACQUIRE);
}

void xen_interrupt_stop(void)
{
	tasklet_kill(&tasklet);
	kill_timer(&again);
}

/* A processor that had seen the device attached may have noted an interrupt after the tasklet
 * was gone. Interrupts are off from the one to the other: when all have been stopped since, it
 * is noted. */
void xen_interrupt_give_back(void)
{
	if (__atomic_exchange_n(&pending, 0, __ATOMIC_ACQ_REL))
		end_interrupt();
}
