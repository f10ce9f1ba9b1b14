# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The runtime of a program that is mapped to itself: the translation table and
# the slow paths, each linked once, however many objects bring it along.
#
# Context: any thread, signal handlers included; needs no set-up. A miss is
# answered with the address itself. The first page to miss on an entry claims it
# for good: an entry that is valid never changes, so nobody can read the tag of
# one page and the translation of another. Later pages of the same index take
# the slow path each time.
#
# The tag of a free entry is no page of its index, or who reads it for that page
# could add the translation of one that is filled in meanwhile. 0 is a page of
# index 0: twin_identity_start gives the first entry another tag, before all other
# constructors and so before other threads. Until then, and in a program that
# runs no constructors, the first entry stays as it is, which is right for page 0.
# (In a section with contents the table would add 64 KiB to each object.)
#
# twin_slow_<reg>: in: an address in <reg>. out: the same; all registers kept, the
# flags not. Stack: 56 bytes.
#
#   entry  +0  tag    page address; free: 0, and FIRST of the first; BUSY being filled
#          +8  xlate  the same page address

	.section .bss.twin_identity,"awG",@nobits,twin_identity,comdat
	.hidden	twin_stlb
	.globl	twin_stlb
	.type	twin_stlb, @object
	.size	twin_stlb, 65536
	.p2align 6
twin_stlb:
	.zero	65536

	.section .text.twin_identity,"axG",@progbits,twin_identity,comdat
	.hidden	twin_identity_fill
	.globl	twin_identity_fill
	.type	twin_identity_fill, @function
	.p2align 4
twin_identity_fill:
	.cfi_startproc
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	movq	32(%rsp), %rdx			# the address
	andq	$-4096, %rdx			# its page
	movl	%edx, %eax
	shrl	$8, %eax
	andl	$0xfff0, %eax
	leaq	twin_stlb(%rip), %rcx
	addq	%rax, %rcx			# its entry
	cmpl	$1, %eax
	sbbl	%eax, %eax
	andl	$4096, %eax			# FIRST for the first, 0 for others
	cmpq	%rax, (%rcx)
	jne	1f				# taken, by this page or another
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	movabsq	$0x8000000000000000, %rdx	# BUSY: no canonical address is near
	lock cmpxchgq %rdx, (%rcx)
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	jne	1f
	movq	%rdx, 8(%rcx)			# translation first,
	movq	%rdx, (%rcx)			# tag second (stores stay in order)
1:	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%rax
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	twin_identity_fill, .-twin_identity_fill

	.hidden	twin_identity_start
	.globl	twin_identity_start
	.type	twin_identity_start, @function
	.p2align 4
twin_identity_start:
	.cfi_startproc
	movq	$4096, twin_stlb(%rip)		# FIRST: a page of index 1
	ret
	.cfi_endproc
	.size	twin_identity_start, .-twin_identity_start

	.irp	reg, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	.hidden	twin_slow_\reg
	.globl	twin_slow_\reg
	.type	twin_slow_\reg, @function
twin_slow_\reg:
	.cfi_startproc
	pushq	%\reg				# the argument
	.cfi_adjust_cfa_offset 8
	call	twin_identity_fill
	popq	%\reg
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	twin_slow_\reg, .-twin_slow_\reg
	.endr

	.section .init_array.00000,"awG",@init_array,twin_identity,comdat
	.p2align 3
	.quad	twin_identity_start
