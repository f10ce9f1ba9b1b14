//! How the verifier recognises the check of each scheme: [`SchemeRules`], one
//! implementation for each, in a file of its own.
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

use twin_abi::Scheme;

use crate::domain::{Flags, Form, Name, State, Value};
use crate::insn::{Alu, Condition, Gpr, TableRead};

/// How to recognise the check of a scheme.
pub trait SchemeRules: Sync {
    /// The scheme that these are the rules of.
    fn scheme(&self) -> Scheme;

    /// How a check reads the table: the tag first, then the translation. The only
    /// reads that are allowed.
    fn reads(&self) -> [TableRead; 2];

    /// What arithmetic with a constant makes of `before` on the way to an index; `None`
    /// if it is no step towards one. `wide`: on 64 bits.
    fn index_step(&self, op: Alu, before: Value, imm: i32, wide: bool) -> Option<Form>;

    /// The meaning of the flags after `cmp $imm, %v`; `None` if it is not a comparison of
    /// this scheme.
    fn compared(&self, v: Gpr, form: Form, imm: i32, wide: bool) -> Option<Flags>;

    /// The result of a read of half an entry, if `r` holds the operand that it needs and
    /// `index` is the entry's.
    ///
    /// # Errors
    /// Why it is not the read that a check has here.
    fn read(
        &self,
        state: &mut State,
        read: TableRead,
        r: Value,
        index: Form,
    ) -> Result<Gives, &'static str>;

    /// The address that a conditional branch checks; `None` if it is not the branch of a
    /// check.
    fn checked(&self, condition: Condition, flags: Flags) -> Option<Name>;

    /// The branch of a check was not taken: adds the fact that the flags prove.
    fn passed(&self, state: &mut State, flags: Flags);
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
const ALL: [&dyn SchemeRules; Scheme::ALL.len()] = [&stlb::Stlb, &paper::Paper];

/// The rules of a scheme.
pub fn of(scheme: Scheme) -> &'static dyn SchemeRules {
    match scheme {
        Scheme::Stlb => &stlb::Stlb,
        Scheme::Paper => &paper::Paper,
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
            let [tag, xlate] = rules.reads();
            assert_eq!((tag.half, xlate.half), (Half::Tag, Half::Xlate));
            for read in rules.reads() {
                assert!(
                    is_read(read) && !seen.contains(&read),
                    "{scheme:?}: {read:?}"
                );
                seen.push(read);
            }
        }
    }
}
