/* A base that was cut, and is not any more: by what writes a part of it, what may write it, what
   enters in between, and what the mask is taken for. */

### a sum that an exchanging addition left
# refuse: P1-operand
# from: SDM vol. 2, XADD
pext twin_window_mask(%rip), %rdi, %rax
xadd %rsi, %rax
mov %gs:(%rax), %ecx
ret

### the register that an exchanging addition gives the cut base
# refuse: P1-operand
# from: SDM vol. 2, XADD: it is a place, and not followed
pext twin_window_mask(%rip), %rdi, %rax
xadd %rax, %rsi
mov %gs:(%rax), %ecx
ret

### 16 bits of it written
# refuse: P1-operand
# from: SDM vol. 1, 3.4.1.1
pext twin_window_mask(%rip), %rdi, %rax
mov %si, %ax
mov %gs:(%rax), %ecx
ret

### its second byte written
# refuse: P1-operand
# from: SDM vol. 1, 3.4.1
pext twin_window_mask(%rip), %rdi, %rax
mov %cl, %ah
mov %gs:(%rax), %ecx
ret

### a byte of it set by a condition
# refuse: P1-operand
# from: SDM vol. 2, SETcc
pext twin_window_mask(%rip), %rdi, %rax
setc %al
mov %gs:(%rax), %ecx
ret

### the flags loaded into it
# refuse: P1-operand
# from: SDM vol. 2, LAHF
pext twin_window_mask(%rip), %rdi, %rax
lahf
mov %gs:(%rax), %ecx
ret

### a bit above the window set
# refuse: P1-operand
# from: SDM vol. 2, BTS
pext twin_window_mask(%rip), %rdi, %rax
bts $42, %rax
mov %gs:(%rax), %ecx
ret

### its bytes turned round
# refuse: P1-operand
# from: SDM vol. 2, BSWAP
pext twin_window_mask(%rip), %rdi, %rax
bswap %rax
mov %gs:(%rax), %ecx
ret

### a carry turned into it
# refuse: P1-operand
# from: SDM vol. 2, RCR
pext twin_window_mask(%rip), %rdi, %rax
rcr $1, %rax
mov %gs:(%rax), %ecx
ret

### a borrow subtracted from it
# refuse: P1-operand
# from: SDM vol. 2, SBB
pext twin_window_mask(%rip), %rdi, %rax
sbb $0, %rax
mov %gs:(%rax), %ecx
ret

### one less
# refuse: P1-operand
# from: SDM vol. 2, DEC
pext twin_window_mask(%rip), %rdi, %rax
dec %rax
mov %gs:(%rax), %ecx
ret

### one less in its low half alone, which clears the rest
# accept
# from: SDM vol. 1, 3.4.1.1
pext twin_window_mask(%rip), %rdi, %rax
dec %eax
mov %gs:(%rax), %ecx
ret

### its low half extended by the sign
# refuse: P1-operand
# from: SDM vol. 2, CDQE
mov %edi, %eax
cdqe
mov %gs:(%rax), %ecx
ret

### the same into another register
# refuse: P1-operand
# from: SDM vol. 2, MOVSXD
mov %edi, %eax
movslq %eax, %rax
mov %gs:(%rax), %ecx
ret

### a conditional move of 32 bits from a cut register
# refuse: P1-operand
# from: SDM vol. 2, CMOVcc: not in the list of what clears the upper half
pext twin_window_mask(%rip), %rdi, %rcx
cmove %ecx, %eax
mov %gs:(%rax), %ecx
ret

### the larger of two by a condition that the verifier follows for counts
# refuse: P1-operand
# from: docs/proof/hypervisor.md
pext twin_window_mask(%rip), %rdi, %rax
cmp %rsi, %rax
cmova %rsi, %rax
mov %gs:(%rax), %ecx
ret

### exchanged by a comparison
# refuse: P1-operand
# from: SDM vol. 2, CMPXCHG
pext twin_window_mask(%rip), %rdi, %rcx
cmpxchg %rsi, %rcx
mov %gs:(%rcx), %ecx
ret

