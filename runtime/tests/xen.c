// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The backend with its rings, whose every number is a guest's (xen.h has what is around it).
 */
#include "xen.h"

/* ---- Packets ------------------------------------------------------------------------ */

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

/* ---- The switch ------------------------------------------------------------------------ */

static void guests_reach_one_another(void)
{
	start();
	fill_frame(700);
	memcpy(grants[0], (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 1 }, 6);
	put_rx(1, 31, 5);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 700,
					     .flags = NETTXF_DATA_VALIDATED });
	kick(0);
	CHECK_EQUAL(sent_count, 0);
	CHECK(!memcmp(grants[5], grants[0], 700));
	CHECK_EQUAL(rx_answer(1, 0).id, 31);
	CHECK_EQUAL(rx_answer(1, 0).status, 700);
	CHECK_EQUAL(rx_answer(1, 0).flags, NETRXF_DATA_VALIDATED);
	CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_OKAY);
	CHECK_EQUAL(buffer_state[0], 0);
	CHECK_EQUAL(notified, 1);	/* the other one; the sender is told when the window ends */
	end_window();
	CHECK_EQUAL(notified, 2);
}

static void a_broadcast_reaches_all_but_its_sender(void)
{
	uint32_t i;

	start();
	memset(grants[0], 0xff, 60);
	for (i = 0; i < GUESTS; i++)
		put_rx(i, i, 4 + i);
	put_tx(1, (struct netif_tx_request){ .reference = 0, .size = 60 });
	kick(1);
	CHECK_EQUAL(sent_count, 1);
	CHECK_EQUAL(get(0, 1, NETIF_RESPONSE_PRODUCE), 1);
	CHECK_EQUAL(get(1, 1, NETIF_RESPONSE_PRODUCE), 0);
	CHECK_EQUAL(get(2, 1, NETIF_RESPONSE_PRODUCE), 1);

	/* Without a carrier, too; but not if it is refused. */
	answers[0] = HOT_DOWN;
	answers[1] = HOT_INVALID;
	answer_count = 2;
	for (i = 0; i < 2; i++) {
		put_rx(0, 1 + i, 4);
		put_tx(1, (struct netif_tx_request){ .reference = 0, .size = 60 });
		kick(1);
		CHECK_EQUAL(get(0, 1, NETIF_RESPONSE_PRODUCE), 2);
	}
	CHECK_EQUAL(vif_status(1).refused, 2);
}

/* The card's frame lies in dom0's memory: here, in an unused part of a ring's page. */
/* Nor is a frame for a guest that is behind one which waits, or a group's own that waits. */
static void what_waits_for_the_driver_is_not_delivered_twice(void)
{
	const uint32_t busy[] = { HOT_BUSY, HOT_BUSY, HOT_SENT, HOT_BUSY, HOT_BUSY, HOT_SENT };
	uint32_t i;

	start();
	fill_frame(60);
	memcpy(grants[1], (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 1 }, 6);
	memset(grants[2], 0xff, 6);
	for (i = 0; i < 8; i++)
		put_rx(1, i, 4 + i);
	memcpy(answers, busy, sizeof(busy));
	answer_count = 6;
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 60 });
	put_tx(0, (struct netif_tx_request){ .reference = 1, .size = 1000 });
	for (i = 0; i < 3; i++)
		kick(0);
	CHECK_EQUAL(sent_count, 1);
	CHECK_EQUAL(vif_status(1).received, 1);
	put_tx(0, (struct netif_tx_request){ .reference = 2, .size = 1000 });
	for (i = 0; i < 3; i++)
		kick(0);
	CHECK_EQUAL(sent_count, 2);
	CHECK_EQUAL(vif_status(1).received, 2);
	CHECK(!memcmp(grants[5], grants[2], 1000));
	CHECK_EQUAL(vif_status(0).sent, 3);
}

