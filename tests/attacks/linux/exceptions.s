### an access that the kernel answers for
# accept
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection

### an entry of the type that moves rsp
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/mm/extable.c, EX_TYPE_POP_REG
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 16
.popsection

### a handler that writes rsp
# refuse: P2-metadata
# from: extable.c, EX_TYPE_IMM_REG with register 4
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 17 | 4 << 8 | 8 << 16
.popsection

### a handler that writes -EIO to rsp
# refuse: P2-metadata
# from: extable.c, EX_TYPE_RDMSR_SAFE
1: rdmsr
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 11 | 4 << 8
.popsection

### a handler that writes the frame pointer
# refuse: P4-rsp
# from: extable.c, EX_TYPE_IMM_REG with register 5
push %rbp
mov %rsp, %rbp
1: mov (%rdi), %rax
2: leave
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 17 | 5 << 8 | 64 << 16
.popsection

### the same with the register that holds an error
# accept
push %rbp
mov %rsp, %rbp
1: mov (%rdi), %rax
2: leave
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 17 | 6 << 8
.popsection

### a handler that writes -EIO to the frame pointer
# refuse: P4-rsp
# from: extable.c, EX_TYPE_WRMSR_SAFE
push %rbp
mov %rsp, %rbp
1: wrmsr
2: leave
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 10 | 5 << 8
.popsection

### a handler that writes another register with a frame address
# refuse: P1-untranslated
mov %rsp, %rbx
1: mov (%rdi), %rax
2: mov %rax, -8(%rbx)
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 17 | 3 << 8
.popsection

### an entry whose fixup is a register and a length
# refuse: P2-metadata
# from: extable.c, ex_handler_bpf
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 7
.popsection

### an entry of the type that loads a segment
# refuse: P2-metadata
# from: extable.c, ex_handler_clear_fs
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 5
.popsection

### an entry that restores the state of vector registers
# refuse: P2-metadata
# from: extable.c, ex_handler_fprestore
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 6
.popsection

### an entry without a type
# refuse: P2-metadata
# from: extable.c: EX_TYPE_NONE stops the kernel
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 0
.popsection

### an entry of a type that only a machine check has
# refuse: P2-metadata
# from: extable.c, EX_TYPE_WRMSR_IN_MCE
1: wrmsr
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 12
.popsection

### an entry of a type of no kernel
# refuse: P2-metadata
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 21
.popsection

### a load that fills up with zeros
# accept
# from: extable.c, EX_TYPE_ZEROPAD
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 20
.popsection

### an entry for a write to the return address
# refuse: P1-return-slot
# from: issue 14.15
1: mov %rdi, (%rsp)
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection

### an entry for a write far above the frame
# refuse: P1-stack-bounds
1: mov %rdi, 4096(%rsp)
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection

### an entry for a write into the frame by an index
# refuse: P1-stack-bounds
1: mov %rdi, (%rsp,%rsi,8)
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection

### an entry for a string over the own frame
# refuse: P1-return-slot
# from: Linux 6.1 arch/x86/include/asm/uaccess_64.h, __clear_user
mov %rsp, %rdi
mov %rsi, %rcx
1: rep stosb
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection

### an entry for a string to the user
# accept
mov %rsi, %rcx
1: rep stosb
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### an entry for the replacement, which runs elsewhere
# refuse: P2-metadata
# from: issue 14.15; search_extable goes by the address
1: nop
nop
nop
ret
.pushsection .altinstr_replacement,"ax"
2: mov (%rdi), %rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 3, 3b-2b
.popsection
.pushsection __ex_table,"a"
.long 2b - ., 1b - .
.long 1
.popsection

### an entry for the original, which the replacement comes in the place of
# refuse: P1-untranslated
# from: issue 14.15
1: mov (%rdi), %rax
nop
4: ret
.pushsection .altinstr_replacement,"ax"
2: nop
mov (%rsi), %rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 4, 3b-2b
.popsection
.pushsection __ex_table,"a"
.long 1b - ., 4b - .
.long 1
.popsection

### the original and the replacement at one address
# accept
# from: the entry is for the address, whichever is there
1: mov (%rdi), %rax
4: ret
.pushsection .altinstr_replacement,"ax"
2: mov (%rsi), %rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 3, 3b-2b
.popsection
.pushsection __ex_table,"a"
.long 1b - ., 4b - .
.long 1
.popsection

