// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Processors that wait for others.
 *
 * Xen's flush_area_mask() and on_selected_cpus() interrupt other processors and go on when each has
 * answered. Until then no timer comes by on the one that waits, nor on those that have answered, if
 * all are to come together: so they do once a second (time.c, time_calibration). Driver code
 * runs with interrupts off and does not answer. Where it never returns, whoever could send it the
 * NMI (clock.c) waits for it sooner or later, most often before the limit, and for ever.
 *
 * So these two wait for driver code first, with the clock in sight:
 *
 *   a processor that is going to wait      processor p, with interrupts off
 *   ---------------------------------      ---------------------------------------------
 *   awaited[p] += 1                        turn[p] odd
 *   turn[p] odd? wait until it is not      awaited[p] not 0? turn[p] even, interrupts on
 *     that one; after LIMIT the NMI          until it is 0, and once more from the top
 *   Xen's own: interrupt p, wait           driver code
 *   awaited[p] -= 1                        turn[p] even
 *
 * Each changes its own word by a locked instruction before it reads the other's (SDM vol. 3,
 * 9.2.3.4), so at least one of them sees the other: p answers, or the time of its driver code is
 * measured. When an interrupt that was sent arrives makes no difference.
 *
 * Which processors those are is looked at once: a mask may change, and p may get into dom0's dirty
 * mask in the turn that nobody looks at. To whoever flushes it is as if p had come later still: it
 * is in the mask before its first access, and what is to be flushed was changed before.
 *
 * No lock of Xen's is held where p waits, but xen_lock, which nobody waits for; so whoever has p
 * wait comes to an end. Others may begin meanwhile, and if one always did before the last has
 * ended, p would wait for ever: a guest with three virtual processors, of which one runs on p and
 * two flush, could do that. So p says that it waits, and who begins then lets it have one turn.
 * They are not counted yet, have interrupts on as Xen's two functions demand (smp.c), and so keep
 * nobody whom p waits for. Each processor can have begun just before p said it, once: p waits for
 * as many, at most.
 *
 * A panic may stop a processor in the middle of a turn, or of Xen's own waiting. Then the turn never
 * ends, nor does whoever is counted, and the processor that restarts the machine comes by here
 * (machine_restart, smp_send_stop). So nobody is patient for ever: after PATIENCE it is Xen's to
 * wait, as without driver code. Nothing but the clock's sight of the wait rests on these words.
 *
 * What waits for another processor without these two is not seen here: stopping all of them
 * (stop_machine.c; there is none while a device is attached, but for microcode), and waiting for a
 * virtual processor to leave one (vcpu_sleep_sync). There the other processors' timers are the
 * clock, if there is a third one, or Xen's watchdog.
 */
#include "clock.h"
#include "platform.h"

_Static_assert(TWIN_XEN_CPUS <= 64, "the mask's first word has them");

/* No build has more than 4,095 processors. */
#define MASK_WORDS 64u
extern unsigned int nr_cpu_ids;

/* How long driver code is waited for, in XEN_CLOCK_LIMIT: the first NMI is sent after one. */
#define PATIENCE 8u

struct waiting {
	uint64_t mask[MASK_WORDS];	/* that of Xen's caller */
	uint64_t awaited;		/* those of which driver code runs on, a bit each */
};

/* That processor leaves the turn that it is in, or does not in PATIENCE. */
static void outlast(uint32_t processor)
{
	const uint64_t *at = &xen_seen[processor].turn;
	const uint64_t turn = __atomic_load_n(at, __ATOMIC_SEQ_CST);
	uint32_t limits = 0;
	int64_t since;

	if (turn % 2 == 0)
		return;
	for (since = get_s_time(); __atomic_load_n(at, __ATOMIC_ACQUIRE) == turn;) {
		__asm__ volatile("pause" ::: "memory");
		if (get_s_time() - since < XEN_CLOCK_LIMIT)
			continue;
		if (++limits == PATIENCE)
			return;
		xen_clock_ask(processor, turn, limits > 1);
		since = get_s_time();
	}
}

static void copy_mask(struct waiting *waiting, const uint64_t *mask)
{
	uint32_t i;

	memset(waiting->mask, 0, sizeof(waiting->mask));
	for (i = 0; i < MASK_WORDS && i * 64 < nr_cpu_ids; i++)
		waiting->mask[i] = __atomic_load_n(&mask[i], __ATOMIC_RELAXED);
}

/* Who waits for that processor already has it to themselves; whoever comes now lets it have a turn
 * first. */
static void let_go_first(uint32_t processor)
{
	const uint64_t *wanted = &xen_seen[processor].wanted;
	int64_t since;

	if (!__atomic_load_n(wanted, __ATOMIC_ACQUIRE))
		return;
	for (since = get_s_time(); get_s_time() - since < PATIENCE * XEN_CLOCK_LIMIT;) {
		if (!__atomic_load_n(wanted, __ATOMIC_ACQUIRE))
			return;
		__asm__ volatile("pause" ::: "memory");
	}
}

/* This processor is going to wait for the others of the mask: they run no driver code until
 * end_waiting(). */
static void begin_waiting(struct waiting *waiting, const uint64_t *mask)
{
	const uint32_t here = xen_processor();
	uint32_t i;

	copy_mask(waiting, mask);
	waiting->awaited = waiting->mask[0] & ((1ull << TWIN_XEN_CPUS) - 1);
	if (here < TWIN_XEN_CPUS)
		waiting->awaited &= ~(1ull << here);
	/* Before any is counted: while this waits here nobody waits for it. */
	for (i = 0; i < TWIN_XEN_CPUS; i++)
		if (waiting->awaited >> i & 1)
			let_go_first(i);
	for (i = 0; i < TWIN_XEN_CPUS; i++)
		if (waiting->awaited >> i & 1)
			__atomic_fetch_add(&xen_seen[i].awaited, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < TWIN_XEN_CPUS; i++)
		if (waiting->awaited >> i & 1)
			outlast(i);
}

static void end_waiting(const struct waiting *waiting)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++)
		if (waiting->awaited >> i & 1)
			__atomic_fetch_sub(&xen_seen[i].awaited, 1, __ATOMIC_RELEASE);
}

static void flush(const void *mask, const void *address, unsigned int flags)
{
	struct waiting waiting;

	begin_waiting(&waiting, mask);
	twin_original_flush_area_mask(waiting.mask, address, flags);
	end_waiting(&waiting);
}
XEN_REPLACE(flush_area_mask, flush);

static void call(const void *mask, void (*function)(void *), void *data, int wait)
{
	struct waiting waiting;

	begin_waiting(&waiting, mask);
	twin_original_on_selected_cpus(waiting.mask, function, data, wait);
	end_waiting(&waiting);
}
XEN_REPLACE(on_selected_cpus, call);

void xen_give_way(struct xen_seen *seen)
{
	__atomic_store_n(&seen->wanted, 1, __ATOMIC_SEQ_CST);
	do {
		xen_clock_leave(seen);
		xen_interrupts_restore(XEN_FLAGS_IF);
		while (__atomic_load_n(&seen->awaited, __ATOMIC_ACQUIRE))
			__asm__ volatile("pause" ::: "memory");
		xen_interrupts_off();
	} while (!xen_clock_try(seen));
	__atomic_store_n(&seen->wanted, 0, __ATOMIC_RELEASE);
}
