//! The same of schemes with a window: operands with their prefixes, cut addresses, pointers of string
//! instructions, comparisons of pointers, and the two stacks.

use elf_loader::consts::{R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32};
use iced_x86::{Code, Instruction, MemoryOperand, OpKind, Register};
use svm_verify::Scheme;
use twin_abi::stack;

use super::checks::{ABOVE, Item, copy, imm, load, low_copy, one, plain, store, two};
use super::maker::{Maker, REGISTERS, string, vec_of};
use crate::common::machine::Cpu;
use crate::encode::low;
use crate::program::{Link, Named, Random};

const RSP: Register = Register::RSP;
const BELOW: u8 = 2;
/// Displacements, at the edges of what they may be.
const DISTANCES: [i64; 8] = [0, 8, -8, 0x1000, -1, 63, i32::MAX as i64, i32::MIN as i64];
/// Numbers at the edges of the windows, and addresses of dom0 with other upper halves.
const NUMBERS: [u64; 12] = [
    0xffff_8880_0012_2008,
    0xffff_ffff_8100_0ff8,
    0xffff_ffff_ffff_fffc,
    0x5000_0020_0000,
    0x7fff_ffff_fff8,
    1 << 63,
    1 << 42,
    (1 << 42) - 4,
    1 << 32,
    (1 << 32) - 4,
    0x12_3008,
    40,
];

/// A machine in a state.
pub fn machine(scheme: Scheme, mut random: Random) -> Cpu {
    let regs = std::array::from_fn(|_| random.of(&NUMBERS));
    let mut machine = Cpu::with_window(scheme == Scheme::Window, regs);
    machine.left = (0..8).map(|_| random.of(&NUMBERS)).collect();
    machine
}

/// An operand in memory, by the prefix 65.
fn operand(base: Register, index: Register, scale: u32, disp: i64) -> MemoryOperand {
    let size = if base.size() == 4 { 4 } else { 8 };
    MemoryOperand::new(base, index, scale, disp, size, false, Register::GS)
}

/// An instruction that reads eight bytes of the runtime.
fn constant(i: Result<Instruction, iced_x86::IcedError>, name: &'static str) -> Item {
    let i = i.expect("operands");
    let (bytes, _) = crate::encode::encode(i);
    let (kind, addend) = (R_X86_64_PC32, -4);
    let at = bytes.len() - 4;
    Item::Named(
        i,
        Named {
            at,
            kind,
            name,
            addend,
        },
    )
}

fn own_constant() -> MemoryOperand {
    MemoryOperand::with_base_displ(Register::RIP, 0)
}

fn number(r: Register, name: &'static str) -> Item {
    let i = Instruction::with2(Code::Mov_r64_imm64, r, 0u64).expect("operands");
    let (at, kind, addend) = (2, R_X86_64_64, 0);
    Item::Named(
        i,
        Named {
            at,
            kind,
            name,
            addend,
        },
    )
}

/// What writes the low half of a register and clears the upper one; and `cmova`, which says so of no
/// upper half.
const NARROW: [Code; 7] = [
    Code::Mov_r32_rm32,
    Code::Movzx_r32_rm8,
    Code::Add_r32_rm32,
    Code::Xor_r32_rm32,
    Code::And_r32_rm32,
    Code::Cmova_r32_rm32,
    Code::Sub_r32_rm32,
];

impl Maker {
    /// A part of a function.
    pub fn in_window(&mut self) -> Vec<Item> {
        match self.random.below(9) {
            0..=1 => self.operand_alone(),
            2..=3 => self.cut_and_reached(),
            4..=5 => self.window_string(),
            6 => self.own_words(),
            7 => self.bit(),
            _ => self.context(),
        }
    }

    fn is_wide(&self) -> bool {
        self.scheme == Scheme::Window
    }

    /// An access by a register of 64 bits, or its low half.
    fn reached(&mut self, base: Register) -> Item {
        let (r, disp) = (self.random.of(&REGISTERS), self.random.of(&DISTANCES));
        let index = match base.size() == 4 && self.random.one_in(2) {
            true => low(self.random.of(&REGISTERS)),
            false => Register::None,
        };
        let scale = if index == Register::None {
            1
        } else {
            self.random.of(&[1, 2, 4, 8])
        };
        let m = operand(base, index, scale, disp);
        match self.random.below(7) {
            0..=1 => plain(Instruction::with2(Code::Mov_r64_rm64, r, m)),
            2 => plain(Instruction::with2(Code::Mov_rm8_r8, m, Register::AL)),
            3 => plain(Instruction::with2(Code::Xchg_rm64_r64, m, r)),
            4 => plain(Instruction::with2(Code::Movzx_r32_rm8, low(r), m)),
            _ => plain(Instruction::with2(Code::Mov_rm64_r64, m, r)),
        }
    }

