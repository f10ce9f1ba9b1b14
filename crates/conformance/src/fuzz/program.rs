//! Well-formed instructions from any bytes.
//!
//! Each byte of an input is a choice: of an encoding, a register, a
//! displacement. A fuzzer's edits then change instructions rather than destroy
//! them.

/// The bytes of an instruction of [`FORMS`] after its opcode.
#[derive(Clone, Copy)]
enum Tail {
    /// Nothing; the low three bits of the opcode are a register if `true`.
    Plain(bool),
    /// ModR/M with that opcode extension, or with a register if `None`, and an
    /// immediate of that many bytes.
    Operand(Option<u8>, u8),
    /// An immediate of that many bytes, the opcode's low bits being a register.
    Immediate(u8),
    /// A branch offset of one byte.
    Branch,
}

use Tail::{Branch, Immediate, Operand, Plain};

/// The encodings that [`program`] chooses from (SDM volume 2, appendix A):
/// mandatory prefix and opcode bytes, the number of consecutive opcodes from the first
/// on, and what follows the opcode.
const FORMS: &[(&[u8], u8, Tail)] = &[
    // mov, and arithmetic in its eight times four two-operand forms.
    (&[0x88], 4, Operand(None, 0)),
    (&[0x00], 4, Operand(None, 0)),
    (&[0x08], 4, Operand(None, 0)),
    (&[0x10], 4, Operand(None, 0)),
    (&[0x18], 4, Operand(None, 0)),
    (&[0x20], 4, Operand(None, 0)),
    (&[0x28], 4, Operand(None, 0)),
    (&[0x30], 4, Operand(None, 0)),
    (&[0x38], 4, Operand(None, 0)),
    (&[0x84], 4, Operand(None, 0)), // test, xchg
    (&[0x80], 1, Operand(Some(8), 1)),
    (&[0x81], 1, Operand(Some(8), 4)),
    (&[0x83], 1, Operand(Some(8), 1)),
    (&[0xc6], 1, Operand(Some(0), 1)),
    (&[0xc7], 1, Operand(Some(0), 4)),
    (&[0xb8], 1, Immediate(4)),
    (&[0xf6], 1, Operand(Some(0), 1)), // test
    (&[0xf7], 1, Operand(Some(0), 4)),
    (&[0xf7], 1, Operand(Some(2), 0)), // not
    (&[0xf7], 1, Operand(Some(3), 0)), // neg
    (&[0xf7], 1, Operand(Some(4), 0)), // mul
    (&[0xf7], 1, Operand(Some(6), 0)), // div
    (&[0xfe], 2, Operand(Some(0), 0)), // inc
    (&[0xfe], 2, Operand(Some(1), 0)), // dec
    (&[0xc0], 2, Operand(Some(8), 1)), // shifts
    (&[0xd0], 4, Operand(Some(8), 0)),
    (&[0x63], 1, Operand(None, 0)), // movsxd
    (&[0x69], 1, Operand(None, 4)), // imul
    (&[0x6b], 1, Operand(None, 1)),
    (&[0x8d], 1, Operand(None, 0)), // lea
    // Indirect transfers, push and pop.
    (&[0xff], 1, Operand(Some(2), 0)),
    (&[0xff], 1, Operand(Some(4), 0)),
    (&[0xff], 1, Operand(Some(6), 0)),
    (&[0x8f], 1, Operand(Some(0), 0)),
    (&[0x50], 1, Plain(true)),
    (&[0x58], 1, Plain(true)),
    (&[0x6a], 1, Immediate(1)),
    // Strings, direction, flags, xlat.
    (&[0xa4], 4, Plain(false)),
    (&[0xaa], 6, Plain(false)),
    (&[0xf3, 0xa4], 2, Plain(false)),
    (&[0xf3, 0x48, 0xa5], 1, Plain(false)),
    (&[0xf3, 0xaa], 2, Plain(false)),
    (&[0xf3, 0xa6], 2, Plain(false)),
    (&[0xf2, 0xae], 2, Plain(false)),
    (&[0xfc], 2, Plain(false)), // cld, std
    (&[0xf8], 2, Plain(false)), // clc, stc
    (&[0x9e], 2, Plain(false)), // sahf, lahf
    (&[0x98], 2, Plain(false)), // cwde, cdq
    (&[0x9c], 2, Plain(false)), // pushf, popf
    (&[0xd7], 1, Plain(false)),
    (&[0xc9], 1, Plain(false)), // leave
    (&[0xc3], 1, Plain(false)),
    // Branches.
    (&[0x70], 16, Branch),
    (&[0xe0], 4, Branch),
    (&[0xeb], 1, Branch),
    // Two-byte opcodes.
    (&[0x0f, 0x40], 16, Operand(None, 0)),    // cmov
    (&[0x0f, 0x90], 16, Operand(Some(0), 0)), // set
    (&[0x0f, 0xa3], 1, Operand(None, 0)),     // bt, bts, btr, btc
    (&[0x0f, 0xab], 1, Operand(None, 0)),
    (&[0x0f, 0xb3], 1, Operand(None, 0)),
    (&[0x0f, 0xbb], 1, Operand(None, 0)),
    (&[0x0f, 0xba], 1, Operand(Some(12), 1)),
    (&[0x0f, 0xa4], 1, Operand(None, 1)), // shld, shrd
    (&[0x0f, 0xac], 1, Operand(None, 1)),
    (&[0x0f, 0xaf], 1, Operand(None, 0)),    // imul
    (&[0x0f, 0xb0], 2, Operand(None, 0)),    // cmpxchg
    (&[0x0f, 0xc0], 2, Operand(None, 0)),    // xadd
    (&[0x0f, 0xc7], 1, Operand(Some(1), 0)), // cmpxchg8b, 16b
    (&[0x0f, 0xb6], 2, Operand(None, 0)),    // movzx
    (&[0x0f, 0xbe], 2, Operand(None, 0)),    // movsx
    (&[0x0f, 0xbc], 2, Operand(None, 0)),    // bsf, bsr
    (&[0x0f, 0xc3], 1, Operand(None, 0)),    // movnti
    (&[0x0f, 0xc8], 1, Plain(true)),         // bswap
    (&[0x0f, 0x18], 1, Operand(Some(1), 0)), // prefetch
    (&[0x0f, 0x0d], 1, Operand(Some(1), 0)),
    (&[0x0f, 0x1f], 1, Operand(Some(0), 0)),    // nop
    (&[0x0f, 0x38, 0xf0], 2, Operand(None, 0)), // movbe
    (&[0x0f, 0xae, 0xe8], 1, Plain(false)),     // lfence
    (&[0x0f, 0x0b], 1, Plain(false)),
    // Vectors.
    (&[0x0f, 0x10], 2, Operand(None, 0)),
    (&[0x0f, 0x12], 2, Operand(None, 0)),
    (&[0x0f, 0x58], 8, Operand(None, 0)),
    (&[0x0f, 0xef], 1, Operand(None, 0)),
    (&[0x0f, 0x6f], 1, Operand(None, 0)),
    (&[0x0f, 0x7e], 2, Operand(None, 0)),
    (&[0x0f, 0x3a, 0x14], 4, Operand(None, 1)),
    (&[0xc5, 0xfd, 0x6f], 1, Operand(None, 0)),
    (&[0xc5, 0xf9, 0xd6], 1, Operand(None, 0)),
];

