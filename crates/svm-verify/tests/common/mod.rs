//! Objects from assembly, as the rewriter would write them.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod attack;
pub mod machine;
pub mod module;
pub mod sequences;

use std::fs;
use std::process::Command;

use svm_verify::{Contract, Options, Proof, Target, Violations};

/// The contract of a hypervisor, in any scheme.
pub const USER: Contract = Contract::of(Target::Hypervisor);
/// The contract of a module for a stock kernel.
pub const LINUX: Contract = Contract::of(Target::Linux);

/// Number of the scheme in `.note.twin`.
pub const PAPER: u32 = 0;
/// See [`PAPER`].
pub const STLB: u32 = 1;
/// See [`PAPER`].
pub const WINDOW32: u32 = 2;
pub const WINDOW: u32 = 3;

/// The first word of a note.
pub const ABI: u32 = twin_abi::ABI_VERSION;

/// A note with these four words: all accesses are translated, for the scheme's processors.
pub fn note(words: [u32; 4]) -> String {
    note_of(words, 0)
}

/// The same with another word for which accesses are translated.
pub fn note_of(words: [u32; 4], accesses: u32) -> String {
    let scheme = twin_abi::Scheme::from_number(words[1]);
    note_for(words, accesses, scheme.map_or(0, |s| s.processor() as u32))
}

/// The same with the last word as well, for which processors it is.
pub fn note_for(words: [u32; 4], accesses: u32, processor: u32) -> String {
    let [abi, scheme, bits, target] = words;
    format!(
        ".section .note.twin,\"\",@note\n.long 5, 24, 1\n.asciz \"twin\"\n.balign 4\n\
         .long {abi}, {scheme}, {bits}, {target}, {accesses}, {processor}\n"
    )
}

/// A whole object of that scheme with this code in `.text`, `{KEEP}` and `{RET}`
/// filled in.
pub fn object(scheme: u32, code: &str) -> Vec<u8> {
    let code = returning(code);
    assemble(&format!("{}.text\n{code}\n", note([ABI, scheme, 64, 0])))
}

/// `{KEEP}`: copies the return address, where a function begins. `{RET}`: compares it
/// and returns. `{CHECK}`: compares it, before a tail call.
pub fn returning(code: &str) -> String {
    const KEEP: &str = "mov (%rsp), %r11; mov %r11, -0x8000(%rsp)\n";
    const CHECK: &str = "mov -0x8000(%rsp), %r11; cmp %r11, (%rsp); jne 999f\n";
    const APART: &str = "\n.subsection 1\n999: call twin_smashed\n.subsection 0\n";
    code.replace("{KEEP}", KEEP)
        .replace("{RET}", &format!("{CHECK}ret{APART}"))
        .replace("{CHECK}", &format!("{CHECK}{APART}"))
}

/// Assembles a source as it is.
pub fn assemble(source: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let (input, output) = (dir.path().join("in.s"), dir.path().join("out.o"));
    fs::write(&input, source).expect("the source");
    let result = Command::new("as")
        .args(["--64", "-mx86-used-note=no", "-mrelax-relocations=no", "-o"])
        .args([&output, &input])
        .output()
        .expect("the assembler");
    let message = String::from_utf8_lossy(&result.stderr).into_owned();
    assert!(result.status.success(), "{message}\n{source}");
    fs::read(&output).expect("the object")
}

/// Verifies the bytes of an object by that contract, and checks that the verifier's memo
/// does not change the result.
pub fn verify(bytes: &[u8], contract: Contract) -> Result<Proof, Violations> {
    let object = elf_loader::read(bytes).expect("a relocatable object");
    let options = Options { limit: 100_000 };
    let result = svm_verify::verify_with(&object, contract, options);
    let anew = svm_verify::verify_without_memo(&object, contract, options);
    assert_eq!(format!("{result:?}"), format!("{anew:?}"));
    result
}

/// Asserts that the object is accepted.
#[track_caller]
pub fn accept(scheme: u32, code: &str) -> Proof {
    verify(&object(scheme, code), USER).unwrap_or_else(|v| panic!("refused:\n{v}\n{code}"))
}

