//! States of string instructions: counts around a page, overlaps, early stops,
//! pointers at page ends, and runs off the end of the data.

use iced_x86::{Mnemonic, Register};
use process_lab::address_space::PAGE;
use process_lab::random::Random;

use super::cases::{Case, Direction};
use super::memory::{DATA, Placement};
use super::state::{Setting, State};

/// The operands of the instruction.
struct Shape {
    size: u64,
    reads_rsi: bool,
    uses_rdi: bool,
    compares: bool,
    repeats: bool,
    /// `repne`: goes on while different.
    while_different: bool,
    /// Each element goes to or comes from a port, which takes its time.
    uses_port: bool,
}

fn shape(case: &Case) -> Shape {
    use Mnemonic as M;
    let i = &case.instruction;
    let size = match i.mnemonic() {
        M::Movsb | M::Stosb | M::Lodsb | M::Cmpsb | M::Scasb | M::Insb | M::Outsb => 1,
        M::Movsw | M::Stosw | M::Lodsw | M::Cmpsw | M::Scasw | M::Insw | M::Outsw => 2,
        M::Movsd | M::Stosd | M::Lodsd | M::Cmpsd | M::Scasd | M::Insd | M::Outsd => 4,
        _ => 8,
    };
    let from_port = matches!(i.mnemonic(), M::Insb | M::Insw | M::Insd);
    let to_port = matches!(i.mnemonic(), M::Outsb | M::Outsw | M::Outsd);
    let compares = matches!(
        i.mnemonic(),
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq | M::Scasb | M::Scasw | M::Scasd | M::Scasq
    );
    let only_rdi = matches!(
        i.mnemonic(),
        M::Stosb | M::Stosw | M::Stosd | M::Stosq | M::Scasb | M::Scasw | M::Scasd | M::Scasq
    );
    let loads = matches!(i.mnemonic(), M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq);
    Shape {
        size,
        reads_rsi: !only_rdi && !from_port,
        uses_rdi: !loads && !to_port,
        compares,
        repeats: i.has_rep_prefix() || i.has_repne_prefix(),
        while_different: i.has_repne_prefix(),
        uses_port: from_port || to_port,
    }
}

/// A string of elements: its lowest address.
#[derive(Clone, Copy)]
struct Run {
    low: u64,
    bytes: u64,
}

impl Run {
    /// What the pointer register holds at the beginning.
    fn pointer(self, direction: Direction, size: u64) -> u64 {
        match direction {
            Direction::Up => self.low,
            Direction::Down => self.low.wrapping_add(self.bytes.max(size) - size),
        }
    }

    /// Address of the element that comes as number `n`.
    fn element(self, n: u64, direction: Direction, size: u64) -> u64 {
        match direction {
            Direction::Up => self.low + n * size,
            Direction::Down => self.low + self.bytes - (n + 1) * size,
        }
    }
}

/// Registers and memory for a string instruction.
pub fn fill(state: &mut State, case: &Case, random: &mut Random, setting: &Setting<'_>) {
    let shape = shape(case);
    let count = count(&shape, random, setting.pages);
    let elements = if shape.repeats { count } else { 1 };
    let bytes = elements * shape.size;
    let (source, target) = runs(bytes, &shape, random, setting.pages);
    if shape.repeats || random.one_in(2) {
        state.registers[Register::RCX.number()] = count;
    }
    state.registers[Register::RSI.number()] = source.pointer(case.direction, shape.size);
    state.registers[Register::RDI.number()] = target.pointer(case.direction, shape.size);
    state.placement = Placement::Middle;
    if shape.uses_port {
        // The bits above the port have no meaning. The last ports have no second byte.
        let port = random.word() & !0x8000;
        state.registers[Register::RDX.number()] = port;
    }
    if shape.compares && elements > 0 && !random.one_in(6) {
        let mut stop = Stop {
            state,
            shape: &shape,
            direction: case.direction,
            elements,
        };
        stop.arrange(source, target, random);
    }
    if random.one_in(24) {
        run_off(state, &shape, case.direction, bytes, random, setting.pages);
    }
}

/// Elements: around a page and around a page's elements.
fn count(shape: &Shape, random: &mut Random, pages: u64) -> u64 {
    // Each element costs a fault and system calls in the native process: three of four
    // states are short, the others have all the counts of a string in memory.
    if shape.uses_port && !random.one_in(4) {
        return random.below(64);
    }
    let per_page = PAGE / shape.size;
    let candidates = [
        0,
        1,
        2,
        3,
        per_page - 1,
        per_page,
        per_page + 1,
        2 * per_page - 1,
        2 * per_page + 1,
        5 * per_page / 2,
        PAGE - 1,
        PAGE,
        PAGE + 1,
        random.below(64),
        random.below(3 * per_page),
        3 * per_page,
    ];
    let count = candidates[random.below(candidates.len() as u64) as usize];
    let most = if shape.uses_port { 2 } else { pages / 2 - 2 };
    count.min(most * per_page)
}

