// SPDX-License-Identifier: GPL-2.0-only
/*
 * time.c: the virtual clock, delays and timers.
 *
 * The clock counts nanoseconds since boot and advances only here: while a task
 * sleeps or delays, and in kernel_tick(). The device's clock advances with it.
 * During a delay time passes and nothing runs; during a sleep other tasks run too.
 * Code that neither sleeps nor delays but polls jiffies would do so for ever: the
 * host advances the clock when it detects that.
 *
 * Timers run in softirq context on the first CPU that steps after they are due,
 * earliest first, with a lock for the list and none during the function.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/timer.h>

#include "shim.h"

static u64 now_ns;
static struct shim_lock timer_lock;
static HLIST_HEAD(timer_list);
static struct timer_list *timer_running;

/* One variable under two names, as the kernel's linker script has it. */
u64 jiffies_64 __cacheline_aligned_in_smp = INITIAL_JIFFIES;
asm(".globl jiffies\n"
    ".set jiffies, jiffies_64\n");

/* ---- The clock ------------------------------------------------------------- */

u64 time_now(void)
{
	return READ_ONCE(now_ns);
}

/* Without a lock: CPUs may do this concurrently, and the host too. */
static __always_inline void clock_add(u64 ns)
{
	u64 now = __atomic_add_fetch(&now_ns, ns, __ATOMIC_RELAXED);
	u64 ticks = INITIAL_JIFFIES + now / TICK_NSEC;
	u64 seen = __atomic_load_n(&jiffies_64, __ATOMIC_RELAXED);

	while (seen < ticks &&
	       !__atomic_compare_exchange_n(&jiffies_64, &seen, ticks, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

void time_advance(u64 ns)
{
	clock_add(ns);
	host_advance(ns);
}

/* No canary: the caller may be a thread without a percpu area. */
__attribute__((no_stack_protector)) void kernel_clock_nudge(u64 ns)
{
	clock_add(ns);
}

void __udelay(unsigned long usecs)
{
	time_advance(usecs * NSEC_PER_USEC);
}

void __ndelay(unsigned long nsecs)
{
	time_advance(nsecs);
}

/* udelay() of a constant: `xloops` is the time in units of 2^-32 s. */
void __const_udelay(unsigned long xloops)
{
	time_advance((xloops * (u64)NSEC_PER_SEC + (1ull << 32) - 1) >> 32);
}

void msleep(unsigned int msecs)
{
	task_sleep_until(time_now() + (u64)msecs * NSEC_PER_MSEC);
}

unsigned long msleep_interruptible(unsigned int msecs)
{
	msleep(msecs);          /* no signals exist */
	return 0;
}

void usleep_range_state(unsigned long min, unsigned long max, unsigned int state)
{
	task_sleep_until(time_now() + (u64)min * NSEC_PER_USEC);
}

unsigned long round_jiffies(unsigned long j)
{
	unsigned long rounded = roundup(j, HZ);

	return time_is_after_jiffies(rounded) ? rounded : j;
}

unsigned long __msecs_to_jiffies(const unsigned int m)
{
	return DIV_ROUND_UP(m, MSEC_PER_SEC / HZ);
}

unsigned int jiffies_to_msecs(const unsigned long j)
{
	return j * (MSEC_PER_SEC / HZ);
}

/* ---- Timers ------------------------------------------------------------------ */

void init_timer_key(struct timer_list *timer, void (*function)(struct timer_list *),
		    unsigned int flags, const char *name, struct lock_class_key *key)
{
	timer->entry.pprev = NULL;
	timer->function = function;
	timer->flags = flags;
}

static void timer_detach(struct timer_list *timer)
{
	hlist_del(&timer->entry);
	timer->entry.next = NULL;
	timer->entry.pprev = NULL;
}

int mod_timer(struct timer_list *timer, unsigned long expires)
{
	int pending;

	if (!timer->function)
		kernel_bug("timer %p has no function", timer);
	shim_lock(&timer_lock);
	pending = timer_pending(timer);
	if (pending)
		timer_detach(timer);
	timer->expires = expires;
	hlist_add_head(&timer->entry, &timer_list);
	shim_unlock(&timer_lock);
	return pending;
}

void add_timer(struct timer_list *timer)
{
	if (timer_pending(timer))
		kernel_bug("timer %p is added twice", timer);
	mod_timer(timer, timer->expires);
}

void add_timer_on(struct timer_list *timer, int cpu)
{
	add_timer(timer);
}

int timer_delete(struct timer_list *timer)
{
	int pending;

	shim_lock(&timer_lock);
	pending = timer_pending(timer);
	if (pending)
		timer_detach(timer);
	shim_unlock(&timer_lock);
	return pending;
}

int timer_delete_sync(struct timer_list *timer)
{
	int pending = del_timer(timer);
	u64 since = time_now();

	while (READ_ONCE(timer_running) == timer)
		task_wait_step(__func__, since);
	return del_timer(timer) | pending;
}

/* The earliest timer, or NULL. */
static struct timer_list *timer_first(void)
{
	struct timer_list *timer, *first = NULL;

	hlist_for_each_entry(timer, &timer_list, entry)
		if (!first || time_before(timer->expires, first->expires))
			first = timer;
	return first;
}

u64 timers_next(void)
{
	struct timer_list *first;
	u64 next = U64_MAX;

	shim_lock(&timer_lock);
	first = timer_first();
	if (first)
		next = time_before(first->expires, (unsigned long)INITIAL_JIFFIES) ? 0 :
			(first->expires - INITIAL_JIFFIES) * TICK_NSEC;
	shim_unlock(&timer_lock);
	return next;
}

/* Takes a due timer off the list and marks it running. One runs at a time. */
static struct timer_list *timer_take(void)
{
	struct timer_list *timer;

	shim_lock(&timer_lock);
	timer = timer_running ? NULL : timer_first();
	if (timer && time_before(jiffies, timer->expires))
		timer = NULL;
	if (timer) {
		timer_detach(timer);
		WRITE_ONCE(timer_running, timer);
	}
	shim_unlock(&timer_lock);
	return timer;
}

bool timers_run(void)
{
	struct timer_list *timer;
	bool any = false;

	while ((timer = timer_take())) {
		__preempt_count_add(SOFTIRQ_OFFSET);
		timer->function(timer);
		__preempt_count_sub(SOFTIRQ_OFFSET);
		kernel_counters.timers_run++;
		/* The function may have freed the timer: only its address counts. */
		smp_store_release(&timer_running, NULL);
		any = true;
	}
	return any;
}
