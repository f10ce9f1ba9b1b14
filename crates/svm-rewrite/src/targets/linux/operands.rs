//! Names for references in a module's code: the module's own sections, which stay, and
//! the kernel's symbols. A place in code becomes a label, because code moves.

use elf_loader::Place;
use elf_loader::consts::{R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32};

use crate::asm::import::Import;
use crate::asm::{Field, Label, Referent};
use crate::lift::{Lifted, Value};
use crate::refusal::{self, Code, Refusal};

/// What `value` refers to in emitted code.
///
/// # Errors
/// Why it cannot be named.
pub fn referent(lifted: &Lifted<'_>, value: Value) -> Result<Referent, &'static str> {
    match lifted.code_place(value.symbol, value.addend) {
        Some((code, offset)) => lifted
            .inst_at(code, offset)
            .map(|i| Referent::Label(Label(i.0)))
            .ok_or("it refers into code, but to no instruction"),
        None => Ok(Referent::Import(Import::Own(value.symbol), value.addend)),
    }
}

/// The field that holds a value of this relocation type.
pub fn field(kind: u32) -> Option<Field> {
    match kind {
        R_X86_64_32S => Some(Field::Abs32S),
        R_X86_64_32 => Some(Field::Abs32),
        R_X86_64_64 => Some(Field::Abs64),
        R_X86_64_PC32 | R_X86_64_PLT32 => Some(Field::Data32),
        _ => None,
    }
}

/// Checks that every operand relocation can be carried over.
pub fn check(lifted: &Lifted<'_>) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for &(i, value) in &lifted.values {
        if let Err(reason) = check_value(lifted, value) {
            refusal::add(&mut refusals, lifted.refusal(Code::Relocation, i, reason));
        }
    }
    refusals
}

fn check_value(lifted: &Lifted<'_>, value: Value) -> Result<(), &'static str> {
    field(value.kind).ok_or("relocations of this type cannot be carried over to an operand")?;
    let common = lifted.object.symbol(value.symbol).place == Place::Common;
    if common {
        return Err("a common symbol has no place, and the kernel's loader gives it none");
    }
    referent(lifted, value).map(|_| ())
}
