//! Addresses of code that a program counts from a label's, as it does where pieces of code are of
//! one length:
//!
//! ```text
//!     lea pieces(%rip), %r9
//!     shl $6, %rcx
//!     add %r9, %rcx
//!     jmp *%rcx               into one of the pieces, each of 64 bytes
//! ```
//!
//! A piece with a sequence is longer, and those behind it are elsewhere. glibc's `memmove` for
//! SSSE3 has such loops. A computed goto adds a difference of labels that a table has, which the
//! assembler makes again; so what is loaded may be added.
//!
//! Not seen are numbers and addresses that go through memory, a call, or from one function to
//! another.

use std::ops::BitOr;

use foldhash::HashSet;
use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic as M, OpKind, Register};
use liveness::{LocSet, Reg};

use super::copied::taken;
use super::marks::StatementIdx;
use super::print::Obstacle;
use super::tie::Tie;
use crate::analyse::flow::effects::callee_saved;
use crate::analyse::routines;
use crate::analyse::survey::Survey;
use crate::encode::sites::SiteCode;
use crate::lift::{CodeIdx, Destination, Function, Inst, InstIdx, Lifted};
use crate::refusal::RefusalCode;
use crate::registers::gpr;

/// Finds jumps and calls to such addresses, if their section has sequences.
pub fn find(lifted: &Lifted<'_>, tie: &Tie, surveys: &[Survey], code: &SiteCode) -> Vec<Obstacle> {
    let sites = code.functions.iter().flat_map(|f| &f.sites);
    let moved: HashSet<CodeIdx> = sites.map(|site| lifted.inst(site.inst).section).collect();
    let functions = lifted.functions.iter();
    let functions = functions.filter(|function| moved.contains(&function.section));
    let jumps = functions.flat_map(|function| jumps(lifted, surveys, function));
    let obstacle = |at: InstIdx| Obstacle {
        at: tie.near(at).unwrap_or(StatementIdx(0)),
        code: RefusalCode::Statement,
        reason: "a jump to an address that the program counts from a label's: code that becomes \
                 longer is elsewhere; jump through a table of labels, or leave this file out"
            .to_owned(),
    };
    jumps.map(obstacle).collect()
}

/// Where a function jumps to, or calls, an address that it counted.
fn jumps(lifted: &Lifted<'_>, surveys: &[Survey], function: &Function) -> Vec<InstIdx> {
    let insts = || function.insts.clone().map(InstIdx);
    let goes = insts().filter_map(|i| Some((i, destination(lifted, i)?)));
    let goes: Vec<(InstIdx, Reg)> = goes.collect();
    let names_code = |i: InstIdx| taken(lifted, lifted.inst(i)).is_some();
    if goes.is_empty() || !insts().any(names_code) {
        return Vec::new();
    }
    let states = solve(lifted, surveys, function);
    let counted = |&(i, r): &(InstIdx, Reg)| {
        let state = &states[(i.0 - function.insts.start) as usize];
        state.of(r).has(Value::COUNTED)
    };
    goes.into_iter().filter(counted).map(|(i, _)| i).collect()
}

/// The register that an instruction jumps or calls by.
fn destination(lifted: &Lifted<'_>, i: InstIdx) -> Option<Reg> {
    let inst = lifted.inst(i);
    if let Some(Destination::Import(symbol)) = inst.target {
        return routines::indirect_thunk(lifted.symbol_name(symbol));
    }
    let goes = matches!(
        inst.iced.flow_control(),
        FlowControl::IndirectBranch | FlowControl::IndirectCall
    );
    gpr(inst.iced.op0_register()).filter(|_| goes && inst.iced.op0_kind() == OpKind::Register)
}

/// What a register may hold, on some path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Value(u8);

impl Value {
    /// Something loaded, or that came from elsewhere.
    const OTHER: Value = Value(0);
    /// The address of a label, or that and a distance that was loaded.
    const CODE: Value = Value(1);
    /// A number that the function computed.
    const NUMBER: Value = Value(2);
    /// An address that such a number was added to.
    const COUNTED: Value = Value(4);
    /// Zero, or all bits: clang's `-mspeculative-load-hardening` makes such of conditions, and spoils
    /// addresses by `or`.
    const MASK: Value = Value(8);

    fn has(self, other: Value) -> bool {
        self.0 & other.0 != 0
    }

    /// What arithmetic makes of this and a number.
    fn and_number(self) -> Value {
        match self.has(Value::CODE | Value::COUNTED) {
            true => Value::COUNTED,
            false => Value::NUMBER,
        }
    }

    /// This with some bits set.
    fn with_bits(self, other: Value) -> Value {
        let both = self | other;
        match both.has(Value::CODE) && !both.has(Value::NUMBER | Value::COUNTED) {
            true => Value::CODE,
            false if both == Value::MASK => Value::MASK,
            false => both.and_number(),
        }
    }

    /// The sum with another value.
    fn plus(self, other: Value) -> Value {
        let number = Value::NUMBER | Value::MASK;
        let counts = |a: Value, b: Value| a.has(Value::CODE) && b.has(number);
        let both = self | other;
        if both.has(Value::COUNTED) || counts(self, other) || counts(other, self) {
            return Value::COUNTED;
        }
        match both.has(Value::CODE) {
            true => Value::CODE,
            false => Value::NUMBER,
        }
    }
}

impl BitOr for Value {
    type Output = Value;

    fn bitor(self, other: Value) -> Value {
        Value(self.0 | other.0)
    }
}

/// What all registers may hold.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct State([Value; Reg::COUNT as usize]);

impl State {
    fn of(&self, register: Reg) -> Value {
        self.0[usize::from(register.number())]
    }

