//! Every 64-bit instruction form with a memory operand, made from the decoder
//! library's own tables, times the ways to write its address.
//!
//! A *form* is a code of the manual with its operands chosen. No part of the
//! enumeration is a list of instructions kept by hand, so a form that a later version
//! of the library knows is tested too. `operands` chooses operands, `modes` addresses.
//!
//! ```text
//! all ──> survey ──────────────────> accepted, refused by name      (snapshot)
//!            │
//!            └─> cases ──> object ──┬─> linked ───────> native  ─┐
//!                                   └─> rewritten ────> twin    ─┴─> compare
//! states: registers, flags, memory, placement, table
//! ```
//!
//! [`survey`] asks rewriter and verifier about every form; [`campaign`] executes
//! the accepted ones, natively and rewritten, and compares their effects.

mod addressing;
pub mod assembly;
pub mod builds;
pub mod campaign;
pub mod cases;
mod compare;
pub mod compiled;
pub mod copies;
mod enter;
pub mod functions;
mod got;
mod image;
pub mod known;
mod memory;
mod native;
pub mod object;
mod operands;
pub mod overflow;
mod ports;
mod probe;
mod process;
pub mod programs;
mod record;
pub mod report;
mod state;
mod strings;
pub mod survey;
mod twin;

pub use addressing::AddressingForm;

use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, EncodingKind, FlowControl, Instruction,
    InstructionInfoFactory, Mnemonic, OpKind, Register,
};
use svm_rewrite::Target;

/// How an instruction form reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// Through an operand that is written with an address.
    Explicit,
    /// Through `rsi`, `rdi` or another register that it does not name.
    Implicit,
    /// Only the stack, as `push` and `call` do.
    Stack,
    /// Not at all.
    None,
}

/// An instruction form at one addressing mode and with one prefix.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The manual's form.
    pub code: Code,
    /// How it reaches memory.
    pub reach: Reach,
    /// How its address is written.
    pub mode: AddressingForm,
    /// The instruction. An instruction-relative or symbolic address gets a
    /// relocation.
    pub instruction: Instruction,
}

/// An object with a function for each kind of sequence: every way to write an
/// address, loads, stores, wide and locked accesses, bit strings, strings. In a module `%fs` is user space's: those forms are left out.
pub fn sequences(target: Target) -> elf_loader::Object<'static> {
    use Code::*;
    const ONE_MODE: [Code; 14] = [
        Mov_rm8_imm8, Add_rm64_r64, Movups_xmm_xmmm128, Cmpxchg16b_m128, Cmovne_r64_rm64,
        Bts_rm64_r64, Push_rm64, Pop_rm64, Prefetcht0_m8, Movsb_m8_m8, Stosq_m64_RAX,
        Lodsd_EAX_m32, Cmpsw_m16_m16, Scasb_AL_m8,
    ];
    let wanted = |form: &Form| match form.code {
        Mov_r64_rm64 | Mov_rm32_r32 => true,
        code => {
            let plain = matches!(form.mode, AddressingForm::Base | AddressingForm::Implicit);
            let words = form.instruction.segment_prefix() == Register::None;
            ONE_MODE.contains(&code) && plain && words && !has_address32(&form.instruction)
        }
    };
    let suits =
        |form: &Form| target != Target::Linux || form.instruction.segment_prefix() != Register::FS;
    let forms = all().forms;
    let chosen = forms
        .iter()
        .enumerate()
        .filter(|(_, form)| wanted(form) && suits(form));
    let cases: Vec<_> = chosen.flat_map(|(n, f)| cases::of_form(n, f, 8)).collect();
    object::object(cases.iter().enumerate())
}

fn has_address32(i: &Instruction) -> bool {
    (0..i.op_count()).any(|n| matches!(i.op_kind(n), OpKind::MemorySegESI | OpKind::MemoryESEDI))
}

/// All 64-bit forms that reach no memory, each with one choice of registers.
/// They need no translation, but rewriter and verifier have to agree on which may
/// occur. Branches are left out: they mean nothing without a target.
pub fn without_memory() -> Vec<Form> {
    let mut info = InstructionInfoFactory::new();
    let forms = Code::values().filter_map(|code| {
        let table = code.op_code();
        let usable = table.is_instruction() && table.mode64();
        if !usable || table.encoding() == EncodingKind::MVEX {
            return None;
        }
        let instruction = operands::choose_registers(code)?;
        let straight = instruction.flow_control() == FlowControl::Next;
        let kept = straight && reach(&instruction, &mut info).is_none() && encodes(&instruction);
        kept.then_some(Form {
            code,
            reach: Reach::None,
            mode: AddressingForm::Implicit,
            instruction,
        })
    });
    forms.collect()
}

