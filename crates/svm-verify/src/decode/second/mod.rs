//! A second opinion on what the bytes are: each instruction is decoded by
//! `yaxpeax-x86` too, which shares neither tables nor authors with iced.
//!
//! It takes what the interpretation is going to believe of an instruction
//! ([`Insn`]) and compares each part of it with the second decoding: length,
//! what it does, branch target, operand registers and constant, the address,
//! size and direction of its memory operand, and the registers that it writes.
//! One decoder's mistake is then a refusal, not a hole.
//!
//! Instructions that a rule refuses already are not asked about. Where the
//! second decoder is known to be wrong, or says less, the form stands in
//! [`known_to_differ`], with the page of the manual.

mod destination;
mod differences;
mod meaning;
mod memory;
#[cfg(test)]
mod tests;

use iced_x86::Instruction;
use yaxpeax_arch::{Decoder as _, LengthedInstruction, U8Reader};
use yaxpeax_x86::long_mode::{InstDecoder, Instruction as Second};

use crate::insn::Insn;
use destination::writes;
use differences::known_to_differ;
use meaning::does;
use memory::{fits, memory_operand, reaches};

/// SDM volume 2, 2.3.11: no instruction is longer.
const LONGEST: usize = 15;

/// Asks the second decoder about the instruction at the start of `bytes`,
/// which the first one made into `i` and [`crate::decode::classify`] into `insn`.
pub fn agrees(
    decoder: &InstDecoder,
    i: &Instruction,
    insn: &Insn,
    bytes: &[u8],
) -> Result<(), &'static str> {
    let second = decode(decoder, bytes).ok_or("a second decoder reads no instruction here")?;
    let differs = |part: Part, same: bool| !same && !known_to_differ(part, i);
    let memory = memory_operand(i, &second);
    let part = if length(&second) != i.len() {
        Part::Length
    } else if differs(Part::Meaning, does(insn.op, i, &second)) {
        Part::Meaning
    } else if !reaches(i, insn, &second, memory) {
        Part::Memory
    } else if differs(Part::Size, fits(i, insn, &second, memory)) {
        Part::Size
    } else if differs(Part::Destination, writes(insn, &second)) {
        Part::Destination
    } else {
        return Ok(());
    };
    Err(part.reason())
}

/// Whether both decoders read as many bytes: all that is asked about instructions
/// of the system ([`crate::decode::allow::Verdict::System`]).
pub fn same_length(
    decoder: &InstDecoder,
    i: &Instruction,
    bytes: &[u8],
) -> Result<(), &'static str> {
    match decode(decoder, bytes) {
        Some(second) if length(&second) == i.len() => Ok(()),
        _ => Err(Part::Length.reason()),
    }
}

/// The second decoding of the instruction that the bytes begin with.
fn decode(decoder: &InstDecoder, bytes: &[u8]) -> Option<Second> {
    // One byte more than the longest: what is too long shall not look cut off.
    let bytes = &bytes[..bytes.len().min(LONGEST + 1)];
    let mut second = Second::invalid();
    decoder
        .decode_into(&mut second, &mut U8Reader::new(bytes))
        .ok()?;
    Some(second)
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Length,
    Meaning,
    Memory,
    Size,
    Destination,
}

impl Part {
    fn reason(self) -> &'static str {
        match self {
            Part::Length => "a second decoder reads another length",
            Part::Meaning => "a second decoder reads another instruction",
            Part::Memory => "a second decoder reads another memory operand",
            Part::Size => "a second decoder reads a wider memory operand",
            Part::Destination => "a second decoder reads another destination",
        }
    }
}

fn length(second: &Second) -> usize {
    second.len().to_const() as usize
}

fn size(second: &Second) -> Option<u8> {
    second.mem_size()?.bytes_size()
}
