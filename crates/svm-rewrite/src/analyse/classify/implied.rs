//! Instructions whose operands are implied: strings, `xlat` and ports.

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

use crate::analyse::class::{Class, Port, Repeat, StringOp};
use crate::refusal::RefusalCode;

/// The repetition of a string instruction.
///
/// # Errors
/// Why it is not known.
pub fn string_repeat(iced: &Instruction) -> Result<Repeat, (RefusalCode, &'static str)> {
    let addresses_64 = (0..iced.op_count()).all(|i| {
        matches!(
            iced.op_kind(i),
            OpKind::Register | OpKind::MemorySegRSI | OpKind::MemoryESRDI
        )
    });
    if !addresses_64 || iced.segment_prefix() != Register::None {
        return Err((
            RefusalCode::Unsupported,
            "a string instruction with a segment or 32-bit addresses",
        ));
    }
    Ok(
        match (
            iced.has_rep_prefix() || iced.has_repe_prefix(),
            iced.has_repne_prefix(),
        ) {
            (_, true) => Repeat::Repne,
            (true, false) => Repeat::Rep,
            (false, false) => Repeat::Once,
        },
    )
}

/// The class of `xlat`, if it is one.
///
/// # Errors
/// It does not read `(%rbx,%al)`.
pub fn xlat(iced: &Instruction) -> Result<Option<Class>, (RefusalCode, &'static str)> {
    if iced.mnemonic() != Mnemonic::Xlatb {
        return Ok(None);
    }
    if iced.segment_prefix() == Register::None && iced.memory_base() == Register::RBX {
        Ok(Some(Class::Xlat))
    } else {
        Err((
            RefusalCode::Unsupported,
            "xlat with a segment or a 32-bit address",
        ))
    }
}

/// The refusal of an instruction with an implicit memory operand that has no class of its
/// own.
pub const NO_TRANSLATION: (RefusalCode, &str) = (
    RefusalCode::Unsupported,
    "its memory operand is implicit and has no translation yet",
);

/// Direction and element size of `ins` and `outs`.
pub fn port_string(code: Code) -> Option<Port> {
    let (input, log2) = match code {
        Code::Insb_m8_DX => (true, 0),
        Code::Insw_m16_DX => (true, 1),
        Code::Insd_m32_DX => (true, 2),
        Code::Outsb_DX_m8 => (false, 0),
        Code::Outsw_DX_m16 => (false, 1),
        Code::Outsd_DX_m32 => (false, 2),
        _ => return None,
    };
    Some(Port {
        input,
        log2,
        number: None,
    })
}

/// Operation and log2 of the element size of a string instruction.
pub fn string_op(code: Code) -> Option<(StringOp, u8)> {
    Some(match code {
        Code::Movsb_m8_m8 => (StringOp::Movs, 0),
        Code::Movsw_m16_m16 => (StringOp::Movs, 1),
        Code::Movsd_m32_m32 => (StringOp::Movs, 2),
        Code::Movsq_m64_m64 => (StringOp::Movs, 3),
        Code::Stosb_m8_AL => (StringOp::Stos, 0),
        Code::Stosw_m16_AX => (StringOp::Stos, 1),
        Code::Stosd_m32_EAX => (StringOp::Stos, 2),
        Code::Stosq_m64_RAX => (StringOp::Stos, 3),
        Code::Lodsb_AL_m8 => (StringOp::Lods, 0),
        Code::Lodsw_AX_m16 => (StringOp::Lods, 1),
        Code::Lodsd_EAX_m32 => (StringOp::Lods, 2),
        Code::Lodsq_RAX_m64 => (StringOp::Lods, 3),
        Code::Cmpsb_m8_m8 => (StringOp::Cmps, 0),
        Code::Cmpsw_m16_m16 => (StringOp::Cmps, 1),
        Code::Cmpsd_m32_m32 => (StringOp::Cmps, 2),
        Code::Cmpsq_m64_m64 => (StringOp::Cmps, 3),
        Code::Scasb_AL_m8 => (StringOp::Scas, 0),
        Code::Scasw_AX_m16 => (StringOp::Scas, 1),
        Code::Scasd_EAX_m32 => (StringOp::Scas, 2),
        Code::Scasq_RAX_m64 => (StringOp::Scas, 3),
        _ => return None,
    })
}

/// Direction, width and port of `in` and `out`.
pub fn port(iced: &Instruction) -> Option<Port> {
    let number = |op: u32| match iced.op_kind(op) {
        OpKind::Immediate8 => Some(iced.immediate8()),
        _ => None,
    };
    let (input, log2, port_operand) = match iced.code() {
        Code::In_AL_DX | Code::In_AL_imm8 => (true, 0, 1),
        Code::In_AX_DX | Code::In_AX_imm8 => (true, 1, 1),
        Code::In_EAX_DX | Code::In_EAX_imm8 => (true, 2, 1),
        Code::Out_DX_AL | Code::Out_imm8_AL => (false, 0, 0),
        Code::Out_DX_AX | Code::Out_imm8_AX => (false, 1, 0),
        Code::Out_DX_EAX | Code::Out_imm8_EAX => (false, 2, 0),
        _ => return None,
    };
    Some(Port {
        input,
        log2,
        number: number(port_operand),
    })
}
