//! Control flow that only metadata or private conventions show, tested through
//! liveness: a register that is read on one of these paths must not be a scratch
//! register of a site before it.

use filetests::assemble;
use svm_rewrite::{Options, Scheme, Site, rewrite};
use svm_verify::Contract;

/// The sites of `body`, which is put into a global function `f`.
fn sites(body: &str) -> Vec<Site> {
    let source = format!("\t.text\n\t.globl f\n\t.type f,@function\nf:\n{body}\n\t.size f,.-f\n");
    let bytes = assemble(&source, &[]);
    let object = elf_loader::read(&bytes).expect("a readable object");
    let options = Options {
        report: true,
        ..Options::new(Scheme::Stlb)
    };
    let rewritten = rewrite(&object, options).unwrap_or_else(|r| panic!("{}", r[0]));
    svm_verify::verify(
        &rewritten.object,
        Contract::of(svm_verify::Target::Hypervisor).with(svm_verify::Scheme::Stlb),
    )
    .unwrap_or_else(|v| panic!("{v:#?}"));
    rewritten.sites
}

fn site<'s>(sites: &'s [Site], instruction: &str) -> &'s Site {
    sites
        .iter()
        .find(|s| s.instruction == instruction)
        .unwrap_or_else(|| panic!("no site `{instruction}` in {sites:#?}"))
}

/// Reads every register that sequences prefer, so that few are dead.
const READ_MOST: &str = "add %rcx,%rax; add %rdx,%rax; add %rsi,%rax; add %rdi,%rax
    add %r8,%rax; add %r9,%rax; add %r11,%rax";

fn assert_kept(site: &Site, register: &str) {
    let overwritten = site.scratch.contains(&register) && !site.spills.contains(&register);
    assert!(
        !overwritten,
        "{register} is read later, yet overwritten: {site:#?}"
    );
}

#[test]
fn a_dead_register_is_used_where_nothing_reads_it() {
    let sites = sites(&format!("mov (%rdi),%rax\n{READ_MOST}\nret"));
    assert_eq!(site(&sites, "mov (%rdi),%rax").scratch, ["rax", "r10"]);
}

#[test]
fn a_register_kept_over_a_local_call() {
    // As gcc's -fipa-ra does when it sees that g leaves r10 alone.
    let sites = sites(&format!(
        "mov $7,%r10d\ncall g\nadd %r10,%rax\nret
        .type g,@function\ng:\nmov (%rdi),%rax\n{READ_MOST}\nret\n.size g,.-g"
    ));
    assert_kept(site(&sites, "mov (%rdi),%rax"), "r10");
}

#[test]
fn a_static_branch_at_both_widths() {
    for nop in [".byte 0x0f,0x1f,0x44,0,0", ".byte 0x66,0x90"] {
        let sites = sites(&format!(
            "mov (%rdi),%rax\n1: {nop}\n{READ_MOST}\nret\n2: mov %r10,%rax\nret
            .pushsection __jump_table,\"aw\"\n.balign 8
            .long 1b-., 2b-.\n.quad key-.\n.popsection"
        ));
        assert_kept(site(&sites, "mov (%rdi),%rax"), "r10");
    }
}

#[test]
fn an_exception_fixup_sees_registers_from_before_the_fault() {
    let sites = sites(
        "mov %rsi,%rax\n1: mov (%rdi),%rax\nret\n2: ret
        .pushsection __ex_table,\"a\"\n.long 1b-., 2b-., 1\n.popsection",
    );
    assert_kept(site(&sites, "mov (%rdi),%rax"), "rax");
}

#[test]
fn the_replacement_of_an_alternative() {
    let sites = sites(&format!(
        "mov (%rdi),%rax\n1: nop; nop; nop\n2:\n{READ_MOST}\nret
        .pushsection .altinstructions,\"a\"
        .long 1b-., 3f-.\n.word 1\n.byte 2b-1b, 4f-3f\n.popsection
        .pushsection .altinstr_replacement,\"ax\"\n3: mov %r10,%rax\n4:\n.popsection"
    ));
    assert_kept(site(&sites, "mov (%rdi),%rax"), "r10");
}

#[test]
fn a_cold_part_entered_in_its_middle() {
    let sites = sites(&format!(
        "mov (%rdi),%rax\ntest %rax,%rax\njs 1f\n{READ_MOST}\n2: ret
        .pushsection .text.unlikely,\"ax\"\n.type f.cold,@function\nf.cold:\nxor %eax,%eax
        1: mov %r10,%rax\njmp 2b\n.size f.cold,.-f.cold\n.popsection"
    ));
    assert_kept(site(&sites, "mov (%rdi),%rax"), "r10");
}

#[test]
fn a_warning_goes_on_and_a_bug_does_not() {
    let body = |flags: u32| {
        format!(
            "mov (%rdi),%rax\ntest %rax,%rax\njne 2f\n1: ud2\nmov %r10,%rax\nret\n2:\n{READ_MOST}\nret
            .pushsection __bug_table,\"aw\"\n.long 1b-., 0\n.word 1, {flags}\n.popsection"
        )
    };
    assert_kept(site(&sites(&body(1)), "mov (%rdi),%rax"), "r10");
    assert!(
        site(&sites(&body(0)), "mov (%rdi),%rax")
            .scratch
            .contains(&"r10")
    );
}

#[test]
fn what_follows_a_call_that_does_not_return() {
    let sites = sites(&format!(
        "sub $8,%rsp\nmov (%rdi),%rax\ntest %rax,%rax\njne 1f\ncall __stack_chk_fail
        mov %r10,%rax\n1:\n{READ_MOST}\nadd $8,%rsp\nret"
    ));
    assert!(site(&sites, "mov (%rdi),%rax").scratch.contains(&"r10"));
}

#[test]
fn what_follows_a_call_of_a_local_function_that_does_not_return() {
    let source = |ending: &str| {
        format!(
            "sub $8,%rsp\nmov (%rdi),%rax\ntest %rax,%rax\njne 1f\ncall g
            mov %r10,%rax\n1:\n{READ_MOST}\nadd $8,%rsp\nret
            .type g,@function\ng: sub $8,%rsp\ncall h\n{ending}\n.size g,.-g
            .type h,@function\nh: sub $8,%rsp\ncall panic\n.size h,.-h"
        )
    };
    let silent = sites(&source(""));
    assert!(site(&silent, "mov (%rdi),%rax").scratch.contains(&"r10"));
    // The same with a way back.
    let returning = sites(&source("add $8,%rsp\nret").replace("call panic", "add $8,%rsp\nret"));
    assert_kept(site(&returning, "mov (%rdi),%rax"), "r10");
}

#[test]
fn a_tail_jump_keeps_arguments() {
    let sites = sites("cmpl $0,(%rdi)\njmp g");
    for argument in ["rdi", "rsi", "rdx", "rcx", "r8", "r9"] {
        assert_kept(site(&sites, "cmpl $0,(%rdi)"), argument);
    }
}
