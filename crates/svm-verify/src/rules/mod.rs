//! The effect of one instruction on the facts, and whether the instruction is allowed.
//!
//! [`Step::run`] takes the facts before an instruction and gives those after it. An
//! instruction without a rule makes the registers that it writes unknown; rules only add
//! knowledge to that. The comment above each rule shows the code that it is for.
//!
//! One file for each rule: [`memory`] and [`strings`] are P1, [`control`] and [`returns`]
//! P2, [`stack`] P4 and [`table`] P5; [`registers`] and [`stages`] follow the values that
//! those rules need.

mod control;
mod memory;
mod registers;
mod returns;
mod stack;
mod stages;
mod strings;
mod table;

pub use returns::fell_through;

use std::borrow::Cow;

use crate::domain::{Address, Addresses, Direction, Flags, Form, Name, State, Value};
use crate::findings::ViolationCode;
use crate::insn::{Alu, Gpr, GprSet, Half, Insn, Op, Sum, TableRead};
use crate::schemes::SchemeRules;
use crate::targets::{Frames, IndirectBranches, Rules};

/// How an instruction's memory operand was proved, and whether the instruction was
/// reached at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proved {
    /// Not reached on any path.
    Unreached,
    /// Reached; no memory operand.
    Reached,
    /// In the function's own stack frame.
    Stack,
    /// Through a translated address.
    Translated,
    /// A half of a table entry, in a check.
    Table,
    /// In the window, by the operand's own form.
    Window,
    /// A segment base in the CPU's context.
    Context,
    /// Elements of a string instruction.
    String,
    /// A symbol's place, per-CPU data, or an access whose faults the kernel handles.
    Kernel,
    /// Only read, where nothing confines reads.
    Unconfined,
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To the next instruction.
    Fall,
    /// To the next one, after the function at this instruction returned.
    Called(u32),
    /// To another instruction.
    Jump(u32),
    /// To the next one or to this one, by the flags.
    Branch(u32),
    /// Nowhere that has to be verified.
    End,
}

/// A rule that is not met, and why. Elsewhere in memory, since nearly every instruction meets
/// all of them.
pub type Broken = Box<(ViolationCode, Cow<'static, str>)>;

/// That a rule is not met.
pub fn unmet(code: ViolationCode, reason: impl Into<Cow<'static, str>>) -> Broken {
    Box::new((code, reason.into()))
}

#[cold]
fn broken<T>(code: ViolationCode, reason: &'static str) -> Result<T, Broken> {
    Err(unmet(code, reason))
}

/// What all instructions of an object are judged by.
pub struct Laws {
    /// The rules of the scheme.
    pub scheme: &'static dyn SchemeRules,
    /// The rules of the target.
    pub rules: &'static Rules,
    /// Whether numbers get names: only checks ask whether two are the same.
    has_names: bool,
}

impl Laws {
    /// What instructions are judged by under a scheme, for a target.
    pub fn new(scheme: &'static dyn SchemeRules, rules: &'static Rules) -> Laws {
        Laws {
            scheme,
            rules,
            has_names: !scheme.reads().is_empty(),
        }
    }

    /// The name that instruction number `n` gives, if any.
    pub fn name(&self, n: u32) -> Option<Name> {
        self.has_names.then(|| Name::of(n))
    }
}

/// What else is to be known about one instruction (target `linux`).
#[derive(Clone, Copy)]
pub struct Site {
    /// Whether the kernel handles faults of its memory operand.
    pub faulting: bool,
    /// Whether the kernel may turn the jump into a return, or the call writes or uses the return
    /// address.
    pub leaving: bool,
    /// Whether it reads the hash of a type, before a place where control then goes.
    pub reads_hash: bool,
    /// The address that it yields, if it names one.
    pub address: Option<Address>,
}

impl Site {
    /// Of an instruction that the kernel knows nothing of.
    pub const PLAIN: Site = Site {
        faulting: false,
        leaving: false,
        reads_hash: false,
        address: None,
    };
}

/// One instruction in the state before it, which becomes the state after it.
pub struct Step<'a> {
    /// What it is judged by.
    pub laws: &'a Laws,
    /// What else is known about it.
    pub site: Site,
    /// The name that the instruction gives; `None` if the scheme has no use for names.
    pub name: Option<Name>,
    /// The instruction, as it was decoded.
    pub insn: &'a Insn,
    /// The facts before it, and then after it.
    pub state: &'a mut State,
}

