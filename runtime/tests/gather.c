// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Guests' bytes for the hot routines: of a packet that is being sent and of no other memory, to
 * dom0's memory and nowhere else, with their sum.
 */
#define _GNU_SOURCE
#include <twin/gather.h>

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
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state % below);
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

static int gather(uint64_t ticket, uint64_t to, uint32_t offset, uint32_t length, uint32_t *sum)
{
	const struct twin_gather asked = { .to = to, .ticket = ticket, .offset = offset, .length = length };
	int status;

	twin_instance_hold(&instance);
	status = twin_gather(&instance, &outgoing, &asked, memory, &frames, sum);
	twin_instance_release(&instance);
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
		offset = any(n + 1);
		length = any((n - offset < TWIN_GATHER_MOST ? n - offset : TWIN_GATHER_MOST) + 1);
		to = DOM0 + any((uint32_t)((PAGES - 1) * PAGE) - TWIN_GATHER_MOST);
		*byte_at(to - DOM0 + length) = 0xee;
		CHECK_EQUAL(gather(ticket, to, offset, length, &sum), TWIN_OK);
		for (k = 0; k < length; k++)
			CHECK_EQUAL(*byte_at(to - DOM0 + k), packet[offset + k]);
		CHECK_EQUAL(*byte_at(to - DOM0 + length), 0xee);
		CHECK_EQUAL(sum, plain_sum(packet + offset, length));
		complete(ticket);
	}
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
	CHECK_EQUAL(gather(ticket, DOM0, 0, 0, &sum), TWIN_OK);
	CHECK_EQUAL(sum, 0);
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
	RUN(all_ones);
	RUN(nobodys_packet);
	RUN(more_than_at_once);
	RUN(not_to_dom0);
	return test_summary();
}
