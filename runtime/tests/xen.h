/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What stands for Xen, dom0 and the driver in the tests of the backend, whose every number is a
 * guest's: dom0's memory and the grants are arrays, each copy is checked against their ends, the
 * driver answers as it is told. And a guest's side of its rings. No test uses all of it.
 */
#ifndef TWIN_TEST_XEN_H
#define TWIN_TEST_XEN_H

#include <stdlib.h>
#include <string.h>

#include <twin/guest.h>

#include "../platform/xen/clock.h"
#include "../platform/xen/netif.h"
#include "../platform/xen/platform.h"
#include "test.h"

/* ---- What stands for Xen and dom0 --------------------------------------------- */

enum { TX_RING = 0x10000, RX_RING = 0x20000, GRANTS = 24, BUFFERS = 40, GUESTS = 3 };
enum { DOM0_PORT = 5, GUEST_PORT = 9 };

static uint8_t rings[GUESTS][2][4096] __attribute__((aligned(64)));
static bool rings_gone;
static uint8_t grants[GRANTS][4096];
static uint64_t references[GUESTS + 1];	/* a domain is its count of references */
static uint32_t destroyed, notified, requested;

/* What xen_transmit is to answer, and what it was given. */
static uint32_t answers[64], answer_count, answered;
static uint8_t sent[64][65536];
static struct xen_packet given[64];
static uint32_t sent_count;
static bool driver_dead;	/* it ends with the packets that it is given */
static bool driver_gone;	/* it has ended before: nothing runs */
/* Driver code runs, with interrupts off: no lock of Xen's may be waited for. */
static bool interrupts_off;
static uint32_t room;		/* packets that it takes from now on */

static uint8_t pages[BUFFERS][4096];
static uint32_t buffer_state[BUFFERS];	/* 0 free, 1 taken, 2 sent */
static uint32_t buffer_length[BUFFERS];

/* The end of a window, which xen_pace_set() asked for. */
static bool timer_set;
static int64_t now, timer_time;
static void (*timer_function)(void *);

/* What another processor does before and after each access to an index of a ring. */
static void (*meanwhile)(void);
static uint32_t publications;	/* writes of the index of answers */

const uint64_t twin_value_domain_refcnt = 0;
/* attach.c's, where that is tested. */
__attribute__((weak)) struct xen_device xen_device;
__attribute__((weak)) struct twin_xen_status xen_counts;
struct domain *hardware_domain = (struct domain *)&references[0];

/* Where the hot routines read what they are asked for. */
static struct hot_shared hot[HOT_CPUS];
#define HOT_SHARED 0x900000u

static uint8_t *dom0_at(uint64_t address, uint32_t bytes)
{
	const uint64_t page = address >> 16, offset = address & 0xffff;
	const uint64_t guest = (page >> 4) & 0xf, ring = (page & 0xf) - 1;

	if (address >= HOT_SHARED && address + bytes <= HOT_SHARED + sizeof(hot))
		return (uint8_t *)hot + (address - HOT_SHARED);
	if (rings_gone || guest >= GUESTS || ring > 1 || offset + bytes > 4096)
		return NULL;
	return &rings[guest][ring][offset];
}

static uint64_t ring_of(uint32_t guest, uint32_t ring)
{
	return ((uint64_t)guest << 20) + (ring ? RX_RING : TX_RING);
}

static void let_others(uint64_t address)
{
	if (meanwhile && address < HOT_SHARED && (address & 0xffff) < NETIF_RING_HEADER)
		meanwhile();
}

bool xen_dom0_read(void *to, uint64_t from, uint32_t bytes)
{
	const uint8_t *at = dom0_at(from, bytes);

	let_others(from);
	if (at)
		memcpy(to, at, bytes);
	let_others(from);
	return at;
}

bool xen_dom0_write(uint64_t to, const void *from, uint32_t bytes)
{
	uint8_t *at = dom0_at(to, bytes);

	let_others(to);
	publications += (to & 0xffff) == NETIF_RESPONSE_PRODUCE;
	if (at)
		memcpy(at, from, bytes);
	let_others(to);
	return at;
}

bool xen_dom0_read_ready(void *to, uint64_t from, uint32_t bytes)
{
	return xen_dom0_read(to, from, bytes);
}

