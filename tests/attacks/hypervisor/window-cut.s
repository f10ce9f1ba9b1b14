### a base that is cut
# accept
# from: docs/spec/window.md
pext twin_window_mask(%rip), %rdi, %rax
mov %gs:8(%rax), %eax
ret

### the same base with the largest displacements
# accept
# from: docs/spec/window.md
pext twin_window_mask(%rip), %rdi, %rax
mov %gs:0x7fffffff(%rax), %ecx
mov %rcx, %gs:-0x80000000(%rax)
ret

### a base that is not cut
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov %gs:8(%rdi), %eax
ret

### the register that was cut, not what it was cut into
# refuse: P1-operand
# from: SDM vol. 2, PEXT
pext twin_window_mask(%rip), %rdi, %rax
mov %gs:8(%rdi), %eax
ret

### without prefix 65
# refuse: P1-operand
# from: SDM vol. 1, 3.7.4
pext twin_window_mask(%rip), %rdi, %rax
mov 8(%rax), %eax
ret

### another segment
# refuse: P1-operand
# from: SDM vol. 1, 3.7.4
pext twin_window_mask(%rip), %rdi, %rax
mov %fs:8(%rax), %eax
ret

### prefix 65 twice
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
pext twin_window_mask(%rip), %rdi, %rax
.byte 0x65, 0x65, 0x8b, 0x40, 0x08
ret

### a segment that means nothing beside it
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
pext twin_window_mask(%rip), %rdi, %rax
.byte 0x3e, 0x65, 0x8b, 0x40, 0x08
ret

### a REX prefix before it
# refuse: P3-prefix
# from: SDM vol. 2, 2.2.1
pext twin_window_mask(%rip), %rdi, %rax
.byte 0x48, 0x65, 0x8b, 0x40, 0x08
ret

### an index beside the cut base
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
pext twin_window_mask(%rip), %rdi, %rax
mov %gs:(%rax,%rcx), %eax
ret

### an index that is cut, too: two places are more than one
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
pext twin_window_mask(%rip), %rdi, %rax
pext twin_window_mask(%rip), %rcx, %rcx
mov %gs:(%rax,%rcx,8), %eax
ret

### the cut register as index alone
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
pext twin_window_mask(%rip), %rdi, %rax
mov %gs:(,%rax,2), %eax
ret

### a low half is a place
# accept
# from: SDM vol. 1, 3.4.1.1
mov %edi, %edi
mov %gs:8(%rdi), %eax
ret

### a copy of a cut register
# accept
# from: SDM vol. 2, MOV
pext twin_window_mask(%rip), %rdi, %rax
mov %rax, %rcx
mov %gs:8(%rcx), %eax
ret

### added to after it was cut
# refuse: P1-operand
# from: SDM vol. 2, ADD
pext twin_window_mask(%rip), %rdi, %rax
add $8, %rax
mov %gs:(%rax), %eax
ret

### moved by lea after it was cut
# refuse: P1-operand
# from: SDM vol. 2, LEA
pext twin_window_mask(%rip), %rdi, %rax
lea 8(%rax), %rax
mov %gs:(%rax), %eax
ret

### negated after it was cut
# refuse: P1-operand
# from: SDM vol. 2, NEG
pext twin_window_mask(%rip), %rdi, %rax
neg %rax
mov %gs:(%rax), %eax
ret

### a byte of it changed
# accept
# from: SDM vol. 2, MOV: the low byte alone cannot lead out, but nothing follows it
pext twin_window_mask(%rip), %rdi, %rax
mov %rax, %rcx
mov $1, %cl
mov %gs:(%rax), %eax
ret

### a byte of the base changed
# refuse: P1-operand
# from: SDM vol. 1, 3.4.1
pext twin_window_mask(%rip), %rdi, %rax
mov $1, %al
mov %gs:(%rax), %ecx
ret

### exchanged with another register
# refuse: P1-operand
# from: SDM vol. 2, XCHG
pext twin_window_mask(%rip), %rdi, %rax
xchg %rax, %rcx
mov %gs:(%rax), %edx
ret

### saved and restored by the stack
# refuse: P1-operand
# from: SDM vol. 2, POP
pext twin_window_mask(%rip), %rdi, %rax
push %rax
pop %rcx
mov %gs:(%rcx), %eax
ret

### loaded again from the data stack
# refuse: P1-operand
# from: SDM vol. 2, MOV
pext twin_window_mask(%rip), %rdi, %rax
mov %rax, %gs:-8(%esp)
mov %gs:-8(%esp), %rax
mov %gs:(%rax), %eax
ret

### cut on one of two paths
# refuse: P1-operand
# from: SDM vol. 2, Jcc
mov %rdi, %rax
test %rsi, %rsi
je 1f
pext twin_window_mask(%rip), %rdi, %rax
1: mov %gs:(%rax), %eax
ret

