// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * When guests are told of packets; see <twin/notify.h>.
 *
 *   taken <= told <= arrived            numbers of a guest's packets, running freely
 *   |  took  | knows of | waits |
 */
#include <stddef.h>

#include <twin/notify.h>

#include "internal.h"

uint64_t twin_notify_size(void)
{
	return sizeof(struct twin_notify);
}

void twin_notify_init(struct twin_notify *notify, const struct twin_notify_limits *limits)
{
	volatile uint8_t *byte = (uint8_t *)notify;	/* not to become a call of memset */
	uint32_t i;

	for (i = 0; i < sizeof(*notify); i++)
		byte[i] = 0;
	twin_notify_set(notify, limits);
}

void twin_notify_set(struct twin_notify *notify, const struct twin_notify_limits *limits)
{
	notify->limits = *limits;
}

static bool waits(const struct twin_notify *notify, uint32_t guest)
{
	return notify->waiting >> guest & 1;
}

void twin_notify_arrived(struct twin_notify *notify, uint32_t guest, uint32_t packets, uint64_t now)
{
	struct twin_notify_guest *of;

	if (guest >= TWIN_SWITCH_GUESTS || !packets)
		return;
	of = &notify->guest[guest];
	of->arrived += packets;
	notify->held += packets;
	if (waits(notify, guest))
		return;
	of->since = now;
	notify->waiting |= 1ull << guest;
}

void twin_notify_taken(struct twin_notify *notify, uint32_t guest, uint32_t packets)
{
	struct twin_notify_guest *of;

	if (guest >= TWIN_SWITCH_GUESTS)
		return;
	of = &notify->guest[guest];
	if (packets > of->arrived - of->taken)
		packets = of->arrived - of->taken;
	of->taken += packets;
	notify->held -= packets;
	/* It has found them by itself. */
	if ((int32_t)(of->taken - of->told) > 0)
		of->told = of->taken;
	if (of->told == of->arrived)
		notify->waiting &= ~(1ull << guest);
	/* One that sets no index wants to be told of whatever comes behind what it took. */
	if (of->taken == of->arrived || (int32_t)(of->taken - of->event) > 0)
		of->event = of->taken;
}

void twin_notify_event(struct twin_notify *notify, uint32_t guest, uint32_t event)
{
	if (guest < TWIN_SWITCH_GUESTS)
		notify->guest[guest].event = event;
}

void twin_notify_forget(struct twin_notify *notify, uint32_t guest)
{
	struct twin_notify_guest *of;

	if (guest >= TWIN_SWITCH_GUESTS)
		return;
	of = &notify->guest[guest];
	notify->held -= of->arrived - of->taken;
	notify->waiting &= ~(1ull << guest);
	*of = (struct twin_notify_guest){ 0 };
}

/* Whether the guest wants to be told of what waits. */
static bool is_wanted(const struct twin_notify_guest *guest)
{
	return (int32_t)(guest->arrived - guest->event) > 0;
}

/* Why a guest whose packets wait is to be told now: the counter of that reason, or NULL. */
static uint64_t *reason(struct twin_notify *notify, const struct twin_notify_guest *guest,
			bool is_short, uint64_t now)
{
	const struct twin_notify_limits *limits = &notify->limits;
	struct twin_notify_statistics *statistics = &notify->statistics;

	if (is_short)
		return &statistics->most;
	if (limits->count && guest->arrived - guest->told >= limits->count)
		return &statistics->count;
	if (!limits->delay)
		return &statistics->at_once;
	return now - guest->since >= limits->delay && now >= guest->since ? &statistics->delay : NULL;
}

uint64_t twin_notify_due(struct twin_notify *notify, uint64_t now)
{
	const bool is_short = notify->limits.most && notify->held >= notify->limits.most;
	uint64_t rest, due = 0, *counter;
	struct twin_notify_guest *guest;
	uint32_t number;

	for (rest = notify->waiting; rest; rest &= rest - 1) {
		number = (uint32_t)__builtin_ctzll(rest);
		guest = &notify->guest[number];
		/* What is held is everybody's when the pool is short. */
		if (!is_short && !is_wanted(guest))
			continue;
		counter = reason(notify, guest, is_short, now);
		if (!counter)
			continue;
		(*counter)++;
		notify->statistics.saved += guest->arrived - guest->told - 1;
		guest->told = guest->arrived;
		due |= 1ull << number;
	}
	notify->waiting &= ~due;
	return due;
}

uint64_t twin_notify_deadline(const struct twin_notify *notify)
{
	uint64_t rest, deadline = TWIN_NOTIFY_NEVER, its;
	const struct twin_notify_guest *guest;

	for (rest = notify->waiting; rest; rest &= rest - 1) {
		guest = &notify->guest[__builtin_ctzll(rest)];
		its = guest->since + notify->limits.delay;
		if (is_wanted(guest) && its < deadline)
			deadline = its;
	}
	return deadline;
}

void twin_notify_events(const struct twin_notify *notify, struct twin_notify_statistics *copy)
{
	*copy = notify->statistics;
}

/* ---- Both layers ------------------------------------------------------------ */

#define FRACTION 12	/* bits of a square root after the point */

/* The largest number whose square is not larger: digit by digit, as by hand. */
static uint64_t square_root(uint64_t square)
{
	uint64_t root = 0, bit = 1ull << 62;

	while (bit > square)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (square >= root + bit) {
			square -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

struct twin_latency twin_notify_split(uint64_t budget, uint32_t guests, uint32_t card_cost,
				      uint32_t guest_cost)
{
	const uint64_t card_weight = card_cost ? card_cost : 1;
	uint64_t guest_weight = guest_cost ? guest_cost : 1;
	struct twin_latency latency;
	uint64_t root;

	if (guests > TWIN_SWITCH_GUESTS)
		guests = TWIN_SWITCH_GUESTS;
	guest_weight *= guests ? guests : 1;	/* below 2^38: 24 bits more fit */
	root = square_root((guest_weight << 2 * FRACTION) / card_weight);
	if (budget >> (64 - FRACTION))		/* a thousandth of that is nothing */
		latency.card = budget / ((1ull << FRACTION) + root) << FRACTION;
	else
		latency.card = (budget << FRACTION) / ((1ull << FRACTION) + root);
	latency.guest = budget - latency.card;
	return latency;
}
