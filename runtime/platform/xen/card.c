// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card's registers, which are Xen's to write where rings are concerned; see descriptors.c.
 *
 * Numbers are those of Intel's 8254x (Software Developer's Manual, 317453, 13.4). The card of an
 * 82540EM has 128 KiB of them, of which the first four pages have all that memory is reached by:
 *
 *   page 0	RCTL, TCTL, the device's control
 *   page 2	the receive ring, its tail RDT among it
 *   page 3	the transmit ring, TDT
 *
 * They are mapped once more for Xen, where neither dom0 nor driver code has anything.
 */
#include "card.h"

#define PAGES		4u

/* RCTL (13.4.22) */
#define BAD		(1u << 2)	/* SBP: frames with errors are received, too */
#define LONG		(1u << 5)	/* LPE: and those that are longer than LONGEST */
#define LONGEST		1522u
#define ENABLE		(1u << 1)	/* of TCTL (13.4.33), too */
#define TYPE		(3u << 10)	/* of descriptors; 0: legacy */
#define SIZE_SHIFT	16
#define SIZE_LONG	(1u << 25)	/* sizes are 16 times as large */
/* STATUS (13.4.2), whose reading pushes writes to the card. */
#define STATUS		0x0008u

void *ioremap(uint64_t machine, unsigned long bytes);
void vunmap(const void *address);
extern struct domain *dom_io;

static volatile uint32_t *registers;
static uint32_t lock;		/* while one is changed */
static bool resting;		/* units stay off */

static void lock_registers(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		__asm__ volatile("pause" ::: "memory");
}

