/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interface of the hot routines (runtime/hot), the dom0 kernel and the
 * hypervisor: how a guest's packets are requested, completed and released.
 * Rust states the same layouts and tests them against this file.
 *
 * All of it lies in dom0's memory. The hypervisor's trusted side (not the
 * rewritten code) fills requests and reads completions through its own view
 * of that memory; hot routines read each field of a request once and trust
 * none.
 */
#ifndef TWIN_GUEST_H
#define TWIN_GUEST_H

#include <linux/types.h>

#define HOT_CPUS		4	/* CPUs that may run hot routines */
#define HOT_REQUESTS		256	/* entries of hot_shared.requests */
#define HOT_TX_DONE		1024	/* entries of hot_shared.tx_done, a power of two */
#define HOT_RELEASE		256	/* entries of hot_shared.release */
#define HOT_HEADER		128	/* most bytes of a request's linear part */
#define HOT_FRAGMENTS		17	/* most fragments, MAX_SKB_FRAGS of 4 KiB pages */
#define HOT_ACKS		19	/* most further numbers of a template: of an aggregate of
				 * 32 segments, by twos, 16 are acknowledged */
#define HOT_GATHERS		16	/* most places of host_gather(), and bytes to one */
#define HOT_GATHER_MOST		4096
#define HOT_MIN_GSO_SIZE	128	/* so that 64 KiB fit a ring of 256 descriptors */

#define HOT_DOM0		0xffffu	/* hot_tx_request.guest of dom0 itself */

/* netdev_queue.xmit_lock_owner while hot_transmit() on CPU n has the queue's lock is this + n: dom0's
 * kernel writes its own CPU's number there, which would be another's */
#define HOT_QUEUE_OWNER		0x10000u

/* hot_tx_request.gso_type; 0 is none */
#define HOT_GSO_TCPV4		1
#define HOT_GSO_TCPV6		2

/* hot_tx_request.flags; others must be 0 */
#define HOT_TX_VLAN		1	/* vlan_tag (the TCI) is to be inserted, 802.1Q */

/* hot_tx_request.result */
#define HOT_SENT		0	/* the driver has it, or the hot routines until it takes
					 * its segments: exactly one completion follows */
#define HOT_BUSY		1	/* queue stopped, or HOT_TX_DONE unread: try again later */
#define HOT_NO_BUFFER		2	/* pools exhausted: try again later */
#define HOT_INVALID		3	/* malformed, or asks what the device cannot do and
					 * nobody does for it (hot_shared.offload) */
#define HOT_DOWN		4	/* interface not running or without carrier: dropped */
#define HOT_FOREIGN		5	/* a fragment is not the guest's: found by the check
					 * (<twin/frames.h>) before hot_transmit() */

#define HOT_SPOOFED		6	/* its source is not the guest's address: found by the
					 * bridge (<twin/bridge.h>), as above */

/* hot_features() */
#define HOT_CAN_FRAGMENTS	(1u << 0)
#define HOT_CAN_CHECKSUM	(1u << 1)
#define HOT_CAN_TSO4		(1u << 2)
#define HOT_CAN_TSO6		(1u << 3)
#define HOT_CAN_VLAN		(1u << 4)

/* flags of host_receive() */
#define HOT_RX_CHECKSUM_OK	(1u << 0)	/* the device verified the transport checksum */
#define HOT_RX_VLAN		(1u << 1)	/* a tag was stripped; the argument vlan is its TCI */
#define HOT_RX_FRAGMENTS	(1u << 2)	/* data/length are only the linear part */
#define HOT_RX_PIECES		(1u << 3)	/* data is a struct hot_rx_chain, length its bytes */

#define HOT_RX_LOOK		(1u << 4)	/* no packet: whether the card has more (hot_shared.look) */

/* Most segments of an aggregate: as many of full size as IPv4's length has room for, with a time stamp. */
#define HOT_RX_SEGMENTS		45

/* what host_receive() returns */
#define HOT_RX_HELD		0	/* given back later by hot_release() */
#define HOT_RX_UNWANTED		1	/* the hot routine frees it at once */
#define HOT_RX_MORE		2	/* to HOT_RX_LOOK: the driver's ring has frames that it had not; else
					 * HOT_RX_UNWANTED */

struct hot_tx_fragment {
	__u64 address;		/* machine address, in a guest's own frames: checked by the
				 * code that fills requests, not by hot routines */
	__u32 length;		/* bytes, > 0 */
	__u32 zero;
};

