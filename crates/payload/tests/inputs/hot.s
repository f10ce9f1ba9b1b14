# The hot routines: one that the driver imports, one that the runtime enters.
        .section .note.twin,"",@note
        .long   5, 24, 1
        .asciz  "twin"
        .balign 4
        .long   ABI, 3, 64, 0, 0, 1

        .text
        .globl  netif_wake
        .type   netif_wake,@function
netif_wake:
        mov     %gs:"twin_vm:hot_state", %rax
        call    kfree
        call    host_receive
        ret
        .size   netif_wake, . - netif_wake
        .globl  hot_poll
        .type   hot_poll,@function
hot_poll:
        mov     %gs:"twin_vm:.data", %rax
        ret
        .size   hot_poll, . - hot_poll
        .section .twin.codemap,"a",@progbits
        .quad   "twin_vm:.text"+0x20, hot_poll
        .section .note.GNU-stack,"",@progbits
