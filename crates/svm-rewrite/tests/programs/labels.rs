//! Labels, and places by distances from them: where control may come, whatever their names.

use crate::run::{TWO_CASES, cases, is_refused, is_the_same, rewrite};

#[test]
fn a_label_before_a_section_switch_is_still_reached() {
    for second in [
        ".Lc1:\n\t.pushsection .foo,\"a\"\n\t.long 0\n\t.popsection",
        ".Lc1:\n\t.section .foo,\"a\"\n\t.long 0\n\t.text",
    ] {
        is_the_same(&cases(second, "tbl: .quad .Lc0,.Lc1"), TWO_CASES);
    }
}

#[test]
fn tables_in_sections_with_names_of_information_are_read() {
    for section in [".note.tbl", ".eh_frame_tbl", ".debug_tbl"] {
        let table = format!("\t.section {section},\"aw\"\ntbl: .quad .Lc0,.Lc1");
        is_the_same(&cases(".Lc1:", &table), TWO_CASES);
    }
}

#[test]
fn labels_are_reached_whose_names_are_made() {
    for (second, table) in [
        (".Lc1:", "tbl:\n\t.irp n,0,1\n\t.quad .Lc\\n\n\t.endr"),
        (".Lc1:", "tbl:\n\t.irep n,0,1\n\t.quad .Lc\\n\n\t.endr"),
        (".Lc1:", "tbl:\n\t.irepc n,01\n\t.quad .Lc\\n\n\t.endr"),
        (
            ".Lc1:",
            "tbl:\n\t.macro E n\n\t.quad .Lc\\n\n\t.endm\n\tE 0\n\tE 1",
        ),
        (
            "\t.macro LAB n\n.Lc\\n:\n\t.endm\n\tLAB 1",
            "tbl: .quad .Lc0,.Lc1",
        ),
    ] {
        is_the_same(&cases(second, table), TWO_CASES);
    }
}

/// The table has distances: no relocation shows where they lead.
#[test]
fn labels_of_distances_are_reached_whatever_their_names() {
    let jump = "\tlea tbl(%rip),%rax\n\tmovslq (%rax,%rdi,4),%rdx\n\tadd %rdx,%rax\n\tjmp *%rax";
    let absolute = "\tlea tbl(%rip),%rax\n\tmov (%rax,%rdi,8),%rax\n\tjmp *%rax";
    for (second, table) in [
        (".Lc1:", "tbl: .slong .Lc0-tbl,.Lc1-tbl"),
        (".Lc1:", "tbl: .dcb.l 1,.Lc0-tbl\n\t.dcb.l 1,.Lc1-tbl"),
        (".Lc1:", "tbl:\n\t.irp n,0,1\n\t.long .Lc\\n-tbl\n\t.endr"),
        (
            "\t.macro LAB n\n.Lc\\n:\n\t.endm\n\tLAB 1",
            "tbl: .long .Lc0-tbl,.Lc1-tbl",
        ),
        ("c1 = .", "tbl: .long .Lc0-tbl,c1-tbl"),
        ("\t.set c1, .", "tbl: .long .Lc0-tbl,c1-tbl"),
        ("$c1:", "tbl: .long .Lc0-tbl,$c1-tbl"),
        (".Lc1:", "tbl: .long .Lc0-tbl, /* \" */ .Lc1-tbl /* \" */"),
        ("\"c\\\"x\":", "tbl: .long .Lc0-tbl,\"c\\\"x\"-tbl"),
        ("\t.globl zz /* x\n\t*/\nc1:", "tbl: .long .Lc0-tbl,c1-tbl"),
    ] {
        is_the_same(&cases(second, table).replace(absolute, jump), TWO_CASES);
    }
    // A macro leaves the section of information.
    let information = "\t.macro RO\n\t.section .rodata\n\t.endm\n\t.section .debug_x,\"\",@progbits\n\
                       \t.long 0\n\tRO\ntbl:\t.long .Lc0-tbl,.Lc1-tbl";
    is_the_same(
        &cases(".Lc1:", information).replace(absolute, jump),
        TWO_CASES,
    );
    // The assembler of Debian 13 has no numbers with a zero before them.
    for (second, table) in [
        ("01:", "tbl: .long .Lc0-tbl,1b-tbl"),
        ("1:", "tbl: .long .Lc0-tbl,01b-tbl"),
    ] {
        let text = cases(second, table).replace(absolute, jump);
        if filetests::is_assembled(&text) {
            is_the_same(&text, TWO_CASES);
        }
    }
}

#[test]
fn labels_are_reached_by_other_names() {
    for (second, table) in [
        (".Lc1:", "tbl: .quad .Lc0,al\n\t.weakref al, .Lc1"),
        (".Lc1:", "tbl: .quad .Lc0,al\n\t.set al, .Lc1"),
        ("c1 = .", "tbl: .quad .Lc0,c1"),
    ] {
        is_the_same(&cases(second, table), TWO_CASES);
    }
}

