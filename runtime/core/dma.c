// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Descriptors: what the driver hands over, and what the card writes back; see
 * <twin/dma.h>. dma_rings.c takes rings and gives them back.
 *
 *   0        shown             tail            count      of the copy and the slots
 *   +----------+-----------------+---------------+
 *   | driver's | the card's      | driver's      |
 *   +----------+-----------------+---------------+
 *               pinned, unless held
 *
 * shown follows the card's head by the DD bits that it writes, so its head register,
 * which is slow to read, is not needed. The card's descriptors are not written here: a
 * new tail never passes shown. A descriptor's words are each read once from the driver's
 * ring; what was read is checked, and goes to copy and slot.
 *
 * This runs for every packet, so loops take descriptors in runs that end at the ring's end,
 * and the commonest buffers are decided in line.
 *
 *           63              48 47  40 39  36 35  32 31    24 23  20 19        0
 * legacy    special | CSS    | rsv STA      | CMD     CSO  | length (15:0)    3.3.3
 * context   MSS     | HDRLEN | rsv STA      | TUCMD   DTYP 0 | PAYLEN         3.3.6
 * data      special | POPTS  | rsv STA      | DCMD    DTYP 1 | DTALEN         3.3.7
 * receive   special | errors | status       | checksum       | length         3.2.3
 */
#include <stddef.h>

#include <twin/dma.h>

#include "dma.h"
#include "frames.h"
#include "internal.h"

#define LEGACY_LENGTH	0xffffull
#define DATA_LENGTH	0xfffffull
#define TYPE_SHIFT	20		/* DTYP */
#define TYPE_MASK	0xfull
#define TYPE_CONTEXT	0ull
#define TYPE_DATA	1ull
#define REPORT_STATUS	(1ull << 27)	/* RS: the card writes DD back (3.3.3.1) */
#define EXTENDED	(1ull << 29)	/* DEXT: not legacy */
#define DONE		(1ull << 32)	/* DD, in both directions (3.2.3.1, 3.3.3.2) */

static inline uint32_t after(const struct twin_dma_ring *ring, uint32_t index)
{
	return index + 1 == ring->is.count ? 0 : index + 1;
}

/* Steps from one index to another. */
static uint32_t steps(const struct twin_dma_ring *ring, uint32_t from, uint32_t to)
{
	return to >= from ? to - from : to + ring->is.count - from;
}

bool twin_dma_violated(struct twin_dma *dma, const struct twin_dma_ring *ring,
		     enum twin_dma_fault fault, uint32_t index, uint64_t address)
{
	dma->report = (struct twin_dma_report){
		.fault = fault, .kind = twin_dma_kind_of(dma, ring), .index = index, .address = address,
	};
	dma->statistics.refused++;
	return false;
}

/* ---- Buffers -------------------------------------------------------------- */

/*
 * Pin a buffer that the card may use and that is not held: dom0's since the rings were
 * taken; a guest's, only for transmission and as long as a packet of that guest's which is
 * being sent pins it.
 */
static enum twin_dma_fault pin_buffer(struct twin_dma *dma, uint32_t kind,
				      const struct twin_piece *piece)
{
	const uint32_t owner = twin_frame_owner(dma->frames, twin_first_frame(piece));
	enum twin_admission admission = TWIN_FOREIGN;

	if (owner == TWIN_OWNER_DOM0 && twin_has_piece(dma, dma->pool, piece))
		admission = twin_frames_pin(dma->frames, owner, piece, TWIN_PIN_CARD, false);
	else if (owner != TWIN_OWNER_DOM0 && owner != TWIN_OWNER_NOBODY &&
		 kind == TWIN_DMA_TRANSMIT)
		admission = twin_frames_pin(dma->frames, owner, piece, TWIN_PIN_CARD, true);
	return admission == TWIN_ADMITTED ? TWIN_DMA_FINE : TWIN_DMA_FOREIGN;
}

