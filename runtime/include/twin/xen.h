/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the kernel of dom0 and the platform inside Xen (platform/xen) say to each other.
 *
 * dom0's kernel module calls hypercall TWIN_XEN_HYPERCALL with
 *
 *	argument 1	enum twin_xen_command
 *	argument 2	dom0 address of the command's struct, which begins with
 *			struct twin_xen_header; ignored where there is none
 *
 * The result is 0 or a negative errno of Linux's numbers; TWIN_XEN_INFO says in words why
 * an attach has failed. The hypervisor refuses every caller but dom0. Structs are copied,
 * in and out, before they are looked at. Attach and detach pause the calling virtual
 * processor until they are done.
 *
 * Constants and layouts only; both sides include this, the kernel's and the hypervisor's.
 */
#ifndef TWIN_XEN_H
#define TWIN_XEN_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#define TWIN_XEN_VERSION	13
/* hypfs_op, which no kernel calls: the payload takes its place. Xen's own commands go on. */
#define TWIN_XEN_HYPERCALL	42
/* Physical processors that may run the driver: HOT_CPUS of the hot routines. */
#define TWIN_XEN_CPUS		4
#define TWIN_XEN_VIFS		8
/* The virtual interrupt by which the hypervisor says that there is an upcall: VIRQ_ARCH_7
 * (xen.h of Xen's public headers). */
#define TWIN_XEN_VIRQ		23
/* Behind the reason of a refusal that the stage `dma` has. */
#define TWIN_XEN_WITHOUT_DMA	"; or attach with --no-dma-check (dma=0)"
#define TWIN_XEN_REASON		128	/* bytes of a reason, its zero included */
#define TWIN_XEN_PLACE		128	/* bytes of a function's name and an offset, the same */

enum twin_xen_command {
	TWIN_XEN_INFO = 0x74776e00,	/* struct twin_xen_info, out */
	TWIN_XEN_ATTACH,		/* struct twin_xen_attach, in */
	TWIN_XEN_DETACH,		/* struct twin_xen_detach, in */
	TWIN_XEN_CONNECT,		/* struct twin_xen_vif, in */
	TWIN_XEN_DISCONNECT,		/* struct twin_xen_vif, in: domain and handle */
	TWIN_XEN_STATUS,		/* struct twin_xen_status, out */
	TWIN_XEN_UPCALL,		/* struct twin_xen_upcall, out */
	TWIN_XEN_ANSWER,		/* struct twin_xen_answer, in */
};

/* Filled by the caller: TWIN_XEN_VERSION, and sizeof the struct that it begins. */
struct twin_xen_header {
	uint32_t version;
	uint32_t size;
};

enum twin_xen_state {
	TWIN_XEN_DETACHED = 0,
	TWIN_XEN_ATTACHED = 1,
	TWIN_XEN_DEAD = 2,		/* attached, and the driver was aborted */
};

struct twin_xen_info {
	struct twin_xen_header header;
	uint32_t state;			/* enum twin_xen_state */
	uint32_t processors;		/* that are online */
	char reason[TWIN_XEN_REASON];	/* why the last attach failed; else empty */
};

/*
 * What may be done with packets between driver and guests beyond the simplest, each for itself: 0 is
 * that it is not done. Taken by an attachment, and the same until the next one.
 */
struct twin_xen_stages {
	uint32_t aggregate;	/* most segments of TCP that guests get as one packet, 32 at most; below 2: none */
	uint32_t bridge;	/* guests by a hash of their addresses, sources checked, groups limited */
	uint32_t storm;		/* packets for groups that a source may send in a second then; 0: any */
	uint32_t notify;	/* received packets of which a guest is told by one event, 64 at most */
	uint32_t pace;		/* guests that send much are looked at by time */
	uint32_t dma;		/* what driver code hands to the card is checked, and the card reads a copy */
};

/* Memory of dom0's, whole pages of its kernel half. No bytes: there is none. */
struct twin_xen_range {
	uint64_t start;
	uint64_t bytes;
};
#define TWIN_XEN_RANGES		2

/* Addresses in the data of the driver's and the hot routines' modules. */
#define TWIN_XEN_MODULE_DATA	5

