/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declarations shared by the files of the platform inside Xen.
 *
 * Contexts:
 *   [dom0]     in a hypercall of dom0's: interrupts on, may not sleep
 *   [idle]     on an idle virtual processor, where a hypercall of dom0's goes on: a
 *              domain's memory is not there, and all processors may be stopped
 *   [served]   with xen_lock taken: in a hypercall of any domain, or in the tasklet
 *   [off]      with interrupts off on this processor
 *   [any]      anywhere
 *
 * One lock, xen_lock, is around all that driver code is run for, and around attach and
 * detach. Nobody spins for it: a processor that does not get it leaves word of its
 * request in a flag and schedules the tasklet (interrupt.c).
 */
#ifndef TWIN_XEN_PLATFORM_H
#define TWIN_XEN_PLATFORM_H

#include <twin/runtime.h>
#include <twin/window.h>
#include <twin/xen.h>

#include "hypervisor.h"
#include "layout.h"

/* Linux's numbers, which dom0 gets. */
enum {
	XEN_EPERM = 1,
	XEN_ENOENT = 2,
	XEN_EIO = 5,
	XEN_EAGAIN = 11,
	XEN_ENOMEM = 12,
	XEN_EFAULT = 14,
	XEN_EBUSY = 16,
	XEN_EEXIST = 17,
	XEN_ENODEV = 19,
	XEN_EINVAL = 22,
	XEN_ENOSPC = 28,
	XEN_ENOSYS = 38,
};

/* ---- What the builder of the payload defines --------------------------- */

struct twin_payload_import {
	const char *name;
	uint64_t vm;		/* dom0's address of it */
	void *stub;
};

extern const struct twin_codemap_entry twin_payload_codemap[];
extern const uint64_t twin_payload_codemap_count;
extern const struct twin_text_range twin_payload_text[];
extern const uint64_t twin_payload_text_count;
extern const struct twin_payload_import twin_payload_imports[];
extern const uint64_t twin_payload_imports_count;
extern const uint32_t twin_payload_abi_version;
extern const uint32_t twin_payload_scheme;
extern const uint32_t twin_payload_vector_free;

/* Rewritten hot routines, by name. Not C functions: for xen_run() alone. */
extern const char twin_function_hot_poll[];
extern const char twin_function_hot_pending[];
/* Packets that hot_poll() is asked for: while interrupts are off, and in whose segments of TCP may be merged. */
#define XEN_POLL_BUDGET 16u
extern const char twin_function_hot_transmit[];

/* ---- State --------------------------------------------------------------- */

/*
 * The one device. Written by attach and detach with xen_lock taken; `attached` is read
 * by interrupts and faults of any processor, and stored last and first.
 */
struct xen_device {
	uint32_t attached;
	struct twin_xen_attach given;	/* what dom0 said */
	uint64_t interrupt;		/* the handler in the payload */
};
extern struct xen_device xen_device;

static inline bool xen_attached(void)
{
	return __atomic_load_n(&xen_device.attached, __ATOMIC_ACQUIRE);
}

/* What is done with packets: the same from attach to detach, since all of it is read while the device is
 * attached, and written while it is not. */
#define xen_stages (xen_device.given.stages)

/* Counts for dom0; written [served] unless they say otherwise. */
extern struct twin_xen_status xen_counts;

static inline void xen_count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- lock.c ---------------------------------------------------------------- */

bool xen_trylock(void);
/* Tries for a bounded time. For [dom0]. */
bool xen_lock_patiently(void);
void xen_unlock(void);

/* ---- alias.c: dom0's memory in Xen's slots --------------------------------- */

/*
 * Look at dom0's page table, then show its memory in the window of every page table. 0, or
 * -errno with a reason. The window is empty again after removal; false: the processors could not
 * be stopped, and it is to be tried again later. Plan [dom0]; the others [idle]. No driver code
 * runs meanwhile.
 */
int xen_alias_plan(const struct twin_xen_attach *given);
int xen_alias_install(void);
bool xen_alias_remove(void);
/* dom0's slot in each of the window's, 0 for none. */
const uint32_t *xen_alias_slots(void);
/* What is known of a processor, so that nothing is looked for twice. All but `awaited` are
 * written by their own processor alone, or while no driver code runs. */
