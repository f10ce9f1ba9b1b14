//! Changes one thing in a part of a function.

use iced_x86::{Code, OpKind, Register};

use super::checks::{Item, load, two};
use super::maker::{Maker, REGISTERS};
use crate::encode::low;
use crate::program::Link;

impl Maker {
    /// Changes one thing.
    pub fn twist(&mut self, part: &mut Vec<Item>) {
        if part.is_empty() {
            return;
        }
        let at = self.random.below(part.len() as u64) as usize;
        match self.random.below(12) {
            0..=1 => {
                let plain = self.about(part);
                part.insert(at, plain);
            }
            2 => self.move_source(part, at),
            3..=4 => self.change_index(part),
            5..=6 => self.change_register(part),
            7 if at + 1 < part.len() => part.swap(at, at + 1),
            8 => drop(part.remove(at)),
            9 => {
                let to = self.random.below(part.len() as u64) as usize;
                let end = part.len().min(at + 1 + self.random.below(5) as usize);
                let again: Vec<Item> = part[at..end].iter().copied().filter(unlabelled).collect();
                part.splice(to..to, again);
            }
            10 if self.has_window() => self.bend(part),
            11 => self.narrow_one(part),
            _ => self.detour(part),
        }
    }

    /// Changes the out-of-line part that was made last: the register of the slow path, or what comes
    /// before.
    pub fn twist_apart(&mut self) {
        let first = self.apart.len().saturating_sub(3);
        let r = self.random.of(&REGISTERS);
        match self.apart.get_mut(first..) {
            Some(
                [Item::Plain(_), Item::Call(Link::Slow(n)), _] | [_, Item::Call(Link::Slow(n)), _],
            ) if self.random.one_in(2) => {
                *n = r.number() as u32;
            }
            Some([Item::Plain(i), ..]) if self.random.one_in(2) => match i.op1_kind() {
                OpKind::Memory => i.set_memory_base(r),
                _ => i.set_op1_register(r),
            },
            Some([Item::Plain(_), ..]) => drop(self.apart.remove(first)),
            _ => {}
        }
    }

    /// 32 bits of an instruction of 64.
    fn narrow_one(&mut self, part: &mut [Item]) {
        let at = self.random.below(part.len() as u64) as usize;
        let Item::Plain(i) = &mut part[at] else {
            return;
        };
        let code = match i.code() {
            Code::Mov_rm64_r64 => Code::Mov_rm32_r32,
            Code::Lea_r64_m => Code::Lea_r32_m,
            Code::And_rm64_r64 => Code::And_rm32_r32,
            Code::And_rm64_imm32 => Code::And_rm32_imm32,
            Code::Cmp_rm64_imm32 => Code::Cmp_rm32_imm32,
            Code::Cmp_rm64_r64 => Code::Cmp_rm32_r32,
            Code::Shr_rm64_imm8 => Code::Shr_rm32_imm8,
            Code::Cmova_r64_rm64 => Code::Cmova_r32_rm32,
            _ => return,
        };
        let is_whole = |r: Register| r.is_gpr64();
        if i.op0_kind() == OpKind::Register && is_whole(i.op0_register()) {
            i.set_op0_register(low(i.op0_register()));
        }
        if i.op1_kind() == OpKind::Register && is_whole(i.op1_register()) {
            i.set_op1_register(low(i.op1_register()));
        }
        i.set_code(code);
        if i.op1_kind() == OpKind::Immediate32to64 {
            i.set_op1_kind(OpKind::Immediate32);
        }
    }

    /// Another number in what an address is made of, mostly while that is being checked.
    fn move_source(&mut self, part: &mut Vec<Item>, at: usize) {
        let sources: Vec<Register> = part.iter().filter_map(source).collect();
        if sources.is_empty() {
            return;
        }
        let r = self.random.of(&sources);
        let moved = match self.random.one_in(3) {
            true => self.about(part),
            false => load(Code::Lea_r64_m, r, r, self.random.of(&[8, 0x7f8, 0x1000])),
        };
        part.insert(at, moved);
    }

