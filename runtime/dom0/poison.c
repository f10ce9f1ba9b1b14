// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A fault in the driver's data, for tests.
 *
 *   echo "PLACE VALUE" >poison
 *
 * PLACE is a pointer in the driver's data, found by what it points to:
 *   registers   the card's registers, which the interrupt handler reads first
 *   netdev      the interface
 *   private:N   the Nth word of the driver's private structure that leads to memory of the kernel's:
 *               data or code
 *   object:N    the Nth such word at the start of what those lead to by the direct map: rings, among
 *               others
 *   device:N    poll functions and operations of the interface
 *   frames:WHO  the list by which the driver's buffers have their machine addresses: all of them are in one
 *               machine frame instead. It is `xen`'s, in which the card finds its rings, a `guest`'s, or
 *               `number` VALUE, which else is ignored. Only where Xen checks what the driver gives to the
 *               card (the stage `dma`)
 * N counts from 0, and again when there are no more. The pointer becomes VALUE, the card raises its
 * interrupt, and Xen runs the driver. Then the pointer is put back, if the driver has not written
 * another one. dom0's own instance must never see the wrong one, its watchdog among it: all
 * other processors of dom0 are stopped meanwhile, and this one takes no event.
 *
 * Succeeds if the driver inside Xen was aborted within a fifth of a second, for `frames` within five; -ETIME if not. VALUE
 * should lead to nothing of dom0's: what the driver writes there stays.
 */
#include "dom0.h"
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/rtnetlink.h>
#include <linux/stop_machine.h>
#include <linux/vmalloc.h>
#include <asm/pgtable.h>
#include <asm/xen/page.h>

#define TWIN_POISON_WORDS	512	/* of the driver's structure that are looked at */
#define TWIN_POISON_START	8	/* of an object that it points to */
#define TWIN_POISON_TRIES	2000	/* of 100 microseconds */
#define TWIN_POISON_LONG	50000	/* the same, for what waits for a guest's packets */

struct poison {
	const struct twin_card *card;
	struct twin_xen_status *status;
	u64 *place;
	u64 value;
	u32 tries;
	int result;
};

/* ---- The place ---- */

/* Whether a pointer leads to memory of the kernel's. */
static bool is_pointer(u64 word)
{
	unsigned int level;
	pte_t *entry = word >= PAGE_OFFSET ? lookup_address(word, &level) : NULL;

	return entry && level == PG_LEVEL_4K && pte_present(*entry);
}

/* One more place, counted; the wanted one is kept. */
struct search {
	u32 wanted, found;
	u64 *place;
};

static void visit(struct search *search, u64 *word)
{
	if (is_pointer(*word) && search->found++ == search->wanted)
		search->place = word;
}

static void visit_private(const struct twin_card *card, struct search *search)
{
	u64 *words = netdev_priv(card->netdev);
	u32 i;

	for (i = 0; i < TWIN_POISON_WORDS; i++)
		visit(search, &words[i]);
}

static void visit_objects(const struct twin_card *card, struct search *search)
{
	u64 *words = netdev_priv(card->netdev);
	u32 i, at;

	for (i = 0; i < TWIN_POISON_WORDS; i++)
		if (is_pointer(words[i]) && virt_addr_valid(words[i]) && !(words[i] & 7) &&
		    offset_in_page(words[i]) <= PAGE_SIZE - TWIN_POISON_START * sizeof(u64))
			for (at = 0; at < TWIN_POISON_START; at++)
				visit(search, (u64 *)words[i] + at);
}

static void visit_device(const struct twin_card *card, struct search *search)
{
	visit(search, (u64 *)&card->napi->poll);
	visit(search, (u64 *)&card->napi->dev);
	visit(search, (u64 *)&card->netdev->netdev_ops);
	visit(search, (u64 *)&card->netdev->_tx);
}

static u64 *find_counted(const struct twin_card *card, u32 number,
			 void (*visit_all)(const struct twin_card *, struct search *))
{
	struct search search = { .wanted = ~0u };

	visit_all(card, &search);
	if (!search.found)
		return NULL;
	search = (struct search){ .wanted = number % search.found };
	visit_all(card, &search);
	return search.place;
}

