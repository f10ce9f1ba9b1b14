//! Which of two stacks has which words of a frame (`docs/spec/window.md`).
//!
//! `push`, `pop` and `call` use the control stack; operands in memory reach the data
//! stack. A word of the frame that only `push` and `pop` use is on the control stack: a
//! saved register, mostly. Any other word is on the data stack, where `push` and `pop` of
//! it become moves:
//!
//! * a word that an operand also reads or writes, or whose address is taken;
//! * a word that is pushed and dropped, or never popped: an argument.
//!
//! A word has one place for all of a family of functions ([`super::variants`]), so no two
//! paths disagree. Pointers whose place is not known are assumed not to reach a pushed
//! word that nothing else makes one of these, as in [`super::facts`].

use std::collections::BTreeMap;
use std::ops::Range;

use foldhash::{HashMap, HashSet};
use iced_x86::{Code as Op, Instruction, Mnemonic, OpKind, Register};

use super::contents::FramePlace;
use super::facts::{Facts, FactsBefore};
use super::variants::{Families, Variant, Variants};
use crate::analyse::Analysis;
use crate::analyse::class::{Class, Space};
use crate::analyse::classify::WORD;
use crate::asm::LONGEST;
use crate::lift::{InstIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};

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

/// What an instruction does to words of the frame, by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Use {
    /// `push` makes the word.
    Push(i64),
    /// `pop` takes it.
    Pop(i64),
    /// An operand in memory reaches these bytes.
    Reach(Range<i64>),
    /// `rsp` moves over these bytes, which are gone.
    Drop(Range<i64>),
    /// `rsp` moves over these bytes, which belong to the frame now.
    Make(Range<i64>),
}

/// What is known of one word.
#[derive(Default)]
struct Word {
    pushes: Vec<InstIdx>,
    pops: Vec<InstIdx>,
    is_data: bool,
}

/// The word in which a byte of the frame is.
fn word(byte: i64) -> i64 {
    byte & -WORD
}

/// Finds the stack of each word.
///
/// # Errors
/// Every use of the stack that two stacks cannot serve.
pub fn find(
    analysis: &Analysis<'_>,
    classes: &[Class],
    facts: &FactsBefore,
    variants: &Variants,
) -> Result<StackWords, Vec<Refusal>> {
    let lifted = analysis.lifted;
    let mut refusals = Vec::new();
    let mut words = StackWords::default();
    let mut families = Families::new(lifted, &analysis.flow);
    for (i, class) in (0..).map(InstIdx).zip(classes) {
        if let Err((code, reason)) = fits(lifted, i, *class) {
            refusal::add(&mut refusals, lifted.refusal(code, i, reason));
        }
    }
    for variant in variants.all() {
        let mut uses = Uses::default();
        for (i, facts) in facts.of(variant) {
            let family = families.of(lifted.function_of(*i));
            let (iced, class) = (&lifted.inst(*i).iced, classes[i.0 as usize]);
            match uses_of(iced, class, facts, variant) {
                Ok(found) => uses.add(family, *i, found),
                Err((code, reason)) => {
                    refusal::add(&mut refusals, lifted.refusal(code, *i, reason));
                }
            }
            if let (true, Some(FramePlace(rsp))) = (
                copies_return_address(iced, class, facts),
                facts.stack_pointer(),
            ) {
                uses.copies.push((*i, (family, rsp - WORD)));
            }
        }
        for i in uses.read_copies() {
            refusal::add(
                &mut refusals,
                lifted.refusal(RETURN_ADDRESS.0, i, RETURN_ADDRESS.1),
            );
        }
        words
            .data
            .extend(uses.on_data(analysis).map(|i| (i, variant)));
    }
    match refusals.is_empty() {
        true => Ok(words),
        false => Err(refusals),
    }
}

/// The uses of one variant.
#[derive(Default)]
struct Uses {
    /// By family and place.
    words: BTreeMap<(usize, i64), Word>,
    /// What instructions do to `rsp`, in order.
    moves: HashMap<InstIdx, Vec<Use>>,
    /// The families of these instructions.
    families: HashMap<InstIdx, usize>,
    /// Pushes of a copy of the return address, which only unwinders read, with its word.
    copies: Vec<(InstIdx, (usize, i64))>,
}

