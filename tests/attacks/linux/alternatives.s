### an alternative that the kernel copies
# accept
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a call that is the whole replacement
# accept
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives: 0xe8 and a length of 5
1: call g
9: ret
.pushsection .altinstr_replacement,"ax"
2: call h
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a jump that is the whole replacement
# accept
# from: ibid., recompute_jump
1: .byte 0xe9
.long 8f - . - 4
9: int3
.Lt: ret
8: ret
.pushsection .altinstr_replacement,"ax"
2: jmp .Lt
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a call behind a nop
# refuse: P2-metadata
# from: issue 14.16: no relocation of it
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: nop; call h
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a call before a nop
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives: replacementlen is 6
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: call h; nop
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### two calls
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives
1: nop; nop; nop; nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: call h; call h
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a jump behind a nop
# refuse: P2-metadata
# from: ibid., recompute_jump
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.Lt: ret
.pushsection .altinstr_replacement,"ax"
2: nop; jmp .Lt
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a conditional jump
# refuse: P2-metadata
# from: ibid.: no jcc is relocated
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.Lt: ret
.pushsection .altinstr_replacement,"ax"
2: jne .Lt
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a short jump of five bytes with what follows
# refuse: P2-metadata
# from: ibid., recompute_jump reads four bytes behind 0xeb
1: nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: jmp 4f; nop; nop
4: nop
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a short jump alone
# refuse: P2-metadata
# from: ibid., recompute_jump: only a length of 5
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: .byte 0xeb, 0x00
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a loop instruction
# refuse: P2-metadata
# from: SDM vol. 2, LOOP
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: 4: loop 4b
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### an operand relative to rip
# refuse: P2-metadata
# from: issue 14.16
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: mov d(%rip), %rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.data
d: .quad 0
.text

### an address relative to rip
# refuse: P2-metadata
# from: SDM vol. 2, LEA
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: lea d(%rip), %rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.data
d: .quad 0
.text

### a call through memory relative to rip
# refuse: P2-metadata
# from: SDM vol. 2, CALL
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: call *pv_ops+8(%rip)
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### the same from an absolute address
# accept
# from: ibid.: nothing to relocate
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: call *pv_ops+8
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a test relative to rip with an immediate
# refuse: P2-metadata
# from: SDM vol. 2, CMP
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: cmpb $0, d(%rip)
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.data
d: .quad 0
.text

### a variable for each processor, relative to rip
# accept
# from: Linux 6.11 arch/x86/kernel/alternative.c, __apply_relocation; CALL_DEPTH_ACCOUNT
1: .skip 9, 0x90
9: ret
.pushsection .altinstr_replacement,"ax"
2: sarq $5, %gs:pcpu_hot+16(%rip)
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.long 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.11.0-29-generic SMP preempt mod_unload "
.popsection

### the same in a kernel that is not known to move it
# refuse: P2-metadata
# from: ibid.
1: .skip 9, 0x90
9: ret
.pushsection .altinstr_replacement,"ax"
2: sarq $5, %gs:pcpu_hot+16(%rip)
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.long 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.10.0-1-generic SMP preempt mod_unload "
.popsection

### the same in a kernel that is not named
# refuse: P2-metadata
# from: ibid.
1: .skip 9, 0x90
9: ret
.pushsection .altinstr_replacement,"ax"
2: sarq $5, %gs:pcpu_hot+16(%rip)
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.long 20
.byte 9b-1b, 3b-2b
.popsection

### a variable of the kernel relative to rip
# refuse: P2-metadata
# from: ibid.; one of a module beside this one may be anywhere
1: .skip 9, 0x90
9: ret
.pushsection .altinstr_replacement,"ax"
2: sarq $5, jiffies(%rip)
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.long 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.11.0-29-generic SMP preempt mod_unload "
.popsection

### a return thunk behind another instruction
# refuse: P2-metadata
# from: ibid.: not relocated
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: nop; jmp __x86_return_thunk
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a replacement that is too long
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives: memcpy
1: nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a replacement of a length that no instruction ends at
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives
1: nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: mov $1, %eax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3
.popsection

### a site that ends inside an instruction
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives
1: mov $1, %eax
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 3, 3b-2b
.popsection

### a site that begins inside an instruction
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives
1: mov $1, %eax
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b+1 - ., 2b - .
.short 20
.byte 4, 3b-2b
.popsection

### a feature that no processor has a word for
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives: BUG_ON
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 800
.byte 9b-1b, 3b-2b
.popsection

### the last feature there is
# accept
# from: arch/x86/include/asm/cpufeatures.h
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 767
.byte 9b-1b, 3b-2b
.popsection

