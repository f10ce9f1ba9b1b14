### a store through a pointer to the return address
# refuse: P2-return-word
# scheme: both
# from: issue 14.4
lea (%rsp), %r9
{T:(%r9)}
mov %rdx, (%rax)
ret

### the same, kept and compared
# accept
# scheme: both
# from: issue 14.4
{KEEP}
lea (%rsp), %r9
{T:(%r9)}
mov %rdx, (%rax)
{RET}

### a store through any pointer
# refuse: P2-return-word
# scheme: both
# from: issue 14.4
{T:(%rdi)}
mov %rdx, (%rax)
ret

### a load through any pointer
# accept
# scheme: both
# from: issue 14.4
{T:(%rdi)}
mov (%rax), %rdx
ret

### one byte of it
# refuse: P2-return-word
# from: SDM vol. 2, MOV
{T:(%rdi)}
movb $0, (%rax)
ret

### an increment
# refuse: P2-return-word
# from: SDM vol. 2, INC
{T:(%rdi)}
incq (%rax)
ret

### a locked addition
# refuse: P2-return-word
# from: SDM vol. 2, LOCK
{T:(%rdi)}
lock; addq %rdx, (%rax)
ret

### an exchange
# refuse: P2-return-word
# from: SDM vol. 2, XCHG
{T:(%rdi)}
xchg %rdx, (%rax)
ret

### exchange and add
# refuse: P2-return-word
# from: SDM vol. 2, XADD
{T:(%rdi)}
xadd %rdx, (%rax)
ret

### a comparison that may exchange
# refuse: P2-return-word
# from: SDM vol. 2, CMPXCHG
{T:(%rdi)}
push %rax
mov (%rsp), %rbx
pop %rbx
cmpxchg %rdx, (%rax)
ret

### sixteen bytes that may be exchanged
# refuse: P2-return-word
# from: SDM vol. 2, CMPXCHG16B
{T:(%rdi)}
cmpxchg16b (%rax)
ret

### a bit set by an immediate
# refuse: P2-return-word
# from: SDM vol. 2, BTS
{T:(%rdi)}
btsq $3, (%rax)
ret

### a bit set by a masked register
# refuse: P2-return-word
# from: SDM vol. 2, BTS
{T:(%rdi)}
and $63, %edx
bts %rdx, (%rax)
ret

### a condition stored
# refuse: P2-return-word
# from: SDM vol. 2, SETcc
{T:(%rdi)}
sete (%rax)
ret

### a shift of memory
# refuse: P2-return-word
# from: SDM vol. 2, SAL
{T:(%rdi)}
shlq $1, (%rax)
ret

### a store past the caches
# refuse: P2-return-word
# from: SDM vol. 2, MOVNTI
{T:(%rdi)}
movnti %rdx, (%rax)
ret

### sixteen bytes of a vector
# refuse: P2-return-word
# from: SDM vol. 2, MOVUPS
{T:(%rdi)}
movups %xmm0, (%rax)
ret

### thirty-two bytes of a vector
# refuse: P2-return-word
# from: SDM vol. 2, MOVDQU
{T:(%rdi)}
vmovdqu %ymm0, (%rax)
ret

### half a vector
# refuse: P2-return-word
# from: SDM vol. 2, MOVHPS
{T:(%rdi)}
movhps %xmm0, (%rax)
ret

### a word of a vector taken out
# refuse: P2-return-word
# from: SDM vol. 2, PEXTRQ
{T:(%rdi)}
pextrq $1, %xmm0, (%rax)
ret

### bytes swapped into memory
# refuse: P2-return-word
# from: SDM vol. 2, MOVBE
{T:(%rdi)}
movbe %rdx, (%rax)
ret

### a pop into memory
# refuse: P2-return-word
# from: SDM vol. 2, POP
{T:(%rdi)}
push %rdx
pop (%rax)
ret

### below the translated address
# refuse: P2-return-word
# from: contract P1
{T:(%rdi)}
mov %rdx, -8(%rax)
ret

### a page behind the translated address
# refuse: P2-return-word
# from: contract P1
{T:(%rdi)}
movb $0, 4096(%rax)
ret

### a push from memory
# accept
# from: SDM vol. 2, PUSH
{T:(%rdi)}
push (%rax)
pop %rdx
ret

### a bit tested
# accept
# from: SDM vol. 2, BT
{T:(%rdi)}
btq $3, (%rax)
ret

### one element stored
# refuse: P2-return-word
# from: SDM vol. 2, STOS
{T:(%rdi)}
mov %rax, %rdi
stosb
ret

