//! The values of registers after an instruction: a copy gets the name of its source,
//! arithmetic takes a value to its next stage ([`super::stages`]), and any other written
//! register is unknown.

use super::stages::{context_top, covered_forward, mask, plus, shift};
use super::{Broken, Step, broken};
use crate::domain::{Again, Flags, Form, Value};
use crate::findings::ViolationCode;
use crate::insn::{Alu, Gpr, GprSet, Sum};
use crate::targets::Frames;

/// `rsp` is set to an unknown value: the path ends.
fn rsp_lost() -> Result<(), Broken> {
    broken(
        ViolationCode::StackPointer,
        "%rsp is written with something not constant",
    )
}

impl Step<'_> {
    /// Makes the registers that the instruction writes unknown.
    pub(super) fn clobber(&mut self) -> Result<(), Broken> {
        self.state.clobber(self.insn.writes);
        match self.insn.writes.has(Gpr::RSP) {
            true => rsp_lost(),
            false => Ok(()),
        }
    }

    /// `%d` gets a value that the instruction is known to give.
    pub(super) fn set(&mut self, d: Gpr, value: Value) -> Result<(), Broken> {
        if d == Gpr::RSP {
            return self.set_rsp(value.form);
        }
        self.state.write(d, value);
        Ok(())
    }

    /// `rsp` gets a value: it has to be one that is followed.
    fn set_rsp(&mut self, form: Form) -> Result<(), Broken> {
        match form.trusted().in_frame() {
            true => self.move_rsp_to(form),
            false => rsp_lost(),
        }
    }

    //      mov %t, %v          # both hold the address that is named here
    pub(super) fn copy(&mut self, d: Gpr, s: Gpr) -> Result<(), Broken> {
        if d == Gpr::RSP {
            return self.set_rsp(self.state.get(s).form);
        }
        if let Some(name) = self.name {
            self.state.name(s, name);
        }
        let (name, form) = (self.name, self.state.get(s).form);
        self.set(d, Value { name, form })
    }

    //      mov %vd, %id        # the address's low half
    pub(super) fn copy32(&mut self, d: Gpr, s: Gpr) -> Result<(), Broken> {
        if s == Gpr::RSP || d == Gpr::RSP {
            return self.clobber();
        }
        let name = match (self.state.get(s).name, self.name) {
            (Some(name), _) => name,
            (None, Some(name)) => {
                self.state.name(s, name);
                name
            }
            (None, None) => return self.set(d, Value::ANY),
        };
        self.set(d, Value::of(Form::Low32(name)))
    }

    /// `%d` gets a value that the instruction computed from `inputs`, and names.
    pub(super) fn computed(&mut self, d: Gpr, inputs: GprSet, form: Form) -> Result<(), Broken> {
        let Some(name) = self.name else {
            return self.set(d, Value::of(form));
        };
        self.state.rename(name);
        self.set(
            d,
            Value {
                name: Some(name),
                form,
            },
        )?;
        if !inputs.has(d) {
            self.state.again = Some(Again { name, inputs });
        }
        Ok(())
    }

    //      lea ADDRESS, %v
    //      lea disp(%rsp), %r
    //      lea (%rdi,%t), %rdi # a window pointer
    pub(super) fn lea(&mut self, d: Gpr, inputs: GprSet, sum: Sum) -> Result<(), Broken> {
        let form = |r| self.state.get(r).form;
        let result = match sum {
            Sum::Offset(base, disp) => form(base).moved(disp),
            Sum::Registers(a, b) => self.laws.scheme.sum(form(a), form(b)),
            Sum::Other => None,
        };
        match (d, result) {
            (Gpr::RSP, Some(at)) if at.trusted().in_frame() => self.move_rsp_to(at),
            (Gpr::RSP, _) => self.clobber(),
            (_, result) => self.computed(d, inputs, result.unwrap_or(Form::Any)),
        }
    }

    //      mov twin_window_mask(%rip), %v
    //      and %rdi, %v        # no more than either
    pub(super) fn and(&mut self, d: Gpr, s: Gpr) -> Result<(), Broken> {
        let place = |r| self.laws.scheme.is_place(self.state.get(r).form);
        let form = match place(d) || place(s) {
            true => Form::Place,
            false => Form::Any,
        };
        self.set(d, Value::of(form))
    }

    //      mov %edi, %edi
    //      not %edi
    //      and $63, %edi       # known better already
    pub(super) fn low_halves(&mut self) {
        for r in self.insn.low.iter() {
            let Value { name, form } = self.state.get(r);
            if !form.is_low_half() {
                let form = Form::LowHalf;
                self.state.write(r, Value { name, form });
            }
        }
    }

    pub(super) fn arithmetic(
        &mut self,
        op: Alu,
        d: Gpr,
        imm: i32,
        wide: bool,
    ) -> Result<(), Broken> {
        let before = self.state.get(d);
        if op == Alu::Cmp {
            let says = self.laws.scheme.compared(d, before.form, imm, wide);
            self.state.flags = says.unwrap_or(Flags::Unknown);
            return Ok(());
        }
        let aligns = d == Gpr::RSP && op == Alu::And && wide;
        if aligns && self.laws.rules.frames == Frames::Compiled {
            return self.realign(before.form, imm);
        }
        let form = match op {
            Alu::And => mask(before, imm, wide),
            Alu::Shr if wide && self.laws.scheme.is_shifted_out(imm) => Form::Place,
            Alu::Shr => shift(before, imm, wide),
            Alu::Xor => covered_forward(before.form, imm),
            Alu::Add => plus(before.form, imm, wide),
            Alu::Sub => imm
                .checked_neg()
                .map_or(Form::Any, |imm| plus(before.form, imm, wide)),
            Alu::Or => context_top(before.form, imm, wide),
            Alu::Cmp => Form::Any,
        };
        self.set(d, Value::of(form))
    }

    //      xchg %b, %a
    //
    // Of the values nothing is known then, but which address is where.
    pub(super) fn exchange(&mut self, a: Gpr, b: Gpr) -> Result<(), Broken> {
        let exchanged = self.state.addresses.exchanged(a, b);
        self.clobber()?;
        self.state.addresses.join(exchanged);
        Ok(())
    }

    //      cmp %m, %n
    //      cmova %m, %n        # n = min(n, m)
    pub(super) fn move_if_above(&mut self, d: Gpr, s: Gpr) -> Result<(), Broken> {
        let (old, new) = (self.state.get(d).form, self.state.get(s).form);
        let form = match self.state.flags == (Flags::Compared { left: d, right: s }) {
            true => old.minimum(new),
            false => Form::Any,
        };
        self.set(d, Value::of(form))
    }
}
