### the bit at any offset, by the prefixes alone
# refuse: P1-bit-offset
# from: docs/proof/window.md
bts %rsi, %gs:(%edi); ret

### bt of 16 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BT
btw %si, %gs:(%edi); ret

### bt of 16 bits at a masked offset
# accept
# from: SDM vol. 2, BT
and $15, %esi; btw %si, %gs:(%edi); ret

### bt of 32 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BT
btl %esi, %gs:(%edi); ret

### bt of 32 bits at a masked offset
# accept
# from: SDM vol. 2, BT
and $31, %esi; btl %esi, %gs:(%edi); ret

### bt of 64 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BT
btq %rsi, %gs:(%edi); ret

### bt of 64 bits at a masked offset
# accept
# from: SDM vol. 2, BT
and $63, %esi; btq %rsi, %gs:(%edi); ret

### bts of 16 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
btsw %si, %gs:(%edi); ret

### bts of 16 bits at a masked offset
# accept
# from: SDM vol. 2, BTS
and $15, %esi; btsw %si, %gs:(%edi); ret

### lock bts of 16 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
lock btsw %si, %gs:(%edi); ret

### bts of 32 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
btsl %esi, %gs:(%edi); ret

### bts of 32 bits at a masked offset
# accept
# from: SDM vol. 2, BTS
and $31, %esi; btsl %esi, %gs:(%edi); ret

### lock bts of 32 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
lock btsl %esi, %gs:(%edi); ret

### bts of 64 bits at a masked offset
# accept
# from: SDM vol. 2, BTS
and $63, %esi; btsq %rsi, %gs:(%edi); ret

### lock bts of 64 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
lock btsq %rsi, %gs:(%edi); ret

### btr of 16 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTR
btrw %si, %gs:(%edi); ret

### btr of 16 bits at a masked offset
# accept
# from: SDM vol. 2, BTR
and $15, %esi; btrw %si, %gs:(%edi); ret

### lock btr of 16 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTR
lock btrw %si, %gs:(%edi); ret

### btr of 32 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTR
btrl %esi, %gs:(%edi); ret

### btr of 32 bits at a masked offset
# accept
# from: SDM vol. 2, BTR
and $31, %esi; btrl %esi, %gs:(%edi); ret

### lock btr of 32 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTR
lock btrl %esi, %gs:(%edi); ret

### btr of 64 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTR
btrq %rsi, %gs:(%edi); ret

### btr of 64 bits at a masked offset
# accept
# from: SDM vol. 2, BTR
and $63, %esi; btrq %rsi, %gs:(%edi); ret

### lock btr of 64 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTR
lock btrq %rsi, %gs:(%edi); ret

### btc of 16 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTC
btcw %si, %gs:(%edi); ret

### btc of 16 bits at a masked offset
# accept
# from: SDM vol. 2, BTC
and $15, %esi; btcw %si, %gs:(%edi); ret

### lock btc of 16 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTC
lock btcw %si, %gs:(%edi); ret

### btc of 32 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTC
btcl %esi, %gs:(%edi); ret

### btc of 32 bits at a masked offset
# accept
# from: SDM vol. 2, BTC
and $31, %esi; btcl %esi, %gs:(%edi); ret

### lock btc of 32 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTC
lock btcl %esi, %gs:(%edi); ret

### btc of 64 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTC
btcq %rsi, %gs:(%edi); ret

### btc of 64 bits at a masked offset
# accept
# from: SDM vol. 2, BTC
and $63, %esi; btcq %rsi, %gs:(%edi); ret

### lock btc of 64 bits at any offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTC
lock btcq %rsi, %gs:(%edi); ret

### a mask one bit too wide for 16 bits
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
and $31, %esi; btsw %si, %gs:(%edi); ret

### a mask one bit too wide for 32 bits
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
and $63, %esi; btsl %esi, %gs:(%edi); ret

### a mask one bit too wide for 64 bits
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
and $127, %esi; btsq %rsi, %gs:(%edi); ret

### bt at any offset from the stack
# refuse: P1-bit-offset
# from: SDM vol. 2, BT
bt %rsi, %gs:-8(%esp); ret

### bts at any offset from the stack
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
bts %rsi, %gs:-8(%esp); ret

### btr at any offset from the stack
# refuse: P1-bit-offset
# from: SDM vol. 2, BTR
btr %rsi, %gs:-8(%esp); ret

### btc at any offset from the stack
# refuse: P1-bit-offset
# from: SDM vol. 2, BTC
btc %rsi, %gs:-8(%esp); ret

### lock bts at any offset from the stack
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
lock bts %esi, %gs:-8(%esp); ret

### bts at a masked offset from the stack
# accept
# from: SDM vol. 2, BTS
and $63, %esi; bts %rsi, %gs:-8(%esp); ret

### lock bts at a masked offset
# accept
# from: SDM vol. 2, BTS
and $63, %esi; lock bts %rsi, %gs:(%edi); ret

### at any offset from an index and a displacement
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
bts %rsi, %gs:64(%edi,%ecx,8); ret

### at any offset from an index alone
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
bts %rsi, %gs:0x1000(,%ecx); ret

### at any offset from a symbol
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
bts %rsi, %gs:"twin_vm:sym"(%edi); ret

### an offset that is its own base
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
bts %rdi, %gs:(%edi); ret

### the stack pointer as the offset
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
bts %rsp, %gs:(%edi); ret

### the low half of any number
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
mov %esi, %esi; bts %rsi, %gs:(%edi); ret

### a mask of another register
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
and $63, %edx; bts %rsi, %gs:(%edi); ret

### a negative mask
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
and $-64, %rsi; bts %rsi, %gs:(%edi); ret

### a mask that one path lacks
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
test %rdx, %rdx; je 1f; and $63, %esi
1: bts %rsi, %gs:(%edi); ret

### a masked offset that is counted up
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
and $63, %esi; inc %esi; bts %rsi, %gs:(%edi); ret

### a masked offset that a call may change
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
sub $8, %rsp; and $63, %esi; call f2; bts %rsi, %gs:(%edi); add $8, %rsp; ret
.globl f2
f2: ret

### prefix 67 before 65
# refuse: P1-bit-offset
# from: SDM vol. 2, BTS
.byte 0x67, 0x65, 0x48, 0x0f, 0xab, 0x37
ret

### a bit by a constant
# accept
# from: SDM vol. 2, BTS
btsq $200, %gs:(%edi); ret
