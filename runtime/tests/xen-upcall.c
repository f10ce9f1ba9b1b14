// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How long driver code may wait for dom0: platform/xen/upcall.c. The driver is a function that
 * calls a routine of dom0's each time that it goes on; dom0 answers, or does not.
 */
#include <string.h>

#include "../platform/xen/platform.h"
#include "test.h"
#include "xen-timer.h"
#include "xen-stack.h"

#include "../platform/xen/upcall.c"

/* ---- What stands for Xen, dom0 and the driver ---------------------------------------------- */

const uint64_t twin_value_cpu_info_processor_id = 8;
const struct twin_payload_import twin_payload_imports[1] = { { "schedule_work", 0x1234, NULL } };
const uint64_t twin_payload_imports_count = 1;
struct twin_xen_status xen_counts;
struct xen_seen xen_seen[TWIN_XEN_CPUS];
struct twin_instance xen_instance;
static uint64_t domain0;
struct domain *hardware_domain = (struct domain *)&domain0;
static struct twin_cpu cpu;

static int64_t now, cost;	/* of driver code until its next call */
static uint32_t calls_left;	/* that the driver makes before it returns */
static uint32_t resumed, forsaken, told, published, scheduled;
static bool locked;
static void (*tasklet_function)(void *);
static int ended;		/* status of the last invocation, told to interrupt.c */

int64_t get_s_time(void)
{
	return now;
}

void softirq_tasklet_init(struct xen_tasklet *made, void (*function)(void *), void *data)
{
	(void)made;
	(void)data;
	tasklet_function = function;
}

void tasklet_schedule_on_cpu(struct xen_tasklet *made, unsigned int processor)
{
	(void)made;
	CHECK_EQUAL(processor, 0);
	scheduled++;
}

void tasklet_kill(struct xen_tasklet *made)
{
	(void)made;
}

void send_guest_global_virq(struct domain *domain, uint32_t virq)
{
	CHECK(domain == hardware_domain);
	CHECK_EQUAL(virq, TWIN_XEN_VIRQ);
	told++;
}

void printk(const char *format, ...)
{
	(void)format;
}

void xen_unlock(void)
{
	CHECK(locked);
	CHECK(!xen_upcall_waits());
	locked = false;
}

void xen_interrupt_resumed(int status)
{
	CHECK(locked);
	ended = status;
}

void xen_vif_publish(void)
{
	CHECK(locked);
	published++;
}

void xen_service_request(void)
{
}

/* Driver code to its next call, or its end. */
static int drive(void)
{
	struct twin_call_frame frame = { .target = 0, .rdi = 7 };

	now += cost;
	if (!calls_left)
		return TWIN_OK;
	calls_left--;
	return xen_import(&xen_instance, &frame);
}

int xen_run(const void *function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t *result)
{
	(void)function;
	(void)a0;
	(void)a1;
	(void)a2;
	(void)result;
	CHECK(locked);
	return drive();
}

int xen_resume(uint64_t rax)
{
	(void)rax;
	CHECK(locked);
	CHECK(xen_seen[0].cpu == &cpu);
	resumed++;
	return drive();
}

