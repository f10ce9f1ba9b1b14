//! Which of two stacks has which words of a frame (`docs/spec/window.md`).
//!
//! `push`, `pop` and `call` use the control stack; operands in memory reach the data
//! stack. A word of the frame that only `push` and `pop` use is on the control stack: a
//! saved register, mostly. Any other word is on the data stack, where `push` and `pop` of
//! it become moves:
//!
//! * a word that an operand also reads or writes, or whose address is taken; and what is pushed
//!   next to a pushed word whose address is taken;
//! * a word that is pushed and dropped, or never popped: an argument;
//! * a word that a function of the object reaches which is called meanwhile ([`calls`]);
//! * a word that is popped, but lies on the stack at a call, unless it only keeps a register
//!   that callees keep: compilers drop a few arguments by `pop`, too.
//!
//! A word has one place on all paths of an invocation ([`super::frames`]), so no two disagree. Pointers whose place is not known are assumed not to reach a pushed
//! word that nothing else makes one of these, as in [`super::facts`].

mod calls;
mod uses;

use foldhash::HashSet;
use iced_x86::{Code as Op, ConditionCode, Instruction, Mnemonic, OpKind, Register};

use super::contents::FramePlace;
use super::facts::{Facts, FactsBefore};
use super::frames::Frames;
use super::lost::Lost;
use super::variants::{Variant, Variants};
use crate::analyse::Analysis;
use crate::analyse::class::{Class, Space};
use crate::analyse::classify::WORD;
use crate::analyse::routines;
use crate::analyse::survey::Survey;
use crate::asm::LONGEST;
use crate::lift::{FuncIdx, InstIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};
use crate::registers::{has_memory, names};
use calls::Calls;
use uses::{Found, Use, Uses, Written};

/// The pushes and pops, `leave` included, whose word is on the data stack.
#[derive(Debug, Default)]
pub struct StackWords {
    data: HashSet<(InstIdx, Variant)>,
}

impl StackWords {
    /// Whether the word that an instruction pushes or pops is on the data stack, in a
    /// variant of its function.
    pub fn is_data(&self, i: InstIdx, variant: Variant) -> bool {
        self.data.contains(&(i, variant))
    }
}

/// Finds the stack of each word.
///
/// # Errors
/// Every use of the stack that two stacks cannot serve.
pub fn find(
    analysis: &Analysis<'_>,
    classes: &[Class],
    facts: &FactsBefore,
    lost: &Lost,
    frames: &Frames,
    variants: &Variants,
) -> Result<StackWords, Vec<Refusal>> {
    let lifted = analysis.lifted;
    let mut refusals = Vec::new();
    // Variants mostly agree.
    let mut refused = HashSet::default();
    let mut refuse = |i, (code, reason): Refused| {
        if refused.insert((i, reason)) {
            refusal::add(&mut refusals, lifted.refusal(code, i, reason));
        }
    };
    let mut words = StackWords::default();
    let written = Written::find(analysis, lost);
    let surveyed = analysis.surveys.iter().zip(classes);
    for (i, (survey, class)) in (0..).map(InstIdx).zip(surveyed) {
        if let Err(why) = fits(lifted, i, survey, *class) {
            refuse(i, why);
        }
    }
    for i in without_facts(analysis, classes, facts, variants) {
        refuse(i, NOT_KNOWN);
    }
    let mut calls = Calls::default();
    let mut all = Vec::new();
    for variant in variants.all() {
        let mut found = Found::with_capacity(facts.count());
        let concerned = facts.of(variant).filter(|(i, facts)| {
            let survey = &analysis.surveys[i.0 as usize];
            facts.concern(survey)
        });
        for (i, facts) in concerned {
            let frame = frames.of(analysis.flow.block_of(i));
            let (iced, class) = (&lifted.inst(i).iced, classes[i.0 as usize]);
            let uses = |used| {
                calls.add_use(frame, iced, facts, &used);
                found.add(frame, i, used);
            };
            if let Err(why) = each_use(iced, class, facts, variant, uses) {
                refuse(i, why);
            }
            if !matches!(class, Class::Drop | Class::Unreached(_)) {
                calls.add(analysis, frames, (i, frame, variant), facts);
            }
        }
        all.push((variant, found));
    }
    if let Err(call) = calls.solve(analysis, &written, frames) {
        refuse(call, TOO_MANY);
        return Err(refusals);
    }
    for (variant, mut found) in all {
        for i in calls.apply(variant, &mut found) {
            refuse(i, CALLERS_RETURN_ADDRESS);
        }
        let uses = Uses::of(found, analysis, &written);
        for i in uses.followed() {
            refuse(i, CALLERS_FRAME);
        }
        words.data.extend(uses.on_data().map(|i| (i, variant)));
    }
    match refusals.is_empty() {
        true => Ok(words),
        false => Err(refusals),
    }
}

