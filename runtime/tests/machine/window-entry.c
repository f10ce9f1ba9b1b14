// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: entries of driver code of the schemes window32 and window. The GS base is
 * the window's there and the host's elsewhere: in imports, aborts, frozen drivers that go on, and
 * quick entries, also while ranges go.
 */
#include <asm/prctl.h>
#include <sys/syscall.h>

#include "scheme.h"

#include <ucontext.h>

static uint64_t gs_base(void)
{
	uint64_t base = 0;

	syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
	return base;
}

static void set_host_gs(uint64_t base)
{
	CHECK_EQUAL(syscall(SYS_arch_prctl, ARCH_SET_GS, base), 0);
}

static uint64_t seen_gs, next_gs;

static void note_gs(void)
{
	seen_gs = gs_base();
}

static int import_and_change(struct twin_call_frame *frame)
{
	note_gs();
	if (next_gs)
		set_host_gs(next_gs);
	frame->rdx = 0;
	return TWIN_OK;
}

static int abort_import(struct twin_call_frame *frame)
{
	(void)frame;
	note_gs();
	return TWIN_ABORTED;
}

static int enter_from_import(struct twin_call_frame *frame)
{
	const uint64_t args[6] = { DATA + 0x18 };
	uint64_t value = 0;

	CHECK_EQUAL(twin_enter(cpu, instance, (uint64_t)with->load, args, &value), TWIN_OK);
	CHECK_EQUAL(value, word(0, 0x18));
	note_gs();
	frame->rax = value;
	frame->rdx = 0;
	return TWIN_OK;
}

int hot_enter(struct twin_cpu *self, struct twin_call_frame *frame)
{
	(void)self;
	return enter_from_import(frame);
}

#define HOST_GS 0x123456789000

/* Enter; the host's base is there afterwards, and where its code ran meanwhile. */
static void keeps_gs(const char *function, uint64_t a, uint64_t b, int status)
{
	seen_gs = HOST_GS;
	CHECK_EQUAL(gs_base(), HOST_GS);
	CHECK_EQUAL(enter(function, a, b), status);
	CHECK_EQUAL(seen_gs, HOST_GS);
	CHECK_EQUAL(gs_base(), HOST_GS);
}

