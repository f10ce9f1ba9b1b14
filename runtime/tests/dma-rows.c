// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Frames in a row, which one compare knows: it decides as a look at each of them would.
 */
#include "dma-rings.h"

/* By the frames: all are dom0's of the pool but one. */
static bool is_allowed(uint64_t address, uint64_t length, uint64_t gone)
{
	uint64_t frame;

	for (frame = address / PAGE; frame <= (address + length - 1) / PAGE; frame++)
		if (frame < 8 || frame >= 32 || frame == gone)
			return false;
	return true;
}

static void checks_buffer(uint32_t kind, uint64_t address, uint64_t length, uint64_t gone)
{
	const uint32_t from = tail_register[kind] % COUNT, to = (from + 1) % COUNT;

	put(kind, from, address, DATA(length));
	CHECK_EQUAL(ring(kind, to), is_allowed(address, length, gone));
	CHECK_EQUAL(report.fault,
		    is_allowed(address, length, gone) ? TWIN_DMA_FINE : TWIN_DMA_FOREIGN);
	doorbell[kind] = tail_register[kind];
	card_sends(from, tail_register[TX]);
	if (kind == RX && tail_register[RX] == to)
		card_receives(from, 60);
	CHECK(twin_dma_show(&dma, &report));
}

/* Each edge of frames, with each frame of the pool given away in turn, and none. */
static void a_row_of_frames_decides_as_each_of_them(void)
{
	const uint32_t lengths[] = { 1, 2, 4095, 4096, 4097, 8191, 8192, 8193, TWIN_DMA_BUFFER };
	const uint32_t buffers[] = { 256, 2048, 8192, 8193, 16384 };
	const int32_t offsets[] = { -1, 0, 1, 2048 };
	uint64_t gone, frame;
	uint32_t i, k;

	for (gone = 9; gone < 32; gone++) {
		for (k = 0; k < sizeof(buffers) / sizeof(buffers[0]); k++) {
			set_up();
			config[RX].buffer = buffers[k];
			CHECK_EQUAL(twin_dma_take(&dma, config), TWIN_OK);
			tail_register[TX] = tail_register[RX] = 0;
			/* The ninth has a ring, so it stays: nothing is gone. */
			CHECK_EQUAL(give_away(gone), gone == RX_RING ? TWIN_BUSY : TWIN_OK);
			for (frame = 5; frame < 36; frame++)
				for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
					checks_buffer(RX, frame * PAGE + offsets[i], buffers[k],
						      gone == RX_RING ? 0 : gone);
			twin_dma_give_back(&dma);
			CHECK_EQUAL(pins_of_all(), 0);
		}
		take();
		tail_register[TX] = 0;
		give_away(gone);
		for (frame = 5; frame < 36; frame++)
			for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
				for (k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
					checks_buffer(TX, frame * PAGE + offsets[i], lengths[k],
						      gone == RX_RING ? 0 : gone);
		twin_dma_give_back(&dma);
		CHECK_EQUAL(pins_of_all(), 0);
	}
}

/* Two are given away: what is left of the row is shorter each time, and none of it at last. */
static void a_row_of_frames_is_cut_until_nothing_is_left(void)
{
	uint64_t gone, frame;
	uint32_t from;

	take();
	tail_register[TX] = 0;
	for (gone = 10; gone < 32; gone++) {
		CHECK_EQUAL(give_away(gone % 2 ? 42 - gone : gone), TWIN_OK);
		for (frame = 8; frame < 32; frame++) {
			from = tail_register[TX];
			put(TX, from, frame * PAGE, LEGACY(100));
			CHECK_EQUAL(ring(TX, (from + 1) % COUNT),
				    twin_frame_owner(&frames, frame) == TWIN_OWNER_DOM0);
			doorbell[TX] = tail_register[TX];
			card_sends(from, tail_register[TX]);
			CHECK(twin_dma_show(&dma, &report));
		}
	}
	twin_dma_give_back(&dma);
	CHECK_EQUAL(pins_of_all(), 0);
}

int main(void)
{
	RUN(a_row_of_frames_decides_as_each_of_them);
	RUN(a_row_of_frames_is_cut_until_nothing_is_left);
	return test_summary();
}
