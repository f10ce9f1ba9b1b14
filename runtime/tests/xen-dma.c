// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card's rings inside Xen: platform/xen/descriptors.c, held.c, pages.c and card.c over the core's check. The
 * card is a model of its registers and of what it does with rings; machine memory is this program's, at
 * its own addresses, which are low ones, and each of its pages is somebody's.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../platform/xen/platform.h"
#include "test.h"
#include "xen-stack.h"

/* What only Xen may execute. */
#define xen_interrupts_off() 0ull
#define xen_interrupts_restore(flags) ((void)(flags))
#define xen_alias_ready(processor) ((void)(processor))

#include "../platform/xen/descriptors.c"
#include "../platform/xen/held.c"

/* ---- Pages ------------------------------------------------------------------------------- */

enum { PAGES = 96, TABLE = 40, GUESTS = 44, XENS = 48, BUFFERS = 56 };
#define PAGE ((uint64_t)TWIN_PAGE_SIZE)

/* 0 to 39 are dom0's; 40 to 43 too, and page tables; 44 to 47 a guest's; 48 to 55 Xen's; 56 to 63 buffers of
 * packets, of which the even ones are being sent. */
#define MEMORY 0x10000000ull
static uint8_t *memory;
static struct {
	uint32_t references, types;
} page[PAGES];
struct xen_buffer xen_buffers[XEN_BUFFERS];
static uint32_t freed;		/* buffers that the driver completed before the card was done */
static bool none_left, no_table;	/* Xen has no memory */
static uint32_t allocated;

const uint64_t twin_value_cpu_info_processor_id = 8;
const uint64_t twin_value_page_info_size = 1;
const uint64_t twin_value_frame_table = 0;
const uint64_t twin_value_directmap = 0;
unsigned long max_page = (MEMORY >> TWIN_PAGE_SHIFT) + PAGES;
static uint64_t domain0, domain_io;
struct domain *hardware_domain = (struct domain *)&domain0;
struct domain *dom_io = (struct domain *)&domain_io;
struct xen_device xen_device;
struct twin_xen_status xen_counts;
struct twin_instance xen_instance;
struct xen_seen xen_seen[TWIN_XEN_CPUS];
char xen_reason[TWIN_XEN_REASON];

static uint64_t machine(uint32_t number)
{
	return (uint64_t)memory + number * PAGE;
}

static uint64_t number_of(uint64_t frame)
{
	return frame - (uint64_t)memory / PAGE;
}

bool __mfn_valid(unsigned long frame)
{
	return number_of(frame) < PAGES;
}

bool get_page(struct page_info *info, const struct domain *domain)
{
	const uint64_t number = number_of((uint64_t)info);

	CHECK(number < PAGES);
	if (domain != hardware_domain || number >= GUESTS)
		return false;
	page[number].references++;
	return true;
}

void put_page(struct page_info *info)
{
	CHECK(page[number_of((uint64_t)info)].references-- > 0);
}

int get_page_type(struct page_info *info, unsigned long type)
{
	const uint64_t number = number_of((uint64_t)info);

	CHECK_EQUAL(type, XEN_TYPE_WRITABLE << XEN_TYPE_SHIFT);
	CHECK(page[number].references);
	if (number >= TABLE)
		return 0;
	page[number].types++;
	return 1;
}

void put_page_type(struct page_info *info)
{
	CHECK(page[number_of((uint64_t)info)].references);
	CHECK(page[number_of((uint64_t)info)].types-- > 0);
}

/* The first eight are in pages of the model. */
uint64_t xen_buffer_frame(uint32_t number)
{
	return number < 8 ? machine(BUFFERS + number) / PAGE : ~0ull;
}

/* Of a page of the model's. */
static struct xen_buffer *buffer_of(uint32_t number)
{
	return &xen_buffers[number - BUFFERS];
}

void xen_buffer_let_go(uint32_t number)
{
	struct xen_buffer *buffer = &xen_buffers[number];

	CHECK(number < 8);
	CHECK(buffer->card > 0);
	if (--buffer->card || buffer->state != XEN_BUFFER_HELD)
		return;
	buffer->state = XEN_BUFFER_FREE;
	freed++;
}

void *vzalloc(size_t bytes)
{
	void *table = no_table ? NULL : calloc(bytes, 1);

	allocated += !!table;
	return table;
}

void vfree(void *table)
{
	CHECK(table);
	allocated--;
	free(table);
}

void *alloc_xenheap_pages(unsigned int order, unsigned int flags)
{
	void *pages = none_left ? NULL : aligned_alloc(PAGE, PAGE << order);

	(void)flags;
	if (!pages)
		return NULL;
	allocated++;
	memset(pages, 0xee, PAGE << order);
	return pages;
}

void free_xenheap_pages(void *pages, unsigned int order)
{
	(void)order;
	allocated--;
	free(pages);
}

static uint32_t held_pages(void)
{
	uint32_t i, sum = 0;

	for (i = 0; i < PAGES; i++)
		sum += page[i].references + page[i].types;
	for (i = 0; i < XEN_BUFFERS; i++)
		sum += xen_buffers[i].card;
	return sum;
}

/* ---- The card -------------------------------------------------------------------------------- */

enum { COUNT = 16, BUFFER = 2048, LONGEST = 1522, REGISTERS = XEN_CARD_PAGES * TWIN_PAGE_SIZE };
enum { TX_RING = 1, RX_RING = 2, TX_TAIL = 3, RX_TAIL = 4, POOL = 8 };
enum { RCTL = 0x100, TCTL = 0x400, RX = 0x2800, TX = 0x3800 };
#define DD (1ull << 32)
#define LEGACY(length) ((uint64_t)(length) | 0x0b000000)	/* EOP, IFCS, RS */

