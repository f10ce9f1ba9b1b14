//! An object rewritten in memory.
//!
//! ```text
//! Input ──> rewrite ──> mark ──> serialise ──> read again ──> verify
//! ```
//!
//! The verifier sees the bytes as they will be used, unless it is not asked.

use std::panic::resume_unwind;
use std::thread;

use command_line::codes::CommandCode;
use command_line::failure::Failure;
use command_line::input::Input;
use elf_loader::WriteError;
use svm_rewrite::{Options, Refusal, RefusalCode, Rewritten, Site, Target};
use svm_verify::{Contract, Violation, ViolationCode, Violations};

use crate::{mark, place};

/// A rewritten object as it will lie on disk, and what was done.
pub struct Made {
    /// The object.
    pub bytes: Vec<u8>,
    /// What was done at each site, if the options ask for it.
    pub sites: Vec<Site>,
    /// The hash of what it was made from.
    pub original: String,
}

/// An object: rewritten, marked, serialised, and verified if a contract is demanded.
///
/// # Errors
/// It is refused, or it does not keep the contract.
pub fn make(input: &Input, options: Options, demanded: Option<Contract>) -> Result<Made, Failure> {
    let file = &input.name;
    let (rewritten, original) = with_hash(input, options);
    let mut rewritten = rewritten?;
    mark::put(&mut rewritten.object, options, &original);
    let bytes = serialise(file, &rewritten)?;
    if let Some(contract) = demanded {
        verify(file, &bytes, contract)
            .map_err(|failure| place::in_original(failure, input, &bytes))?;
    }
    Ok(Made {
        bytes,
        sites: rewritten.sites,
        original,
    })
}

/// The object rewritten, and the hash of the original: by another thread, if the options
/// allow one.
fn with_hash(input: &Input, options: Options) -> (Result<Rewritten, Failure>, String) {
    let hash = || mark::hash(input.contents());
    if options.threads.get() == 1 {
        return (rewritten(input, options), hash());
    }
    thread::scope(|scope| {
        // Where no more threads are allowed (RLIMIT_NPROC), it waits.
        let other = thread::Builder::new().spawn_scoped(scope, hash);
        let rewritten = rewritten(input, options);
        let hash = match other {
            Ok(other) => other.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => hash(),
        };
        (rewritten, hash)
    })
}

/// The object, rewritten and no more.
///
/// # Errors
/// It is refused.
pub fn rewritten(input: &Input, options: Options) -> Result<Rewritten, Failure> {
    let rewritten = svm_rewrite::rewrite(&input.object()?, options);
    rewritten.map_err(|refusals| Failure::Refused {
        file: input.name.clone(),
        refusals,
    })
}

/// Proves what was asked for, of the bytes as they will lie on disk.
fn verify(file: &str, bytes: &[u8], contract: Contract) -> Result<(), Failure> {
    let object = elf_loader::read(bytes).map_err(|error| internal(file, &error))?;
    svm_verify::verify(&object, contract)
        .map(|_| ())
        .map_err(|violations| unproved(file, contract, violations))
}

fn serialise(file: &str, rewritten: &Rewritten) -> Result<Vec<u8>, Failure> {
    elf_loader::write(&rewritten.object).map_err(|error| match error {
        WriteError::TooManySections(_) | WriteError::TooManySymbols(_) => {
            let reason = format!("rewritten: {error}");
            Failure::Refused {
                file: file.to_owned(),
                refusals: vec![Refusal::of_object(RefusalCode::TooMany, reason)],
            }
        }
        _ => internal(file, &error),
    })
}

/// What a module has beside its code, and the verifier alone looks at in full: the rewriter
/// passes it on.
const PASSED_ON: [ViolationCode; 4] = [
    ViolationCode::Section,
    ViolationCode::Symbol,
    ViolationCode::Relocation,
    ViolationCode::Metadata,
];

