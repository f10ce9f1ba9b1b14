// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The clock: driver code that runs too long is stopped.
 *
 *   processor p                          every other processor, each TICK
 *   ---------------------------          ------------------------------------------------
 *   turn[p] odd    driver code in        the same odd number for XEN_WATCH_LIMIT ticks?
 *   ...                                  asked[p] = it, NMI to p
 *   turn[p] even   it is out
 *   NMI: asked[p] is this turn, or another NMI has seen it a second ago?
 *        twin_stop: the driver goes on at the landing of faults
 *
 * Interrupts are off while driver code runs, so no timer of its own processor comes by. Another
 * processor's timer is late, or early by a tick, but a turn that was not over for
 * XEN_WATCH_LIMIT ticks of one processor is not over. Processors that are about to wait for this
 * one, where no timer comes by, look at its turn themselves (await.c).
 *
 * With Xen's option `watchdog` each processor has an NMI a second, whatever others do. They serve
 * as well: where there is one processor, and where all others wait for this one.
 *
 * One NMI is sent for a turn; who asks after that asks again when it was lost. It may come when
 * the turn is over, and is this file's all the same: to Xen it would be unknown (traps.c, do_nmi).
 * Two NMIs that come together are one. So the watchdog gets all, since it begins its count anew at
 * each and minds none, but with `watchdog=force` (nmi.c, nmi_watchdog_tick).
 *
 * The callback runs where nothing may be locked. It reads its processor's words and
 * changes the interrupted frame. While Xen applies a livepatch it has a callback of its own,
 * and then this one again. Loading microcode takes it away for good (4.17, microcode/core.c):
 * the driver then runs without a clock, until the next attach.
 */
#include "clock.h"
#include "platform.h"

#define FLIGHT 1000000ll	/* ns, in which an NMI that was sent has come */
#define DELIVER_NMI 0x400	/* APIC_DM_NMI (SDM vol. 3, 11.6.1) */

typedef int xen_nmi_callback(const struct xen_registers *registers, int processor);

void send_IPI_mask(const uint64_t *mask, int vector);
xen_nmi_callback *set_nmi_callback(xen_nmi_callback *callback);

void xen_fault_landing(void);

/* 0 without the watchdog. */
extern unsigned int nmi_watchdog;
extern bool watchdog_force;

#define NOBODY ~0ull		/* no turn has this number */
static uint64_t asked[TWIN_XEN_CPUS];	/* an NMI is on its way for that turn */
/* What NMIs have seen of their own processor. */
static struct {
	uint64_t turn;
	int64_t since;
} met[TWIN_XEN_CPUS];

/* cpumask_t of each; no build has more than 4,095 processors. */
static uint64_t masks[TWIN_XEN_CPUS][64];
static struct xen_timer timers[TWIN_XEN_CPUS];
static struct xen_watch watches[TWIN_XEN_CPUS][TWIN_XEN_CPUS];
static uint64_t watching;	/* processors that have a timer, a bit each */
static xen_nmi_callback *before;

/* ---- The other processors ------------------------------------------------------ */

void xen_clock_ask(uint32_t processor, uint64_t turn, bool again)
{
	if (__atomic_exchange_n(&asked[processor], turn, __ATOMIC_SEQ_CST) != turn || again)
		send_IPI_mask(masks[processor], DELIVER_NMI);
}

static void tick(void *data)
{
	const uint32_t here = (uint32_t)(uint64_t)data;
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++) {
		const uint64_t turn = __atomic_load_n(&xen_seen[i].turn, __ATOMIC_ACQUIRE);

		if (i != here && watching >> i & 1 && xen_watch(&watches[here][i], turn))
			xen_clock_ask(i, turn, watches[here][i].ticks > XEN_WATCH_LIMIT);
	}
	set_timer(&timers[here], get_s_time() + XEN_CLOCK_TICK);
}

/* ---- The one that is asked ------------------------------------------------------- */

/* Whether an NMI has met that turn, in which driver code is, so long ago. The clock is not read
 * where this interrupts Xen's own work on it. */
static bool is_old(uint32_t processor, uint64_t turn)
{
	const int64_t now = get_s_time();

	if (met[processor].turn == turn)
		return now - met[processor].since >= XEN_CLOCK_LIMIT;
	met[processor].turn = turn;
	met[processor].since = now;
	return false;
}

/* sent: that turn is to end. */
static void judge(struct xen_registers *frame, uint32_t processor, uint64_t sent)
{
	const uint64_t turn = xen_seen[processor].turn;

	if (turn % 2 == 0 || (sent != turn && !is_old(processor, turn)))
		return;
	if (twin_stop(xen_block_context(processor), frame->rip, frame->rsp))
		frame->rip = (uint64_t)xen_fault_landing;
}

/* Whether the NMI was for this. [any], of all NMIs. */
static int stop(const struct xen_registers *registers, int processor)
{
	uint64_t sent = NOBODY;

	if (processor < TWIN_XEN_CPUS) {
		sent = __atomic_exchange_n(&asked[processor], NOBODY, __ATOMIC_SEQ_CST);
		judge((struct xen_registers *)registers, processor, sent);
	}
	if (sent != NOBODY && (!nmi_watchdog || watchdog_force))
		return 1;
	return before ? before(registers, processor) : 0;
}

void xen_clock_start(void)
{
	uint64_t i;

	memset(watches, 0, sizeof(watches));
	memset(met, 0, sizeof(met));
	for (i = 0; i < TWIN_XEN_CPUS; i++) {
		xen_seen[i].turn = 0;
		asked[i] = NOBODY;
		masks[i][0] = 1ull << i;
	}
	before = set_nmi_callback(stop);
	watching = cpu_online_map[0];
	for (i = 0; i < TWIN_XEN_CPUS; i++)
		if (watching >> i & 1) {
			init_timer(&timers[i], tick, (void *)i, (uint32_t)i);
			set_timer(&timers[i], get_s_time() + XEN_CLOCK_TICK);
		}
}

static bool is_on_its_way(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++)
		if (__atomic_load_n(&asked[i], __ATOMIC_ACQUIRE) != NOBODY)
			return true;
	return false;
}

void xen_clock_stop(void)
{
	const int64_t began = get_s_time();
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++)
		if (watching >> i & 1)
			kill_timer(&timers[i]);
	watching = 0;
	/* Without the callback it would be unknown. */
	while (is_on_its_way() && get_s_time() - began < FLIGHT)
		__asm__ volatile("pause" ::: "memory");
	set_nmi_callback(before);
}
