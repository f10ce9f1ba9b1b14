//! Emitted instructions as AT&T text that `as` reads back.
//!
//! Most emitted code is the same few instructions over and over. So their texts are
//! cached, with gaps for symbols and displacements.

mod line;

use foldhash::HashMap;
use iced_x86::{
    ConstantOffsets, Decoder, DecoderOptions, EncodingKind, GasFormatter, Instruction, Mnemonic,
    OpKind, Register,
};

use super::number::push_signed;
use crate::hash;
pub use line::{Filled, Gap};
use line::{Line, formatter, line};

/// One instruction, decoded once for all that have its bytes, whatever their
/// displacement if that is a [`Number`].
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    /// Its bytes, and which of a window's tell it from others.
    bytes: u128,
    mask: u128,
    /// The displacement, if any will do.
    number: Option<Number>,
    /// Its lines, by [`Filled::number`]; made when first needed.
    lines: [u32; 4],
    /// Length in bytes.
    pub len: u8,
    /// By how much it lowers `rsp`, if that is a constant.
    pub pushes: i32,
    /// Has a `lock` prefix.
    pub locked: bool,
    /// Offset of the field of the displacement or of a branch's distance.
    pub displacement_at: Option<u8>,
    /// Offset of the field of the immediate.
    pub immediate_at: Option<u8>,
}

/// A displacement that is printed as a signed number where it is not zero: that of
/// `disp(%reg)` and `disp(%reg,%reg,n)`.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// One byte, at this offset.
    Byte(u8),
    /// Four bytes.
    Word(u8),
}

impl Number {
    fn of(instruction: &Instruction, fields: &ConstantOffsets) -> Option<Number> {
        let plain = instruction.memory_base().is_gpr64()
            // How much it moves `rsp` is known by its bytes.
            && instruction.op0_register() != Register::RSP
            && !is_scaled(instruction);
        let at = fields.displacement_offset() as u8;
        match fields.displacement_size() {
            1 if plain => Some(Number::Byte(at)),
            4 if plain => Some(Number::Word(at)),
            _ => None,
        }
    }

    /// Its bytes in a window.
    fn mask(self) -> u128 {
        match self {
            Number::Byte(at) => 0xff << (8 * at),
            Number::Word(at) => 0xffff_ffff << (8 * at),
        }
    }

    fn value(self, code: &[u8]) -> i32 {
        match self {
            Number::Byte(at) => i32::from(code[usize::from(at)] as i8),
            Number::Word(at) => {
                let field = code[usize::from(at)..].first_chunk::<4>();
                field.map_or(0, |bytes| i32::from_le_bytes(*bytes))
            }
        }
    }
}

/// Whether a displacement of one byte counts in units of the operand's size (SDM volume 2,
/// 2.7.5).
fn is_scaled(instruction: &Instruction) -> bool {
    matches!(
        instruction.code().encoding(),
        EncodingKind::EVEX | EncodingKind::MVEX
    )
}

/// No line was asked for.
const NO_LINE: u32 = u32::MAX;

/// Number of an [`Encoding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingIdx(u32);

/// Bytes that are read for a key; the longest instruction has one fewer.
const WINDOW: usize = 16;

/// Places for guesses, and guesses at each.
const GUESSES: usize = 1 << 11;
const WAYS: usize = 4;

/// Turns bytes to text.
///
/// An instruction that was seen before is guessed from the first three bytes, and
/// found by its bytes otherwise. Bytes that begin with a whole known instruction
/// are that instruction, for no encoding is the beginning of another (SDM volume
/// 2, 2.1); so a wrong guess costs time and nothing else.
pub struct Texts {
    /// By [`Filled::number`]; made when first needed.
    formatters: [Option<GasFormatter>; 4],
    known: Vec<Encoding>,
    /// Of each known one.
    instructions: Vec<Instruction>,
    by_bytes: HashMap<u128, EncodingIdx>,
    guesses: Vec<[EncodingIdx; WAYS]>,
    lines: Vec<Line>,
    /// Room for a line.
    line: String,
}

