//! Entries of special sections, with their references resolved.

use thiserror::Error;

use super::layout::{EntryLayout, Field, FieldForm, FieldRole, layout_of};
use super::{SpecialKind, kind_of};
use crate::model::{Object, Place, Relocation, Section, SectionId, Symbol, SymbolId, WORD, consts};
use crate::references::resolve_target;
use crate::reloc::relocation_name;

/// Bit 0 of a bug table entry's flags: WARN, not BUG (`BUGFLAG_WARNING`,
/// include/asm-generic/bug.h).
const BUGFLAG_WARNING: u16 = 1;
/// Bit 4: a WARN with arguments, whose code passes the address of the entry to a routine of the
/// kernel (`__WARN_print_arg`, arch/x86/include/asm/bug.h of Linux 7.x).
const BUGFLAG_ARGS: u16 = 1 << 4;
/// The flag of an alternative for "if the processor does not have the feature": of `cpuid`
/// before Linux 6.3 (`ALTINSTR_FLAG_INV`), then of `flags` (`ALT_FLAG_NOT`), both in
/// arch/x86/include/asm/alternative.h.
const CPUID_NOT: u16 = 1 << 15;
const ALT_FLAG_NOT: u16 = 1;
/// The site calls through a pointer, and the kernel makes a direct call of that
/// (`ALT_FLAG_DIRECT_CALL`, ibid.).
const ALT_FLAG_DIRECT_CALL: u16 = 1 << 1;

/// Why metadata could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecialError {
    /// No entries are known for the section.
    #[error("section `{section}` has no entries that twin knows; decode the listed ones only")]
    NotSpecial {
        /// Name of the section.
        section: String,
    },
    /// Its size is no multiple of the entry's.
    #[error(
        "section `{section}` has {size:#x} bytes, not a multiple of {entry}: its layout is none of Linux 5.10 to 7.3; build for one of these or add the layout to elf-loader's `special`"
    )]
    Size {
        /// Name of the section.
        section: String,
        /// Its size in bytes.
        size: u64,
        /// Bytes of an entry.
        entry: u64,
    },
    /// A field lacks its relocation, or has one of another kind, or a
    /// relocation lies where no field is.
    #[error(
        "section `{section}` offset {offset:#x}: expected {expected}, found {found}: its layout is none of Linux 5.10 to 7.3; build for one of these or add the layout to elf-loader's `special`"
    )]
    Field {
        /// Name of the section.
        section: String,
        /// Offset of the field or relocation in it.
        offset: u64,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// The encoding of unwind entries is not known.
    #[error(
        "section `{section}`: {reason}; build for one of these or add the format to elf-loader's `special::orc`"
    )]
    Unwind {
        /// Name of the section.
        section: String,
        /// What is not known of it.
        reason: &'static str,
    },
    /// A field that must refer to code does not.
    #[error(
        "section `{section}` offset {offset:#x} refers to `{symbol}`, which is no code of this object; drop the entry or link the object that has the code"
    )]
    NotCode {
        /// Name of the section.
        section: String,
        /// Offset of the field in it.
        offset: u64,
        /// The symbol that it names.
        symbol: String,
    },
    /// A reference to code lies outside the code section that it names.
    #[error(
        "section `{section}` offset {offset:#x} refers to a place outside the code section of its symbol; name a symbol of the section that is meant"
    )]
    Outside {
        /// Name of the section.
        section: String,
        /// Offset of the field in it.
        offset: u64,
    },
}

/// One entry of a special section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What the section is.
    pub kind: SpecialKind,
    /// Offset of the entry in its section, in bytes.
    pub offset: u64,
    /// Its references, in the order of [`EntryLayout::fields`].
    pub references: Vec<Reference>,
    /// Its other fields.
    pub data: EntryData,
    /// Bytes at the site's end that the kernel may write other nops over (`padlen` of
    /// `struct alt_instr` in Linux 5.12 and before); 0 if the layout does not say.
    pub padding: u8,
}

/// A field that refers to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// What it refers to.
    pub role: FieldRole,
    /// Offset of the field in the *section*, in bytes.
    pub offset: u64,
    /// What the field refers to.
    pub to: Referent,
}

/// Where a reference leads. Flag bits of keys are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Referent {
    /// Into this object: section and offset in bytes.
    Here(SectionId, u64),
    /// To a symbol that is not defined in a section of this object, plus an
    /// addend.
    Symbol(SymbolId, i64),
    /// Nowhere: the field has no relocation.
    Nothing,
}

