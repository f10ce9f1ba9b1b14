// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card's rings while the stage `dma` is on: what driver code hands to the card is checked, and the
 * card reads a copy of what was checked (<twin/dma.h>).
 *
 *   driver ── its ring, in dom0's memory ────────┐
 *     └── RDT, TDT: words of dom0's memory ───┐  │
 *                                             v  v
 *                            xen_dma_ring: checked, copied ──> Xen's memory <── the card
 *   driver <── write-backs <── xen_dma_show <────────────────────┘
 *
 * Where the driver's registers are mapped, dom0's module has put pages of memory in place of the pages of
 * the tails (dom0/registers.c), so that a tail that driver code writes is a number in memory, which is read
 * once, and judged. The tail registers are written here alone (guard.c).
 *
 * The card is at rest when its rings change hands: dom0 has waited until it has sent all and has turned its
 * receiver off (attach), or the same is asked of it here (detach). What it has of the receive ring then
 * is checked as if the driver gave it.
 *
 * Rings are looked at around driver code that may use them, with xen_lock, and interrupts on (pages.c):
 * nobody waits for a lock of Xen's in driver code.
 */
#include "card.h"

#define BELOW_4_GIB	(32u << 24)
/* ns: a frame of the longest at 10 Mb/s is received in 1.3 ms. */
#define REST		2000000ll

/* One ring's memory. */
struct shadow {
	struct twin_dma_descriptor *copy;
	struct twin_dma_slot *slots;
	uint32_t order;		/* of each */
	uint64_t base;		/* of the driver's, for the card when it is given back */
	uint64_t doorbell;	/* machine address of the tail's word in memory */
	bool held;		/* the page of that word */
};

static struct twin_dma dma;
static struct shadow shadows[TWIN_DMA_RINGS];
static uint64_t card_at;	/* machine address of its registers */
static bool taken;

/* ---- Words ---------------------------------------------------------------------- */

static const char *const faults[] = {
	[TWIN_DMA_FINE] = "nothing",
	[TWIN_DMA_TAIL] = "the tail is not in the ring",
	[TWIN_DMA_OVERRUN] = "the tail passes descriptors that the card has",
	[TWIN_DMA_FORMAT] = "no known type",
	[TWIN_DMA_LENGTH] = "too long, or past the last address",
	[TWIN_DMA_FOREIGN] = "a page that the card may not use",
	[TWIN_DMA_CHANGED] = "changed while the card had it",
	[TWIN_DMA_RING] = "no ring",
};

void xen_dma_describe(uint32_t reason, uint64_t address, char text[TWIN_XEN_PLACE])
{
	const uint32_t fault = TWIN_DMA_REASON_FAULT(reason);

	snprintf(text, TWIN_XEN_PLACE, "%s descriptor %u: %s: %lx",
		 TWIN_DMA_REASON_KIND(reason) == TWIN_DMA_TRANSMIT ? "transmit" : "receive",
		 TWIN_DMA_REASON_INDEX(reason),
		 fault < sizeof(faults) / sizeof(*faults) ? faults[fault] : "?", address);
}

/* ---- Taking -------------------------------------------------------------------- */

long xen_dma_plan(const struct twin_xen_attach *given)
{
	uint32_t kind;

	twin_dma_init(&dma, NULL, NULL, NULL);
	if (!given->stages.dma)
		return 0;
	card_at = xen_alias_walk(given->registers);
	if (card_at == ~0ull || card_at % TWIN_PAGE_SIZE || !xen_card_map(card_at))
		return xen_refuse(-XEN_EINVAL, "no registers of a card are mapped where dom0 says" TWIN_XEN_WITHOUT_DMA);
	for (kind = 0; kind < TWIN_DMA_RINGS; kind++)
		shadows[kind].doorbell = xen_alias_walk(given->registers + xen_card_doorbell(kind));
	return 0;
}

static uint32_t order_of(uint64_t bytes)
{
	uint32_t order = 0;

	while ((uint64_t)TWIN_PAGE_SIZE << order < bytes)
		order++;
	return order;
}

