/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The timer of the file under test in place of Xen's: whether it is set, for when, and what it calls. */
#ifndef TWIN_TESTS_XEN_TIMER_H
#define TWIN_TESTS_XEN_TIMER_H

static bool timer_set;
static int64_t timer_time;
static void (*timer_function)(void *);

void init_timer(struct xen_timer *timer, void (*function)(void *), void *data, unsigned int processor)
{
	(void)timer;
	(void)data;
	(void)processor;
	timer_function = function;
	timer_set = false;
}

void set_timer(struct xen_timer *timer, int64_t time)
{
	(void)timer;
	timer_set = true;
	timer_time = time;
}

void stop_timer(struct xen_timer *timer)
{
	(void)timer;
	timer_set = false;
}

void kill_timer(struct xen_timer *timer)
{
	stop_timer(timer);
}

#endif /* TWIN_TESTS_XEN_TIMER_H */
