//! Which instructions of a rewritten object some path reaches.
//!
//! Takes the object, follows every direct branch and call from every function's
//! start. There is no indirect transfer in such objects. What is not reached is
//! code behind static branches that are off: the kernel would patch the branch,
//! in the hypervisor nobody does.

use std::collections::{HashMap, HashSet};

use elf_loader::consts::STT_FUNC;
use elf_loader::{Object, Place, SectionId};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

/// Section and offset of each reached instruction.
pub fn reached(object: &Object<'_>) -> HashSet<(SectionId, u64)> {
    let starts = object.symbols().filter(|(_, s)| s.kind == STT_FUNC);
    let mut open: Vec<(SectionId, u64)> = starts
        .filter_map(|(_, symbol)| match symbol.place {
            Place::In(section) => Some((section, symbol.value)),
            _ => None,
        })
        .collect();
    let fields = branch_fields(object);
    let mut found = HashSet::new();
    while let Some((section, mut at)) = open.pop() {
        while found.insert((section, at)) {
            let Some(bytes) = object.section(section).data.get(at as usize..) else {
                break;
            };
            if bytes.is_empty() {
                break;
            }
            let decoded = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
            open.extend(target(&decoded, section, &fields));
            if !goes_on(&decoded) {
                break;
            }
            at = decoded.next_ip();
        }
    }
    found
}

/// Where relocated branches lead, by the place of their field; nothing if it is
/// out of the object.
type Fields = HashMap<(SectionId, u64), Option<(SectionId, u64)>>;

fn branch_fields(object: &Object<'_>) -> Fields {
    let mut fields = Fields::new();
    for (id, section) in object.sections().filter(|(_, s)| s.is_code()) {
        for r in &section.relocations {
            let symbol = object.symbol(r.symbol);
            let to = match symbol.place {
                // The addend counts from the field, the branch from its end.
                Place::In(to) => Some((to, symbol.value.wrapping_add_signed(r.addend + 4))),
                _ => None,
            };
            fields.insert((id, r.offset), to);
        }
    }
    fields
}

fn target(branch: &Instruction, section: SectionId, fields: &Fields) -> Option<(SectionId, u64)> {
    match branch.flow_control() {
        FlowControl::Next => return None,
        _ if branch.near_branch_target() == 0 && branch.op_count() == 0 => return None,
        _ => {}
    }
    // The field of a direct branch is its last four bytes, or one.
    match fields.get(&(section, branch.next_ip().wrapping_sub(4))) {
        Some(to) => *to,
        None if branch.is_jcc_short_or_near()
            || branch.is_jmp_short_or_near()
            || branch.is_call_near() =>
        {
            Some((section, branch.near_branch_target()))
        }
        None => None,
    }
}

fn goes_on(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Next
            | FlowControl::ConditionalBranch
            | FlowControl::Call
            | FlowControl::IndirectCall
    )
}