/* Any buffer; see admit_buffer. */
static __attribute__((noinline)) enum twin_dma_fault
admit_any_buffer(struct twin_dma *dma, uint32_t kind, const struct twin_piece *piece,
		 struct twin_dma_slot *slot)
{
	if (piece->address + piece->length - 1 < piece->address)
		return TWIN_DMA_LENGTH;
	if (twin_has_piece(dma, dma->held, piece))
		return TWIN_DMA_FINE;
	if (pin_buffer(dma, kind, piece))
		return TWIN_DMA_FOREIGN;
	slot->length = piece->length;
	return TWIN_DMA_FINE;
}

/*
 * A buffer that the card may use; not empty. slot: what is pinned for it.
 *
 * Nearly every buffer lies in one frame or two that are held, or in one of a guest's that
 * a packet pins: these cases are decided here, and all others, what is refused among them, by
 * admit_any_buffer. One that wraps has its last frame far before its first. A guest's frame
 * gets one more pin in the step that judges its word.
 */
static inline enum twin_dma_fault admit_buffer(struct twin_dma *dma, uint32_t kind,
					       const struct twin_piece *piece,
					       struct twin_dma_slot *slot)
{
	const uint64_t first = twin_first_frame(piece), last = twin_last_frame(piece);

	if (last - first <= 1 && last < dma->frames->count) {
		if (twin_has_frame(dma->held, first) && twin_has_frame(dma->held, last))
			return TWIN_DMA_FINE;
		if (kind == TWIN_DMA_TRANSMIT && first == last &&
		    twin_frame_pin_sent(&dma->frames->words[first])) {
			slot->length = piece->length;
			return TWIN_DMA_FINE;
		}
	}
	return admit_any_buffer(dma, kind, piece, slot);
}

static inline void unpin_slot(struct twin_dma *dma, const struct twin_dma_slot *slot)
{
	const struct twin_piece piece = twin_piece_of(slot->address, slot->length);

	if (!piece.length)
		return;
	if (twin_first_frame(&piece) == twin_last_frame(&piece))
		twin_frame_unpin(&dma->frames->words[twin_first_frame(&piece)], TWIN_PIN_CARD);
	else
		twin_frames_unpin(dma->frames, &piece, TWIN_PIN_CARD);
}

/* ---- Descriptors ---------------------------------------------------------- */

/* Bytes that the card reads by a transmit descriptor; 0: none (3.3.3: a length of 0 is a
 * descriptor without data; context descriptors have none). */
static inline enum twin_dma_fault transmit_length(uint64_t control, uint32_t *length)
{
	const uint64_t type = control & (EXTENDED | TYPE_MASK << TYPE_SHIFT);

	if (type == (EXTENDED | TYPE_DATA << TYPE_SHIFT))
		*length = control & DATA_LENGTH;
	else if (type == (EXTENDED | TYPE_CONTEXT << TYPE_SHIFT))
		*length = 0;
	else if (!(control & EXTENDED))
		*length = control & LEGACY_LENGTH;
	else
		return TWIN_DMA_FORMAT;
	return *length <= TWIN_DMA_BUFFER ? TWIN_DMA_FINE : TWIN_DMA_LENGTH;
}

/* What admit found wrong, for the report. */
static bool refuse(struct twin_dma *dma, const struct twin_dma_ring *ring, uint32_t index,
		   enum twin_dma_fault fault, const struct twin_dma_descriptor *seen)
{
	return twin_dma_violated(dma, ring, fault, index,
			fault == TWIN_DMA_FORMAT ? seen->control : seen->address);
}

/* Check the driver's descriptor; copied and in its slot if it is fine. `is` is the ring's
 * configuration, in registers. */
