//! Jump tables: indirect jumps that stay inside their function, and every place that each
//! may go to.
//!
//! ```text
//!     jmp   *T(,%i,8)                 mov T(,%i,8),%r ; ... ; jmp *%r
//!                                     (or through a thunk)
//! T:  .quad label ...                 in read-only data
//! ```
//!
//! An object has no bounds of a table, but it has relocations. The table is the run of
//! words from `T` on that are relocated to labels of the jump's own function. It counts
//! if
//!
//! * the section is loaded, is not writable, and is not one of the kernel's tables;
//! * the run ends where the relocations to code end, or where something else is referred
//!   to. A word for other code in the middle of a run is no label of a switch;
//! * on all ways to the jump the register was loaded so, and nothing reads it in between.
//!
//! A word outside the run would be an index that the source does not have. Rewritten code
//! compares what was loaded with what the run holds, and stops if it is nothing of that
//! (`encode/switch.rs`); so nothing rests on the index.
//!
//! The address of a label may also get elsewhere: something else refers into the run, the
//! register is read after the jump, an instruction names the label. Then all indirect
//! jumps of the function that may go to it must be switches ([`refusals`]).

use std::collections::{BTreeMap, BTreeSet};

use elf_loader::consts::{R_X86_64_64, SHF_ALLOC, SHF_WRITE, SHT_PROGBITS};
use elf_loader::{Place, Section, SectionId, special};
use foldhash::{HashMap, HashSet};
use iced_x86::{
    Code as Op, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};
use liveness::{LocSet, Reg};

use crate::analyse::class::{Callee, Space};
use crate::analyse::flow::Hints;
use crate::analyse::routines;
use crate::lift::{CodeIdx, Destination, InstIdx, Lifted, Value, ValueIdx};
use crate::refusal::{self, Code, Refusal};
use crate::registers::{gpr, reg64};

/// A label of a switch.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Where control goes.
    pub to: InstIdx,
    /// Its number in the function.
    pub number: u32,
}

/// A jump through a table.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Where the address comes from.
    pub callee: Callee,
    /// The labels, each once, in the order of their addresses.
    pub cases: Vec<Case>,
}

/// All switches of an object, and the words of their tables.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    by_jump: HashMap<u32, Switch>,
    /// The words of tables, each with the number of its case.
    words: BTreeMap<(SectionId, u64), u32>,
    /// Names of functions whose labels are also found in other ways.
    leaks: HashSet<String>,
}

impl Switches {
    /// The switch whose jump this is.
    pub fn at(&self, jump: InstIdx) -> Option<&Switch> {
        self.by_jump.get(&jump.0)
    }

    /// Whether the word there belongs to a table.
    pub fn holds(&self, section: SectionId, offset: u64) -> bool {
        self.words.contains_key(&(section, offset))
    }

    /// The words of all tables: section, offset, and the number of the case.
    pub fn words(&self) -> impl Iterator<Item = (SectionId, u64, u32)> {
        let words = self.words.iter();
        words.map(|((section, offset), number)| (*section, *offset, *number))
    }

    /// All of them, by their jumps, in order.
    pub fn iter(&self) -> impl Iterator<Item = (InstIdx, &Switch)> {
        let mut jumps: Vec<u32> = self.by_jump.keys().copied().collect();
        jumps.sort_unstable();
        let all = jumps.into_iter().map(InstIdx);
        all.filter_map(|jump| Some((jump, self.at(jump)?)))
    }

