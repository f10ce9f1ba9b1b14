//! Addresses of the frame that lie in the frame: frame pointers that a function
//! has put away (target `linux`).

use super::Form;

/// Words of the frame that hold an address of the frame: where, and which.
///
/// A compiler keeps its own frame pointers in such words and gives nobody their
/// address. So only stores through the frame are followed, and it is assumed, not
/// proved, that no other pointer leads to one (`ARCHITECTURE.md`, P4 of a module
/// for a stock kernel). For target `user` nothing is ever put here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved([(Form, Form); 4]);

impl Saved {
    /// None.
    pub const NONE: Saved = Saved([(Form::Any, Form::Any); 4]);

    /// What the word at a place holds.
    pub fn get(&self, at: Form) -> Form {
        let found = self.0.iter().find(|(place, _)| *place == at);
        found.map_or(Form::Any, |(_, form)| *form)
    }

    /// `size` bytes are written at a place, with `form` if that is a word.
    /// Places from the two origins may be the same: an alignment apart.
    pub fn write(&mut self, at: Form, size: u16, form: Form) {
        for word in &mut self.0 {
            let apart = match (word.0, at) {
                (Form::Stack(a), Form::Stack(b)) | (Form::Aligned(a), Form::Aligned(b)) => {
                    i64::from(a) >= i64::from(b) + i64::from(size)
                        || i64::from(b) >= i64::from(a) + 8
                }
                (Form::Any, _) => true,
                _ => false,
            };
            if !apart {
                *word = (Form::Any, Form::Any);
            }
        }
        let frame = matches!(form, Form::Stack(_) | Form::Aligned(_)) && size == 8;
        let free = self.0.iter_mut().find(|(place, _)| *place == Form::Any);
        if let (true, Some(word)) = (frame, free) {
            *word = (at, form);
        }
    }

    /// `rsp` was moved there: what is below is forgotten.
    pub(super) fn popped(&mut self, rsp: Form) {
        for word in &mut self.0 {
            let below = match (word.0, rsp) {
                (Form::Stack(at), Form::Stack(rsp)) | (Form::Aligned(at), Form::Aligned(rsp)) => {
                    at < rsp
                }
                (Form::Aligned(_), Form::Stack(_)) => true,
                _ => false,
            };
            if below {
                *word = (Form::Any, Form::Any);
            }
        }
    }

    pub(super) fn join(&mut self, other: &Saved) -> bool {
        let mut changed = false;
        for word in &mut self.0 {
            if word.0 != Form::Any && other.get(word.0) != word.1 {
                *word = (Form::Any, Form::Any);
                changed = true;
            }
        }
        changed
    }
}
