// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * dom0's commands (<twin/xen.h>), beside Xen's own of the hypercall hypfs_op.
 *
 * Structs are copied in, judged, and copied out, by Xen's own routines for its caller's
 * memory. One command at a time: the larger structs here are static. A second caller gets
 * -EAGAIN.
 *
 * Attach and detach write page tables that all processors use, and stop them for it. Only
 * an idle virtual processor may do that: Xen lets a hypercall go on there, with the caller
 * paused and the result for it. Where that is not possible at once it goes on there again, behind
 * what else there is to do: whoever stops the processors now needs this one.
 */
#include "platform.h"

long twin_original_do_hypfs_op(unsigned int number, void *first, unsigned long second, void *third, unsigned long fourth);
int continue_hypercall_on_cpu(unsigned int processor, long (*function)(void *), void *data);

#ifdef TWIN_XEN_TEST
/* tests/xen-faults/platform.c */
long xen_test(unsigned int number, uint64_t argument);
#endif

static uint32_t busy;
static bool going_on;		/* the command ends elsewhere; written by its owner */
static struct twin_xen_status status;

bool xen_command_begin(void)
{
	return !__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE);
}

void xen_command_end(void)
{
	going_on = false;
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

bool xen_commanded(void)
{
	return __atomic_load_n(&busy, __ATOMIC_ACQUIRE);
}

/* ---- The second half ---------------------------------------------------------- */

/* `again` is the function that Xen calls, which is this one's caller. */
static long finish(long (*half)(void), long (*again)(void *))
{
	long result = half();

	if (result == XEN_LATER) {
		result = continue_hypercall_on_cpu(xen_processor(), again, NULL);
		/* The caller's result is what that gives. */
		if (!result)
			return 0;
	}
	xen_command_end();
	return result;
}

static long finish_attach(void *unused)
{
	(void)unused;
	return finish(xen_attach_finish, finish_attach);
}

static long finish_detach(void *unused)
{
	(void)unused;
	return finish(xen_detach_finish, finish_detach);
}

/* Its result is the hypercall's. The processor that attaches is the driver's home
 * (interrupt.c), so it is one of those that have a block. */
static long go_on(long (*half)(void *))
{
	const uint32_t here = xen_processor();
	const long error = continue_hypercall_on_cpu(here < TWIN_XEN_CPUS ? here : 0, half, NULL);

	going_on = !error;
	return error;
}

/* ---- Commands -------------------------------------------------------------------- */

/* Copy a struct in; 0 or -errno. */
static long fetch(void *to, const void *from, uint32_t size)
{
	const struct twin_xen_header *header = to;

	if (copy_from_guest_pv(to, from, sizeof(*header)))
		return -XEN_EFAULT;
	if (header->version != TWIN_XEN_VERSION || header->size != size)
		return -XEN_EINVAL;
	return copy_from_guest_pv(to, from, size) ? -XEN_EFAULT : 0;
}

static long store(void *to, const void *from, uint32_t size)
{
	return copy_to_guest_pv(to, from, size) ? -XEN_EFAULT : 0;
}

static uint32_t state(void)
{
	if (!xen_occupied())
		return TWIN_XEN_DETACHED;
	return twin_instance_report(&xen_instance) ? TWIN_XEN_DEAD : TWIN_XEN_ATTACHED;
}

static long do_info(void *argument)
{
	struct twin_xen_info info;
	long error = fetch(&info, argument, sizeof(info));

	if (error)
		return error;
	info.state = state();
	info.processors = xen_processors();
	memcpy(info.reason, xen_reason, sizeof(info.reason));
	return store(argument, &info, sizeof(info));
}

static long do_attach(void *argument)
{
	struct twin_xen_attach attach;
	long error = fetch(&attach, argument, sizeof(attach));

	if (error)
		return error;
	error = xen_attach_begin(&attach);
	if (error)
		return error;
	error = go_on(finish_attach);
	if (error)
		xen_attach_abandon();
	return error;
}

static long do_detach(void *argument)
{
	struct twin_xen_detach detach;
	long error = fetch(&detach, argument, sizeof(detach));

	if (!error)
		error = xen_detach_begin(detach.stopped);
	return error ? error : go_on(finish_detach);
}

static long do_vif(void *argument, bool connect)
{
	struct twin_xen_vif vif;
	long error = fetch(&vif, argument, sizeof(vif));

	if (error)
		return error;
	if (!xen_attached())
		return -XEN_ENOENT;
	if (!xen_lock_patiently())
		return -XEN_EAGAIN;
	error = connect ? xen_vif_connect(&vif) : xen_vif_disconnect(vif.domain, vif.handle);
	xen_unlock();
	return error;
}

static long do_status(void *argument)
{
	struct twin_statistics statistics;
	long error = fetch(&status, argument, sizeof(status));
	const struct twin_xen_header header = status.header;
	uint32_t i;

	if (error)
		return error;
	status = xen_counts;
	for (i = 0; i < TWIN_XEN_CPUS; i++)
		status.processor_entries[i] = xen_seen[i].entries;
	status.header = header;
	status.state = state();
	status.stages = xen_stages;
	status.waits = xen_upcall_waits();
	twin_instance_statistics(&xen_instance, &statistics);
	status.entries = statistics.entries;
	status.imports = statistics.imports;
	status.aborts = statistics.aborts;
	xen_bridge_status(&status);
	xen_dma_status(&status);
	xen_vif_status(&status);
	return store(argument, &status, sizeof(status));
}

static long do_upcall(void *argument)
{
	struct twin_xen_upcall call;
	long error = fetch(&call, argument, sizeof(call));

	if (!error)
		error = xen_upcall_fetch(&call);
	return error ? error : store(argument, &call, sizeof(call));
}

static long do_answer(void *argument)
{
	struct twin_xen_answer answer;
	const long error = fetch(&answer, argument, sizeof(answer));

	return error ? error : xen_upcall_answer(&answer);
}

static long command(unsigned int number, void *argument)
{
	switch (number) {
	case TWIN_XEN_INFO:
		return do_info(argument);
	case TWIN_XEN_ATTACH:
		return do_attach(argument);
	case TWIN_XEN_DETACH:
		return do_detach(argument);
	case TWIN_XEN_CONNECT:
		return do_vif(argument, true);
	case TWIN_XEN_DISCONNECT:
		return do_vif(argument, false);
	case TWIN_XEN_STATUS:
		return do_status(argument);
	case TWIN_XEN_UPCALL:
		return do_upcall(argument);
	case TWIN_XEN_ANSWER:
		return do_answer(argument);
#ifdef TWIN_XEN_TEST
	default:
		return xen_test(number, (uint64_t)argument);
#else
	default:
		return -XEN_ENOSYS;
#endif
	}
}

/* Xen's own are few and small (xen/include/public/hypfs.h). */
static bool is_ours(unsigned int number)
{
	return number >> 16 == TWIN_XEN_INFO >> 16;
}

static long ours(unsigned int number, void *argument)
{
	long result;

	if (xen_domain_of(xen_current()) != hardware_domain)
		return -XEN_EPERM;
	if (!xen_command_begin())
		return -XEN_EAGAIN;
	result = command(number, argument);
	if (!going_on)
		xen_command_end();
	return result;
}

/* Those of `xenhypfs` and `xl set-parameters` are Xen's, from any domain. */
static long hypercall(unsigned int number, void *argument, unsigned long second, void *third, unsigned long fourth)
{
	return is_ours(number) ? ours(number, argument) :
				 twin_original_do_hypfs_op(number, argument, second, third, fourth);
}
XEN_REPLACE(do_hypfs_op, hypercall);
