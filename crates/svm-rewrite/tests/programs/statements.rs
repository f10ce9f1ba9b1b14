//! Statements that may be misread, or have no translation.

use crate::run::{cases, is_refused, is_the_same, rewrite};

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

/// What stays of other instructions of a frame stays of these.
#[test]
fn some_elements_of_a_frame_are_reached_by_its_pointer() {
    let framed = |code: &str| {
        let frame = "push %rbp\n\tmov %rsp,%rbp\n\tsub $128,%rsp";
        format!("\t.text\n\t.globl f\nf:\t{frame}\n\t{code}\n\tleave\n\tret\n")
    };
    for code in [
        "vmovdqu8 %zmm0,-64(%rbp){%k1}",
        "vpmaskmovd -64(%rbp),%ymm1,%ymm0",
        "vmovups -64(%rsp),%zmm0{%k1}{z}",
    ] {
        let text = framed(code);
        let rewritten = rewrite(&text).expect(code);
        assert!(
            rewritten.contains(&format!("\t{code}\n\tleave")),
            "{rewritten}"
        );
    }
    // It is none there.
    for (code, reason) in [
        ("vmovdqu8 %zmm0,-64(%rbp){%k1}", "masked-out elements"),
        (
            "vpmaskmovd -64(%rbp),%ymm1,%ymm0",
            "with --accesses stores it stays",
        ),
    ] {
        for other in [
            "mov %rdi,%rbp",
            "test %edi,%edi\n\tje 1f\n\tmov %rdi,%rbp\n1:",
        ] {
            let text = framed(&format!("{other}\n\t{code}\n\tmov %rsp,%rbp"));
            is_refused(&text, reason);
        }
        is_refused(&framed(&code.replace("rbp", "rdi")), reason);
    }
    is_refused(
        &framed("vpgatherdd %ymm2,(%rbp,%ymm1,4),%ymm0"),
        "many places",
    );
}

/// Assemblers have no names for comparisons that are never or always true.
#[test]
fn comparisons_are_printed_with_their_numbers() {
    for comparison in [
        "vpcmpub $3,(%rdi),%zmm1,%k1",
        "vpcmpq $7,(%rdi){1to8},%zmm1,%k1",
        "vcmppd $29,(%rdi),%ymm1,%ymm0",
        "cmpps $2,(%rdi),%xmm0",
    ] {
        let text = format!("\t.text\n\t.globl f\nf:\t{comparison}\n\tret\n");
        let rewritten = rewrite(&text).expect(comparison);
        assert!(filetests::is_assembled(rewritten.as_bytes()), "{rewritten}");
    }
}

/// pcc leaves functions that nobody calls, without a type.
#[test]
fn strings_in_code_that_no_path_reaches_are_rewritten() {
    let text = |unreached: &str| {
        format!("\t.text\n\t.globl f\n\t.type f,@function\nf:\tret\n{unreached}\tret\n")
    };
    for code in ["g:\tmovsw\n", "g:\tstd\n\tmovsb\n\tcld\n"] {
        let rewritten = rewrite(&text(code)).expect(code);
        assert!(rewritten.contains("# twin: movs"), "{rewritten}");
    }
    let both = "g:\ttest %edi,%edi\n\tje 1f\n\tstd\n1:\tmovsb\n\tcld\n";
    is_refused(&text(both), "the direction flag is not known here");
}

/// What runs on into code that is reached does not change what is known there.
#[test]
fn code_that_no_path_reaches_does_not_change_what_follows() {
    let text = "\t.text\n\t.globl f\n\t.type f,@function\nf:\tjmp 1f\n\tstd\n\tsub $8,%rsp\n\
                1:\tmovsb\n\tret\n\t.size f,.-f\n";
    assert!(rewrite(text).is_ok());
}

#[test]
fn strings_among_code_are_refused_as_data() {
    let text = "\t.text\n\t.globl f\n\t.type f,@function\nf:\tjmp 1f\n\t.ascii \"param\"\n\
                1:\tmov (%rdi),%eax\n\tret\n\t.size f,.-f\n";
    let refused = rewrite(text).expect_err("a string");
    let said = "line 5: .text+0x2: in f+0x2: a string among code, which is read as instructions \
                [undecodable]; keep data out of code sections";
    assert!(refused.starts_with(said), "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");
}

#[test]
fn unwind_information_that_is_not_followed_is_refused_with_a_remedy() {
    let text = |directives: &str| {
        format!("\t.text\nf:\t.cfi_startproc\n{directives}\tret\n\t.cfi_endproc\n")
    };
    let frame = "\t.cfi_escape 0xf,3,0x76,0x68,6\n";
    let changed = text(&format!("{frame}\t.cfi_def_cfa_offset 16\n"));
    is_refused(
        &changed,
        "name the register again, too (.cfi_def_cfa) [statement]; write it as plain AT&T instructions and directives",
    );
    let named = text(&format!("{frame}\t.cfi_def_cfa rsp,16\n"));
    assert!(rewrite(&named).is_ok());
    is_refused(
        &text("\t.cfi_escape 0x0e,16\n"),
        "use the directive that says the same",
    );
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

#[test]
fn names_may_be_empty() {
    let text = |line: &str| format!("\t.text\nf:\tmov (%rdi),%rax\n\tret\n{line}\n");
    assert!(rewrite(&text("\t.data\n\t.byte 1,\"\",2")).is_ok());
    let body = "\t.macro m n\n\\n:\n:\n\t.endm\n\t.align 8\n\t.long 6,6";
    // Taken or refused: it ends.
    let _ = rewrite(&text(body));
}