static uint32_t *card;
static uint32_t mappings;
static int64_t now;
static bool no_device, guarded, cannot_guard;

int xen_guard_begin(uint64_t at)
{
	CHECK_EQUAL(at, (uint64_t)card);
	CHECK(!guarded);
	guarded = !cannot_guard;
	strncpy(xen_reason, "it is mapped elsewhere", sizeof(xen_reason) - 1);
	return cannot_guard ? -XEN_EBUSY : 0;
}

void xen_guard_end(void)
{
	guarded = false;
}

static uint32_t first_port, ports;

void xen_ports_guard(uint32_t first, uint32_t count)
{
	first_port = first;
	ports = count;
}

void *ioremap(uint64_t at, unsigned long bytes)
{
	CHECK_EQUAL(at, (uint64_t)card);
	CHECK_EQUAL(bytes, REGISTERS);
	mappings++;
	return card;
}

void vunmap(const void *address)
{
	CHECK(address == card);
	mappings--;
}

static uint32_t *reg(uint32_t offset)
{
	return &card[offset / 4];
}

static uint64_t base(uint32_t ring)
{
	return (uint64_t)*reg(ring + 4) << 32 | *reg(ring);
}

/* Where the card finds a descriptor. */
static struct twin_dma_descriptor *its(uint32_t ring, uint32_t index)
{
	return (struct twin_dma_descriptor *)base(ring) + index;
}

/* It receives a frame, if it may, into the next buffer. */
static bool receives(uint8_t byte)
{
	const uint32_t head = *reg(RX + 0x10);
	struct twin_dma_descriptor *descriptor = its(RX, head);

	if (!(*reg(RCTL) & 2) || head == *reg(RX + 0x18))
		return false;
	memset((void *)descriptor->address, byte, LONGEST);
	descriptor->control = DD | 1ull << 33 | 100;
	*reg(RX + 0x10) = (head + 1) % COUNT;
	return true;
}

static uint64_t sends(void)
{
	const uint32_t head = *reg(TX + 0x10);
	struct twin_dma_descriptor *descriptor = its(TX, head);

	if (!(*reg(TCTL) & 2) || head == *reg(TX + 0x18))
		return 0;
	descriptor->control |= DD;
	*reg(TX + 0x10) = (head + 1) % COUNT;
	return descriptor->address;
}

int64_t get_s_time(void)
{
	return now += 1000;
}

/* ---- dom0 and driver --------------------------------------------------------------------------- */

static struct twin_dma_descriptor *drivers(uint32_t ring)
{
	return (struct twin_dma_descriptor *)machine(ring);
}

static volatile uint32_t *tail(uint32_t number, uint32_t ring)
{
	return (uint32_t *)(machine(number) + (ring + 0x18) % PAGE);
}

/* Where dom0 has the driver's registers mapped: address 1 << 32. */
#define MAPPED (1ull << 32)

/* Where it has the hot routines' buffers; and the page that each page there is, by number; 0: none. */
#define POOLS 0xffff888000000000ull
enum { POOL_PAGES = 8 };
static uint32_t pools[POOL_PAGES];
static uint32_t walked;		/* there and behind it */

uint64_t xen_alias_walk(uint64_t address)
{
	const uint64_t offset = address % PAGE, in_pools = (address - xen_cut(POOLS)) / PAGE;

	walked += in_pools <= POOL_PAGES;
	if (in_pools < POOL_PAGES)
		return pools[in_pools] ? machine(pools[in_pools]) + offset : ~0ull;
	switch ((address - MAPPED) / PAGE) {
	case 0:
		return no_device ? machine(POOL) : (uint64_t)card + offset;
	case 2:
		return machine(RX_TAIL) + offset;
	case 3:
		return machine(TX_TAIL) + offset;
	default:
		return ~0ull;
	}
}

static struct twin_abort_report report;
static uint32_t aborts, reported;

void twin_abort_record(struct twin_cpu *cpu, enum twin_abort_kind kind, uint32_t reason, uint64_t address,
		       uint64_t rip)
{
	CHECK(cpu->instance == &xen_instance);
	report = (struct twin_abort_report){
		.kind = kind, .reason = reason, .address = address, .rip = rip,
	};
	aborts++;
}

const struct twin_abort_report *twin_instance_report(const struct twin_instance *instance)
{
	(void)instance;
	return &report;
}

void xen_report(const struct twin_abort_report *given)
{
	CHECK(given == &report);
	reported++;
}

int xen_refuse(int error, const char *text)
{
	strncpy(xen_reason, text, sizeof(xen_reason) - 1);
	return error;
}

void printk(const char *format, ...)
{
	CHECK(strstr(format, "twin: "));
}

int snprintf(char *text, unsigned long size, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, size, format, arguments);
	va_end(arguments);
	return length;
}

