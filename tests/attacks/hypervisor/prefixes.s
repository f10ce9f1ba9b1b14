### a call with a 16-bit distance, to one maker
# refuse: P3-prefix
# from: SDM vol. 2, CALL; AMD vol. 3, 1.2.2
.byte 0x66, 0xe8, 0, 0, 0, 0
ret

### a jump with a 16-bit distance
# refuse: P3-prefix
# from: AMD vol. 3, 1.2.2
.byte 0x66, 0xe9, 0, 0, 0, 0
ret

### a conditional jump with a 16-bit distance
# refuse: P3-prefix
# from: AMD vol. 3, 1.2.2
.byte 0x66, 0x0f, 0x84, 0, 0, 0, 0
ret

### a short jump with an operand size
# refuse: P3-prefix
# from: AMD vol. 3, 1.2.2
.byte 0x66, 0x74, 0x00
ret

### a return that pops two bytes, to one maker
# refuse: P3-prefix
# from: AMD vol. 3, RET
data16 ret

### a push of two bytes
# refuse: P3-instruction
# from: SDM vol. 2, PUSH
pushw %ax
popw %ax
ret

### a push of a two-byte constant
# refuse: P3-instruction
# from: SDM vol. 2, PUSH
pushw $7
popw %ax
ret

### a pop of two bytes from memory
# refuse: P3-instruction
# from: SDM vol. 2, POP
sub $16, %rsp
popw 4(%rsp)
add $14, %rsp
ret

### a leave of two bytes
# refuse: P3-instruction
# from: SDM vol. 2, LEAVE
push %rbp
mov %rsp, %rbp
.byte 0x66, 0xc9
ret

### an address of 32 bits
# refuse: P1-address-form
# from: SDM vol. 1, 3.7.5.1
{T:(%rdi)}
mov (%eax), %ecx
ret

### a stack address of 32 bits
# refuse: P1-address-form
# from: SDM vol. 1, 3.7.5.1
mov %ecx, -8(%esp)
ret

### a string instruction on 32-bit pointers
# refuse: P1-address-form
# from: SDM vol. 2, MOVS
{T:(%rdi)}
mov %rax, %rdi
stosb %al, (%edi)
ret

### a loop that counts in ecx
# refuse: P3-instruction
# from: SDM vol. 2, LOOP
1: addr32 loop 1b
ret

### a jump if ecx is zero
# refuse: P3-instruction
# from: SDM vol. 2, JCXZ
jecxz 1f
1:
ret

### an address that only lea computes in 32 bits
# accept
# from: SDM vol. 2, LEA
lea (%eax,%ecx), %edx
ret

### a REX that a prefix follows
# refuse: P3-prefix
# from: SDM vol. 2, 2.2.1
.byte 0x48, 0x66, 0x89, 0xc8
ret

### two REX
# refuse: P3-prefix
# from: SDM vol. 2, 2.2.1
.byte 0x48, 0x41, 0x89, 0xc8
ret

### REX.W on a call
# refuse: P3-prefix
# from: SDM vol. 2, CALL
.byte 0x48, 0xe8, 0, 0, 0, 0
ret

### REX.W on a jump
# refuse: P3-prefix
# from: SDM vol. 2, JMP
.byte 0x48, 0xeb, 0
ret

### REX.W on a return
# refuse: P3-prefix
# from: SDM vol. 2, RET
.byte 0x48, 0xc3

### a lock on a register
# refuse: P3-undecodable
# from: SDM vol. 2, LOCK
.byte 0xf0, 0x48, 0x01, 0xc8
ret

### a lock on a move
# refuse: P3-undecodable
# from: SDM vol. 2, LOCK
{T:(%rdi)}
.byte 0xf0, 0x48, 0x89, 0x08
ret

### a lock on a comparison
# refuse: P3-undecodable
# from: SDM vol. 2, LOCK
{T:(%rdi)}
.byte 0xf0, 0x48, 0x39, 0x08
ret

### a lock on a bit test that writes nothing
# refuse: P3-undecodable
# from: SDM vol. 2, LOCK
{T:(%rdi)}
.byte 0xf0, 0x0f, 0xba, 0x20, 0x01
ret

### a lock on a nop
# refuse: P3-undecodable
# from: SDM vol. 2, LOCK
.byte 0xf0, 0x90
ret

