// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Processors that go offline beside a device that is attached: platform/xen/hotplug.c, in
 * every order that one thread can make, and by two that race.
 */
#include <pthread.h>

#include "../platform/xen/platform.h"
#include "test.h"

#include "../platform/xen/hotplug.c"

static uint32_t downs, said;
/* What attach does while a processor is on its way. */
static void (*meanwhile)(void);

void printk(const char *format, ...)
{
	(void)format;
	said++;
}

int twin_original_cpu_down(unsigned int processor)
{
	CHECK_EQUAL(processor, 1);
	downs++;
	if (meanwhile)
		meanwhile();
	return 0;
}

static void begin(void)
{
	downs = said = 0;
	meanwhile = NULL;
	xen_processors_release();
}

static void a_processor_goes_when_nothing_is_attached(void)
{
	begin();
	CHECK_EQUAL(cpu_down(1), 0);
	CHECK_EQUAL(downs, 1);
	CHECK(xen_processors_keep());
	xen_processors_release();
	CHECK_EQUAL(cpu_down(1), 0);
	CHECK_EQUAL(downs, 2);
	CHECK_EQUAL(said, 0);
}

static void none_goes_while_a_device_is_attached(void)
{
	begin();
	CHECK(xen_processors_keep());
	CHECK_EQUAL(cpu_down(1), -XEN_EPERM);
	CHECK_EQUAL(cpu_down(1), -XEN_EPERM);
	CHECK_EQUAL(downs, 0);
	CHECK_EQUAL(said, 2);
	xen_processors_release();
}

static void attach_in_between(void)
{
	CHECK(!xen_processors_keep());
}

/* It may go: attach has to wait, and keeps nobody when it was refused. */
static void nothing_is_attached_while_one_goes(void)
{
	begin();
	meanwhile = attach_in_between;
	CHECK_EQUAL(cpu_down(1), 0);
	meanwhile = NULL;
	CHECK_EQUAL(cpu_down(1), 0);
	CHECK_EQUAL(downs, 2);
	CHECK(xen_processors_keep());
	xen_processors_release();
}

/* ---- Two processors ---------------------------------------------------------------------- */

/* Written by one thread and read by the other, each where it believes that the other is not. */
static uint32_t attached, half_down;
static uint32_t attachments, stop;

static void go_down(void)
{
	CHECK_EQUAL(attached, 0);
	half_down = 1;
	half_down = 0;
}

static void *attach_and_detach(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (!xen_processors_keep())
			continue;
		CHECK_EQUAL(half_down, 0);
		attached = 1;
		attached = 0;
		__atomic_fetch_add(&attachments, 1, __ATOMIC_RELAXED);
		xen_processors_release();
	}
	return unused;
}

/* Until each has been there often. */
static void they_are_never_both_there(void)
{
	pthread_t thread;

	begin();
	meanwhile = go_down;
	CHECK_EQUAL(pthread_create(&thread, NULL, attach_and_detach, NULL), 0);
	while (downs < 20000 || __atomic_load_n(&attachments, __ATOMIC_RELAXED) < 20000)
		cpu_down(1);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

int main(void)
{
	RUN(a_processor_goes_when_nothing_is_attached);
	RUN(none_goes_while_a_device_is_attached);
	RUN(nothing_is_attached_while_one_goes);
	RUN(they_are_never_both_there);
	return test_summary();
}
