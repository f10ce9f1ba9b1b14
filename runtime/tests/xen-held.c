// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Pages that go round between card and driver, and buffers of packets: platform/xen/held.c. */
#include "xen-dma.h"

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
}

static void has_no_table(void)
{
	CHECK_EQUAL(xen_dma_plan(&xen_device.given), 0);
	CHECK_EQUAL(xen_dma_take(), -XEN_ENOMEM);
	nothing_is_left();
}

/* Whichever part of it there is no memory for; the last has the model's pages. */
static void no_part_of_the_table_may_be_missing(void)
{
	const unsigned long frames = max_page;
	const uint32_t rings = 4, count = (uint32_t)((frames - 1) >> XEN_PART_SHIFT) + 1;
	uint32_t i;

	for (i = 0; i < count; i++) {
		set_up_pools();
		limit = rings + i;
		has_no_table();
	}
	set_up_pools();
	limit = rings + count;
	take();
	detach();
	/* Memory that has come since the machine was looked at. */
	set_up_pools();
	max_page = (1ul << (32 - TWIN_PAGE_SHIFT)) + 1;
	has_no_table();
	max_page = frames;
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

static void run(void)
{
	RUN(pools_are_held_once);
	RUN(all_is_let_go);
	RUN(what_the_card_had_is_held);
	RUN(pools_that_are_none);
	RUN(no_part_of_the_table_may_be_missing);
	RUN(a_page_in_both_pools_is_held_once);
	RUN(at_the_edges_of_what_is_held);
	RUN(others_pages_beside_one_that_is_held);
	RUN(a_buffer_waits_for_the_card);
	RUN(only_buffers_with_packets_are_sent);
}

int main(void)
{
	return with_memory(run);
}
