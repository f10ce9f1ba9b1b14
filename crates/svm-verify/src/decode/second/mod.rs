//! A second decoding of each instruction, by `yaxpeax-x86`, which shares neither tables
//! nor authors with iced.
//!
//! The interpretation's beliefs about an instruction ([`Insn`]) are compared with the
//! second decoding in every part: length, operation, branch target, operand registers
//! and constant, the address, size and direction of its memory operand, and the
//! registers that it writes. So a mistake of one decoder is a refusal, not a hole.
//!
//! Instructions that a rule refuses already are not compared. Forms where the second
//! decoder is known to be wrong or incomplete are in [`known_to_differ`], with the page
//! of the manual.

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
use destination::{clears, writes};
use differences::known_to_differ;
use meaning::does;
use memory::{fits, memory_operand, reaches};

/// SDM volume 2, 2.3.11: no instruction is longer.
const LONGEST: usize = 15;

/// Compares the second decoding of the instruction at the start of `bytes` with the
/// first, `i`, and with `insn`, which [`crate::decode::classify`] made of it.
pub fn agrees(
    decoder: &InstDecoder,
    i: &Instruction,
    insn: &Insn,
    bytes: &[u8],
) -> Result<(), &'static str> {
    let second = decode(decoder, bytes).ok_or("a second decoder reads no instruction here")?;
    let differs = |aspect: Aspect, same: bool| !same && !known_to_differ(aspect, i);
    let memory = memory_operand(i, &second);
    let aspect = if length(&second) != i.len() {
        Aspect::Length
    } else if differs(Aspect::Meaning, does(insn.op, i, &second)) {
        Aspect::Meaning
    } else if !reaches(i, insn, &second, memory) {
        Aspect::Memory
    } else if differs(Aspect::Size, fits(i, insn, &second, memory)) {
        Aspect::Size
    } else if differs(Aspect::Destination, writes(insn, &second)) || !clears(insn, &second) {
        Aspect::Destination
    } else {
        return Ok(());
    };
    Err(aspect.reason())
}

/// Whether both decoders read as many bytes. This is all that is compared for system
/// instructions ([`crate::decode::allow::Admission::System`]).
pub fn same_length(
    decoder: &InstDecoder,
    i: &Instruction,
    bytes: &[u8],
) -> Result<(), &'static str> {
    match decode(decoder, bytes) {
        Some(second) if length(&second) == i.len() => Ok(()),
        _ => Err(Aspect::Length.reason()),
    }
}

/// The second decoding of the instruction that the bytes begin with.
fn decode(decoder: &InstDecoder, bytes: &[u8]) -> Option<Second> {
    // One byte more than the longest, so that an instruction that is too long does not
    // look cut off.
    let bytes = &bytes[..bytes.len().min(LONGEST + 1)];
    let mut second = Second::invalid();
    decoder
        .decode_into(&mut second, &mut U8Reader::new(bytes))
        .ok()?;
    Some(second)
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aspect {
    Length,
    Meaning,
    Memory,
    Size,
    Destination,
}

impl Aspect {
    fn reason(self) -> &'static str {
        match self {
            Aspect::Length => "a second decoder reads another length",
            Aspect::Meaning => "a second decoder reads another instruction",
            Aspect::Memory => "a second decoder reads another memory operand",
            Aspect::Size => "a second decoder reads a wider memory operand",
            Aspect::Destination => "a second decoder reads another destination",
        }
    }
}

fn length(second: &Second) -> usize {
    second.len().to_const() as usize
}

fn size(second: &Second) -> Option<u8> {
    second.mem_size()?.bytes_size()
}
