### a call through a register
# refuse: P2-indirect
# from: contract P2
push %rbx; call *%rax; pop %rbx; ret

### a call through the window
# refuse: P2-indirect
# from: contract P2
push %rbx; call *%gs:(%edi); pop %rbx; ret

### a call through memory
# refuse: P2-indirect
# from: contract P2
push %rbx; call *(%rdi); pop %rbx; ret

### a jump through a register
# refuse: P2-indirect
# from: contract P2
jmp *%r11

### a jump through the window
# refuse: P2-indirect
# from: contract P2
jmp *%gs:(%edi)

### a jump through memory with notrack
# refuse: P2-indirect
# from: contract P2
.byte 0x3e, 0xff, 0x27

### a call through the call table
# accept
# from: contract P2
push %rbx; mov %gs:(%edi), %r11; call twin_stlb_call; pop %rbx; ret

### a far call
# refuse: P2-indirect
# from: SDM vol. 2, CALL
lcall *%gs:(%edi); ret

### a far jump
# refuse: P2-indirect
# from: SDM vol. 2, JMP
ljmp *%gs:(%edi)

### a thunk
# refuse: P2-relocation
# from: arch/x86/lib/retpoline.S
push %rbx; call __x86_indirect_thunk_rax; pop %rbx; ret

### a jump behind prefix 65
# refuse: P2-target
# from: overlapping instructions
jmp 1f+1; 1: mov %gs:8(%edi), %eax; ret

### a jump behind both prefixes
# refuse: P2-target
# from: overlapping instructions
jmp 1f+2; 1: mov %gs:8(%edi), %eax; ret

### a branch behind both prefixes
# refuse: P2-target
# from: overlapping instructions
test %eax, %eax; je 1f+2; 1: mov %gs:8(%edi), %eax; ret

### a call behind both prefixes
# refuse: P2-target
# from: overlapping instructions
push %rbx; call 1f+2; pop %rbx; ret; 1: mov %gs:8(%edi), %eax; ret

### a loop behind the prefixes of its own body
# refuse: P2-target
# from: overlapping instructions
1: mov %gs:8(%edi), %eax; loop 1b+2; ret

### a jump to the same instruction's start
# accept
# from: contract P2
jmp 1f; 1: mov %gs:8(%edi), %eax; ret

### a gadget in an immediate, jumped to
# refuse: P2-target
# from: issue 14, the movabs gadget
movabs $0x909090c3300f9090, %rax; jmp f+4

### a gadget in an immediate, which nothing reaches
# accept
# from: issue 14, the movabs gadget
movabs $0x909090c3300f9090, %rax; ret

### a gadget in an immediate, its address pushed to return to
# refuse: P4-return
# from: issue 14, the movabs gadget
movabs $0x909090c3300f9090, %rax; movabs $"twin_vm:.text"+4, %rcx; push %rcx; ret

### a gadget in a displacement, jumped to
# refuse: P2-target
# from: issue 14, the movabs gadget
mov %gs:-0x3cfc70(%edi), %eax; jmp f+4

### an array on the stack that overflows by pointer
# accept
# from: issue 14, the C overflow: it fills the data stack, where no return address is
sub $40, %rsp
movabs $twin_window, %rdx
mov %esp, %edi
lea (%rdi,%rdx), %rdi
mov %rsi, %rcx
mov %ecx, %esi
lea (%rsi,%rdx), %rsi
rep movsb
add $40, %rsp
ret

### the same, byte by byte through a pointer to the array
# accept
# from: issue 14, the C overflow: it fills the data stack, where no return address is
sub $40, %rsp
lea (%rsp), %rdi
1: mov %gs:(%esi), %al
mov %al, %gs:(%edi)
inc %rdi
inc %rsi
dec %ecx
jne 1b
add $40, %rsp
ret

### the same on the stack of return addresses
# refuse: P1-operand
# from: issue 14, the C overflow
sub $40, %rsp
lea (%rsp), %rdi
1: mov %gs:(%esi), %al
mov %al, (%rdi)
inc %rdi
inc %rsi
dec %ecx
jne 1b
add $40, %rsp
ret

### a store through a pointer to the return address
# refuse: P1-operand
# from: issue 14.4
lea (%rsp), %r9; mov %rdx, (%r9); ret

### a store through its low half, which is data
# accept
# from: issue 14.4
lea (%rsp), %r9; mov %rdx, %gs:(%r9d); ret

### code that no path reaches
# refuse: P2-unreached
# from: contract P2
ret; mov %gs:8(%edi), %eax; ret

### code that no path reaches and that has no prefixes
# refuse: P2-unreached
# from: contract P2
ret; mov 8(%rdi), %eax; ret

### padding that no path reaches
# accept
# from: contract P2
ret; int3; nop; ud2

### a breakpoint on a path
# refuse: P3-instruction
# from: SDM vol. 3, 6.3.1
int3; ret

### code that runs past its end
# refuse: P2-fall-off
# from: contract P2
mov %gs:8(%edi), %eax

### a conditional jump to the call table
# refuse: P2-callee
# from: contract P2
test %edi, %edi; je twin_stlb_call; ret

### a jump to a port's routine
# refuse: P2-callee
# from: contract P2
jmp twin_in8

