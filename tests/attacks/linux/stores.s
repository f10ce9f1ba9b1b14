### a plain store
# refuse: P1-untranslated
# from: contract P1, stores alone
mov %rax, (%rdi)
ret

### the same, translated
# accept
# from: contract P1, stores alone
{T:(%rdi)}
mov %rdx, (%rax)
ret

### a plain load
# accept
# from: contract P1, stores alone
mov (%rdi), %rax
ret

### loads at sums, at no register, at a symbol and registers, of 32-bit registers
# accept
# from: contract P1, stores alone
mov 8(%rdi,%rsi,4), %rax
mov (,%rsi,8), %rax
mov 0x1234, %ecx
mov v(,%rsi,8), %rax
mov v+8(%rdi), %rax
mov v(%rdi,%rsi), %al
mov (%edi), %rax
movzbl (%rdi), %eax
ret
.section .rodata
v: .quad 1, 2

### a store at a sum
# refuse: P1-untranslated
# from: contract P1, stores alone
mov %rax, 8(%rdi,%rsi,4)
ret

### a store at a symbol and a register
# refuse: P1-untranslated
# from: contract P1, stores alone
mov %rax, v(%rdi)
ret
.data
v: .quad 1, 2

### a store at a symbol and an index
# refuse: P1-address-form
# from: contract P1, stores alone
mov %rax, v(,%rdi,8)
ret
.data
v: .quad 1, 2

### a store at no register
# refuse: P1-address-form
# from: contract P1, stores alone
mov %ecx, 0x1234
ret

### a store through registers of 32 bits
# refuse: P1-address-form
# from: contract P1, stores alone
mov %ecx, (%edi)
ret

### a symbol of read-only data is written
# refuse: P1-address-form
# from: contract P1, stores alone
mov %ecx, v(%rip)
ret
.section .rodata
v: .quad 1

### a load, then a change of the same word
# refuse: P1-untranslated
# from: SDM vol. 2, ADD
add %rax, (%rdi)
ret

### the same by an immediate
# refuse: P1-untranslated
addl $1, (%rdi)
ret

### a comparison, which only reads
# accept
# from: SDM vol. 2, CMP, TEST
cmp %rax, (%rdi)
cmpl $1, (%rdi)
test %al, (%rdi)
ret

### inc
# refuse: P1-untranslated
incl (%rdi)
ret

### not
# refuse: P1-untranslated
notq (%rdi)
ret

### a shift
# refuse: P1-untranslated
shlq %cl, (%rdi)
ret

### or with zero, locked
# refuse: P1-untranslated
# from: arch/x86/include/asm/barrier.h
lock orl $0, (%rdi)
ret

### xadd
# refuse: P1-untranslated
xadd %rax, (%rdi)
ret

### xchg
# refuse: P1-untranslated
xchg %rax, (%rdi)
ret

### cmpxchg, which writes in either case
# refuse: P1-untranslated
# from: SDM vol. 2, CMPXCHG: the destination is written back if the comparison fails
cmpxchg %rcx, (%rdi)
ret

### cmpxchg8b
# refuse: P1-untranslated
cmpxchg8b (%rdi)
ret

### cmpxchg16b
# refuse: P1-untranslated
lock cmpxchg16b (%rdi)
ret

### set a byte by a condition
# refuse: P1-untranslated
setc (%rdi)
ret

### movbe to memory
# refuse: P1-untranslated
movbe %eax, (%rdi)
ret

### a bit set
# refuse: P1-untranslated
btsq $5, (%rdi)
ret

### a bit set at an offset in a register
# refuse: P1-untranslated
bts %rsi, (%rdi)
ret

### a bit set at an offset in a register, translated
# refuse: P1-bit-offset
{T:(%rdi)}
bts %rsi, (%rax)
ret

### bits read
# accept
# from: SDM vol. 2, BT
bt %rsi, (%rdi)
btl $5, (%rdi)
ret

### a store of a string's element
# refuse: P1-string-pointer
stosb
ret

