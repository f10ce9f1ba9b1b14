//! Assembly text as people write it: several entries, labels with names and numbers, prefixes
//! and comments in odd places.

use std::process::Command;

use crate::sandbox::Sandbox;

/// Functions of a pointer, each of which was once rewritten to something else.
const FUNCTIONS: &str = "
        .text
        .globl  first, second
first:  movq    (%rdi), %rax            # two entries, and no directive says so
second: movq    8(%rdi), %rax
        ret

        .globl  by_number
by_number:
        leaq    1f(%rip), %rax
        movq    %rdi, %rsi
        xorl    %edi, %edi
        jmp     *%rax
into:   movq    (%rsi), %rax
1:      movq    8(%rsi), %rax
        ret

        .globl  by_name
by_name:
        leaq    case(%rip), %rax
        movl    $1, %edx
        cmpq    $2, %rdx                # the flags are for the case
        movq    (%rdi), %rcx
        jmp     *%rax
        movq    (%rcx), %rax
case:   setc    %al
        movzbl  %al, %eax
        addq    %rcx, %rax
        xorl    %edx, %edx
        ret

        .globl  by_table
        .type   by_table, @function
by_table:
        xorl    %edx, %edx
        leaq    table(%rip), %rax
        jmp     *(%rax,%rdx,8)
.Lzero: movl    $3, %ecx
        movl    $5, %r8d
        movq    (%rdi), %rax
        leaq    three(%rip), %rax
        movq    8(%rdi), %rdi
        jmp     *%rax                   # a call at the end, in the convention of its own
.Lone:  xorl    %eax, %eax
        xorl    %ecx, %ecx
        xorl    %r8d, %r8d
        ret
        .size   by_table, .-by_table
        .type   three, @function
three:  leaq    (%rdi,%rcx), %rax
        addq    %r8, %rax
        ret
        .size   three, .-three

        .globl  trapped
        .type   trapped, @function
trapped:
        movl    $7, %ecx
        movl    $9, %edx
        movq    (%rdi), %rax
        int3
        addq    %rcx, %rax
        addq    %rdx, %rax
        ret
        .size   trapped, .-trapped

        .globl  trapped_last
        .type   trapped_last, @function
trapped_last:
        movq    (%rdi), %rax
        int3                            # and on into the next function
        .size   trapped_last, .-trapped_last
        .type   behind, @function
behind: addq    8(%rdi), %rax
        ret
        .size   behind, .-behind

        .globl  looped
looped: movl    $3, %ecx
        loop    .
        movq    (%rdi), %rax
        ret

        .globl  prefixed
prefixed:
        leaq    numbers(%rip), %rax
        movabsq $numbers, %rdx
        subq    %rdx, %rax
        movl    $1, %esi
        leaq    (%rax,%rsi,8), %rsi
        lock addq $1, numbers(%rsi)
        lock/addq $2, numbers(%rsi)
        mov /* x, y ( */ numbers(%rsi), %rax
        {disp32} addq numbers-8(%rsi), %rax
        ds addq numbers(%rsi), %rax
        ret

        .section .data.rel.ro,\"aw\"
table:  .quad   .Lzero, .Lone
        .data
numbers: .quad  100, 200
        .section .note.GNU-stack,\"\",@progbits
        .end
";

const MAIN: &str = "
#include <signal.h>
#include <stdio.h>
long first(long *), second(long *), by_number(long *), by_name(long *), by_table(long *),
    trapped(long *), trapped_last(long *), looped(long *), prefixed(long *);
