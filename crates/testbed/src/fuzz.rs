//! What the fuzz targets check, as ordinary functions: the targets under
//! `fuzz/` are a dozen lines each, and `tests/fuzz_smoke.rs` runs the same
//! functions for a few seconds under `make test`.
//!
//! Each takes any bytes. It returns if the property holds and panics if not, so
//! that the fuzzer keeps the input. The first byte of an input of [`rewrite`]
//! and [`verify`] says what the rest is:
//!
//! | first byte | [`rewrite`] | [`verify`] |
//! |---|---|---|
//! | even | the code of a function | edits of the object [`accepted`] gives |
//! | odd | choices that [`program`] makes instructions of | code of a rewritten object |

use std::borrow::Cow;
use std::sync::OnceLock;

use elf_loader::consts::{SHF_ALLOC, SHF_EXECINSTR, STB_GLOBAL, STT_FUNC};
use elf_loader::{Machine, Object, Place, Section, SectionId, Symbol, SymbolId};
use svm_rewrite::{Options, Scheme};
use svm_verify::{Code, Rule, Violation};

/// Reading any bytes gives an object or an error. What was read can be written,
/// with the same sections; and written once, it stays as it is. (The first time,
/// local symbols may have to move before global ones.)
pub fn read(bytes: &[u8]) {
    let Ok(object) = elf_loader::read(bytes) else {
        return;
    };
    let Ok(written) = elf_loader::write(&object) else {
        return;
    };
    let again = elf_loader::read(&written).expect("what was written can be read");
    let summary = |o: &Object<'_>| -> Vec<(String, u32, u64, usize)> {
        let of = |s: &Section<'_>| (s.name.to_string(), s.kind, s.flags, s.relocations.len());
        o.sections.iter().map(of).collect()
    };
    assert_eq!(summary(&object), summary(&again));
    let twice = elf_loader::write(&again).expect("what was read back can be written");
    assert!(written == twice, "writing is not idempotent");
}

/// Any code, or any program of well-formed instructions: see [`rewrite_code`].
pub fn rewrite(data: &[u8]) {
    match data.split_first() {
        Some((kind, rest)) if kind % 2 == 0 => rewrite_code(rest),
        Some((_, rest)) => rewrite_code(&program(rest)),
        None => {}
    }
}

/// Any code is refused, or rewritten into what the verifier accepts, under both
/// schemes and with dead registers overwritten. Violations that the rewriter
/// leaves to the verifier to find are those of the driver's own stack
/// discipline, nothing else.
pub fn rewrite_code(code: &[u8]) {
    let object = object_of(code);
    for (scheme, poison) in [
        (Scheme::Stlb, false),
        (Scheme::Paper, false),
        (Scheme::Stlb, true),
    ] {
        let options = Options {
            report: true,
            poison,
            ..Options::new(scheme)
        };
        let Ok(rewritten) = svm_rewrite::rewrite(&object, options) else {
            return;
        };
        let bytes =
            elf_loader::write(&rewritten.object).expect("a rewritten object can be written");
        let reread = elf_loader::read(&bytes).expect("a rewritten object can be read");
        if let Err(violations) = svm_verify::verify(&reread) {
            for violation in &violations.list {
                let listing = || svm_rewrite::listing::all(&reread);
                assert!(is_the_drivers_own(violation), "{violation}\n{}", listing());
            }
        }
    }
}

/// What is for the verifier to judge: the driver's own stack discipline and
/// instructions that no rule speaks of.
fn is_the_drivers_own(violation: &Violation) -> bool {
    use Code as C;
    let code = violation.code;
    // Code that one of the verifier's decoders does not know is refused; code
    // that the two read differently would be a finding.
    if code == C::Decoders {
        return violation.reason.ends_with("reads no instruction here");
    }
    matches!(
        code,
        C::StackBounds
            | C::ReturnSlot
            | C::Direction
            | C::StringDirection
            | C::Instruction
            | C::Prefix
    ) || code.rule() == Rule::P4
}