struct xen_seen {
	uint64_t root;		/* CR3 of a top table that has the window; 0: none is known */
	struct twin_cpu *cpu;	/* of its block, or NULL: it was offline at attach */
	uint64_t turn;		/* odd while driver code runs (clock.c) */
	uint64_t entries;	/* into driver code, as the core counts them, since attach */
	uint64_t awaited;	/* processors that wait for this one, or are going to (await.c) */
	uint64_t wanted;	/* 1 while this one waits for their end: who comes now lets it go first */
	uint64_t unused[2];	/* a cache line each */
};
extern struct xen_seen xen_seen[TWIN_XEN_CPUS];
/* The first word of dom0's dirty mask. */
extern const uint64_t *xen_dirty_mask;
void xen_alias_catch_up(void);

static inline uint64_t xen_cr3(void)
{
	uint64_t value;

	__asm__ volatile("movq %%cr3, %0" : "=r"(value));
	return value;
}

/*
 * Before an access through the window, on this processor and until its interrupts are on
 * again: has it in the page table in use, and has dom0's TLB flushes reach it. [off]
 *
 * A top table that had all entries once has them until they change everywhere, which begins
 * with forgetting (alias.c): nothing of Xen's takes single slots of its own away, and a page
 * that becomes a top table anew has Xen's slots as they are then.
 */
static inline void xen_alias_ready(uint32_t processor)
{
	if (__builtin_expect(processor < TWIN_XEN_CPUS && xen_cr3() == xen_seen[processor].root &&
			     __atomic_load_n(xen_dirty_mask, __ATOMIC_RELAXED) >> processor & 1, 1))
		return;
	xen_alias_catch_up();
}
/* The machine address at a linear address of the page table in use; ~0 if none. [any] */
uint64_t xen_alias_walk(uint64_t address);

/* ---- block.c: stacks --------------------------------------------------------- */

/* Map blocks for those of the first `count` processors that are online, of which none goes
 * (hotplug.c), and give the entry of the top table for residue 0, which leads to their data
 * stacks. 0 or -errno. [idle] */
int xen_blocks_create(uint32_t count, uint64_t *slot);
/* Take them away; when all processors have been flushed, free them. No processor is on
 * one, and no top table leads to the data stacks. [idle] */
void xen_blocks_unmap(void);
void xen_blocks_free(void);
/* The context of a processor's block. */
static inline struct twin_cpu *xen_block_context(uint32_t processor)
{
	return (struct twin_cpu *)(XEN_BLOCK(processor) + TWIN_STACK_CONTEXT);
}
/* Whether this processor has one: its number is below TWIN_XEN_CPUS, it was online at attach, and
 * the driver waits for nothing. [any] */
bool xen_block_here(void);
/* The context of the block that rsp points into, or NULL. [any] */
struct twin_cpu *xen_block_of(uint64_t rsp);

/* ---- memory.c: dom0's memory for C code --------------------------------------- */

/*
 * Copy between Xen's memory and dom0's, each byte once. The dom0 address may be any number:
 * what is not in the window, or not mapped there, makes the result false (some bytes may
 * have been copied). [any]
 */
bool xen_dom0_read(void *to, uint64_t from, uint32_t bytes);
bool xen_dom0_write(uint64_t to, const void *from, uint32_t bytes);
/* The same between xen_alias_ready() and the next time that interrupts are on. [off] */
bool xen_dom0_read_ready(void *to, uint64_t from, uint32_t bytes);
bool xen_dom0_write_ready(uint64_t to, const void *from, uint32_t bytes);
/* hooks.S: 0, or anything else if an address was not there. */
uint64_t xen_copy_unsafe(void *to, const void *from, uint64_t bytes);

/* ---- gate.c: into driver code --------------------------------------------------- */

/* Make the instance anew. 0, or -errno. [idle] */
int xen_instance_create(void);
/*
 * Run a function of the payload's driver or hot routines. TWIN_OK, or as twin_enter; an
 * abort has then been reported on the console. Served; interrupts may be on for a moment first,
 * and are off meanwhile. The window is there when it returns, as before.
 */
int xen_run(const void *function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t *result);
/* Parts of it, for run.S alone. */
int xen_run_slowly(const void *function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t *result);
int xen_run_aborted(void);
/* The driver that waits on this processor goes on, as xen_run(); or is aborted. Served */
int xen_resume(uint64_t rax);
void xen_forsake(void);
extern struct twin_instance xen_instance;

/* ---- clock.c --------------------------------------------------------------------- */

void xen_clock_start(void);	/* [idle] */
void xen_clock_stop(void);	/* [dom0], not served; no driver code runs any more */
/* After driver code. [off], on that processor. One instruction, and so one store, which other
 * processors see in the order of the program (SDM vol. 3, 9.2.2). */