/// Why an instruction is refused.
type Refused = (RefusalCode, &'static str);

const NOT_KNOWN: Refused = (
    RefusalCode::StackPointer,
    "how much is on the stack is not known here",
);

const RETURN_ADDRESS: Refused = (
    RefusalCode::StackPointer,
    "it reaches the return address, which no operand can under this scheme",
);

const RETURN_ADDRESS_PASSED: Refused = (
    RefusalCode::StackPointer,
    "a register leads the function that it calls to the return address, which no operand can reach \
     under this scheme",
);

const CALLERS_RETURN_ADDRESS: Refused = (
    RefusalCode::StackPointer,
    "the function that it calls reaches the return address of this one, which no operand can under \
     this scheme",
);

const TOO_MANY: Refused = (
    RefusalCode::StackPointer,
    "functions of the object reach too many words above their own frames to follow all of them",
);

const CALLERS_FRAME: Refused = (
    RefusalCode::StackPointer,
    "it follows the frame pointer to the caller's frame (__builtin_return_address(1)), in which no \
     operand reaches what was pushed under this scheme",
);

/// The instructions that use the stack and that nothing was found to lead to: what is on it is
/// not known.
fn without_facts(
    analysis: &Analysis<'_>,
    classes: &[Class],
    facts: &FactsBefore,
    variants: &Variants,
) -> Vec<InstIdx> {
    let asks = |i: &InstIdx| {
        let is_gone = || matches!(classes[i.0 as usize], Class::Drop | Class::Unreached(_));
        analysis.surveys[i.0 as usize].uses_stack && !is_gone()
    };
    let mut unknown = Vec::new();
    for (f, function) in (0..).map(FuncIdx).zip(&analysis.lifted.functions) {
        let asking = function.insts.clone().map(InstIdx).filter(asks);
        let is_unknown = |i: &InstIdx| variants.of(f).any(|v| facts.get(*i, v).is_none());
        unknown.extend(asking.filter(is_unknown));
    }
    unknown
}

/// Whether it reads the function's own return address and nothing else: loads it, which code
/// records, pushes it again, as compilers do above a realigned frame and for an argument, or mixes
/// it into a number.
pub fn reads_return_address(iced: &Instruction, facts: &Facts) -> bool {
    reads_word(iced) && facts.place(iced) == Some(FramePlace(0)) && facts.points_to_frame(iced)
}

/// Whether it loads a word, pushes one, or mixes one into a number.
pub fn reads_word(iced: &Instruction) -> bool {
    matches!(iced.code(), Op::Mov_r64_rm64 | Op::Push_rm64) || mixes_word(iced)
}

/// `xor d(%rbp), %r`: kernels choose one of several caches by a hash of the return address
/// (`kmalloc_type`, include/linux/slab.h).
pub fn mixes_word(iced: &Instruction) -> bool {
    iced.code() == Op::Xor_r64_rm64
        && matches!(iced.memory_base(), Register::RSP | Register::RBP)
        && iced.memory_index() == Register::None
}

/// Whether an operand with a place in the frame surely is there. A pointer that was kept in
/// memory may be another one by now: the next element of a list whose head is in the frame. In
/// r10 compilers keep the address of what is above a realigned frame.
fn leads_to_frame(iced: &Instruction, facts: &Facts) -> bool {
    facts.points_to_frame(iced) || iced.memory_base() == Register::R10
}

/// Refuses instructions that two stacks or a window cannot serve, wherever `rsp` points.
fn fits(lifted: &Lifted<'_>, i: InstIdx, survey: &Survey, class: Class) -> Result<(), Refused> {
    /// The prefixes 65 and 67, and a SIB byte where the operand was relative to `rip`.
    const GROWTH: usize = 3;
    let iced = &lifted.inst(i).iced;
    let is_long = iced.len() + GROWTH > LONGEST;
    if !is_long && !survey.uses_stack {
        return Ok(());
    }
    match class {
        Class::Drop | Class::Unreached(_) => return Ok(()),
        Class::PushMemory(Space::PerCpu(_)) | Class::PopMemory(Space::PerCpu(_)) => {
            return Err((
                RefusalCode::Unsupported,
                "push or pop of per-CPU data has no sequence under this scheme",
            ));
        }
        _ => {}
    }
    if is_long && has_memory(iced) && iced.mnemonic() != Mnemonic::Lea {
        return Err((
            RefusalCode::Unsupported,
            "the instruction leaves no room for the prefixes of the window",
        ));
    }
    match survey.uses_stack && names_rsp(iced) && !is_known_use(iced, class) {
        true => Err((
            RefusalCode::StackPointer,
            "it uses the stack pointer as a number, and there are two stacks under this scheme",
        )),
        false => Ok(()),
    }
}

/// Whether an operand is `rsp`, whole, or an address that counts from it. The low half is
/// the same on both stacks.
fn names_rsp(iced: &Instruction) -> bool {
    let address = iced.memory_base() == Register::RSP && iced.mnemonic() == Mnemonic::Lea;
    address || names(iced, Register::RSP)
}

/// Whether `rsp` is moved, or read by an instruction that a register can serve, too.
fn is_known_use(iced: &Instruction, class: Class) -> bool {
    let moves = iced.op0_kind() == OpKind::Register && iced.op0_register() == Register::RSP;
    match class {
        Class::FramePointerToStack | Class::Realign(_) => true,
        Class::Plain if moves => matches!(
            iced.code(),
            Op::Add_rm64_imm8
                | Op::Add_rm64_imm32
                | Op::Sub_rm64_imm8
                | Op::Sub_rm64_imm32
                | Op::Lea_r64_m
                | Op::Push_r64
        ),
        Class::Plain if iced.mnemonic() == Mnemonic::Lea => iced.code() == Op::Lea_r64_m,
        Class::Plain | Class::Memory(Space::Heap | Space::Global) | Class::Stack => {
            reads_number(iced.mnemonic()) || is_cmov(iced)
        }
        _ => false,
    }
}

/// Instructions that only read their last operand, and that imply no register.
fn reads_number(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Mov | M::Add | M::Sub | M::And | M::Or | M::Xor | M::Cmp | M::Test
    )
}

