// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whose a frame is, of another guest's or the card's, and when it is delivered: platform/xen/
 * bridge.c, receive.c and deliver.c.
 */
#include "xen.h"

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

/* The card's frame lies in dom0's memory: here, in an unused part of a ring's page. */
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

/* A poll that is to end asks whether the card has more. It is no frame. */
static void a_poll_is_told_whether_there_is_more(void)
{
	struct twin_call_frame frame = { .rcx = HOT_RX_LOOK };
	uint64_t received;

	start();
	received = xen_counts.received;
	interrupts_off = true;
	CHECK_EQUAL(twin_import_host_receive(NULL, &frame), TWIN_OK);
	CHECK_EQUAL(frame.rax, HOT_RX_UNWANTED);
	card_has_more = true;
	CHECK_EQUAL(twin_import_host_receive(NULL, &frame), TWIN_OK);
	CHECK_EQUAL(frame.rax, HOT_RX_MORE);
	card_has_more = interrupts_off = false;
	CHECK_EQUAL(xen_counts.received, received);
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

int main(void)
{
	RUN(guests_reach_one_another);
	RUN(a_broadcast_reaches_all_but_its_sender);
	RUN(what_waits_for_the_driver_is_not_delivered_twice);
	RUN(a_received_frame_reaches_its_guest);
	RUN(a_tag_that_the_card_took_out_goes_back);
	RUN(a_poll_is_told_whether_there_is_more);
	RUN(guests_have_frames_when_the_driver_has_returned);
	return test_summary();
}
