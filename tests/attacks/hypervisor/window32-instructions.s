### a locked exchange
# accept
# from: SDM vol. 2, CMPXCHG
lock cmpxchg %rcx, %gs:(%edi); ret

### a locked exchange without prefix 67
# refuse: P1-operand
# from: SDM vol. 2, CMPXCHG
lock cmpxchg %rcx, %gs:(%rdi); ret

### locked twice
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
.byte 0xf0, 0x65, 0xf0, 0x67, 0x83, 0x07, 0x01
ret

### lock elision
# refuse: P3-prefix
# from: SDM vol. 1, 16.3.1
.byte 0xf2, 0xf0, 0x65, 0x67, 0x83, 0x07, 0x01
ret

### sixteen bytes exchanged
# accept
# from: SDM vol. 2, CMPXCHG16B
lock cmpxchg16b %gs:(%edi); ret

### sixteen bytes exchanged without prefix 65
# refuse: P1-operand
# from: SDM vol. 2, CMPXCHG16B
lock cmpxchg16b (%edi); ret

### eight bytes exchanged without prefixes
# refuse: P1-operand
# from: SDM vol. 2, CMPXCHG8B
lock cmpxchg8b (%rdi); ret

### a bit by a register
# refuse: P1-bit-offset
# from: SDM vol. 2, BT
bts %rsi, %gs:(%edi); ret

### a bit by a register without prefix 67
# refuse: P1-operand
# from: SDM vol. 2, BT
bts %rsi, %gs:(%rdi); ret

### a bit by a register without prefix 65
# refuse: P1-operand
# from: SDM vol. 2, BT
bts %rsi, (%edi); ret

### a masked bit without prefixes
# refuse: P1-operand
# from: SDM vol. 2, BT
and $63, %esi; bts %rsi, (%rdi); ret

### a push from memory
# accept
# from: SDM vol. 2, PUSH
pushq %gs:8(%edi); pop %rax; ret

### a push from memory without prefix 67
# refuse: P1-operand
# from: SDM vol. 2, PUSH
pushq %gs:8(%rdi); pop %rax; ret

### a push from memory without prefixes
# refuse: P1-operand
# from: SDM vol. 2, PUSH
pushq 8(%rdi); pop %rax; ret

### a push from the control stack
# refuse: P1-operand
# from: SDM vol. 2, PUSH
pushq (%rsp); pop %rax; ret

### a pop to memory
# accept
# from: SDM vol. 2, POP
push %rax; popq %gs:8(%edi); ret

### a pop to memory without prefix 65
# refuse: P1-operand
# from: SDM vol. 2, POP
push %rax; popq 8(%edi); ret

### a pop to memory without prefixes
# refuse: P1-operand
# from: SDM vol. 2, POP
push %rax; popq 8(%rdi); ret

### a pop to the return word
# refuse: P1-operand
# from: SDM vol. 2, POP
push %rax; popq (%rsp); ret

### a pop to memory of 16 bits
# refuse: P3-instruction
# from: SDM vol. 2, POP
push %rax; popw %gs:8(%edi); ret

### prefix 67 on a push
# refuse: P1-address-form
# from: SDM vol. 2, PUSH
.byte 0x67, 0x50
pop %rax; ret

### prefix 65 on a pop
# refuse: P1-address-form
# from: SDM vol. 2, POP
push %rax
.byte 0x65, 0x58
ret

### both prefixes on a push of a register
# refuse: P1-address-form
# from: SDM vol. 2, PUSH
.byte 0x65, 0x67, 0x50
pop %rax; ret

### a register that was in the list by its ModRM form, prefixed
# refuse: P1-address-form
# from: SDM vol. 2, PUSH
.byte 0x65, 0x67, 0xff, 0xf0
pop %rax; ret

### both prefixes on operands that are registers
# refuse: P1-address-form
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0x67, 0x89, 0xc8
ret

### a vector
# accept
# from: SDM vol. 2, MOVDQU
movdqu %gs:(%edi), %xmm0; movdqu %xmm0, %gs:16(%edi); ret

### a vector without prefix 67
# refuse: P1-operand
# from: SDM vol. 2, MOVDQU
movdqu %gs:(%rdi), %xmm0; ret

