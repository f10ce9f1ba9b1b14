/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * When a guest is told that packets wait for it.
 *
 * An interrupt of a guest costs more than a packet, so several packets share one. A guest is
 * told when the first of these holds:
 *
 *   count   that many packets wait for it
 *   delay   its first one has waited that long (BVIC; Dong et al., 4.1)
 *   most    that many packets wait for all guests together: before the driver's pool of
 *           receive buffers is empty
 *
 * It is not told, whatever waits, while it has said that it looks by itself: its event
 * index, the number of the packet for which it wants to be told next. A guest that is about
 * to sleep sets that index and then looks once more, so no packet is forgotten.
 *
 * Nothing here sets a timer: who has one asks twin_notify_deadline(), and a timer that is
 * lost costs no more than the next packet's time, because each call of twin_notify_due()
 * looks at all deadlines. [any], by one CPU at a time.
 */
#ifndef TWIN_NOTIFY_H
#define TWIN_NOTIFY_H

#include <stdint.h>

#include <twin/runtime.h>
#include <twin/switch.h>

#define TWIN_NOTIFY_NEVER	UINT64_MAX	/* no deadline */

/* The limits. All 0: a guest is told of each packet at once. */
struct twin_notify_limits {
	uint64_t delay;		/* in the unit of the caller's clock; 0: none waits */
	uint32_t count;		/* 0: no limit but the others */
	uint32_t most;		/* 0: no limit but the others */
};

/* One guest. Numbers of packets run freely. */
struct twin_notify_guest {
	uint64_t since;		/* when the first of those arrived that it was not told of */
	uint32_t arrived;	/* packets for it so far */
	uint32_t told;		/* of which it was told */
	uint32_t taken;		/* of which it has taken */
	uint32_t event;		/* it wants to be told when `arrived` passes this */
};

/* Guests told so far, by reason. */
struct twin_notify_statistics {
	uint64_t count, delay, most, at_once;
	uint64_t saved;		/* packets that needed no interrupt of their own */
};

struct twin_notify {
	struct twin_notify_limits limits;
	uint64_t waiting;	/* bit g: guest g has packets that it was not told of */
	uint64_t held;		/* packets that wait for all guests */
	struct twin_notify_guest guest[TWIN_SWITCH_GUESTS];
	struct twin_notify_statistics statistics;
};

/* Nobody has packets. limits is copied. [setup] */
void twin_notify_init(struct twin_notify *notify, const struct twin_notify_limits *limits);

/* Other limits from now on; who waits is judged by them. */
void twin_notify_set(struct twin_notify *notify, const struct twin_notify_limits *limits);

/* `packets` more wait for guest, since `now`. A guest that does not exist has none. */
void twin_notify_arrived(struct twin_notify *notify, uint32_t guest, uint32_t packets,
			 uint64_t now);

/* The guest has taken packets; more than wait for it are as many as wait. If none is left
 * it wants to be told of the next, unless it says otherwise after that. */
void twin_notify_taken(struct twin_notify *notify, uint32_t guest, uint32_t packets);

/* The guest wants to be told of its packet number `event` (the count that
 * twin_notify_arrived makes) and not before, unless the pool is short. It looks once more after
 * this. Any value is safe. How many packets a guest holds that never takes any, its queue
 * bounds, not this. */
void twin_notify_event(struct twin_notify *notify, uint32_t guest, uint32_t event);

/* The guest is gone, with its packets. */
void twin_notify_forget(struct twin_notify *notify, uint32_t guest);

/* Guests to be told now, as bits. They count as told. */
uint64_t twin_notify_due(struct twin_notify *notify, uint64_t now);

/* When twin_notify_due() gives somebody, if nothing arrives; TWIN_NOTIFY_NEVER. */
uint64_t twin_notify_deadline(const struct twin_notify *notify);

void twin_notify_events(const struct twin_notify *notify, struct twin_notify_statistics *copy);

/* Bytes of struct twin_notify, for callers not in C. */
uint64_t twin_notify_size(void);

/*
 * One budget of latency for both layers that wait, the card's interrupt throttle and this
 * one (Dong et al., formula 4): what costs least is
 *
 *   card = budget / (1 + sqrt(guests * guest_cost / card_cost)),  guest = budget - card
 *
 * where the costs are those of one interrupt, in the same unit, and all guests receive
 * alike. Costs of 0 count as 1, no guest as one. The result is within a thousandth.
 */
struct twin_latency {
	uint64_t card, guest;
};

struct twin_latency twin_notify_split(uint64_t budget, uint32_t guests, uint32_t card_cost,
				      uint32_t guest_cost);

#endif /* TWIN_NOTIFY_H */
