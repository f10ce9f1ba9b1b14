// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Calls of dom0's kernel by the driver inside Xen.
 *
 * Xen raises a virtual interrupt; a thread of the kernel's (a work item) asks which routine is
 * called and with what, calls it, and gives Xen the result. The driver waits meanwhile, and
 * with it the interface. Softirqs are off around the call, since that is how the driver would
 * have been entered here: what it calls may not sleep.
 *
 * The routine's address is one that the payload's builder took from this kernel's symbols, for
 * an import of the driver. Pointers among the arguments are dom0's, as the driver has them.
 */
#include "dom0.h"
#include <linux/bottom_half.h>
#include <linux/interrupt.h>
#include <linux/workqueue.h>
#include <xen/events.h>
#include <xen/interface/xen.h>

typedef u64 routine(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, ...);

static int irq;
static atomic64_t answered;

/* Zeroes for a routine that has more arguments. */
static u64 call(const struct twin_xen_upcall *upcall)
{
	routine *function = (routine *)upcall->function;
	const u64 *argument = upcall->argument;
	u64 result;

	local_bh_disable();
	result = function(argument[0], argument[1], argument[2], argument[3], argument[4],
			  argument[5], 0ull, 0ull, 0ull, 0ull);
	local_bh_enable();
	return result;
}

static void answer(struct work_struct *unused)
{
	struct twin_xen_upcall upcall = {};

	while (!twin_xen_call_patiently(TWIN_XEN_UPCALL, &upcall, sizeof(upcall))) {
		struct twin_xen_answer answer = { .number = upcall.number, .rax = call(&upcall) };

		atomic64_inc(&answered);
		/* Refused if it comes too late: the driver was aborted. */
		if (twin_xen_call_patiently(TWIN_XEN_ANSWER, &answer, sizeof(answer)))
			TWIN_LOG(warn, "the answer to %pS came too late", (void *)upcall.function);
	}
}
static DECLARE_WORK(work, answer);

static irqreturn_t raised(int number, void *unused)
{
	queue_work(system_highpri_wq, &work);
	return IRQ_HANDLED;
}

/* Nothing sleeps in such a call, so none waits for RTNL. */
void twin_upcall_flush(void)
{
	flush_work(&work);
}

void twin_upcall_deaf(bool deaf)
{
	static bool is_deaf;

	if (deaf == is_deaf)
		return;
	is_deaf = deaf;
	if (deaf)
		disable_irq(irq);
	else
		enable_irq(irq);
}

u64 twin_upcalls_answered(void)
{
	return atomic64_read(&answered);
}

int twin_upcall_init(void)
{
	irq = bind_virq_to_irqhandler(TWIN_XEN_VIRQ, 0, raised, 0, "twin-upcall", NULL);
	return irq < 0 ? irq : 0;
}

void twin_upcall_exit(void)
{
	unbind_from_irqhandler(irq, NULL);
	flush_work(&work);
}