### stores of a string
# refuse: P1-string-pointer
mov %rsi, %rcx
rep stosq
ret

### more elements than the translation covers
# refuse: P1-string-count
{V:%rdi, %rax, %rcx, %rdx}
mov %rax, %rdi
mov %rsi, %rcx
rep stosb
ret

### an element copied to anywhere
# refuse: P1-string-pointer
{V:%rsi, %rax, %rcx, %rdx}
mov %rax, %rsi
movsb
ret

### an element copied from anywhere
# accept
{V:%rdi, %rax, %rcx, %rdx}
mov %rax, %rdi
movsb
ret

### elements copied, as many as the source has
# refuse: P1-string-count
{V:%rdi, %rax, %rcx, %rdx}
mov %rax, %rdi
mov %rsi, %rcx
rep movsb
ret

### elements copied from anywhere
# accept
{R:and $0xfff, %r8d; xor $0x1fff, %r8d|movsb}

### the same in a direction that differs between paths
# refuse: P1-string-direction
test %esi, %esi
je 1f
std
1: {R:and $0xfff, %r8d; xor $0x1fff, %r8d|movsb}

### a port's bytes to anywhere
# refuse: P1-string-pointer
insb
ret

### strings that are only read
# accept
# from: SDM vol. 2, LODS, CMPS, SCAS, OUTS
lodsq
rep lodsb
cmpsb
repe cmpsq
repne scasb
outsb
rep outsl
ret

### push from anywhere
# accept
# from: SDM vol. 2, PUSH
push (%rdi)
pop %rax
ret

### pop to anywhere
# refuse: P1-untranslated
push %rsi
pop (%rdi)
ret

### a push through rsp that was loaded
# refuse: P4-rsp
mov (%rdi), %rsp
push %rax
ret

### a push through rsp that was copied
# refuse: P4-rsp
mov %rdi, %rsp
push %rax
ret

### a call through rsp that was exchanged
# refuse: P4-rsp
xchg %rdi, %rsp
call g
ret

### a call through rsp that was loaded with a pop
# refuse: P4-rsp
push %rdi
pop %rsp
call g
ret

### leave with a frame pointer that was loaded
# refuse: P4-rsp
mov (%rdi), %rbp
leave
ret

### enter
# refuse: P3-instruction
enter $16, $0
leave
ret

### a vector stored
# refuse: P1-untranslated
vmovdqu %ymm0, (%rdi)
ret

### vectors loaded
# accept
vmovdqu (%rdi), %ymm0
movups (%rsi), %xmm1
vpaddd (%rdi,%rsi), %ymm0, %ymm1
vmovdqu64 (%rdi), %zmm2
ret

### a vector stored past the caches
# refuse: P1-untranslated
vmovntdq %ymm0, (%rdi)
ret

### 64 bytes stored
# refuse: P1-untranslated
vmovdqu64 %zmm0, (%rdi)
ret

### half a vector stored
# refuse: P1-untranslated
movhps %xmm0, (%rdi)
ret

### a word of a vector stored
# refuse: P1-untranslated
pextrq $1, %xmm0, (%rdi)
ret

### half a wide vector stored
# refuse: P1-untranslated
vextracti128 $1, %ymm0, (%rdi)
ret

### a masked store
# refuse: P3-instruction
# from: SDM vol. 2, VMASKMOV
vmaskmovps %ymm0, %ymm1, (%rdi)
ret

### a masked store of integers
# refuse: P3-instruction
vpmaskmovq %ymm0, %ymm1, (%rdi)
ret

### a store with a mask register
# refuse: P3-instruction
vmovdqu64 %zmm0, (%rdi){%k1}
ret

### a load with a mask register
# refuse: P3-instruction
# from: contract P3: no masks, whatever is confined
vmovdqu64 (%rdi), %zmm0{%k1}
ret

### elements stored at many places
# refuse: P3-instruction
vpscatterdd %zmm0, (%rdi,%zmm1,4){%k1}
ret

### elements stored side by side
# refuse: P3-instruction
vcompressps %zmm0, (%rdi){%k1}
ret

