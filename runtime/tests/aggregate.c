// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Aggregates in the switch: what the driver's side says of one is believed only as far as it
 * agrees with itself, every byte is dom0's, and all of its places are free again afterwards.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "random.h"
#include "switch.h"

#define HEADERS 66u
#define SIZE 1000u
#define AT (5 * PAGE)		/* where dom0 has the struct twin_aggregate */
#define PIECES_BYTES(n) (8u + 16u * (n))

static uint64_t random_state = 1;

static uint32_t any(uint32_t below)
{
	return (uint32_t)(next_random(&random_state) % below);
}

/* An aggregate of n segments for mac: its bytes are in dom0's first pages. */
static struct twin_aggregate make(uint32_t n, uint32_t last, const uint8_t *mac)
{
	struct twin_aggregate a = { .segments = n, .size = SIZE };
	uint32_t i;

	packet(100, HEADERS + SIZE, mac);
	a.piece[0] = (struct twin_segment){ .data = DOM0 + 100, .length = HEADERS + SIZE };
	for (i = 1; i < n; i++) {
		a.piece[i].data = DOM0 + 400 * i;
		a.piece[i].length = i + 1 < n ? SIZE : last;
	}
	return a;
}

/* Tells the switch of it, with any length. */
static enum twin_switch_verdict receive(const struct twin_aggregate *a, uint32_t length)
{
	const struct twin_arrival arrival = {
		.buffer = DOM0 + 0x100000, .data = DOM0 + AT, .length = length, .flags = 9,
		.vlan = 42,
	};

	memcpy(byte_at(AT), a, sizeof(*a));
	return twin_switch_receive_aggregate(&sw, &instance, &arrival);
}

static uint32_t free_packets(void)
{
	uint32_t n = 0, next;

	for (next = sw.free; next; next = packets[next - 1].next)
		n++;
	return n;
}

static bool is_copy(const struct twin_aggregate *a, const uint8_t *to)
{
	uint32_t i, k;

	for (i = 0; i < a->segments; i++)
		for (k = 0; k < a->piece[i].length; k++)
			if (*to++ != *byte_at(a->piece[i].data - DOM0 + k))
				return false;
	return true;
}

static void one_packet_of_all_pieces(void)
{
	static uint8_t to[50000];
	struct twin_delivery delivery;
	struct twin_aggregate a;
	uint32_t n, total;

	set_up();
	twin_switch_attach(&sw, bert);
	twin_switch_attach(&sw, anna);
	for (n = 2; n <= TWIN_SWITCH_PIECES; n++) {
		a = make(n, n * 22, anna);
		total = HEADERS + SIZE * (n - 1) + n * 22;
		CHECK_EQUAL(receive(&a, PIECES_BYTES(n)), TWIN_SWITCH_HELD);
		CHECK_EQUAL(free_packets(), PACKETS - n);
		CHECK_EQUAL(take(0, to, sizeof(to), &delivery), TWIN_BUSY);
		memset(to, 0, sizeof(to));
		CHECK_EQUAL(take(1, to, sizeof(to), &delivery), TWIN_SWITCH_AGGREGATE);
		CHECK_EQUAL(delivery.length, total);
		CHECK_EQUAL(delivery.segments, n);
		CHECK_EQUAL(delivery.size, SIZE);
		CHECK_EQUAL(delivery.flags, 9);
		CHECK_EQUAL(delivery.vlan, 42);
		CHECK_EQUAL(delivery.release, DOM0 + 0x100000);
		CHECK(is_copy(&a, to));
		CHECK_EQUAL(to[total], 0);
		CHECK_EQUAL(free_packets(), PACKETS);
	}
}

