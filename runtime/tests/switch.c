// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The switch with an array as dom0's memory: which guest gets which packet, when a
 * buffer is released, and the behaviour when a queue or the switch is full.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

#include "switch.h"

static void unicast_goes_to_its_guest_alone(void)
{
	struct twin_delivery delivery;
	struct twin_arrival arrival;
	uint8_t to[1514];
	int a, b;

	set_up();
	a = twin_switch_attach(&sw, anna);
	b = twin_switch_attach(&sw, bert);
	CHECK(a >= 0 && b >= 0 && a != b);
	arrival = packet(100, 1514, bert);
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
	CHECK_EQUAL(twin_switch_news(&sw), 1ull << b);
	CHECK_EQUAL(twin_switch_news(&sw), 0);
	CHECK_EQUAL(take(a, to, sizeof(to), &delivery), TWIN_BUSY);
	CHECK_EQUAL(take(b, to, sizeof(to), &delivery), TWIN_OK);
	CHECK_EQUAL(delivery.length, 1514);
	CHECK_EQUAL(delivery.flags, 3);
	CHECK_EQUAL(delivery.vlan, 42);
	CHECK_EQUAL(delivery.release, arrival.buffer);
	CHECK_EQUAL(take(b, to, sizeof(to), &delivery), TWIN_BUSY);
	arrival = packet(100, 60, carl);
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_UNWANTED);
	CHECK_EQUAL(sw.unknown, 1);
}

static void bytes_are_right_at_every_offset_in_a_page(void)
{
	struct twin_delivery delivery;
	struct twin_arrival arrival;
	uint8_t to[1514];
	uint64_t offset;
	uint32_t i;
	int guest;

	set_up();
	guest = twin_switch_attach(&sw, anna);
	for (offset = 0; offset < 3 * PAGE; offset += 61) {
		arrival = packet(offset, 1514, anna);
		CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
		memset(to, 0, sizeof(to));
		CHECK_EQUAL(take(guest, to, sizeof(to), &delivery), TWIN_OK);
		for (i = 0; i < 1514 && to[i] == *byte_at(offset + i); i++)
			;
		CHECK_EQUAL(i, 1514);
	}
}

static void a_long_packet_is_cut_and_says_so(void)
{
	struct twin_delivery delivery;
	struct twin_arrival arrival;
	uint8_t to[64];
	int guest;

	set_up();
	guest = twin_switch_attach(&sw, anna);
	arrival = packet(0, 1514, anna);
	twin_switch_receive(&sw, &instance, &arrival);
	memset(to, 0xee, sizeof(to));
	CHECK_EQUAL(take(guest, to, 60, &delivery), TWIN_OK);
	CHECK_EQUAL(delivery.length, 1514);
	CHECK_EQUAL(to[60], 0xee);
}

static void broadcast_is_released_by_its_last_taker(void)
{
	struct twin_delivery delivery;
	struct twin_arrival arrival;
	int guests[3];
	uint8_t to[60];

	set_up();
	guests[0] = twin_switch_attach(&sw, anna);
	guests[1] = twin_switch_attach(&sw, bert);
	guests[2] = twin_switch_attach(&sw, carl);
	arrival = packet(0, 60, everybody);
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
	CHECK_EQUAL(twin_switch_news(&sw), 7);
	CHECK_EQUAL(take(guests[1], to, 60, &delivery), TWIN_OK);
	CHECK_EQUAL(delivery.release, 0);
	CHECK_EQUAL(take(guests[0], to, 60, &delivery), TWIN_OK);
	CHECK_EQUAL(delivery.release, 0);
	CHECK_EQUAL(take(guests[2], to, 60, &delivery), TWIN_OK);
	CHECK_EQUAL(delivery.release, arrival.buffer);
}

static void a_full_queue_drops_and_counts(void)
{
	struct twin_arrival arrival;
	uint32_t i;

	set_up();
	twin_switch_attach(&sw, anna);
	arrival = packet(0, 60, anna);
	for (i = 0; i < TWIN_SWITCH_QUEUE; i++)
		CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_UNWANTED);
	CHECK_EQUAL(sw.guests[0].dropped, 1);
}

static void no_more_packets_than_there_are(void)
{
	struct twin_delivery delivery;
	struct twin_arrival arrival;
	uint32_t i, held = 0;
	uint8_t to[60];

	set_up();
	twin_switch_attach(&sw, anna);
	twin_switch_attach(&sw, bert);
	for (i = 0; i < 2 * TWIN_SWITCH_QUEUE; i++) {
		arrival = packet(0, 60, i % 2 ? anna : bert);
		held += twin_switch_receive(&sw, &instance, &arrival) == TWIN_SWITCH_HELD;
	}
	CHECK_EQUAL(held, PACKETS);
	CHECK_EQUAL(sw.exhausted, 2 * TWIN_SWITCH_QUEUE - PACKETS);
	CHECK_EQUAL(take(0, to, 60, &delivery), TWIN_OK);
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
}

