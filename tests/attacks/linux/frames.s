### a push over a followed word
# refuse: P4-rsp
# from: issue 14.12
mov %rsp, %rax
mov %rax, -8(%rsp)
push $0x1234
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### a frame address pushed and taken back
# accept
mov %rsp, %rax
push %rax
mov (%rsp), %rbx
mov %rbx, %rsp
ret

### a frame address popped into rsp
# accept
# from: SDM vol. 2, POP: rsp is incremented before the word is written to it
mov %rsp, %rax
push %rax
push %rdi
pop %rcx
pop %rsp
ret

### a number popped into rsp
# refuse: P4-rsp
push %rdi
pop %rsp
ret

### a number loaded into rsp
# refuse: P4-rsp
sub $8, %rsp
mov %rdi, (%rsp)
mov (%rsp), %rsp
add $8, %rsp
ret

### a frame address loaded into rsp
# accept
# from: arch/x86/crypto/sha512-ssse3-asm.S of Linux 5.10
mov %rsp, %rax
sub $64, %rsp
and $-32, %rsp
mov %rax, 32(%rsp)
mov 32(%rsp), %rsp
ret

### the head of a list in the frame, which others write
# refuse: P1-untranslated
# from: include/linux/list.h: INIT_LIST_HEAD stores the head's own address
sub $24, %rsp
mov %rsp, %rdi
mov %rdi, (%rsp)
mov %rdi, 8(%rsp)
call g
mov (%rsp), %rbx
mov %rsi, (%rbx)
add $24, %rsp
ret

### the same moved on
# refuse: P1-untranslated
sub $24, %rsp
mov %rsp, %rdi
mov %rdi, (%rsp)
mov (%rsp), %rbx
lea 8(%rbx), %rcx
add $8, %rcx
mov %rsi, (%rcx)
add $24, %rsp
ret

### the same kept over a call
# refuse: P1-untranslated
sub $24, %rsp
mov %rsp, %rdi
mov %rdi, (%rsp)
mov (%rsp), %rbx
call g
mov %rsi, (%rbx)
add $24, %rsp
ret

### the same by a pop
# refuse: P1-untranslated
mov %rsp, %rax
push %rax
pop %rbx
mov %rsi, -16(%rbx)
ret

### the same in another word, and back
# refuse: P1-untranslated
sub $24, %rsp
mov %rsp, %rdi
mov %rdi, (%rsp)
mov (%rsp), %rbx
mov %rbx, 8(%rsp)
mov 8(%rsp), %rcx
mov %rsi, (%rcx)
add $24, %rsp
ret

### a string instruction there
# refuse: P1-string-pointer
sub $24, %rsp
mov %rsp, %rdi
mov %rdi, (%rsp)
mov (%rsp), %rdi
stosb
add $24, %rsp
ret

### a word below rsp, over which an interrupt writes
# refuse: P4-rsp
# from: Documentation/x86/entry_64.rst: no red zone in the kernel
mov %rsp, %rax
mov %rax, -8(%rsp)
mov -8(%rsp), %rbx
mov %rbx, %rsp
ret

### a stack of its choice by leave, from a word that a push wrote over
# refuse: P4-rsp
# from: issue 14.12
push %rbp
mov %rsp, %rbp
mov %rbp, -8(%rbp)
push %rdi
mov -8(%rbp), %rbp
leave
ret

### a push of memory over a followed word
# refuse: P4-rsp
# from: SDM vol. 2, PUSH
mov %rsp, %rax
mov %rax, -8(%rsp)
push d(%rip)
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret
.data
d: .quad 0
.text

### a push of the flags over a followed word
# refuse: P4-rsp
# from: SDM vol. 2, PUSHF
mov %rsp, %rax
mov %rax, -8(%rsp)
pushf
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### a call's return address over a followed word
# refuse: P4-rsp
# from: SDM vol. 2, CALL
mov %rsp, %rax
mov %rax, -8(%rsp)
call g
mov -8(%rsp), %rbx
mov %rbx, %rsp
ret