### two locks
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
{T:(%rdi)}
.byte 0xf0, 0xf0, 0x48, 0x01, 0x08
ret

### an elided lock
# refuse: P3-prefix
# from: SDM vol. 1, 16.3.1
{T:(%rdi)}
xacquire lock incl (%rax)
ret

### an elided release
# refuse: P3-prefix
# from: SDM vol. 1, 16.3.1
{T:(%rdi)}
xrelease movl $0, (%rax)
ret

### an atomic increment
# accept
# from: SDM vol. 2, LOCK
{KEEP}
{T:(%rdi)}
lock incl (%rax)
{RET}

### both repeats
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
.byte 0xf2, 0xf3, 0xa4
ret

### repne on a copy
# refuse: P3-prefix
# from: SDM vol. 2, REP
.byte 0xf2, 0xa4
ret

### repne on a store
# refuse: P3-prefix
# from: SDM vol. 2, REP
.byte 0xf2, 0xaa
ret

### rep on a move
# refuse: P3-prefix
# from: SDM vol. 2, REP
.byte 0xf3, 0x89, 0xc8
ret

### rep on a call
# refuse: P3-prefix
# from: SDM vol. 2, REP
.byte 0xf3, 0xe8, 0, 0, 0, 0
ret

### bnd on a return
# refuse: P3-prefix
# from: SDM vol. 1, 17.4.2
.byte 0xf2; ret           # bnd, which binutils 2.44 no longer knows

### bnd on a jump
# refuse: P3-prefix
# from: SDM vol. 1, 17.4.2
.byte 0xf2; jmp 1f        # bnd
1:
ret

### a padded return
# accept
# from: AMD's optimisation guide, family 10h, 6.2
rep ret

### notrack on an indirect jump
# refuse: P2-indirect
# from: SDM vol. 1, 17.3.8
notrack jmp *%rax
ret

### fs before a jump
# refuse: P1-address-form
# from: SDM vol. 2, 2.1.1
.byte 0x64, 0xeb, 0
ret

### gs before a push from memory
# refuse: P1-address-form
# from: SDM vol. 2, 2.1.1
{T:(%rdi)}
pushq %gs:(%rax)
pop %rcx
ret

### gs with rsp as its base
# refuse: P1-address-form
# from: SDM vol. 1, 3.4.4.1
mov %gs:-8(%rsp), %rax
ret

### gs with the frame pointer as its base
# refuse: P1-address-form
# from: SDM vol. 1, 3.4.4.1
lea -16(%rsp), %rbp
mov %rax, %gs:(%rbp)
ret

### fs on a prefetch
# refuse: P1-address-form
# from: SDM vol. 2, PREFETCHh
{T:(%rdi)}
prefetcht0 %fs:(%rax)
ret

### fs on the source of a copy
# refuse: P1-address-form
# from: SDM vol. 2, MOVS
{T:(%rdi)}
mov %rax, %rsi
lodsb %fs:(%rsi), %al
ret

### cs on the source of a copy, which means nothing
# accept
# from: SDM vol. 1, 3.4.4.1
{T:(%rdi)}
mov %rax, %rsi
lodsb %cs:(%rsi), %al
ret

### more bytes than an instruction has
# refuse: P3-undecodable
# from: SDM vol. 2, 2.3.11
.byte 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90
ret

### as many operand sizes as a move takes
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
.byte 0x66, 0x66, 0x66, 0x89, 0xc8
ret

### a second segment override
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
.byte 0x2e, 0x3e, 0x89, 0xc8
ret

### REX2, which older processors read as AAD
# refuse: P3-undecodable
# from: APX specification, 3.1.1
.byte 0xd5, 0x18, 0x89, 0xc8
ret

### a push of two registers at once
# refuse: P3-undecodable
# from: APX specification, PUSH2
.byte 0x62, 0xf4, 0x7c, 0x18, 0xff, 0xf0
ret

### a jump to 64 bits of constant
# refuse: P3-undecodable
# from: APX specification, JMPABS
.byte 0xd5, 0x00, 0xa1, 0, 0, 0, 0, 0, 0, 0, 0
ret

### a conditional comparison of APX
# refuse: P3-undecodable
# from: APX specification, CCMP
.byte 0x62, 0xf4, 0x84, 0x02, 0x39, 0xc8
ret

