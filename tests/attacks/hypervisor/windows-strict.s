### a pointer that is compared with both bounds
# accept
# from: docs/spec/window.md
cmp twin_lowest(%rip), %rdi
jb 1f
cmp twin_highest(%rip), %rdi
ja 1f
mov %gs:8(%edi), %eax
ret
1: push %rdi
call twin_wild
ud2

### a comparison of each register, and one that decides nothing
# accept
# from: SDM vol. 2, CMP
cmp twin_lowest(%rip), %r15
cmp twin_highest(%rip), %rsp
ret

### a comparison proves nothing of the register
# refuse: P1-operand
# from: docs/spec/window.md
cmp twin_lowest(%rip), %rdi
jb 1f
mov 8(%rdi), %eax
1: ret

### a bound is written
# refuse: P1-operand
# from: docs/spec/window.md
mov %rdi, twin_lowest(%rip)
ret

### a bound is read into a register
# refuse: P1-operand
# from: docs/spec/window.md
mov twin_lowest(%rip), %rdi
ret

### a bound is subtracted
# refuse: P1-operand
# from: SDM vol. 2, SUB
sub twin_highest(%rip), %rdi
ret

### a bound is compared with a register, the operands in the other order
# refuse: P1-operand
# from: SDM vol. 2, CMP
cmp %rdi, twin_lowest(%rip)
ret

### 32 bits of a bound
# refuse: P1-operand
# from: SDM vol. 2, CMP
cmp twin_lowest(%rip), %edi
ret

### 8 bits of a bound
# refuse: P1-operand
# from: SDM vol. 2, CMP
cmp twin_lowest(%rip), %dil
ret

### the second half of a bound
# refuse: P2-relocation
# from: SDM vol. 2, 2.2.1.6
cmp twin_lowest+4(%rip), %rdi
ret

### the word behind the last bound
# refuse: P2-relocation
# from: SDM vol. 2, 2.2.1.6
cmp twin_highest+8(%rip), %rdi
ret

### a bound at an absolute address
# refuse: P2-relocation
# from: docs/spec/object.md
cmp twin_lowest, %rdi
ret

### a bound with a base register
# refuse: P2-relocation
# from: SDM vol. 1, 3.7.5
cmp twin_lowest(%rsi), %rdi
ret

### a bound's distance with a base register
# refuse: P1-operand
# from: psABI, 4.4.1: the relocation does not say what the operand counts from
1: cmp 0x1000(%rsi), %rdi
.reloc 1b+3, R_X86_64_PC32, twin_lowest-4
ret

### a bound's distance with no base
# refuse: P1-operand
# from: psABI, 4.4.1
1: cmp 0x1000, %rdi
.reloc 1b+4, R_X86_64_PC32, twin_lowest-4
ret

### a bound's distance in the window, by both prefixes
# refuse: P1-operand
# from: psABI, 4.4.1
1: cmp %gs:0x1000(%esi), %rdi
.reloc 1b+5, R_X86_64_PC32, twin_lowest-4
ret

### a bound in a segment
# refuse: P1-operand
# from: SDM vol. 1, 3.7.4
cmp %gs:twin_lowest(%rip), %rdi
ret

### a bound with a 32-bit address
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
.byte 0x67; cmp twin_lowest(%rip), %rdi
ret

### a bound's address
# refuse: P1-operand
# from: docs/spec/window.md
lea twin_lowest(%rip), %rdi
ret

### a bound's address by movabs
# refuse: P2-relocation
# from: docs/spec/window.md
movabs $twin_lowest, %rdi
ret

### a bound is called
# refuse: P2-relocation
# from: SDM vol. 2, CALL
call twin_lowest
ret

### a jump to a bound
# refuse: P2-relocation
# from: SDM vol. 2, JMP
jmp twin_highest

### a word of a bound is pushed
# refuse: P1-operand
# from: SDM vol. 2, PUSH
push twin_lowest(%rip)
pop %rax
ret

### a bound is exchanged
# refuse: P1-operand
# from: SDM vol. 2, XCHG
xchg %rdi, twin_lowest(%rip)
ret

### a bound is added to
# refuse: P1-operand
# from: SDM vol. 2, LOCK
lock add %rdi, twin_highest(%rip)
ret

### a comparison under a repeat prefix
# refuse: P3-prefix
# from: SDM vol. 2, REP
.byte 0xf3; cmp twin_lowest(%rip), %rdi
ret

### a comparison of vectors with a bound
# refuse: P1-operand
# from: SDM vol. 2, PCMPEQQ
pcmpeqq twin_lowest(%rip), %xmm0
ret

### a comparison with an immediate at a bound
# refuse: P1-operand
# from: SDM vol. 2, CMP
cmpq $5, twin_lowest(%rip)
ret

### a bound that the object defines itself
# refuse: object-symbol
# from: docs/spec/object.md
.globl twin_lowest
twin_lowest: ret

### an unknown bound
# refuse: object-symbol
# from: docs/spec/object.md
cmp twin_lowest2(%rip), %rdi
ret

### the abort of a wild pointer is jumped to, with a frame
# refuse: P2-callee
# from: docs/proof/window.md
push %rdi
jmp twin_wild

### what follows the abort is no code of the driver's
# accept
# from: docs/proof/window.md: twin_wild does not return
push %rdi
push %rdi
call twin_wild
ud2

### the address of the abort is data
# refuse: P2-relocation
# from: docs/spec/object.md
movabs $twin_wild, %rdi
ret