/* Whose way a bridge knows: whatever dom0 has in the frame by now. */
static void one_whose_way_is_known_goes_there(void)
{
	struct twin_aggregate a = make(2, 7, bert);
	const struct twin_arrival arrival = {
		.buffer = DOM0 + 0x100000, .data = DOM0 + AT, .length = PIECES_BYTES(2),
	};
	static uint8_t to[3000];
	struct twin_delivery delivery;

	set_up();
	twin_switch_attach(&sw, bert);
	twin_switch_attach(&sw, anna);
	memcpy(byte_at(AT), &a, sizeof(a));
	/* Guest 9 is not there. */
	CHECK_EQUAL(twin_switch_hold_aggregate(&sw, &instance, 1 << 1 | 1 << 9, &arrival),
		    TWIN_SWITCH_HELD);
	CHECK_EQUAL(twin_switch_news(&sw), 1 << 1);
	CHECK_EQUAL(take(0, to, sizeof(to), &delivery), TWIN_BUSY);
	CHECK_EQUAL(take(1, to, sizeof(to), &delivery), TWIN_SWITCH_AGGREGATE);
	CHECK(is_copy(&a, to));
	CHECK_EQUAL(twin_switch_hold_aggregate(&sw, &instance, 1 << 9, &arrival),
		    TWIN_SWITCH_UNWANTED);
	a.segments = 3;
	memcpy(byte_at(AT), &a, sizeof(a));
	CHECK_EQUAL(twin_switch_hold_aggregate(&sw, &instance, 1, &arrival), TWIN_SWITCH_REFUSED);
	CHECK_EQUAL(free_packets(), PACKETS);
}

static void a_small_room_cuts_it(void)
{
	struct twin_delivery delivery;
	struct twin_aggregate a;
	uint8_t to[3000];
	uint32_t size;

	set_up();
	twin_switch_attach(&sw, anna);
	for (size = 0; size < 2600; size += 97) {
		a = make(3, 7, anna);
		CHECK_EQUAL(receive(&a, PIECES_BYTES(3)), TWIN_SWITCH_HELD);
		memset(to, 0xee, sizeof(to));
		CHECK_EQUAL(take(0, to, size, &delivery), TWIN_SWITCH_AGGREGATE);
		CHECK_EQUAL(delivery.length, HEADERS + 2 * SIZE + 7);
		CHECK_EQUAL(delivery.segments, 3);
		CHECK_EQUAL(to[size], size < delivery.length ? 0xee : to[size]);
		CHECK_EQUAL(to[2999], 0xee);
	}
	CHECK_EQUAL(free_packets(), PACKETS);
}

/* Whatever the driver's side writes there. */
static void an_aggregate_that_lies_is_refused(void)
{
	struct twin_aggregate a;
	uint32_t n;

	set_up();
	twin_switch_attach(&sw, anna);
#define LIES(statement, bytes) do {						\
		a = make(4, 9, anna);						\
		statement;							\
		CHECK_EQUAL(receive(&a, bytes), TWIN_SWITCH_REFUSED);		\
	} while (0)
	for (n = 0; n < 2; n++)
		LIES(a.segments = n, PIECES_BYTES(n));
	LIES(a.segments = 33, PIECES_BYTES(33));
	LIES(a.segments = UINT32_MAX, PIECES_BYTES(4));
	LIES(, PIECES_BYTES(3));
	LIES(, PIECES_BYTES(5));
	LIES(, PIECES_BYTES(4) - 1);
	LIES(, 0);
	LIES(, 7);
	LIES(, UINT32_MAX);
	LIES(a.size = 0, PIECES_BYTES(4));
	LIES(a.size = UINT32_MAX, PIECES_BYTES(4));
	LIES(a.size = SIZE - 1, PIECES_BYTES(4));
	LIES(a.size = SIZE + 1, PIECES_BYTES(4));
	LIES(a.piece[0].length = SIZE - 1, PIECES_BYTES(4));
	LIES(a.piece[0].length = SIZE + 53, PIECES_BYTES(4));
	LIES(a.piece[0].length = SIZE + 135, PIECES_BYTES(4));
	LIES(a.piece[0].length = UINT32_MAX, PIECES_BYTES(4));
	LIES(a.piece[1].length = SIZE - 1, PIECES_BYTES(4));
	LIES(a.piece[2].length = 0, PIECES_BYTES(4));
	LIES(a.piece[3].length = 0, PIECES_BYTES(4));
	LIES(a.piece[3].length = SIZE + 1, PIECES_BYTES(4));
	LIES(a.piece[3].length = UINT32_MAX, PIECES_BYTES(4));
	LIES(a.piece[0].data = DOM0 + PAGES * PAGE - 5, PIECES_BYTES(4));
	LIES(a.piece[0].data = 0, PIECES_BYTES(4));
	/* one byte more than IPv4 has */
	LIES(a.size = 32742; a.piece[0].length = 32742 + 66; a.segments = 2;
	     a.piece[1].length = 32742, PIECES_BYTES(2));
	CHECK_EQUAL(free_packets(), PACKETS);
	CHECK_EQUAL(twin_switch_news(&sw), 0);
}

