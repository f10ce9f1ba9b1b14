### a static branch with a key of its own
# accept
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a static branch with a key of the kernel
# accept
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key + 2 - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a key without a relocation
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module: the kernel writes to key->entries
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad 0x1000
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a key at the end of its section
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad k + 8 - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a key behind its section
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad k + 4096 - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a key in read-only data
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad r - .
.popsection
.section .rodata,"a"
.balign 16
r: .quad 0, 0
.text

### a key in code
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad f - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a key in the translation table
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module: it would write a tag
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad twin_stlb - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a key in the table of static branches
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
t:
.long 1b - ., 2b - .
.quad t - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a key at an absolute symbol
# refuse: P2-metadata
# from: issue 14.14
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad there - .
.popsection
.globl there
there = 0xffffffff81000000

### a key in per-CPU data
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, simplify_symbols
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad p - .
.popsection
.section .data..percpu,"aw"
.balign 16
p: .quad 0, 0
.text

### a key far behind a symbol of the kernel
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key + 0x40000000 - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### two static branches at one place
# refuse: P2-metadata
# from: ibid., __jump_label_patch: BUG
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad k - .
.long 1b - ., 2b - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a static branch to the middle of an instruction
# refuse: P2-metadata
# from: ibid.
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: mov $1, %eax
ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b+1 - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a static branch that is a jump elsewhere
# refuse: P2-metadata
# from: ibid.: expects a jump to the target
1: .byte 0xe9
.long 3f - . - 4
ret
2: ret
3: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a static branch of another length
# refuse: P2-metadata
# from: arch_jump_entry_size: BUG_ON
1: nopl (%rax)
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a static branch over another long nop
# refuse: P2-metadata
# from: __jump_label_patch: memcmp
1: .byte 0x66,0x0f,0x1f,0x04,0x00
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a static branch that loses the stack
# refuse: P4-return
1: push %rax; .byte 0x0f,0x1f,0x44,0,0
pop %rax
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b+1 - ., 2b - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a static branch out of the runtime
# refuse: P2-metadata
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long twin_slow_rax - ., 2b - .
.quad key - .
.popsection

### a static branch into the runtime
# refuse: P2-metadata
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., twin_slow_rax - .
.quad key - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a table of static branches without bytes
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module: entries of zeros, keys behind them
ret
.section __jump_table,"aw",@nobits
.skip 16
.text

### a static call
# accept
# from: Linux 6.1 arch/x86/kernel/static_call.c
1: call __SCT__x
ret
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x - .
.popsection

### a static call in the place of a return
# accept
# from: Linux 6.1 arch/x86/kernel/static_call.c
1: jmp __SCT__x
int3
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x + 1 - .
.popsection

### a static call of a trampoline of its own
# accept
# from: Linux 6.1 arch/x86/kernel/static_call.c
1: call __SCT__own
ret
.pushsection .static_call_sites,"aw"
.long 1b - ., k - .
.popsection
.section .static_call.text,"ax"
.type __SCT__own,@function
__SCT__own: jmp g
.byte 0x0f,0xb9,0xcc
.text
.type g,@function
g: ret
.size g,.-g
.data
.balign 16
k: .quad 0, 0
.text

### a static jump with a frame
# refuse: P4-return
# from: issue 14.17: __static_call_transform makes a return of it
push %rdi
1: jmp __SCT__own
int3
.pushsection .static_call_sites,"aw"
.long 1b - ., k + 1 - .
.popsection
.section .static_call.text,"ax"
.type __SCT__own,@function
__SCT__own: jmp g
.byte 0x0f,0xb9,0xcc
.text
.type g,@function
g: ret
.size g,.-g
.data
.balign 16
k: .quad 0, 0
.text

### the same without the frame
# accept
# from: Linux 6.1 arch/x86/kernel/static_call.c
1: .byte 0xe9
.long __SCT__own - . - 4
int3
.pushsection .static_call_sites,"aw"
.long 1b - ., k + 1 - .
.popsection
.section .static_call.text,"ax"
.type __SCT__own,@function
__SCT__own: jmp g
.byte 0x0f,0xb9,0xcc
.text
.type g,@function
g: ret
.size g,.-g
.data
.balign 16
k: .quad 0, 0
.text

### a static jump inside a function, with a frame
# refuse: P2-metadata
# from: issue 14.17
push %rdi
1: .byte 0xe9
.reloc ., R_X86_64_PC32, .Lhere - 4
.long 0
.Lhere: pop %rdi
ret
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x + 1 - .
.popsection

### a static jump where a call is expected
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/static_call.c, __static_call_validate: BUG
1: jmp __SCT__x
int3
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x - .
.popsection

### a static call where a jump is expected
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/static_call.c, __static_call_validate: BUG
1: call __SCT__x
ret
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x + 1 - .
.popsection

### a static call over the call of a slow path
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/static_call.c: the slow path would be replaced
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 4f
add twin_stlb+8(%rcx), %rax
5: mov (%rax), %rax
ret
4: lea (%rdi), %rax
1: call twin_slow_rax
jmp 5b
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x - .
.popsection

### a static call of any function
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/static_call.c
1: call g
ret
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x - .
.popsection

