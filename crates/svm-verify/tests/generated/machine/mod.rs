//! A machine that executes a module's code as a kernel has patched it, and stops where something
//! happens that the contract for modules excludes.
//!
//! ```text
//! TEXT      the code                      HEAP + k pages    the kernel's memory: never reached
//! STACK     the thread's stack            WINDOWS + k * 0x4000 + 0x1000  where page k is translated
//! TABLE     the translation table         IMPORT, SLOW      the kernel, the slow paths
//! ```
//!
//! What the contract trusts is not judged: a pointer that leads to the stack ends the run.

mod control;
mod instructions;
mod memory;

use std::collections::{HashMap, HashSet};
use std::fmt;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use svm_verify::Accesses;

use super::object::Placed;
use super::program::{Link, Program, Random};

pub const TEXT: u64 = 0x10_0000;
const STACK: u64 = 0x7e00_0000_0000;
const STACK_SIZE: u64 = 0x10000;
const ENTRY: u64 = STACK + 0xc000;
const HEAP: u64 = 0xffff_8880_0040_0000;
const PAGES: u64 = 4;
const WINDOWS: u64 = 0x7f00_0000_0000;
const TABLE: u64 = 0x4000_0000;
const IMPORT: u64 = 0x7000_0000;
const PUT_USER: u64 = 0x7000_1000;
const SLOW: u64 = 0x7100_0000;
const KERNEL: u64 = 0xffff_ffff_8100_0000;
const STEPS: usize = 800;
const DEPTH: usize = 10;
const RSP: usize = 4;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With the return of the function that was entered.
    Returned,
    /// At a trap, after many steps, or at something that the contract trusts.
    Stopped(&'static str),
    /// At an instruction that this machine lacks.
    Unknown(Mnemonic),
    /// Outside of the contract.
    Breach(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Returned => f.write_str("returned"),
            End::Stopped(why) => f.write_str(why),
            End::Unknown(mnemonic) => write!(f, "at {mnemonic:?}, which is not simulated"),
            End::Breach(reason) => f.write_str(reason),
        }
    }
}

struct Frame {
    /// Where the return address is.
    at: u64,
    word: u64,
    /// Where the kernel goes on if it has called this.
    resume: Option<(u64, u64)>,
}

pub struct Machine<'p> {
    text: Vec<u8>,
    starts: HashSet<u64>,
    fixups: HashMap<u64, u64>,
    warnings: HashSet<u64>,
    /// Loads are not confined.
    stores: bool,
    placed: &'p Placed,
    random: Random,
    regs: [u64; 16],
    rip: u64,
    flags: Flags,
    stack: Vec<u8>,
    windows: HashMap<u64, u8>,
    entries: HashMap<u64, u64>,
    frames: Vec<Frame>,
    /// What happened, for a report.
    pub trace: Vec<(Instruction, i64)>,
}

#[derive(Clone, Copy, Default)]
struct Flags {
    cf: bool,
    zf: bool,
    sf: bool,
    of: bool,
    pf: bool,
}

type Step<T> = Result<T, End>;

