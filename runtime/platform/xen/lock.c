// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The one lock. Not Xen's spin locks: those are for waiting, and a holder's processor may
 * run this platform's tasklet between two of its own steps.
 */
#include "platform.h"

/* Polls of a hypercall of dom0's, which may retry: some milliseconds. */
#define PATIENCE 1000000u

static uint32_t held;

bool xen_trylock(void)
{
	return !__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE);
}

bool xen_lock_patiently(void)
{
	uint32_t i;

	for (i = 0; i < PATIENCE; i++) {
		if (xen_trylock())
			return true;
		/* dom0 is to answer, and its processor may be this one. */
		if (xen_upcall_waits())
			return false;
		__asm__ volatile("pause" ::: "memory");
	}
	return false;
}

/* A driver that waits for dom0 has it until it goes on. */
void xen_unlock(void)
{
	if (xen_upcall_waits())
		return;
	__atomic_store_n(&held, 0, __ATOMIC_RELEASE);
}
