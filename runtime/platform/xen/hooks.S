/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What cannot be said in C: names with a value, the copy that may fault, and the way
 * from Xen's exception handlers out of driver code.
 */
#include <twin/abi.h>

#include "layout.h"

/* Numbers that the builder puts into driver code. */
	.globl	twin_window, twin_stack_view
	.set	twin_window, XEN_WINDOW
	.set	twin_stack_view, XEN_STACK_VIEW

	.section .rodata.twin_window_mask, "a", @progbits
	.globl	twin_window_mask
	.hidden	twin_window_mask
	.type	twin_window_mask, @object
	.balign	8
twin_window_mask:
	.quad	TWIN_WIDE_MASK
	.size	twin_window_mask, 8

	.text

/*
 * uint64_t xen_copy_unsafe(void *to, const void *from, uint64_t bytes)
 *
 * Returns how many bytes were not copied. A fault goes to 2 by the row below, with rcx
 * as the processor left it (SDM vol. 2, REP: registers tell how far it came).
 */
	.globl	xen_copy_unsafe
	.hidden	xen_copy_unsafe
	.type	xen_copy_unsafe, @function
	.balign	16
xen_copy_unsafe:
	movq	%rdx, %rcx
	cld
1:	rep movsb
2:	movq	%rcx, %rax
	ret
	.size	xen_copy_unsafe, . - xen_copy_unsafe

	.section .ex_table, "a", @progbits
	.balign	4
	.long	1b - ., 2b - .
	.text

/*
 * Where Xen goes on after a fault of driver code: still on the block's stack, of which
 * nothing is used.
 */
	.globl	xen_fault_landing
	.hidden	xen_fault_landing
	.type	xen_fault_landing, @function
	.balign	16
xen_fault_landing:
	movq	%rsp, %rdi
	orq	$(TWIN_STACK_BLOCK - 1), %rdi
	leaq	(TWIN_STACK_CONTEXT - (TWIN_STACK_BLOCK - 1))(%rdi), %rdi
	jmp	twin_abort_from_fault
	.size	xen_fault_landing, . - xen_fault_landing

	.section .note.GNU-stack, "", @progbits