### the accumulator, which a comparison of memory may load
# refuse: P1-operand
# from: SDM vol. 2, CMPXCHG
pext twin_window_mask(%rip), %rdi, %rax
lock cmpxchg %rcx, %gs:(%rax)
mov %gs:(%rax), %ecx
ret

### the other half that a comparison of 16 bytes loads
# refuse: P1-operand
# from: SDM vol. 2, CMPXCHG16B
pext twin_window_mask(%rip), %rdi, %rdx
lock cmpxchg16b %gs:(%rdx)
mov %gs:(%rdx), %ecx
ret

### the upper half of a product
# refuse: P1-operand
# from: SDM vol. 2, MUL
pext twin_window_mask(%rip), %rdi, %rdx
mul %rsi
mov %gs:(%rdx), %ecx
ret

### both results of a product without flags
# refuse: P1-operand
# from: SDM vol. 2, MULX
pext twin_window_mask(%rip), %rdi, %rax
mulx %rsi, %rax, %rcx
mov %gs:(%rax), %ecx
ret

### the clock's halves
# refuse: P1-operand
# from: SDM vol. 2, RDTSC
pext twin_window_mask(%rip), %rdi, %rdx
rdtsc
mov %gs:(%rdx), %ecx
ret

### the processor's number in rcx
# refuse: P1-operand
# from: SDM vol. 2, RDTSCP
pext twin_window_mask(%rip), %rdi, %rcx
rdtscp
mov %gs:(%rcx), %ecx
ret

### the index that a comparison of strings in vectors leaves
# refuse: P1-operand
# from: SDM vol. 2, PCMPISTRI: ecx with VEX.W, rcx too
pext twin_window_mask(%rip), %rdi, %rcx
pcmpistri $0, %xmm0, %xmm1
mov %gs:(%rcx), %ecx
ret

### a counter
# refuse: P1-operand
# from: SDM vol. 2, LOOP: zero less one
pext twin_window_mask(%rip), %rdi, %rcx
loop 1f
1: mov %gs:(%rcx), %ecx
ret

### a string's counter
# refuse: P1-operand
# from: SDM vol. 2, REP
movabs $twin_window, %rdx
pext twin_window_mask(%rip), %rsi, %rcx
mov %edi, %edi
lea (%rdi,%rdx), %rdi
rep stosb
mov %gs:(%rcx), %eax
ret

### the elements that a string is loaded from
# refuse: P1-operand
# from: SDM vol. 2, LODS
movabs $twin_window, %rdx
pext twin_window_mask(%rip), %rdi, %rax
mov %esi, %esi
lea (%rsi,%rdx), %rsi
lodsq
mov %gs:(%rax), %eax
ret

### bits extracted by a length that would be right
# refuse: P1-operand
# from: SDM vol. 2, BZHI: not followed
mov $42, %eax
bzhi %rax, %rdi, %rdi
mov %gs:(%rdi), %eax
ret

### bits deposited through a place
# refuse: P1-operand
# from: SDM vol. 2, PDEP
mov twin_window_mask(%rip), %rax
pdep %rax, %rdi, %rax
mov %gs:(%rax), %eax
ret

### the mask shifted by a register without flags
# refuse: P1-operand
# from: SDM vol. 2, SHLX
mov twin_window_mask(%rip), %rax
shlx %rsi, %rax, %rax
mov %gs:(%rax), %eax
ret

### the mask turned on the way from memory
# refuse: P1-operand
# from: SDM vol. 2, RORX: an immediate follows the displacement, so the relocation counts from another end
1: rorx $22, 0x1000(%rip), %rax
.reloc 1b+5, R_X86_64_PC32, twin_window_mask-4
mov %gs:(%rax), %eax
ret

