### a table lookup through rbx and al
# refuse: P3-instruction
# from: SDM vol. 2, XLAT
{T:(%rdi)}
mov %rax, %rbx
xlatb
ret

### bytes stored under a mask, at rdi
# refuse: P3-instruction
# from: SDM vol. 2, MASKMOVDQU
maskmovdqu %xmm1, %xmm0
ret

### the same with MMX registers
# refuse: P3-instruction
# from: SDM vol. 2, MASKMOVQ
maskmovq %mm1, %mm0
ret

### a nested frame, which reads other frames
# refuse: P3-instruction
# from: SDM vol. 2, ENTER
enter $16, $31
leave
ret

### the x87 and SSE state into a window of another size
# refuse: P3-instruction
# from: SDM vol. 2, FXSAVE
{T:(%rdi)}
fxsave (%rax)
ret

### the same state loaded
# refuse: P3-instruction
# from: SDM vol. 2, FXRSTOR
{T:(%rdi)}
fxrstor (%rax)
ret

### a state whose size xcr0 decides
# refuse: P3-instruction
# from: SDM vol. 1, 13.5
{T:(%rdi)}
xor %ecx, %ecx
xsave (%rax)
ret

### the compacted form
# refuse: P3-instruction
# from: SDM vol. 2, XSAVEC
{T:(%rdi)}
xsavec (%rax)
ret

### the optimised form
# refuse: P3-instruction
# from: SDM vol. 2, XSAVEOPT
{T:(%rdi)}
xsaveopt (%rax)
ret

### the supervisor's state
# refuse: P3-instruction
# from: SDM vol. 2, XSAVES
{T:(%rdi)}
xsaves (%rax)
ret

### a state restored, protection keys with it
# refuse: P3-instruction
# from: SDM vol. 1, 13.1 (PKRU)
{T:(%rdi)}
xrstor (%rax)
ret

### the x87 environment, 28 bytes that no operand tells
# refuse: P3-instruction
# from: SDM vol. 2, FNSTENV
{T:(%rdi)}
fnstenv (%rax)
ret

### the x87 state, 108 bytes
# refuse: P3-instruction
# from: SDM vol. 2, FNSAVE
{T:(%rdi)}
fnsave (%rax)
ret

### ten bytes of x87
# refuse: P3-instruction
# from: SDM vol. 2, FSTP
{T:(%rdi)}
fstpt (%rax)
ret

### 64 bytes to an address in a register operand
# refuse: P3-instruction
# from: SDM vol. 2, MOVDIR64B
{T:(%rdi)}
movdir64b (%rax), %rdi
ret

### a direct store
# refuse: P3-instruction
# from: SDM vol. 2, MOVDIRI
{T:(%rdi)}
movdiri %rcx, (%rax)
ret

### a command to a device that a register names
# refuse: P3-instruction
# from: SDM vol. 2, ENQCMD
{T:(%rdi)}
enqcmd (%rax), %rdi
ret

### a masked store of AVX, whose length is in a register
# refuse: P3-instruction
# from: SDM vol. 2, VMASKMOV
{T:(%rdi)}
vmaskmovps %ymm1, %ymm2, (%rax)
ret

### the same for integers
# refuse: P3-instruction
# from: SDM vol. 2, VPMASKMOV
{T:(%rdi)}
vpmaskmovq %ymm1, %ymm2, (%rax)
ret

### a gather: eight addresses in one operand
# refuse: P3-instruction
# from: SDM vol. 2, VGATHERDPS
{T:(%rdi)}
vgatherdps %ymm1, (%rax,%ymm2,4), %ymm3
ret

### a gather of AVX-512
# refuse: P3-instruction
# from: SDM vol. 2, VPGATHERDD
{T:(%rdi)}
vpgatherdd (%rax,%zmm2,4), %zmm3{%k1}
ret

### a scatter
# refuse: P3-instruction
# from: SDM vol. 2, VPSCATTERDD
{T:(%rdi)}
vpscatterdd %zmm3, (%rax,%zmm2,4){%k1}
ret

