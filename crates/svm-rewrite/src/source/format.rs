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

/// One instruction, decoded once for all that have its bytes.
#[derive(Clone, Debug)]
pub struct Known {
    /// Length in bytes.
    pub len: usize,
    /// Text with gaps.
    text: String,
    /// By how much it lowers `rsp`, if that is a constant.
    pub pushes: i64,
    /// Has a `lock` prefix.
    pub locked: bool,
    /// Offset of the field of the displacement or of a branch's distance.
    pub displacement_at: Option<usize>,
    /// Offset of the field of the immediate.
    pub immediate_at: Option<usize>,
}

impl Known {
    /// Appends the text with the gaps filled.
    pub fn write(&self, displacement: &[u8], immediate: &[u8], out: &mut Vec<u8>) {
        for part in self.text.split_inclusive([DISPLACEMENT, IMMEDIATE]) {
            let (text, fill) = match part.as_bytes().last() {
                Some(1) => (&part.as_bytes()[..part.len() - 1], displacement),
                Some(2) => (&part.as_bytes()[..part.len() - 1], immediate),
                _ => (part.as_bytes(), &[][..]),
            };
            out.extend_from_slice(text);
            out.extend_from_slice(fill);
        }
    }
}

/// Turns bytes to text.
pub struct Texts {
    plain: GasFormatter,
    gaps: [GasFormatter; 4],
    known: HashMap<(u128, Filled), Known>,
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
    let mut f = GasFormatter::with_options(Some(Box::new(Gaps(filled))), None);
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

impl Texts {
    /// Nothing is known.
    pub fn new() -> Texts {
        let filled = |displacement, immediate| Filled {
            displacement,
            immediate,
        };
        Texts {
            plain: formatter(Filled::default()),
            gaps: [
                formatter(filled(false, false)),
                formatter(filled(true, false)),
                formatter(filled(false, true)),
                formatter(filled(true, true)),
            ],
            known: HashMap::default(),
        }
    }

    /// The first instruction of `code`; `filled` says of the fields at two
    /// offsets whether a symbol fills them.
    pub fn first(&mut self, code: &[u8], filled: impl Fn(usize) -> bool) -> &Known {
        let head = &code[..code.len().min(15)];
        let instruction = {
            let mut decoder = Decoder::new(64, head, DecoderOptions::NONE);
            let instruction = decoder.decode();
            let fields = decoder.get_constant_offsets(&instruction);
            (instruction, fields)
        };
        let (instruction, fields) = instruction;
        let is_branch =
            instruction.op_count() > 0 && matches!(instruction.op0_kind(), OpKind::NearBranch64);
        let displacement_at = if is_branch {
            fields.has_immediate().then(|| fields.immediate_offset())
        } else {
            fields
                .has_displacement()
                .then(|| fields.displacement_offset())
        };
        let immediate_at =
            (!is_branch && fields.has_immediate()).then(|| fields.immediate_offset());
        let filled = Filled {
            displacement: displacement_at.is_some_and(&filled),
            immediate: immediate_at.is_some_and(&filled),
        };
        let mut bytes = [0; 16];
        bytes[..instruction.len()].copy_from_slice(&head[..instruction.len()]);
        bytes[15] = instruction.len() as u8;
        let key = (u128::from_le_bytes(bytes), filled);
        if !self.known.contains_key(&key) {
            let known = Known {
                len: instruction.len(),
                text: self.text(&instruction, filled),
                pushes: pushes(&instruction),
                locked: instruction.has_lock_prefix(),
                displacement_at,
                immediate_at,
            };
            self.known.insert(key, known);
        }
        &self.known[&key]
    }

    fn text(&mut self, instruction: &Instruction, filled: Filled) -> String {
        let n = usize::from(filled.displacement) + 2 * usize::from(filled.immediate);
        let f = if n == 0 {
            &mut self.plain
        } else {
            &mut self.gaps[n]
        };
        let mut text = String::new();
        f.format(instruction, &mut text);
        // Mnemonic and operands apart, as compilers do it.
        let prefixed = instruction.has_lock_prefix()
            || instruction.has_rep_prefix()
            || instruction.has_repne_prefix();
        if prefixed {
            text
        } else {
            text.replacen(' ', "\t", 1)
        }
    }
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
