/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A driver of the scheme window32 written by hand the way the rewriter writes it
 * (docs/spec/window.md), and code that does what no verified driver would.
 *
 * wide.S makes the same driver for the scheme window of it: there an address is cut in
 * its register before the operand, which has the prefix 65 only. Operands relative to
 * rsp are the same.
 */
#include <twin/abi.h>

#include "machine/window.h"

#ifdef WIDE
#define NAME(name)	wide_##name
#define START		WIDE_WINDOW
#define VIEW		WIDE_VIEW
#define REG(name)	%r##name
/* For an operand, and for a string's pointer: the place. */
.macro CUT name
	shlq	$(64 - TWIN_WIDE_BITS), %r\name
	shrq	$(64 - TWIN_WIDE_BITS), %r\name
.endm
.macro CUT_POINTER name
	CUT	\name
.endm
.macro FUNCTION name
	BEGIN	wide_\name
.endm
#else
#define NAME(name)	window_##name
#define START		WINDOW
#define VIEW		WINDOW_VIEW
#define REG(name)	%e##name
.macro CUT name				/* the processor does */
.endm
.macro CUT_POINTER name
	movl	%e\name, %e\name
.endm
.macro FUNCTION name
	BEGIN	window_\name
.endm
#endif

.macro LABEL name
	.globl	\name
\name:
.endm
.macro BEGIN name
	.type	\name, @function
	.balign	16
	LABEL	\name
.endm

	.text
	LABEL	NAME(text_start)

/* u64 load(u64 *p) */
FUNCTION load
	CUT	di
	movq	%gs:(REG(di)), %rax
	ret

/* void store(u64 *p, u64 value) */
FUNCTION store
	CUT	di
	movq	%rsi, %gs:(REG(di))
	ret

/* u64 indexed(u64 *p, s64 i): p[i - 1] */
FUNCTION indexed
#ifdef WIDE
	leaq	(%rdi,%rsi,8), %rdi
	CUT	di
	movq	%gs:-8(%rdi), %rax
#else
	movq	%gs:-8(%edi,%esi,8), %rax
#endif
	ret

#ifdef WIDE
/* u64 table(u64 i): what is i bytes from TABLE, by a displacement */
FUNCTION table
	CUT	di
	movq	%gs:TABLE_LOW(%rdi), %rax
	ret

/* u64 border(u64 i): what is i bytes from the mirror's start */
FUNCTION border
	CUT	di
	movq	%gs:-TWIN_WIDE_MIRROR(%rdi), %rax
	ret

/* void store_border(u64 i, u64 value) */
FUNCTION store_border
	CUT	di
	movq	%rsi, %gs:-TWIN_WIDE_MIRROR(%rdi)
	ret

/* u64 beyond(u64 *p): what is 2 GiB less one byte after p */
FUNCTION beyond
	CUT	di
	movq	%gs:0x7fffffff(%rdi), %rax
	ret
#endif

/* u64 stack_pointer(u64 x): a local reached by pointer; x + 1 */
FUNCTION stack_pointer
	subq	$24, %rsp
	movq	%rdi, %gs:8(%esp)
	movabsq	$VIEW, %rdx
	leaq	8(%rsp,%rdx), %rdx
	CUT	dx
	incq	%gs:(REG(dx))
	movq	%gs:8(%esp), %rax
	addq	$24, %rsp
	ret

/* u64 arguments(a, b, c, d, e, f, ...): digits of six, plus stack arguments */
FUNCTION arguments
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
FUNCTION gs
	movq	%rsp, %rdx
	orq	$(TWIN_STACK_BLOCK - 1), %rdx
	movq	TWIN_GS_BASE_FROM_TOP(%rdx), %rdx
	leaq	(%rdx,%rdi), %rdx
	CUT	dx
	movq	%gs:(REG(dx)), %rax
	ret

/* void spin(u64 *p): until *p is not 0 */
FUNCTION spin
	CUT	di
1:	cmpq	$0, %gs:(REG(di))
	je	1b
	ret

/* u64 import(...): through the stub that import_stub points to */
FUNCTION import
	leaq	-8(%rsp), %rsp
	movq	$8, %gs:(%esp)		# argument 8
	leaq	-8(%rsp), %rsp
	movq	$7, %gs:(%esp)		# argument 7
	call	*import_stub(%rip)
	LABEL	NAME(import_site)
	addq	$16, %rsp
	addq	%rdx, %rax
	ret

/* u64 reference(u64 x): an import gets a pointer to a local that holds x; the local */
.macro REFERENCE name, stub
FUNCTION \name
	subq	$24, %rsp
	movq	%rdi, %gs:8(%esp)
	movabsq	$VIEW, %rdi
	leaq	8(%rsp,%rdi), %rdi
	call	*\stub(%rip)
	addq	%gs:8(%esp), %rax
	addq	$24, %rsp
	ret
.endm
	REFERENCE reference, import_stub
	REFERENCE hot_reference, hot_stub

/* u64 flood(u64 value): all of the data stack by pointer, then returns 7 */
FUNCTION flood
	movq	%rsp, %rdx
	andq	$-TWIN_STACK_BLOCK, %rdx
	movabsq	$VIEW, %rax
	leaq	(%rdx,%rax), %rdx
	movl	$TWIN_STACK_LOW, %ecx
1:	leaq	(%rdx,%rcx), %rax
	CUT	ax
	movq	%rdi, %gs:(REG(ax))
	addl	$8, %ecx
	cmpl	$TWIN_STACK_HIGH, %ecx
	jb	1b
	movl	$7, %eax
	ret

/* u64 copy(void *to, const void *from, u64 words): the end of to */
FUNCTION copy
	movq	%rdx, %rcx
	leaq	(%rdi,%rcx,8), %rax
	pushq	%rax
	leaq	(%rsi,%rcx,8), %rax
	pushq	%rax
	movabsq	$START, %rax
	CUT_POINTER di
	leaq	(%rdi,%rax), %rdi
	CUT_POINTER si
	leaq	(%rsi,%rax), %rsi
	rep movsq
	popq	%rsi
	popq	%rdi
	movq	%rdi, %rax
	ret

/* void fill(void *to, u64 bytes, u64 backward): rep stosb */
FUNCTION fill
	movq	%rsi, %rcx
	movabsq	$START, %rax
	CUT_POINTER di
	leaq	(%rdi,%rax), %rdi
	testq	%rdx, %rdx
	je	1f
	std
1:	rep stosb
	cld
	ret

/* Recursion without end whose variables meet the guard before a call does. */
FUNCTION recurse
	subq	$TWIN_MAX_FRAME, %rsp
	movq	%rax, %gs:(%esp)
	call	NAME(recurse)
	addq	$TWIN_MAX_FRAME, %rsp
	ret

	LABEL	NAME(text_end)

	.section .note.GNU-stack, "", @progbits