static void a_received_frame_reaches_its_guest(void)
{
	uint8_t *frame = &rings[0][1][3000];

	start();
	memset(frame, 0x5a, 200);
	memcpy(frame, (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 2 }, 6);
	put_rx(2, 8, 3);
	CHECK(receive(ring_of(0, 1) + 3000, 200, HOT_RX_CHECKSUM_OK));
	CHECK(!memcmp(grants[3], frame, 200));
	xen_vif_publish();
	CHECK_EQUAL(rx_answer(2, 0).flags, NETRXF_DATA_VALIDATED);
	CHECK(receive(ring_of(0, 1) + 3000, 200, 0));	/* no request: dropped */
	CHECK_EQUAL(vif_status(2).full, 1);
	frame[5] = 9;
	CHECK(!receive(ring_of(0, 1) + 3000, 200, 0));	/* nobody's */
	CHECK(!receive(ring_of(0, 1) + 3000, 13, 0));
	CHECK(!receive(ring_of(0, 1) + 3000, 0x80000000, 0));
	CHECK(!receive(0xdead0000, 200, 0));
	put_rx(2, 9, 1000);
	frame[5] = 2;
	receive(ring_of(0, 1) + 3000, 200, 0);	/* a bad grant is answered */
	xen_vif_publish();
	CHECK_EQUAL(rx_answer(2, 1).status, NETIF_RSP_ERROR);
}

/* Or a guest would have the frames of every VLAN as its own. */
static void a_tag_that_the_card_took_out_goes_back(void)
{
	uint8_t *frame = &rings[0][1][3000];

	start();
	memset(frame, 0x5a, 200);
	memcpy(frame, (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 2 }, 6);
	put_rx(2, 8, 3);
	CHECK(receive(ring_of(0, 1) + 3000, 200, HOT_RX_VLAN | HOT_RX_CHECKSUM_OK));
	xen_vif_publish();
	CHECK_EQUAL(rx_answer(2, 0).status, 204);
	CHECK_EQUAL(rx_answer(2, 0).flags, NETRXF_DATA_VALIDATED);
	CHECK(!memcmp(grants[3], frame, 12));
	CHECK(!memcmp(&grants[3][12], (uint8_t[]){ 0x81, 0, 0xa1, 0x23 }, 4));
	CHECK(!memcmp(&grants[3][16], frame + 12, 188));
	put_rx(2, 9, 3);
	CHECK(!receive(ring_of(0, 1), 4096, HOT_RX_VLAN));	/* it has no place */
	CHECK(!receive(0xdead0000, 200, HOT_RX_VLAN));
	CHECK(!receive(ring_of(0, 1) + 3000, 200, HOT_RX_FRAGMENTS));
	CHECK_EQUAL(vif_status(2).received, 1);
}

/*
 * Driver code runs with interrupts off. A processor that waits for a lock of Xen's then, whose
 * holder waits for that processor's flush of its TLB, waits for ever: so guests' pages are not
 * touched (xen_grant_write() here looks), and frames wait for the driver's return.
 */
static void guests_have_frames_when_the_driver_has_returned(void)
{
	uint8_t *frame = &rings[0][1][3000];
	uint64_t received, overrun;
	uint32_t i;

	start();
	memcpy(frame, (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 2 }, 6);
	for (i = 0; i < 200; i++)
		put_rx(2, i, 3);
	received = xen_counts.received;
	overrun = xen_counts.overrun;
	for (i = 0; i < 79; i++)
		give_frame(ring_of(0, 1) + 3000, 100 + i, 0);
	CHECK_EQUAL(xen_counts.overrun, overrun);
	CHECK_EQUAL(vif_status(2).received, 0);
	/* What dom0 writes there now is no part of them. */
	memset(frame, 0xff, 200);
	xen_vif_service();
	CHECK_EQUAL(vif_status(2).received, 79);
	CHECK_EQUAL(get(2, 1, NETIF_RESPONSE_PRODUCE), 79);
	for (i = 0; i < 79; i++)
		CHECK_EQUAL(rx_answer(2, i).status, 100 + i);
	CHECK_EQUAL(grants[3][5], 2);
	/* Each was delivered once. */
	xen_vif_service();
	CHECK_EQUAL(vif_status(2).received, 79);

	/* A driver that gives without end, or what is not there. */
	memcpy(frame, (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 2 }, 6);
	give_frame(0xdead0000, 100, 0);
	for (i = 0; i < 1000; i++)
		give_frame(ring_of(0, 1) + 3000, 100, 0);
	CHECK_EQUAL(xen_counts.received - received, 1080);
	xen_vif_publish();
	CHECK_EQUAL(vif_status(2).received - 79 + xen_counts.overrun - overrun, 1000);
	CHECK(vif_status(2).received >= 2 * 79);
}

