//! Emitted code as text, with symbols for its relocations and labels for branches inside
//! the listed part. Long names are cut.
//!
//! ```text
//!       lea 0x10(%rbx),%rcx
//!       ...
//!       sub twin_stlb(%rdx),%rcx
//!       ja .L2
//!       add twin_stlb+8(%rdx),%rcx
//! .L1:  mov (%rcx),%rax
//!       -- out of line --
//! .L2:  lea 0x10(%rbx),%rcx
//!       call twin_slow_rcx
//!       jmp .L1
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use elf_loader::{Object, Place, Relocation, Section, SectionId};
use iced_x86::{
    Decoder, DecoderOptions, Formatter, GasFormatter, Instruction, OpKind, SymbolResolver,
    SymbolResult,
};

use crate::explain::shortened;

/// One line of a listing.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// An instruction, with its label if it has one.
    Instruction {
        /// Offset in the section, in bytes.
        offset: u64,
        /// `.L1`.
        label: Option<String>,
        /// The instruction in AT&T syntax.
        text: String,
    },
    /// The lines after this are from elsewhere in the section.
    Elsewhere,
    /// The label at the end of the listed part.
    End(String),
}

/// All code of an object, function by function.
pub fn all(object: &Object<'_>) -> String {
    let mut out = String::new();
    for (id, section) in object.sections().filter(|(_, s)| s.is_code() && s.size > 0) {
        out.push_str(&format!("section {}\n", section.name));
        let mut lister = Lister::of(object, id);
        for (name, range) in lister.functions() {
            if !name.is_empty() {
                out.push_str(&format!("{name}:\n"));
            }
            for line in lister.list(&range, &[]) {
                out.push_str(&format!("{line}\n"));
            }
        }
    }
    out
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Line::Instruction {
                label: Some(label),
                text,
                ..
            } => write!(f, "{:<6}{text}", format!("{label}:")),
            Line::Instruction {
                label: None, text, ..
            } => write!(f, "      {text}"),
            Line::Elsewhere => f.write_str("      -- out of line --"),
            Line::End(label) => write!(f, "{label}:"),
        }
    }
}

/// Lists parts of one code section.
pub struct Lister<'o> {
    object: &'o Object<'o>,
    section: &'o Section<'o>,
    /// Offset and name of the functions of this section, sorted.
    functions: Vec<(u64, &'o str)>,
    formatter: GasFormatter,
    names: Rc<RefCell<Names>>,
}

/// What to print instead of the numbers of the current instruction.
#[derive(Default)]
struct Names {
    displacement: Option<String>,
    immediate: Option<String>,
    branch: Option<String>,
}

/// An instruction and where its fields are.
struct Decoded<'o> {
    instruction: Instruction,
    /// What its displacement refers to.
    displacement: Option<&'o Relocation>,
    /// What its immediate, or the distance of its branch, refers to.
    immediate: Option<&'o Relocation>,
    /// Begins an out-of-line part.
    apart: bool,
}

type Labels = BTreeMap<u64, String>;

