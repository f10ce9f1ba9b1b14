//! Operands for every operand kind of the tables.
//!
//! Registers differ from those that addresses use (`rdi rsi rbx r12 r13 r15`); a mode
//! that needs the same register for both sets it itself.

use iced_x86::{Code, Instruction, OpCodeOperandKind as Kind, OpKind, Register};

/// Base register of plain addresses.
pub const BASE: Register = Register::RDI;
/// Index register.
pub const INDEX: Register = Register::RSI;

/// The code with operands chosen, memory operands at `(%rdi)`. `None` for
/// operand kinds that no 64-bit program can have.
pub fn choose(code: Code) -> Option<Instruction> {
    let table = code.op_code();
    let mut instruction = Instruction::default();
    instruction.set_code(code);
    for n in 0..table.op_count() {
        set(&mut instruction, n, table.op_kind(n))?;
    }
    if table.require_op_mask_register() {
        instruction.set_op_mask(Register::K1);
    }
    Some(instruction)
}

/// The code with registers where it has a choice. `None` for those that have
/// none.
pub fn choose_registers(code: Code) -> Option<Instruction> {
    let table = code.op_code();
    let mut instruction = Instruction::default();
    instruction.set_code(code);
    for n in 0..table.op_count() {
        set(&mut instruction, n, in_register(table.op_kind(n)))?;
    }
    if table.require_op_mask_register() {
        instruction.set_op_mask(Register::K1);
    }
    (!has_memory(&instruction) && !has_string_memory(&instruction)).then_some(instruction)
}

/// The register that may stand where memory may.
fn in_register(kind: Kind) -> Kind {
    match kind {
        Kind::r8_or_mem => Kind::r8_reg,
        Kind::r16_or_mem => Kind::r16_rm,
        Kind::r32_or_mem | Kind::r32_or_mem_mpx => Kind::r32_rm,
        Kind::r64_or_mem | Kind::r64_or_mem_mpx => Kind::r64_rm,
        Kind::mm_or_mem => Kind::mm_rm,
        Kind::xmm_or_mem => Kind::xmm_rm,
        Kind::ymm_or_mem => Kind::ymm_rm,
        Kind::zmm_or_mem => Kind::zmm_rm,
        Kind::bnd_or_mem_mpx => Kind::bnd_reg,
        Kind::k_or_mem => Kind::k_rm,
        other => other,
    }
}

/// Whether an operand is written with an address.
pub fn has_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory)
}

/// Whether an operand is the memory at `rsi` or `rdi`.
pub fn has_string_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|n| {
        matches!(
            instruction.op_kind(n),
            OpKind::MemorySegSI
                | OpKind::MemorySegESI
                | OpKind::MemorySegRSI
                | OpKind::MemorySegDI
                | OpKind::MemorySegEDI
                | OpKind::MemorySegRDI
                | OpKind::MemoryESDI
                | OpKind::MemoryESEDI
                | OpKind::MemoryESRDI
        )
    })
}

fn set(i: &mut Instruction, n: u32, kind: Kind) -> Option<()> {
    match kind {
        Kind::None => {}
        Kind::mem
        | Kind::mem_mpx
        | Kind::mem_mib
        | Kind::sibmem
        | Kind::r8_or_mem
        | Kind::r16_or_mem
        | Kind::r32_or_mem
        | Kind::r32_or_mem_mpx
        | Kind::r64_or_mem
        | Kind::r64_or_mem_mpx
        | Kind::mm_or_mem
        | Kind::xmm_or_mem
        | Kind::ymm_or_mem
        | Kind::zmm_or_mem
        | Kind::bnd_or_mem_mpx
        | Kind::k_or_mem => memory(i, n, Register::None),
        Kind::mem_offs => absolute(i, n),
        Kind::mem_vsib32x | Kind::mem_vsib64x => memory(i, n, Register::XMM5),
        Kind::mem_vsib32y | Kind::mem_vsib64y => memory(i, n, Register::YMM5),
        Kind::mem_vsib32z | Kind::mem_vsib64z => memory(i, n, Register::ZMM5),
        Kind::seg_rSI => i.set_op_kind(n, OpKind::MemorySegRSI),
        Kind::es_rDI => i.set_op_kind(n, OpKind::MemoryESRDI),
        Kind::seg_rDI => i.set_op_kind(n, OpKind::MemorySegRDI),
        Kind::seg_rBX_al => xlat(i, n),
        _ => {
            return set_register(i, n, kind)
                .or_else(|| set_immediate(i, n, kind))
                .or_else(|| set_branch(i, n, kind));
        }
    }
    Some(())
}

fn memory(i: &mut Instruction, n: u32, index: Register) {
    i.set_op_kind(n, OpKind::Memory);
    i.set_memory_base(BASE);
    i.set_memory_index(index);
    i.set_memory_index_scale(1);
}

