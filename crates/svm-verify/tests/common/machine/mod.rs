//! A machine that executes emitted code and checks, at each access, whether the access is
//! confined. It judges the code that the verifier accepts. It does not depend on facts
//! or rules, only on memory.
//!
//! ```text
//! dom0 page p       --translation-->  WINDOWS + k * 0x4000 + 0x1000, mapped with
//!                                     the pages before and after it
//! the CPU's block   at BLOCK, entered with rsp = ENTRY
//! the table         at TABLE
//! ```

mod calls;
mod instructions;
mod strings;
mod window;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use elf_loader::{Object, Section};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Register};

use calls::Frame;
use window::Window;

const WINDOWS: u64 = 0x7f00_0000_0000;
const BLOCK: u64 = 0x7e00_0000_0000;
const ENTRY: u64 = BLOCK + 0xc000;
/// How far below a return address its shadow is.
const SHADOW: u64 = 0x8000;
const TABLE: u64 = 0x4000_0000;
const RETURN: u64 = 0x5ec2_e7ad;

/// Why the code is left at an access, which is no breach.
const FAULT: &str = "a fault";

/// A read or write of dom0 memory: address, size, value, whether written.
pub type Event = (u64, usize, u64, bool);

/// The dom0 address that is at an address, or the address itself on the stack; and which it is.
type Place = Result<(u64, bool), String>;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With the function's `ret`.
    Returned,
    /// After too many steps, or at `ud2`.
    Stopped,
    /// Something outside the contract happened.
    Breach(String),
}

/// The machine.
#[derive(Clone)]
pub struct Cpu {
    /// `rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15`.
    pub regs: [u64; 16],
    /// What dom0 memory was touched.
    pub events: Vec<Event>,
    /// Whether every write by pointer hits the return address as well: the driver
    /// may have passed a pointer to it.
    pub hostile: bool,
    paper: bool,
    /// Instead of the table.
    window: Option<Window>,
    flags: StatusFlags,
    memory: HashMap<u64, u8, BuildHasherDefault<AddressHasher>>,
    windows: Vec<u64>,
    entries: HashMap<u64, u64>,
    frames: Vec<Frame>,
    /// What other code leaves in registers. Without it there is no other code to call.
    pub left: Vec<u64>,
    drawn: u64,
}

/// Memory is touched byte by byte, millions of times.
#[derive(Clone, Copy, Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&b| self.write_u64(self.0 ^ u64::from(b)));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

#[derive(Clone, Copy, Default)]
struct StatusFlags {
    cf: bool,
    zf: bool,
    sf: bool,
    of: bool,
    pf: bool,
    df: bool,
}

impl Cpu {
    /// Where the CPU's context has the two segment bases.
    const CONTEXT: u64 = BLOCK + 0xe000;

    /// A machine with these registers, except `rsp`, in a scheme. `entries` are the pages
    /// that the table translates.
    pub fn new(paper: bool, regs: [u64; 16], entries: &[u64]) -> Cpu {
        let mut machine = Cpu {
            regs,
            events: Vec::new(),
            hostile: false,
            paper,
            window: None,
            flags: StatusFlags::default(),
            memory: HashMap::default(),
            windows: Vec::new(),
            entries: HashMap::new(),
            frames: Vec::new(),
            left: Vec::new(),
            drawn: 0,
        };
        machine.regs[4] = ENTRY + 8;
        for &page in entries {
            machine.entries.insert((page >> 12) & 0xfff, page & !0xfff);
        }
        machine.enter(RETURN, None);
        machine
    }

    fn window(&mut self, page: u64) -> u64 {
        let known = self.windows.iter().position(|&w| w == page);
        let k = known.unwrap_or_else(|| {
            self.windows.push(page);
            self.windows.len() - 1
        });
        WINDOWS + k as u64 * 0x4000 + 0x1000
    }

    /// The result of the slow path.
    fn translate(&mut self, address: u64) -> u64 {
        self.window(address & !0xfff) + (address & 0xfff)
    }

    fn table(&mut self, offset: u64) -> Result<u64, String> {
        if offset >= 0x10000 || offset & 7 != 0 {
            return Err(format!("the table at {offset:#x}"));
        }
        let index = offset >> 4;
        // An entry that is not valid has a tag that no address with this index
        // can match.
        let page = self.entries.get(&index).copied();
        let tag = page.unwrap_or((index ^ 1) << 12);
        if offset & 8 == 0 {
            return Ok(tag);
        }
        let mapped = page.map_or(0x6666_0000_0000, |page| self.window(page));
        Ok(if self.paper { tag ^ mapped } else { mapped })
    }

    /// The dom0 address that is mapped at an address, or the address itself on the
    /// stack.
    fn locate(&self, at: u64, size: usize, write: bool) -> Place {
        if let Some(window) = self.window {
            return self.in_window(window, at, size, write);
        }
        let end = at.wrapping_add(size as u64);
        if (WINDOWS..WINDOWS + 0x4000 * self.windows.len() as u64).contains(&at) {
            let (k, offset) = ((at - WINDOWS) / 0x4000, (at - WINDOWS) % 0x4000);
            if offset + size as u64 <= 0x3000 {
                let first = self.windows[k as usize].wrapping_sub(0x1000);
                return Ok((first.wrapping_add(offset), true));
            }
        }
        let entry = self.entry();
        let top = if write { entry } else { entry + 72 };
        if at >= entry - 4096 && end <= top {
            return Ok((at, false));
        }
        let shadow = entry - SHADOW;
        if at == shadow && size == 8 && (write || self.memory.contains_key(&shadow)) {
            return Ok((at, false));
        }
        if at == entry && size == 8 && write {
            return Ok((at, false));
        }
        if !write && size == 8 && (at == Cpu::CONTEXT || at == Cpu::CONTEXT + 8) {
            return Ok((at, false));
        }
        Err(format!(
            "{} of {size} bytes at {at:#x}",
            if write { "a write" } else { "a read" }
        ))
    }

