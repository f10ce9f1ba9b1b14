//! `twin rewrite` on assembly text.

use std::process::Command;

use crate::sandbox::{DRIVER, Sandbox, privileged};

const MODULE: &str = "
        .text
        .globl  poll
        .type   poll, @function
poll:   mov     0x10(%rdi), %rax        # where it is
        cmpl    $3, 8(%rax)
        je      1f
        movl    $1, (%rax)
        call    napi_schedule
1:      jmp     __x86_return_thunk
        .size   poll, .-poll
        .section .rodata
name:   .string \"a # b ; c\"
        .section .note.GNU-stack,\"\",@progbits
";

fn run(program: &str, sandbox: &Sandbox, arguments: &[&str]) {
    let mut command = Command::new(program);
    let status = command.args(arguments).current_dir(sandbox.path(""));
    assert!(status.status().expect("it runs").success(), "{program}");
}

#[test]
fn text_for_a_kernel_is_verified_and_becomes_part_of_a_module() {
    let sandbox = Sandbox::new();
    sandbox.write("driver.s", MODULE);
    let linux = ["--target", "linux"];
    sandbox
        .run(
            &[
                &["rewrite"],
                &linux[..],
                &["driver.s", "-o", "driver.twin.s"],
            ]
            .concat(),
        )
        .ok();
    let text = String::from_utf8(sandbox.read("driver.twin.s")).expect("text");
    assert!(text.contains("# twin: mov 0x10(%rdi), %rax"), "{text}");
    for line in MODULE.lines().filter(|l| !l.contains("(%")) {
        assert!(text.contains(line), "{line:?} stays: {text}");
    }
    // By itself, and linked with another part of the same module.
    run("as", &sandbox, &["driver.twin.s", "-o", "driver.o"]);
    sandbox.write("other.s", MODULE.replace("poll", "other"));
    sandbox
        .run(&[&["rewrite"], &linux[..], &["other.s", "-o", "other.twin.s"]].concat())
        .ok();
    run("as", &sandbox, &["other.twin.s", "-o", "other.o"]);
    run(
        "ld",
        &sandbox,
        &["-r", "driver.o", "other.o", "-o", "module.o"],
    );
    for part in ["driver.o", "module.o"] {
        sandbox.run(&["verify", "--target", "linux", part]).ok();
    }
}

#[test]
fn text_for_a_program_runs_and_is_not_said_to_be_proved() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "sum.c",
        "long sum(long *p, int n) { long s = 0; while (n--) s += *p++; return s; }\n",
    );
    sandbox.write(
        "main.c",
        "long sum(long *, int); int main(void) { long a[] = {1, 2, 4}; return sum(a, 3); }\n",
    );
    run("gcc", &sandbox, &["-O1", "-S", "sum.c"]);
    let outcome = sandbox.run(&["rewrite", "sum.s", "-o", "sum.twin.s"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("NOT VERIFIED"),
        "{}",
        outcome.stderr
    );
    run("gcc", &sandbox, &["main.c", "sum.twin.s", "-o", "program"]);
    let status = Command::new(sandbox.path("program")).status();
    assert_eq!(status.expect("it is a program").code(), Some(7));
}

#[test]
fn text_becomes_an_object_if_the_output_is_called_so() {
    let sandbox = Sandbox::new();
    sandbox.write("driver.s", DRIVER);
    sandbox
        .run(&["rewrite", "driver.s", "-o", "driver.twin.o"])
        .ok();
    assert_eq!(sandbox.run(&["verify", "driver.twin.o"]).status, 0);
    sandbox
        .run(&["rewrite", "--target", "linux", "driver.s", "-d", "out"])
        .ok();
    assert!(sandbox.path("out/driver.s").exists());
}

#[test]
fn text_is_counted_like_the_object_it_becomes() {
    let sandbox = Sandbox::with_driver();
    sandbox.write("driver.s", DRIVER);
    let of = |name: &str| {
        sandbox
            .run(&["stats", name])
            .ok()
            .text()
            .replace(name, "FILE")
    };
    assert_eq!(of("driver.s"), of("driver.o"));
}

#[test]
fn a_refusal_names_the_line_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("evil.s", privileged(1).replace("hlt", "vmlaunch"));
    let outcome = sandbox.run(&[
        "rewrite", "--target", "linux", "evil.s", "-o", "evil.twin.s",
    ]);
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
    for part in ["evil.s", "line 5", "in evil+", "vmlaunch"] {
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
    assert_eq!(sandbox.names(), ["evil.s"]);
}

#[test]
fn what_the_assembler_does_not_take_is_refused_with_its_lines() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "These are\nonly notes.\n");
    let outcome = sandbox.run(&["rewrite", "notes.txt", "-o", "notes.o"]);
    assert_eq!(outcome.status, 1);
    for part in ["notes.txt", "the assembler rejects this text", "line 1"] {
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
    assert_eq!(sandbox.names(), ["notes.txt"]);
}

/// A switch as compilers make it without -fno-jump-tables.
const SWITCH: &str = "\
\t.text
\t.globl\tf
\t.type\tf, @function
f:
\tcmpl\t$1, %edi
\tja\t.Lother
\tmovl\t%edi, %edi
\tjmp\t*.Ltable(,%rdi,8)
.Lzero:
\tmovl\t(%rsi), %eax
\tret
.Lone:
\tmovl\t4(%rsi), %eax
\tret
.Lother:
\txorl\t%eax, %eax
\tret
\t.size\tf, .-f
\t.section\t.rodata
\t.align 8
.Ltable:
\t.quad\t.Lzero
\t.quad\t.Lone
";

#[test]
fn a_jump_table_that_may_be_written_is_refused_by_name_in_text_for_a_kernel() {
    let sandbox = Sandbox::new();
    sandbox.write("switch.s", SWITCH.replace(".section\t.rodata", ".data"));
    let command = ["rewrite", "switch.s", "-o", "out.s", "--target", "linux"];
    let outcome = sandbox.run(&command);
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("[code-reference]"),
        "{}",
        outcome.stderr
    );
    assert!(!outcome.stderr.contains("internal"), "{}", outcome.stderr);
    assert!(!sandbox.path("out.s").exists());
    // A program may have one: its text keeps its labels.
    let outcome = sandbox.run(&["rewrite", "switch.s", "-o", "out.s"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
}