/// The fields of an entry that are no references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryData {
    /// None that this project needs.
    None,
    /// `struct bug_entry`.
    Bug {
        /// Line of the source file.
        line: u16,
        /// `BUGFLAG_*`; bit 0 marks a WARN.
        flags: u16,
    },
    /// `struct jump_entry`.
    Jump {
        /// Bit 0 of the key: the site jumps if this differs from whether the
        /// key is enabled.
        branch: bool,
        /// Bit 1 of the key: objtool makes or made a nop of the site's `jmp`.
        nop: bool,
    },
    /// `struct static_call_site`.
    StaticCall {
        /// Bit 0 of the key: the site is a tail call.
        tail: bool,
    },
    /// `struct alt_instr`.
    Alternative {
        /// Number of the CPU feature.
        feature: u16,
        /// What the entry says besides.
        flags: AlternativeFlags,
        /// Bytes at the site that are replaced.
        site_len: u8,
        /// Bytes of the replacement.
        replacement_len: u8,
    },
    /// `struct paravirt_patch_site`.
    Paravirt {
        /// Which operation is called.
        operation: u8,
        /// Bytes at the site.
        site_len: u8,
    },
    /// `struct exception_table_entry`: the type of handler and its data.
    Exception(u32),
    /// `struct orc_entry`, uninterpreted.
    Orc([u8; 6]),
}

/// The flags of an alternative, of any layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlternativeFlags {
    /// It is for processors without the feature.
    pub not: bool,
    /// The site is a call through a pointer, and the kernel replaces it by a direct call.
    pub direct_call: bool,
    /// Flags that no kernel up to 7.3 has.
    pub others: u16,
}

impl Entry {
    /// The symbol that a replacement is, if it is no code of this object, and the addend.
    pub fn foreign_replacement(&self) -> Option<(SymbolId, i64)> {
        let replacement = |r: &&Reference| r.role == FieldRole::Replacement;
        match self.references.iter().find(replacement)?.to {
            Referent::Symbol(symbol, addend) => Some((symbol, addend)),
            Referent::Here(..) | Referent::Nothing => None,
        }
    }

    /// The first reference of this role that leads into this object.
    pub fn reference(&self, role: FieldRole) -> Option<(SectionId, u64)> {
        let found = self.references.iter().find(|r| r.role == role)?;
        match found.to {
            Referent::Here(section, offset) => Some((section, offset)),
            Referent::Symbol(..) | Referent::Nothing => None,
        }
    }

    /// The instruction, function or start of range that the entry is about;
    /// every entry but those of `.orc_unwind` has one.
    pub fn site(&self) -> Option<(SectionId, u64)> {
        let roles = [
            FieldRole::Site,
            FieldRole::Function,
            FieldRole::RangeStart,
            FieldRole::Padding,
        ];
        roles.iter().find_map(|&role| self.reference(role))
    }

    /// Where control may go instead of on from the site: the target of a
    /// static branch, the fixup of an exception, the replacement of an
    /// alternative.
    pub fn target(&self) -> Option<(SectionId, u64)> {
        let roles = [FieldRole::Target, FieldRole::Fixup, FieldRole::Replacement];
        roles.iter().find_map(|&role| self.reference(role))
    }

    /// What the key field refers to.
    pub fn key(&self) -> Option<Referent> {
        self.references
            .iter()
            .find(|r| r.role == FieldRole::Key)
            .map(|r| r.to)
    }

    /// Whether this is the bug table entry of a WARN.
    pub fn is_warning(&self) -> bool {
        matches!(self.data, EntryData::Bug { flags, .. } if flags & BUGFLAG_WARNING != 0)
    }

    /// Whether the kernel may go on behind the `ud2` that the entry names: that of a WARN, or of
    /// kCFI, if the kernel only reports (`CONFIG_CFI_PERMISSIVE`).
    pub fn may_go_on(&self) -> bool {
        self.is_warning() || self.kind == SpecialKind::KcfiTraps
    }

    /// Whether this is the entry of a WARN whose code passes the entry's address on: its site
    /// is the instruction after the one that takes the address, not a `ud2`.
    pub fn has_arguments(&self) -> bool {
        self.is_warning()
            && matches!(self.data, EntryData::Bug { flags, .. } if flags & BUGFLAG_ARGS != 0)
    }

    /// Bytes at the site that may be patched, of alternatives and paravirt
    /// sites; otherwise 0.
    pub fn site_len(&self) -> u8 {
        match self.data {
            EntryData::Alternative { site_len, .. } | EntryData::Paravirt { site_len, .. } => {
                site_len
            }
            _ => 0,
        }
    }

    /// Bytes of an alternative's replacement; otherwise 0.
    pub fn replacement_len(&self) -> u8 {
        match self.data {
            EntryData::Alternative {
                replacement_len, ..
            } => replacement_len,
            _ => 0,
        }
    }
}

