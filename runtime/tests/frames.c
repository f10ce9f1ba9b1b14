// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owners and pins of frames, and packets being sent: no guest sends another's frames,
 * and a pinned frame keeps its owner, on one CPU and on several.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <twin/frames.h>

#include "test.h"

#define PAGE ((uint64_t)TWIN_PAGE_SIZE)
#define FRAMES 64
#define PLACES 8

enum { ANNA = 0, BERT = 1, CARL = 63 };

static uint64_t words[FRAMES];
static struct twin_frames frames;
static struct twin_flight flights[PLACES];
static struct twin_outgoing outgoing;

/* Frames 0-7 dom0's, 8-23 Anna's, 24-39 Bert's, 40 Carl's, the rest without owner. */
static void set_up(void)
{
	uint64_t i;

	memset(words, 0xa5, sizeof(words));
	twin_frames_init(&frames, words, FRAMES);
	for (i = 0; i < 41; i++) {
		uint32_t owner = i < 8 ? TWIN_OWNER_DOM0 :
				 i < 24 ? TWIN_OWNER_GUEST(ANNA) :
				 i < 40 ? TWIN_OWNER_GUEST(BERT) : TWIN_OWNER_GUEST(CARL);

		CHECK_EQUAL(twin_frame_move(&frames, i, TWIN_OWNER_NOBODY, owner), TWIN_OK);
	}
	CHECK_EQUAL(twin_outgoing_init(&outgoing, &frames, flights, PLACES), TWIN_OK);
}

static struct twin_piece piece(uint64_t frame, uint32_t offset, uint32_t length)
{
	return (struct twin_piece){ .address = frame * PAGE + offset, .length = length };
}

static uint64_t ticket;

static enum twin_admission admit(uint32_t guest, const struct twin_piece *pieces, uint32_t count)
{
	return twin_outgoing_admit(&outgoing, guest, 0xc00c1e, pieces, count, &ticket);
}

static enum twin_admission admit_one(uint32_t guest, struct twin_piece one)
{
	return admit(guest, &one, 1);
}

static int complete(uint64_t which)
{
	uint32_t guest;
	uint64_t cookie;

	return twin_outgoing_complete(&outgoing, which, &guest, &cookie);
}

static uint32_t pins_of_all(void)
{
	uint32_t pins = 0;
	uint64_t i;

	for (i = 0; i < FRAMES; i++)
		pins += twin_frame_pins(&frames, i);
	return pins;
}

static void a_guest_sends_its_own_frames(void)
{
	uint32_t guest = 99;
	uint64_t cookie = 0;

	set_up();
	CHECK_EQUAL(admit_one(BERT, piece(24, 100, 1400)), TWIN_ADMITTED);
	CHECK_EQUAL(twin_frame_pins(&frames, 24), 1);
	CHECK_EQUAL(twin_outgoing_complete(&outgoing, ticket, &guest, &cookie), TWIN_OK);
	CHECK_EQUAL(guest, BERT);
	CHECK_EQUAL(cookie, 0xc00c1e);
	CHECK_EQUAL(pins_of_all(), 0);
	CHECK_EQUAL(outgoing.statistics.admitted, 1);
	CHECK_EQUAL(outgoing.statistics.completed, 1);
}

static void refused_as(enum twin_admission wanted, uint32_t guest, struct twin_piece one)
{
	CHECK_EQUAL(admit_one(guest, one), wanted);
	CHECK_EQUAL(pins_of_all(), 0);
}

static void a_foreign_frame_is_refused_and_counted(void)
{
	set_up();
	refused_as(TWIN_FOREIGN, BERT, piece(23, 0, 1));	/* Anna's */
	refused_as(TWIN_FOREIGN, BERT, piece(40, 0, 1));	/* Carl's */
	refused_as(TWIN_FOREIGN, BERT, piece(3, 0, 1));		/* dom0's */
	refused_as(TWIN_FOREIGN, BERT, piece(50, 0, 1));	/* without owner */
	refused_as(TWIN_FOREIGN, 2, piece(24, 0, 1));		/* of a guest that has none */
	refused_as(TWIN_FOREIGN, BERT, piece(FRAMES, 0, 1));	/* no frame */
	refused_as(TWIN_FOREIGN, BERT, piece(1ull << 51, 0, 1));
	CHECK_EQUAL(outgoing.statistics.foreign, 7);
	CHECK_EQUAL(outgoing.statistics.admitted, 0);
}

