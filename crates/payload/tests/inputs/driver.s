# Code as `twin rewrite --scheme window` makes it, by hand: one reference of each kind.
        .section .note.twin,"",@note
        .long   5, 24, 1
        .asciz  "twin"
        .balign 4
        .long   ABI, 3, 64, 0, 0, 1

        .text
        .globl  probe
        .type   probe,@function
probe:  pext    twin_window_mask(%rip), %rdi, %rax
        mov     %gs:8(%rax), %eax
        mov     %gs:"twin_vm:jiffies", %rcx
        movabs  $"twin_vm:.data"+16, %rdx
        movq    $"twin_vm:.rodata", %rsi
        push    %rbx
        call    kfree
        call    memcpy
        call    netif_wake
        call    helper.cold
        mov     %rbx, %r11
        call    twin_stlb_call
        pop     %rbx
        ret
        .size   probe, . - probe

        .globl  poll
        .type   poll,@function
poll:   pext    twin_window_mask(%rip), %rdi, %rdi
        movabs  $twin_window, %rcx
        lea     (%rdi,%rcx), %rdi
        xor     %eax, %eax
        cld
        stosb
        movabs  $twin_stack_view, %rax
        ret
        .size   poll, . - poll

        .section .text.unlikely,"ax",@progbits
        .globl  helper.cold
        .type   helper.cold,@function
helper.cold:
        ret
        .size   helper.cold, . - helper.cold

        .section .init.text,"ax",@progbits
        .globl  init_module
        .type   init_module,@function
init_module:
        call    only_at_start
        ret
        .size   init_module, . - init_module

        .section .twin.codemap,"a",@progbits
        .quad   "twin_vm:.text"+0x100, probe
        .quad   "twin_vm:.text"+0x200, poll
        .quad   "twin_vm:.init.text"+0x10, init_module
        .section .note.GNU-stack,"",@progbits
