//! Gives each instruction its class.
//!
//! A pure function of the lifted instruction. Every way in which an instruction can
//! reach memory has its case; an instruction without a case is refused, never copied on
//! the assumption that it is harmless. This file tells the cases apart; each file below
//! handles one.

pub mod extension;
mod implied;
mod loads;
mod memory;
pub mod prefix;
mod stack_pointer;

use foldhash::HashMap;
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind};
use liveness::Effect;
use twin_abi::Accesses;

use crate::analyse::class::{Callee, Class};
use crate::analyse::flow::{Conventions, HiddenFlow};
use crate::analyse::references::References;
use crate::analyse::routines;
use crate::analyse::survey::{MemoryEffect, Survey};
use crate::asm::Branch;
use crate::lift::{Destination, Inst, InstIdx, Lifted, is_filler};
use crate::refusal::{Refusal, RefusalCode};
use crate::registers::gpr;

pub use implied::{NO_TRANSLATION, string_op, string_repeat, xlat};
pub use loads::{only_reads, unless_load};
pub use memory::{
    MASKED, MemoryOperands, REACHES_MORE, is_cache_hint, is_masked, memory_operands,
    one_memory_operand, stores_by_register,
};

use implied::{port, port_string};
use memory::space;
use stack_pointer::stack_pointer;
pub use stack_pointer::{PART_OF_A_WORD, WORD, in_words};