### the mask multiplied on the way from memory
# refuse: P1-operand
# from: SDM vol. 2, IMUL
1: imulq $0x1234567, 0x1000(%rip), %rax
.reloc 1b+3, R_X86_64_PC32, twin_window_mask-4
mov %gs:(%rax), %eax
ret

### the mask by another order of bytes
# refuse: P1-operand
# from: SDM vol. 2, MOVBE
movbe twin_window_mask(%rip), %rax
mov %gs:(%rax), %eax
ret

### the mask pushed
# refuse: P1-operand
# from: SDM vol. 2, PUSH
push twin_window_mask(%rip)
pop %rax
mov %gs:(%rax), %eax
ret

### the mask exchanged
# refuse: P1-operand
# from: SDM vol. 2, XCHG: it writes the mask
xchg %rdi, twin_window_mask(%rip)
ret

### the mask popped to
# refuse: P1-operand
# from: SDM vol. 2, POP
push %rdi
pop twin_window_mask(%rip)
ret

### the mask in a vector
# refuse: P1-operand
# from: SDM vol. 2, MOVQ
movq twin_window_mask(%rip), %xmm0
ret

### the mask called
# refuse: P2-relocation
# from: SDM vol. 2, CALL
call twin_window_mask
ret

### the mask's distance where the operand is at that number
# refuse: P1-operand
# from: psABI 4.4: the relocation does not say what the operand counts from
1: pext 0x1000, %rdi, %rax
.reloc 1b+6, R_X86_64_PC32, twin_window_mask-4
mov %gs:(%rax), %eax
ret

### the mask's distance where the operand has a base
# refuse: P1-operand
# from: psABI 4.4
1: mov 0x12345678(%rsi), %rax
.reloc 1b+3, R_X86_64_PC32, twin_window_mask-4
mov %gs:(%rax), %eax
ret

### the mask's distance in an operand of the window
# refuse: P1-operand
# from: psABI 4.4
1: mov %gs:0x12345678(%eax), %rax
.reloc 1b+5, R_X86_64_PC32, twin_window_mask-4
mov %gs:(%rax), %eax
ret

### the mask's distance, of the type for calls
# refuse: P2-relocation
# from: psABI 4.4
1: mov 0x1000(%rip), %rax
.reloc 1b+3, R_X86_64_PLT32, twin_window_mask-4
ret

### the mask through a table that a linker makes
# refuse: P2-relocation
# from: psABI 4.4, GOTPCREL
mov twin_window_mask@GOTPCREL(%rip), %rax
ret

### the mask's relocation and one more in the same field
# refuse: P2-relocation
# from: gABI chapter 4
1: mov 0x1000(%rip), %rax
.reloc 1b+3, R_X86_64_PC32, twin_window_mask-4
.reloc 1b+3, R_X86_64_PC32, twin_lowest-4
ret

### a bound for the mask
# refuse: P1-operand
# from: docs/spec/window.md
and twin_highest(%rip), %rdi
mov %gs:(%rdi), %eax
ret

### a mask that may stay zero or go anywhere: weak
# refuse: P2-relocation
# from: gABI chapter 4
.weak twin_window_mask
and twin_window_mask(%rip), %rdi
mov %gs:(%rdi), %eax
ret

### a mask of the object's own, for others to see
# refuse: object-symbol
# from: docs/spec/object.md
and twin_window_mask(%rip), %rdi
mov %gs:(%rdi), %eax
ret
.globl twin_window_mask
twin_window_mask: .quad 0x9090909090909090
ret

### the same instruction with the mask and without, after one another
# refuse: P1-operand
# from: crates/svm-verify, decode/memo.rs: equal bytes are judged once
1: mov 0x0(%rip), %rax
.reloc 1b+3, R_X86_64_PC32, twin_window_mask-4
mov 0x0(%rip), %rax
mov %gs:(%rax), %eax
ret
.fill 16, 1, 0x90

