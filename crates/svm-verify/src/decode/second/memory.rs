//! Compares the explicit memory operand: the address and the segment are the same, no more
//! bytes are reached, and it is written only if the interpretation believes so.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use yaxpeax_x86::long_mode::{Instruction as Second, Operand, RegSpec, Segment, register_class};

use super::size;
use crate::decode::allow;
use crate::insn::{Access, Insn, Op, Origin};

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
    has_memory(i).then_some(())?;
    let base = i.memory_base();
    let disp = match base.is_ip() {
        true => i.memory_displacement64().wrapping_sub(i.next_ip()),
        false => i.memory_displacement64(),
    };
    let index = first_part(i.memory_index());
    Some(Address {
        base: first_part(base),
        index,
        // The scale bits mean nothing without an index (table 2-3).
        scale: index.map_or(1, |_| i.memory_index_scale() as u8),
        disp: disp as i32,
    })
}

/// Number of the second decoding's explicit memory operand.
pub(super) fn memory_operand(i: &Instruction, second: &Second) -> Option<u8> {
    // Saves the search for the many that have none.
    if second.mem_size().is_none() && !has_memory(i) {
        return None;
    }
    (0..second.operand_count()).find(|&n| second.operand(n).is_memory())
}

pub(super) fn has_memory(i: &Instruction) -> bool {
    // Absent operands count as registers, a fifth is never in memory.
    [i.op0_kind(), i.op1_kind(), i.op2_kind(), i.op3_kind()].contains(&OpKind::Memory)
}

/// Whether the address is the same, and written only if the interpretation
/// believes so.
pub(super) fn reaches(i: &Instruction, insn: &Insn, second: &Second, memory: Option<u8>) -> bool {
    if let Op::String { .. } = insn.op {
        return true; // Their operands are implicit to one decoder.
    }
    let Some(n) = memory else {
        return !has_memory(i);
    };
    if first_address(i) != address(second.operand(n)) || !same_prefixes(i, insn, second, n) {
        return false;
    }
    let Some((believed, _)) = believed(i, insn) else {
        return true;
    };
    match second.behavior().operand_access(n) {
        Some(here) if here.is_write() => believed == Access::Write,
        Some(here) if here.is_read() => believed != Access::None,
        _ => false,
    }
}

/// Whether the second decoding has the segment of the first, and 32-bit addresses where
/// the interpretation believes in a place in the window, or in user memory by such an address,
/// and nowhere else. `lea` reaches
/// nothing.
fn same_prefixes(i: &Instruction, insn: &Insn, second: &Second, n: u8) -> bool {
    let segment = match second.segment_override_for_op(n) {
        Some(Segment::FS) => Register::FS,
        Some(Segment::GS) => Register::GS,
        // The others mean nothing in 64-bit mode (SDM volume 1, 3.7.4).
        _ => Register::None,
    };
    let first = match i.segment_prefix() {
        own @ (Register::FS | Register::GS) => own,
        _ => Register::None,
    };
    let narrow = second.prefixes.address_size();
    let lea = i.mnemonic() == Mnemonic::Lea;
    let believed = matches!(insn.memory.origin, Origin::Window | Origin::Narrow);
    segment == first && (lea || narrow == believed)
}

/// Whether the second decoding reaches no more bytes than the interpretation
/// believes.
pub(super) fn fits(i: &Instruction, insn: &Insn, second: &Second, memory: Option<u8>) -> bool {
    match (memory, believed(i, insn)) {
        (Some(_), Some((_, bytes))) => size(second).is_some_and(|s| u16::from(s) <= bytes),
        _ => true,
    }
}

/// Direction and size of the access; `None` where nothing is reached, nothing
/// happens, or other rules judge.
fn believed(i: &Instruction, insn: &Insn) -> Option<(Access, u16)> {
    match insn.op {
        Op::Table { .. } | Op::Cut { .. } | Op::CompareBound { .. } => Some((Access::Read, 8)),
        Op::Prefetch | Op::String { .. } => None,
        _ if matches!(i.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) => None,
        _ if allow::is_cache_hint(i.mnemonic()) => None,
        _ => Some((insn.memory.access, insn.memory.size)),
    }
}