    /// The index of another check where one reads the table, or its number where one is compared.
    fn change_index(&mut self, part: &mut [Item]) {
        let is_table = |item: &Item| matches!(item, Item::Table(..));
        let places = (0..part.len()).filter(|&n| is_table(&part[n]));
        let places: Vec<usize> = places.collect();
        if places.is_empty() {
            return;
        }
        let [at, other] = [0; 2].map(|_| self.random.of(&places));
        let Item::Table(from, _) = part[other] else {
            return;
        };
        let of_index = !self.random.one_in(4);
        if let Item::Table(i, _) = &mut part[at] {
            match of_index {
                true => i.set_memory_base(from.memory_base()),
                false => i.set_op0_register(from.op0_register()),
            }
        }
    }

    /// Something of registers that the part uses.
    fn about(&mut self, part: &[Item]) -> Item {
        let used: Vec<Register> = part.iter().filter_map(written).collect();
        let one = |maker: &mut Maker| match used.is_empty() || maker.random.one_in(6) {
            true => maker.random.of(&REGISTERS),
            false => maker.random.of(&used),
        };
        let (a, b) = (one(self), one(self));
        self.plain(a, b)
    }

    /// A jump over some instructions, or back: then mostly with a register changed on the way.
    fn detour(&mut self, part: &mut Vec<Item>) {
        let (label, condition) = (self.label(), self.random.of(&[4, 5, 2, 3, 6, 7]));
        let [from, to] = [0; 2].map(|_| self.random.below(part.len() as u64) as usize);
        let [a, b] = [0; 2].map(|_| self.random.of(&REGISTERS));
        let mut jump = vec![
            two(Code::Cmp_rm64_r64, a, b),
            Item::Branch(condition, label),
        ];
        if to < from && !self.random.one_in(3) {
            jump.insert(0, self.about(part));
        }
        part.splice(from..from, jump);
        let moved = if to > from { 2 } else { 0 };
        part.insert(to + moved, Item::Label(label));
    }

    /// Another register as one operand of an instruction.
    fn change_register(&mut self, part: &mut [Item]) {
        let used: Vec<Register> = part.iter().filter_map(written).collect();
        if used.is_empty() {
            return;
        }
        let new = self.random.of(&used);
        let of_base = self.random.one_in(2);
        let at = self.random.below(part.len() as u64) as usize;
        let Some(Item::Plain(i) | Item::Table(i, _)) = part.get_mut(at) else {
            return;
        };
        let second = i.op_count() > 1 && i.op1_kind() == OpKind::Register && of_base;
        match i.memory_base() {
            Register::None if second => {
                i.set_op1_register(sized(new, i.op1_register()));
            }
            base if base != Register::None && of_base => i.set_memory_base(sized(new, base)),
            _ if i.op0_kind() == OpKind::Register => {
                i.set_op0_register(sized(new, i.op0_register()));
            }
            _ => {}
        }
    }
}

fn unlabelled(item: &Item) -> bool {
    !matches!(item, Item::Label(_))
}

/// The register of 64 bits that an item writes, or names first.
fn written(item: &Item) -> Option<Register> {
    let (Item::Plain(i) | Item::Table(i, _) | Item::Named(i, _)) = item else {
        return None;
    };
    let r = i.op0_register().full_register();
    REGISTERS.contains(&r).then_some(r)
}

/// The register that an address is made of.
fn source(item: &Item) -> Option<Register> {
    let Item::Plain(i) = item else {
        return None;
    };
    match i.code() {
        Code::Lea_r64_m => Some(i.memory_base()),
        Code::Mov_rm64_r64 if i.op0_kind() == OpKind::Register => Some(i.op1_register()),
        _ => None,
    }
}

/// A register of 64 bits in the size of another one.
fn sized(new: Register, old: Register) -> Register {
    match old.size() {
        8 => new,
        4 => Register::EAX + new.number() as u32,
        2 => Register::AX + new.number() as u32,
        _ => old,
    }
}