static void unlock_registers(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* Ring registers of a kind, from its base register on (13.4.25 to 13.4.29, 13.4.36 to 13.4.40). */
static const uint32_t first[TWIN_DMA_RINGS] = {
	[TWIN_DMA_TRANSMIT] = 0x3800,
	[TWIN_DMA_RECEIVE] = 0x2800,
};
enum { BASE_LOW = 0, BASE_HIGH = 4, LENGTH = 8, HEAD = 0x10, TAIL = 0x18 };
static const uint32_t control[TWIN_DMA_RINGS] = {
	[TWIN_DMA_TRANSMIT] = 0x0400,
	[TWIN_DMA_RECEIVE] = 0x0100,
};

static volatile uint32_t *at(uint32_t offset)
{
	return &registers[offset / sizeof(*registers)];
}

/* Not memory that a domain has: the frames between a machine's memory are nobody's or dom_io's. */
static bool is_device(uint64_t frame)
{
	struct page_info *page = xen_page_of(frame);

	if (frame >= max_page || !__mfn_valid(frame))
		return true;
	if (!get_page(page, dom_io))
		return false;
	put_page(page);
	return true;
}

bool xen_card_map(uint64_t machine)
{
	uint64_t page;

	xen_card_unmap();
	for (page = 0; page < PAGES; page++)
		if (!is_device((machine >> TWIN_PAGE_SHIFT) + page))
			return false;
	registers = ioremap(machine, PAGES * TWIN_PAGE_SIZE);
	resting = false;
	return registers;
}

void xen_card_unmap(void)
{
	if (registers)
		vunmap((const void *)registers);
	registers = NULL;
}

uint32_t xen_card_doorbell(uint32_t kind)
{
	return first[kind] + TAIL;
}

struct xen_card_ring xen_card_ring(uint32_t kind)
{
	const uint32_t from = first[kind];

	return (struct xen_card_ring){
		.base = (uint64_t)*at(from + BASE_HIGH) << 32 | *at(from + BASE_LOW),
		.count = *at(from + LENGTH) / (uint32_t)sizeof(struct twin_dma_descriptor),
		.head = *at(from + HEAD),
		.tail = *at(from + TAIL),
		.tail_register = at(from + TAIL),
	};
}

void xen_card_lead(uint32_t kind, uint64_t base)
{
	*at(first[kind] + BASE_LOW) = (uint32_t)base;
	*at(first[kind] + BASE_HIGH) = (uint32_t)(base >> 32);
}

bool xen_card_is_on(uint32_t kind)
{
	return *at(control[kind]) & ENABLE;
}

void xen_card_switch(uint32_t kind, bool on)
{
	uint32_t value;

	lock_registers();
	value = *at(control[kind]);
	*at(control[kind]) = on ? value | ENABLE : value & ~ENABLE;
	(void)*at(STATUS);
	unlock_registers();
}

void xen_card_rest(void)
{
	uint32_t kind;

	lock_registers();
	resting = true;
	unlock_registers();
	for (kind = 0; kind < TWIN_DMA_RINGS; kind++)
		xen_card_switch(kind, false);
}

/* ---- Others' writes ---------------------------------------------------------------- */

/* What e1000 writes of the first page while it is open, and what it finds there does not lead to memory: STATUS,
 * EECD, EERD, CTRL_EXT, MDIC, FCAL, FCAH, FCT, VET; ICR, ITR, ICS, IMS, IMC; FCTTV, TXCW; TIPG, AIT; LEDCTL. Rings
 * have a second address in this page on some cards (table 13-2), which is not among them. */
static const uint16_t harmless[] = {
	0x0008, 0x0010, 0x0014, 0x0018, 0x0020, 0x0028, 0x002c, 0x0030, 0x0038,
	0x00c0, 0x00c4, 0x00c8, 0x00d0, 0x00d8, 0x0170, 0x0178, 0x0410, 0x0458, 0x0e00,
};
/* The device's control (13.4.1), which has two addresses; RST ends the rings. */
#define CTRL		0x0000u
#define CTRL_AGAIN	0x0004u
#define RESET		(1u << 26)
/* CTRL_EXT (13.4.6): EE_RST reads the device's configuration anew. */
#define CTRL_EXT	0x0018u
#define CONFIGURE	(1u << 13)
/* Of RCTL, what rings were checked for. */
#define FIXED		(BAD | LONG | TYPE | 3u << SIZE_SHIFT | SIZE_LONG)

static bool is_harmless(uint32_t offset)
{
	uint32_t i;

	for (i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (harmless[i] == offset)
			return true;
	return false;
}

static bool may_be_written(uint32_t offset, uint32_t value)
{
	switch (offset) {
	case CTRL:
	case CTRL_AGAIN:
		return !(value & RESET);
	case CTRL_EXT:
		return !(value & CONFIGURE);
	default:
		if (offset == control[TWIN_DMA_RECEIVE])
			return !((value ^ *at(offset)) & FIXED);
		return offset == control[TWIN_DMA_TRANSMIT] || is_harmless(offset);
	}
}

static bool is_control(uint32_t offset)
{
	return offset == control[TWIN_DMA_TRANSMIT] || offset == control[TWIN_DMA_RECEIVE];
}

bool xen_card_write(uint32_t offset, uint32_t value)
{
	bool may;

	lock_registers();
	may = registers && may_be_written(offset, value);
	if (may)
		*at(offset) = is_control(offset) && resting ? value & ~ENABLE : value;
	unlock_registers();
	return may;
}

/* A buffer of 2,048 bytes is mapped by e1000 for those of a frame alone (e1000_main.c, e1000_change_mtu): what is
 * behind them may be another's. */
uint32_t xen_card_buffer(void)
{
	const uint32_t value = *at(control[TWIN_DMA_RECEIVE]);
	const uint32_t shift = value >> SIZE_SHIFT & 3;
	uint32_t size = 2048u >> shift;

	if (value & TYPE)
		return 0;
	/* 0 is reserved. */
	if (value & SIZE_LONG)
		size = shift ? 32768u >> shift : 0;
	return !(value & (LONG | BAD)) && size > LONGEST ? LONGEST : size;
}
