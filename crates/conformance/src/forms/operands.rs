//! Operands for every operand kind of the tables.
//!
//! Registers differ from those that addresses use (`rdi rsi rbx r12 r13 r15`); a mode
//! that needs the same register for both sets it itself.

use iced_x86::{Code, Instruction, OpCodeOperandKind as OperandKind, OpKind, Register};

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
fn in_register(kind: OperandKind) -> OperandKind {
    match kind {
        OperandKind::r8_or_mem => OperandKind::r8_reg,
        OperandKind::r16_or_mem => OperandKind::r16_rm,
        OperandKind::r32_or_mem | OperandKind::r32_or_mem_mpx => OperandKind::r32_rm,
        OperandKind::r64_or_mem | OperandKind::r64_or_mem_mpx => OperandKind::r64_rm,
        OperandKind::mm_or_mem => OperandKind::mm_rm,
        OperandKind::xmm_or_mem => OperandKind::xmm_rm,
        OperandKind::ymm_or_mem => OperandKind::ymm_rm,
        OperandKind::zmm_or_mem => OperandKind::zmm_rm,
        OperandKind::bnd_or_mem_mpx => OperandKind::bnd_reg,
        OperandKind::k_or_mem => OperandKind::k_rm,
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

fn set(i: &mut Instruction, n: u32, kind: OperandKind) -> Option<()> {
    match kind {
        OperandKind::None => {}
        OperandKind::mem
        | OperandKind::mem_mpx
        | OperandKind::mem_mib
        | OperandKind::sibmem
        | OperandKind::r8_or_mem
        | OperandKind::r16_or_mem
        | OperandKind::r32_or_mem
        | OperandKind::r32_or_mem_mpx
        | OperandKind::r64_or_mem
        | OperandKind::r64_or_mem_mpx
        | OperandKind::mm_or_mem
        | OperandKind::xmm_or_mem
        | OperandKind::ymm_or_mem
        | OperandKind::zmm_or_mem
        | OperandKind::bnd_or_mem_mpx
        | OperandKind::k_or_mem => memory(i, n, Register::None),
        OperandKind::mem_offs => absolute(i, n),
        OperandKind::mem_vsib32x | OperandKind::mem_vsib64x => memory(i, n, Register::XMM5),
        OperandKind::mem_vsib32y | OperandKind::mem_vsib64y => memory(i, n, Register::YMM5),
        OperandKind::mem_vsib32z | OperandKind::mem_vsib64z => memory(i, n, Register::ZMM5),
        OperandKind::seg_rSI => i.set_op_kind(n, OpKind::MemorySegRSI),
        OperandKind::es_rDI => i.set_op_kind(n, OpKind::MemoryESRDI),
        OperandKind::seg_rDI => i.set_op_kind(n, OpKind::MemorySegRDI),
        OperandKind::seg_rBX_al => xlat(i, n),
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

fn set_register(i: &mut Instruction, n: u32, kind: OperandKind) -> Option<()> {
    let register = match kind {
        OperandKind::r8_reg | OperandKind::r8_opcode => Register::DL,
        OperandKind::r16_reg
        | OperandKind::r16_reg_mem
        | OperandKind::r16_rm
        | OperandKind::r16_opcode => Register::DX,
        OperandKind::r32_reg
        | OperandKind::r32_reg_mem
        | OperandKind::r32_rm
        | OperandKind::r32_opcode => Register::EDX,
        OperandKind::r64_reg
        | OperandKind::r64_reg_mem
        | OperandKind::r64_rm
        | OperandKind::r64_opcode => Register::RDX,
        OperandKind::r32_vvvv => Register::R8D,
        OperandKind::r64_vvvv => Register::R8,
        OperandKind::seg_reg => Register::DS,
        OperandKind::k_reg | OperandKind::k_rm => Register::K1,
        OperandKind::k_vvvv | OperandKind::kp1_reg => Register::K2,
        OperandKind::mm_reg | OperandKind::mm_rm => Register::MM1,
        OperandKind::xmm_reg | OperandKind::xmm_rm => Register::XMM1,
        OperandKind::xmm_vvvv => Register::XMM2,
        OperandKind::xmmp3_vvvv => Register::XMM4,
        OperandKind::xmm_is4 | OperandKind::xmm_is5 => Register::XMM3,
        OperandKind::ymm_reg | OperandKind::ymm_rm => Register::YMM1,
        OperandKind::ymm_vvvv => Register::YMM2,
        OperandKind::ymm_is4 | OperandKind::ymm_is5 => Register::YMM3,
        OperandKind::zmm_reg | OperandKind::zmm_rm => Register::ZMM1,
        OperandKind::zmm_vvvv => Register::ZMM2,
        OperandKind::zmmp3_vvvv => Register::ZMM4,
        OperandKind::cr_reg => Register::CR0,
        OperandKind::dr_reg => Register::DR0,
        OperandKind::bnd_reg => Register::BND1,
        OperandKind::tmm_reg | OperandKind::tmm_rm => Register::TMM1,
        OperandKind::tmm_vvvv => Register::TMM2,
        OperandKind::es => Register::ES,
        OperandKind::cs => Register::CS,
        OperandKind::ss => Register::SS,
        OperandKind::ds => Register::DS,
        OperandKind::fs => Register::FS,
        OperandKind::gs => Register::GS,
        OperandKind::al => Register::AL,
        OperandKind::cl => Register::CL,
        OperandKind::ax => Register::AX,
        OperandKind::dx => Register::DX,
        OperandKind::eax => Register::EAX,
        OperandKind::rax => Register::RAX,
        OperandKind::st0 => Register::ST0,
        OperandKind::sti_opcode => Register::ST1,
        _ => return None,
    };
    i.set_op_kind(n, OpKind::Register);
    i.set_op_register(n, register);
    Some(())
}

/// A small odd constant: no shift count of zero, no bit outside an operand.
const IMMEDIATE: u8 = 5;

fn set_immediate(i: &mut Instruction, n: u32, kind: OperandKind) -> Option<()> {
    let (op, value) = match kind {
        OperandKind::imm4_m2z => (OpKind::Immediate8, 0),
        OperandKind::imm8 => (OpKind::Immediate8, IMMEDIATE),
        OperandKind::imm8_const_1 => (OpKind::Immediate8, 1),
        OperandKind::imm8sex16 => (OpKind::Immediate8to16, IMMEDIATE),
        OperandKind::imm8sex32 => (OpKind::Immediate8to32, IMMEDIATE),
        OperandKind::imm8sex64 => (OpKind::Immediate8to64, IMMEDIATE),
        OperandKind::imm16 => (OpKind::Immediate16, IMMEDIATE),
        OperandKind::imm32 => (OpKind::Immediate32, IMMEDIATE),
        OperandKind::imm32sex64 => (OpKind::Immediate32to64, IMMEDIATE),
        OperandKind::imm64 => (OpKind::Immediate64, IMMEDIATE),
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

fn set_branch(i: &mut Instruction, n: u32, kind: OperandKind) -> Option<()> {
    match kind {
        OperandKind::br64_1
        | OperandKind::br64_4
        | OperandKind::xbegin_2
        | OperandKind::xbegin_4 => {
            i.set_op_kind(n, OpKind::NearBranch64);
            i.set_near_branch64(0);
        }
        _ => return None,
    }
    Some(())
}