bool xen_grant_read(struct domain *guest, uint32_t reference, uint32_t offset,
		    const struct xen_part *parts, uint32_t count)
{
	uint32_t i;

	(void)guest;
	CHECK(!interrupts_off);
	CHECK(count && count <= XEN_GRANT_PARTS);
	for (i = 0; i < count; offset += parts[i++].bytes) {
		CHECK(parts[i].bytes && offset + parts[i].bytes <= 4096);
		if (reference < GRANTS)
			memcpy(parts[i].to, grants[reference] + offset, parts[i].bytes);
	}
	return reference < GRANTS;
}

/* ---- Time ------------------------------------------------------------------------ */

void init_timer(struct xen_timer *timer, void (*function)(void *), void *data,
		unsigned int processor)
{
	(void)timer;
	(void)data;
	(void)processor;
	timer_function = function;
	timer_set = false;
}

void set_timer(struct xen_timer *timer, int64_t time)
{
	(void)timer;
	CHECK(!timer_set);
	CHECK(time > now);
	timer_set = true;
	timer_time = time;
}

void kill_timer(struct xen_timer *timer)
{
	(void)timer;
	timer_set = false;
}

int64_t get_s_time(void)
{
	return now;
}

/* The window ends, if its end was asked for. */
static bool end_window(void)
{
	if (!timer_set)
		return false;
	timer_set = false;
	if (now < timer_time)
		now = timer_time;
	timer_function(NULL);
	return true;
}

/* The byte at `at` of a packet. */
static uint8_t byte_of(const struct xen_bytes *bytes, uint32_t at)
{
	if (at >= bytes->first_length)
		return pages[bytes->buffer + (at - bytes->first_length) / 4096]
			    [(at - bytes->first_length) % 4096];
	return ((const uint8_t *)bytes->first)[at];
}

bool xen_grant_write(struct domain *guest, uint32_t reference, const struct xen_bytes *bytes,
		     uint32_t from, uint32_t count)
{
	uint32_t i;

	(void)guest;
	CHECK(!interrupts_off);
	CHECK(count && count <= 4096);
	CHECK(from + count <= bytes->first_length + bytes->buffer_length);
	if (reference >= GRANTS)
		return false;
	for (i = 0; i < count; i++)
		grants[reference][i] = byte_of(bytes, from + i);
	return true;
}

/* The pages of a packet are beside one another here; `length` of the first says how many. */
uint32_t xen_buffer_get(uint32_t count)
{
	uint32_t i, free = 0;

	CHECK(count && count <= HOT_FRAGMENTS);
	for (i = 0; i < BUFFERS; i++) {
		free = buffer_state[i] ? 0 : free + 1;
		if (free < count)
			continue;
		buffer_length[i + 1 - count] = count;
		for (; free; free--)
			buffer_state[i + 1 - free] = 1;
		return i + 1 - count;
	}
	return XEN_NO_BUFFER;
}

static void set_buffers(uint32_t first, uint32_t state)
{
	uint32_t i;

	for (i = first; i < first + buffer_length[first]; i++)
		buffer_state[i] = state;
}

void xen_buffer_return(uint32_t first)
{
	CHECK(buffer_state[first]);
	if (buffer_state[first] == 1)
		set_buffers(first, 0);
}

void *xen_buffer_page(uint32_t first, uint32_t at)
{
	CHECK(at / 4096 < buffer_length[first]);
	return pages[first + at / 4096];
}

enum xen_gathered xen_transmit_gather(const struct twin_gather *gather)
{
	(void)gather;
	return XEN_GATHERED_NOTHING;
}

bool xen_transmit(struct xen_packet *packets, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		struct xen_packet *packet = &packets[i];
		const uint32_t slot = sent_count % 64;

		CHECK(packet->header_length >= NETIF_SMALLEST);
		CHECK(packet->header_length <= HOT_HEADER && packet->rest <= 65535 - HOT_HEADER);
		packet->result = answered < answer_count ? answers[answered++] : HOT_SENT;
		if (packet->result == HOT_SENT && !room--) {
			room = 0;
			packet->result = HOT_BUSY;
		}
		if (driver_dead || driver_gone)
			packet->result = HOT_DOWN;
		if (packet->rest && (driver_dead || packet->result == HOT_SENT))
			set_buffers(packet->buffer, 2);
		if (packet->result != HOT_SENT)
			continue;
		given[slot] = *packet;
		memcpy(sent[slot], packet->header, packet->header_length);
		if (packet->rest)
			memcpy(sent[slot] + packet->header_length, pages[packet->buffer],
			       packet->rest);
		sent_count++;
	}
	return !driver_dead && !driver_gone;
}

