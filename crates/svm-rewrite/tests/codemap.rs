//! Which functions a pointer may call: those whose address is taken, however code names it.

use filetests::assemble;
use svm_rewrite::{Options, Scheme, rewrite};

/// Bytes of an entry.
const ENTRY: usize = 16;

/// How many functions are in the codemap of `f` with this body, and of a local function `g`.
fn entries(body: &str) -> usize {
    let source = format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\n{body}\n\t.size f,.-f\n\
         \t.type g,@function\ng:\tmov $1,%eax\n\tret\n\t.size g,.-g\n"
    );
    let bytes = assemble(&source, &[]);
    let object = elf_loader::read(&bytes).expect("a readable object");
    let rewritten = rewrite(&object, Options::new(Scheme::Stlb)).expect("it is rewritten");
    let codemap = rewritten.object.section_named(".twin.codemap");
    let codemap = codemap.map(|id| rewritten.object.section(id).data.len());
    codemap.expect("there is one") / ENTRY
}

#[test]
fn an_address_that_the_assembler_knows_is_taken() {
    assert_eq!(entries("ret"), 1, "f, which is global");
    assert_eq!(entries("mov $g,%rax; ret"), 2, "by a relocation");
    assert_eq!(entries("lea g(%rip),%rax; ret"), 2, "by a distance");
    assert_eq!(entries("call g; ret"), 1, "a call takes none");
}
