// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A write through the window on another processor, of test builds alone: a tasklet does there
 * what every access of the platform does, in whatever page table is loaded.
 */
#include "../../platform/xen/platform.h"
#include "retype.h"

void tasklet_schedule_on_cpu(struct xen_tasklet *tasklet, unsigned int processor);
int64_t get_s_time(void);

#define PATIENCE 10000000000ll	/* ns: emulators on busy machines */

/* One at a time: hypercall.c. A tasklet that was late owns both until it has run. */
static struct xen_retype job;
static struct xen_tasklet tasklet;
static bool initialised;
static uint32_t done = 1;
static bool written;
static uint32_t staying_out = ~0u;

/* alias.c: whether this processor does not join the mask, and leaves it. */
bool xen_test_stays_out(uint64_t *mask, uint64_t bit)
{
	if (xen_processor() != staying_out)
		return false;
	__atomic_fetch_and(mask, ~bit, __ATOMIC_SEQ_CST);
	return true;
}

static void work(void *unused)
{
	(void)unused;
	staying_out = job.stay_out ? job.processor : ~0u;
	/* It is asked about the mask, whatever is known of it. */
	xen_seen[job.processor].root = 0;
	written = xen_dom0_write(job.address, &job.value, sizeof(job.value));
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}

static bool wait(void)
{
	const int64_t end = get_s_time() + PATIENCE;

	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		if (get_s_time() > end)
			return false;
		__asm__ volatile("pause");
	}
	return true;
}

/* [dom0] */
long xen_test_write(const void *argument)
{
	if (!xen_attached() || !wait())
		return -XEN_EAGAIN;
	if (copy_from_guest_pv(&job, argument, sizeof(job)))
		return -XEN_EFAULT;
	if (job.processor >= xen_processors() || (job.stay_out && job.processor == xen_processor()))
		return -XEN_EINVAL;
	if (!initialised)
		softirq_tasklet_init(&tasklet, work, NULL);
	initialised = true;
	if (job.processor == xen_processor()) {
		work(NULL);
		return written ? XEN_RETYPE_WRITTEN : XEN_RETYPE_REFUSED;
	}
	__atomic_store_n(&done, 0, __ATOMIC_RELEASE);
	tasklet_schedule_on_cpu(&tasklet, job.processor);
	if (!wait())
		return -XEN_EAGAIN;
	return written ? XEN_RETYPE_WRITTEN : XEN_RETYPE_REFUSED;
}