impl<'o> Lister<'o> {
    /// For the section with this name; `None` if there is none.
    pub fn new(object: &'o Object<'o>, section: &str) -> Option<Lister<'o>> {
        Some(Lister::of(object, object.section_named(section)?))
    }

    /// For a section.
    pub fn of(object: &'o Object<'o>, id: SectionId) -> Lister<'o> {
        let names = Rc::new(RefCell::new(Names::default()));
        let resolver: Box<dyn SymbolResolver> = Box::new(Resolver(Rc::clone(&names)));
        let mut formatter = GasFormatter::with_options(Some(resolver), None);
        *formatter.options_mut() = crate::lift::syntax::formatter().options().clone();
        Lister {
            object,
            section: object.section(id),
            functions: functions(object, id),
            formatter,
            names,
        }
    }

    /// The names of the section with the bytes up to the next name; what comes
    /// before the first has an empty one. Of several names at one place all but
    /// the last have no bytes.
    pub fn functions(&self) -> Vec<(&'o str, Range<u64>)> {
        let mut starts = self.functions.clone();
        if starts.first().is_none_or(|(at, _)| *at > 0) {
            starts.insert(0, (0, ""));
        }
        let ends = starts.iter().skip(1).map(|next| next.0);
        let ends: Vec<u64> = ends.chain([self.section.size]).collect();
        let ranges = starts.iter().zip(ends);
        ranges.map(|((at, name), end)| (*name, *at..end)).collect()
    }

    /// Lists the bytes in line and those out of line.
    pub fn list(&mut self, in_line: &Range<u64>, out_of_line: &[Range<u64>]) -> Vec<Line> {
        let mut decoded = self.decode(in_line);
        for range in out_of_line {
            let from = decoded.len();
            decoded.extend(self.decode(range));
            if let Some(first) = decoded.get_mut(from) {
                first.apart = true;
            }
        }
        let labels = labels(&decoded, in_line.end);
        let mut lines = Vec::new();
        for decoded in &decoded {
            if decoded.apart {
                lines.push(Line::Elsewhere);
            }
            lines.push(Line::Instruction {
                offset: decoded.instruction.ip(),
                label: labels.get(&decoded.instruction.ip()).cloned(),
                text: self.format(decoded, &labels),
            });
        }
        let end = decoded
            .iter()
            .position(|d| d.apart)
            .unwrap_or(decoded.len());
        if let Some(label) = labels
            .get(&in_line.end)
            .filter(|_| !has(&decoded, in_line.end))
        {
            lines.insert(end, Line::End(label.clone()));
        }
        lines
    }

    fn decode(&self, range: &Range<u64>) -> Vec<Decoded<'o>> {
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let Some(bytes) = self.section.data.get(at(range.start)..at(range.end)) else {
            return Vec::new();
        };
        let mut decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
        let mut all = Vec::new();
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let fields = decoder.get_constant_offsets(&instruction);
            let field = |present: bool, at: usize| {
                present
                    .then(|| self.relocation(instruction.ip() + at as u64))
                    .flatten()
            };
            all.push(Decoded {
                instruction,
                displacement: field(fields.has_displacement(), fields.displacement_offset()),
                immediate: field(fields.has_immediate(), fields.immediate_offset()),
                apart: false,
            });
        }
        all
    }

    fn format(&mut self, decoded: &Decoded<'_>, labels: &Labels) -> String {
        *self.names.borrow_mut() = self.names_for(decoded, labels);
        let mut text = String::new();
        self.formatter.format(&decoded.instruction, &mut text);
        text
    }

    fn names_for(&self, decoded: &Decoded<'_>, labels: &Labels) -> Names {
        let branch = match (decoded.local_target(), decoded.immediate) {
            (Some(target), _) => Some(
                labels
                    .get(&target)
                    .cloned()
                    .unwrap_or_else(|| self.function_at(target)),
            ),
            // A rel32 counts from the end of the instruction (psABI 4.4.1: P).
            (None, Some(r)) => {
                Some(self.symbol(r, (decoded.instruction.next_ip() - r.offset) as i64))
            }
            (None, None) => None,
        };
        // So does a distance to data.
        let relative = decoded.instruction.is_ip_rel_memory_operand();
        let distance = |r: &Relocation| match relative {
            true => (decoded.instruction.next_ip() - r.offset) as i64,
            false => 0,
        };
        Names {
            displacement: decoded.displacement.map(|r| self.symbol(r, distance(r))),
            immediate: decoded.immediate.map(|r| self.symbol(r, 0)),
            branch,
        }
    }

    fn relocation(&self, offset: u64) -> Option<&'o Relocation> {
        let all = &self.section.relocations;
        let found = all.binary_search_by_key(&offset, |r| r.offset).ok()?;
        all.get(found)
    }

    /// `symbol+addend`, small addends in decimal.
    fn symbol(&self, relocation: &Relocation, bias: i64) -> String {
        let name = self.object.symbol_name(relocation.symbol);
        with_offset(name, relocation.addend.saturating_add(bias))
    }

    fn function_at(&self, offset: u64) -> String {
        let after = self.functions.partition_point(|(at, _)| *at <= offset);
        match after.checked_sub(1) {
            Some(i) => with_offset(self.functions[i].1, (offset - self.functions[i].0) as i64),
            None => with_offset(&self.section.name, offset as i64),
        }
    }
}

fn functions<'o>(object: &'o Object<'o>, id: SectionId) -> Vec<(u64, &'o str)> {
    let mut all: Vec<_> = object
        .symbols()
        .filter(|(_, s)| s.place == Place::In(id) && !s.name.is_empty())
        .map(|(_, s)| (s.value, &*s.name))
        .collect();
    all.sort_unstable();
    all
}

fn with_offset(name: &str, offset: i64) -> String {
    let name = shortened(name);
    match offset {
        0 => name.into_owned(),
        1..=9 => format!("{name}+{offset}"),
        10.. => format!("{name}+{offset:#x}"),
        _ => format!("{name}-{:#x}", offset.unsigned_abs()),
    }
}

impl Decoded<'_> {
    /// Where it branches to in its section, if it does.
    fn local_target(&self) -> Option<u64> {
        let near = [
            OpKind::NearBranch16,
            OpKind::NearBranch32,
            OpKind::NearBranch64,
        ];
        let branch = self.instruction.op_count() > 0 && near.contains(&self.instruction.op0_kind());
        (branch && self.immediate.is_none()).then(|| self.instruction.near_branch_target())
    }
}

fn has(decoded: &[Decoded<'_>], offset: u64) -> bool {
    decoded.iter().any(|d| d.instruction.ip() == offset)
}

/// Labels for the branch targets in the listed part and at the end of what is
/// in line, in the order of addresses.
fn labels(decoded: &[Decoded<'_>], end: u64) -> Labels {
    let mut labels: Labels = decoded
        .iter()
        .filter_map(Decoded::local_target)
        .filter(|target| *target == end || has(decoded, *target))
        .map(|target| (target, String::new()))
        .collect();
    for (n, label) in labels.values_mut().enumerate() {
        *label = format!(".L{}", n + 1);
    }
    labels
}

/// Gives the formatter the names that were found for the current instruction.
struct Resolver(Rc<RefCell<Names>>);

impl SymbolResolver for Resolver {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _operand: u32,
        instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        let names = self.0.borrow();
        let name = match instruction.op_kind(instruction_operand?) {
            OpKind::Memory => &names.displacement,
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => &names.branch,
            _ => &names.immediate,
        };
        name.clone()
            .map(|name| SymbolResult::with_string(address, name))
    }
}
