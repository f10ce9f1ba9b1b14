/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The card's rings: descriptors that the driver hands over are checked, and the card
 * reads a copy of what was checked.
 *
 *   driver ── writes ──> its ring, in dom0's memory ── writes ──> doorbell (a word)
 *                              │                                     │
 *                    twin_dma: each new descriptor, copied once, then checked
 *                              v                                     v
 *   card  ── reads ───>  the copy, in the hypervisor's memory    tail register
 *         ── writes back ─>    │
 *                    twin_dma: what the card wrote, to the driver's ring
 *
 * Rings and descriptors are those of Intel's 8254x as the stock e1000 uses them for an
 * 82540EM: transmit legacy, context and data descriptors, receive legacy descriptors.
 * Section numbers in comments are the Software Developer's Manual's (317453).
 *
 * What holds while rings are taken (twin_dma_take):
 *
 *   - The card fetches descriptors from the copy alone. Driver, dom0 and guests have no
 *     way to it, so nothing changes a descriptor between its check and its use.
 *   - Every buffer that the card reads or writes lies in frames that were permitted, and
 *     that stay so until the card is done, because they are pinned (<twin/frames.h>):
 *     dom0's frames of the pool (those that it has when the rings are taken: until they are
 *     given back, or one by one by
 *     twin_dma_release); for transmission also frames of a guest that a packet being sent pins.
 *   - A tail that is out of the ring, or that would have the card use a descriptor
 *     while it is replaced, is not passed on.
 *
 * What does not: the driver may send any byte of the permitted frames, in any order and to
 * anyone, and receive into any frame of the pool, also one that something else of dom0's
 * uses. Offload fields (3.3.6) are not checked: they name no memory.
 *
 * A violation aborts the invocation after which it was found (TWIN_ABORT_DMA), and the
 * card sees nothing of that doorbell. Contexts as in <twin/runtime.h>.
 */
#ifndef TWIN_DMA_H
#define TWIN_DMA_H

#include <stdbool.h>
#include <stdint.h>

#include <twin/frames.h>
#include <twin/runtime.h>

enum twin_dma_kind {
	TWIN_DMA_TRANSMIT = 0,
	TWIN_DMA_RECEIVE = 1,
};
#define TWIN_DMA_RINGS		2

#define TWIN_DMA_DESCRIPTORS	4096u	/* most of a ring (13.4.27, 13.4.38) */
#define TWIN_DMA_GRANULE	8u	/* their number is a multiple of this: 128 bytes */
#define TWIN_DMA_BUFFER		16288u	/* most bytes of a transmit descriptor (3.3.3) */

/* What is wrong with a ring or a descriptor. */
enum twin_dma_fault {
	TWIN_DMA_FINE = 0,
	TWIN_DMA_TAIL = 1,	/* the tail is no index of the ring; address: the tail */
	TWIN_DMA_OVERRUN = 2,	/* it passes descriptors that the card has; address: the tail */
	TWIN_DMA_FORMAT = 3,	/* no known type of descriptor; address: its second word */
	TWIN_DMA_LENGTH = 4,	/* too long, or it wraps; address: the buffer's */
	TWIN_DMA_FOREIGN = 5,	/* a frame that the card may not use; address: the buffer's */
	TWIN_DMA_CHANGED = 6,	/* changed while the card had it; address: the new one */
	TWIN_DMA_RING = 7,	/* the ring itself: not aligned, too long, or not in the pool's
				 * frames; address: the ring's */
};

/* The reason of a report of kind TWIN_ABORT_DMA: fault, ring and index of descriptor. */
#define TWIN_DMA_REASON(fault, kind, index) \
	((uint32_t)(fault) << 24 | (uint32_t)(kind) << 16 | (index))
#define TWIN_DMA_REASON_FAULT(reason)	((reason) >> 24)
#define TWIN_DMA_REASON_KIND(reason)	((reason) >> 16 & 0xff)
#define TWIN_DMA_REASON_INDEX(reason)	((reason) & 0xffff)

/* A descriptor as two words: 3.2.3 receive, 3.3.3, 3.3.6, 3.3.7 transmit. */
struct twin_dma_descriptor {
	uint64_t address;	/* of a context descriptor: offsets */
	uint64_t control;	/* length, command, status ... */
};

/* A descriptor that the card has, as it was checked. In memory that the card does not
 * reach either. */
struct twin_dma_slot {
	uint64_t address;	/* its first word */
	uint32_t length;	/* bytes that are pinned from there on; 0: none, or held */
	uint32_t last;		/* of the first of a report: its last, with RS; see reported */
};

/* A ring as it is taken. Pointed-to memory stays the caller's, until it is given back. */
struct twin_dma_ring_config {
	uint64_t base;		/* machine address of the driver's ring */
	volatile struct twin_dma_descriptor *driver;	/* the same memory, as mapped here */
	struct twin_dma_descriptor *copy;	/* count descriptors, for the card */
	struct twin_dma_slot *slots;		/* count */
	const volatile uint32_t *doorbell;	/* where the driver writes its tail */
	volatile uint32_t *tail_register;	/* where a checked tail goes */
	uint32_t count;		/* descriptors */
	uint32_t head, tail;	/* the card's registers */
	uint32_t buffer;	/* receive: bytes of each buffer (RCTL.BSIZE, 13.4.22) */
};

struct twin_dma_ring {
	struct twin_dma_ring_config is;
	uint32_t shown;		/* write-backs before it are in the driver's ring */
	uint32_t tail;		/* descriptors from shown up to it are the card's */
	/*
	 * transmit: descriptors from shown up to it are reports, each of descriptors without RS
	 * and a last one that has it; those from it up to tail have none. By the bits that were
	 * checked.
	 */
	uint32_t reported;
	uint32_t zero;
};

