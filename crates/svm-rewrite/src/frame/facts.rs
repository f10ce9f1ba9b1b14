//! Stack facts: `rsp`, registers that point into the frame, and the direction flag.
//! They are found before instructions whose treatment depends on them: `leave` and other
//! moves of `rsp`, string instructions, operands in the stack frame.
//!
//! If a function realigns its stack, each of its variants has facts of its own
//! ([`crate::frame::variants`]).
//!
//! [`super::solve`] finds them, and keeps those before the instructions that ask
//! ([`super::dependents`]).

use foldhash::HashMap;
use iced_x86::{Code, Instruction, Register};
use liveness::{BlockId, Reg};
use twin_abi::stack;

use super::contents::{FramePlace, Registers};
use super::lost::Lost;
use crate::analyse::Analysis;
use crate::analyse::class::{Class, Direction};
use crate::analyse::flow::Flow;
use crate::analyse::survey::{MemoryEffect, Survey};
use crate::asm::Operand;
use crate::frame::variants::Variant;
use crate::lift::starts::{Start, Starts};
use crate::lift::{InstIdx, Lifted};

/// Bytes of the return address, which `rsp` points to at entry.
const RETURN_ADDRESS: i64 = 8;

/// Bytes of arguments that a function of the kernel may have on its stack; what is above is
/// no operand of the frame to the verifier either.
const KERNEL_ARGS: i64 = 1024;

/// Facts before an instruction. `None` where paths disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    registers: Registers,
    /// The direction flag; clear at entry (psABI 3.2.1).
    direction: Option<Direction>,
}

impl Facts {
    pub(super) fn new(registers: Registers, direction: Option<Direction>) -> Facts {
        Facts {
            registers,
            direction,
        }
    }

    /// The distance in bytes by which `rsp` moves when it is set to this register, if it
    /// is known.
    pub fn distance_to(&self, register: Register) -> Option<i64> {
        Some(self.registers.get(register)? - self.registers.get(Register::RSP)?)
    }

    /// How far `leave`, `mov %reg,%rsp` or `lea disp(%reg),%rsp` moves `rsp`, if that is
    /// known; of `leave`, before it pops.
    pub fn stack_move(&self, iced: &Instruction) -> Option<i64> {
        match iced.code() {
            Code::Leaveq => self.distance_to(Register::RBP),
            Code::Lea_r64_m => {
                let FramePlace(to) = self.registers.place(iced)?;
                Some(to - self.registers.get(Register::RSP)?)
            }
            _ => self.distance_to(iced.op1_register()),
        }
    }

    /// How far `and $-alignment,%rsp` moves `rsp` down, if that is known.
    pub fn padding(&self, alignment: u8, variant: Variant) -> Option<i64> {
        let before = self.registers.get(Register::RSP)?;
        Some(before - aligned(before, alignment, variant))
    }

    /// The direction of string instructions here, if known.
    pub fn direction(&self) -> Option<Direction> {
        self.direction
    }

    /// Whether an operand `disp(%rsp)` may write the return address or memory above it,
    /// or read above the arguments that every caller provides.
    pub fn leaves_frame(&self, iced: &Instruction, memory: MemoryEffect) -> bool {
        let Some(rsp) = self.registers.get(Register::RSP) else {
            return false;
        };
        let end = rsp + Operand::of(iced).displacement + iced.memory_size().size() as i64;
        let limit = match memory {
            MemoryEffect::Untouched | MemoryEffect::Read => RETURN_ADDRESS + stack::INCOMING_ARGS,
            MemoryEffect::Written => 0,
        };
        end > limit
    }

    /// Where a register points, if that is known to be in the frame.
    pub fn pointer(&self, register: Register) -> Option<FramePlace> {
        self.registers.get(register).map(FramePlace)
    }

    /// Whether an instruction uses the stack, or names a register that points into the frame. No
    /// other one does anything to the frame.
    pub fn concern(&self, survey: &Survey) -> bool {
        survey.uses_stack || self.registers.knows_any(survey.named())
    }

    /// The registers that point into the frame, `rsp` among them, with where.
    pub fn pointers(&self) -> impl Iterator<Item = (Reg, i64)> {
        self.registers.pointers()
    }