/// The verifier's result for twin's own output. The rewriter leaves it to the verifier
/// whether a move of `rsp` in a module for a stock kernel can be followed, whether it may write
/// a return address, whether its tables are in order, and whether the code has become too long. What follows from these is not said;
/// any other violation is a defect of twin.
pub fn unproved(file: &str, contract: Contract, violations: Violations) -> Failure {
    let count = |code| violations.list.iter().filter(|v| v.code == code).count();
    if violations.total == count(ViolationCode::Size)
        && let Some(too_long) = violations.list.first()
    {
        let reason = format!("rewritten, it has {}", too_long.reason);
        return Failure::Refused {
            file: file.to_owned(),
            refusals: vec![Refusal::of_object(RefusalCode::TooMany, reason)],
        };
    }
    let left = |v: &Violation| is_left_to_the_proof(v, contract.target);
    if violations.list.iter().all(left) && violations.total == violations.list.len() {
        let refused = violations.list.iter().map(unfollowed).collect();
        return Failure::Refused {
            file: file.to_owned(),
            refusals: refused,
        };
    }
    let is_passed_on = |v: &&Violation| PASSED_ON.contains(&v.code);
    let passed_on = violations.list.iter().filter(is_passed_on);
    // What a bad table was to allow is refused besides, and is no defect of its own.
    let disordered: Vec<_> = passed_on.map(disordered).collect();
    if contract.target == Target::Linux && !disordered.is_empty() {
        return Failure::Refused {
            file: file.to_owned(),
            refusals: disordered,
        };
    }
    Failure::Violated {
        file: file.to_owned(),
        made_here: true,
        violations,
    }
}

/// Whether the rewriter leaves it to the verifier to look at this: what `rsp` is set to, and in a
/// module for a stock kernel whether that is the same on all paths, which words of the frame are
/// written, and where a jump through a register goes.
fn is_left_to_the_proof(violation: &Violation, target: Target) -> bool {
    match violation.code {
        ViolationCode::StackPointer => true,
        ViolationCode::Depth | ViolationCode::ReturnSlot => target == Target::Linux,
        // A thunk has a register in its name.
        ViolationCode::Target => {
            let goes = &violation.instruction;
            target == Target::Linux && (goes.contains('*') || goes.contains("_thunk_"))
        }
        _ => false,
    }
}

/// What is not in order in a module, as a refusal.
fn disordered(violation: &Violation) -> Refusal {
    let reason = &violation.reason;
    let (code, reason) = match violation.code {
        ViolationCode::Relocation => (RefusalCode::Relocation, reason.to_string()),
        // Of code, which was compiled so, and no table of the kernel's.
        _ if violation.function.is_some() => (RefusalCode::Metadata, reason.to_string()),
        _ => (
            RefusalCode::Metadata,
            format!(
                "{reason}: the module is damaged, or twin does not know what its kernel does with it"
            ),
        ),
    };
    Refusal {
        function: violation.function.clone().unwrap_or_default(),
        function_offset: violation.function_offset,
        ..Refusal::at(code, &violation.section, violation.offset, reason)
    }
}

/// A move of `rsp` that the verifier cannot follow, a stack that is not as deep on one path as on
/// another, a write over a return address, or a jump to a label, as a refusal.
fn unfollowed(violation: &Violation) -> Refusal {
    const RETURN: &str =
        "it may write a return address, of its own function or of a caller in the module";
    const MOVE: &str = "the register or word that %rsp comes from cannot be followed to where the frame's address was put into it";
    const GOTO: &str =
        "it goes to a place in the code that is no function's start: a computed goto";
    let (code, reason) = match violation.code {
        ViolationCode::ReturnSlot => (RefusalCode::StackPointer, RETURN),
        ViolationCode::Target => (RefusalCode::CodeReference, GOTO),
        ViolationCode::Depth => (RefusalCode::StackPointer, &*violation.reason),
        _ => (RefusalCode::StackPointer, MOVE),
    };
    Refusal {
        function: violation.function.clone().unwrap_or_default(),
        function_offset: violation.function_offset,
        instruction: violation.instruction.clone(),
        ..Refusal::at(code, &violation.section, violation.offset, reason)
    }
}

/// An object that this program made itself and cannot handle.
fn internal(file: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::refused(
        file,
        CommandCode::Internal,
        format!("internal error: the rewritten object is malformed: {error}; please report this"),
    )
}
