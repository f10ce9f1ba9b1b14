// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rings of descriptors: the card sees what was checked and nothing else, its buffers
 * are permitted ones from check to write-back, and each violation says where it is.
 */
#include <pthread.h>
#include <sched.h>

#include "dma-rings.h"

/* ---- What a good driver does ------------------------------------------------ */

static void what_is_fine_reaches_the_card_and_comes_back(void)
{
	struct twin_dma_statistics counts;

	take();
	CHECK_EQUAL(tail_register[TX], 0);
	put(TX, 0, 0x1234, CONTEXT);
	put(TX, 1, POOL * PAGE + 100, PART(1000));
	put(TX, 2, (POOL + 1) * PAGE - 10, DATA(20));
	CHECK(ring(TX, 3));
	CHECK_EQUAL(tail_register[TX], 3);
	CHECK_EQUAL(copy[TX][0].address, 0x1234);
	CHECK_EQUAL(copy[TX][2].control, DATA(20));
	CHECK_EQUAL(twin_frame_move(&frames, POOL, TWIN_OWNER_DOM0, TWIN_OWNER_GUEST(ANNA)),
		    TWIN_BUSY);

	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(driver[TX][2].control & DD, 0);
	card_sends(0, 3);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(driver[TX][2].control, DATA(20) | DD);
	CHECK_EQUAL(driver[TX][1].control, PART(1000));
	twin_dma_events(&dma, &counts, &report);
	CHECK_EQUAL(counts.doorbells, 1);
	CHECK_EQUAL(counts.checked, 3);
	CHECK_EQUAL(counts.shown, 3);
	CHECK_EQUAL(counts.refused, 0);
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
}

static void received_frames_come_back_one_by_one(void)
{
	uint32_t i;

	take();
	for (i = 0; i < COUNT; i++)
		put(RX, i, (POOL + i / 2) * PAGE + i % 2 * BUFFER, 0xffffffffffffffff);
	CHECK(ring(RX, COUNT - 1));
	/* What an earlier use left in the status is not the card's. */
	CHECK_EQUAL(copy[RX][0].control & DD, 0);
	card_receives(0, 60);
	card_receives(2, 61);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(driver[RX][0].control, DD | 1ull << 33 | 60);
	CHECK_EQUAL(driver[RX][2].control, 0xffffffffffffffff);
	card_receives(1, 62);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(driver[RX][2].control, DD | 1ull << 33 | 61);
	/* Round the ring's end. */
	CHECK(ring(RX, 1));
	CHECK_EQUAL(tail_register[RX], 1);
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
}

static void rings_go_round_many_times(void)
{
	uint32_t i, tail = 0;

	take();
	for (i = 0; i < 1000; i++) {
		const uint32_t from = tail;
		uint32_t packets = 1 + i % 5;

		for (; packets > 0; packets--, tail = (tail + 1) % COUNT)
			put(TX, tail, (POOL + i % 8) * PAGE + i, LEGACY(1 + i % 1500));
		CHECK(ring(TX, tail));
		CHECK(!memcmp((void *)&driver[TX][from], &copy[TX][from], sizeof(copy[TX][from])));
		card_sends(from, tail);
		CHECK(twin_dma_show(&dma, &report));
	}
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
	CHECK_EQUAL(refused(), 0);
}

static void what_the_card_has_already_is_taken_over(void)
{
	set_up();
	put(RX, 14, POOL * PAGE, 0);
	put(RX, 15, (POOL + 1) * PAGE, 0);
	put(RX, 0, (POOL + 2) * PAGE, 0);
	config[RX].head = 14;
	config[RX].tail = 1;
	doorbell[RX] = 1;
	CHECK_EQUAL(twin_dma_take(&dma, config), TWIN_OK);
	CHECK_EQUAL(twin_dma_take(&dma, config), TWIN_BUSY);
	CHECK_EQUAL(tail_register[RX], 1);
	CHECK_EQUAL(copy[RX][15].address, (POOL + 1) * PAGE);
	card_receives(14, 99);
	/* Giving back shows what is done. */
	twin_dma_give_back(&dma);
	CHECK_EQUAL(driver[RX][14].control, DD | 1ull << 33 | 99);
	CHECK_EQUAL(pins_of_all(), 0);
	twin_dma_give_back(&dma);
	CHECK(twin_dma_show(&dma, &report));
	CHECK(ring(RX, 77));
}

