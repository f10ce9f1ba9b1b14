// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reports: descriptors up to one with RS are the card's, and the driver's again, together.
 */
#include "dma-rings.h"

#define QUIET(length) ((uint64_t)(length) | 0x23100000)		/* EOP without RS */
#define PART_RS(length) ((uint64_t)(length) | 0x2a100000)	/* RS without EOP */

static uint64_t shown(void)
{
	struct twin_dma_statistics counts;
	struct twin_dma_report last;

	twin_dma_events(&dma, &counts, &last);
	return counts.shown;
}

static void what_has_rs_in_its_middle_comes_back_in_parts(void)
{
	take();
	put(TX, 0, 0, CONTEXT);
	put(TX, 1, POOL * PAGE, PART_RS(10));
	put(TX, 2, POOL * PAGE, PART(10));
	put(TX, 3, POOL * PAGE, DATA(10));
	CHECK(ring(TX, 4));
	/* DD of a later one tells nothing of an earlier one that has RS. */
	card_sends(3, 4);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(shown(), 0);
	CHECK_EQUAL(driver[TX][3].control, DATA(10));
	card_sends(0, 2);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(shown(), 4);
	CHECK_EQUAL(driver[TX][1].control, PART_RS(10) | DD);
	CHECK_EQUAL(driver[TX][2].control, PART(10));
	CHECK_EQUAL(driver[TX][3].control, DATA(10) | DD);
	put(TX, 4, POOL * PAGE, PART_RS(10));
	put(TX, 5, POOL * PAGE, DATA(10));
	CHECK(ring(TX, 6));
	card_sends(4, 5);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(shown(), 5);
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
}

/* It is the card's, and pinned, until one with RS is done; or until the rings are given back. */
static void what_ends_without_rs_is_the_cards_until_the_next_that_has_it(void)
{
	static struct twin_flight flights[2];
	const struct twin_piece piece = { .address = 33 * PAGE, .length = 100 };
	struct twin_outgoing outgoing;
	uint64_t ticket, cookie;
	uint32_t guest, turn;

	for (turn = 0; turn < 2; turn++) {
		take();
		CHECK_EQUAL(twin_outgoing_init(&outgoing, &frames, flights, 2), TWIN_OK);
		CHECK_EQUAL(twin_outgoing_admit(&outgoing, ANNA, 1, &piece, 1, &ticket),
			    TWIN_ADMITTED);
		put(TX, 0, POOL * PAGE, PART(10));
		put(TX, 1, 33 * PAGE, QUIET(100));
		CHECK(ring(TX, 2));
		CHECK_EQUAL(twin_outgoing_complete(&outgoing, ticket, &guest, &cookie), TWIN_OK);
		card_sends(0, 2);
		/* DD that nobody asked for is no report, whoever wrote it. */
		copy[TX][1].control |= DD;
		driver[TX][1].control |= DD | 1 << 27;
		CHECK(twin_dma_show(&dma, &report));
		CHECK_EQUAL(shown(), 0);
		CHECK_EQUAL(twin_frame_pins(&frames, 33), 1);
		CHECK_EQUAL(give_away(POOL), TWIN_BUSY);
		if (turn) {
			put(TX, 2, POOL * PAGE, LEGACY(60));
			CHECK(ring(TX, 3));
			CHECK(twin_dma_show(&dma, &report));
			CHECK_EQUAL(shown(), 0);
			card_sends(2, 3);
			CHECK(twin_dma_show(&dma, &report));
			CHECK_EQUAL(shown(), 3);
			CHECK_EQUAL(driver[TX][2].control, LEGACY(60) | DD);
			CHECK_EQUAL(twin_frame_pins(&frames, 33), 0);
			CHECK_EQUAL(give_away(POOL), TWIN_OK);
		}
		twin_dma_give_back(&dma);
		CHECK_EQUAL(pins_of_all(), 0);
	}
}

#define PARTS 5