/// Why an instruction is refused: the code, and the reason in words.
pub type Refused = (RefusalCode, &'static str);

/// What a target decides about instructions.
pub struct Rules {
    /// What the relocated fields of instructions become.
    pub references: fn(&Lifted<'_>) -> References,
    /// The instructions that the kernel's metadata requires unchanged, by index. An
    /// error is metadata that cannot be read, or that names no whole instruction.
    pub kept: fn(&Lifted<'_>) -> Result<HashMap<u32, Kept>, Refusal>,
    /// What functions and calls may do to registers.
    pub conventions: Conventions,
    /// Whether functions keep and compare their return address.
    pub guards_returns: bool,
    /// Adds facts to a survey that the decoder does not know.
    pub amend: fn(&Instruction, &mut Survey, &mut Effect),
    /// Classifies an instruction. Padding between functions comes here only if metadata
    /// names it.
    pub classify: fn(&Question<'_>) -> Result<Class, Refused>,
}

/// Why an instruction stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// `__jump_table` names it: a `nop` or `jmp` that the kernel toggles.
    StaticBranch,
    /// It lies in a range that `.altinstructions` may replace.
    Alternative,
    /// It lies in a range that `.parainstructions` may replace.
    Paravirt,
    /// `__ex_table` names it: the kernel answers its faults.
    Fixup,
    /// Its whole section stays as it is.
    Section,
    /// It is in a replacement whose entry is left out: nothing runs it.
    Unused,
    /// `__mcount_loc` names it: a call of the trace entry, or a `nop` that the kernel makes one.
    Trace,
    /// `__patchable_function_entries` names it: a `nop` before a function, where the kernel
    /// puts what calls of the function run through (arch/x86/kernel/callthunks.c).
    Prefix,
    /// It is a part of kCFI's check of a type ([`super::type_checks`]), or of the hash before a
    /// function: the kernel looks for these bytes where it writes others.
    TypeCheck,
    /// It reads the hash of a type, where none is: this one counts as read.
    TypeHash(i32),
}

/// The instruction that is to be classified, and facts about it.
pub struct Question<'q> {
    /// The code that it is in.
    pub lifted: &'q Lifted<'q>,
    /// What metadata says of control flow.
    pub hidden: &'q HiddenFlow,
    pub survey: &'q Survey,
    pub inst: InstIdx,
    /// Whether its function is padding.
    pub padding: bool,
    /// Why it stays as it is, if metadata requires that.
    pub kept: Option<Kept>,
    /// Where the destination comes from, if it jumps through a table.
    pub switch: Option<Callee>,
    /// Which accesses are translated.
    pub accesses: Accesses,
}

/// Classifies one instruction under a target's rules.
///
/// # Errors
/// The instruction cannot be rewritten soundly.
pub fn classify(rules: &Rules, question: &Question<'_>) -> Result<Class, Refusal> {
    let Question { lifted, inst, .. } = *question;
    let class = match question.kept {
        None | Some(Kept::Alternative | Kept::Paravirt) if question.padding => Ok(Class::Drop),
        _ => (rules.classify)(question).and_then(|class| switch(question, class)),
    };
    class.map_err(|(code, reason)| lifted.refusal(code, inst, reason))
}

/// The class of a jump through a table; any other class stays.
fn switch(question: &Question<'_>, class: Class) -> Result<Class, Refused> {
    match (question.switch, question.kept) {
        (None, _) => Ok(class),
        (Some(callee), None) => Ok(Class::Switch(callee)),
        (Some(_), Some(_)) => Err((
            RefusalCode::Patched,
            "a jump through a table where the kernel may put another instruction",
        )),
    }
}

/// The differences between the targets for objects, which otherwise classify
/// instructions by the same cases.
pub struct Differences {
    /// Refuses instructions that code for the target may not have.
    pub refuse: fn(&Instruction) -> Result<(), Refused>,
    /// Gives the class of instructions that only this target accepts; called before the
    /// common cases.
    pub first: fn(&Instruction) -> Result<Option<Class>, Refused>,
    /// Refuses extensions and prefixes that an instruction of this class may not have.
    pub refuse_form: fn(&Instruction, &[u8], Class) -> Result<(), Refused>,
}

/// The class of an instruction of an object.
///
/// # Errors
/// The instruction cannot be rewritten soundly.
pub fn of_object(question: &Question<'_>, differences: &Differences) -> Result<Class, Refused> {
    let Question {
        lifted, inst: i, ..
    } = *question;
    let inst = lifted.inst(i);
    let bytes = lifted.bytes(i);
    (differences.refuse)(&inst.iced)?;
    if let Some(reason) = prefix::ambiguous(&inst.iced, bytes) {
        return Err((RefusalCode::Unsupported, reason));
    }
    let listed = |class| (differences.refuse_form)(&inst.iced, bytes, class).map(|()| class);
    match inst.iced.flow_control() {
        FlowControl::Next => straight(inst, question.survey, differences).and_then(listed),
        FlowControl::ConditionalBranch => branch(&inst.iced).and_then(listed),
        FlowControl::UnconditionalBranch | FlowControl::Call => classify_direct(lifted, inst),
        FlowControl::IndirectCall => callee(inst).map(Class::CallIndirect),
        FlowControl::IndirectBranch => callee(inst).map(Class::JumpIndirect),
        FlowControl::Return if inst.iced.code() == Code::Retnq => Ok(Class::Return),
        FlowControl::Return => Err((
            RefusalCode::Unsupported,
            "this form of return moves more than a return address",
        )),
        // `ud1` marks the end of a static call's trampoline.
        FlowControl::Exception if matches!(inst.iced.mnemonic(), Mnemonic::Ud1 | Mnemonic::Ud2) => {
            Ok(Class::Trap(question.hidden.trap(i)))
        }
        FlowControl::Interrupt if inst.iced.mnemonic() == Mnemonic::Int3 => listed(Class::Plain),
        FlowControl::Exception | FlowControl::Interrupt | FlowControl::XbeginXabortXend => {
            Err(LEAVES)
        }
    }
}

const LEAVES: Refused = (
    RefusalCode::Privileged,
    "this control transfer leaves the driver",
);

/// A call into Xen's page of calls, where none is.
///
/// # Errors
/// The instruction is one.
pub fn refuse_hypercall(question: &Question<'_>) -> Result<(), Refused> {
    match question.lifted.inst(question.inst).target {
        Some(Destination::Hypercall(..)) => Err((
            RefusalCode::Privileged,
            "a call of Xen by its page of calls, which only the kernel has",
        )),
        Some(Destination::Inst(_) | Destination::Import(_) | Destination::Behind(_)) | None => {
            Ok(())
        }
    }
}

fn branch(iced: &Instruction) -> Result<Class, Refused> {
    let known = Branch::of(iced).map(Class::Branch);
    known.ok_or((RefusalCode::Unsupported, "this branch is not known"))
}

fn classify_direct(lifted: &Lifted<'_>, inst: &Inst) -> Result<Class, Refused> {
    let s = match inst.target {
        Some(Destination::Import(s)) => s,
        Some(_) => return branch(&inst.iced),
        // To the decoder `vmgexit` and its like are calls.
        None => return Err(LEAVES),
    };
    let name = lifted.symbol_name(s);
    let is_call = inst.iced.flow_control() == FlowControl::Call;
    Ok(match routines::indirect_thunk(name) {
        Some(register) if is_call => Class::CallIndirect(Callee::Register(register)),
        Some(register) => Class::JumpIndirect(Callee::Register(register)),
        None if routines::is_return_thunk(name) && !is_call => Class::Return,
        None if routines::is_trace_entry(name) && is_call => Class::Drop,
        None => return branch(&inst.iced),
    })
}

/// Where an indirect transfer takes its destination from.
///
/// # Errors
/// A form that is not known.
pub fn callee(inst: &Inst) -> Result<Callee, Refused> {
    match inst.iced.op0_kind() {
        OpKind::Register if inst.iced.op0_register().is_gpr64() => Ok(Callee::Register(
            gpr(inst.iced.op0_register()).expect("a general register"),
        )),
        OpKind::Memory if inst.iced.memory_size().size() == 8 => Ok(Callee::Memory(space(inst)?)),
        _ => Err((
            RefusalCode::Unsupported,
            "a far or narrow indirect transfer",
        )),
    }
}

fn straight(inst: &Inst, survey: &Survey, differences: &Differences) -> Result<Class, Refused> {
    let iced = &inst.iced;
    if is_filler(iced) {
        return Ok(Class::Drop);
    }
    if let Some(class) = (differences.first)(iced)? {
        return Ok(class);
    }
    in_words(iced)?;
    if let Some(port) = port(iced) {
        return Ok(Class::Port(port));
    }
    if let Some((op, log2)) = string_op(iced.code()) {
        return string_repeat(iced).map(|repeat| Class::String(op, log2, repeat));
    }
    if let Some(port) = port_string(iced.code()) {
        return string_repeat(iced).map(|repeat| Class::PortString(port, repeat));
    }
    if let Some(class) = xlat(iced)? {
        return Ok(class);
    }
    if let Some(class) = stack_pointer(iced, survey)? {
        return Ok(class);
    }
    match memory_operands(iced) {
        MemoryOperands::None => no_explicit_memory(iced, survey),
        MemoryOperands::One => one_memory_operand(inst),
        MemoryOperands::Implicit => Err(NO_TRANSLATION),
    }
}

/// The refusal of an instruction that reaches memory by a register that its operands do not
/// show.
pub const UNNAMED: Refused = (
    RefusalCode::Unsupported,
    "it reaches memory without naming it",
);

fn no_explicit_memory(iced: &Instruction, survey: &Survey) -> Result<Class, Refused> {
    let plain_stack = matches!(iced.mnemonic(), Mnemonic::Push | Mnemonic::Pop);
    if plain_stack && iced.stack_pointer_increment().abs() == 8 {
        return Ok(Class::Plain);
    }
    // For 32-bit mode; a `nop` in 64-bit mode (SDM volume 2, ENDBR32).
    if iced.mnemonic() == Mnemonic::Endbr32 {
        return Ok(Class::Drop);
    }
    if survey.memory == MemoryEffect::Untouched && !iced.is_stack_instruction() {
        return Ok(Class::Plain);
    }
    Err(UNNAMED)
}
