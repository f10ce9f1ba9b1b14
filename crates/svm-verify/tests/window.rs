//! Scheme `window32`: what the proof says of good code, and code that differs from it by
//! one byte. A third decoder, objdump, judges the memory operands of what is accepted.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use common::{USER, WINDOW32, assemble, object, verify};
use svm_verify::{Proof, Scheme};

/// Operands of all forms, prefixes in both orders, and a string instruction.
const GOOD: &str = ".globl f
.type f, @function
f:      push %rbx
        sub $40, %rsp
        mov %gs:8(%edi,%ecx,4), %eax
        mov %rax, %gs:-8(%esp)
        .byte 0x67, 0x65, 0x48, 0x8b, 0x47, 0x08
        addr32 mov %gs:0x12345678, %r9d
        mov %gs:-0x80000000(%r8d,%r15d,2), %r9
        movw $0x1234, %gs:2(%ebp)
        addb $1, %gs:(%eax)
        lock cmpxchg %rcx, %gs:(%esi)
        lock cmpxchg16b %gs:16(%esi)
        and $63, %esi; bts %rsi, %gs:(%edi)
        movzwl %gs:(%edi), %ebx
        pushq %gs:8(%edx)
        popq %gs:8(%ebx)
        movdqu %gs:(%edi), %xmm8
        vmovdqu %ymm9, %gs:(%r9d,%eax,8)
        prefetcht0 %gs:(%edx)
        lea 8(%rdi,%rcx,4), %rax
        nopw %cs:0x100(%rax,%rax,1)
        xchg %rax, %gs:(%edi)
        cmovne %gs:(%edi), %rdx
        setne %gs:(%edi)
        imul $3, %gs:(%edi), %eax
        shll %cl, %gs:(%edi)
        testl $7, %gs:(%edi)
        movabs $twin_window, %rdx
        mov %edi, %edi
        lea (%rdi,%rdx), %rdi
        mov %esi, %esi
        lea (%rsi,%rdx), %rsi
        rep movsq
        call g
        add $40, %rsp
        pop %rbx
        ret
.type g, @function
g:      ret";

/// The proof of good code.
fn proof(code: &str) -> Proof {
    verify(&object(WINDOW32, code), USER.with(Scheme::Window32)).expect("good code")
}

#[test]
fn the_proof_counts_what_it_proved() {
    let proof = proof(GOOD);
    assert_eq!(
        (proof.scheme, proof.functions, proof.checks),
        (Scheme::Window32, 2, 0)
    );
    let accesses = proof.accesses;
    assert_eq!(
        (accesses.translated, accesses.table, accesses.context),
        (0, 0, 0)
    );
    // `pushq` and `popq` of memory are counted as stack accesses, with push and pop.
    assert_eq!(
        (accesses.window, accesses.stack, accesses.string),
        (20, 4, 1)
    );
}

#[test]
fn another_scheme_is_refused_where_this_one_is_demanded() {
    let bytes = object(WINDOW32, GOOD);
    for scheme in Scheme::ALL {
        let good = verify(&bytes, USER.with(scheme)).is_ok();
        assert_eq!(good, scheme == Scheme::Window32, "{scheme:?}");
    }
    let table = object(common::STLB, ".globl f\nf: ret");
    assert!(verify(&table, USER.with(Scheme::Window32)).is_err());
}

/// Where the bytes of `.text` are in the object's file.
fn text(bytes: &[u8]) -> std::ops::Range<usize> {
    let object = elf_loader::read(bytes).expect("an object");
    let id = object.section_named(".text").expect("code");
    let code = object.section(id).data.to_vec();
    let at = bytes.windows(code.len()).position(|part| part == code);
    let at = at.expect("the code is in the file");
    at..at + code.len()
}

