//! Where the number in a register goes: the address of a table, of a word in it, of a label.
//!
//! A table is rewritten together with its jumps, so nothing else may read it. A label whose
//! address gets into memory may be the destination of any jump that loads one.

use foldhash::{HashMap, HashSet};
use iced_x86::{Code, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};
use liveness::Reg;

use super::find::{Candidate, Finder, is_saved};
use crate::analyse::class::Callee;
use crate::analyse::routines;
use crate::lift::{Destination, InstIdx};
use crate::registers::{gpr, reg64, register_operands};

/// What may be done with a number without anybody learning of it.
#[derive(Clone, Copy)]
pub(super) struct Walk<'w> {
    /// Instructions that may read it: loads of words for their own jumps.
    pub(super) own: &'w HashSet<u32>,
    /// Where each switch goes.
    pub(super) cases: &'w HashMap<u32, Vec<InstIdx>>,
    /// Whether it ends where control may go to more than one place.
    pub(super) straight: bool,
    /// Whether operands may be reached by it that have an index as well.
    pub(super) indexed: bool,
    /// Whether callees learn of it, if it is in a register of arguments then.
    pub(super) passed: bool,
    /// Whether the caller does, if it is in a register of results.
    pub(super) returned: bool,
}

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
        let straight = Walk {
            straight: true,
            ..passed
        };
        let base = |&(i, r): &(InstIdx, Reg)| match candidate.from {
            Some(_) => {
                let next = [InstIdx(i.0 + 1)];
                self.escapes(next, r, &straight) || self.is_read_by(is_no_push, next, r, walk)
            }
            None => self.escapes([InstIdx(i.0 + 1)], r, &passed),
        };
        let word = |r: Reg| {
            let to = candidate.words.iter().map(|(_, _, case)| case.to);
            match candidate.from {
                Some(_) => self.is_read_by(is_no_push, to, r, walk),
                None => self.escapes(to, r, walk),
            }
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
    pub(super) fn is_counted_from(&self, i: InstIdx) -> bool {
        match self.labelled(i) {
            Some(register) => {
                let walk = Walk {
                    own: &HashSet::default(),
                    cases: &HashMap::default(),
                    straight: false,
                    indexed: false,
                    passed: false,
                    returned: false,
                };
                let next = [InstIdx(i.0 + 1)];
                self.is_read_by(computes, next, register, &walk)
            }
            None => computes(&self.lifted.inst(i).iced),
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
        self.is_read_by(|_| true, from, register, walk)
    }

    /// The same, by instructions of a kind.
    fn is_read_by(
        &self,
        counts: impl Fn(&Instruction) -> bool,
        from: impl IntoIterator<Item = InstIdx>,
        register: Reg,
        walk: &Walk<'_>,
    ) -> bool {
        let mut factory = InstructionInfoFactory::new();
        let mut seen = HashSet::default();
        let mut work: Vec<u32> = from.into_iter().map(|i| i.0).collect();
        while let Some(i) = work.pop() {
            let Some(inst) = self.lifted.insts.get(i as usize).filter(|_| seen.insert(i)) else {
                continue;
            };
            let iced = &inst.iced;
            let thunk = match inst.target {
                Some(Destination::Import(s)) => {
                    routines::indirect_thunk(self.lifted.symbol_name(s))
                }
                _ => None,
            };
            let excused = walk.indexed && is_indexed(iced, register);
            let reads = reads(&mut factory, iced, register) && !excused || thunk == Some(register);
            // A switch reads its own word.
            let jumps = walk.cases.get(&i);
            if reads && counts(iced) && !walk.own.contains(&i) && jumps.is_none() {
                return true;
            }
            if returns(self, InstIdx(i)) && walk.returned && is_result(register) {
                return true;
            }
            if self.leaves(InstIdx(i)) && walk.passed && is_argument(register) && jumps.is_none() {
                return true;
            }
            let kept = match routines::is_call(iced) {
                true => is_saved(register),
                false => !writes(&mut factory, iced, register),
            };
            let splits = jumps.is_some() || iced.flow_control() == FlowControl::ConditionalBranch;
            if kept && !(walk.straight && splits) {
                work.extend(jumps.into_iter().flatten().map(|to| to.0));
                let to = match inst.target {
                    Some(Destination::Inst(to)) if !routines::is_call(iced) => Some(to.0),
                    _ => None,
                };
                work.extend(to);
                work.extend(Some(i + 1).filter(|_| self.falls_through(i)));
            }
        }
        false
    }
}

/// Whether an instruction does more than push a register.
fn is_no_push(iced: &Instruction) -> bool {
    iced.code() != Code::Push_r64
}

/// Whether an instruction computes a number of others, as compilers do with addresses.
fn computes(iced: &Instruction) -> bool {
    use iced_x86::Mnemonic as M;
    matches!(
        iced.mnemonic(),
        M::Add | M::Sub | M::Lea | M::Or | M::Xor | M::And
    )
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
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
        );
        let inside = matches!(inst.target, Some(Destination::Inst(_)));
        routines::is_call(&inst.iced) || jumps && !inside && !returns(self, i)
    }
}

fn returns(finder: &Finder<'_, '_>, i: InstIdx) -> bool {
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

/// Whether an instruction reads a register, or a part of it.
fn reads(factory: &mut InstructionInfoFactory, iced: &Instruction, register: Reg) -> bool {
    let info = factory.info(iced);
    let addresses = info.used_memory().iter();
    let operands = info.used_registers().iter();
    let read = |access| !matches!(access, OpAccess::Write | OpAccess::NoMemAccess);
    addresses
        .into_iter()
        .any(|m| same(m.base(), register) || same(m.index(), register))
        || operands
            .into_iter()
            .any(|u| same(u.register(), register) && read(u.access()))
}

/// Whether an instruction leaves nothing of what a register held.
fn writes(factory: &mut InstructionInfoFactory, iced: &Instruction, register: Reg) -> bool {
    let info = factory.info(iced);
    info.used_registers().iter().any(|u| {
        let whole = u.register().is_gpr64() || u.register().is_gpr32();
        same(u.register(), register) && whole && u.access() == OpAccess::Write
    })
}
