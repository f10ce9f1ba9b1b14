/* One trick a case; what needs no check is refused in both schemes. */

### a plain load
# refuse: P1-untranslated
# scheme: both
mov (%rdi), %rax; ret

### a plain store
# refuse: P1-untranslated
# scheme: both
mov %rax, 8(%rdi); ret

### an atomic on a plain address
# refuse: P1-untranslated
# scheme: both
lock; incl (%rdi); ret

### a vector store
# refuse: P1-untranslated
# scheme: both
vmovdqu %ymm0, (%rdi); ret

### a push from memory
# refuse: P1-untranslated
# scheme: both
push (%rdi); pop %rax; ret

### a pop to memory
# refuse: P1-untranslated
# scheme: both
push %rax; pop (%rdi); ret

### a pop through rsp
# refuse: P1-stack-bounds
# scheme: both
sub $16, %rsp; pop 8(%rsp); add $8, %rsp; ret

### a pop to the top of the stack
# refuse: P1-stack-bounds
# scheme: both
push %rax; pop (%rsp); ret

### a pop onto the return address
# refuse: P1-return-slot
# scheme: both
mov %rsp, %rbx; push %rax; pop (%rbx); ret

### a prefetch of any address
# refuse: P1-untranslated
# scheme: both
prefetcht0 (%rdi); ret

### a comparison only
# refuse: P1-untranslated
# scheme: both
cmpb $0, (%rdi); ret

### a byte too far
# refuse: P1-window
{T} mov 4090(%rax), %rdx; ret

### the second page's end
# refuse: P1-window
{T} mov 8191(%rax), %dl; ret

### a byte farther before than a window shows
# refuse: P1-window
{T} mov -4097(%rax), %dl; ret

### a word that begins before the window
# refuse: P1-window
{T} mov %rdx, -4100(%rax); ret

### far before the window
# refuse: P1-window
{T} mov -0x80000000(%rax), %dl; ret

### below, and lower once more
# refuse: P1-untranslated
{T} sub $4096, %rax; mov -4096(%rax), %dl; ret

### below a translation that was moved
# refuse: P1-untranslated
{T} lea -1(%rax), %rax; mov -4096(%rax), %dl; ret

### an index on a translation
# refuse: P1-window
{T} mov (%rax,%rsi), %dl; ret

### a translation as index
# refuse: P1-untranslated
{T} mov (%rsi,%rax), %dl; ret

### a scaled translation
# refuse: P1-address-form
{T} mov (,%rax,2), %dl; ret

### adding to a translation
# refuse: P1-untranslated
{T} add $4096, %rax; mov (%rax), %dl; ret

### lea from a translation
# refuse: P1-untranslated
{T} lea 9(%rax), %rdx; mov (%rdx), %dl; ret

### half of a translation
# refuse: P1-untranslated
{T} mov %eax, %edx; mov (%rdx), %dl; ret

### changing a translation's low byte
# refuse: P1-untranslated
{T} mov $0, %al; mov (%rax), %dl; ret

### exchanging a translation
# refuse: P1-untranslated
{T} xchg %rax, %rsi; mov (%rax), %dl; ret

### writing it by a conditional move
# refuse: P1-untranslated
{T} cmove %rsi, %rax; mov (%rax), %dl; ret

### keeping a translation over a call
# refuse: P1-untranslated
push %rbx; {T} mov %rax, %rbx; call g; mov (%rbx), %rcx; pop %rbx; ret; g: ret

### keeping a translation over an import
# refuse: P1-untranslated
push %rbx; {T} mov %rax, %rbx; call imported; mov (%rbx), %rcx; pop %rbx; ret

### keeping a translation on the stack
# refuse: P1-untranslated
{T} push %rax; pop %rdx; mov (%rdx), %rcx; ret

### rax after a port is not what it was
# refuse: P1-untranslated
{T} call twin_in8; mov (%rax), %rcx; ret