/* ---- Buffers that the card may not use --------------------------------------- */

/* Descriptor 1, after a good one, is refused; the card sees neither, nothing is pinned. */
static void refuses(uint32_t kind, uint64_t address, uint64_t control, uint32_t fault,
		    uint64_t where)
{
	uint32_t before;

	take();
	before = pins_of_all();
	put(kind, 0, POOL * PAGE, LEGACY(60));
	put(kind, 1, address, control);
	CHECK(!ring(kind, 2));
	CHECK_EQUAL(report.fault, fault);
	CHECK_EQUAL(report.kind, kind);
	CHECK_EQUAL(report.index, 1);
	CHECK_EQUAL(report.address, where);
	CHECK_EQUAL(tail_register[kind], 0);
	CHECK_EQUAL(pins_of_all(), before);
	CHECK_EQUAL(refused(), 1);
	/* It is found again as long as it is there; without it the doorbell passes. */
	CHECK(!twin_dma_ring(&dma, &report));
	put(kind, 1, POOL * PAGE, LEGACY(60));
	CHECK(twin_dma_ring(&dma, &report));
	CHECK_EQUAL(tail_register[kind], 2);
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
}

static void a_foreign_buffer_is_refused(void)
{
	const uint64_t foreign[] = {
		0, 7 * PAGE, 8 * PAGE - 10, 32 * PAGE - 10, 32 * PAGE, 50 * PAGE, 64 * PAGE,
		127 * PAGE, FRAMES * PAGE - 10, FRAMES * PAGE, 1ull << 40, UINT64_MAX - 4095,
	};
	uint32_t i;

	for (i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		refuses(TX, foreign[i], LEGACY(60), TWIN_DMA_FOREIGN, foreign[i]);
		refuses(TX, foreign[i], DATA(60), TWIN_DMA_FOREIGN, foreign[i]);
		refuses(RX, foreign[i], 0, TWIN_DMA_FOREIGN, foreign[i]);
	}
	/* The last byte of what a receive buffer covers counts, not a frame's. */
	refuses(RX, 32 * PAGE - BUFFER + 1, 0, TWIN_DMA_FOREIGN, 32 * PAGE - BUFFER + 1);
}

static void lengths_and_types_are_refused(void)
{
	const uint64_t at = POOL * PAGE, last = UINT64_MAX - 9;

	refuses(TX, at, DATA(TWIN_DMA_BUFFER + 1), TWIN_DMA_LENGTH, at);
	refuses(TX, at, DATA(0xfffff), TWIN_DMA_LENGTH, at);
	refuses(TX, at, LEGACY(0xffff), TWIN_DMA_LENGTH, at);
	refuses(TX, last, LEGACY(60), TWIN_DMA_LENGTH, last);
	refuses(RX, last, 0, TWIN_DMA_LENGTH, last);
	refuses(TX, at, CONTEXT | 2 << 20 | 60, TWIN_DMA_FORMAT, CONTEXT | 2 << 20 | 60);
	refuses(TX, at, CONTEXT | 15 << 20, TWIN_DMA_FORMAT, CONTEXT | 15 << 20);
	/* Without data there is nothing to check. */
	take();
	put(TX, 0, UINT64_MAX, LEGACY(0));
	put(TX, 1, UINT64_MAX, CONTEXT | 0xfffff);
	CHECK(ring(TX, 2));
	twin_dma_give_back(&dma);
}

