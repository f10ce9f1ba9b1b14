//! The sections that the kernel gives a meaning: the layout of an entry, and which of
//! its fields refer to code.
//!
//! One row for each layout that a section has had in Linux 5.10 to 7.3 on x86-64
//! ([`SpecialKind::layouts`]), named after the structure and the header that define it. Which
//! one a module has is read from the module: the size of the section and the places of its
//! relocations fit one row only. [`entries`] decodes; it fails closed: an entry or a
//! relocation that does not fit a row is an error that names the place.
//!
//! Unwind entries have the same size in all kernels, but not the same meaning; [`orc`] says
//! which one a module has.

mod decode;
mod layout;
pub mod orc;

pub use decode::{AlternativeFlags, Entry, EntryData, Reference, Referent, SpecialError, entries};
pub use layout::{EntryLayout, Field, FieldForm, FieldRole, layout_of};

/// A section that the kernel gives a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SpecialKind {
    /// `__mcount_loc`: the `call __fentry__` at function entries. Entries are
    /// plain words (`ftrace_process_locs`, kernel/trace/ftrace.c).
    McountLoc,
    /// `.smp_locks`: `lock` prefixes, patched out on one CPU
    /// (`LOCK_PREFIX_HERE`, arch/x86/include/asm/alternative.h).
    SmpLocks,
    /// `.retpoline_sites`: `call`/`jmp __x86_indirect_thunk_*`
    /// (`apply_retpolines`, arch/x86/kernel/alternative.c).
    RetpolineSites,
    /// `.return_sites`: `jmp __x86_return_thunk` (`apply_returns`, ibid.).
    ReturnSites,
    /// `.orc_unwind`: one `struct orc_entry` for each entry of
    /// `.orc_unwind_ip` (arch/x86/include/asm/orc_types.h).
    OrcUnwind,
    /// `.orc_unwind_ip`: where each ORC entry begins to hold, sorted
    /// (arch/x86/include/asm/unwind.h).
    OrcUnwindIp,
    /// `__bug_table`: `struct bug_entry` (include/asm-generic/bug.h), one for
    /// each `ud2` of WARN and BUG.
    BugTable,
    /// `__jump_table`: `struct jump_entry` (include/linux/jump_label.h), one
    /// for each static branch.
    JumpTable,
    /// `.static_call_sites`: `struct static_call_site`
    /// (include/linux/static_call_types.h).
    StaticCallSites,
    /// `.altinstructions`: `struct alt_instr`
    /// (arch/x86/include/asm/alternative.h).
    AltInstructions,
    /// `.altinstr_replacement`: the code that `.altinstructions` may copy over
    /// its sites. It has no entries.
    AltInstrReplacement,
    /// `.parainstructions`: `struct paravirt_patch_site`
    /// (arch/x86/include/asm/paravirt_types.h).
    ParaInstructions,
    /// `__ex_table`: `struct exception_table_entry`
    /// (arch/x86/include/asm/extable.h).
    ExTable,
    /// `.call_sites`: calls that may be patched to track call depth
    /// (arch/x86/kernel/callthunks.c, Linux 6.2 and later).
    CallSites,
    /// `.ibt_endbr_seal`: `endbr` of functions that are never called
    /// indirectly (`apply_ibt_endbr`, arch/x86/kernel/alternative.c).
    IbtEndbrSeal,
    /// `.cfi_sites`: kCFI preambles before functions (`apply_fineibt`, ibid.).
    CfiSites,
    /// `__kcfi_traps`, before linking `.kcfi_traps`: the `ud2` of kCFI's checks of types, which
    /// stand before indirect calls (`is_cfi_trap`, kernel/cfi.c).
    KcfiTraps,
    /// `__patchable_function_entries`: the padding before functions that the compiler was told
    /// to leave (`-fpatchable-function-entry`, `PADDING_CFLAGS` in arch/x86/Makefile of Linux
    /// 6.2 and later). The kernel of x86 does not read it.
    PatchableFunctionEntries,
}

/// All kinds with the names of their sections, of several the kernel's first.
pub const KINDS: [(SpecialKind, &str); 19] = [
    (SpecialKind::McountLoc, "__mcount_loc"),
    (SpecialKind::SmpLocks, ".smp_locks"),
    (SpecialKind::RetpolineSites, ".retpoline_sites"),
    (SpecialKind::ReturnSites, ".return_sites"),
    (SpecialKind::OrcUnwind, ".orc_unwind"),
    (SpecialKind::OrcUnwindIp, ".orc_unwind_ip"),
    (SpecialKind::BugTable, "__bug_table"),
    (SpecialKind::JumpTable, "__jump_table"),
    (SpecialKind::StaticCallSites, ".static_call_sites"),
    (SpecialKind::AltInstructions, ".altinstructions"),
    (SpecialKind::AltInstrReplacement, ".altinstr_replacement"),
    (SpecialKind::ParaInstructions, ".parainstructions"),
    (SpecialKind::ExTable, "__ex_table"),
    (SpecialKind::CallSites, ".call_sites"),
    (SpecialKind::IbtEndbrSeal, ".ibt_endbr_seal"),
    (SpecialKind::CfiSites, ".cfi_sites"),
    (SpecialKind::KcfiTraps, "__kcfi_traps"),
    (SpecialKind::KcfiTraps, ".kcfi_traps"),
    (
        SpecialKind::PatchableFunctionEntries,
        "__patchable_function_entries",
    ),
];

/// The kind of a section of this name, if the kernel gives it a meaning that concerns
/// code.
pub fn kind_of(name: &str) -> Option<SpecialKind> {
    KINDS
        .iter()
        .find(|(_, n)| *n == name)
        .map(|(kind, _)| *kind)
}

impl SpecialKind {
    /// The name of the section in a module.
    pub fn name(self) -> &'static str {
        KINDS
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("", |(_, name)| name)
    }
}