### a key at a weak symbol, which may be zero and so in the user's memory
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, simplify_symbols
1: .byte 0x0f,0x1f,0x44,0,0
ret
2: ret
.weak there
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad there + 0x10000 - .
.popsection

### the same of a static call
# refuse: P2-metadata
# from: ibid.
1: call __SCT__x
ret
.weak __SCK__x
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x - .
.popsection

### a static call with a key of any name
# refuse: P2-metadata
# from: Linux 6.1 kernel/static_call_inline.c: it writes key->mods
1: call __SCT__x
ret
.pushsection .static_call_sites,"aw"
.long 1b - ., jiffies - .
.popsection

### a static call with a key behind the key
# refuse: P2-metadata
# from: ibid.
1: call __SCT__x
ret
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x + 64 - .
.popsection

### a static call with a key in the table of translations
# refuse: P2-metadata
# from: ibid.
1: call __SCT__x
ret
.pushsection .static_call_sites,"aw"
.long 1b - ., twin_stlb - .
.popsection

### a static call without a key
# refuse: P2-metadata
# from: ibid.
1: call __SCT__x
ret
.pushsection .static_call_sites,"aw"
.long 1b - ., 0x10
.popsection

### a prefix before a static call
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/static_call.c: five bytes are written
1: .byte 0x2e
call __SCT__x
ret
.pushsection .static_call_sites,"aw"
.long 1b - ., __SCK__x - .
.popsection

### a static call at a call's second byte
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/static_call.c
1: call __SCT__x
ret
.pushsection .static_call_sites,"aw"
.long 1b+1 - ., __SCK__x - .
.popsection

### a trampoline entered with a frame
# refuse: P4-return
# from: Linux 6.1 arch/x86/kernel/static_call.c: a jump becomes a return
push %rdi
jmp .Lown
.section .static_call.text,"ax"
.Lown: jmp g
.byte 0x0f,0xb9,0xcc
.text
.type g,@function
g: ret
.size g,.-g

### a trampoline outside of its section
# refuse: P4-return
# from: Linux 6.1 arch/x86/kernel/static_call.c, tramp_ud
push %rdi
jmp .Lt
.type g,@function
g: pop %rdi
ret
.size g,.-g
.Lt: .byte 0xe9
.long g - . - 4
.byte 0x0f,0xb9,0xcc

### a trace entry
# accept
# from: Linux 6.1 kernel/trace/ftrace.c, ftrace_process_locs
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry over a call of a name that begins so
# refuse: P2-metadata
# from: Linux 6.1 kernel/trace/ftrace.c, ftrace_process_locs
1: call __fentry__x
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry over a jump
# refuse: P2-metadata
# from: Linux 6.1 kernel/trace/ftrace.c, ftrace_process_locs
1: jmp __fentry__
int3
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry over the call of a slow path
# refuse: P2-metadata
# from: Linux 6.1 kernel/trace/ftrace.c, ftrace_process_locs: a nop in its place
1: call twin_slow_rax
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry over a local function of that name
# refuse: P2-metadata
# from: issue 14.14
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection
.type __fentry__,@function
__fentry__: ret

### a trace entry without a relocation
# refuse: P2-metadata
# from: Linux 6.1 kernel/trace/ftrace.c, ftrace_process_locs
ret
.pushsection __mcount_loc,"a"
.quad 0xffffffff81000000
.popsection

### a trace entry for the runtime
# refuse: P2-metadata
# from: Linux 6.1 kernel/trace/ftrace.c, ftrace_process_locs
ret
.pushsection __mcount_loc,"a"
.quad twin_slow_rax
.popsection

### half a trace entry
# refuse: P2-metadata
# from: Linux 6.1 kernel/trace/ftrace.c, ftrace_process_locs
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.long 0
.popsection

### a trace entry of which objtool made a nop
# accept
# from: Linux 6.1 scripts/Makefile.lib, objtool --mcount --mnop; kernel/trace/ftrace.c, ftrace_process_locs
1: .byte 0x0f,0x1f,0x44,0,0
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a nop for tracing with what is left of its relocation
# accept
# from: Linux 6.1 tools/objtool/check.c, create_mcount_loc_sections
1: .byte 0x0f,0x1f,0x44,0,0
.reloc 1b + 1, R_X86_64_NONE, __fentry__ - 4
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a relocation that does nothing in another instruction
# refuse: P2-relocation
# from: Linux 6.1 tools/objtool/check.c, create_mcount_loc_sections
1: call g
.reloc 1b + 1, R_X86_64_NONE, __fentry__ - 4
ret
.type g,@function
g: ret
.size g,.-g

### a relocation that does nothing at a return site
# refuse: P2-metadata
# from: Linux 6.1 tools/objtool/check.c, create_mcount_loc_sections
1: jmp g
.reloc 1b + 1, R_X86_64_NONE, __x86_return_thunk - 4
.pushsection .return_sites,"a"
.long 1b - .
.popsection
.type g,@function
g: ret
.size g,.-g

