//! The scheme `stlb`: subtract the tag, compare the remainder with the page size,
//! add `xlate`, which is where the page is mapped. One instruction and one register
//! less than figure 4 of the paper takes.

use twin_abi::stlb;

use super::{Check, Reach, Row, with_entry};
use crate::asm::encode::{Form, ImmediateForm};
use crate::asm::import::Import;
use crate::asm::{Assembler, Jump, Operand, Referent, cc};

/// The subtraction destroys the address in `v`, so a miss computes it again.
pub const ROW: Row = Row {
    registers: 2,
    reuses: true,
    reach: Reach::TRANSLATION,
    keeps_address: false,
    cut: None,
    absolute: Some(absolute),
    relative: Some(relative),
};

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
fn absolute(asm: &mut Assembler, check: &Check<'_>) {
    let (v, i) = (check.v, check.others[0]);
    check.address.emit(asm, v);
    asm.registers(Form::MOV32, i, v);
    asm.immediate8(ImmediateForm::SHR32, i, stlb::INDEX_SHIFT as u8);
    asm.immediate32(ImmediateForm::AND32, i, stlb::INDEX_MASK as i32);
    with_entry(asm, Form::SUB, v, i, stlb::TAG);
    asm.immediate32(ImmediateForm::CMP, v, stlb::PAGE_SIZE as i32 - 1);
    asm.branch(Jump::If(cc::A), check.miss);
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
fn relative(asm: &mut Assembler, check: &Check<'_>) {
    let (v, i, p) = (check.v, check.others[0], check.others[1]);
    check.address.emit(asm, v);
    asm.registers(Form::MOV32, i, v);
    asm.immediate8(ImmediateForm::SHR32, i, stlb::INDEX_SHIFT as u8);
    asm.immediate32(ImmediateForm::AND32, i, stlb::INDEX_MASK as i32);
    asm.lea_relative(p, Referent::Import(Import::Stlb, 0));
    let entry = Operand::indexed(p, i, 0);
    asm.memory(Form::SUB, v, &entry.plus(stlb::TAG as i64));
    asm.immediate32(ImmediateForm::CMP, v, stlb::PAGE_SIZE as i32 - 1);
    asm.branch(Jump::If(cc::A), check.miss);
    asm.memory(Form::ADD, v, &entry.plus(stlb::XLATE as i64));
}
