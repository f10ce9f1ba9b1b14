### registers saved and restored
# accept
# from: contract P4
push %rbx; push %rbp; sub $24, %rsp; mov %rdi, %gs:8(%esp); call imported; mov %gs:8(%esp), %rax; add $24, %rsp; pop %rbp; pop %rbx; ret

### rsp above the entry by add
# refuse: P4-frame
# from: contract P4
add $8, %rsp; sub $8, %rsp; ret

### rsp above the entry by lea
# refuse: P4-frame
# from: contract P4
lea 8(%rsp), %rsp; lea -8(%rsp), %rsp; ret

### rsp above the entry by sub
# refuse: P4-frame
# from: contract P4
sub $-8, %rsp; add $-8, %rsp; ret

### the return word popped
# refuse: P4-frame
# from: contract P4
pop %rax; push %rax; ret

### the return word popped and another one pushed
# refuse: P4-frame
# from: contract P4
pop %rax; push %rdi; ret

### the return word popped to memory
# refuse: P4-frame
# from: contract P4
popq %gs:(%edi); ret

### one pop too many
# refuse: P4-frame
# from: contract P4
push %rbx; pop %rbx; pop %rax; ret

### a return address pushed
# refuse: P4-return
# from: return-oriented programming
push %rdi; ret

### a return address pushed from memory
# refuse: P4-return
# from: return-oriented programming
pushq %gs:(%edi); ret

### a return below a frame
# refuse: P4-return
# from: contract P4
sub $8, %rsp; ret

### a tail call below a frame
# refuse: P4-return
# from: contract P4
push %rbx; jmp imported

### a tail call to the call table below a frame
# refuse: P4-return
# from: contract P4
push %rbx; mov %rdi, %r11; jmp twin_stlb_call

### a tail call with an empty frame
# accept
# from: contract P4
push %rbx; pop %rbx; jmp imported

### a conditional tail call below a frame
# refuse: P4-return
# from: contract P4
push %rbx; test %edi, %edi; je imported; pop %rbx; ret

### two depths that meet
# refuse: P4-depth
# from: contract P4
test %edi, %edi; je 1f; push %rax; 1: ret

### two depths that meet above a pop
# refuse: P4-depth
# from: contract P4
push %rbx; test %edi, %edi; je 1f; sub $8, %rsp; 1: pop %rbx; ret

### a loop that grows the stack
# refuse: P4-depth
# from: contract P4
1: push %rax; dec %edi; jne 1b; ret

### a loop that shrinks it
# refuse: P4-depth
# from: contract P4
push %rax; 1: pop %rax; dec %edi; jne 1b; ret

### a jump to the own start below a frame
# refuse: P4-depth
# from: contract P4
push %rax; jmp f

### rsp from a register
# refuse: P4-rsp
# from: contract P4
mov %rdi, %rsp; ret

### rsp from the window
# refuse: P4-rsp
# from: contract P4
mov %gs:(%edi), %rsp; ret

### rsp popped
# refuse: P4-rsp
# from: SDM vol. 2, POP
push %rdi; pop %rsp; ret

### rsp pushed, a number like any other
# accept
# from: SDM vol. 2, PUSH
push %rsp; pop %rax; ret

### rsp exchanged
# refuse: P4-rsp
# from: contract P4
xchg %rdi, %rsp; ret

### rsp exchanged and back
# refuse: P4-rsp
# from: contract P4
xchg %rax, %rsp; xchg %rax, %rsp; ret

### rsp aligned
# refuse: P4-rsp
# from: contract P4
mov %rsp, %rax; and $-16, %rsp; mov %rax, %rsp; ret

### a register added to rsp
# refuse: P4-rsp
# from: contract P4
add %rdi, %rsp; ret

### a register subtracted, alloca
# refuse: P4-rsp
# from: contract P4
mov %rsp, %rbp; sub %rdi, %rsp; mov %rbp, %rsp; ret

### 32 bits of rsp written
# refuse: P4-rsp
# from: SDM vol. 1, 3.4.1.1
mov %edi, %esp; ret

