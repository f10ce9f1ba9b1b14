// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Descriptors: what the driver hands over, and what the card writes back; see
 * <twin/dma.h>. dma_rings.c takes rings and gives them back, dma_buffers.h has whose buffers are.
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
 * This runs for every packet. So loops take descriptors in rows that end at the ring's end, and
 * call nothing while descriptors are as nearly all are: checked by two compares, or in one frame
 * of a guest's. One that is not ends the loop, and is dealt with outside.
 *
 *   shown                 reported    tail
 *     +---+---+---+---+---+---+-------+
 *     |   |   |RS |   |   |RS |       |      transmit: reports, each up to a descriptor
 *     +-|-+---+-|-+-|-+---+-|-+-------+      with RS, and what has none yet
 *       '------>'   '------>'  last
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
#include "dma_buffers.h"
#include "internal.h"

#define LEGACY_LENGTH	0xffffull
#define DATA_LENGTH	0xfffffull
#define TYPE_SHIFT	20		/* DTYP */
#define TYPE_MASK	0xfull
#define TYPE_CONTEXT	0ull
#define TYPE_DATA	1ull
#define CONTEXT_MASK	(EXTENDED | TYPE_MASK << TYPE_SHIFT)
#define CONTEXT		(EXTENDED | TYPE_CONTEXT << TYPE_SHIFT)
#define REPORT_STATUS	(1ull << 27)	/* RS: the card writes DD back (3.3.3.1) */
#define EXTENDED	(1ull << 29)	/* DEXT: not legacy */
#define DONE		(1ull << 32)	/* DD, in both directions (3.2.3.1, 3.3.3.2) */
/* Of fewer than TWIN_DMA_SHORT bytes. */
#define NOT_SHORT	(~(TWIN_DMA_SHORT - 1ull))
#define SHORT_DATA_MASK	(CONTEXT_MASK | (DATA_LENGTH & NOT_SHORT))
#define SHORT_DATA	(EXTENDED | TYPE_DATA << TYPE_SHIFT)
#define SHORT_LEGACY_MASK (EXTENDED | (LEGACY_LENGTH & NOT_SHORT))

static inline uint32_t after(const struct twin_dma_ring *ring, uint32_t index)
{
	return index + 1 == ring->is.count ? 0 : index + 1;
}

/* Steps from one index to another. */
static uint32_t steps(const struct twin_dma_ring *ring, uint32_t from, uint32_t to)
{
	return to >= from ? to - from : to + ring->is.count - from;
}

/* ---- Places ----------------------------------------------------------------- */

/* Driver's descriptor, copy and slot are of one size: one offset, in bytes, is the place of all
 * three, and loops count it instead of an index, which no address can scale. */
#define PLACE		sizeof(struct twin_dma_descriptor)

_Static_assert(sizeof(struct twin_dma_slot) == PLACE, "one place for all three");

static inline uint64_t place_of(uint32_t index)
{
	return (uint64_t)index * PLACE;
}

static inline volatile struct twin_dma_descriptor *
driver_at(const struct twin_dma_ring_config *is, uint64_t place)
{
	return (volatile void *)((volatile uint8_t *)is->driver + place);
}