    /// Finds them.
    pub fn find(lifted: &Lifted<'_>) -> Switches {
        if !has_labels(lifted) {
            return Switches::default();
        }
        let finder = Finder::new(lifted);
        let jumps = (0..lifted.insts.len() as u32).map(InstIdx);
        let found: Vec<Candidate> = jumps.filter_map(|i| finder.candidate(i)).collect();
        let numbers = numbers(&finder, &found);
        let own: HashSet<u32> = found.iter().flat_map(|c| c.uses.clone()).collect();
        let mut switches = Switches::default();
        for candidate in found {
            if !finder.is_alone(&candidate, &own) {
                let name = finder.whole(candidate.jump);
                switches.leaks.insert(name.to_owned());
            }
            let mut cases: Vec<Case> = Vec::new();
            for (section, at, case) in candidate.words {
                let number = numbers[&case.to.0];
                switches.words.insert((section, at), number);
                cases.push(Case { number, ..case });
            }
            cases.sort_by_key(|case| case.to);
            cases.dedup_by_key(|case| case.to);
            let switch = Switch {
                callee: candidate.callee,
                cases,
            };
            switches.by_jump.insert(candidate.jump.0, switch);
        }
        switches
    }
}

/// The number of a function's first case: no number that other data is likely to hold, and
/// an immediate of 32 bits with all that follow.
const FIRST: u32 = 0x7477_0000;

/// The number of each case in its function, by instruction.
fn numbers(finder: &Finder<'_, '_>, found: &[Candidate]) -> HashMap<u32, u32> {
    let words = found.iter().flat_map(|c| &c.words);
    let cases: BTreeSet<InstIdx> = words.map(|(_, _, case)| case.to).collect();
    let mut last: HashMap<&str, u32> = HashMap::default();
    let numbered = cases.into_iter().map(|to| {
        let next = last.entry(finder.whole(to)).or_insert(FIRST);
        *next += 1;
        (to.0, *next - 1)
    });
    numbered.collect()
}

/// Whether any data refers to code that is no function's start.
fn has_labels(lifted: &Lifted<'_>) -> bool {
    let starts: HashSet<(CodeIdx, u64)> = lifted
        .functions
        .iter()
        .map(|f| (f.section, f.start))
        .collect();
    let tables = lifted.object.sections().filter(|(_, s)| is_table(s));
    tables.into_iter().any(|(_, section)| {
        let mut places = section.relocations.iter();
        places.any(|r| {
            let place = lifted.code_place(r.symbol, r.addend);
            place.is_some_and(|place| !starts.contains(&place))
        })
    })
}

/// Whether a section may hold a jump table.
fn is_table(section: &Section<'_>) -> bool {
    section.flags & (SHF_ALLOC | SHF_WRITE) == SHF_ALLOC
        && section.kind == SHT_PROGBITS
        && !section.is_code()
        && special::kind_of(&section.name).is_none()
}

/// A word of a table: where it is, and what it holds.
type Word = (SectionId, u64, Case);

