// SPDX-License-Identifier: GPL-2.0-only
/*
 * task.c: tasks and sleeping.
 *
 * Each CPU has a main task, on the stack the host calls on. Works run in worker
 * tasks with stacks of their own, so a work may sleep in the middle while others
 * go on, as in the kernel. Switching is cooperative: a worker that sleeps returns
 * to the main task that resumed it; a main task that sleeps is the scheduler of
 * its CPU. It runs what is due (interrupts, timers, works, workers to wake) and
 * otherwise lets virtual time pass until something is. A worker may be resumed
 * on another CPU; it keeps no state that depends on %gs.
 *
 * Contexts: only tasks that hold nothing may sleep: __preempt_count zero and
 * the virtual interrupt flag set. Everything else is a bug of the caller.
 */
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/mm.h>

#include "shim.h"

#define WORKERS 8
#define STACK_ORDER 2
/* Interrupts come within this time even if nothing is due. */
#define STEP_NS (NSEC_PER_MSEC / 2)
/* A wait of this length counts as endless. */
#define PATIENCE_NS (120ull * NSEC_PER_SEC)
#define MOST_DUE_STEPS 10000

enum worker_state {
	WORKER_IDLE,              /* a worker without work */
	WORKER_SLEEPING,          /* a worker until .wake */
	WORKER_ACTIVE,            /* on some CPU */
};

struct task {
	struct task_struct linux_task;  /* first: what `current` points to */
	u64 stack_pointer;      /* while not on a CPU */
	u64 wake;
	enum worker_state state;
	enum worker_state next;   /* what it becomes once it is off its stack */
	bool is_worker;
	struct task *resumer;
};

void task_switch(u64 *save, u64 load);
extern void task_begin(void);

enum system_states system_state __read_mostly = SYSTEM_BOOTING;

static struct shim_lock workers_lock;
static struct task *workers[WORKERS];

static struct task *task_current(void)
{
	return container_of(current, struct task, linux_task);
}

/*
 * The task of this CPU, for switching. If this is not the worker's stack, a fault left
 * the worker; the main task's registers are lost with it.
 */
static struct task *task_sane(void)
{
	struct task *self = task_current();
	u64 below = (u64)__builtin_frame_address(0) - (u64)self->linux_task.stack;

	if (self->is_worker && below >= PAGE_SIZE << STACK_ORDER)
		kernel_bug("task: a fault ended %s on this CPU earlier; dom0 must be started again",
			   self->linux_task.comm);
	return self;
}

bool irq_allowed(void)
{
	return preempt_count() == 0 && this_cpu_read(hot_vif);
}

void task_may_sleep(const char *what)
{
	if (!irq_allowed())
		kernel_bug("%s: sleeping while atomic (preempt_count %#x, interrupts %s) in %s",
			   what, preempt_count(), this_cpu_read(hot_vif) ? "on" : "off",
			   current->comm);
}

/* ---- Workers ----------------------------------------------------------------- */

/* Leaves the CPU to the main task; returns when resumed. */
static void worker_yield(struct task *self, enum worker_state next)
{
	self->next = next;
	task_switch(&self->stack_pointer, self->resumer->stack_pointer);
}

static void worker_main(struct task *self)
{
	for (;;) {
		while (work_run_one())
			;
		worker_yield(self, WORKER_IDLE);
	}
}

static struct task *worker_create(unsigned int number)
{
	struct page *stack = frames_allocate(1 << STACK_ORDER, 1);
	struct task *task = shim_zalloc(sizeof(*task));
	u64 *top;

	if (!stack)
		kernel_bug("task: no memory for a worker's stack");
	task->is_worker = true;
	task->linux_task.pid = 100 + number;
	memcpy(task->linux_task.comm, "kworker", sizeof("kworker"));
	task->linux_task.stack = page_address(stack);
	/* As task_switch() left it: six registers, then the return address. */
	top = page_address(stack) + (PAGE_SIZE << STACK_ORDER);
	*--top = 0;             /* a call would have pushed here: alignment */
	*--top = 0;
	*--top = (u64)task_begin;
	*--top = 0;             /* rbp */
	*--top = 0;             /* rbx */
	*--top = (u64)worker_main;      /* r12 */
	*--top = (u64)task;     /* r13 */
	*--top = 0;             /* r14 */
	*--top = 0;             /* r15 */
	task->stack_pointer = (u64)top;
	return task;
}

