### a kernel's code that says so
# refuse: object-contract
# from: issue 14.5
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 1, 0, 0
.text
.globl f
.type f, @function
f: wrmsr
mov %rdi, %cr0
ret

### a kernel's code that says nothing
# refuse: P3-instruction
# from: issue 14.5
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: wrmsr
mov %rdi, %cr0
ret

### good code that is for a kernel
# refuse: object-contract
# from: issue 14.5
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 1, 0, 0
.text
.globl f
.type f, @function
f: ret

### good code
# accept
# from: issue 14.5
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### the other scheme's code
# refuse: object-contract
# from: issue 14.5
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 0, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### the other scheme's code, the other way round
# refuse: object-contract
# scheme: paper
# from: issue 14.5
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a scheme that is none
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 99, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a scheme beyond all numbers
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 0xffffffff, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a target that is none
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 3, 0, 0
.text
.globl f
.type f, @function
f: ret

### a program (`process`)
# refuse: object-contract
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 2, 0, 0
.text
.globl f
.type f, @function
f: ret

### a target whose low byte is right
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0x100, 0, 0
.text
.globl f
.type f, @function
f: ret

### an older ABI
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long 1, 1, 64, 0
.text
.globl f
.type f, @function
f: ret

### an ABI of the future
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long 0x7fffffff, 1, 64, 0
.text
.globl f
.type f, @function
f: ret

### another word size
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 32, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### the other byte order
# refuse: object-foreign
# from: gABI chapter 4 (EI_DATA)
# whole
.section .note.twin, "a", @note
.byte 0,0,0,5, 0,0,0,16, 0,0,0,1
.asciz "twin"
.balign 4
.byte 0,0,0,{ABI}, 0,0,0,1, 0,0,0,64, 0,0,0,0
.text
.globl f
.type f, @function
f: ret

### no note
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.text
.globl f
.type f, @function
f: ret

### an empty note
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.text
.globl f
.type f, @function
f: ret

### a note that is cut off
# refuse: object-foreign
# from: gABI chapter 4 (note sections)
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64
.text
.globl f
.type f, @function
f: ret

### a note with a byte too many
# refuse: object-foreign
# from: gABI chapter 4 (note sections)
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.byte 0
.text
.globl f
.type f, @function
f: ret

### a note of another owner
# refuse: object-foreign
# from: gABI chapter 4 (note sections)
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twig"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a note whose owner goes on behind its end
# refuse: object-foreign
# from: gABI chapter 4 (note sections)
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.ascii "twin"
.long 0x2e
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a note of another type
# refuse: object-foreign
# from: gABI chapter 4 (note sections)
# whole
.section .note.twin, "a", @note
.long 5, 24, 2
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a note that says it is longer
# refuse: object-foreign
# from: gABI chapter 4 (note sections)
# whole
.section .note.twin, "a", @note
.long 5, 28, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a note whose owner's length wraps
# refuse: object-foreign
# from: gABI chapter 4 (note sections)
# whole
.section .note.twin, "a", @note
.long 0xfffffffd, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a note in a section of another type
# refuse: object-foreign
# from: gABI chapter 4 (SHT_NOTE)
# whole
.section .note.twin, "a", @progbits
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a note that can be written
# refuse: object-section
# from: gABI chapter 4 (SHF_WRITE)
# whole
.section .note.twin, "aw", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a note among others, by another name
# refuse: object-foreign
# from: gABI chapter 4 (note sections)
# whole
.section .note.other, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: ret

### a note with the demanded contract behind the claimed one
# refuse: object-foreign
# from: gABI chapter 4 (note sections)
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 1, 0, 0
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.text
.globl f
.type f, @function
f: wrmsr
mov %rdi, %cr0
ret

### a note with a relocation over its target
# refuse: P2-relocation
# from: gABI chapter 4
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 0
.reloc 32, R_X86_64_32, fixed
.set fixed, 1
.text
.globl f
.type f, @function
f: ret

### a note of an earlier length
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 20, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0
.text
.globl f
.type f, @function
f: ret

### processors that do not exist
# refuse: object-foreign
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 2
.text
.globl f
.type f, @function
f: ret

### processors that the scheme has no use for
# refuse: object-contract
# from: docs/spec/object.md, the note
# whole
.section .note.twin, "a", @note
.long 5, 24, 1
.asciz "twin"
.balign 4
.long {ABI}, 1, 64, 0, 0, 1
.text
.globl f
.type f, @function
f: ret