impl Step<'_> {
    /// Executes the instruction. After an error the state is that after an instruction
    /// without a rule, unless `rsp` is lost: then the path ends ([`ViolationCode::StackPointer`],
    /// [`ViolationCode::Frame`]).
    pub fn run(mut self) -> Result<(Next, Proved), Broken> {
        let proved = self.memory(&self.insn.memory);
        if self.laws.rules.frames == Frames::Compiled && !matches!(self.insn.op, Op::Store { .. }) {
            self.state.forget_written(&self.insn.memory);
        }
        let by_pointer = self.writes_by_pointer();
        let addresses = self.addresses();
        let next = self.effect();
        if by_pointer {
            self.state.written_by_pointer();
        }
        self.low_halves();
        if let Some((stays, left)) = addresses {
            self.state.addresses.join(stays);
            if let Some(address) = left {
                self.state.addresses.add(address, self.insn.results);
            }
        }
        if self.insn.flags && !sets_flags(self.insn.op) {
            self.state.flags = Flags::Unknown;
        }
        let of_operand = proved?;
        next.map(|(next, proved)| match proved {
            Proved::Reached => (next, of_operand),
            proved => (next, proved),
        })
    }

    /// The addresses that stay where they are, and what the instruction leaves in its results.
    /// `None` for a hypervisor: nothing goes to an address in a register, and none is followed.
    fn addresses(&self) -> Option<(Addresses, Option<Address>)> {
        if self.laws.rules.indirect_branches == IndirectBranches::Refused {
            return None;
        }
        let loads = matches!(self.insn.op, Op::Load { .. } | Op::Plain | Op::Misread);
        let own = loads && self.reads_return_address() || self.lods_return_address();
        let left = match (self.site.address, own) {
            (None, false) => left(self.insn, self.state.addresses),
            (_, true) => Some(Address::Counted),
            (address, false) => address,
        };
        Some((self.state.addresses.of(self.insn.stays), left))
    }

    /// Registers, flags and control.
    fn effect(&mut self) -> Result<(Next, Proved), Broken> {
        let fall = |()| (Next::Fall, Proved::Reached);
        match self.insn.op {
            Op::Nop if self.site.leaving => self.traced().map(fall),
            Op::Plain | Op::Nop | Op::Prefetch => self.clobber().map(fall),
            Op::Copy { d, s } => self.copy(d, s).map(fall),
            Op::Copy32 { d, s } => self.copy32(d, s).map(fall),
            Op::Constant { d, small } => {
                let form = small.map_or(Form::Any, Form::Below);
                self.computed(d, GprSet::NONE, form).map(fall)
            }
            Op::WindowStart { d } => self.set(d, Value::of(Form::WindowStart)).map(fall),
            Op::Cut { d } => self.set(d, Value::of(Form::Place)).map(fall),
            Op::And { d, s } => self.and(d, s).map(fall),
            Op::Lea { d, inputs, sum } => self.lea(d, inputs, sum).map(fall),
            Op::Alu { op, d, imm, wide } => self.arithmetic(op, d, imm, wide).map(fall),
            Op::Compare { left, right } => {
                self.state.flags = Flags::Compared { left, right };
                Ok((Next::Fall, Proved::Reached))
            }
            // It says nothing that a proof needs.
            Op::CompareBound { .. } => Ok(fall(())),
            Op::MoveIfAbove { d, s } => self.move_if_above(d, s).map(fall),
            Op::Exchange { a, b } => self.exchange(a, b).map(fall),
            Op::Table { read, r, index } => self
                .table(read, r, index)
                .map(|()| (Next::Fall, Proved::Table)),
            Op::BitAt { r, bits } => self.bit_at(r, bits).map(fall),
            Op::Push => self.push().map(|()| (Next::Fall, Proved::Stack)),
            Op::PushRegister { s } => {
                let pushed = self.state.get(s).form;
                self.push()?;
                let at = self.state.get(Gpr::RSP).form;
                self.state.store_register(at, 8, s, pushed);
                Ok((Next::Fall, Proved::Stack))
            }
            Op::Load { d } => {
                let saved = || self.saved_at(&self.insn.memory);
                let loaded = self.load_return_word().unwrap_or_else(saved);
                let place = self.state.frame_place(&self.insn.memory);
                let own = place.is_some_and(|at| self.state.kept.is_saved(d, at));
                self.set(d, Value::of(loaded))?;
                if own {
                    self.state.kept.restore(d);
                }
                Ok(fall(()))
            }
            Op::Misread => self.misread().map(fall),
            Op::Store { s } => {
                let (stored, m) = (self.state.get(s).form, self.insn.memory);
                if self.laws.rules.frames == Frames::Compiled
                    && let Some(at) = self.state.frame_place(&m)
                {
                    self.state.store_register(at, m.size, s, stored);
                }
                self.store_return_word(s);
                Ok((Next::Fall, Proved::Reached))
            }
            Op::CompareMemory { s } => {
                self.compare_return_word(s);
                Ok((Next::Fall, Proved::Reached))
            }
            Op::PopFlags => {
                self.pop(None)?;
                self.state.direction = None;
                Ok((Next::Fall, Proved::Stack))
            }
            Op::Pop { d } => self.pop(Some(d)).map(|()| (Next::Fall, Proved::Stack)),
            Op::PopMemory => self.pop_memory().map(|()| (Next::Fall, Proved::Stack)),
            Op::Leave => self.leave().map(|()| (Next::Fall, Proved::Stack)),
            Op::Ret => self.leaves().map(|()| (Next::End, Proved::Reached)),
            Op::Call(target) => self.call(target).map(|next| (next, Proved::Reached)),
            Op::CallIndirect(r) => self.call_indirect(r).map(|next| (next, Proved::Reached)),
            Op::JumpIndirect(r) => self.jump_indirect(r).map(|next| (next, Proved::Reached)),
            Op::Jump(target) => self.jump(target).map(|next| (next, Proved::Reached)),
            Op::Branch(_, target) => self.branch(target).map(|next| (next, Proved::Reached)),
            Op::Stop => Ok((Next::End, Proved::Reached)),
            Op::Breakpoint => self.breakpoint().map(|next| (next, Proved::Reached)),
            Op::Cld => Ok(self.set_direction(Direction::Forward)),
            Op::Std => Ok(self.set_direction(Direction::Backward)),
            Op::String { kind, shift, rep } => self
                .string(kind, shift, rep)
                .map(|()| (Next::Fall, Proved::String)),
        }
    }
}