/* A piece that is not dom0's is noticed when it is taken; nothing else is read. */
static void pieces_beyond_dom0_are_not_read(void)
{
	static uint8_t to[50000];
	struct twin_delivery delivery;
	struct twin_aggregate a;
	uint32_t i;

	set_up();
	twin_switch_attach(&sw, anna);
	for (i = 0; i < 4; i++) {
		a = make(4, SIZE, anna);
		a.piece[i].data = i ? DOM0 + PAGES * PAGE - SIZE + 1 : a.piece[0].data;
		if (!i)
			a.piece[1].data = DOM0 - 1;
		CHECK_EQUAL(receive(&a, PIECES_BYTES(4)), TWIN_SWITCH_HELD);
		CHECK_EQUAL(take(0, to, sizeof(to), &delivery), TWIN_ABORTED);
		CHECK_EQUAL(delivery.release, DOM0 + 0x100000);
		CHECK_EQUAL(free_packets(), PACKETS);
	}
}

static void too_few_places_drop_it_whole(void)
{
	static uint8_t to[50000];
	struct twin_delivery delivery;
	struct twin_aggregate a;
	uint32_t i, held = 0;

	set_up();
	twin_switch_attach(&sw, anna);
	twin_switch_attach(&sw, bert);
	a = make(7, 9, anna);
	for (i = 0; i < PACKETS; i++)
		held += receive(&a, PIECES_BYTES(7)) == TWIN_SWITCH_HELD;
	CHECK_EQUAL(held, PACKETS / 7);
	CHECK_EQUAL(free_packets(), PACKETS % 7);
	CHECK_EQUAL(sw.exhausted, PACKETS - held);
	CHECK_EQUAL(take(0, to, sizeof(to), &delivery), TWIN_SWITCH_AGGREGATE);
	CHECK_EQUAL(receive(&a, PIECES_BYTES(7)), TWIN_SWITCH_HELD);
	/* and a queue that is full */
	set_up();
	twin_switch_attach(&sw, anna);
	a = make(2, 9, anna);
	for (i = 0; i < PACKETS / 2; i++)
		CHECK_EQUAL(receive(&a, PIECES_BYTES(2)), TWIN_SWITCH_HELD);
	CHECK_EQUAL(receive(&a, PIECES_BYTES(2)), TWIN_SWITCH_UNWANTED);
	a = make(2, 9, carl);
	CHECK_EQUAL(receive(&a, PIECES_BYTES(2)), TWIN_SWITCH_UNWANTED);
	CHECK_EQUAL(sw.unknown, 1);
}

static void detaching_frees_all_its_places(void)
{
	static uint64_t release[TWIN_SWITCH_QUEUE];
	struct twin_arrival one;
	struct twin_aggregate a;

	set_up();
	twin_switch_attach(&sw, anna);
	a = make(20, 9, anna);
	CHECK_EQUAL(receive(&a, PIECES_BYTES(20)), TWIN_SWITCH_HELD);
	one = packet(0, 60, anna);
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &one), TWIN_SWITCH_HELD);
	CHECK_EQUAL(receive(&a, PIECES_BYTES(20)), TWIN_SWITCH_HELD);
	CHECK_EQUAL(twin_switch_detach(&sw, 0, release), 3);
	CHECK_EQUAL(release[0], DOM0 + 0x100000);
	CHECK_EQUAL(release[1], one.buffer);
	CHECK_EQUAL(free_packets(), PACKETS);
}

