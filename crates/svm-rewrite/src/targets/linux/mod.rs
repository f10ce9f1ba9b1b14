//! The `linux` target: a module that a stock kernel loads in place of the
//! original. `docs/spec/linux-module.md` has the format.
//!
//! ```text
//! series    which kernel it is for, and the forms that this kernel has
//! code      which sections it may be in
//! kept      which instructions must stay as the kernel's metadata names them
//! system    which instructions it may have
//! classify  the class of an instruction
//! named     which memory operands may name
//! operands  names for references in code
//! places    where original places are now
//! unresolved  names of what may be nowhere
//! freed     names of what is gone when the module has begun
//! nameless  functions in data that have no name
//! assembly  names of what is no routine of the psABI
//! unused    alternatives that are left out
//! tables    the kernel's tables about code, moved
//! orc       unwind tables, made again
//! runtime   the slow path, linked in
//! emit      all of it into one object
//! ```

mod assembly;
mod classify;
mod emit;
mod freed;
mod kept;
mod named;
mod nameless;
mod operands;
mod orc;
mod outside;
mod places;
mod runtime;
mod series;
mod system;
mod tables;
mod unresolved;
mod unused;

use elf_loader::consts::STB_WEAK;
use elf_loader::{Object, modinfo};
use liveness::{LocSet, Reg};

use super::{Descriptor, code};
use crate::analyse::flow::Conventions;
use crate::analyse::{classify as classes, survey};
use crate::frame::refine;
use crate::refusal::{Refusal, RefusalCode};
use crate::schemes::Table;
use crate::{encode, plan};

pub use runtime::{Stop, returns};

/// The target's properties.
pub const DESCRIPTOR: Descriptor = Descriptor {
    check_object: |object| {
        series::check(object)?;
        code::check(object, RefusalCode::Metadata)?;
        outside::check(object)?;
        freed::check(object)
    },
    any_relocation: false,
    // A module is linked once.
    is_replaceable: |symbol| symbol.binding == STB_WEAK,
    classes: classes::Rules {
        references: operands::references,
        kept: kept::kept,
        conventions: Conventions::Psabi,
        // The stack is the kernel's.
        guards_returns: false,
        amend: survey::assume_hypervisor,
        classify: classify::classify,
    },
    leaves_out_unreached: false,
    enters_unreached: false,
    keeps_frames: true,
    refine: |analysis, facts, classes| {
        refine::keep_frame_pointer(analysis, facts, classes);
        refine::translate_beyond_arguments(analysis.lifted, facts, classes);
        kept::keep_realigned(analysis.lifted, facts, classes);
    },
    refused: |_, _| Vec::new(),
    plans: plan::Rules {
        table: Table::Absolute,
        // Unwinding may need the caller's `rbp` at any place.
        reserved: LocSet::reg(Reg::RBP),
        has_veneers: false,
        loads_rsp: false,
        spares_callee_saved: false,
    },
    code: encode::Rules {
        table: Table::Absolute,
        has_red_zone: false,
        translates_to_itself: true,
        numbers_cases: true,
        unwinds: true,
        indirect: encode::Indirect::Register,
        keeps_calls: true,
        pads_returns: true,
        keeps_prefixes: true,
        parts_traps: series::has_fineibt,
        loads_low_bytes: true,
        is_verbatim: kept::is_verbatim,
    },
    refuses_jump_tables: true,
    closes_calls: true,
    unresolved: |lifted| {
        let mut refused = unresolved::of_text(lifted);
        refused.extend(assembly::find(lifted));
        refused.extend(nameless::of_text(lifted));
        refused
    },
    prepare: Ok(emit::prepare),
};

/// What a module's description of itself, which kbuild makes a source of its own of, lets
/// the runtime of all its sources have: the entry of the kernel's table of BUGs. `None` if
/// this is no such description.
///
/// # Errors
/// A kernel that is not known.
pub fn stop(object: &Object<'_>) -> Result<Option<Stop>, Refusal> {
    if modinfo::release(object).is_none() {
        return Ok(None);
    }
    series::release(object)?;
    Ok(Stop::of(series::Kernel::of(object)?))
}