/// `cmovcc`: of the instructions with a condition it alone has two operands (SDM volume 2,
/// CMOVcc).
fn is_cmov(iced: &Instruction) -> bool {
    iced.condition_code() != ConditionCode::None && iced.op_count() == 2
}

/// Gives each thing that an instruction does to the frame.
fn each_use(
    iced: &Instruction,
    class: Class,
    facts: &Facts,
    variant: Variant,
    mut uses: impl FnMut(Use),
) -> Result<(), Refused> {
    if !matches!(class, Class::Drop | Class::Unreached(_)) {
        operand_uses(iced, facts, &mut uses)?;
    }
    if routines::is_call(iced) {
        if ARGUMENTS
            .into_iter()
            .any(|r| leads_to_return_address(facts, r))
        {
            return Err(RETURN_ADDRESS_PASSED);
        }
        uses(Use::Call);
    }
    stack_pointer_uses(iced, class, facts, variant, uses)
}

/// What its operands reach or take the address of.
fn operand_uses(
    iced: &Instruction,
    facts: &Facts,
    uses: &mut impl FnMut(Use),
) -> Result<(), Refused> {
    if let Some(FramePlace(at)) = facts.place(iced) {
        let address = iced.mnemonic() == Mnemonic::Lea;
        let size = match address {
            true => 1,
            false => iced.memory_size().size() as i64,
        };
        let is_return_address =
            at < WORD && at + size > 0 && !address && leads_to_frame(iced, facts);
        if is_return_address && !reads_return_address(iced, facts) {
            return Err(RETURN_ADDRESS);
        }
        let follows = iced.code() == Op::Mov_r64_rm64
            && facts.points_to_frame(iced)
            && iced.op0_register() != Register::RBP;
        if follows {
            uses(Use::Follow(at));
        }
        let moves_rsp = address && iced.op0_register() == Register::RSP;
        if !moves_rsp {
            uses(Use::Reach(at..at + size));
        }
    }
    if reaches_by_another_way(iced, facts) {
        return Err(RETURN_ADDRESS);
    }
    if let Some(taken) = address_taken(iced, facts) {
        uses(taken);
    }
    Ok(())
}

