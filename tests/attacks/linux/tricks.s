/* One trick a case. */

### the address of an instruction's middle
# refuse: P2-target
lea 1f+1(%rip), %rdi; 1: call g; ret

### a short static branch that does not reach
# refuse: P2-metadata
1: xchg %ax, %ax; ret; .skip 200, 0xcc; 2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key - .
.popsection

### a static branch over another nop of 2 bytes
# refuse: P2-metadata
1: nop; nop; ret; 2: ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., 2b - .
.quad key - .
.popsection

### notes to nobody that refer to code
# refuse: P2-metadata
1: ret
.section .notes,"",@progbits
.quad 1b
.text

### a load through a register
# refuse: P1-untranslated
mov (%rdi), %rax; ret

### a store through a register
# refuse: P1-untranslated
mov %rax, 8(%rdi); ret

### a byte too far before a translation
# refuse: P1-window
{T} mov %rdx, -4097(%rax); ret

### an index on a symbol
# refuse: P1-address-form
mov d(,%rdi,8), %rax; ret
.data
d: .quad 0
.text

### a symbol as displacement of a pointer
# refuse: P1-untranslated
mov d(%rdi), %rax; ret
.data
d: .quad 0
.text

### an address on the null page
# refuse: P1-address-form
mov 0x10, %rax; ret

### a place past the end of its section
# refuse: P1-address-form
mov %rax, d+4096(%rip); ret
.data
d: .quad 0
.text

### a place before its section
# refuse: P1-address-form
mov %rax, d-8(%rip); ret
.data
d: .quad 0
.text

### far from a kernel's symbol
# refuse: P1-address-form
mov %rax, jiffies+0x1000000(%rip); ret

### writing its own code
# refuse: P1-address-form
movb $0x90, f(%rip); ret

### fs is the user's
# refuse: P1-address-form
mov %fs:0, %rax; ret

### gs on the other operand only
# refuse: P1-untranslated
mov %gs:(%rdi), %rax; mov (%rax), %rdx; ret

### an unchecked string
# refuse: P1-string-pointer
mov %rsi, %rcx; rep stosb; ret

### an unchecked string from a port
# refuse: P1-string-pointer
rep insb; ret

### more of a string than is covered
# refuse: P1-string-count
{T} mov %rax, %rdi; mov %rsi, %rcx; rep stosb; ret

### the return address
# refuse: P1-return-slot
mov %rax, (%rsp); ret

### the return address through a frame pointer
# refuse: P1-return-slot
push %rbp; mov %rsp, %rbp; mov %rax, 8(%rbp); pop %rbp; ret

### the return address, perhaps, from an aligned frame
# refuse: P1-return-slot
push %rbp; mov %rsp, %rbp; and $-64, %rsp; mov %rax, 8(%rsp); leave; ret

### a frame pointer of its choice
# refuse: P1-untranslated
mov %rdi, %rbp; mov %rax, -8(%rbp); ret

### a stack of its choice
# refuse: P4-rsp
mov %rdi, %rsp; mov %rax, 8(%rsp); ret

### a stack from a pointer that was never saved
# refuse: P4-rsp
lea -8(%r10), %rsp; ret

### a stack from a word that was overwritten
# refuse: P4-rsp
lea 8(%rsp), %r10; push %r10; mov %rdi, (%rsp); pop %r10; lea -8(%r10), %rsp; ret

### a stack from half of a saved word
# refuse: P4-rsp
lea 8(%rsp), %r10; push %r10; movb $0, 3(%rsp); pop %r10; lea -8(%r10), %rsp; ret

### aligned twice
# refuse: P4-rsp
push %rbp; mov %rsp, %rbp; and $-16, %rsp; and $-64, %rsp; leave; ret

### masked by no alignment
# refuse: P4-rsp
push %rbp; mov %rsp, %rbp; and $-17, %rsp; leave; ret

### leaving with an aligned frame
# refuse: P4-return
and $-16, %rsp; ret

### a frame on one path only
# refuse: P4-depth
test %edi, %edi; je 1f; push %rax; 1: nop; ret

### a thunk with a frame
# refuse: P4-return
push %rax; jmp __x86_indirect_thunk_rax

