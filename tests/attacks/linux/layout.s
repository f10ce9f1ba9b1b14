### an alignment of 8 KiB
# refuse: object-section
# from: Linux 6.1 arch/x86/kernel/module.c: MODULE_ALIGN
ret
.data
.balign 8192
.quad 0
.text

### an alignment of a page
# accept
ret
.data
.balign 4096
.quad 0
.text

### sizes whose sum wraps
# refuse: object-size
# from: Linux 6.1 module_get_offset: 32 bits
ret
.section .bss.a,"aw",@nobits
.skip 0x7ff00000
.section .bss.b,"aw",@nobits
.skip 0x7ff00000
.section .bss.c,"aw",@nobits
.skip 0x200000
.text

### writable code
# refuse: object-section
# from: module_enforce_rwx_sections
ret
.section .wx,"awx"
ret
.text

### code that is not loaded
# refuse: object-section
ret
.section .nx,"x",@progbits
ret
.text

### code without bytes
# refuse: object-section
ret
.section .zx,"ax",@nobits
.skip 16
.text

### data with two relocations at one place
# refuse: object-section
# from: apply_relocate_add: the second is applied to what the first wrote
ret
.data
.reloc ., R_X86_64_64, f
.reloc ., R_X86_64_64, d
.quad 0
d: .quad 0
.text

### data with relocations that overlap
# refuse: object-section
# from: ibid.
ret
.data
.reloc ., R_X86_64_64, d
.reloc . + 4, R_X86_64_32S, d
.quad 0
d: .quad 0
.text

### code with two relocations in one field
# refuse: P2-relocation
# from: ibid.
.reloc . + 3, R_X86_64_PC32, d - 4
.byte 0x48,0x8b,0x05
.reloc ., R_X86_64_PC32, d - 4
.long 0
ret
.data
d: .quad 0
.text

### a relocation over an opcode
# refuse: P2-relocation
.reloc ., R_X86_64_PC32, d
nop; nop; nop; nop
ret
.data
d: .quad 0
.text

### a relocation of two bytes
# refuse: object-section
# from: module.c: no such type
ret
.data
.reloc ., R_X86_64_16, d
d: .quad 0
.text

### a relocation to the table of global offsets
# refuse: P2-relocation
# from: module.c: no such type
.byte 0x48,0x8b,0x05
.reloc ., R_X86_64_GOTPCREL, d - 4
.long 0
ret
.data
d: .quad 0
.text

### a second note
# refuse: object-foreign
ret
.section .note.twin,"",@note,unique,2
.long 5, 24, 1
.asciz "twin"
.balign 4
.long 2, 1, 64, 0
.text

### code that is compressed
# refuse: object-section
# from: gABI chapter 4, SHF_COMPRESSED: never with SHF_ALLOC
# whole
.section .note.twin,"",@note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 1, 0, 0
.section .text.x,"0x806",@progbits
.globl f
.type f,@function
f: ret

### data that is compressed
# refuse: object-section
# from: ibid.: the kernel loads what a linker would have expanded
# whole
.section .note.twin,"",@note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 1, 0, 0
.text
.globl f
.type f,@function
f: ret
.section .data.x,"0x803",@progbits
.quad 0

### relocations of a group, as of -fdebug-types-section, and of code that is linked once
# accept
# from: gABI chapter 4, SHF_GROUP; Linux 6.1 kernel/module/main.c, apply_relocations: asks for SHF_RELA_LIVEPATCH alone
call g
ret
.section .text.g,"axG",@progbits,g,comdat
.globl g
.type g,@function
g: call printk
ret
.section .debug_types,"G",@progbits,wt.1,comdat
.quad d
.data
d: .quad 0
.text

### code of which a linker keeps equal parts once
# refuse: object-section
# from: lld -r: what is behind the second ud2 has another place then, but the jump leads as far
.section .text.m,"axM",@progbits,8
.globl m
m: jmp 1f
.balign 8, 0xcc
ud2
.balign 8, 0xcc
1: ud2
.balign 8, 0xcc
.text
ret
