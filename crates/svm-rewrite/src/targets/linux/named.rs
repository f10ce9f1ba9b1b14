//! Operands that name memory by a symbol and nothing else. They stay as they are, so the place
//! has to be one that the instruction may reach: data of the module or of the kernel.
//!
//! A read that begins in a section and ends behind it is translated. Compilers copy a short
//! string whose length they do not know by words, and it may be the last thing in `.data`
//! (`e1000e_driver_name` of Linux 5.11 to 6.0).

use std::ops::Range;

use elf_loader::consts::{SHF_ALLOC, SHF_WRITE};
use elf_loader::special;
use elf_loader::{Place, Role, Section};
use iced_x86::{FlowControl, Instruction};

use crate::analyse::classify::{Question, Refused};
use crate::analyse::survey::MemoryEffect;
use crate::asm::Shape;
use crate::refusal::RefusalCode;

/// Sections that the kernel reads from the file alone, or copies for each processor.
const KERNELS: [&str; 5] = [
    ".modinfo",
    "__versions",
    "__version_ext_crcs",
    "__version_ext_names",
    ".data..percpu",
];

/// How far from a symbol of the kernel an operand may begin; its size is not known.
const KERNEL_SYMBOL: i64 = 1 << 20;

/// Refuses an operand at a place that the instruction may not reach.
///
/// # Errors
/// Why it may not.
pub fn refuse(question: &Question<'_>) -> Result<(), Refused> {
    let inst = question.lifted.inst(question.inst);
    let effect = question.survey.memory;
    let Some(value) = inst.displacement else {
        return Ok(());
    };
    if effect == MemoryEffect::Untouched || inst.operand().shape() != Shape::Constant {
        return Ok(());
    }
    let value = question.lifted.value(value);
    let from_symbol = value.addend;
    // `push` and `call` write the stack, and read the operand.
    let writes = effect == MemoryEffect::Written && inst.iced.stack_pointer_increment() >= 0;
    let symbol = question.lifted.object.symbol(value.symbol);
    let reason = match symbol.place {
        Place::In(id) if question.lifted.code_section(id).is_some() => {
            Some("it reaches code as data")
        }
        Place::In(id) => {
            let section = question.lifted.object.section(id);
            let start = from_symbol.wrapping_add_unsigned(symbol.value);
            let size = inst.iced.memory_size().size() as u64;
            let reaches = Reaches {
                bytes: start..start.saturating_add_unsigned(size),
                writes,
                is_translated: question.kept.is_none() && may_be_translated(&inst.iced),
            };
            unreachable(section, &reaches)
        }
        Place::Undefined if !(0..KERNEL_SYMBOL).contains(&from_symbol) => {
            Some("the place is far from the symbol that it names")
        }
        Place::Undefined | Place::Common | Place::Absolute => None,
    };
    reason.map_or(Ok(()), |reason| Err((RefusalCode::NamedMemory, reason)))
}

/// What an operand reaches.
struct Reaches {
    /// In its section.
    bytes: Range<i64>,
    writes: bool,
    /// Whether it is, where it ends behind the section.
    is_translated: bool,
}

/// Why it may not, if it may not.
fn unreachable(section: &Section<'_>, operand: &Reaches) -> Option<&'static str> {
    let Range { start, end } = operand.bytes;
    let size = section.size as i64;
    let overruns = end > size && (operand.writes || !operand.is_translated);
    let loaded = section.role == Role::Contents && section.flags & SHF_ALLOC != 0;
    if !loaded {
        Some("it reaches a section that is not loaded")
    } else if KERNELS.contains(&&*section.name) || special::kind_of(&section.name).is_some() {
        Some("it reaches what the kernel keeps for itself")
    } else if !(0..size).contains(&start) || overruns {
        Some("it reaches a place outside the section of the symbol that it names")
    } else if operand.writes && section.flags & SHF_WRITE == 0 {
        Some("it writes what is read-only")
    } else {
        None
    }
}

/// Whether an instruction is a plain access, of which the operand may become a register's.
fn may_be_translated(iced: &Instruction) -> bool {
    iced.flow_control() == FlowControl::Next && iced.stack_pointer_increment() == 0
}

/// Whether an operand names memory of the module, and ends behind the section of its symbol.
pub fn ends_behind_section(question: &Question<'_>) -> bool {
    let inst = question.lifted.inst(question.inst);
    let Some(value) = inst.displacement else {
        return false;
    };
    let value = question.lifted.value(value);
    let symbol = question.lifted.object.symbol(value.symbol);
    let Place::In(id) = symbol.place else {
        return false;
    };
    let end = i128::from(symbol.value)
        + i128::from(value.addend)
        + inst.iced.memory_size().size() as i128;
    inst.operand().shape() == Shape::Constant
        && end > i128::from(question.lifted.object.section(id).size)
}
