//! From a decoded instruction to what the interpretation follows of it.
//!
//! Registers that an instruction writes and memory that it reaches come from
//! the decoder's tables (`InstructionInfo`); its explicit operands are compared
//! with that, so that no operand stays unseen. Forms that mean something to a
//! rule get an [`Op`] of their own, with operands that no relocation changes.

use iced_x86::{
    Code as Code86, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, UsedMemory,
};

use crate::allow;
use crate::domain::{Reg, RegSet};
use crate::insn::{
    Access, Alu, Condition, Insn, Memory, Op, Origin, StringKind, TableRead, Target,
};
use crate::violation::Code;

/// Which operand of an instruction a relocation makes. Where it leads is not for
/// classification to see: [`crate::memo`] relies on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// It has none.
    None,
    /// The distance of a branch.
    Branch,
    /// An immediate: some dom0 address.
    Immediate,
    /// A displacement: some dom0 address.
    Displacement,
    /// The displacement of a table entry's tag.
    Tag,
    /// The displacement of a table entry's translation.
    Xlate,
    /// One that was reported.
    Bad,
}

/// A violation with what is left of the instruction.
type Refused = (Code, &'static str, Insn);

/// Turns an instruction into what the interpretation follows of it. Where it
/// stands is for the caller to fill in.
pub fn classify(
    i: &Instruction,
    field: Field,
    linux: bool,
    factory: &mut InstructionInfoFactory,
) -> Result<Insn, Refused> {
    let mut insn = Insn {
        at: 0,
        len: 0,
        flags: i.rflags_modified() != 0,
        relocated: false,
        section: 0,
        writes: RegSet::NONE,
        memory: Memory::NONE,
        op: match linux {
            true => kernel_operation(i, field),
            false => operation(i, field),
        },
    };
    if let Some(writes) = known_writes(insn.op) {
        insn.writes = writes;
        return match addressed(i, field, linux) {
            Ok(()) => Ok(insn),
            Err((code, reason)) => Err((code, reason, insn)),
        };
    }
    let info = factory.info(i);
    for used in info.used_registers() {
        if writes(used.access()) {
            match gpr(used.register()) {
                Some(r) => insn.writes = insn.writes.or(r.set()),
                None if used.register().is_vector_register() => {}
                None if linux && !used.register().is_segment_register() => {}
                None => {
                    return Err((
                        Code::Instruction,
                        "it writes a register of the system",
                        insn,
                    ));
                }
            }
        }
    }
    if linux && i.code() == Code86::In_EAX_DX {
        insn.writes = insn.writes.or(BACKDOOR);
    }
    match memory(i, field, linux, info.used_memory(), &mut insn) {
        Ok(()) => Ok(insn),
        Err((code, reason)) => Err((code, reason, insn)),
    }
}

/// What `in (%dx),%eax` may change where a hypervisor answers it: VMware's
/// "backdoor" gives results in all registers but `rsp` and `rbp`
/// (arch/x86/include/asm/vmware.h; drivers/misc/vmw_balloon.c).
const BACKDOOR: RegSet = RegSet(!(1 << 4 | 1 << 5));

/// The registers that an instruction writes if its [`Op`] tells them all, and
/// that it reaches no memory but a table entry (SDM volume 2, the operation of
/// each). The others are looked up.
fn known_writes(op: Op) -> Option<RegSet> {
    match op {
        Op::Copy { d, .. }
        | Op::Copy32 { d, .. }
        | Op::Constant { d }
        | Op::Lea { d, .. }
        | Op::MoveIfAbove { d, .. }
        | Op::Alu { d, .. } => Some(d.set()),
        Op::Table {
            read: TableRead::CmpTag,
            ..
        }
        | Op::Compare { .. } => Some(RegSet::NONE),
        Op::Table { r, .. } => Some(r.set()),
        Op::Branch(Condition::Above | Condition::NotEqual, _) | Op::Jump(_) => Some(RegSet::NONE),
        _ => None,
    }
}

/// What a relocation may do to the instructions of [`known_writes`].
fn addressed(i: &Instruction, field: Field, linux: bool) -> Result<(), (Code, &'static str)> {
    if i.mnemonic() != Mnemonic::Lea {
        return Ok(());
    }
    if matches!(field, Field::Tag | Field::Xlate) {
        return Err((
            Code::Table,
            "the table's address is not for the driver to know",
        ));
    }
    // Where it leads in a module's own code, `crate::linux` looks at.
    let own = linux && matches!(field, Field::Displacement | Field::None);
    if i.is_ip_rel_memory_operand() && !own {
        return Err((
            Code::AddressForm,
            "code addresses that data may hold are dom0's",
        ));
    }
    Ok(())
}

fn writes(access: OpAccess) -> bool {
    use OpAccess::*;
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// The general-purpose register that this is, or is part of.
fn gpr(r: Register) -> Option<Reg> {
    let full = r.full_register();
    full.is_gpr64().then(|| Reg(full.number() as u8))
}

/// The 64-bit register that this is.
fn gpr64(r: Register) -> Option<Reg> {
    r.is_gpr64().then(|| Reg(r.number() as u8))
}

/// The register that a 32-bit name is part of.
fn gpr32(r: Register) -> Option<Reg> {
    r.is_gpr32().then(|| Reg(r.number() as u8))
}

/// Fills in the explicit memory operand and makes sure there is no other.
fn memory(
    i: &Instruction,
    field: Field,
    linux: bool,
    used: &[UsedMemory],
    insn: &mut Insn,
) -> Result<(), (Code, &'static str)> {
    let explicit = (0..i.op_count()).find(|&n| i.op_kind(n) == OpKind::Memory);
    let silent = matches!(i.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
    let silent = silent || linux && allow::is_cache_hint(i.mnemonic());
    let origin = match linux {
        true => origin(i, field),
        false => Origin::Registers,
    };
    let registers = origin == Origin::Registers;
    if explicit.is_some() && !silent && registers && gpr64(i.memory_base()).is_none() {
        return Err((
            Code::AddressForm,
            "no register holds a translated address here",
        ));
    }
    if is_stack_or_string(i) {
        // Their implicit operands have rules of their own in transfer.rs.
    } else if used.iter().any(|m| explicit.is_none() || !is_operand(m, i))
        && !(linux && explicit.is_none() && allow::verdict_kernel(i) == allow::Verdict::System)
    {
        return Err((Code::Implicit, "it reaches memory that no operand shows"));
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
    insn.memory = Memory {
        access: Access::None,
        indexed: i.memory_index() != Register::None,
        origin,
        size: u16::from(size),
        base: gpr64(i.memory_base()).unwrap_or(Reg::RAX),
        disp: i.memory_displacement64() as i32,
    };
    match field {
        Field::Tag | Field::Xlate => {
            return Err((Code::Table, "not one of the table reads of a check"));
        }
        Field::Displacement if !silent && registers => {
            return Err((Code::Untranslated, "its displacement is an address in dom0"));
        }
        // Reported already.
        Field::Bad => return Ok(()),
        _ if silent => return addressed(i, field, linux),
        _ => {}
    }
    if access == Access::None || insn.memory.size == 0 {
        return Err((
            Code::Implicit,
            "the size of its memory operand is not known",
        ));
    }
    insn.memory.access = access;
    Ok(())
}

/// What happens to the operand, and its size in bytes; 0 if not known.
fn accessed<'a>(uses: impl Iterator<Item = &'a UsedMemory>) -> (Access, u8) {
    uses.fold((Access::None, 0), |(access, size), m| {
        let here = if writes(m.access()) || access == Access::Write {
            Access::Write
        } else {
            Access::Read
        };
        // No listed instruction reaches more than 32 bytes.
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

fn is_prefetch(i: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        i.mnemonic(),
        Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Prefetchw
            // Not listed, but a check may skip them without being broken, too.
            | Prefetch
            | Prefetchwt1
    )
}

fn is_stack_or_string(i: &Instruction) -> bool {
    use Mnemonic::*;
    i.is_string_instruction()
        || matches!(
            i.mnemonic(),
            Push | Pop | Leave | Call | Ret | Pushfq | Popfq
        )
}

/// A bit test of memory by register: the bit offset's register and the
/// operand's width.
fn bit_at(i: &Instruction) -> Option<Op> {
    let by_register = i.op0_kind() == OpKind::Memory && i.op1_kind() == OpKind::Register;
    by_register.then_some(())?;
    let offset = i.op1_register();
    Some(Op::BitAt {
        r: gpr(offset)?,
        bits: (offset.size() * 8) as u8,
    })
}

/// What an address counts from in a module for a stock kernel: `%gs`, or a
/// symbol without any register.
fn origin(i: &Instruction, field: Field) -> Origin {
    let alone = i.memory_index() == Register::None
        && matches!(i.memory_base(), Register::RIP | Register::None);
    match i.segment_prefix() {
        Register::GS => Origin::PerCpu,
        Register::FS => Origin::Registers,
        _ if alone && field == Field::Displacement => Origin::Symbol,
        _ => Origin::Registers,
    }
}

/// What it does in a module for a stock kernel, which has more of them.
fn kernel_operation(i: &Instruction, field: Field) -> Op {
    use Mnemonic::*;
    let memory = |op| i.op_kind(op) == OpKind::Memory;
    let register = |op: u32| (i.op_kind(op) == OpKind::Register).then(|| gpr64(i.op_register(op)));
    match i.mnemonic() {
        Push => register(0)
            .flatten()
            .map_or(Op::Push, |s| Op::PushRegister { s }),
        Pushfq => Op::Push,
        Popfq => Op::PopFlags,
        Mov if memory(1) => register(0).flatten().map_or(Op::Plain, |d| Op::Load { d }),
        Mov if memory(0) => register(1).flatten().map_or(Op::Plain, |s| Op::Store { s }),
        _ => match i.flow_control() {
            FlowControl::IndirectCall => Op::CallIndirect,
            FlowControl::IndirectBranch => Op::JumpIndirect,
            _ if allow::is_cache_hint(i.mnemonic()) => Op::Plain,
            _ => operation(i, field),
        },
    }
}

/// What it does. [`Op::Plain`] is right for everything: its registers are
/// unknown afterwards.
fn operation(i: &Instruction, field: Field) -> Op {
    use Mnemonic::*;
    if i.is_string_instruction() {
        return string(i).unwrap_or(Op::Stop);
    }
    match i.mnemonic() {
        Mov => mov(i),
        Lea => lea(i, field),
        Bt | Bts | Btr | Btc => bit_at(i).unwrap_or(Op::Plain),
        Add | Sub | And | Or | Xor | Shr | Cmp | Inc => arithmetic(i, field),
        Cmova => two_registers(i).map_or(Op::Plain, |(d, s)| Op::MoveIfAbove { d, s }),
        Push => Op::Push,
        Pop if i.op0_kind() == OpKind::Memory => Op::PopMemory,
        Pop => gpr64(i.op0_register()).map_or(Op::Stop, |d| Op::Pop { d }),
        Leave => Op::Leave,
        Ret => Op::Ret,
        Ud2 | Int3 => Op::Stop,
        Cld => Op::Cld,
        Std => Op::Std,
        _ if is_prefetch(i) => Op::Prefetch,
        _ => branch(i),
    }
}

fn branch(i: &Instruction) -> Op {
    match i.flow_control() {
        FlowControl::Next => Op::Plain,
        FlowControl::Call => Op::Call(Target::Bad),
        FlowControl::UnconditionalBranch => Op::Jump(Target::Bad),
        FlowControl::ConditionalBranch => {
            let condition = match i.mnemonic() {
                Mnemonic::Ja => Condition::Above,
                Mnemonic::Jne => Condition::NotEqual,
                _ => Condition::Other,
            };
            Op::Branch(condition, Target::Bad)
        }
        // Not on the allow-list; nothing is known to follow.
        _ => Op::Stop,
    }
}

/// Both operands, if they are 64-bit registers: destination first.
fn two_registers(i: &Instruction) -> Option<(Reg, Reg)> {
    let both = i.op0_kind() == OpKind::Register && i.op1_kind() == OpKind::Register;
    both.then_some(())?;
    Some((gpr64(i.op0_register())?, gpr64(i.op1_register())?))
}

fn is_immediate(kind: OpKind) -> bool {
    use OpKind::*;
    matches!(
        kind,
        Immediate8
            | Immediate16
            | Immediate32
            | Immediate64
            | Immediate8to16
            | Immediate8to32
            | Immediate8to64
            | Immediate32to64
    )
}

fn mov(i: &Instruction) -> Op {
    if i.op0_kind() != OpKind::Register {
        return Op::Plain;
    }
    let d = i.op0_register();
    if is_immediate(i.op1_kind()) {
        return gpr64(d)
            .or(gpr32(d))
            .map_or(Op::Plain, |d| Op::Constant { d });
    }
    if i.op1_kind() != OpKind::Register {
        return Op::Plain;
    }
    let s = i.op1_register();
    match (gpr64(d), gpr64(s), gpr32(d), gpr32(s)) {
        (Some(d), Some(s), ..) => Op::Copy { d, s },
        (_, _, Some(d), Some(s)) => Op::Copy32 { d, s },
        _ => Op::Plain,
    }
}

fn lea(i: &Instruction, field: Field) -> Op {
    let d = i.op0_register();
    let Some(full) = gpr64(d).or(gpr32(d)) else {
        return Op::Plain;
    };
    let base = i.memory_base();
    let inputs = [base, i.memory_index()].into_iter().filter_map(gpr);
    let inputs = inputs.fold(RegSet::NONE, |set, r| set.or(r.set()));
    let simple = d.is_gpr64() && i.memory_index() == Register::None && field == Field::None;
    let offset = gpr64(base)
        .filter(|_| simple)
        .and_then(|base| Some((base, i32::try_from(i.memory_displacement64() as i64).ok()?)));
    Op::Lea {
        d: full,
        inputs,
        offset,
    }
}

fn arithmetic(i: &Instruction, field: Field) -> Op {
    if let Some(op) = table_read(i, field) {
        return op;
    }
    if let (Mnemonic::Cmp, Some((left, right))) = (i.mnemonic(), two_registers(i)) {
        return Op::Compare { left, right };
    }
    immediate(i, field).unwrap_or(Op::Plain)
}

/// `op $imm, %d` with the immediate that is in the bytes.
fn immediate(i: &Instruction, field: Field) -> Option<Op> {
    let op = match i.mnemonic() {
        Mnemonic::Add | Mnemonic::Inc => Alu::Add,
        Mnemonic::Sub => Alu::Sub,
        Mnemonic::And => Alu::And,
        Mnemonic::Or => Alu::Or,
        Mnemonic::Xor => Alu::Xor,
        Mnemonic::Shr => Alu::Shr,
        Mnemonic::Cmp => Alu::Cmp,
        _ => return None,
    };
    if i.op0_kind() != OpKind::Register || field != Field::None {
        return None;
    }
    let r = i.op0_register();
    let (d, wide) = match (gpr64(r), gpr32(r)) {
        (Some(d), _) => (d, true),
        (_, Some(d)) => (d, false),
        _ => return None,
    };
    let imm = match i.mnemonic() {
        Mnemonic::Inc => 1,
        _ if is_immediate(i.op1_kind()) => i32::try_from(i.immediate(1) as i64).ok()?,
        _ => return None,
    };
    Some(Op::Alu { op, d, imm, wide })
}

/// `op twin_stlb(%index), %r`, 64 bits wide, no other form.
fn table_read(i: &Instruction, field: Field) -> Option<Op> {
    let read = match (field, i.mnemonic()) {
        (Field::Tag, Mnemonic::Sub) => TableRead::SubTag,
        (Field::Xlate, Mnemonic::Add) => TableRead::AddXlate,
        (Field::Tag, Mnemonic::Cmp) => TableRead::CmpTag,
        (Field::Xlate, Mnemonic::Xor) => TableRead::XorXlate,
        _ => return None,
    };
    let form = i.op0_kind() == OpKind::Register
        && i.op1_kind() == OpKind::Memory
        && i.memory_index() == Register::None;
    form.then_some(())?;
    Some(Op::Table {
        read,
        r: gpr64(i.op0_register())?,
        index: gpr64(i.memory_base())?,
    })
}

fn string(i: &Instruction) -> Option<Op> {
    use Mnemonic::*;
    let kind = match i.mnemonic() {
        Movsb | Movsw | Movsd | Movsq => StringKind::Movs,
        Stosb | Stosw | Stosd | Stosq => StringKind::Stos,
        Lodsb | Lodsw | Lodsd | Lodsq => StringKind::Lods,
        Cmpsb | Cmpsw | Cmpsd | Cmpsq => StringKind::Cmps,
        Scasb | Scasw | Scasd | Scasq => StringKind::Scas,
        Insb | Insw | Insd => StringKind::Ins,
        Outsb | Outsw | Outsd => StringKind::Outs,
        _ => return None,
    };
    let shift = match i.mnemonic() {
        Movsb | Stosb | Lodsb | Cmpsb | Scasb | Insb | Outsb => 0,
        Movsw | Stosw | Lodsw | Cmpsw | Scasw | Insw | Outsw => 1,
        Movsd | Stosd | Lodsd | Cmpsd | Scasd | Insd | Outsd => 2,
        _ => 3,
    };
    Some(Op::String {
        kind,
        shift,
        rep: i.has_rep_prefix() || i.has_repne_prefix(),
    })
}
