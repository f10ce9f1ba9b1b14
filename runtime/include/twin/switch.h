/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The switch: passes packets that a rewritten driver has received to guests
 * (paper, 5.3).
 *
 * The driver receives into dom0's buffers. The switch reads a packet's
 * destination address, once, and queues the packet for the guests that it is for.
 * When such a guest is scheduled, it takes the packet: the bytes are copied into
 * its memory. After the last guest's copy the buffer goes back to the driver's
 * pool.
 *
 *   driver ── receive ──> [queue of guest 0] ── take ──> guest 0's memory
 *                     └─> [queue of guest 1] ── take ──> guest 1's memory
 *
 * Shared by all CPUs under one lock, which every function here but
 * twin_switch_init, twin_switch_size, twin_copy_from_dom0 and twin_copy_to_dom0 spins on. It is held
 * for a few dozen instructions (for each waiting packet, or piece of an aggregate) and
 * never while bytes are copied. Contexts as in <twin/runtime.h>.
 */
#ifndef TWIN_SWITCH_H
#define TWIN_SWITCH_H

#include <stdint.h>

#include <twin/runtime.h>

#define TWIN_SWITCH_GUESTS	64	/* one bit each in a word */
#define TWIN_SWITCH_QUEUE	512	/* packets that wait for one guest; a power of two */
#define TWIN_ETH_ALEN		6	/* bytes of an Ethernet address */
#define TWIN_ETH_HLEN		14	/* of its header: destination, source, type */
#define TWIN_SWITCH_PIECES	45	/* most pieces of an aggregate: HOT_RX_SEGMENTS */

/* A received packet as the driver's side reports it. */
struct twin_arrival {
	uint64_t buffer;	/* names the buffer when it is released */
	uint64_t data;		/* dom0 address of the Ethernet header */
	uint32_t length;	/* bytes */
	uint32_t flags;		/* passed on */
	uint32_t vlan;		/* passed on */
};

/*
 * TCP segments that the driver's side reports as one packet, in dom0's memory: the first
 * piece is a frame with headers for all, the others are the payload of one segment each.
 * Laid out as struct hot_rx_chain.
 */
struct twin_segment {
	uint64_t data;		/* dom0 address */
	uint32_t length;	/* bytes */
	uint32_t zero;
};
struct twin_aggregate {
	uint32_t segments;	/* of piece[]: 2..TWIN_SWITCH_PIECES */
	uint32_t size;		/* payload bytes of a segment; the last has 1..size */
	struct twin_segment piece[TWIN_SWITCH_PIECES];
};

/* A packet that waits, or a piece of one. Owned by the switch. */
struct twin_packet {
	struct twin_arrival arrival;	/* of a piece: data and length */
	uint32_t holders;	/* guests that have yet to take it; of a piece: segment size */
	uint32_t next;		/* of the free chain, or an aggregate's: number + 1, or 0 */
};

/* The packets that wait for one guest: entry i is at i % TWIN_SWITCH_QUEUE. */
struct twin_guest_queue {
	uint32_t produced, consumed;	/* free running */
	uint32_t packets[TWIN_SWITCH_QUEUE];	/* indices of twin_switch.packets; with
						 * the highest bit: an aggregate */
	uint64_t taken, bytes;	/* what the guest has taken: packets, bytes */
	uint64_t dropped;	/* packets for which the queue was full */
};

struct twin_switch {
	struct twin_lock lock;
	uint32_t free;			/* chain of free packets: number + 1, or 0 */
	struct twin_packet *packets;	/* the caller's memory */
	uint32_t count;			/* of packets[] */
	uint64_t attached;		/* bit g: guest g exists */
	uint64_t raised;		/* bit g: guest g has news since it was last asked */
	uint64_t unknown;		/* packets for none of the guests */
	uint64_t exhausted;		/* packets dropped: no free struct twin_packet */
	uint64_t address[TWIN_SWITCH_GUESTS];	/* Ethernet addresses, first byte lowest */
	struct twin_guest_queue guests[TWIN_SWITCH_GUESTS];
};

/* Make a switch without guests. Its packets are in packets[count], which stays the
 * caller's. TWIN_INVALID if count is 0, or above 2^30. [setup] */
int twin_switch_init(struct twin_switch *sw, struct twin_packet *packets, uint32_t count);

/* Add a guest with that unicast address. Returns its number, or -1 if the address
 * is not unicast or is taken, or there are too many guests. [any] */
int twin_switch_attach(struct twin_switch *sw, const uint8_t mac[TWIN_ETH_ALEN]);

