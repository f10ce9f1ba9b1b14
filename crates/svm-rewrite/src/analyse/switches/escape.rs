//! Where the number in a register goes: the address of a table, of a word in it, of a label.
//!
//! A table is rewritten together with its jumps, so nothing else may read it. A label whose
//! address gets into memory may be the destination of any jump that loads one.
//!
//! Where an instruction writes only a register's lowest byte, the number is in the others. Who
//! reads the byte then does not read the number: compilers without optimisation keep truth
//! values there (`sete %al`, `test $1,%al`).

use std::cell::{Cell, RefCell};

use foldhash::{HashMap, HashSet};
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use liveness::Reg;

use super::find::{Candidate, Finder};
use crate::analyse::class::Callee;
use crate::analyse::routines;
use crate::lift::{Destination, InstIdx};
use crate::registers::{gpr, reg64, register_operands};

/// What may be done with a number without anybody learning of it.
#[derive(Clone, Copy)]
pub(super) struct Walk<'w> {
    /// What walks with these loads and switches have found.
    pub(super) known: &'w Known,
    /// Instructions that may read it: loads of words for their own jumps.
    pub(super) own: &'w HashSet<u32>,
    /// Where each switch goes.
    pub(super) cases: &'w HashMap<u32, Vec<InstIdx>>,
    /// Where it ends.
    pub(super) until: Until,
    /// Whether operands may be reached by it that have an index as well.
    pub(super) indexed: bool,
    /// Whether callees learn of it, if it is in a register of arguments then.
    pub(super) passed: bool,
    /// Whether the caller does, if it is in a register of results.
    pub(super) returned: bool,
}

/// Where a walk ends, if nothing wrote the number's register before.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Until {
    /// Where control leaves the function.
    End,
    /// At switches.
    Switch,
    /// Where control may go to more than one place.
    Split,
}

/// Which instructions that read a number count.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reader {
    /// All.
    Any,
    /// Those that do more than push it.
    NoPush,
    /// Those that compute another number of it, as compilers do with addresses.
    Computing,
}

impl Reader {
    fn counts(self, iced: &Instruction) -> bool {
        use iced_x86::Mnemonic as M;
        match self {
            Reader::Any => true,
            Reader::NoPush => iced.code() != Code::Push_r64,
            Reader::Computing => matches!(
                iced.mnemonic(),
                M::Add | M::Sub | M::Lea | M::Or | M::Xor | M::And
            ),
        }
    }
}

/// Where in its register a number is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Held {
    /// In all of it.
    Whole,
    /// In all but the lowest byte.
    Upper,
}

/// An instruction, and where in its register the number is before it.
type Point = (u32, Held);

/// What is asked of a place: the register, and what of a [`Walk`] decides.
type Question = (Reader, Reg, Until, [bool; 3]);

/// Answers of walks, so that all of them together take linear time.
#[derive(Default)]
pub(super) struct Known {
    /// Where a register holds nothing that is read.
    unread: RefCell<HashMap<Question, HashSet<Point>>>,
    /// Instructions that walks went over before they found a reader.
    spent: Cell<usize>,
}

/// Where `spent` is more, the answer is that there is a reader. Each that was found before refuses
/// the object.
const PATIENCE: usize = 1 << 22;

impl Finder<'_, '_> {
    /// Whether the address of a table, or of a label that it holds, is read by anything but
    /// the table's jumps.
    pub(super) fn is_read_elsewhere(&self, candidate: &Candidate, walk: &Walk<'_>) -> bool {
        // Of a word that is left in a register after the jump, callees make no use; nor of the
        // address of a table of distances, which no expression of C is. Assembly may pass it on.
        // A push of either makes room: clang aligns the stack so.
        let passed = Walk {
            passed: true,
            ..*walk
        };
        let until = |until| Walk { until, ..passed };
        let (straight, before) = (until(Until::Split), until(Until::Switch));
        let base = |&(i, r): &(InstIdx, Reg)| match candidate.from {
            Some(_) => {
                let next = [InstIdx(i.0 + 1)];
                self.escapes(next, r, &straight) || self.is_read_by(Reader::NoPush, next, r, walk)
            }
            None => self.escapes([InstIdx(i.0 + 1)], r, &passed),
        };
        let reader = match candidate.from {
            Some(_) => Reader::NoPush,
            None => Reader::Any,
        };
        let word = |r: Reg| {
            let to = candidate.words.iter().map(|(_, _, case)| case.to);
            let next = candidate.sources.iter().map(|i| InstIdx(i.0 + 1));
            self.is_read_by(reader, to, r, walk) || self.is_read_by(reader, next, r, &before)
        };
        let bases = candidate.bases.iter();
        let register = match candidate.callee {
            Callee::Register(r) => Some(r),
            Callee::Memory(_) => None,
        };
        bases.into_iter().any(base) || register.is_some_and(word)
    }

