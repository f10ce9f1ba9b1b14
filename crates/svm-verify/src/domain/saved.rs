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

    /// `size` bytes are written at a place, with `form` if that is a word. Places
    /// relative to the two origins may be the same: they differ by the alignment.
    pub(super) fn write(&mut self, at: Form, size: u16, form: Form) {
        self.keep(|place| match (place, at) {
            (Form::Stack(a), Form::Stack(b)) | (Form::Aligned(a), Form::Aligned(b)) => {
                i64::from(a) >= i64::from(b) + i64::from(size) || i64::from(b) >= i64::from(a) + 8
            }
            _ => false,
        });
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
