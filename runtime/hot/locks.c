// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Spin locks that dom0 and the hypervisor share (paper, 4.4).
 *
 * The word is the kernel's raw_spinlock_t, its low byte 1 while taken. Waiters
 * spin on it: there is no queue, since a queue's nodes would be in memory of one
 * process that the other cannot reach. Interrupts are dom0's virtual ones: a flag
 * for each CPU, not the processor's.
 */
#include "internal.h"
#include <linux/spinlock.h>
#include <asm/processor-flags.h>

DEFINE_PER_CPU(u32, hot_vif) = 1;
DEFINE_PER_CPU(u32, hot_vif_pending);

/*
 * A holder in dom0 may be a virtual processor that does not run, of this very processor
 * even, and never will while the hypervisor spins. Such a wait ends the driver.
 */
#define HOT_SPINS (1u << 26)

static __always_inline void hot_raw_lock(raw_spinlock_t *lock)
{
	atomic_t *word = &lock->raw_lock.val;
	u32 spins = 0;

	while (atomic_cmpxchg(word, 0, 1) != 0)
		while (atomic_read(word)) {
			cpu_relax();
			if (unlikely(++spins == HOT_SPINS))
				BUG();
		}
}

static __always_inline void hot_raw_unlock(raw_spinlock_t *lock)
{
	smp_store_release(&lock->raw_lock.locked, 0);
}

void _raw_spin_lock(raw_spinlock_t *lock)
{
	__preempt_count_add(1);
	hot_raw_lock(lock);
}

void _raw_spin_unlock(raw_spinlock_t *lock)
{
	hot_raw_unlock(lock);
	__preempt_count_sub(1);
}

/* Returns the value that the flags register would have: IF or not. */
unsigned long _raw_spin_lock_irqsave(raw_spinlock_t *lock)
{
	unsigned long flags = this_cpu_read(hot_vif) ? X86_EFLAGS_IF : 0;

	this_cpu_write(hot_vif, 0);
	_raw_spin_lock(lock);
	return flags;
}

void _raw_spin_unlock_irqrestore(raw_spinlock_t *lock, unsigned long flags)
{
	_raw_spin_unlock(lock);
	if (flags & X86_EFLAGS_IF)
		this_cpu_write(hot_vif, 1);
}
