//! The first whole instructions of a function: as many as the jump that replaces its beginning
//! overwrites.
//!
//! They are executed elsewhere before the function goes on (`twin_original_*`), so they
//! must mean the same there: nothing relative to `rip`, no branch.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

use crate::image::Image;

/// Bytes of the jump (`ARCH_PATCH_INSN_SIZE`); it is written after `endbr64`, if the function
/// begins with one.
const JUMP: usize = 5;
/// The most that the loader compares.
const MOST: usize = 31;

/// The bytes.
pub fn head<'f>(image: &Image<'f>, name: &str, address: u64) -> Result<&'f [u8], String> {
    let bytes = image.at(address, MOST)?;
    let mut needed = JUMP;
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut length = 0;
    while length < needed {
        let i = decoder.decode();
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
    Ok(&bytes[..length])
}
