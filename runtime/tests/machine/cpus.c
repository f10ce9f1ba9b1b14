// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: several CPUs at once.
 */
#include "machine.h"

struct worker {
	pthread_t thread;
	struct twin_cpu *cpu;
	uint64_t wrong;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	uint64_t i, value;

	twin_testbed_thread_start();
	for (i = 0; i < 20000; i++) {
		const uint64_t args[6] = { DATA + i * 8 % (3 * PAGE) };

		if (twin_enter(worker->cpu, instance, (uint64_t)driver_load, args, &value) != TWIN_OK ||
		    value != 0x1000000 + i * 8 % (3 * PAGE) / 8)
			worker->wrong++;
	}
	twin_testbed_thread_stop();
	return NULL;
}

void two_cpus_run_the_driver_at_once(void)
{
	struct worker workers[2] = { { .cpu = cpu }, { .cpu = other_cpu } };
	unsigned int i;

	set_up(TWIN_SCHEME_STLB);
	for (i = 0; i < 2; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	/* Whether a CPU is always inside depends on the scheduler. */
	for (i = 0; i < 200; i++) {
		twin_flush(instance, 1 << 20);
		usleep(50);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(workers[i].thread, NULL);
		CHECK_EQUAL(workers[i].wrong, 0);
	}
	/* No CPU is inside now. */
	CHECK_EQUAL(twin_flush(instance, 1), TWIN_OK);
	CHECK_EQUAL(instance->statistics.entries, 40000);
	tear_down();
}

static void *overflow_on_a_thread(void *unused)
{
	const uint64_t args[6] = { 0 };

	(void)unused;
	twin_testbed_thread_start();
	CHECK_EQUAL(twin_enter(other_cpu, instance, (uint64_t)driver_recurse, args, NULL),
		    TWIN_ABORTED);
	CHECK_EQUAL(other_cpu->report.kind, TWIN_ABORT_STACK);
	twin_testbed_thread_stop();
	return NULL;
}

void threads_have_their_own_signal_stacks(void)
{
	pthread_t thread;

	set_up(TWIN_SCHEME_STLB);
	pthread_create(&thread, NULL, overflow_on_a_thread, NULL);
	pthread_join(thread, NULL);
	tear_down();
}