/* One packet to send. Filled by the sender; only result is written back. */
struct hot_tx_request {
	__u64 cookie;		/* the sender's, given back on completion */
	__u32 guest;		/* which guest, or HOT_DOM0 */
	__u16 header_length;	/* bytes in header[]: the linear part, >= 14 */
	__u16 fragments;	/* 0..HOT_FRAGMENTS; 0 if the packet is below 60 bytes */
	__u16 gso_size;		/* payload bytes a segment, or 0 */
	__u16 gso_type;		/* HOT_GSO_*, or 0 */
	__u16 checksum_start;	/* from header[0]; 0 = nothing to compute */
	__u16 checksum_offset;	/* from checksum_start */
	__u16 vlan_tag;
	__u16 flags;		/* HOT_TX_* */
	__u32 result;		/* out: HOT_SENT ... */
	__u8 header[HOT_HEADER];	/* the frame's first bytes (paper, 5.3) */
	struct hot_tx_fragment fragment[HOT_FRAGMENTS];
	/* hot_transmit_acks() alone reads these; header[] then is an acknowledgement */
	__u32 acks;		/* entries of ack[] in use: 1..HOT_ACKS */
	__u32 ack[HOT_ACKS];	/* acknowledged numbers, each after the one before it */
};

/* One packet that the driver is done with: its pages are the guest's again. */
struct hot_tx_done {
	__u64 cookie;
	__u32 guest;
	__u32 zero;
};

/* A piece of a received packet. */
struct hot_rx_piece {
	__u64 data;		/* dom0 address */
	__u32 length;		/* bytes */
	__u32 zero;
};

/*
 * TCP segments that were received one after the other and are handed on as one packet:
 * the first piece is a frame, with headers for all of them, each further one the payload
 * of one segment. host_receive() is given its first `segments` pieces: whoever serves it
 * copies and checks them, because driver code wrote them.
 */
struct hot_rx_chain {
	__u32 segments;		/* pieces in use: 2..HOT_RX_SEGMENTS */
	__u32 size;		/* payload bytes of every segment but the last, which has
				 * 1..size */
	struct hot_rx_piece piece[HOT_RX_SEGMENTS];
};

/* Indices in hot_shared.counter; all count events of that CPU since boot. */
enum hot_counter {
	HOT_COUNT_SENT,			/* requests that are HOT_SENT */
	HOT_COUNT_BUSY,
	HOT_COUNT_NO_BUFFER,
	HOT_COUNT_INVALID,
	HOT_COUNT_DOWN,
	HOT_COUNT_COMPLETED,		/* entries written to some CPU's tx_done */
	HOT_COUNT_COMPLETION_LOST,	/* tx_done full: the consumer's index is wrong */
	HOT_COUNT_RECEIVED,		/* packets that polls received, as the driver says */
	HOT_COUNT_RELEASED,		/* hot_release() took back */
	HOT_COUNT_SKB_EXHAUSTED,	/* allocations refused */
	HOT_COUNT_BUFFER_EXHAUSTED,
	HOT_COUNT_RECLAIMED,		/* taken back after dom0's own free (4.3) */
	HOT_COUNT_BAD_FREE,		/* freed twice, or no object: ignored */
	HOT_COUNT_FOREIGN_FREE,		/* not of a pool: handed to dom0's kernel */
	HOT_COUNT_BAD_COMPLETION,	/* dql_completed() of more than was queued */
	HOT_COUNT_SCHEDULED,		/* __napi_schedule() */
	HOT_COUNT_POLLED,		/* calls of a driver's poll */
	HOT_COUNT_WAKE,			/* transmit queue restarted */
	HOT_COUNT_AGGREGATES,		/* packets of several segments */
	HOT_COUNT_MERGED,		/* segments in them */
	HOT_COUNT_FLUSH_END,		/* flows flushed: the poll ended */
	HOT_COUNT_FLUSH_LIMIT,		/* ... as many segments or bytes as may be */
	HOT_COUNT_FLUSH_BOUNDARY,	/* ... a segment is shorter: the sender's end */
	HOT_COUNT_FLUSH_ORDER,		/* ... the next one is not next by seq, ack or time */
	HOT_COUNT_FLUSH_HEADER,		/* ... the next one's header says something else */
	HOT_COUNT_FLUSH_COLLISION,	/* ... another flow needed its place */
	HOT_COUNT_CUT,			/* large packets that were cut here */
	HOT_COUNT_PARTS,		/* packets made of others: segments, or one for one */
	HOT_COUNT_GATHERED,		/* copies by the host: for one of these, or again for one
					 * that the driver had not taken */
	HOT_COUNTERS
};

/* dom0's memory that packets are received into and sent from: whole buffers of a pool. */
struct hot_memory {
	__u64 start;
	__u64 bytes;
};
#define HOT_BUFFER_POOLS	2

/*
 * One CPU's part of the interface; addresses are dom0's. Words that different
 * parties write lie in different cache lines. produce, consume and sent run
 * freely: entry i is at index i % HOT_TX_DONE.
 */
