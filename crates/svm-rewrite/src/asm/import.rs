//! What a rewritten object refers to outside itself.
//!
//! These are ids while code is made, so that thousands of references to the same few
//! symbols cost nothing; [`crate::targets`] turns them into names.

use elf_loader::{Object, SectionId, SymbolId};
use liveness::Reg;
use twin_abi::names;

/// Something outside the rewritten object. Ids are the original object's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Import {
    /// The place in dom0 of a section of the original.
    Section(SectionId),
    /// The place in dom0 of an imported symbol.
    Data(SymbolId),
    /// An imported routine, called.
    Routine(SymbolId),
    /// An entry of the runtime, called.
    Runtime(Service),
    /// The slow path for an address in that register, called.
    Slow(Reg),
    /// The translation table.
    Stlb,
    /// The start of the window.
    Window,
    /// What is added to an address on the control stack.
    StackView,
    /// What an address is cut with.
    WindowMask,
    /// The lowest address that a pointer may have.
    Lowest,
    /// The highest.
    Highest,
    /// A symbol of the original, where the result keeps the original's symbols.
    Own(SymbolId),
}

/// The services of the runtime, other than translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Calls through a pointer.
    Call,
    /// Reports a WARN.
    Warn,
    /// Ends the invocation.
    Bug,
    /// Ends it because a return address was overwritten.
    Smashed,
    /// Ends it because a pointer is none of dom0's.
    Wild,
    /// Reads a port; log2 of the width in bytes.
    In(u8),
    /// Writes one.
    Out(u8),
}

impl Service {
    /// The entry's name.
    pub fn name(self) -> &'static str {
        match self {
            Service::Call => names::CALL,
            Service::Warn => names::WARN,
            Service::Bug => names::BUG,
            Service::Smashed => names::SMASHED,
            Service::Wild => names::WILD,
            Service::In(log2) => names::PORT_IN[usize::from(log2)],
            Service::Out(log2) => names::PORT_OUT[usize::from(log2)],
        }
    }
}

impl Import {
    /// Its symbol's name (`twin_abi::names`).
    pub fn name(self, object: &Object<'_>) -> String {
        match self {
            Import::Section(id) => format!("{}{}", names::VM_PREFIX, object.section(id).name),
            Import::Data(id) => format!("{}{}", names::VM_PREFIX, object.symbol(id).name),
            Import::Routine(id) => object.symbol(id).name.to_string(),
            Import::Runtime(service) => service.name().to_owned(),
            Import::Slow(reg) => format!("{}{}", names::SLOW_PREFIX, reg.name()),
            Import::Stlb => names::STLB.to_owned(),
            Import::Window => names::WINDOW.to_owned(),
            Import::StackView => names::STACK_VIEW.to_owned(),
            Import::WindowMask => names::WINDOW_MASK.to_owned(),
            Import::Lowest => names::LOWEST.to_owned(),
            Import::Highest => names::HIGHEST.to_owned(),
            Import::Own(id) => object.symbol(id).name.to_string(),
        }
    }
}
