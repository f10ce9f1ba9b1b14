//! Finds the jumps and their tables: which loads lead to a jump, and what the words hold.

use std::cell::RefCell;
use std::collections::BTreeSet;

use elf_loader::consts::{R_X86_64_64, SHF_ALLOC};
use elf_loader::special::SpecialKind;
use elf_loader::{Place, Relocation, Section, SectionId, special};
use foldhash::{HashMap, HashSet};
use iced_x86::{Code, FlowControl, OpKind, Register};
use liveness::Reg;

use super::escape::Walk;
use super::reaching::Reaching;
use super::relative::is_distance;
use super::{Case, is_table};
use crate::analyse::class::{Callee, Space};
use crate::analyse::routines;
use crate::lift::{CodeIdx, Destination, InstIdx, Lifted, RelocatedValue, ValueIdx};
use crate::registers::gpr;

/// A word of a table: where it is, and what it holds.
pub(super) type TableWord = (SectionId, u64, Case);

/// A jump through a table.
pub(super) struct Candidate {
    pub(super) jump: InstIdx,
    pub(super) callee: Callee,
    /// From where the words count, if they are distances.
    pub(super) from: Option<RelocatedValue>,
    pub(super) words: Vec<TableWord>,
    /// Instructions that may refer to the table: they belong to this jump.
    pub(super) uses: Vec<u32>,
    /// Those of them that put the table's address into a register, or a distance.
    pub(super) bases: Vec<(InstIdx, Reg)>,
    /// Instructions that put the destination into the jump's register.
    pub(super) sources: Vec<InstIdx>,
}

