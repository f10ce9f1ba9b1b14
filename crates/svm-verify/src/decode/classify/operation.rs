//! What an instruction does: its [`Op`].

use iced_x86::{Code, ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::{OperandField, gpr, gpr32, gpr64};
use crate::decode::allow;
use crate::insn::{
    Alu, BranchTarget, Condition, Gpr, GprSet, Half, Op, StringKind, Sum, TableRead,
};
use crate::schemes;

/// The operation in a module for a stock kernel, which may have more of them.
pub(super) fn kernel_operation(i: &Instruction, field: OperandField) -> Op {
    use Mnemonic::*;
    match i.mnemonic() {
        Push => first_register(i).map_or(Op::Push, |s| Op::PushRegister { s }),
        Pushfq => Op::Push,
        Popfq => Op::PopFlags,
        Xchg => two_registers(i).map_or(Op::Plain, |(a, b)| Op::Exchange { a, b }),
        Mov | Vshufps | Vshufpd if is_misread(i) => Op::Misread,
        _ if allow::is_cache_hint(i.mnemonic()) => Op::Plain,
        _ if allow::is_hypercall(i.mnemonic()) => Op::Plain,
        _ => operation(i, field),
    }
}

/// The operation. [`Op::Plain`] is sound for every instruction: the registers that it
/// writes are unknown afterwards.
pub(super) fn operation(i: &Instruction, field: OperandField) -> Op {
    use Mnemonic::*;
    if i.is_string_instruction() {
        return string(i).unwrap_or(Op::Stop);
    }
    match i.mnemonic() {
        Mov if field == OperandField::WindowStart => {
            gpr64(i.op0_register()).map_or(Op::Stop, |d| Op::WindowStart { d })
        }
        Pext | And | Mov if field == OperandField::WindowMask => cut(i).unwrap_or(Op::Plain),
        Cmp if field == OperandField::Bound => compare_bound(i).unwrap_or(Op::Plain),
        Mov => mov(i, field),
        Lea => lea(i, field),
        Bt | Bts | Btr | Btc => bit_at(i).unwrap_or(Op::Plain),
        Add | Sub | And | Or | Xor | Shr | Cmp | Inc => arithmetic(i, field),
        Cmova => two_registers(i).map_or(Op::Plain, |(d, s)| Op::MoveIfAbove { d, s }),
        Push => Op::Push,
        Pop if i.op0_kind() == OpKind::Memory => Op::PopMemory,
        Pop => gpr64(i.op0_register()).map_or(Op::Stop, |d| Op::Pop { d }),
        Leave => Op::Leave,
        Ret => Op::Ret,
        Nop => Op::Nop,
        Ud2 => Op::Stop,
        Int3 => Op::Breakpoint,
        Cld => Op::Cld,
        Std => Op::Std,
        _ if is_prefetch(i) => Op::Prefetch,
        _ => branch(i),
    }
}

/// Whether a load has another meaning to the kernel of an encrypted guest, which executes it in the
/// processor's place if a device is there. `crate::rules::memory` says which.
fn is_misread(i: &Instruction) -> bool {
    use Register::*;
    let high = i.code() == Code::Mov_r8_rm8 && matches!(i.op0_register(), AH | CH | DH | BH);
    let shuffle = matches!(i.mnemonic(), Mnemonic::Vshufps | Mnemonic::Vshufpd);
    (high || shuffle) && i.op_kinds().any(|kind| kind == OpKind::Memory)
}

/// The first operand, if it is a 64-bit register.
fn first_register(i: &Instruction) -> Option<Gpr> {
    (i.op0_kind() == OpKind::Register).then(|| gpr64(i.op0_register()))?
}

fn branch(i: &Instruction) -> Op {
    match i.flow_control() {
        FlowControl::Next => Op::Plain,
        FlowControl::Call => Op::Call(BranchTarget::Bad),
        FlowControl::IndirectCall => Op::CallIndirect(first_register(i)),
        FlowControl::IndirectBranch => Op::JumpIndirect(first_register(i)),
        FlowControl::UnconditionalBranch => Op::Jump(BranchTarget::Bad),
        FlowControl::ConditionalBranch => {
            let condition = match i.mnemonic() {
                Mnemonic::Ja => Condition::Above,
                Mnemonic::Jne => Condition::NotEqual,
                _ => Condition::Other,
            };
            Op::Branch(condition, BranchTarget::Bad)
        }
        // Not on the allow-list; nothing is known to follow.
        _ => Op::Stop,
    }
}

/// Both operands, if they are 64-bit registers: destination first.
fn two_registers(i: &Instruction) -> Option<(Gpr, Gpr)> {
    let both = i.op0_kind() == OpKind::Register && i.op1_kind() == OpKind::Register;
    both.then_some(())?;
    Some((gpr64(i.op0_register())?, gpr64(i.op1_register())?))
}

/// Whether it is `cmovcc` of two 64-bit registers, or puts an address of 64 bits in one: what a
/// relocation says, and no register.
pub(super) fn moves(i: &Instruction) -> bool {
    // What the decoder says of a displacement of 4 bytes where addresses have 64 bits.
    const OF_64_BITS: u32 = 8;
    let alone = matches!(i.memory_base(), Register::None | Register::RIP)
        && i.memory_index() == Register::None;
    let conditional = i.condition_code() != ConditionCode::None;
    let whole = i.op0_kind() == OpKind::Register && gpr64(i.op0_register()).is_some();
    match i.mnemonic() {
        Mnemonic::Mov => whole && is_immediate(i.op1_kind()),
        Mnemonic::Lea => whole && alone && i.memory_displ_size() == OF_64_BITS,
        _ => conditional && two_registers(i).is_some(),
    }
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

fn mov(i: &Instruction, field: OperandField) -> Op {
    let whole = |op: u32| gpr64(i.op_register(op));
    match (i.op0_kind(), i.op1_kind()) {
        (OpKind::Register, OpKind::Memory) => {
            return whole(0).map_or(Op::Plain, |d| Op::Load { d });
        }
        (OpKind::Memory, OpKind::Register) => {
            return whole(1).map_or(Op::Plain, |s| Op::Store { s });
        }
        (OpKind::Register, _) => {}
        _ => return Op::Plain,
    }
    let d = i.op0_register();
    if is_immediate(i.op1_kind()) {
        let small = u8::try_from(i.immediate(1)).ok();
        let small = small.filter(|_| field == OperandField::None);
        return gpr64(d)
            .or(gpr32(d))
            .map_or(Op::Plain, |d| Op::Constant { d, small });
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

/// `pext twin_window_mask(%rip), %s, %d`, or `and` or `mov` of 64 bits with the mask: what
/// is in `%d` is the mask or less.
fn cut(i: &Instruction) -> Option<Op> {
    let mask = match i.code() {
        Code::VEX_Pext_r64_r64_rm64 => i.op2_kind(),
        Code::And_r64_rm64 | Code::Mov_r64_rm64 => i.op1_kind(),
        _ => return None,
    };
    let form = mask == OpKind::Memory && is_own_constant(i);
    form.then_some(())?;
    gpr64(i.op0_register()).map(|d| Op::Cut { d })
}

/// `cmp twin_lowest(%rip), %r` or `cmp twin_highest(%rip), %r`, of 64 bits.
fn compare_bound(i: &Instruction) -> Option<Op> {
    let form =
        i.code() == Code::Cmp_r64_rm64 && i.op1_kind() == OpKind::Memory && is_own_constant(i);
    form.then_some(())?;
    gpr64(i.op0_register()).map(|r| Op::CompareBound { r })
}

/// Whether its operand in memory is what the relocation says: relative to `rip`, in no segment.
fn is_own_constant(i: &Instruction) -> bool {
    i.memory_base() == Register::RIP && i.segment_prefix() == Register::None
}

fn lea(i: &Instruction, field: OperandField) -> Op {
    let d = i.op0_register();
    let Some(full) = gpr64(d).or(gpr32(d)) else {
        return Op::Plain;
    };
    let base = i.memory_base();
    let inputs = [base, i.memory_index()].into_iter().filter_map(gpr);
    let inputs = inputs.fold(GprSet::NONE, |set, r| set.or(r.set()));
    let simple = d.is_gpr64() && field == OperandField::None;
    let sum = gpr64(base).filter(|_| simple).and_then(|base| sum(i, base));
    Op::Lea {
        d: full,
        inputs,
        sum: sum.unwrap_or(Sum::Other),
    }
}

/// The sum of `lea`, if it begins with this base.
fn sum(i: &Instruction, base: Gpr) -> Option<Sum> {
    let disp = i32::try_from(i.memory_displacement64() as i64).ok()?;
    match (i.memory_index(), i.memory_index_scale(), disp) {
        (Register::None, ..) => Some(Sum::Offset(base, disp)),
        (index, 1, 0) => gpr64(index).map(|index| Sum::Registers(base, index)),
        _ => None,
    }
}

/// The register whose upper half an instruction certainly clears: its destination, of 32
/// bits (SDM volume 1, 3.4.1.1). Not of instructions that write it sometimes only, as
/// `bsf` and `cmpxchg` do, nor of `xchg %eax,%eax`, which is `nop`.
pub(super) fn low_half(i: &Instruction) -> GprSet {
    use Mnemonic::*;
    let writes = matches!(
        i.mnemonic(),
        Mov | Movzx | Movsx | Lea | Add | Adc | Sub | Sbb | And | Or | Xor | Not | Neg | Inc | Dec
    );
    let d = (writes && i.op0_kind() == OpKind::Register).then(|| gpr32(i.op0_register()));
    d.flatten().map_or(GprSet::NONE, Gpr::set)
}

fn arithmetic(i: &Instruction, field: OperandField) -> Op {
    if let Some(op) = table_read(i, field) {
        return op;
    }
    if let (Mnemonic::Cmp, Some((left, right))) = (i.mnemonic(), two_registers(i)) {
        return Op::Compare { left, right };
    }
    if let (Mnemonic::And, Some((d, s))) = (i.mnemonic(), two_registers(i)) {
        return Op::And { d, s };
    }
    if let (Mnemonic::Cmp, OpKind::Memory, OpKind::Register) =
        (i.mnemonic(), i.op0_kind(), i.op1_kind())
    {
        return gpr64(i.op1_register()).map_or(Op::Plain, |s| Op::CompareMemory { s });
    }
    immediate(i, field).unwrap_or(Op::Plain)
}

fn alu(mnemonic: Mnemonic) -> Option<Alu> {
    Some(match mnemonic {
        Mnemonic::Add | Mnemonic::Inc => Alu::Add,
        Mnemonic::Sub => Alu::Sub,
        Mnemonic::And => Alu::And,
        Mnemonic::Or => Alu::Or,
        Mnemonic::Xor => Alu::Xor,
        Mnemonic::Shr => Alu::Shr,
        Mnemonic::Cmp => Alu::Cmp,
        _ => return None,
    })
}

/// `op $imm, %d` with the immediate that is in the bytes.
fn immediate(i: &Instruction, field: OperandField) -> Option<Op> {
    let op = alu(i.mnemonic())?;
    if i.op0_kind() != OpKind::Register || field != OperandField::None {
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

/// `op twin_stlb(%index), %r` as some scheme has it, 64 bits wide, in no segment, no other form.
fn table_read(i: &Instruction, field: OperandField) -> Option<Op> {
    let half = match field {
        OperandField::Tag => Half::Tag,
        OperandField::Xlate => Half::Xlate,
        _ => return None,
    };
    let read = TableRead {
        op: alu(i.mnemonic())?,
        half,
    };
    schemes::is_read(read).then_some(())?;
    let form = i.op0_kind() == OpKind::Register
        && i.op1_kind() == OpKind::Memory
        && i.memory_index() == Register::None
        && i.segment_prefix() == Register::None;
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

fn is_prefetch(i: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        i.mnemonic(),
        Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Prefetchw
            // Not listed, but checks may skip these, too, and still be recognised.
            | Prefetch
            | Prefetchwt1
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
