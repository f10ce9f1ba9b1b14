//! The differences between the targets: one value and one folder for each target.
//!
//! | | `hypervisor` | `linux` | `process` |
//! |---|---|---|---|
//! | stays | what reaches the own frame only | the module's and the kernel's variables, per-CPU data, privileged instructions, what the kernel patches | `rsp`-, `rip`- and segment-relative operands, all direct transfers |
//! | translations | a mapping of dom0's page | the address itself | the address itself |
//! | result | code only, data stays in dom0 | the original module with other code | the text with sequences in it |
//!
//! Each phase has a struct `Rules` with the properties of a target that it needs; a
//! [`Descriptor`] holds all of them. No code outside this folder depends on the target in
//! any other way.

mod code;
#[cfg(test)]
mod edges;
mod hypervisor;
mod linux;
mod process;
mod sections;

use elf_loader::{Object, Symbol};
use twin_abi::{MadeFor, Target};

use crate::analyse::Analysis;
use crate::analyse::class::Class;
use crate::analyse::classify;
use crate::analyse::codemap::Codemap;
use crate::analyse::switches::Switches;
use crate::encode;
use crate::encode::apply::Applied;
use crate::frame::facts::FactsBefore;
use crate::lift::Lifted;
use crate::plan::{self, InstPlan};
use crate::refusal::Refusal;

pub use linux::{returns as module_returns, stop as module_stop};
pub use sections::note_section;

/// The properties of a target.
pub struct Descriptor {
    /// Refuses objects that are not for the target as a whole.
    pub check_object: fn(&Object<'_>) -> Result<(), Refusal>,
    /// Whether code may have relocations of any type: they are printed as the text has
    /// them.
    pub any_relocation: bool,
    /// Whether a call of this symbol may go elsewhere after linking, although the symbol
    /// is defined here.
    pub is_replaceable: fn(&Symbol<'_>) -> bool,
    /// For classification.
    pub classes: classify::Rules,
    /// Whether code that no path reaches is left out; true if the code is never patched.
    pub leaves_out_unreached: bool,
    /// Whether code that no path reaches is taken for functions: nothing proves what is believed
    /// of it.
    pub enters_unreached: bool,
    /// Whether operands relative to a frame pointer may stay.
    pub keeps_frames: bool,
    /// Changes classes that depend on stack facts. After this, classes are final.
    pub refine: fn(&Analysis<'_>, &FactsBefore, &mut [Class]),
    /// Refuses instructions by their final classes.
    pub refused: fn(&Analysis<'_>, &[Class]) -> Vec<Refusal>,
    /// For planning.
    pub plans: plan::Rules,
    /// For code generation.
    pub code: encode::Rules,
    /// Whether text with jump tables is refused: jumps through a table are not proved.
    /// Objects with one are refused for all targets.
    pub refuses_jump_tables: bool,
    /// Whether control is stopped after a call that never returns, because the result has
    /// to be proved confined.
    pub closes_calls: bool,
    /// Refuses names that have to be defined before the code is loaded. Another text of the same
    /// program may define them.
    pub unresolved: fn(&Lifted<'_>) -> Vec<Refusal>,
    /// Makes the rewritten object; an error says why objects are not rewritten for the
    /// target.
    pub prepare: Result<Prepare, &'static str>,
}

/// Refuses what could not be described by the result, and gives what makes the result. The
/// last decision: it comes before any code is written.
pub type Prepare =
    for<'l> fn(&'l Lifted<'l>, &[InstPlan], &Switches) -> Result<Build<'l>, Vec<Refusal>>;

/// Makes the rewritten object, and takes the code for it. It cannot fail.
pub type Build<'l> = Box<dyn FnOnce(&mut Applied, &Codemap, MadeFor) -> Object<'static> + 'l>;

/// The descriptor of a target. The list of all targets is [`Target::ALL`].
pub fn of(target: Target) -> &'static Descriptor {
    match target {
        Target::Hypervisor => &hypervisor::DESCRIPTOR,
        Target::Linux => &linux::DESCRIPTOR,
        Target::Process => &process::DESCRIPTOR,
    }
}
