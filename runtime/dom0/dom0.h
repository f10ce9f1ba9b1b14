/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * dom0's side of a driver that runs inside Xen: declarations shared by the files of
 * twin_dom0.ko.
 *
 * Everything here runs in process context, may sleep, and holds RTNL: it is the one
 * lock of this module, and the one under which Linux opens, closes and removes
 * interfaces. The exceptions say so.
 */
#ifndef TWIN_DOM0_H
#define TWIN_DOM0_H

#include <linux/netdevice.h>
#include <linux/pci.h>
#include <twin/guest.h>
#include <twin/xen.h>

#define TWIN_LOG(level, format, ...) pr_##level("twin: " format "\n", ##__VA_ARGS__)

/* ---- hot-module.c, in twin_hot.ko ---- */

/*
 * What twin_hot.ko gives: the native instance of the hot routines. It exports no
 * symbols of its own, because it is also what `twin rewrite` takes.
 */
struct twin_hot {
	struct module *owner;
	int (*setup)(struct net_device *dev);
	u32 (*recover)(struct net_device *dev, u32 cpu);
	void (*buffers)(struct hot_memory memory[HOT_BUFFER_POOLS]);
	struct hot_shared *shared;
	const void *constants;		/* where its read-only data is */
	const void __percpu *percpu;	/* where its per-CPU data begins */
	u32 __percpu *vif;		/* dom0's virtual interrupt flag */
	u32 __percpu *vif_pending;
	unsigned int *host_holds;	/* these four are set by hot_register() */
	unsigned long *machine_frames;
	unsigned long **p2m;
	unsigned long *p2m_frames;
};

/*
 * Called by twin_hot.ko when it comes and goes; names that begin with twin_ are the
 * rewriter's. -EBUSY: there is one.
 */
int hot_register(const struct twin_hot *hot);
void hot_unregister(const struct twin_hot *hot);

/* ---- hypercall.c ---- */

/*
 * Hands a command to the platform inside Xen. `argument` begins with a struct
 * twin_xen_header, which this fills, and has `size` bytes; NULL and 0 where the command
 * has none. Never sleeps. 0 or a negative errno; -ENOSYS also if no payload is there.
 */
int twin_xen_call(enum twin_xen_command command, void *argument, u32 size);
/* The same until it is done: another command is in Xen, or the driver runs, or waits for
 * dom0, for half a minute at most. Sleeps. */
int twin_xen_call_patiently(enum twin_xen_command command, void *argument, u32 size);

/* ---- percpu.c ---- */

/*
 * Private copies of dom0's static per-CPU area, one for each processor of the machine:
 * what the driver inside Xen has for %gs. dom0's own areas would not do, since their
 * `current`, preemption count and stack canary change with dom0's tasks.
 */
int twin_percpu_create(const struct twin_hot *hot);	/* once; later calls start them anew */
void twin_percpu_destroy(void);
/* Address of the copy of processor `cpu` < TWIN_XEN_CPUS. */
u64 twin_percpu_base(u32 cpu);

/* ---- card.c ---- */

/* A page of the card's registers that dom0 has mapped, while Xen guards them (registers.c). */
struct twin_mapping {
	unsigned long address;
	pte_t before;
	struct page *memory;	/* in its place, or NULL */
};
#define TWIN_PRIVATE_WORDS	512	/* of the driver's private structure that are looked at */
#define TWIN_REGISTERS	(128u << 10)	/* bytes, of each card of the driver's */
#define TWIN_MAPPINGS	(2 * TWIN_REGISTERS / PAGE_SIZE)	/* the driver's, and the module's */