### a relocation that does nothing in the middle of a nop
# refuse: P2-relocation
# from: Linux 6.1 tools/objtool/check.c, create_mcount_loc_sections
1: .byte 0x0f,0x1f,0x44,0,0
.reloc 1b + 2, R_X86_64_NONE, __fentry__ - 4
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a nop for tracing in a frame
# refuse: P4-return
# from: Linux 6.1 scripts/Makefile.lib, objtool --mcount --mnop; kernel/trace/ftrace.c, ftrace_process_locs
push %rbx
1: .byte 0x0f,0x1f,0x44,0,0
pop %rbx
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### an address that is held over a nop for tracing
# refuse: P1-untranslated
# from: Linux 6.1 scripts/Makefile.lib, objtool --mcount --mnop; kernel/trace/ftrace.c, ftrace_process_locs
{T} 1: .byte 0x0f,0x1f,0x44,0,0
mov %rdx,(%rax)
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry over a nop of four bytes
# refuse: P2-metadata
# from: Linux 6.1 scripts/Makefile.lib, objtool --mcount --mnop; kernel/trace/ftrace.c, ftrace_process_locs
1: .byte 0x0f,0x1f,0x40,0
nop
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry over five nops
# refuse: P2-metadata
# from: Linux 6.1 scripts/Makefile.lib, objtool --mcount --mnop; kernel/trace/ftrace.c, ftrace_process_locs
1: .byte 0x90,0x90,0x90,0x90,0x90
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry over another nop of five bytes
# refuse: P2-metadata
# from: Linux 6.1 scripts/Makefile.lib, objtool --mcount --mnop; kernel/trace/ftrace.c, ftrace_process_locs
1: .byte 0x0f,0x1f,0x44,0,1
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry in the middle of a nop
# refuse: P2-metadata
# from: Linux 6.1 scripts/Makefile.lib, objtool --mcount --mnop; kernel/trace/ftrace.c, ftrace_process_locs
.byte 0x66
1: .byte 0x0f,0x1f,0x44,0,0
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a lock prefix
# accept
# from: Linux 6.1 arch/x86/kernel/alternative.c, alternatives_smp_unlock
1: lock incl -8(%rsp)
ret
.pushsection .smp_locks,"a"
.long 1b - .
.popsection

### a lock after an operand-size prefix
# accept
# from: Linux 6.1 arch/x86/kernel/alternative.c, alternatives_smp_unlock
1: .byte 0x66,0xf0,0xff,0x44,0x24,0xf8
ret
.pushsection .smp_locks,"a"
.long 1b+1 - .
.popsection

### a lock of per-CPU data, which a segment takes the place of
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, alternatives_smp_unlock: 0x3e is a segment prefix, too
1: .byte 0x65,0xf0,0xff,0x04,0x24
ret
.pushsection .smp_locks,"a"
.long 1b+1 - .
.popsection

### a byte of an immediate that is 0xf0
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, alternatives_smp_unlock
1: mov $0xf0f0f0f0, %eax
ret
.pushsection .smp_locks,"a"
.long 1b+2 - .
.popsection

### a byte of a branch that is 0xf0
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, alternatives_smp_unlock
1: .byte 0x0f,0x85
.long 0xf0
.skip 0xf0, 0xcc
ret
.pushsection .smp_locks,"a"
.long 1b+2 - .
.popsection

### a lock for the runtime
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, alternatives_smp_unlock
ret
.pushsection .smp_locks,"a"
.long twin_slow_rax + 1 - .
.popsection

### a lock in data
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/alternative.c, alternatives_smp_unlock
ret
.data
d: .byte 0xf0
.text
.pushsection .smp_locks,"a"
.long d - .
.popsection

### a thunk
# accept
# from: ibid., apply_retpolines
1: call __x86_indirect_thunk_rax
ret
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a thunk by a conditional jump
# accept
# from: ibid., apply_retpolines
1: .byte 0x0f,0x84
.reloc ., R_X86_64_PLT32, __x86_indirect_thunk_rax - 4
.long 0
ret
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a thunk of no register
# refuse: P2-metadata
# from: ibid., apply_retpolines: target - __x86_indirect_thunk_array
1: call __x86_indirect_thunk_foo
ret
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a thunk of the stack pointer
# refuse: P2-relocation
# from: ibid., apply_retpolines: BUG_ON(reg == 4)
1: call __x86_indirect_thunk_rsp
ret
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a thunk that the module defines
# refuse: P2-metadata
# from: ibid., apply_retpolines
1: call __x86_indirect_thunk_rax
ret
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection
.type __x86_indirect_thunk_rax,@function
__x86_indirect_thunk_rax: ret

### an indirect call itself
# refuse: P2-metadata
# from: ibid., apply_retpolines
1: call *%rax
ret
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a return thunk
# accept
# from: ibid., apply_returns
1: jmp __x86_return_thunk
int3
.pushsection .return_sites,"a"
.long 1b - .
.popsection

### a return thunk with the prefix that clang gives it
# accept
# from: clang -mindirect-branch-cs-prefix; ibid., patch_return: all of the instruction is replaced
1: .byte 0x2e
jmp __x86_return_thunk
int3
.pushsection .return_sites,"a"
.long 1b - .
.popsection

### a return thunk with two prefixes
# refuse: P2-metadata
# from: ibid.
1: .byte 0x2e,0x2e
jmp __x86_return_thunk
int3
.pushsection .return_sites,"a"
.long 1b - .
.popsection