    /// Whether an instruction computes with the address that it names, or one after it does with
    /// the register that has it.
    pub(super) fn is_counted_from(&self, i: InstIdx, walk: &Walk<'_>) -> bool {
        match self.labelled(i) {
            Some(r) => self.is_read_by(Reader::Computing, [InstIdx(i.0 + 1)], r, walk),
            None => Reader::Computing.counts(&self.lifted.inst(i).iced),
        }
    }

    /// Whether the number that a register holds before these instructions is read by anything
    /// else.
    pub(super) fn escapes(
        &self,
        from: impl IntoIterator<Item = InstIdx>,
        register: Reg,
        walk: &Walk<'_>,
    ) -> bool {
        self.is_read_by(Reader::Any, from, register, walk)
    }

    /// The same, by instructions of a kind.
    fn is_read_by(
        &self,
        reader: Reader,
        from: impl IntoIterator<Item = InstIdx>,
        register: Reg,
        walk: &Walk<'_>,
    ) -> bool {
        let spent = &walk.known.spent;
        if spent.get() > PATIENCE {
            return true;
        }
        let flags = [walk.indexed, walk.passed, walk.returned];
        let mut unread = walk.known.unread.borrow_mut();
        let seen = unread
            .entry((reader, register, walk.until, flags))
            .or_default();
        let mut factory = InstructionInfoFactory::new();
        let mut fresh = Vec::new();
        let mut work: Vec<Point> = from.into_iter().map(|i| (i.0, Held::Whole)).collect();
        while let Some(point) = work.pop() {
            if point.0 as usize >= self.lifted.insts.len() || !seen.insert(point) {
                continue;
            }
            fresh.push(point);
            if self.reads_here(&mut factory, reader, point, register, walk) {
                spent.set(spent.get() + fresh.len());
                for point in fresh {
                    seen.remove(&point);
                }
                return true;
            }
            self.go_on(&mut factory, point, register, walk, &mut work);
        }
        false
    }

    /// Whether an instruction reads the number in a register, and counts; or somebody else may who
    /// is not seen.
    fn reads_here(
        &self,
        factory: &mut InstructionInfoFactory,
        reader: Reader,
        (i, held): Point,
        register: Reg,
        walk: &Walk<'_>,
    ) -> bool {
        let i = InstIdx(i);
        let inst = self.lifted.inst(i);
        let iced = &inst.iced;
        let thunk = match inst.target {
            Some(Destination::Import(s)) => routines::indirect_thunk(self.lifted.symbol_name(s)),
            _ => None,
        };
        let excused = walk.indexed && is_indexed(iced, register);
        let reads = reads(factory, iced, register, held) && !excused || thunk == Some(register);
        // A switch reads its own word.
        let jumps = walk.cases.contains_key(&i.0);
        reads && reader.counts(iced) && !walk.own.contains(&i.0) && !jumps
            || returns(self, i) && walk.returned && is_result(register)
            || self.leaves(i) && walk.passed && is_argument(register) && !jumps
    }

    /// Adds to `work` where control goes on to with the number still in its register.
    fn go_on(
        &self,
        factory: &mut InstructionInfoFactory,
        (i, held): Point,
        register: Reg,
        walk: &Walk<'_>,
        work: &mut Vec<Point>,
    ) {
        let i = InstIdx(i);
        let inst = self.lifted.inst(i);
        let jumps = walk.cases.get(&i.0);
        let call = routines::is_call(&inst.iced);
        let left = match call {
            true => Some(held).filter(|_| self.keeps(i, register)),
            false => left(factory, &inst.iced, register, held),
        };
        let splits = jumps.is_some() || inst.iced.flow_control() == FlowControl::ConditionalBranch;
        let ends = match walk.until {
            Until::End => false,
            Until::Switch => jumps.is_some(),
            Until::Split => splits,
        };
        let Some(left) = left.filter(|_| !ends) else {
            return;
        };
        work.extend(jumps.into_iter().flatten().map(|to| (to.0, left)));
        let to = match inst.target {
            Some(Destination::Inst(to)) if !call => Some((to.0, left)),
            _ => None,
        };
        work.extend(to);
        work.extend(Some((i.0 + 1, left)).filter(|_| self.falls_through(i.0)));
    }
}