void xen_forsake(void)
{
	CHECK(xen_seen[0].cpu == &cpu);
	forsaken++;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void begin(uint32_t calls)
{
	xen_seen[0].cpu = &cpu;
	now = 1000000000;
	cost = 1000;
	calls_left = calls;
	resumed = forsaken = told = published = scheduled = 0;
	ended = -1;
	locked = true;
	xen_upcall_start(0);
}

static int enter(void)
{
	uint64_t result;

	return xen_run_patiently(NULL, 0, 0, 0, &result);
}

/* dom0 answers, and the tasklet runs. */
static void answer_it(void)
{
	const struct twin_xen_answer answer = { .number = upcall.call.number, .rax = 1 };

	CHECK_EQUAL(xen_upcall_answer(&answer), 0);
	tasklet_function(NULL);
}

/* The limit's time comes, if anything waits for it. */
static void let_time_pass(void)
{
	CHECK(timer_set);
	timer_set = false;
	if (now < timer_time)
		now = timer_time;
	timer_function(NULL);
}

static void a_call_is_answered(void)
{
	begin(3);
	CHECK_EQUAL(enter(), TWIN_FROZEN);
	CHECK_EQUAL(told, 1);
	answer_it();
	/* What it gave meanwhile is not kept until dom0 answers. */
	CHECK_EQUAL(published, 1);
	answer_it();
	answer_it();
	CHECK_EQUAL(resumed, 3);
	CHECK_EQUAL(ended, TWIN_OK);
	CHECK(!locked && !timer_set);
	CHECK(!xen_upcall_waits());
}

static void a_dom0_that_is_deaf_is_not_waited_for(void)
{
	const int64_t before = 1000000000;

	begin(1);
	CHECK_EQUAL(enter(), TWIN_FROZEN);
	let_time_pass();
	CHECK(now - before <= 30000002000);
	CHECK_EQUAL(forsaken, 1);
	CHECK_EQUAL(ended, TWIN_ABORTED);
	CHECK(!locked);
}

/* Each call is answered, and there is always another. */
static void calls_without_end_are_an_abort(void)
{
	begin(UINT32_MAX);
	CHECK_EQUAL(enter(), TWIN_FROZEN);
	while (locked && resumed < 1000)
		answer_it();
	CHECK_EQUAL(told, 64);
	CHECK_EQUAL(ended, TWIN_ABORTED);
	CHECK(!locked);
	/* The next invocation has its own. */
	locked = true;
	calls_left = 1;
	CHECK_EQUAL(enter(), TWIN_FROZEN);
	answer_it();
	CHECK_EQUAL(ended, TWIN_OK);
}

/* Each comes just before the last one's limit. */
static void calls_have_thirty_seconds_together(void)
{
	const int64_t before = 1000000000;

	begin(UINT32_MAX);
	CHECK_EQUAL(enter(), TWIN_FROZEN);
	while (locked && resumed < 1000) {
		if (now + 9000000000 >= timer_time) {
			let_time_pass();
		} else {
			now += 9000000000;
			answer_it();
		}
	}
	CHECK(now - before < 31000000000);
	CHECK_EQUAL(ended, TWIN_ABORTED);

	/* Driver code that takes long in between. */
	begin(UINT32_MAX);
	cost = 900000000;
	CHECK_EQUAL(enter(), TWIN_FROZEN);
	while (locked && resumed < 1000)
		answer_it();
	CHECK(now - before < 32000000000);
	CHECK_EQUAL(ended, TWIN_ABORTED);
}

/* dom0 has stopped the card, and wants the driver back. */
static void a_call_is_forsaken_for_a_detachment(void)
{
	begin(UINT32_MAX);
	CHECK_EQUAL(enter(), TWIN_FROZEN);
	now += 5;
	xen_upcall_forsake();
	CHECK(timer_time <= now);
	let_time_pass();
	CHECK_EQUAL(forsaken, 1);
	CHECK_EQUAL(ended, TWIN_ABORTED);
	CHECK(!locked);

	/* The answer comes first: the next call is refused. */
	begin(UINT32_MAX);
	CHECK_EQUAL(enter(), TWIN_FROZEN);
	xen_upcall_forsake();
	answer_it();
	CHECK_EQUAL(ended, TWIN_ABORTED);
	CHECK(!locked);
	CHECK_EQUAL(forsaken, 0);

	/* Nothing waits. */
	begin(1);
	xen_upcall_forsake();
	CHECK(!timer_set);
	CHECK_EQUAL(enter(), TWIN_FROZEN);
	answer_it();
	CHECK_EQUAL(ended, TWIN_OK);
}

static void on_stack(void)
{
	RUN(a_call_is_answered);
	RUN(a_dom0_that_is_deaf_is_not_waited_for);
	RUN(calls_without_end_are_an_abort);
	RUN(calls_have_thirty_seconds_together);
	RUN(a_call_is_forsaken_for_a_detachment);
}

int main(void)
{
	on_xens_stack(on_stack, NULL);
	return test_summary();
}