### what the callee's frame writes
# refuse: P4-rsp
# from: psABI 3.2.2, the red zone
mov %rsp, %rax
mov %rax, -64(%rsp)
call g
mov -64(%rsp), %rbx
mov %rbx, %rsp
ret

### a word above rsp across a call
# accept
mov %rsp, %rax
sub $24, %rsp
mov %rax, 8(%rsp)
call g
mov 8(%rsp), %rbx
mov %rbx, %rsp
ret

### a word that rsp goes over, up and down again
# refuse: P4-rsp
mov %rsp, %rax
push %rax
add $8, %rsp
sub $8, %rsp
mov (%rsp), %rbx
mov %rbx, %rsp
add $8, %rsp
ret

### half a word stored over a followed one
# refuse: P4-rsp
mov %rsp, %rax
push %rax
mov %edi, (%rsp)
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### an overlap that begins before the word
# refuse: P4-rsp
mov %rsp, %rax
push %rax
sub $16, %rsp
mov %rdi, 12(%rsp)
mov 16(%rsp), %rbx
mov %rbx, %rsp
add $24, %rsp
ret

### the last byte of a word
# refuse: P4-rsp
mov %rsp, %rax
push %rax
movb $0, 7(%rsp)
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### a vector over a word
# refuse: P4-rsp
# from: SDM vol. 2, MOVUPS
mov %rsp, %rax
push %rax
sub $16, %rsp
movups %xmm0, 8(%rsp)
mov 16(%rsp), %rbx
mov %rbx, %rsp
add $24, %rsp
ret

### an exchange with a word
# refuse: P4-rsp
# from: SDM vol. 2, XCHG
mov %rsp, %rax
push %rax
xchg %rdi, (%rsp)
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### what an exchange took out of a word
# refuse: P1-untranslated
mov %rsp, %rax
push %rax
xchg %rdi, (%rsp)
mov %rsi, -16(%rdi)
pop %rax
ret

### compare and exchange on a word
# refuse: P4-rsp
# from: SDM vol. 2, CMPXCHG
mov %rsp, %rax
push %rax
cmpxchg %rdi, (%rsp)
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### compare and exchange of 16 bytes over a word
# refuse: P4-rsp
# from: SDM vol. 2, CMPXCHG16B
mov %rsp, %r9
push %r9
sub $8, %rsp
cmpxchg16b (%rsp)
mov 8(%rsp), %r9
mov %r9, %rsp
add $16, %rsp
ret

### an addition to a word
# refuse: P4-rsp
# from: SDM vol. 2, XADD
mov %rsp, %rax
push %rax
xadd %rdi, (%rsp)
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### a bit set in a word
# refuse: P4-rsp
# from: SDM vol. 2, BTS
mov %rsp, %rax
push %rax
btsq $40, (%rsp)
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### a condition stored into a word
# refuse: P4-rsp
# from: SDM vol. 2, SETcc
mov %rsp, %rax
push %rax
sete 2(%rsp)
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### pop to memory over a word
# refuse: P4-rsp
# from: SDM vol. 2, POP
mov %rsp, %rax
push %rax
push %rdi
mov %rsp, %rcx
pop 8(%rcx)
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### a word through another register with a frame address
# refuse: P4-rsp
mov %rsp, %rax
push %rax
lea 4(%rsp), %rcx
mov %rdi, -4(%rcx)
mov (%rsp), %rbx
mov %rbx, %rsp
pop %rax
ret

### a word of one path only
# refuse: P1-untranslated
mov %rsp, %rax
push %rax
test %edi, %edi
je 1f
mov %rdi, (%rsp)
1: mov (%rsp), %rbx
mov %rsi, -16(%rbx)
pop %rax
ret

