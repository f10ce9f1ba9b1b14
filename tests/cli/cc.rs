//! `twin cc`: the uses of a compiler in a project's build.

use std::path::Path;
use std::process::{Command, Output};

use crate::sandbox::Sandbox;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long value; };
__attribute__((noinline)) long sum(struct node *n) { return n ? n->value + sum(n->next) : 0; }
int main(void)
{
    struct node *list = NULL;
    for (int i = 0; i < 100; i++) {
        struct node *n = malloc(sizeof(*n));
        n->value = i * i;
        n->next = list;
        list = n;
    }
    printf("%ld\n", sum(list));
    return 3;
}
"#;

/// Runs `twin cc -- gcc` with arguments separated by blanks.
fn cc(sandbox: &Sandbox, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_twin"))
        .args(["cc", "--", "gcc"])
        .args(arguments.split(' '))
        .current_dir(sandbox.path(""))
        .output()
        .expect("twin runs")
}

fn gcc(sandbox: &Sandbox, arguments: &str) -> Output {
    Command::new("gcc")
        .args(arguments.split(' '))
        .current_dir(sandbox.path(""))
        .output()
        .expect("gcc is installed")
}

fn done(output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
}

fn run(sandbox: &Sandbox, name: &str) -> (Option<i32>, String) {
    let output = Command::new(sandbox.path(name))
        .output()
        .expect("it is a program");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

fn with_program() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("program.c", PROGRAM);
    sandbox
}

#[test]
fn a_program_is_compiled_and_linked_in_one_go() {
    for flags in [
        "-O0",
        "-O2",
        "-O3 -g",
        "-O2 -fPIC -pie",
        "-O1 -no-pie",
        "-pipe -Os",
    ] {
        let sandbox = with_program();
        done(&cc(&sandbox, &format!("{flags} program.c -o program")));
        assert_eq!(
            run(&sandbox, "program"),
            (Some(3), "328350\n".to_owned()),
            "{flags}"
        );
    }
}

#[test]
fn several_sources_become_several_objects() {
    let sandbox = Sandbox::new();
    sandbox.write("one.c", "int one(int *p) { return *p; }\n");
    sandbox.write(
        "two.c",
        "int one(int *); int main(void) { int x = 7; return one(&x); }\n",
    );
    done(&cc(&sandbox, "-O2 -c one.c two.c"));
    assert_eq!(sandbox.names(), ["one.c", "one.o", "two.c", "two.o"]);
    done(&cc(&sandbox, "one.o two.o -o both"));
    assert_eq!(run(&sandbox, "both").0, Some(7));
}

#[test]
fn assembly_that_is_asked_for_is_rewritten() {
    let sandbox = with_program();
    done(&cc(&sandbox, "-O2 -S program.c"));
    let text = String::from_utf8(sandbox.read("program.s")).expect("text");
    assert!(text.contains("# twin: "), "{text}");
    done(&gcc(&sandbox, "program.s -o program"));
    assert_eq!(run(&sandbox, "program").0, Some(3));
    let output = cc(&sandbox, "-O2 -S program.c -o -");
    assert!(String::from_utf8_lossy(&output.stdout).contains("twin_slow_"));
}

#[test]
fn what_compiles_nothing_is_the_compilers_business() {
    let sandbox = with_program();
    for arguments in ["--version", "-dumpmachine", "-E program.c", "-M program.c"] {
        let (ours, theirs) = (cc(&sandbox, arguments), gcc(&sandbox, arguments));
        assert_eq!(ours, theirs, "{arguments}");
    }
}

#[test]
fn a_compilers_errors_and_status_are_passed_on() {
    let sandbox = Sandbox::new();
    sandbox.write("wrong.c", "int f( { return x; }\n");
    let (ours, theirs) = (cc(&sandbox, "-c wrong.c"), gcc(&sandbox, "-c wrong.c"));
    assert_eq!(ours, theirs);
    assert_eq!(sandbox.names(), ["wrong.c"]);
    let (ours, theirs) = (cc(&sandbox, "-c missing.c"), gcc(&sandbox, "-c missing.c"));
    assert_eq!(ours.status, theirs.status);
}