/* Every byte is checked: the first, the last, and those between. */
static void a_piece_is_looked_at_as_a_whole(void)
{
	set_up();
	CHECK_EQUAL(admit_one(ANNA, piece(23, 4095, 1)), TWIN_ADMITTED);
	CHECK_EQUAL(complete(ticket), TWIN_OK);
	refused_as(TWIN_FOREIGN, ANNA, piece(23, 4095, 2));
	refused_as(TWIN_FOREIGN, BERT, piece(23, 4095, 2));
	CHECK_EQUAL(admit_one(BERT, piece(24, 0, 16 * 4096)), TWIN_ADMITTED);
	CHECK_EQUAL(pins_of_all(), 16);
	CHECK_EQUAL(complete(ticket), TWIN_OK);
	refused_as(TWIN_FOREIGN, BERT, piece(24, 1, 16 * 4096));
	CHECK_EQUAL(twin_frame_move(&frames, 30, TWIN_OWNER_GUEST(BERT), TWIN_OWNER_DOM0), TWIN_OK);
	refused_as(TWIN_FOREIGN, BERT, piece(24, 0, 16 * 4096));
}

static void pieces_that_are_none_are_refused(void)
{
	struct twin_piece many[TWIN_PIECES + 1] = { 0 };

	set_up();
	refused_as(TWIN_MALFORMED, BERT, piece(24, 0, 0));
	refused_as(TWIN_MALFORMED, BERT, piece(24, 0, TWIN_PIECE_BYTES + 1));
	refused_as(TWIN_MALFORMED, BERT, piece(24, 0, UINT32_MAX));
	refused_as(TWIN_MALFORMED, ANNA,
		   (struct twin_piece){ .address = -PAGE, .length = PAGE + 1 });
	refused_as(TWIN_FOREIGN, ANNA, (struct twin_piece){ .address = -PAGE, .length = PAGE });
	CHECK_EQUAL(admit(BERT, many, TWIN_PIECES + 1), TWIN_MALFORMED);
	CHECK_EQUAL(admit(BERT, many, UINT32_MAX), TWIN_MALFORMED);
	/* No guest's number stands for dom0 or for no owner. */
	refused_as(TWIN_MALFORMED, TWIN_OWNER_GUESTS, piece(3, 0, 1));
	refused_as(TWIN_MALFORMED, UINT32_MAX, piece(50, 0, 1));
}

static void one_foreign_piece_unpins_the_others(void)
{
	struct twin_piece pieces[TWIN_PIECES];
	uint32_t i, foreign;

	set_up();
	for (foreign = 0; foreign <= TWIN_PIECES; foreign++) {
		for (i = 0; i < TWIN_PIECES; i++)
			pieces[i] = piece(i == foreign ? 12 : 24 + i % 15, 4000, 200);
		CHECK_EQUAL(admit(BERT, pieces, TWIN_PIECES),
			    foreign < TWIN_PIECES ? TWIN_FOREIGN : TWIN_ADMITTED);
		CHECK_EQUAL(pins_of_all(), foreign < TWIN_PIECES ? 0 : 2 * TWIN_PIECES);
	}
	CHECK_EQUAL(complete(ticket), TWIN_OK);
	CHECK_EQUAL(pins_of_all(), 0);
}

static void a_pinned_frame_keeps_its_owner(void)
{
	uint64_t first, second;

	set_up();
	CHECK_EQUAL(admit_one(ANNA, piece(8, 0, 60)), TWIN_ADMITTED);
	first = ticket;
	CHECK_EQUAL(admit_one(ANNA, piece(8, 2048, 60)), TWIN_ADMITTED);
	second = ticket;
	CHECK_EQUAL(twin_frame_pins(&frames, 8), 2);
	CHECK_EQUAL(twin_frame_move(&frames, 8, TWIN_OWNER_GUEST(ANNA), TWIN_OWNER_GUEST(BERT)),
		    TWIN_BUSY);
	CHECK_EQUAL(complete(first), TWIN_OK);
	CHECK_EQUAL(twin_frame_move(&frames, 8, TWIN_OWNER_GUEST(ANNA), TWIN_OWNER_NOBODY),
		    TWIN_BUSY);
	CHECK_EQUAL(complete(second), TWIN_OK);
	CHECK_EQUAL(twin_frame_move(&frames, 8, TWIN_OWNER_GUEST(ANNA), TWIN_OWNER_GUEST(BERT)),
		    TWIN_OK);
	CHECK_EQUAL(twin_frame_owner(&frames, 8), TWIN_OWNER_GUEST(BERT));
	refused_as(TWIN_FOREIGN, ANNA, piece(8, 0, 60));
	CHECK_EQUAL(admit_one(BERT, piece(8, 0, 60)), TWIN_ADMITTED);
}

