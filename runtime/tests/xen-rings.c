// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * When guests are shown their answers, when they get events, and when their rings are
 * looked at: platform/xen/ring.c and pace.c, with the backend around them. The last test is
 * a frontend that runs between any two accesses of the backend to an index, and must never
 * wait for ever.
 */
#include "xen.h"

enum { BUSY = 10, AHEAD = NETIF_RING / 4 };

static void put_frames(uint32_t guest, uint32_t count)
{
	for (; count; count--)
		put_tx(guest, (struct netif_tx_request){ .reference = 0, .size = 60 });
}

/* What a frontend does after it has seen all answers there are. */
static void look(uint32_t guest, uint32_t ring)
{
	set(guest, ring, NETIF_RESPONSE_EVENT, get(guest, ring, NETIF_RESPONSE_PRODUCE) + 1);
}

/* One packet and its notification, then the frontend looks. */
static void send_one(uint32_t guest)
{
	put_frames(guest, 1);
	kick(guest);
	look(guest, 0);
}

/* ---- Answers ----------------------------------------------------------------------- */

static void answers_are_shown_at_once(void)
{
	uint32_t i;

	start();
	fill_frame(60);
	put_frames(0, 40);
	kick(0);
	CHECK_EQUAL(sent_count, 40);
	CHECK_EQUAL(publications, 1);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 40);

	start();
	memcpy(&rings[0][1][3000], (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 1 }, 6);
	for (i = 0; i < 10; i++) {
		put_rx(1, i, 1);
		CHECK(receive(ring_of(0, 1) + 3000, 100, 0));
	}
	CHECK_EQUAL(publications, 0);
	CHECK_EQUAL(notified, 0);
	xen_vif_service();
	CHECK_EQUAL(publications, 1);
	CHECK_EQUAL(get(1, 1, NETIF_RESPONSE_PRODUCE), 10);
	CHECK_EQUAL(notified, 1);
	xen_vif_service();
	CHECK_EQUAL(notified, 1);
	/* It has not looked yet, and has its event. */
	put_rx(1, 10, 1);
	CHECK(receive(ring_of(0, 1) + 3000, 100, 0));
	xen_vif_service();
	CHECK_EQUAL(notified, 1);
	look(1, 1);
	put_rx(1, 11, 1);
	CHECK(receive(ring_of(0, 1) + 3000, 100, 0));
	xen_vif_publish();	/* the driver waits for dom0 */
	CHECK_EQUAL(get(1, 1, NETIF_RESPONSE_PRODUCE), 12);
	CHECK_EQUAL(notified, 2);
}

/* More than are kept, and the ring's end between them: each answer is in its place, and no other
 * place is written to. */
static void answers_are_in_their_places(void)
{
	uint32_t i, at = 0, number;

	start();
	fill_frame(60);
	memcpy(&rings[2][1][3000], (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 1 }, 6);
	memset(&rings[1][1][3000], 0x5a, 1096);
	memset(&rings[0][0][NETIF_RING_HEADER + NETIF_RING * 12], 0x5a, 960);
	for (number = 1; number < 64; at += number++) {
		for (i = 0; i < number; i++) {
			put_rx(1, at + i, 1);
			put_tx(0, (struct netif_tx_request){ .size = 60, .id = at + i });
		}
		for (i = 0; i < number; i++)
			CHECK(receive(ring_of(2, 1) + 3000, 60 + number, 0));
		kick(0);
		xen_vif_publish();
		CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), at + number);
		CHECK_EQUAL(get(1, 1, NETIF_RESPONSE_PRODUCE), at + number);
		for (i = 0; i < number; i++) {
			CHECK_EQUAL(rx_answer(1, at + i).id, at + i);
			CHECK_EQUAL(rx_answer(1, at + i).status, 60 + number);
			CHECK_EQUAL(tx_answer(0, at + i).id, at + i);
			CHECK_EQUAL(tx_answer(0, at + i).status, NETIF_RSP_OKAY);
		}
	}
	for (i = 3000; i < 4096; i++)
		CHECK_EQUAL(rings[1][1][i], 0x5a);
	for (i = NETIF_RING_HEADER + NETIF_RING * 12; i < 4096; i++)
		CHECK_EQUAL(rings[0][0][i], 0x5a);
}