/// What objdump says of each of these texts, a line an instruction.
fn disassemble(texts: &BTreeSet<Vec<u8>>) -> String {
    let mut source = String::new();
    for (n, text) in texts.iter().enumerate() {
        let bytes: Vec<String> = text.iter().map(|b| format!("{b:#x}")).collect();
        writeln!(source, "m{n}: .byte {}", bytes.join(",")).expect("text");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("all.o");
    fs::write(&path, assemble(&source)).expect("the object");
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn"])
        .arg(&path)
        .output();
    String::from_utf8(output.expect("objdump").stdout).expect("text")
}

/// The registers of 32 bits that an address may be made of.
fn narrow(register: &str) -> bool {
    const LEGACY: [&str; 9] = [
        "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eiz",
    ];
    let extended = |r: &str| r.starts_with('r') && r.ends_with('d');
    let name = register.trim_start_matches('%');
    register.starts_with('%') && (LEGACY.contains(&name) || extended(name))
}

/// Whether a line of objdump shows no memory operand, or one in the window.
fn confined(line: &str) -> bool {
    let text = line.split('\t').nth(1).unwrap_or("").trim();
    let silent = text.contains("lea ") || text.contains("nop");
    let string = text.contains("%es:(%rdi)") || text.contains("%ds:(%rsi)");
    if (silent || string) && !text.contains("%gs:") {
        return true;
    }
    let Some(open) = text.find('(') else {
        // Without registers an operand is a number that is not an immediate.
        let operands = text.split([' ', ',']);
        let number = |part: &str| part.starts_with("0x") || part.starts_with("-0x");
        return !text.contains("s:") && !operands.into_iter().any(number);
    };
    let inside = &text[open + 1..text.find(')').expect("it closes")];
    let registers = inside.split(',').filter(|part| part.starts_with('%'));
    let segment = text[..open].rfind("%gs:");
    segment.is_some() && registers.into_iter().all(narrow)
}

/// Prefixes, and `nop`: what a byte of good code may be replaced with besides its own bits.
const BYTES: [u8; 14] = [
    0x65, 0x67, 0x64, 0x26, 0x2e, 0x36, 0x3e, 0x66, 0xf0, 0xf2, 0xf3, 0x40, 0x48, 0x90,
];

#[test]
fn whatever_one_byte_makes_of_good_code_is_refused_or_stays_in_the_window() {
    let good = object(WINDOW32, GOOD);
    let code = text(&good);
    let (mut mutants, mut accepted) = (BTreeSet::new(), BTreeSet::new());
    for at in code.clone() {
        let flipped = (0..8).map(|bit| good[at] ^ 1 << bit);
        for byte in flipped.chain(BYTES).filter(|&byte| byte != good[at]) {
            let mut bent = good.clone();
            bent[at] = byte;
            let fresh = mutants.insert(bent[code.clone()].to_vec());
            if fresh && verify(&bent, USER.with(Scheme::Window32)).is_ok() {
                accepted.insert(bent[code.clone()].to_vec());
            }
        }
    }
    println!("{} mutants, {} accepted", mutants.len(), accepted.len());
    assert!(mutants.len() > 3000 && (100..1500).contains(&accepted.len()));
    let text = disassemble(&accepted);
    let instructions = text.lines().filter(|line| line.contains(":\t"));
    let mut wrong: Vec<&str> = instructions.filter(|line| !confined(line)).collect();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_judge_of_the_last_test_notices_what_it_should() {
    let code = "mov 8(%rdi),%eax; movsbl (%rdi),%eax; mov 0x10,%eax; mov %gs:8(%rdi),%eax; mov 8(%edi),%eax; mov %fs:(%edi),%eax\n\
                mov %gs:0x10,%eax; addr32 mov 0x10,%eax; mov %gs:(%edi,%ecx,2),%eax";
    let all = BTreeSet::from([{
        let object = object(WINDOW32, code);
        object[text(&object)].to_vec()
    }]);
    let text = disassemble(&all);
    let lines = text.lines().filter(|line| line.contains(":\t"));
    let judged: Vec<bool> = lines.map(confined).collect();
    assert_eq!(
        judged,
        [false, false, false, false, false, false, false, false, true],
        "{text}"
    );
}
