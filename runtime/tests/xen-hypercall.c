// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * dom0's commands that go on elsewhere: platform/xen/hypercall.c, with processors that cannot be
 * stopped at once. Xen's part of it is played: it calls what it was given, later.
 */
#include <string.h>

#include "../platform/xen/platform.h"
#include "test.h"
#include "xen-stack.h"

#include "../platform/xen/hypercall.c"

/* ---- What stands for Xen and the rest of the platform ------------------------------------------ */

const uint64_t twin_value_cpu_info_processor_id = 8;
const uint64_t twin_value_cpu_info_current_vcpu = 16;
const uint64_t twin_value_vcpu_domain = 0;
static uint64_t domain0, vcpu[1] = { (uint64_t)&domain0 };
struct domain *hardware_domain = (struct domain *)&domain0;
struct xen_device xen_device;
struct twin_xen_status xen_counts;
struct xen_seen xen_seen[TWIN_XEN_CPUS];
struct twin_instance xen_instance;
char xen_reason[TWIN_XEN_REASON];

/* What Xen is to call, and whether it cannot. */
static long (*next)(void *);
static bool no_memory;

#define XENS 77		/* what Xen's own hypercall gives */
#define HYPFS_READ 1u	/* XEN_HYPFS_OP_read */

long twin_original_do_hypfs_op(unsigned int number, void *first, unsigned long second, void *third, unsigned long fourth)
{
	CHECK_EQUAL(number, HYPFS_READ);
	CHECK(first == &vcpu[0]);
	CHECK_EQUAL(second, 5);
	CHECK(third == &xen_counts);
	CHECK_EQUAL(fourth, 9);
	return XENS;
}

int continue_hypercall_on_cpu(unsigned int processor, long (*function)(void *), void *data)
{
	CHECK_EQUAL(processor, 0);
	CHECK(!data);
	CHECK(!next);
	if (no_memory)
		return -XEN_ENOMEM;
	next = function;
	return 0;
}

/* In its tasklet, behind others. */
static long let_go_on(void)
{
	long (*function)(void *) = next;

	CHECK(function);
	next = NULL;
	return function(NULL);
}

unsigned int copy_from_guest_pv(void *to, const void *from, unsigned int bytes)
{
	memcpy(to, from, bytes);
	return 0;
}

unsigned int copy_to_guest_pv(void *to, const void *from, unsigned int bytes)
{
	memcpy(to, from, bytes);
	return 0;
}

static uint32_t later, finished;	/* so often the processors cannot be stopped */
static long result;

static long finish_something(void)
{
	if (later) {
		later--;
		return XEN_LATER;
	}
	finished++;
	return result;
}

static uint32_t begun;	/* attachments, neither finished nor given up */

long xen_attach_begin(const struct twin_xen_attach *given)
{
	(void)given;
	begun++;
	return 0;
}

void xen_attach_abandon(void)
{
	begun--;
}

long xen_attach_finish(void)
{
	begun -= !later;
	return finish_something();
}

long xen_detach_begin(bool stopped)
{
	(void)stopped;
	return 0;
}

long xen_detach_finish(void)
{
	return finish_something();
}

bool xen_occupied(void)
{
	return false;
}

uint32_t xen_processors(void)
{
	return 1;
}

bool xen_lock_patiently(void)
{
	return true;
}

void xen_unlock(void)
{
}

long xen_vif_connect(const struct twin_xen_vif *vif)
{
	(void)vif;
	return 0;
}

long xen_vif_disconnect(uint32_t domain, uint32_t handle)
{
	(void)domain;
	(void)handle;
	return 0;
}

void xen_vif_status(struct twin_xen_status *counts)
{
	(void)counts;
}

void xen_bridge_status(struct twin_xen_status *counts)
{
	(void)counts;
}

void xen_dma_status(struct twin_xen_status *counts)
{
	(void)counts;
}

static bool waiting;	/* the driver, for dom0 */

bool xen_upcall_waits(void)
{
	return waiting;
}

long xen_upcall_fetch(struct twin_xen_upcall *call)
{
	(void)call;
	return 0;
}

long xen_upcall_answer(const struct twin_xen_answer *answer)
{
	(void)answer;
	return 0;
}

const struct twin_abort_report *twin_instance_report(const struct twin_instance *instance)
{
	(void)instance;
	return NULL;
}

void twin_instance_statistics(const struct twin_instance *instance, struct twin_statistics *statistics)
{
	(void)instance;
	memset(statistics, 0, sizeof(*statistics));
}