### 32 bits of rsp moved
# refuse: P4-rsp
# from: SDM vol. 1, 3.4.1.1
sub $8, %esp; add $8, %esp; ret

### rsp cut to its low half
# refuse: P4-rsp
# from: SDM vol. 1, 3.4.1.1
mov %esp, %esp; ret

### 16 bits of rsp written
# refuse: P4-rsp
# from: contract P4
mov %di, %sp; ret

### 8 bits of rsp written
# refuse: P4-rsp
# from: contract P4
mov %dil, %spl; ret

### rsp moved by a condition
# refuse: P4-rsp
# from: contract P4
cmove %rdi, %rsp; ret

### rsp moved by a part of a word
# refuse: P4-alignment
# from: contract P4
sub $12, %rsp; add $12, %rsp; ret

### a frame that reaches over the guard
# refuse: P4-frame
# from: contract P4
sub $3976, %rsp; add $3976, %rsp; ret

### the largest frame
# accept
# from: contract P4
sub $3968, %rsp; call imported; add $3968, %rsp; ret

### a push below the largest frame
# refuse: P4-frame
# from: contract P4
sub $3968, %rsp; push %rax; pop %rax; add $3968, %rsp; ret

### rsp through a frame pointer, known
# accept
# from: contract P4
push %rbp; mov %rsp, %rbp; sub $32, %rsp; mov %rbp, %rsp; pop %rbp; ret

### rsp through a frame pointer, lost in a call
# refuse: P4-rsp
# from: contract P4
push %rbp; mov %rsp, %rbp; sub $32, %rsp; call imported; mov %rbp, %rsp; pop %rbp; ret

### rsp through a frame pointer, above the entry
# refuse: P4-frame
# from: contract P4
lea 8(%rsp), %rbp; mov %rbp, %rsp; ret

### rsp from its distance, whatever rbp is
# accept
# from: contract P4
push %rbp; mov %rsp, %rbp; sub $32, %rsp; call imported; lea 32(%rsp), %rsp; pop %rbp; ret

### leave
# refuse: P4-rsp
# from: docs/spec/window.md
push %rbp; mov %rsp, %rbp; sub $32, %rsp; leave; ret

### leave with any rbp
# refuse: P4-rsp
# from: docs/spec/window.md
leave; ret

### enter
# refuse: P3-instruction
# from: SDM vol. 2, ENTER
enter $16, $0; ret

### the flags pushed
# refuse: P3-instruction
# from: SDM vol. 2, PUSHF
pushfq; pop %rax; ret

### the flags popped
# refuse: P3-instruction
# from: SDM vol. 2, POPF
push %rax; popfq; ret

### a return that pops arguments
# refuse: P3-instruction
# from: SDM vol. 2, RET
ret $8

### a far return
# refuse: P3-instruction
# from: SDM vol. 2, RET
lretq

### a return from an interrupt
# refuse: P3-instruction
# from: SDM vol. 2, IRET
iretq

### a return of 16 bits
# refuse: P3-prefix
# from: SDM vol. 2, RET
.byte 0x66, 0xc3

### a return with rep
# accept
# from: APM vol. 3, RET
rep; ret

### a call that only pushes the next address
# refuse: P4-frame
# from: position-independent code
call 1f; 1: pop %rax; ret

### a call into the own frame's middle
# refuse: P4-frame
# from: contract P4
push %rbx; call 1f; pop %rbx; ret; 1: pop %rax; push %rax; pop %rcx; ret

### a call, whose callee has its own frame
# accept
# from: contract P4
push %rbx; call 1f; pop %rbx; ret; 1: push %rax; pop %rax; ret

### a push of 16 bits
# refuse: P3-instruction
# from: SDM vol. 2, PUSH
pushw %ax; popw %ax; ret

### a segment register popped to rsp's stack
# refuse: P3-instruction
# from: SDM vol. 2, PUSH
push %fs; pop %rax; ret

### a shadow stack's pointer moved
# refuse: P3-instruction
# from: SDM vol. 1, 17.2
mov $1, %eax; incsspq %rax; ret