/// Where source and target are: apart, or with a small distance.
fn runs(bytes: u64, shape: &Shape, random: &mut Random, pages: u64) -> (Run, Run) {
    let half = pages / 2 * PAGE;
    let source = Run {
        low: DATA + place(half - PAGE, bytes, random),
        bytes,
    };
    let distances = [1, shape.size, PAGE, 8, 64, PAGE - 1, shape.size + 1, 0];
    let distance = distances[random.below(8) as usize];
    let low = match random.below(4) {
        0 => source.low + distance,
        1 => source.low.saturating_sub(distance).max(DATA),
        _ => DATA + half + place(half - PAGE, bytes, random),
    };
    (source, Run { low, bytes })
}

/// An offset in `room` bytes for a run that begins or ends near a page's end.
fn place(room: u64, bytes: u64, random: &mut Random) -> u64 {
    let offsets = [0, 1, 2, 3, 4, 7, 8, 16];
    let near = offsets[random.below(8) as usize];
    let pages = (room / PAGE).saturating_sub(bytes.div_ceil(PAGE)).max(1);
    let page = (1 + random.below(pages)) * PAGE;
    let wanted = match random.below(5) {
        0 => page + near,
        1 => page - near,
        2 => page.wrapping_sub(bytes % PAGE).wrapping_add(near),
        3 => page.wrapping_sub(bytes % PAGE).wrapping_sub(near),
        _ => page + random.below(PAGE),
    };
    wanted.min(room.saturating_sub(bytes))
}

/// Sets memory up so that a comparison stops at the chosen element.
struct Stop<'s> {
    state: &'s mut State,
    shape: &'s Shape,
    direction: Direction,
    elements: u64,
}

impl Stop<'_> {
    /// ```text
    /// scas repe    all equal to the accumulator, one is not
    /// scas repne   none equal, one is
    /// cmps repe    target a copy of the source, one element is not
    /// cmps repne   target the source inverted, one element is equal
    /// ```
    fn arrange(&mut self, source: Run, target: Run, random: &mut Random) {
        let size = self.shape.size as usize;
        let accumulator = self.state.registers[0].to_le_bytes();
        let bytes = (self.elements as usize) * size;
        let mut like: Vec<u8> = match self.shape.reads_rsi {
            true => (0..bytes).map(|n| (n * 7 + n / 251) as u8).collect(),
            false => accumulator[..size]
                .iter()
                .copied()
                .cycle()
                .take(bytes)
                .collect(),
        };
        if self.shape.reads_rsi {
            self.state.patches.push((source.low, like.clone()));
        }
        let invert = |bytes: &mut [u8]| bytes.iter_mut().for_each(|b| *b = !*b);
        if self.shape.while_different {
            invert(&mut like);
        }
        if let Some(stop) = self.position(random) {
            let at = (target.element(stop, self.direction, self.shape.size) - target.low) as usize;
            // One byte of the element, or all of it to become equal.
            match self.shape.while_different {
                true => invert(&mut like[at..at + size]),
                false => like[at + random.below(size as u64) as usize] ^= 0x40,
            }
        }
        self.state.patches.push((target.low, like));
    }

    fn position(&self, random: &mut Random) -> Option<u64> {
        let per_page = PAGE / self.shape.size;
        let candidates = [
            0,
            1,
            self.elements / 2,
            self.elements - 1,
            per_page - 1,
            per_page,
            random.below(self.elements),
        ];
        let n = random.below(candidates.len() as u64 + 1) as usize;
        candidates.get(n).copied().filter(|n| *n < self.elements)
    }
}

/// Lets one of the pointers run out of the data, on either side.
fn run_off(
    state: &mut State,
    shape: &Shape,
    direction: Direction,
    bytes: u64,
    random: &mut Random,
    pages: u64,
) {
    let inside = random.below(bytes + 1).min(2 * PAGE);
    let pointer = match direction {
        Direction::Up => DATA + pages * PAGE - inside,
        Direction::Down => (DATA + inside).wrapping_sub(random.below(shape.size + 1)),
    };
    let register = match (shape.reads_rsi, shape.uses_rdi) {
        (true, true) if random.one_in(2) => Register::RSI,
        (_, true) => Register::RDI,
        _ => Register::RSI,
    };
    state.registers[register.number()] = pointer;
}
