//! What the relocated fields of instructions become in emitted code. This is decided for
//! all of them before any instruction is looked at, so that code can be written without
//! asking again.

use crate::asm::{Field, Referent};
use crate::lift::{Inst, InstIdx, Lifted, RelocatedValue, ValueIdx};
use crate::refusal::{self, Refusal, RefusalCode};

/// What one relocated field becomes.
#[derive(Clone, Copy, Debug)]
pub struct FieldReference {
    /// Offset of the field in the original instruction, in bytes.
    pub at: u8,
    pub field: Field,
    /// What it holds.
    pub referent: Referent,
}

/// The references of an object's code.
pub struct References {
    /// By value; complete if none is refused.
    found: Vec<FieldReference>,
    /// Those that cannot be carried over.
    pub refusals: Vec<Refusal>,
}

impl References {
    /// Asks a target for each value of the code. An error says why the value cannot be
    /// carried over.
    pub fn find(
        lifted: &Lifted<'_>,
        carry: impl Fn(InstIdx, RelocatedValue) -> Result<(Field, Referent), String>,
    ) -> References {
        let mut references = References {
            found: Vec::with_capacity(lifted.relocated_values.len()),
            refusals: Vec::new(),
        };
        for &(i, value) in &lifted.relocated_values {
            let at = value.at;
            match carry(i, value) {
                Ok((field, referent)) => references.found.push(FieldReference {
                    at,
                    field,
                    referent,
                }),
                Err(reason) => {
                    let refused = lifted.refusal(RefusalCode::Relocation, i, reason);
                    refusal::add(&mut references.refusals, refused);
                }
            }
        }
        references
    }

    /// That of a value, if none was refused.
    pub fn get(&self, value: ValueIdx) -> FieldReference {
        self.found[value.index()]
    }

    /// Those of an instruction.
    pub fn of(&self, inst: &Inst) -> impl Iterator<Item = FieldReference> {
        inst.relocated_values().map(|value| self.get(value))
    }
}