static void a_guests_frame_is_sent_only_while_a_packet_pins_it(void)
{
	static struct twin_flight flights[2];
	const struct twin_piece piece = { .address = 33 * PAGE, .length = 100 };
	struct twin_outgoing outgoing;
	uint64_t ticket, cookie;
	uint32_t guest;

	take();
	CHECK_EQUAL(twin_outgoing_init(&outgoing, &frames, flights, 2), TWIN_OK);
	put(TX, 0, 33 * PAGE + 20, LEGACY(80));
	CHECK(!ring(TX, 1));
	CHECK_EQUAL(twin_outgoing_admit(&outgoing, ANNA, 1, &piece, 1, &ticket), TWIN_ADMITTED);
	CHECK(ring(TX, 1));
	/* The card has it: it stays Anna's, although the driver says that it is sent. */
	CHECK_EQUAL(twin_outgoing_complete(&outgoing, ticket, &guest, &cookie), TWIN_OK);
	CHECK_EQUAL(twin_frame_pins(&frames, 33), 1);
	CHECK_EQUAL(twin_frame_move(&frames, 33, TWIN_OWNER_GUEST(ANNA), TWIN_OWNER_GUEST(BERT)),
		    TWIN_BUSY);
	card_sends(0, 1);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(twin_frame_pins(&frames, 33), 0);
	/* Nothing is received into it, and its neighbour is not sent with it. */
	CHECK_EQUAL(twin_outgoing_admit(&outgoing, ANNA, 1, &piece, 1, &ticket), TWIN_ADMITTED);
	put(RX, 0, 33 * PAGE, 0);
	CHECK(!ring(RX, 1));
	doorbell[RX] = 0;
	put(TX, 1, 34 * PAGE - 40, LEGACY(80));
	CHECK(!ring(TX, 2));
	CHECK_EQUAL(report.fault, TWIN_DMA_FOREIGN);
	twin_dma_give_back(&dma);
}

/* Not by another descriptor that the card has not written back. */
static void a_descriptor_is_no_reason_for_the_next(void)
{
	static struct twin_flight flights[2];
	const struct twin_piece piece = { .address = 33 * PAGE, .length = 100 };
	struct twin_outgoing outgoing;
	uint64_t ticket, cookie;
	uint32_t guest;

	take();
	CHECK_EQUAL(twin_outgoing_init(&outgoing, &frames, flights, 2), TWIN_OK);
	CHECK_EQUAL(twin_outgoing_admit(&outgoing, ANNA, 1, &piece, 1, &ticket), TWIN_ADMITTED);
	put(TX, 0, 33 * PAGE, LEGACY(100));
	CHECK(ring(TX, 1));
	CHECK_EQUAL(twin_outgoing_complete(&outgoing, ticket, &guest, &cookie), TWIN_OK);
	put(TX, 1, 33 * PAGE + 2000, LEGACY(1000));
	CHECK(!ring(TX, 2));
	CHECK_EQUAL(report.fault, TWIN_DMA_FOREIGN);
	/* nor if it crosses frames */
	put(TX, 1, 33 * PAGE + 100, LEGACY(4096));
	CHECK(!ring(TX, 2));
	CHECK_EQUAL(twin_frame_pins(&frames, 33), 1);
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
}

