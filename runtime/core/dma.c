// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rings of descriptors; see <twin/dma.h>.
 *
 *   0        shown             tail            count      of the copy and the slots
 *   +----------+-----------------+---------------+
 *   | driver's | the card's      | driver's      |
 *   +----------+-----------------+---------------+
 *               pinned, unless held
 *
 * dom0's frames of the pool are pinned once, and held while the rings are taken: a
 * descriptor costs no pin, unless it is of a guest's frame or of one that is dom0's since.
 *
 * shown follows the card's head by the DD bits that it writes, so its head register,
 * which is slow to read, is not needed. The card's descriptors are not written here: a
 * new tail never passes shown. A descriptor's words are each read once from the driver's
 * ring; what was read is checked, and goes to copy and slot.
 *
 *           63              48 47  40 39  36 35  32 31    24 23  20 19        0
 * legacy    special | CSS    | rsv STA      | CMD     CSO  | length (15:0)    3.3.3
 * context   MSS     | HDRLEN | rsv STA      | TUCMD   DTYP 0 | PAYLEN         3.3.6
 * data      special | POPTS  | rsv STA      | DCMD    DTYP 1 | DTALEN         3.3.7
 * receive   special | errors | status       | checksum       | length         3.2.3
 */
#include <stddef.h>

#include <twin/dma.h>

#include "frames.h"
#include "internal.h"

#define LEGACY_LENGTH	0xffffull
#define DATA_LENGTH	0xfffffull
#define TYPE_SHIFT	20		/* DTYP */
#define TYPE_MASK	0xfull
#define TYPE_CONTEXT	0
#define TYPE_DATA	1
#define REPORT_STATUS	(1ull << 27)	/* RS: the card writes DD back (3.3.3.1) */
#define EXTENDED	(1ull << 29)	/* DEXT: not legacy */
#define DONE		(1ull << 32)	/* DD, in both directions (3.2.3.1, 3.3.3.2) */

uint64_t twin_dma_size(void)
{
	return sizeof(struct twin_dma);
}

void twin_dma_init(struct twin_dma *dma, struct twin_frames *frames, const uint64_t *pool,
		   uint64_t *held)
{
	uint64_t i;

	for (i = 0; i < sizeof(*dma); i++)
		((volatile uint8_t *)dma)[i] = 0;
	dma->frames = frames;
	dma->pool = pool;
	dma->held = held;
}

static uint32_t after(const struct twin_dma_ring *ring, uint32_t index)
{
	return index + 1 == ring->is.count ? 0 : index + 1;
}

/* Steps from one index to another. */
static uint32_t steps(const struct twin_dma_ring *ring, uint32_t from, uint32_t to)
{
	return to >= from ? to - from : to + ring->is.count - from;
}

static uint32_t kind_of(const struct twin_dma *dma, const struct twin_dma_ring *ring)
{
	return (uint32_t)(ring - dma->ring);
}

static bool violated(struct twin_dma *dma, const struct twin_dma_ring *ring,
		     enum twin_dma_fault fault, uint32_t index, uint64_t address)
{
	dma->report = (struct twin_dma_report){
		.fault = fault, .kind = kind_of(dma, ring), .index = index, .address = address,
	};
	dma->statistics.refused++;
	return false;
}

/* ---- Buffers -------------------------------------------------------------- */

static struct twin_piece piece_of(uint64_t address, uint32_t length)
{
	return (struct twin_piece){ .address = address, .length = length };
}

static bool has(const uint64_t *bits, uint64_t frame)
{
	return bits[frame / 64] >> (frame % 64) & 1;
}

/* Whether all frames of a piece are in a set; it is not empty and does not wrap. */
static bool is_in(const struct twin_dma *dma, const uint64_t *bits, const struct twin_piece *piece)
{
	const uint64_t last = (piece->address + piece->length - 1) >> TWIN_PAGE_SHIFT;
	uint64_t frame;

	if (last >= dma->frames->count)
		return false;
	for (frame = piece->address >> TWIN_PAGE_SHIFT; frame <= last; frame++)
		if (!has(bits, frame))
			return false;
	return true;
}

