// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * NAPI: a driver's interrupt handler lists its napi with this CPU, and the
 * softirq polls the listed ones. In the hypervisor the softirq is hot_poll(),
 * which it calls in a deferred context (paper, 4.4).
 *
 * The CPU that set NAPI_STATE_SCHED owns the list node; only its own CPU accesses a
 * list. dom0 uses the state word too: napi_disable() there waits until SCHED is
 * clear, then sets it.
 */
#include "internal.h"
#include <linux/preempt.h>

#define HOT_SOFTIRQ_BUDGET	300	/* packets a softirq after local_bh_enable() */

void hot_napi_init(u32 cpu)
{
	struct list_head *list = &hot_cpus[cpu].poll_list;

	list->next = list;
	list->prev = list;
}

/* The headers' operations call dom0 to check the list: these check it themselves. */
static void hot_list_append(struct list_head *node, struct list_head *list)
{
	struct list_head *last = list->prev;

	if (unlikely(last->next != list))
		BUG();
	node->next = list;
	node->prev = last;
	last->next = node;
	list->prev = node;
}

static void hot_list_remove(struct list_head *node)
{
	struct list_head *next = node->next, *prev = node->prev;

	if (unlikely(next->prev != node || prev->next != node))
		BUG();
	next->prev = prev;
	prev->next = next;
	node->next = node;
	node->prev = node;
}

/* ---- Schedule and complete ---------------------------------------------- */

/* True for the caller that may list it; others set MISSED for the poller. */
bool napi_schedule_prep(struct napi_struct *n)
{
	unsigned long old = READ_ONCE(n->state), new, seen;

	for (;; old = seen) {
		if (unlikely(old & NAPIF_STATE_DISABLE))
			return false;
		new = old | NAPIF_STATE_SCHED;
		if (old & NAPIF_STATE_SCHED)
			new |= NAPIF_STATE_MISSED;
		seen = cmpxchg(&n->state, old, new);
		if (unlikely(seen != old))
			continue;
		if (unlikely(old & NAPIF_STATE_SCHED))
			return false;
		hot_cpus[hot_cpu_id()].napi = n;
		return true;
	}
}

void __napi_schedule(struct napi_struct *n)
{
	u32 cpu = hot_cpu_id();

	if (unlikely(!hot_cpus[cpu].poll_list.next))
		hot_napi_init(cpu);
	hot_list_append(&n->poll_list, &hot_cpus[cpu].poll_list);
	hot_count_on(cpu, HOT_COUNT_SCHEDULED, 1);
}

/*
 * Whether the card has received more since the driver looked at its ring. Where the card writes to that ring
 * itself the driver sees it; where the hypervisor shows what the card wrote (<twin/dma.h>) it is asked, here,
 * because what follows is dear: flows are flushed, the driver has the card's interrupts back, and the next
 * one begins with the handler.
 *
 * Nothing is lost whatever the answer is, as in any driver: what the card receives after the hypervisor has
 * looked is a cause in its ICR, which stays there while interrupts are masked, and is an interrupt when the
 * driver has set its mask, which it does after this (8254x manual, 317453, 13.4.17, 13.4.20). Only the handler
 * reads ICR, and the ring is shown after the handler and before the poll.
 *
 * Not after a frame that came alone, or what was sent: who asks and answers one by one has no more on its way, and
 * the question is not for nothing.
 */
static bool hot_card_has_more(int work_done)
{
	return work_done > 1 && READ_ONCE(hot_shared[hot_cpu_id()].look) &&
	       host_receive(NULL, 0, NULL, HOT_RX_LOOK, 0) == HOT_RX_MORE;
}

/* False if it is to be polled again: the driver then leaves interrupts masked. */
bool napi_complete_done(struct napi_struct *n, int work_done)
{
	unsigned long old = READ_ONCE(n->state), new, seen;

	if (unlikely(old & (NAPIF_STATE_NPSVC | NAPIF_STATE_IN_BUSY_POLL)))
		return false;
	if (unlikely(n->poll_list.next != &n->poll_list))
		hot_list_remove(&n->poll_list);
	/* Still scheduled, and flows stay: the same CPU polls again. Not if dom0 waits for the end of it. */
	if (!(old & NAPIF_STATE_DISABLE) && hot_card_has_more(work_done)) {
		__napi_schedule(n);
		return false;
	}
	/* Before another CPU may poll: what it receives is later. */
	if (unlikely(hot_flows_open[hot_cpu_id()]))
		hot_aggregate_flush(hot_cpu_id());
	for (;; old = seen) {
		new = old & ~(NAPIF_STATE_MISSED | NAPIF_STATE_SCHED |
			      NAPIF_STATE_SCHED_THREADED | NAPIF_STATE_PREFER_BUSY_POLL);
		if (old & NAPIF_STATE_MISSED)
			new |= NAPIF_STATE_SCHED;
		seen = cmpxchg(&n->state, old, new);
		if (likely(seen == old))
			break;
	}
	if (unlikely(old & NAPIF_STATE_MISSED)) {
		__napi_schedule(n);
		return false;
	}
	return true;
}