/* Nothing is sent or answered any more, whatever comes later. */
static void is_broken(uint32_t guest)
{
	const uint32_t before = sent_count;

	set(guest, 0, NETIF_REQUEST_PRODUCE, get(guest, 0, NETIF_RESPONSE_PRODUCE) + 1);
	kick(guest);
	CHECK_EQUAL(sent_count, before);
}

/* ---- Large packets ------------------------------------------------------------------------ */

/* 9,000 bytes of TCP in three pieces of grants 0 to 2, its checksum left to the device. */
static void put_large(uint32_t guest, const uint8_t destination[6], struct netif_extra extra)
{
	uint32_t i;

	for (i = 0; i < 3 * 4096; i++)
		grants[i / 4096][i % 4096] = i * 13 + (i >> 8);
	memset(grants[0], 0, 54);
	memcpy(grants[0], destination, 6);
	grants[0][12] = 8;
	grants[0][14] = 0x45;
	grants[0][23] = 6;
	grants[0][34 + 12] = 5 << 4;
	put_tx(guest, (struct netif_tx_request){
		.reference = 0, .size = 9000, .id = 60,
		.flags = NETTXF_CSUM_BLANK | NETTXF_EXTRA_INFO | NETTXF_MORE_DATA,
	});
	put_extra(guest, extra);
	put_tx(guest, (struct netif_tx_request){ .reference = 1, .size = 4096, .id = 61,
						 .flags = NETTXF_MORE_DATA });
	put_tx(guest, (struct netif_tx_request){ .reference = 2, .size = 808, .id = 62 });
}

static const struct netif_extra tcp4 = {
	.type = NETIF_EXTRA_GSO, .gso_size = 1448, .gso_type = NETIF_GSO_TCPV4,
};
static const uint8_t outside[6] = { 0x52 };

static void a_large_packet_is_the_cards(void)
{
	start();
	put_large(0, outside, tcp4);
	kick(0);
	CHECK_EQUAL(sent_count, 1);
	CHECK_EQUAL(given[0].gso_size, 1448);
	CHECK_EQUAL(given[0].gso_type, HOT_GSO_TCPV4);
	CHECK_EQUAL(given[0].checksum_start, 34);
	CHECK_EQUAL(given[0].header_length + given[0].rest, 9000);
	CHECK(!memcmp(sent[0], grants[0], 4096));
	CHECK(!memcmp(sent[0] + 4096, grants[1], 4096));
	CHECK(!memcmp(sent[0] + 8192, grants[2], 808));
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 4);
	CHECK_EQUAL(tx_answer(0, 0).id, 60);
	CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_OKAY);
	CHECK_EQUAL(tx_answer(0, 1).status, NETIF_RSP_NULL);
	CHECK_EQUAL(tx_answer(0, 2).id, 61);
	CHECK_EQUAL(tx_answer(0, 3).id, 62);
}

