### an entry's translation in a register
# refuse: P5-table
# from: contract P5
{T:(%rdi)}
mov twin_stlb+8(%rcx), %rax
ret

### an entry's tag in a register
# refuse: P5-table
# from: contract P5
{T:(%rdi)}
mov twin_stlb(%rcx), %rax
ret

### an entry exchanged
# refuse: P5-table
# from: SDM vol. 2, XCHG
{T:(%rdi)}
xchg %rax, twin_stlb+8(%rcx)
ret

### an entry overwritten by a vector
# refuse: P5-table
# from: SDM vol. 2, MOVUPS
{T:(%rdi)}
movups %xmm0, twin_stlb(%rcx)
ret

### an entry pushed
# refuse: P5-table
# from: SDM vol. 2, PUSH
{T:(%rdi)}
push twin_stlb+8(%rcx)
pop %rax
ret

### an entry popped over
# refuse: P5-table
# from: SDM vol. 2, POP
{T:(%rdi)}
push %rsi
pop twin_stlb+8(%rcx)
ret

### an entry prefetched
# refuse: P5-table
# from: SDM vol. 2, PREFETCHh
{T:(%rdi)}
prefetcht0 twin_stlb(%rcx)
ret

### an entry subtracted from, not subtracted
# refuse: P5-table
# from: SDM vol. 2, SUB
{T:(%rdi)}
sub %rax, twin_stlb(%rcx)
ret

### an entry subtracted with a borrow
# refuse: P5-table
# from: SDM vol. 2, SBB
{T:(%rdi)}
sbb twin_stlb(%rcx), %rax
ret

### an entry added where it is to be subtracted
# refuse: P5-table
# from: contract P5
{T:(%rdi)}
add twin_stlb(%rcx), %rax
ret

### a translation subtracted where it is to be added
# refuse: P5-table
# from: contract P5
{T:(%rdi)}
sub twin_stlb+8(%rcx), %rax
ret

### an entry added in the flags' company
# refuse: P5-table
# from: SDM vol. 2, ADCX
{T:(%rdi)}
adcx twin_stlb+8(%rcx), %rax
ret

### an entry's bit
# refuse: P5-table
# from: SDM vol. 2, BT
{T:(%rdi)}
btq $3, twin_stlb(%rcx)
ret

### the table's address
# refuse: P5-table
# from: contract P5
{T:(%rdi)}
lea twin_stlb(%rcx), %rax
ret

### the table's address as a constant
# refuse: P2-relocation
# from: contract P5
mov $twin_stlb, %edi
ret

### the table's address as a constant of 64 bits
# refuse: P2-relocation
# from: contract P5
movabs $twin_stlb, %rdi
ret

### the table's address pushed
# refuse: P2-relocation
# from: SDM vol. 2, PUSH imm32
push $twin_stlb
pop %rax
ret

### the table compared with
# refuse: P2-relocation
# from: SDM vol. 2, CMP
cmp $twin_stlb, %rdi
ret

### a word of the table between two halves
# refuse: P2-relocation
# from: crates/abi, stlb
{T:(%rdi)}
sub twin_stlb+4(%rcx), %rax
ret

### the next entry
# refuse: P2-relocation
# from: crates/abi, stlb
{T:(%rdi)}
sub twin_stlb+16(%rcx), %rax
ret

### the entry before
# refuse: P2-relocation
# from: crates/abi, stlb
{T:(%rdi)}
sub twin_stlb-16(%rcx), %rax
ret

### far behind the table
# refuse: P2-relocation
# from: crates/abi, stlb
{T:(%rdi)}
add twin_stlb+0x10008(%rcx), %rax
ret

### an entry by a second register
# refuse: P5-table
# from: SDM vol. 1, 3.7.5
{T:(%rdi)}
add twin_stlb+8(%rcx,%rsi), %rax
ret

### an entry by a scaled register
# refuse: P1-address-form
# from: SDM vol. 1, 3.7.5
{T:(%rdi)}
add twin_stlb+8(,%rcx,2), %rax
ret

### an entry by the stack pointer
# refuse: P5-table
# from: SDM vol. 1, 3.7.5
add twin_stlb+8(%rsp), %rax
ret

### an entry by no register
# refuse: P1-address-form
# from: SDM vol. 1, 3.7.5
add twin_stlb+8, %rax
ret

### an entry by the instruction pointer
# refuse: P2-relocation
# from: SDM vol. 1, 3.7.5.1
add twin_stlb+8(%rip), %rax
ret

### an entry in 32 bits
# refuse: P5-table
# from: SDM vol. 1, 3.4.1.1
{T:(%rdi)}
add twin_stlb+8(%rcx), %eax
ret

### an entry by a 32-bit address
# refuse: P1-address-form
# from: SDM vol. 1, 3.7.5.1
{T:(%rdi)}
add twin_stlb+8(%ecx), %rax
ret

### an entry through gs
# refuse: P1-address-form
# from: SDM vol. 1, 3.4.4.1
{T:(%rdi)}
add %gs:twin_stlb+8(%rcx), %rax
ret

### the table called
# refuse: P2-relocation
# from: contract P2
call twin_stlb
ret

### the table defined by the object
# refuse: object-symbol
# from: crates/abi, names
ret
.globl twin_stlb
.type twin_stlb, @function
twin_stlb: ret

### a word of another scheme's check
# refuse: P5-table
# from: contract P5
lea (%rdi), %rcx
mov %rcx, %rax
and $-4096, %rcx
mov %rcx, %rdx
and $0xfff000, %rcx
shr $8, %rcx
cmp twin_stlb(%rcx), %rdx
ret

### a word of another scheme's check, the other way round
# refuse: P5-table
# scheme: paper
# from: contract P5
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
ret
