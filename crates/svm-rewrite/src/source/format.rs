//! Emitted instructions as AT&T text that `as` reads back.
//!
//! Most of what is emitted is the same few instructions over and over, so their
//! texts are remembered, with gaps where symbols go.

use foldhash::HashMap;
use iced_x86::{
    Decoder, DecoderOptions, Formatter, GasFormatter, Instruction, Mnemonic, OpKind,
    SymbolResolver, SymbolResult,
};

/// Marks the gap of a displacement or branch, and of an immediate.
const DISPLACEMENT: char = '\u{1}';
const IMMEDIATE: char = '\u{2}';

/// An instruction's fields that a symbol fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Filled {
    /// The displacement, or the destination of a branch.
    pub displacement: bool,
    /// The immediate.
    pub immediate: bool,
}

impl Filled {
    fn number(self) -> usize {
        usize::from(self.displacement) + 2 * usize::from(self.immediate)
    }
}

/// A gap in an instruction's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The displacement's.
    Displacement,
    /// The immediate's.
    Immediate,
}

/// One instruction, decoded once for all that have its bytes.
#[derive(Clone, Debug)]
pub struct Known {
    /// Length in bytes.
    pub len: usize,
    /// By how much it lowers `rsp`, if that is a constant.
    pub pushes: i64,
    /// Has a `lock` prefix.
    pub locked: bool,
    /// Offset of the field of the displacement or of a branch's distance.
    pub displacement_at: Option<u8>,
    /// Offset of the field of the immediate.
    pub immediate_at: Option<u8>,
    instruction: Instruction,
    /// Lines by what is filled, as far as they were asked for.
    lines: [Option<Line>; 4],
}

/// A line with gaps: what stands before each of them, and behind the last.
#[derive(Clone, Debug)]
struct Line {
    before: Vec<(Box<[u8]>, Gap)>,
    rest: Box<[u8]>,
}

impl Line {
    fn new(text: &str) -> Line {
        let mut before = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find([DISPLACEMENT, IMMEDIATE]) {
            let gap = match rest.as_bytes()[at] == DISPLACEMENT as u8 {
                true => Gap::Displacement,
                false => Gap::Immediate,
            };
            before.push((rest.as_bytes()[..at].into(), gap));
            rest = &rest[at + 1..];
        }
        Line {
            before,
            rest: rest.as_bytes().into(),
        }
    }
}

/// Number of a [`Known`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownIdx(u32);

/// Bytes that are read for a key; the longest instruction has one fewer.
const WINDOW: usize = 16;

/// Places for guesses at the length.
const GUESSES: usize = 1 << 12;

/// Turns bytes to text.
///
/// An instruction that was seen before is found by its bytes, its length being
/// guessed from the first four of them. Bytes that begin with a whole known
/// instruction are that instruction, for no encoding is the beginning of another
/// (SDM volume 2, 2.1); so a wrong guess costs time and nothing else.
pub struct Texts {
    /// By [`Filled::number`]; made when first wanted.
    formatters: [Option<GasFormatter>; 4],
    known: Vec<Known>,
    by_bytes: HashMap<u128, KnownIdx>,
    guesses: Vec<u8>,
}

/// Names the gaps.
struct Gaps(Filled);

impl SymbolResolver for Gaps {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _operand: u32,
        instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        let kind = instruction.op_kind(instruction_operand?);
        let near = matches!(
            kind,
            OpKind::Memory | OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
        let gap = match near {
            true if self.0.displacement => "\u{1}",
            false if self.0.immediate => "\u{2}",
            _ => return None,
        };
        Some(SymbolResult::with_str(address, gap))
    }
}

fn formatter(filled: Filled) -> GasFormatter {
    let gaps: Option<Box<dyn SymbolResolver>> = match filled.number() {
        0 => None,
        _ => Some(Box::new(Gaps(filled))),
    };
    let mut f = GasFormatter::with_options(gaps, None);
    let options = f.options_mut();
    options.set_number_base(iced_x86::NumberBase::Decimal);
    options.set_space_after_operand_separator(true);
    options.set_gas_show_mnemonic_size_suffix(true);
    options.set_branch_leading_zeros(false);
    options.set_signed_immediate_operands(true);
    options.set_show_symbol_address(false);
    options.set_rip_relative_addresses(true);
    f
}