### an entry in mid-frame, by a function's symbol
# refuse: P4-frame
# from: svm_verify::is_entry
push %rbx; .type g,@function; g: pop %rbx; ret

### the same place with a symbol that is none
# accept
# from: svm_verify::is_entry
push %rbx; g: pop %rbx; ret

### an entry in mid-frame, by a visible name
# refuse: P4-frame
# from: svm_verify::is_entry
push %rbx; .globl g; g: pop %rbx; ret

### an entry behind prefixes, by a visible name
# refuse: P2-target
# from: svm_verify::is_entry
.globl g; .set g, f+2; mov %gs:8(%edi), %eax; ret

### an entry by the codemap
# accept
# from: contract P2
ret; .section .twin.codemap,"a",@progbits; .quad "twin_vm:.text", f

### an entry by the codemap in mid-frame
# refuse: P4-frame
# from: contract P2
push %rbx; g: pop %rbx; ret; .section .twin.codemap,"a",@progbits; .quad "twin_vm:.text", g

### an entry by the codemap behind prefixes
# refuse: P2-codemap
# from: contract P2
mov %gs:8(%edi), %eax; ret; .section .twin.codemap,"a",@progbits; .quad "twin_vm:.text", f+2

### the window in the codemap
# refuse: P2-codemap
# from: contract P2
ret; .section .twin.codemap,"a",@progbits; .quad "twin_vm:.text", twin_window

### the base of gs written
# refuse: P3-instruction
# from: SDM vol. 2, WRGSBASE
wrgsbase %rdi; ret

### 32 bits of it
# refuse: P3-instruction
# from: SDM vol. 2, WRGSBASE
wrgsbase %edi; ret

### the base of gs read
# refuse: P3-instruction
# from: SDM vol. 2, RDGSBASE
rdgsbase %rax; ret

### the base of fs written
# refuse: P3-instruction
# from: SDM vol. 2, WRFSBASE
wrfsbase %rdi; ret

### the base of fs read
# refuse: P3-instruction
# from: SDM vol. 2, RDFSBASE
rdfsbase %rax; ret

### the bases of gs exchanged
# refuse: P3-instruction
# from: SDM vol. 2, SWAPGS
swapgs; ret

### gs loaded from a register
# refuse: P3-instruction
# from: SDM vol. 2, MOV
mov %ax, %gs; ret

### gs loaded from 64 bits
# refuse: P3-instruction
# from: SDM vol. 2, MOV
mov %rax, %gs; ret

### gs loaded from the window
# refuse: P3-instruction
# from: SDM vol. 2, MOV
mov %gs:(%edi), %gs; ret

### gs read
# refuse: P3-instruction
# from: SDM vol. 2, MOV
mov %gs, %eax; ret

### fs loaded
# refuse: P3-instruction
# from: SDM vol. 2, MOV
mov %ax, %fs; ret

### the stack's segment loaded
# refuse: P3-instruction
# from: SDM vol. 2, MOV
mov %ax, %ss; ret

### gs popped
# refuse: P3-instruction
# from: SDM vol. 2, POP
push %rax; pop %gs; ret

### gs popped in 16 bits
# refuse: P3-instruction
# from: SDM vol. 2, POP
push %rax; popw %gs; ret

### gs pushed
# refuse: P3-instruction
# from: SDM vol. 2, PUSH
push %gs; pop %rax; ret

### a far pointer loaded into gs
# refuse: P3-instruction
# from: SDM vol. 2, LGS
lgs %gs:(%edi), %eax; ret

### a far pointer loaded into fs
# refuse: P3-instruction
# from: SDM vol. 2, LFS
lfs %gs:(%edi), %eax; ret

### a far pointer loaded into ss
# refuse: P3-instruction
# from: SDM vol. 2, LSS
lss %gs:(%edi), %eax; ret

### the base of gs for the kernel, loaded
# refuse: P3-instruction
# from: FRED, LKGS
.byte 0xf2, 0x0f, 0x00, 0xf0; ret

### a model-specific register written, the base of gs
# refuse: P3-instruction
# from: SDM vol. 4, IA32_GS_BASE
mov $0xc0000101, %ecx; wrmsr; ret

### a system call
# refuse: P3-instruction
# from: SDM vol. 2, SYSCALL
syscall; ret

### the other system call
# refuse: P3-instruction
# from: SDM vol. 2, SYSENTER
sysenter

### an interrupt
# refuse: P3-instruction
# from: SDM vol. 2, INT
int $0x80; ret

### a return to a program
# refuse: P3-instruction
# from: SDM vol. 2, SYSRET
sysretq

### a call of the hypervisor below
# refuse: P3-instruction
# from: SDM vol. 2, VMCALL
vmcall; ret

### a port written
# refuse: P3-instruction
# from: SDM vol. 2, OUT
out %al, %dx; ret

### a port written by the runtime
# accept
# from: crates/abi, PORT_OUT
push %rbx; call twin_out8; pop %rbx; ret

### the page tables' register
# refuse: P3-instruction
# from: SDM vol. 2, MOV
mov %rdi, %cr3; ret

### a page's translation dropped
# refuse: P3-instruction
# from: SDM vol. 2, INVLPG
invlpg %gs:(%edi); ret

### a transaction
# refuse: P3-instruction
# from: SDM vol. 2, XBEGIN
xbegin 1f; 1: ret
