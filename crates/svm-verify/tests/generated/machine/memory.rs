//! Registers and memory, and which accesses are within the contract.

use iced_x86::{Instruction, OpKind, Register};

use super::instructions::mask;
use super::{End, Frame, HEAP, Machine, PAGES, RSP, STACK, STACK_SIZE, Step, TABLE, WINDOWS};

impl Machine<'_> {
    /// Judges an access. An error without an end is a fault that goes on at a fixup.
    pub(super) fn judge(&mut self, at: u64, size: u64, write: bool, i: &Instruction) -> Step<()> {
        let listed = self.fixups.contains_key(&i.ip());
        let inside = |start: u64, length: u64| at >= start && at + size <= start + length;
        if i.segment_prefix() == Register::GS {
            return Err(End::Stopped("per-CPU data"));
        }
        if at >= u64::MAX - 64 {
            return match listed {
                true => Err(End::Stopped("fault")),
                false if self.stores && !write => Err(End::Stopped("the end of all")),
                false => Err(self.fault("at the end of all".into(), i)),
            };
        }
        if inside(STACK, STACK_SIZE) {
            let hit = |f: &Frame| at < f.at + 8 && f.at < at + size;
            // How far a listed access goes by a number, nothing says.
            if listed && write && i.memory_base() != Register::RSP {
                return Err(End::Stopped("a listed access to the frame"));
            }
            if write && self.frames.iter().any(hit) {
                return Err(self.fault(format!("a return address at {at:#x}"), i));
            }
            return Ok(());
        }
        if (WINDOWS..WINDOWS + PAGES * 0x4000).contains(&at) {
            let start = at & !0x3fff;
            if inside(start, 0x3000) {
                return Ok(());
            }
        }
        if inside(TABLE, 0x10000) && i.memory_displacement64() >= TABLE && !write {
            return Ok(());
        }
        match listed {
            true => Err(End::Stopped("fault")),
            false if self.stores && !write => Ok(()),
            false => Err(self.fault(format!("{at:#x} is not translated"), i)),
        }
    }

    pub(super) fn byte(&mut self, at: u64) -> u8 {
        match at {
            STACK.. if at < STACK + STACK_SIZE => self.stack[(at - STACK) as usize],
            TABLE.. if at < TABLE + 0x10000 => {
                let entry = self.entries.get(&((at - TABLE) >> 4)).copied();
                let page = entry.map(|page| (page - HEAP) >> 12);
                let words = match (entry, page) {
                    (Some(tag), Some(page)) => {
                        [tag, (WINDOWS + page * 0x4000 + 0x1000).wrapping_sub(tag)]
                    }
                    _ if at < TABLE + 16 => [0x1000, 0],
                    _ => [0, 0],
                };
                let word = words[(at >> 3 & 1) as usize];
                // The scheme subtracts the tag and adds the translation of the page.
                let word = match (at >> 3 & 1, entry) {
                    (1, Some(tag)) => word.wrapping_add(tag),
                    _ => word,
                };
                word.to_le_bytes()[(at & 7) as usize]
            }
            _ => match self.windows.get(&at) {
                Some(&byte) => byte,
                None => {
                    let word = self.number();
                    let start = at & !7;
                    for n in 0..8 {
                        self.windows
                            .entry(start + n)
                            .or_insert(word.to_le_bytes()[n as usize]);
                    }
                    self.windows[&at]
                }
            },
        }
    }

    pub(super) fn read(&mut self, at: u64, size: u64, i: &Instruction) -> Step<u64> {
        self.judge(at, size, false, i)?;
        let mut word = [0; 8];
        for n in 0..size.min(8) {
            word[n as usize] = self.byte(at + n);
        }
        Ok(u64::from_le_bytes(word))
    }

    pub(super) fn write(&mut self, at: u64, size: u64, value: u64, i: &Instruction) -> Step<()> {
        self.judge(at, size, true, i)?;
        for n in 0..size {
            let byte = value.to_le_bytes()[(n & 7) as usize];
            match at + n {
                a if (STACK..STACK + STACK_SIZE).contains(&a) => {
                    self.stack[(a - STACK) as usize] = byte;
                }
                a => drop(self.windows.insert(a, byte)),
            }
        }
        Ok(())
    }

    pub(super) fn register(&self, r: Register) -> u64 {
        let full = self.regs[r.full_register().number() % 16];
        match r.size() {
            8 => full,
            4 => full & 0xffff_ffff,
            2 => full & 0xffff,
            _ if matches!(r, Register::AH | Register::CH | Register::DH | Register::BH) => {
                self.regs[r.number() % 4] >> 8 & 0xff
            }
            _ => full & 0xff,
        }
    }

    pub(super) fn set_register(&mut self, r: Register, value: u64) -> Step<()> {
        if matches!(r, Register::AH | Register::CH | Register::DH | Register::BH) {
            let full = &mut self.regs[r.number() % 4];
            *full = *full & !0xff00 | (value & 0xff) << 8;
            return Ok(());
        }
        let full = &mut self.regs[r.full_register().number() % 16];
        *full = match r.size() {
            8 => value,
            4 => value & 0xffff_ffff,
            2 => *full & !0xffff | value & 0xffff,
            _ => *full & !0xff | value & 0xff,
        };
        Ok(())
    }

    pub(super) fn address(&self, i: &Instruction) -> u64 {
        let mut sum = i.memory_displacement64();
        if i.memory_base() == Register::RIP {
            return sum;
        }
        if i.memory_base() != Register::None {
            sum = sum.wrapping_add(self.register(i.memory_base()));
        }
        if i.memory_index() != Register::None {
            let scaled = self
                .register(i.memory_index())
                .wrapping_mul(i.memory_index_scale().into());
            sum = sum.wrapping_add(scaled);
        }
        sum
    }

    pub(super) fn size(i: &Instruction, n: u32) -> u64 {
        match i.op_kind(n) {
            OpKind::Register => i.op_register(n).size() as u64,
            OpKind::Memory => i.memory_size().size() as u64,
            _ if n == 0 => 8,
            _ => Machine::size(i, 0),
        }
    }

    pub(super) fn get(&mut self, i: &Instruction, n: u32) -> Step<u64> {
        let size = Machine::size(i, n);
        match i.op_kind(n) {
            OpKind::Register => Ok(self.register(i.op_register(n))),
            OpKind::Memory => self.read(self.address(i), size, i),
            _ => Ok(i.immediate(n) & mask(size)),
        }
    }

    pub(super) fn put(&mut self, i: &Instruction, n: u32, value: u64) -> Step<()> {
        let size = Machine::size(i, n);
        match i.op_kind(n) {
            OpKind::Register => self.set_register(i.op_register(n), value),
            _ => self.write(self.address(i), size, value, i),
        }
    }

    pub(super) fn push(&mut self, value: u64, i: &Instruction) -> Step<()> {
        let rsp = self.regs[RSP].wrapping_sub(8);
        if !(STACK..STACK + STACK_SIZE - 8).contains(&rsp) {
            return Err(self.fault("a push outside of the stack".into(), i));
        }
        if self.frames.iter().any(|f| f.at < rsp + 8 && rsp < f.at + 8) {
            return Err(self.fault("a push over a return address".into(), i));
        }
        self.regs[RSP] = rsp;
        self.poke(rsp, value);
        Ok(())
    }

    pub(super) fn pop(&mut self, i: &Instruction) -> Step<u64> {
        let rsp = self.regs[RSP];
        if !(STACK..STACK + STACK_SIZE - 8).contains(&rsp) {
            return Err(self.fault("a pop outside of the stack".into(), i));
        }
        let word = self.read(rsp, 8, i)?;
        self.regs[RSP] = rsp + 8;
        Ok(word)
    }
}
