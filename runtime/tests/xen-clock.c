// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Driver code that runs too long: platform/xen/clock.c, and watch.c, which says of a processor that it
 * is stuck. What other processors do, and the NMI, are played here.
 */
#include <string.h>

#include "../platform/xen/platform.h"
#include "test.h"

#include "../platform/xen/clock.c"
#include "../platform/xen/watch.c"

/* ---- What stands for Xen and the driver ----------------------------------------------------- */

enum { PROCESSORS = 3, DRIVER = 0x1000, ELSEWHERE = 0x2000 };

struct xen_seen xen_seen[TWIN_XEN_CPUS];
uint64_t cpu_online_map[1] = { (1 << PROCESSORS) - 1 };
unsigned int nmi_watchdog;
bool watchdog_force;

static int64_t now;
static struct {
	void (*function)(void *);
	void *data;
	int64_t time;
	bool set;
} armed[TWIN_XEN_CPUS];
static uint32_t sent[TWIN_XEN_CPUS], stopped, others;
static xen_nmi_callback *callback;

int64_t get_s_time(void)
{
	return now += 100;
}

void init_timer(struct xen_timer *timer, void (*function)(void *), void *data, unsigned int processor)
{
	(void)timer;
	armed[processor].function = function;
	armed[processor].data = data;
}

void set_timer(struct xen_timer *timer, int64_t time)
{
	const uint32_t processor = timer - timers;

	armed[processor].time = time;
	armed[processor].set = true;
}

void kill_timer(struct xen_timer *timer)
{
	armed[timer - timers].set = false;
}

void send_IPI_mask(const uint64_t *mask, int vector)
{
	CHECK_EQUAL(vector, 0x400);
	sent[__builtin_ctzll(*mask)]++;
}

xen_nmi_callback *set_nmi_callback(xen_nmi_callback *new)
{
	xen_nmi_callback *old = callback;

	callback = new;
	return old;
}

void xen_fault_landing(void)
{
}

bool twin_stop(struct twin_cpu *cpu, uint64_t rip, uint64_t rsp)
{
	(void)cpu;
	(void)rsp;
	stopped++;
	return rip == DRIVER;
}

/* ---- Steps ---------------------------------------------------------------------------------- */

static void begin(void)
{
	memset(armed, 0, sizeof(armed));
	memset(sent, 0, sizeof(sent));
	stopped = others = 0;
	nmi_watchdog = 0;
	watchdog_force = false;
	now = 1000000000;
	callback = NULL;
	xen_clock_start();
}

static void turn(uint32_t processor)
{
	if (xen_seen[processor].turn % 2)
		xen_clock_leave(&xen_seen[processor]);
	else
		CHECK(xen_clock_try(&xen_seen[processor]));
}

/* A processor's timer comes when it is due. */
static void tick_of(uint32_t processor)
{
	CHECK(armed[processor].set);
	if (now < armed[processor].time)
		now = armed[processor].time;
	armed[processor].function(armed[processor].data);
}

/* Whether somebody knows what it was for, and whether driver code goes on. */
static bool nmi_of(uint32_t processor, bool *ended)
{
	struct xen_registers registers = { .rip = DRIVER };
	bool claimed = callback && callback(&registers, processor);

	*ended = registers.rip != DRIVER;
	return claimed;
}