struct hot_shared {
	__u64 requests;		/* struct hot_tx_request[HOT_REQUESTS] */
	__u64 tx_done;		/* struct hot_tx_done[HOT_TX_DONE] */
	__u64 release;		/* __u64[HOT_RELEASE]: struct sk_buff * for hot_release() */
	__u32 aggregate;	/* most segments of an aggregate; below 2: none are made.
				 * Written by the hypervisor, at any time */
	__u32 offload;		/* 1: what the device cannot do, the hot routines do; 0: such
				 * requests are refused. Written by the hypervisor, at any time */
	__u32 look;		/* 1: what the card receives is shown by the hypervisor, which is asked for it
				 * before a poll ends. Written by the hypervisor, at any time */
	__u32 reserved0[7];

	__u32 tx_done_produce;	/* written by whichever CPU completes ... */
	__u32 tx_done_lock;	/* ... with this held: 0 free, else its CPU + 1 */
	__u32 reserved1[14];

	__u32 tx_done_consume;	/* written by the consumer only */
	__u32 reserved2[15];

	__u32 tx_sent;		/* requests of this CPU that are HOT_SENT */
	__u32 tx_wake;		/* grows when a stopped queue is restarted (any CPU's count) */
	__u32 reserved3[14];

	__u64 counter[HOT_COUNTERS];
	__u64 reserved4[32 - HOT_COUNTERS];
};

#define HOT_ASSERT_OFFSET(type, field, offset) \
	_Static_assert(__builtin_offsetof(struct type, field) == (offset), #type "." #field)

HOT_ASSERT_OFFSET(hot_tx_fragment, address, 0);
HOT_ASSERT_OFFSET(hot_tx_fragment, length, 8);
HOT_ASSERT_OFFSET(hot_tx_fragment, zero, 12);
_Static_assert(sizeof(struct hot_tx_fragment) == 16, "hot_tx_fragment");

HOT_ASSERT_OFFSET(hot_tx_request, cookie, 0);
HOT_ASSERT_OFFSET(hot_tx_request, guest, 8);
HOT_ASSERT_OFFSET(hot_tx_request, header_length, 12);
HOT_ASSERT_OFFSET(hot_tx_request, fragments, 14);
HOT_ASSERT_OFFSET(hot_tx_request, gso_size, 16);
HOT_ASSERT_OFFSET(hot_tx_request, gso_type, 18);
HOT_ASSERT_OFFSET(hot_tx_request, checksum_start, 20);
HOT_ASSERT_OFFSET(hot_tx_request, checksum_offset, 22);
HOT_ASSERT_OFFSET(hot_tx_request, vlan_tag, 24);
HOT_ASSERT_OFFSET(hot_tx_request, flags, 26);
HOT_ASSERT_OFFSET(hot_tx_request, result, 28);
HOT_ASSERT_OFFSET(hot_tx_request, header, 32);
HOT_ASSERT_OFFSET(hot_tx_request, fragment, 160);
HOT_ASSERT_OFFSET(hot_tx_request, acks, 432);
HOT_ASSERT_OFFSET(hot_tx_request, ack, 436);
_Static_assert(sizeof(struct hot_tx_request) == 512, "hot_tx_request");

HOT_ASSERT_OFFSET(hot_rx_chain, segments, 0);
HOT_ASSERT_OFFSET(hot_rx_chain, size, 4);
HOT_ASSERT_OFFSET(hot_rx_chain, piece, 8);
_Static_assert(sizeof(struct hot_rx_piece) == 16, "hot_rx_piece");

HOT_ASSERT_OFFSET(hot_tx_done, cookie, 0);
HOT_ASSERT_OFFSET(hot_tx_done, guest, 8);
_Static_assert(sizeof(struct hot_tx_done) == 16, "hot_tx_done");
_Static_assert((HOT_TX_DONE & (HOT_TX_DONE - 1)) == 0, "indices run freely");

HOT_ASSERT_OFFSET(hot_shared, requests, 0);
HOT_ASSERT_OFFSET(hot_shared, tx_done, 8);
HOT_ASSERT_OFFSET(hot_shared, release, 16);
HOT_ASSERT_OFFSET(hot_shared, aggregate, 24);
HOT_ASSERT_OFFSET(hot_shared, offload, 28);
HOT_ASSERT_OFFSET(hot_shared, look, 32);
HOT_ASSERT_OFFSET(hot_shared, tx_done_produce, 64);
HOT_ASSERT_OFFSET(hot_shared, tx_done_lock, 68);
HOT_ASSERT_OFFSET(hot_shared, tx_done_consume, 128);
HOT_ASSERT_OFFSET(hot_shared, tx_sent, 192);
HOT_ASSERT_OFFSET(hot_shared, tx_wake, 196);
HOT_ASSERT_OFFSET(hot_shared, counter, 256);
_Static_assert(sizeof(struct hot_shared) == 512, "hot_shared");
_Static_assert(HOT_COUNTERS <= 32, "counters");

#endif /* TWIN_GUEST_H */
