### a variable
# accept
# from: contract P1
mov d+8(%rip), %rax
ret
.data
d: .quad 0, 0
.text

### a place whose end wraps
# refuse: P1-address-form
# from: issue 14.13
.byte 0x48,0x8b,0x05
.reloc ., R_X86_64_PC32, d + 0x7ffffffffffffff7
.long 0
ret
.data
d: .quad 0, 0
.text

### a place that wraps to its section
# refuse: P1-address-form
# from: 2**64 and a little
.byte 0x48,0x8b,0x05
.reloc ., R_X86_64_PC32, d - 0x8000000000000000
.long 0
ret
.data
d: .quad 0, 0
.text

### a place 4 GiB on
# refuse: P1-address-form
# from: Linux 6.1 arch/x86/kernel/module.c: PC32 is cut off, not checked
.byte 0x48,0x8b,0x05
.reloc ., R_X86_64_PC32, d + 0xfffffffc
.long 0
ret
.data
d: .quad 0, 0
.text

### the last word that is half outside
# refuse: P1-address-form
mov d+12(%rip), %rax
ret
.data
d: .quad 0, 0
.text

### sixteen bytes at the last eight
# refuse: P1-address-form
movups d+8(%rip), %xmm0
ret
.data
d: .quad 0, 0
.text

### code at a distance that wraps
# refuse: P2-target
.byte 0x48,0x8d,0x05
.reloc ., R_X86_64_PC32, f + 0x7fffffffffffffff
.long 0
ret
.data
d: .quad 0, 0
.text

### far before a symbol of the kernel
# refuse: P1-address-form
mov jiffies-8(%rip), %rax
ret
.data
d: .quad 0, 0
.text

### writing read-only data
# refuse: P1-address-form
# from: Linux 6.1 kernel/module/strict_rwx.c
mov %rax, r(%rip)
ret
.section .rodata,"a"
r: .quad 0
.text

### reading read-only data
# accept
mov r(%rip), %rax
ret
.section .rodata,"a"
r: .quad 0
.text

### absolute access to per-CPU data
# refuse: P1-address-form
# from: issue 14.17; simplify_symbols: an offset, not an address
mov p(%rip), %rax
ret
.section .data..percpu,"aw"
p: .quad 0
.text

### the same by an absolute operand
# refuse: P1-address-form
# from: ibid.
mov %rdi, p
ret
.section .data..percpu,"aw"
p: .quad 0
.text

### the same with gs
# accept
mov %gs:p(%rip), %rax
ret
.section .data..percpu,"aw"
p: .quad 0
.text

### the number of per-CPU data
# accept
# from: per_cpu_ptr
mov $p, %rdi
ret
.section .data..percpu,"aw"
p: .quad 0
.text

### data that is not loaded
# refuse: P1-address-form
# from: Linux 6.1 move_module: it stays in a buffer that is freed
mov n(%rip), %rax
ret
.section .scratch,"w",@progbits
n: .quad 0
.text

### the module's information
# refuse: P1-address-form
# from: rewrite_section_headers: .modinfo is not kept
mov n(%rip), %rax
ret
.section .modinfo,"a"
n: .quad 0
.text

### the versions of symbols
# refuse: P1-address-form
# from: ibid., __versions
mov n(%rip), %rax
ret
.section __versions,"a"
n: .quad 0
.text

### notes that are loaded
# accept
mov n(%rip), %eax
ret
.section .note.mine,"a",@note
n: .long 0
.text

### a table of the kernel, written
# refuse: P1-address-form
movl $0, n(%rip)
ret
.section .smp_locks,"a"
n: .long 9f - .
.text
9: lock incl (%rsp)
.text

### where it is, told to a function
# accept
# from: _THIS_IP_, include/linux/instruction_pointer.h
lea 1f(%rip), %rdi
1: call g
ret

### its own code, called in the middle
# refuse: P2-target
# from: issue 14.17
push %rbx
lea 1f(%rip), %rax
call *%rax
1: pop %rbx
ret

### the same by a thunk
# refuse: P2-target
# from: issue 14.17
push %rbx
lea 1f(%rip), %rax
call __x86_indirect_thunk_rax
1: pop %rbx
ret

### the same by a copied register
# refuse: P2-target
# from: issue 14.17
push %rbx
lea 1f(%rip), %rax
mov %rax, %rcx
call *%rcx
1: pop %rbx
ret

### the same by an address in an immediate
# refuse: P2-target
# from: issue 14.17
push %rbx
mov $1f, %rax
call *%rax
1: pop %rbx
ret

### the same by 64 bits of immediate
# refuse: P2-target
# from: issue 14.17
push %rbx
movabs $1f, %rax
call *%rax
1: pop %rbx
ret

### the same by a jump
# refuse: P2-target
# from: issue 14.17
lea 1f(%rip), %rax
jmp *%rax
1: mov (%rdi), %rax
ret

### the same by the thunk of a jump
# refuse: P2-target
# from: issue 14.17
lea 1f(%rip), %rax
jmp __x86_indirect_thunk_rax
1: ret

