/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A driver written by hand the way the rewriter writes it
 * (docs/spec/sequences.md), and code that does what no verified driver would.
 */
#include <twin/abi.h>

.macro FUNCTION name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
.endm

/* Scheme stlb: translate \address into %\v, with %\i (names without %). */
.macro TRANSLATE address, v, vd, i, id
	leaq	\address, %\v
	movl	%\vd, %\id
	shrl	$8, %\id
	andl	$0xfff0, %\id
	subq	twin_stlb(%\i), %\v
	cmpq	$0xfff, %\v
	ja	.Lslow\@
	addq	twin_stlb+8(%\i), %\v
.Lback\@:
	.subsection 1
.Lslow\@:
	leaq	\address, %\v
	call	twin_slow_\v
	jmp	.Lback\@
	.previous
.endm

/* Scheme paper. */
.macro TRANSLATE_PAPER address, v, i, p
	leaq	\address, %\i
	movq	%\i, %\v
	andq	$-4096, %\i
	movq	%\i, %\p
	andq	$0xfff000, %\i
	shrq	$8, %\i
	cmpq	twin_stlb(%\i), %\p
	jne	.Lslow\@
	xorq	twin_stlb+8(%\i), %\v
.Lback\@:
	.subsection 1
.Lslow\@:
	call	twin_slow_\v
	jmp	.Lback\@
	.previous
.endm

	.text
	.globl	driver_text_start
driver_text_start:

/* u64 load(u64 *p) */
FUNCTION driver_load
	TRANSLATE 0(%rdi), rax, eax, rcx, ecx
	movq	(%rax), %rax
	ret

/* void store(u64 *p, u64 value) */
FUNCTION driver_store
	TRANSLATE 0(%rdi), rax, eax, rcx, ecx
	movq	%rsi, (%rax)
	ret

FUNCTION driver_load_paper
	TRANSLATE_PAPER 0(%rdi), rax, rcx, rdx
	movq	(%rax), %rax
	ret

FUNCTION driver_store_paper
	TRANSLATE_PAPER 0(%rdi), rax, rcx, rdx
	movq	%rsi, (%rax)
	ret

/* u64 stack_pointer(u64 x): a local reached by pointer; x + 1 */
FUNCTION driver_stack_pointer
	subq	$24, %rsp
	movq	%rdi, 8(%rsp)
	leaq	8(%rsp), %rdx
	TRANSLATE 0(%rdx), rax, eax, rcx, ecx
	incq	(%rax)
	movq	8(%rsp), %rax
	addq	$24, %rsp
	ret

/* The same by scheme paper. */
FUNCTION driver_stack_pointer_paper
	subq	$24, %rsp
	movq	%rdi, 8(%rsp)
	leaq	8(%rsp), %rsi
	TRANSLATE_PAPER 0(%rsi), rax, rcx, rdx
	incq	(%rax)
	movq	8(%rsp), %rax
	addq	$24, %rsp
	ret

/* u64 arguments(a, b, c, d, e, f, ...): digits of six, plus stack arguments */
FUNCTION driver_arguments
	leaq	(%rsi,%rdi,8), %rax
	leaq	(%rdx,%rax,8), %rax
	leaq	(%rcx,%rax,8), %rax
	leaq	(%r8,%rax,8), %rax
	leaq	(%r9,%rax,8), %rax
	.irp	offset, 8, 16, 24, 32, 40, 48, 56, 64
	addq	\offset(%rsp), %rax
	.endr
	ret

/* u64 registers(void): or of all that carry no argument; 1 more if DF or if
 * the stack is not aligned */
FUNCTION driver_registers
	.irp	reg, rbx, rbp, r10, r12, r13, r14, r15
	orq	%\reg, %rax
	.endr
	pushfq
	popq	%rcx
	shrq	$10, %rcx
	andq	$1, %rcx
	addq	%rcx, %rax
	leaq	8(%rsp), %rcx
	andq	$15, %rcx
	addq	%rcx, %rax
	ret

/* void destroy(void): comes back with every register and DF spoilt */
FUNCTION driver_destroy
	.irp	reg, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	movq	$-1, %\reg
	.endr
	std
	ret