/* The worker to resume now: a sleeper that is due, or an idle one for pending work. */
static struct task *worker_claim(void)
{
	struct task *found = NULL;
	bool pending = work_pending_any();
	unsigned int i;

	shim_lock(&workers_lock);
	for (i = 0; i < WORKERS && !found; i++) {
		if (!workers[i] && pending) {
			workers[i] = worker_create(i);
			found = workers[i];
		} else if (workers[i] && workers[i]->state == WORKER_SLEEPING &&
			   workers[i]->wake <= time_now()) {
			found = workers[i];
		} else if (workers[i] && workers[i]->state == WORKER_IDLE && pending) {
			found = workers[i];
		}
	}
	if (found)
		found->state = WORKER_ACTIVE;
	shim_unlock(&workers_lock);
	return found;
}

static u64 workers_next(void)
{
	u64 next = U64_MAX;
	unsigned int i;

	shim_lock(&workers_lock);
	for (i = 0; i < WORKERS && workers[i]; i++)
		if (workers[i]->state == WORKER_SLEEPING)
			next = min(next, workers[i]->wake);
	shim_unlock(&workers_lock);
	return next;
}

static bool workers_run(struct task *self)
{
	struct task *worker = worker_claim();

	if (!worker)
		return false;
	worker->resumer = self;
	this_cpu_write(current_task, &worker->linux_task);
	task_switch(&self->stack_pointer, worker->stack_pointer);
	this_cpu_write(current_task, &self->linux_task);
	/* Only now is it off its stack, and another CPU may take it. */
	shim_lock(&workers_lock);
	worker->state = worker->next;
	shim_unlock(&workers_lock);
	return true;
}

/* ---- The scheduler --------------------------------------------------------------- */

/* Runs what is due; false if nothing was. */
static bool step_due(struct task *self)
{
	bool did = irq_poll();

	did |= timers_run();
	did |= workers_run(self);
	return did;
}

/* One step of a main task that may let time pass up to `limit`. */
static void step(struct task *self, u64 limit)
{
	u64 now, next;

	if (step_due(self))
		return;
	now = time_now();
	if (now >= limit)
		return;
	next = min3(limit, timers_next(), workers_next());
	next = clamp(next, now + 1, now + STEP_NS);
	time_advance(next - now);
}

void task_sleep_until(u64 deadline)
{
	struct task *self = task_sane();

	task_may_sleep(__func__);
	kernel_counters.sleeps++;
	if (self->is_worker) {
		self->wake = deadline;
		worker_yield(self, WORKER_SLEEPING);
		return;
	}
	do {
		step(self, deadline);
	} while (time_now() < deadline);
}

void task_wait_step(const char *what, u64 since)
{
	if (time_now() - since > PATIENCE_NS)
		kernel_bug("%s: waited in vain for %llu s in %s", what,
			   PATIENCE_NS / NSEC_PER_SEC, current->comm);
	task_sleep_until(time_now() + 20 * NSEC_PER_USEC);
	host_idle();
}

void task_run_due(void)
{
	struct task *self = task_sane();
	unsigned int i;

	if (self->is_worker || !irq_allowed())
		return;
	for (i = 0; i < MOST_DUE_STEPS && step_due(self); i++)
		;
}

void task_setup(void)
{
	unsigned int cpu;

	for (cpu = 0; cpu < boot.cpus; cpu++) {
		struct task *task = shim_zalloc(sizeof(*task));

		task->linux_task.pid = 1 + cpu;
		memcpy(task->linux_task.comm, "main", sizeof("main"));
		task->state = WORKER_ACTIVE;
		per_cpu(current_task, cpu) = &task->linux_task;
	}
}
