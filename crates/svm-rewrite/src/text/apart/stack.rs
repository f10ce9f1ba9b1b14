//! Whether code sees a return address of its own: in the routine that is called, or behind the
//! call, where it is still below the stack pointer.
//!
//! ```text
//!     call here                  here: mov %rsp,%r8
//!     mov -8(%rsp),%rcx                mov (%r8),%rcx
//! ```
//!
//! Each path is followed with the places that registers point to, relative to that address. What
//! a routine does with such a place, other than the sums that are known here, counts as seeing it.

use foldhash::{HashMap, HashSet};
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use liveness::Reg;

use crate::asm::Operand;
use crate::lift::{Destination, InstIdx, Lifted};
use crate::registers::gpr;

/// The most states of one instruction. More, as in a loop that moves rsp, are not followed: that counts as
/// seeing the address.
const STATES: usize = 64;

/// Beyond any frame.
const FAR: i64 = 1 << 40;

/// Whether a routine that is called, or code behind a call, may use a return address otherwise than
/// to return.
pub fn is_seen(lifted: &Lifted<'_>) -> bool {
    start(lifted).sees()
}

/// Whether a function returns to what it has pushed, or may.
pub fn returns_elsewhere(lifted: &Lifted<'_>) -> bool {
    let mut walk = start(lifted);
    walk.sees() || walk.returns_elsewhere
}

fn start<'l, 'o>(lifted: &'l Lifted<'o>) -> Walk<'l, 'o> {
    let mut walk = Walk {
        lifted,
        paths: Vec::new(),
        seen: HashMap::default(),
        returns_elsewhere: false,
    };
    for function in &lifted.functions {
        walk.paths.push((
            InstIdx(function.insts.start),
            Frame {
                whose: Whose::Others,
                below: Place::only(Reg::RSP, Span::EXACT),
            },
        ));
    }
    walk
}

/// Which return address the places are relative to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Whose {
    /// Of a caller that is not known: it may be anybody's.
    Others,
    /// Of a call in the text, in the routine that it calls.
    Own,
    /// Of a call in the text that has returned: it is still there, below rsp.
    Left,
}

/// How far below the return address a register points: at least, and at most.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Span {
    from: i64,
    to: i64,
}

impl Span {
    const EXACT: Span = Span { from: 0, to: 0 };
    const ANYWHERE: Span = Span {
        from: -FAR,
        to: FAR,
    };

    fn is_known(self) -> bool {
        self.from > -FAR && self.to < FAR
    }

    /// `from..to` more below; anywhere stays anywhere.
    fn moved(self, from: i64, to: i64) -> Span {
        let moved = Span {
            from: self.from.saturating_add(from),
            to: self.to.saturating_add(to),
        };
        match self.is_known() && moved.is_known() {
            true => moved,
            false => Span::ANYWHERE,
        }
    }

    /// Whether bytes at a displacement from there may be the address's.
    fn meets(self, displacement: i64, size: i64) -> bool {
        !self.is_known() || displacement < self.to + 8 && displacement + size > self.from
    }
}

/// Where registers point to; none that has no place of the stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place([Option<Span>; 16]);

impl Place {
    fn only(register: Reg, at: Span) -> Place {
        let mut place = Place([None; 16]);
        place.set(register, Some(at));
        place
    }

    fn of(&self, register: Reg) -> Option<Span> {
        self.0[usize::from(register.number())]
    }

    fn set(&mut self, register: Reg, at: Option<Span>) {
        self.0[usize::from(register.number())] = at;
    }

