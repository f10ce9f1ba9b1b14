//! Tables of distances, as position-independent code has them (gcc's and clang's `-fpie`, `-fpic`).
//!
//! ```text
//!     lea    T(%rip),%b               once, far from the jump, or twice
//!     movslq (%b,%i,4),%d             (gcc -O0: mov (%b,%i),%eax ; cltq)
//!     add    %b,%d                    or add %d,%b
//!     jmp    *%d
//! T:  .long  label-T ...              PC32 against the label plus the word's place in the table
//! ```
//!
//! What the sum holds at the jump is the address of a label, as if it had been loaded. The table
//! begins at `T`, which its words count from, and ends where they do, or where another one
//! begins that something refers to.
//!
//! The table's address may stay in its register while other tables are used, and over calls. So a
//! label may be come to with it, from any indirect jump of the function.

use elf_loader::consts::R_X86_64_PC32;
use elf_loader::{Place, Relocation, Section, SectionId};
use foldhash::HashSet;
use iced_x86::{Code, Instruction, OpKind, Register};
use liveness::Reg;

use super::find::{Candidate, Finder, TableWord};
use super::{Case, is_table};
use crate::analyse::class::Callee;
use crate::lift::{CodeIdx, InstIdx, RelocatedValue};
use crate::registers::gpr;

/// Bytes of a word.
const WORD: u64 = 4;

/// Whether a word may be of a table of distances.
pub(super) fn is_distance(section: &Section<'_>, r: &Relocation) -> bool {
    r.kind == R_X86_64_PC32 && is_table(section)
}

/// What belongs to a jump so far: [`Candidate::uses`] and [`Candidate::bases`].
type Names<'n> = (&'n mut Vec<u32>, &'n mut Vec<(InstIdx, Reg)>);

/// A table: its section, and the offset that its words count from.
type Table = (SectionId, u64);

impl Finder<'_, '_> {
    /// Where the words of all such tables lead, each counted from the nearest place before it that
    /// something refers to.
    pub(super) fn labels_by_distance(&self) -> HashSet<u32> {
        let tables = self.lifted.object.sections().filter(|(_, s)| is_table(s));
        let words = tables.flat_map(|(id, section)| {
            let distances = section.relocations.iter();
            distances
                .filter(|r| is_distance(section, r))
                .map(move |r| (id, r))
        });
        let label = |(id, r): (SectionId, &Relocation)| {
            let start = self.begin_of((id, r.offset))?;
            let (code, at) = self.place_of(r, start)?;
            self.lifted.inst_at(code, at)
        };
        words.filter_map(label).map(|i| i.0).collect()
    }

    /// The last place in data up to this one that code refers to.
    fn begin_of(&self, (section, at): Table) -> Option<u64> {
        let before = (section, 0, 0)..=(section, at, u32::MAX);
        self.by_code.range(before).next_back().map(|(_, at, _)| *at)
    }

    /// The place in code that a word leads to, counted from there.
    fn place_of(&self, r: &Relocation, start: u64) -> Option<(CodeIdx, u64)> {
        let behind = i64::try_from(r.offset.checked_sub(start)?).ok()?;
        self.lifted
            .code_place(r.symbol, r.addend.checked_sub(behind)?)
    }

    /// The switch that this jump may be, by a table of distances.
    pub(super) fn of_distances(&self, jump: InstIdx, register: Reg) -> Option<Candidate> {
        let mut found = Candidate::of(jump, Callee::Register(register));
        let sums = self.written(jump, register)?;
        for sum in sums {
            let (a, b) = summands(&self.lifted.inst(sum).iced)?;
            let known = found.from;
            found.sources.push(sum);
            let from = self
                .summed(sum, (a, b), &mut found)
                .or_else(|| self.summed(sum, (b, a), &mut found))?;
            if known.is_some_and(|known| self.table_at(known) != self.table_at(from)) {
                return None;
            }
            found.from = Some(from);
        }
        let table = self.table_at(found.from?)?;
        found.words = self.distances(jump, table)?;
        Some(found)
    }

    /// What a sum counts from, if one register has the table's address and the other one a word
    /// of it.
    fn summed(
        &self,
        sum: InstIdx,
        (base, distance): (Reg, Reg),
        found: &mut Candidate,
    ) -> Option<RelocatedValue> {
        let (mut uses, mut bases) = (vec![sum.0], Vec::new());
        let from = self.address_in(sum, base, (&mut uses, &mut bases))?;
        let table = self.table_at(from)?;
        for load in self.written(sum, distance)? {
            bases.push((load, distance));
            let load = self.load_of(load, (&mut uses, &mut bases))?;
            uses.push(load.0);
            self.loads_from(load, table, (&mut uses, &mut bases))?;
        }
        found.uses.extend(uses);
        found.bases.extend(bases);
        Some(from)
    }