### the same by a conditional jump to a thunk
# refuse: P2-target
# from: issue 14.17
lea 1f(%rip), %rax
test %edi, %edi
.byte 0x0f,0x84
.reloc ., R_X86_64_PLT32, __x86_indirect_thunk_rax - 4
.long 0
1: ret

### a function of its own, called by its address
# accept
# from: issue 14.17
lea g(%rip), %rax
call *%rax
ret
.type g,@function
g: ret
.size g,.-g

### a function that its address makes an entry
# refuse: P1-untranslated
# from: issue 14.17
lea g(%rip), %rax
call *%rax
ret
.type g,@function
g: mov (%rdi), %rax
ret
.size g,.-g

### the runtime's return bound to an address of its choice
# refuse: P5-runtime
# from: issue 14.14
nop
ret
.globl __x86_return_thunk
__x86_return_thunk = 0xffffffff81234567

### a call of an absolute address
# refuse: P2-relocation
# from: Linux 6.1 kernel/module/main.c, simplify_symbols
call there
ret
.globl there
there = 0xffffffff81000000

### a read of an absolute address
# refuse: P2-relocation
# from: Linux 6.1 kernel/module/main.c, simplify_symbols
mov there(%rip), %rax
ret
.globl there
there = 0xffffffff81000000

### a call of a weak symbol
# refuse: P2-relocation
# from: Linux 6.1 kernel/module/main.c, simplify_symbols: zero if nobody exports it
call maybe
ret
.weak maybe

### a read of a weak symbol
# refuse: P2-relocation
# from: Linux 6.1 kernel/module/main.c, simplify_symbols
mov maybe(%rip), %rax
ret
.weak maybe

### the table of global offsets
# refuse: P2-relocation
# from: Linux 6.1 kernel/module/main.c, simplify_symbols, ignore_undef_symbol: zero
mov _GLOBAL_OFFSET_TABLE_(%rip), %rax
ret

### a common symbol
# refuse: P2-relocation
# from: Linux 6.1 kernel/module/main.c, simplify_symbols: refused, unless its name begins with __gnu_lto
mov __gnu_lto_x(%rip), %rax
ret
.comm __gnu_lto_x, 8

### a thread's variable
# refuse: P1-address-form
# from: psABI 4.4
mov %fs:0, %rax
ret
.section .tdata,"awT"
x: .quad 0
.text

### a function that is chosen when it is linked
# accept
# from: STT_GNU_IFUNC means nothing to the kernel
call g
ret
.type g,@gnu_indirect_function
.globl g
g: ret

### a cold part as a function's address
# refuse: P2-target
# from: it is entered with a frame
nop
ret
.type f.cold,@function
f.cold: pop %rax
ret
.data
.quad f.cold
.text

### a global name inside an instruction
# refuse: P2-target
mov $1, %eax
ret
.globl inside
.type inside,@function
inside = f + 1

### an alias of a function
# accept
nop
ret
.globl alias
.type alias,@function
alias = f
.data
.quad alias
.text

### another name for the table
# refuse: P5-table
mov twin_stlb(%rdi), %rax
ret

### a place inside the table
# refuse: P2-relocation
sub twin_stlb+16(%rcx), %rax
ret

### the name of a slow path in the middle of one
# refuse: P2-relocation
call twin_slow_rax+3
ret

### an absolute operand with a relocation relative to its place
# refuse: P2-relocation
# from: psABI 4.4, S + A - P; SDM 2.2.1.6: only mod 0 with rm 5 is relative to rip
.byte 0x48,0x8b,0x04,0x25
.reloc ., R_X86_64_PC32, d - 4
.long 0
ret
.data
d: .quad 0, 0
.text

### the same, written
# refuse: P2-relocation
# from: ibid.: a few megabytes, which is an address of users
.byte 0x48,0x89,0x04,0x25
.reloc ., R_X86_64_PC32, d - 4
.long 0
ret
.data
d: .quad 0
.text

### an operand relative to rip with the address itself
# refuse: P2-relocation
# from: psABI 4.4, S + A; both are in the topmost 2 GiB, so the sum is elsewhere in the kernel
.byte 0x48,0x8b,0x05
.reloc ., R_X86_64_32S, d
.long 0
ret
.data
d: .quad 0
.text

### the same, written, with 32 bits that are not extended
# refuse: P2-relocation
# from: psABI 4.4
.byte 0x48,0x89,0x05
.reloc ., R_X86_64_32, d
.long 0
ret
.data
d: .quad 0
.text

### the same with a symbol of the kernel
# refuse: P2-relocation
.byte 0x48,0x89,0x05
.reloc ., R_X86_64_32S, jiffies
.long 0
ret

### an absolute operand with the address itself
# accept
# from: psABI 4.4, R_X86_64_32S
.byte 0x48,0x8b,0x04,0x25
.reloc ., R_X86_64_32S, d
.long 0
ret
.data
d: .quad 0
.text

### a call through a slot, absolute and yet relative to its place
# refuse: P2-relocation
.byte 0xff,0x14,0x25
.reloc ., R_X86_64_PC32, d - 4
.long 0
ret
.data
d: .quad 0, 0
.text