/* A ring of the driver's as dom0's instance leaves it: eight buffers are the card's. */
static void set_up(void)
{
	static struct twin_cpu cpu;
	uint32_t i;

	memset(memory, 0, PAGES * PAGE);
	memset(page, 0, sizeof(page));
	memset(pools, 0, sizeof(pools));
	memset(xen_buffers, 0, sizeof(xen_buffers));
	for (i = 0; i < 8; i += 2)
		xen_buffers[i].state = i % 4 ? XEN_BUFFER_TAKEN : XEN_BUFFER_SENT;
	memset(card, 0, REGISTERS);
	none_left = no_table = no_device = cannot_guard = false;
	aborts = reported = freed = 0;
	cpu.entry_function = 0x1234;
	xen_seen[0].cpu = &cpu;
	*reg(TX) = (uint32_t)machine(TX_RING);
	*reg(TX + 4) = (uint32_t)(machine(TX_RING) >> 32);
	*reg(RX) = (uint32_t)machine(RX_RING);
	*reg(RX + 4) = (uint32_t)(machine(RX_RING) >> 32);
	*reg(TX + 8) = *reg(RX + 8) = COUNT * 16;
	*reg(TX + 0x10) = *reg(TX + 0x18) = 5;
	*reg(RX + 0x10) = 12;
	*reg(RX + 0x18) = 4;
	*reg(TCTL) = 2;
	for (i = 12; i != 20; i++)
		drivers(RX_RING)[i % COUNT].address = machine(POOL + (i - 12) / 2) + i % 2 * BUFFER;
	xen_device.given = (struct twin_xen_attach){
		.registers = MAPPED, .port = 0xc000, .ports = 64, .stages.dma = 1,
	};
}

static void attach(void)
{
	set_up();
	CHECK_EQUAL(xen_dma_plan(&xen_device.given), 0);
	CHECK_EQUAL(xen_dma_take(), 0);
	/* dom0 turns the receiver on. */
	*reg(RCTL) |= 2;
}

static void nothing_is_left(void)
{
	CHECK_EQUAL(held_pages(), 0);
	CHECK_EQUAL(allocated, 0);
	CHECK_EQUAL(mappings, 0);
	CHECK(!guarded);
	CHECK_EQUAL(ports, 0);
}

static void detach(void)
{
	xen_dma_give_back();
	CHECK_EQUAL(base(TX), machine(TX_RING));
	CHECK_EQUAL(base(RX), machine(RX_RING));
	CHECK(!(*reg(RCTL) & 2));
	nothing_is_left();
}

static bool give(uint32_t ring, uint32_t number, uint32_t index, uint64_t address, uint64_t control)
{
	drivers(ring)[index] = (struct twin_dma_descriptor){ address, control };
	*tail(number, ring == TX_RING ? TX : RX) = (index + 1) % COUNT;
	return xen_dma_ring();
}

static bool give_sent(uint32_t index, uint64_t address, uint64_t control)
{
	return give(TX_RING, TX_TAIL, index, address, control);
}

static bool give_received(uint32_t index, uint64_t address)
{
	return give(RX_RING, RX_TAIL, index, address, 0);
}

static void is_refused(uint32_t fault, uint32_t kind, uint32_t index, uint64_t address)
{
	CHECK_EQUAL(aborts, 1);
	CHECK_EQUAL(reported, 1);
	CHECK_EQUAL(report.kind, TWIN_ABORT_DMA);
	CHECK_EQUAL(report.reason, TWIN_DMA_REASON(fault, kind, index));
	CHECK_EQUAL(report.address, address);
	CHECK_EQUAL(report.rip, 0x1234);
	/* The card moves nothing any more. */
	CHECK(!(*reg(RCTL) & 2));
	CHECK(!(*reg(TCTL) & 2));
}

/* ---- What a good driver does ---------------------------------------------------------------- */

static void the_card_has_copies_of_what_it_had(void)
{
	uint32_t i;

	attach();
	CHECK(guarded);
	CHECK_EQUAL(first_port, 0xc000);
	CHECK_EQUAL(ports, 64);
	CHECK(base(TX) != machine(TX_RING) && base(RX) != machine(RX_RING));
	CHECK_EQUAL(*reg(TCTL) & 2, 2);
	CHECK_EQUAL(*reg(RX + 0x18), 4);
	CHECK_EQUAL(*reg(TX + 0x18), 5);
	for (i = 12; i != 20; i++)
		CHECK_EQUAL(its(RX, i % COUNT)->address, drivers(RX_RING)[i % COUNT].address);
	/* Nothing of the others is there, nor of what Xen's memory had before. */
	CHECK_EQUAL(its(RX, 4)->address, 0);
	CHECK_EQUAL(its(TX, 5)->address, 0);
	/* Words for tails are as the registers, so no doorbell rings. */
	CHECK_EQUAL(*tail(RX_TAIL, RX), 4);
	CHECK_EQUAL(*tail(TX_TAIL, TX), 5);
	CHECK(xen_dma_ring());
	/* Both buffers of the page are held by one. */
	CHECK_EQUAL(page[POOL].types, 1);
	CHECK_EQUAL(page[POOL].references, 1);
	CHECK_EQUAL(page[TX_RING].types, 1);
	detach();
}

static void frames_come_and_go(void)
{
	uint32_t i, at;

	attach();
	for (i = 0; i < 100; i++) {
		at = (12 + i) % COUNT;
		CHECK(receives((uint8_t)i));
		CHECK(!(drivers(RX_RING)[at].control & DD));
		CHECK(xen_dma_show());
		CHECK(drivers(RX_RING)[at].control & DD);
		CHECK(give_received((4 + i) % COUNT, machine(POOL + i % 8)));
		CHECK_EQUAL(*reg(RX + 0x18), (5 + i) % COUNT);

		at = (5 + i) % COUNT;
		CHECK(give_sent(at, machine(BUFFERS + i % 4 * 2) + 7, LEGACY(100)));
		CHECK_EQUAL(buffer_of(BUFFERS + i % 4 * 2)->card, 1);
		CHECK_EQUAL(sends(), machine(BUFFERS + i % 4 * 2) + 7);
		CHECK(xen_dma_show());
		CHECK_EQUAL(buffer_of(BUFFERS + i % 4 * 2)->card, 0);
		CHECK(drivers(TX_RING)[at].control & DD);
	}
	xen_dma_status(&xen_counts);
	CHECK_EQUAL(xen_counts.doorbells, 200);
	CHECK_EQUAL(xen_counts.descriptors, 208);
	CHECK_EQUAL(xen_counts.written_back, 200);
	CHECK_EQUAL(aborts, 0);
	detach();
}