static inline __attribute__((always_inline)) bool
admit(struct twin_dma *dma, const struct twin_dma_ring *ring,
      const struct twin_dma_ring_config *is, uint32_t kind, uint32_t index)
{
	volatile struct twin_dma_descriptor *driver = &is->driver[index];
	const struct twin_dma_descriptor seen = { driver->address, driver->control };
	struct twin_dma_slot *slot = &is->slots[index];
	enum twin_dma_fault fault = TWIN_DMA_FINE;
	uint32_t length = is->buffer;
	struct twin_piece piece;

	if (kind == TWIN_DMA_TRANSMIT)
		fault = transmit_length(seen.control, &length);
	slot->address = seen.address;
	slot->length = 0;
	if (!fault && length) {
		piece = twin_piece_of(seen.address, length);
		fault = admit_buffer(dma, kind, &piece, slot);
	}
	if (fault)
		return refuse(dma, ring, index, fault, &seen);
	is->copy[index].address = seen.address;
	/* Not yet done, whatever the driver says. */
	is->copy[index].control = seen.control & ~DONE;
	return true;
}

static void unpin_between(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t from,
			  uint32_t to)
{
	for (; from != to; from = after(ring, from))
		unpin_slot(dma, &ring->is.slots[from]);
}

/* Where the descriptors from `from` to another index, `to`, end or reach the ring's end. */
static inline uint32_t end_of_run(const struct twin_dma_ring *ring, uint32_t from, uint32_t to)
{
	return to > from ? to : ring->is.count;
}

/* All from the ring's tail up to a new one, or none. Compiled for each kind by itself. */
static inline __attribute__((always_inline)) bool
admit_all(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t kind, uint32_t tail)
{
	const struct twin_dma_ring_config is = ring->is;
	uint32_t index = ring->tail, end;

	while (index != tail) {
		for (end = end_of_run(ring, index, tail); index != end; index++)
			if (!admit(dma, ring, &is, kind, index)) {
				unpin_between(dma, ring, ring->tail, index);
				return false;
			}
		if (index == is.count)
			index = 0;
	}
	dma->statistics.checked += steps(ring, ring->tail, tail);
	ring->tail = tail;
	return true;
}

bool twin_dma_admit(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t tail)
{
	return twin_dma_kind_of(dma, ring) == TWIN_DMA_TRANSMIT ?
	       admit_all(dma, ring, TWIN_DMA_TRANSMIT, tail) :
	       admit_all(dma, ring, TWIN_DMA_RECEIVE, tail);
}

/* ---- The driver's doorbell ------------------------------------------------- */

static bool follow_doorbell(struct twin_dma *dma, struct twin_dma_ring *ring)
{
	const uint32_t tail = *ring->is.doorbell;

	if (tail == ring->tail)
		return true;
	if (tail >= ring->is.count)
		return twin_dma_violated(dma, ring, TWIN_DMA_TAIL, ring->tail, tail);
	/* A tail that equals the head means an empty ring (3.2.6, 3.4): one stays free. */
	if (steps(ring, ring->shown, ring->tail) + steps(ring, ring->tail, tail) >= ring->is.count)
		return twin_dma_violated(dma, ring, TWIN_DMA_OVERRUN, ring->tail, tail);
	if (!twin_dma_admit(dma, ring, tail))
		return false;
	dma->statistics.doorbells++;
	/* The copies are written before the card can know of them. */
	__atomic_store_n(ring->is.tail_register, tail, __ATOMIC_RELEASE);
	return true;
}

/* ---- The card's write-backs ------------------------------------------------ */

static inline uint64_t written_back(const struct twin_dma_ring *ring, uint32_t index)
{
	return __atomic_load_n(&ring->is.copy[index].control, __ATOMIC_ACQUIRE);
}

/* Descriptors before `to` are the driver's again. */
static inline void shown_up_to(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t to)
{
	dma->statistics.shown += steps(ring, ring->shown, to);
	ring->shown = to;
}

/*
 * Descriptors [ring->shown, to), with which the card is done. Are they as they were? The
 * driver has no business in them before (3.2.6, 3.4). A slot changes only under the lock,
 * before its descriptor is the card's. What the card wrote is shown behind the look at the
 * descriptor: a driver on another CPU that sees DD may fill it, and those before it, anew.
 */