struct twin_card {
	struct net_device *netdev;
	struct napi_struct *napi;
	struct pci_dev *pci;
	u8 __iomem *registers;		/* BAR 0 */
	irq_handler_t interrupt;
	void *interrupt_cookie;
	int pirq;
	unsigned int shared;		/* IRQF_SHARED, if that was taken from the interrupt */
	bool locked;			/* nobody else resets it, or takes it from its driver */
	bool deaf;			/* the line is disabled in dom0 */
	bool stopped;			/* it was the bus's master before */
	bool lost;
	/* Pages of the receive buffers that dom0's driver allocated, held. */
	struct page **pinned;
	u32 pins;
	unsigned long driver_registers;	/* where the driver has them mapped, while they are guarded; else 0 */
	struct twin_mapping mapping[TWIN_MAPPINGS];	/* that are others meanwhile */
	u32 mappings;
	struct page *spare[2];		/* for what has memory in its place */
};

/*
 * Finds the e1000 of that name, open and with one queue, and takes references to
 * it. The interrupt is the card's alone from then on, and the lock of its device is taken until it is
 * unlocked or put. 0, or a negative errno after a line in the log that says what does not fit.
 */
int twin_card_find(const char *name, struct twin_card *card);
void twin_card_unlock(struct twin_card *card);
void twin_card_put(struct twin_card *card);
/* Others may request the interrupt, too. */
void twin_card_share_interrupt(struct twin_card *card);

/*
 * Receiver off; waits until both rings are empty of packets and nobody polls.
 * -ETIMEDOUT if that takes longer than a second: the receiver is then on again.
 */
int twin_card_quiet(struct twin_card *card);
void twin_card_receive(struct twin_card *card, bool on);

/*
 * dom0's instance has no interrupts any more, and has ended polling: from before Xen has the card to
 * the freeing of the line. Hearing again is for what is not given to Xen after all.
 */
void twin_card_deafen(struct twin_card *card);
void twin_card_hear(struct twin_card *card);

/*
 * Receiver and transmitter off, and it may not access memory, whoever turns them on again: until it is started, or
 * twin_card_reset() says that the driver has reset it.
 */
void twin_card_stop(struct twin_card *card);
void twin_card_start(struct twin_card *card);
/* Whether its registers cannot be reached, or could not: somebody has turned them off (PCI's command register), or has reset it. Xen cannot
 * lead it away from its rings, so it is to be stopped first. */
bool twin_card_is_lost(struct twin_card *card);
/* If it was stopped; else nothing. */
void twin_card_reset(struct twin_card *card);

/*
 * Takes a reference to the page of each receive buffer in the card's ring. dom0's
 * driver allocated them with dom0's allocator; the last reference may not be dropped by
 * the hot routines, which have no page allocator. Receiver off. -EINVAL: a
 * buffer is bounced (swiotlb), so its page is not what the driver reads.
 */
int twin_card_pin(struct twin_card *card);
void twin_card_unpin(struct twin_card *card);

/* Makes the card raise its interrupt, for frames; or as if the link had changed. Any context. */
void twin_card_interrupt(const struct twin_card *card);
void twin_card_link_interrupt(const struct twin_card *card);

/* Where the card's driver has its registers mapped; 0: it is not found. */
unsigned long twin_card_registers(const struct twin_card *card);
/* The card's ports; none if count becomes 0. */
void twin_card_ports(const struct twin_card *card, u32 *first, u32 *count);
/* Whether a pointer leads to the start of the card's registers. */
bool twin_card_is_registers(const struct twin_card *card, u64 pointer);

/* ---- registers.c ---- */

/*
 * From guard to release the card's registers are written by Xen alone, and the tails that the driver writes are
 * numbers in memory. The card is at rest when it begins. prepare is before guard, and may sleep; guard, and release behind it, are
 * where no other processor of dom0's runs until Xen has the same idea of these pages. Those two give 0, or a negative errno
 * after a line in the log; release once more is nothing.
 */
int twin_registers_prepare(struct twin_card *card);
int twin_registers_guard(struct twin_card *card);
void twin_registers_release(struct twin_card *card);

/* ---- pollers.c ---- */

/*
 * From away to back neither netpoll nor a socket nor a timer polls the card. -EBUSY after a line in the log:
 * netpoll does. What polls already has ended after the next synchronize_net(). Under RTNL; back
 * once more is nothing.
 */