uint32_t xen_transmit_complete(void)
{
	uint32_t i;

	for (i = 0; i < BUFFERS; i++)
		if (buffer_state[i] == 2)
			buffer_state[i] = 0;
	return 0;
}

static uint32_t in_flight;

uint32_t xen_transmit_in_flight(void)
{
	return in_flight;
}

static bool upcall_waits;	/* the driver waits for dom0, with the lock */
static uint32_t waits_asked;	/* whether it does */

bool xen_upcall_waits(void)
{
	waits_asked++;
	return upcall_waits;
}

void xen_service_request(void)
{
	requested++;
}

/* Whether this processor came after the device was attached. */
static bool came_later;

bool xen_block_here(void)
{
	return !came_later;
}

int twin_original_evtchn_send(struct domain *domain, unsigned int port)
{
	CHECK(domain == hardware_domain);
	CHECK(port == DOM0_PORT);
	notified++;
	return 0;
}

struct domain *get_domain_by_id(uint16_t id)
{
	if (id > GUESTS)
		return NULL;
	references[id]++;
	return (struct domain *)&references[id];
}

void domain_destroy(struct domain *domain)
{
	(void)domain;
	destroyed++;
}

static char said[4];	/* how the last line on the console began */

void printk(const char *format, ...)
{
	strncpy(said, format, sizeof(said) - 1);
}

/* ---- The card -------------------------------------------------------------------- */

/* What the card takes out of frames, if the flags say that it did. */
#define TAKEN_OUT 0xa123u

static bool card_has_more;

bool xen_dma_look(void)
{
	CHECK(interrupts_off);
	return card_has_more;
}

/* The driver gives a frame that is there in dom0's memory. */
static void give_frame(uint64_t data, uint32_t length, uint32_t flags)
{
	struct twin_call_frame frame = { .rdi = data, .rsi = length, .rcx = flags, .r8 = TAKEN_OUT };

	interrupts_off = true;
	CHECK_EQUAL(twin_import_host_receive(NULL, &frame), TWIN_OK);
	interrupts_off = false;
	CHECK_EQUAL(frame.rax, HOT_RX_UNWANTED);
}

/* The same, and returns: whether the frame was for a guest. */
static bool receive(uint64_t data, uint32_t length, uint32_t flags)
{
	const uint64_t unwanted = xen_counts.unwanted;

	give_frame(data, length, flags);
	xen_receive_deliver();
	return xen_counts.unwanted == unwanted;
}

/* ---- A guest --------------------------------------------------------------------- */

static uint32_t produced[GUESTS][2];

static void *index_of(uint32_t guest, uint32_t ring, uint32_t field)
{
	return &rings[guest][ring][field];
}

static uint32_t get(uint32_t guest, uint32_t ring, uint32_t field)
{
	uint32_t value;

	memcpy(&value, index_of(guest, ring, field), sizeof(value));
	return value;
}

static void set(uint32_t guest, uint32_t ring, uint32_t field, uint32_t value)
{
	memcpy(index_of(guest, ring, field), &value, sizeof(value));
}

static void put_tx(uint32_t guest, struct netif_tx_request request)
{
	const uint32_t at = produced[guest][0]++ % NETIF_RING;

	memcpy(&rings[guest][0][NETIF_RING_HEADER + at * sizeof(request)], &request,
	       sizeof(request));
	set(guest, 0, NETIF_REQUEST_PRODUCE, produced[guest][0]);
}

/* The extra entry of a large packet. */
static void put_extra(uint32_t guest, struct netif_extra extra)
{
	struct netif_tx_request request = { 0 };

	memcpy(&request, &extra, sizeof(extra));
	put_tx(guest, request);
}

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

static struct netif_tx_response tx_answer(uint32_t guest, uint32_t number)
{
	struct netif_tx_response response;