### no feature, which is the other one
# accept
# from: ALTINSTR_FLAG_INV
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 0x8000 | 20
.byte 9b-1b, 3b-2b
.popsection

### a site longer than the buffer
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives: BUG_ON(instrlen > 254)
1: .skip 255, 0x90
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a shorter replacement behind a longer one, whose second half stays
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives: each entry writes as many bytes as it says
1: nop; nop; nop; nop; nop
8: nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: movabs $0xc3ff000000909090, %rax
3: .byte 0x0f,0x1f,0x44,0,0
4:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.long 1b - ., 3b - .
.short 20
.byte 8b-1b, 4b-3b
.popsection

### the same, the two apart in the table: newer kernels compare those that follow one another
# refuse: P2-metadata
# from: Linux 6.10 arch/x86/kernel/alternative.c, apply_alternatives: b = a + 1 while instr_va(b) == instr_va(a)
1: nop; nop; nop; nop; nop
8: nop; nop; nop; nop; nop
9: nop; nop; nop
7: ret
.pushsection .altinstr_replacement,"ax"
2: movabs $0xc3ff000000909090, %rax
3: .byte 0x0f,0x1f,0x44,0,0
4: clac
5:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20, 0
.byte 9b-1b, 3b-2b
.long 9b - ., 4b - .
.short 20, 0
.byte 7b-9b, 5b-4b
.long 1b - ., 3b - .
.short 20, 0
.byte 8b-1b, 4b-3b
.popsection

### a longer one behind a shorter one
# accept
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_alternatives
1: nop; nop; nop; nop; nop
8: nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: movabs $0xc3ff000000909090, %rax
3: .byte 0x0f,0x1f,0x44,0,0
4:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 3b - .
.short 20
.byte 8b-1b, 4b-3b
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### two replacements for one site
# accept
# from: ALTERNATIVE_2, arch/x86/include/asm/alternative.h
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .altinstr_replacement,"ax"
4: stac
5:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 4b - .
.short 21
.byte 3, 3
.popsection

### the second replacement over a part of the first one's site
# refuse: P2-metadata
# from: ibid.: a later one overwrites an earlier
1: mov $1, %eax; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 6, 3b-2b
.popsection
.pushsection .altinstr_replacement,"ax"
4: mov (%rdi), %rax
5:
.popsection
.pushsection .altinstructions,"a"
.long 1b + 5 - ., 4b - .
.short 21
.byte 2, 0
.popsection

### two sites that share a replacement
# refuse: P2-metadata
# from: ibid.
1: nop; nop; nop
9: nop; nop; nop; nop; ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .altinstructions,"a"
.long 9b - ., 2b - .
.short 21
.byte 3, 3
.popsection

### a replacement inside another site
# refuse: P2-metadata
# from: ibid.: patched before it is copied
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .altinstructions,"a"
.long 2b - ., 4f - .
.short 21
.byte 3, 3
.popsection
.pushsection .altinstr_replacement,"ax"
nop
4: stac
.popsection

### half of a replacement
# refuse: P2-metadata
# from: ibid.
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac; stac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b + 3 - .
.short 21
.byte 7, 3
.popsection

### a replacement that is executed where it stands
# refuse: P2-metadata
# from: the code behind it is another
test %edi, %edi
jne 2f
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a replacement that is called
# refuse: P2-metadata
call 2f
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a replacement that code falls into
# refuse: P2-metadata
test %edi, %edi
jne 6f
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
6: nop
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .altinstr_replacement,"ax"
.subsection 0
.popsection

### a replacement that is a function
# refuse: P2-metadata
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
.type k,@function
k: 2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.data
.quad k
.text

### a site that falls into a replacement when it is nops
# refuse: P2-metadata
test %edi, %edi
jne 6f
1: nop
nop
nop
9: ret
.pushsection .altinstr_replacement,"ax"
6: jmp 6b
2: clac
3: ret
.popsection
.pushsection .altinstructions,"a"
.long 6b - ., 6b - .
.short 21
.byte 2, 0
.long 1b - ., 2b - .
.short 20
.byte 3, 3
.popsection

### an access through a register
# refuse: P1-untranslated
# from: issue 14.16; Linux 6.1-rt, pv_queued_spin_unlock
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: movb $0, (%rdi)
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a table read
# refuse: P2-metadata
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: sub twin_stlb(%rcx), %rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### an alternative over a check's comparison
# refuse: P2-out-of-line
# from: optimize: the comparison becomes nops
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
1: cmp $0xfff, %rax
9: ja 4f
add twin_stlb+8(%rcx), %rax
5: mov (%rax), %rax
ret
4: lea (%rdi), %rax
call twin_slow_rax
jmp 5b
.pushsection .altinstructions,"a"
.long 1b - ., 1b - .
.short 20
.byte 9b-1b, 0
.popsection