/// Edits of an accepted object, or code in an object like it: see [`judge`].
pub fn verify(data: &[u8]) {
    static ACCEPTED: OnceLock<Object<'static>> = OnceLock::new();
    let accepted = ACCEPTED.get_or_init(accepted);
    match data.split_first() {
        Some((kind, rest)) if kind % 2 == 0 => verify_mutant(accepted, rest),
        Some((_, rest)) => {
            let mut object = accepted.clone();
            replace_code(&mut object, rest);
            judge(&object);
        }
        None => {}
    }
}

/// Puts other bytes into the first code section.
fn replace_code(object: &mut Object<'_>, code: &[u8]) {
    if let Some(section) = object.sections.iter_mut().find(|s| s.is_code()) {
        section.data = Cow::Owned(code.to_vec());
        section.size = code.len() as u64;
        section.relocations.clear();
    }
}

/// The verifier judges any object without panicking. What it accepts, it
/// accepts also after the object was written and read.
fn judge(object: &Object<'_>) {
    let Ok(proof) = svm_verify::verify(object) else {
        return;
    };
    let Ok(bytes) = elf_loader::write(object) else {
        return;
    };
    let reread = elf_loader::read(&bytes).expect("what was written can be read");
    let again = svm_verify::verify(&reread).expect("it was accepted before it was written");
    assert_eq!(proof.instructions, again.instructions);
    assert_eq!(proof.checks, again.checks);
}

/// The verifier judges code that looks almost like its own kind: `edits` are
/// those of an accepted object, six bytes each (section, place, kind, value).
pub fn verify_mutant(accepted: &Object<'_>, edits: &[u8]) {
    let mut mutant = accepted.clone();
    for edit in edits.chunks_exact(6) {
        let number = usize::from(edit[0]) % mutant.sections.len();
        let at = usize::from(edit[1]) | usize::from(edit[2]) << 8 | usize::from(edit[3]) << 16;
        let symbols = mutant.symbols.len() as u32;
        edit_section(&mut mutant.sections[number], at, edit[4], edit[5], symbols);
    }
    judge(&mutant);
}

/// One edit: a byte, a relocation's addend, symbol, offset or presence, or two
/// neighbouring bytes exchanged.
fn edit_section(section: &mut Section<'_>, at: usize, kind: u8, value: u8, symbols: u32) {
    let bytes = section.data.len();
    if kind % 8 < 4 {
        match kind % 8 {
            _ if bytes == 0 => {}
            0 | 1 => section.data.to_mut()[at % bytes] = value,
            2 => section.data.to_mut()[at % bytes] ^= 1 << (value % 8),
            _ => section.data.to_mut().swap(at % bytes, (at + 1) % bytes),
        }
        return;
    }
    let count = section.relocations.len();
    let Some(r) = section.relocations.get_mut(at % count.max(1)) else {
        return;
    };
    match kind % 8 {
        4 => r.addend ^= i64::from(value),
        5 => r.symbol = SymbolId(u32::from(value) % symbols),
        6 => r.offset ^= u64::from(value % 8),
        _ => drop(section.relocations.remove(at % count)),
    }
}

/// The object that [`verify_mutant`] starts from: a few sites of every kind.
fn accepted() -> Object<'static> {
    // mov (%rdi),%rax; lock incl 8(%rdi); rep movsb; push (%rdi); pop %rcx; call *%rax; ret
    const CODE: [u8; 23] = [
        0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x07, 0xf0, 0xff, 0x47, 0x08, 0xf3, 0xa4, 0xff, 0x37,
        0x59, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3,
    ];
    let object = object_of(&CODE);
    let rewritten =
        svm_rewrite::rewrite(&object, Options::new(Scheme::Stlb)).expect("plain code is rewritten");
    svm_verify::verify(&rewritten.object).expect("and accepted");
    rewritten.object
}