/* A guest that changes requests which it has shown: each is read once. */
static void a_request_is_read_once(void)
{
	uint32_t i;

	start();
	memcpy(&rings[2][1][3000], (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 1 }, 6);
	for (i = 0; i < 8; i++)
		put_rx(1, i, 1);
	CHECK(receive(ring_of(2, 1) + 3000, 60, 0));
	memset(&rings[1][1][NETIF_RING_HEADER], 0xff, 8 * 8);
	for (i = 1; i < 8; i++)
		CHECK(receive(ring_of(2, 1) + 3000, 60, 0));
	xen_vif_publish();
	for (i = 0; i < 8; i++)
		CHECK_EQUAL(rx_answer(1, i).id, i);
	CHECK_EQUAL(vif_status(1).received, 8);
}

static void a_frontend_that_looks_itself_gets_no_event(void)
{
	uint32_t i;

	start();
	fill_frame(60);
	for (i = 0; i < 100; i++) {
		send_one(0);
		if (i % 3 == 0)
			end_window();
	}
	while (end_window())
		;
	CHECK_EQUAL(sent_count, 100);
	CHECK_EQUAL(notified, 0);
}

static void a_frontend_that_waits_gets_one_event(void)
{
	start();
	fill_frame(60);
	put_frames(0, 1);
	kick(0);
	CHECK_EQUAL(notified, 0);
	CHECK(end_window());
	CHECK_EQUAL(notified, 1);
	CHECK(!end_window());	/* nobody waits for anything */
	xen_vif_service();
	CHECK_EQUAL(notified, 1);

	/* An event that it waits for later than the first answer. */
	start();
	fill_frame(60);
	set(0, 0, NETIF_RESPONSE_EVENT, 3);
	put_frames(0, 2);
	kick(0);
	while (end_window())
		;
	CHECK_EQUAL(notified, 0);
	put_frames(0, 1);
	kick(0);
	while (end_window())
		;
	CHECK_EQUAL(notified, 1);
}

/* Of pace.c: ns, and windows. */
#define WINDOW 250000
enum { ALONE = 4 };

/* Its packet with that number, from 1 on, has its event when the window ends, and nobody waits for anything then. */
static void ask_by_time(uint32_t asked)
{
	const uint32_t told = notified;

	look(0, 0);
	put_frames(0, 1);
	kick(0);
	CHECK_EQUAL(notified, told);
	CHECK(end_window());
	CHECK_EQUAL(notified, told + 1);
	CHECK(!end_window());
	CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), asked + 1);
}

/* The same at once, and no window. */
static void ask_alone(uint32_t asked)
{
	const uint32_t told = notified;

	look(0, 0);
	put_frames(0, 1);
	kick(0);
	CHECK_EQUAL(notified, told + 1);
	CHECK(!timer_set);
	CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), asked + 1);
}

/* One packet in each window: after some, its event at once, and no end of a window. However many there are in all, the
 * guest is not paced. */
static void a_guest_that_asks_and_waits_has_no_window(void)
{
	uint32_t i, own;

	start();
	fill_frame(60);
	for (i = 1; i <= ALONE; i++)
		ask_by_time(i);
	for (; i < 3 * BUSY; i++, now += WINDOW)
		ask_alone(i);
	/* Others' windows end meanwhile. */
	put_frames(1, 2);
	kick(1);
	CHECK(end_window());
	ask_alone(i++);
	/* A second one in the same window waits for its end, as it did before; so do those of the next windows. */
	for (own = i + ALONE; i <= own; i++)
		ask_by_time(i);
	ask_alone(i);
}

/* Its queue is nearly full: it is not kept waiting. */
static void many_answers_are_an_event_at_once(void)
{
	start();
	fill_frame(60);
	put_frames(0, AHEAD);
	kick(0);
	CHECK_EQUAL(notified, 1);
}

static void answers_of_a_dead_driver_are_shown(void)
{
	start();
	driver_dead = true;
	put_frames(0, 3);
	kick(0);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 3);
	CHECK_EQUAL(tx_answer(0, 2).status, NETIF_RSP_ERROR);
	end_window();
	CHECK_EQUAL(notified, 1);
}

