/* What changes the GS base, on which both schemes with a window rest, by instructions of newer
   processors and of other makers; and instructions to which prefix 65 or 67 means something else
   than to an operand in memory, or nothing. */

### all hidden segment state loaded from physical memory
# refuse: P3-instruction
# from: APM vol. 3, VMLOAD: the base of GS, and KernelGSBase
vmload; ret

### the same by an address of 32 bits
# refuse: P3-instruction
# from: APM vol. 3, VMLOAD
addr32 vmload; ret

### a guest entered
# refuse: P3-instruction
# from: APM vol. 3, VMRUN
vmrun; ret

### a model-specific register written without waiting
# refuse: P3-instruction
# from: SDM vol. 2, WRMSRNS
mov $0xc0000101, %ecx; .byte 0x0f, 0x01, 0xc6; ret

### model-specific registers written by a list in memory
# refuse: P3-instruction
# from: SDM vol. 2, WRMSRLIST
.byte 0xf3, 0x0f, 0x01, 0xc6; ret

### a model-specific register written by a program
# refuse: P3-undecodable
# from: SDM vol. 2, UWRMSR
.byte 0xf3, 0x0f, 0x38, 0xf8, 0xc1; ret

### the state of the supervisor restored
# refuse: P3-instruction
# from: SDM vol. 2, XRSTORS
.byte 0x65, 0x67, 0x0f, 0xc7, 0x1f; ret

### back from an event, to a program
# refuse: P3-instruction
# from: Intel FRED, ERETU: it exchanges the bases of GS
.byte 0xf3, 0x0f, 0x01, 0xca; ret

### back from an event, to the kernel
# refuse: P3-instruction
# from: Intel FRED, ERETS
.byte 0xf2, 0x0f, 0x01, 0xca; ret

### back from system management
# refuse: P3-instruction
# from: SDM vol. 2, RSM
rsm

### an interrupt of a program's own, left
# refuse: P3-instruction
# from: SDM vol. 2, UIRET
.byte 0xf3, 0x0f, 0x01, 0xec; ret

### a far pointer into gs, of 64 bits
# refuse: P3-instruction
# from: SDM vol. 2, LGS
.byte 0x65, 0x67, 0x48, 0x0f, 0xb5, 0x07; ret

### a far jump, both prefixes, 64 bits
# refuse: P2-indirect
# from: SDM vol. 2, JMP
.byte 0x65, 0x67, 0x48, 0xff, 0x2f

### a line watched by the address in rax, of 32 bits
# refuse: P3-instruction
# from: SDM vol. 2, MONITOR: the prefixes are of an operand that no byte shows
.byte 0x65, 0x67, 0x0f, 0x01, 0xc8; ret

### the same of AMD
# refuse: P3-instruction
# from: APM vol. 3, MONITORX
.byte 0x65, 0x67, 0x0f, 0x01, 0xfa; ret

### the same for programs, by a register
# refuse: P3-instruction
# from: SDM vol. 2, UMONITOR
.byte 0x65, 0x67, 0xf3, 0x0f, 0xae, 0xf7; ret

### bytes of MMX stored under a mask, at edi
# refuse: P3-instruction
# from: SDM vol. 2, MASKMOVQ
.byte 0x65, 0x67, 0x0f, 0xf7, 0xc1; ret

### bytes stored under a mask by VEX, at edi
# refuse: P3-instruction
# from: SDM vol. 2, MASKMOVDQU
.byte 0x65, 0x67, 0xc5, 0xf9, 0xf7, 0xc1; ret

### a bound stored in a table that its register finds
# refuse: P3-instruction
# from: SDM vol. 2, BNDSTX: the address is that of an entry
.byte 0x65, 0x67, 0x0f, 0x1b, 0x07; ret

### a bound loaded from there
# refuse: P3-instruction
# from: SDM vol. 2, BNDLDX
.byte 0x65, 0x67, 0x0f, 0x1a, 0x07; ret

### a command of 64 bytes to where a register says
# refuse: P3-instruction
# from: SDM vol. 2, ENQCMD: the destination is in ES
.byte 0x65, 0x67, 0xf2, 0x0f, 0x38, 0xf8, 0x07; ret

### the same with the supervisor's rights
# refuse: P3-instruction
# from: SDM vol. 2, ENQCMDS
.byte 0x65, 0x67, 0xf3, 0x0f, 0x38, 0xf8, 0x07; ret

### a direct store, which has an operand like any other
# refuse: P3-instruction
# from: SDM vol. 2, MOVDIRI: not on the list
.byte 0x65, 0x67, 0x0f, 0x38, 0xf9, 0x07; ret

