//! What stays where stores alone are translated (`--accesses stores`): instructions that
//! never write memory outside the stack.
//!
//! The destinations of indirect calls and jumps are translated nevertheless, so that control
//! goes where it always goes. So are loads in rare forms that the verifier does not read:
//! `xlat`, addresses of 32 bits, addresses that are an immediate, and loads of `%ah`, `%ch`, `%dh` and `%bh`.

use iced_x86::{Code, Instruction};
use twin_abi::Accesses;

use crate::analyse::class::{Class, Space, StringOp};
use crate::analyse::survey::{MemoryEffect, Survey};
use crate::asm::Operand;
use crate::registers::loaded_high;

/// The class of an instruction where only these accesses are translated.
pub fn unless_load(class: Class, iced: &Instruction, survey: &Survey, of: Accesses) -> Class {
    match of {
        Accesses::All => class,
        Accesses::Stores => without_loads(class, iced, survey),
    }
}

/// Whether an instruction writes no memory, as far as the decoder's tables say.
pub fn only_reads(survey: &Survey) -> bool {
    survey.memory == MemoryEffect::Read
}

fn without_loads(class: Class, iced: &Instruction, survey: &Survey) -> Class {
    let stays = match class {
        Class::Memory(Space::Heap) | Class::BitString(_) | Class::Stack => {
            only_reads(survey) && !is_rare(iced)
        }
        // It writes the stack, like any push.
        Class::PushMemory(Space::Heap) => !is_rare(iced),
        Class::String(StringOp::Movs, log2, repeat) => {
            return Class::String(StringOp::MovsTo, log2, repeat);
        }
        // Bytes of a port stay no instruction alone.
        Class::String(op, ..) => !op.writes() && !class.saves_frame_pointer(),
        _ => false,
    };
    match stays {
        true => Class::Keep(class.site_class()),
        false => class,
    }
}

/// Whether the operand has a form that stays in no mode.
fn is_rare(iced: &Instruction) -> bool {
    use Code::*;
    let immediate = matches!(
        iced.code(),
        Mov_AL_moffs8 | Mov_AX_moffs16 | Mov_EAX_moffs32 | Mov_RAX_moffs64
    );
    immediate || Operand::of(iced).narrow || loaded_high(iced).is_some()
}