static void only_the_owner_can_give_a_frame_away(void)
{
	set_up();
	CHECK_EQUAL(twin_frame_move(&frames, 8, TWIN_OWNER_GUEST(BERT), TWIN_OWNER_GUEST(BERT)),
		    TWIN_INVALID);
	CHECK_EQUAL(twin_frame_move(&frames, 8, TWIN_OWNER_GUEST(ANNA), TWIN_OWNER_DOM0 + 1),
		    TWIN_INVALID);
	CHECK_EQUAL(twin_frame_move(&frames, FRAMES, TWIN_OWNER_NOBODY, TWIN_OWNER_DOM0),
		    TWIN_INVALID);
	CHECK_EQUAL(twin_frame_owner(&frames, 8), TWIN_OWNER_GUEST(ANNA));
	CHECK_EQUAL(twin_frame_owner(&frames, FRAMES), TWIN_OWNER_NOBODY);
	CHECK_EQUAL(twin_frame_pins(&frames, FRAMES), 0);
}

/* Completions come through dom0 and may hold anything. */
static void a_completion_counts_once(void)
{
	uint64_t old;

	set_up();
	CHECK_EQUAL(complete(0), TWIN_INVALID);
	CHECK_EQUAL(admit_one(BERT, piece(24, 0, 60)), TWIN_ADMITTED);
	old = ticket;
	CHECK_EQUAL(complete(old ^ 1), TWIN_INVALID);
	CHECK_EQUAL(complete(old ^ 1ull << 32), TWIN_INVALID);
	CHECK_EQUAL(complete(old ^ 1ull << 63), TWIN_INVALID);
	CHECK_EQUAL(complete((old & ~0xffffffffull) | PLACES), TWIN_INVALID);
	CHECK_EQUAL(complete(UINT64_MAX), TWIN_INVALID);
	CHECK_EQUAL(pins_of_all(), 1);
	CHECK_EQUAL(complete(old), TWIN_OK);
	CHECK_EQUAL(complete(old), TWIN_INVALID);
	/* The same place, for another packet. */
	CHECK_EQUAL(admit_one(BERT, piece(25, 0, 60)), TWIN_ADMITTED);
	CHECK_EQUAL((uint32_t)ticket, (uint32_t)old);
	CHECK_EQUAL(complete(old), TWIN_INVALID);
	CHECK_EQUAL(pins_of_all(), 1);
	CHECK_EQUAL(complete(ticket), TWIN_OK);
	CHECK_EQUAL(outgoing.statistics.unknown, 8);
	CHECK_EQUAL(outgoing.statistics.completed, 2);
	CHECK_EQUAL(pins_of_all(), 0);
}

static void no_more_packets_than_places(void)
{
	uint32_t i;

	set_up();
	CHECK_EQUAL(twin_outgoing_init(&outgoing, &frames, flights, 0), TWIN_INVALID);
	CHECK_EQUAL(twin_outgoing_init(&outgoing, &frames, NULL, 1), TWIN_INVALID);
	CHECK_EQUAL(twin_outgoing_init(&outgoing, &frames, flights, PLACES), TWIN_OK);
	for (i = 0; i < PLACES; i++)
		CHECK_EQUAL(admit_one(BERT, piece(24 + i, 0, 60)), TWIN_ADMITTED);
	CHECK_EQUAL(admit_one(BERT, piece(24, 0, 60)), TWIN_FULL);
	CHECK_EQUAL(outgoing.statistics.full, 1);
	CHECK_EQUAL(pins_of_all(), PLACES);
	CHECK_EQUAL(complete(ticket), TWIN_OK);
	/* A packet without pieces takes a place and no pin. */
	CHECK_EQUAL(admit(BERT, NULL, 0), TWIN_ADMITTED);
	CHECK_EQUAL(pins_of_all(), PLACES - 1);
	twin_outgoing_reset(&outgoing);
	CHECK_EQUAL(pins_of_all(), 0);
	CHECK_EQUAL(complete(ticket), TWIN_INVALID);
	CHECK_EQUAL(admit_one(BERT, piece(24, 0, 60)), TWIN_ADMITTED);
}