/*
 * Pin a buffer that the card may use and that is not held: dom0's since the rings were
 * taken; a guest's, only for transmission and as long as a packet of that guest's which is
 * being sent pins it.
 */
static enum twin_dma_fault pin_buffer(struct twin_dma *dma, uint32_t kind,
				      const struct twin_piece *piece)
{
	const uint32_t owner = twin_frame_owner(dma->frames, piece->address >> TWIN_PAGE_SHIFT);
	enum twin_admission admission = TWIN_FOREIGN;

	if (owner == TWIN_OWNER_DOM0 && is_in(dma, dma->pool, piece))
		admission = twin_frames_pin(dma->frames, owner, piece);
	else if (owner != TWIN_OWNER_DOM0 && owner != TWIN_OWNER_NOBODY &&
		 kind == TWIN_DMA_TRANSMIT)
		admission = twin_frames_pin_again(dma->frames, owner, piece);
	return admission == TWIN_ADMITTED ? TWIN_DMA_FINE : TWIN_DMA_FOREIGN;
}

/* A buffer that the card may use. slot: where it is, and what is pinned for it. */
static enum twin_dma_fault admit_buffer(struct twin_dma *dma, uint32_t kind,
					const struct twin_piece *piece,
					struct twin_dma_slot *slot)
{
	*slot = (struct twin_dma_slot){ piece->address, 0, 0 };
	if (!piece->length)
		return TWIN_DMA_FINE;
	if (piece->address + piece->length - 1 < piece->address)
		return TWIN_DMA_LENGTH;
	if (is_in(dma, dma->held, piece))
		return TWIN_DMA_FINE;
	if (pin_buffer(dma, kind, piece))
		return TWIN_DMA_FOREIGN;
	slot->length = piece->length;
	return TWIN_DMA_FINE;
}

static void unpin_slot(struct twin_dma *dma, const struct twin_dma_slot *slot)
{
	const struct twin_piece piece = piece_of(slot->address, slot->length);

	if (slot->length)
		twin_frames_unpin(dma->frames, &piece);
}

/* ---- Descriptors ---------------------------------------------------------- */

/* Bytes that the card reads by a transmit descriptor; 0: none (3.3.3: a length of 0 is a
 * descriptor without data; context descriptors have none). */
static enum twin_dma_fault transmit_length(uint64_t control, uint32_t *length)
{
	const uint64_t type = control >> TYPE_SHIFT & TYPE_MASK;

	if (!(control & EXTENDED))
		*length = control & LEGACY_LENGTH;
	else if (type == TYPE_CONTEXT)
		*length = 0;
	else if (type == TYPE_DATA)
		*length = control & DATA_LENGTH;
	else
		return TWIN_DMA_FORMAT;
	return *length <= TWIN_DMA_BUFFER ? TWIN_DMA_FINE : TWIN_DMA_LENGTH;
}

/* Check the driver's descriptor; copied and in its slot if it is fine. */
static bool admit(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t index)
{
	volatile struct twin_dma_descriptor *driver = &ring->is.driver[index];
	const struct twin_dma_descriptor seen = { driver->address, driver->control };
	enum twin_dma_fault fault = TWIN_DMA_FINE;
	uint32_t length = ring->is.buffer;
	struct twin_piece piece;

	if (kind_of(dma, ring) == TWIN_DMA_TRANSMIT)
		fault = transmit_length(seen.control, &length);
	if (fault == TWIN_DMA_FORMAT)
		return violated(dma, ring, fault, index, seen.control);
	piece = piece_of(seen.address, length);
	if (!fault)
		fault = admit_buffer(dma, kind_of(dma, ring), &piece, &ring->is.slots[index]);
	if (fault)
		return violated(dma, ring, fault, index, seen.address);
	ring->is.copy[index].address = seen.address;
	/* Not yet done, whatever the driver says. */
	ring->is.copy[index].control = seen.control & ~DONE;
	return true;
}

static void unpin_between(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t from,
			  uint32_t to)
{
	for (; from != to; from = after(ring, from))
		unpin_slot(dma, &ring->is.slots[from]);
}

