// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ranges of dom0 that an instance with a window may use (docs/spec/window.md).
 *
 *   place of an address    the address modulo the window's size: its low 32 bits, or 42
 *                          with the scheme window. The window shows it at window + place
 *
 * Emitted code needs nothing of this file: the processor computes places, and the
 * platform's mappings decide what is there. Here two ranges are kept from sharing a
 * place, because a write to one would silently be a write to the other; host code's
 * addresses are translated, all 64 bits of them compared; and the address of a fault
 * becomes dom0's again.
 *
 * Per CPU: the data stack, which is a range like any other: its CPU finds it by rsp,
 * others only by pointer, as dom0 does.
 *
 * Shared: ranges[] and range_count.
 *
 * Why sharing is safe. Readers take no lock. A range is written behind the last one and
 * becomes visible by a release store of the count. Ranges change and go only with the
 * gate closed: no reader is inside, and the gate's atomics order the stores before the
 * next entry.
 */
#include "internal.h"

static const struct twin_range null_guard = {
	.start = 0, .length = TWIN_WINDOW_NULL_GUARD, .unmapped = 1,
};

/*
 * Whether an instance has a CPU's data stack among its ranges is asked at each entry, and the
 * answer is the same until ranges go: a layout is a number for the time between. It is of no
 * other instance, so a context that remembers it remembers the instance, too.
 */
