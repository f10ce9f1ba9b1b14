// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Stages that an attachment has or has not (<twin/xen.h>): `bridge`, `notify` and `pace`, with the backend
 * around them. What they do to a frontend that takes steps at any time is in xen-rings.c, hostile rings are
 * in xen-hostile.c.
 */
#include "../platform/xen/vif.h"
#include "xen.h"

enum { FRAME_AT = 3000 };

static void start_with(struct twin_xen_stages with)
{
	stages = with;
	now = 7000000000;
	start();
}

static const uint8_t outside[6] = { 0x52, 0x55, 10, 0, 2, 2 };
static const uint8_t everybody[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

static const uint8_t *mac(uint32_t guest)
{
	static uint8_t address[4][6];
	static uint32_t turn;
	uint8_t *at = address[turn++ % 4];

	memcpy(at, (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, guest }, 6);
	return at;
}

/* A frame in a grant; one packet of it in the guest's ring. */
static void put_frame(uint32_t guest, uint32_t grant, const uint8_t *to, const uint8_t *from)
{
	memcpy(grants[grant], to, 6);
	memcpy(grants[grant] + 6, from, 6);
	put_tx(guest, (struct netif_tx_request){ .reference = grant, .size = 60 });
}

static void give_requests(uint32_t guest, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		put_rx(guest, i, 4 + guest);
}

/* One of the card's. */
static bool card_gives(const uint8_t *to, const uint8_t *from)
{
	memcpy(&rings[2][1][FRAME_AT], to, 6);
	memcpy(&rings[2][1][FRAME_AT + 6], from, 6);
	return receive(ring_of(2, 1) + FRAME_AT, 60, 0);
}

static struct twin_xen_status counts(void)
{
	struct twin_xen_status status = { 0 };

	xen_bridge_status(&status);
	return status;
}

static int16_t last_answer(uint32_t guest)
{
	return tx_answer(guest, produced[guest][0] - 1).status;
}

/* ---- bridge ------------------------------------------------------------------------------- */

static const struct twin_xen_stages with_bridge = { .bridge = 1 };

static void packets_find_their_guest(void)
{
	start_with(with_bridge);
	give_requests(0, 4);
	give_requests(1, 4);
	put_frame(0, 0, mac(1), mac(0));
	kick(0);
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(vif_status(1).received, 1);
	CHECK_EQUAL(last_answer(0), NETIF_RSP_OKAY);
	put_frame(0, 0, outside, mac(0));
	kick(0);
	CHECK_EQUAL(sent_count, 1);
	CHECK_EQUAL(vif_status(0).sent, 2);
	CHECK_EQUAL(counts().local, 1);
	CHECK(card_gives(mac(0), outside));
	CHECK(!card_gives(mac(9), outside));
	CHECK_EQUAL(vif_status(0).received, 1);
	CHECK_EQUAL(vif_status(1).received, 1);
}

/* A switch does not send it back either. */
static void a_packet_to_its_sender_is_nobodys(void)
{
	start_with(with_bridge);
	give_requests(0, 4);
	put_frame(0, 0, mac(0), mac(0));
	kick(0);
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(last_answer(0), NETIF_RSP_DROPPED);
	CHECK_EQUAL(vif_status(0).sent + vif_status(0).received + vif_status(0).refused, 0);
}

static void nobody_has_anothers_source(void)
{
	start_with(with_bridge);
	give_requests(0, 4);
	give_requests(1, 4);
	put_frame(0, 0, outside, mac(1));
	put_frame(0, 1, mac(1), outside);
	put_frame(0, 2, everybody, everybody);
	kick(0);
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(vif_status(1).received, 0);
	CHECK_EQUAL(vif_status(0).refused, 3);
	CHECK_EQUAL(last_answer(0), NETIF_RSP_ERROR);
	/* Nor has the wire a guest's. */
	CHECK(!card_gives(mac(1), mac(0)));
	CHECK(!card_gives(everybody, mac(0)));
	CHECK_EQUAL(counts().spoofed, 5);
	/* It is served as before. */
	put_frame(0, 0, outside, mac(0));
	kick(0);
	CHECK_EQUAL(sent_count, 1);

	/* Without the stage a guest may say anything. */
	start_with((struct twin_xen_stages){ 0 });
	put_frame(0, 0, outside, mac(1));
	kick(0);
	CHECK_EQUAL(sent_count, 1);
}

static void storms_are_limited(void)
{
	uint32_t i;

	start_with((struct twin_xen_stages){ .bridge = 1, .storm = 1000 });
	give_requests(1, 200);
	for (i = 0; i < 100; i++)
		put_frame(0, 0, everybody, mac(0));
	/* Others have their turn in between. */
	for (i = 0; i < 4; i++)
		kick(0);
	CHECK_EQUAL(sent_count, 64);
	CHECK_EQUAL(vif_status(1).received, 64);
	CHECK_EQUAL(counts().storm, 36);
	CHECK_EQUAL(last_answer(0), NETIF_RSP_DROPPED);
	CHECK_EQUAL(vif_status(0).sent, 64);
	CHECK_EQUAL(vif_status(0).refused, 0);
	/* The others are not concerned, nor what is for one. */
	put_frame(0, 1, outside, mac(0));
	kick(0);
	CHECK_EQUAL(sent_count, 65);
	CHECK(card_gives(everybody, outside));
	/* One each millisecond. */
	for (i = 0; i < 5; i++) {
		now += 1000000;
		put_frame(0, 0, everybody, mac(0));
		put_frame(0, 0, everybody, mac(0));
		kick(0);
	}
	CHECK_EQUAL(sent_count, 70);
	CHECK_EQUAL(counts().storm, 41);

	/* No limit. */
	start_with(with_bridge);
	for (i = 0; i < 200; i++)
		put_frame(0, 0, everybody, mac(0));
	for (i = 0; i < 4; i++)
		kick(0);
	CHECK_EQUAL(sent_count, 200);
}

/* Packets that wait for the driver are looked at again, and are the same packets. */
static void what_waits_counts_once(void)
{
	uint32_t i;

	start_with((struct twin_xen_stages){ .bridge = 1, .storm = 1000 });
	give_requests(1, 100);
	room = 0;
	put_frame(0, 0, everybody, mac(0));
	put_frame(0, 1, outside, mac(0));
	put_frame(0, 2, mac(1), mac(0));
	for (i = 0; i < 100; i++)
		kick(0);
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(vif_status(1).received, 0);
	CHECK_EQUAL(counts().storm + counts().local, 0);
	room = UINT32_MAX;
	kick(0);
	CHECK_EQUAL(sent_count, 2);
	CHECK_EQUAL(vif_status(1).received, 2);
	CHECK_EQUAL(counts().local, 1);
	for (i = 0; i < 70; i++)
		put_frame(0, 0, everybody, mac(0));
	for (i = 0; i < 3; i++)
		kick(0);
	CHECK_EQUAL(counts().storm, 7);

	/* Those that are refused anyway, too. */
	start_with(with_bridge);
	room = 0;
	put_frame(0, 1, outside, mac(0));
	put_frame(0, 2, outside, mac(1));
	for (i = 0; i < 10; i++)
		kick(0);
	CHECK_EQUAL(counts().spoofed, 0);
	room = 1;
	kick(0);
	CHECK_EQUAL(counts().spoofed, 1);
}

/* A guest that writes another header where one waits has another packet. */
static void what_changes_while_it_waits_is_judged_anew(void)
{
	start_with(with_bridge);
	give_requests(1, 4);
	room = 0;
	put_frame(0, 0, outside, mac(0));
	kick(0);
	memcpy(grants[0] + 6, mac(1), 6);
	room = UINT32_MAX;
	kick(0);
	CHECK_EQUAL(sent_count, 0);
	CHECK_EQUAL(counts().spoofed, 1);
	CHECK_EQUAL(vif_status(0).refused, 1);
}

/* Its segments are as many packets: a storm has no more of them. */
static void a_merged_packet_to_all_counts_its_segments(void)
{
	uint8_t *packet = sent[0];

	start_with((struct twin_xen_stages){ .bridge = 1, .storm = 1000 });
	give_requests(0, 250);
	give_requests(1, 250);
	memset(packet, 0, 20 * 200);
	memcpy(packet, everybody, 6);
	memcpy(packet + 6, outside, 6);
	CHECK(xen_vif_receive_merged(packet, 20 * 200, 200));
	CHECK(xen_vif_receive_merged(packet, 20 * 200, 200));
	CHECK(xen_vif_receive_merged(packet, 20 * 200, 200));
	CHECK(!xen_vif_receive_merged(packet, 20 * 200, 200));
	CHECK_EQUAL(vif_status(0).received, 3);
	/* One guest's may be as many as there are. */
	memcpy(packet, mac(1), 6);
	CHECK(xen_vif_receive_merged(packet, 20 * 200, 200));
	CHECK_EQUAL(vif_status(1).received, 4);
}

/* Two with one address cannot both be found: the second is refused, and comes when the first is gone. */
static void an_address_is_one_guests(void)
{
	const struct twin_xen_vif twice = {
		.domain = 2, .handle = 7, .mac = { 0, 0x16, 0x3e, 0, 0, 0 },
		.transmit_ring = ring_of(1, 0), .receive_ring = ring_of(1, 1),
		.local_port = DOM0_PORT, .remote_port = GUEST_PORT + 1,
	};
	struct twin_xen_vif group = twice;
	uint64_t before;

	start_with(with_bridge);
	before = references[2];
	CHECK_EQUAL(xen_vif_connect(&twice), -XEN_EEXIST);
	group.mac[0] = 1;
	CHECK_EQUAL(xen_vif_connect(&group), -XEN_EINVAL);
	CHECK_EQUAL(references[2], before);
	CHECK_EQUAL(xen_vif_disconnect(1, 0), 0);
	CHECK(!card_gives(mac(0), outside));
	CHECK_EQUAL(xen_vif_connect(&twice), 0);
	give_requests(1, 1);
	CHECK(card_gives(mac(0), outside));

	/* Without the stage both have it. */
	start_with((struct twin_xen_stages){ 0 });
	CHECK_EQUAL(xen_vif_connect(&twice), 0);
}

/* ---- notify --------------------------------------------------------------------------------- */

static const struct twin_xen_stages by_sixteen = { .notify = 16 };

/* What a frontend does after it has seen all answers there are. */
static void look(uint32_t guest, uint32_t ring)
{
	set(guest, ring, NETIF_RESPONSE_EVENT, get(guest, ring, NETIF_RESPONSE_PRODUCE) + 1);
}

/* So many frames, each served by itself. */
static void receive_frames(uint32_t count)
{
	for (; count; count--) {
		card_gives(mac(1), outside);
		xen_vif_service();
	}
}

static void a_guest_is_told_of_many_frames(void)
{
	start_with(by_sixteen);
	give_requests(1, 200);
	receive_frames(15);
	CHECK_EQUAL(get(1, 1, NETIF_RESPONSE_PRODUCE), 15);	/* shown, if it looks */
	CHECK_EQUAL(notified, 0);
	receive_frames(1);
	CHECK_EQUAL(notified, 1);
	/* It has not looked: its event is on its way. */
	receive_frames(20);
	CHECK_EQUAL(notified, 1);
	look(1, 1);
	receive_frames(15);
	CHECK_EQUAL(notified, 1);
	receive_frames(1);
	CHECK_EQUAL(notified, 2);

	/* Of each. */
	start_with((struct twin_xen_stages){ 0 });
	give_requests(1, 200);
	receive_frames(1);
	CHECK_EQUAL(notified, 1);
	CHECK(!timer_set);
}

static void fewer_are_told_by_time(void)
{
	start_with(by_sixteen);
	give_requests(1, 200);
	receive_frames(1);
	CHECK_EQUAL(notified, 0);
	CHECK(timer_set);
	CHECK_EQUAL(timer_time - now, 250000);
	CHECK(end_window());
	CHECK_EQUAL(notified, 1);
	CHECK(!timer_set);

	/* The end is not lost if somebody else is served meanwhile. */
	look(1, 1);
	receive_frames(1);
	CHECK(xen_trylock());
	CHECK(end_window());
	CHECK_EQUAL(notified, 1);
	xen_unlock();
	xen_vif_service();
	CHECK_EQUAL(notified, 2);
}

/* A guest that looks by itself is told of nothing, and no timer runs for it. */
static void who_does_not_wait_is_not_told(void)
{
	start_with(by_sixteen);
	give_requests(1, 200);
	set(1, 1, NETIF_RESPONSE_EVENT, 100);
	receive_frames(40);
	CHECK_EQUAL(notified, 0);
	CHECK(!timer_set);
}

/* It would lose frames if it went on waiting. */
static void a_guest_without_room_is_told_at_once(void)
{
	start_with(by_sixteen);
	give_requests(1, 4);
	receive_frames(1);
	CHECK_EQUAL(notified, 1);
	CHECK_EQUAL(vif_status(1).full, 0);

	/* Requests that came since count. */
	start_with(by_sixteen);
	give_requests(1, 17);
	receive_frames(1);
	CHECK_EQUAL(notified, 0);
	give_requests(1, 40);
	receive_frames(14);
	CHECK_EQUAL(notified, 0);
}

/* A number beyond all sense is that of a quarter of the ring. */
static void the_ring_is_never_full_of_what_waits(void)
{
	start_with((struct twin_xen_stages){ .notify = UINT32_MAX });
	give_requests(1, 255);
	receive_frames(63);
	CHECK_EQUAL(notified, 0);
	receive_frames(1);
	CHECK_EQUAL(notified, 1);
}

/* While the driver waits for dom0 nobody serves. */
static void nobody_waits_for_an_upcall(void)
{
	start_with((struct twin_xen_stages){ .notify = 16, .pace = 1 });
	give_requests(1, 100);
	put_frame(0, 0, outside, mac(0));
	kick(0);
	CHECK(card_gives(mac(1), outside));
	CHECK_EQUAL(notified, 0);
	xen_vif_publish();
	CHECK_EQUAL(notified, 2);
}

static void a_guest_that_is_left_is_told(void)
{
	start_with(by_sixteen);
	give_requests(1, 100);
	receive_frames(3);
	xen_vif_disconnect(2, 0);
	CHECK_EQUAL(notified, 1);

	/* A guest whose index is nonsense waits no longer for what it has. */
	start_with(by_sixteen);
	give_requests(1, 100);
	receive_frames(3);
	set(1, 1, NETIF_REQUEST_PRODUCE, 0x70000000);
	receive_frames(1);
	end_window();
	CHECK_EQUAL(notified, 1);
	end_window();
	CHECK(!timer_set);
}

/* ---- pace -------------------------------------------------------------------------------------- */

/* Each packet is a notification, and each answer an event, at once: no time is looked at. */
static void without_pace_nothing_is_by_time(void)
{
	uint32_t i;

	start_with((struct twin_xen_stages){ 0 });
	for (i = 0; i < 40; i++) {
		put_frame(0, 0, outside, mac(0));
		kick(0);
		CHECK_EQUAL(sent_count, i + 1);
		CHECK_EQUAL(notified, i + 1);
		CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), i + 2);
		CHECK(!timer_set);
		look(0, 0);
	}
}