### a translation on one path only
# refuse: P1-untranslated
mov %rsi, %rax; test %rsi, %rsi; je 1f; {T} 1: mov (%rax), %dl; ret

### a translation lost in a loop
# refuse: P1-untranslated
{T} 1: mov (%rax), %dl; add %rsi, %rax; dec %rbx; jne 1b; ret

### gs
# refuse: P1-address-form
# scheme: both
mov %gs:0x28, %rax; ret

### fs through a register
# refuse: P1-address-form
# scheme: both
mov %fs:(%rdi), %rax; ret

### gs on a translation
# refuse: P1-address-form
{T} mov %gs:(%rax), %rdx; ret

### gs on the stack
# refuse: P1-address-form
# scheme: both
mov %gs:-8(%rsp), %rdx; ret

### gs before a string instruction
# refuse: P1-address-form
{T} mov %rax, %rsi; gs lodsb; ret

### 32-bit addresses
# refuse: P1-address-form
{T} mov (%eax), %edx; ret

### 32-bit stack addresses
# refuse: P1-address-form
# scheme: both
mov -8(%esp), %edx; ret

### an absolute address
# refuse: P1-address-form
# scheme: both
mov 0x1000, %eax; ret

### a 64-bit absolute address
# refuse: P1-address-form
# scheme: both
movabs 0x123456789abc, %rax; ret

### its own code
# refuse: P1-address-form
# scheme: both
mov 1f(%rip), %rax; 1: ret

### the address of its own code
# refuse: P1-address-form
# scheme: both
lea f(%rip), %rax; ret

### a symbol without translation
# refuse: P1-address-form
# scheme: both
mov "twin_vm:.data", %eax; ret

### a symbol on a translation
# refuse: P1-untranslated
{T} mov "twin_vm:.data"(%rax), %edx; ret

### a symbol on the stack
# refuse: P1-untranslated
# scheme: both
mov "twin_vm:.data"(%rsp), %edx; ret

### a table lookup in code
# refuse: P3-instruction
{T} mov %rax, %rbx; xlat; ret

### an index on the stack
# refuse: P1-stack-bounds
# scheme: both
mov -8(%rsp,%rdi), %rax; ret

### the return address
# refuse: P1-return-slot
# scheme: both
movq $0, (%rsp); ret

### the return address in part
# refuse: P1-return-slot
# scheme: both
push %rax; movl $0, 5(%rsp); pop %rax; ret

### the return address through rbp
# refuse: P1-return-slot
# scheme: both
lea 64(%rsp), %rbp; mov %rax, -64(%rbp); ret

### the caller's frame
# refuse: P1-return-slot
# scheme: both
mov %rax, 16(%rsp); ret

### far above the arguments
# refuse: P1-stack-bounds
# scheme: both
mov 72(%rsp), %rax; ret

### far below the stack pointer
# refuse: P1-stack-bounds
# scheme: both
mov %al, -129(%rsp); ret

### the popped frame
# refuse: P1-stack-bounds
# scheme: both
sub $512, %rsp; mov %rsp, %rax; add $512, %rsp; mov (%rax), %al; ret

### the frame pointer after a call
# refuse: P1-untranslated
# scheme: both
mov %rsp, %rbp; call g; mov -8(%rbp), %rax; ret; g: ret

### a stack address far away
# refuse: P1-stack-bounds
# scheme: both
lea 0x7fffffff(%rsp), %rax; mov (%rax), %al; ret

### a stack address that wraps
# refuse: P1-untranslated
# scheme: both
lea 0x7fffffff(%rsp), %rax; lea 0x7fffffff(%rax), %rax; mov (%rax), %al; ret

### a stack address of 32 bits
# refuse: P1-untranslated
# scheme: both
lea -8(%rsp), %eax; mov (%rax), %al; ret

### a bit far away
# refuse: P1-bit-offset
{T} bts %rsi, (%rax); ret