### cut on both paths
# accept
# from: SDM vol. 2, Jcc
test %rsi, %rsi
je 1f
pext twin_window_mask(%rip), %rdi, %rax
jmp 2f
1: pext twin_window_mask(%rip), %rsi, %rax
2: mov %gs:(%rax), %eax
ret

### over the back edge of a loop that moves it
# refuse: P1-operand
# from: SDM vol. 2, Jcc
pext twin_window_mask(%rip), %rdi, %rax
1: mov %gs:(%rax), %ecx
add $8, %rax
test %ecx, %ecx
jne 1b
ret

### over a call
# refuse: P1-operand
# from: psABI 3.2.1
pext twin_window_mask(%rip), %rdi, %rax
call kfree
mov %gs:(%rax), %eax
ret

### over a call in a register that callees keep
# refuse: P1-operand
# from: psABI 3.2.1: the callee is not trusted
pext twin_window_mask(%rip), %rdi, %rbx
call kfree
mov %gs:(%rbx), %eax
ret

### a conditional move
# refuse: P1-operand
# from: SDM vol. 2, CMOVcc
pext twin_window_mask(%rip), %rdi, %rax
test %rsi, %rsi
cmove %rsi, %rax
mov %gs:(%rax), %eax
ret

### pext with another mask
# refuse: P1-operand
# from: SDM vol. 2, PEXT
pext %rsi, %rdi, %rax
mov %gs:(%rax), %eax
ret

### pext with a mask in the window
# refuse: P1-operand
# from: SDM vol. 2, PEXT
mov $0x1000000, %ecx
pext %gs:(%rcx), %rdi, %rax
mov %gs:(%rax), %eax
ret

### pdep with the mask
# refuse: P1-operand
# from: SDM vol. 2, PDEP
pdep twin_window_mask(%rip), %rdi, %rax
mov %gs:(%rax), %eax
ret

### pext of 32 bits
# refuse: P1-operand
# from: SDM vol. 2, PEXT
pext twin_window_mask(%rip), %edi, %eax
mov %gs:(%rax), %eax
ret

### the second half of the mask
# refuse: P2-relocation
# from: SDM vol. 2, PEXT
pext twin_window_mask+4(%rip), %rdi, %rax
mov %gs:(%rax), %eax
ret

### the mask at an absolute address
# refuse: P2-relocation
# from: docs/spec/object.md
pext twin_window_mask, %rdi, %rax
mov %gs:(%rax), %eax
ret

### the mask at an absolute address, anded to
# refuse: P2-relocation
# from: docs/spec/object.md
and twin_window_mask, %rdi
mov %gs:(%rdi), %eax
ret

### eight bytes after the mask
# refuse: P2-relocation
# from: SDM vol. 2, 2.2.1.6
pext twin_window_mask+8(%rip), %rdi, %rax
mov %gs:(%rax), %eax
ret

### the mask with a base register
# refuse: P2-relocation
# from: SDM vol. 1, 3.7.5
pext twin_window_mask(%rsi), %rdi, %rax
mov %gs:(%rax), %eax
ret

### the mask with an index
# refuse: P2-relocation
# from: SDM vol. 1, 3.7.5
pext twin_window_mask(,%rsi,8), %rdi, %rax
mov %gs:(%rax), %eax
ret

### the mask in a segment
# refuse: P1-operand
# from: SDM vol. 1, 3.7.4
pext %gs:twin_window_mask(%rip), %rdi, %rax
mov %gs:(%rax), %eax
ret

### the mask with a 32-bit address
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
.byte 0x67; pext twin_window_mask(%rip), %rdi, %rax
mov %gs:(%rax), %eax
ret

### the mask is written
# refuse: P1-operand
# from: docs/spec/window.md
mov %rdi, twin_window_mask(%rip)
ret

### a base that the mask is anded to
# accept
# from: SDM vol. 2, AND: no more than either operand
and twin_window_mask(%rip), %rdi
mov %gs:(%rdi), %eax
ret

### the mask in a register, with a base anded to it
# accept
# from: SDM vol. 2, AND
mov twin_window_mask(%rip), %rax
and %rdi, %rax
mov %gs:(%rax), %eax
ret

### a register that a place is anded to
# accept
# from: SDM vol. 2, AND
pext twin_window_mask(%rip), %rdi, %rax
and %rax, %rsi
mov %gs:(%rsi), %eax
ret

### the mask itself is a place, too
# accept
# from: docs/spec/window.md
mov twin_window_mask(%rip), %rax
mov %gs:-8(%rax), %eax
ret

### two registers anded, neither of them cut
# refuse: P1-operand
# from: SDM vol. 2, AND
and %rsi, %rdi
mov %gs:(%rdi), %eax
ret

