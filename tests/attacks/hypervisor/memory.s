### a plain load
# refuse: P1-untranslated
# scheme: both
# from: contract P1
mov (%rdi), %rax
ret

### the same, translated
# accept
# scheme: both
# from: contract P1
{T:(%rdi)}
mov (%rax), %rax
ret

### the last byte of a window and one more
# refuse: P1-window
# scheme: both
# from: contract P1
{T:(%rdi)}
mov 4090(%rax), %rax
ret

### the last bytes of a window
# accept
# scheme: both
# from: contract P1
{T:(%rdi)}
mov 4089(%rax), %rax
ret

### a symbol in dom0 as an address
# refuse: P1-address-form
# from: docs/spec/object.md, relocations in code
mov "twin_vm:jiffies", %rax
ret

### a symbol in dom0 as an address of 64 bits
# refuse: P1-address-form
# from: SDM vol. 2, MOV (moffs64)
movabs "twin_vm:jiffies", %rax
ret

### a symbol in dom0 as a number
# accept
# from: docs/spec/object.md, relocations in code
mov $"twin_vm:jiffies", %rdi
{T:(%rdi)}
mov (%rax), %rax
ret

### a symbol in dom0 added to a translation
# refuse: P1-untranslated
# from: docs/spec/object.md, relocations in code
{T:(%rdi)}
mov "twin_vm:jiffies"(%rax), %rcx
ret

### a translation with an index of zero
# refuse: P1-window
# from: SDM vol. 1, 3.7.5
{T:(%rdi)}
xor %esi, %esi
mov (%rax,%rsi), %dl
ret

### a translation as a scaled index
# refuse: P1-address-form
# from: SDM vol. 1, 3.7.5
{T:(%rdi)}
mov (,%rax,1), %dl
ret

### a translation as both base and index
# refuse: P1-window
# from: SDM vol. 1, 3.7.5
{T:(%rdi)}
mov (%rax,%rax), %dl
ret

### a vector that ends a byte behind the window
# refuse: P1-window
# from: SDM vol. 2, VMOVDQU
{T:(%rdi)}
vmovdqu %ymm0, 4066(%rax)
ret

### a vector that ends with the window
# accept
# from: SDM vol. 2, VMOVDQU
{KEEP}
{T:(%rdi)}
vmovdqu %ymm0, 4065(%rax)
{RET}

### 64 bytes that end a byte behind the window
# refuse: P1-window
# from: SDM vol. 2, VMOVDQU64
{T:(%rdi)}
vmovdqu64 %zmm0, 4034(%rax)
ret

### 16 bytes compared and exchanged at the window's end
# refuse: P1-window
# from: SDM vol. 2, CMPXCHG16B
{T:(%rdi)}
cmpxchg16b 4082(%rax)
ret

### a displacement that EVEX scales
# refuse: P1-window
# from: SDM vol. 2, 2.7.5 (disp8*N)
{T:(%rdi)}
.byte 0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x40, 0x7f
ret

### a narrow load that is widened, at the window's end
# accept
# from: SDM vol. 2, PMOVZX
{T:(%rdi)}
pmovzxbq 4095(%rax), %xmm0
ret

### a narrow load that is widened, a byte too far
# refuse: P1-window
# from: SDM vol. 2, PMOVZX
{T:(%rdi)}
pmovzxbq 4096(%rax), %xmm0
ret

### a broadcast of a byte too far
# refuse: P1-window
# from: SDM vol. 2, VBROADCAST
{T:(%rdi)}
vbroadcastf128 4082(%rax), %ymm0
ret

### half a vector stored too far
# refuse: P1-window
# from: SDM vol. 2, VEXTRACTF128
{T:(%rdi)}
vextractf128 $1, %ymm0, 4082(%rax)
ret

### a byte stored out of a vector, too far
# refuse: P1-window
# from: SDM vol. 2, PEXTRB
{T:(%rdi)}
pextrb $3, %xmm0, 4097(%rax)
ret

### 8 bytes loaded to compare, at the window's end
# refuse: P1-window
# from: SDM vol. 2, CRC32
{T:(%rdi)}
crc32q 4090(%rax), %rcx
ret

