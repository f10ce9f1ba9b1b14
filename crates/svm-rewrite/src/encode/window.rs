//! The sequences of a scheme with a window and two stacks (`docs/spec/window.md`). Classes
//! that no sequence here mentions are written as under any other scheme.
//!
//! An operand goes to the window by the prefixes 65 and 67: base and index become 32 bits
//! wide, all else stays. So most accesses need no register and change no flag.

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use liveness::Reg;

use super::Emitter;
use crate::analyse::class::{Callee, Class, Direction, Repeat, Space, StringOp};
use crate::asm::import::Import;
use crate::asm::{Base, Field, Index, Jump, Operand, Referent, Segment, movabs, mr, r, rm, rr};
use crate::lift::InstIdx;
use crate::plan::InstPlan;
use crate::registers::{gpr, reg32, reg64, register_operands};

/// The register in which `twin_stlb_call` takes an address.
const TARGET: Reg = Reg::R11;

/// What a sequence has to know of the frame at its instruction.
pub struct FrameHere {
    /// Whether the word that it pushes or pops is on the data stack.
    pub is_data: bool,
    /// How far `rsp` moves, of [`Class::FramePointerToStack`].
    pub distance: Option<i64>,
    /// The direction of string instructions.
    pub direction: Option<Direction>,
    /// How far above `rsp` the return address is that it loads.
    pub return_address: Option<i64>,
}

