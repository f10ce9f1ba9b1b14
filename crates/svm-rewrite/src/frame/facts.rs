//! Stack facts: `rsp`, registers that point into the frame, and the direction flag.
//! They are found before instructions whose treatment depends on them: `leave` and other
//! moves of `rsp`, string instructions, operands in the stack frame.
//!
//! If a function realigns its stack, each of its variants has facts of its own
//! ([`crate::frame::variants`]).
//!
//! Most functions have none of these instructions. Only functions with one are followed,
//! and functions that jump into one with one ([`super::dependents`]).

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use liveness::{BlockId, LocSet};
use twin_abi::stack;

use super::before::{Before, Join};
use super::contents::{Frame, FramePlace};
use super::dependents::Dependents;
use super::lost::Lost;
use crate::analyse::Analysis;
use crate::analyse::class::{Class, Direction};
use crate::analyse::flow::Flow;
use crate::analyse::routines;
use crate::analyse::survey::{FOLLOWED, MemoryEffect, Survey};
use crate::asm::Operand;
use crate::frame::variants::{Variant, Variants};
use crate::lift::starts::{Start, Starts};
use crate::lift::{FuncIdx, InstIdx, Lifted};
use crate::registers::reg64;

/// Bytes of the return address, which `rsp` points to at entry.
const RETURN_ADDRESS: i64 = 8;

/// Bytes of arguments that a function of the kernel may have on its stack; what is above is
/// no operand of the frame to the verifier either.
const KERNEL_ARGS: i64 = 1024;

/// Facts before an instruction. `None` where paths disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    frame: Frame,
    /// The direction flag; clear at entry (psABI 3.2.1).
    direction: Option<Direction>,
}

impl Join for Facts {
    fn join(self, other: Facts) -> Facts {
        Facts {
            frame: self.frame.join(&other.frame),
            direction: self.direction.filter(|_| self.direction == other.direction),
        }
    }
}

impl Facts {
    pub(super) fn at_entry(followed: LocSet) -> Facts {
        Facts {
            frame: Frame::at_entry(followed),
            direction: Some(Direction::Forward),
        }
    }

    /// The distance in bytes by which `rsp` moves when it is set to this register, if it
    /// is known.
    pub fn distance_to(&self, register: Register) -> Option<i64> {
        Some(self.frame.get(register)? - self.frame.get(Register::RSP)?)
    }

    /// How far `leave`, `mov %reg,%rsp` or `lea disp(%reg),%rsp` moves `rsp`, if that is
    /// known; of `leave`, before it pops.
    pub fn stack_move(&self, iced: &Instruction) -> Option<i64> {
        match iced.code() {
            Code::Leaveq => self.distance_to(Register::RBP),
            Code::Lea_r64_m => {
                let FramePlace(to) = self.frame.place(iced)?;
                Some(to - self.frame.get(Register::RSP)?)
            }
            _ => self.distance_to(iced.op1_register()),
        }
    }

    /// How far `and $-alignment,%rsp` moves `rsp` down, if that is known.
    pub fn padding(&self, alignment: u8, variant: Variant) -> Option<i64> {
        let before = self.frame.get(Register::RSP)?;
        Some(before - aligned(before, alignment, variant))
    }

    /// The direction of string instructions here, if known.
    pub fn direction(&self) -> Option<Direction> {
        self.direction
    }

