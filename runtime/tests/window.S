/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A driver of the scheme window32 written by hand the way the rewriter writes it
 * (docs/spec/window.md), and code that does what no verified driver would.
 */
#include <twin/abi.h>

#include "machine/window.h"

.macro FUNCTION name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
.endm

	.text
	.globl	window_text_start
window_text_start:

/* u64 load(u64 *p) */
FUNCTION window_load
	movq	%gs:(%edi), %rax
	ret

/* void store(u64 *p, u64 value) */
FUNCTION window_store
	movq	%rsi, %gs:(%edi)
	ret

/* u64 indexed(u64 *p, s64 i): p[i - 1] */
FUNCTION window_indexed
	movq	%gs:-8(%edi,%esi,8), %rax
	ret

/* u64 stack_pointer(u64 x): a local reached by pointer; x + 1 */
FUNCTION window_stack_pointer
	subq	$24, %rsp
	movq	%rdi, %gs:8(%esp)
	movabsq	$WINDOW_VIEW, %rdx
	leaq	8(%rsp,%rdx), %rdx
	incq	%gs:(%edx)
	movq	%gs:8(%esp), %rax
	addq	$24, %rsp
	ret

/* u64 arguments(a, b, c, d, e, f, ...): digits of six, plus stack arguments */
FUNCTION window_arguments
	leaq	(%rsi,%rdi,8), %rax
	leaq	(%rdx,%rax,8), %rax
	leaq	(%rcx,%rax,8), %rax
	leaq	(%r8,%rax,8), %rax
	leaq	(%r9,%rax,8), %rax
	.irp	offset, 8, 16, 24, 32, 40, 48, 56, 64
	addq	%gs:\offset(%esp), %rax
	.endr
	ret

/* u64 gs(u64 offset): mov %gs:(offset) of dom0's */
FUNCTION window_gs
	movq	%rsp, %rdx
	orq	$(TWIN_STACK_BLOCK - 1), %rdx
	movq	TWIN_GS_BASE_FROM_TOP(%rdx), %rdx
	leaq	(%rdx,%rdi), %rdx
	movq	%gs:(%edx), %rax
	ret

/* void spin(u64 *p): until *p is not 0 */
FUNCTION window_spin
	cmpq	$0, %gs:(%edi)
	je	window_spin
	ret

/* u64 import(...): through the stub that import_stub points to */
FUNCTION window_import
	leaq	-8(%rsp), %rsp
	movq	$8, %gs:(%esp)		# argument 8
	leaq	-8(%rsp), %rsp
	movq	$7, %gs:(%esp)		# argument 7
	call	*import_stub(%rip)
	.globl	window_import_site
window_import_site:
	addq	$16, %rsp
	addq	%rdx, %rax
	ret

/* u64 reference(u64 x): an import gets a pointer to a local that holds x; the local */
.macro REFERENCE name, stub
FUNCTION window_\name
	subq	$24, %rsp
	movq	%rdi, %gs:8(%esp)
	movabsq	$WINDOW_VIEW, %rdi
	leaq	8(%rsp,%rdi), %rdi
	call	*\stub(%rip)
	addq	%gs:8(%esp), %rax
	addq	$24, %rsp
	ret
.endm
	REFERENCE reference, import_stub
	REFERENCE hot_reference, hot_stub

/* u64 flood(u64 value): all of the data stack by pointer, then returns 7 */
FUNCTION window_flood
	movq	%rsp, %rdx
	andq	$-TWIN_STACK_BLOCK, %rdx
	movl	$TWIN_STACK_LOW, %ecx
1:	movq	%rdi, %gs:(%edx,%ecx)
	addl	$8, %ecx
	cmpl	$TWIN_STACK_HIGH, %ecx
	jb	1b
	movl	$7, %eax
	ret

/* u64 copy(void *to, const void *from, u64 words): the end of to */
FUNCTION window_copy
	movq	%rdx, %rcx
	leaq	(%rdi,%rcx,8), %rax
	pushq	%rax
	leaq	(%rsi,%rcx,8), %rax
	pushq	%rax
	movabsq	$WINDOW, %rax
	movl	%edi, %edi
	leaq	(%rdi,%rax), %rdi
	movl	%esi, %esi
	leaq	(%rsi,%rax), %rsi
	rep movsq
	popq	%rsi
	popq	%rdi
	movq	%rdi, %rax
	ret

/* void fill(void *to, u64 bytes, u64 backward): rep stosb */
FUNCTION window_fill
	movq	%rsi, %rcx
	movabsq	$WINDOW, %rax
	movl	%edi, %edi
	leaq	(%rdi,%rax), %rdi
	testq	%rdx, %rdx
	je	1f
	std
1:	rep stosb
	cld
	ret

/* Recursion without end whose variables meet the guard before a call does. */
FUNCTION window_recurse
	subq	$TWIN_MAX_FRAME, %rsp
	movq	%rax, %gs:(%esp)
	call	window_recurse
	addq	$TWIN_MAX_FRAME, %rsp
	ret

	.globl	window_text_end
window_text_end:

	.section .note.GNU-stack, "", @progbits
