//! Instructions as bytes.

use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

pub fn encode(i: Instruction) -> (Vec<u8>, usize) {
    let mut encoder = Encoder::new(64);
    encoder.encode(&i, 0).expect("an encoding");
    let at = encoder.get_constant_offsets().displacement_offset();
    (encoder.take_buffer(), at)
}

pub fn bytes(i: Result<Instruction, iced_x86::IcedError>) -> Vec<u8> {
    encode(i.expect("operands")).0
}

pub fn two(code: Code, a: Register, b: Register) -> Vec<u8> {
    bytes(Instruction::with2(code, a, b))
}

pub fn imm(code: Code, r: Register, value: i32) -> Vec<u8> {
    bytes(Instruction::with2(code, r, value))
}

pub fn load(code: Code, r: Register, base: Register, disp: i32) -> Vec<u8> {
    let m = MemoryOperand::with_base_displ(base, disp.into());
    bytes(Instruction::with2(code, r, m))
}

pub fn store(code: Code, base: Register, disp: i32, r: Register) -> Vec<u8> {
    let m = MemoryOperand::with_base_displ(base, disp.into());
    bytes(Instruction::with2(code, m, r))
}

pub fn one(code: Code, r: Register) -> Vec<u8> {
    bytes(Instruction::with1(code, r))
}

pub fn on(code: Code, base: Register, disp: i32) -> Vec<u8> {
    let m = MemoryOperand::with_base_displ(base, disp.into());
    bytes(Instruction::with1(code, m))
}

/// The lower half of a register of 64 bits.
pub fn low(r: Register) -> Register {
    Register::EAX + r.number() as u32
}
