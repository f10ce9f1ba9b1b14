//! The scheme `paper`: figure 4 of the paper, instruction for instruction, with
//! 64-bit registers and entries of 16 bytes. `xlate` is the page XOR the page that it is
//! mapped at.

use twin_abi::stlb;

use super::{Check, Reach, Row, with_entry};
use crate::asm::encode::{Form, ImmediateForm};
use crate::asm::{Assembler, Jump, cc};

/// Figure 4 translates for one access only. Its address is still in `v` on a miss.
pub const ROW: Row = Row {
    registers: 3,
    reuses: false,
    reach: Reach::TRANSLATION,
    keeps_address: true,
    cut: None,
    absolute: Some(check),
    relative: None,
};

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
fn check(asm: &mut Assembler, check: &Check<'_>) {
    let (v, i, p) = (check.v, check.others[0], check.others[1]);
    const PAGE_MASK: i32 = -(stlb::PAGE_SIZE as i32);
    const PAGE_INDEX: i32 = (stlb::INDEX_MASK << stlb::INDEX_SHIFT) as i32;
    check.address.emit(asm, i);
    asm.registers(Form::MOV, v, i);
    asm.immediate32(ImmediateForm::AND, i, PAGE_MASK);
    asm.registers(Form::MOV, p, i);
    asm.immediate32(ImmediateForm::AND, i, PAGE_INDEX);
    asm.immediate8(ImmediateForm::SHR, i, stlb::INDEX_SHIFT as u8);
    with_entry(asm, Form::CMP, p, i, stlb::TAG);
    asm.branch(Jump::If(cc::NE), check.miss);
    with_entry(asm, Form::XOR, v, i, stlb::XLATE);
}