static inline void xen_clock_leave(struct xen_seen *seen)
{
	__asm__ volatile("incq %0" : "+m"(seen->turn)::"cc", "memory");
}

/* A turn begins, before it is asked whether anybody waits for this processor: the instruction is
 * locked. False: somebody does, and this is not to run driver code. [off] */
static inline bool xen_clock_try(struct xen_seen *seen)
{
	__asm__ volatile("lock incq %0" : "+m"(seen->turn)::"cc", "memory");
	return __builtin_expect(!__atomic_load_n(&seen->awaited, __ATOMIC_RELAXED), 1);
}

/* ---- await.c --------------------------------------------------------------------- */

/* The end of a try, and others until one is no failure. Interrupts are on meanwhile. */
void xen_give_way(struct xen_seen *seen);

/* Before driver code. [off], on that processor; interrupts may be on for a moment, so that what they
 * could change is looked at afterwards. */
static inline void xen_clock_enter(struct xen_seen *seen)
{
	if (!xen_clock_try(seen))
		xen_give_way(seen);
}

/* ---- import.c --------------------------------------------------------------------- */

int twin_import_host_receive(struct twin_cpu *cpu, struct twin_call_frame *frame);
int twin_import_host_gather(struct twin_cpu *cpu, struct twin_call_frame *frame);

/* ---- receive.c: frames on their way to guests ---------------------------------------- */

/* A frame of the card's in dom0's memory, which flags HOT_RX_* describe, is kept; `tag` is what
 * the card took out of it, if they say that it did. Served, [off], and the window is there: driver
 * code gives it */
void xen_receive_put(uint64_t data, uint32_t length, uint32_t flags, uint16_t tag);
/* Guests have all that are kept. Served, interrupts on */
void xen_receive_deliver(void);
/* From the next poll on, segments of TCP that follow each other are one packet of so many at most; below
 * 2: each is its own. Served */
void xen_receive_merge(uint32_t most);

/* ---- upcall.c: calls of dom0's kernel ------------------------------------------------ */

void xen_upcall_start(uint32_t home);	/* [idle] */
void xen_upcall_stop(void);		/* [dom0], not served; no driver code waits */
/* Any routine but those that have a function here: the driver waits, or is aborted. */
int xen_import(struct twin_instance *instance, struct twin_call_frame *frame);
/* xen_run() for the tasklet, interrupts on. TWIN_FROZEN: the driver waits for dom0, and
 * xen_lock is not given up; xen_interrupt_resumed() has the end. */
int xen_run_patiently(const void *function, uint64_t a0, uint64_t a1, uint64_t a2,
		      uint64_t *result);
/* Whether the driver waits for dom0. [any] */
bool xen_upcall_waits(void);
/* If it does, it is aborted soon: dom0 has stopped the device, and wants it back. [dom0] */
void xen_upcall_forsake(void);
long xen_upcall_fetch(struct twin_xen_upcall *call);			/* [dom0] */
long xen_upcall_answer(const struct twin_xen_answer *answer);		/* [dom0] */

/* ---- interrupt.c -------------------------------------------------------------------- */

void xen_interrupt_start(uint32_t home);	/* [idle] */
/* What the tasklet had entered when the driver began to wait has ended so. Served */
void xen_interrupt_resumed(int status);
/* The driver has nothing to do: no interrupt is pending, no poll is due. Served */
bool xen_interrupt_idle(void);
/* No tasklet runs afterwards; dom0 gets the interrupt. [dom0], not served */
void xen_interrupt_stop(void);
/* One that was taken, and not ended, ends: else dom0 gets none. [idle], when all processors
 * have been stopped since it is no longer attached */
void xen_interrupt_give_back(void);
/* Have the tasklet run: there is work that this processor could not do. [any] */
void xen_service_request(void);

/* ---- transmit.c: packets to the driver ------------------------------------------------ */

/* A packet on its way out. Filled by netback.c; the bytes are in Xen's memory. */
struct xen_packet {
	uint8_t *header;		/* the first bytes, HOT_HEADER at most */
	uint32_t header_length;
	uint32_t rest;			/* bytes in the buffers, 0 for none */
	uint32_t buffer;		/* the first of them, from xen_buffer_get */
	uint16_t checksum_start;	/* 0: nothing to compute */
	uint16_t checksum_offset;
	uint16_t gso_size;		/* 0: it is no large packet */
	uint16_t gso_type;		/* HOT_GSO_* */
	uint32_t result;		/* out: HOT_SENT... */
};

