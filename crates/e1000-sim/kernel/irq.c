// SPDX-License-Identifier: GPL-2.0-only
/*
 * irq.c: the device's interrupt line, natively served, and softirqs after it.
 *
 * One line, level triggered. `irq_state` is read by the hypervisor too, which
 * runs the rewritten handler by the same rules: not while depth > 0, and with
 * `running` taken, so that synchronize_irq() waits for either.
 */
#include <linux/interrupt.h>

#include "shim.h"

/* Unclaimed interrupts in a row after which the line is given up. */
#define STORM 100000
#define SOFTIRQ_BUDGET 300
/* Virtual time of an interrupt, so that the clock advances during a storm. */
#define INTERRUPT_NS 1000

/* Disabled until it is requested. */
struct kernel_irq_state irq_state = { .depth = 1 };
static u64 unclaimed;

static void irq_check(unsigned int irq, const char *function)
{
	if (irq != boot.irq)
		kernel_unsupported(function, "irq %u: the only line is %u", irq, boot.irq);
}

static u32 depth_add(int by)
{
	return __atomic_add_fetch(&irq_state.depth, by, __ATOMIC_SEQ_CST);
}

int request_threaded_irq(unsigned int irq, irq_handler_t handler, irq_handler_t thread,
			 unsigned long flags, const char *name, void *dev_id)
{
	irq_check(irq, __func__);
	if (thread || !handler)
		kernel_unsupported(__func__, "%s: threaded handlers", name);
	if (irq_state.handler)
		return -EBUSY;
	irq_state.dev_id = (u64)dev_id;
	WRITE_ONCE(irq_state.handler, (u64)handler);
	unclaimed = 0;
	depth_add(-1);
	host_event(KERNEL_EVENT_IRQ_REQUESTED, irq);
	return 0;
}

static void irq_wait(const char *what)
{
	u64 rounds = 0;

	while (__atomic_load_n(&irq_state.running, __ATOMIC_ACQUIRE)) {
		host_idle();
		if (++rounds > 100 * 1000 * 1000)
			kernel_bug("%s: the handler does not end", what);
	}
}

const void *free_irq(unsigned int irq, void *dev_id)
{
	irq_check(irq, __func__);
	if (!irq_state.handler || irq_state.dev_id != (u64)dev_id) {
		kernel_complain("free_irq(%u): not requested with %p", irq, dev_id);
		return NULL;
	}
	depth_add(1);
	irq_wait(__func__);
	WRITE_ONCE(irq_state.handler, 0);
	irq_state.dev_id = 0;
	host_event(KERNEL_EVENT_IRQ_FREED, irq);
	return NULL;
}

void synchronize_irq(unsigned int irq)
{
	irq_check(irq, __func__);
	irq_wait(__func__);
}

void disable_irq_nosync(unsigned int irq)
{
	irq_check(irq, __func__);
	depth_add(1);
	host_event(KERNEL_EVENT_IRQ_DISABLED, irq);
}

bool disable_hardirq(unsigned int irq)
{
	disable_irq_nosync(irq);
	irq_wait(__func__);
	return true;
}

void disable_irq(unsigned int irq)
{
	disable_hardirq(irq);
}

void enable_irq(unsigned int irq)
{
	irq_check(irq, __func__);
	if (!READ_ONCE(irq_state.depth)) {
		kernel_complain("enable_irq(%u): it is enabled already", irq);
		return;
	}
	if (!depth_add(-1))
		host_event(KERNEL_EVENT_IRQ_ENABLED, irq);
}

/* ---- Delivery ---------------------------------------------------------------- */

static irqreturn_t irq_call(void)
{
	irq_handler_t handler = (irq_handler_t)irq_state.handler;
	irqreturn_t result;
	int count;

	this_cpu_write(hot_vif, 0);
	__preempt_count_add(HARDIRQ_OFFSET);
	count = preempt_count();
	result = handler(boot.irq, (void *)irq_state.dev_id);
	if (preempt_count() != count)
		kernel_bug("irq: the handler left preempt_count %#x for %#x", preempt_count(), count);
	__preempt_count_sub(HARDIRQ_OFFSET);
	this_cpu_write(hot_vif, 1);
	return result;
}

static void irq_account(irqreturn_t result)
{
	if (result != IRQ_NONE) {
		irq_state.count++;
		unclaimed = 0;
		return;
	}
	irq_state.spurious++;
	if (++unclaimed < STORM)
		return;
	kernel_complain("irq %u: nobody cared, disabled", boot.irq);
	depth_add(1);
}

static void softirq_run(void)
{
	if (irq_allowed() && hot_pending())
		hot_poll(SOFTIRQ_BUDGET);
}

long kernel_interrupt(u32 irq)
{
	irqreturn_t result = IRQ_NONE;
	u32 free = 0;

	irq_check(irq, __func__);
	if (!this_cpu_read(hot_vif) || in_hardirq())
		return -EAGAIN;
	if (!__atomic_compare_exchange_n(&irq_state.running, &free, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return -EAGAIN;
	/* After `running` is taken: a disabler waits for it from now on. */
	if (__atomic_load_n(&irq_state.depth, __ATOMIC_SEQ_CST) || !irq_state.handler) {
		__atomic_store_n(&irq_state.running, 0, __ATOMIC_RELEASE);
		return -EAGAIN;
	}
	time_advance(INTERRUPT_NS);
	result = irq_call();
	irq_account(result);
	__atomic_store_n(&irq_state.running, 0, __ATOMIC_RELEASE);
	softirq_run();
	return result != IRQ_NONE;
}

/* As when it comes while bottom halves are off. */
long kernel_handle(u32 irq)
{
	long result;

	__preempt_count_add(SOFTIRQ_OFFSET);
	result = kernel_interrupt(irq);
	__preempt_count_sub(SOFTIRQ_OFFSET);
	return result;
}

bool irq_poll(void)
{
	bool did = false;

	if (!irq_allowed())
		return false;
	if (host_interrupt_pending(boot.irq))
		did = kernel_interrupt(boot.irq) == 1;
	if (hot_pending()) {
		softirq_run();
		did = true;
	}
	return did;
}
