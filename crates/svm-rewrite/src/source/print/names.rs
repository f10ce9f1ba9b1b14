//! What the printer names: labels of its own, branches, what the runtime
//! provides; and a few names of the text that mean something to it.

use twin_abi::names;

use super::super::marks::push_number;
use super::super::statement::{Kind, Statement};
use crate::asm::Jump;
use crate::import::Import;
use crate::linkage::REGISTER_NAMES;

/// `.Ltwin5`
pub fn label(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(b".Ltwin");
    push_number(out, number);
}

/// The mnemonic of a branch, with blanks around it.
pub fn branch(jump: Jump) -> &'static str {
    const CONDITIONS: [&str; 16] = [
        "\tjo\t", "\tjno\t", "\tjb\t", "\tjae\t", "\tje\t", "\tjne\t", "\tjbe\t", "\tja\t",
        "\tjs\t", "\tjns\t", "\tjp\t", "\tjnp\t", "\tjl\t", "\tjge\t", "\tjle\t", "\tjg\t",
    ];
    match jump {
        Jump::Always => "\tjmp\t",
        Jump::If(cc) => CONDITIONS[usize::from(cc & 15)],
        Jump::Call => "\tcall\t",
        Jump::ShortOnly(_) => "\tjrcxz\t",
    }
}

/// Appends how code names what the runtime provides; false for what is the
/// original's.
pub fn runtime(import: Import, addend: i64, out: &mut Vec<u8>) -> bool {
    match import {
        Import::Stlb => out.extend_from_slice(names::STLB.as_bytes()),
        Import::Slow(reg) => {
            out.extend_from_slice(names::SLOW_PREFIX.as_bytes());
            out.extend_from_slice(REGISTER_NAMES[usize::from(reg.number())].as_bytes());
        }
        Import::Runtime(name) => out.extend_from_slice(name.as_bytes()),
        Import::Section(_) | Import::Data(_) | Import::Routine(_) | Import::Own(_) => return false,
    }
    if addend != 0 {
        out.push(if addend < 0 { b'-' } else { b'+' });
        push_number(out, addend.unsigned_abs() as u32);
    }
    true
}

/// Branches that have no long form.
pub fn is_short_only(name: &[u8]) -> bool {
    matches!(name, b"jrcxz" | b"jecxz") || name.starts_with(b"loop")
}

/// The numeric label that a branch goes to, `1` of `jne 1b`.
pub fn numeric_target<'t>(text: &'t [u8], statement: &Statement) -> Option<&'t [u8]> {
    let name = statement.name(text);
    let branch = name.starts_with(b"j") || name.starts_with(b"loop") || name == b"call";
    if statement.kind != Kind::Instruction || !branch {
        return None;
    }
    let (direction, number) = statement.rest(text).split_last()?;
    let numeric = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    (numeric && matches!(direction, b'b' | b'f')).then_some(number)
}