/// Most bytes of a made program.
const PROGRAM: usize = 512;

/// Turns any bytes into a function of well-formed instructions with any
/// operands: the fuzzer's edits then change instructions rather than destroy
/// them. The rewriter may refuse it.
pub fn program(choices: &[u8]) -> Vec<u8> {
    let mut choices = Choices(choices);
    let mut code = Vec::new();
    while let (Some(number), true) = (choices.next(), code.len() < PROGRAM) {
        code.extend(one(number, &mut choices));
    }
    code.push(0xc3); // ret
    code
}

/// One instruction: its encoding by number, its operands by choice.
pub fn one(number: u8, choices: &mut Choices<'_>) -> Vec<u8> {
    let (bytes, alternatives, tail) = FORMS[usize::from(number) % FORMS.len()];
    let mut code = Vec::new();
    instruction(&mut code, bytes, alternatives, tail, choices);
    code
}

/// The remaining choices; zero after their end.
pub struct Choices<'c>(pub &'c [u8]);

impl Choices<'_> {
    /// The next one, if there is any.
    pub fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next one, or zero.
    pub fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }
}

/// Prefixes, opcode and operands of one instruction.
fn instruction(code: &mut Vec<u8>, bytes: &[u8], more: u8, tail: Tail, choices: &mut Choices<'_>) {
    let style = choices.byte();
    let vex = bytes[0] == 0xc5;
    // One instruction in four has a prefix, one in two a REX.
    if style & 3 == 3 && !vex {
        const PREFIXES: [u8; 8] = [0xf0, 0x66, 0x65, 0xf3, 0xf2, 0x66, 0xf0, 0x67];
        code.push(PREFIXES[usize::from(style >> 2 & 7)]);
    }
    let own = usize::from(matches!(bytes[0], 0xf2 | 0xf3));
    code.extend_from_slice(&bytes[..own]);
    if style & 0x20 != 0 && !vex && bytes[own] & 0xf0 != 0x40 {
        // W for half of these, R, X and B for a quarter each.
        let bits = [8, 0, 9, 12, 8, 10, 4, 15];
        code.push(0x40 | bits[usize::from(choices.byte() & 7)]);
    }
    code.extend_from_slice(&bytes[own..]);
    let opcode = code.len() - 1;
    code[opcode] = code[opcode].wrapping_add(if more > 1 { choices.byte() % more } else { 0 });
    match tail {
        Plain(register) => {
            code[opcode] |= if register { general(choices.byte()) } else { 0 };
        }
        Immediate(size) => {
            code[opcode] |= if size == 4 {
                general(choices.byte())
            } else {
                0
            };
            constant(code, size, choices);
        }
        Operand(extension, size) => {
            operand(code, extension, choices);
            // 66 makes an immediate of four bytes one of two: the decoder then
            // reads two bytes as the next instruction, which does no harm.
            constant(code, size, choices);
        }
        // Mostly near: to the start and the middle of instructions.
        Branch => code.push(((choices.byte() & 0x1f) as i8 - 12) as u8),
    }
}

