### code and its note
# accept
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret

### code that can be written
# refuse: object-section
# from: gABI chapter 4 (SHF_WRITE)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "awx", @progbits
ret

### code without bytes
# refuse: object-section
# from: gABI chapter 4 (SHT_NOBITS)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "ax", @nobits
.skip 16

### code that is a note
# refuse: object-section
# from: gABI chapter 4 (SHT_NOTE)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "ax", @note
ret

### code that is not loaded
# refuse: object-section
# from: gABI chapter 4 (SHF_ALLOC)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section other, "x", @progbits
ret

### code that a linker may merge
# refuse: object-section
# from: gABI chapter 4 (SHF_MERGE)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "axM", @progbits, 1
ret

### code that a linker may merge as strings
# refuse: object-section
# from: gABI chapter 4 (SHF_STRINGS)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "axMS", @progbits, 1
ret

### code of a group, which a linker may discard
# refuse: object-section
# from: gABI chapter 4 (SHF_GROUP)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "axG", @progbits, group, comdat
ret

### code with an order
# refuse: object-section
# from: gABI chapter 4 (SHF_LINK_ORDER)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "axo", @progbits, .text
ret

### code that is left out
# refuse: object-section
# from: gABI chapter 4 (SHF_EXCLUDE)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "axe", @progbits
ret

### code that is kept
# refuse: object-section
# from: gABI, GNU extension (SHF_GNU_RETAIN)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "axR", @progbits
ret

### code in thread-local storage
# refuse: object-section
# from: gABI chapter 4 (SHF_TLS)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "axT", @progbits
ret

### code that says it is compressed
# refuse: object-section
# from: gABI chapter 4 (SHF_COMPRESSED)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "ax0x800", @progbits
ret

### a flag that an operating system defines
# refuse: object-section
# from: gABI chapter 4 (SHF_MASKOS)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "ax0x1000000", @progbits
ret

### a flag that a processor defines
# refuse: object-section
# from: psABI 4.2 (SHF_X86_64_LARGE)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "axl", @progbits
ret

### two code sections of one name
# refuse: object-section
# from: gABI chapter 4 (names need not be unique)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "ax", @progbits, unique, 1
ret
.section .text.b, "ax", @progbits, unique, 2
ret

### functions that run when the object is loaded
# refuse: object-section
# from: gABI chapter 4 (SHT_INIT_ARRAY)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .init_array, "aw", @init_array
.quad f

### functions that run when it is unloaded
# refuse: object-section
# from: gABI chapter 4 (SHT_FINI_ARRAY)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .fini_array, "aw", @fini_array
.quad f

### functions that run before
# refuse: object-section
# from: gABI chapter 4 (SHT_PREINIT_ARRAY)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .preinit_array, "aw", @preinit_array
.quad f

### code that runs when the object is loaded, by its name
# refuse: object-section
# from: psABI 5.2 (.init)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .init, "ax", @progbits
.globl _init
_init: pop %rax
ret

### code of which a linker keeps one, by its name
# refuse: object-section
# from: binutils, bfd/elflink.c (_bfd_elf_section_already_linked)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .gnu.linkonce.t.g, "ax", @progbits
.globl g
g: ret

### code that a linker takes for a warning, by its name
# refuse: object-section
# from: binutils, bfd/elflink.c (elf_link_add_object_symbols)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .gnu.warning, "ax", @progbits
.globl g
g: ret

### code that a linker takes for a warning of a symbol
# refuse: object-section
# from: binutils, bfd/elflink.c (elf_link_add_object_symbols)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .gnu.warning.f, "ax", @progbits
.globl g
g: ret

### code out of which a linker takes entries, by its name
# refuse: object-section
# from: binutils, bfd/elf-eh-frame.c
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .eh_frame, "ax", @progbits
.globl g
g: ret

### code that a linker leaves out, by its name
# refuse: object-section
# from: lld, ELF/InputFiles.cpp
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .note.GNU-stack, "ax", @progbits
.globl g
g: ret

### code that makes a linker compile other code
# refuse: object-section
# from: binutils, ld/plugin.c
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .gnu.lto_main, "ax", @progbits
.globl g
g: ret

### code that a linker sorts among the functions that run at the start
# refuse: object-section
# from: binutils, ld/scripttempl/elf.sc
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .ctors, "ax", @progbits
.globl g
g: ret

### code in a table of the kernel
# refuse: object-section
# from: kernel/module/main.c (find_module_sections)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section __ex_table, "ax", @progbits
.globl g
g: ret

### code in per-CPU memory, by its name
# refuse: object-section
# from: kernel/module/main.c (simplify_symbols)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .data..percpu, "ax", @progbits
.globl g
g: ret

### a name that only begins like one of code
# refuse: object-section
# from: include/asm-generic/vmlinux.lds.h
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .texture, "ax", @progbits
.globl g
g: ret

### names of code
# accept
# from: include/asm-generic/vmlinux.lds.h
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.unlikely, "ax", @progbits
.globl g
g: ret

### a name of code that is left out when dom0 runs it
# accept
# from: docs/spec/payload.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .init.text, "ax", @progbits
.globl g
g: ret

### data
# refuse: object-section
# from: contract (data stays in dom0)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.data
.quad 1

### constants
# refuse: object-section
# from: contract (data stays in dom0)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .rodata, "a", @progbits
.quad 1

### zeroes
# refuse: object-section
# from: contract (data stays in dom0)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.bss
.skip 8

### an empty data section, as assemblers make
# accept
# from: GNU as
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.data
.bss

### the kernel's table of exceptions
# refuse: object-section
# from: arch/x86/include/asm/asm.h
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section __ex_table, "a", @progbits
.long f - ., f - ., 1

### unwinding tables
# refuse: object-section
# from: psABI 4.2.4
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .eh_frame, "a", @unwind
.long 0

### debugging information
# refuse: object-section
# from: DWARF 5
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .debug_info, "", @progbits
.long 0

### the assembler's comment
# accept
# from: GNU as
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.ident "made by hand"

### a second note
# refuse: object-section
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .note.twin, "a", @note, unique, 2
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 1, 0, 0

### a second note behind the first
# refuse: object-foreign
# from: gABI chapter 4 (note sections)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .note.twin
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 1, 0, 0

### a note's section with a relocation
# refuse: P2-relocation
# from: gABI chapter 4
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .note.twin
.reloc 20, R_X86_64_32, f

### a second codemap
# refuse: object-section
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f
.section .twin.codemap, "a", @progbits, unique, 2
.quad "twin_vm:.text", f

### a section of the runtime of another target
# refuse: object-section
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.stlb, "aw", @progbits
.skip 64

### code that is called like the runtime's of another target
# refuse: object-section
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.text, "ax", @progbits
.globl g
g: mov (%rdi), %rax
ret