### compressed bytes, as many as a mask has
# refuse: P3-instruction
# from: SDM vol. 2, VPCOMPRESSD
{T:(%rdi)}
vpcompressd %zmm1, (%rax){%k1}
ret

### a move of 64 bytes under a mask
# refuse: P3-instruction
# from: SDM vol. 2, VMOVDQU64
{T:(%rdi)}
vmovdqu64 %zmm1, (%rax){%k1}
ret

### a load of 64 bytes that is broadcast
# refuse: P3-instruction
# from: SDM vol. 2, 2.7.5
{T:(%rdi)}
vaddps (%rax){1to16}, %zmm1, %zmm2
ret

### a tile's configuration
# refuse: P3-instruction
# from: SDM vol. 2, LDTILECFG
{T:(%rdi)}
ldtilecfg (%rax)
ret

### a tile: rows at a stride that a register holds
# refuse: P3-instruction
# from: SDM vol. 2, TILELOADD
{T:(%rdi)}
tileloadd (%rax,%rcx,1), %tmm1
ret

### a tile stored
# refuse: P3-instruction
# from: SDM vol. 2, TILESTORED
{T:(%rdi)}
tilestored %tmm1, (%rax,%rcx,1)
ret

### a cache line written back and dropped
# refuse: P3-instruction
# from: SDM vol. 2, CLFLUSH
{T:(%rdi)}
clflush (%rax)
ret

### a cache line zeroed at rax
# refuse: P3-instruction
# from: AMD vol. 3, CLZERO
clzero
ret

### a monitored line at rax
# refuse: P3-instruction
# from: SDM vol. 2, MONITOR
monitor
ret

### the same for programs
# refuse: P3-instruction
# from: SDM vol. 2, UMONITOR
umonitor %rax
ret

### bounds of MPX in a table that the CPU walks
# refuse: P3-instruction
# from: SDM vol. 1, 17.4.3
{T:(%rdi)}
.byte 0x0f, 0x1a, 0x04, 0x08      # bndldx (%rax,%rcx), %bnd0, which binutils 2.44 no longer knows
ret

### a shadow stack written
# refuse: P3-instruction
# from: SDM vol. 2, WRSSQ
{T:(%rdi)}
wrssq %rcx, (%rax)
ret

### a shadow stack's token
# refuse: P3-instruction
# from: SDM vol. 2, RSTORSSP
{T:(%rdi)}
rstorssp (%rax)
ret

### keys loaded and wrapped
# refuse: P3-instruction
# from: SDM vol. 2, AESENC128KL
{T:(%rdi)}
aesenc128kl (%rax), %xmm1
ret

### a trace packet from memory
# refuse: P3-instruction
# from: SDM vol. 2, PTWRITE
{T:(%rdi)}
ptwrite (%rax)
ret

### a model-specific register read
# refuse: P3-instruction
# from: SDM vol. 2, RDMSR
rdmsr
ret

### a model-specific register written
# refuse: P3-instruction
# from: SDM vol. 2, WRMSR
wrmsr
ret

### the same without waiting
# refuse: P3-instruction
# from: SDM vol. 2, WRMSRNS
wrmsrns
ret

### a performance counter
# refuse: P3-instruction
# from: SDM vol. 2, RDPMC
rdpmc
ret

### the page tables' register written
# refuse: P3-instruction
# from: SDM vol. 2, MOV CR
mov %rdi, %cr3
ret

### protection switched off
# refuse: P3-instruction
# from: SDM vol. 2, MOV CR
mov %rdi, %cr0
ret

### the task priority read
# refuse: P3-instruction
# from: SDM vol. 2, MOV CR
mov %cr8, %rax
ret

### a breakpoint register
# refuse: P3-instruction
# from: SDM vol. 2, MOV DR
mov %rdi, %dr7
ret

### a segment loaded
# refuse: P3-instruction
# from: SDM vol. 2, MOV
mov %edi, %ds
ret

### the stack's segment loaded
# refuse: P3-instruction
# from: SDM vol. 2, MOV
mov %edi, %ss
ret