/* Buffers of one frame, of two and of more take other ways through the check. */
static void buffers_of_many_frames_are_checked_to_their_last(void)
{
	static struct twin_flight flights[1];
	const struct twin_piece piece = { .address = 40 * PAGE + 4000, .length = 3 * PAGE };
	struct twin_outgoing outgoing;
	uint64_t ticket, cookie, frame;
	uint32_t guest, frames_of_it;

	for (frames_of_it = 1; frames_of_it <= 4; frames_of_it++) {
		const uint32_t length = 96 + (frames_of_it - 1) * TWIN_PAGE_SIZE;

		/* The pool's last frames, and one frame more. */
		refuses(TX, (33 - frames_of_it) * PAGE + 4000, DATA(length - 95), TWIN_DMA_FOREIGN,
			(33 - frames_of_it) * PAGE + 4000);
		take();
		put(TX, 0, (32 - frames_of_it) * PAGE + 4000, DATA(length));
		CHECK(ring(TX, 1));
		twin_dma_give_back(&dma);

		/* Anna's frames 40 to 43, of which a packet pins all. */
		take();
		CHECK_EQUAL(twin_outgoing_init(&outgoing, &frames, flights, 1), TWIN_OK);
		put(TX, 0, piece.address, DATA(length));
		CHECK(!ring(TX, 1));
		CHECK_EQUAL(twin_outgoing_admit(&outgoing, ANNA, 1, &piece, 1, &ticket),
			    TWIN_ADMITTED);
		CHECK(ring(TX, 1));
		for (frame = 40; frame < 44; frame++)
			CHECK_EQUAL(twin_frame_pins(&frames, frame),
				    frame < 40 + frames_of_it ? 2 : 1);
		CHECK_EQUAL(twin_outgoing_complete(&outgoing, ticket, &guest, &cookie), TWIN_OK);
		/* Not pinned any more, so not to be sent a second time. */
		put(TX, 1, 43 * PAGE, DATA(60));
		if (frames_of_it < 4)
			CHECK(!ring(TX, 2));
		card_sends(0, 1);
		CHECK(twin_dma_show(&dma, &report));
		CHECK_EQUAL(twin_frame_pins(&frames, 40), 0);
		twin_dma_give_back(&dma);
		CHECK_EQUAL(pins_of_all(), 0);
	}
}

/* ---- Tails -------------------------------------------------------------------- */

static void a_bad_tail_is_refused(void)
{
	uint32_t i;

	take();
	for (i = 0; i < COUNT; i++)
		put(TX, i, POOL * PAGE, LEGACY(60));
	CHECK(!ring(TX, COUNT));
	CHECK_EQUAL(report.fault, TWIN_DMA_TAIL);
	CHECK_EQUAL(report.address, COUNT);
	CHECK(!ring(TX, 0xffffffff));
	CHECK(ring(TX, 10));
	/* Behind itself, and up to itself round the ring: over what the card has. */
	CHECK(!ring(TX, 9));
	CHECK_EQUAL(report.fault, TWIN_DMA_OVERRUN);
	CHECK_EQUAL(report.address, 9);
	CHECK(!ring(TX, 0));
	CHECK_EQUAL(tail_register[TX], 10);
	CHECK(ring(TX, 15));
	card_sends(0, 5);
	CHECK(!ring(TX, 4));
	CHECK(twin_dma_show(&dma, &report));
	CHECK(ring(TX, 4));
	CHECK(!ring(TX, 5));
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
}

/* ---- Rings --------------------------------------------------------------------- */

static void refuses_ring(uint32_t kind, const struct twin_dma_ring_config *bad)
{
	struct twin_dma_statistics counts;

	config[kind] = *bad;
	CHECK_EQUAL(twin_dma_take(&dma, config), TWIN_INVALID);
	CHECK_EQUAL(pins_of_all(), 0);
	CHECK(ring(kind, 1));
	twin_dma_events(&dma, &counts, &report);
	CHECK_EQUAL(report.kind, kind);
}

static void a_bad_ring_is_not_taken(void)
{
	const uint64_t bases[] = { 8, 7 * PAGE, 32 * PAGE, 8 * PAGE - 16, 64 * PAGE,
				   UINT64_MAX - 15, 1ull << 50 };
	const uint32_t counts[] = { 0, 4, 12, TWIN_DMA_DESCRIPTORS + 8 };
	uint32_t i, kind;

	set_up();
	config[TWIN_DMA_RECEIVE].buffer = 0;
	refuses_ring(TWIN_DMA_RECEIVE, &config[TWIN_DMA_RECEIVE]);
	CHECK_EQUAL(report.fault, TWIN_DMA_RING);
	for (kind = 0; kind < 2; kind++) {
		struct twin_dma_ring_config bad;

		for (i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
			set_up();
			bad = config[kind];
			bad.base = bases[i];
			refuses_ring(kind, &bad);
			CHECK_EQUAL(report.fault, TWIN_DMA_RING);
			CHECK_EQUAL(report.address, bases[i]);
		}
		for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			set_up();
			bad = config[kind];
			bad.count = counts[i];
			refuses_ring(kind, &bad);
		}
		set_up();
		bad = config[kind];
		bad.tail = COUNT;
		refuses_ring(kind, &bad);
		/* One of the descriptors that the card has already. */
		set_up();
		bad = config[kind];
		bad.tail = 3;
		put(kind, 0, POOL * PAGE, LEGACY(60));
		put(kind, 1, POOL * PAGE, LEGACY(60));
		put(kind, 2, 3 * PAGE, LEGACY(60));
		refuses_ring(kind, &bad);
		CHECK_EQUAL(report.fault, TWIN_DMA_FOREIGN);
		CHECK_EQUAL(report.index, 2);
	}
}

