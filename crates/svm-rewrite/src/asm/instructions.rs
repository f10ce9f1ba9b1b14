//! Constructors of instructions, by the kinds of their operands.

use iced_x86::{Code, Instruction, Register};

use super::Operand;

/// `op reg, reg`.
pub fn rr(code: Code, a: Register, b: Register) -> Instruction {
    Instruction::with2(code, a, b).expect("register operands fit the form")
}

/// `op reg`.
pub fn r(code: Code, a: Register) -> Instruction {
    Instruction::with1(code, a).expect("a register operand fits the form")
}

/// `op mem`.
pub fn m(code: Code, m: Operand) -> Instruction {
    Instruction::with1(code, m.for_iced()).expect("a memory operand fits the form")
}

/// `op imm, reg`.
pub fn ri(code: Code, a: Register, imm: i32) -> Instruction {
    Instruction::with2(code, a, imm).expect("an immediate operand fits the form")
}

/// `op imm, mem`.
pub fn mi(code: Code, m: Operand, imm: i32) -> Instruction {
    Instruction::with2(code, m.for_iced(), imm).expect("an immediate operand fits the form")
}

/// `op mem, reg`.
pub fn rm(code: Code, a: Register, m: Operand) -> Instruction {
    Instruction::with2(code, a, m.for_iced()).expect("a memory operand fits the form")
}

/// `op reg, mem`.
pub fn mr(code: Code, m: Operand, a: Register) -> Instruction {
    Instruction::with2(code, m.for_iced(), a).expect("a memory operand fits the form")
}
