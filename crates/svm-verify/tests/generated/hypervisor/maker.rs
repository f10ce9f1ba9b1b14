//! Makes the programs: functions of checks, string instructions and calls.

use iced_x86::{Code, Register};
use svm_verify::Scheme;

use super::checks::{
    Check, Item, NOT_EQUAL, copy, count, imm, load, low_copy, one, smaller, store, two,
};
use crate::encode::low;
use crate::program::{FUNCTIONS, Line, Link, Program, Random};

const RSP: Register = Register::RSP;
/// Those that checks are made of.
pub const REGISTERS: [Register; 8] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R10,
];
/// How far below a return address its shadow is.
const SHADOW: i32 = 0x8000;

/// Makes a program.
pub struct Maker {
    pub random: Random,
    pub scheme: Scheme,
    /// Whether pointers are compared.
    pub strict: bool,
    labels: u32,
    /// The out-of-line parts of the function that is being made.
    pub apart: Vec<Item>,
}

/// The program of a seed.
pub fn program(scheme: Scheme, strict: bool, seed: u64) -> Program {
    let mut maker = Maker {
        random: Random(seed),
        scheme,
        strict,
        labels: FUNCTIONS,
        apart: Vec::new(),
    };
    let functions = (0..FUNCTIONS).flat_map(|number| maker.function(number));
    let lines = functions.map(Item::line).collect::<Vec<Line>>();
    Program {
        lines,
        ..Program::default()
    }
}

