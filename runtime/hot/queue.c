// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Transmit queues: byte limits and restarting.
 *
 * There is no queueing discipline. A sender that found the queue stopped sees by
 * tx_wake that it runs again.
 */
#include "internal.h"
#include <linux/dynamic_queue_limits.h>

static void hot_wake(void)
{
	u32 cpu = hot_cpu_id();

	hot_count_on(cpu, HOT_COUNT_WAKE, 1);
	smp_store_release(&hot_shared[cpu].tx_wake, hot_shared[cpu].tx_wake + 1);
}

void netif_schedule_queue(struct netdev_queue *txq)
{
	if (!netif_xmit_stopped(txq))
		hot_wake();
}

void netif_tx_wake_queue(struct netdev_queue *txq)
{
	if (test_and_clear_bit(__QUEUE_STATE_DRV_XOFF, &txq->state))
		hot_wake();
}

/* ---- Dynamic queue limits ----------------------------------------------- */
/*
 * The limit is to be the least number of bytes that keeps the device busy from
 * one completion to the next. Counters run freely: "a beyond b" is the sign of
 * their difference.
 */

/* How far a is beyond b, or 0. */
static u32 beyond(u32 a, u32 b)
{
	return (s32)(a - b) > 0 ? a - b : 0;
}

static bool reached(u32 a, u32 b)
{
	return (s32)(a - b) >= 0;
}

/* The device ran out of bytes while some were refused: raise by the missing number. */
static u32 dql_raise(struct dql *dql, u32 completed)
{
	dql->slack_start_time = jiffies;
	dql->lowest_slack = UINT_MAX;
	return dql->limit + beyond(completed, dql->prev_num_queued) + dql->prev_ovlimit;
}

/* The device was always busy: lower the limit by bytes not needed for a while. */
static u32 dql_lower(struct dql *dql, u32 completed)
{
	u32 round = completed - dql->num_completed;
	u32 slack = beyond(dql->limit + dql->prev_ovlimit, 2 * round);

	if (dql->prev_ovlimit)
		slack = max(slack, beyond(dql->prev_last_obj_cnt, dql->prev_ovlimit));
	if (slack < dql->lowest_slack)
		dql->lowest_slack = slack;
	if (!time_after(jiffies, dql->slack_start_time + dql->slack_hold_time))
		return dql->limit;
	slack = dql->lowest_slack;
	dql->slack_start_time = jiffies;
	dql->lowest_slack = UINT_MAX;
	return beyond(dql->limit, slack);
}

void dql_completed(struct dql *dql, unsigned int count)
{
	u32 queued = READ_ONCE(dql->num_queued);
	u32 outstanding = queued - dql->num_completed;
	u32 over, limit = dql->limit, completed;
	bool all_before;

	if (unlikely(count > outstanding)) {
		hot_count(HOT_COUNT_BAD_COMPLETION);
		count = outstanding;
	}
	completed = dql->num_completed + count;
	over = beyond(outstanding, limit);
	all_before = reached(completed, dql->prev_num_queued);

	if ((over && completed == queued) || (dql->prev_ovlimit && all_before))
		limit = dql_raise(dql, completed);
	else if (completed != queued && dql->prev_num_queued != dql->num_completed && !all_before)
		limit = dql_lower(dql, completed);

	limit = clamp(limit, dql->min_limit, dql->max_limit);
	if (limit != dql->limit) {
		dql->limit = limit;
		over = 0;
	}
	WRITE_ONCE(dql->adj_limit, limit + completed);
	dql->prev_ovlimit = over;
	dql->prev_last_obj_cnt = READ_ONCE(dql->last_obj_cnt);
	dql->num_completed = completed;
	dql->prev_num_queued = queued;
}

void dql_reset(struct dql *dql)
{
	dql->limit = dql->min_limit;
	dql->num_queued = 0;
	dql->num_completed = 0;
	dql->adj_limit = dql->limit;
	dql->last_obj_cnt = 0;
	dql->prev_num_queued = 0;
	dql->prev_last_obj_cnt = 0;
	dql->prev_ovlimit = 0;
	dql->lowest_slack = UINT_MAX;
	dql->slack_start_time = jiffies;
}