/// Which bytes of a window the first `len` are, which is at most 15.
fn mask(len: usize) -> u128 {
    (1 << (8 * len)) - 1
}

/// The slot of the guess for the first three bytes of a window.
fn guess_at(window: u128) -> usize {
    hash::place((window as u64) << 40, GUESSES)
}

impl Texts {
    /// Nothing is known.
    pub fn new() -> Texts {
        // The first one is a guess that is never right.
        let nothing = Encoding {
            bytes: 1,
            mask: 0,
            number: None,
            lines: [NO_LINE; 4],
            len: 0,
            pushes: 0,
            locked: false,
            displacement_at: None,
            immediate_at: None,
        };
        Texts {
            formatters: [const { None }; 4],
            known: vec![nothing],
            instructions: vec![Instruction::default()],
            by_bytes: HashMap::default(),
            guesses: vec![[EncodingIdx(0); WAYS]; GUESSES],
            lines: Vec::new(),
            line: String::new(),
        }
    }

    /// The first instruction of `code`.
    pub fn first(&mut self, code: &[u8]) -> EncodingIdx {
        let window = match code.first_chunk::<WINDOW>() {
            Some(bytes) => u128::from_le_bytes(*bytes),
            None => return self.decode(code),
        };
        let guesses = &self.guesses[guess_at(window)];
        let right = guesses.iter().find(|guess| {
            let known = self.known(**guess);
            window & known.mask == known.bytes
        });
        match right {
            Some(known) => *known,
            None => self.decode(code),
        }
    }

    /// What is known of an instruction.
    pub fn known(&self, k: EncodingIdx) -> &Encoding {
        &self.known[k.0 as usize]
    }

