// SPDX-License-Identifier: GPL-2.0-only
/*
 * work.c: workqueues. All are one queue, run by the workers of task.c.
 *
 * As in the kernel: a work is pending at most once (WORK_STRUCT_PENDING), is no
 * longer pending when it begins, never runs twice at once, and a canceller holds
 * the pending bit while it waits, so that the work cannot queue itself again.
 *
 * Contexts: queueing anywhere; *_sync and flushing may sleep.
 */
#include <linux/workqueue.h>

#include "shim.h"

#define RUNNING 16

static struct shim_lock work_lock;
static LIST_HEAD(works);

static struct {
	struct work_struct *work;
	struct task_struct *task;
} running[RUNNING];

/* Opaque: only the address is used. */
static u64 any_workqueue[32];
struct workqueue_struct *system_wq __read_mostly = (struct workqueue_struct *)any_workqueue;

static bool is_running(const struct work_struct *work)
{
	unsigned int i;

	for (i = 0; i < RUNNING; i++)
		if (running[i].work == work)
			return true;
	return false;
}

/* ---- Queueing ------------------------------------------------------------------ */

/* The caller owns the pending bit. */
static void work_enqueue(struct work_struct *work)
{
	if (!work->func)
		kernel_bug("work %p has no function", work);
	shim_lock(&work_lock);
	list_add_tail(&work->entry, &works);
	shim_unlock(&work_lock);
}

bool queue_work_on(int cpu, struct workqueue_struct *wq, struct work_struct *work)
{
	if (test_and_set_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(work)))
		return false;
	work_enqueue(work);
	return true;
}

void delayed_work_timer_fn(struct timer_list *timer)
{
	work_enqueue(&from_timer((struct delayed_work *)NULL, timer, timer)->work);
}

static void delayed_work_start(struct delayed_work *dwork, unsigned long delay)
{
	if (!delay) {
		work_enqueue(&dwork->work);
		return;
	}
	mod_timer(&dwork->timer, jiffies + delay);
}

bool queue_delayed_work_on(int cpu, struct workqueue_struct *wq, struct delayed_work *dwork,
			   unsigned long delay)
{
	if (test_and_set_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(&dwork->work)))
		return false;
	dwork->wq = wq;
	dwork->cpu = cpu;
	delayed_work_start(dwork, delay);
	return true;
}

/* ---- Running --------------------------------------------------------------------- */

bool work_pending_any(void)
{
	struct work_struct *work;
	bool any = false;

	shim_lock(&work_lock);
	list_for_each_entry(work, &works, entry)
		any |= !is_running(work);
	shim_unlock(&work_lock);
	return any;
}

/* The first pending work that does not run already, in a slot of `running`. */
static int work_take(void)
{
	struct work_struct *work;
	int slot;

	shim_lock(&work_lock);
	for (slot = 0; slot < RUNNING && running[slot].work; slot++)
		;
	if (slot == RUNNING)
		goto none;
	list_for_each_entry(work, &works, entry) {
		if (is_running(work))
			continue;
		list_del_init(&work->entry);
		running[slot].work = work;
		running[slot].task = current;
		/* From here on it may be queued again. */
		clear_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(work));
		shim_unlock(&work_lock);
		return slot;
	}
none:
	shim_unlock(&work_lock);
	return -1;
}

bool work_run_one(void)
{
	int slot = work_take();
	work_func_t function;

	if (slot < 0)
		return false;
	function = running[slot].work->func;
	function(running[slot].work);
	if (!irq_allowed())
		kernel_bug("work %p left preempt_count %#x, or interrupts off", function,
			   preempt_count());
	shim_lock(&work_lock);
	running[slot].work = NULL;
	running[slot].task = NULL;
	shim_unlock(&work_lock);
	kernel_counters.works_run++;
	return true;
}

/* ---- Cancelling ------------------------------------------------------------------- */

enum grab {
	GRAB_IDLE,              /* was not pending; the bit is ours */
	GRAB_PENDING,           /* was pending; taken off, the bit is ours */
	GRAB_BUSY,              /* another task holds the bit now */
};

static enum grab work_grab(struct work_struct *work, struct timer_list *timer)
{
	enum grab result = GRAB_BUSY;

	if (timer && del_timer(timer))
		return GRAB_PENDING;
	shim_lock(&work_lock);
	if (!test_and_set_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(work))) {
		result = GRAB_IDLE;
	} else if (!list_empty(&work->entry)) {
		list_del_init(&work->entry);
		result = GRAB_PENDING;
	}
	shim_unlock(&work_lock);
	return result;
}

static bool runs_in_current(const struct work_struct *work)
{
	unsigned int i;

	for (i = 0; i < RUNNING; i++)
		if (running[i].work == work && running[i].task == current)
			return true;
	return false;
}

static void work_wait(struct work_struct *work)
{
	u64 since = time_now();

	if (runs_in_current(work))
		kernel_bug("work %ps waits for itself", work->func);
	while (is_running(work))
		task_wait_step(__func__, since);
}

static bool work_cancel_sync(struct work_struct *work, struct timer_list *timer)
{
	u64 since = time_now();
	enum grab grabbed;

	while ((grabbed = work_grab(work, timer)) == GRAB_BUSY)
		task_wait_step(__func__, since);
	/* A work that never was initialised cannot run. */
	if (work->func)
		work_wait(work);
	clear_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(work));
	return grabbed == GRAB_PENDING;
}

bool cancel_work_sync(struct work_struct *work)
{
	return work_cancel_sync(work, NULL);
}

bool cancel_delayed_work_sync(struct delayed_work *dwork)
{
	return work_cancel_sync(&dwork->work, &dwork->timer);
}

bool cancel_delayed_work(struct delayed_work *dwork)
{
	if (work_grab(&dwork->work, &dwork->timer) == GRAB_BUSY)
		return false;
	clear_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(&dwork->work));
	return true;
}

bool mod_delayed_work_on(int cpu, struct workqueue_struct *wq, struct delayed_work *dwork,
			 unsigned long delay)
{
	enum grab grabbed = work_grab(&dwork->work, &dwork->timer);

	if (grabbed == GRAB_BUSY)
		return false;
	dwork->wq = wq;
	dwork->cpu = cpu;
	delayed_work_start(dwork, delay);
	return grabbed == GRAB_PENDING;
}

bool flush_work(struct work_struct *work)
{
	u64 since = time_now();

	if (runs_in_current(work))
		kernel_bug("work %ps flushes itself", work->func);
	while (test_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(work)) || is_running(work))
		task_wait_step(__func__, since);
	return true;
}
