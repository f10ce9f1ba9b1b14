//! Effects of instructions: a table, and properties of all instructions.

#![allow(missing_docs, reason = "tests")]

mod decoder;
mod table;

use iced_x86::{Decoder, DecoderOptions, Instruction};
use liveness::WordSize;

fn decode(bits: u32, bytes: &[u8]) -> Instruction {
    Decoder::with_ip(bits, bytes, 0, DecoderOptions::NONE).decode()
}

fn word_size(bits: u32) -> WordSize {
    match bits {
        32 => WordSize::Bits32,
        _ => WordSize::Bits64,
    }
}
