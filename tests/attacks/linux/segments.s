### a translated string, per CPU
# refuse: P1-address-form
# from: SDM vol. 2, LODS: %gs may stand before it
{T:(%rsi)}
mov %rax, %rsi
gs lodsb
ret

### a translated string stored, per CPU for what it reads
# refuse: P1-address-form
# from: SDM vol. 2, MOVS
{T:(%rsi)}
mov %rax, %rsi
mov %rax, %rdi
gs movsb
ret

### a translated string to a port, per CPU
# refuse: P1-address-form
# from: SDM vol. 2, OUTS
{T:(%rsi)}
mov %rax, %rsi
gs outsb
ret

### a per-CPU call
# refuse: P1-address-form
# from: SDM vol. 2, 2.1.1: the prefix means nothing there
.byte 0x65
call g
ret

### a translated string
# accept
{T:(%rsi)}
mov %rax, %rsi
lodsb
ret

### user memory by fs through a translation
# refuse: P1-address-form
# from: SDM vol. 1, 3.3.7
{T:(%rdi)}
mov %fs:(%rax), %rax
ret