### a wider vector
# accept
# from: SDM vol. 2, VMOVDQU
vmovdqu %gs:(%edi), %ymm9; ret

### a wider vector without prefix 65
# refuse: P1-operand
# from: SDM vol. 2, VMOVDQU
vmovdqu (%edi), %ymm9; ret

### the widest vector
# accept
# from: SDM vol. 2, VMOVDQU64
vmovdqu64 %gs:64(%edi), %zmm3; ret

### the widest vector without prefix 67
# refuse: P1-operand
# from: SDM vol. 2, VMOVDQU64
vmovdqu64 %gs:64(%rdi), %zmm3; ret

### the widest vector under a mask
# refuse: P3-instruction
# from: SDM vol. 2, VMOVDQU64
vmovdqu64 %gs:64(%edi), %zmm3{%k1}; ret

### a prefix between REX and VEX
# refuse: P3-undecodable
# from: SDM vol. 2, 2.3.3
.byte 0x65, 0x67, 0x48, 0xc5, 0xfe, 0x6f, 0x07
ret

### a gather
# refuse: P3-instruction
# from: SDM vol. 2, VPGATHERDD
vpgatherdd %ymm0, %gs:(%edi,%ymm1,1), %ymm2; ret

### a scatter
# refuse: P3-instruction
# from: SDM vol. 2, VPSCATTERDD
vpscatterdd %zmm2, %gs:(%edi,%zmm1,1){%k1}; ret

### a table lookup by al
# refuse: P3-instruction
# from: SDM vol. 2, XLAT
.byte 0x65, 0x67, 0xd7
ret

### bytes stored under a mask, at edi
# refuse: P3-instruction
# from: SDM vol. 2, MASKMOVDQU
.byte 0x65, 0x67, 0x66, 0x0f, 0xf7, 0xc1
ret

### a masked store of AVX
# refuse: P3-instruction
# from: SDM vol. 2, VMASKMOV
vmaskmovps %ymm0, %ymm1, %gs:(%edi); ret

### a nested frame
# refuse: P3-instruction
# from: SDM vol. 2, ENTER
enter $16, $1; ret

### the state of x87 and SSE
# refuse: P3-instruction
# from: SDM vol. 2, FXSAVE
fxsave %gs:(%edi); ret

### the extended state
# refuse: P3-instruction
# from: SDM vol. 2, XSAVE
xsave %gs:(%edi); ret

### the extended state loaded
# refuse: P3-instruction
# from: SDM vol. 2, XRSTOR
xrstor %gs:(%edi); ret

### 64 bytes to an address in a register operand
# refuse: P3-instruction
# from: SDM vol. 2, MOVDIR64B
.byte 0x65, 0x67, 0x66, 0x0f, 0x38, 0xf8, 0x07
ret

### a cache line zeroed
# refuse: P3-instruction
# from: APM vol. 3, CLZERO
.byte 0x65, 0x67, 0x0f, 0x01, 0xfc
ret

### a cache line written back
# refuse: P3-instruction
# from: SDM vol. 2, CLFLUSH
clflush %gs:(%edi); ret

### ten bytes of x87
# refuse: P3-instruction
# from: SDM vol. 2, FLD
fldt %gs:(%edi); ret

### the control word of SSE
# refuse: P3-instruction
# from: SDM vol. 2, LDMXCSR
ldmxcsr %gs:(%edi); ret

### a prefetch
# accept
# from: SDM vol. 2, PREFETCH
prefetcht0 %gs:(%edi); ret

### a prefetch without prefixes
# refuse: P1-operand
# from: SDM vol. 2, PREFETCH
prefetcht0 (%rdi); ret

### a prefetch without prefix 67
# refuse: P1-operand
# from: SDM vol. 2, PREFETCH
prefetcht0 %gs:(%rdi); ret

### an address computed
# accept
# from: SDM vol. 2, LEA
lea 8(%rdi,%rcx,4), %rax; ret

### an address of 32 bits computed
# accept
# from: SDM vol. 2, LEA
lea 8(%edi,%ecx,4), %rax; ret

