/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The hot routines: the interface of hot.o.
 *
 * hot.o defines, under the kernel's names, the support routines that a driver
 * calls for every packet (paper, table 1 under today's names), and the entry
 * points below. It is loaded twice: natively in dom0, and rewritten in the
 * hypervisor (4.3). Its data exists once, in dom0, and both instances use it
 * at the same time; so lists are protected by real spin locks (4.4), and per-CPU
 * data belongs to the thread whose %gs leads to it.
 *
 * Rules for code here, because it is rewritten:
 *   - memory is reached by ordinary pointers; no name begins with twin_;
 *   - in steady state nothing is imported but host_receive() and host_gather(): every other
 *     import is an upcall (4.2) and marked "upcall" where it is called;
 *   - no paravirtual operations (local_irq_*, spin_lock of the headers), no
 *     checked list operations, no fortified string functions: each is an
 *     import or an instruction that has no meaning here.
 */
#ifndef HOT_H
#define HOT_H

#ifndef __NO_FORTIFY
#define __NO_FORTIFY
#endif

#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <twin/guest.h>

/* ---- Entry points (called through twin_enter(), or directly in dom0) ---- */

/*
 * Allocates pools and rings with dom0's allocator. Once, in dom0, before any
 * other entry point; may sleep. Returns 0 or -ENOMEM; a second call does
 * nothing and returns 0.
 */
int hot_setup(struct net_device *dev);

/*
 * Sends hot_shared[this CPU].requests[first .. first + count), in order, and
 * writes the result of each. Stops at the first HOT_BUSY, HOT_NO_BUFFER or
 * HOT_DOWN: the rest get the same result. Returns the number of HOT_SENT ones.
 * Takes the queue's transmit lock.
 */
u32 hot_transmit(struct net_device *dev, u32 first, u32 count);

/*
 * Sends hot_shared[this CPU].requests[index] once for its own number and once for each of ack[],
 * and writes its result; one completion follows the last. HOT_INVALID if it is not a template.
 * Returns 1 if it is HOT_SENT. An experiment: nothing calls it unless it is asked for.
 */
u32 hot_transmit_acks(struct net_device *dev, u32 index);

/*
 * The NAPI softirq of this CPU: polls the instances that __napi_schedule() listed,
 * until none is left or budget packets were received. Returns packets received;
 * hot_pending() says whether there is more to do.
 */
u32 hot_poll(u32 budget);
u32 hot_pending(void);

/*
 * Takes back received sk_buffs that host_receive() held. skbs is an array in
 * dom0 memory, normally hot_shared[this CPU].release. Entries that are not held
 * sk_buffs are skipped and counted. Returns the number taken back.
 */
u32 hot_release(u64 *skbs, u32 count);

/* HOT_CAN_*: what requests may ask: of this device, or of it and the hot routines if one of the
 * first three is not the device's (hot_shared.offload). */
u32 hot_features(struct net_device *dev);

/* Where the pools' buffers are: memory that never goes back to dom0's allocator. In dom0, after
 * hot_setup(). */
void hot_buffers(struct hot_memory memory[HOT_BUFFER_POOLS]);

/*
 * In dom0, after the instance that ran as CPU `cpu` was aborted and before it
 * runs again. To be called twice:
 *
 *   1. At once: frees the pools', rings' and transmit locks that it held, and
 *      unschedules the napi that it had scheduled. Then dom0 can close the
 *      interface.
 *   2. While the interface is closed (the driver's rings hold nothing) and no
 *      other CPU is in a hot routine: every pool object that host_receive() does
 *      not hold (hot_host_holds) goes back to its pool, and packets being sent are completed. Then
 *      dom0 may open the interface.
 *
 * The caller restores that CPU's __preempt_count and hot_vif, and frees the
 * driver's own locks. Returns how many objects were taken back: 0 in step 1.
 */
u32 hot_recover(struct net_device *dev, u32 cpu);

/* The interface's rings and counters, one entry a CPU. */
extern struct hot_shared hot_shared[HOT_CPUS];

/*
 * Whether the host still has packets that it will give to hot_release(). hot_recover() alone
 * asks, and takes HELD sk_buffs back like all others if it is 0: the host does not know one
 * whose driver was aborted while it was being given. 0 is set at boot where the host copies frames
 * at once, or before hot_recover()'s second step by a host that has forgotten its packets.
 */
extern unsigned int hot_host_holds;

/* Machine frames that exist: fragments beyond are invalid. dom0 sets it at boot. */
extern unsigned long hot_machine_frames;

/*
 * Where dom0's frame numbers are not the machine's: the machine frame of each of dom0's
 * hot_p2m_frames frames, Xen's list for a paravirtual kernel. The struct page of a guest's
 * frame is then that many further on, beyond all of dom0's. dom0 sets both at boot; none
 * and 0, which is where they begin: both numbers are the same.
 */
extern unsigned long *hot_p2m;
extern unsigned long hot_p2m_frames;

/*
 * dom0's virtual interrupt flag (4.4), 1 = interrupts may come: cleared by
 * spin_lock_irqsave(), restored by its unlock. A CPU that finds it clear sets
 * hot_vif_pending instead of running the interrupt handler.
 */
DECLARE_PER_CPU(u32, hot_vif);
DECLARE_PER_CPU(u32, hot_vif_pending);

/* ---- Imports in steady state ---- */

/*
 * A received frame, MAC header first: `length` bytes at `data`, inside skb's
 * buffer if driver and hot routines are correct; trusted code checks that.
 * flags HOT_RX_*; vlan is the stripped TCI. Served by the hypervisor, and by
 * dom0's stack natively. Returns HOT_RX_HELD or HOT_RX_UNWANTED.
 *
 * HOT_RX_LOOK, alone and only if hot_shared.look is 1, is a question, see napi_complete_done():
 * HOT_RX_MORE or HOT_RX_UNWANTED.
 */
u32 host_receive(void *data, u32 length, struct sk_buff *skb, u32 flags, u32 vlan);

/*
 * Copies `bytes` of a packet that hot_transmit() was given, from `offset` of its fragments on: `each` to each
 * address in the list `to`, what is left to the last. There are as many as that takes, HOT_GATHERS at most, of
 * HOT_GATHER_MOST bytes at most; list and places are the hot routines' to write: trusted code checks that.
 * cookie is the request's; whole is its sk_buff, for a host that is dom0 itself. Each address is replaced by the
 * sum of what went there, as 16-bit words as they are in memory, carries added, a last single byte as a word's
 * first: 0 to 0xffff. Returns whether that was done: 0 if there is no such packet, or not so much of it.
 *
 * If each is 0 there is no list: all go to `to` itself, and nothing is summed. That is for a packet that has its
 * checksum, and costs less.
 */
u32 host_gather(void *to, u64 cookie, u32 offset, u32 bytes, u32 each, const struct sk_buff *whole);

#endif /* HOT_H */