/* Packets and aggregates in any order, to one guest or all, keep their order and bytes. */
static void any_mixture_keeps_its_order(void)
{
	static uint8_t to[50000];
	static uint32_t waiting[TWIN_SWITCH_QUEUE];
	struct twin_delivery delivery;
	struct twin_arrival one;
	struct twin_aggregate a;
	uint32_t round, head = 0, tail = 0, n;

	set_up();
	twin_switch_attach(&sw, anna);
	for (round = 0; round < 20000; round++) {
		if (any(2) && head - tail < 60) {
			n = any(8);
			if (n < 2) {
				one = packet(0, 60, any(2) ? everybody : anna);
				CHECK_EQUAL(twin_switch_receive(&sw, &instance, &one),
					    TWIN_SWITCH_HELD);
				n = 0;
			} else {
				a = make(n, 1 + any(SIZE), anna);
				CHECK_EQUAL(receive(&a, PIECES_BYTES(n)), TWIN_SWITCH_HELD);
			}
			waiting[head++ % TWIN_SWITCH_QUEUE] = n;
		} else if (head != tail) {
			n = waiting[tail++ % TWIN_SWITCH_QUEUE];
			CHECK_EQUAL(take(0, to, sizeof(to), &delivery),
				    n ? TWIN_SWITCH_AGGREGATE : TWIN_OK);
			CHECK_EQUAL(delivery.length == 60, !n);
			if (n)
				CHECK_EQUAL(delivery.segments, n);
		}
	}
	while (head != tail++)
		CHECK(take(0, to, sizeof(to), &delivery) != TWIN_BUSY);
	CHECK_EQUAL(free_packets(), PACKETS);
}

/* The guest's CPU takes it at the moment in which it is queued: no free packet, which has
 * another guest's address yet, is a piece of it. */
static void *take_at_once(void *stop)
{
	struct twin_delivery delivery;
	uintptr_t wrong = 0;
	uint8_t to[8];

	while (!__atomic_load_n((uint32_t *)stop, __ATOMIC_RELAXED))
		if (take(0, to, sizeof(to), &delivery) == TWIN_SWITCH_AGGREGATE)
			wrong += delivery.segments != 2 ||
				 delivery.length != HEADERS + SIZE + 7;
	return (void *)wrong;
}

static void an_aggregate_is_whole_before_it_is_seen(void)
{
	const struct twin_aggregate a = make(2, 7, everybody);
	uint8_t mac[6] = { 2, 9, 9, 9, 9, 0 };
	struct twin_delivery delivery;
	uint32_t stop = 0, i, guest;
	pthread_t thread;
	void *wrong;

	set_up();
	for (; mac[5] < TWIN_SWITCH_GUESTS; mac[5]++)
		twin_switch_attach(&sw, mac);
	pthread_create(&thread, NULL, take_at_once, &stop);
	for (i = 0; i < 3000; i++) {
		CHECK_EQUAL(receive(&a, PIECES_BYTES(2)), TWIN_SWITCH_HELD);
		for (guest = 1; guest < TWIN_SWITCH_GUESTS; guest++)
			take(guest, NULL, 0, &delivery);
		while (__atomic_load_n(&sw.guests[0].consumed, __ATOMIC_ACQUIRE) != i + 1)
			sched_yield();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, &wrong);
	CHECK_EQUAL((uintptr_t)wrong, 0);
	CHECK_EQUAL(free_packets(), PACKETS);
}

int main(void)
{
	dom0 = make_dom0();
	RUN(one_packet_of_all_pieces);
	RUN(one_whose_way_is_known_goes_there);
	RUN(a_small_room_cuts_it);
	RUN(an_aggregate_that_lies_is_refused);
	RUN(pieces_beyond_dom0_are_not_read);
	RUN(too_few_places_drop_it_whole);
	RUN(detaching_frees_all_its_places);
	RUN(any_mixture_keeps_its_order);
	RUN(an_aggregate_is_whole_before_it_is_seen);
	return test_summary();
}
