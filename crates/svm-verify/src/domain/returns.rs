//! What is known of the address that a function returns to (target `hypervisor`).

/// The word at `rsp` at entry, and its shadow `twin_abi::stack::SHADOW` bytes below.
///
/// *Who can change which.* The word: whoever writes by pointer, since translations
/// lead to the own stack; so a translated write and any call end [`Returns::intact`].
/// The shadow: only an instruction that names it, since no translation covers it; and
/// a function names no other than its own (`crate::rules`). A callee's word lies
/// below the caller's `rsp`, hence below the caller's word, and its shadow likewise
/// below the caller's. So a call leaves [`Returns::kept`] as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returns {
    /// The word is the address that the caller's `call` pushed.
    pub intact: bool,
    /// The shadow is.
    pub kept: bool,
}

impl Returns {
    /// Where a function begins: the `call` has just pushed the word, or whoever jumped
    /// there has proved it.
    pub const ENTRY: Returns = Returns {
        intact: true,
        kept: false,
    };

    /// Keeps what `other` knows as well. True if something was dropped.
    pub(super) fn join(&mut self, other: Returns) -> bool {
        let before = *self;
        self.intact &= other.intact;
        self.kept &= other.kept;
        *self != before
    }
}
