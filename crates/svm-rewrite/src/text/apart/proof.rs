//! What the assembled bytes must show of a table: they are the same where they stand apart, and
//! nobody can run them.

use std::ops::Range;

use elf_loader::consts::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PC64, SHF_ALLOC, SHF_EXECINSTR,
};
use elf_loader::{Object, Place, Section};
use foldhash::HashMap;
use iced_x86::{Decoder, DecoderError, DecoderOptions, FlowControl, Register};

use super::points::{Point, Points};
use super::{SECTION, Table};
use crate::lift::{Inst, Lifted, is_direct_branch};

/// An object with its tables among code, or apart.
pub struct Assembled<'o, 'b> {
    object: &'o Object<'b>,
    points: Points,
}

impl<'o, 'b> Assembled<'o, 'b> {
    pub fn new(object: &'o Object<'b>) -> Assembled<'o, 'b> {
        Assembled {
            object,
            points: Points::of(object),
        }
    }

    /// Where a table stands: the alignment of its section, and its offset beyond that. `None`
    /// if that is no plain section of code.
    pub fn stands(&self, n: usize) -> Option<(u64, u64)> {
        let (id, range) = self.points.bytes(self.object, n)?;
        let section = self.object.section(id);
        let align = section.align.max(1);
        let is_code = section.flags == SHF_ALLOC | SHF_EXECINSTR;
        (is_code && align.is_power_of_two()).then_some((align, range.start as u64 % align))
    }

    /// Whether there is a section of the name that tables are put into.
    pub fn has_section(&self) -> bool {
        self.object.sections.iter().any(|s| s.name == SECTION)
    }

    /// Whether a table stands in a section of data as it did in that of code.
    fn stands_as(&self, n: usize, (align, rest): (u64, u64)) -> bool {
        let Some((id, range)) = self.points.bytes(self.object, n) else {
            return false;
        };
        let section = self.object.section(id);
        section.name == SECTION
            && section.flags == SHF_ALLOC
            && section.align >= align
            && range.start as u64 % align == rest
    }

    /// Whether an operand that is a place of a table, and no more, is in that table to its end.
    pub fn ends_within(&self, lifted: &Lifted<'_>, inst: &Inst) -> bool {
        let Some(value) = inst.displacement.map(|value| lifted.value(value)) else {
            return true;
        };
        let symbol = self.object.symbol(value.symbol);
        let Place::In(section) = symbol.place else {
            return true;
        };
        let iced = &inst.iced;
        let is_alone = iced.is_ip_rel_memory_operand()
            || iced.memory_base() == Register::None && iced.memory_index() == Register::None;
        if self.object.section(section).name != SECTION || !is_alone {
            return true;
        }
        let from = symbol.value.wrapping_add_signed(value.addend);
        let to = from.saturating_add(iced.memory_size().size() as u64);
        self.points
            .all(section)
            .any(|table| table.start <= from && to <= table.end)
    }

    /// What fills its alignments: they may be read, too.
    pub fn gaps(&self, n: usize, table: &Table) -> Option<Vec<&'o [u8]>> {
        let (id, _) = self.points.bytes(self.object, n)?;
        let gaps = 0..table.gaps.len();
        let bytes = gaps.map(|gap| {
            let place = |point| self.points.at(n, point);
            let gap = place(Point::Gap(gap))?..place(Point::GapEnd(gap))?;
            self.object.section(id).data.get(gap)
        });
        bytes.collect()
    }

    /// Its bytes; none where a relocation fills a field.
    fn contents(&self, n: usize) -> Option<Vec<Option<u8>>> {
        let (id, range) = self.points.bytes(self.object, n)?;
        contents(self.object.section(id), &range)
    }
}

/// Whether a table's bytes are the same at both places, but for what relocations fill: a
/// distance to code is a number at one place, and a relocation at the other.
pub fn is_the_same(n: usize, original: &Assembled<'_, '_>, apart: &Assembled<'_, '_>) -> bool {
    let both = (original.contents(n), apart.contents(n));
    let (Some(one), Some(other)) = both else {
        return false;
    };
    let is_equal =
        |(one, other): (&Option<u8>, &Option<u8>)| one.is_none() || other.is_none() || one == other;
    let stands = original.stands(n);
    stands.is_some_and(|place| apart.stands_as(n, place))
        && one.len() == other.len()
        && one.iter().zip(&other).all(is_equal)
}

/// Whether all places that the text names are in the table, and nobody can run those that it
/// has the address of.
pub fn is_data(table: &Table, n: usize, original: &Assembled<'_, '_>) -> bool {
    let (Some((section, range)), Some(contents)) = (
        original.points.bytes(original.object, n),
        original.contents(n),
    ) else {
        return false;
    };
    let size = original.object.section(section).size;
    let place = |label: usize, offset: i64| {
        let at = original.points.at(n, Point::Label(label))?;
        let at = at.checked_add_signed(isize::try_from(offset).ok()?)?;
        range.contains(&at).then_some(at)
    };
    let cannot_run_at = |at: usize| {
        let known = contents[at - range.start..].iter().map_while(|byte| *byte);
        cannot_run(&known.collect::<Vec<u8>>(), at, size)
    };
    table.labels.iter().enumerate().all(|(label, named)| {
        let (mut read, mut taken) = (named.read.iter(), named.taken.iter());
        read.all(|offset| place(label, *offset).is_some())
            && taken.all(|offset| place(label, *offset).is_some_and(cannot_run_at))
    })
}

