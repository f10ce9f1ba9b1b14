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

### a note that says processors with BMI2, in a scheme that has no use of them
# refuse: object-contract
# from: docs/spec/object.md
# scheme: window32
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 2, 64, 0, 0, 1
.text
.globl f
.type f, @function
f: mov %gs:8(%edi), %eax; ret

### a note that says processors that nobody knows
# refuse: object-foreign
# from: docs/spec/object.md
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 3, 64, 0, 0, 2
.text
.globl f
.type f, @function
f: mov %gs:8(%edi), %eax; ret

### a note that says 32 bits
# refuse: object-foreign
# from: docs/spec/object.md
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 3, 32, 0, 0, 0
.text
.globl f
.type f, @function
f: mov %gs:8(%edi), %eax; ret

### a note of the smaller window, where this one is demanded
# refuse: object-contract
# from: docs/spec/window.md
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 2, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: mov %gs:8(%edi), %eax; ret

### a note of this window, where the smaller one is demanded
# refuse: object-contract
# from: docs/spec/window.md: a place of 42 bits is far outside the other window
# scheme: window32
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 3, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: and twin_window_mask(%rip), %rdi; mov %gs:8(%rdi), %eax; ret

### two notes, of two processors
# refuse: object-foreign
# from: gABI chapter 5
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 3, 64, 0, 0, 0
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 3, 64, 0, 0, 1
.text
.globl f
.type f, @function
f: mov %gs:8(%edi), %eax; ret

### pext with a mask that mov loaded, for any processor: a number
# refuse: P1-operand
# from: docs/proof/window.md
# processor: any
mov twin_window_mask(%rip), %rax
pext %rax, %rdi, %rdi
mov %gs:8(%rdi), %eax
ret

### a low half with the prefix 65 alone
# accept
# from: SDM vol. 1, 3.4.1.1
# processor: any
mov %edi, %edi
mov %gs:8(%rdi), %eax
ret

### a count of zeros, which older processors count otherwise
# refuse: P1-operand
# from: SDM vol. 2, LZCNT: without it the bytes are those of bsr, which may leave its destination
# processor: any
and twin_window_mask(%rip), %rax
lzcnt %rdi, %rax
mov %gs:8(%rax), %eax
ret

### the same of 32 bits
# refuse: P1-operand
# from: SDM vol. 2, TZCNT: bsf leaves the upper half, too, where the source is zero
# processor: any
tzcnt %edi, %eax
mov %gs:8(%rax), %eax
ret
