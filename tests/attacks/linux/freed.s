/* .init: what the kernel frees when the module has begun. The next module's code may be there then. */

### code that stays goes on in code that is gone by then
# refuse: P2-target
# from: Linux 6.1 kernel/module/main.c, do_init_module: free_initmem
jmp g
.section .init.text,"ax"
.type g,@function
g: ret
.text

### the same by a call
# refuse: P2-target
sub $8, %rsp
call g
add $8, %rsp
ret
.section .init.text,"ax"
.type g,@function
g: ret
.text

### the same by a condition
# refuse: P2-target
test %edi, %edi
je g
ret
.section .init.text,"ax"
.type g,@function
g: ret
.text

### the same by a name in another section that is freed
# refuse: P2-target
jmp g
.section .init.text.unlikely,"ax"
g: ret
.text

### code that is gone, and what it names, as code that is gone itself
# accept
# from: control
ret
.section .init.text,"ax"
.type g,@function
g: mov x(%rip), %rax
lea h(%rip), %rdi
sub $8, %rsp
call h
call imported
add $8, %rsp
jmp f
.type h,@function
h: ret
.section .init.data,"aw"
x: .quad 0
.text

### the address of code that is gone by then, told to a routine of the kernel
# refuse: P2-target
lea g(%rip), %rdi
jmp imported
.section .init.text,"ax"
.type g,@function
g: ret
.text

### data that is gone by then
# refuse: P1-address-form
mov %rdi, x(%rip)
ret
.section .init.data,"aw"
x: .quad 0
.text

### the same read
# refuse: P1-address-form
mov x(%rip), %rax
ret
.section .init.rodata,"a"
x: .quad 0
.text

### its address
# refuse: P1-address-form
mov $x, %rdi
jmp imported
.section .init.data,"aw"
x: .quad 0
.text

### a static branch to code that is gone by then
# refuse: P2-target
# from: Linux 6.1 kernel/jump_label.c, jump_entry_is_init: asks where the branch is, not where it leads
1: .byte 0x0f, 0x1f, 0x44, 0, 0
ret
.section .init.text,"ax"
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key - .
.popsection
.text

### a static branch in code that is gone itself
# accept
# from: control
ret
.section .init.text,"ax"
.type g,@function
g: .byte 0x0f, 0x1f, 0x44, 0, 0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long g - ., 2b - .
.quad key - .
.popsection
.text

### a fixup in code that is gone by then
# refuse: P2-target
# from: Linux 6.1 kernel/extable.c, trim_init_extable: asks where the instruction is, not its fixup
1: mov (%rdi), %rax
ret
.section .init.text,"ax"
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection
.text

### a fixup by way of code beside
# refuse: P2-target
1: mov (%rdi), %rax
ret
.section .init.text,"ax"
3: ret
.section .fixup,"ax"
2: jmp 3b
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection
.text

### the same for code that is gone itself
# accept
# from: Linux 5.10 arch/x86/include/asm/uaccess.h
ret
.section .init.text,"ax"
.type g,@function
g:
1: mov (%rdi), %rax
3: ret
.section .fixup,"ax"
2: mov $-14, %eax
jmp 3b
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection
.text

### code beside, in which a jump comes second
# refuse: P2-target
jmp 1f
.section .init.text,"ax"
2: ret
.section .altinstr_aux,"ax"
1: test %edi, %edi
je 3f
ret
3: jmp 2b
.text

### the same where only code that is gone leads to it
# accept
# from: Linux 6.1 arch/x86/include/asm/cpufeature.h, _static_cpu_has
ret
.section .init.text,"ax"
.type g,@function
g: jmp 1f
2: ret
.section .altinstr_aux,"ax"
1: test %edi, %edi
je 3f
ret
3: jmp 2b
.text

### code beside that has a name, by which the kernel calls it
# refuse: P2-target
ret
.section .init.text,"ax"
2: ret
.section .altinstr_aux,"ax"
g: jmp 2b
.text

### a replacement that leads to code that is gone by then
# refuse: P2-target
1: .byte 0x0f, 0x1f, 0x44, 0, 0
ret
.section .init.text,"ax"
ret
2: ret
.section .altinstr_replacement,"ax"
3: .byte 0xe9
.long 2b - . - 4
4:
.section .altinstructions,"a"
.long 1b - ., 3b - .
.short 20
.byte 5, 4b - 3b
.text

### the same in code that is gone itself
# accept
# from: control
ret
.section .init.text,"ax"
.type g,@function
g:
1: .byte 0x0f, 0x1f, 0x44, 0, 0
ret
2: ret
.section .altinstr_replacement,"ax"
3: .byte 0xe9
.long 2b - . - 4
4:
.section .altinstructions,"a"
.long 1b - ., 3b - .
.short 20
.byte 5, 4b - 3b
.text

### a key of static branches that is gone by then
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_del_module: it is none of the module's by then, and is followed
1: .byte 0x0f, 0x1f, 0x44, 0, 0
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad k - .
.popsection
.section .init.data,"aw"
.balign 16
k: .quad 0, 0
.text

