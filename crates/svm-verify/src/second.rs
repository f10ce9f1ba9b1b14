//! A second opinion on what the bytes are: each instruction is decoded by
//! `yaxpeax-x86` too, which shares neither tables nor authors with iced.
//!
//! It takes what the interpretation is going to believe of an instruction
//! ([`Insn`]) and compares each part of it with the second decoding: length,
//! what it does, branch target, operand registers and constant, the address,
//! size and direction of its memory operand, and the registers that it writes.
//! One decoder's mistake is then a refusal, not a hole.
//!
//! Instructions that a rule refuses already are not asked about. Where the
//! second decoder is known to be wrong, or says less, the form stands in
//! [`known_to_differ`], with the page of the manual.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use yaxpeax_x86::long_mode::{
    AccessVisitor, InstDecoder, Instruction as Second, Opcode, Operand, RegSpec, register_class,
};

use crate::domain::{Reg, RegSet};
use crate::insn::{Access, Alu, Condition, Insn, Op, StringKind, TableRead};

/// SDM volume 2, 2.3.11: no instruction is longer.
const LONGEST: usize = 15;

/// Asks the second decoder about the instruction at the start of `bytes`,
/// which the first one made into `i` and [`crate::classify`] into `insn`.
pub fn agrees(
    decoder: &InstDecoder,
    i: &Instruction,
    insn: &Insn,
    bytes: &[u8],
) -> Result<(), &'static str> {
    // One byte more than the longest: what is too long shall not look cut off.
    let bytes = &bytes[..bytes.len().min(LONGEST + 1)];
    let Ok(second) = decoder.decode_slice(bytes) else {
        return Err("a second decoder reads no instruction here");
    };
    let comparisons: [(bool, &'static str); 4] = [
        (
            length(&second) == i.len(),
            "a second decoder reads another length",
        ),
        (
            does(insn.op, i, &second),
            "a second decoder reads another instruction",
        ),
        (
            reaches(i, insn, &second),
            "a second decoder reads another memory operand",
        ),
        (
            writes(insn, &second),
            "a second decoder reads another destination",
        ),
    ];
    match comparisons.iter().find(|(same, _)| !same) {
        Some((_, reason)) if !known_to_differ(i) => Err(reason),
        _ => Ok(()),
    }
}

/// Forms that the second decoder gets wrong, with where the manual (SDM volume
/// 2) says so.
fn known_to_differ(_i: &Instruction) -> bool {
    false
}

fn length(second: &Second) -> usize {
    use yaxpeax_arch::{AddressBase, LengthedInstruction};
    second.len().to_linear()
}

/// Whether the second decoding does what the interpretation believes.
fn does(op: Op, i: &Instruction, second: &Second) -> bool {
    let opcode = second.opcode();
    match op {
        Op::Plain => !is_special(opcode),
        Op::Copy { d, s } => opcode == Opcode::MOV && registers(second, d, s, 8),
        Op::Copy32 { d, s } => opcode == Opcode::MOV && registers(second, d, s, 4),
        Op::Constant { d } => {
            opcode == Opcode::MOV
                && (register(second, 0, d, 8) || register(second, 0, d, 4))
                && immediate(second, 1) == Some(i.immediate(1) as i64)
        }
        Op::Lea { d, .. } => {
            opcode == Opcode::LEA && (register(second, 0, d, 8) || register(second, 0, d, 4))
        }
        Op::Alu { op, d, imm, wide } => {
            let size = if wide { 8 } else { 4 };
            let constant = match opcode {
                Opcode::INC => Some(1),
                // The encodings `d1 /r` shift by one without saying so.
                _ => immediate(second, 1),
            };
            is_alu(op, opcode) && register(second, 0, d, size) && constant == Some(i64::from(imm))
        }
        Op::Compare { left, right } => {
            opcode == Opcode::CMP && registers(second, left, right, 8)
        }
        Op::MoveIfAbove { d, s } => opcode == Opcode::CMOVA && registers(second, d, s, 8),
        Op::Table { read, r, .. } => opcode == table_opcode(read) && register(second, 0, r, 8),
        Op::Prefetch => is_prefetch(opcode),
        Op::BitAt { r, bits } => {
            matches!(opcode, Opcode::BT | Opcode::BTS | Opcode::BTR | Opcode::BTC)
                && register(second, 1, r, bits / 8)
        }
        Op::Push => opcode == Opcode::PUSH,
        Op::Pop { d } => opcode == Opcode::POP && register(second, 0, d, 8),
        Op::PopMemory => opcode == Opcode::POP && second.operand(0).is_memory(),
        Op::Leave => opcode == Opcode::LEAVE,
        Op::Ret => opcode == Opcode::RETURN && second.operand_count() == 0,
        Op::Call(_) => opcode == Opcode::CALL && same_target(i, second),
        Op::Jump(_) => opcode == Opcode::JMP && same_target(i, second),
        Op::Branch(condition, _) => is_branch(condition, opcode) && same_target(i, second),
        Op::Stop => matches!(opcode, Opcode::UD2 | Opcode::INT),
        Op::Cld => opcode == Opcode::CLD,
        Op::Std => opcode == Opcode::STD,
        Op::String { kind, shift, rep } => is_string(kind, shift, rep, second),
    }
}

