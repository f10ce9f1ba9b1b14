/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Numbers by chance, the same in each run: Marsaglia, "Xorshift RNGs", 2003. A state is not 0.
 */
#ifndef TWIN_TESTS_RANDOM_H
#define TWIN_TESTS_RANDOM_H

#include <stdint.h>

static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif /* TWIN_TESTS_RANDOM_H */
