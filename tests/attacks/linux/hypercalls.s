/* Calls of the machine's hypervisor, which may change any register but rsp and rbp. */

### a call of the hypervisor
# accept
# from: arch/x86/include/asm/kvm_para.h
mov $9, %eax
vmcall
mov %rax, %rsi
{T} mov %rsi, (%rax)
ret

### the same of AMD's processors
# accept
vmmcall
ret

### a translation that is used after it
# refuse: P1-untranslated
{T} vmcall; mov (%rax), %rdx; ret

### one in the middle of a check
# refuse: P1-untranslated
mov %rdi, %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
vmmcall
ja 1f
add twin_stlb+8(%rcx), %rax
2: mov (%rax), %rdx
ret
1: mov %rdi, %rax
call twin_slow_rax
jmp 2b

### a frame pointer that is used after it
# accept
# from: Linux 5.10 drivers/ptp/ptp_kvm_common.c
push %rbp
mov %rsp, %rbp
vmcall
leave
ret

### a register that callees keep
# refuse: P4-rsp
mov %rsp, %r12
sub $8, %rsp
vmcall
mov %r12, %rsp
ret

### a call that leaves an encrypted guest
# refuse: P3-instruction
# from: AMD64 APM vol. 3, VMGEXIT
.byte 0xf3, 0x0f, 0x01, 0xd9
ret

### with a prefix that repeats nothing
# refuse: P3-undecodable
.byte 0xf3
vmcall
ret

### with an operand size
# refuse: P3-undecodable
.byte 0x66
vmcall
ret

### a translation that is used after VMware's call by bytes of a port
# refuse: P1-untranslated
# from: Linux 6.12 arch/x86/include/asm/vmware.h, vmware_hypercall_hb_out: rbx has a result
{T} mov %rax, %rbx; mov $0x564d5868, %eax; xor %ecx, %ecx
1: rep outsb; mov (%rbx), %rdx; 2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### the same behind bytes of a port that are read
# refuse: P4-rsp
# from: ibid., vmware_hypercall_hb_in
mov %rsp, %rbp; sub $8, %rsp; xor %ecx, %ecx
1: rep insb; mov %rbp, %rsp; ret
2: add $8, %rsp; ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a frame pointer that is taken back from the stack behind it
# accept
# from: ibid.
push %rbp; xor %ebp, %ebp; xor %ecx, %ecx
1: rep outsb; 2: pop %rbp; ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a frame that is left by a frame pointer, pushed before bytes of a port and popped behind them
# accept
# from: w6692 of Ubuntu's 5.15, which keeps frame pointers, as it is rewritten
push %rbp; mov %rsp, %rbp; sub $16, %rsp
{T} mov %rax, %rsi; push %rbp; outsb; pop %rbp
leave; ret

### the same without the push
# refuse: P4-rsp
push %rbp; mov %rsp, %rbp; sub $16, %rsp
{T} mov %rax, %rsi; outsb
leave; ret

### an operand in the frame by a frame pointer that was popped there
# refuse: P1-untranslated
push %rbp; mov %rsp, %rbp; sub $16, %rsp
{T} mov %rax, %rsi; push %rbp; outsb; pop %rbp
mov %rax, -8(%rbp)
leave; ret

### a register that VMware's call returns, pushed and popped as a frame pointer
# refuse: P4-rsp
push %rbp; mov %rsp, %rbp; push %rbp
{T} mov %rax, %rsi; mov %rbp, %rbx; outsb; mov %rbx, (%rsp); pop %rbp
leave; ret

### a frame pointer below the stack pointer, where interrupts write
# refuse: P4-rsp
push %rbp; mov %rsp, %rbp; sub $16, %rsp
{T} mov %rax, %rsi; mov %rbp, -8(%rsp); outsb; mov -8(%rsp), %rbp
leave; ret

### a frame pointer over a call of a function that takes it back behind bytes of a port
# accept
push %rbp; mov %rsp, %rbp; sub $16, %rsp
call g
leave; ret
.type g, @function
g: {T} mov %rax, %rsi; push %rbp; outsb; pop %rbp
ret

### the same where the function does not take it back
# refuse: P4-rsp
push %rbp; mov %rsp, %rbp; sub $16, %rsp
call g
leave; ret
.type g, @function
g: {T} mov %rax, %rsi; outsb
ret

### a translation that is used after words of a port
# accept
# from: ibid.: bytes alone
{T} mov %rax, %r8
mov %rdi, %rax; mov %eax, %ecx; shr $8, %ecx; and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax; cmp $0xfff, %rax; ja 3f; add twin_stlb+8(%rcx), %rax
2: mov %rax, %rsi
outsl; mov (%r8), %rdx; ret
3: mov %rdi, %rax; call twin_slow_rax; jmp 2b

