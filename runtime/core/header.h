/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An Ethernet header of dom0's as two words, which stay in registers: for what reads one of each packet.
 *
 *   0            6            12   14
 *   | destination | source    | type |
 *   |---- first ----|
 *                 |----- last -------|
 */
#ifndef TWIN_CORE_HEADER_H
#define TWIN_CORE_HEADER_H

#include <twin/switch.h>

#include "internal.h"

/* Bytes 0 to 7, and 6 to 13: the lowest six bytes of each are an address, as x86 loads it. Bytes 6 and 7, which are
 * in both, may differ, if dom0 changes them meanwhile. */
struct twin_header_words {
	uint64_t first;
	uint64_t last;
};

#define TWIN_LAST_WORD (TWIN_ETH_HLEN - sizeof(uint64_t))

/* Bytes from an address to the end of its page. */
INLINE uint32_t rest_of_page(uint64_t address)
{
	return TWIN_PAGE_SIZE - (uint32_t)(address & PAGE_MASK);
}

/* Those of the header at a dom0 address: each byte but these two is read once. The instance is entered; any context.
 * TWIN_ABORTED if it is not dom0's. */
INLINE int twin_read_words(struct twin_instance *instance, uint64_t from,
			   struct twin_header_words *words)
{
	uint8_t header[TWIN_ETH_HLEN];
	uint64_t mapped;

	if (__builtin_expect(rest_of_page(from) < TWIN_ETH_HLEN, 0)) {
		if (twin_copy_from_dom0(instance, header, from, sizeof(header)))
			return TWIN_ABORTED;
		mapped = (uint64_t)header;
	} else if (twin_translate(instance, from, &mapped)) {
		return TWIN_ABORTED;
	}
	__asm__ volatile("movq %2, %0; movq %3, %1"
			 : "=&r"(words->first), "=r"(words->last)
			 : "m"(*(const uint64_t *)mapped),
			   "m"(*(const uint64_t *)(mapped + TWIN_LAST_WORD)));
	return TWIN_OK;
}

#endif /* TWIN_CORE_HEADER_H */