### a return thunk with another prefix
# refuse: P2-metadata
# from: ibid.
1: .byte 0x3e
jmp __x86_return_thunk
int3
.pushsection .return_sites,"a"
.long 1b - .
.popsection

### a return site behind the prefix
# refuse: P2-metadata
# from: ibid.
.byte 0x2e
1: jmp __x86_return_thunk
int3
.pushsection .return_sites,"a"
.long 1b - .
.popsection

### a conditional jump to the return thunk
# refuse: P2-metadata
# from: ibid.: the kernel looks at one byte of the opcode
1: je __x86_return_thunk
ret
.pushsection .return_sites,"a"
.long 1b - .
.popsection

### a return thunk that is called
# refuse: P2-metadata
# from: ibid., apply_returns
1: call __x86_return_thunk
ret
.pushsection .return_sites,"a"
.long 1b - .
.popsection

### a return thunk of a name that begins so
# refuse: P2-metadata
# from: ibid.
1: jmp __x86_return_thunk_x
int3
.pushsection .return_sites,"a"
.long 1b - .
.popsection

### a return in the middle of the runtime
# refuse: P2-metadata
# from: ibid.
ret
.pushsection .return_sites,"a"
.long twin_slow_rax + 1 - .
.popsection

### a warning
# accept
# from: Linux 6.1 lib/bug.c, report_bug
1: ud2
ret
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### what follows a BUG
# accept
# from: Linux 6.1 lib/bug.c, report_bug
1: ud2
mov (%rdi), %rax
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 0
.popsection
.data
d: .quad 0
.text

### what follows a warning
# refuse: P1-untranslated
# from: Linux 6.1 lib/bug.c, report_bug
1: ud2
mov (%rdi), %rax; ret
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### a BUG that the module makes a warning
# refuse: P1-address-form
# from: Linux 6.1 lib/bug.c, report_bug: reads the flags when it happens
movw $1, t+10(%rip)
1: ud2
mov (%rdi), %rax
.pushsection __bug_table,"aw"
t:
.long 1b - ., d - .
.short 1, 0
.popsection
.data
d: .quad 0
.text

### the address of the table of warnings
# refuse: P2-metadata
# from: Linux 6.1 lib/bug.c, report_bug
lea t(%rip), %rdi
call g
1: ud2
ret
.pushsection __bug_table,"aw"
t:
.long 1b - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### the address of the table of warnings in data
# refuse: P2-metadata
# from: Linux 6.1 lib/bug.c, report_bug
1: ud2
ret
.pushsection __bug_table,"aw"
t:
.long 1b - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text
.data
.quad t
.text

### a warning whose flags are relocated
# refuse: P2-metadata
# from: Linux 6.1 lib/bug.c, report_bug
1: ud2
ret
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.long d - .
.popsection
.data
d: .quad 0
.text

### a warning at ud1
# refuse: P2-metadata
# from: Linux 6.1 lib/bug.c, report_bug: skips two bytes
1: ud1 %esp, %ecx
ret
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### a warning at a ud2 with a prefix
# refuse: P2-metadata
# from: Linux 6.1 lib/bug.c, report_bug
1: .byte 0x66,0x0f,0x0b
ret
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### a warning inside an immediate
# refuse: P2-metadata
# from: Linux 6.1 lib/bug.c, report_bug
1: mov $0x0b0f, %eax
ret
.pushsection __bug_table,"aw"
.long 1b+1 - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### a warning whose file is not relocated
# refuse: P2-metadata
# from: Linux 6.1 lib/bug.c, report_bug: it is printed
1: ud2
ret
.pushsection __bug_table,"aw"
.long 1b - ., 0x7fffffff
.short 1, 1
.popsection
.data
d: .quad 0
.text

### a warning whose file is the table of translations
# refuse: P2-metadata
# from: Linux 6.1 lib/bug.c, report_bug
1: ud2
ret
.pushsection __bug_table,"aw"
.long 1b - ., twin_stlb - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### a table of warnings of newer kernels
# accept
# from: Linux 7: 16 bytes, a format beside the file
1: ud2
ret
.pushsection __bug_table,"aw"
.long 1b - ., d - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### relocations over the warning's table that make two of one
# refuse: object-section
# from: apply_relocate_add: one after the other
1: ud2
ret
.pushsection __bug_table,"aw"
.long 1b - .
.reloc . - 2, R_X86_64_PC32, d
.long d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### unwinding tables of one length
# accept
# from: Linux 6.1 arch/x86/kernel/unwind_orc.c, orc_sort_swap
ret
.pushsection .orc_unwind_ip,"a"
.long f - .
.popsection
.pushsection .orc_unwind,"a"
.skip 6
.popsection

### fewer entries than places to unwind from
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/unwind_orc.c, orc_sort_swap: swaps what is behind
ret
.pushsection .orc_unwind_ip,"a"
.long f - ., f - .
.popsection
.pushsection .orc_unwind,"a"
.skip 6
.popsection

### unwinding from half an instruction
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/unwind_orc.c, orc_sort_swap
mov $1, %eax
ret
.pushsection .orc_unwind_ip,"a"
.long f + 1 - .
.popsection
.pushsection .orc_unwind,"a"
.skip 6
.popsection