### as a replacement
# accept
# from: Linux 6.1 arch/x86/include/asm/vmware.h
1: inl (%dx), %eax
2: nop
nop
3: ret
.pushsection .altinstructions,"a"
.long 1b - ., 4f - .
.word 7
.byte 3b - 1b, 5f - 4f
.popsection
.pushsection .altinstr_replacement,"ax"
4: vmcall
5: .popsection

### as a replacement, with a translation that lives on
# refuse: P1-untranslated
{T}
1: nop
2: nop
nop
3: mov (%rax), %rcx
ret
.pushsection .altinstructions,"a"
.long 1b - ., 4f - .
.word 7
.byte 3b - 1b, 5f - 4f
.popsection
.pushsection .altinstr_replacement,"ax"
4: vmcall
5: .popsection

### a call of Xen by the last entry of its page
# accept
# from: Linux 6.8 arch/x86/xen/xen-head.S, hypercall_page: 128 entries of 32 bytes
call hypercall_page + 0xfe0
ret

### the same by the first entry
# accept
call hypercall_page
ret

### a translation that is used after it
# refuse: P1-untranslated
{T} call hypercall_page + 0x180; mov (%rax), %rdx; ret

### a call behind the page
# refuse: P2-relocation
call hypercall_page + 0x1000
ret

### a call before the page
# refuse: P2-relocation
call hypercall_page - 0x20
ret

### a call between two entries
# refuse: P2-relocation
call hypercall_page + 0x21
ret

### a call inside another routine of the kernel
# refuse: P2-relocation
call hypercall_pages + 0x20
ret

### the address of the page is no place of the module's
# refuse: P2-relocation
.weak hypercall_page
call hypercall_page + 0x20
ret

### a call of the entry for iret, which takes rip and rsp from the frame
# refuse: P2-relocation
# from: Xen 4.17 xen/arch/x86/pv/hypercall.c, hypercall_page_initialise_ring3_kernel
sub $40, %rsp
call hypercall_page + 23 * 32
add $40, %rsp
ret

### a jump to it
# refuse: P2-relocation
# from: ibid.
jmp hypercall_page + 23 * 32

### a call of the entry behind it
# accept
# from: control
sub $40, %rsp
call hypercall_page + 24 * 32
add $40, %rsp
ret

### a jump to the entry behind it
# accept
# from: control
jmp hypercall_page + 24 * 32

### a page of a module's own that others take for Xen's
# refuse: P2-metadata
# from: Linux 6.13 arch/x86/xen/xen-head.S: it has none, and finds what a module exports
ret
.globl hypercall_page
.type hypercall_page,@function
hypercall_page: ret
.fill 157, 1, 0xcc
.byte 0x48, 0xb8, 0x48, 0x89, 0x07, 0xc3, 0, 0, 0, 0
ret
.section __ksymtab,"a"
.long hypercall_page - ., d - ., 0
.data
d: .asciz "hypercall_page"
.text

### a translation that is used behind a byte of a port, which QEMU takes for VMware's call
# refuse: P1-untranslated
# from: QEMU hw/i386/vmport.c: the port is one byte of which any access is made one of four; hw/i386/vmmouse.c
{T} mov %rax, %rbx; mov $0x564d5868, %eax; mov $10, %ecx; mov $0x5658, %edx
in (%dx), %al
mov %rdx, (%rbx); ret

### the same behind a word of a port
# refuse: P1-untranslated
# from: ibid.
{T} mov %rax, %rsi; mov $0x564d5868, %eax; mov $39, %ecx; mov $0x5658, %edx
in (%dx), %ax
mov %rdx, (%rsi); ret

### the same behind what is written to a port
# refuse: P1-untranslated
# from: ibid., vmport_ioport_write
{T} mov %rax, %rdi; mov $0x564d5868, %eax; mov $39, %ecx; mov $0x5658, %edx
out %eax, (%dx)
mov %rdx, (%rdi); ret

### the same behind words that are written to a port
# refuse: P1-untranslated
# from: ibid.
{T} mov %rax, %rbx; mov $0x564d5868, %eax; mov $10, %ecx; mov $0x5658, %edx
1: outsl
mov %rdx, (%rbx); 2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### a frame pointer over a port by which firmware is called
# refuse: P4-rsp
# from: Linux 6.1 drivers/hwmon/dell-smm-hwmon.c, i8k_smm_func: rax, rbx, rcx, rdx, rsi, rdi have results
mov %rsp, %rbx; sub $8, %rsp
out %al, $0xb2
mov %rbx, %rsp; ret

### the same where its answer is read
# refuse: P4-rsp
# from: Linux 6.1 drivers/platform/x86/dell/dcdbas.c, raise_smi
mov %rsp, %rbx; sub $8, %rsp
in $0xb3, %al
mov %rbx, %rsp; ret

### registers that such calls keep
# accept
# from: ibid.
mov %rsp, %r12; push %rbp; mov %rsp, %rbp
in (%dx), %al
out %al, $0xb2
leave; mov %r12, %rsp; ret

