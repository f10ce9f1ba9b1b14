/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For the tests of receive aggregation: TCP segments as a card receives them, and a host
 * that takes every packet apart again. What comes out must be what went in: each
 * flow's frames in order, byte for byte.
 */
#ifndef HOT_SEGMENTS_H
#define HOT_SEGMENTS_H

#include "common.h"

#define MADE		128	/* frames of one run */
#define MADE_FLOWS	64
#define MADE_BYTES	3600

/* Fields of a segment; a test changes what it is about. */
struct fields {
	u32 flow;
	u32 seq, ack, stamp, echo;
	u32 payload;
	u16 window, id, fragment;	/* fragment: flags and offset */
	u8 flags, tos, ttl;
	bool stamped;
};

/* A frame that was made, and has to come out. */
struct made {
	u32 flow, length, headers, payload;
	u16 vlan;
	bool unchecked;		/* the card did not find its checksum right */
	bool odd;		/* must not be merged with others: found when it comes in */
	bool seen;		/* came out */
	u8 frame[MADE_BYTES];
};

extern struct made made[MADE];
extern u32 made_count;

/* The packets that came out: how many segments, and the first one's number in made[]. */
struct seen {
	u32 segments, first;
};
extern struct seen seen[MADE];
extern u32 seen_count;

/* Begins a test with the host above, and that limit of segments. */
void segments_begin(u32 limit);
/* Forgets what was made, after all of it came out and was released. */
void segments_next(void);
/* A segment of a flow; its number follows from the flow's last ones. */
struct fields segment_fields(u32 flow, u32 n, u32 payload);
struct made *make_segment(const struct fields *fields);
/* The IP header's checksum, after a change. */
void make_right(struct made *frame);
/* With TCP's checksum, which the card does not look at. */
void make_summed(struct made *frame);
/* Receives all that was made since, in one poll of the driver's; all must come out. */
void poll_segments(void);
/* The same with so many in each of the driver's polls, as long as the host says that there are more. */
void poll_more(u32 each);
u32 segments_held(void);

#endif /* HOT_SEGMENTS_H */