### a masked store to an address in no operand
# refuse: P3-instruction
# from: SDM vol. 2, MASKMOVDQU
maskmovdqu %xmm0, %xmm1
ret

### movnti
# refuse: P1-untranslated
movnti %rax, (%rdi)
ret

### movdiri
# refuse: P3-instruction
movdiri %rax, (%rdi)
ret

### movdir64b, whose destination is a register
# refuse: P3-instruction
movdir64b (%rdi), %rax
ret

### a line of the cache zeroed
# refuse: P3-instruction
# from: APM vol. 3, CLZERO
clzero
ret

### a line of the cache written back, which changes nothing
# accept
clwb (%rdi)
clflush (%rdi)
prefetchw (%rdi)
ret

### xsave
# refuse: P3-instruction
xsave (%rdi)
ret

### xsaves
# refuse: P3-instruction
xsaves (%rdi)
ret

### fxsave
# refuse: P3-instruction
fxsave (%rdi)
ret

### fnsave
# refuse: P3-instruction
fnsave (%rdi)
ret

### the control word of vectors stored
# refuse: P3-instruction
stmxcsr (%rdi)
ret

### a number of x87 stored
# refuse: P3-instruction
fstpl (%rdi)
ret

### sgdt
# refuse: P3-instruction
sgdt (%rdi)
ret

### sidt
# refuse: P3-instruction
sidt (%rdi)
ret

### sldt
# refuse: P3-instruction
sldt (%rdi)
ret

### str
# refuse: P3-instruction
str (%rdi)
ret

### smsw
# refuse: P3-instruction
smsw (%rdi)
ret

### a segment register stored
# refuse: P1-untranslated
mov %ds, (%rdi)
ret

### a pointer read by vmptrst
# refuse: P3-instruction
vmptrst (%rdi)
ret

### a call of an address that was loaded
# accept
# from: contract P2: where indirect calls go is the kernel's policy
mov (%rdi), %rax
call *%rax
ret

### a call of an address in memory
# refuse: P1-untranslated
# from: contract P2, stores alone: destinations are read by a translation
call *(%rdi)
ret

### the same, translated
# accept
{T:(%rdi)}
call *(%rax)
ret

### a jump to an address in memory
# refuse: P1-untranslated
jmp *8(%rdi,%rsi)
ret

### a jump to an address in memory at a symbol and an index
# refuse: P1-address-form
jmp *v(,%rdi,8)
.data
v: .quad f

### a call of a place in the code that is no function, loaded by an address
# refuse: P2-target
lea 1f(%rip), %rax
call *%rax
1: ret

### a word of the frame with a frame address, overwritten
# refuse: P4-rsp
mov %rsp, %rax
sub $16, %rsp
mov %rax, 8(%rsp)
mov %rdi, 8(%rsp)
mov 8(%rsp), %rsp
ret

### the same overwritten in part, by a change
# refuse: P4-rsp
mov %rsp, %rax
sub $16, %rsp
mov %rax, 8(%rsp)
addl $8, 12(%rsp)
mov 8(%rsp), %rsp
ret

### a frame address, taken for one that is read at a symbol
# refuse: P4-rsp
# from: the displacement is zero until the module is linked
mov %rsp, %rax
push %rax
mov %rsp, %rbx
mov v(%rbx), %rcx
mov %rcx, %rsp
ret
.data
v: .quad 0

### a frame address, taken for one that is read at no register
# refuse: P4-rsp
mov %rsp, %rax
mov %rax, -8(%rax)
sub $8, %rsp
mov %rsp, %rax
mov (,%rdx,8), %rcx
mov %rcx, %rsp
add $8, %rsp
ret

### a frame address, read at a register of 32 bits
# refuse: P4-rsp
mov %rsp, %rax
push %rax
mov %rsp, %rbx
mov (%ebx), %rcx
mov %rcx, %rsp
ret

### the return address written
# refuse: P1-return-slot
mov %rdi, (%rsp)
ret

