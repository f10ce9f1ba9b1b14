//! The independent verifier of rewritten objects.
//!
//! It takes a relocatable object as it is on disk and proves, from the bytes alone,
//! that the code in it keeps the contract of `docs/proof/`:
//!
//! * **P1, memory.** Every byte that is read or written is in the function's
//!   own stack frame, or reached through a translation that covers it, or a
//!   half of a table entry inside a check, or one of the two segment bases in
//!   the CPU's context. In a scheme with a window: in the window, by the form of
//!   the operand. Where the contract says so (`Accesses::Stores`), this holds of what
//!   is written, and of what indirect calls and jumps read, alone.
//! * **P2, control.** Every direct branch leads to an instruction that is
//!   interpreted with the facts that arrive there; calls lead to function
//!   entries or to names that the ABI permits. For a hypervisor there is no
//!   indirect transfer, and a function returns to where it was called from; of a
//!   module's indirect calls the policy is the kernel's.
//! * **P3, instructions.** Every instruction is on an allow-list, and every
//!   byte of code belongs to exactly one, on which two decoders agree.
//! * **P4, stack.** `rsp` moves by constants, is equally deep on every path,
//!   and never further from the return address than the guard protects.
//! * **P5, state.** The translation table is read in checks only; no access
//!   form reaches the runtime's data.
//!
//! It shares no code with the rewriter and fails closed: anything that no rule allows
//! is a [`Violation`], and an unknown value confines nothing.
//!
//! ```text
//! Object ──object──> Image ──decode──> Disassembly ──kernel──> Patches ──paths──> Interpretation
//!                                                                         Proof or Violations
//! ```
//!
//! Folders are phases, and each uses only those above it in this list
//! (`tests/layers.rs` reads the sources and compares):
//!
//! | folder | what it has | uses |
//! |---|---|---|
//! | `findings` | the codes of the rules, and violations in words | |
//! | `targets` | what is demanded: the contract, the rules of each target and kind of scheme | |
//! | `insn` | an instruction and a program, as data | |
//! | `domain` | what is known at a place in the code; the arithmetic of bounds | `insn` |
//! | `schemes` | what the check of each scheme looks like, or its pointers to the window | `insn` `domain` |
//! | `object` | sections, symbols, note, tables: from an object to an image | `findings` `targets` `insn` `schemes` |
//! | `decode` | P3 and relocations: from bytes to instructions | `findings` `targets` `insn` `schemes` `object` |
//! | `kernel` | what a stock kernel does to the code (target `linux`) | `findings` `insn` `domain` `object` |
//! | `rules` | P1, P2, P4, P5: one instruction, a file a rule | `findings` `targets` `insn` `domain` `schemes` |
//! | `paths` | all paths, until nothing new is learned | `findings` `targets` `insn` `domain` `object` `kernel` `rules` |
//!
//! Not proved: that the code does what the original did. `docs/proof/` says more about
//! this, and what the proof assumes of the runtime.

#[doc(hidden)]
pub mod belief;
mod decode;
mod domain;
mod findings;
mod insn;
mod kernel;
mod object;
mod paths;
mod proof;
mod rules;
mod schemes;
mod targets;

use elf_loader::Object;

use crate::findings::Findings;
use crate::insn::{CodeAt, Disassembly};
use crate::kernel::{Patches, freed, references};
use crate::object::Image;
use crate::targets::{Contents, Patching, UnreachedCode};

pub use findings::{Rule, Violation, ViolationCode, Violations};
pub use object::is_entry;
pub use proof::{AccessCounts, Proof};
pub use targets::Contract;
pub use twin_abi::{Accesses, Processor, Scheme, Target};

/// How to verify.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Most violations to describe; all are counted.
    pub limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { limit: 1000 }
    }
}

/// Proves that the object keeps `contract`.
///
/// # Errors
/// Every place in the object that breaks it; or that the object was not made by this
/// version of the rewriter, or was made for another contract.
pub fn verify(object: &Object<'_>, contract: Contract) -> Result<Proof, Violations> {
    verify_with(object, contract, Options::default())
}

/// [`verify`] with options.
///
/// # Errors
/// See [`verify`].
pub fn verify_with(
    object: &Object<'_>,
    contract: Contract,
    options: Options,
) -> Result<Proof, Violations> {
    judge(object, contract, true, options)
}

