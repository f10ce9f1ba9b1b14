// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where dom0 has the card's registers mapped while Xen checks what the driver gives to the card.
 *
 * Xen writes the card's rings itself, and judges what else is written, so nobody may have registers
 * mapped so that they can be written to: dom0's writes to a page that it may only read are Xen's to do
 * (platform/xen/guard.c). There are two mappings, the driver's and this module's (struct twin_card), and
 *
 *   page of registers	driver's mapping	this module's
 *   2, 3		memory			read-only
 *   all others		read-only		read-only
 *
 * In the third and the fourth page are the rings, whose tails, RDT and TDT, the driver writes for every few
 * packets (Intel, 317453, 13.4.29, 13.4.40). Where it has them mapped, there are pages of memory: a tail is
 * a number there, which Xen reads, and judges before it writes the register. dom0's instance does not use
 * these pages while the driver is in Xen, but to show them (ethtool -d): it finds the numbers of the
 * moment when Xen got the driver.
 *
 * The driver's structures are its own. Where its mapping is, is found by what it leads to (card.c).
 *
 * A page that is read-only here, and not yet or no longer in Xen's set of such pages, may not be written to:
 * Xen brings the fault to dom0's kernel, whose end that is in a driver (ro-page-fault.c, pv_ro_page_fault). The driver's watchdog
 * writes a register each two seconds, and holds no lock that could be had here. So all processors of dom0 are
 * stopped from before the first page is protected until Xen guards them, and from before Xen ends that until the
 * last page is as it was (attach.c).
 *
 * TLBs are flushed once, behind the last of some 64 pages: each flush interrupts all processors of dom0 and waits for
 * them. Until then a TLB may have what was there before, and nobody goes by it: the other processors are in a loop
 * of the kernel's with interrupts off, and this one only reads registers meanwhile, by the module's mapping, of which
 * reading is the same before and after. Driver code does not run in Xen yet, or no longer. What takes a page's place
 * is freed behind the flush.
 */
#include "dom0.h"
#include <linux/gfp.h>
#include <linux/io.h>
#include <asm/pgtable.h>
#include <asm/xen/hypercall.h>
#include <xen/interface/xen.h>

/* First of the registers of a ring, up to its tail. */
#define TWIN_RECEIVE	0x2800
#define TWIN_TRANSMIT	0x3800
#define TWIN_RING_REGISTERS	7
/* Its tails are in page 0, among what stays mapped (13.4.29, 13.4.40: "82542"). */
#define TWIN_82542		0x1000

/* Other processors have the old translation until flush(): they are stopped. */
static int map(unsigned long address, pte_t entry)
{
	return HYPERVISOR_update_va_mapping(address, entry, UVMF_NONE);
}

/* On all processors of dom0, once for all pages. Each flush waits for every one of them. */
static int flush(void)
{
	struct mmuext_op op = { .cmd = MMUEXT_TLB_FLUSH_ALL };

	return HYPERVISOR_mmuext_op(&op, 1, NULL, DOMID_SELF);
}

/* What is at that address of dom0's, to be put back; NULL after a refusal. */
static struct twin_mapping *keep(struct twin_card *card, unsigned long address)
{
	unsigned int level;
	pte_t *entry = lookup_address(address, &level);
	struct twin_mapping *mapping = &card->mapping[card->mappings];

	if (!entry || level != PG_LEVEL_4K || !pte_present(*entry))
		return NULL;
	*mapping = (struct twin_mapping){ .address = address, .before = *entry };
	return mapping;
}

static int protect(struct twin_card *card, unsigned long address)
{
	struct twin_mapping *mapping = keep(card, address);
	int error = mapping ? map(address, pte_wrprotect(mapping->before)) : -EINVAL;

	if (!error)
		card->mappings++;
	return error;
}

/* What is shown instead of the registers. */
static void fill(const struct twin_card *card, u32 ring, void *page)
{
	u32 *words = page + offset_in_page(ring);
	u32 i;

	for (i = 0; i < TWIN_RING_REGISTERS; i++)
		words[i] = readl(card->registers + ring + i * sizeof(*words));
}

/* By one of the pages that were prepared. */
static int replace(struct twin_card *card, u32 ring, struct page **memory)
{
	const unsigned long address = card->driver_registers + (ring & PAGE_MASK);
	struct twin_mapping *mapping = keep(card, address);
	int error;

	if (!mapping)
		return -EINVAL;
	fill(card, ring, page_address(*memory));
	error = map(address, mk_pte(*memory, PAGE_KERNEL));
	if (error)
		return error;
	mapping->memory = *memory;
	*memory = NULL;
	card->mappings++;
	return 0;
}

/* All pages of a mapping that are not replaced. */
static int protect_all(struct twin_card *card, unsigned long start)
{
	unsigned long at;
	u32 i;
	int error = 0;

	for (at = start; !error && at < start + TWIN_REGISTERS; at += PAGE_SIZE) {
		for (i = 0; i < card->mappings && card->mapping[i].address != at; i++)
			;
		if (i == card->mappings)
			error = protect(card, at);
	}
	return error;
}

static int prepare(struct twin_card *card)
{
	u32 i;

	if (pci_resource_len(card->pci, 0) != TWIN_REGISTERS || card->pci->device == TWIN_82542)
		return -ENODEV;
	card->driver_registers = twin_card_registers(card);
	if (!card->driver_registers)
		return -ENOENT;
	for (i = 0; i < ARRAY_SIZE(card->spare); i++) {
		card->spare[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!card->spare[i])
			return -ENOMEM;
	}
	return 0;
}

static int guard_all(struct twin_card *card)
{
	int error = replace(card, TWIN_RECEIVE, &card->spare[0]);

	if (!error)
		error = replace(card, TWIN_TRANSMIT, &card->spare[1]);
	if (!error)
		error = protect_all(card, card->driver_registers);
	if (!error)
		error = protect_all(card, (unsigned long)card->registers);
	return error ? error : flush();
}

static int refused(struct twin_card *card, int error)
{
	if (!error)
		return 0;
	TWIN_LOG(err, "%s: its registers cannot be guarded: %d%s", card->netdev->name, error, TWIN_XEN_WITHOUT_DMA);
	twin_registers_release(card);
	return error;
}

int twin_registers_prepare(struct twin_card *card)
{
	return refused(card, prepare(card));
}

int twin_registers_guard(struct twin_card *card)
{
	return refused(card, guard_all(card));
}

/* A page that cannot be taken away again stays, and is not freed: the driver may write there. */
static void unmap_all(struct twin_card *card)
{
	u32 i;
	bool flushed;

	for (i = 0; i < card->mappings; i++) {
		struct twin_mapping *mapping = &card->mapping[i];

		if (!map(mapping->address, mapping->before))
			continue;
		TWIN_LOG(err, "%s: its registers are not mapped as they were", card->netdev->name);
		mapping->memory = NULL;
	}
	flushed = !card->mappings || !flush();
	while (card->mappings) {
		const struct twin_mapping *mapping = &card->mapping[--card->mappings];

		if (flushed && mapping->memory)
			__free_page(mapping->memory);
	}
}

void twin_registers_release(struct twin_card *card)
{
	u32 i;

	unmap_all(card);
	for (i = 0; i < ARRAY_SIZE(card->spare); i++) {
		if (card->spare[i])
			__free_page(card->spare[i]);
		card->spare[i] = NULL;
	}
	card->driver_registers = 0;
}