### the return address read, and all above it
# accept
mov (%rsp), %rax
mov 8(%rsp), %rcx
mov 0x10000(%rsp), %rdx
mov -0x1000(%rsp), %rsi
mov (%rsp,%rdi), %r8
ret

### a store above all arguments
# refuse: P1-stack-bounds
mov %rdi, 0x10000(%rsp)
ret

### a store below rsp
# refuse: P1-stack-bounds
mov %rdi, -0x1000(%rsp)
ret

### a store at an index from rsp
# refuse: P1-stack-bounds
mov %rax, (%rsp,%rdi)
ret

### the table read by its name
# refuse: P5-table
mov twin_stlb(%rdi), %rax
ret

### the table written by its name
# refuse: P5-table
mov %rax, twin_stlb+8(%rdi)
ret

### a store through what was loaded by a translation
# refuse: P1-untranslated
{T:(%rdi)}
mov (%rax), %rax
mov %rdx, (%rax)
ret

### loads between a check and its store
# accept
{T:(%rdi)}
mov (%rsi), %rdx
mov 8(%rdx), %rdx
mov %rdx, (%rax)
ret

### a store past what the translation covers
# refuse: P1-window
{T:(%rdi)}
mov %rdx, 4096(%rax)
ret

### a load past what the translation covers
# accept
{T:(%rdi)}
mov 4096(%rax), %rdx
mov (%rax,%rsi,8), %rdx
ret

### a load through an offset that is not checked yet
# accept
# from: contract P1, stores alone: it is a number
mov %rdi, %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
mov (%rcx), %rax
ret

### a store through it
# refuse: P1-untranslated
mov %rdi, %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
mov %rax, (%rcx)
ret

### user space's segment
# refuse: P1-address-form
mov %fs:(%rdi), %rax
ret

### xlat, whose address is in no operand
# refuse: P3-instruction
xlat
ret

### a function that overwrites its caller's word by an argument
# refuse: P1-return-slot
call g
ret
.type g, @function
g: mov %rdi, 16(%rsp)
ret

### a load that a kernel of an encrypted guest takes for a store to a device
# refuse: P3-instruction
# from: Linux 6.1 arch/x86/lib/insn-eval.c, insn_decode_mmio: 0xc6, the opcode behind a VEX prefix too; vc_handle_mmio
vshufps $1, (%rdi), %xmm0, %xmm0
ret

### the same of two numbers
# refuse: P3-instruction
# from: ibid.
vshufpd $1, 8(%rdi), %ymm1, %ymm0
ret

### the same behind a move, from the frame, and from the module's own data
# accept
# from: ibid.
vmovups (%rdi), %xmm1; vshufps $1, %xmm1, %xmm0, %xmm0
push %rax; push %rax; vshufpd $1, (%rsp), %xmm0, %xmm0; pop %rax; pop %rax
vshufpd $1, v(%rip), %xmm0, %xmm0
ret
.section .rodata
.balign 16
v: .quad 1, 2

### loads with this byte in the other encoding, and with others near it
# accept
# from: ibid.: 0x0f and 0xc6
shufps $1, (%rdi), %xmm0
vunpcklps (%rdi), %xmm0, %xmm0
ret

### the own return address by a string instruction, gone on at
# refuse: P2-target
# from: SDM vol. 2, LODS
mov %rsp, %rsi
lodsq
jmp *%rax

### a word of the frame by a string instruction
# accept
# from: control
push %rdi
mov %rsp, %rsi
lodsq
add $8, %rsp
jmp *%rax

### what is left of a place inside a function as a count, of a comparison that ends early
# refuse: P2-target
# from: SDM vol. 2, REP
lea 1f(%rip), %rcx
repe cmpsb
jmp *%rcx
1: mov %rcx, (%rdx)
ret

### the same of a function's start, by a search
# refuse: P2-target
# from: ibid.
lea f(%rip), %rcx
repne scasb
jmp *%rcx

### a function's address beside a search
# accept
# from: control
lea f(%rip), %rdx
repne scasb
jmp *%rdx
