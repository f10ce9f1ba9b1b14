//! Random C functions, compiled, natively and rewritten under each scheme.
//!
//! `TWIN_COMPILED_PROGRAMS` is the number of programs (default 6); the program `compiled`
//! (`make compiled`) makes longer runs.

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
