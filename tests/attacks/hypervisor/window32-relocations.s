### the low half of an address as displacement
# accept
# from: docs/spec/window.md
mov %gs:"twin_vm:jiffies"+4(,%eax,8), %ecx; ret

### the same with a base
# accept
# from: docs/spec/window.md
mov %gs:"twin_vm:jiffies"-8(%edi,%eax,8), %ecx; ret

### the same without a register
# accept
# from: docs/spec/window.md
addr32 mov %gs:"twin_vm:jiffies", %ecx; ret

### the same with a large addend
# accept
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_32, "twin_vm:jiffies"+0x7fffffff00
ret
.fill 8, 1, 0x90

### the same without prefix 67
# refuse: P1-operand
# from: docs/spec/window.md
1: mov %gs:0x1000(,%rax,8), %ecx
.reloc 1b+4, R_X86_64_32, "twin_vm:jiffies"
ret

### extended by its sign, with 67
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_32S, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### extended by its sign, without prefixes
# refuse: P1-operand
# from: docs/spec/window.md
mov "twin_vm:jiffies"(,%rax,8), %ecx; ret

### extended by its sign, with a base and no prefixes
# refuse: P1-untranslated
# from: docs/spec/window.md
mov "twin_vm:jiffies"(%rax), %ecx; ret

### a distance
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_PC32, "twin_vm:jiffies"-4
ret
.fill 8, 1, 0x90

### 16 bits
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_16, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### 64 bits over a displacement
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_64, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### one byte into the field
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+6, R_X86_64_32, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### one byte before the field
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+4, R_X86_64_32, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### over the prefixes
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+0, R_X86_64_32, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### over prefix 67 and the opcode
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+1, R_X86_64_32, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### into the next instruction
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+8, R_X86_64_32, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### two in one instruction
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_32, "twin_vm:jiffies"
.reloc 1b+5, R_X86_64_32, "twin_vm:jiffies"
ret

### one of a displacement and one of an immediate
# refuse: P2-relocation
# from: docs/spec/window.md
movl $"twin_vm:jiffies", %gs:"twin_vm:jiffies"(,%eax,8); ret

### an immediate beside an operand in the window
# accept
# from: docs/spec/window.md
movq $"twin_vm:jiffies", %gs:8(%edi); ret

### half an address as immediate
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov $0, %ecx
.reloc 1b+1, R_X86_64_32, "twin_vm:jiffies"
ret

### an address as immediate
# accept
# from: docs/spec/window.md
mov $"twin_vm:jiffies", %rcx; ret

### a whole address as immediate
# accept
# from: docs/spec/window.md
movabs $"twin_vm:jiffies"+8, %rcx; ret

### half an address that lea computes with
# refuse: P2-relocation
# from: docs/spec/window.md
1: lea 0x1000(,%rax,8), %rcx
.reloc 1b+4, R_X86_64_32, "twin_vm:jiffies"
ret

### an address that lea computes with
# accept
# from: docs/spec/window.md
lea "twin_vm:jiffies"(,%rax,8), %rcx; ret

### half an address in the read of a segment base
# refuse: P2-relocation
# from: docs/spec/window.md
mov %rsp, %rax; or $0xffff, %rax
1: mov -0x1ff7(%rax), %rax
.reloc 1b+3, R_X86_64_32, "twin_vm:jiffies"
ret

### an imported routine's low half
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_32, imported
ret
.fill 8, 1, 0x90

### the own code's low half
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_32, f
ret
.fill 8, 1, 0x90

### the window's start as displacement
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_32, twin_window
ret
.fill 8, 1, 0x90

### the call table's address as displacement
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_32, twin_stlb_call
ret
.fill 8, 1, 0x90

### the window's start
# accept
# from: docs/spec/window.md
movabs $twin_window, %rax; ret

### the window's start and 1
# refuse: P2-relocation
# from: docs/spec/window.md
movabs $twin_window+1, %rax; ret

### the window's start less a page
# refuse: P2-relocation
# from: docs/spec/window.md
movabs $twin_window-4096, %rax; ret

