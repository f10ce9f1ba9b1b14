// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What guests send: platform/xen/netback.c with the backend around it, turns, and packets of
 * which only a half is there.
 */
#include "xen.h"

static void a_packet_of_one_piece_is_sent(void)
{
	start();
	fill_frame(1514);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .id = 77, .size = 1514 });
	CHECK(kick(0));
	CHECK_EQUAL(sent_count, 1);
	CHECK_EQUAL(given[0].header_length, HOT_HEADER);
	CHECK(!memcmp(sent[0], grants[0], 1514));
	CHECK_EQUAL(tx_answer(0, 0).id, 77);
	CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_OKAY);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 1);
	CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), 2);
	CHECK_EQUAL(vif_status(0).sent_bytes, 1514);
}

static void a_packet_of_three_pieces_is_put_together(void)
{
	uint32_t i;

	start();
	for (i = 0; i < 3; i++)
		memset(grants[i], 0x10 + i * 2, 4096);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .offset = 4000, .size = 1200,
					     .flags = NETTXF_MORE_DATA, .id = 1 });
	put_tx(0, (struct netif_tx_request){ .reference = 1, .size = 1000,
					     .flags = NETTXF_MORE_DATA, .id = 2 });
	put_tx(0, (struct netif_tx_request){ .reference = 2, .offset = 4000, .size = 96, .id = 3 });
	kick(0);
	CHECK_EQUAL(sent_count, 0);	/* 104 bytes at 4000 leave the page */
	CHECK(vif_status(0).connected);

	start();
	for (i = 0; i < 3; i++)
		memset(grants[i], 0x10 + i * 2, 4096);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .offset = 3996, .size = 1196,
					     .flags = NETTXF_MORE_DATA, .id = 1 });
	put_tx(0, (struct netif_tx_request){ .reference = 1, .size = 1000,
					     .flags = NETTXF_MORE_DATA, .id = 2 });
	put_tx(0, (struct netif_tx_request){ .reference = 2, .offset = 4000, .size = 96, .id = 3 });
	kick(0);
	CHECK_EQUAL(sent_count, 1);
	CHECK_EQUAL(given[0].header_length + given[0].rest, 1196);
	CHECK_EQUAL(sent[0][99], 0x10);
	CHECK_EQUAL(sent[0][100], 0x12);
	CHECK_EQUAL(sent[0][1099], 0x12);
	CHECK_EQUAL(sent[0][1100], 0x14);
	CHECK_EQUAL(sent[0][1195], 0x14);
	for (i = 0; i < 3; i++)
		CHECK_EQUAL(tx_answer(0, i).id, i + 1);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 3);
}

/* Of 20 packets the fifth finds the queue full: the rest stay, and go out in order. */
static void packets_wait_for_the_driver(void)
{
	uint32_t i;

	start();
	fill_frame(100);
	for (i = 0; i < 20; i++)
		put_tx(0, (struct netif_tx_request){ .reference = 0, .id = i, .size = 60 + i });
	for (i = 0; i < 16; i++)
		answers[i] = i < 4 ? HOT_SENT : HOT_BUSY;
	answer_count = 16;
	kick(0);
	CHECK_EQUAL(sent_count, 4);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 4);
	xen_vif_service();
	CHECK_EQUAL(sent_count, 20);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 20);
	for (i = 0; i < 20; i++) {
		CHECK_EQUAL(given[i].header_length, 60 + i);
		CHECK_EQUAL(tx_answer(0, i).id, i);
	}
}

/* dom0 has the queue frozen, and its processor may be this one's: no completion of another packet brings
 * anybody here, so the clock does. */
static void a_queue_of_nothing_is_looked_at_again(void)
{
	start();
	fill_frame(100);
	room = 0;
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 60 });
	kick(0);
	CHECK(!end_window());
	in_flight = 0;
	kick(0);
	CHECK(end_window());
	CHECK_EQUAL(sent_count, 0);
	room = 1;
	CHECK(end_window());
	CHECK_EQUAL(sent_count, 1);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 1);
}

