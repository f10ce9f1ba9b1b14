// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Guests' bytes for the hot routines: of a packet that is being sent and of no other memory, to
 * dom0's memory and nowhere else, with their sum.
 */
#define _GNU_SOURCE
#include <twin/gather.h>

#include "random.h"
#include "switch.h"

#define FRAMES 16u		/* of the guest: frame 1 to FRAMES */
#define ANNA 0u

static uint64_t words[FRAMES + 2];
static struct twin_frames frames;
static struct twin_outgoing outgoing;
static struct twin_flight flights[4];
static uint8_t *guest;		/* its frames, none next to another */
static uint64_t random_state = 1;

static uint32_t any(uint32_t below)
{
	return (uint32_t)(next_random(&random_state) % below);
}

static uint8_t *guest_byte(uint64_t machine)
{
	return guest + 2 * (machine & ~(PAGE - 1)) + machine % PAGE;
}

static const void *memory(void *data, uint64_t machine)
{
	CHECK(data == &frames && machine >= PAGE && machine < (FRAMES + 1) * PAGE);
	return guest_byte(machine);
}

static void begin(void)
{
	uint32_t i;

	set_up();
	twin_frames_init(&frames, words, FRAMES + 2);
	CHECK_EQUAL(twin_outgoing_init(&outgoing, &frames, flights, 4), TWIN_OK);
	for (i = 1; i <= FRAMES; i++)
		CHECK_EQUAL(twin_frame_move(&frames, i, TWIN_OWNER_NOBODY, TWIN_OWNER_GUEST(ANNA)), TWIN_OK);
}

static uint64_t admit(const struct twin_piece *piece, uint32_t pieces)
{
	uint64_t ticket = 0;

	CHECK_EQUAL(twin_outgoing_admit(&outgoing, ANNA, 7, piece, pieces, &ticket), TWIN_ADMITTED);
	return ticket;
}

static void complete(uint64_t ticket)
{
	uint64_t cookie;
	uint32_t who;

	CHECK_EQUAL(twin_outgoing_complete(&outgoing, ticket, &who, &cookie), TWIN_OK);
}

/* Where lists are: they cross two pages of dom0's. */
#define LIST ((PAGES - 1) * PAGE - 64)

static int gather_list(const struct twin_gather *asked)
{
	int status;

	twin_instance_hold(&instance);
	status = twin_gather(&instance, &outgoing, asked, memory, &frames);
	twin_instance_release(&instance);
	return status;
}

static void set_word(uint32_t number, uint64_t word)
{
	uint32_t i;

	for (i = 0; i < 8; i++)
		*byte_at(LIST + number * 8 + i) = (uint8_t)(word >> 8 * i);
}

static uint64_t word_at(uint32_t number)
{
	uint64_t word = 0;
	uint32_t i;

	for (i = 8; i-- > 0;)
		word = word << 8 | *byte_at(LIST + number * 8 + i);
	return word;
}

/* To one place, without a list and with one: the same happens. */
static int gather(uint64_t ticket, uint64_t to, uint32_t offset, uint32_t length, uint32_t *sum)
{
	struct twin_gather asked = { .list = to, .ticket = ticket, .offset = offset, .bytes = length };
	uint8_t alone[TWIN_GATHER_MOST];
	int status, first;
	uint32_t i;

	set_word(0, to);
	set_word(1, 0xeeee);
	first = gather_list(&asked);
	CHECK_EQUAL(word_at(0), to);
	for (i = 0; first == TWIN_OK && i < length; i++) {
		alone[i] = *byte_at(to - DOM0 + i);
		*byte_at(to - DOM0 + i) = 0xcc;
	}
	asked.list = DOM0 + LIST;
	asked.each = length;
	status = gather_list(&asked);
	CHECK_EQUAL(first, status);
	for (i = 0; status == TWIN_OK && i < length; i++)
		CHECK_EQUAL(alone[i], *byte_at(to - DOM0 + i));
	if (status == TWIN_OK) {
		CHECK(word_at(0) <= 0xffff);
		*sum = (uint32_t)word_at(0);
	} else {
		CHECK_EQUAL(word_at(0), to);
	}
	CHECK_EQUAL(word_at(1), 0xeeee);
	return status;
}

/* A word by its bytes, the first one lowest (RFC 1071 in the byte order of x86). */
static uint32_t plain_sum(const uint8_t *bytes, uint32_t length)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < length; i++)
		sum += i % 2 ? (uint32_t)bytes[i] << 8 : bytes[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum;
}

