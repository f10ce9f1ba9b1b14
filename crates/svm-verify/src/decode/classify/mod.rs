//! Turns a decoded instruction into an [`Insn`] for the interpretation.
//!
//! The registers that an instruction writes and the memory that it reaches come from
//! the decoder's tables (`InstructionInfo`). Its explicit operands are compared with
//! these, so that no operand is missed. Forms that matter to a rule get an [`Op`] of
//! their own, with operands that no relocation changes.

mod memory;
mod operation;

use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use twin_abi::Processor;

use crate::decode::allow;
use crate::findings::ViolationCode;
use crate::insn::{Alu, Condition, Gpr, GprSet, Insn, MemoryOperand, Op, TableRead};
use crate::targets::{Instructions, NamedMemory, Rules};
use memory::memory;
use operation::{kernel_operation, low_half, moves, operation};

/// Which operand field of an instruction a relocation fills in. Classification
/// does not see where the relocation leads: [`crate::decode::memo`] relies on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandField {
    /// It has none.
    None,
    /// The distance of a branch.
    Branch,
    /// An immediate: some dom0 address.
    Immediate,
    /// A displacement: some dom0 address.
    Displacement,
    /// A displacement: the low half of some dom0 address (schemes with a window).
    LowDisplacement,
    /// The immediate that is the window's start (schemes with a window).
    WindowStart,
    /// The displacement of the mask that cuts an address (scheme `window`).
    WindowMask,
    /// The displacement of a bound of dom0's addresses (schemes with a window).
    Bound,
    /// The displacement of a table entry's tag.
    Tag,
    /// The displacement of a table entry's translation.
    Xlate,
    /// One that was reported.
    Bad,
}

