// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* dom0's writes to the card's ports, and to others: platform/xen/ports.c. */
#include "../platform/xen/platform.h"
#include "test.h"

#include "../platform/xen/ports.c"

enum { FIRST = 0xc000, COUNT = 64 };

struct twin_xen_status xen_counts;
static uint32_t written;

int twin_original_write_io(unsigned int port, unsigned int bytes, unsigned long value,
			   struct x86_emulate_ctxt *context)
{
	(void)port;
	(void)bytes;
	(void)context;
	CHECK_EQUAL(value, 0x12345678);
	written++;
	return 5;
}

int twin_original_rep_outs(uint32_t segment, unsigned long offset, uint16_t port, unsigned int bytes,
			   unsigned long *count, struct x86_emulate_ctxt *context)
{
	(void)port;
	(void)bytes;
	(void)context;
	CHECK_EQUAL(segment, 3);
	CHECK_EQUAL(offset, 0x1000);
	CHECK_EQUAL(*count, 7);
	written++;
	return 6;
}

/* By one instruction, and by a string. */
static void writes(uint32_t port, uint32_t bytes, bool is_cards)
{
	unsigned long count = 7;

	written = 0;
	xen_counts.refused_writes = 0;
	CHECK_EQUAL(write_io(port, bytes, 0x12345678, NULL), is_cards ? DONE : 5);
	CHECK_EQUAL(rep_outs(3, 0x1000, (uint16_t)port, bytes, &count, NULL), is_cards ? DONE : 6);
	CHECK_EQUAL(written, is_cards ? 0 : 2);
	CHECK_EQUAL(xen_counts.refused_writes, is_cards ? 2 : 0);
}

static void the_cards_ports_are_not_written(void)
{
	xen_ports_guard(FIRST, COUNT);
	writes(FIRST, 4, true);
	writes(FIRST + 4, 4, true);
	writes(FIRST + COUNT - 1, 1, true);
	/* A part of it is the card's. */
	writes(FIRST - 3, 4, true);
	writes(FIRST - 1, 2, true);
	writes(FIRST + COUNT - 1, 4, true);
}

static void others_are(void)
{
	xen_ports_guard(FIRST, COUNT);
	writes(FIRST - 4, 4, false);
	writes(FIRST - 1, 1, false);
	writes(FIRST + COUNT, 4, false);
	writes(0xcfc, 4, false);
	writes(0xffff, 1, false);
	/* Afterwards, and of a card without ports. */
	xen_ports_guard(0, 0);
	writes(FIRST, 4, false);
	writes(0, 4, false);
}

int main(void)
{
	RUN(the_cards_ports_are_not_written);
	RUN(others_are);
	return test_summary();
}
