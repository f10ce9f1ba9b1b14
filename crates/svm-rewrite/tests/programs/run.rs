//! Rewriting a text as the command does, and running what it and its original make.

use std::path::Path;
use std::process::Command;

use filetests::assemble;
use svm_rewrite::text::{Source, expand, plainer};
use svm_rewrite::{Options, Scheme, Target};

/// The table and the slow paths, part of each text.
const RUNTIME: &str = include_str!("../../../../runtime/platform/process/process.s");

/// Calls `f` for both cases of a table.
pub const TWO_CASES: &str = r#"
#include <stdio.h>
int f(long, int *, long, int);
int main(void) {
    int a[4] = {1, 20, 300, 4};
    printf("%d %d\n", f(0, a, 0, 7), f(1, a, 0, 7));
}
"#;

/// The text rewritten for a program, or why it is refused. What is refused is taken in plainer
/// form, and with its macros written out, as the command does.
pub fn rewrite(text: &str) -> Result<String, String> {
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
pub fn is_the_same(text: &str, main: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let native = run(directory.path(), "native", text, main);
    let rewritten = rewrite(text).unwrap_or_else(|refused| panic!("{refused}\n{text}"));
    let twin = run(directory.path(), "twin", &rewritten, main);
    assert_eq!(native, twin, "{text}");
}

/// It is refused with these words.
pub fn is_refused(text: &str, words: &str) {
    match rewrite(text) {
        Ok(_) => panic!("it is not refused:\n{text}"),
        Err(refused) => assert!(refused.contains(words), "{refused}\n{text}"),
    }
}

/// A function that jumps by a table: its second case, `second`, comes after an access by the
/// same register in the first, which a translation could serve.
pub fn cases(second: &str, table: &str) -> String {
    format!(
        "\t.text\n\t.globl f\n\t.type f,@function\nf:\n\tlea tbl(%rip),%rax\n\
         \tmov (%rax,%rdi,8),%rax\n\tjmp *%rax\n.Lc0:\n\tmov (%rsi),%ecx\n{second}\n\
         \tmov 4(%rsi),%edx\n\tmov 8(%rsi),%r8d\n\txor %r9d,%r9d\n\txor %r10d,%r10d\n\
         \txor %r11d,%r11d\n\tlea (%rcx,%rdx),%eax\n\tadd %r8d,%eax\n\tret\n\
         \t.size f,.-f\n\t.section .data.rel.ro,\"aw\"\n{table}\n\
         \t.section .note.GNU-stack,\"\",@progbits\n"
    )
}
