//! Jumps through tables (`analyse/switches`).

use iced_x86::Code;
use liveness::Reg;

use super::{Emitter, Indirect};
use crate::analyse::class::Callee;
use crate::analyse::flow::Trap;
use crate::analyse::switches::{Case, Switch};
use crate::asm::import::Import;
use crate::asm::{Field, Jump, Label, Operand, Referent, rm};
use crate::lift::{CodeIdx, Destination, InstIdx, RelocatedValue};
use crate::plan::InstPlan;
use crate::registers::reg64;

/// Most labels that are compared one after the other.
const FEW: usize = 2;
/// The register that has what the table holds, and from where that counts, if it is a sum.
type By = (Reg, Option<RelocatedValue>);

/// Conditions as `jcc` has them (SDM volume 2, B.1.4.7).
pub(super) const EQUAL: Jump = Jump::If(4);
const ABOVE: Jump = Jump::If(7);

impl Emitter<'_> {
    /// What the table holds is compared with each case, halving them each time:
    ///
    /// ```text
    ///         <address> <check> -> %v ; mov (%v), %v       unless a register holds it
    ///         cmp   $value, %v                 the middle case
    ///         je    case
    ///         ja    .Lupper
    ///         ...                              the lower cases
    /// .Lupper: ...                             the upper ones
    /// .Lnone: ud2                              it is none of them
    ///         jmp   __x86_indirect_thunk_<reg>     if it was one: never reached, but the
    ///                                              kernel's table names it
    /// ```
    ///
    /// Every branch is direct, so nothing has to be proved of the table.
    pub fn switch(&mut self, i: InstIdx, plan: &InstPlan, switch: &Switch) {
        let register = match switch.callee {
            Callee::Register(r) => r,
            Callee::Memory(space) => {
                let roles = Self::roles(plan);
                let v = roles[0];
                if !self.scheme.has_checks() {
                    self.load_operand(i, plan, 0, v);
                    return self.switch_on(i, v, switch);
                }
                self.open(plan);
                let address = self.address(i, space, plan.scratch.spilled().len(), &roles);
                self.check(i, address, v, &roles[1..]);
                self.emit(&rm(Code::Mov_r64_rm64, reg64(v), Operand::at(v, 0)));
                self.close(plan);
                v
            }
        };
        self.switch_on(i, register, switch);
    }

    /// The comparisons, of a register.
    fn switch_on(&mut self, i: InstIdx, register: Reg, switch: &Switch) {
        // The order of addresses is known within a section only.
        let section = |case: &Case| self.lifted.inst(case.to).section;
        for cases in switch.cases.chunk_by(|a, b| section(a) == section(b)) {
            let none = self.labels.fresh();
            self.compare(i, (register, switch.from), cases, none, true);
            self.place(none);
        }
        match self.rules.indirect {
            Indirect::Runtime => self.trap(Trap::Bug),
            Indirect::Register | Indirect::RedZone => self.stop(),
        }
        if let (true, Some(Destination::Import(s))) = (
            self.rules.keeps_calls && !self.prints,
            self.lifted.inst(i).target,
        ) {
            self.thunks.push((i, self.asm.here()));
            self.raw_branch(i, Referent::Import(Import::Routine(s), 0));
        }
    }

    /// Goes to the case whose address is in a register, or to `none`, which follows if it
    /// `runs_on`.
    fn compare(&mut self, i: InstIdx, by: By, cases: &[Case], none: Label, runs_on: bool) {
        if cases.len() <= FEW {
            for case in cases {
                self.compare_with(by, case);
                self.go(i, EQUAL, case.to);
            }
            if !runs_on {
                self.asm.branch(Jump::Always, none);
            }
            return;
        }
        let (lower, upper) = cases.split_at(cases.len() / 2);
        let (middle, upper) = upper.split_first().expect("more than a few");
        let above = self.labels.fresh();
        self.compare_with(by, middle);
        self.go(i, EQUAL, middle.to);
        self.asm.branch(ABOVE, above);
        self.compare(i, by, lower, none, false);
        self.place(above);
        self.compare(i, by, upper, none, runs_on);
    }

    /// ```text
    ///     cmp   $value, %reg               what the table holds for the case
    /// ```
    ///
    /// Where the table is dom0's, that is the address in the original's code; where it is
    /// the module's own, the case's number ([`Rules::numbers_cases`]), counted from where the
    /// words count, if they are distances.
    fn compare_with(&mut self, (register, from): By, case: &Case) {
        const FIELD: usize = 3;
        let number = register.number();
        let start = self.asm.here();
        self.asm.raw(&[0x48 | number >> 3, 0x81, 0xf8 | number & 7]);
        if let (true, None) = (self.rules.numbers_cases, from) {
            return self.asm.raw(&case.number.to_le_bytes());
        }
        let to = self.lifted.inst(case.to);
        let section = self.lifted.sections[usize::from(to.section.0)].id;
        let address = match from.filter(|_| self.rules.numbers_cases) {
            Some(from) => {
                let addend = from.addend + i64::from(case.number);
                Referent::Import(Import::Own(from.symbol), addend)
            }
            None => Referent::Import(Import::Section(section), to.offset() as i64),
        };
        self.asm.raw(&[0; 4]);
        self.asm.refer(start, FIELD, Field::Abs32S, address);
    }

    /// A branch to an instruction of the same function, which may be in two sections.
    fn go(&mut self, i: InstIdx, jump: Jump, to: InstIdx) {
        let near = self.lifted.inst(to).section == CodeIdx(self.section);
        match near || self.prints {
            true => {
                let label = self.jump_target(i, to);
                self.asm.branch(jump, label);
            }
            false => {
                let label = self.target(to);
                self.asm.branch_out(jump, Referent::Label(label));
            }
        }
    }
}