static void detaching_gives_back_what_nobody_else_wants(void)
{
	static uint64_t release[TWIN_SWITCH_QUEUE];
	struct twin_delivery delivery;
	struct twin_arrival one, all;
	uint8_t to[60];

	set_up();
	twin_switch_attach(&sw, anna);
	twin_switch_attach(&sw, bert);
	one = packet(0, 60, anna);
	twin_switch_receive(&sw, &instance, &one);
	all = packet(2000, 60, everybody);
	twin_switch_receive(&sw, &instance, &all);
	CHECK_EQUAL(twin_switch_detach(&sw, 0, release), 1);
	CHECK_EQUAL(release[0], one.buffer);
	CHECK_EQUAL(twin_switch_detach(&sw, 0, release), 0);
	CHECK_EQUAL(twin_switch_detach(&sw, 1000, release), 0);
	CHECK_EQUAL(take(1, to, 60, &delivery), TWIN_OK);
	CHECK_EQUAL(delivery.release, all.buffer);
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &one), TWIN_SWITCH_UNWANTED);
}

static void addresses_are_checked(void)
{
	static const uint8_t none[6];
	struct twin_arrival arrival;

	set_up();
	CHECK_EQUAL(twin_switch_attach(&sw, none), -1);
	CHECK_EQUAL(twin_switch_attach(&sw, everybody), -1);
	CHECK_EQUAL(twin_switch_attach(&sw, anna), 0);
	CHECK_EQUAL(twin_switch_attach(&sw, anna), -1);
	arrival = packet(0, 60, anna);
	arrival.length = 5;
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_REFUSED);
	arrival.length = 60;
	arrival.data = DOM0 - 8;
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_REFUSED);
}

/* The buffer must be released even if its bytes can no longer be read. */
static void a_packet_whose_page_is_gone_is_dropped(void)
{
	struct twin_delivery delivery;
	struct twin_arrival arrival;
	uint8_t to[1514];

	set_up();
	twin_switch_attach(&sw, anna);
	arrival = packet(PAGE - 10, 1514, anna);
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
	gone = true;
	CHECK_EQUAL(twin_flush(&instance, 1), TWIN_OK);
	CHECK_EQUAL(take(0, to, sizeof(to), &delivery), TWIN_ABORTED);
	CHECK_EQUAL(delivery.release, arrival.buffer);
	CHECK_EQUAL(take(0, to, sizeof(to), &delivery), TWIN_BUSY);
}

/* The destination's six bytes, wherever dom0's memory ends among them. */
static void an_address_cut_off_by_the_end_of_dom0_is_refused(void)
{
	struct twin_arrival arrival = { .buffer = 1, .length = 60 };
	uint64_t left;

	set_up();
	twin_switch_attach(&sw, anna);
	for (left = 1; left < TWIN_ETH_ALEN; left++) {
		arrival.data = DOM0 + PAGES * PAGE - left;
		CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_REFUSED);
		arrival.data = DOM0 - left;
		CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_REFUSED);
	}
	CHECK_EQUAL(sw.unknown, 0);
	/* All six are there: it is wanted, though not even 60 are. */
	arrival = packet(PAGES * PAGE - 6, 6, anna);
	arrival.length = 60;
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
}

static void an_address_in_two_pages_is_read_from_both(void)
{
	struct twin_arrival arrival;
	uint64_t left;
	int guest;

	set_up();
	guest = twin_switch_attach(&sw, anna);
	for (left = 1; left < TWIN_ETH_ALEN; left++) {
		arrival = packet(PAGE - left, 60, anna);
		CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
		CHECK_EQUAL(twin_switch_news(&sw), 1ull << guest);
	}
}

/* Address space does not wrap, even where dom0 has both its ends. */
static void a_packet_round_the_end_of_all_addresses_is_refused(void)
{
	struct twin_arrival arrival = { .buffer = 1, .data = -3ull, .length = 60 };
	uint8_t to[16];

	set_up();
	twin_switch_attach(&sw, anna);
	round_the_world = true;
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_REFUSED);
	CHECK_EQUAL(twin_copy_from_dom0(&instance, to, -3ull, 4), TWIN_ABORTED);
	CHECK_EQUAL(twin_copy_from_dom0(&instance, to, -4ull, 4), TWIN_OK);
	CHECK_EQUAL(twin_copy_from_dom0(&instance, to, 0, 4), TWIN_OK);
	CHECK_EQUAL(twin_copy_from_dom0(&instance, to, -1ull, 0), TWIN_OK);
}

/* Nothing is read beyond what dom0 has, whatever the length says. */
static void a_length_that_lies_is_noticed_when_the_bytes_are_taken(void)
{
	struct twin_delivery delivery;
	struct twin_arrival arrival;
	uint8_t to[1514];

	set_up();
	twin_switch_attach(&sw, anna);
	arrival = packet(PAGES * PAGE - 100, 100, anna);
	arrival.length = UINT32_MAX;
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
	CHECK_EQUAL(take(0, to, sizeof(to), &delivery), TWIN_ABORTED);
	CHECK_EQUAL(delivery.release, arrival.buffer);
	arrival = packet(PAGES * PAGE - 6, 6, anna);
	arrival.length = 7;
	CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
	CHECK_EQUAL(take(0, to, sizeof(to), &delivery), TWIN_ABORTED);
}