/// What the interpretation must know of, so that it is never "any other".
fn is_special(opcode: Opcode) -> bool {
    use Opcode::*;
    let control = matches!(
        opcode,
        CALL | CALLF | JMP | JMPF | LOOP | LOOPZ | LOOPNZ | JRCXZ | RETURN | RETF | INT | IRET
            | SYSCALL | SYSRET | SYSENTER | SYSEXIT | HLT | UD0 | UD1 | UD2
    );
    let stack = matches!(opcode, PUSH | POP | PUSHF | POPF | ENTER | LEAVE);
    let string = matches!(opcode, MOVS | STOS | LODS | CMPS | SCAS | INS | OUTS);
    control || stack || string || opcode.is_jcc() || matches!(opcode, CLD | STD)
}

fn is_alu(op: Alu, opcode: Opcode) -> bool {
    match op {
        Alu::Add => matches!(opcode, Opcode::ADD | Opcode::INC),
        Alu::Sub => opcode == Opcode::SUB,
        Alu::And => opcode == Opcode::AND,
        Alu::Or => opcode == Opcode::OR,
        Alu::Xor => opcode == Opcode::XOR,
        Alu::Shr => opcode == Opcode::SHR,
        Alu::Cmp => opcode == Opcode::CMP,
    }
}

fn table_opcode(read: TableRead) -> Opcode {
    match read {
        TableRead::SubTag => Opcode::SUB,
        TableRead::AddXlate => Opcode::ADD,
        TableRead::CmpTag => Opcode::CMP,
        TableRead::XorXlate => Opcode::XOR,
    }
}

fn is_prefetch(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        PREFETCHNTA | PREFETCH0 | PREFETCH1 | PREFETCH2 | PREFETCHW
    )
}

fn is_branch(condition: Condition, opcode: Opcode) -> bool {
    use Opcode::*;
    match condition {
        Condition::Above => opcode == JA,
        Condition::NotEqual => opcode == JNZ,
        Condition::Other => {
            matches!(opcode, LOOP | LOOPZ | LOOPNZ | JRCXZ)
                || (opcode.is_jcc() && !matches!(opcode, JA | JNZ))
        }
    }
}

fn is_string(kind: StringKind, shift: u8, rep: bool, second: &Second) -> bool {
    let opcode = match kind {
        StringKind::Movs => Opcode::MOVS,
        StringKind::Stos => Opcode::STOS,
        StringKind::Lods => Opcode::LODS,
        StringKind::Cmps => Opcode::CMPS,
        StringKind::Scas => Opcode::SCAS,
    };
    second.opcode() == opcode
        && size(second) == Some(1 << shift)
        && second.prefixes.rep_any() == rep
}

fn size(second: &Second) -> Option<u8> {
    second.mem_size()?.bytes_size()
}

/// Whether a direct branch goes as far as the first decoder says.
fn same_target(i: &Instruction, second: &Second) -> bool {
    let distance = i.near_branch_target().wrapping_sub(i.next_ip());
    immediate(second, 0) == Some(distance as i64)
}

fn is_register(r: RegSpec, expected: Reg, size: u8) -> bool {
    let class = match size {
        8 => register_class::Q,
        4 => register_class::D,
        _ => register_class::W,
    };
    r.class() == class && r.num() == expected.0
}

fn register(second: &Second, n: u8, expected: Reg, size: u8) -> bool {
    matches!(second.operand(n), Operand::Register { reg } if is_register(reg, expected, size))
}

fn registers(second: &Second, d: Reg, s: Reg, size: u8) -> bool {
    register(second, 0, d, size) && register(second, 1, s, size)
}

fn immediate(second: &Second, n: u8) -> Option<i64> {
    Some(match second.operand(n) {
        Operand::ImmediateI8 { imm } => imm.into(),
        Operand::ImmediateU8 { imm } => imm.into(),
        Operand::ImmediateI16 { imm } => imm.into(),
        Operand::ImmediateU16 { imm } => imm.into(),
        Operand::ImmediateI32 { imm } => imm.into(),
        Operand::ImmediateU32 { imm } => imm.into(),
        Operand::ImmediateI64 { imm } => imm,
        Operand::ImmediateU64 { imm } => imm as i64,
        _ => return None,
    })
}

