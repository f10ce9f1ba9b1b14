// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: start, and the list of tests.
 */
#include "machine.h"

static void start(void)
{
	memory_fd = memfd_create("dom0", 0);
	if (memory_fd < 0 || ftruncate(memory_fd, FILE_PAGES * PAGE))
		perror("memfd");
	memory = mmap(NULL, FILE_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	stubs = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	twin_testbed_write_import(stubs, 0x12345678);
	twin_testbed_write_hot(stubs + TWIN_TESTBED_STUB, hot_read);
	/* The import's stub is reached through a jump. */
	twin_testbed_write_jump(stubs + 2 * TWIN_TESTBED_STUB, (uint64_t)stubs);
	twin_testbed_write_hot(stubs + 3 * TWIN_TESTBED_STUB, hot_overwrite);
	/* A routine that returns does for one that takes or frees a lock. */
	twin_testbed_write_lock(stubs + 4 * TWIN_TESTBED_STUB, (uint64_t)driver_double, false);
	twin_testbed_write_lock(stubs + 5 * TWIN_TESTBED_STUB, (uint64_t)driver_double, true);
	twin_testbed_write_hot(stubs + 6 * TWIN_TESTBED_STUB, hot_enter);
	mprotect(stubs, PAGE, PROT_READ | PROT_EXEC);
	import_stub = (uint64_t)stubs + 2 * TWIN_TESTBED_STUB;
	hot_stub = (uint64_t)stubs + TWIN_TESTBED_STUB;
	lock_stub = (uint64_t)stubs + 4 * TWIN_TESTBED_STUB;
	unlock_stub = (uint64_t)stubs + 5 * TWIN_TESTBED_STUB;

	signal(SIGFPE, host_handler);
	CHECK_EQUAL(twin_testbed_faults_start(), 0);
	CHECK_EQUAL(twin_testbed_faults_start(), 0);
	CHECK_EQUAL(twin_testbed_thread_start(), 0);
	cpu = twin_testbed_block_create(0);
	other_cpu = twin_testbed_block_create(0x40000000);
	CHECK_EQUAL((uint64_t)other_cpu, 0x40000000 + TWIN_STACK_CONTEXT);
}

#define RUN_TEST(name)	RUN(name);

static void run_windows(uint32_t scheme)
{
	const unsigned int before = failed;

	choose_window(scheme);
	WINDOW_TESTS(RUN_TEST)
	if (scheme == TWIN_SCHEME_WINDOW) {
		WIDE_TESTS(RUN_TEST)
	}
	if (failed != before)
		fprintf(stderr, "of scheme %u: %u failed\n", scheme, failed - before);
}

int main(void)
{
	start();
	MACHINE_TESTS(RUN_TEST)
	run_windows(TWIN_SCHEME_WINDOW32);
	run_windows(TWIN_SCHEME_WINDOW);
	twin_testbed_block_destroy(cpu);
	twin_testbed_block_destroy(other_cpu);
	return test_summary();
}
