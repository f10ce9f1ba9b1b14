//! WARN and BUG: both are a `ud2`, and the object's table tells them apart.

use std::collections::HashMap;

use elf_loader::link::Linked;

use crate::image::Image;

/// Where a WARN is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    pub(crate) file: u64,
    pub(crate) line: u16,
    pub(crate) is_warning: bool,
}

/// Bytes of `struct bug_entry` (include/asm-generic/bug.h, with relative
/// pointers and file names): `s32 bug_addr_disp, file_disp; u16 line, flags`.
const BUG_ENTRY: usize = 12;
/// `BUGFLAG_WARNING`.
const BUG_IS_WARNING: u16 = 1;

pub(crate) fn warnings(images: &[Image<'_>]) -> HashMap<u64, Warning> {
    let mut all = HashMap::new();
    for image in images {
        let is_table = |l: &&Linked| image.object.section(l.section).name == "__bug_table";
        for table in image.linked.iter().filter(is_table) {
            for (i, entry) in table.bytes.chunks_exact(BUG_ENTRY).enumerate() {
                let (place, warning) = bug(table.address + (i * BUG_ENTRY) as u64, entry);
                all.insert(place, warning);
            }
        }
    }
    all
}

fn bug(at: u64, entry: &[u8]) -> (u64, Warning) {
    let word = |i: usize| i32::from_le_bytes(entry[i..i + 4].try_into().expect("four bytes"));
    let half = |i: usize| u16::from_le_bytes([entry[i], entry[i + 1]]);
    let warning = Warning {
        file: (at + 4).wrapping_add_signed(i64::from(word(4))),
        line: half(8),
        is_warning: half(10) & BUG_IS_WARNING != 0,
    };
    (at.wrapping_add_signed(i64::from(word(0))), warning)
}
