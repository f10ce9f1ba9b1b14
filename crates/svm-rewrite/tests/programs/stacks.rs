//! Code that goes to another stack.

use crate::run::{is_refused, rewrite};

/// A function that goes to another stack, and what it does there.
fn on_another_stack(code: &str) -> String {
    format!("\t.text\n\t.globl f\n\t.type f,@function\nf:\t{code}\n\t.size f,.-f\n")
}

#[test]
fn accesses_on_a_stack_that_code_went_to_are_refused() {
    for code in [
        "mov 160(%rdi),%rsp\n\tmov 168(%rdi),%rcx\n\tpush %rcx\n\tmov 152(%rdi),%rcx\n\tmov 104(%rdi),%rdi\n\tret",
        "mov 48(%rdi),%rsp\n\tjmp *56(%rdi)",
        "mov 48(%rdi),%rsp\n\tpush 56(%rdi)\n\tret",
        "mov 8(%r14),%rsp\n\tpop 8(%r14)\n\tret",
        // An array.
        "mov %rsp,%rdx\n\tmov %rsi,%rsp\n1:\tpop %rax\n\tadd %rax,(%rdi)\n\tdec %ecx\n\tjne 1b\n\tmov %rdx,%rsp\n\tret",
        "lea 8(%rsi,%rcx,8),%rsp\n\tpop %rax\n\tadd %rax,(%rdi)\n\tret",
        "xchg %rsi,%rsp\n\tpop %rax\n\tadd %rax,(%rdi)\n\tmov %rsi,%rsp\n\tret",
        "xchg %rsp,%rsi\n\tpop %rax\n\tadd %rax,(%rdi)\n\tmov %rsi,%rsp\n\tret",
        "mov %rsi,%rsp\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        "mov x(%rip),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "add $8,%esp\n\tadd %rax,(%rdi)\n\tret",
        "mov %fs:16,%rsp\n\tadd %rax,(%rdi)\n\tret",
        "mov $x,%esp\n\tadd %rax,(%rdi)\n\tret",
        // On one of two paths, and by a word of the frame.
        "test %ecx,%ecx\n\tje 1f\n\tmov (%rsi),%rsp\n1:\tadd %rax,(%rdi)\n\tret",
        "mov %rsp,%rax\n\ttest %ecx,%ecx\n\tcmove %rsi,%rax\n\tmov %rax,%rsp\n\tadd %rax,(%rdi)\n\tret",
        "mov %rsi,-8(%rsp)\n\tmov -8(%rsp),%rax\n\tmov %rax,%rsp\n\tadd %rax,(%rdi)\n\tret",
        // By what was pushed.
        "push %rsi\n\tpop %rsp\n\tpop %rax\n\tadd %rax,(%rdi)\n\tret",
        "push 8(%rsi)\n\tpush %rcx\n\tpop %rax\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsp\n\tmov %rsi,(%rsp)\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        "mov %rsi,(%rsp)\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsi\n\tpop %rax\n\tmov %rax,%rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsi\n\tpushf\n\tpopf\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsi\n\tsub $8,%rsp\n\tlea 8(%rsp),%rsp\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsi\n\tpush %rcx\n\tadd $8,%rsp\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        // By a word of the frame that was not stored by `mov`.
        "push %rsi\n\tmov (%rsp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsi\n\tmov (%rsp),%rax\n\tmov %rax,%rsp\n\tadd %rax,(%rdi)\n\tret",
        "push (%rsi)\n\ttest %ecx,%ecx\n\tje 1f\n\tinc %ecx\n1:\tmov (%rsp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsi\n\tpush %rcx\n\tmov 8(%rsp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "movq %xmm0,-8(%rsp)\n\tmov -8(%rsp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "movups %xmm0,-16(%rsp)\n\tmov -8(%rsp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "mov %ecx,-8(%rsp)\n\tmov %edx,-4(%rsp)\n\tmov -8(%rsp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "lea -8(%rsp),%rax\n\tmov %rsi,(%rax)\n\tmov -8(%rsp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rbp\n\tmov %rsp,%rbp\n\tsub $64,%rsp\n\tmov %rsi,8(%rsp)\n\tmov -56(%rbp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "mov 8(%rsp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        // By a frame pointer of another stack.
        "mov %rsi,%rbp\n\tleave\n\tadd %rax,(%rdi)\n\tret",
        "lea 64(%rsi),%rbp\n\tleave\n\tpop %rax\n\tadd %rax,(%rdi)\n\tret",
        "push %rsi\n\tpop %rbp\n\tleave\n\tadd %rax,(%rdi)\n\tret",
        "push %rsi\n\tpop %rbp\n\txor %ecx,%ecx\n\tmov 8(%rbp),%rbp\n\tleave\n\tadd %rax,(%rdi)\n\tret",
    ] {
        is_refused(
            &on_another_stack(code),
            "rsp was set to another stack before",
        );
    }
    let exchanged = "xchg %rsp,(%rsi)\n\tpop %rax\n\tadd %rax,(%rdi)\n\tret";
    is_refused(&on_another_stack(exchanged), "too few registers are dead");
    for code in [
        // Switches that only pop, or read by rsp, and what is read before.
        "mov (%rdi),%rbx\n\tmov %rsp,(%rsi)\n\tmov 8(%rdi),%rsp\n\tpop %rbp\n\tmov 8(%rsp),%rbx\n\tret",
        "mov %rdi,%rsp\n\tmov 56(%rsp),%r8\n\tldmxcsr (%rsp)\n\tlea 64(%rsp),%rsp\n\tjmp *%r8",
        "mov 56(%rdi),%rcx\n\tmov 48(%rdi),%rsp\n\tjmp *%rcx",
        "mov %rdi,%rsp\n\tmov $15,%eax\n\tsyscall",
        // The program calls something there.
        "mov %rsp,%rbx\n\tmov (%rsi),%rsp\n\tcall x\n\tmov %rbx,%rsp\n\tadd %rax,(%rbp)\n\tret",
        // The own stack: arrays of variable length, alignments, rsp kept in the frame.
        "push %rbp\n\tmov %rsp,%rbp\n\tmov %rsp,%rax\n\tmov %rax,-16(%rbp)\n\tsub %rcx,%rsp\n\tadd %rax,(%rdi)\n\tmov -16(%rbp),%rsp\n\tadd %rax,(%rdi)\n\tleave\n\tret",
        "mov %rsp,%rax\n\tsub $64,%rsp\n\tand $-64,%rsp\n\tmov %rax,8(%rsp)\n\tadd %rax,(%rdi)\n\tmov 8(%rsp),%rsi\n\tlea (%rsi),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "lea 8(%rsp),%r10\n\tmovb $0,%spl\n\tadd %rax,(%rdi)\n\tlea -8(%r10),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "mov %rsp,%rbx\n\tmov %rsp,%rax\n\tmov %rax,40(%rbx)\n\tsub %rcx,%rsp\n\tmov 40(%rbx),%rax\n\tmov %rax,%rsp\n\tadd %rax,(%rdi)\n\tret",
        "neg %rcx\n\tadd %rsp,%rcx\n\tmov %rcx,%rsp\n\tadd %rax,(%rdi)\n\tret",
        "enter $16,$1\n\tadd %rax,(%rdi)\n\tleave\n\tadd %rax,(%rdi)\n\tret $8",
        "push %rsp\n\tmov (%rsp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsp\n\tpush (%rsp)\n\tand $-16,%rsp\n\tcall x\n\tmov 8(%rsp),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "lea 8(%rsp),%r10\n\tand $-32,%rsp\n\tpush -8(%r10)\n\tpush %rbp\n\tmov %rsp,%rbp\n\tpush %r10\n\tcall x\n\tmov -8(%rbp),%r10\n\tleave\n\tlea -8(%r10),%rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsp\n\tpush %rbx\n\tpop %rbx\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsp\n\tpushf\n\tsub $16,%rsp\n\tadd $16,%rsp\n\tpopf\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rbp\n\tmov %rsp,%rbp\n\tpush %rsi\n\tpop %rcx\n\tadd %rax,(%rdi)\n\tleave\n\tadd %rax,(%rdi)\n\tret",
        "mov %rsi,%rbp\n\tadd %rax,(%rbp)\n\tpush %rbx\n\tmov %rsp,%rbp\n\tleave\n\tadd %rax,(%rdi)\n\tret",
    ] {
        let taken = rewrite(&on_another_stack(code));
        assert!(taken.is_ok(), "{code}: {taken:?}");
    }
}

#[test]
fn a_part_of_a_function_that_stands_elsewhere_may_go_to_another_stack() {
    let parts = |elsewhere: &str| {
        let part = format!(
            "\t.type f.cold,@function\nf.cold:\t{elsewhere}\n\tjmp 1b\n\t.size f.cold,.-f.cold\n"
        );
        on_another_stack("test %ecx,%ecx\n\tje f.cold\n1:\tadd %rax,(%rdi)\n\tret") + &part
    };
    let reason = "rsp was set to another stack before";
    is_refused(&parts("mov (%rsi),%rsp"), reason);
    let taken = rewrite(&parts("mov (%rsi),%rax"));
    assert!(taken.is_ok(), "{taken:?}");
}

/// A function that has a counter in a word of its frame, and then keeps `rsp` there.
fn spills(code: &str) -> String {
    on_another_stack(&format!(
        "push %rbp\n\tmov %rsp,%rbp\n\tmov %rcx,-16(%rbp)\n\tmov -16(%rbp),%rdx\n\tmov %rsp,%r10\n\
         \t{code}\n\tmov -16(%rbp),%r10\n\tmov %r10,%rsp\n\tadd %rax,(%rdi)\n\tleave\n\tret"
    ))
}

#[test]
fn a_word_that_has_something_else_elsewhere_leads_to_the_own_stack_where_rsp_was_stored_to_it() {
    for code in [
        "mov %r10,-16(%rbp)",
        "mov %r10,-16(%rbp)\n\tmov %rcx,-24(%rbp)\n\tmov %rcx,-8(%rbp)\n\tmov %rcx,x(%rip)",
        "mov %r10,-16(%rbp)\n\tsub %rdx,%rsp\n1:\tmov %edx,(%rsi,%rcx,4)\n\tdec %ecx\n\tjne 1b",
        "mov %r10,-16(%rbp)\n1:\tmov %r10,-16(%rbp)\n\tmov $0,%r10d\n\tmov -16(%rbp),%r10\n\tdec %ecx\n\tjne 1b",
        "test %ecx,%ecx\n\tje 1f\n\tmov %r10,-16(%rbp)\n\tjmp 2f\n1:\tmov %rbp,-16(%rbp)\n2:",
    ] {
        let taken = rewrite(&spills(code));
        assert!(taken.is_ok(), "{code}: {taken:?}");
    }
    for code in [
        "mov %r10,-16(%rbp)\n\ttest %ecx,%ecx\n\tje 1f\n\tmov %rcx,-16(%rbp)\n1:",
        "test %ecx,%ecx\n\tje 1f\n\tmov %r10,-16(%rbp)\n1:",
        "mov %r10,-16(%rbp)\n1:\ttest %ecx,%ecx\n\tje 1f\n\tmov %rcx,-16(%rbp)\n\tjmp 1b\n1:",
        "mov %r10,-16(%rbp)\n\tmovq $6,-16(%rbp)",
        "mov %r10,-16(%rbp)\n\tmovl $6,-12(%rbp)",
        "mov %r10,-16(%rbp)\n\tmov %cl,-9(%rbp)",
        "mov %r10,-16(%rbp)\n\tmovups %xmm0,-24(%rbp)",
        "mov %r10,-16(%rbp)\n\tmov %cl,-40(%rbp,%rcx)",
        "mov %r10,-16(%rbp)\n\tbts %rcx,-32(%rbp)",
        "mov %r10,-16(%rbp,%rcx,8)",
        "mov %r10,%fs:-16(%rbp)",
        "mov %r10,-16(%rbp)\n\tmovl $6,-16(%rsp)",
        "mov %r10,-16(%rbp)\n\tlea -16(%rbp),%rax\n\tmov %rcx,(%rax)",
        "mov %r10,-16(%rbp)\n\tlea -16(%rbp),%rdi\n\tstosb",
        "mov %r10,-16(%rbp)\n\tpush %rcx\n\tpush %rcx\n\tpop %rcx\n\tpop %rcx",
        "mov %r10,-16(%rbp)\n\tlea -16(%rbp),%rdi\n\tcall x",
        "mov %r10,-16(%rbp)\n\tadd $8,%rbp",
        "mov %r10,-16(%rbp)\n\tsyscall",
    ] {
        is_refused(&spills(code), "rsp was set to another stack before");
    }
}

/// A function that keeps its stack pointer in `%r9` over a call of another one (gcc's `-fipa-ra`).
fn keeps_over(callee: &str) -> String {
    format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\tlea (%rsp),%r9\n\tpush %rbx\n\tcall g\n\tmov %r9,%rsp\n\
         \tadd %rax,(%rdi)\n\tret\n\t.size f,.-f\n\t.type g,@function\ng:\t{callee}\n\t.size g,.-g\n\
         \t.type h,@function\nh:\txor %r9d,%r9d\n\tret\n\t.size h,.-h\n\
         \t.type k,@function\nk:\txor %eax,%eax\n\tret\n\t.size k,.-k\n"
    )
}

#[test]
fn registers_that_a_callee_leaves_alone_still_lead_to_the_own_stack() {
    for callee in [
        "mov (%rsi),%rax\n\tret",
        "mov %r9,%rax\n\tcall k\n\tjmp k",
        "test %eax,%eax\n\tje k\n\tdec %eax\n\tjmp g",
    ] {
        let taken = rewrite(&keeps_over(callee));
        assert!(taken.is_ok(), "{callee}: {taken:?}");
    }
    for callee in [
        "mov (%rsi),%r9\n\tret",
        "xchg %r9,%rsi\n\tret",
        "mov $1,%r9b\n\tret",
        "call h\n\tret",
        "call x\n\tret",
        "jmp h",
        "test %eax,%eax\n\tje h\n\tret",
        "jmp *%rsi",
        "call *%rsi\n\tret",
        "xor %eax,%eax",
        "syscall\n\tret",
    ] {
        is_refused(&keeps_over(callee), "rsp was set to another stack before");
    }
}
