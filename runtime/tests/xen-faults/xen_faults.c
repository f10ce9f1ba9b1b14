// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * dom0's side of the test: writes to the parameter `run` are hypercalls.
 *
 *   echo "NUMBER ADDRESS [on PROCESSOR]" >/sys/module/xen_faults/parameters/run
 *
 * runs function NUMBER of driver.S with ADDRESS (hexadecimal), or with the address of an
 * entry of dom0's own top-level page table for `table`; on that processor of the machine. Reading it gives the result: 0
 * returned, 1 aborted. Or it is a hash of Xen's text, for `hash`. Between `lock` and `unlock` Xen gives no device back.
 * `detach` has it give the device back behind twin_dom0's back, which nobody but a test does.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <asm/xen/hypercall.h>
#include <xen/interface/sched.h>
#include <twin/xen.h>

#include "retype.h"

#define FIRST 0x74776f00u
#define ENTRY 272	/* of dom0's half, and not used */

static long result;

/* Where this virtual processor runs; -1: where it did before. */
static int pin(int processor)
{
	struct sched_pin_override there = { .pcpu = processor };

	return HYPERVISOR_sched_op(SCHEDOP_pin_override, &there);
}

static long detach(void)
{
	struct twin_xen_detach detach = {
		.header = { .version = TWIN_XEN_VERSION, .size = sizeof(detach) }, .stopped = 1,
	};
	long error;

	while ((error = xen_single_call(TWIN_XEN_HYPERCALL, TWIN_XEN_DETACH, (unsigned long)&detach, 0, 0, 0)) == -EAGAIN)
		msleep(1);
	return error;
}

static int run(const char *text, const struct kernel_param *parameter)
{
	const char *where = strstr(text, "on ");
	unsigned long address = 0;
	unsigned int number;
	int processor;

	if (strstr(text, "detach")) {
		result = detach();
		return 0;
	}
	number = strstr(text, "hash") ? XEN_TEST_TEXT : strstr(text, "unlock") ? XEN_TEST_UNLOCK : strstr(text, "lock") ? XEN_TEST_LOCK : 0;
	if (number) {
		result = xen_single_call(TWIN_XEN_HYPERCALL, number, 0, 0, 0, 0);
		return 0;
	}
	if (sscanf(text, "%u %lx", &number, &address) < 1)
		return -EINVAL;
	if (strstr(text, "table"))
		address = (unsigned long)(current->active_mm->pgd + ENTRY);
	if (where && (sscanf(where, "on %d", &processor) != 1 || pin(processor)))
		return -EINVAL;
	result = xen_single_call(TWIN_XEN_HYPERCALL, FIRST + number, address, 0, 0, 0);
	if (where)
		pin(-1);
	return 0;
}

static int show(char *buffer, const struct kernel_param *parameter)
{
	return sprintf(buffer, "%ld\n", result);
}

static const struct kernel_param_ops operations = { .set = run, .get = show };
module_param_cb(run, &operations, NULL, 0600);
MODULE_DESCRIPTION("Faults of driver code inside Xen, for tests");
MODULE_LICENSE("Dual MIT/GPL");
