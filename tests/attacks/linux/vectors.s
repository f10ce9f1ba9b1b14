/* AVX-512 of the kernel's RAID and cryptography. */

### whole registers
# accept
# from: lib/raid6/avx512.c
{T:(%rdi)}
vmovdqa64 (%rax), %zmm3
vpxorq 64(%rax), %zmm3, %zmm2
vpcmpgtb %zmm2, %zmm3, %k1
vpmovm2b %k1, %zmm5
vpternlogq $0x96, (%rax), %zmm5, %zmm2
vbroadcasti64x2 (%rax), %zmm6
vpaddd (%rax){1to16}, %zmm6, %zmm7
vmovntdq %zmm2, (%rax)
ret

### a load that nothing translates
# refuse: P1-untranslated
vpxorq (%rdi), %zmm3, %zmm2; ret

### a store that nothing translates
# refuse: P1-untranslated
vmovntdq %zmm3, (%rdi); ret

### one element, broadcast, that nothing translates
# refuse: P1-untranslated
vpaddd (%rdi){1to16}, %zmm6, %zmm7; ret

### a store with a mask
# refuse: P3-instruction
{T} vmovdqu8 %zmm3, (%rax){%k1}; ret

### a load with a mask
# refuse: P3-instruction
{T} vmovdqu8 (%rax), %zmm3{%k1}{z}; ret

### registers with a mask
# refuse: P3-instruction
vpaddb %zmm3, %zmm4, %zmm5{%k1}; ret

### elements put together, as many as a mask has
# refuse: P3-instruction
# from: SDM vol. 2, VPCOMPRESSD
{T} vpcompressd %zmm3, (%rax); ret

### elements at many places
# refuse: P3-instruction
# from: SDM vol. 2, VPSCATTERDD
vpscatterdd %zmm3, (%rdi,%zmm4,4){%k1}; ret

### elements from many places
# refuse: P3-instruction
vpgatherdd (%rdi,%zmm4,4), %zmm3{%k1}; ret

### narrowed on the way to memory
# refuse: P3-instruction
# from: SDM vol. 2, VPMOVDB
{T} vpmovdb %zmm3, (%rax); ret

### 64 bytes that reach the return address
# refuse: P1-return-slot
vmovdqu64 %zmm3, -56(%rsp); ret

### 64 bytes that end before it
# accept
vmovdqu64 %zmm3, -64(%rsp); ret

### 64 bytes at the end of a window
# accept
{T} vmovdqu64 4033(%rax), %zmm3; ret

### 64 bytes over the end of a window
# refuse: P1-window
{T} vmovdqu64 4096(%rax), %zmm3; ret

### 64 bytes over a word that rsp is set from
# refuse: P4-rsp
mov %rsp, %rax
push %rax
sub $64, %rsp
vmovdqu64 %zmm3, 8(%rsp)
mov 64(%rsp), %rsp
ret

### a distance that is counted in vectors
# refuse: P1-window
# from: SDM vol. 2, 2.7.5: disp8*N
{T} vmovdqu64 8192(%rax), %zmm3; ret
