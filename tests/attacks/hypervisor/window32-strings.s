### elements stored
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; rep stosq; ret

### elements moved
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi; rep movsb; ret

### elements loaded
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %esi, %esi; lea (%rsi,%rdx), %rsi; lodsw; ret

### elements compared
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi; repe cmpsb; ret

### elements sought
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; repne scasb; ret

### backwards, from the first to before it
# accept
# from: SDM vol. 1, 7.3.9.3
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; std; rep stosq; cld; ret

### in a direction that differs between paths
# accept
# from: docs/proof/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; test %ecx, %ecx; je 1f; std; 1: rep stosq; cld; ret

### start and low half the other way round
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdx,%rdi), %rdi; stosb; ret

### the emitted sequence of a store
# accept
# from: docs/spec/window.md
lea (%rdi,%rcx,8), %rdx
push %rdx
movabs $twin_window, %rdx
mov %edi, %edi
lea (%rdi,%rdx), %rdi
rep stosq
pop %rdi
ret

### the emitted sequence of a search, with the pointer's high half kept
# accept
# from: docs/spec/window.md
mov %rdi, %rdx
mov %edi, %edi
not %rdi
lea 1(%rdx,%rdi), %rdx
not %edi
push %rdx
movabs $twin_window, %rdx
lea (%rdi,%rdx), %rdi
repne scasb
movabs $twin_window, %rdx
not %rdi
lea (%rdi,%rdx), %rdi
not %rdi
pop %rdx
lea (%rdi,%rdx), %rdi
ret

### a pointer as it came
# refuse: P1-string-pointer
# from: docs/spec/window.md
stosb; ret

### a low half without the start
# refuse: P1-string-pointer
# from: docs/spec/window.md
mov %edi, %edi; rep stosq; ret

### the start without a low half
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %rdx, %rdi; rep stosq; ret

### the start added to an uncut pointer
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; lea (%rdi,%rdx), %rdi; rep stosq; ret

### a copy of 64 bits in place of the cut
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %rdi, %rdi; lea (%rdi,%rdx), %rdi; rep stosq; ret

### a low half and 1, in 64 bits
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; add $1, %rdi; lea (%rdi,%rdx), %rdi; stosb; ret

### a low half shifted in 64 bits
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; shl $4, %rdi; lea (%rdi,%rdx), %rdi; stosb; ret

### a low half inverted in 64 bits
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; not %rdi; lea (%rdi,%rdx), %rdi; stosb; ret

### a low half inverted in 32 bits
# accept
# from: SDM vol. 1, 3.4.1.1
movabs $twin_window, %rdx; mov %edi, %edi; not %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### a low half that another register was added to
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; add %rsi, %rdi; lea (%rdi,%rdx), %rdi; stosb; ret

### a low half extended by its sign
# refuse: P1-string-pointer
# from: SDM vol. 2, MOVSXD
movabs $twin_window, %rdx; movslq %edi, %rdi; lea (%rdi,%rdx), %rdi; stosb; ret

### a byte extended by its sign to 64 bits
# refuse: P1-string-pointer
# from: SDM vol. 2, MOVSX
movabs $twin_window, %rdx; movsbq %dil, %rdi; lea (%rdi,%rdx), %rdi; stosb; ret

### a byte extended by its sign to 32 bits
# accept
# from: SDM vol. 2, MOVSX
movabs $twin_window, %rdx; movsbl %dil, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### a write of 16 bits
# refuse: P1-string-pointer
# from: SDM vol. 1, 3.4.1.1
movabs $twin_window, %rdx; mov %di, %di; lea (%rdi,%rdx), %rdi; stosb; ret

### a write of 8 bits
# refuse: P1-string-pointer
# from: SDM vol. 1, 3.4.1.1
movabs $twin_window, %rdx; mov %dil, %dil; lea (%rdi,%rdx), %rdi; stosb; ret

### an exchange with itself that is a nop
# refuse: P1-string-pointer
# from: SDM vol. 2, XCHG
movabs $twin_window, %rdx; xchg %eax, %eax; lea (%rax,%rdx), %rdi; stosb; ret

