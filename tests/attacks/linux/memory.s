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