static bool create(struct shadow *shadow, const struct xen_card_ring *ring)
{
	if (!ring->count || ring->count > TWIN_DMA_DESCRIPTORS)
		return false;
	shadow->order = order_of(ring->count * sizeof(*shadow->copy));
	shadow->copy = alloc_xenheap_pages(shadow->order, BELOW_4_GIB);
	shadow->slots = alloc_xenheap_pages(shadow->order, 0);
	shadow->base = ring->base;
	if (!shadow->copy || !shadow->slots)
		return false;
	/* Nothing that was there before is the card's to read. */
	memset(shadow->copy, 0, (uint64_t)TWIN_PAGE_SIZE << shadow->order);
	memset(shadow->slots, 0, (uint64_t)TWIN_PAGE_SIZE << shadow->order);
	shadow->held = xen_page_hold(shadow->doorbell >> TWIN_PAGE_SHIFT, true);
	return shadow->held;
}

static void destroy(struct shadow *shadow)
{
	if (shadow->copy)
		free_xenheap_pages(shadow->copy, shadow->order);
	if (shadow->slots)
		free_xenheap_pages(shadow->slots, shadow->order);
	if (shadow->held)
		xen_page_release(shadow->doorbell >> TWIN_PAGE_SHIFT, true);
	memset(shadow, 0, sizeof(*shadow));
}

static void destroy_all(void)
{
	uint32_t kind;

	for (kind = 0; kind < TWIN_DMA_RINGS; kind++)
		destroy(&shadows[kind]);
	xen_held_destroy();
	xen_ports_guard(0, 0);
	xen_guard_end();
	xen_card_unmap();
}

static struct twin_dma_ring_config config_of(const struct shadow *shadow,
					     const struct xen_card_ring *ring)
{
	return (struct twin_dma_ring_config){
		.base = ring->base,
		.driver = xen_at(ring->base),
		.copy = shadow->copy,
		.slots = shadow->slots,
		.doorbell = xen_at(shadow->doorbell),
		.tail_register = ring->tail_register,
		.count = ring->count,
		.head = ring->head,
		.tail = ring->tail,
		.buffer = xen_card_buffer(),
	};
}

/* The card finds its rings there from now on. Its receiver is off, and it has sent all. */
static void lead(bool to_copies)
{
	const bool sends = xen_card_is_on(TWIN_DMA_TRANSMIT);
	uint32_t kind;

	xen_card_switch(TWIN_DMA_TRANSMIT, false);
	for (kind = 0; kind < TWIN_DMA_RINGS; kind++)
		xen_card_lead(kind, to_copies ? xen_machine(shadows[kind].copy) : shadows[kind].base);
	if (sends)
		xen_card_switch(TWIN_DMA_TRANSMIT, true);
}

/* The words that stand for the tails are as these are: no doorbell rings. */
static void set_doorbells(const struct xen_card_ring rings[TWIN_DMA_RINGS])
{
	uint32_t kind;

	for (kind = 0; kind < TWIN_DMA_RINGS; kind++)
		*(volatile uint32_t *)xen_at(shadows[kind].doorbell) = rings[kind].tail;
}

static int refuse(int error, const char *text)
{
	destroy_all();
	return xen_refuse(error, text);
}

/* On the console: what dom0 is told has no room for it. */
static void say_why(void)
{
	struct twin_dma_statistics counts;
	struct twin_dma_report last;
	char text[TWIN_XEN_PLACE];

	twin_dma_events(&dma, &counts, &last);
	xen_dma_describe(TWIN_DMA_REASON(last.fault, last.kind, last.index), last.address, text);
	printk(XEN_WARNING "twin: the card's %s\n", text);
}

