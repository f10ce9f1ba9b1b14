//! Assembly text that would mean something else in rewritten text: refused, with its line.

use std::process::Command;

use crate::sandbox::Sandbox;

/// Lines from the third on, the line that is refused, and words of the reason.
const REFUSED: [(&str, u32, &str); 43] = [
    // The address is computed again by the slow path, behind the function.
    ("mov 1f(%rdi), %rax\n1:", 3, "by a place in the text"),
    ("nop\n1: mov 1b(%rdi), %rax", 4, "by a place in the text"),
    ("mov .+16(%rdi), %rax", 3, "by a distance"),
    (
        ".set p, a\nmov p(%rdi), %rax\n.set p, b",
        4,
        "several values",
    ),
    ("p = a\nmov p+8(%rdi), %rax\np = b", 4, "several values"),
    (
        ".macro to v\n.set p, \\v\n.endm\nto a\nmov p(%rdi), %rax\nto b",
        7,
        "several values",
    ),
    // Code in between becomes longer.
    ("lea .+16(%rip), %rax", 3, "by a distance"),
    ("lea 5(%rip), %rax", 3, "by a distance"),
    ("lea f+1(%rip), %rax", 3, "by a distance"),
    ("movabs $f+1, %rax", 3, "by a distance"),
    ("movabs $.+10, %rax", 3, "by a distance"),
    (".byte 0x48, 0x8d, 0x05, 5, 0, 0, 0", 3, "by a distance"),
    // A line that stays has the new length, a sequence the old one.
    ("1: nop\n2: movb $(2b-1b), (%rdi)", 4, "a length of code"),
    ("1: nop\n2: mov 2b-1b(%rdi), %rax", 4, "a length of code"),
    (
        ".set n, 2f-1f\n1: nop\n2: movl $n, (%rdi)",
        5,
        "a length of code",
    ),
    (
        ".set n, m+1\n.set m, 2f-1f\n1: nop\n2: movl $n, (%rdi)",
        6,
        "a length of code",
    ),
    (
        "1: nop\n2: cmp $(2b-1b), %ecx\nmov %rax, (%rdi)\nja f",
        4,
        "a length of code",
    ),
    (
        "\"a b\": nop\n\"c\": movb $(\"c\"-\"a b\"), (%rdi)",
        4,
        "a length of code",
    ),
    // A table of jumps that go behind an instruction at the label.
    ("1: nop\n.data\n2: .long 1b+2-2b\n.text", 5, "by a distance"),
    ("1: nop\n2: add $(1b+2-2b), %rax", 4, "by a distance"),
    (
        ".macro e l, n\n.long \\l+\\n-f\n.endm\nmov (%rdi), %rax\n.data\ne f, 2\n.text",
        8,
        "by a distance",
    ),
    // The same with a distance that is scaled, and what depends on how long code is.
    ("1: nop\n.data\n.long (1b-f)/4\n.text", 5, "more than a sum"),
    ("1: nop\n2: add $((2b-1b) > 3), %rax", 4, "more than a sum"),
    (
        ".set n, (1f-f) > 3\nmov (%rdi), %rax\n1: add $n, %rax",
        3,
        "more than a sum",
    ),
    (
        "1: nop\n.data\n.fill (1b-f)*2, 8, 5\n.text",
        5,
        "more than a sum",
    ),
    (
        "1: nop\n.data\n.dcb.b (1b-f)*2, 5\n.text",
        5,
        "more than a sum",
    ),
    (
        ".macro e l\n.long (\\l-f)>>2\n.endm\nmov (%rdi), %rax\n.data\ne f\n.text",
        8,
        "more than a sum",
    ),
    // Bytes of a replaced instruction.
    (
        "1: mov 0x1000(%rdi), %rax\n.reloc 1b+3, R_X86_64_32S, a",
        4,
        "changes bytes",
    ),
    // What a word stands for is said elsewhere.
    (".include \"macros.inc\"\nload a(%rdi), %rax", 3, "macros"),
    (
        ".macro def n\n.macro \\n p\nmov 8+\\p, %rax\n.endm\n.endm\n.altmacro",
        4,
        "made by another macro",
    ),
    (".altmacro\n.noaltmacro", 3, "other rules"),
    (".code32\nnop\n.code64", 3, "another mode"),
    (".code16gcc\nnop\n.code64", 3, "another mode"),
    (".intel_mnemonic", 3, "other names"),
    (".INTEL_SYNTAX noprefix", 3, "lower case"),
    (".IF 0\nnonsense\n.ENDIF", 3, "lower case"),
    // The runtime is appended.
    (".data\ntwin_stlb: .quad 1\n.text", 4, "twin's runtime"),
    (".comm twin_slow_rax,8,8", 3, "twin's runtime"),
    // clang's, before or in each function.
    ("ret\n.long 846595819", 4, "-fno-sanitize=function"),
    // What lifting refuses has its line, too.
    ("nop\njmp f+2", 4, "no instruction"),
    ("nop; nop\nmov (%rdi), %rax\njmp f+3", 5, "no instruction"),
    (
        ".macro m\nmov (%rdi), %rax\n.endm\nm\n jmp f+1",
        7,
        "no instruction",
    ),
    ("nop\n.byte 0x06", 4, ""),
];

