//! Jump tables, executed: each function natively and rewritten for `linux`, as text and as
//! an object.

use std::process::Command;

use crate::sandbox::Sandbox;

/// Options of code that may name addresses of 32 bits, as a kernel's.
const FLAGS: &str = "-mcmodel=kernel -mno-red-zone -fno-pic -fno-asynchronous-unwind-tables \
                     -fjump-tables -fno-stack-protector -w -c";

fn run(sandbox: &Sandbox, line: &str) -> String {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a program");
    let mut command = Command::new(program);
    let output = command.args(words).current_dir(sandbox.path("")).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{line}: {said}");
    said
}

fn twin(sandbox: &Sandbox, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    sandbox.run(&words).ok();
}

/// Executes `twin.o` beside `plain.o`, the same functions.
fn compare(sandbox: &Sandbox, outside: u32, what: &str) {
    twin(sandbox, "verify --target linux twin.o");
    let rename = "--redefine-sym f0=native_f0 --redefine-sym unchecked=native_unchecked";
    run(sandbox, &format!("objcopy {rename} plain.o native.o"));
    // An object's own runtime is local.
    run(
        sandbox,
        "objcopy --globalize-symbol=twin_stlb twin.o global.o",
    );
    let link = "gcc -no-pie -static -Wl,-z,noexecstack -w harness.c native.o global.o";
    run(sandbox, &format!("{link} -DOUTSIDE={outside} -o both"));
    let said = run(sandbox, "./both");
    assert_eq!(said, "4098 calls\n", "{what}");
}

fn with_sources() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("harness.c", include_str!("../fixtures/switches/harness.c"));
    sandbox.write("cases.c", include_str!("../fixtures/switches/cases.c"));
    sandbox.write("cases.s", include_str!("../fixtures/switches/cases.s"));
    sandbox
}

#[test]
fn every_case_of_assembly_is_the_same() {
    let sandbox = with_sources();
    run(&sandbox, "as cases.s -o plain.o");
    twin(&sandbox, "rewrite --target linux plain.o -o twin.o");
    compare(&sandbox, 2, "object");
    twin(&sandbox, "rewrite --target linux cases.s -o cases.twin.s");
    run(&sandbox, "as cases.twin.s -o twin.o");
    compare(&sandbox, 2, "text");
}

#[test]
fn every_case_of_compilers_is_the_same() {
    for compiler in [
        "gcc -O2",
        "gcc -O1 -fcf-protection=branch",
        "gcc -O0",
        "gcc -Os -fcf-protection=none -mindirect-branch=thunk-extern -mindirect-branch-register",
        "gcc -O3 -mfunction-return=thunk-extern",
        // Debian 12's and 13's.
        "clang-14 -O2 -fno-addrsig",
        "clang-14 -O1 -fno-addrsig -fcf-protection=branch",
        "clang-19 -O2 -fno-addrsig",
        "clang-19 -O1 -fno-addrsig -fcf-protection=branch",
    ] {
        let program = compiler.split(' ').next().expect("a name");
        if Command::new(program).arg("--version").output().is_err() {
            continue; // Not installed.
        }
        let sandbox = with_sources();
        run(&sandbox, &format!("{compiler} {FLAGS} cases.c -o plain.o"));
        twin(&sandbox, "rewrite --target linux plain.o -o twin.o");
        compare(&sandbox, 4, &format!("{compiler}: object"));
        twin(
            &sandbox,
            &format!("cc --target linux -- {compiler} {FLAGS} cases.c -o twin.o"),
        );
        compare(&sandbox, 4, &format!("{compiler}: text"));
        // For a hypervisor, too, it is proved.
        twin(&sandbox, "rewrite plain.o -o confined.o");
        twin(&sandbox, "verify confined.o");
    }
}

/// Both ways refuse a computed goto whose labels are not in a read-only table.
#[test]
fn other_computed_jumps_have_one_answer() {
    for source in [
        // Labels in data that may be written.
        "extern long g(void *); long f(long i) { static void *t[] = { &&a, &&b }; g(t); goto *t[i]; a: return 1; b: return 2; }",
        // Labels in registers.
        "extern long g(void *); long f(long i) { void *p = &&a; if (g(&p)) p = &&b; \
         for (;;) { goto *p; a: if (g(&p)) return 1; continue; b: if (g(&p)) return 2; } }",
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("computed.c", source);
        run(&sandbox, &format!("gcc -O1 {FLAGS} computed.c -o plain.o"));
        let cc = format!("cc --target linux -- gcc -O1 {FLAGS} computed.c -o twin.o");
        let cc: Vec<&str> = cc.split_whitespace().collect();
        let object = ["rewrite", "--target", "linux", "plain.o", "-o", "out.o"];
        let confined = ["rewrite", "plain.o", "-o", "out.o"];
        for line in [&cc[..], &object, &confined] {
            let outcome = sandbox.run(line);
            assert_eq!(outcome.status, 1, "{line:?}: {}", outcome.stderr);
            let reason = outcome.stderr.contains("[code-reference]");
            assert!(reason, "{line:?}: {}", outcome.stderr);
        }
    }
}