/* The limit passes on another processor. */
static void let_a_second_pass(uint32_t watcher, uint32_t processor)
{
	const uint32_t before = sent[processor];
	uint32_t i;

	for (i = 0; i <= XEN_WATCH_LIMIT && sent[processor] == before; i++)
		tick_of(watcher);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void a_loop_is_ended(void)
{
	bool ended;

	begin();
	turn(0);
	let_a_second_pass(1, 0);
	CHECK_EQUAL(sent[0], 1);
	CHECK(now >= 2000000000 && now < 2300000000);
	CHECK(nmi_of(0, &ended));
	CHECK(ended);
	xen_clock_stop();
	CHECK(!callback);
}

/* It was sent, and the driver returned before it came. Nobody else knows what it was for: Xen says
 * that an NMI is unknown, and a debug build ends. */
static void an_nmi_that_comes_late_is_known(void)
{
	bool ended;

	begin();
	turn(0);
	let_a_second_pass(1, 0);
	turn(0);
	CHECK(nmi_of(0, &ended));
	CHECK(!ended);
	/* One was sent, one was for this. */
	CHECK(!nmi_of(0, &ended));
	/* Nor is the driver's next entry ended by it. */
	turn(0);
	let_a_second_pass(1, 0);
	CHECK_EQUAL(stopped, 0);
	turn(0);
	turn(0);
	CHECK(nmi_of(0, &ended));
	CHECK(!ended);
	CHECK_EQUAL(stopped, 0);
}

/* Two processors see it at once. One NMI is enough, and two could be one to the processor. */
static void one_nmi_is_sent(void)
{
	bool ended;
	uint32_t i;

	begin();
	turn(0);
	for (i = 0; i <= XEN_WATCH_LIMIT; i++) {
		tick_of(1);
		tick_of(2);
		if (sent[0])
			break;
	}
	CHECK_EQUAL(sent[0], 1);
	/* It was lost: whoever has asked before asks again. */
	tick_of(1);
	CHECK(sent[0] > 1);
	CHECK(nmi_of(0, &ended));
	CHECK(ended);
}

static int other(const struct xen_registers *registers, int processor)
{
	(void)registers;
	(void)processor;
	others++;
	return 0;
}

static void what_was_not_asked_for_is_given_on(void)
{
	bool ended;

	begin();
	xen_clock_stop();
	callback = other;
	xen_clock_start();
	CHECK(!nmi_of(0, &ended));
	CHECK(!nmi_of(7, &ended));
	turn(0);
	CHECK(!nmi_of(0, &ended));
	CHECK(!ended);
	CHECK_EQUAL(others, 3);
	xen_clock_stop();
	CHECK(callback == other);
}

/* Xen's watchdog, one NMI a second, where nobody else could look: they all wait for this one. */
static void the_watchdogs_nmis_end_a_loop(void)
{
	uint32_t i;
	bool ended;

	begin();
	nmi_watchdog = 2;
	for (i = 0; i < 100; i++) {
		turn(0);
		CHECK(!nmi_of(0, &ended));
		CHECK(!ended);
		turn(0);
		CHECK(!nmi_of(0, &ended));
		now += 1000000000;
	}
	CHECK_EQUAL(stopped, 0);
	turn(0);
	for (i = 0; i < 3; i++) {
		CHECK(!nmi_of(0, &ended));
		if (ended)
			break;
		now += 1000000000;
	}
	CHECK(ended);
}

/* Two that come together are one: the watchdog must see it, or it does not begin its count anew. */
static void the_watchdog_sees_all(void)
{
	bool ended;

	begin();
	nmi_watchdog = 2;
	turn(0);
	let_a_second_pass(1, 0);
	CHECK(!nmi_of(0, &ended));
	CHECK(ended);
	/* But what is not its own is unknown then. */
	begin();
	nmi_watchdog = 2;
	watchdog_force = true;
	turn(0);
	let_a_second_pass(1, 0);
	CHECK(nmi_of(0, &ended));
	CHECK(ended);
}

static void a_turn_that_does_not_end_is_seen(void)
{
	struct xen_watch watch = { 0, 0 };
	uint32_t i;

	/* Nothing runs, for ever. */
	for (i = 0; i < 3 * XEN_WATCH_LIMIT; i++)
		CHECK(!xen_watch(&watch, 4));
	/* Each tick another one. */
	for (i = 0; i < 3 * XEN_WATCH_LIMIT; i++)
		CHECK(!xen_watch(&watch, 5 + 2 * i));
	CHECK(!xen_watch(&watch, 1001));
	for (i = 1; i < XEN_WATCH_LIMIT; i++)
		CHECK(!xen_watch(&watch, 1001));
	/* Again each tick until it has ended. */
	CHECK(xen_watch(&watch, 1001));
	CHECK(xen_watch(&watch, 1001));
	CHECK(!xen_watch(&watch, 1002));
	CHECK(!xen_watch(&watch, 1003));
}

int main(void)
{
	RUN(a_loop_is_ended);
	RUN(an_nmi_that_comes_late_is_known);
	RUN(one_nmi_is_sent);
	RUN(what_was_not_asked_for_is_given_on);
	RUN(the_watchdogs_nmis_end_a_loop);
	RUN(the_watchdog_sees_all);
	RUN(a_turn_that_does_not_end_is_seen);
	return test_summary();
}
