//! `twin cc`: the uses of a compiler in a project's build.

use std::path::Path;
use std::process::{Command, Output};

use crate::sandbox::Sandbox;

pub const PROGRAM: &str = r#"
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
    cc_by(sandbox, "gcc", arguments)
}

/// Runs `twin cc` with this compiler.
fn cc_by(sandbox: &Sandbox, compiler: &str, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_twin"))
        .args(["cc", "--", compiler])
        .args(arguments.split(' '))
        .current_dir(sandbox.path(""))
        .output()
        .expect("twin runs")
}

pub fn gcc(sandbox: &Sandbox, arguments: &str) -> Output {
    by(sandbox, "gcc", arguments)
}

fn by(sandbox: &Sandbox, compiler: &str, arguments: &str) -> Output {
    Command::new(compiler)
        .args(arguments.split(' '))
        .current_dir(sandbox.path(""))
        .output()
        .expect("it is installed")
}

pub fn done(output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
}

pub fn run(sandbox: &Sandbox, name: &str) -> (Option<i32>, String) {
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
        "-O0", "-O2", "-O3 -g", "-O2 -fPIC -pie", "-O1 -no-pie", "-pipe -Os",
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

/// Exceptions, streams, arrays and the like, as the unrewritten program.
#[test]
fn programs_in_other_languages() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    for (compiler, source) in [
        ("g++", "languages.cpp"),
        // Debian 12's and 13's.
        ("clang++-14", "languages.cpp"),
        ("clang++-19", "languages.cpp"),
        ("gfortran", "languages.f90"),
        ("gfortran-12", "languages.f90"),
    ] {
        if Command::new(compiler).arg("--version").output().is_err() {
            continue; // Not installed.
        }
        for level in ["-O0", "-O2"] {
            let sandbox = Sandbox::new();
            let compile = |wrapper: &[&str], to: &str| {
                let words = [wrapper, &[compiler, "-w", level, "-o", to]].concat();
                let status = Command::new(words[0])
                    .args(&words[1..])
                    .arg(programs.join(source))
                    .current_dir(sandbox.path(""))
                    .status();
                assert!(status.expect("it runs").success(), "{compiler} {level}");
            };
            compile(&["env"], "original");
            compile(&[env!("CARGO_BIN_EXE_twin"), "cc", "--"], "program");
            let original = run(&sandbox, "original");
            assert_eq!(original.0, Some(3), "{compiler} {level}");
            assert_eq!(run(&sandbox, "program"), original, "{compiler} {level}");
            let mut nm = Command::new("nm");
            let names = nm.arg(sandbox.path("program")).output().expect("binutils");
            let names = String::from_utf8_lossy(&names.stdout).into_owned();
            assert!(names.contains("twin_slow_"), "{compiler} {level}");
        }
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

/// Assembly sources stay as they are, unless that is asked for.
#[test]
fn assembly_sources_are_rewritten_if_that_is_asked_for() {
    let end = "\tret\n\t.section .note.GNU-stack,\"\",@progbits\n";
    let sandbox = Sandbox::new();
    sandbox.write(
        "put.S",
        format!("#define TO (%rdi)\n\t.globl put\nput:\tmov %rsi,TO\n{end}"),
    );
    sandbox.write(
        "get.s",
        format!("\t.globl get\nget:\tmov (%rdi),%rax\n{end}"),
    );
    sandbox.write(
        "copy.txt",
        format!("\t.globl copy\ncopy:\tmov %rdi,%rax\n{end}"),
    );
    let main = "#include <stdio.h>\nvoid put(long *, long); long get(long *), copy(long);\n\
                int main(void) { long x; put(&x, 5); printf(\"%ld\\n\", get(&x) + copy(1)); }\n";
    sandbox.write("main.c", main);
    let cc = |arguments: &str| {
        Command::new(env!("CARGO_BIN_EXE_twin"))
            .args(arguments.split(' '))
            .current_dir(sandbox.path(""))
            .output()
            .expect("twin runs")
    };
    for source in ["put.S", "get.s"] {
        done(&cc(&format!("cc -- gcc -c {source} -o x.o")));
        assert!(!is_rewritten(&sandbox, "x.o"), "{source}");
        done(&cc(&format!("cc --assembly -- gcc -MD -c {source} -o x.o")));
        assert!(is_rewritten(&sandbox, "x.o"), "{source}");
    }
    assert!(sandbox.read("x.d").starts_with(b"x.o: put.S"));
    // What the assembler itself tells, and intermediate files.
    for words in [
        "-Wa,--MD,get.d",
        "-Xassembler --MD -Xassembler get.d",
        "-Wa,--MD=get.d",
    ] {
        done(&cc(&format!(
            "cc --assembly -- gcc -c {words} get.s -o x.o"
        )));
        assert_eq!(sandbox.read("get.d"), b"x.o: get.s\n", "{words}");
    }
    done(&cc("cc --assembly -- gcc -save-temps -c put.S -o x.o"));
    assert!(String::from_utf8_lossy(&sandbox.read("x.s")).contains("# twin: "));
    for (language, source) in [("assembler-with-cpp", "put.S"), ("assembler", "get.s")] {
        let file = std::fs::File::open(sandbox.path(source)).expect("the source");
        let output = Command::new(env!("CARGO_BIN_EXE_twin"))
            .args([
                "cc", "--assembly", "--", "gcc", "-x", language, "-c", "-", "-o", "in.o",
            ])
            .current_dir(sandbox.path(""))
            .stdin(file)
            .output();
        done(&output.expect("twin runs"));
        assert!(is_rewritten(&sandbox, "in.o"), "{language}");
    }
    let all = "main.c put.S get.s -x assembler copy.txt -o program";
    done(&cc(&format!("cc --assembly -- gcc -g {all}")));
    assert_eq!(run(&sandbox, "program"), (Some(0), "6\n".to_owned()));
    // What it is made from is kept.
    done(&cc("cc --assembly -- gcc -S main.c"));
    assert!(sandbox.read("get.s").starts_with(b"\t.globl get"));
    sandbox.write("some.s", "\tvmaskmovps (%rdi),%ymm0,%ymm1\n\tret\n");
    let refused = cc("cc --assembly -- gcc -c some.s");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.starts_with("some.s: line 1: "), "{said}");
    assert_eq!(refused.status.code(), Some(1));
    sandbox.write("wrong.s", "\tret\n\tno such\n");
    let refused = cc("cc --assembly -- gcc -c wrong.s");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("wrong.s:2: "), "{said}");
    assert_eq!(refused.status.code(), Some(1));
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

/// Also where nothing is linked in the end, and of sources that are not C.
#[test]
fn errors_of_every_source_are_told() {
    let sandbox = with_program();
    sandbox.write("wrong.c", "int f( { return x; }\n");
    sandbox.write("warns.c", "int g(void) { int unused; return 0; }\n");
    sandbox.write("worse.c", "int h( {\n");
    sandbox.write("s.s", "\tnonsense\n");
    for arguments in [
        "-Wall wrong.c warns.c missing.c worse.c program.c -o program",
        "program.c wrong.c s.s -o program",
        "-c s.s wrong.c missing.s",
        "-c warns.c missing.o",
        "-c program.c -x assembler s.s",
        "-fnonsense warns.c program.c -o program",
        "-c program.c -o",
        "-c program.c -I",
        "-c program.c -o ./program.c",
        "program.c warns.c -o program.c",
    ] {
        let (ours, theirs) = (cc(&sandbox, arguments), gcc(&sandbox, arguments));
        assert_eq!(ours, theirs, "{arguments}");
        assert_eq!(sandbox.read("program.c"), PROGRAM.as_bytes(), "{arguments}");
    }
}

/// clang warns of what a step does not use, which all of them together do.
#[test]
fn options_of_one_step_are_no_warnings_of_another() {
    for compiler in ["clang-14", "clang-19"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            continue; // Not installed.
        }
        let sandbox = with_program();
        let output = Command::new(env!("CARGO_BIN_EXE_twin"))
            .args(["cc", "--", compiler, "-Werror", "-no-pie", "-rdynamic"])
            .args(["-Wa,--noexecstack", "-mllvm", "-unroll-count=2", "-O1"])
            .args(["program.c", "-o", "program"])
            .current_dir(sandbox.path(""))
            .output();
        done(&output.expect("twin runs"));
        assert_eq!(run(&sandbox, "program").0, Some(3));
    }
}