/// Decodes all entries of a special section, in order. The section is one that
/// [`kind_of`] knows; of `.altinstr_replacement` there are none.
///
/// # Errors
/// [`SpecialError`] if the section is another, if its layout is none that is
/// known, or if a field that must refer to code of this object does not.
/// Nothing is skipped.
pub fn entries(object: &Object<'_>, id: SectionId) -> Result<Vec<Entry>, SpecialError> {
    let section = object.section(id);
    let kind = kind_of(&section.name).ok_or_else(|| SpecialError::NotSpecial {
        section: section.name.to_string(),
    })?;
    let layout = layout_of(object, id)?;
    if layout.size == 0 {
        return Ok(Vec::new());
    }
    let decoder = Decoder {
        object,
        section,
        kind,
        layout,
    };
    if !layout.has_whole_entries(section.data.len() as u64) {
        let (size, entry) = (section.data.len() as u64, layout.size);
        return Err(SpecialError::Size {
            section: section.name.to_string(),
            size,
            entry,
        });
    }
    let mut relocations = section.relocations.as_slice();
    let mut list = Vec::with_capacity(section.data.len() / layout.size as usize);
    for (index, bytes) in section.data.chunks(layout.size as usize).enumerate() {
        let start = index as u64 * layout.size;
        // They are sorted, and an entry has a few.
        let own = |r: &&Relocation| r.offset < start + layout.size;
        let count = relocations.iter().take_while(own).count();
        let (own, rest) = relocations.split_at(count);
        list.push(decoder.entry(start, bytes, own)?);
        relocations = rest;
    }
    Ok(list)
}

/// A section being decoded.
struct Decoder<'o> {
    object: &'o Object<'o>,
    section: &'o Section<'o>,
    kind: SpecialKind,
    layout: EntryLayout,
}