### the same, the operand without the mask first
# refuse: P1-operand
# from: crates/svm-verify, decode/memo.rs
mov 0x0(%rip), %rax
1: mov 0x0(%rip), %rax
.reloc 1b+3, R_X86_64_PC32, twin_window_mask-4
mov %gs:(%rax), %eax
ret
.fill 16, 1, 0x90

### a constant that a relocation makes a pointer
# refuse: P1-operand
# from: psABI 4.4: zero in the file
mov $"twin_vm:jiffies", %rdi
mov %gs:(%rdi), %eax
ret

### a mask of zero bits that a relocation makes another
# refuse: P1-operand
# from: psABI 4.4
and $"twin_vm:jiffies", %rdi
mov %gs:(%rdi), %eax
ret

### a constant that is extended by its sign
# refuse: P1-operand
# from: SDM vol. 2, MOV
mov $-1, %rdi
mov %gs:(%rdi), %eax
ret

### anded with a constant that is extended by its sign
# refuse: P1-operand
# from: SDM vol. 2, AND
and $-64, %rdi
mov %gs:(%rdi), %eax
ret

### a small constant
# accept
# from: docs/proof/window.md
mov $200, %edi
mov %gs:(%rdi), %eax
and $63, %rsi
mov %gs:(%rsi), %eax
ret

### a name that others see, between the cut and the access
# refuse: P1-operand
# from: svm_verify::is_entry
pext twin_window_mask(%rip), %rdi, %rax
.globl g
g: mov %gs:(%rax), %eax
ret

### a function's symbol between them
# refuse: P1-operand
# from: svm_verify::is_entry
pext twin_window_mask(%rip), %rdi, %rax
.type g, @function
g: mov %gs:(%rax), %eax
ret

### an entry of the codemap between them
# refuse: P1-operand
# from: contract P2
pext twin_window_mask(%rip), %rdi, %rax
g: mov %gs:(%rax), %eax
ret
.section .twin.codemap,"a",@progbits
.quad "twin_vm:.text", g

### a call from the own code between them
# refuse: P1-operand
# from: contract P2
push %rbx
call 1f
pop %rbx
pext twin_window_mask(%rip), %rdi, %rax
1: mov %gs:(%rax), %eax
ret

### a function that calls itself between them
# refuse: P1-operand
# from: psABI 3.2.1
push %rbx
pext twin_window_mask(%rip), %rdi, %rbx
test %esi, %esi
je 1f
call f
1: mov %gs:(%rbx), %eax
pop %rbx
ret

### two registers that change their places on one path
# refuse: P1-operand
# from: joins
pext twin_window_mask(%rip), %rdi, %rax
mov %rsi, %rcx
test %esi, %esi
je 1f
mov %rax, %rdx
mov %rcx, %rax
mov %rdx, %rcx
1: mov %gs:(%rax), %edx
ret

### a place on one path, a window pointer on the other
# refuse: P1-operand
# from: joins
movabs $twin_window, %rdx
pext twin_window_mask(%rip), %rdi, %rax
test %esi, %esi
je 1f
lea (%rax,%rdx), %rax
1: mov %gs:(%rax), %edx
ret

### a window pointer as base: the start twice
# refuse: P1-operand
# from: docs/proof/window.md
movabs $twin_window, %rdx
pext twin_window_mask(%rip), %rdi, %rax
lea (%rax,%rdx), %rax
mov %gs:(%rax), %edx
ret

### the start as base
# refuse: P1-operand
# from: docs/proof/window.md
movabs $twin_window, %rdx
mov %gs:(%rdx), %edx
ret

### a loop that grows its place by lea, round after round
# refuse: P1-operand
# from: joins
pext twin_window_mask(%rip), %rdi, %rax
1: mov %gs:(%rax), %ecx
lea 0x7fffffff(%rax), %rax
test %ecx, %ecx
jne 1b
ret

### a loop that grows it in its low half: a low half and a cut base that meet are not followed
# refuse: P1-operand
# from: joins
pext twin_window_mask(%rip), %rdi, %rax
1: mov %gs:(%rax), %ecx
add $0x7fffffff, %eax
test %ecx, %ecx
jne 1b
ret

