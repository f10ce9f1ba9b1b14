### what kernels with FineIBT write over
# accept
# from: Linux 6.12 arch/x86/kernel/alternative.c, __apply_fineibt
call g
mov $-0x12345678, %r10d
add -15(%r11), %r10d
je 1f
ud2
1: cs call __x86_indirect_thunk_r11
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
1: cs call __x86_indirect_thunk_r11
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
1: cs call __x86_indirect_thunk_r11
ret
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### before a call the jump that the kernel makes of a check
# refuse: P2-metadata
# from: ibid., decode_caller_hash
jmp 1f
.skip 12, 0x90
1: cs call __x86_indirect_thunk_r11
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
1: cs call __x86_indirect_thunk_r11
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
1: cs call __x86_indirect_thunk_r11
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
1: cs call __x86_indirect_thunk_r11
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

### a kernel whose FineIBT is not known
# refuse: P2-metadata
# from: Linux 6.15 arch/x86/kernel/alternative.c, fineibt_paranoid_start
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
.asciz "vermagic=6.15.0 SMP mod_unload "
.popsection

### one whose is
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
