### what kernels with FineIBT write over
# accept
# from: Linux 6.12 arch/x86/kernel/alternative.c, __apply_fineibt
call g
mov $-0x12345678, %r10d
add -15(%r11), %r10d
je 1f
ud2
1: cs
call __x86_indirect_thunk_r11
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection
.pushsection .ibt_endbr_seal,"a"
.long g - .
.popsection
.data
.quad g

### less padding behind a hash than is written over
# refuse: P2-metadata
# from: ibid., cfi_rewrite_preamble
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 10, 0x90
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection

### padding of one nop behind a hash: a jump into it is inside of what is written
# refuse: P2-metadata
# from: ibid.
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.nops 11
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection

### a jump into the padding behind a hash
# refuse: P2-metadata
# from: ibid.
jmp 3f
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 10, 0x90
3: nop
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection

### a hash at another register's place
# refuse: P2-metadata
# from: ibid., decode_preamble_hash
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %ecx
.skip 11, 0x90
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection

### a number that the kernel writes over, before code that is no function
# refuse: P2-metadata
# from: ibid., cfi_rand_preamble
ret
.pushsection .text.unlikely,"ax"
2: mov $0x7, %eax
.skip 11, 0x90
mov %eax, %ecx
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection

### a hash at the end of a section
# refuse: P2-metadata
# from: ibid., cfi_rewrite_endbr
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection

### before a call what the kernel takes for a check
# refuse: P2-metadata
# from: ibid., decode_caller_hash
call g
mov $-0x12345678, %r10d
mov %rdi, %rsi
mov %rdi, %rdx
nop
nop
1: cs
call __x86_indirect_thunk_r11
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### the same without FineIBT
# accept
# from: ibid.
mov $-0x12345678, %r10d
mov %rdi, %rsi
mov %rdi, %rdx
nop
nop
1: cs
call __x86_indirect_thunk_r11
ret
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### before a call the jump that the kernel makes of a check
# refuse: P2-metadata
# from: ibid., decode_caller_hash
jmp 1f
.skip 12, 0x90
1: cs
call __x86_indirect_thunk_r11
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a check for another register than the kernel subtracts from
# refuse: P2-metadata
# from: ibid., fineibt_caller_start
mov $-0x12345678, %r10d
add -15(%rcx), %r10d
je 1f
ud2
1: call __x86_indirect_thunk_rcx
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a jump to a call behind its check
# refuse: P2-metadata
# from: ibid.: r11 is 16 less there
test %rdi, %rdi
je 1f
mov $-0x12345678, %r10d
add -15(%r11), %r10d
je 1f
ud2
1: cs
call __x86_indirect_thunk_r11
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a jump into a check that is written over
# refuse: P2-metadata
# from: ibid.
test %rdi, %rdi
je 3f
mov $-0x12345678, %r10d
3: add -15(%r11), %r10d
je 1f
ud2
1: cs
call __x86_indirect_thunk_r11
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a call so near to a section's beginning that what is before is another one's
# refuse: P2-metadata
# from: ibid., decode_caller_hash
ret
.pushsection .text.unlikely,"ax"
1: cs
call __x86_indirect_thunk_r11
ret
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a sealed function without a hash before it
# refuse: P2-metadata
# from: ibid., poison_cfi
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.skip 16, 0xcc
h: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .ibt_endbr_seal,"a"
.long h - .
.popsection

### a function by address without a hash before it
# refuse: P2-metadata
# from: ibid., fineibt_caller_start
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.skip 16, 0xcc
h: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.data
.quad h

### a table that the kernel does not have
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/alternative.c, __apply_fineibt: there is none in 6.1
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.1.0 SMP mod_unload "
.popsection

### one that it has
# accept
# from: Linux 6.12, ibid.
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.12.0 SMP mod_unload "
.popsection

### a trap that a kernel takes for one before a function: if it only reports, it goes on
# refuse: P4-depth
# from: Linux 6.12 arch/x86/kernel/alternative.c, decode_fineibt_insn
test %rsi, %rsi
je 1f
push %rdi
endbr64
.nops 9
ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection

### the same without FineIBT
# accept
test %rsi, %rsi
je 1f
push %rdi
endbr64
.nops 9
ud2
1: ret

### a trap that is nearer to endbr64 than one before a function
# accept
test %rsi, %rsi
je 1f
push %rdi
endbr64
.nops 8
ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection

### endbr64 in a number before a trap
# refuse: P4-depth
# from: ibid.
test %rsi, %rsi
je 1f
push %rdi
movabs $0xfa1e0ff3, %rax
.nops 5
ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection

