//! Memory operands. This is the only place that reads and makes iced's; all phases use
//! this model and its views.

use iced_x86::{Code, Instruction, MemoryOperand, Register};
use liveness::Reg;

use crate::registers::{gpr, reg32, reg64};

/// Segments that have a base of their own in 64-bit mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// `%fs`.
    Fs,
    /// `%gs`.
    Gs,
}

/// What the address of an operand counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Zero.
    None,
    /// The end of the instruction.
    Rip,
    /// A general register.
    Register(Reg),
}

/// What is added to the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Nothing.
    None,
    /// A general register, times a power of two: its log2.
    Register(Reg, u8),
    /// The elements of a vector register (VSIB): many addresses.
    Vector,
}

/// `segment:displacement(%base,%index,scale)`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    pub segment: Option<Segment>,
    pub base: Base,
    pub index: Index,
    /// Displacement; of an operand relative to `rip`, the address.
    pub displacement: i64,
    /// Whether a relocation fills the displacement, so that it has its full width.
    pub relocated: bool,
    /// Whether registers are 32 bits wide, and so is the address.
    pub narrow: bool,
}

/// How an operand is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Relative to a segment's base.
    Segment(Segment),
    /// Relative to `rsp`, perhaps with an index.
    Stack,
    /// At a constant address or distance from the instruction.
    Constant,
    /// Through other registers.
    Pointer,
}

impl Operand {
    /// The memory operand of an instruction that has one. The decoder does not know
    /// relocations.
    pub fn of(iced: &Instruction) -> Operand {
        let (base, index) = (iced.memory_base(), iced.memory_index());
        let narrow = base.is_gpr32() || index.is_gpr32() || base == Register::EIP;
        let displacement = iced.memory_displacement64();
        Operand {
            segment: match iced.segment_prefix() {
                Register::FS => Some(Segment::Fs),
                Register::GS => Some(Segment::Gs),
                _ => None,
            },
            base: match gpr(base) {
                Some(register) => Base::Register(register),
                None if base.is_ip() => Base::Rip,
                None => Base::None,
            },
            index: match gpr(index) {
                Some(r) => Index::Register(r, iced.memory_index_scale().trailing_zeros() as u8),
                None if index == Register::None => Index::None,
                None => Index::Vector,
            },
            // The decoder gives that of a 32-bit address unsigned; modulo 2^32 it is the
            // same.
            displacement: match narrow {
                true => i64::from(displacement as u32 as i32),
                false => displacement as i64,
            },
            relocated: false,
            narrow,
        }
    }

    /// `displacement(%base)`
    pub fn at(base: Reg, displacement: i64) -> Operand {
        Operand {
            segment: None,
            base: Base::Register(base),
            index: Index::None,
            displacement,
            relocated: false,
            narrow: false,
        }
    }

    /// `(%base,%index,1 << log2)`
    pub fn indexed(base: Reg, index: Reg, log2: u8) -> Operand {
        Operand {
            index: Index::Register(index, log2),
            ..Operand::at(base, 0)
        }
    }

    /// The operand, so many bytes further on.
    pub fn plus(self, bytes: i64) -> Operand {
        let displacement = self.displacement.wrapping_add(bytes);
        Operand {
            displacement,
            ..self
        }
    }

    /// The operand as it is in a window that the GS base is the start of: cut to the low
    /// 32 bits of its address by the prefix 67. A relocated one loses `rip`, since its
    /// relocation becomes absolute.
    pub fn in_window(self) -> Operand {
        Operand {
            segment: Some(Segment::Gs),
            base: match self.base {
                Base::Rip => Base::None,
                base => base,
            },
            displacement: if self.relocated { 0 } else { self.displacement },
            narrow: true,
            ..self
        }
    }

    /// How it is addressed.
    pub fn shape(&self) -> Shape {
        match (self.segment, self.base, self.index) {
            (Some(segment), ..) => Shape::Segment(segment),
            (None, Base::Register(Reg::RSP), _) => Shape::Stack,
            (None, Base::None | Base::Rip, Index::None) => Shape::Constant,
            (None, ..) => Shape::Pointer,
        }
    }