/// Asserts that the code is accepted in either scheme, with [`attack::checks`] filled in.
#[track_caller]
pub fn accept_both(code: &str) -> [Proof; 2] {
    [STLB, PAPER].map(|scheme| accept(scheme, &attack::checks(scheme, code.to_owned())))
}

/// The codes that the object is refused with in a hypervisor.
#[track_caller]
pub fn codes(bytes: &[u8]) -> Vec<&'static str> {
    codes_for(USER, bytes)
}

/// The codes that the object is refused with by that contract.
#[track_caller]
pub fn codes_for(contract: Contract, bytes: &[u8]) -> Vec<&'static str> {
    match verify(bytes, contract) {
        Ok(_) => Vec::new(),
        Err(v) => v.list.iter().map(|v| v.code.as_str()).collect(),
    }
}

/// Asserts that the code is refused, by this rule among others.
#[track_caller]
pub fn refuse(scheme: u32, code: &str, rule: &str) {
    let found = codes(&object(scheme, code));
    assert!(
        found.contains(&rule),
        "expected {rule}, found {found:?} in\n{code}"
    );
}

/// A check of scheme `stlb` that translates `ADDRESS`, an operand of `lea`, into
/// `%rax` through `%rcx`; its out-of-line part is in `.text.unlikely`.
pub fn stlb(address: &str, n: u32) -> String {
    format!(
        "lea {address}, %rax
         mov %eax, %ecx
         shr $8, %ecx
         and $0xfff0, %ecx
         sub twin_stlb(%rcx), %rax
         cmp $0xfff, %rax
         ja .Lslow{n}
         add twin_stlb+8(%rcx), %rax
         .Lback{n}:
         .subsection 1
         .Lslow{n}: lea {address}, %rax
         call twin_slow_rax
         jmp .Lback{n}
         .subsection 0
        "
    )
}

/// The same in scheme `paper`, with `%rcx` and `%rdx`.
pub fn paper(address: &str, n: u32) -> String {
    format!(
        "lea {address}, %rcx
         mov %rcx, %rax
         and $-4096, %rcx
         mov %rcx, %rdx
         and $0xfff000, %rcx
         shr $8, %rcx
         cmp twin_stlb(%rcx), %rdx
         jne .Lslow{n}
         xor twin_stlb+8(%rcx), %rax
         .Lback{n}:
         .subsection 1
         .Lslow{n}: call twin_slow_rax
         jmp .Lback{n}
         .subsection 0
        "
    )
}

/// Either of the two.
pub fn check(scheme: u32, address: &str, n: u32) -> String {
    if scheme == STLB {
        stlb(address, n)
    } else {
        paper(address, n)
    }
}

/// A check of either scheme that translates `%from` into `%v`, `mov %from, %v`
/// being the address, through `%i` and, for `paper`, `%p`.
pub fn check_register(scheme: u32, from: &str, v: &str, i: &str, p: &str, n: u32) -> String {
    if scheme == STLB {
        let (vd, id) = (low32(v), low32(i));
        format!(
            "mov %{from}, %{v}
             mov %{vd}, %{id}
             shr $8, %{id}
             and $0xfff0, %{id}
             sub twin_stlb(%{i}), %{v}
             cmp $0xfff, %{v}
             ja .Lslow{n}
             add twin_stlb+8(%{i}), %{v}
             .Lback{n}:
             .subsection 1
             .Lslow{n}: mov %{from}, %{v}
             call twin_slow_{v}
             jmp .Lback{n}
             .subsection 0
            "
        )
    } else {
        format!(
            "mov %{from}, %{i}
             mov %{i}, %{v}
             and $-4096, %{i}
             mov %{i}, %{p}
             and $0xfff000, %{i}
             shr $8, %{i}
             cmp twin_stlb(%{i}), %{p}
             jne .Lslow{n}
             xor twin_stlb+8(%{i}), %{v}
             .Lback{n}:
             .subsection 1
             .Lslow{n}: call twin_slow_{v}
             jmp .Lback{n}
             .subsection 0
            "
        )
    }
}

/// The 32-bit name of a 64-bit register.
pub fn low32(r: &str) -> String {
    match r.strip_prefix('r') {
        Some(n) if n.starts_with(|c: char| c.is_ascii_digit()) => format!("{r}d"),
        Some(n) => format!("e{n}"),
        None => r.to_string(),
    }
}
