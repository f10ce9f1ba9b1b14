// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The gate of an instance: counts the CPUs inside the driver, and keeps CPUs
 * out while data changes that emitted code reads without a lock.
 *
 * One word: the count, and CLOSED in the top bit. Closing sets CLOSED first, so
 * the count only falls from then on; once it is 0 the closer is alone. Nested
 * entries do not pass the gate, because their CPU is counted already; so waiting
 * for the count cannot hang on them. A CPU that closes the gate from inside waits
 * for itself and runs out of patience.
 *
 * Entering acquires and leaving releases: every later entry sees what the closer
 * wrote, and a driver's reads come before the closer's writes.
 */
#include "internal.h"

#define CLOSED TWIN_GATE_CLOSED

/* Close at once, if no CPU is inside. */
static bool try_close(struct twin_gate *gate)
{
	uint32_t idle = 0;

	return __atomic_compare_exchange_n(&gate->word, &idle, CLOSED, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static bool wait_alone(struct twin_gate *gate, uint64_t patience)
{
	while (__atomic_load_n(&gate->word, __ATOMIC_ACQUIRE) & ~CLOSED) {
		if (!patience--)
			return false;
		cpu_relax();
	}
	return true;
}

/* false: another CPU has closed it, or patience ran out. */
bool twin_gate_close(struct twin_gate *gate, uint64_t patience)
{
	if (__atomic_fetch_or(&gate->word, CLOSED, __ATOMIC_ACQUIRE) & CLOSED)
		return false;
	if (wait_alone(gate, patience))
		return true;
	twin_gate_open(gate);
	return false;
}

void twin_gate_open(struct twin_gate *gate)
{
	__atomic_fetch_and(&gate->word, ~CLOSED, __ATOMIC_RELEASE);
}

static void maintain(struct twin_instance *instance)
{
	if (!try_close(&instance->gate))
		return;
	__atomic_store_n(&instance->maintain, 0, __ATOMIC_RELAXED);
	twin_stlb_promote(instance);
	twin_call_maintain(instance);
	twin_gate_open(&instance->gate);
}

/* Spins while the gate is closed. The first CPU to enter does the maintenance
 * that requires that no CPU is inside. */
void twin_gate_enter(struct twin_instance *instance)
{
	uint32_t *word = &instance->gate.word;
	uint32_t seen;

	if (__atomic_load_n(&instance->maintain, __ATOMIC_RELAXED))
		maintain(instance);
	seen = __atomic_load_n(word, __ATOMIC_RELAXED);
	for (;;) {
		if (seen & CLOSED) {
			cpu_relax();
			seen = __atomic_load_n(word, __ATOMIC_RELAXED);
		} else if (__atomic_compare_exchange_n(word, &seen, seen + 1, true,
						       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			return;
		}
	}
}

void twin_instance_hold(struct twin_instance *instance)
{
	twin_gate_enter(instance);
}

void twin_instance_release(struct twin_instance *instance)
{
	leave_gate(&instance->gate);
}

int twin_instance_quiesce(struct twin_instance *instance, uint64_t patience)
{
	return twin_gate_close(&instance->gate, patience) ? TWIN_OK : TWIN_BUSY;
}

void twin_instance_resume(struct twin_instance *instance)
{
	twin_gate_open(&instance->gate);
}