/// Each text is assembled twice.
#[test]
fn what_an_assembler_says_is_said_once() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "x.c",
        "asm(\".print \\\"said\\\"\\n\\t.warning \\\"warned\\\"\");\n",
    );
    let output = cc(&sandbox, "-c x.c");
    assert_eq!(output.stdout, b"said\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors.matches("warned").count(), 1, "{errors}");
    sandbox.write("x.c", "asm(\"nonsense\");\n");
    let output = cc(&sandbox, "-c x.c");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors.matches("no such instruction").count(), 1, "{errors}");
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

/// As kernel builds have it: `CC="ccache gcc"`.
#[test]
fn a_compiler_behind_a_launcher() {
    let sandbox = with_program();
    sandbox.write("ccache", "#!/bin/sh\necho \"$1\" >>launched\nexec \"$@\"\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(sandbox.path("ccache"), executable).expect("a file");
    for arguments in ["-O2 program.c -o program", "--version"] {
        let status = Command::new(env!("CARGO_BIN_EXE_twin"))
            .args(["cc", "--", "./ccache", "gcc"])
            .args(arguments.split(' '))
            .current_dir(sandbox.path(""))
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.expect("twin runs").success(), "{arguments}");
    }
    assert_eq!(run(&sandbox, "program").0, Some(3));
    let launched = String::from_utf8(sandbox.read("launched")).expect("text");
    // Asked what it is, compiled, assembled twice, linked; then `--version`.
    assert_eq!(launched, "gcc\n".repeat(6));
}

