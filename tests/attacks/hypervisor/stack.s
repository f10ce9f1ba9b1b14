### a frame of three bytes
# refuse: P4-alignment
# from: psABI 3.2.2
sub $3, %rsp
call imported
add $3, %rsp
ret

### a frame of four bytes, and nothing in it
# refuse: P4-alignment
# from: psABI 3.2.2
sub $4, %rsp
add $4, %rsp
ret

### the same by lea
# refuse: P4-alignment
# from: psABI 3.2.2
lea -20(%rsp), %rsp
call imported
lea 20(%rsp), %rsp
ret

### the same by way of another register
# refuse: P4-alignment
# from: psABI 3.2.2
mov %rsp, %rax
sub $12, %rax
mov %rax, %rsp
call imported
add $12, %rsp
ret

### one byte at a time
# refuse: P4-rsp
# from: SDM vol. 2, INC
dec %rsp
inc %rsp
ret

### a frame that is odd on the way in and even on the way out
# refuse: P4-alignment
# from: psABI 3.2.2
push %rbx
lea -7(%rsp), %rsp
push %rbx
pop %rbx
lea 7(%rsp), %rsp
pop %rbx
ret

### frames of one word and of two
# accept
# from: psABI 3.2.2; the kernel's -mpreferred-stack-boundary=3
{KEEP}
sub $8, %rsp
call imported
sub $8, %rsp
call imported
add $16, %rsp
{RET}

### a frame aligned to 16 bytes by a mask
# refuse: P4-rsp
# from: gcc -mstackrealign
push %rbp
mov %rsp, %rbp
and $-16, %rsp
lea (%rbp), %rsp
pop %rbp
ret

### a frame whose size is in a register
# refuse: P4-rsp
# from: alloca
sub %rdi, %rsp
ret

### a frame whose size dom0 chooses
# refuse: P4-rsp
# from: SDM vol. 2, SUB
sub $"twin_vm:x", %rsp
ret

### the stack pointer popped
# refuse: P4-rsp
# from: SDM vol. 2, POP
push %rdi
pop %rsp
ret

### the stack pointer pushed and popped
# refuse: P4-rsp
# from: SDM vol. 2, PUSH
push %rsp
pop %rsp
ret

### the stack pointer loaded from the frame
# refuse: P4-rsp
# from: SDM vol. 2, MOV
mov %rsp, -8(%rsp)
mov -8(%rsp), %rsp
ret

### the stack pointer in 32 bits
# refuse: P4-rsp
# from: SDM vol. 1, 3.4.1.1
mov %esp, %esp
ret

### the stack pointer's low half
# refuse: P4-rsp
# from: SDM vol. 1, 3.4.1.1
sub $8, %sp
add $8, %sp
ret

### the stack pointer's low byte
# refuse: P4-rsp
# from: SDM vol. 2, 2.2.1.2 (spl)
mov $0, %spl
ret

### the stack pointer exchanged
# refuse: P4-rsp
# from: SDM vol. 2, XCHG
mov %rsp, %rax
xchg %rax, %rsp
ret

### the stack pointer exchanged with a word of the frame
# refuse: P4-rsp
# from: SDM vol. 2, XCHG
xchg %rsp, -8(%rsp)
ret

### the stack pointer by a condition
# refuse: P4-rsp
# from: SDM vol. 2, CMOVcc
lea -8(%rsp), %rax
cmove %rax, %rsp
ret

### the stack pointer added and exchanged
# refuse: P4-rsp
# from: SDM vol. 2, XADD
xor %eax, %eax
xadd %rsp, %rax
ret

### a bit of the stack pointer
# refuse: P4-rsp
# from: SDM vol. 2, BTS
bts $3, %rsp
ret

### the stack pointer negated twice
# refuse: P4-rsp
# from: SDM vol. 2, NEG
neg %rsp
neg %rsp
ret

### the stack pointer's bytes swapped
# refuse: P4-rsp
# from: SDM vol. 2, BSWAP
bswap %rsp
ret

### the stack pointer with a carry
# refuse: P4-rsp
# from: SDM vol. 2, ADC
stc
adc $-9, %rsp
ret

### the stack pointer with an index
# refuse: P4-rsp
# from: SDM vol. 2, LEA
lea (%rsp,%rdi), %rsp
ret

### the stack pointer shifted by nothing
# refuse: P4-rsp
# from: SDM vol. 2, SHL
shl $0, %rsp
ret

### the stack pointer as the result of a comparison and exchange
# refuse: P4-rsp
# from: SDM vol. 2, CMPXCHG
cmpxchg %rdi, %rsp
ret

### the stack pointer extracted from a vector
# refuse: P4-rsp
# from: SDM vol. 2, MOVQ
movq %xmm0, %rsp
ret