### tables of kernels that track the depth of calls
# accept
# from: Linux 6.2 arch/x86/kernel/callthunks.c
1: call g
ret
.pushsection .call_sites,"a"
.long 1b - .
.popsection

### endbr that the kernel takes away
# accept
# from: Linux 6.1 apply_ibt_endbr
1: endbr64
ret
.pushsection .ibt_endbr_seal,"a"
.long 1b - .
.popsection

### preambles of kCFI
# refuse: P2-metadata
# from: Linux 6.2 apply_fineibt
ret
.pushsection .cfi_sites,"a"
.long f - .
.popsection

### traps of kCFI that the kernel goes on from
# refuse: P2-metadata
# from: Linux 6.1 kernel/cfi.c, handle_cfi_failure
1: ud2
mov (%rdi), %rax
ret
.pushsection __kcfi_traps,"a"
.long 0
.popsection

### padding that the compiler was told to leave
# accept
# from: Linux 6.1 include/asm-generic/vmlinux.lds.h
ret
.pushsection __patchable_function_entries,"aw"
.quad f
.popsection

### padding of two sections of code, a table for each
# accept
# from: gcc 14, -fpatchable-function-entry=16,16; scripts/module.lds.S of Linux 6.12 joins them
ret
.pushsection .init.text,"ax"
.type g, @function
g: ret
.size g, . - g
.popsection
.pushsection __patchable_function_entries,"awo",@progbits,f
.quad f
.popsection
.pushsection __patchable_function_entries,"awo",@progbits,g
.quad g
.popsection

### two tables of endbr, of which the kernel reads one
# refuse: P2-metadata
# from: Linux 6.12 kernel/module/main.c, find_sec: the first of that name
# whole
.section .note.twin,"",@note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 1, 0, 0
.text
.globl f
.type f,@function
f: endbr64
ret
.section .ibt_endbr_seal,"a",@progbits
.long f - .
.section .ibt_endbr_seal,"a",@progbits,unique,2
.long f - .

### .altinstructions that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, module_finalize: any section of that name, unrelocated
1: nop
ret
.pushsection .altinstructions,"",@progbits
.long 1b - ., 1b - .
.short 20
.byte 1, 0
.popsection

### .smp_locks that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, module_finalize: any section of that name, unrelocated
1: lock incl (%rsp)
ret
.pushsection .smp_locks,"",@progbits
.long 1b - .
.popsection

### .parainstructions that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, module_finalize: any section of that name, unrelocated
1: call *pv_ops+8(%rip)
ret
.pushsection .parainstructions,"",@progbits
.quad 1b
.byte 1, 6
.skip 6
.popsection

### .retpoline_sites that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, module_finalize: any section of that name, unrelocated
1: call __x86_indirect_thunk_rax
ret
.pushsection .retpoline_sites,"",@progbits
.long 1b - .
.popsection

### __bug_table that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, module_finalize: any section of that name, unrelocated
1: ud2
ret
.pushsection __bug_table,"",@progbits
.long 1b - ., f - .
.short 1, 0
.popsection

### __ex_table that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, module_finalize: any section of that name, unrelocated
1: nop
ret
.pushsection __ex_table,"",@progbits
.long 1b - ., 1b - .
.long 1
.popsection

### .static_call_sites that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, module_finalize: any section of that name, unrelocated
1: call __SCT__x
ret
.pushsection .static_call_sites,"",@progbits
.long 1b - ., __SCK__x - .
.popsection

### __mcount_loc that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, module_finalize: any section of that name, unrelocated
1: call __fentry__
ret
.pushsection __mcount_loc,"",@progbits
.quad 1b
.popsection

### .orc_unwind_ip that is not loaded
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/module.c, module_finalize: any section of that name, unrelocated
1: nop
ret
.pushsection .orc_unwind_ip,"",@progbits
.long 1b - .
.popsection

### two tables of one name
# refuse: P2-metadata
# from: module_finalize takes the last, find_sec the first
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
.section .smp_locks,"a",@progbits
.long f - .
.section .smp_locks,"a",@progbits,unique,2
.long f - .

### two tables of exceptions
# refuse: P2-metadata
# from: find_sec takes the first
# whole
.section .note.twin,"",@note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 1, 0, 0
.text
.globl f
.type f,@function
f: 1: mov (%rdi), %rax
2: ret
.section __ex_table,"a",@progbits
.section __ex_table,"a",@progbits,unique,2
.long 1b - ., 2b - .
.long 1

### a table that is code
# refuse: P2-metadata
1: lock incl (%rsp)
ret
.pushsection .smp_locks,"ax"
.long 1b - .
.popsection

### a table of notes
# refuse: P2-metadata
# from: find_sec does not look at types
1: lock incl (%rsp)
ret
.pushsection .smp_locks,"a",@note
.long 1b - .
.popsection

### replacements that are data
# refuse: P2-metadata
1: nop; nop; nop
ret
.pushsection .altinstr_replacement,"a"
2: clac
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 3, 3
.popsection

### functions that are called before the module
# accept
# from: Linux 6.1 kernel/module/main.c, do_mod_ctors
ret
.section .init_array,"aw"
.quad f
.text

### a constructor inside a function
# refuse: P2-target
# from: ibid.
nop
1: ret
.section .ctors,"aw"
.quad 1b
.text

