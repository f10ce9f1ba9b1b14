//! Assembly text whose accesses are in macros, repetitions and directives that make bytes.

use std::process::Command;

use crate::sandbox::Sandbox;

/// Functions of two pointers that leave a result where the second one points.
const FUNCTIONS: &str = "
        .text
        .macro  load from:req, to=%rax, off=0
        .ifc    \\to,%rcx
        movq    \\off(\\from), %rcx
        .else
        movq    \\off(\\from), \\to
        .endif
        .endm
        .macro  loads count
        .if     \\count
        addq    8*\\count(%rdi), %rax
        loads   (\\count-1)
        .endif
        .endm
        .macro  skip_if_zero
        testq   %rax, %rax
        je      .Lskip\\@
        addq    8(%rdi), %rax
.Lskip\\@:
        .endm

        .globl  uses
uses:   load    %rdi
        load    %rdi, to=%rcx, off=8 ; addq %rcx, %rax  # two in a line
        loads   3
        skip_if_zero
        skip_if_zero
        movq    %rax, (%rsi)
        ret

        .globl  repeated
repeated:
        xorl    %eax, %eax
        .rept   2*2
        addq    (%rdi), %rax
        addq    $8, %rdi
        .endr
        .irp    at, 0, -8,-16
        addq    \\at(%rdi), %rax
        .endr
        .irpc   digit, 124
        incq    -\\digit\\()0(%rdi)
        .endr
        movq    %rax, (%rsi)
        ret

        .globl  encoded
encoded:
        .byte   0x48, 0x8b, 0x07        # mov (%rdi), %rax
        .byte   0x66; movl  8(%rdi), %eax
        .byte   0x48
        addl    16(%rdi), %eax
        .if     0
        movq    (%rax), %rax
        .endif
        movq    %rax, (%rsi)
        ret
        .section .note.GNU-stack,\"\",@progbits
";

