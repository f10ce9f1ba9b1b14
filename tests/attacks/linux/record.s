/* The kernel's record of the module, struct module, which the module brings. */

### the record of a module as modpost makes it
# accept
# from: Linux 6.1 scripts/mod/modpost.c, add_header
ret
.globl init_module
.type init_module,@function
init_module: ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 0x138
.quad init_module
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a size that the kernel counts on from
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, layout_sections: adds to core_layout.size, with 32 bits
ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 0x148
.long 0xfffff000
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a record that ends in the runtime's table
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, setup_load_info: does not compare its size
ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
.skip 24
.asciz "x"
.balign 64
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a name that is longer than its field
# refuse: P2-metadata
# from: Linux 6.1 include/linux/module.h, MODULE_NAME_LEN
ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.fill 57, 1, 'x'
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### an address in another of its fields
# refuse: P2-metadata
# from: Linux 6.1 include/linux/module.h: trace_events, bpf_raw_events, ei_funcs and others
ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 0x200
.quad d
.org 1b + 0x380
.data
d: .quad 0
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a record that is not in the file
# refuse: P2-metadata
# from: gABI chapter 4, SHT_NOBITS
ret
.section .gnu.linkonce.this_module,"aw",@nobits
.balign 64
.skip 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text
