/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What tests of the card's rings inside Xen share: platform/xen/descriptors.c, held.c, pages.c and card.c over the core's check,
 * with a model of all around them. The
 * card is a model of its registers and of what it does with rings; machine memory is this program's, at
 * its own addresses, which are low ones, and each of its pages is somebody's.
 */
#ifndef TWIN_TESTS_XEN_DMA_H
#define TWIN_TESTS_XEN_DMA_H

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
static uint32_t limit;		/* of what Xen has memory for */
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

void *alloc_xenheap_pages(unsigned int order, unsigned int flags)
{
	void *pages = allocated >= limit ? NULL : aligned_alloc(PAGE, PAGE << order);

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

/* Where dom0 has the driver's registers mapped. */
#define MAPPED (1ull << 32)

int xen_guard_begin(uint64_t at, uint64_t mapped)
{
	CHECK_EQUAL(at, (uint64_t)card);
	CHECK_EQUAL(mapped, MAPPED);
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
	/* Nor a write that another processor had begun before (guard.c). */
	CHECK(!xen_card_write(0x00c8, 1));
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
	no_device = cannot_guard = false;
	limit = ~0u;
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
	/* Nor does a write come through that another processor had begun before (guard.c). */
	CHECK(!xen_card_write(0x00c8, 1));
	xen_card_forget();
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

/* Runs tests on a stack like Xen's, and gives main()'s status. */
static int with_memory(void (*run)(void))
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

#endif /* TWIN_TESTS_XEN_DMA_H */
