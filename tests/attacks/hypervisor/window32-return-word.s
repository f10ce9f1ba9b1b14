### the own return address, read at the entry
# accept
# from: __builtin_return_address(0)
mov (%rsp), %rax; ret

### the same below a frame
# accept
# from: __builtin_return_address(0)
push %rbx; sub $0x10, %rsp; mov 0x18(%rsp), %rax; add $0x10, %rsp; pop %rbx; ret

### the word below it
# refuse: P1-operand
# from: the own return address, read
push %rbx; mov (%rsp), %rax; pop %rbx; ret

### the word above it
# refuse: P1-operand
# from: the own return address, read
mov 8(%rsp), %rax; ret

### half of it
# refuse: P1-operand
# from: the own return address, read
mov (%rsp), %eax; ret

### across its end
# refuse: P1-operand
# from: the own return address, read
mov 4(%rsp), %rax; ret

### sixteen bytes from it on
# refuse: P1-operand
# from: the own return address, read
movups (%rsp), %xmm0; ret

### a write to it
# refuse: P1-operand
# from: the own return address, read
mov %rax, (%rsp); ret

### a locked write to it
# refuse: P1-operand
# from: the own return address, read
lock addq $8, (%rsp); ret

### an exchange with it
# refuse: P1-operand
# from: the own return address, read
xchg %rax, (%rsp); ret

### a comparison that may write it
# refuse: P1-operand
# from: SDM vol. 2, CMPXCHG
lock cmpxchg %rcx, (%rsp); ret

### with an index
# refuse: P1-operand
# from: the own return address, read
mov (%rsp,%rax,8), %rax; ret

### with an index of zero
# refuse: P1-operand
# from: the own return address, read
xor %eax, %eax; mov (%rsp,%rax), %rax; ret

### through a copy of the stack pointer
# refuse: P1-operand
# from: the own return address, read
mov %rsp, %rcx; mov (%rcx), %rax; ret

### with prefix 65
# refuse: P1-operand
# from: the own return address, read
mov %gs:(%rsp), %rax; ret

### with prefix 67
# refuse: P1-operand
# from: the own return address, read
mov (%esp), %rax; ret

### with the prefix of fs
# refuse: P1-operand
# from: the own return address, read
mov %fs:(%rsp), %rax; ret

### pushed again
# refuse: P1-operand
# from: compilers above realigned frames
push (%rsp); pop %rax; ret

### popped into it
# refuse: P1-operand
# from: SDM vol. 2, POP
push %rax; pop (%rsp); ret

### jumped to through it
# refuse: P2-indirect
# from: the own return address, read
jmp *(%rsp)

### at a depth that two paths do not agree on
# refuse: P4-depth
# from: joins
test %edi, %edi; je 1f; push %rax; 1: mov (%rsp), %rax; ret

### where it is only on one path
# refuse: P4-depth
# from: joins
test %edi, %edi; je 1f; push %rax; mov 8(%rsp), %rax; jmp 2f; 1: mov (%rsp), %rax; 2: ret

### after a call
# accept
# from: the own return address, read
push %rbx; call g; mov 8(%rsp), %rax; pop %rbx; ret

### loaded into rsp
# refuse: P4-rsp
# from: the own return address, read
mov (%rsp), %rsp; ret

### returned to below a frame
# refuse: P4-return
# from: the own return address, read
mov (%rsp), %rax; push %rax; ret

### a base of string instructions
# refuse: P1-string-pointer
# from: the own return address, read
mov (%rsp), %rdi; movabs $twin_window, %rdx; lea (%rdi,%rdx), %rdi; stosb; ret

### its place by a SIB byte whose index is none, of any scale
# accept
# from: SDM vol. 2, table 2-3
.byte 0x48, 0x8b, 0x44, 0xe4, 0x00
ret

### the same with REX.X, which makes r12 the index
# refuse: P1-operand
# from: SDM vol. 2, table 2-5
.byte 0x4a, 0x8b, 0x44, 0xe4, 0x00
ret

### the same with REX.B, which makes r12 the base
# refuse: P1-operand
# from: SDM vol. 2, table 2-5
.byte 0x49, 0x8b, 0x44, 0xe4, 0x00
ret