### two words of two paths, at the same place
# refuse: P1-untranslated
mov %rsp, %rax
lea -64(%rsp), %rcx
sub $8, %rsp
test %edi, %edi
je 1f
mov %rax, (%rsp)
jmp 2f
1: mov %rcx, (%rsp)
2: mov (%rsp), %rbx
mov %rsi, -16(%rbx)
add $8, %rsp
ret

### more words than are followed, and the first overwritten
# refuse: P4-rsp
mov %rsp, %rax
push %rax
push %rax
push %rax
push %rax
push %rax
mov %rdi, 32(%rsp)
mov 32(%rsp), %rbx
mov %rbx, %rsp
add $40, %rsp
ret

### more words than are followed: the last is not believed
# refuse: P4-rsp
mov %rsp, %rax
push %rax
push %rax
push %rax
push %rax
push %rax
mov (%rsp), %rbx
mov %rbx, %rsp
add $40, %rsp
ret

### a word in the caller's frame
# refuse: P4-rsp
# from: psABI 3.2.2: whose frame it is, writes
mov %rsp, %rax
mov %rax, 16(%rsp)
call g
mov 16(%rsp), %rbx
mov %rbx, %rsp
ret

### a word of the aligned part, written through the other origin
# refuse: P4-rsp
lea 8(%rsp), %r10
and $-32, %rsp
push %r10
mov %rdi, -16(%r10)
mov (%rsp), %rbx
mov %rbx, %rsp
lea -8(%r10), %rsp
ret

### the same, of the word's last byte
# refuse: P4-rsp
lea 8(%rsp), %r10
sub $16, %rsp
and $-32, %rsp
push %r10
mov %dil, -25(%r10)
mov (%rsp), %rbx
mov %rbx, %rsp
lea -8(%r10), %rsp
ret

### a word of the aligned part, and another above where rsp was
# accept
# from: __bch2_read_extent of Linux 6.12 writes its arguments while the aligned part has their place
mov %rsp, %r10
sub $16, %rsp
and $-32, %rsp
push %r10
mov %rdi, -16(%r10)
mov (%rsp), %rbx
mov %rbx, %rsp
ret

### an argument of a realigned frame
# accept
push %rdi
call g
pop %rax
ret
.type g,@function
g: lea 8(%rsp), %r10
and $-16, %rsp
push -8(%r10)
push %rbp
mov %rsp, %rbp
push %r10
mov %edi, (%r10)
call h
pop %r10
pop %rbp
lea -8(%r10), %rsp
ret
.size g,.-g
.type h,@function
h: ret
.size h,.-h

### a word above where rsp was, and another of the aligned part
# accept
mov %rsp, %rbx
push %rbx
and $-32, %rsp
sub $16, %rsp
mov %rdi, 8(%rsp)
mov -8(%rbx), %r12
mov %r12, %rsp
ret

### a word above where rsp was, written through the aligned origin
# refuse: P4-rsp
mov %rsp, %rbx
sub $24, %rsp
mov %rbx, 16(%rsp)
and $-32, %rsp
sub $16, %rsp
mov %rdi, 32(%rsp)
mov -8(%rbx), %r12
mov %r12, %rsp
ret

### gcc's realigned frame
# accept
lea 8(%rsp), %r10
and $-32, %rsp
push -8(%r10)
push %rbp
mov %rsp, %rbp
push %r10
sub $40, %rsp
call g
mov -8(%rbp), %r10
leave
lea -8(%r10), %rsp
ret

### a frame aligned again, with an address of the first alignment
# refuse: P4-rsp
mov %rsp, %r12
and $-16, %rsp
mov %rsp, %rbx
mov %r12, %rsp
and $-2048, %rsp
push %r12
mov %rdi, -8(%rbx)
pop %r12
mov %rbx, %rsp
mov %r12, %rsp
ret

### alignments that differ between two paths, with one name for both
# refuse: P4-rsp
mov %rsp, %r12
test %edi, %edi
je 1f
and $-16, %rsp
mov %rsp, %rbx
mov %r12, %rsp
sub $16, %rsp
jmp 2f
1: sub $16, %rsp
and $-2048, %rsp
mov %rsp, %rbx
lea -16(%r12), %rsp
2: mov %rbx, %rsp
mov %r12, %rsp
ret

