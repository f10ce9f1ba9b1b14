### pext in code for any processor
# refuse: P3-instruction
# from: SDM vol. 2, PEXT: CPUID.(EAX=07H,ECX=0):EBX.BMI2
# processor: any
pext twin_window_mask(%rip), %rdi, %rax
mov %gs:8(%rax), %eax
ret

### and in its place
# accept
# from: docs/spec/window.md
# processor: any
mov twin_window_mask(%rip), %rax
and %rdi, %rax
mov %gs:8(%rax), %eax
ret

### and in its place, of the base itself
# accept
# from: docs/spec/window.md
# processor: any
and twin_window_mask(%rip), %rdi
mov %gs:8(%rdi), %eax
ret

### with the flags kept around it
# accept
# from: docs/spec/window.md
# processor: any
push %rax
lahf
seto %al
and twin_window_mask(%rip), %rdi
add $0x7f, %al
sahf
pop %rax
mov %gs:8(%rdi), %eax
ret

### the flags' register, kept around it, for the place
# refuse: P1-operand
# from: docs/proof/window.md
# processor: any
push %rdi
and twin_window_mask(%rip), %rdi
pop %rdi
mov %gs:8(%rdi), %eax
ret

### pext for a number, not for a place: the driver's own need
# accept
# from: docs/spec/window.md
# processor: any
pext %rsi, %rdi, %rax
ret

### such a number is no place
# refuse: P1-operand
# from: docs/proof/window.md
# processor: any
pext %rsi, %rdi, %rax
mov %gs:8(%rax), %eax
ret

### pext with the mask, its result not used
# refuse: P3-instruction
# from: SDM vol. 2, PEXT
# processor: any
pext twin_window_mask(%rip), %rdi, %rax
xor %eax, %eax
ret

### a mask that was loaded before a call
# refuse: P1-operand
# from: docs/proof/window.md
# processor: any
push %rbx
mov twin_window_mask(%rip), %rbx
call printk
and %rbx, %rdi
mov %gs:8(%rdi), %eax
pop %rbx
ret
