// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How often guests that send are listened to: the stage `pace`. Without it a guest notifies for each packet,
 * and the event of its answer follows at once.
 *
 * A guest's first packets are served at its notification, each at once. One that has sent
 * BUSY packets within a window of time is asked to notify only when AHEAD requests are
 * there: until then its ring is looked at when the window ends. One that has sent fewer in a
 * window notifies for each packet again.
 *
 *   kick kick kick kick .  .  .  .  .  |  .  .  .  .  .  |  .        |        kick
 *    serve each        paced           serve         serve  fewer: no longer paced
 *                                      `--- WINDOW ---'
 *
 * The same end of a window is the time of the event for the packets that were answered in it:
 * one for all, if the guest has not seen the answers by then. A guest whose last ALONE windows had one packet each
 * has the event of the next one with its answer, and no end of a window, which costs the machine
 * thousands of instructions. The clock says whether that window is over when one more comes.
 *
 * Nobody waits for ever as long as a window ends while anybody waits for that. The timer is set
 * where the lock is given up (xen_vif_answer), if anyone is paced, has sent something by which it is not alone, or
 * was shown answers without an event, or has packets that wait with none on its way; and what the timer says is a flag, which whoever
 * serves next takes: this processor, or the tasklet if somebody else has the lock.
 *
 * dom0 wants the driver back while the card still has packets: guests are held then. Nothing
 * is taken from them for HOLD, or until they are disconnected, and they stay connected. dom0
 * tries again, which begins HOLD anew; if it gives up, the end of HOLD is a window's.
 */
#include "vif.h"

/* ns: the time between two interrupts that the stock e1000 gives its card when it moves much
 * (4,000 a second). */
#define WINDOW 250000ll
#define BUSY 10u		/* packets in it */
/* A quarter of the ring: the guest is never stopped by it. */
#define AHEAD (NETIF_RING / 4)
#define HOLD 1000000000ll	/* ns */
/* Windows. One that asks and waits fast has one or two packets in each, by turns: its events are by time. */
#define ALONE 4u

static struct xen_timer timer;
static bool is_set;		/* written served */
static uint32_t ended;		/* atomically: a window has ended */
static int64_t held_until;	/* written served; 0: guests are not held */

static void end_window(void *unused)
{
	(void)unused;
	__atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
	xen_vif_try();
}

void xen_pace_start(uint32_t home)
{
	is_set = false;
	ended = 0;
	held_until = 0;
	init_timer(&timer, end_window, NULL, home);
}

void xen_pace_stop(void)
{
	kill_timer(&timer);
}

void xen_pace_set(void)
{
	if (is_set)
		return;
	is_set = true;
	set_timer(&timer, held_until ? held_until : get_s_time() + WINDOW);
}

void xen_pace_hold(void)
{
	held_until = get_s_time() + HOLD;
	xen_pace_set();
}

bool xen_pace_holds(void)
{
	if (held_until && get_s_time() >= held_until)
		held_until = 0;
	return held_until;
}

bool xen_pace_over(void)
{
	if (!__atomic_exchange_n(&ended, 0, __ATOMIC_ACQ_REL))
		return false;
	is_set = false;
	return true;
}

bool xen_pace_is_alone(const struct vif *vif)
{
	return vif->singles == ALONE;
}

void xen_pace_count(struct vif *vif)
{
	const bool alone = xen_pace_is_alone(vif);
	const int64_t now = alone ? get_s_time() : 0;

	/* No timer has ended the last one. */
	if (alone && (!vif->window || now - vif->began >= WINDOW)) {
		vif->window = 1;
		vif->began = now;
	} else if (vif->window++) {
		vif->singles = 0;
	}
}

void xen_pace_end(struct vif *vif)
{
	/* Packets that wait for the driver, or for a restart, are not waited for by time. */
	if (!vif->window)
		vif->paced = false;
	else if (vif->window == 1 && !vif->paced && vif->singles < ALONE)
		vif->singles++;
	vif->window = 0;
}

uint32_t xen_pace_ahead(struct vif *vif, bool over)
{
	if (!xen_stages.pace)
		return 1;
	if (vif->window >= BUSY)
		vif->paced = true;
	else if (over)
		vif->paced = false;
	return vif->paced ? AHEAD : 1;
}
