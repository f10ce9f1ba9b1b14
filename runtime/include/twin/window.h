/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The ranges of dom0 in an instance's window (TWIN_SCHEME_WINDOW32 and
 * TWIN_SCHEME_WINDOW, docs/spec/window.md). A platform maps the pages; these functions
 * keep two ranges from sharing a place, and tell host code where dom0's addresses are.
 *
 * Contexts as in <twin/runtime.h>.
 */
#ifndef TWIN_WINDOW_H
#define TWIN_WINDOW_H

#include <twin/runtime.h>

/*
 * What the window of a scheme looks like:
 *
 *   window - mirror - guard   never mapped
 *   window - mirror           what is at window + size - mirror, once more
 *   window + place            the page with that place: an address modulo size
 *   window + size             never mapped, guard bytes
 *
 * All are multiples of the page, and size is a power of two.
 */
struct twin_window_shape {
	uint64_t size;		/* 0: the scheme has a table */
	uint64_t mirror;	/* 0: nothing is there twice */
	uint64_t guard;
};

/* The shape of TWIN_SCHEME_*. [any] */
static inline struct twin_window_shape twin_window_shape_of(uint32_t scheme)
{
	switch (scheme) {
	case TWIN_SCHEME_WINDOW32:
		return (struct twin_window_shape){ TWIN_WINDOW_SIZE, 0, TWIN_WINDOW_GUARD };
	case TWIN_SCHEME_WINDOW:
		return (struct twin_window_shape){ TWIN_WIDE_SIZE, TWIN_WIDE_MIRROR,
						   TWIN_WIDE_GUARD };
	default:
		return (struct twin_window_shape){ 0, 0, 0 };
	}
}

/*
 * Whether range may be added: TWIN_OK; TWIN_COLLISION: *other has a place of it, or is
 * the guard at the window's start (which begins at 0); TWIN_INVALID: it is not made of
 * pages, wraps, or is one too many. [any]; takes the table lock.
 */
int twin_window_admits(struct twin_instance *instance, const struct twin_range *range,
		       struct twin_range *other);

/*
 * Add a range, if twin_window_admits it. Map its pages at their places first, and in the
 * mirror if they are there, too: from then on host code may read them. Callers that add to one instance do so one at a time.
 * Statuses as above. [any]; takes the table lock.
 */
int twin_window_add(struct twin_instance *instance, const struct twin_range *range,
		    struct twin_range *other);

/*
 * Add the data stack of a CPU: three ranges, for the guard pages around it belong to
 * it. In them it is the pages from TWIN_STACK_LOW to TWIN_STACK_HIGH of the block's
 * address plus stack_view, which is where dom0 has the same pages. Their places are the
 * low 32 bits of the block's addresses, else TWIN_INVALID: code reaches the stack by
 * operands that are cut there, and by pointers. Map them first. All or none; statuses as
 * above. [any]; takes the table lock.
 */
int twin_window_add_stack(struct twin_instance *instance, const struct twin_cpu *cpu,
			  struct twin_range *other);

/*
 * The dom0 address of what was accessed at `address`, if that is in the window or its
 * guards, else `address`. An address next to a range is taken to belong to it; of any
 * other only the place is known. For reports. [inside] or held.
 */
uint64_t twin_window_dom0(const struct twin_instance *instance, uint64_t address);

#endif /* TWIN_WINDOW_H */
