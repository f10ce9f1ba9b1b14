/* Entries of interrupts, which the kernel exports for KVM: they end with iretq. */

### a call of the entry for NMIs, with a frame of its own choice
# refuse: P2-relocation
# from: Linux 6.1 arch/x86/entry/entry_64.S: asm_exc_nmi_noist is exported; iretq takes rip, rsp and flags
sub $40, %rsp
call asm_exc_nmi_noist
add $40, %rsp
ret

### the same in newer kernels
# refuse: P2-relocation
# from: Linux 6.12 arch/x86/entry/entry_64.S, asm_exc_nmi_kvm_vmx
sub $40, %rsp
call asm_exc_nmi_kvm_vmx
add $40, %rsp
ret

### a jump to it
# refuse: P2-relocation
# from: ibid.
jmp asm_exc_nmi_kvm_vmx

### the same behind a condition
# refuse: P2-relocation
# from: ibid.
test %rdi, %rdi
je asm_exc_nmi_kvm_vmx
ret

### its address in a register
# refuse: P2-relocation
# from: ibid.
lea asm_exc_nmi_kvm_vmx(%rip), %rax
jmp *%rax

### its address as a number
# refuse: P2-relocation
# from: ibid.
mov $asm_exc_nmi_kvm_vmx, %rax
jmp *%rax

### its address in data
# refuse: P2-relocation
# from: ibid.
mov d(%rip), %rax
jmp *%rax
.data
d: .quad asm_exc_nmi_noist
.text

### the key of a static call that leads there
# refuse: P2-relocation
# from: Linux 6.1 kernel/static_call_inline.c: the function is in the key
1: call __SCT__mine
ret
.type __SCT__mine,@function
__SCT__mine: ret; int3; nop; nop; nop; .byte 0x0f, 0xb9, 0xcc
.pushsection .static_call_sites,"aw"
.long 1b - ., k - .
.popsection
.data
k: .quad asm_exc_nmi_kvm_vmx, 0
.text

### the entry of the timer's interrupt
# refuse: P2-relocation
# from: Linux 6.1 arch/x86/include/asm/idtentry.h, DECLARE_IDTENTRY_SYSVEC
jmp asm_sysvec_apic_timer_interrupt

### an entry of a guest of Xen's
# refuse: P2-relocation
# from: Linux 6.1 arch/x86/xen/xen-asm.S
call xen_asm_exc_nmi
ret

### a routine in assembly that returns
# accept
# from: Linux 6.1 arch/x86/entry/entry_64.S, asm_load_gs_index
call asm_load_gs_index
ret

### the kernel's selector for verw, called: it is among its code, and stores where rax leads
# refuse: P2-relocation
# from: Linux 6.1 arch/x86/entry/entry.S, x86_verw_sel: .word __KERNEL_DS, filled up with int3
mov %rdi, %rax
call x86_verw_sel
ret

### the same by its address
# refuse: P2-relocation
# from: ibid.
mov %rdi, %rax
lea x86_verw_sel(%rip), %rdx
call *%rdx
ret

### the same by its older name
# refuse: P2-relocation
# from: Linux 6.1.81 arch/x86/entry/entry.S
mov %rdi, %rax
jmp mds_verw_sel

### a selector of the module's own
# accept
verw x(%rip)
ret
.section .rodata.x,"a",@progbits
x: .short 0x18
.text
