/* Constants that a proof would rest on, with a relocation over them: the bytes in the file are not
   what the processor will read. Both schemes with a window. */

### a displacement of rsp that a relocation makes another one
# refuse: P1-untranslated
# from: psABI 4.4: the field in the file holds nothing where the relocation has an addend
mov "twin_vm:jiffies"(%rsp), %rax
ret

### the same, where the file has the distance of the own return address
# refuse: P1-untranslated
# from: psABI 4.4
push %rbx
1: mov 0x12345678(%rsp), %rax
.reloc 1b+4, R_X86_64_32S, "twin_vm:jiffies"
pop %rbx
ret

### the same with half an address
# refuse: P2-relocation
# from: psABI 4.4
1: mov 0x12345678(%rsp), %rax
.reloc 1b+4, R_X86_64_32, "twin_vm:jiffies"
ret
.fill 8, 1, 0x90

### the move of rsp by lea
# refuse: P4-rsp
# from: psABI 4.4
lea "twin_vm:jiffies"(%rsp), %rsp
ret

### the move of rsp by sub
# refuse: P4-rsp
# from: psABI 4.4
sub $"twin_vm:jiffies", %rsp
ret

### the move of rsp by add
# refuse: P4-rsp
# from: psABI 4.4
add $"twin_vm:jiffies", %rsp
ret

### the mask that finds the context
# refuse: P1-operand
# from: psABI 4.4
mov %rsp, %rax
1: or $0xffff, %rax
.reloc 1b+2, R_X86_64_32S, "twin_vm:jiffies"
mov -0x1ff7(%rax), %rax
ret

### the segment base's place in the context
# refuse: P1-untranslated
# from: psABI 4.4
mov %rsp, %rax
or $0xffff, %rax
1: mov -0x1ff7(%rax), %rax
.reloc 1b+3, R_X86_64_32S, "twin_vm:jiffies"
ret

### the displacement of a window pointer, zero in the file
# refuse: P1-string-pointer
# from: psABI 4.4
movabs $twin_window, %rdx
mov %edi, %edi
lea "twin_vm:jiffies"(%rdi,%rdx), %rdi
stosb
ret

### the window's start, and dom0's address in the same immediate
# refuse: P2-relocation
# from: gABI chapter 4: relocations of one field are applied one after another
1: movabs $0, %rdx
.reloc 1b+2, R_X86_64_64, twin_window
.reloc 1b+2, R_X86_64_64, "twin_vm:jiffies"
ret

### the window's start in an immediate that bytes of the file fill already
# accept
# from: gABI chapter 4: a relocation with an addend stores, it does not add to the field
1: movabs $0x1122334455667788, %rdx
.reloc 1b+2, R_X86_64_64, twin_window
mov %edi, %edi
lea (%rdi,%rdx), %rdi
stosb
ret

### a small constant that is none
# refuse: P1-string-pointer
# from: psABI 4.4: zero in the file
movabs $twin_window, %rdx
mov $"twin_vm:jiffies", %rdi
lea (%rdi,%rdx), %rdi
stosb
ret

### a small constant of 64 bits that is none
# refuse: P1-string-pointer
# from: psABI 4.4
movabs $twin_window, %rdx
movabs $"twin_vm:jiffies", %rdi
lea (%rdi,%rdx), %rdi
stosb
ret

### a mask of a few bits that is none
# refuse: P1-string-pointer
# from: psABI 4.4
movabs $twin_window, %rdx
and $"twin_vm:jiffies", %rdi
lea (%rdi,%rdx), %rdi
stosb
ret

### the same of 32 bits: the upper half is clear, whatever the loader writes
# refuse: P2-relocation
# from: psABI 4.4: R_X86_64_32 is no relocation of an immediate here
movabs $twin_window, %rdx
1: and $0x12345678, %edi
.reloc 1b+2, R_X86_64_32, "twin_vm:jiffies"
lea (%rdi,%rdx), %rdi
stosb
ret

### a mask of a few bits that is one
# accept
# from: docs/proof/window.md
movabs $twin_window, %rdx
and $63, %rdi
lea (%rdi,%rdx), %rdi
stosb
ret

### the view of the stack in place of a constant
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx
movabs $twin_stack_view, %rdi
lea (%rdi,%rdx), %rdi
stosb
ret