### a loop that grows a low half
# accept
# from: SDM vol. 1, 3.4.1.1
mov %edi, %eax
1: mov %gs:(%rax), %ecx
add $0x7fffffff, %eax
test %ecx, %ecx
jne 1b
ret

### a loop that cuts what it has grown
# accept
# from: docs/spec/window.md
1: and twin_window_mask(%rip), %rdi
mov %gs:(%rdi), %ecx
add $0x7fffffff, %rdi
test %ecx, %ecx
jne 1b
ret

### over a port that is written, which keeps it
# accept
# from: crates/abi, PORT_OUT
push %rbx
pext twin_window_mask(%rip), %rdi, %rdi
call twin_out8
mov %gs:(%rdi), %eax
pop %rbx
ret

### over a port that is read into it
# refuse: P1-operand
# from: crates/abi, PORT_IN: twin_in8 keeps the rest of rax, but nothing follows it
push %rbx
pext twin_window_mask(%rip), %rdi, %rax
call twin_in8
mov %gs:(%rax), %eax
pop %rbx
ret

### over a call through the call table
# refuse: P1-operand
# from: crates/abi, CALL: it keeps registers, but who is called does not
push %rbx
mov %rdi, %r11
pext twin_window_mask(%rip), %rsi, %rbx
call twin_stlb_call
mov %gs:(%rbx), %eax
pop %rbx
ret

### the stack moved by a place
# refuse: P4-rsp
# from: contract P4
pext twin_window_mask(%rip), %rdi, %rax
lea (%rsp,%rax), %rsp
ret

### the stack put at a window pointer
# refuse: P4-rsp
# from: contract P4
movabs $twin_window, %rdx
pext twin_window_mask(%rip), %rdi, %rdi
lea (%rdi,%rdx), %rsp
ret

### the stack chosen by a condition
# refuse: P4-rsp
# from: contract P4
pext twin_window_mask(%rip), %rdi, %rax
cmova %rax, %rsp
ret

### a word of the frame read at a place
# refuse: P1-operand
# from: docs/proof/window.md
pext twin_window_mask(%rip), %rdi, %rax
mov (%rsp,%rax), %rax
ret

### popped to its own new base
# accept
# from: SDM vol. 2, POP: the address is of the base before
push %rdi
pext twin_window_mask(%rip), %rdi, %rax
popq %gs:8(%rax)
ret

### pushed from a base that is not cut
# refuse: P1-operand
# from: SDM vol. 2, PUSH
push %gs:8(%rdi)
pop %rax
ret

### popped to a base that is not cut
# refuse: P1-operand
# from: SDM vol. 2, POP
push %rdi
popq %gs:8(%rdi)
ret

### a 32-bit base with a 64-bit index has no encoding; 64 bits of both have
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov %edi, %edi
mov %esi, %esi
mov %gs:(%rdi,%rsi), %eax
ret

### the same with prefix 67, which cuts the sum
# accept
# from: SDM vol. 1, 3.7.5
mov %gs:(%edi,%esi), %eax
ret

### half an address as a displacement without prefix 67
# refuse: P2-relocation
# from: psABI 4.4: R_X86_64_32 is not extended by its sign, the operand's displacement is
pext twin_window_mask(%rip), %rdi, %rax
1: mov %gs:0x12345678(%rax), %eax
.reloc 1b+3, R_X86_64_32, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### a distance as a displacement of a place
# refuse: P2-relocation
# from: psABI 4.4
pext twin_window_mask(%rip), %rdi, %rax
1: mov %gs:0x12345678(%rax), %eax
.reloc 1b+3, R_X86_64_PC32, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### a whole address extended by its sign, with prefix 67
# refuse: P2-relocation
# from: psABI 4.4
1: mov %gs:0x12345678(%eax), %eax
.reloc 1b+4, R_X86_64_32S, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90