### a segment popped
# refuse: P3-instruction
# from: SDM vol. 2, POP
push %rdi
pop %gs
ret

### a segment pushed
# refuse: P3-instruction
# from: SDM vol. 2, PUSH
push %fs
pop %rax
ret

### a far pointer loaded into a segment
# refuse: P3-instruction
# from: SDM vol. 2, LGS
lgs -16(%rsp), %eax
ret

### the base of gs written
# refuse: P3-instruction
# from: SDM vol. 2, WRGSBASE
wrgsbase %rdi
ret

### the base of fs read
# refuse: P3-instruction
# from: SDM vol. 2, RDFSBASE
rdfsbase %rax
ret

### the bases of gs exchanged
# refuse: P3-instruction
# from: SDM vol. 2, SWAPGS
swapgs
ret

### the descriptor table's address
# refuse: P3-instruction
# from: SDM vol. 2, SGDT
sgdt -16(%rsp)
ret

### the interrupt table replaced
# refuse: P3-instruction
# from: SDM vol. 2, LIDT
lidt -16(%rsp)
ret

### a local descriptor table
# refuse: P3-instruction
# from: SDM vol. 2, LLDT
lldt %di
ret

### a task register
# refuse: P3-instruction
# from: SDM vol. 2, LTR
ltr %di
ret

### the machine's status word
# refuse: P3-instruction
# from: SDM vol. 2, LMSW
lmsw %di
ret

### a segment's limit
# refuse: P3-instruction
# from: SDM vol. 2, LSL
lsl %edi, %eax
ret

### a translation dropped
# refuse: P3-instruction
# from: SDM vol. 2, INVLPG
invlpg -8(%rsp)
ret

### translations of a context dropped
# refuse: P3-instruction
# from: SDM vol. 2, INVPCID
invpcid -16(%rsp), %rax
ret

### interrupts off
# refuse: P3-instruction
# from: SDM vol. 2, CLI
cli
ret

### interrupts on
# refuse: P3-instruction
# from: SDM vol. 2, STI
sti
ret

### the CPU halted
# refuse: P3-instruction
# from: SDM vol. 2, HLT
hlt
ret

### the caches emptied
# refuse: P3-instruction
# from: SDM vol. 2, WBINVD
wbinvd
ret

### access checks of supervisors off
# refuse: P3-instruction
# from: SDM vol. 2, STAC
stac
ret

### the task-switched flag
# refuse: P3-instruction
# from: SDM vol. 2, CLTS
clts
ret

### a port read
# refuse: P3-instruction
# from: SDM vol. 2, IN
inl (%dx), %eax
ret

### a port written
# refuse: P3-instruction
# from: SDM vol. 2, OUT
outb %al, $0x80
ret

### a string out of a port
# refuse: P3-instruction
# from: SDM vol. 2, INS
rep insb
ret

### the flags popped, interrupts and single steps with them
# refuse: P3-instruction
# from: SDM vol. 2, POPF
push %rdi
popf
ret

### the flags pushed
# refuse: P3-instruction
# from: SDM vol. 2, PUSHF
pushf
pop %rax
ret

### a system call
# refuse: P3-instruction
# from: SDM vol. 2, SYSCALL
syscall
ret

### a return from one
# refuse: P3-instruction
# from: SDM vol. 2, SYSRET
sysretq
ret

### the other system call
# refuse: P3-instruction
# from: SDM vol. 2, SYSENTER
sysenter
ret

### an interrupt by number
# refuse: P3-instruction
# from: SDM vol. 2, INT n
int $0x80
ret

### the interrupt of debuggers in circuits
# refuse: P3-instruction
# from: SDM vol. 2, INT1
.byte 0xf1
ret

### a return from an interrupt
# refuse: P3-instruction
# from: SDM vol. 2, IRET
iretq
ret

### a return from a user interrupt
# refuse: P3-instruction
# from: SDM vol. 2, UIRET
uiret
ret

### an interrupt sent to another CPU
# refuse: P3-instruction
# from: SDM vol. 2, SENDUIPI
senduipi %rdi
ret

