/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Thunks that the compiler calls, as in a kernel on a processor without the bugs. */
	.text
	.globl	__fentry__, __x86_return_thunk
__fentry__:
__x86_return_thunk:
	ret

	.macro	thunk reg
	.globl	__x86_indirect_thunk_\reg
__x86_indirect_thunk_\reg:
	jmp	*%\reg
	.endm
	.irp	reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	thunk	\reg
	.endr
	.section .note.GNU-stack, "", @progbits
