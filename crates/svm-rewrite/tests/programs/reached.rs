//! Tables among the code that may be reached otherwise than by their labels, and stay.

use crate::run::{TWO_CASES, is_refused, is_the_same};
use crate::tables::{K, among_code};

/// Each of these went to a table, or read it, by a number: the code had an address of its own.
#[test]
fn tables_of_code_that_has_its_own_address_stay() {
    let table = "\t.align 64\nk:\t.long 0xffffff06,6,7,8,0xff06,9,10,11,0xff06,12";
    let here = |lines: &str| format!("{table}\n\t.align 16\nhere:\t{lines}\n\tret");
    let read = "\tadd 24(%rcx),%eax\n\tadd k(%rip),%eax\n\tmov %rsi,%rcx";
    let called = format!("\tcall here\n{read}");
    let called_globally = format!("\t.globl here\n\tcall here@PLT\n{read}");
    for (before, behind) in [
        // A routine that gives its return address.
        (called.clone(), here("mov (%rsp),%rcx")),
        (called.clone(), here("pop %rcx\n\tpush %rcx")),
        (called.clone(), here("endbr64\n\tmov (%rsp),%rcx")),
        (
            called.clone(),
            here("push %rbx\n\tmov 8(%rsp),%rcx\n\tpop %rbx"),
        ),
        (
            called.clone(),
            here("sub $8,%rsp\n\tadd $8,%rsp\n\tpop %rcx\n\tpush %rcx"),
        ),
        (
            called.clone(),
            here("push %rbp\n\tmov %rsp,%rbp\n\tmov 8(%rbp),%rcx\n\tpop %rbp"),
        ),
        (
            called.clone(),
            here("mov %rsp,%rcx\n\tadd $-8,%rcx\n\tmov 8(%rcx),%rcx"),
        ),
        (
            called.clone(),
            here("lea -16(%rsp),%rcx\n\tmov 16(%rcx),%rcx"),
        ),
        (
            called.clone(),
            here("jmp 1f\n\tint3\n1:\tmovq (%rsp),%xmm0\n\tmovq %xmm0,%rcx"),
        ),
        (called.clone(), here("xchg %rcx,(%rsp)\n\txchg %rcx,(%rsp)")),
        (
            called.clone(),
            here("mov %rsi,%r8\n\tmov %rsp,%rsi\n\tmov (%rsi),%rcx\n\tmov %r8,%rsi"),
        ),
        (
            called.clone(),
            here("xor %edx,%edx\n\tmov (%rsp,%rdx,8),%rcx"),
        ),
        (
            called.clone(),
            here("mov %rsp,%r8\n\tmov %rsp,%r9\n\tmov (%r8),%rcx"),
        ),
        (
            called.clone(),
            here(
                "mov %rsi,%r8\n\tmov %rax,%r9\n\tmov %rsp,%rsi\n\tlodsq\n\tmov %rax,%rcx\n\tmov %r8,%rsi\n\tmov %r9,%rax",
            ),
        ),
        (
            called.clone(),
            here("push %rsp\n\tpop %r8\n\tmov (%r8),%rcx"),
        ),
        (called_globally, here("mov (%rsp),%rcx")),
        // Its own place, in several forms.
        (format!("\tlea (%rip),%rcx\n{read}"), table.to_owned()),
        (format!("\tlea .(%rip),%rcx\n{read}"), table.to_owned()),
        (
            format!("\t.byte 0x48,0x8d,0x0d,0,0,0,0\n{read}"),
            table.to_owned(),
        ),
        (
            format!("\tmov %rax,%r8\n\tmov $39,%eax\n\tsyscall\n\tmov %r8,%rax\n{read}"),
            table.to_owned(),
        ),
        (
            format!("\tfldz\n\tfnstenv -40(%rsp)\n\tmov -28(%rsp),%ecx\n{read}"),
            table.to_owned(),
        ),
        // From data, as an address or as a distance.
        (
            format!("\tmov p(%rip),%rcx\n{read}"),
            format!("{table}\n\t.data\np:\t.quad f"),
        ),
        (
            format!("\tlea p(%rip),%rcx\n\tadd (%rcx),%rcx\n{read}"),
            format!("{table}\n\t.section .rodata\np:\t.quad f-p"),
        ),
        // It reads beyond an end: the table's, and its own.
        (
            "\tmovdqu k(%rip),%xmm0\n\tpextrw $7,%xmm0,%eax\n\tmov %rsi,%rcx".to_owned(),
            "\t.align 16\nk:\t.long 0xff06,1,2\n\t.align 16\ng:\tret".to_owned(),
        ),
        (
            "\tadd e(%rip),%eax\n\tmov %rsi,%rcx".to_owned(),
            "e:\tret\nk:\t.byte 6,6,6,6,6,6,6".to_owned(),
        ),
    ] {
        is_refused(&among_code(&before, &behind, ""), "no");
    }
    // A routine that is called, and uses its own frame alone.
    for lines in [
        "nop",
        "push %rbx\n\tmov (%rsp),%rbx\n\tpop %rbx",
        "mov %rsp,%r8\n\tsub $64,%rsp\n\tand $-64,%rsp\n\tmov %rcx,(%rsp)\n\tmov %r8,%rsp",
        "push %rbp\n\tmov %rsp,%rbp\n\tmov %rcx,-8(%rbp)\n\tmov 16(%rbp),%r8\n\tleave",
    ] {
        let before = format!("\tcall here\n\t{K}");
        is_the_same(&among_code(&before, &here(lines), ""), TWO_CASES);
    }
}

