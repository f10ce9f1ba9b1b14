//! Accesses on a stack that the program went to:
//!
//! ```text
//!     mov  160(%rdi), %rsp        an outer frame, or an array to pop from
//!     mov  128(%rdi), %rbx        %rdi may point below it: sequences push there
//! ```
//!
//! Nothing shows that what is below such a stack may be overwritten, until the program itself
//! calls something on it. So an access whose sequence needs the stack is refused there. What
//! leads to the function's own stack is followed: copies of `rsp`, sums with them, and words
//! of the frame that such a register was stored to, as compilers keep `rsp` there to take back an
//! array of variable length. A word that the function stores something else to leads elsewhere, and
//! so does one that it never stores a register to: a caller's, or one that is written in another way.
//! So that a word may have both, those that have a copy of `rsp` are followed on each path ([`Spilled`]).
//! Over a call of this text they are kept in any register that the callee leaves alone.
//!
//! What was pushed is followed within a block (`push %rdi; pop %rsp`), and so is a frame pointer that
//! a program made of something else (`mov %rdi, %rbp; leave`). A function that pushes `rsp`, or a copy
//! of it, may read that word by any distance (`push %rsp; push (%rsp); and $-16, %rsp; mov 8(%rsp), %rsp`).
//!
//! Not seen is a word that had `rsp` and is then written in another way than by `mov`.

use foldhash::{HashMap, HashSet};
use iced_x86::{ConditionCode, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use liveness::{BlockId, FlowGraph, LocSet, Reg};

use super::kept::Kept;
use super::marks::StatementIdx;
use super::print::Obstacle;
use super::spilled::Spilled;
use super::switching::Switching;
use super::tie::Tie;
use crate::analyse::Analysis;
use crate::analyse::flow::effects;
use crate::analyse::survey::Survey;
use crate::asm::{Assembler, Piece};
use crate::encode::sites::{FunctionCode, SiteCode, SiteSequence};
use crate::lift::{InstIdx, is_filler};
use crate::refusal::RefusalCode;
use crate::registers::gpr;

/// What leads to a function's own stack where it begins.
const AT_ENTRY: LocSet = LocSet::reg(Reg::RSP).union(LocSet::reg(Reg::RBP));

/// Finds such accesses.
pub fn find(analysis: &Analysis<'_>, tie: &Tie, code: &SiteCode) -> Vec<Obstacle> {
    let switching = Switching::of(analysis);
    if switching.is_empty() {
        return Vec::new();
    }
    let search = Search::run(analysis, &switching);
    let functions = code.functions.iter();
    let sites = functions.flat_map(|f| f.sites.iter().map(move |site| (f, site)));
    let searched = sites.filter(|(_, site)| {
        let function = analysis.flow.function_of(analysis.flow.block_of(site.inst));
        switching.has(function.0)
    });
    let found = searched.filter(|(f, site)| {
        let assembler = &code.assemblers[usize::from(site.section)];
        !search.own_before(site.inst).intersects(RSP) && needs_stack(assembler, f, site)
    });
    let obstacle = |(_, site): (_, &SiteSequence)| Obstacle {
        at: tie.near(site.inst).unwrap_or(StatementIdx(0)),
        code: RefusalCode::StackPointer,
        reason: "rsp was set to another stack before, and what is below it there may be in use: \
                 load it before, or leave this file out"
            .to_owned(),
    };
    found.map(obstacle).collect()
}

const RSP: LocSet = LocSet::reg(Reg::RSP);

/// Whether a sequence writes below `rsp`, its out-of-line part included, which calls.
fn needs_stack(assembler: &Assembler, function: &FunctionCode, site: &SiteSequence) -> bool {
    function.parts.iter().any(|part| part.inst == site.inst)
        || assembler.pieces(site.from, site.to).any(|piece| {
            let Piece::Code(at, len) = piece else {
                return false;
            };
            let bytes = &assembler.bytes_from(at)[..len as usize];
            let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
            decoder
                .iter()
                .any(|iced| iced.is_stack_instruction() || iced.memory_base() == Register::RSP)
        })
}

/// A word of a frame: the function, the register that reaches it, the distance.
type Slot = (u32, Register, u64);

/// What leads to the own stack at a place.
#[derive(Clone, PartialEq, Eq)]
struct Own {
    registers: LocSet,
    spilled: Spilled,
}

impl Own {
    fn at_entry() -> Own {
        Own {
            registers: AT_ENTRY,
            spilled: Spilled::default(),
        }
    }

    fn joined(&self, other: &Own) -> Own {
        Own {
            registers: self.registers.intersect(other.registers),
            spilled: self.spilled.joined(&other.spilled),
        }
    }
}

/// What leads to the own stack, before each block.
struct Search<'s> {
    analysis: &'s Analysis<'s>,
    /// The blocks that are searched.
    blocks: Vec<u32>,
    before: HashMap<u32, Own>,
    words: Words,
    kept: Kept<'s>,
}

