//! Reads the ELF header and the section header table: whether this is an x86-64 object
//! at all.

use goblin::container::Ctx;
use goblin::elf::Elf;
use goblin::elf::header::{self, Header};
use goblin::elf::section_header::SectionHeader;

use super::error::ReadError;
use super::machine::{ElfMachine, TAKEN};

/// Offset of `e_machine`, the same in both classes (gABI chapter 4).
const E_MACHINE: usize = 18;

/// How LLVM's bitcode begins, and its wrapper ("LLVM Bitcode File Format", llvm.org).
const BITCODE: [[u8; 4]; 2] = [*b"BC\xc0\xde", [0xde, 0xc0, 0x17, 0x0b]];

/// The checked ELF header.
pub(super) fn file_header(bytes: &[u8]) -> Result<Header, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    if BITCODE.iter().any(|magic| bytes.starts_with(magic)) {
        return Err(ReadError::Bitcode);
    }
    if !bytes.starts_with(header::ELFMAG) {
        return Err(ReadError::NotElf {
            start: bytes.iter().take(4).copied().collect(),
        });
    }
    let class = *bytes
        .get(header::EI_CLASS)
        .ok_or_else(|| short_header(bytes, 64))?;
    let (bits, length) = match class {
        header::ELFCLASS32 => (32, header::header32::SIZEOF_EHDR),
        header::ELFCLASS64 => (64, header::header64::SIZEOF_EHDR),
        other => return Err(damaged(format!("its class is {other}, neither 1 nor 2"))),
    };
    if bytes.len() < length {
        return Err(short_header(bytes, length as u64));
    }
    let machine = [bytes[E_MACHINE], bytes[E_MACHINE + 1]];
    let machine = match bytes[header::EI_DATA] {
        header::ELFDATA2LSB => ElfMachine::new(u16::from_le_bytes(machine), bits, false),
        header::ELFDATA2MSB => ElfMachine::new(u16::from_be_bytes(machine), bits, true),
        other => {
            return Err(damaged(format!(
                "its byte order is {other}, neither 1 nor 2"
            )));
        }
    };
    if machine != TAKEN {
        return Err(ReadError::Machine(machine));
    }
    let header = Elf::parse_header(bytes).map_err(|e| damaged(e.to_string()))?;
    if header.e_type != header::ET_REL {
        return Err(ReadError::NotRelocatable {
            what: file_type(header.e_type),
        });
    }
    Ok(header)
}

fn file_type(e_type: u16) -> String {
    match e_type {
        header::ET_EXEC => "an executable".into(),
        header::ET_DYN => "a shared object or position-independent executable".into(),
        header::ET_CORE => "a core dump".into(),
        other => format!("an ELF file of type {other}"),
    }
}

fn short_header(bytes: &[u8], length: u64) -> ReadError {
    let what = "the ELF header".into();
    ReadError::Truncated {
        what,
        start: 0,
        end: length,
        len: bytes.len() as u64,
    }
}

/// A header that cannot be right.
pub(super) fn damaged(problem: String) -> ReadError {
    ReadError::Header { problem }
}

/// The section header table.
pub(super) fn section_headers(
    bytes: &[u8],
    header: &Header,
    ctx: Ctx,
) -> Result<Vec<SectionHeader>, ReadError> {
    let entry = SectionHeader::size(ctx);
    match (header.e_shoff, header.e_shnum) {
        (0, _) => return Err(damaged("it has no section headers".into())),
        // The number is in the first of them (gABI 4, e_shnum).
        (_, 0) => return Err(ReadError::ManySections),
        _ => {}
    }
    if usize::from(header.e_shentsize) != entry {
        let found = header.e_shentsize;
        return Err(damaged(format!(
            "e_shentsize is {found}, but a section header has {entry} bytes"
        )));
    }
    let size = entry as u64 * u64::from(header.e_shnum);
    let table = part(bytes, header.e_shoff, size, || {
        "the section header table".into()
    })?;
    SectionHeader::parse_from(table, 0, header.e_shnum.into(), ctx)
        .map_err(|e| damaged(e.to_string()))
}

/// `size` bytes of the file from `start`.
pub(super) fn part(
    bytes: &[u8],
    start: u64,
    size: u64,
    what: impl Fn() -> String,
) -> Result<&[u8], ReadError> {
    if size == 0 {
        return Ok(&[]);
    }
    let end = start.saturating_add(size);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    range
        .and_then(|(start, end)| bytes.get(start..end))
        .ok_or_else(|| ReadError::Truncated {
            what: what(),
            start,
            end,
            len: bytes.len() as u64,
        })
}