/// Nearly each of these computed something else when its table was moved.
#[test]
fn tables_that_are_reached_otherwise_than_by_their_labels_stay() {
    const CODE: &str = "k:\t.byte 0x31,0xc0,0xff,0xc0,0xc3,6,6,6,6,6,6,6";
    let call = |lea: &str| format!("\t{lea}\n\tsub $8,%rsp\n\tcall *%rcx\n\tadd $8,%rsp\n\tret");
    let aligned = "\t.align 16\nk:\t.long 0xffffff06,6,7,8";
    let g = "\t.align 16\ng:\tmov $5,%eax\n\tret";
    for (before, table, behind) in [
        // Code behind it, and in it.
        (call("lea k+16(%rip),%rcx"), aligned, g),
        (
            call("lea k+4(%rip),%rcx"),
            "k:\t.long 0xffffff06\n\t.byte 0xb8,9,0,0,0,0xc3",
            "",
        ),
        // Code, whose address is taken unseen, or that claims to be an object.
        (call("mov k@GOTPCREL(%rip),%rcx"), CODE, ""),
        (call("LEA k(%rip),%rcx"), CODE, ""),
        (call("{disp32} lea k(%rip),%rcx"), CODE, ""),
        (
            call("lea k(%rip),%rcx"),
            "\t.type k,@object\n\t.size k,12\nk:\t.byte 0x31,0xc0,0xc3,6,6,6,6,6,6,6,6,6",
            "",
        ),
        // In it, by an address that is added to.
        (
            call("lea k(%rip),%rcx\n\tadd $4,%rcx"),
            "k:\t.byte 6,6,6,6,0x31,0xc0,0xc3,6,6,6,6,6",
            "",
        ),
        (
            "\tlea k(%rip),%rcx\n\tadd $4,%rcx\n\tpush %rcx\n\tret".to_owned(),
            "k:\t.byte 6,6,6,6,0x31,0xc0,0xc3,6,6,6,6,6",
            "",
        ),
        // It has the letters of an object's type in its name.
        (
            call("lea object(%rip),%rcx"),
            "\t.globl object\n\t.type object,@function\nobject:\t.byte 0x31,0xc0,0xc3\nk:\t.long 0xff06",
            "",
        ),
        // Others may call what is returned, or stored.
        ("\tlea k(%rip),%rax\n\tret".to_owned(), CODE, ""),
        (
            "\tlea k(%rip),%rcx\n\tmov %rcx,(%rsi)\n\tret".to_owned(),
            CODE,
            "",
        ),
        // By a distance, in code or in a table elsewhere.
        (
            call("lea k(%rip),%rcx\n\tadd $j-k,%rcx"),
            "k:\t.long 0xffffff06\nj:\t.byte 0x31,0xc0,0xc3,6,6,6,6,6",
            "",
        ),
        (
            call("lea p(%rip),%rcx\n\tmovslq (%rcx),%rdx\n\tadd %rdx,%rcx"),
            CODE,
            "\t.section .rodata\np:\t.long k-p",
        ),
        // By the address of code.
        (
            "\tlea f(%rip),%rcx\n\tadd 16(%rcx),%eax".to_owned(),
            aligned,
            "",
        ),
        (
            "\tcall 1f\n1:\tpop %rcx\n\tadd 20(%rcx),%eax".to_owned(),
            aligned,
            "",
        ),
        (
            "\tlea g(%rip),%rcx\n\tadd -4(%rcx),%eax\n\tadd k(%rip),%eax".to_owned(),
            aligned,
            "\t.align 16\n\t.globl x\nx:\ng:\tret",
        ),
        (
            "\tlea g(%rip),%rcx\n\tadd -4(%rcx),%eax\n\tadd k(%rip),%eax".to_owned(),
            aligned,
            "\t.data\n\t.long 1\n\t.text\ng:\tret",
        ),
        // By its neighbour's.
        (
            "\tadd l-4(%rip),%eax\n\tadd k(%rip),%eax\n\tmov %rsi,%rcx".to_owned(),
            aligned,
            "\t.align 16\n\t.globl x\nx:\tret\n\t.align 16\nl:\t.long 6",
        ),
        // Written, in a page that the code makes writable by its own address.
        (
            "\tmov %eax,k(%rip)\n\tmov %rsi,%rcx".to_owned(),
            aligned,
            "",
        ),
        (
            "\txchg k(%rip),%eax\n\tmov %rsi,%rcx".to_owned(),
            aligned,
            "",
        ),
        (
            "\tlock cmpxchg %edx,k(%rip)\n\tmov %rsi,%rcx".to_owned(),
            aligned,
            "",
        ),
    ] {
        is_refused(&among_code(&before, table, behind), "no");
    }
}

