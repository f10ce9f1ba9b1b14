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

### both routines of a module
# accept
# from: control
ret
.globl init_module, cleanup_module
.type init_module,@function
init_module: ret
.type cleanup_module,@function
cleanup_module: ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 0x138
.quad init_module
.org 1b + 0x340
.quad cleanup_module
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### the address of a routine in another of its fields as well
# refuse: P2-metadata
# from: Linux 6.1 kernel/trace/trace_events.c, trace_module_add_events: trace_events, and their number
ret
.globl init_module, cleanup_module
.type init_module,@function
init_module: ret
.type cleanup_module,@function
cleanup_module: ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 0x138
.quad init_module
.org 1b + 0x200
.quad init_module
.quad init_module
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### the address of a routine over the name
# refuse: P2-metadata
# from: Linux 6.1 include/linux/module.h: the name is 56 bytes from 24 on
ret
.globl init_module, cleanup_module
.type init_module,@function
init_module: ret
.type cleanup_module,@function
cleanup_module: ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 40
.quad init_module
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a name without an end
# refuse: P2-metadata
# from: ibid.: what is behind the name is read as a part of it
ret
.globl init_module, cleanup_module
.type init_module,@function
init_module: ret
.type cleanup_module,@function
cleanup_module: ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.fill 56, 1, 'x'
.org 1b + 0x138
.quad init_module
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### the longest name
# accept
# from: control
ret
.globl init_module, cleanup_module
.type init_module,@function
init_module: ret
.type cleanup_module,@function
cleanup_module: ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.fill 55, 1, 'x'
.org 1b + 0x138
.quad init_module
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a record that the kernel cannot write
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, complete_formation: what has no SHF_WRITE is read-only before the state is written
ret
.globl init_module, cleanup_module
.type init_module,@function
init_module: ret
.type cleanup_module,@function
cleanup_module: ret
.section .gnu.linkonce.this_module,"a"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 0x138
.quad init_module
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a module that is begun in per-CPU data, whose address is a small number
# refuse: P2-metadata
# from: Linux 6.1 kernel/module/main.c, simplify_symbols, do_init_module: calls it, in the memory of the process
ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 0x138
.quad init_module
.org 1b + 0x380
.section .data..percpu,"aw"
.globl init_module
init_module: .quad 0
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a module that is begun in its data
# refuse: P2-metadata
# from: ibid.
ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
1: .skip 24
.asciz "x"
.org 1b + 0x138
.quad init_module
.org 1b + 0x380
.data
.globl init_module
init_module: .quad 0
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a module whose beginning is another one's
# refuse: P2-metadata
# from: ibid.
ret
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

### a record at any address, where nodes of trees have flags in the low bits
# refuse: P2-metadata
# from: Linux 6.1 include/linux/module.h, mod_tree_node; include/linux/rbtree.h, rb_parent
ret
.section .gnu.linkonce.this_module,"aw"
1: .skip 24
.asciz "x"
.org 1b + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### the key of a static branch in the record, over which the kernel writes an address
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module: before static_call_add_module reads the record
1: .byte 0x0f, 0x1f, 0x44, 0, 0
2: ret
.section __jump_table,"aw"
.balign 8
.long 1b-., 2b-.
.quad record+0x200-.
.section .gnu.linkonce.this_module,"aw"
.balign 64
record: .skip 24
.asciz "x"
.org record + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### the key of a static call there
# refuse: P2-metadata
# from: Linux 6.1 kernel/static_call_inline.c, __static_call_init: writes key->sites
sub $8, %rsp
1: call __SCT__x
add $8, %rsp
ret
.section .static_call_sites,"aw"
.balign 8
.long 1b-., record+0x200-.
.section .gnu.linkonce.this_module,"aw"
.balign 64
record: .skip 24
.asciz "x"
.org record + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### tags of allocations there, in which the kernel writes addresses of counters
# refuse: P2-metadata
# from: Linux 6.15 lib/alloc_tag.c, load_module
ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
record: .skip 24
.asciz "x"
.org record + 0x200
.globl __start_alloc_tags, __stop_alloc_tags
__start_alloc_tags: .skip 40
__stop_alloc_tags:
.org record + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.15.0-1-amd64 SMP preempt mod_unload modversions "
.text

### a store over where the record says that the table of static branches is
# refuse: P1-address-form
# from: Linux 6.1 include/linux/module.h, jump_entries; kernel/jump_label.c, __jump_label_mod_update
mov %rdi, record+0x200(%rip)
ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
record: .skip 24
.asciz "x"
.org record + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### an export of a place in the record, which another module may name as a key
# refuse: P2-metadata
# from: Linux 6.1 kernel/jump_label.c, jump_label_add_module: static_key_set_mod
ret
.section __ksymtab,"a"
.balign 4
.long record + 0x200 - ., 1f - ., 0
.section __ksymtab_strings,"a"
1: .asciz "key"
.section .gnu.linkonce.this_module,"aw"
.balign 64
record: .skip 24
.asciz "x"
.org record + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text

### a load from the record, and its address
# accept
# from: Linux 6.1 drivers/block/drbd/drbd_main.c: THIS_MODULE->version; sysfs gets &THIS_MODULE->mkobj
mov record+0x200(%rip), %rax
lea record+0x80(%rip), %rdi
ret
.section .gnu.linkonce.this_module,"aw"
.balign 64
record: .skip 24
.asciz "x"
.org record + 0x380
.section .modinfo,"a"
.asciz "vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions "
.text
