//! Every 64-bit instruction form with a memory operand, made from the decoder
//! library's own tables, times the ways to write its address.
//!
//! A *form* is a code of the manual with its operands chosen; nothing in the
//! enumeration is a list of instructions kept by hand, so a form that the
//! library learns is a form that is tested. Operands are fixed by
//! [`operands`], addresses by [`modes`].

mod modes;
mod object;
mod operands;

pub use modes::Mode;
pub use object::{Body, object};

use iced_x86::{Code, Encoder, Instruction, InstructionInfoFactory, Mnemonic};

/// How an instruction form reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// Through an operand that is written with an address.
    Explicit,
    /// Through `rsi`, `rdi` or another register that it does not name.
    Implicit,
    /// Only the stack, as `push` and `call` do.
    Stack,
}

/// An instruction form at one addressing mode and with one prefix.
#[derive(Clone, Debug)]
pub struct Form {
    /// The manual's form.
    pub code: Code,
    /// How it reaches memory.
    pub reach: Reach,
    /// How its address is written.
    pub mode: Mode,
    /// The instruction. An instruction-relative address has displacement 0 and
    /// gets a relocation.
    pub instruction: Instruction,
}

/// All 64-bit forms that reach memory, at every mode and prefix that they can
/// be encoded with, in the order of the library's tables.
pub fn all() -> Vec<Form> {
    let mut info = InstructionInfoFactory::new();
    let mut forms = Vec::new();
    for code in Code::values() {
        let table = code.op_code();
        if !table.is_instruction() || !table.mode64() {
            continue;
        }
        let Some(base) = operands::choose(code) else { continue };
        let Some(reach) = reach(&base, &mut info) else { continue };
        let modes: &[Mode] = if reach == Reach::Explicit { &Mode::ALL } else { &[Mode::Implicit] };
        for &mode in modes {
            for instruction in prefixed(code, mode, &base) {
                if encodes(&instruction) {
                    forms.push(Form { code, reach, mode, instruction });
                }
            }
        }
    }
    forms
}

fn reach(instruction: &Instruction, info: &mut InstructionInfoFactory) -> Option<Reach> {
    if matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) {
        return None;
    }
    if operands::has_memory(instruction) {
        return Some(Reach::Explicit);
    }
    if instruction.is_stack_instruction() {
        return Some(Reach::Stack);
    }
    let implicit = operands::has_string_memory(instruction) || !info.info(instruction).used_memory().is_empty();
    implicit.then_some(Reach::Implicit)
}

/// The instruction at that mode: plain, and with each prefix that it takes.
fn prefixed(code: Code, mode: Mode, base: &Instruction) -> Vec<Instruction> {
    let table = code.op_code();
    let Some(plain) = modes::write(base, mode) else { return Vec::new() };
    let mut variants = vec![plain];
    if mode == Mode::Base && table.can_use_lock_prefix() {
        let mut locked = plain;
        locked.set_has_lock_prefix(true);
        variants.push(locked);
    }
    if table.can_use_rep_prefix() {
        let mut repeated = plain;
        repeated.set_has_rep_prefix(true);
        variants.push(repeated);
    }
    if table.can_use_repne_prefix() {
        let mut repeated = plain;
        repeated.set_has_repne_prefix(true);
        variants.push(repeated);
    }
    variants
}

fn encodes(instruction: &Instruction) -> bool {
    Encoder::new(64).encode(instruction, 0).is_ok()
}
