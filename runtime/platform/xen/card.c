// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card's registers, which are Xen's to write where rings are concerned; see descriptors.c.
 *
 * Numbers are those of Intel's 8254x (Software Developer's Manual, 317453, 13.4), all of which have
 * 128 KiB of them (XEN_CARD_PAGES):
 *
 *   page 0	RCTL, TCTL, the device's control, interrupts
 *   page 1	how the packets' memory is divided (PBA)
 *   page 2	the receive ring, its tail RDT among it; and where that memory is filled
 *   page 3	the transmit ring, TDT
 *   page 5	filters
 *   16 to 31	the packets' memory itself (13.8), where each has its length beside it
 *
 * They are mapped once more for Xen, where neither dom0 nor driver code has anything, and stay so: taking the mapping
 * away is a flush of all TLBs for each page (mm.c, map_pages_to_xen), while dom0 stands. The next attachment of the
 * card finds it, and the payload is not taken back before it is gone (payload.c).
 */
#include "card.h"

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

static volatile uint32_t *registers;	/* from map to unmap */
static void *mapped;			/* what is mapped for Xen, or NULL */
static uint64_t mapped_at;		/* ... of the machine's addresses */
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
	for (page = 0; page < XEN_CARD_PAGES; page++)
		if (!is_device((machine >> TWIN_PAGE_SHIFT) + page))
			return false;
	if (mapped_at != machine)
		xen_card_forget();
	if (!mapped)
		mapped = ioremap(machine, XEN_CARD_PAGES * TWIN_PAGE_SIZE);
	mapped_at = machine;
	resting = false;
	registers = mapped;
	return registers;
}

/* Another processor may be in the middle of a write of dom0's, which it began while they were guarded. */
void xen_card_unmap(void)
{
	lock_registers();
	registers = NULL;
	unlock_registers();
}

void xen_card_forget(void)
{
	if (mapped)
		vunmap(mapped);
	mapped = NULL;
}

bool xen_card_is_mapped(void)
{
	return mapped;
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

/* MTA, RAL and RAH; VFTA (13.5). */
static bool is_filter(uint32_t offset)
{
	return (offset >= 0x5200 && offset < 0x5480) || (offset >= 0x5600 && offset < 0x5800);
}

/* Any value may be written. Such a register is not read, which some answer with a change. */
#define ANY	0xffffffffu

/*
 * The bits of a register that may change; the others stay as they are, whatever they mean on that card.
 * Known is what e1000 writes while it is open. The rest, 0, is refused: rings have a second address on some cards, and
 * so has the place in the packets' memory (table 13-2).
 */
static uint32_t may_change(uint32_t offset)
{
	switch (offset) {
	/* CTRL (13.4.1), at two addresses; not RST, which ends the rings, nor the order of bytes in descriptors,
	 * which some cards have in bits 1 and 10. */
	case 0x0000:
	case 0x0004:
		return 0xdbfc1be9;
	/* CTRL_EXT (13.4.6); not EE_RST, which reads the device's configuration anew. */
	case 0x0018:
		return 0x00009fff;
	/* RCTL (13.4.22); not what rings were checked for: SBP, LPE, DTYP, BSIZE, BSEX. */
	case 0x0100:
		return 0x04dcb31a;
	/* TCTL (13.4.33) */
	case 0x0400:
		return 0x017ffffa;
	/* What is found in these does not lead to memory: STATUS, EECD, EERD, MDIC, FCAL, FCAH, FCT, VET; */
	case 0x0008: case 0x0010: case 0x0014: case 0x0020:
	case 0x0028: case 0x002c: case 0x0030: case 0x0038:
	/* ICR, ITR, ICS, IMS, IMC; FCTTV, TXCW; TIPG, AIT; LEDCTL; and the filters. */
	case 0x00c0: case 0x00c4: case 0x00c8: case 0x00d0: case 0x00d8:
	case 0x0170: case 0x0178: case 0x0410: case 0x0458: case 0x0e00:
		return ANY;
	default:
		return is_filter(offset) ? ANY : 0;
	}
}

static bool may_be_written(uint32_t offset, uint32_t value)
{
	const uint32_t bits = may_change(offset);

	if (!bits || offset % sizeof(*registers))
		return false;
	return bits == ANY || !((value ^ *at(offset)) & ~bits);
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
