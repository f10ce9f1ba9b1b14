//! The `process` target: a program that is mapped to itself.
//!
//! Accesses to memory through a register are translated. These stay as they are:
//! operands relative to `rsp` (any shape), to a frame pointer, to `rip` or to a segment
//! (thread-local variables), and absolute ones; all transfers of control (an indirect one
//! through memory loads its destination through a translation first, except for jump
//! tables); instructions of any extension that reach no memory.

mod classify;

use elf_loader::consts::{STB_LOCAL, STT_SECTION};
use foldhash::HashMap;
use liveness::{LocSet, Reg};

use super::Descriptor;
use crate::analyse::classify as classes;
use crate::analyse::flow::Conventions;
use crate::analyse::references::References;
use crate::asm::import::Import;
use crate::asm::{Field, Referent};
use crate::frame::refine;
use crate::schemes::Table;
use crate::{encode, plan};

/// The target's properties.
pub const DESCRIPTOR: Descriptor = Descriptor {
    check_object: |_| Ok(()),
    any_relocation: true,
    // Another object may define it as well (psABI 3.5.5).
    is_replaceable: |symbol| symbol.binding != STB_LOCAL && symbol.kind != STT_SECTION,
    classes: classes::Rules {
        // Relocations are printed as the text has them.
        references: |lifted| {
            References::find(lifted, |_, value| {
                let referent = Referent::Import(Import::Own(value.symbol), value.addend);
                Ok((Field::Abs32S, referent))
            })
        },
        kept: |_| Ok(HashMap::default()),
        // Any option or attribute of a compiler.
        conventions: Conventions::Any,
        // The stack is the program's own.
        guards_returns: false,
        amend: |_, _, _| {},
        classify: classify::classify,
    },
    leaves_out_unreached: false,
    // Compilers leave functions that nobody calls (pcc).
    enters_unreached: true,
    keeps_frames: true,
    refine: refine::keep_frame_pointer,
    refused: classify::elements,
    plans: plan::Rules {
        // A program may be loaded anywhere.
        table: Table::Relative,
        reserved: LocSet::reg(Reg::RBP),
        has_veneers: false,
        loads_rsp: true,
        spares_callee_saved: true,
    },
    code: encode::Rules {
        table: Table::Relative,
        has_red_zone: true,
        translates_to_itself: true,
        numbers_cases: false,
        unwinds: false,
        indirect: encode::Indirect::RedZone,
        keeps_calls: false,
        pads_returns: false,
        keeps_prefixes: false,
        parts_traps: |_| false,
        loads_low_bytes: false,
        is_verbatim: |_| false,
    },
    // Nothing is proved of a program.
    refuses_jump_tables: false,
    closes_calls: false,
    unresolved: |_| Vec::new(),
    prepare: Err(
        "programs are rewritten only as assembly text, which shows their jump tables; use `twin cc`",
    ),
};
