// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The clock: driver code that runs too long is stopped.
 *
 *   processor p                          every other processor, each TICK
 *   ---------------------------          ------------------------------------------------
 *   turn[p] odd    driver code in        the same odd number for XEN_WATCH_LIMIT ticks?
 *   ...                                  asked[p] = it, NMI to p
 *   turn[p] even   it is out
 *   NMI: asked[p] is this turn?  twin_stop: the driver goes on at the landing of faults
 *
 * Interrupts are off while driver code runs, so no timer of its own processor comes by: a
 * machine with one processor has no clock, unless Xen's own watchdog (its option
 * `watchdog`) sends NMIs there. Another processor's timer is late, or early by a tick, but a
 * turn that was not over for XEN_WATCH_LIMIT ticks of one processor is not over.
 *
 * The callback runs where nothing may be locked. It reads its processor's two words and
 * changes the interrupted frame. While Xen applies a livepatch it has a callback of its own,
 * and then this one again. Loading microcode takes it away for good (4.17, microcode/core.c):
 * the driver then runs without a clock, until the next attach.
 */
#include "clock.h"
#include "platform.h"

#define TICK 100000000ll	/* ns */
#define DELIVER_NMI 0x400	/* APIC_DM_NMI (SDM vol. 3, 11.6.1) */

typedef int xen_nmi_callback(const struct xen_registers *registers, int processor);

void send_IPI_mask(const uint64_t *mask, int vector);
xen_nmi_callback *set_nmi_callback(xen_nmi_callback *callback);

void xen_fault_landing(void);

#define NOBODY ~0ull		/* no turn has this number */
static uint64_t asked[TWIN_XEN_CPUS];

/* cpumask_t of each; no build has more than 4,095 processors. */
static uint64_t masks[TWIN_XEN_CPUS][64];
static struct xen_timer timers[TWIN_XEN_CPUS];
static struct xen_watch watches[TWIN_XEN_CPUS][TWIN_XEN_CPUS];
static uint64_t watching;	/* processors that have a timer, a bit each */
static xen_nmi_callback *before;

/* ---- The other processors ------------------------------------------------------ */

static void ask(uint32_t processor, uint64_t turn)
{
	__atomic_store_n(&asked[processor], turn, __ATOMIC_RELEASE);
	send_IPI_mask(masks[processor], DELIVER_NMI);
}

static void tick(void *data)
{
	const uint32_t here = (uint32_t)(uint64_t)data;
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++) {
		const uint64_t turn = __atomic_load_n(&xen_seen[i].turn, __ATOMIC_ACQUIRE);

		if (i != here && watching >> i & 1 && xen_watch(&watches[here][i], turn))
			ask(i, turn);
	}
	set_timer(&timers[here], get_s_time() + TICK);
}

/* ---- The one that is asked ------------------------------------------------------- */

/* Whether the NMI was for this. [any], of all NMIs. */
static int stop(const struct xen_registers *registers, int processor)
{
	struct xen_registers *frame = (struct xen_registers *)registers;

	if (processor >= TWIN_XEN_CPUS ||
	    __atomic_load_n(&asked[processor], __ATOMIC_ACQUIRE) != xen_seen[processor].turn)
		return before ? before(registers, processor) : 0;
	if (twin_stop(xen_block_context(processor), frame->rip, frame->rsp))
		frame->rip = (uint64_t)xen_fault_landing;
	return 1;
}

void xen_clock_start(void)
{
	uint64_t i;

	memset(watches, 0, sizeof(watches));
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
			set_timer(&timers[i], get_s_time() + TICK);
		}
}

void xen_clock_stop(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++)
		if (watching >> i & 1)
			kill_timer(&timers[i]);
	watching = 0;
	set_nmi_callback(before);
}