    #[cold]
    fn decode(&mut self, code: &[u8]) -> EncodingIdx {
        let head = &code[..code.len().min(WINDOW - 1)];
        let mut bytes = [0; WINDOW];
        bytes[..head.len()].copy_from_slice(head);
        let window = u128::from_le_bytes(bytes);
        let mut decoder = Decoder::new(64, head, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let fields = decoder.get_constant_offsets(&instruction);
        let number = Number::of(&instruction, &fields);
        let mask = mask(instruction.len()) & !number.map_or(0, Number::mask);
        // No two instructions have a key in common: the bytes outside the mask say
        // whether there is a displacement, and where.
        let key = window & mask | (instruction.len() as u128) << 120;
        let known = match self.by_bytes.get(&key) {
            Some(known) => *known,
            None => {
                let known = EncodingIdx(self.known.len() as u32);
                self.add(instruction, &fields, number, (window & mask, mask));
                self.by_bytes.insert(key, known);
                known
            }
        };
        let guesses = &mut self.guesses[guess_at(window)];
        guesses.rotate_right(1);
        guesses[0] = known;
        known
    }

    fn add(
        &mut self,
        instruction: Instruction,
        fields: &ConstantOffsets,
        number: Option<Number>,
        (bytes, mask): (u128, u128),
    ) {
        let is_branch =
            instruction.op_count() > 0 && matches!(instruction.op0_kind(), OpKind::NearBranch64);
        let displacement = fields
            .has_displacement()
            .then(|| fields.displacement_offset());
        let immediate = fields.has_immediate().then(|| fields.immediate_offset());
        let (displacement, immediate) = match is_branch {
            true => (immediate, None),
            false => (displacement, immediate),
        };
        self.known.push(Encoding {
            bytes,
            mask,
            number,
            lines: [NO_LINE; 4],
            len: instruction.len() as u8,
            pushes: pushes(&instruction) as i32,
            locked: instruction.has_lock_prefix(),
            displacement_at: displacement.map(|at| at as u8),
            immediate_at: immediate.map(|at| at as u8),
        });
        self.instructions.push(instruction);
    }

    /// Appends the line of the instruction `k` that `code` begins with; `fill`
    /// appends what fills a gap.
    pub fn write(
        &mut self,
        k: EncodingIdx,
        code: &[u8],
        filled: Filled,
        out: &mut Vec<u8>,
        mut fill: impl FnMut(Gap, &mut Vec<u8>),
    ) {
        let known = self.known(k);
        let number = match known.number {
            Some(number) if !filled.displacement => Some(number.value(code)),
            _ => None,
        };
        let number = number.filter(|n| *n != 0);
        let gaps = Filled {
            displacement: filled.displacement || number.is_some(),
            ..filled
        };
        let n = match known.lines[gaps.number()] {
            NO_LINE => self.make_line(k, gaps),
            n => n,
        };
        let line = &self.lines[n as usize];
        for (text, gap) in &line.before {
            text.append_to(out);
            match (gap, number) {
                (Gap::Displacement, Some(number)) => push_signed(out, number.into()),
                _ => fill(*gap, out),
            }
        }
        line.rest.append_to(out);
    }

    #[cold]
    fn make_line(&mut self, k: EncodingIdx, gaps: Filled) -> u32 {
        let slot = &mut self.formatters[gaps.number()];
        let formatter = slot.get_or_insert_with(|| formatter(gaps));
        let mut instruction = self.instructions[k.0 as usize];
        let known = &mut self.known[k.0 as usize];
        if known.number.is_some() && !gaps.displacement {
            instruction.set_memory_displacement64(0);
        }
        let n = self.lines.len() as u32;
        line(formatter, &instruction, &mut self.line);
        self.lines.push(Line::new(self.line.as_bytes()));
        known.lines[gaps.number()] = n;
        n
    }
}

/// By how much an instruction of a sequence lowers `rsp`.
fn pushes(instruction: &Instruction) -> i64 {
    let to_rsp = instruction.op0_register() == Register::RSP;
    match instruction.mnemonic() {
        Mnemonic::Push | Mnemonic::Pop => -i64::from(instruction.stack_pointer_increment()),
        Mnemonic::Lea if to_rsp => -(instruction.memory_displacement64() as i64),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line is what the formatter makes of the instruction alone, whatever was
    /// printed before.
    #[test]
    fn a_line_with_a_number_is_that_of_its_instruction() {
        let mut texts = Texts::new();
        let mut alone = formatter(Filled::default());
        let displacements = [0, 1, -1, 127, -128, 128, -129, i32::MAX, i32::MIN];
        let mut seen = 0;
        for opcode in [
            &[0x8d][..],
            &[0x48, 0x8d],
            &[0x4f, 0x8d],
            &[0x67, 0x89],
            &[0xf0, 0x01],
            // vmovdqu64 of 64 and of 16 bytes
            &[0x62, 0xf1, 0xfe, 0x48, 0x6f],
            &[0x62, 0xf1, 0xfe, 0x08, 0x6f],
        ] {
            for (modrm, sib) in (0..=255).flat_map(|m| [0x04, 0x24, 0x65, 0xe5].map(|s| (m, s))) {
                for displacement in displacements {
                    let mut code = [opcode, &[modrm]].concat();
                    if modrm & 7 == 4 && modrm >> 6 != 3 {
                        code.push(sib);
                    }
                    code.extend(displacement.to_le_bytes());
                    code.resize(2 * WINDOW, 0x90);
                    let mut decoder = Decoder::new(64, &code[..WINDOW], DecoderOptions::NONE);
                    let instruction = decoder.decode();
                    if instruction.is_invalid() {
                        continue;
                    }
                    let mut expected = String::new();
                    line(&mut alone, &instruction, &mut expected);
                    let k = texts.first(&code);
                    assert_eq!(usize::from(texts.known(k).len), instruction.len());
                    let mut out = Vec::new();
                    texts.write(k, &code, Filled::default(), &mut out, |_, _| unreachable!());
                    assert_eq!(String::from_utf8(out).unwrap(), expected, "{code:x?}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 10_000);
    }
}