/* ---- The softirq -------------------------------------------------------- */

u32 hot_pending(void)
{
	struct list_head *list = &hot_cpus[hot_cpu_id()].poll_list;

	return list->next && list->next != list;
}

/* Polls one; returns the budget used, at least 1 so that polling ends. */
static u32 hot_poll_one(struct napi_struct *n, struct list_head *list, u32 *received)
{
	int weight = n->weight, work;

	if (!(READ_ONCE(n->state) & NAPIF_STATE_SCHED))
		return 1;
	hot_count(HOT_COUNT_POLLED);
	work = n->poll(n, weight);
	if (work > 0) {
		hot_count_on(hot_cpu_id(), HOT_COUNT_RECEIVED, work);
		*received += work;
	}
	if (work >= weight) {
		if (unlikely(hot_flows_open[hot_cpu_id()]))
			hot_aggregate_flush(hot_cpu_id());
		/* Not done, so the node is still ours. */
		if (unlikely(READ_ONCE(n->state) & NAPIF_STATE_DISABLE))
			napi_complete_done(n, work);
		else if (likely(n->poll_list.next == &n->poll_list))
			hot_list_append(&n->poll_list, list);
	}
	return max(work, 1);
}

u32 hot_poll(u32 budget)
{
	struct hot_cpu *cpu = &hot_cpus[hot_cpu_id()];
	struct list_head *list = &cpu->poll_list;
	u32 used = 0, received = 0;

	if (!list->next || cpu->polling)
		return 0;
	cpu->polling = 1;
	cpu->aggregate = hot_aggregate_limit(hot_cpu_id());
	__preempt_count_add(SOFTIRQ_OFFSET);
	while (used < budget && list->next != list) {
		struct napi_struct *n = list_first_entry(list, struct napi_struct, poll_list);

		hot_list_remove(&n->poll_list);
		used += hot_poll_one(n, list, &received);
	}
	__preempt_count_sub(SOFTIRQ_OFFSET);
	if (unlikely(cpu->aggregate)) {
		if (hot_flows_open[hot_cpu_id()])
			hot_aggregate_flush(hot_cpu_id());
		cpu->aggregate = 0;
	}
	cpu->polling = 0;
	/* The poll may have made room. */
	if (unlikely(hot_transmit_waits()))
		hot_transmit_rest();
	return received;
}

/* local_bh_enable(): the outermost one runs softirqs that were raised meanwhile. */
void __local_bh_enable_ip(unsigned long ip, unsigned int cnt)
{
	__preempt_count_sub(cnt - 1);
	if (unlikely(!in_interrupt() && hot_pending()))
		hot_poll(HOT_SOFTIRQ_BUDGET);
	__preempt_count_sub(1);
}

/* ---- Recovery ----------------------------------------------------------- */

static bool hot_napi_elsewhere(const struct napi_struct *n, u32 cpu)
{
	u32 i;

	for (i = 0; i < HOT_CPUS; i++) {
		const struct hot_cpu *other = &hot_cpus[i];

		if (i == cpu)
			continue;
		if ((other->polling && other->napi == n) ||
		    other->poll_list.next == &n->poll_list ||
		    other->poll_list.prev == &n->poll_list)
			return true;
	}
	return false;
}

/*
 * The napi that a dead CPU had scheduled will not be polled. It is unscheduled,
 * or else dom0's napi_disable() would wait for ever. The list itself is not walked,
 * since its links are the driver's data, which may be broken.
 */
void hot_napi_recover(u32 cpu)
{
	struct napi_struct *n = hot_cpus[cpu].napi;

	hot_napi_init(cpu);
	hot_cpus[cpu].polling = 0;
	hot_cpus[cpu].aggregate = 0;
	hot_cpus[cpu].napi = NULL;
	if (!n || hot_napi_elsewhere(n, cpu) || READ_ONCE(n->state) & NAPIF_STATE_NPSVC)
		return;
	n->poll_list.next = &n->poll_list;
	n->poll_list.prev = &n->poll_list;
	clear_bit(NAPI_STATE_MISSED, &n->state);
	clear_bit(NAPI_STATE_SCHED, &n->state);
}