### a number before a trap that a relocation may make endbr64
# refuse: P4-depth
# from: ibid.
test %rsi, %rsi
je 1f
push %rdi
mov $d, %rdx
.nops 9
ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.data
d: .quad 0

### a trap that a kernel puts behind endbr64
# refuse: P4-depth
# from: ibid.; apply_alternatives
test %rsi, %rsi
je 1f
push %rdi
endbr64
.nops 9
3: jmp 5f
nop
1: ret
5: pop %rdi
ret
.pushsection .altinstr_replacement,"ax"
4: ud2
.popsection
.pushsection .altinstructions,"a"
.long 3b - ., 4b - .
.short 20
.byte 3, 2
.popsection
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection

### a BUG is no code that the kernel writes
# accept
test %rsi, %rsi
je 1f
push %rdi
.nops 13
3: ud2
1: ret
.pushsection __bug_table,"aw"
.long 3b - ., d - .
.short 1, 0
.popsection
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.data
d: .asciz "f"

### what kernels with FineIBT write over from Linux 6.15 on
# accept
# from: Linux 7.3 arch/x86/kernel/alternative.c, __apply_fineibt
mov $-0x12345678, %r10d
add -15(%r11), %r10d
je 1f
ud2
1: cs
call __x86_indirect_thunk_r11
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection
.pushsection .ibt_endbr_seal,"a"
.long g - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection
.data
.quad g

### a call of five bytes behind a check, over which the kernel writes six
# refuse: P2-metadata
# from: ibid., cfi_rewrite_callers: with `paranoid` it writes 20 bytes from the check on
mov $-0x12345678, %r10d
add -15(%r11), %r10d
je 1f
ud2
1: call __x86_indirect_thunk_r11
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.17.0 SMP mod_unload "
.popsection

### a jump of five bytes behind a check
# refuse: P2-metadata
# from: ibid.
mov $-0x12345678, %r10d
add -15(%r11), %r10d
je 1f
ud2
1: jmp __x86_indirect_thunk_r11
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection

### the same in a kernel that writes over the check alone
# accept
# from: Linux 6.12, ibid.
mov $-0x12345678, %r10d
add -15(%r11), %r10d
je 1f
ud2
1: jmp __x86_indirect_thunk_r11
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.12.0 SMP mod_unload "
.popsection

### a trap that a kernel takes for one before a function, and goes on before it
# refuse: P2-metadata
# from: Linux 7.3, ibid., decode_fineibt_preamble: it goes on 16 bytes behind endbr64, which is in an instruction
test %rsi, %rsi
je 1f
push %rdi
endbr64
.nops 15
3: ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection

### a trap that is nearer than that
# accept
test %rsi, %rsi
je 1f
push %rdi
endbr64
.nops 14
3: ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection

### a trap that a kernel takes for one before a function, and goes on behind it
# refuse: P2-metadata
# from: Linux 6.17, ibid., decode_fineibt_preamble: it goes on 16 bytes behind endbr64
test %rsi, %rsi
je 1f
push %rdi
endbr64
.nops 2
3: ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.17.0 SMP mod_unload "
.popsection

### both in a kernel that goes by another distance
# accept
# from: Linux 6.12, ibid.
test %rsi, %rsi
je 1f
push %rdi
endbr64
.nops 15
3: ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.12.0 SMP mod_unload "
.popsection

### a BUG that a kernel takes for a trap before a function
# refuse: P2-metadata
# from: ibid.; handle_bug, arch/x86/kernel/traps.c
test %rsi, %rsi
je 1f
push %rdi
endbr64
.nops 15
3: ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection
.pushsection __bug_table,"aw"
.long 3b - ., 0, d - .
.short 1, 0
.popsection
.data
d: .asciz "f"

### a WARN, of which the kernel asks first
# accept
# from: ibid.
test %rsi, %rsi
je 1f
endbr64
.nops 15
3: ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection
.pushsection __bug_table,"aw"
.long 3b - ., 0, d - .
.short 1, 1
.popsection
.data
d: .asciz "f"

### a WARN that is a BUG as well
# refuse: P2-metadata
# from: ibid.; find_bug, lib/bug.c: it takes the first
test %rsi, %rsi
je 1f
endbr64
.nops 15
3: ud2
1: ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection
.pushsection __bug_table,"aw"
.long 3b - ., 0, d - .
.short 1, 0
.long 3b - ., 0, d - .
.short 1, 1
.popsection
.data
d: .asciz "f"