static void any_stretch_of_any_packet(void)
{
	static uint8_t packet[TWIN_PIECES * 2 * TWIN_PAGE_SIZE];
	struct twin_piece piece[TWIN_PIECES];
	uint32_t round, i, k, n, pieces, offset, length, sum;
	uint64_t ticket, to;

	begin();
	for (i = 1; i <= FRAMES; i++)
		for (k = 0; k < PAGE; k++)
			*guest_byte(i * PAGE + k) = (uint8_t)any(256);
	for (round = 0; round < 4000; round++) {
		pieces = 1 + any(TWIN_PIECES);
		for (i = 0, n = 0; i < pieces; i++) {
			length = 1 + any(round % 2 ? 40 : 5000);
			piece[i] = (struct twin_piece){
				.address = PAGE + any((FRAMES - 1) * PAGE - 5000), .length = length,
			};
			for (k = 0; k < length; k++)
				packet[n++] = *guest_byte(piece[i].address + k);
		}
		ticket = admit(piece, pieces);
		offset = any(n);
		length = any(n - offset < TWIN_GATHER_MOST ? n - offset : TWIN_GATHER_MOST) + 1;
		to = DOM0 + any(LIST - 1 - TWIN_GATHER_MOST);
		*byte_at(to - DOM0 + length) = 0xee;
		CHECK_EQUAL(gather(ticket, to, offset, length, &sum), TWIN_OK);
		for (k = 0; k < length; k++)
			CHECK_EQUAL(*byte_at(to - DOM0 + k), packet[offset + k]);
		CHECK_EQUAL(*byte_at(to - DOM0 + length), 0xee);
		CHECK_EQUAL(sum, plain_sum(packet + offset, length));
		complete(ticket);
	}
}

/* Several places at once, in any order, and the last one with fewer bytes. */
static void any_places(void)
{
	static uint8_t packet[TWIN_PIECES * TWIN_PAGE_SIZE];
	struct twin_piece piece[TWIN_PIECES];
	uint64_t to[TWIN_GATHERS];
	uint32_t round, i, k, n, bytes, length, places;
	struct twin_gather asked = { .list = DOM0 + LIST };

	begin();
	for (i = 1; i <= FRAMES; i++)
		for (k = 0; k < PAGE; k++)
			*guest_byte(i * PAGE + k) = (uint8_t)any(256);
	for (round = 0; round < 2000; round++) {
		for (i = 0, n = 0; i < TWIN_PIECES; i++) {
			length = 1 + any(round % 2 ? 100 : TWIN_PAGE_SIZE);
			piece[i] = (struct twin_piece){
				.address = PAGE + any((FRAMES - 1) * PAGE), .length = length,
			};
			for (k = 0; k < length; k++)
				packet[n++] = *guest_byte(piece[i].address + k);
		}
		asked.ticket = admit(piece, TWIN_PIECES);
		asked.offset = any(n);
		asked.each = 1 + any(400);
		bytes = n - asked.offset;
		bytes = bytes < asked.each * TWIN_GATHERS ? bytes : asked.each * TWIN_GATHERS;
		asked.bytes = 1 + any(bytes);
		places = (asked.bytes + asked.each - 1) / asked.each;
		/* none in another, and across pages */
		for (i = 0; i < TWIN_GATHERS; i++)
			to[i] = DOM0 + (i + round) % TWIN_GATHERS * 410 + PAGE - 200;
		for (i = 0; i < TWIN_GATHERS; i++) {
			set_word(i, to[i]);
			*byte_at(to[i] - DOM0 + asked.each) = 0xee;
		}
		CHECK_EQUAL(gather_list(&asked), TWIN_OK);
		for (i = 0, n = asked.offset; i < places; i++, n += length) {
			length = i + 1 < places ? asked.each : asked.bytes - i * asked.each;
			for (k = 0; k < length; k++)
				CHECK_EQUAL(*byte_at(to[i] - DOM0 + k), packet[n + k]);
			CHECK_EQUAL(*byte_at(to[i] - DOM0 + asked.each), 0xee);
			CHECK_EQUAL(word_at(i), plain_sum(packet + n, length));
		}
		for (; i < TWIN_GATHERS; i++)
			CHECK_EQUAL(word_at(i), to[i]);
		complete(asked.ticket);
	}
}