/// What is known of words of frames.
struct Words {
    /// Those that a register is stored to.
    stored: HashSet<Slot>,
    /// Those of them that a register was stored to that leads elsewhere.
    others: HashSet<Slot>,
    /// The functions that push `rsp`, or a copy of it: that word is known by no distance.
    pushing: HashSet<u32>,
}

impl Words {
    fn of(analysis: &Analysis<'_>, switching: &Switching) -> Words {
        let mut words = Words {
            stored: HashSet::default(),
            others: HashSet::default(),
            pushing: HashSet::default(),
        };
        for function in switching.functions() {
            words.collect(analysis, function);
        }
        words
    }

    /// Those of a function.
    fn collect(&mut self, analysis: &Analysis<'_>, function: u32) {
        let mut copies = LocSet::reg(Reg::RSP);
        let insts = analysis.lifted.functions[function as usize].insts.clone();
        for i in insts {
            let iced = &analysis.lifted.inst(InstIdx(i)).iced;
            if stored(iced).is_some() {
                self.stored.extend(slot(function, iced));
            }
            if copies_stack_pointer(iced) {
                copies = gpr(iced.op0_register()).map_or(copies, |r| copies.union(LocSet::reg(r)));
            }
            let pushed = iced.op0_register();
            if iced.mnemonic() == Mnemonic::Push && pushed.is_gpr64() && has(copies, pushed) {
                self.pushing.insert(function);
            }
        }
    }

    /// Whether a word may be `rsp` that was kept.
    fn lead(&self, word: &Slot) -> bool {
        let known = self.stored.contains(word) || self.pushing.contains(&word.0);
        known && !self.others.contains(word)
    }
}

/// Whether it makes a copy of `rsp` that is no frame pointer, which most functions push.
fn copies_stack_pointer(iced: &Instruction) -> bool {
    let copy = match iced.mnemonic() {
        Mnemonic::Mov => iced.op1_register() == Register::RSP,
        Mnemonic::Lea => iced.memory_base() == Register::RSP,
        _ => false,
    };
    copy && iced.op0_register().is_gpr64() && iced.op0_register() != Register::RBP
}

impl<'s> Search<'s> {
    fn run(analysis: &'s Analysis<'s>, switching: &Switching) -> Search<'s> {
        let blocks = 0..analysis.flow.blocks().len() as u32;
        let function = |block: &u32| analysis.flow.function_of(BlockId(*block)).0;
        let mut search = Search {
            analysis,
            blocks: blocks.filter(|b| switching.has(function(b))).collect(),
            before: HashMap::default(),
            words: Words::of(analysis, switching),
            kept: Kept::of(analysis),
        };
        // Fewer registers lead there when more words do not.
        loop {
            let others = search.words.others.len();
            search.spread();
            if search.words.others.len() == others {
                return search;
            }
        }
    }

    fn spread(&mut self) {
        let blocks = self.blocks.clone();
        let entries = blocks.iter().copied().filter(|b| self.is_entry(*b));
        let mut work: Vec<u32> = entries.collect();
        work.extend(self.before.keys());
        for entry in &work {
            self.before.entry(*entry).or_insert_with(Own::at_entry);
        }
        // What no known path reaches is entered in a way of its own.
        let mut rest = blocks.into_iter();
        loop {
            while let Some(block) = work.pop() {
                self.block(block, &mut work);
            }
            let Some(block) = rest.find(|b| !self.before.contains_key(b) && !self.is_padding(*b))
            else {
                return;
            };
            self.before.insert(block, Own::at_entry());
            work.push(block);
        }
    }

    /// Whether it is what fills alignments: it stands before loops, and nobody runs it.
    fn is_padding(&self, block: u32) -> bool {
        let mut insts = self.analysis.flow.blocks()[block as usize].clone();
        insts.all(|i| is_filler(&self.analysis.lifted.insts[i as usize].iced))
    }

    fn is_entry(&self, block: u32) -> bool {
        let first = self.analysis.flow.begin(BlockId(block));
        first.is_some_and(|first| self.analysis.lifted.is_entry(first))
    }

    /// Goes through a block, and on to those behind it. An entry is begun anew.
    fn block(&mut self, block: u32, work: &mut Vec<u32>) {
        let flow = &self.analysis.flow;
        let mut path = Path::of(self.before[&block].clone());
        for i in flow.instructions(BlockId(block)) {
            self.pass(i, &mut path);
        }
        let own = path.own;
        for BlockId(to) in flow.continuations(BlockId(block)).iter().copied() {
            let known = self.before.get(&to);
            let joined = known.map_or_else(|| own.clone(), |known| known.joined(&own));
            if !self.is_entry(to) && known != Some(&joined) {
                self.before.insert(to, joined);
                work.push(to);
            }
        }
    }

    fn own_before(&self, inst: InstIdx) -> LocSet {
        let flow = &self.analysis.flow;
        let block = flow.block_of(inst).0;
        let first = flow.blocks()[block as usize].start;
        let before = self.before.get(&block).cloned();
        let mut path = Path::of(before.unwrap_or_else(Own::at_entry));
        for i in first..inst.0 {
            self.step(InstIdx(i), &mut path);
        }
        path.own.registers
    }

    /// Goes through an instruction.
    fn pass(&mut self, i: u32, path: &mut Path) {
        let function = self.analysis.lifted.function_of(InstIdx(i)).0;
        let iced = &self.analysis.lifted.insts[i as usize].iced;
        if let Some(stored) = stored(iced)
            && !has(path.own.registers, stored)
        {
            self.words.others.extend(slot(function, iced));
        }
        self.step(InstIdx(i), path);
    }

    /// The same, with what is known of frames.
    fn step(&self, i: InstIdx, path: &mut Path) {
        let iced = &self.analysis.lifted.inst(i).iced;
        let survey = &self.analysis.surveys[i.0 as usize];
        let before = path.own.registers;
        let frame = Frame {
            function: self.analysis.lifted.function_of(i).0,
            words: &self.words,
            has_copy: path.own.spilled.has_operand(iced),
        };
        frame.pass(path, iced, survey);
        path.own.spilled.pass(iced, survey, before);
        if iced.mnemonic() == Mnemonic::Call {
            let kept = before.intersect(self.kept.over(i));
            path.own.registers = path.own.registers.union(kept);
        }
    }
}

