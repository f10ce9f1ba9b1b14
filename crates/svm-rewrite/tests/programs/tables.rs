//! Tables among the code, which are put elsewhere.

use crate::run::{TWO_CASES, is_refused, is_the_same};

/// A function that adds up three words of a table among its code, and what stands beside it.
pub fn among_code(before: &str, table: &str, behind: &str) -> String {
    format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\n\tmov (%rsi),%eax\n{before}\n\
         \tadd (%rcx),%eax\n\tadd 4(%rcx),%eax\n\tadd 8(%rcx),%eax\n\t.byte 0xf3,0xc3\n\
         \t.size f,.-f\n{table}\n{behind}\n\t.section .note.GNU-stack,\"\",@progbits\n"
    )
}

pub const K: &str = "lea k(%rip),%rcx";

/// Their bytes are no instructions, or would change as ones; elsewhere they can stay.
#[test]
fn tables_among_code_are_data() {
    let table = "\t.align 16\nk:\t.long 0xffffff06, 6, 0x428a2f98";
    for (table, behind) in [
        (table, ""),
        (table, "\t.align 16\ng:\tmov (%rdi),%eax\n\tret"),
        (table, "\t.asciz \"f, by nobody <f@example.org>\""),
        (
            "\t.type k,@object\n\t.align 64\nk:\t.long 0x06, 0xc3, 7",
            "\t.align 16\n\t.size k,.-k",
        ),
        (
            "\t.align 32\nk:\t.long 0xff06, 6, 5\n\t.align 32\nl:\t.quad 6",
            "",
        ),
        ("k:\t.long 0xff06, 6, 5\n\t.align 32\nl:\t.quad 6", ""),
        // A distance to code, and one within the table.
        ("\t.align 8\nk:\t.long l-k, 6, 0x0606\nl:\t.long 6", ""),
    ] {
        is_the_same(&among_code(&format!("\t{K}"), table, behind), TWO_CASES);
    }
    let copied = format!(
        "\tpush %rdi\n\tpush %rsi\n\tlea -64(%rsp),%rdi\n\tmov $9,%ecx\n\tcld\n\
        \t.long 0x9066A4F3\n\tpop %rsi\n\tpop %rdi\n\t{K}"
    );
    is_the_same(&among_code(&copied, table, ""), TWO_CASES);
}

/// Bytes that are code stay where they are, or the text is refused as it was.
#[test]
fn bytes_that_may_be_code_are_not_taken_for_tables() {
    let bad = "\t.align 16\nk:\t.byte 0x31,0xc0,0xc3,0x06,0x06,0x06,0,0,0,0,0,0";
    for before in [
        format!("\tpush %rcx\n\t{K}\n\tcall *%rcx\n\tpop %rcx"),
        format!("\t{K}\n\tmov %rcx,%rdi\n\tcall atexit@PLT"),
        format!("\t{K}\n\tmov $k,%edi"),
    ] {
        is_refused(&among_code(&before, bad, ""), "no");
    }
    // Too short for where code would be.
    let short = "\t.align 16\nk:\t.long 0xff06, 6, 5\n\t.byte k-f";
    is_refused(&among_code(&format!("\t{K}"), short, ""), "no");
    let info = "\t.align 8\n\t.quad 0x06\ng:\tmov -8(%rdi),%eax\n\tret";
    is_refused(&among_code("\tlea g(%rip),%rcx", info, ""), "no");
}

/// They are at the same distance from a multiple of what their section is aligned to.
#[test]
fn tables_among_code_are_aligned_as_they_were() {
    let within = "\tlea k(%rip),%rcx\n\tand $-64,%rcx\n\tmov 8(%rsi),%eax";
    let table = "\t.align 64\nj:\t.long 0xff06,1\n\t.align 8\nk:\t.long 0xff06,7,9";
    is_the_same(&among_code(within, table, ""), TWO_CASES);
    // 16 bytes behind a multiple of 64.
    let rest = "\tlea k(%rip),%rcx\n\tmov %ecx,%edx\n\tand $63,%edx\n\tadd %edx,%eax";
    let behind = "\t.align 64\ng:\tret\n\t.align 16\nk:\t.long 0xff06,7,9";
    is_the_same(&among_code(rest, behind, ""), TWO_CASES);
    // What the text has in `.rodata` stays side by side.
    let two = "\tlea a(%rip),%rcx\n\tadd 4(%rcx),%eax\n\tlea k(%rip),%rcx";
    let table = "\t.align 16\nk:\t.long 0xff06,7,9\n\t.section .rodata\n\t.long 2";
    let text = among_code(two, table, "");
    let text = format!("\t.section .rodata,\"a\"\n\t.p2align 2\na:\t.long 1\n{text}");
    is_the_same(&text, TWO_CASES);
}

/// The assembler makes two instructions of each, and others stand beside them.
#[test]
fn x87_instructions_that_wait_are_two() {
    let lines = "\tfildl (%rsi)\n\tfstcw -40(%rsp)\n\tfstcw 8(%rsi)\n\tfistpl 4(%rsi)\n\tfstsw %ax\n\t\
                 movzwl %ax,%eax\n\tfstenv -80(%rsp)\n\tfclex\n\tadd 8(%rsi),%eax\n\tfinit\n\tmov %rsi,%rcx";
    is_the_same(&among_code(lines, "", ""), TWO_CASES);
}

/// Code is filled up with other bytes than data, and they may be read with the table.
#[test]
fn what_fills_alignments_in_a_table_is_part_of_it() {
    let table = "\t.align 8\nk:\t.byte 6,6,6\n\t.align 8\n\t.long 0xff06";
    is_the_same(&among_code(&format!("\t{K}"), table, ""), TWO_CASES);
    let table = "\t.align 8\nk:\t.byte 6,6,6\n\t.align 8\n\t.align 8\nj:\t.long 0xff06";
    let before = format!("\tadd j(%rip),%eax\n\t{K}");
    is_the_same(&among_code(&before, table, ""), TWO_CASES);
}

/// Others name the table, and its bytes stay at its name.
#[test]
fn global_tables_keep_their_bytes() {
    const MAIN: &str = r#"
#include <stdio.h>
extern const unsigned k[];
int f(long, int *, long, int);
int main(void) {
    int a[4] = {1, 20, 300, 4};
    printf("%d %x %x\n", f(0, a, 0, 7), k[0], k[1]);
}
"#;
    let table = |between: &str| {
        format!("\t.globl k\n\t.type k,@object\nk:\n{between}\t.long 0xffffff06,6,7")
    };
    let before = "\tmov %rsi,%rcx";
    is_the_same(&among_code(before, &table(""), ""), MAIN);
    for between in ["\t.protected k\n", "\t.set x,1\n", "\t.ident \"k\"\n"] {
        is_refused(&among_code(before, &table(between), ""), "no");
    }
}