/// An object whose only function, `f`, has these bytes.
pub fn object_of(code: &[u8]) -> Object<'_> {
    let mut object = Object::new(Machine::X86_64);
    let flags = SHF_ALLOC | SHF_EXECINSTR;
    object
        .sections
        .push(Section::with_data(".text", flags, 16, Cow::Borrowed(code)));
    object.symbols.push(Symbol {
        name: Cow::Borrowed("f"),
        binding: STB_GLOBAL,
        kind: STT_FUNC,
        other: 0,
        place: Place::In(SectionId(1)),
        value: 0,
        size: code.len() as u64,
    });
    object
}

/// How an instruction of [`FORMS`] goes on behind its opcode.
#[derive(Clone, Copy)]
enum Tail {
    /// Nothing; the low three bits of the opcode are a register if `true`.
    Plain(bool),
    /// ModR/M with that opcode extension, or with a register if `None`, and an
    /// immediate of so many bytes.
    Operand(Option<u8>, u8),
    /// An immediate of so many bytes, the opcode's low bits being a register.
    Immediate(u8),
    /// A branch offset of one byte.
    Branch,
}

use Tail::{Branch, Immediate, Operand, Plain};

/// The encodings that [`program`] chooses from (SDM volume 2, appendix A):
/// mandatory prefix and opcode bytes, how many opcodes follow on the first, and
/// what stands behind it.
const FORMS: &[(&[u8], u8, Tail)] = &[
    // mov, and arithmetic in its eight times four two-operand forms.
    (&[0x88], 4, Operand(None, 0)),
    (&[0x00], 4, Operand(None, 0)),
    (&[0x08], 4, Operand(None, 0)),
    (&[0x10], 4, Operand(None, 0)),
    (&[0x18], 4, Operand(None, 0)),
    (&[0x20], 4, Operand(None, 0)),
    (&[0x28], 4, Operand(None, 0)),
    (&[0x30], 4, Operand(None, 0)),
    (&[0x38], 4, Operand(None, 0)),
    (&[0x84], 4, Operand(None, 0)), // test, xchg
    (&[0x80], 1, Operand(Some(8), 1)),
    (&[0x81], 1, Operand(Some(8), 4)),
    (&[0x83], 1, Operand(Some(8), 1)),
    (&[0xc6], 1, Operand(Some(0), 1)),
    (&[0xc7], 1, Operand(Some(0), 4)),
    (&[0xb8], 1, Immediate(4)),
    (&[0xf6], 1, Operand(Some(0), 1)), // test
    (&[0xf7], 1, Operand(Some(0), 4)),
    (&[0xf7], 1, Operand(Some(2), 0)), // not
    (&[0xf7], 1, Operand(Some(3), 0)), // neg
    (&[0xf7], 1, Operand(Some(4), 0)), // mul
    (&[0xf7], 1, Operand(Some(6), 0)), // div
    (&[0xfe], 2, Operand(Some(0), 0)), // inc
    (&[0xfe], 2, Operand(Some(1), 0)), // dec
    (&[0xc0], 2, Operand(Some(8), 1)), // shifts
    (&[0xd0], 4, Operand(Some(8), 0)),
    (&[0x63], 1, Operand(None, 0)), // movsxd
    (&[0x69], 1, Operand(None, 4)), // imul
    (&[0x6b], 1, Operand(None, 1)),
    (&[0x8d], 1, Operand(None, 0)), // lea
    // Indirect transfers, push and pop.
    (&[0xff], 1, Operand(Some(2), 0)),
    (&[0xff], 1, Operand(Some(4), 0)),
    (&[0xff], 1, Operand(Some(6), 0)),
    (&[0x8f], 1, Operand(Some(0), 0)),
    (&[0x50], 1, Plain(true)),
    (&[0x58], 1, Plain(true)),
    (&[0x6a], 1, Immediate(1)),
    // Strings, direction, flags, xlat.
    (&[0xa4], 4, Plain(false)),
    (&[0xaa], 6, Plain(false)),
    (&[0xf3, 0xa4], 2, Plain(false)),
    (&[0xf3, 0x48, 0xa5], 1, Plain(false)),
    (&[0xf3, 0xaa], 2, Plain(false)),
    (&[0xf3, 0xa6], 2, Plain(false)),
    (&[0xf2, 0xae], 2, Plain(false)),
    (&[0xfc], 2, Plain(false)), // cld, std
    (&[0xf8], 2, Plain(false)), // clc, stc
    (&[0x9e], 2, Plain(false)), // sahf, lahf
    (&[0x98], 2, Plain(false)), // cwde, cdq
    (&[0x9c], 2, Plain(false)), // pushf, popf
    (&[0xd7], 1, Plain(false)),
    (&[0xc9], 1, Plain(false)), // leave
    (&[0xc3], 1, Plain(false)),
    // Branches.
    (&[0x70], 16, Branch),
    (&[0xe0], 4, Branch),
    (&[0xeb], 1, Branch),
    // Two-byte opcodes.
    (&[0x0f, 0x40], 16, Operand(None, 0)),    // cmov
    (&[0x0f, 0x90], 16, Operand(Some(0), 0)), // set
    (&[0x0f, 0xa3], 1, Operand(None, 0)),     // bt, bts, btr, btc
    (&[0x0f, 0xab], 1, Operand(None, 0)),
    (&[0x0f, 0xb3], 1, Operand(None, 0)),
    (&[0x0f, 0xbb], 1, Operand(None, 0)),
    (&[0x0f, 0xba], 1, Operand(Some(12), 1)),
    (&[0x0f, 0xa4], 1, Operand(None, 1)), // shld, shrd
    (&[0x0f, 0xac], 1, Operand(None, 1)),
    (&[0x0f, 0xaf], 1, Operand(None, 0)),    // imul
    (&[0x0f, 0xb0], 2, Operand(None, 0)),    // cmpxchg
    (&[0x0f, 0xc0], 2, Operand(None, 0)),    // xadd
    (&[0x0f, 0xc7], 1, Operand(Some(1), 0)), // cmpxchg8b, 16b
    (&[0x0f, 0xb6], 2, Operand(None, 0)),    // movzx
    (&[0x0f, 0xbe], 2, Operand(None, 0)),    // movsx
    (&[0x0f, 0xbc], 2, Operand(None, 0)),    // bsf, bsr
    (&[0x0f, 0xc3], 1, Operand(None, 0)),    // movnti
    (&[0x0f, 0xc8], 1, Plain(true)),         // bswap
    (&[0x0f, 0x18], 1, Operand(Some(1), 0)), // prefetch
    (&[0x0f, 0x0d], 1, Operand(Some(1), 0)),
    (&[0x0f, 0x1f], 1, Operand(Some(0), 0)),    // nop
    (&[0x0f, 0x38, 0xf0], 2, Operand(None, 0)), // movbe
    (&[0x0f, 0xae, 0xe8], 1, Plain(false)),     // lfence
    (&[0x0f, 0x0b], 1, Plain(false)),
    // Vectors.
    (&[0x0f, 0x10], 2, Operand(None, 0)),
    (&[0x0f, 0x12], 2, Operand(None, 0)),
    (&[0x0f, 0x58], 8, Operand(None, 0)),
    (&[0x0f, 0xef], 1, Operand(None, 0)),
    (&[0x0f, 0x6f], 1, Operand(None, 0)),
    (&[0x0f, 0x7e], 2, Operand(None, 0)),
    (&[0x0f, 0x3a, 0x14], 4, Operand(None, 1)),
    (&[0xc5, 0xfd, 0x6f], 1, Operand(None, 0)),
    (&[0xc5, 0xf9, 0xd6], 1, Operand(None, 0)),
];

