//! The layouts that the entries of each section have had.

use super::decode::SpecialError;
use super::{SpecialKind, kind_of};
use crate::model::{Object, Section, SectionId, consts};

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
    /// The format of a warning's message: data.
    Format,
    /// The first byte of a function's padding.
    Padding,
    /// The routine of the kernel that handles an exception.
    Handler,
}

impl FieldRole {
    /// Whether such a field always refers to code of this object.
    pub fn is_code(self) -> bool {
        !matches!(
            self,
            FieldRole::Key | FieldRole::File | FieldRole::Format | FieldRole::Handler
        )
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
    /// Bytes of padding at an entry's end that the last one may lack.
    pub open_end: u64,
    /// Offset of the byte that counts the bytes of the site, if there is one.
    pub site_len: Option<u64>,
    /// Its fields that refer to something, by offset.
    pub fields: &'static [Field],
}

const fn field(offset: u64, role: FieldRole, form: FieldForm) -> Field {
    Field { offset, role, form }
}

const SITE: Field = field(0, FieldRole::Site, FieldForm::Relative32);
const SITE_WORD: Field = field(0, FieldRole::Site, FieldForm::AbsoluteWord);
const FUNCTION: Field = field(0, FieldRole::Function, FieldForm::Relative32);
const RANGE_START: Field = field(0, FieldRole::RangeStart, FieldForm::Relative32);
const PADDING_WORD: Field = field(0, FieldRole::Padding, FieldForm::AbsoluteWord);
const FILE: Field = field(4, FieldRole::File, FieldForm::Relative32);
const FORMAT: Field = field(4, FieldRole::Format, FieldForm::Relative32);
const FILE_AFTER_FORMAT: Field = field(8, FieldRole::File, FieldForm::Relative32);
const TARGET: Field = field(4, FieldRole::Target, FieldForm::Relative32);
const FIXUP: Field = field(4, FieldRole::Fixup, FieldForm::Relative32);
const HANDLER: Field = field(8, FieldRole::Handler, FieldForm::Relative32);
const REPLACEMENT: Field = field(4, FieldRole::Replacement, FieldForm::Relative32);
const KEY: Field = field(4, FieldRole::Key, FieldForm::Relative32);
const KEY_WORD: Field = field(8, FieldRole::Key, FieldForm::RelativeWord);

const fn row(size: u64, fields: &'static [Field]) -> EntryLayout {
    EntryLayout {
        size,
        open_end: 0,
        site_len: None,
        fields,
    }
}

const fn patched(size: u64, site_len: u64, fields: &'static [Field]) -> EntryLayout {
    EntryLayout {
        site_len: Some(site_len),
        ..row(size, fields)
    }
}

impl SpecialKind {
    /// The layouts that its entries have had. The first that a table fits is meant: the first
    /// field of an entry always has a relocation, and there are none between fields.
    pub fn layouts(self) -> &'static [EntryLayout] {
        const PARAVIRT: EntryLayout = EntryLayout {
            open_end: 4,
            ..patched(16, 9, &[SITE_WORD])
        };
        match self {
            // word ip
            SpecialKind::McountLoc => const { &[row(8, &[SITE_WORD])] },
            // s32 site
            SpecialKind::SmpLocks
            | SpecialKind::RetpolineSites
            | SpecialKind::ReturnSites
            | SpecialKind::CallSites
            | SpecialKind::KcfiTraps => const { &[row(4, &[SITE])] },
            // s32 function
            SpecialKind::IbtEndbrSeal | SpecialKind::CfiSites => const { &[row(4, &[FUNCTION])] },
            // word padding
            SpecialKind::PatchableFunctionEntries => const { &[row(8, &[PADDING_WORD])] },
            // s16 sp_offset, s16 bp_offset, u16 registers and type
            SpecialKind::OrcUnwind => const { &[row(6, &[])] },
            // s32 start
            SpecialKind::OrcUnwindIp => const { &[row(4, &[RANGE_START])] },
            SpecialKind::BugTable => {
                const {
                    &[
                        // s32 address, s32 file, u16 line, u16 flags
                        row(12, &[SITE, FILE]),
                        // s32 address, s32 format, s32 file, u16 line, u16 flags
                        // (HAVE_ARCH_BUG_FORMAT, Linux 6.19 and later)
                        row(16, &[SITE, FORMAT, FILE_AFTER_FORMAT]),
                    ]
                }
            }
            // s32 code, s32 target, word key with flags in its low bits
            SpecialKind::JumpTable => const { &[row(16, &[SITE, TARGET, KEY_WORD])] },
            // s32 site, s32 key with flags in its low bits
            SpecialKind::StaticCallSites => const { &[row(8, &[SITE, KEY])] },
            SpecialKind::AltInstructions => {
                const {
                    &[
                        // s32 site, s32 replacement, u16 cpuid, u8 instrlen, u8 replacementlen
                        patched(12, 10, &[SITE, REPLACEMENT]),
                        // the same and u8 padlen (Linux 5.12 and before)
                        patched(13, 10, &[SITE, REPLACEMENT]),
                        // s32 site, s32 replacement, u16 cpuid, u16 flags, u8 instrlen,
                        // u8 replacementlen (Linux 6.3 and later)
                        patched(14, 12, &[SITE, REPLACEMENT]),
                    ]
                }
            }
            SpecialKind::AltInstrReplacement => const { &[row(0, &[])] },
            // word site, u8 type, u8 length, u16 clobbers or padding; each is aligned to a
            // word, and in Linux 5.10 the last one ends without padding (`_PVSITE`)
            SpecialKind::ParaInstructions => const { &[PARAVIRT] },
            SpecialKind::ExTable => {
                const {
                    &[
                        // s32 site, s32 fixup, u32 type of handler
                        row(12, &[SITE, FIXUP]),
                        // s32 site, s32 fixup, s32 handler (Linux 5.15, its first releases, and before)
                        row(12, &[SITE, FIXUP, HANDLER]),
                    ]
                }
            }
        }
    }
}