### a thunk of older kernels' assembly
# refuse: P2-target
# from: Linux 5.10 arch/x86/lib/retpoline.S, RETPOLINE: continues at the register's value
lea 1f(%rip), %rax
call __x86_retpoline_rax
ret
sub $8, %rsp
1: add $8, %rsp
ret

### a thunk by another name that kernels give to one
# refuse: P2-relocation
# from: Linux 6.15 arch/x86/lib/retpoline.S, ITS_THUNK: continues at the register's value
lea 1f(%rip), %rax
call __x86_indirect_its_thunk_rax
ret
sub $8, %rsp
1: add $8, %rsp
ret

### a pointer to a local function that begins inside an instruction
# refuse: P2-target
# from: kernel/module/main.c, do_init_module: what data names is called
movabs $0xc390, %rax
ret
.type g,@function
.set g, f + 2
.section .gnu.linkonce.this_module,"aw"
.skip 312
.quad g
.section .modinfo,"a"
.asciz "vermagic=6.1.0-18-amd64 SMP preempt mod_unload modversions "
.text

### a pointer to a local function that begins where its section ends
# refuse: P2-target
# from: Linux 6.1 kernel/module/main.c, layout_sections: there is the next section's code
ret
.section .text.e,"ax",@progbits
ret
.type e,@function
e:
.data
.quad e
.text

### a pointer far from its symbol's section, where code is
# refuse: P2-target
# from: Linux 6.1 kernel/module/main.c, layout_sections: text and data are one block of pages
ret
.section .rodata,"a"
d: .quad 0
.data
.quad d - 0x1000
.text

### a pointer far behind its symbol's section, where code is that is gone later
# refuse: P2-target
# from: ibid.
ret
.data
d: .quad d + 0x2000
.text

### an address of 32 bits far from its symbol's section
# refuse: P2-target
# from: ibid.
ret
.section .rodata,"a"
d: .quad 0
.data
.long d - 0x1000, -1
.text

### an exported name of a place before its section
# refuse: P2-target
# from: ibid., and include/linux/export-internal.h: a distance from the field
ret
.section .rodata,"a"
d: .quad 0
.section __ksymtab,"a"
.long d - 0x1000 - ., 0, 0
.text

### a pointer to the end of an array
# accept
# from: every compiler
ret
.section .rodata,"a"
d: .quad 0
.data
.quad d + 8
.text

### code, called by way of a symbol of data that is far from it
# refuse: P2-target
# from: ibid.
lea d - 0x1000(%rip), %rax
call *%rax
ret
.section .rodata,"a"
d: .quad 0
.text

### the address of a place before an array, from which it is counted
# accept
# from: gcc, for an index that begins at 8
{T:d-64(,%rdi,8)}
mov (%rax), %rax
ret
.data
d: .quad 0
.text

### a local function that begins inside an instruction, which kernels call by its name
# refuse: P2-target
# from: Linux 6.2 kernel/bpf/verifier.c, add_kfunc_call: kallsyms_lookup_name
movabs $0xc390, %rax
ret
.type g,@function
.set g, f + 2

### a place inside a function by a conditional move
# refuse: P2-target
# from: SDM vol. 2, CMOVcc
lea 1f(%rip), %rax
xor %ecx, %ecx
cmove %rax, %rcx
jmp *%rcx
nop
1: mov %rcx, (%rdx)
ret

### the same by a sum
# refuse: P2-target
# from: SDM vol. 2, ADD
lea 1f(%rip), %rax
add $2, %rax
jmp *%rax
1: nop
nop
mov %rcx, (%rdx)
ret

### the same by a sum of registers
# refuse: P2-target
# from: SDM vol. 2, LEA
lea 1f(%rip), %rax
lea (%rax,%rcx), %rsi
jmp *%rsi
1: mov %rcx, (%rdx)
ret

### the same by an exchange
# refuse: P2-target
# from: SDM vol. 2, XCHG
lea 1f(%rip), %rax
xchg %rax, %rsi
jmp *%rsi
1: mov %rcx, (%rdx)
ret

### the same on one of two ways
# refuse: P2-target
# from: a register may hold either
mov ops(%rip), %rax
test %rdi, %rdi
je 2f
lea 1f(%rip), %rax
2: jmp *%rax
1: mov %rcx, (%rdx)
ret
.data
ops: .quad f
.text

### the same over a call that keeps the register
# refuse: P2-target
# from: psABI 3.2.1
push %rbx
lea 1f(%rip), %rbx
call g
call *%rbx
pop %rbx
ret
1: mov %rcx, (%rdx)
ret
.type g,@function
g: ret

### the same where a fault leads on, which leaves the register as it is
# refuse: P2-target
# from: Linux 6.1 arch/x86/mm/extable.c, ex_handler_default: sets rip and nothing else
lea 1f(%rip), %rdi
2: mov (%rsi), %rax
ret
1: mov %rcx, (%rdx)
ret
3: jmp *%rdi
.pushsection __ex_table,"a"
.long 2b - ., 3b - ., 1
.popsection

