//! Registers that functions of the object do not keep for those that call them, against the
//! psABI (3.2.1).
//!
//! ```text
//! f:      push  %rbp
//!         mov   %rsp, %rbp
//!         call  g
//!         mov   8(%rbp), %rax           # not a word of the frame
//!         ...
//! g:      mov   (%rdi), %rbp            # returns a pointer in it
//!         ret
//! ```
//!
//! Compilers make no such functions, assembly does. A register is kept if on all paths to each
//! end of the function it has not been written, or has been loaded from where the function had
//! stored it. Of what is called, the same is asked. An indirect call may lead to any function
//! whose address is taken, and so may a call of another object's function.

use std::ops::Range;

use foldhash::HashMap;
use iced_x86::{Code, Mnemonic, OpKind, Register};
use liveness::{BlockId, LocSet, Reg};

use super::before::{Before, Join};
use super::contents::FramePlace;
use super::facts::{Facts, Input, is_left_out};
use super::frames::{Frames, Leading, Leads};
use super::variants::Variant;
use crate::analyse::Analysis;
use crate::analyse::class::Class;
use crate::analyse::classify::WORD;
use crate::analyse::codemap::Codemap;
use crate::analyse::flow::Exit;
use crate::analyse::routines;
use crate::analyse::survey::{FOLLOWED, MemoryEffect};
use crate::lift::{Destination, FuncIdx, Inst, InstIdx};
use crate::registers::gpr;

/// What callees keep (psABI 3.2.1), beside `rsp`.
const KEPT: [Reg; 6] = [Reg::RBX, Reg::RBP, Reg::R12, Reg::R13, Reg::R14, Reg::R15];

/// Most rounds: each follows losses one call further up. After that, all is lost everywhere.
const ROUNDS: usize = 64;

/// The registers that calls lose.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// By the first instruction of what is called; only those that lose some.
    by_entry: HashMap<u32, LocSet>,
    /// By calls that lead to a function whose address is taken, perhaps.
    by_pointer: LocSet,
}

impl Lost {
    /// Finds them.
    pub fn find(
        analysis: &Analysis<'_>,
        classes: &[Class],
        codemap: &Codemap,
        frames: &Frames,
    ) -> Lost {
        let finder = Finder {
            analysis,
            classes,
            codemap,
            frames,
        };
        let mut lost = Lost::default();
        for _ in 0..ROUNDS {
            let found = finder.lost(&finder.by_frame(&lost));
            if found == lost {
                return lost;
            }
            lost = found;
        }
        finder.lost(&vec![kept(); analysis.flow.blocks().len()])
    }

    /// Whether no function loses any.
    pub fn is_empty(&self) -> bool {
        self.by_entry.is_empty()
    }

    /// Those that a call loses.
    pub fn at_call(&self, inst: &Inst) -> LocSet {
        match inst.target {
            Some(Destination::Inst(to)) => self.to(to),
            Some(Destination::Import(_)) | None => self.by_pointer,
            Some(Destination::Hypercall(..)) => LocSet::empty(),
        }
    }

    fn to(&self, entry: InstIdx) -> LocSet {
        let found = self.by_entry.get(&entry.0);
        found.copied().unwrap_or(LocSet::empty())
    }
}

fn kept() -> LocSet {
    let all = KEPT.into_iter().map(LocSet::reg);
    all.fold(LocSet::empty(), LocSet::union)
}

/// Where a function has put what a register held at its entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Nowhere,
    /// In a word of the frame, at this place.
    Word(i64),
    /// In a register that is not used otherwise, as assembly does.
    In(Reg),
}

/// What is known at a place of the registers that the function has to keep.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    facts: Facts,
    /// Those that hold what they held at entry.
    intact: LocSet,
    /// Where each is stored.
    stored: [Stored; KEPT.len()],
}

impl Join for State {
    fn join(self, other: State) -> State {
        let mut stored = self.stored;
        for (mine, theirs) in stored.iter_mut().zip(other.stored) {
            if *mine != theirs {
                *mine = Stored::Nowhere;
            }
        }
        State {
            facts: self.facts.join(other.facts),
            intact: self.intact.minus(kept().minus(other.intact)),
            stored,
        }
    }
}

impl State {
    /// What the function has not kept, if it ends here.
    fn lost(&self) -> LocSet {
        kept().minus(self.intact)
    }

    fn at_entry() -> State {
        State {
            facts: Facts::at_entry(FOLLOWED),
            intact: kept(),
            stored: [Stored::Nowhere; KEPT.len()],
        }
    }