### the low half of the window's start
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov $0, %eax
.reloc 1b+1, R_X86_64_32, twin_window
ret

### the window's start as a signed immediate
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov $0, %rax
.reloc 1b+3, R_X86_64_32S, twin_window
ret

### the distance to the window's start
# refuse: P2-relocation
# from: docs/spec/window.md
1: movabs $0x1122334455667788, %rax
.reloc 1b+2, R_X86_64_PC64, twin_window
ret

### the window's start, one byte into the field
# refuse: P2-relocation
# from: docs/spec/window.md
1: movabs $0x1122334455667788, %rax; nop; nop
.reloc 1b+3, R_X86_64_64, twin_window
ret

### the window's start over the opcode
# refuse: P2-relocation
# from: docs/spec/window.md
1: movabs $0x1122334455667788, %rax
.reloc 1b+1, R_X86_64_64, twin_window
ret

### the window's start in a comparison
# refuse: P2-relocation
# from: docs/spec/window.md
1: cmp $0x12345678, %rax
.reloc 1b+2, R_X86_64_32S, twin_window
ret
.fill 8, 1, 0x90

### the window's start in an address of 64 bits
# refuse: P2-relocation
# from: docs/spec/window.md
1: movabs 0x1122334455667788, %rax
.reloc 1b+2, R_X86_64_64, twin_window
ret

### an address of dom0 of 64 bits as operand
# refuse: P2-relocation
# from: docs/spec/window.md
1: movabs 0x1122334455667788, %rax
.reloc 1b+2, R_X86_64_64, "twin_vm:jiffies"
ret

### the window's start called
# refuse: P2-relocation
# from: docs/spec/window.md
push %rax; call twin_window; pop %rax; ret

### the window's start jumped to
# refuse: P2-relocation
# from: docs/spec/window.md
jmp twin_window

### the window's start, weak
# refuse: P2-relocation
# from: gABI 4, weak symbols
.weak twin_window; movabs $twin_window, %rax; ret

### dom0's view of the stack
# accept
# from: docs/spec/window.md
movabs $twin_stack_view, %rax; lea 8(%rsp,%rax), %rdi; jmp imported

### dom0's view of the stack and 8
# refuse: P2-relocation
# from: docs/spec/window.md
movabs $twin_stack_view+8, %rax; ret

### dom0's view of the stack as displacement
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov %gs:0x1000(,%eax,8), %ecx
.reloc 1b+5, R_X86_64_32, twin_stack_view
ret
.fill 8, 1, 0x90

### dom0's view of the stack as a signed immediate
# refuse: P2-relocation
# from: docs/spec/window.md
1: mov $0, %rax
.reloc 1b+3, R_X86_64_32S, twin_stack_view
ret

### memory through dom0's view of the stack
# refuse: P1-operand
# from: docs/spec/window.md
movabs $twin_stack_view, %rax; mov (%rsp,%rax), %rdi; ret

### the translation table
# refuse: object-symbol
# from: docs/spec/sequences.md
lea twin_stlb(%rcx), %rax; ret

### a check of another scheme
# refuse: object-symbol
# from: docs/spec/sequences.md
{S} mov (%rax), %al; ret

### a slow path
# refuse: object-symbol
# from: docs/spec/sequences.md
push %rax; call twin_slow_rax; pop %rax; ret

### the end of a smashed return
# refuse: object-symbol
# from: docs/spec/stack.md
push %rax; call twin_smashed; ud2

### a name that the runtime does not have
# refuse: object-symbol
# from: docs/spec/window.md
movabs $twin_windows, %rax; ret

### the window's start in a scheme with a table
# refuse: object-symbol
# from: docs/spec/window.md
# scheme: both
movabs $twin_window, %rax; ret

### dom0's view of the stack in a scheme with a table
# refuse: object-symbol
# from: docs/spec/window.md
# scheme: both
movabs $twin_stack_view, %rax; ret

### an operand of the window in a scheme with a table
# refuse: P1-address-form
# from: docs/spec/window.md
# scheme: both
mov %gs:8(%edi), %eax; ret
