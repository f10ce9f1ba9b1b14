//! Instructions that few registers can serve.

use crate::run::{TWO_CASES, is_the_same};

/// No register with a REX prefix is encoded beside them, and a compare that is repeated takes one more.
#[test]
fn second_bytes_of_registers_are_accessed_whatever_is_live() {
    for access in [
        "mov (%rsi,%rdx),%ah",
        "add (%rsi,%rdx),%ch",
        "mov %ah,4(%rsi,%rdx)",
        "xchg %ah,4(%rsi,%rdx)",
        "lock cmpxchg %ch,4(%rsi,%rdx)",
        "cmp %dh,4(%rsi,%rdx)",
        "add %ch,4(%rsi,%rdi)",
    ] {
        for before in ["cmpb $7,%cl", "cmp %bl,%dil", "add $1,%r9", "nop"] {
            let text = format!(
                "\t.text\n\t.globl f\n\t.type f,@function\nf:\tpush %rbx\n\tpush %rbp\n\
                 \tmov $3,%ebx\n\tmov $0x1234,%eax\n\t{before}\n\t{access}\n\tsete %bl\n\
                 \tmovzbl %bl,%ebx\n\tadd %ebx,%eax\n\tadd %edi,%eax\n\tadd %ecx,%eax\n\
                 \tadd (%rsi),%eax\n\tadd 4(%rsi),%eax\n\tpop %rbp\n\tpop %rbx\n\tret\n\
                 \t.size f,.-f\n\t.section .note.GNU-stack,\"\",@progbits\n"
            );
            is_the_same(&text, TWO_CASES);
        }
    }
}