/* What the card wrote until its receiver was off is in dom0's ring. */
static void dom0_has_all_that_the_card_wrote(void)
{
	attach();
	CHECK(receives(0x55));
	CHECK(give_sent(5, machine(POOL), LEGACY(60)));
	CHECK(sends());
	detach();
	CHECK(drivers(RX_RING)[12].control & DD);
	CHECK(drivers(TX_RING)[5].control & DD);
	xen_dma_give_back();
	nothing_is_left();
}

/* A card that has packets, which nobody will complete. */
static void what_the_card_has_is_released(void)
{
	attach();
	CHECK(give_sent(5, machine(POOL), LEGACY(60)));
	CHECK(give_sent(6, machine(BUFFERS), LEGACY(60)));
	CHECK_EQUAL(buffer_of(BUFFERS)->card, 1);
	now = 0;
	detach();
	/* It was waited for. */
	CHECK(now >= REST);
}

/* What it has not sent waits in a ring that the driver may have changed since. */
static void what_was_not_sent_is_not_sent_from_dom0s_ring(void)
{
	attach();
	CHECK(give_sent(5, machine(POOL), LEGACY(60)));
	drivers(TX_RING)[5].address = machine(GUESTS);
	detach();
	CHECK_EQUAL(sends(), 0);
	attach();
	CHECK(give_sent(5, machine(POOL), LEGACY(60)));
	CHECK_EQUAL(sends(), machine(POOL));
	detach();
	CHECK_EQUAL(*reg(TCTL) & 2, 2);
}

/* ---- What is held ---------------------------------------------------------------------------- */

enum { FIRST = 16, SECOND = 30 };	/* pages of the two pools, the second one from the end on */

static void set_up_pools(void)
{
	uint32_t i;

	set_up();
	for (i = 0; i < 4; i++) {
		pools[i] = FIRST + i;
		pools[4 + i] = SECOND - i;
	}
	xen_device.given.packets[0] = (struct twin_xen_range){ POOLS, 4 * PAGE };
	xen_device.given.packets[1] = (struct twin_xen_range){ POOLS + 4 * PAGE, 4 * PAGE };
}

static void take(void)
{
	CHECK_EQUAL(xen_dma_plan(&xen_device.given), 0);
	CHECK_EQUAL(xen_dma_take(), 0);
	*reg(RCTL) |= 2;
}

static void attach_pools(void)
{
	set_up_pools();
	take();
}

static void is_held_once(uint32_t number)
{
	CHECK_EQUAL(page[number].references, 1);
	CHECK_EQUAL(page[number].types, 1);
}

static void pools_are_held(void)
{
	uint32_t i;

	for (i = 0; i < 4; i++) {
		is_held_once(FIRST + i);
		is_held_once(SECOND - i);
	}
	CHECK_EQUAL(page[FIRST - 1].references + page[FIRST + 4].references, 0);
	CHECK_EQUAL(page[SECOND + 1].references + page[SECOND - 4].references, 0);
}

/* Descriptors of theirs take nothing, and give nothing back: neither while the card has them nor later. */
static void pools_are_held_once(void)
{
	uint32_t i, before;

	attach_pools();
	pools_are_held();
	/* And four pages that the card had. */
	CHECK_EQUAL(xen_held_pages(), 8 + 4);
	before = held_pages();
	for (i = 0; i < 100; i++) {
		const uint64_t at = machine(i % 2 ? FIRST + i % 4 : SECOND - i % 4) + i % 3 * 500;

		CHECK(receives((uint8_t)i));
		CHECK(xen_dma_show());
		CHECK(give_received((4 + i) % COUNT, at));
		CHECK(give_sent((5 + i) % COUNT, at, LEGACY(1000)));
		CHECK_EQUAL(held_pages(), before);
		CHECK_EQUAL(sends(), at);
		CHECK(xen_dma_show());
		CHECK_EQUAL(held_pages(), before);
	}
	pools_are_held();
	CHECK_EQUAL(aborts, 0);
	detach();
	CHECK_EQUAL(xen_held_pages(), 0);
}

/* However often it is taken and given back; also if the driver ends in between. */
static void all_is_let_go(void)
{
	uint32_t i;

	for (i = 0; i < 10; i++) {
		attach_pools();
		CHECK(give_sent(5, machine(FIRST), LEGACY(60)));
		CHECK(give_received(4, machine(SECOND)));
		if (i % 2)
			CHECK(!give_received(5, machine(GUESTS)));
		pools_are_held();
		detach();
		/* dom0 does with them what it wants. */
		CHECK(!xen_frame_entry(&xen_frames, machine(FIRST) / PAGE));
		xen_dma_give_back();
		nothing_is_left();
	}
}

/* The card had them, and dom0 keeps them until the driver is back: they go round, too. */
static void what_the_card_had_is_held(void)
{
	attach();
	CHECK_EQUAL(xen_held_pages(), 4);
	CHECK(receives(1));
	CHECK(receives(2));
	CHECK(xen_dma_show());
	is_held_once(POOL);
	CHECK(give_received(4, machine(POOL) + 64));
	is_held_once(POOL);
	/* Another page is not, from then on: its reference lasts as long as its descriptor. */
	CHECK(give_received(5, machine(POOL + 20)));
	is_held_once(POOL + 20);
	while (receives(3))
		CHECK(xen_dma_show());
	CHECK_EQUAL(page[POOL + 20].references + page[POOL + 20].types, 0);
	is_held_once(POOL);
	CHECK_EQUAL(xen_held_pages(), 4);
	detach();
}