impl Candidate {
    pub(super) fn of(jump: InstIdx, callee: Callee) -> Candidate {
        Candidate {
            jump,
            callee,
            from: None,
            words: Vec::new(),
            uses: Vec::new(),
            bases: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Bytes of a word of its table.
    pub(super) fn width(&self) -> u64 {
        match self.from {
            Some(_) => 4,
            None => 8,
        }
    }

    /// Where it goes.
    pub(super) fn cases(&self) -> Vec<InstIdx> {
        self.words.iter().map(|(_, _, case)| case.to).collect()
    }
}

/// The prefix of a jump that may go to a place without `endbr` (SDM volume 1, 17.3.3); it
/// was that of a segment, which 64-bit mode ignores.
const NOTRACK: Register = Register::DS;

/// Whether what a section names may be a place where control comes to. The others name
/// instructions for what they are: places of locks, calls, thunks, unwinding.
fn shows_entries(section: &Section<'_>) -> bool {
    use special::SpecialKind as K;
    let named = special::kind_of(&section.name);
    let others = matches!(
        named,
        Some(
            K::McountLoc
                | K::SmpLocks
                | K::RetpolineSites
                | K::ReturnSites
                | K::OrcUnwind
                | K::OrcUnwindIp
                | K::StaticCallSites
                | K::CallSites
                | K::IbtEndbrSeal
                | K::CfiSites
                | K::KcfiTraps
                | K::BugTable
        )
    );
    // The operands of code are counted as values, its branches as branches.
    section.flags & SHF_ALLOC != 0 && !section.is_code() && !others
}

pub(super) struct Finder<'l, 'a> {
    pub(super) lifted: &'l Lifted<'a>,
    /// Instructions after which control continues although they trap.
    warns: HashSet<u32>,
    /// Instructions that control may come to in ways that no branch shows.
    pub(super) entered: HashSet<u32>,
    /// Places in data that instructions refer to, each with the instruction.
    pub(super) by_code: BTreeSet<(SectionId, u64, u32)>,
    /// Places in data that data refers to.
    by_data: BTreeSet<(SectionId, u64)>,
    /// Where tables of distances lead ([`super::relative`]).
    pub(super) labels: HashSet<u32>,
    /// Who wrote each register last, if it was asked for.
    pub(super) reaching: RefCell<HashMap<Reg, Reaching>>,
    /// Which functions change each register, if it was asked for.
    pub(super) changing: RefCell<HashMap<Reg, Vec<bool>>>,
}

impl<'l, 'a> Finder<'l, 'a> {
    pub(super) fn new(lifted: &'l Lifted<'a>) -> Finder<'l, 'a> {
        let object = lifted.object;
        let place = |symbol, addend: i64| {
            let symbol = object.symbol(symbol);
            let Place::In(id) = symbol.place else {
                return None;
            };
            Some((id, symbol.value.wrapping_add_signed(addend)))
        };
        // What compilers moved elsewhere is come to as other code of its function.
        let entered = lifted.functions.iter().filter(|f| f.is_entered);
        let mut finder = Finder {
            lifted,
            warns: warns(lifted),
            entered: entered.map(|f| f.insts.start).collect(),
            by_code: BTreeSet::new(),
            by_data: BTreeSet::new(),
            labels: HashSet::default(),
            reaching: RefCell::default(),
            changing: RefCell::default(),
        };
        for (_, section) in object.sections().filter(|(_, s)| shows_entries(s)) {
            for r in &section.relocations {
                if let Some((code, at)) = lifted.code_place(r.symbol, r.addend) {
                    // What a table of distances has in its addends is no place.
                    let inst = lifted
                        .inst_at(code, at)
                        .filter(|_| !is_distance(section, r));
                    finder.entered.extend(inst.map(|i| i.0));
                } else {
                    finder.by_data.extend(place(r.symbol, r.addend));
                }
            }
        }
        for (i, value) in &lifted.relocated_values {
            if let Some((id, at)) = place(value.symbol, value.addend) {
                finder.by_code.insert((id, at, i.0));
            }
        }
        let named = lifted.named_places();
        let named = named.filter_map(|(_, (code, at))| lifted.inst_at(code, at));
        finder.entered.extend(named.map(|i| i.0));
        finder.labels = finder.labels_by_distance();
        finder
    }

    /// The name of the function that an instruction is in, both parts of which count as
    /// one if the compiler split it.
    pub(super) fn whole(&self, i: InstIdx) -> &'l str {
        let name = &self.lifted.function(self.lifted.function_of(i)).name;
        name.split(".cold").next().unwrap_or_default()
    }

    /// Where an indirect jump takes its destination from.
    pub(super) fn destination(&self, jump: InstIdx) -> Option<Callee> {
        let inst = self.lifted.inst(jump);
        let iced = &inst.iced;
        match (iced.flow_control(), inst.target) {
            (FlowControl::IndirectBranch, _) if iced.op0_kind() == OpKind::Memory => {
                Some(Callee::Memory(Space::Heap))
            }
            (FlowControl::IndirectBranch, _) => gpr(iced.op0_register()).map(Callee::Register),
            (FlowControl::UnconditionalBranch, Some(Destination::Import(s))) => {
                routines::indirect_thunk(self.lifted.symbol_name(s)).map(Callee::Register)
            }
            _ => None,
        }
    }

    /// The switch that this jump may be.
    pub(super) fn candidate(&self, jump: InstIdx) -> Option<Candidate> {
        let register = match self.destination(jump)? {
            Callee::Register(register) => register,
            callee @ Callee::Memory(_) => {
                let mut found = Candidate::of(jump, callee);
                let at = self.loaded(jump, &mut found)?;
                found.words = self.table(jump, at)?;
                return Some(found);
            }
        };
        let addresses = || self.of_addresses(jump, register);
        addresses().or_else(|| self.of_distances(jump, register))
    }

    /// The switch that this jump may be, by a table of addresses.
    fn of_addresses(&self, jump: InstIdx, register: Reg) -> Option<Candidate> {
        let mut found = Candidate::of(jump, Callee::Register(register));
        for load in self.written(jump, register)? {
            let iced = &self.lifted.inst(load).iced;
            if iced.code() != Code::Mov_r64_rm64 || iced.op1_kind() != OpKind::Memory {
                return None;
            }
            found.sources.push(load);
            let at = self.loaded(load, &mut found)?;
            found.words.extend(self.table(jump, at)?);
        }
        Some(found)
    }

    /// Where the table begins whose word an instruction loads; `found` gets the instructions
    /// that name it.
    fn loaded(&self, i: InstIdx, found: &mut Candidate) -> Option<(SectionId, u64)> {
        found.uses.push(i.0);
        let inst = self.lifted.inst(i);
        let iced = &inst.iced;
        let plain = iced.memory_index() != Register::None
            && iced.memory_index().is_gpr64()
            && iced.memory_index_scale() == 8
            && matches!(iced.segment_prefix(), Register::None | NOTRACK);
        if !plain {
            return None;
        }
        let named = match (iced.memory_base(), inst.displacement) {
            (Register::None, Some(value)) => self.value(i, value)?,
            (base, None) if iced.memory_displacement64() == 0 => {
                let base = gpr(base)?;
                let [named] = self.written(i, base)?[..] else {
                    return None;
                };
                found.uses.push(named.0);
                found.bases.push((named, base));
                self.named(named)?
            }
            _ => return None,
        };
        let symbol = self.lifted.object.symbol(named.symbol);
        let Place::In(id) = symbol.place else {
            return None;
        };
        Some((id, symbol.value.checked_add_signed(named.addend)?))
    }

    /// A value in an operand of an instruction.
    pub(super) fn value(&self, i: InstIdx, wanted: ValueIdx) -> Option<RelocatedValue> {
        let inst = self.lifted.inst(i);
        let mut all = inst.relocated_values().zip(self.lifted.values_of(inst));
        all.find_map(|(v, value)| (v == wanted).then_some(value))
    }

    /// The address that an instruction puts into a register.
    pub(super) fn named(&self, i: InstIdx) -> Option<RelocatedValue> {
        let inst = self.lifted.inst(i);
        let value = match inst.iced.code() {
            Code::Lea_r64_m if inst.iced.is_ip_rel_memory_operand() => inst.displacement,
            Code::Lea_r64_m if inst.iced.memory_base() == Register::None => inst
                .displacement
                .filter(|_| inst.iced.memory_index() == Register::None),
            Code::Mov_rm64_imm32 | Code::Mov_r64_imm64 => inst.immediate,
            _ => None,
        };
        value.and_then(|v| self.value(i, v))
    }

    /// The instructions that write a register last before `at` ([`Reaching::at`]).
    pub(super) fn written(&self, at: InstIdx, register: Reg) -> Option<Vec<InstIdx>> {
        let mut reaching = self.reaching.borrow_mut();
        let solved = reaching
            .entry(register)
            .or_insert_with(|| Reaching::of(self, register));
        Some(solved.at(at)?.collect())
    }

    /// The register that an instruction puts an address into.
    pub(super) fn labelled(&self, i: InstIdx) -> Option<Reg> {
        let inst = self.lifted.inst(i);
        let own = inst.iced.code() == Code::Lea_r64_m && inst.own_place().is_some();
        if !own {
            self.named(i)?;
        }
        gpr(inst.iced.op0_register())
    }

    /// Whether control may come to the next instruction from this one. A call counts, and a
    /// trap after which the kernel goes on.
    pub(super) fn falls_through(&self, i: u32) -> bool {
        let flow = self.lifted.insts[i as usize].iced.flow_control();
        let ends = matches!(
            flow,
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
                | FlowControl::Exception
                | FlowControl::Interrupt
        );
        !ends || self.warns.contains(&i)
    }

    /// The table at a place, for a jump.
    fn table(&self, jump: InstIdx, (section, start): (SectionId, u64)) -> Option<Vec<TableWord>> {
        let contents = self.lifted.object.section(section);
        if !is_table(contents) {
            return None;
        }
        let first = contents.relocations.partition_point(|r| r.offset < start);
        let (before, rest) = contents.relocations.split_at(first);
        let mut words = Vec::new();
        let mut at = start;
        for r in rest {
            if r.offset != at || self.lifted.code_place(r.symbol, r.addend).is_none() {
                break;
            }
            let Some(to) = self.label(jump, r) else {
                // Another function's table may follow, if something refers to it.
                if self.is_referred_to(section, at) {
                    break;
                }
                return None;
            };
            words.push((section, at, Case { to, number: 0 }));
            at += 8;
        }
        if words.is_empty() {
            return None;
        }
        at = start;
        for r in before.iter().rev() {
            let here = at.checked_sub(8).filter(|&here| here == r.offset);
            let Some((here, to)) = here.zip(self.label(jump, r)) else {
                break;
            };
            words.push((section, here, Case { to, number: 0 }));
            at = here;
        }
        Some(words)
    }

    /// The label of the jump's function that a word of a table holds.
    fn label(&self, jump: InstIdx, r: &Relocation) -> Option<InstIdx> {
        let place = self.lifted.code_place(r.symbol, r.addend)?;
        self.label_at(jump, place).filter(|_| r.kind == R_X86_64_64)
    }

    /// The label of the jump's function at a place in code.
    pub(super) fn label_at(
        &self,
        jump: InstIdx,
        (code, offset): (CodeIdx, u64),
    ) -> Option<InstIdx> {
        let to = self.lifted.inst_at(code, offset)?;
        let f = self.lifted.function_of(to);
        let entry = self.lifted.function(f).insts.start == to.0 && self.lifted.is_entered(f);
        (!entry && self.whole(to) == self.whole(jump)).then_some(to)
    }

    /// Whether something refers to a place in data.
    pub(super) fn is_referred_to(&self, section: SectionId, at: u64) -> bool {
        let code = (section, at, 0)..=(section, at, u32::MAX);
        self.by_code.range(code).next().is_some() || self.by_data.contains(&(section, at))
    }

    /// Whether nothing but the jumps' own instructions refers into the tables.
    pub(super) fn is_alone(&self, candidate: &Candidate, walk: &Walk<'_>) -> bool {
        let width = candidate.width();
        candidate.words.iter().all(|(section, at, _)| {
            let code = (*section, *at, 0)..(*section, at + width, 0);
            let data = (*section, *at)..(*section, at + width);
            let code = self.by_code.range(code);
            let mut others = code.filter(|(_, _, i)| !walk.own.contains(i));
            others.all(|(_, to, i)| to == at && self.is_behind(candidate, *at, InstIdx(*i), walk))
                && self.by_data.range(data).next().is_none()
        })
    }

    /// Whether an instruction that names the last word of a table means what follows, less one
    /// element: `lea K-8(%rip),%r` and then `(%r,%i,8)`, the index being one or more
    /// (arch/x86/crypto/crc32c-pcl-intel-asm_64.S).
    fn is_behind(&self, candidate: &Candidate, at: u64, i: InstIdx, walk: &Walk<'_>) -> bool {
        let last = candidate.words.iter().map(|(_, at, _)| *at).max();
        let indexed = Walk {
            indexed: true,
            passed: true,
            returned: true,
            ..*walk
        };
        let base = self.labelled(i).filter(|_| last == Some(at));
        base.is_some_and(|r| !self.escapes([InstIdx(i.0 + 1)], r, &indexed))
    }
}

/// Whether a callee keeps a register (psABI 3.2.1).
pub(super) fn is_saved(register: Reg) -> bool {
    matches!(
        register,
        Reg::RBX | Reg::RBP | Reg::R12 | Reg::R13 | Reg::R14 | Reg::R15
    )
}

/// The traps behind which the kernel may go on. If a table cannot be read, the object is refused
/// elsewhere.
fn warns(lifted: &Lifted<'_>) -> HashSet<u32> {
    let tables = lifted.object.sections();
    let traps = |name| {
        let kind = special::kind_of(name);
        matches!(kind, Some(SpecialKind::BugTable | SpecialKind::KcfiTraps))
    };
    let tables = tables.filter(|(_, s)| traps(&s.name));
    let entries =
        tables.flat_map(|(id, _)| special::entries(lifted.object, id).unwrap_or_default());
    let site = |entry: special::Entry| {
        let (section, offset) = entry.site().filter(|_| entry.may_go_on())?;
        lifted.inst_at(lifted.code_section(section)?, offset)
    };
    entries.filter_map(site).map(|i| i.0).collect()
}
