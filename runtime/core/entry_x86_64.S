/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transitions between driver code and the runtime's C code, x86-64 System V.
 *
 * Driver code runs on the driver stack of its CPU's block; `top`, which is
 * rsp | (TWIN_STACK_BLOCK - 1), finds the context there. C code runs on the
 * host's stack. Position independent, all references relative to rip.
 *
 * Pushes here go to the driver stack and may fault on its guard page. The fault
 * handler knows the range of this text (from twin_entry_text_start) and treats
 * such a fault as the driver's stack overflow. For that, in_driver is 1 at every
 * push to the driver stack, and 0 whenever C code runs.
 *
 * Neither this code nor the C code touches a vector register: slow paths keep
 * the driver's. The host's values in them were cleared before (core/enter.c). Nor
 * does either use GS, whose base is the driver's here if it has a window: C code
 * changes it around code of the host (core/internal.h).
 *
 * With a window, the driver stack is the control stack, of which the window shows
 * nothing.
 *
 * Return addresses. `ret` takes its target from the driver stack, which the
 * driver can write by pointer; dom0 can too, while it answers an upcall. Why each
 * `ret` here goes where it should:
 *
 *   to driver code   TO_RUNTIME keeps the word on top of the stack in the
 *                    context, which the driver cannot reach, and TO_DRIVER puts
 *                    it back: `ret` finds what the call pushed, whatever ran
 *                    meanwhile
 *   slow paths       only this file and trusted C code run between call and
 *                    `ret`, so the word below and the site above
 *                    (twin_slow_<reg>) are unchanged; other CPUs' translations
 *                    never lead here
 *   to the host      twin_run_driver returns on the host's stack, and a driver
 *                    function comes to twin_driver_return by its own `ret`, which
 *                    compares the word with its shadow where it may have been
 *                    written (the verifier's P2-return-word)
 */
#include <twin/abi.h>
#include "quick.h"
#include "transition.h"

	.text
	.globl	twin_entry_text_start
twin_entry_text_start:

/* ---- Into the driver and out of it ------------------------------------- */

/*
 * int twin_run_driver(struct twin_cpu *cpu, uint64_t hyp,
 *                     const uint64_t args[6], uint64_t *result)
 *
 *   host's stack                    driver stack
 *   +56  return to twin_enter       start_rsp+63 ...
 *   +48  rbp                        start_rsp     8 words of zeroes: arguments 7 on
 *   +40  rbx                              -8      twin_driver_return
 *   +32  r12
 *   +24  r13
 *   +16  r14
 *   +8   r15
 *   +0   result      <- cpu->host_rsp, 16-byte aligned
 *
 * Returns 0 with *result = rax, or STATUS_ABORTED through twin_unwind.
 */
ENTRY twin_run_driver
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushq	%rcx
	movq	%rsp, CPU_HOST_RSP(%rdi)
	movq	%rdi, %rbx
	movq	%rsi, %r11
	movq	%rdx, %rax
	movq	(%rax), %rdi
	movq	8(%rax), %rsi
	movq	16(%rax), %rdx
	movq	24(%rax), %rcx
	movq	32(%rax), %r8
	movq	40(%rax), %r9
	movl	$1, CPU_IN_DRIVER(%rbx)
	movq	CPU_START_RSP(%rbx), %rsp
	xorl	%eax, %eax
	xorl	%ebx, %ebx
	xorl	%ebp, %ebp
	xorl	%r10d, %r10d
	xorl	%r12d, %r12d
	xorl	%r13d, %r13d
	xorl	%r14d, %r14d
	xorl	%r15d, %r15d
	cld
	call	*%r11
	.globl	twin_driver_return
twin_driver_return:
	LEAVE_DRIVER
END twin_run_driver

/*
 * int twin_enter_quick(struct twin_cpu *cpu, uint64_t hyp, uint64_t a0, uint64_t a1,
 *                      uint64_t a2, uint64_t *result)
 *
 * twin_enter where nothing is in the way (quick.h).
 */
ENTRY twin_enter_quick
	movq	CPU_QUICK(%rdi), %rax
	ADMIT_QUICK rdi, rax, rsi, r10, twin_enter_slowly
	pushq	%rdi
	movq	%rdi, %r10
	movq	%rsi, %r11
	movq	%rdx, %rdi
	movq	%rcx, %rsi
	movq	%r8, %rdx
	movq	%r9, %r8
	call	twin_run_quick
	popq	%rdi
	movq	CPU_INSTANCE(%rdi), %rcx
	movq	$0, CPU_INSTANCE(%rdi)
	lock decl INSTANCE_GATE(%rcx)
	ret
END twin_enter_quick

/*
 * twin_run_driver for a quick entry, with its frame, which twin_unwind leaves by. In: r10 cpu,
 * r11 the function, rdi, rsi, rdx its arguments, r8 result, the stack as a call of the psABI
 * has it. Out: eax, as twin_run_driver.
 */
ENTRY twin_run_quick
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushq	%r8
	movq	%rsp, CPU_HOST_RSP(%r10)
	movq	$1, CPU_IN_DRIVER(%r10)		# and may_nest = 0
	movq	CPU_QUICK_RSP(%r10), %rsp
	xorl	%eax, %eax
	xorl	%ecx, %ecx
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	xorl	%ebx, %ebx
	xorl	%ebp, %ebp
	xorl	%r10d, %r10d
	xorl	%r12d, %r12d
	xorl	%r13d, %r13d
	xorl	%r14d, %r14d
	xorl	%r15d, %r15d
	call	*%r11				# DF is clear, as C code has it
	LEAVE_DRIVER
END twin_run_quick

/*
 * End the driver's invocation; rdi = cpu, any stack. The host's stack below
 * twin_run_driver's frame is dropped. It holds nothing: the runtime's C frames
 * have returned, and faulting driver code has none there.
 */
ENTRY twin_abort_from_fault
twin_unwind:
	movl	$0, CPU_IN_DRIVER(%rdi)
	movq	CPU_HOST_RSP(%rdi), %rsp
	cld
	popq	%rcx
	movl	$STATUS_ABORTED, %eax
	LEAVE_FRAME
END twin_abort_from_fault

/* ---- Translation ------------------------------------------------------- */

/*
 * twin_slow_<reg>: dom0 address in reg, its translation out in reg; all other
 * registers are kept. The flags are not: the check has overwritten them before,
 * and emitted code restores them after the call where they are live.
 *
 * The driver's own stack is a common case with a short path: its pages translate
 * to themselves, which one register suffices to decide.
 *
 *   t = block - address;  LOW <= address - block < HIGH
 *                     <=> t + HIGH - 1 < HIGH - LOW, unsigned
 */
.macro SLOW reg, t
ENTRY twin_slow_\reg
	pushq	%\t
	movq	%rsp, %\t
	andq	$-TWIN_STACK_BLOCK, %\t
	subq	%\reg, %\t
	addq	$(TWIN_STACK_HIGH - 1), %\t
	cmpq	$(TWIN_STACK_HIGH - TWIN_STACK_LOW), %\t
	popq	%\t
	jae	1f
	ret
1:	pushq	%\reg
	call	slow_common
	popq	%\reg
	ret
END twin_slow_\reg
.endm

	SLOW	rax, rcx
	.irp	reg, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	SLOW	\reg, rax
	.endr

/*
 * Replaces the word that twin_slow_<reg> pushed.
 *
 *   +16  site
 *   +8   address, then translation
 *   +0   return to twin_slow_<reg>
 */
	.type	slow_common, @function
	.balign	16
slow_common:
	TO_RUNTIME
	movq	CPU_RSP(%rdi), %rax		# +0 return, +8 address, +16 site
	movq	8(%rax), %rsi
	movq	16(%rax), %rdx
	CALL_C	twin_slow_path
	testq	%rax, %rax
	jz	twin_unwind
	movq	CPU_RSP(%rdi), %rcx
	movq	%rax, 8(%rcx)
	TO_DRIVER
	ret
END slow_common

/* ---- Indirect calls ---------------------------------------------------- */

/*
 * twin_stlb_call: called or jumped to with a dom0 code address in r11. Control
 * goes to its counterpart; all is kept but r10, r11 and the flags.
 *
 *   cache index = (r11 ^ r11 >> SHIFT) & (ENTRIES - 1), entries of 16 bytes
 */
ENTRY twin_stlb_call
	pushq	%rax
	movq	%rsp, %rax
	orq	$(TWIN_STACK_BLOCK - 1), %rax
	movq	TOP(CPU_CALL_CACHE)(%rax), %rax
	movl	%r11d, %r10d
	shrl	$CALL_SHIFT, %r10d
	xorl	%r11d, %r10d
	andl	$((1 << CALL_SHIFT) - 1), %r10d
	shll	$4, %r10d
	addq	%r10, %rax
	cmpq	(%rax), %r11
	jne	.Lcall_miss
	movq	8(%rax), %r11
	popq	%rax
	jmp	*%r11
.Lcall_miss:
	popq	%rax
	TO_RUNTIME
	movq	CPU_R11(%rdi), %rsi
	LOAD_SITE %rdx
	CALL_C	twin_call_slow
	testq	%rax, %rax
	jz	twin_unwind
	movq	%rax, CPU_R11(%rdi)
	TO_DRIVER
	jmp	*%r11
END twin_stlb_call

/* ---- Ports ------------------------------------------------------------- */

/* Port in dx, data to al, ax or eax; everything else and the flags kept. */
.macro PORT_IN bytes, store:vararg
	TO_RUNTIME
	movzwl	CPU_RDX(%rdi), %esi
	movl	$\bytes, %edx
	LOAD_SITE %rcx
	CALL_C	twin_port_in
	testq	%rax, %rax
	js	twin_unwind
	\store
	TO_DRIVER
	ret
.endm

ENTRY twin_in8
	PORT_IN	1, movb %al, CPU_RAX(%rdi)
END twin_in8

ENTRY twin_in16
	PORT_IN	2, movw %ax, CPU_RAX(%rdi)
END twin_in16

ENTRY twin_in32				/* writing eax clears the upper half */
	PORT_IN	4, movq %rax, CPU_RAX(%rdi)
END twin_in32

/* Port in dx, data in al, ax or eax; everything and the flags kept. */
.macro PORT_OUT bytes
	TO_RUNTIME
	movzwl	CPU_RDX(%rdi), %esi
	movl	$\bytes, %edx
	movl	CPU_RAX(%rdi), %ecx
	LOAD_SITE %r8
	CALL_C	twin_port_out
	testl	%eax, %eax
	jnz	twin_unwind
	TO_DRIVER
	ret
.endm

ENTRY twin_out8
	PORT_OUT 1
END twin_out8

ENTRY twin_out16
	PORT_OUT 2
END twin_out16

ENTRY twin_out32
	PORT_OUT 4
END twin_out32

/* ---- WARN, BUG, overwritten return addresses, wild pointers ----------- */

/* Report and go on; everything kept. */
ENTRY twin_warn
	TO_RUNTIME
	LOAD_SITE %rsi
	CALL_C	twin_warn_site
	TO_DRIVER
	ret
END twin_warn

/* Abort. Called, so that the return address says where. */
ENTRY twin_bug
	TO_RUNTIME
	LOAD_SITE %rsi
	CALL_C	twin_bug_site
	jmp	twin_unwind
END twin_bug

/* Abort: the caller's return address differs from its shadow. */
ENTRY twin_smashed
	TO_RUNTIME
	LOAD_SITE %rsi
	CALL_C	twin_smashed_site
	jmp	twin_unwind
END twin_smashed

/* Abort: a pointer is none of dom0's. It is on the stack, above the return address. */
ENTRY twin_wild
	TO_RUNTIME
	LOAD_SITE %rsi
	CALL_C	twin_wild_site
	jmp	twin_unwind
END twin_wild

/* Abort in place of TO_DRIVER, on the host's stack. */
	.type	stopped, @function
	.balign	16
stopped:
	LOAD_SITE %rsi
	CALL_C	twin_stopped_site
	jmp	twin_unwind
END stopped

/* ---- Locks ------------------------------------------------------------- */

/*
 * A stub in place of a routine of driver code that takes or frees a lock comes here, with
 * its address in r11 and the lock's in rdi. The site is on top of the driver stack.
 *
 *   cpu->lock[0 .. cpu->locks)   { address, site }, in the order of taking
 */
ENTRY twin_note_lock
	movq	%rsp, %rax
	orq	$(TWIN_STACK_BLOCK - 1), %rax
	movl	TOP(CPU_LOCKS)(%rax), %ecx
	incl	TOP(CPU_LOCKS)(%rax)
	cmpl	$HELD_LOCKS, %ecx
	jae	1f
	shll	$4, %ecx
	movq	(%rsp), %rdx
	movq	%rdi, TOP(CPU_LOCK)(%rax, %rcx)
	movq	%rdx, TOP(CPU_LOCK + 8)(%rax, %rcx)
1:	jmp	*%r11
END twin_note_lock

/* The last note of that lock goes, and later ones move down. Without one, and if there were
 * more than HELD_LOCKS, the count alone says that there was a lock. */
ENTRY twin_note_unlock
	movq	%rsp, %rax
	orq	$(TWIN_STACK_BLOCK - 1), %rax
	movl	TOP(CPU_LOCKS)(%rax), %ecx
	testl	%ecx, %ecx
	jz	4f
	decl	TOP(CPU_LOCKS)(%rax)
	cmpl	$HELD_LOCKS, %ecx
	ja	4f
	movl	%ecx, %edx
	shll	$4, %edx
	movl	%edx, %r10d
1:	subl	$16, %edx
	js	3f
	cmpq	%rdi, TOP(CPU_LOCK)(%rax, %rdx)
	jne	1b
2:	addl	$16, %edx
	cmpl	%r10d, %edx
	jae	4f
	movq	TOP(CPU_LOCK)(%rax, %rdx), %r8
	movq	TOP(CPU_LOCK + 8)(%rax, %rdx), %r9
	movq	%r8, TOP(CPU_LOCK - 16)(%rax, %rdx)
	movq	%r9, TOP(CPU_LOCK - 8)(%rax, %rdx)
	jmp	2b
3:	incl	TOP(CPU_LOCKS)(%rax)
4:	jmp	*%r11
END twin_note_unlock

/* ---- Calls out of the driver ------------------------------------------- */

/*
 * Driver code calls a stub in place of an imported routine:
 *
 *	movl	$number, %r11d
 *	jmp	twin_import_entry
 *
 *   driver stack: +8 arguments 7 on, +0 return to driver code
 *
 * The platform's import runs on the host's stack. It returns rax and the
 * registers that it changed in the frame; all else is kept, flags included.
 */
ENTRY twin_import_entry
	TO_RUNTIME
	movq	%rbx, CPU_KEPT(%rdi)
	movq	%rbp, CPU_KEPT + 8(%rdi)
	movq	%r12, CPU_KEPT + 16(%rdi)
	movq	%r13, CPU_KEPT + 24(%rdi)
	movq	%r14, CPU_KEPT + 32(%rdi)
	movq	%r15, CPU_KEPT + 40(%rdi)
	movl	CPU_R11(%rdi), %esi
	CALL_C	twin_import
	testl	%eax, %eax
	jnz	1f
	TO_DRIVER
	ret
1:	cmpl	$STATUS_FROZEN, %eax
	jne	twin_unwind
	/* Out of the host's frame as by twin_unwind. All of the driver's is in the context. */
	movq	CPU_HOST_RSP(%rdi), %rsp
	popq	%rcx
	LEAVE_FRAME
END twin_import_entry

/*
 * int twin_run_frozen(struct twin_cpu *cpu, uint64_t *result)
 *
 * To driver code that waits in twin_import_entry. The frame on the host's stack is that of
 * twin_run_driver, and so are the ways back.
 */
ENTRY twin_run_frozen
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushq	%rsi
	movq	%rsp, CPU_HOST_RSP(%rdi)
	movq	CPU_KEPT(%rdi), %rbx
	movq	CPU_KEPT + 8(%rdi), %rbp
	movq	CPU_KEPT + 16(%rdi), %r12
	movq	CPU_KEPT + 24(%rdi), %r13
	movq	CPU_KEPT + 32(%rdi), %r14
	movq	CPU_KEPT + 40(%rdi), %r15
	TO_DRIVER
	ret
END twin_run_frozen

/*
 * The same for a hot routine, whose address the stub loads to r11. Packets call it, so it is shorter: hot
 * routines are the hypervisor's own, and their callers take them for functions of the psABI (3.2.1). So of what a
 * call may destroy only the frame's registers are kept; r10, r11 and the flags hold nothing of the host's.
 *
 *   host's stack   struct twin_call_frame, 16-byte aligned (core/enter.c asserts its order)
 */
ENTRY twin_call_out
	movq	%rsp, %r10
	orq	$(TWIN_STACK_BLOCK - 1), %r10
	movl	$0, TOP(CPU_IN_DRIVER)(%r10)
	movq	%rax, TOP(CPU_RAX)(%r10)
	movq	(%rsp), %rax
	movq	%rsp, TOP(CPU_RSP)(%r10)
	movq	%rax, TOP(CPU_SITE)(%r10)
	movq	TOP(CPU_HOST_RSP)(%r10), %rsp
	pushq	%r11
	pushq	%rax
	pushq	$0				# the stack, which C code finds
	pushq	TOP(CPU_RAX)(%r10)
	pushq	%r9
	pushq	%r8
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	movq	%rsp, %rsi
	leaq	TOP(0)(%r10), %rdi
	cld
	CALL_C	twin_run_hot
	testl	%eax, %eax
	jnz	twin_unwind
	cmpl	$0, CPU_STOP(%rdi)
	jne	stopped
	movq	%rdi, %r10
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%r8
	popq	%r9
	popq	%rax
	movq	CPU_SITE(%r10), %r11
	movl	$1, CPU_IN_DRIVER(%r10)
	movq	CPU_RSP(%r10), %rsp
	movq	%r11, (%rsp)
	xorl	%r10d, %r10d
	ret
END twin_call_out

	.globl	twin_entry_text_end
twin_entry_text_end:

	.section .note.GNU-stack, "", @progbits