impl Uses {
    fn add(&mut self, family: usize, i: InstIdx, found: Vec<Use>) {
        for used in found {
            match &used {
                Use::Push(at) => self.word(family, *at).pushes.push(i),
                Use::Pop(at) => self.word(family, *at).pops.push(i),
                // What is dropped or made matters only where it is pushed or popped.
                Use::Drop(_) | Use::Make(_) => {}
                Use::Reach(bytes) => {
                    let mut at = word(bytes.start);
                    while at < bytes.end {
                        self.word(family, at).is_data = true;
                        at += WORD;
                    }
                }
            }
            if !matches!(used, Use::Reach(_)) {
                self.moves.entry(i).or_default().push(used);
                self.families.insert(i, family);
            }
        }
    }

    /// Copies of the return address that an operand may read.
    fn read_copies(&self) -> impl Iterator<Item = InstIdx> {
        let read = |key| self.words.get(key).is_some_and(|word: &Word| word.is_data);
        self.copies
            .iter()
            .filter(move |(_, key)| read(key))
            .map(|(i, _)| *i)
    }

    fn word(&mut self, family: usize, at: i64) -> &mut Word {
        self.words.entry((family, word(at))).or_default()
    }

    /// The pushes and pops of words on the data stack.
    fn on_data(&self, analysis: &Analysis<'_>) -> impl Iterator<Item = InstIdx> {
        let made = self.popped_unpushed(analysis);
        let data = self.words.iter().filter(|(key, word)| {
            let is_saved = || {
                word.pushes
                    .iter()
                    .all(|i| self.is_saved(analysis, *i, key.1))
            };
            let used = !word.pushes.is_empty() || !word.pops.is_empty();
            used && (word.is_data || word.pushes.is_empty() || made.contains(key) || !is_saved())
        });
        let moves = data.flat_map(|(_, word)| word.pushes.iter().chain(&word.pops));
        moves.copied().collect::<Vec<_>>().into_iter()
    }

    /// Whether the word that `push` makes is taken by a `pop`, and dropped on no path.
    fn is_saved(&self, analysis: &Analysis<'_>, push: InstIdx, at: i64) -> bool {
        let next = self.next(analysis, push, at);
        next.popped && !next.dropped
    }

    /// The words that a `pop` takes on a path on which they were made without `push`.
    fn popped_unpushed(&self, analysis: &Analysis<'_>) -> HashSet<(usize, i64)> {
        let mut found = HashSet::default();
        let popped = |(_, word): &(_, &Word)| !word.pops.is_empty() && !word.pushes.is_empty();
        for (i, uses) in &self.moves {
            for used in uses {
                let Use::Make(bytes) = used else { continue };
                let family = self.families[i];
                let inside = self.words.range((family, bytes.start)..(family, bytes.end));
                for (key, _) in inside.filter(popped) {
                    if self.next(analysis, *i, key.1).popped {
                        found.insert(*key);
                    }
                }
            }
        }
        found
    }

    /// What happens to the word at a place first, on the paths after an instruction.
    fn next(&self, analysis: &Analysis<'_>, after: InstIdx, at: i64) -> Next {
        let flow = &analysis.flow;
        let mut next = Next::default();
        let mut seen = HashSet::default();
        let mut work = vec![(flow.block_of(after), after.0 + 1)];
        while let Some((block, start)) = work.pop() {
            let end = flow.blocks()[block.0 as usize].end;
            let mut rest = (start..end)
                .filter_map(|i| self.moves.get(&InstIdx(i)))
                .flatten();
            let first = rest.find(|used| match used {
                Use::Push(place) | Use::Pop(place) => *place == at,
                Use::Drop(bytes) | Use::Make(bytes) => bytes.contains(&at),
                Use::Reach(_) => false,
            });
            match first {
                Some(Use::Pop(_)) => next.popped = true,
                Some(Use::Drop(_)) => next.dropped = true,
                Some(Use::Push(_) | Use::Make(_) | Use::Reach(_)) => {}
                None => {
                    for &next in flow.continuations(block) {
                        if seen.insert(next) {
                            work.push((next, flow.blocks()[next.0 as usize].start));
                        }
                    }
                }
            }
        }
        next
    }
}