### ud2 that Xen goes on behind, as it makes it a part of cpuid
# refuse: P3-prefix
# from: xen/arch/x86/pv/emul-inv-op.c, emulate_forced_invalid_op
test %edi, %edi; je 1f
push %rdi; ud2
1: .byte 0x78,0x65                              # js 2f
3: outsb
cpuid
ret
.fill 1b + 0x67 - ., 1, 0x90
2: ret
.pushsection __ex_table,"a"
.long 3b - ., 2b - .
.long 3
.popsection

### the same without what Xen asks for
# accept
# from: ibid.
test %edi, %edi; je 1f
push %rdi; ud2
1: .byte 0x78,0x64
3: outsb
cpuid
ret
.fill 1b + 0x66 - ., 1, 0x90
2: ret
.pushsection __ex_table,"a"
.long 3b - ., 2b - .
.long 3
.popsection

### the same with what Xen asks for in a section that comes behind
# refuse: P3-prefix
# from: ibid.
test %edi, %edi; je 1f
push %rdi; ud2
.pushsection .text.b,"ax"
1: .byte 0x78,0x65
3: outsb
cpuid
ret
.fill 1b + 0x67 - ., 1, 0x90
2: ret
.popsection
.pushsection __ex_table,"a"
.long 3b - ., 2b - .
.long 3
.popsection

### ud2 that KVM may go on behind, in the middle of what follows
# refuse: P3-prefix
# from: Linux 6.1 arch/x86/kvm/x86.c, handle_ud (force_emulation_prefix)
{T} mov %rax, %rsi
test %edx, %edx; je 1f
push %rdi; ud2
1: imul $-0x3d, 0x6d(%rsi), %esi                # 6b 76 6d c3: ret
ret

### an instruction that traps, and that the kernel warns of and goes on behind
# refuse: P1-implicit
# from: Linux 6.19 arch/x86/kernel/traps.c, decode_bug (BUG_UD1_WARN), handle_bug: %rdi is an entry of a table
test %edi, %edi; je 1f
push %rsi; ud1 (%rdx), %rdi
1: ret

### the same with an address of 32 bits
# refuse: P1-implicit
# from: ibid.: 67 is passed over
test %edi, %edi; je 1f
push %rsi; ud1 (%edx), %rdi
1: ret

### one that the kernel ends at
# accept
# from: ibid.: as behind the trampoline of a static call
test %edi, %edi; je 1f
push %rsi; ud1 %esp, %ecx
1: ret

### caches whose writes are undone, the return address among them
# refuse: P3-instruction
# from: SDM vol. 2, INVD
call g; invd; ret

### caches that are written back
# accept
# from: SDM vol. 2, WBINVD
call g; wbinvd; ret

### a byte that an encrypted guest's kernel loads in the driver's place: to it %ah is the stack pointer
# refuse: P3-instruction
# from: Linux 6.1 arch/x86/kernel/sev.c, vc_handle_mmio; arch/x86/coco/tdx/tdx.c, handle_mmio
{T} mov (%rax), %ah; ret

### the same where the kernel answers for faults
# refuse: P3-instruction
# from: ibid.
1: mov (%rdi), %bh; 2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 3
.popsection

### the same of per-CPU data
# refuse: P3-instruction
# from: ibid.
mov %gs:(%rdi), %ch; ret

### such a byte by way of the lower one, from the frame and from data
# accept
# from: ibid.
{T} xchg %dl, %dh; mov (%rax), %dl; xchg %dl, %dh
push %rdi; mov (%rsp), %ah; mov %rsp, %rsi; mov 1(%rsi), %bh; pop %rdi
mov d(%rip), %ch; ret
.data
d: .byte 1
.text

### a load that such a kernel takes for a store to a device, by another register than the translated one
# refuse: P3-instruction
# from: Linux 6.1 arch/x86/lib/insn-eval.c, insn_decode_mmio: 0xc6 behind a VEX prefix; get_reg_offset asks for REX alone
{T} mov %rax, %r8; mov %rsi, %rax
vshufps $1, (%r8), %xmm0, %xmm0; ret

### the same of two numbers, by the translated one
# refuse: P3-instruction
# from: ibid.
{T} vshufpd $0, 8(%rax), %ymm1, %ymm0; ret

### the vector by a move, which no kernel executes in a driver's place
# accept
# from: ibid.
{T} vmovups (%rax), %xmm1; vshufps $1, %xmm1, %xmm0, %xmm0
ret

### a call of the hypervisor with a prefix, of which KVM writes the first three bytes
# refuse: P3-prefix
# from: Linux 6.1 arch/x86/kvm/x86.c, emulator_fix_hypercall: 0f 01 d9, then c1 and two bytes of what follows, where code may be written (rodata=off)
.byte 0x3e, 0x0f, 0x01, 0xc1
{T} mov (%rax), %rcx; ret

### the other maker's
# refuse: P3-prefix
# from: ibid.
.byte 0x2e, 0x0f, 0x01, 0xd9
ret

### such a call without one
# accept
# from: control
vmcall; vmmcall; ret
