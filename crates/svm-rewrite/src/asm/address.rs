//! How an address gets into a register.

use iced_x86::{Code, Instruction};
use liveness::Reg;

use super::encode::Form;
use super::{Assembler, Field, Operand, Referent, ri};
use crate::registers::reg64;

/// How an address gets into a register, in one instruction that can be
/// repeated out of line.
#[derive(Clone, Debug)]
pub enum Address {
    /// `mov %reg, %v`
    Copy(Reg),
    /// `lea operand, %v`
    Lea(Operand, Option<Referent>),
    /// `movabs $symbol, %v`
    Symbol(Referent),
    /// `mov $constant, %v`, or `movabs` if it takes 64 bits
    Constant(u64),
}

impl Address {
    /// Emits the instruction.
    pub fn emit(&self, asm: &mut Assembler, v: Reg) {
        match self {
            Address::Copy(from) => asm.registers(Form::MOV, v, *from),
            Address::Lea(operand, referent) => asm.lea(operand, *referent, v),
            Address::Symbol(referent) => {
                asm.inst_with(&movabs(v, 0), Some((Field::Abs64, *referent)));
            }
            Address::Constant(value) => match i32::try_from(*value as i64) {
                Ok(narrow) => asm.inst(&ri(Code::Mov_rm64_imm32, reg64(v), narrow)),
                Err(_) => asm.inst(&movabs(v, *value)),
            },
        }
    }
}

pub fn movabs(v: Reg, value: u64) -> Instruction {
    Instruction::with2(Code::Mov_r64_imm64, reg64(v), value)
        .expect("movabs takes a register and 64 bits")
}