/* u64 gs(u64 offset): mov %gs:(offset) */
FUNCTION driver_gs
	movq	%rsp, %rdx
	orq	$(TWIN_STACK_BLOCK - 1), %rdx
	movq	TWIN_GS_BASE_FROM_TOP(%rdx), %rdx
	leaq	(%rdx,%rdi), %rdx
	TRANSLATE 0(%rdx), rax, eax, rcx, ecx
	movq	(%rax), %rax
	ret

/* void spin(u64 *p): until *p is not 0 */
FUNCTION driver_spin
	TRANSLATE 0(%rdi), rax, eax, rcx, ecx
	cmpq	$0, (%rax)
	je	driver_spin
	ret

/* u64 call(vm target, u64 x): target(x) + 1 */
FUNCTION driver_call
	subq	$8, %rsp
	movq	%rdi, %r11
	movq	%rsi, %rdi
	call	twin_stlb_call
	.globl	driver_call_site
driver_call_site:
	addq	$8, %rsp
	incq	%rax
	ret

/* The same as a tail call: target(x) */
FUNCTION driver_tail
	movq	%rdi, %r11
	movq	%rsi, %rdi
	jmp	twin_stlb_call

/* u64 double(u64 x) */
FUNCTION driver_double
	leaq	(%rdi,%rdi), %rax
	ret

/* void copy(void *to, const void *from, u64 words): rep movsq */
FUNCTION driver_copy
	movq	%rdx, %rcx
.Lloop:
	testq	%rcx, %rcx
	je	.Ldone
	TRANSLATE 0(%rdi), rax, eax, r10, r10d
	TRANSLATE 0(%rsi), rdx, edx, r10, r10d
	movl	%edi, %r8d
	andl	$0xfff, %r8d
	xorl	$0x1fff, %r8d
	shrl	$3, %r8d
	movl	%esi, %r9d
	andl	$0xfff, %r9d
	xorl	$0x1fff, %r9d
	shrl	$3, %r9d
	cmpq	%r9, %r8
	cmovaq	%r9, %r8
	cmpq	%rcx, %r8
	cmovaq	%rcx, %r8
	subq	%r8, %rcx
	pushq	%rcx
	pushq	%rdi
	pushq	%rsi
	pushq	%rax
	pushq	%rdx
	movq	%rax, %rdi
	movq	%rdx, %rsi
	movq	%r8, %rcx
	rep movsq
	subq	(%rsp), %rsi
	subq	8(%rsp), %rdi
	addq	16(%rsp), %rsi
	addq	24(%rsp), %rdi
	movq	32(%rsp), %rcx
	addq	$40, %rsp
	jmp	.Lloop
.Ldone:
	ret

/* Ports: (port, value to have in rax) */
.macro PORT name
FUNCTION driver_\name
	movq	%rdi, %rdx
	movq	%rsi, %rax
	call	twin_\name
	ret
.endm
	.irp	name, in8, in16, in32, out8, out16, out32
	PORT	\name
	.endr

FUNCTION driver_warn
	movl	$77, %eax
	call	twin_warn
	ret

FUNCTION driver_bug
	call	twin_bug
	.globl	driver_bug_site
driver_bug_site:
	ud2

/* The end of a function that finds its return address changed. */
FUNCTION driver_smashed
	movq	$0x5a5a, (%rsp)
	call	twin_smashed
	.globl	driver_smashed_site
driver_smashed_site:
	ud2

/* A strict check of a pointer that is none of dom0's. */
FUNCTION driver_wild
	pushq	%rdi
	call	twin_wild
	.globl	driver_wild_site
driver_wild_site:
	ud2

FUNCTION driver_ud2
	ud2
FUNCTION driver_int3
	int3
FUNCTION driver_divide
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	divl	%ecx
	ret
FUNCTION driver_wild_jump
	jmp	*%rdi
FUNCTION driver_wild_return
	pushq	%rdi
	ret
/* An access that was not translated. */
FUNCTION driver_raw_load
	movq	(%rdi), %rax
	ret

/* Recursion without end: by calls, by the largest frames, by slow paths. */
FUNCTION driver_recurse
	call	driver_recurse
	ret