/* Places that lie in each other, and in the list: what was read of it first counts, and the sums are last. */
static void places_in_places(void)
{
	const struct twin_piece piece = { .address = PAGE, .length = 300 };
	struct twin_gather asked = { .list = DOM0 + LIST, .bytes = 300, .each = 100 };
	uint32_t i;

	begin();
	for (i = 0; i < 300; i++)
		*guest_byte(PAGE + i) = (uint8_t)(i + 1);
	asked.ticket = admit(&piece, 1);
	set_word(0, DOM0 + LIST - 50);
	set_word(1, DOM0 + 1000);
	set_word(2, DOM0 + 1050);
	CHECK_EQUAL(gather_list(&asked), TWIN_OK);
	for (i = 0; i < 3; i++) {
		uint8_t bytes[100];
		uint32_t k;

		for (k = 0; k < 100; k++)
			bytes[k] = (uint8_t)(100 * i + k + 1);
		CHECK_EQUAL(word_at(i), plain_sum(bytes, 100));
	}
	for (i = 0; i < 50; i++) {
		CHECK_EQUAL(*byte_at(LIST - 50 + i), (uint8_t)(i + 1));
		CHECK_EQUAL(*byte_at(1000 + i), (uint8_t)(100 + i + 1));
		CHECK_EQUAL(*byte_at(1050 + i), (uint8_t)(200 + i + 1));
	}
	for (i = 24; i < 50; i++)	/* behind the sums */
		CHECK_EQUAL(*byte_at(LIST + i), (uint8_t)(50 + i + 1));
}

/* None, too many, and more than any is: nothing is copied, nor is the list read. */
static void numbers_of_places(void)
{
	const struct twin_piece piece[2] = { { .address = PAGE, .length = 8 * PAGE },
					     { .address = PAGE, .length = 8 * PAGE } };
	static const uint32_t wrong[][2] = {	/* bytes, each */
		{ 0, 0 }, { 0, 100 }, { TWIN_GATHER_MOST + 1, 0 }, { TWIN_GATHERS + 1, 1 }, { 100 * TWIN_GATHERS + 1, 100 },
		{ UINT32_MAX, 1 }, { UINT32_MAX, UINT32_MAX }, { 1, UINT32_MAX }, { 100, 1u << 28 },
		{ TWIN_GATHER_MOST + 1, TWIN_GATHER_MOST + 1 }, { UINT32_MAX, TWIN_GATHER_MOST },
		{ UINT32_MAX, 0 },
	};
	struct twin_gather asked = { .list = 0 };	/* is not dom0's */
	uint32_t i;

	begin();
	asked.ticket = admit(piece, 2);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		asked.bytes = wrong[i][0];
		asked.each = wrong[i][1];
		CHECK_EQUAL(gather_list(&asked), TWIN_INVALID);
	}
	asked.bytes = TWIN_GATHERS * (asked.each = TWIN_GATHER_MOST);
	asked.offset = 1;		/* one byte is missing */
	CHECK_EQUAL(gather_list(&asked), TWIN_INVALID);
	asked.offset = 0;
	CHECK_EQUAL(gather_list(&asked), TWIN_ABORTED);
	asked.list = DOM0 + LIST;
	for (i = 0; i < TWIN_GATHERS; i++)
		set_word(i, DOM0);
	CHECK_EQUAL(gather_list(&asked), TWIN_OK);
}

/* One of the places, or the list, or its end is not dom0's. */
static void lists_that_are_not_dom0s(void)
{
	static const uint64_t list[] = { 0, DOM0 - 8, DOM0 + PAGES * PAGE, DOM0 + PAGES * PAGE - 16, UINT64_MAX - 7,
					 UINT64_MAX - 15 };
	static const uint64_t place[] = { 0, DOM0 - 1, DOM0 + PAGES * PAGE - 99, UINT64_MAX, UINT64_MAX - 98 };
	const struct twin_piece piece = { .address = PAGE, .length = 300 };
	struct twin_gather asked = { .bytes = 300, .each = 100 };
	uint32_t i, k;

	begin();
	asked.ticket = admit(&piece, 1);
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		asked.list = list[i];
		CHECK_EQUAL(gather_list(&asked), TWIN_ABORTED);
	}
	asked.list = DOM0 + LIST;
	for (i = 0; i < sizeof(place) / sizeof(place[0]); i++) {
		for (k = 0; k < 3; k++)
			set_word(k, DOM0 + 1000 * k);
		set_word(1, place[i]);
		CHECK_EQUAL(gather_list(&asked), TWIN_ABORTED);
		CHECK_EQUAL(word_at(0), DOM0);
		CHECK_EQUAL(word_at(1), place[i]);
	}
	complete(asked.ticket);
}

