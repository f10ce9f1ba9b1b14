/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For the tests of the switch: an array as dom0's memory, guests, and packets to them.
 * Each test file has its own.
 */
#ifndef TWIN_TESTS_SWITCH_H
#define TWIN_TESTS_SWITCH_H

#include <string.h>
#include <sys/mman.h>

#include <twin/switch.h>

#include "test.h"

#define PAGE ((uint64_t)TWIN_PAGE_SIZE)
#define DOM0 0xffff888000000000ull
#define PAGES 6
#define PACKETS 600


static struct twin_stlb_entry stlb[TWIN_STLB_ENTRIES] __attribute__((aligned(4096)));
static struct twin_node nodes[16];
static struct twin_instance instance;
static struct twin_switch sw;
static struct twin_packet packets[PACKETS];
static uint8_t *dom0;
static bool gone, round_the_world;

/*
 * Pages are shuffled, and no page is next to another: a read beyond the page
 * that was asked for faults, as it does where dom0 has nothing.
 */
static uint64_t frame(uint64_t page)
{
	return 2 * ((page * 5 + 1) % PAGES);
}

static void *make_dom0(void)
{
	uint8_t *at = mmap(NULL, 2 * PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t i;

	for (i = 0; i < PAGES; i++)
		mprotect(at + frame(i) * PAGE, PAGE, PROT_READ | PROT_WRITE);
	return at;
}

/* round_the_world: dom0's first two pages are the last and the first there are. */
static int map_window(struct twin_instance *self, uint64_t page, uint64_t *mapped)
{
	uint64_t number = round_the_world ? (page + PAGE) / PAGE : (page - DOM0) / PAGE;

	(void)self;
	if (gone || (!round_the_world && page < DOM0) || number >= PAGES)
		return TWIN_REFUSED_NOT_DOM0;
	*mapped = (uint64_t)dom0 + frame(number) * PAGE;
	return TWIN_MAPPED;
}

static void unmap_window(struct twin_instance *self, uint64_t page, uint64_t mapped)
{
	(void)self;
	(void)page;
	(void)mapped;
}

static const struct twin_platform_ops ops = {
	.map_window = map_window, .unmap_window = unmap_window,
};

static uint8_t *byte_at(uint64_t offset)
{
	return dom0 + frame(offset / PAGE) * PAGE + offset % PAGE;
}

/* A packet of length bytes at DOM0 + offset, to mac. */
static inline struct twin_arrival packet(uint64_t offset, uint32_t length, const uint8_t *mac)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		*byte_at(offset + i) = i < 6 ? mac[i] : (uint8_t)(offset + i * 7);
	return (struct twin_arrival){
		.buffer = DOM0 + 0x100000 + offset, .data = DOM0 + offset,
		.length = length, .flags = 3, .vlan = 42,
	};
}

static const uint8_t anna[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t bert[6] = { 2, 0, 0, 0, 0, 2 };
static const uint8_t carl[6] = { 2, 0, 0, 0, 1, 1 };
static const uint8_t everybody[6] = { 255, 255, 255, 255, 255, 255 };

static void set_up(void)
{
	const struct twin_instance_config config = {
		.scheme = TWIN_SCHEME_STLB, .stlb = stlb, .nodes = nodes, .node_count = 16,
		.ops = &ops, .vector_free = 1,
	};

	gone = round_the_world = false;
	memset(&sw, 0xa5, sizeof(sw));
	CHECK_EQUAL(twin_instance_init(&instance, &config), TWIN_OK);
	CHECK_EQUAL(twin_switch_init(&sw, packets, PACKETS), TWIN_OK);
}

static inline int take(uint32_t guest, void *to, uint32_t size, struct twin_delivery *delivery)
{
	int status;

	twin_instance_hold(&instance);
	status = twin_switch_take(&sw, &instance, guest, to, size, delivery);
	twin_instance_release(&instance);
	return status;
}

#endif /* TWIN_TESTS_SWITCH_H */