### an addition with a new destination
# refuse: P3-undecodable
# from: APX specification, NDD
.byte 0x62, 0xf4, 0xfc, 0x18, 0x01, 0xc8
ret

### a VEX prefix behind an operand size
# refuse: P3-undecodable
# from: SDM vol. 2, 2.3.2
.byte 0x66, 0xc5, 0xf8, 0x28, 0xc1
ret

### a VEX prefix behind REX
# refuse: P3-undecodable
# from: SDM vol. 2, 2.3.2
.byte 0x48, 0xc5, 0xf8, 0x28, 0xc1
ret

### a VEX prefix behind lock
# refuse: P3-undecodable
# from: SDM vol. 2, 2.3.2
.byte 0xf0, 0xc5, 0xf8, 0x28, 0xc1
ret

### a VEX register that has to be ones
# refuse: P3-undecodable
# from: SDM vol. 2, 2.3.5.6
.byte 0xc5, 0xc0, 0x28, 0xc1
ret

### an EVEX with reserved bits
# refuse: P3-undecodable
# from: SDM vol. 2, 2.7.1
{T:(%rdi)}
.byte 0x62, 0xf9, 0xfe, 0x48, 0x6f, 0x00
ret

### an EVEX whose index may be one of APX's registers
# refuse: P3-undecodable
# from: APX specification, 3.1.2.3 (X4, which has to be one without APX)
{T:(%rdi)}
.byte 0x62, 0xf1, 0xfa, 0x48, 0x6f, 0x00
ret

### an EVEX with an index that is r17, or rcx
# refuse: P3-undecodable
# from: APX specification, 3.1.2.3
{T:(%rdi,%rcx,1)}
.byte 0x62, 0xf1, 0xfa, 0x48, 0x6f, 0x04, 0x0f
ret

### XOP of AMD
# refuse: P3-instruction
# from: AMD vol. 6, 1.1.2
.byte 0x8f, 0xe9, 0x78, 0x80, 0xc1
ret

### 3DNow! of AMD
# refuse: P3-instruction
# from: AMD vol. 5, PFADD
.byte 0x0f, 0x0f, 0xc1, 0x9e
ret

### an exchange of 16 bits of a byte swap
# refuse: P3-instruction
# from: SDM vol. 2, BSWAP
.byte 0x66, 0x0f, 0xc8
ret

### an undocumented twin of test
# refuse: P3-instruction
# from: AMD vol. 3, TEST
.byte 0xf6, 0xc8, 0x01
ret

### an undocumented twin of a fence
# refuse: P3-instruction
# from: SDM vol. 2, LFENCE
.byte 0x0f, 0xae, 0xe9
ret

### a reserved nop that another processor may give a meaning
# refuse: P3-instruction
# from: SDM vol. 2, appendix A
.byte 0x0f, 0x1c, 0xc0
ret

### an instruction that 64-bit mode dropped
# refuse: P3-undecodable
# from: SDM vol. 2, INTO
.byte 0xce
ret

### a segment push that 64-bit mode dropped
# refuse: P3-undecodable
# from: SDM vol. 2, PUSH
.byte 0x0e
ret

### a far call with an absolute address
# refuse: P3-undecodable
# from: SDM vol. 2, CALL
.byte 0x9a, 0, 0, 0, 0, 0, 0
ret

### an alias of group 1 that 64-bit mode dropped
# refuse: P3-undecodable
# from: SDM vol. 2, appendix A
.byte 0x82, 0xc0, 0x01
ret

### a long nop with a wild address, which is not read
# accept
# from: SDM vol. 2, NOP
nopl 0x7fff(%rdi,%rsi,8)
ret

### half an instruction at the section's end
# refuse: P3-undecodable
# from: SDM vol. 2, 2.1
.byte 0x48, 0x8b

### a prefix alone at the section's end
# refuse: P3-undecodable
# from: SDM vol. 2, 2.1.1
ret
.byte 0x66

### an operand size before a load of 8 bytes, which one reading makes a write of a general register
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1: "other use of the 66H prefix" with SSE is reserved; MOVD, MOVQ
{T}
.byte 0x66, 0xf3, 0x0f, 0x7e, 0xc0
mov (%rax), %rax
ret

### the same without it
# accept
# from: SDM vol. 2, MOVQ
{T}
movq %xmm0, %xmm0
mov (%rax), %rax
ret