### a fixup into a replacement
# refuse: P2-metadata
5: mov (%rdi), %rax
1: nop
nop
nop
ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 3, 3b-2b
.popsection
.pushsection __ex_table,"a"
.long 5b - ., 2b - .
.long 1
.popsection

### a fixup in the runtime
# refuse: P2-metadata
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., twin_slow_rax - .
.long 1
.popsection

### an entry for the runtime
# refuse: P2-metadata
ret
1: ret
.pushsection __ex_table,"a"
.long twin_slow_rax - ., 1b - .
.long 1
.popsection

### two fixups for one instruction
# refuse: P2-metadata
# from: sort_extable, lib/extable.c: which one is found, nobody says
1: mov (%rdi), %rax
2: nop
3: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.long 1b - ., 3b - .
.long 1
.popsection

### a fixup with another depth
# refuse: P4-depth
push %rdi
1: mov (%rdi), %rax
pop %rdi
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection

### an entry without its relocation
# refuse: P2-metadata
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 0x100, 2b - .
.long 1
.popsection

### an entry with one more relocation, over its type
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, apply_relocate_add
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1b - .
.popsection

### half an entry
# refuse: P2-metadata
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.popsection

### the code behind a trap, by a fixup
# refuse: P1-untranslated
# from: Linux 6.1 arch/x86/kernel/traps.c: invalid opcodes have fixups, too
1: ud2
2: mov (%rdi), %rax
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection

### a copy from user memory into the frame
# accept
# from: Linux 6.12 arch/x86/include/asm/uaccess_64.h, copy_user_generic
sub $24, %rsp
mov $16, %ecx
mov %rsp, %rdi
1: rep movsb
2: add $24, %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### the same without an entry
# refuse: P1-string-pointer
sub $24, %rsp
mov $16, %ecx
mov %rsp, %rdi
rep movsb
add $24, %rsp
ret

### a copy to user memory out of the frame
# accept
sub $24, %rsp
mov $16, %ecx
mov %rsp, %rsi
1: rep movsb
2: add $24, %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a copy onto the return address
# refuse: P1-return-slot
mov $8, %ecx
mov %rsp, %rdi
1: rep movsb
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a copy of words whose first one reaches the return address
# refuse: P1-return-slot
mov $1, %ecx
lea -4(%rsp), %rdi
1: rep movsq
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a copy far below the stack pointer
# refuse: P1-stack-bounds
lea -512(%rsp), %rdi
1: rep movsb
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a copy of a constant count over the return address
# refuse: P1-return-slot
sub $24, %rsp
mov $25, %ecx
mov %rsp, %rdi
1: rep movsb
2: add $24, %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a copy of a constant count up to it
# accept
sub $24, %rsp
mov $3, %ecx
mov %rsp, %rdi
1: rep movsq
2: add $24, %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a copy of a constant count below a word that rsp is set from
# accept
# from: Linux 6.12 drivers/gpu/drm/xe/xe_exec_queue.c
mov %rsp, %rax
push %rax
sub $16, %rsp
mov $16, %ecx
mov %rsp, %rdi
1: rep movsb
2: mov 16(%rsp), %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### one byte more
# refuse: P4-rsp
mov %rsp, %rax
push %rax
sub $16, %rsp
mov $17, %ecx
mov %rsp, %rdi
1: rep movsb
2: mov 16(%rsp), %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a constant count that a call has changed
# refuse: P4-rsp
mov %rsp, %rax
push %rax
sub $16, %rsp
mov $16, %ecx
call g
mov %rsp, %rdi
1: rep movsb
2: mov 16(%rsp), %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a constant count, downwards
# refuse: P4-rsp
mov %rsp, %rax
push %rax
push %rax
sub $16, %rsp
mov $16, %ecx
mov %rsp, %rdi
std
1: rep movsb
cld
2: mov 16(%rsp), %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a constant that a relocation fills in
# refuse: P4-rsp
mov %rsp, %rax
push %rax
sub $16, %rsp
mov $d, %ecx
mov %rsp, %rdi
1: rep movsb
2: mov 16(%rsp), %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection
.data
d: .quad 0
.text

