### a jump among the calls whose depth is counted
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_call
1: jmp g
.pushsection .call_sites,"a"
.long 1b - .
.popsection

### a slow path that is taken for a call
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_call: decodes what it finds
ret
.pushsection .call_sites,"a"
.long twin_slow_rax - .
.popsection

### the operand of a call of the runtime, taken for a call
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_call: decodes what it finds
ret
.pushsection .call_sites,"a"
.long twin_slow_rax + 2 - .
.popsection

### the call that a slow path makes
# accept
# from: Linux 6.12 tools/objtool/check.c, annotate_call_site: every call of compiled code
ret
.pushsection .call_sites,"a"
.long twin_slow_rax + 1 - .
.popsection

### a call inside an instruction
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_call: decodes what it finds
1: movabs $0xe8, %rax
ret
.pushsection .call_sites,"a"
.long 1b + 2 - .
.popsection

### padding before a called function
# accept
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_dest
call h
ret
.skip 16, 0x90
.type h,@function
h: ret
.size h, . - h

### a jump into the padding before a called function
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_dest: writes one instruction over nine or more
call 3f
jmp 2f
int3
.skip 7, 0x90
2: .skip 9, 0x90
3: ret

### a jump to the beginning of the padding before a called function
# accept
# from: ibid.
call 3f
jmp 2f
int3
2: .skip 10, 0x90
3: ret

### an operand that looks like padding before a called function
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_dest: compares bytes, not instructions
call h
movabs $0x9090909090909090, %rax
nop
nop
.type h,@function
h: ret
.size h, . - h

### a long nop that swallows what is written before a function
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_dest
call h
.byte 0x0f,0x1f,0x80,0x90,0x90,0x90,0x90
.skip 8, 0x90
.type h,@function
h: ret
.size h, . - h

### padding that an alternative replaces in part
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_dest
call h
1: nop; nop; nop
9: .skip 13, 0x90
.type h,@function
h: ret
.size h, . - h
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### endbr that is none
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_ibt_endbr
1: mov %rdi, %rax
ret
.pushsection .ibt_endbr_seal,"a"
.long 1b - .
.popsection

### a direct call in the place of one through a pointer
# accept
# from: Linux 6.8 arch/x86/kernel/alternative.c, alt_replace_call
1: call *pv_ops+8(%rip)
9: ret
.pushsection .altinstr_replacement,"ax"
2: call BUG_func
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 117, 2
.byte 9b-1b, 3b-2b
.popsection

### a direct call in the place of something else
# refuse: P2-metadata
# from: Linux 6.8 arch/x86/kernel/alternative.c, alt_replace_call: reads the pointer from the site
1: nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: call BUG_func
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 117, 2
.byte 9b-1b, 3b-2b
.popsection

### a direct call that is counted from another function
# refuse: P2-metadata
# from: Linux 6.8 arch/x86/kernel/alternative.c, alt_replace_call: adds how far BUG_func is
1: call *slot(%rip)
9: ret
.type h,@function
h: movabs $0xc390, %rax
ret
.data
slot: .quad BUG_func + 2
.pushsection .altinstr_replacement,"ax"
2: call h
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 117, 2
.byte 9b-1b, 3b-2b
.popsection
.text

### the same, counted from another function of the kernel
# refuse: P2-metadata
# from: ibid.
1: call *pv_ops+8(%rip)
9: ret
.pushsection .altinstr_replacement,"ax"
2: call nop_func
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 117, 2
.byte 9b-1b, 3b-2b
.popsection

### a direct call through a pointer of the module's own
# refuse: P2-metadata
# from: ibid., and callthunks.c: the call that is replaced is one of BUG_func's padding by then
1: call *slot(%rip)
9: ret
movabs $0xc390, %rax
ret
.type h,@function
h: ret
.data
slot: .quad h
.pushsection .altinstr_replacement,"ax"
2: call BUG_func
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 117, 2
.byte 9b-1b, 3b-2b
.popsection
.pushsection .call_sites,"a"
.long 2b - .
.popsection
.text

