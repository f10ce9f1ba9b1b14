// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card's ports while the stage `dma` is on. Two of them, IOADDR and IODATA, lead to all of its registers
 * (Intel, 317453, 13.2.2), the rings' among them; e1000 resets some cards by them.
 *
 * A port that driver code writes is its end (core/port.c: this platform has none). dom0 executes `out` with
 * fewer rights than it needs, so each is Xen's to do (emul-priv-op.c), and comes by here. One to the card's ports
 * is not done; reading them goes on.
 */
#include "card.h"

struct x86_emulate_ctxt;
int twin_original_write_io(unsigned int port, unsigned int bytes, unsigned long value,
			   struct x86_emulate_ctxt *context);
int twin_original_rep_outs(uint32_t segment, unsigned long offset, uint16_t port, unsigned int bytes,
			   unsigned long *count, struct x86_emulate_ctxt *context);

/* X86EMUL_OKAY */
#define DONE		0

/* [first, end); none if they are the same. */
static struct {
	uint32_t first, end;
} ports;

void xen_ports_guard(uint32_t first, uint32_t count)
{
	ports.first = first;
	ports.end = first + count;
}

/* Counted, if one of these is the card's. */
static bool refuse(uint32_t port, uint32_t bytes)
{
	if (port >= ports.end || port + bytes <= ports.first)
		return false;
	xen_count(&xen_counts.refused_writes);
	return true;
}

static int write_io(unsigned int port, unsigned int bytes, unsigned long value,
		    struct x86_emulate_ctxt *context)
{
	return refuse(port, bytes) ? DONE : twin_original_write_io(port, bytes, value, context);
}
XEN_REPLACE(write_io, write_io);

/* All of a string's words are for one port, and go by at once. */
static int rep_outs(uint32_t segment, unsigned long offset, uint16_t port, unsigned int bytes,
		    unsigned long *count, struct x86_emulate_ctxt *context)
{
	if (refuse(port, bytes))
		return DONE;
	return twin_original_rep_outs(segment, offset, port, bytes, count, context);
}
XEN_REPLACE(rep_outs, rep_outs);