static void *rewrite_destination(void *stop)
{
	uint8_t *at = byte_at(200);

	while (!__atomic_load_n((uint32_t *)stop, __ATOMIC_RELAXED)) {
		__atomic_store_n(at, 0xff, __ATOMIC_RELAXED);	/* a multicast address */
		__atomic_store_n(at, 2, __ATOMIC_RELAXED);	/* anna's */
	}
	return NULL;
}

/* dom0 changes the address while it is read: each packet goes to the guests of one of
 * the addresses, never to those of a mixture, nor twice to one. */
static void an_address_is_read_once(void)
{
	struct twin_arrival arrival;
	struct twin_delivery delivery;
	uint32_t stop = 0, i;
	pthread_t thread;
	uint8_t to[60];

	set_up();
	twin_switch_attach(&sw, anna);
	twin_switch_attach(&sw, bert);
	arrival = packet(200, 60, anna);
	pthread_create(&thread, NULL, rewrite_destination, &stop);
	for (i = 0; i < 20000; i++) {
		CHECK_EQUAL(twin_switch_receive(&sw, &instance, &arrival), TWIN_SWITCH_HELD);
		CHECK_EQUAL(take(0, to, sizeof(to), &delivery), TWIN_OK);
		if (!delivery.release)
			CHECK_EQUAL(take(1, to, sizeof(to), &delivery), TWIN_OK);
		CHECK_EQUAL(take(1, to, sizeof(to), &delivery), TWIN_BUSY);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

static void there_are_at_most_64_guests(void)
{
	uint8_t mac[6] = { 2, 9, 9, 9, 9, 0 };
	uint32_t i;

	set_up();
	for (i = 0; i < TWIN_SWITCH_GUESTS; i++) {
		mac[5] = (uint8_t)i;
		CHECK_EQUAL(twin_switch_attach(&sw, mac), i);
	}
	mac[5] = 200;
	CHECK_EQUAL((uint32_t)twin_switch_attach(&sw, mac), (uint32_t)-1);
}

/* A header is read wherever it lies, also across pages, and no byte beyond it. */
static void headers_are_read_where_they_are(void)
{
	uint8_t header[TWIN_ETH_HLEN + 1];
	uint64_t at, i;

	set_up();
	for (i = 0; i < PAGES * PAGE; i++)
		*byte_at(i) = (uint8_t)(i * 31 + (i >> 8));
	twin_instance_hold(&instance);
	for (at = 0; at <= PAGES * PAGE - TWIN_ETH_HLEN; at += at % PAGE < PAGE - 40 ? 499 : 1) {
		header[TWIN_ETH_HLEN] = 0xee;
		CHECK_EQUAL(twin_read_header(&instance, DOM0 + at, header), TWIN_OK);
		for (i = 0; i < TWIN_ETH_HLEN; i++)
			CHECK_EQUAL(header[i], *byte_at(at + i));
		CHECK_EQUAL(header[TWIN_ETH_HLEN], 0xee);
	}
	for (i = 1; i <= TWIN_ETH_HLEN; i++)
		CHECK_EQUAL(twin_read_header(&instance, DOM0 + PAGES * PAGE - TWIN_ETH_HLEN + i, header),
			    TWIN_ABORTED);
	CHECK_EQUAL(twin_read_header(&instance, DOM0 - 1, header), TWIN_ABORTED);
	CHECK_EQUAL(twin_read_header(&instance, UINT64_MAX - 5, header), TWIN_ABORTED);
	twin_instance_release(&instance);
}

int main(void)
{
	dom0 = make_dom0();
	RUN(unicast_goes_to_its_guest_alone);
	RUN(bytes_are_right_at_every_offset_in_a_page);
	RUN(a_long_packet_is_cut_and_says_so);
	RUN(broadcast_is_released_by_its_last_taker);
	RUN(a_full_queue_drops_and_counts);
	RUN(no_more_packets_than_there_are);
	RUN(detaching_gives_back_what_nobody_else_wants);
	RUN(addresses_are_checked);
	RUN(a_packet_whose_page_is_gone_is_dropped);
	RUN(an_address_cut_off_by_the_end_of_dom0_is_refused);
	RUN(an_address_in_two_pages_is_read_from_both);
	RUN(a_packet_round_the_end_of_all_addresses_is_refused);
	RUN(a_length_that_lies_is_noticed_when_the_bytes_are_taken);
	RUN(an_address_is_read_once);
	RUN(there_are_at_most_64_guests);
	RUN(headers_are_read_where_they_are);
	return test_summary();
}