/* All from the ring's tail up to a new one, or none. */
static bool admit_up_to(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t tail)
{
	uint32_t index;

	for (index = ring->tail; index != tail; index = after(ring, index))
		if (!admit(dma, ring, index)) {
			unpin_between(dma, ring, ring->tail, index);
			return false;
		}
	dma->statistics.checked += steps(ring, ring->tail, tail);
	ring->tail = tail;
	return true;
}

/* ---- The driver's doorbell ------------------------------------------------- */

static bool follow_doorbell(struct twin_dma *dma, struct twin_dma_ring *ring)
{
	const uint32_t tail = *ring->is.doorbell;

	if (tail == ring->tail)
		return true;
	if (tail >= ring->is.count)
		return violated(dma, ring, TWIN_DMA_TAIL, ring->tail, tail);
	/* A tail that equals the head means an empty ring (3.2.6, 3.4): one stays free. */
	if (steps(ring, ring->shown, ring->tail) + steps(ring, ring->tail, tail) >= ring->is.count)
		return violated(dma, ring, TWIN_DMA_OVERRUN, ring->tail, tail);
	if (!admit_up_to(dma, ring, tail))
		return false;
	dma->statistics.doorbells++;
	/* The copies are written before the card can know of them. */
	__atomic_store_n(ring->is.tail_register, tail, __ATOMIC_RELEASE);
	return true;
}

/* ---- The card's write-backs ------------------------------------------------ */

static uint64_t written_back(const struct twin_dma_ring *ring, uint32_t index)
{
	return __atomic_load_n(&ring->is.copy[index].control, __ATOMIC_ACQUIRE);
}

/* One that the card is done with. The driver has no business in it before (3.2.6, 3.4). */
static bool hand_back(struct twin_dma *dma, struct twin_dma_ring *ring, uint32_t index,
		      uint64_t control)
{
	volatile struct twin_dma_descriptor *driver = &ring->is.driver[index];
	const uint64_t address = driver->address;

	if (address != ring->is.slots[index].address)
		return violated(dma, ring, TWIN_DMA_CHANGED, index, address);
	if (control & DONE)
		driver->control = control;
	unpin_slot(dma, &ring->is.slots[index]);
	ring->shown = after(ring, index);
	dma->statistics.shown++;
	return true;
}

/* Each descriptor that was received into has DD (3.2.3.1). */
static bool show_received(struct twin_dma *dma, struct twin_dma_ring *ring)
{
	while (ring->shown != ring->tail) {
		const uint64_t control = written_back(ring, ring->shown);

		if (!(control & DONE))
			break;
		if (!hand_back(dma, ring, ring->shown, control))
			return false;
	}
	return true;
}

/* The card works in order, and writes DD where RS is set: one that has it ends all before
 * it (3.3.3.1). */
static bool show_sent(struct twin_dma *dma, struct twin_dma_ring *ring)
{
	uint32_t index;

	for (index = ring->shown; index != ring->tail; index = after(ring, index)) {
		const uint64_t control = written_back(ring, index);

		if (!(control & REPORT_STATUS))
			continue;
		if (!(control & DONE))
			break;
		while (ring->shown != index)
			if (!hand_back(dma, ring, ring->shown, 0))
				return false;
		if (!hand_back(dma, ring, index, control))
			return false;
	}
	return true;
}