    /// Relative to what is `size` bytes below rsp.
    fn below_stack(self, size: i64) -> Place {
        let Some(stack) = self.of(Reg::RSP) else {
            return Place(self.0.map(|at| at.map(|_| Span::ANYWHERE)));
        };
        let mut place = Place(
            self.0
                .map(|at| at.map(|at| at.moved(-stack.to - size, -stack.from - size))),
        );
        place.set(Reg::RSP, Some(Span::EXACT.moved(-size, -size)));
        place
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Frame {
    whose: Whose,
    below: Place,
}

struct Walk<'l, 'o> {
    lifted: &'l Lifted<'o>,
    paths: Vec<(InstIdx, Frame)>,
    seen: HashMap<(InstIdx, Whose), HashSet<Frame>>,
    /// Whether rsp is below the return address at a return.
    returns_elsewhere: bool,
}

impl Walk<'_, '_> {
    fn sees(&mut self) -> bool {
        let mut factory = InstructionInfoFactory::new();
        while let Some((i, mut frame)) = self.paths.pop() {
            if i.0 as usize >= self.lifted.insts.len() {
                continue;
            }
            let states = self.seen.entry((i, frame.whose)).or_default();
            if states.len() >= STATES && !states.contains(&frame) {
                match frame.whose {
                    // Any place of the stack will do for an address that may be anybody's.
                    Whose::Others => frame.below = Place::only(Reg::RSP, Span::EXACT),
                    Whose::Own | Whose::Left => return true,
                }
            }
            if !states.insert(frame) {
                continue;
            }
            let parts = Parts::of(&self.lifted.inst(i).iced, &mut factory);
            if frame.sees(&parts) {
                return true;
            }
            self.step(i, frame, &parts);
        }
        false
    }

    fn step(&mut self, i: InstIdx, frame: Frame, parts: &Parts<'_>) {
        let inst = self.lifted.inst(i);
        let next = InstIdx(i.0 + 1);
        let target = match inst.target {
            Some(Destination::Inst(to)) => Some(to),
            _ => None,
        };
        match inst.iced.flow_control() {
            FlowControl::Next => {
                if let Some(frame) = frame.behind(parts) {
                    self.paths.push((next, frame));
                }
            }
            // A callee leaves rsp as it was.
            FlowControl::Call | FlowControl::IndirectCall => {
                let below = frame.below.below_stack(8);
                let own = |whose, below| Frame { whose, below };
                let entered = Place(below.0).entered();
                self.paths
                    .extend(target.map(|to| (to, own(Whose::Own, entered))));
                self.paths.push((next, own(Whose::Left, below)));
                // The call overwrites what another left there.
                let is_over = frame.whose == Whose::Left && frame.is_top_left();
                if !is_over {
                    self.paths.push((next, frame));
                }
            }
            FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                self.paths.push((next, frame));
                self.paths.extend(target.map(|to| (to, frame)));
            }
            FlowControl::Interrupt => self.paths.push((next, frame)),
            FlowControl::UnconditionalBranch => self.paths.extend(target.map(|to| (to, frame))),
            FlowControl::Return => {
                let top = frame.of(Reg::RSP).filter(|_| frame.whose == Whose::Others);
                self.returns_elsewhere |= top.is_some_and(|top| top.to > 0);
            }
            FlowControl::IndirectBranch | FlowControl::Exception => {}
        }
    }
}

impl Place {
    /// In the routine: rsp points to the address, and others to it or beside it. What points to the
    /// caller's own variables stays there.
    fn entered(mut self) -> Place {
        self.0 = self.0.map(|at| at.filter(|at| -8 <= at.from && at.to <= 8));
        self.set(Reg::RSP, Some(Span::EXACT));
        self
    }
}

/// What an instruction reads and writes.
struct Parts<'i> {
    iced: &'i Instruction,
    /// General registers whose values it reads, otherwise than for an address.
    read: Vec<Reg>,
    /// General registers that it writes.
    written: Vec<Reg>,
    /// Whether all bits of them are.
    is_whole: bool,
    /// Whether what it reads may go to memory, or to other registers.
    stores: bool,
    reads_memory: bool,
}

impl<'i> Parts<'i> {
    fn of(iced: &'i Instruction, factory: &mut InstructionInfoFactory) -> Parts<'i> {
        let info = factory.info(iced);
        let reads = |access| {
            matches!(
                access,
                OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            )
        };
        let writes = |access| {
            matches!(
                access,
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            )
        };
        let operands = || {
            (0..iced.op_count())
                .filter(|n| iced.op_kind(*n) == OpKind::Register)
                .map(|n| iced.op_register(n))
        };
        let full = |register: Register| register.full_register();
        let address = [iced.memory_base(), iced.memory_index()].map(full);
        let is_operand = |register| operands().any(|operand| full(operand) == full(register));
        let moves_stack = iced.is_stack_instruction();
        let used = info.used_registers();
        let is_value = |register: Register| {
            is_operand(register)
                || !(address.contains(&full(register))
                    || moves_stack && full(register) == Register::RSP)
        };
        let is_zeroing = matches!(
            iced.mnemonic(),
            Mnemonic::Xor | Mnemonic::Sub | Mnemonic::Sbb
        ) && iced.op0_kind() == OpKind::Register
            && iced.op1_kind() == OpKind::Register
            && iced.op0_register() == iced.op1_register();
        let read = used
            .iter()
            .filter(|used| !is_zeroing && reads(used.access()) && is_value(used.register()))
            .filter_map(|used| gpr(full(used.register())))
            .collect();
        let written = used
            .iter()
            .filter(|used| writes(used.access()) && is_value(used.register()))
            .filter(|used| gpr(full(used.register())).is_some());
        let is_whole = written.clone().all(|used| {
            used.register().size() >= 4
                && matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite)
        });
        let others = used
            .iter()
            .any(|used| writes(used.access()) && gpr(full(used.register())).is_none());
        let memory = info.used_memory();
        Parts {
            iced,
            read,
            written: written
                .filter_map(|used| gpr(full(used.register())))
                .collect(),
            is_whole,
            stores: others || memory.iter().any(|memory| writes(memory.access())),
            reads_memory: memory.iter().any(|memory| reads(memory.access())),
        }
    }