impl Decoder<'_> {
    fn entry(
        &self,
        start: u64,
        bytes: &[u8],
        relocations: &[Relocation],
    ) -> Result<Entry, SpecialError> {
        let at_field = |r: &&Relocation| {
            self.layout
                .fields
                .iter()
                .any(|f| start + f.offset == r.offset)
        };
        let mut used = relocations
            .iter()
            .filter(|r| r.kind != consts::R_X86_64_NONE);
        if let Some(stray) = used.find(|r| !at_field(r)) {
            return Err(self.mismatch(stray.offset, "no relocation", Some(stray)));
        }
        let mut references = Vec::with_capacity(self.layout.fields.len());
        for field in self.layout.fields {
            let offset = start + field.offset;
            let relocation = relocations.iter().find(|r| r.offset == offset);
            let to = match relocation {
                None if self.copies_nothing(field, bytes) => Referent::Nothing,
                _ => self.referent(field, offset, relocation)?,
            };
            references.push(Reference {
                role: field.role,
                offset,
                to,
            });
        }
        let key_bits = key_bits(&mut references);
        let data = self.data(bytes, key_bits);
        // The last byte of the layout that has it.
        let padding = match (self.kind, self.layout.size) {
            (SpecialKind::AltInstructions, 13) => bytes.get(12).copied().unwrap_or(0),
            _ => 0,
        };
        Ok(Entry {
            kind: self.kind,
            offset: start,
            references,
            data,
            padding,
        })
    }

    /// Whether the field is that of a replacement without bytes, which may be without a place:
    /// `_static_cpu_has` of Linux 5.12 and before writes 0 there
    /// (arch/x86/include/asm/cpufeature.h).
    fn copies_nothing(&self, field: &Field, bytes: &[u8]) -> bool {
        field.role == FieldRole::Replacement
            && matches!(
                self.data(bytes, 0),
                EntryData::Alternative {
                    replacement_len: 0,
                    ..
                }
            )
    }

    fn referent(
        &self,
        field: &Field,
        offset: u64,
        relocation: Option<&Relocation>,
    ) -> Result<Referent, SpecialError> {
        let (wanted, expected) = relocation_of(field.form);
        let Some(relocation) = relocation else {
            return match field.role.is_code() {
                true => Err(self.mismatch(offset, expected, None)),
                false => Ok(Referent::Nothing),
            };
        };
        if relocation.kind != wanted {
            return Err(self.mismatch(offset, expected, Some(relocation)));
        }
        let symbol = self.object.symbol(relocation.symbol);
        let place = resolve_target(self.object, relocation);
        match place {
            Some((id, at)) if !field.role.is_code() || self.object.section(id).is_code() => {
                Ok(Referent::Here(id, at))
            }
            None if !field.role.is_code() || may_be_the_kernels(field.role, symbol) => {
                Ok(Referent::Symbol(relocation.symbol, relocation.addend))
            }
            None if matches!(symbol.place, Place::In(_)) => Err(SpecialError::Outside {
                section: self.section.name.to_string(),
                offset,
            }),
            _ => Err(SpecialError::NotCode {
                section: self.section.name.to_string(),
                offset,
                symbol: self.object.symbol_name(relocation.symbol).to_owned(),
            }),
        }
    }

    fn mismatch(
        &self,
        offset: u64,
        expected: &'static str,
        found: Option<&Relocation>,
    ) -> SpecialError {
        let found = match found {
            Some(r) => relocation_name(r.kind),
            None => "no relocation".to_string(),
        };
        SpecialError::Field {
            section: self.section.name.to_string(),
            offset,
            expected,
            found,
        }
    }

    /// The plain fields; offsets as in the rows of [`SpecialKind::layout`].
    fn data(&self, bytes: &[u8], key_bits: u64) -> EntryData {
        let u8_at = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let u16_at = |at: usize| u16::from_le_bytes([u8_at(at), u8_at(at + 1)]);
        let (after_word, size) = (WORD as usize, self.layout.size as usize);
        match self.kind {
            // `line` and `flags` are the last two of every layout.
            SpecialKind::BugTable => EntryData::Bug {
                line: u16_at(size - 4),
                flags: u16_at(size - 2),
            },
            SpecialKind::JumpTable => EntryData::Jump {
                branch: key_bits & 1 != 0,
                nop: key_bits & 2 != 0,
            },
            SpecialKind::StaticCallSites => EntryData::StaticCall {
                tail: key_bits & 1 != 0,
            },
            SpecialKind::AltInstructions => {
                let length = self.layout.site_len.unwrap_or(0) as usize;
                // Before Linux 6.3 there are no flags but one, in `cpuid`.
                let cpuid = u16_at(8);
                let (feature, flags) = match length {
                    10 => (cpuid & !CPUID_NOT, u16::from(cpuid & CPUID_NOT != 0)),
                    _ => (cpuid, u16_at(10)),
                };
                EntryData::Alternative {
                    feature,
                    flags: AlternativeFlags {
                        not: flags & ALT_FLAG_NOT != 0,
                        direct_call: flags & ALT_FLAG_DIRECT_CALL != 0,
                        others: flags & !(ALT_FLAG_NOT | ALT_FLAG_DIRECT_CALL),
                    },
                    site_len: u8_at(length),
                    replacement_len: u8_at(length + 1),
                }
            }
            SpecialKind::ParaInstructions => EntryData::Paravirt {
                operation: u8_at(after_word),
                site_len: u8_at(after_word + 1),
            },
            SpecialKind::ExTable => {
                EntryData::Exception(u32::from(u16_at(8)) | u32::from(u16_at(10)) << 16)
            }
            SpecialKind::OrcUnwind => EntryData::Orc([0, 1, 2, 3, 4, 5].map(u8_at)),
            SpecialKind::McountLoc
            | SpecialKind::SmpLocks
            | SpecialKind::RetpolineSites
            | SpecialKind::ReturnSites
            | SpecialKind::OrcUnwindIp
            | SpecialKind::AltInstrReplacement
            | SpecialKind::CallSites
            | SpecialKind::IbtEndbrSeal
            | SpecialKind::CfiSites
            | SpecialKind::KcfiTraps
            | SpecialKind::PatchableFunctionEntries => EntryData::None,
        }
    }
}

/// Whether a field that refers to code may refer to the kernel's. A replacement may: objtool of
/// Linux 5.13 to 5.17 makes such (`arch_rewrite_retpolines`, tools/objtool/arch/x86/decode.c).
fn may_be_the_kernels(role: FieldRole, symbol: &Symbol<'_>) -> bool {
    role == FieldRole::Replacement && symbol.place == Place::Undefined
}

/// The relocation that a field of this form has.
fn relocation_of(form: FieldForm) -> (u32, &'static str) {
    match form {
        FieldForm::Relative32 => (consts::R_X86_64_PC32, "R_X86_64_PC32"),
        FieldForm::RelativeWord => (consts::R_X86_64_PC64, "R_X86_64_PC64"),
        FieldForm::AbsoluteWord => (consts::R_X86_64_64, "R_X86_64_64"),
    }
}

/// Takes the two flag bits off a key reference and gives them. Static keys and
/// static call trampolines are aligned to 4 bytes at least, so the bits are
/// those of the offset or addend.
fn key_bits(references: &mut [Reference]) -> u64 {
    let Some(key) = references.iter_mut().find(|r| r.role == FieldRole::Key) else {
        return 0;
    };
    match &mut key.to {
        Referent::Here(_, offset) => {
            let bits = *offset & 3;
            *offset -= bits;
            bits
        }
        Referent::Symbol(_, addend) => {
            let bits = *addend & 3;
            *addend -= bits;
            bits as u64
        }
        Referent::Nothing => 0,
    }
}