### a copy over a word that rsp is set from
# refuse: P4-rsp
mov %rsp, %rax
push %rax
sub $16, %rsp
mov %rsp, %rdi
1: rep movsb
2: mov 16(%rsp), %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### the same, where only the fixup is reached with the word
# refuse: P4-rsp
mov %rsp, %rax
push %rax
sub $16, %rsp
mov %rsp, %rdi
1: rep movsb
add $24, %rsp
ret
2: mov 16(%rsp), %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a store through another register over a word, and its fixup
# refuse: P4-rsp
mov %rsp, %rax
push %rax
mov %rsp, %rcx
1: mov %rdi, (%rcx)
add $8, %rsp
ret
2: mov (%rsp), %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a copy from user memory to the frame in a word with its own address
# accept
sub $24, %rsp
mov %rsp, %rdi
mov %rdi, 16(%rsp)
mov 16(%rsp), %rdi
1: rep movsb
2: add $24, %rsp
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### an access by an address of 32 bits
# refuse: P1-address-form
mov (%edi), %eax
ret

### the same, which the kernel answers for
# accept
# from: Linux 6.18 sound/core/pcm_compat.c
1: mov (%edi), %eax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a frame address of 32 bits
# refuse: P1-address-form
sub $8, %rsp
mov %rdi, (%esp)
add $8, %rsp
ret

### a translated address of 32 bits
# refuse: P1-address-form
{T:(%rdi)}
mov (%eax), %ecx
ret

### a string instruction with addresses of 32 bits, listed
# refuse: P1-address-form
1: addr32 rep movsb
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### per-CPU data by an address of 32 bits, listed
# refuse: P1-address-form
1: mov %gs:(%eax), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a symbol by an address of 32 bits, listed
# refuse: P1-address-form
1: addr32 mov d, %eax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection
.data
d: .quad 0
.text

### a jump of 32 bits on a counter of 32 bits, listed
# refuse: P3-instruction
1: jecxz 2f
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### types of handlers in a later release of Linux 5.15
# accept
# from: xen-gntdev and amd-uncore of Ubuntu's 5.15.0-204; 5.15.224 has the numbers of Linux 5.17
1: rdmsr
2: mov (%rdi), %rax
3: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 11 | 3 << 8
.long 2b - ., 3b - ., 1
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.15.0-204-generic SMP mod_unload modversions "
.popsection

### types of handlers where releases of Linux 5.15 may take them for a routine's distance
# accept
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 11 | 3 << 8
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.15.0-25-generic SMP mod_unload modversions "
.popsection

### a number in a type that may lead such a release into code
# refuse: P2-metadata
# from: Linux 5.15 arch/x86/mm/extable.c, ex_fixup_handler: a call of the entry plus its third word
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 17 | 3 << 8 | 0xfff2 << 16
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.15.0-25-generic SMP mod_unload modversions "
.popsection

### the same for Oracle's kernel of that number, which is another one
# refuse: P2-metadata
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 17 | 3 << 8 | 0xfff2 << 16
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.15.0-204.147.6.2.el9uek.x86_64 SMP mod_unload modversions "
.popsection

### the same in a release that has types
# accept
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 17 | 3 << 8 | 0xfff2 << 16
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.15.224 SMP mod_unload modversions "
.popsection

### a type of handler in a later release of Linux 5.15 that moves the stack pointer
# refuse: P2-metadata
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 16
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.15.0-204-generic SMP mod_unload modversions "
.popsection

### a type of handler in Linux 5.14, which takes it for a routine's distance
# refuse: P2-metadata
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 1
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.14.0-1059-oem SMP mod_unload modversions "
.popsection

### a fixup of Linux 5.16 that is a place in the saved registers and a length
# refuse: P2-metadata
# from: Linux 5.16 arch/x86/include/asm/extable_fixup_types.h: EX_TYPE_BPF is 9
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 9
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.16.0 SMP preempt mod_unload "
.popsection

### a type of handler that Linux 5.16 does not have yet
# refuse: P2-metadata
# from: Linux 5.16 arch/x86/mm/extable.c, fixup_exception: BUG
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 17
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.16.0 SMP preempt mod_unload "
.popsection

