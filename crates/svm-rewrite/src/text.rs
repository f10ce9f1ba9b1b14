//! Instructions as text, in AT&T syntax, for people.

use std::collections::{BTreeMap, BTreeSet};

use elf_loader::{Object, Place, Relocation, SectionId};
use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Instruction, Register};

use crate::lift::{Inst, InstIdx, Lifted, Target, Value, is_direct_branch};

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
pub fn symbol(object: &Object<'_>, value: Value) -> String {
    let s = object.symbol(value.symbol);
    let name = match s.place {
        Place::In(section) if s.name.is_empty() => &object.section(section).name,
        _ => &s.name,
    };
    match value.addend {
        0 => name.to_string(),
        a if a > 0 => format!("{name}+{a:#x}"),
        a => format!("{name}-{:#x}", -a),
    }
}

/// An original instruction with what its relocations refer to.
pub fn original(lifted: &Lifted<'_>, i: InstIdx) -> String {
    let inst = lifted.inst(i);
    match inst.target {
        Some(Target::Inst(t)) => branch_to_code(lifted, inst, t),
        Some(Target::Import(s)) => with_target(inst, lifted.symbol_name(s)),
        None => {
            let mut out = plain(&inst.iced);
            for value in [inst.displacement, inst.immediate].into_iter().flatten() {
                out.push_str(&format!("  # {}", symbol(lifted.object, value)));
            }
            out
        }
    }
}

fn branch_to_code(lifted: &Lifted<'_>, inst: &Inst, target: InstIdx) -> String {
    let to = lifted.inst(target);
    let f = lifted.function(lifted.function_of(target));
    with_target(
        inst,
        &match to.offset() - f.start {
            0 => f.name.clone(),
            delta => format!("{}+{delta:#x}", f.name),
        },
    )
}

fn with_target(inst: &Inst, target: &str) -> String {
    let text = plain(&inst.iced);
    let mnemonic = text.split_whitespace().next().unwrap_or_default();
    format!("{mnemonic} {target}")
}

/// The code of a rewritten object as an assembly listing: one line an
/// instruction, relocations in place of the fields they fill, labels for
/// branch targets. For people and golden tests; `objdump -dr` shows the same.
pub fn listing(object: &Object<'_>) -> String {
    let mut out = String::new();
    for (id, section) in object.sections().filter(|(_, s)| s.is_code() && s.size > 0) {
        out.push_str(&format!("section {}\n", section.name));
        section_listing(object, id, 0..section.data.len() as u64, &mut out);
    }
    out
}

/// The same for a range of offsets of one section.
pub fn section_listing(
    object: &Object<'_>,
    id: SectionId,
    range: std::ops::Range<u64>,
    out: &mut String,
) {
    let section = object.section(id);
    let bytes = &section.data[range.start as usize..range.end as usize];
    let insts: Vec<Instruction> = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE)
        .iter()
        .collect();
    let names = local_names(object, id, &insts);
    let mut formatter = formatter();
    for inst in &insts {
        if let Some(name) = names.get(&inst.ip()) {
            out.push_str(&format!("{name}:\n"));
        }
        let relocations: Vec<&Relocation> = section
            .relocations
            .iter()
            .filter(|r| (inst.ip()..inst.next_ip()).contains(&r.offset))
            .collect();
        let mut text = String::new();
        formatter.format(inst, &mut text);
        out.push_str(&format!(
            "    {}\n",
            with_references(object, inst, &text, &relocations, &names)
        ));
    }
}

/// Function symbols, and `.Ln` for other branch targets in the order of their
/// addresses.
fn local_names(object: &Object<'_>, id: SectionId, insts: &[Instruction]) -> BTreeMap<u64, String> {
    let mut names: BTreeMap<u64, String> = object
        .symbols
        .iter()
        .filter(|s| s.place == Place::In(id) && !s.name.is_empty())
        .map(|s| (s.value, s.name.to_string()))
        .collect();
    let relocated = |i: &Instruction| {
        object
            .section(id)
            .relocations
            .iter()
            .any(|r| (i.ip()..i.next_ip()).contains(&r.offset))
    };
    let targets: BTreeSet<u64> = insts
        .iter()
        .filter(|i| is_direct_branch(i) && !relocated(i))
        .map(Instruction::near_branch_target)
        .collect();
    let fresh: Vec<u64> = targets
        .into_iter()
        .filter(|t| !names.contains_key(t))
        .collect();
    names.extend(
        fresh
            .into_iter()
            .enumerate()
            .map(|(n, t)| (t, format!(".L{n}"))),
    );
    names
}

fn with_references(
    object: &Object<'_>,
    inst: &Instruction,
    text: &str,
    relocations: &[&Relocation],
    names: &BTreeMap<u64, String>,
) -> String {
    let mnemonic = text.split_whitespace().next().unwrap_or_default();
    if is_direct_branch(inst) {
        let target = match relocations.first() {
            Some(r) => symbol(
                object,
                Value {
                    symbol: r.symbol,
                    addend: r.addend + 4,
                    kind: r.kind,
                    at: 0,
                },
            ),
            None => names
                .get(&inst.near_branch_target())
                .cloned()
                .unwrap_or_default(),
        };
        return format!("{mnemonic} {target}");
    }
    let mut text = text.to_owned();
    for r in relocations {
        let name = symbol(
            object,
            Value {
                symbol: r.symbol,
                addend: r.addend,
                kind: r.kind,
                at: 0,
            },
        );
        let is_displacement =
            inst.memory_base() != Register::None || inst.memory_index() != Register::None;
        text = if is_displacement && !text.contains('$') {
            // The field was cleared, so the operand prints without displacement.
            text.replacen('(', &format!("{name}("), 1)
        } else if text.contains("$0") {
            text.replacen("$0", &format!("${name}"), 1)
        } else {
            format!("{text}  # {name}")
        };
    }
    text
}
