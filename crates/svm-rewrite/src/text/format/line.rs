//! The line of an instruction, with gaps where symbols and numbers go.

use iced_x86::{
    Formatter, GasFormatter, Instruction, NumberBase, OpKind, SymbolResolver, SymbolResult,
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
    /// One for each combination, from 0 to 3.
    pub fn number(self) -> usize {
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

#[derive(Clone, Debug)]
pub struct Line {
    /// The text before each gap.
    pub before: Vec<(Run, Gap)>,
    /// The text after the last gap.
    pub rest: Run,
}

/// Most runs are not longer. A copy of constant size needs no call.
const SHORT: usize = 32;

/// A run of bytes that is copied often.
#[derive(Clone, Debug)]
pub enum Run {
    /// The bytes, and how many of them count.
    Short([u8; SHORT], u8),
    /// All of these.
    Long(Box<[u8]>),
}

impl Run {
    fn new(text: &[u8]) -> Run {
        let mut bytes = [0; SHORT];
        match bytes.get_mut(..text.len()) {
            Some(start) => start.copy_from_slice(text),
            None => return Run::Long(text.into()),
        }
        Run::Short(bytes, text.len() as u8)
    }

    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Run::Short(bytes, len) => {
                let end = out.len() + usize::from(*len);
                out.extend_from_slice(bytes);
                out.truncate(end);
            }
            Run::Long(text) => out.extend_from_slice(text),
        }
    }
}

impl Line {
    /// A line of a text with marks.
    pub fn new(text: &[u8]) -> Line {
        let mut before = Vec::new();
        let mut rest = text;
        let gap = |b: &u8| [DISPLACEMENT as u8, IMMEDIATE as u8].contains(b);
        while let Some(at) = rest.iter().position(gap) {
            let gap = match rest[at] == DISPLACEMENT as u8 {
                true => Gap::Displacement,
                false => Gap::Immediate,
            };
            before.push((Run::new(&rest[..at]), gap));
            rest = &rest[at + 1..];
        }
        Line {
            before,
            rest: Run::new(rest),
        }
    }
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

/// A formatter that leaves these gaps.
pub fn formatter(filled: Filled) -> GasFormatter {
    let gaps: Option<Box<dyn SymbolResolver>> = match filled.number() {
        0 => None,
        _ => Some(Box::new(Gaps(filled))),
    };
    let mut f = GasFormatter::with_options(gaps, None);
    let options = f.options_mut();
    options.set_number_base(NumberBase::Decimal);
    options.set_space_after_operand_separator(true);
    options.set_gas_show_mnemonic_size_suffix(true);
    options.set_branch_leading_zeros(false);
    options.set_signed_immediate_operands(true);
    options.set_show_symbol_address(false);
    options.set_rip_relative_addresses(true);
    // Assemblers do not know all names of comparisons (`vpcmpfalseub`); they know the numbers.
    options.set_use_pseudo_ops(false);
    f
}

/// Makes `text` the line of an instruction, with the marks of gaps.
pub fn line(formatter: &mut GasFormatter, instruction: &Instruction, text: &mut String) {
    text.clear();
    text.push('\t');
    formatter.format(instruction, text);
    // A tab between mnemonic and operands, as compilers print it.
    let prefixed = instruction.has_lock_prefix()
        || instruction.has_rep_prefix()
        || instruction.has_repne_prefix();
    if !prefixed && let Some(blank) = text.find(' ') {
        text.replace_range(blank..=blank, "\t");
    }
    text.push('\n');
}
