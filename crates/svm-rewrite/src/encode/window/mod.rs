//! The sequences of a scheme with a window and two stacks (`docs/spec/window.md`). Classes
//! that no sequence here mentions are written as under any other scheme.
//!
//! An operand goes to the window by the prefixes 65 and 67: base and index become 32 bits
//! wide, all else stays. So most accesses need no register and change no flag. In a window
//! of 42 bits ([`cut`]) these are the operands on the stack; others are cut in a register.

mod cut;
mod stack;
pub mod strict;
mod strings;

use iced_x86::{Code, Instruction, Register};
use liveness::Reg;
use twin_abi::Processor;

use super::Emitter;
use crate::analyse::class::{Callee, Class, Direction, Space};
use crate::analyse::classify::prefix;
use crate::asm::import::Import;
use crate::asm::{Base, Field, Index, Jump, Operand, Referent, movabs, rm, rr};
use crate::frame::FramePlace;
use crate::frame::facts::{Facts, FactsBefore};
use crate::frame::variants::Variant;
use crate::frame::words::{StackWords, reads_return_address, reads_word};
use crate::lift::InstIdx;
use crate::plan::borrow::Borrowed;
use crate::plan::{CutBy, InstPlan};
use crate::registers::{reg32, reg64};
use crate::schemes::Cut;

/// The register in which `twin_stlb_call` takes an address.
const TARGET: Reg = Reg::R11;

/// The prefixes of an operand in the window: `%gs`, and addresses of 32 bits.
const IN_WINDOW: [u8; 2] = [0x65, 0x67];

/// The frame at an instruction, of which most sequences ask nothing.
pub struct FrameHere<'h> {
    pub inst: InstIdx,
    pub iced: &'h Instruction,
    pub variant: Variant,
    pub facts: &'h FactsBefore,
    pub words: &'h StackWords,
}

impl FrameHere<'_> {
    /// Whether the word that it pushes or pops is on the data stack.
    fn is_data(&self) -> bool {
        self.words.is_data(self.inst, self.variant)
    }

    /// How far `rsp` moves, of [`Class::FramePointerToStack`].
    fn distance(&self) -> i64 {
        known(self.facts().and_then(|facts| facts.stack_move(self.iced)))
    }

    /// The direction of string instructions.
    fn direction(&self) -> Direction {
        known(self.facts().and_then(Facts::direction))
    }

    /// How far above `rsp` the return address is that it reads.
    fn return_address(&self) -> Option<i64> {
        // Most instructions read none, and facts are far apart in memory.
        let facts = reads_word(self.iced).then(|| self.facts())??;
        let FramePlace(rsp) = facts.stack_pointer()?;
        reads_return_address(self.iced, facts).then_some(-rsp)
    }

    fn facts(&self) -> Option<&Facts> {
        self.facts.get(self.inst, self.variant)
    }
}

fn known<T>(fact: Option<T>) -> T {
    fact.expect("checked before anything was written")
}