### an export inside a function
# refuse: P2-target
# from: include/asm-generic/export.h
nop
1: ret
.section ___ksymtab+x,"a"
.long 1b - ., d - ., 0
.data
d: .quad 0
.text

### a list of functions that are not probed
# accept
# from: kernel/kprobes.c
ret
.section _kprobe_blacklist,"aw"
.quad f
.text

### a list of functions, one of which is none
# refuse: P2-target
# from: kernel/kprobes.c
nop
1: ret
.section _error_injection_whitelist,"aw"
.quad 1b
.text

### keys of trampolines
# refuse: P2-target
# from: include/linux/static_call.h
nop
1: ret
.section .static_call_tramp_key,"a"
.long 1b - ., __SCK__x - .
.text

### a parameter whose operations are code
# refuse: P2-target
# from: kernel/params.c
nop
1: ret
.section __param,"a"
.quad 0, 0, 1b
.text

### a module whose init is inside a function
# refuse: P2-target
# from: kernel/module/main.c, do_init_module
nop
1: ret
.section .gnu.linkonce.this_module,"aw"
.skip 312
.quad 1b
.text

### a tracepoint's function inside a function
# refuse: P2-target
# from: kernel/tracepoint.c
nop
1: ret
.section __tracepoints,"aw"
.quad 1b
.text

### code in .noinstr.text as anywhere
# refuse: P1-untranslated
# from: kernel/module/main.c
call n
ret
.section .noinstr.text,"ax"
.type n,@function
n: mov (%rdi), %rax
ret
.text

### code in a section of trampolines as anywhere
# refuse: P1-untranslated
ret
.section .static_call.text,"ax"
.type n,@function
n: mov (%rdi), %rax
ret
.text

### a warning whose file has no name
# accept
# from: lib/bug.c, __report_bug
1: ud2
ret
.pushsection __bug_table,"aw"
.long 1b - ., 0 - .
.short 1, 1
.popsection

### a warning whose file is at an address
# refuse: P2-metadata
# from: lib/bug.c, __report_bug
1: ud2
ret
.pushsection __bug_table,"aw"
.long 1b - ., 0x1000 - .
.short 1, 1
.popsection

### a static branch that is the way back from a slow path
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/jump_label.c: the jump becomes a nop, and what follows runs
test %rsi, %rsi
jz 6f
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 4f
add twin_stlb+8(%rcx), %rax
5: mov (%rax), %rax
ret
4: lea (%rdi), %rax
call twin_slow_rax
1: .byte 0xe9
.long 5b - . - 4
7: mov %rax, (%rdx)
ret
6: {T:(%rdx)}
mov %rax, %rdx
jmp 7b
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 5b - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### the same in two bytes
# refuse: P2-metadata
# from: ibid.
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 4f
add twin_stlb+8(%rcx), %rax
5: mov (%rax), %rax
ret
4: lea (%rdi), %rax
call twin_slow_rax
1: jmp 5b
wrmsr
add $8, %rsp
jmp *%rdx
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 5b - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 0
.text

### a slow path whose way back is not in a table
# accept
test %rsi, %rsi
jz 6f
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 4f
add twin_stlb+8(%rcx), %rax
5: mov (%rax), %rax
ret
4: lea (%rdi), %rax
call twin_slow_rax
1: .byte 0xe9
.long 5b - . - 4
7: mov %rax, (%rdx)
ret
6: {T:(%rdx)}
mov %rax, %rdx
jmp 7b

### a trace entry with a frame, whose last word a tracer takes for the return address
# refuse: P4-return
# from: Linux 6.1 arch/x86/kernel/ftrace.c, ftrace_graph_func: writes another one over it
mov %rsp, %rax
push %rax
1: call __fentry__
pop %rsp
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry behind a word that was pushed
# refuse: P4-return
# from: Linux 6.1 arch/x86/net/bpf_jit_comp.c, arch_prepare_bpf_trampoline: returns past the function
push %rdi
1: call __fentry__
pop %rdi
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a call of the trace entry with a frame, which no table lists
# refuse: P4-return
# from: Linux 5.10 arch/x86/kernel/ftrace_64.S without CONFIG_DYNAMIC_FTRACE, ftrace_graph_caller: writes over the word
push %rdi
call __fentry__
pop %rdi
ret

### the same with an empty frame
# accept
call __fentry__
ret

### code that the kernel takes for per-CPU data
# refuse: object-section
# from: Linux 6.1 kernel/module/main.c, find_pcpusec: symbols there are places in per-CPU memory
call h
ret
.section .data..percpu,"ax",@progbits
.type h,@function
h: ret
.text

### code that is gone when the module runs
# refuse: object-section
# from: Linux 6.1 kernel/module/main.c, rewrite_section_headers
call h
ret
.section __versions,"ax",@progbits
.type h,@function
h: ret
.text

### code among what the module says of itself
# refuse: object-section
# from: Linux 6.1 kernel/module/main.c, rewrite_section_headers
call h
ret
.section .modinfo,"ax",@progbits
.type h,@function
h: ret
.text

### code where the kernel keeps the module's state
# refuse: object-section
# from: Linux 6.1 kernel/module/main.c, load_module writes there before it protects code
call h
ret
.section .gnu.linkonce.this_module,"ax",@progbits
.type h,@function
h: ret
.text