### the register that was anded to it, not the result
# refuse: P1-operand
# from: SDM vol. 2, AND
mov twin_window_mask(%rip), %rax
and %rdi, %rax
mov %gs:(%rdi), %eax
ret

### the upper half of the base anded away: 16 bits
# refuse: P1-operand
# from: SDM vol. 1, 3.4.1.1: the rest of the register stays
mov twin_window_mask(%rip), %rax
and %ax, %di
mov %gs:(%rdi), %eax
ret

### 16 bits of the mask are anded
# refuse: P1-operand
# from: docs/spec/window.md
and twin_window_mask(%rip), %di
mov %gs:(%rdi), %eax
ret

### 32 bits of the mask are anded
# refuse: P1-operand
# from: docs/spec/window.md
and twin_window_mask(%rip), %edi
mov %gs:(%rdi), %eax
ret

### 32 bits of the mask are loaded
# refuse: P1-operand
# from: docs/spec/window.md
mov twin_window_mask(%rip), %eax
ret

### the second half of the mask is anded
# refuse: P2-relocation
# from: SDM vol. 2, AND
and twin_window_mask+4(%rip), %rdi
ret

### the mask is anded with a base register in its address
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
and twin_window_mask(%rsi), %rdi
mov %gs:(%rdi), %eax
ret

### the mask in a segment is anded
# refuse: P1-operand
# from: SDM vol. 1, 3.7.4
and %gs:twin_window_mask(%rip), %rdi
mov %gs:(%rdi), %eax
ret

### the mask is anded to: it is written
# refuse: P1-operand
# from: SDM vol. 2, AND
and %rdi, twin_window_mask(%rip)
ret

### something else anded at the mask's place in the code
# refuse: P1-operand
# from: docs/spec/window.md
and 0x1000, %rdi
mov %gs:(%rdi), %eax
ret

### the mask is ored
# refuse: P1-operand
# from: SDM vol. 2, OR
or twin_window_mask(%rip), %rdi
mov %gs:(%rdi), %eax
ret

### the mask is added
# refuse: P1-operand
# from: SDM vol. 2, ADD
add twin_window_mask(%rip), %rdi
ret

### the mask is tested: nothing is cut
# refuse: P1-operand
# from: SDM vol. 2, TEST
test %rdi, twin_window_mask(%rip)
mov %gs:(%rdi), %eax
ret

### anded with the inverse
# refuse: P1-operand
# from: SDM vol. 2, ANDN
mov twin_window_mask(%rip), %rax
andn %rdi, %rax, %rdi
mov %gs:(%rdi), %eax
ret

### ored after it was anded
# refuse: P1-operand
# from: SDM vol. 2, OR
and twin_window_mask(%rip), %rdi
or %rsi, %rdi
mov %gs:(%rdi), %eax
ret

### anded on one of two paths
# refuse: P1-operand
# from: SDM vol. 2, Jcc
test %rsi, %rsi
je 1f
and twin_window_mask(%rip), %rdi
1: mov %gs:(%rdi), %eax
ret

### anded, and over a call in a register that callees keep
# refuse: P1-operand
# from: psABI 3.2.1: the callee is not trusted
push %rbx
mov %rdi, %rbx
and twin_window_mask(%rip), %rbx
call kfree
mov %gs:(%rbx), %eax
pop %rbx
ret

### the stack pointer anded with a place
# refuse: P4-rsp
# from: docs/proof/window.md
mov twin_window_mask(%rip), %rax
and %rax, %rsp
ret

### the stack pointer cut
# refuse: P4-rsp
# from: docs/proof/window.md
and twin_window_mask(%rip), %rsp
ret

### the address of the mask
# refuse: P1-operand
# from: docs/spec/window.md
lea twin_window_mask(%rip), %rax
ret

### the mask by movabs
# refuse: P2-relocation
# from: docs/spec/window.md
movabs $twin_window_mask, %rax
ret

### shifted out and in again
# accept
# from: SDM vol. 2, SHL/SHR: zeros come in
shl $22, %rdi
shr $22, %rdi
mov %gs:(%rdi), %eax
ret

### shifted by as much as there is
# accept
# from: SDM vol. 2, SHR
shr $63, %rdi
mov %gs:(%rdi), %eax
ret

### shifted by one too few
# refuse: P1-operand
# from: SDM vol. 2, SHR
shl $21, %rdi
shr $21, %rdi
mov %gs:(%rdi), %eax
ret

### a count of which the processor takes the low six bits
# refuse: P1-operand
# from: SDM vol. 2, SHR: 86 is 22, and it is not followed
shr $86, %rdi
mov %gs:(%rdi), %eax
ret

### a count that is a whole turn
# refuse: P1-operand
# from: SDM vol. 2, SHR: 64 is 0
shr $64, %rdi
mov %gs:(%rdi), %eax
ret

