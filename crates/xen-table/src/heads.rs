//! The first whole instructions of a function: as many as the jump that replaces its beginning
//! overwrites.
//!
//! They are executed elsewhere before the function goes on (`twin_original_*`), so they
//! must mean the same there: nothing relative to `rip`, no branch, but for one at the end: a
//! short conditional jump forward, which `twin payload` makes a long one. Nor may the function
//! jump back to them, as a loop at its beginning does: it would come to the replacement in the
//! middle of its work, or into the middle of the jump.

use std::fmt;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use crate::image::Image;

/// Bytes of the jump (`ARCH_PATCH_INSN_SIZE`); it is written after `endbr64`, if the function
/// begins with one.
const JUMP: usize = 5;
/// The most that the loader compares.
const MOST: usize = 31;

/// The bytes: of instructions that mean the same elsewhere, and of a short conditional jump that
/// ends them.
pub struct Head<'f> {
    fixed: &'f [u8],
    jump: &'f [u8],
}

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hex = |bytes: &[u8]| bytes.iter().try_for_each(|b| write!(f, "{b:02x}"));
        hex(self.fixed)?;
        if !self.jump.is_empty() {
            f.write_str(" ")?;
        }
        let mut hex = |bytes: &[u8]| bytes.iter().try_for_each(|b| write!(f, "{b:02x}"));
        hex(self.jump)
    }
}

/// Whether it is such a jump, to a place behind it.
fn is_short_forward(i: &Instruction) -> bool {
    let short = i.flow_control() == FlowControl::ConditionalBranch && i.is_jcc_short();
    short && i.near_branch_target() >= i.next_ip()
}

/// Reads those of the function from `address` to `end`.
pub fn head<'f>(image: &Image<'f>, name: &str, address: u64, end: u64) -> Result<Head<'f>, String> {
    let head = first(image, name, address)?;
    let code = image.at(address, (end - address) as usize)?;
    let places = address..address + (head.fixed.len() + head.jump.len()) as u64;
    let leads_there = |i: &Instruction| {
        let jumps = matches!(
            i.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        jumps && places.contains(&i.near_branch_target())
    };
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    match decoder.iter().find(leads_there) {
        None => Ok(head),
        Some(i) => Err(format!(
            "`{name}` jumps back to its beginning ({:#x})",
            i.ip()
        )),
    }
}

/// As many as the jump overwrites.
fn first<'f>(image: &Image<'f>, name: &str, address: u64) -> Result<Head<'f>, String> {
    let bytes = image.at(address, MOST)?;
    let mut needed = JUMP;
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut length = 0;
    while length < needed {
        let i = decoder.decode();
        if length > 0 && length + i.len() >= needed && is_short_forward(&i) {
            let (fixed, rest) = bytes.split_at(length);
            let jump = &rest[..i.len()];
            return Ok(Head { fixed, jump });
        }
        if i.mnemonic() == Mnemonic::Endbr64 && length == 0 {
            needed += i.len();
        }
        let fixed = i.is_ip_rel_memory_operand() || i.flow_control() != FlowControl::Next;
        if i.is_invalid() || fixed {
            return Err(format!(
                "`{name}` begins with instructions that mean something else elsewhere ({:#x})",
                i.ip()
            ));
        }
        length += i.len();
    }
    let (fixed, jump) = (&bytes[..length], &[][..]);
    Ok(Head { fixed, jump })
}