/// Bytes of a section; none where a relocation fills a field. `None` if a field is too short for
/// a distance to another section.
fn contents(section: &Section<'_>, range: &Range<usize>) -> Option<Vec<Option<u8>>> {
    let data = &section.data[range.clone()];
    let mut contents: Vec<Option<u8>> = data.iter().map(|byte| Some(*byte)).collect();
    let bytes = range.start as u64..range.end as u64;
    let within = section
        .relocations
        .iter()
        .filter(|r| bytes.contains(&r.offset));
    for relocation in within {
        let field = match relocation.kind {
            R_X86_64_64 | R_X86_64_PC64 => 8,
            R_X86_64_PC32 | R_X86_64_32 | R_X86_64_32S => 4,
            _ => return None,
        };
        for at in relocation.offset..relocation.offset.saturating_add(field) {
            let at = usize::try_from(at).ok();
            let at = at.and_then(|at| at.checked_sub(range.start));
            if let Some(byte) = at.and_then(|at| contents.get_mut(at)) {
                *byte = None;
            }
        }
    }
    Some(contents)
}

/// A step along paths: to an instruction, and back when all paths from it were followed.
enum Step {
    Enter(u64),
    Leave(u64),
}

/// Whether whoever goes to these bytes, at an offset in their section of so many bytes, comes to
/// what cannot be run on every path, before he may leave or come to the same place again: an
/// instruction that is none, or a branch out of the section.
fn cannot_run(bytes: &[u8], at: usize, section: u64) -> bool {
    let mut decoder = Decoder::with_ip(64, bytes, at as u64, DecoderOptions::NONE);
    // Whether all paths from an instruction were followed: else it is on the path that is.
    let mut followed: HashMap<u64, bool> = HashMap::default();
    let mut steps = vec![Step::Enter(at as u64)];
    while let Some(step) = steps.pop() {
        let next = match step {
            Step::Enter(next) => next,
            Step::Leave(last) => {
                followed.insert(last, true);
                continue;
            }
        };
        match followed.insert(next, false) {
            None => {}
            Some(true) => {
                followed.insert(next, true);
                continue;
            }
            // A loop, which may have no end.
            Some(false) => return false,
        }
        let Some(paths) = paths(&mut decoder, (at as u64, bytes.len()), next, section) else {
            return false;
        };
        steps.push(Step::Leave(next));
        steps.extend(paths.into_iter().flatten().map(Step::Enter));
    }
    true
}

/// Where control may go from an instruction at `next`: nowhere if it is none. `None` if it may leave
/// the bytes for what is not known.
fn paths(
    decoder: &mut Decoder<'_>,
    (start, length): (u64, usize),
    next: u64,
    section: u64,
) -> Option<[Option<u64>; 2]> {
    // It runs on to what stands behind, or turns back to what stands before.
    let offset = usize::try_from(next.checked_sub(start)?).ok()?;
    if offset >= length {
        return None;
    }
    decoder.set_position(offset).ok()?;
    decoder.set_ip(next);
    let iced = decoder.decode();
    match decoder.last_error() {
        DecoderError::None => {}
        DecoderError::InvalidInstruction => return Some([None, None]),
        // What follows may make it one.
        _ => return None,
    }
    let behind = Some(iced.next_ip());
    let target = is_direct_branch(&iced).then(|| iced.near_branch_target());
    let within = target.filter(|to| *to < section);
    match (iced.flow_control(), target) {
        (FlowControl::Next, _) => Some([behind, None]),
        // A call that comes back is as good as none, and the branch is an end.
        (FlowControl::Call, Some(_)) if within.is_none() => Some([None, None]),
        (FlowControl::UnconditionalBranch, Some(_)) => Some([within, None]),
        (FlowControl::ConditionalBranch, Some(_)) => Some([behind, within]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_run_is_not_moved() {
        let runs = |code: &[u8]| !cannot_run(code, 0, code.len() as u64);
        for code in [
            &[0x31, 0xc0, 0xc3, 0x0f, 0xff][..],
            // It may always be taken, or never.
            &[0x74, 0x01, 0x06, 0xc3],
            &[0x74, 0x01, 0xc3, 0x06],
            // It may be left there for good.
            &[0xeb, 0xfe, 0x06],
            &[0x74, 0xfe, 0x06],
            &[0xe8, 0, 0, 0, 0, 0x06],
            // Back, by two jumps.
            &[0xeb, 0x01, 0x06, 0x74, 0xfb, 0x06],
            // What follows may return.
            &[0, 0, 0, 0],
        ] {
            assert!(runs(code), "{code:?}");
        }
        // Invalid, out of the section.
        for code in [
            &[0x90, 0x06, 0][..],
            &[0xeb, 0x40],
            &[0x74, 1, 0x06, 0x90, 0x06, 0],
            // Back, into an instruction.
            &[0x3c, 0x06, 0x74, 0xfd, 0x06, 0],
        ] {
            assert!(!runs(code), "{code:?}");
        }
    }
}
