// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Calls of dom0's kernel by driver code: upcalls.
 *
 *   tasklet, home processor          dom0                        tasklet again
 *   ------------------------         ------------------------    -----------------------
 *   driver code calls
 *   xen_import: TWIN_FROZEN
 *   (1) ASKED, virtual interrupt --> thread of twin_dom0.ko:
 *       xen_lock stays taken         TWIN_XEN_UPCALL: which
 *                                    calls the function
 *                                    TWIN_XEN_ANSWER ----------> (2) ANSWERED: twin_resume,
 *                                                                then free, lock given up
 *                     LIMIT passes without (2): (3) the driver is aborted
 *
 * The driver's frames stay on the home processor's block meanwhile, which takes no other
 * entry: xen_run() finds no block on any processor. All else that this platform does waits,
 * as for any holder of xen_lock: guests' packets stay in their rings, the card's interrupt is
 * not ended. Nobody spins.
 *
 * Not every call may wait. It is an abort with the routine's name, as before, where
 *
 *   - the driver was not entered by the tasklet: in a guest's hypercall it has the transmit
 *     queue's lock, which dom0 may want while it answers
 *   - an argument in a register points to the driver's stack, where dom0 has nothing
 *
 * Which other locks driver code holds is not known here. It takes them in dom0's memory, and nothing
 * notes that: stubs of twin_note_lock are the testbed's. A routine of dom0's that wants one of them
 * spins for it while the driver waits, and goes on spinning when the driver was aborted.
 *
 * One invocation has LIMIT for all its calls together, and MOST of them: a driver that calls again
 * and again has the lock for no longer than one whose dom0 is deaf, and each time that it goes on it
 * is a new turn for the clock. Where dom0 has stopped the device and wants it back, the time is over.
 *
 * dom0 gets six arguments. A routine with more of them, or printf's, finds zeroes there.
 */
#include "platform.h"

#define LIMIT 30000000000ll	/* ns */
#define MOST 64u

void send_guest_global_virq(struct domain *domain, uint32_t virq);
void tasklet_schedule_on_cpu(struct xen_tasklet *tasklet, unsigned int processor);

enum state { NONE, ASKED, ANSWERED };

static struct {
	uint32_t state;		/* ASKED to another by whoever changes it first */
	bool allowed;		/* the tasklet runs the driver; under xen_lock */
	uint32_t count;		/* of the invocation; the same */
	int64_t until;		/* ... which may wait until then; 0: it has not waited yet */
	uint32_t processor;
	struct twin_xen_upcall call;
	uint64_t rax;
	struct twin_cpu *blocks[TWIN_XEN_CPUS];	/* taken from xen_seen */
} upcall;
static struct xen_tasklet tasklet;
static struct xen_timer limit;
static bool has_timer;

static uint32_t state(void)
{
	return __atomic_load_n(&upcall.state, __ATOMIC_ACQUIRE);
}

bool xen_upcall_waits(void)
{
	return state() != NONE;
}

/* Whether this caller is the one who ends the waiting. */
static bool take(enum state next)
{
	uint32_t asked = ASKED;

	return __atomic_compare_exchange_n(&upcall.state, &asked, next, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* ---- Asking -------------------------------------------------------------------- */

static bool has_time(void)
{
	const int64_t until = __atomic_load_n(&upcall.until, __ATOMIC_RELAXED);

	return upcall.count < MOST && (!until || get_s_time() < until);
}

static bool is_on_stack(uint64_t address)
{
	return address - (XEN_BLOCK(0) + XEN_STACK_VIEW) < TWIN_XEN_CPUS * TWIN_STACK_BLOCK;
}

static bool may_wait(const struct twin_call_frame *frame)
{
	return upcall.allowed && has_time() && frame->target < twin_payload_imports_count &&
	       !(is_on_stack(frame->rdi) || is_on_stack(frame->rsi) || is_on_stack(frame->rdx) ||
		 is_on_stack(frame->rcx) || is_on_stack(frame->r8) || is_on_stack(frame->r9));
}

int xen_import(struct twin_instance *instance, struct twin_call_frame *frame)
{
	const uint64_t arguments[] = {
		frame->rdi, frame->rsi, frame->rdx, frame->rcx, frame->r8, frame->r9,
	};

	(void)instance;
	if (!may_wait(frame))
		return TWIN_ABORTED;
	upcall.call.number++;
	upcall.call.function = twin_payload_imports[frame->target].vm;
	memcpy(upcall.call.argument, arguments, sizeof(arguments));
	return TWIN_FROZEN;
}

static void hide_blocks(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++) {
		upcall.blocks[i] = xen_seen[i].cpu;
		xen_seen[i].cpu = NULL;
	}
}

static void show_blocks(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++)
		xen_seen[i].cpu = upcall.blocks[i];
}

