//! Instructions as text, in AT&T syntax, for people.

use elf_loader::Object;
use iced_x86::{Formatter, GasFormatter, Instruction};

use crate::lift::{Destination, Inst, InstIdx, Lifted, RelocatedValue};

/// A formatter with the project's one style.
pub fn formatter() -> GasFormatter {
    let mut f = GasFormatter::new();
    let options = f.options_mut();
    options.set_space_after_operand_separator(false);
    options.set_uppercase_hex(false);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_branch_leading_zeros(false);
    options.set_small_hex_numbers_in_decimal(true);
    options.set_gas_space_after_memory_operand_comma(false);
    f
}

/// One instruction without its relocations.
pub fn plain(iced: &Instruction) -> String {
    let mut out = String::new();
    formatter().format(iced, &mut out);
    out
}

/// `symbol+addend` of a value; section symbols by the section's name.
pub fn symbol(object: &Object<'_>, value: RelocatedValue) -> String {
    let name = object.symbol_name(value.symbol);
    match value.addend {
        0 => name.to_owned(),
        a if a > 0 => format!("{name}+{a:#x}"),
        a => format!("{name}-{:#x}", a.unsigned_abs()),
    }
}

/// An original instruction with the symbols that its relocations refer to.
pub fn original(lifted: &Lifted<'_>, i: InstIdx) -> String {
    let inst = lifted.inst(i);
    match inst.target {
        Some(Destination::Inst(t)) => branch_to_code(lifted, inst, t),
        Some(Destination::Import(s)) => with_target(inst, lifted.symbol_name(s)),
        Some(Destination::Behind(code)) => {
            with_target(inst, &format!("the end of {}", lifted.section_name(code)))
        }
        Some(Destination::Hypercall(page, offset)) => {
            let name = lifted.symbol_name(page);
            match offset {
                0 => with_target(inst, name),
                _ => with_target(inst, &format!("{name}+{offset:#x}")),
            }
        }
        // What is at that distance is said by no relocation, or by one that is refused.
        None if inst.own_place().is_some() => {
            let mut f = formatter();
            f.options_mut().set_rip_relative_addresses(true);
            let mut out = String::new();
            f.format(&inst.iced, &mut out);
            out
        }
        None => {
            let mut out = plain(&inst.iced);
            for value in lifted.values_of(inst) {
                out.push_str(&format!("  # {}", symbol(lifted.object, value)));
            }
            out
        }
    }
}

fn branch_to_code(lifted: &Lifted<'_>, inst: &Inst, target: InstIdx) -> String {
    let offset = lifted.inst(target).offset();
    // Where code could not be decoded, there may be no functions.
    let function = lifted.functions.get(lifted.function_of(target).0 as usize);
    let function = function.filter(|f| f.insts.contains(&target.0));
    let to = match function.map(|f| (f, offset - f.start)) {
        Some((f, 0)) => f.name.clone(),
        Some((f, delta)) => format!("{}+{delta:#x}", f.name),
        None => format!("{offset:#x}"),
    };
    with_target(inst, &to)
}

fn with_target(inst: &Inst, target: &str) -> String {
    let text = plain(&inst.iced);
    let mnemonic = text.split_whitespace().next().unwrap_or_default();
    format!("{mnemonic} {target}")
}