### another register called there
# accept
# from: control
lea 1f(%rip), %rdi
2: mov (%rsi), %rax
1: ret
3: mov ops(%rip), %rax
jmp *%rax
.pushsection __ex_table,"a"
.long 2b - ., 3b - ., 1
.popsection
.data
ops: .quad f
.text

### the same moved on by a string instruction
# refuse: P2-target
# from: SDM vol. 2, LODS
lea 1f(%rip), %rsi
2: lodsb
jmp *%rsi
1: nop
mov %rcx, (%rdx)
3: ret
.pushsection __ex_table,"a"
.long 2b - ., 3b - ., 1
.popsection

### the same as its translation, which is the address itself
# refuse: P2-target
# scheme: both
# from: docs/proof/linux.md, P5: the table maps everything to itself
lea 1f(%rip), %rdi
{T:(%rdi)}
mov $0, %edi
jmp *%rax
1: mov %rcx, (%rdx)
ret

### a function's address as its translation
# accept
# scheme: both
# from: control
lea f(%rip), %rdi
{T:(%rdi)}
mov $0, %edi
jmp *%rax

### the page of such a place
# refuse: P2-target
# scheme: both
# from: a stage of a check is a number of its own
lea 1f(%rip), %rax
and $-4096, %rax
jmp *%rax
1: mov %rcx, (%rdx)
ret

### the low half of such a place, extended by its sign
# refuse: P2-target
# from: modules are in the last 2 GiB
lea 1f(%rip), %rdi
mov %edi, %eax
mov $0, %edi
movslq %eax, %rax
jmp *%rax
1: mov %rcx, (%rdx)
ret

### such a place over a call of the trace entry, which keeps all registers
# refuse: P2-target
# from: Linux 6.1 arch/x86/kernel/ftrace_64.S, save_mcount_regs
2: call __fentry__
lea 1f(%rip), %rdi
3: call __fentry__
jmp *%rdi
1: mov %rcx, (%rdx)
ret
.pushsection __mcount_loc,"a"
.quad 2b, 3b
.popsection

### the same where objtool has made a nop of it
# refuse: P2-target
# from: Linux 6.1 tools/objtool, --mnop
2: call __fentry__
lea 1f(%rip), %rdi
3: nopl 0(%rax,%rax)
jmp *%rdi
1: mov %rcx, (%rdx)
ret
.pushsection __mcount_loc,"a"
.quad 2b, 3b
.popsection

### the own return address, gone on at with a frame that the caller does not have
# refuse: P2-target
# from: psABI 3.2.2: the word is still there
sub $8, %rsp
call g
add $8, %rsp
ret
.type g,@function
g: mov (%rsp), %rax
jmp *%rax

### the same called
# refuse: P2-target
# from: ibid.
sub $8, %rsp
mov 8(%rsp), %rax
call *%rax
add $8, %rsp
ret

### the same as a part of a vector
# accept
# from: control: it is not followed there (docs/proof/linux.md, P2)
movups (%rsp), %xmm0
mov ops(%rip), %rax
jmp *%rax
.data
ops: .quad f
.text

### the same by arithmetic
# refuse: P2-target
# from: SDM vol. 2, XOR
mov $0, %eax
xor (%rsp), %rax
jmp *%rax

### the same told to a function
# accept
# from: Linux include/linux/instruction_pointer.h, _RET_IP_
sub $8, %rsp
mov 8(%rsp), %rdi
call note
mov ops(%rip), %rax
call *%rax
add $8, %rsp
ret
.data
ops: .quad f
.text

### the low byte of such a place written
# refuse: P2-target
# from: SDM vol. 1, 3.4.1.1: the rest stays
lea 1f(%rip), %rax
mov %cl, %al
jmp *%rax
1: mov %rcx, (%rdx)
ret

### such a place that a conditional move may leave
# refuse: P2-target
# from: SDM vol. 2, CMOVcc
lea 1f(%rip), %rax
cmove %rcx, %rax
jmp *%rax
1: mov %rcx, (%rdx)
ret

### such a place over a port, which may be a hypervisor's and may be none
# refuse: P2-target
# from: hw/i386/vmport.c
lea 1f(%rip), %rsi
out %al, %dx
jmp *%rsi
1: mov %rcx, (%rdx)
ret

### other registers computed meanwhile
# accept
# from: control
lea 1f(%rip), %rdi
mov ops(%rip), %rax
mov ops+8(%rip), %rdx
1: test %esi, %esi
cmove %rdx, %rax
jmp *%rax
.data
ops: .quad f, f
.text

### an address before its section by a register that is zero
# refuse: P2-target
# from: Linux 6.3 kernel/module/main.c, layout_sections: code is before the data
mov $0, %ecx
lea d - 0x1000(%rcx), %rax
jmp *%rax
.section .rodata,"a"
d: .quad 0
.text

### the same by an addition
# refuse: P2-target
# from: ibid.
mov $0, %eax
add $d - 0x1000, %rax
jmp *%rax
.section .rodata,"a"
d: .quad 0
.text

### a place inside a routine of the kernel, called by a register
# refuse: P2-target
# from: a direct call of it is refused
lea commit_creds + 5(%rip), %rax
jmp *%rax

