### a relocation on an opcode
# refuse: P2-relocation
# from: gABI chapter 4 (r_offset)
1: mov $0, %eax
ret
.reloc 1b, R_X86_64_32S, "twin_vm:x"

### a relocation on a prefix
# refuse: P2-relocation
# from: gABI chapter 4
1: movabs $0, %rax
ret
.reloc 1b, R_X86_64_64, "twin_vm:x"

### a relocation on a ModRM byte
# refuse: P2-relocation
# from: gABI chapter 4
1: lea 0x1000(%rdi), %rax
ret
.reloc 1b + 2, R_X86_64_32S, "twin_vm:x"

### a relocation that spans two instructions
# refuse: P2-relocation
# from: gABI chapter 4
1: mov $0, %eax
mov $0, %ecx
ret
.reloc 1b + 3, R_X86_64_32S, "twin_vm:x"

### a relocation that begins in an operand and ends behind it
# refuse: P2-relocation
# from: psABI table 4.9
1: mov $0, %eax
ret
int3
int3
int3
.reloc 1b + 1, R_X86_64_64, "twin_vm:x"

### a relocation of half an operand
# refuse: P2-relocation
# from: psABI table 4.9
1: movabs $0, %rax
ret
.reloc 1b + 2, R_X86_64_32S, "twin_vm:x"

### a relocation on a return
# refuse: P2-relocation
# from: gABI chapter 4
1: ret
nop
nop
nop
nop
.reloc 1b, R_X86_64_32S, "twin_vm:x"

### a relocation on padding
# refuse: P2-relocation
# from: gABI chapter 4
ret
1: nopl 0x1000(%rax)
.reloc 1b + 1, R_X86_64_32S, "twin_vm:x"

### a relocation behind the code
# refuse: elf-relocation
# from: gABI chapter 4
1: ret
.reloc 1b + 1, R_X86_64_32S, "twin_vm:x"

### a relocation on an 8-bit constant
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_8)
1: add $0, %eax
ret
.reloc 1b + 2, R_X86_64_8, "twin_vm:x"

### a relocation on a 16-bit constant
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_16)
1: mov $0, %ax
ret
.reloc 1b + 2, R_X86_64_16, "twin_vm:x"

### a relocation on a short jump
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_PC8)
1: jmp 2f
2: ret
.reloc 1b + 1, R_X86_64_PC8, f

### a relocation on a loop
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_PC8)
1: loop 1b
ret
.reloc 1b + 1, R_X86_64_PC8, f

### two relocations of one operand
# refuse: P2-relocation
# from: gABI chapter 4 (composed relocations)
1: mov $0, %eax
ret
.reloc 1b + 1, R_X86_64_32S, "twin_vm:x"
.reloc 1b + 1, R_X86_64_32S, "twin_vm:y"

### two relocations of one instruction
# refuse: P2-relocation
# from: contract, relocations in code
1: movq $0, 0x1000(%rax)
ret
.reloc 1b + 3, R_X86_64_32S, "twin_vm:x"
.reloc 1b + 7, R_X86_64_32S, "twin_vm:y"

### a relocation that does nothing, on an operand
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_NONE)
1: mov $0, %eax
ret
.reloc 1b + 1, R_X86_64_NONE, "twin_vm:x"

### a size
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_SIZE32)
1: mov $0, %eax
ret
.reloc 1b + 1, R_X86_64_SIZE32, f

### a size of 64 bits
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_SIZE64)
1: movabs $0, %rax
ret
.reloc 1b + 2, R_X86_64_SIZE64, f

### a zero-extended address
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_32)
1: mov $0, %eax
ret
.reloc 1b + 1, R_X86_64_32, "twin_vm:x"

### an entry of a global offset table
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_GOTPCREL)
mov imported@GOTPCREL(%rip), %rax
ret

### a call through a global offset table, which a linker may relax
# refuse: P2-indirect
# from: psABI, appendix B (R_X86_64_GOTPCRELX)
call *imported@GOTPCREL(%rip)
ret

### a call with a GOT's relocation
# refuse: P2-relocation
# from: psABI table 4.9
1: call 2f
2: ret
.reloc 1b + 1, R_X86_64_GOTPCREL, imported

### an offset in thread-local storage
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_TPOFF32)
1: mov $0, %eax
ret
.reloc 1b + 1, R_X86_64_TPOFF32, variable

### a module's thread-local storage
# refuse: object-symbol
# from: psABI table 4.9 (R_X86_64_TLSGD)
lea variable@TLSGD(%rip), %rdi
ret

### a copied symbol
# refuse: elf-unsupported
# from: psABI table 4.9 (R_X86_64_COPY)
1: movabs $0, %rax
ret
.reloc 1b + 2, R_X86_64_COPY, "twin_vm:x"

### a slot of a jump table
# refuse: elf-unsupported
# from: psABI table 4.9 (R_X86_64_JUMP_SLOT)
1: movabs $0, %rax
ret
.reloc 1b + 2, R_X86_64_JUMP_SLOT, imported

### a base address added
# refuse: elf-unsupported
# from: psABI table 4.9 (R_X86_64_RELATIVE)
1: movabs $0, %rax
ret
.reloc 1b + 2, R_X86_64_RELATIVE, f

### a function that computes the value
# refuse: elf-unsupported
# from: psABI table 4.9 (R_X86_64_IRELATIVE)
1: movabs $0, %rax
ret
.reloc 1b + 2, R_X86_64_IRELATIVE, f

### an own function's address as a constant
# refuse: P2-relocation
# from: contract P2 (data holds dom0's addresses)
mov $f, %rdi
ret