FUNCTION driver_recurse_large
	subq	$TWIN_MAX_FRAME, %rsp
	call	driver_recurse_large
	addq	$TWIN_MAX_FRAME, %rsp
	ret
/* Until a slow path's own pushes meet the guard: rdi = bytes to leave */
FUNCTION driver_slow_at_the_end
	movq	%rsp, %rax
	andq	$-TWIN_STACK_BLOCK, %rax
	leaq	TWIN_STACK_LOW(%rax,%rdi), %rsp
	movq	%rsi, %rax
	call	twin_slow_rax
	call	twin_bug

/* u64 import(...): through the stub that import_stub points to */
FUNCTION driver_import
	pushq	$8			# argument 8
	pushq	$7			# argument 7
	call	*import_stub(%rip)
	.globl	driver_import_site
driver_import_site:
	addq	$16, %rsp
	addq	%rdx, %rax
	ret

/* u64 hot(p): through hot_stub */
FUNCTION driver_hot
	subq	$8, %rsp
	call	*hot_stub(%rip)
	addq	$8, %rsp
	ret

/* Lock rdi and rsi, free rdx, then BUG. */
FUNCTION driver_locks
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	movq	%rdx, %rbx
	movq	%rsi, %r12
	call	*lock_stub(%rip)
	.globl	driver_lock_site_a, driver_lock_site_b
driver_lock_site_a:
	movq	%r12, %rdi
	call	*lock_stub(%rip)
driver_lock_site_b:
	movq	%rbx, %rdi
	call	*unlock_stub(%rip)
	call	twin_bug

/* Lock 1 to rdi, free the last rsi of them, then BUG. */
FUNCTION driver_many_locks
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	movq	%rdi, %rbx
	movq	%rsi, %r12
	xorl	%r13d, %r13d
1:	incq	%r13
	movq	%r13, %rdi
	call	*lock_stub(%rip)
	cmpq	%rbx, %r13
	jne	1b
2:	testq	%r12, %r12
	jz	3f
	decq	%r12
	movq	%r13, %rdi
	decq	%r13
	call	*unlock_stub(%rip)
	jmp	2b
3:	call	twin_bug

/* ---- Register images --------------------------------------------------- */

/*
 * void keep_<entry>(u64 value): call the entry with every register holding its
 * number times 0x0101..., except the ones named, and flags from driver_flags;
 * then write what came back to `image`: 16 registers by number, flags, xmm0-15.
 */
.macro PATTERN
	movq	%rsp, image_rsp(%rip)
	movabsq	$0x0101010101010101, %rax
	.set	number, 1
	.irp	reg, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	imulq	$number, %rax, %\reg
	.set	number, number + 1
	.endr
	imulq	$number, %rax, %rax
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups	vectors+16*\n(%rip), %xmm\n
	.endr
.endm

.macro FLAGS
	pushq	driver_flags(%rip)
	popfq
.endm

.macro IMAGE
	movq	%rax, image+0(%rip)
	.set	number, 1
	.irp	reg, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	movq	%\reg, image+8*number(%rip)
	.set	number, number + 1
	.endr
	pushfq
	popq	image+128(%rip)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups	%xmm\n, image+136+16*\n(%rip)
	.endr
.endm

.macro KEEP reg
FUNCTION keep_\reg
	movq	%rdi, image_value(%rip)
	PATTERN
	movq	image_value(%rip), %\reg
	FLAGS
	call	twin_slow_\reg
	IMAGE
	cld
	ret
.endm
	.irp	reg, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	KEEP	\reg
	.endr

FUNCTION keep_in16
	movq	%rdi, image_value(%rip)
	PATTERN
	movq	image_value(%rip), %rdx
	FLAGS
	call	twin_in16
	IMAGE
	cld
	ret

FUNCTION keep_out32
	movq	%rdi, image_value(%rip)
	PATTERN
	movq	image_value(%rip), %rdx
	FLAGS
	call	twin_out32
	IMAGE
	cld
	ret

FUNCTION keep_warn
	PATTERN
	FLAGS
	call	twin_warn
	IMAGE
	cld
	ret

FUNCTION keep_import
	PATTERN
	FLAGS
	call	*import_stub(%rip)
	IMAGE
	cld
	ret