### the same as an absolute address
# refuse: P2-target
# from: ibid.
sub $8, %rsp
mov $commit_creds + 5, %rax
call *%rax
add $8, %rsp
ret

### a routine of the kernel, called by a register, and a part of a variable told to it
# accept
# from: control
lea commit_creds(%rip), %rax
lea init_net + 8(%rip), %rdi
jmp *%rax

### such a place as an argument, and another register called
# accept
# from: Linux include/linux/instruction_pointer.h, _THIS_IP_
sub $8, %rsp
1: lea 1b(%rip), %rdi
call note
lea 1b(%rip), %rsi
mov ops(%rip), %rax
call *%rax
add $8, %rsp
ret
.data
ops: .quad f
.text

### an export of a place inside a routine of the kernel
# refuse: P2-target
# from: Linux 6.1 kernel/module/main.c, resolve_symbol: others call what the table says
ret
.section __ksymtab,"a"
.long commit_creds + 5 - ., d - ., 0
.data
d: .asciz "foo"
.text

### an export of such a routine
# accept
# from: control
ret
.section __ksymtab,"a"
.long commit_creds - ., d - ., 0
.section __ksymtab_strings,"a"
d: .asciz "foo"
.text

### a routine whose address a per-CPU variable of the kernel has
# accept
# from: control: what is loaded is none
sub $8, %rsp
mov %gs:cpu_ops+8(%rip), %rax
call *%rax
add $8, %rsp
ret

### an address before its section times a number that is loaded
# refuse: P2-target
# from: SDM vol. 2, IMUL
imul $d - 0x1000, one(%rip), %rax
jmp *%rax
.section .rodata,"a"
d: .quad 0
one: .quad 1
.text

### a place inside a routine of the kernel times a word of the frame
# refuse: P2-target
# from: ibid.
sub $8, %rsp
movq $1, (%rsp)
imul $commit_creds + 5, (%rsp), %rax
call *%rax
add $8, %rsp
ret

### the same, and a loaded function called
# accept
# from: control
sub $8, %rsp
imul $commit_creds + 5, one(%rip), %rcx
mov ops(%rip), %rax
call *%rax
add $8, %rsp
ret
.data
ops: .quad f
one: .quad 1
.text

### such a place whose low byte a string instruction loads
# refuse: P2-target
# from: SDM vol. 2, LODS: the rest of rax stays
{T:(%rsi)}
mov %rax, %rsi
lea 1f(%rip), %rax
lodsb
jmp *%rax
1: mov %rcx, (%rdx)
ret

### such a place over a call of a function that leaves the register alone
# refuse: P2-target
# from: psABI 3.2.1: callees may write rcx, and need not
lea 1f(%rip), %rcx
sub $8, %rsp
call g
add $8, %rsp
jmp *%rcx
1: mov %rcx, (%rdx)
ret
.type g, @function
g: ret

### the same of a routine of the kernel in assembly, which keeps all but the result
# refuse: P2-target
# from: Linux arch/x86/lib/hweight.S
lea 1f(%rip), %rcx
sub $8, %rsp
call __sw_hweight64
add $8, %rsp
jmp *%rcx
1: mov %rcx, (%rdx)
ret

### the same of an operation of pv_ops that keeps all
# refuse: P2-target
# from: Linux arch/x86/include/asm/paravirt.h, PV_CALLEE_SAVE_REGS_THUNK
lea 1f(%rip), %rcx
sub $8, %rsp
call *pv_ops+240(%rip)
add $8, %rsp
jmp *%rcx
1: mov %rcx, (%rdx)
ret

### the same of a routine that may leave a limit in rbx, and one of its siblings does not
# refuse: P2-target
# from: Linux arch/x86/lib/putuser.S
push %rbx
lea 1f(%rip), %rbx
call __put_user_nocheck_8
mov %rbx, %rcx
pop %rbx
jmp *%rcx
1: mov %rcx, (%rdx)
ret

### such a place in a register that a function keeps on one of its ways alone
# refuse: P2-target
# from: psABI 3.2.1
push %rbx
lea 1f(%rip), %rbx
call g
mov %rbx, %rcx
pop %rbx
jmp *%rcx
1: mov %rcx, (%rdx)
ret
.type g, @function
g: test %edi, %edi
je 2f
xor %ebx, %ebx
2: ret

### such a place as an argument of a call, whose result is called
# accept
# from: control
sub $8, %rsp
lea 1f(%rip), %rdi
1: call get_ops
mov 8(%rsp), %rcx
mov ops(%rip), %rax
call *%rax
add $8, %rsp
ret
.data
ops: .quad f
.text

### such a place where the bits of zero are counted, which old processors take for a search
# refuse: P2-target
# from: SDM vol. 2, TZCNT and BSF: nothing is written if nothing is set
xor %ecx, %ecx
lea 1f(%rip), %rax
tzcnt %rcx, %rax
jmp *%rax
1: mov %rcx, (%rdx)
ret