### a key of static calls that is gone by then
# refuse: P2-metadata
# from: Linux 6.1 kernel/static_call_inline.c, static_call_del_module: follows key->mods
sub $8, %rsp
1: call __SCT__x
add $8, %rsp
ret
.section .static_call_sites,"aw"
.balign 8
.long 1b - ., k - .
.section .init.data,"aw"
.balign 16
k: .quad 0, 0
.text

### an export of code that is gone by then
# refuse: P2-metadata
# from: Linux 6.1 scripts/mod/modpost.c: warns of it
ret
.section .init.text,"ax"
.globl g
.type g,@function
g: ret
.section __ksymtab,"a"
.balign 4
.long g - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "g"
.text

### an export whose name is gone by then, where others may write one of theirs
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, find_exported_symbol_in_section
ret
.section .init.rodata,"a"
name: .asciz "f"
.section __ksymtab,"a"
.balign 4
.long f - ., name - ., 0
.text

### tags of allocations that are gone when they are counted
# refuse: P2-metadata
# from: Linux 6.15 include/linux/alloc_tag.h, alloc_tag_add: adds where the tag's word says
ret
.section .init.data,"aw"
.balign 8
.globl __start_alloc_tags, __stop_alloc_tags
__start_alloc_tags: .skip 40
__stop_alloc_tags:
.text

### a module whose end is gone by then
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, delete_module: mod->exit()
ret
.globl init_module, cleanup_module
.section .init.text,"ax"
.type init_module,@function
init_module: ret
.type cleanup_module,@function
cleanup_module: ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 0x138
.quad init_module
.org 1b + 0x340
.quad cleanup_module
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a module whose beginning is gone when it has begun
# accept
# from: control
ret
.globl init_module, cleanup_module
.section .init.text,"ax"
.type init_module,@function
init_module: ret
.section .exit.text,"ax"
.type cleanup_module,@function
cleanup_module: ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 0x138
.quad init_module
.org 1b + 0x340
.quad cleanup_module
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### an export whose name is in what the kernel reads in the file alone
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, rewrite_section_headers: .modinfo stays in the copy of the file, which is freed
ret
.section .modinfo,"a"
name: .asciz "f"
.section __ksymtab,"a"
.balign 4
.long f - ., name - ., 0
.text

### the same in what the kernel loads
# accept
ret
.section .rodata.name,"a"
name: .asciz "f"
.section __ksymtab,"a"
.balign 4
.long f - ., name - ., 0
.text

### an export of code that is gone by then, whose distance has the type of a branch's
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, __apply_relocate_add: R_X86_64_PLT32 is applied as R_X86_64_PC32
ret
.section .init.text,"ax"
.globl g
.type g,@function
g: ret
.section __ksymtab,"a"
.balign 4
.reloc ., R_X86_64_PLT32, g
.long 0, name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "g"
.text

### an export of data that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, simplify_symbols: it is in the copy of the file
ret
.section .kept.nowhere,"w",@progbits
x: .quad 0
.section __ksymtab,"a"
.balign 4
.long x - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "x"
.text

### an export of the module's own per-CPU data
# accept
ret
.section .data..percpu,"aw",@progbits
x: .quad 0
.section __ksymtab,"a"
.balign 4
.long x - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "x"
.text

### a key of static calls that is not loaded, exported
# refuse: P2-metadata
# from: Linux 5.10 kernel/static_call.c, static_call_add_module: another module's sites are added to what is there
ret
.section .kept.nowhere,"w",@progbits
.balign 8
key: .quad 0, 0
.section __ksymtab,"a"
.balign 4
.long key - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "__SCK__x"
.text

### the same in per-CPU data, whose address is a small number
# refuse: P2-metadata
# from: ibid.
ret
.section .data..percpu,"aw",@progbits
.balign 8
key: .quad 0, 0
.section __ksymtab,"a"
.balign 4
.long key - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "__SCK__x"
.text

### the same in the module's information
# refuse: P2-metadata
# from: ibid.
ret
.section .modinfo,"aw"
.balign 8
key: .quad 0, 0
.section __ksymtab,"a"
.balign 4
.long key - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "__SCK__x"
.text

### tags of allocations that are not loaded
# refuse: P2-metadata
# from: Linux 6.15 lib/alloc_tag.c, alloc_tag_module_unload: gives back what the tags' words say, in memory that others have
ret
.pushsection .kept.nowhere,"w",@progbits
.globl __start_alloc_tags, __stop_alloc_tags
__start_alloc_tags: .fill 80, 1, 0
__stop_alloc_tags:
.popsection

### tags of allocations in per-CPU data, whose address is a small number
# refuse: P2-metadata
# from: Linux 6.15 lib/alloc_tag.c, load_module: writes there
ret
.pushsection .data..percpu,"aw",@progbits
.globl __start_alloc_tags, __stop_alloc_tags
__start_alloc_tags: .fill 80, 1, 0
__stop_alloc_tags:
.popsection

### the address of what is not loaded
# refuse: P1-address-form
# from: Linux 6.1 arch/x86/kernel/module.c, __apply_relocate_add: writes 32 bits of a distance that has more, so it leads anywhere
lea x(%rip), %rdi
ret
.section .kept.nowhere,"",@progbits
x: .quad 0
.text

### the same of what is
# accept
lea x(%rip), %rdi
ret
.section .rodata.x,"a",@progbits
x: .quad 0
.text
