//! The memory operand that most accesses have: `disp(%base)`, without index or segment.
//! Three analyses follow these operands: the stack frame ([`crate::frame`]), value
//! numbering and shared translations ([`crate::plan`]).

use iced_x86::{Instruction, Register};

/// Base and displacement of an operand without index and segment, whose base is a
/// 64-bit general register; `None` for any other. A relocation may fill the
/// displacement; the caller has to check that.
pub fn base_and_displacement(iced: &Instruction) -> Option<(Register, i64)> {
    let base = iced.memory_base();
    let alone = iced.memory_index() == Register::None
        && base.is_gpr64()
        && iced.segment_prefix() == Register::None;
    alone.then(|| (base, iced.memory_displacement64() as i64))
}
