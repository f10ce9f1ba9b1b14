//! Instructions with a memory operand: how the operand is addressed, and whether it can
//! be replaced by `(%reg)`.

use iced_x86::{Code as Op, Instruction, Mnemonic, OpKind, Register};

use crate::analyse::class::{Class, Segment, Space};
use crate::lift::Inst;
use crate::refusal::Code;

/// Memory operands of an instruction.
pub enum MemoryOperands {
    /// None.
    None,
    /// One that it names.
    One,
    /// One that it implies.
    Implicit,
}

/// How an instruction names memory.
pub fn memory_operands(iced: &Instruction) -> MemoryOperands {
    let mut found = MemoryOperands::None;
    for op in 0..iced.op_count() {
        match iced.op_kind(op) {
            OpKind::Memory => found = MemoryOperands::One,
            OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI => return MemoryOperands::Implicit,
            OpKind::Register
            | OpKind::NearBranch16
            | OpKind::NearBranch32
            | OpKind::NearBranch64
            | OpKind::FarBranch16
            | OpKind::FarBranch32
            | OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => {}
        }
    }
    found
}

/// The class of an instruction that names one operand in memory.
///
/// # Errors
/// Why that operand cannot be replaced by `(%reg)`.
pub fn one_memory_operand(inst: &Inst) -> Result<Class, (Code, &'static str)> {
    use Mnemonic as M;
    let iced = &inst.iced;
    if iced.mnemonic() == M::Lea {
        return match iced.memory_base() {
            Register::RIP => Ok(Class::AddressOf),
            Register::EIP => Err((Code::Unsupported, "a 32-bit instruction-relative address")),
            _ => Ok(Class::Plain),
        };
    }
    if is_hint(iced) {
        return Ok(Class::Drop);
    }
    if is_masked(iced) {
        return Err((
            Code::Unsupported,
            "masked-out elements must not be accessed",
        ));
    }
    if iced.is_vsib() {
        return Err((
            Code::Unsupported,
            "gather and scatter reach many places at once",
        ));
    }
    if iced.is_save_restore_instruction() {
        return Err((
            Code::Unsupported,
            "it saves or restores a whole register file",
        ));
    }
    if matches!(
        iced.mnemonic(),
        M::Bndmk | M::Bndcl | M::Bndcn | M::Bndcu | M::Bndldx | M::Bndstx | M::Bndmov
    ) || matches!(
        iced.mnemonic(),
        M::Ldtilecfg | M::Sttilecfg | M::Tileloadd | M::Tileloaddt1 | M::Tilestored
            // Their destination is an address in a register.
            | M::Movdir64b | M::Enqcmd | M::Enqcmds
    ) {
        return Err((Code::Unsupported, "it reaches more than its operand"));
    }
    let space = space(inst)?;
    if is_prefetch(iced.mnemonic()) {
        return Ok(if space == Space::Stack {
            Class::Drop
        } else {
            Class::Prefetch(space)
        });
    }
    let size = iced.memory_size().size();
    if size == 0 || size > 64 {
        return Err((
            Code::Unsupported,
            "the size of its memory operand is not between 1 and 64 bytes",
        ));
    }
    match iced.mnemonic() {
        M::Push | M::Pop if iced.stack_pointer_increment().abs() != 8 => {
            Err((Code::Unsupported, "a push or pop of other than 8 bytes"))
        }
        M::Push if space != Space::Stack => Ok(Class::PushMemory(space)),
        // Its address is computed from `rsp` after the pop; the translation
        // computes it explicitly.
        M::Pop => Ok(Class::PopMemory(space)),
        M::Bt | M::Bts | M::Btr | M::Btc
            if iced.op1_kind() == OpKind::Register
                && (iced.memory_base().is_gpr32() || iced.memory_index().is_gpr32()) =>
        {
            Err((
                Code::Unsupported,
                "a bit string whose address wraps at 4 GiB",
            ))
        }
        M::Bt | M::Bts | M::Btr | M::Btc if iced.op1_kind() == OpKind::Register => {
            Ok(Class::BitString(space))
        }
        _ if space == Space::Stack => Ok(Class::Stack),
        _ => Ok(Class::Memory(space)),
    }
}