/// Most bytes of a made program.
const PROGRAM: usize = 512;

/// Turns any bytes into a function of well-formed instructions with any
/// operands: the fuzzer's edits then change instructions rather than destroy
/// them. It may be refused, of course.
pub fn program(choices: &[u8]) -> Vec<u8> {
    let mut choices = Choices(choices);
    let mut code = Vec::new();
    while let (Some(number), true) = (choices.next(), code.len() < PROGRAM) {
        let (bytes, alternatives, tail) = FORMS[usize::from(number) % FORMS.len()];
        instruction(&mut code, bytes, alternatives, tail, &mut choices);
    }
    code.push(0xc3); // ret
    code
}

/// What is left of the choices; zero behind their end.
struct Choices<'c>(&'c [u8]);

impl Choices<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }
}

/// Prefixes, opcode and operands of one instruction.
fn instruction(code: &mut Vec<u8>, bytes: &[u8], more: u8, tail: Tail, choices: &mut Choices<'_>) {
    let style = choices.byte();
    let vex = bytes[0] == 0xc5;
    // One instruction in four has a prefix, one in two a REX.
    if style & 3 == 3 && !vex {
        const PREFIXES: [u8; 8] = [0xf0, 0x66, 0x65, 0xf3, 0xf2, 0x66, 0xf0, 0x67];
        code.push(PREFIXES[usize::from(style >> 2 & 7)]);
    }
    let own = usize::from(matches!(bytes[0], 0xf2 | 0xf3));
    code.extend_from_slice(&bytes[..own]);
    if style & 0x20 != 0 && !vex && bytes[own] & 0xf0 != 0x40 {
        // W for half of these, R, X and B for a quarter each.
        let bits = [8, 0, 9, 12, 8, 10, 4, 15];
        code.push(0x40 | bits[usize::from(choices.byte() & 7)]);
    }
    code.extend_from_slice(&bytes[own..]);
    let opcode = code.len() - 1;
    code[opcode] = code[opcode].wrapping_add(if more > 1 { choices.byte() % more } else { 0 });
    match tail {
        Plain(register) => {
            code[opcode] |= if register { general(choices.byte()) } else { 0 };
        }
        Immediate(size) => {
            code[opcode] |= if size == 4 {
                general(choices.byte())
            } else {
                0
            };
            constant(code, size, choices);
        }
        Operand(extension, size) => {
            operand(code, extension, choices);
            // 66 makes an immediate of four bytes one of two: the decoder then
            // reads two bytes as the next instruction, which does no harm.
            constant(code, size, choices);
        }
        // Mostly to somewhere near: onto instructions and into them.
        Branch => code.push(((choices.byte() & 0x1f) as i8 - 12) as u8),
    }
}

