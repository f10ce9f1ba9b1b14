// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Guests' packets being sent; see <twin/frames.h>.
 *
 * A ticket is the number of a place and the place's count of changes when the
 * packet took it. So a second or late completion matches no packet:
 *
 *   63    32 31     0
 *   +-------+-------+
 *   | uses  | place |
 *   +-------+-------+
 */
#include <stddef.h>

#include <twin/frames.h>

#include "frames.h"
#include "internal.h"

static uint64_t ticket_of(const struct twin_outgoing *outgoing, const struct twin_flight *flight)
{
	return (uint64_t)flight->uses << 32 | (uint32_t)(flight - outgoing->flights);
}

static void make_free(struct twin_outgoing *outgoing, struct twin_flight *flight)
{
	flight->next = outgoing->free;
	outgoing->free = (uint32_t)(flight - outgoing->flights) + 1;
}

int twin_outgoing_init(struct twin_outgoing *outgoing, struct twin_frames *frames,
		       struct twin_flight *flights, uint32_t count)
{
	uint32_t i;

	if (!flights || !count || count == UINT32_MAX)
		return TWIN_INVALID;
	*outgoing = (struct twin_outgoing){ .frames = frames, .flights = flights, .count = count };
	for (i = count; i-- > 0;) {
		flights[i].uses = 0;
		make_free(outgoing, &flights[i]);
	}
	return TWIN_OK;
}

static inline void unpin_piece(struct twin_frames *frames, const struct twin_piece *piece)
{
	if (twin_first_frame(piece) == twin_last_frame(piece))
		twin_frame_unpin(&frames->words[twin_first_frame(piece)], TWIN_PIN_PACKET);
	else
		twin_frames_unpin(frames, piece, TWIN_PIN_PACKET);
}

static void unpin_first(struct twin_outgoing *outgoing, struct twin_flight *flight, uint32_t pieces)
{
	while (pieces-- > 0)
		unpin_piece(outgoing->frames, &flight->piece[pieces]);
}

/* Whether a piece is of one frame, that exists: most are. One that wraps is not. */
static inline bool is_of_one_frame(const struct twin_frames *frames, const struct twin_piece *piece)
{
	return piece->length && piece->length <= TWIN_PAGE_SIZE &&
	       twin_first_frame(piece) == twin_last_frame(piece) &&
	       twin_first_frame(piece) < frames->count;
}

/* frames.c decides about any other. */
static inline enum twin_admission pin_piece(struct twin_frames *frames, uint32_t owner,
					    const struct twin_piece *piece)
{
	if (is_of_one_frame(frames, piece))
		return twin_frame_pin(&frames->words[twin_first_frame(piece)], owner,
				      TWIN_PIN_PACKET, false);
	return twin_frames_pin(frames, owner, piece, TWIN_PIN_PACKET, false);
}

/* Copies and pins the pieces, all or none. */
static inline enum twin_admission pin_pieces(struct twin_outgoing *outgoing,
					     struct twin_flight *flight, uint32_t owner,
					     const struct twin_piece *piece, uint32_t pieces)
{
	enum twin_admission admission;
	uint32_t i;

	for (i = 0; i < pieces; i++) {
		flight->piece[i] = piece[i];
		admission = pin_piece(outgoing->frames, owner, &flight->piece[i]);
		if (admission != TWIN_ADMITTED) {
			unpin_first(outgoing, flight, i);
			return admission;
		}
	}
	return TWIN_ADMITTED;
}

static enum twin_admission admit(struct twin_outgoing *outgoing, uint32_t guest, uint64_t cookie,
				 const struct twin_piece *piece, uint32_t pieces, uint64_t *ticket)
{
	enum twin_admission admission;
	struct twin_flight *flight;

	if (pieces > TWIN_PIECES || guest >= TWIN_OWNER_GUESTS)
		return TWIN_MALFORMED;
	if (!outgoing->free)
		return TWIN_FULL;
	flight = &outgoing->flights[outgoing->free - 1];
	admission = pin_pieces(outgoing, flight, TWIN_OWNER_GUEST(guest), piece, pieces);
	if (admission != TWIN_ADMITTED)
		return admission;
	outgoing->free = flight->next;
	flight->cookie = cookie;
	flight->guest = guest;
	flight->pieces = pieces;
	flight->uses++;
	*ticket = ticket_of(outgoing, flight);
	return TWIN_ADMITTED;
}

enum twin_admission twin_outgoing_admit(struct twin_outgoing *outgoing, uint32_t guest,
					uint64_t cookie, const struct twin_piece *piece,
					uint32_t pieces, uint64_t *ticket)
{
	enum twin_admission admission = admit(outgoing, guest, cookie, piece, pieces, ticket);
	struct twin_outgoing_statistics *statistics = &outgoing->statistics;

	switch (admission) {
	case TWIN_ADMITTED:
		statistics->admitted++;
		break;
	case TWIN_FOREIGN:
		statistics->foreign++;
		break;
	case TWIN_MALFORMED:
		statistics->malformed++;
		break;
	case TWIN_FULL:
		statistics->full++;
		break;
	}
	return admission;
}

static void finish(struct twin_outgoing *outgoing, struct twin_flight *flight)
{
	unpin_first(outgoing, flight, flight->pieces);
	flight->uses++;
	make_free(outgoing, flight);
	outgoing->statistics.completed++;
}

static bool is_on_its_way(const struct twin_flight *flight)
{
	return flight->uses & 1;
}

/* The packet of that ticket, or NULL. */
static struct twin_flight *find(struct twin_outgoing *outgoing, uint64_t ticket)
{
	struct twin_flight *flight;

	if ((uint32_t)ticket >= outgoing->count)
		return NULL;
	flight = &outgoing->flights[(uint32_t)ticket];
	return is_on_its_way(flight) && flight->uses == ticket >> 32 ? flight : NULL;
}

const struct twin_flight *twin_outgoing_find(struct twin_outgoing *outgoing, uint64_t ticket)
{
	return find(outgoing, ticket);
}

int twin_outgoing_complete(struct twin_outgoing *outgoing, uint64_t ticket, uint32_t *guest,
			   uint64_t *cookie)
{
	struct twin_flight *flight = find(outgoing, ticket);

	if (!flight) {
		outgoing->statistics.unknown++;
		return TWIN_INVALID;
	}
	*guest = flight->guest;
	*cookie = flight->cookie;
	finish(outgoing, flight);
	return TWIN_OK;
}

void twin_outgoing_reset(struct twin_outgoing *outgoing)
{
	uint32_t i;

	for (i = 0; i < outgoing->count; i++)
		if (is_on_its_way(&outgoing->flights[i]))
			finish(outgoing, &outgoing->flights[i]);
}
