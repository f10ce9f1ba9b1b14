//! Programs in assembly whose meaning is easily missed: rewritten, each prints what it prints
//! natively, or it is refused for the reason that its test names.

use std::path::Path;
use std::process::Command;

use filetests::assemble;
use svm_rewrite::text::{Source, expand, plainer};
use svm_rewrite::{Options, Scheme, Target};

/// The table and the slow paths, part of each text.
const RUNTIME: &str = include_str!("../../../runtime/platform/process/process.s");

/// Calls `f` for both cases of a table.
const TWO_CASES: &str = r#"
#include <stdio.h>
int f(long, int *, long, int);
int main(void) {
    int a[4] = {1, 20, 300, 4};
    printf("%d %d\n", f(0, a, 0, 7), f(1, a, 0, 7));
}
"#;

/// The text rewritten for a program, or why it is refused. What is refused is taken in plainer
/// form, and with its macros written out, as the command does.
fn rewrite(text: &str) -> Result<String, String> {
    let refused = match rewrite_source(Source::new(text.as_bytes())) {
        Ok(printed) => return Ok(printed),
        Err(refused) => refused,
    };
    let assembled = |text: &[u8]| filetests::is_assembled(text).then(|| assemble(text, &[]));
    if let Some(plainer) = plainer(text.as_bytes(), assembled) {
        return rewrite_source(Source::new(&plainer));
    }
    let Some(mut expansion) = expand(text.as_bytes()) else {
        return Err(refused);
    };
    rewrite_source(Source::expanded(&expansion)).or_else(|refused| {
        expansion.text = plainer(&expansion.text, assembled).ok_or(refused)?;
        rewrite_source(Source::expanded(&expansion))
    })
}

fn rewrite_source((source, marked): (Source<'_>, Vec<u8>)) -> Result<String, String> {
    let said = |refusals: Vec<svm_rewrite::Refusal>| {
        let lines: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    source.check().map_err(said)?;
    let bytes = assemble(&marked, &[]);
    let object = elf_loader::read(&bytes).expect("an object");
    let options = Options::of(Target::Process, Scheme::Stlb);
    let printed = source.rewrite(&object, options).map_err(said)?;
    let printed = String::from_utf8(printed.text).expect("the texts are ASCII");
    Ok(format!("{printed}\n\t.att_syntax\n{RUNTIME}"))
}

/// What the program of a text and of C prints.
fn run(directory: &Path, name: &str, text: &str, main: &str) -> String {
    let at = |extension: &str| directory.join(name).with_extension(extension);
    std::fs::write(at("s"), text).expect("writable");
    std::fs::write(at("c"), main).expect("writable");
    let build = Command::new("gcc")
        .args(["-w", "-O1", "-o"])
        .arg(at("run"))
        .args([at("s"), at("c")])
        .output()
        .expect("`gcc` is installed");
    let errors = String::from_utf8_lossy(&build.stderr);
    assert!(build.status.success(), "{errors}{text}");
    let output = Command::new(at("run")).output().expect("it was built");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        output.status
    )
}

/// Rewritten, it prints the same.
fn is_the_same(text: &str, main: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let native = run(directory.path(), "native", text, main);
    let rewritten = rewrite(text).unwrap_or_else(|refused| panic!("{refused}\n{text}"));
    let twin = run(directory.path(), "twin", &rewritten, main);
    assert_eq!(native, twin, "{text}");
}

/// It is refused with these words.
fn is_refused(text: &str, words: &str) {
    match rewrite(text) {
        Ok(_) => panic!("it is not refused:\n{text}"),
        Err(refused) => assert!(refused.contains(words), "{refused}\n{text}"),
    }
}

/// A function that jumps by a table: its second case, `second`, comes after an access by the
/// same register in the first, which a translation could serve.
fn cases(second: &str, table: &str) -> String {
    format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\n\tlea tbl(%rip),%rax\n\
         \tmov (%rax,%rdi,8),%rax\n\tjmp *%rax\n.Lc0:\n\tmov (%rsi),%ecx\n{second}\n\
         \tmov 4(%rsi),%edx\n\tmov 8(%rsi),%r8d\n\txor %r9d,%r9d\n\txor %r10d,%r10d\n\
         \txor %r11d,%r11d\n\tlea (%rcx,%rdx),%eax\n\tadd %r8d,%eax\n\tret\n\
         \t.size f,.-f\n\t.section .data.rel.ro,\"aw\"\n{table}\n\
         \t.section .note.GNU-stack,\"\",@progbits\n"
    )
}

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
fn comments_between_statements_make_none() {
    let main = "#include <stdio.h>\nlong f(long *);\n\
                int main(void) { long a = 7; printf(\"%ld\\n\", f(&a)); }\n";
    let text = |line: &str| {
        format!(
            "\t.text\n\t.globl f\n\t.type f,@function\nf:{line}\n\tmov %rdi,%rax\n\tret\n\
             \t.size f,.-f\n\t.section .note.GNU-stack,\"\",@progbits\n"
        )
    };
    is_refused_or_the_same(&text("\tfstcw -8(%rsp); mov (%rdi),%rdi;/ comment"), main);
    // `nop` is a statement for the assembler of Debian 12, and not for that of Debian 13.
    let joined = "\tincl %eax /* a\n */ nop; mov (%rdi),%rdi;/ comment";
    is_refused(&text(joined), "a comment begins here, inside a statement");
}