### the own return address by a string instruction that the kernel answers for
# refuse: P2-target
# from: SDM vol. 2, LODS
mov %rsp, %rsi
1: lodsq
2: jmp *%rax
.section __ex_table, "a"
.long 1b - ., 2b - ., 1
.text

### the same downwards, as many words as a register says
# refuse: P2-target
# from: ibid.
lea 64(%rsp), %rsi
std
1: rep lodsq
2: cld
jmp *%rax
.section __ex_table, "a"
.long 1b - ., 2b - ., 1
.text

### a word below it by a string instruction
# accept
# from: control
push %rdi
mov %rsp, %rsi
1: lodsq
2: add $8, %rsp
jmp *%rax
.section __ex_table, "a"
.long 1b - ., 2b - ., 1
.text

### a jump to where the own return address says, which stays on the stack
# refuse: P2-target
# from: Linux arch/x86/include/asm/nospec-branch.h: `ret` takes it from there
jmp *(%rsp)

### a call there
# refuse: P2-target
# from: ibid.
sub $8, %rsp
call *8(%rsp)
add $8, %rsp
ret

### a call of a function whose address is in the frame
# accept
# from: control
push %rdi
call *(%rsp)
add $8, %rsp
ret

### a place that is counted from a function's start
# refuse: P2-target
# from: docs/proof/linux.md, P2
lea f(%rip), %rax
add $7, %rax
jmp *%rax

### the same by an address whose displacement has four bytes
# refuse: P2-target
# from: ibid.; the decoder says of these bytes what it says of an address that a symbol alone names
lea f(%rip), %rax
lea 0x1007(%rax), %rax
jmp *%rax

### the same, with an index
# refuse: P2-target
# from: ibid.
sub $8, %rsp
mov $f, %rcx
lea 0x1000(%rdi,%rcx), %rax
call *%rax
add $8, %rsp
ret

### an index alone, which is twice the address
# refuse: P2-target
# from: ibid.
lea f(%rip), %rax
lea 0x1000(,%rax,2), %rax
jmp __x86_indirect_thunk_rax

### a function's address by such a displacement, which is none
# accept
lea f(%rip), %rax
{disp32} lea 0(%rax), %rax
jmp *%rax

### the same from an absolute address, by a sum
# refuse: P2-target
# from: ibid.
sub $8, %rsp
mov $f, %rax
lea (%rax,%rdi), %rcx
call *%rcx
add $8, %rsp
ret

### a place that is counted from a routine of the kernel
# refuse: P2-target
# from: ibid.
lea commit_creds(%rip), %rax
add $5, %rax
jmp *%rax

### a place that is counted from the module's data, as code is not far
# refuse: P2-target
# from: Linux 6.3 kernel/module/main.c, layout_sections
lea d(%rip), %rax
sub $0x1000, %rax
jmp *%rax
.section .rodata, "a"
d: .quad 0
.text

### the same from an array's place, which is added
# refuse: P2-target
# from: ibid.
mov $0x1000, %eax
add $d, %rax
jmp *%rax
.section .rodata, "a"
d: .quad 0
.text

### one of two functions, moved by a condition and exchanged
# accept
# from: control
lea f(%rip), %rax
lea commit_creds(%rip), %rcx
test %edi, %edi
cmove %rcx, %rax
cmova %rax, %rcx
xchg %rax, %rcx
mov %rcx, %rdx
jmp *%rdx

### a function that an array has, by an index
# accept
# from: control
lea ops(%rip), %rdx
{T:(%rdx,%rdi,8)}
mov (%rax), %rax
jmp *%rax
.data
ops: .quad f, f
.text

### a function's address with a bit set, told to a function
# accept
# from: control: Linux kernel/workqueue.c keeps flags beside addresses
sub $8, %rsp
lea f(%rip), %rdi
or $1, %rdi
lea commit_creds(%rip), %rax
call *%rax
add $8, %rsp
ret

### the low half of a function's address, which is one of a process
# refuse: P2-target
# from: SDM vol. 1, 3.4.1.1: the upper half is cleared
lea f(%rip), %eax
jmp *%rax

### the low half of an own function's address, counted from the low half of rip
# refuse: P2-target
# from: SDM vol. 1, 3.7.5: the prefix 67 cuts the sum
lea f(%eip), %rax
jmp *%rax

### the address of a function of the object
# accept
# from: control
sub $8, %rsp
lea f(%rip), %rax
call *%rax
mov $f, %rcx
call *%rcx
add $8, %rsp
ret

### a result that is called, behind a port and a number that was counted
# accept
# from: control: Linux drivers/media/pci/dm1105/dm1105.c, dm1105_probe
push %rbx
mov ops(%rip), %rbx
lea ops(,%rdi,8), %rcx
lea f(%rip), %rsi
out %al, %dx
call get_ops
call *%rax
call *%rbx
pop %rbx
ret
.data
ops: .quad f
.text

### the low half of a function's address, by an address of 32 bits alone
# refuse: P2-target
# from: SDM vol. 1, 3.7.5: the prefix 67 cuts the displacement, which is extended by its sign without it
.byte 0x67, 0x48, 0x8d, 0x04, 0x25
.reloc ., R_X86_64_32S, f
.long 0
jmp *%rax