### an address computed, with a segment
# refuse: P1-address-form
# from: SDM vol. 2, LEA
.byte 0x65, 0x48, 0x8d, 0x47, 0x08
ret

### an address computed, with both prefixes
# refuse: P1-address-form
# from: SDM vol. 2, LEA
.byte 0x65, 0x67, 0x48, 0x8d, 0x47, 0x08
ret

### the address of code computed
# refuse: P1-address-form
# from: SDM vol. 2, LEA
lea f(%rip), %rax; ret

### a long nop
# accept
# from: SDM vol. 2, NOP
nopw %cs:0x100(%rax,%rax,1); ret

### a long nop with prefix 65
# refuse: P1-address-form
# from: SDM vol. 2, NOP
.byte 0x65, 0x0f, 0x1f, 0x00
ret

### a long nop with both prefixes
# refuse: P1-address-form
# from: SDM vol. 2, NOP
.byte 0x65, 0x67, 0x0f, 0x1f, 0x00
ret

### prefix 67 on loop
# refuse: P3-instruction
# from: SDM vol. 2, LOOP
1: .byte 0x67, 0xe2, 0xfd
ret

### prefix 67 on jrcxz
# refuse: P3-instruction
# from: SDM vol. 2, Jcc
.byte 0x67, 0xe3, 0x00
ret

### prefix 67 on a call
# refuse: P1-address-form
# from: SDM vol. 2, 2.1.1
.byte 0x67, 0xe8, 0x00, 0x00, 0x00, 0x00
ret

### prefix 67 on a return
# refuse: P1-address-form
# from: SDM vol. 2, 2.1.1
.byte 0x67, 0xc3

### prefix 65 on a return
# refuse: P1-address-form
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0xc3

### prefix 65 on a branch
# refuse: P1-address-form
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0x74, 0x00
ret

### a string from a port
# refuse: P3-instruction
# from: SDM vol. 2, INS
insb; ret

### a string to a port
# refuse: P3-instruction
# from: SDM vol. 2, OUTS
outsb; ret

### the context's segment base
# accept
# from: docs/spec/window.md
mov %rsp, %rax; or $0xffff, %rax; mov -0x1ff7(%rax), %rax; mov %gs:0x28(%eax), %rax; ret

### the context's other segment base
# accept
# from: docs/spec/window.md
mov %rsp, %rax; or $0xffff, %rax; mov -0x1fff(%rax), %rax; ret

### the context's next word
# refuse: P1-context
# from: docs/spec/window.md
mov %rsp, %rax; or $0xffff, %rax; mov -0xfef(%rax), %rax; ret

### half of a segment base
# refuse: P1-context
# from: docs/spec/window.md
mov %rsp, %rax; or $0xffff, %rax; mov -0x1ff7(%rax), %eax; ret

### a segment base written
# refuse: P1-context
# from: docs/spec/window.md
mov %rsp, %rax; or $0xffff, %rax; mov %rdi, -0x1ff7(%rax); ret

### the context with an index
# refuse: P1-context
# from: docs/spec/window.md
mov %rsp, %rax; or $0xffff, %rax; mov -0x1ff7(%rax,%rsi), %rax; ret

### the context through gs
# refuse: P1-operand
# from: docs/spec/window.md
mov %rsp, %rax; or $0xffff, %rax; mov %gs:-0x1ff7(%rax), %rax; ret

### the context's low half, in the window
# accept
# from: docs/spec/window.md
mov %rsp, %rax; or $0xffff, %rax; mov %gs:-0x1ff7(%eax), %rax; ret

### the context from a mask of another size
# refuse: P1-operand
# from: docs/spec/window.md
mov %rsp, %rax; or $0xfffff, %rax; mov -0x1ff7(%rax), %rax; ret

### the context from the low half of rsp
# refuse: P1-operand
# from: docs/spec/window.md
mov %esp, %eax; or $0xffff, %eax; mov -0x1ff7(%rax), %rax; ret

### the context after a call
# refuse: P1-operand
# from: docs/spec/window.md
push %rbx; mov %rsp, %rbx; or $0xffff, %rbx; call imported; mov -0x1ff7(%rbx), %rax; pop %rbx; ret