### a direct call behind another replacement of its site
# refuse: P2-metadata
# from: Linux 6.8 arch/x86/kernel/alternative.c, alt_replace_call: a BUG if the call is gone
1: call *pv_ops+8(%rip)
9: ret
.pushsection .altinstr_replacement,"ax"
2: call BUG_func
3: sti
4:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 3b - .
.short 20, 0
.byte 9b-1b, 4b-3b
.long 1b - ., 2b - .
.short 117, 2
.byte 9b-1b, 3b-2b
.popsection

### a direct call before another replacement of its site, as the kernel has it
# accept
# from: Linux 6.8 arch/x86/include/asm/paravirt_types.h, ____PVOP_ALT_CALL
1: call *pv_ops+8(%rip)
9: ret
.pushsection .altinstr_replacement,"ax"
2: call BUG_func
3: sti
4:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 117, 2
.byte 9b-1b, 3b-2b
.long 1b - ., 3b - .
.short 20, 0
.byte 9b-1b, 4b-3b
.popsection

### a direct call of which a longer entry makes more
# refuse: P2-metadata
# from: Linux 6.10 arch/x86/kernel/alternative.c, apply_alternatives: the longest length counts
1: call *pv_ops+8(%rip)
9: nop
8: ret
.pushsection .altinstr_replacement,"ax"
2: call BUG_func
3: sti
4:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 117, 2
.byte 9b-1b, 3b-2b
.long 1b - ., 3b - .
.short 20, 0
.byte 8b-1b, 4b-3b
.popsection

### a flag that no kernel has
# refuse: P2-metadata
# from: Linux 6.3 arch/x86/include/asm/alternative.h
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20, 8
.byte 9b-1b, 3b-2b
.popsection

### one alternative inside another
# accept
# from: Linux 6.10 arch/x86/include/asm/alternative.h, ALTERNATIVE_2
1: nop; nop; nop
8: nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3: stac
nop
nop
4:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20, 0
.byte 8b-1b, 3b-2b
.long 1b - ., 3b - .
.short 21, 0
.byte 9b-1b, 4b-3b
.popsection

### one alternative inside another, with an instruction in the rest
# refuse: P2-metadata
# from: Linux 6.10 arch/x86/kernel/alternative.c, apply_alternatives: takes the longest
1: nop; nop; nop
8: xor %eax, %eax
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3: stac
nop
nop
4:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20, 0
.byte 8b-1b, 3b-2b
.long 1b - ., 3b - .
.short 21, 0
.byte 9b-1b, 4b-3b
.popsection

### a warning that passes its entry on
# accept
# from: Linux 7.3 arch/x86/include/asm/bug.h, __WARN_print_arg
lea 2f(%rip), %rdi
1: call __SCT__WARN_trap
ret
.pushsection __bug_table,"aw"
2: .long 1b - ., d - ., d - .
.short 1, 17
.popsection
.data
d: .quad 0
.text

### the entry of a warning that passes nothing on
# refuse: P2-metadata
# from: Linux 7.3 arch/x86/include/asm/bug.h, __WARN_flags
lea 2f(%rip), %rdi
1: ud2
ret
.pushsection __bug_table,"aw"
2: .long 1b - ., d - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### a place inside the entry of a warning
# refuse: P2-metadata
# from: Linux 7.3 arch/x86/include/asm/bug.h, __WARN_bug_entry
lea 2f + 8(%rip), %rdi
1: call __SCT__WARN_trap
ret
.pushsection __bug_table,"aw"
2: .long 1b - ., d - ., d - .
.short 1, 17
.popsection
.data
d: .quad 0
.text

### the runtime's stop as a bug
# accept
# from: Linux 6.1 lib/bug.c, report_bug
ret
.pushsection __bug_table,"aw"
.long twin_slow_rax - ., d - .
.short 0, 0
.popsection
.data
d: .quad 0
.text

