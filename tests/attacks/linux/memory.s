### a plain load
# refuse: P1-untranslated
# from: contract P1 of a module for a stock kernel
mov (%rdi), %rax
ret

### the same, translated
# accept
# from: contract P1 of a module for a stock kernel
{T:(%rdi)}
mov (%rax), %rax
ret

### the checksums of symbols, in newer kernels
# refuse: P1-address-form
# from: Linux 6.14 kernel/module/main.c, rewrite_section_headers
mov v(%rip), %eax
ret
.section __version_ext_crcs,"a"
v: .long 0
.text
