//! Encodes the few forms that checks consist of, without iced.
//!
//! Most emitted code is checks. iced's encoder handles every instruction and takes ten
//! times as long as putting an opcode, a ModRM byte and a displacement together (SDM
//! volume 2, 2.1). The bytes are those that iced would make; the test compares them. All
//! other instructions go through iced.

use liveness::Reg;

use super::operand::{Base, Displacement, Index, Operand};

mod cached;

pub use cached::{Encoder, LONGEST};

/// An instruction with a ModRM byte and no immediate: `op %rm, %reg` or
/// `op mem, %reg`.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    wide: bool,
    opcode: u8,
}

/// An instruction whose ModRM byte extends its opcode: `op $imm, %rm`.
#[derive(Clone, Copy, Debug)]
pub struct ImmediateForm {
    wide: bool,
    opcode: u8,
    extension: u8,
}

#[rustfmt::skip] // A table: one form a line, as the manual writes it.
impl Form {
    /// `8B /r`, `MOV r32, r/m32`
    pub const MOV32: Form = Form { wide: false, opcode: 0x8b };
    /// `REX.W 8B /r`, `MOV r64, r/m64`
    pub const MOV: Form = Form { wide: true, opcode: 0x8b };
    /// `REX.W 8D /r`, `LEA r64, m`
    pub const LEA: Form = Form { wide: true, opcode: 0x8d };
    /// `REX.W 03 /r`, `ADD r64, r/m64`
    pub const ADD: Form = Form { wide: true, opcode: 0x03 };
    /// `REX.W 2B /r`, `SUB r64, r/m64`
    pub const SUB: Form = Form { wide: true, opcode: 0x2b };
    /// `REX.W 23 /r`, `AND r64, r/m64`
    pub const AND: Form = Form { wide: true, opcode: 0x23 };
    /// `REX.W 33 /r`, `XOR r64, r/m64`
    pub const XOR: Form = Form { wide: true, opcode: 0x33 };
    /// `REX.W 3B /r`, `CMP r64, r/m64`
    pub const CMP: Form = Form { wide: true, opcode: 0x3b };
}

#[rustfmt::skip] // A table.
impl ImmediateForm {
    /// `C1 /5 ib`, `SHR r/m32, imm8`
    pub const SHR32: ImmediateForm = ImmediateForm { wide: false, opcode: 0xc1, extension: 5 };
    /// `REX.W C1 /5 ib`, `SHR r/m64, imm8`
    pub const SHR: ImmediateForm = ImmediateForm { wide: true, opcode: 0xc1, extension: 5 };
    /// `81 /0 id`, `ADD r/m32, imm32`
    pub const ADD32: ImmediateForm = ImmediateForm { wide: false, opcode: 0x81, extension: 0 };
    /// `81 /4 id`, `AND r/m32, imm32`
    pub const AND32: ImmediateForm = ImmediateForm { wide: false, opcode: 0x81, extension: 4 };
    /// `REX.W 81 /4 id`, `AND r/m64, imm32`
    pub const AND: ImmediateForm = ImmediateForm { wide: true, opcode: 0x81, extension: 4 };
    /// `REX.W 81 /7 id`, `CMP r/m64, imm32`
    pub const CMP: ImmediateForm = ImmediateForm { wide: true, opcode: 0x81, extension: 7 };
}

/// `op %rm, %reg`
pub fn registers(out: &mut Vec<u8>, form: Form, reg: Reg, rm: Reg) {
    head(out, form.wide, form.opcode, [reg.number(), 0, rm.number()]);
    out.push(modrm(3, reg.number(), rm.number()));
}

/// `op $imm, %rm` with an immediate of 8 bits.
pub fn immediate8(out: &mut Vec<u8>, form: ImmediateForm, rm: Reg, imm: u8) {
    extended(out, form, rm);
    out.push(imm);
}

/// `op $imm, %rm` with an immediate of 32 bits.
pub fn immediate32(out: &mut Vec<u8>, form: ImmediateForm, rm: Reg, imm: i32) {
    extended(out, form, rm);
    out.extend_from_slice(&imm.to_le_bytes());
}

/// `op operand, %reg`; the displacement comes last. The operand is relative to neither
/// `rip` nor a segment.
pub fn memory(out: &mut Vec<u8>, form: Form, reg: Reg, operand: &Operand) {
    /// "No index" in a SIB byte, and "a SIB byte follows" in ModRM.
    const SIB: u8 = 4;
    /// "No base" in a SIB byte, if `mode` is 0: 32 bits of displacement follow.
    const NO_BASE: u8 = 5;
    let displacement = operand.encoded_displacement();
    let (base, mode) = match (operand.base, displacement) {
        (Base::None | Base::Rip, _) => (NO_BASE, 0),
        (Base::Register(base), Displacement::None) => (base.number(), 0),
        (Base::Register(base), Displacement::Short(_)) => (base.number(), 1),
        (Base::Register(base), Displacement::Full(_)) => (base.number(), 2),
    };
    let (index, scale) = match operand.index {
        Index::Register(index, log2) => (index.number(), log2),
        Index::None | Index::Vector => (SIB, 0),
    };
    if operand.narrow {
        out.push(0x67);
    }
    head(out, form.wide, form.opcode, [reg.number(), index, base]);
    let based = matches!(operand.base, Base::Register(_));
    if operand.index == Index::None && based && base & 7 != SIB {
        out.push(modrm(mode, reg.number(), base));
    } else {
        out.push(modrm(mode, reg.number(), SIB));
        out.push(modrm(scale, index, base));
    }
    match displacement {
        Displacement::None => {}
        Displacement::Short(d) => out.push(d as u8),
        Displacement::Full(d) => out.extend_from_slice(&d.to_le_bytes()),
    }
}