/// What makes two instructions of one line may be refused.
fn is_refused_or_the_same(text: &str, main: &str) {
    match rewrite(text) {
        Ok(_) => is_the_same(text, main),
        Err(refused) => assert!(refused.contains("[statement]"), "{refused}\n{text}"),
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
        // By a frame pointer of another stack.
        "mov %rsi,%rbp\n\tleave\n\tadd %rax,(%rdi)\n\tret",
        "lea 64(%rsi),%rbp\n\tleave\n\tpop %rax\n\tadd %rax,(%rdi)\n\tret",
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
        "push %rsp\n\tpush %rbx\n\tpop %rbx\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rsp\n\tpushf\n\tsub $16,%rsp\n\tadd $16,%rsp\n\tpopf\n\tpop %rsp\n\tadd %rax,(%rdi)\n\tret",
        "push %rbp\n\tmov %rsp,%rbp\n\tpush %rsi\n\tpop %rcx\n\tadd %rax,(%rdi)\n\tleave\n\tadd %rax,(%rdi)\n\tret",
        "mov %rsi,%rbp\n\tadd %rax,(%rbp)\n\tpush %rbx\n\tmov %rsp,%rbp\n\tleave\n\tadd %rax,(%rdi)\n\tret",
    ] {
        let taken = rewrite(&on_another_stack(code));
        assert!(taken.is_ok(), "{code}: {taken:?}");
    }
}

/// What a program's author can do, not a kernel's.
#[test]
fn loads_of_some_elements_are_refused_with_a_way_out() {
    for load in [
        "vpgatherdd %ymm2,(%rdi,%ymm1,4),%ymm0",
        "vpmaskmovd (%rdi),%ymm1,%ymm0",
    ] {
        let text = format!("\t.text\nf:\t{load}\n\tret\n");
        is_refused(&text, "with --accesses stores it stays");
        is_refused(&text, "-mno-avx2 for programs");
    }
}

#[test]
fn bodies_that_are_not_seen_are_refused() {
    let body = "\t.MACRO zero\n\t.ENDM\n\t.MACRO two\n\tnop\n\tnop\n\t.ENDM\n";
    let text = format!(
        "\t.text\n\t.rept 1\n{body}\t.endr\n\t.globl f\nf:\tzero; mov (%rdi),%rdi; two\n\
         \tmov %rdi,%rax\n\tret\n"
    );
    is_refused(&text, "lower case");
    is_refused(
        "\t.text\n\t.rept 1\n\t.include \"/dev/null\"\n\t.endr\nf:\tret\n",
        "what is in the file is not seen here",
    );
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

/// A function that adds up three words of a table among its code, and what stands beside it.
fn among_code(before: &str, table: &str, behind: &str) -> String {
    format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\n\tmov (%rsi),%eax\n{before}\n\
         \tadd (%rcx),%eax\n\tadd 4(%rcx),%eax\n\tadd 8(%rcx),%eax\n\t.byte 0xf3,0xc3\n\
         \t.size f,.-f\n{table}\n{behind}\n\t.section .note.GNU-stack,\"\",@progbits\n"
    )
}

const K: &str = "lea k(%rip),%rcx";

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