#[test]
fn warnings_are_the_compilers() {
    let sandbox = Sandbox::new();
    sandbox.write("warns.c", "int f(void) { int unused; return 0; }\n");
    let (ours, theirs) = (
        cc(&sandbox, "-Wall -c warns.c"),
        gcc(&sandbox, "-Wall -c warns.c"),
    );
    assert_eq!(ours, theirs);
}

#[test]
fn dependency_files_are_the_compilers() {
    let sandbox = with_program();
    sandbox.write("h.h", "\n");
    sandbox.write("d.c", "#include \"h.h\"\nint d;\n");
    for arguments in [
        "-MD -c d.c -o d.o",
        "-MMD -MP -c d.c",
        "-MMD -MF x.d -c d.c -o y.o",
    ] {
        let name = if arguments.contains("x.d") {
            "x.d"
        } else {
            "d.d"
        };
        done(&gcc(&sandbox, arguments));
        let theirs = sandbox.read(name);
        std::fs::remove_file(sandbox.path(name)).expect("it was there");
        done(&cc(&sandbox, arguments));
        assert_eq!(
            String::from_utf8_lossy(&sandbox.read(name)),
            String::from_utf8_lossy(&theirs),
            "{arguments}"
        );
    }
}

#[test]
fn response_files_and_languages_are_understood() {
    let sandbox = with_program();
    std::fs::rename(sandbox.path("program.c"), sandbox.path("program.txt")).expect("a file");
    sandbox.write("arguments", "-O2 -x c 'program.txt'\n-x none -o program\n");
    done(&cc(&sandbox, "@arguments"));
    assert_eq!(run(&sandbox, "program").0, Some(3));
}

#[test]
fn link_time_optimisation_is_refused() {
    let sandbox = with_program();
    let output = cc(&sandbox, "-flto -c program.c");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("-fno-lto"));
    done(&cc(&sandbox, "-flto -fno-lto -c program.c"));
}

#[test]
fn what_cannot_be_rewritten_is_named_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "bad.c",
        "void f(void *p) {\n  __asm__ volatile(\"fxsave (%0)\" : : \"r\"(p) : \"memory\");\n}\n",
    );
    let output = cc(&sandbox, "-O2 -c bad.c");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    for part in [
        "bad.c",
        "line ",
        ".text+",
        "in f+",
        "fxsave",
        "[unsupported]",
    ] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    assert_eq!(sandbox.names(), ["bad.c"]);
}

/// At every instruction of a rewritten function, in line, out of line and in the
/// slow path, a debugger unwinds the stack to `main`.
#[test]
fn a_debugger_unwinds_from_every_instruction() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/unwind.gdb");
    for flags in ["-O2 -g", "-O0 -g", "-O2 -fno-omit-frame-pointer"] {
        let sandbox = with_program();
        done(&cc(&sandbox, &format!("{flags} program.c -o program")));
        let output = Command::new("gdb")
            .args(["-nx", "-batch", "-x"])
            .arg(&script)
            .arg(sandbox.path("program"))
            .output()
            .expect("gdb is installed (make setup)");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("lost 0 of "), "{flags}: {text}");
        assert!(!text.contains("lost 0 of 0"), "{flags}: {text}");
    }
}

/// A debugger that steps line by line stops at the same lines of the same functions as in
/// the unrewritten program.
#[test]
fn a_debugger_steps_through_the_same_lines() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/step.gdb");
    for flags in ["-O0 -g", "-Og -g", "-O2 -g"] {
        let sandbox = with_program();
        done(&gcc(&sandbox, &format!("{flags} program.c -o original")));
        done(&cc(&sandbox, &format!("{flags} program.c -o program")));
        let places = |program: &str| {
            let output = Command::new("gdb")
                .args(["-nx", "-batch", "-x"])
                .arg(&script)
                .arg(sandbox.path(program))
                .output()
                .expect("gdb is installed (make setup)");
            let text = String::from_utf8_lossy(&output.stdout);
            let places = text.lines().filter(|line| line.starts_with("at line "));
            places.map(str::to_owned).collect::<Vec<_>>()
        };
        let (original, rewritten) = (places("original"), places("program"));
        assert!(original.len() > 100, "{flags}: {original:?}");
        assert_eq!(rewritten, original, "{flags}");
    }
}