    /// Whether an operand `disp(%rsp)` may write the return address or memory above it,
    /// or read above the arguments that every caller provides.
    pub fn leaves_frame(&self, iced: &Instruction, memory: MemoryEffect) -> bool {
        let Some(rsp) = self.frame.get(Register::RSP) else {
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
        self.frame.get(register).map(FramePlace)
    }

    /// Whether what a register holds comes from a word of the frame that others may write.
    pub fn is_loaded(&self, register: Register) -> bool {
        self.frame.is_loaded(register)
    }

    /// Where `rsp` points, if that is known.
    pub fn stack_pointer(&self) -> Option<FramePlace> {
        self.frame.get(Register::RSP).map(FramePlace)
    }

    /// The place of a memory operand, if it is known to be in the frame.
    pub fn place(&self, iced: &Instruction) -> Option<FramePlace> {
        self.frame.place(iced)
    }

    /// Whether an operand `disp(%rsp)` may end above the arguments that a function of the
    /// kernel may have on its stack.
    pub fn is_beyond_arguments(&self, iced: &Instruction) -> bool {
        let rsp = self.frame.get(Register::RSP);
        rsp.is_some_and(|rsp| ends_beyond_arguments(rsp, iced))
    }

    /// Whether an operand in the frame, as far as its base tells, begins so far below `rsp` or
    /// ends so far above the arguments that it is none of a function of the kernel.
    pub fn is_far_from_frame(&self, iced: &Instruction) -> bool {
        let place = self.frame.place(iced);
        let below = |FramePlace(at): FramePlace| {
            let rsp = self.frame.get(Register::RSP);
            rsp.is_some_and(|rsp| at < rsp - stack::BELOW_RSP)
        };
        place.is_some_and(|place| below(place) || is_above_arguments(place, iced))
    }

    /// Whether an operand is known to be in the frame. That does not follow from what a word
    /// of the frame holds: the word may be the head of a list, which others write.
    pub fn points_to_frame(&self, iced: &Instruction) -> bool {
        self.frame.place(iced).is_some() && !self.frame.is_loaded(iced.memory_base())
    }

    /// Whether what an instruction does to the frame does not depend on what a word of the frame
    /// holds that others may write.
    pub fn is_certain(&self, iced: &Instruction) -> bool {
        let registers = [iced.memory_base(), iced.op1_register()];
        !registers.into_iter().any(|r| self.frame.is_loaded(r))
    }

    /// Updates the facts over an instruction.
    ///
    /// If a function that realigns its stack has no variants (a module for a stock
    /// kernel), `rsp` at entry is assumed to be aligned. If it was not, all places found
    /// after the `and` are off by the same number of bytes: distances between them are
    /// right, and [`keep_realigned`](crate::targets) uses no others.
    pub(super) fn pass(&mut self, input: Input<'_>, i: InstIdx, variant: Variant) {
        let inst = input.lifted.inst(i);
        let iced = &inst.iced;
        if routines::is_call(iced) {
            // A callee preserves rsp and the callee-saved registers but for those that it is
            // known to lose, and returns with DF clear (psABI 3.2.1).
            self.direction = Some(Direction::Forward);
            self.frame.called(input.lost.at_call(inst));
            return;
        }
        self.frame.store(iced);
        match iced.code() {
            Code::Std => self.direction = Some(Direction::Backward),
            Code::Cld => self.direction = Some(Direction::Forward),
            Code::Leaveq => {
                let saved = self.frame.get(Register::RBP);
                self.frame.set(Register::RSP, saved);
                self.pop(Register::RBP);
            }
            Code::Push_r64 => {
                self.frame.push(Some(iced.op0_register()));
            }
            Code::Pop_r64 => self.pop(iced.op0_register()),
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 if iced.op0_kind() == OpKind::Register => {
                let to = iced.op0_register();
                match iced.op1_kind() {
                    OpKind::Register => self.frame.copy(to, iced.op1_register(), 0),
                    _ => {
                        self.frame.load_into(to, self.frame.place(iced));
                    }
                }
            }
            Code::Lea_r64_m => match Operand::of(iced).simple() {
                Some((base, by)) => self.frame.copy(iced.op0_register(), reg64(base), by),
                None => self.frame.set(iced.op0_register(), None),
            },
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if self.counts(iced) => {
                let register = iced.op0_register();
                self.frame
                    .copy(register, register, iced.immediate(1) as i64);
            }
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if self.counts(iced) => {
                let register = iced.op0_register();
                let by = (iced.immediate(1) as i64).wrapping_neg();
                self.frame.copy(register, register, by);
            }
            Code::Inc_rm64 | Code::Dec_rm64 if self.counts(iced) => {
                let register = iced.op0_register();
                let by = if iced.code() == Code::Inc_rm64 { 1 } else { -1 };
                self.frame.copy(register, register, by);
            }
            Code::Xchg_rm64_r64 | Code::Xchg_r64_RAX
                if self.frame.follows_all() && iced.op0_kind() == OpKind::Register =>
            {
                self.frame
                    .exchange(iced.op0_register(), iced.op1_register());
            }
            Code::And_rm64_imm8 | Code::And_rm64_imm32 if iced.op0_register() == Register::RSP => {
                let alignment = u8::try_from(iced.immediate(1).wrapping_neg());
                match alignment {
                    Ok(alignment) if alignment.is_power_of_two() => {
                        self.move_rsp(|rsp| aligned(rsp, alignment, variant));
                    }
                    _ => self.frame.set(Register::RSP, None),
                }
            }
            _ if iced.mnemonic() == Mnemonic::Push && iced.stack_pointer_increment() == -8 => {
                self.frame.push(None);
            }
            _ => {
                let moved = i64::from(iced.stack_pointer_increment());
                self.move_rsp(|rsp| rsp + moved);
                self.frame.overwrite(input.surveys[i.0 as usize].written);
            }
        }
    }

    /// The same for a run of instructions, most of which change no fact.
    fn pass_all(&mut self, input: Input<'_>, insts: std::ops::Range<u32>, variant: Variant) {
        let all = self.frame.follows_all();
        for i in insts.map(|i| i as usize) {
            let changes = input.changes_facts[i]
                || all && input.surveys[i].written.intersects(LocSet::registers());
            if changes {
                self.pass(input, InstIdx(i as u32), variant);
            }
        }
    }

    /// Whether a sum of a register and a constant is followed.
    fn counts(&self, iced: &Instruction) -> bool {
        iced.op0_kind() == OpKind::Register
            && (iced.op0_register() == Register::RSP || self.frame.follows_all())
    }

    fn pop(&mut self, to: Register) {
        let from = self.stack_pointer();
        self.move_rsp(|rsp| rsp + 8);
        self.frame.load_into(to, from);
    }

    fn move_rsp(&mut self, to: impl Fn(i64) -> i64) {
        let rsp = self.frame.get(Register::RSP).map(to);
        self.frame.set(Register::RSP, rsp);
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
fn aligned(rsp: i64, alignment: u8, variant: Variant) -> i64 {
    let residue = variant.residue();
    ((rsp + residue) & -i64::from(alignment)) - residue
}

/// Facts before the instructions whose treatment depends on them.
pub struct FactsBefore {
    /// By variant.
    found: Vec<OneVariant>,
}

/// The facts in one variant.
struct OneVariant {
    /// In the order of the instructions.
    facts: Vec<(InstIdx, Facts)>,
    /// Which of `facts` are before an instruction.
    places: Starts,
}

impl FactsBefore {
    /// The facts before an instruction, in a variant of its function.
    pub fn get(&self, i: InstIdx, variant: Variant) -> Option<&Facts> {
        let found = self.found.get(usize::from(variant.0))?;
        match found.places.get(i.0.into()) {
            Start::Of(n) => Some(&found.facts[n as usize].1),
            Start::Middle | Start::End => None,
        }
    }

    /// All of one variant, in the order of the instructions.
    pub fn of(&self, variant: Variant) -> &[(InstIdx, Facts)] {
        &self.found[usize::from(variant.0)].facts
    }

    /// All of them, of all variants.
    pub fn all(&self) -> impl Iterator<Item = &(InstIdx, Facts)> {
        self.found.iter().flat_map(|one| &one.facts)
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
    /// The registers that are followed: all where any operand may use a word of the frame.
    fn followed(self) -> LocSet {
        match self {
            Asked::Nothing | Asked::FrameOperands => FOLLOWED,
            Asked::AllWords => LocSet::registers(),
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

/// Facts before each instruction whose treatment depends on them.
pub fn analyse(input: Input<'_>, variants: &Variants, asked: Asked) -> FactsBefore {
    let dependents = Dependents::find(input, asked);
    let found = variants
        .all()
        .map(|variant| one_variant(input, &dependents, variants, variant, asked))
        .collect();
    FactsBefore { found }
}

fn one_variant(
    input: Input<'_>,
    dependents: &Dependents,
    variants: &Variants,
    variant: Variant,
    asked: Asked,
) -> OneVariant {
    let before = solve(input, dependents, variants, variant, asked);
    let mut found = Vec::with_capacity(dependents.insts.len());
    let mut places = Starts::new(input.classes.len());
    let mut rest = &dependents.insts[..];
    // Blocks and the instructions that need facts are in the same order.
    while let Some(first) = rest.first() {
        let block = input.flow.block_of(*first);
        let insts = input.flow.blocks()[block.0 as usize].clone();
        let (here, behind) = rest.split_at(rest.partition_point(|i| i.0 < insts.end));
        rest = behind;
        let Some(mut facts) = before.get(block).copied() else {
            continue;
        };
        let mut at = insts.start;
        for &i in here {
            facts.pass_all(input, at..i.0, variant);
            places.add(i.0 as usize, found.len() as u32);
            found.push((i, facts));
            at = i.0;
        }
    }
    OneVariant {
        facts: found,
        places,
    }
}

fn solve(
    input: Input<'_>,
    dependents: &Dependents,
    variants: &Variants,
    variant: Variant,
    asked: Asked,
) -> Before<Facts> {
    let Input { lifted, flow, .. } = input;
    let mut before = Before::new(flow.blocks().len());
    let mut work = Vec::new();
    // Functions and subroutines are entered with an empty frame, parts of functions that
    // the compiler split off are not: those get their facts from their jumps.
    for f in (0..lifted.functions.len() as u32).map(FuncIdx) {
        let asks = dependents.functions[f.0 as usize];
        if !asks || !variants.of(f).any(|c| c == variant) {
            continue;
        }
        for entry in lifted.entries_of(f).map(|i| flow.block_of(i)) {
            if !is_left_out(input, entry) {
                before.arrive(entry, &Facts::at_entry(asked.followed()));
                work.push(entry);
            }
        }
    }
    while let Some(block) = work.pop() {
        let Some(mut facts) = before.get(block).copied() else {
            continue;
        };
        let insts = flow.blocks()[block.0 as usize].clone();
        let last = insts.end - 1;
        facts.pass_all(input, insts.start..last, variant);
        // Where control leaves it before, its effect is missing, and a handler has written.
        let skipped = flow.may_be_skipped(InstIdx(last)).then_some(facts);
        facts.pass_all(input, last..insts.end, variant);
        if let Some(before_last) = skipped {
            facts = facts.join(before_last);
            facts
                .frame
                .overwrite(flow.written_by_handler(InstIdx(last)));
        }
        for &next in flow.continuations(block) {
            if !is_left_out(input, next) && before.arrive(next, &facts) {
                work.push(next);
            }
        }
    }
    before
}

/// Whether a block is not written, because no path comes to it.
pub(super) fn is_left_out(input: Input<'_>, block: BlockId) -> bool {
    let first = input.flow.blocks()[block.0 as usize].start;
    matches!(input.classes[first as usize], Class::Unreached(_))
}