/// As compilers take another directory then.
#[test]
fn a_directory_for_temporary_files_that_is_not_there() {
    let sandbox = with_program();
    for place in ["", "nothing", "program.c"] {
        let output = Command::new(env!("CARGO_BIN_EXE_twin"))
            .args(["cc", "--", "gcc", "program.c", "-o", "program"])
            .current_dir(sandbox.path(""))
            .env("TMPDIR", place)
            .output();
        done(&output.expect("twin runs"));
        assert_eq!(run(&sandbox, "program").0, Some(3));
        assert_eq!(sandbox.names(), ["program", "program.c"]);
    }
}

/// Its symbol could not be read again.
#[test]
fn a_source_whose_name_is_no_text_is_refused_by_name() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = with_program();
    let name = std::ffi::OsStr::from_bytes(b"\xff.c");
    std::fs::rename(sandbox.path("program.c"), sandbox.path("").join(name)).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_twin"))
        .args(["cc", "--", "gcc", "-c"])
        .arg(name)
        .current_dir(sandbox.path(""))
        .output()
        .expect("twin runs");
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("rename it"), "{errors}");
}

/// Directories of headers are the assembler's, too: firmware is embedded that way.
#[test]
fn a_file_that_the_assembler_includes() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("inc")).expect("a folder");
    sandbox.write("inc/blob", "seven");
    sandbox.write(
        "blob.c",
        "__asm__(\".section .rodata\\nblob: .incbin \\\"blob\\\"\\n.text\");\n\
         extern const char blob[];\nint main(void) { return blob[1] == 'e' ? 7 : 1; }\n",
    );
    done(&cc(&sandbox, "-O2 -Iinc blob.c -o blob"));
    assert_eq!(run(&sandbox, "blob").0, Some(7));
}