/* 200 short packets: 64, then the tasklet is asked for the rest. */
static void a_guest_has_its_turn(void)
{
	uint32_t i;

	start();
	requested = 0;
	fill_frame(100);
	for (i = 0; i < 200; i++)
		put_tx(0, (struct netif_tx_request){ .reference = 0, .id = i, .size = 60 });
	kick(0);
	CHECK_EQUAL(sent_count, 64);
	CHECK_EQUAL(requested, 1);
	for (i = 0; i < 3; i++)
		xen_vif_service();
	CHECK_EQUAL(sent_count, 200);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 200);
	CHECK_EQUAL(requested, 3);
}

/* Its packets have seventeen pieces each: four have more entries than a turn. */
static void a_turn_of_large_packets_is_not_longer(void)
{
	uint32_t i, piece;

	start();
	requested = 0;
	fill_frame(100);
	for (i = 0; i < 15; i++)
		for (piece = 0; piece < 17; piece++)
			put_tx(0, (struct netif_tx_request){
				.reference = 0, .size = piece ? 1000 : 17000,
				.flags = piece < 16 ? NETTXF_MORE_DATA : 0,
			});
	kick(0);
	CHECK_EQUAL(sent_count, 4);
	CHECK_EQUAL(requested, 1);
}

/* The card has room for one packet at a time, and each guest has more of them. */
static void what_there_is_too_little_of_goes_round(void)
{
	uint32_t i;

	start();
	fill_frame(100);
	for (i = 0; i < 60; i++)
		put_tx(i % GUESTS, (struct netif_tx_request){ .reference = 0, .size = 60 });
	/* One that has not put all of a packet there waits for itself. */
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 200, .flags = NETTXF_MORE_DATA });
	for (i = 0; i < 30; i++) {
		room = 1;
		kick(i % 2);
	}
	for (i = 0; i < GUESTS; i++)
		CHECK_EQUAL(vif_status(i).sent, 10);
	for (i = 0; i < 60; i++) {
		room = 1;
		kick(0);
	}
	for (i = 0; i < GUESTS; i++)
		CHECK_EQUAL(vif_status(i).sent, 20);
}

/* A guest that begins a packet and never ends it is not the first of all for ever. */
static void half_a_packet_takes_nobodys_place(void)
{
	uint32_t i, k, got[GUESTS];

	start();
	fill_frame(100);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 200, .flags = NETTXF_MORE_DATA });
	kick(0);
	for (i = 0; i < 200; i++)
		put_tx(1 + i % 2, (struct netif_tx_request){ .reference = 0, .size = 60 });
	room = 0;
	kick(1);
	kick(2);
	for (k = 0; k < 12; k++) {
		room = 8;
		xen_vif_service();
	}
	for (i = 1; i < GUESTS; i++)
		got[i] = vif_status(i).sent;
	CHECK_EQUAL(got[1] + got[2], 96);
	CHECK(got[1] >= 40 && got[2] >= 40);
	/* It notifies of the rest, and no sooner is it looked at. */
	CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), 2);
	put_tx(0, (struct netif_tx_request){ .reference = 1, .size = 100 });
	room = 100;
	xen_vif_service();
	CHECK_EQUAL(vif_status(0).sent, 0);
	room = 100;
	kick(0);
	CHECK_EQUAL(vif_status(0).sent, 1);
}

/* Each is answered, and a turn has as many of them as of others. */
static void refused_packets_do_not_cut_a_turn_short(void)
{
	uint32_t i;

	start();
	requested = 0;
	for (i = 0; i < 130; i++)
		put_tx(0, (struct netif_tx_request){ .reference = GRANTS, .size = 60, .id = i });
	kick(0);
	CHECK_EQUAL(vif_status(0).refused, 64);
	CHECK_EQUAL(requested, 1);
	xen_vif_service();
	xen_vif_service();
	CHECK_EQUAL(vif_status(0).refused, 130);
	CHECK_EQUAL(requested, 2);
}

static uint32_t looked;

