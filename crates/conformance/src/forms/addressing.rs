//! Addressing forms: the ways that instructions write an address.

use iced_x86::{Instruction, OpKind, Register};

use super::operands::{BASE, INDEX, has_memory};

/// An addressing mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressingForm {
    /// `(%rdi)`
    Base,
    /// `0x18(%rdi)`
    Disp8,
    /// `0x1230(%rdi)`
    Disp32,
    /// `-0x70(%rdi)`
    Negative,
    /// `8(%rdi,%rsi,4)`
    BaseIndex,
    /// `disp(,%rsi,8)`, the displacement being most of the address
    Index,
    /// `symbol(%rip)`
    Rip,
    /// `symbol`, a displacement with a relocation
    Absolute,
    /// `disp` without one
    Constant,
    /// `(%r13)`, which needs a displacement byte
    R13,
    /// `(%r12,%r15,2)`
    HighIndex,
    /// `0x20(%rsp)`, the own frame
    Stack,
    /// `(%rsp,%rsi)`
    StackIndex,
    /// `-0x10(%rbp)`
    FramePointer,
    /// The operand register is also the base: `op (%rdx), %edx`
    OperandIsBase,
    /// The operand register is also the index: `op (%rdi,%rdx)`
    OperandIsIndex,
    /// `op %ah, (%rdi)`: a register that cannot be encoded with REX
    HighByte,
    /// `%gs:0x10(%rdi)`
    Gs,
    /// `%fs:disp`
    Fs,
    /// `4(%edi)`: the address wraps at 4 GiB
    Address32,
    /// Not written at all.
    Implicit,
}

impl AddressingForm {
    /// All modes that write an address.
    pub const ALL: [AddressingForm; 20] = [
        AddressingForm::Base,
        AddressingForm::Disp8,
        AddressingForm::Disp32,
        AddressingForm::Negative,
        AddressingForm::BaseIndex,
        AddressingForm::Index,
        AddressingForm::Rip,
        AddressingForm::Absolute,
        AddressingForm::Constant,
        AddressingForm::R13,
        AddressingForm::HighIndex,
        AddressingForm::Stack,
        AddressingForm::StackIndex,
        AddressingForm::FramePointer,
        AddressingForm::OperandIsBase,
        AddressingForm::OperandIsIndex,
        AddressingForm::HighByte,
        AddressingForm::Gs,
        AddressingForm::Fs,
        AddressingForm::Address32,
    ];
}

/// A displacement that leads into a fixture's memory; low enough for a sign-extended
/// 32-bit field.
pub const ABSOLUTE: u64 = 0x2000_0800;

/// The instruction with its address written in that mode. `None` where the
/// form cannot be.
pub fn write(base: &Instruction, mode: AddressingForm) -> Option<Instruction> {
    let mut i = *base;
    if mode == AddressingForm::Implicit {
        return Some(i);
    }
    if !has_memory(&i) {
        return None;
    }
    if i.memory_base() == Register::None {
        // moffs has one mode only.
        return matches!(mode, AddressingForm::Absolute | AddressingForm::Constant)
            .then(|| absolute(i, 8));
    }
    if i.memory_base() != BASE || i.memory_index() != Register::None {
        // xlat and vector indexes fix the rest of the address.
        return (mode == AddressingForm::Base).then_some(i);
    }
    match mode {
        AddressingForm::Base | AddressingForm::Implicit => {}
        AddressingForm::Disp8 => displace(&mut i, 0x18, 1),
        AddressingForm::Disp32 => displace(&mut i, 0x1230, 8),
        AddressingForm::Negative => displace(&mut i, -0x70, 1),
        AddressingForm::BaseIndex => {
            index(&mut i, INDEX, 4);
            displace(&mut i, 8, 1);
        }
        AddressingForm::Index => {
            i.set_memory_base(Register::None);
            index(&mut i, INDEX, 8);
            displace(&mut i, ABSOLUTE as i64, 8);
        }
        AddressingForm::Rip => {
            i.set_memory_base(Register::RIP);
            displace(&mut i, 0x1000, 8);
        }
        AddressingForm::Absolute | AddressingForm::Constant => i = absolute(i, 8),
        AddressingForm::R13 => i.set_memory_base(Register::R13),
        AddressingForm::HighIndex => {
            i.set_memory_base(Register::R12);
            index(&mut i, Register::R15, 2);
        }
        AddressingForm::Stack => {
            i.set_memory_base(Register::RSP);
            displace(&mut i, 0x20, 1);
        }
        AddressingForm::StackIndex => {
            i.set_memory_base(Register::RSP);
            index(&mut i, INDEX, 1);
        }
        AddressingForm::FramePointer => {
            i.set_memory_base(Register::RBP);
            displace(&mut i, -0x10, 1);
        }
        AddressingForm::OperandIsBase => i.set_memory_base(operand(&i)?.full_register()),
        AddressingForm::OperandIsIndex => {
            let register = operand(&i)?.full_register();
            index(&mut i, register, 1);
        }
        AddressingForm::HighByte => high_byte(&mut i)?,
        AddressingForm::Gs => {
            i.set_segment_prefix(Register::GS);
            displace(&mut i, 0x10, 1);
        }
        AddressingForm::Fs => {
            i = absolute(i, 8);
            i.set_memory_displacement64(0x40);
            i.set_segment_prefix(Register::FS);
        }
        AddressingForm::Address32 => {
            i.set_memory_base(Register::EDI);
            displace(&mut i, 4, 1);
        }
    }
    Some(i)
}

fn displace(i: &mut Instruction, displacement: i64, size: u32) {
    i.set_memory_displacement64(displacement as u64);
    i.set_memory_displ_size(size);
}

fn index(i: &mut Instruction, register: Register, scale: u32) {
    i.set_memory_index(register);
    i.set_memory_index_scale(scale);
}

fn absolute(mut i: Instruction, size: u32) -> Instruction {
    i.set_memory_base(Register::None);
    displace(&mut i, ABSOLUTE as i64, size);
    i
}

/// The first general register operand.
fn operand(i: &Instruction) -> Option<Register> {
    (0..i.op_count())
        .filter(|&n| i.op_kind(n) == OpKind::Register)
        .map(|n| i.op_register(n))
        .find(|r| r.is_gpr() && r.full_register() != Register::RSP)
}

fn high_byte(i: &mut Instruction) -> Option<()> {
    let n = (0..i.op_count())
        .find(|&n| i.op_kind(n) == OpKind::Register && i.op_register(n) == Register::DL)?;
    i.set_op_register(n, Register::DH);
    Some(())
}