/* Packets wait for a driver that takes none: nobody looks at them all the time. */
static void packets_that_wait_have_no_window(void)
{
	uint32_t i;

	start();
	fill_frame(60);
	put_frames(0, BUSY);
	kick(0);
	look(0, 0);
	for (i = 0; i < 64; i++)
		answers[i] = HOT_BUSY;
	answered = 0;
	answer_count = 64;
	put_frames(0, 1);
	for (i = 0; i < 3; i++)
		end_window();
	CHECK_EQUAL(sent_count, BUSY);
	CHECK(!timer_set);
	/* A completion: the tasklet. */
	answer_count = 0;
	xen_vif_service();
	CHECK_EQUAL(sent_count, BUSY + 1);
	CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), BUSY + 2);
}

/* ---- Leaving and coming back ------------------------------------------------------------ */

static void a_guest_that_is_left_is_told(void)
{
	start();
	fill_frame(60);
	put_frames(0, 3);
	kick(0);
	CHECK_EQUAL(notified, 0);
	xen_vif_disconnect(1, 0);
	CHECK_EQUAL(notified, 1);

	/* Frames that were not shown yet: the driver was aborted, or waited. */
	start();
	memcpy(&rings[0][1][3000], (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 1 }, 6);
	put_rx(1, 0, 1);
	CHECK(receive(ring_of(0, 1) + 3000, 100, 0));
	xen_vif_disconnect_all();
	CHECK_EQUAL(get(1, 1, NETIF_RESPONSE_PRODUCE), 1);
	CHECK_EQUAL(notified, 1);

	/* Its ring is gone: nothing is, and the domain is given back. */
	start();
	put_frames(0, 1);
	kick(0);
	rings_gone = true;
	xen_vif_disconnect_all();
	CHECK_EQUAL(notified, 0);
	CHECK_EQUAL(references[1], 1);
}

/* It waits for answers of somebody who served the ring before. */
static void a_guest_that_comes_back_is_told(void)
{
	start();
	xen_vif_disconnect(1, 0);
	notified = 0;
	set(0, 0, NETIF_REQUEST_PRODUCE, 300);
	set(0, 0, NETIF_RESPONSE_PRODUCE, 300);
	set(0, 0, NETIF_RESPONSE_EVENT, 280);
	CHECK_EQUAL(connect_guest(0), 0);
	xen_vif_service();
	end_window();
	CHECK_EQUAL(notified, 1);

	/* And one that has seen them is not. */
	start();
	xen_vif_disconnect(1, 0);
	notified = 0;
	set(0, 0, NETIF_REQUEST_PRODUCE, 300);
	set(0, 0, NETIF_RESPONSE_PRODUCE, 300);
	look(0, 0);
	CHECK_EQUAL(connect_guest(0), 0);
	xen_vif_service();
	while (end_window())
		;
	CHECK_EQUAL(notified, 0);
}

/* ---- Guests that send much ---------------------------------------------------------------- */

static void a_guest_that_sends_much_is_paced(void)
{
	uint32_t i;

	start();
	fill_frame(60);
	for (i = 1; i < BUSY; i++) {
		send_one(0);
		CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), i + 1);
	}
	send_one(0);
	CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), BUSY + AHEAD);
	/* Without a notification. */
	put_frames(0, BUSY);
	CHECK_EQUAL(sent_count, BUSY);
	CHECK(end_window());
	CHECK_EQUAL(sent_count, 2 * BUSY);
	CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), 2 * BUSY + AHEAD);
	look(0, 0);
	/* As many as it notifies for. */
	put_frames(0, AHEAD);
	kick(0);
	CHECK_EQUAL(sent_count, 2 * BUSY + AHEAD);
	look(0, 0);
	CHECK(end_window());
	CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), 2 * BUSY + 2 * AHEAD);
	/* Fewer than BUSY: each for itself again. */
	put_frames(0, 1);
	CHECK(end_window());
	CHECK_EQUAL(sent_count, 2 * BUSY + AHEAD + 1);
	CHECK_EQUAL(get(0, 0, NETIF_REQUEST_EVENT), 2 * BUSY + AHEAD + 2);
	look(0, 0);
	end_window();
	CHECK(!end_window());
}

/* Packets that come slowly are served when they come, however many. */
static void a_guest_that_sends_little_is_not(void)
{
	uint32_t i;

	start();
	fill_frame(60);
	for (i = 0; i < 50; i++) {
		send_one(0);
		CHECK_EQUAL(sent_count, i + 1);
		if (i % (BUSY - 1) == 0)
			end_window();
	}
}