/* The rest comes between the look at the ring and the request for an event. */
static void put_the_rest(void)
{
	if (++looked != 3)
		return;
	put_tx(0, (struct netif_tx_request){ .reference = 1, .size = 100 });
}

static void the_rest_of_a_packet_is_not_missed(void)
{
	start();
	fill_frame(100);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 200, .flags = NETTXF_MORE_DATA });
	looked = 0;
	meanwhile = put_the_rest;
	kick(0);
	meanwhile = NULL;
	CHECK_EQUAL(vif_status(0).sent, 1);
}

/* Takes its last request away and puts it there again, each time that the index is read. */
static void to_and_fro(void)
{
	set(0, 0, NETIF_REQUEST_PRODUCE, 1 + ++looked % 2);
}

static void half_a_packet_is_not_looked_at_for_ever(void)
{
	start();
	fill_frame(100);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 200, .flags = NETTXF_MORE_DATA });
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 60, .flags = NETTXF_MORE_DATA });
	looked = 0;
	meanwhile = to_and_fro;
	kick(0);
	meanwhile = NULL;
	CHECK(looked < 1000);
	CHECK_EQUAL(sent_count, 0);
}

static void buffers_come_back_or_stay_with_a_dead_driver(void)
{
	uint32_t i;

	start();
	fill_frame(1000);
	for (i = 0; i < 3; i++)
		put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 1000 });
	answers[0] = HOT_SENT;
	answers[1] = HOT_INVALID;
	answers[2] = HOT_SENT;
	answer_count = 3;
	kick(0);
	CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_OKAY);
	CHECK_EQUAL(tx_answer(0, 1).status, NETIF_RSP_ERROR);
	CHECK_EQUAL(buffer_state[0], 2);
	CHECK_EQUAL(buffer_state[1], 0);
	CHECK_EQUAL(buffer_state[2], 2);

	start();
	driver_dead = true;
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 1000 });
	kick(0);
	CHECK_EQUAL(buffer_state[0], 2);
	CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_ERROR);
}

/* Guests go on talking with each other when the driver has ended: what others send to the wire meanwhile takes
 * no buffer for good. */
static void a_driver_that_has_ended_takes_no_buffers(void)
{
	uint32_t i;

	start();
	driver_gone = true;
	fill_frame(1000);
	for (i = 0; i < 2 * BUFFERS; i++) {
		put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 1000 });
		kick(0);
		CHECK_EQUAL(tx_answer(0, i).status, NETIF_RSP_ERROR);
	}
	for (i = 0; i < BUFFERS; i++)
		CHECK_EQUAL(buffer_state[i], 0);
}

/* Refused and answered: a correct guest may be so. */
static void what_cannot_be_copied_is_refused(void)
{
	start();
	put_tx(0, (struct netif_tx_request){ .reference = GRANTS, .size = 1000, .id = 4 });
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 60, .id = 5 });
	kick(0);
	CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_ERROR);
	CHECK_EQUAL(tx_answer(0, 1).status, NETIF_RSP_OKAY);
	CHECK_EQUAL(sent_count, 1);
	CHECK_EQUAL(buffer_state[0], 0);
	CHECK_EQUAL(vif_status(0).refused, 1);
}

int main(void)
{
	RUN(a_packet_of_one_piece_is_sent);
	RUN(a_packet_of_three_pieces_is_put_together);
	RUN(packets_wait_for_the_driver);
	RUN(a_queue_of_nothing_is_looked_at_again);
	RUN(a_guest_has_its_turn);
	RUN(a_turn_of_large_packets_is_not_longer);
	RUN(what_there_is_too_little_of_goes_round);
	RUN(half_a_packet_takes_nobodys_place);
	RUN(refused_packets_do_not_cut_a_turn_short);
	RUN(the_rest_of_a_packet_is_not_missed);
	RUN(half_a_packet_is_not_looked_at_for_ever);
	RUN(buffers_come_back_or_stay_with_a_dead_driver);
	RUN(a_driver_that_has_ended_takes_no_buffers);
	RUN(what_cannot_be_copied_is_refused);
	return test_summary();
}