/* Memory of frames that are held, in a row. A short buffer that begins in it lies in them. */
struct twin_dma_run {
	uint64_t start;		/* machine address */
	uint64_t bytes;		/* a short buffer begins in one of them; 0: nowhere */
};
#define TWIN_DMA_SHORT		8192u	/* most bytes of a short buffer */

/* Events so far. */
struct twin_dma_statistics {
	uint64_t doorbells;	/* tails passed on */
	uint64_t checked;	/* descriptors passed on */
	uint64_t shown;		/* descriptors that the card gave back */
	uint64_t refused;	/* violations */
};

/* Where a violation is. */
struct twin_dma_report {
	uint32_t fault;		/* enum twin_dma_fault */
	uint32_t kind;		/* enum twin_dma_kind */
	uint32_t index;
	uint32_t zero;
	uint64_t address;
};

/*
 * The rings of one card. Used by all CPUs, under its lock, which is held for some tens of
 * instructions a descriptor. frames, pool and held: [setup].
 */
struct twin_dma {
	struct twin_lock lock;
	uint32_t taken;			/* 1: rings are valid */
	struct twin_frames *frames;
	const uint64_t *pool;
	uint64_t *held;			/* pinned: dom0's of the pool */
	struct twin_dma_run run;	/* of them, the longest in a row, or a part of it */
	struct twin_dma_ring ring[TWIN_DMA_RINGS];
	struct twin_dma_report report;	/* of the last violation */
	struct twin_dma_statistics statistics;
};

/* Bytes of struct twin_dma, for callers not in C. [any] */
uint64_t twin_dma_size(void);

/*
 * No rings yet. Bit f % 64 of pool[f / 64] says that frame f may be used for DMA while it
 * is dom0's. held is as large, and the state's from now on. Both have a bit for each frame
 * of the table. [setup]
 */
void twin_dma_init(struct twin_dma *dma, struct twin_frames *frames, const uint64_t *pool,
		   uint64_t *held);

/*
 * Take both rings: dom0's frames of the pool are pinned, the rings' among them, and what
 * the card has already, from head to tail, is checked and copied. The card's base registers may be led to the copies when
 * this has returned TWIN_OK; it is idle from before the call until then. TWIN_INVALID and
 * a report: a ring or a descriptor breaks a rule, and nothing is taken. TWIN_BUSY: they
 * are taken. [any], on the host's stack; spins on the lock.
 */
int twin_dma_take(struct twin_dma *dma, const struct twin_dma_ring_config rings[TWIN_DMA_RINGS]);

/*
 * Give them back: what the card has written is shown, pins are taken off. The card is idle
 * and does not use the copies any more. Does nothing if they are not taken. [any]
 */
void twin_dma_give_back(struct twin_dma *dma);

/*
 * The owner wants to give a frame of the pool away: it is not held any more, so that
 * twin_frame_move can. A descriptor that names it later is as one of a frame that is dom0's
 * since: pinned by itself if it is dom0's still, else refused. TWIN_BUSY: the card has a
 * descriptor that names it and that was not shown yet, or a ring is in it; try again later.
 * TWIN_OK too if it was not held. Looks at each descriptor that the card has: at most
 * 2 * TWIN_DMA_DESCRIPTORS, once for a frame. [any]; spins on the lock.
 */
int twin_dma_release(struct twin_dma *dma, uint64_t frame);

/* Whether the card has at least half of a ring's descriptors, those not shown among them; false
 * if none is taken. [any]; spins on the lock. */
bool twin_dma_has_half(struct twin_dma *dma, uint32_t kind);

/*
 * What twin_enter does before and after the driver runs. show: write-backs of the card go
 * to the driver's rings. ring: tails that the driver wrote are checked and passed on.
 * False and a report: a violation. True also if nothing is taken. [any]; spins on the lock.
 */
bool twin_dma_show(struct twin_dma *dma, struct twin_dma_report *report);
bool twin_dma_ring(struct twin_dma *dma, struct twin_dma_report *report);

/*
 * While the driver polls: frames that the card has received since go to the driver's ring, as many as need nothing
 * but that; whether there were any. No violation is looked for. [any], also with interrupts off: waits for nobody,
 * and calls nothing of the platform's but what loops may.
 */
bool twin_dma_look(struct twin_dma *dma);

/* From now on twin_enter does that for this instance; NULL: no more. [setup] */
void twin_instance_set_dma(struct twin_instance *instance, struct twin_dma *dma);

/* Copy the counts and the last violation, all zeroes before the first. [any]; spins on the
 * lock. */
void twin_dma_events(struct twin_dma *dma, struct twin_dma_statistics *copy,
		     struct twin_dma_report *last);

_Static_assert(sizeof(struct twin_dma_descriptor) == 16, "3.2.3, 3.3.3");
_Static_assert(sizeof(struct twin_dma_slot) == 16, "no padding");
_Static_assert(sizeof(struct twin_dma_ring_config) == 64, "no padding");
_Static_assert(sizeof(struct twin_dma_statistics) == 32, "no padding");
_Static_assert(sizeof(struct twin_dma_report) == 24, "no padding");
_Static_assert(TWIN_DMA_BUFFER <= TWIN_PIECE_BYTES, "a buffer is a piece");
_Static_assert(TWIN_DMA_DESCRIPTORS <= 0x10000, "an index in a reason");
_Static_assert(TWIN_DMA_SHORT <= TWIN_DMA_BUFFER, "a short buffer is not too long");

#endif /* TWIN_DMA_H */