### the runtime's stop as a warning, after which the driver goes on
# refuse: P2-metadata
# from: Linux 6.1 lib/bug.c, report_bug
ret
.pushsection __bug_table,"aw"
.long twin_slow_rax - ., d - .
.short 0, 1
.popsection
.data
d: .quad 0
.text

### a kernel that is known
# accept
# from: Linux 7.3 include/linux/vermagic.h
ret
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.4+deb13-amd64 SMP preempt mod_unload "
.popsection

### a kernel after those that are known
# refuse: P2-metadata
# from: Linux 7.3 include/linux/vermagic.h
ret
.pushsection .modinfo,"a"
.asciz "vermagic=7.4.0 SMP preempt mod_unload "
.popsection

### a kernel that does not say which one it is
# refuse: P2-metadata
# from: Linux 7.3 include/linux/vermagic.h
ret
.pushsection .modinfo,"a"
.asciz "vermagic=SMP preempt mod_unload "
.popsection

### unwinding in a format that is known
# accept
# from: Linux 6.4 scripts/orc_hash.sh
ret
.pushsection .orc_header,"a"
.byte 0xfe,0x5d,0x32,0xbf,0x58,0x1b,0xd6,0x3b,0x2c,0xa9,0xa5,0xc6,0x5b,0xa5,0xa6,0x25,0xea,0xb3,0xfe,0x24
.popsection
.pushsection .orc_unwind_ip,"a"
.long f - .
.popsection
.pushsection .orc_unwind,"a"
.short 8, 0, 0x205
.popsection

### unwinding in a format that nobody knows
# refuse: P2-metadata
# from: Linux 6.4 scripts/orc_hash.sh
ret
.pushsection .orc_header,"a"
.skip 20, 0x5a
.popsection
.pushsection .orc_unwind_ip,"a"
.long f - .
.popsection
.pushsection .orc_unwind,"a"
.short 8, 0, 0x205
.popsection

### a handler that only goes on at the fixup
# accept
# from: Linux 5.10 arch/x86/mm/extable.c
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., ex_handler_uaccess - .
.popsection

### a handler that loads a segment
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/mm/extable.c, ex_handler_clear_fs
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., ex_handler_clear_fs - .
.popsection

### a handler of the module's own
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/mm/extable.c, ex_fixup_handler
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., f - .
.popsection

### the trampoline of a static call in kernels that have no mark behind it
# accept
# from: Linux 5.10 arch/x86/include/asm/static_call.h
1: call __SCT__own
ret
.pushsection .static_call.text,"ax"
.globl __SCT__own
.type __SCT__own,@function
__SCT__own: .byte 0xe9
.reloc ., R_X86_64_PLT32, g - 4
.long 0
.size __SCT__own, . - __SCT__own
.popsection
.pushsection .static_call_sites,"aw"
.long 1b - ., k - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a warning in the layout of its kernel
# accept
# from: Linux 6.1 arch/x86/include/asm/bug.h
1: ud2
ret
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 0
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload "
.popsection
.data
d: .quad 0
.text

### a BUG that an older kernel reads as a warning: its flags are half of a distance
# refuse: P2-metadata
# from: Linux 6.1 lib/bug.c, report_bug: an entry has 12 bytes, not 16
1: ud2
mov %rax, (%rdi)
ret
.pushsection __bug_table,"aw"
.long 1b - ., d - ., d - .
.short 1, 0
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload "
.popsection
.data
d: .quad 0
.text

### a warning of an older kernel, which a newer one reads otherwise
# refuse: P2-metadata
# from: Linux 7.3 arch/x86/include/asm/bug.h, HAVE_ARCH_BUG_FORMAT: 16 bytes, not 12
1: ud2
2: ud2
3: ud2
4: ud2
ret
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 0
.long 2b - ., d - .
.short 1, 0
.long 3b - ., d - .
.short 1, 0
.long 4b - ., d - .
.short 1, 0
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=7.3.4+deb13-amd64 SMP preempt mod_unload "
.popsection
.data
d: .quad 0
.text