    /// Whether what a register holds comes from a word of the frame that others may write.
    pub fn is_loaded(&self, register: Register) -> bool {
        self.registers.is_loaded(register)
    }

    /// Where `rsp` points, if that is known.
    pub fn stack_pointer(&self) -> Option<FramePlace> {
        self.registers.get(Register::RSP).map(FramePlace)
    }

    /// The place of a memory operand, if it is known to be in the frame.
    pub fn place(&self, iced: &Instruction) -> Option<FramePlace> {
        self.registers.place(iced)
    }

    /// Whether an operand `disp(%rsp)` may end above the arguments that a function of the
    /// kernel may have on its stack.
    pub fn is_beyond_arguments(&self, iced: &Instruction) -> bool {
        let rsp = self.registers.get(Register::RSP);
        rsp.is_some_and(|rsp| ends_beyond_arguments(rsp, iced))
    }

    /// Whether an operand in the frame, as far as its base tells, begins so far below `rsp` or
    /// ends so far above the arguments that it is none of a function of the kernel.
    pub fn is_far_from_frame(&self, iced: &Instruction) -> bool {
        let place = self.registers.place(iced);
        let below = |FramePlace(at): FramePlace| {
            let rsp = self.registers.get(Register::RSP);
            rsp.is_some_and(|rsp| at < rsp - stack::BELOW_RSP)
        };
        place.is_some_and(|place| below(place) || is_above_arguments(place, iced))
    }

    /// Whether an operand is known to be in the frame. That does not follow from what a word
    /// of the frame holds: the word may be the head of a list, which others write.
    pub fn points_to_frame(&self, iced: &Instruction) -> bool {
        self.registers.place(iced).is_some() && !self.registers.is_loaded(iced.memory_base())
    }
}

/// Whether an operand `disp(%rsp)` ends above the arguments, `rsp` being so far from where
/// it was at entry, or less if the stack was aligned.
pub fn ends_beyond_arguments(rsp: i64, iced: &Instruction) -> bool {
    is_above_arguments(FramePlace(rsp + Operand::of(iced).displacement), iced)
}

/// Whether an operand at a place of the frame ends above the arguments.
fn is_above_arguments(FramePlace(at): FramePlace, iced: &Instruction) -> bool {
    // The largest alignment that [`Facts::padding`] knows.
    const PADDING: i64 = 128;
    at + iced.memory_size().size() as i64 > RETURN_ADDRESS + KERNEL_ARGS - PADDING
}

/// Where `and $-alignment,%rsp` takes `rsp`, both counted from its value at
/// entry, which is the variant's residue modulo the alignment.
pub(super) fn aligned(rsp: i64, alignment: u8, variant: Variant) -> i64 {
    let residue = variant.residue();
    ((rsp + residue) & -i64::from(alignment)) - residue
}

/// Facts before the instructions whose treatment depends on them.
pub struct FactsBefore {
    /// These instructions, in order.
    insts: Vec<InstIdx>,
    /// Which of `insts` an instruction is.
    places: Starts,
    /// For each variant the facts before each of `insts`.
    found: Vec<Found>,
}

/// Facts by the places of a list. Different facts are few, and each is kept once.
#[derive(Default)]
pub(super) struct Found {
    /// For each place the number of its facts, or `NOTHING` where nothing leads.
    at: Vec<u32>,
    facts: Vec<Facts>,
    numbers: HashMap<Facts, u32>,
    /// The number of the latest: most instructions have the facts of the one before them.
    latest: u32,
}

const NOTHING: u32 = u32::MAX;

impl Found {
    /// For so many places.
    pub(super) fn new(places: usize) -> Found {
        Found {
            at: vec![NOTHING; places],
            latest: NOTHING,
            ..Found::default()
        }
    }

    /// Facts were found, or found again.
    pub(super) fn keep(&mut self, place: usize, facts: &Facts) {
        if self.numbered(self.latest) != Some(facts) {
            let next = self.facts.len() as u32;
            self.latest = *self.numbers.entry(*facts).or_insert(next);
            if self.latest == next {
                self.facts.push(*facts);
            }
        }
        self.keep_latest(place);
    }

