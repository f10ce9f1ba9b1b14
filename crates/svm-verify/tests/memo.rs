//! The verifier's memo does not carry a judgement from a good place to a bad one. Each
//! object has the same bytes twice or more, first at an allowed place, so that they are
//! remembered, then at one that is not allowed. `common::verify` compares every result
//! with that of a verifier without a memo.

mod common;
use common::*;

/// Enough bytes after the code that no instruction is near the section's end.
const TAIL: &str = "\n.p2align 4\nnop; nop; nop; nop; nop; nop; nop; nop\n.p2align 6\n";

/// Code, and the offsets in `.text` and codes of all its violations.
#[track_caller]
fn judged(code: &str, expected: &[(u64, &str)]) {
    let bytes = object(STLB, &format!("{code}{TAIL}"));
    let found: Vec<(u64, &str)> = match verify(&bytes, USER) {
        Ok(_) => Vec::new(),
        Err(v) => v.list.iter().map(|v| (v.offset, v.code.as_str())).collect(),
    };
    assert_eq!(found, expected, "{code}");
}

#[test]
fn a_table_read_with_other_relocations() {
    // Equal bytes: a tag, a translation, an address in dom0, nothing.
    let index = "mov %rdi, %rax; mov %edi, %ecx; shr $8, %ecx; and $0xfff0, %ecx";
    let good = check(STLB, "(%rdi)", 1);
    for (read, rule) in [
        ("twin_stlb+8(%rcx)", "P5-table"),
        ("\"twin_vm:x\"(%rcx)", "P1-untranslated"),
    ] {
        let code = format!(".globl f\nf: {good} {index}; sub {read}, %rax; ret");
        let bytes = object(STLB, &format!("{code}{TAIL}"));
        assert!(
            codes(&bytes).contains(&rule),
            "{:?} in {code}",
            codes(&bytes)
        );
    }
    let code = format!(".globl f\nf: {good} {index}; .byte 0x48, 0x2b, 0x81, 0, 0, 0, 0; ret");
    let bytes = object(STLB, &format!("{code}{TAIL}"));
    assert!(codes(&bytes).contains(&"P1-untranslated"));
}

#[test]
fn equal_bytes_with_other_relocations() {
    // Immediates: dom0's address, the number zero, the table's address.
    judged(
        ".globl f
        f: mov $\"twin_vm:x\", %rax
        mov $\"twin_vm:y\"+8, %rax
        .byte 0x48, 0xc7, 0xc0, 0, 0, 0, 0
        mov $twin_stlb, %rax
        mov $\"twin_vm:x\", %rax
        ret",
        &[(24, "P2-relocation")],
    );
    // A mask that no relocation changes, and one that it does.
    judged(
        ".globl f
        f: and $63, %rsi; and $\"twin_vm:x\", %rsi; and $\"twin_vm:x\"+1, %rsi; ret",
        &[],
    );
}

#[test]
fn a_relocation_at_another_byte() {
    // The same instruction, relocated at its immediate and one byte early.
    judged(
        ".globl f
        f: movl $0, %eax; .reloc f+1, R_X86_64_32S, \"twin_vm:x\"
        .byte 0xb8, 0, 0, 0, 0
        movl $0, %eax; .reloc f+10, R_X86_64_32S, \"twin_vm:x\"
        ret",
        &[(10, "P2-relocation")],
    );
    // Once, and twice.
    judged(
        ".globl f
        f: .byte 0xb8, 0, 0, 0, 0; .reloc f+1, R_X86_64_32S, \"twin_vm:x\"
        .byte 0xb8, 0, 0, 0, 0
        .reloc f+6, R_X86_64_32S, \"twin_vm:x\"; .reloc f+7, R_X86_64_32S, \"twin_vm:x\"
        ret",
        &[(6, "P2-relocation")],
    );
}

#[test]
fn equal_calls_of_other_names() {
    judged(
        ".globl f
        f: call imported; call other; call twin_slow_rax; call imported+1; call imported; ud2",
        &[(10, "P2-out-of-line"), (16, "P2-relocation")],
    );
}

#[test]
fn equal_jumps_from_other_places() {
    // Two bytes forwards: to an instruction, then into one.
    judged(
        ".globl f
        f: jmp 1f; nop; nop
        1: .byte 0xeb, 0x02, 0x31, 0xc0
        .byte 0xeb, 0x02, 0xb8, 0, 0, 0, 0
        ret",
        &[(8, "P2-target")],
    );
    // Ten bytes back: to an instruction, then to before the section.
    judged(
        ".globl f
        f: .fill 8, 1, 0x90
        .byte 0x75, 0xf6
        ret
        .fill 16, 1, 0x90
        .section .text.g,\"ax\"
        .globl g
        g: .byte 0x75, 0xf6
        ret",
        &[(0, "P2-target")],
    );
}

#[test]
fn what_is_refused_is_refused_wherever_it_stands() {
    judged(
        ".globl f
        f: cpuid; cpuid; cpuid; mov (%rdi), %rax; ret
        .globl g
        g: mov (%rdi), %rax; mov (%rdi), %rax; cpuid; ret",
        &[
            (0, "P3-instruction"),
            (2, "P3-instruction"),
            (4, "P3-instruction"),
            (10, "P1-untranslated"),
            (13, "P1-untranslated"),
            (16, "P3-instruction"),
        ],
    );
}

#[test]
fn code_addresses_are_refused_wherever_they_stand() {
    judged(
        ".globl f
        f: lea 1f(%rip), %rax; 1: lea 2f(%rip), %rax; 2: nopl 1b(%rip); nopl 2b(%rip); ret",
        &[(0, "P1-address-form"), (7, "P1-address-form")],
    );
}
