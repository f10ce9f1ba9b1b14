//! How the verifier recognises what confines an access in each scheme: [`SchemeRules`],
//! one implementation for each, in a file of its own.
//!
//! In a scheme with a table this is a check. In a scheme with a window it is the form of
//! the operand, which `crate::decode` judges; only pointers of string instructions are
//! values that have to be followed, from a *low half* and the *window start*.
//!
//! A check computes the offset of an address's table entry, reads the entry's tag,
//! branches away if the tag is not that of the address's page, and reads the entry's
//! translation:
//!
//! ```text
//! address ──index_step──> index ──read──> compared ──branch──> passed ──read──> translated
//! ```
//!
//! Instructions are not recognised by their position. For each instruction of its check,
//! a scheme says what the instruction makes of a value whose [`Form`] is known; the
//! interpretation carries these forms along every path. The parts that all schemes share
//! are elsewhere: the out-of-line part in `crate::paths::checks`, the bytes that a
//! translation covers in `crate::domain::bounds`. No other module matches on a scheme.

mod paper;
mod stlb;
mod window;
mod window32;

use twin_abi::Scheme;

use crate::domain::{Flags, Form, Name, State, Value};
use crate::insn::{Alu, Condition, Gpr, TableRead};

/// How to recognise the check of a scheme, or the pointers of one that has none. What a
/// scheme does not have, it leaves as it is here.
pub trait SchemeRules: Sync {
    /// The scheme that these are the rules of.
    fn scheme(&self) -> Scheme;

    /// How a check reads the table: the tag first, then the translation. The only
    /// reads that are allowed.
    fn reads(&self) -> &'static [TableRead] {
        &[]
    }

    /// What arithmetic with a constant makes of `before` on the way to an index; `None`
    /// if it is no step towards one. `wide`: on 64 bits.
    fn index_step(&self, _op: Alu, _before: Value, _imm: i32, _wide: bool) -> Option<Form> {
        None
    }

    /// The meaning of the flags after `cmp $imm, %v`; `None` if it is not a comparison of
    /// this scheme.
    fn compared(&self, _v: Gpr, _form: Form, _imm: i32, _wide: bool) -> Option<Flags> {
        None
    }

    /// The result of a read of half an entry, if `r` holds the operand that it needs and
    /// `index` is the entry's.
    ///
    /// # Errors
    /// Why it is not the read that a check has here.
    fn read(
        &self,
        _state: &mut State,
        _read: TableRead,
        _r: Value,
        _index: Form,
    ) -> Result<Gives, &'static str> {
        Err(NOT_THIS_SCHEME)
    }

    /// The address that a conditional branch checks; `None` if it is not the branch of a
    /// check.
    fn checked(&self, _condition: Condition, _flags: Flags) -> Option<Name> {
        None
    }

    /// The branch of a check was not taken: adds the fact that the flags prove.
    fn passed(&self, _state: &mut State, _flags: Flags) {}

    /// Whether a base of this form, by the prefix 65, is in the window.
    fn is_place(&self, _form: Form) -> bool {
        false
    }

    /// Whether a number of 64 bits that is shifted right by so much is a place.
    fn is_shifted_out(&self, _by: i32) -> bool {
        false
    }

    /// The form of what string instructions reach, if that is a window.
    fn pointer(&self) -> Option<Form> {
        None
    }

    /// The sum of two registers that `lea` adds, if that confines string instructions.
    fn sum(&self, _a: Form, _b: Form) -> Option<Form> {
        None
    }
}

/// The result of a read of half a table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// A value of this form, in the register of the instruction.
    Register(Form),
    /// Flags; no register is written.
    Flags(Flags),
}

/// Why a read of another scheme is refused.
const NOT_THIS_SCHEME: &str = "the object's scheme does not read the table like this";

/// The rules of all schemes; a test compares it with `Scheme::ALL`.
const ALL: [&dyn SchemeRules; Scheme::ALL.len()] = [
    &stlb::Stlb,
    &paper::Paper,
    &window32::Window32,
    &window::Window,
];

pub fn of(scheme: Scheme) -> &'static dyn SchemeRules {
    match scheme {
        Scheme::Stlb => &stlb::Stlb,
        Scheme::Paper => &paper::Paper,
        Scheme::Window32 => &window32::Window32,
        Scheme::Window => &window::Window,
    }
}

/// Whether the check of any scheme reads the table like this.
pub fn is_read(read: TableRead) -> bool {
    ALL.iter().any(|scheme| scheme.reads().contains(&read))
}

/// What arithmetic with a constant makes of `before` on the way to an index. The
/// index of an address is the same number in all schemes (`crates/prove` proves it),
/// so a check may compute it in any of their ways.
pub fn index_step(op: Alu, before: Value, imm: i32, wide: bool) -> Form {
    let steps = ALL.iter().map(|s| s.index_step(op, before, imm, wide));
    steps.flatten().next().unwrap_or(Form::Any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insn::Half;

    #[test]
    fn every_scheme_is_listed_once_and_has_its_own_reads() {
        let mut seen = Vec::new();
        for scheme in Scheme::ALL {
            let rules = of(scheme);
            assert_eq!(rules.scheme(), scheme);
            let listed = ALL.iter().filter(|s| s.scheme() == scheme).count();
            assert_eq!(listed, 1, "{scheme:?}");
            let halves: Vec<Half> = rules.reads().iter().map(|read| read.half).collect();
            match Scheme::TABLES.contains(&scheme) {
                true => assert_eq!(halves, [Half::Tag, Half::Xlate]),
                false => assert_eq!(halves, []),
            }
            for &read in rules.reads() {
                assert!(
                    is_read(read) && !seen.contains(&read),
                    "{scheme:?}: {read:?}"
                );
                seen.push(read);
            }
        }
    }
}
