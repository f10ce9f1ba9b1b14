//! What differs from target to target: one value and one folder for each.
//!
//! | | `hypervisor` | `linux` | `process` |
//! |---|---|---|---|
//! | stays | what reaches the own frame only | the module's and the kernel's variables, per-CPU data, privileged instructions, what the kernel patches | `rsp`-, `rip`- and segment-relative operands, all direct transfers |
//! | translations | a mapping of dom0's page | the address itself | the address itself |
//! | result | code only, data stays in dom0 | the original module with other code | the text with sequences in it |
//!
//! Each phase states in a struct `Rules` what it asks a target; a [`Descriptor`] holds
//! the answers. Nothing outside this folder asks which target it is.

mod hypervisor;
mod linux;
mod process;
mod sections;

use std::collections::BTreeSet;

use elf_loader::{Object, Symbol};
use twin_abi::{Scheme, Target};

use crate::analyse::Analysis;
use crate::analyse::class::Class;
use crate::analyse::classify;
use crate::encode::apply::Applied;
use crate::frame::facts::FactsBefore;
use crate::lift::{CodeIdx, Lifted};
use crate::refusal::Refusal;
use crate::{encode, plan};

pub use linux::module_runtime;

/// Everything that differs from target to target.
pub struct Descriptor {
    /// Refuses objects that are not for the target as a whole.
    pub check_object: fn(&Object<'_>) -> Result<(), Refusal>,
    /// Whether code may have relocations of any type, for its text says what they are.
    pub any_relocation: bool,
    /// Whether a call goes where the linker says, although this symbol is defined here.
    pub is_replaceable: fn(&Symbol<'_>) -> bool,
    /// What classification asks.
    pub classes: classify::Rules,
    /// Whether code that no path reaches is left out: nobody patches the code.
    pub leaves_out_unreached: bool,
    /// Whether operands relative to a frame pointer may stay.
    pub keeps_frames: bool,
    /// Changes classes by what is known of the stack: the last word about them.
    pub refine: fn(&Analysis<'_>, &FactsBefore, &mut [Class]),
    /// What planning asks.
    pub plans: plan::Rules,
    /// Whether functions keep and compare their return address.
    pub guards_returns: bool,
    /// What emission asks.
    pub code: encode::Rules,
    /// Whether text with jump tables is refused: what jumps through one is not proved.
    /// Objects with one are refused for all targets.
    pub refuses_jump_tables: bool,
    /// Whether the way after a call that never returns is closed, for the result is
    /// to be proved to be confined.
    pub closes_calls: bool,
    /// Builds the rewritten object, or why objects are not rewritten for the target.
    pub emit: Result<Emit, &'static str>,
}

/// Builds the rewritten object, and takes the code for it. An error is what refers to
/// code and cannot be moved.
pub type Emit = fn(
    &Lifted<'_>,
    &mut Applied,
    &BTreeSet<(CodeIdx, u64)>,
    Scheme,
) -> Result<Object<'static>, Vec<Refusal>>;

/// The descriptor of a target. The list of all targets is [`Target::ALL`].
pub fn of(target: Target) -> &'static Descriptor {
    match target {
        Target::Hypervisor => &hypervisor::DESCRIPTOR,
        Target::Linux => &linux::DESCRIPTOR,
        Target::Process => &process::DESCRIPTOR,
    }
}