int xen_dma_take(void)
{
	struct twin_dma_ring_config configs[TWIN_DMA_RINGS];
	struct xen_card_ring rings[TWIN_DMA_RINGS];
	uint32_t kind;
	int status;

	if (!xen_stages.dma)
		return 0;
	status = xen_guard_begin(card_at, xen_device.given.registers);
	if (status) {
		destroy_all();
		return status;
	}
	xen_ports_guard(xen_device.given.port, xen_device.given.ports);
	for (kind = 0; kind < TWIN_DMA_RINGS; kind++)
		rings[kind] = xen_card_ring(kind);
	if (xen_card_is_on(TWIN_DMA_RECEIVE) ||
	    rings[TWIN_DMA_TRANSMIT].head != rings[TWIN_DMA_TRANSMIT].tail)
		return refuse(-XEN_EBUSY, "the card is not at rest");
	for (kind = 0; kind < TWIN_DMA_RINGS; kind++) {
		if (!create(&shadows[kind], &rings[kind]))
			return refuse(-XEN_EINVAL, "no memory for the card's rings, or they are none" TWIN_XEN_WITHOUT_DMA);
		configs[kind] = config_of(&shadows[kind], &rings[kind]);
	}
	set_doorbells(rings);
	status = xen_held_create(&xen_device.given);
	if (status) {
		destroy_all();
		return status;
	}
	if (twin_dma_take(&dma, configs)) {
		say_why();
		return refuse(-XEN_EINVAL, "the card has a ring or a buffer that it may not use" TWIN_XEN_WITHOUT_DMA);
	}
	xen_held_end_adopting();
	lead(true);
	taken = true;
	return 0;
}

/* ---- Giving back ------------------------------------------------------------------- */

static bool has_sent_all(void)
{
	const struct xen_card_ring ring = xen_card_ring(TWIN_DMA_TRANSMIT);

	return ring.head == ring.tail;
}

/* Both units off, and what they had begun with has ended. Whether the transmitter was on, and may be again:
 * what is left in dom0's ring then was checked by nobody. */
static bool come_to_rest(void)
{
	const bool sends = xen_card_is_on(TWIN_DMA_TRANSMIT);
	const bool waits = xen_card_is_on(TWIN_DMA_RECEIVE) || !has_sent_all();
	const int64_t until = get_s_time() + REST;

	xen_card_rest();
	while (waits && get_s_time() < until)
		__asm__ volatile("pause" ::: "memory");
	return sends && has_sent_all();
}

void xen_dma_give_back(void)
{
	bool sends;

	if (taken) {
		sends = come_to_rest();
		twin_dma_give_back(&dma);
		lead(false);
		xen_card_switch(TWIN_DMA_TRANSMIT, sends);
	}
	taken = false;
	destroy_all();
}

/* ---- Around driver code ---------------------------------------------------------------- */

/* The driver ends here, in the name of the function that was entered last on this processor. What the card
 * has was checked, and stays its own; but nobody follows it any more. */
static bool refused(const struct twin_dma_report *report)
{
	struct twin_cpu *cpu = xen_seen[xen_processor() % TWIN_XEN_CPUS].cpu;

	xen_card_switch(TWIN_DMA_RECEIVE, false);
	xen_card_switch(TWIN_DMA_TRANSMIT, false);
	cpu->locks = 0;
	cpu->instance = &xen_instance;
	twin_abort_record(cpu, TWIN_ABORT_DMA,
			  TWIN_DMA_REASON(report->fault, report->kind, report->index),
			  report->address, cpu->entry_function);
	cpu->instance = NULL;
	xen_report(twin_instance_report(&xen_instance));
	return false;
}

bool xen_dma_show(void)
{
	struct twin_dma_report report;

	return !taken || twin_dma_show(&dma, &report) || refused(&report);
}

/* xen_lock is had: by whoever runs the driver. It asks what the card wrote, and for nothing that waits. */
bool xen_dma_look(void)
{
	const bool more = taken && twin_dma_look(&dma);

	if (more)
		xen_count(&xen_counts.polled_on);
	return more;
}

bool xen_dma_ring(void)
{
	struct twin_dma_report report;

	return !taken || twin_dma_ring(&dma, &report) || refused(&report);
}

void xen_dma_status(struct twin_xen_status *status)
{
	struct twin_dma_statistics counts;
	struct twin_dma_report last;

	twin_dma_events(&dma, &counts, &last);
	status->doorbells = counts.doorbells;
	status->descriptors = counts.checked;
	status->written_back = counts.shown;
	status->held_pages = xen_held_pages();
}