impl Emitter<'_> {
    /// Writes an instruction whose class has a sequence here; whether it has.
    pub fn through_window(&mut self, i: InstIdx, plan: &InstPlan, here: &FrameHere) -> bool {
        let known = || here.direction.expect("checked before anything was written");
        match plan.class {
            Class::Plain => self.stack_word(i, here.is_data),
            Class::Memory(Space::PerCpu(_))
            | Class::Prefetch(Space::PerCpu(_))
            | Class::BitString(Space::PerCpu(_)) => self.through_segment(i, plan),
            Class::Stack | Class::Memory(_) if here.return_address.is_some() => {
                let distance = here.return_address.unwrap_or_default();
                self.load_return_address(i, distance);
            }
            Class::Stack | Class::Memory(_) if self.reads_rsp(i) => self.with_view(i),
            Class::Stack | Class::Memory(_) | Class::Prefetch(_) | Class::BitString(_) => {
                self.in_window(i);
            }
            Class::PushMemory(_) if here.is_data => self.push_memory_to_data(i),
            Class::PopMemory(_) if here.is_data => self.pop_data_to_memory(i),
            Class::PushMemory(_) | Class::PopMemory(_) => self.in_window(i),
            Class::FramePointerToStack => {
                let distance = here.distance.expect("checked before anything was written");
                self.frame_pointer_to_two_stacks(i, distance, here.is_data);
            }
            Class::Xlat => self.xlat_in_window(plan),
            Class::String(op, log2, repeat) => {
                self.string_in_window(i, plan, op, log2, repeat, known());
            }
            Class::PortString(port, repeat) => self.port_string(i, plan, port, repeat, known()),
            Class::CallIndirect(Callee::Memory(space)) => {
                self.indirect_in_window(i, plan, space, Jump::Call);
            }
            Class::JumpIndirect(Callee::Memory(space)) => {
                self.indirect_in_window(i, plan, space, Jump::Always);
            }
            Class::CallIndirect(Callee::Register(_))
            | Class::JumpIndirect(Callee::Register(_))
            | Class::Switch(_)
            | Class::Drop
            | Class::Unreached(_)
            | Class::AddressOf(_)
            | Class::Branch(_)
            | Class::Return
            | Class::Trap(_)
            | Class::Port(_)
            | Class::Realign(_)
            | Class::Keep(_)
            | Class::KeepOwnPlace(_)
            | Class::KeepBranch(_)
            | Class::StaticNop => return false,
        }
        true
    }

    /// ```text
    ///     op    %gs:d(%ebase,%eindex,s)
    /// ```
    fn in_window(&mut self, i: InstIdx) {
        let inst = self.lifted.inst(i);
        let operand = inst.operand().in_window();
        match inst.displacement.is_some() && inst.immediate.is_some() {
            true => self.through_symbol(i, operand),
            false => self.access_in_window(i, &operand),
        }
    }

    /// An instruction may have one relocation, and this one has two:
    ///
    /// ```text
    ///     push  %t
    ///     movabs $twin_vm:sym, %t
    ///     lea   (%t,%base), %t              if there is an index, too
    ///     movq  $twin_vm:other, %gs:(%et,%eindex,s)
    ///     pop   %t
    /// ```
    fn through_symbol(&mut self, i: InstIdx, operand: Operand) {
        let inst = self.lifted.inst(i);
        let t = self.any_but(i);
        self.push(t);
        let symbol = inst
            .displacement
            .map(|value| self.references.get(value).referent);
        let symbol = symbol.expect("its displacement is relocated");
        self.asm
            .inst_with(&movabs(t, 0), Some((Field::Abs64, symbol)));
        let operand = Operand {
            relocated: false,
            ..self.beside(t, operand)
        };
        let mut iced = inst.iced;
        operand.replace_in(&mut iced);
        self.note_lock(i);
        let immediate = inst.immediate.map(|value| self.references.get(value));
        let immediate = immediate.map(|reference| (reference.field, reference.referent));
        self.asm.inst_with(&iced, immediate);
        self.pop(t);
    }

    /// The operand with `t` added to its address.
    fn beside(&mut self, t: Reg, operand: Operand) -> Operand {
        let index = match (operand.base, operand.index) {
            (Base::Register(base), Index::None) => Index::Register(base, 0),
            (Base::Register(base), index) => {
                self.lea(&Operand::indexed(t, base, 0), t);
                index
            }
            (Base::None | Base::Rip, index) => index,
        };
        Operand {
            base: Base::Register(t),
            index,
            ..operand
        }
    }

    /// The instruction itself with an operand in the window, its references kept.
    fn access_in_window(&mut self, i: InstIdx, operand: &Operand) {
        let inst = self.lifted.inst(i);
        let mut iced = inst.iced;
        operand.replace_in(&mut iced);
        self.note_lock(i);
        let displacement = self.low_half(i);
        let immediate = inst.immediate.map(|value| self.references.get(value));
        let immediate = immediate.map(|reference| (reference.field, reference.referent));
        self.asm.inst_referring(&iced, displacement, immediate);
    }

    /// What the displacement refers to, as the low half of an address.
    fn low_half(&self, i: InstIdx) -> Option<(Field, Referent)> {
        let value = self.lifted.inst(i).displacement?;
        Some((Field::Abs32, self.references.get(value).referent))
    }

    /// `mov operand, %to`, the operand that of the instruction with `pushed` more words on
    /// the stack.
    pub(super) fn load_operand(&mut self, i: InstIdx, pushed: i64, to: Reg) {
        let operand = lowered(self.lifted.inst(i).operand().in_window(), pushed);
        let load = rm(Code::Mov_r64_rm64, reg64(to), operand);
        let displacement = self.low_half(i);
        self.asm.inst_referring(&load, displacement, None);
    }

    /// Data of the CPU in dom0:
    ///
    /// ```text
    ///     <open>
    ///     mov   %rsp, %t ; or $0xffff, %t ; mov GS_BASE_FROM_TOP(%t), %t
    ///     lea   (%t,%base), %t              if there is an index, too
    ///     <flags>
    ///     op    %gs:d(%et,%ebase)
    ///     <close>
    /// ```
    fn through_segment(&mut self, i: InstIdx, plan: &InstPlan) {
        let t = Self::roles(plan)[0];
        self.open(plan);
        let operand = self.segment_operand(i, t);
        self.restore_flags(plan);
        self.access_in_window(i, &operand);
        self.close(plan);
    }

    /// Leaves dom0's base of the operand's segment in `t`; gives the operand in the window.
    fn segment_operand(&mut self, i: InstIdx, t: Reg) -> Operand {
        let operand = self.lifted.inst(i).operand();
        let segment = operand.segment.expect("its space is per CPU");
        self.segment_base(segment, t);
        self.beside(t, operand.in_window())
    }

    /// The function's own return address is read where it is, on the control stack:
    ///
    /// ```text
    ///     mov   distance(%rsp), %reg
    /// ```
    fn load_return_address(&mut self, i: InstIdx, distance: i64) {
        let to = self.lifted.inst(i).iced.op0_register();
        let word = Operand::at(Reg::RSP, distance);
        self.emit(&rm(Code::Mov_r64_rm64, to, word));
    }

    /// An instruction without an operand in memory, which may use the stack.
    fn stack_word(&mut self, i: InstIdx, is_data: bool) {
        let iced = self.lifted.inst(i).iced;
        let whole = iced.op1_kind() == OpKind::Register && iced.op1_register() == Register::RSP;
        match iced.mnemonic() {
            Mnemonic::Push if iced.op0_register() == Register::RSP => self.push_view(),
            Mnemonic::Push if is_data => self.push_to_data(i),
            Mnemonic::Pop if is_data => self.pop_from_data(iced.op0_register()),
            Mnemonic::Mov if whole => self.address_on_stack(i),
            Mnemonic::Lea
                if iced.memory_base() == Register::RSP && iced.op0_register() != Register::RSP =>
            {
                self.address_on_stack(i);
            }
            _ if self.reads_rsp(i) => self.with_view(i),
            _ => self.copy_inst(i),
        }
    }

    /// Whether the last operand is `rsp`, as a number.
    fn reads_rsp(&self, i: InstIdx) -> bool {
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
    fn with_view(&mut self, i: InstIdx) {
        let t = self.any_but(i);
        let mut iced = self.lifted.inst(i).iced;
        iced.set_op1_register(reg64(t));
        self.push(t);
        self.view_of_top(t);
        if iced.op0_kind() == OpKind::Memory {
            let operand = lowered(self.lifted.inst(i).operand().in_window(), self.words);
            operand.replace_in(&mut iced);
        }
        let displacement = self.low_half(i);
        self.asm.inst_referring(&iced, displacement, None);
        self.pop(t);
    }

    /// ```text
    ///     push  %rax
    ///     movabs $twin_stack_view, %rax
    ///     lea   8(%rsp,%rax), %rax
    ///     mov   %rax, %gs:(%esp)
    ///     pop   %rax
    ///     lea   -8(%rsp), %rsp
    /// ```
    fn push_view(&mut self) {
        self.push(Reg::RAX);
        self.view_of_top(Reg::RAX);
        self.emit(&mr(Code::Mov_rm64_r64, TOP, Register::RAX));
        self.pop(Reg::RAX);
        self.lea(&Operand::at(Reg::RSP, -8), Reg::RSP);
    }

    /// Dom0's address of the word that was on top of the stack before the last push.
    fn view_of_top(&mut self, t: Reg) {
        self.constant(Import::StackView, t);
        self.lea(&Operand::indexed(Reg::RSP, t, 0).plus(8), t);
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
    fn address_on_stack(&mut self, i: InstIdx) {
        let inst = self.lifted.inst(i);
        let operand = match inst.iced.mnemonic() {
            Mnemonic::Lea => inst.operand(),
            _ => Operand::at(Reg::RSP, 0),
        };
        let to = gpr(inst.iced.op0_register()).expect("a general register");
        match operand.index {
            Index::Register(index, _) if index == to => {
                let t = if to == Reg::RAX { Reg::RCX } else { Reg::RAX };
                self.lea(&operand, to);
                self.push(t);
                self.constant(Import::StackView, t);
                self.lea(&Operand::indexed(to, t, 0), to);
                self.pop(t);
            }
            Index::Register(..) => {
                self.constant(Import::StackView, to);
                let shifted = Operand {
                    base: Base::Register(to),
                    ..operand
                };
                self.lea(&shifted, to);
                self.lea(&Operand::indexed(Reg::RSP, to, 0), to);
            }
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

    /// ```text
    ///     movabs $constant, %to
    /// ```
    fn constant(&mut self, constant: Import, to: Reg) {
        let referent = Referent::Import(constant, 0);
        self.asm
            .inst_with(&movabs(to, 0), Some((Field::Abs64, referent)));
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
    fn push_memory_to_data(&mut self, i: InstIdx) {
        let t = self.any_but(i);
        self.push(t);
        self.load_operand(i, self.words, t);
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
    fn pop_data_to_memory(&mut self, i: InstIdx) {
        let t = self.any_but(i);
        self.push(t);
        self.emit(&rm(Code::Mov_r64_rm64, reg64(t), lowered(TOP, 1)));
        let operand = lowered(self.lifted.inst(i).operand().in_window(), 2);
        let displacement = self.low_half(i);
        let store = mr(Code::Mov_rm64_r64, operand, reg64(t));
        self.asm.inst_referring(&store, displacement, None);
        self.pop(t);
        self.lea(&Operand::at(Reg::RSP, 8), Reg::RSP);
    }

    /// A register that the instruction does not name.
    fn any_but(&self, i: InstIdx) -> Reg {
        let inst = self.lifted.inst(i);
        let operand = inst.operand();
        let named = |reg: Reg| {
            operand.base == Base::Register(reg)
                || matches!(operand.index, Index::Register(index, _) if index == reg)
                || register_operands(&inst.iced).any(|r| gpr(r.full_register()) == Some(reg))
        };
        let free = [Reg::RAX, Reg::RCX, Reg::RDX, Reg::RSI]
            .into_iter()
            .find(|r| !named(*r));
        free.expect("an instruction without implied registers names three at most")
    }

    /// ```text
    ///     lea   distance(%rsp), %rsp
    ///     pop   %rbp                        for leave; from the data stack as above
    /// ```
    fn frame_pointer_to_two_stacks(&mut self, i: InstIdx, distance: i64, is_data: bool) {
        if !is_data {
            return self.frame_pointer_to_stack(i, distance);
        }
        self.lea(&Operand::at(Reg::RSP, distance), Reg::RSP);
        self.pop_from_data(Register::RBP);
    }

    /// ```text
    ///     <open>
    ///     movzbl %al, %td
    ///     mov   %gs:(%ebx,%et), %al
    ///     <close>
    /// ```
    fn xlat_in_window(&mut self, plan: &InstPlan) {
        let t = Self::roles(plan)[0];
        self.open(plan);
        self.emit(&rr(Code::Movzx_r32_rm8, reg32(t), Register::AL));
        let operand = Operand::indexed(Reg::RBX, t, 0).in_window();
        self.emit(&rm(Code::Mov_r8_rm8, Register::AL, operand));
        self.close(plan);
    }

    /// ```text
    ///     mov   %gs:operand, %r11
    ///     call  twin_stlb_call              jmp for a tail call
    /// ```
    fn indirect_in_window(&mut self, i: InstIdx, plan: &InstPlan, space: Space, jump: Jump) {
        self.across(plan, |e| {
            match space {
                Space::PerCpu(_) => {
                    let t = Self::roles(plan)[0];
                    e.open(plan);
                    let operand = e.segment_operand(i, t);
                    let load = rm(Code::Mov_r64_rm64, reg64(TARGET), operand);
                    let displacement = e.low_half(i);
                    e.asm.inst_referring(&load, displacement, None);
                    e.close(plan);
                }
                Space::Stack | Space::Heap | Space::Global => {
                    e.load_operand(i, e.words, TARGET);
                }
            }
            e.transfer(jump);
        });
    }

    /// The pointers of a string instruction become pointers into the window, and it runs
    /// once: the window shows every page at one place, and a guard ends it at either side.
    /// No flag is changed: `cmps` and `scas` leave them as they are where `rcx` is 0.
    fn string_in_window(
        &mut self,
        i: InstIdx,
        plan: &InstPlan,
        op: StringOp,
        log2: u8,
        repeat: Repeat,
        direction: Direction,
    ) {
        let t = Self::roles(plan)[0];
        let mut pointers = Vec::with_capacity(2);
        pointers.extend(op.translates_rdi().then_some(Reg::RDI));
        pointers.extend(op.translates_rsi().then_some(Reg::RSI));
        self.open(plan);
        if op.compares() {
            self.stopping_early(i, t, &pointers);
        } else {
            self.running_to_the_end(i, t, &pointers, |p| end(p, log2, repeat, direction));
        }
        self.close(plan);
    }

    /// `movs`, `stos`, `lods`:
    ///
    /// ```text
    ///     <where the pointer ends> -> %t ; push %t        each
    ///     movabs $twin_window, %t
    ///     mov   %edi, %edi ; lea (%rdi,%t), %rdi          each
    ///     rep movsb
    ///     pop   %rdi                                      each
    /// ```
    fn running_to_the_end(
        &mut self,
        i: InstIdx,
        t: Reg,
        pointers: &[Reg],
        end: impl Fn(Reg) -> End,
    ) {
        for &pointer in pointers {
            match end(pointer) {
                End::At(operand) => self.lea(&operand, t),
                End::Below { element, log2 } => {
                    self.mov(Reg::RCX, t);
                    self.emit(&r(Code::Not_rm64, reg64(t)));
                    self.lea(&Operand::indexed(pointer, t, log2).plus(element), t);
                }
            }
            self.push(t);
        }
        self.cut(t, pointers);
        self.copy_plain(i);
        for &pointer in pointers.iter().rev() {
            self.pop(pointer);
        }
    }

    /// `cmps`, `scas`:
    ///
    /// ```text
    ///     mov   %rdi, %t                                  each
    ///     mov   %edi, %edi
    ///     not   %rdi
    ///     lea   1(%t,%rdi), %t                            its high half
    ///     not   %rdi
    ///     push  %t
    ///     movabs $twin_window, %t
    ///     mov   %edi, %edi ; lea (%rdi,%t), %rdi          each
    ///     repne scasb
    ///     movabs $twin_window, %t
    ///     not   %rdi ; lea (%rdi,%t), %rdi ; not %rdi     each: less the window's start
    ///     pop   %t ; lea (%rdi,%t), %rdi                  each
    /// ```
    fn stopping_early(&mut self, i: InstIdx, t: Reg, pointers: &[Reg]) {
        let not = |p: Reg| r(Code::Not_rm64, reg64(p));
        for &pointer in pointers {
            self.mov(pointer, t);
            self.emit(&rr(Code::Mov_r32_rm32, reg32(pointer), reg32(pointer)));
            self.emit(&not(pointer));
            self.lea(&Operand::indexed(t, pointer, 0).plus(1), t);
            self.emit(&not(pointer));
            self.push(t);
        }
        self.cut(t, pointers);
        self.copy_plain(i);
        self.constant(Import::Window, t);
        for &pointer in pointers {
            self.emit(&not(pointer));
            self.lea(&Operand::indexed(pointer, t, 0), pointer);
            self.emit(&not(pointer));
        }
        for &pointer in pointers.iter().rev() {
            self.pop(t);
            self.lea(&Operand::indexed(pointer, t, 0), pointer);
        }
    }

    /// Makes pointers into the window of pointers.
    fn cut(&mut self, t: Reg, pointers: &[Reg]) {
        self.constant(Import::Window, t);
        for &pointer in pointers {
            self.emit(&rr(Code::Mov_r32_rm32, reg32(pointer), reg32(pointer)));
            self.lea(&Operand::indexed(pointer, t, 0), pointer);
        }
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

/// Where a pointer is after a string instruction.
enum End {
    /// At this address.
    At(Operand),
    /// `rcx` elements of so many bytes below: `pointer + element + element * ~rcx`.
    Below { element: i64, log2: u8 },
}

fn end(pointer: Reg, log2: u8, repeat: Repeat, direction: Direction) -> End {
    let element = 1 << log2;
    match (repeat, direction) {
        (Repeat::Once, Direction::Forward) => End::At(Operand::at(pointer, element)),
        (Repeat::Once, Direction::Backward) => End::At(Operand::at(pointer, -element)),
        (_, Direction::Forward) => End::At(Operand::indexed(pointer, Reg::RCX, log2)),
        (_, Direction::Backward) => End::Below { element, log2 },
    }
}

/// An operand after `words` more words are on the stack.
fn lowered(operand: Operand, words: i64) -> Operand {
    match operand.base {
        Base::Register(Reg::RSP) => operand.plus(8 * words),
        Base::Register(_) | Base::None | Base::Rip => operand,
    }
}
