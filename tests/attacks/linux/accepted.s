/* What a module may do. */

### returning
# accept
ret

### a checked access and a return thunk
# accept
{T} mov (%rax), %dl; jmp __x86_return_thunk

### per-CPU data
# accept
mov %gs:0x28, %rax; incl %gs:(%rdi); mov %gs:cpu_number(%rip), %eax; ret

### the kernel's symbols and its own data
# accept
mov jiffies(%rip), %rax; mov d+8(%rip), %rdx; ret
.data
d: .quad 0, 0
.text

### addresses of data, and a function's address in data
# accept
lea d(%rip), %rdi; mov $d, %rsi; ret
.data
d: .quad f
.text

### indirect calls
# accept
call __x86_indirect_thunk_rax; call *%rcx; call *pv_ops+8(%rip); ret

### instructions of the system
# accept
cli; rdmsr; mov %cr3, %rax; in %dx, %al; sti; ret

### a frame with a frame pointer
# accept
push %rbp; mov %rsp, %rbp; sub $16, %rsp; mov %rax, -8(%rbp); call g; mov -8(%rbp), %rax; leave; ret

### gcc's realigned frame
# accept
push %rbp; mov %rsp, %rbp; push %rbx; and $-16, %rsp; sub $32, %rsp; mov %rax, 8(%rsp); lea -8(%rbp), %rsp; pop %rbx; pop %rbp; ret

### gcc's other realigned frame
# accept
lea 8(%rsp), %r10; and $-32, %rsp; push %rax; push %rbp; mov %rsp, %rbp; push %r10; sub $40, %rsp; mov %rax, -40(%rbp); call g; mov -8(%rbp), %r10; leave; lea -8(%r10), %rsp; ret

### a trace entry
# accept
1: call __fentry__; ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a lock that may be dropped
# accept
{T} 1: lock incl (%rax); ret
.pushsection .smp_locks,"a"
.long 1b - .
.popsection

### a warning
# accept
1: ud2; ret
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### a static branch
# accept
1: .byte 0x0f,0x1f,0x44,0,0; ret; 2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key - .
.popsection

### a static branch of two bytes
# accept
1: xchg %ax, %ax; ret; 2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key - .
.popsection

### a static branch that is a short jump
# accept
1: jmp 2f; ret; 2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key - .
.popsection

### the address of an instruction
# accept
lea 1f(%rip), %rdi; 1: call g; ret

### what debuggers are told
# accept
1: ret
.section .debug_info,"",@progbits
.quad 1b
.text

### an exception entry
# accept
1: mov (%rdi), %rax; 2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection

### an alternative
# accept
1: nop; nop; nop; ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 3, 3b-2b
.popsection

### a return site
# accept
1: jmp __x86_return_thunk
.pushsection .return_sites,"a"
.long 1b - .
.popsection
