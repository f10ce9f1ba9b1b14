// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: processor faults and signals.
 */
#include "machine.h"

static void faults_in_driver_code_abort(const char *function, uint64_t argument, uint64_t address,
					uint32_t trap, uint64_t rip)
{
	set_up(TWIN_SCHEME_STLB);
	aborts_with(function, argument, 0, TWIN_ABORT_FAULT, address);
	CHECK_EQUAL(cpu->report.reason, trap);
	if (rip)
		CHECK_EQUAL(cpu->report.rip, rip);
	tear_down();
}

void every_kind_of_fault_aborts(void)
{
	faults_in_driver_code_abort(driver_ud2, 0, 0, 6, (uint64_t)driver_ud2);
	faults_in_driver_code_abort(driver_int3, 0, 0, 3, (uint64_t)driver_int3);
	faults_in_driver_code_abort(driver_divide, 0, 0, 0, 0);
	faults_in_driver_code_abort(driver_raw_load, 0x10, 0x10, 14, (uint64_t)driver_raw_load);
	faults_in_driver_code_abort(driver_raw_load, 1ull << 63, 0, 13, (uint64_t)driver_raw_load);
	faults_in_driver_code_abort(driver_wild_jump, 0x18, 0x18, 14, 0x18);
	faults_in_driver_code_abort(driver_wild_return, 0x18, 0x18, 14, 0x18);
	faults_in_driver_code_abort(driver_wild_return, 1ull << 63, 0, 13, 0);
	/* Data is not code. */
	faults_in_driver_code_abort(driver_wild_jump, (uint64_t)&result, (uint64_t)&result, 14,
				    (uint64_t)&result);
}

static void overflow_aborts(const char *function, uint64_t a, uint64_t b)
{
	uint64_t block = (uint64_t)cpu - TWIN_STACK_CONTEXT;

	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter(function, a, b), TWIN_ABORTED);
	CHECK_EQUAL(cpu->report.kind, TWIN_ABORT_STACK);
	CHECK(cpu->report.address >= block && cpu->report.address < block + TWIN_STACK_LOW);
	CHECK(reported_rip_within((uint64_t)driver_text_start, (uint64_t)driver_text_end));
	CHECK_EQUAL(enter(function, a, b), TWIN_DEAD);
	tear_down();
}

void stack_overflow_aborts(void)
{
	uint64_t left;

	overflow_aborts(driver_recurse, 0, 0);
	overflow_aborts(driver_recurse_large, 0, 0);
	/* In the runtime's own pushes, wherever the stack ends among them. */
	for (left = 0; left < 40; left += 8)
		overflow_aborts(driver_slow_at_the_end, left, DATA);
	for (left = 0; left < 24; left += 8)
		overflow_aborts(driver_slow_at_the_end, left, cpu->driver_low);
}

static volatile sig_atomic_t host_signals;

void host_handler(int number)
{
	(void)number;
	host_signals++;
}

void sent_signals_go_to_the_host(void)
{
	host_signals = 0;
	raise(SIGFPE);
	CHECK_EQUAL(host_signals, 1);
}

static int raise_inside(struct twin_call_frame *frame)
{
	(void)frame;
	raise(SIGFPE);
	return TWIN_OK;
}

void signals_during_imports_go_to_the_host(void)
{
	set_up(TWIN_SCHEME_STLB);
	host_signals = 0;
	host.import = raise_inside;
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_OK);
	CHECK_EQUAL(host_signals, 1);
	tear_down();
}

static volatile int *volatile nowhere = (volatile int *)0x10;

static int fault_inside(struct twin_call_frame *frame)
{
	(void)frame;
	*nowhere = 1;
	return TWIN_OK;
}

static void dies_in_child_of(int number, void (*body)(void))
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		body();
		_exit(0);
	}
	waitpid(child, &status, 0);
	CHECK(WIFSIGNALED(status));
	CHECK_EQUAL(WTERMSIG(status), number);
}

static void fault_in_import(void)
{
	set_up(TWIN_SCHEME_STLB);
	host.import = fault_inside;
	enter(driver_import, 0, 0);
}

static void fault_in_host(void)
{
	*nowhere = 1;
}

static void trap_in_host(void)
{
	__asm__ volatile("int3");
}

static void send_bus_error(void)
{
	raise(SIGBUS);
}

void the_hosts_own_faults_are_not_hidden(void)
{
	dies_in_child_of(SIGSEGV, fault_in_import);
	dies_in_child_of(SIGSEGV, fault_in_host);
	dies_in_child_of(SIGTRAP, trap_in_host);
	dies_in_child_of(SIGBUS, send_bus_error);
}

static void *spin(void *status)
{
	const uint64_t args[6] = { DATA };

	twin_testbed_thread_start();
	*(int *)status = twin_enter(other_cpu, instance, (uint64_t)driver_spin, args, NULL);
	twin_testbed_thread_stop();
	return NULL;
}

void signals_sent_to_driver_code_go_to_the_host(void)
{
	pthread_t thread;
	int status = -1;

	set_up(TWIN_SCHEME_STLB);
	host_signals = 0;
	__atomic_store_n(&memory[0], 0, __ATOMIC_RELAXED);
	pthread_create(&thread, NULL, spin, &status);
	while (!__atomic_load_n(&other_cpu->in_driver, __ATOMIC_RELAXED))
		usleep(100);
	pthread_kill(thread, SIGFPE);
	while (!host_signals)
		usleep(100);
	__atomic_store_n(&memory[0], 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CHECK_EQUAL(status, TWIN_OK);
	CHECK_EQUAL(host_signals, 1);
	tear_down();
}