const MAIN: &str = "
#include <stdio.h>
void uses(long *, long *), repeated(long *, long *), encoded(long *, long *);
int main(void)
{
    void (*all[])(long *, long *) = { uses, repeated, encoded };
    for (int n = 0; n < 3; n++) {
        long a[8], result = -1;
        for (int i = 0; i < 8; i++)
            a[i] = 0x10001 * (i + 3);
        all[n](a, &result);
        printf(\"%lx\", result);
        for (int i = 0; i < 8; i++)
            printf(\" %lx\", a[i]);
        puts(\"\");
    }
}
";

fn command(sandbox: &Sandbox, line: &str) {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().expect("a program"));
    let status = command.args(words).current_dir(sandbox.path("")).status();
    assert!(status.expect("it runs").success(), "{line}");
}

fn output(sandbox: &Sandbox, program: &str) -> String {
    let output = Command::new(sandbox.path(program)).output();
    String::from_utf8(output.expect("it runs").stdout).expect("text")
}

#[test]
fn accesses_in_macros_are_rewritten_and_do_the_same() {
    let sandbox = Sandbox::new();
    sandbox.write("f.s", FUNCTIONS);
    sandbox.write("main.c", MAIN);
    let outcome = sandbox.run(&["rewrite", "f.s", "-o", "f.twin.s"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    command(&sandbox, "gcc -O1 main.c f.s -o original");
    command(&sandbox, "gcc -O1 main.c f.twin.s -o twin");
    let expected = output(&sandbox, "original");
    assert_eq!(expected.lines().count(), 3);
    assert_eq!(output(&sandbox, "twin"), expected);
    let text = String::from_utf8(sandbox.read("f.twin.s")).expect("text");
    for line in [
        "movq 0(%rdi), %rax",
        "addq 8*((3-1)-1)(%rdi), %rax",
        "addq -16(%rdi), %rax",
    ] {
        assert!(text.contains(&format!("# twin: {line}")), "{line}: {text}");
    }
}

/// Out-of-line parts follow the last line of a function, which may be a macro.
#[test]
fn a_function_that_ends_with_a_macro_does_the_same() {
    let sandbox = Sandbox::new();
    let f = ".text\n.macro give\nret\n.endm\n.globl f\n.type f,@function\n\
             f: movl (%rdi), %eax\ngive\n.size f, .-f\n";
    sandbox.write("f.s", f);
    sandbox.write(
        "main.c",
        "int f(int *); int main(void) { int seven = 7; return f(&seven); }",
    );
    assert_eq!(sandbox.run(&["rewrite", "f.s", "-o", "f.twin.s"]).status, 0);
    command(&sandbox, "gcc main.c f.twin.s -o twin");
    // It may not end if it runs into such a part.
    let status = Command::new("timeout")
        .arg("10")
        .arg(sandbox.path("twin"))
        .status();
    assert_eq!(status.expect("it runs").code(), Some(7));
}

/// For a module, every access that is not translated would be found by the proof.
#[test]
fn accesses_in_macros_of_a_module_are_proved() {
    let sandbox = Sandbox::new();
    sandbox.write("f.s", FUNCTIONS);
    let linux = ["rewrite", "--target", "linux", "f.s", "-o", "f.twin.s"];
    sandbox.run(&linux).ok();
}

#[test]
fn inline_assembly_with_macros_is_rewritten() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "main.c",
        "asm(\".macro get from, to\\n mov (\\\\from), \\\\to\\n.endm\");
        int main(void)
        {
            long value = 7, result = 0;
            asm(\"get %1, %0\\n\\t.rept 3\\n\\tadd (%1), %0\\n\\t.endr\\n\\t\"
                \".byte 0x48, 0x03, 0x01\" : \"=&r\"(result) : \"c\"(&value) : \"rax\", \"memory\");
            return result;
        }",
    );
    for flags in ["-O0", "-O2"] {
        for (compiler, output) in [(vec!["gcc"], "plain"), (vec!["twin"], "twin")] {
            let mut command = match &*compiler {
                ["twin"] => Command::new(env!("CARGO_BIN_EXE_twin")),
                _ => Command::new("gcc"),
            };
            if compiler == ["twin"] {
                command.args(["cc", "--", "gcc"]);
            }
            command.args([flags, "main.c", "-o", output]);
            let status = command.current_dir(sandbox.path("")).status();
            assert!(status.expect("it runs").success());
        }
        let code = |program: &str| {
            let status = Command::new(sandbox.path(program)).status();
            status.expect("it runs").code()
        };
        assert_eq!(code("twin"), code("plain"), "{flags}");
    }
}

/// What cannot be written out is refused with the line where it stands.
#[test]
fn a_refusal_names_the_line_of_the_use() {
    let sandbox = Sandbox::new();
    let cases = [
        // A count that only the assembler knows.
        ("n = 2\n.rept n\nmovq (%rdi), %rax\n.endr", 4),
        (".macro m a\nmovq (%rdi), \\a\n.exitm\n.endm\n m %rax", 7),
        // Inside one, once it is written out.
        (".macro m\nvmlaunch\n.endm\n nop\n m", 7),
        (".byte 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x0f", 3),
        // An instruction that two directives make.
        (" nop\n .byte 0x48, 0x8b\n .byte 0x07", 4),
    ];
    for (body, line) in cases {
        let text = format!("\t.text\nf:\n{body}\n\tmovq (%rsi), %rcx\n\tret\n");
        sandbox.write("f.s", text);
        let outcome = sandbox.run(&["rewrite", "--target", "linux", "f.s", "-o", "out.s"]);
        assert_eq!(outcome.status, 1, "{body}: {}", outcome.stderr);
        let place = format!("f.s: line {line}:");
        assert!(
            outcome.stderr.contains(&place),
            "{body}: {}",
            outcome.stderr
        );
        assert!(!sandbox.path("out.s").exists());
    }
}

/// An indirect jump reaches what a directive encodes after its label: registers are used there.
#[test]
fn labels_before_encoded_instructions_are_reached() {
    let sandbox = Sandbox::new();
    let jump = |here: &str| {
        format!(
            "\t.text\n\t.globl f\nf:\n\tmovl $5, %ecx\n\tmovl $6, %edx\n\tmovl $7, %r8d\n\
             \tmovl $8, %r9d\n\tmovl $1, %esi\n\tleaq .Lhere(%rip), %rax\n\
             \tmovq (%rdi), %rdi\n\tjmp *%rax\n\
             .Lhere:\n{here}\n\tmovl %esi, %eax\n\txorl %ecx, %ecx\n\txorl %edx, %edx\n\
             \txorl %r8d, %r8d\n\txorl %r9d, %r9d\n\tret\n\
             \t.section .note.GNU-stack,\"\",@progbits\n"
        )
    };
    sandbox.write(
        "main.c",
        "int f(long *); int main(void) { long a = 3; return f(&a); }",
    );
    // `add %ecx, %esi` and the same of edx, r8d and r9d, which are then overwritten.
    let adds = "0x01,0xce\n.byte 0x01,0xd6\n.byte 0x44,0x01,0xc6\n.byte 0x44,0x01,0xce";
    for here in [
        format!(".byte {adds}"),
        format!(".macro m\n.byte {adds}\n.endm\nm"),
        format!(".rept 1\n.byte {adds}\n.endr"),
    ] {
        sandbox.write("f.s", jump(&here));
        let outcome = sandbox.run(&["rewrite", "f.s", "-o", "f.twin.s"]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        command(&sandbox, "gcc main.c f.s -o original");
        command(&sandbox, "gcc main.c f.twin.s -o twin");
        let code = |program: &str| {
            let status = Command::new(sandbox.path(program)).status();
            status.expect("it runs").code()
        };
        assert_eq!(code("twin"), code("original"), "{here}");
    }
}

/// The code between a branch and where it goes becomes longer.
#[test]
fn branches_by_distance_are_refused() {
    let sandbox = Sandbox::new();
    let refused = [
        ".byte 0xeb, 4",
        "jmp .+6",
        "jmp 1f+2",
        ".byte 0xeb\n .byte 4",
    ];
    let uses = [
        ".macro over n\n.byte 0xeb, \\n\n.endm\n over 4",
        ".rept 1\njmp .+6\n.endr",
    ];
    let accepted = [
        "jmp 2f",
        ".byte 0xe9\n .long 2f - 3f\n3:",
        ".macro m\njmp 2f\n.endm\n m",
    ];
    let lines = [
        (&refused[..], 3),
        (&uses[..1], 6),
        (&uses[1..], 3),
        (&accepted[..], 0),
    ];
    for target in ["process", "linux"] {
        for (branches, line) in lines {
            for branch in branches {
                sandbox.write(
                    "f.s",
                    format!(
                        "\t.text\nf:\n {branch}\n1:\tmovl (%rdi), %eax\n\tnop\n\tnop\n2:\tret\n"
                    ),
                );
                let outcome = sandbox.run(&["rewrite", "--target", target, "f.s", "-o", "out.s"]);
                assert_eq!(
                    outcome.status,
                    i32::from(line != 0),
                    "{branch}: {}",
                    outcome.stderr
                );
                let place = format!("f.s: line {line}:");
                let named = line == 0 || outcome.stderr.contains(&place);
                assert!(named, "{branch}: {}", outcome.stderr);
                assert!(!outcome.stderr.contains("internal"), "{}", outcome.stderr);
            }
        }
    }
}
