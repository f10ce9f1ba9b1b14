// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tests of the hot routines: locks and the virtual interrupt flag.
 */
#include "common.h"

static DEFINE_SPINLOCK(counter_lock);
static volatile u64 counter_value;

static void count_up(u32 cpu)
{
	unsigned long flags;
	u32 i;

	for (i = 0; i < 200000; i++) {
		if (i & 1) {
			spin_lock(&counter_lock);
			counter_value = counter_value + 1;
			spin_unlock(&counter_lock);
		} else {
			spin_lock_irqsave(&counter_lock, flags);
			counter_value = counter_value + 1;
			spin_unlock_irqrestore(&counter_lock, flags);
		}
	}
	CHECK(preempt_count() == 0);
}

void test_locks_exclude(void)
{
	begin();
	counter_value = 0;
	test_two_cpus(count_up);
	CHECK(counter_value == 400000 && !spin_is_locked(&counter_lock));
	nothing_lost();
}

void test_virtual_interrupt_flag(void)
{
	unsigned long outer, inner;

	begin();
	CHECK(this_cpu_read(hot_vif) == 1);
	spin_lock_irqsave(&counter_lock, outer);
	CHECK(this_cpu_read(hot_vif) == 0 && spin_is_locked(&counter_lock));
	CHECK(preempt_count() == 1);
	spin_lock_irqsave(&driver->txq._xmit_lock, inner);
	spin_unlock_irqrestore(&driver->txq._xmit_lock, inner);
	CHECK(this_cpu_read(hot_vif) == 0);
	spin_unlock_irqrestore(&counter_lock, outer);
	CHECK(this_cpu_read(hot_vif) == 1 && !spin_is_locked(&counter_lock));
	nothing_lost();
}
