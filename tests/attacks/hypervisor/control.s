### a call that is used to learn the own address
# refuse: P4-frame
# from: position-independent code on i386
call 1f
1: pop %rax
ret

### the return address of a call, moved by the callee
# refuse: P1-return-slot
# from: retpolines (Intel, "Deep dive: Retpoline")
call 1f
2: pause
jmp 2b
1: mov %rdi, (%rsp)
ret

### a word that is pushed and returned to
# refuse: P4-return
# from: return-oriented programming
push %rdi
ret

### two words that are returned to
# refuse: P4-return
# from: return-oriented programming
sub $16, %rsp
mov %rdi, (%rsp)
mov %rsi, 8(%rsp)
ret

### a return from a frame that is one word too small
# refuse: P4-return
# from: psABI 3.2.2
push %rbx
push %r12
pop %r12
ret

### a function that gives its frame back
# accept
# from: psABI 3.2.2
push %rbx
push %r12
pop %r12
pop %rbx
ret

### a return into another segment
# refuse: P3-instruction
# from: SDM vol. 2, RET
push $16
push %rdi
lretq

### a return that drops arguments
# refuse: P3-instruction
# from: SDM vol. 2, RET imm16
ret $8

### a return that drops none, in the form that could
# refuse: P3-instruction
# from: SDM vol. 2, RET imm16
ret $0

### a jump into a constant
# refuse: P2-target
# from: SDM vol. 2, 2.1 (instructions of variable length)
jmp 1f + 2
1: movabs $0xc30b0f9090909090, %rax
ret

### a conditional jump into a displacement
# refuse: P2-target
# from: SDM vol. 2, 2.1
je 1f + 3
1: lea 0x0b0f9090(%rsp), %rax
ret

### a loop that goes back into its own instruction
# refuse: P2-target
# from: SDM vol. 2, LOOP
1: loop 1b + 1
ret

### a counted loop
# accept
# from: SDM vol. 2, LOOP
mov $3, %ecx
1: loop 1b
ret

### a jump if rcx is zero, beyond the code
# refuse: P2-target
# from: SDM vol. 2, JCXZ
.byte 0xe3, 0x70
ret

### a jump to where the section ends
# refuse: P2-target
# from: gABI chapter 4
jmp 1f
ret
1:

### the last instruction goes on
# refuse: P2-fall-off
# from: contract P2
nop

### the last instruction calls, and the callee returns
# refuse: P2-fall-off
# from: psABI 3.2.2
call imported

### a condition that decides whether the code ends
# refuse: P2-fall-off
# from: contract P2
test %edi, %edi
jne f

### two functions that share their end
# accept
# from: tail merging (gcc -fcrossjumping)
test %edi, %edi
jne 1f
push %rbx
jmp g
1: push %rbx
g: pop %rbx
ret

### two functions that share an end that one of them is not ready for
# refuse: P4-depth
# from: tail merging
test %edi, %edi
jne g
push %rbx
g: pop %rbx
ret

### a callee that begins in the middle of a frame
# refuse: P4-frame
# from: contract P2
push %rbx
call g
g: pop %rbx
ret

### a tail call from inside a frame
# refuse: P4-return
# from: psABI 3.2.2
push %rbx
jmp imported

### a conditional tail call from inside a frame
# refuse: P4-return
# from: psABI 3.2.2
push %rbx
test %edi, %edi
je imported
pop %rbx
ret

### a tail call
# accept
# from: psABI 3.2.2
jmp imported

### a conditional tail call
# accept
# from: psABI 3.2.2
test %edi, %edi
je imported
ret

### functions that call each other
# accept
# from: C
{KEEP}
test %edi, %edi
je 1f
sub $8, %rsp
call g
add $8, %rsp
1: {RET}
g: {KEEP}
sub $8, %rsp
call f
add $8, %rsp
{RET}

### an indirect tail call from inside a frame
# refuse: P4-return
# from: docs/spec/sequences.md, indirect calls
push %rbx
mov %rdi, %r11
jmp twin_stlb_call

### an indirect call by a register that the entry does not look at
# refuse: P2-indirect
# from: SDM vol. 2, CALL
call *%r11
ret

### a switch through a table
# refuse: P2-indirect
# from: gcc -fjump-tables
mov %edi, %edi
jmp *"twin_vm:.rodata"(,%rdi,8)

### a jump through the frame
# refuse: P2-indirect
# from: longjmp
mov %rdi, -8(%rsp)
jmp *-8(%rsp)

### a far jump through memory
# refuse: P2-indirect
# from: SDM vol. 2, JMP m16:64
{T:(%rdi)}
rex.w ljmp *(%rax)

