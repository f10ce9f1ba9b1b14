//! Assembly text rewritten to assembly text.
//!
//! ```text
//! text ──> marked text ──as──> object ──> rewritten text, and the runtime
//!                                              │
//!                     `linux`: ──as──> object ─┘──> verify
//! ```
//!
//! Text for `linux` is a part of a module, and its object is verified as a module would be.
//! Text for `hypervisor` is a program's, mapped to itself: the proof is about drivers,
//! whose stack and frames have known sizes, and does not hold for programs.

use std::borrow::Cow;

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
    if let Some(runtime) = runtime(&printed, options) {
        printed.text.extend_from_slice(b"\n\t.att_syntax\n");
        printed.text.extend_from_slice(runtime.as_bytes());
    }
    Ok(printed)
}

/// The runtime that a text brings along.
fn runtime(printed: &Printed, options: Options) -> Option<Cow<'static, str>> {
    match options.target {
        Target::Process => Some(PROCESS_RUNTIME.into()),
        // Without code nothing calls it. modpost's `.mod.c` is such a source: kbuild runs
        // no objtool on it, so its copy would have no unwind tables.
        Target::Linux if printed.stats.instructions == 0 => None,
        Target::Linux => Some(svm_rewrite::text::module_runtime(options.scheme).into()),
        // A text for a hypervisor becomes an object.
        Target::Hypervisor => None,
    }
}

/// Proves that rewritten text for `linux`, assembled, is confined.
///
/// # Errors
/// It is not, or cannot be assembled.
pub fn verify(name: &str, printed: &Printed, scheme: Scheme) -> Result<(), Failure> {
    let mut text = Cow::Borrowed(&*printed.text);
    if runtime(printed, Options::of(Target::Linux, scheme)).is_none() {
        // It is a part of a module that has the runtime from other objects.
        let runtime = svm_rewrite::text::module_runtime(scheme);
        text.to_mut().extend_from_slice(runtime.as_bytes());
    }
    let bytes = assembler::assemble(name, &text)?;
    let object = elf_loader::read(&bytes).map_err(|e| Failure::unreadable(name, &e))?;
    let contract = Contract::of(svm_verify::Target::Linux).with(scheme);
    svm_verify::verify(&object, contract)
        .map(|_| ())
        .map_err(|violations| Failure::Violated {
            file: name.to_owned(),
            made_here: true,
            violations,
        })
}
