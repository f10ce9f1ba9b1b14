// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The GS base of the calling thread: by RDGSBASE and WRGSBASE (SDM vol. 2) where the
 * processor has them and Linux permits them to users, else by arch_prctl(2).
 *
 * Runs while registers hold the driver's vectors, and with either GS base: compiled
 * without the former, and uses no GS. Makes its system calls itself.
 */
#include <asm/prctl.h>
#include <asm/unistd.h>
#include <stddef.h>

#include "platform.h"

/* Set by twin_testbed_gs_start: a thread that starts another driver writes the same. */
static uint32_t instructions;

void twin_testbed_gs_start(bool permitted)
{
	__atomic_store_n(&instructions, permitted, __ATOMIC_RELAXED);
}

/* Fails only for a base that is no user's address, which no instance has. */
static void arch_prctl(uint64_t code, uint64_t argument)
{
	uint64_t result = __NR_arch_prctl;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(code), "S"(argument)
			 : "rcx", "r11", "memory");
}

uint64_t twin_testbed_set_gs_base(struct twin_instance *instance, uint64_t base)
{
	uint64_t before;

	(void)instance;
	if (__atomic_load_n(&instructions, __ATOMIC_RELAXED)) {
		__asm__ volatile("rdgsbase %0" : "=r"(before));
		__asm__ volatile("wrgsbase %0" : : "r"(base) : "memory");
	} else {
		arch_prctl(ARCH_GET_GS, (uint64_t)&before);
		arch_prctl(ARCH_SET_GS, base);
	}
	return before;
}