### a return with the direction flag set
# refuse: P2-direction
# from: psABI 3.2.1
std
ret

### a call with the direction flag set
# refuse: P2-direction
# from: psABI 3.2.1
std
call imported
cld
ret

### a call of an own function with the direction flag set
# refuse: P2-direction
# from: psABI 3.2.1
std
call g
cld
ret
g: ret

### an indirect call with the direction flag set
# refuse: P2-direction
# from: psABI 3.2.1
mov %rdi, %r11
std
call twin_stlb_call
cld
ret

### a tail call with the direction flag set
# refuse: P2-direction
# from: psABI 3.2.1
std
jmp imported

### the direction flag set on one of two paths
# refuse: P2-direction
# from: psABI 3.2.1
test %edi, %edi
je 1f
std
1: ret

### the direction flag set in a loop, cleared before it
# refuse: P2-direction
# from: psABI 3.2.1
cld
1: call imported
std
dec %ebx
jne 1b
cld
ret

### the direction flag set and cleared
# accept
# from: psABI 3.2.1
std
cld
ret

### the flags' low half cannot hold the direction
# accept
# from: SDM vol. 2, SAHF
mov $0xffff, %eax
sahf
ret

### a breakpoint that its handler continues behind
# refuse: P3-instruction
# from: SDM vol. 3, 6.3.1 (#BP is a trap: the saved rip is behind it)
test %edi, %edi
je 1f
int3
1: ret

### a breakpoint before an out-of-line part
# refuse: P3-instruction
# from: SDM vol. 3, 6.3.1
{T:(%rdi)}
mov (%rax), %rax
int3

### an undefined instruction, which faults
# accept
# from: SDM vol. 3, 6.3.1 (#UD is a fault)
test %edi, %edi
je 1f
ud2
1: ret

### code behind a return that nothing leads to
# refuse: P2-unreached
# from: issue 14.6
ret
mov (%rdi), %rax
ret

### code behind a return, harmless as it is
# refuse: P2-unreached
# from: issue 14.6
ret
xor %eax, %eax
ret

### unreached code that jumps into a good function's frame
# refuse: P2-unreached
# from: issue 14.6
push %rbx
1: pop %rbx
ret
jmp 1b

### a loop that nothing leads to
# refuse: P2-unreached
# from: issue 14.6
ret
1: jmp 1b

### padding behind a return
# accept
# from: issue 14.6
ret
int3
int3
nop
nopw 0x1000(%rax,%rax,1)
ud2

### a function that only unreached code calls
# refuse: P2-unreached
# from: issue 14.6
ret
call g
ud2
g: pop %rax
ret

### two instructions in the same bytes, both of them good
# refuse: P2-target
# from: SDM vol. 2, 2.1
.byte 0xeb, 0xff
.byte 0xc0, 0xc3, 0xc3
ret

### a weak function's address as a target
# refuse: P2-relocation
# from: gABI chapter 4 (an undefined weak symbol is zero)
.weak maybe
call maybe
ret

### a global that a tail call may leave by, in the middle of an instruction
# refuse: P2-target
# from: gABI chapter 4
.globl g
ret
1: mov $0xc3, %eax
.set g, 1b + 1

### a slow path reached by falling into it
# refuse: P2-out-of-line
# from: docs/spec/sequences.md
{T:(%rdi)}
mov (%rax), %rax

### a slow path reached by a call
# refuse: P2-out-of-line
# from: docs/spec/sequences.md
{T:(%rdi)}
mov (%rax), %rax
call .Lslow1
ret

### a loop around a slow path
# refuse: P2-out-of-line
# from: docs/spec/sequences.md
1: {T:(%rdi)}
mov (%rax), %rax
dec %rsi
jne .Lslow1
ret

### the way back from a slow path, used by a jump
# refuse: P1-untranslated
# from: docs/spec/sequences.md
test %edi, %edi
je 1f
{T:(%rdi)}
mov (%rax), %rax
ret
1: jmp .Lback1

### a port read by a tail call
# refuse: P2-callee
# from: crates/abi, names
jmp twin_in32

### a warning by a conditional jump
# refuse: P2-callee
# from: crates/abi, names
je twin_warn
ret

### the abort as a tail call
# refuse: P2-callee
# from: crates/abi, names
jmp twin_bug

### what a warning keeps
# accept
# from: crates/abi, names
{T:(%rdi)}
call twin_warn
mov (%rax), %rcx
ret

### what a port does not keep
# refuse: P1-untranslated
# from: crates/abi, names
{T:(%rdi)}
call twin_in8
mov (%rax), %rcx
ret
