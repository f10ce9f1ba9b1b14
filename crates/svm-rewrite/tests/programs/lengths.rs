//! Lengths of code: as operands, in data, and computed by the program.

use crate::run::{TWO_CASES, is_refused, is_the_same, rewrite};

#[test]
fn lengths_by_other_names_are_refused() {
    let text = "\t.text\n\t.set b0, g\n\t.set b1, ge\nf:\tmovl $(b1-b0),(%rdi)\n\tret\n\
                g:\tmov (%rdi),%rax\n\tret\nge:\tnop\n";
    is_refused(text, "a length of code");
    let text = "\t.section code,\"ax\"\nf:\tmovl $(ge-g),(%rdi)\n\tret\n\t.data\n\
                \t.section code\ng:\tmov (%rdi),%rax\n\tret\nge:\tnop\n";
    is_refused(text, "a length of code");
}

/// A function that copies code of another one, whose length it computes.
fn copies(length: &str) -> String {
    format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\t{length}\n\trep movsb\n\tret\n\t.size f,.-f\n\
         g:\tmov (%rdi),%rax\n\tret\nge:\tnop\n\tret\nhe:\tret\n"
    )
}

#[test]
fn lengths_of_code_that_are_computed_to_copy_it_are_refused() {
    for length in [
        "lea ge(%rip),%rcx\n\tlea g(%rip),%rsi\n\tsub %rsi,%rcx",
        "lea g(%rip),%rsi\n\tmov %rsi,%rdx\n\tlea ge(%rip),%rcx\n\tdec %rcx\n\tsub %rdx,%rcx",
        "mov $ge,%ecx\n\tmov $g,%esi\n\tsub %esi,%ecx",
        "lea ge(%rip),%rcx\n\tlea g(%rip),%rsi\n\tsub %rsi,%rcx\n\ttest %eax,%eax\n\tje 1f\n\tjmp *%rax\n1:",
        "lea g(%rip),%rcx\n\ttest %eax,%eax\n\tje 1f\n\tlea ge(%rip),%rsi\n\tsub %rsi,%rcx\n1:",
    ] {
        is_refused(
            &copies(length),
            "a length of code that the program computes",
        );
    }
    for length in [
        // No code that is replaced is between.
        "lea he(%rip),%rcx\n\tlea ge(%rip),%rsi\n\tsub %rsi,%rcx",
        "lea ge(%rip),%rcx\n\tlea g(%rip),%rsi\n\tmov %rax,%rsi\n\tsub %rsi,%rcx",
        "lea ge(%rip),%rcx\n\tlea g(%rip),%rsi\n\tcpuid\n\tsub %rsi,%rcx",
        "lea ge(%rip),%rcx\n\tcall x\n\tlea g(%rip),%rsi\n\tsub %rsi,%rcx",
        "lea 1f(%rip),%rcx\n\tlea f(%rip),%rsi\n\tsub %rsi,%rcx\n\tcmp (%rdx),%eax\n\tje 1f\n\tjmp *%rax\n1:",
    ] {
        let taken = rewrite(&copies(length));
        assert!(taken.is_ok(), "{length}: {taken:?}");
    }
}

/// A function with two pieces of 16 bytes, of which it jumps to one. Both are the destinations of
/// other jumps as well.
fn pieces(jump: &str) -> String {
    format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\tmov %rsi,%rcx\n\t{jump}\n\
         \t.p2align 4\npiece:\tmov (%rdi),%rax\n\tret\n\t.p2align 4\nother:\tmov $7,%eax\n\tret\n\
         \t.size f,.-f\n\t.section .rodata\ntbl:\t.long piece-piece, other-piece\n\
         \t.section .note.GNU-stack,\"\",@progbits\n"
    )
}