/// [`verify_with`] without [`memo`]: every instruction is judged anew, however often its
/// bytes occur. Tests compare the two: the memo may save time and must change nothing.
///
/// # Errors
/// See [`verify`].
#[doc(hidden)]
pub fn verify_without_memo(
    object: &Object<'_>,
    contract: Contract,
    options: Options,
) -> Result<Proof, Violations> {
    judge(object, contract, false, options)
}

fn judge(
    object: &Object<'_>,
    contract: Contract,
    remember: bool,
    options: Options,
) -> Result<Proof, Violations> {
    let mut findings = Findings::new(object, options.limit);
    match prove(object, contract, remember, &mut findings) {
        Some(proof) if findings.is_empty() => Ok(proof),
        _ => Err(findings.finish()),
    }
}

/// The steps, with or without a memo. `None` if a step failed; the findings say why.
fn prove<'o>(
    object: &'o Object<'o>,
    contract: Contract,
    remember: bool,
    findings: &mut Findings<'o>,
) -> Option<Proof> {
    let image = Image::new(object, contract, findings)?;
    let disassembly = decode::decode(&image, remember, findings)?;
    let mut taken = Vec::new();
    let (mut entries, mut patches) = (entries(&image, &disassembly, findings), Patches::default());
    if image.rules.patching == Patching::ByKernelTables {
        patches = Patches::new(&image, &disassembly, &entries, findings);
    }
    if image.rules.contents == Contents::Module {
        let found = references::check(&image, &disassembly, findings);
        patches.labels = found.labels;
        patches.names = found.names;
        taken = starts(&disassembly, &found.functions);
        kernel::judge_taken(&image, &disassembly, &taken, findings);
        entries.extend(taken.iter().copied());
        entries.sort_unstable();
        entries.dedup();
        freed::judge(&image, &disassembly, &patches, &entries, findings);
    }
    // --- every instruction and every entry is known ---
    let outcome = paths::interpret(&image, &disassembly, &entries, &patches, &taken);
    for (n, broken) in &outcome.broken {
        let (code, reason) = &**broken;
        let (section, offset) = image.place(&disassembly.insns[*n as usize]);
        findings.at(section, offset, *code, reason.clone());
    }
    // In a hypervisor instance nothing later makes unreached code reachable. A broken
    // rule ends its path: code after it must not be reported as unreached.
    if image.rules.unreached_code == UnreachedCode::Refused && findings.is_empty() {
        for n in outcome.unreached(&disassembly) {
            let (section, offset) = image.place(&disassembly.insns[n as usize]);
            let reason = "no path leads here, and it is not padding";
            findings.at(section, offset, ViolationCode::Unreached, reason);
        }
    }
    Some(Proof::new(&image, &disassembly, &outcome))
}

/// Where the code is entered from outside.
fn entries<'o>(
    image: &Image<'o>,
    disassembly: &Disassembly,
    findings: &mut Findings<'o>,
) -> Vec<u32> {
    let codemap = image.object.section_named(twin_abi::sections::CODEMAP);
    for &(offset, place) in &image.codemap {
        if let (None, Some(map)) = (disassembly.at(place), codemap) {
            findings.at(
                map,
                offset,
                ViolationCode::Codemap,
                "no instruction starts at the entry point",
            );
        }
    }
    for &place in &image.entered {
        if disassembly.at(place).is_none() {
            let section = image.code[usize::from(place.section)];
            let offset = u64::try_from(place.offset).unwrap_or(0);
            findings.at(
                section,
                offset,
                ViolationCode::Target,
                "no instruction starts at the function or visible name",
            );
        }
    }
    for &place in &image.named {
        let section = image.code[usize::from(place.section)];
        let offset = u64::try_from(place.offset).unwrap_or(0);
        let is_end = offset == image.object.section(section).size;
        if disassembly.at(place).is_none() && !is_end {
            let reason = "no instruction starts at the name, by which others may have it probed";
            findings.at(section, offset, ViolationCode::Target, reason);
        }
    }
    let codemap = image.codemap.iter().map(|&(_, place)| place);
    let all: Vec<CodeAt> = codemap.chain(image.entered.iter().copied()).collect();
    starts(disassembly, &all)
}

fn starts(disassembly: &Disassembly, places: &[CodeAt]) -> Vec<u32> {
    let mut starts: Vec<u32> = places
        .iter()
        .filter_map(|&place| disassembly.at(place))
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}
