/* What the kernel enters by its name. */

### a function that is jumped to with a frame, and that .BTF names
# refuse: P4-depth
# from: Linux 6.1 kernel/bpf/verifier.c, add_kfunc_call: kallsyms_lookup_name of a FUNC's name
sub $24, %rsp
jmp g
.type g,@function
g: add $24, %rsp
ret
.size g,.-g
.section .BTF,"",@progbits
.short 0xeb9f
.byte 1, 0
.long 24, 0, 28, 28, 3
.long 0, 0x0d000000, 0
.long 1, 0x0c000000, 1
.long 0
.byte 0
.asciz "g"
.text

### the same with an empty frame
# accept
# from: control: a tail call
sub $24, %rsp
add $24, %rsp
jmp g
.type g,@function
g: sub $24, %rsp
add $24, %rsp
ret
.size g,.-g
.section .BTF,"",@progbits
.short 0xeb9f
.byte 1, 0
.long 24, 0, 28, 28, 3
.long 0, 0x0d000000, 0
.long 1, 0x0c000000, 1
.long 0
.byte 0
.asciz "g"
.text

### a function that is jumped to with a frame, and that another module's .BTF may name
# refuse: P4-depth
# from: ibid.: names of vmlinux's .BTF and of every module's are looked up in all modules
sub $24, %rsp
jmp g
.type g,@function
g: add $24, %rsp
ret
.size g,.-g

### code that is jumped to with a frame
# accept
# from: control: it has no name
sub $24, %rsp
jmp .Lg
.Lg: add $24, %rsp
ret

### a function that relies on a check before the jump to it
# refuse: P1-untranslated
# from: entered by its name, a register holds what the caller has left there
{T} jmp g
.type g,@function
g: mov %rdx, (%rax)
ret
.size g,.-g

### a visible name without a type that is jumped to with a frame
# refuse: P4-depth
# from: Linux 6.1 kernel/module/kallsyms.c, find_kallsyms_symbol_value: of any type
.globl g
sub $24, %rsp
jmp g
g: add $24, %rsp
ret

### an object in code that is jumped to with a frame
# refuse: P4-depth
# from: ibid.
.type g,@object
sub $24, %rsp
jmp g
g: add $24, %rsp
ret

### a cold part
# accept
# from: gcc -freorder-blocks-and-partition: no .BTF names one
sub $24, %rsp
jmp f.cold
.section .text.unlikely,"ax"
.type f.cold,@function
f.cold: add $24, %rsp
ret
.size f.cold,.-f.cold
.section .BTF,"",@progbits
.short 0xeb9f
.byte 1, 0
.long 24, 0, 0, 0, 3
.byte 0
.asciz "f"
.text

### a cold part that .BTF names
# refuse: P2-metadata
# from: Linux 6.5 kernel/bpf/btf.c, __btf_name_char_ok: names may have dots, in 5.10 since 5.10.188
sub $24, %rsp
jmp f.cold
.section .text.unlikely,"ax"
.type f.cold,@function
f.cold: add $24, %rsp
ret
.size f.cold,.-f.cold
.section .BTF,"",@progbits
.short 0xeb9f
.byte 1, 0
.long 24, 0, 28, 28, 8
.long 0, 0x0d000000, 0
.long 1, 0x0c000000, 1
.long 0
.byte 0
.asciz "f.cold"
.text

### a cold part of another module that .BTF names
# refuse: P2-metadata
# from: ibid.
ret
.section .BTF,"",@progbits
.asciz "ext4_iget.cold"
.text

### a cold part that .BTF.base names
# refuse: P2-metadata
# from: Linux 6.11 kernel/bpf/btf.c, btf_parse_module: the names that a module's .BTF begins with
ret
.section .BTF.base,"",@progbits
.asciz "f.cold"
.text

### the runtime's inner routine, named by .BTF
# refuse: P2-metadata
# from: it takes a word above its return address for an address to translate
ret
.section .BTF,"",@progbits
.asciz "twin_slow"
.text

### .BTF that is loaded
# refuse: P2-metadata
# from: it may be written before the kernel reads it, at the end of load_module
ret
.section .BTF,"aw",@progbits
.asciz "g"
.text

### .BTF that is not in the file
# refuse: P2-metadata
# from: any_section_objs: at its offset in the file are bytes of something else
ret
.section .BTF,"",@nobits
.skip 64
.text

### .BTF with relocations
# refuse: P2-metadata
# from: a linker would write something else
ret
.section .BTF,"",@progbits
.quad jiffies
.text

### a name in the runtime's code
# refuse: P5-runtime
# from: ibid.: in the middle of a slow path one word more is on the stack
ret
.section .twin.text,"ax",@progbits
g:
.text

