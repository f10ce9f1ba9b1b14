//! The two stacks of a scheme with a window (`docs/spec/window.md`): `call ret push pop` use
//! the control stack, which no pointer reaches; a word that pointers may reach is at the same
//! `rsp` on the data stack, in the window.

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use liveness::Reg;

use super::{Emitter, FrameHere, Reached, lowered};
use crate::asm::import::Import;
use crate::asm::{Address, Base, Index, Operand, Segment, mr, rm, rr};
use crate::frame::words::mixes_word;
use crate::lift::InstIdx;
use crate::plan::InstPlan;
use crate::registers::{gpr, reg64};

impl Emitter<'_> {
    /// The function's own return address is read where it is, on the control stack:
    ///
    /// ```text
    ///     mov   distance(%rsp), %reg
    /// ```
    ///
    /// or, where it is mixed into a number:
    ///
    /// ```text
    ///     push  %t
    ///     mov   8+distance(%rsp), %t
    ///     xor   %t, %reg
    ///     pop   %t
    /// ```
    pub(super) fn read_return_address(&mut self, i: InstIdx, plan: &InstPlan, distance: i64) {
        let iced = self.lifted.inst(i).iced;
        let to = iced.op0_register();
        if !mixes_word(&iced) {
            return self.emit(&rm(Code::Mov_r64_rm64, to, Operand::at(Reg::RSP, distance)));
        }
        let [t, _] = Self::borrowed(plan);
        self.push(t);
        let word = Operand::at(Reg::RSP, distance + 8 * self.words);
        self.emit(&rm(Code::Mov_r64_rm64, reg64(t), word));
        self.emit(&rr(iced.code(), to, reg64(t)));
        self.pop(t);
    }

    /// An instruction without an operand in memory, which may use the stack.
    pub(super) fn stack_word(&mut self, i: InstIdx, plan: &InstPlan, here: &FrameHere<'_>) {
        let iced = here.iced;
        let whole = iced.op1_kind() == OpKind::Register && iced.op1_register() == Register::RSP;
        match iced.mnemonic() {
            Mnemonic::Push if iced.op0_register() == Register::RSP => self.push_view(plan),
            Mnemonic::Push if here.is_data() => self.push_to_data(i),
            Mnemonic::Pop if here.is_data() => self.pop_from_data(iced.op0_register()),
            Mnemonic::Mov if whole => self.address_on_stack(i, plan),
            Mnemonic::Lea
                if iced.memory_base() == Register::RSP && iced.op0_register() != Register::RSP =>
            {
                self.address_on_stack(i, plan);
            }
            _ if self.reads_rsp(i) => self.with_view(i, plan),
            _ => self.copy_inst(i),
        }
    }

    /// Whether the last operand is `rsp`, as a number.
    pub(super) fn reads_rsp(&self, i: InstIdx) -> bool {
        let iced = &self.lifted.inst(i).iced;
        iced.op_count() == 2
            && iced.op1_kind() == OpKind::Register
            && iced.op1_register() == Register::RSP
    }

    /// An instruction that reads `rsp` as a number gets dom0's address of the same place:
    ///
    /// ```text
    ///     push  %t
    ///     movabs $twin_stack_view, %t
    ///     lea   8(%rsp,%t), %t
    ///     add   %t, %reg                    or into the window, as `mov %rsp,8(%rsp)`
    ///     pop   %t
    /// ```
    pub(super) fn with_view(&mut self, i: InstIdx, plan: &InstPlan) {
        let [t, _] = Self::borrowed(plan);
        let is_memory = self.lifted.inst(i).iced.op0_kind() == OpKind::Memory;
        self.push(t);
        self.view(t);
        let words = self.words;
        let reached = is_memory.then(|| self.by_itself(i, words).expect("it needs no register"));
        self.with_register(i, t, reached);
        self.pop(t);
    }

    /// The instruction with `t` for the `rsp` that it reads.
    pub(super) fn with_register(&mut self, i: InstIdx, t: Reg, reached: Option<Reached>) {
        let mut iced = self.lifted.inst(i).iced;
        iced.set_op1_register(reg64(t));
        if let Some(reached) = &reached {
            reached.operand.replace_in(&mut iced);
        }
        let displacement = reached.and_then(|reached| reached.displacement);
        self.asm.inst_referring(&iced, displacement, None);
    }

    /// ```text
    ///     push  %t
    ///     movabs $twin_stack_view, %t
    ///     lea   8(%rsp,%t), %t
    ///     mov   %t, %gs:(%esp)
    ///     pop   %t
    ///     lea   -8(%rsp), %rsp
    /// ```
    fn push_view(&mut self, plan: &InstPlan) {
        let [t, _] = Self::borrowed(plan);
        self.push(t);
        self.view(t);
        self.emit(&mr(Code::Mov_rm64_r64, TOP, reg64(t)));
        self.pop(t);
        self.lea(&Operand::at(Reg::RSP, -8), Reg::RSP);
    }

    /// Dom0's address of the word that was on top of the stack before the sequence.
    pub(super) fn view(&mut self, t: Reg) {
        self.constant(Import::StackView, t);
        let pushed = 8 * self.words;
        self.lea(&Operand::indexed(Reg::RSP, t, 0).plus(pushed), t);
    }

    /// ```text
    ///     lea   -8(%rsp), %rsp
    ///     mov   %reg, %gs:(%esp)            or the immediate
    /// ```
    fn push_to_data(&mut self, i: InstIdx) {
        let inst = self.lifted.inst(i);
        self.lea(&Operand::at(Reg::RSP, -8), Reg::RSP);
        if inst.iced.op0_kind() == OpKind::Register {
            return self.emit(&mr(Code::Mov_rm64_r64, TOP, inst.iced.op0_register()));
        }
        let immediate = inst.iced.immediate(0) as i32;
        let store = Instruction::with2(Code::Mov_rm64_imm32, TOP.for_iced(), immediate);
        let reference = inst.immediate.map(|value| self.references.get(value));
        let reference = reference.map(|reference| (reference.field, reference.referent));
        self.asm
            .inst_with(&store.expect("an immediate of 32 bits"), reference);
    }

    /// ```text
    ///     mov   %gs:(%esp), %reg
    ///     lea   8(%rsp), %rsp
    /// ```
    fn pop_from_data(&mut self, to: Register) {
        self.emit(&rm(Code::Mov_r64_rm64, to, TOP));
        self.lea(&Operand::at(Reg::RSP, 8), Reg::RSP);
    }

    /// `mov %rsp,%reg`, `lea d(%rsp,%index,s),%reg`: where dom0 has the data stack.
    ///
    /// ```text
    ///     movabs $twin_stack_view, %reg
    ///     lea   d(%rsp,%reg), %reg
    /// ```
    ///
    /// With an index, `lea d(%reg,%index,s), %reg ; lea (%rsp,%reg), %reg` instead of the
    /// second; where the index is `%reg` itself:
    ///
    /// ```text
    ///     lea   d(%rsp,%reg,s), %reg
    ///     push  %t ; movabs $twin_stack_view, %t ; lea (%reg,%t), %reg ; pop %t
    /// ```
    fn address_on_stack(&mut self, i: InstIdx, plan: &InstPlan) {
        let inst = self.lifted.inst(i);
        let operand = match inst.iced.mnemonic() {
            Mnemonic::Lea => inst.operand(),
            _ => Operand::at(Reg::RSP, 0),
        };
        let to = gpr(inst.iced.op0_register()).expect("a general register");
        match operand.index {
            Index::Register(index, _) if index == to => {
                let [t, _] = Self::borrowed(plan);
                self.lea(&operand, to);
                self.push(t);
                self.constant(Import::StackView, t);
                self.lea(&Operand::indexed(to, t, 0), to);
                self.pop(t);
            }
            Index::Register(..) => self.sum_on_stack(&Address::Lea(operand, None), to),
            Index::None | Index::Vector => {
                self.constant(Import::StackView, to);
                let indexed = Operand {
                    index: Index::Register(to, 0),
                    ..operand
                };
                self.lea(&indexed, to);
            }
        }
    }

    /// Dom0's address of an operand with `rsp` and an index, which is not `to`:
    ///
    /// ```text
    ///     movabs $twin_stack_view, %to
    ///     lea   d(%to,%index,s), %to
    ///     lea   (%rsp,%to), %to
    /// ```
    pub(in crate::encode) fn sum_on_stack(&mut self, address: &Address, to: Reg) {
        let Address::Lea(operand, symbol) = address else {
            unreachable!("it has registers");
        };
        self.constant(Import::StackView, to);
        let shifted = Operand {
            base: Base::Register(to),
            ..*operand
        };
        Address::Lea(shifted, *symbol).emit(&mut self.asm, to);
        self.lea(&Operand::indexed(Reg::RSP, to, 0), to);
    }

    /// `push` of an operand to the data stack, through any register:
    ///
    /// ```text
    ///     push  %t
    ///     mov   %gs:operand, %t
    ///     mov   %t, %gs:(%esp)
    ///     pop   %t
    ///     lea   -8(%rsp), %rsp
    /// ```
    ///
    /// The function's own return address is on the control stack: `mov distance(%rsp), %t`.
    pub(super) fn push_memory_to_data(
        &mut self,
        i: InstIdx,
        plan: &InstPlan,
        return_address: Option<i64>,
    ) {
        let [t, _] = Self::borrowed(plan);
        self.push(t);
        match return_address {
            Some(distance) => {
                let word = Operand::at(Reg::RSP, distance + 8 * self.words);
                self.emit(&rm(Code::Mov_r64_rm64, reg64(t), word));
            }
            None => self.load_operand(i, plan, self.words, t),
        }
        self.emit(&mr(Code::Mov_rm64_r64, TOP, reg64(t)));
        self.pop(t);
        self.lea(&Operand::at(Reg::RSP, -8), Reg::RSP);
    }

    /// `pop` of a word on the data stack into an operand. An `rsp` in it counts 8 more
    /// (SDM volume 2, POP).
    ///
    /// ```text
    ///     push  %t
    ///     mov   %gs:8(%esp), %t
    ///     mov   %t, %gs:operand
    ///     pop   %t
    ///     lea   8(%rsp), %rsp
    /// ```
    ///
    /// Another register is pushed before if the operand's address is cut in one.
    pub(super) fn pop_data_to_memory(&mut self, i: InstIdx, plan: &InstPlan) {
        let [t, u] = Self::borrowed(plan);
        let cuts = self.by_itself(i, 0).is_none();
        if cuts {
            self.push(u);
        }
        self.push(t);
        let popped = lowered(TOP, self.words);
        self.emit(&rm(Code::Mov_r64_rm64, reg64(t), popped));
        let reached = self.reached(i, plan, self.words + 1, u);
        let store = mr(Code::Mov_rm64_r64, reached.operand, reg64(t));
        self.asm.inst_referring(&store, reached.displacement, None);
        self.pop(t);
        if cuts {
            self.pop(u);
        }
        self.lea(&Operand::at(Reg::RSP, 8), Reg::RSP);
    }

    /// ```text
    ///     lea   distance(%rsp), %rsp
    ///     pop   %rbp                        for leave; from the data stack as above
    /// ```
    pub(super) fn frame_pointer_to_two_stacks(&mut self, i: InstIdx, distance: i64, is_data: bool) {
        if !is_data {
            return self.frame_pointer_to_stack(i, distance);
        }
        self.lea(&Operand::at(Reg::RSP, distance), Reg::RSP);
        self.pop_from_data(Register::RBP);
    }
}

/// The word on top of the data stack: `%gs:(%esp)`.
const TOP: Operand = Operand {
    segment: Some(Segment::Gs),
    base: Base::Register(Reg::RSP),
    index: Index::None,
    displacement: 0,
    relocated: false,
    narrow: true,
};
