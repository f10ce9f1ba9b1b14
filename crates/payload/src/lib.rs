//! Makes a rewritten driver a payload that a stock Xen takes by its livepatch loader.
//!
//! ```text
//! driver.twin.o ─┐ verify   places        resolve             finish
//! hot.twin.o    ─┼─────────> Output ──────────────> Output ──────────> bytes ──check──> Proof
//! runtime.o     ─┘   ^         ^  generated: stubs, arrays, values        ^
//!                    │         │  of the table, funcs, notes              └ read again
//!       Table (one build of Xen), Dom0 (kallsyms, sections of modules)
//! ```
//!
//! Takes objects as they were read, and texts; opens no file. Gives a relocatable object
//! that Xen 4.17 to 4.20 load: relocations of three types, no undefined name that the build
//! does not have, no name that the build has already, sizes within the loader's limits.
//! `docs/spec/payload.md` has the format.
//!
//! What is claimed of the code rests on two proofs by `svm-verify`. The inputs are proved
//! before anything else is done with them. The output is read again from its bytes, and
//! [`check()`] proves the code in it once more, with dom0's addresses filled in: it does not
//! use what the builder knows.

mod arrays;
mod check;
mod code;
mod dom0;
mod finish;
mod given;
mod livepatch;
mod output;
mod refusal;
mod replaced;
mod rewritten;
mod runtime;
mod stubs;
mod table;

use elf_loader::Object;
use svm_verify::{Contract, Proof, Scheme, Target};

pub use check::check;
pub use code::PayloadCode;
pub use dom0::{Dom0, Kallsyms};
pub use refusal::{Part, PayloadError, Refusal};
pub use table::{Table, sealed};

use output::Output;
use rewritten::{Code, Role};

/// A rewritten object and the module that its data belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Rewritten<'a> {
    /// As `twin rewrite --target hypervisor` made it.
    pub object: &'a Object<'a>,
    /// The module's name in dom0.
    pub module: &'a str,
}

/// What a payload is made of.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The driver.
    pub driver: Rewritten<'a>,
    /// The hot routines, if they run in the hypervisor.
    pub hot: Option<Rewritten<'a>>,
    /// The runtime and its platform, linked to one relocatable object.
    pub runtime: &'a Object<'a>,
    /// The build of Xen.
    pub table: &'a Table,
    /// dom0's addresses.
    pub dom0: &'a Dom0<'a>,
}

/// A payload.
#[derive(Clone, Debug)]
pub struct Payload {
    /// The file.
    pub bytes: Vec<u8>,
    /// What was proved of the code in it.
    pub proof: Proof,
    /// Routines that the code calls and that lead out of the hypervisor: the names of the
    /// numbered stubs, by number.
    pub imports: Vec<String>,
}

/// Makes a payload. The same inputs give the same bytes.
///
/// # Errors
/// [`PayloadError`] names the input, and what to do.
pub fn build(inputs: &Inputs<'_>) -> Result<Payload, PayloadError> {
    let driver = prove(Part::Driver, inputs.driver)?;
    let hot = match inputs.hot {
        Some(hot) => Some((hot, prove(Part::Hot, hot)?)),
        None => None,
    };
    // --- the rewritten code keeps the contract, whatever dom0's addresses are ---
    let mut output = Output::default();
    let runtime = runtime::place(&mut output, inputs.runtime)?;
    let mut code = vec![Code::place(
        &mut output,
        Role::Driver,
        inputs.driver,
        driver,
    )?];
    if let Some((hot, proof)) = hot {
        code.push(Code::place(&mut output, Role::Hot, hot, proof)?);
    }
    // --- all given sections and symbols have their places ---
    let stubs = stubs::place(&mut output, &code, &runtime)?;
    let mut rows = Vec::new();
    for part in &code {
        rows.extend(part.resolve(&mut output, inputs.dom0, &code, &stubs)?);
    }
    arrays::place(&mut output, &code, rows, &stubs, inputs)?;
    replaced::place(&mut output, inputs, &runtime)?;
    runtime.resolve(&mut output, inputs, &code)?;
    // --- no new symbols or sections but the notes beyond this point ---
    let bytes = finish::finish(output, inputs.table, &code)?;
    let proof = check(&bytes)?;
    let imports = stubs.numbered;
    Ok(Payload {
        bytes,
        proof,
        imports,
    })
}

/// The contract that rewritten code for a hypervisor has to keep, in any scheme.
fn contract() -> Contract {
    Contract::of(Target::Hypervisor)
}

/// What was proved of code that keeps the contract and that Xen can run.
fn prove(part: Part, rewritten: Rewritten<'_>) -> Result<Proof, PayloadError> {
    match svm_verify::verify(rewritten.object, contract()) {
        Ok(proof) if Scheme::TABLES.contains(&proof.scheme) => Err(Refusal::new(
            PayloadCode::Scheme,
            part,
            format!(
                "its scheme is `{}`, whose table Xen cannot place; rewrite it with --scheme window",
                proof.scheme.as_str()
            ),
        )
        .into()),
        Ok(proof) if proof.vectors => Err(Refusal::new(
            PayloadCode::Vectors,
            part,
            "it has instructions with vector registers, whose values are a guest's in Xen; \
             compile it without them (-mno-sse -mno-avx), as kernels are",
        )
        .into()),
        Ok(proof) => Ok(proof),
        Err(violations) => Err(PayloadError::Violated { part, violations }),
    }
}
