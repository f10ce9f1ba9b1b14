/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owners of machine frames, and the packets being sent that pin them.
 *
 * A guest describes a packet by machine addresses. Before its descriptors are
 * built, each frame in them is looked up: it must be the guest's. It is then
 * pinned until the driver has completed the packet. A pinned frame keeps its
 * owner, so the device never reads a frame that another owner has meanwhile.
 *
 *   guest ── pieces ──> twin_outgoing_admit ── ticket ──> hot_transmit ── device
 *              ^            pins frames                                     │
 *              └── cookie ── twin_outgoing_complete <── ticket ─────────────┘
 *                               unpins
 *
 * Two objects, both in memory that guests, dom0 and the driver cannot reach:
 *
 *   struct twin_frames      owner and pins of each frame; shared by all CPUs
 *   struct twin_outgoing    a CPU's packets being sent; that CPU's alone
 *
 * Contexts as in <twin/runtime.h>. Nothing here sleeps or takes a lock.
 */
#ifndef TWIN_FRAMES_H
#define TWIN_FRAMES_H

#include <stdint.h>

#include <twin/runtime.h>

/* ---- Frames -------------------------------------------------------------- */

/* Owners of a frame. Zeroed memory has none. */
#define TWIN_OWNER_NOBODY	0u
#define TWIN_OWNER_DOM0		0xffffu
#define TWIN_OWNER_GUEST(number) ((number) + 1u)	/* number below TWIN_OWNER_GUESTS */
#define TWIN_OWNER_GUESTS	0xfffeu

/*
 * One word for each frame: its owner, the pins of packets that are being sent, and those of
 * the card's descriptors. Owner and pins change together, by one compare and exchange: a pin
 * is only added to a word that names the owner, and the owner only changes in a word without
 * pins. That is why CPUs may pin, unpin and move frames concurrently. The two kinds are
 * counted apart, because a descriptor may name a guest's frame only while a packet pins it:
 * another descriptor is no reason.
 */
#define TWIN_FRAME_PINS		0xffffffu	/* the most pins of a kind */

struct twin_frames {
	uint64_t *words;	/* the caller's memory, one for each frame */
	uint64_t count;		/* machine frames 0 to count - 1 exist */
};

/* Make a table in which no frame has an owner. [setup] */
void twin_frames_init(struct twin_frames *frames, uint64_t *words, uint64_t count);

/* Owner of a frame, TWIN_OWNER_NOBODY where there is none; its pins of both kinds. For reports:
 * other CPUs change both. [any] */
uint32_t twin_frame_owner(const struct twin_frames *frames, uint64_t frame);
uint32_t twin_frame_pins(const struct twin_frames *frames, uint64_t frame);

/*
 * Give a frame to another owner: a guest's balloon, a grant, the end of a guest.
 * TWIN_OK; TWIN_BUSY while it is pinned: nothing has changed, try again after
 * completions; TWIN_INVALID if it is not `from`'s, does not exist, or `to` is no
 * owner. [any]
 */
int twin_frame_move(struct twin_frames *frames, uint64_t frame, uint32_t from, uint32_t to);

/* ---- Packets being sent --------------------------------------------------- */

#define TWIN_PIECES	17	/* most pieces of a packet: HOT_FRAGMENTS of <twin/guest.h> */
#define TWIN_PIECE_BYTES 65536u	/* most bytes of one: bounds the time of a check */

/* A piece of a packet; may cross frames. Laid out as struct hot_tx_fragment. */
struct twin_piece {
	uint64_t address;	/* machine address */
	uint32_t length;	/* bytes, 1 to TWIN_PIECE_BYTES */
	uint32_t zero;
};

/* A packet that the driver has, or a free place for one. Owned by twin_outgoing. */
struct twin_flight {
	uint64_t cookie;	/* the guest's */
	uint32_t guest;
	uint32_t pieces;	/* entries of piece[] */
	uint32_t uses;		/* odd: being sent; grows with each change */
	uint32_t next;		/* of the free chain: number + 1, or 0 */
	struct twin_piece piece[TWIN_PIECES];
};

/* Events so far. */
struct twin_outgoing_statistics {
	uint64_t admitted;
	uint64_t foreign;	/* packets refused: a frame was not the guest's */
	uint64_t malformed;	/* refused: too many pieces, or a bad one */
	uint64_t full;		/* put off: no place, or a frame with too many pins */
	uint64_t completed;	/* withdrawn ones included */
	uint64_t unknown;	/* completions of packets that were not being sent */
};

struct twin_outgoing {
	struct twin_frames *frames;
	struct twin_flight *flights;	/* the caller's memory */
	uint32_t count;			/* of flights[] */
	uint32_t free;			/* chain of free places: number + 1, or 0 */
	struct twin_outgoing_statistics statistics;
};

/* The result of twin_outgoing_admit. */
enum twin_admission {
	TWIN_ADMITTED = 0,	/* its frames are pinned until twin_outgoing_complete */
	TWIN_FOREIGN = 1,	/* a frame is not the guest's: never to be sent */
	TWIN_MALFORMED = 2,	/* too many pieces, a bad piece, or no such guest */
	TWIN_FULL = 3,		/* try again after completions */
};

/* Make it empty; at most `count` packets are being sent at once. Memory and frames
 * stay the caller's. TWIN_INVALID if there is no place. [setup] */
int twin_outgoing_init(struct twin_outgoing *outgoing, struct twin_frames *frames,
		       struct twin_flight *flights, uint32_t count);

/*
 * May guest send these pieces? If so their frames are pinned, and *ticket names the
 * packet from here on, in place of the guest's cookie; else nothing is pinned.
 * piece[] must be the runtime's own copy, so that what is checked is what is sent.
 * `guest` is the sender as the caller knows it, not as the guest claims. [any], this
 * CPU's.
 */
enum twin_admission twin_outgoing_admit(struct twin_outgoing *outgoing, uint32_t guest,
					uint64_t cookie, const struct twin_piece *piece,
					uint32_t pieces, uint64_t *ticket);

/*
 * The packet is sent, or will not be: its frames are unpinned. Gives TWIN_OK and the
 * packet's guest, or TWIN_INVALID if no packet of that ticket is being sent:
 * completions come through dom0's memory and may hold anything, repetitions too. A
 * completion that comes too early gives a guest its own frame back early; limiting
 * what the device reads at that time is an IOMMU's task. [any], this CPU's.
 */
int twin_outgoing_complete(struct twin_outgoing *outgoing, uint64_t ticket, uint32_t *guest,
			   uint64_t *cookie);

/* Complete all packets, after a reset of the device, which then reads nothing.
 * [any], this CPU's. */
void twin_outgoing_reset(struct twin_outgoing *outgoing);

_Static_assert(sizeof(struct twin_piece) == 16, "hot_tx_fragment");
_Static_assert(sizeof(struct twin_flight) == 24 + 16 * TWIN_PIECES, "no padding");

#endif /* TWIN_FRAMES_H */
