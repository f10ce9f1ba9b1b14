//! What the fuzz targets check, as ordinary functions: the targets under
//! `fuzz/` are a dozen lines each, and `tests/fuzz_smoke.rs` runs the same
//! functions for a few seconds under `make test`.
//!
//! Each takes any bytes. It returns if the property holds and panics if not, so
//! that the fuzzer keeps the input.

use std::borrow::Cow;

use elf_loader::consts::{SHF_ALLOC, SHF_EXECINSTR, STB_GLOBAL, STT_FUNC};
use elf_loader::{Machine, Object, Place, Section, SectionId, Symbol};
use svm_rewrite::{Options, Scheme, rewrite};
use svm_verify::{Code, Rule};

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

/// Any code is refused, or rewritten into what the verifier accepts. Violations
/// that the rewriter leaves to the verifier to find are those of the driver's
/// own stack discipline, nothing else.
pub fn rewrite_code(code: &[u8]) {
    let object = object_of(code);
    for scheme in [Scheme::Stlb, Scheme::Paper] {
        let options = Options {
            report: true,
            ..Options::new(scheme)
        };
        let Ok(rewritten) = rewrite(&object, options) else {
            return;
        };
        let bytes =
            elf_loader::write(&rewritten.object).expect("a rewritten object can be written");
        let reread = elf_loader::read(&bytes).expect("a rewritten object can be read");
        if let Err(violations) = svm_verify::verify(&reread) {
            for violation in &violations.list {
                let listing = || svm_rewrite::listing::all(&reread);
                assert!(
                    is_the_drivers_own(violation.code),
                    "{violation}\n{}",
                    listing()
                );
            }
        }
    }
}

/// What is for the verifier to judge: the driver's own stack discipline and
/// instructions that no rule speaks of.
fn is_the_drivers_own(code: Code) -> bool {
    use Code as C;
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

/// The verifier judges any code without panicking, also code that looks almost
/// like its own kind: `bytes` are edits of an accepted object.
pub fn verify_mutant(accepted: &Object<'_>, edits: &[u8]) {
    let mut mutant = accepted.clone();
    for edit in edits.chunks_exact(6) {
        let section = usize::from(edit[0]) % mutant.sections.len();
        let section = &mut mutant.sections[section];
        let at = usize::from(edit[1]) | usize::from(edit[2]) << 8 | usize::from(edit[3]) << 16;
        match edit[4] % 4 {
            0 | 1 if !section.data.is_empty() => {
                let at = at % section.data.len();
                section.data.to_mut()[at] = edit[5];
            }
            2 if !section.relocations.is_empty() => {
                let at = at % section.relocations.len();
                section.relocations[at].addend ^= i64::from(edit[5]);
            }
            3 if !section.relocations.is_empty() => {
                let at = at % section.relocations.len();
                section.relocations.remove(at);
            }
            _ => {}
        }
    }
    // Either verdict is right for some mutant; panicking is for none.
    let _ = svm_verify::verify(&mutant);
}

/// The object that [`verify_mutant`] starts from: a few sites of every kind.
pub fn accepted() -> Object<'static> {
    // mov (%rdi),%rax; lock incl 8(%rdi); rep movsb; push (%rdi); pop %rcx; call *%rax; ret
    const CODE: [u8; 23] = [
        0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x07, 0xf0, 0xff, 0x47, 0x08, 0xf3, 0xa4, 0xff, 0x37,
        0x59, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3,
    ];
    let object = object_of(&CODE);
    let rewritten = rewrite(&object, Options::new(Scheme::Stlb)).expect("plain code is rewritten");
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