static void go_on(int signal) { (void)signal; }
int main(void)
{
    long (*all[])(long *) = { first, second, by_number, by_name, by_table, trapped, trapped_last,
        looped, prefixed };
    signal(SIGTRAP, go_on);
    for (int n = 0; n < 9; n++) {
        long a[] = { 11 + n, 1000 + n };
        printf(\"%ld\\n\", all[n](a));
    }
}
";

fn run(sandbox: &Sandbox, line: &str) -> String {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().expect("a program"));
    let output = command.args(words).current_dir(sandbox.path("")).output();
    let output = output.expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{line}: {} {errors}",
        output.status
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn hand_written_functions_do_the_same() {
    let sandbox = Sandbox::new();
    sandbox.write("f.s", FUNCTIONS);
    sandbox.write("main.c", MAIN);
    let outcome = sandbox.run(&["rewrite", "f.s", "-o", "f.twin.s"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    run(&sandbox, "gcc -O1 -no-pie main.c f.s -o original");
    run(&sandbox, "gcc -O1 -no-pie main.c f.twin.s -o twin");
    let expected = run(&sandbox, "./original");
    assert_eq!(expected.lines().count(), 9);
    assert_eq!(run(&sandbox, "timeout 20 ./twin"), expected);
}

/// A breakpoint in C, with a handler or a debugger that goes on.
#[test]
fn registers_are_kept_across_a_breakpoint() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "trap.c",
        "#include <signal.h>
        static void go_on(int signal) { (void)signal; }
        __attribute__((noinline)) int f(int *p, int a, int b, int c)
        { int x = *p; __asm__ volatile(\"int3\"); return x + a * b - c; }
        int main(void) { int v = 5; signal(SIGTRAP, go_on); return f(&v, 3, 7, 2); }\n",
    );
    let twin = env!("CARGO_BIN_EXE_twin");
    run(&sandbox, &format!("{twin} cc -- gcc -O2 trap.c -o trap"));
    let status = Command::new(sandbox.path("trap")).status();
    assert_eq!(status.expect("it is a program").code(), Some(24));
}

/// What would mean something else in rewritten text is refused with its line.
/// A probe: a tool stops at the `nop`, and reads registers that no instruction reads there.
#[test]
fn registers_have_their_values_at_a_probe() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "probe.c",
        "#define _GNU_SOURCE
        #include <signal.h>
        #include <sys/mman.h>
        #include <ucontext.h>
        extern unsigned char *__start_probes[];
        static long seen;
        static void look(int s, siginfo_t *i, void *u)
        { (void)s; (void)i; seen = ((ucontext_t *)u)->uc_mcontext.gregs[REG_RAX]; }
        __attribute__((noinline)) long f(long *p)
        { register long x __asm__(\"rax\") = p[0]; long y = p[1];
          __asm__ volatile(\"1: nop\\n.pushsection probes,\\\"aw\\\"\\n.8byte 1b\\n.popsection\" :: \"r\"(x), \"r\"(y));
          return p[2]; }
        int main(void)
        { long v[] = { 24, 1, 2 };
          struct sigaction action = { .sa_sigaction = look, .sa_flags = SA_SIGINFO };
          mprotect((void *)((long)__start_probes[0] & -4096L), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
          sigaction(SIGTRAP, &action, 0); *__start_probes[0] = 0xcc;
          return f(v) == 2 ? seen : 0; }\n",
    );
    let twin = env!("CARGO_BIN_EXE_twin");
    run(
        &sandbox,
        &format!("{twin} cc -- gcc -O2 -w probe.c -o probe"),
    );
    let status = Command::new(sandbox.path("probe")).status();
    assert_eq!(status.expect("it is a program").code(), Some(24));
}

/// The assembler keeps unwind information for each section and subsection apart, and reads
/// numbers that begin with 0 as octal.
#[test]
fn unwind_information_is_that_of_the_section() {
    let sandbox = Sandbox::new();
    let text = "\t.text\n\t.globl f\n\t.type f, @function\nf:\t.cfi_startproc\n\tpush %rbx\n\
                \t.cfi_def_cfa_offset 020\n\tcmpq $3, (%rdi)\n\tjne 2f\n1:\tpop %rbx\n\
                \t.cfi_def_cfa_offset 8\n\tret\n\t.section .fixup,\"ax\"\n2:\tmov 8(%rdi), %rax\n\
                \tjmp 1b\n\t.text\n\t.cfi_endproc\n\t.size f, .-f\n";
    sandbox.write("f.s", text);
    let outcome = sandbox.run(&["rewrite", "f.s", "-o", "f.twin.s"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    run(&sandbox, "as f.twin.s -o f.o");
    let frames = run(&sandbox, "readelf --debug-dump=frames-interp f.o");
    // The part out of line is reached with what the code has pushed, 16 bytes with the return
    // address, and not 20.
    assert!(frames.contains("rsp+16"), "{frames}");
    assert!(!frames.contains("rsp+20"), "{frames}");
    let text = String::from_utf8(sandbox.read("f.twin.s")).expect("text");
    let (_, apart) = text.split_once(".section .fixup").expect("the section");
    let (apart, _) = apart.split_once("\t.text\n").expect("back");
    assert!(!apart.contains(".cfi_"), "{apart}");
}

#[test]
fn what_depends_on_the_length_of_code_is_refused() {
    let cases = [
        ("\tcall f@PLT+3", 5),
        ("\tjmp 3 + f", 5),
        ("x = f+3\n\tjmp x", 5),
        ("\t.set x, 1b + 3\n\tleaq x(%rip), %rax", 5),
        ("x = . + 2\n\tnop\n\tnop\n\tjmp x", 5),
        ("\t.data\n\t.quad f+3", 6),
        // A constant that looks like an instruction.
        (
            "\tmovq .Lk(%rip), %rax\n\tret\n.Lk:\t.byte 0x48, 0x8b, 0x07",
            7,
        ),
        (
            "\tret\n.Lk:\t.byte 0x48, 0x8b, 0x07\n\tleaq .Lk(%rip), %rax",
            6,
        ),
        ("\t.macro leaq a, b\n\tnop\n\t.endm\n\tmovq (%rdi), %rax", 5),
        (".Ltwin3:\tnop", 5),
        ("\t.end\n\tnop", 5),
    ];
    let sandbox = Sandbox::new();
    for (body, line) in cases {
        let text = format!("\t.text\n\t.globl f\nf:\tmovq (%rdi), %rax\n1:\tret\n{body}\n\tret\n");
        sandbox.write("f.s", text);
        let outcome = sandbox.run(&["rewrite", "f.s", "-o", "out.s"]);
        assert_eq!(outcome.status, 1, "{body}: {}", outcome.stderr);
        let place = format!("f.s: line {line}:");
        assert!(
            outcome.stderr.contains(&place),
            "{body}: {}",
            outcome.stderr
        );
        assert!(outcome.stderr.contains("[statement]"), "{}", outcome.stderr);
        assert!(!sandbox.path("out.s").exists());
    }
}

/// Bytes that are run on to are decoded on into the filling of an alignment, which no line made.
#[test]
fn what_is_no_instruction_behind_the_last_line_has_that_line() {
    let sandbox = Sandbox::new();
    let text =
        "\t.text\nf:\tmovq (%rdi), %rax\n\tnop\n\t.skip 6, 0x90\n\t.byte 0x3e, 0\n\t.p2align 4\n";
    sandbox.write("f.s", text);
    let outcome = sandbox.run(&["rewrite", "f.s", "-o", "out.s"]);
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
    let said = "f.s: line 5: .text+0xd: these bytes are not an instruction [undecodable]";
    assert!(outcome.stderr.starts_with(said), "{}", outcome.stderr);
}

/// Each would be one `add` to memory, and is read by its address.
#[test]
fn numbers_that_nothing_runs_into_are_data() {
    let refused = [
        // What a compiler makes of a constant with `section(".text.z")`.
        (
            "\tret\n\t.globl zero\n\t.type zero, @object\n\t.size zero, 2\nzero:\t.value 3",
            7,
        ),
        (
            "\t.type k, @object\n\t.size k, 4\nk:\tnop\n\tnop\n\t.value 3",
            7,
        ),
        ("\tret\n\t.p2align 4\n.Lt:\t.value 3", 5),
        ("\tret\n\tint3\n.Lt:\t.value 3", 5),
        ("\tret\n.Lt:\t.value 0xc031\n\t.value 3", 5),
        // What is called reads it, or does not return.
        ("\tcall 1f\n\t.value 3\n1:\tpop %rdx", 4),
        ("\tcall *%rax\n\t.value 3", 4),
        ("\tsyscall\n\t.value 3", 4),
    ];
    let sandbox = Sandbox::new();
    let rewrite = |body: &str| {
        let text = format!("\t.text\nf:\n{body}\n\tmovq (%rdi), %rax\n\tret\n");
        sandbox.write("f.s", text);
        sandbox.run(&["rewrite", "f.s", "-o", "out.s"])
    };
    for (body, line) in refused {
        let outcome = rewrite(body);
        let said = &outcome.stderr;
        assert_eq!(outcome.status, 1, "{body}: {said}");
        assert!(
            said.contains(&format!("f.s: line {line}: ")),
            "{body}: {said}"
        );
        assert!(said.contains("may be data"), "{body}: {said}");
    }
    for body in [
        "\tpush %rax\n\tnop\n\t.value 3",
        "\tjmp 1f\n\tnop\n1:\t.value 3",
        "\tcall f\n\tnop\n\t.value 3",
        "\tret\n\t.globl g\ng:\t.value 0xc031\n\t.value 3",
        "\tret\n\t.type h, @function\nh:\t.value 3",
    ] {
        let outcome = rewrite(body);
        assert_eq!(outcome.status, 0, "{body}: {}", outcome.stderr);
    }
}

/// `FSTCW` is two instructions, which are taken apart in lower case alone, and a prefix by itself is
/// none, so there are as many of these as lines. The store was once made twice: its line stayed, and the
/// next one became it.
#[test]
fn a_prefix_does_not_stand_for_the_second_of_two_instructions() {
    for prefix in [
        "ht",
        "rex.x",
        "rexyz",
        "word",
        "cs ds",
        "cs,ds",
        "data16 /* a */ rex64",
    ] {
        let sandbox = Sandbox::new();
        let text = format!(
            ".text\n.globl f\nf: FSTCW -2(%rsp)\naddq $5, (%rdi)\nmovq (%rdi), %rax\n\
             {prefix}\nnop\nret\n"
        );
        sandbox.write("f.s", text);
        let outcome = sandbox.run(&["rewrite", "f.s", "-o", "f.twin.s"]);
        assert_eq!(outcome.status, 1, "{prefix}");
        let said = "f.s: line 3: `FSTCW -2(%rsp)`: these lines do not become one instruction each";
        assert!(outcome.stderr.starts_with(said), "{}", outcome.stderr);
        assert_eq!(sandbox.names(), ["f.s"]);
    }
}

#[test]
fn text_that_an_assembler_does_not_take_is_not_left() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "f.s",
        "\t.text\nf:\tmovq (%rdi), %rax\n\t.if . - f > 8\n\tud2\n\t.endif\n\tret\n",
    );
    let outcome = sandbox.run(&["rewrite", "f.s", "-o", "out.s"]);
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
    for part in ["f.s, rewritten", "line ", "non-constant expression"] {
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
    assert!(!sandbox.path("out.s").exists());
}

/// A text that was rewritten is told from others.
#[test]
fn a_text_is_rewritten_once() {
    let sandbox = Sandbox::new();
    sandbox.write("f.s", "\t.text\nf:\tmovq (%rdi), %rax\n\tret\n");
    let once = sandbox.run(&["rewrite", "f.s", "-o", "once.s"]);
    assert_eq!(once.status, 0, "{}", once.stderr);
    let outcome = sandbox.run(&["rewrite", "once.s", "-o", "twice.s"]);
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("rewritten once"),
        "{}",
        outcome.stderr
    );
    assert!(!sandbox.path("twice.s").exists());
}

/// In a program, where operands relative to `rsp` stay: these reach another place beside.
#[test]
fn stores_that_no_operand_shows_are_refused() {
    let text = |line: &str| format!("\t.text\nf:\t{line}\n\tret\n");
    // One of MPX, which the assembler of Debian 13 does not have any more.
    let bound = "bndstx %bnd0, 3(%rsp,%rax)";
    let bound = filetests::is_assembled(text(bound)).then_some(bound);
    for line in [
        "clzero",
        "xstorerng",
        "rep xcryptecb",
        "rep xsha1",
        "movdir64b -8(%rsp), %rax",
        "enqcmd -8(%rsp), %rax",
    ]
    .into_iter()
    .chain(bound)
    {
        let sandbox = Sandbox::new();
        sandbox.write("f.s", text(line));
        let outcome = sandbox.run(&["rewrite", "f.s", "-o", "out.s"]);
        assert_eq!(outcome.status, 1, "{line}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("[unsupported]"),
            "{line}: {}",
            outcome.stderr
        );
        assert!(!sandbox.path("out.s").exists());
    }
    // What stores to the stack alone, or waits for a store, stays.
    let sandbox = Sandbox::new();
    sandbox.write(
        "f.s",
        "\t.text\nf:\tpushfq\n\tpopfq\n\tenter $16, $0\n\tleave\n\tumonitor %rdi\n\tret\n",
    );
    let outcome = sandbox.run(&["rewrite", "f.s", "-o", "out.s"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
}

/// The runtime asks for a stack that is not executable only where the text does.
#[test]
fn a_stack_is_executable_where_the_text_has_it_so() {
    const NOTE: &str = "\t.section .note.GNU-stack,\"\",@progbits\n";
    for note in ["", NOTE] {
        let sandbox = Sandbox::new();
        sandbox.write(
            "f.s",
            format!("\t.text\nf:\tmov (%rdi),%rax\n\tret\n{note}"),
        );
        let outcome = sandbox.run(&["rewrite", "f.s", "-o", "out.s"]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        run(&sandbox, "gcc -c out.s");
        let sections = run(&sandbox, "readelf -SW out.o");
        assert_eq!(sections.contains(".note.GNU-stack"), !note.is_empty());
    }
}

/// The table of a program: a free entry has the tag of no page of its index.
const TABLE: &str = "
#include <stdio.h>
#include <sys/mman.h>
extern volatile unsigned long twin_stlb[8192] __attribute__((visibility(\"hidden\")));
__attribute__((noinline)) static int load(volatile int *p) { return *p; }
int main(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    int *page = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    unsigned long tag = twin_stlb[0];
    // As before all constructors: the entry is left alone.
    twin_stlb[0] = 0;
    int first = load(page);
    unsigned long kept = twin_stlb[0];
    twin_stlb[0] = tag;
    int second = load(page);
    printf(\"%lx %lx %lx %d\\n\", tag, kept, twin_stlb[0], first + second);
}
";

/// Another thread may fill the entry between the two instructions that read it.
#[test]
fn no_entry_of_the_table_is_that_of_address_zero_before_it_is_filled() {
    let twin = env!("CARGO_BIN_EXE_twin");
    for flags in ["-O2", "-O2 -static", "-O2 -no-pie -Wl,--gc-sections"] {
        let sandbox = Sandbox::new();
        sandbox.write("table.c", TABLE);
        run(
            &sandbox,
            &format!("{twin} cc -- gcc {flags} table.c -o table"),
        );
        assert_eq!(run(&sandbox, "./table"), "1000 0 10000000 0\n", "{flags}");
    }
}