### an alternative over a check's branch
# refuse: P1-untranslated
# from: the branch becomes nops
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
1: ja 4f
9: add twin_stlb+8(%rcx), %rax
5: mov (%rax), %rax
ret
4: lea (%rdi), %rax
call twin_slow_rax
jmp 5b
.pushsection .altinstructions,"a"
.long 1b - ., 1b - .
.short 20
.byte 9b-1b, 0
.popsection

### an alternative over a slow path
# refuse: P2-metadata
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 4f
add twin_stlb+8(%rcx), %rax
5: mov (%rax), %rax
ret
4: lea (%rdi), %rax
1: call twin_slow_rax
9: jmp 5b
.pushsection .altinstructions,"a"
.long 1b - ., 1b - .
.short 20
.byte 9b-1b, 0
.popsection

### an alternative that changes the depth
# refuse: P4-depth
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: push %rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### an alternative that loses a frame pointer
# refuse: P4-rsp
push %rbp
mov %rsp, %rbp
1: nop; nop; nop
9: leave; ret
.pushsection .altinstr_replacement,"ax"
2: mov %rdi, %rbp
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### an alternative at a section's end
# refuse: P2-metadata
# from: nothing follows the site
ret
.section .text.x,"ax"
.type x,@function
x: 1: ud2
.text
.pushsection .altinstructions,"a"
.long 1b - ., 1b - .
.short 20
.byte 2, 0
.popsection

### an alternative that leaves its section
# refuse: P2-metadata
ret
.section .text.x,"ax"
x: 1: ud2
.text
.pushsection .altinstructions,"a"
.long 1b - ., 1b - .
.short 20
.byte 200, 0
.popsection

### a site before its section
# refuse: P2-metadata
# from: a negative offset
ret
.pushsection .altinstructions,"a"
.long f - 8 - ., f - .
.short 20
.byte 1, 0
.popsection

### a site at a place that wraps
# refuse: P2-metadata
ret
.pushsection .altinstructions,"a"
.reloc ., R_X86_64_PC32, f + 0x7fffffffffffffff
.long 0, 0
.short 20
.byte 1, 0
.popsection

### an alternative for the runtime
# refuse: P2-metadata
ret
1: clac
.pushsection .altinstructions,"a"
.long twin_slow_rax - ., 1b - .
.short 20
.byte 3, 3
.popsection

### a replacement from the runtime
# refuse: P2-metadata
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., twin_slow_rax - .
.short 20
.byte 9b-1b, 1
.popsection

### a replacement from data
# refuse: P2-metadata
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., d - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.data
d: .quad 0
.text

### an alternative in the 14 bytes of newer kernels
# accept
# from: Linux 6.3: a feature of 32 bits
1: nop; nop; nop; ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.long 20
.byte 3, 3
.popsection

### a static branch inside a site
# refuse: P2-metadata
# from: issue 14.16: a patch site inside a range
1: .byte 0x0f,0x1f,0x44,0,0
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 9b - .
.quad key - .
.popsection

### a static call inside a site
# refuse: P2-metadata
# from: issue 14.16: a patch site inside a range
1: call __SCT__x
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x - .
.popsection

### a trace entry inside a site
# refuse: P2-metadata
# from: issue 14.16: a patch site inside a range
1: call __fentry__
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a lock inside a site
# refuse: P2-metadata
# from: issue 14.16: a patch site inside a range
1: lock incl (%rsp)
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .smp_locks,"a"
.long 1b - .
.popsection

### a warning inside a site
# refuse: P2-metadata
# from: issue 14.16: a patch site inside a range
1: ud2; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### a thunk inside a site
# accept
# from: module_finalize: thunks before alternatives
1: call __x86_indirect_thunk_rax
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a thunk inside a replacement
# refuse: P2-metadata
# from: patched where it stands, then copied
1: nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: call __x86_indirect_thunk_rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .retpoline_sites,"a"
.long 2b - .
.popsection

### a static branch inside a replacement
# refuse: P2-metadata
# from: jump_label_add_module goes by the address
1: nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: .byte 0x0f,0x1f,0x44,0,0
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection __jump_table,"aw"
.balign 8
.long 2b - ., 9b - .
.quad key - .
.popsection

