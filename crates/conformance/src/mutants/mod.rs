//! Mutants of the rewriter's checks for a hypervisor and for a module, of its sequences for return addresses
//! (`returned.rs`), and of code for a window, which has neither (`window.rs`): the verifier
//! should notice each.
//!
//! Takes a rewritten object and its sites, finds the checks by their
//! relocations against the translation table, and makes objects that differ
//! from it in one instruction of one check: deleted, swapped with its
//! neighbour, branching elsewhere, or with another register. A relocation moves
//! with its instruction. Every mutant is shown to the verifier.
//!
//! ```text
//! stlb  0 lea|mov ADDRESS, %v       paper  0 lea|mov ADDRESS, %i
//!       1 mov  %vd, %id                    1 mov  %i, %v
//!       2 shr  $8, %id                     2 and  $-4096, %i
//!       3 and  $0xfff0, %id                3 mov  %i, %p
//!       4 sub  twin_stlb(%i), %v           4 and  $0xfff000, %i
//!       5 cmp  $0xfff, %v                  5 shr  $8, %i
//!       6 ja   slow                        6 cmp  twin_stlb(%i), %p
//!       7 add  twin_stlb+8(%i), %v         7 jne  slow
//!                                          8 xor  twin_stlb+8(%i), %v
//! ```
//!
//! Instruction 0 says which address is translated, not whether: without it, or
//! with another register in it, the rest is still a whole check of the address in the
//! register. Such a mutant computes something else but is confined as before, unless it
//! overwrites a register that something relies on (`relied.rs`), or a count is computed from the
//! address beside the check, as for `rep`. The verifier may accept it (it does where the slow path
//! does not compute the address again).
//!
//! Where instruction 0 is `mov %reg, ...`, `%reg` holds the same address and may be read instead,
//! and so may any that holds the same there. In scheme `stlb` another address may not choose the
//! entry: a free one has the tag of a page of another index, and no translation.
//!
//! A copy of the address to the register that holds it already (`%v` is that `%reg`)
//! may be deleted. The verifier must reject all others, or a person has to look at the
//! [`Survivor`]: `mutations` runs its function, native against mutated.
//!
//! An idempotent instruction (a copy, a mask, a compare and its branch) may be
//! repeated. One that copies what its register holds already (`registers.rs`) may come after the
//! next, if that changes neither. A branch into the check may skip instruction 0, for the same reasons.
//! It may skip the whole check where the register
//! still holds the translated address of the previous check: the access then goes to
//! that one's window, and is covered.
//!
//! Prefixes are put before and into each instruction (`prefixed.rs`), those that it ignores
//! (`ignored.rs`) among them.
//!
//! Checks that no path reaches are left out: in an object for a hypervisor code after a static
//! branch that is off is not executed, so nothing needs to hold there. In a module a kernel
//! turns it on, and its checks are among the others.

pub mod campaign;
mod check;
mod everywhere;
mod held;
mod ignored;
mod inserted;
mod mutant;
mod prefixed;
mod reach;
mod registers;
mod relied;
mod replaced;
mod returned;
#[cfg(test)]
mod sample;
mod setting;
mod splice;
mod tables;
mod tally;
mod window;

pub use check::{Check, checks};
pub use everywhere::{Systematic, systematic};
pub use mutant::{Mutant, Undo};
pub use returned::{Guard, guards, judge_guards};
pub use setting::Setting;
pub use tally::{Count, Survivor, Tally, judge};
pub use window::{Subject, judge_window, subjects};

use check::Piece;

twin_abi::listed! {
    /// What was done to a check.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum MutantKind {
        /// An instruction became no-operations.
        Deleted,
        /// An instruction and the next changed places.
        Swapped,
        /// A branch or call leads elsewhere.
        Retargeted,
        /// An operand is another register.
        Register,
        /// An instruction is repeated.
        Duplicated,
        /// A branch leads into the check.
        Entered,
        /// An access reaches beyond what the check covers.
        Grown,
        /// The stack pointer is moved, or used for another register.
        StackPointer,
        /// A word of the stack is another one.
        Displaced,
        /// A branch is on another condition.
        Condition,
        /// An instruction has another prefix, or an operand in a window lacks one.
        Prefix,
    }
}
