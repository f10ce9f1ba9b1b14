/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The runtime of a module rewritten for a stock Linux kernel
 * (docs/spec/linux-module.md). twin links it into each module; it needs no kernel
 * header, and of the kernel only the return thunk. TWIN_RETURN_THUNK is 0 for modules
 * that do not import that: not every kernel has it.
 *
 * The mapping is the identity: an address that is allowed is its own
 * translation. So a slow path leaves every register as it is, and only decides
 * whether to go on.
 *
 * Context: any, NMI included. Takes no lock, may not sleep, uses less than 128
 * bytes of stack unless it refuses.
 *
 * ORC gives the kernel's unwinder the distance from rsp to the caller's frame at
 * each place; the sections are those that objtool would make
 * (arch/x86/include/asm/orc_types.h of Linux 6.1, struct orc_entry). For a kernel
 * with another format twin encodes the entries again.
 */
#include <twin/abi.h>

#ifndef TWIN_SCHEME
#error "TWIN_SCHEME is one of TWIN_SCHEME_*"
#endif
#ifndef TWIN_RETURN_THUNK
#error "TWIN_RETURN_THUNK is 0 or 1"
#endif

#define ORC_REG_SP	5

/*
 * The lowest address of the kernel's half that is ever mapped, by depth of page
 * tables: below are the hole that hypervisors may use and the LDT's remap
 * (Documentation/x86/x86_64/mm.rst). Base addresses of the direct map, vmalloc
 * and modules move with KASLR, but stay above, so no variable of the kernel is
 * read. Nothing is mapped in the page below either, which an entry stands for, too.
 */
#define LOWEST_4_LEVELS	0xffff888000000000
#define LOWEST_5_LEVELS	0xff11000000000000
#define CR4_LA57_BIT	12
/*
 * The page below the fixmap's last one: a window ends with the page after the
 * entry's own. Above are the vsyscall page's neighbours, never mapped, and error
 * pointers.
 */
#define HIGHEST		-0x802000

/* From here on the caller's frame begins `bytes` above rsp. */
.macro ORC bytes
.Lorc\@:
	.pushsection .orc_unwind_ip, "a", @progbits
	.long	.Lorc\@ - .
	.popsection
	.pushsection .orc_unwind, "a", @progbits
	.short	\bytes, 0, ORC_REG_SP
	.popsection
.endm

/* Nothing can be said of what follows. */
.macro ORC_END
.Lorc\@:
	.pushsection .orc_unwind_ip, "a", @progbits
	.long	.Lorc\@ - .
	.popsection
	.pushsection .orc_unwind, "a", @progbits
	.short	0, 0, 0
	.popsection
.endm

/* Back to the caller, in the way that the kernel patches to its liking. */
.macro RETURN
#if TWIN_RETURN_THUNK
.Lreturn\@:
	jmp	__x86_return_thunk
	int3
	.pushsection .return_sites, "a", @progbits
	.long	.Lreturn\@ - .
	.popsection
#else
	ret
	int3
#endif
.endm

	.section .twin.text, "ax", @progbits
	.balign	16

/*
 * twin_slow_<reg>: reg holds an address that the table did not answer for. Comes
 * back with all registers and flags as they were, if the address is allowed.
 */
.macro ENTRY reg
	.type	twin_slow_\reg, @function
	.balign	16
twin_slow_\reg:
	ORC	8
	pushq	%\reg
	ORC	16
	call	twin_slow
	popq	%\reg
	ORC	8
	RETURN
	.size	twin_slow_\reg, . - twin_slow_\reg
.endm

	.irp	reg, rax, rcx, rdx, rbx, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	ENTRY	\reg
	.endr

/* All registers and flags of the driver, from what twin_slow has saved. */
.macro RESTORE
	popq	%rdx
	ORC	32
	popq	%rcx
	ORC	24
	popq	%rax
	ORC	16
	popfq
	ORC	8
.endm