/* What became of a request for bytes: copied, there is no such packet, `to` is not dom0's. */
struct twin_gather;	/* <twin/gather.h> */
enum xen_gathered { XEN_GATHERED, XEN_GATHERED_NOTHING, XEN_GATHERED_ELSEWHERE };
enum xen_gathered xen_transmit_gather(const struct twin_gather *gather);	/* [off] */

int xen_transmit_create(void);			/* [idle] */
void xen_transmit_destroy(void);		/* [idle]; the device reads no buffer */
#define XEN_NO_BUFFER (~0u)
/* The first of `count` buffers, one page each, 1 or more, or XEN_NO_BUFFER. They come back when their packet
 * does, or by being returned, which is nothing if the driver or the card has them. Served */
uint32_t xen_buffer_get(uint32_t count);
void xen_buffer_return(uint32_t first);
/* The page at byte `at` of those that begin with `first`, which has as many. */
void *xen_buffer_page(uint32_t first, uint32_t at);
/* Give packets[count] to the driver; each has its result. Buffers of those sent come back
 * by themselves, the others are the caller's to return. False: the driver is dead or dom0's
 * memory is not there. Served */
bool xen_transmit(struct xen_packet *packets, uint32_t count);
#define XEN_TRANSMIT_BATCH 16u
/* The machine frame of a buffer, by its number below XEN_BUFFERS. [idle] */
uint64_t xen_buffer_frame(uint32_t number);
/* A descriptor of the card's that named it does not any more. Once for each time that it was taken (held.h).
 * Served */
void xen_buffer_let_go(uint32_t number);
/* Take back the buffers of completed packets; how many. Served */
uint32_t xen_transmit_complete(void);
/* Packets that the driver has. Served */
uint32_t xen_transmit_in_flight(void);

/* ---- descriptors.c, pages.c: the card's rings -------------------------------------------- */

/*
 * The stage `dma`; without it these do nothing. Plan looks at dom0's page table, and may refuse: 0, or
 * -errno with a reason. Take has the card read copies from then on; so does giving back, once more being
 * nothing, have it read dom0's ring again, at rest. Whether the card was at rest before is asked
 * there.
 */
long xen_dma_plan(const struct twin_xen_attach *given);	/* [dom0] */
int xen_dma_take(void);					/* [idle] */
void xen_dma_give_back(void);				/* [idle]; [dom0] if nothing was taken */
/* The card's registers stay mapped for Xen from the first time that they are taken to this. Nothing is attached, nor
 * is being attached. Whether they are mapped. */
void xen_card_forget(void);				/* [dom0] */
bool xen_card_is_mapped(void);				/* [any] */
/* Before driver code that looks at the rings, and after any that may have rung a doorbell. False: the driver
 * was aborted for what it gave to the card. Served, interrupts on */
bool xen_dma_show(void);
bool xen_dma_ring(void);
/* While driver code polls: whether the card had received more, which the driver is shown. [off] */
bool xen_dma_look(void);
/* What was wrong, by the reason and address of a report. */
void xen_dma_describe(uint32_t reason, uint64_t address, char text[TWIN_XEN_PLACE]);
void xen_dma_status(struct twin_xen_status *status);	/* [any] */
/* A page is dom0's, written: and its type is "writable"; both stay so until it is released. False: it is
 * not. Interrupts on */
bool xen_page_hold(uint64_t frame, bool written);
void xen_page_release(uint64_t frame, bool written);

/* ---- held.c: what the card uses again and again ---------------------------------------------- */

/*
 * Hold the memory that dom0 says its packets are received into and sent from, and note the buffers of guests'
 * packets: from then on a descriptor that names one of them is decided by one look. 0, or -errno with a reason:
 * something of that memory is not dom0's to write, or there is no room. [idle]
 */
int xen_held_create(const struct twin_xen_attach *given);
/* A page that the card may receive into, and has when its rings are taken, is held from then on, too. False: it
 * may not, or adopting has ended. [idle] */
bool xen_held_adopt(uint64_t frame);
void xen_held_end_adopting(void);
/* Let go of all. The card uses none of it. Once more is nothing. [idle] */
void xen_held_destroy(void);
/* Pages that are held. [any] */
uint32_t xen_held_pages(void);

/* guard.c: a page fault of driver code's, which stores to an address. Where it goes on, if that is a register of
 * the card's and the store was done; else 0. [off] */
uint64_t xen_guard_store(const struct xen_registers *registers, uint64_t address);

/* ---- grant.c: guests' pages ------------------------------------------------------------ */