### the types of Linux 5.16 that leave the fixup alone
# accept
# from: Linux 5.16 arch/x86/include/asm/extable_fixup_types.h
1: rdmsr
2: mov (%rdi), %rax
3: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 8
.long 2b - ., 3b - ., 12
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.16.0 SMP preempt mod_unload "
.popsection

### the same types in the numbers of Linux 5.17, where the first is a machine check's
# refuse: P2-metadata
# from: Linux 5.17 arch/x86/include/asm/extable_fixup_types.h
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 12
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.17.0 SMP preempt mod_unload "
.popsection

### a copy to a callee's arguments, which are the caller's return address
# refuse: P1-return-slot
# from: psABI 3.2.3; Linux 6.12 arch/x86/include/asm/uaccess_64.h, copy_user_generic
call g
ret
.type g,@function
g: mov $16, %ecx
lea 8(%rsp), %rdi
1: rep movsb
2: ret
.size g,.-g
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### the same of one word, whose number nothing says
# refuse: P1-return-slot
# from: ibid.
call g
ret
.type g,@function
g: lea 8(%rsp), %rdi
1: rep movsq
2: ret
.size g,.-g
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### the same behind another call, over the caller's saved frame pointer
# refuse: P4-rsp
# from: ibid.
lea 8(%rsp), %r10
push %r10
call g
pop %r10
lea -8(%r10), %rsp
ret
.type g,@function
g: mov $1, %ecx
lea 8(%rsp), %rdi
1: rep movsq
2: ret
.size g,.-g
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a copy to arguments that the caller has passed
# accept
# from: ibid.
sub $16, %rsp
call g
add $16, %rsp
ret
.type g,@function
g: mov $16, %ecx
lea 8(%rsp), %rdi
1: rep movsb
2: ret
.size g,.-g
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a copy out of arguments, which nothing writes
# accept
# from: ibid.
call g
ret
.type g,@function
g: mov $16, %ecx
lea 8(%rsp), %rsi
1: rep movsb
2: ret
.size g,.-g
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### such a place in a register that a handler adds to rcx
# refuse: P2-target
# from: Linux arch/x86/mm/extable.c, ex_handler_ucopy_len
lea 3f(%rip), %r8
xor %ecx, %ecx
1: mov (%rdi), %al
2: jmp *%rcx
3: mov %rcx, (%rdx)
ret
.section __ex_table, "a"
.long 1b - ., 2b - ., 19 | 8 << 8 | 8 << 16
.text

### a function in rcx, which a handler multiplies
# refuse: P2-target
# from: ibid.
lea f(%rip), %rcx
1: mov (%rdi), %al
2: jmp *%rcx
.section __ex_table, "a"
.long 1b - ., 2b - ., 19 | 8 << 8 | 8 << 16
.text

### a count that a handler makes, beside a function's address
# accept
# from: control: Linux arch/x86/lib/copy_user_64.S
lea f(%rip), %rdx
1: mov (%rdi), %al
2: mov %rcx, %rdi
jmp *%rdx
.section __ex_table, "a"
.long 1b - ., 2b - ., 19 | 8 << 8 | 8 << 16
.text