    /// The instruction that loads a distance, which another one may extend.
    fn load_of(&self, i: InstIdx, (uses, bases): Names<'_>) -> Option<InstIdx> {
        let iced = &self.lifted.inst(i).iced;
        match iced.code() {
            Code::Movsxd_r64_rm32 => Some(i),
            Code::Cdqe => {
                uses.push(i.0);
                let [load] = self.written(i, Reg::RAX)?[..] else {
                    return None;
                };
                bases.push((load, Reg::RAX));
                let code = self.lifted.inst(load).iced.code();
                (code == Code::Mov_r32_rm32).then_some(load)
            }
            _ => None,
        }
    }

    /// Whether an instruction loads a word of that table.
    fn loads_from(&self, load: InstIdx, table: Table, (uses, bases): Names<'_>) -> Option<()> {
        let inst = self.lifted.inst(load);
        let iced = &inst.iced;
        let plain = iced.op1_kind() == OpKind::Memory
            && iced.memory_base().is_gpr64()
            && iced.memory_index().is_gpr64()
            && inst.displacement.is_none()
            && matches!(iced.segment_prefix(), Register::None | Register::DS);
        if !plain {
            return None;
        }
        let registers = match iced.memory_index_scale() {
            // Each may be the table.
            1 => vec![iced.memory_base(), iced.memory_index()],
            4 => vec![iced.memory_base()],
            _ => return None,
        };
        let mut found = registers.into_iter().filter_map(gpr).filter_map(|r| {
            let (mut uses, mut bases) = (Vec::new(), Vec::new());
            let from = self.address_in(load, r, (&mut uses, &mut bases))?;
            (self.table_at(from)? == table).then_some((uses, bases))
        });
        let (more_uses, more_bases) = found.next()?;
        uses.extend(more_uses);
        bases.extend(more_bases);
        Some(())
    }

    /// The address that a register has before an instruction, however it comes there: the same on
    /// all ways.
    fn address_in(
        &self,
        at: InstIdx,
        register: Reg,
        (uses, bases): Names<'_>,
    ) -> Option<RelocatedValue> {
        let mut address: Option<RelocatedValue> = None;
        let (mut seen, mut work) = (HashSet::default(), self.written(at, register)?);
        while let Some(i) = work.pop() {
            if !seen.insert(i) {
                continue;
            }
            let iced = &self.lifted.inst(i).iced;
            uses.push(i.0);
            bases.push((i, gpr(iced.op0_register())?));
            if iced.code() == Code::Mov_r64_rm64 || iced.code() == Code::Mov_rm64_r64 {
                if iced.op0_kind() != OpKind::Register || iced.op1_kind() != OpKind::Register {
                    return None;
                }
                work.extend(self.written(i, gpr(iced.op1_register())?)?);
                continue;
            }
            let named = self.named(i)?;
            if address.is_some_and(|known| self.table_at(known) != self.table_at(named)) {
                return None;
            }
            address = Some(named);
        }
        address
    }

    /// The place in data that a value names.
    fn table_at(&self, value: RelocatedValue) -> Option<Table> {
        let symbol = self.lifted.object.symbol(value.symbol);
        let Place::In(id) = symbol.place else {
            return None;
        };
        Some((id, symbol.value.checked_add_signed(value.addend)?))
    }

    /// The words of the table that begins there.
    fn distances(&self, jump: InstIdx, (section, start): Table) -> Option<Vec<TableWord>> {
        let contents = self.lifted.object.section(section);
        if !is_table(contents) {
            return None;
        }
        let first = contents.relocations.partition_point(|r| r.offset < start);
        let mut words = Vec::new();
        let mut at = start;
        for r in &contents.relocations[first..] {
            let another = at != start && self.is_referred_to(section, at);
            if r.offset != at || !is_distance(contents, r) || another {
                break;
            }
            let place = self.place_of(r, start);
            let Some(to) = place.and_then(|place| self.label_at(jump, place)) else {
                break;
            };
            words.push((section, at, Case { to, number: 0 }));
            at += WORD;
        }
        number(&mut words);
        (!words.is_empty()).then_some(words)
    }
}

/// Numbers the labels of a table in the order of their addresses.
fn number(words: &mut [TableWord]) {
    let mut labels: Vec<InstIdx> = words.iter().map(|(_, _, case)| case.to).collect();
    labels.sort_unstable();
    labels.dedup();
    for (_, _, case) in words {
        case.number = labels.partition_point(|to| *to < case.to) as u32;
    }
}

/// The registers that an instruction adds, the one with the sum first.
fn summands(iced: &Instruction) -> Option<(Reg, Reg)> {
    let adds = matches!(iced.code(), Code::Add_r64_rm64 | Code::Add_rm64_r64)
        && iced.op0_kind() == OpKind::Register
        && iced.op1_kind() == OpKind::Register;
    let registers = adds.then(|| Some((gpr(iced.op0_register())?, gpr(iced.op1_register())?)))?;
    registers.filter(|(a, b)| a != b)
}