static u64 *find_by_target(const struct twin_card *card, const char *place)
{
	u64 *words = netdev_priv(card->netdev);
	u32 i;

	for (i = 0; i < TWIN_POISON_WORDS; i++) {
		if (!strcmp(place, "netdev") && words[i] == (u64)card->netdev)
			return &words[i];
		if (!strcmp(place, "registers") && twin_card_is_registers(card, words[i]))
			return &words[i];
	}
	return NULL;
}

static u64 *find_place(const struct twin_card *card, const char *place)
{
	u32 number;

	if (sscanf(place, "private:%u", &number) == 1)
		return find_counted(card, number, visit_private);
	if (sscanf(place, "object:%u", &number) == 1)
		return find_counted(card, number, visit_objects);
	if (sscanf(place, "device:%u", &number) == 1)
		return find_counted(card, number, visit_device);
	return find_by_target(card, place);
}

/* ---- Frames ---- */

/* Where the card has a ring now (Intel, 317453, 13.4.36): in Xen's memory. */
#define REGISTER_TDBAL	0x3800

/* The frame of that name; 0: there is none. */
static u64 frame_of(const struct poison *poison, const char *who)
{
	if (!strcmp(who, "xen"))
		return PFN_DOWN(readl(poison->card->registers + REGISTER_TDBAL));
	if (!strcmp(who, "guest"))
		return twin_vif_frame();
	return strcmp(who, "number") ? 0 : poison->value;
}

/* A list as the hot routines' (hot_p2m), in which each of dom0's frames is that one; NULL. Their list has room for
 * many more, of which there are none. */
static unsigned long *frames_of(unsigned long frame)
{
	const unsigned long count = PFN_UP(__pa(high_memory));
	unsigned long i, *frames = vmalloc(array_size(count, sizeof(*frames)));

	for (i = 0; frames && i < count; i++)
		frames[i] = frame;
	return frames;
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
	for (tries = 0; tries < poison->tries && poison->result; tries++) {
		if (tries % 10 == 0)
			twin_card_interrupt(poison->card);
		udelay(100);
		if (aborts(poison) != before)
			poison->result = 0;
	}
	if (READ_ONCE(*poison->place) == poison->value)
		WRITE_ONCE(*poison->place, good);
	return 0;
}

static int strike_at(struct poison *poison)
{
	int error = stop_machine(strike, poison, NULL);

	return error ? error : poison->result;
}

static int strike_pointer(struct poison *poison, const char *place)
{
	poison->place = find_place(poison->card, place);
	if (!poison->place) {
		TWIN_LOG(err, "the driver's data has no pointer \"%s\"", place);
		return -ENOENT;
	}
	TWIN_LOG(info, "%s (%px, now %llx) becomes %llx for a moment", place, poison->place, *poison->place,
		 poison->value);
	return strike_at(poison);
}

static int strike_frames(struct poison *poison, const char *who)
{
	const u64 frame = frame_of(poison, who);
	unsigned long *frames;
	int error;

	if (!poison->card->driver_registers)
		return -EPERM;
	if (!frame)
		return -ENOENT;
	frames = frames_of(frame);
	if (!frames)
		return -ENOMEM;
	TWIN_LOG(info, "all of the driver's buffers are in frame %llx for a moment", frame);
	poison->tries = TWIN_POISON_LONG;
	poison->place = (u64 *)twin_hot()->p2m;
	poison->value = (u64)frames;
	error = strike_at(poison);
	vfree(frames);
	return error;
}

int twin_poison(const char *words)
{
	struct poison poison = { .card = twin_attached(), .tries = TWIN_POISON_TRIES };
	char place[32];
	int error;

	ASSERT_RTNL();
	if (!poison.card)
		return -ENOTCONN;
	if (sscanf(words, "%31s %llx", place, &poison.value) != 2)
		return -EINVAL;
	poison.status = kzalloc(sizeof(*poison.status), GFP_KERNEL);
	if (!poison.status)
		return -ENOMEM;
	if (!strncmp(place, "frames:", 7))
		error = strike_frames(&poison, place + 7);
	else
		error = strike_pointer(&poison, place);
	kfree(poison.status);
	return error;
}