    fn operand_alone(&mut self) -> Vec<Item> {
        let [base] = self.registers();
        let mut all = self.compared(base);
        let base = self.random.of(&[base, base, RSP]);
        all.push(self.reached(low(base)));
        if self.random.one_in(3) {
            all.push(self.reached(low(base)));
        }
        all
    }

    /// With `--strict`, a pointer is compared first.
    fn compared(&mut self, r: Register) -> Vec<Item> {
        if !self.strict || self.random.one_in(4) {
            return Vec::new();
        }
        let wild = self.label();
        let named = Named {
            at: 1,
            kind: R_X86_64_PLT32,
            name: "twin_wild",
            addend: -4,
        };
        let mut cld = [0x90; 4];
        cld[0] = 0xfc;
        self.apart.extend([
            Item::Label(wild),
            one(Code::Push_r64, r),
            Item::Bytes(cld),
            Item::Call(Link::Named(named)),
        ]);
        let bound = |name| {
            constant(
                Instruction::with2(Code::Cmp_r64_rm64, r, own_constant()),
                name,
            )
        };
        vec![
            bound("twin_lowest"),
            Item::Branch(BELOW, wild),
            bound("twin_highest"),
            Item::Branch(ABOVE, wild),
        ]
    }

    /// An address in `v` becomes a place, or a low half.
    fn cut(&mut self, v: Register, from: Register) -> Vec<Item> {
        const MASK: &str = "twin_window_mask";
        let by_mask = |code| constant(Instruction::with2(code, v, own_constant()), MASK);
        match self.random.below(6) {
            _ if !self.is_wide() => vec![self.narrow(v, from)],
            0 => vec![self.narrow(v, from)],
            1 => {
                let i = Instruction::with3(Code::VEX_Pext_r64_r64_rm64, v, from, own_constant());
                vec![constant(i, MASK)]
            }
            2 => vec![copy(v, from), by_mask(Code::And_r64_rm64)],
            3 => vec![
                by_mask(Code::Mov_r64_rm64),
                two(Code::And_rm64_r64, v, from),
            ],
            4 => vec![
                copy(v, from),
                imm(Code::Shl_rm64_imm8, v, 22),
                imm(Code::Shr_rm64_imm8, v, 22),
            ],
            _ => {
                let by = self.random.of(&[21, 22, 40, 63]);
                vec![copy(v, from), imm(Code::Shr_rm64_imm8, v, by)]
            }
        }
    }

    fn narrow(&mut self, v: Register, from: Register) -> Item {
        match self.random.of(&NARROW) {
            _ if !self.random.one_in(3) => low_copy(v, from),
            Code::Movzx_r32_rm8 => two(Code::Movzx_r32_rm8, low(v), Register::CL),
            code => two(code, low(v), low(from)),
        }
    }

    fn cut_and_reached(&mut self) -> Vec<Item> {
        if !self.is_wide() {
            return self.operand_alone();
        }
        let [v, other] = self.registers();
        let from = self.random.of(&[v, other]);
        let mut all = self.compared(from);
        all.extend(self.cut(v, from));
        for _ in 0..1 + self.random.below(3) {
            match self.random.below(10) {
                0..=1 => {
                    let item = self.plain(v, other);
                    all.push(item);
                }
                2 => all.push(Item::Call(Link::Import)),
                3 => all.extend([one(Code::Push_r64, other), one(Code::Pop_r64, v)]),
                4 => {
                    let m = operand(low(other), Register::None, 1, 0);
                    all.push(plain(Instruction::with2(Code::Mov_r64_rm64, v, m)));
                }
                _ => {}
            }
            all.push(self.reached(v));
        }
        all
    }

    fn window_string(&mut self) -> Vec<Item> {
        const KINDS: [u8; 5] = [0xa4, 0xaa, 0xac, 0xa6, 0xae];
        let (kind, t) = (self.random.of(&KINDS), Register::RAX);
        let pointers: &[Register] = match kind {
            0xa4 | 0xa6 => &[Register::RDI, Register::RSI],
            0xac => &[Register::RSI],
            _ => &[Register::RDI],
        };
        let mut all = vec![number(t, "twin_window")];
        for &pointer in pointers {
            all.extend(self.compared(pointer));
            let from = self.random.of(&[pointer, pointer, Register::RBX]);
            all.extend(self.cut(pointer, from));
            let m = MemoryOperand::with_base_index(pointer, t);
            all.push(plain(Instruction::with2(Code::Lea_r64_m, pointer, m)));
        }
        let (backward, few) = (self.random.one_in(3), self.random.of(&[0, 3, 40]));
        all.push(imm(Code::Mov_r32_imm32, Register::ECX, few));
        if backward {
            all.push(Item::Bytes(vec_of(&[0xfd])));
        }
        for _ in 0..self.random.of(&[1, 1, 2]) {
            let (shift, repeated) = (self.random.below(4) as u32, self.random.one_in(2));
            all.push(Item::Bytes(string(kind, shift, repeated)));
        }
        if backward {
            all.push(Item::Bytes(vec_of(&[0xfc])));
        }
        all
    }