/* dom0's memory for packets is not what it says. */
static void is_no_pool(const struct twin_xen_range *range)
{
	xen_device.given.packets[1] = *range;
	CHECK_EQUAL(xen_dma_plan(&xen_device.given), 0);
	CHECK_EQUAL(xen_dma_take(), -XEN_EINVAL);
	CHECK(strstr(xen_reason, "memory for packets"));
	CHECK_EQUAL(base(TX), machine(TX_RING));
	nothing_is_left();
	xen_dma_give_back();
	nothing_is_left();
}

static void pools_that_are_none(void)
{
	static const uint32_t others[] = { TABLE, GUESTS, XENS, BUFFERS, BUFFERS + 1, PAGES, 0 };
	static const struct twin_xen_range bad[] = {
		{ POOLS + 8, PAGE }, { POOLS, 100 }, { POOLS + (POOL_PAGES - 1) * PAGE, 2 * PAGE }, { 0, PAGE }, { POOLS, ~0ull }, { POOLS, 0ull - PAGE },
	};
	uint32_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		set_up_pools();
		pools[5] = others[i];
		is_no_pool(&(struct twin_xen_range){ POOLS + 4 * PAGE, 4 * PAGE });
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		set_up_pools();
		is_no_pool(&bad[i]);
	}
	/* What is too long is not begun with. */
	set_up_pools();
	walked = 0;
	is_no_pool(&(struct twin_xen_range){ POOLS, (uint64_t)(MOST_PAGES + 1) * PAGE });
	CHECK_EQUAL(walked, 4);
	set_up_pools();
	no_table = true;
	CHECK_EQUAL(xen_dma_plan(&xen_device.given), 0);
	CHECK_EQUAL(xen_dma_take(), -XEN_ENOMEM);
	nothing_is_left();
}

static void a_page_in_both_pools_is_held_once(void)
{
	set_up_pools();
	pools[6] = pools[0];
	take();
	is_held_once(FIRST);
	CHECK_EQUAL(xen_held_pages(), 7 + 4);
	detach();
}

/* A buffer of two pages, of which one is held. */
static void at_the_edges_of_what_is_held(void)
{
	const uint64_t end = machine(FIRST + 4), start = machine(FIRST);
	uint32_t before;

	attach_pools();
	before = held_pages();
	CHECK(give_received(4, end - LONGEST));		/* its last page ends there */
	CHECK_EQUAL(held_pages(), before);
	CHECK(give_received(5, end - LONGEST + 1));
	CHECK_EQUAL(held_pages(), before + 2);
	is_held_once(FIRST + 4);
	CHECK(give_received(6, start - 1));
	CHECK_EQUAL(held_pages(), before + 4);
	is_held_once(FIRST - 1);
	CHECK(give_received(7, start + PAGE - 1));	/* of two that are held */
	CHECK_EQUAL(held_pages(), before + 4);
	CHECK(give_sent(5, end - 1, LEGACY(2)));
	CHECK_EQUAL(page[FIRST + 4].references, 2);
	CHECK_EQUAL(page[FIRST + 4].types, 1);
	CHECK_EQUAL(sends(), end - 1);
	while (receives(1))
		CHECK(xen_dma_show());
	CHECK_EQUAL(held_pages(), before);
	pools_are_held();
	detach();
}

static void is_refused_beside(uint32_t after, bool sent)
{
	const uint64_t address = machine(after) - 8;
	uint32_t before;

	set_up_pools();
	pools[1] = after - 1;
	take();
	before = held_pages();
	CHECK(!(sent ? give_sent(5, address, LEGACY(60)) : give_received(4, address)));
	is_refused(TWIN_DMA_FOREIGN, sent ? TWIN_DMA_TRANSMIT : TWIN_DMA_RECEIVE, sent ? 5 : 4, address);
	CHECK_EQUAL(held_pages(), before);
	detach();
}

/* That a part of it is held is no reason for the rest. */
static void others_pages_beside_one_that_is_held(void)
{
	is_refused_beside(TABLE, false);
	/* Its pages are no pool's, but are dom0's to read. */
	set_up_pools();
	pools[1] = TABLE - 1;
	take();
	CHECK(give_sent(5, machine(TABLE) - 8, LEGACY(60)));
	CHECK_EQUAL(page[TABLE].references, 1);
	CHECK_EQUAL(page[TABLE].types, 0);
	detach();
	/* None of dom0's is before a guest's here: what is sent is refused by its second page alone. */
	attach_pools();
	CHECK(!give_sent(5, machine(GUESTS) - 8, LEGACY(60)));
	is_refused(TWIN_DMA_FOREIGN, TWIN_DMA_TRANSMIT, 5, machine(GUESTS) - 8);
	detach();
}

/* The driver says that a packet is sent which the card has: its buffer waits for the card. */
static void a_buffer_waits_for_the_card(void)
{
	attach();
	CHECK(give_sent(5, machine(BUFFERS), LEGACY(60)));
	CHECK(give_sent(6, machine(BUFFERS) + 100, LEGACY(60)));
	CHECK_EQUAL(buffer_of(BUFFERS)->card, 2);
	buffer_of(BUFFERS)->state = XEN_BUFFER_HELD;
	CHECK(sends());
	CHECK(xen_dma_show());
	CHECK_EQUAL(freed, 0);
	CHECK_EQUAL(buffer_of(BUFFERS)->card, 1);
	CHECK(sends());
	CHECK(xen_dma_show());
	CHECK_EQUAL(freed, 1);
	/* It has no packet now. */
	CHECK(!give_sent(7, machine(BUFFERS), LEGACY(60)));
	is_refused(TWIN_DMA_FOREIGN, TWIN_DMA_TRANSMIT, 7, machine(BUFFERS));
	detach();
	CHECK_EQUAL(freed, 1);
}

