### kCFI's check of a type before a call
# accept
# from: clang -fsanitize=kcfi
mov $-0x12345678, %r10d
add -4(%r11), %r10d
je 1f
ud2
1: call *%r11
ret

### the same before a jump through a thunk, over padding
# accept
# from: ibid., -mretpoline-external-thunk -fpatchable-function-entry=11,11
mov $-0x12345678, %r10d
add -15(%r11), %r10d
je 1f
ud2
1: cs jmp __x86_indirect_thunk_r11

### the same with the pointer in r10
# accept
# from: LLVM X86AsmPrinter::LowerKCFI_CHECK
mov $-0x12345678, %r11d
add -4(%r10), %r11d
je 1f
ud2
1: call *%r10
ret

### a read before a pointer that is not called
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add -4(%r11), %r10d
je 1f
ud2
1: call *%rax
ret

### a read before a pointer that a thunk of another register calls
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add -4(%r11), %r10d
je 1f
ud2
1: call __x86_indirect_thunk_rax
ret

### a check that goes on with any hash
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add -4(%r11), %r10d
je 1f
nop
nop
1: call *%r11
ret

### a check that goes on elsewhere with the right hash
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add -4(%r11), %r10d
je 2f
ud2
1: call *%r11
2: ret

### a check that goes on elsewhere with another hash
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add -4(%r11), %r10d
jne 2f
ud2
1: call *%r11
2: ret

### an instruction between the check and the call
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add -4(%r11), %r10d
je 1f
ud2
1: mov %r10, %rdi
call *%r11
ret

### a hash behind the pointer
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add 4(%r11), %r10d
je 1f
ud2
1: call *%r11
ret

### a hash of which a part is behind the pointer
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add -3(%r11), %r10d
je 1f
ud2
1: call *%r11
ret

### a hash far before the pointer
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add -0x1000(%r11), %r10d
je 1f
ud2
1: call *%r11
ret

### a hash at a sum of registers
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add -4(%r11,%rax), %r10d
je 1f
ud2
1: call *%r11
ret

### a hash of eight bytes
# refuse: P1-untranslated
mov $-0x12345678, %r10
add -4(%r11), %r10
je 1f
ud2
1: call *%r11
ret

### a hash that is written
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add %r10d, -4(%r11)
je 1f
ud2
1: call *%r11
ret

### a hash that is loaded, not added
# refuse: P1-untranslated
mov $-0x12345678, %r10d
mov -4(%r11), %r10d
je 1f
ud2
1: call *%r11
ret

### a hash at an address of 32 bits
# refuse: P1-address-form
mov $-0x12345678, %r10d
add -4(%r11d), %r10d
je 1f
ud2
1: call *%r11
ret

### a hash relative to a segment
# refuse: P1-untranslated
mov $-0x12345678, %r10d
add %fs:-4(%r11), %r10d
je 1f
ud2
1: call *%r11
ret

### a hash in a register that others read
# refuse: P1-untranslated
mov $-0x12345678, %eax
add -4(%r11), %eax
je 1f
ud2
1: call *%r11
ret

### a check whose pointer is also the sum
# refuse: P1-untranslated
mov $-0x12345678, %r11d
add -4(%r11), %r11d
je 1f
ud2
1: call *%r11
ret

### a check whose call the kernel may replace
# refuse: P2-metadata
# from: Linux 6.1 apply_alternatives
mov $-0x12345678, %r10d
add -4(%r11), %r10d
je 1f
ud2
1: call *%r11
9: ret
.pushsection .altinstructions,"a"
.long 1b - ., 1b - .
.short 20
.byte 9b-1b, 0
.popsection

### a check in a replacement
# refuse: P2-metadata
# from: ibid.
1: .fill 20, 1, 0x90
9: ret
.pushsection .altinstr_replacement,"ax"
2: mov $-0x12345678, %r10d
add -4(%r11), %r10d
je 3f
ud2
3: call *%r11
4:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 4b-2b
.popsection

### a trap of a check that the kernel goes on from
# accept
# from: Linux 6.1 kernel/cfi.c, report_cfi_failure: CONFIG_CFI_PERMISSIVE
mov $-0x12345678, %r10d
add -4(%r11), %r10d
je 1f
2: ud2
1: call *%r11
ret
.pushsection __kcfi_traps,"a"
.long 2b - .
.popsection

### a trap of no check that the kernel goes on from
# refuse: P2-metadata
# from: ibid.
1: ud2
mov (%rdi), %rax
ret
.pushsection __kcfi_traps,"a"
.long 1b - .
.popsection

### a trap that is named inside
# refuse: P2-metadata
# from: ibid.
mov $-0x12345678, %r10d
add -4(%r11), %r10d
je 1f
2: ud2
1: call *%r11
ret
.pushsection __kcfi_traps,"a"
.long 2b + 1 - .
.popsection

### a jump into the hash of a type
# refuse: P2-target
# from: SDM vol. 2, MOV
jmp 1f + 1
.pushsection .text.unlikely,"ax"
1: mov $0x90c3050f, %eax
ret
.popsection

### a hash whose last byte looks like padding
# accept
# from: Linux 6.12 arch/x86/kernel/callthunks.c, patch_dest
call g
ret
.pushsection .text.unlikely,"ax"
mov $0x90345678, %eax
.skip 11, 0x90
g: ret
.popsection
