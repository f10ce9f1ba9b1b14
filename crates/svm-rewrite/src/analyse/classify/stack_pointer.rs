//! Instructions that move `rsp`: by constants, to a frame's address, to a multiple.

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use liveness::Reg;

use crate::analyse::class::Class;
use crate::analyse::survey::Survey;
use crate::refusal::RefusalCode;

/// The largest alignment of a stack that is followed: eight variants of the function
/// ([`crate::frame::variants`]).
const MAX_ALIGNMENT: u32 = 64;

/// Bytes of a word: what `rsp` moves by.
pub const WORD: i64 = 8;

/// Why a frame that is not made of words is refused.
pub const PART_OF_A_WORD: (RefusalCode, &str) = (
    RefusalCode::StackPointer,
    "rsp is moved by an amount that is not a multiple of 8; callees rely on that",
);

/// Whether `rsp` stays at whole words, as far as the instruction alone tells.
///
/// # Errors
/// It does not.
pub fn in_words(iced: &Instruction) -> Result<(), (RefusalCode, &'static str)> {
    let distance = match iced.code() {
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 | Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 => {
            iced.immediate(1) as i64
        }
        Code::Lea_r64_m if iced.memory_base() == Register::RSP => {
            iced.memory_displacement64() as i64
        }
        _ => return Ok(()),
    };
    let rsp = iced.op0_kind() == OpKind::Register && iced.op0_register() == Register::RSP;
    match rsp && distance % WORD != 0 {
        true => Err(PART_OF_A_WORD),
        false => Ok(()),
    }
}

/// Instructions that move `rsp` other than by `push` and `pop`.
///
/// # Errors
/// It moves by something that is not known.
pub fn stack_pointer(
    iced: &Instruction,
    survey: &Survey,
) -> Result<Option<Class>, (RefusalCode, &'static str)> {
    match iced.code() {
        Code::Leaveq => return Ok(Some(Class::FramePointerToStack)),
        Code::Enterq_imm16_imm8
        | Code::Enterw_imm16_imm8
        | Code::Enterd_imm16_imm8
        | Code::Leavew => {
            return Err((
                RefusalCode::StackPointer,
                "this form of frame set-up is not followed",
            ));
        }
        _ => {}
    }
    if matches!(iced.mnemonic(), Mnemonic::Push | Mnemonic::Pop) {
        let pops_rsp = iced.mnemonic() == Mnemonic::Pop
            && iced.op0_kind() == OpKind::Register
            && iced.op0_register().full_register() == Register::RSP;
        return if pops_rsp {
            Err((RefusalCode::StackPointer, "rsp is loaded from memory"))
        } else {
            Ok(None)
        };
    }
    if !survey.writes(Reg::RSP) {
        return Ok(None);
    }
    let from_register = iced.memory_base().is_gpr64() && iced.memory_index() == Register::None;
    match iced.code() {
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 | Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32
            if iced.op0_kind() == OpKind::Register =>
        {
            Ok(Some(Class::Plain))
        }
        Code::Lea_r64_m
            if iced.memory_base() == Register::RSP && iced.memory_index() == Register::None =>
        {
            Ok(Some(Class::Plain))
        }
        Code::Lea_r64_m if from_register => Ok(Some(Class::FramePointerToStack)),
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64
            if iced.op1_kind() == OpKind::Register && iced.op1_register().is_gpr64() =>
        {
            Ok(Some(Class::FramePointerToStack))
        }
        Code::And_rm64_imm8 | Code::And_rm64_imm32 if iced.op0_kind() == OpKind::Register => {
            realign(iced.immediate(1)).map(Some)
        }
        _ => Err((
            RefusalCode::StackPointer,
            "rsp is moved by other than a constant",
        )),
    }
}

/// `and $-alignment,%rsp`.
fn realign(mask: u64) -> Result<Class, (RefusalCode, &'static str)> {
    let alignment = mask.wrapping_neg();
    if !alignment.is_power_of_two() {
        return Err((
            RefusalCode::StackPointer,
            "rsp is masked by something not an alignment",
        ));
    }
    match alignment <= u64::from(MAX_ALIGNMENT) {
        true => Ok(Class::Realign(alignment as u8)),
        false => Err((
            RefusalCode::StackPointer,
            "the stack is realigned to more than 64 bytes",
        )),
    }
}
