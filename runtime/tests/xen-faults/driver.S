/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Driver code by hand, for every end that driver code in Xen can have. platform.c enters
 * it as the platform enters a driver: rdi is the argument, the GS base is the window's
 * start. It does what no verified code may do, too.
 */
	.section .text.xen_test, "ax", @progbits

	.macro FUNCTION name
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign	16
\name:
	.endm

	.globl	xen_test_start
	.hidden	xen_test_start
xen_test_start:

FUNCTION xen_test_return		/* nothing: what an entry costs */
	xorl	%eax, %eax
	ret

FUNCTION xen_test_divide		/* #DE */
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	movl	$1, %eax
	divq	%rcx
	ret

FUNCTION xen_test_invalid		/* #UD */
	ud2

FUNCTION xen_test_protection		/* #GP: not canonical, and not by the window */
	movabs	$0x1234000000000000, %rax
	movq	(%rax), %rax
	ret

FUNCTION xen_test_fetch			/* #PF of a fetch */
	jmp	*%rdi

FUNCTION xen_test_recurse		/* #DF: the control stack ends */
	subq	$0x200, %rsp
	call	xen_test_recurse
	addq	$0x200, %rsp
	ret

/* As the scheme window does it: reads the word at dom0's address rdi, and writes it. */
FUNCTION xen_test_touch
	movabs	$0x3ffffffffff, %rcx
	pext	%rcx, %rdi, %rcx
	movq	%gs:(%rcx), %rax
	movq	%rax, %gs:(%rcx)
	xorl	%eax, %eax
	ret

FUNCTION xen_test_loop			/* it never ends, and calls nobody */
	pause
	jmp	xen_test_loop

FUNCTION xen_test_edge			/* #DE with rdi bytes of the control stack left */
	andq	$-0x10000, %rsp
	leaq	0x9000(%rsp,%rdi), %rsp
	xorl	%ecx, %ecx
	divl	%ecx

	.globl	xen_test_end
	.hidden	xen_test_end
xen_test_end:

	.section .note.GNU-stack, "", @progbits