/// Each of these found its own address on the stack, or in a register that it came to by way of it.
#[test]
fn tables_of_code_that_sees_its_return_address_stay() {
    let table = "\t.align 64\nk:\t.long 0xffffff06,6,7,8,0xff06,9,10,11,0xff06,12";
    let read = "\tadd 24(%rcx),%eax\n\tadd k(%rip),%eax\n\tmov %rsi,%rcx";
    let called = |call: &str, lines: &str| {
        let behind = format!("{table}\n\t.align 16\nhere:\t{lines}\n\tret");
        is_refused(&among_code(&format!("\t{call}\n{read}"), &behind, ""), "no");
    };
    // Its place goes through what is no sum.
    for place in [
        "xor %r8d,%r8d\n\tcmp %r8d,%r8d\n\tcmove %rsp,%r8",
        "xor %r8d,%r8d\n\tlea (%rsp,%r8),%r8",
        "xor %r8d,%r8d\n\tadd %rsp,%r8",
        "xor %r8d,%r8d\n\tor %rsp,%r8",
        "mov %rsp,%r9\n\txchg %r8,%r9",
        "xor %r9d,%r9d\n\tmov %rsp,%r8\n\txadd %r9,%r8",
        "mov %rsp,%r8\n\tbswap %r8\n\tbswap %r8",
        "mov %rsp,%r8\n\trol $32,%r8\n\tror $32,%r8",
        "mov %rsp,%r8\n\tneg %r8\n\tneg %r8",
        "mov %rsp,%r8\n\tnot %r8\n\tnot %r8",
        "mov %rsp,%r8\n\tmov $-1,%r9\n\tpext %r9,%r8,%r8",
        "movq %rsp,%xmm0\n\tmovq %xmm0,%r8",
        "mov %rsp,-16(%rsp)\n\tmov -16(%rsp),%r8",
        "mov %rsp,%r8\n\ttest %edi,%edi\n\tjz 1f\n\tmov %rsi,%r8\n1:",
    ] {
        called("call here", &format!("{place}\n\tmov (%r8),%rcx"));
    }
    // The stack goes back to it.
    for lines in [
        "push %rbp\n\tmov %rsp,%rbp\n\tsub $32,%rsp\n\tleave\n\tmov (%rsp),%rcx",
        "mov %rbp,%r8\n\tmov %rsp,%rbp\n\tleave\n\tmov %rbp,%rcx\n\tpush %rbp\n\tmov %r8,%rbp",
        "enter $16,$0\n\tmov 8(%rbp),%rcx\n\tleave",
        "inc %rsp\n\tmov -1(%rsp),%rcx\n\tdec %rsp",
        "xor %r8d,%r8d\n\tsub %r8,%rsp\n\tpop %rcx\n\tpush %rcx",
        "mov %rsp,%r8\n\tand $-16,%rsp\n\tmov 8(%rsp),%rcx\n\tmov %r8,%rsp",
        "push %rsi\n\tpush %rsi\n\tmov $2,%r8d\n1:\tpop %r9\n\tdec %r8d\n\tjnz 1b\n\tmov (%rsp),%rcx",
        "test %edi,%edi\n\tjz 1f\n\tpush %rsi\n1:\tmov (%rsp),%rcx\n\ttest %edi,%edi\n\tjz 2f\n\tpop %r8\n2:",
        "mov %rsp,%r8\n\txor %edx,%edx\n\tmov (%r8,%rdx),%rcx",
        "mov %rsp,%r8\n\txor %edx,%edx\n\tmov (%rdx,%r8),%rcx",
        "mov %rbx,%r9\n\tmov %rax,%r10\n\tmov %rsp,%rbx\n\txlatb\n\tmov %r9,%rbx\n\tmov %r10,%rax",
        // More steps than are followed.
        "mov %rsp,%r8\n\tsub $1024,%r8\n1:\tadd $8,%r8\n\tcmp %rsp,%r8\n\tjne 1b\n\tmov (%r8),%rcx",
    ] {
        called("call here", lines);
    }
    // The caller says where it will be, or finds it there later.
    called("lea -8(%rsp),%r8\n\tcall here", "mov (%r8),%rcx");
    called("mov %rsp,%r8\n\tcall here", "mov -8(%r8),%rcx");
    called("call here\n\tmov -8(%rsp),%rcx", "nop");
    called("call here\n\tsub $8,%rsp\n\tpop %rcx", "nop");
    called(
        "mov $8,%r8d\n\tcall here\n\tlea -16(%rsp,%r8),%rsp\n\tpop %rcx",
        "nop",
    );
    called(
        "push %rsi\n\tcall abs@PLT\n\tmov -8(%rsp),%rcx\n\tpop %rsi",
        "nop",
    );
    // What was pushed, or stored, over it is something else.
    let behind = format!("{table}\n\t.align 16\nhere:\tnop\n\tret");
    let over = "\tcall here\n\tpush %rsi\n\tpop %rcx\n\tadd k(%rip),%eax";
    is_the_same(&among_code(over, &behind, ""), TWO_CASES);
}