### an aligned address kept after the frame is gone
# refuse: P1-untranslated
mov %rsp, %r12
and $-16, %rsp
mov %rsp, %rbx
mov %r12, %rsp
mov %rdi, -8(%rbx)
ret

### a callee's argument is the caller's return address
# refuse: P1-return-slot
# from: psABI 3.2.3: the memory of arguments is the callee's
call g
ret
.type g,@function
g: mov %rdi, 8(%rsp)
ret
.size g,.-g

### a callee's argument is the caller's saved frame pointer
# refuse: P4-rsp
# from: psABI 3.2.3
lea 8(%rsp), %r10
push %r10
call g
pop %r10
lea -8(%r10), %rsp
ret
.type g,@function
g: mov %rdi, 8(%rsp)
ret
.size g,.-g

### the same by a tail call of the callee
# refuse: P4-rsp
lea 8(%rsp), %r10
push %r10
call g
pop %r10
lea -8(%r10), %rsp
ret
.type g,@function
g: jmp h
.size g,.-g
.type h,@function
h: mov %rdi, 8(%rsp)
ret
.size h,.-h

### the same from an aligned frame of the callee
# refuse: P1-return-slot
call g
ret
.type g,@function
g: mov %rsp, %rbx
and $-16, %rsp
mov %rdi, 8(%rbx)
mov %rbx, %rsp
ret
.size g,.-g

### an argument that the caller has passed
# accept
push %rdi
call g
pop %rax
ret
.type g,@function
g: addq $1, 8(%rsp)
ret
.size g,.-g

### a fixup with the word that the instruction may have written
# refuse: P1-untranslated
# from: Linux 6.1 arch/x86/mm/extable.c
mov %rsp, %rax
push %rax
1: mov %rdi, (%rsp)
2: mov (%rsp), %rbx
mov %rsi, -16(%rbx)
pop %rax
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection

### a callee's argument below the caller's saved frame pointer
# accept
lea 8(%rsp), %r10
push %r10
push %rdi
call g
pop %rax
pop %r10
lea -8(%r10), %rsp
ret
.type g,@function
g: mov %rdi, 8(%rsp)
ret
.size g,.-g

### a frame address passed as an argument on the stack, and written there
# accept
sub $24, %rsp
lea 8(%rsp), %rax
push %rax
call g
add $32, %rsp
ret
.type g,@function
g: mov %rdi, 8(%rsp)
ret
.size g,.-g

### a frame address in rbx over a routine that changes it
# refuse: P4-rsp
# from: arch/x86/lib/putuser.S: the limit of user addresses is left in rbx
mov %rsp, %rbx
call __put_user_4
mov %rbx, %rsp
ret

### the same without the check of the address
# refuse: P4-rsp
# from: arch/x86/lib/putuser.S
mov %rsp, %rbx
call __put_user_nocheck_8
mov %rbx, %rsp
ret

### a frame address in another register over it
# accept
# from: arch/x86/include/asm/uaccess.h, do_put_user_call: ebx is declared as changed
mov %rsp, %r12
call __put_user_4
mov %r12, %rsp
ret

### a frame address in a word of the frame over it
# accept
# from: arch/x86/include/asm/uaccess.h, do_put_user_call
mov %rsp, %rbx
push %rbx
call __put_user_2
pop %rbx
mov %rbx, %rsp
ret

### a compiled routine whose name begins in the same way
# accept
# from: include/linux/user_namespace.h, put_user_ns
mov %rsp, %rbx
call __put_user_ns
mov %rbx, %rsp
ret

### a tail call of a routine that changes rbx
# refuse: P2-callee
# from: psABI 3.2.1: the caller of f relies on rbx
jmp __put_user_4

### the same behind a condition
# refuse: P2-callee
# from: psABI 3.2.1
test %edi, %edi
je __put_user_1
ret