/* The largest that there is: 17 pieces and what follows it. */
static void the_largest_packet_is_taken(void)
{
	uint32_t i;

	start();
	put_large(0, outside, tcp4);
	produced[0][0] = 0;
	put_tx(0, (struct netif_tx_request){
		.reference = 0, .size = 65535, .id = 0,
		.flags = NETTXF_CSUM_BLANK | NETTXF_EXTRA_INFO | NETTXF_MORE_DATA,
	});
	put_extra(0, tcp4);
	for (i = 1; i < 17; i++)
		put_tx(0, (struct netif_tx_request){ .reference = i, .size = i < 16 ? 4096 : 3000,
						     .id = i, .flags = i < 16 ? NETTXF_MORE_DATA : 0 });
	put_tx(0, (struct netif_tx_request){ .reference = 20, .size = 60, .id = 77 });
	kick(0);
	CHECK_EQUAL(sent_count, 2);
	CHECK_EQUAL(given[0].header_length + given[0].rest, 65535);
	CHECK(!memcmp(sent[0] + 65535 - 3000, grants[16], 3000));
	CHECK_EQUAL(tx_answer(0, 18).id, 77);
	CHECK_EQUAL(tx_answer(0, 18).status, NETIF_RSP_OKAY);
}

static struct netif_extra extra_answer(uint32_t guest, uint32_t number)
{
	const struct netif_rx_response answer = rx_answer(guest, number);
	struct netif_extra extra;

	memcpy(&extra, &answer, sizeof(extra));
	return extra;
}

static void a_large_packet_reaches_a_guest(void)
{
	static const uint8_t guest1[6] = { 0, 0x16, 0x3e, 0, 0, 1 };
	uint32_t i;

	start();
	for (i = 0; i < 4; i++)
		put_rx(1, 40 + i, 8 + i);
	put_large(0, guest1, tcp4);
	kick(0);
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(get(1, 1, NETIF_RESPONSE_PRODUCE), 4);
	CHECK_EQUAL(rx_answer(1, 0).id, 40);
	CHECK_EQUAL(rx_answer(1, 0).status, 4096);
	CHECK_EQUAL(rx_answer(1, 0).flags, NETRXF_DATA_VALIDATED | NETRXF_CSUM_BLANK |
		    NETRXF_MORE_DATA | NETRXF_EXTRA_INFO);
	CHECK_EQUAL(extra_answer(1, 1).type, NETIF_EXTRA_GSO);
	CHECK_EQUAL(extra_answer(1, 1).gso_size, 1448);
	CHECK_EQUAL(rx_answer(1, 2).id, 42);
	CHECK_EQUAL(rx_answer(1, 2).flags, NETRXF_MORE_DATA);
	CHECK_EQUAL(rx_answer(1, 3).flags, 0);
	CHECK_EQUAL(rx_answer(1, 3).status, 808);
	CHECK(!memcmp(grants[8], grants[0], 4096));
	CHECK(!memcmp(grants[10], grants[1], 4096));
	CHECK(!memcmp(grants[11], grants[2], 808));
	CHECK_EQUAL(vif_status(1).received_bytes, 9000);
	for (i = 0; i < BUFFERS; i++)
		CHECK_EQUAL(buffer_state[i], 0);
	/* Three requests are not enough: none is taken. */
	for (i = 0; i < 3; i++)
		put_rx(1, 50 + i, 8 + i);
	put_large(0, guest1, tcp4);
	kick(0);
	CHECK_EQUAL(get(1, 1, NETIF_RESPONSE_PRODUCE), 4);
	CHECK_EQUAL(vif_status(1).full, 1);
}

static void an_old_frontend_gets_no_large_packet(void)
{
	static const uint8_t guest2[6] = { 0, 0x16, 0x3e, 0, 0, 2 };
	uint32_t i;

	start();
	for (i = 0; i < 4; i++)
		put_rx(2, i, 8 + i);
	put_large(0, guest2, tcp4);
	kick(0);
	CHECK_EQUAL(get(2, 1, NETIF_RESPONSE_PRODUCE), 0);
	CHECK_EQUAL(vif_status(2).full, 1);
	CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_OKAY);
}

