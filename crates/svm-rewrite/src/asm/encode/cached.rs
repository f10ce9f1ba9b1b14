//! iced's encoder with a cache.
//!
//! Instructions that iced encodes are mostly the original's own accesses, such as
//! `mov (%rcx),%eax`, with the few registers that checks prefer: the same instructions
//! again and again.

use iced_x86::{ConstantOffsets, IcedError, Instruction};

use crate::hash;

/// Encodes 64-bit code at address zero.
pub struct Encoder {
    iced: iced_x86::Encoder,
    /// Room for one instruction.
    buffer: Vec<u8>,
    /// The cache, by [`place`]; made when it is needed.
    known: Vec<Option<Entry>>,
    /// Its slots, a power of two.
    places: usize,
}

/// An instruction and its encoding.
#[derive(Clone, Copy)]
struct Entry {
    instruction: Instruction,
    bytes: [u8; LONGEST],
    len: u8,
    fields: ConstantOffsets,
}

/// No instruction is longer (SDM volume 2, 2.3.11).
pub const LONGEST: usize = 15;

/// Fewest and most slots of the cache.
const PLACES: (usize, usize) = (1 << 9, 1 << 12);
/// Bytes of the original's code for each slot: most accesses have a displacement of their own.
const BYTES_PER_PLACE: usize = 32;

impl Encoder {
    /// An encoder with an empty cache, for what so many bytes of code become.
    pub fn new(original: usize) -> Encoder {
        let places = (original / BYTES_PER_PLACE).clamp(PLACES.0, PLACES.1);
        Encoder {
            iced: iced_x86::Encoder::new(64),
            buffer: Vec::new(),
            known: Vec::new(),
            places: places.next_power_of_two(),
        }
    }

    /// Appends the encoding of an instruction; gives where its fields are in it.
    ///
    /// # Errors
    /// The operands do not fit the instruction.
    pub fn encode(
        &mut self,
        instruction: &Instruction,
        out: &mut Vec<u8>,
    ) -> Result<ConstantOffsets, IcedError> {
        if self.known.is_empty() {
            self.known.resize(self.places, None);
        }
        let place = place(instruction, self.places);
        let known = match &self.known[place] {
            // All of it is compared except its place in the original, which the
            // encoding does not depend on.
            Some(known) if known.instruction == *instruction => known,
            _ => {
                let known = self.ask(instruction)?;
                self.known[place].insert(known)
            }
        };
        // A copy of constant size needs no call.
        let end = out.len() + usize::from(known.len);
        out.extend_from_slice(&known.bytes);
        out.truncate(end);
        Ok(known.fields)
    }

    fn ask(&mut self, instruction: &Instruction) -> Result<Entry, IcedError> {
        self.buffer.clear();
        self.iced.set_buffer(std::mem::take(&mut self.buffer));
        let done = self.iced.encode(instruction, 0);
        self.buffer = self.iced.take_buffer();
        let len = done?;
        let mut bytes = [0; LONGEST];
        bytes[..len].copy_from_slice(&self.buffer);
        Ok(Entry {
            instruction: *instruction,
            bytes,
            len: len as u8,
            fields: self.iced.get_constant_offsets(),
        })
    }
}

/// The slot of an instruction, out of `places`.
fn place(instruction: &Instruction, places: usize) -> usize {
    let parts = [
        instruction.op0_register() as u64,
        instruction.op1_register() as u64,
        instruction.memory_base() as u64,
        instruction.memory_displacement64(),
    ];
    let start = instruction.code() as u64 | u64::from(instruction.immediate32()) << 16;
    let mixed = parts
        .into_iter()
        .fold(start, |mixed, part| mixed.rotate_left(9) ^ part);
    hash::place(mixed, places)
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    /// Each instruction is encoded as by iced alone, whatever the cache holds.
    #[test]
    fn an_answer_is_that_of_its_question() {
        let mut encoder = Encoder::new(0);
        for head in [
            &[][..],
            &[0x48],
            &[0x66],
            &[0x0f],
            &[0xf0, 0x4c],
            &[0xf3, 0x0f],
        ] {
            for opcode in 0..=0xffff_u16 {
                for rest in [[0; 12], [0x11; 12], [0xf3; 12]] {
                    let bytes = [head, &opcode.to_le_bytes(), &rest].concat();
                    let ip = u64::from(opcode);
                    let mut decoder = Decoder::with_ip(64, &bytes, ip, DecoderOptions::NONE);
                    let instruction = decoder.decode();
                    if instruction.is_invalid() {
                        continue;
                    }
                    let mut alone = iced_x86::Encoder::new(64);
                    let expected = alone.encode(&instruction, 0);
                    let mut out = Vec::new();
                    let got = encoder.encode(&instruction, &mut out);
                    assert_eq!(got.is_ok(), expected.is_ok(), "{instruction}");
                    if let Ok(fields) = got {
                        assert_eq!(out, alone.take_buffer(), "{instruction}");
                        assert_eq!(fields, alone.get_constant_offsets(), "{instruction}");
                    }
                }
            }
        }
    }
}