static inline bool hand_back(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t to)
{
	volatile struct twin_dma_descriptor *driver = ring->is.driver;
	const struct twin_dma_slot *slots = ring->is.slots;
	uint32_t index = ring->shown, end;
	uint64_t control;

	while (index != to) {
		for (end = end_of_run(ring, index, to); index != end; index++) {
			const uint64_t address = driver[index].address;

			if (address != slots[index].address) {
				shown_up_to(dma, ring, index);
				return twin_dma_violated(dma, ring, TWIN_DMA_CHANGED, index, address);
			}
			unpin_slot(dma, &slots[index]);
			control = written_back(ring, index);
			if (control & DONE)
				__atomic_store_n(&driver[index].control, control, __ATOMIC_RELEASE);
		}
		if (index == ring->is.count)
			index = 0;
	}
	shown_up_to(dma, ring, to);
	return true;
}

/* Each descriptor that was received into has DD (3.2.3.1). */
static bool show_received(struct twin_dma *dma, struct twin_dma_ring *ring)
{
	uint32_t index;

	for (index = ring->shown; index != ring->tail; index = after(ring, index))
		if (!(written_back(ring, index) & DONE))
			break;
	return hand_back(dma, ring, index);
}

/* The card works in order, and writes DD where RS is set: one that has it ends all before
 * it (3.3.3.1). */
static bool show_sent(struct twin_dma *dma, struct twin_dma_ring *ring)
{
	uint32_t index, done = ring->shown;

	for (index = ring->shown; index != ring->tail; index = after(ring, index)) {
		const uint64_t control = written_back(ring, index);

		if (!(control & REPORT_STATUS))
			continue;
		if (!(control & DONE))
			break;
		done = after(ring, index);
	}
	return hand_back(dma, ring, done);
}

bool twin_dma_follow(struct twin_dma *dma)
{
	return show_sent(dma, &dma->ring[TWIN_DMA_TRANSMIT]) &&
	       show_received(dma, &dma->ring[TWIN_DMA_RECEIVE]);
}

/* The slot has the address; the copy has the length of what is sent, which the card leaves as it
 * is (3.3.3.2). A buffer that is received into is counted whole. */
struct twin_piece twin_dma_piece(const struct twin_dma *dma, const struct twin_dma_ring *ring,
				 uint32_t index)
{
	uint32_t length = ring->is.buffer;

	if (twin_dma_kind_of(dma, ring) == TWIN_DMA_TRANSMIT &&
	    transmit_length(written_back(ring, index), &length) != TWIN_DMA_FINE)
		length = TWIN_DMA_BUFFER;
	return twin_piece_of(ring->is.slots[index].address, length);
}

void twin_dma_forget(struct twin_dma *dma, struct twin_dma_ring *ring)
{
	unpin_between(dma, ring, ring->shown, ring->tail);
	ring->shown = ring->tail;
}

/* Without rings an entry costs one look. */
static bool is_taken(const struct twin_dma *dma)
{
	return __atomic_load_n(&dma->taken, __ATOMIC_ACQUIRE) != 0;
}

bool twin_dma_show(struct twin_dma *dma, struct twin_dma_report *report)
{
	bool fine;

	if (!is_taken(dma))
		return true;
	lock(&dma->lock);
	fine = !dma->taken || twin_dma_follow(dma);
	if (!fine)
		*report = dma->report;
	unlock(&dma->lock);
	return fine;
}

bool twin_dma_ring(struct twin_dma *dma, struct twin_dma_report *report)
{
	bool fine = true;
	uint32_t kind;

	if (!is_taken(dma))
		return true;
	lock(&dma->lock);
	for (kind = 0; dma->taken && fine && kind < TWIN_DMA_RINGS; kind++)
		fine = follow_doorbell(dma, &dma->ring[kind]);
	if (!fine)
		*report = dma->report;
	unlock(&dma->lock);
	return fine;
}