### an own function's address as a constant of 64 bits
# refuse: P2-relocation
# from: contract P2
movabs $f, %rdi
ret

### the distance to a symbol in dom0
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_PC32)
lea "twin_vm:x"(%rip), %rax
ret

### a routine's address as a constant
# refuse: P2-relocation
# from: contract P2
mov $imported, %rdi
ret

### a runtime entry's address as a constant
# refuse: P2-relocation
# from: contract P5
mov $twin_bug, %rdi
ret

### a jump to a symbol in dom0
# refuse: P2-relocation
# from: contract P2
jmp "twin_vm:f"

### a routine, entered behind its start
# refuse: P2-relocation
# from: psABI table 4.9 (the addend)
call imported + 4
ret

### a routine, entered by an addend that wraps
# refuse: P2-relocation
# from: gABI chapter 4 (r_addend)
1: call 2f
2: ret
.reloc 1b + 1, R_X86_64_PLT32, imported + 0x7ffffffffffffffc

### an own function by an addend that wraps
# refuse: P2-relocation
# from: gABI chapter 4 (r_addend)
1: call 2f
2: ret
.reloc 1b + 1, R_X86_64_PLT32, f + 0x7fffffffffffffff

### an own function by an addend out of the section
# refuse: P2-target
# from: gABI chapter 4 (r_addend)
1: call 2f
2: ret
.reloc 1b + 1, R_X86_64_PLT32, f + 0x1000

### a branch that is none, relocated like one
# refuse: P2-relocation
# from: psABI table 4.9
1: mov $0, %eax
ret
.reloc 1b + 1, R_X86_64_PC32, imported - 4

### the operand of a jump, relocated like a constant
# refuse: P2-relocation
# from: psABI table 4.9
1: call 2f
2: ret
.reloc 1b + 1, R_X86_64_32S, "twin_vm:x"

### a conditional call of a runtime entry
# refuse: P2-callee
# from: crates/abi, names
je twin_slow_rax
ret

### a mask that the loader fills in
# refuse: P1-bit-offset
# from: contract P1
{T:(%rdi)}
and $"twin_vm:x", %rsi
bts %rsi, (%rax)
ret

### a check's bound that the loader fills in
# refuse: P5-table
# from: contract P1
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
1: cmp $0x7ffffff, %rax
ja 2f
add twin_stlb+8(%rcx), %rax
2: ret
.reloc 1b + 2, R_X86_64_32S, "twin_vm:x"

### a displacement from a translation that the loader fills in
# refuse: P1-untranslated
# from: contract P1
{T:(%rdi)}
1: mov 0x1000(%rax), %rcx
ret
.reloc 1b + 3, R_X86_64_32S, "twin_vm:x"

### a frame's size that the loader fills in
# refuse: P4-rsp
# from: contract P4
1: sub $0x1000, %rsp
ret
.reloc 1b + 3, R_X86_64_32S, "twin_vm:x"

### a null symbol
# refuse: P2-relocation
# from: gABI chapter 4 (STN_UNDEF)
1: mov $0, %eax
ret
.reloc 1b + 1, R_X86_64_32S, 0

### a call to an absolute address
# refuse: P2-relocation
# from: gABI chapter 4 (STN_UNDEF)
1: call 2f
2: ret
.reloc 1b + 1, R_X86_64_PC32, 0x1000

### a code section by its symbol
# accept
# from: docs/spec/object.md, relocations in code
{KEEP}
call .text.b
{RET}
.section .text.b, "ax", @progbits
ret

### a code section by its symbol, in the middle of an instruction
# refuse: P2-target
# from: docs/spec/object.md, relocations in code
call .text.b + 1
ret
.section .text.b, "ax", @progbits
xor %eax, %eax
ret

### another section's frame
# refuse: P4-frame
# from: contract P2
push %rbx
call .text.b
pop %rbx
ret
.section .text.b, "ax", @progbits
pop %rax
pop %rbx
ret

### an entry of a table of methods, for a linker that drops what nobody calls
# refuse: elf-unsupported
# from: binutils, R_X86_64_GNU_VTENTRY
mov $0, %eax
.vtable_entry f, 0
ret

### an offset in a table of procedures
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_PLTOFF64)
1: movabs $0, %rax
ret
.reloc 1b + 2, R_X86_64_PLTOFF64, imported

### an offset from the global offset table
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_GOTOFF64)
1: movabs $0, %rax
ret
.reloc 1b + 2, R_X86_64_GOTOFF64, f

### the distance to the global offset table
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_GOTPC32)
1: lea 0x1000(%rdi), %rax
ret
.reloc 1b + 3, R_X86_64_GOTPC32, "twin_vm:x"

### a call that a linker replaces, by a descriptor of thread-local storage
# refuse: P2-relocation
# from: psABI table 4.9 (R_X86_64_TLSDESC_CALL)
1: mov %rdi, %rax
ret
.reloc 1b, R_X86_64_TLSDESC_CALL, "twin_vm:x"

### a comment's address
# refuse: P2-relocation
# from: gABI chapter 4
mov $.comment, %rdi
ret
.section .comment, "MS", @progbits, 1
.asciz "x"
.text

### a comment that is relocated
# refuse: P2-relocation
# from: gABI chapter 4
ret
.section .comment, "", @progbits
.long f
.text

### a large common block
# refuse: elf-unsupported
# from: psABI 4.2 (SHN_X86_64_LCOMMON)
ret
.largecomm shared, 8, 8

### a long nop whose address the loader fills in, and nobody reads
# accept
# from: docs/spec/object.md, relocations in code
1: nopl 0x1000(%rax)
ret
.reloc 1b + 3, R_X86_64_32S, "twin_vm:x"