/// Base, index, scale and displacement.
#[derive(PartialEq)]
struct Address {
    base: Option<(u8, u8)>,
    index: Option<(u8, u8)>,
    scale: u8,
    disp: i32,
}

/// A register in an address: number and size. `rip` has no number.
fn part(r: RegSpec) -> Option<(u8, u8)> {
    let class = r.class();
    let number = match class {
        register_class::RIP | register_class::EIP => u8::MAX,
        _ => r.num(),
    };
    Some((number, class.width()))
}

fn first_part(r: Register) -> Option<(u8, u8)> {
    let number = if r.is_ip() { u8::MAX } else { r.number() as u8 };
    (r != Register::None).then_some((number, r.size() as u8))
}

fn address(operand: Operand) -> Option<Address> {
    let (base, index, scale, disp) = match operand {
        Operand::AbsoluteU32 { addr } => (None, None, 1, addr as i32),
        Operand::MemDeref { base } => (part(base), None, 1, 0),
        Operand::Disp { base, disp } => (part(base), None, 1, disp),
        Operand::MemIndexScale { index, scale } => (None, part(index), scale, 0),
        Operand::MemIndexScaleDisp { index, scale, disp } => (None, part(index), scale, disp),
        Operand::MemBaseIndexScale { base, index, scale } => (part(base), part(index), scale, 0),
        Operand::MemBaseIndexScaleDisp {
            base,
            index,
            scale,
            disp,
        } => (part(base), part(index), scale, disp),
        _ => return None,
    };
    Some(Address {
        base,
        index,
        scale,
        disp,
    })
}

/// The explicit memory operand as the first decoder reads it.
fn first_address(i: &Instruction) -> Option<Address> {
    (0..i.op_count()).find(|&n| i.op_kind(n) == OpKind::Memory)?;
    let base = i.memory_base();
    let disp = match base.is_ip() {
        true => i.memory_displacement64().wrapping_sub(i.next_ip()),
        false => i.memory_displacement64(),
    };
    Some(Address {
        base: first_part(base),
        index: first_part(i.memory_index()),
        scale: i.memory_index_scale() as u8,
        disp: disp as i32,
    })
}

/// Whether the explicit memory operand is the same, and what is done there.
fn reaches(i: &Instruction, insn: &Insn, second: &Second) -> bool {
    if let Op::String { .. } = insn.op {
        return true;
    }
    let number = (0..second.operand_count()).find(|&n| second.operand(n).is_memory());
    let Some(n) = number else {
        return first_address(i).is_none();
    };
    first_address(i) == address(second.operand(n)) && used(i, insn, second, n)
}

/// Whether operand number `n` is read or written, by as many bytes.
fn used(i: &Instruction, insn: &Insn, second: &Second, n: u8) -> bool {
    let expected = match insn.op {
        Op::Table { .. } => (Access::Read, 8),
        // Nothing is reached, or nothing happens there.
        Op::Prefetch => return true,
        _ if matches!(i.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) => return true,
        _ => (insn.memory.access, insn.memory.size),
    };
    let access = match second.behavior().operand_access(n) {
        Some(access) if access.is_write() => Access::Write,
        Some(access) if access.is_read() => Access::Read,
        _ => Access::None,
    };
    (access, size(second).map_or(0, u16::from)) == expected
}

/// Collects the general-purpose registers that are written.
struct Written(RegSet);

impl AccessVisitor for Written {
    fn register_write(&mut self, r: RegSpec) {
        let number = match r.class() {
            register_class::Q | register_class::D | register_class::W | register_class::RB => {
                r.num()
            }
            // `ah` to `bh` are 4 to 7: parts of the first four.
            register_class::B => r.num() & 3,
            _ => return,
        };
        self.0 = self.0.or(Reg(number).set());
    }
    fn register_read(&mut self, _: RegSpec) {}
    fn memory_read(&mut self, _: Option<u64>, _: u32) {}
    fn memory_write(&mut self, _: Option<u64>, _: u32) {}
}

/// Whether every register that the second decoding writes is one that the
/// interpretation takes for written. The reverse costs precision only.
fn writes(insn: &Insn, second: &Second) -> bool {
    let mut written = Written(RegSet::NONE);
    // Strings, `bt` on memory and clocks: the decoder does not say.
    let _ = second.behavior().visit_accesses(&mut written);
    written.0.0 & !insn.writes.0 == 0
}
