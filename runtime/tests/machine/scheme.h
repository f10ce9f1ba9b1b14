/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the files of tests of window32 and window share: the scheme that is chosen, with its
 * driver code (window.S, wide.S), and how a test of it begins and ends.
 */
#ifndef TWIN_TEST_MACHINE_SCHEME_H
#define TWIN_TEST_MACHINE_SCHEME_H

#include "machine.h"
#include "platform.h"
#include "window.h"

#define FUNCTIONS(X)								\
	X(load) X(store) X(indexed) X(stack_pointer) X(arguments) X(gs) X(spin)	\
	X(import) X(import_site) X(reference) X(hot_reference) X(flood) X(copy)	\
	X(fill) X(recurse) X(text_start) X(text_end)
#define DECLARE_BOTH(name) extern const char window_##name[], wide_##name[];
FUNCTIONS(DECLARE_BOTH)
extern const char wide_table[], wide_border[], wide_store_border[], wide_beyond[];

/* A scheme, its driver, and what the tests place by it. */
struct scheme {
	uint32_t number;
	uint64_t window, view, last;
	uint64_t blocks[2];
	struct twin_cpu *cpus[2];	/* NULL: not made yet */
	int stacks_fd;
#define MEMBER(name) const char *name;
	FUNCTIONS(MEMBER)
};

/* The one that was chosen last. */
extern struct scheme *with;

void set_up_window(void);
void tear_down_window(void);
/* dom0's view of a block's address. */
uint64_t view_of(const struct twin_cpu *self);

#endif /* TWIN_TEST_MACHINE_SCHEME_H */
