//! What the relocated fields of instructions become in emitted code. This is decided for
//! all of them before any instruction is looked at, so that code can be written without
//! asking again.

use crate::asm::{Field, Referent};
use crate::lift::{Inst, InstIdx, Lifted, Value, ValueIdx};
use crate::refusal::{self, Code, Refusal};

/// What one relocated field becomes.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// Offset of the field in the original instruction, in bytes.
    pub at: u8,
    /// The field.
    pub field: Field,
    /// What it holds.
    pub referent: Referent,
}

/// The references of an object's code.
pub struct References {
    /// By value; complete if none is refused.
    found: Vec<Reference>,
    /// Those that cannot be carried over.
    pub refusals: Vec<Refusal>,
}

impl References {
    /// Asks a target for each value of the code. An error says why the value cannot be
    /// carried over.
    pub fn find(
        lifted: &Lifted<'_>,
        carry: impl Fn(InstIdx, Value) -> Result<(Field, Referent), String>,
    ) -> References {
        let mut references = References {
            found: Vec::with_capacity(lifted.values.len()),
            refusals: Vec::new(),
        };
        for &(i, value) in &lifted.values {
            let at = value.at;
            match carry(i, value) {
                Ok((field, referent)) => references.found.push(Reference {
                    at,
                    field,
                    referent,
                }),
                Err(reason) => {
                    let refused = lifted.refusal(Code::Relocation, i, reason);
                    refusal::add(&mut references.refusals, refused);
                }
            }
        }
        references
    }

    /// That of a value, if none was refused.
    pub fn get(&self, value: ValueIdx) -> Reference {
        self.found[value.index()]
    }

    /// Those of an instruction.
    pub fn of(&self, inst: &Inst) -> impl Iterator<Item = Reference> {
        inst.values().map(|value| self.get(value))
    }
}
