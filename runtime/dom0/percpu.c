// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Private copies of the static per-CPU area.
 *
 * On x86-64 the address of a per-CPU variable is its offset from the start of the area,
 * and %gs is that start (arch/x86/include/asm/percpu.h). A copy is made of processor
 * 0's area; what names its owner is then written anew.
 */
#include "dom0.h"
#include <linux/gfp.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched/task.h>
#include <linux/uaccess.h>
#include <linux/version.h>

/* What names the owner of an area: one structure in Linux 6.2 to 6.14 (asm/current.h), variables
 * of their own before and after. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define TWIN_CPU_NUMBER		(&pcpu_hot.cpu_number)
#define TWIN_PREEMPT_COUNT	(&pcpu_hot.preempt_count)
#define TWIN_CURRENT		(&pcpu_hot.current_task)
#else
#define TWIN_CPU_NUMBER		(&cpu_number)
#define TWIN_PREEMPT_COUNT	(&__preempt_count)
#define TWIN_CURRENT		(&current_task)
#endif

/* Static variables, and the 8 KiB after them that those of modules come from. */
#define TWIN_PERCPU_SIZE	(256u << 10)

static void *copies[TWIN_XEN_CPUS];

static void *in_copy(void *copy, const void __percpu *variable)
{
	return copy + (unsigned long)variable;
}

/* Whether a variable, and what is in it, lies in what is copied. */
static bool copied(const void __percpu *variable, size_t size)
{
	return (unsigned long)variable + size <= TWIN_PERCPU_SIZE;
}

static int fill(void *copy, u32 cpu, const struct twin_hot *hot)
{
	/* An area that is shorter is followed by another one, or by nothing: -EFAULT. */
	int error = copy_from_kernel_nofault(copy, (void *)per_cpu_offset(0), TWIN_PERCPU_SIZE);

	if (error)
		return error;
	*(int *)in_copy(copy, TWIN_CPU_NUMBER) = cpu;
	*(unsigned long *)in_copy(copy, &this_cpu_off) = (unsigned long)copy;
	*(int *)in_copy(copy, TWIN_PREEMPT_COUNT) = PREEMPT_ENABLED;
	/* Of all tasks it alone never ends. */
	*(struct task_struct **)in_copy(copy, TWIN_CURRENT) = &init_task;
	*(u32 *)in_copy(copy, hot->vif) = 1;
	*(u32 *)in_copy(copy, hot->vif_pending) = 0;
	return 0;
}

int twin_percpu_create(const struct twin_hot *hot)
{
	u32 cpu;
	int error;

	if (!copied(&softnet_data, sizeof(softnet_data)) || !copied(TWIN_CPU_NUMBER, sizeof(int)) ||
	    !copied(TWIN_PREEMPT_COUNT, sizeof(int)) || !copied(TWIN_CURRENT, sizeof(void *)) ||
	    !copied(hot->vif, sizeof(u32)) || !copied(hot->vif_pending, sizeof(u32))) {
		TWIN_LOG(err, "per-CPU data of this kernel lies beyond %u KiB", TWIN_PERCPU_SIZE >> 10);
		return -EOPNOTSUPP;
	}
	for (cpu = 0; cpu < TWIN_XEN_CPUS; cpu++) {
		if (!copies[cpu])
			copies[cpu] = (void *)__get_free_pages(GFP_KERNEL, get_order(TWIN_PERCPU_SIZE));
		if (!copies[cpu])
			return -ENOMEM;
		error = fill(copies[cpu], cpu, hot);
		if (error) {
			TWIN_LOG(err, "the per-CPU area of processor 0 cannot be read: %d", error);
			return error;
		}
	}
	return 0;
}

void twin_percpu_destroy(void)
{
	u32 cpu;

	for (cpu = 0; cpu < TWIN_XEN_CPUS; cpu++) {
		if (copies[cpu])
			free_pages((unsigned long)copies[cpu], get_order(TWIN_PERCPU_SIZE));
		copies[cpu] = NULL;
	}
}

u64 twin_percpu_base(u32 cpu)
{
	return (u64)copies[cpu];
}
