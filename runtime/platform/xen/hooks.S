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

/* What strict code compares pointers with: all addresses of dom0's half. */
	.section .rodata.twin_bounds, "a", @progbits
	.globl	twin_lowest, twin_highest
	.hidden	twin_lowest, twin_highest
	.type	twin_lowest, @object
	.type	twin_highest, @object
	.balign	8
twin_lowest:
	.quad	XEN_LOWEST
	.size	twin_lowest, 8
twin_highest:
	.quad	XEN_HIGHEST
	.size	twin_highest, 8

	.text

/*
 * uint64_t xen_copy_unsafe(void *to, const void *from, uint64_t bytes)
 *
 * Returns 0, or anything else if there was a fault. Up to 15 bytes are copied in parts of 8,
 * 4, 2 and 1, each by one access: an index of 4 bytes that a guest writes meanwhile is read
 * as it was or as it is. More are a string instruction.
 */
.macro	PART bytes, load, store, register
	testb	$\bytes, %dl
	jz	2f
1:	\load	(%rsi), \register
3:	\store	\register, (%rdi)
	addq	$\bytes, %rsi
	addq	$\bytes, %rdi
2:
	.pushsection .ex_table, "a", @progbits
	.balign	4
	.long	1b - ., copy_fault - .
	.long	3b - ., copy_fault - .
	.popsection
.endm

	.globl	xen_copy_unsafe
	.hidden	xen_copy_unsafe
	.type	xen_copy_unsafe, @function
	.balign	16
xen_copy_unsafe:
	cmpq	$15, %rdx
	ja	4f
	PART	8, movq, movq, %rax
	PART	4, movl, movl, %eax
	PART	2, movw, movw, %ax
	PART	1, movb, movb, %al
	xorl	%eax, %eax
	ret
4:	movq	%rdx, %rcx
	cld
5:	rep movsb
	xorl	%eax, %eax
	ret
copy_fault:
	movl	$1, %eax
	ret
	.size	xen_copy_unsafe, . - xen_copy_unsafe

	.section .ex_table, "a", @progbits
	.balign	4
	.long	5b - ., copy_fault - .
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
