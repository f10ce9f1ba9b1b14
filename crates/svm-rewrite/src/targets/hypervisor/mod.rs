//! The `hypervisor` target: a driver's code inside a hypervisor, confined to dom0's
//! memory. No instruction may stay that reaches memory outside the frame.
//!
//! ```text
//! sensitive which instructions it may not have
//! classify  the class of an instruction
//! names     names that the result cannot have
//! operands  names for references in code
//! emit      code, symbols, codemap and map into one object
//! ```

mod classify;
mod emit;
mod names;
mod operands;
mod sensitive;

use elf_loader::consts::STB_WEAK;
use foldhash::HashMap;
use liveness::LocSet;

use super::Descriptor;
use crate::analyse::classify::{self as classes, Kept};
use crate::analyse::flow::Conventions;
use crate::analyse::type_checks;
use crate::frame::refine;
use crate::lift::Lifted;
use crate::refusal::Refusal;
use crate::schemes::Table;
use crate::{encode, plan};

/// The target's properties.
pub const DESCRIPTOR: Descriptor = Descriptor {
    check_object: names::check,
    any_relocation: false,
    is_replaceable: |symbol| symbol.binding == STB_WEAK,
    classes: classes::Rules {
        references: operands::references,
        kept,
        conventions: Conventions::Psabi,
        guards_returns: true,
        amend: |_, _, _| {},
        classify: classify::classify,
    },
    leaves_out_unreached: true,
    enters_unreached: false,
    keeps_frames: false,
    refine: refine::translate_callers_frame,
    refused: |_, _| Vec::new(),
    plans: plan::Rules {
        table: Table::Absolute,
        reserved: LocSet::empty(),
        has_veneers: true,
        loads_rsp: false,
        spares_callee_saved: false,
    },
    code: encode::Rules {
        table: Table::Absolute,
        has_red_zone: false,
        translates_to_itself: false,
        numbers_cases: false,
        unwinds: false,
        indirect: encode::Indirect::Runtime,
        keeps_calls: false,
        pads_returns: false,
        keeps_prefixes: false,
        parts_traps: |_| false,
        loads_low_bytes: false,
        is_verbatim: |_| false,
    },
    refuses_jump_tables: true,
    closes_calls: true,
    unresolved: |_| Vec::new(),
    prepare: Ok(emit::prepare),
};

/// kCFI's checks of types read what dom0's kernel may have written over when it started. Here a
/// table says which functions are called, so they find the hash that they expect.
///
/// # Errors
/// A table that names no such checks.
fn kept(lifted: &Lifted<'_>) -> Result<HashMap<u32, Kept>, Refusal> {
    let checks = type_checks::find(lifted)?.into_iter();
    let loads = checks.map(|check| (check.load().0, Kept::TypeHash(check.hash)));
    Ok(loads.collect())
}