    /// Whether its memory operand is an address and no access.
    fn is_address(&self) -> bool {
        matches!(self.iced.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
    }
}

impl Frame {
    fn of(&self, register: Reg) -> Option<Span> {
        self.below.of(register)
    }

    /// Whether a push writes over the address.
    fn is_top_left(&self) -> bool {
        self.of(Reg::RSP) == Some(Span::EXACT.moved(-8, -8))
    }

    /// Whether an instruction has the return address, or does with its place what is not followed.
    fn sees(&self, parts: &Parts<'_>) -> bool {
        match self.whose {
            Whose::Others => false,
            Whose::Own => {
                self.may_read(parts) || self.keeps(parts) || self.indexes_stack(parts.iced)
            }
            Whose::Left => self.reads_left(parts) || self.indexes_stack(parts.iced),
        }
    }

    /// Whether what pops has it: a return does not count.
    fn pops(&self, iced: &Instruction) -> bool {
        let top = match iced.mnemonic() {
            Mnemonic::Pop | Mnemonic::Popf | Mnemonic::Popfq => self.of(Reg::RSP),
            Mnemonic::Leave => self
                .of(Reg::RBP)
                .or(self.of(Reg::RSP).map(|_| Span::ANYWHERE)),
            _ => return false,
        };
        let is_left = self.whose == Whose::Left;
        top.is_some_and(|top| match top.is_known() {
            true => top.meets(0, 8),
            false => !is_left,
        })
    }

    fn may_read(&self, parts: &Parts<'_>) -> bool {
        let iced = parts.iced;
        if self.pops(iced) || iced.mnemonic() == Mnemonic::Enter {
            return true;
        }
        // Their operands have no displacement.
        let is_string = iced.is_string_instruction() || iced.mnemonic() == Mnemonic::Xlatb;
        if is_string {
            return [Reg::RSI, Reg::RDI, Reg::RBX]
                .iter()
                .any(|register| self.of(*register).is_some());
        }
        if parts.is_address() {
            return false;
        }
        let size = (iced.memory_size().size() as i64).max(1);
        self.address(iced).is_some_and(|at| at.meets(0, size))
    }

    /// Where a memory operand points, as if its index were zero: an array's element is in the array,
    /// and so is no return address, unless the array begins there.
    fn address(&self, iced: &Instruction) -> Option<Span> {
        let of = |register: Register| self.of(gpr(register.full_register())?);
        let displacement = iced.memory_displacement64() as i64;
        let sum = |at: Span| at.moved(-displacement, -displacement);
        match (of(iced.memory_base()), of(iced.memory_index())) {
            (None, None) => None,
            (Some(at), None) => Some(sum(at)),
            (None, Some(at)) if iced.memory_index_scale() == 1 => Some(sum(at)),
            _ => Some(Span::ANYWHERE),
        }
    }

    /// Whether rsp goes to an array's element: no array is there, and any pop may have the address.
    fn indexes_stack(&self, iced: &Instruction) -> bool {
        iced.code() == Code::Lea_r64_m
            && iced.op0_register() == Register::RSP
            && iced.memory_index() != Register::None
            && self.has_place_in_address(iced)
    }

