//! Registers that a sequence of a scheme with a window borrows: it pushes and pops them, or
//! keeps them on the data stack, whatever they hold. Afterwards they hold that again, but
//! nobody knows any more what it is.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use liveness::{LocSet, Reg};

use crate::analyse::class::Class;
use crate::analyse::survey::Survey;
use crate::frame::words::mixes_word;
use crate::lift::Inst;

/// The registers that a sequence may borrow: the first, and the second if it needs two.
pub type Borrowed = [Reg; 2];

/// In order of preference. No instruction that borrows names more than three, and none has
/// more than one register for a place.
const CANDIDATES: [Reg; 6] = [Reg::RAX, Reg::RCX, Reg::RDX, Reg::RSI, Reg::RDI, Reg::R8];

/// The registers that the sequence of an instruction which borrows may borrow, other than those
/// `taken`.
pub fn borrowed(taken: LocSet) -> Borrowed {
    let mut free = CANDIDATES
        .into_iter()
        .filter(|r| !taken.contains(LocSet::reg(*r)));
    let few = "it names few registers";
    [free.next().expect(few), free.next().expect(few)]
}

/// Whether the sequence of an instruction may borrow registers.
pub fn borrows(inst: &Inst, survey: &Survey, class: Class) -> bool {
    let two_references = inst.displacement.is_some() && inst.immediate.is_some();
    let for_stack = || survey.uses_stack && borrows_for_stack(&inst.iced, class);
    two_references || mixes_word(&inst.iced) || for_stack()
}

/// Whether it does because of what it does with `rsp` or at it.
fn borrows_for_stack(iced: &Instruction, class: Class) -> bool {
    let moves_words = match class {
        Class::PushMemory(_) | Class::PopMemory(_) => true,
        Class::Stack => iced.mnemonic() == Mnemonic::Push,
        _ => false,
    };
    moves_words || reads_rsp(iced) || adds_to_itself(iced)
}

/// Whether it takes `rsp` as a number, and not to copy it to a register: that needs none.
fn reads_rsp(iced: &Instruction) -> bool {
    let copies = iced.mnemonic() == Mnemonic::Mov && iced.op0_kind() == OpKind::Register;
    let pushes = iced.mnemonic() == Mnemonic::Push && iced.op0_register() == Register::RSP;
    let last = iced.op1_register() == Register::RSP && iced.op_count() == 2;
    pushes || last && !copies
}

/// `lea d(%rsp,%r,s), %r`
fn adds_to_itself(iced: &Instruction) -> bool {
    iced.memory_base() == Register::RSP
        && iced.mnemonic() == Mnemonic::Lea
        && iced.memory_index() == iced.op0_register()
}
