//! Forms as functions: the instructions around the form decide what is live there, and
//! so which sequence the rewriter chooses.

use iced_x86::{FlowControl, Instruction, Mnemonic, Register};
use process_lab::random::{Random, seed};

use super::memory::{DATA, Placement};
use super::{AddressingForm, Form, Reach};

/// What is live after the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Live {
    /// Every register and flag: the sequence spills and saves.
    All,
    /// The registers that a caller gets back, no flags: some registers are free.
    Few,
    /// The flags of a `cmp` before it: they are recomputed.
    Compared,
}

/// The direction of a string instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// DF clear, as at every function's entry.
    Up,
    /// Between `std` and `cld`.
    Down,
}

/// One function to make, run and compare.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Number of the form in the enumeration.
    pub form: usize,
    /// How its address is written.
    pub mode: AddressingForm,
    /// How it reaches memory.
    pub reach: Reach,
    /// The instruction, with the address written in that mode.
    pub instruction: Instruction,
    /// What is live after it.
    pub live: Live,
    /// DF before it; only strings depend on it.
    pub direction: Direction,
    /// Where an address points that is fixed when the function is linked.
    pub address: u64,
}

/// Bytes of the frame that a case's function makes.
pub const FRAME: i32 = 0x200;

impl Case {
    /// The case of a form. dom0 has `memory` pages to point at.
    pub fn new(number: usize, form: &Form, live: Live, direction: Direction, pages: u64) -> Case {
        let mut random = Random::new(seed("case", number as u64 * 8 + live as u64));
        let mut instruction = form.instruction;
        if form.mode == AddressingForm::Index {
            // The index is a multiple of its scale: the displacement makes up the rest.
            let displacement = instruction.memory_displacement64() + random.below(64);
            instruction.set_memory_displacement64(displacement);
        }
        let mut address = Placement::fixed(&mut random).address(&mut random, pages);
        if form.mode == AddressingForm::Constant {
            instruction.set_memory_displacement64(address);
        }
        if !matches!(
            form.mode,
            AddressingForm::Rip | AddressingForm::Absolute | AddressingForm::Constant
        ) {
            address = DATA;
        }
        let mut case = Case {
            form: number,
            mode: form.mode,
            reach: form.reach,
            instruction,
            live,
            direction,
            address,
        };
        case.align();
        case
    }

    /// Makes the constant part of a locked operand's address a multiple of its size,
    /// see [`Case::unsplit`].
    fn align(&mut self) {
        if !self.locks() {
            return;
        }
        let i = &mut self.instruction;
        let mask = !(i.memory_size().size().max(1) as u64 - 1);
        self.address &= mask;
        if matches!(self.mode, AddressingForm::Index | AddressingForm::Constant) {
            i.set_memory_displacement64(i.memory_displacement64() & mask);
        }
    }

    /// Whether its access to memory is locked, as that of `xchg` always is (SDM volume
    /// 3, 8.1.2.1).
    fn locks(&self) -> bool {
        let i = &self.instruction;
        i.has_lock_prefix() || i.mnemonic() == Mnemonic::Xchg && self.reach == Reach::Explicit
    }

    /// Where to put a locked operand that was to be at `at`: not across the end of a
    /// cache line. A split access locks the bus (SDM volume 3, 8.1.2.2); a kernel may
    /// then trap, and a hypervisor pause for a tenth of a second. [`Case::shows_split`]
    /// says which cases do it anyway. The same instruction without `lock` shows
    /// everywhere that a translation leads across pages.
    pub fn unsplit(&self, at: u64) -> u64 {
        const LINE: u64 = 64;
        let size = self.instruction.memory_size().size().max(1) as u64;
        match self.locks() && at % LINE + size > LINE {
            true => at & !(size - 1),
            false => at,
        }
    }

    /// Whether a locked operand may lie across two pages in one of the case's states.
    pub fn shows_split(&self) -> bool {
        self.mode == AddressingForm::Base && self.live == Live::Few
    }

    /// Whether this is a string instruction (SDM volume 1, 7.3.9): `movs`, `cmps`,
    /// `scas`, `lods`, `stos`, `ins` or `outs`, with or without repetition.
    pub fn is_string(&self) -> bool {
        self.reach == Reach::Implicit
            && super::operands::has_string_memory(&self.instruction)
            && self.instruction.mnemonic() != Mnemonic::Maskmovq
    }

    /// Whether it is `rep movs`.
    pub fn is_copy(&self) -> bool {
        use Mnemonic::{Movsb, Movsd, Movsq, Movsw};
        let i = &self.instruction;
        self.is_string()
            && matches!(i.mnemonic(), Movsb | Movsw | Movsd | Movsq)
            && (i.has_rep_prefix() || i.has_repne_prefix())
    }

    /// Whether it continues at the next instruction, so that code can follow it.
    pub fn falls_through(&self) -> bool {
        self.instruction.flow_control() == FlowControl::Next
    }

    /// Whether it is an indirect branch.
    pub fn is_indirect(&self) -> bool {
        matches!(
            self.instruction.flow_control(),
            FlowControl::IndirectCall | FlowControl::IndirectBranch
        )
    }

    /// Whether it leaves the function, which then has made no frame.
    pub fn is_jump(&self) -> bool {
        self.instruction.flow_control() == FlowControl::IndirectBranch
    }

    /// Whether it undoes or makes a frame.
    pub fn is_frame(&self) -> bool {
        matches!(
            self.instruction.mnemonic(),
            Mnemonic::Leave | Mnemonic::Enter
        )
    }

    /// Whether it calls what its displacement says.
    pub fn is_direct_call(&self) -> bool {
        self.instruction.is_call_near()
    }

    /// Whether it can be run meaningfully: it is not a fragment of a function.
    pub fn can_run(&self) -> bool {
        // They would change segments of the process that observes them.
        let segments = matches!(
            self.instruction.mnemonic(),
            Mnemonic::Lfs | Mnemonic::Lgs | Mnemonic::Lss
        );
        if segments {
            return false;
        }
        if self.is_jump() && self.instruction.memory_base() == Register::RSP {
            return false;
        }
        self.falls_through() || self.is_indirect() || self.is_direct_call()
    }

    /// Bytes that it moves `rsp` by.
    pub fn stack_change(&self) -> i32 {
        match self.falls_through() && !self.is_frame() {
            true => self.instruction.stack_pointer_increment(),
            false => 0,
        }
    }

    /// Whether `%fs` needs a base.
    pub fn uses_fs(&self) -> bool {
        self.instruction.segment_prefix() == Register::FS
    }

    /// Name of its function in an object.
    pub fn symbol(index: usize) -> String {
        format!("f{index}")
    }
}

/// The cases that a form is executed as.
pub fn of_form(number: usize, form: &Form, pages: u64) -> Vec<Case> {
    let new = |live, direction| Case::new(number, form, live, direction, pages);
    let probe = new(Live::Few, Direction::Up);
    if !probe.falls_through() || probe.is_frame() {
        return vec![probe];
    }
    if probe.is_string() {
        let lives = [Live::All, Live::Few, Live::Compared];
        return lives
            .into_iter()
            .flat_map(|live| [new(live, Direction::Up), new(live, Direction::Down)])
            .collect();
    }
    let mut cases = vec![new(Live::All, Direction::Up), probe];
    if matches!(
        form.mode,
        AddressingForm::Base | AddressingForm::Negative | AddressingForm::Rip | AddressingForm::Gs
    ) {
        cases.push(new(Live::Compared, Direction::Up));
    }
    cases
}
