//! Objects for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What `as` with these options makes of `source`.
pub fn assemble(options: &[&str], source: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (text, object) = (dir.path().join("t.s"), dir.path().join("t.o"));
    std::fs::write(&text, source).expect("write the source");
    let text = text.to_str().expect("UTF-8 path");
    let object_name = object.to_str().expect("UTF-8 path");
    let mut arguments = options.to_vec();
    arguments.extend(["-o", object_name, text]);
    run("as", &arguments, dir.path());
    std::fs::read(&object).expect("read the object")
}

/// Runs a tool in `dir`, gives its standard output, fails the test if it fails.
pub fn run(tool: &str, arguments: &[&str], dir: &Path) -> String {
    let output = Command::new(tool)
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap_or_else(|e| panic!("{tool}: {e}; install binutils"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The stock e1000 module, as the distribution ships it.
pub fn stock_e1000() -> Vec<u8> {
    let path = match std::env::var_os("TWIN_STOCK_E1000") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/stock/e1000.ko"),
    };
    std::fs::read(&path).unwrap_or_else(|e| {
        panic!(
            "{}: {e}; run `make stock`, or set TWIN_STOCK_E1000",
            path.display()
        )
    })
}

/// One of everything: code, data, bss, local, weak, common and undefined
/// symbols, a group, mergeable strings, relocations of many kinds.
pub const SAMPLE_64: &str = r#"
        .file "sample.c"
        .text
        .globl  f
        .type   f, @function
f:      call    callee
        call    g
        lea     table(%rip), %rax
        mov     $table, %rdi
        movabs  $table+8, %rsi
        mov     string(%rip), %rcx
        jmp     cold
        .size   f, .-f
        .type   g, @function
g:      ret
        .size   g, .-g
        .section .text.unlikely, "ax", @progbits
cold:   jmp     g
        .section .rodata.str1.1, "aMS", @progbits, 1
string: .asciz  "text"
        .data
        .align  32
table:  .quad   g, cold, 0, extern
        .weak   w
w:      .long   1
        .bss
        .align  64
        .skip   100
        .comm   shared, 16, 8
        .globl  constant
        constant = 42
        .section .text.grp, "axG", @progbits, sig, comdat
sig:    ret
        .section .note.GNU-stack, "", @progbits
"#;