### a call of the hypervisor
# refuse: P3-instruction
# from: SDM vol. 3, VMCALL
vmcall
ret

### a guest started
# refuse: P3-instruction
# from: SDM vol. 3, VMLAUNCH
vmlaunch
ret

### the same of AMD
# refuse: P3-instruction
# from: AMD vol. 3, VMRUN
vmrun
ret

### a secure loader
# refuse: P3-instruction
# from: AMD vol. 3, SKINIT
skinit
ret

### a secure monitor
# refuse: P3-instruction
# from: SDM vol. 2, GETSEC
getsec
ret

### an enclave entered
# refuse: P3-instruction
# from: SDM vol. 3, ENCLU
enclu
ret

### a transaction, whose end is a jump
# refuse: P3-instruction
# from: SDM vol. 2, XBEGIN
xbegin 1f
1:
ret

### a transaction aborted
# refuse: P3-instruction
# from: SDM vol. 2, XABORT
xabort $1
ret

### the protection keys written
# refuse: P3-instruction
# from: SDM vol. 2, WRPKRU
wrpkru
ret

### the extended states switched
# refuse: P3-instruction
# from: SDM vol. 2, XSETBV
xsetbv
ret

### the processor's description
# refuse: P3-instruction
# from: SDM vol. 2, CPUID
cpuid
ret

### the CPU's number
# refuse: P3-instruction
# from: SDM vol. 2, RDPID
rdpid %rax
ret

### the shadow stack's pointer moved
# refuse: P3-instruction
# from: SDM vol. 2, INCSSP
incsspq %rdi
ret

### exceptions of vector arithmetic unmasked
# refuse: P3-instruction
# from: SDM vol. 2, LDMXCSR
ldmxcsr -8(%rsp)
ret

### the same in VEX
# refuse: P3-instruction
# from: SDM vol. 2, LDMXCSR
vldmxcsr -8(%rsp)
ret

### the x87 control word
# refuse: P3-instruction
# from: SDM vol. 2, FLDCW
fldcw -8(%rsp)
ret

### x87 arithmetic
# refuse: P3-instruction
# from: SDM vol. 2, FLD1
fld1
ret

### MMX, which is x87's registers
# refuse: P3-instruction
# from: SDM vol. 1, 9.5
movq %rdi, %mm0
ret

### a wait in the power management's hands
# refuse: P3-instruction
# from: SDM vol. 2, TPAUSE
tpause %edi
ret

### random bytes of VIA, stored at rdi
# refuse: P3-instruction
# from: VIA PadLock programming guide, XSTORE
.byte 0xf3, 0x0f, 0xa7, 0xc0
ret

### a cipher of VIA, from rsi to rdi
# refuse: P3-instruction
# from: VIA PadLock programming guide, REP XCRYPTECB
.byte 0xf3, 0x0f, 0xa7, 0xc8
ret

### a digest of VIA, of what is at rsi
# refuse: P3-instruction
# from: VIA PadLock programming guide, REP XSHA1
.byte 0xf3, 0x0f, 0xa6, 0xc8
ret

### a list of model-specific registers, read to memory at rdi
# refuse: P3-instruction
# from: SDM vol. 2, RDMSRLIST
.byte 0xf2, 0x0f, 0x01, 0xc6
ret

### a list of model-specific registers, written from memory at rdi
# refuse: P3-instruction
# from: SDM vol. 2, WRMSRLIST
.byte 0xf3, 0x0f, 0x01, 0xc6
ret

### a model-specific register read by a program
# refuse: P3-undecodable
# from: SDM vol. 2, URDMSR
.byte 0xf2, 0x0f, 0x38, 0xf8, 0xc1
ret

### a key bound to a platform, from rbx to rcx
# refuse: P3-instruction
# from: SDM vol. 2, PBNDKB
.byte 0x0f, 0x01, 0xc7
ret

### the page tables of a guest exchanged
# refuse: P3-instruction
# from: SDM vol. 3, VMFUNC
.byte 0x0f, 0x01, 0xd4
ret