    /// Whether a place goes where it is not followed.
    fn keeps(&self, parts: &Parts<'_>) -> bool {
        let only_compares = matches!(parts.iced.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
        !only_compares
            && parts.stores
            && parts
                .read
                .iter()
                .any(|register| self.of(*register).is_some())
    }

    fn reads_left(&self, parts: &Parts<'_>) -> bool {
        let iced = parts.iced;
        if self.pops(iced) {
            return true;
        }
        // They go up from there.
        if iced.is_string_instruction() {
            let from = self.of(Reg::RSI);
            return from.is_some_and(|at| at.is_known() && at.to >= 0);
        }
        if parts.is_address() || !parts.reads_memory {
            return false;
        }
        let size = (iced.memory_size().size() as i64).max(1);
        let at = self.address(iced).filter(|at| at.is_known());
        at.is_some_and(|at| at.meets(0, size))
    }

    /// Where registers point behind an instruction; none if it writes over the address.
    fn behind(mut self, parts: &Parts<'_>) -> Option<Frame> {
        let iced = parts.iced;
        if self.whose == Whose::Left && self.writes_over(parts) {
            return None;
        }
        let pair = [iced.op0_register(), iced.op1_register()].map(gpr);
        if let (Code::Xchg_rm64_r64, [Some(one), Some(other)]) = (iced.code(), pair) {
            let (first, second) = (self.of(one), self.of(other));
            self.below.set(one, second);
            self.below.set(other, first);
            return Some(self);
        }
        let sum = self.sum(iced);
        let is_moved = parts
            .read
            .iter()
            .any(|register| self.of(*register).is_some())
            || iced.mnemonic() == Mnemonic::Lea && self.has_place_in_address(iced);
        for register in &parts.written {
            let stays = !parts.is_whole && self.of(*register).is_some();
            let at = match sum {
                Some(at) => Some(at),
                None => (is_moved || stays).then_some(Span::ANYWHERE),
            };
            self.below.set(*register, at);
        }
        let moved = i64::from(iced.stack_pointer_increment());
        if iced.mnemonic() == Mnemonic::Leave {
            let top = self.of(Reg::RBP).map(|at| at.moved(-8, -8));
            self.below.set(Reg::RBP, None);
            self.below.set(Reg::RSP, top);
        } else if moved != 0 && !parts.written.contains(&Reg::RSP) {
            let top = self.of(Reg::RSP);
            self.below
                .set(Reg::RSP, top.map(|at| at.moved(-moved, -moved)));
        }
        if self.of(Reg::RSP).is_none_or(|at| !at.is_known()) {
            self.lose_stack();
        }
        Some(self)
    }

    /// rsp is not known any more. For what is another's address, it is a new place.
    fn lose_stack(&mut self) {
        let anywhere = self.below.0.map(|at| at.map(|_| Span::ANYWHERE));
        self.below = Place(anywhere);
        let top = match self.whose {
            Whose::Others => Span::EXACT,
            Whose::Own | Whose::Left => Span::ANYWHERE,
        };
        self.below.set(Reg::RSP, Some(top));
    }

    fn writes_over(&self, parts: &Parts<'_>) -> bool {
        let iced = parts.iced;
        match iced.mnemonic() {
            Mnemonic::Push | Mnemonic::Pushfq => self.is_top_left(),
            Mnemonic::Mov
                if iced.op0_kind() == OpKind::Memory && iced.memory_size().size() == 8 =>
            {
                let simple = Operand::of(iced).simple();
                simple.is_some_and(|(base, displacement)| {
                    self.of(base) == Some(Span::EXACT.moved(displacement, displacement))
                })
            }
            _ => false,
        }
    }

    fn has_place_in_address(&self, iced: &Instruction) -> bool {
        [iced.memory_base(), iced.memory_index()]
            .into_iter()
            .filter_map(|register| gpr(register.full_register()))
            .any(|register| self.of(register).is_some())
    }

    /// Where the result of an instruction points, if that is a sum that is known.
    fn sum(&self, iced: &Instruction) -> Option<Span> {
        let first = || self.of(gpr(iced.op0_register())?);
        if iced.op0_kind() != OpKind::Register {
            return None;
        }
        match iced.code() {
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 if iced.op1_kind() == OpKind::Register => {
                self.of(gpr(iced.op1_register())?)
            }
            Code::Lea_r64_m => self.address(iced),
            // As with an index.
            Code::Add_rm64_r64 | Code::Add_r64_rm64 => {
                let second = |register| self.of(gpr(register)?);
                match (first(), second(iced.op1_register())) {
                    (Some(at), None) | (None, Some(at)) => Some(at),
                    (Some(_), Some(_)) => Some(Span::ANYWHERE),
                    (None, None) => None,
                }
            }
            Code::Sub_rm64_r64 | Code::Sub_r64_rm64
                if iced.op1_kind() != OpKind::Register
                    || gpr(iced.op1_register()).is_none_or(|by| self.of(by).is_none()) =>
            {
                first()
            }
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 | Code::Sub_RAX_imm32 => {
                let size = iced.immediate(1) as i64;
                Some(first()?.moved(size, size))
            }
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 | Code::Add_RAX_imm32 => {
                let size = iced.immediate(1) as i64;
                Some(first()?.moved(-size, -size))
            }
            Code::And_rm64_imm8 | Code::And_rm64_imm32 | Code::And_RAX_imm32 => {
                let size = (iced.immediate(1) as i64).checked_neg()?;
                let is_alignment = size > 0 && size.count_ones() == 1;
                Some(first().filter(|_| is_alignment)?.moved(0, size - 1))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_meet_the_eight_bytes_of_an_address() {
        let aligned = Span { from: 128, to: 191 };
        for (displacement, size, meets) in [
            (120, 8, false),
            (121, 8, true),
            (198, 8, true),
            (199, 8, false),
        ] {
            assert_eq!(aligned.meets(displacement, size), meets, "{displacement}");
        }
        assert!(Span::ANYWHERE.meets(-4096, 1));
    }
}
