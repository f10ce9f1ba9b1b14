//! What the fuzz targets check, as ordinary functions: the targets under
//! `fuzz/` are a dozen lines each, and `tests/fuzz_smoke.rs` runs the same
//! functions for a few seconds under `make test`.
//!
//! Each takes any bytes, returns if the property holds and panics if not, so that the
//! fuzzer keeps the input. The first byte of an input says what the rest is:
//!
//! | first byte | [`lift()`] | [`rewrite`] | [`verify`] |
//! |---|---|---|---|
//! | even | a file | the code of a function | edits of an accepted object |
//! | odd | choices of relocations and instructions | choices from which [`program()`] makes instructions | code of a rewritten object |
//!
//! For [`execute()`] the first byte is the way to rewrite, and a seed.

pub mod cost;
mod execute;
mod lift;
mod program;
mod runnable;

use std::borrow::Cow;
use std::sync::OnceLock;

use elf_loader::consts::{SHF_ALLOC, SHF_EXECINSTR, STB_GLOBAL, STT_FUNC};
use elf_loader::{Object, Place, Section, SectionId, Symbol, SymbolId};
use svm_rewrite::{Options, Scheme};
use svm_verify::{Contract, Rule, Target, Violation, ViolationCode};

pub use cost::cost;
pub use execute::{FuzzOutcome, execute};
pub use lift::{lift, lift_object};
pub use program::program;

/// The contract of the objects here.
const USER: Contract = Contract::of(Target::Hypervisor);

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

/// Any code is refused, or rewritten into code that the verifier accepts, under all
/// schemes and with dead registers overwritten. The only violations that the rewriter
/// leaves to the verifier are those of the driver's own stack discipline.
pub fn rewrite_code(code: &[u8]) {
    let object = object_of(code);
    let plain = Scheme::ALL.map(|scheme| (scheme, false));
    for (scheme, poison) in plain.into_iter().chain([(Scheme::Stlb, true)]) {
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
        if let Err(violations) = svm_verify::verify(&reread, USER.with(scheme)) {
            for violation in &violations.list {
                let listing = || svm_rewrite::listing::all(&reread);
                assert!(is_the_drivers_own(violation), "{violation}\n{}", listing());
            }
        }
    }
}

/// Violations that only the verifier detects: of the driver's own stack discipline.
fn is_the_drivers_own(violation: &Violation) -> bool {
    use ViolationCode as C;
    let code = violation.code;
    matches!(
        code,
        C::StackBounds | C::ReturnSlot | C::Direction | C::StringDirection
    ) || code.rule() == Rule::P4
}

/// Edits of an accepted object, or code in an object like it: verified without panic,
/// and with the same result before and after writing and reading.
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

/// The verifier does not panic on any object. An object that it accepts, it
/// accepts also after the object was written and read.
fn judge(object: &Object<'_>) {
    let Ok(proof) = svm_verify::verify(object, USER) else {
        return;
    };
    let Ok(bytes) = elf_loader::write(object) else {
        return;
    };
    let reread = elf_loader::read(&bytes).expect("what was written can be read");
    let again = svm_verify::verify(&reread, USER).expect("it was accepted before it was written");
    assert_eq!(proof.instructions, again.instructions);
    assert_eq!(proof.checks, again.checks);
}

/// Verifies code that is almost acceptable: `edits` change an accepted object, six
/// bytes each (section, place, kind, value).
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
    svm_verify::verify(&rewritten.object, USER).expect("and accepted");
    rewritten.object
}

/// An object whose only function, `f`, has these bytes.
pub fn object_of(code: &[u8]) -> Object<'_> {
    let mut object = Object::new();
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