### a bit past the operand
# refuse: P1-bit-offset
{T} and $63, %esi; btr %esi, (%rax); ret

### a negative bit
# refuse: P1-bit-offset
{T} and $-1, %esi; bt %rsi, (%rax); ret

### a bit masked in the low half only
# refuse: P1-bit-offset
{T} and $63, %sil; btc %rsi, (%rax); ret

### a bit masked by a symbol
# refuse: P1-bit-offset
{T} and $"twin_vm:x", %rsi; btc %rsi, (%rax); ret

### a bit of the stack
# refuse: P1-bit-offset
# scheme: both
bts %rsi, -8(%rsp); ret

### the context itself
# refuse: P1-context
# scheme: both
mov %rsp, %rax; or $0xffff, %rax; mov %rsi, -0x1ff7(%rax); ret

### another field of the context
# refuse: P1-context
# scheme: both
mov %rsp, %rax; or $0xffff, %rax; mov -0xfef(%rax), %rsi; ret

### half of a segment base
# refuse: P1-context
# scheme: both
mov %rsp, %rax; or $0xffff, %rax; mov -0x1ff7(%rax), %esi; ret

### the context at an index
# refuse: P1-context
# scheme: both
mov %rsp, %rax; or $0xffff, %rax; mov -0x1ff7(%rax,%rsi), %rdi; ret

### another CPU's context
# refuse: P1-untranslated
# scheme: both
lea 0x10000(%rsp), %rax; or $0xffff, %rax; mov -0x1ff7(%rax), %rdi; ret

### a context of the driver's choice
# refuse: P1-untranslated
# scheme: both
mov %rdi, %rax; or $0xffff, %rax; mov -0x1ff7(%rax), %rdi; ret

### a context mask by a symbol
# refuse: P1-untranslated
# scheme: both
mov %rsp, %rax; or $"twin_vm:x", %rax; mov -0x1ff7(%rax), %rdi; ret

### no check at all
# refuse: P5-table
{E:cmp $0xfff, %rax=>|ja .Lslow1=>}

### an unchecked offset as address
# refuse: P1-untranslated
{E:cmp $0xfff, %rax=>|ja .Lslow1=>|add twin_stlb+8(%rcx), %rax=>}

### a checked offset as address
# refuse: P1-untranslated
{E:add twin_stlb+8(%rcx), %rax=>mov (%rax), %bl; add twin_stlb+8(%rcx), %rax}

### too wide a window
# refuse: P5-table
{E:$0xfff, %rax=>$0x1fff, %rax}

### a window by a symbol
# refuse: P5-table
{E:$0xfff, %rax=>$"twin_vm:x", %rax}

### a signed comparison
# refuse: P5-table
{E:ja=>jg}

### the opposite comparison
# refuse: P5-table
{E:ja=>jbe}

### a window compared in 32 bits
# refuse: P5-table
{E:$0xfff, %rax=>$0xfff, %eax}

### an offset changed after its comparison
# refuse: P5-table
{E:ja=>mov %rsi, %rax; ja}

### flags changed after the comparison
# refuse: P5-table
{E:ja=>test %esi, %esi; ja}

### another address's index
# refuse: P5-table
{E:mov %eax, %ecx=>lea (%rsi), %rdx; mov %edx, %ecx}

### another entry's translation
# refuse: P5-table
{E:cmp=>add $16, %ecx; cmp}

### an index that is not masked
# refuse: P5-table
{E:and $0xfff0, %ecx=>}

### an index with a wider mask
# refuse: P5-table
{E:$0xfff0=>$0x1fff0}

### an index between entries
# refuse: P5-table
{E:$0xfff0=>$0xffff}

### an index masked by a symbol
# refuse: P5-table
{E:and $0xfff0, %ecx=>and $"twin_vm:x", %rcx}

### an index shifted otherwise
# refuse: P5-table
{E:shr $8=>shr $7}