/// The first `len` bytes of a window, and `len` itself, which is at most 15.
fn key(window: u128, len: usize) -> u128 {
    (window & ((1 << (8 * len)) - 1)) | ((len as u128) << 120)
}

fn guess_at(window: u128) -> usize {
    let mixed = (window as u32).wrapping_mul(0x9e37_79b1);
    (mixed >> 20) as usize
}

impl Texts {
    /// Nothing is known.
    pub fn new() -> Texts {
        Texts {
            formatters: [const { None }; 4],
            known: Vec::new(),
            by_bytes: HashMap::default(),
            guesses: vec![0; GUESSES],
        }
    }

    /// The first instruction of `code`.
    pub fn first(&mut self, code: &[u8]) -> KnownIdx {
        let window = match code.first_chunk::<WINDOW>() {
            Some(bytes) => u128::from_le_bytes(*bytes),
            None => {
                let mut bytes = [0; WINDOW];
                bytes[..code.len()].copy_from_slice(code);
                u128::from_le_bytes(bytes)
            }
        };
        let guess = usize::from(self.guesses[guess_at(window)]);
        match self.by_bytes.get(&key(window, guess)) {
            Some(known) if guess > 0 && guess <= code.len() => *known,
            _ => self.decode(code, window),
        }
    }

    /// What is known of an instruction.
    pub fn known(&self, k: KnownIdx) -> &Known {
        &self.known[k.0 as usize]
    }

    fn decode(&mut self, code: &[u8], window: u128) -> KnownIdx {
        let head = &code[..code.len().min(WINDOW - 1)];
        let mut decoder = Decoder::new(64, head, DecoderOptions::NONE);
        let instruction = decoder.decode();
        self.guesses[guess_at(window)] = instruction.len() as u8;
        let key = key(window, instruction.len());
        if let Some(known) = self.by_bytes.get(&key) {
            return *known;
        }
        let fields = decoder.get_constant_offsets(&instruction);
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
        let known = KnownIdx(self.known.len() as u32);
        self.known.push(Known {
            len: instruction.len(),
            pushes: pushes(&instruction),
            locked: instruction.has_lock_prefix(),
            displacement_at: displacement.map(|at| at as u8),
            immediate_at: immediate.map(|at| at as u8),
            instruction,
            lines: [const { None }; 4],
        });
        self.by_bytes.insert(key, known);
        known
    }

    /// Appends an instruction's line; `fill` appends what fills a gap.
    pub fn write(
        &mut self,
        k: KnownIdx,
        filled: Filled,
        out: &mut Vec<u8>,
        mut fill: impl FnMut(Gap, &mut Vec<u8>),
    ) {
        let known = &mut self.known[k.0 as usize];
        let line = known.lines[filled.number()].get_or_insert_with(|| {
            let slot = &mut self.formatters[filled.number()];
            let formatter = slot.get_or_insert_with(|| formatter(filled));
            Line::new(&line(formatter, &known.instruction))
        });
        for (text, gap) in &line.before {
            out.extend_from_slice(text);
            fill(*gap, out);
        }
        out.extend_from_slice(&line.rest);
    }
}

fn line(formatter: &mut GasFormatter, instruction: &Instruction) -> String {
    let mut text = String::from("\t");
    formatter.format(instruction, &mut text);
    // Mnemonic and operands apart, as compilers do it.
    let prefixed = instruction.has_lock_prefix()
        || instruction.has_rep_prefix()
        || instruction.has_repne_prefix();
    if !prefixed {
        text = text.replacen(' ', "\t", 1);
    }
    text.push('\n');
    text
}

/// By how much an instruction of a sequence lowers `rsp`.
fn pushes(instruction: &Instruction) -> i64 {
    let to_rsp = instruction.op0_register() == iced_x86::Register::RSP;
    match instruction.mnemonic() {
        Mnemonic::Push | Mnemonic::Pop => -i64::from(instruction.stack_pointer_increment()),
        Mnemonic::Lea if to_rsp => -(instruction.memory_displacement64() as i64),
        _ => 0,
    }
}