### an alternative of a newer kernel, whose flags an older one reads as lengths
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/include/asm/alternative.h, struct alt_instr: flags 1 is a site of one byte
mov %edx, %r9d
1: and $63, %r9d
9: bts %r9, -8(%rsp)
ret
.pushsection .altinstr_replacement,"ax"
2: and $63, %r9d
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20, 1
.byte 9b-1b, 3b-2b
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload "
.popsection

### an alternative in the layout of its kernel
# accept
# from: Linux 6.12 arch/x86/include/asm/alternative.h, struct alt_instr
1: nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20, 0
.byte 9b-1b, 3b-2b
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.12.38+deb13-amd64 SMP preempt mod_unload "
.popsection

### a type of handler that an older kernel takes for the distance to a routine
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/mm/extable.c, ex_fixup_handler: calls what it is the distance to
1: mov (%rdi), %rax
2: movabs $0xcc0000000000c3, %rax
ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., 0xfff23001
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.10.0-46-amd64 SMP mod_unload "
.popsection

### a routine of an older kernel, the distance to which a newer one takes for a type
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/mm/extable.c, fixup_exception
1: mov (%rdi), %rax
2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - ., ex_handler_uaccess - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload "
.popsection

### a description of the module that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, find_sec: takes the first that is loaded
ret
.pushsection .modinfo,"",@progbits
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload "
.popsection

### a description in which two kernels are named
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, get_next_modinfo
ret
.pushsection .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload "
.asciz "vermagic=7.3.4 SMP preempt mod_unload "
.popsection

### a module that names no kernel, which a kernel may load by force
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, check_modinfo; CONFIG_MODULE_FORCE_LOAD
ret
.pushsection .modinfo,"a"
.asciz "license=GPL"
.popsection
.pushsection .gnu.linkonce.this_module,"aw"
.skip 312
.popsection

### a kernel that is named by no text
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, get_next_modinfo: compares bytes
ret
.pushsection .modinfo,"a"
.asciz "vermagic=5.10.0-46-amd64 \377 mod_unload "
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload "
.popsection

### an operand that looks like padding before a function that a static call leads to
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, callthunks_translate_call_dest
1: call __SCT__own
movabs $0x9090909090909090, %rax
nop
nop
.type h,@function
h: ret
.size h, . - h
.pushsection .static_call_sites,"aw"
.long 1b - ., k - .
.popsection
.section .static_call.text,"ax"
.type __SCT__own,@function
__SCT__own: jmp f
.byte 0x0f,0xb9,0xcc
.data
.balign 16
k: .quad h, 0
.text

### the same before an exported function, which other modules call
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, is_coretext: of any module
movabs $0x9090909090909090, %rax
nop
nop
.globl h
.type h,@function
h: ret
.size h, . - h

### the padding of an exported function
# accept
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_dest
ret
.skip 16, 0x90
.globl h
.type h,@function
h: ret
.size h, . - h

### the entry of a warning in a register at ud1, which a newer kernel goes on behind
# refuse: P1-implicit
# from: Linux 7.3 arch/x86/kernel/traps.c, handle_bug: BUG_UD1_WARN asks for no table of the module
lea d(%rip), %rax
test %rsi, %rsi
je 2f
1: .byte 0x67,0x48,0x0f,0xb9,0x3a
jmp 3f
2: {T}
3: mov (%rax), %rcx
ret
.data
d: .quad 0, 0
.text

### padding before a function that begins with a jump's last byte in the section before
# refuse: P2-metadata
# from: Linux 6.15 arch/x86/kernel/callthunks.c, patch_dest: 9 bytes, in whatever section
ret
.section .text.a,"ax",@progbits
.type a,@function
a: .fill 110, 1, 0x90
.byte 0xeb, 0x90
.section .text.b,"ax",@progbits
.fill 8, 1, 0x90
.globl h
.type h,@function
h: ret
.text