fn absolute(i: &mut Instruction, n: u32) {
    i.set_op_kind(n, OpKind::Memory);
    i.set_memory_displ_size(8);
}

fn xlat(i: &mut Instruction, n: u32) {
    i.set_op_kind(n, OpKind::Memory);
    i.set_memory_base(Register::RBX);
    i.set_memory_index(Register::AL);
}

fn set_register(i: &mut Instruction, n: u32, kind: Kind) -> Option<()> {
    let register = match kind {
        Kind::r8_reg | Kind::r8_opcode => Register::DL,
        Kind::r16_reg | Kind::r16_reg_mem | Kind::r16_rm | Kind::r16_opcode => Register::DX,
        Kind::r32_reg | Kind::r32_reg_mem | Kind::r32_rm | Kind::r32_opcode => Register::EDX,
        Kind::r64_reg | Kind::r64_reg_mem | Kind::r64_rm | Kind::r64_opcode => Register::RDX,
        Kind::r32_vvvv => Register::R8D,
        Kind::r64_vvvv => Register::R8,
        Kind::seg_reg => Register::DS,
        Kind::k_reg | Kind::k_rm => Register::K1,
        Kind::k_vvvv | Kind::kp1_reg => Register::K2,
        Kind::mm_reg | Kind::mm_rm => Register::MM1,
        Kind::xmm_reg | Kind::xmm_rm => Register::XMM1,
        Kind::xmm_vvvv => Register::XMM2,
        Kind::xmmp3_vvvv => Register::XMM4,
        Kind::xmm_is4 | Kind::xmm_is5 => Register::XMM3,
        Kind::ymm_reg | Kind::ymm_rm => Register::YMM1,
        Kind::ymm_vvvv => Register::YMM2,
        Kind::ymm_is4 | Kind::ymm_is5 => Register::YMM3,
        Kind::zmm_reg | Kind::zmm_rm => Register::ZMM1,
        Kind::zmm_vvvv => Register::ZMM2,
        Kind::zmmp3_vvvv => Register::ZMM4,
        Kind::cr_reg => Register::CR0,
        Kind::dr_reg => Register::DR0,
        Kind::bnd_reg => Register::BND1,
        Kind::tmm_reg | Kind::tmm_rm => Register::TMM1,
        Kind::tmm_vvvv => Register::TMM2,
        Kind::es => Register::ES,
        Kind::cs => Register::CS,
        Kind::ss => Register::SS,
        Kind::ds => Register::DS,
        Kind::fs => Register::FS,
        Kind::gs => Register::GS,
        Kind::al => Register::AL,
        Kind::cl => Register::CL,
        Kind::ax => Register::AX,
        Kind::dx => Register::DX,
        Kind::eax => Register::EAX,
        Kind::rax => Register::RAX,
        Kind::st0 => Register::ST0,
        Kind::sti_opcode => Register::ST1,
        _ => return None,
    };
    i.set_op_kind(n, OpKind::Register);
    i.set_op_register(n, register);
    Some(())
}

/// A small odd constant: no shift count of zero, no bit outside an operand.
const IMMEDIATE: u8 = 5;

fn set_immediate(i: &mut Instruction, n: u32, kind: Kind) -> Option<()> {
    let (op, value) = match kind {
        Kind::imm4_m2z => (OpKind::Immediate8, 0),
        Kind::imm8 => (OpKind::Immediate8, IMMEDIATE),
        Kind::imm8_const_1 => (OpKind::Immediate8, 1),
        Kind::imm8sex16 => (OpKind::Immediate8to16, IMMEDIATE),
        Kind::imm8sex32 => (OpKind::Immediate8to32, IMMEDIATE),
        Kind::imm8sex64 => (OpKind::Immediate8to64, IMMEDIATE),
        Kind::imm16 => (OpKind::Immediate16, IMMEDIATE),
        Kind::imm32 => (OpKind::Immediate32, IMMEDIATE),
        Kind::imm32sex64 => (OpKind::Immediate32to64, IMMEDIATE),
        Kind::imm64 => (OpKind::Immediate64, IMMEDIATE),
        _ => return None,
    };
    // `enter` has two immediates; the second one is kept apart.
    let second = n == 1 && i.op_kind(0) == OpKind::Immediate16;
    i.set_op_kind(n, if second { OpKind::Immediate8_2nd } else { op });
    if second {
        i.set_immediate8_2nd(value);
    } else if op == OpKind::Immediate64 {
        i.set_immediate64(u64::from(value));
    } else {
        i.set_immediate32(u32::from(value));
    }
    Some(())
}

fn set_branch(i: &mut Instruction, n: u32, kind: Kind) -> Option<()> {
    match kind {
        Kind::br64_1 | Kind::br64_4 | Kind::xbegin_2 | Kind::xbegin_4 => {
            i.set_op_kind(n, OpKind::NearBranch64);
            i.set_near_branch64(0);
        }
        _ => return None,
    }
    Some(())
}
