//! The formats of Xen's livepatch loader: notes, `struct livepatch_func`, limits
//! (xen/include/public/sysctl.h, xen/common/livepatch.c and livepatch_elf.c of 4.17).

use elf_loader::Section;
use elf_loader::consts::{SHF_ALLOC, SHT_NOTE};

/// `LIVEPATCH_MAX_SIZE`: most bytes of the file, and of what a section without bytes takes.
pub const MAX_BYTES: u64 = 2 << 20;
/// Fewer sections than this, those of the tables included.
pub const SECTIONS: usize = 1024;
/// Most characters of a symbol's name: `KSYM_NAME_LEN` less its end.
pub const NAME: usize = 127;

/// The array of functions to replace.
pub const FUNCS: &str = ".livepatch.funcs";
/// What its payload must be applied to: here the hypervisor itself.
pub const DEPENDS: &str = ".livepatch.depends";
/// The hypervisor's build-id.
pub const XEN_DEPENDS: &str = ".livepatch.xen_depends";
/// The payload's own.
pub const BUILD_ID: &str = ".note.gnu.build-id";

/// `NT_GNU_BUILD_ID`.
const TYPE: u32 = 3;
/// Its owner, with the zero that ends it.
const OWNER: &[u8; 4] = b"GNU\0";
/// Bytes of a note before its descriptor.
pub const NOTE_HEADER: usize = 16;

/// A section with a build-id as a note (gABI, chapter 5).
pub fn note(name: &'static str, id: &[u8; 20]) -> Section<'static> {
    let mut data = Vec::with_capacity(NOTE_HEADER + id.len());
    for word in [OWNER.len() as u32, id.len() as u32, TYPE] {
        data.extend_from_slice(&word.to_le_bytes());
    }
    data.extend_from_slice(OWNER);
    data.extend_from_slice(id);
    Section {
        kind: SHT_NOTE,
        ..Section::with_data(name, SHF_ALLOC, 4, data)
    }
}

/// `struct livepatch_func`:
///
/// ```text
///  0 const char *name   8 void *new_addr  16 void *old_addr (0: by name)
/// 24 u32 new_size      28 u32 old_size    32 u8 version (2), 39 bytes of the loader's own
/// 72 u8 enabled:1, len:5, rsv:2; u8 data[31]: what old_addr has to begin with
/// ```
pub mod func {
    /// Bytes of one.
    pub const SIZE: u64 = 104;
    /// Offset of the name.
    pub const NAME: u64 = 0;
    /// Offset of the new function's address.
    pub const NEW_ADDR: u64 = 8;
    /// Offsets of the sizes.
    const SIZES: (usize, usize) = (24, 28);
    const VERSION: (usize, u8) = (32, 2);
    const EXPECT: usize = 72;

    /// The bytes of one, without its two addresses. `expected` has at most 31.
    pub fn bytes(new_size: u32, old_size: u32, expected: &[u8]) -> [u8; SIZE as usize] {
        let mut bytes = [0; SIZE as usize];
        bytes[SIZES.0..SIZES.0 + 4].copy_from_slice(&new_size.to_le_bytes());
        bytes[SIZES.1..SIZES.1 + 4].copy_from_slice(&old_size.to_le_bytes());
        bytes[VERSION.0] = VERSION.1;
        bytes[EXPECT] = 1 | (expected.len() as u8) << 1;
        bytes[EXPECT + 1..EXPECT + 1 + expected.len()].copy_from_slice(expected);
        bytes
    }
}
