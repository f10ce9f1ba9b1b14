/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Pins, between frames.c and outgoing.c. [any]
 */
#ifndef TWIN_CORE_FRAMES_H
#define TWIN_CORE_FRAMES_H

#include <twin/frames.h>

/* Pin every frame of a piece, if all are owner's; else none. A frame that does not
 * exist is foreign. */
enum twin_admission twin_frames_pin(struct twin_frames *frames, uint32_t owner,
				    const struct twin_piece *piece);

/* The same, if each has a pin already: one more for it. */
enum twin_admission twin_frames_pin_again(struct twin_frames *frames, uint32_t owner,
					  const struct twin_piece *piece);

/* Take those pins off: once for each pin, with the same piece. */
void twin_frames_unpin(struct twin_frames *frames, const struct twin_piece *piece);

#endif /* TWIN_CORE_FRAMES_H */
