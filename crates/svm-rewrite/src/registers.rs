//! Registers as liveness, the encoder and the decoder name them, and which of them an
//! instruction has as operands.

use iced_x86::{Instruction, OpKind, Register};
use liveness::Reg;

/// The general register that a register is part of.
pub fn gpr(r: Register) -> Option<Reg> {
    if r.is_gpr() {
        Reg::new(r.full_register().number() as u8)
    } else {
        None
    }
}

/// The 64-bit register.
pub fn reg64(r: Reg) -> Register {
    const ALL: [Register; 16] = [
        Register::RAX,
        Register::RCX,
        Register::RDX,
        Register::RBX,
        Register::RSP,
        Register::RBP,
        Register::RSI,
        Register::RDI,
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    ALL[usize::from(r.number())]
}

/// Its lower half.
pub fn reg32(r: Reg) -> Register {
    const ALL: [Register; 16] = [
        Register::EAX,
        Register::ECX,
        Register::EDX,
        Register::EBX,
        Register::ESP,
        Register::EBP,
        Register::ESI,
        Register::EDI,
        Register::R8D,
        Register::R9D,
        Register::R10D,
        Register::R11D,
        Register::R12D,
        Register::R13D,
        Register::R14D,
        Register::R15D,
    ];
    ALL[usize::from(r.number())]
}

/// Its lowest 16 bits.
pub fn reg16(r: Reg) -> Register {
    Register::AX + u32::from(r.number())
}

/// Its lowest 8 bits.
fn reg8(r: Reg) -> Register {
    match u32::from(r.number()) {
        n @ 0..4 => Register::AL + n,
        n @ 4.. => Register::SPL + (n - 4),
    }
}

/// Makes `to`, or the same part of it, each register operand that is `from`. Addresses and
/// implicit operands stay.
pub fn rename(iced: &mut Instruction, from: Reg, to: Reg) {
    for n in 0..iced.op_count() {
        let register = iced.op_register(n);
        if iced.op_kind(n) == OpKind::Register && gpr(register) == Some(from) {
            let part = match register.size() {
                1 => reg8(to),
                2 => reg16(to),
                4 => reg32(to),
                _ => reg64(to),
            };
            iced.set_op_register(n, part);
        }
    }
}

/// The register operands of an instruction, without registers in addresses and without
/// implicit ones.
pub fn register_operands(iced: &Instruction) -> impl Iterator<Item = Register> {
    let named = (0..iced.op_count()).filter(|&n| iced.op_kind(n) == OpKind::Register);
    named.map(|n| iced.op_register(n))
}

/// `ah ch dh bh` cannot be encoded together with a register that needs a REX prefix.
pub fn uses_high_byte(iced: &Instruction) -> bool {
    register_operands(iced)
        .any(|r| matches!(r, Register::AH | Register::CH | Register::DH | Register::BH))
}

/// Whether an operand is a segment, control, debug or test register.
pub fn names_system_register(iced: &Instruction) -> bool {
    register_operands(iced).any(|r| r.is_segment_register() || r.is_cr() || r.is_dr() || r.is_tr())
}
