### good code
# accept
# from: contract
# whole
{NOTE}
.text
.globl f
.type f, @function
f: mov %gs:8(%edi), %eax; ret

### code that says it has a table
# refuse: object-contract
# from: issue 14.5
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: mov %gs:8(%edi), %eax; ret

### code that says it is the paper's
# refuse: object-contract
# from: issue 14.5
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 0, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: mov %gs:8(%edi), %eax; ret

### code for a stock kernel
# refuse: object-contract
# from: issue 14.5
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 2, 64, 1, 0, 0
.text
.globl f
.type f, @function
f: mov %gs:8(%edi), %eax; ret

### code for a program
# refuse: object-contract
# from: issue 14.5
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 2, 64, 2, 0, 0
.text
.globl f
.type f, @function
f: mov %gs:8(%edi), %eax; ret

### a scheme that does not exist
# refuse: object-foreign
# from: docs/spec/object.md
# whole
.section .note.twin, "", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 9, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### good code where a table is demanded
# refuse: object-contract
# from: issue 14.5
# scheme: both
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

### a window's start of the object's own
# refuse: object-symbol
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: movabs $twin_window, %rax; ret
.globl twin_window
twin_window: ret

### a window's start of the object's own, local
# refuse: P2-relocation
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: movabs $twin_window, %rax; ret
.type twin_window, @function
twin_window: ret

### a window's start that is absolute
# refuse: object-symbol
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: movabs $twin_window, %rax; ret
.globl twin_window
.set twin_window, 0x1000

### a window in the object
# refuse: object-section
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .window, "aw", @nobits
.zero 4096

### writable code
# refuse: object-section
# from: docs/spec/object.md
# whole
{NOTE}
.text
.globl f
.type f, @function
f: ret
.section .text.w, "awx", @progbits
ret
