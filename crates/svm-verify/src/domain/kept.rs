//! Registers that a function keeps for its caller (psABI 3.2.1; target `linux`): which hold what they
//! held when it was entered, and where the frame has what others held.
//!
//! As with [`super::Saved`], only stores through the frame are followed, and no word is below
//! `rsp`.

use super::Form;
use super::saved::is_apart;
use crate::insn::{Gpr, GprSet};

/// `rbx`, `rbp`, `r12` to `r15`: those that callees keep.
pub const CALLEES: GprSet = GprSet(1 << 3 | 1 << 5 | 0xf << 12);
const COUNT: usize = 6;

/// What a function has of its caller's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The function's first instruction; `None` if it may be one of several.
    pub function: Option<u32>,
    /// Registers that hold what they held at the entry.
    held: GprSet,
    /// The words that have what the others held, in the order of [`CALLEES`].
    words: [Option<Word>; COUNT],
}

/// A place in the frame, as [`Form::Stack`] or [`Form::Aligned`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// [`Form::Stack`].
    Stack(i32),
    /// [`Form::Aligned`].
    Aligned(i32),
}

impl Word {
    fn form(self) -> Form {
        match self {
            Word::Stack(at) => Form::Stack(at),
            Word::Aligned(at) => Form::Aligned(at),
        }
    }
}

impl Kept {
    /// Nothing, as where callees are not trusted to keep registers.
    pub const NOTHING: Kept = Kept {
        function: None,
        held: GprSet::NONE,
        words: [None; COUNT],
    };

    /// At the entry of the function that begins with this instruction.
    pub fn entry(function: u32) -> Kept {
        Kept {
            function: Some(function),
            held: CALLEES,
            ..Kept::NOTHING
        }
    }

    /// Registers of [`CALLEES`] that may hold something else than at the entry.
    pub fn lost(&self) -> GprSet {
        GprSet(CALLEES.0 & !self.held.0)
    }

    /// Registers are written.
    pub(super) fn written(&mut self, written: GprSet) {
        self.held.0 &= !written.0;
    }

    /// Register `r` is stored in a word of the frame, after the word was overwritten.
    pub(super) fn save(&mut self, r: Gpr, at: Form) {
        let word = match at {
            Form::Stack(at) => Word::Stack(at),
            Form::Aligned(at) => Word::Aligned(at),
            _ => return,
        };
        if let (true, Some(n)) = (self.held.has(r), index(r)) {
            self.words[n].get_or_insert(word);
        }
    }

    /// Whether a word has what register `r` held at the entry.
    pub fn is_saved(&self, r: Gpr, at: Form) -> bool {
        let word = index(r).and_then(|n| self.words[n]);
        word.is_some_and(|word| word.form() == at)
    }

    /// Register `r` holds what it held at the entry again.
    pub fn restore(&mut self, r: Gpr) {
        self.held = self.held.or(r.set());
    }

    /// Forgets the words at other places than these.
    pub(super) fn keep(&mut self, good: impl Fn(Form) -> bool) {
        for word in &mut self.words {
            *word = word.filter(|word| good(word.form()));
        }
    }

    /// `size` bytes are written at a place. The aligned part begins at or below `realigned`,
    /// where `rsp` was.
    pub(super) fn overwrite(&mut self, at: Form, size: u16, realigned: Option<i32>) {
        self.keep(|word| is_apart(word, at, size, realigned));
    }

    /// Forgets the words in the aligned part of the frame.
    pub(super) fn forget_aligned(&mut self) {
        self.keep(|word| !matches!(word, Form::Aligned(_)));
    }

    /// Where the words are.
    pub(super) fn places(&self) -> impl Iterator<Item = Form> {
        self.words.into_iter().flatten().map(Word::form)
    }

    /// Keeps what `other` has as well. True if anything was dropped.
    pub(super) fn join(&mut self, other: &Kept) -> bool {
        let mut dropped = self.held.0 & !other.held.0 != 0;
        self.held.0 &= other.held.0;
        if self.function.is_some() && self.function != other.function {
            self.function = None;
            dropped = true;
        }
        for (word, theirs) in self.words.iter_mut().zip(&other.words) {
            if word.is_some() && *word != *theirs {
                *word = None;
                dropped = true;
            }
        }
        dropped
    }
}

/// The number of a register among [`CALLEES`].
fn index(r: Gpr) -> Option<usize> {
    let below = CALLEES.0 & (r.set().0 - 1);
    CALLEES.has(r).then_some(below.count_ones() as usize)
}