/// All forms, and codes that reach memory but encode at no mode.
#[derive(Debug, Default)]
pub struct Enumeration {
    /// The forms, in the order of the library's tables.
    pub forms: Vec<Form>,
    /// Codes of 64-bit mode whose operands could not be chosen or encoded:
    /// none may be lost silently.
    pub lost: Vec<Code>,
}

/// All 64-bit forms that reach memory, at every mode and prefix that they can
/// be encoded with.
pub fn all() -> Enumeration {
    let mut info = InstructionInfoFactory::new();
    let mut found = Enumeration::default();
    for code in Code::values() {
        let table = code.op_code();
        // MVEX is Knights Corner's, a coprocessor that shares no code with PCs.
        if !table.is_instruction() || !table.mode64() || table.encoding() == EncodingKind::MVEX {
            continue;
        }
        let Some(base) = operands::choose(code) else {
            found.lost.push(code);
            continue;
        };
        let Some(reach) = reach(&base, &mut info) else {
            continue;
        };
        let before = found.forms.len();
        let modes: &[AddressingForm] = match reach {
            Reach::Explicit => &AddressingForm::ALL,
            Reach::Implicit | Reach::Stack | Reach::None => &[AddressingForm::Implicit],
        };
        for &mode in modes {
            let written = prefixed(code, mode, &base);
            let encoded = written.into_iter().filter(encodes);
            found.forms.extend(encoded.map(|instruction| Form {
                code,
                reach,
                mode,
                instruction,
            }));
        }
        if found.forms.len() == before {
            found.lost.push(code);
        }
    }
    found
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
    let implicit = operands::has_string_memory(instruction)
        || hidden_memory(instruction.mnemonic())
        || !info.info(instruction).used_memory().is_empty();
    implicit.then_some(Reach::Implicit)
}

/// Instructions with an address in an implicit register, for which the tables list no
/// memory operand.
fn hidden_memory(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Clzero | Mnemonic::Monitor | Mnemonic::Monitorx | Mnemonic::Umonitor
    )
}

/// The instruction at that mode: plain, and with each prefix that it takes.
fn prefixed(code: Code, mode: AddressingForm, base: &Instruction) -> Vec<Instruction> {
    let table = code.op_code();
    let Some(plain) = addressing::write(base, mode) else {
        return Vec::new();
    };
    let mut variants = vec![plain];
    let mut with = |change: &dyn Fn(&mut Instruction)| {
        let mut changed = plain;
        change(&mut changed);
        variants.push(changed);
    };
    if table.can_use_lock_prefix() {
        with(&|i| i.set_has_lock_prefix(true));
    }
    if table.can_use_rep_prefix() {
        with(&|i| i.set_has_rep_prefix(true));
    }
    if table.can_use_repne_prefix() {
        with(&|i| i.set_has_repne_prefix(true));
    }
    if mode == AddressingForm::Implicit && operands::has_string_memory(&plain) {
        with(&|i| i.set_segment_prefix(Register::GS));
        with(&address32);
    }
    variants
}

/// String operands with 32-bit pointers.
fn address32(i: &mut Instruction) {
    for n in 0..i.op_count() {
        match i.op_kind(n) {
            OpKind::MemorySegRSI => i.set_op_kind(n, OpKind::MemorySegESI),
            OpKind::MemorySegRDI => i.set_op_kind(n, OpKind::MemorySegEDI),
            OpKind::MemoryESRDI => i.set_op_kind(n, OpKind::MemoryESEDI),
            _ => {}
        }
    }
}

/// Whether it can be encoded. (The library's encoder leaves REX out of 3DNow
/// instructions, so the encoding is decoded to see that it names the same registers.)
fn encodes(instruction: &Instruction) -> bool {
    let mut encoder = Encoder::new(64);
    if encoder.encode(instruction, 0).is_err() {
        return false;
    }
    let bytes = encoder.take_buffer();
    let decoded = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
    let address = |i: &Instruction| (i.memory_base(), i.memory_index());
    decoded.code() != instruction.code()
        || instruction.memory_base() == Register::RIP
        || address(&decoded) == address(instruction)
}
