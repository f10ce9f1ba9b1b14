//! Makes programs for the target `linux`: a few functions in the forms of the rewriter and of
//! compilers, with some of their instructions changed.

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::encode::{encode, imm, load, low, on, one, store, two};
use super::program::{Alternative, FUNCTIONS, Line, Link, Program, Random};

const RSP: Register = Register::RSP;
const REGISTERS: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R10,
    Register::R12,
];
const KEPT: [Register; 3] = [Register::RBX, Register::RBP, Register::R12];
const FRAME: [Register; 4] = [RSP, Register::RBP, Register::R10, Register::RBX];

/// Makes programs.
pub struct Maker {
    pub random: Random,
    program: Program,
    labels: u32,
    /// Labels of the function that is being made.
    own: Vec<u32>,
    /// Those of them that are still to come.
    ahead: Vec<u32>,
    /// Its number.
    number: u32,
}

/// How a function has its frame.
#[derive(Clone, Copy)]
enum Shape {
    Plain,
    Pointer,
    Aligned,
    Argument,
}

pub fn program(seed: u64) -> Program {
    let mut maker = Maker {
        random: Random(seed),
        program: Program::default(),
        labels: FUNCTIONS,
        own: Vec::new(),
        ahead: Vec::new(),
        number: 0,
    };
    for number in 0..FUNCTIONS {
        maker.function(number);
    }
    maker.mutate();
    maker.program
}

impl Maker {
    fn put(&mut self, bytes: Vec<u8>) {
        self.program.lines.push(Line::Insn(bytes, Link::None));
    }

    fn link(&mut self, bytes: &[u8], link: Link) {
        self.program.lines.push(Line::Insn(bytes.to_vec(), link));
    }

    fn label(&mut self, label: u32) {
        self.program.lines.push(Line::Label(label));
    }

    fn new_label(&mut self) -> u32 {
        self.labels += 1;
        self.labels - 1
    }

    fn register(&mut self) -> Register {
        self.random.of(&REGISTERS)
    }

    fn pushed(&mut self, r: Register) {
        self.put(one(Code::Push_r64, r));
    }

    fn popped(&mut self, r: Register) {
        self.put(one(Code::Pop_r64, r));
    }

    fn moved(&mut self, to: Register, from: Register) {
        self.put(two(Code::Mov_rm64_r64, to, from));
    }

    fn leaed(&mut self, to: Register, from: Register, disp: i32) {
        self.put(load(Code::Lea_r64_m, to, from, disp));
    }

    fn function(&mut self, number: u32) {
        self.label(number);
        self.number = number;
        self.own = (0..self.random.below(3))
            .map(|_| self.new_label())
            .collect();
        self.ahead = self.own.clone();
        let shape = self.random.of(&[
            Shape::Plain,
            Shape::Pointer,
            Shape::Pointer,
            Shape::Aligned,
            Shape::Argument,
        ]);
        let saved: Vec<Register> = KEPT
            .into_iter()
            .filter(|&r| r != Register::RBP && self.random.one_in(2))
            .collect();
        let size = 8 * self.random.below(8) as i32;
        let alignment = -self.random.of(&[8, 16, 32, 64]);
        match shape {
            Shape::Plain => {
                saved.iter().for_each(|&r| self.pushed(r));
                self.put(imm(Code::Sub_rm64_imm8, RSP, size));
            }
            Shape::Pointer | Shape::Aligned => {
                self.pushed(Register::RBP);
                self.moved(Register::RBP, RSP);
                saved.iter().for_each(|&r| self.pushed(r));
                if let Shape::Aligned = shape {
                    self.put(imm(Code::And_rm64_imm8, RSP, alignment));
                }
                self.put(imm(Code::Sub_rm64_imm8, RSP, size));
            }
            Shape::Argument => {
                self.leaed(Register::R10, RSP, 8);
                self.put(imm(Code::And_rm64_imm8, RSP, alignment));
                self.put(on(Code::Push_rm64, Register::R10, -8));
                self.pushed(Register::RBP);
                self.moved(Register::RBP, RSP);
                self.pushed(Register::R10);
                saved.iter().for_each(|&r| self.pushed(r));
                self.put(imm(Code::Sub_rm64_imm8, RSP, size));
            }
        }
        for _ in 0..3 + self.random.below(9) {
            if self.random.one_in(3)
                && let Some(label) = self.ahead.pop()
            {
                self.label(label);
            }
            self.body();
        }
        while let Some(label) = self.ahead.pop() {
            self.label(label);
        }
        match shape {
            Shape::Plain => {
                self.put(imm(Code::Add_rm64_imm8, RSP, size));
                saved.iter().rev().for_each(|&r| self.popped(r));
            }
            Shape::Pointer | Shape::Aligned => {
                for (n, &r) in saved.iter().enumerate() {
                    let at = -8 * (n as i32 + 1);
                    self.put(load(Code::Mov_r64_rm64, r, Register::RBP, at));
                }
                if self.random.one_in(2) {
                    self.moved(RSP, Register::RBP);
                    self.popped(Register::RBP);
                } else {
                    self.put(vec![0xc9]);
                }
            }
            Shape::Argument => {
                for (n, &r) in saved.iter().enumerate() {
                    let at = -8 * (n as i32 + 2);
                    self.put(load(Code::Mov_r64_rm64, r, Register::RBP, at));
                }
                self.put(load(Code::Mov_r64_rm64, Register::R10, Register::RBP, -8));
                self.put(vec![0xc9]);
                self.leaed(RSP, Register::R10, -8);
            }
        }
        self.end();
    }

