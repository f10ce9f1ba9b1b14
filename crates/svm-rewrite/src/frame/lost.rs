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

use foldhash::HashMap;
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use liveness::{LocSet, Reg};

use super::before::Join;
use super::contents::FramePlace;
use super::path::Path;
use crate::analyse::classify::WORD;
use crate::analyse::survey::{MemoryEffect, Survey};
use crate::lift::{Destination, Inst, InstIdx};
use crate::registers::gpr;

/// What callees keep (psABI 3.2.1), beside `rsp`.
const KEPT: [Reg; 6] = [Reg::RBX, Reg::RBP, Reg::R12, Reg::R13, Reg::R14, Reg::R15];

/// The registers that calls lose.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// By the first instruction of what is called; only those that lose some.
    by_entry: HashMap<u32, LocSet>,
    /// By calls that lead to a function whose address is taken, perhaps.
    by_pointer: LocSet,
}

impl Lost {
    /// What is called at an entry loses these; `is_taken`: its address is, perhaps.
    pub(super) fn add(&mut self, entry: InstIdx, registers: LocSet, is_taken: impl Fn() -> bool) {
        if registers.is_empty() {
            return;
        }
        self.by_entry.insert(entry.0, registers);
        if is_taken() {
            self.by_pointer = self.by_pointer.union(registers);
        }
    }

    /// Whether no function loses any.
    pub fn is_empty(&self) -> bool {
        self.by_entry.is_empty()
    }

    /// Those that a call loses.
    pub fn at_call(&self, inst: &Inst) -> LocSet {
        Called::by(inst).map_or(LocSet::empty(), |called| self.to(called))
    }

    /// Those that what is called loses.
    pub(super) fn to(&self, called: Called) -> LocSet {
        let found = match called {
            Called::Entry(entry) => self.by_entry.get(&entry.0).copied(),
            Called::Pointed => Some(self.by_pointer),
        };
        found.unwrap_or(LocSet::empty())
    }
}

/// What is called, or jumped to as if it were.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Called {
    /// What begins with this instruction.
    Entry(InstIdx),
    /// Any function whose address is taken, perhaps.
    Pointed,
}

impl Called {
    /// By a call; `None` if it is one that loses nothing.
    pub fn by(inst: &Inst) -> Option<Called> {
        match inst.target {
            Some(Destination::Inst(to)) => Some(Called::Entry(to)),
            Some(Destination::Import(_) | Destination::Behind(_)) | None => Some(Called::Pointed),
            Some(Destination::Hypercall(..)) => None,
        }
    }
}

/// All that a function has to keep.
pub(super) fn kept() -> LocSet {
    let all = KEPT.into_iter().map(LocSet::reg);
    all.fold(LocSet::empty(), LocSet::union)
}

/// Where a function has put what a register held at its entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Nowhere,
    /// In a word of the frame, at this place.
    Word(i32),
    /// In a register that is not used otherwise, as assembly does.
    In(Reg),
}

/// What is known at a place of the registers that the function has to keep.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    /// Those that hold what they held at entry.
    intact: LocSet,
    /// Where each is stored.
    stored: [Stored; KEPT.len()],
}

impl Join for Kept {
    fn join(self, other: Kept) -> Kept {
        let mut stored = self.stored;
        for (mine, theirs) in stored.iter_mut().zip(other.stored) {
            if *mine != theirs {
                *mine = Stored::Nowhere;
            }
        }
        Kept {
            intact: self.intact.intersect(other.intact),
            stored,
        }
    }
}

/// What an instruction does to words of the frame, as its operands tell before it.
#[derive(Clone, Copy)]
pub(super) struct Moves {
    /// The register that it loads, and where from.
    loaded: Option<(Reg, Stored)>,
    /// The word that it writes.
    written: Stored,
}

impl Moves {
    /// Operands count from what is known before it.
    pub fn of(inst: &Inst, survey: &Survey, before: &Path) -> Moves {
        let written = match survey.memory {
            MemoryEffect::Written => word(before.sure_place(&inst.iced)),
            MemoryEffect::Untouched | MemoryEffect::Read => Stored::Nowhere,
        };
        Moves {
            loaded: loaded(&inst.iced, before),
            written,
        }
    }
}

impl Kept {
    pub fn at_entry() -> Kept {
        Kept {
            intact: kept(),
            stored: [Stored::Nowhere; KEPT.len()],
        }
    }