### a guest
# refuse: P3-instruction
vmlaunch; ret

### back to the user
# refuse: P3-instruction
swapgs; sysretq

### an interrupt
# refuse: P3-instruction
int $0x80; ret

### a segment
# refuse: P3-instruction
mov %eax, %ds; ret

### a far jump
# refuse: P2-indirect
ljmp *(%rsp)

### a direction for the callee
# refuse: P2-direction
std; call g; cld; ret

### flags of its choice
# refuse: P2-direction
push $0x400; popf; call g; ret

### the table as data
# refuse: P2-relocation
mov $twin_stlb, %rdi; ret

### the table in data
# refuse: P5-runtime
ret
.data
.quad twin_stlb
.text

### the table read at will
# refuse: P5-table
mov twin_stlb(%rdi), %rax; ret

### the table at another place
# refuse: P2-relocation
sub twin_stlb+4(%rcx), %rax; ret

### the slow path's address in data
# refuse: P5-runtime
ret
.data
.quad twin_slow_rax
.text

### the slow path out of a check
# refuse: P2-out-of-line
call twin_slow_rax; mov (%rax), %rdx; ret

### the slow path as a tail call
# refuse: P2-callee
jmp twin_slow_rax

### behind the slow path's entry
# refuse: P2-relocation
call twin_slow_rax+4; ret

### a codemap
# refuse: object-section
ret
.section .twin.codemap,"a"
.quad 0,0
.text

### writable code
# refuse: object-section
ret
.section .wx,"awx"
ret
.text

### data into the middle of a function
# refuse: P2-target
nop; 1: ret
.data
.quad 1b
.text

### the address of half an instruction
# refuse: P2-target
mov $f+1, %rax; mov $0, %edx; ret

### an exception entry inside an instruction
# refuse: P2-metadata
1: mov (%rdi), %rax; 2: ret
.pushsection __ex_table,"a"
.long 1b+1 - ., 2b - .
.long 1
.popsection

### an exception entry for another instruction
# refuse: P1-untranslated
1: nop; mov (%rdi), %rax; 2: ret
.pushsection __ex_table,"a"
.long 1b - ., 2b - .
.long 1
.popsection

### a fixup that is no instruction
# refuse: P2-metadata
1: mov (%rdi), %rax; 2: ret
.pushsection __ex_table,"a"
.long 1b - ., 1b+1 - .
.long 1
.popsection

### a fixup into a check
# refuse: P5-table
1: mov (%rdi), %rdx; {T} 2: ret
.pushsection __ex_table,"a"
.long 1b - ., .Lback1-7 - .
.long 1
.popsection

### a fixup behind a check
# refuse: P1-untranslated
1: mov (%rdi), %rdx; {T} mov (%rax), %dl; ret
.pushsection __ex_table,"a"
.long 1b - ., .Lback1 - .
.long 1
.popsection

### a static branch behind a check
# refuse: P1-untranslated
1: .byte 0x0f,0x1f,0x44,0,0; {T} mov (%rax), %dl; ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., .Lback1 - .
.quad key - .
.popsection

### a static branch over something else
# refuse: P2-metadata
1: mov $1, %eax; ret
.pushsection __jump_table,"aw"
.balign 8
.long 1b - ., f - .
.quad key - .
.popsection

### a lock that is none
# refuse: P2-metadata
1: nop; ret
.pushsection .smp_locks,"a"
.long 1b - .
.popsection

### a lock in an immediate
# refuse: P2-metadata
1: mov $0xf0f0f0f0, %eax; ret
.pushsection .smp_locks,"a"
.long 1b+1 - .
.popsection

### a trace entry over a check
# refuse: P2-metadata
{T} 1: mov (%rax), %rdx; ret
.pushsection __mcount_loc,"a"
.quad .Lback1-7
.popsection

### a trace entry over another call
# refuse: P2-metadata
1: call g; ret
.pushsection __mcount_loc,"a"
.quad 1b
.popsection

### a return site over another jump
# refuse: P2-metadata
1: jmp g
.pushsection .return_sites,"a"
.long 1b - .
.popsection

### a thunk site over another call
# refuse: P2-metadata
1: call g; ret
.pushsection .retpoline_sites,"a"
.long 1b - .
.popsection