#[test]
fn jumps_to_addresses_that_are_counted_from_a_label_are_refused() {
    const WORDS: &str = "counts from a label";
    for jump in [
        "lea piece(%rip),%rax\n\tshl $4,%rcx\n\tadd %rax,%rcx\n\tjmp *%rcx",
        "lea piece(%rip),%rax\n\tand $1,%ecx\n\tshl $4,%ecx\n\tadd %rcx,%rax\n\tcall *%rax\n\tret",
        "lea piece(%rip),%rax\n\tand $2,%ecx\n\tlea (%rax,%rcx,8),%rdx\n\tjmp *%rdx",
        "mov $piece,%edx\n\timul $16,%rcx,%rcx\n\tmov %rdx,%r8\n\tadd %r8,%rcx\n\tjmp *%rcx",
        "lea other(%rip),%rdx\n\tneg %rcx\n\tand $16,%ecx\n\tsub %rcx,%rdx\n\tjmp *%rdx",
        "lea piece(%rip),%rdx\n\ttest %ecx,%ecx\n\tje 1f\n\tadd $16,%rdx\n1:\tjmp *%rdx",
        "lea piece(%rip),%r8\n\tmov $16,%eax\n\tmul %rcx\n\tadd %r8,%rax\n\tjmp *%rax",
        "lea piece(%rip),%r12\n\tcall x\n\tshl $4,%rax\n\tadd %r12,%rax\n\tjmp *%rax",
        "lea piece(%rip),%rax\n\tlea 16(%rax),%rcx\n\tjmp *%rcx",
        "lea piece(%rip),%rax\n\tand $16,%ecx\n\tor %rcx,%rax\n\tjmp *%rax",
        "lea piece(%rip),%rax\n\tmov %rdi,%rcx\n\tsar $63,%rcx\n\tadd %rcx,%rax\n\tjmp *%rax",
    ] {
        is_refused(&pieces(jump), WORDS);
    }
    for jump in [
        // What a table has is a difference of labels.
        "lea piece(%rip),%rax\n\tlea tbl(%rip),%rdx\n\tmovslq (%rdx,%rcx,4),%rcx\n\tadd %rcx,%rax\n\tjmp *%rax",
        "lea tbl(%rip),%rdx\n\tlea (%rdx,%rcx,4),%rdx\n\tmovslq (%rdx),%rcx\n\tlea piece(%rip),%rax\n\
         \tlea (%rax,%rcx),%rax\n\tjmp *%rax",
        "lea piece(%rip),%rax\n\tlea other(%rip),%rdx\n\ttest %ecx,%ecx\n\tcmove %rdx,%rax\n\tjmp *%rax",
        "lea piece(%rip),%rax\n\tlea other(%rip),%rdx\n\tsub %rax,%rdx\n\tadd %rdx,%rax\n\tjmp *%rax",
        // What clang spoils addresses with (-mspeculative-load-hardening).
        "lea piece(%rip),%rax\n\tlea other(%rip),%rdx\n\tcmp (%rdi),%ecx\n\tcmove %rdx,%rax\n\tmov $-1,%rcx\n\
         \tmov %rsp,%rdx\n\tsar $63,%rdx\n\tcmovne %rcx,%rdx\n\tor %rdx,%rax\n\tjmp *%rax",
        // A number that goes nowhere.
        "lea piece(%rip),%rax\n\tadd %rcx,%rax\n\tmov (%rdi),%rax\n\tjmp *%rax",
    ] {
        let taken = rewrite(&pieces(jump));
        assert!(taken.is_ok(), "{jump}: {taken:?}");
    }
    let still = pieces("lea piece(%rip),%rax\n\tshl $4,%rcx\n\tadd %rax,%rcx\n\tjmp *%rcx");
    let still = still.replace("mov (%rdi),%rax", "mov %rdi,%rax");
    assert!(rewrite(&still).is_ok(), "nothing moves");
}

/// A function that jumps by a table of bytes to its cases, of so many loads.
fn short_cases(loads: usize, read: &str, table: &str) -> String {
    let case = "\tadd (%rsi),%eax\n\tmov %rsi,%rcx\n".repeat(loads);
    format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\tlea base(%rip),%rax\n\
         \tlea tbl(%rip),%rdx\n\t{read} (%rdx,%rdi),%rdx\n\tadd %rdx,%rax\n\tjmp *%rax\n\
         base:\nc0:\tmov (%rsi),%eax\n{case}\tret\nc1:\tmov $22,%eax\n\tret\n\
         \t.size f,.-f\n\t.section .rodata\n{table}\n\t.section .note.GNU-stack,\"\",@progbits\n"
    )
}

#[test]
fn lengths_in_a_byte_are_refused_if_they_may_pass_its_limit() {
    is_the_same(
        &short_cases(1, "movsbq", "tbl: .byte c0-base, c1-base"),
        TWO_CASES,
    );
    let by_macro =
        "\t.macro E to, from\n\t.byte \\to-\\from\n\t.endm\ntbl:\tE c0, base\n\tE c1, base";
    is_the_same(&short_cases(1, "movsbq", by_macro), TWO_CASES);
    for (loads, table) in [
        (20, "tbl: .byte c0-base, c1-base"),
        (20, "\t.set d, c1-base\ntbl: .byte 0, d"),
        (20, "tbl: .byte 0, (c1-base)"),
        (20, by_macro),
        (20, "tbl: .dc.b c0-base, c1-base"),
        (
            20,
            "\t.macro E n\n\t.byte \\n\n\t.endm\ntbl:\tE c0-base\n\tE c1-base",
        ),
        (20, "tbl:\t.irp n, c0-base, c1-base\n\t.byte \\n\n\t.endr"),
    ] {
        is_refused(
            &short_cases(loads, "movsbq", table),
            "a length of code in one byte",
        );
    }
    is_refused(
        &short_cases(20, "movzbq", "tbl: .byte c0-.text, c1-.text"),
        "a length of code in one byte",
    );
    let variable = "tbl: .uleb128 c0-base, c1-base";
    let short = short_cases(0, "movzbq", variable).replace("mov (%rsi),%eax", "mov $11,%eax");
    is_the_same(&short, TWO_CASES);
    for table in [variable, "tbl: .byte 0\n\t.sleb128 c1-base"] {
        is_refused(
            &short_cases(8, "movzbq", table),
            "a length of code in a number of variable length",
        );
    }
}