/* Refused and answered, or the end of the service: nothing of it is sent. */
static void large_packets_that_are_nonsense(void)
{
	static const struct netif_extra bad[] = {
		{ .type = 2, .gso_size = 1448, .gso_type = NETIF_GSO_TCPV4 },
		{ .type = NETIF_EXTRA_GSO, .gso_size = 1448, .gso_type = 2 },
		{ .type = NETIF_EXTRA_GSO, .gso_size = 0, .gso_type = NETIF_GSO_TCPV4 },
		{ .type = NETIF_EXTRA_GSO, .gso_size = 1448, .gso_type = NETIF_GSO_TCPV4,
		  .flags = NETIF_EXTRA_MORE },
	};
	uint32_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		start();
		put_large(0, outside, bad[i]);
		kick(0);
		CHECK_EQUAL(sent_count, 0);
		is_broken(0);
	}
	for (i = 0; i < 4; i++) {
		struct netif_extra extra = tcp4;

		start();
		if (i == 0)
			extra.gso_size = NETIF_SMALLEST_SEGMENT - 1;
		put_large(0, outside, extra);
		if (i == 1)
			grants[0][23] = 17;
		if (i == 2)
			grants[0][14] = 0x4f, grants[0][74 + 12] = 0xf0;	/* headers of 134 bytes */
		if (i == 3)
			rings[0][0][NETIF_RING_HEADER + 6] &= ~NETTXF_CSUM_BLANK;
		kick(0);
		CHECK_EQUAL(sent_count, 0);
		CHECK_EQUAL(tx_answer(0, 0).status, NETIF_RSP_ERROR);
		CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 4);
		CHECK_EQUAL(vif_status(0).refused, 1);
	}
	/* The extra entry has not come yet. */
	start();
	put_large(0, outside, tcp4);
	set(0, 0, NETIF_REQUEST_PRODUCE, 1);
	kick(0);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 0);
	set(0, 0, NETIF_REQUEST_PRODUCE, 4);
	kick(0);
	CHECK_EQUAL(sent_count, 1);
}

/* ---- Hostile guests ----------------------------------------------------------------------- */

static void nonsense_ends_the_service(void)
{
	static const struct netif_tx_request bad[] = {
		{ .size = 13 },
		{ .size = 100, .offset = 4000 },
		{ .size = 100, .offset = 4000, .flags = NETTXF_DATA_VALIDATED },
	};
	uint32_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		start();
		put_tx(0, bad[i]);
		kick(0);
		is_broken(0);
		CHECK_EQUAL(sent_count, 0);
	}
	start();
	for (i = 0; i < 30; i++)	/* no end */
		put_tx(0, (struct netif_tx_request){ .size = 2000, .flags = NETTXF_MORE_DATA });
	kick(0);
	is_broken(0);
	start();
	set(0, 0, NETIF_REQUEST_PRODUCE, 0x80000000);	/* more than a ring has */
	kick(0);
	is_broken(0);
	start();
	rings_gone = true;
	kick(0);
	CHECK_EQUAL(sent_count, 0);
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

static uint32_t seed = 1;