### a byte-swapped store at the window's end
# refuse: P1-window
# from: SDM vol. 2, MOVBE
{T:(%rdi)}
movbe %rcx, 4090(%rax)
ret

### a store past the caches
# refuse: P1-window
# from: SDM vol. 2, MOVNTI
{T:(%rdi)}
movnti %rcx, 4090(%rax)
ret

### a prefetch beyond the window
# refuse: P1-window
# from: SDM vol. 2, PREFETCHh
{T:(%rdi)}
prefetcht0 4097(%rax)
ret

### a prefetch for a store, of any address
# refuse: P1-untranslated
# from: SDM vol. 2, PREFETCHW
prefetchw (%rdi)
ret

### an address that lea computes, and nobody reads
# accept
# from: SDM vol. 2, LEA
lea 0x7fffffff(%rdi,%rsi,8), %rax
ret

### a bit above the operand in a window
# refuse: P1-bit-offset
# from: SDM vol. 2, BT
{T:(%rdi)}
bts %rsi, (%rax)
ret

### a bit that a mask of the other register bounds
# refuse: P1-bit-offset
# from: SDM vol. 2, BT
{T:(%rdi)}
and $63, %edx
bts %rsi, (%rax)
ret

### a bit whose bound was shifted away
# refuse: P1-bit-offset
# from: SDM vol. 2, SHL
{T:(%rdi)}
and $63, %esi
shl $1, %esi
bts %rsi, (%rax)
ret

### a bit bounded on one path
# refuse: P1-bit-offset
# from: contract, joins
{T:(%rdi)}
test %edx, %edx
je 1f
and $63, %esi
1: bts %rsi, (%rax)
ret

### a bit of 64, bounded
# accept
# from: SDM vol. 2, BT
{KEEP}
{T:(%rdi)}
and $63, %esi
bts %rsi, (%rax)
{RET}

### a bit of 64 bounded by 63, in an operand of 32
# refuse: P1-bit-offset
# from: SDM vol. 2, BT
{T:(%rdi)}
and $63, %esi
bts %esi, (%rax)
ret

### a bit of 64 by a constant, which wraps in the operand
# accept
# from: SDM vol. 2, BT (an immediate is taken modulo the size)
{KEEP}
{T:(%rdi)}
btsq $200, (%rax)
{RET}

### a bit bounded by its low byte alone
# refuse: P1-bit-offset
# from: SDM vol. 1, 3.4.1.1
{T:(%rdi)}
and $63, %sil
bts %rsi, (%rax)
ret

### a push from memory that nothing translated
# refuse: P1-untranslated
# from: SDM vol. 2, PUSH
push (%rdi)
pop %rax
ret

### an exchange with memory that nothing translated
# refuse: P1-untranslated
# from: SDM vol. 2, XCHG
xchg %rax, (%rdi)
ret

### a comparison of vectors with memory
# refuse: P1-untranslated
# from: SDM vol. 2, PCMPISTRI
pcmpistri $0, (%rdi), %xmm0
ret

### a condition stored
# refuse: P1-untranslated
# from: SDM vol. 2, SETcc
sete (%rdi)
ret

### a conditional load, which reads in any case
# refuse: P1-untranslated
# from: SDM vol. 2, CMOVcc
cmove (%rdi), %rax
ret

### a random number added to memory
# refuse: P1-untranslated
# from: SDM vol. 2, XADD
lock xadd %rax, (%rdi)
ret

### a value multiplied with memory
# refuse: P1-untranslated
# from: SDM vol. 2, IMUL
imul $3, (%rdi), %rax
ret

### a shift that reads memory in VEX
# refuse: P1-untranslated
# from: SDM vol. 2, SHLX
shlx %rcx, (%rdi), %rax
ret

### code read by its own address
# refuse: P1-address-form
# from: SDM vol. 1, 3.7.5.1
mov f(%rip), %rax
ret

### a literal behind the code
# refuse: P1-address-form
# from: SDM vol. 1, 3.7.5.1
movaps 1f(%rip), %xmm0
ret
1: nop

### the address of the next instruction
# refuse: P1-address-form
# from: SDM vol. 1, 3.7.5.1
lea (%rip), %rax
ret