static void pins_do_not_run_over_into_the_owner(void)
{
	struct twin_piece both[2] = { piece(25, 0, 60), piece(24, 0, 60) };

	set_up();
	words[24] |= TWIN_FRAME_PINS;
	CHECK_EQUAL(admit(BERT, both, 2), TWIN_FULL);
	CHECK_EQUAL(twin_frame_pins(&frames, 24), TWIN_FRAME_PINS);
	CHECK_EQUAL(twin_frame_owner(&frames, 24), TWIN_OWNER_GUEST(BERT));
	CHECK_EQUAL(twin_frame_pins(&frames, 25), 0);
}

/* ---- Several CPUs --------------------------------------------------------- */

#define SHARED 4		/* frames that change hands */
#define TURNS 20000

static uint32_t owner_now[SHARED];	/* plain: the table is what orders accesses */

/* One frame, given to and fro between Anna and Bert. */
static void *give_to_and_fro(void *unused)
{
	uint32_t from = TWIN_OWNER_GUEST(ANNA), to = TWIN_OWNER_GUEST(BERT), turn, frame;

	(void)unused;
	for (turn = 0; turn < TURNS; turn++) {
		for (frame = 0; frame < SHARED; frame++) {
			while (twin_frame_move(&frames, frame, from, TWIN_OWNER_DOM0) != TWIN_OK)
				sched_yield();
			/* It has no pin: the owner's plain data of it is ours. */
			owner_now[frame] = to;
			CHECK_EQUAL(twin_frame_move(&frames, frame, TWIN_OWNER_DOM0, to), TWIN_OK);
		}
		from ^= to;
		to ^= from;
		from ^= to;
	}
	return NULL;
}

struct sender {
	uint32_t guest;
	struct twin_outgoing outgoing;
	struct twin_flight flights[PLACES];
	uint32_t stop;
	uint64_t wrong;
};

/* A pinned frame stays the guest's, whatever the other threads do. */
static void *send(void *data)
{
	struct sender *sender = data;
	uint32_t frame = 0, guest;
	uint64_t mine, cookie;

	while (!__atomic_load_n(&sender->stop, __ATOMIC_RELAXED)) {
		const struct twin_piece one = piece(frame, 0, 60);

		if (twin_outgoing_admit(&sender->outgoing, sender->guest, frame, &one, 1, &mine) ==
		    TWIN_ADMITTED) {
			sender->wrong += owner_now[frame] != TWIN_OWNER_GUEST(sender->guest);
			sender->wrong += twin_frame_owner(&frames, frame) !=
					 TWIN_OWNER_GUEST(sender->guest);
			twin_outgoing_complete(&sender->outgoing, mine, &guest, &cookie);
			sender->wrong += cookie != frame || guest != sender->guest;
		}
		frame = (frame + 1) % SHARED;
	}
	return NULL;
}

static void frames_change_hands_while_cpus_send(void)
{
	static struct sender senders[3] = { { .guest = ANNA }, { .guest = BERT }, { .guest = ANNA } };
	pthread_t threads[3], giver;
	uint32_t i;

	twin_frames_init(&frames, words, FRAMES);
	for (i = 0; i < SHARED; i++) {
		owner_now[i] = TWIN_OWNER_GUEST(ANNA);
		CHECK_EQUAL(twin_frame_move(&frames, i, TWIN_OWNER_NOBODY, owner_now[i]), TWIN_OK);
	}
	for (i = 0; i < 3; i++) {
		twin_outgoing_init(&senders[i].outgoing, &frames, senders[i].flights, PLACES);
		pthread_create(&threads[i], NULL, send, &senders[i]);
	}
	pthread_create(&giver, NULL, give_to_and_fro, NULL);
	pthread_join(giver, NULL);
	for (i = 0; i < 3; i++) {
		__atomic_store_n(&senders[i].stop, 1, __ATOMIC_RELAXED);
		pthread_join(threads[i], NULL);
		CHECK_EQUAL(senders[i].wrong, 0);
		CHECK_EQUAL(senders[i].outgoing.statistics.admitted,
			    senders[i].outgoing.statistics.completed);
	}
	CHECK_EQUAL(pins_of_all(), 0);
}

int main(void)
{
	RUN(a_guest_sends_its_own_frames);
	RUN(a_foreign_frame_is_refused_and_counted);
	RUN(a_piece_is_looked_at_as_a_whole);
	RUN(pieces_that_are_none_are_refused);
	RUN(one_foreign_piece_unpins_the_others);
	RUN(a_pinned_frame_keeps_its_owner);
	RUN(only_the_owner_can_give_a_frame_away);
	RUN(a_completion_counts_once);
	RUN(no_more_packets_than_places);
	RUN(pins_do_not_run_over_into_the_owner);
	RUN(frames_change_hands_while_cpus_send);
	return test_summary();
}