impl Maker {
    pub fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels - 1
    }

    fn function(&mut self, number: u32) -> Vec<Item> {
        let (smashed, spare) = (self.label(), Register::R11);
        let mut all = vec![Item::Label(number)];
        if !self.has_window() {
            all.extend([
                load(Code::Mov_r64_rm64, spare, RSP, 0),
                store(Code::Mov_rm64_r64, RSP, -SHADOW, spare),
            ]);
        }
        let saved = self.random.one_in(2);
        if saved {
            all.push(one(Code::Push_r64, Register::RBX));
        }
        for _ in 0..1 + self.random.below(3) {
            let part = self.part(number);
            all.extend(part);
        }
        if saved {
            all.push(one(Code::Pop_r64, Register::RBX));
        }
        if self.has_window() {
            all.push(Item::Return);
            all.append(&mut self.apart);
            return all;
        }
        all.extend([
            load(Code::Mov_r64_rm64, spare, RSP, -SHADOW),
            store(Code::Cmp_rm64_r64, RSP, 0, spare),
            Item::Branch(NOT_EQUAL, smashed),
            Item::Return,
        ]);
        all.append(&mut self.apart);
        all.extend([Item::Label(smashed), Item::Call(Link::Smashed)]);
        all
    }

    /// Whether memory is a window, without checks.
    pub fn has_window(&self) -> bool {
        !Scheme::TABLES.contains(&self.scheme)
    }

    /// A part of a function, mostly with something changed.
    fn part(&mut self, number: u32) -> Vec<Item> {
        let mut part = match self.random.below(8) {
            0..=6 if self.has_window() => self.in_window(),
            0..=1 => self.one_check(),
            2..=4 => self.two_checks(),
            5..=6 => self.string(),
            _ => return self.call(number),
        };
        for _ in 0..self.random.of(&[0, 1, 1, 1, 2]) {
            self.twist(&mut part);
        }
        if self.random.one_in(6) {
            self.twist_apart();
        }
        part
    }

    fn call(&mut self, number: u32) -> Vec<Item> {
        let later = u64::from(FUNCTIONS - number - 1);
        let to = match later > 0 && self.random.one_in(2) {
            true => Link::To(number + 1 + self.random.below(later) as u32),
            false => Link::Import,
        };
        vec![Item::Call(to)]
    }

    /// Registers, each once.
    pub fn registers<const N: usize>(&mut self) -> [Register; N] {
        let mut all = REGISTERS;
        for n in 0..N {
            let other = n + self.random.below((REGISTERS.len() - n) as u64) as usize;
            all.swap(n, other);
        }
        std::array::from_fn(|n| all[n])
    }

    fn access(&mut self, v: Register) -> Item {
        let disp = self.random.of(&[0, 8, -8, 0xff8, 0x1000, -0x1000]);
        let r = self.random.of(&REGISTERS);
        match self.random.below(4) {
            0 => load(Code::Mov_r64_rm64, r, v, disp),
            1 => store(Code::Mov_rm8_r8, v, disp, Register::AL),
            _ => store(Code::Mov_rm64_r64, v, disp, r),
        }
    }

    /// The check, what makes its address, and the rest; its out-of-line part is put apart.
    fn check(&mut self, check: Check) -> (Vec<Item>, usize) {
        let (slow, back) = (self.label(), self.label());
        self.apart.extend(check.slow(self.scheme, slow, back));
        check.items(self.scheme, slow, back)
    }

    fn of(&mut self, v: Register, i: Register, p: Register, from: Register) -> Check {
        let copied = self.random.one_in(2);
        Check {
            v,
            i,
            p,
            from,
            disp: self.random.of(&[0, 8, 0x800, 0x1000, -8]),
            copied,
        }
    }

    fn one_check(&mut self) -> Vec<Item> {
        let [v, i, p, other] = self.registers();
        let from = self.random.of(&[v, other, other]);
        let check = self.of(v, i, p, from);
        let (mut all, _) = self.check(check);
        if self.random.one_in(3) {
            let between = self.between(v, other);
            all.push(between);
        }
        all.push(self.access(v));
        if self.random.one_in(3) {
            all.push(self.access(v));
        }
        all
    }

    /// What leaves another number in `v`, or takes it away.
    fn between(&mut self, v: Register, other: Register) -> Item {
        match self.random.below(3) {
            0 => Item::Call(Link::Import),
            1 => two(Code::Xchg_rm64_r64, v, other),
            _ => self.plain(v, other),
        }
    }

    /// Two checks at once.
    fn two_checks(&mut self) -> Vec<Item> {
        let [v, i, p, w, j, q, from, other] = self.registers();
        let (first, second) = match self.random.below(4) {
            // They share an index, or all but the address.
            0 => (self.of(v, i, p, from), self.of(w, i, q, from)),
            1 => (self.of(v, i, p, from), self.of(w, i, p, other)),
            _ => (self.of(v, i, p, from), self.of(w, j, q, other)),
        };
        let (first, _) = self.check(first);
        let (second, _) = self.check(second);
        let mut all = match self.random.one_in(4) {
            true => [first, second].concat(),
            false => self.mixed(first, second),
        };
        all.push(self.access(v));
        all.push(self.access(w));
        all
    }

    /// Both, each in its order.
    fn mixed(&mut self, a: Vec<Item>, b: Vec<Item>) -> Vec<Item> {
        let (mut all, mut a, mut b) = (Vec::new(), a.into_iter(), b.into_iter());
        while a.len() + b.len() > 0 {
            let first = self.random.below((a.len() + b.len()) as u64) < a.len() as u64;
            all.extend(if first { a.next() } else { b.next() });
        }
        // What translates is right behind the branch.
        let mut n = 0;
        while n + 1 < all.len() {
            if let Item::Branch(..) = all[n] {
                let rest = &all[n + 1..];
                if let Some(k) = rest.iter().position(|i| matches!(i, Item::Table(_, 8))) {
                    let translates = all.remove(n + 1 + k);
                    let back = all.remove(n + 1 + k);
                    all.insert(n + 1, translates);
                    all.insert(n + 2, back);
                }
            }
            n += 1;
        }
        all
    }

    /// A check, or two, and a string instruction that goes as far as they cover.
    fn string(&mut self) -> Vec<Item> {
        const KINDS: [(u8, bool); 5] = [
            (0xa4, true),
            (0xaa, false),
            (0xac, false),
            (0xa6, true),
            (0xae, false),
        ];
        let (kind, both) = self.random.of(&KINDS);
        let (shift, backward) = (self.random.below(4) as u32, self.random.one_in(3));
        let [v, i, n, w, m] = [
            Register::RAX,
            Register::RDX,
            Register::R10,
            Register::RBX,
            Register::R8,
        ];
        let mut all = Vec::new();
        let target = if kind == 0xac {
            Register::RSI
        } else {
            Register::RDI
        };
        for (v, n, from) in [(v, n, target), (w, m, Register::RSI)]
            .into_iter()
            .take(1 + usize::from(both))
        {
            let check = self.of(v, i, Register::R9, from);
            let (mut part, made) = self.check(check);
            // The count may be computed anywhere from there to where the address is gone.
            let at = made + self.random.below(3) as usize;
            part.splice(at..at, count(n, v, shift, backward));
            all.extend(part);
        }
        if both {
            all.extend(smaller(n, m));
            all.push(copy(Register::RSI, w));
        }
        all.extend(smaller(n, Register::RCX));
        all.push(copy(target, v));
        all.push(copy(Register::RCX, n));
        if backward {
            all.push(Item::Bytes(vec_of(&[0xfd])));
        }
        let repeated = !self.random.one_in(6);
        all.push(Item::Bytes(string(kind, shift, repeated)));
        if backward {
            all.push(Item::Bytes(vec_of(&[0xfc])));
        }
        all
    }

    /// Something of two registers.
    pub fn plain(&mut self, a: Register, b: Register) -> Item {
        let disp = self.random.of(&[8, -8, 0x1000, -0x1000]);
        match self.random.below(14) {
            0..=2 => copy(a, b),
            3 => low_copy(a, b),
            4..=5 => load(Code::Lea_r64_m, a, a, disp),
            6 => load(Code::Lea_r64_m, a, b, disp),
            7 => imm(Code::Mov_r32_imm32, low(a), 0x12_3008),
            8 => two(Code::Mov_rm16_r16, word(a), word(b)),
            9 => two(Code::Mov_rm8_r8, Register::CL, Register::DL),
            10 => two(Code::Xchg_rm64_r64, a, b),
            11 => imm(Code::And_rm64_imm8, a, -16),
            12 => imm(Code::Add_rm32_imm32, low(a), 1),
            _ => two(Code::Cmova_r64_rm64, a, b),
        }
    }
}

/// The lower quarter of a register of 64 bits.
fn word(r: Register) -> Register {
    Register::AX + r.number() as u32
}

pub fn vec_of(bytes: &[u8]) -> [u8; 4] {
    let mut all = [0x90; 4];
    all[..bytes.len()].copy_from_slice(bytes);
    all
}

/// A string instruction, behind nops that make it four bytes.
pub fn string(kind: u8, shift: u32, repeated: bool) -> [u8; 4] {
    let prefix = |there: bool, byte| there.then_some(byte);
    let bytes = [
        prefix(shift == 1, 0x66),
        prefix(repeated, 0xf3),
        prefix(shift == 3, 0x48),
        Some(kind | u8::from(shift > 0)),
    ];
    let mut all = [0x90; 4];
    let bytes: Vec<u8> = bytes.into_iter().flatten().collect();
    all[4 - bytes.len()..].copy_from_slice(&bytes);
    all
}
