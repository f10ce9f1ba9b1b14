//! Names for everything that stays in dom0.
//!
//! The rewritten object has no data. A reference to data, to an imported
//! variable or to the address of code becomes a reference to an undefined
//! symbol `twin_vm:<name>`, which the loader resolves to the place in dom0
//! (paper, 5.2).

use elf_loader::Place;
use elf_loader::consts::{R_X86_64_32S, R_X86_64_64, R_X86_64_PC32};

use super::names::Owners;
use crate::analyse::references::References;
use crate::asm::import::Import;
use crate::asm::{Field, Referent};
use crate::lift::{Lifted, RelocatedValue};

/// What `value` refers to in emitted code.
///
/// # Errors
/// Why it cannot be named.
fn referent(lifted: &Lifted<'_>, value: RelocatedValue) -> Result<Referent, &'static str> {
    let object = lifted.object;
    let symbol = object.symbol(value.symbol);
    match symbol.place {
        Place::In(section) => {
            let addend = value.addend.wrapping_add_unsigned(symbol.value);
            Ok(Referent::Import(Import::Section(section), addend))
        }
        Place::Undefined if symbol.name.is_empty() => {
            Err("a symbol without a name is no place in dom0")
        }
        Place::Undefined => Ok(Referent::Import(Import::Data(value.symbol), value.addend)),
        Place::Common => Err("a common symbol has no place yet"),
        Place::Absolute => Err("an absolute symbol is no place in dom0"),
    }
}

/// The field that holds an absolute value of this relocation type; `None` if it cannot
/// be carried over.
fn field(kind: u32) -> Option<Field> {
    match kind {
        R_X86_64_32S => Some(Field::Abs32S),
        // Rewritten as `movabs`, see `Address::Symbol`.
        R_X86_64_64 | R_X86_64_PC32 => Some(Field::Abs64),
        _ => None,
    }
}

/// What the relocated fields become.
pub fn references(lifted: &Lifted<'_>) -> References {
    let owners = Owners::of(lifted.object);
    References::find(lifted, |_, value| {
        let field = field(value.kind).ok_or_else(|| {
            format!(
                "relocation type {} cannot be carried over to an operand",
                value.kind
            )
        })?;
        let symbol = lifted.object.symbol(value.symbol);
        let name: &str = match symbol.place {
            Place::In(section) => &lifted.object.section(section).name,
            Place::Undefined | Place::Common | Place::Absolute => &symbol.name,
        };
        if let Some(why) = owners.ambiguous(name) {
            return Err(format!("it refers to `{name}`, and {why}"));
        }
        Ok((field, referent(lifted, value)?))
    })
}