### an index of 16 bits
# refuse: P5-table
{E:and $0xfff0, %ecx=>and $0xfff0, %cx}

### the halves exchanged
# refuse: P5-table
{E:twin_stlb(%rcx)=>twin_stlb+8(%rcx)}

### a table entry as address
# refuse: P5-table
mov %edi, %ecx; shr $8, %ecx; and $0xfff0, %ecx; mov twin_stlb+8(%rcx), %rax; mov (%rax), %al; ret

### a table entry overwritten
# refuse: P5-table
mov %edi, %ecx; shr $8, %ecx; and $0xfff0, %ecx; sub %rax, twin_stlb+8(%rcx); ret

### half a tag subtracted
# refuse: P5-table
{E:sub twin_stlb(%rcx), %rax=>sub twin_stlb(%rcx), %eax}

### the table's address in a register
# refuse: P5-table
lea twin_stlb(%rcx), %rax; ret

### the table's address as a constant
# refuse: P2-relocation
mov $twin_stlb, %rax; ret

### the table at an odd place
# refuse: P2-relocation
mov %edi, %ecx; shr $8, %ecx; and $0xfff0, %ecx; sub twin_stlb+4(%rcx), %rdi; ret

### the table through rip
# refuse: P2-relocation
sub twin_stlb(%rip), %rax; ret

### a scaled index
# refuse: P1-address-form
{E:twin_stlb(%rcx)=>twin_stlb(,%rcx,2)}

### a second index
# refuse: P5-table
{E:twin_stlb(%rcx)=>twin_stlb(%rcx,%rsi)}

### the other scheme's translation
# refuse: P5-table
{P}

### an address of the last iteration
# refuse: P5-table
lea (%rdi), %rax; mov %eax, %ecx; shr $8, %ecx; and $0xfff0, %ecx; 1: lea (%rdi), %rax; mov %eax, %edx; sub twin_stlb(%rcx), %rax; mov %edx, %ecx; shr $8, %ecx; and $0xfff0, %ecx; inc %rdi; jmp 1b

### into the check behind its branch
# refuse: P5-table
test %esi, %esi; jne 3f; {E:add=>3: add}

### behind the check
# refuse: P1-untranslated
mov %rsi, %rax; test %esi, %esi; jne .Lback1; {T} mov (%rax), %al; ret

### before the comparison
# refuse: P5-table
mov %rsi, %rax; xor %ecx, %ecx; test %esi, %esi; jne 3f; {E:cmp=>3: cmp}

### another way into the out-of-line part
# refuse: P2-out-of-line
test %esi, %esi; jne .Lslow1; {T} mov (%rax), %al; ret

### into the middle of the out-of-line part
# refuse: P2-out-of-line
test %esi, %esi; jne .Lslow1+3; {T} mov (%rax), %al; ret

### falling into the out-of-line part
# refuse: P2-out-of-line
{E:mov (%rax), %al; ret=>mov (%rax), %al}

### two checks with one out-of-line part
# refuse: P2-out-of-line
{T} mov (%rax), %bl; lea (%rdi), %rax; mov %eax, %ecx; shr $8, %ecx; and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax; cmp $0xfff, %rax; ja .Lslow1; add twin_stlb+8(%rcx), %rax; ret

### another address in the out-of-line part
# refuse: P2-out-of-line
{E:.Lslow1: lea (%rdi)=>.Lslow1: lea 8(%rdi)}

### the slow path for another register
# refuse: P2-out-of-line
{E:twin_slow_rax=>twin_slow_rcx}

### a base changed inside the check
# refuse: P2-out-of-line
{E:sub=>mov %rsi, %rdi; sub}

### an address that reads what it writes
# refuse: P2-out-of-line
{E:lea (%rdi)=>lea 8(%rax)|.Lslow1: lea (%rdi)=>.Lslow1: lea 8(%rax)}

