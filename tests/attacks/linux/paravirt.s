### a paravirtual call
# accept
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch
1: call *pv_ops+8(%rip)
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 9b-1b
.skip 6
.popsection

### the same by an absolute address
# accept
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch
1: call *pv_ops+8
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 9b-1b
.skip 6
.popsection

### a record over another instruction
# refuse: P2-metadata
# from: issue 14.16
1: mov $1, %eax; nop
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 9b-1b
.skip 6
.popsection

### a record over a call and what follows
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch: nops behind the call
1: call *pv_ops+8(%rip); mov %rax, %rbx
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 9b-1b
.skip 6
.popsection

### a record over the end of a call
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch
1: call *pv_ops+8(%rip)
9: ret
.pushsection .parainstructions,"a"
.quad 1b+2
.byte 1, 4
.skip 6
.popsection

### a record for another slot
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch: the type is the index
1: call *pv_ops+8(%rip)
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 2, 9b-1b
.skip 6
.popsection

### a record over a call of something else
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch
1: call *other+8(%rip)
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 9b-1b
.skip 6
.popsection

### a record over a jump
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch: it becomes a call
1: jmp *pv_ops+8(%rip)
9: int3
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 9b-1b
.skip 6
.popsection

### a record over a direct call
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch
1: call g
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 9b-1b
.skip 6
.popsection

### a record shorter than a call
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch: BUG_ON(used > len)
1: call *%rax; nop; nop
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 2
.skip 6
.popsection

### a record over a call through a register
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch
1: call *%rax; nop; nop; nop; nop
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 9b-1b
.skip 6
.popsection

### a record over a call through the module's own pv_ops
# refuse: P2-metadata
# from: Linux 6.1 arch/x86/kernel/paravirt.c, paravirt_patch
1: call *pv_ops+8(%rip)
9: ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 9b-1b
.skip 6
.popsection
.data
pv_ops: .quad 0, 0
.text

### a record over a check
# refuse: P2-metadata
{T:(%rdi)}
mov (%rax), %rax
ret
.pushsection .parainstructions,"a"
.quad .Lback1 - 8
.byte 1, 8
.skip 6
.popsection

### a record for the runtime
# refuse: P2-metadata
ret
.pushsection .parainstructions,"a"
.quad twin_slow_rax
.byte 1, 6
.skip 6
.popsection

### a record without a relocation
# refuse: P2-metadata
ret
.pushsection .parainstructions,"a"
.quad 0xffffffff81000000
.byte 1, 6
.skip 6
.popsection

### a record at an absolute symbol
# refuse: P2-metadata
# from: issue 14.14
ret
.globl there
there = 0xffffffff81000000
.pushsection .parainstructions,"a"
.quad there
.byte 1, 6
.skip 6
.popsection

### a record before a relocated length
# refuse: P2-metadata
# from: apply_relocate_add writes over it
1: call *pv_ops+8(%rip)
ret
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 6
.skip 2
.long 1b - .
.popsection

### a paravirtual call inside an alternative
# accept
# from: PVOP_ALT_CALL: first the call, then the alternative
1: call *pv_ops+8(%rip)
9: ret
.pushsection .altinstr_replacement,"ax"
2: sti
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 6
.skip 6
.popsection

### a paravirtual call inside a replacement
# refuse: P2-metadata
# from: it becomes a direct call, and is copied without its distance
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: call *pv_ops+8
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 7, 7
.popsection
.pushsection .parainstructions,"a"
.quad 2b
.byte 1, 7
.skip 6
.popsection

### a paravirtual call and more inside an alternative, which older kernels apply first
# refuse: P2-metadata
# from: Linux 5.17 arch/x86/kernel/module.c, module_finalize: alternatives before paravirtual calls
1: call *pv_ops+8(%rip)
nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: movabs $0x1234567890abcdef, %rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .parainstructions,"a"
.quad 1b
.byte 1, 6
.skip 6
.popsection

### the second of two instructions of an alternative is a paravirtual call
# refuse: P2-metadata
# from: Linux 5.17 arch/x86/kernel/module.c, module_finalize
1: nop; nop
8: call *pv_ops+8(%rip)
9: ret
.pushsection .altinstr_replacement,"ax"
2: mov $0x12345678, %eax
nop; nop; nop
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection
.pushsection .parainstructions,"a"
.quad 8b
.byte 1, 6
.skip 6
.popsection