### an exit from an encrypted guest
# refuse: P3-instruction
# from: APM vol. 3, VMGEXIT
.byte 0xf3, 0x0f, 0x01, 0xd9
ret

### a call of the module below a guest of TDX
# refuse: P3-instruction
# from: SDM vol. 2, TDCALL
.byte 0x66, 0x0f, 0x01, 0xcc
ret

### translations dropped on all processors
# refuse: P3-instruction
# from: APM vol. 3, INVLPGB
.byte 0x0f, 0x01, 0xfe
ret

### a page of an encrypted guest accepted
# refuse: P3-instruction
# from: APM vol. 3, PVALIDATE
.byte 0xf2, 0x0f, 0x01, 0xff
ret

### the rights of a page adjusted
# refuse: P3-instruction
# from: APM vol. 3, RMPADJUST
.byte 0xf3, 0x0f, 0x01, 0xfe
ret

### a return from an event, in the other way of delivering them
# refuse: P3-instruction
# from: SDM vol. 2, ERETS
.byte 0xf2, 0x0f, 0x01, 0xca
ret

### the base of gs for the kernel, by a selector
# refuse: P3-instruction
# from: SDM vol. 2, LKGS
.byte 0xf2, 0x0f, 0x00, 0xf0
ret

### interrupts of programs off
# refuse: P3-instruction
# from: SDM vol. 2, CLUI
.byte 0xf3, 0x0f, 0x01, 0xee
ret

### the history of predictions reset
# refuse: P3-instruction
# from: SDM vol. 2, HRESET
.byte 0xf3, 0x0f, 0x3a, 0xf0, 0xc0, 0x00
ret

### the extended states' register read
# refuse: P3-instruction
# from: SDM vol. 2, XGETBV
.byte 0x0f, 0x01, 0xd0
ret

### a counter of the processor read by a program
# refuse: P3-instruction
# from: APM vol. 3, RDPRU
.byte 0x0f, 0x01, 0xfd
ret

### a token put on the shadow stack
# refuse: P3-instruction
# from: SDM vol. 2, SETSSBSY
.byte 0xf3, 0x0f, 0x01, 0xe8
ret

### the shadow stack's pointer read
# refuse: P3-instruction
# from: SDM vol. 2, RDSSPQ
.byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8
ret

### a sum in memory that no register sees
# refuse: P3-instruction
# from: SDM vol. 2, AADD
{T:(%rdi)}
.byte 0x0f, 0x38, 0xfc, 0x08
ret

### a sum in memory, if a comparison says so
# refuse: P3-instruction
# from: SDM vol. 2, CMPBEXADD
{T:(%rdi)}
.byte 0xc4, 0xe2, 0x71, 0xe6, 0x10
ret

### a load that is to be shared
# refuse: P3-undecodable
# from: SDM vol. 2, MOVRS
{T:(%rdi)}
.byte 0x0f, 0x38, 0x8b, 0x08
ret

### a prefetch of code
# refuse: P3-instruction
# from: SDM vol. 2, PREFETCHIT0
.byte 0x0f, 0x18, 0x3d, 0, 0, 0, 0
ret

### all registers loaded, by an undocumented one of old
# refuse: P3-instruction
# from: the 80386's LOADALL
.byte 0x0f, 0x07
ret

### profiling records, to memory that no operand shows
# refuse: P3-instruction
# from: APM vol. 3, LWPINS
.byte 0x8f, 0xea, 0x78, 0x12, 0xc0, 0, 0, 0, 0
ret

### a store of 16 bytes that a comparison decides
# accept
# from: SDM vol. 2, CMPXCHG16B
{KEEP}
{T:(%rdi)}
cmpxchg16b (%rax)
{RET}

### a move of 64 bytes without a mask
# accept
# from: SDM vol. 2, VMOVDQU64
{KEEP}
{T:(%rdi)}
vmovdqu64 %zmm1, (%rax)
{RET}

### a landing pad
# accept
# from: SDM vol. 2, ENDBR64
endbr64
ret