    /// Words of the control stack.
    fn own_words(&mut self) -> Vec<Item> {
        let [a, b] = self.registers();
        let word = 8 * self.random.below(4) as i32;
        let moved = |by| load(Code::Lea_r64_m, RSP, RSP, by);
        match self.random.below(5) {
            0 => vec![one(Code::Push_r64, a), one(Code::Pop_r64, b)],
            1 => {
                let inside = self.reached(Register::ESP);
                vec![moved(-word), inside, moved(word)]
            }
            2 => vec![
                copy(a, RSP),
                imm(Code::Sub_rm64_imm8, RSP, word),
                one(Code::Push_r64, b),
                copy(RSP, a),
            ],
            3 => vec![
                imm(Code::Sub_rm64_imm8, RSP, word),
                match self.random.one_in(4) {
                    true => store(Code::Mov_rm64_r64, RSP, word, a),
                    false => load(Code::Mov_r64_rm64, a, RSP, word),
                },
                imm(Code::Add_rm64_imm8, RSP, word),
            ],
            _ => {
                let m = operand(low(a), Register::None, 1, 8);
                vec![
                    plain(Instruction::with1(Code::Push_rm64, m)),
                    one(Code::Push_r64, b),
                    one(Code::Pop_r64, a),
                    plain(Instruction::with1(Code::Pop_rm64, m)),
                ]
            }
        }
    }

    /// A bit that a register says, below 64.
    fn bit(&mut self) -> Vec<Item> {
        let [r, base] = self.registers();
        let most = self.random.of(&[63, 63, 31, 127]);
        let m = operand(low(base), Register::None, 1, 0);
        let mask = self.random.of(&[
            imm(Code::And_rm64_imm8, r, most),
            imm(Code::And_rm32_imm8, low(r), most),
        ]);
        let bit = match self.random.one_in(3) {
            true => Instruction::with2(Code::Bts_rm32_r32, m, low(r)),
            false => Instruction::with2(Code::Bts_rm64_r64, m, r),
        };
        vec![mask, plain(bit)]
    }

    /// A segment base, and an access by it.
    fn context(&mut self) -> Vec<Item> {
        let [t] = self.registers();
        let disp = self
            .random
            .of(&[stack::GS_BASE_FROM_TOP, stack::FS_BASE_FROM_TOP]) as i32;
        let block = stack::BLOCK as i32;
        let top = self.random.of(&[block, block, block, 2 * block]) - 1;
        let place = self.random.of(&[0, 0, -8, block, -block]);
        let mut all = vec![
            load(Code::Lea_r64_m, t, RSP, place),
            imm(Code::Or_rm64_imm32, t, top),
            match self.random.one_in(6) {
                true => store(Code::Mov_rm64_r64, t, disp, t),
                false => load(Code::Mov_r64_rm64, t, t, disp),
            },
        ];
        all.push(self.reached(low(t)));
        all
    }

    /// Another operand in memory.
    pub fn bend(&mut self, part: &mut [Item]) {
        let is_operand = |i: &Instruction| i.op_kinds().any(|kind| kind == OpKind::Memory);
        let all = part.iter_mut().filter_map(|item| match item {
            Item::Plain(i) if is_operand(i) => Some(i),
            _ => None,
        });
        let mut all: Vec<&mut Instruction> = all.collect();
        let count = all.len() as u64;
        if count == 0 {
            return;
        }
        let i = &mut *all[self.random.below(count) as usize];
        let (base, index) = (i.memory_base(), i.memory_index());
        match self.random.below(6) {
            0 if base.size() == 4 && index == Register::None => {
                i.set_memory_displ_size(8);
                i.set_memory_base(base.full_register());
            }
            0 if base.size() == 8 && index == Register::None && base != RSP => {
                i.set_memory_displ_size(4);
                i.set_memory_base(low(base));
            }
            1 => {
                i.set_segment_prefix(
                    self.random
                        .of(&[Register::None, Register::FS, Register::GS]),
                )
            }
            2 if base.size() == 8 => i.set_memory_index(self.random.of(&REGISTERS)),
            3 if index != Register::None => i.set_memory_index_scale(self.random.of(&[1, 2, 8])),
            4 => {
                let disp = self.random.of(&DISTANCES);
                let narrow = base.size() == 4;
                i.set_memory_displacement64(if narrow {
                    disp as u32 as u64
                } else {
                    disp as u64
                });
                i.set_memory_displ_size(if narrow { 4 } else { 8 });
            }
            _ => {}
        }
    }
}
