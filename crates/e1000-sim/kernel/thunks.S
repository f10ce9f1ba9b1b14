/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * thunks.S: the thunks through which compiled kernel code jumps, for native use in
 * dom0. The rewriter supplies those of rewritten objects.
 */
	.text

/* Calls on entry of every function: there is no tracing. */
	.globl	__fentry__
	.type	__fentry__, @function
__fentry__:
	ret
	int3
	.size	__fentry__, . - __fentry__

/* Returns jump here. */
	.globl	__x86_return_thunk
	.type	__x86_return_thunk, @function
__x86_return_thunk:
	ret
	int3
	.size	__x86_return_thunk, . - __x86_return_thunk

/* Indirect calls and jumps: the target is in the register. */
	.macro	indirect_thunk register
	.globl	__x86_indirect_thunk_\register
	.type	__x86_indirect_thunk_\register, @function
__x86_indirect_thunk_\register:
	jmp	*%\register
	int3
	.size	__x86_indirect_thunk_\register, . - __x86_indirect_thunk_\register
	.endm

	.irp	register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	indirect_thunk \register
	.endr

/*
 * Static calls of preemption, as PREEMPT_DYNAMIC in its voluntary setting
 * patches them where nothing preempts: a return, 0 in rax.
 */
	.macro	static_call name
	.globl	__SCT__\name
	.type	__SCT__\name, @function
__SCT__\name:
	xorl	%eax, %eax
	ret
	int3
	.size	__SCT__\name, . - __SCT__\name
	.endm

	static_call cond_resched
	static_call might_resched
	static_call preempt_schedule
	static_call preempt_schedule_notrace

/*
 * void task_switch(u64 *save, u64 load): saves the callee's registers on the
 * stack and its pointer in *save, then switches to the stack `load`, on which the
 * same was saved. rdi, rsi as usual. The vector state needs no saving: kernel
 * code uses none.
 */
	.globl	task_switch
	.type	task_switch, @function
task_switch:
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
	int3
	.size	task_switch, . - task_switch

/* A new task begins here: r12 is its function, r13 the argument. */
	.globl	task_begin
	.type	task_begin, @function
task_begin:
	movq	%r13, %rdi
	xorl	%ebp, %ebp
	call	*%r12
	ud2
	.size	task_begin, . - task_begin

	.section .note.GNU-stack, "", @progbits