### rows of a tile loaded, a stride in the index
# refuse: P3-instruction
# from: SDM vol. 2, TILELOADD: as many places as rows
.byte 0x65, 0x67, 0xc4, 0xe2, 0x7b, 0x4b, 0x0c, 0x0f; ret

### rows of a tile stored
# refuse: P3-instruction
# from: SDM vol. 2, TILESTORED
.byte 0x65, 0x67, 0xc4, 0xe2, 0x7a, 0x4b, 0x0c, 0x0f; ret

### a gather of 64-bit places
# refuse: P3-instruction
# from: SDM vol. 2, VPGATHERQQ: with prefix 67 the sums are cut, each of them, but no rule says so
vpgatherqq %ymm0, %gs:(%edi,%ymm1,8), %ymm2; ret

### a masked load of AVX2
# refuse: P3-instruction
# from: SDM vol. 2, VPMASKMOV
vpmaskmovq %gs:(%edi), %ymm1, %ymm2; ret

### a page dropped by the address in rax, of 32 bits
# refuse: P3-instruction
# from: APM vol. 3, INVLPGA
.byte 0x67, 0x0f, 0x01, 0xdf; ret

### pages dropped on all processors
# refuse: P3-instruction
# from: APM vol. 3, INVLPGB
.byte 0x67, 0x0f, 0x01, 0xfe; ret

### a page given to another owner, by the address in rax
# refuse: P3-instruction
# from: APM vol. 3, RMPADJUST
.byte 0x67, 0xf3, 0x0f, 0x01, 0xfe; ret

### a line pushed out to a farther cache
# refuse: P3-instruction
# from: SDM vol. 2, CLDEMOTE: nop elsewhere
.byte 0x65, 0x67, 0x0f, 0x1c, 0x07; ret

### a line written back
# refuse: P3-instruction
# from: SDM vol. 2, CLWB
.byte 0x65, 0x67, 0x66, 0x0f, 0xae, 0x37; ret

### a hint that code will be needed
# refuse: P3-instruction
# from: SDM vol. 2, PREFETCHIT0: relative to the instruction, nop elsewhere
.byte 0x0f, 0x18, 0x3d, 0, 0, 0, 0; ret

### a number given to a trace, from memory
# refuse: P3-instruction
# from: SDM vol. 2, PTWRITE
.byte 0x65, 0x67, 0xf3, 0x0f, 0xae, 0x27; ret

### an addition in memory that no register sees
# refuse: P3-instruction
# from: SDM vol. 2, AADD
.byte 0x65, 0x67, 0x0f, 0x38, 0xfc, 0x07; ret

### a comparison and addition in memory by VEX
# refuse: P3-instruction
# from: SDM vol. 2, CMPccXADD
.byte 0x65, 0x67, 0xc4, 0xe2, 0x71, 0xe0, 0x07; ret

### keys of 48 bytes in memory
# refuse: P3-instruction
# from: SDM vol. 2, AESENC128KL
.byte 0x65, 0x67, 0xf3, 0x0f, 0x38, 0xdc, 0x07; ret

### a table's limit and base
# refuse: P3-instruction
# from: SDM vol. 2, SGDT
.byte 0x65, 0x67, 0x0f, 0x01, 0x07; ret

### a segment read for its limit, by a selector in the window
# refuse: P3-instruction
# from: SDM vol. 2, LSL
.byte 0x65, 0x67, 0x0f, 0x03, 0x07; ret

### the state of x87 in 108 bytes
# refuse: P3-instruction
# from: SDM vol. 2, FSAVE
.byte 0x65, 0x67, 0xdd, 0x37; ret

### two prefixes 67 that a string's address would take
# refuse: P1-address-form
# from: SDM vol. 2, STOS
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi
.byte 0x67, 0x67, 0xaa
ret

### prefix 67 between the repetition and the string
# refuse: P1-address-form
# from: SDM vol. 2, STOS: ecx counts then, and edi is the place
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi
.byte 0xf3, 0x67, 0xaa
ret

### prefix 66 beside the repetition of words
# accept
# from: SDM vol. 2, STOS
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi
.byte 0x66, 0xf3, 0xab
ret

### prefix 66 beside the repetition of bytes
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1: it makes no operand 16 bits wide
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi
.byte 0x66, 0xf3, 0xaa
ret

### a checksum of 16 bits whose other prefix belongs to a store
# accept
# from: SDM vol. 2, CRC32, MOVBE: f2 counts, whatever order, and either operand is in the window
.byte 0xf2, 0x65, 0x67, 0x66, 0x0f, 0x38, 0xf1, 0x07; ret

### the same without the prefixes of the window
# refuse: P1-operand
# from: SDM vol. 2, CRC32, MOVBE
.byte 0xf2, 0x66, 0x0f, 0x38, 0xf1, 0x07; ret