### the stack pointer from a multiplication
# refuse: P4-rsp
# from: SDM vol. 2, IMUL
imul $1, %rsp, %rsp
ret

### the stack pointer from a bit scan
# refuse: P4-rsp
# from: SDM vol. 2, BSF
bsf %rdi, %rsp
ret

### the stack pointer as mulx's high half
# refuse: P4-rsp
# from: SDM vol. 2, MULX
mulx %rax, %rcx, %rsp
ret

### a constant as the stack
# refuse: P4-rsp
# from: SDM vol. 2, MOV
movabs $0x7fffffff0000, %rsp
ret

### a frame left by a pointer that is none
# refuse: P4-rsp
# from: SDM vol. 2, LEAVE
leave
ret

### a frame left by a pointer of the caller's making
# refuse: P4-rsp
# from: SDM vol. 2, LEAVE
push %rbp
mov %rdi, %rbp
leave
ret

### a frame left by its pointer
# accept
# from: SDM vol. 2, LEAVE
push %rbp
mov %rsp, %rbp
sub $32, %rsp
leave
ret

### a frame left by its pointer after a call, which may have changed it
# refuse: P4-rsp
# from: psABI 3.2.1, which no driver is trusted to keep
push %rbp
mov %rsp, %rbp
call imported
leave
ret

### a frame left by a pointer that was loaded
# refuse: P4-rsp
# from: SDM vol. 2, LEAVE
push %rbp
mov %rsp, %rbp
push %rbp
pop %rbp
leave
ret

### a frame deeper than the guard page
# refuse: P4-frame
# from: contract P4
sub $3976, %rsp
add $3976, %rsp
ret

### a frame as deep as the guard page allows
# accept
# from: contract P4
{KEEP}
sub $3968, %rsp
call imported
add $3968, %rsp
{RET}

### a frame that wraps
# refuse: P4-rsp
# from: SDM vol. 2, SUB
sub $-2147483648, %rsp
ret

### a frame that grows around a loop
# refuse: P4-depth
# from: contract P4
1: push %rdi
dec %esi
jne 1b
ret

### a frame that two paths leave at two depths
# refuse: P4-depth
# from: contract P4
test %edi, %edi
je 1f
push %rdi
1: ret

### the caller's frame popped
# refuse: P4-frame
# from: contract P4
pop %rax
push %rax
ret

### the stack pointer above the return address
# refuse: P4-frame
# from: contract P4
lea 8(%rsp), %rsp
lea -8(%rsp), %rsp
ret

### above the return address by way of another register
# refuse: P4-frame
# from: contract P4
lea 16(%rsp), %rax
mov %rax, %rsp
ret

### a pop to memory that the pop itself has moved
# refuse: P1-stack-bounds
# from: SDM vol. 2, POP (rsp as a base is read after it has moved)
push %rdi
pop (%rsp)
ret

### a pop into the frame through another register
# accept
# from: SDM vol. 2, POP
sub $16, %rsp
mov %rsp, %rax
push %rdi
pop (%rax)
add $16, %rsp
ret

### a pop over the return address through another register
# refuse: P1-return-slot
# from: SDM vol. 2, POP
mov %rsp, %rax
push %rdi
pop (%rax)
ret

### a push of what the push has just moved
# accept
# from: SDM vol. 2, PUSH (the old rsp is the address)
push (%rsp)
pop %rax
ret

### a push of an argument beyond those that anybody passes
# refuse: P1-stack-bounds
# from: contract P1
push 72(%rsp)
pop %rax
ret

### a word below the red zone
# refuse: P1-stack-bounds
# from: psABI 3.2.2 (128 bytes)
mov %rax, -136(%rsp)
ret

### a vector that begins below the red zone
# refuse: P1-stack-bounds
# from: psABI 3.2.2
movups %xmm0, -132(%rsp)
ret

### a vector that ends in the return address
# refuse: P1-return-slot
# from: SDM vol. 2, VMOVUPS
vmovups %ymm0, -28(%rsp)
ret

### 64 bytes that end in the return address
# refuse: P1-return-slot
# from: SDM vol. 2, VMOVUPS
vmovups %zmm0, -56(%rsp)
ret

### a vector below the return address
# accept
# from: SDM vol. 2, VMOVUPS
vmovups %ymm0, -32(%rsp)
ret

### a byte of the return address set by a condition
# refuse: P1-return-slot
# from: SDM vol. 2, SETcc
sete 7(%rsp)
ret

### the return address inverted
# refuse: P1-return-slot
# from: SDM vol. 2, NOT
notq (%rsp)
ret

### the return address compared and exchanged
# refuse: P1-return-slot
# from: SDM vol. 2, CMPXCHG
lock cmpxchg %rdi, (%rsp)
ret