/// What happens to a word first, on any path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Next {
    popped: bool,
    dropped: bool,
}

/// Why an instruction is refused.
type Refused = (RefusalCode, &'static str);

const RETURN_ADDRESS: Refused = (
    RefusalCode::StackPointer,
    "it reaches the return address, which no operand can under this scheme",
);

/// Whether it loads the function's own return address, which code records.
pub fn loads_return_address(iced: &Instruction, facts: &Facts) -> bool {
    iced.code() == Op::Mov_r64_rm64 && facts.place(iced) == Some(FramePlace(0))
}

/// Whether it pushes the function's return address again, as compilers do above a
/// realigned frame.
fn copies_return_address(iced: &Instruction, class: Class, facts: &Facts) -> bool {
    matches!(class, Class::PushMemory(_)) && facts.place(iced) == Some(FramePlace(0))
}

/// Refuses instructions that two stacks or a window cannot serve, wherever `rsp` points.
fn fits(lifted: &Lifted<'_>, i: InstIdx, class: Class) -> Result<(), Refused> {
    /// The prefixes 65 and 67, and a SIB byte where the operand was relative to `rip`.
    const GROWTH: usize = 3;
    let iced = &lifted.inst(i).iced;
    let has_memory = (0..iced.op_count()).any(|n| iced.op_kind(n) == OpKind::Memory);
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
    if has_memory && iced.mnemonic() != Mnemonic::Lea && lifted.bytes(i).len() + GROWTH > LONGEST {
        return Err((
            RefusalCode::Unsupported,
            "the instruction leaves no room for the prefixes of the window",
        ));
    }
    match names_rsp(iced) && !is_known_use(iced, class) {
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
    let operand = |n| iced.op_kind(n) == OpKind::Register && iced.op_register(n) == Register::RSP;
    let address = iced.mnemonic() == Mnemonic::Lea && iced.memory_base() == Register::RSP;
    address || (0..iced.op_count()).any(operand)
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
            reads_number(iced.mnemonic())
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

/// What an instruction does to the frame.
fn uses_of(
    iced: &Instruction,
    class: Class,
    facts: &Facts,
    variant: Variant,
) -> Result<Vec<Use>, Refused> {
    let mut uses = Vec::new();
    if let Some(FramePlace(at)) = facts.place(iced) {
        let address = iced.mnemonic() == Mnemonic::Lea;
        let size = if address {
            1
        } else {
            iced.memory_size().size() as i64
        };
        let is_gone = matches!(class, Class::Drop | Class::Unreached(_));
        let is_return_address = at < WORD && at + size > 0 && !address;
        let is_copied =
            loads_return_address(iced, facts) || copies_return_address(iced, class, facts);
        if is_return_address && !is_gone && !is_copied {
            return Err(RETURN_ADDRESS);
        }
        let moves_rsp = address && iced.op0_register() == Register::RSP;
        if !is_gone && !moves_rsp {
            uses.push(Use::Reach(at..at + size));
        }
    }
    let rsp = || {
        let known = facts.stack_pointer().map(|FramePlace(rsp)| rsp);
        known.ok_or((
            RefusalCode::StackPointer,
            "how much is on the stack is not known here",
        ))
    };
    match (class, iced.mnemonic()) {
        (Class::Plain | Class::Stack | Class::PushMemory(_), Mnemonic::Push) => {
            uses.push(Use::Push(rsp()? - WORD))
        }
        (Class::Plain | Class::PopMemory(_), Mnemonic::Pop) => uses.push(Use::Pop(rsp()?)),
        (Class::FramePointerToStack, _) => {
            let (rsp, distance) = (rsp()?, facts.stack_move(iced).unwrap_or(0));
            uses.push(moved(rsp, distance));
            if iced.code() == Op::Leaveq {
                uses.push(Use::Pop(rsp + distance));
            }
        }
        (Class::Realign(alignment), _) => {
            let padding = facts.padding(alignment, variant).unwrap_or(0);
            uses.push(moved(rsp()?, -padding));
        }
        (Class::Plain, _) => {
            if let Some(distance) = moves_rsp(iced) {
                uses.push(moved(rsp()?, distance));
            }
        }
        _ => {}
    }
    Ok(uses)
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