/*
 * Remove a guest. Its waiting packets are dropped: buffers that no other guest
 * waits for are written to release[] (room for TWIN_SWITCH_QUEUE). Returns how
 * many; 0 for a guest that does not exist. Not while it takes a packet. [any]
 */
uint32_t twin_switch_detach(struct twin_switch *sw, uint32_t guest, uint64_t *release);

/* The result for a received packet. */
enum twin_switch_verdict {
	TWIN_SWITCH_HELD = 0,	/* the buffer is the switch's until it is released */
	TWIN_SWITCH_UNWANTED = 1,	/* no guest takes it: free it */
	TWIN_SWITCH_REFUSED = 2,	/* no address there, or not dom0's: abort the
					 * driver that reported it */
};

/*
 * A packet has arrived. Unicast goes to the guest of that address, broadcast and
 * multicast to all guests. arrival is copied. [inside] an import of instance, or
 * with instance held (twin_instance_hold).
 */
enum twin_switch_verdict twin_switch_receive(struct twin_switch *sw,
					     struct twin_instance *instance,
					     const struct twin_arrival *arrival);

/*
 * The same for a packet whose way is known: guests, as bits, of which those that are not
 * attached get nothing. TWIN_SWITCH_UNWANTED if nobody takes it. arrival is copied. [any]
 */
enum twin_switch_verdict twin_switch_hold(struct twin_switch *sw, uint64_t guests,
					  const struct twin_arrival *arrival);

/*
 * The same for an aggregate: arrival->data is where its struct twin_aggregate is, and
 * arrival->length that structure's bytes in use. It is copied, too, and what it says must
 * agree: else TWIN_SWITCH_REFUSED. Guests are given one packet of all pieces. [inside],
 * or with instance held.
 */
enum twin_switch_verdict twin_switch_receive_aggregate(struct twin_switch *sw,
						       struct twin_instance *instance,
						       const struct twin_arrival *arrival);

/*
 * The same for one whose way is known, as twin_switch_hold: nothing says anew who gets it. Guests
 * are told of what they get, also if dom0 changes the frame meanwhile. [inside], or with instance
 * held.
 */
enum twin_switch_verdict twin_switch_hold_aggregate(struct twin_switch *sw,
						    struct twin_instance *instance,
						    uint64_t guests,
						    const struct twin_arrival *arrival);

/* What twin_switch_take gives for an aggregate, in place of TWIN_OK. */
#define TWIN_SWITCH_AGGREGATE	64

/* The result of twin_switch_take. */
struct twin_delivery {
	uint32_t length;	/* of the packet; more than size if it was cut */
	uint32_t flags, vlan;
	uint16_t segments;	/* TWIN_SWITCH_AGGREGATE: its segments */
	uint16_t size;		/* ... and the payload bytes of each but the last */
	uint64_t release;	/* buffer to release now, or 0 */
};

/*
 * Copy guest's next packet to `to`, at most size bytes, and take it from the
 * guest's queue. TWIN_OK, or TWIN_SWITCH_AGGREGATE if it is one; TWIN_BUSY if there is
 * none, TWIN_ABORTED if its bytes are not all dom0's (it is dropped). Unless TWIN_BUSY, *delivery says what was copied
 * and what to release. The caller holds instance (twin_instance_hold). One CPU at a
 * time for one guest. [outside]
 */
int twin_switch_take(struct twin_switch *sw, struct twin_instance *instance, uint32_t guest,
		     void *to, uint32_t size, struct twin_delivery *delivery);

/* Guests with news since the last call, as bits: the virtual interrupts to
 * raise. [any] */
uint64_t twin_switch_news(struct twin_switch *sw);

/*
 * Copy size bytes at dom0 address `from` to `to`. TWIN_OK, or TWIN_ABORTED if some
 * are not dom0's (others may have been copied). from and size may be anything: they
 * come from dom0 or the driver. The core reads dom0's memory only by this function,
 * and each byte once, so that what was checked is what is used. instance is held
 * or [inside].
 */
int twin_copy_from_dom0(struct twin_instance *instance, void *to, uint64_t from, uint32_t size);

/* The same for an Ethernet header, in fewer instructions: each packet has one. */
int twin_read_header(struct twin_instance *instance, uint64_t from, uint8_t header[TWIN_ETH_HLEN]);

/*
 * The other way round: copy size bytes to dom0 address `to`, which a driver could write as well. The
 * core writes to dom0's memory only by this function. As above.
 */
int twin_copy_to_dom0(struct twin_instance *instance, uint64_t to, const void *from, uint32_t size);

/* Bytes of struct twin_switch, for callers not in C. [any] */
uint64_t twin_switch_size(void);

#endif /* TWIN_SWITCH_H */