### the clock
# accept
# from: SDM vol. 2, RDTSCP
rdtscp
ret

### a shadow stack's token cleared
# refuse: P3-instruction
# from: SDM vol. 2, CLRSSBSY
{T:(%rdi)}
.byte 0xf3, 0x0f, 0xae, 0x30         # clrssbsy (%rax)
ret

### a program's shadow stack written
# refuse: P3-instruction
# from: SDM vol. 2, WRUSSQ
{T:(%rdi)}
.byte 0x66, 0x48, 0x0f, 0x38, 0xf5, 0x08
ret

### errors of stores waited for
# refuse: P3-instruction
# from: APM vol. 3, MCOMMIT
.byte 0xf3, 0x0f, 0x01, 0xfa
ret

### the rights of a page read
# refuse: P3-undecodable
# from: APM vol. 3, RMPREAD
.byte 0xf2, 0x0f, 0x01, 0xfd
ret

### a model-specific register written, whose number is a constant
# refuse: P3-undecodable
# from: Intel's architecture instruction set extensions, WRMSRNS, MSR_IMM
.byte 0xc4, 0xe7, 0x7a, 0xf6, 0xc0, 0, 0, 0, 0
ret

### a digest of Zhaoxin's, of what is at rsi
# refuse: P3-instruction
# from: Zhaoxin GMI reference, SM3
.byte 0xf3, 0x0f, 0xa6, 0xe8
ret

### a cipher of Zhaoxin's, from rsi to rdi
# refuse: P3-instruction
# from: Zhaoxin GMI reference, SM4
.byte 0xf3, 0x0f, 0xa7, 0xf0
ret

### a signature of Zhaoxin's, of what is at rcx
# refuse: P3-undecodable
# from: Zhaoxin GMI reference, SM2
.byte 0xf2, 0x0f, 0xa6, 0xc0
ret

### a jump of VIA's to other instructions
# refuse: P3-undecodable
# from: VIA C3 processor alternate instruction set, 0f 3f
.byte 0x0f, 0x3f
ret

### a scalar stored past the caches, which AMD's processors alone have
# refuse: P3-instruction
# from: APM vol. 4, MOVNTSD
{T:(%rdi)}
.byte 0xf2, 0x0f, 0x2b, 0x00
ret

### a jump on a mask register, of processors that read VEX otherwise
# refuse: P3-undecodable
# from: Xeon Phi (Knights Corner) instruction set reference, JKZD
.byte 0xc5, 0xf8, 0x84, 0, 0, 0, 0
ret

### pext in the encoding of APX
# refuse: P3-undecodable
# from: Intel APX specification, EVEX-promoted BMI2
.byte 0x62, 0xf2, 0xfe, 0x08, 0xf5, 0xc1
ret

### an addition without flags, of APX
# refuse: P3-undecodable
# from: Intel APX specification, NF
.byte 0x62, 0xf4, 0xfc, 0x0c, 0x01, 0xc8
ret

### a vector of 32 bytes with a rounding of its own, of AVX10
# refuse: P3-undecodable
# from: Intel AVX10.2 specification, the bit U of EVEX
.byte 0x62, 0xf1, 0xf9, 0x18, 0x58, 0xc2
ret

### ud2 that a hypervisor below may go on behind, in the middle of what follows
# refuse: P3-prefix
# scheme: both
# from: Linux 6.1 arch/x86/kvm/x86.c, handle_ud (force_emulation_prefix); xen/arch/x86/hvm/hvm.c, hvm_ud_intercept
{KEEP}
{T} mov %rax, %rsi
test %edx, %edx; je 1f
push %rdi; ud2
1: imul $-0x3d, 0x6d(%rsi), %esi                # 6b 76 6d c3: ret
{RET}

### the same behind which other bytes are
# accept
# scheme: both
# from: ibid.
{KEEP}
{T} mov %rax, %rsi
test %edx, %edx; je 1f
push %rdi; ud2
1: imul $-0x3d, 0x6c(%rsi), %esi
{RET}