    /// The same facts were found as before.
    pub(super) fn keep_latest(&mut self, place: usize) {
        self.at[place] = self.latest;
    }

    fn get(&self, place: usize) -> Option<&Facts> {
        self.numbered(self.at[place])
    }

    fn numbered(&self, number: u32) -> Option<&Facts> {
        self.facts.get(number as usize)
    }
}

impl FactsBefore {
    /// Of these instructions, of so many; without facts yet.
    pub(super) fn none(insts: Vec<InstIdx>, count: usize) -> FactsBefore {
        let mut places = Starts::new(count);
        for (n, i) in (0..).zip(&insts) {
            places.add(i.0 as usize, n);
        }
        FactsBefore {
            insts,
            places,
            found: Vec::new(),
        }
    }

    /// Takes in what was found in the next variant.
    pub(super) fn add(&mut self, found: Found) {
        self.found.push(found);
    }

    /// How many instructions have facts, at most.
    pub fn count(&self) -> usize {
        self.insts.len()
    }

    /// The facts before an instruction, in a variant of its function.
    pub fn get(&self, i: InstIdx, variant: Variant) -> Option<&Facts> {
        let found = self.found.get(usize::from(variant.0))?;
        match self.places.get(i.0.into()) {
            Start::Of(n) => found.get(n as usize),
            Start::Middle | Start::End => None,
        }
    }

    /// The facts before an instruction, in all variants of its function.
    pub fn before(&self, i: InstIdx) -> impl Iterator<Item = &Facts> {
        (0..self.found.len() as u8).filter_map(move |variant| self.get(i, Variant(variant)))
    }

    /// All of one variant, in the order of the instructions.
    pub fn of(&self, variant: Variant) -> impl Iterator<Item = (InstIdx, &Facts)> {
        let found = &self.found[usize::from(variant.0)];
        let all = (0..).zip(&self.insts);
        all.filter_map(|(n, i)| Some((*i, found.get(n)?)))
    }

    /// All of them, of all variants.
    pub fn all(&self) -> impl Iterator<Item = (InstIdx, &Facts)> {
        (0..self.found.len() as u8).flat_map(|variant| self.of(Variant(variant)))
    }
}

/// The input of the analysis.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The code whose facts are wanted.
    pub lifted: &'a Lifted<'a>,
    /// What the decoder says of each instruction.
    pub surveys: &'a [Survey],
    /// Which of its instructions may change facts: [`crate::analyse::survey::may_change_facts`].
    pub changes_facts: &'a [bool],
    /// Where control goes.
    pub flow: &'a Flow,
    /// The class of each instruction.
    pub classes: &'a [Class],
    /// The registers that calls lose.
    pub lost: &'a Lost,
}

impl<'a> Input<'a> {
    /// Of code that was analysed, with its classes so far.
    pub fn of(analysis: &'a Analysis<'_>, classes: &'a [Class], lost: &'a Lost) -> Input<'a> {
        Input {
            lifted: analysis.lifted,
            surveys: &analysis.surveys,
            changes_facts: &analysis.changes_facts,
            flow: &analysis.flow,
            classes,
            lost,
        }
    }
}

/// Whose treatment depends on facts, besides that of instructions that always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// No other instruction's.
    Nothing,
    /// That of operands of a frame pointer, which the target may leave as they are.
    FrameOperands,
    /// That of all that may use a word of the frame ([`super::words`]).
    AllWords,
}

impl Asked {
    /// Whether all registers are followed: where any operand may use a word of the frame.
    pub(super) fn follows_all(self) -> bool {
        match self {
            Asked::Nothing | Asked::FrameOperands => false,
            Asked::AllWords => true,
        }
    }

    /// For a scheme with one stack.
    pub fn of(keeps_frames: bool) -> Asked {
        match keeps_frames {
            true => Asked::FrameOperands,
            false => Asked::Nothing,
        }
    }
}

/// Whether a block is not written, because no path comes to it.
pub(super) fn is_left_out(input: Input<'_>, block: BlockId) -> bool {
    let first = input.flow.begin(block);
    first.is_some_and(|first| matches!(input.classes[first.0 as usize], Class::Unreached(_)))
}