/// Others tell it: the state that is saved, tables of unwinders.
#[test]
fn tables_of_code_that_is_told_its_address_stay() {
    let table = "\t.align 64\nk:\t.long 0xffffff06,6,7,8,0xff06,9,10,11,0xff06,12";
    let read = "\tadd 24(%rcx),%eax\n\tadd k(%rip),%eax\n\tmov %rsi,%rcx";
    for save in ["fxsave64", "xsave64", "xsavec64", "xsaveopt64"] {
        let before = format!("\t{save} -832(%rsp)\n\tmov -824(%rsp),%rcx\n{read}");
        is_refused(&among_code(&before, table, ""), "no");
    }
    let frames = "\t.section .eh_frame,\"a\",@progbits\n\t.long 16,0\n\
                  .byte 1,0,1,0x78,16,0,0,0,0,0,0,0\n\t.long 12,24\n.Lp:\t.long f-.Lp,4\n";
    let before = format!("\tlea .Lp(%rip),%rcx\n\tmovslq (%rcx),%rdx\n\tadd %rdx,%rcx\n{read}");
    is_refused(&among_code(&before, table, frames), "no");
    // An unwinder runs it.
    let routine = "k:\t.byte 0xb8,8,0,0,0,0xc3,6,6";
    let text = among_code("\tmov %rsi,%rcx", routine, "");
    let text = text.replace("f:\n", "f:\n\t.cfi_startproc\n\t.cfi_personality 0x1b,k\n");
    is_refused(
        &text.replace("\t.size f", "\t.cfi_endproc\n\t.size f"),
        "no",
    );
}

/// A return goes to what was pushed, whatever stands between.
#[test]
fn tables_that_a_return_goes_to_stay() {
    let code = "k:\t.byte 6,6,6,6,0x31,0xc0,0xc3,6,6,6,6,6";
    for go in [
        "push %rcx\n\tnop\n\tret",
        "push %rcx\n\tnop\n\tret $0",
        "push %rcx\n\tjmp 1f\n1:\tret",
        "mov %rcx,-8(%rsp)\n\tsub $8,%rsp\n\tret",
        "movq %rcx,%xmm0\n\tsub $8,%rsp\n\tmovq %xmm0,(%rsp)\n\tnop\n\tret",
        "mov %rcx,-32(%rsp)\n\tpush -32(%rsp)\n\tnop\n\tret",
    ] {
        let before = format!("\tlea k(%rip),%rcx\n\tadd $4,%rcx\n\t{go}");
        is_refused(&among_code(&before, code, ""), "no");
    }
}
