//! Direct branches: what they do, and which forms they have.

use iced_x86::{Code, FlowControl, Instruction};

/// A direct branch that has a form with a 32-bit displacement, which reaches everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// `jmp`.
    Always,
    /// `jcc`, by the low four bits of its opcode.
    If(u8),
    /// `call`; always near.
    Call,
}

impl Jump {
    /// Bytes of the form with a 32-bit displacement.
    pub fn long_size(self) -> u32 {
        match self {
            Jump::Always | Jump::Call => 5,
            Jump::If(_) => 6,
        }
    }
}

/// `jcc` numbers used by sequences (SDM volume 2, appendix B, table B-10).
pub mod cc {
    /// Below, unsigned: carry.
    pub const B: u8 = 2;
    /// Above or equal, unsigned: no carry.
    pub const AE: u8 = 3;
    /// Equal, zero.
    pub const E: u8 = 4;
    /// Not equal.
    pub const NE: u8 = 5;
    /// Above, unsigned.
    pub const A: u8 = 7;
}

/// A branch on `rcx` that has a form of two bytes only: its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortOnly(u8);

impl ShortOnly {
    /// `jrcxz`
    pub const JRCXZ: ShortOnly = ShortOnly(0xe3);
    /// `loop`
    const LOOP: ShortOnly = ShortOnly(0xe2);
    /// `loope`
    const LOOPE: ShortOnly = ShortOnly(0xe1);
    /// `loopne`
    const LOOPNE: ShortOnly = ShortOnly(0xe0);

    /// The opcode; a displacement of one byte follows.
    pub fn opcode(self) -> u8 {
        self.0
    }
}

/// A direct branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// One that reaches everywhere.
    Jump(Jump),
    /// One that may have to go over a jump.
    ShortOnly(ShortOnly),
}

impl Branch {
    /// The branch that an instruction is; `None` for `xbegin`, for branches on `ecx`,
    /// and for what is no direct branch.
    pub fn of(iced: &Instruction) -> Option<Branch> {
        Some(match iced.code() {
            Code::Jrcxz_rel8_64 => Branch::ShortOnly(ShortOnly::JRCXZ),
            Code::Loop_rel8_64_RCX => Branch::ShortOnly(ShortOnly::LOOP),
            Code::Loope_rel8_64_RCX => Branch::ShortOnly(ShortOnly::LOOPE),
            Code::Loopne_rel8_64_RCX => Branch::ShortOnly(ShortOnly::LOOPNE),
            _ => Branch::Jump(match iced.flow_control() {
                FlowControl::Call => Jump::Call,
                FlowControl::UnconditionalBranch => Jump::Always,
                _ if iced.is_jcc_short_or_near() => {
                    Jump::If((iced.condition_code() as u8).wrapping_sub(1))
                }
                _ => return None,
            }),
        })
    }
}