/*
 * The driver's device, to be run by the hypervisor from now on. dom0 has made sure that
 * its own instance is quiet: nobody in dom0 transmits, NAPI is not scheduled, the pools
 * of the hot routines are set up. It gives up the interrupt `pirq`: the hypervisor
 * delivers none of it to dom0 until TWIN_XEN_DETACH.
 *
 * Once attached, dom0 may not free any of what the addresses name. All are dom0's
 * virtual addresses of its kernel half.
 *
 * TWIN_XEN_DETACH undoes it, also after an abort. While the device may still read packets
 * of guests it is -EAGAIN: nothing is taken from guests for a second from then on, they stay
 * connected, and dom0 tries again. Packets that nobody will complete, a dead driver's or those
 * of a device that does not send, are not waited for once dom0 says that it has stopped the
 * device. Without that a dead driver's device is not given back.
 */
struct twin_xen_attach {
	struct twin_xen_header header;
	uint64_t netdev;		/* struct net_device */
	uint64_t napi;			/* struct napi_struct */
	uint64_t interrupt;		/* irqaction.handler: a function of the driver's */
	uint64_t interrupt_cookie;	/* irqaction.dev_id */
	uint64_t hot_shared;		/* struct hot_shared[HOT_CPUS] */
	/* Both modules are those that the payload was made for: a function of the hot routines', and what lies in each
	 * part of either's data, the same until one is loaded anew. */
	uint64_t hot_function;
	uint64_t module_data[TWIN_XEN_MODULE_DATA];
	uint64_t queue_lock;		/* the byte of netdev_queue._xmit_lock that is 1 while it is taken */
	uint64_t queue_owner;		/* netdev_queue.xmit_lock_owner, 32 bits */
	/* Where dom0's memory is: start of the direct map, of vmalloc, of struct page[]. */
	uint64_t page_offset;
	uint64_t vmalloc_start;
	uint64_t vmemmap_start;
	/* For each processor of the machine, what the GS base is while driver code runs on
	 * it: a private copy of dom0's static per-CPU area with that cpu_number. */
	uint64_t gs_base[TWIN_XEN_CPUS];
	uint32_t irq;			/* Linux's number: the handler's first argument */
	uint32_t pirq;			/* Xen's */
	/*
	 * For the stage `dma`: where the driver has the card's registers mapped. In place of the pages with the
	 * tails, the third and the fourth one, it has pages of dom0's memory there, and nobody has any of the
	 * card's 32 mapped so that it can be written to. The card's receiver is off, and it has sent all.
	 */
	uint64_t registers;
	uint32_t port, ports;		/* and its ports, which lead to the same registers; ports: how many, or 0 */
	/*
	 * For the same stage: memory that packets are received into and sent from again and again, 16 MiB of
	 * a range at most. dom0 neither frees it nor makes page tables of it until TWIN_XEN_DETACH; nor of the pages
	 * that the card has in its receive ring now.
	 */
	struct twin_xen_range packets[TWIN_XEN_RANGES];
	struct twin_xen_stages stages;
};

struct twin_xen_detach {
	struct twin_xen_header header;
	uint32_t stopped;		/* 1: the device reads no memory until it is reset */
	uint32_t reserved;
};

/* What a guest's frontend takes: packets in several pages; large ones of TCP over IPv4. */
#define TWIN_XEN_VIF_PAGES	1u
#define TWIN_XEN_VIF_LARGE	2u

/* A guest's interface, once its frontend is initialised. */
struct twin_xen_vif {
	struct twin_xen_header header;
	uint32_t domain;
	uint32_t handle;
	/* The shared rings of one page each, mapped in dom0 (xenbus_map_ring_valloc). They
	 * stay mapped until TWIN_XEN_DISCONNECT has returned. */
	uint64_t transmit_ring;
	uint64_t receive_ring;
	uint32_t local_port;		/* dom0's end of the event channel */
	uint32_t remote_port;		/* the guest's end */
	uint8_t mac[6];			/* the guest's address */
	uint8_t features;		/* TWIN_XEN_VIF_* */
	uint8_t reserved;
};

/*
 * A call of dom0's kernel by driver code, which waits for it. After TWIN_XEN_VIRQ dom0 asks
 * for it (-ENOENT: there is none), calls the function with these arguments as softirqs do,
 * and answers. A driver whose invocation waits for more than thirty seconds, for more than 64
 * calls, or when dom0 says that it has stopped the device, is aborted; an answer is -ENOENT then.
 */
struct twin_xen_upcall {
	struct twin_xen_header header;
	uint64_t number;		/* grows by one each time */
	uint64_t function;		/* dom0 address */
	uint64_t argument[6];
};

struct twin_xen_answer {
	struct twin_xen_header header;
	uint64_t number;		/* of the upcall */
	uint64_t rax;
};