static void the_pools_frames_stay_dom0s(void)
{
	uint64_t frame;

	take();
	for (frame = 0; frame < FRAMES; frame++)
		CHECK_EQUAL(twin_frame_pins(&frames, frame), frame >= 8 && frame < 32);
	CHECK_EQUAL(twin_frame_move(&frames, TX_RING, TWIN_OWNER_DOM0, TWIN_OWNER_GUEST(BERT)),
		    TWIN_BUSY);
	twin_dma_give_back(&dma);
	CHECK_EQUAL(twin_frame_move(&frames, TX_RING, TWIN_OWNER_DOM0, TWIN_OWNER_GUEST(BERT)),
		    TWIN_OK);
}

static void what_is_dom0s_since_is_pinned_by_itself(void)
{
	const uint64_t moved = POOL + 1;

	set_up();
	CHECK_EQUAL(twin_frame_move(&frames, moved, TWIN_OWNER_DOM0, TWIN_OWNER_GUEST(ANNA)),
		    TWIN_OK);
	CHECK_EQUAL(twin_dma_take(&dma, config), TWIN_OK);
	put(RX, 0, moved * PAGE, 0);
	CHECK(!ring(RX, 1));
	CHECK_EQUAL(report.fault, TWIN_DMA_FOREIGN);
	CHECK_EQUAL(twin_frame_move(&frames, moved, TWIN_OWNER_GUEST(ANNA), TWIN_OWNER_DOM0),
		    TWIN_OK);
	CHECK_EQUAL(twin_frame_pins(&frames, moved), 0);
	CHECK(ring(RX, 1));
	CHECK_EQUAL(twin_frame_pins(&frames, moved), 1);
	card_receives(0, 60);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(twin_frame_pins(&frames, moved), 0);
	/* Held and not, in one buffer. */
	put(RX, 1, moved * PAGE - 10, 0);
	CHECK(ring(RX, 2));
	CHECK_EQUAL(twin_frame_pins(&frames, moved - 1), 2);
	CHECK_EQUAL(twin_frame_pins(&frames, moved), 1);
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
}

/* ---- After the check ------------------------------------------------------------ */

/* Round the ring's end, too. */
static void half_of_a_ring_is_known(void)
{
	uint32_t tail = 0, i;

	set_up();
	CHECK(!twin_dma_has_half(&dma, RX));
	CHECK_EQUAL(twin_dma_take(&dma, config), TWIN_OK);
	for (i = 0; i < COUNT; i++)
		put(RX, i, POOL * PAGE, 0);
	for (i = 0; i < 2 * COUNT; i++) {
		tail = (i + COUNT / 2 - 1) % COUNT;
		CHECK(ring(RX, tail));
		CHECK(!twin_dma_has_half(&dma, RX));
		CHECK(ring(RX, (tail + 1) % COUNT));
		CHECK(twin_dma_has_half(&dma, RX));
		CHECK(!twin_dma_has_half(&dma, TX));
		card_receives(i % COUNT, 60);
		CHECK(twin_dma_has_half(&dma, RX));
		CHECK(twin_dma_show(&dma, &report));
		CHECK(!twin_dma_has_half(&dma, RX));
	}
	twin_dma_give_back(&dma);
	CHECK(!twin_dma_has_half(&dma, RX));
}

/* Sent: three descriptors, of which the first is in two frames and the second in none; received:
 * one, whose buffer ends in the next frame. */