### one element loaded
# accept
# from: SDM vol. 2, LODS
{T:(%rsi)}
mov %rax, %rsi
lodsb
ret

### one element moved
# refuse: P2-return-word
# from: SDM vol. 2, MOVS
{T:(%rsi)}
mov %rax, %rbx
{T:(%rdi)}
mov %rax, %rdi
mov %rbx, %rsi
movsb
ret

### elements compared
# accept
# from: SDM vol. 2, CMPS
{T:(%rsi)}
mov %rax, %rbx
{T:(%rdi)}
mov %rax, %rdi
mov %rbx, %rsi
cmpsb
ret

### as many elements as are covered
# refuse: P2-return-word
# from: SDM vol. 2, REP
mov %rdi, %rbx
lea (%rbx), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 1f
add twin_stlb+8(%rcx), %rax
2:
.subsection 1
1: lea (%rbx), %rax
call twin_slow_rax
jmp 2b
.subsection 0
mov %rax, %rdi
stosq
ret

### a callee of the object may have written
# refuse: P2-return-word
# from: issue 14.4
call g
ret
g: ret

### an imported routine may have written
# refuse: P2-return-word
# from: issue 14.4
sub $8, %rsp
call imported
add $8, %rsp
ret

### the same, kept and compared
# accept
# from: issue 14.4
{KEEP}
sub $8, %rsp
call imported
add $8, %rsp
{RET}

### whatever a pointer calls may have written
# refuse: P2-return-word
# from: issue 14.4
sub $8, %rsp
mov %rdi, %r11
call twin_stlb_call
add $8, %rsp
ret

### a port does not write
# accept
# from: contract P2
mov $0x60, %edx
call twin_in8
call twin_out8
ret

### a warning does not write
# accept
# from: Linux 6.1 arch/x86/include/asm/bug.h
call twin_warn
ret

### the callee keeps, the caller returns
# refuse: P2-return-word
# from: issue 14.4
call g
{RET}
g: {KEEP}
ret

