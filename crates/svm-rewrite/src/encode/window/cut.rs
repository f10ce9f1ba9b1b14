//! Accesses through a window of 42 bits: an address is cut in a register, and the operand
//! counts from the window's start. The sequences below are shown with `pext`, which changes no
//! flag; where the plan says so, it is `and` ([`CutBy`]).
//!
//! ```text
//!     pext  twin_window_mask(%rip), %base, %v
//!     op    %gs:d(%v)
//! ```
//!
//! `%v` serves later accesses through the same base, too: whatever their displacement is, it
//! is less than the guards ([`crate::plan`], reuse).

use iced_x86::{Code, Instruction, Register};
use liveness::Reg;

use super::{Emitter, FrameHere, Reached, lowered};
use crate::analyse::class::{Callee, Class, Space};
use crate::asm::encode::Form;
use crate::asm::import::Import;
use crate::asm::{
    Address, Base, Field, Index, Jump, Operand, Referent, Segment, Shape, mr, r, ri, rm,
};
use crate::lift::InstIdx;
use crate::plan::{CutBy, InstPlan};
use crate::registers::reg64;

impl Emitter<'_> {
    /// Writes an instruction whose class has a sequence here; whether it has.
    pub(super) fn through_cut(
        &mut self,
        i: InstIdx,
        plan: &InstPlan,
        here: &FrameHere<'_>,
    ) -> bool {
        match plan.class {
            Class::Memory(Space::Heap) => match here.return_address() {
                Some(distance) => self.cut_and_read_return_address(i, plan, distance),
                None if self.reads_rsp(i) => self.with_view_cut(i, plan),
                None => self.cut_access(i, plan),
            },
            Class::Prefetch(Space::Heap) => self.cut_access(i, plan),
            Class::Memory(space @ Space::PerCpu(_)) | Class::Prefetch(space @ Space::PerCpu(_)) => {
                self.memory(i, plan, space);
            }
            Class::Xlat => self.xlat(i, plan),
            Class::PushMemory(_) if !here.is_data() && self.by_itself(i, 0).is_none() => {
                self.push_cut(i, plan);
            }
            Class::PopMemory(_) if !here.is_data() && self.by_itself(i, 1).is_none() => {
                self.pop_cut(i, plan);
            }
            Class::CallIndirect(Callee::Memory(space @ Space::PerCpu(_))) => {
                self.indirect_cut(i, plan, space, Jump::Call);
            }
            Class::JumpIndirect(Callee::Memory(space @ Space::PerCpu(_))) => {
                self.indirect_cut(i, plan, space, Jump::Always);
            }
            _ => return false,
        }
        true
    }

    /// ```text
    ///     <open>
    ///     pext  twin_window_mask(%rip), %base, %v     unless an earlier one serves
    ///     <flags>                                     by `and`, where they are live
    ///     op    %gs:d(%v)
    ///     <close>
    /// ```
    fn cut_access(&mut self, i: InstIdx, plan: &InstPlan) {
        if let Some(reuse) = plan.reuse {
            let operand = self.translated(reuse.register, reuse.displacement.into());
            return self.access_at(i, &operand);
        }
        if self.is_on_stack(i) || self.by_itself(i, 0).is_some() {
            return self.in_window(i, plan);
        }
        self.open(plan);
        let v = Self::roles(plan)[0];
        let reached = self.cut_operand(i, plan.scratch.spilled().len() as i64, v, plan.cut);
        self.restore_flags(plan);
        self.access_reached(i, reached);
        self.close(plan);
    }

    /// The plan does not know that it is the return address, through a frame pointer: what it
    /// says of a register that holds the cut base has to be true.
    ///
    /// ```text
    ///     pext  twin_window_mask(%rip), %rbp, %v      unless an earlier one serves
    ///     mov   distance(%rsp), %reg
    /// ```
    fn cut_and_read_return_address(&mut self, i: InstIdx, plan: &InstPlan, distance: i64) {
        let simple = self.lifted.inst(i).operand().simple();
        if let (Some((base, _)), None, Some(v)) = (simple, plan.reuse, plan.dead_result()) {
            self.open(plan);
            self.cut(base, v, plan.cut);
            self.restore_flags(plan);
            self.close(plan);
        }
        self.read_return_address(i, plan, distance);
    }

    /// The operand of an instruction if its form keeps it in the window: on the stack by both
    /// prefixes, as in a window of 32 bits; at a constant by the prefix 65, where dom0's
    /// addresses are less than 2 GiB from 0.
    pub(super) fn without_cut(&self, i: InstIdx, pushed: i64) -> Option<Reached> {
        let inst = self.lifted.inst(i);
        let operand = inst.operand();
        if self.is_on_stack(i) {
            return Some(Reached {
                operand: lowered(operand.in_window(), pushed),
                displacement: self.low_half(i),
            });
        }
        let is_constant = operand.shape() == Shape::Constant && !operand.narrow;
        let is_constant = is_constant && !(inst.displacement.is_some() && inst.immediate.is_some());
        let fits = operand.relocated || i32::try_from(operand.displacement).is_ok();
        let displacement = inst.displacement.map(|value| {
            let referent = self.references.get(value).referent;
            (Field::Abs32S, referent)
        });
        (is_constant && fits).then_some(Reached {
            operand: Operand {
                segment: Some(Segment::Gs),
                base: Base::None,
                index: Index::None,
                displacement: match operand.relocated {
                    true => 0,
                    false => operand.displacement,
                },
                ..operand
            },
            displacement,
        })
    }

    /// Whether its operand is at a constant distance from `rsp`. The low 32 bits of that are the
    /// place on the data stack.
    fn is_on_stack(&self, i: InstIdx) -> bool {
        let operand = self.lifted.inst(i).operand();
        operand.base == Base::Register(Reg::RSP) && !operand.is_indexed_stack()
    }

    /// An instruction that reads `rsp` as a number, and memory through another register:
    ///
    /// ```text
    ///     pext  twin_window_mask(%rip), %base, %v     unless an earlier one serves
    ///     push  %t
    ///     movabs $twin_stack_view, %t
    ///     lea   8(%rsp,%t), %t
    ///     op    %t, %gs:d(%v)
    ///     pop   %t
    /// ```
    fn with_view_cut(&mut self, i: InstIdx, plan: &InstPlan) {
        if self.by_itself(i, 0).is_some() {
            return self.with_view(i, plan);
        }
        self.open(plan);
        let reached = match plan.reuse {
            Some(reuse) => Reached {
                operand: self.translated(reuse.register, reuse.displacement.into()),
                displacement: None,
            },
            None => {
                let pushed = plan.scratch.spilled().len() as i64;
                self.cut_operand(i, pushed, Self::roles(plan)[0], plan.cut)
            }
        };
        self.restore_flags(plan);
        let [t, _] = Self::borrowed(plan);
        self.push(t);
        self.view(t);
        self.with_register(i, t, Some(reached));
        self.pop(t);
        self.close(plan);
    }

    /// Any other operand, through `to`:
    ///
    /// ```text
    ///     pext  twin_window_mask(%rip), %base, %to    op  %gs:d(%to)
    /// ```
    ///
    /// ```text
    ///     lea   d(%base,%index,s), %to
    ///     pext  twin_window_mask(%rip), %to, %to      op  %gs:(%to)
    /// ```
    ///
    /// A sum with `rsp` as dom0 has the stack ([`Emitter::address`]).
    pub(super) fn cut_operand(&mut self, i: InstIdx, pushed: i64, to: Reg, by: CutBy) -> Reached {
        let operand = self.lifted.inst(i).operand();
        let displacement = match operand.simple() {
            Some((base, displacement)) => {
                self.cut(base, to, by);
                displacement
            }
            None => {
                let address = self.address(i, Space::Heap, pushed as usize, &[to]);
                self.cut_address(&address, to, by);
                0
            }
        };
        Reached {
            operand: self.translated(to, displacement),
            displacement: None,
        }
    }

    /// The place of an address, in `v`.
    pub(in crate::encode) fn cut_address(&mut self, address: &Address, v: Reg, by: CutBy) {
        match address {
            Address::Copy(from) => self.cut(*from, v, by),
            Address::Lea(..) | Address::Symbol(_) | Address::Constant(_) => {
                address.emit(&mut self.asm, v);
                self.cut(v, v, by);
            }
        }
    }

    /// The low 42 bits of `from` in `to`.
    ///
    /// ```text
    ///     pext  twin_window_mask(%rip), %from, %to
    /// ```
    ///
    /// or, where the flags are dead:
    ///
    /// ```text
    ///     mov   twin_window_mask(%rip), %to ; and %from, %to
    ///     and   twin_window_mask(%rip), %to              if from is to
    /// ```
    ///
    /// [`Emitter::cut_keeping_flags`] is for processors without `pext`.
    pub(super) fn cut(&mut self, from: Reg, to: Reg, by: CutBy) {
        match by {
            CutBy::Pext => self.extract(from, to),
            CutBy::And if from == to => self.with_mask(Form::AND, to),
            CutBy::And => {
                self.with_mask(Form::MOV, to);
                self.asm.registers(Form::AND, to, from);
            }
            CutBy::AndKeepingFlags => {
                if from != to {
                    self.mov(from, to);
                }
                self.cut_keeping_flags(to);
            }
        }
    }

    /// `and` where flags are live and no register is known to be free for them. `add` makes OF
    /// of the byte that `seto` left, `sahf` the rest:
    ///
    /// ```text
    ///     push  %rax                       if to is rax: push %rcx ; mov %rax, %rcx
    ///     lahf ; seto %al
    ///     and   twin_window_mask(%rip), %to              %rcx
    ///     add   $0x7f, %al ; sahf
    ///     pop   %rax                                     mov %rcx, %rax ; pop %rcx
    /// ```
    fn cut_keeping_flags(&mut self, to: Reg) {
        let (pushed, cut) = match to {
            Reg::RAX => (Reg::RCX, Reg::RCX),
            to => (Reg::RAX, to),
        };
        self.push(pushed);
        if cut != to {
            self.mov(to, cut);
        }
        self.emit(&Instruction::with(Code::Lahf));
        self.emit(&r(Code::Seto_rm8, Register::AL));
        self.with_mask(Form::AND, cut);
        self.emit(&ri(Code::Add_rm8_imm8, Register::AL, 0x7f));
        self.emit(&Instruction::with(Code::Sahf));
        if cut != to {
            self.mov(cut, to);
        }
        self.pop(pushed);
    }

    /// `pext twin_window_mask(%rip), %from, %to`: no flag is changed (SDM volume 2, PEXT:
    /// VEX.LZ.F3.0F38.W1 F5 /r). The mask is relative to `rip`, so it lies where the code is
    /// placed, wherever that is.
    fn extract(&mut self, from: Reg, to: Reg) {
        const DISPLACEMENT: usize = 5;
        let (from, to) = (from.number(), to.number());
        let start = self.asm.here();
        self.asm.raw(&[
            0xc4,
            !(to >> 3) << 7 | 0x62,
            0x82 | (!from & 0xf) << 3,
            0xf5,
            (to & 7) << 3 | 5,
            0,
            0,
            0,
            0,
        ]);
        let mask = Referent::Import(Import::WindowMask, 0);
        let field = Field::Data32 { behind: 0 };
        self.asm.refer(start, DISPLACEMENT, field, mask);
    }

    /// `op twin_window_mask(%rip), %to`
    fn with_mask(&mut self, form: Form, to: Reg) {
        self.asm
            .relative(form, to, Referent::Import(Import::WindowMask, 0));
    }

    /// The word goes to the control stack, so the register is kept on the data stack, below
    /// what either has:
    ///
    /// ```text
    ///     mov   %t, %gs:-8(%esp)
    ///     <address> -> %t ; pext twin_window_mask(%rip), %t, %t
    ///     push  %gs:d(%t)
    ///     mov   %gs:(%esp), %t
    /// ```
    fn push_cut(&mut self, i: InstIdx, plan: &InstPlan) {
        let [t, _] = Self::borrowed(plan);
        self.keep_below(t, -8);
        let reached = self.cut_operand(i, 0, t, self.cut_apart(plan));
        self.access_reached(i, reached);
        self.restore_kept(t, 0);
    }

    /// ```text
    ///     mov   %t, %gs:-8(%esp)
    ///     <address> -> %t ; pext twin_window_mask(%rip), %t, %t
    ///     pop   %gs:d(%t)
    ///     mov   %gs:-16(%esp), %t
    /// ```
    fn pop_cut(&mut self, i: InstIdx, plan: &InstPlan) {
        let [t, _] = Self::borrowed(plan);
        self.keep_below(t, -8);
        // An `rsp` in the operand counts 8 more (SDM volume 2, POP).
        let reached = self.cut_operand(i, 1, t, self.cut_apart(plan));
        self.access_reached(i, reached);
        self.restore_kept(t, -16);
    }

    fn keep_below(&mut self, t: Reg, distance: i64) {
        let word = Operand::at(Reg::RSP, distance).in_window();
        self.emit(&mr(Code::Mov_rm64_r64, word, reg64(t)));
    }

    fn restore_kept(&mut self, t: Reg, distance: i64) {
        let word = Operand::at(Reg::RSP, distance).in_window();
        self.emit(&rm(Code::Mov_r64_rm64, reg64(t), word));
    }

    /// Through a pointer of dom0's CPU:
    ///
    /// ```text
    ///     <address> -> %v ; pext twin_window_mask(%rip), %v, %v
    ///     mov   %gs:(%v), %r11
    ///     call  twin_stlb_call              jmp for a tail call
    /// ```
    fn indirect_cut(&mut self, i: InstIdx, plan: &InstPlan, space: Space, jump: Jump) {
        self.across(plan, |e| {
            let roles = Self::roles(plan);
            e.open(plan);
            let address = e.address(i, space, plan.scratch.spilled().len(), &roles);
            e.cut_address(&address, roles[0], e.cut_apart(plan));
            let callee = e.translated(roles[0], 0);
            e.emit(&rm(Code::Mov_r64_rm64, reg64(super::TARGET), callee));
            e.close(plan);
            e.transfer(jump);
        });
    }
}
