//! A text that is refused as it is, in plainer form: one instruction for each statement that makes
//! any ([`one_each`]), and the tables that stand among its code in a section of their own
//! ([`Proposal`]). The assembler is the judge of both.

use super::apart::Proposal;
use super::bytes::one_each;
use super::expand::same;
use super::moved::misread;
use super::statement::split;

/// The plainer text, whose lines are those of the original; `assemble` gives the object of a text.
/// `None` if there is none, if the assembler does not agree that it means the same, or if the text is
/// refused by what a line says: another form of the line might not say it.
pub fn plainer(text: &[u8], assemble: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    if !misread(text, &split(text)).is_empty() {
        return None;
    }
    let single = one_each(text).filter(|single| {
        let both = (assemble(text), assemble(single));
        matches!(both, (Some(one), Some(other)) if are_the_same(&one, &other))
    });
    let text = single.as_deref().unwrap_or(text);
    let apart = Proposal::find(text).and_then(|proposal| proposal.settle(assemble));
    apart.or(single)
}

fn are_the_same(one: &[u8], other: &[u8]) -> bool {
    let both = (elf_loader::read(one), elf_loader::read(other));
    matches!(both, (Ok(one), Ok(other)) if same(&one, &other))
}