/// What is behind such bytes is found by its distance, as `d+4` is here.
#[test]
fn lengths_that_count_bytes_of_data_are_refused_if_they_change() {
    let counted = |code: &str, data: &str| {
        format!(
            "\t.text\n\t.globl f\n\t.type f,@function\nf:\n1:\t{code}\n2:\tmov d+4(%rip),%eax\n\
             \tadd (%rsi),%eax\n\tret\n\t.size f,.-f\n\t.data\n{data}\n\t.long 11,22,33,44\n\
             \t.section .note.GNU-stack,\"\",@progbits\n"
        )
    };
    let main = "#include <stdio.h>\nint f(long, int *);\n\
                int main(void) { int a = 3; printf(\"%d\\n\", f(0, &a)); }";
    is_the_same(
        &counted("mov %esi,%ecx\n\tnop\n\tnop", "d:\t.skip 2b-1b"),
        main,
    );
    // Code that is padded up to a place.
    let padded = "d:\t.long 1\n\t.text\n\t.skip 256-(.-f),0xcc\n\tnop\n\t.data";
    is_the_same(&counted("mov (%rsi),%ecx", padded), main);
    for data in [
        "d:\t.skip 2b-1b",
        // The name of a section is its start.
        "d:\t.skip 2b-.text",
        "d:\t.fill (2b-1b)",
        "d:\t.space x\n\t.set x,2b-1b",
        "d:\t.zero 4-(2b-1b)",
        "\t.org 2b-1b\nd:",
        "d:\t.dcb.b 2b-1b,5",
        "\t.macro m n\n\t.skip \\n\n\t.endm\nd:\tm 2b-1b",
        "d:\t.irp n, 2b-1b\n\t.skip \\n\n\t.endr",
        "\t.text\nd:\t.skip 2b-1b\n\t.long 11,22",
    ] {
        is_refused(
            &counted("mov (%rsi),%ecx\n\tnop\n\tnop", data),
            "a length of code that counts bytes",
        );
    }
}

/// Whose labels are code is told by their sections, however these are named or entered, and macros may
/// hide all of it.
#[test]
fn lengths_are_found_in_any_section_of_code_and_behind_macros() {
    let text = |before: &str, enter: &str, data: &str| {
        format!(
            "{before}\n\t.data\n\t{enter}\n\t.globl f\n\t.type f,@function\nf:\nx1:\tmov (%rsi),%ecx\n\
             \tnop\n\tnop\nx2:\tmov d+4(%rip),%eax\n\tadd (%rsi),%eax\n\tret\n\t.size f,.-f\n\
             {data}\n\t.long 11,22,33,44\n\t.section .note.GNU-stack,\"\",@progbits\n"
        )
    };
    let data = "\t.data\nd:\t.skip x2-x1";
    let enter_code = "\t.macro CODE\n\t.section .my,\"ax\"\n\t.endm";
    let enter_data = "\t.macro DATA\n\t.data\n\t.endm";
    for (before, enter, data) in [
        ("", ".pushsection .my,0,\"ax\"", data),
        ("", ".section \"a,b\",\"ax\"", data),
        ("", ".section .plt", data),
        (enter_code, "CODE", data),
        ("", ".irp s,.my\n\t.section \\s,\"ax\"\n\t.endr", data),
        ("", ".rept 1\n\t.text\n\t.endr", data),
        (enter_data, ".text", "\tDATA\nd:\t.skip x2-x1,0x90"),
        (
            "\t.macro len n,a,b\n\t.set \\n,\\b-\\a\n\t.endm",
            ".text",
            "\t.data\n\tlen n,x1,x2\nd:\t.skip n",
        ),
        (
            "",
            ".text",
            "\t.data\n\t.rept 1\n\t.globl n\nn=x2-x1\n\t.endr\nd:\t.skip n",
        ),
        (
            "\t.macro pad n\n\t.skip \\n\n\t.endm",
            ".text",
            "\t.data\nd:\tpad \"x2-x1\"",
        ),
        (
            "\t.macro L n\n\\n:\n\t.endm",
            ".text\n\tL x3",
            "\t.data\nd:\t.skip x2-x3",
        ),
    ] {
        is_refused(
            &text(before, enter, data),
            "a length of code that counts bytes",
        );
    }
    is_refused(
        &text(
            "",
            ".section .my /* a */,\"ax\"\n\t.data\n\t.section .my",
            data,
        ),
        "a comment in the name of a section",
    );
}
