//! The rewriter: rewrites the code of a driver so that every access to dom0's memory
//! goes through Software Virtual Memory.
//!
//! ```text
//! lift ──> analyse ──> frame ──> plan ──> encode ──> targets' emit
//! ```
//!
//! Each step borrows the result of the step before and returns data; only `encode`
//! writes code. All that can be refused is refused before it. Safety does not depend on
//! this crate: `svm-verify` proves the result without knowing how it was made. That the
//! result computes what the original did does depend on this crate.
//!
//! A folder is a phase or code that several phases share. It uses only folders above
//! it (`tests/layers.rs` reads the sources and compares):
//!
//! ```text
//! hash registers refusal   tools: hashing, names of registers, what is refused and why
//! asm                      an assembler: bytes, labels, relocations
//! lift                     machine code to instructions, functions, branch targets
//! analyse                  control flow, liveness, the class of each instruction
//! schemes                  one file a translation scheme: what emits its check
//! frame                    stack facts; variants of functions that align the stack
//! plan                     registers, flags and translations for each sequence
//! encode                   the sequences, and the one place that writes them
//! targets                  one folder a target: all answers that differ, and its object
//! options                  what a caller asks for, and what contradicts itself
//! explain                  the account for people: sites, counts, listings
//! decide                   the phases up to the plans, in order
//! text                     assembly text in and out
//! ```

mod analyse;
mod asm;
mod decide;
mod encode;
mod explain;
mod frame;
mod hash;
pub mod lift;
mod options;
mod plan;
mod refusal;
mod registers;
mod schemes;
mod targets;
pub mod text;

use elf_loader::Object;

pub use analyse::class;
pub use explain::listing;
pub use explain::report::Site;
pub use explain::shortened;
pub use explain::stats::{DeadRegisters, LivenessCounts, Sites, Stats};
pub use lift::syntax;
pub use options::{Options, suits};
pub use refusal::{Refusal, RefusalCode};
pub use twin_abi::{Accesses, MadeFor, Processor, Scheme, Target};

use analyse::codemap;
use analyse::distances;
use analyse::flow::Hints;
use analyse::unread::Unread;
use decide::decide;
use encode::apply;
use explain::report;
use lift::got;

/// A rewritten object and the report of what was done.
#[derive(Debug)]
pub struct Rewritten {
    /// The object, ready to be verified and written.
    pub object: Object<'static>,
    /// Counts over the original.
    pub stats: Stats,
    /// What was done at each site; empty unless it was asked for.
    pub sites: Vec<Site>,
}

/// Rewrites an object.
///
/// # Errors
/// A refusal for every place that cannot be rewritten soundly; none of them is copied as
/// it is.
pub fn rewrite(object: &Object<'_>, options: Options) -> Result<Rewritten, Vec<Refusal>> {
    let target = targets::of(options.target);
    let prepare = target
        .prepare
        .map_err(|reason| vec![Refusal::of_object(RefusalCode::Options, reason)])?;
    // The object's code as instructions, functions and branch targets.
    let object = &*got::relaxed(object);
    let lifted = lift::lift(object)?;
    let hints = Hints::of_object(&lifted);
    let unread = Unread::find(object);
    distances::check(&lifted, &hints.switches, &unread)?;
    let codemap = codemap::entries(&lifted, &hints.switches, &unread)?;
    let decided = decide(&lifted, &hints, &codemap, options)?;
    let build = prepare(&lifted, &decided.plans, &decided.analysis.switches)?;
    // --- all decisions are made; nothing beyond this point can fail ---
    let decisions = decided.decisions(options);
    let mut applied = apply::object(&decisions, options.poison);
    let sites = if options.report {
        report::sites(&decisions, &applied)
    } else {
        Vec::new()
    };
    // --- the code is made; the rest puts it into the object ---
    Ok(Rewritten {
        object: build(&mut applied, &codemap, options.made_for()),
        stats: decided.stats(),
        sites,
    })
}

/// A refusal at a place in an object's code, with the function and the instruction that are there;
/// `None` if there is none.
pub fn refusal_at(object: &Object<'_>, refusal: &Refusal) -> Option<Refusal> {
    let object = got::relaxed(object);
    let lifted = lift::lift(&object).ok()?;
    let section = lifted.section_named(&refusal.section)?;
    let inst = lifted.inst_at(section, refusal.offset)?;
    Some(lifted.refusal(refusal.code, inst, &*refusal.reason))
}

/// Counts the sites in an object's code; of accesses to memory only these. Works for
/// objects that would be refused too, if they can be lifted.
///
/// # Errors
/// The code cannot be lifted.
pub fn statistics(object: &Object<'_>, accesses: Accesses) -> Result<Stats, Vec<Refusal>> {
    let object = got::relaxed(object);
    let lifted = lift::lift(&object)?;
    decide::statistics(&lifted, targets::of(Target::default()), accesses)
}