    /// Base and displacement of `displacement(%base)`, as most operands are: analyses
    /// follow these. `None` for an operand with an index, a segment, a relocation or a
    /// 32-bit address.
    pub fn simple(&self) -> Option<(Reg, i64)> {
        let alone = self.index == Index::None && self.segment.is_none();
        match self.base {
            Base::Register(base) if alone && !self.narrow && !self.relocated => {
                Some((base, self.displacement))
            }
            _ => None,
        }
    }

    /// Whether it is `displacement(%rsp,%index,s)`, with all bits of the address. It may be any
    /// memory: the index may be a distance.
    pub fn is_indexed_stack(&self) -> bool {
        let has_index = matches!(self.index, Index::Register(..));
        self.base == Base::Register(Reg::RSP) && has_index && !self.narrow
    }

    /// The displacement as it is encoded (SDM volume 2, table 2-2).
    pub(super) fn encoded_displacement(&self) -> Displacement {
        let displacement = self.displacement as i32;
        match (self.base, i8::try_from(displacement)) {
            _ if self.relocated => Displacement::Full(0),
            // Without displacement, the ModRM of `rbp` and `r13` means another operand.
            (Base::Register(base), Ok(0)) if base.number() & 7 != 5 => Displacement::None,
            (Base::Register(_), Ok(short)) => Displacement::Short(short),
            _ => Displacement::Full(displacement),
        }
    }

    /// The operand for an instruction that iced encodes.
    pub fn for_iced(&self) -> MemoryOperand {
        let width = if self.narrow { reg32 } else { reg64 };
        let base = match self.base {
            Base::Register(base) => width(base),
            Base::Rip => Register::RIP,
            Base::None => Register::None,
        };
        let (index, scale) = match self.index {
            Index::Register(index, log2) => (width(index), 1 << log2),
            Index::None | Index::Vector => (Register::None, 1),
        };
        let size = match self.encoded_displacement() {
            Displacement::None => 0,
            Displacement::Short(0) => 0,
            Displacement::Short(_) => 1,
            // iced names it by the width of the address.
            Displacement::Full(_) if self.narrow => 4,
            Displacement::Full(_) => 8,
        };
        let displacement = if self.relocated { 0 } else { self.displacement };
        let segment = match self.segment {
            Some(Segment::Fs) => Register::FS,
            Some(Segment::Gs) => Register::GS,
            None => Register::None,
        };
        MemoryOperand::new(base, index, scale, displacement, size, false, segment)
    }

    /// Makes this the memory operand of an instruction that has one.
    pub fn replace_in(&self, iced: &mut Instruction) {
        if let Some(code) = without_moffs(iced.code()) {
            iced.set_code(code);
        }
        let operand = self.for_iced();
        iced.set_segment_prefix(operand.segment_prefix);
        iced.set_memory_base(operand.base);
        iced.set_memory_index(operand.index);
        iced.set_memory_index_scale(operand.scale);
        iced.set_memory_displacement64(match self.narrow {
            true => u64::from(operand.displacement as u32),
            false => operand.displacement as u64,
        });
        iced.set_memory_displ_size(operand.displ_size);
    }
}

/// `mov` between `al/ax/eax/rax` and a 64-bit absolute address, as the form with
/// any address.
fn without_moffs(code: Code) -> Option<Code> {
    Some(match code {
        Code::Mov_AL_moffs8 => Code::Mov_r8_rm8,
        Code::Mov_AX_moffs16 => Code::Mov_r16_rm16,
        Code::Mov_EAX_moffs32 => Code::Mov_r32_rm32,
        Code::Mov_RAX_moffs64 => Code::Mov_r64_rm64,
        Code::Mov_moffs8_AL => Code::Mov_rm8_r8,
        Code::Mov_moffs16_AX => Code::Mov_rm16_r16,
        Code::Mov_moffs32_EAX => Code::Mov_rm32_r32,
        Code::Mov_moffs64_RAX => Code::Mov_rm64_r64,
        _ => return None,
    })
}

/// An encoded displacement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Displacement {
    None,
    Short(i8),
    Full(i32),
}
