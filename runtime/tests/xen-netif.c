// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where a packet's checksum is: platform/xen/netif.c.
 */
#include <stdlib.h>
#include <string.h>

#include <twin/guest.h>

#include "../platform/xen/netif.h"
#include "test.h"

static void checksums_are_found(void)
{
	uint8_t frame[HOT_HEADER] = { [12] = 0x08, [14] = 0x45, [23] = 6 };
	uint16_t start_at = 0, offset = 0;
	uint32_t length;

	CHECK(netif_checksum(frame, 128, &start_at, &offset));
	CHECK_EQUAL(start_at, 34);
	CHECK_EQUAL(offset, 16);
	frame[14] = 0x4f;	/* options: 60 bytes */
	frame[23] = 17;
	CHECK(netif_checksum(frame, 128, &start_at, &offset));
	CHECK_EQUAL(start_at, 74);
	CHECK_EQUAL(offset, 6);
	CHECK(!netif_checksum(frame, 81, &start_at, &offset));
	frame[14] = 0x44;
	CHECK(!netif_checksum(frame, 128, &start_at, &offset));
	frame[14] = 0x65;
	CHECK(!netif_checksum(frame, 128, &start_at, &offset));
	memcpy(frame + 12, (uint8_t[]){ 0x81, 0, 0, 5, 0x86, 0xdd, 0x60 }, 7);
	frame[24] = 6;
	CHECK(netif_checksum(frame, 128, &start_at, &offset));
	CHECK_EQUAL(start_at, 58);
	for (length = 0; length < HOT_HEADER; length++) {	/* under the sanitizer */
		uint8_t *exact = malloc(length ? length : 1);

		memcpy(exact, frame, length);
		CHECK_EQUAL(netif_checksum(exact, length, &start_at, &offset), length >= 76);
		free(exact);
	}
}

int main(void)
{
	RUN(checksums_are_found);
	return test_summary();
}