impl<'p> Machine<'p> {
    pub fn new(
        program: &Program,
        placed: &'p Placed,
        accesses: Accesses,
        seed: u64,
    ) -> Machine<'p> {
        let mut random = Random(seed);
        let mut starts = HashSet::new();
        let mut decoder = Decoder::with_ip(64, &placed.text, TEXT, DecoderOptions::NONE);
        while decoder.can_decode() {
            starts.insert(decoder.decode().ip());
        }
        let mut text = placed.text.clone();
        for &(at, link) in &placed.links {
            resolve(&mut text, at, TEXT + at, link, placed);
        }
        let label = |n: u32| placed.labels[&n];
        for (alternative, range) in program.alternatives.iter().zip(&placed.ranges) {
            if random.one_in(2) {
                continue;
            }
            let (from, to) = (label(alternative.from), label(alternative.to));
            let mut bytes = placed.replacements[range.start as usize..range.end as usize].to_vec();
            for &(at, link) in placed
                .replaced_links
                .iter()
                .filter(|(at, _)| range.contains(at))
            {
                let off = at - range.start;
                resolve(&mut bytes, off, TEXT + from + off, link, placed);
            }
            bytes.resize((to - from) as usize, 0x90);
            text[from as usize..to as usize].copy_from_slice(&bytes);
            starts.extend((from..to).map(|at| TEXT + at));
        }
        for &(at, to) in &program.branches {
            if random.one_in(2) {
                let at = label(at) as usize;
                text[at] = 0xe9;
                resolve(
                    &mut text,
                    at as u64 + 1,
                    TEXT + at as u64 + 1,
                    Link::To(to),
                    placed,
                );
            }
        }
        let fixups = program.fixups.iter();
        let fixups = fixups
            .map(|&(at, to)| (TEXT + label(at), TEXT + label(to)))
            .collect();
        let mut entries = HashMap::new();
        for page in 0..PAGES {
            if random.one_in(2) {
                let address = HEAP + page * 0x1000;
                entries.insert(address >> 12 & 0xfff, address);
            }
        }
        let stack = (0..STACK_SIZE).map(|_| random.word() as u8).collect();
        let mut machine = Machine {
            text,
            starts,
            fixups,
            warnings: program
                .warnings
                .iter()
                .map(|&at| TEXT + label(at))
                .collect(),
            stores: accesses == Accesses::Stores,
            placed,
            random,
            regs: [0; 16],
            rip: 0,
            flags: Flags::default(),
            stack,
            windows: HashMap::new(),
            entries,
            frames: Vec::new(),
            trace: Vec::new(),
        };
        machine.regs = std::array::from_fn(|_| machine.number());
        machine.regs[RSP] = ENTRY;
        machine
    }

    fn number(&mut self) -> u64 {
        match self.random.below(64) {
            0..=60 => HEAP + self.random.below(PAGES * 0x1000),
            61 => self.random.below(0x10000),
            62 => self.random.below(64),
            _ => self.random.word(),
        }
    }

    pub fn run(&mut self, function: u32) -> End {
        self.regs[RSP] = ENTRY;
        self.enter(function, KERNEL, None);
        for _ in 0..STEPS {
            match self.step() {
                Ok(()) => {}
                Err(end) => return end,
            }
        }
        End::Stopped("steps")
    }

    /// The kernel calls a function.
    fn enter(&mut self, function: u32, word: u64, resume: Option<(u64, u64)>) {
        let at = self.regs[RSP];
        self.poke(at, word);
        self.frames.push(Frame { at, word, resume });
        self.rip = TEXT + self.placed.labels[&function];
    }

    fn poke(&mut self, at: u64, word: u64) {
        let at = (at - STACK) as usize;
        self.stack[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// An interrupt, or a callee, writes below the stack pointer.
    fn spoil(&mut self) {
        let rsp = self.regs[RSP];
        if !(STACK + 0x400..STACK + STACK_SIZE).contains(&rsp) {
            return;
        }
        for n in 1..=0x40 {
            let word = self.random.word();
            self.poke(rsp - 8 * n, word);
        }
    }

    fn fault(&mut self, reason: String, i: &Instruction) -> End {
        End::Breach(format!("{:#x}: {i}: {reason}", i.ip() - TEXT))
    }
}

/// Writes what a field leads to, as a loader does. `place` is the field's address.
fn resolve(bytes: &mut [u8], at: u64, place: u64, link: Link, placed: &Placed) {
    let to = match link {
        Link::None | Link::Smashed | Link::Named(_) => return,
        Link::To(label) => TEXT + placed.labels[&label],
        Link::Import => IMPORT,
        Link::PutUser => PUT_USER,
        Link::Slow(n) => SLOW + 16 * u64::from(n),
        Link::Table(_, half) => TABLE + half as u64,
    };
    let value = match link {
        Link::Table(..) => to as u32,
        _ => to.wrapping_sub(place + 4) as u32,
    };
    bytes[at as usize..at as usize + 4].copy_from_slice(&value.to_le_bytes());
}