    /// What a register may hold that may be none.
    fn part(&self, register: Register) -> Value {
        gpr(register).map_or(Value::OTHER, |r| self.of(r))
    }

    fn or(&self, other: &State) -> State {
        State(std::array::from_fn(|n| self.0[n] | other.0[n]))
    }

    fn after(&self, lifted: &Lifted<'_>, i: InstIdx, survey: &Survey) -> State {
        let inst = lifted.inst(i);
        let iced = &inst.iced;
        let result = match taken(lifted, inst) {
            Some(_) => Value::CODE,
            None => self.result(inst),
        };
        let mut next = *self;
        for r in Reg::all().filter(|r| survey.writes(*r)) {
            let value = match is_result(iced, r) {
                true => result,
                false => implied(iced),
            };
            next.set(
                r,
                if keeps_part(iced) {
                    value | self.of(r)
                } else {
                    value
                },
            );
        }
        if routines::is_call(iced) {
            let kept = callee_saved();
            let lost = Reg::all().filter(|r| !kept.contains(LocSet::reg(*r)));
            lost.for_each(|r| next.set(r, Value::OTHER));
        }
        next
    }

    fn set(&mut self, register: Reg, value: Value) {
        self.0[usize::from(register.number())] = value;
    }

    /// What the result of an instruction is.
    fn result(&self, inst: &Inst) -> Value {
        let iced = &inst.iced;
        let first = self.part(iced.op0_register());
        let last = self.last(iced);
        match iced.mnemonic() {
            _ if makes_mask(iced) => Value::MASK,
            M::Mov | M::Movsxd | M::Movsx | M::Movzx | M::Movbe => last,
            M::Cdqe => self.of(Reg::RAX),
            M::Add => first.plus(last),
            M::Or => first.with_bits(last),
            // The distance of two labels.
            M::Sub if first == Value::CODE && last == Value::CODE => Value::OTHER,
            M::Lea => self.address(inst),
            M::Pop => Value::OTHER,
            M::Xchg => first | last,
            _ if is_conditional_move(iced) => first | last,
            _ => (first | last).and_number(),
        }
    }

    /// What the last operand holds.
    fn last(&self, iced: &Instruction) -> Value {
        let Some(last) = iced.op_count().checked_sub(1) else {
            return Value::OTHER;
        };
        match iced.op_kind(last) {
            OpKind::Register => self.part(iced.op_register(last)),
            OpKind::Memory => Value::OTHER,
            _ => Value::NUMBER,
        }
    }

    /// What `lea` computes.
    fn address(&self, inst: &Inst) -> Value {
        let iced = &inst.iced;
        if inst.displacement.is_some() || iced.is_ip_rel_memory_operand() {
            return Value::OTHER;
        }
        let (base, index) = (iced.memory_base(), self.part(iced.memory_index()));
        let sum = match (iced.memory_index(), iced.memory_index_scale()) {
            (Register::None, _) => self.part(base),
            (_, 1) => self.part(base).plus(index),
            _ => self.part(base).plus(index.and_number()),
        };
        match iced.memory_displacement64() {
            0 => sum,
            _ => sum.and_number(),
        }
    }
}

/// Whether a register holds the result of an instruction that writes it.
fn is_result(iced: &Instruction, register: Reg) -> bool {
    gpr(iced.op0_register()) == Some(register) || matches!(iced.mnemonic(), M::Cdqe | M::Xchg)
}

/// Whether what an instruction writes is zero, or all bits.
fn makes_mask(iced: &Instruction) -> bool {
    let is_last = |number: u64| iced.try_immediate(1).is_ok_and(|last| last == number);
    match iced.mnemonic() {
        M::Mov => is_last(0) || is_last(u64::MAX),
        M::Xor | M::Sbb => {
            iced.op0_register() == iced.op1_register() && !iced.op0_register().is_gpr8()
        }
        M::Sar => iced.op0_register().is_gpr64() && is_last(63),
        _ => false,
    }
}

fn is_conditional_move(iced: &Instruction) -> bool {
    iced.condition_code() != ConditionCode::None && iced.op_count() == 2
}

/// What an instruction writes to a register that is not its first operand.
fn implied(iced: &Instruction) -> Value {
    match iced.mnemonic() {
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => Value::OTHER,
        _ => Value::NUMBER,
    }
}

/// Whether a register that an instruction writes may hold something of before.
fn keeps_part(iced: &Instruction) -> bool {
    let r = iced.op0_register();
    r.is_gpr8() || r.is_gpr16()
}

/// What registers may hold before each instruction of a function.
fn solve(lifted: &Lifted<'_>, surveys: &[Survey], function: &Function) -> Vec<State> {
    let first = function.insts.start;
    let count = function.insts.len();
    let mut states = vec![State::default(); count];
    let mut work: Vec<u32> = function.insts.clone().rev().collect();
    while let Some(i) = work.pop() {
        let at = (i - first) as usize;
        let survey = &surveys[i as usize];
        let after = states[at].after(lifted, InstIdx(i), survey);
        for to in successors(lifted, InstIdx(i)).filter(|to| function.insts.contains(to)) {
            let known = &mut states[(to - first) as usize];
            let joined = known.or(&after);
            if joined != *known {
                *known = joined;
                work.push(to);
            }
        }
    }
    states
}

/// Where control goes on to in the object, without returning from a call.
fn successors(lifted: &Lifted<'_>, i: InstIdx) -> impl Iterator<Item = u32> {
    let inst = lifted.inst(i);
    let call = routines::is_call(&inst.iced);
    let runs_on = !matches!(
        inst.iced.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
    );
    let to = match inst.target {
        Some(Destination::Inst(to)) if !call => Some(to.0),
        _ => None,
    };
    to.into_iter().chain(runs_on.then_some(i.0 + 1))
}