### 16 bytes compared and exchanged around it
# refuse: P1-return-slot
# from: SDM vol. 2, CMPXCHG16B
cmpxchg16b -8(%rsp)
ret

### a bit of the return address by a constant
# refuse: P1-return-slot
# from: SDM vol. 2, BTC
btcl $5, (%rsp)
ret

### a bit of the return address by a register
# refuse: P1-return-slot
# from: SDM vol. 2, BTS
and $31, %edi
bts %edi, (%rsp)
ret

### a bit above an operand in the frame
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS (the register counts bits of any distance)
and $63, %edi
bts %edi, -8(%rsp)
ret

### a bit of the frame
# accept
# from: SDM vol. 2, BTS
and $31, %edi
bts %edi, -8(%rsp)
ret

### the return address shifted in
# refuse: P1-return-slot
# from: SDM vol. 2, SHLD
shld $8, %rdi, (%rsp)
ret

### the return address read, which is allowed
# accept
# from: contract P1
mov (%rsp), %rax
ret

### the frame reached by a copy of its pointer
# accept
# from: contract P1
sub $32, %rsp
lea 8(%rsp), %rbp
mov %rbp, %rdx
mov %rax, 16(%rdx)
add $32, %rsp
ret

### the frame reached by a pointer that a condition chose
# refuse: P1-untranslated
# from: SDM vol. 2, CMOVcc
sub $32, %rsp
mov %rsp, %rbp
cmove %rdi, %rbp
mov %rax, (%rbp)
add $32, %rsp
ret

### the frame reached by a pointer that was exchanged
# refuse: P1-untranslated
# from: SDM vol. 2, XCHG
sub $32, %rsp
mov %rsp, %rbp
xchg %rbp, %rdi
mov %rax, (%rbp)
add $32, %rsp
ret

### a frame pointer from another depth, where two paths meet
# refuse: P1-untranslated
# from: contract, joins
sub $32, %rsp
mov %rsp, %rbp
test %edi, %edi
je 1f
lea 8(%rsp), %rbp
1: mov %rax, 24(%rbp)
add $32, %rsp
ret

### a frame pointer that moves around a loop
# refuse: P1-untranslated
# from: contract, joins
sub $32, %rsp
mov %rsp, %rbp
1: mov %rax, (%rbp)
add $8, %rbp
dec %edi
jne 1b
add $32, %rsp
ret

### the frame that was given back
# refuse: P1-stack-bounds
# from: contract P1
sub $256, %rsp
mov %rsp, %rbp
add $256, %rsp
mov %rax, (%rbp)
ret

### an index on the frame
# refuse: P1-stack-bounds
# from: contract P1
sub $64, %rsp
and $7, %edi
mov %rax, (%rsp,%rdi,8)
add $64, %rsp
ret

### an index on the frame by way of lea
# refuse: P1-untranslated
# from: contract P1
sub $64, %rsp
and $7, %edi
lea (%rsp,%rdi,8), %rax
mov %rdi, (%rax)
add $64, %rsp
ret

### the frame in the base and nothing in the index
# refuse: P1-stack-bounds
# from: SDM vol. 1, 3.7.5
xor %edi, %edi
mov %rax, -8(%rsp,%rdi)
ret

### the context of the CPU through a frame pointer above the entry
# refuse: P1-untranslated
# from: crates/abi, stack
lea 8(%rsp), %rax
or $0xffff, %rax
mov -0x1ff7(%rax), %rdx
ret

### the base of dom0's gs
# accept
# from: crates/abi, stack
mov %rsp, %rax
or $0xffff, %rax
mov -0x1ff7(%rax), %rdx
ret

### the base of dom0's gs, written
# refuse: P1-context
# from: crates/abi, stack
mov %rsp, %rax
or $0xffff, %rax
mov %rdx, -0x1ff7(%rax)
ret

### the base of dom0's gs, exchanged
# refuse: P1-context
# from: SDM vol. 2, XADD
mov %rsp, %rax
or $0xffff, %rax
xadd %rdx, -0x1ff7(%rax)
ret

### the host's stack pointer in the context
# refuse: P1-context
# from: runtime/core/offsets.h
mov %rsp, %rax
or $0xffff, %rax
mov -0xfe7(%rax), %rdx
ret

### a context that was pushed to
# refuse: P1-context
# from: SDM vol. 2, POP
mov %rsp, %rax
or $0xffff, %rax
push %rdi
pop -0x1ff7(%rax)
ret

### a block of another size
# refuse: P1-untranslated
# from: crates/abi, stack
mov %rsp, %rax
or $0x7fff, %rax
mov -0x1ff7(%rax), %rdx
ret

### a block found in 32 bits
# refuse: P1-untranslated
# from: SDM vol. 1, 3.4.1.1
mov %rsp, %rax
or $0xffff, %eax
mov -0x1ff7(%rax), %rdx
ret
