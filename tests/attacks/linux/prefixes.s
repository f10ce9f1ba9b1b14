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