/* The driver waits on this processor. Served, interrupts on. */
static void ask(void)
{
	hide_blocks();
	upcall.processor = xen_processor();
	xen_count(&xen_counts.upcalls);
	if (!upcall.count++)
		__atomic_store_n(&upcall.until, get_s_time() + LIMIT, __ATOMIC_RELAXED);
	__atomic_store_n(&upcall.state, ASKED, __ATOMIC_RELEASE);
	set_timer(&limit, __atomic_load_n(&upcall.until, __ATOMIC_RELAXED));
	send_guest_global_virq(hardware_domain, TWIN_XEN_VIRQ);
}

int xen_run_patiently(const void *function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t *result)
{
	int status;

	upcall.count = 0;
	__atomic_store_n(&upcall.until, 0, __ATOMIC_RELAXED);
	upcall.allowed = true;
	status = xen_run(function, a0, a1, a2, result);
	upcall.allowed = false;
	if (status == TWIN_FROZEN)
		ask();
	return status;
}

/* ---- dom0's thread: hypercalls ----------------------------------------------------- */

long xen_upcall_fetch(struct twin_xen_upcall *call)
{
	const struct twin_xen_header header = call->header;

	if (state() != ASKED)
		return -XEN_ENOENT;
	*call = upcall.call;
	call->header = header;
	return 0;
}

long xen_upcall_answer(const struct twin_xen_answer *answer)
{
	if (answer->number != upcall.call.number || state() != ASKED)
		return -XEN_ENOENT;
	upcall.rax = answer->rax;
	if (!take(ANSWERED))
		return -XEN_ENOENT;
	tasklet_schedule_on_cpu(&tasklet, upcall.processor);
	return 0;
}

/* ---- Going on -------------------------------------------------------------------------- */

/* The lock is the waiting invocation's until here. */
static void finish(int status)
{
	stop_timer(&limit);
	xen_interrupt_resumed(status);
	/* Frames that it gave since. */
	xen_vif_publish();
	__atomic_store_n(&upcall.state, NONE, __ATOMIC_RELEASE);
	xen_unlock();
	xen_service_request();
}

static void go_on(void *unused)
{
	int status;

	(void)unused;
	if (state() != ANSWERED)
		return;
	show_blocks();
	upcall.allowed = true;
	status = xen_resume(upcall.rax);
	upcall.allowed = false;
	if (status != TWIN_FROZEN) {
		finish(status);
		return;
	}
	ask();
	xen_vif_publish();
}

/* Whoever waits now has waited long enough, and so has the invocation if it goes on before that:
 * its next call is refused. */
void xen_upcall_forsake(void)
{
	const int64_t now = get_s_time();

	if (!xen_upcall_waits())
		return;
	__atomic_store_n(&upcall.until, now, __ATOMIC_RELAXED);
	set_timer(&limit, now);
}

/* dom0 hangs, or its module is gone, or the driver has asked for too long. The same processor's
 * timer. */
static void give_up(void *unused)
{
	(void)unused;
	if (!take(ANSWERED))
		return;
	printk(XEN_WARNING "twin: a call of dom0's is not waited for any longer\n");
	show_blocks();
	xen_forsake();
	finish(TWIN_ABORTED);
}

void xen_upcall_start(uint32_t home)
{
	upcall.state = NONE;
	upcall.allowed = false;
	softirq_tasklet_init(&tasklet, go_on, NULL);
	init_timer(&limit, give_up, NULL, home);
	has_timer = true;
}

void xen_upcall_stop(void)
{
	tasklet_kill(&tasklet);
	if (has_timer)
		kill_timer(&limit);
	has_timer = false;
}
