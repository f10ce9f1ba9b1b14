//! Compares the operation and its operands: whether the second decoding agrees with the
//! interpretation's beliefs.

use iced_x86::Instruction;
use yaxpeax_x86::long_mode::{Instruction as Second, Opcode, Operand, RegSpec, register_class};

use super::size;
use crate::insn::{Alu, Condition, Gpr, Op, StringKind};

/// Whether the second decoding does what the interpretation believes.
pub(super) fn does(op: Op, i: &Instruction, second: &Second) -> bool {
    let opcode = second.opcode();
    match op {
        Op::Plain | Op::Nop => !is_special(opcode),
        Op::Copy { d, s } => opcode == Opcode::MOV && registers(second, d, s, 8),
        Op::Copy32 { d, s } => opcode == Opcode::MOV && registers(second, d, s, 4),
        Op::Cut { d } => {
            matches!(opcode, Opcode::PEXT | Opcode::AND | Opcode::MOV) && register(second, 0, d, 8)
        }
        Op::And { d, s } => opcode == Opcode::AND && registers(second, d, s, 8),
        Op::WindowStart { d } => opcode == Opcode::MOV && register(second, 0, d, 8),
        Op::Constant { d, .. } => {
            // Of 32 bits, one decoder extends the constant and one does not.
            let value = immediate(second, 1).map(|value| value as u64);
            let (full, low) = (i.immediate(1), i.immediate(1) as u32);
            opcode == Opcode::MOV
                && ((register(second, 0, d, 8) && value == Some(full))
                    || (register(second, 0, d, 4) && value.map(|v| v as u32) == Some(low)))
        }
        Op::Lea { d, .. } => {
            opcode == Opcode::LEA && (register(second, 0, d, 8) || register(second, 0, d, 4))
        }
        Op::Alu { op, d, imm, wide } => {
            let size = if wide { 8 } else { 4 };
            let same = match opcode {
                Opcode::INC => imm == 1,
                // One decoder extends the count and one does not.
                Opcode::SHR => immediate(second, 1).map(|count| count as u8) == Some(imm as u8),
                _ => immediate(second, 1) == Some(i64::from(imm)),
            };
            is_alu(op, opcode) && register(second, 0, d, size) && same
        }
        Op::Compare { left, right } => opcode == Opcode::CMP && registers(second, left, right, 8),
        Op::CompareBound { r } => opcode == Opcode::CMP && register(second, 0, r, 8),
        Op::Exchange { a, b } => {
            let either = registers(second, a, b, 8) || registers(second, b, a, 8);
            opcode == Opcode::XCHG && either
        }
        Op::MoveIfAbove { d, s } => opcode == Opcode::CMOVA && registers(second, d, s, 8),
        Op::Table { read, r, .. } => {
            is_alu(read.op, opcode) && opcode != Opcode::INC && register(second, 0, r, 8)
        }
        Op::Prefetch => is_prefetch(opcode),
        Op::BitAt { r, bits } => {
            matches!(opcode, Opcode::BT | Opcode::BTS | Opcode::BTR | Opcode::BTC)
                && register(second, 1, r, bits / 8)
        }
        Op::Push | Op::PushRegister { .. } => matches!(opcode, Opcode::PUSH | Opcode::PUSHF),
        Op::PopFlags => opcode == Opcode::POPF,
        Op::Misread => {
            matches!(opcode, Opcode::MOV | Opcode::VSHUFPS | Opcode::VSHUFPD)
        }
        Op::Load { d } => opcode == Opcode::MOV && register(second, 0, d, 8),
        Op::Store { s } => opcode == Opcode::MOV && register(second, 1, s, 8),
        Op::CompareMemory { s } => opcode == Opcode::CMP && register(second, 1, s, 8),
        Op::CallIndirect(_) => opcode == Opcode::CALL,
        Op::JumpIndirect(_) => opcode == Opcode::JMP,
        Op::Pop { d } => opcode == Opcode::POP && register(second, 0, d, 8),
        Op::PopMemory => opcode == Opcode::POP && second.operand(0).is_memory(),
        Op::Leave => opcode == Opcode::LEAVE,
        Op::Ret => opcode == Opcode::RETURN && second.operand_count() == 0,
        Op::Call(_) => opcode == Opcode::CALL && same_target(i, second),
        Op::Jump(_) => opcode == Opcode::JMP && same_target(i, second),
        Op::Branch(condition, _) => is_branch(condition, opcode) && same_target(i, second),
        Op::Stop => matches!(opcode, Opcode::UD0 | Opcode::UD1 | Opcode::UD2),
        Op::Breakpoint => opcode == Opcode::INT,
        Op::Cld => opcode == Opcode::CLD,
        Op::Std => opcode == Opcode::STD,
        Op::String { kind, shift, rep } => is_string(kind, shift, rep, second),
    }
}

/// Operations that the interpretation must know, so they must not be [`Op::Plain`].
fn is_special(opcode: Opcode) -> bool {
    use Opcode::*;
    let control = matches!(
        opcode,
        CALL | CALLF
            | JMP
            | JMPF
            | LOOP
            | LOOPZ
            | LOOPNZ
            | JRCXZ
            | RETURN
            | RETF
            | INT
            | IRET
            | SYSCALL
            | SYSRET
            | SYSENTER
            | SYSEXIT
            | HLT
            | UD0
            | UD1
            | UD2
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
        StringKind::Ins => Opcode::INS,
        StringKind::Outs => Opcode::OUTS,
    };
    second.opcode() == opcode
        && size(second) == Some(1 << shift)
        && second.prefixes.rep_any() == rep
}

/// Whether a direct branch goes as far as the first decoder says.
fn same_target(i: &Instruction, second: &Second) -> bool {
    let distance = i.near_branch_target().wrapping_sub(i.next_ip());
    immediate(second, 0) == Some(distance as i64)
}

fn is_register(r: RegSpec, expected: Gpr, size: u8) -> bool {
    let class = match size {
        8 => register_class::Q,
        4 => register_class::D,
        _ => register_class::W,
    };
    r.class() == class && r.num() == expected.0
}

fn register(second: &Second, n: u8, expected: Gpr, size: u8) -> bool {
    matches!(second.operand(n), Operand::Register { reg } if is_register(reg, expected, size))
}

fn registers(second: &Second, d: Gpr, s: Gpr, size: u8) -> bool {
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