/// Cache hints, which compute nothing: dropped. Mnemonic `prefetchw` includes
/// encodings that are reserved for other hints.
fn is_hint(iced: &Instruction) -> bool {
    use Mnemonic as M;
    match iced.mnemonic() {
        M::Cldemote
        | M::Prefetch
        | M::Prefetchit0
        | M::Prefetchit1
        | M::Prefetchwt1
        | M::Reservednop => true,
        M::Prefetchw => iced.code() != Op::Prefetchw_m8,
        _ => false,
    }
}

fn is_masked(iced: &Instruction) -> bool {
    use Mnemonic as M;
    iced.has_op_mask()
        || matches!(
            iced.mnemonic(),
            M::Vmaskmovps | M::Vmaskmovpd | M::Vpmaskmovd | M::Vpmaskmovq
        )
}

fn is_prefetch(m: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        m,
        M::Prefetchnta | M::Prefetcht0 | M::Prefetcht1 | M::Prefetcht2 | M::Prefetchw
    )
}

/// Bytes below `rsp` that an instruction may reach.
const RED_ZONE: i64 = twin_abi::stack::BELOW_RSP;

/// How a memory operand is addressed.
///
/// # Errors
/// Why that cannot be translated.
pub fn space(inst: &Inst) -> Result<Space, (Code, &'static str)> {
    let iced = &inst.iced;
    let (base, index) = (iced.memory_base(), iced.memory_index());
    match base {
        Register::EIP => {
            return Err((Code::Unsupported, "a 32-bit instruction-relative address"));
        }
        Register::RIP if inst.displacement.is_none() => {
            let reason =
                "it reads its own code: an instruction-relative address without relocation";
            return Err((Code::Relocation, reason));
        }
        _ => {}
    }
    // Spills are pushed before the address is computed, which adds their size to the
    // displacement. No sequence pushes so much.
    const SPILLS: i32 = 128;
    let displacement = iced.memory_displacement64() as i32;
    if base.full_register() == Register::RSP && displacement > i32::MAX - SPILLS {
        return Err((
            Code::Unsupported,
            "its displacement from the stack pointer leaves no room for spilled registers",
        ));
    }
    let constant = base == Register::RIP || base == Register::None;
    match iced.segment_prefix() {
        Register::FS => Ok(Space::PerCpu(Segment::Fs)),
        Register::GS => Ok(Space::PerCpu(Segment::Gs)),
        _ if base == Register::RSP && index == Register::None && inst.displacement.is_none() => {
            stack_operand(iced)
        }
        // Without a relocation it is a number, such as a member of a structure
        // at address zero that a compiler saw being reached.
        _ if constant && index == Register::None && inst.displacement.is_some() => {
            Ok(Space::Global)
        }
        _ => Ok(Space::Heap),
    }
}

/// `disp(%rsp)`. Below the stack pointer only instructions that keep the memory there:
/// `smp_mb()` is `lock addl $0,-4(%rsp)`.
fn stack_operand(iced: &Instruction) -> Result<Space, (Code, &'static str)> {
    use Mnemonic as M;
    let keeps = matches!(iced.mnemonic(), M::Add | M::Sub | M::Or | M::Xor)
        && iced.op0_kind() == OpKind::Memory
        && iced.try_immediate(1).is_ok_and(|i| i == 0);
    match iced.memory_displacement64() as i64 {
        0.. => Ok(Space::Stack),
        d if d >= -RED_ZONE && keeps => Ok(Space::Stack),
        _ => Err((Code::RedZone, "it keeps data below the stack pointer")),
    }
}

/// Cache hints that an alternative may choose among.
pub fn is_cache_hint(iced: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        iced.mnemonic(),
        M::Prefetch
            | M::Prefetchw
            | M::Prefetchwt1
            | M::Prefetchnta
            | M::Prefetcht0
            | M::Prefetcht1
            | M::Prefetcht2
            | M::Clflush
            | M::Clflushopt
            | M::Clwb
            | M::Cldemote
    )
}