#[test]
fn debug_information_is_compressed_if_that_is_asked_for() {
    let sandbox = with_program();
    done(&cc(&sandbox, "-g -gz -c program.c"));
    let mut readelf = Command::new("readelf");
    let output = readelf.arg("-tW").arg(sandbox.path("program.o")).output();
    let text = output.expect("binutils are installed").stdout;
    assert!(String::from_utf8_lossy(&text).contains("COMPRESSED"));
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
        "bad.c", "line ", ".text+", "in f+", "fxsave", "[unsupported]",
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

/// gcc's `work` keeps its arguments in registers that `load` leaves alone (-fipa-ra),
/// though no return of `load` is to where it was called from.
const KNOWN_CALLEE: &str = r#"
#include <stdio.h>
static __attribute__((noinline)) int load(int *p) { return *p; }
__attribute__((noinline)) long work(int *p, long a, long b, long c, long d, long e)
{
    long s = load(p);
    s = s * 3 + load(p + 1) * a + load(p + 2) * b;
    return s + c * d + e;
}
int main(void)
{
    int v[] = { 3, 5, 7 };
    printf("%ld\n", work(v, 11, 13, 17, 19, 23));
    return 0;
}
"#;

#[test]
fn registers_that_a_known_callee_keeps() {
    for flags in [
        "-mfunction-return=thunk-inline",
        "-mfunction-return=thunk",
        "-mindirect-branch=thunk",
        "-mforce-indirect-call",
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("program.c", KNOWN_CALLEE);
        done(&cc(
            &sandbox,
            &format!("-O2 -fipa-ra {flags} program.c -o program"),
        ));
        assert_eq!(
            run(&sandbox, "program"),
            (Some(0), "501\n".to_owned()),
            "{flags}"
        );
    }
}

#[test]
fn a_thread_local_variable_by_descriptor() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "program.c",
        "_Thread_local int own = 5; int main(void) { int *p = &own; return *p + own; }\n",
    );
    let flags = "-O1 -fPIC -pie -mtls-dialect=gnu2 -ftls-model=global-dynamic";
    done(&cc(&sandbox, &format!("{flags} program.c -o program")));
    assert_eq!(run(&sandbox, "program").0, Some(10));
}

