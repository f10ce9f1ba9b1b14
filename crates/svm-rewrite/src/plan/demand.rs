//! What the sequence of each class needs: registers, flags, the way out of the object.
//! The numbers of registers follow from the sequences in [`crate::encode`].

use twin_abi::Processor;

use super::Rules;
use crate::analyse::class::{Callee, Class, Repeat, Space};
use crate::schemes::{Cut, Row};

/// What a class's sequence needs.
#[derive(Default)]
pub struct Demand {
    /// It translates, and so overwrites registers and flags.
    pub translates: bool,
    /// How many scratch registers it overwrites.
    pub registers: usize,
    /// Flags need no saving: it sets them itself, or calls code that reads none
    /// (psABI 3.2.1).
    pub keeps_flags: bool,
    /// It goes through `twin_stlb_call`, which overwrites r10 and r11.
    pub call_registers: bool,
}

impl Demand {
    /// Of a class, under a scheme and a target's rules.
    pub fn of(class: Class, scheme: &Row, rules: &Rules) -> Demand {
        match scheme.cut {
            Some(Cut::Prefix) => return Demand::in_window(class),
            Some(Cut::Register(processor)) => return Demand::in_wide_window(class, processor),
            None => {}
        }
        let check = scheme.registers + rules.table.registers();
        let translate = |registers| Demand {
            translates: true,
            registers,
            ..Demand::default()
        };
        match class {
            Class::Plain
            | Class::Stack
            | Class::Drop
            | Class::Unreached(_)
            | Class::AddressOf(_)
            | Class::Branch(_)
            | Class::Return
            | Class::Trap(_)
            | Class::Stop
            | Class::PopFlags
            | Class::TypeHash(_)
            | Class::Port(_)
            | Class::FramePointerToStack
            | Class::Realign(_)
            | Class::Keep(_)
            | Class::KeepOwnPlace(_)
            | Class::KeepBranch(_)
            | Class::StaticNop => Demand::default(),
            Class::Memory(space)
            | Class::Prefetch(space)
            | Class::PushMemory(space)
            | Class::PopMemory(space) => translate(check + extra_for(space)),
            // The bit's word and the masked offset, besides the check's registers.
            Class::BitString(space) => translate((check + extra_for(space)).max(check + 2)),
            Class::Xlat => translate(check + 1),
            // The gate's rax is saved separately and holds no translation.
            Class::PortString(..) => translate(check),
            Class::String(op, _, repeat) => {
                let pointers = usize::from(op.translates_rsi()) + usize::from(op.translates_rdi());
                let count = usize::from(repeat != Repeat::Once);
                // One register holds each translation; check and count share the rest.
                let registers = pointers + (check - 1).max(1) + count;
                Demand {
                    translates: true,
                    registers,
                    keeps_flags: op.compares(),
                    call_registers: false,
                }
            }
            Class::CallIndirect(Callee::Memory(space))
            | Class::JumpIndirect(Callee::Memory(space))
                if space != Space::Stack =>
            {
                Demand {
                    call_registers: true,
                    keeps_flags: true,
                    ..translate(check + extra_for(space))
                }
            }
            // It sets the flags itself: code that reads them afterwards is refused.
            Class::Switch(Callee::Memory(space)) => Demand {
                keeps_flags: true,
                ..translate(check + extra_for(space))
            },
            Class::Switch(Callee::Register(_)) => Demand::default(),
            Class::CallIndirect(_) | Class::JumpIndirect(_) => Demand {
                call_registers: true,
                ..Demand::default()
            },
        }
    }

    /// Of a class under a scheme without checks (`encode/window`): a base of dom0's
    /// CPU, what a string's pointer becomes, or what a table holds is in one register.
    fn in_window(class: Class) -> Demand {
        let one = Demand {
            translates: true,
            registers: 1,
            ..Demand::default()
        };
        let without_flags = |demand| Demand {
            keeps_flags: true,
            ..demand
        };
        let calls = |demand| Demand {
            call_registers: true,
            ..demand
        };
        match class {
            Class::Memory(Space::PerCpu(_)) | Class::Prefetch(Space::PerCpu(_)) => one,
            // Its word and the masked offset; `sar` and `and` change flags.
            Class::BitString(_) => Demand {
                registers: 2,
                ..one
            },
            Class::Xlat | Class::String(..) | Class::Switch(Callee::Memory(_)) => {
                without_flags(one)
            }
            Class::CallIndirect(Callee::Memory(Space::PerCpu(_)))
            | Class::JumpIndirect(Callee::Memory(Space::PerCpu(_))) => calls(without_flags(one)),
            Class::CallIndirect(_) | Class::JumpIndirect(_) => calls(Demand::default()),
            Class::Plain
            | Class::Stack
            | Class::Drop
            | Class::Unreached(_)
            | Class::Memory(_)
            | Class::Prefetch(_)
            | Class::PushMemory(_)
            | Class::PopMemory(_)
            | Class::PortString(..)
            | Class::AddressOf(_)
            | Class::Branch(_)
            | Class::Switch(Callee::Register(_))
            | Class::Return
            | Class::Trap(_)
            | Class::Stop
            | Class::PopFlags
            | Class::TypeHash(_)
            | Class::Port(_)
            | Class::FramePointerToStack
            | Class::Realign(_)
            | Class::Keep(_)
            | Class::KeepOwnPlace(_)
            | Class::KeepBranch(_)
            | Class::StaticNop => Demand::default(),
        }
    }

    /// The same where addresses are cut in a register: one more for what is behind a pointer
    /// or in an element of a port's string, and a bit string's word and masked offset. `pext`
    /// changes no flag, `and` does.
    fn in_wide_window(class: Class, processor: Processor) -> Demand {
        let keeps_flags = processor == Processor::Bmi2;
        let cut = |registers, keeps_flags| Demand {
            translates: true,
            registers,
            keeps_flags,
            call_registers: false,
        };
        match class {
            Class::Memory(Space::Heap) | Class::Prefetch(Space::Heap) => cut(1, keeps_flags),
            Class::Xlat => cut(1, keeps_flags),
            Class::Memory(Space::PerCpu(_)) | Class::Prefetch(Space::PerCpu(_)) => cut(2, false),
            Class::CallIndirect(Callee::Memory(Space::PerCpu(_)))
            | Class::JumpIndirect(Callee::Memory(Space::PerCpu(_))) => Demand {
                call_registers: true,
                ..cut(2, true)
            },
            Class::PortString(..) => cut(2, keeps_flags),
            Class::BitString(_) => cut(3, false),
            other => Demand::in_window(other),
        }
    }
}

/// Segment-relative addresses are summed in a register before the check.
fn extra_for(space: Space) -> usize {
    match space {
        Space::PerCpu(_) => 1,
        Space::Stack | Space::Heap | Space::Global => 0,
    }
}
