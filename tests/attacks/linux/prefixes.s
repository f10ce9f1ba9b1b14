### a move of a control register whose ModRM byte is one of memory
# refuse: P3-instruction
# from: Linux 6.5 arch/x86/kernel/alternative.c, apply_relocation: adds a distance to what follows
1: nop; nop; nop; nop; nop; nop; nop
9: ret
.pushsection .altinstr_replacement,"ax"
2: .byte 0x0f,0x20,0x05
mov %rax, %rcx
nop
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### the same to a debug register, outside of an alternative
# refuse: P3-instruction
# from: Linux 6.1 arch/x86/kernel/sev.c, vc_handle_dr7_write: goes on behind what its decoder found
.byte 0x0f,0x23,0x3d
nop; nop; nop; nop
ret

### a move of a control register as assemblers write it
# accept
# from: SDM vol. 2, MOV - Move to/from Control Registers
mov %cr0, %rax
mov %rax, %dr7
ret

### an indirect jump with an operand size, to one maker to 16 bits
# refuse: P3-prefix
# from: AMD's manual, volume 3, JMP (Near)
.byte 0x66
jmp *%rax

### an indirect call with an operand size, which to one maker pushes two bytes
# refuse: P3-prefix
# from: AMD's manual, volume 3, CALL (Near)
.byte 0x66
call *%rax
ret

### an indirect call through memory with an operand size
# refuse: P3-prefix
# from: AMD's manual, volume 3, CALL (Near)
.byte 0x66
call *%gs:8
ret

### a prefix between 66 and the opcode: kernels see no operand, and the nops in it
# refuse: P3-prefix
# from: Linux 6.1 arch/x86/lib/insn.c, insn_last_prefix_id; arch/x86/kernel/alternative.c, optimize_nops
{T}
1: .byte 0x66,0x2e,0x0f,0xd6,0x90,0x90,0,0,0    # movq %xmm2, %cs:0x90(%rax)
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### the same in the order of assemblers
# accept
# from: SDM vol. 2, MOVQ
{T}
1: .byte 0x2e,0x66,0x0f,0xd6,0x90,0x90,0,0,0    # movq %xmm2, %cs:0x90(%rax)
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a prefix between f3 and the opcode
# refuse: P3-prefix
# from: ibid.
{T}
.byte 0xf3,0x2e,0x0f,0xe6,0x00                  # cvtdq2pd %cs:(%rax), %xmm0
ret

### a prefix between f2 and the opcode
# refuse: P3-prefix
# from: ibid.
{T}
.byte 0xf2,0x2e,0x0f,0xf0,0x00                  # lddqu %cs:(%rax), %xmm0
ret

### an operand size behind f3, which belongs to the opcode
# refuse: P3-prefix
# from: ibid.
.byte 0xf3,0x66,0x0f,0xb8,0xc0                  # popcnt %ax, %ax
ret

### the same in the order of assemblers
# accept
# from: SDM vol. 2, POPCNT
popcnt %ax, %ax
lock cmpxchg %ax, %gs:0
nopw %cs:0x10909090(%rax,%rax,1)
ret

### a nop with five prefixes: kernels see the fifth alone, and make a jump of 16 bits of the rest
# refuse: P3-prefix
# from: Linux 6.12 arch/x86/lib/insn.c, insn_get_prefixes; add_nop; AMD's manual, volume 3, JMP (Near)
1: .byte 0x66,0x2e,0x3e,0x26,0x36,0x90
.fill 12, 1, 0x90
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### a nop with four prefixes
# accept
# from: ibid.
1: .byte 0x66,0x2e,0x3e,0x26,0x90
.fill 12, 1, 0x90
9: ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 9b-1b, 3b-2b
.popsection

### an instruction that traps, of two or three bytes by whom one asks
# refuse: P3-instruction
# from: SDM vol. 2, UD; Linux 6.12 arch/x86/lib/x86-opcode-map.txt: ff: UD0
.byte 0x0f,0xff,0xc7
