// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A fault in the driver's data, for tests.
 *
 *   echo "PLACE VALUE" >poison
 *
 * PLACE is a pointer of the driver's private structure, which is found by what it points to:
 *   registers   the card's registers, which the interrupt handler reads first
 *   netdev      the interface
 * It becomes VALUE, the card raises its interrupt, and Xen runs the driver. Then the pointer is
 * put back. dom0's own instance must never see the wrong one, its watchdog among it: all
 * other processors of dom0 are stopped meanwhile, and this one takes no event.
 *
 * Succeeds if the driver inside Xen was aborted within a fifth of a second; -ETIME if not.
 */
#include "dom0.h"
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/rtnetlink.h>
#include <linux/stop_machine.h>
#include <asm/pgtable.h>
#include <asm/xen/page.h>

#define TWIN_POISON_WORDS	512	/* of the driver's structure that are looked at */
#define TWIN_POISON_TRIES	2000	/* of 100 microseconds */

struct poison {
	const struct twin_card *card;
	struct twin_xen_status *status;
	u64 *place;
	u64 value;
	int result;
};

/* ---- The place ---- */

/* Whether a pointer leads to the start of the card's registers. */
static bool is_registers(const struct twin_card *card, u64 pointer)
{
	unsigned int level;
	pte_t *entry;

	if (!is_vmalloc_addr((void *)pointer) || !PAGE_ALIGNED(pointer))
		return false;
	entry = lookup_address(pointer, &level);
	return entry && level == PG_LEVEL_4K && pte_present(*entry) &&
	       pte_mfn(*entry) == PFN_DOWN(pci_resource_start(card->pci, 0));
}

static u64 *find_place(const struct twin_card *card, const char *place)
{
	u64 *words = netdev_priv(card->netdev);
	u32 i;

	for (i = 0; i < TWIN_POISON_WORDS; i++) {
		if (!strcmp(place, "netdev") && words[i] == (u64)card->netdev)
			return &words[i];
		if (!strcmp(place, "registers") && is_registers(card, words[i]))
			return &words[i];
	}
	return NULL;
}

/* ---- Doing it ---- */

static u64 aborts(struct poison *poison)
{
	int error = twin_xen_call(TWIN_XEN_STATUS, poison->status, sizeof(*poison->status));

	return error ? 0 : poison->status->aborts;
}

/* On one processor, the others stopped, no events. */
static int strike(void *data)
{
	struct poison *poison = data;
	u64 before = aborts(poison), good = READ_ONCE(*poison->place);
	u32 tries;

	WRITE_ONCE(*poison->place, poison->value);
	poison->result = -ETIME;
	for (tries = 0; tries < TWIN_POISON_TRIES && poison->result; tries++) {
		if (tries % 10 == 0)
			twin_card_interrupt(poison->card);
		udelay(100);
		if (aborts(poison) != before)
			poison->result = 0;
	}
	WRITE_ONCE(*poison->place, good);
	return 0;
}

int twin_poison(const char *words)
{
	struct poison poison = { .card = twin_attached() };
	char place[16];
	int error;

	ASSERT_RTNL();
	if (!poison.card)
		return -ENOTCONN;
	if (sscanf(words, "%15s %llx", place, &poison.value) != 2)
		return -EINVAL;
	poison.place = find_place(poison.card, place);
	if (!poison.place) {
		TWIN_LOG(err, "the driver's data has no pointer \"%s\"", place);
		return -ENOENT;
	}
	poison.status = kzalloc(sizeof(*poison.status), GFP_KERNEL);
	if (!poison.status)
		return -ENOMEM;
	TWIN_LOG(info, "%s becomes %llx for a moment", place, poison.value);
	error = stop_machine(strike, &poison, NULL);
	kfree(poison.status);
	return error ? error : poison.result;
}
