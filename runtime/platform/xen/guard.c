// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card's registers are read-only, and who writes one is heard here: it is judged (card.c), and done here if it
 * may be. Where the driver has the pages of the rings mapped, memory is in their place (dom0/registers.c).
 *
 * Read-only, because Xen makes each mapping of a page in mmio_ro_ranges so, whoever makes it (mm.c,
 * get_page_from_l1e); and those that were there before are looked for in all page tables, with all
 * processors stopped. dom0's module has made them read-only; one that is writable refuses the attachment.
 * The window shows dom0's page tables, so what holds for them holds for driver code. What TLBs have of before
 * is flushed.
 *
 *   dom0 writes ──> page fault ──> Xen's emulation of writes to such pages ──> emulated_write
 *   driver code ──> page fault ──> fault.c ──────────> xen_guard_store: store.c has which value
 *                                                             └──> judged: xen_card_write
 */
#include "card.h"
#include "store.h"

struct rangeset;
struct x86_emulate_ctxt;
extern struct rangeset *mmio_ro_ranges;
int rangeset_add_range(struct rangeset *set, unsigned long first, unsigned long last);
int rangeset_remove_range(struct rangeset *set, unsigned long first, unsigned long last);
int stop_machine_run(int (*function)(void *), void *data, unsigned int processor);
int twin_original_mmio_ro_emulated_write(uint32_t segment, unsigned long offset, void *data,
					 unsigned int bytes, struct x86_emulate_ctxt *context);

/* page_info.type_info: how often a page is used as its type. */
#define TYPE_COUNT	((1ull << 54) - 1)
#define XEN_TYPE_L1	1ull
#define WRITABLE	(1ull << 1)
/* X86EMUL_OKAY */
#define DONE		0

/* The card's first frame; 0: none is guarded. And where driver code has its registers, in the window. */
static uint64_t guarded, drivers;

/* ---- Making them read-only -------------------------------------------------------------- */

static bool is_guarded(uint64_t frame)
{
	return guarded && frame - guarded < XEN_CARD_PAGES;
}

static bool is_page_table(uint64_t frame)
{
	uint64_t type;

	if (!__mfn_valid(frame))
		return false;
	type = xen_type_info(xen_page_of(frame));
	return type >> XEN_TYPE_SHIFT == XEN_TYPE_L1 && type & TYPE_COUNT;
}

static bool has_writable(const uint64_t *table)
{
	uint32_t i;

	for (i = 0; i < XEN_SLOTS; i++)
		if ((table[i] & (XEN_PAGE_PRESENT | WRITABLE)) == (XEN_PAGE_PRESENT | WRITABLE) &&
		    is_guarded((table[i] & XEN_PAGE_ADDRESS) >> TWIN_PAGE_SHIFT))
			return true;
	return false;
}

/* With all processors stopped: nobody is between asking Xen's set and writing an entry. */
static int look(void *found)
{
	uint64_t frame;

	for (frame = 0; frame < max_page; frame++)
		if (is_page_table(frame) && has_writable(xen_at(frame << TWIN_PAGE_SHIFT)))
			*(bool *)found = true;
	return 0;
}

static int refuse(int error, const char *text)
{
	xen_guard_end();
	return xen_refuse(error, text);
}

int xen_guard_begin(uint64_t machine, uint64_t mapped)
{
	const uint64_t first = machine >> TWIN_PAGE_SHIFT;
	bool found = false;

	if (rangeset_add_range(mmio_ro_ranges, first, first + XEN_CARD_PAGES - 1))
		return xen_refuse(-XEN_ENOMEM, "no memory to guard the card's registers" TWIN_XEN_WITHOUT_DMA);
	guarded = first;
	drivers = xen_cut(mapped);
	if (stop_machine_run(look, &found, xen_processor()))
		return refuse(-XEN_EBUSY, "the processors could not be stopped: try again");
	if (found)
		return refuse(-XEN_EBUSY, "the card's registers are mapped where they can be written to" TWIN_XEN_WITHOUT_DMA);
	flush_area_mask(cpu_online_map, NULL, XEN_FLUSH_TLB_ALL);
	return 0;
}

void xen_guard_end(void)
{
	if (guarded && rangeset_remove_range(mmio_ro_ranges, guarded, guarded + XEN_CARD_PAGES - 1))
		printk(XEN_WARNING "twin: registers at %lx stay read-only\n", guarded << TWIN_PAGE_SHIFT);
	guarded = drivers = 0;
}

/* ---- Writes --------------------------------------------------------------------------------- */

/* The guarded register at a linear address of the page table in use. */
static bool find(uint64_t address, uint64_t *offset)
{
	const uint64_t machine = guarded ? xen_alias_walk(address) : ~0ull;

	*offset = machine - (guarded << TWIN_PAGE_SHIFT);
	return machine != ~0ull && is_guarded(machine >> TWIN_PAGE_SHIFT);
}

/*
 * The same for driver code: each interrupt of the card has two such stores, and a walk of the page tables for each
 * would find what dom0's module has mapped there and keeps from attach to detach. If it were another page that may
 * only be read, a register would be written that driver code may write as well.
 */
static bool find_drivers(uint64_t address, uint64_t *offset)
{
	*offset = address - drivers;
	return (drivers && *offset < XEN_CARD_PAGES * TWIN_PAGE_SIZE) || find(address, offset);
}

static bool judge_and_write(uint64_t offset, uint32_t value)
{
	const bool written = xen_card_write((uint32_t)offset, value);

	if (!written)
		xen_count(&xen_counts.refused_writes);
	return written;
}

/* dom0's, which Xen has decoded. What is refused goes by, as Xen has all such writes go by. */
static int emulated_write(uint32_t segment, unsigned long at, void *data, unsigned int bytes,
			  struct x86_emulate_ctxt *context)
{
	const int status = twin_original_mmio_ro_emulated_write(segment, at, data, bytes, context);
	uint64_t offset;

	if (status != DONE || !find(at, &offset))
		return status;
	if (bytes == sizeof(uint32_t))
		judge_and_write(offset, *(uint32_t *)data);
	else
		xen_count(&xen_counts.refused_writes);
	return DONE;
}
XEN_REPLACE(mmio_ro_emulated_write, emulated_write);

uint64_t xen_guard_store(const struct xen_registers *registers, uint64_t address)
{
	uint64_t offset, value;
	uint32_t length;

	if (!find_drivers(address, &offset))
		return 0;
	length = xen_store_read(registers, (const uint8_t *)registers->rip, &value);
	if (!length || !judge_and_write(offset, (uint32_t)value))
		return 0;
	return registers->rip + length;
}
