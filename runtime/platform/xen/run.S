/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * int xen_run(const void *function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t *result)
 *
 * xen_run_slowly (gate.c) says what it does, step by step, and does it where anything is not
 * as usual. Here is the usual case, in as few instructions as it takes: the processor has a
 * block, the top table in CR3 has the window, and the processor is in dom0's dirty mask; AC
 * and NT are clear; nobody waits for this processor; nothing is in the way of a quick entry
 * (core/quick.h).
 *
 *   r11 struct xen_seen of this processor, r10 its struct twin_cpu
 */
#include <twin/abi.h>

#include "layout.h"
#include "quick.h"

#define MSR_GS_BASE	0xc0000101
#define FSGSBASE	0x10000
#define UNWANTED_FLAGS	0x44000

/* The GS base is the window's start from here on, and what it was is noted. */
.macro GS_BY_INSTRUCTION
	rdgsbase %rax
	movabsq	$XEN_WINDOW, %r9
	movq	%rax, CPU_HOST_GS(%r10)
	wrgsbase %r9
	lfence
.endm

.macro GS_BY_MSR
	movq	%rdx, %r9
	movl	$MSR_GS_BASE, %ecx
	rdmsr
	movl	%eax, CPU_HOST_GS(%r10)
	movl	%edx, CPU_HOST_GS + 4(%r10)
	movl	$(XEN_WINDOW & 0xffffffff), %eax
	movl	$(XEN_WINDOW >> 32), %edx
	wrmsr
	movq	%r9, %rdx
.endm

/* What was noted again. eax is kept in r9d. */
.macro GS_BACK_BY_INSTRUCTION
	movl	%eax, %r9d
	movq	CPU_HOST_GS(%r10), %rax
	wrgsbase %rax
	lfence
.endm

.macro GS_BACK_BY_MSR
	movl	%eax, %r9d
	movl	$MSR_GS_BASE, %ecx
	movl	CPU_HOST_GS(%r10), %eax
	movl	CPU_HOST_GS + 4(%r10), %edx
	wrmsr
.endm

/* Admitted: with the driver, and out. Two words keep the stack as a call wants it. */
.macro RUN way
	pushq	%r11
	pushq	%r11
	movq	%rdi, %r11
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	GS_\way
	call	twin_run_quick
	popq	%r11
	popq	%r11
	movq	XEN_SEEN_CPU(%r11), %r10
	GS_BACK_\way
	movq	$0, CPU_INSTANCE(%r10)
	lock decl xen_instance + INSTANCE_GATE(%rip)
	incq	XEN_SEEN_TURN(%r11)
	incq	XEN_SEEN_ENTRIES(%r11)
	popfq
	movl	%r9d, %eax
	cmpl	$STATUS_ABORTED, %eax
	je	xen_run_aborted
	ret
.endm

	.text
	.globl	xen_run
	.hidden	xen_run, xen_run_slowly, xen_run_aborted, xen_seen, xen_dirty_mask, xen_instance
	.type	xen_run, @function
	.balign	16
xen_run:
	/* struct cpu_info ends at rax + 1 (hypervisor.h). */
	movq	%rsp, %rax
	orq	$0x7fff, %rax
	movq	%rax, %r9
	subq	twin_value_cpu_info_processor_id(%rip), %r9
	movl	1(%r9), %r9d
	cmpl	$XEN_SEEN_COUNT, %r9d
	jae	xen_run_slowly
	movl	%r9d, %r10d
	shll	$XEN_SEEN_SHIFT, %r10d
	leaq	xen_seen(%rip), %r11
	addq	%r10, %r11
	pushfq
	cli
	testl	$UNWANTED_FLAGS, (%rsp)
	jne	.Lslowly
	/* xen_alias_ready() */
	movq	%cr3, %r10
	cmpq	%r10, XEN_SEEN_ROOT(%r11)
	jne	.Lslowly
	movq	xen_dirty_mask(%rip), %r10
	movq	(%r10), %r10
	btq	%r9, %r10
	jae	.Lslowly
	movq	XEN_SEEN_CPU(%r11), %r10
	testq	%r10, %r10
	je	.Lslowly
	/* xen_clock_try() */
	lock incq XEN_SEEN_TURN(%r11)
	cmpq	$0, XEN_SEEN_AWAITED(%r11)
	jne	.Lleave
	subq	twin_value_cpu_info_cr4(%rip), %rax
	testl	$FSGSBASE, 1(%rax)
	leaq	xen_instance(%rip), %rax
	jne	.Lby_instruction
	ADMIT_QUICK r10, rax, rdi, r9, .Lleave
	RUN	BY_MSR
.Lby_instruction:
	ADMIT_QUICK r10, rax, rdi, r9, .Lleave
	RUN	BY_INSTRUCTION

.Lleave:
	incq	XEN_SEEN_TURN(%r11)
	/* With interrupts as they were. */
.Lslowly:
	popfq
	jmp	xen_run_slowly
	.size	xen_run, . - xen_run

	.section .note.GNU-stack, "", @progbits