### the trap of a check that the kernel does not write over
# refuse: P2-metadata
# from: ibid., decode_fineibt_preamble
endbr64
mov %rdi, %r11
mov $-0x12345678, %r10d
add -15(%r11), %r10d
je 1f
ud2
1: cs
call __x86_indirect_thunk_r11
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection

### the same of one that it writes over
# accept
# from: ibid.
endbr64
mov %rdi, %r11
mov $-0x12345678, %r10d
add -15(%r11), %r10d
je 1f
ud2
1: cs
call __x86_indirect_thunk_r11
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection

### an alternative over what the kernel writes over where a function begins
# refuse: P2-metadata
# from: ibid., cfi_rewrite_preamble: what is before a function leads to its fourth byte
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: endbr64
nop
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .altinstr_replacement,"ax"
4: mov $0xc3, %eax
.popsection
.pushsection .altinstructions,"a"
.long g - ., 4b - ., 20
.byte 5, 5
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection

### the same over a function that begins otherwise
# accept
# from: ibid.
ret
.pushsection .text.unlikely,"ax"
2: mov $0x12345678, %eax
.skip 11, 0x90
g: mov $0, %eax
ret
.popsection
.pushsection .cfi_sites,"a"
.long 2b - .
.popsection
.pushsection .altinstr_replacement,"ax"
4: mov $0xc3, %eax
.popsection
.pushsection .altinstructions,"a"
.long g - ., 4b - ., 20
.byte 5, 5
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP mod_unload "
.popsection

### a hash in the register that says one argument
# accept
# from: Linux 7.3 arch/x86/kernel/alternative.c, decode_preamble_hash, cfi_fineibt_bhi_preamble
ret
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %ecx
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_g - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad g

### a hash in the register that says three arguments
# accept
# from: Linux 7.3 arch/x86/kernel/alternative.c, decode_preamble_hash, cfi_fineibt_bhi_preamble
ret
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %ebx
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_g - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad g

### a hash in the register that says four arguments
# accept
# from: Linux 7.3 arch/x86/kernel/alternative.c, decode_preamble_hash, cfi_fineibt_bhi_preamble
ret
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %esp
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_g - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad g

### a hash in the register that says arguments on the stack
# accept
# from: Linux 7.3 arch/x86/kernel/alternative.c, decode_preamble_hash, cfi_fineibt_bhi_preamble
ret
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %edi
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_g - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad g

### the same before Linux 6.15
# refuse: P2-metadata
# from: Linux 6.12, ibid.
ret
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %ecx
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_g - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.12.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad g

### the same of a kernel that is not known
# refuse: P2-metadata
ret
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %esp
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_g - .
.popsection
.data
.quad g

### the same before a function without endbr64, which the kernel calls by the hash as it is
# refuse: P2-metadata
# from: Linux 7.3, ibid., cfi_rewrite_preamble
ret
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %esp
.skip 11, 0x90
.type g,@function
g: nop
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_g - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad g

### a hash in another register that no table names: the kernel calls it as it is
# refuse: P2-metadata
# from: ibid.
ret
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %esp
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_h - .
.popsection
.pushsection .text.unlikely,"ax"
__cfi_h: mov $0x12345678, %eax
.skip 11, 0x90
.type h,@function
h: endbr64
ret
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad g

### one in %eax that no table names
# accept
# from: ibid.
ret
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %eax
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_h - .
.popsection
.pushsection .text.unlikely,"ax"
__cfi_h: mov $0x12345678, %eax
.skip 11, 0x90
.type h,@function
h: endbr64
ret
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad g

### what a table names as a hash, by a name that the kernel may look up
# refuse: P4-rsp
# from: Linux 6.1 kernel/bpf/verifier.c, add_kfunc_call
ret
.pushsection .text.unlikely,"ax"
.type cfi_g,@function
cfi_g: mov $0x12345678, %esp
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long cfi_g - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad g

### code before that leads into a hash in rsp's register
# refuse: P4-rsp
# from: Linux 7.3, ibid.: with cfi=kcfi the kernel leaves it as it is
jmp __cfi_g
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %esp
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_g - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad g

### the address of a hash in rsp's register
# refuse: P2-target
jmp 1f
1: ret
.pushsection .text.unlikely,"ax"
.type __cfi_g,@function
__cfi_g: mov $0x12345678, %esp
.skip 11, 0x90
.type g,@function
g: endbr64
ret
.popsection
.pushsection .cfi_sites,"a"
.long __cfi_g - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.0 SMP preempt mod_unload modversions "
.popsection
.data
.quad __cfi_g
