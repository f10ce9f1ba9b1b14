//! Addresses of the frame that are stored in the frame: frame pointers that a function
//! has saved (target `linux`).

use super::Form;

/// Words of the frame that hold an address of the frame: where, and which.
///
/// A compiler keeps its own frame pointers in these words to set `rsp` from them. Only
/// stores through the frame are followed. It is assumed, not proved, that no other
/// pointer leads to such a word (`docs/proof/linux.md`, P4), so what is loaded from one
/// serves to set `rsp` and nothing else ([`Form::LoadedStack`]): a word may also be the
/// head of a list, which others write. For target `hypervisor` this is always empty.
///
/// None is below `rsp`: the kernel has no red zone, so memory there belongs to the next
/// push, call or interrupt. [`super::State`] ensures this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved([(Form, Form); 4]);

impl Saved {
    /// No words, as at a function's entry.
    pub const NONE: Saved = Saved([(Form::Any, Form::Any); 4]);

    /// What the word at a place holds.
    pub fn get(&self, at: Form) -> Form {
        let found = self.0.iter().find(|(place, _)| *place == at);
        found.map_or(Form::Any, |(_, form)| *form)
    }

    /// `size` bytes are written at a place, with `form` if that is a word. The aligned part
    /// begins at or below `realigned`, where `rsp` was.
    pub(super) fn write(&mut self, at: Form, size: u16, form: Form, realigned: Option<i32>) {
        self.keep(|word| is_apart(word, at, size, realigned));
        let form = form.trusted();
        let frame = form.in_frame() && size == 8;
        let free = self.0.iter_mut().find(|(place, _)| *place == Form::Any);
        if let (true, Some(word)) = (frame, free) {
            *word = (at, form);
        }
    }

    /// Forgets the words at other places than these. True if there were any.
    pub(super) fn keep(&mut self, good: impl Fn(Form) -> bool) -> bool {
        let mut dropped = false;
        for word in &mut self.0 {
            if word.0 != Form::Any && !good(word.0) {
                *word = (Form::Any, Form::Any);
                dropped = true;
            }
        }
        dropped
    }

    /// Forgets the facts about the aligned part of the frame.
    pub(super) fn forget_aligned(&mut self) {
        for word in &mut self.0 {
            if matches!(word.0, Form::Aligned(_)) || matches!(word.1, Form::Aligned(_)) {
                *word = (Form::Any, Form::Any);
            }
        }
    }

    /// Where the words are.
    pub(super) fn places(&self) -> impl Iterator<Item = Form> {
        let places = self.0.into_iter().map(|(place, _)| place);
        places.filter(|&place| place != Form::Any)
    }

    pub(super) fn join(&mut self, other: &Saved) -> bool {
        let mut dropped = false;
        for word in &mut self.0 {
            if word.0 != Form::Any && other.get(word.0) != word.1 {
                *word = (Form::Any, Form::Any);
                dropped = true;
            }
        }
        dropped
    }
}

/// Whether a word of the frame has none of the `size` bytes at a place. Of the aligned part is
/// known that it begins at or below `realigned`, where `rsp` was: not how far below.
pub(super) fn is_apart(word: Form, at: Form, size: u16, realigned: Option<i32>) -> bool {
    let size = i64::from(size);
    let ends_below = |a: i32, a_size: i64, b: i32| i64::from(a) + a_size <= i64::from(b);
    let aligned_ends_below = |aligned: i32, size: i64, stack: i32| {
        realigned.is_some_and(|from| ends_below(from, i64::from(aligned) + size, stack))
    };
    match (word, at) {
        (Form::Stack(word), Form::Stack(at)) | (Form::Aligned(word), Form::Aligned(at)) => {
            ends_below(word, 8, at) || ends_below(at, size, word)
        }
        (Form::Stack(word), Form::Aligned(at)) => aligned_ends_below(at, size, word),
        (Form::Aligned(word), Form::Stack(at)) => aligned_ends_below(word, 8, at),
        _ => false,
    }
}