/* ---- Addresses ----------------------------------------------------------------------------------- */

static long connect_as(uint32_t handle, uint16_t last)
{
	const uint32_t guest = handle % GUESTS;
	const struct twin_xen_vif vif = {
		.domain = guest + 1,
		.handle = 10 + handle,
		.transmit_ring = ring_of(guest, 0),
		.receive_ring = ring_of(guest, 1),
		.local_port = DOM0_PORT,
		.remote_port = GUEST_PORT,
		.mac = { 0, 0x16, 0x3e, 0, last >> 8, last & 0xff },
	};

	return xen_vif_connect(&vif);
}

/* For each of 65,536 addresses: whose it is, of guests that have wanted[]; 0 of those that are gone. */
static void check_addresses(const uint32_t wanted[TWIN_XEN_VIFS])
{
	uint32_t last, i;

	for (last = 0; last < 0x10000; last++) {
		const uint8_t address[6] = { 0, 0x16, 0x3e, 0, last >> 8, last & 0xff };
		uint64_t guests = 0;

		for (i = 0; i < TWIN_XEN_VIFS; i++)
			guests |= (uint64_t)(wanted[i] == last) << i;
		if (xen_address_guests(address) != guests) {
			CHECK_EQUAL(xen_address_guests(address), guests);
			return;
		}
	}
}