/// A violation, and the instruction as far as it was classified.
type Refused = (ViolationCode, &'static str, Insn);

/// Turns an instruction into an [`Insn`]. The caller fills in its place.
pub fn classify(
    i: &Instruction,
    field: OperandField,
    rules: &Rules,
    factory: &mut InstructionInfoFactory,
) -> Result<Insn, Refused> {
    let mut insn = Insn {
        at: 0,
        len: 0,
        flags: i.rflags_modified() != 0,
        relocated: false,
        moves: rules.instructions == Instructions::Kernel && moves(i),
        section: 0,
        writes: GprSet::NONE,
        results: GprSet::NONE,
        reads: GprSet::NONE,
        stays: GprSet::NONE,
        low: match rules.named_memory {
            NamedMemory::Window | NamedMemory::WideWindow => low_half(i),
            NamedMemory::None | NamedMemory::SymbolsAndPerCpu => GprSet::NONE,
        },
        memory: MemoryOperand::NONE,
        op: match rules.instructions {
            Instructions::Unprivileged => operation(i, field),
            Instructions::Kernel => kernel_operation(i, field),
        },
    };
    if lacks(rules.processor, i, insn.op) {
        return Err((ViolationCode::Instruction, NO_PEXT, insn));
    }
    if let Some(writes) = known_writes(insn.op) {
        (insn.writes, insn.results) = (writes, writes);
        return match addressed(i, field, rules) {
            Ok(()) => Ok(insn),
            Err((code, reason)) => Err((code, reason, insn)),
        };
    }
    let kernel = rules.instructions == Instructions::Kernel;
    let info = factory.info(i);
    let loads = loads(i);
    for used in info.used_registers() {
        let addresses = loads && used.access() == OpAccess::Read;
        if !addresses
            && stays(used.access(), used.register())
            && let Some(r) = gpr(used.register())
        {
            insn.reads = insn.reads.or(r.set());
        }
        if writes(used.access()) {
            match gpr(used.register()) {
                Some(r) => insn.writes = insn.writes.or(r.set()),
                None if used.register().is_vector_register() => {}
                None if kernel && !used.register().is_segment_register() => {}
                None => {
                    return Err((
                        ViolationCode::Instruction,
                        "it writes a register of the system",
                        insn,
                    ));
                }
            }
        }
    }
    // To a processor without them these are `bsf` and `bsr`, which write nothing if nothing is set.
    if matches!(i.mnemonic(), Mnemonic::Tzcnt | Mnemonic::Lzcnt) {
        insn.reads = insn.reads.or(insn.writes);
    }
    insn.results = insn.writes;
    if kernel && let Some(writes) = by_hypervisor(i) {
        insn.writes = insn.writes.or(writes);
        insn.stays = writes;
        insn.flags = true;
    }
    match memory(i, field, rules, info.used_memory(), &mut insn) {
        Ok(()) => Ok(insn),
        Err((code, reason)) => Err((code, reason, insn)),
    }
}

/// The registers that a call of the hypervisor may change: results are in others for KVM,
/// Hyper-V and VMware, but compilers rely on `rsp` and `rbp` (arch/x86/include/asm/kvm_para.h).
/// `in (%dx),%eax` may be one, too: VMware's "backdoor" (arch/x86/include/asm/vmware.h;
/// drivers/misc/vmw_balloon.c).
const HYPERVISOR: GprSet = GprSet(!(1 << 4 | 1 << 5));
/// The same of VMware's faster "backdoor", `rep outsb` and `rep insb`: there `rbp` is an argument, which the
/// kernel takes back from the stack (`vmware_hypercall_hb_out`, arch/x86/include/asm/vmware.h).
const BY_BYTES: GprSet = GprSet(!(1 << 4));
/// The same of any other access to a port: `rax rbx rcx rdx rsi rdi`. QEMU makes VMware's call of each, whatever
/// is read or written there and with how many bytes (hw/i386/vmport.c, vmmouse.c); by others drivers
/// call the machine's firmware, which has results in these registers, too (`i8k_smm_func`,
/// drivers/hwmon/dell-smm-hwmon.c; `raise_smi`, drivers/platform/x86/dell/dcdbas.c).
const BY_PORT: GprSet = GprSet(0b1100_1111);

/// What may change if an instruction calls the machine's hypervisor; `None` if it does not.
fn by_hypervisor(i: &Instruction) -> Option<GprSet> {
    use Mnemonic::*;
    match i.code() {
        Code::In_EAX_DX => return Some(HYPERVISOR),
        Code::Outsb_DX_m8 | Code::Insb_m8_DX => return Some(BY_BYTES),
        _ => {}
    }
    match i.mnemonic() {
        In | Out | Insw | Insd | Outsw | Outsd => Some(BY_PORT),
        mnemonic => allow::is_hypercall(mnemonic).then_some(HYPERVISOR),
    }
}

/// Whether the processors that the object says it is for lack an instruction that cuts.
fn lacks(processor: Processor, i: &Instruction, op: Op) -> bool {
    let cuts = matches!(op, Op::Cut { .. }) && i.mnemonic() == Mnemonic::Pext;
    cuts && processor == Processor::Any
}

/// Why `pext` is refused there.
const NO_PEXT: &str = "its note says any processor, and this one is for those with BMI2";

/// The registers that an instruction writes, for those kinds of [`Op`] that name
/// them all and reach no memory but a table entry (SDM volume 2, the operation of
/// each). `None`: only the decoder's tables have them.
fn known_writes(op: Op) -> Option<GprSet> {
    match op {
        Op::Copy { d, .. }
        | Op::Copy32 { d, .. }
        | Op::Constant { d, .. }
        | Op::WindowStart { d }
        | Op::Cut { d }
        | Op::And { d, .. }
        | Op::Lea { d, .. }
        | Op::MoveIfAbove { d, .. }
        | Op::Alu { d, .. } => Some(d.set()),
        Op::Exchange { a, b } => Some(a.set().or(b.set())),
        Op::Table {
            read: TableRead { op: Alu::Cmp, .. },
            ..
        }
        | Op::Compare { .. }
        | Op::CompareBound { .. } => Some(GprSet::NONE),
        Op::Table { r, .. } => Some(r.set()),
        Op::Branch(Condition::Above | Condition::NotEqual, _) | Op::Jump(_) => Some(GprSet::NONE),
        _ => None,
    }
}

/// Whether the address that `lea` computes may be in a register; other
/// instructions of [`known_writes`] compute none.
fn addressed(
    i: &Instruction,
    field: OperandField,
    rules: &Rules,
) -> Result<(), (ViolationCode, &'static str)> {
    if i.mnemonic() != Mnemonic::Lea {
        return Ok(());
    }
    if matches!(field, OperandField::Tag | OperandField::Xlate) {
        return Err((
            ViolationCode::Table,
            "the driver may not have the table's address",
        ));
    }
    if field == OperandField::WindowMask {
        return Err((ViolationCode::Operand, MASK));
    }
    if field == OperandField::Bound {
        return Err((ViolationCode::Operand, BOUND));
    }
    if field == OperandField::LowDisplacement {
        return Err((ViolationCode::Relocation, NOT_IN_WINDOW));
    }
    // An address in a module's own code is for `crate::kernel::references` to judge.
    let own = rules.named_memory == NamedMemory::SymbolsAndPerCpu
        && matches!(field, OperandField::Displacement | OperandField::None);
    if i.is_ip_rel_memory_operand() && !own {
        return Err((
            ViolationCode::AddressForm,
            "code addresses that data may hold are dom0's",
        ));
    }
    Ok(())
}

/// Why a reference to the mask is refused.
const MASK: &str = "the window's mask is read by pext, and, mov of 64 bits alone";

/// Why a reference to a bound is refused.
const BOUND: &str = "a bound of dom0's addresses is read by cmp of 64 bits alone";

/// Why a relocation of the type R_X86_64_32 is refused.
const NOT_IN_WINDOW: &str = "half an address fits only an operand in the window";

/// Whether it loads and computes nothing more: what it reads of registers is an address.
fn loads(i: &Instruction) -> bool {
    use Mnemonic::{Mov, Movsx, Movsxd, Movzx};
    matches!(i.mnemonic(), Mov | Movsx | Movsxd | Movzx) && i.op1_kind() == OpKind::Memory
}

/// Whether something of what a register holds may be in the results: it is read, or not written as
/// a whole.
fn stays(access: OpAccess, register: Register) -> bool {
    const CLEARING: usize = 4; // bytes: a write of 32 bits clears the rest
    match access {
        OpAccess::None | OpAccess::NoMemAccess => false,
        OpAccess::Write => register.size() < CLEARING,
        OpAccess::Read
        | OpAccess::CondRead
        | OpAccess::CondWrite
        | OpAccess::ReadWrite
        | OpAccess::ReadCondWrite => true,
    }
}

fn writes(access: OpAccess) -> bool {
    use OpAccess::*;
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// The general-purpose register that this is, or is part of.
fn gpr(r: Register) -> Option<Gpr> {
    let full = r.full_register();
    full.is_gpr64().then(|| Gpr(full.number() as u8))
}

/// The 64-bit register that this is.
fn gpr64(r: Register) -> Option<Gpr> {
    r.is_gpr64().then(|| Gpr(r.number() as u8))
}

/// The register that a 32-bit name is part of.
fn gpr32(r: Register) -> Option<Gpr> {
    r.is_gpr32().then(|| Gpr(r.number() as u8))
}
