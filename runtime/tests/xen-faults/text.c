// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A hash of Xen's text, of test builds alone: whether a campaign of faults has changed it.
 */
#include "../../platform/xen/platform.h"
#include "retype.h"

extern const uint8_t _stext[], _etext[];

/* FNV-1a in words of 8 bytes; what is left over at the end are padding's. Not negative. */
long xen_test_text(void)
{
	const uint64_t *word = (const uint64_t *)_stext;
	const uint64_t *end = word + (_etext - _stext) / sizeof(*word);
	uint64_t hash = 0xcbf29ce484222325;

	for (; word < end; word++)
		hash = (hash ^ *word) * 0x100000001b3;
	return hash >> 1;
}