### the distance to a function, which is a small number
# refuse: P2-target
# from: psABI 4.4, R_X86_64_PC64
.byte 0x48, 0xb8
.reloc ., R_X86_64_PC64, f
.quad 0
jmp *%rax

### the distance to a routine of the kernel
# refuse: P2-target
# from: ibid.
movabs $commit_creds - ., %rax
jmp *%rax

### the place of the module's own per-CPU data, a small number
# refuse: P2-target
# from: Linux 6.1 kernel/module/main.c, percpu_modalloc
mov $v, %rax
jmp *%rax
.section .data..percpu, "aw"
v: .quad 0
.text

### half the translation of a function's address: its distance from the page
# refuse: P2-target
# from: a stage of a check is a number of its own
lea f(%rip), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
jmp *%rax

### the same in a copy
# refuse: P2-target
# from: ibid.
lea f(%rip), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
mov %rax, %rdx
jmp *%rdx

### the same, moved by a condition
# refuse: P2-target
# from: ibid.
lea f(%rip), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
test %edi, %edi
cmove %rax, %rdx
jmp *%rdx

### the byte before such a place, by loop
# refuse: P2-target
# from: SDM vol. 2, LOOP: it counts in rcx
lea 1f(%rip), %rcx
loop 2f
2: jmp *%rcx
1: mov %rcx, (%rdx)
ret

### the byte before a function, by loopne
# refuse: P2-target
# from: ibid.
lea f(%rip), %rcx
loopne 2f
2: jmp *%rcx

### such a place as the count of a string that ends early
# refuse: P2-target
# from: SDM vol. 2, REP: what is left of the count stays in rcx
lea 3f(%rip), %rcx
1: repe cmpsb
2: jmp *%rcx
3: mov %rcx, (%rdx)
ret
.section __ex_table, "a"
.long 1b - ., 2b - ., 1
.text

### a function as the count of a copy that faults
# refuse: P2-target
# from: SDM vol. 2, REP: the registers say how far it came
lea f(%rip), %rcx
1: rep movsb
2: jmp *%rcx
.section __ex_table, "a"
.long 1b - ., 2b - ., 1
.text

### a thunk by a constant: it goes on at the place in another register
# refuse: P2-relocation
# from: Linux arch/x86/lib/retpoline.S
mov $__x86_indirect_thunk_rcx, %rax
lea 1f(%rip), %rcx
jmp *%rax
1: mov %rcx, (%rdx)
ret

### a thunk by its address
# refuse: P2-relocation
# from: ibid.
lea __x86_indirect_thunk_rcx(%rip), %rax
lea 1f(%rip), %rcx
jmp *%rax
1: mov %rcx, (%rdx)
ret

### a thunk by a pointer in data
# refuse: P2-callee
# from: ibid.
lea 1f(%rip), %rcx
jmp *p(%rip)
1: mov %rcx, (%rdx)
ret
.data
p: .quad __x86_indirect_thunk_rcx
.text

### a thunk by its name
# accept
# from: control
mov ops(%rip), %rcx
jmp __x86_indirect_thunk_rcx
.data
ops: .quad f
.text

### a count in rcx behind a function's address in others
# accept
# from: control
sub $8, %rsp
lea f(%rip), %rax
mov $9, %ecx
1: loop 1b
call *%rax
add $8, %rsp
ret

### a variable of each CPU as an argument
# accept
# from: control: Linux include/linux/percpu-defs.h, this_cpu_ptr
sub $8, %rsp
mov $v, %rdi
add %gs:this_cpu_off, %rdi
lea commit_creds(%rip), %rax
call *%rax
add $8, %rsp
ret
.section .data..percpu, "aw"
v: .quad 0
.text

### a byte of a table, given to a port behind a pointer to a function
# accept
# from: control: Linux 5.10 drivers/hwmon/it87.c, set_pwm_enable
sub $8, %rsp
mov ops(%rip), %rsi
{T:table(%rdi)}
movzbl (%rax), %eax
out %al, %dx
call *%rsi
add $8, %rsp
ret
.section .rodata, "a"
table: .quad 0
.data
ops: .quad f
.text

### a number that was counted from an address, given to a port
# accept
# from: control
sub $8, %rsp
mov ops(%rip), %rcx
lea ops+4(%rdi), %rax
out %eax, %dx
call *%rcx
add $8, %rsp
ret
.data
ops: .quad f
.text

### a byte of a port in the place of a function's lowest
# refuse: P2-target
# from: SDM vol. 2, IN: the rest of rax stays
lea f(%rip), %rax
in %dx, %al
jmp *%rax

### the same, loaded
# refuse: P2-target
# from: SDM vol. 1, 3.4.1.1
lea f(%rip), %rax
mov d(%rip), %al
jmp *%rax
.data
d: .byte 0
.text

### the same from where the register leads
# refuse: P2-target
# from: ibid.
lea f(%rip), %rax
1: mov (%rax), %al
2: jmp *%rax
.section __ex_table, "a"
.long 1b - ., 2b - ., 1
.text