static bool show(struct twin_dma *dma)
{
	return show_sent(dma, &dma->ring[TWIN_DMA_TRANSMIT]) &&
	       show_received(dma, &dma->ring[TWIN_DMA_RECEIVE]);
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
	fine = !dma->taken || show(dma);
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

/* ---- Taking and giving back ------------------------------------------------ */

static struct twin_piece descriptors_of(const struct twin_dma_ring *ring)
{
	return piece_of(ring->is.base, ring->is.count * (uint32_t)sizeof(*ring->is.copy));
}

/* 13.4.25 to 13.4.29, 13.4.36 to 13.4.40. */
static bool is_ring_valid(const struct twin_dma_ring *ring)
{
	const struct twin_dma_ring_config *is = &ring->is;

	return is->count && is->count <= TWIN_DMA_DESCRIPTORS && !(is->count % TWIN_DMA_GRANULE) &&
	       !(is->base % sizeof(*is->copy)) && is->head < is->count && is->tail < is->count;
}

static bool may_be_taken(struct twin_dma *dma, const struct twin_dma_ring *ring)
{
	const struct twin_piece piece = descriptors_of(ring);

	if (is_ring_valid(ring) && piece.address + piece.length - 1 >= piece.address &&
	    is_in(dma, dma->held, &piece))
		return true;
	return violated(dma, ring, TWIN_DMA_RING, 0, ring->is.base);
}

static void drop_ring(struct twin_dma *dma, struct twin_dma_ring *ring)
{
	unpin_between(dma, ring, ring->shown, ring->tail);
	ring->shown = ring->tail;
}

static bool take_ring(struct twin_dma *dma, struct twin_dma_ring *ring,
		      const struct twin_dma_ring_config *config)
{
	*ring = (struct twin_dma_ring){ .is = *config, .shown = config->head,
					.tail = config->head };
	if (!may_be_taken(dma, ring) || !admit_up_to(dma, ring, config->tail))
		return false;
	*config->tail_register = config->tail;
	return true;
}

static struct twin_piece frame_at(uint64_t frame)
{
	return piece_of(frame << TWIN_PAGE_SHIFT, 1);
}

/* Pin dom0's frames of the pool. */
static void hold_pool(struct twin_dma *dma)
{
	uint64_t frame;

	for (frame = 0; frame < dma->frames->count; frame++) {
		const struct twin_piece piece = frame_at(frame);
		const uint64_t bit = 1ull << (frame % 64);

		dma->held[frame / 64] &= ~bit;
		if (has(dma->pool, frame) &&
		    twin_frames_pin(dma->frames, TWIN_OWNER_DOM0, &piece) == TWIN_ADMITTED)
			dma->held[frame / 64] |= bit;
	}
}

static void release_pool(struct twin_dma *dma)
{
	uint64_t frame;

	for (frame = 0; frame < dma->frames->count; frame++)
		if (has(dma->held, frame)) {
			const struct twin_piece piece = frame_at(frame);

			twin_frames_unpin(dma->frames, &piece);
		}
}

static void drop(struct twin_dma *dma, uint32_t rings)
{
	while (rings-- > 0)
		drop_ring(dma, &dma->ring[rings]);
	release_pool(dma);
}

static int take(struct twin_dma *dma, const struct twin_dma_ring_config rings[TWIN_DMA_RINGS])
{
	uint32_t kind;

	if (dma->taken)
		return TWIN_BUSY;
	hold_pool(dma);
	for (kind = 0; kind < TWIN_DMA_RINGS; kind++)
		if (!take_ring(dma, &dma->ring[kind], &rings[kind])) {
			drop(dma, kind);
			return TWIN_INVALID;
		}
	__atomic_store_n(&dma->taken, 1, __ATOMIC_RELEASE);
	return TWIN_OK;
}

int twin_dma_take(struct twin_dma *dma, const struct twin_dma_ring_config rings[TWIN_DMA_RINGS])
{
	int status;

	lock(&dma->lock);
	status = take(dma, rings);
	unlock(&dma->lock);
	return status;
}

void twin_dma_give_back(struct twin_dma *dma)
{
	lock(&dma->lock);
	if (dma->taken) {
		show(dma);
		drop(dma, TWIN_DMA_RINGS);
		__atomic_store_n(&dma->taken, 0, __ATOMIC_RELEASE);
	}
	unlock(&dma->lock);
}

/* ---- For hosts --------------------------------------------------------------- */

void twin_instance_set_dma(struct twin_instance *instance, struct twin_dma *dma)
{
	instance->dma = dma;
}

void twin_dma_events(struct twin_dma *dma, struct twin_dma_statistics *copy,
		     struct twin_dma_report *last)
{
	lock(&dma->lock);
	*copy = dma->statistics;
	*last = dma->report;
	unlock(&dma->lock);
}