#define GONE 0x10000u

/* As many as there can be; they go in an order of their own. The last two have one address. */
static void an_address_is_its_guests(void)
{
	uint32_t wanted[TWIN_XEN_VIFS], trial, i;

	for (trial = 0; trial < 16; trial++) {
		start_with((struct twin_xen_stages){ 0 });
		xen_vif_disconnect_all();
		for (i = 0; i < TWIN_XEN_VIFS; i++) {
			wanted[i] = i + 1 == TWIN_XEN_VIFS ? wanted[i - 1] : (trial * 40503 + i * 257) & 0xffff;
			CHECK_EQUAL(connect_as(i, wanted[i]), 0);
		}
		check_addresses(wanted);
		for (i = 0; i < TWIN_XEN_VIFS; i++) {
			const uint32_t who = (i * 5 + trial) % TWIN_XEN_VIFS;

			CHECK_EQUAL(xen_vif_disconnect(who % GUESTS + 1, 10 + who), 0);
			wanted[who] = GONE;
			check_addresses(wanted);
		}
	}
}

/* Without the stage both who have an address get what is for it. */
static void one_address_of_two_is_both_guests(void)
{
	start_with((struct twin_xen_stages){ 0 });
	xen_vif_disconnect_all();
	CHECK_EQUAL(connect_as(0, 7), 0);
	CHECK_EQUAL(connect_as(1, 7), 0);
	give_requests(0, 4);
	give_requests(1, 4);
	CHECK(card_gives(mac(7), outside));
	CHECK_EQUAL(vif_status(0).received, 1);
	CHECK_EQUAL(vif_status(1).received, 1);
	CHECK(!card_gives(mac(8), outside));
}

int main(void)
{
	RUN(an_address_is_its_guests);
	RUN(one_address_of_two_is_both_guests);
	RUN(packets_find_their_guest);
	RUN(a_packet_to_its_sender_is_nobodys);
	RUN(nobody_has_anothers_source);
	RUN(storms_are_limited);
	RUN(what_waits_counts_once);
	RUN(what_changes_while_it_waits_is_judged_anew);
	RUN(a_merged_packet_to_all_counts_its_segments);
	RUN(an_address_is_one_guests);
	RUN(a_guest_is_told_of_many_frames);
	RUN(fewer_are_told_by_time);
	RUN(who_does_not_wait_is_not_told);
	RUN(a_guest_without_room_is_told_at_once);
	RUN(the_ring_is_never_full_of_what_waits);
	RUN(nobody_waits_for_an_upcall);
	RUN(a_guest_that_is_left_is_told);
	RUN(without_pace_nothing_is_by_time);
	return test_summary();
}