### its address in a register
# refuse: P2-relocation
# from: psABI 3.2.1: the call by the register is believed to keep rbx
mov $__put_user_4, %rax
ret

### its address by a distance
# refuse: P2-relocation
# from: psABI 3.2.1
lea __put_user_4(%rip), %rax
ret

### its address in data
# refuse: P2-callee
# from: psABI 3.2.1
mov pointer(%rip), %rax
ret
.data
pointer: .quad __put_user_8

### a frame address taken back from the stack on one of two ways
# accept
# from: vmw_port_hb_in of Linux 6.14: inline assembly pushes rbp, uses it and pops it
push %rbp
mov %rsp, %rbp
test %edi, %edi
je 1f
push %rbp
mov %rsi, %rbp
pop %rbp
1:
lea (%rbp), %rsp
pop %rbp
ret

### another frame address taken back on one of two ways
# refuse: P4-rsp
push %rbp
mov %rsp, %rbp
test %edi, %edi
je 1f
lea -8(%rsp), %rax
push %rax
pop %rbp
1:
lea (%rbp), %rsp
pop %rbp
ret

### a number taken back on one of two ways
# refuse: P4-rsp
push %rbp
mov %rsp, %rbp
test %edi, %edi
je 1f
push %rsi
pop %rbp
1:
lea (%rbp), %rsp
pop %rbp
ret

### an operand through what was taken back on one of two ways
# refuse: P1-untranslated
push %rbp
mov %rsp, %rbp
sub $8, %rsp
test %edi, %edi
je 1f
push %rbp
mov %rsi, %rbp
pop %rbp
1:
movq $0, -8(%rbp)
lea (%rbp), %rsp
pop %rbp
ret

### an aligned frame address taken back on one of two ways
# refuse: P4-rsp
# from: the same distance, counted from the entry and from the aligned rsp
push %rbp
mov %rsp, %rbp
mov %rsp, %rbx
and $-32, %rsp
test %edi, %edi
je 1f
lea -8(%rsp), %rax
push %rax
pop %rbx
1:
mov %rbx, %rsp
pop %rbp
ret

### a register that a function of the object does not keep sets rsp
# refuse: P4-rsp
# from: psABI 3.2.1: a callee keeps it, but this one is not compiled
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: mov %rdi, %rbx
ret
.size g,.-g

### the same where it keeps it
# accept
# from: control
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: push %rbx
mov %rdi, %rbx
pop %rbx
ret
.size g,.-g

### a register that a function which is called through a pointer does not keep
# refuse: P4-rsp
# from: ibid.
push %rbx
mov %rsp, %rbx
lea g(%rip), %rax
call *%rax
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: mov %rdi, %rbx
ret
.size g,.-g

### the same where no address of it is taken
# accept
# from: control: a function of the kernel is called
push %rbx
mov %rsp, %rbx
call *%rax
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: mov %rdi, %rbx
ret
.size g,.-g

### a register that a function loses in which the callee goes on
# refuse: P4-rsp
# from: psABI 3.2.1: a tail call returns to the caller
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: test %edi, %edi
jne h
ret
.type h,@function
h: mov %rdi, %rbx
ret

### a register that is lost two calls deeper
# refuse: P4-rsp
# from: psABI 3.2.1
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: sub $8, %rsp
call h
add $8, %rsp
ret
.type h,@function
h: mov %rdi, %rbx
ret

### one that the callee between the two saves
# accept
# from: control
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: push %rbx
call h
pop %rbx
ret
.type h,@function
h: mov %rdi, %rbx
ret

### a register that is restored from another register's word
# refuse: P4-rsp
# from: psABI 3.2.1
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: push %rbp
push %rbx
pop %rbp
pop %rbx
ret

### a register whose word the callee writes
# refuse: P4-rsp
# from: psABI 3.2.1
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: push %rbx
mov %edi, 4(%rsp)
pop %rbx
ret