FUNCTION keep_hot
	PATTERN
	FLAGS
	call	*hot_stub(%rip)
	.globl	keep_hot_site
keep_hot_site:
	IMAGE
	cld
	ret

/* Lands at driver_image, the target. */
FUNCTION keep_call
	movq	%rdi, image_value(%rip)
	PATTERN
	movq	image_value(%rip), %r11
	FLAGS
	call	twin_stlb_call
	cld
	ret
FUNCTION driver_image
	IMAGE
	ret

/* ---- Vector registers -------------------------------------------------- */

/*
 * For each width, in bytes, that a processor may have: all registers filled from
 * \from, and all written to \to, 64 bytes each; for 64 the masks k1-k7 too, 8 bytes
 * each from +2048 on. MXCSR at +2104 (control and status; fill does not set it).
 */
#define VECTOR_MASKS 2048
#define VECTOR_MXCSR 2104

.macro EACH_VECTOR width, what, place
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	\what\width \n, \place
	.endr
	.if	\width == 64
	.irp	n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	\what\width \n, \place
	.endr
	.irp	n, 1, 2, 3, 4, 5, 6, 7
	\what\()_mask \n, \place
	.endr
	.endif
.endm
.macro LOAD16 n, place
	movups	\place+64*\n(%rip), %xmm\n
.endm
.macro LOAD32 n, place
	vmovups	\place+64*\n(%rip), %ymm\n
.endm
.macro LOAD64 n, place
	vmovups	\place+64*\n(%rip), %zmm\n
.endm
.macro LOAD_mask n, place
	kmovw	\place+VECTOR_MASKS+8*\n-8(%rip), %k\n
.endm
.macro STORE16 n, place
	movups	%xmm\n, \place+64*\n(%rip)
.endm
.macro STORE32 n, place
	vmovups	%ymm\n, \place+64*\n(%rip)
.endm
.macro STORE64 n, place
	vmovups	%zmm\n, \place+64*\n(%rip)
.endm
.macro STORE_mask n, place
	kmovw	%k\n, \place+VECTOR_MASKS+8*\n-8(%rip)
.endm

.macro FILL width, from
	EACH_VECTOR \width, LOAD, \from
.endm
.macro SEE width, to
	EACH_VECTOR \width, STORE, \to
	stmxcsr	\to+VECTOR_MXCSR(%rip)
.endm

/*
 * Driver functions, one set a width: what is there at entry; what is there after
 * something that the driver filled them before; an end of each kind with all full.
 */
.macro VECTORS width
FUNCTION vectors_at_entry_\width
	SEE	\width, vectors_seen
	FILL	\width, vectors_driver
	ret
FUNCTION vectors_after_import_\width
	FILL	\width, vectors_driver
	subq	$8, %rsp
	call	*import_stub(%rip)
	addq	$8, %rsp
	SEE	\width, vectors_seen
	FILL	\width, vectors_driver
	ret
FUNCTION vectors_after_hot_\width
	FILL	\width, vectors_driver
	subq	$8, %rsp
	call	*hot_stub(%rip)
	addq	$8, %rsp
	SEE	\width, vectors_seen
	ret
FUNCTION vectors_after_slow_\width
	FILL	\width, vectors_driver
	movq	%rdi, %rax
	call	twin_slow_rax
	SEE	\width, vectors_seen
	ret
FUNCTION vectors_after_in_\width
	FILL	\width, vectors_driver
	movq	%rdi, %rdx
	call	twin_in8
	SEE	\width, vectors_seen
	ret
FUNCTION vectors_after_out_\width
	FILL	\width, vectors_driver
	movq	%rdi, %rdx
	call	twin_out8
	SEE	\width, vectors_seen
	ret
FUNCTION vectors_after_warn_\width
	FILL	\width, vectors_driver
	call	twin_warn
	SEE	\width, vectors_seen
	ret
FUNCTION vectors_call_\width
	FILL	\width, vectors_driver
	movq	%rdi, %r11
	jmp	twin_stlb_call
FUNCTION vectors_called_\width
	SEE	\width, vectors_seen
	ret
FUNCTION vectors_bug_\width
	FILL	\width, vectors_driver
	call	twin_bug
FUNCTION vectors_ud2_\width
	FILL	\width, vectors_driver
	ud2