/// A register number; seldom `rsp`, about which the rewriter is strict.
fn general(choice: u8) -> u8 {
    match choice & 7 {
        4 if choice & 0xf0 != 0 => choice >> 4 & 3,
        number => number,
    }
}

fn constant(code: &mut Vec<u8>, size: u8, choices: &mut Choices<'_>) {
    for n in 0..size {
        // Small numbers are the interesting ones: only the lowest byte is free.
        code.push(if n == 0 { choices.byte() } else { 0 });
    }
}

/// ModR/M, SIB and displacement. An extension of 8 and more is any of eight, or
/// of the upper four.
fn operand(code: &mut Vec<u8>, extension: Option<u8>, choices: &mut Choices<'_>) {
    let reg = match extension {
        None => general(choices.byte()),
        Some(8) => choices.byte() & 7,
        Some(12) => 4 | choices.byte() & 3,
        Some(fixed) => fixed,
    };
    let modrm = choices.byte();
    let (mode, rm) = (modrm >> 6, modrm & 7);
    code.push(mode << 6 | reg << 3 | if mode == 3 { general(modrm) } else { rm });
    if mode == 3 {
        return;
    }
    let mut absolute = rm == 5 && mode == 0;
    if rm == 4 {
        let sib = choices.byte();
        code.push(sib);
        absolute = sib & 7 == 5 && mode == 0;
    }
    let bytes = match mode {
        1 => 1,
        2 => 4,
        _ if absolute => 4,
        _ => 0,
    };
    constant(code, bytes, choices);
}
