// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Faults of driver code become aborts; all others go to the previous handler.
 *
 * The handler finds the CPU by its stack pointer, which in driver code points
 * into a stack block, and resumes at twin_abort_from_fault. It runs on an
 * alternate stack, because the fault may be that the driver stack is full.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "platform.h"

/* Processor exceptions (SDM vol. 3, 6.15). */
enum { TRAP_BREAKPOINT = 3, TRAP_PROTECTION = 13, TRAP_PAGE = 14 };
/* Page fault error code: the access was an instruction fetch. */
#define FETCH 0x10
/* TF, DF, AC. */
#define DIRTY_FLAGS 0x40500

static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
static struct sigaction previous[_NSIG];

/* ---- Others' faults ---------------------------------------------------- */

/* Take the default action, which happens after this handler returns. */
static void default_action(int number, const siginfo_t *info)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };

	sigaction(number, &action, NULL);
	/* A fault happens again by itself; a trap or a sent signal does not. */
	if (info->si_code <= 0 || number == SIGTRAP)
		raise(number);
}

static void pass_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction *action = &previous[number];

	if (action->sa_flags & SA_SIGINFO)
		action->sa_sigaction(number, info, context);
	else if (action->sa_handler == SIG_DFL)
		default_action(number, info);
	else if (action->sa_handler != SIG_IGN)
		action->sa_handler(number);
	else if (info->si_code > 0)	/* a fault cannot be ignored */
		default_action(number, info);
}

/* ---- The driver's ------------------------------------------------------ */

static bool is_canonical(uint64_t address)
{
	int64_t top = (int64_t)address >> 47;

	return top == 0 || top == -1;
}

/* Whether nothing was executed at rip because it could not be fetched. */
static bool is_fetch(const greg_t *regs)
{
	uint64_t rip = regs[REG_RIP];

	if (regs[REG_TRAPNO] == TRAP_PAGE)
		return (regs[REG_ERR] & FETCH) || (uint64_t)regs[REG_CR2] == rip;
	return regs[REG_TRAPNO] == TRAP_PROTECTION && !is_canonical(rip);
}

/* The address that was accessed, as a dom0 address if it lies in a window; 0 if
 * unknown. */
static uint64_t accessed(const struct twin_cpu *cpu, const greg_t *regs)
{
	const struct twin_instance *instance = cpu->instance;
	uint64_t address = regs[REG_TRAPNO] == TRAP_PAGE ? regs[REG_CR2] : 0;

	if (instance->ops->map_window != twin_testbed_map_window)
		return address;
	return twin_testbed_dom0_address(instance->platform, address);
}

/* Traps report the next instruction. */
static uint64_t faulting_rip(const greg_t *regs)
{
	return regs[REG_RIP] - (regs[REG_TRAPNO] == TRAP_BREAKPOINT);
}

static void abort_driver(struct twin_cpu *cpu, greg_t *regs)
{
	twin_fault_record(cpu, faulting_rip(regs), regs[REG_RSP], accessed(cpu, regs),
			  regs[REG_TRAPNO]);
	regs[REG_RIP] = (greg_t)twin_abort_from_fault;
	regs[REG_RDI] = (greg_t)cpu;
	regs[REG_RSP] = (greg_t)cpu->host_rsp;
	regs[REG_EFL] &= ~DIRTY_FLAGS;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	struct twin_cpu *cpu = twin_testbed_cpu_at(regs[REG_RSP]);

	if (cpu && info->si_code > 0 &&
	    twin_fault_is_drivers(cpu, faulting_rip(regs), regs[REG_RSP], is_fetch(regs)))
		abort_driver(cpu, regs);
	else
		pass_on(number, info, context);
}

static int install(int number)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigemptyset(&action.sa_mask);
	if (sigaction(number, NULL, &previous[number]))
		return -1;
	return sigaction(number, &action, NULL);
}

int twin_testbed_faults_start(void)
{
	static uint32_t started;
	uint32_t i;

	if (__atomic_exchange_n(&started, 1, __ATOMIC_ACQ_REL))
		return 0;
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (install(signals[i]))
			return -1;
	return 0;
}

/* ---- Alternate stacks -------------------------------------------------- */

/* Beyond the state that the kernel saves, for our handler and the one before. */
#define HANDLER_BYTES 0x8000

static __thread stack_t own;	/* ss_sp NULL: none of ours */
static __thread stack_t before;

static uint64_t needed(void)
{
	uint64_t frame = getauxval(AT_MINSIGSTKSZ);

	return (frame ? frame : 0x1000) + HANDLER_BYTES;
}

int twin_testbed_thread_start(void)
{
	uint64_t size = (needed() + PAGE - 1) & ~(PAGE - 1);
	void *stack;

	if (own.ss_sp)
		return 0;
	if (sigaltstack(NULL, &before))
		return -1;
	if (!(before.ss_flags & SS_DISABLE) && before.ss_size >= needed())
		return 0;
	stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED)
		return -1;
	own = (stack_t){ .ss_sp = stack, .ss_size = size };
	if (sigaltstack(&own, NULL) == 0)
		return 0;
	munmap(stack, size);
	own.ss_sp = NULL;
	return -1;
}

void twin_testbed_thread_stop(void)
{
	if (!own.ss_sp)
		return;
	if (before.ss_flags & SS_DISABLE)
		before = (stack_t){ .ss_flags = SS_DISABLE };
	sigaltstack(&before, NULL);
	munmap(own.ss_sp, own.ss_size);
	own.ss_sp = NULL;
}