/// Their names are not followed: what comes next would be taken for what the last section has.
#[test]
fn other_directives_of_sections_are_refused() {
    for section in [
        ".sect .rodata,\"a\"",
        ".section.s .rodata,\"a\"",
        ".sect.s .rodata",
    ] {
        let text = cases(".Lc1:", &format!("\t{section}\ntbl: .quad .Lc0,.Lc1"));
        is_refused(&text, "write `.section`");
    }
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

/// Each of these went to a table, or read it, by a number: the code had an address of its own.
#[test]
fn tables_of_code_that_has_its_own_address_stay() {
    let table = "\t.align 64\nk:\t.long 0xffffff06,6,7,8,0xff06,9,10,11,0xff06,12";
    let here = |lines: &str| format!("{table}\n\t.align 16\nhere:\t{lines}\n\tret");
    let read = "\tadd 24(%rcx),%eax\n\tadd k(%rip),%eax\n\tmov %rsi,%rcx";
    let called = format!("\tcall here\n{read}");
    let called_globally = format!("\t.globl here\n\tcall here@PLT\n{read}");
    for (before, behind) in [
        // A routine that gives its return address.
        (called.clone(), here("mov (%rsp),%rcx")),
        (called.clone(), here("pop %rcx\n\tpush %rcx")),
        (called.clone(), here("endbr64\n\tmov (%rsp),%rcx")),
        (
            called.clone(),
            here("push %rbx\n\tmov 8(%rsp),%rcx\n\tpop %rbx"),
        ),
        (
            called.clone(),
            here("sub $8,%rsp\n\tadd $8,%rsp\n\tpop %rcx\n\tpush %rcx"),
        ),
        (
            called.clone(),
            here("push %rbp\n\tmov %rsp,%rbp\n\tmov 8(%rbp),%rcx\n\tpop %rbp"),
        ),
        (
            called.clone(),
            here("mov %rsp,%rcx\n\tadd $-8,%rcx\n\tmov 8(%rcx),%rcx"),
        ),
        (
            called.clone(),
            here("lea -16(%rsp),%rcx\n\tmov 16(%rcx),%rcx"),
        ),
        (
            called.clone(),
            here("jmp 1f\n\tint3\n1:\tmovq (%rsp),%xmm0\n\tmovq %xmm0,%rcx"),
        ),
        (called.clone(), here("xchg %rcx,(%rsp)\n\txchg %rcx,(%rsp)")),
        (
            called.clone(),
            here("mov %rsi,%r8\n\tmov %rsp,%rsi\n\tmov (%rsi),%rcx\n\tmov %r8,%rsi"),
        ),
        (
            called.clone(),
            here("xor %edx,%edx\n\tmov (%rsp,%rdx,8),%rcx"),
        ),
        (
            called.clone(),
            here("mov %rsp,%r8\n\tmov %rsp,%r9\n\tmov (%r8),%rcx"),
        ),
        (
            called.clone(),
            here(
                "mov %rsi,%r8\n\tmov %rax,%r9\n\tmov %rsp,%rsi\n\tlodsq\n\tmov %rax,%rcx\n\tmov %r8,%rsi\n\tmov %r9,%rax",
            ),
        ),
        (
            called.clone(),
            here("push %rsp\n\tpop %r8\n\tmov (%r8),%rcx"),
        ),
        (called_globally, here("mov (%rsp),%rcx")),
        // Its own place, in several forms.
        (format!("\tlea (%rip),%rcx\n{read}"), table.to_owned()),
        (format!("\tlea .(%rip),%rcx\n{read}"), table.to_owned()),
        (
            format!("\t.byte 0x48,0x8d,0x0d,0,0,0,0\n{read}"),
            table.to_owned(),
        ),
        (
            format!("\tmov %rax,%r8\n\tmov $39,%eax\n\tsyscall\n\tmov %r8,%rax\n{read}"),
            table.to_owned(),
        ),
        (
            format!("\tfldz\n\tfnstenv -40(%rsp)\n\tmov -28(%rsp),%ecx\n{read}"),
            table.to_owned(),
        ),
        // From data, as an address or as a distance.
        (
            format!("\tmov p(%rip),%rcx\n{read}"),
            format!("{table}\n\t.data\np:\t.quad f"),
        ),
        (
            format!("\tlea p(%rip),%rcx\n\tadd (%rcx),%rcx\n{read}"),
            format!("{table}\n\t.section .rodata\np:\t.quad f-p"),
        ),
        // It reads beyond an end: the table's, and its own.
        (
            "\tmovdqu k(%rip),%xmm0\n\tpextrw $7,%xmm0,%eax\n\tmov %rsi,%rcx".to_owned(),
            "\t.align 16\nk:\t.long 0xff06,1,2\n\t.align 16\ng:\tret".to_owned(),
        ),
        (
            "\tadd e(%rip),%eax\n\tmov %rsi,%rcx".to_owned(),
            "e:\tret\nk:\t.byte 6,6,6,6,6,6,6".to_owned(),
        ),
    ] {
        is_refused(&among_code(&before, &behind, ""), "no");
    }
    // A routine that is called, and uses its own frame alone.
    for lines in [
        "nop",
        "push %rbx\n\tmov (%rsp),%rbx\n\tpop %rbx",
        "mov %rsp,%r8\n\tsub $64,%rsp\n\tand $-64,%rsp\n\tmov %rcx,(%rsp)\n\tmov %r8,%rsp",
        "push %rbp\n\tmov %rsp,%rbp\n\tmov %rcx,-8(%rbp)\n\tmov 16(%rbp),%r8\n\tleave",
    ] {
        let before = format!("\tcall here\n\t{K}");
        is_the_same(&among_code(&before, &here(lines), ""), TWO_CASES);
    }
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

/// Nearly each of these computed something else when its table was moved.
#[test]
fn tables_that_are_reached_otherwise_than_by_their_labels_stay() {
    const CODE: &str = "k:\t.byte 0x31,0xc0,0xff,0xc0,0xc3,6,6,6,6,6,6,6";
    let call = |lea: &str| format!("\t{lea}\n\tsub $8,%rsp\n\tcall *%rcx\n\tadd $8,%rsp\n\tret");
    let aligned = "\t.align 16\nk:\t.long 0xffffff06,6,7,8";
    let g = "\t.align 16\ng:\tmov $5,%eax\n\tret";
    for (before, table, behind) in [
        // Code behind it, and in it.
        (call("lea k+16(%rip),%rcx"), aligned, g),
        (
            call("lea k+4(%rip),%rcx"),
            "k:\t.long 0xffffff06\n\t.byte 0xb8,9,0,0,0,0xc3",
            "",
        ),
        // Code, whose address is taken unseen, or that claims to be an object.
        (call("mov k@GOTPCREL(%rip),%rcx"), CODE, ""),
        (call("LEA k(%rip),%rcx"), CODE, ""),
        (call("{disp32} lea k(%rip),%rcx"), CODE, ""),
        (
            call("lea k(%rip),%rcx"),
            "\t.type k,@object\n\t.size k,12\nk:\t.byte 0x31,0xc0,0xc3,6,6,6,6,6,6,6,6,6",
            "",
        ),
        // In it, by an address that is added to.
        (
            call("lea k(%rip),%rcx\n\tadd $4,%rcx"),
            "k:\t.byte 6,6,6,6,0x31,0xc0,0xc3,6,6,6,6,6",
            "",
        ),
        (
            "\tlea k(%rip),%rcx\n\tadd $4,%rcx\n\tpush %rcx\n\tret".to_owned(),
            "k:\t.byte 6,6,6,6,0x31,0xc0,0xc3,6,6,6,6,6",
            "",
        ),
        // It has the letters of an object's type in its name.
        (
            call("lea object(%rip),%rcx"),
            "\t.globl object\n\t.type object,@function\nobject:\t.byte 0x31,0xc0,0xc3\nk:\t.long 0xff06",
            "",
        ),
        // Others may call what is returned, or stored.
        ("\tlea k(%rip),%rax\n\tret".to_owned(), CODE, ""),
        (
            "\tlea k(%rip),%rcx\n\tmov %rcx,(%rsi)\n\tret".to_owned(),
            CODE,
            "",
        ),
        // By a distance, in code or in a table elsewhere.
        (
            call("lea k(%rip),%rcx\n\tadd $j-k,%rcx"),
            "k:\t.long 0xffffff06\nj:\t.byte 0x31,0xc0,0xc3,6,6,6,6,6",
            "",
        ),
        (
            call("lea p(%rip),%rcx\n\tmovslq (%rcx),%rdx\n\tadd %rdx,%rcx"),
            CODE,
            "\t.section .rodata\np:\t.long k-p",
        ),
        // By the address of code.
        (
            "\tlea f(%rip),%rcx\n\tadd 16(%rcx),%eax".to_owned(),
            aligned,
            "",
        ),
        (
            "\tcall 1f\n1:\tpop %rcx\n\tadd 20(%rcx),%eax".to_owned(),
            aligned,
            "",
        ),
        (
            "\tlea g(%rip),%rcx\n\tadd -4(%rcx),%eax\n\tadd k(%rip),%eax".to_owned(),
            aligned,
            "\t.align 16\n\t.globl x\nx:\ng:\tret",
        ),
        (
            "\tlea g(%rip),%rcx\n\tadd -4(%rcx),%eax\n\tadd k(%rip),%eax".to_owned(),
            aligned,
            "\t.data\n\t.long 1\n\t.text\ng:\tret",
        ),
        // By its neighbour's.
        (
            "\tadd l-4(%rip),%eax\n\tadd k(%rip),%eax\n\tmov %rsi,%rcx".to_owned(),
            aligned,
            "\t.align 16\n\t.globl x\nx:\tret\n\t.align 16\nl:\t.long 6",
        ),
        // Written, in a page that the code makes writable by its own address.
        (
            "\tmov %eax,k(%rip)\n\tmov %rsi,%rcx".to_owned(),
            aligned,
            "",
        ),
        (
            "\txchg k(%rip),%eax\n\tmov %rsi,%rcx".to_owned(),
            aligned,
            "",
        ),
        (
            "\tlock cmpxchg %edx,k(%rip)\n\tmov %rsi,%rcx".to_owned(),
            aligned,
            "",
        ),
    ] {
        is_refused(&among_code(&before, table, behind), "no");
    }
}

/// Each of these found its own address on the stack, or in a register that it came to by way of it.
#[test]
fn tables_of_code_that_sees_its_return_address_stay() {
    let table = "\t.align 64\nk:\t.long 0xffffff06,6,7,8,0xff06,9,10,11,0xff06,12";
    let read = "\tadd 24(%rcx),%eax\n\tadd k(%rip),%eax\n\tmov %rsi,%rcx";
    let called = |call: &str, lines: &str| {
        let behind = format!("{table}\n\t.align 16\nhere:\t{lines}\n\tret");
        is_refused(&among_code(&format!("\t{call}\n{read}"), &behind, ""), "no");
    };
    // Its place goes through what is no sum.
    for place in [
        "xor %r8d,%r8d\n\tcmp %r8d,%r8d\n\tcmove %rsp,%r8",
        "xor %r8d,%r8d\n\tlea (%rsp,%r8),%r8",
        "xor %r8d,%r8d\n\tadd %rsp,%r8",
        "xor %r8d,%r8d\n\tor %rsp,%r8",
        "mov %rsp,%r9\n\txchg %r8,%r9",
        "xor %r9d,%r9d\n\tmov %rsp,%r8\n\txadd %r9,%r8",
        "mov %rsp,%r8\n\tbswap %r8\n\tbswap %r8",
        "mov %rsp,%r8\n\trol $32,%r8\n\tror $32,%r8",
        "mov %rsp,%r8\n\tneg %r8\n\tneg %r8",
        "mov %rsp,%r8\n\tnot %r8\n\tnot %r8",
        "mov %rsp,%r8\n\tmov $-1,%r9\n\tpext %r9,%r8,%r8",
        "movq %rsp,%xmm0\n\tmovq %xmm0,%r8",
        "mov %rsp,-16(%rsp)\n\tmov -16(%rsp),%r8",
        "mov %rsp,%r8\n\ttest %edi,%edi\n\tjz 1f\n\tmov %rsi,%r8\n1:",
    ] {
        called("call here", &format!("{place}\n\tmov (%r8),%rcx"));
    }
    // The stack goes back to it.
    for lines in [
        "push %rbp\n\tmov %rsp,%rbp\n\tsub $32,%rsp\n\tleave\n\tmov (%rsp),%rcx",
        "mov %rbp,%r8\n\tmov %rsp,%rbp\n\tleave\n\tmov %rbp,%rcx\n\tpush %rbp\n\tmov %r8,%rbp",
        "enter $16,$0\n\tmov 8(%rbp),%rcx\n\tleave",
        "inc %rsp\n\tmov -1(%rsp),%rcx\n\tdec %rsp",
        "xor %r8d,%r8d\n\tsub %r8,%rsp\n\tpop %rcx\n\tpush %rcx",
        "mov %rsp,%r8\n\tand $-16,%rsp\n\tmov 8(%rsp),%rcx\n\tmov %r8,%rsp",
        "push %rsi\n\tpush %rsi\n\tmov $2,%r8d\n1:\tpop %r9\n\tdec %r8d\n\tjnz 1b\n\tmov (%rsp),%rcx",
        "test %edi,%edi\n\tjz 1f\n\tpush %rsi\n1:\tmov (%rsp),%rcx\n\ttest %edi,%edi\n\tjz 2f\n\tpop %r8\n2:",
        "mov %rsp,%r8\n\txor %edx,%edx\n\tmov (%r8,%rdx),%rcx",
        "mov %rsp,%r8\n\txor %edx,%edx\n\tmov (%rdx,%r8),%rcx",
        "mov %rbx,%r9\n\tmov %rax,%r10\n\tmov %rsp,%rbx\n\txlatb\n\tmov %r9,%rbx\n\tmov %r10,%rax",
        // More steps than are followed.
        "mov %rsp,%r8\n\tsub $1024,%r8\n1:\tadd $8,%r8\n\tcmp %rsp,%r8\n\tjne 1b\n\tmov (%r8),%rcx",
    ] {
        called("call here", lines);
    }
    // The caller says where it will be, or finds it there later.
    called("lea -8(%rsp),%r8\n\tcall here", "mov (%r8),%rcx");
    called("mov %rsp,%r8\n\tcall here", "mov -8(%r8),%rcx");
    called("call here\n\tmov -8(%rsp),%rcx", "nop");
    called("call here\n\tsub $8,%rsp\n\tpop %rcx", "nop");
    called(
        "mov $8,%r8d\n\tcall here\n\tlea -16(%rsp,%r8),%rsp\n\tpop %rcx",
        "nop",
    );
    called(
        "push %rsi\n\tcall abs@PLT\n\tmov -8(%rsp),%rcx\n\tpop %rsi",
        "nop",
    );
    // What was pushed, or stored, over it is something else.
    let behind = format!("{table}\n\t.align 16\nhere:\tnop\n\tret");
    let over = "\tcall here\n\tpush %rsi\n\tpop %rcx\n\tadd k(%rip),%eax";
    is_the_same(&among_code(over, &behind, ""), TWO_CASES);
}

/// Others tell it: the state that is saved, tables of unwinders.
#[test]
fn tables_of_code_that_is_told_its_address_stay() {
    let table = "\t.align 64\nk:\t.long 0xffffff06,6,7,8,0xff06,9,10,11,0xff06,12";
    let read = "\tadd 24(%rcx),%eax\n\tadd k(%rip),%eax\n\tmov %rsi,%rcx";
    for save in ["fxsave64", "xsave64", "xsavec64", "xsaveopt64"] {
        let before = format!("\t{save} -832(%rsp)\n\tmov -824(%rsp),%rcx\n{read}");
        is_refused(&among_code(&before, table, ""), "no");
    }
    let frames = "\t.section .eh_frame,\"a\",@progbits\n\t.long 16,0\n\
                  .byte 1,0,1,0x78,16,0,0,0,0,0,0,0\n\t.long 12,24\n.Lp:\t.long f-.Lp,4\n";
    let before = format!("\tlea .Lp(%rip),%rcx\n\tmovslq (%rcx),%rdx\n\tadd %rdx,%rcx\n{read}");
    is_refused(&among_code(&before, table, frames), "no");
    // An unwinder runs it.
    let routine = "k:\t.byte 0xb8,8,0,0,0,0xc3,6,6";
    let text = among_code("\tmov %rsi,%rcx", routine, "");
    let text = text.replace("f:\n", "f:\n\t.cfi_startproc\n\t.cfi_personality 0x1b,k\n");
    is_refused(
        &text.replace("\t.size f", "\t.cfi_endproc\n\t.size f"),
        "no",
    );
}

/// A return goes to what was pushed, whatever stands between.
#[test]
fn tables_that_a_return_goes_to_stay() {
    let code = "k:\t.byte 6,6,6,6,0x31,0xc0,0xc3,6,6,6,6,6";
    for go in [
        "push %rcx\n\tnop\n\tret",
        "push %rcx\n\tnop\n\tret $0",
        "push %rcx\n\tjmp 1f\n1:\tret",
        "mov %rcx,-8(%rsp)\n\tsub $8,%rsp\n\tret",
        "movq %rcx,%xmm0\n\tsub $8,%rsp\n\tmovq %xmm0,(%rsp)\n\tnop\n\tret",
        "mov %rcx,-32(%rsp)\n\tpush -32(%rsp)\n\tnop\n\tret",
    ] {
        let before = format!("\tlea k(%rip),%rcx\n\tadd $4,%rcx\n\t{go}");
        is_refused(&among_code(&before, code, ""), "no");
    }
}
