# A runtime as small as it can be: the entries that code names, one hook, one function of
# Xen's that is replaced, one use of each kind of name that the builder gives.
        .globl  twin_window, twin_stack_view
        .set    twin_window, 0xffff838000000000
        .set    twin_stack_view, 0x48400000000

        .section .rodata,"a",@progbits
        .balign 8
        .globl  twin_window_mask
twin_window_mask:
        .quad   0x3ffffffffff
name:   .asciz  "evtchn_send"

        .section .rodata.bounds,"a",@progbits
        .globl  twin_lowest, twin_highest
twin_lowest:
        .quad   0xffff880000000000
twin_highest:
        .quad   0xffffffffffffefff

        .text
        .globl  twin_stlb_call, twin_import_entry, twin_call_out, twin_warn, twin_bug, twin_wild
        .type   twin_stlb_call,@function
twin_stlb_call:
twin_import_entry:
twin_call_out:
twin_warn:
twin_bug:
twin_wild:
        ret
        .globl  twin_import_host_receive
        .type   twin_import_host_receive,@function
twin_import_host_receive:
        ret
        .size   twin_import_host_receive, . - twin_import_host_receive

        .type   load,@function
load:   lea     twin_payload_codemap(%rip), %rdi
        mov     twin_payload_codemap_count(%rip), %rsi
        lea     twin_payload_text(%rip), %rdi
        lea     twin_payload_imports(%rip), %rdi
        mov     twin_payload_scheme(%rip), %eax
        mov     twin_payload_build_id(%rip), %eax
        mov     twin_value_domain_refcnt(%rip), %rax
        mov     twin_dom0_jiffies(%rip), %rax
        call    twin_function_hot_poll
        call    printk
        call    acquire_grant
        ret
        .size   load, . - load

        .type   send,@function
send:   jmp     twin_original_evtchn_send
        .size   send, . - send

        .section .livepatch.hooks.load,"a",@progbits
        .quad   load
        .section .twin.replace,"aw",@progbits
        .quad   name, send
        .bss
        .skip   4096
        .section .note.GNU-stack,"",@progbits