### padding that a kernel may write over, where the site ends
# accept
# from: Linux 5.10 arch/x86/kernel/alternative.c, optimize_nops
1: mov %rdi, %rax
nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: lea 1(%rdi), %rax
nop
nop
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b, 3
.popsection

### padding that is none, where the site begins with as many nops
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/kernel/alternative.c, optimize_nops: looks at the first bytes, writes the last
mov %edx, %ecx
1: nop; nop; nop
and $63, %ecx
9: bts %rcx, -8(%rsp)
ret
.pushsection .altinstr_replacement,"ax"
2: and $63, %ecx
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b, 3
.popsection

### padding that is longer than the site, and so begins before it
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/kernel/alternative.c, optimize_nops: writes before the site
mov %edx, %ecx
and $63, %ecx
1: nop
9: nop; nop; nop
bts %rcx, -8(%rsp)
ret
.pushsection .altinstructions,"a"
.long 1b - ., 1b - .
.short 20
.byte 9b-1b, 0, 4
.popsection

### padding of the site that an earlier replacement is not
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/kernel/alternative.c, optimize_nops: after another entry was applied
mov %edx, %ecx
1: and $63, %ecx
nop; nop; nop
9: bts %rcx, -8(%rsp)
ret
.pushsection .altinstr_replacement,"ax"
2: nop; nop; nop
and $63, %ecx
3: and $63, %ecx
4:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b, 3
.long 1b - ., 3b - .
.short 21
.byte 9b-1b, 4b-3b, 3
.popsection

### two paddings of one site, the second of which cuts the nop of the first
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/kernel/alternative.c, optimize_nops: 0f 66 90 is no nop
1: nop; nop; nop; nop; nop; nop
9: mov %rdi, %rax
ret
.pushsection .altinstructions,"a"
.long 1b - ., 1b - .
.short 20
.byte 9b-1b, 0, 3
.long 1b - ., 1b - .
.short 21
.byte 9b-1b, 0, 2
.popsection

### a vector's difference, whose opcode is that of a jump, in a replacement
# refuse: P2-metadata
# from: Linux 6.5 arch/x86/kernel/alternative.c, apply_relocation: a short jump in its place, if it is near
1: nop; nop; nop; nop
9: ret
2: vpsubsw %xmm0, %xmm0, %xmm0
3: int3
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### the same of wide vectors
# refuse: P2-metadata
# from: Linux 6.5 arch/x86/kernel/alternative.c, apply_relocation
1: nop; nop; nop; nop; nop; nop
9: ret
2: vpsubsw %zmm0, %zmm0, %zmm0
3: int3
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a shuffle of a vector, whose opcode is that of a conditional jump, in a replacement
# refuse: P2-metadata
# from: Linux 6.5 arch/x86/kernel/alternative.c, apply_relocation: adds a distance to its immediate
1: nop; nop; nop; nop; nop
9: ret
2: vpshufd $0x80, %xmm0, %xmm0
3: int3
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### the difference in the older encoding, which has another first byte
# accept
# from: Linux 6.5 arch/x86/kernel/alternative.c, apply_relocation
1: nop; nop; nop; nop
9: ret
2: psubsw %xmm0, %xmm0
3: int3
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a call of what stands behind the replacement, which newer kernels take for a part of it
# refuse: P2-metadata
# from: Linux 6.5 arch/x86/kernel/alternative.c, need_reloc: the target is not moved
1: call g
9: ret
.pushsection .altinstr_replacement,"ax"
2: call 3f
3: ret
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a jump there
# refuse: P2-metadata
# from: ibid.
1: mov $8, %ecx
9: ret
.pushsection .altinstr_replacement,"ax"
2: .byte 0xe9, 0, 0, 0, 0
3: ret
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a call of what stands behind the replacement in the next section
# refuse: P2-metadata
# from: ibid.
1: call g
9: ret
.pushsection .altinstr_replacement,"ax"
2: call h
3:
.popsection
.pushsection .text.h,"ax",@progbits
.type h,@function
h: ret
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a call of a function further behind
# accept
# from: ibid.
1: call g
9: ret
.pushsection .altinstr_replacement,"ax"
2: call 4f
3: int3
4: ret
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### an exchange with r8, which kernels take for a nop, in a site
# refuse: P2-metadata
# from: Linux 6.5 arch/x86/kernel/alternative.c, insn_is_nop: the opcode 0x90 with any REX
1: xchg %rax, %r8
nop
9: ret
.pushsection .altinstructions,"a"
.long 1b - ., 1b - .
.short 20
.byte 9b-1b, 0
.popsection