/// What an instruction may leave in the registers that it writes, by these that it reads.
pub fn left(insn: &Insn, addresses: Addresses) -> Option<Address> {
    // As always for a hypervisor, and mostly in a module.
    if addresses == Addresses::default() {
        return None;
    }
    let of_named = match insn.op {
        // A translation is the address itself: each page is mapped where it is.
        Op::Table { read, .. } => match read.half {
            Half::Tag => Address::Halved,
            Half::Xlate => Address::Named,
        },
        Op::Copy { .. }
        | Op::Lea {
            sum: Sum::Offset(_, 0),
            ..
        } => Address::Named,
        _ if insn.moves => Address::Named,
        _ => Address::Counted,
    };
    let of_halved = match insn.op {
        Op::Table {
            read: TableRead {
                half: Half::Xlate, ..
            },
            ..
        } => Address::Named,
        _ => Address::Counted,
    };
    let of = [
        (addresses.counted, Address::Counted),
        (addresses.halved, of_halved),
        (addresses.named, of_named),
    ];
    let found = of.into_iter().find(|&(of, _)| computes(insn, of));
    found.map(|(_, address)| address)
}

/// Whether at most four bits are left of a number: one of 16 is no address, nor half of one. The kernel
/// chooses among its caches so, by the own return address (`kmalloc_type`, include/linux/slab.h).
fn leaves_few_bits(op: Alu, imm: i32, wide: bool) -> bool {
    const FEW: i32 = 4;
    let bits = if wide { 64 } else { 32 };
    op == Alu::Shr && bits - (imm & (bits - 1)) <= FEW
}

/// Whether an instruction may compute something from one of these registers, which may hold an
/// address. What is loaded, and what a call leaves, is not followed
/// (docs/proof/linux.md, P2).
fn computes(insn: &Insn, addresses: GprSet) -> bool {
    if addresses == GprSet::NONE {
        return false;
    }
    let is_one = |r: Gpr| addresses.has(r);
    match insn.op {
        Op::Copy { s, .. } | Op::Copy32 { s, .. } => is_one(s),
        Op::And { d, s } | Op::MoveIfAbove { d, s } => is_one(d) || is_one(s),
        Op::Alu { op, d, imm, wide } => {
            op != Alu::Cmp && !leaves_few_bits(op, imm, wide) && is_one(d)
        }
        Op::Table { r, .. } => is_one(r),
        Op::Lea { inputs, .. } => inputs.meets(addresses),
        // It leaves its pointers moved, and a count that is less. `lodsb` writes a part of rax, `rep lods`
        // perhaps nothing.
        Op::String { rep, .. } => {
            let leaves = insn.reads.has(Gpr::RAX) && insn.writes.has(Gpr::RAX);
            is_one(Gpr::RDI)
                || is_one(Gpr::RSI)
                || rep && is_one(Gpr::RCX)
                || leaves && is_one(Gpr::RAX)
        }
        // `loop` counts in rcx.
        Op::Plain | Op::Misread | Op::Branch(..) => insn.reads.meets(addresses),
        // Its rule says it.
        Op::Exchange { .. } => false,
        Op::Nop
        | Op::Prefetch
        | Op::Constant { .. }
        | Op::WindowStart { .. }
        | Op::Cut { .. }
        | Op::Compare { .. }
        | Op::CompareBound { .. }
        | Op::BitAt { .. }
        | Op::Push
        | Op::PushRegister { .. }
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::CompareMemory { .. }
        | Op::PopFlags
        | Op::Pop { .. }
        | Op::PopMemory
        | Op::Leave
        | Op::Ret
        | Op::Call(_)
        | Op::CallIndirect(_)
        | Op::JumpIndirect(_)
        | Op::Jump(_)
        | Op::Stop
        | Op::Breakpoint
        | Op::Cld
        | Op::Std => false,
    }
}

/// Instructions whose rule says what the flags mean.
fn sets_flags(op: Op) -> bool {
    matches!(
        op,
        Op::Compare { .. }
            | Op::CompareMemory { .. }
            | Op::Alu { op: Alu::Cmp, .. }
            | Op::Table {
                read: TableRead { op: Alu::Cmp, .. },
                ..
            }
    )
}
