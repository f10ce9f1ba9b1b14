/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Between descriptors.c and card.c. Of kind: enum twin_dma_kind. All but map and unmap only while the
 * card is mapped. [any]
 */
#ifndef TWIN_XEN_CARD_H
#define TWIN_XEN_CARD_H

#include <twin/dma.h>

#include "platform.h"

/* Pages of the card's registers. */
#define XEN_CARD_PAGES	32u

/* The card whose registers begin at that machine address, instead of the one before. False: that is
 * memory, or there is no room to map it. [dom0] */
bool xen_card_map(uint64_t machine);
/* No card. It stays mapped until xen_card_forget() (platform.h). Once more is nothing. [dom0], [idle] */
void xen_card_unmap(void);

/* What the card's registers say of a ring. */
struct xen_card_ring {
	uint64_t base;
	uint32_t count;		/* descriptors */
	uint32_t head, tail;
	volatile uint32_t *tail_register;
};
struct xen_card_ring xen_card_ring(uint32_t kind);
/* Where the tail register is among the card's registers. */
uint32_t xen_card_doorbell(uint32_t kind);
/* The card finds that ring at another address from now on. Its unit is off. */
void xen_card_lead(uint32_t kind, uint64_t base);
/* Transmitter or receiver; what it had begun with may go on for a moment. */
bool xen_card_is_on(uint32_t kind);
void xen_card_switch(uint32_t kind, bool on);
/* Both off, whoever asks for them from now on by xen_card_write(). */
void xen_card_rest(void);
/* Somebody wants to write a register: it is done if it changes neither rings nor what they were checked
 * for. False: it is refused. Also if no card is mapped. */
bool xen_card_write(uint32_t offset, uint32_t value);
/* Bytes that the card writes to a receive buffer at most; 0: its descriptors are none of those that
 * are known, or the size is reserved. */
uint32_t xen_card_buffer(void);

/* ---- guard.c ---- */

/* Nobody but Xen writes the card's registers from now on, and what others want to write is judged. mapped: where the
 * driver has them, a dom0 address. 0, or -errno with a reason: they can be written somewhere. [idle] */
int xen_guard_begin(uint64_t machine, uint64_t mapped);
/* Once more is nothing. [idle] */
void xen_guard_end(void);

/* ---- ports.c ---- */

/* These ports of the card's nobody writes from now on; none if count is 0. [idle] */
void xen_ports_guard(uint32_t first, uint32_t count);

#endif /* TWIN_XEN_CARD_H */
