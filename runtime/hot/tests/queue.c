// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: byte limits of the transmit queue.
 */
#include "common.h"

/*
 * The reference: the definition on counters that do not wrap, every quantity
 * by its meaning.
 */
struct reference {
	s64 queued, completed, last;		/* totals; the last queued object */
	s64 seen_queued, seen_last, seen_over;	/* at the last completion */
	s64 limit, lowest;
	u64 since;
	s64 most, least;
	u64 hold;
};

static s64 positive(s64 x)
{
	return x > 0 ? x : 0;
}

static void reference_completed(struct reference *r, s64 count, u64 now)
{
	s64 done = r->completed + count, left = r->queued - done;
	s64 over = positive(r->queued - r->completed - r->limit);
	bool starved = (over > 0 && left == 0) || (r->seen_over > 0 && done >= r->seen_queued);
	bool busy = left > 0 && r->seen_queued > r->completed && done < r->seen_queued;
	s64 limit = r->limit;

	if (starved) {
		limit += positive(done - r->seen_queued) + r->seen_over;
		r->since = now;
		r->lowest = UINT_MAX;
	} else if (busy) {
		s64 slack = positive(limit + r->seen_over - 2 * count);

		if (r->seen_over)
			slack = max(slack, positive(r->seen_last - r->seen_over));
		r->lowest = min(r->lowest, slack);
		if (now > r->since + r->hold) {
			limit = positive(limit - r->lowest);
			r->since = now;
			r->lowest = UINT_MAX;
		}
	}
	limit = clamp(limit, r->least, r->most);
	r->seen_over = limit == r->limit ? over : 0;
	r->limit = limit;
	r->completed = done;
	r->seen_queued = r->queued;
	r->seen_last = r->last;
}

static void dql_run(u32 start, u32 steps)
{
	struct dql dql = { .max_limit = 1 << 20, .min_limit = test_random() % 3 * 500,
			   .slack_hold_time = test_random() % 50 };
	struct reference r = { .most = dql.max_limit, .least = dql.min_limit,
			       .hold = dql.slack_hold_time };
	u32 i;

	dql_reset(&dql);
	r.limit = dql.limit;
	r.lowest = UINT_MAX;
	r.since = jiffies;
	/* as if 2^32 - something had passed already */
	dql.num_queued = dql.num_completed = dql.prev_num_queued = start;
	dql.adj_limit = start + dql.limit;
	r.queued = r.completed = r.seen_queued = start;
	for (i = 0; i < steps; i++) {
		s64 left = r.queued - r.completed;

		jiffies += test_random() % 4;
		if (dql_avail(&dql) >= 0 && test_random() % 3) {
			u32 object = 60 + test_random() % 9000;

			dql_queued(&dql, object);
			r.queued += object;
			r.last = object;
		} else if (left) {
			u32 count = test_random() % 2 ? left : 1 + test_random() % left;

			dql_completed(&dql, count);
			reference_completed(&r, count, jiffies);
			CHECK(dql.limit == r.limit && dql.lowest_slack == (u32)r.lowest);
			CHECK(dql.prev_ovlimit == r.seen_over);
		}
		CHECK(dql_avail(&dql) == (s32)(r.limit + r.completed - r.queued));
	}
}

void test_dql(void)
{
	u32 i;

	begin();
	for (i = 0; i < 500; i++)
		dql_run(i & 1 ? 0 : 0u - 2000000, 2000);
	nothing_lost();
}

void test_dql_bad_completion(void)
{
	struct dql dql = { .max_limit = 1000 };
	u64 bad = counted(HOT_COUNT_BAD_COMPLETION);

	begin();
	dql_reset(&dql);
	dql_queued(&dql, 100);
	dql_completed(&dql, 101);
	CHECK(counted(HOT_COUNT_BAD_COMPLETION) == bad + 1);
	CHECK(dql.num_completed == 100);
	nothing_lost();
}
