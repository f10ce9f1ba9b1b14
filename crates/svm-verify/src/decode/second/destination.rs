//! Which general-purpose registers an instruction writes.

use yaxpeax_x86::long_mode::{
    Instruction as Second, Operand, RegSpec, behavior::AccessVisitor, register_class,
};

use crate::insn::{Condition, Gpr, GprSet, Insn, Op};

/// Collects the general-purpose registers that are written.
struct Written(GprSet);

impl AccessVisitor for Written {
    fn register_write(&mut self, r: RegSpec) {
        let number = match r.class() {
            register_class::Q | register_class::D | register_class::W | register_class::RB => {
                r.num()
            }
            // `ah` to `bh` are 4 to 7: parts of the first four.
            register_class::B => r.num() & 3,
            _ => return,
        };
        self.0 = self.0.or(Gpr(number).set());
    }
    fn register_read(&mut self, _: RegSpec) {}
    fn memory_read(&mut self, _: Option<u64>, _: u32) {}
    fn memory_write(&mut self, _: Option<u64>, _: u32) {}
}

/// Instructions whose destination [`super::meaning`] has compared.
fn is_known(op: Op) -> bool {
    matches!(
        op,
        Op::Copy { .. }
            | Op::Copy32 { .. }
            | Op::Constant { .. }
            | Op::WindowStart { .. }
            | Op::Cut { .. }
            | Op::And { .. }
            | Op::Lea { .. }
            | Op::Alu { .. }
            | Op::Compare { .. }
            | Op::CompareBound { .. }
            | Op::MoveIfAbove { .. }
            | Op::Exchange { .. }
            | Op::Table { .. }
            | Op::Call(_)
            | Op::Jump(_)
            | Op::Branch(Condition::Above | Condition::NotEqual, _)
    )
}

/// Whether the second decoding's destination is the register, of 32 bits, whose upper half
/// the interpretation believes cleared; true if there is none.
pub(super) fn clears(insn: &Insn, second: &Second) -> bool {
    let is_destination = |r: Gpr| {
        let d = second.operand(0);
        matches!(d, Operand::Register { reg } if reg.class() == register_class::D && reg.num() == r.0)
    };
    insn.low.iter().all(is_destination)
}

/// Whether the interpretation believes written every register that the second decoding
/// writes. If it believes more registers written, that costs only precision.
pub(super) fn writes(insn: &Insn, second: &Second) -> bool {
    if is_known(insn.op) {
        return true;
    }
    let mut written = Written(GprSet::NONE);
    // Strings, `bt` on memory and clocks: the decoder does not say.
    let _ = second.behavior().visit_accesses(&mut written);
    written.0.0 & !insn.writes.0 == 0
}