static void host_code_has_the_hosts_gs(bool instructions)
{
	set_up_window();
	twin_testbed_gs_start(instructions);
	host.spoil = note_gs;
	keeps_gs(with->load, DATA, 0, TWIN_OK);
	host.import = import_and_change;
	keeps_gs(with->import, 0, 0, TWIN_OK);
	host.import = enter_from_import;
	keeps_gs(with->import, 0, 0, TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	/* A hot routine has the driver's; the host has its own again, also if driver code ran inside. */
	hot_stub = (uint64_t)stubs + 6 * TWIN_TESTBED_STUB;
	CHECK_EQUAL(enter(driver_hot, 0, 0), TWIN_OK);
	hot_stub = (uint64_t)stubs + TWIN_TESTBED_STUB;
	CHECK_EQUAL(result, word(0, 0x18));
	CHECK_EQUAL(seen_gs, with->window);
	CHECK_EQUAL(gs_base(), HOST_GS);
	keeps_gs(driver_in8, 0x300, 0, TWIN_OK);
	keeps_gs(driver_out8, 0x300, 0, TWIN_OK);
	keeps_gs(driver_warn, 0, 0, TWIN_OK);
	keeps_gs(driver_call, VM_DOUBLE, 4, TWIN_OK);
	host.import = import_and_change;
	keeps_gs(driver_call, VM_KERNEL, 4, TWIN_OK);
	/* The host may change it. */
	next_gs = HOST_GS + 0x5000;
	CHECK_EQUAL(enter(with->import, 0, 0), TWIN_OK);
	CHECK_EQUAL(gs_base(), HOST_GS + 0x5000);
	next_gs = 0;
	set_host_gs(HOST_GS);
	host.import = abort_import;
	keeps_gs(with->import, 0, 0, TWIN_ABORTED);
	tear_down_window();
	set_up_window();
	twin_testbed_gs_start(instructions);
	keeps_gs(with->load, 8, 0, TWIN_ABORTED);
	keeps_gs(with->load, 8, 0, TWIN_DEAD);
	tear_down_window();
	set_up_window();
	twin_testbed_gs_start(instructions);
	keeps_gs(driver_bug, 0, 0, TWIN_ABORTED);
	tear_down_window();
}

void the_gs_base_is_the_windows_in_driver_code_alone(void)
{
	uint64_t before = gs_base();

	set_host_gs(HOST_GS);
	if (twin_testbed_gs_permitted())
		host_code_has_the_hosts_gs(true);
	else
		fprintf(stderr, "left out: the GS base by instructions, which this processor or kernel "
			"has not\n");
	host_code_has_the_hosts_gs(false);
	set_host_gs(before);
}

/* Nobody sets it: entries, host code and what ends the driver. */
static void leaves_gs(const char *function, uint64_t a, uint64_t b, int status)
{
	seen_gs = with->window;
	CHECK_EQUAL(enter(function, a, b), status);
	CHECK_EQUAL(seen_gs, with->window);
	CHECK_EQUAL(gs_base(), with->window);
}

void a_host_may_leave_the_gs_base_to_the_window(void)
{
	const uint64_t before = gs_base();

	gs_is_set = 1;
	set_up_window();
	set_host_gs(with->window);
	host.spoil = note_gs;
	leaves_gs(with->load, DATA + 0x18, 0, TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	host.import = import_and_change;
	leaves_gs(with->import, 0, 0, TWIN_OK);
	host.import = enter_from_import;
	leaves_gs(with->import, 0, 0, TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	leaves_gs(driver_in8, 0x300, 0, TWIN_OK);
	leaves_gs(driver_warn, 0, 0, TWIN_OK);
	leaves_gs(driver_call, VM_DOUBLE, 4, TWIN_OK);
	host.import = abort_import;
	leaves_gs(with->import, 0, 0, TWIN_ABORTED);
	tear_down_window();
	set_up_window();
	leaves_gs(with->load, 8, 0, TWIN_ABORTED);
	leaves_gs(with->load, 8, 0, TWIN_DEAD);
	tear_down_window();
	gs_is_set = 0;
	set_host_gs(before);
}

/* ---- Freezing -------------------------------------------------------------- */

static int freeze_import(struct twin_call_frame *frame)
{
	(void)frame;
	note_gs();
	return TWIN_FROZEN;
}

/* The outer import first enters the driver, whose import answers. */
static int nest_and_freeze(struct twin_call_frame *frame)
{
	const bool outer = frame->rdi == 0x77;

	note_gs();
	frame->rax = 5;
	if (!outer)
		return TWIN_OK;
	CHECK_EQUAL(enter(with->reference, 0x78, 0), TWIN_OK);
	return TWIN_FROZEN;
}

static void set_up_frozen_by(int (*import)(struct twin_call_frame *))
{
	set_up_with(with->number, 1);
	CHECK_EQUAL(twin_testbed_add_stack(user, cpu, with->stacks_fd, 0), TWIN_OK);
	twin_instance_add_text(instance, (uint64_t)with->text_start, (uint64_t)with->text_end);
	host.import = import;
	CHECK_EQUAL(enter(with->import, 0x77, 0), TWIN_FROZEN);
	CHECK(cpu->frozen == instance && !cpu->instance && !cpu->in_driver);
	CHECK_EQUAL(instance->gate.word, 0);
}

static void set_up_frozen(void)
{
	set_up_frozen_by(freeze_import);
}

#define ALIGNMENT_CHECK 0x40000ull

/* With the host's AC set: what it is afterwards. */
static uint64_t resume_with_check(uint64_t rax)
{
	uint64_t flags = __builtin_ia32_readeflags_u64();
	int status;

	__builtin_ia32_writeeflags_u64(flags | ALIGNMENT_CHECK);
	status = twin_resume(cpu, instance, rax, &result);
	flags = __builtin_ia32_readeflags_u64();
	__builtin_ia32_writeeflags_u64(flags & ~ALIGNMENT_CHECK);
	CHECK_EQUAL(status, TWIN_OK);
	return flags & ALIGNMENT_CHECK;
}

/* Driver code waits on its stack; with the answer it goes on, and may wait again. */
void a_frozen_driver_goes_on(void)
{
	const uint64_t before = gs_base();

	set_host_gs(HOST_GS);
	set_up_window();
	tear_down();
	set_up_frozen();
	CHECK_EQUAL(seen_gs, HOST_GS);
	CHECK_EQUAL(gs_base(), HOST_GS);
	CHECK_EQUAL(enter(with->load, DATA, 0), TWIN_BUSY);
	CHECK_EQUAL(twin_prepare_quick(cpu, instance), TWIN_INVALID);
	CHECK_EQUAL(twin_resume(cpu, instance, 1234, &result), TWIN_OK);
	CHECK_EQUAL(result, 1234);
	CHECK_EQUAL(gs_base(), HOST_GS);
	CHECK_EQUAL(twin_resume(cpu, instance, 1234, &result), TWIN_INVALID);
	CHECK_EQUAL(enter(with->load, DATA + 0x18, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	tear_down();
	/* With its own registers and site, whatever ran in between. */
	set_up_frozen_by(nest_and_freeze);
	CHECK(cpu->saved.site > (uint64_t)with->import &&
	      cpu->saved.site < (uint64_t)with->import + 64);
	CHECK_EQUAL(cpu->saved.rdi, 0x77);
	CHECK_EQUAL(twin_resume(cpu, instance, 1234, &result), TWIN_OK);
	CHECK_EQUAL(result, 1234);
	tear_down();
	/* The host's flags are its own. */
	set_up_frozen();
	CHECK_EQUAL(resume_with_check(1234), ALIGNMENT_CHECK);
	CHECK_EQUAL(result, 1234);
	tear_down();
	/* Nobody answers. */
	set_up_frozen();
	twin_abandon(cpu, instance);
	CHECK(!cpu->frozen);
	CHECK_EQUAL(twin_instance_report(instance)->kind, TWIN_ABORT_IMPORT);
	CHECK(reported_rip_within((uint64_t)with->import, (uint64_t)with->import + 64));
	CHECK_EQUAL(twin_resume(cpu, instance, 0, &result), TWIN_INVALID);
	CHECK_EQUAL(enter(with->load, DATA, 0), TWIN_DEAD);
	tear_down();
	/* The instance dies meanwhile. */
	set_up_frozen();
	instance->dead = 2;
	CHECK_EQUAL(twin_resume(cpu, instance, 0, &result), TWIN_DEAD);
	CHECK(!cpu->frozen);
	/* Vector registers would not be kept: no freezing. */
	tear_down();
	set_up_window();
	host.import = freeze_import;
	CHECK_EQUAL(enter(with->import, 0x77, 0), TWIN_ABORTED);
	CHECK(!cpu->frozen);
	tear_down_window();
	set_host_gs(before);
}

/* Prepared as a host does that sets the GS base itself. */
static void set_up_quick(void)
{
	set_up_with(with->number, 1);
	CHECK_EQUAL(twin_prepare_quick(cpu, instance), TWIN_INVALID);	/* no data stack */
	CHECK_EQUAL(twin_testbed_add_stack(user, cpu, with->stacks_fd, 0), TWIN_OK);
	twin_instance_add_text(instance, (uint64_t)with->text_start, (uint64_t)with->text_end);
	CHECK_EQUAL(twin_prepare_quick(cpu, instance), TWIN_INVALID);	/* sets it in twin_enter */
	instance->enters_gs = 0;
	instance->vector_free = 0;
	CHECK_EQUAL(twin_prepare_quick(cpu, instance), TWIN_INVALID);
	instance->vector_free = 1;
	CHECK_EQUAL(twin_prepare_quick(cpu, instance), TWIN_OK);
}

static int enter_quick(const char *function, uint64_t a, uint64_t b)
{
	int status;

	cpu->host_gs = HOST_GS;
	set_host_gs(with->window);
	status = twin_enter_quick(cpu, (uint64_t)function, a, b, 0, &result);
	CHECK_EQUAL(gs_base(), with->window);
	CHECK(!cpu->instance && !cpu->in_driver && !cpu->may_nest);
	CHECK_EQUAL(instance->gate.word, 0);
	set_host_gs(HOST_GS);
	return status;
}

static uint64_t entries(void)
{
	struct twin_statistics statistics;

	twin_instance_statistics(instance, &statistics);
	return statistics.entries;
}

/* While the other thread waits at the gate, or before it comes there. */
static void *open_again(void *unused)
{
	(void)unused;
	usleep(1000);
	twin_instance_resume(instance);
	return NULL;
}

/* As twin_enter, and by it when something is in the way. */
void quick_entries_are_entries(void)
{
	const uint64_t before = gs_base();
	pthread_t opener;

	set_up_window();
	tear_down();
	set_up_quick();
	CHECK_EQUAL(enter_quick(with->load, DATA + 0x18, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	CHECK_EQUAL(entries(), 1);
	/* An import, which has the host's GS base, and enters. */
	host.import = enter_from_import;
	seen_gs = 0;
	CHECK_EQUAL(enter_quick(with->import, 0, 0), TWIN_OK);
	CHECK_EQUAL(result, word(0, 0x18));
	CHECK_EQUAL(seen_gs, HOST_GS);
	CHECK_EQUAL(entries(), 3);
	/* In the way: ranges of another layout, maintenance, a gate that is closed. */
	cpu->stack_layout = 0;
	CHECK_EQUAL(enter_quick(with->load, DATA + 0x18, 0), TWIN_OK);
	CHECK_EQUAL(cpu->stack_layout, instance->layout);
	instance->maintain = 1;
	CHECK_EQUAL(enter_quick(with->load, DATA + 0x20, 0), TWIN_OK);
	CHECK_EQUAL(instance->maintain, 0);
	CHECK_EQUAL(twin_instance_quiesce(instance, 1), TWIN_OK);
	pthread_create(&opener, NULL, open_again, NULL);
	CHECK_EQUAL(enter_quick(with->load, DATA + 0x28, 0), TWIN_OK);
	pthread_join(opener, NULL);
	CHECK_EQUAL(result, word(0, 0x28));
	CHECK_EQUAL(entries(), 6);
	/* An abort, and a dead instance. */
	CHECK_EQUAL(enter_quick(with->load, 8, 0), TWIN_ABORTED);
	CHECK_EQUAL(enter_quick(with->load, DATA, 0), TWIN_DEAD);
	CHECK_EQUAL(entries(), 7);
	CHECK_EQUAL(result, word(0, 0x28));
	cpu->quick = NULL;
	set_host_gs(before);
	tear_down_window();
}

/* ---- ... while ranges go ---------------------------------------------------------- */

#define TRAP_FLAG 0x100

static uint32_t steps_left;	/* until another CPU takes the data stack away */
static bool is_away;

static void on_step(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number;
	(void)info;
	if (!cpu->in_driver && --steps_left)
		return;
	regs[REG_EFL] &= ~TRAP_FLAG;
	is_away = !cpu->in_driver &&
		  twin_unmap(instance, view_of(cpu), TWIN_STACK_BLOCK / PAGE, 0) == TWIN_OK;
}

/* Between any two instructions. */
static int enter_by_steps(uint32_t steps)
{
	int status;

	steps_left = steps;
	is_away = false;
	cpu->host_gs = HOST_GS;
	set_host_gs(with->window);
	__asm__ volatile("pushfq; orl %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
	status = twin_enter_quick(cpu, (uint64_t)with->load, DATA + 0x18, 0, 0, &result);
	set_host_gs(HOST_GS);
	return status;
}

/* The driver is not entered without its stack, and not aborted for what the host did. */
void ranges_go_before_a_quick_entry_or_after(void)
{
	const struct sigaction action = {
		.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK,
	};
	const uint64_t before = gs_base();
	struct sigaction usual;
	uint32_t steps, taken = 0, count = 40;

	set_up_window();
	tear_down();
	set_up_quick();
	sigaction(SIGTRAP, &action, &usual);
	for (steps = 1; steps <= count; steps++) {
		const int status = enter_by_steps(steps);

		CHECK_EQUAL(status, is_away ? TWIN_INVALID : TWIN_OK);
		if (!is_away)
			continue;
		taken++;
		CHECK_EQUAL(twin_testbed_add_stack(user, cpu, with->stacks_fd, 0), TWIN_OK);
		CHECK_EQUAL(twin_prepare_quick(cpu, instance), TWIN_OK);
	}
	CHECK(taken > 3 && taken < count);
	sigaction(SIGTRAP, &usual, NULL);
	cpu->quick = NULL;
	set_host_gs(before);
	tear_down_window();
}

void per_cpu_data_is_in_the_window(void)
{
	set_up_window();
	cpu->gs_base = DATA + PAGE;
	CHECK_EQUAL(enter(with->gs, 0x40, 0), TWIN_OK);
	CHECK_EQUAL(result, word(1, 0x40));
	cpu->gs_base = 0;
	tear_down_window();
}