### code in a table of checksums of newer kernels, which is gone when the module runs
# refuse: object-section
# from: Linux 6.14 kernel/module/main.c, rewrite_section_headers
call h
ret
.section __version_ext_crcs,"ax",@progbits
.type h,@function
h: ret
.text

### the same among the names
# refuse: object-section
# from: ibid.
call h
ret
.section __version_ext_names,"ax",@progbits
.type h,@function
h: ret
.text

### code in a section that the kernel puts where no code runs
# refuse: object-section
# from: Linux 6.13 lib/codetag.c, codetag_alloc_module_section
call h
ret
.section .codetag.alloc_tags,"ax",@progbits
.type h,@function
h: ret
.text

### code where the kernel keeps lists of classes of messages
# refuse: object-section
# from: Linux 6.1 lib/dynamic_debug.c, ddebug_attach_module_classes writes heads of lists there
call h
ret
.section __dyndbg_classes,"ax",@progbits
.balign 8
.type h,@function
h: ret
.text

### code in a section that a later kernel may find by its name
# refuse: object-section
# from: Linux 6.13 lib/codetag.c, codetag_module_replaced: every name that begins so
call h
ret
.section .codetag.other,"ax",@progbits
.type h,@function
h: ret
.text

### code in sections of code of other names
# accept
# from: Linux 6.1 include/linux/compiler.h, __sched, __ref; Linux 5.10, .fixup
call h
ret
.section .sched.text,"ax",@progbits
.type h,@function
h: jmp i
.section .fixup,"ax",@progbits
.type i,@function
i: ret
.text

### a trace entry behind another instruction of the function
# refuse: P2-metadata
# from: Linux 5.18 kernel/trace/ftrace.c, ftrace_location: any in the function; bpf_jit_comp.c, orig_call: 5 bytes behind its start
movabs $0x0f00000789489090, %rax
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### the same where objtool made a nop of it
# refuse: P2-metadata
# from: ibid.
movabs $0x0f00000789489090, %rax
1: .byte 0x0f,0x1f,0x44,0,0
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry behind endbr64 and a nop
# refuse: P2-metadata
# from: ibid.: 9 bytes behind its start
endbr64
nop
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry behind endbr64
# accept
# from: ibid.
endbr64
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry at a name that the kernel does not count
# refuse: P2-metadata
# from: Linux 6.4 include/linux/module_symbol.h, is_mapping_symbol
movabs $0x0f00000789489090, %rax
.type L0g,@function
L0g:
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trace entry of a function whose weak name another one took, behind a traced one
# accept
# from: Linux 6.1 kvm.ko, kvm_arch_irqfd_allowed: the linker leaves the code without a name
1: call __fentry__
ret
2: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.quad 2b
.popsection

### the same behind one that is not traced
# refuse: P2-metadata
# from: Linux 5.18 kernel/trace/ftrace.c, ftrace_location: any in the function
movabs $0x0f00000789489090, %rax
ret
1: call __fentry__
ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a trampoline that returns, into whose bytes control falls
# refuse: P2-metadata
# from: Linux 5.18 arch/x86/kernel/static_call.c, __static_call_transform writes five bytes
jmp .Lg
.type t,@function
t: ret
.Lg: .byte 0x0f,0x1f,0x40,0x00
.byte 0x0f,0xb9,0xcc
ret

### a trampoline that returns
# accept
# from: Linux 5.18 arch/x86/include/asm/static_call.h, ARCH_DEFINE_STATIC_CALL_NULL_TRAMP
call t
ret
.section .static_call.text,"ax"
.type t,@function
t: ret
int3
nop
nop
nop
.byte 0x0f,0xb9,0xcc
.text

### a trampoline that returns, with an instruction behind it that is longer
# refuse: P2-metadata
# from: ibid.
call t
jmp .Lg
.type t,@function
t: ret
nop
.Lg: movabs $0x90909090ccb90f90, %rax
ret

### a jump to the trace entry, to which a word of the caller's frame is a return address
# refuse: P2-callee
jmp __fentry__

### a conditional jump to the trace entry
# refuse: P2-callee
test %edi, %edi
je __fentry__
ret

### the trace entry by its address
# refuse: P2-relocation
mov $__fentry__, %rax
call *%rax
ret

### the trace entry by a pointer
# refuse: P2-callee
ret
.data
.quad __fentry__
.text

### a conditional jump that a kernel may take for a trampoline, and a register that what it leads to then does not keep
# refuse: P4-rsp
# from: Linux 6.2 arch/x86/kernel/static_call.c, __is_Jcc: a tail call with a condition, also as a trampoline
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: .byte 0x0f, 0x84
.long 0
.reloc .-4, R_X86_64_PLT32, e-4
.byte 0xb9, 0xcc, 0, 0, 0
ret
.size g,.-g
.type h,@function
h: xor %ebx, %ebx
ret
.size h,.-h
.section .text.e,"ax"
.type e,@function
e: ret
.size e,.-e
.data
.quad h
.text