### the caller keeps, the callee returns
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
call g
{RET}
g: {T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### each keeps its own
# accept
# scheme: both
# from: issue 14.4
{KEEP}
call g
{RET}
g: {KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
{RET}

### a tail call after a write
# refuse: P2-return-word
# from: issue 14.4
{T:(%rdi)}
mov %rdx, (%rax)
jmp imported

### the same, compared
# accept
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
{CHECK}
jmp imported

### a conditional tail call after a write
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
test %edx, %edx
je imported
{RET}

### the same, written anew before
# accept
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
test %edx, %edx
mov -0x8000(%rsp), %r11
mov %r11, (%rsp)
je imported
ret

### a jump through the runtime's table after a write
# refuse: P2-return-word
# from: issue 14.4
{T:(%rdi)}
mov %rdx, (%rax)
mov %rdx, %r11
jmp twin_stlb_call

### a jump to a function that trusts the word
# refuse: P2-return-word
# from: issue 14.4
{T:(%rdi)}
mov %rdx, (%rax)
jmp g
.globl g
g: ret

### a jump to a function that keeps the word
# refuse: P2-return-word
# from: issue 14.4
{T:(%rdi)}
mov %rdx, (%rax)
jmp g
.globl g
g: {KEEP}
{RET}

### running into a function that trusts the word
# refuse: P2-return-word
# from: GNU as, .globl
{T:(%rdi)}
mov %rdx, (%rax)
.globl g
g: ret

### a branch to an imported routine as the comparison's
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne imported
ret

### around through the own beginning
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
dec %rdx
jne f
{RET}

### around behind the keeping
# accept
# from: issue 14.4
{KEEP}
1: {T:(%rdi)}
mov %rdx, (%rax)
dec %rdx
jne 1b
{RET}

### the shadow written with something else
# refuse: P2-return-word
# from: issue 14.4
mov %rdx, -0x8000(%rsp)
ret

### the shadow cleared
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
movq $0, -0x8000(%rsp)
ret

### the shadow written with the word above
# refuse: P2-return-word
# from: issue 14.4
mov 8(%rsp), %r11
mov %r11, -0x8000(%rsp)
ret

### the shadow read before it is written
# refuse: P2-return-word
# from: issue 14.4
mov -0x8000(%rsp), %rdx
ret

### half of the shadow read
# refuse: P1-stack-bounds
# from: issue 14.4
{KEEP}
mov -0x8000(%rsp), %edx
ret

### half of the shadow written
# refuse: P1-stack-bounds
# from: issue 14.4
mov (%rsp), %r11
mov %r11d, -0x8000(%rsp)
ret

### one byte of the shadow written
# refuse: P1-stack-bounds
# from: issue 14.4
{KEEP}
movb $0, -0x8000(%rsp)
ret

### a word beside the shadow written
# refuse: P1-stack-bounds
# from: issue 14.4
mov (%rsp), %r11
mov %r11, -0x7ff8(%rsp)
ret

### a word across the shadow written
# refuse: P1-stack-bounds
# from: issue 14.4
mov (%rsp), %r11
mov %r11, -0x7ffc(%rsp)
ret

### a caller's shadow written
# refuse: P1-stack-bounds
# from: issue 14.4
mov (%rsp), %r11
mov %r11, -0x7ff0(%rsp)
ret

### a callee's shadow written
# refuse: P1-stack-bounds
# from: issue 14.4
mov (%rsp), %r11
mov %r11, -0x8010(%rsp)
ret

### a guard page below the stack
# refuse: P1-stack-bounds
# from: issue 14.4
mov (%rsp), %r11
mov %r11, -0x5000(%rsp)
ret

### the shadow under another depth
# refuse: P1-stack-bounds
# from: psABI 3.2.2
sub $64, %rsp
mov 64(%rsp), %r11
mov %r11, -0x8000(%rsp)
add $64, %rsp
ret

### the shadow under its own depth
# accept
# from: psABI 3.2.2
sub $64, %rsp
mov 64(%rsp), %r11
mov %r11, 64-0x8000(%rsp)
{T:(%rdi)}
mov %rdx, (%rax)
add $64, %rsp
{RET}

### the shadow through a frame pointer with something else
# refuse: P2-return-word
# from: psABI 3.2.2
mov %rsp, %rbp
mov %rdx, -0x8000(%rbp)
ret

### the shadow through a frame pointer
# accept
# from: psABI 3.2.2
mov %rsp, %r9
mov (%r9), %rdx
mov %rdx, -0x8000(%r9)
{T:(%rdi)}
mov %rbx, (%rax)
{RET}

### the shadow through its address with something else
# refuse: P2-return-word
# from: SDM vol. 2, LEA
lea -0x8000(%rsp), %r9
mov %rdx, (%r9)
ret

### the shadow through its address
# accept
# from: SDM vol. 2, LEA
lea -0x8000(%rsp), %r9
mov (%rsp), %r11
mov %r11, (%r9)
{T:(%rdi)}
mov %rdx, (%rax)
{RET}

### the shadow through an index
# refuse: P1-stack-bounds
# from: SDM vol. 2, LEA
mov (%rsp), %r11
xor %edx, %edx
mov %r11, -0x8000(%rsp,%rdx)
ret

### the shadow compared in place
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov (%rsp), %r11
cmp %r11, -0x8000(%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the shadow changed in place
# refuse: P2-return-word
# from: SDM vol. 2, ADD
{KEEP}
addq $8, -0x8000(%rsp)
ret

### the shadow exchanged
# refuse: P2-return-word
# from: SDM vol. 2, XCHG
{KEEP}
xchg %r11, -0x8000(%rsp)
ret

### the shadow read into a vector
# refuse: P2-return-word
# from: SDM vol. 2, MOVQ
{KEEP}
movq -0x8000(%rsp), %xmm0
ret

### the shadow pushed
# refuse: P2-return-word
# from: SDM vol. 2, PUSH
{KEEP}
push -0x8000(%rsp)
pop %rdx
ret

### the shadow popped into
# refuse: P1-stack-bounds
# from: SDM vol. 2, POP
lea -0x8000(%rsp), %r9
push %rdx
pop 8(%r9)
ret

### the stack moved down to the shadow
# refuse: P4-frame
# from: SDM vol. 2, SUB
sub $0x7ff8, %rsp
push %rdx
add $0x8000, %rsp
ret

### a translation of the shadow's address, which the slow path refuses
# accept
# from: contract P5
{KEEP}
lea -0x8000(%rsp), %r9
{T:(%r9)}
mov %rdx, (%rax)
{RET}

### kept after a write
# refuse: P2-return-word
# scheme: both
# from: issue 14.4
{T:(%rdi)}
mov %rdx, (%rax)
{KEEP}
{RET}

### kept after a call
# refuse: P2-return-word
# from: issue 14.4
sub $8, %rsp
call imported
add $8, %rsp
{KEEP}
{RET}

### taken before a write and kept behind it
# accept
# from: issue 14.4
mov (%rsp), %r11
{T:(%rdi)}
mov %rdx, (%rax)
mov %r11, -0x8000(%rsp)
{RET}

### taken before a call and kept behind it
# refuse: P2-return-word
# from: psABI 3.2.1
push %rbx
mov 8(%rsp), %rbx
call imported
mov %rbx, 8-0x8000(%rsp)
pop %rbx
{RET}

### kept through a translation
# refuse: P2-return-word
# from: issue 14.4
{T:(%rsp)}
mov (%rax), %r11
mov %r11, -0x8000(%rsp)
{T:(%rdi)}
mov %rdx, (%rax)
{RET}

### kept on one way only
# refuse: P2-return-word
# from: issue 14.4
test %edi, %edi
je 1f
{KEEP}
1: {T:(%rdi)}
mov %rdx, (%rax)
{RET}

### kept on both ways
# accept
# from: issue 14.4
test %edi, %edi
je 1f
{KEEP}
jmp 2f
1: {KEEP}
2: {T:(%rdi)}
mov %rdx, (%rax)
{RET}

### a second way in behind the keeping
# refuse: P2-return-word
# from: GNU as, .globl
{KEEP}
.globl g
g: {T:(%rdi)}
mov %rdx, (%rax)
{RET}

### a call to behind the keeping
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
1: {T:(%rdi)}
mov %rdx, (%rax)
{RET}
.globl g
g: {KEEP}
call 1b
{RET}

### kept in the frame
# refuse: P1-return-slot
# from: issue 14.4
mov (%rsp), %r11
push %r11
{T:(%rdi)}
mov %rdx, (%rax)
pop %r11
mov %r11, (%rsp)
ret

### kept in a register
# accept
# from: issue 14.4
mov (%rsp), %rbx
{T:(%rdi)}
mov %rdx, (%rax)
cmp %rbx, (%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### kept in a register over a call
# refuse: P2-return-word
# from: psABI 3.2.1
push %rbx
mov 8(%rsp), %rbx
call imported
cmp %rbx, 8(%rsp)
jne 9f
pop %rbx
ret
.subsection 1
9: call twin_smashed
.subsection 0

### not compared
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
ret

### compared with another register
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %rdx, (%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### compared with itself
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov (%rsp), %r11
cmp %r11, (%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### half of it compared
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11d, (%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the word above compared
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, 8(%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the word below compared
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, -8(%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the top of a frame compared
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
push %rdx
mov 8-0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 9f
pop %rdx
ret
.subsection 1
9: call twin_smashed
.subsection 0

### under a frame compared
# accept
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
push %rdx
mov 8-0x8000(%rsp), %r11
cmp %r11, 8(%rsp)
pop %rdx
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### a register changed before the comparison
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
and $-2, %r11
cmp %r11, (%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### a register loaded anew before the comparison
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
mov (%rsp), %r11
cmp %r11, (%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the comparison decided by je
# refuse: P2-return-word
# from: SDM vol. 2, Jcc
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
je 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the comparison decided by jb
# refuse: P2-return-word
# from: SDM vol. 2, Jcc
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jb 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the comparison decided by ja
# refuse: P2-return-word
# from: SDM vol. 2, Jcc
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
ja 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the comparison decided by js
# refuse: P2-return-word
# from: SDM vol. 2, Jcc
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
js 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the comparison decided by jo
# refuse: P2-return-word
# from: SDM vol. 2, Jcc
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jo 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the comparison decided by jp
# refuse: P2-return-word
# from: SDM vol. 2, Jcc
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jp 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the comparison decided by jle
# refuse: P2-return-word
# from: SDM vol. 2, Jcc
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jle 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### the comparison decided by loopne
# refuse: P2-return-word
# from: SDM vol. 2, LOOP
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
loopne 2f
ret
2: call twin_smashed

### a subtraction for a comparison
# refuse: P2-return-word
# from: SDM vol. 2, SUB
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
sub (%rsp), %r11
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### a test for a comparison
# refuse: P2-return-word
# from: SDM vol. 2, TEST
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
test %r11, (%rsp)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### flags changed behind the comparison
# refuse: P2-return-word
# from: SDM vol. 2, TEST
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
test %edx, %edx
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### flags loaded behind the comparison
# refuse: P2-return-word
# from: SDM vol. 2, SAHF
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
sahf
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### a write between comparison and branch
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
mov %rdx, (%rax)
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### a string between comparison and branch
# refuse: P2-return-word
# from: SDM vol. 2, STOS
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov %rax, %rdi
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
stosb
jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### a write behind the branch
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 9f
mov %rdx, (%rax)
ret
.subsection 1
9: call twin_smashed
.subsection 0

### a call behind the branch
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 9f
sub $8, %rsp
call imported
add $8, %rsp
ret
.subsection 1
9: call twin_smashed
.subsection 0

### both ways return
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 1f
1: ret

### the smashed way returns
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 1f
ret
1: ret

### the smashed way loops to the branch
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 1f
2: ret
1: test %edx, %edx
jmp 2b

### a branch past the comparison
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
test %edx, %edx
jne 1f
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 9f
1: ret
.subsection 1
9: call twin_smashed
.subsection 0

### a branch into the comparison
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
test %edx, %edx
jne 1f
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
1: jne 9f
ret
.subsection 1
9: call twin_smashed
.subsection 0

### compared once, then written in a loop
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rax, %rbx
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 9f
1: mov %rdx, (%rbx)
dec %rdx
jne 1b
ret
.subsection 1
9: call twin_smashed
.subsection 0

### written at the end of a loop that returns at its beginning
# refuse: P2-return-word
# from: issue 14.4
{T:(%rdi)}
mov %rax, %rbx
1: dec %rdx
jne 2f
ret
2: mov %rdx, (%rbx)
jmp 1b

### compared at the end of the loop
# accept
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rax, %rbx
1: dec %rdx
jne 2f
ret
2: mov %rdx, (%rbx)
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 9f
jmp 1b
.subsection 1
9: call twin_smashed
.subsection 0

### one way compares, the other writes
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
test %edx, %edx
je 1f
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 9f
jmp 2f
1: mov %rdx, (%rax)
2: ret
.subsection 1
9: call twin_smashed
.subsection 0

### a prefix on the return
# refuse: P2-return-word
# from: SDM vol. 2, RET
{T:(%rdi)}
mov %rdx, (%rax)
rep; ret

### the cold part of a function returns
# refuse: P2-return-word
# from: gcc, -freorder-blocks-and-partition
test %edi, %edi
je cold
ret
.section .text.unlikely,"ax",@progbits
cold: sub $8, %rsp
call imported
add $8, %rsp
ret

### the cold part of two functions, one of which keeps
# refuse: P2-return-word
# from: gcc, -freorder-blocks-and-partition
{KEEP}
test %edi, %edi
je cold
ret
.globl g
g: test %edi, %edi
je cold
ret
.section .text.unlikely,"ax",@progbits
cold: sub $8, %rsp
call imported
add $8, %rsp
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 9f
ret
9: call twin_smashed

### the cold part of two functions that both keep
# accept
# from: gcc, -freorder-blocks-and-partition
{KEEP}
test %edi, %edi
je cold
ret
.globl g
g: {KEEP}
test %edi, %edi
je cold
ret
.section .text.unlikely,"ax",@progbits
cold: sub $8, %rsp
call imported
add $8, %rsp
mov -0x8000(%rsp), %r11
cmp %r11, (%rsp)
jne 9f
ret
9: call twin_smashed

### another register written in its place
# refuse: P1-return-slot
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
mov %rdx, (%rsp)
ret

### half of the address written in its place
# refuse: P1-return-slot
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
mov %r11d, (%rsp)
ret

### the address plus one written in its place
# refuse: P1-return-slot
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
inc %r11
mov %r11, (%rsp)
ret

### the address exchanged into its place
# refuse: P1-return-slot
# from: SDM vol. 2, XCHG
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
xchg %r11, (%rsp)
ret

### the address written one byte further
# refuse: P1-return-slot
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
mov %r11, 1(%rsp)
ret

### the address written above its place
# refuse: P1-return-slot
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
mov %r11, 8(%rsp)
ret

### an address of one way only
# refuse: P1-return-slot
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
test %edx, %edx
je 1f
mov -0x8000(%rsp), %rbx
1: mov %rbx, (%rsp)
ret

### written anew, then written by pointer
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
mov %r11, (%rsp)
mov %rdx, (%rax)
ret

### written anew, then a call
# refuse: P2-return-word
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
mov %r11, (%rsp)
sub $8, %rsp
call imported
add $8, %rsp
ret

### written anew
# accept
# scheme: both
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
mov -0x8000(%rsp), %r11
mov %r11, (%rsp)
ret

### an immediate in its place
# refuse: P1-return-slot
# from: issue 14.4
{KEEP}
{T:(%rdi)}
mov %rdx, (%rax)
movq $"twin_vm:.text", (%rsp)
ret