### the same in a replacement
# refuse: P2-metadata
# from: ibid.
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: xchg %rax, %r8
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### an exchange with r9, which none takes for one
# accept
# from: ibid.
1: xchg %rax, %r9
nop
9: ret
.pushsection .altinstructions,"a"
.long 1b - ., 1b - .
.short 20
.byte 9b-1b, 0
.popsection

### a call that by then is one of the padding behind the replacement
# refuse: P2-metadata
# from: Linux 6.12 arch/x86/kernel/module.c, module_finalize: calls are patched before alternatives
1: call g
9: ret
.pushsection .altinstr_replacement,"ax"
2: call h
3: .fill 10, 1, 0x90
.type h,@function
h: ret
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .call_sites,"a"
.long 2b - .
.popsection

### the same padding in the next section
# refuse: P2-metadata
# from: ibid.
1: call g
9: ret
.pushsection .altinstr_replacement,"ax"
2: call h
3:
.popsection
.pushsection .text.h,"ax",@progbits
.fill 10, 1, 0x90
.type h,@function
h: ret
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .call_sites,"a"
.long 2b - .
.popsection

### a replacement that is code of the kernel
# refuse: P2-metadata
# from: Linux 5.15 tools/objtool/arch/x86/decode.c, arch_rewrite_retpolines: its bytes are not here
1: call __x86_indirect_thunk_rax
9: ret
.pushsection .altinstructions,"a"
.long 1b - ., __x86_indirect_alt_call_rax - .
.short 0x8000 + 7*32+12
.byte 9b-1b, 5
.popsection

### a replacement of no bytes that is code of the kernel
# refuse: P2-metadata
# from: Linux 5.15 arch/x86/kernel/alternative.c, apply_alternatives
1: nop; nop; nop
9: ret
.pushsection .altinstructions,"a"
.long 1b - ., __x86_indirect_alt_call_rax - .
.short 20
.byte 9b-1b, 0
.popsection

### a call through a thunk that no alternative replaces
# accept
# from: Linux 5.15 arch/x86/lib/retpoline.S
1: call __x86_indirect_thunk_rax
9: ret

### a call with a prefix where an alternative begins
# refuse: P2-metadata
# from: Linux 6.8 arch/x86/kernel/callthunks.c, patch_alt_call_sites: writes a call of five bytes
1: .byte 0x2e
call g
9: ret
.pushsection .altinstructions,"a"
.long 1b - ., 0
.short 20
.byte 9b-1b, 0
.popsection
.type g,@function
g: ret

### the same without the prefix
# accept
# from: control
1: call g
9: ret
.pushsection .altinstructions,"a"
.long 1b - ., 0
.short 20
.byte 9b-1b, 0
.popsection
.type g,@function
g: ret

### a replacement that is ud2, before what Xen goes on behind
# refuse: P2-metadata
# from: xen/arch/x86/pv/emul-inv-op.c, emulate_forced_invalid_op
test %edi, %edi; je 9f
push %rdi
1: pop %rdi; nop
9: .byte 0x78,0x65                              # js 8f
4: outsb
cpuid
ret
.fill 9b + 0x67 - ., 1, 0x90
8: ret
.pushsection .altinstr_replacement,"ax"
2: ud2
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection __ex_table,"a"
.long 4b - ., 8b - .
.long 3
.popsection

### the same with a nop behind it
# accept
# from: ibid.
test %edi, %edi; je 9f
push %rdi
1: pop %rdi; nop; nop
9: .byte 0x78,0x65
4: outsb
cpuid
ret
.fill 9b + 0x67 - ., 1, 0x90
8: ret
.pushsection .altinstr_replacement,"ax"
2: ud2
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection __ex_table,"a"
.long 4b - ., 8b - .
.long 3
.popsection

### a replacement behind ud2 that KVM goes on in the middle of
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kvm/x86.c, handle_ud (force_emulation_prefix)
{T} mov %rax, %rsi
test %edx, %edx; je 1f
push %rdi; ud2
1: nopl (%rax)
nop
9: ret
.pushsection .altinstr_replacement,"ax"
nop
2: imul $-0x3d, 0x6d(%rsi), %esi                # 6b 76 6d c3: ret
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a replacement that is the last byte of what Xen goes on behind
# refuse: P2-metadata
# from: xen/arch/x86/pv/emul-inv-op.c, emulate_forced_invalid_op
test %edi, %edi; je 4f
push %rdi; ud2
4: .byte 0x78,0x65                              # js 8f
1: nop
9: cpuid
ret
.fill 4b + 0x67 - ., 1, 0x90
8: ret
.pushsection .altinstr_replacement,"ax"
2: outsb
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection __ex_table,"a"
.long 1b - ., 8b - .
.long 3
.popsection
