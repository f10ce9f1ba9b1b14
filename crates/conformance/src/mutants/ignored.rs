//! Prefixes that an instruction ignores (SDM volume 2, 2.1.1 and 2.2.1), told from its bytes.

use iced_x86::{FlowControl, Mnemonic, OpKind, Register};

use super::Piece;

/// Segments, sizes, `lock`, `repne` and `rep`.
pub const LEGACY: [u8; 11] = [
    0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3,
];
/// REX without a bit.
pub const REX: u8 = 0x40;

twin_abi::listed! {
    /// A bit of REX.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Rex {
        /// Of the register or base that ModRM, SIB or the opcode names.
        B = 1,
        /// Of the index.
        X = 2,
        /// Of ModRM's register.
        R = 4,
        /// 64 bits.
        W = 8,
    }
}

/// How many bytes of legacy prefixes an instruction begins with.
pub fn legacy_of(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| LEGACY.contains(b)).count()
}

/// Which byte is its REX.
pub fn rex_of(bytes: &[u8]) -> Option<usize> {
    let at = legacy_of(bytes);
    (bytes[at] & 0xf0 == REX).then_some(at)
}

/// Whether the instruction ignores a legacy prefix before it.
pub fn is_ignored(piece: &Piece, byte: u8) -> bool {
    let i = &piece.decoded;
    let is_wide = rex_of(&piece.bytes).is_some_and(|at| piece.bytes[at] & Rex::W as u8 != 0);
    let goes_on = i.flow_control() == FlowControl::Next && !i.is_stack_instruction();
    match byte {
        // The bases of these segments are zero.
        0x26 | 0x2e | 0x36 | 0x3e => !piece.bytes[..legacy_of(&piece.bytes)]
            .iter()
            .any(|byte| matches!(byte, 0x64 | 0x65)),
        0x64 | 0x65 => goes_on && (i.mnemonic() == Mnemonic::Lea || !names_memory(piece)),
        // REX.W says the width; of what begins with 0f, 66 is part of the opcode.
        0x66 => goes_on && is_wide && !is_long(piece),
        0x67 => goes_on && !names_memory(piece),
        _ => false,
    }
}

/// The bits of REX that the instruction ignores.
pub fn bits(piece: &Piece) -> Vec<Rex> {
    let bytes = &piece.bytes[opcode(&piece.bytes)..];
    match bytes {
        // Operations of `eax` with a constant.
        [0x05 | 0x25 | 0x2d | 0x35 | 0x3d, ..] => vec![Rex::B, Rex::X, Rex::R],
        // Branches to what they say themselves.
        [0x70..=0x7f | 0xe8 | 0xe9 | 0xeb, ..] | [0x0f, 0x80..=0x8f, ..] => Rex::ALL.to_vec(),
        [0x50..=0x5f, ..] => vec![Rex::X, Rex::R, Rex::W],
        [0xb8..=0xbf, ..] => vec![Rex::X, Rex::R],
        [0x0f, 0x38 | 0x3a, ..] | [0xc4 | 0xc5 | 0x62, ..] => Vec::new(),
        [0x0f, opcode, modrm, ..] => {
            let is_group = matches!(opcode, 0x18 | 0xba | 0xc7);
            by_modrm(is_group, *modrm)
        }
        [opcode, modrm, ..] => {
            let is_group = matches!(opcode, 0x80..=0x83 | 0x8f | 0xc0 | 0xc1 | 0xc6 | 0xc7)
                || matches!(opcode, 0xd0..=0xd3 | 0xf6 | 0xf7 | 0xfe | 0xff);
            let mut ignored = by_modrm(is_group, *modrm);
            // The stack's words have 64 bits.
            if piece.decoded.is_stack_instruction() {
                ignored.push(Rex::W);
            }
            ignored
        }
        _ => Vec::new(),
    }
}

/// The bits that a ModRM has no use for. In a group its register is part of the opcode.
fn by_modrm(is_group: bool, modrm: u8) -> Vec<Rex> {
    let (mode, rm) = (modrm >> 6, modrm & 7);
    let mut ignored = Vec::new();
    if is_group {
        ignored.push(Rex::R);
    }
    let has_sib = mode != 3 && rm == 4;
    if !has_sib {
        ignored.push(Rex::X);
    }
    // Relative to `rip`.
    if mode == 0 && rm == 5 {
        ignored.push(Rex::B);
    }
    ignored
}

/// The bit of the register that `lea` or `mov` writes.
pub fn written(piece: &Piece) -> Rex {
    match piece.bytes[opcode(&piece.bytes)] {
        0x8b | 0x8d => Rex::R,
        _ => Rex::B,
    }
}

/// The bit of the register that a copy reads.
pub fn read(piece: &Piece) -> Rex {
    match piece.bytes[opcode(&piece.bytes)] {
        0x8b => Rex::B,
        _ => Rex::R,
    }
}

/// Whether 66 makes its constant shorter, so that another instruction follows.
pub fn has_wide_immediate(piece: &Piece) -> bool {
    let i = &piece.decoded;
    (0..i.op_count()).any(|n| matches!(i.op_kind(n), OpKind::Immediate32 | OpKind::Immediate32to64))
}

/// Whether it names `%ah`, `%ch`, `%dh` or `%bh`, which with any REX are other registers.
pub fn names_high_byte(piece: &Piece) -> bool {
    let i = &piece.decoded;
    let high = [Register::AH, Register::CH, Register::DH, Register::BH];
    (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Register && high.contains(&i.op_register(n)))
}

/// Whether its opcode begins with 0f.
pub fn is_long(piece: &Piece) -> bool {
    piece.bytes[opcode(&piece.bytes)] == 0x0f
}

/// Where the opcode begins.
fn opcode(bytes: &[u8]) -> usize {
    rex_of(bytes).map_or(legacy_of(bytes), |at| at + 1)
}

fn names_memory(piece: &Piece) -> bool {
    let i = &piece.decoded;
    let memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    memory || i.is_string_instruction()
}
