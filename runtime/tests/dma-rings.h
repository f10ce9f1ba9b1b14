/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Two rings of descriptors, as a driver, a card and dom0 use them, for the tests of core/dma.c.
 * For one file of tests each: what is here is its own.
 */
#ifndef TWIN_TESTS_DMA_RINGS_H
#define TWIN_TESTS_DMA_RINGS_H

#include <string.h>

#include <twin/dma.h>

#include "test.h"

#define PAGE ((uint64_t)TWIN_PAGE_SIZE)
#define FRAMES 128
#define COUNT 16
#define BUFFER 2048

enum { ANNA = 0, BERT = 1 };
enum { TX = TWIN_DMA_TRANSMIT, RX = TWIN_DMA_RECEIVE };

/* Frames: 0-7 dom0's but not for DMA; 8-31 dom0's pool, the rings in 8 and 9; 32-47
 * Anna's, 48-63 Bert's; the rest nobody's. */
#define TX_RING 8
#define RX_RING 9
#define POOL 16

static uint64_t words[FRAMES];
static uint64_t pool[FRAMES / 64], held[FRAMES / 64];
static struct twin_frames frames;
static struct twin_dma dma;
static struct twin_dma_report report;
static volatile struct twin_dma_descriptor driver[2][COUNT];
static struct twin_dma_descriptor copy[2][COUNT];
static struct twin_dma_slot slots[2][COUNT];
static volatile uint32_t doorbell[2], tail_register[2];
static struct twin_dma_ring_config config[2];

#define LEGACY(length) ((uint64_t)(length) | 0x0b000000)	/* EOP, IFCS, RS */
#define DATA(length) ((uint64_t)(length) | 0x2b100000)
#define PART(length) ((uint64_t)(length) | 0x22100000)		/* neither EOP nor RS */
#define CONTEXT 0x20000000ull
#define DD (1ull << 32)

static inline void set_up(void)
{
	uint64_t i;

	twin_frames_init(&frames, words, FRAMES);
	for (i = 0; i < 64; i++)
		twin_frame_move(&frames, i, TWIN_OWNER_NOBODY,
				i < 32 ? TWIN_OWNER_DOM0 :
				i < 48 ? TWIN_OWNER_GUEST(ANNA) : TWIN_OWNER_GUEST(BERT));
	memset(pool, 0, sizeof(pool));
	for (i = 8; i < 32; i++)
		pool[0] |= 1ull << i;
	memset(held, 0xff, sizeof(held));
	twin_dma_init(&dma, &frames, pool, held);
	for (i = 0; i < 2; i++) {
		memset((void *)driver[i], 0, sizeof(driver[i]));
		memset(copy[i], 0xee, sizeof(copy[i]));
		doorbell[i] = 0;
		tail_register[i] = 0xdead;
		config[i] = (struct twin_dma_ring_config){
			.base = (i == TX ? TX_RING : RX_RING) * PAGE, .driver = driver[i],
			.copy = copy[i], .slots = slots[i], .doorbell = &doorbell[i],
			.tail_register = &tail_register[i], .count = COUNT, .buffer = BUFFER,
		};
	}
}

static inline void take(void)
{
	set_up();
	CHECK_EQUAL(twin_dma_take(&dma, config), TWIN_OK);
}

static inline void put(uint32_t kind, uint32_t index, uint64_t address, uint64_t control)
{
	driver[kind][index].address = address;
	driver[kind][index].control = control;
}

static inline bool ring(uint32_t kind, uint32_t tail)
{
	doorbell[kind] = tail;
	memset(&report, 0, sizeof(report));
	return twin_dma_ring(&dma, &report);
}

/* The card is done with descriptors up to `head`, and writes back where RS is set. */
static inline void card_sends(uint32_t from, uint32_t head)
{
	for (; from != head; from = (from + 1) % COUNT)
		if (copy[TX][from].control & 1 << 27)
			copy[TX][from].control |= DD;
}

static inline void card_receives(uint32_t index, uint32_t length)
{
	copy[RX][index].control = DD | 1ull << 33 | length;
}

static inline uint32_t pins_of_all(void)
{
	uint32_t pins = 0;
	uint64_t i;

	for (i = 0; i < FRAMES; i++)
		pins += twin_frame_pins(&frames, i);
	return pins;
}

static inline uint64_t refused(void)
{
	struct twin_dma_statistics counts;
	struct twin_dma_report last;

	twin_dma_events(&dma, &counts, &last);
	return counts.refused;
}

static inline int give_away(uint64_t frame)
{
	const int status = twin_dma_release(&dma, frame);

	if (status != TWIN_OK) {
		CHECK_EQUAL(twin_frame_move(&frames, frame, TWIN_OWNER_DOM0, TWIN_OWNER_NOBODY),
			    TWIN_BUSY);
		return status;
	}
	return twin_frame_move(&frames, frame, TWIN_OWNER_DOM0, TWIN_OWNER_NOBODY);
}

#endif