### the same over a section between them
# refuse: P2-metadata
# from: ibid.
ret
.section .text.a,"ax",@progbits
.type a,@function
a: .fill 110, 1, 0x90
.byte 0xeb, 0x90
.section .text.m,"ax",@progbits
.fill 8, 1, 0x90
.section .text.b,"ax",@progbits
.globl h
.type h,@function
h: ret
.text

### the same before the runtime, whose first slow path is called
# refuse: P2-metadata
# from: ibid.
ret
.section .text.a,"ax",@progbits
.type a,@function
a: .fill 110, 1, 0x90
.byte 0xeb, 0x90
.fill 16, 1, 0x90
.text

### padding of two sections before a function, all of it nops
# accept
# from: ibid.
ret
.section .text.a,"ax",@progbits
.type a,@function
a: ret
.fill 8, 1, 0x90
.section .text.b,"ax",@progbits
.fill 8, 1, 0x90
.globl h
.type h,@function
h: ret
.text

### a static branch in the padding of the section before
# refuse: P2-metadata
# from: ibid.
ret
.section .text.a,"ax",@progbits
.type a,@function
a: jmp 1f
2: ret
1: .byte 0x66, 0x90
ret
.fill 8, 1, 0x90
3: .byte 0x66, 0x90
.section .text.b,"ax",@progbits
.fill 8, 1, 0x90
.globl h
.type h,@function
h: ret
.pushsection __jump_table,"aw"
.balign 8
.long 3b - ., 2b - .
.quad key - .
.popsection
.text

### a short static branch of kernels that have long ones alone
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/kernel/jump_label.c, JUMP_LABEL_NOP_SIZE
1: .byte 0x66, 0x90
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key - .
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.10.0-28-amd64 SMP mod_unload modversions "
.popsection

### a function that returns, which the kernel takes for a trampoline, and control behind it
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/kernel/static_call.c, __static_call_validate: a return; include/linux/tracepoint-defs.h, static_call_tramp
jmp .Lg
.type t,@function
t: ret
.Lg: nop; nop; nop; nop
ret
.section __tracepoints,"aw"
.balign 8
tp: .quad 0, k, t
.section __tracepoints_ptrs,"a"
.long tp - .
.data
.balign 16
k: .quad 0, 0
.section .modinfo,"a"
.asciz "vermagic=5.10.0-46-amd64 SMP mod_unload modversions "
.text

### the same with nothing behind it
# accept
# from: control
call t
ret
.type t,@function
.balign 8, 0xcc
t: ret
int3; int3; int3; int3
.section __tracepoints,"aw"
.balign 8
tp: .quad 0, k, t
.section __tracepoints_ptrs,"a"
.long tp - .
.data
.balign 16
k: .quad 0, 0
.section .modinfo,"a"
.asciz "vermagic=5.10.0-46-amd64 SMP mod_unload modversions "
.text

### the same in a kernel whose trampolines have a mark behind them
# accept
# from: Linux 5.18 arch/x86/kernel/static_call.c, tramp_ud
jmp .Lg
.type t,@function
t: ret
.Lg: nop; nop; nop; nop
ret
.section __tracepoints,"aw"
.balign 8
tp: .quad 0, k, t
.section __tracepoints_ptrs,"a"
.long tp - .
.data
.balign 16
k: .quad 0, 0
.section .modinfo,"a"
.asciz "vermagic=5.18.0-1-amd64 SMP mod_unload modversions "
.text

### a paravirtual call of iret
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/kernel/paravirt.c, paravirt_patch_default: makes a jump of it
1: call *pv_ops+8*32
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 32, 9b-1b
.skip 6
.popsection
.pushsection .modinfo,"a"
.asciz "vermagic=5.10.0-46-amd64 SMP mod_unload modversions "
.popsection

