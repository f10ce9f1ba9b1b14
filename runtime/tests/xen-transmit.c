// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets that the driver has, and completions, which are in dom0's memory and may say
 * anything: platform/xen/transmit.c.
 */
#include <stdlib.h>
#include <string.h>

#include "../platform/xen/platform.h"
#include "test.h"

/* What only Xen may execute. */
#define xen_interrupts_off() 0ull
#define xen_interrupts_restore(flags) ((void)(flags))
#define xen_alias_ready(processor) ((void)(processor))
#define xen_processor() 0u

#include "../platform/xen/transmit.c"
#include "../platform/xen/import.c"

/* ---- What stands for Xen and dom0 --------------------------------------------------------- */

const uint64_t twin_value_directmap = 0;
struct xen_device xen_device;
struct twin_xen_status xen_counts;
const char twin_function_hot_transmit[1];

static struct hot_shared shared[HOT_CPUS];
static struct hot_tx_request requests[HOT_REQUESTS];
static struct hot_tx_done completions[HOT_CPUS][HOT_TX_DONE];
static uint32_t owner;		/* of the queue's lock */
static uint8_t lock;
static bool is_gone;		/* dom0's memory is not there */
static int status;		/* of the driver's run */
static uint32_t result;		/* of each packet */
static uint32_t pages;

void *alloc_xenheap_pages(unsigned int order, unsigned int flags)
{
	(void)flags;
	pages++;
	return aligned_alloc(TWIN_PAGE_SIZE, (uint64_t)TWIN_PAGE_SIZE << order);
}

void free_xenheap_pages(void *page, unsigned int order)
{
	(void)order;
	pages--;
	free(page);
}

bool xen_dom0_read(void *to, uint64_t from, uint32_t bytes)
{
	if (!is_gone)
		memcpy(to, (const void *)from, bytes);
	return !is_gone;
}

bool xen_dom0_write(uint64_t to, const void *from, uint32_t bytes)
{
	if (!is_gone)
		memcpy((void *)to, from, bytes);
	return !is_gone;
}

bool xen_dom0_read_ready(void *to, uint64_t from, uint32_t bytes)
{
	return xen_dom0_read(to, from, bytes);
}

bool xen_dom0_write_ready(uint64_t to, const void *from, uint32_t bytes)
{
	return xen_dom0_write(to, from, bytes);
}

void xen_receive_put(uint64_t data, uint32_t length, uint32_t flags, uint16_t tag)
{
	(void)data, (void)length, (void)flags, (void)tag;
}

int xen_run(const void *function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t *sent)
{
	uint32_t i;

	(void)a0;
	CHECK(function == twin_function_hot_transmit);
	CHECK_EQUAL(a1, 0);
	for (i = 0; i < a2; i++)
		requests[i].result = result;
	*sent = a2;
	return status;
}

static bool rung;	/* whether what the driver has rung is fine */
static uint32_t rings;

bool xen_dma_ring(void)
{
	rings++;
	return rung;
}

bool xen_dma_look(void)
{
	return false;
}

static void start(void)
{
	uint32_t i;

	xen_transmit_destroy();
	CHECK_EQUAL(pages, 0);
	memset(shared, 0, sizeof(shared));
	for (i = 0; i < HOT_CPUS; i++) {
		shared[i].requests = (uint64_t)requests;
		shared[i].tx_done = (uint64_t)completions[i];
	}
	xen_device.given.hot_shared = (uint64_t)shared;
	xen_device.given.queue_owner = (uint64_t)&owner;
	xen_device.given.queue_lock = (uint64_t)&lock;
	owner = HOT_QUEUE_OWNER;
	lock = 1;
	is_gone = false;
	status = TWIN_OK;
	result = HOT_SENT;
	rung = true;
	CHECK_EQUAL(xen_transmit_create(), 0);
}

/* A packet with so many bytes in buffers: the first of them. */
static uint32_t send(uint32_t rest)
{
	static uint8_t header[HOT_HEADER];
	struct xen_packet packet = {
		.header = header, .header_length = HOT_HEADER, .rest = rest,
		.buffer = rest ? xen_buffer_get((rest + TWIN_PAGE_SIZE - 1) / TWIN_PAGE_SIZE) :
			  XEN_NO_BUFFER,
	};

	CHECK(!rest || packet.buffer != XEN_NO_BUFFER);
	CHECK_EQUAL(xen_transmit(&packet, 1), status == TWIN_OK);
	return packet.buffer;
}

