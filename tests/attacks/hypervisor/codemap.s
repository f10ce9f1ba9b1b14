### one entry
# accept
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f

### two entries, ascending
# accept
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f, g
.type f, @function
.type g, @function
f: ret
g: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f, "twin_vm:.text" + 1, g

### two entries, descending
# refuse: P2-codemap
# from: runtime/core/call.c (bisection)
# whole
{NOTE}
.text
.globl f, g
.type f, @function
.type g, @function
f: ret
g: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text" + 1, g, "twin_vm:.text", f

### one address with two entries
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f, g
.type f, @function
.type g, @function
f: ret
g: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f, "twin_vm:.text", g

### one address with the same entry twice
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f, g
.type f, @function
.type g, @function
f: ret
g: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f, "twin_vm:.text", f

### one entry for two addresses
# accept
# from: aliases of C functions
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f, "twin_vm:.text" + 16, f

### an entry spelt by its section
# accept
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", .text

### an entry spelt by another function
# accept
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f, g
.type f, @function
.type g, @function
f: ret
g: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f + 1

### sections out of order
# refuse: P2-codemap
# from: runtime/core/call.c (bisection)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "ax", @progbits
.type g, @function
g: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text.b", f, "twin_vm:.text", f

### sections in order
# accept
# from: runtime/core/call.c (bisection)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.b, "ax", @progbits
.type g, @function
g: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text" + 7, f, "twin_vm:.text.b", g

### an address before its section, which is another's end
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text" - 1, f

### an address beyond any section
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text" + 0x100000000, f

### an address in a section that the object does not have
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text.other", f

### an address in dom0's data
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.data", f

### an address by a function's name, a second spelling
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:f", f

### an address of dom0's kernel, whose calls would come here
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:commit_creds", f

### an address of dom0's kernel, by a section of the same name
# refuse: object-section
# from: docs/spec/object.md (twin_vm:NAME is a section, or else a symbol)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section commit_creds, "ax", @progbits
.type g, @function
g: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:commit_creds", g

### an address of a section whose name is code's
# accept
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.commit_creds, "ax", @progbits
.type g, @function
g: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text.commit_creds", g

### an address that is no symbol's
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad 0x1000, f

### an own address for dom0's
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad f, f

### an entry in dom0
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", "twin_vm:.text"

### an entry at an imported routine
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", imported

### an entry at the runtime
# refuse: P2-codemap
# from: contract P5
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", twin_slow_rax

### an entry at the table
# refuse: P2-codemap
# from: contract P5
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", twin_stlb

### an entry inside an instruction
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: xor %eax, %eax
ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f + 1

### an entry in the middle of a frame
# refuse: P4-frame
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: push %rbx
pop %rbx
ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f + 1

### an entry in an out-of-line part
# refuse: P2-out-of-line
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f:
{T:(%rdi)}
mov (%rax), %rax
ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", .Lslow1

### an entry behind a check
# refuse: P1-untranslated
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f:
{T:(%rdi)}
mov (%rax), %rax
ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", .Lback1

### an entry where the section ends
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f + 1

### an entry at a weak function, which may become another
# refuse: P2-codemap
# from: gABI chapter 4 (STB_WEAK)
# whole
{NOTE}
.text
.globl f
.weak g
.type f, @function
f: ret
g: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", g

### an entry in the codemap itself
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
1: .quad "twin_vm:.text", 1b

### half an entry
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text"

### a row and a half
# refuse: P2-codemap
# from: contract P2 (an address has one entry)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f, "twin_vm:.text" + 1

### a row of words of 4 bytes
# refuse: P2-codemap
# from: psABI table 4.9
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.long "twin_vm:.text", 0, f, 0

### a distance for an address
# refuse: P2-codemap
# from: psABI table 4.9 (R_X86_64_PC64)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f - .

### a row that begins in the middle of a word
# refuse: P2-codemap
# from: gABI chapter 4 (r_offset)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.zero 4
.quad "twin_vm:.text", f
.zero 12

### a row with something under its relocation
# refuse: P2-codemap
# from: gABI chapter 4 (an addend that is not there)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
1: .quad 1, 0
.reloc 1b, R_X86_64_64, "twin_vm:.text"
.reloc 1b + 8, R_X86_64_64, f

### two relocations on one word
# refuse: P2-codemap
# from: gABI chapter 4 (composed relocations)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
1: .quad "twin_vm:.text", f
.quad 0, 0
.reloc 1b + 8, R_X86_64_64, f
.reloc 1b, R_X86_64_64, "twin_vm:.text"

### a codemap that can be written
# refuse: object-section
# from: contract P5
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @progbits
.quad "twin_vm:.text", f
.section .twin.codemap2, "aw", @progbits
.quad f

### a codemap that is not loaded
# refuse: object-section
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "", @progbits
.quad "twin_vm:.text", f

### a codemap that is code
# refuse: object-section
# from: contract P2
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "ax", @progbits
.quad "twin_vm:.text", f

### a codemap without bytes
# refuse: object-section
# from: gABI chapter 4 (SHT_NOBITS)
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .twin.codemap, "a", @nobits
.skip 16