### the same without the trampoline's mark
# accept
push %rbx
mov %rsp, %rbx
call g
mov %rbx, %rsp
pop %rbx
ret
.type g,@function
g: .byte 0x0f, 0x84
.long 0
.reloc .-4, R_X86_64_PLT32, e-4
.byte 0xb9, 0xcd, 0, 0, 0
ret
.size g,.-g
.type h,@function
h: xor %ebx, %ebx
ret
.size h,.-h
.section .text.e,"ax"
.type e,@function
e: ret
.size e,.-e
.data
.quad h
.text

### a table of static branches at any address, to whose entries the kernel adds flags
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, static_key_set_entries: it then reads entries a byte before these
1: .byte 0x0f, 0x1f, 0x44, 0, 0
2: ret
.data
.balign 8
key: .quad 0, 0
.section __jump_table,"aw"
.long 1b-., 2b-.
.quad key-.
.text

### a key at any address, of whose low bits the kernel makes flags
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/kernel/static_call.c, __static_call_validate: with the flag of a tail call it only warns, and makes a jump of the call
sub $8, %rsp
1: call __SCT__x
add $8, %rsp
ret
.data
key: .quad 0, 0
.section .static_call_sites,"aw"
.balign 8
.long 1b-., key-.
.text

### a static call with an aligned key of its own
# accept
sub $8, %rsp
1: call __SCT__x
add $8, %rsp
ret
.data
.balign 4
key: .quad 0, 0
.section .static_call_sites,"aw"
.balign 8
.long 1b-., key-.
.text

### a static branch in the padding of a static call's trampoline: in the jump to a place 0x9066 away it finds its nop
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/jump_label.c, __jump_label_patch; arch/x86/kernel/static_call.c, __static_call_transform
ret
.balign 16, 0xcc
.globl __SCT__k
.type __SCT__k,@function
__SCT__k:
ret
1: xchg %ax, %ax
int3
int3
.byte 0x0f, 0xb9, 0xcc
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key - .
.popsection
.pushsection .data
.balign 16
key: .quad 0, 0
.popsection

### the same behind a trampoline
# accept
ret
.balign 16, 0xcc
.globl __SCT__k
.type __SCT__k,@function
__SCT__k:
ret
int3
nop
nop
nop
.byte 0x0f, 0xb9, 0xcc
1: xchg %ax, %ax
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key - .
.popsection
.pushsection .data
.balign 16
key: .quad 0, 0
.popsection

### an alternative of the trampoline, from which a call comes back into the jump that is written over it
# refuse: P2-metadata
# from: Linux 5.10 arch/x86/kernel/static_call.c, __static_call_validate: only warns
ret
.balign 16, 0xcc
.globl __SCT__k
.type __SCT__k,@function
__SCT__k:
1: ret
int3
nop
nop
nop
2:
ret
.pushsection .altinstr_replacement,"ax"
3: call *%rax
ret
4:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 3b - .
.short 20
.byte 2b - 1b, 4b - 3b
.popsection

### a key of static calls that begins with a list, of places that no table names
# refuse: P2-metadata
# from: Linux 6.1 kernel/static_call_inline.c, __static_call_init: static_call_key_next(key) is put behind the module's own
sub $8, %rsp
1: call __SCT__own
add $8, %rsp
ret
.type g,@function
g: ret
.section .static_call.text,"ax"
.globl __SCT__own
.type __SCT__own,@function
__SCT__own: .byte 0xe9
.reloc ., R_X86_64_PLT32, g - 4
.long 0
.byte 0x0f, 0xb9, 0xcc
.section .static_call_sites,"aw"
.long 1b - ., k - .
.data
.balign 16
k: .quad g, list
list: .quad 0, m, places
m: .quad 0
places: .quad 0, 0
.text

### the same by a number
# refuse: P2-metadata
# from: ibid.: where the kernel is not moved at random
sub $8, %rsp
1: call __SCT__own
add $8, %rsp
ret
.type g,@function
g: ret
.section .static_call.text,"ax"
.globl __SCT__own
.type __SCT__own,@function
__SCT__own: .byte 0xe9
.reloc ., R_X86_64_PLT32, g - 4
.long 0
.byte 0x0f, 0xb9, 0xcc
.section .static_call_sites,"aw"
.long 1b - ., k - .
.data
.balign 16
k: .quad g, 0x1000
.text

### a key of static calls as DEFINE_STATIC_CALL makes it
# accept
# from: Linux 6.1 include/linux/static_call.h
sub $8, %rsp
1: call __SCT__own
add $8, %rsp
ret
.type g,@function
g: ret
.section .static_call.text,"ax"
.globl __SCT__own
.type __SCT__own,@function
__SCT__own: .byte 0xe9
.reloc ., R_X86_64_PLT32, g - 4
.long 0
.byte 0x0f, 0xb9, 0xcc
.section .static_call_sites,"aw"
.long 1b - ., k - .
.data
.balign 16
k: .quad g, 1
.text

### a key of static branches that says that its word is a list of modules
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, static_key_set_entries: the kind stays, and entries are taken for such a list
1: .byte 0x0f, 0x1f, 0x44, 0, 0
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 2
.text

### a key of static branches as DEFINE_STATIC_KEY_TRUE makes it
# accept
# from: Linux 6.1 include/linux/jump_label.h
1: .byte 0x0f, 0x1f, 0x44, 0, 0
2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad k - .
.popsection
.data
.balign 16
k: .quad 0, 1
.text