### a frame pointer that a callee leaves in only one of its ways
# refuse: P4-rsp
# from: psABI 3.2.1
push %rbp
mov %rsp, %rbp
sub $16, %rsp
call g
leave
ret
.type g,@function
g: push %rbp
test %edi, %edi
jne 1f
pop %rbp
ret
1: mov %rdi, %rbp
add $8, %rsp
ret

### code that two functions share, and that loses a register
# refuse: P4-rsp
# from: psABI 3.2.1
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: jmp .Lshared
.type h,@function
h: jmp .Lshared
.Lshared: mov %rdi, %rbx
ret

### a register whose word may be where the callee aligns its stack
# refuse: P4-rsp
# from: SDM vol. 2, AND: a stack that is aligned already stays
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: push %rbx
mov %rsp, %rdx
and $-16, %rsp
mov %rdi, (%rsp)
mov %rdx, %rsp
pop %rbx
ret

### the same with room between the two
# accept
# from: control
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: push %rbx
mov %rsp, %rdx
sub $8, %rsp
and $-16, %rsp
mov %rdi, (%rsp)
mov %rdx, %rsp
pop %rbx
ret

### a register that is kept in the aligned part of a frame
# accept
# from: gcc -mstackrealign
push %rbp
mov %rsp, %rbp
call g
leave
ret
.type g,@function
g: lea 8(%rsp), %r10
and $-32, %rsp
push -8(%r10)
push %rbp
mov %rsp, %rbp
push %r10
sub $40, %rsp
mov %rax, -40(%rbp)
mov -8(%rbp), %r10
leave
lea -8(%r10), %rsp
ret

### a register that a function which a static call may lead to does not keep
# refuse: P4-rsp
# from: Linux 6.1 arch/x86/kernel/static_call.c: the call leads where the key says
push %rbp
mov %rsp, %rbp
1: call __SCT__x
leave
ret
.type g,@function
g: mov jiffies(%rip), %rbp
ret
.section .static_call_sites,"aw"
.long 1b - ., k - .
.data
.balign 16
k: .quad g, 0
.text

### the same through a trampoline of its own
# refuse: P4-rsp
# from: ibid.
push %rbp
mov %rsp, %rbp
1: call __SCT__own
leave
ret
.type g,@function
g: mov jiffies(%rip), %rbp
ret
.type h,@function
h: ret
.section .static_call.text,"ax"
.globl __SCT__own
.type __SCT__own,@function
__SCT__own: .byte 0xe9
.reloc ., R_X86_64_PLT32, h - 4
.long 0
.byte 0x0f, 0xb9, 0xcc
.section .static_call_sites,"aw"
.long 1b - ., k - .
.data
.balign 16
k: .quad g, 0
.text

### the same through one that returns, of which the kernel makes a jump
# refuse: P4-rsp
# from: Linux 6.1 arch/x86/kernel/static_call.c, __static_call_transform: a trampoline that is a return becomes `jmp`
push %rbp
mov %rsp, %rbp
1: call __SCT__own
leave
ret
.type g,@function
g: mov jiffies(%rip), %rbp
ret
.section .static_call.text,"ax"
.globl __SCT__own
.type __SCT__own,@function
__SCT__own: ret; int3; nop; nop; nop
.byte 0x0f, 0xb9, 0xcc
.section .static_call_sites,"aw"
.long 1b - ., k - .
.data
.balign 16
k: .quad g, 0
.text

### the same where what a static call may lead to keeps it
# accept
# from: control
push %rbp
mov %rsp, %rbp
1: call __SCT__own
leave
ret
.type g,@function
g: mov jiffies(%rip), %rax
ret
.section .static_call.text,"ax"
.globl __SCT__own
.type __SCT__own,@function
__SCT__own: ret; int3; nop; nop; nop
.byte 0x0f, 0xb9, 0xcc
.section .static_call_sites,"aw"
.long 1b - ., k - .
.data
.balign 16
k: .quad g, 0
.text

