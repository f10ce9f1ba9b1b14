// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * When guests are told: by count, by delay, before the pool is empty, and not while they
 * look by themselves; and how a budget of latency is split.
 */
#include <math.h>
#include <string.h>

#include <twin/notify.h>

#include "test.h"

#define US 1000ull

static struct twin_notify notify;

static void set_up(struct twin_notify_limits limits)
{
	memset(&notify, 0xa5, sizeof(notify));
	twin_notify_init(&notify, &limits);
}

static struct twin_notify_statistics counts(void)
{
	struct twin_notify_statistics copy;

	twin_notify_events(&notify, &copy);
	return copy;
}

static void without_limits_each_packet_is_told_at_once(void)
{
	uint32_t i;

	set_up((struct twin_notify_limits){ 0 });
	CHECK_EQUAL(twin_notify_due(&notify, 0), 0);
	CHECK_EQUAL(twin_notify_deadline(&notify), TWIN_NOTIFY_NEVER);
	for (i = 0; i < 5; i++) {
		twin_notify_arrived(&notify, 3, 1, i);
		CHECK_EQUAL(twin_notify_deadline(&notify), i);
		CHECK_EQUAL(twin_notify_due(&notify, i), 1 << 3);
		CHECK_EQUAL(twin_notify_due(&notify, i), 0);
		twin_notify_event(&notify, 3, i + 1);
		twin_notify_taken(&notify, 3, 1);
	}
	CHECK_EQUAL(counts().at_once, 5);
	CHECK_EQUAL(counts().saved, 0);
}

static void the_count_releases_before_the_delay(void)
{
	set_up((struct twin_notify_limits){ .delay = 100 * US, .count = 3 });
	twin_notify_arrived(&notify, 0, 2, 0);
	CHECK_EQUAL(twin_notify_due(&notify, 1), 0);
	twin_notify_arrived(&notify, 1, 3, 1);
	CHECK_EQUAL(twin_notify_due(&notify, 2), 1 << 1);
	twin_notify_arrived(&notify, 0, 1, 3);
	CHECK_EQUAL(twin_notify_due(&notify, 3), 1 << 0);
	CHECK_EQUAL(counts().count, 2);
	CHECK_EQUAL(counts().saved, 4);
}

/* From the first packet on, whatever comes later. */
static void a_count_that_is_never_met_ends_with_the_delay(void)
{
	set_up((struct twin_notify_limits){ .delay = 100 * US, .count = 1000000 });
	twin_notify_arrived(&notify, 0, 1, 10);
	twin_notify_arrived(&notify, 0, 1, 90 * US);
	CHECK_EQUAL(twin_notify_deadline(&notify), 100 * US + 10);
	CHECK_EQUAL(twin_notify_due(&notify, 100 * US + 9), 0);
	CHECK_EQUAL(twin_notify_due(&notify, 100 * US + 10), 1);
	CHECK_EQUAL(twin_notify_deadline(&notify), TWIN_NOTIFY_NEVER);
	CHECK_EQUAL(counts().delay, 1);
}

/* Nobody called at the deadline; the next call of any reason does it. */
static void a_lost_timer_is_made_up_for(void)
{
	set_up((struct twin_notify_limits){ .delay = 100 * US });
	twin_notify_arrived(&notify, 0, 1, 0);
	twin_notify_arrived(&notify, 1, 1, 950 * US);
	CHECK_EQUAL(twin_notify_due(&notify, 951 * US), 1 << 0);
}

static void a_clock_a_little_behind_tells_nobody_early(void)
{
	set_up((struct twin_notify_limits){ .delay = 100 * US });
	twin_notify_arrived(&notify, 0, 1, 50);
	CHECK_EQUAL(twin_notify_due(&notify, 49), 0);
	CHECK_EQUAL(twin_notify_due(&notify, 100 * US + 50), 1);
}

static void before_the_pool_is_empty_everybody_is_told(void)
{
	set_up((struct twin_notify_limits){ .delay = 1000 * US, .most = 10 });
	twin_notify_arrived(&notify, 0, 5, 0);
	twin_notify_arrived(&notify, 1, 4, 0);
	CHECK_EQUAL(twin_notify_due(&notify, 1), 0);
	twin_notify_arrived(&notify, 2, 1, 1);
	CHECK_EQUAL(twin_notify_due(&notify, 1), 7);
	CHECK_EQUAL(counts().most, 3);
	/* They were told and have not come: whoever gets more is told again. */
	twin_notify_arrived(&notify, 1, 1, 2);
	CHECK_EQUAL(twin_notify_due(&notify, 2), 1 << 1);
	twin_notify_taken(&notify, 0, 5);
	twin_notify_taken(&notify, 1, 5);
	twin_notify_arrived(&notify, 2, 1, 3);
	CHECK_EQUAL(twin_notify_due(&notify, 3), 0);
}

