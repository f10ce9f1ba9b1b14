//! Names for references in a module's code: the module's own sections, which stay, and
//! the kernel's symbols. A place in code becomes a label, because code moves.

use elf_loader::Place;
use elf_loader::consts::{R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32};

use crate::analyse::references::References;
use crate::asm::import::Import;
use crate::asm::{Field, Label, Referent};
use crate::lift::{InstIdx, Lifted, RelocatedValue};

/// What `value` refers to in emitted code.
///
/// # Errors
/// Why it cannot be named.
fn referent(lifted: &Lifted<'_>, value: RelocatedValue) -> Result<Referent, &'static str> {
    match lifted.code_place(value.symbol, value.addend) {
        Some((code, offset)) => lifted
            .inst_at(code, offset)
            .map(|i| Referent::Label(Label(i.0)))
            .ok_or("it refers into code, but to no instruction"),
        None => Ok(Referent::Import(Import::Own(value.symbol), value.addend)),
    }
}

/// The field that holds a value, in an instruction of that length.
fn field(value: RelocatedValue, len: usize) -> Option<Field> {
    match value.kind {
        R_X86_64_32S => Some(Field::Abs32S),
        R_X86_64_32 => Some(Field::Abs32),
        R_X86_64_64 => Some(Field::Abs64),
        R_X86_64_PC32 | R_X86_64_PLT32 => {
            let behind = (len - usize::from(value.at) - 4) as u8;
            Some(Field::Data32 { behind })
        }
        _ => None,
    }
}

/// Whether a value is in the memory operand of its instruction, not in an immediate.
fn is_displacement(lifted: &Lifted<'_>, i: InstIdx, value: RelocatedValue) -> bool {
    let displacement = lifted.inst(i).displacement.map(|v| lifted.value(v));
    displacement == Some(value)
}

/// What the relocated fields become.
pub fn references(lifted: &Lifted<'_>) -> References {
    References::find(lifted, |i, value| {
        if value.kind == R_X86_64_64 && is_displacement(lifted, i, value) {
            return Err(
                "it names memory by an address of 64 bits, as no code of the kernel does".into(),
            );
        }
        let field = field(value, lifted.inst(i).iced.len());
        let field = field.ok_or("relocations of this type cannot be carried over to an operand")?;
        if lifted.object.symbol(value.symbol).place == Place::Common {
            return Err(
                "a common symbol has no place, and the kernel's loader gives it none".into(),
            );
        }
        Ok((field, referent(lifted, value)?))
    })
}
