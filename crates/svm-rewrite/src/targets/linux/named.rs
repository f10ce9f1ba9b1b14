//! Operands that name memory by a symbol and nothing else. They stay as they are, so the place
//! has to be one that the instruction may reach: data of the module or of the kernel.

use elf_loader::consts::{SHF_ALLOC, SHF_WRITE};
use elf_loader::special;
use elf_loader::{Place, Role, Section};

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
            unreachable(section, start, size, writes)
        }
        Place::Undefined if !(0..KERNEL_SYMBOL).contains(&from_symbol) => {
            Some("the place is far from the symbol that it names")
        }
        Place::Undefined | Place::Common | Place::Absolute => None,
    };
    reason.map_or(Ok(()), |reason| Err((RefusalCode::NamedMemory, reason)))
}

/// Why `size` bytes from `start` of a section on may not be reached, if they may not.
fn unreachable(section: &Section<'_>, start: i64, size: u64, writes: bool) -> Option<&'static str> {
    let end = u64::try_from(start)
        .ok()
        .and_then(|at| at.checked_add(size));
    let loaded = section.role == Role::Contents && section.flags & SHF_ALLOC != 0;
    if !loaded {
        Some("it reaches a section that is not loaded")
    } else if KERNELS.contains(&&*section.name) || special::kind_of(&section.name).is_some() {
        Some("it reaches what the kernel keeps for itself")
    } else if end.is_none_or(|end| end > section.size) {
        Some("it reaches a place outside the section of the symbol that it names")
    } else if writes && section.flags & SHF_WRITE == 0 {
        Some("it writes what is read-only")
    } else {
        None
    }
}