static void a_guest_that_looks_by_itself_is_not_told(void)
{
	set_up((struct twin_notify_limits){ 0 });
	twin_notify_event(&notify, 0, 100);
	twin_notify_arrived(&notify, 0, 100, 0);
	CHECK_EQUAL(twin_notify_due(&notify, 1), 0);
	CHECK_EQUAL(twin_notify_deadline(&notify), TWIN_NOTIFY_NEVER);
	twin_notify_taken(&notify, 0, 40);
	CHECK_EQUAL(twin_notify_due(&notify, 1), 0);
	twin_notify_arrived(&notify, 0, 1, 2);
	CHECK_EQUAL(twin_notify_due(&notify, 2), 1);
}

/* It set its index and looks once more: what came between is told at the next call. */
static void a_packet_between_the_last_look_and_the_index_is_not_forgotten(void)
{
	set_up((struct twin_notify_limits){ 0 });
	twin_notify_arrived(&notify, 0, 1, 0);
	twin_notify_taken(&notify, 0, 1);
	twin_notify_event(&notify, 0, 50);
	twin_notify_arrived(&notify, 0, 1, 1);	/* after its last look */
	CHECK_EQUAL(twin_notify_due(&notify, 1), 0);
	twin_notify_event(&notify, 0, 1);	/* "tell me when more than one has come" */
	CHECK_EQUAL(twin_notify_due(&notify, 1), 1);
}

/* It sets no index, and is never seen with nothing left. */
static void a_guest_that_always_has_one_left_is_told_for_ever(void)
{
	const uint32_t many = 1u << 20;
	uint32_t i;

	set_up((struct twin_notify_limits){ 0 });
	twin_notify_arrived(&notify, 3, 1, 1);
	for (i = 0; i < 1u << 13; i++) {
		CHECK_EQUAL(twin_notify_due(&notify, 1), 1 << 3);
		twin_notify_arrived(&notify, 3, many, 1);
		twin_notify_taken(&notify, 3, many);
	}
}

static void who_wants_to_wait_is_told_when_the_pool_is_short(void)
{
	set_up((struct twin_notify_limits){ .most = 4 });
	twin_notify_event(&notify, 3, 1000);
	twin_notify_arrived(&notify, 3, 3, 1);
	CHECK_EQUAL(twin_notify_due(&notify, 1), 0);
	twin_notify_arrived(&notify, 3, 1, 1);
	CHECK_EQUAL(twin_notify_due(&notify, 1), 1 << 3);
	CHECK_EQUAL(counts().most, 1);
}

static void what_was_taken_untold_is_not_told(void)
{
	set_up((struct twin_notify_limits){ .delay = 100 * US });
	twin_notify_arrived(&notify, 0, 3, 0);
	twin_notify_taken(&notify, 0, 3);
	CHECK_EQUAL(twin_notify_due(&notify, 200 * US), 0);
	CHECK_EQUAL(notify.held, 0);
	twin_notify_taken(&notify, 0, 1000);
	CHECK_EQUAL(notify.held, 0);
}

static void numbers_run_round(void)
{
	set_up((struct twin_notify_limits){ .delay = 100 * US, .count = 4 });
	notify.guest[0] = (struct twin_notify_guest){
		.arrived = UINT32_MAX - 1, .told = UINT32_MAX - 1, .taken = UINT32_MAX - 1,
		.event = UINT32_MAX - 1,
	};
	twin_notify_arrived(&notify, 0, 3, 0);
	CHECK_EQUAL(twin_notify_due(&notify, 1), 0);
	twin_notify_arrived(&notify, 0, 1, 1);
	CHECK_EQUAL(twin_notify_due(&notify, 1), 1);
	twin_notify_taken(&notify, 0, 4);
	CHECK_EQUAL(notify.guest[0].taken, 2);
	/* Nobody sets an index: it goes along with what is taken. */
	notify.guest[0].arrived = notify.guest[0].told = notify.guest[0].taken = 0x7fffffff;
	notify.guest[0].event = 0x7fffffff;
	twin_notify_arrived(&notify, 0, 4, 2);
	CHECK_EQUAL(twin_notify_due(&notify, 2), 1);
	twin_notify_taken(&notify, 0, 4);
	CHECK_EQUAL(notify.guest[0].event, 0x80000003);
	CHECK_EQUAL(notify.held, 0);
}