static void is_not_sent_while(enum xen_buffer_state state)
{
	attach();
	buffer_of(BUFFERS)->state = state;
	CHECK(!give_sent(5, machine(BUFFERS), LEGACY(60)));
	is_refused(TWIN_DMA_FOREIGN, TWIN_DMA_TRANSMIT, 5, machine(BUFFERS));
	detach();
}

static void only_buffers_with_packets_are_sent(void)
{
	is_not_sent_while(XEN_BUFFER_FREE);
	is_not_sent_while(XEN_BUFFER_LOST);
	is_not_sent_while(XEN_BUFFER_HELD);
	attach();
	/* Two in a row, and a part of a page behind them that has none. */
	buffer_of(BUFFERS + 1)->state = XEN_BUFFER_SENT;
	CHECK(give_sent(5, machine(BUFFERS + 1) - 8, LEGACY(60)));
	CHECK_EQUAL(buffer_of(BUFFERS)->card + buffer_of(BUFFERS + 1)->card, 2);
	CHECK(sends());
	CHECK(xen_dma_show());
	CHECK_EQUAL(buffer_of(BUFFERS)->card + buffer_of(BUFFERS + 1)->card, 0);
	CHECK(!give_sent(6, machine(BUFFERS + 3) - 8, LEGACY(60)));
	CHECK_EQUAL(buffer_of(BUFFERS + 2)->card, 0);
	detach();
}

/* ---- What a bad one does ----------------------------------------------------------------------- */

static void nothing_is_received_into(uint64_t address)
{
	attach();
	CHECK(!give_received(4, address));
	is_refused(TWIN_DMA_FOREIGN, TWIN_DMA_RECEIVE, 4, address);
	CHECK_EQUAL(*reg(RX + 0x18), 4);
	detach();
}

static void others_pages_are_not_received_into(void)
{
	nothing_is_received_into(machine(TABLE));		/* dom0's page table */
	nothing_is_received_into(machine(TABLE - 1) + PAGE - 8);	/* its last bytes are in one */
	nothing_is_received_into(machine(GUESTS));
	nothing_is_received_into(machine(XENS));
	nothing_is_received_into(machine(BUFFERS));		/* Xen's, for what is sent */
	nothing_is_received_into(machine(PAGES));		/* no memory */
	nothing_is_received_into((uint64_t)card);
	nothing_is_received_into(0);
	nothing_is_received_into(1ull << 63);
}

/* A frame is not as long as the buffer: what is behind it is not the card's. */
static void a_buffer_ends_where_a_frame_does(void)
{
	attach();
	CHECK(give_received(4, machine(TABLE) - LONGEST));
	CHECK_EQUAL(page[TABLE - 1].types, 1);
	CHECK(!give_received(5, machine(TABLE) - LONGEST + 1));
	is_refused(TWIN_DMA_FOREIGN, TWIN_DMA_RECEIVE, 5, machine(TABLE) - LONGEST + 1);
	detach();
}

static void nothing_is_sent(uint64_t address, uint32_t length)
{
	attach();
	CHECK(!give_sent(5, address, LEGACY(length)));
	is_refused(TWIN_DMA_FOREIGN, TWIN_DMA_TRANSMIT, 5, address);
	CHECK_EQUAL(*reg(TX + 0x18), 5);
	CHECK_EQUAL(sends(), 0);
	detach();
}

static void others_pages_are_not_sent(void)
{
	nothing_is_sent(machine(GUESTS), 60);
	nothing_is_sent(machine(GUESTS) - 4, 60);	/* a part of it is dom0's */
	nothing_is_sent(machine(XENS), 60);
	nothing_is_sent(machine(BUFFERS + 1), 60);	/* of no packet */
	nothing_is_sent(machine(BUFFERS + 1) - 4, 60);
	nothing_is_sent(machine(PAGES), 60);
}

/* All before it, and the doorbell, go for nothing: the card has none of them. */
static void one_bad_descriptor_is_enough(void)
{
	uint32_t before;

	attach();
	before = held_pages();
	drivers(TX_RING)[5] = (struct twin_dma_descriptor){ machine(POOL), LEGACY(60) };
	drivers(TX_RING)[6] = (struct twin_dma_descriptor){ machine(BUFFERS), LEGACY(60) };
	CHECK(!give_sent(7, machine(GUESTS), LEGACY(60)));
	is_refused(TWIN_DMA_FOREIGN, TWIN_DMA_TRANSMIT, 7, machine(GUESTS));
	CHECK_EQUAL(*reg(TX + 0x18), 5);
	CHECK_EQUAL(held_pages(), before);
	detach();
}

static void tails_of_anything(void)
{
	attach();
	*tail(TX_TAIL, TX) = COUNT;
	CHECK(!xen_dma_ring());
	is_refused(TWIN_DMA_TAIL, TWIN_DMA_TRANSMIT, 5, COUNT);
	detach();
	attach();
	*tail(RX_TAIL, RX) = 13;	/* beyond what the card has */
	CHECK(!xen_dma_ring());
	is_refused(TWIN_DMA_OVERRUN, TWIN_DMA_RECEIVE, 4, 13);
	detach();
}

/* It was checked, then it is another: the card has the one that was checked, and it is noticed. */
static void a_descriptor_that_changes_is_not_the_cards(void)
{
	attach();
	CHECK(give_sent(5, machine(POOL), LEGACY(60)));
	drivers(TX_RING)[5].address = machine(GUESTS);
	CHECK_EQUAL(sends(), machine(POOL));
	CHECK(!xen_dma_show());
	is_refused(TWIN_DMA_CHANGED, TWIN_DMA_TRANSMIT, 5, machine(GUESTS));
	detach();
}

