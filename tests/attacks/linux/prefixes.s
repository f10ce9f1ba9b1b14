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