    /// Updates it over the instructions of a block.
    fn pass_all(&mut self, input: Input<'_>, insts: Range<u32>) {
        let last = InstIdx(insts.end - 1);
        for i in (insts.start..last.0).filter(|i| input.changes_facts[*i as usize]) {
            self.pass(input, InstIdx(i));
        }
        // Where control leaves it before, its effect is missing, and a handler has written.
        let skipped = input.flow.may_be_skipped(last).then_some(*self);
        if input.changes_facts[last.0 as usize] {
            self.pass(input, last);
        }
        if let Some(before_last) = skipped {
            *self = self.join(before_last);
            self.intact = self.intact.minus(input.flow.written_by_handler(last));
        }
    }

    /// Updates it over an instruction.
    fn pass(&mut self, input: Input<'_>, i: InstIdx) {
        let (inst, survey) = (input.lifted.inst(i), &input.surveys[i.0 as usize]);
        if routines::is_call(&inst.iced) {
            self.facts.pass(input, i, Variant::FIRST);
            self.intact = self.intact.minus(input.lost.at_call(inst));
            self.forget(|stored| matches!(stored, Stored::In(_)));
            return;
        }
        // Operands count from what is known before it: the facts are large to keep a copy.
        let loaded = loaded(inst, &self.facts);
        let writes = survey.memory == MemoryEffect::Written;
        let written = word_of(inst, &self.facts).filter(|_| writes);
        self.facts.pass(input, i, Variant::FIRST);
        let intact = self.intact;
        let is_back = |n: usize| loaded.is_some_and(|l| l == (KEPT[n], self.stored[n]));
        let back = (0..KEPT.len()).filter(|n| is_back(*n));
        let back = back.fold(LocSet::empty(), |set, n| set.union(LocSet::reg(KEPT[n])));
        self.intact = intact.minus(survey.written).union(back);
        self.forget(|stored| matches!(stored, Stored::In(r) if survey.writes(r)));
        self.store(inst, intact, written);
    }

    fn forget(&mut self, is_gone: impl Fn(Stored) -> bool) {
        for stored in &mut self.stored {
            if is_gone(*stored) {
                *stored = Stored::Nowhere;
            }
        }
    }

    /// A store of a register that was intact, or over one that was stored: to the word of the
    /// frame that is `written`, if its operand is one.
    fn store(&mut self, inst: &Inst, intact: LocSet, written: Option<FramePlace>) {
        let iced = &inst.iced;
        let to = match (iced.mnemonic(), written) {
            (Mnemonic::Push, _) => word(self.facts.stack_pointer()),
            (_, Some(_)) => word(written),
            (Mnemonic::Mov, None) if iced.op1_kind() == OpKind::Register => {
                gpr(iced.op0_register()).map_or(Stored::Nowhere, Stored::In)
            }
            _ => return,
        };
        if let Stored::Word(at) = to {
            let size = match iced.mnemonic() {
                Mnemonic::Push => WORD,
                _ => iced.memory_size().size() as i64,
            };
            self.forget(|stored| {
                matches!(stored, Stored::Word(other) if at < other + WORD && other < at + size)
            });
        }
        let source = match iced.code() {
            Code::Push_r64 => iced.op0_register(),
            Code::Mov_rm64_r64 | Code::Mov_r64_rm64 if iced.op1_kind() == OpKind::Register => {
                iced.op1_register()
            }
            _ => return,
        };
        // What is below rsp was taken from the stack already.
        let rsp = self.facts.stack_pointer();
        let is_there = |stored: Stored| match stored {
            Stored::Nowhere => false,
            Stored::Word(at) => rsp.is_some_and(|FramePlace(rsp)| at >= rsp),
            Stored::In(_) => true,
        };
        for (register, stored) in KEPT.into_iter().zip(&mut self.stored) {
            let is_it = gpr(source) == Some(register) && intact.intersects(LocSet::reg(register));
            if is_it && !is_there(*stored) {
                *stored = to;
            }
        }
    }
}

fn word(place: Option<FramePlace>) -> Stored {
    place.map_or(Stored::Nowhere, |FramePlace(at)| Stored::Word(at))
}

/// The place of an operand in the frame. What a pointer leads to that was loaded is not sure to
/// be there.
fn word_of(inst: &Inst, before: &Facts) -> Option<FramePlace> {
    let place = before.place(&inst.iced);
    place.filter(|_| !before.is_loaded(inst.iced.memory_base()))
}