int twin_pollers_away(struct net_device *dev, struct napi_struct *napi);
void twin_pollers_back(struct net_device *dev);

/* ---- egress.c ---- */

/*
 * While the driver is in Xen, dom0's own packets to the interface are dropped: the hot routines
 * free only what is theirs. From block on none reaches the queue; from close on, which follows when
 * the queue is empty, none that goes around it reaches the driver. 0 or a negative errno. Unblock
 * undoes both; once more is nothing.
 */
int twin_egress_block(struct net_device *dev);
int twin_egress_close(struct net_device *dev);
void twin_egress_unblock(void);
int twin_egress_init(void);
/* Nothing is attached, and RTNL is not held: sleeps for as long as some thread of the kernel's does not. */
void twin_egress_exit(void);
u64 twin_egress_dropped(void);

/* ---- reset.c ---- */

/*
 * From divert to undivert a reset that the driver of `dev` begins by itself in dom0 is a restart
 * (twin_restart) instead. 0 or a negative errno after a line in the log. Under RTNL; undivert
 * once more is nothing.
 */
int twin_reset_divert(struct net_device *dev);
void twin_reset_undivert(void);
/* The card of that device hangs, and is to be taken back and given again; nothing while that goes on already. Any context; the
 * device is attached. */
void twin_reset_hung(const struct net_device *dev, unsigned int seconds);
/* Waits for one that has begun. Sleeps; RTNL is not held, nothing is attached. */
void twin_reset_exit(void);

/* ---- hang.c ---- */

/* From watch to unwatch a card that completes nothing is reset. Sleeps; unwatch once more is nothing. */
void twin_hang_watch(struct net_device *dev);
void twin_hang_unwatch(void);

/* ---- errors.c ---- */

/*
 * From guard to release the device is detached before the card is reset by others than its driver. 0 or a negative errno after a line
 * in the log. Under RTNL; release once more is nothing.
 */
int twin_errors_guard(struct pci_dev *pci);
void twin_errors_release(void);
/* Waits for those that are being told. Sleeps; RTNL is not held, nothing is attached. */
void twin_errors_exit(void);

/* ---- ops.c ---- */

/* From guard to release dom0 cannot have its driver reset the card or change its rings. */
void twin_ops_guard(struct net_device *dev);
void twin_ops_release(struct net_device *dev);	/* without guard it does nothing */

/* ---- attach.c ---- */

/* Each gives 0 or a negative errno after a line in the log. must: also if the card does not come
 * to rest; what it has is lost. */
int twin_attach(const char *name);
int twin_detach(bool must);
int twin_restart(bool must);
/* If that card is attached it is detached, and its interface is closed; the log has the reason. False: it is attached all the same.
 * RTNL is not held. */
bool twin_leave(const struct pci_dev *pci, const char *reason);
/* The attached card, or NULL. */
struct twin_card *twin_attached(void);
const struct twin_hot *twin_hot(void);
int twin_attach_init(void);
void twin_attach_exit(void);

/* ---- poison.c ---- */

/* "PLACE VALUE": see poison.c. 0 if the driver inside Xen was aborted; a negative errno. */
int twin_poison(const char *words);

/* ---- upcall.c ---- */

int twin_upcall_init(void);
void twin_upcall_exit(void);
/* Waits for the call that is being done, if one is. Xen has no driver, so none follows. */
void twin_upcall_flush(void);
/* For tests: a dom0 that answers none. */
void twin_upcall_deaf(bool deaf);
/* Calls of this kernel that were done for the driver inside Xen, since the module was loaded. */
u64 twin_upcalls_answered(void);

/* ---- vif.c ---- */

int twin_vif_init(void);
void twin_vif_exit(void);
/* Tells Xen of every guest's interface that is connected. */
void twin_vif_connect_all(void);
/* The machine frame of a page of a guest's that is connected; 0: there is none. */
u64 twin_vif_frame(void);
/* Notifications by guests that reached dom0, since the module was loaded. */
u64 twin_vif_kicks(void);

#endif /* TWIN_DOM0_H */