static uint32_t chance(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* Rings of random numbers that are half sensible: no copy leaves an array, and buffers are
 * neither lost nor given back twice. */
static void random_rings(void)
{
	const struct twin_xen_stages usual = stages;
	uint32_t round, i, taken;

	for (round = 0; round < 20000; round++) {
		if (round % 50 == 0) {
			stages.bridge = round / 50 % 2;
			stages.storm = chance(2) ? 1000 : 0;
			stages.notify = chance(2) ? chance(100) : 0;
			stages.pace = chance(2);
			start();
		}
		for (i = chance(24); i; i--)
			put_tx(chance(GUESTS), (struct netif_tx_request){
				.reference = chance(GRANTS + 2),
				.offset = chance(3) ? 0 : chance(5000),
				.size = chance(8) ? 14 + chance(5000) : chance(65536),
				.flags = chance(4) ? chance(4) : chance(chance(20) ? 8 : 16),
				.id = i,
			});
		if (!chance(4))
			put_large(chance(GUESTS), (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, chance(5) },
				  (struct netif_extra){
					.type = chance(20) ? 1 : chance(4),
					.gso_size = chance(4) ? 1000 : chance(2000),
					.gso_type = chance(20) ? 1 : chance(4),
				  });
		for (i = chance(8); i; i--)
			put_rx(chance(GUESTS), i, chance(GRANTS + 1));
		if (!chance(100))
			rings[chance(GUESTS)][chance(2)][chance(4096)] = chance(256);
		memset(grants[chance(GRANTS)], chance(2) ? 0xff : 0x16, 64);
		memcpy(grants[chance(GRANTS)], (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, chance(4) }, 6);
		memcpy(grants[chance(GRANTS)] + 6, (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, chance(4) }, 6);
		for (answered = i = 0; i < 64; i++)
			answers[i] = chance(4) ? HOT_SENT : chance(5);
		answer_count = 64;
		kick(chance(GUESTS));
		xen_vif_service();
		if (chance(2))
			end_window();
		xen_transmit_complete();
		for (taken = i = 0; i < BUFFERS; i++)
			taken += buffer_state[i] != 0;
		CHECK_EQUAL(taken, 0);
	}
	stages = usual;
}

/* ---- Parsing ------------------------------------------------------------------------------- */

static void checksums_are_found(void)
{
	uint8_t frame[HOT_HEADER] = { [12] = 0x08, [14] = 0x45, [23] = 6 };
	uint16_t start_at = 0, offset = 0;
	uint32_t length;

	CHECK(netif_checksum(frame, 128, &start_at, &offset));
	CHECK_EQUAL(start_at, 34);
	CHECK_EQUAL(offset, 16);
	frame[14] = 0x4f;	/* options: 60 bytes */
	frame[23] = 17;
	CHECK(netif_checksum(frame, 128, &start_at, &offset));
	CHECK_EQUAL(start_at, 74);
	CHECK_EQUAL(offset, 6);
	CHECK(!netif_checksum(frame, 81, &start_at, &offset));
	frame[14] = 0x44;
	CHECK(!netif_checksum(frame, 128, &start_at, &offset));
	frame[14] = 0x65;
	CHECK(!netif_checksum(frame, 128, &start_at, &offset));
	memcpy(frame + 12, (uint8_t[]){ 0x81, 0, 0, 5, 0x86, 0xdd, 0x60 }, 7);
	frame[24] = 6;
	CHECK(netif_checksum(frame, 128, &start_at, &offset));
	CHECK_EQUAL(start_at, 58);
	for (length = 0; length < HOT_HEADER; length++) {	/* under the sanitizer */
		uint8_t *exact = malloc(length ? length : 1);

		memcpy(exact, frame, length);
		CHECK_EQUAL(netif_checksum(exact, length, &start_at, &offset), length >= 76);
		free(exact);
	}
}

/* ---- Domains --------------------------------------------------------------------------------- */

static void a_domain_is_kept_until_it_is_disconnected(void)
{
	start();
	CHECK_EQUAL(references[1], 2);
	CHECK_EQUAL(connect_guest(0), -XEN_EBUSY);
	CHECK_EQUAL(references[1], 2);
	references[1]--;	/* it dies */
	CHECK_EQUAL(xen_vif_disconnect(1, 0), 0);
	CHECK_EQUAL(destroyed, 1);
	CHECK_EQUAL(xen_vif_disconnect(1, 0), -XEN_ENOENT);
	CHECK(!kick(0));
	CHECK(kick(1));
}

/* A new attach goes on where the last stopped. */
static void rings_go_on_after_a_reconnection(void)
{
	start();
	fill_frame(100);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 100 });
	kick(0);
	xen_vif_disconnect(1, 0);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 90 });
	CHECK(!kick(0));
	CHECK_EQUAL(connect_guest(0), 0);
	xen_vif_service();
	CHECK_EQUAL(sent_count, 2);
	CHECK_EQUAL(given[1].header_length, 90);
}

