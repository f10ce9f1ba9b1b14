// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The card's rings inside Xen: drivers that give it anything, attachments, and who else writes to its registers. */
#include "xen-dma.h"

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

/* All that the card had at attach has gone back: from now on it has what goes round. */
static void attach_and_go_round(void)
{
	uint32_t i;

	attach();
	for (i = 0; i < COUNT; i++) {
		CHECK(receives(0));
		CHECK(xen_dma_show());
		CHECK(give_received((4 + i) % COUNT, machine(POOL + i % 4)));
	}
	CHECK_EQUAL(*reg(RX + 0x10), 12);
	CHECK_EQUAL(*reg(RX + 0x18), 4);
}

/* While it polls, so with interrupts off. */
static void a_poll_sees_what_the_card_receives_meanwhile(void)
{
	attach_and_go_round();
	CHECK(!xen_dma_look());
	CHECK(receives(1) && receives(2));
	CHECK(xen_dma_look());
	CHECK(drivers(RX_RING)[12].control & DD);
	CHECK(drivers(RX_RING)[13].control & DD);
	CHECK(!(drivers(RX_RING)[14].control & DD));
	CHECK(!xen_dma_look());
	/* Both go round: they are the driver's, as if they had been shown before the poll. */
	CHECK(give_received(4, machine(POOL)));
	CHECK(give_received(5, machine(POOL)));
	CHECK(receives(3));
	CHECK(xen_dma_show());
	CHECK(drivers(RX_RING)[14].control & DD);
	CHECK(!xen_dma_look());
	/* What was sent is for the next poll. */
	CHECK(give_sent(5, machine(POOL), LEGACY(60)));
	CHECK(sends());
	CHECK(!xen_dma_look());
	CHECK(!(drivers(TX_RING)[5].control & DD));
	CHECK_EQUAL(xen_counts.polled_on, 1);
	xen_dma_status(&xen_counts);
	CHECK_EQUAL(xen_counts.written_back, COUNT + 3);
	detach();
}

/* Nothing is called there: a page that is to be given back to Xen waits for the next poll, and all behind it. */
static void a_look_gives_no_page_back(void)
{
	uint32_t i;

	attach_and_go_round();
	CHECK(give_received(4, machine(20)));
	CHECK(give_received(5, machine(POOL)));
	CHECK_EQUAL(page[20].references, 1);
	for (i = 0; i < 10; i++)
		CHECK(receives(7));
	CHECK(xen_dma_look());
	CHECK(drivers(RX_RING)[3].control & DD);
	CHECK(!(drivers(RX_RING)[4].control & DD));
	CHECK(!xen_dma_look());
	CHECK_EQUAL(page[20].references, 1);
	CHECK(xen_dma_show());
	CHECK(drivers(RX_RING)[4].control & DD);
	CHECK(drivers(RX_RING)[5].control & DD);
	CHECK_EQUAL(page[20].references, 0);
	detach();
}

/* It is the next poll's to say so. */
static void a_look_ends_at_what_has_changed(void)
{
	attach_and_go_round();
	CHECK(receives(1) && receives(2));
	drivers(RX_RING)[13].address = machine(GUESTS);
	CHECK(xen_dma_look());
	CHECK(drivers(RX_RING)[12].control & DD);
	CHECK(!xen_dma_look());
	CHECK_EQUAL(aborts, 0);
	CHECK(!xen_dma_show());
	is_refused(TWIN_DMA_CHANGED, TWIN_DMA_RECEIVE, 13, machine(GUESTS));
	detach();
}

/* Its holder may wait for this processor, whose interrupts are off. */
static void a_look_waits_for_nobody(void)
{
	attach_and_go_round();
	CHECK(receives(1));
	dma.lock.held = 1;
	CHECK(!xen_dma_look());
	dma.lock.held = 0;
	CHECK(!(drivers(RX_RING)[12].control & DD));
	CHECK(xen_dma_look());
	CHECK_EQUAL(dma.lock.held, 0);
	detach();
	CHECK(!xen_dma_look());
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
	limit = 0;
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

/* To take its mapping away is a flush of all TLBs for each page. The next attachment has it, without a write in between. */
static void a_detached_card_stays_mapped(void)
{
	uint32_t i;

	for (i = 0; i < 3; i++) {
		attach();
		CHECK(xen_card_write(0x00c8, 1));
		CHECK_EQUAL(mappings, 1);
		xen_dma_give_back();
		CHECK(!xen_card_write(0x00c8, 1));
		CHECK(xen_card_is_mapped());
		CHECK_EQUAL(mappings, 1);
	}
	xen_card_forget();
	CHECK(!xen_card_is_mapped());
	CHECK_EQUAL(mappings, 0);
	xen_card_forget();
	CHECK_EQUAL(mappings, 0);
}

static void run(void)
{
	RUN(the_card_has_copies_of_what_it_had);
	RUN(a_detached_card_stays_mapped);
	RUN(frames_come_and_go);
	RUN(a_poll_sees_what_the_card_receives_meanwhile);
	RUN(a_look_gives_no_page_back);
	RUN(a_look_ends_at_what_has_changed);
	RUN(a_look_waits_for_nobody);
	RUN(dom0_has_all_that_the_card_wrote);
	RUN(what_the_card_has_is_released);
	RUN(what_was_not_sent_is_not_sent_from_dom0s_ring);
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
	return with_memory(run);
}