/// `op 0(%rip), %reg`; the displacement comes last.
pub fn relative(out: &mut Vec<u8>, form: Form, reg: Reg) {
    head(out, form.wide, form.opcode, [reg.number(), 0, 0]);
    out.push(modrm(0, reg.number(), 5));
    out.extend_from_slice(&[0; 4]);
}

fn extended(out: &mut Vec<u8>, form: ImmediateForm, rm: Reg) {
    head(out, form.wide, form.opcode, [0, 0, rm.number()]);
    out.push(modrm(3, form.extension, rm.number()));
}

/// REX, if it is needed, and the opcode. The registers are those of ModRM's `reg`, the
/// index and the base or `rm`.
fn head(out: &mut Vec<u8>, wide: bool, opcode: u8, [reg, index, base]: [u8; 3]) {
    let rex = u8::from(wide) << 3 | reg >> 3 << 2 | index >> 3 << 1 | base >> 3;
    if rex != 0 {
        out.push(0x40 | rex);
    }
    out.push(opcode);
}

/// ModRM and SIB have the same fields of 2, 3 and 3 bits.
fn modrm(high: u8, middle: u8, low: u8) -> u8 {
    high << 6 | (middle & 7) << 3 | low & 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::{ri, rm, rr};
    use crate::registers::{reg32, reg64};
    use iced_x86::{Code, Encoder, Instruction};

    fn all() -> impl Iterator<Item = Reg> + Clone {
        (0..16).filter_map(Reg::new)
    }

    fn same(instruction: &Instruction, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut encoder = Encoder::new(64);
        encoder.encode(instruction, 0).expect("it encodes");
        let mut bytes = Vec::new();
        encode(&mut bytes);
        assert_eq!(bytes, encoder.take_buffer(), "{instruction}");
    }

    #[test]
    fn registers_and_immediates_are_encoded_as_iced_does() {
        let immediate = [
            (ImmediateForm::AND32, Code::And_rm32_imm32),
            (ImmediateForm::AND, Code::And_rm64_imm32),
            (ImmediateForm::CMP, Code::Cmp_rm64_imm32),
        ];
        for a in all() {
            for b in all() {
                let narrow = rr(Code::Mov_r32_rm32, reg32(a), reg32(b));
                same(&narrow, |out| registers(out, Form::MOV32, a, b));
                let wide = rr(Code::Mov_r64_rm64, reg64(a), reg64(b));
                same(&wide, |out| registers(out, Form::MOV, a, b));
            }
            let shift = ri(Code::Shr_rm32_imm8, reg32(a), 8);
            same(&shift, |out| immediate8(out, ImmediateForm::SHR32, a, 8));
            let shift = ri(Code::Shr_rm64_imm8, reg64(a), 8);
            same(&shift, |out| immediate8(out, ImmediateForm::SHR, a, 8));
            for (form, code) in immediate {
                let r = if form.wide { reg64(a) } else { reg32(a) };
                same(&ri(code, r, -4096), |out| immediate32(out, form, a, -4096));
            }
        }
    }

    #[test]
    fn memory_operands_are_encoded_as_iced_does() {
        let forms = [
            (Form::MOV, Code::Mov_r64_rm64),
            (Form::LEA, Code::Lea_r64_m),
            (Form::ADD, Code::Add_r64_rm64),
            (Form::SUB, Code::Sub_r64_rm64),
            (Form::AND, Code::And_r64_rm64),
            (Form::XOR, Code::Xor_r64_rm64),
            (Form::CMP, Code::Cmp_r64_rm64),
        ];
        let displacements = [0, 1, -128, 128, 0x1234_5678, i32::MIN.into()];
        let bases = all().map(Base::Register).chain([Base::None]);
        let indices = all().filter(|r| *r != Reg::RSP);
        let indices = indices.flat_map(|r| [0, 1, 3].map(|log2| Index::Register(r, log2)));
        let plain = Operand::at(Reg::RAX, 0);
        for base in bases {
            for index in indices.clone().chain([Index::None]) {
                for (n, (form, code)) in forms.into_iter().enumerate() {
                    let to = Reg::new(n as u8 * 5 % Reg::COUNT).expect("a register");
                    let none = base == Base::None && index == Index::None;
                    for narrow in [false, true].into_iter().filter(|narrow| !none || !narrow) {
                        for displacement in displacements {
                            let m = Operand {
                                base,
                                index,
                                displacement,
                                narrow,
                                ..plain
                            };
                            same(&rm(code, reg64(to), m), |out| memory(out, form, to, &m));
                        }
                        let m = Operand {
                            base,
                            index,
                            narrow,
                            relocated: true,
                            ..plain
                        };
                        same(&rm(code, reg64(to), m), |out| memory(out, form, to, &m));
                    }
                }
            }
        }
    }
}
