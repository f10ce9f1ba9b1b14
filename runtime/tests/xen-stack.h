/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Xen's stack, at the end of which its code finds what belongs to this processor: a stack of
 * that size and alignment, on which a function runs. As the tests have it, the last word is the
 * processor's number, which is 0, and the one before it the current virtual processor
 * (twin_value_cpu_info_processor_id 8, twin_value_cpu_info_current_vcpu 16).
 */
#ifndef TWIN_TESTS_XEN_STACK_H
#define TWIN_TESTS_XEN_STACK_H

#include <stdlib.h>

#include "../platform/xen/hypervisor.h"

static void on_xens_stack(void (*function)(void), const void *current)
{
	char *stack = aligned_alloc(XEN_STACK_SIZE, XEN_STACK_SIZE);
	uint64_t *end = (uint64_t *)(stack + XEN_STACK_SIZE);

	end[-1] = 0;
	end[-2] = (uint64_t)current;
	__asm__ volatile("movq %%rsp, %%rbx; movq %0, %%rsp; call *%1; movq %%rbx, %%rsp"
			 : : "r"(end - 8), "r"(function)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
			   "memory", "cc");
	free(stack);
}

#endif /* TWIN_TESTS_XEN_STACK_H */