### shifted by a register
# refuse: P1-operand
# from: SDM vol. 2, SHR
mov $22, %ecx
shr %cl, %rdi
mov %gs:(%rdi), %eax
ret

### shifted with the sign
# refuse: P1-operand
# from: SDM vol. 2, SAR
sar $22, %rdi
mov %gs:(%rdi), %eax
ret

### turned round
# refuse: P1-operand
# from: SDM vol. 2, ROR
ror $22, %rdi
mov %gs:(%rdi), %eax
ret

### shifted out, not in again
# refuse: P1-operand
# from: SDM vol. 2, SHL
shl $22, %rdi
mov %gs:(%rdi), %eax
ret

### bits shifted in from another register
# refuse: P1-operand
# from: SDM vol. 2, SHRD
shrd $22, %rsi, %rdi
mov %gs:(%rdi), %eax
ret

### 16 bits shifted
# refuse: P1-operand
# from: SDM vol. 1, 3.4.1.1
shr $22, %di
mov %gs:(%rdi), %eax
ret

### shifted up after it was shifted down
# refuse: P1-operand
# from: SDM vol. 2, SHL
shr $22, %rdi
shl $1, %rdi
mov %gs:(%rdi), %eax
ret

### another register is shifted
# refuse: P1-operand
# from: SDM vol. 2, SHR
shr $22, %rsi
mov %gs:(%rdi), %eax
ret

### the stack pointer shifted
# refuse: P4-rsp
# from: docs/proof/window.md
shr $22, %rsp
ret

### a displacement alone
# accept
# from: SDM vol. 1, 3.7.5
mov %gs:0x1000, %eax
mov %gs:-0x1000, %ecx
ret

### a symbol alone
# accept
# from: SDM vol. 1, 3.7.5
mov %gs:"twin_vm:.data", %eax
ret

### a symbol and a base that is cut
# accept
# from: psABI 4.4: R_X86_64_32S is extended by its sign, so it is a displacement like any other
pext twin_window_mask(%rip), %rdi, %rax
mov %gs:"twin_vm:.data"(%rax), %eax
ret

### relative to the instruction
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov %gs:8(%rip), %eax
ret

### an address in the instruction
# refuse: P1-operand
# from: SDM vol. 2, MOV
.byte 0x65, 0x48, 0xa1
.quad 0x1000
ret

### the control stack by its own register
# refuse: P1-operand
# from: docs/spec/window.md
mov %gs:8(%rsp), %rax
ret

### the data stack
# accept
# from: docs/spec/window.md
mov %gs:-8(%esp), %rax
ret

### a bit far from a cut base
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
pext twin_window_mask(%rip), %rdi, %rax
bts %rcx, %gs:(%rax)
ret

### a bit of the word at a cut base
# accept
# from: SDM vol. 2, BTS
pext twin_window_mask(%rip), %rdi, %rax
mov %rcx, %rdx
and $63, %edx
bts %rdx, %gs:(%rax)
ret

### a bit far away by a 32-bit offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
pext twin_window_mask(%rip), %rdi, %rax
bts %ecx, %gs:(%rax)
ret

### a bit far away by both prefixes
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
bts %rcx, %gs:(%edi)
ret

### a bit far from the data stack
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
bts %rcx, %gs:-8(%esp)
ret

### a bit of the word by both prefixes
# accept
# from: SDM vol. 2, BTS
and $63, %ecx
bts %rcx, %gs:(%edi)
ret

### a gather from a cut base
# refuse: P3-instruction
# from: SDM vol. 2, VPGATHERDD
pext twin_window_mask(%rip), %rdi, %rax
vpgatherdd %xmm0, %gs:(%rax,%xmm1,1), %xmm2
ret

### a string at a window pointer
# accept
# from: docs/spec/window.md
movabs $twin_window, %rax
pext twin_window_mask(%rip), %rdi, %rdi
lea (%rdi,%rax), %rdi
rep stosq
ret

### a string at a place
# refuse: P1-string-pointer
# from: SDM vol. 1, 7.3.9
pext twin_window_mask(%rip), %rdi, %rdi
rep stosq
ret

### a string at twice the window's start
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rax
lea (%rax,%rax), %rdi
rep stosq
ret

### a string at the sum of two places
# refuse: P1-string-pointer
# from: docs/spec/window.md
pext twin_window_mask(%rip), %rdi, %rdi
pext twin_window_mask(%rip), %rsi, %rax
lea (%rdi,%rax), %rdi
rep stosq
ret

### a string at a window pointer that was moved
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rax
pext twin_window_mask(%rip), %rdi, %rdi
lea 8(%rdi,%rax), %rdi
rep stosq
ret

### an indirect call through a cut base
# refuse: P2-indirect
# from: docs/spec/window.md
pext twin_window_mask(%rip), %rdi, %rax
call *%gs:(%rax)
ret