impl Emitter<'_> {
    /// Writes an instruction whose class has a sequence here; whether it has.
    pub fn through_window(&mut self, i: InstIdx, plan: &InstPlan, here: &FrameHere<'_>) -> bool {
        if self.cuts_in_registers() && self.through_cut(i, plan, here) {
            return true;
        }
        match plan.class {
            Class::Plain => self.stack_word(i, plan, here),
            // `push d(%rsp)` among them.
            Class::Stack | Class::PushMemory(_) if here.is_data() => {
                self.push_memory_to_data(i, plan, here.return_address());
            }
            Class::Memory(Space::PerCpu(_)) | Class::Prefetch(Space::PerCpu(_)) => {
                self.through_segment(i, plan);
            }
            Class::Stack | Class::Memory(_) => match here.return_address() {
                Some(distance) => self.read_return_address(i, plan, distance),
                None if self.reads_rsp(i) => self.with_view(i, plan),
                None => self.in_window(i, plan),
            },
            Class::BitString(space) => self.bit_string(i, plan, space),
            Class::Prefetch(_) => self.in_window(i, plan),
            Class::PopMemory(_) if here.is_data() => self.pop_data_to_memory(i, plan),
            Class::PushMemory(_) | Class::PopMemory(_) => self.in_window(i, plan),
            Class::FramePointerToStack => {
                self.frame_pointer_to_two_stacks(i, here.distance(), here.is_data());
            }
            Class::Xlat => self.xlat_in_window(plan),
            Class::String(op, log2, repeat) => {
                self.string_in_window(i, plan, op, log2, repeat, here.direction());
            }
            Class::PortString(port, repeat) => {
                self.port_string(i, plan, port, repeat, here.direction());
            }
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
            | Class::Stop
            | Class::PopFlags
            | Class::TypeHash(_)
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
    fn in_window(&mut self, i: InstIdx, plan: &InstPlan) {
        let inst = self.lifted.inst(i);
        if inst.displacement.is_some() && inst.immediate.is_some() {
            return self.through_symbol(i, plan, inst.operand().in_window());
        }
        if !self.cuts_in_registers() && self.needs_prefixes_only(i) {
            self.asm.raw(&IN_WINDOW);
            return self.carry_over(i, None);
        }
        let reached = self.by_itself(i, 0).expect("it needs no register");
        self.access_reached(i, reached);
    }

    /// Whether the prefixes before its own bytes are all that takes its operand to the window:
    /// its displacement stays, and no prefix of its own could contradict them.
    fn needs_prefixes_only(&self, i: InstIdx) -> bool {
        let inst = self.lifted.inst(i);
        inst.displacement.is_none()
            && inst.iced.memory_base().is_gpr64()
            && !prefix::has_legacy(self.bytes(i))
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
    ///
    /// Where addresses are cut in registers, and it is not on the stack, `%t` is.
    fn through_symbol(&mut self, i: InstIdx, plan: &InstPlan, operand: Operand) {
        let inst = self.lifted.inst(i);
        let [t, _] = Self::borrowed(plan);
        self.push(t);
        let symbol = inst
            .displacement
            .map(|value| self.references.get(value).referent);
        let symbol = symbol.expect("its displacement is relocated");
        self.asm
            .inst_with(&movabs(t, 0), Some((Field::Abs64, symbol)));
        let has_registers = operand.base != Base::None || operand.index != Index::None;
        let operand = match self.cuts_in_registers() && !has_registers {
            true => {
                self.cut(t, t, self.cut_apart(plan));
                self.translated(t, 0)
            }
            false => Operand {
                relocated: false,
                ..self.beside(t, operand)
            },
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
        let (base, index) = match (operand.base, operand.index) {
            // `rsp` is no index (SDM volume 2, table 2-3).
            (Base::Register(Reg::RSP), Index::None) => (Reg::RSP, Index::Register(t, 0)),
            (Base::Register(base), Index::None) => (t, Index::Register(base, 0)),
            (Base::Register(base), index) => {
                let sum = match base {
                    Reg::RSP => Operand::indexed(base, t, 0),
                    _ => Operand::indexed(t, base, 0),
                };
                self.lea(&sum, t);
                (t, index)
            }
            (Base::None | Base::Rip, index) => (t, index),
        };
        Operand {
            base: Base::Register(base),
            index,
            ..operand
        }
    }

    /// The instruction itself with an operand in the window, its immediate kept.
    fn access_reached(&mut self, i: InstIdx, reached: Reached) {
        let inst = self.lifted.inst(i);
        let mut iced = inst.iced;
        reached.operand.replace_in(&mut iced);
        self.note_lock(i);
        let immediate = inst.immediate.map(|value| self.references.get(value));
        let immediate = immediate.map(|reference| (reference.field, reference.referent));
        self.asm
            .inst_referring(&iced, reached.displacement, immediate);
    }

    /// What the displacement refers to, as the low half of an address.
    fn low_half(&self, i: InstIdx) -> Option<(Field, Referent)> {
        let value = self.lifted.inst(i).displacement?;
        Some((Field::Abs32, self.references.get(value).referent))
    }

    /// The operand of an instruction in the window, with `pushed` more words on the stack;
    /// `None` if its address has to be cut in a register.
    fn by_itself(&self, i: InstIdx, pushed: i64) -> Option<Reached> {
        if self.cuts_in_registers() {
            return self.without_cut(i, pushed);
        }
        Some(Reached {
            operand: lowered(self.lifted.inst(i).operand().in_window(), pushed),
            displacement: self.low_half(i),
        })
    }

    /// The same, its address cut in `to` if it has to be.
    fn reached(&mut self, i: InstIdx, plan: &InstPlan, pushed: i64, to: Reg) -> Reached {
        match self.by_itself(i, pushed) {
            Some(reached) => reached,
            None => self.cut_operand(i, pushed, to, self.cut_apart(plan)),
        }
    }

    /// How an address is cut that no access of the plan's is: where `pext` is at hand, by that.
    fn cut_apart(&self, plan: &InstPlan) -> CutBy {
        match self.scheme.cut {
            Some(Cut::Register(Processor::Any)) => plan.cut,
            Some(Cut::Register(Processor::Bmi2) | Cut::Prefix) | None => CutBy::Pext,
        }
    }

    /// `mov operand, %to`, the operand that of the instruction with `pushed` more words on
    /// the stack.
    pub(super) fn load_operand(&mut self, i: InstIdx, plan: &InstPlan, pushed: i64, to: Reg) {
        // A sum with `rsp` is not made in its index. `to` is that for `TARGET` alone, and
        // `twin_stlb_call` overwrites r10, too.
        let operand = self.lifted.inst(i).operand();
        let is_index = matches!(operand.index, Index::Register(index, _) if index == to);
        let place = match operand.is_indexed_stack() && is_index {
            true => Reg::R10,
            false => to,
        };
        let reached = self.reached(i, plan, pushed, place);
        let load = rm(Code::Mov_r64_rm64, reg64(to), reached.operand);
        self.asm.inst_referring(&load, reached.displacement, None);
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
    ///
    /// An instruction may have one relocation; where this one has two, before the flags:
    ///
    /// ```text
    ///     push  %u
    ///     movabs $twin_vm:sym, %u
    ///     lea   (%t,%u), %t
    ///     pop   %u
    /// ```
    fn through_segment(&mut self, i: InstIdx, plan: &InstPlan) {
        let t = Self::roles(plan)[0];
        self.open(plan);
        let operand = self.segment_operand(i, t);
        let displacement = self.low_half(i);
        let reached = match displacement {
            Some((_, symbol)) if self.lifted.inst(i).immediate.is_some() => {
                self.add_symbol(plan, symbol, t);
                Reached {
                    operand: Operand {
                        relocated: false,
                        ..operand
                    },
                    displacement: None,
                }
            }
            _ => Reached {
                operand,
                displacement,
            },
        };
        self.restore_flags(plan);
        self.access_reached(i, reached);
        self.close(plan);
    }

    fn add_symbol(&mut self, plan: &InstPlan, symbol: Referent, t: Reg) {
        let [u, _] = Self::borrowed(plan);
        self.push(u);
        self.asm
            .inst_with(&movabs(u, 0), Some((Field::Abs64, symbol)));
        self.lea(&Operand::indexed(t, u, 0), t);
        self.pop(u);
    }

    /// Leaves dom0's base of the operand's segment in `t`; gives the operand in the window.
    fn segment_operand(&mut self, i: InstIdx, t: Reg) -> Operand {
        let operand = self.lifted.inst(i).operand();
        let segment = operand.segment.expect("its space is per CPU");
        self.segment_base(segment, t);
        self.beside(t, lowered(operand.in_window(), self.words))
    }

    /// ```text
    ///     movabs $constant, %to
    /// ```
    fn constant(&mut self, constant: Import, to: Reg) {
        let referent = Referent::Import(constant, 0);
        self.asm
            .inst_with(&movabs(to, 0), Some((Field::Abs64, referent)));
    }

    /// The registers that the sequence borrows.
    fn borrowed(plan: &InstPlan) -> Borrowed {
        plan.borrowed.expect("the plan lends some")
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
                    e.load_operand(i, plan, e.words, TARGET);
                }
            }
            e.transfer(jump);
        });
    }
}

/// An operand in the window, and what its displacement refers to.
struct Reached {
    operand: Operand,
    displacement: Option<(Field, Referent)>,
}

/// An operand after `words` more words are on the stack.
fn lowered(operand: Operand, words: i64) -> Operand {
    match operand.base {
        Base::Register(Reg::RSP) => operand.plus(8 * words),
        Base::Register(_) | Base::None | Base::Rip => operand,
    }
}
