// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Processors that come and go while a device is attached.
 *
 * None goes. A block maps a page of its processor's Xen stack, which Xen may free when the
 * processor is offline (smpboot.c, cpu_smpboot_free); and a tasklet scheduled on it would be
 * put into a list in memory that is gone (percpu.c, free_percpu_area). So cpu_down gives -EPERM:
 * with -EBUSY, which it has for another processor on its way, xen-hptool tries again for ever.
 * Suspending the machine takes all processors but one offline, so it ends with that error, too.
 *
 * One may come. It has no block, so no driver code runs there: what it finds to do is left to
 * the tasklet (xen_vif_try), as where the lock is taken. So it is on processors with numbers of
 * TWIN_XEN_CPUS and more, of which there may be any number.
 *
 *   cpu_down, any processor              attach, any other
 *   -----------------------              -----------------
 *   going += 1                           kept = 1
 *   kept? then no                        going? then no
 *   offline                              blocks for those that are online
 *   going -= 1                           ... detached: kept = 0
 *
 * Each writes its own word before it reads the other's, in the order that all processors see
 * (SDM vol. 3, 9.2.3.4: a locked instruction is between them), so at least one of them sees
 * the other.
 */
#include "platform.h"

static uint32_t going;
static uint32_t kept;

bool xen_processors_keep(void)
{
	__atomic_exchange_n(&kept, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&going, __ATOMIC_SEQ_CST))
		return true;
	xen_processors_release();
	return false;
}

void xen_processors_release(void)
{
	__atomic_store_n(&kept, 0, __ATOMIC_RELEASE);
}

/* In a tasklet of processor 0's, for a hypercall of dom0's or a suspension. */
static int cpu_down(unsigned int processor)
{
	int result = -XEN_EPERM;

	__atomic_fetch_add(&going, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&kept, __ATOMIC_SEQ_CST))
		printk(XEN_WARNING "twin: processor %u stays online: a device is attached, "
		       "detach it first\n", processor);
	else
		result = twin_original_cpu_down(processor);
	__atomic_fetch_sub(&going, 1, __ATOMIC_RELEASE);
	return result;
}
XEN_REPLACE(cpu_down, cpu_down);
