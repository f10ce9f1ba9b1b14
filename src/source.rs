//! Assembly text rewritten to assembly text.
//!
//! ```text
//! text ──> marked text ──as──> object ──> rewritten text
//!                                              │
//!             `linux`: ──as──> object ──ld -r──> with the runtime ──> verify
//! ```
//!
//! Text for `linux` is a part of a module, and its object is verified as part of one.
//! Text for `hypervisor` is a program's, mapped to itself: the proof is about drivers,
//! whose stack and frames have known sizes, and does not hold for programs.

use svm_rewrite::text::{Printed, Source};
use svm_rewrite::{Options, Scheme, Target};
use svm_verify::Contract;

use command_line::assembler;
use command_line::failure::Failure;

/// The table and the slow paths of a program, part of each of its texts, linked
/// once.
const PROCESS_RUNTIME: &str = include_str!("../runtime/platform/process/process.s");

/// How a text that stays text is rewritten for a target.
///
/// # Errors
/// The target takes no text, or the scheme is not for programs.
pub fn options(target: Target, scheme: Scheme) -> Result<Options, Failure> {
    match (target, scheme) {
        (Target::Hypervisor, _) => {
            let why = "for a hypervisor, text must become an object: give -o FILE.o";
            Err(Failure::Usage(why.to_owned()))
        }
        (Target::Linux | Target::Process, scheme) if !svm_rewrite::suits(scheme, target) => {
            let why = format!(
                "--scheme {} has absolute addresses, which programs cannot have; `{}` is for them",
                scheme.as_str(),
                Scheme::Stlb.as_str()
            );
            Err(Failure::Usage(why))
        }
        (Target::Linux | Target::Process, _) => Ok(Options::of(target, scheme)),
    }
}

/// Rewrites a text; `assemble` turns the marked text into an object.
///
/// # Errors
/// The text is refused, or cannot be assembled.
pub fn rewrite<E: From<Failure>>(
    name: &str,
    text: &[u8],
    options: Options,
    assemble: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
) -> Result<Printed, E> {
    let (source, marked) = Source::new(text);
    let bytes = assemble(&marked)?;
    let object = elf_loader::read(&bytes).map_err(|e| Failure::unreadable(name, &e))?;
    let mut printed = source
        .rewrite(&object, options)
        .map_err(|refusals| Failure::Refused {
            file: name.to_owned(),
            refusals,
        })?;
    if options.target == Target::Process {
        printed.text.extend_from_slice(b"\n\t.att_syntax\n");
        printed.text.extend_from_slice(PROCESS_RUNTIME.as_bytes());
    }
    Ok(printed)
}

/// Proves that rewritten text for `linux`, assembled and linked with the runtime,
/// is confined.
///
/// # Errors
/// It is not, or cannot be assembled.
pub fn verify(name: &str, text: &[u8], scheme: Scheme) -> Result<(), Failure> {
    let object = assembler::assemble(name, text)?;
    let linked = assembler::link(name, &[&object, &module_runtime(scheme)?])?;
    let object = elf_loader::read(&linked).map_err(|e| Failure::unreadable(name, &e))?;
    let contract = Contract::of(svm_verify::Target::Linux).with(scheme);
    svm_verify::verify(&object, contract)
        .map(|_| ())
        .map_err(|violations| Failure::Violated {
            file: name.to_owned(),
            own: true,
            violations,
        })
}

/// The object that modules made of rewritten text are linked with.
///
/// # Errors
/// None but defects of this program.
pub fn module_runtime(scheme: Scheme) -> Result<Vec<u8>, Failure> {
    let object = svm_rewrite::text::module_runtime(scheme);
    elf_loader::write(&object).map_err(|e| Failure::input("the runtime", e))
}