/// The layout that a section's entries have: the one that its size and its relocations fit.
///
/// # Errors
/// The section is not special, or fits no layout that is known.
pub fn layout_of(object: &Object<'_>, id: SectionId) -> Result<EntryLayout, SpecialError> {
    let section = object.section(id);
    let kind = kind_of(&section.name).ok_or_else(|| SpecialError::NotSpecial {
        section: section.name.to_string(),
    })?;
    let layouts = kind.layouts();
    let mut fitting = layouts.iter().filter(|layout| fits(section, layout));
    // Where none fits, the first is as good as any to say what was expected.
    Ok(*fitting.next().unwrap_or(&layouts[0]))
}

/// Whether a table's size is one of this layout, and its relocations are where the layout has
/// fields: one at the first field of each entry, none elsewhere.
fn fits(section: &Section<'_>, layout: &EntryLayout) -> bool {
    let size = section.data.len() as u64;
    let Some(first) = layout.fields.first() else {
        return true;
    };
    let whole = (size + layout.open_end) / layout.size;
    let mut starts = 0;
    let mut last = None;
    let used = section.relocations.iter();
    for r in used.filter(|r| r.kind != consts::R_X86_64_NONE) {
        let at = r.offset % layout.size;
        if !layout.fields.iter().any(|f| f.offset == at) {
            return false;
        }
        starts += u64::from(at == first.offset && last != Some(r.offset));
        last = Some(r.offset);
    }
    layout.has_whole_entries(size) && starts == whole
}

impl EntryLayout {
    /// Whether a section of this many bytes holds whole entries.
    pub fn has_whole_entries(&self, size: u64) -> bool {
        size == 0
            || size.is_multiple_of(self.size)
            || self.open_end != 0 && (size + self.open_end).is_multiple_of(self.size)
    }
}