	memcpy(&response, &rings[guest][0][NETIF_RING_HEADER + number % NETIF_RING *
					   sizeof(struct netif_tx_request)], sizeof(response));
	return response;
}

static void put_rx(uint32_t guest, uint32_t id, uint32_t reference)
{
	const struct netif_rx_request request = { .id = id, .reference = reference };
	const uint32_t at = produced[guest][1]++ % NETIF_RING;

	memcpy(&rings[guest][1][NETIF_RING_HEADER + at * sizeof(request)], &request,
	       sizeof(request));
	set(guest, 1, NETIF_REQUEST_PRODUCE, produced[guest][1]);
}

static struct netif_rx_response rx_answer(uint32_t guest, uint32_t number)
{
	struct netif_rx_response response;

	memcpy(&response, &rings[guest][1][NETIF_RING_HEADER + number % NETIF_RING *
					   sizeof(response)], sizeof(response));
	return response;
}

static bool kick(uint32_t guest)
{
	return xen_vif_kick((struct domain *)&references[guest + 1], GUEST_PORT);
}

/* The last guest's frontend is an old one. */
static const uint8_t features_of[GUESTS] = {
	TWIN_XEN_VIF_PAGES | TWIN_XEN_VIF_LARGE, TWIN_XEN_VIF_PAGES | TWIN_XEN_VIF_LARGE,
};

static long connect_guest(uint32_t guest)
{
	const struct twin_xen_vif vif = {
		.domain = guest + 1,
		.transmit_ring = ring_of(guest, 0),
		.receive_ring = ring_of(guest, 1),
		.local_port = DOM0_PORT,
		.remote_port = GUEST_PORT,
		.mac = { 0, 0x16, 0x3e, 0, 0, guest },
		.features = features_of[guest],
	};

	return xen_vif_connect(&vif);
}

static struct twin_xen_vif_status vif_status(uint32_t guest)
{
	struct twin_xen_status status;
	uint32_t i;

	xen_vif_status(&status);
	for (i = 0; i < TWIN_XEN_VIFS; i++)
		if (status.vif[i].connected && status.vif[i].domain == guest + 1)
			return status.vif[i];
	return (struct twin_xen_vif_status){ 0 };
}

/* What start() attaches with. */
static struct twin_xen_stages stages = { .aggregate = 20, .pace = 1 };

/* New rings, new guests, all of them connected. */
static void start(void)
{
	uint32_t i;

	meanwhile = NULL;
	xen_vif_disconnect_all();
	xen_device.attached = 1;
	xen_device.given.hot_shared = HOT_SHARED;
	xen_device.given.stages = stages;
	xen_bridge_start();
	xen_pace_stop();
	xen_pace_start(0);
	memset(rings, 0, sizeof(rings));
	memset(grants, 0, sizeof(grants));
	memset(produced, 0, sizeof(produced));
	memset(buffer_state, 0, sizeof(buffer_state));
	in_flight = 1;
	upcall_waits = false;
	rings_gone = driver_dead = driver_gone = false;
	room = UINT32_MAX;
	sent_count = answer_count = answered = notified = destroyed = requested = 0;
	publications = 0;
	for (i = 0; i <= GUESTS; i++)
		references[i] = 1;
	for (i = 0; i < GUESTS; i++) {
		set(i, 0, NETIF_RESPONSE_EVENT, 1);
		set(i, 1, NETIF_RESPONSE_EVENT, 1);
		CHECK_EQUAL(connect_guest(i), 0);
	}
}

/* A frame in grant 0, to somebody outside. */
static void fill_frame(uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		grants[0][i] = i * 7 + 1;
	grants[0][0] = 0x52;
}

/* Nothing is sent or answered any more, whatever comes later. */
static void is_broken(uint32_t guest)
{
	const uint32_t before = sent_count;

	set(guest, 0, NETIF_REQUEST_PRODUCE, get(guest, 0, NETIF_RESPONSE_PRODUCE) + 1);
	kick(guest);
	CHECK_EQUAL(sent_count, before);
	/* As often as it likes: Xen limits those. */
	CHECK(!strcmp(said, "<G>"));
}

/* ---- Chance ---------------------------------------------------------------------- */

static uint32_t seed = 1;

static uint32_t chance(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

#endif /* TWIN_TEST_XEN_H */
