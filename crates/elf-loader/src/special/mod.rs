//! The sections that the kernel gives a meaning: the layout of an entry, and which of
//! its fields refer to code.
//!
//! One row for each section. The layouts are those of Linux 6.1 on x86-64, each named
//! after the structure and the header that define it. [`entries`] decodes; it fails
//! closed: an entry or a relocation that does not fit the row is an error that names the
//! place.

mod decode;

pub use decode::{Entry, EntryData, Reference, Referent, SpecialError, entries};

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
}

/// What a field of an entry refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldRole {
    /// The instruction that the entry is about.
    Site,
    /// Where the site may jump to.
    Target,
    /// Where execution continues after an exception at the site.
    Fixup,
    /// The first byte of the code that may replace the site's.
    Replacement,
    /// A function's entry or preamble.
    Function,
    /// The first instruction for which the entry holds.
    RangeStart,
    /// The static key or static call that the site belongs to: data, or the
    /// trampoline of a static call.
    Key,
    /// The name of a source file: data.
    File,
}

impl FieldRole {
    /// Whether such a field always refers to code of this object.
    pub fn is_code(self) -> bool {
        !matches!(self, FieldRole::Key | FieldRole::File)
    }
}

/// How a field holds what it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldForm {
    /// 32 bits, distance from the field itself.
    Relative32,
    /// One machine word, distance from the field itself.
    RelativeWord,
    /// One machine word, the address.
    AbsoluteWord,
}

/// A field of an entry that refers to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset in the entry, in bytes.
    pub offset: u64,
    /// What it refers to.
    pub role: FieldRole,
    /// How it is encoded.
    pub form: FieldForm,
}

/// Layout of the entries of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryLayout {
    /// Bytes of an entry; 0 if the section has none.
    pub size: u64,
    /// Its fields that refer to something, by offset.
    pub fields: &'static [Field],
}

/// All kinds with the names of their sections.
pub const KINDS: [(SpecialKind, &str); 16] = [
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
];

/// The kind of a section of this name, if the kernel gives it a meaning that concerns
/// code.
pub fn kind_of(name: &str) -> Option<SpecialKind> {
    KINDS
        .iter()
        .find(|(_, n)| *n == name)
        .map(|(kind, _)| *kind)
}

const fn field(offset: u64, role: FieldRole, form: FieldForm) -> Field {
    Field { offset, role, form }
}

const SITE: Field = field(0, FieldRole::Site, FieldForm::Relative32);
const SITE_WORD: Field = field(0, FieldRole::Site, FieldForm::AbsoluteWord);
const FUNCTION: Field = field(0, FieldRole::Function, FieldForm::Relative32);
const RANGE_START: Field = field(0, FieldRole::RangeStart, FieldForm::Relative32);
const FILE: Field = field(4, FieldRole::File, FieldForm::Relative32);
const TARGET: Field = field(4, FieldRole::Target, FieldForm::Relative32);
const FIXUP: Field = field(4, FieldRole::Fixup, FieldForm::Relative32);
const REPLACEMENT: Field = field(4, FieldRole::Replacement, FieldForm::Relative32);
const KEY: Field = field(4, FieldRole::Key, FieldForm::Relative32);
const KEY_WORD: Field = field(8, FieldRole::Key, FieldForm::RelativeWord);

impl SpecialKind {
    /// The name of the section.
    pub fn name(self) -> &'static str {
        KINDS
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("", |(_, name)| name)
    }

    /// The layout of its entries.
    pub fn layout(self) -> EntryLayout {
        let (size, fields): (u64, &'static [Field]) = match self {
            // word ip
            SpecialKind::McountLoc => (8, &[SITE_WORD]),
            // s32 site
            SpecialKind::SmpLocks
            | SpecialKind::RetpolineSites
            | SpecialKind::ReturnSites
            | SpecialKind::CallSites => (4, &[SITE]),
            // s32 function
            SpecialKind::IbtEndbrSeal | SpecialKind::CfiSites => (4, &[FUNCTION]),
            // s16 sp_offset, s16 bp_offset, u16 registers and type
            SpecialKind::OrcUnwind => (6, &[]),
            // s32 start
            SpecialKind::OrcUnwindIp => (4, &[RANGE_START]),
            // s32 address, s32 file, u16 line, u16 flags
            SpecialKind::BugTable => (12, &[SITE, FILE]),
            // s32 code, s32 target, word key with flags in its low bits
            SpecialKind::JumpTable => (16, &[SITE, TARGET, KEY_WORD]),
            // s32 site, s32 key with flags in its low bits
            SpecialKind::StaticCallSites => (8, &[SITE, KEY]),
            // s32 site, s32 replacement, u16 cpuid, u8 instrlen, u8 replacementlen
            SpecialKind::AltInstructions => (12, &[SITE, REPLACEMENT]),
            SpecialKind::AltInstrReplacement => (0, &[]),
            // word site, u8 type, u8 length, padding
            SpecialKind::ParaInstructions => (16, &[SITE_WORD]),
            // s32 site, s32 fixup, u32 handler
            SpecialKind::ExTable => (12, &[SITE, FIXUP]),
        };
        EntryLayout { size, fields }
    }
}