### the same without the table
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/include/asm/paravirt_types.h: swapgs, with what the kernel's own code may not have
call *pv_ops+0x108(%rip)
ret
.pushsection .modinfo,"a"
.asciz "vermagic=5.12.0-1-amd64 SMP mod_unload modversions "
.popsection

### a jump to it
# refuse: P2-metadata
# from: ibid.: in releases of 5.10 iret is this one
jmp *pv_ops+0xf8
.pushsection .modinfo,"a"
.asciz "vermagic=5.10.0-46-amd64 SMP mod_unload modversions "
.popsection

### the operations beside them
# accept
# from: control
call *pv_ops+0xf0
call *pv_ops+0x110
ret
.pushsection .modinfo,"a"
.asciz "vermagic=5.10.0-46-amd64 SMP mod_unload modversions "
.popsection

### the same numbers in a kernel that has other operations there
# accept
# from: Linux 5.13 arch/x86/include/asm/paravirt_types.h
call *pv_ops+0x100
ret
.pushsection .modinfo,"a"
.asciz "vermagic=5.13.0-1-amd64 SMP mod_unload modversions "
.popsection

### a function that returns, in a kernel without marks, whose trampolines data names
# refuse: P2-metadata
# from: Linux 5.10 kernel/tracepoint.c, tracepoint_add_func: writes over static_call_tramp of what it is given
lea tp(%rip), %rdi
call tracepoint_probe_register
jmp .Lg
.type t,@function
t: ret
.Lg: mov %rax, %rbx
nop
ret
.section __tracepoints,"aw"
.balign 8
tp: .quad 0, 0, 0, k, t, t, 0, 0, 0, 0
.data
.balign 16
k: .quad 0, 0
.section .modinfo,"a"
.asciz "vermagic=5.10.0-46-amd64 SMP mod_unload modversions "
.text

### the same by a routine that writes over code
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/kernel/static_call.c, arch_static_call_transform: exported
lea t(%rip), %rsi
xor %edi, %edi
lea f(%rip), %rdx
xor %ecx, %ecx
call arch_static_call_transform
jmp .Lg
.type t,@function
t: ret
.Lg: mov %rax, %rbx
nop
ret
.section .modinfo,"a"
.asciz "vermagic=5.10.0-46-amd64 SMP mod_unload modversions "
.text

### the same in an object that is to be linked
# accept
# from: control: it does not say for which kernel, and has neither tracepoints nor such a call
jmp .Lg
.type t,@function
t: ret
.Lg: mov %rax, %rbx
nop
ret

### a trampoline's mark that a relocation writes
# refuse: P2-metadata
# from: Linux 6.12 arch/x86/kernel/static_call.c, __static_call_validate: compares bytes in memory, not in the file
jmp .Lg
.type t,@function
t: ret
.Lg: nop
nop
.byte 0x48, 0xb8
2: .reloc 2b, R_X86_64_PC64, d + 0xccb90f
.quad 0
ret
.data
d: .quad t
.section .modinfo,"a"
.asciz "vermagic=6.12.0-46-amd64 SMP preempt mod_unload modversions "
.text

### the same where a branch's distance is the mark
# refuse: P2-metadata
# from: ibid.; psABI 4.4, R_X86_64_PLT32
jmp .Lg
.type t,@function
t: ret
.Lg: nop
nop
nop
jmp g
.section .text.far,"ax"
.type g,@function
g: ret
.text
.section .modinfo,"a"
.asciz "vermagic=6.12.0-46-amd64 SMP preempt mod_unload modversions "
.text

### the same without a relocation behind the function
# accept
# from: control
jmp .Lg
.type t,@function
t: ret
.Lg: nop
nop
movabs $0x1234567812345678, %rax
ret
.section .modinfo,"a"
.asciz "vermagic=6.12.0-46-amd64 SMP preempt mod_unload modversions "
.text

