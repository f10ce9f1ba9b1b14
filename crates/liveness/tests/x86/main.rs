//! Effects of instructions: a table, and properties of all instructions.

mod decoder;
mod table;

use iced_x86::{Decoder, DecoderOptions, Instruction};

fn decode(bytes: &[u8]) -> Instruction {
    Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode()
}