/*
 * Stack, from rsp, once everything is saved:
 *
 *	+0	rdx
 *	+8	rcx
 *	+16	rax
 *	+24	flags
 *	+32	return to twin_slow_<reg>
 *	+40	the address
 *	+48	return to the driver
 */
	.type	twin_slow, @function
	.balign	16
twin_slow:
	ORC	8
	pushfq
	ORC	16
	pushq	%rax
	ORC	24
	pushq	%rcx
	ORC	32
	pushq	%rdx
	ORC	40
	movq	40(%rsp), %rax
	movabsq	$LOWEST_4_LEVELS, %rcx
	cmpq	%rcx, %rax
	jb	.Llow
.Lhigh:
	cmpq	$HIGHEST, %rax
	jae	.Lrefuse

	/* Its entry; a page address of the kernel's half is never 0. */
	movl	%eax, %ecx
	shrl	$TWIN_STLB_INDEX_SHIFT, %ecx
	andl	$TWIN_STLB_INDEX_MASK, %ecx
	andq	$-TWIN_PAGE_SIZE, %rax
	movq	%rax, %rdx
#if TWIN_SCHEME == TWIN_SCHEME_STLB
	/*
	 * Who changes xlate from 0 has the entry and makes it valid by its tag.
	 * Until then, and for whoever collides, each access comes here.
	 */
	cmpq	$0, twin_stlb+TWIN_STLB_XLATE(%rcx)
	jne	.Lout
	xorl	%eax, %eax
	lock cmpxchgq %rdx, twin_stlb+TWIN_STLB_XLATE(%rcx)
	jne	.Lout
	movq	%rdx, twin_stlb+TWIN_STLB_TAG(%rcx)
#elif TWIN_SCHEME == TWIN_SCHEME_PAPER
	/* xlate = page ^ page is 0 and stays so: the tag alone makes it valid. */
	xorl	%eax, %eax
	testl	%ecx, %ecx
	jne	1f
	movl	$TWIN_PAGE_SIZE, %eax
1:	cmpq	%rax, twin_stlb+TWIN_STLB_TAG(%rcx)
	jne	.Lout
	lock cmpxchgq %rdx, twin_stlb+TWIN_STLB_TAG(%rcx)
#else
#error "an unknown scheme"
#endif
.Lout:
	RESTORE
	RETURN

	/* With page tables of five levels the kernel's half begins lower. */
.Llow:
	ORC	40
	movabsq	$LOWEST_5_LEVELS, %rcx
	cmpq	%rcx, %rax
	jb	.Lrefuse
	movq	%cr4, %rcx
	btl	$CR4_LA57_BIT, %ecx
	jc	.Lhigh

	/*
	 * A driver may not go there: stop it as a BUG does. twin makes the entry of
	 * the bug table, whose format differs between kernels: the log has
	 * twin_message, the driver's registers, and in the trace twin_slow_<reg>, which
	 * says which of them is the address.
	 */
.Lrefuse:
	RESTORE
	.local	twin_stop
	.type	twin_stop, @notype
twin_stop:
	ud2
	.size	twin_slow, . - twin_slow
	ORC_END

	.section .twin.rodata, "a", @progbits
	.local	twin_message
	.type	twin_message, @object
twin_message:
	/* "kernel BUG at %s:%u!" (report_bug, lib/bug.c) */
	.asciz	"twin: an access to what is no address of the kernel"
	.size	twin_message, . - twin_message

/*
 * Entries {tag, xlate}. A free entry's tag is no page of its index: 0 is one of
 * index 0, so the first has another.
 */
	.section .twin.stlb, "aw", @progbits
	.balign	64
	.type	twin_stlb, @object
twin_stlb:
	.quad	TWIN_PAGE_SIZE, 0
	.fill	(TWIN_STLB_ENTRIES - 1) << TWIN_STLB_ENTRY_SHIFT, 1, 0
	.size	twin_stlb, . - twin_stlb

	.section .note.GNU-stack, "", @progbits
