### a function's symbol in the middle of another's frame
# refuse: P4-depth
# from: issue 14.6 (a loader that enters local functions by name)
push %rbx
jmp g
.type g, @function
g: pop %rbx
ret

### the same place with a label
# accept
# from: issue 14.6
push %rbx
jmp g
g: pop %rbx
ret

### a function's symbol that only a jump from a frame leads to
# refuse: P4-frame
# from: issue 14.6
push %rbx
test %edi, %edi
jne g
pop %rbx
ret
.type g, @function
g: lea 16(%rsp), %rsp
ret

### a cold part that calls itself a function
# refuse: P4-depth
# from: gcc -freorder-blocks-and-partition
push %rbx
test %edi, %edi
jne f.cold
1: pop %rbx
ret
.section .text.unlikely, "ax", @progbits
.type f.cold, @function
f.cold: xor %eax, %eax
jmp .text + 0x9

### a cold part with a label
# accept
# from: gcc -freorder-blocks-and-partition
push %rbx
test %edi, %edi
jne f.cold
1: pop %rbx
ret
.section .text.unlikely, "ax", @progbits
f.cold: xor %eax, %eax
jmp .text + 0x9

### a function of one instruction that nothing calls
# refuse: P1-untranslated
# from: issue 14.6
ret
.type g, @function
g: mov %rdi, (%rsi)
ret

### a function that nothing calls, and good
# accept
# from: issue 14.6
ret
.type g, @function
g: xor %eax, %eax
ret

### a function's symbol inside an instruction
# refuse: P2-target
# from: gABI chapter 4 (st_value)
1: movabs $0xc30b0f, %rax
ret
.type g, @function
.set g, 1b + 2

### a function's symbol where the section ends
# refuse: P2-target
# from: gABI chapter 4 (st_value)
ret
.type g, @function
g:

### a function's symbol behind the section, in what is loaded next
# refuse: elf-symbol
# from: gABI chapter 4 (st_value)
ret
.type g, @function
.set g, f + 0x1000

### a function's symbol before the section
# refuse: elf-symbol
# from: gABI chapter 4 (st_value)
ret
.type g, @function
.set g, f - 1

### a function of no section's size, which nobody is to believe
# accept
# from: gABI chapter 4 (st_size)
ret
.type g, @function
g: ret
.size g, 0x7fffffffffffffff

### a function without a size
# accept
# from: gABI chapter 4 (st_size)
ret
.type g, @function
g: ret
.size g, 0

### a function whose size ends in an instruction
# accept
# from: gABI chapter 4 (st_size)
ret
.type g, @function
g: xor %eax, %eax
ret
.size g, 1

### a function in the codemap's section
# refuse: object-symbol
# from: issue 14.6
ret
.section .twin.codemap, "a", @progbits
.type g, @function
g:
.quad "twin_vm:.text", f

### a function in the note
# refuse: object-symbol
# from: issue 14.6
ret
.section .note.twin
.type g, @function
g:
.text

### a function in a section that is not loaded
# refuse: object-symbol
# from: gABI chapter 4
ret
.section .comment, "", @progbits
.type g, @function
g: .byte 0xc3
.text

### a visible name without a type, in the middle of a frame
# refuse: P4-frame
# from: gABI chapter 4 (STT_NOTYPE)
push %rbx
.globl g
g: pop %rbx
ret

### a visible object among the code
# refuse: P4-frame
# from: gABI chapter 4 (STT_OBJECT)
push %rbx
.globl g
.type g, @object
g: pop %rbx
ret

### a hidden name, which is global all the same
# refuse: P4-frame
# from: gABI chapter 4 (STV_HIDDEN)
push %rbx
.globl g
.hidden g
g: pop %rbx
ret

### a weak name in the middle of a frame
# refuse: P4-frame
# from: gABI chapter 4 (STB_WEAK)
push %rbx
.weak g
g: pop %rbx
ret

### a unique name
# refuse: object-symbol
# from: gABI, GNU extension (STB_GNU_UNIQUE)
ret
.type g, @gnu_unique_object
g: ret

