//! Where control goes: places in the object's code, and routines outside of it.

use super::Gpr;

/// An entry of the runtime, or an imported routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routine {
    /// The routine that the loader resolves an imported name to: follows the psABI.
    Imported,
    /// `__put_user_<size>` of the kernel: the same, but `rbx` is changed (target `linux`).
    PutUser,
    /// `__fentry__` of the kernel: the same, but it may take the words at `rsp` for its caller's
    /// return address, and write over it (target `linux`).
    Trace,
    /// [`twin_abi::names::CALL`]: continues at a codemap entry.
    Indirect,
    /// `twin_slow_<reg>`.
    Slow(Gpr),
    /// `__x86_indirect_thunk_<reg>`: continues at the register's value (target `linux`).
    Thunk(Gpr),
    /// [`twin_abi::names::PORT_IN`].
    PortIn,
    /// [`twin_abi::names::PORT_OUT`] and [`twin_abi::names::WARN`]: keep everything.
    Keeps,
    /// [`twin_abi::names::BUG`], [`twin_abi::names::SMASHED`] and [`twin_abi::names::WILD`]:
    /// do not return.
    Bug,
}

/// A place in code: number of the code section, byte offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeAt {
    /// Index in `crate::object::Image::code`.
    pub section: u16,
    /// Byte offset in the section; negative or too large if no section has it.
    pub offset: i64,
}

/// Where a direct branch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchTarget {
    /// An instruction of this object, by number.
    Insn(u32),
    /// An imported routine or a runtime entry.
    Routine(Routine),
    /// A forbidden place; reported already.
    Bad,
}