### a warning that is none
# refuse: P2-metadata
1: nop; ret
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### what stands behind a warning
# refuse: P1-untranslated
1: ud2; mov (%rdi), %rax; ret
.pushsection __bug_table,"aw"
.long 1b - ., d - .
.short 1, 1
.popsection
.data
d: .quad 0
.text

### a static call over a nop
# refuse: P2-metadata
1: nopl 0(%rax,%rax); ret
.pushsection .static_call_sites,"aw"
.long 1b - ., key - .
.popsection

### an alternative that reaches memory
# refuse: P1-untranslated
1: nop; nop; nop; ret
.pushsection .altinstr_replacement,"ax"
2: mov (%rdi), %rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 3, 3b-2b
.popsection

### an alternative that loses a translation
# refuse: P1-untranslated
{T} 1: nop; nop; nop; mov (%rax), %dl; ret
.pushsection .altinstr_replacement,"ax"
2: mov %rdi, %rax
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 3, 3b-2b
.popsection

### an alternative over half an instruction
# refuse: P2-metadata
1: mov $1, %eax; ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 3, 3b-2b
.popsection

### an alternative over a check
# refuse: P2-metadata
{T} mov (%rax), %dl; ret
.pushsection .altinstr_replacement,"ax"
2: nop
3:
.popsection
.pushsection .altinstructions,"a"
.long .Lback1-7 - ., 2b - .
.short 20
.byte 7, 3b-2b
.popsection

### an alternative that is too long
# refuse: P2-metadata
1: nop; ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 1, 3b-2b
.popsection

### a branch into what an alternative replaces
# refuse: P2-metadata
test %edi, %edi; je 4f; 1: nop; nop; 4: nop; ret
.pushsection .altinstr_replacement,"ax"
2: clac
3:
.popsection
.pushsection .altinstructions,"a"
.long 1b - ., 2b - .
.short 20
.byte 3, 3b-2b
.popsection

### unwinding from half an instruction
# refuse: P2-metadata
mov $1, %eax; ret
.pushsection .orc_unwind_ip,"a"
.long f+1 - .
.popsection

### a slow path for a distance from its own place
# refuse: P2-out-of-line
# from: psABI 4.4, R_X86_64_PC64: S + A - P is another number elsewhere
movabs $d - ., %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 4f
add twin_stlb+8(%rcx), %rax
5: mov (%rax), %rax
ret
4: movabs $d - ., %rax
call twin_slow_rax
jmp 5b
.data
d: .quad 0
.text

### a slow path for an address
# accept
movabs $d, %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 4f
add twin_stlb+8(%rcx), %rax
5: mov (%rax), %rax
ret
4: movabs $d, %rax
call twin_slow_rax
jmp 5b
.data
d: .quad 0
.text

### a slow path for an address relative to its own place
# refuse: P2-out-of-line
# from: SDM 2.2.1.6: the same bytes elsewhere are another address
1: lea g(%rip), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 4f
add twin_stlb+8(%rcx), %rax
5: mov (%rax), %rax
ret
4: .byte 0x48,0x8d,0x05
.long g - 1b - 7
call twin_slow_rax
jmp 5b
.type g,@function
g: .fill 200, 1, 0x90
ret

### the tag of a check, per CPU: what is compared is no tag of the table's
# refuse: P5-table
# from: SDM vol. 1, 3.4.4: the base of gs is added
{E:sub twin_stlb=>sub %gs:twin_stlb}

### the tag of the other check, per CPU
# refuse: P5-table
# scheme: paper
# from: ibid.
{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp %gs:twin_stlb(%rcx), %rdx|jne}

### the other check as it is
# accept
# scheme: paper
# from: control
{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}

### the translation of a check, per CPU
# refuse: P5-table
# from: ibid.
{E:add twin_stlb=>add %gs:twin_stlb}

### both words of an entry, per CPU
# refuse: P5-table
# from: ibid.
{E:sub twin_stlb=>sub %gs:twin_stlb|add twin_stlb=>add %gs:twin_stlb}

### a check with a segment that means nothing
# refuse: P5-table
# from: SDM vol. 1, 3.4.2.1
{E:sub twin_stlb=>sub %es:twin_stlb}