### a move that may not happen
# refuse: P1-string-pointer
# from: SDM vol. 2, CMOVcc
movabs $twin_window, %rdx; cmove %esi, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### a scan for a bit that may not be there
# refuse: P1-string-pointer
# from: APM vol. 3, BSF
movabs $twin_window, %rdx; bsf %esi, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### an accumulator that an exchange may leave
# refuse: P1-string-pointer
# from: SDM vol. 2, CMPXCHG
movabs $twin_window, %rdx; cmpxchg %ecx, %esi; lea (%rax,%rdx), %rdi; stosb; ret

### a comparison, which writes nothing
# refuse: P1-string-pointer
# from: SDM vol. 2, CMP
movabs $twin_window, %rdx; cmp %esi, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### a store of 32 bits to memory
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %gs:(%esi); lea (%rdi,%rdx), %rdi; stosb; ret

### a load of 32 bits
# accept
# from: SDM vol. 1, 3.4.1.1
movabs $twin_window, %rdx; mov %gs:(%esi), %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### a load of 64 bits
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %gs:(%esi), %rdi; lea (%rdi,%rdx), %rdi; stosb; ret

### the low half of another register
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %esi, %esi; lea (%rdi,%rdx), %rdi; stosb; ret

### the index times two
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdx,%rdi,2), %rdi; stosb; ret

### the start times two
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx,2), %rdi; stosb; ret

### a displacement
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea 8(%rdi,%rdx), %rdi; stosb; ret

### a displacement below
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea -1(%rdi,%rdx), %rdi; stosb; ret

### a sum of 32 bits
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %edi; stosb; ret

### a sum of 32-bit registers
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%edi,%edx), %rdi; stosb; ret

### an addition in place of lea
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; add %rdx, %rdi; stosb; ret

### the start added twice
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; lea (%rdi,%rdx), %rdi; stosb; ret

### a window pointer cut again and made anew
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %edi, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### the start added to itself
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; lea (%rdx,%rdx), %rdi; stosb; ret

### two low halves
# refuse: P1-string-pointer
# from: docs/spec/window.md
mov %edi, %edi; mov %esi, %esi; lea (%rdi,%rsi), %rdi; stosb; ret

### 64 added to a window pointer
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; add $64, %rdi; stosb; ret

### a window pointer advanced by one
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; inc %rdi; stosb; ret

### a window pointer moved by lea
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; lea 1(%rdi), %rdi; stosb; ret

### a byte of a window pointer written
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov $0, %dil; stosb; ret

### a bit of a window pointer set
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; bts $40, %rdi; stosb; ret

### a window pointer copied
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %rdi, %rbx; mov %rbx, %rdi; stosb; ret

### a window pointer exchanged
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; xchg %rdi, %rsi; stosb; ret

### a window pointer on the stack meanwhile
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; push %rdi; pop %rdi; stosb; ret

### a window pointer in the window meanwhile
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %rdi, %gs:(%esi); mov %gs:(%esi), %rdi; stosb; ret

### a window pointer after a call
# refuse: P1-string-pointer
# from: docs/spec/window.md
push %rax; movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; call imported; stosb; pop %rax; ret

### the start after a call
# refuse: P1-string-pointer
# from: docs/spec/window.md
push %rbx; movabs $twin_window, %rbx; call imported; mov %edi, %edi; lea (%rdi,%rbx), %rdi; stosb; pop %rbx; ret

### a low half after a call
# refuse: P1-string-pointer
# from: docs/spec/window.md
push %rbx; mov %edi, %ebx; call imported; movabs $twin_window, %rdx; lea (%rbx,%rdx), %rdi; stosb; pop %rbx; ret

### a window pointer after a port was read
# accept
# from: crates/abi, PORT_IN
push %rbx; movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; call twin_in8; stosb; pop %rbx; ret

### the accumulator after a port was read
# refuse: P1-string-pointer
# from: crates/abi, PORT_IN
push %rbx; movabs $twin_window, %rcx; mov %edi, %eax; call twin_in8; lea (%rax,%rcx), %rdi; stosb; pop %rbx; ret

### a window pointer after a string instruction
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; rep stosb; stosb; ret