### a register that a function which the kernel calls back does not keep
# refuse: P4-rsp
# from: Linux 6.1 crypto/shash.c, crypto_shash_update: ends with a call of the algorithm's own
push %rbp
mov %rsp, %rbp
lea ops(%rip), %rdi
call crypto_shash_update
leave
ret
.type g,@function
g: mov jiffies(%rip), %rbp
ret
.data
ops: .quad g
.text

### the same where it keeps it
# accept
# from: control
push %rbp
mov %rsp, %rbp
lea ops(%rip), %rdi
call crypto_shash_update
leave
ret
.type g,@function
g: push %rbp
mov jiffies(%rip), %rbp
pop %rbp
ret
.data
ops: .quad g
.text

### a function that ends in the kernel, which calls back what does not keep it
# refuse: P4-rsp
# from: ibid.
push %rbp
mov %rsp, %rbp
call i
leave
ret
.type i,@function
i: jmp crypto_shash_update
.type g,@function
g: mov jiffies(%rip), %rbp
ret
.data
ops: .quad g
.text

### a register over a trace entry that is a nop until a tracer that the module has is called there
# refuse: P4-rsp
# from: Linux 6.1 arch/x86/kernel/ftrace.c, ftrace_make_call; a trampoline that calls ops->func alone
1: .byte 0x0f, 0x1f, 0x44, 0, 0
lea -16(%rsp), %rbp
2: .byte 0x0f, 0x1f, 0x44, 0, 0
mov %rbp, %rsp
add $16, %rsp
ret
.type g,@function
g: mov jiffies(%rip), %rbp
ret
.pushsection __mcount_loc,"a"
.quad 1b, 2b
.popsection
.data
.quad g
.text

### the same where it is a call
# refuse: P4-rsp
# from: ibid.
1: call __fentry__
lea -16(%rsp), %rbp
2: call __fentry__
mov %rbp, %rsp
add $16, %rsp
ret
.type g,@function
g: mov jiffies(%rip), %rbp
ret
.pushsection __mcount_loc,"a"
.quad 1b, 2b
.popsection
.data
.quad g
.text

### the same where what may be called keeps it
# accept
# from: control
1: .byte 0x0f, 0x1f, 0x44, 0, 0
lea -16(%rsp), %rbp
2: .byte 0x0f, 0x1f, 0x44, 0, 0
mov %rbp, %rsp
add $16, %rsp
ret
.type g,@function
g: mov jiffies(%rip), %rax
ret
.pushsection __mcount_loc,"a"
.quad 1b, 2b
.popsection
.data
.quad g
.text

### an aligned frame that reaches over the guard page
# refuse: P4-frame
# from: Linux kernel/fork.c, alloc_thread_stack_node: one page is between two stacks
push %rbp
mov %rsp, %rbp
sub $3952, %rsp
and $-64, %rsp
sub $3952, %rsp
mov %rdi, (%rsp)
leave
ret

### the same by an alignment alone
# refuse: P4-frame
push %rbp
mov %rsp, %rbp
sub $1024, %rsp
and $-4096, %rsp
mov %rdi, (%rsp)
leave
ret

### the same by the address of an aligned place
# refuse: P1-stack-bounds
push %rbp
mov %rsp, %rbp
and $-2048, %rsp
mov %rsp, %rbx
mov %rbp, %rsp
mov %rdi, -3000(%rbx)
leave
ret

### the same where an alignment of two is the larger one
# refuse: P4-frame
push %rbp
mov %rsp, %rbp
test %edi, %edi
je 1f
and $-16, %rsp
jmp 2f
1: and $-2048, %rsp
2: sub $3000, %rsp
mov %rdi, (%rsp)
leave
ret

### aligned frames that do not reach over it
# accept
push %rbp
mov %rsp, %rbp
sub $1952, %rsp
and $-64, %rsp
sub $1944, %rsp
mov %rdi, (%rsp)
leave
ret
