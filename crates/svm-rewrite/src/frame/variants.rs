//! Functions that realign their stack, and how they get a frame whose place is
//! known.
//!
//! A function with a local variable of more than eight bytes' alignment begins
//! with `and $-16,%rsp`. How far that moves `rsp` depends on `rsp` modulo 16 at the
//! function's entry, which kernels leave open (-mpreferred-stack-boundary=3). The
//! contract demands that `rsp` moves by constants (P4). The value that the original
//! keeps to undo the move is in memory that the driver can reach by pointer, so it
//! cannot be relied upon.
//!
//! So `rsp` is tested once, at the entry, and the function is written once for each
//! residue. In each *variant* every move of `rsp` is a constant:
//!
//! ```text
//! f:      test   $8, %esp              # rsp at entry modulo 16
//!         jne    variant 1
//!         ...                          variant 0: rsp = 0 modulo 16
//!         lea    -8(%rsp), %rsp        # and $-16,%rsp after a push
//!         ...
//! variant 1: ...                       rsp = 8 modulo 16
//!         ...                          # the same and: rsp stays
//! ```
//!
//! The verifier needs no rule for this: it sees two function bodies with constant
//! frames. The variants compute what the original does only if `rsp` is a multiple of 8
//! at entries (psABI 3.2.2); safety does not depend on that.
//!
//! Functions that jump into each other with a frame, as the hot and the cold part of one
//! do, are a *family*. The whole family is copied.

use super::sets::Sets;
use crate::analyse::class::Class;
use crate::analyse::flow::Flow;
use crate::lift::{FuncIdx, InstIdx, Lifted};

/// `rsp` at an entry is always a multiple of this, in bytes (psABI 3.2.2).
const GRANULE: u32 = 8;

/// One way that `rsp` may be aligned at the entry: `8 * variant` modulo the
/// family's alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Variant(pub u8);

impl Variant {
    /// The only one of functions that do not realign.
    pub const FIRST: Variant = Variant(0);

    /// `rsp` at the entry modulo the family's alignment, in bytes.
    pub fn residue(self) -> i64 {
        i64::from(u32::from(self.0) * GRANULE)
    }
}

/// The variants in which each function is written.
#[derive(Debug)]
pub struct Variants {
    /// Alignment of each function's family; empty if nothing realigns.
    alignment: Vec<u32>,
    most: u8,
}

impl Variants {
    /// Finds the families.
    pub fn find(lifted: &Lifted<'_>, flow: &Flow, classes: &[Class]) -> Variants {
        let realigned: Vec<(FuncIdx, u32)> = (0..)
            .zip(classes)
            .filter_map(|(i, class)| match class {
                Class::Realign(alignment) => {
                    Some((lifted.function_of(InstIdx(i)), u32::from(*alignment)))
                }
                _ => None,
            })
            .collect();
        if realigned.is_empty() {
            return Variants {
                alignment: Vec::new(),
                most: 1,
            };
        }
        let mut families = families(lifted, flow);
        let mut alignment = vec![GRANULE; lifted.functions.len()];
        for (function, wanted) in realigned {
            let of = &mut alignment[families.of(function.0)];
            *of = wanted.max(*of);
        }
        let alignment: Vec<u32> = (0..lifted.functions.len() as u32)
            .map(|f| alignment[families.of(f)])
            .collect();
        let most = alignment.iter().max().map_or(1, |a| a / GRANULE) as u8;
        Variants { alignment, most }
    }

    /// The alignment that a function's variants tell apart.
    pub fn alignment(&self, f: FuncIdx) -> u32 {
        self.alignment.get(f.0 as usize).copied().unwrap_or(GRANULE)
    }

    pub fn of(&self, f: FuncIdx) -> impl Iterator<Item = Variant> + use<> {
        (0..(self.alignment(f) / GRANULE) as u8).map(Variant)
    }

    /// The variants of the function that has the most.
    pub fn all(&self) -> impl Iterator<Item = Variant> + use<> {
        (0..self.most).map(Variant)
    }
}

/// Functions that jump into each other with a frame, as sets.
fn families(lifted: &Lifted<'_>, flow: &Flow) -> Sets {
    let mut families = Sets::new(lifted.functions.len());
    for block in flow.nodes() {
        let from = flow.function_of(block);
        // Replacements of alternatives are not written at all.
        if lifted.function(from).padding {
            continue;
        }
        for &next in flow.continuations(block) {
            let to = flow.function_of(next);
            if to == from {
                continue;
            }
            let first = InstIdx(lifted.function(to).insts.start);
            let tail_call = flow.begin(next) == Some(first) && lifted.is_entered(to);
            if !tail_call && !lifted.function(to).padding {
                families.join(from.0, to.0);
            }
        }
    }
    families
}