FUNCTION vectors_wild_\width
	FILL	\width, vectors_driver
	movq	%rdi, %rax
	call	twin_slow_rax
	ret
.endm
	VECTORS	16
	VECTORS	32
	VECTORS	64

/* void divide(void): a division by zero, which MXCSR's status remembers */
FUNCTION driver_inexact
	pxor	%xmm0, %xmm0
	movl	$1, %eax
	cvtsi2sdl %eax, %xmm1
	divsd	%xmm0, %xmm1
	ret

/* u64 flags(void) */
FUNCTION driver_flags_seen
	pushfq
	popq	%rax
	ret

/*
 * Host code: twin_enter with all vector registers filled from vectors_host and MXCSR
 * as host_mxcsr; what they hold afterwards is written to vectors_kept.
 */
.macro ENTER_VECTORS width
	.globl	enter_vectors_\width
enter_vectors_\width:
	FILL	\width, vectors_host
	ldmxcsr	host_mxcsr(%rip)
	subq	$8, %rsp
	call	twin_enter
	addq	$8, %rsp
	SEE	\width, vectors_kept
	ldmxcsr	first_mxcsr(%rip)
	.if	\width > 16
	vzeroupper
	.endif
	ret
/* The same in the host's code inside: another user of all registers. */
	.globl	spoil_vectors_\width
spoil_vectors_\width:
	FILL	\width, vectors_host
	ret
.endm
	ENTER_VECTORS 16
	ENTER_VECTORS 32
	ENTER_VECTORS 64

/* Host code: twin_enter with host_flags set as well; gives the flags afterwards. */
	.globl	enter_flags
enter_flags:
	subq	$8, %rsp
	pushfq
	movq	host_flags(%rip), %rax
	orq	%rax, (%rsp)
	popfq
	call	twin_enter
	pushfq
	popq	%rcx
	movq	%rcx, host_flags_kept(%rip)
	movq	host_flags(%rip), %rdx
	notq	%rdx
	andq	%rdx, %rcx
	pushq	%rcx
	popfq
	addq	$8, %rsp
	ret

/*
 * Host code, not the driver's: twin_enter with all bits set in every register
 * that carries no argument.
 */
	.globl	enter_dirty
enter_dirty:
	.irp	reg, rbx, rbp, r12, r13, r14, r15
	pushq	%\reg
	movq	$-1, %\reg
	.endr
	movq	$-1, %rax
	movq	$-1, %r10
	movq	$-1, %r11
	subq	$8, %rsp
	call	twin_enter
	addq	$8, %rsp
	.irp	reg, r15, r14, r13, r12, rbp, rbx
	cmpq	$-1, %\reg
	jne	.Lnot_kept
	popq	%\reg
	.endr
	ret
.Lnot_kept:
	ud2

	.subsection 2			# behind the out-of-line parts
	.globl	driver_text_end
driver_text_end:
	.previous

	.data
	.balign	8
	.globl	import_stub, hot_stub, lock_stub, unlock_stub, driver_flags
import_stub:	.quad	0
hot_stub:	.quad	0
lock_stub:	.quad	0
unlock_stub:	.quad	0
driver_flags:	.quad	0x202
	.globl	host_mxcsr, host_flags
host_mxcsr:	.long	0x3f80			# rounding down, none of the status
first_mxcsr:	.long	0x1f80
host_flags:	.quad	0
	.globl	vectors
vectors:
	.set	n, 1
	.rept	32
	.quad	0x1111111111111111 * (n & 15) + n
	.set	n, n + 1
	.endr

	.bss
	.balign	8
	.globl	image, image_value, image_rsp
image:		.skip	136 + 256
image_value:	.skip	8
image_rsp:	.skip	8
	.globl	vectors_host, vectors_driver, vectors_seen, vectors_kept, host_flags_kept
	.balign	64
vectors_host:	.skip	2112
vectors_driver:	.skip	2112
vectors_seen:	.skip	2112
vectors_kept:	.skip	2112
host_flags_kept: .skip	8
	.balign	4096
	.globl	twin_stlb
twin_stlb:	.skip	16 * TWIN_STLB_ENTRIES

	.section .note.GNU-stack, "", @progbits