    /// A function, a later one if it is to end soon, or a routine of the kernel.
    fn callee(&mut self) -> Link {
        match self.random.below(8) {
            0 => Link::To(self.random.below(FUNCTIONS.into()) as u32),
            _ if self.number + 1 < FUNCTIONS => {
                let later = u64::from(FUNCTIONS - self.number - 1);
                Link::To(self.number + 1 + self.random.below(later) as u32)
            }
            _ => Link::Import,
        }
    }

    fn end(&mut self) {
        match self.random.below(6) {
            0 => self.link(&[0xe9, 0, 0, 0, 0], Link::Import),
            1 => {
                let to = self.callee();
                self.link(&[0xe9, 0, 0, 0, 0], to);
            }
            _ => self.put(vec![0xc3]),
        }
        self.put(vec![0xcc]);
    }

    fn body(&mut self) {
        match self.random.below(20) {
            0..=2 => self.check(),
            3..=5 => self.frame(),
            6..=8 => {
                let to = self.callee();
                self.link(&[0xe8, 0, 0, 0, 0], to);
            }
            9 => {
                let routine = self.random.of(&[Link::Import, Link::Import, Link::PutUser]);
                self.link(&[0xe8, 0, 0, 0, 0], routine);
            }
            10 | 11 => self.branch(),
            12 => self.faulting(),
            13 => self.alternative(),
            14 if self.random.one_in(2) => self.jump_label(),
            14 => self.warning(),
            15 => self.pair(),
            _ => {
                let plain = self.plain();
                self.put(plain);
            }
        }
    }

    /// A push, something, and a pop.
    fn pair(&mut self) {
        let (a, b) = (self.register(), self.register());
        self.pushed(a);
        let plain = self.plain();
        self.put(plain);
        let other = self.random.one_in(3);
        self.popped(if other { b } else { a });
    }

    fn place(&mut self) -> (Register, i32) {
        let base = self.random.of(&FRAME);
        let disp = 8 * (self.random.below(24) as i32 - 12);
        let off = if self.random.one_in(6) {
            1 + self.random.below(7) as i32
        } else {
            0
        };
        (base, disp + off)
    }

    /// An access to the frame.
    fn frame(&mut self) {
        let (base, disp) = self.place();
        let r = self
            .random
            .of(&[Register::RBP, Register::R10, Register::RBX, Register::RAX]);
        let line = match self.random.below(12) {
            0..=2 => store(Code::Mov_rm64_r64, base, disp, r),
            3..=5 => load(Code::Mov_r64_rm64, r, base, disp),
            6 => store(Code::Mov_rm32_r32, base, disp, low(r)),
            7 => store(Code::Movups_xmmm128_xmm, base, disp, Register::XMM0),
            8 => store(Code::Xchg_rm64_r64, base, disp, r),
            9 => store(Code::Mov_rm8_r8, base, disp, Register::AL),
            10 => on(Code::Push_rm64, base, disp),
            _ => store(Code::Add_rm64_r64, base, disp, r),
        };
        self.put(line);
    }

