//! Random C functions, compiled, natively and rewritten under each scheme.
//!
//! `TWIN_COMPILED_PROGRAMS` is the number of programs (default 6); the program `compiled`
//! (`make compiled`) makes longer runs.

use std::process::Command;

use conformance::forms::builds::{Build, installed};
use conformance::forms::compiled::{Compiled, Tally};

#[test]
fn compiled_functions_compute_the_same() {
    let programs = std::env::var("TWIN_COMPILED_PROGRAMS");
    let programs: u64 = programs.map_or(6, |n| n.parse().expect("a number"));
    let wanted = ["gcc-12", "gcc-14", "clang-14", "clang-19"];
    let compilers = installed(&wanted.map(str::to_owned));
    assert!(!compilers.is_empty(), "none of {wanted:?} is installed");
    let directory = tempfile::tempdir().expect("a directory");
    let mut tally = Tally::default();
    for program in 0..programs {
        for number in 0..3 {
            let build = Build::of(&compilers, program, number);
            let compiled = build.compile(program, directory.path());
            let Some(bytes) = compiled.expect("a compiler") else {
                continue;
            };
            let object = elf_loader::read(&bytes).expect("an object");
            let compiled = Compiled::new(&object, 1, 8).expect("the machine can be set up");
            let lines = compiled
                .compare(&mut tally)
                .expect("machines can be set up");
            let wrong = lines.wrong.join("\n");
            assert!(wrong.is_empty(), "program {program}, {build}: {wrong}");
        }
    }
    print!("{tally}");
    assert!(
        tally.same > 5 * tally.objects,
        "too little is compared: {tally}"
    );
}

/// Switches and addresses as distributions' compilers make them by default, position independent.
#[test]
fn tables_of_distances_compute_the_same() {
    const SOURCE: &str = concat!(
        include_str!("../src/forms/functions.c"),
        include_str!("../../../tests/fixtures/switches/shapes.c")
    );
    const FLAGS: &str = "-w -c -ffreestanding -fwrapv -fno-strict-aliasing -mno-red-zone -mno-sse \
                         -mno-mmx -mno-80387 -fno-stack-protector -fno-asynchronous-unwind-tables";
    let compilers = installed(&["gcc-12", "gcc-14", "clang-14", "clang-19"].map(str::to_owned));
    assert!(!compilers.is_empty(), "no compiler is installed");
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name| directory.path().join(name);
    std::fs::write(path("shapes.c"), SOURCE).expect("a file");
    let kinds = [
        "-fpie -fcf-protection=none",
        "-fpic -fno-plt -fcf-protection=full",
    ];
    for compiler in &compilers {
        for (level, kind) in ["-O1", "-O2", "-O3"]
            .map(|l| kinds.map(|k| (l, k)))
            .concat()
        {
            let what = format!("{compiler} {level} {kind}");
            let mut command = Command::new(compiler);
            command
                .args(FLAGS.split_whitespace())
                .arg(level)
                .args(kind.split_whitespace());
            command
                .arg(path("shapes.c"))
                .arg("-o")
                .arg(path("shapes.o"));
            assert!(command.status().expect("a compiler").success(), "{what}");
            let bytes = std::fs::read(path("shapes.o")).expect("an object");
            let object = elf_loader::read(&bytes).expect("an object");
            let compiled = Compiled::new(&object, 1, 4).expect("the machine can be set up");
            let mut tally = Tally::default();
            let lines = compiled
                .compare(&mut tally)
                .expect("machines can be set up");
            let (wrong, other) = (lines.wrong.join("\n"), lines.other.join("\n"));
            assert!(
                tally.is_good() && tally.refused == 0,
                "{what}: {wrong}{other}"
            );
        }
    }
}
