//! Addresses of memory operands: what they are, and how they get into a register.

use iced_x86::Code;
use liveness::Reg;
use twin_abi::stack;

use super::Emitter;
use crate::analyse::class::Space;
use crate::analyse::references::FieldReference;
use crate::asm::{Address, Base, Field, Operand, Segment, Shape, ri, rm, rr};
use crate::lift::{Inst, InstIdx};
use crate::registers::reg64;

impl Emitter<'_> {
    /// The address of an operand. `pushed` words were pushed since the
    /// instruction would have run. Of `roles`, the last holds a
    /// segment-relative sum and the first serves as a temporary for it. The last
    /// holds a sum with `rsp`, too, where dom0 has the stack elsewhere: an index or a bit
    /// offset may be the distance of any other memory. It is not the index.
    pub(super) fn address(
        &mut self,
        i: InstIdx,
        space: Space,
        pushed: usize,
        roles: &[Reg],
    ) -> Address {
        let inst = self.lifted.inst(i);
        let plain = self.flat_address(inst, pushed);
        let operand = inst.operand();
        // Of an address of 32 bits, `rsp` has all that dom0's has.
        let on_stack = operand.base == Base::Register(Reg::RSP) && !operand.narrow;
        let elsewhere = self.cuts_in_registers() && on_stack;
        match space {
            Space::Stack | Space::Heap | Space::Global if elsewhere => {
                let to = roles[roles.len() - 1];
                self.sum_on_stack(&plain, to);
                Address::Copy(to)
            }
            Space::Stack | Space::Heap | Space::Global => plain,
            Space::PerCpu(segment) => {
                let (v, t) = (roles[0], roles[roles.len() - 1]);
                // Mostly the stack protector's word.
                if let Address::Constant(offset) = plain
                    && let Ok(offset) = i32::try_from(offset as i64)
                {
                    self.segment_base(segment, t);
                    return Address::Lea(Operand::at(t, offset.into()), None);
                }
                self.segment_base(segment, v);
                match elsewhere {
                    true => self.sum_on_stack(&plain, t),
                    false => plain.emit(&mut self.asm, t),
                }
                self.emit(&rr(Code::Add_r64_rm64, reg64(t), reg64(v)));
                Address::Copy(t)
            }
        }
    }

    /// The operand's address without its segment.
    fn flat_address(&self, inst: &Inst, pushed: usize) -> Address {
        let operand = Operand {
            segment: None,
            ..inst.operand()
        };
        if let Some(value) = inst.displacement {
            let FieldReference {
                field, referent, ..
            } = self.references.get(value);
            return match field {
                Field::Data32 { .. } | Field::Abs64 => Address::Symbol(referent),
                Field::Rel32 | Field::Abs32 | Field::Abs32S => {
                    Address::Lea(operand, Some(referent))
                }
            };
        }
        match (operand.base, operand.simple()) {
            (_, Some((base, 0))) if base != Reg::RSP => Address::Copy(base),
            (Base::Register(Reg::RSP), _) => Address::Lea(operand.plus(8 * pushed as i64), None),
            _ if operand.shape() == Shape::Constant => {
                Address::Constant(operand.displacement as u64)
            }
            _ => Address::Lea(operand, None),
        }
    }

    /// Loads dom0's base of a segment from the CPU's context.
    ///
    /// ```text
    ///     mov   %rsp, %v
    ///     or    $0x7fff, %v
    ///     mov   BASE_FROM_TOP(%v), %v
    /// ```
    pub(super) fn segment_base(&mut self, segment: Segment, v: Reg) {
        let offset = match segment {
            Segment::Fs => stack::FS_BASE_FROM_TOP,
            Segment::Gs => stack::GS_BASE_FROM_TOP,
        };
        self.mov(Reg::RSP, v);
        self.emit(&ri(Code::Or_rm64_imm32, reg64(v), stack::BLOCK as i32 - 1));
        self.emit(&rm(Code::Mov_r64_rm64, reg64(v), Operand::at(v, offset)));
    }
}