### another symbol in the out-of-line part
# refuse: P2-out-of-line
{E:lea (%rdi)=>lea "twin_vm:a"(%rdi)|.Lslow1: lea (%rdi)=>.Lslow1: lea "twin_vm:b"(%rdi)}

### a copy of another register out of line
# refuse: P2-out-of-line
{E:lea (%rdi)=>mov %rdi|.Lslow1: lea (%rdi)=>.Lslow1: mov %rdi|sub=>mov %rsi, %rdi; sub}

### a copy into another register out of line
# refuse: P2-out-of-line
{E:lea (%rdi), %rax=>mov %rdi, %rax; mov %rdi, %rdx|.Lslow1: lea (%rdi), %rax=>.Lslow1: mov %rdi, %rdx}

### coming back behind the access
# refuse: P2-out-of-line
{E:.Lback1:=>|mov (%rax), %al; ret=>mov (%rax), %al; .Lback1: ret}

### not coming back
# refuse: P2-out-of-line
{E:jmp .Lback1=>ret}

### no slow path
# refuse: P2-out-of-line
{E:call twin_slow_rax=>}

### skipping a load instead of a prefetch
# refuse: P2-out-of-line
{E:ja .Lslow1=>ja 2f|; ret=>; 2: ret}

### an access behind a skipped prefetch
# refuse: P1-untranslated
{E:ja .Lslow1=>ja 2f|mov (%rax), %al=>prefetcht0 (%rax); 2: mov (%rax), %al}

### the check's branch out of the object
# refuse: P2-out-of-line
{E:ja .Lslow1=>ja imported}

### the slow path outside a check
# refuse: P2-out-of-line
# scheme: both
mov %rdi, %rax; call twin_slow_rax; mov (%rax), %al; ret

### a name for the out-of-line part
# refuse: P2-out-of-line
{T} mov (%rax), %al; ret; .subsection 1; .globl evil; evil = .Lslow1

### a call through a register
# refuse: P2-indirect
# scheme: both
call *%rax; ret

### a call through memory
# refuse: P2-indirect
# scheme: both
call *(%rdi); ret

### a jump through a register
# refuse: P2-indirect
# scheme: both
jmp *%r11

### a jump through the stack
# refuse: P2-indirect
# scheme: both
jmp *-8(%rsp)

### a far jump
# refuse: P2-indirect
# scheme: both
ljmp *(%rdi)

### a far return
# refuse: P3-instruction
# scheme: both
lret

### a return that pops more
# refuse: P3-instruction
# scheme: both
ret $8

### a return thunk
# refuse: P2-relocation
# scheme: both
jmp __x86_return_thunk

### a thunk for indirect calls
# refuse: P2-relocation
# scheme: both
call __x86_indirect_thunk_rax; ret

### a jump into an instruction
# refuse: P2-target
# scheme: both
jmp g+1; g: mov $0x0b0f9090, %eax; ret

### a call into an instruction
# refuse: P2-target
# scheme: both
call g+1; ret; g: mov $0x0b0f9090, %eax; ret

### a jump out of the section
# refuse: P2-target
# scheme: both
jmp f+1000

### a jump before the section
# refuse: P2-target
# scheme: both
jmp f-16

### a branch to unknown bytes elsewhere
# refuse: P2-target
# scheme: both
je .text.b+1; ret; .section .text.b,"ax"; mov $1, %eax; ret; .text

### into an imported routine
# refuse: P2-relocation
# scheme: both
call imported+4; ret

### an unknown entry of the runtime
# refuse: object-symbol
# scheme: both
call twin_map_anything; ret

### a slow path for rsp
# refuse: object-symbol
# scheme: both
call twin_slow_rsp; ret

### a call to the table
# refuse: P2-relocation
call twin_stlb; ret

### a call to dom0
# refuse: P2-relocation
# scheme: both
call "twin_vm:printk"; ret

### a tail call of a slow path
# refuse: P2-callee
# scheme: both
mov %rdi, %rax; jmp twin_slow_rax