/// A register number; seldom `rsp`, about which the rewriter is strict.
fn general(choice: u8) -> u8 {
    match choice & 7 {
        4 if choice & 0xf0 != 0 => choice >> 4 & 3,
        number => number,
    }
}

fn constant(code: &mut Vec<u8>, size: u8, choices: &mut Choices<'_>) {
    for n in 0..size {
        // Small numbers are the interesting ones: only the lowest byte is free.
        code.push(if n == 0 { choices.byte() } else { 0 });
    }
}

/// ModR/M, SIB and displacement. An extension of 8 and more is any of eight, or
/// of the upper four.
fn operand(code: &mut Vec<u8>, extension: Option<u8>, choices: &mut Choices<'_>) {
    let reg = match extension {
        None => general(choices.byte()),
        Some(8) => choices.byte() & 7,
        Some(12) => 4 | choices.byte() & 3,
        Some(fixed) => fixed,
    };
    let modrm = choices.byte();
    let (mode, rm) = (modrm >> 6, modrm & 7);
    code.push(mode << 6 | reg << 3 | if mode == 3 { general(modrm) } else { rm });
    if mode == 3 {
        return;
    }
    let mut absolute = rm == 5 && mode == 0;
    if rm == 4 {
        let sib = choices.byte();
        code.push(sib);
        absolute = sib & 7 == 5 && mode == 0;
    }
    let bytes = match mode {
        1 => 1,
        2 => 4,
        _ if absolute => 4,
        _ => 0,
    };
    constant(code, bytes, choices);
}