### an operand size before a load of 8 bytes, which one reading makes a store of 4
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1; MOVD, MOVQ
{T}
.byte 0x66, 0xf3, 0x0f, 0x7e, 0x00
ret

### an operand size before a load of 8 bytes, which one reading makes one of 16
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1; MOVSD, MOVUPD
{T:4089(%rdi)}
.byte 0xf2, 0x66, 0x0f, 0x10, 0x00
ret

### an operand size before a sum of one byte, which one reading makes a load of two
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1; CRC32, MOVBE
{T}
.byte 0x66, 0xf2, 0x0f, 0x38, 0xf0, 0x08
ret

### the same sum of two bytes, where the operand size belongs
# accept
# from: SDM vol. 2, CRC32
{T}
crc32w (%rax), %ecx
ret

### an operand size before an addition with the overflow flag, which one reading makes one with the carry
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1; ADCX, ADOX
.byte 0x66, 0xf3, 0x0f, 0x38, 0xf6, 0xc1
ret

### an operand size before a count of 16 bits
# accept
# from: SDM vol. 2, POPCNT
popcnt %cx, %ax
ret

### an operand size before a count of 64 bits
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
.byte 0x66, 0xf3, 0x48, 0x0f, 0xb8, 0xc1
ret

### an operand size before a landing pad
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1; ENDBR64, RDSSPD
.byte 0x66, 0xf3, 0x0f, 0x1e, 0xfa
ret

### an operand size before an exchange of 8 bytes, whose opcode is VMCLEAR's with it
# refuse: P3-prefix
# from: SDM vol. 2, CMPXCHG8B; VMCLEAR
{T}
.byte 0xf0, 0x66, 0x0f, 0xc7, 0x08
ret

### an operand size before a prefetch
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1; PREFETCHh
{T}
.byte 0x66, 0x0f, 0x18, 0x08
ret

### an operand size before the clock and the CPU's number, whose opcode many share
# refuse: P3-prefix
# from: SDM vol. 2, appendix A, 0f 01
.byte 0x66, 0x0f, 0x01, 0xf9
ret

### a scalar sum with VEX.L
# refuse: P3-prefix
# from: SDM vol. 2, ADDSS: "may encounter unpredictable behavior across different processor generations"
{T:4093(%rdi)}
.byte 0xc5, 0xf6, 0x58, 0x00
ret

### the same without VEX.L
# accept
# from: SDM vol. 2, ADDSS
{T:4093(%rdi)}
vaddss (%rax), %xmm1, %xmm0
ret

### a scalar load with VEX.L, behind a segment
# refuse: P3-prefix
# from: SDM vol. 2, MOVSD
{T}
.byte 0x2e, 0xc5, 0xff, 0x10, 0x00
ret

### a scalar made a whole number with VEX.L, of three bytes
# refuse: P3-prefix
# from: SDM vol. 2, CVTSD2SI
.byte 0xc4, 0xe1, 0x7f, 0x2d, 0xc1
ret

### a scalar multiplied and added with VEX.L
# refuse: P3-prefix
# from: SDM vol. 2, VFMADD132SS
.byte 0xc4, 0xe2, 0x75, 0x99, 0xc1
ret

### 256 bits that make 128, in memory
# accept
# from: SDM vol. 2, CVTPD2PS
{T}
vcvtpd2psy (%rax), %xmm0
ret

### every register cleared
# accept
# from: SDM vol. 2, VZEROALL
vzeroall
ret

### bytes repeated with a REX that names nothing, at which processors lost their place
# refuse: P3-prefix
# from: CVE-2023-23583
# scheme: window32
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi
.byte 0xf3, 0x44, 0xa4
ret

### the same in a scheme with a table
# refuse: P3-prefix
# from: CVE-2023-23583
{B}
.byte 0x44, 0xa4
ret

### bytes repeated with a REX without bits
# refuse: P3-prefix
# from: CVE-2023-23583
# scheme: window32
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi
.byte 0xf3, 0x40, 0xaa
ret

### bytes repeated with REX.W
# refuse: P3-prefix
# from: CVE-2023-23583
# scheme: window32
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi
.byte 0xf3, 0x48, 0xaa
ret

### words of 8 bytes repeated with more than REX.W
# refuse: P3-prefix
# from: CVE-2023-23583
# scheme: window32
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi
.byte 0xf3, 0x4c, 0xab
ret