#[test]
fn a_label_behind_a_prefix_is_refused_if_its_address_is_taken() {
    let text = |table: &str| {
        format!(
            "\t.text\n\t.globl f\n\t.type f,@function\nf:\tlea tbl(%rip),%rax\n\
             \tmov 8(%rax),%rax\n\tmov $3,%ecx\n\tlea 16(%rdi),%rsi\n\tlea 40(%rdi),%rdi\n\
             \tjmp *%rax\nbytes:\t.byte 0xf3\n.Lc1:\tmovsb\n\tmov %rcx,%rax\n\tret\n\
             \t.size f,.-f\n\t.data\ntbl:\t{table}\n"
        )
    };
    is_refused(&text(".quad bytes,.Lc1"), "a label inside an instruction");
    is_refused(&text(".set x, .Lc1"), "a label inside an instruction");
    assert!(rewrite(&text(".quad bytes,bytes")).is_ok());
}

/// A function, and what names a place in it.
fn with_place(data: &str) -> String {
    format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\tmov (%rdi),%rax\n\tmov $7,%ecx\n\
         \tmov $9,%edx\n\tret\n\t.size f,.-f\n{data}\n"
    )
}

#[test]
fn places_by_distances_are_refused_whoever_makes_them() {
    for data in [
        "\t.set three,3\n\t.data\n\t.quad f+three",
        "three = 3\n\t.data\n\t.quad three+f",
        "\t.data\n\t.macro M a,b\n\t.quad \\a+\\b\n\t.endm\n\tM f,3",
        "\t.data\n\t.irp n,3\n\t.quad f+\\n\n\t.endr",
        "\t.section .note.q,\"aw\"\n\t.quad f+3",
        "\t.globl al\n\t.set al, f\n\t.data\n\t.quad al+3",
        "\t.altmacro\n\t.macro M a\n\t.quad f+a\n\t.endm\n\t.data\n\tM 3",
        "\t.data\n\t.quad f+(2*2-1)",
        "\t.globl x\n\t.irp n,3\n\t.set x, f+\\n\n\t.endr",
    ] {
        is_refused(&with_place(data), "[statement]");
    }
    for data in [
        "\t.data\n\t.irp n,f,.Lend\n\t.quad \\n\n\t.endr\n\t.text\n.Lend:",
        "\t.set len, .-f\n\t.data\n\t.quad f+len",
        "\t.globl al\n\t.set al, f\n\t.data\n\t.quad al",
    ] {
        assert!(rewrite(&with_place(data)).is_ok(), "{data}");
    }
}

/// Calls `f` with flags that lead behind its last instruction, and with others.
const BOTH_WAYS: &str = r#"
#include <stdio.h>
long f(long *, long);
int main(void) {
    long a[2] = {20, 300};
    printf("%ld %ld\n", f(a, 0), f(a, 1));
}
"#;

/// A function with a branch behind its last instruction, into what `follows` there.
fn leads_behind(label: &str, name: &str, follows: &str) -> String {
    format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\ttest $1,%esi\n\tjne {label}\n\
         \tmov (%rdi),%rax\n\tret\n{name}:\n\t.size f,.-f\n{follows}\n\
         \t.globl g\n\t.type g,@function\ng:\tmov 8(%rdi),%rax\n\tret\n\t.size g,.-g\n\
         \t.section .note.GNU-stack,\"\",@progbits\n"
    )
}

/// An out-of-line part follows the last instruction, and numeric labels there.
#[test]
fn a_label_behind_the_last_instruction_leads_to_what_follows() {
    for follows in [
        "",
        "\t.p2align 4",
        "\tnop",
        "\t.section .text.unlikely,\"ax\"\n\t.text",
    ] {
        is_the_same(&leads_behind("1f", "1", follows), BOTH_WAYS);
        is_the_same(&leads_behind(".Lon", ".Lon", follows), BOTH_WAYS);
    }
}

/// Where a `switch` has no such case, gcc goes to the end of a section, which may be empty.
#[test]
fn branches_to_the_end_of_a_section_stay() {
    let fragment = |label: &str, name: &str, other: &str| {
        format!(
            "\t.text\n\t.globl f\n\t.type f,@function\nf:\ttest $1,%esi\n\tcall part\n\tret\n\
             \t.section .text.a,\"ax\"\npart:\tjne {label}\n\tmov (%rdi),%rax\n\tret\n{other}{name}:\n\
             \t.section .text.b,\"ax\"\n\tmov 8(%rdi),%rax\n\tret\n\
             \t.section .note.GNU-stack,\"\",@progbits\n"
        )
    };
    is_the_same(&fragment("1f", "1", ""), BOTH_WAYS);
    is_the_same(&fragment(".Lend", ".Lend", ""), BOTH_WAYS);
    let unlikely =
        "\t.section .text.unlikely,\"ax\"\n\t.type f.cold,@function\nf.cold:\n.Lnone:\n\t.text\n";
    let text = format!("{unlikely}{}", leads_behind(".Lon", ".Lon", ""));
    let text = text.replace("\tmov 8(%rdi)", "\tcmp $5,%esi\n\tja .Lnone\n\tmov 8(%rdi)");
    is_the_same(&text, BOTH_WAYS);
    is_refused(
        &fragment(".+6", "1", "").replace("mov (%rdi),%rax\n\tret", "mov (%rdi),%rax\n\tnop"),
        "a branch by a distance",
    );
}
