//! Lengths of code that a program computes from addresses, as it does to copy the code:
//!
//! ```text
//!     lea 1b(%rip), %rdx
//!     lea 0b(%rip), %rax
//!     sub %rax, %rdx          bytes to copy, or the byte to change in the copy
//! ```
//!
//! A sequence is no copy of itself elsewhere: it reaches its table and its slow path by their
//! distance. libswscale makes code that scales pictures in this way. A computed goto adds what
//! it has subtracted, and stays right: a function that jumps by a register may subtract places
//! of its own.
//!
//! Not seen are addresses that go through memory, a call or a jump, and lengths that the
//! assembler computes (`mov $1b-0b, %ecx`).

use std::ops::Range;

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};
use liveness::Reg;

use super::marks::StatementIdx;
use super::print::Obstacle;
use super::reached::displaced_place;
use super::tie::Tie;
use crate::analyse::survey::Survey;
use crate::encode::sites::SiteCode;
use crate::lift::{CodeIdx, Function, Inst, InstIdx, Lifted};
use crate::refusal::RefusalCode;
use crate::registers::gpr;

/// An address of code.
type Place = (CodeIdx, u64);

/// Finds such lengths, if sequences are between the two addresses.
pub fn find(lifted: &Lifted<'_>, tie: &Tie, surveys: &[Survey], code: &SiteCode) -> Vec<Obstacle> {
    let functions = lifted.functions.iter();
    let lengths = functions.flat_map(|f| lengths(lifted, surveys, f));
    let found = lengths.filter(|(_, between)| {
        let mut sites = code.functions.iter().flat_map(|f| &f.sites);
        sites.any(|site| {
            let inst = lifted.inst(site.inst);
            inst.section == between.0 && between.1.contains(&inst.offset())
        })
    });
    let obstacle = |(at, _): (InstIdx, _)| Obstacle {
        at: tie.near(at).unwrap_or(StatementIdx(0)),
        code: RefusalCode::Statement,
        reason: "a length of code that the program computes, as it does to copy the code: a \
                 sequence cannot be copied; leave this file out"
            .to_owned(),
    };
    found.map(obstacle).collect()
}

/// Where a function subtracts an address of code from another one, and what is between them.
fn lengths(
    lifted: &Lifted<'_>,
    surveys: &[Survey],
    function: &Function,
) -> Vec<(InstIdx, (CodeIdx, Range<u64>))> {
    let insts = || function.insts.clone().map(InstIdx);
    let jumps = |i: InstIdx| lifted.inst(i).iced.flow_control() == FlowControl::IndirectBranch;
    let taken = insts().filter(|i| taken(lifted, lifted.inst(*i)).is_some());
    if taken.take(2).count() < 2 {
        return Vec::new();
    }
    let goes = insts().any(jumps);
    let is_own = |(code, at): Place| {
        code == function.section && (function.start..=function.end).contains(&at)
    };
    let mut held = Held::default();
    let mut found = Vec::new();
    for i in insts() {
        let inst = lifted.inst(i);
        if let Some((to, from)) = held.subtracted(&inst.iced)
            && to.0 == from.0
            && !(goes && is_own(to) && is_own(from))
        {
            found.push((i, (to.0, from.1.min(to.1)..from.1.max(to.1))));
        }
        held.after(lifted, inst, &surveys[i.0 as usize]);
    }
    found
}

/// The address of code that an instruction puts into a register.
pub fn taken(lifted: &Lifted<'_>, inst: &Inst) -> Option<Place> {
    match (inst.iced.mnemonic(), inst.immediate) {
        (Mnemonic::Lea, _) => displaced_place(lifted, inst),
        (Mnemonic::Mov, Some(value)) => {
            let value = lifted.value(value);
            lifted.code_place(value.symbol, value.addend)
        }
        _ => None,
    }
}

/// The addresses of code in registers, along a path without jumps.
#[derive(Default)]
struct Held([Option<Place>; Reg::COUNT as usize]);

impl Held {
    fn of(&self, register: Option<Reg>) -> Option<Place> {
        self.0[usize::from(register?.number())]
    }

    /// The addresses whose difference an instruction makes.
    fn subtracted(&self, iced: &Instruction) -> Option<(Place, Place)> {
        let (to, from) = registers(iced).filter(|_| iced.mnemonic() == Mnemonic::Sub)?;
        self.of(Some(to)).zip(self.of(Some(from)))
    }

    fn after(&mut self, lifted: &Lifted<'_>, inst: &Inst, survey: &Survey) {
        let iced = &inst.iced;
        if !matches!(
            iced.flow_control(),
            FlowControl::Next | FlowControl::ConditionalBranch
        ) {
            *self = Held::default();
            return;
        }
        if moves_by_number(iced) {
            return;
        }
        let copied = registers(iced).filter(|_| iced.mnemonic() == Mnemonic::Mov);
        let value = taken(lifted, inst).or_else(|| self.of(copied.map(|(_, from)| from)));
        for register in Reg::all().filter(|r| survey.writes(*r)) {
            let is_result = gpr(iced.op0_register()) == Some(register);
            self.0[usize::from(register.number())] = value.filter(|_| is_result);
        }
    }
}

/// The two registers that an instruction has for operands.
fn registers(iced: &Instruction) -> Option<(Reg, Reg)> {
    let two = iced.op_count() == 2
        && iced.op0_kind() == OpKind::Register
        && iced.op1_kind() == OpKind::Register;
    two.then_some(())?;
    gpr(iced.op0_register()).zip(gpr(iced.op1_register()))
}

/// Whether what a register holds stays an address beside the same code: `dec %rax`.
fn moves_by_number(iced: &Instruction) -> bool {
    match iced.mnemonic() {
        Mnemonic::Inc | Mnemonic::Dec => iced.op0_kind() == OpKind::Register,
        Mnemonic::Add | Mnemonic::Sub => {
            iced.op0_kind() == OpKind::Register
                && !matches!(iced.op1_kind(), OpKind::Register | OpKind::Memory)
        }
        _ => false,
    }
}