### nops before a called function that a relocation writes
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_dest: compares bytes in memory, not in the file
call h
ret
.byte 0x48, 0xb8
2: .reloc 2b, R_X86_64_PC64, d - 8029759185026514791
.quad 0
nop
nop
.type h,@function
h: ret
.section .rodata,"a"
.balign 8
d: .quad 0
.text

### the same of addresses of 32 bits, one behind the other
# refuse: P2-metadata
# from: ibid.
call h
ret
movl $d, e
.byte 0x90
.type h,@function
h: ret
.data
d: .quad 0
e: .quad 0
.text

### the distance of a branch before the nops before a called function
# accept
# from: control: a jump to a return thunk, and the padding of the next function
call h
ret
.type i,@function
i: jmp __x86_return_thunk
.fill 16, 1, 0x90
.type h,@function
h: ret

### the same where no mark is sought
# accept
# from: Linux 5.15: as viafb of Ubuntu's has it in .exit.text
jmp .Lg
.type t,@function
t: ret
.Lg: nop
nop
nop
jmp g
.section .text.far,"ax"
.type g,@function
g: ret
.text
.section .modinfo,"a"
.asciz "vermagic=5.15.0-25-generic SMP mod_unload modversions "
.text

### a call that the table of calls has more than once, each time for a padding further before what it calls
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, patch_call: takes what the last time made of it for the function
sub $8, %rsp
1: call g
add $8, %rsp
test %edi, %edi
je 2f
ret
.skip 13, 0x90
2: .skip 35, 0x90
.globl g
.type g,@function
g: ret
.section .call_sites,"a"
.long 1b - ., 1b - ., 1b - ., 1b - .
.text

### the same call once
# accept
# from: control
sub $8, %rsp
1: call g
add $8, %rsp
test %edi, %edi
je 2f
ret
.skip 13, 0x90
2: .skip 60, 0x90
.globl g
.type g,@function
g: ret
.section .call_sites,"a"
.long 1b - .
.text

### the same by replacements of it
# refuse: P2-metadata
# from: Linux 6.8 arch/x86/kernel/callthunks.c, patch_alt_call_sites
sub $8, %rsp
1: call g
4: add $8, %rsp
test %edi, %edi
je 2f
ret
.skip 13, 0x90
2: .skip 35, 0x90
.globl g
.type g,@function
g: ret
.section .altinstr_replacement,"ax"
3: call imported
call imported
call imported
call imported
.section .altinstructions,"a"
.long 1b - ., 3b + 0 - .
.long 20
.byte 4b - 1b, 5
.long 1b - ., 3b + 5 - .
.long 21
.byte 4b - 1b, 5
.long 1b - ., 3b + 10 - .
.long 22
.byte 4b - 1b, 5
.long 1b - ., 3b + 15 - .
.long 23
.byte 4b - 1b, 5
.section .modinfo,"a"
.asciz "vermagic=6.12.0-1-amd64 SMP preempt mod_unload modversions "
.text

### replacements of a call of another module's function
# refuse: P2-metadata
# from: ibid.; is_coretext takes any module's code
sub $8, %rsp
1: call imported
4: add $8, %rsp
ret
.section .altinstr_replacement,"ax"
3: call other
call other
call other
.section .altinstructions,"a"
.long 1b - ., 3b - .
.long 20
.byte 4b - 1b, 5
.long 1b - ., 3b + 5 - .
.long 21
.byte 4b - 1b, 5
.long 1b - ., 3b + 10 - .
.long 22
.byte 4b - 1b, 5
.section .modinfo,"a"
.asciz "vermagic=6.12.0-1-amd64 SMP preempt mod_unload modversions "
.text