/* A window that ends while somebody else has the lock. */
static void the_end_of_a_window_is_not_lost(void)
{
	start();
	fill_frame(60);
	put_frames(0, BUSY);
	kick(0);
	put_frames(0, 1);
	CHECK(xen_trylock());
	requested = 0;
	CHECK(end_window());
	CHECK_EQUAL(sent_count, BUSY);
	CHECK_EQUAL(requested, 1);
	xen_unlock();
	xen_vif_service();	/* the tasklet */
	CHECK_EQUAL(sent_count, BUSY + 1);
	CHECK(timer_set);
}

static void a_broken_guest_has_no_window(void)
{
	start();
	fill_frame(60);
	put_frames(0, BUSY);
	kick(0);
	look(0, 0);
	set(0, 0, NETIF_REQUEST_PRODUCE, 0x70000000);
	CHECK(end_window());
	end_window();
	CHECK(!timer_set);

	/* But it is told of what was answered before. */
	start();
	fill_frame(60);
	put_frames(0, 1);
	put_tx(0, (struct netif_tx_request){ .size = 13 });
	kick(0);
	CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), 1);
	CHECK(end_window());
	CHECK_EQUAL(notified, 1);
	CHECK(!timer_set);
}

/* A guest of two processors that changes its indices whenever they are read, to and fro between
 * what is taken and one more: no service is endless. */
static void flip(void)
{
	const struct netif_tx_request request = { .reference = 0, .size = 60 };

	memcpy(&rings[0][0][NETIF_RING_HEADER + sent_count % NETIF_RING * sizeof(request)], &request,
	       sizeof(request));
	set(0, 0, NETIF_REQUEST_PRODUCE, sent_count + chance(2));
	set(0, 0, NETIF_RESPONSE_EVENT, sent_count + chance(3));
}

static void an_index_that_changes_all_the_time(void)
{
	uint32_t i;

	start();
	fill_frame(60);
	put_frames(0, NETIF_RING);
	set(0, 0, NETIF_REQUEST_PRODUCE, 0);
	meanwhile = flip;
	for (i = 0; i < 1000; i++) {
		kick(0);
		end_window();
	}
	meanwhile = NULL;
	CHECK(sent_count > 1000);
	CHECK(sent_count <= 2000 * NETIF_RING / 4);
}

/* ---- Any order of steps ------------------------------------------------------------------- */

/*
 * A frontend, of which each step may come between two of the backend's. For each ring: requests
 * are put, then their index is written, then the event index is read, and perhaps an event sent.
 * Answers are taken, then the event index is written, then they are looked for once more: at an
 * event (Linux), and also after it has put packets (others).
 */
enum step { IDLE, PUT, NOTIFY, TAKE, ASK, LOOK_AGAIN };
static struct frontend {
	enum step step[2];
	uint32_t produced[2], old[2], taken[2];
	uint32_t events_seen;
	bool looks_itself, sends;
	bool inside;		/* one thing at a time */
} frontend;

static void begin_put(uint32_t ring)
{
	const uint32_t free = NETIF_RING - (frontend.produced[ring] - frontend.taken[ring]);

	if (!frontend.sends || !free)
		return;
	frontend.old[ring] = frontend.produced[ring];
	frontend.produced[ring] += 1 + chance(free < 6 ? free : 6);
	frontend.step[ring] = PUT;
}

static void put_entries(uint32_t ring)
{
	/* put_tx and put_rx write the index as well: with each entry, which is allowed. */
	while (produced[0][ring] != frontend.produced[ring])
		if (ring)
			put_rx(0, 1, 1);
		else
			put_tx(0, (struct netif_tx_request){ .reference = 0, .size = 60 });
}

static void notify(uint32_t ring)
{
	if (netif_is_due(frontend.old[ring], frontend.produced[ring],
			 get(0, ring, NETIF_REQUEST_EVENT)))
		kick(0);
}

