//! Addresses of memory operands: what they are, and how they get into a register.

use elf_loader::consts::{R_X86_64_64, R_X86_64_PC32};
use iced_x86::{Code, Instruction, MemoryOperand, Register};
use liveness::Reg;
use twin_abi::stack;

use super::Emitter;
use crate::analyse::class::{Segment, Space};
use crate::asm::{Address, Referent, ri, rm, rr};
use crate::lift::{Inst, InstIdx, Value};
use crate::registers::{gpr, reg64};

/// The size of a displacement as iced's encoder names it: none, a byte, or 32 bits of
/// a 64-bit address.
pub(super) fn displacement_size(displacement: i64) -> u32 {
    match displacement {
        0 => 0,
        -128..=127 => 1,
        _ => 8,
    }
}

/// `disp(%base)`.
pub(super) fn at(base: Reg, displacement: i64) -> MemoryOperand {
    MemoryOperand::new(
        reg64(base),
        Register::None,
        1,
        displacement,
        displacement_size(displacement),
        false,
        Register::None,
    )
}

/// `(%base,%index,scale)`.
pub(super) fn indexed(base: Reg, index: Reg, scale: u32) -> MemoryOperand {
    MemoryOperand::new(
        reg64(base),
        reg64(index),
        scale,
        0,
        0,
        false,
        Register::None,
    )
}

impl Emitter<'_> {
    /// The address of an operand. `pushed` words were pushed since the
    /// instruction would have run. Of `roles`, the last holds a
    /// segment-relative sum and the first serves as a temporary for it.
    pub(super) fn address(
        &mut self,
        i: InstIdx,
        space: Space,
        pushed: usize,
        roles: &[Reg],
    ) -> Address {
        let inst = self.lifted.inst(i);
        let plain = self.flat_address(inst, pushed);
        match space {
            Space::Stack | Space::Heap | Space::Global => plain,
            Space::PerCpu(segment) => {
                let (v, t) = (roles[0], roles[roles.len() - 1]);
                // Mostly the stack protector's word.
                if let Address::Constant(offset) = plain
                    && let Ok(offset) = i32::try_from(offset as i64)
                {
                    self.segment_base(segment, t);
                    return Address::Lea(at(t, offset.into()), None);
                }
                self.segment_base(segment, v);
                plain.emit(&mut self.asm, t);
                self.emit(&rr(Code::Add_r64_rm64, reg64(t), reg64(v)));
                Address::Copy(t)
            }
        }
    }

    /// The operand's address without its segment.
    fn flat_address(&self, inst: &Inst, pushed: usize) -> Address {
        let iced = &inst.iced;
        let (base, index) = (iced.memory_base(), iced.memory_index());
        let displacement = iced.memory_displacement64();
        if let Some(value) = inst.displacement {
            let value = self.lifted.value(value);
            let referent = self
                .referent(value)
                .expect("checked before anything was decided");
            return match value.kind {
                R_X86_64_PC32 | R_X86_64_64 => Address::Symbol(referent),
                _ => Address::Lea(operand(iced, 0, full_width(iced)), Some(referent)),
            };
        }
        if base == Register::None && index == Register::None {
            return Address::Constant(displacement);
        }
        let plain = index == Register::None && displacement == 0 && base.is_gpr64();
        match gpr(base) {
            Some(base) if plain && base != Reg::RSP => return Address::Copy(base),
            _ => {}
        }
        let on_stack = base.full_register() == Register::RSP;
        let adjust = if on_stack { 8 * pushed as i64 } else { 0 };
        // The decoder gives the displacement of a 32-bit address unsigned; modulo
        // 2^32 it is the same.
        let displacement = match full_width(iced) {
            4 => i64::from(displacement as u32 as i32),
            _ => displacement as i64,
        };
        let displacement = displacement.wrapping_add(adjust);
        let size = match (base, displacement) {
            (Register::None, _) => full_width(iced),
            (_, 0) => 0,
            (_, -128..=127) => 1,
            _ => full_width(iced),
        };
        Address::Lea(operand(iced, displacement, size), None)
    }

    /// Loads dom0's base of a segment from the CPU's context.
    ///
    /// ```text
    ///     mov   %rsp, %v
    ///     or    $0x7fff, %v
    ///     mov   BASE_FROM_TOP(%v), %v
    /// ```
    fn segment_base(&mut self, segment: Segment, v: Reg) {
        let offset = match segment {
            Segment::Fs => stack::FS_BASE_FROM_TOP,
            Segment::Gs => stack::GS_BASE_FROM_TOP,
        };
        self.mov(Reg::RSP, v);
        self.emit(&ri(Code::Or_rm64_imm32, reg64(v), stack::BLOCK as i32 - 1));
        self.emit(&rm(Code::Mov_r64_rm64, reg64(v), at(v, offset)));
    }

    /// What a relocation's value becomes in emitted code.
    pub(super) fn referent(&self, value: Value) -> Result<Referent, &'static str> {
        (self.rules.referent)(self.lifted, value)
    }
}

/// The operand's base, index and scale with another displacement.
fn operand(iced: &Instruction, displacement: i64, size: u32) -> MemoryOperand {
    let (base, index) = (iced.memory_base(), iced.memory_index());
    let scale = iced.memory_index_scale();
    MemoryOperand::new(
        base,
        index,
        scale,
        displacement,
        size,
        false,
        Register::None,
    )
}

/// The size of a 32-bit displacement as iced's encoder names it: that of the address.
fn full_width(iced: &Instruction) -> u32 {
    let narrow = iced.memory_base().is_gpr32() || iced.memory_index().is_gpr32();
    if narrow { 4 } else { 8 }
}