### two replacements of it, as the kernel has for calls
# accept
# from: Linux 6.12 arch/x86/include/asm/alternative.h, alternative_call_2
sub $8, %rsp
1: call g
4: add $8, %rsp
test %edi, %edi
je 2f
ret
.skip 13, 0x90
2: .skip 60, 0x90
.globl g
.type g,@function
g: ret
.section .altinstr_replacement,"ax"
3: call imported
5: call imported
.section .altinstructions,"a"
.long 1b - ., 3b - .
.long 20
.byte 4b - 1b, 5
.long 1b - ., 5b - .
.long 21
.byte 4b - 1b, 5
.section .modinfo,"a"
.asciz "vermagic=6.12.0-1-amd64 SMP preempt mod_unload modversions "
.text

### two replacements of it, where kernels count calls besides: each time over 19 bytes
# refuse: P2-metadata
# from: Linux 6.2 arch/x86/kernel/callthunks.c, CALL_THUNKS_DEBUG_INC_CALLS in skl_call_thunk_template
sub $8, %rsp
1: call g
4: add $8, %rsp
test %edi, %edi
je 2f
ret
.skip 13, 0x90
2: .skip 35, 0x90
.globl g
.type g,@function
g: ret
.section .altinstr_replacement,"ax"
3: call imported
5: call imported
.section .altinstructions,"a"
.long 1b - ., 3b - .
.long 20
.byte 4b - 1b, 5
.long 1b - ., 5b - .
.long 21
.byte 4b - 1b, 5
.section .modinfo,"a"
.asciz "vermagic=6.12.0-1-amd64 SMP preempt mod_unload modversions "
.text

### a replacement before that of a function that writes its arguments: they are not one way
# accept
# from: Ubuntu's 6.17.0-1022-azure, hinic_close: its caller keeps rbp beside what it calls with
push %rbx
push %rbp
call g
pop %rbp
pop %rbx
ret
.pushsection .text.unlikely,"ax"
.type g,@function
g: sub $8, %rsp
1: call *pv_ops+8(%rip)
9: add $8, %rsp
ret
.type h,@function
h: sub $8, %rsp
3: call *pv_ops+8(%rip)
8: add $8, %rsp
movq $0, 8(%rsp)
movq $0, 16(%rsp)
ret
.popsection
.pushsection .altinstr_replacement,"ax"
2: call BUG_func
4: call BUG_func
5:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 117, 2
.byte 9b-1b, 4b-2b
.long 3b - ., 4b - .
.short 117, 2
.byte 8b-3b, 5b-4b
.popsection
.pushsection .text.k,"ax"
.globl k
.type k,@function
k: push %rbp
mov %rsp, %rbp
push %rdi
call *%rsi
mov -8(%rbp), %rax
leave
ret
.popsection
.data
.quad f

### a description whose last text goes on with what is behind it in the file, so that its kernel is another one
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, get_next_modinfo: gives where the text begins, and asks for no end
ret
.section .modinfo,"a"
.ascii "vermagic=6.1"
.text

### the same with an end
# accept
ret
.section .modinfo,"a"
.asciz "vermagic=6.1"
.text

### a description without an end, of a part of a module
# refuse: P2-metadata
# from: a linker puts another one's behind it
ret
.section .modinfo,"a"
.ascii "verm"
.text

### a trace entry behind endbr64, to a kernel without IBT inside of what it calls
# refuse: P2-metadata
# from: Debian's config-6.1.0-57-amd64; Linux 6.1 arch/x86/net/bpf_jit_comp.c, arch_prepare_bpf_trampoline: X86_PATCH_SIZE bytes behind the start, and is_endbr is false
endbr64
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection
.section .modinfo,"a"
.asciz "vermagic=6.1.0-57-amd64 SMP preempt mod_unload modversions "
.text

### the same at the start
# accept
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection
.section .modinfo,"a"
.asciz "vermagic=6.1.0-57-amd64 SMP preempt mod_unload modversions "
.text

### the same behind endbr64 in a kernel that has IBT
# accept
endbr64
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection
.section .modinfo,"a"
.asciz "vermagic=6.12.118+deb13-amd64 SMP preempt mod_unload modversions "
.text