/// The register that an instruction loads, and where from, if that is a known word of the frame or
/// a register.
fn loaded(inst: &Inst, before: &Facts) -> Option<(Reg, Stored)> {
    let iced = &inst.iced;
    let (to, from) = match iced.code() {
        Code::Pop_r64 => (iced.op0_register(), word(before.stack_pointer())),
        Code::Leaveq => (Register::RBP, word(before.pointer(Register::RBP))),
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64
            if [iced.op0_kind(), iced.op1_kind()] == [OpKind::Register; 2] =>
        {
            (iced.op0_register(), Stored::In(gpr(iced.op1_register())?))
        }
        Code::Mov_r64_rm64 => (iced.op0_register(), word(word_of(inst, before))),
        _ => return None,
    };
    Some((gpr(to)?, from)).filter(|(_, from)| *from != Stored::Nowhere)
}

/// One search for what functions lose.
struct Finder<'f> {
    analysis: &'f Analysis<'f>,
    classes: &'f [Class],
    codemap: &'f Codemap,
    frames: &'f Frames,
}

impl Finder<'_> {
    /// What invocations with each frame lose, if calls lose so much.
    fn by_frame(&self, lost: &Lost) -> Vec<LocSet> {
        let flow = &self.analysis.flow;
        let input = self.input(lost);
        let entries = self.entries().map(|(_, i)| flow.block_of(i));
        let mut entries: Vec<BlockId> = entries.filter(|b| !is_left_out(input, *b)).collect();
        entries.sort_by_key(|block| self.frames.of(*block));
        let mut found = vec![LocSet::empty(); flow.blocks().len()];
        let mut before = Before::new(flow.blocks().len());
        for entries in entries.chunk_by(|a, b| self.frames.of(*a) == self.frames.of(*b)) {
            found[self.frames.of(entries[0])] = self.one_frame(input, entries, &mut before);
            // No other frame has these blocks.
            before.forget();
        }
        found
    }

    /// What invocations lose that begin with these blocks and have one frame.
    fn one_frame(
        &self,
        input: Input<'_>,
        entries: &[BlockId],
        before: &mut Before<State>,
    ) -> LocSet {
        let Input {
            lifted, flow, lost, ..
        } = input;
        let mut found = LocSet::empty();
        let mut work = entries.to_vec();
        for entry in entries {
            before.arrive(*entry, &State::at_entry());
        }
        while let Some(block) = work.pop() {
            let Some(mut state) = before.get(block).copied() else {
                continue;
            };
            let insts = flow.blocks()[block.0 as usize].clone();
            let last = InstIdx(insts.end - 1);
            state.pass_all(input, insts);
            found = found.union(self.lost_at_end(last, &state, lost));
            let leading = Leading {
                lifted,
                flow,
                function: lifted.function_of(last),
                from: block,
            };
            for &next in flow.continuations(block) {
                match leading.to(next) {
                    Leads::Away => {
                        let entry = InstIdx(flow.blocks()[next.0 as usize].start);
                        found = found.union(state.lost()).union(lost.to(entry));
                    }
                    Leads::Inside if !is_left_out(input, next) && before.arrive(next, &state) => {
                        work.push(next);
                    }
                    Leads::Inside | Leads::Nowhere => {}
                }
            }
        }
        found
    }

    fn input<'i>(&'i self, lost: &'i Lost) -> Input<'i> {
        Input::of(self.analysis, self.classes, lost)
    }

    /// What is lost where a function ends with an instruction.
    fn lost_at_end(&self, last: InstIdx, after: &State, lost: &Lost) -> LocSet {
        match self.analysis.exits[last.0 as usize] {
            Exit::Return => after.lost(),
            Exit::TailOut => after.lost().union(lost.by_pointer),
            _ => LocSet::empty(),
        }
    }

    /// What calls lose, if invocations lose so much.
    fn lost(&self, by_frame: &[LocSet]) -> Lost {
        let Analysis { lifted, flow, .. } = self.analysis;
        let mut lost = Lost::default();
        for (f, entry) in self.entries() {
            let registers = by_frame[self.frames.of(flow.block_of(entry))];
            if registers.is_empty() {
                continue;
            }
            lost.by_entry.insert(entry.0, registers);
            let function = lifted.function(f);
            let begins = function.insts.start == entry.0;
            if begins && self.codemap.contains(&(function.section, function.start)) {
                lost.by_pointer = lost.by_pointer.union(registers);
            }
        }
        lost
    }

    /// Where frames begin, with the function.
    fn entries(&self) -> impl Iterator<Item = (FuncIdx, InstIdx)> {
        let lifted = self.analysis.lifted;
        let functions = (0..lifted.functions.len() as u32).map(FuncIdx);
        functions.flat_map(move |f| lifted.entries_of(f).map(move |i| (f, i)))
    }
}