static void a_frame_of_the_pool_is_given_away_unless_the_card_has_it(void)
{
	const uint64_t sent = POOL, received = POOL + 4;

	take();
	put(TX, 0, (sent + 1) * PAGE - 10, PART(20));
	put(TX, 1, (sent + 2) * PAGE, CONTEXT);
	put(TX, 2, (sent + 3) * PAGE, DATA(1));
	put(RX, 0, (received + 1) * PAGE - 1, 0);
	CHECK(ring(TX, 3));
	CHECK(ring(RX, 1));
	CHECK_EQUAL(give_away(sent), TWIN_BUSY);
	CHECK_EQUAL(give_away(sent + 1), TWIN_BUSY);
	CHECK_EQUAL(give_away(sent + 2), TWIN_OK);
	CHECK_EQUAL(give_away(sent + 3), TWIN_BUSY);
	CHECK_EQUAL(give_away(received), TWIN_BUSY);
	CHECK_EQUAL(give_away(received + 1), TWIN_BUSY);
	CHECK_EQUAL(give_away(received + 2), TWIN_OK);
	/* Write-backs are shown there. */
	CHECK_EQUAL(give_away(TX_RING), TWIN_BUSY);
	CHECK_EQUAL(give_away(RX_RING), TWIN_BUSY);
	/* The card is done, but the driver was not told: still its. */
	card_sends(0, 3);
	card_receives(0, 60);
	CHECK_EQUAL(give_away(sent), TWIN_BUSY);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(give_away(sent), TWIN_OK);
	CHECK_EQUAL(give_away(received), TWIN_OK);

	/* What is gone is foreign; what came back is pinned by itself, and for as long. */
	put(TX, 3, sent * PAGE, LEGACY(60));
	CHECK(!ring(TX, 4));
	CHECK_EQUAL(report.fault, TWIN_DMA_FOREIGN);
	CHECK_EQUAL(twin_frame_move(&frames, sent, TWIN_OWNER_NOBODY, TWIN_OWNER_DOM0), TWIN_OK);
	CHECK(ring(TX, 4));
	CHECK_EQUAL(twin_frame_pins(&frames, sent), 1);
	card_sends(3, 4);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(twin_frame_pins(&frames, sent), 0);
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
	/* Nothing is held: no matter which frame. */
	CHECK_EQUAL(twin_dma_release(&dma, POOL), TWIN_OK);
	CHECK_EQUAL(twin_dma_release(&dma, UINT64_MAX), TWIN_OK);
}

static void a_change_after_the_check_reaches_no_card_and_is_noticed(void)
{
	uint32_t kind;

	for (kind = 0; kind < 2; kind++) {
		take();
		put(kind, 0, POOL * PAGE, LEGACY(60));
		put(kind, 1, (POOL + 1) * PAGE, LEGACY(60));
		CHECK(ring(kind, 2));
		put(kind, 1, 3 * PAGE, LEGACY(60));
		CHECK_EQUAL(copy[kind][1].address, (POOL + 1) * PAGE);
		card_sends(0, 2);
		card_receives(0, 60);
		card_receives(1, 60);
		CHECK(!twin_dma_show(&dma, &report));
		CHECK_EQUAL(report.fault, TWIN_DMA_CHANGED);
		CHECK_EQUAL(report.kind, kind);
		CHECK_EQUAL(report.index, 1);
		CHECK_EQUAL(report.address, 3 * PAGE);
		twin_dma_give_back(&dma);
		CHECK_EQUAL(pins_of_all(), 0);
	}
}

#define RACES 20000
#define ROUNDS 2000		/* of a ring each */
#define PATIENCE 20000000

static volatile uint32_t over;

/* The driver on another CPU: takes what was received, and fills its descriptor anew. */
static void *refills(void *unused)
{
	uint64_t turn = 0;

	(void)unused;
	while (!over) {
		volatile struct twin_dma_descriptor *next = &driver[RX][turn % COUNT];

		if (!(__atomic_load_n(&next->control, __ATOMIC_ACQUIRE) & DD)) {
			sched_yield();
			continue;
		}
		next->address = (POOL + ++turn % 8) * PAGE;
		next->control = 0;
	}
	return NULL;
}

