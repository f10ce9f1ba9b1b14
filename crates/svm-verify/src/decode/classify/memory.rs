//! The explicit memory operand: the kind of access and its size, and that there is no
//! other memory operand.

use iced_x86::{Code as Code86, Instruction, Mnemonic, OpKind, Register, UsedMemory};

use super::{BOUND, MASK, NOT_IN_WINDOW, OperandField, addressed, gpr32, gpr64, writes};
use crate::decode::{allow, prefix};
use crate::findings::ViolationCode;
use crate::insn::{Access, Gpr, Insn, MemoryOperand, Op, Origin};
use crate::targets::{Instructions, NamedMemory, Reads, Rules};

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
        // There are as many prefixes 65 as 67 (`crate::decode::prefix`).
        NamedMemory::Window if i.segment_prefix() == Register::GS => Origin::Window,
        NamedMemory::WideWindow if i.segment_prefix() == Register::GS => in_wide_window(i),
        NamedMemory::Window | NamedMemory::WideWindow => Origin::Registers,
    };
    let (access, size) = operand_access(i, insn.op, used);
    let transfer = matches!(insn.op, Op::CallIndirect(_) | Op::JumpIndirect(_));
    let anywhere = rules.reads == Reads::Anywhere && access == Access::Read && !transfer;
    let known = gpr64(i.memory_base()).is_some() && field != OperandField::Displacement;
    let origin = match origin {
        // No rule may take it for a place relative to a register.
        Origin::Registers if anywhere && !silent && !known => Origin::Unknown,
        origin => origin,
    };
    let registers = origin == Origin::Registers;
    if silent && origin == Origin::Narrow && i.mnemonic() != Mnemonic::Lea {
        return Err((
            ViolationCode::AddressForm,
            "addresses of 32 bits are not dom0's",
        ));
    }
    if explicit.is_some() && !silent {
        form(i, origin, rules)?;
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
        OperandField::WindowMask => return Err((ViolationCode::Operand, MASK)),
        OperandField::Bound => return Err((ViolationCode::Operand, BOUND)),
        OperandField::Displacement if origin == Origin::Window && !silent => {
            let reason =
                "an address of 32 bits is not extended by its sign: R_X86_64_32 is its relocation";
            return Err((ViolationCode::Relocation, reason));
        }
        OperandField::LowDisplacement if origin != Origin::Window || silent => {
            return Err((ViolationCode::Relocation, NOT_IN_WINDOW));
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

/// Whether the address is made of what its origin asks for.
fn form(
    i: &Instruction,
    origin: Origin,
    rules: &Rules,
) -> Result<(), (ViolationCode, &'static str)> {
    let base = i.memory_base();
    match (origin, rules.named_memory) {
        (Origin::Window, _) => in_window(i),
        (Origin::NearWindow | Origin::Cut, _) => from_window(i),
        (Origin::Registers, memory) if memory.is_window() && gpr64(base).is_none() => Err((
            ViolationCode::Operand,
            "it has neither prefix 65 nor prefix 67",
        )),
        (Origin::Registers, _) if gpr64(base).is_none() => Err((
            ViolationCode::AddressForm,
            "no register holds a translated address here",
        )),
        _ => Ok(()),
    }
}

//      op %gs:disp(%ebase,%eindex,scale)
//
/// With the prefixes 65 and 67: the sum of 32-bit registers and a displacement is cut to
/// 32 bits and added to the window's start (SDM volume 1, 3.7.5 and 3.3.7). Not relative to
/// `eip`, whose place in dom0 no one knows; not in an immediate, a form that no compiler
/// needs (MOV, moffs).
fn in_window(i: &Instruction) -> Result<(), (ViolationCode, &'static str)> {
    let narrow = |r: Register| r == Register::None || gpr32(r).is_some();
    match narrow(i.memory_base()) && narrow(i.memory_index()) && !is_moffs(i.code()) {
        true => Ok(()),
        false => Err((
            ViolationCode::Operand,
            "its address is not made of registers of 32 bits and a displacement",
        )),
    }
}

/// What an operand with the prefix 65 counts from in a window of 42 bits: with 67 as above;
/// without, its base and the window's start, or the latter alone.
fn in_wide_window(i: &Instruction) -> Origin {
    // What the decoder says of a displacement without a base or an index.
    const OF_32_BITS: u32 = 4;
    let (base, index) = (i.memory_base(), i.memory_index());
    let none = base == Register::None && index == Register::None;
    match none {
        true if i.memory_displ_size() == OF_32_BITS => Origin::Window,
        true => Origin::NearWindow,
        false if gpr32(base).is_some() || gpr32(index).is_some() => Origin::Window,
        false => Origin::Cut,
    }
}

//      op %gs:disp(%v)
//      op %gs:disp
//
/// With the prefix 65 alone: at most a base, which `crate::rules` judges, and a displacement,
/// which is less than what is in the window's mirror and its guards.
fn from_window(i: &Instruction) -> Result<(), (ViolationCode, &'static str)> {
    let base = i.memory_base();
    let good = base == Register::None || gpr64(base).is_some();
    match good && i.memory_index() == Register::None && !is_moffs(i.code()) {
        true => Ok(()),
        false => Err((
            ViolationCode::Operand,
            "its address is not made of one register and a displacement",
        )),
    }
}

/// `mov` between the accumulator and an address that is an immediate.
fn is_moffs(code: Code86) -> bool {
    use Code86::*;
    matches!(
        code,
        Mov_AL_moffs8
            | Mov_AX_moffs16
            | Mov_EAX_moffs32
            | Mov_RAX_moffs64
            | Mov_moffs8_AL
            | Mov_moffs16_AX
            | Mov_moffs32_EAX
            | Mov_moffs64_RAX
    )
}

/// What happens to the explicit operand, and its size in bytes; 0 if that is not known.
fn operand_access(i: &Instruction, op: Op, used: &[UsedMemory]) -> (Access, u8) {
    match op {
        Op::Prefetch => (Access::Read, 1),
        // The rule about the offset confines it to the operand's own size.
        Op::BitAt { bits, .. } if i.mnemonic() == Mnemonic::Bt => (Access::Read, bits / 8),
        Op::BitAt { bits, .. } => (Access::Write, bits / 8),
        _ => accessed(used.iter().filter(|m| is_operand(m, i))),
    }
}

/// The same by the decoder's tables.
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
    // `pop` computes its operand's address after it has moved the stack pointer (SDM volume
    // 2, POP), and the decoder counts that.
    let moved = match (i.mnemonic(), base) {
        (Mnemonic::Pop, Register::RSP | Register::ESP) => i.stack_pointer_increment() as u64,
        _ => 0,
    };
    m.base() == base
        && m.index() == i.memory_index()
        && m.displacement() == i.memory_displacement64().wrapping_add(moved)
}

fn is_stack_or_string(i: &Instruction) -> bool {
    use Mnemonic::*;
    i.is_string_instruction()
        || matches!(
            i.mnemonic(),
            Push | Pop | Leave | Call | Ret | Pushfq | Popfq
        )
}

/// What an address is relative to in a module for a stock kernel: `%gs`, a symbol without
/// any register, or zero.
fn origin(i: &Instruction, field: OperandField) -> Origin {
    let alone = i.memory_index() == Register::None
        && matches!(i.memory_base(), Register::RIP | Register::None);
    match i.segment_prefix() {
        Register::GS => Origin::PerCpu,
        Register::FS => Origin::Registers,
        _ if alone && field == OperandField::Displacement => Origin::Symbol,
        _ if prefix::is_narrow(i) => Origin::Narrow,
        _ => Origin::Registers,
    }
}
