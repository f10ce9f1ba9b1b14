//! Registers as liveness, the encoder and the decoder name them, and which of them an
//! instruction has as operands.

use std::ops::Range;

use iced_x86::{Code, Instruction, OpKind, Register};
use liveness::Reg;

/// The general register that a register is part of.
pub fn gpr(r: Register) -> Option<Reg> {
    GENERAL[r as usize]
}

/// What [`gpr`] gives, by the number of iced's register.
static GENERAL: [Option<Reg>; 256] = {
    /// `register` and those behind it are parts of these, in order.
    const fn put(all: &mut [Option<Reg>; 256], register: Register, parts_of: Range<u8>) {
        let mut n = parts_of.start;
        while n < parts_of.end {
            all[register as usize + (n - parts_of.start) as usize] = Reg::new(n);
            n += 1;
        }
    }
    let mut all = [None; 256];
    put(&mut all, Register::AL, 0..4);
    put(&mut all, Register::AH, 0..4);
    put(&mut all, Register::SPL, 4..16);
    put(&mut all, Register::AX, 0..16);
    put(&mut all, Register::EAX, 0..16);
    put(&mut all, Register::RAX, 0..16);
    all
};

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
    // Operands of another kind, and those that are not there, have none. A fifth never has.
    let all = [
        iced.op0_register(),
        iced.op1_register(),
        iced.op2_register(),
        iced.op3_register(),
    ];
    all.into_iter().filter(|r| *r != Register::None)
}

/// Whether a register is one of the operands.
pub fn names(iced: &Instruction, register: Register) -> bool {
    register_operands(iced).any(|r| r == register)
}

/// Whether an operand is in memory, and shown as one.
pub fn has_memory(iced: &Instruction) -> bool {
    // A fifth operand is never in memory.
    let kinds = [
        iced.op0_kind(),
        iced.op1_kind(),
        iced.op2_kind(),
        iced.op3_kind(),
    ];
    kinds.contains(&OpKind::Memory)
}

/// `ah ch dh bh` cannot be encoded together with a register that needs a REX prefix.
pub fn uses_high_byte(iced: &Instruction) -> bool {
    register_operands(iced)
        .any(|r| matches!(r, Register::AH | Register::CH | Register::DH | Register::BH))
}

/// The second byte of a register that an instruction loads, and the register's first byte.
pub fn loaded_high(iced: &Instruction) -> Option<(Register, Register)> {
    let low = match iced.op0_register() {
        Register::AH => Register::AL,
        Register::CH => Register::CL,
        Register::DH => Register::DL,
        Register::BH => Register::BL,
        _ => return None,
    };
    let loads = iced.code() == Code::Mov_r8_rm8 && has_memory(iced);
    loads.then_some((iced.op0_register(), low))
}

/// Whether an operand is a segment, control, debug or test register.
pub fn names_system_register(iced: &Instruction) -> bool {
    register_operands(iced).any(|r| r.is_segment_register() || r.is_cr() || r.is_dr() || r.is_tr())
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    #[test]
    fn each_part_of_a_general_register_is_one() {
        for r in Register::values() {
            let number = || r.full_register().number() as u8;
            let expected = r.is_gpr().then(|| Reg::new(number())).flatten();
            assert_eq!(gpr(r), expected, "{r:?}");
        }
    }

    /// Of each opcode with some prefixes.
    #[test]
    fn operands_are_those_that_the_decoder_counts() {
        let heads: [&[u8]; 7] = [
            &[],
            &[0x48],
            &[0x66],
            &[0x0f],
            &[0x66, 0x0f],
            &[0xc4, 0xe2],
            &[0x62, 0xf2, 0x7d],
        ];
        for head in heads {
            for opcode in 0..=0xffff_u16 {
                let bytes = [head, &opcode.to_le_bytes(), &[0x11; 11]].concat();
                let iced = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
                let is = |kind| (0..iced.op_count()).filter(move |n| iced.op_kind(*n) == kind);
                let registers = is(OpKind::Register).map(|n| iced.op_register(n));
                assert!(register_operands(&iced).eq(registers), "{iced}");
                assert_eq!(has_memory(&iced), is(OpKind::Memory).count() > 0, "{iced}");
            }
        }
    }
}
