### a plain load
# refuse: P1-untranslated
# scheme: both
# from: contract P1
mov (%rdi), %rax
ret

### the same, translated
# accept
# scheme: both
# from: contract P1
{T:(%rdi)}
mov (%rax), %rax
ret

### the last byte of a window and one more
# refuse: P1-window
# scheme: both
# from: contract P1
{T:(%rdi)}
mov 4090(%rax), %rax
ret

### the last bytes of a window
# accept
# scheme: both
# from: contract P1
{T:(%rdi)}
mov 4089(%rax), %rax
ret