/// Registers of arguments (psABI 3.2.3).
fn is_argument(register: Reg) -> bool {
    matches!(
        register,
        Reg::RDI | Reg::RSI | Reg::RDX | Reg::RCX | Reg::R8 | Reg::R9
    )
}

/// Registers of results (psABI 3.2.3).
fn is_result(register: Reg) -> bool {
    matches!(register, Reg::RAX | Reg::RDX)
}

impl Finder<'_, '_> {
    /// Whether an instruction calls a function, or jumps where no label of the object is.
    fn leaves(&self, i: InstIdx) -> bool {
        let inst = self.lifted.inst(i);
        let jumps = matches!(
            inst.iced.flow_control(),
            FlowControl::UnconditionalBranch
                | FlowControl::ConditionalBranch
                | FlowControl::IndirectBranch
        );
        let inside = matches!(inst.target, Some(Destination::Inst(_)));
        routines::is_call(&inst.iced) || jumps && !inside && !returns(self, i)
    }
}

pub(super) fn returns(finder: &Finder<'_, '_>, i: InstIdx) -> bool {
    let inst = finder.lifted.inst(i);
    match inst.target {
        Some(Destination::Import(s)) => routines::is_return_thunk(finder.lifted.symbol_name(s)),
        _ => inst.iced.flow_control() == FlowControl::Return,
    }
}

fn same(r: Register, register: Reg) -> bool {
    r.full_register() == reg64(register) && gpr(r).is_some()
}

/// Whether a register is the base of an operand that has an index, and no more.
fn is_indexed(iced: &Instruction, register: Reg) -> bool {
    let operands = register_operands(iced);
    same(iced.memory_base(), register)
        && iced.memory_index() != Register::None
        && !same(iced.memory_index(), register)
        && !operands.into_iter().any(|r| same(r, register))
}

/// Whether an instruction reads what a register holds of a number. The operands of a trap (`ud1`)
/// are not read, and it becomes one without.
fn reads(
    factory: &mut InstructionInfoFactory,
    iced: &Instruction,
    register: Reg,
    held: Held,
) -> bool {
    if iced.flow_control() == FlowControl::Exception {
        return false;
    }
    if is_borrow(iced, register) {
        return false;
    }
    let info = factory.info(iced);
    let addresses = info.used_memory().iter();
    let operands = info.used_registers().iter();
    let read = |access| !matches!(access, OpAccess::Write | OpAccess::NoMemAccess);
    let holds = |r| same(r, register) && (held == Held::Whole || !is_lowest_byte(r));
    addresses
        .into_iter()
        .any(|m| same(m.base(), register) || same(m.index(), register))
        || operands
            .into_iter()
            .any(|u| holds(u.register()) && read(u.access()))
}

/// Where a number is behind an instruction; `None` if nothing is left of it.
fn left(
    factory: &mut InstructionInfoFactory,
    iced: &Instruction,
    register: Reg,
    held: Held,
) -> Option<Held> {
    let whole = |r: Register| r.is_gpr64() || r.is_gpr32();
    if is_borrow(iced, register) && whole(iced.op0_register()) {
        return None;
    }
    let used = factory.info(iced).used_registers().iter();
    let mut written = used
        .filter(|u| same(u.register(), register) && u.access() == OpAccess::Write)
        .map(|u| u.register());
    written.try_fold(held, |held, r| match r {
        _ if whole(r) => None,
        _ if is_lowest_byte(r) => Some(Held::Upper),
        _ => Some(held),
    })
}

/// Whether it is the name of a register's lowest byte: `%al`, not `%ah`.
fn is_lowest_byte(r: Register) -> bool {
    let second = [Register::AH, Register::BH, Register::CH, Register::DH];
    r.is_gpr8() && !second.contains(&r)
}

/// `sbb %eax,%eax` and so on of a register: the result is what the carry says, whatever was there
/// before.
fn is_borrow(iced: &Instruction, register: Reg) -> bool {
    iced.mnemonic() == Mnemonic::Sbb
        && iced.op_kinds().all(|kind| kind == OpKind::Register)
        && iced.op0_register() == iced.op1_register()
        && same(iced.op0_register(), register)
}
