//! The explicit memory operand: the kind of access and its size, and that there is no
//! other memory operand.

use iced_x86::{Instruction, Mnemonic, OpKind, Register, UsedMemory};

use super::{OperandField, addressed, gpr64, writes};
use crate::decode::allow;
use crate::findings::ViolationCode;
use crate::insn::{Access, Gpr, Insn, MemoryOperand, Op, Origin};
use crate::targets::{Instructions, NamedMemory, Rules};

/// Fills in the explicit memory operand and makes sure there is no other.
pub(super) fn memory(
    i: &Instruction,
    field: OperandField,
    rules: &Rules,
    used: &[UsedMemory],
    insn: &mut Insn,
) -> Result<(), (ViolationCode, &'static str)> {
    let explicit = (0..i.op_count()).find(|&n| i.op_kind(n) == OpKind::Memory);
    let silent = matches!(i.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
    let silent =
        silent || rules.instructions == Instructions::Kernel && allow::is_cache_hint(i.mnemonic());
    let origin = match rules.named_memory {
        NamedMemory::None => Origin::Registers,
        NamedMemory::SymbolsAndPerCpu => origin(i, field),
    };
    let registers = origin == Origin::Registers;
    if explicit.is_some() && !silent && registers && gpr64(i.memory_base()).is_none() {
        return Err((
            ViolationCode::AddressForm,
            "no register holds a translated address here",
        ));
    }
    if is_stack_or_string(i) {
        // Their implicit operands have rules of their own (`crate::rules`).
    } else if used.iter().any(|m| explicit.is_none() || !is_operand(m, i))
        && !(explicit.is_none() && allow::is_system(i, rules.instructions))
    {
        return Err((
            ViolationCode::Implicit,
            "it reaches memory that no operand shows",
        ));
    }
    if explicit.is_none() {
        return Ok(());
    }
    let (access, size) = match insn.op {
        Op::Prefetch => (Access::Read, 1),
        // The rule about the offset confines it to the operand's own size.
        Op::BitAt { bits, .. } if i.mnemonic() == Mnemonic::Bt => (Access::Read, bits / 8),
        Op::BitAt { bits, .. } => (Access::Write, bits / 8),
        _ => accessed(used.iter().filter(|m| is_operand(m, i))),
    };
    insn.memory = MemoryOperand {
        access: Access::None,
        indexed: i.memory_index() != Register::None,
        origin,
        size: u16::from(size),
        base: gpr64(i.memory_base()).unwrap_or(Gpr::RAX),
        disp: i.memory_displacement64() as i32,
    };
    match field {
        OperandField::Tag | OperandField::Xlate => {
            return Err((
                ViolationCode::Table,
                "not one of the table reads of a check",
            ));
        }
        OperandField::Displacement if !silent && registers => {
            return Err((
                ViolationCode::Untranslated,
                "its displacement is an address in dom0",
            ));
        }
        // Reported already.
        OperandField::Bad => return Ok(()),
        _ if silent => return addressed(i, field, rules),
        _ => {}
    }
    if access == Access::None || insn.memory.size == 0 {
        return Err((
            ViolationCode::Implicit,
            "the size of its memory operand is not known",
        ));
    }
    insn.memory.access = access;
    Ok(())
}

/// What happens to the operand, and its size in bytes; 0 if that is not known.
fn accessed<'a>(uses: impl Iterator<Item = &'a UsedMemory>) -> (Access, u8) {
    uses.fold((Access::None, 0), |(access, size), m| {
        let here = if writes(m.access()) || access == Access::Write {
            Access::Write
        } else {
            Access::Read
        };
        // No listed instruction reaches more than 64 bytes.
        (
            here,
            size.max(u8::try_from(m.memory_size().size()).unwrap_or(0)),
        )
    })
}

/// Whether the decoder's entry is the explicit operand.
fn is_operand(m: &UsedMemory, i: &Instruction) -> bool {
    // What is relative to the instruction has no register there.
    let base = match i.memory_base() {
        Register::RIP => Register::None,
        base => base,
    };
    m.base() == base
        && m.index() == i.memory_index()
        && m.displacement() == i.memory_displacement64()
}

fn is_stack_or_string(i: &Instruction) -> bool {
    use Mnemonic::*;
    i.is_string_instruction()
        || matches!(
            i.mnemonic(),
            Push | Pop | Leave | Call | Ret | Pushfq | Popfq
        )
}

/// What an address is relative to in a module for a stock kernel: `%gs`, or a symbol
/// without any register.
fn origin(i: &Instruction, field: OperandField) -> Origin {
    let alone = i.memory_index() == Register::None
        && matches!(i.memory_base(), Register::RIP | Register::None);
    match i.segment_prefix() {
        Register::GS => Origin::PerCpu,
        Register::FS => Origin::Registers,
        _ if alone && field == OperandField::Displacement => Origin::Symbol,
        _ => Origin::Registers,
    }
}