### a window pointer after one element
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; stosb; stosb; ret

### the other pointer, which the instruction leaves
# accept
# from: SDM vol. 2, LODS
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi; lodsb; stosb; ret

### a pointer of two left as it came
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; movsb; ret

### the other of two left as it came
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %esi, %esi; lea (%rsi,%rdx), %rsi; movsb; ret

### two compared, one as it came
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; repe cmpsb; ret

### a window pointer on one path only
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; test %ecx, %ecx; je 1f; mov %edi, %edi; lea (%rdi,%rdx), %rdi; 1: stosb; ret

### a window pointer on either path
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; test %ecx, %ecx; je 1f; mov %edi, %edi; lea (%rdi,%rdx), %rdi; jmp 2f; 1: mov %esi, %esi; lea (%rsi,%rdx), %rdi; 2: stosb; ret

### a low half on one path, the start on the other
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; test %ecx, %ecx; je 1f; mov %rdx, %rdi; 1: lea (%rdi,%rdx), %rdi; stosb; ret

### a window pointer on one path, a low half on the other
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; test %ecx, %ecx; je 1f; lea (%rdi,%rdx), %rdi; 1: stosb; ret

### a loop that goes on from where the last round ended
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; 1: stosb; dec %ecx; jne 1b; ret

### a loop that makes its pointer anew
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; 1: mov %edi, %edi; lea (%rdi,%rdx), %rdi; stosb; dec %ecx; jne 1b; ret

### a start of which a byte was written
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov $0, %dl; mov %edi, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### a start that 32 bits were written of
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %edx, %edx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### a constant in the place of the start
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $0x123400000000, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### an address of dom0 in the place of the start
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $"twin_vm:jiffies", %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### dom0's view of the stack in the place of the start
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_stack_view, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### rsp in the place of the low half
# refuse: P1-string-pointer
# from: docs/spec/window.md
movabs $twin_window, %rdx; lea (%rsp,%rdx), %rdi; stosb; ret

### the low half of rsp
# accept
# from: docs/spec/window.md
movabs $twin_window, %rdx; mov %esp, %edi; lea (%rdi,%rdx), %rdi; stosb; ret

### a frame address as pointer
# refuse: P1-string-pointer
# from: docs/spec/window.md
lea -16(%rsp), %rdi; stosb; ret

### prefix 65 on a string instruction
# refuse: P1-address-form
# from: SDM vol. 2, MOVS
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi
.byte 0x65, 0xa4
ret

### prefix 67 on a string instruction
# refuse: P1-address-form
# from: SDM vol. 2, MOVS
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi
.byte 0x67, 0xa4
ret

### both prefixes on a string instruction
# refuse: P1-address-form
# from: SDM vol. 2, MOVS
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi
.byte 0x65, 0x67, 0xa4
ret

### both prefixes and a repetition
# refuse: P1-address-form
# from: SDM vol. 2, MOVS
.byte 0xf3, 0x65, 0x67, 0xa4
ret

### prefix 64 on a string instruction
# refuse: P1-address-form
# from: SDM vol. 2, MOVS
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi
.byte 0x64, 0xa4
ret

### a segment that means nothing on a string instruction
# refuse: P1-operand
# from: SDM vol. 2, MOVS
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi
.byte 0x2e, 0xa4
ret

### repeated twice
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi
.byte 0xf3, 0xf3, 0xa4
ret

### repeated while unequal, which movs does not
# refuse: P3-prefix
# from: SDM vol. 2, 2.1.1
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rdi; mov %esi, %esi; lea (%rsi,%rdx), %rsi
.byte 0xf2, 0xa4
ret

### a call while the direction flag is set
# refuse: P2-direction
# from: psABI 3.2.1
push %rax; std; call imported; cld; pop %rax; ret

### a return while it is set
# refuse: P2-direction
# from: psABI 3.2.1
std; ret

### the start loaded into rsp
# refuse: P4-rsp
# from: contract P4
movabs $twin_window, %rsp; ret

### a window pointer in rsp
# refuse: P4-rsp
# from: contract P4
movabs $twin_window, %rdx; mov %edi, %edi; lea (%rdi,%rdx), %rsp; ret