    /// Something of registers.
    fn plain(&mut self) -> Vec<u8> {
        let (a, b) = (self.register(), self.register());
        let word = 8 * (self.random.below(9) as i32 - 4);
        match self.random.below(20) {
            0 | 1 => two(Code::Mov_rm64_r64, a, b),
            16 => two(Code::Mov_rm64_r64, RSP, self.random.of(&FRAME)),
            17 => load(Code::Lea_r64_m, RSP, self.random.of(&FRAME), word),
            18 => load(Code::Mov_r64_rm64, RSP, self.random.of(&FRAME), word),
            19 => match self.random.below(4) {
                0 => vec![0xc9],
                1 => imm(Code::And_rm64_imm8, RSP, -self.random.of(&[8, 16, 64])),
                2 => one(Code::Pop_r64, RSP),
                _ => one(Code::Push_r64, RSP),
            },
            2 => two(Code::Mov_rm64_r64, a, RSP),
            3 => load(Code::Lea_r64_m, a, RSP, word),
            4 => load(Code::Lea_r64_m, a, b, word),
            5 => imm(Code::Add_rm64_imm8, a, word),
            6 => two(Code::Xchg_rm64_r64, a, b),
            7 => two(Code::Cmp_rm64_r64, a, b),
            8 => two(Code::Cmova_r64_rm64, a, b),
            9 => imm(Code::Mov_r32_imm32, low(a), word.abs()),
            10 => two(Code::Add_rm64_r64, a, b),
            11 => imm(Code::And_rm64_imm8, a, -16),
            12 => two(Code::Mov_rm32_r32, low(a), low(b)),
            13 => two(Code::Xor_rm32_r32, low(a), low(a)),
            14 => imm(Code::Shr_rm32_imm8, low(a), 8),
            _ => load(Code::Mov_r64_rm64, a, b, word),
        }
    }

    fn branch(&mut self) {
        let (a, b) = (self.register(), self.register());
        self.put(two(Code::Cmp_rm64_r64, a, b));
        let to = match &self.ahead[..] {
            _ if self.random.one_in(10) => self.random.below(self.labels.into()) as u32,
            [] => match &self.own[..] {
                [] => return,
                _ if self.random.one_in(2) => return,
                own => self.random.of(own),
            },
            ahead => self.random.of(ahead),
        };
        let condition = self.random.below(16) as u8;
        self.link(&[0x0f, 0x80 | condition, 0, 0, 0, 0], Link::To(to));
    }

    /// A check of scheme `stlb` and accesses.
    fn check(&mut self) {
        let address = self.register();
        let others = REGISTERS.map(|r| if r == Register::RBP { Register::R12 } else { r });
        let v = self.random.of(&others);
        let i = self.register();
        let disp = self.random.of(&[0, 8, 0x40, -16]);
        let (slow, back) = (self.new_label(), self.new_label());
        let lea = load(Code::Lea_r64_m, v, address, disp);
        self.put(lea.clone());
        self.put(two(Code::Mov_rm32_r32, low(i), low(v)));
        self.between();
        self.put(imm(Code::Shr_rm32_imm8, low(i), 8));
        self.put(imm(Code::And_rm32_imm32, low(i), 0xfff0));
        self.between();
        self.table(Code::Sub_r64_rm64, v, i, 0);
        self.between();
        self.put(imm(Code::Cmp_rm64_imm32, v, 0xfff));
        self.link(&[0x0f, 0x87, 0, 0, 0, 0], Link::To(slow));
        self.table(Code::Add_r64_rm64, v, i, 8);
        self.label(back);
        for _ in 0..1 + self.random.below(2) {
            let d = self.random.of(&[0, 8, -8, 0xff8, 0x1000, -0x1000]);
            let r = self.register();
            let line = match self.random.below(3) {
                0 => load(Code::Mov_r64_rm64, r, v, d),
                1 => store(Code::Mov_rm64_r64, v, d, r),
                _ => store(Code::Mov_rm8_r8, v, d, Register::AL),
            };
            self.put(line);
        }
        let over = self.new_label();
        self.link(&[0xe9, 0, 0, 0, 0], Link::To(over));
        self.label(slow);
        if v == address {
            self.put(lea);
        } else {
            let again = load(Code::Lea_r64_m, v, address, disp);
            self.put(again);
        }
        self.link(&[0xe8, 0, 0, 0, 0], Link::Slow(v.number() as u32));
        self.link(&[0xe9, 0, 0, 0, 0], Link::To(back));
        self.label(over);
    }

