//! Facts about the return address (target `hypervisor`).

/// The word at `rsp` at entry, and its shadow `twin_abi::stack::SHADOW` bytes below.
///
/// *What can change them.* Any write by pointer can change the word, since translations
/// lead to the own stack too; so a translated write and any call end
/// [`Returns::intact`]. Only an instruction that names the shadow can change the shadow,
/// since no translation covers it; and a function may name only its own shadow
/// (`crate::rules`). A callee's word is below the caller's `rsp`, hence below the
/// caller's word, and so the callee's shadow is below the caller's. So a call leaves
/// [`Returns::kept`] as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returns {
    /// The word is the address that the caller's `call` pushed.
    pub intact: bool,
    /// The shadow is that address.
    pub kept: bool,
}

impl Returns {
    /// Where a function begins: the `call` has just pushed the word, or the function that
    /// jumps there has proved it.
    pub const ENTRY: Returns = Returns {
        intact: true,
        kept: false,
    };

    /// Keeps only the facts that `other` has as well. True if any was dropped.
    pub(super) fn join(&mut self, other: Returns) -> bool {
        let before = *self;
        self.intact &= other.intact;
        self.kept &= other.kept;
        *self != before
    }
}