/* ---- Tests --------------------------------------------------------------------------------------- */

static struct twin_xen_attach device = {
	.header = { .version = TWIN_XEN_VERSION, .size = sizeof(device) },
};
static struct twin_xen_detach whole = {
	.header = { .version = TWIN_XEN_VERSION, .size = sizeof(whole) },
};

static long ask_info(void)
{
	struct twin_xen_info info = {
		.header = { .version = TWIN_XEN_VERSION, .size = sizeof(info) },
	};

	return ours(TWIN_XEN_INFO, &info);
}

/* Until the second half is done no other command is. */
static void goes_on(unsigned int number, void *argument, uint32_t tries, long wanted)
{
	finished = 0;
	later = tries;
	result = wanted;
	CHECK_EQUAL(ours(number, argument), 0);
	for (; tries; tries--) {
		CHECK_EQUAL(ask_info(), -XEN_EAGAIN);
		CHECK(xen_commanded());
		CHECK_EQUAL(let_go_on(), 0);
		CHECK_EQUAL(finished, 0);
	}
	CHECK_EQUAL(ask_info(), -XEN_EAGAIN);
	CHECK_EQUAL(let_go_on(), wanted);
	CHECK_EQUAL(finished, 1);
	CHECK(!next);
	CHECK(!xen_commanded());
	CHECK_EQUAL(ask_info(), 0);
}

static void commands_go_on_until_they_are_done(void)
{
	goes_on(TWIN_XEN_ATTACH, &device, 0, 0);
	goes_on(TWIN_XEN_ATTACH, &device, 0, -XEN_EINVAL);
	goes_on(TWIN_XEN_ATTACH, &device, 3, -XEN_ENOMEM);
	goes_on(TWIN_XEN_DETACH, &whole, 0, 0);
	goes_on(TWIN_XEN_DETACH, &whole, 3, 0);
}

static void a_command_that_cannot_go_on_is_over(void)
{
	no_memory = true;
	CHECK_EQUAL(ours(TWIN_XEN_DETACH, &whole), -XEN_ENOMEM);
	CHECK_EQUAL(ask_info(), 0);
	/* What the first half of an attachment has is let go of. */
	CHECK_EQUAL(ours(TWIN_XEN_ATTACH, &device), -XEN_ENOMEM);
	CHECK_EQUAL(begun, 0);
	CHECK_EQUAL(ask_info(), 0);
	no_memory = false;
	later = 1;
	CHECK_EQUAL(ours(TWIN_XEN_DETACH, &whole), 0);
	no_memory = true;
	CHECK_EQUAL(let_go_on(), -XEN_ENOMEM);
	CHECK_EQUAL(ask_info(), 0);
	no_memory = false;
	goes_on(TWIN_XEN_DETACH, &whole, 0, 0);
}

/* The payload takes the place of a hypercall that `xenhypfs` and `xl set-parameters` use; also while another command
 * goes on. */
static void xens_own_commands_are_xens(void)
{
	CHECK_EQUAL(hypercall(HYPFS_READ, &vcpu[0], 5, &xen_counts, 9), XENS);
	CHECK(xen_command_begin());
	CHECK_EQUAL(hypercall(HYPFS_READ, &vcpu[0], 5, &xen_counts, 9), XENS);
	CHECK_EQUAL(hypercall(TWIN_XEN_INFO, NULL, 0, NULL, 0), -XEN_EAGAIN);
	xen_command_end();
	CHECK_EQUAL(hypercall(TWIN_XEN_ANSWER + 1, NULL, 0, NULL, 0), -XEN_ENOSYS);
}

/* By it dom0 tells a driver that waits for its kernel from a card that hangs. */
static void the_status_says_whether_the_driver_waits(void)
{
	struct twin_xen_status told = {
		.header = { .version = TWIN_XEN_VERSION, .size = sizeof(told) },
	};

	CHECK_EQUAL(ours(TWIN_XEN_STATUS, &told), 0);
	CHECK_EQUAL(told.waits, 0);
	waiting = true;
	CHECK_EQUAL(ours(TWIN_XEN_STATUS, &told), 0);
	CHECK_EQUAL(told.waits, 1);
	waiting = false;
}

static void on_stack(void)
{
	RUN(commands_go_on_until_they_are_done);
	RUN(a_command_that_cannot_go_on_is_over);
	RUN(xens_own_commands_are_xens);
	RUN(the_status_says_whether_the_driver_waits);
}

int main(void)
{
	on_xens_stack(on_stack, vcpu);
	return test_summary();
}