/* A word that the driver may change at any time: the compiler reads it here, and nowhere again. */
static inline uint64_t read_once(const volatile uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline struct twin_dma_descriptor *copy_at(const struct twin_dma_ring_config *is,
						   uint64_t place)
{
	return (void *)((uint8_t *)is->copy + place);
}

static inline struct twin_dma_slot *slot_at(const struct twin_dma_ring_config *is, uint64_t place)
{
	return (void *)((uint8_t *)is->slots + place);
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

/* Check a descriptor that is_plain does not decide. It was read once, and is in its slot. */
static bool admit_other(struct twin_dma *dma, const struct twin_dma_ring *ring, uint32_t index,
			const struct twin_dma_descriptor *seen)
{
	const uint32_t kind = twin_dma_kind_of(dma, ring);
	enum twin_dma_fault fault = TWIN_DMA_FINE;
	uint32_t length = ring->is.buffer;
	struct twin_piece piece;

	if (kind == TWIN_DMA_TRANSMIT)
		fault = transmit_length(seen->control, &length);
	if (!fault && length) {
		piece = twin_piece_of(seen->address, length);
		fault = twin_dma_admit_buffer(dma, kind, &piece, &ring->is.slots[index]);
	}
	return fault ? refuse(dma, ring, index, fault, seen) : true;
}

/*
 * Whether a descriptor is fine for nearly every one's reason: it has no buffer, or a short one that
 * is decided in line. One compare knows a type whose length is short. False says nothing, and
 * leaves nothing pinned.
 */
static inline __attribute__((always_inline)) bool
is_plain(const struct twin_dma_at_hand *at_hand, uint32_t kind, struct twin_dma_slot *slot,
	 const struct twin_dma_descriptor *seen)
{
	if (kind == TWIN_DMA_TRANSMIT && (seen->control & SHORT_DATA_MASK) != SHORT_DATA) {
		if ((seen->control & CONTEXT_MASK) == CONTEXT)
			return true;
		if (seen->control & SHORT_LEGACY_MASK)
			return false;
	}
	return twin_dma_admit_short(at_hand, kind, slot, seen->control & (TWIN_DMA_SHORT - 1));
}

/* Descriptors that are handed over: next, index, which is read; and seen, what was read. */
struct batch {
	uint32_t index;
	uint32_t reported;	/* as of the ring, until the batch is checked */
	struct twin_dma_descriptor seen;
};

static inline void enter_copy(const struct twin_dma_ring_config *is, uint64_t place,
			      const struct twin_dma_descriptor *seen)
{
	struct twin_dma_descriptor *copy = copy_at(is, place);

	copy->address = seen->address;
	/* Not yet done, whatever the driver says. */
	copy->control = seen->control & ~DONE;
}

/* One that is copied: a report ends with it, if it has RS. Then the next one begins behind it, if
 * that is in the ring. */
static inline void enter_report(const struct twin_dma_ring_config *is, struct batch *batch,
				uint32_t index, uint64_t control)
{
	if (!(control & REPORT_STATUS))
		return;
	is->slots[batch->reported].last = index;
	batch->reported = index + 1;
}

/*
 * Check, copy and enter descriptors from the batch's index up to `end`, at most the ring's, as
 * long as they are plain: the batch is at the one that is not, which was read, or at the end. Nothing is called
 * here, so all is in registers. Compiled for each kind by itself.
 */
static inline __attribute__((always_inline)) struct batch
admit_plain(const struct twin_dma *dma, const struct twin_dma_ring *ring, uint32_t kind,
	    struct batch now, uint32_t end)
{
	const struct twin_dma_ring_config is = ring->is;
	const struct twin_dma_at_hand at_hand = twin_dma_at_hand_of(dma, ring);
	const uint64_t beyond = place_of(end);
	uint64_t place;

	for (place = place_of(now.index); place != beyond; place += PLACE) {
		now.seen.address = read_once(&driver_at(&is, place)->address);
		now.seen.control = read_once(&driver_at(&is, place)->control);
		*slot_at(&is, place) = (struct twin_dma_slot){ .address = now.seen.address };
		if (!is_plain(&at_hand, kind, slot_at(&is, place), &now.seen))
			break;
		enter_copy(&is, place, &now.seen);
		if (kind == TWIN_DMA_TRANSMIT)
			enter_report(&is, &now, (uint32_t)(place / PLACE), now.seen.control);
	}
	now.index = (uint32_t)(place / PLACE);
	return now;
}

/* Where the descriptors from `from` to another index, `to`, end or reach the ring's end. */
static inline uint32_t end_of_run(const struct twin_dma_ring *ring, uint32_t from, uint32_t to)
{
	return to > from ? to : ring->is.count;
}

static inline uint32_t in_ring(const struct twin_dma_ring *ring, uint32_t index)
{
	return index == ring->is.count ? 0 : index;
}

/* The batch is at one that is not plain: behind it, if that may be used. */
static bool admit_at(struct twin_dma *dma, const struct twin_dma_ring *ring, uint32_t kind,
		     struct batch *batch)
{
	if (!admit_other(dma, ring, batch->index, &batch->seen))
		return false;
	enter_copy(&ring->is, place_of(batch->index), &batch->seen);
	if (kind == TWIN_DMA_TRANSMIT)
		enter_report(&ring->is, batch, batch->index, batch->seen.control);
	batch->index++;
	return true;
}

/*
 * The rest of a batch up to the new tail, where it has stopped: at the ring's end, or at one that is not
 * plain.
 */
static __attribute__((noinline)) bool admit_rest(struct twin_dma *dma, const struct twin_dma_ring *ring,
						  struct batch *batch, uint32_t tail)
{
	const uint32_t kind = twin_dma_kind_of(dma, ring);

	for (;;) {
		if (batch->index != ring->is.count && !admit_at(dma, ring, kind, batch))
			return false;
		batch->index = in_ring(ring, batch->index);
		batch->reported = in_ring(ring, batch->reported);
		if (batch->index == tail)
			return true;
		*batch = admit_plain(dma, ring, kind, *batch, end_of_run(ring, batch->index, tail));
		if (batch->index == tail)
			return true;
	}
}

static void unpin_between(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t from,
			  uint32_t to)
{
	const uint32_t kind = twin_dma_kind_of(dma, ring);

	for (; from != to; from = after(ring, from))
		twin_dma_release_buffer(dma, kind, &ring->is.slots[from]);
}

/* From the ring's tail to a new one, another. Nearly always all are plain, and the ring's end is not between. */
static inline __attribute__((always_inline)) bool
admit(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t kind, uint32_t tail)
{
	const struct batch batch = admit_plain(dma, ring, kind, (struct batch){
		.index = ring->tail, .reported = ring->reported,
	}, end_of_run(ring, ring->tail, tail));
	uint32_t reported = batch.reported;

	if (batch.index != tail) {
		struct batch rest = batch;

		if (!admit_rest(dma, ring, &rest, tail)) {
			unpin_between(dma, ring, ring->tail, rest.index);
			return false;
		}
		reported = rest.reported;
	}
	dma->statistics.checked += steps(ring, ring->tail, tail);
	ring->reported = reported;
	ring->tail = tail;
	return true;
}

bool twin_dma_admit(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t tail)
{
	if (tail == ring->tail)
		return true;
	return twin_dma_kind_of(dma, ring) == TWIN_DMA_TRANSMIT ?
		admit(dma, ring, TWIN_DMA_TRANSMIT, tail) : admit(dma, ring, TWIN_DMA_RECEIVE, tail);
}

/* ---- The driver's doorbell ------------------------------------------------- */

/* Another tail than the ring's. */
static inline __attribute__((always_inline)) bool
take_tail(struct twin_dma *dma, uint32_t kind, uint32_t tail)
{
	struct twin_dma_ring *ring = &dma->ring[kind];

	if (tail >= ring->is.count)
		return twin_dma_violated(dma, ring, TWIN_DMA_TAIL, ring->tail, tail);
	/* A tail that equals the head means an empty ring (3.2.6, 3.4): one stays free. */
	if (steps(ring, ring->shown, ring->tail) + steps(ring, ring->tail, tail) >= ring->is.count)
		return twin_dma_violated(dma, ring, TWIN_DMA_OVERRUN, ring->tail, tail);
	if (!admit(dma, ring, kind, tail))
		return false;
	dma->statistics.doorbells++;
	/* The copies are written before the card can know of them. */
	__atomic_store_n(ring->is.tail_register, tail, __ATOMIC_RELEASE);
	return true;
}

static __attribute__((noinline)) bool take_sent_tail(struct twin_dma *dma, uint32_t tail)
{
	return take_tail(dma, TWIN_DMA_TRANSMIT, tail);
}

static __attribute__((noinline)) bool take_received_tail(struct twin_dma *dma, uint32_t tail)
{
	return take_tail(dma, TWIN_DMA_RECEIVE, tail);
}

static inline bool follow_doorbells(struct twin_dma *dma)
{
	const uint32_t sent = *dma->ring[TWIN_DMA_TRANSMIT].is.doorbell;
	uint32_t received;

	if (sent != dma->ring[TWIN_DMA_TRANSMIT].tail && !take_sent_tail(dma, sent))
		return false;
	received = *dma->ring[TWIN_DMA_RECEIVE].is.doorbell;
	return received == dma->ring[TWIN_DMA_RECEIVE].tail || take_received_tail(dma, received);
}

/* ---- The card's write-backs ------------------------------------------------ */

static inline uint64_t written_back(const struct twin_dma_ring_config *is, uint64_t place)
{
	return __atomic_load_n(&copy_at(is, place)->control, __ATOMIC_ACQUIRE);
}

/*
 * Descriptors with which the card is done go back in rows, by a loop that calls nothing but a
 * platform's own (dma_buffers.h), so that all is in registers. It ends at `index`:
 */
enum ended {
	NOT_DONE,	/* with this one the card is not done, or it has none more */
	PINNED,		/* this one has pins that are not taken off in line, but first */
	CHANGED,	/* this one is not as it was: the driver has no business in it before
			 * the card is done (3.2.6, 3.4) */
};

struct returned {
	uint32_t index;
	uint64_t address;	/* CHANGED: what the driver has there */
};

/* One descriptor. Its slot changes only under the lock. */
static inline __attribute__((always_inline)) enum ended
look_at(const struct twin_dma_ring_config *is, const struct twin_dma_at_hand *at_hand, uint32_t kind,
	uint64_t place, uint64_t *address)
{
	struct twin_dma_slot *slot = slot_at(is, place);

	if (slot->length && !twin_dma_release_short(at_hand, kind, slot))
		return PINNED;
	*address = read_once(&driver_at(is, place)->address);
	return *address == slot->address ? NOT_DONE : CHANGED;
}

static inline __attribute__((always_inline)) void
show_at(const struct twin_dma_ring_config *is, uint64_t place, uint64_t control)
{
	__atomic_store_n(&driver_at(is, place)->control, control, __ATOMIC_RELEASE);
}

/* Each descriptor that was received into has DD (3.2.3.1). What the card wrote is shown behind
 * the look at the descriptor: a driver on another CPU that sees DD may fill it anew. */
static __attribute__((noinline)) enum ended return_received(const struct twin_dma *dma,
							     struct returned *returned)
{
	const struct twin_dma_ring *ring = &dma->ring[TWIN_DMA_RECEIVE];
	const struct twin_dma_ring_config is = ring->is;
	const struct twin_dma_at_hand at_hand = twin_dma_at_hand_of(dma, ring);
	const uint64_t tail = place_of(ring->tail), beyond = place_of(is.count);
	uint64_t place = place_of(returned->index), control, address = 0;
	enum ended ended = NOT_DONE;

	while (place != tail) {
		control = written_back(&is, place);
		if (!(control & DONE))
			break;
		ended = look_at(&is, &at_hand, TWIN_DMA_RECEIVE, place, &address);
		if (ended != NOT_DONE)
			break;
		show_at(&is, place, control);
		place += PLACE;
		if (place == beyond)
			place = 0;
	}
	*returned = (struct returned){ (uint32_t)(place / PLACE), address };
	return ended;
}

/*
 * The card works in order, and writes DD where RS is set: one that has it ends all before it
 * (3.3.3.1). So of a report only the last one is asked. It is shown behind the look at all of
 * them: a driver on another CPU that sees DD may fill them anew. What is left of a report is one
 * again: behind the ring's end, and where the loop ends.
 */
static __attribute__((noinline)) enum ended return_sent(const struct twin_dma *dma,
							 struct returned *returned)
{
	const struct twin_dma_ring *ring = &dma->ring[TWIN_DMA_TRANSMIT];
	const struct twin_dma_ring_config is = ring->is;
	const struct twin_dma_at_hand at_hand = twin_dma_at_hand_of(dma, ring);
	const uint64_t reported = place_of(ring->reported), beyond = place_of(is.count);
	uint64_t place = place_of(returned->index), control, address = 0, last, end;
	enum ended ended = NOT_DONE;

	while (place != reported) {
		last = place_of(slot_at(&is, place)->last);
		control = written_back(&is, last);
		if (!(control & DONE))
			break;
		end = last < place ? beyond : last + PLACE;
		for (; place != end; place += PLACE) {
			ended = look_at(&is, &at_hand, TWIN_DMA_TRANSMIT, place, &address);
			if (ended != NOT_DONE) {
				slot_at(&is, place)->last = (uint32_t)(last / PLACE);
				goto out;
			}
		}
		if (place == beyond)
			place = 0;
		if (last + PLACE == end)
			show_at(&is, last, control);
		else
			slot_at(&is, 0)->last = (uint32_t)(last / PLACE);
	}
out:
	*returned = (struct returned){ (uint32_t)(place / PLACE), address };
	return ended;
}

/* Descriptors before `to` are the driver's again. */
static inline void shown_up_to(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t to)
{
	dma->statistics.shown += steps(ring, ring->shown, to);
	ring->shown = to;
}

/* Those that are not taken off in line; the card is done with the buffer. */
static void take_pins_off(struct twin_dma *dma, const struct twin_dma_ring *ring, uint32_t index)
{
	struct twin_dma_slot *slot = &ring->is.slots[index];

	twin_dma_release_buffer(dma, twin_dma_kind_of(dma, ring), slot);
	slot->length = 0;
}

/* Whether the card has written back a descriptor that was not shown. */
static inline bool has_received(const struct twin_dma_ring *ring)
{
	return ring->shown != ring->tail && written_back(&ring->is, place_of(ring->shown)) & DONE;
}

static inline bool has_sent(const struct twin_dma_ring *ring)
{
	return ring->shown != ring->reported &&
	       written_back(&ring->is, place_of(ring->is.slots[ring->shown].last)) & DONE;
}

static __attribute__((noinline)) bool show_ring(struct twin_dma *dma, struct twin_dma_ring *ring)
{
	const bool sent = twin_dma_kind_of(dma, ring) == TWIN_DMA_TRANSMIT;
	struct returned returned = { .index = ring->shown };
	enum ended ended;

	while ((ended = sent ? return_sent(dma, &returned) : return_received(dma, &returned)) == PINNED)
		take_pins_off(dma, ring, returned.index);
	shown_up_to(dma, ring, returned.index);
	return ended != CHANGED || twin_dma_violated(dma, ring, TWIN_DMA_CHANGED, returned.index,
						     returned.address);
}

bool twin_dma_follow(struct twin_dma *dma)
{
	struct twin_dma_ring *sent = &dma->ring[TWIN_DMA_TRANSMIT];
	struct twin_dma_ring *received = &dma->ring[TWIN_DMA_RECEIVE];

	return (!has_sent(sent) || show_ring(dma, sent)) &&
	       (!has_received(received) || show_ring(dma, received));
}

/* The slot has the address; the copy has the length of what is sent, which the card leaves as it
 * is (3.3.3.2). A buffer that is received into is counted whole. */
struct twin_piece twin_dma_piece(const struct twin_dma *dma, const struct twin_dma_ring *ring,
				 uint32_t index)
{
	uint32_t length = ring->is.buffer;

	if (twin_dma_kind_of(dma, ring) == TWIN_DMA_TRANSMIT &&
	    transmit_length(written_back(&ring->is, place_of(index)), &length) != TWIN_DMA_FINE)
		length = TWIN_DMA_BUFFER;
	return twin_piece_of(ring->is.slots[index].address, length);
}

void twin_dma_forget(struct twin_dma *dma, struct twin_dma_ring *ring)
{
	unpin_between(dma, ring, ring->shown, ring->tail);
	ring->shown = ring->reported = ring->tail;
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

/*
 * Only what is shown by a loop that calls nothing; a descriptor that is not as it was is for the next
 * twin_dma_show() to report. Nobody waits here: who has the lock may wait for this processor.
 */
bool twin_dma_look(struct twin_dma *dma)
{
	struct twin_dma_ring *received = &dma->ring[TWIN_DMA_RECEIVE];
	struct returned returned;
	uint32_t before = 0, after = 0;

	if (!is_taken(dma) || !try_lock(&dma->lock))
		return false;
	if (dma->taken && has_received(received)) {
		before = returned.index = received->shown;
		return_received(dma, &returned);
		after = returned.index;
		shown_up_to(dma, received, after);
	}
	unlock(&dma->lock);
	return before != after;
}

bool twin_dma_ring(struct twin_dma *dma, struct twin_dma_report *report)
{
	bool fine;

	if (!is_taken(dma))
		return true;
	lock(&dma->lock);
	fine = !dma->taken || follow_doorbells(dma);
	if (!fine)
		*report = dma->report;
	unlock(&dma->lock);
	return fine;
}