    /// What the function has not kept, if it ends here.
    pub fn lost(&self) -> LocSet {
        kept().minus(self.intact)
    }

    /// Whether it may depend on an instruction that names or writes these registers, and that does
    /// nothing to the frame.
    pub fn concerns(&self, registers: LocSet) -> bool {
        let has = |stored: &Stored| match stored {
            Stored::In(r) => registers.intersects(LocSet::reg(*r)),
            Stored::Nowhere | Stored::Word(_) => false,
        };
        self.intact.intersects(registers) || self.stored.iter().any(has)
    }

    /// These are written by a handler of faults.
    pub fn overwrite(&mut self, written: LocSet) {
        self.intact = self.intact.minus(written);
    }

    /// Updates it over a call, which loses so much.
    pub fn called(&mut self, lost: LocSet) {
        self.intact = self.intact.minus(lost);
        self.forget(|stored| matches!(stored, Stored::In(_)));
    }

    /// Updates it over any other instruction. `after`: what is known of the stack behind it.
    pub fn pass(&mut self, inst: &Inst, survey: &Survey, moves: Moves, after: &Path) {
        let intact = self.intact;
        self.intact = intact.minus(survey.written());
        if let Some((register, from)) = moves.loaded {
            let is_back = |n: &usize| (KEPT[*n], self.stored[*n]) == (register, from);
            if (0..KEPT.len()).any(|n| is_back(&n)) {
                self.intact = self.intact.union(LocSet::reg(register));
            }
        }
        self.forget(|stored| matches!(stored, Stored::In(r) if survey.writes(r)));
        self.store(&inst.iced, intact, moves.written, after);
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
    fn store(&mut self, iced: &Instruction, intact: LocSet, written: Stored, after: &Path) {
        let to = match (iced.mnemonic(), written) {
            (Mnemonic::Push, _) => word(after.stack_pointer()),
            (_, Stored::Word(_)) => written,
            (Mnemonic::Mov, _) if iced.op1_kind() == OpKind::Register => {
                gpr(iced.op0_register()).map_or(Stored::Nowhere, Stored::In)
            }
            _ => return,
        };
        if let Stored::Word(at) = to {
            let size = match iced.mnemonic() {
                Mnemonic::Push => WORD,
                _ => iced.memory_size().size() as i64,
            };
            let at = i64::from(at);
            self.forget(|stored| match stored {
                Stored::Word(other) => {
                    let other = i64::from(other);
                    at < other + WORD && other < at + size
                }
                Stored::Nowhere | Stored::In(_) => false,
            });
        }
        let source = match iced.code() {
            Code::Push_r64 => iced.op0_register(),
            Code::Mov_rm64_r64 | Code::Mov_r64_rm64 if iced.op1_kind() == OpKind::Register => {
                iced.op1_register()
            }
            _ => return,
        };
        let source = gpr(source).filter(|r| intact.intersects(LocSet::reg(*r)));
        let Some(n) = source.and_then(|r| KEPT.iter().position(|kept| *kept == r)) else {
            return;
        };
        // What is below rsp was taken from the stack already.
        let rsp = after.stack_pointer();
        let is_there = match self.stored[n] {
            Stored::Nowhere => false,
            Stored::Word(at) => rsp.is_some_and(|FramePlace(rsp)| i64::from(at) >= rsp),
            Stored::In(_) => true,
        };
        if !is_there {
            self.stored[n] = to;
        }
    }
}

/// The word at a place, if frames are so large.
fn word(place: Option<FramePlace>) -> Stored {
    let at = place.and_then(|FramePlace(at)| i32::try_from(at).ok());
    at.map_or(Stored::Nowhere, Stored::Word)
}

/// The register that an instruction loads, and where from, if that is a known word of the frame or
/// a register.
fn loaded(iced: &Instruction, before: &Path) -> Option<(Reg, Stored)> {
    let (to, from) = match iced.code() {
        Code::Pop_r64 => (iced.op0_register(), word(before.stack_pointer())),
        Code::Leaveq => (Register::RBP, word(before.pointer(Register::RBP))),
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64
            if [iced.op0_kind(), iced.op1_kind()] == [OpKind::Register; 2] =>
        {
            (iced.op0_register(), Stored::In(gpr(iced.op1_register())?))
        }
        Code::Mov_r64_rm64 => (iced.op0_register(), word(before.sure_place(iced))),
        _ => return None,
    };
    Some((gpr(to)?, from)).filter(|(_, from)| *from != Stored::Nowhere)
}