    fn byte(&self, at: u64) -> u8 {
        let initial = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        self.memory.get(&at).copied().unwrap_or(initial)
    }

    fn read(&mut self, at: u64, size: usize) -> Result<u64, String> {
        let (place, dom0) = self.locate(at, size, false)?;
        let value = (0..size).rev().fold(0, |v, n| {
            (v << 8) | u64::from(self.byte(place.wrapping_add(n as u64)))
        });
        if dom0 {
            self.events.push((place, size, value, false));
        }
        Ok(value)
    }

    fn write(&mut self, at: u64, size: usize, value: u64) -> Result<(), String> {
        let (place, dom0) = self.locate(at, size, true)?;
        let entry = self.entry();
        if (at == entry || at == entry - SHADOW) && value != self.word() {
            return Err(format!("{value:#x} as a return address"));
        }
        if dom0 && self.hostile {
            self.overwrite_words();
        }
        for n in 0..size {
            self.memory
                .insert(place.wrapping_add(n as u64), (value >> (8 * n)) as u8);
        }
        if dom0 {
            self.events.push((place, size, value & mask(size), true));
        }
        Ok(())
    }

    fn get(&self, r: Register) -> u64 {
        let value = self.regs[r.full_register().number()];
        match r {
            Register::AH | Register::BH | Register::CH | Register::DH => (value >> 8) & 0xff,
            _ => value & mask(r.size()),
        }
    }

    fn set(&mut self, r: Register, value: u64) {
        let full = &mut self.regs[r.full_register().number()];
        *full = match r {
            Register::AH | Register::BH | Register::CH | Register::DH => {
                (*full & !0xff00) | ((value & 0xff) << 8)
            }
            _ if r.size() >= 4 => value & mask(r.size()),
            _ => (*full & !mask(r.size())) | (value & mask(r.size())),
        };
    }

    /// Runs the section's code from its start.
    pub fn run(&mut self, object: &Object<'_>, section: &Section<'_>) -> End {
        self.run_from(object, section, 0)
    }

    /// Runs the section's code from an offset.
    pub fn run_from(&mut self, object: &Object<'_>, section: &Section<'_>, mut at: u64) -> End {
        for _ in 0..1000 {
            match self.step(object, section, at) {
                Ok(Some(next)) => at = next,
                Ok(None) => {
                    let returned = self.frames.is_empty();
                    return if returned {
                        End::Returned
                    } else {
                        End::Stopped
                    };
                }
                Err(reason) if reason == FAULT => return End::Stopped,
                Err(reason) => return End::Breach(format!("{reason}, at {at:#x}")),
            }
        }
        End::Stopped
    }

    /// Executes the instruction at `at`; gives the next one's place.
    fn step(
        &mut self,
        object: &Object<'_>,
        section: &Section<'_>,
        at: u64,
    ) -> Result<Option<u64>, String> {
        let bytes = section.data.get(at as usize..).ok_or("outside the code")?;
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let i = decoder.decode();
        let end = at + i.len() as u64;
        let relocation = section
            .relocations
            .iter()
            .find(|r| (at..end).contains(&r.offset));
        let name = relocation.map(|r| (&*object.symbol(r.symbol).name, r.addend));
        let next = i.next_ip();
        match i.flow_control() {
            FlowControl::Call => {
                return match name {
                    None => self.call(i.near_branch_target(), next),
                    Some((name, _)) => self.call_routine(name, next),
                };
            }
            FlowControl::UnconditionalBranch if name.is_some() => return self.leave(),
            FlowControl::UnconditionalBranch => return Ok(Some(i.near_branch_target())),
            FlowControl::ConditionalBranch => {
                let taken = self.holds(&i);
                return Ok(Some(if taken { i.near_branch_target() } else { next }));
            }
            FlowControl::Return => return self.leave(),
            FlowControl::Next => {}
            FlowControl::Exception | FlowControl::Interrupt => return Ok(None),
            _ => return Err("an indirect transfer".into()),
        }
        self.data(&i, name)?;
        Ok(Some(next))
    }

    fn push(&mut self, value: u64) -> Result<(), String> {
        self.pushed(value)?;
        self.regs[4] = self.regs[4].wrapping_sub(8);
        Ok(())
    }

    /// Writes the word below `rsp`.
    fn pushed(&mut self, value: u64) -> Result<(), String> {
        let at = self.regs[4].wrapping_sub(8);
        if !self.has_window() {
            return self.write(at, 8, value);
        }
        self.own_word(at)?;
        self.put_word(at, value);
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, String> {
        let at = self.regs[4];
        let value = match self.window {
            None => self.read(at, 8)?,
            Some(_) => {
                self.own_word(at)?;
                self.word_at(at)
            }
        };
        self.regs[4] = at.wrapping_add(8);
        Ok(value)
    }

    fn word_at(&self, at: u64) -> u64 {
        let bytes = (0..8).rev().map(|n| u64::from(self.byte(at + n)));
        bytes.fold(0, |word, byte| word << 8 | byte)
    }

    fn put_word(&mut self, at: u64, value: u64) {
        for (n, byte) in value.to_le_bytes().into_iter().enumerate() {
            self.memory.insert(at + n as u64, byte);
        }
    }
}

fn mask(size: usize) -> u64 {
    u64::MAX >> (64 - size.clamp(1, 8) * 8)
}