/* ---- Bytes for the hot routines ---- */

static enum xen_gathered gather(uint64_t cookie, void *to, uint32_t offset, uint32_t length,
				uint32_t *sum)
{
	uint64_t list[2] = { (uint64_t)to, 0xeeee };
	struct twin_gather asked = { .list = (uint64_t)to, .ticket = cookie, .offset = offset, .bytes = length };
	uint8_t alone[TWIN_GATHER_MOST];
	enum xen_gathered gathered, first;

	/* without a list: the same happens */
	first = xen_transmit_gather(&asked);
	if (first == XEN_GATHERED) {
		memcpy(alone, to, length);
		memset(to, 0xcc, length);
	}
	asked.list = (uint64_t)list;
	asked.each = length;
	gathered = xen_transmit_gather(&asked);
	CHECK_EQUAL(first, gathered);
	if (gathered == XEN_GATHERED)
		CHECK(!memcmp(alone, to, length));
	if (gathered == XEN_GATHERED)
		*sum = (uint32_t)list[0];
	else
		CHECK_EQUAL(list[0], (uint64_t)to);
	CHECK_EQUAL(list[1], 0xeeee);
	return gathered;
}

/* A packet in three buffers, whose bytes are known. */
static uint32_t send_known(uint32_t rest)
{
	uint32_t first = send(rest), i;

	for (i = 0; i < rest; i++)
		((uint8_t *)xen_buffer_page(first, i))[i % TWIN_PAGE_SIZE] = (uint8_t)(i * 7 + (i >> 8));
	return first;
}