### a tail call of a port
# refuse: P2-callee
# scheme: both
jmp twin_in8

### a conditional indirect jump
# refuse: P2-callee
je twin_stlb_call; ret

### a weak routine
# refuse: P2-relocation
# scheme: both
.weak w; call w; ret

### code after the last instruction
# refuse: P2-fall-off
# scheme: both
mov $1, %eax; call imported

### a call with DF set
# refuse: P2-direction
# scheme: both
std; call imported; cld; ret

### a call inside with DF set
# refuse: P2-direction
# scheme: both
std; call g; cld; ret; g: ret

### a return with DF set
# refuse: P2-direction
# scheme: both
std; ret

### a tail call with DF set on one path
# refuse: P2-direction
# scheme: both
test %eax, %eax; je 1f; std; 1: jmp imported

### a port with DF set
# refuse: P2-direction
# scheme: both
std; call twin_out8; cld; ret

### a port
# refuse: P3-instruction
# scheme: both
in %dx, %al; ret

### a string of ports
# refuse: P3-instruction
# scheme: both
rep; outsb; ret

### interrupts off
# refuse: P3-instruction
# scheme: both
cli; ret

### halt
# refuse: P3-instruction
# scheme: both
hlt

### a model-specific register
# refuse: P3-instruction
# scheme: both
wrmsr; ret

### a control register
# refuse: P3-instruction
# scheme: both
mov %cr3, %rax; ret

### a debug register
# refuse: P3-instruction
# scheme: both
mov %rax, %dr7; ret

### a segment register
# refuse: P3-instruction
# scheme: both
mov %eax, %ds; ret

### a segment popped
# refuse: P3-instruction
# scheme: both
push $0; pop %fs; ret

### the gs base
# refuse: P3-instruction
# scheme: both
wrgsbase %rax; ret

### swapgs
# refuse: P3-instruction
# scheme: both
swapgs; ret

### a system call
# refuse: P3-instruction
# scheme: both
syscall; ret

### an interrupt
# refuse: P3-instruction
# scheme: both
int $0x80; ret

### an interrupt's return
# refuse: P3-instruction
# scheme: both
iretq

### flags popped
# refuse: P3-instruction
# scheme: both
push $0x202; popf; ret

### a hypercall
# refuse: P3-instruction
# scheme: both
vmcall; ret

### the TLB
# refuse: P3-instruction
# scheme: both
invlpg (%rdi); ret

### a descriptor table
# refuse: P3-instruction
# scheme: both
lgdt -16(%rsp); ret

### the machine's name
# refuse: P3-instruction
# scheme: both
cpuid; ret

### saved state
# refuse: P3-instruction
# scheme: both
fxrstor (%rsp); ret

### x87
# refuse: P3-instruction
# scheme: both
fldl -8(%rsp); ret

### MMX
# refuse: P3-instruction
# scheme: both
movq %mm0, %rax; ret

### a masked store
# refuse: P3-instruction
{T} mov %rax, %rdi; maskmovdqu %xmm0, %xmm1; ret

### a gather
# refuse: P3-instruction
{T} vpgatherdd %ymm0, (%rax,%ymm1,4), %ymm2; ret

### AVX-512 arithmetic
# refuse: P3-instruction
{T} vpaddd (%rax), %zmm0, %zmm1; ret

### 64 bytes with a mask
# refuse: P3-instruction
{T} vmovdqu64 (%rax), %zmm0{%k1}; ret

### 64 bytes untranslated
# refuse: P1-untranslated
# scheme: both
vmovdqu64 (%rdi), %zmm0; ret

### 64 bytes past the window
# refuse: P1-window
{T} vmovdqu64 %zmm0, 0xfc2(%rax); ret

### a transaction
# refuse: P3-instruction
# scheme: both
xbegin 1f; 1: ret

### enter
# refuse: P3-instruction
# scheme: both
enter $16, $1; leave; ret