static void words_name_ring_descriptor_and_address(void)
{
	char text[TWIN_XEN_PLACE];

	xen_dma_describe(TWIN_DMA_REASON(TWIN_DMA_FOREIGN, TWIN_DMA_RECEIVE, 17), 0xabc000, text);
	CHECK(!strcmp(text, "receive descriptor 17: a page that the card may not use: abc000"));
	xen_dma_describe(TWIN_DMA_REASON(TWIN_DMA_TAIL, TWIN_DMA_TRANSMIT, 3), 0x900, text);
	CHECK(!strcmp(text, "transmit descriptor 3: the tail is not in the ring: 900"));
	xen_dma_describe(UINT32_MAX, 0, text);
	CHECK(strstr(text, "?"));
}

/* ---- Attachments that are refused ---------------------------------------------------------------- */

static void is_not_taken(long error)
{
	CHECK_EQUAL(xen_dma_plan(&xen_device.given), 0);
	CHECK_EQUAL(xen_dma_take(), error);
	CHECK(xen_reason[0]);
	CHECK_EQUAL(base(TX), machine(TX_RING));
	xen_dma_give_back();
	nothing_is_left();
}

static void a_card_that_is_not_at_rest(void)
{
	set_up();
	*reg(RCTL) = 2;
	is_not_taken(-XEN_EBUSY);
	set_up();
	*reg(TX + 0x18) = 6;
	is_not_taken(-XEN_EBUSY);
}

static void registers_that_others_can_write(void)
{
	set_up();
	cannot_guard = true;
	is_not_taken(-XEN_EBUSY);
}

static void rings_that_are_none(void)
{
	set_up();
	*reg(TX + 8) = 0;
	is_not_taken(-XEN_EINVAL);
	set_up();
	*reg(RX + 8) = (COUNT + 1) * 16;
	is_not_taken(-XEN_EINVAL);
	set_up();
	*reg(RX + 8) = 1u << 31;
	is_not_taken(-XEN_EINVAL);
	set_up();
	*reg(RX) = (uint32_t)machine(GUESTS);
	*reg(RX + 4) = (uint32_t)(machine(GUESTS) >> 32);
	is_not_taken(-XEN_EINVAL);
	set_up();
	*reg(RX) = (uint32_t)machine(TABLE);
	is_not_taken(-XEN_EINVAL);
	set_up();
	*reg(RCTL) = 1u << 10;		/* descriptors of another type */
	is_not_taken(-XEN_EINVAL);
	set_up();
	drivers(RX_RING)[15].address = machine(GUESTS);
	is_not_taken(-XEN_EINVAL);
	set_up();
	none_left = true;
	is_not_taken(-XEN_EINVAL);
}

/* dom0 says that memory is a card. */
static void memory_is_no_card(void)
{
	set_up();
	no_device = true;
	CHECK_EQUAL(xen_dma_plan(&xen_device.given), -XEN_EINVAL);
	set_up();
	xen_device.given.registers = 0;
	CHECK_EQUAL(xen_dma_plan(&xen_device.given), -XEN_EINVAL);
	xen_dma_give_back();
	nothing_is_left();
}

static void sizes_of_buffers(void)
{
	static const struct {
		uint32_t control, bytes;
	} sizes[] = {
		{ 0, 1522 }, { 1u << 2, 2048 }, { 1u << 5, 2048 }, { 1u << 16, 1024 }, { 2u << 16, 512 }, { 3u << 16, 256 },
		{ 1u << 25, 0 }, { 1u << 25 | 1u << 16, 1522 }, { 1u << 25 | 1u << 16 | 32, 16384 },
		{ 1u << 25 | 2u << 16 | 32, 8192 }, { 1u << 25 | 3u << 16 | 32, 4096 }, { 1u << 10, 0 }, { 2u << 10, 0 },
	};
	uint32_t i;

	set_up();
	CHECK_EQUAL(xen_dma_plan(&xen_device.given), 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		*reg(RCTL) = sizes[i].control;
		CHECK_EQUAL(xen_card_buffer(), sizes[i].bytes);
	}
	xen_dma_give_back();
}

/* ---- Registers that others write ------------------------------------------------------------------ */

static void what_changes_no_ring_is_written(void)
{
	static const uint16_t offsets[] = {
		0xc0, 0xc4, 0xc8, 0xd0, 0xd8, 0x20, 0x458, 0xe00, 0x5200, 0x53fc, 0x5400, 0x547c, 0x5600, 0x57fc,
	};
	uint32_t i;

	attach();
	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		CHECK(xen_card_write(offsets[i], 0x1000 + i));
		CHECK_EQUAL(*reg(offsets[i]), 0x1000 + i);
	}
	CHECK(xen_card_write(0, 0x40));
	CHECK(xen_card_write(RCTL, 0x801a));	/* filters, on */
	CHECK_EQUAL(*reg(RCTL), 0x801a);
	CHECK(xen_card_write(TCTL, 0x3f0fa));
	CHECK_EQUAL(*reg(TCTL), 0x3f0fa);
	CHECK(xen_card_write(0x18, 0x80));
	/* Bits of another card's stay as they are. */
	*reg(0) = 1u << 2;
	CHECK(xen_card_write(0, 1u << 2 | 0x40));
	CHECK(!xen_card_write(0, 0x40));
	detach();
}