uint64_t twin_window_layout(void)
{
	static uint64_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static uint64_t place_of(const struct twin_instance *instance, uint64_t va)
{
	return va & (twin_window_shape_of(instance->scheme).size - 1);
}

static uint32_t known(const struct twin_instance *instance)
{
	return __atomic_load_n(&instance->range_count, __ATOMIC_ACQUIRE);
}

static bool holds(const struct twin_range *range, uint64_t va)
{
	return va - range->start < range->length;
}

/* The range that has va, or NULL. */
static const struct twin_range *range_of(const struct twin_instance *instance, uint64_t va)
{
	uint32_t i, count = known(instance);

	for (i = 0; i < count; i++)
		if (holds(&instance->ranges[i], va))
			return &instance->ranges[i];
	return NULL;
}

/* ---- Adding -------------------------------------------------------------- */

static bool is_range_valid(const struct twin_range *range)
{
	uint64_t last = range->start + (range->length - 1);

	return range->length && !((range->start | range->length) & PAGE_MASK) &&
	       last >= range->start;
}

/* Neither leaves the window. */
static bool share_a_place(const struct twin_instance *instance, const struct twin_range *a,
			  const struct twin_range *b)
{
	const uint64_t at = place_of(instance, a->start), other = place_of(instance, b->start);

	return at < other + b->length && other < at + a->length;
}

/* A range that leaves the window at its end comes back at its start, in the guard. */
static bool meets_guard(const struct twin_instance *instance, const struct twin_range *range)
{
	const uint64_t at = place_of(instance, range->start);

	return at < TWIN_WINDOW_NULL_GUARD ||
	       range->length > twin_window_shape_of(instance->scheme).size - at;
}

/* table_lock held. */
static const struct twin_range *met_by(const struct twin_instance *instance,
				       const struct twin_range *range)
{
	uint32_t i;

	if (meets_guard(instance, range))
		return &null_guard;
	for (i = 0; i < instance->range_count; i++)
		if (share_a_place(instance, &instance->ranges[i], range))
			return &instance->ranges[i];
	return NULL;
}

/* table_lock held. */
static int admits(const struct twin_instance *instance, const struct twin_range *range,
		  struct twin_range *other)
{
	const struct twin_range *met;

	if (!has_window(instance) || !is_range_valid(range))
		return TWIN_INVALID;
	met = met_by(instance, range);
	if (met) {
		*other = *met;
		return TWIN_COLLISION;
	}
	return instance->range_count < instance->range_limit ? TWIN_OK : TWIN_INVALID;
}

/* table_lock held, and there is room. */
static void append(struct twin_instance *instance, const struct twin_range *range)
{
	uint32_t count = instance->range_count;

	instance->ranges[count] = *range;
	__atomic_store_n(&instance->range_count, count + 1, __ATOMIC_RELEASE);
}

int twin_window_admits(struct twin_instance *instance, const struct twin_range *range,
		       struct twin_range *other)
{
	int status;

	lock(&instance->table_lock);
	status = admits(instance, range, other);
	unlock(&instance->table_lock);
	return status;
}

int twin_window_add(struct twin_instance *instance, const struct twin_range *range,
		    struct twin_range *other)
{
	int status;

	lock(&instance->table_lock);
	status = admits(instance, range, other);
	if (status == TWIN_OK)
		append(instance, range);
	unlock(&instance->table_lock);
	return status;
}

/* The block's address as dom0 has it, of which it has only the data stack. */
static uint64_t view_of(const struct twin_instance *instance, const struct twin_cpu *cpu)
{
	return (uint64_t)cpu - TWIN_STACK_CONTEXT + instance->stack_view;
}

/*
 * Whether the data stack's place is one, and the same whichever way code goes there:
 * operands are rsp cut to 32 bits, pointers are rsp plus stack_view cut to the window's
 * size. With window32 it always is.
 */
static bool has_one_place(const struct twin_instance *instance, const struct twin_cpu *cpu)
{
	const uint64_t view = view_of(instance, cpu);

	return place_of(instance, view) == (uint32_t)view;
}

int twin_window_add_stack(struct twin_instance *instance, const struct twin_cpu *cpu,
			  struct twin_range *other)
{
	const uint64_t view = view_of(instance, cpu);
	const struct twin_range parts[] = {
		{ view, TWIN_STACK_LOW, 1 },
		{ view + TWIN_STACK_LOW, TWIN_STACK_HIGH - TWIN_STACK_LOW, 0 },
		{ view + TWIN_STACK_HIGH, TWIN_STACK_BLOCK - TWIN_STACK_HIGH, 1 },
	};
	const struct twin_range block = { view, TWIN_STACK_BLOCK, 1 };
	uint32_t i;
	int status;

	if (!has_window(instance) || !has_one_place(instance, cpu))
		return TWIN_INVALID;
	lock(&instance->table_lock);
	status = admits(instance, &block, other);
	if (status == TWIN_OK && instance->range_limit - instance->range_count < 3)
		status = TWIN_INVALID;
	for (i = 0; status == TWIN_OK && i < 3; i++)
		append(instance, &parts[i]);
	unlock(&instance->table_lock);
	return status;
}

bool twin_window_has_stack(const struct twin_instance *instance, const struct twin_cpu *cpu)
{
	const uint64_t low = view_of(instance, cpu) + TWIN_STACK_LOW;
	const struct twin_range *range = range_of(instance, low);

	return range && !range->unmapped && has_one_place(instance, cpu) &&
	       holds(range, low + (TWIN_STACK_HIGH - TWIN_STACK_LOW) - 1);
}

/* ---- Looking up ----------------------------------------------------------- */

int twin_window_translate(struct twin_instance *instance, uint64_t va, uint64_t *mapped)
{
	const struct twin_range *range = range_of(instance, va);

	if (!range || range->unmapped) {
		count(&instance->statistics.refusals);
		return range ? TWIN_REFUSED_UNMAPPED : TWIN_REFUSED_NOT_DOM0;
	}
	*mapped = instance->window + place_of(instance, va);
	return TWIN_MAPPED;
}

/*
 * Bytes from the range's start to the place. It may lie before the start, or after the
 * window's end: then the number is no offset of the range's.
 */
static uint64_t distance(const struct twin_instance *instance, const struct twin_range *range,
			 uint64_t place)
{
	return place - place_of(instance, range->start);
}

/* Whether what is that far from a range's start is in it or less than a page beside it. */
static bool is_beside(const struct twin_range *range, uint64_t distance)
{
	return distance + TWIN_PAGE_SIZE - 1 < range->length + 2 * (TWIN_PAGE_SIZE - 1);
}

/* The dom0 address of a place. In a guard a place is the distance from the window. */
static uint64_t address_of(const struct twin_instance *instance, uint64_t place)
{
	const struct twin_range *beside = NULL;
	uint32_t i, count = known(instance);

	for (i = 0; i < count; i++) {
		const struct twin_range *range = &instance->ranges[i];
		const uint64_t from_start = distance(instance, range, place);

		if (from_start < range->length)
			return range->start + from_start;
		if (is_beside(range, from_start))
			beside = range;
	}
	return beside ? beside->start + distance(instance, beside, place) : place;
}

uint64_t twin_window_dom0(const struct twin_instance *instance, uint64_t address)
{
	const struct twin_window_shape shape = twin_window_shape_of(instance->scheme);
	const uint64_t offset = address - instance->window;
	const uint64_t before = shape.mirror + shape.guard;
	uint64_t place, dom0;

	if (!has_window(instance) || offset + before >= before + shape.size + shape.guard)
		return address;
	/* In the mirror a place is where it is at the window's end. */
	place = offset + shape.mirror < shape.mirror ? offset + shape.size : offset;
	dom0 = address_of(instance, place);
	/* Beside no range, a sum that left a window of 42 bits at one end has come back at
	 * the other, as dom0's addresses do. */
	return dom0 == place && shape.mirror ? place & (shape.size - 1) : dom0;
}

/* ---- With the gate closed -------------------------------------------------- */

static uint64_t highest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t lowest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Take pages [first, end), as numbers, out of range number i. Whether the range is still
 * in its place in the list. table_lock held.
 */
static bool cut(struct twin_instance *instance, uint32_t i, uint64_t first, uint64_t end)
{
	struct twin_range *range = &instance->ranges[i];
	const uint64_t start = range->start >> TWIN_PAGE_SHIFT;
	const uint64_t stop = start + (range->length >> TWIN_PAGE_SHIFT);
	const uint64_t from = highest(first, start);
	uint64_t to = lowest(end, stop);

	if (from >= to)
		return true;
	if (from > start && to < stop && instance->range_count == instance->range_limit)
		to = stop;
	instance->ops->unmap_range(instance, from << TWIN_PAGE_SHIFT,
				   (to - from) << TWIN_PAGE_SHIFT);
	if (from > start) {
		const struct twin_range after = {
			to << TWIN_PAGE_SHIFT, (stop - to) << TWIN_PAGE_SHIFT, range->unmapped,
		};

		range->length = (from - start) << TWIN_PAGE_SHIFT;
		if (after.length)
			append(instance, &after);
		return true;
	}
	range->start = to << TWIN_PAGE_SHIFT;
	range->length = (stop - to) << TWIN_PAGE_SHIFT;
	if (range->length)
		return true;
	*range = instance->ranges[--instance->range_count];
	return false;
}

void twin_window_drop(struct twin_instance *instance, uint64_t first_page, uint64_t pages)
{
	const uint64_t all = 1ull << (64 - TWIN_PAGE_SHIFT);
	const uint64_t first = first_page >> TWIN_PAGE_SHIFT;
	const uint64_t end = pages < all - first ? first + pages : all;
	uint32_t i = 0;

	lock(&instance->table_lock);
	instance->layout = twin_window_layout();
	while (i < instance->range_count)
		if (cut(instance, i, first, end))
			i++;
	unlock(&instance->table_lock);
}
