/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shim.h: declarations shared by the files of the kernel shim. Everything
 * here is internal to kernel.o; the host's interface is kernel.h, the driver's is
 * the kernel's own headers.
 */
#ifndef TWIN_SHIM_H
#define TWIN_SHIM_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/netdevice.h>
#include <linux/pci.h>

#include "kernel.h"

/* ---- print.c ------------------------------------------------------------ */

/* Prints to the host's console, then ends: the kernel cannot go on. */
void kernel_bug(const char *format, ...) __printf(1, 2) __noreturn __cold;
/* `function` was called for something that the shim does not support. Fails closed. */
void kernel_unsupported(const char *function, const char *format, ...)
	__printf(2, 3) __noreturn __cold;
/* Prints and counts: the driver did what a debugging kernel complains of. */
void kernel_complain(const char *format, ...) __printf(1, 2) __cold;

/* ---- boot.c ------------------------------------------------------------- */

extern struct kernel_boot_info boot;
extern struct kernel_counters kernel_counters;

/* ---- spin locks ---------------------------------------------------------- */

/*
 * The shim's own short locks: real ones, since dom0 runs on several threads.
 * They are not the driver's, so they do not count as atomic context; nothing
 * below one of them calls the driver or sleeps. Usable in any context: no
 * interrupt arrives while code runs that does not ask for it.
 */
struct shim_lock {
	u32 held;
};

static inline void shim_lock(struct shim_lock *lock)
{
	while (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&lock->held, __ATOMIC_RELAXED))
			asm volatile("pause");
}

/* As shim_lock, but gives up where a dead thread holds it. */
static inline bool shim_lock_patiently(struct shim_lock *lock)
{
	u32 tries = 0;

	while (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE)) {
		if (++tries == 100 * 1000 * 1000)
			return false;
		asm volatile("pause");
	}
	return true;
}

static inline void shim_unlock(struct shim_lock *lock)
{
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

/* ---- memory.c ------------------------------------------------------------ */

void memory_setup(void);
void *shim_zalloc(size_t size);
/* `count` contiguous frames aligned to `align` frames; NULL: out of memory. */
struct page *frames_allocate(unsigned long count, unsigned long align);
void frames_free(struct page *page);
/* True once for the allocation that kernel_fail_allocation() chose. */
bool allocation_fails(void);

/* ---- percpu.c ------------------------------------------------------------ */

void percpu_setup(void);
static inline unsigned int this_cpu(void)
{
	return raw_smp_processor_id();
}

/* ---- task.c: cooperative tasks, the base of sleeping ----------------------- */

void task_setup(void);
/* Sleeps until the virtual time `deadline`; others run meanwhile. */
void task_sleep_until(u64 deadline);
/* Lets others run for a short while: the step of every loop that waits. */
void task_wait_step(const char *what, u64 since);
/* Runs all that is due now; no time passes. For ends of entry points. */
void task_run_due(void);
/* Complains if the context may not sleep. */
void task_may_sleep(const char *what);

/* ---- time.c --------------------------------------------------------------- */

u64 time_now(void);
/* Moves the clock; runs nothing. */
void time_advance(u64 ns);
/* Runs the timers that are due; nonzero if any ran. */
bool timers_run(void);
/* When the next timer is due in ns, or U64_MAX. */
u64 timers_next(void);

/* ---- work.c --------------------------------------------------------------- */

/* Takes the next pending work and runs it in the calling task; false: none. */
bool work_run_one(void);
bool work_pending_any(void);
void work_setup(void);

/* ---- irq.c ---------------------------------------------------------------- */

extern struct kernel_irq_state irq_state;
/* Takes the device's interrupt if it is asserted and may be taken; then softirqs. */
bool irq_poll(void);
/* True where interrupts and softirqs may run: task context, vif set. */
bool irq_allowed(void);

/* ---- pci.c, netdev.c ------------------------------------------------------- */

extern struct pci_dev *pci_device;
void pci_setup(void);
extern struct net_device *net_device;           /* the registered one */
int netdev_open(struct net_device *dev);
void netdev_close(struct net_device *dev);
void netdev_setup(void);
void netdev_rx_mode(struct net_device *dev);

/* ---- receive.c ------------------------------------------------------------- */

void receive_setup(void);
extern struct kernel_rx_ring *rx_ring;

/* ---- bridge.c -------------------------------------------------------------- */

/* A frame from the card, as host_receive() has it: true if the bridge holds it. */
bool bridge_receive(void *data, u32 length, struct sk_buff *skb, u32 flags);

/* ---- params.c -------------------------------------------------------------- */

int params_parse(const struct kernel_param *first, unsigned int count, const char *arguments);

/* ---- hot.o ------------------------------------------------------------------ */

int hot_setup(struct net_device *dev);
u32 hot_poll(u32 budget);
u32 hot_pending(void);
DECLARE_PER_CPU(u32, hot_vif);

#endif