static void what_changes_rings_is_not(void)
{
	static const struct {
		uint32_t offset, value;
	} bad[] = {
		{ 0, 1u << 26 }, { 4, 1u << 26 }, { 0x18, 1u << 13 }, { RCTL, 2 | 1u << 16 },
		{ RCTL, 2 | 1u << 25 }, { RCTL, 2 | 1u << 25 | 1u << 16 }, { RCTL, 2 | 1u << 10 },
		{ RCTL, 2 | 1u << 2 }, { RCTL, 2 | 1u << 5 },
		{ 0x110, 1 }, { 0x118, 1 }, { 0x128, 1 }, { 0x420, 1 }, { 0x428, 1 }, { 0x438, 1 },
		{ 0x2800, 1 }, { 0x2804, 1 }, { 0x2808, 1 }, { 0x2810, 1 }, { 0x2818, 1 }, { 0x3800, 1 },
		{ 0x3818, 1 }, { 0x3010, 1 }, { 0xffc, 1 }, { 2, 1 }, { 0xd9, 1 }, { 0x4000, 1 },
		/* The order of bytes, of words. */
		{ 0, 1u << 1 }, { 0, 1u << 10 }, { 4, 1u << 1 }, { 4, 1u << 10 },
		/* Of no 8254x; and FLA, split headers (PSRCTL), a second ring of each, extended descriptors (RFCTL, below). */
		{ 0x1c, 1 }, { 0x2170, 1 }, { 0x2900, 1 }, { 0x3900, 1 }, { 0x3918, 1 }, { 0x3838, 1 },
		{ RCTL, 2 | 1u << 27 }, { RCTL, 2 | 1u << 31 }, { TCTL, 2 | 1u << 28 }, { 0x18, 1u << 28 },
		/* The packets' memory: how it is divided, where it is filled, what is in it. */
		{ 0x1000, 1 }, { 0x2410, 1 }, { 0x3418, 1 }, { 0x8000, 1 }, { 0x8018, 1 }, { 0x10000, 1 },
		{ 0x1fffc, 1 },
		/* Beside filters, and none of their words: RXCSUM, and what other cards have there. */
		{ 0x5000, 1 }, { 0x5008, 1 }, { 0x51fc, 1 }, { 0x5480, 1 }, { 0x55fc, 1 }, { 0x5800, 1 },
		{ 0x5201, 1 }, { 0x57fe, 1 }, { 0x20000, 1 }, { UINT32_MAX, 1 },
	};
	static uint32_t before[REGISTERS / 4];
	uint32_t i;

	attach();
	memcpy(before, card, REGISTERS);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!xen_card_write(bad[i].offset, bad[i].value));
	CHECK(!memcmp(before, card, REGISTERS));
	detach();
	CHECK(!xen_card_write(0xd0, 1));
}

/* dom0 turns a unit on while its rings are about to change hands. */
static void a_card_at_rest_stays_at_rest(void)
{
	attach();
	xen_card_rest();
	CHECK(!xen_card_is_on(TWIN_DMA_TRANSMIT) && !xen_card_is_on(TWIN_DMA_RECEIVE));
	CHECK(xen_card_write(RCTL, 0x8002));
	CHECK_EQUAL(*reg(RCTL), 0x8000);
	CHECK(xen_card_write(TCTL, 0xa));
	CHECK_EQUAL(*reg(TCTL), 8);
	detach();
	attach();
	CHECK(xen_card_write(RCTL, 2));
	CHECK_EQUAL(*reg(RCTL), 2);
	detach();
}

static void without_the_stage_nothing_is_done(void)
{
	set_up();
	xen_device.given.stages.dma = 0;
	xen_device.given.registers = 0;
	CHECK_EQUAL(xen_dma_plan(&xen_device.given), 0);
	CHECK_EQUAL(xen_dma_take(), 0);
	*tail(TX_TAIL, TX) = 77;
	CHECK(xen_dma_show());
	CHECK(xen_dma_ring());
	xen_dma_give_back();
	CHECK_EQUAL(base(TX), machine(TX_RING));
	nothing_is_left();
}

static void run(void)
{
	RUN(the_card_has_copies_of_what_it_had);
	RUN(frames_come_and_go);
	RUN(dom0_has_all_that_the_card_wrote);
	RUN(what_the_card_has_is_released);
	RUN(what_was_not_sent_is_not_sent_from_dom0s_ring);
	RUN(pools_are_held_once);
	RUN(all_is_let_go);
	RUN(what_the_card_had_is_held);
	RUN(pools_that_are_none);
	RUN(a_page_in_both_pools_is_held_once);
	RUN(at_the_edges_of_what_is_held);
	RUN(others_pages_beside_one_that_is_held);
	RUN(a_buffer_waits_for_the_card);
	RUN(only_buffers_with_packets_are_sent);
	RUN(others_pages_are_not_received_into);
	RUN(others_pages_are_not_sent);
	RUN(a_buffer_ends_where_a_frame_does);
	RUN(one_bad_descriptor_is_enough);
	RUN(tails_of_anything);
	RUN(a_descriptor_that_changes_is_not_the_cards);
	RUN(words_name_ring_descriptor_and_address);
	RUN(a_card_that_is_not_at_rest);
	RUN(registers_that_others_can_write);
	RUN(rings_that_are_none);
	RUN(memory_is_no_card);
	RUN(sizes_of_buffers);
	RUN(what_changes_no_ring_is_written);
	RUN(what_changes_rings_is_not);
	RUN(a_card_at_rest_stays_at_rest);
	RUN(without_the_stage_nothing_is_done);
}

int main(void)
{
	memory = mmap((void *)MEMORY, PAGES * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(memory == (uint8_t *)MEMORY);
	card = aligned_alloc(PAGE, REGISTERS);
	on_xens_stack(run, NULL);
	munmap(memory, PAGES * PAGE);
	free(card);
	return test_summary();
}