/* A report of five, of which the third is in a guest's frame that the card pins. */
static uint32_t put_report(uint32_t first, uint64_t guests)
{
	uint32_t part;

	for (part = 0; part < PARTS; part++)
		put(TX, (first + part) % COUNT, part == 2 ? guests : (POOL + part) * PAGE,
		    part == PARTS - 1 ? DATA(50) : PART(50));
	return (first + PARTS) % COUNT;
}

/* Wherever it lies in the ring, its end included, and whichever of it is changed: what is before
 * it is the driver's, nothing behind it is, and DD is shown only when all are as they were. */
static void a_changed_part_of_a_report_is_noticed_wherever_it_is(void)
{
	static struct twin_flight flights[1];
	const struct twin_piece piece = { .address = 33 * PAGE, .length = 100 };
	struct twin_outgoing outgoing;
	uint32_t first, part, guest, tail, last;
	uint64_t ticket, cookie, was;

	for (first = 0; first < COUNT; first++) {
		for (part = 0; part < PARTS; part++) {
			const uint32_t bad = (first + part) % COUNT;

			set_up();
			config[TX].head = config[TX].tail = doorbell[TX] = first;
			CHECK_EQUAL(twin_dma_take(&dma, config), TWIN_OK);
			CHECK_EQUAL(twin_outgoing_init(&outgoing, &frames, flights, 1), TWIN_OK);
			CHECK_EQUAL(twin_outgoing_admit(&outgoing, ANNA, 1, &piece, 1, &ticket),
				    TWIN_ADMITTED);
			tail = put_report(first, 33 * PAGE);
			last = (first + PARTS - 1) % COUNT;
			CHECK(ring(TX, tail));
			CHECK_EQUAL(twin_outgoing_complete(&outgoing, ticket, &guest, &cookie),
				    TWIN_OK);
			/* What the driver makes of its second word is nothing to the check. */
			driver[TX][last].control = 0;
			was = driver[TX][bad].address;
			driver[TX][bad].address = 3 * PAGE;
			card_sends(first, tail);
			CHECK(!twin_dma_show(&dma, &report));
			CHECK_EQUAL(report.fault, TWIN_DMA_CHANGED);
			CHECK_EQUAL(report.index, bad);
			CHECK_EQUAL(report.address, 3 * PAGE);
			CHECK_EQUAL(shown(), part);
			CHECK_EQUAL(driver[TX][last].control, 0);
			/* It is found again, and all is fine without it. */
			CHECK(!twin_dma_show(&dma, &report));
			CHECK_EQUAL(report.index, bad);
			driver[TX][bad].address = was;
			CHECK(twin_dma_show(&dma, &report));
			CHECK_EQUAL(shown(), PARTS);
			CHECK_EQUAL(driver[TX][last].control, DATA(50) | DD);
			CHECK_EQUAL(twin_frame_pins(&frames, 33), 0);
			twin_dma_give_back(&dma);
			CHECK_EQUAL(pins_of_all(), 0);
		}
	}
}

/* A batch that is refused leaves what it follows as it was: the card's, up to the next RS. */
static void a_refused_batch_ends_no_report(void)
{
	take();
	put(TX, 0, POOL * PAGE, PART(50));
	CHECK(ring(TX, 1));
	put(TX, 1, POOL * PAGE, PART(50));
	put(TX, 2, POOL * PAGE, DATA(50));
	put(TX, 3, 3 * PAGE, DATA(50));
	CHECK(!ring(TX, 4));
	copy[TX][2].control |= DD;
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(shown(), 0);
	put(TX, 2, POOL * PAGE, PART(50));
	put(TX, 3, POOL * PAGE, DATA(50));
	CHECK(ring(TX, 4));
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(shown(), 0);
	card_sends(0, 4);
	CHECK(twin_dma_show(&dma, &report));
	CHECK_EQUAL(shown(), 4);
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
}

int main(void)
{
	RUN(what_has_rs_in_its_middle_comes_back_in_parts);
	RUN(what_ends_without_rs_is_the_cards_until_the_next_that_has_it);
	RUN(a_changed_part_of_a_report_is_noticed_wherever_it_is);
	RUN(a_refused_batch_ends_no_report);
	return test_summary();
}