/// Through a block.
struct Path {
    /// What leads to the own stack.
    own: Own,
    /// Whether what the block pushed does, the last one last.
    pushed: Vec<bool>,
}

impl Path {
    fn of(own: Own) -> Path {
        Path {
            own,
            pushed: Vec::new(),
        }
    }
}

/// By how many words an instruction moves `rsp` up, if by a few.
fn words_up(iced: &Instruction) -> Option<i64> {
    const FEW: i64 = 4096;
    let number = || is_number(iced).then(|| iced.immediate(1) as i64);
    let bytes = match iced.mnemonic() {
        Mnemonic::Add => number()?,
        Mnemonic::Sub => number()?.checked_neg()?,
        Mnemonic::Lea => {
            let alone =
                iced.memory_base() == Register::RSP && iced.memory_index() == Register::None;
            alone.then(|| iced.memory_displacement64() as i64)?
        }
        _ => return None,
    };
    (bytes % 8 == 0 && bytes.abs() <= FEW).then_some(bytes / 8)
}

fn is_number(iced: &Instruction) -> bool {
    matches!(
        iced.op1_kind(),
        OpKind::Immediate8to64 | OpKind::Immediate32to64
    )
}

/// The register that an instruction stores whole.
pub(super) fn stored(iced: &Instruction) -> Option<Register> {
    let stores = matches!(iced.mnemonic(), Mnemonic::Mov | Mnemonic::Xchg)
        && iced.op0_kind() == OpKind::Memory
        && iced.op1_register().is_gpr64();
    stores.then(|| iced.op1_register())
}

/// The word of the frame that an operand is.
fn slot(function: u32, iced: &Instruction) -> Option<Slot> {
    let base = iced.memory_base();
    is_frames(base).then(|| (function, base, iced.memory_displacement64()))
}

/// Whether compilers reach words of the frame by a register.
pub(super) fn is_frames(base: Register) -> bool {
    // clang's base pointer is `rbx`.
    matches!(base, Register::RSP | Register::RBP | Register::RBX)
}

/// Which of the words that a block pushed an instruction stores to.
fn pushed_word(iced: &Instruction, path: &Path) -> Option<usize> {
    let above = iced.memory_displacement64() / 8;
    let plain = iced.memory_base() == Register::RSP && iced.memory_index() == Register::None;
    let word = usize::try_from(above).ok().filter(|_| plain)?;
    path.pushed.len().checked_sub(1)?.checked_sub(word)
}

/// The register that a word is loaded to which the block pushed, and whether it leads to the own stack.
fn loaded_push(iced: &Instruction, path: &Path) -> Option<(Reg, bool)> {
    let loads = iced.mnemonic() == Mnemonic::Mov
        && iced.op1_kind() == OpKind::Memory
        && iced.op0_register().is_gpr64();
    let word = pushed_word(iced, path).filter(|_| loads)?;
    Some((gpr(iced.op0_register())?, path.pushed[word]))
}