/* dom0's memory says that a packet is sent. */
static void say(uint32_t processor, uint64_t cookie)
{
	const uint32_t at = shared[processor].tx_done_produce++ % HOT_TX_DONE;

	completions[processor][at].cookie = cookie;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void packets_come_back(void)
{
	uint32_t one, three;

	start();
	one = send(100);
	three = send(3 * TWIN_PAGE_SIZE);
	send(0);
	CHECK_EQUAL(xen_transmit_in_flight(), 3);
	CHECK_EQUAL(transmit.free_count, BUFFERS - 4);
	say(1, three + 1);
	say(0, 0);
	say(2, one + 1);
	CHECK_EQUAL(xen_transmit_complete(), 3);
	CHECK_EQUAL(xen_transmit_in_flight(), 0);
	CHECK_EQUAL(transmit.free_count, BUFFERS);
	CHECK_EQUAL(shared[1].tx_done_consume, 1);
}

/* What was not sent, or has come back, does not come back: the card may still read the rest. */
static void completions_of_nothing_are_nothing(void)
{
	uint32_t buffer, i;

	start();
	buffer = send(2 * TWIN_PAGE_SIZE);
	for (i = 0; i < 50; i++) {
		say(0, 0);
		say(0, transmit.next[buffer] + 1);	/* its second page */
		say(0, BUFFERS + 1);
		say(0, UINT64_MAX);
		say(0, (buffer + 1) | 1ull << 32);
		say(0, transmit.free[0] + 1);
	}
	xen_transmit_complete();
	CHECK_EQUAL(xen_transmit_in_flight(), 1);
	CHECK_EQUAL(transmit.free_count, BUFFERS - 2);
	say(0, buffer + 1);
	say(0, buffer + 1);
	xen_transmit_complete();
	CHECK_EQUAL(xen_transmit_in_flight(), 0);
	CHECK_EQUAL(transmit.free_count, BUFFERS);
	CHECK_EQUAL(xen_counts.completed - xen_counts.transmitted, 0);
}

/* A packet without a buffer has no name: as many completions as there are such packets. */
static void a_short_packet_completes_no_other(void)
{
	uint32_t buffer;

	start();
	buffer = send(100);
	send(0);
	say(0, 0);
	say(0, 0);
	xen_transmit_complete();
	CHECK_EQUAL(xen_transmit_in_flight(), 1);
	say(0, buffer + 1);
	xen_transmit_complete();
	CHECK_EQUAL(xen_transmit_in_flight(), 0);
}

/* The driver ended, or dom0's memory went, while packets were given: nobody completes them. */
static void what_was_given_up_stays_the_cards(void)
{
	uint32_t buffer, other;

	start();
	other = send(100);
	status = TWIN_ABORTED;
	buffer = send(100);
	CHECK_EQUAL(xen_transmit_in_flight(), 1);
	say(0, buffer + 1);
	say(0, other + 1);
	say(0, buffer + 1);
	xen_transmit_complete();
	CHECK_EQUAL(xen_transmit_in_flight(), 0);
	CHECK_EQUAL(transmit.free_count, BUFFERS - 1);
}

/* It had ended before, and nothing of it has run: the packet is the caller's. */
static void what_no_driver_has_had_comes_back(void)
{
	start();
	status = TWIN_DEAD;
	xen_buffer_return(send(2 * TWIN_PAGE_SIZE));
	CHECK_EQUAL(transmit.free_count, BUFFERS);
	status = TWIN_ABORTED;
	xen_buffer_return(send(2 * TWIN_PAGE_SIZE));
	CHECK_EQUAL(transmit.free_count, BUFFERS - 2);
}

/* Or dom0 spins for it. Another's is not freed. */
static void a_dead_driver_has_no_queue(void)
{
	start();
	send(100);
	CHECK_EQUAL(lock, 1);
	status = TWIN_ABORTED;
	owner = 0;	/* dom0's processor 0 */
	send(100);
	owner = HOT_QUEUE_OWNER + 1;
	send(100);
	CHECK_EQUAL(owner, HOT_QUEUE_OWNER + 1);
	CHECK_EQUAL(lock, 1);
	owner = HOT_QUEUE_OWNER;
	send(100);
	CHECK_EQUAL(owner, UINT32_MAX);
	CHECK_EQUAL(lock, 0);
	is_gone = true;
	owner = HOT_QUEUE_OWNER;
	send(100);
	CHECK_EQUAL(owner, HOT_QUEUE_OWNER);
}

static void nonsense_in_dom0s_memory(void)
{
	start();
	send(100);
	shared[0].tx_done_produce = HOT_TX_DONE + 1;
	CHECK_EQUAL(xen_transmit_complete(), 0);
	shared[0].tx_done_produce = 5;
	is_gone = true;
	CHECK_EQUAL(xen_transmit_complete(), 0);
	is_gone = false;
	result = HOT_BUSY;
	put_buffer(send(100));
	CHECK_EQUAL(xen_transmit_in_flight(), 1);
	CHECK_EQUAL(transmit.free_count, BUFFERS - 1);
}

static void bytes_of_a_packet_that_is_sent(void)
{
	static const uint32_t stretch[][2] = { { 0, 100 }, { 1, 99 }, { 4090, 20 }, { 8191, 2 },
					       { 0, 4096 }, { 4095, 4096 }, { 8999, 1 }, { 0, 1 } };
	uint8_t to[TWIN_GATHER_MOST + 1];
	uint32_t one, i, k, at, length, sum, right;

	start();
	one = send_known(9000);
	for (i = 0; i < sizeof(stretch) / sizeof(stretch[0]); i++) {
		at = stretch[i][0];
		length = stretch[i][1];
		to[length] = 0xee;
		CHECK_EQUAL(gather(one + 1, to, at, length, &sum), XEN_GATHERED);
		for (k = 0, right = 0; k < length; k++) {
			CHECK_EQUAL(to[k], (uint8_t)((at + k) * 7 + ((at + k) >> 8)));
			right += k % 2 ? to[k] << 8 : to[k];
		}
		while (right >> 16)
			right = (right & 0xffff) + (right >> 16);
		CHECK_EQUAL(sum, right);
		CHECK_EQUAL(to[length], 0xee);
	}
	say(0, one + 1);
	CHECK_EQUAL(xen_transmit_complete(), 1);
	CHECK_EQUAL(gather(one + 1, to, 0, 1, &sum), XEN_GATHERED_NOTHING);
}

/* Several places at once, the last one with fewer bytes. */
static void bytes_to_several_places(void)
{
	static uint8_t to[TWIN_GATHERS][600];
	uint64_t list[TWIN_GATHERS + 1];
	struct twin_gather asked = { .list = (uint64_t)list, .offset = 77, .bytes = 500 * TWIN_GATHERS - 123, .each = 500 };
	uint32_t i, k, length;
	uint64_t right;

	start();
	asked.ticket = send_known(9000) + 1;
	memset(to, 0xee, sizeof(to));
	for (i = 0; i < TWIN_GATHERS; i++)
		list[i] = (uint64_t)to[TWIN_GATHERS - 1 - i];
	list[i] = 0xeeee;
	CHECK_EQUAL(xen_transmit_gather(&asked), XEN_GATHERED);
	for (i = 0; i < TWIN_GATHERS; i++) {
		const uint8_t *place = to[TWIN_GATHERS - 1 - i];

		length = i + 1 < TWIN_GATHERS ? 500 : 500 - 123;
		for (k = 0, right = 0; k < length; k++) {
			const uint32_t at = 77 + i * 500 + k;

			CHECK_EQUAL(place[k], (uint8_t)(at * 7 + (at >> 8)));
			right += k % 2 ? place[k] << 8 : place[k];
		}
		while (right >> 16)
			right = (right & 0xffff) + (right >> 16);
		CHECK_EQUAL(list[i], right);
		CHECK_EQUAL(place[length], 0xee);
	}
	CHECK_EQUAL(list[TWIN_GATHERS], 0xeeee);
}

/* None, too many, and more than any is: the list is not read either. */
static void numbers_of_places(void)
{
	static const uint32_t wrong[][2] = {	/* bytes, each */
		{ 0, 0 }, { 0, 100 }, { TWIN_GATHER_MOST + 1, 0 }, { UINT32_MAX, 0 },
		{ TWIN_GATHERS + 1, 1 }, { UINT32_MAX, 1 },
		{ UINT32_MAX, UINT32_MAX }, { 1, UINT32_MAX }, { 100, 1u << 28 }, { UINT32_MAX, TWIN_GATHER_MOST },
	};
	struct twin_gather asked = { .list = 0 };
	uint32_t i;

	start();
	asked.ticket = send_known(9000) + 1;
	is_gone = true;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		asked.bytes = wrong[i][0];
		asked.each = wrong[i][1];
		CHECK_EQUAL(xen_transmit_gather(&asked), XEN_GATHERED_NOTHING);
	}
	asked.bytes = asked.each = 100;
	CHECK_EQUAL(xen_transmit_gather(&asked), XEN_GATHERED_ELSEWHERE);
}