/* Since TWIN_XEN_CONNECT. */
struct twin_xen_vif_status {
	uint32_t domain;
	uint32_t handle;
	uint32_t connected;		/* 0: this entry is free */
	uint32_t reserved;
	uint64_t kicks;			/* notifications by the guest */
	uint64_t notified;		/* of the guest */
	uint64_t sent, sent_bytes;	/* by the guest, that the driver or a guest took */
	uint64_t received, received_bytes;
	uint64_t refused;		/* malformed requests, grants that could not be copied */
	uint64_t full;			/* frames that found no request in the receive ring */
};

struct twin_xen_status {
	struct twin_xen_header header;
	uint32_t state;			/* enum twin_xen_state */
	uint32_t vifs;			/* connected */
	struct twin_xen_stages stages;	/* in force */
	uint64_t interrupts;		/* of the card, taken here */
	uint64_t entries;		/* into driver code */
	uint64_t imports;		/* upcalls: calls out of it for dom0 */
	uint64_t aborts;
	uint64_t polls;			/* of NAPI */
	uint64_t rescheduled;		/* slices that left NAPI work for the next */
	uint64_t transmitted;		/* packets that the driver took */
	uint64_t completed;		/* ... and was done with */
	uint64_t received;		/* frames that it gave */
	uint64_t unwanted;		/* ... that were for no guest */
	uint64_t overrun;		/* ... that it gave faster than guests could be served */
	uint64_t aggregates;		/* ... that are several segments of TCP */
	uint64_t merged;		/* segments in those */
	/* By the stage `bridge`: packets from one guest to one other, those whose source is another's, and
	 * those for groups beyond the limit. */
	uint64_t local, spoofed, storm;
	/* By the stage `dma`: tails and descriptors that went on to the card, and those that it gave back. */
	uint64_t doorbells, descriptors, written_back;
	uint64_t held_pages;	/* of dom0's, that the card may use all the time */
	uint64_t polled_on;	/* times that a poll was to end, and the card had received more */
	uint64_t refused_writes;	/* to the card's registers then */
	uint64_t busy;			/* transmissions put off */
	uint64_t upcalls;		/* calls of dom0's kernel by driver code */
	uint64_t waits;			/* 1: the driver waits for one of them now, and nothing moves */
	uint64_t dirty;			/* times a processor was added to dom0's dirty mask */
	uint64_t late_aliases;		/* top tables that an entry had to bring up to date */
	/* Of the last abort: enum twin_abort_kind and what <twin/runtime.h> says of it. */
	uint32_t abort_kind;
	uint32_t abort_reason;
	uint64_t abort_address;
	uint64_t abort_rip;		/* address in the payload, */
	uint64_t abort_entry;		/* and of the function that was entered */
	/* The same in words; empty before the first abort. */
	char abort_what[TWIN_XEN_PLACE];	/* the kind */
	char abort_at[TWIN_XEN_PLACE];		/* FUNCTION+OFFSET/SIZE, as Xen prints symbols */
	char abort_entered[TWIN_XEN_PLACE];
	char abort_import[TWIN_XEN_PLACE];	/* the routine, if calling it was the reason */
	char abort_card[TWIN_XEN_PLACE];	/* the ring, the descriptor's index and the machine address, if that was */
	uint64_t processor_entries[TWIN_XEN_CPUS];	/* into driver code, on each */
	struct twin_xen_vif_status vif[TWIN_XEN_VIFS];
};

#define TWIN_XEN_ASSERT(condition) _Static_assert(condition, #condition)

TWIN_XEN_ASSERT(sizeof(struct twin_xen_header) == 8);
TWIN_XEN_ASSERT(sizeof(struct twin_xen_upcall) == 72);
TWIN_XEN_ASSERT(sizeof(struct twin_xen_answer) == 24);
TWIN_XEN_ASSERT(sizeof(struct twin_xen_info) == 144);
TWIN_XEN_ASSERT(sizeof(struct twin_xen_stages) == 24);
TWIN_XEN_ASSERT(sizeof(struct twin_xen_attach) == 248);
TWIN_XEN_ASSERT(sizeof(struct twin_xen_detach) == 16);
TWIN_XEN_ASSERT(sizeof(struct twin_xen_vif) == 48);
TWIN_XEN_ASSERT(sizeof(struct twin_xen_vif_status) == 80);
TWIN_XEN_ASSERT(sizeof(struct twin_xen_status) == 16 + 24 + 27 * 8 + 32 + 5 * TWIN_XEN_PLACE +
		TWIN_XEN_CPUS * 8 + TWIN_XEN_VIFS * 80);

#endif /* TWIN_XEN_H */