### an indirect function, whose resolver the loader would run
# refuse: object-symbol
# from: psABI 4.4.1 (R_X86_64_IRELATIVE), STT_GNU_IFUNC
ret
.type g, @gnu_indirect_function
g: ret

### a function in thread-local storage
# refuse: object-symbol
# from: gABI chapter 4 (STT_TLS)
ret
.type g, @tls_object
g: ret

### an alias of a function
# accept
# from: gABI chapter 4
ret
.globl g
.set g, f

### an alias one byte on
# refuse: P2-target
# from: gABI chapter 4
xor %eax, %eax
ret
.globl g
.set g, f + 1

### a local function by a hot routine's name
# accept
# from: issue 14.6 (the loader looks in the hot routines first)
ret
.type hot_transmit, @function
hot_transmit: ret

### a local function by a runtime entry's name, entered mid-frame
# refuse: P4-depth
# from: crates/abi, names
push %rbx
jmp twin_slow_rax
.type twin_slow_rax, @function
twin_slow_rax: pop %rbx
ret

### a visible function by a runtime entry's name
# refuse: object-symbol
# from: crates/abi, names
ret
.globl twin_stlb_call
.type twin_stlb_call, @function
twin_stlb_call: ret

### a visible name in dom0
# refuse: elf-symbol
# from: crates/abi, names
ret
.globl "twin_vm:x"
.set "twin_vm:x", f + 0x1000

### an absolute address by name
# refuse: object-symbol
# from: gABI chapter 4 (SHN_ABS)
.set fixed, 0x1000
.globl fixed
call fixed
ret

### a common block
# refuse: object-symbol
# from: gABI chapter 4 (SHN_COMMON)
ret
.comm shared, 8, 8

### a thunk that jumps where a register says
# refuse: P2-relocation
# from: arch/x86/lib/retpoline.S
call __x86_indirect_thunk_rax
ret

### a thunk that returns
# refuse: P2-relocation
# from: arch/x86/lib/retpoline.S
jmp __x86_return_thunk

### a thunk by which a kernel replaces another, where its processor needs that
# refuse: P2-relocation
# from: arch/x86/lib/retpoline.S (indirect target selection)
jmp __x86_indirect_its_thunk_rax

### a thunk of assembly in older kernels
# refuse: P2-relocation
# from: arch/x86/lib/retpoline.S of Linux 5.12
jmp __x86_retpoline_rax

### a thunk for code that runs before the kernel's has its addresses
# refuse: P2-relocation
# from: arch/x86/boot/startup/Makefile
jmp __pi___x86_indirect_thunk_rax

### a thunk of a compiler's own
# refuse: P2-relocation
# from: LLVM, lib/Target/X86/X86IndirectThunks.cpp
jmp __llvm_retpoline_r11

### a thunk of a compiler's own, of another mitigation
# refuse: P2-relocation
# from: LLVM, lib/Target/X86/X86IndirectThunks.cpp
je __llvm_lvi_thunk_r11
ret

### a thunk by which a kernel replaces one that returns
# refuse: P2-relocation
# from: arch/x86/lib/retpoline.S (srso_alias_return_thunk)
jmp srso_alias_return_thunk

### the table of global offsets as a routine, which kernels make zero of
# refuse: P2-relocation
# from: kernel/module/main.c (simplify_symbols)
{KEEP}
1: call 2f
2: {RET}
.reloc 1b + 1, R_X86_64_PLT32, _GLOBAL_OFFSET_TABLE_ - 4

### a routine whose name has only a part of such a thunk's
# accept
# from: arch/x86/lib/retpoline.S
{KEEP}
call count_return_thunks
{RET}

### a name of the runtime that is none of its entries
# refuse: object-symbol
# from: runtime/core/internal.h
call twin_unwind
ret

### the way back into the host, by name
# refuse: object-symbol
# from: runtime/core/entry_x86_64.S
jmp twin_driver_return

### a slow path for the stack pointer
# refuse: object-symbol
# from: crates/abi, names
call twin_slow_rsp
ret

### a slow path for half a register
# refuse: object-symbol
# from: crates/abi, names
call twin_slow_eax
ret