/// Command lines, and the files that a compiler leaves when it is asked in this way, beside
/// its output. `x.c` includes `h.h`; `m.c` is a program; `s.s` is assembly.
const LEAVES: [&str; 77] = [
    "-c x.c",
    "-c x.c -o d/y.o",
    "-c x.c m.c",
    "-c x.c m.c s.s",
    "-c -x c h.h -o d/y.o",
    "-include x.c -x c -c /dev/null",
    "@words",
    "m.c x.c -o p",
    "m.c s.s -o p",
    "-S x.c",
    "-E x.c -o d/y.i",
    "-fsyntax-only x.c",
    "-v -c x.c",
    "-c missing.c -o d/y.o",
    "--compile x.c --output d/y.o",
    "--language=c -c h.h --output=d/y.o",
    "--define-macro A --include-directory d --include h.h -c x.c",
    "--print-file-name=include -c x.c",
    "-c x.c x.c",
    "--write-dependencies -c x.c -o d/y.o",
    "-MD -c x.c -o d/y.o",
    "-MD m.c x.c -o p",
    "-MMD -MP -MF d/z.d -c x.c",
    "--coverage -c x.c -o d/y.o",
    "--coverage -c x.c",
    "--coverage m.c x.c -o p",
    "--coverage m.c -o m",
    "-fprofile-generate m.c -o p",
    "-g -gsplit-dwarf -c x.c -o d/y.o",
    "-g -gsplit-dwarf -c x.c",
    "-g -gsplit-dwarf m.c x.c -o d/p",
    "-save-temps -c x.c -o d/y.o",
    "-save-temps=obj -c x.c -o d/y.o",
    "-save-temps=cwd -fstack-usage -c x.c -o d/y.o",
    "--save-temps -save-temps=cwd m.c x.c -o d/p",
    "-save-temps=cwd -save-temps=obj -c x.c -o d/y.o",
    "-save-temps m.c x.c -o p",
    "-fstack-usage -fdump-tree-optimized -c x.c -o d/y.o",
    "-Wa,-adhln=list -c x.c",
    "-save-temps -dumpdir d/ -c x.c -o y.o",
    "-fstack-usage -dumpdir d/p- m.c x.c -o p",
    "m.c -x assembler t.asm -o p",
    "-x c h.h -x none m.c -x assembler t.asm -o p",
    "-c x.c s.s -o d/y.o",
    "-c bad.c x.c",
    "-c x.c missing.o",
    "-save-temps -dumpbase f.c -c x.c -o d/y.o",
    "-save-temps=cwd -dumpbase f.c -dumpbase-ext .c -c x.c -o d/y.o",
    "-save-temps -dumpbase f.c -dumpbase-ext .c m.c x.c -o d/p",
    "-save-temps -dumpdir d/q -dumpbase f.c -dumpbase-ext .c m.c -o p",
    "-save-temps -dumpdir q -dumpbase d/f.c -c x.c",
    "-save-temps -dumpdir q -save-temps=obj m.c -o d/p",
    "-save-temps=obj m.c x.c -o d/m",
    "-save-temps m.c -o d/m.exe",
    "-g -gsplit-dwarf -dumpbase f -c x.c -o y.o",
    "-fdump-tree-optimized -fstack-usage -dumpbase f.c m.c -o d/p",
    "-c x.c -Wa,--version",
    "-S bad.c -o d/old",
    "-c bad.c -o d/old",
    "-pipe -c bad.c -o d/old",
    "-MD -S x.c",
    "-MMD -S x.c -o d/y.s",
    "-MMD m.c b.S -o p",
    "-MMD b.S m.c -o p",
    "-MMD m.c b.S",
    "-MD -MF d/z.d m.c b.S -o p",
    "--stack-usage --dump-tree-optimized -c x.c -o d/y.o",
    "--test-coverage --profile-arcs -c x.c -o d/y.o",
    "--profile-generate m.c -o p",
    "--syntax-only -c x.c",
    "--debug=split-dwarf -c x.c -o d/y.o",
    "-gsplit-dwarf -gno-split-dwarf -c x.c",
    "-gsplit-dwarf -g0 -c x.c",
    "--machine 64 --std c99 --no-lto -c x.c",
    "-h name.c -shared x.c -o p",
    "-Ttext 0x10000 -c x.c",
    "-S x.c -o nowhere/y.s",
];

/// The same of clang, if it is installed.
const LEAVES_OF_CLANG: [&str; 12] = [
    "--save-temps=obj -c x.c -o d/y.o",
    "-rpath d m.c -o p",
    "-resource-dir d -c m.c -o d/y.o",
    "-mthread-model posix -c x.c",
    "-fdebug-compilation-dir d -g -c x.c",
    "--std c99 -c x.c",
    "-gsplit-dwarf -g0 -c x.c",
    "-gsplit-dwarf -g -c x.c",
    "-MMD m.c b.S -o p",
    "-Xclang -ast-dump -c x.c",
    "-Xclang -emit-codegen-only -c x.c",
    "--stack-usage -c x.c",
];

#[test]
fn what_a_compiler_leaves_behind_is_the_same() {
    for arguments in LEAVES {
        leaves_the_same("gcc", arguments);
    }
    let clang = "clang-14";
    if Command::new(clang).arg("--version").output().is_ok() {
        for arguments in LEAVES_OF_CLANG {
            leaves_the_same(clang, arguments);
        }
    }
}