### a copy of two words downwards, the second over the return address
# refuse: P1-return-slot
# from: SDM vol. 2, MOVS: with DF set the pointers go down
lea 8(%rsp), %rdi
mov $2, %ecx
std
1: rep movsq
2: cld
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### the same in either direction
# refuse: P1-return-slot
# from: ibid.
lea 8(%rsp), %rdi
mov $2, %ecx
test %edx, %edx
je 1f
std
1: rep movsq
2: cld
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### a word downwards, over what a function keeps for its caller
# refuse: P4-rsp
# from: ibid.: the caller sets rsp by rbp
push %rbp
mov %rsp, %rbp
sub $16, %rsp
call g
mov %rbp, %rsp
pop %rbp
ret
.type g,@function
g: push %rbp
mov %rsp, %rdi
std
1: movsq
2: cld
pop %rbp
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### two words downwards, the second over it
# refuse: P4-rsp
# from: ibid.
push %rbp
mov %rsp, %rbp
sub $16, %rsp
call g
mov %rbp, %rsp
pop %rbp
ret
.type g,@function
g: push %rax
push %rbp
push %rax
lea 16(%rsp), %rdi
mov $2, %ecx
std
1: rep movsq
2: cld
pop %rax
pop %rbp
pop %rax
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### bytes by a count that nobody knows, over it
# refuse: P4-rsp
# from: ibid.: the first one is written there, if any is
push %rbp
mov %rsp, %rbp
sub $16, %rsp
call g
mov %rbp, %rsp
pop %rbp
ret
.type g,@function
g: push %rbp
mov %rsp, %rdi
1: rep movsb
2: pop %rbp
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### a word over it, by an address that was loaded
# refuse: P4-rsp
# from: ibid.: as a store there is
push %rbp
mov %rsp, %rbp
sub $16, %rsp
call g
mov %rbp, %rsp
pop %rbp
ret
.type g,@function
g: push %rbp
mov %rsp, %rax
push %rax
pop %rdi
1: movsq
2: pop %rbp
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### two words downwards, of a function's own
# accept
# from: control
push %rbp
mov %rsp, %rbp
sub $32, %rsp
call g
mov %rbp, %rsp
pop %rbp
ret
.type g,@function
g: push %rbp
sub $16, %rsp
lea 8(%rsp), %rdi
mov $2, %ecx
std
1: rep movsq
2: cld
add $16, %rsp
pop %rbp
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### the own return address, which lods loads before it faults
# refuse: P2-target
# from: Linux arch/x86/mm/extable.c: what was loaded stays
mov %rsp, %rsi
mov $40, %ecx
1: rep lodsq
ret
2: jmp *%rax
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### words below it
# accept
# from: control
sub $16, %rsp
mov %rsp, %rsi
mov $2, %ecx
1: rep lodsq
2: add $16, %rsp
jmp *%rax
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### a store over the return address, by an address that was loaded from the frame
# refuse: P1-return-slot
mov %rsp, %rax
push %rax
mov (%rsp), %rcx
1: mov %rdi, (%rcx)
2: pop %rax
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### the same by an address below it, which was taken back from the stack
# refuse: P1-return-slot
lea -8(%rsp), %rax
push %rax
pop %rcx
1: mov %rdi, 8(%rcx)
2: ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### the same by a string
# refuse: P1-return-slot
mov %rsp, %rax
push %rax
mov (%rsp), %rdi
1: movsq
2: pop %rax
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### the same with an index
# refuse: P1-stack-bounds
mov %rsp, %rax
push %rax
mov (%rsp), %rcx
1: mov %rdi, (%rcx,%rdx)
2: pop %rax
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### the same in an aligned frame
# refuse: P1-return-slot
push %rbp
mov %rsp, %rbp
and $-16, %rsp
sub $16, %rsp
lea 16(%rsp), %rax
mov %rax, (%rsp)
mov (%rsp), %rcx
1: mov %rdi, 8(%rcx)
2: leave
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### a store to a word of the frame by an address that was loaded from it
# accept
# from: control
sub $24, %rsp
mov %rsp, %rax
mov %rax, 16(%rsp)
mov 16(%rsp), %rcx
1: mov %rdi, 8(%rcx)
2: add $24, %rsp
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### a pointer of the process that was kept in the frame
# accept
# from: control
push %rdi
mov (%rsp), %rcx
1: mov %rsi, (%rcx,%rdx)
2: pop %rdi
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### a store to a callee's arguments, which are the caller's return address, by an address that was loaded from the callee's frame
# refuse: P1-return-slot
sub $8, %rsp
call g
add $8, %rsp
ret
.type g,@function
g: lea 16(%rsp), %rax
push %rax
mov (%rsp), %rcx
1: mov %rdi, (%rcx)
2: pop %rax
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### a string there by an address that was loaded from the callee's frame
# refuse: P1-return-slot
sub $8, %rsp
call g
add $8, %rsp
ret
.type g,@function
g: lea 16(%rsp), %rax
push %rax
mov (%rsp), %rdi
1: movsq
2: pop %rax
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text

### a store to an argument that the caller has passed, by an address that was loaded from the callee's frame
# accept
# from: control
sub $16, %rsp
call g
add $16, %rsp
ret
.type g,@function
g: lea 16(%rsp), %rax
push %rax
mov (%rsp), %rcx
1: mov %rdi, (%rcx)
2: pop %rax
ret
.section __ex_table, "a"
.balign 4
.long 1b - ., 2b - ., 3
.text
