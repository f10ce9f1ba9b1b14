//! Finds the jumps and their tables: which loads lead to a jump, and what the words hold.

use std::collections::BTreeSet;

use elf_loader::consts::{R_X86_64_64, SHF_ALLOC};
use elf_loader::{Place, Section, SectionId, special};
use foldhash::{HashMap, HashSet};
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};
use liveness::Reg;

use super::{Case, is_table};
use crate::analyse::class::{Callee, Space};
use crate::analyse::routines;
use crate::lift::{Destination, InstIdx, Lifted, RelocatedValue, ValueIdx};
use crate::registers::{gpr, reg64};

/// A word of a table: where it is, and what it holds.
pub(super) type TableWord = (SectionId, u64, Case);

/// A jump through a table.
pub(super) struct Candidate {
    pub(super) jump: InstIdx,
    pub(super) callee: Callee,
    pub(super) words: Vec<TableWord>,
    /// Instructions that may refer to the table: they belong to this jump.
    pub(super) uses: Vec<u32>,
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
                | K::BugTable
        )
    );
    // The operands of code are counted as values, its branches as branches.
    section.flags & SHF_ALLOC != 0 && !section.is_code() && !others
}

pub(super) struct Finder<'l, 'a> {
    lifted: &'l Lifted<'a>,
    /// Instructions that control may come to in ways that no branch shows.
    entered: HashSet<u32>,
    /// Direct branches by their targets.
    sources: HashMap<u32, Vec<u32>>,
    /// Places in data that instructions refer to, each with the instruction.
    by_code: BTreeSet<(SectionId, u64, u32)>,
    /// Places in data that data refers to.
    by_data: BTreeSet<(SectionId, u64)>,
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
        let mut finder = Finder {
            lifted,
            entered: lifted.functions.iter().map(|f| f.insts.start).collect(),
            sources: HashMap::default(),
            by_code: BTreeSet::new(),
            by_data: BTreeSet::new(),
        };
        for (i, inst) in (0..).zip(&lifted.insts) {
            if let Some(Destination::Inst(to)) = inst.target {
                finder.sources.entry(to.0).or_default().push(i);
            }
        }
        for (_, section) in object.sections().filter(|(_, s)| shows_entries(s)) {
            for r in &section.relocations {
                if let Some((code, at)) = lifted.code_place(r.symbol, r.addend) {
                    let inst = lifted.inst_at(code, at);
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
            let code = lifted.code_place(value.symbol, value.addend);
            let inst = code.and_then(|(code, at)| lifted.inst_at(code, at));
            finder.entered.extend(inst.map(|i| i.0));
        }
        finder
    }

    /// The name of the function that an instruction is in, both parts of which count as
    /// one if the compiler split it.
    pub(super) fn whole(&self, i: InstIdx) -> &str {
        let name = &self.lifted.function(self.lifted.function_of(i)).name;
        name.split(".cold").next().unwrap_or_default()
    }

    /// The switch that this jump may be.
    pub(super) fn candidate(&self, jump: InstIdx) -> Option<Candidate> {
        let inst = self.lifted.inst(jump);
        let iced = &inst.iced;
        let register = match (iced.flow_control(), inst.target) {
            (FlowControl::IndirectBranch, _) if iced.op0_kind() == OpKind::Memory => {
                let mut uses = vec![jump.0];
                let at = self.loaded(jump, &mut uses)?;
                return Some(Candidate {
                    jump,
                    callee: Callee::Memory(Space::Heap),
                    words: self.table(jump, at)?,
                    uses,
                });
            }
            (FlowControl::IndirectBranch, _) => gpr(iced.op0_register())?,
            (FlowControl::UnconditionalBranch, Some(Destination::Import(s))) => {
                routines::indirect_thunk(self.lifted.symbol_name(s))?
            }
            _ => return None,
        };
        let (mut words, mut uses) = (Vec::new(), Vec::new());
        for load in self.definitions(jump, register)? {
            let iced = &self.lifted.inst(load).iced;
            if iced.code() != Code::Mov_r64_rm64 || iced.op1_kind() != OpKind::Memory {
                return None;
            }
            uses.push(load.0);
            let at = self.loaded(load, &mut uses)?;
            words.extend(self.table(jump, at)?);
        }
        Some(Candidate {
            jump,
            callee: Callee::Register(register),
            words,
            uses,
        })
    }

    /// Where the table begins whose word an instruction loads, and the instructions that
    /// name it.
    fn loaded(&self, i: InstIdx, uses: &mut Vec<u32>) -> Option<(SectionId, u64)> {
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
                let [named] = self.definitions(i, gpr(base)?)?[..] else {
                    return None;
                };
                uses.push(named.0);
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
    fn value(&self, i: InstIdx, wanted: ValueIdx) -> Option<RelocatedValue> {
        let inst = self.lifted.inst(i);
        let mut all = inst.relocated_values().zip(self.lifted.values_of(inst));
        all.find_map(|(v, value)| (v == wanted).then_some(value))
    }

    /// The address that an instruction puts into a register.
    fn named(&self, i: InstIdx) -> Option<RelocatedValue> {
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

    /// The instructions that write a register last before `at`, on all ways there. None
    /// if a way is not known, or the register is read on it.
    fn definitions(&self, at: InstIdx, register: Reg) -> Option<Vec<InstIdx>> {
        let mut factory = InstructionInfoFactory::new();
        let (mut found, mut seen, mut work) = (Vec::new(), HashSet::default(), vec![at.0]);
        while let Some(i) = work.pop() {
            if self.entered.contains(&i) {
                return None;
            }
            let branches = self.sources.get(&i).into_iter().flatten().copied();
            // Functions begin with an entry, so there is one before.
            let before = Some(i - 1).filter(|before| self.falls_through(*before));
            for before in branches.chain(before) {
                if !seen.insert(before) {
                    continue;
                }
                let iced = &self.lifted.insts[before as usize].iced;
                let passes = matches!(
                    iced.flow_control(),
                    FlowControl::Next
                        | FlowControl::ConditionalBranch
                        | FlowControl::UnconditionalBranch
                );
                match touches(&mut factory, iced, register) {
                    _ if !passes => return None,
                    Touch::None => work.push(before),
                    Touch::Written => found.push(InstIdx(before)),
                    Touch::Read => return None,
                }
            }
        }
        (!found.is_empty()).then_some(found)
    }

    /// Whether an indirect jump may go to a label whose address an instruction of its
    /// function has taken: unless its register was loaded from memory outside the frame,
    /// is an argument or a result on all ways to it.
    pub(super) fn may_be_label(&self, jump: InstIdx) -> bool {
        let inst = self.lifted.inst(jump);
        let outside = |iced: &Instruction| {
            let frame = |r: Register| matches!(r.full_register(), Register::RSP | Register::RBP);
            !frame(iced.memory_base()) && !frame(iced.memory_index())
        };
        let register = match inst.target {
            Some(Destination::Import(s)) => routines::indirect_thunk(self.lifted.symbol_name(s)),
            _ if inst.iced.op0_kind() == OpKind::Memory => return !outside(&inst.iced),
            _ => gpr(inst.iced.op0_register()),
        };
        let Some(register) = register else {
            return true;
        };
        let mut factory = InstructionInfoFactory::new();
        let (mut seen, mut work) = (HashSet::default(), vec![jump.0]);
        while let Some(i) = work.pop() {
            let entry = self
                .lifted
                .function(self.lifted.function_of(InstIdx(i)))
                .insts
                .start;
            let branches = self.sources.get(&i).into_iter().flatten().copied();
            let before = (i != entry).then(|| i - 1);
            let before = before.filter(|before| self.falls_through(*before));
            for before in branches.chain(before) {
                if !seen.insert(before) {
                    continue;
                }
                let iced = &self.lifted.insts[before as usize].iced;
                match touches(&mut factory, iced, register) {
                    Touch::None | Touch::Read if is_call(iced) && !is_saved(register) => {}
                    Touch::None => work.push(before),
                    // Only compares and stores read it and leave it as it is.
                    Touch::Read if !writes(&mut factory, iced, register) => work.push(before),
                    Touch::Written
                        if iced.code() == Code::Mov_r64_rm64
                            && iced.op1_kind() == OpKind::Memory
                            && outside(iced) => {}
                    Touch::Read | Touch::Written => return true,
                }
            }
        }
        false
    }

    /// Whether control may come to the next instruction from this one. A call counts.
    fn falls_through(&self, i: u32) -> bool {
        let flow = self.lifted.insts[i as usize].iced.flow_control();
        !matches!(
            flow,
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
                | FlowControl::Exception
                | FlowControl::Interrupt
        )
    }

    /// The table at a place, for a jump.
    fn table(&self, jump: InstIdx, (section, start): (SectionId, u64)) -> Option<Vec<TableWord>> {
        let contents = self.lifted.object.section(section);
        if !is_table(contents) {
            return None;
        }
        let whole = self.whole(jump);
        let mut words = Vec::new();
        let mut at = start;
        let first = contents.relocations.partition_point(|r| r.offset < start);
        let mut rest = contents.relocations[first..].iter();
        while let Some(r) = rest.next().filter(|r| r.offset == at) {
            let Some((code, offset)) = self.lifted.code_place(r.symbol, r.addend) else {
                break;
            };
            let to = self.lifted.inst_at(code, offset)?;
            let f = self.lifted.function_of(to);
            let entry = self.lifted.function(f).insts.start == to.0 && self.lifted.is_entered(f);
            if r.kind != R_X86_64_64 || entry || self.whole(to) != whole {
                // Another function's table may follow, if something refers to it.
                if self.is_referred_to(section, at) {
                    break;
                }
                return None;
            }
            let case = Case { to, number: 0 };
            words.push((section, at, case));
            at += 8;
        }
        (!words.is_empty()).then_some(words)
    }

    fn is_referred_to(&self, section: SectionId, at: u64) -> bool {
        let code = (section, at, 0)..=(section, at, u32::MAX);
        self.by_code.range(code).next().is_some() || self.by_data.contains(&(section, at))
    }

    /// Whether nothing but the jumps' own instructions refers into the tables.
    pub(super) fn is_alone(&self, candidate: &Candidate, own: &HashSet<u32>) -> bool {
        candidate.words.iter().all(|(section, at, _)| {
            let code = (*section, *at, 0)..(*section, at + 8, 0);
            let data = (*section, *at)..(*section, at + 8);
            let mut code = self.by_code.range(code);
            code.all(|(_, _, i)| own.contains(i)) && self.by_data.range(data).next().is_none()
        })
    }
}

fn is_call(iced: &Instruction) -> bool {
    matches!(
        iced.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}

/// Whether a callee keeps a register (psABI 3.2.1).
fn is_saved(register: Reg) -> bool {
    matches!(
        register,
        Reg::RBX | Reg::RBP | Reg::R12 | Reg::R13 | Reg::R14 | Reg::R15
    )
}

/// Whether an instruction may change a register.
fn writes(factory: &mut InstructionInfoFactory, iced: &Instruction, register: Reg) -> bool {
    let info = factory.info(iced);
    let mut used = info.used_registers().iter();
    used.any(|u| {
        u.register().full_register() == reg64(register)
            && !matches!(
                u.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
            )
    })
}

enum Touch {
    None,
    Read,
    Written,
}

/// What an instruction does to a register: all that it writes counts as written, if the
/// old value does not matter.
fn touches(factory: &mut InstructionInfoFactory, iced: &Instruction, register: Reg) -> Touch {
    let info = factory.info(iced);
    let mut touch = Touch::None;
    let same = |r: Register| r.full_register() == reg64(register);
    let in_memory = info.used_memory().iter();
    if in_memory
        .into_iter()
        .any(|m| same(m.base()) || same(m.index()))
    {
        // `mov (%r,%i,8),%r` reads it to write it: a definition all the same.
        touch = Touch::Read;
    }
    for used in info.used_registers().iter().filter(|u| same(u.register())) {
        touch = match (used.access(), &touch) {
            (OpAccess::Write, _) if used.register().is_gpr64() || used.register().is_gpr32() => {
                Touch::Written
            }
            (_, Touch::Written) => Touch::Written,
            _ => Touch::Read,
        };
    }
    touch
}
