//! What is known of the stack along a path: what [`Facts`] say, and the words of the frame that
//! registers are loaded from.

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use liveness::LocSet;

use super::before::Join;
use super::contents::{Frame, FramePlace};
use super::facts::{Facts, Input, aligned};
use super::variants::Variant;
use crate::analyse::class::Direction;
use crate::analyse::routines;
use crate::analyse::survey::Survey;
use crate::asm::Operand;
use crate::lift::InstIdx;
use crate::registers::reg64;

/// What is known at a place of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    frame: Frame,
    direction: Option<Direction>,
}

impl Join for Path {
    fn join(self, other: Path) -> Path {
        Path {
            frame: self.frame.join(&other.frame),
            direction: self.direction.filter(|_| self.direction == other.direction),
        }
    }
}

impl Path {
    /// At the entry of a function; `follows_all`: not only those registers are followed in which
    /// compilers keep addresses of the frame.
    pub fn at_entry(follows_all: bool) -> Path {
        Path {
            frame: Frame::at_entry(follows_all),
            direction: Some(Direction::Forward),
        }
    }

    /// What is kept of it for the instruction here.
    pub fn facts(&self) -> Facts {
        Facts::new(*self.frame.registers(), self.direction)
    }

    /// Whether all registers are followed.
    pub fn follows_all(&self) -> bool {
        self.frame.follows_all()
    }

    /// Whether an instruction may change it, or does something to the frame: it uses the stack or
    /// the direction flag, or has to do with a register that points into the frame. Most do not.
    pub fn concerns(&self, iced: &Instruction, survey: &Survey) -> bool {
        let registers = survey.registers();
        survey.uses_stack
            || self.frame.registers().knows_any(registers)
            || matches!(iced.code(), Code::Std | Code::Cld)
    }

    /// Where `rsp` points, if that is known.
    pub fn stack_pointer(&self) -> Option<FramePlace> {
        self.pointer(Register::RSP)
    }

    /// Where a register points, if that is known to be in the frame.
    pub fn pointer(&self, register: Register) -> Option<FramePlace> {
        self.frame.get(register).map(FramePlace)
    }

    /// The place of a memory operand that surely is in the frame: what a pointer leads to that was
    /// loaded is not.
    pub fn sure_place(&self, iced: &Instruction) -> Option<FramePlace> {
        let registers = self.frame.registers();
        let place = registers.place(iced)?;
        (!registers.is_loaded(iced.memory_base())).then_some(place)
    }

    /// Updates it over an instruction.
    ///
    /// If a function that realigns its stack has no variants (a module for a stock
    /// kernel), `rsp` at entry is assumed to be aligned. If it was not, all places found
    /// after the `and` are off by the same number of bytes: distances between them are
    /// right, and [`keep_realigned`](crate::targets) uses no others.
    pub fn pass(&mut self, input: Input<'_>, i: InstIdx, variant: Variant) {
        let inst = input.lifted.inst(i);
        let iced = &inst.iced;
        if routines::is_call(iced) {
            // A callee preserves rsp and the callee-saved registers but for those that it is
            // known to lose, and returns with DF clear (psABI 3.2.1).
            self.direction = Some(Direction::Forward);
            self.frame.called(input.lost.at_call(inst));
            return;
        }
        self.frame.store(iced);
        match iced.code() {
            Code::Std => self.direction = Some(Direction::Backward),
            Code::Cld => self.direction = Some(Direction::Forward),
            Code::Leaveq => {
                let saved = self.frame.get(Register::RBP);
                self.frame.set(Register::RSP, saved);
                self.pop(Register::RBP);
            }
            Code::Push_r64 => {
                self.frame.push(Some(iced.op0_register()));
            }
            Code::Pop_r64 => self.pop(iced.op0_register()),
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 if iced.op0_kind() == OpKind::Register => {
                let to = iced.op0_register();
                match iced.op1_kind() {
                    OpKind::Register => self.frame.copy(to, iced.op1_register(), 0),
                    _ => {
                        self.frame.load_into(to, self.frame.registers().place(iced));
                    }
                }
            }
            Code::Lea_r64_m => match Operand::of(iced).simple() {
                Some((base, by)) => self.frame.copy(iced.op0_register(), reg64(base), by),
                None => self.frame.set(iced.op0_register(), None),
            },
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if self.counts(iced) => {
                let register = iced.op0_register();
                self.frame
                    .copy(register, register, iced.immediate(1) as i64);
            }
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if self.counts(iced) => {
                let register = iced.op0_register();
                let by = (iced.immediate(1) as i64).wrapping_neg();
                self.frame.copy(register, register, by);
            }
            Code::Inc_rm64 | Code::Dec_rm64 if self.counts(iced) => {
                let register = iced.op0_register();
                let by = if iced.code() == Code::Inc_rm64 { 1 } else { -1 };
                self.frame.copy(register, register, by);
            }
            Code::Xchg_rm64_r64 | Code::Xchg_r64_RAX
                if self.frame.follows_all() && iced.op0_kind() == OpKind::Register =>
            {
                self.frame
                    .exchange(iced.op0_register(), iced.op1_register());
            }
            Code::And_rm64_imm8 | Code::And_rm64_imm32 if iced.op0_register() == Register::RSP => {
                let alignment = u8::try_from(iced.immediate(1).wrapping_neg());
                match alignment {
                    Ok(alignment) if alignment.is_power_of_two() => {
                        self.move_rsp(|rsp| aligned(rsp, alignment, variant));
                    }
                    _ => self.frame.set(Register::RSP, None),
                }
            }
            _ if iced.mnemonic() == Mnemonic::Push && iced.stack_pointer_increment() == -8 => {
                self.frame.push(None);
            }
            _ if input.classes[i.0 as usize].saves_frame_pointer() => {
                self.frame.overwrite(input.surveys[i.0 as usize].written());
                let saved = self.frame.get(Register::RBP);
                self.frame.set_loaded(Register::RBP, saved);
            }
            _ => {
                let moved = i64::from(iced.stack_pointer_increment());
                if moved != 0 {
                    self.move_rsp(|rsp| rsp + moved);
                }
                self.frame.overwrite(input.surveys[i.0 as usize].written());
            }
        }
    }

    /// A handler of an instruction's faults writes these registers.
    pub fn overwrite(&mut self, written: LocSet) {
        self.frame.overwrite(written);
    }

    /// Whether a sum of a register and a constant is followed.
    fn counts(&self, iced: &Instruction) -> bool {
        iced.op0_kind() == OpKind::Register
            && (iced.op0_register() == Register::RSP || self.frame.follows_all())
    }

    fn pop(&mut self, to: Register) {
        let from = self.stack_pointer();
        self.move_rsp(|rsp| rsp + 8);
        self.frame.load_into(to, from);
    }

    fn move_rsp(&mut self, to: impl Fn(i64) -> i64) {
        let rsp = self.frame.get(Register::RSP).map(to);
        self.frame.set(Register::RSP, rsp);
    }
}