static void step(uint32_t ring)
{
	enum step *next = &frontend.step[ring];

	switch (*next) {
	case IDLE:
		if (frontend.events_seen != notified && ring == 0) {
			frontend.events_seen = notified;
			frontend.step[0] = TAKE;
			if (frontend.step[1] == IDLE)
				frontend.step[1] = TAKE;
			return;
		}
		begin_put(ring);
		return;
	case PUT:
		put_entries(ring);
		*next = NOTIFY;
		return;
	case NOTIFY:
		*next = !ring && frontend.looks_itself ? TAKE : IDLE;
		notify(ring);
		return;
	case TAKE:
		frontend.taken[ring] = get(0, ring, NETIF_RESPONSE_PRODUCE);
		*next = ASK;
		return;
	case ASK:
		set(0, ring, NETIF_RESPONSE_EVENT, frontend.taken[ring] + 1);
		*next = LOOK_AGAIN;
		return;
	case LOOK_AGAIN:
		*next = get(0, ring, NETIF_RESPONSE_PRODUCE) == frontend.taken[ring] ? IDLE : TAKE;
		return;
	}
}

/* An event must lead to a look at both rings: the second ring's, if it is in the middle of
 * something, comes after it. */
static bool event_waits(void)
{
	return frontend.events_seen != notified;
}

static void some_steps(void)
{
	uint32_t i;

	/* The window may end on another processor, too. */
	if (!chance(30))
		end_window();
	if (frontend.inside)
		return;
	frontend.inside = true;
	for (i = chance(4); i; i--)
		step(event_waits() && frontend.step[1] != IDLE ? 1 : chance(2));
	frontend.inside = false;
}

/* The tasklet, which has frames of the card's now and then. */
static void tasklet(void)
{
	uint32_t frames;

	requested = 0;
	if (!xen_trylock()) {
		requested = 1;
		return;
	}
	for (frames = frontend.sends ? chance(5) : 0; frames; frames--)
		receive(ring_of(2, 1) + 3000, 100, 0);
	xen_vif_service();
	xen_unlock();
}

static void something(void)
{
	switch (chance(6)) {
	case 0:
		end_window();
		return;
	case 1:
		tasklet();
		return;
	default:
		some_steps();
	}
}

/* Nothing new begins; what was begun, or asked for, goes on to its end. */
static void come_to_rest(void)
{
	uint32_t i;

	frontend.sends = false;
	for (i = 0; i < 300; i++) {
		some_steps();
		if (requested)
			tasklet();
		end_window();
	}
	CHECK(!timer_set && !requested && !event_waits());
	CHECK(frontend.step[0] == IDLE && frontend.step[1] == IDLE);
}

static void no_wake_up_is_lost(void)
{
	uint32_t round, i;

	for (round = 0; round < 6000 && holds; round++) {
		stages.notify = round % 4 < 2 ? 0 : chance(80);
		stages.pace = round % 3 != 0;
		start();
		fill_frame(60);
		memcpy(&rings[2][1][3000], (uint8_t[]){ 0, 0x16, 0x3e, 0, 0, 0 }, 6);
		frontend = (struct frontend){ .looks_itself = round % 2, .sends = true };
		meanwhile = some_steps;
		for (i = chance(400); i; i--)
			something();
		come_to_rest();
		meanwhile = NULL;
		/* All was sent, and it knows. */
		CHECK_EQUAL(get(0, 0, NETIF_RESPONSE_PRODUCE), frontend.produced[0]);
		CHECK_EQUAL(frontend.taken[0], frontend.produced[0]);
		CHECK_EQUAL(frontend.taken[1], get(0, 1, NETIF_RESPONSE_PRODUCE));
		CHECK(vif_status(0).connected);
	}
}

int main(void)
{
	seed = 7;
	RUN(answers_are_shown_at_once);
	RUN(answers_are_in_their_places);
	RUN(a_request_is_read_once);
	RUN(a_frontend_that_looks_itself_gets_no_event);
	RUN(a_frontend_that_waits_gets_one_event);
	RUN(a_guest_that_asks_and_waits_has_no_window);
	RUN(many_answers_are_an_event_at_once);
	RUN(answers_of_a_dead_driver_are_shown);
	RUN(packets_that_wait_have_no_window);
	RUN(a_guest_that_is_left_is_told);
	RUN(a_guest_that_comes_back_is_told);
	RUN(a_guest_that_sends_much_is_paced);
	RUN(a_guest_that_sends_little_is_not);
	RUN(the_end_of_a_window_is_not_lost);
	RUN(a_broken_guest_has_no_window);
	RUN(an_index_that_changes_all_the_time);
	RUN(no_wake_up_is_lost);
	return test_summary();
}
