### base, index and displacement
# accept
# from: SDM vol. 1, 3.7.5
mov %gs:8(%edi,%ecx,4), %eax; ret

### the same without prefix 65
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov 8(%edi,%ecx,4), %eax; ret

### the same without prefix 67
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov %gs:8(%rdi,%rcx,4), %eax; ret

### the same without both
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov 8(%rdi,%rcx,4), %eax; ret

### another segment
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov %fs:8(%edi,%ecx,4), %eax; ret

### a segment that means nothing
# refuse: P1-operand
# from: SDM vol. 1, 3.7.4
.byte 0x3e, 0x67, 0x8b, 0x47, 0x08
ret

### the code segment in its place
# refuse: P1-operand
# from: SDM vol. 1, 3.7.4
.byte 0x2e, 0x67, 0x8b, 0x47, 0x08
ret

### the prefixes in the other order
# accept
# from: SDM vol. 2, 2.1.1
.byte 0x67, 0x65, 0x8b, 0x47, 0x08
ret

### prefix 65 twice
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0x65, 0x67, 0x8b, 0x47, 0x08
ret

### prefix 67 twice
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0x67, 0x67, 0x8b, 0x47, 0x08
ret

### prefix 67 on both sides
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
.byte 0x67, 0x65, 0x67, 0x8b, 0x47, 0x08
ret

### prefix 65 on both sides
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0x67, 0x65, 0x8b, 0x47, 0x08
ret

### fs, and then gs
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
.byte 0x64, 0x65, 0x67, 0x8b, 0x47, 0x08
ret

### gs, and then fs
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0x64, 0x67, 0x8b, 0x47, 0x08
ret

### gs, and then a segment that means nothing
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0x3e, 0x67, 0x8b, 0x47, 0x08
ret

### a segment that means nothing, and then gs
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
.byte 0x2e, 0x65, 0x67, 0x8b, 0x47, 0x08
ret

### a segment that means nothing, and both behind it
# refuse: P1-operand
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0x67, 0x36, 0x8b, 0x47, 0x08
ret

### a REX prefix before both
# refuse: P3-prefix
# from: SDM vol. 2, 2.2.1
.byte 0x48, 0x65, 0x67, 0x8b, 0x47, 0x08
ret

### a REX prefix between them
# refuse: P3-prefix
# from: SDM vol. 2, 2.2.1
.byte 0x65, 0x48, 0x67, 0x8b, 0x47, 0x08
ret

### a REX prefix where it belongs
# accept
# from: SDM vol. 2, 2.2.1
.byte 0x65, 0x67, 0x48, 0x8b, 0x47, 0x08
ret

### two REX prefixes
# refuse: P3-prefix
# from: SDM vol. 2, 2.2.1
.byte 0x65, 0x67, 0x48, 0x48, 0x8b, 0x47, 0x08
ret

### 16 bits
# accept
# from: SDM vol. 2, 2.1.1
.byte 0x66, 0x65, 0x67, 0x8b, 0x47, 0x08
ret

### 16 bits, the prefix between
# accept
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0x66, 0x67, 0x8b, 0x47, 0x08
ret

### 16 bits twice
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
.byte 0x66, 0x65, 0x66, 0x67, 0x8b, 0x47, 0x08
ret

### repeated
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
.byte 0xf3, 0x65, 0x67, 0x8b, 0x47, 0x08
ret

### repeated while unequal
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
.byte 0x65, 0x67, 0xf2, 0x8b, 0x47, 0x08
ret

### more than fifteen bytes
# refuse: P3-undecodable
# from: SDM vol. 2, 2.3.11
.byte 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x65, 0x67, 0x8b, 0x87, 0x00, 0x00, 0x00, 0x00
ret

### relative to rip
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov %gs:8(%rip), %eax; ret

### relative to eip
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov %gs:8(%eip), %eax; ret

### relative to rip without prefixes
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov 8(%rip), %eax; ret

### no register
# accept
# from: SDM vol. 1, 3.7.5
addr32 mov %gs:0x12345678, %ecx; ret

### no register and no prefix 67
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
.byte 0x65, 0x8b, 0x04, 0x25, 0x78, 0x56, 0x34, 0x12
ret

### no register, no prefix 67, extended by its sign
# refuse: P1-operand
# from: design of the window: the absolute form
.byte 0x65, 0x8b, 0x04, 0x25, 0x00, 0x00, 0x00, 0x80
ret

### no register and no prefix 65
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
addr32 mov 0x12345678, %ecx; ret

### no register and no prefix
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
.byte 0x8b, 0x04, 0x25, 0x78, 0x56, 0x34, 0x12
ret

### an index alone
# accept
# from: SDM vol. 1, 3.7.5
mov %gs:0x10(,%ecx,8), %eax; ret

### an index alone, of 64 bits
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov %gs:0x10(,%rcx,8), %eax; ret