static void a_guest_that_is_gone_holds_nothing(void)
{
	set_up((struct twin_notify_limits){ .delay = 100 * US, .most = 10 });
	twin_notify_arrived(&notify, 5, 9, 0);
	twin_notify_forget(&notify, 5);
	twin_notify_arrived(&notify, 6, 1, 0);
	CHECK_EQUAL(twin_notify_due(&notify, 1), 0);
	twin_notify_arrived(&notify, TWIN_SWITCH_GUESTS, 9, 0);
	twin_notify_taken(&notify, TWIN_SWITCH_GUESTS, 9);
	twin_notify_event(&notify, TWIN_SWITCH_GUESTS, 9);
	twin_notify_forget(&notify, TWIN_SWITCH_GUESTS);
	CHECK_EQUAL(notify.held, 1);
}

/* ---- Both layers ------------------------------------------------------------ */

static void check_split(uint64_t budget, uint32_t guests, uint32_t card_cost, uint32_t guest_cost)
{
	struct twin_latency latency = twin_notify_split(budget, guests, card_cost, guest_cost);
	double wanted = (double)budget / (1 + sqrt((double)guests * guest_cost / card_cost));

	CHECK_EQUAL(latency.card + latency.guest, budget);
	CHECK(fabs((double)latency.card - wanted) <= wanted / 1000 + 1);
}

static void a_budget_is_split_by_the_formula(void)
{
	const uint32_t costs[] = { 1, 2, 999, 10000, 123457, UINT32_MAX };
	const uint64_t budgets[] = { 0, 1, 50 * US, 1250 * US, 1000000 * US };
	uint32_t b, c, g, n;

	for (b = 0; b < 5; b++)
		for (c = 0; c < 6; c++)
			for (g = 0; g < 6; g++)
				for (n = 1; n <= TWIN_SWITCH_GUESTS; n++)
					if (costs[c] >= costs[g] / 1000)
						check_split(budgets[b], n, costs[c], costs[g]);
	/* Dong et al., 5.3, with equal costs: 625, 457, 362, 312 us. */
	CHECK_EQUAL(twin_notify_split(1250, 1, 7, 7).card, 625);
	CHECK_EQUAL(twin_notify_split(1250, 3, 7, 7).card, 457);
	CHECK_EQUAL(twin_notify_split(1250, 6, 7, 7).card, 362);
	CHECK_EQUAL(twin_notify_split(1250, 9, 7, 7).card, 312);
}

static void nonsense_gives_a_split_too(void)
{
	struct twin_latency latency = twin_notify_split(UINT64_MAX, 0, 0, 0);

	CHECK_EQUAL(latency.card + latency.guest, UINT64_MAX);
	CHECK_EQUAL(latency.card >> 54, 0x1ff);	/* half, less a thousandth at most */
	latency = twin_notify_split(1250, UINT32_MAX, 0, UINT32_MAX);
	CHECK_EQUAL(latency.card + latency.guest, 1250);
}

int main(void)
{
	RUN(without_limits_each_packet_is_told_at_once);
	RUN(the_count_releases_before_the_delay);
	RUN(a_count_that_is_never_met_ends_with_the_delay);
	RUN(a_lost_timer_is_made_up_for);
	RUN(a_clock_a_little_behind_tells_nobody_early);
	RUN(before_the_pool_is_empty_everybody_is_told);
	RUN(a_guest_that_looks_by_itself_is_not_told);
	RUN(a_packet_between_the_last_look_and_the_index_is_not_forgotten);
	RUN(a_guest_that_always_has_one_left_is_told_for_ever);
	RUN(who_wants_to_wait_is_told_when_the_pool_is_short);
	RUN(what_was_taken_untold_is_not_told);
	RUN(numbers_run_round);
	RUN(a_guest_that_is_gone_holds_nothing);
	RUN(a_budget_is_split_by_the_formula);
	RUN(nonsense_gives_a_split_too);
	return test_summary();
}