/// Whether a register is one of them.
pub(super) fn has(own: LocSet, register: Register) -> bool {
    gpr(register).is_some_and(|r| own.intersects(LocSet::reg(r)))
}

/// What is known of a function's frame.
struct Frame<'f> {
    function: u32,
    words: &'f Words,
    /// Whether the operand of the instruction is a word that has a copy of `rsp` on every path.
    has_copy: bool,
}

impl Frame<'_> {
    fn pass(&self, path: &mut Path, iced: &Instruction, survey: &Survey) {
        let before = path.own.registers;
        path.own.registers = self.after(before, iced, survey);
        if let Some((register, leads)) = loaded_push(iced, path) {
            path.own.registers = given(path.own.registers, register, leads);
        }
        match iced.mnemonic() {
            Mnemonic::Push => path.pushed.push(self.operand(before, iced, 0)),
            Mnemonic::Pushfq => path.pushed.push(false),
            Mnemonic::Popfq => _ = path.pushed.pop(),
            Mnemonic::Pop => {
                let known = path.pushed.pop().zip(gpr(iced.op0_register()));
                if let Some((leads, register)) = known {
                    path.own.registers = given(path.own.registers, register, leads);
                }
            }
            Mnemonic::Call => {}
            _ if survey.writes(Reg::RSP) => {
                let words = path.pushed.len() as i64 - words_up(iced).unwrap_or(i64::MAX / 2);
                // New ones hold nothing yet. If it is not known where it went, a word may be another one.
                path.pushed.resize(words.max(0) as usize, true);
            }
            _ => {
                if let (Some(stored), Some(word)) = (stored(iced), pushed_word(iced, path)) {
                    path.pushed[word] = has(before, stored);
                }
            }
        }
    }

    fn after(&self, own: LocSet, iced: &Instruction, survey: &Survey) -> LocSet {
        match iced.mnemonic() {
            // The callee's frames are there.
            Mnemonic::Call => return own.intersect(effects::callee_saved()).union(RSP),
            Mnemonic::Leave => {
                let pointer = has(own, Register::RBP);
                return given(given(own, Reg::RSP, pointer), Reg::RBP, pointer);
            }
            Mnemonic::Enter => return given(own, Reg::RBP, has(own, Register::RSP)),
            _ => {}
        }
        let implied = iced.is_stack_instruction();
        let written = Reg::all().filter(|r| survey.writes(*r));
        written.fold(own, |after, register| {
            let value = match gpr(iced.op0_register()) == Some(register) {
                true => self.result(own, iced),
                false if register == Reg::RSP && implied => has(own, Register::RSP),
                // `xchg %rax,%rsp` writes both.
                false => {
                    iced.mnemonic() == Mnemonic::Xchg
                        && iced.op1_register().is_gpr64()
                        && self.operand(own, iced, 0)
                }
            };
            given(after, register, value)
        })
    }

    /// Whether the first operand of an instruction leads to the own stack behind it.
    fn result(&self, own: LocSet, iced: &Instruction) -> bool {
        match iced.op0_register().size() {
            // `movb $0, %spl` aligns the stack.
            1 | 2 => return has(own, iced.op0_register()),
            4 => return false,
            _ => {}
        }
        let (first, second) = (|| self.operand(own, iced, 0), || self.operand(own, iced, 1));
        match iced.mnemonic() {
            Mnemonic::Mov | Mnemonic::Xchg => second(),
            Mnemonic::Lea => has(own, iced.memory_base()) || has(own, iced.memory_index()),
            Mnemonic::Add | Mnemonic::And => first() || second(),
            Mnemonic::Sub | Mnemonic::Or | Mnemonic::Inc | Mnemonic::Dec => first(),
            Mnemonic::Pop => {
                let word = (self.function, Register::RSP, 0);
                let stored =
                    iced.op0_register() == Register::RSP && self.words.others.contains(&word);
                has(own, Register::RSP) && !stored
            }
            Mnemonic::Push => has(own, Register::RSP),
            // `cmov`
            _ => iced.condition_code() != ConditionCode::None && first() && second(),
        }
    }

    /// Whether an operand does: a word of the frame may be `rsp` that was kept.
    fn operand(&self, own: LocSet, iced: &Instruction, n: u32) -> bool {
        match iced.op_kind(n) {
            OpKind::Register => has(own, iced.op_register(n)),
            OpKind::Memory => {
                let word = slot(self.function, iced).filter(|_| has(own, iced.memory_base()));
                word.is_some_and(|word| self.has_copy || self.words.lead(&word))
            }
            _ => false,
        }
    }
}

fn given(own: LocSet, register: Reg, leads: bool) -> LocSet {
    match leads {
        true => own.union(LocSet::reg(register)),
        false => own.minus(LocSet::reg(register)),
    }
}