### the highest displacement
# accept
# from: SDM vol. 1, 3.7.5
mov %gs:0x7fffffff(%edi,%ecx,8), %rax; ret

### the lowest displacement
# accept
# from: SDM vol. 1, 3.7.5
mov %gs:-0x80000000(%edi,%ecx,8), %rax; ret

### registers that REX names
# accept
# from: SDM vol. 1, 3.7.5
mov %gs:(%r8d,%r15d,2), %r9; ret

### the same of 64 bits
# refuse: P1-operand
# from: SDM vol. 1, 3.7.5
mov %gs:(%r8,%r15,2), %r9; ret

### an address in an immediate, loaded
# refuse: P1-operand
# from: SDM vol. 2, MOV (moffs)
.byte 0x65, 0x67, 0xa1, 0x78, 0x56, 0x34, 0x12
ret

### an address in an immediate, stored
# refuse: P1-operand
# from: SDM vol. 2, MOV (moffs)
.byte 0x65, 0x67, 0xa3, 0x78, 0x56, 0x34, 0x12
ret

### a byte at an address in an immediate
# refuse: P1-operand
# from: SDM vol. 2, MOV (moffs)
.byte 0x65, 0x67, 0xa0, 0x78, 0x56, 0x34, 0x12
ret

### an address of 64 bits in an immediate
# refuse: P1-operand
# from: SDM vol. 2, MOV (moffs)
.byte 0x65, 0x48, 0xa1, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff
ret

### the same without a segment
# refuse: P1-operand
# from: SDM vol. 2, MOV (moffs)
.byte 0x48, 0xa3, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff
ret

### the data stack
# accept
# from: docs/spec/window.md
mov %gs:-8(%esp), %rax; mov %rax, %gs:8(%esp); ret

### the control stack read
# refuse: P1-operand
# from: docs/spec/window.md
mov 8(%rsp), %rax; ret

### the control stack written
# refuse: P1-operand
# from: docs/spec/window.md
mov %rax, (%rsp); ret

### the control stack written in the own frame
# refuse: P1-operand
# from: docs/spec/window.md
sub $16, %rsp; mov %rax, 8(%rsp); add $16, %rsp; ret

### the control stack through gs without prefix 67
# refuse: P1-operand
# from: docs/spec/window.md
mov %rax, %gs:(%rsp); ret

### the control stack through a copy of rsp
# refuse: P1-operand
# from: docs/spec/window.md
mov %rsp, %rdi; mov %rax, (%rdi); ret

### the low half of a copy of rsp
# accept
# from: docs/spec/window.md
mov %rsp, %rdi; mov %rax, %gs:(%edi); ret

### the shadow that other schemes have
# refuse: P1-operand
# from: docs/spec/stack.md
mov %rax, -0x8000(%rsp); ret

### a base cut to 42 bits is no place here
# refuse: P1-operand
# from: docs/spec/window.md
shl $22, %rdi; shr $22, %rdi; mov %gs:8(%rdi), %eax; ret

### a low half is no place here: 67 is never missing
# refuse: P1-operand
# from: docs/proof/window.md
mov %edi, %edi; mov %gs:8(%rdi), %eax; ret

### a small constant is none either
# refuse: P1-operand
# from: docs/proof/window.md
mov $200, %edi; mov %gs:(%rdi), %eax; ret

### the mask of the other window
# refuse: object-symbol
# from: docs/spec/window.md
and twin_window_mask(%rip), %rdi; mov %gs:(%rdi), %eax; ret

### a base of 32 bits and the prefixes 65 67 in front of a VEX of two bytes, an index of 64 bits in its bits
# accept
# from: SDM vol. 1, 3.7.5: with prefix 67 all of them have 32
.byte 0x65, 0x67, 0xc5, 0x7a, 0x6f, 0x44, 0x8f, 0x08
ret

### sixteen bytes from the last address of 32 bits on
# accept
# from: docs/proof/window.md: they end in the guard
mov $-1, %edi; movups %gs:(%edi), %xmm0; ret

### 64 bytes at a displacement that is multiplied by them
# accept
# from: SDM vol. 2, 2.7.5
.byte 0x65, 0x67, 0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x47, 0x7f
ret

### the same by a base that another extension would make %r23d
# refuse: P3-undecodable
# from: Intel APX, EVEX.B4
.byte 0x65, 0x67, 0x62, 0xf9, 0xfe, 0x48, 0x6f, 0x47, 0x7f
ret

### the same by an index that another extension would make a higher one
# refuse: P3-undecodable
# from: Intel APX, EVEX.X4
.byte 0x65, 0x67, 0x62, 0xf1, 0xfa, 0x48, 0x6f, 0x44, 0x8f, 0x7f
ret

### a REX of two bytes between the prefixes and the opcode
# refuse: P3-undecodable
# from: Intel APX, REX2: without APX it is no instruction
.byte 0x65, 0x67, 0xd5, 0x18, 0x8b, 0x07
ret