### supervisor access
# refuse: P3-instruction
# scheme: both
stac; ret

### user wait
# refuse: P3-instruction
# scheme: both
umwait %eax; ret

### bytes that are nothing
# refuse: P3-undecodable
# scheme: both
ret; .byte 0x06

### half an instruction at the end
# refuse: P3-undecodable
# scheme: both
ret; .byte 0x48, 0x8b

### a call that AMD reads shorter
# refuse: P3-prefix
# scheme: both
.byte 0x66, 0xe8, 0, 0, 0, 0; ret

### a branch that AMD reads shorter
# refuse: P3-prefix
# scheme: both
.byte 0x66, 0x0f, 0x84, 0, 0, 0, 0; ret

### a return of 16 bits
# refuse: P3-prefix
# scheme: both
.byte 0x66, 0xc3

### a push of 16 bits
# refuse: P3-instruction
# scheme: both
push %ax; ret

### a push of 16 bits with REX.W
# refuse: P3-prefix
# scheme: both
.byte 0x66, 0x48, 0x50; pop %rax; ret

### a REX without effect
# refuse: P3-prefix
# scheme: both
.byte 0x48, 0x66, 0x89, 0xd8; ret

### two REX
# refuse: P3-prefix
# scheme: both
.byte 0x40, 0x48, 0x89, 0xd8; ret

### lock elision
# refuse: P3-prefix
{T} xacquire; lock; incl (%rax); ret

### a bound branch
# refuse: P3-prefix
# scheme: both
.byte 0xf2; jmp 1f; 1: ret

### a repeated store
# refuse: P3-prefix
{T} mov %rax, %rdi; .byte 0xf2; stosb; ret

### rsp from memory
# refuse: P4-rsp
# scheme: both
push %rax; pop %rsp; ret

### rsp from a register
# refuse: P4-rsp
# scheme: both
mov %rdi, %rsp; ret

### rsp exchanged
# refuse: P4-rsp
# scheme: both
xchg %rdi, %rsp; ret

### rsp aligned
# refuse: P4-rsp
# scheme: both
and $-16, %rsp; ret

### rsp with an index
# refuse: P4-rsp
# scheme: both
lea -8(%rsp,%rdi), %rsp; ret

### rsp of 32 bits
# refuse: P4-rsp
# scheme: both
sub $8, %esp; ret

### rsp copied in 32 bits
# refuse: P4-rsp
# scheme: both
mov %esp, %esp; ret

### rsp of 16 bits
# refuse: P4-rsp
# scheme: both
mov %ax, %sp; ret

### rsp's low byte
# refuse: P4-rsp
# scheme: both
mov $0, %spl; ret

### rsp by a symbol
# refuse: P4-rsp
# scheme: both
sub $"twin_vm:x", %rsp; ret

### rsp to a symbol
# refuse: P4-rsp
# scheme: both
mov $"twin_vm:x", %rsp; ret

### rsp translated
# refuse: P4-rsp
{T} mov %rax, %rsp; ret

### rsp conditionally
# refuse: P4-rsp
# scheme: both
mov %rsp, %rax; cmove %rax, %rsp; ret

### leave with a frame pointer of the caller
# refuse: P4-rsp
# scheme: both
leave; ret

### leave after a call
# refuse: P4-rsp
# scheme: both
push %rbp; mov %rsp, %rbp; call imported; leave; ret

### a frame over the guard page
# refuse: P4-frame
# scheme: both
sub $3976, %rsp; add $3976, %rsp; ret

### a huge frame
# refuse: P4-frame
# scheme: both
sub $0x7fffffff, %rsp; ret

### a frame grown in a loop
# refuse: P4-depth
# scheme: both
1: push %rax; dec %rdi; jne 1b; ret

### pushing beyond the guard
# refuse: P4-frame
# scheme: both
sub $3968, %rsp; push %rax; ret

### popping the return address
# refuse: P4-frame
# scheme: both
pop %rax; push %rax; ret

