/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Assembly of transitions between driver code and C, for entry_x86_64.S, which says what holds
 * where.
 */
#ifndef TWIN_TRANSITION_H
#define TWIN_TRANSITION_H

#include <twin/abi.h>
#include "offsets.h"

/* Displacement of a context field from top. */
#define TOP(field)	((field) + TWIN_STACK_CONTEXT - (TWIN_STACK_BLOCK - 1))

.macro ENTRY name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
.endm

.macro END name
	.size	\name, . - \name
.endm

/*
 * From driver code to C: save what C may destroy, switch to the host's stack.
 *
 *   driver stack            gives   cpu->saved  rax rcx rdx rsi rdi r8-r11
 *   rsp+0  site                                 flags, rsp, site
 *   rsp-8  flags   (moved)          rdi = cpu, rsp = host's, 16-byte aligned
 *   rsp-16 rax     (moved)          DF clear, in_driver = 0, rax destroyed
 */
.macro TO_RUNTIME
	pushfq
	pushq	%rax
	movq	%rsp, %rax
	orq	$(TWIN_STACK_BLOCK - 1), %rax
	movq	%rcx, TOP(CPU_RCX)(%rax)
	movq	%rdx, TOP(CPU_RDX)(%rax)
	movq	%rsi, TOP(CPU_RSI)(%rax)
	movq	%rdi, TOP(CPU_RDI)(%rax)
	movq	%r8, TOP(CPU_R8)(%rax)
	movq	%r9, TOP(CPU_R9)(%rax)
	movq	%r10, TOP(CPU_R10)(%rax)
	movq	%r11, TOP(CPU_R11)(%rax)
	popq	TOP(CPU_RAX)(%rax)
	popq	TOP(CPU_FLAGS)(%rax)
	movq	(%rsp), %rcx
	movq	%rsp, TOP(CPU_RSP)(%rax)
	movq	%rcx, TOP(CPU_SITE)(%rax)
	leaq	TOP(0)(%rax), %rdi
	movl	$0, CPU_IN_DRIVER(%rdi)
	movq	CPU_HOST_RSP(%rdi), %rsp
	cld
.endm

/* Back, rdi = cpu: all registers and flags from cpu->saved, and the site. Not if the clock
 * has run out meanwhile. */
.macro TO_DRIVER
	cmpl	$0, CPU_STOP(%rdi)
	jne	stopped
	movl	$1, CPU_IN_DRIVER(%rdi)
	movq	CPU_RSP(%rdi), %rsp
	movq	CPU_SITE(%rdi), %rax
	movq	%rax, (%rsp)
	pushq	CPU_FLAGS(%rdi)		# a slot that TO_RUNTIME wrote: no fault
	popfq
	movq	CPU_RAX(%rdi), %rax
	movq	CPU_RCX(%rdi), %rcx
	movq	CPU_RDX(%rdi), %rdx
	movq	CPU_RSI(%rdi), %rsi
	movq	CPU_R8(%rdi), %r8
	movq	CPU_R9(%rdi), %r9
	movq	CPU_R10(%rdi), %r10
	movq	CPU_R11(%rdi), %r11
	movq	CPU_RDI(%rdi), %rdi
.endm

/* A function of the driver's has returned: 0, and rax to *result. */
.macro LEAVE_DRIVER
	movq	%rsp, %rdi
	orq	$(TWIN_STACK_BLOCK - 1), %rdi
	movl	$0, TOP(CPU_IN_DRIVER)(%rdi)
	movq	TOP(CPU_HOST_RSP)(%rdi), %rsp
	cld
	popq	%rcx
	movq	%rax, (%rcx)
	xorl	%eax, %eax
	LEAVE_FRAME
.endm

/* twin_run_driver's frame, without its last word. */
.macro LEAVE_FRAME
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
.endm

/* Call C with rdi = cpu, which it keeps. Two words keep the stack aligned. */
.macro CALL_C function
	pushq	%rdi
	pushq	%rdi
	call	\function
	popq	%rdi
	popq	%rdi
.endm

/* reg = the site's return address, which was on top of the driver stack. */
.macro LOAD_SITE reg
	movq	CPU_SITE(%rdi), \reg
.endm

#endif /* TWIN_TRANSITION_H */