### the function of a module that is called init_module
# refuse: P4-depth
# from: Linux 6.1 kernel/module/main.c, do_init_module: found by a relocation, entered with an empty frame
sub $24, %rsp
jmp init_module
.globl init_module
.type init_module,@function
init_module: add $24, %rsp
ret
.size init_module,.-init_module

### a label inside a frame
# refuse: P4-depth
# from: Linux 6.1 kernel/module/kallsyms.c, find_kallsyms_symbol_value: of any type
sub $24, %rsp
jmp g
g: add $24, %rsp
ret

### a function that is at a number
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/kallsyms.c, find_kallsyms_symbol_value: its value is the address
ret
.globl g
.type g,@function
g = 0x41414141

### a name of any type at a number
# refuse: P2-metadata
# from: ibid.
ret
g = 0x41414141

### the checksum of an export
# accept
# from: Linux 5.10 include/linux/export.h, __CRC_SYMBOL
ret
.globl __crc_g
__crc_g = 0x41414141

### a checksum that is an address
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/kallsyms.c, find_kallsyms_symbol_value
ret
.globl __crc_g
__crc_g = 0xffffffff81000000

### the hash of a type that assembly may refer to
# accept
# from: clang -fsanitize=kcfi
ret
.weak __kcfi_typeid_g
.set __kcfi_typeid_g, 0xb43abefd

### a hash of a type that is an address
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/kallsyms.c, find_kallsyms_symbol_value
ret
.weak __kcfi_typeid_g
.set __kcfi_typeid_g, 0xffffffff81000000

### a hash of a type that .BTF names
# refuse: P2-metadata
# from: ibid.
ret
.section .BTF,"",@progbits
.asciz "__kcfi_typeid_g"
.text

### a hash before a function that .BTF names
# refuse: P2-metadata
# from: ibid.
ret
.section .BTF,"",@progbits
.asciz "__cfi_g"
.text

### a checksum that .BTF names
# refuse: P2-metadata
# from: ibid.
ret
.section .BTF,"",@progbits
.asciz "__crc_g"
.text

### a name between which the kernel writes, in the translation table
# refuse: P2-metadata
# from: Linux 6.15 lib/alloc_tag.c, load_module; lib/codetag.c, get_section_range
ret
.pushsection .twin.stlb,"aw",@progbits
.globl __start_alloc_tags
__start_alloc_tags:
.popsection

### the same in code
# refuse: P2-metadata
# from: ibid.
ret
.globl __stop_alloc_tags
__stop_alloc_tags: ret

### the same around the module's own tags
# accept
# from: Linux 6.12 include/asm-generic/codetag.lds.h
ret
.pushsection .codetag.alloc_tags,"aw",@progbits
.globl __start_alloc_tags, __stop_alloc_tags
__start_alloc_tags: .fill 80, 1, 0
__stop_alloc_tags:
.popsection

### names around all that comes between two sections
# refuse: P2-metadata
# from: Linux 6.15 lib/alloc_tag.c, load_module; the translation table may lie there
ret
.pushsection .data.a,"aw",@progbits
.globl __start_alloc_tags
__start_alloc_tags: .quad 0
.popsection
.pushsection .data.z,"aw",@progbits
.globl __stop_alloc_tags
__stop_alloc_tags: .quad 0
.popsection

### one that is behind the end of its section
# refuse: elf-symbol
# from: ibid.
ret
.pushsection .codetag.alloc_tags,"aw",@progbits
.globl __start_alloc_tags, __stop_alloc_tags
__start_alloc_tags: .quad 0
.set __stop_alloc_tags, __start_alloc_tags + 0x1000
.popsection

### one that is a number
# refuse: P2-metadata
# from: ibid.
ret
.pushsection .codetag.alloc_tags,"aw",@progbits
.globl __start_alloc_tags, __stop_alloc_tags
.set __start_alloc_tags, 0x1000
__stop_alloc_tags: .quad 0
.popsection

### a part of a tag, whose counter is in the next section
# refuse: P2-metadata
# from: ibid.
ret
.pushsection .codetag.alloc_tags,"aw",@progbits
.globl __start_alloc_tags, __stop_alloc_tags
__start_alloc_tags: .quad 0
__stop_alloc_tags:
.popsection

### one of two names
# accept
# from: Linux 6.15 lib/codetag.c, codetag_module_init: there are no tags then
ret
.pushsection .codetag.alloc_tags,"aw",@progbits
.globl __start_alloc_tags
__start_alloc_tags: .quad 0
.popsection

### an export of the name of Xen's page, which no symbol has
# refuse: P2-metadata
# from: Linux 6.13 kernel/module/main.c, resolve_symbol: another module calls hypercall_page + 32, a place inside g
ret
.globl g
.type g,@function
g: .fill 32, 1, 0x90
ret
.section __ksymtab,"a"
.balign 4
.long g - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "hypercall_page"
.text

