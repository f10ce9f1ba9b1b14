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

### a conditional jump to the abort
# refuse: P2-callee
# from: docs/proof/window.md: it is called, so that the return address says where
cmp twin_lowest(%rip), %rdi
jb twin_wild
ret

### the abort is called with the direction flag set
# refuse: P2-direction
# from: psABI 3.2.1
std
push %rdi
call twin_wild
ud2

### code behind the abort
# refuse: P2-unreached
# from: docs/proof/window.md: twin_wild does not return
push %rdi
call twin_wild
mov %gs:8(%edi), %eax
ret

### the second byte of the abort
# refuse: P2-relocation
# from: contract P2
push %rdi
call twin_wild+1
ud2

### an abort of the object's own
# refuse: object-symbol
# from: docs/spec/object.md
push %rdi
call twin_wild
ud2
.globl twin_wild
twin_wild: ret

### an abort that may stay unresolved: the call goes to the next instruction
# refuse: P2-relocation
# from: gABI chapter 4
.weak twin_wild
push %rdi
call twin_wild
ud2

### a comparison that one edge skips
# accept
# from: docs/spec/window.md: a comparison proves nothing, the prefixes do
test %esi, %esi
je 1f
cmp twin_lowest(%rip), %rdi
jb 2f
1: mov %gs:8(%edi), %eax
ret
2: push %rdi
call twin_wild
ud2

### the same for an access without prefixes
# refuse: P1-operand
# from: docs/spec/window.md
cmp twin_lowest(%rip), %rdi
jb 2f
cmp twin_highest(%rip), %rdi
ja 2f
mov 8(%rdi), %eax
ret
2: push %rdi
call twin_wild
ud2

### two bounds in one field
# refuse: P2-relocation
# from: gABI chapter 4: relocations of one field are applied one after another
1: cmp 0x1000(%rip), %rdi
.reloc 1b+3, R_X86_64_PC32, twin_lowest-4
.reloc 1b+3, R_X86_64_PC32, twin_highest-4
ret

### a bound by the relocation for calls
# refuse: P2-relocation
# from: psABI 4.4
1: cmp 0x1000(%rip), %rdi
.reloc 1b+3, R_X86_64_PLT32, twin_lowest-4
ret

### a bound through a table that a linker makes
# refuse: P2-relocation
# from: psABI 4.4, GOTPCREL
cmp twin_lowest@GOTPCREL(%rip), %rdi
ret

### a bound's distance in an immediate
# refuse: P2-relocation
# from: psABI 4.4
1: mov $0x12345678, %eax
.reloc 1b+1, R_X86_64_PC32, twin_lowest-4
ret

### a bound's distance over the opcode
# refuse: P2-relocation
# from: psABI 4.4
1: cmp 0x1000(%rip), %rdi
.reloc 1b+2, R_X86_64_PC32, twin_lowest-4
ret

### the same comparison at a bound and at the code, after one another
# refuse: P1-operand
# from: crates/svm-verify, decode/memo.rs: equal bytes are judged once
1: cmp 0x0(%rip), %rdi
.reloc 1b+3, R_X86_64_PC32, twin_lowest-4
cmp 0x0(%rip), %rdi
ret
.fill 16, 1, 0x90

### flags kept around a comparison, and the word on the stack changed in between
# accept
# from: docs/spec/window.md: the flags are the driver's
push %rax
lahf
seto %al
cmp twin_lowest(%rip), %rdi
add $0x7f, %al
sahf
pop %rax
ret

### flags kept around a comparison, with one pop too few
# refuse: P4-return
# from: contract P4
push %rax
lahf
seto %al
cmp twin_lowest(%rip), %rdi
add $0x7f, %al
sahf
ret
