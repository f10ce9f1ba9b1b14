//! The `linux` target: a module that a stock kernel loads in place of the
//! original. `docs/spec/linux-module.md` has the format.
//!
//! ```text
//! series    which kernel it is for, and the forms that this kernel has
//! kept      which instructions must stay as the kernel's metadata names them
//! system    which instructions it may have
//! classify  the class of an instruction
//! operands  names for references in code
//! places    where original places are now
//! unused    alternatives that are left out
//! tables    the kernel's tables about code, moved
//! orc       unwind tables, made again
//! runtime   the slow path, linked in
//! emit      all of it into one object
//! ```

mod classify;
mod emit;
mod kept;
mod operands;
mod orc;
mod places;
mod runtime;
mod series;
mod system;
mod tables;
mod unused;

use elf_loader::consts::STB_WEAK;
use liveness::{LocSet, Reg};

use super::Descriptor;
use crate::analyse::flow::Conventions;
use crate::analyse::{classify as classes, survey};
use crate::frame::refine;
use crate::schemes::Table;
use crate::{encode, plan};

/// The target's properties.
pub const DESCRIPTOR: Descriptor = Descriptor {
    check_object: series::check,
    any_relocation: false,
    // A module is linked once.
    is_replaceable: |symbol| symbol.binding == STB_WEAK,
    classes: classes::Rules {
        references: operands::references,
        kept: kept::kept,
        conventions: Conventions::Psabi,
        amend: survey::assume_backdoor,
        classify: classify::classify,
    },
    leaves_out_unreached: false,
    keeps_frames: true,
    refine: |analysis, facts, classes| {
        refine::keep_frame_pointer(analysis, facts, classes);
        kept::keep_realigned(analysis.lifted, facts, classes);
    },
    plans: plan::Rules {
        table: Table::Absolute,
        // Unwinding may need the caller's `rbp` at any place.
        reserved: LocSet::reg(Reg::RBP),
        has_veneers: false,
        moves_rsp: false,
    },
    // The stack is the kernel's.
    guards_returns: false,
    code: encode::Rules {
        table: Table::Absolute,
        has_red_zone: false,
        translates_to_itself: true,
        numbers_cases: true,
        unwinds: true,
        indirect: encode::Indirect::Register,
        keeps_calls: true,
        is_verbatim: kept::is_verbatim,
    },
    refuses_jump_tables: true,
    closes_calls: true,
    prepare: Ok(emit::prepare),
};