### an export whose name is what lies at a distance
# refuse: P2-metadata
# from: ibid.: no relocation, so that it may be any text
ret
.globl g
.type g,@function
g: ret
.section __ksymtab,"a"
.balign 4
.long g - ., 0x1000, 0
.text

### an export whose name may be written
# refuse: P2-metadata
# from: ibid.: the module itself writes another one there
ret
.globl g
.type g,@function
g: ret
.section __ksymtab,"a"
.balign 4
.long g - ., name - ., 0
.data
name: .asciz "g"
.text

### an export of the name of a handler
# refuse: P2-metadata
# from: Linux 5.15.224 arch/x86/mm/extable.c: it reads a type where another module names a routine, whose distance that is
ret
.globl g
.type g,@function
g: ret
.section __ksymtab,"a"
.balign 4
.long g - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "ex_handler_default"
.text

### a key of static calls at any address, for others
# refuse: P2-metadata
# from: Linux 5.10 kernel/static_call.c, static_call_add_module: another module names __SCK__x, whose low bits are flags
ret
.data
.balign 8
.byte 0
key: .quad 0, 0
.section __ksymtab,"a"
.balign 4
.long key - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "__SCK__x"
.text

### the same of the kernel's text
# refuse: P2-metadata
# from: ibid.
ret
.section __ksymtab,"a"
.balign 4
.long linux_banner - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "__SCK__x"
.text

### a function, data and a key of static calls under their names
# accept
# from: Linux 6.1 include/linux/static_call.h, EXPORT_STATIC_CALL
ret
.globl g
.type g,@function
g: ret
.data
.balign 8
key: .quad 0, 0
.section __ksymtab,"a"
.balign 4
.long g - ., name - ., 0
.long key - ., data - ., 0
.section __ksymtab_gpl,"a"
.balign 4
.long key - ., call - ., 0
.section __ksymtab_strings,"a"
name: .asciz "g"
data: .asciz "key"
call: .asciz "__SCK__x"
.text

### a table of exports that the module writes, another name into
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, find_exported_symbol_in_section
mov %edi, table+4(%rip)
ret
.section __ksymtab,"aw"
.balign 4
table: .long f - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "f"
.text

### an export of the name of a routine that is believed not to call a module back
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/lib/putuser.S, which has no __put_user_nocheck_4: another verified module then calls this one
ret
.section __ksymtab,"a"
.balign 4
.long f - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "__put_user_nocheck_4"
.text

### an export of the name by which the slow paths of checks return
# refuse: P2-metadata
# from: Linux 5.10 before its retpolines were those of 5.17: a kernel without the thunk runs f there, and another module's check goes on with what f leaves in the translated register
ret
.section __ksymtab,"a"
.balign 4
.long f - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "__x86_return_thunk"
.text

### an export of the name of a register's thunk
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/lib/retpoline.S, CONFIG_CALL_THUNKS: other kernels have none, and a check of a type reads where the register leads, though f is called
ret
.section __ksymtab,"a"
.balign 4
.long f - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "__x86_indirect_call_thunk_r11"
.text

### the same of older kernels
# refuse: P2-metadata
# from: Linux 5.12 arch/x86/lib/retpoline.S
ret
.section __ksymtab,"a"
.balign 4
.long f - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "__x86_retpoline_rax"
.text

### an export of the name from which kernels count where a direct call leads
# refuse: P2-metadata
# from: Linux 6.8 arch/x86/kernel/alternative.c, alt_replace_call: adds how far the target is from its own BUG_func
ret
.section __ksymtab,"a"
.balign 4
.long f - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "BUG_func"
.text

### an export of a name that only begins as one of these
# accept
# from: control
ret
.section __ksymtab,"a"
.balign 4
.long f - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "__x86_return_thunk_of_mine"
.text

### an export of a place by a number, which is whatever is so far from the table
# refuse: P2-metadata
# from: Linux 6.1 include/linux/export.h, kernel_symbol_value: adds the number to the field's address
ret
.section __ksymtab,"a"
.balign 4
.long 0x100, name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "g"
.text

### a routine of the kernel's, exported under another name
# accept
ret
.section __ksymtab,"a"
.balign 4
.long kfree - ., name - ., 0
.section __ksymtab_strings,"a"
name: .asciz "g"
.text

### a cold part inside of an instruction, which who probes it by its name has written over
# refuse: P2-target
# from: Linux 6.1 arch/x86/kernel/kprobes/core.c, can_probe: decodes from the nearest name on
movabs $0x0f00000789489090, %rax
.type f.cold,@function
.set f.cold, f + 2
ret

### a cold part without an instruction
# accept
ret
.type f.cold,@function
f.cold:
