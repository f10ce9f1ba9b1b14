//! How an address is translated: the instruction sequences of figure 4 and
//! their successors, behind one interface.
//!
//! A scheme emits the check only. It begins with the address being put into
//! `v`, ends with `v` holding the translated address, and overwrites its other
//! registers and the flags. What happens on a miss stands out of line, in
//! [`crate::sequences::Emitter::finish_stubs`].

use iced_x86::{Code, MemoryOperand, Register};
use liveness::Reg;
use twin_abi::stlb;

use crate::asm::{Assembler, Jump, Label, Referent, cc, r, rm};
use crate::encode::{Form, ImmediateForm};
use crate::import::Import;
use crate::registers::reg64;
use crate::sequences::Address;

/// A translation scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Figure 4 of the paper, instruction for instruction, with 64-bit
    /// registers and 16-byte entries.
    Paper,
    /// Subtract the tag, compare, add: two instructions and one register less.
    Stlb,
}

/// How a check reaches the translation table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// At a constant address.
    Absolute,
    /// Relative to `rip`, by way of one more register.
    Relative,
}

impl Table {
    /// Registers that it takes beside the scheme's.
    pub fn registers(self) -> usize {
        match self {
            Table::Absolute => 0,
            Table::Relative => 1,
        }
    }
}

impl Scheme {
    /// Registers a check overwrites, the translated address included.
    pub fn registers(self) -> usize {
        match self {
            Scheme::Paper => 3,
            Scheme::Stlb => 2,
        }
    }

    /// Whether a translation may serve several accesses. Figure 4 has one each.
    pub fn reuses(self) -> bool {
        match self {
            Scheme::Paper => false,
            Scheme::Stlb => true,
        }
    }

    /// Number in `.note.twin`.
    pub fn abi(self) -> twin_abi::Scheme {
        match self {
            Scheme::Paper => twin_abi::Scheme::Paper,
            Scheme::Stlb => twin_abi::Scheme::Stlb,
        }
    }

    /// Whether the slow path finds the address still in `v`.
    pub fn keeps_address(self) -> bool {
        match self {
            Scheme::Paper => true,
            Scheme::Stlb => false,
        }
    }

    /// Name on the command line and in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Paper => "paper",
            Scheme::Stlb => "stlb",
        }
    }

    /// Emits the check of `address` into `v`; `others` holds at least
    /// `registers() - 1` more, the table's included. A miss branches to `miss`.
    pub fn check(
        self,
        table: Table,
        asm: &mut Assembler,
        address: &Address,
        v: Reg,
        others: &[Reg],
        miss: Label,
    ) {
        match (self, table) {
            (Scheme::Paper, Table::Absolute) => {
                paper(asm, address, v, others[0], others[1], miss);
            }
            (Scheme::Paper, Table::Relative) => {
                unreachable!("a program is rewritten under the scheme stlb only")
            }
            (Scheme::Stlb, Table::Absolute) => stlb_check(asm, address, v, others[0], miss),
            (Scheme::Stlb, Table::Relative) => {
                stlb_relative(asm, address, v, others[0], others[1], miss);
            }
        }
    }
}

/// An operation with one half of the entry that `index` selects.
fn with_entry(asm: &mut Assembler, form: Form, register: Reg, index: Reg, half: u64) {
    asm.table(
        form,
        register,
        index,
        Referent::Import(Import::Stlb, half as i64),
    );
}

fn emit(asm: &mut Assembler, instruction: &iced_x86::Instruction) {
    asm.inst(instruction)
        .expect("a scheme's instruction encodes");
}

/// ```text
///  1  lea   ADDRESS, %i
///  2  mov   %i, %v
///  3  and   $-4096, %i
///  4  mov   %i, %p
///  5  and   $0xfff000, %i
///  6  shr   $8, %i
///  7  cmp   twin_stlb(%i), %p
///  8  jne   miss
///  9  xor   twin_stlb+8(%i), %v
/// ```
fn paper(asm: &mut Assembler, address: &Address, v: Reg, i: Reg, p: Reg, miss: Label) {
    const PAGE_MASK: i32 = -(stlb::PAGE_SIZE as i32);
    const PAGE_INDEX: i32 = (stlb::INDEX_MASK << stlb::INDEX_SHIFT) as i32;
    address.emit(asm, i);
    asm.registers(Form::MOV, v, i);
    asm.immediate32(ImmediateForm::AND, i, PAGE_MASK);
    asm.registers(Form::MOV, p, i);
    asm.immediate32(ImmediateForm::AND, i, PAGE_INDEX);
    asm.immediate8(ImmediateForm::SHR, i, stlb::INDEX_SHIFT as u8);
    with_entry(asm, Form::CMP, p, i, stlb::TAG);
    asm.branch(Jump::If(cc::NE), miss);
    with_entry(asm, Form::XOR, v, i, stlb::XLATE);
}

/// ```text
///     lea   ADDRESS, %v
///     mov   %vd, %id
///     shr   $8, %id
///     and   $0xfff0, %id
///     sub   twin_stlb(%i), %v
///     cmp   $0xfff, %v
///     ja    miss
///     add   twin_stlb+8(%i), %v
/// ```
fn stlb_check(asm: &mut Assembler, address: &Address, v: Reg, i: Reg, miss: Label) {
    address.emit(asm, v);
    asm.registers(Form::MOV32, i, v);
    asm.immediate8(ImmediateForm::SHR32, i, stlb::INDEX_SHIFT as u8);
    asm.immediate32(ImmediateForm::AND32, i, stlb::INDEX_MASK as i32);
    with_entry(asm, Form::SUB, v, i, stlb::TAG);
    asm.immediate32(ImmediateForm::CMP, v, stlb::PAGE_SIZE as i32 - 1);
    asm.branch(Jump::If(cc::A), miss);
    with_entry(asm, Form::ADD, v, i, stlb::XLATE);
}

/// ```text
///     lea   ADDRESS, %v
///     mov   %vd, %id
///     shr   $8, %id
///     and   $0xfff0, %id
///     lea   twin_stlb(%rip), %p
///     sub   (%p,%i), %v
///     cmp   $0xfff, %v
///     ja    miss
///     add   8(%p,%i), %v
/// ```
fn stlb_relative(asm: &mut Assembler, address: &Address, v: Reg, i: Reg, p: Reg, miss: Label) {
    address.emit(asm, v);
    asm.registers(Form::MOV32, i, v);
    asm.immediate8(ImmediateForm::SHR32, i, stlb::INDEX_SHIFT as u8);
    asm.immediate32(ImmediateForm::AND32, i, stlb::INDEX_MASK as i32);
    asm.lea_relative(p, Referent::Import(Import::Stlb, 0));
    asm.indexed(Form::SUB, v, p, i, stlb::TAG as i8);
    asm.immediate32(ImmediateForm::CMP, v, stlb::PAGE_SIZE as i32 - 1);
    asm.branch(Jump::If(cc::A), miss);
    asm.indexed(Form::ADD, v, p, i, stlb::XLATE as i8);
}

/// `not` and `lea` undo a translation without touching the flags:
/// `pointer = pointer - translated + address`.
///
/// ```text
///     not   %translated
///     lea   1(%pointer,%translated), %pointer
///     lea   (%pointer,%address), %pointer
/// ```
pub fn untranslate(asm: &mut Assembler, pointer: Reg, translated: Reg, address: Reg) {
    let sum = |a: Reg, b: Reg, d: i64| {
        MemoryOperand::new(
            reg64(a),
            reg64(b),
            1,
            d,
            u32::from(d != 0),
            false,
            Register::None,
        )
    };
    emit(asm, &r(Code::Not_rm64, reg64(translated)));
    emit(
        asm,
        &rm(Code::Lea_r64_m, reg64(pointer), sum(pointer, translated, 1)),
    );
    emit(
        asm,
        &rm(Code::Lea_r64_m, reg64(pointer), sum(pointer, address, 0)),
    );
}