/* Sums whose carries go all the way. */
static void all_ones(void)
{
	const struct twin_piece piece = { .address = PAGE, .length = 4 * TWIN_PAGE_SIZE };
	uint64_t ticket;
	uint32_t sum, i;

	begin();
	for (i = 1; i <= FRAMES; i++)
		memset(guest_byte(i * PAGE), 0xff, PAGE);
	ticket = admit(&piece, 1);
	CHECK_EQUAL(gather(ticket, DOM0, 1, 4095, &sum), TWIN_OK);
	CHECK_EQUAL(sum, 0xff);		/* 2,047 words of ones, which are 0, and a byte */
	CHECK_EQUAL(gather(ticket, DOM0, 0, 4096, &sum), TWIN_OK);
	CHECK_EQUAL(sum, 0xffff);
}

static void nobodys_packet(void)
{
	const struct twin_piece piece[2] = { { .address = PAGE, .length = 100 },
					     { .address = 3 * PAGE, .length = 50 } };
	uint32_t sum = 77, i;
	uint64_t ticket;

	begin();
	ticket = admit(piece, 2);
	for (i = 0; i < 200; i++)
		*byte_at(i) = 0xee;
	CHECK_EQUAL(gather(ticket, DOM0, 0, 151, &sum), TWIN_INVALID);
	CHECK_EQUAL(gather(ticket, DOM0, 150, 1, &sum), TWIN_INVALID);
	CHECK_EQUAL(gather(ticket, DOM0, UINT32_MAX, 2, &sum), TWIN_INVALID);
	CHECK_EQUAL(gather(ticket, DOM0, 2, UINT32_MAX, &sum), TWIN_INVALID);
	CHECK_EQUAL(gather(ticket + 1, DOM0, 0, 10, &sum), TWIN_INVALID);
	CHECK_EQUAL(gather(ticket + (1ull << 32), DOM0, 0, 10, &sum), TWIN_INVALID);
	CHECK_EQUAL(gather(UINT64_MAX, DOM0, 0, 10, &sum), TWIN_INVALID);
	CHECK_EQUAL(gather(0, DOM0, 0, 10, &sum), TWIN_INVALID);
	complete(ticket);
	CHECK_EQUAL(gather(ticket, DOM0, 0, 10, &sum), TWIN_INVALID);
	for (i = 0; i < 200; i++)
		CHECK_EQUAL(*byte_at(i), 0xee);
	CHECK_EQUAL(sum, 77);
}

static void more_than_at_once(void)
{
	const struct twin_piece piece = { .address = PAGE, .length = 2 * TWIN_PAGE_SIZE };
	uint64_t ticket;
	uint32_t sum;

	begin();
	ticket = admit(&piece, 1);
	CHECK_EQUAL(gather(ticket, DOM0, 0, TWIN_GATHER_MOST + 1, &sum), TWIN_INVALID);
	CHECK_EQUAL(gather(ticket, DOM0, 0, TWIN_GATHER_MOST, &sum), TWIN_OK);
	CHECK_EQUAL(gather(ticket, DOM0, 0, 0, &sum), TWIN_INVALID);
}

static void not_to_dom0(void)
{
	const struct twin_piece piece = { .address = PAGE, .length = 3000 };
	uint64_t ticket;
	uint32_t sum = 77;

	begin();
	ticket = admit(&piece, 1);
	CHECK_EQUAL(gather(ticket, 0, 0, 100, &sum), TWIN_ABORTED);
	CHECK_EQUAL(gather(ticket, UINT64_MAX - 5, 0, 100, &sum), TWIN_ABORTED);
	CHECK_EQUAL(gather(ticket, DOM0 - 50, 0, 100, &sum), TWIN_ABORTED);
	CHECK_EQUAL(gather(ticket, DOM0 + PAGES * PAGE - 50, 0, 100, &sum), TWIN_ABORTED);
	CHECK_EQUAL(sum, 77);
	gone = true;
	CHECK_EQUAL(gather(ticket, DOM0 + 2 * PAGE, 0, 100, &sum), TWIN_ABORTED);
}

int main(void)
{
	uint32_t i;

	dom0 = make_dom0();
	guest = mmap(NULL, 2 * (FRAMES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < FRAMES + 2; i++)
		mprotect(guest + 2 * i * PAGE, PAGE, PROT_READ | PROT_WRITE);
	RUN(any_stretch_of_any_packet);
	RUN(any_places);
	RUN(places_in_places);
	RUN(numbers_of_places);
	RUN(lists_that_are_not_dom0s);
	RUN(all_ones);
	RUN(nobodys_packet);
	RUN(more_than_at_once);
	RUN(not_to_dom0);
	return test_summary();
}