### above the return address
# refuse: P4-frame
# scheme: both
add $8, %rsp; ret

### a return with a frame
# refuse: P4-return
# scheme: both
push %rax; ret

### a tail call with a frame
# refuse: P4-return
# scheme: both
push %rax; jmp imported

### a conditional tail call with a frame
# refuse: P4-return
# scheme: both
push %rax; je imported; pop %rax; ret

### a jump into a function with a frame
# refuse: P4-depth
# scheme: both
push %rax; jmp g; .globl g; g: ret

### different depths meet
# refuse: P4-depth
# scheme: both
test %edi, %edi; je 1f; push %rax; 1: ret

### reading the instruction pointer
# refuse: P4-frame
# scheme: both
call 1f; 1: pop %rax; ret

### a plain string copy
# refuse: P1-string-pointer
# scheme: both
rep; movsb; ret

### one plain element
# refuse: P1-string-pointer
# scheme: both
stosq; ret

### a stack address as string
# refuse: P1-string-pointer
# scheme: both
lea -8(%rsp), %rdi; stosb; ret

### a string behind a string
# refuse: P1-string-pointer
{T} mov %rax, %rdi; stosb; stosb; ret

### a string without count
# refuse: P1-string-count
{T} mov %rax, %rdi; rep; stosb; ret

### a string of a constant count
# refuse: P1-string-count
{T} mov %rax, %rdi; mov $1, %ecx; rep; stosb; ret

### a string in an unknown direction
# refuse: P1-string-direction
test %esi, %esi; je 1f; std; 1: {T} mov %rax, %rdi; stosb; cld; ret

### a string of 32-bit addresses
# refuse: P1-address-form
{T} mov %rax, %rdi; addr32 stosb; ret

### bytes counted as words
# refuse: P1-string-count
{R:and $0xfff, %r8d; xor $0x1fff, %r8d|stosq}

### words counted twice
# refuse: P1-string-count
{R:and $0xfff, %r8d; xor $0x1fff, %r8d; shr $2, %r8d|stosq}

### one page too many
# refuse: P1-string-count
{R:and $0xfff, %r8d; xor $0x3fff, %r8d|stosb}

### an offset of two pages
# refuse: P1-string-count
{R:and $0x1fff, %r8d; xor $0x1fff, %r8d|stosb}

### the count of the other direction
# refuse: P1-string-count
{R:and $0xfff, %r8d; inc %r8d|stosb}

### one more than is covered
# refuse: P1-string-count
{R:and $0xfff, %r8d; xor $0x1fff, %r8d; inc %r8d|stosb}

### the maximum for the minimum
# refuse: P1-string-count
{R:and $0xfff, %r8d; xor $0x1fff, %r8d; mov $-1, %rsi; cmp %rsi, %r8; cmovb %rsi, %r8|stosb}

### the minimum the wrong way round
# refuse: P1-string-count
{R:and $0xfff, %r8d; xor $0x1fff, %r8d; cmp %r8, %rsi; cmova %rsi, %r8|stosb}

### the minimum of another comparison
# refuse: P1-string-count
{R:and $0xfff, %r8d; xor $0x1fff, %r8d; cmp %rsi, %r8; test %rdx, %rdx; cmova %rsi, %r8|stosb}

### a pointer moved after it was counted
# refuse: P1-string-pointer
{R:and $0xfff, %r8d; xor $0x1fff, %r8d; add $8, %rax|stosb}

### the count of another pointer
# refuse: P1-string-count
{T} mov %rax, %rdi; mov %esi, %ecx; and $0xfff, %ecx; xor $0x1fff, %ecx; rep; stosb; ret

### one bound for two pointers
# refuse: P1-string-count
{B} mov %edi, %ecx; and $0xfff, %ecx; xor $0x1fff, %ecx; mov %rbx, %rdi; mov %rbp, %rsi; rep; movsb; ret