/// What it does to the frame by moving `rsp`.
fn stack_pointer_uses(
    iced: &Instruction,
    class: Class,
    facts: &Facts,
    variant: Variant,
    mut uses: impl FnMut(Use),
) -> Result<(), Refused> {
    let rsp = || {
        let known = facts.stack_pointer().map(|FramePlace(rsp)| rsp);
        known.ok_or(NOT_KNOWN)
    };
    match (class, iced.mnemonic()) {
        (Class::Plain | Class::Stack | Class::PushMemory(_), Mnemonic::Push) => {
            let at = rsp()? - WORD;
            uses(Use::Push(at));
            // These are made by `mov`: an address on the data stack, and the return address.
            let is_address =
                iced.op0_kind() == OpKind::Register && iced.op0_register() == Register::RSP;
            if is_address || reads_return_address(iced, facts) {
                uses(Use::Reach(at..at + WORD));
            }
        }
        (Class::Plain | Class::PopMemory(_), Mnemonic::Pop) => uses(Use::Pop(rsp()?)),
        (Class::FramePointerToStack, _) => {
            let (rsp, distance) = (rsp()?, facts.stack_move(iced).unwrap_or(0));
            uses(moved(rsp, distance));
            if iced.code() == Op::Leaveq {
                uses(Use::Pop(rsp + distance));
            }
        }
        (Class::Realign(alignment), _) => {
            let padding = facts.padding(alignment, variant).unwrap_or(0);
            uses(moved(rsp()?, -padding));
        }
        (Class::Plain, _) => {
            if let Some(distance) = moves_rsp(iced) {
                uses(moved(rsp()?, distance));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Registers in which compilers keep the address of a frame, to reach it and to set `rsp`.
const FRAME_POINTERS: [Register; 8] = [
    Register::RBX,
    Register::RBP,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// The registers that may point to arguments (psABI 3.2.3).
const ARGUMENTS: [Register; 6] = [
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register::R9,
];

fn is_return_address(at: i64) -> bool {
    (0..WORD).contains(&at)
}

fn leads_to_return_address(facts: &Facts, register: Register) -> bool {
    let at = facts.pointer(register);
    at.is_some_and(|FramePlace(at)| is_return_address(at)) && !facts.is_loaded(register)
}

/// Whether an index is added to the place of the return address, or it is where a string is.
fn reaches_by_another_way(iced: &Instruction, facts: &Facts) -> bool {
    if iced.mnemonic() != Mnemonic::Lea && indexed_place(iced, facts).is_some_and(is_return_address)
    {
        return !facts.is_loaded(iced.memory_base());
    }
    // No instruction has such an operand behind the second.
    [iced.op0_kind(), iced.op1_kind()]
        .into_iter()
        .any(|kind| match kind {
            OpKind::MemorySegRSI => leads_to_return_address(facts, Register::RSI),
            OpKind::MemoryESRDI => leads_to_return_address(facts, Register::RDI),
            _ => false,
        })
}

/// The place to which an operand adds an index, if that is in the frame.
fn indexed_place(iced: &Instruction, facts: &Facts) -> Option<i64> {
    if iced.memory_index() == Register::None {
        return None;
    }
    let FramePlace(base) = facts.pointer(iced.memory_base())?;
    Some(base + iced.memory_displacement64() as i64)
}

/// The place whose address an instruction copies from a register. A realigned frame's `r10` is kept
/// in the frame, for nobody else.
fn copied(iced: &Instruction, facts: &Facts) -> Option<i64> {
    use Mnemonic as M;
    let from = match iced.mnemonic() {
        M::Mov | M::Add if iced.op1_kind() == OpKind::Register => iced.op1_register(),
        M::Push if iced.op0_kind() == OpKind::Register => iced.op0_register(),
        _ => return None,
    };
    let to_memory = iced.mnemonic() == M::Push || iced.op0_kind() == OpKind::Memory;
    if to_memory && matches!(from, Register::R10 | Register::R11) {
        return None;
    }
    facts.pointer(from).map(|FramePlace(at)| at)
}

/// The place of the frame whose address becomes a number, or to which an index is added.
fn address_taken(iced: &Instruction, facts: &Facts) -> Option<Use> {
    use Mnemonic as M;
    let FramePlace(rsp) = facts.stack_pointer()?;
    let is = |n: u32, r| {
        n < iced.op_count() && iced.op_kind(n) == OpKind::Register && iced.op_register(n) == r
    };
    if is(0, Register::RSP) && iced.mnemonic() != M::Push {
        return None;
    }
    let indexed = iced.memory_base() == Register::RSP && iced.memory_index() != Register::None;
    let at = match iced.mnemonic() {
        _ if indexed => rsp.max(rsp + iced.memory_displacement64() as i64),
        _ if iced.memory_index() != Register::None => indexed_place(iced, facts)?,
        M::Lea => facts.place(iced)?.0,
        M::Mov | M::Add if is(1, Register::RSP) => rsp,
        _ if is(1, Register::RSP) && is_cmov(iced) => rsp,
        M::Push if is(0, Register::RSP) => rsp,
        _ => return Some(Use::Address(copied(iced, facts)?)),
    };
    let keeps = matches!(iced.mnemonic(), M::Mov | M::Lea) && !indexed;
    let kept = FRAME_POINTERS.into_iter().find(|r| keeps && is(0, *r));
    Some(kept.map_or(Use::Address(at), |register| Use::Kept(at, register)))
}

/// `rsp` moves by so many bytes from a place.
fn moved(rsp: i64, distance: i64) -> Use {
    match distance >= 0 {
        true => Use::Drop(rsp..rsp + distance),
        false => Use::Make(rsp + distance..rsp),
    }
}

/// By how many bytes an instruction moves `rsp`, if that is a constant.
fn moves_rsp(iced: &Instruction) -> Option<i64> {
    let moved = match iced.code() {
        Op::Add_rm64_imm8 | Op::Add_rm64_imm32 => iced.immediate(1) as i64,
        Op::Sub_rm64_imm8 | Op::Sub_rm64_imm32 => (iced.immediate(1) as i64).wrapping_neg(),
        Op::Lea_r64_m if iced.memory_base() == Register::RSP => iced.memory_displacement64() as i64,
        _ => return None,
    };
    let is_rsp = iced.op0_kind() == OpKind::Register && iced.op0_register() == Register::RSP;
    is_rsp.then_some(moved)
}