    /// Something else in the middle of a check.
    fn between(&mut self) {
        if self.random.one_in(8) {
            let plain = self.plain();
            self.put(plain);
        }
    }

    fn table(&mut self, code: Code, v: Register, i: Register, half: i64) {
        let m = MemoryOperand::with_base_displ_size(i, 0, 8);
        let (bytes, at) = encode(Instruction::with2(code, v, m).expect("operands"));
        self.program
            .lines
            .push(Line::Insn(bytes, Link::Table(at, half)));
    }

    /// An access that the kernel answers for.
    fn faulting(&mut self) {
        let (at, fixup) = (self.new_label(), self.new_label());
        let (a, b) = (self.register(), self.register());
        let base = if self.random.one_in(4) { RSP } else { b };
        let disp = 8 * (self.random.below(5) as i32 - 2);
        self.label(at);
        let line = match self.random.below(3) {
            0 => load(Code::Mov_r64_rm64, a, base, disp),
            1 => store(Code::Mov_rm64_r64, base, disp, a),
            _ => store(Code::Xchg_rm64_r64, base, disp, a),
        };
        self.put(line);
        if self.random.one_in(2) {
            self.label(fixup);
        } else {
            let over = self.new_label();
            self.link(&[0xe9, 0, 0, 0, 0], Link::To(over));
            self.label(fixup);
            let plain = self.plain();
            self.put(plain);
            self.label(over);
        }
        self.program.fixups.push((at, fixup));
    }

    fn alternative(&mut self) {
        let (from, to) = (self.new_label(), self.new_label());
        self.label(from);
        let site = match self.random.below(4) {
            0 => {
                self.link(&[0xe8, 0, 0, 0, 0], Link::Import);
                5
            }
            1 => 0,
            _ => {
                let plain = self.plain();
                let size = plain.len();
                self.put(plain);
                size
            }
        };
        let replacement = match self.random.below(5) {
            0 => vec![(vec![0xe8, 0, 0, 0, 0], Link::Import)],
            1 => {
                vec![(vec![0xe8, 0, 0, 0, 0], self.callee())]
            }
            2 => Vec::new(),
            _ => {
                let n = 1 + self.random.below(2);
                (0..n).map(|_| (self.plain(), Link::None)).collect()
            }
        };
        let size: usize = replacement.iter().map(|(bytes, _)| bytes.len()).sum();
        for _ in site..size.max(2) {
            self.put(vec![0x90]);
        }
        self.label(to);
        self.put(vec![0x90]);
        self.program.alternatives.push(Alternative {
            from,
            to,
            replacement,
        });
    }

    fn warning(&mut self) {
        let at = self.new_label();
        self.label(at);
        self.put(vec![0x0f, 0x0b]);
        self.program.warnings.push(at);
    }

    fn jump_label(&mut self) {
        let at = self.new_label();
        let to = match self.own.is_empty() {
            true => return,
            false => self.random.of(&self.own.clone()),
        };
        self.label(at);
        self.put(vec![0x0f, 0x1f, 0x44, 0, 0]);
        self.program.branches.push((at, to));
    }

    /// Changes a few instructions.
    fn mutate(&mut self) {
        for _ in 0..self.random.below(12) {
            let lines = self.program.lines.len() as u64;
            let at = self.random.below(lines) as usize;
            let Line::Insn(line, link) = self.program.lines[at].clone() else {
                continue;
            };
            match self.random.below(6) {
                0 => drop(self.program.lines.remove(at)),
                1 => self.program.lines.insert(at, Line::Insn(line, link)),
                2 => {
                    let plain = self.plain();
                    self.program.lines.insert(at, Line::Insn(plain, Link::None));
                }
                3 if at + 1 < self.program.lines.len() => self.program.lines.swap(at, at + 1),
                4 => {
                    let plain = self.plain();
                    self.program.lines[at] = Line::Insn(plain, Link::None);
                }
                _ => {
                    let mut line = line;
                    let byte = self.random.below(line.len() as u64) as usize;
                    let kept = if link == Link::None { 0 } else { 4 };
                    if byte + kept < line.len() {
                        line[byte] ^= 1 << self.random.below(8);
                        self.program.lines[at] = Line::Insn(line, link);
                    }
                }
            }
        }
    }
}