/* What is shown is the driver's: that it fills it at once is no change of what the card has. */
static void a_driver_may_refill_as_soon_as_it_sees_that_all_is_received(void)
{
	uint32_t i, round, waited, head = 0, tail = COUNT - 1;
	pthread_t thread;

	take();
	over = 0;
	for (i = 0; i < COUNT; i++)
		put(RX, i, POOL * PAGE, 0);
	CHECK(ring(RX, tail));
	CHECK(!pthread_create(&thread, NULL, refills, NULL));
	for (round = 0; round < ROUNDS; round++) {
		for (; head != tail; head = (head + 1) % COUNT)
			card_receives(head, 60);
		if (!twin_dma_show(&dma, &report))
			break;
		tail = (head + COUNT - 1) % COUNT;
		for (i = head, waited = 0; i != tail && waited < PATIENCE; waited++)
			if (driver[RX][i].control & DD)
				sched_yield();
			else
				i = (i + 1) % COUNT;
		CHECK(ring(RX, tail));
	}
	CHECK_EQUAL(round, ROUNDS);
	over = 1;
	pthread_join(thread, NULL);
	twin_dma_give_back(&dma);
}

/* dom0, meanwhile: a good address and bad ones by turns. */
static void *changes(void *unused)
{
	uint64_t turn;

	(void)unused;
	for (turn = 0; !over; turn++)
		driver[TX][turn % COUNT].address = turn % 3 ? POOL * PAGE : 3 * PAGE;
	return NULL;
}

static void a_race_with_the_check_is_lost(void)
{
	uint32_t i, tail = 0, passed_on = 0;
	pthread_t thread;

	take();
	over = 0;
	for (i = 0; i < COUNT; i++)
		put(TX, i, POOL * PAGE, LEGACY(60));
	CHECK(!pthread_create(&thread, NULL, changes, NULL));
	/* However the threads are scheduled: until the check has passed one on, too; never for
	 * ever. */
	for (i = 0; i < RACES || (!passed_on && i < PATIENCE); i++) {
		const uint32_t next = (tail + 1) % COUNT;

		if (!ring(TX, next)) {
			sched_yield();
			continue;
		}
		CHECK_EQUAL(copy[TX][tail].address, POOL * PAGE);
		card_sends(tail, next);
		driver[TX][tail].address = POOL * PAGE;
		if (!twin_dma_show(&dma, &report)) {
			twin_dma_give_back(&dma);
			config[TX].head = config[TX].tail = doorbell[TX] = next;
			CHECK_EQUAL(twin_dma_take(&dma, config), TWIN_OK);
		}
		tail = next;
		passed_on++;
	}
	over = 1;
	pthread_join(thread, NULL);
	CHECK(passed_on);
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
}

int main(void)
{
	RUN(what_is_fine_reaches_the_card_and_comes_back);
	RUN(received_frames_come_back_one_by_one);
	RUN(rings_go_round_many_times);
	RUN(what_the_card_has_already_is_taken_over);
	RUN(a_foreign_buffer_is_refused);
	RUN(lengths_and_types_are_refused);
	RUN(a_guests_frame_is_sent_only_while_a_packet_pins_it);
	RUN(a_descriptor_is_no_reason_for_the_next);
	RUN(buffers_of_many_frames_are_checked_to_their_last);
	RUN(a_bad_tail_is_refused);
	RUN(a_bad_ring_is_not_taken);
	RUN(the_pools_frames_stay_dom0s);
	RUN(what_is_dom0s_since_is_pinned_by_itself);
	RUN(half_of_a_ring_is_known);
	RUN(a_frame_of_the_pool_is_given_away_unless_the_card_has_it);
	RUN(a_change_after_the_check_reaches_no_card_and_is_noticed);
	RUN(a_race_with_the_check_is_lost);
	RUN(a_driver_may_refill_as_soon_as_it_sees_that_all_is_received);
	return test_summary();
}
