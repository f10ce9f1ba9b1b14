//! Checks, and what is around them, as instructions whose operands can still be changed.

use iced_x86::{Code, Instruction, MemoryOperand, Register};
use svm_verify::Scheme;

use crate::encode::{encode, low};
use crate::program::{Line, Link, Named};

/// A part of a program.
#[derive(Clone, Copy)]
pub enum Item {
    Label(u32),
    Plain(Instruction),
    /// It reads that half of an entry.
    Table(Instruction, i64),
    /// The loader fills in a field of it.
    Named(Instruction, Named),
    /// `jcc` with that condition.
    Branch(u8, u32),
    Jump(Link),
    Call(Link),
    Return,
    Bytes([u8; 4]),
}

impl Item {
    /// As a line of a program.
    pub fn line(self) -> Line {
        match self {
            Item::Label(label) => Line::Label(label),
            Item::Plain(i) => Line::Insn(encode(i).0, Link::None),
            Item::Table(i, half) => {
                let (bytes, at) = encode(i);
                Line::Insn(bytes, Link::Table(at, half))
            }
            Item::Named(i, named) => Line::Insn(encode(i).0, Link::Named(named)),
            Item::Branch(condition, to) => {
                Line::Insn(vec![0x0f, 0x80 | condition, 0, 0, 0, 0], Link::To(to))
            }
            Item::Jump(link) => Line::Insn(vec![0xe9, 0, 0, 0, 0], link),
            Item::Call(link) => Line::Insn(vec![0xe8, 0, 0, 0, 0], link),
            Item::Return => Line::Insn(vec![0xc3], Link::None),
            Item::Bytes(bytes) => Line::Insn(bytes.to_vec(), Link::None),
        }
    }
}

/// `ja`, and `jne`.
pub const ABOVE: u8 = 7;
pub const NOT_EQUAL: u8 = 5;

pub fn plain(i: Result<Instruction, iced_x86::IcedError>) -> Item {
    Item::Plain(i.expect("operands"))
}

pub fn two(code: Code, a: Register, b: Register) -> Item {
    plain(Instruction::with2(code, a, b))
}

pub fn imm(code: Code, r: Register, value: i32) -> Item {
    plain(Instruction::with2(code, r, value))
}

pub fn load(code: Code, r: Register, base: Register, disp: i32) -> Item {
    let m = MemoryOperand::with_base_displ(base, disp.into());
    plain(Instruction::with2(code, r, m))
}

pub fn store(code: Code, base: Register, disp: i32, r: Register) -> Item {
    let m = MemoryOperand::with_base_displ(base, disp.into());
    plain(Instruction::with2(code, m, r))
}

pub fn one(code: Code, r: Register) -> Item {
    plain(Instruction::with1(code, r))
}

fn table(code: Code, r: Register, index: Register, half: i64) -> Item {
    let m = MemoryOperand::with_base_displ_size(index, 0, 8);
    Item::Table(Instruction::with2(code, r, m).expect("operands"), half)
}

pub fn copy(to: Register, from: Register) -> Item {
    two(Code::Mov_rm64_r64, to, from)
}

pub fn low_copy(to: Register, from: Register) -> Item {
    two(Code::Mov_rm32_r32, low(to), low(from))
}

/// What a check is of: the address in `v`, by an index in `i` and for `paper` the page in `p`.
#[derive(Clone, Copy)]
pub struct Check {
    pub v: Register,
    pub i: Register,
    pub p: Register,
    pub from: Register,
    pub disp: i32,
    /// Whether the address is copied, not computed.
    pub copied: bool,
}

impl Check {
    fn address(&self, to: Register) -> Item {
        match self.copied {
            true => copy(to, self.from),
            false => load(Code::Lea_r64_m, to, self.from, self.disp),
        }
    }

    /// The check, up to the label `back`. Its first instructions, so many, make the address.
    pub fn items(&self, scheme: Scheme, slow: u32, back: u32) -> (Vec<Item>, usize) {
        let Check { v, i, p, .. } = *self;
        match scheme {
            Scheme::Paper => (
                vec![
                    self.address(i),
                    copy(v, i),
                    imm(Code::And_rm64_imm32, i, -0x1000),
                    copy(p, i),
                    imm(Code::And_rm64_imm32, i, 0xff_f000),
                    imm(Code::Shr_rm64_imm8, i, 8),
                    table(Code::Cmp_r64_rm64, p, i, 0),
                    Item::Branch(NOT_EQUAL, slow),
                    table(Code::Xor_r64_rm64, v, i, 8),
                    Item::Label(back),
                ],
                2,
            ),
            _ => (
                vec![
                    self.address(v),
                    low_copy(i, v),
                    imm(Code::Shr_rm32_imm8, low(i), 8),
                    imm(Code::And_rm32_imm32, low(i), 0xfff0),
                    table(Code::Sub_r64_rm64, v, i, 0),
                    imm(Code::Cmp_rm64_imm32, v, 0xfff),
                    Item::Branch(ABOVE, slow),
                    table(Code::Add_r64_rm64, v, i, 8),
                    Item::Label(back),
                ],
                1,
            ),
        }
    }

    /// Its out-of-line part.
    pub fn slow(&self, scheme: Scheme, slow: u32, back: u32) -> Vec<Item> {
        let mut part = vec![Item::Label(slow)];
        if scheme != Scheme::Paper {
            part.push(self.address(self.v));
        }
        part.push(Item::Call(Link::Slow(self.v.number() as u32)));
        part.push(Item::Jump(Link::To(back)));
        part
    }
}

/// The number of elements of that size in `n`, from the address in `v` on, or down from it.
pub fn count(n: Register, v: Register, shift: u32, backward: bool) -> Vec<Item> {
    let narrow = low(n);
    let shifted = imm(Code::Shr_rm32_imm8, narrow, shift as i32);
    let mut all = vec![low_copy(n, v), imm(Code::And_rm32_imm32, narrow, 0xfff)];
    match backward {
        true => all.extend([shifted, imm(Code::Add_rm32_imm32, narrow, 1)]),
        false => all.extend([imm(Code::Xor_rm32_imm32, narrow, 0x1fff), shifted]),
    }
    all
}

/// The smaller of two in `n`.
pub fn smaller(n: Register, other: Register) -> [Item; 2] {
    [
        two(Code::Cmp_rm64_r64, n, other),
        two(Code::Cmova_r64_rm64, n, other),
    ]
}
