//! The `process` target: a program that is mapped to itself.
//!
//! What reaches memory through a register is translated. What stays as it is:
//! operands relative to `rsp` (any shape), to a frame pointer, to `rip`, to a
//! segment (thread-local variables), absolute ones; all transfers of control, of
//! which indirect ones through memory load their destination by a translation
//! first, jump tables excepted; whatever reaches no memory, of any extension.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::class::{Class, Kind};
use crate::classify::{self, MemoryOperands};
use crate::lift::{Inst, is_filler};
use crate::policy;
use crate::refusal::Code;

/// Classifies one instruction; `by_table` says of an indirect jump that it is one
/// of a function with jump tables or computed gotos.
///
/// # Errors
/// The instruction cannot be rewritten soundly.
pub fn classify(inst: &Inst, by_table: bool) -> Result<Class, (Code, &'static str)> {
    let iced = &inst.iced;
    match iced.flow_control() {
        FlowControl::Next => straight(inst),
        FlowControl::IndirectCall if through_heap(inst) => {
            classify::callee(inst).map(Class::CallIndirect)
        }
        FlowControl::IndirectBranch if through_heap(inst) && !by_table => {
            classify::callee(inst).map(Class::JumpIndirect)
        }
        FlowControl::IndirectCall => Ok(Class::Keep(Some(Kind::IndirectCall))),
        FlowControl::IndirectBranch => Ok(Class::Keep(Some(Kind::IndirectJump))),
        FlowControl::ConditionalBranch
        | FlowControl::UnconditionalBranch
        | FlowControl::Call
        | FlowControl::Return
        | FlowControl::Exception
        | FlowControl::Interrupt
        | FlowControl::XbeginXabortXend => Ok(Class::Keep(None)),
    }
}

fn straight(inst: &Inst) -> Result<Class, (Code, &'static str)> {
    let iced = &inst.iced;
    if let Some((op, log2)) = classify::string_op(iced.code()) {
        return classify::string_repeat(iced).map(|repeat| Class::String(op, log2, repeat));
    }
    if let Some(class) = classify::xlat(iced)? {
        return Ok(class);
    }
    match classify::memory_operands(iced) {
        MemoryOperands::None => Ok(Class::Keep(None)),
        MemoryOperands::Implicit => Err(classify::NO_TRANSLATION),
        MemoryOperands::One if reaches_nothing(iced) => Ok(Class::Keep(None)),
        MemoryOperands::One => match kept_operand(inst) {
            Some(kind) => Ok(Class::Keep(Some(kind))),
            None if iced.has_xacquire_prefix() || iced.has_xrelease_prefix() => {
                Err((Code::Prefix, "lock elision is withdrawn, and not followed"))
            }
            None => classify::one_memory_operand(inst),
        },
    }
}

/// Addresses that are computed only, and hints, which cannot fault.
fn reaches_nothing(iced: &Instruction) -> bool {
    iced.mnemonic() == Mnemonic::Lea || is_filler(iced) || policy::is_cache_hint(iced)
}

/// What an operand is that stays as it is. That of a frame pointer is found
/// later, by [`crate::forward::keep_frame_pointer`].
fn kept_operand(inst: &Inst) -> Option<Kind> {
    let iced = &inst.iced;
    let (base, index) = (iced.memory_base(), iced.memory_index());
    match iced.segment_prefix() {
        Register::FS | Register::GS => return Some(Kind::Percpu),
        _ => {}
    }
    let constant = matches!(base, Register::None | Register::RIP | Register::EIP);
    if base.full_register() == Register::RSP {
        Some(Kind::Stack)
    } else if constant && index == Register::None {
        Some(Kind::Global)
    } else {
        None
    }
}

fn through_heap(inst: &Inst) -> bool {
    inst.iced.op0_kind() == OpKind::Memory && kept_operand(inst).is_none()
}
