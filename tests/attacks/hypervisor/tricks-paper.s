/* Tricks with the check of scheme paper. */

### a plain load
# refuse: P1-untranslated
# scheme: paper
mov (%rdi), %rax; ret

### a byte too far
# refuse: P1-window
# scheme: paper
{T} mov 4090(%rax), %rdx; ret

### a byte too far before
# refuse: P1-window
# scheme: paper
{T} mov -4097(%rax), %rdx; ret

### no comparison
# refuse: P5-table
# scheme: paper
{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|test %rcx, %rcx|jne}

### the opposite condition
# refuse: P5-table
# scheme: paper
{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|je}

### another condition
# refuse: P5-table
# scheme: paper
{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jb}

### the address compared, not its page
# refuse: P5-table
# scheme: paper
{P:and $-4096, %rcx|mov %rax, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}

### a bigger page
# refuse: P5-table
# scheme: paper
{P:and $-8192, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}

### a page of 32 bits
# refuse: P5-table
# scheme: paper
{P:and $-4096, %ecx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}

### half of a page compared
# refuse: P5-table
# scheme: paper
{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %edx|jne}

### another mask
# refuse: P5-table
# scheme: paper
{P:and $-4096, %rcx|mov %rcx, %rdx|and $0x1fff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}

### the translation compared
# refuse: P5-table
# scheme: paper
{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb+8(%rcx), %rdx|jne}

### an address changed after the check
# refuse: P5-table
# scheme: paper
{P:and $-4096, %rcx|mov %rcx, %rdx; lea 4096(%rax), %rax|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}

### another page's index
# refuse: P5-table
# scheme: paper
{P:and $-4096, %rcx|mov %rcx, %rdx; mov %rsi, %rcx; and $-4096, %rcx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}

### the other scheme's check
# refuse: P5-table
# scheme: paper
{S}

### two translations of one comparison
# refuse: P5-table
# scheme: paper
{T} mov %rdi, %rax; xor twin_stlb+8(%rcx), %rax; mov (%rax), %al; ret

### a translation on one path only
# refuse: P1-untranslated
# scheme: paper
mov %rsi, %rax; test %rsi, %rsi; je 1f; {T} 1: mov (%rax), %dl; ret

### behind the check
# refuse: P1-untranslated
# scheme: paper
mov %rsi, %rax; test %esi, %esi; jne .Lback1; {T} mov (%rax), %al; ret

### another way into the out-of-line part
# refuse: P2-out-of-line
# scheme: paper
mov %rdi, %rax; test %esi, %esi; jne .Lslow1; {T} mov (%rax), %al; ret

### the slow path for another address
# refuse: P2-out-of-line
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; jne 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret; 2: lea 1(%rdi), %rax; call twin_slow_rax; jmp 1b

### an instruction between the branch and the translation
# refuse: P2-out-of-line
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; jne 2f; nop; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret; 2: call twin_slow_rax; jmp 1b

### flags of one check for another's branch
# refuse: P5-table
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; test %rdx, %rdx; jne 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret; 2: call twin_slow_rax; jmp 1b

### a call between the comparison and the branch
# refuse: P5-table
# scheme: paper
push %rbx; lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; call imported; jne 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; pop %rbx; ret; 2: call twin_slow_rax; jmp 1b

### the index written between the comparison and the translation
# refuse: P5-table
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; mov %rsi, %rcx; jne 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret; 2: call twin_slow_rax; jmp 1b

### the address exchanged between the comparison and the translation
# refuse: P5-table
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; xchg %rax, %rsi; jne 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret; 2: call twin_slow_rax; jmp 1b

### a byte of the address written between them, after its page was taken
# refuse: P5-table
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; mov $0, %ah; cmp twin_stlb(%rcx), %rdx; jne 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret; 2: call twin_slow_rax; jmp 1b

### the comparison of another address whose slow path takes the entry in between
# refuse: P5-table
# scheme: paper
mov %rdi, %rax; mov %rdi, %rcx; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; {V:%rsi, %r8, %r9, %r10} jne 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret; 2: call twin_slow_rax; jmp 1b

### the translation of the page, not of the address
# refuse: P5-table
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; jne 2f; xor twin_stlb+8(%rcx), %rdx; 1: mov 4095(%rdx), %al; ret; 2: call twin_slow_rdx; jmp 1b

### the translation of 32 bits
# refuse: P5-table
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; jne 2f; xor twin_stlb+8(%rcx), %eax; 1: mov (%rax), %al; ret; 2: call twin_slow_rax; jmp 1b

### the translation added
# refuse: P5-table
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; jne 2f; add twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret; 2: call twin_slow_rax; jmp 1b

### the comparison with the operands in the other order
# refuse: P5-table
# scheme: paper
{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp %rdx, twin_stlb(%rcx)|jne}

### the index of an unsigned shift of 32 bits
# refuse: P5-table
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; sar $8, %rcx; cmp twin_stlb(%rcx), %rdx; jne 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret; 2: call twin_slow_rax; jmp 1b

### a loop whose next round takes the last round's comparison
# refuse: P5-table
# scheme: paper
lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; 3: jne 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %sil; mov %rdi, %rax; jmp 3b; 2: call twin_slow_rax; jmp 1b
