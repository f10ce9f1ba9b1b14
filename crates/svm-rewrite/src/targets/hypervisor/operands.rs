//! Names for everything that stays in dom0.
//!
//! The rewritten object has no data. A reference to data, to an imported
//! variable or to the address of code becomes a reference to an undefined
//! symbol `twin_vm:<name>`, which the loader resolves to the place in dom0
//! (paper, 5.2).

use std::collections::HashMap;

use elf_loader::Place;
use elf_loader::consts::{R_X86_64_32S, R_X86_64_64, R_X86_64_PC32};

use crate::asm::import::Import;
use crate::asm::{Field, Referent};
use crate::lift::{Lifted, Value};
use crate::refusal::{self, Code, Refusal};

/// What `value` refers to in emitted code.
///
/// # Errors
/// Why it cannot be named.
pub fn referent(lifted: &Lifted<'_>, value: Value) -> Result<Referent, &'static str> {
    let object = lifted.object;
    let symbol = object.symbol(value.symbol);
    match symbol.place {
        Place::In(section) => {
            let addend = value.addend.wrapping_add_unsigned(symbol.value);
            Ok(Referent::Import(Import::Section(section), addend))
        }
        Place::Undefined => Ok(Referent::Import(Import::Data(value.symbol), value.addend)),
        Place::Common => Err("a common symbol has no place yet"),
        Place::Absolute => Err("an absolute symbol is no place in dom0"),
    }
}

/// The field that holds an absolute value of this relocation type; `None` if it cannot
/// be carried over.
pub fn field(kind: u32) -> Option<Field> {
    match kind {
        R_X86_64_32S => Some(Field::Abs32S),
        // Rewritten as `movabs`, see `Address::Symbol`.
        R_X86_64_64 | R_X86_64_PC32 => Some(Field::Abs64),
        _ => None,
    }
}

/// Checks that every operand relocation can be carried over.
pub fn check(lifted: &Lifted<'_>) -> Vec<Refusal> {
    let mut uses: HashMap<&str, u32> = HashMap::new();
    for section in &lifted.object.sections {
        *uses.entry(&section.name).or_default() += 1;
    }
    let mut refusals = Vec::new();
    for &(i, value) in &lifted.values {
        if let Err(reason) = check_value(lifted, value, &uses) {
            refusal::add(&mut refusals, lifted.refusal(Code::Relocation, i, reason));
        }
    }
    refusals
}

fn check_value(lifted: &Lifted<'_>, value: Value, uses: &HashMap<&str, u32>) -> Result<(), String> {
    if field(value.kind).is_none() {
        return Err(format!(
            "relocation type {} cannot be carried over to an operand",
            value.kind
        ));
    }
    let symbol = lifted.object.symbol(value.symbol);
    if let Place::In(section) = symbol.place {
        let name: &str = &lifted.object.section(section).name;
        if uses.get(name).copied().unwrap_or(0) > 1 {
            return Err(format!(
                "it refers to section {name}, and several sections have that name"
            ));
        }
    }
    referent(lifted, value).map(|_| ()).map_err(str::to_owned)
}