static void bytes_of_nothing_else(void)
{
	uint8_t to[TWIN_GATHER_MOST + 1];
	uint64_t list = (uint64_t)to;
	struct twin_call_frame frame = { .rdi = (uint64_t)&list, .rdx = 10, .rcx = 100, .r8 = 100 };
	uint32_t one, got, sum = 77;

	start();
	one = send_known(9000);
	got = xen_buffer_get(1);	/* has been a packet's, and is none */
	memset(to, 0xee, sizeof(to));
	CHECK_EQUAL(gather(one + 1, to, 0, 9001, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(gather(one + 1, to, 8999, 2, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(gather(one + 1, to, 9001, 0, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(gather(one + 1, to, UINT32_MAX, 2, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(gather(one + 1, to, 2, UINT32_MAX, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(gather(one + 1, to, 0, TWIN_GATHER_MOST + 1, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(gather(transmit.next[one] + 1, to, 0, 1, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(gather(got + 1, to, 0, 1, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(gather(0, to, 0, 1, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(gather(BUFFERS + 1, to, 0, 1, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(gather(UINT64_MAX, to, 0, 1, &sum), XEN_GATHERED_NOTHING);
	CHECK_EQUAL(to[0], 0xee);
	CHECK_EQUAL(sum, 77);
	/* as the hot routines call it */
	frame.rax = 77;
	CHECK_EQUAL(twin_import_host_gather(NULL, &frame), TWIN_OK);
	CHECK_EQUAL(frame.rax, 0);
	CHECK_EQUAL(list, (uint64_t)to);
	frame.rsi = one + 1;
	CHECK_EQUAL(twin_import_host_gather(NULL, &frame), TWIN_OK);
	CHECK(frame.rax == 1 && list <= 0xffff && to[0] == (uint8_t)(10 * 7));
	frame.rdi = (uint64_t)to;
	frame.r8 = 0;
	to[0] = 0xee;
	CHECK_EQUAL(twin_import_host_gather(NULL, &frame), TWIN_OK);
	CHECK(frame.rax == 1 && to[0] == (uint8_t)(10 * 7));
	is_gone = true;
	CHECK_EQUAL(twin_import_host_gather(NULL, &frame), TWIN_ABORTED);
	frame.r8 = 100;
	CHECK_EQUAL(twin_import_host_gather(NULL, &frame), TWIN_ABORTED);
}

/* Whatever the card can do, the hot routines of each processor do the rest. */
static void guests_are_offered_all(void)
{
	uint32_t i;

	start();
	for (i = 0; i < HOT_CPUS; i++)
		CHECK_EQUAL(shared[i].offload, 1);
}

/* A poll is to ask for what the card wrote, if Xen shows it. */
static void polls_ask_with_the_stage_alone(void)
{
	uint32_t i, on;

	for (on = 0; on < 2; on++) {
		xen_device.given.stages.dma = on;
		start();
		for (i = 0; i < HOT_CPUS; i++)
			CHECK_EQUAL(shared[i].look, on);
	}
}

/* The driver completes a packet that a descriptor of the card's still names. */
static void a_buffer_that_the_card_has_does_not_come_back(void)
{
	uint32_t one, two;

	start();
	one = send(100);
	two = send(100);
	CHECK(xen_buffer_take(one + 1));
	CHECK(xen_buffer_take(one + 1));
	CHECK(xen_buffer_take(two + 1));
	say(0, one + 1);
	say(0, one + 1);
	CHECK_EQUAL(xen_transmit_complete(), 2);
	CHECK_EQUAL(xen_transmit_in_flight(), 1);
	CHECK_EQUAL(transmit.free_count, BUFFERS - 2);
	/* Nor may another descriptor name it. */
	CHECK(!xen_buffer_take(one + 1));
	xen_buffer_let_go(one);
	CHECK_EQUAL(transmit.free_count, BUFFERS - 2);
	xen_buffer_let_go(one);
	CHECK_EQUAL(transmit.free_count, BUFFERS - 1);
	/* The other way round, as a driver does. */
	xen_buffer_let_go(two);
	say(0, two + 1);
	CHECK_EQUAL(xen_transmit_complete(), 1);
	CHECK_EQUAL(transmit.free_count, BUFFERS);
}

/* A buffer that no packet has, one of a driver that ended; and each frame is one buffer's. */
static void only_a_packets_buffer_is_the_cards(void)
{
	uint32_t one, lost, i;

	start();
	for (i = 0; i < BUFFERS; i++) {
		CHECK(!xen_buffer_take(i + 1));
		CHECK_EQUAL(xen_buffer_frame(i), (uint64_t)transmit.page[i] >> TWIN_PAGE_SHIFT);
	}
	one = xen_buffer_get(BUFFERS);
	for (i = one; i != XEN_NO_BUFFER; i = transmit.next[i])
		CHECK(xen_buffer_take(i + 1));
	for (i = one; i != XEN_NO_BUFFER; i = transmit.next[i])
		xen_buffer_let_go(i);
	put_buffer(one);
	CHECK_EQUAL(transmit.free_count, BUFFERS);
	status = TWIN_ABORTED;
	lost = send(100);
	CHECK(!xen_buffer_take(lost + 1));
}

/* It has returned, and what it gave to the card breaks a rule: it is as one that ended. */
static void a_doorbell_that_is_refused_ends_the_driver(void)
{
	static uint8_t header[HOT_HEADER];
	struct xen_packet packet = { .header = header, .header_length = HOT_HEADER, .rest = 100 };

	start();
	rings = 0;
	send(100);
	CHECK_EQUAL(rings, 1);
	rung = false;
	packet.buffer = xen_buffer_get(1);
	CHECK(!xen_transmit(&packet, 1));
	CHECK_EQUAL(packet.result, HOT_DOWN);
	CHECK_EQUAL(transmit.free_count, BUFFERS - 2);
	status = TWIN_ABORTED;
	packet.buffer = xen_buffer_get(1);
	CHECK(!xen_transmit(&packet, 1));
	CHECK_EQUAL(rings, 2);
}

int main(void)
{
	RUN(packets_come_back);
	RUN(completions_of_nothing_are_nothing);
	RUN(a_short_packet_completes_no_other);
	RUN(what_was_given_up_stays_the_cards);
	RUN(what_no_driver_has_had_comes_back);
	RUN(a_dead_driver_has_no_queue);
	RUN(nonsense_in_dom0s_memory);
	xen_transmit_destroy();
	RUN(bytes_of_a_packet_that_is_sent);
	RUN(bytes_to_several_places);
	RUN(numbers_of_places);
	RUN(bytes_of_nothing_else);
	RUN(guests_are_offered_all);
	RUN(polls_ask_with_the_stage_alone);
	RUN(a_buffer_that_the_card_has_does_not_come_back);
	RUN(only_a_packets_buffer_is_the_cards);
	RUN(a_doorbell_that_is_refused_ends_the_driver);
	return test_summary();
}