struct Candidate {
    jump: InstIdx,
    callee: Callee,
    words: Vec<Word>,
    /// Instructions that may refer to the table: they belong to this jump.
    uses: Vec<u32>,
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

struct Finder<'l, 'a> {
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
    fn new(lifted: &'l Lifted<'a>) -> Finder<'l, 'a> {
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
        for (i, value) in &lifted.values {
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
    fn whole(&self, i: InstIdx) -> &str {
        let name = &self.lifted.function(self.lifted.function_of(i)).name;
        name.split(".cold").next().unwrap_or_default()
    }

    /// The switch that this jump may be.
    fn candidate(&self, jump: InstIdx) -> Option<Candidate> {
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
            if iced.code() != Op::Mov_r64_rm64 || iced.op1_kind() != OpKind::Memory {
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
    fn value(&self, i: InstIdx, wanted: ValueIdx) -> Option<Value> {
        let inst = self.lifted.inst(i);
        let mut all = inst.values().zip(self.lifted.values_of(inst));
        all.find_map(|(v, value)| (v == wanted).then_some(value))
    }

    /// The address that an instruction puts into a register.
    fn named(&self, i: InstIdx) -> Option<Value> {
        let inst = self.lifted.inst(i);
        let value = match inst.iced.code() {
            Op::Lea_r64_m if inst.iced.is_ip_rel_memory_operand() => inst.displacement,
            Op::Lea_r64_m if inst.iced.memory_base() == Register::None => inst
                .displacement
                .filter(|_| inst.iced.memory_index() == Register::None),
            Op::Mov_rm64_imm32 | Op::Mov_r64_imm64 => inst.immediate,
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
    fn may_be_label(&self, jump: InstIdx) -> bool {
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
                        if iced.code() == Op::Mov_r64_rm64
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
    fn table(&self, jump: InstIdx, (section, start): (SectionId, u64)) -> Option<Vec<Word>> {
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
    fn is_alone(&self, candidate: &Candidate, own: &HashSet<u32>) -> bool {
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

/// Refuses switches where flags are live, and computed jumps that are no switch.
pub fn refusals(lifted: &Lifted<'_>, hints: &Hints, live_before: &[LocSet]) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let live = |i: InstIdx| live_before[i.0 as usize];
    for (jump, _) in hints.switches.iter() {
        if live(jump).intersects(LocSet::flags()) {
            let reason = "flags are read after a jump through a table, and comparing what the \
                          table holds changes them";
            let refused = lifted.refusal(Code::CodeReference, jump, reason);
            refusal::add(&mut refusals, refused);
        }
    }
    if hints.refuses_computed {
        computed(lifted, &hints.switches, &live, &mut refusals);
    }
    refusals
}

/// Refuses indirect jumps that are no switch, in functions whose labels get elsewhere: the
/// jump may go to the label, and nothing says so.
fn computed(
    lifted: &Lifted<'_>,
    switches: &Switches,
    live: &dyn Fn(InstIdx) -> LocSet,
    refusals: &mut Vec<Refusal>,
) {
    let whole = |i: InstIdx| {
        let name = &lifted.function(lifted.function_of(i)).name;
        name.split(".cold").next().unwrap_or_default()
    };
    let mut leaks: HashSet<&str> = switches.leaks.iter().map(|name| &**name).collect();
    for (jump, switch) in switches.iter() {
        if let Callee::Register(r) = switch.callee
            && let Some(case) = switch.cases.first()
            && switch
                .cases
                .iter()
                .any(|case| live(case.to).intersects(LocSet::reg(r)))
        {
            leaks.insert(whole(case.to));
            leaks.insert(whole(jump));
        }
    }
    let mut named: HashSet<&str> = HashSet::default();
    for (i, value) in &lifted.values {
        let place = lifted.code_place(value.symbol, value.addend);
        let to = place.and_then(|(code, at)| lifted.inst_at(code, at));
        let inside = |to: &InstIdx| lifted.function(lifted.function_of(*to)).insts.start != to.0;
        if to.filter(inside).is_some_and(|to| whole(to) == whole(*i)) {
            named.insert(whole(*i));
        }
    }
    if leaks.is_empty() && named.is_empty() {
        return;
    }
    let mut finder = None;
    for i in (0..lifted.insts.len() as u32).map(InstIdx) {
        let inst = lifted.inst(i);
        let thunk = |s| routines::indirect_thunk(lifted.symbol_name(s)).is_some();
        let jumps = match (inst.iced.flow_control(), inst.target) {
            (FlowControl::IndirectBranch, _) => true,
            (FlowControl::UnconditionalBranch, Some(Destination::Import(s))) => thunk(s),
            _ => false,
        };
        if !jumps {
            continue;
        }
        let (leaks, named) = (leaks.contains(whole(i)), named.contains(whole(i)));
        let refused = match switches.at(i) {
            None if leaks => true,
            None if named => finder
                .get_or_insert_with(|| Finder::new(lifted))
                .may_be_label(i),
            None => false,
            Some(_) => leaks && named,
        };
        if refused {
            let reason = "an indirect jump in a function whose labels' addresses are in more \
                          than read-only tables for such jumps: a computed goto";
            refusal::add(refusals, lifted.refusal(Code::CodeReference, i, reason));
        }
    }
}