/* Somebody else has the lock: the tasklet does it. */
static void a_kick_is_not_lost(void)
{
	start();
	fill_frame(100);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 100 });
	requested = 0;
	CHECK(xen_trylock());
	CHECK(kick(0));
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(requested, 1);
	xen_vif_service();
	CHECK_EQUAL(sent_count, 1);
	xen_unlock();
}

/* A processor that came later may not run the driver: what it would lose there are the packets. */
static void a_kick_on_a_new_processor_is_the_tasklets(void)
{
	start();
	fill_frame(100);
	put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 100 });
	requested = 0;
	came_later = true;
	CHECK(kick(0));
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(requested, 1);
	CHECK(xen_trylock());
	xen_unlock();
	came_later = false;
	xen_vif_service();
	CHECK_EQUAL(sent_count, 1);
}

/* ---- The clock ------------------------------------------------------------------ */

static void a_turn_that_does_not_end_is_seen(void)
{
	struct xen_watch watch = { 0, 0 };
	uint32_t i;

	/* Nothing runs, for ever. */
	for (i = 0; i < 3 * XEN_WATCH_LIMIT; i++)
		CHECK(!xen_watch(&watch, 4));
	/* Each tick another one. */
	for (i = 0; i < 3 * XEN_WATCH_LIMIT; i++)
		CHECK(!xen_watch(&watch, 5 + 2 * i));
	CHECK(!xen_watch(&watch, 1001));
	for (i = 1; i < XEN_WATCH_LIMIT; i++)
		CHECK(!xen_watch(&watch, 1001));
	/* Again each tick until it has ended. */
	CHECK(xen_watch(&watch, 1001));
	CHECK(xen_watch(&watch, 1001));
	CHECK(!xen_watch(&watch, 1002));
	CHECK(!xen_watch(&watch, 1003));
}

int main(void)
{
	RUN(a_packet_of_one_piece_is_sent);
	RUN(a_packet_of_three_pieces_is_put_together);
	RUN(packets_wait_for_the_driver);
	RUN(a_guest_has_its_turn);
	RUN(a_turn_of_large_packets_is_not_longer);
	RUN(what_there_is_too_little_of_goes_round);
	RUN(half_a_packet_takes_nobodys_place);
	RUN(refused_packets_do_not_cut_a_turn_short);
	RUN(the_rest_of_a_packet_is_not_missed);
	RUN(half_a_packet_is_not_looked_at_for_ever);
	RUN(buffers_come_back_or_stay_with_a_dead_driver);
	RUN(guests_reach_one_another);
	RUN(a_broadcast_reaches_all_but_its_sender);
	RUN(what_waits_for_the_driver_is_not_delivered_twice);
	RUN(a_received_frame_reaches_its_guest);
	RUN(a_tag_that_the_card_took_out_goes_back);
	RUN(guests_have_frames_when_the_driver_has_returned);
	RUN(a_large_packet_is_the_cards);
	RUN(the_largest_packet_is_taken);
	RUN(a_large_packet_reaches_a_guest);
	RUN(an_old_frontend_gets_no_large_packet);
	RUN(large_packets_that_are_nonsense);
	RUN(nonsense_ends_the_service);
	RUN(what_cannot_be_copied_is_refused);
	RUN(random_rings);
	RUN(checksums_are_found);
	RUN(a_domain_is_kept_until_it_is_disconnected);
	RUN(rings_go_on_after_a_reconnection);
	RUN(a_kick_is_not_lost);
	RUN(a_kick_on_a_new_processor_is_the_tasklets);
	RUN(a_turn_that_does_not_end_is_seen);
	return test_summary();
}