/*
 * Copy between Xen's memory and a page that a guest grants to dom0. False if the grant, the page
 * or the range does not allow it; nothing was copied then. Interrupts on
 */
struct xen_part {
	void *to;
	uint32_t bytes;		/* a page at most */
};
#define XEN_GRANT_PARTS 2u
/* parts[count], one after the other, from what is at `offset` of the page. */
bool xen_grant_read(struct domain *guest, uint32_t reference, uint32_t offset,
		    const struct xen_part *parts, uint32_t count);
/* The first part is in Xen's memory, what is in buffers follows it. */
struct xen_bytes {
	const void *first;
	uint32_t first_length;
	uint32_t buffer;		/* the first one */
	uint32_t buffer_length;
};
/* `count` of them, from `from` on, to the page's start. */
bool xen_grant_write(struct domain *guest, uint32_t reference, const struct xen_bytes *bytes,
		     uint32_t from, uint32_t count);

/* ---- netback.c: guests ------------------------------------------------------------------ */

long xen_vif_connect(const struct twin_xen_vif *vif);			/* [dom0], served */
long xen_vif_disconnect(uint32_t domain, uint32_t handle);		/* [dom0], served */
void xen_vif_disconnect_all(void);					/* [dom0], served */
/* Take nothing from guests for a second, and then all that waits; they stay connected. [dom0],
 * served */
void xen_vif_hold(void);
/* A domain sends an event by its port. Whether it was for here. [any] */
bool xen_vif_kick(const struct domain *domain, uint32_t port);
/* Serve those that were kicked, whose packets had to wait or whose time it is; deliver frames, show
 * answers, send events. Served, interrupts on */
void xen_vif_service(void);
/* A frame of the card's, of NETIF_SMALLEST to NETIF_GRANT_SIZE bytes. Whether it is for a guest,
 * which may have no room. Served, interrupts on */
bool xen_vif_receive(const uint8_t *frame, uint32_t length, uint32_t flags);
/* The same of several segments of TCP in one packet (netif_is_merged), of `size` bytes of payload each. */
bool xen_vif_receive_merged(const uint8_t *packet, uint32_t length, uint32_t size);
/* The same without serving anybody. Served, interrupts on */
void xen_vif_publish(void);
/* The bridge without guests, as the stages say. [idle] */
void xen_bridge_start(void);
void xen_bridge_status(struct twin_xen_status *status);		/* [any] */
/* The timer of guests that are looked at from time to time (pace.c), on that processor. */
void xen_pace_start(uint32_t home);	/* [idle] */
void xen_pace_stop(void);		/* [dom0], not served, and not attached any more */
void xen_vif_status(struct twin_xen_status *status);

/* ---- hotplug.c ----------------------------------------------------------------------- */

/* No processor goes offline until it is released. False: one is on its way, and may go. [idle] */
bool xen_processors_keep(void);
void xen_processors_release(void);					/* [idle] */

/* ---- fault.c, hypercall.c, payload.c ---------------------------------------------------- */

/* The text of an abort, on the console. */
void xen_report(const struct twin_abort_report *report);
/*
 * Attach and its reverse, each in two halves: the first [dom0] has everything that may
 * refuse because of what dom0 said, the second goes on [idle] if the first gave 0. XEN_LATER: the
 * second could not stop the processors. It is to be called again when others had their turn on
 * this one, and until it gives something else the device is occupied.
 */
#define XEN_LATER 1
long xen_attach_begin(const struct twin_xen_attach *given);
long xen_attach_finish(void);
/* Instead of the second half, if Xen cannot go on there. [dom0] */
void xen_attach_abandon(void);
/* stopped: the device reads no buffer any more. */
long xen_detach_begin(bool stopped);
long xen_detach_finish(void);
/* Whether a device is attached, or was detached by half: the window is there. [dom0] */
bool xen_occupied(void);
/* Whether a command of dom0's is not done yet. [any] */
bool xen_commanded(void);
/* One at a time: false if there is one. From there to end dom0 has to try again. [dom0] */
bool xen_command_begin(void);
void xen_command_end(void);
/* Why the last attach failed; "" if it did not. xen_refuse notes it and gives error. */
extern char xen_reason[TWIN_XEN_REASON];
int xen_refuse(int error, const char *text);
/* Whether the machine can run the driver here: 0, or -errno with a reason. [any] */
int xen_machine_check(void);
/* How many are online. [any] */
uint32_t xen_processors(void);

#endif /* TWIN_XEN_PLATFORM_H */