/// What is like these and is accepted.
const ACCEPTED: [&str; 16] = [
    // A line that stays is counted again.
    "1: nop\n2: mov $(2b-1b), %ecx",
    // A length of data does not change.
    "movl $(.Le-.Ls), (%rdi)\nret\n.data\n.Ls: .quad 0\n.Le: .text",
    "mov a(%rdi), %rax",
    ".set p, a\nmov p+8(%rdi), %rax",
    ".set n, 8\nmov n(%rdi), %rax\n.set n, 16\nmov n(%rdi), %rax",
    "movq $1f, 8(%rdi)\n1:",
    "lea (%rip), %rax",
    "lea f(%rip), %rax",
    "lea 1f(%rip), %rax\n1:",
    ".reloc ., R_X86_64_NONE, a",
    ".macro Load p, q\nmov 8+\\p, \\q\n.endm\nload a(%rdi), %rax",
    "movb $',', a(%rdi)",
    ".set ptr, %rdi\nmov a(ptr), %eax",
    ".att_syntax noprefix\nmov a(rdi), eax\nmov eax, a(rdi)",
    "call \"p q+1\"\nlea \"p q+1\"(%rip), %rax\nret\n\"p q+1\": nop",
    ".data\n.long 846595819\n.text",
];

fn text(body: &str) -> String {
    format!(
        "\t.text\nf:\n{body}\n\tret\n\t.data\na:\t.quad 1, 2, 3\nb:\t.quad 4, 5, 6\n\
         \t.section .note.GNU-stack,\"\",@progbits\n"
    )
}

#[test]
fn what_depends_on_its_place_is_refused_with_its_line() {
    let sandbox = Sandbox::new();
    sandbox.write("macros.inc", ".macro load p, q\nmov 8+\\p, \\q\n.endm\n");
    for target in ["process", "linux"] {
        for (body, line, words) in REFUSED {
            sandbox.write("f.s", text(body));
            let answer = sandbox.run(&["rewrite", "--target", target, "f.s", "-o", "out.s"]);
            let said = &answer.stderr;
            assert_eq!(answer.status, 1, "{target}: {body}: {said}");
            let place = format!("f.s: line {line}: ");
            let first = said.lines().next().unwrap_or_default();
            assert!(first.starts_with(&place), "{target}: {body}: {said}");
            assert!(first.contains(words), "{target}: {body}: {said}");
            assert!(!said.contains("internal"), "{target}: {body}: {said}");
            assert!(!sandbox.path("out.s").exists(), "{target}: {body}");
        }
    }
}

#[test]
fn what_names_labels_is_accepted() {
    let sandbox = Sandbox::new();
    for body in ACCEPTED {
        sandbox.write("f.s", text(body));
        let answer = sandbox.run(&["rewrite", "--target", "process", "f.s", "-o", "out.s"]);
        assert_eq!(answer.status, 0, "{body}: {}", answer.stderr);
        let mut assembler = Command::new("as");
        assembler
            .args(["out.s", "-o", "out.o"])
            .current_dir(sandbox.path(""));
        let assembled = assembler.status();
        assert!(assembled.expect("binutils").success(), "{body}");
    }
}

/// The macro's name is in other letters where it is used, and its body is what counts.
#[test]
fn names_of_macros_are_compared_as_the_assembler_does() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "f.s",
        "\t.text\n\t.globl f\nf:\n\t.macro Load p, q\n\tmov 8+\\p, \\q\n\t.endm\n\
         \tLOAD a(%rdi), %rax\n\tret\n\t.data\na:\t.quad 1, 7\n\
         \t.section .note.GNU-stack,\"\",@progbits\n",
    );
    sandbox.write("main.c", "int f(long); int main(void) { return f(0); }\n");
    let answer = sandbox.run(&["rewrite", "f.s", "-o", "twin.s"]);
    assert_eq!(answer.status, 0, "{}", answer.stderr);
    crate::cc::done(&crate::cc::gcc(
        &sandbox,
        "-no-pie main.c twin.s -o program",
    ));
    assert_eq!(crate::cc::run(&sandbox, "program").0, Some(7));
}
