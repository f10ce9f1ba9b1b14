### a bound in a scheme with a table
# refuse: object-symbol
# scheme: both
# from: docs/spec/object.md: the checks refuse wild pointers themselves
cmp twin_lowest(%rip), %rdi
ret

### the abort of a wild pointer in a scheme with a table
# refuse: object-symbol
# scheme: both
# from: docs/spec/object.md
push %rdi
call twin_wild
ud2
