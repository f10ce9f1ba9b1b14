//! What was proved, in numbers.

use serde::{Serialize, Serializer};
use twin_abi::{Accesses, Processor, Scheme, Target};

use crate::insn::Disassembly;
use crate::object::Image;
use crate::paths::Interpretation;
use crate::rules::Proved;
use crate::targets::Reads;

/// Which contract an object keeps, and statistics of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// The target whose rules it keeps.
    #[serde(serialize_with = "target")]
    pub target: Target,
    /// Its scheme.
    #[serde(serialize_with = "scheme")]
    pub scheme: Scheme,
    /// Which accesses are confined.
    #[serde(serialize_with = "confined")]
    pub confined: Accesses,
    /// Which processors can run it.
    #[serde(serialize_with = "processor")]
    pub processor: Processor,
    /// Bytes of code.
    pub bytes: u64,
    /// Instructions in all code sections, reached or not.
    pub instructions: usize,
    /// Those that no path reaches: padding, mostly.
    pub unreached: usize,
    /// Places that are entered with an empty frame.
    pub functions: usize,
    /// Translations by a check.
    pub checks: usize,
    /// Entries of the codemap.
    pub codemap: usize,
    /// Whether any instruction, reached or not, may touch vector state: if none does,
    /// a runtime need neither save it nor clear it.
    pub vectors: bool,
    /// Instructions that touch memory, by how that was proved.
    pub accesses: AccessCounts,
}

/// Instructions that touch memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AccessCounts {
    /// In the function's own frame, including `push` and `pop`.
    pub stack: usize,
    /// Through a translated address.
    pub translated: usize,
    /// In the window, by the operand's own form.
    pub window: usize,
    /// Of the translation table, in checks.
    pub table: usize,
    /// Of a segment base.
    pub context: usize,
    /// Through the pointers of string instructions.
    pub string: usize,
    /// Of a symbol's place, of per-CPU data, or with faults that the kernel handles;
    /// target `linux` only.
    pub kernel: usize,
    /// Operands that are only read and that nothing confines, where stores alone are
    /// confined.
    pub unconfined: usize,
}

impl Proof {
    pub(crate) fn new(
        image: &Image<'_>,
        disassembly: &Disassembly,
        outcome: &Interpretation,
    ) -> Proof {
        let mut proof = Proof {
            target: image.rules.target,
            scheme: image.scheme.scheme(),
            confined: match image.rules.reads {
                Reads::Confined => Accesses::All,
                Reads::Anywhere => Accesses::Stores,
            },
            processor: image.rules.processor,
            bytes: image
                .code
                .iter()
                .map(|&id| image.object.section(id).size)
                .sum(),
            instructions: disassembly.insns.len(),
            functions: outcome.functions,
            checks: outcome.checks,
            codemap: image.codemap.len(),
            vectors: disassembly.vectors,
            unreached: 0,
            accesses: AccessCounts::default(),
        };
        for proved in &outcome.proved {
            let count = match proved {
                Proved::Unreached => &mut proof.unreached,
                Proved::Reached => continue,
                Proved::Stack => &mut proof.accesses.stack,
                Proved::Translated => &mut proof.accesses.translated,
                Proved::Window => &mut proof.accesses.window,
                Proved::Table => &mut proof.accesses.table,
                Proved::Context => &mut proof.accesses.context,
                Proved::String => &mut proof.accesses.string,
                Proved::Kernel => &mut proof.accesses.kernel,
                Proved::Unconfined => &mut proof.accesses.unconfined,
            };
            *count += 1;
        }
        proof
    }
}

fn target<S: Serializer>(target: &Target, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(target.as_str())
}

fn scheme<S: Serializer>(scheme: &Scheme, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(scheme.as_str())
}

fn confined<S: Serializer>(accesses: &Accesses, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(accesses.as_str())
}

fn processor<S: Serializer>(processor: &Processor, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(processor.as_str())
}
