### a loop that reads by the translation of the last round
# refuse: P1-untranslated
# from: contract, names
1: mov (%rax), %bl
{T:(%rdi)}
add $64, %rdi
dec %rsi
jne 1b
ret

### a loop that translates anew each time
# accept
# from: contract, names
# scheme: both
1: {T:(%rdi)}
mov (%rax), %bl
add $64, %rdi
dec %rsi
jne 1b
ret

### the index of one address and the tag of another
# refuse: P5-table
# from: contract P5
lea (%rdi), %rax
lea (%rsi), %rdx
mov %edx, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
ret

### the index of an address that has since changed
# refuse: P5-table
# from: contract, names
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
lea 0x1000(%rdi), %rax
sub twin_stlb(%rcx), %rax
ret

### the index of the same instruction's last value
# refuse: P5-table
# from: contract, names
xor %ecx, %ecx
1: lea (%rdi,%rsi), %rax
sub twin_stlb(%rcx), %rax
lea (%rdi,%rsi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
add $8, %rsi
jmp 1b

### an index exchanged for its address
# refuse: P5-table
# from: SDM vol. 2, XCHG
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
xchg %rax, %rcx
sub twin_stlb(%rax), %rcx
ret

### a byte of the index set by a condition
# refuse: P5-table
# from: SDM vol. 2, SETcc
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sete %cl
sub twin_stlb(%rcx), %rax
ret

### the second byte of the index
# refuse: P5-table
# from: SDM vol. 1, 3.4.1.1
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
mov %bl, %ch
sub twin_stlb(%rcx), %rax
ret

### the low word of the index, which leaves the rest
# refuse: P5-table
# from: SDM vol. 1, 3.4.1.1
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
mov %bx, %cx
sub twin_stlb(%rcx), %rax
ret

### the index doubled
# refuse: P5-table
# from: SDM vol. 2, ADD
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
add %ecx, %ecx
sub twin_stlb(%rcx), %rax
ret

### an index shifted by cl
# refuse: P5-table
# from: SDM vol. 2, SHR
lea (%rdi), %rax
mov %eax, %edx
mov $8, %cl
shr %cl, %edx
and $0xfff0, %edx
sub twin_stlb(%rdx), %rax
ret

### an index shifted by more than a register has bits
# refuse: P5-table
# from: SDM vol. 2, SHR (the count is taken modulo 32)
lea (%rdi), %rax
mov %eax, %ecx
shr $40, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
ret

### an index shifted with its sign
# refuse: P5-table
# from: SDM vol. 2, SAR
lea (%rdi), %rax
mov %eax, %ecx
sar $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
ret

### an index masked in 16 bits
# refuse: P5-table
# from: SDM vol. 1, 3.4.1.1
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %cx
sub twin_stlb(%rcx), %rax
ret

### an index masked with a sign, in 64 bits
# refuse: P5-table
# from: SDM vol. 2, AND (imm32 is extended)
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $-16, %rcx
sub twin_stlb(%rcx), %rax
ret

### flags that lahf saved before another comparison
# refuse: P5-table
# from: SDM vol. 2, SAHF
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
mov %rax, %rdx
sahf
mov %rdx, %rax
ja 1f
add twin_stlb+8(%rcx), %rax
1: ret

### flags that an increment kept in part
# refuse: P5-table
# from: SDM vol. 2, INC (CF is not affected)
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
inc %esi
ja 1f
add twin_stlb+8(%rcx), %rax
1: ret

### flags that a shift by nothing may keep
# refuse: P5-table
# from: SDM vol. 2, SHL (a count of 0 affects no flag)
lea (%rdi), %rax
mov %eax, %edx
shr $8, %edx
and $0xfff0, %edx
sub twin_stlb(%rdx), %rax
cmp $0xfff, %rax
shl %cl, %esi
ja 1f
add twin_stlb+8(%rdx), %rax
1: ret

### flags that a string comparison of no elements keeps
# refuse: P5-table
# from: SDM vol. 2, CMPS
lea (%rdi), %rax
mov %eax, %edx
shr $8, %edx
and $0xfff0, %edx
sub twin_stlb(%rdx), %rax
cmp $0xfff, %rax
repe cmpsb
ja 1f
add twin_stlb+8(%rdx), %rax
1: ret

### the offset changed between its comparison and the branch
# refuse: P5-table
# from: SDM vol. 2, LEA (no flag is affected)
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
lea 0x1000(%rax), %rax
ja 1f
add twin_stlb+8(%rcx), %rax
1: ret

### the offset inverted between its comparison and the branch
# refuse: P5-table
# from: SDM vol. 2, NOT (no flag is affected)
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
not %rax
ja 1f
add twin_stlb+8(%rcx), %rax
1: ret

### the offset exchanged between its comparison and the branch
# refuse: P5-table
# from: SDM vol. 2, XCHG (no flag is affected)
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
xchg %rsi, %rax
ja 1f
add twin_stlb+8(%rcx), %rax
1: ret

### the offset moved by bmi2 between its comparison and the branch
# refuse: P5-table
# from: SDM vol. 2, RORX (no flag is affected)
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
rorx $52, %rax, %rax
ja 1f
add twin_stlb+8(%rcx), %rax
1: ret

### a comparison with the window's size, not its last byte
# refuse: P5-table
# from: contract P1
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0x1000, %rax
ja 1f
add twin_stlb+8(%rcx), %rax
1: ret

### a branch that is taken at the bound and above
# refuse: P5-table
# from: SDM vol. 2, Jcc
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
jae 1f
add twin_stlb+8(%rcx), %rax
1: ret

### a signed branch
# refuse: P5-table
# from: SDM vol. 2, Jcc
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
jg 1f
add twin_stlb+8(%rcx), %rax
1: ret

### a translation that a compare and exchange replaced
# refuse: P1-untranslated
# from: SDM vol. 2, CMPXCHG (the accumulator is written)
{T:(%rdi)}
mov %rax, %rbx
lock cmpxchg %rcx, (%rbx)
mov (%rax), %dl
ret

### the registers that a wider one replaced
# refuse: P1-untranslated
# from: SDM vol. 2, CMPXCHG16B (rdx:rax)
{T:(%rdi)}
mov %rax, %rdx
cmpxchg16b (%rax)
mov (%rdx), %cl
ret

### a translation divided
# refuse: P1-untranslated
# from: SDM vol. 2, DIV (rax and rdx are written)
{T:(%rdi)}
mov %rax, %rdx
mul %rsi
mov (%rdx), %cl
ret

### a translation that a sign extension replaced
# refuse: P1-untranslated
# from: SDM vol. 2, CWD/CDQ/CQO
{T:(%rdi)}
mov %rax, %rdx
cqo
mov (%rdx), %cl
ret

### a translation that the clock replaced
# refuse: P1-untranslated
# from: SDM vol. 2, RDTSCP (rax, rcx, rdx)
{T:(%rdi)}
mov %rax, %rdx
rdtscp
mov (%rdx), %cl
ret

### a translation in rcx, which a loop counts down
# refuse: P1-untranslated
# from: SDM vol. 2, LOOP
{T:(%rdi)}
mov %rax, %rcx
1: mov (%rcx), %dl
loop 1b
ret

### a translation in rcx, which a string instruction of vectors gives
# refuse: P1-untranslated
# from: SDM vol. 2, PCMPESTRI
{T:(%rdi)}
mov %rax, %rcx
pcmpestri $0, %xmm1, %xmm2
mov (%rcx), %dl
ret

### a translation that flags were loaded over
# refuse: P1-untranslated
# from: SDM vol. 2, LAHF (ah)
{T:(%rdi)}
lahf
mov (%rax), %dl
ret

### a translation that a bit was set in
# refuse: P1-untranslated
# from: SDM vol. 2, BTS
{T:(%rdi)}
bts $40, %rax
mov (%rax), %dl
ret

### a translation that was byte-swapped twice
# refuse: P1-untranslated
# from: SDM vol. 2, BSWAP
{T:(%rdi)}
bswap %rax
bswap %rax
mov (%rax), %dl
ret

### a translation that a random number replaced
# refuse: P1-untranslated
# from: SDM vol. 2, RDRAND
{T:(%rdi)}
rdrand %rax
mov (%rax), %dl
ret

### a translation extracted from a vector
# refuse: P1-untranslated
# from: SDM vol. 2, MOVQ
{T:(%rdi)}
movq %rax, %xmm0
movq %xmm0, %rbx
mov (%rbx), %dl
ret

### a translation put away in the frame
# refuse: P1-untranslated
# from: contract (words of the frame are not followed)
{T:(%rdi)}
mov %rax, -8(%rsp)
mov -8(%rsp), %rbx
mov (%rbx), %dl
ret

### a translation exchanged with the frame
# refuse: P1-untranslated
# from: SDM vol. 2, XCHG
{T:(%rdi)}
xchg %rax, -8(%rsp)
mov (%rax), %dl
ret

### a translation loaded by a move that may not happen
# refuse: P1-untranslated
# from: SDM vol. 2, CMOVcc
{T:(%rdi)}
cmovae %rsi, %rax
mov (%rax), %dl
ret

### two translations of which a condition chooses
# refuse: P1-untranslated
# from: SDM vol. 2, CMOVcc (not followed)
{T:(%rdi)}
mov %rax, %rbx
{T:(%rsi)}
cmove %rbx, %rax
mov (%rax), %dl
ret

### a translation of either of two addresses
# accept
# from: contract, joins
# scheme: both
test %esi, %esi
je 1f
{T:(%rdi)}
jmp 2f
1: {T:(%rsi)}
2: mov (%rax), %dl
ret

### a translation on one path, an address on the other
# refuse: P1-untranslated
# from: contract, joins
# scheme: both
mov %rdi, %rax
test %esi, %esi
je 1f
{T:(%rdi)}
1: mov (%rax), %dl
ret

### a translation on one path, an index on the other
# refuse: P1-untranslated
# from: contract, joins
test %esi, %esi
je 1f
{T:(%rdi)}
jmp 2f
1: mov %rdi, %rdx
mov %edx, %eax
shr $8, %eax
and $0xfff0, %eax
2: mov (%rax), %dl
ret

### a frame address on one path, a translation on the other
# refuse: P1-untranslated
# from: contract, joins
sub $16, %rsp
mov %rsp, %rax
test %esi, %esi
je 1f
{T:(%rdi)}
1: mov %dl, (%rax)
add $16, %rsp
ret

### a translation moved on and back
# refuse: P1-untranslated
# from: contract P1
{T:(%rdi)}
add $8, %rax
sub $8, %rax
mov (%rax), %dl
ret

### a translation copied
# accept
# from: contract P1
{T:(%rdi)}
mov %rax, %rbx
mov (%rbx), %dl
ret

### a translation copied in 32 bits
# refuse: P1-untranslated
# from: SDM vol. 1, 3.4.1.1
{T:(%rdi)}
mov %eax, %ebx
mov (%rbx), %dl
ret

### a translation exchanged with itself in 32 bits
# refuse: P1-untranslated
# from: SDM vol. 2, XCHG (87 c0 clears the upper half)
{T:(%rdi)}
.byte 0x87, 0xc0
mov (%rax), %dl
ret

### a nop that exchanges with itself and keeps it
# accept
# from: SDM vol. 2, NOP (90)
{T:(%rdi)}
nop
mov (%rax), %dl
ret

### a tag that another address's page was compared with
# refuse: P5-table
# scheme: paper
# from: paper, figure 4
lea (%rdi), %rcx
mov %rcx, %rax
and $-4096, %rcx
lea (%rsi), %rdx
and $-4096, %rdx
and $0xfff000, %rcx
shr $8, %rcx
cmp twin_stlb(%rcx), %rdx
ret

### a translation by an entry that was compared for another address
# refuse: P5-table
# scheme: paper
# from: paper, figure 4
{T:(%rdi)}
mov %rsi, %rbx
xor twin_stlb+8(%rcx), %rbx
mov (%rbx), %dl
ret

### an entry used twice for one comparison
# refuse: P5-table
# scheme: paper
# from: paper, figure 4
{T:(%rdi)}
xor twin_stlb+8(%rcx), %rax
mov (%rax), %dl
ret

### a branch that is taken if the tag is the same
# refuse: P5-table
# scheme: paper
# from: SDM vol. 2, Jcc
lea (%rdi), %rcx
mov %rcx, %rax
and $-4096, %rcx
mov %rcx, %rdx
and $0xfff000, %rcx
shr $8, %rcx
cmp twin_stlb(%rcx), %rdx
je 1f
xor twin_stlb+8(%rcx), %rax
1: ret

### half of a tag compared
# refuse: P5-table
# scheme: paper
# from: SDM vol. 2, CMP
lea (%rdi), %rcx
mov %rcx, %rax
and $-4096, %rcx
mov %rcx, %rdx
and $0xfff000, %rcx
shr $8, %rcx
cmp twin_stlb(%rcx), %edx
jne 1f
xor twin_stlb+8(%rcx), %rax
1: ret

### a page masked in 32 bits
# refuse: P5-table
# scheme: paper
# from: SDM vol. 2, AND
lea (%rdi), %rcx
mov %rcx, %rax
and $-4096, %ecx
mov %rcx, %rdx
and $0xfff000, %rcx
shr $8, %rcx
cmp twin_stlb(%rcx), %rdx
jne 1f
xor twin_stlb+8(%rcx), %rax
1: ret

### a base changed between an address and its slow path
# refuse: P2-out-of-line
# from: docs/spec/sequences.md
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
mov %rsi, %rdi
ja 2f
add twin_stlb+8(%rcx), %rax
1: mov (%rax), %dl
ret
2: lea (%rdi), %rax
call twin_slow_rax
jmp 1b

### an out-of-line part that keeps another address
# refuse: P2-out-of-line
# from: docs/spec/sequences.md
lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 2f
add twin_stlb+8(%rcx), %rax
1: mov (%rax), %dl
ret
2: mov %rdi, %rax
call twin_slow_rax
jmp 1b

### an out-of-line part that comes back to the check's start
# refuse: P2-out-of-line
# from: docs/spec/sequences.md
1: lea (%rdi), %rax
mov %eax, %ecx
shr $8, %ecx
and $0xfff0, %ecx
sub twin_stlb(%rcx), %rax
cmp $0xfff, %rax
ja 2f
add twin_stlb+8(%rcx), %rax
mov (%rax), %dl
ret
2: lea (%rdi), %rax
call twin_slow_rax
jmp 1b