fn leaves_the_same(compiler: &str, arguments: &str) {
    // In one place, since files have the names of others in them.
    let sandbox = Sandbox::new();
    let left = |run: fn(&Sandbox, &str, &str) -> Output| {
        let folder = sandbox.path("");
        std::fs::remove_dir_all(&folder).expect("a folder");
        std::fs::create_dir_all(folder.join("d")).expect("a folder");
        for (name, text) in [
            (
                "x.c",
                "#include \"h.h\"\nint g(int *p) { return *p + h; }\n",
            ),
            (
                "m.c",
                "int main(void) { int a[2] = { 0 }, *p = a; return *p; }\n",
            ),
            ("h.h", "#ifndef __ASSEMBLER__\nstatic int h;\n#endif\n"),
            ("b.S", "#include \"h.h\"\n"),
            ("s.s", "\tnop\n"),
            ("t.asm", "\tnop\n"),
            ("bad.c", "int f( {\n"),
            ("d/old", "an older result\n"),
            ("words", "-c x.c -o d/y.o"),
        ] {
            sandbox.write(name, text);
        }
        let status = run(&sandbox, compiler, arguments).status;
        let mut files = std::collections::BTreeMap::new();
        for folder in ["", "d"] {
            for entry in std::fs::read_dir(sandbox.path(folder)).expect("a folder") {
                let path = entry.expect("an entry").path();
                // Of text that is not code, what it says.
                let extension = path.extension().and_then(|e| e.to_str());
                let text = matches!(extension, Some("d" | "i" | "su"));
                let text = text.then(|| std::fs::read_to_string(&path));
                if path.is_file() {
                    files.insert(path, text.map(|text| text.expect("text")));
                }
            }
        }
        (status.code(), files)
    };
    assert_eq!(left(cc_by), left(by), "{compiler} {arguments}");
}

#[test]
fn what_is_compiled_is_rewritten_whatever_is_printed() {
    let sandbox = with_program();
    let output = cc(&sandbox, "-v -O2 -S program.c");
    assert!(output.status.success());
    let text = String::from_utf8(sandbox.read("program.s")).expect("text");
    assert!(text.contains("# twin: "), "{text}");
}

#[test]
fn options_that_nothing_can_be_rewritten_with_are_named() {
    for (option, named) in [
        ("-flto", "-flto"),
        ("-flto=auto", "-flto=auto"),
        ("--lto", "-flto"),
        ("-emit-llvm", "-emit-llvm"),
        ("-m32", "-m32"),
        ("-mx32", "-mx32"),
        ("--machine=x32", "-mx32"),
        ("--machine 32", "-m32"),
        ("-fnon-call-exceptions", "-fnon-call-exceptions"),
    ] {
        let sandbox = with_program();
        let output = cc(&sandbox, &format!("-O2 {option} -c program.c"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(named), "{errors}");
        assert_eq!(sandbox.names(), ["program.c"]);
    }
}

/// The option by another way: an access throws, where it is several instructions.
#[test]
fn exceptions_that_an_access_throws_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "x.cpp",
        "__attribute__((optimize(\"non-call-exceptions\"))) int f(int *p, int a)\n\
         { try { return *p + a; } catch (int &) { return a; } }\n",
    );
    let output = cc_by(&sandbox, "g++", "-O2 -c x.cpp");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    for part in ["x.cpp", "line ", "non-call-exceptions", "[options]"] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    assert_eq!(sandbox.names(), ["x.cpp"]);
}

/// Whether a file has the runtime, which rewritten code brings along.
fn is_rewritten(sandbox: &Sandbox, name: &str) -> bool {
    let output = Command::new("nm").arg(sandbox.path(name)).output();
    let names = output.expect("binutils are installed").stdout;
    String::from_utf8_lossy(&names).contains("twin_slow_")
}

/// `/dev/null` has the text of what is included; some options print, and compile all the same.
#[test]
fn what_makes_code_is_rewritten_however_it_is_asked_for() {
    for (arguments, made) in [
        ("-include program.c -x c /dev/null -o p", "p"),
        ("-include program.c -x c -c /dev/null", "null.o"),
        ("-Wp,-include,program.c -x c -c /dev/null -o p.o", "p.o"),
        ("-print-objc-runtime-info -c program.c -o p.o", "p.o"),
    ] {
        let sandbox = with_program();
        assert!(cc(&sandbox, arguments).status.success(), "{arguments}");
        assert!(is_rewritten(&sandbox, made), "{arguments}");
    }
    let sandbox = with_program();
    let output = cc(&sandbox, "-fsyntax-only -fno-syntax-only -c program.c");
    assert_eq!(output.status.code(), Some(2));
}