### such a place over an access to a port, in a register that a hypervisor may leave
# refuse: P2-target
# from: QEMU hw/i386/vmport.c
lea 1f(%rip), %rcx
in %dx, %eax
jmp *%rcx
1: mov %rcx, (%rdx)
ret

### a function's address that waits in another register while flags are saved
# accept
# from: control: Linux 6.1 sound/drivers/dummy.c, dummy_pcm_open, as it is rewritten
sub $8, %rsp
lea f(%rip), %rax
mov %rax, %rbx
lahf
seto %al
xchg %rax, %rbx
mov %rbx, %rcx
xchg %rax, %rbx
add $0x7f, %al
sahf
mov %rbx, %rax
call *%rax
add $8, %rsp
ret

### a number that was exchanged with a function's address
# refuse: P2-target
# from: SDM vol. 2, XCHG
lea f(%rip), %rax
lea 7(%rax), %rcx
xchg %rax, %rcx
jmp *%rax

### the same, the other way
# refuse: P2-target
# from: ibid.
lea f(%rip), %rax
lea 7(%rax), %rcx
xchg %rcx, %rax
jmp *%rax

### the halves of two registers, exchanged
# refuse: P2-target
# from: SDM vol. 1, 3.4.1.1
lea f(%rip), %rax
xor %ecx, %ecx
xchg %eax, %ecx
jmp *%rcx

### a place inside a function over a static call, which may do nothing
# refuse: P2-target
# from: Linux 6.1 arch/x86/kernel/static_call.c: a call that leads nowhere becomes a nop
lea 1f(%rip), %rax
call __SCT__x
call *%rax
ret
1: sub $8, %rsp
add $8, %rsp
ret

### the same over a function that does nothing
# refuse: P2-target
lea 1f(%rip), %rax
call g
call *%rax
ret
1: sub $8, %rsp
add $8, %rsp
ret
.type g,@function
g: ret
.size g,.-g

### the same over an operation of pv_ops that does nothing
# refuse: P2-target
# from: Linux 6.1 arch/x86/kernel/alternative.c, apply_paravirt: a call of paravirt_nop becomes nops
lea 2f(%rip), %rax
1: call *pv_ops+40(%rip)
call *%rax
ret
2: sub $8, %rsp
add $8, %rsp
ret
.section .parainstructions,"a"
.balign 8
.quad 1b
.byte 5, 6
.balign 8
.text

### the low bytes of a place inside a function over those of a function that was loaded
# refuse: P2-target
# from: SDM vol. 2, LEA: with an operand of 16 bits it leaves the rest of the register
mov ops(%rip), %rax
lea 1f(%rip), %ax
call *%rax
ret
1: sub $8, %rsp
add $8, %rsp
ret
.data
ops: .quad f
.text

### the same in a register that needs a prefix
# refuse: P2-target
mov ops(%rip), %r9
lea 1f(%rip), %r9w
jmp *%r9
1: sub $8, %rsp
add $8, %rsp
ret
.data
ops: .quad f
.text

### the low bytes of a place inside a function as a number
# accept
lea 1f(%rip), %ax
1: mov %eax, %edi
call g
ret

### one of 16 caches, chosen by the own return address, over a call: its result is called
# accept
# from: Linux 6.8 include/linux/slab.h, kmalloc_type (CONFIG_RANDOM_KMALLOC_CACHES)
mov (%rsp), %rax
movabs $0x61c8864680b583eb, %rdx
imul %rdx, %rax
shr $60, %rax
imul $0x70, %rax, %rax
call g
call *%rax
ret
.type g,@function
g: ret
.size g,.-g

### one of 32
# refuse: P2-target
# from: ibid.
mov (%rsp), %rax
movabs $0x61c8864680b583eb, %rdx
imul %rdx, %rax
shr $59, %rax
imul $0x70, %rax, %rax
call g
call *%rax
ret
.type g,@function
g: ret
.size g,.-g

### a shift by 124, which is by 60, and one of half a register
# accept
# from: SDM vol. 2, SHR: the count is masked
mov (%rsp), %rax
shr $124, %rax
mov (%rsp), %rcx
shr $28, %ecx
call g
mov %rcx, %rdx
call *%rdx
ret
.type g,@function
g: ret
.size g,.-g

### a shift by 64, which is none
# refuse: P2-target
# from: ibid.
lea 1f(%rip), %rax
shr $64, %rax
call *%rax
ret
1: sub $8, %rsp
add $8, %rsp
ret

### a shift to the left
# refuse: P2-target
lea 1f(%rip), %rax
shl $60, %rax
call *%rax
ret
1: sub $8, %rsp
add $8, %rsp
ret

### a shift by a number in a register
# refuse: P2-target
lea 1f(%rip), %rax
mov $60, %ecx
shr %cl, %rax
call *%rax
ret
1: sub $8, %rsp
add $8, %rsp
ret

### a shift of the low half to 16 bits
# refuse: P2-target
lea 1f(%rip), %rax
shr $60, %ax
call *%rax
ret
1: sub $8, %rsp
add $8, %rsp
ret
