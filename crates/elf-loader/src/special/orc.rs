//! Encodings of `struct orc_entry` (arch/x86/include/asm/orc_types.h): which number stands for
//! which register, and whether an entry that is not there has a type of its own. The size is 6
//! bytes in all of them.
//!
//! Since Linux 6.4 a module says which one it has: `.orc_header` holds a hash of the
//! declarations (scripts/orc_hash.sh, `ORC_HEADER`). Modules of earlier kernels have no such
//! section.

use super::{EntryData, SpecialError, SpecialKind, entries};
use crate::model::Object;

/// Section that names the encoding.
pub const HEADER: &str = ".orc_header";

/// How unwind entries are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Linux 6.3 and before: a call's frame has type 0, and an entry without a register is one
    /// where nothing is known.
    CallIsZero,
    /// Linux 6.4 and later: type 0 is one where nothing is known, a call's frame has type 2.
    Typed,
    /// Linux 7.x: as before, with other numbers of registers.
    Renumbered,
}

/// The hashes by which kernels name the encodings: `scripts/orc_hash.sh` of Linux 6.12 and 7.3
/// over their own header.
const HASHES: [([u8; 20], Encoding); 2] = [
    (
        [
            0xfe, 0x5d, 0x32, 0xbf, 0x58, 0x1b, 0xd6, 0x3b, 0x2c, 0xa9, 0xa5, 0xc6, 0x5b, 0xa5,
            0xa6, 0x25, 0xea, 0xb3, 0xfe, 0x24,
        ],
        Encoding::Typed,
    ),
    (
        [
            0x13, 0x7c, 0x36, 0xad, 0x76, 0x27, 0xc4, 0xdd, 0x55, 0x93, 0x21, 0x76, 0xbb, 0x0e,
            0xcd, 0xbd, 0x50, 0x41, 0xfc, 0x82,
        ],
        Encoding::Renumbered,
    ),
];

/// What an entry's `sp_reg` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Nothing is known there.
    Undefined,
    /// The caller's frame is counted from `rsp`.
    Sp,
    /// It is counted from `rbp`, or from a word that `rbp` leads to.
    Bp,
    /// It is counted from a register of this number (SDM vol. 2, table 2-2), which a function
    /// that aligns its stack has set to an address in its frame.
    Register(u8),
    /// It is counted from something else.
    Other,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Encoding; 3] = [Encoding::CallIsZero, Encoding::Typed, Encoding::Renumbered];

    /// An entry of [`Encoding::CallIsZero`] in this encoding, if its frame is a call's that is
    /// counted from `rsp`, or if it says that nothing is known.
    pub fn encoded(self, entry: [u8; 6]) -> [u8; 6] {
        // ORC_TYPE_CALL
        const CALL: u8 = 2;
        let [low, high, bp_low, bp_high, ..] = entry;
        let (register, kind) = match (self, Encoding::CallIsZero.base(entry)) {
            (Encoding::CallIsZero, _) => return entry,
            (Encoding::Typed, Base::Sp) => (5, CALL),
            (Encoding::Renumbered, Base::Sp) => (3, CALL),
            (Encoding::Typed | Encoding::Renumbered, _) => (0, 0),
        };
        [low, high, bp_low, bp_high, register, kind]
    }

    /// What the frame of an entry is counted from.
    pub fn base(self, entry: [u8; 6]) -> Base {
        // ORC_REG_SP, ORC_REG_BP, ORC_REG_BP_INDIRECT
        let (sp, bp, indirect) = match self {
            Encoding::CallIsZero | Encoding::Typed => (5, 4, 8),
            Encoding::Renumbered => (3, 4, 10),
        };
        match entry[4] & 0xf {
            0 => Base::Undefined,
            register if register == sp => Base::Sp,
            register if register == bp || register == indirect => Base::Bp,
            register => self.register(register),
        }
    }
}

impl Encoding {
    /// The general registers besides `rsp` and `rbp` that an entry may name.
    fn register(self, number: u8) -> Base {
        match (self, number) {
            // ORC_REG_DX, ORC_REG_R10, ORC_REG_R13
            (_, 2) => Base::Register(2),
            (_, 6) => Base::Register(10),
            (_, 7) => Base::Register(13),
            // ORC_REG_DI
            (Encoding::CallIsZero | Encoding::Typed, 3) => Base::Register(7),
            (Encoding::Renumbered, 5) => Base::Register(7),
            // ORC_REG_AX
            (Encoding::Renumbered, 1) => Base::Register(0),
            _ => Base::Other,
        }
    }
}

/// The encoding of a module's unwind entries; `None` if it has none.
///
/// # Errors
/// The header is of a kernel that is not known, or there is none where the entries need one.
pub fn encoding(object: &Object<'_>) -> Result<Option<Encoding>, SpecialError> {
    let Some(table) = object.section_named(SpecialKind::OrcUnwind.name()) else {
        return Ok(None);
    };
    let unknown = |section: &str, reason| SpecialError::Unwind {
        section: section.to_owned(),
        reason,
    };
    if let Some(id) = object.section_named(HEADER) {
        let header = &*object.section(id).data;
        let known = HASHES.iter().find(|(hash, _)| hash == header);
        return match known {
            Some((_, encoding)) => Ok(Some(*encoding)),
            None => Err(unknown(
                HEADER,
                "its hash is of no unwind format of Linux 5.10 to 7.3",
            )),
        };
    }
    // Some kernels before 6.4 have the later encoding without a header. There an entry that
    // names a register has type 2 or more; before, only interrupt frames have, which no
    // module has.
    let typed = entries(object, table)?.iter().any(|entry| {
        matches!(entry.data, EntryData::Orc(bytes) if bytes[4] & 0xf != 0 && bytes[5] & 0b11 > 1)
    });
    match typed {
        false => Ok(Some(Encoding::CallIsZero)),
        true => Err(unknown(
            SpecialKind::OrcUnwind.name(),
            "its entries are in the format of Linux 6.4 and later, but no `.orc_header` says so",
        )),
    }
}