/// Builds ask so what a compiler knows; that is no code, whatever the option.
#[test]
fn an_empty_source_is_the_compilers_business() {
    let sandbox = Sandbox::new();
    done(&cc(&sandbox, "-m16 -c -x c /dev/null -o empty.o"));
    assert!(!is_rewritten(&sandbox, "empty.o"));
}

#[test]
fn modules_are_rewritten_and_what_is_compiled_halfway_is_refused() {
    let compilers = ["clang++-14", "clang++-19"];
    for compiler in compilers {
        if Command::new(compiler).arg("--version").output().is_err() {
            continue; // Not installed.
        }
        let sandbox = Sandbox::new();
        let text = "export module m;\nexport int f(int *p) { return *p; }\n";
        sandbox.write("m.cppm", text);
        sandbox.write("m.txt", text);
        sandbox.write("s.cpp", "int f(int *p) { return *p; }\n");
        let run = |arguments: &str| cc_by(&sandbox, compiler, &format!("-std=c++20 {arguments}"));
        for arguments in ["-c m.cppm", "-x c++-module -c m.txt"] {
            done(&run(arguments));
            assert!(is_rewritten(&sandbox, "m.o"), "{arguments}");
            std::fs::remove_file(sandbox.path("m.o")).expect("it was made");
        }
        done(&run("--precompile m.cppm -o m.pcm"));
        let own = |words: &[&str]| {
            let mut command = Command::new(compiler);
            let status = command.args(words).current_dir(sandbox.path("")).status();
            assert!(status.expect("it runs").success(), "{words:?}");
        };
        own(&["-emit-llvm", "-c", "s.cpp"]);
        own(&["-emit-llvm", "-S", "s.cpp"]);
        own(&["-emit-ast", "s.cpp"]);
        std::fs::copy(sandbox.path("s.bc"), sandbox.path("s.txt")).expect("a file");
        let before = sandbox.names();
        for arguments in [
            "-c m.pcm", "m.pcm -o p", "-c s.bc", "-c s.ll", "-c s.ast", "-x ir -c s.txt", "-S s.bc",
        ] {
            let output = run(arguments);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
            assert!(errors.contains("compile its source"), "{errors}");
        }
        assert_eq!(sandbox.names(), before);
    }
}

#[test]
fn objects_whose_code_the_linker_makes_are_refused() {
    let sandbox = with_program();
    for flags in ["-flto", "-flto -ffat-lto-objects"] {
        done(&gcc(
            &sandbox,
            &format!("-O2 {flags} -c program.c -o lto.o"),
        ));
        for command in [
            &["rewrite", "lto.o", "-o", "out.o"][..],
            &["verify", "lto.o"],
        ] {
            let output = Command::new(env!("CARGO_BIN_EXE_twin"))
                .args(command)
                .current_dir(sandbox.path(""))
                .output()
                .expect("twin runs");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{errors}");
        }
        assert_eq!(sandbox.names(), ["lto.o", "program.c"]);
    }
}

#[test]
fn conditional_assembly_is_the_assemblers_business() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "program.c",
        r#"
int main(void)
{
    long v[2] = { 3, 4 }, r, s = 0;
    __asm__(".if 0\n\tmov 8(%1), %0\n\tret; nonsense\n.else\n\tmov (%1), %0\n.endif\n"
            ".ifdef twin_no_such\n\tnop\n.elseif 1\n\tadd 8(%1), %0 ; .endif"
            : "=&r"(r) : "r"(v) : "memory");
    __asm__(".macro third reg\n\tlea (\\reg,\\reg,2), \\reg\n.endm\n\tthird %0\n.purgem third"
            : "+r"(r));
    __asm__("inc %0\n\t.rept 3\n\tinc %0\n\t.endr\n\tadd (%1), %0" : "+r"(s) : "r"(v) : "memory");
    return (int)(r * 10 + s);
}
"#,
    );
    done(&cc(&sandbox, "-O1 program.c -o program"));
    done(&gcc(&sandbox, "-O1 program.c -o original"));
    assert_eq!(run(&sandbox, "program"), (Some(217), String::new()));
    assert_eq!(run(&sandbox, "original"), (Some(217), String::new()));
}
